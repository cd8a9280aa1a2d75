/*
 * builder: builds the block of one topic from a response.
 *
 * It spreads the rows of an answer into columns, sorts them by partition id and
 * checks them. The merge may put rows of the old block back. Then the builder
 * writes the columns as a block, each as narrow as its values allow.
 *
 *     bytes --read--> columns --merge--> columns --build--> block
 *                     id leader epoch error | high last | replicas isr offline
 *
 * Lists stay where they are, big-endian in the response (or, for rows put
 * back, in `kept`). When it builds a block, the builder finds equal lists and
 * numbers them in the order in which rows use them. So equal facts give equal
 * blocks. It skips this for topics of a few partitions that are in sync. One
 * builder serves all topics of a response, and is used again for the next one.
 */
#pragma once

#include "topic/topic.h"
#include "wire/response.h"

typedef struct rdmeta_builder {
        const rdmeta_allocator_t *allocator;
        const uint64_t *key; /* secret words for the hash of lists */
        void *memory;        /* the columns, one allocation */
        size_t memory_size;
        uint32_t capacity; /* rows */

        int32_t *id, *leader, *epoch, *high, *last;
        int32_t *error;
        rdmeta_wire_ids_t *replicas, *isr, *offline;

        /* The numbered lists while a block is built; [0] is the empty one. */
        rdmeta_wire_ids_t *lists;
        uint32_t *at;      /* each list's place in the block, in units */
        uint32_t *refs[3]; /* list numbers of rows: replicas, isr, offline */
        uint64_t *slots;   /* generation << 32 | list */
        uint32_t slot_mask, generation, n_lists;
        uint32_t units; /* the size of the lists' area */
        uint64_t named; /* brokers in the lists of all rows so far */

        uint8_t *kept; /* lists of an old block, big-endian */
        size_t kept_size;
        int32_t *spare; /* partition ids, for a merge */
        size_t spare_size;

        rdmeta_wire_topic_t topic; /* name, id, error, internal, operations */
        uint32_t count;
        uint32_t members;     /* OR of all lists' members and lengths */
        uint32_t least, most; /* replicas per partition */
        uint8_t sparse;       /* ids are not 0..count-1 */
        uint8_t any_error, any_isr, any_offline, any_high, any_last;
        uint8_t put_back; /* some rows are not those that were read */
        uint8_t past[RDMETA_PAST_MAX * 16];
        uint8_t n_past;
        uint8_t id_bytes[16]; /* the id to be stored */
        uint16_t state;
} rdmeta_builder_t;

void rdmeta_builder_init(rdmeta_builder_t *s,
                         const rdmeta_allocator_t *allocator,
                         const uint64_t *key);
void rdmeta_builder_destroy(rdmeta_builder_t *s);

/* Reads the partitions and the end of `topic`, whose head has been read.
 * Returns 0, MALFORMED for bad bytes, negative ids and duplicates, or
 * NO_MEMORY. */
rdmeta_err_t rdmeta_builder_read(rdmeta_builder_t *s, rdmeta_buf_t *b,
                                 uint32_t fields,
                                 const rdmeta_wire_topic_t *topic);

/* Takes everything of an old block but its rows, for a change without a
 * response. The caller puts the rows back one by one. Returns 0 or
 * NO_MEMORY. */
rdmeta_err_t rdmeta_builder_begin(rdmeta_builder_t *s,
                                  const rdmeta_topic_t *old,
                                  const rdmeta_cols_t *cols);

/* Copies the lists of an old block, whose rows are to be put back. Returns 0 or
 * NO_MEMORY. */
rdmeta_err_t rdmeta_builder_keep_lists(rdmeta_builder_t *s,
                                       const rdmeta_cols_t *old);
/* Puts the old block's `row` back as partition `i`.
 * rdmeta_builder_keep_lists() of that block comes first. */
void rdmeta_builder_keep_row(rdmeta_builder_t *s, uint32_t i,
                             const rdmeta_cols_t *old,
                             const rdmeta_row_t *row);

/* Inserts the old block's rows with these ids, which are ascending and not
 * among the builder's rows. rdmeta_builder_keep_lists() of that block comes
 * first. Returns 0 or NO_MEMORY. */
rdmeta_err_t rdmeta_builder_insert(rdmeta_builder_t *s,
                                   const rdmeta_cols_t *old,
                                   const int32_t *ids, uint32_t n);

/* Returns room for n ids; NULL: no memory. The builder owns it, and it is valid
 * until the next topic, or until a call asks for more. */
int32_t *rdmeta_builder_spare(rdmeta_builder_t *s, size_t n);

/* Begin a column that only a merge fills: `high` from the epochs, `last` from
 * -1. They do nothing to a column that has begun. */
void rdmeta_builder_want_high(rdmeta_builder_t *s);
void rdmeta_builder_want_last(rdmeta_builder_t *s);

/* Sets members, least, most, any_isr and any_offline again, from the rows as
 * they are now. */
void rdmeta_builder_regather(rdmeta_builder_t *s);

/* Frees memory that only an unusually large topic needed. */
void rdmeta_builder_trim(rdmeta_builder_t *s);
