/*
 * arrow_fixture: prints an Arrow stream as text, through nanoarrow's views.
 *
 *     aw_text_t t = aw_read(&stream);
 *     CHECK_TEXT(t.data, "orders|-|0|1|5|[1,2]|[1]|[]|0|0|0\n");
 *     aw_free(&t);
 *
 * Each row is a line, and null is "-". Before the fixture reads a batch,
 * nanoarrow validates all of it, so offsets, lengths and buffers are right.
 */
#pragma once

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
        int64_t longest; /* rows of the longest batch */
        int64_t nulls;   /* null values in all batches */
} aw_text_t;

void aw_put(aw_text_t *t, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
void aw_put_bytes(aw_text_t *t, const void *bytes, size_t n);
void aw_free(aw_text_t *t);

/* Reads a stream to its end, and releases it. The caller calls aw_free(). */
aw_text_t aw_read(struct ArrowArrayStream *stream);
/* Prints one batch, and releases it. */
void aw_batch(aw_text_t *t, const struct ArrowSchema *schema,
              struct ArrowArray *batch);
/* Returns the columns as "name:format", with "?" if a column is nullable. The
 * caller calls aw_free(). */
aw_text_t aw_schema(const struct ArrowSchema *schema);

/* ---- tables of a cache -------------------------------------------------- */

enum {
        AW_ALL = RDMETA_WALK_VALID | RDMETA_WALK_STALE | RDMETA_WALK_NEGATIVE
};

/* Returns a stream of a table, as the reader sees it now. */
struct ArrowArrayStream aw_open(cw_t *w, rdmeta_reader_t *r, int32_t table,
                                int32_t which);
/* Returns a table of the valid topics as text. */
aw_text_t aw_table(cw_t *w, int32_t table);
/* Checks that a table has these rows. */
void aw_check(cw_t *w, rdmeta_reader_t *r, int32_t table, int32_t which,
              const char *wanted);
/* Checks that PARTITIONS or REPLICAS has the rows that a reader's calls return
 * for each topic. */
void aw_check_as_read(cw_t *w, int32_t table, int stale);

/* Returns a healthy cluster of five brokers. */
gen_cluster_t *aw_cluster(uint64_t seed, uint32_t topics, uint32_t partitions,
                          int32_t first);
/* Applies an answer that has the whole cluster. */
void aw_say(cw_t *w, const gen_cluster_t *cluster);
