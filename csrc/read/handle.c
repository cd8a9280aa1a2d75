/* handle: lookups through a handle. They take no lock and allocate nothing. See
 * cache/handles.h. */
#include "cache/handles.h"

#include "read/state.h"

RDMETA_INLINE const rdmeta_topic_t *handle_load(const rdmeta_handle_t *h) {
        return atomic_load_explicit(&h->topic, memory_order_acquire);
}

/* Returns the leader where the fast path did not apply. A reader of an image or
 * of another cache goes by the name. */
static RDMETA_NOINLINE int32_t leader_general(rdmeta_reader_t *r,
                                              const rdmeta_handle_t *h,
                                              int32_t partition,
                                              int64_t mono_us) {
        int32_t leader;

        if (r->root != h->root)
                return rdmeta_leader(r, h->name, h->len, partition, mono_us);
        rdmeta_reading_enter(&r->reading);
        leader = rdmeta_view_leader_of(h->root, handle_load(h), partition,
                                       mono_us, r->stale_ok);
        rdmeta_reading_leave(&r->reading);
        return leader;
}

int32_t rdmeta_handle_leader(rdmeta_reader_t *r, const rdmeta_handle_t *h,
                             int32_t partition, int64_t mono_us) {
        if (RDMETA_LIKELY(rdmeta_reading_is_plain(&r->reading)) &&
            RDMETA_LIKELY(r->root == h->root)) {
                const rdmeta_topic_t *t;
                int32_t leader = RDMETA_VIEW_GENERAL;

                rdmeta_reading_begin(&r->reading);
                t = handle_load(h);
                if (RDMETA_LIKELY(t != NULL))
                        leader = rdmeta_view_pick_fresh(h->root, t, h->len,
                                                        partition, mono_us);
                rdmeta_reading_end(&r->reading);
                if (RDMETA_LIKELY(leader != RDMETA_VIEW_GENERAL))
                        return leader;
        }
        return leader_general(r, h, partition, mono_us);
}

rdmeta_err_t rdmeta_handle_find(rdmeta_reader_t *r, const rdmeta_handle_t *h,
                                int64_t mono_us, const rdmeta_topic_t **out) {
        const rdmeta_topic_t *t;

        if (r->root != h->root)
                return rdmeta_topic_find(r, h->name, h->len, mono_us, out);
        *out = NULL;
        t    = handle_load(h);
        if (!t)
                return RDMETA_NOT_CACHED;
        if (rdmeta_topic_is_visible(t))
                *out = t;
        return rdmeta_view_state(h->root, t, mono_us, r->stale_ok);
}
