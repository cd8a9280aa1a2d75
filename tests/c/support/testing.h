/*
 * testing: checks, memory, randomness and names for all C tests.
 *
 *     TEST(test_something_holds) { CHECK(1 + 1 == 2); }
 *     TEST_MAIN()
 *
 * The program runs its tests in the order in which they are written.
 * A failed CHECK prints its place and ends the process with 1. Each run has a
 * new random seed and prints it; RDMETA_TEST_SEED sets it.
 */
#pragma once

#include "rdmeta.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(cond)                                                          \
        do {                                                                 \
                if (!(cond)) {                                               \
                        fprintf(stderr, "%s:%d: CHECK(%s) failed, seed "     \
                                        "%" PRIu64 "\n",                     \
                                __FILE__, __LINE__, #cond, test_seed);       \
                        _Exit(1);                                            \
                }                                                            \
        } while (0)

#define TEST_UNUSED __attribute__((unused))

static uint64_t test_seed;

/* Sets the seed, before all else. tools/run-c-tests ends a test that hangs. */
static TEST_UNUSED void test_begin(void) {
        const char *given = getenv("RDMETA_TEST_SEED");
        struct timespec t;

        clock_gettime(CLOCK_REALTIME, &t);
        test_seed = given ? strtoull(given, NULL, 0)
                          : ((uint64_t)t.tv_sec << 30 ^ (uint64_t)t.tv_nsec) +
                                (uint64_t)getpid();
        fprintf(stderr, "RDMETA_TEST_SEED=%" PRIu64 "\n", test_seed);
}

/* ---- tests ---------------------------------------------------------- */

typedef struct test_case {
        const char *name;
        void (*run)(void);
        struct test_case *next;
} test_case_t;

static test_case_t *test_first, **test_last = &test_first;

static TEST_UNUSED void test_add(test_case_t *test) {
        *test_last = test;
        test_last  = &test->next;
}

static TEST_UNUSED int test_run_all(void) {
        test_begin();
        for (; test_first; test_first = test_first->next) {
                fprintf(stderr, "  %s\n", test_first->name);
                test_first->run();
        }
        return 0;
}

#define TEST(name)                                                           \
        static void name(void);                                              \
        __attribute__((constructor)) static void name##_add(void) {          \
                static test_case_t test = {#name, name, NULL};               \
                test_add(&test);                                             \
        }                                                                    \
        static void name(void)

/* Begins a test of a new `fixture_t w`, which fixture_init() makes and
 * fixture_destroy() ends; the test has its address. */
#define FIXTURE_TEST(name)                                                   \
        TEST_BETWEEN(name, fixture_t, fixture_init(&w), fixture_destroy(&w))
/* The same with more arguments for fixture_init(). */
#define FIXTURE_TEST_WITH(name, ...)                                         \
        TEST_BETWEEN(name, fixture_t, fixture_init(&w, __VA_ARGS__),         \
                     fixture_destroy(&w))
#define TEST_BETWEEN(name, type, begin, end)                                 \
        static void name##_of(type *w);                                      \
        TEST(name) {                                                         \
                type w;                                                      \
                                                                             \
                begin;                                                       \
                name##_of(&w);                                               \
                end;                                                         \
        }                                                                    \
        static void name##_of(type *w)

#define TEST_MAIN()                                                          \
        int main(void) {                                                     \
                return test_run_all();                                       \
        }

/* ---- memory ---------------------------------------------------------- */

enum { TEST_MAPPED, TEST_RESIDENT };

/* Returns the mapped or resident bytes of this process. */
static TEST_UNUSED size_t test_memory(int which) {
        size_t pages[2] = {0};
        FILE *f         = fopen("/proc/self/statm", "r");

        CHECK(f && fscanf(f, "%zu %zu", &pages[TEST_MAPPED],
                          &pages[TEST_RESIDENT]) == 2);
        fclose(f);
        return pages[which] * (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- randomness ----------------------------------------------------- */

typedef struct test_rng {
        uint64_t state;
} test_rng_t;

/* Returns a generator; each `stream`, thus each thread, gets one of its own. */
static TEST_UNUSED test_rng_t test_rng(uint64_t stream) {
        test_rng_t r = {(test_seed ^ stream * UINT64_C(0x9e3779b97f4a7c15)) *
                            UINT64_C(0xbf58476d1ce4e5b9) | 1};
        return r;
}

/* xorshift64* */
static TEST_UNUSED uint64_t test_u64(test_rng_t *r) {
        r->state ^= r->state >> 12;
        r->state ^= r->state << 25;
        r->state ^= r->state >> 27;
        return r->state * UINT64_C(0x2545f4914f6cdd1d);
}

/* Returns a number from 0 to n - 1. */
static TEST_UNUSED size_t test_below(test_rng_t *r, size_t n) {
        return (size_t)((test_u64(r) >> 16) % n);
}

/* ---- memory --------------------------------------------------------- */

/* An allocator that counts, and fails at one call that a test chooses. */
typedef struct test_heap {
        size_t calls;   /* calls of alloc so far */
        size_t fail_at; /* the call that fails, from 1; 0: none */
        size_t blocks, bytes;
} test_heap_t;

static TEST_UNUSED void *test_heap_alloc(void *opaque, size_t size) {
        test_heap_t *h = opaque;
        void *p        = ++h->calls == h->fail_at ? NULL : malloc(size);

        if (p) {
                h->blocks++;
                h->bytes += size;
        }
        return p;
}

static TEST_UNUSED void test_heap_free(void *opaque, void *p, size_t size) {
        test_heap_t *h = opaque;

        CHECK(p && h->blocks && h->bytes >= size);
        h->blocks--;
        h->bytes -= size;
        memset(p, 0xdb, size); /* so that a late reader fails */
        __asm__ volatile("" : : "r"(p) : "memory");
        free(p);
}

static TEST_UNUSED rdmeta_allocator_t test_allocator(test_heap_t *h) {
        rdmeta_allocator_t a = {test_heap_alloc, test_heap_free, h};

        memset(h, 0, sizeof(*h));
        return a;
}

/* ---- names ---------------------------------------------------------- */

static TEST_UNUSED rdmeta_str_t test_str(const char *s) {
        rdmeta_str_t v = {s, s ? strlen(s) : 0};
        return v;
}
