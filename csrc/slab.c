#include "slab.h"

#include "alloc.h"

enum { CHUNK_MIN = 16 << 10, CHUNK_MAX = 4 << 20 };

void rdmeta_slab_init(rdmeta_slab_t *slab,
                      const rdmeta_allocator_t *allocator) {
        memset(slab, 0, sizeof(*slab));
        slab->allocator = allocator;
}

void rdmeta_slab_destroy(rdmeta_slab_t *slab) {
        rdmeta_slab_chunk_t *chunk = slab->chunks;

        while (chunk) {
                rdmeta_slab_chunk_t *next = chunk->next;
                rdmeta_free(slab->allocator, chunk, chunk->size);
                chunk = next;
        }
        rdmeta_slab_init(slab, slab->allocator);
}

/* What is left of the old chunk is too small for what is wanted now, but
 * another piece will fit it. */
static void slab_keep_rest(rdmeta_slab_t *slab) {
        const size_t left = (size_t)(slab->end - slab->cur);

        if (left >= RDMETA_SLAB_UNIT)
                rdmeta_slab_free(slab, slab->cur,
                                 left & ~(size_t)(RDMETA_SLAB_UNIT - 1));
        slab->cur = slab->end;
}

static int slab_chunk_add(rdmeta_slab_t *slab) {
        rdmeta_slab_chunk_t *chunk;
        size_t size = slab->bytes / 8;

        if (size < CHUNK_MIN)
                size = CHUNK_MIN;
        if (size > CHUNK_MAX)
                size = CHUNK_MAX;
        size &= ~(size_t)(RDMETA_SLAB_UNIT - 1);
        chunk = (rdmeta_slab_chunk_t *)rdmeta_alloc(slab->allocator, size);
        if (!chunk)
                return 0;
        slab_keep_rest(slab);
        chunk->next  = slab->chunks;
        chunk->size  = size;
        slab->chunks = chunk;
        slab->cur    = (char *)chunk + sizeof(*chunk);
        slab->end    = (char *)chunk + size;
        slab->bytes += size;
        return 1;
}

void *rdmeta_slab_alloc_slow(rdmeta_slab_t *slab, size_t units) {
        void *p;

        if (units < RDMETA_SLAB_LISTS) {
                if (!slab_chunk_add(slab))
                        return NULL;
                return rdmeta_slab_alloc(slab, units * RDMETA_SLAB_UNIT);
        }
        p = rdmeta_alloc(slab->allocator, units * RDMETA_SLAB_UNIT);
        if (p)
                slab->bytes += units * RDMETA_SLAB_UNIT;
        return p;
}

void rdmeta_slab_free_large(rdmeta_slab_t *slab, void *p, size_t units) {
        slab->bytes -= units * RDMETA_SLAB_UNIT;
        rdmeta_free(slab->allocator, p, units * RDMETA_SLAB_UNIT);
}
