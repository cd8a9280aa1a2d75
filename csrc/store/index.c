#include "store/index.h"

#include "base/alloc.h"

/* A length that no topic name has, in a state that no topic is in. */
const rdmeta_tombstone_t rdmeta_tombstone = {
        .topic = {.name_len = UINT16_MAX, .state = UINT8_MAX}};

size_t rdmeta_table_limit(size_t slots, int ids) {
        if (ids)
                return slots / 8 * 7;
        return slots > RDMETA_SLOTS_SMALL ? slots / 2 : slots / 4;
}

rdmeta_table_t *rdmeta_table_new(const rdmeta_allocator_t *allocator,
                                 size_t n, int ids, uint64_t *seed) {
        size_t slots = 16, size;
        rdmeta_table_t *t;
        int i;

        while (rdmeta_table_limit(slots, ids) < n) {
                if (slots > UINT32_MAX / 2)
                        return NULL;
                slots *= 2;
        }
        size = sizeof(*t) + slots * sizeof(t->slots[0]);
        t    = (rdmeta_table_t *)rdmeta_alloc_large(allocator, size);
        if (!t)
                return NULL;
        memset(t, 0, size);
        t->large.size = size;
        t->mask = (uint32_t)(slots - 1);
        t->span = (uint64_t)t->mask << 3;
        for (i = 0; i < RDMETA_HASH_KEYS; i++)
                t->key[i] = rdmeta_seed_next(seed);
        return t;
}

void rdmeta_table_destroy(const rdmeta_allocator_t *allocator,
                          rdmeta_table_t *t) {
        if (t)
                rdmeta_free(allocator, t, t->large.size);
}

size_t rdmeta_table_room(const rdmeta_table_t *t, int ids) {
        const size_t limit = rdmeta_table_limit((size_t)t->mask + 1, ids);

        return limit > t->used ? limit - t->used : 0;
}

rdmeta_topic_t *rdmeta_table_id(const rdmeta_table_t *t,
                                const uint8_t id[16]) {
        const uint64_t hash = rdmeta_hash_id(t->key, id);
        uint32_t k          = rdmeta_slot_first(hash) & t->mask;

        for (;; k = (k + 1) & t->mask) {
                const uint64_t slot = atomic_load_explicit(
                        &t->slots[k], memory_order_acquire);
                if (!slot)
                        return NULL;
                if (rdmeta_slot_tag_is(slot, hash) &&
                    rdmeta_slot_topic(slot) != &rdmeta_tombstone.topic &&
                    !memcmp(rdmeta_cold(rdmeta_slot_topic(slot))->id, id, 16))
                        return rdmeta_slot_topic(slot);
        }
}

/* Changes a slot. Every change of a slot goes through here. */
static void slot_store(rdmeta_table_t *t, rdmeta_slot_t *slot,
                       uint64_t value) {
        if (RDMETA_UNLIKELY(t->pins.count))
                rdmeta_table_pins_copy(t, (uint32_t)(slot - t->slots));
        atomic_store_explicit(slot, value, memory_order_release);
}

void rdmeta_table_put(rdmeta_table_t *t, uint64_t hash,
                      rdmeta_topic_t *topic) {
        uint32_t k = rdmeta_slot_first(hash) & t->mask, probes = 0;

        while (atomic_load_explicit(&t->slots[k], memory_order_relaxed)) {
                k = (k + 1) & t->mask;
                probes++;
        }
        if (probes > t->longest)
                t->longest = probes;
        t->used++;
        slot_store(t, &t->slots[k], rdmeta_slot_make(hash, topic));
}

rdmeta_slot_t *rdmeta_table_slot(rdmeta_table_t *t, uint64_t hash,
                                 const rdmeta_topic_t *topic) {
        const uint64_t want = rdmeta_slot_make(hash, topic);
        uint32_t k          = rdmeta_slot_first(hash) & t->mask;
        uint64_t slot;

        for (;; k = (k + 1) & t->mask) {
                slot = atomic_load_explicit(&t->slots[k],
                                            memory_order_relaxed);
                if (slot == want)
                        return &t->slots[k];
                if (!slot)
                        return NULL;
        }
}

void rdmeta_table_swap(rdmeta_table_t *t, uint64_t hash,
                       const rdmeta_topic_t *old, rdmeta_topic_t *topic) {
        rdmeta_slot_t *slot = rdmeta_table_slot(t, hash, old);

        if (slot)
                slot_store(t, slot, rdmeta_slot_make(hash, topic));
}

void rdmeta_table_drop(rdmeta_table_t *t, uint64_t hash,
                       const rdmeta_topic_t *old) {
        rdmeta_slot_t *slot = rdmeta_table_slot(t, hash, old);

        if (!slot)
                return;
        t->tombstones++;
        slot_store(t, slot, rdmeta_slot_make(hash, &rdmeta_tombstone.topic));
}

/* ---- table pins: the pool ------------------------------------------------ */

void rdmeta_slot_page_pool_init(rdmeta_slot_page_pool_t *pool,
                                const rdmeta_allocator_t *allocator,
                                int timed) {
        memset(pool, 0, sizeof(*pool));
        pool->allocator = allocator;
        pool->timed     = timed;
        pool->size      = timed ? sizeof(rdmeta_slot_page_t)
                                : offsetof(rdmeta_slot_page_t, deadlines);
}

static void page_give(rdmeta_slot_page_pool_t *pool,
                      rdmeta_slot_page_t *page) {
        page->next = pool->free;
        pool->free = page;
        pool->n_free++;
}

