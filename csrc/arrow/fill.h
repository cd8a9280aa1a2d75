/*
 * fill: the types and functions that the two passes over each table share.
 */
#pragma once

#include "arrow/batch.h"
#include "read/state.h"

/* The index of each column, in the order of schema.c. */
enum { TOPIC, TOPIC_ID }; /* of topics, partitions, replicas */
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

/* The place of the next row. */
typedef struct rdmeta_arrow_cursor {
        size_t item;        /* the index of the topic, or of the broker */
        uint32_t partition; /* the index in the topic */
        uint32_t replica;   /* the index in the partition */
} rdmeta_arrow_cursor_t;

typedef struct rdmeta_arrow_rows {
        int32_t table;
        rdmeta_reader_t *reader;       /* reads an image */
        const rdmeta_topic_t **topics; /* in the order of names */
        size_t n;                      /* of topics, or of brokers */
        rdmeta_arrow_cursor_t at;      /* the next row */
        int32_t which; /* RDMETA_WALK_... */
        int64_t mono_us, max_age_us;
} rdmeta_arrow_rows_t;

/* A topic, and the facts about it that both passes need. */
typedef struct rdmeta_shown {
        const rdmeta_topic_t *topic;
        rdmeta_cols_t cols;
        size_t name; /* bytes of the name as UTF-8 */
        int has_id;
        rdmeta_topic_info_t info; /* set for the table of topics only */
} rdmeta_shown_t;

/* ---- the first pass ----------------------------------------------------- */

/* The sizes of the next batch. */
typedef struct rdmeta_sizes {
        int64_t rows;
        int64_t items[RDMETA_ARROW_COLUMNS]; /* bytes of text, or ids */
} rdmeta_sizes_t;

/* Returns how many of `n` rows with `each` items fit into a column, which takes
 * `most` items. The first row of a batch always fits. */
int64_t rdmeta_sizes_fit(const rdmeta_sizes_t *s, int column, int64_t each,
                         int64_t most, int64_t n);
/* Returns how many of `n` rows fit by the number of rows and by the topic's
 * name. */
int64_t rdmeta_sizes_fit_rows(const rdmeta_sizes_t *s,
                              const rdmeta_shown_t *t, int64_t n);
/* Adds n rows with the topic's name and id. */
void rdmeta_sizes_add(rdmeta_sizes_t *s, const rdmeta_shown_t *t, int64_t n);

/* ---- the second pass ---------------------------------------------------- */

/* The batch that the second pass fills, from `row` on. */
typedef struct rdmeta_fill {
        rdmeta_arrow_rows_t *r;
        rdmeta_arrow_column_t *columns;
        int64_t row;
} rdmeta_fill_t;

/* Puts one text into n rows; data NULL: null. `size` is its size as UTF-8. */
void rdmeta_put_text(rdmeta_arrow_column_t *c, int64_t row, int64_t n,
                     rdmeta_str_t s, size_t size);
/* Puts the name and the id of a topic into n rows from f->row on. */
void rdmeta_put_topic(rdmeta_fill_t *f, const rdmeta_shown_t *t, int64_t n);
/* Puts the offsets of n lists or texts of `each` items. */
void rdmeta_put_offsets(rdmeta_arrow_column_t *c, int64_t row, int64_t n,
                        size_t each);
/* Puts one list of ids. */
void rdmeta_put_ids(rdmeta_arrow_column_t *c, int64_t row, rdmeta_list_t l);

RDMETA_INLINE void rdmeta_put_int32(rdmeta_arrow_column_t *c, int64_t row,
                                    int32_t value) {
        rdmeta_arrow_int32(c)[row] = value;
}

/* Puts a number; a negative one becomes null. */
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

/* Copies `n` integers of a block's column, from the i-th on, to int32. */
void rdmeta_col_widen(const char *col, unsigned width, size_t i, size_t n,
                      int32_t *out);
