#include "alloc.h"

#include <stdint.h>
#include <sys/mman.h>

static void advise(void *p, size_t size) {
#ifdef MADV_HUGEPAGE
        const uintptr_t mask  = RDMETA_ALLOC_LARGE - 1;
        const uintptr_t first = ((uintptr_t)p + mask) & ~mask;
        const uintptr_t end   = ((uintptr_t)p + size) & ~mask;

        if (first < end)
                madvise((void *)first, end - first, MADV_HUGEPAGE);
#else
        (void)p;
        (void)size;
#endif
}

void *rdmeta_alloc_large(const rdmeta_allocator_t *a, size_t size) {
        void *p;

        if (size < RDMETA_ALLOC_LARGE)
                return rdmeta_alloc(a, size);
        if (a && a->alloc)
                p = a->alloc(a->opaque, size);
        else if (posix_memalign(&p, RDMETA_ALLOC_LARGE, size))
                return NULL;
        if (p)
                advise(p, size);
        return p;
}
