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
 *       stage, doubts - a writer's scratch and memory of odd answers
 *
 *     slot of a table --> block <--> entry --> slot of order
 *                         (readers)  (writer: tree, list, deadline, doubt)
 *
 * A write goes in two halves. *Staging* reads, merges, allocates and checks;
 * nothing a reader or a later writer could notice changes, and any error only
 * drops what was made. *Commit* stores pointers and cannot fail: all memory it
 * needs was reserved. Entries that are new live in the order array beyond its
 * count, and in a table aside, until then.
 *
 * One mutex (in wait) serialises writers. It is never held while calling out.
 *
 * A fork may leave a child a cache that is torn (wait.h). What readers see is
 * never torn, and changes no more: root, tables, blocks, brokers. So there
 * readers, images and handles are made of that alone and are in no list, and
 * when they go their own memory does; lists, trees and slabs are let be.
 */
#ifndef RDMETA_CACHE_H
#define RDMETA_CACHE_H

#include "avl.h"
#include "expiry.h"
#include "handle.h"
#include "hold.h"
#include "merge.h"
#include "order.h"
#include "reasons.h"
#include "reclaim.h"
#include "ring.h"
#include "stage.h"
#include "view.h"
#include "wait.h"

/* The writer's half of a topic: 56 bytes. */
typedef struct rdmeta_entry {
        rdmeta_avl_node_t avl;
        rdmeta_expiry_node_t expiry;
        rdmeta_topic_t *topic;
        uint32_t order;
        uint32_t list : 4;   /* RDMETA_EXPIRY_... */
        uint32_t staged : 2; /* a writer's mark, while it works */
        uint32_t doubt : 26; /* place among the doubts; 0: none */
} rdmeta_entry_t;

typedef struct rdmeta_doubts {
        rdmeta_doubt_t *all; /* [0] is not used */
        uint32_t count, capacity;
        uint32_t free; /* a list through first_broker; 0: none */
} rdmeta_doubts_t;

struct rdmeta_cache {
        rdmeta_root_t root;
        rdmeta_wait_t wait;
        rdmeta_reclaim_t reclaim;
        rdmeta_holds_t holds;
        rdmeta_slab_t entry_slab;
        rdmeta_blocks_t blocks;
        rdmeta_ring_t ring;
        rdmeta_order_t order;
        rdmeta_expiry_t expiry;
        rdmeta_avl_t tree;
        int tree_made; /* 1: all entries are in the tree; 0: none is */
        int ids_shared; /* 1: an id was two topics': one may not find its own */
        rdmeta_handles_t handles;
        rdmeta_doubts_t doubts;
        rdmeta_reasons_t reasons;
        rdmeta_stage_t stage;
        rdmeta_conf_t conf;
        uint64_t seed;
        uint8_t session[16]; /* this life's; no secret comes from it */
        uint64_t list_key[RDMETA_HASH_KEYS];
        rdmeta_digest_key_t digest_key;
        uint32_t compact_at; /* place in the order array: see compact.c */
        uint64_t compact_left; /* version of the oldest left to the ring */
        uint64_t erased; /* version of the last removal of an entry */
        _Atomic uint64_t hints; /* calls that made hints: the last number */
        size_t entries;
        _Atomic int32_t references;
        rdmeta_stats_t stats; /* counters */
};

/* Of a cache, or of an image: then it is never plain, and has neither root nor
 * cache. The image may be of a file that is followed (attach.h). */
struct rdmeta_reader {
        rdmeta_reading_t reading;
        const rdmeta_root_t *root;
        rdmeta_cache_t *cache;
        rdmeta_image_t *image;
        void *memory; /* what to free: this is aligned within it */
        int32_t stale_ok;
        int32_t handed; /* followed: something was, since enter */
        uint64_t chance; /* where a stream of random numbers is; 0: nowhere */
        rdmeta_attach_t *attach; /* NULL: it follows nothing */
        int64_t look_at; /* not before, by the times it is told */
        int64_t due_us;  /* when it could not look; INT64_MIN: it could */
        uint64_t changes; /* of attach, when it looked */
};

/* ---- entries (entry.c). The lock is held. ----------------------------- */

/* A block's place in the order array, and its entry. */
RDMETA_INLINE uint32_t rdmeta_topic_order(const rdmeta_topic_t *t) {
        return (uint32_t)rdmeta_cold(t)->link;
}

RDMETA_INLINE rdmeta_entry_t *rdmeta_entry_of(const rdmeta_cache_t *c,
                                              const rdmeta_topic_t *t) {
        return c->order.slots[rdmeta_topic_order(t)].entry;
}

rdmeta_entry_t *rdmeta_entry_find(rdmeta_cache_t *c, const char *name,
                                  size_t len);
/* In no table, tree or list yet, but in slot `order`; takes `topic`. NULL: no
 * memory. */
