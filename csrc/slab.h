/*
 * slab: memory for topic blocks and entries.
 *
 * A cache holds a hundred thousand small things of a few sizes; malloc's
 * header and rounding would cost a tenth of them. So memory is taken from the
 * allocator in chunks and cut into pieces of whole 8-byte units:
 *
 *     chunk  [next,size | piece | piece | piece | cur ...... end]
 *     lists  [1 unit]->piece->piece   [2 units]->piece   ...  [64 units]
 *
 * A piece that is given back goes to the list of its size and is used again
 * for that size only: topics change their leaders far more often than their
 * shape. Larger pieces go to the allocator. Chunks grow with what is held (an
 * eighth of it), so that neither a small cache nor a large one pays for much
 * that it does not use; they go back when the cache ends.
 */
#ifndef RDMETA_SLAB_H
#define RDMETA_SLAB_H

#include "buf.h"
#include "rdmeta.h"

#define RDMETA_SLAB_UNIT 8
#define RDMETA_SLAB_LISTS 129 /* pieces of up to 1024 bytes */

typedef struct rdmeta_slab_free {
        struct rdmeta_slab_free *next;
} rdmeta_slab_free_t;

typedef struct rdmeta_slab_chunk {
        struct rdmeta_slab_chunk *next;
        size_t size;
} rdmeta_slab_chunk_t;

typedef struct rdmeta_slab {
        const rdmeta_allocator_t *allocator;
        char *cur;
        char *end;
        rdmeta_slab_chunk_t *chunks;
        size_t bytes; /* asked of the allocator and not given back */
        rdmeta_slab_free_t *lists[RDMETA_SLAB_LISTS];
} rdmeta_slab_t;

void rdmeta_slab_init(rdmeta_slab_t *slab,
                      const rdmeta_allocator_t *allocator);
/* Frees the chunks; larger pieces must have been given back. */
void rdmeta_slab_destroy(rdmeta_slab_t *slab);

void *rdmeta_slab_alloc_slow(rdmeta_slab_t *slab, size_t units);
void rdmeta_slab_free_large(rdmeta_slab_t *slab, void *p, size_t units);

RDMETA_INLINE size_t rdmeta_slab_units(size_t size) {
        return (size + RDMETA_SLAB_UNIT - 1) / RDMETA_SLAB_UNIT;
}

/* 8-byte aligned, not zeroed; NULL: no memory. */
RDMETA_INLINE void *rdmeta_slab_alloc(rdmeta_slab_t *slab, size_t size) {
        const size_t units = rdmeta_slab_units(size);
        rdmeta_slab_free_t *f;
        char *p = slab->cur;

        if (RDMETA_UNLIKELY(units >= RDMETA_SLAB_LISTS))
                return rdmeta_slab_alloc_slow(slab, units);
        f = slab->lists[units];
        if (f) {
                slab->lists[units] = f->next;
                return f;
        }
        if (RDMETA_UNLIKELY((size_t)(slab->end - p) <
                            units * RDMETA_SLAB_UNIT))
                return rdmeta_slab_alloc_slow(slab, units);
        slab->cur = p + units * RDMETA_SLAB_UNIT;
        return p;
}

/* `size` as asked for. */
RDMETA_INLINE void rdmeta_slab_free(rdmeta_slab_t *slab, void *p,
                                    size_t size) {
        const size_t units = rdmeta_slab_units(size);
        rdmeta_slab_free_t *f = (rdmeta_slab_free_t *)p;

        if (RDMETA_UNLIKELY(units >= RDMETA_SLAB_LISTS)) {
                rdmeta_slab_free_large(slab, p, units);
                return;
        }
        f->next            = slab->lists[units];
        slab->lists[units] = f;
}

#endif /* RDMETA_SLAB_H */
