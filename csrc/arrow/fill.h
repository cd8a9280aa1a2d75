/*
 * fill: what the two passes over each table have in common.
 */
#ifndef RDMETA_ARROW_FILL_H
#define RDMETA_ARROW_FILL_H

#include "arrow/batch.h"
#include "read/state.h"

/* Places of columns, as in schema.c. */
enum { TOPIC, TOPIC_ID }; /* of every table of topics */
enum {
        T_INTERNAL = 2,
        T_PARTITIONS,
        T_ERROR,
        T_OPERATIONS,
        T_VERSION,
        T_STATE,
        T_SOURCE,
        T_REASON,
        T_AGE
};
enum {
        P_PARTITION = 2,
        P_LEADER,
        P_EPOCH,
        P_REPLICAS,
        P_ISR,
        P_OFFLINE,
        P_ERROR,
        P_UNREACHABLE,
        P_LEADERLESS,
        P_STALE
};
enum {
        R_PARTITION = 2,
        R_BROKER,
        R_POSITION,
        R_LEADER,
        R_IN_SYNC,
        R_OFFLINE,
        R_PREFERRED
};
enum { B_BROKER, B_HOST, B_PORT, B_RACK, B_CONTROLLER, B_CLUSTER };

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

/* A topic, and what both passes want to know of it. */
typedef struct rdmeta_shown {
        const rdmeta_topic_t *topic;
        rdmeta_cols_t cols;
        size_t name; /* bytes of UTF-8 */
        int has_id;
        rdmeta_topic_info_t info; /* of the table of topics: not read else */
} rdmeta_shown_t;

/* ---- the first pass ----------------------------------------------------- */

/* What a batch will hold. */
typedef struct rdmeta_sizes {
        int64_t rows;
        int64_t items[RDMETA_ARROW_COLUMNS]; /* bytes of text, or ids */
} rdmeta_sizes_t;

/* So many of `n`, each with `each` items, fit into `most` of a column; the
 * first row of a batch always does. */
int64_t rdmeta_sizes_fit(const rdmeta_sizes_t *s, int column, int64_t each,
                         int64_t most, int64_t n);
/* The same of rows and the topic's name. */
int64_t rdmeta_sizes_fit_rows(const rdmeta_sizes_t *s,
                              const rdmeta_shown_t *t, int64_t n);
/* n rows with the topic's name and id. */
void rdmeta_sizes_add(rdmeta_sizes_t *s, const rdmeta_shown_t *t, int64_t n);

/* ---- the second pass ---------------------------------------------------- */

/* What is being filled, from `row` on. */
typedef struct rdmeta_fill {
        rdmeta_arrow_rows_t *r;
        rdmeta_arrow_column_t *columns;
        int64_t row;
} rdmeta_fill_t;

/* One text in n rows; data NULL: null. `size`: of it as UTF-8. */
void rdmeta_put_text(rdmeta_arrow_column_t *c, int64_t row, int64_t n,
                     rdmeta_str_t s, size_t size);
/* Name and id of a topic in n rows from f->row on. */
void rdmeta_put_topic(rdmeta_fill_t *f, const rdmeta_shown_t *t, int64_t n);
/* n lists or texts of `each` items. */
void rdmeta_put_offsets(rdmeta_arrow_column_t *c, int64_t row, int64_t n,
                        size_t each);
void rdmeta_put_ids(rdmeta_arrow_column_t *c, int64_t row, rdmeta_list_t l);

RDMETA_INLINE void rdmeta_put_int32(rdmeta_arrow_column_t *c, int64_t row,
                                    int32_t value) {
        rdmeta_arrow_int32(c)[row] = value;
}

/* Negative is null. */
RDMETA_INLINE void rdmeta_put_some(rdmeta_arrow_column_t *c, int64_t row,
                                   int32_t value) {
        rdmeta_put_int32(c, row, value);
        if (value < 0)
                rdmeta_arrow_null(c, row, 1);
}

RDMETA_INLINE void rdmeta_put_bool(rdmeta_arrow_column_t *c, int64_t row,
                                   int value) {
        if (value)
                ArrowBitSet(c->values.data, row);
}

/* `n` integers of a block's column from the i-th on. */
void rdmeta_col_widen(const char *col, unsigned width, size_t i, size_t n,
                      int32_t *out);

#endif /* RDMETA_ARROW_FILL_H */
