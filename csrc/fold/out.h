/*
 * out: the rows of one table, in batches.
 *
 * One batch grows; a full one moves to the finished ones. Columns of numbers
 * have room for all rows of the batch, so that a put only stores. Texts and
 * lists get room by themselves. A row counts when all of it is written. If
 * memory lacks before, the row is undone, and the rows before it stay.
 */
#ifndef RDMETA_FOLD_OUT_H
#define RDMETA_FOLD_OUT_H

#include "arrow/batch.h"

enum { RDMETA_FOLD_TABLES = 6 };

typedef struct rdmeta_fold_out {
        rdmeta_arrow_batch_t batch;
        int64_t room;     /* rows that the columns of numbers have room for */
        int is_large;     /* the last batch was */
        int64_t items[RDMETA_ARROW_COLUMNS]; /* bytes or ids it had */
        int64_t bytes;    /* of texts and lists in the batch */
        int64_t capacity; /* of `done` */
        struct ArrowArray *done;
        size_t n;
        uint64_t rows; /* in `done` and in the batch */
        int32_t table;
        int failed; /* a put of this row found no memory */
        rdmeta_str_t cluster_id, origin;
} rdmeta_fold_out_t;

/* Makes an empty output of a table; borrows both texts, UTF-8. */
void rdmeta_fold_out_init(rdmeta_fold_out_t *o, int32_t table,
                          rdmeta_str_t cluster_id, rdmeta_str_t origin);
void rdmeta_fold_out_destroy(rdmeta_fold_out_t *o);

/* Begins a row: makes room for it. Returns NO_MEMORY. */
rdmeta_err_t rdmeta_fold_out_begin(rdmeta_fold_out_t *o);
/* Ends the row. Returns NO_MEMORY, and then the row is undone. */
rdmeta_err_t rdmeta_fold_out_end(rdmeta_fold_out_t *o);
/* Makes a stream of all rows, which then are gone here. Returns NO_MEMORY, and
 * then they are still here. */
rdmeta_err_t rdmeta_fold_out_take(rdmeta_fold_out_t *o,
                                  struct ArrowArrayStream *out);

/* Appends bytes to a column of texts or lists. */
void rdmeta_fold_out_bytes(rdmeta_fold_out_t *o, int column, const void *data,
                           size_t size, size_t item);

RDMETA_INLINE void rdmeta_fold_put_null(rdmeta_arrow_column_t *c,
                                        int64_t row) {
        ArrowBitClear(c->valid.data, row);
        c->nulls++;
}

RDMETA_INLINE void rdmeta_fold_put_int64(rdmeta_fold_out_t *o, int column,
                                         int64_t value) {
        rdmeta_arrow_column_t *c = &o->batch.columns[column];

        ((int64_t *)(void *)c->values.data)[o->batch.rows] = value;
}

/* Stores a number; a negative one becomes null. */
RDMETA_INLINE void rdmeta_fold_put_some64(rdmeta_fold_out_t *o, int column,
                                          int64_t value) {
        rdmeta_fold_put_int64(o, column, value < 0 ? 0 : value);
        if (value < 0)
                rdmeta_fold_put_null(&o->batch.columns[column],
                                     o->batch.rows);
}

RDMETA_INLINE void rdmeta_fold_put_int32(rdmeta_fold_out_t *o, int column,
                                         int32_t value) {
        rdmeta_arrow_int32(&o->batch.columns[column])[o->batch.rows] = value;
}

RDMETA_INLINE void rdmeta_fold_put_some(rdmeta_fold_out_t *o, int column,
                                        int32_t value) {
        rdmeta_fold_put_int32(o, column, value < 0 ? 0 : value);
        if (value < 0)
                rdmeta_fold_put_null(&o->batch.columns[column],
                                     o->batch.rows);
}

RDMETA_INLINE void rdmeta_fold_put_bool(rdmeta_fold_out_t *o, int column,
                                        int value) {
        if (value)
                ArrowBitSet(o->batch.columns[column].values.data,
                            o->batch.rows);
}

/* Stores a text; data NULL: null. */
RDMETA_INLINE void rdmeta_fold_put_text(rdmeta_fold_out_t *o, int column,
                                        rdmeta_str_t s) {
        rdmeta_fold_out_bytes(o, column, s.data, s.len, 1);
}

/* Stores a list; ids NULL: null. */
RDMETA_INLINE void rdmeta_fold_put_ids(rdmeta_fold_out_t *o, int column,
                                       rdmeta_ids_t ids) {
        rdmeta_fold_out_bytes(o, column, ids.ids, 4 * (size_t)ids.count, 4);
}

#endif /* RDMETA_FOLD_OUT_H */
