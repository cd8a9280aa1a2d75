/*
 * failing_malloc: the C library's allocations fail where a test wants it. A
 * test includes this header, and behind it the sources that allocate.
 */
#pragma once

#include "base/alloc.h"
#include "support/testing.h"

typedef struct counted {
        size_t calls, fail_at; /* fail_at 0: no call fails */
        size_t chance;         /* one call in so many fails; 0: none */
        int64_t blocks;
        test_rng_t rng;
} counted_t;

static counted_t counted;

static int fails(void) {
        counted.calls++;
        return counted.calls == counted.fail_at ||
               (counted.chance && !test_below(&counted.rng, counted.chance));
}

static TEST_UNUSED void *counting(void *p, const void *old) {
        counted.blocks += p && !old;
        return p;
}

static TEST_UNUSED void counting_free(void *p) {
        counted.blocks -= p != NULL;
        free(p);
}

#define malloc(size) counting(fails() ? NULL : (malloc)(size), NULL)
#define calloc(n, size) counting(fails() ? NULL : (calloc)(n, size), NULL)
#define realloc(p, size) counting(fails() ? NULL : (realloc)(p, size), p)
#define rdmeta_alloc_again(size)                                             \
        counting(fails() ? NULL : (rdmeta_alloc_again)(size), NULL)
/* Replaces free(p), but not the member `free`, which has three arguments. */
#define PICK(a, b, c, picked, ...) picked
#define free(...) PICK(__VA_ARGS__, free, , counting_free, )(__VA_ARGS__)
