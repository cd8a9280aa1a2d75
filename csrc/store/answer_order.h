/*
 * answer_order: topics in the order of the last answers, with the digest of
 * what the answer said about each.
 *
 *     slots  [len digest seen entry][len digest seen entry] ...   32 bytes
 *               ^ cursor: the next topic of an answer is most often this one
 *
 * Brokers answer with topics in the same order as last time, and most answers
 * repeat what the last one said. So a slot holds the encoded length and the
 * digest of its topic. A refresh of a hundred thousand topics is then one pass
 * over this array beside one pass over the answer's bytes. It touches neither
 * the topics' blocks nor their entries. When the answer names another topic
 * than the cursor expects, that name finds its slot and the cursor continues
 * from there. So a rotated order costs one look-up.
 *
 * Every entry has a slot, and the topic's block holds the number of the slot.
 * So a name that is out of its place is found without a look at the entry.
 *
 * A length of 0 means that there is nothing to compare with. Either the block
 * differs from what the bytes said, or the bytes were of another API version.
 * RDMETA_ANSWER_ORDER_OWN marks topics that have their own deadline instead of
 * the shared one. They need a look even when the answer repeats itself. `seen`
 * is the number of the answer that named the topic last. It finds duplicates
 * and absent topics.
 *
 * The slot of a topic in flight holds the number of its hint in place of the
 * digest, and has the length 0.
 */
#pragma once

#include "base/hash.h"
#include "rdmeta.h"

#define RDMETA_ANSWER_ORDER_OWN 0x80000000u

struct rdmeta_entry;

/* The hint of a topic in flight. */
typedef struct rdmeta_answer_order_hint {
        uint64_t number; /* of the call that made it: cache/hints.c */
        uint32_t next;   /* while hints end: the next slot plus 1; 0: none */
} rdmeta_answer_order_hint_t;

typedef struct rdmeta_answer_order_slot {
        uint32_t len;  /* may include RDMETA_ANSWER_ORDER_OWN */
        uint32_t seen; /* the answer that named it last */
        union {
                rdmeta_digest_t digest;
                rdmeta_answer_order_hint_t hint;
                uint64_t due; /* of a new topic until commit, without digest:
                               * RDMETA_DUE_... */
        };
        struct rdmeta_entry *entry; /* NULL: a hole; `seen` is the next one */
} rdmeta_answer_order_slot_t;

typedef struct rdmeta_answer_order {
        rdmeta_answer_order_slot_t *slots;
        uint32_t count, capacity, holes;
        uint32_t hole;       /* the first hole, if `holes` is not 0 */
        uint32_t answer;     /* the number of the answer that is being read */
        uint32_t generation; /* how often entries moved to other slots */
        int16_t api_version; /* of the digests; -1: no digest yet */
} rdmeta_answer_order_t;

/* Makes room for `count` slots in all. Returns RDMETA_ERR_NO_MEMORY without
 * memory, or if `count` does not fit a slot's number. */
rdmeta_err_t rdmeta_answer_order_reserve(rdmeta_answer_order_t *o,
                                         const rdmeta_allocator_t *allocator,
                                         size_t count);
void rdmeta_answer_order_destroy(rdmeta_answer_order_t *o,
                                 const rdmeta_allocator_t *allocator);
/* Returns a slot for one more entry, a hole if there is one. NULL: no memory.
 */
rdmeta_answer_order_slot_t *rdmeta_answer_order_take(
        rdmeta_answer_order_t *o, const rdmeta_allocator_t *allocator);
/* Makes a hole of a slot whose entry is gone. */
void rdmeta_answer_order_give(rdmeta_answer_order_t *o, uint32_t slot);
/* Forgets all digests if they are of another API version. */
void rdmeta_answer_order_forget(rdmeta_answer_order_t *o, int16_t api_version);
