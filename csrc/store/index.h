/*
 * index: from a name or an id to its block.
 *
 * Open addressing with linear probes; a slot is one word, so that it changes
 * in one store and a reader needs no lock:
 *
 *     slot   63 ...................... 16 15 ....... 0
 *            address of the block         tag of hash     0: free
 *                                                         grave: was used
 *
 * A probe follows the address only where the 16-bit tag agrees. What has been
 * removed leaves a *grave*, the address of a block that no name matches, so
 * that a reader needs no test for it. A table is never changed in size: a new
 * one is filled aside and takes the place of the old one, which is retired.
 *
 * Names: at most half full (0.76 costs 8 ns a lookup at 100 000 topics), and
 * where the whole table stays in a CPU's cache at most a quarter: each second
 * step of a probe is a wrong guess of the CPU's, and with it all that it had
 * begun of the lookups behind is lost, a third of the time of a lookup among
 * 1 000 topics. Ids: at most 7/8. Each table has its own secret key; the writer
 * measures probes as it inserts and makes a table with another key when one
 * grows longer than chance explains, so that names chosen to collide do not
 * stay a way to slow it down.
 *
 * Memory order: a slot is stored with release after its block is written, and
 * loaded with acquire by readers. The table's pointer is handled alike.
 */
#ifndef RDMETA_STORE_INDEX_H
#define RDMETA_STORE_INDEX_H

#include "base/hash.h"
#include "base/tailq.h"
#include "topic/topic.h"

typedef _Atomic uint64_t rdmeta_slot_t;

typedef struct rdmeta_table {
        rdmeta_large_t large;
        uint32_t mask;
        uint32_t used;   /* slots not free, graves included */
        uint32_t graves; /* writer's */
        uint32_t longest;
        uint64_t key[RDMETA_HASH_KEYS];
        uint64_t span; /* 8 * mask: of a slot's place in bytes */
        rdmeta_tailq_t pins; /* of images: see index.h */
        char line[RDMETA_LINE - 8 - sizeof(rdmeta_tailq_t)]; /* to its end */
        rdmeta_slot_t slots[];
} rdmeta_table_t;

#define RDMETA_SLOT_TAG 16
#define RDMETA_SLOTS_SMALL 16384 /* 128 KiB */
/* Longer probes do not happen by chance: at half full one of 256 in fewer than
 * one of 10^12 tables of a million names; ids are denser, and brokers draw
 * them. */
#define RDMETA_PROBE_MAX_NAMES 256
#define RDMETA_PROBE_MAX_IDS 16384

RDMETA_INLINE rdmeta_topic_t *rdmeta_slot_topic(uint64_t slot) {
        return (rdmeta_topic_t *)(uintptr_t)(slot >> RDMETA_SLOT_TAG);
}

RDMETA_INLINE uint64_t rdmeta_slot_make(uint64_t hash,
                                        const rdmeta_topic_t *t) {
        return (uint64_t)(uintptr_t)t << RDMETA_SLOT_TAG | (uint16_t)hash;
}

RDMETA_INLINE int rdmeta_slot_tag_is(uint64_t slot, uint64_t hash) {
        return (uint16_t)(slot ^ hash) == 0;
}

/* Where a probe begins: bits that the tag is not made of. */
RDMETA_INLINE uint32_t rdmeta_slot_first(uint64_t hash) {
        return (uint32_t)(hash >> RDMETA_SLOT_TAG);
}

/* The first slot on the way of a probe that has the tag of `hash`, in as few
 * instructions as can be; 0: none has. */
RDMETA_INLINE uint64_t rdmeta_table_first(const rdmeta_table_t *t,
                                          uint64_t hash) {
        const char *slots = (const char *)t->slots;
        uint64_t at       = hash >> (RDMETA_SLOT_TAG - 3) & t->span;

        for (;; at = (at + 8) & t->span) {
                const uint64_t slot = atomic_load_explicit(
                        (const rdmeta_slot_t *)(const void *)(slots + at),
                        memory_order_acquire);
                if (RDMETA_LIKELY(rdmeta_slot_tag_is(slot, hash)) || !slot)
                        return slot;
        }
}

/* The block that stands for what was removed. Nothing ever matches it. */
typedef struct rdmeta_grave {
        _Alignas(RDMETA_LINE) char before[RDMETA_LINE - RDMETA_TOPIC_LEAD];
        rdmeta_cold_t cold;
        rdmeta_topic_t topic;
} rdmeta_grave_t;

extern const rdmeta_grave_t rdmeta_grave;

/* A free table for `n` names (or ids: denser), with a key drawn from `seed`.
 * NULL: no memory. */
rdmeta_table_t *rdmeta_table_new(const rdmeta_allocator_t *allocator,
                                 size_t n, int ids, uint64_t *seed);
void rdmeta_table_destroy(const rdmeta_allocator_t *allocator,
                          rdmeta_table_t *t);
/* How many of so many slots may be used. */
size_t rdmeta_table_limit(size_t slots, int ids);
/* How many more can be put in. */
size_t rdmeta_table_room(const rdmeta_table_t *t, int ids);

/* By exact name, in whatever state; NULL: none. Any thread. */
RDMETA_INLINE rdmeta_topic_t *rdmeta_table_name(const rdmeta_table_t *t,
                                                uint64_t hash,
                                                const char *name, size_t n) {
        uint32_t k = rdmeta_slot_first(hash) & t->mask;

        for (;; k = (k + 1) & t->mask) {
                const uint64_t slot = atomic_load_explicit(
                        &t->slots[k], memory_order_acquire);
                if (rdmeta_slot_tag_is(slot, hash) && slot) {
                        rdmeta_topic_t *topic = rdmeta_slot_topic(slot);
                        if (topic->name_len == n &&
                            rdmeta_name_equal(topic->name, name, n))
                                return topic;
                } else if (!slot) {
                        return NULL;
                }
        }
}

/* The same, for who has not hashed it. */
RDMETA_INLINE rdmeta_topic_t *rdmeta_table_find(const rdmeta_table_t *t,
                                                const char *name, size_t n) {
        return rdmeta_table_name(t, rdmeta_hash(t->key, name, n), name, n);
}

rdmeta_topic_t *rdmeta_table_id(const rdmeta_table_t *t, const uint8_t id[16]);

RDMETA_INLINE void rdmeta_table_prefetch(const rdmeta_table_t *t,
                                         uint64_t hash) {
        __builtin_prefetch(
                (const void *)&t->slots[rdmeta_slot_first(hash) & t->mask]);
}

/* The writer's. put: not there yet, and room was made. swap: `old` becomes
 * `topic`; drop: it becomes a grave; nothing happens if it is not there. */
void rdmeta_table_put(rdmeta_table_t *t, uint64_t hash, rdmeta_topic_t *topic);
void rdmeta_table_swap(rdmeta_table_t *t, uint64_t hash,
                       const rdmeta_topic_t *old, rdmeta_topic_t *topic);
void rdmeta_table_drop(rdmeta_table_t *t, uint64_t hash,
                       const rdmeta_topic_t *old);

/* The slot that leads to `topic`; NULL: none does. */
rdmeta_slot_t *rdmeta_table_slot(rdmeta_table_t *t, uint64_t hash,
                                 const rdmeta_topic_t *topic);

/* Before slot `k`, or what it leads to, is stored to: for pins, of which there
 * is one. Cannot fail: a page was reserved. */
void rdmeta_pins_copy(rdmeta_table_t *t, uint32_t k);

#endif /* RDMETA_STORE_INDEX_H */
