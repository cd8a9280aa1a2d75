/* slab: chunks that are mostly free leave, and are freed. */
#include "support/slab_fixture.h"

enum { MANY = 20000 };

/* Makes pieces of topics' sizes, and frees all but one in `keep`. */
static void many_make(fixture_t *w, piece_t *all, test_rng_t *r, size_t keep) {
        size_t i;

        for (i = 0; i < MANY; i++)
                piece_make(w, &all[i], 100 + test_below(r, 300), (uint8_t)i);
        for (i = 0; i < MANY; i++)
                if (test_below(r, keep))
                        piece_end(w, &all[i]);
}

static void many_move(fixture_t *w, piece_t *all) {
        size_t i;

        for (i = 0; i < MANY; i++)
                if (all[i].p && piece_leaves(w, &all[i]))
                        piece_move(w, &all[i]);
}

static void many_end(fixture_t *w, piece_t *all) {
        size_t i;

        for (i = 0; i < MANY; i++)
                if (all[i].p)
                        piece_end(w, &all[i]);
}

TEST(test_chunks_mostly_free_are_freed) {
        static piece_t all[MANY];
        size_t keep, used, plans, before;
        fixture_t w;

        for (keep = 2; keep < 40; keep *= 4) {
                const size_t unit = keep == 8 ? 16 : 64;
                test_rng_t r      = test_rng(keep);

                fixture_init(&w, unit, RDMETA_TOPIC_HEADER_SIZE, 16);
                many_make(&w, all, &r, keep);
                before = w.slab.bytes;
                for (plans = 0; rdmeta_slab_plan(&w.slab, 8); plans++) {
                        many_move(&w, all);
                        CHECK(!w.slab.n_leaving);
                }
                CHECK(plans > 0);
                CHECK(!rdmeta_slab_check(&w.slab, &used));
                CHECK(used == pieces_bytes(&w, all, MANY));
                CHECK(w.slab.free <= w.slab.bytes / 8 ||
                      w.slab.free < w.slab.least);
                /* One more chunk was begun when the slab was larger. */
                CHECK(w.slab.bytes <= used + used / 4 + before / 16);
                fixture_check(&w);
                many_end(&w, all);
                fixture_destroy(&w);
        }
}

FIXTURE_TEST_WITH(test_no_piece_comes_from_a_leaving_chunk,
                64, RDMETA_TOPIC_HEADER_SIZE, 0) {
        static piece_t all[MANY];
        test_rng_t r = test_rng(1);
        size_t bytes, i;
        piece_t x;

        many_make(w, all, &r, 3);
        CHECK(rdmeta_slab_plan(&w->slab, 8));
        for (i = 0; i < MANY; i++)
                if (!all[i].p) {
                        piece_make(w, &x, 100 + test_below(&r, 300), 1);
                        CHECK(!piece_leaves(w, &x));
                        all[i] = x;
                }
        bytes = w->slab.bytes;
        many_move(w, all);
        CHECK(!w->slab.n_leaving && w->slab.bytes < bytes);
        many_end(w, all);
}

FIXTURE_TEST_WITH(test_more_chunks_leave_until_they_have_too_much_free,
                64, RDMETA_TOPIC_HEADER_SIZE, 0) {
        static piece_t all[MANY];
        test_rng_t r = test_rng(1);
        size_t plans, leaving, leaving_free;

        many_make(w, all, &r, 2);
        for (plans = 0;; plans++) {
                leaving      = w->slab.n_leaving;
                leaving_free = w->slab.leaving_free;
                if (!rdmeta_slab_plan(&w->slab, 8))
                        break;
                CHECK(w->slab.n_leaving > leaving);
                CHECK(w->slab.leaving_free > leaving_free);
                CHECK(leaving_free <= w->slab.bytes / 8);
                fixture_check(w);
        }
        CHECK(plans > 1 && leaving_free > w->slab.bytes / 8);
        many_move(w, all);
        CHECK(!w->slab.n_leaving && !w->slab.leaving_free);
        many_end(w, all);
}

