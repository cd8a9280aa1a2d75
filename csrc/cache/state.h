/*
 * cache: orchestrates the layers below it and adds no rule of its own.
 *
 *     rdmeta_cache
 *       root ---------- what readers see: tables, brokers, shared deadline
 *       wait ---------- the writers' lock, the version, waiters, watches
 *       reclaim ------- readers, and what is retired but may still be read
 *       holds --------- room for what images must get to know
 *       ring ---------- (old block, new block) of recent versions
 *       order --------- entries as the last answers named them, digests
 *       expiry -------- entries by deadline, in a few classes
 *       tree ---------- entries by name; made when first asked for
 *       handles ------- names that somebody resolved
 *       reasons ------- why topics were asked for, by number
 *       entry_slab, blocks - their memory
 *       stage, rewinds - a writer's scratch and memory of older answers
 *
 *     slot of a table --> block <--> entry --> slot of order
 *                         (readers)  (writer: tree, list, deadline, rewind)
 *
 * A write goes in two halves. *Staging* reads, merges, allocates and checks;
 * nothing a reader or a later writer could notice changes, and any error only
 * drops what was made. *Commit* stores pointers and cannot fail: all memory it
 * needs was reserved. Entries that are new live in the order array beyond its
 * count, and in a table aside, until then.
 *
 * One mutex (in wait) serialises writers. It is never held while calling out.
 *
 * A fork may leave a child a cache that is torn (store/notify.h). What readers
 * see is never torn, and changes no more: root, tables, blocks, brokers. So
 * there readers, images and handles are made of that alone and are in no list,
 * and when they go their own memory does; lists, trees and slabs are let be.
 */
#ifndef RDMETA_CACHE_STATE_H
#define RDMETA_CACHE_STATE_H

#include "base/avl.h"
#include "base/ref.h"
#include "image/image.h"
#include "store/answer_order.h"
#include "store/changelog.h"
#include "store/deadlines.h"
#include "store/epoch.h"
#include "store/index.h"
#include "store/notify.h"
#include "store/reasons.h"
#include "store/view.h"
#include "topic/builder.h"
#include "topic/merge.h"

/* The writer's half of a topic: 56 bytes. */
typedef struct rdmeta_entry {
        rdmeta_avl_node_t avl;
        rdmeta_deadlines_node_t deadlines;
        rdmeta_topic_t *topic;
        uint32_t order;
        uint32_t list : 4;   /* RDMETA_DEADLINES_... */
        uint32_t staged : 2; /* a writer's mark, while it works */
        uint32_t rewind : 26; /* 1 + its place among the rewinds; 0: none */
} rdmeta_entry_t;

/* What merge remembers of an entry, in one piece with its rows. */
typedef struct rdmeta_kept_rewind {
        rdmeta_rewind_t rewind;
        rdmeta_entry_t *entry;
        int32_t rows[];
} rdmeta_kept_rewind_t;

/* All that there are, without gaps. An entry has one at most, and that has no
 * more rows than its topic had partitions. */
typedef struct rdmeta_rewinds {
        rdmeta_kept_rewind_t **all;
        uint32_t count, capacity;
        size_t bytes; /* of what they point to, and of those still staged */
} rdmeta_rewinds_t;

/* The handles of a cache (handles.h). */
typedef struct rdmeta_handles {
        rdmeta_avl_t tree;
        size_t bytes;
} rdmeta_handles_t;

/* What images of a cache have, besides their own (live_image.h). */
typedef struct rdmeta_live_images {
        rdmeta_slot_page_pool_t names, ids;
        _Atomic size_t bytes; /* of images: with pins, brokers, orders */
        size_t tables; /* bytes of those that only pins have */
} rdmeta_live_images_t;

struct rdmeta_cache {
        rdmeta_root_t root;
        rdmeta_notify_t wait;
        rdmeta_epoch_t reclaim;
        rdmeta_live_images_t live_images;
        rdmeta_slab_t entry_slab;
        rdmeta_memory_t blocks;
        rdmeta_changelog_t changelog;
        rdmeta_answer_order_t order;
        rdmeta_deadlines_t deadlines;
        rdmeta_avl_t tree;
        int tree_made; /* 1: all entries are in the tree; 0: none is */
        int ids_shared; /* 1: an id was two topics': one may not find its own */
        rdmeta_handles_t handles;
        rdmeta_rewinds_t rewinds;
        rdmeta_reasons_t reasons;
        rdmeta_builder_t builder;
        rdmeta_conf_t conf;
        uint64_t seed;
        uint8_t session[16]; /* this life's; no secret comes from it */
        uint64_t list_key[RDMETA_HASH_KEYS];
        rdmeta_digest_key_t digest_key;
        uint32_t compact_at; /* place in the order array: see compact.c */
        uint32_t compact_generation; /* of the order array, for that place */
        uint64_t compact_left; /* version of the oldest left to the ring */
        uint64_t erased; /* version of the last removal of an entry */
        _Atomic uint64_t hints; /* calls that made hints: the last number */
        size_t entries;
        rdmeta_ref_t references;
        rdmeta_stats_t stats; /* counters */
};

/* A block's place in the order array, and its entry. */
RDMETA_INLINE uint32_t rdmeta_topic_order(const rdmeta_topic_t *t) {
        return (uint32_t)rdmeta_cold(t)->link;
}

RDMETA_INLINE rdmeta_entry_t *rdmeta_entry_of(const rdmeta_cache_t *c,
                                              const rdmeta_topic_t *t) {
        return c->order.slots[rdmeta_topic_order(t)].entry;
}

RDMETA_INLINE rdmeta_table_t *rdmeta_names(const rdmeta_cache_t *c) {
        return atomic_load_explicit(&c->root.names, memory_order_relaxed);
}

RDMETA_INLINE rdmeta_table_t *rdmeta_ids(const rdmeta_cache_t *c) {
        return atomic_load_explicit(&c->root.ids, memory_order_relaxed);
}

RDMETA_INLINE rdmeta_brokers_t *rdmeta_table_brokers(const rdmeta_cache_t *c) {
        return atomic_load_explicit(&c->root.brokers, memory_order_relaxed);
}

RDMETA_INLINE uint64_t rdmeta_name_hash(const rdmeta_table_t *t,
                                        const rdmeta_topic_t *topic) {
        return rdmeta_hash(t->key, topic->name, topic->name_len);
}

/* Topics, partitions and negatives, from what readers see. */
static inline void rdmeta_stats_recount(const rdmeta_cache_t *c,
                                        rdmeta_stats_t *out) {
        const rdmeta_table_t *names = rdmeta_names(c);
        uint32_t k;

        out->topics = out->partitions = out->negatives = 0;
        for (k = 0; k <= names->mask; k++) {
                const rdmeta_topic_t *t = rdmeta_slot_topic(
                        atomic_load_explicit(&names->slots[k],
                                             memory_order_acquire));
                if (!t || t == &rdmeta_tombstone.topic ||
                    t->state == RDMETA_TOPIC_WAIT)
                        continue;
                if (t->state == RDMETA_TOPIC_VALID) {
                        out->topics++;
                        out->partitions += rdmeta_topic_count(t);
                } else {
                        out->negatives++;
                }
        }
}

#endif /* RDMETA_CACHE_STATE_H */
