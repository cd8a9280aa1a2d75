/*
 * out: the rows of one table, in batches.
 *
 * One batch grows; a full one moves to the finished ones. Columns of numbers
 * have room for all rows of the batch, so that a put only stores. Texts and
 * lists get room by themselves. A row counts when all of it is written. If
 * memory lacks before, the row is undone, and the rows before it stay.
 */
#pragma once

#include "arrow/batch.h"

enum { RDMETA_FOLD_TABLES = 7 };

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
        uint64_t size; /* bytes of `done`, about */
        int32_t table;
        int failed; /* a put of this row found no memory */
        rdmeta_str_t cluster_id, origin;
} rdmeta_fold_out_t;

/* Makes an empty output of a table; borrows both texts, UTF-8. */
void rdmeta_fold_out_init(rdmeta_fold_out_t *o, int32_t table,
                          rdmeta_str_t cluster_id, rdmeta_str_t origin);
void rdmeta_fold_out_destroy(rdmeta_fold_out_t *o);

/* Returns about how many bytes the rows have. */
RDMETA_INLINE uint64_t rdmeta_fold_out_size(const rdmeta_fold_out_t *o) {
        return o->size + 128 * (uint64_t)o->batch.rows + (uint64_t)o->bytes;
}

/* Begins a row: makes room for it. Returns NO_MEMORY. */
rdmeta_err_t rdmeta_fold_out_begin(rdmeta_fold_out_t *o);
/* Ends the row. Returns NO_MEMORY, and then the row is undone. */
rdmeta_err_t rdmeta_fold_out_end(rdmeta_fold_out_t *o);
/* Makes a stream of all rows, which then are gone here. Returns NO_MEMORY, and
 * then they are still here. */
rdmeta_err_t rdmeta_fold_out_take(rdmeta_fold_out_t *o,
                                  struct ArrowArrayStream *out);

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

/* Stores a truth; a negative one becomes null. */
RDMETA_INLINE void rdmeta_fold_put_maybe(rdmeta_fold_out_t *o, int column,
                                         int value) {
        rdmeta_fold_put_bool(o, column, value > 0);
        if (value < 0)
                rdmeta_fold_put_null(&o->batch.columns[column],
                                     o->batch.rows);
}

/* Makes room for `need` bytes in a column of texts or lists. Returns 0, and
 * notes it, if there is no memory. */
int rdmeta_fold_out_room(rdmeta_fold_out_t *o, rdmeta_arrow_column_t *c,
                         int64_t need);

/* Copies bytes. Most texts and lists have 8 to 32: two copies of one size,
 * which may overlap, need no call. */
RDMETA_INLINE void rdmeta_fold_copy(uint8_t *to, const void *from,
                                    size_t size) {
        const char *bytes = (const char *)from;

        if (size > 32 || size < 8) {
                memcpy(to, bytes, size);
        } else if (size >= 16) {
                memcpy(to, bytes, 16);
                memcpy(to + size - 16, bytes + size - 16, 16);
        } else {
                memcpy(to, bytes, 8);
                memcpy(to + size - 8, bytes + size - 8, 8);
        }
}

/* Appends bytes to a column of texts or lists, whose items have 1 << `shift`
 * bytes; data NULL: null. */
RDMETA_INLINE void rdmeta_fold_put_bytes(rdmeta_fold_out_t *o, int column,
                                         const void *data, size_t size,
                                         int shift) {
        rdmeta_arrow_column_t *c = &o->batch.columns[column];
        const int64_t used       = c->values.size_bytes;
        const int64_t need       = used + (int64_t)size;

        if (!data) {
                rdmeta_fold_put_null(c, o->batch.rows);
        } else if (size && (need <= c->values.capacity_bytes ||
                            rdmeta_fold_out_room(o, c, 2 * need))) {
                rdmeta_fold_copy(c->values.data + used, data, size);
                c->values.size_bytes = need;
                o->bytes += (int64_t)size;
        }
        rdmeta_arrow_offsets(c)[o->batch.rows + 1] =
                (int32_t)(c->values.size_bytes >> shift);
}

/* Stores a text; data NULL: null. */
RDMETA_INLINE void rdmeta_fold_put_text(rdmeta_fold_out_t *o, int column,
                                        rdmeta_str_t s) {
        rdmeta_fold_put_bytes(o, column, s.data, s.len, 0);
}

/* Stores a list; ids NULL: null. */
RDMETA_INLINE void rdmeta_fold_put_ids(rdmeta_fold_out_t *o, int column,
                                       rdmeta_ids_t ids) {
        rdmeta_fold_put_bytes(o, column, ids.ids, 4 * (size_t)ids.count, 2);
}
