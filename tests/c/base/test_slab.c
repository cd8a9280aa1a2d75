/* slab: pieces do not overlap, are aligned, and are used again. */
#include "support/slab_fixture.h"

enum { PIECES = 400, ROUNDS = 10000 };

/* Most sizes are small; some are whole strides; some go to the allocator. */
static size_t any_size(test_rng_t *r) {
        switch (test_below(r, 8)) {
        case 0:
                return 256 * (1 + test_below(r, 3));
        case 1:
                return 1 + test_below(r, 9000);
        default:
                return 1 + test_below(r, 600);
        }
}

/* Sometimes plans that chunks leave; each time moves a piece out of one. */
static void pieces_leave(fixture_t *w, test_rng_t *r, piece_t *pieces) {
        size_t used, i;

        if (test_below(r, 100) == 0)
                rdmeta_slab_plan(&w->slab, 2 + test_below(r, 30));
        i = test_below(r, PIECES);
        if (pieces[i].p && piece_leaves(w, &pieces[i]))
                piece_move(w, &pieces[i]);
        CHECK(!rdmeta_slab_check(&w->slab, &used));
        CHECK(used == pieces_bytes(w, pieces, PIECES));
}

static void pieces_of(size_t unit, size_t header_size, size_t skew) {
        static piece_t pieces[PIECES];
        test_rng_t r = test_rng(unit + header_size + skew);
        fixture_t w;
        int i;

        fixture_init(&w, unit, header_size, skew);
        w.slab.least = 1;
        memset(pieces, 0, sizeof(pieces));
        for (i = 0; i < ROUNDS; i++) {
                piece_t *x = &pieces[test_below(&r, PIECES)];

                if (x->p)
                        piece_end(&w, x);
                else
                        piece_make(&w, x, header_size + any_size(&r),
                                   (uint8_t)i);
                if (test_below(&r, 500) == 0)
                        rdmeta_slab_reserve(&w.slab, test_below(&r, 60000));
                pieces_leave(&w, &r, pieces);
                fixture_check(&w);
        }
        for (i = 0; i < PIECES; i++)
                if (pieces[i].p)
                        piece_end(&w, &pieces[i]);
        fixture_destroy(&w);
}

TEST(test_pieces_are_aligned_and_never_overlap) {
        size_t skew;

        for (skew = 0; skew < 64; skew += 24) {
                pieces_of(8, 0, skew);
                pieces_of(16, 8, skew);
                pieces_of(64, 0, skew);
                pieces_of(64, RDMETA_TOPIC_HEADER_SIZE, skew);
                /* a header of more than one unit */
                pieces_of(16, RDMETA_TOPIC_HEADER_SIZE, skew);
        }
}

/* ---- reuse --------------------------------------------------------------- */

FIXTURE_TEST_WITH(test_a_freed_piece_is_used_again_for_its_size,
                64, RDMETA_TOPIC_HEADER_SIZE, 8) {
        piece_t a, b, c;
        uint8_t *was;

        piece_make(w, &a, 200, 1);
        piece_make(w, &b, 300, 2);
        was = a.p;
        piece_end(w, &a);
        piece_make(w, &c, 300, 3); /* five lines, so not the one of four */
        CHECK(c.p != was);
        piece_make(w, &a, 256, 4); /* four lines, as 200 were */
        CHECK(a.p == was);
        piece_check(&b);
        piece_check(&c);
}

FIXTURE_TEST_WITH(test_large_pieces_are_the_allocators,
                64, RDMETA_TOPIC_HEADER_SIZE, 40) {
        static const size_t sizes[] = {64 * 64 + 1, 5000, 100000, 1 << 20};
        piece_t x[4];
        size_t i;

        for (i = 0; i < 4; i++)
                piece_make(w, &x[i], sizes[i], (uint8_t)(i + 1));
        CHECK(w->heap.blocks == 4);
        fixture_check(w);
        for (i = 0; i < 4; i++)
                piece_end(w, &x[i]);
        CHECK(w->heap.blocks == 0 && w->slab.bytes == 0);
        piece_make(w, &x[0], 64 * 64, 9); /* the largest in a chunk */
        CHECK(w->heap.blocks == 1);
        piece_end(w, &x[0]);
        CHECK(w->heap.blocks == 1);
}

FIXTURE_TEST_WITH(test_the_rest_of_a_chunk_is_not_lost,
                64, RDMETA_TOPIC_HEADER_SIZE, 0) {
        const char *rest = NULL;
        size_t calls, units = 0;

        CHECK(rdmeta_slab_alloc(&w->slab, 64));
        calls = w->heap.calls;
        while (w->heap.calls == calls) {
                rest  = w->slab.cur;
                units = (size_t)(w->slab.end - w->slab.cur) / 64;
                CHECK(rdmeta_slab_alloc(&w->slab, 37 * 64));
        }
        CHECK(units > 0 && units < 37);
        CHECK(rdmeta_slab_alloc(&w->slab, units * 64) == rest);
        CHECK(w->heap.calls == calls + 1);
}

