/*
 * view: the lookups, written once, over a root.
 *
 *     root    names ----> table ----> blocks
 *             ids   ----> table --------^
 *             brokers --> broker table
 *             shared deadline
 *
 * A reader starts from a root. A cache has a root that changes while it is
 * read; an image has one that does not change. Every call here is a reader's:
 * it takes no lock, allocates nothing and stores nothing. The caller must keep
 * blocks from being freed.
 */
#pragma once

#include "store/index.h"
#include "topic/brokers.h"

typedef struct rdmeta_root {
        _Atomic(rdmeta_table_t *) names;
        _Atomic(rdmeta_table_t *) ids;
        _Atomic(rdmeta_brokers_t *) brokers;
        /* The deadline of the topics of the last all-topics answer. The next
         * such answer moves this one word instead of a hundred thousand. */
        _Atomic int64_t shared_deadline;
        /* INT64_MAX before the first all-topics answer, afterwards the shared
         * deadline. So a lookup need not ask which topics share it. */
        _Atomic int64_t fresh_until;
        /* That answer's rdmeta_provenance_t. */
        _Atomic uint64_t shared_provenance;
} rdmeta_root_t;

/* Returns the provenance of the topics of the last all-topics answer. */
RDMETA_INLINE rdmeta_provenance_t rdmeta_view_shared_provenance(
        const rdmeta_root_t *root) {
        return rdmeta_provenance_of(atomic_load_explicit(
                &root->shared_provenance, memory_order_acquire));
}

/* Returns the topic's own deadline, or the shared one. */
RDMETA_INLINE int64_t rdmeta_view_deadline(const rdmeta_root_t *root,
                                           const rdmeta_topic_t *t) {
        const int64_t own = atomic_load_explicit(&t->deadline,
                                                 memory_order_relaxed);
        const int64_t shared = atomic_load_explicit(&root->shared_deadline,
                                                    memory_order_relaxed);

        return own == RDMETA_DEADLINE_SHARED ? shared : own;
}

/* Returns 1 if the topic is certainly not stale. 0: the caller must look
 * closer. Past the shared deadline it returns 0 for every topic. */
RDMETA_INLINE int rdmeta_view_is_fresh(const rdmeta_root_t *root,
                                       const rdmeta_topic_t *t,
                                       int64_t mono_us) {
        return RDMETA_LIKELY(mono_us <= atomic_load_explicit(
                                     &t->deadline, memory_order_relaxed)) &&
               RDMETA_LIKELY(mono_us <=
                             atomic_load_explicit(&root->fresh_until,
                                                  memory_order_relaxed));
}

/* Returns 0 if a lookup may use a topic with that deadline, or a code <= -100.
 * The caller has resolved the shared deadline. */
rdmeta_err_t rdmeta_view_state_at(const rdmeta_topic_t *t, int64_t deadline,
                                  int64_t mono_us, int stale_ok);
/* Returns the leader or a code, for a topic of any state and width: a cache's,
 * an image's or a file's. */
int32_t rdmeta_view_leader_at(const rdmeta_topic_t *t, int64_t deadline,
                              int32_t partition, int64_t mono_us,
                              int stale_ok);

/* Returns the same as rdmeta_view_state_at() for a topic of a root. */
RDMETA_INLINE rdmeta_err_t rdmeta_view_state(const rdmeta_root_t *root,
                                             const rdmeta_topic_t *t,
                                             int64_t mono_us, int stale_ok) {
        return rdmeta_view_state_at(t, rdmeta_view_deadline(root, t), mono_us,
                                    stale_ok);
}

/* A fast lookup returns this when rdmeta_view_leader_at() has to answer. */
#define RDMETA_VIEW_GENERAL INT32_MIN

/* Returns the leader, without a call, if the topic is valid and has a name of
 * `len` bytes, a plain column of leaders and that partition. The caller tests
 * the deadline. Otherwise returns RDMETA_VIEW_GENERAL. */
RDMETA_INLINE int32_t rdmeta_view_pick(const rdmeta_topic_t *t, size_t len,
                                       int32_t partition) {
        const uint32_t odd = rdmeta_topic_head(t) ^ (uint32_t)len;

        if (RDMETA_UNLIKELY((uint32_t)partition >= t->count))
                return RDMETA_VIEW_GENERAL;
        if (RDMETA_LIKELY(odd == 0))
                return (int8_t)t->name[len + (uint32_t)partition];
        /* All bits of `odd` but the width must be 0, and that below SPARSE. */
        if (RDMETA_UNLIKELY((odd << 8 | odd >> 24) >= RDMETA_TOPIC_SPARSE))
                return RDMETA_VIEW_GENERAL;
        return rdmeta_col_get(t->name + len, odd >> 24, (uint32_t)partition);
}

/* Does the same for a topic of a root. Also returns RDMETA_VIEW_GENERAL for one
 * that may be stale. The topic has the right name. */
RDMETA_INLINE int32_t rdmeta_view_pick_fresh(const rdmeta_root_t *root,
                                             const rdmeta_topic_t *t,
                                             size_t len, int32_t partition,
                                             int64_t mono_us) {
        return RDMETA_LIKELY(rdmeta_view_is_fresh(root, t, mono_us))
                       ? rdmeta_view_pick(t, len, partition)
                       : RDMETA_VIEW_GENERAL;
}

/* Returns the leader or a code, for a topic of a root; NULL: not cached. */
int32_t rdmeta_view_leader_of(const rdmeta_root_t *root,
                              const rdmeta_topic_t *t, int32_t partition,
                              int64_t mono_us, int stale_ok);

/* Returns the leader or a code for any name. */
RDMETA_INLINE int32_t rdmeta_view_leader(const rdmeta_root_t *root,
                                         const char *name, size_t len,
                                         int32_t partition, int64_t mono_us,
                                         int stale_ok) {
        const rdmeta_topic_t *t = rdmeta_table_find(
                atomic_load_explicit(&root->names, memory_order_acquire), name,
                len);
        int32_t leader;

        if (RDMETA_UNLIKELY(!t))
                return RDMETA_NOT_CACHED;
        leader = rdmeta_view_pick_fresh(root, t, len, partition, mono_us);
        if (RDMETA_UNLIKELY(leader < 0)) /* perhaps there was one before */
                return rdmeta_view_leader_of(root, t, partition, mono_us,
                                             stale_ok);
        return leader;
}
