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
#ifndef RDMETA_STORE_VIEW_H
#define RDMETA_STORE_VIEW_H

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
/* Returns the leader or a code, for a topic of any state and width. */
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

/* Returns the leader or a code where the fast path did not apply. `t` may be
 * NULL. */
int32_t rdmeta_view_leader_slow(const rdmeta_root_t *root,
                                const rdmeta_topic_t *t, int32_t partition,
                                int64_t mono_us, int stale_ok);

/* Returns the leader or a code, for a topic of state VALID. Calls
 * rdmeta_view_leader_at() unless the leaders are a plain column. */
RDMETA_INLINE int32_t rdmeta_view_pick_at(const rdmeta_topic_t *t, size_t len,
                                          int64_t deadline, int32_t partition,
                                          int64_t mono_us, int stale_ok) {
        int32_t leader;

        if (RDMETA_UNLIKELY((uint32_t)partition >= t->count) ||
            RDMETA_UNLIKELY(deadline < mono_us) ||
            RDMETA_UNLIKELY(t->width == RDMETA_TOPIC_SPARSE))
                return rdmeta_view_leader_at(t, deadline, partition, mono_us,
                                             stale_ok);
        leader = rdmeta_col_get(t->name + len, t->width, (uint32_t)partition);
        if (RDMETA_UNLIKELY(leader < 0) && stale_ok)
                return rdmeta_view_leader_at(t, deadline, partition, mono_us,
                                             1);
        return leader;
}

/* Returns the same as rdmeta_view_pick_at() for a topic of a root. */
RDMETA_INLINE int32_t rdmeta_view_pick(const rdmeta_root_t *root,
                                       const rdmeta_topic_t *t, size_t len,
                                       int32_t partition, int64_t mono_us,
                                       int stale_ok) {
        return rdmeta_view_pick_at(t, len, rdmeta_view_deadline(root, t),
                                   partition, mono_us, stale_ok);
}

/*
 * Returns the leader or a code for any name: the general lookup. A topic has
 * the length of its name and its state in one word. For a valid topic of the
 * right name that word equals the caller's length. read/leader.c has the fast
 * path for the common case.
 */
RDMETA_INLINE int32_t rdmeta_view_leader(const rdmeta_root_t *root,
                                         const char *name, size_t len,
                                         int32_t partition, int64_t mono_us,
                                         int stale_ok) {
        const rdmeta_table_t *table = atomic_load_explicit(
                &root->names, memory_order_acquire);
        const uint64_t hash = rdmeta_hash(table->key, name, len);
        uint32_t k          = rdmeta_slot_first(hash) & table->mask;

        for (;; k = (k + 1) & table->mask) {
                const uint64_t slot = atomic_load_explicit(
                        &table->slots[k], memory_order_acquire);
                const rdmeta_topic_t *t;
                uint32_t head;

                if (!slot)
                        return RDMETA_NOT_CACHED;
                if (RDMETA_UNLIKELY(!rdmeta_slot_tag_is(slot, hash)))
                        continue;
                t    = rdmeta_slot_topic(slot);
                head = rdmeta_topic_head(t) & RDMETA_HEAD_VALID;
                if (RDMETA_LIKELY(head == len) &&
                    RDMETA_LIKELY(rdmeta_name_equal(t->name, name, len)))
                        return rdmeta_view_pick(root, t, len, partition,
                                                mono_us, stale_ok);
                if (RDMETA_UNLIKELY((head & UINT16_MAX) == len &&
                                    rdmeta_name_equal(t->name, name, len)))
                        return rdmeta_view_leader_slow(root, t, partition,
                                                       mono_us, stale_ok);
        }
}

/* A fast lookup returns this when the general lookup has to answer. */
#define RDMETA_VIEW_GENERAL INT32_MIN

/* Returns the leader, for a valid topic of the right name whose leaders have
 * that width. Makes no call. Returns RDMETA_VIEW_GENERAL for a partition out of
 * range and for a topic that may be stale. */
RDMETA_INLINE int32_t rdmeta_view_pick_of(const rdmeta_root_t *root,
                                          const rdmeta_topic_t *t, size_t len,
                                          unsigned width, int32_t partition,
                                          int64_t mono_us) {
        if (RDMETA_UNLIKELY((uint32_t)partition >= t->count) ||
            RDMETA_UNLIKELY(!rdmeta_view_is_fresh(root, t, mono_us)))
                return RDMETA_VIEW_GENERAL;
        return rdmeta_col_get(t->name + len, width, (uint32_t)partition);
}

/* Returns the same as rdmeta_view_pick_of() for any state and width. `odd` is
 * the topic's head without the length: mostly 0. Returns RDMETA_VIEW_GENERAL
 * also for a topic that is not valid or whose partitions are sparse. */
RDMETA_INLINE int32_t rdmeta_view_pick_fast(const rdmeta_root_t *root,
                                            const rdmeta_topic_t *t,
                                            size_t len, uint32_t odd,
                                            int32_t partition,
                                            int64_t mono_us) {
        if (RDMETA_LIKELY(odd == 0))
                return rdmeta_view_pick_of(root, t, len, 0, partition,
                                           mono_us);
        if (RDMETA_UNLIKELY(odd & RDMETA_HEAD_VALID) ||
            RDMETA_UNLIKELY(odd >> 24 >= RDMETA_TOPIC_SPARSE))
                return RDMETA_VIEW_GENERAL;
        return rdmeta_view_pick_of(root, t, len, odd >> 24, partition,
                                   mono_us);
}

#endif /* RDMETA_STORE_VIEW_H */
