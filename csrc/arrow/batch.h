/* Columns of one batch, and handing them out as an ArrowArray. */
#ifndef RDMETA_ARROW_BATCH_H
#define RDMETA_ARROW_BATCH_H

#include "arrow/schema.h"
#include "base/buf.h"
#include "vendor/nanoarrow/nanoarrow.h"

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

#endif /* RDMETA_ARROW_BATCH_H */
