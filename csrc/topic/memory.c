#include "topic/memory.h"

/* The unit of cold parts, which need not be whole lines. */
enum { COLD_UNIT = 16 };

void rdmeta_memory_init(rdmeta_memory_t *b,
                        const rdmeta_allocator_t *allocator,
                        size_t header_size) {
        b->allocator = allocator;
        rdmeta_slab_init(&b->slabs[RDMETA_MEMORY_WHOLE], allocator,
                         RDMETA_LINE, header_size);
        rdmeta_slab_init(&b->slabs[RDMETA_MEMORY_HOT], allocator, RDMETA_LINE,
                         0);
        rdmeta_slab_init(&b->slabs[RDMETA_MEMORY_COLD], allocator, COLD_UNIT,
                         header_size);
}

void rdmeta_memory_destroy(rdmeta_memory_t *b) {
        int i;

        for (i = 0; i < RDMETA_MEMORY_SLABS; i++)
                rdmeta_slab_destroy(&b->slabs[i]);
}

size_t rdmeta_memory_plan(rdmeta_memory_t *b, size_t part) {
        size_t n = 0;
        int i;

        for (i = 0; i < RDMETA_MEMORY_SLABS; i++)
                n += rdmeta_slab_plan(&b->slabs[i], part);
        return n;
}

size_t rdmeta_memory_spare(const rdmeta_memory_t *b) {
        size_t bytes = 0;
        int i;

        for (i = 0; i < RDMETA_MEMORY_SLABS; i++)
                bytes += rdmeta_slab_spare(&b->slabs[i]);
        return bytes;
}

size_t rdmeta_memory_bytes(const rdmeta_memory_t *b) {
        size_t bytes = 0;
        int i;

        for (i = 0; i < RDMETA_MEMORY_SLABS; i++)
                bytes += b->slabs[i].bytes;
        return bytes;
}
