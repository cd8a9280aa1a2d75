/*
 * slab: memory for many things of a few sizes.
 *
 * A cache holds a hundred thousand small things; malloc's header and rounding
 * would cost a tenth of them. So memory is taken from the allocator in chunks
 * and cut into pieces of whole units:
 *
 *     chunk  [next,size,... | piece | piece | piece | cur ...... end]
 *     fresh  -> chunk -> chunk         reserved, not begun
 *     lists  [1 unit]->piece->piece   [2 units]->piece   ...
 *
 * A piece that is given back goes to the list of its size and is used again
 * for that size only: topics change their leaders far more often than their
 * shape. Larger pieces go to the allocator. Chunks grow with what is held (a
 * sixteenth of it, RDMETA_ALLOC_LARGE at most), so that neither a small cache
 * nor a large one pays for much that it does not use.
 *
 * But shapes do change in the end: when all epochs have come to need two
 * bytes, most blocks have moved to larger pieces, and nobody asks for those
 * they left. So what is in lists is counted, and when it is more than a part
 * of all, rdmeta_slab_plan() tells the emptiest chunks to *leave*: their pieces
 * are taken off the lists, and what is given back of them is only counted.
 *
 *     leaving  chunk   live: 3 pieces   }  the slab's owner makes copies of
 *              chunk   live: 9 pieces   }  these elsewhere, when it likes
 *              chunk   live: 0             given back to the allocator
 *
 * A piece that is held for long keeps its chunk waiting, and with it what was
 * free there, but no other: more may be told to leave meanwhile, unless what
 * waits has itself become such a part of all.
 *
 * Which of its pieces lie there, the owner asks of each; the slab knows no
 * more than how many bytes are left. No piece says whose it is, and no call
 * looks for its chunk unless one is leaving. Every byte between a chunk's first
 * piece and its end is therefore somebody's, or in a list, or before `cur`'s
 * end: rests are cut up for the lists, and so are colours, below.
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
 * of the CPU cache's sets; so every 16th such piece is followed by a line of
 * another colour, that is free.
 */
#ifndef RDMETA_BASE_SLAB_H
#define RDMETA_BASE_SLAB_H

#include "base/buf.h"
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

/* At the begin of a piece that nobody has, before its lead. */
typedef struct __attribute__((packed, aligned(4))) rdmeta_slab_free {
        struct rdmeta_slab_free *next;
} rdmeta_slab_free_t;

typedef struct rdmeta_slab_chunk {
        struct rdmeta_slab_chunk *next;
        size_t size;
        size_t free; /* in lists, while a plan is made */
        size_t live; /* what one that leaves waits for; 0: it does not */
} rdmeta_slab_chunk_t;

typedef struct rdmeta_slab {
        const rdmeta_allocator_t *allocator;
        char *cur; /* the next piece's handed-out address */
        char *end; /* of the chunk, less the lead */
        unsigned shift; /* log2 of a unit */
        unsigned header_size;
        uint32_t strides;
        rdmeta_slab_chunk_t *chunks; /* the first is cur's, if any is */
        rdmeta_slab_chunk_t *fresh;
        rdmeta_slab_chunk_t **leaving; /* by address; in `chunks`, too */
        size_t n_leaving, leaving_room;
        size_t bytes; /* asked of the allocator and not given back */
        size_t free;  /* of which in lists ... */
        size_t ahead; /* ... in fresh chunks ... */
        size_t left;  /* ... and of leaving ones, not live */
        size_t least; /* free bytes that no plan is made for */
        rdmeta_slab_free_t *lists[RDMETA_SLAB_LISTS];
} rdmeta_slab_t;

/* Units of 8 bytes at least, powers of two. */
void rdmeta_slab_init(rdmeta_slab_t *slab, const rdmeta_allocator_t *allocator,
                      size_t unit, size_t header_size);
/* Frees the chunks; larger pieces must have been given back. */
void rdmeta_slab_destroy(rdmeta_slab_t *slab);

