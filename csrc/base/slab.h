/*
 * slab: memory for many objects of a few sizes.
 *
 * A cache has a hundred thousand small objects; malloc's header and rounding
 * would add a tenth to them. So the slab takes memory from the allocator in
 * chunks and cuts it into pieces of whole units:
 *
 *     chunk  [next,size,... | piece | piece | piece | cur ...... end]
 *     fresh  -> chunk -> chunk         reserved, not begun
 *     lists  [1 unit]->piece->piece   [2 units]->piece   ...
 *
 * A piece that is freed goes to the list of its size and is used again for that
 * size only. Topics change their leaders far more often than their shape.
 * Larger pieces go to the allocator. A new chunk is a sixteenth of the slab's
 * bytes, at most RDMETA_ALLOC_LARGE. So neither a small cache nor a large one
 * pays for much memory that it does not use.
 *
 * But shapes do change in the end. When all epochs need two bytes, most blocks
 * have moved to larger pieces, and their old pieces are never used again. So
 * the slab counts the bytes in its lists. When they exceed a part of all bytes,
 * rdmeta_slab_plan() marks the emptiest chunks as *leaving*. It takes their
 * pieces off the lists; a piece of theirs that is freed is only counted.
 *
 *     leaving  chunk   live: 3 pieces   }  the slab's owner moves these to
 *              chunk   live: 9 pieces   }  other chunks, at any time
 *              chunk   live: 0             freed to the allocator
 *
 * A piece that stays in use for long keeps its chunk, with the free bytes
 * there, but no other chunk. A later plan may mark more chunks meanwhile,
 * unless the free bytes of the leaving ones exceed that part themselves.
 *
 * The owner asks for each of its pieces whether its chunk is leaving. The slab
 * only knows how many bytes are live there. A piece has no pointer to its owner
 * or its chunk, and no call looks for the chunk unless one is leaving. So every
 * byte between a chunk's first piece and its end is in a piece in use, in a
 * list, or between `cur` and `end`. A chunk's rest and the lines that colour
 * it, below, are put into the lists for this reason.
 *
 * The first `header_size` bytes of a piece lie before the address that is
 * handed out. That address is a multiple of the unit. So with units of a cache
 * line, the data that a lookup reads begins at a line's begin although a header
 * precedes it.
 *
 *     line            line            line
 *     |       [header |handed out ... |      ][header |handed out ...
 *
 * A piece in a list is in no use. To find code that still reads it, ASan
 * forbids access to it, and a build with RDMETA_POISON overwrites it.
 *
 * Strides that are multiples of 256 bytes would put all those lines into a
 * quarter of the CPU cache's sets. So a free line of another colour follows
 * every 16th such piece.
 */
#pragma once

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

/* The link at the begin of a piece in a list, where its header would be. */
typedef struct __attribute__((packed, aligned(4))) rdmeta_slab_free {
        struct rdmeta_slab_free *next;
} rdmeta_slab_free_t;

typedef struct rdmeta_slab_chunk {
        struct rdmeta_slab_chunk *next;
        size_t size;
        size_t free; /* its bytes in lists, set while a plan is made */
        size_t live; /* its bytes in use, if it is leaving; else 0 */
} rdmeta_slab_chunk_t;

typedef struct rdmeta_slab {
        const rdmeta_allocator_t *allocator;
        char *cur; /* the address that the next piece is handed out at */
        char *end; /* the end of cur's chunk, less the header */
        unsigned shift; /* log2 of a unit */
        unsigned header_size;
        uint32_t strides; /* pieces so far whose size is a multiple of 256 */
        rdmeta_slab_chunk_t *chunks; /* the first is cur's, if any is */
        rdmeta_slab_chunk_t *fresh;
        rdmeta_slab_chunk_t **leaving; /* by address; in `chunks`, too */
        size_t n_leaving, leaving_room;
        size_t bytes;        /* taken from the allocator, not yet freed */
        size_t free;         /* part of `bytes`: in lists */
        size_t fresh_bytes;  /* part of `bytes`: in fresh chunks */
        size_t leaving_free; /* part of `bytes`: in leaving chunks, not live */
        size_t least;        /* no plan is made for fewer free bytes */
        rdmeta_slab_free_t *lists[RDMETA_SLAB_LISTS];
} rdmeta_slab_t;

/* Makes an empty slab. `unit` is a power of two, 8 bytes at least. The slab
 * borrows the allocator. */