rdmeta_entry_t *rdmeta_entry_new(rdmeta_cache_t *c, rdmeta_topic_t *topic,
                                 uint32_t order);
/* Undo of new: frees both. */
void rdmeta_entry_drop(rdmeta_cache_t *c, rdmeta_entry_t *e);
/* Make room in the name table for n more; NO_MEMORY. */
rdmeta_err_t rdmeta_entry_reserve(rdmeta_cache_t *c, size_t n);
/* Let readers find it, and the tree. Room was reserved; `named`: the name
 * table has it already. */
void rdmeta_entry_publish(rdmeta_cache_t *c, rdmeta_entry_t *e, int named);
/* Take it away from all; the block is the caller's to retire. */
void rdmeta_entry_erase(rdmeta_cache_t *c, rdmeta_entry_t *e);
/* Another block for the same name, as seen by readers. Cannot fail: room for
 * its id was reserved. The old block is the caller's to retire. */
void rdmeta_entry_swap(rdmeta_cache_t *c, rdmeta_entry_t *e,
                       rdmeta_topic_t *topic);
/* Put it into list `list` (or NONE) with that deadline. */
void rdmeta_entry_list(rdmeta_cache_t *c, rdmeta_entry_t *e, int list,
                       int64_t due_us);
/* Store the deadline that readers see; marks the order slot. */
void rdmeta_entry_deadline(rdmeta_cache_t *c, rdmeta_entry_t *e,
                           int64_t deadline);
/* Who said last what its block says, and why he was asked. */
void rdmeta_entry_said(rdmeta_cache_t *c, rdmeta_entry_t *e,
                       rdmeta_said_t said);
/* Where its state and deadline say it belongs, once no hint holds it. */
void rdmeta_entry_settle(rdmeta_cache_t *c, rdmeta_entry_t *e,
                         int64_t mono_us);
/* Returns 1 if the hint on it is in time and was made after the request left;
 * 0 where the request does not say when it left. */
int rdmeta_entry_keeps_hint(const rdmeta_cache_t *c, const rdmeta_entry_t *e,
                            const rdmeta_request_t *asked, int64_t mono_us);
/* The hint on it ends; frees what was only waiting. */
void rdmeta_entry_unhint(rdmeta_cache_t *c, rdmeta_entry_t *e,
                         int64_t mono_us);
/* It has just been unlinked, and nobody else has it. */
void rdmeta_retire(rdmeta_cache_t *c, rdmeta_topic_t *t);
/* At the end of a write: what it leaves is freed, if it can be. */
void rdmeta_collect(rdmeta_cache_t *c);
void rdmeta_doubt_set(rdmeta_cache_t *c, rdmeta_entry_t *e,
                      const rdmeta_doubt_t *doubt);
rdmeta_err_t rdmeta_doubts_reserve(rdmeta_cache_t *c, size_t n);
/* Another answer begins: its number, and slots without many holes. */
void rdmeta_order_begin(rdmeta_cache_t *c);

/* ---- tables (entry.c) ------------------------------------------------- */

/* All entries of `from`, and room for n more, in a table with another key;
 * NULL: no memory. Which hash: by `ids`. */
rdmeta_table_t *rdmeta_table_grown(rdmeta_cache_t *c,
                                   const rdmeta_table_t *from, size_t n,
                                   int ids);
void rdmeta_table_publish(rdmeta_cache_t *c, _Atomic(rdmeta_table_t *) *where,
                          rdmeta_table_t *t);
rdmeta_err_t rdmeta_ids_reserve(rdmeta_cache_t *c, size_t n);

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
void rdmeta_stats_recount(const rdmeta_cache_t *c, rdmeta_stats_t *out);

/* ---- ordered index (walk.c) ------------------------------------------- */

/* The tree is made when it is first walked, and forgotten when so many topics
 * come at once that making it anew is cheaper than `n` insertions. */
void rdmeta_tree_init(rdmeta_cache_t *c);
void rdmeta_tree_expect(rdmeta_cache_t *c, size_t n);
void rdmeta_tree_add(rdmeta_cache_t *c, rdmeta_entry_t *e);
void rdmeta_tree_remove(rdmeta_cache_t *c, rdmeta_entry_t *e);

/* ---- memory (compact.c) ----------------------------------------------- */

/* At the end of a write, with rdmeta_collect() after it: look at so many
 * topics, and move so many, that others' memory goes. Cannot fail. */
void rdmeta_compact(rdmeta_cache_t *c, size_t looks, size_t moves);
/* Places in the order array are others'. */
void rdmeta_compact_again(rdmeta_cache_t *c);

/* ---- whole-cache checks for tests (check.c) --------------------------- */

/* NULL: every invariant holds; otherwise which does not. Takes the lock. */
const char *rdmeta_cache_check(rdmeta_cache_t *c);

#endif /* RDMETA_CACHE_H */
