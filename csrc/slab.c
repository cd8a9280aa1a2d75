#include "slab.h"

#include "alloc.h"

/* From CHUNK_LARGE bytes on, chunks are large pages. */
enum { CHUNK_MIN = 16 << 10, CHUNK_LARGE = 16 << 20 };

void rdmeta_slab_init(rdmeta_slab_t *slab, const rdmeta_allocator_t *allocator,
                      size_t unit, size_t lead) {
        memset(slab, 0, sizeof(*slab));
        slab->allocator = allocator;
        slab->lead      = (unsigned)lead;
        while (((size_t)1 << slab->shift) < unit)
                slab->shift++;
}

void rdmeta_slab_destroy(rdmeta_slab_t *slab) {
        rdmeta_slab_chunk_t *chunk = slab->chunks;

        while (chunk) {
                rdmeta_slab_chunk_t *next = chunk->next;
#ifdef RDMETA_SLAB_ASAN
                ASAN_UNPOISON_MEMORY_REGION(chunk, chunk->size);
#endif
                rdmeta_free(slab->allocator, chunk, chunk->size);
                chunk = next;
        }
        slab->chunks = NULL;
        slab->cur = slab->end = NULL;
}

/* The first address from `p` on that can be handed out. */
static char *slab_align(const rdmeta_slab_t *slab, char *p) {
        const uintptr_t unit = (uintptr_t)1 << slab->shift;
        const uintptr_t at   = (uintptr_t)p + slab->lead;

        return p + slab->lead + (((at + unit - 1) & ~(unit - 1)) - at);
}

/* What is left of the old chunk is too small for what is wanted now, but
 * another piece will fit it. */
static void slab_keep_rest(rdmeta_slab_t *slab) {
        const size_t units = (size_t)(slab->end - slab->cur) >> slab->shift;

        if (units && units < RDMETA_SLAB_LISTS)
                rdmeta_slab_free(slab, slab->cur, units << slab->shift);
        slab->cur = slab->end;
}

static size_t chunk_size(const rdmeta_slab_t *slab) {
        const size_t size = slab->bytes / 16;

        if (size < CHUNK_MIN)
                return CHUNK_MIN;
        if (slab->bytes >= CHUNK_LARGE)
                return (size / RDMETA_ALLOC_LARGE + 1) * RDMETA_ALLOC_LARGE;
        return size & ~(size_t)7;
}

static int slab_chunk_add(rdmeta_slab_t *slab, size_t size) {
        rdmeta_slab_chunk_t *chunk =
                (rdmeta_slab_chunk_t *)rdmeta_alloc_large(
                        slab->allocator, size);

        if (!chunk)
                return 0;
        slab_keep_rest(slab);
        chunk->next  = slab->chunks;
        chunk->size  = size;
        slab->chunks = chunk;
        slab->cur    = slab_align(slab, (char *)(chunk + 1));
        slab->end    = (char *)chunk + size - slab->lead;
        slab->bytes += size;
        return 1;
}

void rdmeta_slab_reserve(rdmeta_slab_t *slab, size_t bytes) {
        size_t size = sizeof(rdmeta_slab_chunk_t) + slab->lead +
                      ((size_t)2 << slab->shift) + bytes;

        /* Nearly a large page: have it. */
        if (size % RDMETA_ALLOC_LARGE > RDMETA_ALLOC_LARGE / 8 * 7)
                size = (size / RDMETA_ALLOC_LARGE + 1) * RDMETA_ALLOC_LARGE;
        if ((size_t)(slab->end - slab->cur) < bytes)
                slab_chunk_add(slab, size & ~(size_t)7);
}

/* Before a large piece stands how far from its begin it was handed out. */
static size_t large_size(const rdmeta_slab_t *slab, size_t units) {
        return ((units + 1) << slab->shift) + sizeof(uint32_t);
}

void *rdmeta_slab_alloc_slow(rdmeta_slab_t *slab, size_t units) {
        const size_t size = large_size(slab, units);
        char *raw, *p;
        uint32_t off;

        if (units < RDMETA_SLAB_LISTS) {
                if (!slab_chunk_add(slab, chunk_size(slab)))
                        return NULL;
                return rdmeta_slab_alloc(slab, units << slab->shift);
        }
        raw = (char *)rdmeta_alloc(slab->allocator, size);
        if (!raw)
                return NULL;
        slab->bytes += size;
        p   = slab_align(slab, raw + sizeof(off));
        off = (uint32_t)(p - raw);
        memcpy(p - slab->lead - sizeof(off), &off, sizeof(off));
        return p;
}

void rdmeta_slab_free_large(rdmeta_slab_t *slab, void *p, size_t units) {
        const size_t size = large_size(slab, units);
        char *at          = (char *)p;
        uint32_t off;

        memcpy(&off, at - slab->lead - sizeof(off), sizeof(off));
        slab->bytes -= size;
        rdmeta_free(slab->allocator, at - off, size);
}