void rdmeta_slab_init(rdmeta_slab_t *slab, const rdmeta_allocator_t *allocator,
                      size_t unit, size_t header_size);
/* Frees the chunks. The owner must have freed the larger pieces. */
void rdmeta_slab_destroy(rdmeta_slab_t *slab);

/* Reserves `bytes` for pieces that are not large, or as much of that as there
 * is memory for. */
void rdmeta_slab_reserve(rdmeta_slab_t *slab, size_t bytes);

/* Marks chunks as leaving if the lists have more than bytes / part. Marks about
 * an eighth of all bytes at most. Returns how many chunks it marked. Returns 0
 * also if there is no memory, or if the leaving chunks' free bytes exceed
 * bytes / part. */
size_t rdmeta_slab_plan(rdmeta_slab_t *slab, size_t part);
/* Returns whether the piece's chunk is leaving. */
int rdmeta_slab_leaves(const rdmeta_slab_t *slab, const void *p);
/* Returns the bytes that are in no use: in lists, in fresh chunks, in the rest
 * of cur's chunk, or free in leaving chunks. */
size_t rdmeta_slab_spare(const rdmeta_slab_t *slab);
/* Checks all lists and counts, for tests. Returns NULL, or a text about the
 * first fault. Sets *used to the bytes in use in chunks. */
const char *rdmeta_slab_check(const rdmeta_slab_t *slab, size_t *used);

void *rdmeta_slab_alloc_slow(rdmeta_slab_t *slab, size_t units);
void rdmeta_slab_free_large(rdmeta_slab_t *slab, void *p, size_t units);
/* Frees a piece of a leaving chunk and returns 1. Returns 0, and does nothing,
 * if its chunk is not leaving. */
int rdmeta_slab_free_leaving(rdmeta_slab_t *slab, void *p, size_t bytes);

RDMETA_INLINE size_t rdmeta_slab_units(const rdmeta_slab_t *slab,
                                       size_t size) {
        return (size + ((size_t)1 << slab->shift) - 1) >> slab->shift;
}

/* Returns the bytes that a piece of `size` takes in its chunk. */
RDMETA_INLINE size_t rdmeta_slab_bytes(const rdmeta_slab_t *slab,
                                       size_t size) {
        return rdmeta_slab_units(slab, size) << slab->shift;
}

/* Poisons a piece that is freed, but for the list's link. */
RDMETA_INLINE void rdmeta_slab_poison(const rdmeta_slab_t *slab, void *p,
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

/* Ends a piece's poison when it comes out of a list. */
RDMETA_INLINE void rdmeta_slab_unpoison(const rdmeta_slab_t *slab, void *p,
                                        size_t bytes) {
#ifdef RDMETA_SLAB_ASAN
        ASAN_UNPOISON_MEMORY_REGION((char *)p - slab->header_size, bytes);
#endif
        (void)slab, (void)p, (void)bytes;
}

/* Frees `p`. `size` is the size that was allocated. */
RDMETA_INLINE void rdmeta_slab_free(rdmeta_slab_t *slab, void *p,
                                    size_t size) {
        const size_t units = rdmeta_slab_units(slab, size);
        const size_t bytes = units << slab->shift;
        rdmeta_slab_free_t *f =
                (rdmeta_slab_free_t *)((uintptr_t)p - slab->header_size);

        if (RDMETA_UNLIKELY(units >= RDMETA_SLAB_LISTS)) {
                rdmeta_slab_free_large(slab, p, units);
                return;
        }
        if (RDMETA_UNLIKELY(slab->n_leaving) &&
            rdmeta_slab_free_leaving(slab, p, bytes))
                return;
        rdmeta_slab_poison(slab, p, bytes);
        f->next            = slab->lists[units];
        slab->lists[units] = f;
        slab->free += bytes;
}

/* Frees a line at `cur`, so that the next piece has another colour. */
RDMETA_INLINE void rdmeta_slab_colour(rdmeta_slab_t *slab) {
        char *line = slab->cur;

        slab->cur += (size_t)1 << slab->shift;
        rdmeta_slab_free(slab, line, 1);
}

/* Returns a piece of `size` bytes, header included, not zeroed, or NULL where
 * there is no memory. The caller frees it with rdmeta_slab_free(). */
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
                rdmeta_slab_unpoison(slab, p, bytes);
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
