/*
 * changelog: what changed, oldest first, bounded in bytes.
 *
 *     batches  [v7 poll 3 items][v8 hint 1 item][v9 poll 2 items]
 *     items    (old,new)(old,new)(-,new) (old,new) (old,-)(old,new)
 *
 * There is one batch per version and one item per changed topic. An item is a
 * pair of blocks. A reader of the changelog compares the two blocks itself. A
 * block that was replaced lives until the item in which it is `old` leaves the
 * changelog. That is late enough for every item in which it is `new` too, since
 * those are older. Items leave by whole batches. The changelog is complete for
 * the versions above `floor`.
 */
#pragma once

#include "store/epoch.h"
#include "topic/brokers.h"

typedef struct rdmeta_changelog_batch {
        uint64_t version;
        int64_t wall_us;
        uint64_t first; /* its first item, counted since the beginning */
        uint64_t taken; /* how many images were taken before it */
        const rdmeta_brokers_t *old_brokers; /* NULL: no change */
        const rdmeta_brokers_t *brokers;     /* at this version */
        uint32_t n; /* the number of items */
        int32_t source;
        int32_t source_broker;
} rdmeta_changelog_batch_t;

typedef struct rdmeta_changelog_item {
        rdmeta_topic_t *old_; /* NULL: the topic was added */
        rdmeta_topic_t *new_; /* NULL: the topic was removed */
} rdmeta_changelog_item_t;

typedef struct rdmeta_changelog {
        const rdmeta_allocator_t *allocator;
        rdmeta_epoch_t *epochs;
        size_t limit;      /* in bytes */
        size_t live;       /* bytes of old blocks and old broker tables */
        size_t live_large; /* the part of `live` that is not in slabs */
        uint64_t floor;    /* batches up to this version are gone */
        /* Two circular arrays, whose capacities are powers of two. */
        rdmeta_changelog_batch_t *batches;
        rdmeta_changelog_item_t *items;
        uint64_t batch_head, batch_tail, item_head, item_tail;
        size_t batch_mask, item_mask;
} rdmeta_changelog_t;

void rdmeta_changelog_init(rdmeta_changelog_t *changelog,
                           const rdmeta_allocator_t *allocator,
                           rdmeta_epoch_t *epochs, size_t limit);
/* Frees the changelog's memory and retires every old block in it. */
void rdmeta_changelog_destroy(rdmeta_changelog_t *changelog);

/* Makes room for one batch of n items. Returns 1 if there is room. Returns 0 if
 * n items exceed the limit; the caller then records none of them. Returns
 * RDMETA_ERR_NO_MEMORY without memory. */
rdmeta_err_t rdmeta_changelog_reserve(rdmeta_changelog_t *changelog, size_t n);
/* Begins a batch. Cannot fail: rdmeta_changelog_reserve() returned 1. */
void rdmeta_changelog_begin(rdmeta_changelog_t *changelog,
                            const rdmeta_changelog_batch_t *batch);
/* Adds an item to the last batch. Cannot fail, for the same reason. */
void rdmeta_changelog_item(rdmeta_changelog_t *changelog, rdmeta_topic_t *old_,
                           rdmeta_topic_t *new_);
/* Removes the oldest batches until the limit is kept. */
void rdmeta_changelog_trim(rdmeta_changelog_t *changelog);
/* Removes all batches and sets the floor to `version`. */
void rdmeta_changelog_skip(rdmeta_changelog_t *changelog, uint64_t version);

/* Returns the bytes of both arrays and of the old blocks and tables. */
size_t rdmeta_changelog_bytes(const rdmeta_changelog_t *changelog);

RDMETA_INLINE const rdmeta_changelog_batch_t *
rdmeta_changelog_batch(const rdmeta_changelog_t *changelog, uint64_t i) {
        return &changelog->batches[i & changelog->batch_mask];
}

RDMETA_INLINE const rdmeta_changelog_item_t *
rdmeta_changelog_at(const rdmeta_changelog_t *changelog, uint64_t i) {
        return &changelog->items[i & changelog->item_mask];
}
