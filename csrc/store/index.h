/*
 * index: finds a topic's block by name or id.
 *
 * Open addressing with linear probes. A slot is one word, so that one store
 * changes it and a reader needs no lock:
 *
 *     slot   63 ...................... 16 15 ....... 0
 *            address of the block         tag of hash     0: free
 *                                                         tombstone: was used
 *
 * A probe follows the address only where the 16-bit tag agrees. A removed topic
 * leaves a *tombstone* in its slot: the address of a block that no name
 * matches. So a reader needs no test for it. A table never changes its size.
 * The writer fills a new one aside and puts it in the place of the old one,
 * which it retires.
 *
 * A table of names is at most half full: 0.76 would cost 8 ns per lookup at
 * 100 000 topics. If the whole table stays in a CPU's cache, it is at most a
 * quarter full. Each second step of a probe there is a wrong guess of the CPU.
 * The CPU then loses all that it had begun of the following lookups. Among
 * 1 000 topics that is a third of a lookup's time. A table of ids is at most
 * 7/8 full.
 *
 * Each table has its own secret key. The writer measures probes as it inserts.
 * When one grows longer than chance explains, the writer makes a table with
 * another key. So names that are chosen to collide slow it down only for a
 * while.
 *
 * Memory order. The writer stores a slot with release after it has written the
 * block, and readers load the slot with acquire. The same is true of the
 * pointer to the table.
 */
#pragma once

#include "base/alloc.h"
#include "base/hash.h"
#include "base/tailq.h"
#include "topic/topic.h"

typedef _Atomic uint64_t rdmeta_slot_t;

typedef struct rdmeta_table {
        rdmeta_large_t large;
        uint32_t mask;
        uint32_t used;       /* slots that are not free, with tombstones */
        uint32_t tombstones; /* only the writer uses it */
        uint32_t longest;    /* the longest probe of an insertion */
        uint64_t key[RDMETA_HASH_KEYS];
        uint64_t span; /* 8 * mask: masks a slot's offset in bytes */
        rdmeta_tailq_t pins; /* table pins of images, see below */
        char line[RDMETA_LINE - 8 - sizeof(rdmeta_tailq_t)]; /* padding */
        rdmeta_slot_t slots[];
} rdmeta_table_t;

#define RDMETA_SLOT_TAG 16
#define RDMETA_SLOTS_SMALL 16384 /* 128 KiB */
/* Longer probes do not happen by chance. At half full, fewer than one of 10^12
 * tables of a million names has a probe of 256. Tables of ids are denser, and
 * brokers draw ids at random. */
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

/* Returns where a probe begins, from bits that are not in the tag. */
RDMETA_INLINE uint32_t rdmeta_slot_first(uint64_t hash) {
        return (uint32_t)(hash >> RDMETA_SLOT_TAG);
}

/* Returns the first slot of a probe that has the tag of `hash`, in as few
 * instructions as possible. 0: none has it. */
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

/* The block that stands for a removed topic. No name or id matches it. */
typedef struct rdmeta_tombstone {
        _Alignas(RDMETA_LINE) char before[RDMETA_LINE -
                                          RDMETA_TOPIC_HEADER_SIZE];
        rdmeta_cold_t cold;
        rdmeta_topic_t topic;
} rdmeta_tombstone_t;

extern const rdmeta_tombstone_t rdmeta_tombstone;

/* Returns an empty table for `n` names or, more densely, `n` ids. Draws its key
 * from `seed`. For rdmeta_table_destroy(). NULL: no memory. */
rdmeta_table_t *rdmeta_table_new(const rdmeta_allocator_t *allocator,
                                 size_t n, int ids, uint64_t *seed);
void rdmeta_table_destroy(const rdmeta_allocator_t *allocator,
                          rdmeta_table_t *t);
/* Returns how many of `slots` slots may be used. */
size_t rdmeta_table_limit(size_t slots, int ids);
/* Returns how many more topics can be put in. */
size_t rdmeta_table_room(const rdmeta_table_t *t, int ids);

/* Returns the block of exactly that name, in whatever state. NULL: there is
 * none. Any thread. */
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

/* Returns the same as rdmeta_table_name(), and hashes the name itself. */
RDMETA_INLINE rdmeta_topic_t *rdmeta_table_find(const rdmeta_table_t *t,
                                                const char *name, size_t n) {
        return rdmeta_table_name(t, rdmeta_hash(t->key, name, n), name, n);
}

