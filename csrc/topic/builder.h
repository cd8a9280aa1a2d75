/*
 * builder: one topic on its way from a response into a block.
 *
 * The rows of an answer are spread into columns, sorted by partition id and
 * checked; merge may put back what is known better; then the columns are
 * written out as a block, each as narrow as its values allow.
 *
 *     bytes --read--> columns --merge--> columns --build--> block
 *                     id leader epoch error | high last | replicas isr offline
 *
 * Lists stay where they are, big-endian in the response (or, for rows put
 * back, in `kept`). Only when a block is built, and only for topics of more
 * than a few partitions or that are not in sync, are equal ones found and
 * numbered, in the order in which rows use them: equal facts give equal
 * blocks. One stage serves a whole response and is reused.
 */
#ifndef RDMETA_TOPIC_BUILDER_H
#define RDMETA_TOPIC_BUILDER_H

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

        /* Numbered lists, [0] the empty one, while a block is built. */
        rdmeta_wire_ids_t *lists;
        uint32_t *at;      /* a list's place in the block, in units */
        uint32_t *refs[3]; /* of the rows' replicas, isr, offline */
        uint64_t *slots;   /* generation << 32 | list */
        uint32_t slot_mask, generation, n_lists;
        uint32_t units; /* of the lists area */
        uint64_t named; /* brokers in the lists of all rows so far */

        uint8_t *kept; /* lists of an old block, big-endian */
        size_t kept_size;
        int32_t *spare; /* partition ids, for a merge */
        size_t spare_size;

        rdmeta_wire_topic_t topic; /* name, id, error, internal, operations */
        uint32_t count;
        uint32_t members;         /* OR of all members of all lists, and of
                                   * their lengths */
        uint32_t least, most;     /* replicas of a partition */
        uint8_t sparse;           /* ids are not 0..count-1 */
        uint8_t any_error, any_isr, any_offline, any_high, any_last;
        uint8_t put_back; /* rows are not those that were read */
        uint8_t past[RDMETA_PAST_MAX * 16];
        uint8_t n_past;
        uint8_t id_bytes[16]; /* the id to be stored */
        uint16_t state;
} rdmeta_builder_t;

void rdmeta_builder_init(rdmeta_builder_t *s, const rdmeta_allocator_t *allocator,
                       const uint64_t *key);
void rdmeta_builder_destroy(rdmeta_builder_t *s);

/* Read the partitions and the end of `topic`, whose head has been read.
 * MALFORMED: bytes, negative ids, duplicates. NO_MEMORY. */
rdmeta_err_t rdmeta_builder_read(rdmeta_builder_t *s, rdmeta_buf_t *b,
                               uint32_t fields,
                               const rdmeta_wire_topic_t *topic);

/* Everything of an old block but its rows, which the caller puts back one by
 * one: for a change that no response brought. NO_MEMORY. */
rdmeta_err_t rdmeta_builder_begin(rdmeta_builder_t *s, const rdmeta_topic_t *old,
                                const rdmeta_cols_t *cols);

/* Put partition `i` back to what `row` of an old block says;
 * rdmeta_builder_keep_lists() of that block comes first. NO_MEMORY. */
rdmeta_err_t rdmeta_builder_keep_lists(rdmeta_builder_t *s,
                                     const rdmeta_cols_t *old);
void rdmeta_builder_keep_row(rdmeta_builder_t *s, uint32_t i,
                           const rdmeta_cols_t *old, const rdmeta_row_t *row);

/* Puts rows of an old block, of those `ids` in ascending order, back among the
 * others, which do not have them. rdmeta_builder_keep_lists() of that block comes
 * first. NO_MEMORY. */
rdmeta_err_t rdmeta_builder_insert(rdmeta_builder_t *s, const rdmeta_cols_t *old,
                                 const int32_t *ids, uint32_t n);

/* Returns room for n ids, the same while no more are asked for; the stage's,
 * until the next topic. NULL: no memory. */
int32_t *rdmeta_builder_spare(rdmeta_builder_t *s, size_t n);

/* Columns that only a merge fills: from -1 on, once asked for. */
void rdmeta_builder_want_high(rdmeta_builder_t *s);
void rdmeta_builder_want_last(rdmeta_builder_t *s);

/* members, least, most, any_isr, any_offline over the rows as they are. */
void rdmeta_builder_regather(rdmeta_builder_t *s);

/* Give memory back that only an unusually large topic needed. */
void rdmeta_builder_trim(rdmeta_builder_t *s);

#endif /* RDMETA_TOPIC_BUILDER_H */
