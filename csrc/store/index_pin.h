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
 * Threads: the writer's lock is held for all but rdmeta_pin_slot(),
 * rdmeta_pin_deadline() and rdmeta_pin_said().
 */
#ifndef RDMETA_STORE_INDEX_PIN_H
#define RDMETA_STORE_INDEX_PIN_H

#include "base/alloc.h"
#include "store/index.h"

#define RDMETA_PAGE_SLOTS 64

typedef struct rdmeta_page {
        struct rdmeta_page *next; /* in the pool */
        size_t pins;              /* that have it */
        uint64_t slots[RDMETA_PAGE_SLOTS];
        /* Of the blocks; an ids table's pages end before them. */
        int64_t deadlines[RDMETA_PAGE_SLOTS];
        rdmeta_said_t said[RDMETA_PAGE_SLOTS];
} rdmeta_page_t;

typedef struct rdmeta_pages {
        const rdmeta_allocator_t *allocator;
        int timed;   /* its pages have deadlines, and who said it */
        size_t size; /* of one */
        rdmeta_page_t *free;
        size_t n_free;
        size_t n; /* those that pins have, too */
} rdmeta_pages_t;

typedef struct rdmeta_pin {
        rdmeta_tailq_node_t node; /* of table->pins, the oldest first */
        rdmeta_table_t *table;
        rdmeta_pages_t *pool;
        size_t count; /* of pages */
        size_t left;  /* of which are NULL */
        _Atomic(rdmeta_page_t *) pages[];
} rdmeta_pin_t;

void rdmeta_pages_init(rdmeta_pages_t *pool,
                       const rdmeta_allocator_t *allocator, int timed);
/* Have `n` free ones; NO_MEMORY. */
rdmeta_err_t rdmeta_pages_reserve(rdmeta_pages_t *pool, size_t n);
/* Have no more than `n`. */
void rdmeta_pages_trim(rdmeta_pages_t *pool, size_t n);

/* The table as it is now. NULL: no memory. */
rdmeta_pin_t *rdmeta_pin_new(rdmeta_pages_t *pool, rdmeta_table_t *table);
/* The same, of a table that nobody changes any more: it is in no list. */
rdmeta_pin_t *rdmeta_pin_alone(rdmeta_pages_t *pool, rdmeta_table_t *table);
/* Its pages go back to the pool; the table is the caller's to retire. */
void rdmeta_pin_destroy(rdmeta_pin_t *pin);
/* Its memory alone: nothing is given back, no list is touched. */
void rdmeta_pin_free(rdmeta_pin_t *pin);
size_t rdmeta_pin_size(const rdmeta_pin_t *pin);

/* How many pages the table's changes to come may take at most. */
RDMETA_INLINE size_t rdmeta_pins_left(const rdmeta_table_t *t) {
        return t->pins.last
                       ? RDMETA_CONTAINER(t->pins.last, rdmeta_pin_t, node)
                                 ->left
                       : 0;
}

/* What a slot leads to will get another deadline, or be said by another:
 * `topic` is still where that table has it, or nothing happens. */
void rdmeta_pins_topic(rdmeta_table_t *t, const rdmeta_topic_t *topic);

/* What slot `k` is read of instead; NULL: nothing in its page has changed. To
 * be loaded after what may have changed. */
RDMETA_INLINE const rdmeta_page_t *rdmeta_pin_page(const rdmeta_pin_t *pin,
                                                   uint32_t k) {
        return atomic_load_explicit(&pin->pages[k / RDMETA_PAGE_SLOTS],
                                    memory_order_acquire);
}

/* Slot `k` as it was. Any thread. */
RDMETA_INLINE uint64_t rdmeta_pin_slot(const rdmeta_pin_t *pin, uint32_t k) {
        const uint64_t now = atomic_load_explicit(&pin->table->slots[k],
                                                  memory_order_acquire);
        const rdmeta_page_t *page = rdmeta_pin_page(pin, k);

        return RDMETA_LIKELY(!page) ? now
                                    : page->slots[k % RDMETA_PAGE_SLOTS];
}

/* Deadline, and who said it, as they were, of the block that slot `k` led to.
 * Any thread. */
RDMETA_INLINE int64_t rdmeta_pin_deadline(const rdmeta_pin_t *pin, uint32_t k,
                                          const rdmeta_topic_t *topic) {
        const int64_t now = atomic_load_explicit(&topic->deadline,
                                                 memory_order_acquire);
        const rdmeta_page_t *page = rdmeta_pin_page(pin, k);

        return RDMETA_LIKELY(!page) ? now
                                    : page->deadlines[k % RDMETA_PAGE_SLOTS];
}

RDMETA_INLINE rdmeta_said_t rdmeta_pin_said(const rdmeta_pin_t *pin,
                                            uint32_t k,
                                            const rdmeta_topic_t *topic) {
        const rdmeta_said_t now   = rdmeta_topic_said(topic);
        const rdmeta_page_t *page = rdmeta_pin_page(pin, k);

        return RDMETA_LIKELY(!page) ? now
                                    : page->said[k % RDMETA_PAGE_SLOTS];
}

#endif /* RDMETA_STORE_INDEX_PIN_H */
