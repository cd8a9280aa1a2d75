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
#ifndef RDMETA_VIEW_H
#define RDMETA_VIEW_H

#include "brokers.h"
#include "index.h"

typedef struct rdmeta_root {
        _Atomic(rdmeta_table_t *) names;
        _Atomic(rdmeta_table_t *) ids;
        _Atomic(rdmeta_brokers_t *) brokers;
        /* Until when the topics of the last all-topics answer are valid: such
         * an answer moves this one word instead of a hundred thousand. */
        _Atomic int64_t shared_deadline;
        _Atomic uint64_t shared_said; /* that answer's rdmeta_said_t */
} rdmeta_root_t;

RDMETA_INLINE rdmeta_said_t rdmeta_view_shared_said(
        const rdmeta_root_t *root) {
        return rdmeta_said_of(atomic_load_explicit(&root->shared_said,
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
        const uint32_t shape = t->shape;
        const char *leaders  = t->name + len;
        int32_t leader;

        if (RDMETA_UNLIKELY((uint32_t)partition >= shape >> 2) ||
            RDMETA_UNLIKELY(deadline < mono_us) ||
            RDMETA_UNLIKELY((shape & 3) == RDMETA_TOPIC_SPARSE))
                return rdmeta_view_leader_at(t, deadline, partition, mono_us,
                                             stale_ok);
        leader = rdmeta_col_get(leaders, shape & 3, (uint32_t)partition);
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
 * The lookup. A valid topic whose name is right takes the fast path: its
 * length and state are one word, equal to the caller's length.
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
                head = rdmeta_topic_head(t);
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

/*
 * The leader of a valid topic whose name is right, dense ids, without a call;
 * whatever else is left to the others.
 */
RDMETA_INLINE int32_t rdmeta_view_pick_fast(const rdmeta_root_t *root,
                                            const rdmeta_topic_t *t,
                                            size_t len, int32_t partition,
                                            int64_t mono_us) {
        const uint32_t shape = t->shape;

        if (RDMETA_UNLIKELY((uint32_t)partition >= shape >> 2) ||
            RDMETA_UNLIKELY(rdmeta_view_deadline(root, t) < mono_us))
                return RDMETA_VIEW_GENERAL;
        if (RDMETA_LIKELY((shape & 3) == 0))
                return (int8_t)t->name[len + (uint32_t)partition];
        if (RDMETA_UNLIKELY((shape & 3) == RDMETA_TOPIC_SPARSE))
                return RDMETA_VIEW_GENERAL;
        return rdmeta_col_get(t->name + len, shape & 3, (uint32_t)partition);
}

#if defined(__SSE2__)
/*
 * The same lookup for what is nearly always asked - a name of 17 to 32 bytes,
 * a valid topic, dense ids - and without a call on any way through it, so that
 * the compiler needs to save no register. Whatever else is left to the other.
 */
RDMETA_INLINE int32_t rdmeta_view_leader_fast(const rdmeta_root_t *root,
                                              const char *name, size_t len,
                                              int32_t partition,
                                              int64_t mono_us) {
        const rdmeta_table_t *table = atomic_load_explicit(
                &root->names, memory_order_acquire);
        const __m128i first = _mm_loadu_si128(
                (const __m128i *)(const void *)name);
        const __m128i last = _mm_loadu_si128(
                (const __m128i *)(const void *)(name + len - 16));
        const uint64_t hash = rdmeta_hash_short(table->key, name, len);
        uint32_t k = rdmeta_slot_first(hash) & table->mask;
        const rdmeta_topic_t *t;
        __m128i equal;
        uint64_t slot;

        for (;; k = (k + 1) & table->mask) {
                slot = atomic_load_explicit(&table->slots[k],
                                            memory_order_acquire);
                if (RDMETA_LIKELY(rdmeta_slot_tag_is(slot, hash)))
                        break;
                if (!slot)
                        return RDMETA_NOT_CACHED;
        }
        t = rdmeta_slot_topic(slot);
        if (RDMETA_UNLIKELY(!t) ||
            RDMETA_UNLIKELY(rdmeta_topic_head(t) != len))
                return RDMETA_VIEW_GENERAL;
        equal = _mm_and_si128(
                _mm_cmpeq_epi8(first,
                               _mm_loadu_si128((const __m128i *)(const void *)
                                                       t->name)),
                _mm_cmpeq_epi8(last,
                               _mm_loadu_si128((const __m128i *)(const void *)(
                                       t->name + len - 16))));
        if (RDMETA_UNLIKELY(_mm_movemask_epi8(equal) != 0xffff))
                return RDMETA_VIEW_GENERAL;
        return rdmeta_view_pick_fast(root, t, len, partition, mono_us);
}
#endif

#endif /* RDMETA_VIEW_H */
