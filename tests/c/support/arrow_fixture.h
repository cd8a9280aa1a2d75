/*
 * arrow_fixture: what an Arrow stream says, as text, read by nanoarrow's views.
 *
 *     aw_text_t t = aw_read(&stream);
 *     CHECK_TEXT(t.data, "orders|-|0|1|5|[1,2]|[1]|[]|0|0|0\n");
 *     aw_free(&t);
 *
 * A row is a line, "-" is null. Each batch is validated in full before it is
 * read, so offsets, lengths and buffers hold.
 */
#ifndef RDMETA_ARROW_WORLD_H
#define RDMETA_ARROW_WORLD_H

#include "arrow/batch.h"
#include "arrow/rows.h"
#include "arrow/stream.h"
#include "arrow/text.h"

#include "support/cache_fixture.h"

typedef struct aw_text {
        char *data; /* never NULL */
        size_t len, capacity;
        int batches;
        int64_t rows;
        int64_t longest; /* rows of one batch */
        int64_t nulls;   /* that batches told of */
} aw_text_t;

void aw_put(aw_text_t *t, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
void aw_put_bytes(aw_text_t *t, const void *bytes, size_t n);
void aw_free(aw_text_t *t);

/* To its end; the stream is released. */
aw_text_t aw_read(struct ArrowArrayStream *stream);
/* One batch, which is released. */
void aw_batch(aw_text_t *t, const struct ArrowSchema *schema,
              struct ArrowArray *batch);
/* The columns, "name:format" with "?" if nullable. */
aw_text_t aw_schema(const struct ArrowSchema *schema);

/* ---- tables of a cache -------------------------------------------------- */

enum {
        AW_ALL = RDMETA_WALK_VALID | RDMETA_WALK_STALE | RDMETA_WALK_NEGATIVE
};

struct ArrowArrayStream aw_open(cw_t *w, rdmeta_reader_t *r, int32_t table,
                                int32_t which);
/* Of valid topics. */
aw_text_t aw_table(cw_t *w, int32_t table);
void aw_check(cw_t *w, rdmeta_reader_t *r, int32_t table, int32_t which,
              const char *wanted);
/* PARTITIONS or REPLICAS are what the reading calls say of every topic. */
void aw_check_as_read(cw_t *w, int32_t table, int stale);

/* A healthy cluster of five brokers, and an answer that says it. */
gen_cluster_t *aw_cluster(uint64_t seed, uint32_t topics, uint32_t partitions,
                          int32_t first);
void aw_say(cw_t *w, const gen_cluster_t *cluster);

#endif /* RDMETA_ARROW_WORLD_H */
