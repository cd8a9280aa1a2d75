/*
 * view: the reading calls, written once, over a root.
 *
 *     root    names ----> table ----> blocks
 *             ids   ----> table --------^
 *             brokers --> broker table
 *             shared deadline
 *
 * A root is what a reader starts from: the cache has one that changes under
 * it, an image one that does not. Every call here is a reader's: no lock, no
 * allocation, no store. Whoever calls must keep blocks from being freed.
 */
#ifndef RDMETA_STORE_VIEW_H
#define RDMETA_STORE_VIEW_H

#include "store/index.h"
#include "topic/brokers.h"

typedef struct rdmeta_root {
        _Atomic(rdmeta_table_t *) names;
        _Atomic(rdmeta_table_t *) ids;
        _Atomic(rdmeta_brokers_t *) brokers;
        /* Until when the topics of the last all-topics answer are valid: such
         * an answer moves this one word instead of a hundred thousand. */
        _Atomic int64_t shared_deadline;
        /* The same once there was one, and the end of time before: until then
         * a lookup need not ask whether a topic is one of those. */
        _Atomic int64_t fresh_until;
        _Atomic uint64_t shared_provenance; /* that answer's rdmeta_provenance_t */
} rdmeta_root_t;

RDMETA_INLINE rdmeta_provenance_t rdmeta_view_shared_provenance(
        const rdmeta_root_t *root) {
        return rdmeta_provenance_of(atomic_load_explicit(&root->shared_provenance,
                                                   memory_order_acquire));
}

RDMETA_INLINE int64_t rdmeta_view_deadline(const rdmeta_root_t *root,
                                           const rdmeta_topic_t *t) {
        const int64_t own = atomic_load_explicit(&t->deadline,
                                                 memory_order_relaxed);
        const int64_t shared = atomic_load_explicit(&root->shared_deadline,
                                                    memory_order_relaxed);

        return own == RDMETA_DEADLINE_SHARED ? shared : own;
}

/* 0: look closer. Past the shared deadline that is all it says, of topics with
 * one of their own too. */
RDMETA_INLINE int rdmeta_view_is_fresh(const rdmeta_root_t *root,
                                       const rdmeta_topic_t *t,
                                       int64_t mono_us) {
        return RDMETA_LIKELY(mono_us <= atomic_load_explicit(
                                     &t->deadline, memory_order_relaxed)) &&
               RDMETA_LIKELY(mono_us <=
                             atomic_load_explicit(&root->fresh_until,
                                                  memory_order_relaxed));
}

/* What a lookup says of a topic with that deadline, the shared one resolved:
 * 0, or a code <= -100. */
rdmeta_err_t rdmeta_view_state_at(const rdmeta_topic_t *t, int64_t deadline,
                                  int64_t mono_us, int stale_ok);
/* The leader, wherever its partition may be, or a code. */
int32_t rdmeta_view_leader_at(const rdmeta_topic_t *t, int64_t deadline,
                              int32_t partition, int64_t mono_us,
                              int stale_ok);

/* The same, of a root's. */
RDMETA_INLINE rdmeta_err_t rdmeta_view_state(const rdmeta_root_t *root,
                                             const rdmeta_topic_t *t,
                                             int64_t mono_us, int stale_ok) {
        return rdmeta_view_state_at(t, rdmeta_view_deadline(root, t), mono_us,
                                    stale_ok);
}

/* A leader where the fast path did not apply; t may be NULL. */
int32_t rdmeta_view_leader_slow(const rdmeta_root_t *root,
                                const rdmeta_topic_t *t, int32_t partition,
                                int64_t mono_us, int stale_ok);

/* Of a topic of state VALID. Width 3 says: not to be had so simply. */
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

RDMETA_INLINE int32_t rdmeta_view_pick(const rdmeta_root_t *root,
                                       const rdmeta_topic_t *t, size_t len,
                                       int32_t partition, int64_t mono_us,
                                       int stale_ok) {
        return rdmeta_view_pick_at(t, len, rdmeta_view_deadline(root, t),
                                   partition, mono_us, stale_ok);
}

/*
 * The lookup, of whatever there is. A valid topic whose name is right has its
 * length and state in one word, equal to the caller's length. See read/leader.c
 * for what is mostly asked.
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

/* A fast lookup's way to say: ask again, in general. */
#define RDMETA_VIEW_GENERAL INT32_MIN

/* The leader of a valid topic whose name is right, whose leaders have that
 * width, without a call; whatever else is left to the others. */
RDMETA_INLINE int32_t rdmeta_view_pick_of(const rdmeta_root_t *root,
                                          const rdmeta_topic_t *t, size_t len,
                                          unsigned width, int32_t partition,
                                          int64_t mono_us) {
        if (RDMETA_UNLIKELY((uint32_t)partition >= t->count) ||
            RDMETA_UNLIKELY(!rdmeta_view_is_fresh(root, t, mono_us)))
                return RDMETA_VIEW_GENERAL;
        return rdmeta_col_get(t->name + len, width, (uint32_t)partition);
}

/* The same, whatever its state and width: `odd` is what its head has besides
 * the length, 0 most often. */
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