FIXTURE_TEST_WITH(test_a_chunk_is_freed_with_its_last_live_piece,
                64, RDMETA_TOPIC_HEADER_SIZE, 8) {
        static piece_t all[MANY];
        test_rng_t r = test_rng(2);
        size_t blocks, leaving, i;

        many_make(w, all, &r, 4);
        leaving = rdmeta_slab_plan(&w->slab, 8);
        CHECK(leaving > 0 && leaving == w->slab.n_leaving);
        for (i = 0; i < MANY && w->slab.n_leaving; i++) {
                if (!all[i].p || !piece_leaves(w, &all[i]))
                        continue;
                blocks  = w->heap.blocks;
                leaving = w->slab.n_leaving;
                piece_end(w, &all[i]);
                /* The array of leaving chunks goes with the last of them. */
                CHECK(blocks - w->heap.blocks ==
                      leaving - w->slab.n_leaving + !w->slab.n_leaving);
                fixture_check(w);
        }
        CHECK(!w->slab.n_leaving);
        many_end(w, all);
}

TEST(test_the_emptiest_chunks_leave_and_an_eighth_of_all_at_most) {
        static piece_t all[MANY];
        test_rng_t r = test_rng(3);
        size_t i, size = 0;
        fixture_t w;

        fixture_init(&w, 64, RDMETA_TOPIC_HEADER_SIZE, 0);
        many_make(&w, all, &r, 1);
        for (i = 0; i < MANY; i++) /* frees nearly all of the first third */
                if (test_below(&r, 32) < (i < MANY / 3 ? 31 : 3))
                        piece_end(&w, &all[i]);
        CHECK(rdmeta_slab_plan(&w.slab, 8));
        for (i = 0; i < w.slab.n_leaving; i++) {
                CHECK(w.slab.leaving[i]->live < w.slab.leaving[i]->size / 8);
                size += w.slab.leaving[i]->size;
        }
        CHECK(size <= w.slab.bytes / 8);
        fixture_destroy(&w); /* while they leave */
}

FIXTURE_TEST_WITH(test_no_chunk_leaves_for_a_little_or_without_memory,
                64, RDMETA_TOPIC_HEADER_SIZE, 0) {
        static piece_t all[MANY];
        test_rng_t r = test_rng(4);
        size_t bytes, i;

        many_make(w, all, &r, 1);
        CHECK(!rdmeta_slab_plan(&w->slab, 8));
        for (i = 0; i < MANY; i++)
                if (test_below(&r, 10) == 0)
                        piece_end(w, &all[i]);
        CHECK(w->slab.free > w->slab.least);
        CHECK(!rdmeta_slab_plan(&w->slab, 8)); /* a tenth is free */
        bytes          = w->slab.bytes;
        w->heap.fail_at = w->heap.calls + 1;
        CHECK(!rdmeta_slab_plan(&w->slab, 16));
        CHECK(w->slab.bytes == bytes && !w->slab.n_leaving);
        CHECK(rdmeta_slab_plan(&w->slab, 16));
        many_move(w, all);
        CHECK(!w->slab.n_leaving);
        many_end(w, all);
}

FIXTURE_TEST_WITH(test_spare_bytes_are_counted,
                64, RDMETA_TOPIC_HEADER_SIZE, 0) {
        static piece_t all[MANY];
        test_rng_t r = test_rng(5);
        size_t spare, used, i;

        CHECK(rdmeta_slab_spare(&w->slab) == 0);
        rdmeta_slab_reserve(&w->slab, 100000);
        CHECK(rdmeta_slab_spare(&w->slab) >= 100000);
        many_make(w, all, &r, 2);
        for (i = 0; i < MANY; i++) {
                spare = rdmeta_slab_spare(&w->slab);
                if (i == 0)
                        CHECK(rdmeta_slab_plan(&w->slab, 8));
                CHECK(rdmeta_slab_spare(&w->slab) == spare);
                if (!all[i].p || piece_leaves(w, &all[i]))
                        continue;
                piece_end(w, &all[i]);
                CHECK(rdmeta_slab_spare(&w->slab) ==
                      spare + rdmeta_slab_bytes(&w->slab, all[i].size));
        }
        CHECK(!rdmeta_slab_check(&w->slab, &used));
        CHECK(used == pieces_bytes(w, all, MANY));
        many_end(w, all);
}

TEST_MAIN()
