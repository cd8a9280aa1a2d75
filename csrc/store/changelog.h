/*
 * changelog: what changed, oldest first, bounded in bytes.
 *
 *     batches  [v7 poll 3 items][v8 hint 1 item][v9 poll 2 items]
 *     items    (old,new)(old,new)(-,new) (old,new) (old,-)(old,new)
 *
 * One batch a version, one item a changed topic, each a pair of blocks; what
 * differed between them is worked out by whoever reads. A block that has been
 * replaced lives until the item in which it is `old` leaves the ring. That is
 * also late enough for every item in which it is `new`, since those are older.
 * Leaving goes by whole batches, and `floor` tells from which version on the
 * ring is complete.
 */
#ifndef RDMETA_STORE_CHANGELOG_H
#define RDMETA_STORE_CHANGELOG_H

#include "store/epoch.h"
#include "topic/brokers.h"

typedef struct rdmeta_changelog_batch {
        uint64_t version;
        int64_t wall_us;
        uint64_t first; /* item, counted since the beginning */
        uint64_t taken; /* images, before it */
        const rdmeta_brokers_t *old_brokers; /* NULL: did not change */
        const rdmeta_brokers_t *brokers;     /* as of this version */
        uint32_t n;
        int32_t source;
        int32_t source_broker;
} rdmeta_changelog_batch_t;

typedef struct rdmeta_changelog_item {
        rdmeta_topic_t *old_;
        rdmeta_topic_t *new_;
} rdmeta_changelog_item_t;

typedef struct rdmeta_changelog {
        const rdmeta_allocator_t *allocator;
        rdmeta_epoch_t *reclaim;
        size_t limit;
        size_t live; /* bytes of old blocks and broker tables ... */
        size_t live_large; /* ... of which not the slabs' */
        uint64_t floor;
        rdmeta_changelog_batch_t *batches; /* power-of-two capacities */
        rdmeta_changelog_item_t *items;
        uint64_t batch_head, batch_tail, item_head, item_tail;
        size_t batch_mask, item_mask;
} rdmeta_changelog_t;

void rdmeta_changelog_init(rdmeta_changelog_t *changelog,
                      const rdmeta_allocator_t *allocator,
                      rdmeta_epoch_t *reclaim, size_t limit);
/* Retires every block that it holds. */
void rdmeta_changelog_destroy(rdmeta_changelog_t *changelog);

/* Make room for one batch of n items. 1: there is; 0: so many that the ring
 * could not hold them, they will not be recorded; NO_MEMORY. */
rdmeta_err_t rdmeta_changelog_reserve(rdmeta_changelog_t *changelog, size_t n);
/* Begin a batch; after reserve said 1. */
void rdmeta_changelog_begin(rdmeta_changelog_t *changelog,
                       const rdmeta_changelog_batch_t *batch);
void rdmeta_changelog_item(rdmeta_changelog_t *changelog, rdmeta_topic_t *old_,
                      rdmeta_topic_t *new_);
/* Let the oldest go until the bound is kept. */
void rdmeta_changelog_trim(rdmeta_changelog_t *changelog);
/* Let all go: nothing below `version` is told any more. */
void rdmeta_changelog_skip(rdmeta_changelog_t *changelog, uint64_t version);

size_t rdmeta_changelog_bytes(const rdmeta_changelog_t *changelog);

RDMETA_INLINE const rdmeta_changelog_batch_t *
rdmeta_changelog_batch(const rdmeta_changelog_t *changelog, uint64_t i) {
        return &changelog->batches[i & changelog->batch_mask];
}

RDMETA_INLINE const rdmeta_changelog_item_t *
rdmeta_changelog_at(const rdmeta_changelog_t *changelog, uint64_t i) {
        return &changelog->items[i & changelog->item_mask];
}

#endif /* RDMETA_STORE_CHANGELOG_H */
