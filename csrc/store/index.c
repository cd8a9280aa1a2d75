#include "store/index.h"

#include "base/alloc.h"

/* A length that no topic name has, in a state that no topic is in. */
const rdmeta_grave_t rdmeta_grave = {
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
                    rdmeta_slot_topic(slot) != &rdmeta_grave.topic &&
                    !memcmp(rdmeta_cold(rdmeta_slot_topic(slot))->id, id, 16))
                        return rdmeta_slot_topic(slot);
        }
}

/* The one way for a slot to change. */
static void slot_store(rdmeta_table_t *t, rdmeta_slot_t *slot,
                       uint64_t value) {
        if (RDMETA_UNLIKELY(t->pins.count))
                rdmeta_pins_copy(t, (uint32_t)(slot - t->slots));
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
        t->graves++;
        slot_store(t, slot, rdmeta_slot_make(hash, &rdmeta_grave.topic));
}
