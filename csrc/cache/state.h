/*
 * cache: orchestrates the layers below it and adds no rule of its own.
 *
 *     rdmeta_cache
 *       root ---------- what readers see: tables, brokers, shared deadline
 *       notify -------- the writers' lock, the version, waiters, watches
 *       epochs -------- readers, and retired blocks that may still be read
 *       live_images --- slot pages for the images of this cache
 *       changelog ----- (old block, new block) of recent versions
 *       order --------- entries in the order of the last answers, digests
 *       deadlines ----- entries by deadline, in a few classes
 *       tree ---------- entries by name; the first walk makes it
 *       handles ------- resolved names
 *       reasons ------- why topics were asked for, by number
 *       entry_slab ---- memory of entries
 *       blocks -------- memory of blocks
 *       builder ------- the writer's scratch for one topic of an answer
 *       notes --------- why topics are due, and their older answers
 *
 *     slot of a table --> block <--> entry --> slot of order
 *                         (readers)  (writer: tree, list, deadline, note)
 *
 * A write has two halves. *Staging* reads, merges, allocates and checks. It
 * changes nothing that a reader or a later writer could notice, and an error
 * only drops what it made. *Commit* stores pointers and cannot fail, because
 * staging reserved all memory that it needs. Until commit, new entries lie in
 * the order array beyond its count, and their names in a table aside.
 *
 * One mutex (in notify) serialises writers. A writer drops it before it calls a
 * watch.
 *
 * After a fork the child's cache is whole, and may not be written to. If the
 * lock is lost (base/lock.h), only lookups are left: the data that readers see
 * (root, tables, blocks, brokers) is whole at every moment of a write.
 */
#pragma once

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

/* The writer's half of a topic; it has 56 bytes. */
typedef struct rdmeta_entry {
        rdmeta_avl_node_t avl;
        rdmeta_deadlines_node_t deadlines;
        rdmeta_topic_t *topic;
        uint32_t order;
        uint32_t list : 4;   /* RDMETA_DEADLINES_... */
        uint32_t staged : 2; /* a writer's mark during one call; else 0 */
        uint32_t note : 26;  /* 1 + its place among the notes; 0: none */
} rdmeta_entry_t;

/* The rewind of a topic (topic/merge.h), in one allocation with its rows. */
typedef struct rdmeta_kept_rewind {
        rdmeta_rewind_t rewind;
        rdmeta_rewind_row_t rows[];
} rdmeta_kept_rewind_t;

#define RDMETA_GONE_NEVER INT64_MIN
/* The writer's note on a topic: what its block does not have (notes.h). */
typedef struct rdmeta_note {
        rdmeta_entry_t *entry;
        rdmeta_kept_rewind_t *rewind; /* NULL: none. It has no more rows than
                                       * the topic had partitions */
        uint32_t due : 7;             /* RDMETA_DUE_... */
        uint32_t expired : 1; /* 1: its grace time removed it, and no broker */
        uint32_t given : 24; /* 1 + the low bits of the first broker that gave
                              * it since; 0: none */
        uint32_t gone_ms; /* since when it is absent or removed; 0: it is not */
} rdmeta_note_t;

/* All notes of a cache, without gaps. An entry has at most one. */
typedef struct rdmeta_notes {
        rdmeta_note_t *all;
        uint32_t count, capacity;
        size_t rewind_bytes; /* of all rewinds, also those still staged */
        int walk;    /* 1: due() must look at every topic (due.h) */
        int recheck; /* 1: due() must look at topics whose leader was not
                      * among the brokers */
} rdmeta_notes_t;

/* The handles of a cache (handles.h). */
typedef struct rdmeta_handles {
        rdmeta_avl_t tree;
        size_t bytes;
} rdmeta_handles_t;

/* The memory that the live images of a cache share (live_image.h). */
typedef struct rdmeta_live_images {
        rdmeta_slot_page_pool_t names, ids;
        _Atomic size_t bytes; /* of images, with pins, brokers, orders */
        size_t tables; /* bytes of replaced tables that table pins keep */
} rdmeta_live_images_t;

struct rdmeta_cache {
        rdmeta_root_t root;
        rdmeta_notify_t notify;
        rdmeta_epoch_t epochs;
        rdmeta_live_images_t live_images;
        rdmeta_slab_t entry_slab;
        rdmeta_memory_t blocks;
        rdmeta_changelog_t changelog;
        rdmeta_answer_order_t order;
        rdmeta_deadlines_t deadlines;
        rdmeta_avl_t tree;
        int tree_made; /* 1: all entries are in the tree; 0: none is */
        int ids_shared; /* 1: two topics had one id; it leads to one at most */
        int all_answered; /* 1: there was an all-topics answer, of this cluster
                           * and since the last purge */
        rdmeta_handles_t handles;
        rdmeta_notes_t notes;
        rdmeta_reasons_t reasons;
        rdmeta_builder_t builder;
        rdmeta_conf_t conf;
        uint64_t seed;
        uint8_t session[16]; /* differs per cache; public, unlike the seed */
        uint64_t list_key[RDMETA_HASH_KEYS];
        rdmeta_digest_key_t digest_key;
        uint32_t compact_at; /* the cursor in the order array: compact.c */
        uint32_t compact_generation; /* the order array's, for that cursor */
        uint64_t compact_skipped; /* lowest version that the cursor skipped */
        uint64_t erased; /* version of the last removal of an entry */
        _Atomic uint64_t hints; /* number of the last call that made hints */
        size_t entries;
        rdmeta_ref_t references;
        rdmeta_stats_t stats; /* counters */
};

/* Returns a block's place in the order array. */
RDMETA_INLINE uint32_t rdmeta_topic_order(const rdmeta_topic_t *t) {
        return (uint32_t)rdmeta_cold(t)->link;
}

/* Returns the entry of a block that is in the cache's tables. */
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

/* Returns the deadline of the last all-topics answer. Returns the past if there
 * was none of this cluster since the last purge. The caller holds the lock. */
RDMETA_INLINE int64_t rdmeta_all_deadline(const rdmeta_cache_t *c) {
        return c->all_answered
                       ? atomic_load_explicit(&c->root.shared_deadline,
                                              memory_order_relaxed)
                       : INT64_MIN + 2;
}
