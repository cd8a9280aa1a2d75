/*
 * arrow: what is known, as columns, for others to take over.
 *
 *     arrow_schema   which columns a table has; ArrowSchema by nanoarrow
 *     arrow_batch    columns of one batch; handing them out as an ArrowArray
 *     arrow_text     names of any bytes as UTF-8, ids as base64
 *     arrow_rows     how large the next batch of a table is, and filling it
 *     arrow_changes  change records, gathered
 *     arrow          streams, and what makes them
 *
 *     ArrowArrayStream --> source: an image's reader, its topics, a cursor
 *           |                                 | size, allocate, fill
 *           v                                 v
 *     ArrowArray <-- export --------------- batch
 *       children --> one for each column:  [bits, if one is null][values]
 *                                          [bits][offsets][bytes]     text
 *                                          [bits][offsets] --> [ids]  lists
 *
 * A batch of a table goes in two passes over the same rows: the first adds up
 * how long each column will be, then all is allocated, then the second fills
 * it and can neither fail nor look back. Change records come from a visit, one
 * at a time, so their columns grow.
 *
 * nanoarrow makes schemas, grows buffers and sets bits. The arrays themselves
 * are put together here: nanoarrow 0.9.0 crashes in ArrowArrayInitFromType()
 * and ArrowBasicArrayStreamInit() where an allocation fails, and leaks in
 * ArrowArrayInitFromSchema(). One allocation holds all of a batch's arrays; it
 * counts them, since the one who takes a batch may move its columns out and
 * release them one by one, and it owns their buffers.
 *
 * Memory is malloc's, not the cache's allocator's: that may be called by one
 * thread at a time only, and not once the cache is gone.
 */
#ifndef RDMETA_ARROW_INTERNAL_H
#define RDMETA_ARROW_INTERNAL_H

#include "reader_state.h"
#include "vendor/nanoarrow/nanoarrow.h"

/* ---- columns (arrow_schema.c) ------------------------------------------- */

typedef enum rdmeta_arrow_type {
        RDMETA_ARROW_BOOL,
        RDMETA_ARROW_INT16,
        RDMETA_ARROW_INT32,
        RDMETA_ARROW_INT64,
        RDMETA_ARROW_DOUBLE,
        RDMETA_ARROW_TIME,   /* microseconds since 1970, UTC */
        RDMETA_ARROW_STRING,
        RDMETA_ARROW_IDS     /* list<int32> */
} rdmeta_arrow_type_t;

typedef struct rdmeta_arrow_field {
        const char *name;
        rdmeta_arrow_type_t type;
        int nullable;
} rdmeta_arrow_field_t;

enum { RDMETA_ARROW_COLUMNS = 21 }; /* at most */

/* The columns of a table, `*n` of them; NULL: no such table. */
const rdmeta_arrow_field_t *rdmeta_arrow_fields(int32_t table, int *n);

/* ---- one batch (arrow_batch.c) ------------------------------------------ */

/* Where a batch ends: after so many rows, or sooner, when a column has so many
 * bytes of text or ids. One row more never passes what int32 offsets reach. */
enum {
        RDMETA_ARROW_ROWS  = 1 << 16,
        RDMETA_ARROW_TEXT  = 1 << 26,
        RDMETA_ARROW_ITEMS = 1 << 24
};

typedef struct rdmeta_arrow_column {
        struct ArrowBuffer valid;   /* a bit a row; of nullable ones only */
        struct ArrowBuffer offsets; /* of strings and ids: rows + 1 */
        struct ArrowBuffer values;  /* bits, numbers, bytes or ids */
        int64_t nulls;
} rdmeta_arrow_column_t;

typedef struct rdmeta_arrow_batch {
        const rdmeta_arrow_field_t *fields;
        int n;
        int64_t rows;
        void *block; /* that all columns lie in; NULL: each has its own */
        rdmeta_arrow_column_t columns[RDMETA_ARROW_COLUMNS];
} rdmeta_arrow_batch_t;

/* Without rows, and without memory yet. */
void rdmeta_arrow_batch_init(rdmeta_arrow_batch_t *b, int32_t table);
void rdmeta_arrow_batch_reset(rdmeta_arrow_batch_t *b);
/* Room for exactly `rows`, with items[i] bytes or ids in column i where that
 * is of strings or ids. All valid, bools false, offsets[0] 0, else not set.
 * NO_MEMORY: reset is left to do. */
rdmeta_err_t rdmeta_arrow_batch_room(rdmeta_arrow_batch_t *b, int64_t rows,
                                     const int64_t *items);
/* Hand it out: the batch is then without rows again. NO_MEMORY: it is as it
 * was. */
rdmeta_err_t rdmeta_arrow_batch_export(rdmeta_arrow_batch_t *b,
                                       struct ArrowArray *out);

RDMETA_INLINE int32_t *rdmeta_arrow_int32(rdmeta_arrow_column_t *c) {
        return (int32_t *)(void *)c->values.data;
}

RDMETA_INLINE int32_t *rdmeta_arrow_offsets(rdmeta_arrow_column_t *c) {
        return (int32_t *)(void *)c->offsets.data;
}

/* Rows that are null. */
RDMETA_INLINE void rdmeta_arrow_null(rdmeta_arrow_column_t *c, int64_t row,
                                     int64_t n) {
        ArrowBitsSetTo(c->valid.data, row, n, 0);
        c->nulls += n;
}

/* ---- text (arrow_text.c) ------------------------------------------------ */

enum { RDMETA_ARROW_ID = 22 }; /* characters of a topic's id */

/* How long these bytes are as UTF-8, each byte that is none replaced. */
size_t rdmeta_text_size(const char *s, size_t len);
/* Write that many; `size` is what rdmeta_text_size() said. */
void rdmeta_text_copy(char *out, size_t size, const char *s, size_t len);
/* Kafka's base64: URL-safe, without padding. */
void rdmeta_text_id(char out[RDMETA_ARROW_ID], const uint8_t id[16]);

/* ---- streams (arrow.c) -------------------------------------------------- */

typedef struct rdmeta_arrow_source rdmeta_arrow_source_t;
struct rdmeta_arrow_source {
        int32_t table;
        rdmeta_err_t error; /* of the last call */
        /* The next batch; out->release NULL: there is none. */
        rdmeta_err_t (*next)(rdmeta_arrow_source_t *s,
                             struct ArrowArray *out);
        void (*destroy)(rdmeta_arrow_source_t *s);
};

/* A stream that takes `s`. */
void rdmeta_arrow_stream_init(struct ArrowArrayStream *out,
                              rdmeta_arrow_source_t *s);

/* ---- rows of tables (arrow_rows.c) -------------------------------------- */

/* Up to where rows have been given. */
typedef struct rdmeta_arrow_cursor {
        size_t item;        /* topic, or broker */
        uint32_t partition; /* of the topic: its place */
        uint32_t replica;   /* of the partition */
} rdmeta_arrow_cursor_t;

typedef struct rdmeta_arrow_rows {
        int32_t table;
        rdmeta_reader_t *reader;       /* of an image */
        const rdmeta_topic_t **topics; /* in the order of names */
        size_t n;
        rdmeta_arrow_cursor_t at;
        int32_t which; /* RDMETA_WALK_... */
        int64_t mono_us, max_age_us;
} rdmeta_arrow_rows_t;

/* The next batch, and the cursor behind it; out->release NULL: no row is left.
 * NO_MEMORY: nothing has moved. */
rdmeta_err_t rdmeta_arrow_rows_next(rdmeta_arrow_rows_t *r,
                                    struct ArrowArray *out);

#endif /* RDMETA_ARROW_INTERNAL_H */
