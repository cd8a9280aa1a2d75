/*
 * ref: a count of references, embedded in what is counted.
 *
 * The count carries the function that destroys its owner. So code that lies
 * below the owner's own file takes and drops references without a call upward.
 *
 * Threads: any thread that has a reference may take another one and drop it.
 */
#ifndef RDMETA_BASE_REF_H
#define RDMETA_BASE_REF_H

#include "base/buf.h"

#include <stdatomic.h>

typedef struct rdmeta_ref {
        _Atomic int32_t count;
        void (*destroy)(struct rdmeta_ref *ref);
} rdmeta_ref_t;

/* Begins with one reference, the caller's. */
RDMETA_INLINE void rdmeta_ref_init(rdmeta_ref_t *ref,
                                   void (*destroy)(rdmeta_ref_t *ref)) {
        atomic_init(&ref->count, 1);
        ref->destroy = destroy;
}

RDMETA_INLINE void rdmeta_ref_take(rdmeta_ref_t *ref) {
        atomic_fetch_add_explicit(&ref->count, 1, memory_order_relaxed);
}

/* Drops a reference; the last one destroys the owner. */
RDMETA_INLINE void rdmeta_ref_drop(rdmeta_ref_t *ref) {
        if (atomic_fetch_sub_explicit(&ref->count, 1, memory_order_acq_rel) ==
            1)
                ref->destroy(ref);
}

#endif /* RDMETA_BASE_REF_H */
