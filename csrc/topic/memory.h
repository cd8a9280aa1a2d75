/*
 * memory: the memory of topics' blocks (topic.h).
 *
 *     hot     [line][line][line][line] ...     all bytes that a lookup reads
 *     cold    [cold|columns][cold|columns] ... the rest of the same topics
 *     whole   [cold|hot|columns][cold|hot|columns] ...
 *
 * The hot parts of most topics take one cache line each. They lie next to each
 * other, a few hundred thousand topics in as many lines, and not between
 * columns that no lookup reads. So
 *
 *     - they are in a third of the pages (the addresses of 100 000 topics'
 *       pages of 4 KB do not fit the second level of a TLB otherwise),
 *     - the line that a CPU fetches besides is another topic's hot part, and
 *       not this topic's replicas,
 *     - no bytes are lost in a last line that columns fill in part.
 *
 * A block whose hot part takes more than a line stays in one piece: there is
 * nothing to gain.
 *
 * Each of the three is a slab. In `cold` and `whole`, the cold part is the
 * slab's header.
 */
#pragma once

#include "base/slab.h"

#define RDMETA_LINE 64

enum {
        RDMETA_MEMORY_WHOLE = 0,
        RDMETA_MEMORY_HOT,
        RDMETA_MEMORY_COLD,
        RDMETA_MEMORY_SLABS
};

typedef struct rdmeta_memory {
        rdmeta_slab_t slabs[RDMETA_MEMORY_SLABS];
        const rdmeta_allocator_t *allocator;
} rdmeta_memory_t;

/* A number of bytes per slab. */
typedef struct rdmeta_pieces {
        size_t bytes[RDMETA_MEMORY_SLABS];
} rdmeta_pieces_t;

/* Makes the slabs; `header_size` is the size of a cold part. Borrows the
 * allocator. */
void rdmeta_memory_init(rdmeta_memory_t *b,
                        const rdmeta_allocator_t *allocator,
                        size_t header_size);
/* Frees the chunks. The owner must have freed the larger pieces. */
void rdmeta_memory_destroy(rdmeta_memory_t *b);

/* Calls rdmeta_slab_plan() for each slab. Returns how many chunks it marked as
 * leaving. */
size_t rdmeta_memory_plan(rdmeta_memory_t *b, size_t part);
/* Returns the sum of rdmeta_slab_spare(). */
size_t rdmeta_memory_spare(const rdmeta_memory_t *b);
/* Returns the bytes taken from the allocator and not yet freed. */
size_t rdmeta_memory_bytes(const rdmeta_memory_t *b);

/* Returns how many chunks are leaving. */
RDMETA_INLINE size_t rdmeta_memory_leaving(const rdmeta_memory_t *b) {
        return b->slabs[RDMETA_MEMORY_WHOLE].n_leaving +
               b->slabs[RDMETA_MEMORY_HOT].n_leaving +
               b->slabs[RDMETA_MEMORY_COLD].n_leaving;
}