static rdmeta_slot_page_t *page_take(rdmeta_slot_page_pool_t *pool) {
        rdmeta_slot_page_t *page = pool->free;

        pool->free = page->next;
        pool->n_free--;
        page->pins = 0;
        return page;
}

rdmeta_err_t rdmeta_slot_page_pool_reserve(rdmeta_slot_page_pool_t *pool,
                                           size_t n) {
        rdmeta_slot_page_t *page;

        while (pool->n_free < n) {
                page = (rdmeta_slot_page_t *)rdmeta_alloc(pool->allocator,
                                                          pool->size);
                if (!page)
                        return RDMETA_ERR_NO_MEMORY;
                pool->n++;
                page_give(pool, page);
        }
        return RDMETA_OK;
}

void rdmeta_slot_page_pool_trim(rdmeta_slot_page_pool_t *pool, size_t n) {
        while (pool->n_free > n) {
                rdmeta_free(pool->allocator, page_take(pool), pool->size);
                pool->n--;
        }
}

/* ---- table pins: the pins ------------------------------------------------ */

size_t rdmeta_table_pin_size(const rdmeta_table_pin_t *pin) {
        return sizeof(*pin) + pin->count * sizeof(pin->pages[0]);
}

rdmeta_table_pin_t *rdmeta_table_pin_new(rdmeta_slot_page_pool_t *pool,
                                         rdmeta_table_t *table) {
        const size_t n    = (size_t)table->mask / RDMETA_SLOTS_PER_PAGE + 1;
        const size_t size = sizeof(rdmeta_table_pin_t) + n * sizeof(void *);
        rdmeta_table_pin_t *pin = (rdmeta_table_pin_t *)rdmeta_alloc(
                pool->allocator, size);

        if (!pin)
                return NULL;
        memset(pin, 0, size);
        pin->table = table;
        pin->pool  = pool;
        pin->count = pin->uncopied = n;
        rdmeta_tailq_push_back(&table->pins, &pin->node);
        return pin;
}

void rdmeta_table_pin_destroy(rdmeta_table_pin_t *pin) {
        size_t p;

        rdmeta_tailq_remove(&pin->table->pins, &pin->node);
        for (p = 0; p < pin->count && pin->uncopied < pin->count; p++) {
                rdmeta_slot_page_t *page = atomic_load_explicit(
                        &pin->pages[p], memory_order_relaxed);
                if (!page)
                        continue;
                pin->uncopied++;
                if (--page->pins == 0)
                        page_give(pin->pool, page);
        }
        rdmeta_free(pin->pool->allocator, pin, rdmeta_table_pin_size(pin));
}

/* Copies the deadlines and provenances of a page's blocks. The blocks lie all
 * over memory, so it prefetches all of them first. */
static void page_times(rdmeta_slot_page_t *page, size_t n) {
        const rdmeta_topic_t *t;
        size_t i;

        for (i = 0; i < n; i++)
                if (page->slots[i])
                        __builtin_prefetch(rdmeta_slot_topic(page->slots[i]));
        for (i = 0; i < n; i++)
                if (page->slots[i])
                        __builtin_prefetch(rdmeta_cold(
                                rdmeta_slot_topic(page->slots[i])));
        for (i = 0; i < n; i++) {
                t = rdmeta_slot_topic(page->slots[i]);
                if (!t)
                        continue;
                page->deadlines[i] = atomic_load_explicit(
                        &t->deadline, memory_order_relaxed);
                page->provenance[i] = rdmeta_topic_provenance(t);
        }
}

static void page_copy(rdmeta_slot_page_t *page, const rdmeta_table_t *t,
                      uint32_t first, int timed) {
        const size_t slots = (size_t)t->mask + 1;
        const size_t n     = slots < RDMETA_SLOTS_PER_PAGE
                                     ? slots
                                     : RDMETA_SLOTS_PER_PAGE;
        size_t i;

        for (i = 0; i < n; i++)
                page->slots[i] = atomic_load_explicit(&t->slots[first + i],
                                                      memory_order_relaxed);
        if (timed)
                page_times(page, n);
}

void rdmeta_table_pins_copy(rdmeta_table_t *t, uint32_t k) {
        const uint32_t p        = k / RDMETA_SLOTS_PER_PAGE;
        rdmeta_tailq_node_t *n  = rdmeta_tailq_last(&t->pins);
        rdmeta_table_pin_t *pin = RDMETA_CONTAINER(n, rdmeta_table_pin_t,
                                                   node);
        rdmeta_slot_page_t *page;

        if (atomic_load_explicit(&pin->pages[p], memory_order_relaxed))
                return; /* the youngest pin has a copy, so all have one */
        page = page_take(pin->pool);
        page_copy(page, t, p * RDMETA_SLOTS_PER_PAGE, pin->pool->timed);
        for (; n; n = rdmeta_tailq_prev(n)) {
                pin = RDMETA_CONTAINER(n, rdmeta_table_pin_t, node);
                if (atomic_load_explicit(&pin->pages[p],
                                         memory_order_relaxed))
                        break;
                page->pins++;
                pin->uncopied--;
                atomic_store_explicit(&pin->pages[p], page,
                                      memory_order_release);
        }
}

void rdmeta_table_pins_topic(rdmeta_table_t *t, const rdmeta_topic_t *topic) {
        const uint64_t hash = rdmeta_hash(t->key, topic->name,
                                          topic->name_len);
        const rdmeta_slot_t *slot = rdmeta_table_slot(t, hash, topic);

        if (slot)
                rdmeta_table_pins_copy(t, (uint32_t)(slot - t->slots));
}
