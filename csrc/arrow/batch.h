/* The columns of one batch, and their export as an ArrowArray. */
#pragma once

#include "arrow/schema.h"
#include "base/buf.h"
#include "vendor/nanoarrow/nanoarrow.h"

/* The limits of a batch. It ends after ROWS rows, or earlier, when a column has
 * TEXT bytes of text or ITEMS ids. One more row never exceeds int32 offsets. */
enum {
        RDMETA_ARROW_ROWS  = 1 << 16,
        RDMETA_ARROW_TEXT  = 1 << 26,
        RDMETA_ARROW_ITEMS = 1 << 24
};

typedef struct rdmeta_arrow_column {
        struct ArrowBuffer valid;   /* a bit per row; nullable columns only */
        struct ArrowBuffer offsets; /* rows + 1; strings and ids only */
        struct ArrowBuffer values;  /* bits, numbers, bytes or ids */
        int64_t nulls;
} rdmeta_arrow_column_t;

typedef struct rdmeta_arrow_batch {
        const rdmeta_arrow_field_t *fields;
        int n;
        int64_t rows;
        void *block; /* has all buffers; NULL: each has its own memory */
        rdmeta_arrow_column_t columns[RDMETA_ARROW_COLUMNS];
} rdmeta_arrow_batch_t;

/* Initializes a batch of a table, without rows and without memory. */
void rdmeta_arrow_batch_init(rdmeta_arrow_batch_t *b, int32_t table);
/* Frees the memory of a batch, which then has no rows. */
void rdmeta_arrow_batch_reset(rdmeta_arrow_batch_t *b);
/* Allocates memory for exactly `rows`, with items[i] bytes or ids in column i
 * if that has strings or ids. Sets all rows valid, bools false and offsets[0]
 * 0, and nothing else. Returns NO_MEMORY: the caller then resets the batch. */
rdmeta_err_t rdmeta_arrow_batch_room(rdmeta_arrow_batch_t *b, int64_t rows,
                                     const int64_t *items);
/* Grows a buffer to `size` bytes at least, in the batch's block or not. Returns
 * NO_MEMORY, and then the buffer is as it was; nanoarrow's own function frees
 * it. */
rdmeta_err_t rdmeta_arrow_buffer_room(struct ArrowBuffer *b, int64_t size);
/* Moves the batch to *out, which the caller releases; the batch then has no
 * rows. Returns NO_MEMORY, and leaves the batch as it was. */
rdmeta_err_t rdmeta_arrow_batch_export(rdmeta_arrow_batch_t *b,
                                       struct ArrowArray *out);

RDMETA_INLINE int32_t *rdmeta_arrow_int32(rdmeta_arrow_column_t *c) {
        return (int32_t *)(void *)c->values.data;
}

RDMETA_INLINE int32_t *rdmeta_arrow_offsets(rdmeta_arrow_column_t *c) {
        return (int32_t *)(void *)c->offsets.data;
}

/* Marks n rows from `row` on as null. */
RDMETA_INLINE void rdmeta_arrow_null(rdmeta_arrow_column_t *c, int64_t row,
                                     int64_t n) {
        ArrowBitsSetTo(c->valid.data, row, n, 0);
        c->nulls += n;
}
