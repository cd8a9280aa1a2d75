/* slab_fixture: a slab over an allocator that counts, and pieces with their
 * contents, so that a test can check them. */
#pragma once

#include "base/slab.h"

#include "support/testing.h"
#include "topic/topic.h"

/* A slab whose allocator's memory begins `skew` bytes after malloc's, so not at
 * pages or cache lines. */
typedef struct fixture {
        test_heap_t heap;
        size_t skew;
        rdmeta_allocator_t allocator;
        rdmeta_slab_t slab;
} fixture_t;

static TEST_UNUSED void *skewed_alloc(void *opaque, size_t size) {
        fixture_t *w = opaque;
        char *p      = test_heap_alloc(&w->heap, size + 64);

        return p ? p + w->skew : NULL;
}

static TEST_UNUSED void skewed_free(void *opaque, void *p, size_t size) {
        fixture_t *w = opaque;

        test_heap_free(&w->heap, (char *)p - w->skew, size + 64);
}

static TEST_UNUSED void fixture_init(fixture_t *w, size_t unit,
                                     size_t header_size, size_t skew) {
        memset(w, 0, sizeof(*w));
        w->skew             = skew;
        w->allocator.alloc  = skewed_alloc;
        w->allocator.free   = skewed_free;
        w->allocator.opaque = w;
        rdmeta_slab_init(&w->slab, &w->allocator, unit, header_size);
}

/* Checks that the slab and the allocator count the same bytes. */
static TEST_UNUSED void fixture_check(const fixture_t *w) {
        CHECK(w->slab.bytes + 64 * w->heap.blocks == w->heap.bytes);
}

static TEST_UNUSED void fixture_destroy(fixture_t *w) {
        fixture_check(w);
        rdmeta_slab_destroy(&w->slab);
        CHECK(!w->heap.blocks && !w->heap.bytes);
}

/* ---- pieces -------------------------------------------------------------- */

typedef struct piece {
        uint8_t *p; /* its begin: the header, before the address handed out */
        size_t size;
        uint8_t fill;
} piece_t;

static TEST_UNUSED void piece_check(const piece_t *x) {
        size_t i;

        for (i = 0; i < x->size; i++)
                CHECK(x->p[i] == x->fill);
}

static TEST_UNUSED void piece_make(fixture_t *w, piece_t *x, size_t size,
                                   uint8_t fill) {
        char *p = rdmeta_slab_alloc(&w->slab, size);

        CHECK(p);
        CHECK((uintptr_t)p % ((size_t)1 << w->slab.shift) == 0);
        x->p    = (uint8_t *)p - w->slab.header_size;
        x->size = size;
        x->fill = fill;
        memset(x->p, fill, size);
}

static TEST_UNUSED void piece_end(fixture_t *w, piece_t *x) {
        piece_check(x);
        rdmeta_slab_free(&w->slab, x->p + w->slab.header_size, x->size);
        x->p = NULL;
}

static TEST_UNUSED int piece_leaves(const fixture_t *w, const piece_t *x) {
        return rdmeta_slab_leaves(&w->slab, x->p + w->slab.header_size);
}

/* Copies a piece to a new one and frees the old one. */
static TEST_UNUSED void piece_move(fixture_t *w, piece_t *x) {
        piece_t was = *x;

        piece_make(w, x, was.size, was.fill);
        CHECK(!piece_leaves(w, x));
        piece_end(w, &was);
}

/* Returns the bytes that the pieces take in chunks. */
static TEST_UNUSED size_t pieces_bytes(const fixture_t *w, const piece_t *all,
                                       size_t n) {
        size_t bytes = 0, i;

        for (i = 0; i < n; i++)
                if (all[i].p && rdmeta_slab_units(&w->slab, all[i].size) <
                                        RDMETA_SLAB_LISTS)
                        bytes += rdmeta_slab_bytes(&w->slab, all[i].size);
        return bytes;
}
