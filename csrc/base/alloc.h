/*
 * alloc: memory through the caller's allocator, or the C library's.
 *
 * An rdmeta_allocator_t without functions means malloc and free; so does no
 * allocator at all. The caller passes the size to free, so that the user's
 * allocator need not keep it.
 *
 * Without a user's allocator, blocks of a large page's size or more are mapped,
 * and go back to the system when they are freed. (malloc maps such blocks, too,
 * but only until one is freed. From then on it takes them from its heap. There,
 * small blocks between them keep a cache's old tables resident until the
 * process ends.)
 *
 * Threads: these functions take no lock. The public contract promises the
 * user's allocator one call at a time per cache, so callers hold that cache's
 * lock.
 */
#pragma once

#include "rdmeta.h"

#include <stdlib.h>

/* The size of a large page, where the system has them. */
#define RDMETA_ALLOC_LARGE ((size_t)2 << 20)

/* Returns zeroed pages from the system, or NULL where there is no memory. */
void *rdmeta_map(size_t size);
/* Frees what rdmeta_map(size) returned. */
void rdmeta_unmap(void *p, size_t size);

/* Returns `size` bytes, not zeroed, or NULL where there is no memory. The
 * caller frees them with rdmeta_free(). */
static inline void *rdmeta_alloc(const rdmeta_allocator_t *a, size_t size) {
        if (a && a->alloc)
                return a->alloc(a->opaque, size);
        return size < RDMETA_ALLOC_LARGE ? malloc(size) : rdmeta_map(size);
}

/* Frees `p`, which may be NULL. `size` is the size that was allocated. */
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

/* Returns memory as rdmeta_alloc() does, for a block that is used whole and
 * read at random. Its pages are made at once, since one fault per page costs
 * more; with small pages, each read costs a walk of the page tables.
 *
 * From RDMETA_ALLOC_LARGE on, without a user's allocator, it begins at a large
 * page's border and the kernel is advised. Nothing is lost on a system without
 * large pages. */
void *rdmeta_alloc_large(const rdmeta_allocator_t *a, size_t size);
/* Returns such memory from malloc, or NULL where there is none; the caller
 * frees it with free(). It is for a block that is freed and allocated again
 * soon: malloc keeps its pages, so they need not be made again. */
void *rdmeta_alloc_again(size_t size);
