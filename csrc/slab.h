/*
 * slab: memory for many things of a few sizes.
 *
 * A cache holds a hundred thousand small things; malloc's header and rounding
 * would cost a tenth of them. So memory is taken from the allocator in chunks
 * and cut into pieces of whole units:
 *
 *     chunk  [next,size | piece | piece | piece | cur ...... end]
 *     lists  [1 unit]->piece->piece   [2 units]->piece   ...
 *
 * A piece that is given back goes to the list of its size and is used again
 * for that size only: topics change their leaders far more often than their
 * shape. Larger pieces go to the allocator. Chunks grow with what is held (a
 * sixteenth of it), so that neither a small cache nor a large one pays for
 * much that it does not use; they go back when the cache ends. So what is held
 * after long churn is the most that each size ever took: when all epochs have
 * come to need two bytes, most blocks have moved to larger pieces, and those
 * they left, up to as much again, stay free.
 *
 * `lead` bytes of each piece lie before the address that is handed out, which
 * is a multiple of the unit: with units of a cache line, what a lookup reads
 * begins at a line's begin although something else precedes it.
 *
 *     line          line          line
 *     |       [lead |handed out ... |      ][lead |handed out ...
 *
 * What lies in a list is nobody's, and whoever still reads it is to be found:
 * under ASan it cannot be read, with RDMETA_POISON it is overwritten.
 *
 * Strides that are multiples of 256 would put all those lines into a quarter
 * of the CPU cache's sets; so every 16th such piece is followed by a line that
 * nobody uses.
 */
#ifndef RDMETA_SLAB_H
#define RDMETA_SLAB_H

#include "buf.h"
#include "rdmeta.h"

#if defined(__SANITIZE_ADDRESS__)
#define RDMETA_SLAB_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RDMETA_SLAB_ASAN 1
#endif
#endif
#ifdef RDMETA_SLAB_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define RDMETA_SLAB_LISTS 65 /* pieces of up to 64 units */

typedef struct rdmeta_slab_free {
        struct rdmeta_slab_free *next;
} rdmeta_slab_free_t;

typedef struct rdmeta_slab_chunk {
        struct rdmeta_slab_chunk *next;
        size_t size;
} rdmeta_slab_chunk_t;

typedef struct rdmeta_slab {
        const rdmeta_allocator_t *allocator;
        char *cur; /* the next piece's handed-out address */
        char *end; /* of the chunk, less the lead */
        unsigned shift; /* log2 of a unit */
        unsigned lead;
        uint32_t strides;
        rdmeta_slab_chunk_t *chunks;
        size_t bytes; /* asked of the allocator and not given back */
        rdmeta_slab_free_t *lists[RDMETA_SLAB_LISTS];
} rdmeta_slab_t;

/* Units of 8 bytes at least, powers of two. */
void rdmeta_slab_init(rdmeta_slab_t *slab, const rdmeta_allocator_t *allocator,
                      size_t unit, size_t lead);
/* Frees the chunks; larger pieces must have been given back. */
void rdmeta_slab_destroy(rdmeta_slab_t *slab);

/* Have `bytes` in one piece; where there is no memory it has not. */
void rdmeta_slab_reserve(rdmeta_slab_t *slab, size_t bytes);

void *rdmeta_slab_alloc_slow(rdmeta_slab_t *slab, size_t units);
void rdmeta_slab_free_large(rdmeta_slab_t *slab, void *p, size_t units);

RDMETA_INLINE size_t rdmeta_slab_units(const rdmeta_slab_t *slab,
                                       size_t size) {
        return (size + ((size_t)1 << slab->shift) - 1) >> slab->shift;
}

/* What a piece of `size` really takes. */
RDMETA_INLINE size_t rdmeta_slab_bytes(const rdmeta_slab_t *slab,
                                       size_t size) {
        return rdmeta_slab_units(slab, size) << slab->shift;
}

/* A piece goes into a list: but for the link of the list, nobody has it. */
RDMETA_INLINE void rdmeta_slab_forget(const rdmeta_slab_t *slab, void *p,
                                      size_t bytes) {
#ifdef RDMETA_POISON
        memset((char *)p - slab->lead, 0xdb, bytes);
#endif
#ifdef RDMETA_SLAB_ASAN
        ASAN_POISON_MEMORY_REGION((char *)p - slab->lead, bytes);
        ASAN_UNPOISON_MEMORY_REGION(p, sizeof(rdmeta_slab_free_t));
#endif
        (void)slab, (void)p, (void)bytes;
}

/* And comes out of it. */
RDMETA_INLINE void rdmeta_slab_remember(const rdmeta_slab_t *slab, void *p,
                                        size_t bytes) {
#ifdef RDMETA_SLAB_ASAN
        ASAN_UNPOISON_MEMORY_REGION((char *)p - slab->lead, bytes);
#endif
        (void)slab, (void)p, (void)bytes;
}

/* `size` with the lead. Not zeroed; NULL: no memory. */
RDMETA_INLINE void *rdmeta_slab_alloc(rdmeta_slab_t *slab, size_t size) {
        const size_t units = rdmeta_slab_units(slab, size);
        const size_t bytes = units << slab->shift;
        rdmeta_slab_free_t *f;
        char *p = slab->cur;

        if (RDMETA_UNLIKELY(units >= RDMETA_SLAB_LISTS))
                return rdmeta_slab_alloc_slow(slab, units);
        f = slab->lists[units];
        if (f) {
                slab->lists[units] = f->next;
                rdmeta_slab_remember(slab, f, bytes);
                return f;
        }
        if (RDMETA_UNLIKELY((size_t)(slab->end - p) < bytes))
                return rdmeta_slab_alloc_slow(slab, units);
        slab->cur = p + bytes;
        if (RDMETA_UNLIKELY(!(bytes & 255)) && !(++slab->strides & 15) &&
            slab->end - slab->cur >= 1 << slab->shift)
                slab->cur += (size_t)1 << slab->shift;
        return p;
}

/* `size` as asked for. */
RDMETA_INLINE void rdmeta_slab_free(rdmeta_slab_t *slab, void *p,
                                    size_t size) {
        const size_t units    = rdmeta_slab_units(slab, size);
        rdmeta_slab_free_t *f = (rdmeta_slab_free_t *)p;

        if (RDMETA_UNLIKELY(units >= RDMETA_SLAB_LISTS)) {
                rdmeta_slab_free_large(slab, p, units);
                return;
        }
        rdmeta_slab_forget(slab, p, units << slab->shift);
        f->next            = slab->lists[units];
        slab->lists[units] = f;
}

#endif /* RDMETA_SLAB_H */
