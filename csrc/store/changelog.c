#include "store/changelog.h"

#include "base/alloc.h"

void rdmeta_ring_init(rdmeta_ring_t *ring,
                      const rdmeta_allocator_t *allocator,
                      rdmeta_reclaim_t *reclaim, size_t limit) {
        memset(ring, 0, sizeof(*ring));
        ring->allocator = allocator;
        ring->reclaim   = reclaim;
        ring->limit     = limit;
}

static size_t capacity(const void *p, size_t mask) {
        return p ? mask + 1 : 0;
}

static size_t ring_used(const rdmeta_ring_t *ring) {
        return ring->held +
               (size_t)(ring->batch_tail - ring->batch_head) *
                       sizeof(rdmeta_ring_batch_t) +
               (size_t)(ring->item_tail - ring->item_head) *
                       sizeof(rdmeta_ring_item_t);
}

size_t rdmeta_ring_bytes(const rdmeta_ring_t *ring) {
        return ring->held +
               capacity(ring->batches, ring->batch_mask) *
                       sizeof(rdmeta_ring_batch_t) +
               capacity(ring->items, ring->item_mask) *
                       sizeof(rdmeta_ring_item_t);
}

static size_t old_bytes(const rdmeta_ring_t *ring,
                        const rdmeta_ring_item_t *item) {
        if (!item->old_)
                return 0;
        return rdmeta_topic_bytes(ring->reclaim->blocks, item->old_);
}

static void ring_pop(rdmeta_ring_t *ring) {
        const rdmeta_ring_batch_t *b =
                rdmeta_ring_batch(ring, ring->batch_head++);
        uint32_t i;

        for (i = 0; i < b->n; i++) {
                const rdmeta_ring_item_t *item =
                        rdmeta_ring_at(ring, ring->item_head++);
                ring->held -= old_bytes(ring, item);
                if (item->old_)
                        rdmeta_reclaim_topic(ring->reclaim, item->old_,
                                             b->taken);
        }
        if (b->old_brokers) {
                ring->held -= b->old_brokers->large.size;
                ring->held_large -= b->old_brokers->large.size;
                rdmeta_reclaim_large(
                        ring->reclaim,
                        (rdmeta_large_t *)(uintptr_t)b->old_brokers);
        }
        if (b->version > ring->floor)
                ring->floor = b->version;
}

void rdmeta_ring_trim(rdmeta_ring_t *ring) {
        while (ring->batch_head != ring->batch_tail &&
               ring_used(ring) > ring->limit)
                ring_pop(ring);
}

void rdmeta_ring_skip(rdmeta_ring_t *ring, uint64_t version) {
        while (ring->batch_head != ring->batch_tail)
                ring_pop(ring);
        ring->floor = version;
}

void rdmeta_ring_destroy(rdmeta_ring_t *ring) {
        rdmeta_ring_skip(ring, 0);
        rdmeta_free(ring->allocator, ring->batches,
                    capacity(ring->batches, ring->batch_mask) *
                            sizeof(*ring->batches));
        rdmeta_free(ring->allocator, ring->items,
                    capacity(ring->items, ring->item_mask) *
                            sizeof(*ring->items));
        memset(ring, 0, sizeof(*ring));
}

/* Grow a circular array to hold `need`; NULL: no memory. */
static void *ring_grow(const rdmeta_allocator_t *allocator, void *old,
                       size_t *mask, size_t size, size_t need, uint64_t head,
                       uint64_t tail) {
        size_t n = 16;
        uint64_t i;
        char *p;

        while (n < need)
                n *= 2;
        p = (char *)rdmeta_alloc(allocator, n * size);
        if (!p)
                return NULL;
        for (i = head; i != tail; i++)
                memcpy(p + (i & (n - 1)) * size,
                       (const char *)old + (i & *mask) * size, size);
        rdmeta_free(allocator, old, capacity(old, *mask) * size);
        *mask = n - 1;
        return p;
}

/* One version of very many topics, such as the first, needs room that those to
 * come do not. */
static int ring_is_roomy(size_t room, size_t items) {
        return room > 4096 && items < room / 8;
}

rdmeta_err_t rdmeta_ring_reserve(rdmeta_ring_t *ring, size_t n) {
        const size_t batches =
                (size_t)(ring->batch_tail - ring->batch_head) + 1;
        const size_t items = (size_t)(ring->item_tail - ring->item_head) + n;
        const size_t room  = capacity(ring->items, ring->item_mask);
        void *p;

        if (n > ring->limit / sizeof(rdmeta_ring_item_t))
                return 0;
        if (batches > capacity(ring->batches, ring->batch_mask)) {
                p = ring_grow(ring->allocator, ring->batches,
                              &ring->batch_mask, sizeof(*ring->batches),
                              batches, ring->batch_head, ring->batch_tail);
                if (!p)
                        return RDMETA_ERR_NO_MEMORY;
                ring->batches = (rdmeta_ring_batch_t *)p;
        }
        if (items > room || ring_is_roomy(room, items)) {
                p = ring_grow(ring->allocator, ring->items, &ring->item_mask,
                              sizeof(*ring->items), items, ring->item_head,
                              ring->item_tail);
                if (!p && items > room)
                        return RDMETA_ERR_NO_MEMORY;
                if (p)
                        ring->items = (rdmeta_ring_item_t *)p;
        }
        return 1;
}

void rdmeta_ring_begin(rdmeta_ring_t *ring,
                       const rdmeta_ring_batch_t *batch) {
        rdmeta_ring_batch_t *b =
                &ring->batches[ring->batch_tail++ & ring->batch_mask];

        *b       = *batch;
        b->first = ring->item_tail;
        b->taken = ring->reclaim->taken;
        b->n     = 0;
        if (b->old_brokers) {
                ring->held += b->old_brokers->large.size;
                ring->held_large += b->old_brokers->large.size;
        }
}

void rdmeta_ring_item(rdmeta_ring_t *ring, rdmeta_topic_t *old_,
                      rdmeta_topic_t *new_) {
        rdmeta_ring_item_t *item =
                &ring->items[ring->item_tail++ & ring->item_mask];

        item->old_ = old_;
        item->new_ = new_;
        ring->held += old_bytes(ring, item);
        ring->batches[(ring->batch_tail - 1) & ring->batch_mask].n++;
}
