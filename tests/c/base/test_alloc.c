/* alloc: large blocks come from the system, and go back to it. */
#include "base/alloc.h"

#include "support/testing.h"

#include <errno.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static const size_t larges[] = {RDMETA_ALLOC_LARGE, RDMETA_ALLOC_LARGE + 1,
                                3 * RDMETA_ALLOC_LARGE - 100, 40000000};

static void fill(void *p, size_t size) {
        size_t i;

        for (i = 0; i < size; i += PAGE)
                ((char *)p)[i] = (char)i;
        ((char *)p)[size - 1] = 1;
}

/* Returns whether p's page is mapped. */
static int is_there(void *p) {
        unsigned char vec;
        const uintptr_t page = (uintptr_t)p & ~(uintptr_t)(PAGE - 1);

        return mincore((void *)page, 1, &vec) == 0;
}

TEST(test_memory_for_random_reads_begins_at_a_large_page) {
        const rdmeta_allocator_t none = {NULL, NULL, NULL};
        size_t i;
        void *p;

        for (i = 0; i < 4; i++) {
                p = rdmeta_alloc_large(i & 1 ? &none : NULL, larges[i]);
                CHECK(p && (uintptr_t)p % RDMETA_ALLOC_LARGE == 0);
                fill(p, larges[i]);
                rdmeta_free(NULL, p, larges[i]);
        }
}

/* Before each allocation malloc frees a block of the same size. */
TEST(test_large_blocks_go_back_to_the_system_when_freed) {
        size_t i;
        void *p;
        int k;

        for (k = 0; k < 2; k++)
                for (i = 0; i < 4; i++) {
                        free(malloc(larges[i]));
                        p = k ? rdmeta_alloc(NULL, larges[i])
                              : rdmeta_alloc_large(NULL, larges[i]);
                        CHECK(p);
                        fill(p, larges[i]);
                        CHECK(is_there(p));
                        rdmeta_free(NULL, p, larges[i]);
                        CHECK(!is_there(p));
                        CHECK(!is_there((char *)p + larges[i] - 1));
                }
}

TEST(test_no_page_stays_mapped) {
        size_t before, i;
        int k;

        test_memory(TEST_MAPPED); /* has its buffer from now on */
        before = test_memory(TEST_MAPPED);
        for (k = 0; k < 50; k++)
                for (i = 0; i < 4; i++) {
                        rdmeta_free(NULL, rdmeta_alloc_large(NULL, larges[i]),
                                    larges[i]);
                        rdmeta_free(NULL, rdmeta_alloc(NULL, larges[i]),
                                    larges[i]);
                }
        CHECK(test_memory(TEST_MAPPED) <
              before + 50 * (size_t)sysconf(_SC_PAGESIZE));
}

TEST(test_memory_for_reuse_is_mallocs) {
        static const size_t sizes[] = {1, 100000, RDMETA_ALLOC_LARGE,
                                       5000000};
        size_t i;

        for (i = 0; i < 4; i++) {
                void *p = rdmeta_alloc_again(sizes[i]);

                CHECK(p);
                fill(p, sizes[i]);
                free(p);
        }
}

TEST(test_a_callers_allocator_is_asked_for_every_size) {
        test_heap_t heap      = {0};
        rdmeta_allocator_t of = test_allocator(&heap);
        void *a, *b, *c;

        a = rdmeta_alloc(&of, 10);
        b = rdmeta_alloc(&of, larges[2]);
        c = rdmeta_alloc_large(&of, larges[3]);
        CHECK(a && b && c);
        CHECK(heap.blocks == 3 && heap.bytes == 10 + larges[2] + larges[3]);
        rdmeta_free(&of, a, 10);
        rdmeta_free(&of, b, larges[2]);
        rdmeta_free(&of, c, larges[3]);
        CHECK(!heap.blocks && !heap.bytes);
}

TEST(test_more_memory_than_there_is_is_refused) {
        CHECK(!rdmeta_alloc(NULL, SIZE_MAX));
        CHECK(!rdmeta_alloc_large(NULL, SIZE_MAX - 100));
        CHECK(!rdmeta_alloc_large(NULL, SIZE_MAX / 2));
        rdmeta_free(NULL, NULL, SIZE_MAX / 2);
}

TEST_MAIN()
