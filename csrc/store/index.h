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

#include "base/alloc.h"
#include "base/hash.h"
#include "base/tailq.h"
#include "topic/topic.h"

typedef _Atomic uint64_t rdmeta_slot_t;

typedef struct rdmeta_table {
        rdmeta_large_t large;
        uint32_t mask;
        uint32_t used;   /* slots not free, graves included */
        uint32_t tombstones; /* writer's */
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
typedef struct rdmeta_tombstone {
        _Alignas(RDMETA_LINE) char before[RDMETA_LINE - RDMETA_TOPIC_HEADER_SIZE];
        rdmeta_cold_t cold;
        rdmeta_topic_t topic;
} rdmeta_tombstone_t;

extern const rdmeta_tombstone_t rdmeta_tombstone;

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
void rdmeta_table_pins_copy(rdmeta_table_t *t, uint32_t k);

/*
 * index_pin: a table as it was, while its writer goes on.
 *
 * What an image reads of a table is the table itself, but for what has changed
 * since. For that a *pin* has an entry for each *page* of 64 slots:
 *
 *     table    slots  [ page 0 ][ page 1 ][ page 2 ] ...     as they are now
 *     pins     older  [  NULL  ][ copy a ][ copy b ]         as they were
 *              newer  [  NULL  ][  NULL  ][ copy b ]
 *                         |                    |
 *                 nothing in it has       1 copy for both, since nothing had
 *                 changed since           changed between the two
 *
 * Before the writer first stores to a page after the youngest pin was made -
 * to a slot, or the deadline of a block that one of its slots leads to, or who
 * said it - it copies the page, with what such blocks say, and gives the copy
 * to every pin whose entry is still NULL. Those are the youngest ones: who has
 * an entry is older than who has none. So making a pin costs a word a page,
 * and holding one costs the pages that have changed.
 *
 * Memory order. The writer stores the copy's address (release), then the slot,
 * deadline or who said it (release). A reader loads the slot (acquire), then
 * the entry (acquire): if it saw what was stored later, it sees the entry, and
 * takes what the copy says. A copy never changes.
 *
 * Copies come from a pool, for the writer needs them where it can no longer
 * fail: who holds the lock makes room in it before.
 *
 * Threads: the writer's lock is held for all but rdmeta_table_pin_slot(),
 * rdmeta_table_pin_deadline() and rdmeta_table_pin_provenance().
 */

#define RDMETA_SLOTS_PER_PAGE 64

typedef struct rdmeta_slot_page {
        struct rdmeta_slot_page *next; /* in the pool */
        size_t pins;              /* that have it */
        uint64_t slots[RDMETA_SLOTS_PER_PAGE];
        /* Of the blocks; an ids table's pages end before them. */
        int64_t deadlines[RDMETA_SLOTS_PER_PAGE];
        rdmeta_provenance_t provenance[RDMETA_SLOTS_PER_PAGE];
} rdmeta_slot_page_t;

typedef struct rdmeta_slot_page_pool {
        const rdmeta_allocator_t *allocator;
        int timed;   /* its pages have deadlines, and who said it */
        size_t size; /* of one */
        rdmeta_slot_page_t *free;
        size_t n_free;
        size_t n; /* those that pins have, too */
} rdmeta_slot_page_pool_t;

typedef struct rdmeta_table_pin {
        rdmeta_tailq_node_t node; /* of table->pins, the oldest first */
        rdmeta_table_t *table;
        rdmeta_slot_page_pool_t *pool;
        size_t count; /* of pages */
        size_t left;  /* of which are NULL */
        _Atomic(rdmeta_slot_page_t *) pages[];
} rdmeta_table_pin_t;

void rdmeta_slot_page_pool_init(rdmeta_slot_page_pool_t *pool,
                       const rdmeta_allocator_t *allocator, int timed);
/* Have `n` free ones; NO_MEMORY. */
rdmeta_err_t rdmeta_slot_page_pool_reserve(rdmeta_slot_page_pool_t *pool, size_t n);
/* Have no more than `n`. */
void rdmeta_slot_page_pool_trim(rdmeta_slot_page_pool_t *pool, size_t n);

/* The table as it is now. NULL: no memory. */
rdmeta_table_pin_t *rdmeta_table_pin_new(rdmeta_slot_page_pool_t *pool, rdmeta_table_t *table);
/* The same, of a table that nobody changes any more: it is in no list. */
rdmeta_table_pin_t *rdmeta_table_pin_alone(rdmeta_slot_page_pool_t *pool, rdmeta_table_t *table);
/* Its pages go back to the pool; the table is the caller's to retire. */
void rdmeta_table_pin_destroy(rdmeta_table_pin_t *pin);
/* Its memory alone: nothing is given back, no list is touched. */
void rdmeta_table_pin_free(rdmeta_table_pin_t *pin);
size_t rdmeta_table_pin_size(const rdmeta_table_pin_t *pin);

/* How many pages the table's changes to come may take at most. */
RDMETA_INLINE size_t rdmeta_table_pins_left(const rdmeta_table_t *t) {
        return t->pins.last
                       ? RDMETA_CONTAINER(t->pins.last, rdmeta_table_pin_t, node)
                                 ->left
                       : 0;
}

/* What a slot leads to will get another deadline, or be said by another:
 * `topic` is still where that table has it, or nothing happens. */
void rdmeta_table_pins_topic(rdmeta_table_t *t, const rdmeta_topic_t *topic);

/* What slot `k` is read of instead; NULL: nothing in its page has changed. To
 * be loaded after what may have changed. */
RDMETA_INLINE const rdmeta_slot_page_t *rdmeta_table_pin_page(const rdmeta_table_pin_t *pin,
                                                   uint32_t k) {
        return atomic_load_explicit(&pin->pages[k / RDMETA_SLOTS_PER_PAGE],
                                    memory_order_acquire);
}

/* Slot `k` as it was. Any thread. */
RDMETA_INLINE uint64_t rdmeta_table_pin_slot(const rdmeta_table_pin_t *pin, uint32_t k) {
        const uint64_t now = atomic_load_explicit(&pin->table->slots[k],
                                                  memory_order_acquire);
        const rdmeta_slot_page_t *page = rdmeta_table_pin_page(pin, k);

        return RDMETA_LIKELY(!page) ? now
                                    : page->slots[k % RDMETA_SLOTS_PER_PAGE];
}

/* Deadline, and who said it, as they were, of the block that slot `k` led to.
 * Any thread. */
RDMETA_INLINE int64_t rdmeta_table_pin_deadline(const rdmeta_table_pin_t *pin, uint32_t k,
                                          const rdmeta_topic_t *topic) {
        const int64_t now = atomic_load_explicit(&topic->deadline,
                                                 memory_order_acquire);
        const rdmeta_slot_page_t *page = rdmeta_table_pin_page(pin, k);

        return RDMETA_LIKELY(!page) ? now
                                    : page->deadlines[k % RDMETA_SLOTS_PER_PAGE];
}

RDMETA_INLINE rdmeta_provenance_t rdmeta_table_pin_provenance(const rdmeta_table_pin_t *pin,
                                            uint32_t k,
                                            const rdmeta_topic_t *topic) {
        const rdmeta_provenance_t now   = rdmeta_topic_provenance(topic);
        const rdmeta_slot_page_t *page = rdmeta_table_pin_page(pin, k);

        return RDMETA_LIKELY(!page) ? now
                                    : page->provenance[k % RDMETA_SLOTS_PER_PAGE];
}

#endif /* RDMETA_STORE_INDEX_H */
