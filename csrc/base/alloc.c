#include "base/alloc.h"

#include <stdint.h>
#include <sys/mman.h>

/* glibc has it from 2.36 on. Linux knows it from 5.14 on and refuses it
 * before. */
#if !defined(MADV_POPULATE_WRITE) && defined(__linux__)
#define MADV_POPULATE_WRITE 23
#endif

#define SMALL_PAGE ((uintptr_t)4 << 10)
#define ANY_PAGE ((uintptr_t)64 << 10) /* a multiple of every small page size */
#define POPULATE ((size_t)64 << 10)

/* Advises the kernel about the pages that lie whole within p and size. */
static void advise(void *p, size_t size, uintptr_t page, int advice) {
        const uintptr_t first = ((uintptr_t)p + page - 1) & ~(page - 1);
        const uintptr_t end   = ((uintptr_t)p + size) & ~(page - 1);

        if (first < end)
                madvise((void *)first, end - first, advice);
}

/* Asks for large pages, and has small ones made in one go: one fault per page
 * costs more than the page. */
static void advise_large(void *p, size_t size) {
#ifdef MADV_HUGEPAGE
        advise(p, size, RDMETA_ALLOC_LARGE, MADV_HUGEPAGE);
#endif
#ifdef MADV_POPULATE_WRITE
        if (size < 2 * RDMETA_ALLOC_LARGE)
                advise(p, size, SMALL_PAGE, MADV_POPULATE_WRITE);
#else
        (void)p;
        (void)size;
#endif
}

/* Returns the bytes that are mapped and unmapped for `size`; 0: overflow. */
static size_t whole_pages(size_t size) {
        return (size + ANY_PAGE - 1) & ~(ANY_PAGE - 1);
}

/* Returns new pages, or NULL where there is no memory. */
static char *map_pages(size_t size) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return p == MAP_FAILED ? NULL : (char *)p;
}

void *rdmeta_map(size_t size) {
        return map_pages(whole_pages(size));
}

/* Returns a mapping that begins at a large page's border, or NULL where there
 * is no memory. It maps more than that, and unmaps the rest on both sides. */
static void *map_large(size_t size) {
        const uintptr_t large = RDMETA_ALLOC_LARGE;
        const size_t whole    = whole_pages(size);
        size_t before, after;
        char *p;

        if (whole + large < size)
                return NULL;
        p = map_pages(whole + large);
        if (!p)
                return NULL;
        before = (size_t)(-(uintptr_t)p & (large - 1));
        after  = large - before;
        if (before)
                munmap(p, before);
        munmap(p + before + whole, after);
        return p + before;
}

void rdmeta_unmap(void *p, size_t size) {
        munmap(p, whole_pages(size));
}

void *rdmeta_alloc_large(const rdmeta_allocator_t *a, size_t size) {
        void *p;

        if (size < RDMETA_ALLOC_LARGE || (a && a->alloc))
                p = rdmeta_alloc(a, size);
        else
                p = map_large(size);
        if (p && size >= POPULATE)
                advise_large(p, size);
        return p;
}

void *rdmeta_alloc_again(size_t size) {
        void *p;

        if (size < RDMETA_ALLOC_LARGE)
                p = malloc(size);
        else if (posix_memalign(&p, RDMETA_ALLOC_LARGE, size))
                return NULL;
        if (p && size >= POPULATE)
                advise_large(p, size);
        return p;
}
