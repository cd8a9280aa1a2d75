/*
 * ref: a count of references, embedded in the object that it counts.
 *
 * The count has a pointer to the function that destroys the object. So code in
 * a lower folder takes and drops references without a call upward.
 *
 * Threads: a thread with a reference may take another one and drop it.
 */
#pragma once

#include "base/buf.h"

#include <stdatomic.h>

typedef struct rdmeta_ref {
        _Atomic int32_t count;
        void (*destroy)(struct rdmeta_ref *ref);
} rdmeta_ref_t;

/* Sets the count to one reference, which the caller owns. */
RDMETA_INLINE void rdmeta_ref_init(rdmeta_ref_t *ref,
                                   void (*destroy)(rdmeta_ref_t *ref)) {
        atomic_init(&ref->count, 1);
        ref->destroy = destroy;
}

/* Takes another reference. */
RDMETA_INLINE void rdmeta_ref_take(rdmeta_ref_t *ref) {
        atomic_fetch_add_explicit(&ref->count, 1, memory_order_relaxed);
}

/* Drops a reference; with the last one, destroys the object. */
RDMETA_INLINE void rdmeta_ref_drop(rdmeta_ref_t *ref) {
        if (atomic_fetch_sub_explicit(&ref->count, 1, memory_order_acq_rel) ==
            1)
                ref->destroy(ref);
}