/* Have `bytes`, for pieces that are not large; where there is no memory it has
 * not. */
void rdmeta_slab_reserve(rdmeta_slab_t *slab, size_t bytes);

/* If lists hold more than a `part`th of all, have chunks leave, an eighth of
 * all at most: how many more; 0: none, or there is no memory, or what those
 * that leave have not given back is more than that part, too. */
size_t rdmeta_slab_plan(rdmeta_slab_t *slab, size_t part);
/* Its chunk is leaving. */
int rdmeta_slab_leaves(const rdmeta_slab_t *slab, const void *p);
/* What nobody has: in lists, not begun, or about to leave. */
size_t rdmeta_slab_spare(const rdmeta_slab_t *slab);
/* Walks all lists, for tests: NULL, or what is wrong. `used`: how much is in
 * use in chunks. */
const char *rdmeta_slab_check(const rdmeta_slab_t *slab, size_t *used);

void *rdmeta_slab_alloc_slow(rdmeta_slab_t *slab, size_t units);
void rdmeta_slab_free_large(rdmeta_slab_t *slab, void *p, size_t units);
/* 1: it was of a chunk that is leaving, and that is all there is to do. */
int rdmeta_slab_left(rdmeta_slab_t *slab, void *p, size_t bytes);

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
        memset((char *)p - slab->header_size, 0xdb, bytes);
#endif
#ifdef RDMETA_SLAB_ASAN
        ASAN_POISON_MEMORY_REGION((char *)p - slab->header_size, bytes);
        ASAN_UNPOISON_MEMORY_REGION((char *)p - slab->header_size,
                                    sizeof(rdmeta_slab_free_t));
#endif
        (void)slab, (void)p, (void)bytes;
}

/* And comes out of it. */
RDMETA_INLINE void rdmeta_slab_remember(const rdmeta_slab_t *slab, void *p,
                                        size_t bytes) {
#ifdef RDMETA_SLAB_ASAN
        ASAN_UNPOISON_MEMORY_REGION((char *)p - slab->header_size, bytes);
#endif
        (void)slab, (void)p, (void)bytes;
}

/* `size` as asked for. */
RDMETA_INLINE void rdmeta_slab_free(rdmeta_slab_t *slab, void *p,
                                    size_t size) {
        const size_t units    = rdmeta_slab_units(slab, size);
        const size_t bytes    = units << slab->shift;
        rdmeta_slab_free_t *f =
                (rdmeta_slab_free_t *)((uintptr_t)p - slab->header_size);

        if (RDMETA_UNLIKELY(units >= RDMETA_SLAB_LISTS)) {
                rdmeta_slab_free_large(slab, p, units);
                return;
        }
        if (RDMETA_UNLIKELY(slab->n_leaving) &&
            rdmeta_slab_left(slab, p, bytes))
                return;
        rdmeta_slab_forget(slab, p, bytes);
        f->next            = slab->lists[units];
        slab->lists[units] = f;
        slab->free += bytes;
}

/* A line of another colour. */
RDMETA_INLINE void rdmeta_slab_colour(rdmeta_slab_t *slab) {
        char *line = slab->cur;

        slab->cur += (size_t)1 << slab->shift;
        rdmeta_slab_free(slab, line, 1);
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
                slab->free -= bytes;
                p = (char *)f + slab->header_size;
                rdmeta_slab_remember(slab, p, bytes);
                return p;
        }
        if (RDMETA_UNLIKELY((size_t)(slab->end - p) < bytes))
                return rdmeta_slab_alloc_slow(slab, units);
        slab->cur = p + bytes;
        if (RDMETA_UNLIKELY(!(bytes & 255)) && !(++slab->strides & 15) &&
            slab->end - slab->cur >= 1 << slab->shift)
                rdmeta_slab_colour(slab);
        return p;
}

#endif /* RDMETA_BASE_SLAB_H */