/* Returns the block of that id. NULL: there is none. Any thread. */
rdmeta_topic_t *rdmeta_table_id(const rdmeta_table_t *t, const uint8_t id[16]);

/* Prefetches the slot where a probe for `hash` begins. */
RDMETA_INLINE void rdmeta_table_prefetch(const rdmeta_table_t *t,
                                         uint64_t hash) {
        __builtin_prefetch(
                (const void *)&t->slots[rdmeta_slot_first(hash) & t->mask]);
}

/* Only the writer may call the functions from here on. */

/* Puts in `topic`, which is not in the table; the table has room. */
void rdmeta_table_put(rdmeta_table_t *t, uint64_t hash, rdmeta_topic_t *topic);
/* Replaces `old` by `topic`, if `old` is in the table. */
void rdmeta_table_swap(rdmeta_table_t *t, uint64_t hash,
                       const rdmeta_topic_t *old, rdmeta_topic_t *topic);
/* Replaces `old` by a tombstone, if `old` is in the table. */
void rdmeta_table_drop(rdmeta_table_t *t, uint64_t hash,
                       const rdmeta_topic_t *old);

/* Returns the slot that leads to `topic`. NULL: none does. */
rdmeta_slot_t *rdmeta_table_slot(rdmeta_table_t *t, uint64_t hash,
                                 const rdmeta_topic_t *topic);

/* Copies the page of slot `k` for the pins that have no copy of it. The writer
 * calls it before it stores to the slot, or to the block that the slot leads
 * to. The table has a pin. Cannot fail: the caller reserved a page. */
void rdmeta_table_pins_copy(rdmeta_table_t *t, uint32_t k);

/*
 * Table pins: a table as it was, while its writer changes it.
 *
 * An image reads the table itself, except for slots that have changed since the
 * image was taken. For those, a *table pin* has an entry for each *slot page*
 * of 64 slots:
 *
 *     table    slots  [ page 0 ][ page 1 ][ page 2 ] ...     as they are now
 *     pins     older  [  NULL  ][ copy a ][ copy b ]         as they were
 *              newer  [  NULL  ][  NULL  ][ copy b ]
 *                         |                    |
 *                 nothing in it has       1 copy for both, since nothing had
 *                 changed since           changed between the two
 *
 * The writer copies a page before its first store to it after the youngest pin
 * was made. Such a store is to a slot, or to the deadline or provenance of a
 * block that a slot of the page leads to. The copy has the slots, and the
 * deadlines and provenances of their blocks. Every pin whose entry is still
 * NULL gets the copy. Those are the youngest pins: a pin with an entry is older
 * than a pin without. So a new pin costs one word per page, and an old one
 * costs the pages that have changed.
 *
 * Memory order. The writer stores the copy's address (release), then the slot,
 * deadline or provenance (release). A reader loads the slot (acquire), then the
 * entry (acquire). If it saw the later store, it sees the entry, and reads the
 * copy. A copy never changes.
 *
 * Copies come from a pool, because the writer needs them where it can no longer
 * fail. The writer reserves pages before, under its lock.
 *
 * Threads: all calls need the writer's lock, except rdmeta_table_pin_slot(),
 * rdmeta_table_pin_deadline() and rdmeta_table_pin_provenance().
 */

#define RDMETA_SLOTS_PER_PAGE 64

typedef struct rdmeta_slot_page {
        struct rdmeta_slot_page *next; /* in the pool */
        size_t pins;                   /* how many have it */
        uint64_t slots[RDMETA_SLOTS_PER_PAGE];
        /* The blocks' own. The pages of an ids table end before them. */
        int64_t deadlines[RDMETA_SLOTS_PER_PAGE];
        rdmeta_provenance_t provenance[RDMETA_SLOTS_PER_PAGE];
} rdmeta_slot_page_t;

typedef struct rdmeta_slot_page_pool {
        const rdmeta_allocator_t *allocator;
        int timed;   /* 1: its pages have deadlines and provenances */
        size_t size; /* of one page */
        rdmeta_slot_page_t *free;
        size_t n_free;
        size_t n; /* free pages and pages that pins have */
} rdmeta_slot_page_pool_t;

