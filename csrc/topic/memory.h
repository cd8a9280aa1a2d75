/*
 * memory: the memory of topics' blocks (topic.h).
 *
 *     hot     [line][line][line][line] ...     all that a lookup reads
 *     cold    [cold|columns][cold|columns] ... the rest of those
 *     whole   [cold|hot|columns][cold|hot|columns] ...
 *
 * The hot parts of most topics take a line each, and lie behind each other, a
 * few hundred thousand topics in as many lines, instead of each between columns
 * that no lookup reads: they are in a third of the pages, what a CPU fetches
 * besides a line is another topic's and not this one's replicas, and nothing is
 * lost in a last line that columns fill in part. (The addresses of 100 000
 * topics' pages of 4 KB do not fit the second level of a TLB otherwise.) What
 * takes more than a line stays in one piece: there is nothing to be gained.
 *
 * Each is a slab of pieces, with the cold part as its lead.
 */
#ifndef RDMETA_TOPIC_MEMORY_H
#define RDMETA_TOPIC_MEMORY_H

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

/* Of each slab so many bytes. */
typedef struct rdmeta_pieces {
        size_t bytes[RDMETA_MEMORY_SLABS];
} rdmeta_pieces_t;

/* Of pieces' leads, how large they are. */
void rdmeta_memory_init(rdmeta_memory_t *b,
                        const rdmeta_allocator_t *allocator, size_t header_size);
/* Frees the chunks; larger pieces must have been given back. */
void rdmeta_memory_destroy(rdmeta_memory_t *b);

/* As of slabs, of each of them. */
size_t rdmeta_memory_plan(rdmeta_memory_t *b, size_t part);
size_t rdmeta_memory_spare(const rdmeta_memory_t *b);
/* Asked of the allocator and not given back. */
size_t rdmeta_memory_bytes(const rdmeta_memory_t *b);

/* How many chunks are leaving. */
RDMETA_INLINE size_t rdmeta_memory_leaving(const rdmeta_memory_t *b) {
        return b->slabs[RDMETA_MEMORY_WHOLE].n_leaving +
               b->slabs[RDMETA_MEMORY_HOT].n_leaving +
               b->slabs[RDMETA_MEMORY_COLD].n_leaving;
}

#endif /* RDMETA_TOPIC_MEMORY_H */