/* ---- chunks -------------------------------------------------------------- */

FIXTURE_TEST_WITH(test_chunks_grow_with_the_slab,
                64, RDMETA_TOPIC_HEADER_SIZE, 16) {
        const size_t size = 3 * 64, most = (size_t)24 << 20;
        size_t used = 0, slack;

        while (used < most) {
                CHECK(rdmeta_slab_alloc(&w->slab, size));
                used += size;
                /* A sixteenth, and one more page, large or small. */
                slack = w->slab.bytes < (5 << 20) ? 32 << 10 : 3 << 20;
                CHECK(w->slab.bytes <= used + used / 16 + slack);
        }
        CHECK(w->heap.calls < most / (16 << 10) / 4);
}

FIXTURE_TEST_WITH(test_reserved_memory_needs_no_allocator,
                64, RDMETA_TOPIC_HEADER_SIZE, 24) {
        enum { N = 3000 };
        const size_t size = 3 * 64;
        size_t calls, i;

        CHECK(rdmeta_slab_alloc(&w->slab, size));
        rdmeta_slab_reserve(&w->slab, N * size);
        calls = w->heap.calls;
        for (i = 0; i < N; i++)
                CHECK(rdmeta_slab_alloc(&w->slab, size));
        rdmeta_slab_reserve(&w->slab, 0);
        CHECK(w->heap.calls == calls); /* the reserved memory was enough */
}

TEST(test_no_memory_changes_nothing) {
        static const size_t sizes[] = {1, 300, 4096, 5000};
        size_t i, bytes;
        piece_t x;
        fixture_t w;

        for (i = 0; i < 4; i++) {
                fixture_init(&w, 64, RDMETA_TOPIC_HEADER_SIZE, 0);
                w.heap.fail_at = 1;
                CHECK(!rdmeta_slab_alloc(&w.slab, sizes[i]));
                CHECK(w.slab.bytes == 0 && !w.heap.blocks);
                piece_make(&w, &x, sizes[i], 7);
                bytes          = w.slab.bytes;
                w.heap.fail_at = w.heap.calls + 1;
                rdmeta_slab_reserve(&w.slab, 1 << 20); /* may reserve less */
                CHECK(w.slab.bytes == bytes);
                piece_end(&w, &x);
                fixture_destroy(&w);
        }
}

/* Without a user's allocator, large chunks are mapped. */
TEST(test_the_c_librarys_memory_works_as_well) {
        rdmeta_slab_t slab;
        size_t i;

        rdmeta_slab_init(&slab, NULL, 64, RDMETA_TOPIC_HEADER_SIZE);
        rdmeta_slab_reserve(&slab, 5 << 20);
        for (i = 0; i < 100000; i++) {
                char *p = rdmeta_slab_alloc(&slab, 100);
                CHECK(p && (uintptr_t)p % 64 == 0);
                memset(p - RDMETA_TOPIC_HEADER_SIZE, (int)i, 100);
        }
        CHECK(slab.bytes >= 100000 * 128);
        rdmeta_slab_destroy(&slab);
}

/* ---- colours ------------------------------------------------------------- */

/* Without colours, pieces of a multiple of 256 bytes would all begin at the
 * same place modulo 256. */
FIXTURE_TEST_WITH(test_strides_of_256_use_all_sets_of_the_cache,
                64, RDMETA_TOPIC_HEADER_SIZE, 0) {
        enum { N = 1024 };
        size_t counts[4] = {0}, i;

        rdmeta_slab_reserve(&w->slab, (N + N / 16) * 256);
        for (i = 0; i < N; i++) {
                const char *p = rdmeta_slab_alloc(&w->slab, 256);
                CHECK(p);
                counts[(uintptr_t)p / 64 % 4]++;
        }
        for (i = 0; i < 4; i++)
                CHECK(counts[i] > N / 8);
}

/* A colour at a chunk's end must not reach beyond it. */
TEST(test_strides_fill_chunks_to_their_ends_and_not_beyond) {
        enum { N = 4000 };
        static piece_t pieces[N];
        size_t skew, i;
        fixture_t w;

        for (skew = 0; skew < 64; skew += 8) {
                fixture_init(&w, 64, RDMETA_TOPIC_HEADER_SIZE, skew);
                for (i = 0; i < N; i++)
                        piece_make(&w, &pieces[i], 256, (uint8_t)i);
                for (i = 0; i < N; i++)
                        piece_end(&w, &pieces[i]);
                fixture_destroy(&w);
        }
}

TEST_MAIN()