typedef struct rdmeta_table_pin {
        rdmeta_tailq_node_t node; /* of table->pins, the oldest first */
        rdmeta_table_t *table;
        rdmeta_slot_page_pool_t *pool;
        size_t count;    /* the number of pages */
        size_t uncopied; /* how many of them are NULL */
        _Atomic(rdmeta_slot_page_t *) pages[];
} rdmeta_table_pin_t;

/* Initialises an empty pool. With `timed` its pages have deadlines and
 * provenances. Borrows the allocator for the pool's life. */
void rdmeta_slot_page_pool_init(rdmeta_slot_page_pool_t *pool,
                                const rdmeta_allocator_t *allocator,
                                int timed);
/* Makes sure that `n` pages are free. RDMETA_ERR_NO_MEMORY: they are not. */
rdmeta_err_t rdmeta_slot_page_pool_reserve(rdmeta_slot_page_pool_t *pool,
                                           size_t n);
/* Frees all but `n` of the free pages. */
void rdmeta_slot_page_pool_trim(rdmeta_slot_page_pool_t *pool, size_t n);

/* Returns a pin of the table as it is now, for rdmeta_table_pin_destroy().
 * NULL: no memory. */
rdmeta_table_pin_t *rdmeta_table_pin_new(rdmeta_slot_page_pool_t *pool,
                                         rdmeta_table_t *table);
/* Frees the pin and gives its pages back to the pool. The caller retires the
 * table. */
void rdmeta_table_pin_destroy(rdmeta_table_pin_t *pin);
/* Returns the pin's size in bytes. */
size_t rdmeta_table_pin_size(const rdmeta_table_pin_t *pin);

/* Returns how many pages the table's further changes may take at most. */
RDMETA_INLINE size_t rdmeta_table_pins_uncopied(const rdmeta_table_t *t) {
        return t->pins.last ? RDMETA_CONTAINER(t->pins.last,
                                               rdmeta_table_pin_t, node)
                                      ->uncopied
                            : 0;
}

/* Copies the page of the slot that leads to `topic`, like
 * rdmeta_table_pins_copy(). The writer calls it before it changes the topic's
 * deadline or provenance. Does nothing if no slot leads to `topic`. */
void rdmeta_table_pins_topic(rdmeta_table_t *t, const rdmeta_topic_t *topic);

/* Returns the copy to read slot `k` from. NULL: nothing in its page has
 * changed. The caller first loads the word that may have changed. */
RDMETA_INLINE const rdmeta_slot_page_t *rdmeta_table_pin_page(
        const rdmeta_table_pin_t *pin, uint32_t k) {
        return atomic_load_explicit(&pin->pages[k / RDMETA_SLOTS_PER_PAGE],
                                    memory_order_acquire);
}

/* Returns slot `k` as it was. Any thread. */
RDMETA_INLINE uint64_t rdmeta_table_pin_slot(const rdmeta_table_pin_t *pin,
                                             uint32_t k) {
        const uint64_t now = atomic_load_explicit(&pin->table->slots[k],
                                                  memory_order_acquire);
        const rdmeta_slot_page_t *page = rdmeta_table_pin_page(pin, k);

        return RDMETA_LIKELY(!page) ? now
                                    : page->slots[k % RDMETA_SLOTS_PER_PAGE];
}

/* Returns the deadline, as it was, of `topic`, to which slot `k` led. Any
 * thread. */
RDMETA_INLINE int64_t rdmeta_table_pin_deadline(const rdmeta_table_pin_t *pin,
                                                uint32_t k,
                                                const rdmeta_topic_t *topic) {
        const int64_t now = atomic_load_explicit(&topic->deadline,
                                                 memory_order_acquire);
        const rdmeta_slot_page_t *page = rdmeta_table_pin_page(pin, k);

        return RDMETA_LIKELY(!page)
                       ? now
                       : page->deadlines[k % RDMETA_SLOTS_PER_PAGE];
}

/* Returns the provenance, as it was, of `topic`, to which slot `k` led. Any
 * thread. */
RDMETA_INLINE rdmeta_provenance_t rdmeta_table_pin_provenance(
        const rdmeta_table_pin_t *pin, uint32_t k,
        const rdmeta_topic_t *topic) {
        const rdmeta_provenance_t now  = rdmeta_topic_provenance(topic);
        const rdmeta_slot_page_t *page = rdmeta_table_pin_page(pin, k);

        return RDMETA_LIKELY(!page)
                       ? now
                       : page->provenance[k % RDMETA_SLOTS_PER_PAGE];
}
