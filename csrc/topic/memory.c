#include "topic/memory.h"

/* Cold parts need not be whole lines. */
enum { COLD_UNIT = 16 };

void rdmeta_blocks_init(rdmeta_blocks_t *b,
                        const rdmeta_allocator_t *allocator, size_t lead) {
        b->allocator = allocator;
        rdmeta_slab_init(&b->slabs[RDMETA_BLOCKS_WHOLE], allocator,
                         RDMETA_LINE, lead);
        rdmeta_slab_init(&b->slabs[RDMETA_BLOCKS_HOT], allocator, RDMETA_LINE,
                         0);
        rdmeta_slab_init(&b->slabs[RDMETA_BLOCKS_COLD], allocator, COLD_UNIT,
                         lead);
}

void rdmeta_blocks_destroy(rdmeta_blocks_t *b) {
        int i;

        for (i = 0; i < RDMETA_BLOCKS_SLABS; i++)
                rdmeta_slab_destroy(&b->slabs[i]);
}

size_t rdmeta_blocks_plan(rdmeta_blocks_t *b, size_t part) {
        size_t n = 0;
        int i;

        for (i = 0; i < RDMETA_BLOCKS_SLABS; i++)
                n += rdmeta_slab_plan(&b->slabs[i], part);
        return n;
}

size_t rdmeta_blocks_spare(const rdmeta_blocks_t *b) {
        size_t bytes = 0;
        int i;

        for (i = 0; i < RDMETA_BLOCKS_SLABS; i++)
                bytes += rdmeta_slab_spare(&b->slabs[i]);
        return bytes;
}

size_t rdmeta_blocks_bytes(const rdmeta_blocks_t *b) {
        size_t bytes = 0;
        int i;

        for (i = 0; i < RDMETA_BLOCKS_SLABS; i++)
                bytes += b->slabs[i].bytes;
        return bytes;
}
