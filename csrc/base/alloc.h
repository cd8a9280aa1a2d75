/*
 * alloc: memory through the caller's allocator, or the C library's.
 *
 * An rdmeta_allocator_t without functions means malloc and free; so does no
 * allocator at all. Whoever frees says the size, so that an allocator of the
 * caller's need not keep it.
 *
 * What is as large as a large page is then mapped, and goes back to the system
 * when it is freed. malloc maps such, too, but only until one is freed: from
 * then on it takes them from its heap, where what lies between them keeps a
 * cache's old tables resident for as long as the process lives.
 *
 * Not thread-safe by itself: the contract promises
 * one call at a time for each cache, so callers hold that cache's lock.
 */
#ifndef RDMETA_BASE_ALLOC_H
#define RDMETA_BASE_ALLOC_H

#include "rdmeta.h"

#include <stdlib.h>

/* The size of the large pages that are hoped for. */
#define RDMETA_ALLOC_LARGE ((size_t)2 << 20)

void *rdmeta_map(size_t size);
void rdmeta_unmap(void *p, size_t size);

/* NULL: no memory. Not zeroed. */
static inline void *rdmeta_alloc(const rdmeta_allocator_t *a, size_t size) {
        if (a && a->alloc)
                return a->alloc(a->opaque, size);
        return size < RDMETA_ALLOC_LARGE ? malloc(size) : rdmeta_map(size);
}

/* `size` is what rdmeta_alloc() was asked for. NULL is fine. */
static inline void rdmeta_free(const rdmeta_allocator_t *a, void *p,
                               size_t size) {
        if (!p)
                return;
        if (a && a->free)
                a->free(a->opaque, p, size);
        else if (size < RDMETA_ALLOC_LARGE)
                free(p);
        else
                rdmeta_unmap(p, size);
}

/* As rdmeta_alloc(), for memory that will be used whole, and read at random:
 * its pages are made at once, since a fault for each costs more, and unless
 * they are large, each look costs a walk of the page tables. From
 * RDMETA_ALLOC_LARGE on it begins at such a page where the allocator is the C
 * library's, and the kernel is advised; nothing is lost where it has none. */
void *rdmeta_alloc_large(const rdmeta_allocator_t *a, size_t size);
/* The same for what is freed soon by free(), and had again: malloc keeps it,
 * and so its pages need not be made again. */
void *rdmeta_alloc_again(size_t size);

#endif /* RDMETA_BASE_ALLOC_H */
