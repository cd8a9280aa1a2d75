/*
 * answer_order: topics in the order of the last answers, with what they looked
 * like.
 *
 *     slots  [len digest seen entry][len digest seen entry] ...   32 bytes
 *               ^ cursor: the next topic of an answer is most often this one
 *
 * Brokers answer with topics in the same order as last time, and most say the
 * same again. So a slot holds the encoded length and digest of its topic, and
 * a refresh of a hundred thousand topics is one pass over this array beside
 * one over the bytes: neither the block nor the entry is touched. When a topic
 * is not the one expected, its name finds its slot and the cursor goes on from
 * there, so that a rotated order costs one look-up.
 *
 * Every entry has a slot, and its block the slot's number: a name that is out
 * of its place is found without the entry being looked at.
 *
 * A length of 0 means that there is nothing to compare with: the block does
 * not say exactly what the bytes said, or they were of another API version.
 * `own` marks topics whose deadline is their own and not the shared one: they
 * have to be looked at even when they say the same. `seen` is the number of
 * the answer that named the topic last: it finds duplicates and the absent.
 *
 * The slot of a topic in flight holds the number of its hint in place of the
 * digest, and has the length 0.
 */
#ifndef RDMETA_STORE_ANSWER_ORDER_H
#define RDMETA_STORE_ANSWER_ORDER_H

#include "base/hash.h"
#include "rdmeta.h"

#define RDMETA_ANSWER_ORDER_OWN 0x80000000u

struct rdmeta_entry;

/* Of a topic in flight. */
typedef struct rdmeta_answer_order_hint {
        /* of the call that made the hint, see cache/in_flight.c */
        uint64_t number;
        uint32_t next;   /* while hints end: the next slot and 1; 0: none */
} rdmeta_answer_order_hint_t;

typedef struct rdmeta_answer_order_slot {
        uint32_t len; /* and RDMETA_ANSWER_ORDER_OWN */
        uint32_t seen;
        union {
                rdmeta_digest_t digest;
                rdmeta_answer_order_hint_t hint;
        };
        struct rdmeta_entry *entry; /* NULL: a hole, the next in `seen` */
} rdmeta_answer_order_slot_t;

typedef struct rdmeta_answer_order {
        rdmeta_answer_order_slot_t *slots;
        uint32_t count, capacity, holes;
        uint32_t hole; /* the first, if there are any */
        uint32_t answer; /* number of the answer that is being read */
        uint32_t generation; /* how often entries were given other slots */
        int16_t api_version; /* of the digests; -1: none yet */
} rdmeta_answer_order_t;

/* Room for `count` slots in all. NO_MEMORY, or more than can be counted. */
rdmeta_err_t rdmeta_answer_order_reserve(rdmeta_answer_order_t *o,
                                  const rdmeta_allocator_t *allocator,
                                  size_t count);
void rdmeta_answer_order_destroy(rdmeta_answer_order_t *o,
                          const rdmeta_allocator_t *allocator);
/* A slot for one more entry, a hole if there is one; NULL: no memory. */
rdmeta_answer_order_slot_t *rdmeta_answer_order_take(rdmeta_answer_order_t *o,
                                       const rdmeta_allocator_t *allocator);
/* A slot whose entry is gone. */
void rdmeta_answer_order_give(rdmeta_answer_order_t *o, uint32_t slot);
/* Forget all digests: they were of another API version. */
void rdmeta_answer_order_forget(rdmeta_answer_order_t *o, int16_t api_version);

#endif /* RDMETA_STORE_ANSWER_ORDER_H */
