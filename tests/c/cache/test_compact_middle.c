/* compact: writes, a purge, images and failures while blocks move. */
#include "support/compact_fixture.h"

TEST(test_moves_that_fail_without_memory_are_done_later) {
        char *before, *after;
        size_t at, failed = 1;
        rdmeta_image_t *image;
        cw_t w;

        for (at = 1; failed; at++) {
                cw_init(&w, NULL);
                make_churn(&w);
                w.cache->changelog.limit =
                        rdmeta_changelog_bytes(&w.cache->changelog) / 2;
                set_shape(&w, &wide, 2, TOPICS, 3);
                image  = at % 2 ? iw_image(&w) : NULL;
                before = cw_facts(&w);
                cw_least(&w, 1);
                w.heap.fail_at = w.heap.calls + at;
                while (cw_leaving(&w) || cw_free(&w) > cw_bytes(&w) / 4) {
                        cw_sweep(&w);
                        if (image && w.cache->compact_at == UINT32_MAX) {
                                rdmeta_image_unref(image);
                                image = NULL;
                        }
                }
                failed         = w.heap.calls >= w.heap.fail_at;
                w.heap.fail_at = 0;
                after          = cw_facts(&w);
                CHECK_TEXT(after, before);
                free(before);
                free(after);
                rdmeta_image_unref(image);
                cw_destroy(&w);
        }
        fprintf(stderr, "    %zu allocations\n", at - 2);
        CHECK(at > 4);
}

static void small_changelog(rdmeta_conf_t *conf) {
        conf->ring_bytes = 64 << 10;
}

typedef struct live {
        rdmeta_image_t *image;
        char *text;
        int64_t mono_us;
} live_t;

/* Takes an image and writes down all that it says. */
static void image_take(cw_t *w, live_t *h) {
        h->image   = iw_image(w);
        h->mono_us = w->now.mono_us;
        h->text    = iw_text(h->image, h->mono_us);
}

/* Checks that an image says what it said at first, and drops it. */
static void image_drop(live_t *h) {
        char *text;

        if (!h->image)
                return;
        text = iw_text(h->image, h->mono_us);
        CHECK_TEXT(text, h->text);
        free(text);
        free(h->text);
        rdmeta_image_unref(h->image);
        h->image = NULL;
}

/* Chunks leave however little is free. Some wait for images, and meanwhile
 * others leave. */
CACHE_TEST_WITH(test_images_kept_for_long_do_not_change, small_changelog) {
        enum { SOME = 800, IMAGES = 4, STEPS = 60 };
        test_rng_t rng      = test_rng(10);
        live_t live[IMAGES] = {{NULL, NULL, 0}};
        size_t k, waited = 0;

        cw_least(w, 1);
        for (k = 0; k < STEPS || !waited; k++) {
                const uint32_t first = (uint32_t)test_below(&rng, SOME);
                const shape_t like   = {
                        1 + 300 * (int32_t)k, 1, (int32_t)test_below(&rng, 4),
                        1 + (uint32_t)test_below(&rng, PARTITIONS),
                        (char)('a' + test_below(&rng, 2))};
                live_t *h = &live[test_below(&rng, IMAGES)];

                set_shape(w, &like, first, SOME,
                          1 + (uint32_t)test_below(&rng, 4));
                waited += cw_leaving(w) &&
                          w->cache->compact_at == UINT32_MAX;
                cw_sweep(w);
                if (h->image && test_below(&rng, 4))
                        continue;
                image_drop(h);
                image_take(w, h);
        }
        for (k = 0; k < IMAGES; k++)
                image_drop(&live[k]);
        sweep_until_gone(w);
}

/* Answers change and remove topics that have moved, and topics that have not.
 * They also change the order of topics. The loop ends when enough has moved,
 * because by chance little may be free for long. */
TEST(test_writes_while_topics_move_are_kept) {
        test_rng_t rng = test_rng(9);
        cw_t w, plain;
        char *a, *b;
        int k;

        cw_init(&w, small_changelog);
        cw_init(&plain, small_changelog);
        for (k = 0; k < 60 || cw_stats(&w).topics_moved <= TOPICS / 4; k++) {
                const uint32_t first = (uint32_t)test_below(&rng, TOPICS);
                const uint32_t step  = 1 + (uint32_t)test_below(&rng, 9);
                shape_t like = {1 + 60 * k, 1, (int32_t)test_below(&rng, 4),
                                PARTITIONS, 'a'};

                if (test_below(&rng, 4) == 0) {
                        like.count = 1 + (uint32_t)test_below(&rng, 12);
                        like.id    = (char)('b' + k);
                }
                if (!cw_leaving(&w) && cw_free(&w))
                        plan(&w);
                rdmeta_notify_lock(&w.cache->notify);
                rdmeta_compact(w.cache, 1 + test_below(&rng, TOPICS), 300);
                rdmeta_entry_collect(w.cache);
                rdmeta_notify_unlock(&w.cache->notify);
                cw_least(&plain, SIZE_MAX);
                set_shape(&w, &like, first, TOPICS, step);
                set_shape(&plain, &like, first, TOPICS, step);
                if (k % 20 == 19) { /* most topics go past their deadline */
                        CHECK(!cw_all(&w, "x#x 0:1@1"));
                        CHECK(!cw_all(&plain, "x#x 0:1@1"));
                        cw_pass(&w, 1000 * CW_S);
                        cw_pass(&plain, 1000 * CW_S);
                        cw_sweep(&w);
                        cw_sweep(&plain);
                }
                a = cw_facts(&w);
                b = cw_facts(&plain);
                CHECK_TEXT(a, b);
                free(a);
                free(b);
                CHECK(k < 1000);
        }
        CHECK(cw_stats(&plain).topics_moved == 0);
        cw_destroy(&w);
        cw_destroy(&plain);
}

CACHE_TEST_WITH(test_a_purge_while_topics_move_frees_all_memory,
                cw_no_changelog) {
        int k;

        make_churn(w);
        CHECK(plan(w));
        rdmeta_notify_lock(&w->cache->notify);
        rdmeta_compact(w->cache, TOPICS / 2, TOPICS);
        rdmeta_entry_collect(w->cache);
        rdmeta_notify_unlock(&w->cache->notify);
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        set_shape(w, &small, 0, 1, 1);
        for (k = 0; k < ALL; k++)
                cw_sweep(w);
        CHECK(cw_bytes(w) < 256 << 10);
}

CACHE_TEST_WITH(test_a_cache_can_end_while_topics_move, cw_no_changelog) {
        make_churn(w);
        CHECK(plan(w));
        rdmeta_notify_lock(&w->cache->notify);
        rdmeta_compact(w->cache, TOPICS / 2, TOPICS);
        rdmeta_notify_unlock(&w->cache->notify);
        CHECK(cw_leaving(w));
}

CACHE_TEST_WITH(test_blocks_that_the_changelog_drops_meanwhile_move_too,
                cw_no_changelog) {
        make_churn(w);
        w->cache->changelog.limit = 4 << 20;
        set_shape(w, &wide, 0, TOPICS, 2);
        set_shape(w, &wider, 1, TOPICS, 4);
        set_shape(w, &small, 0, TOPICS, 5);
        CHECK(plan(w));
        rdmeta_notify_lock(&w->cache->notify);
        rdmeta_compact(w->cache, w->cache->order.count - 1, TOPICS);
        rdmeta_notify_unlock(&w->cache->notify);
        CHECK(w->cache->compact_at == w->cache->order.count - 1);
        w->cache->changelog.limit = 0;
        set_shape(w, &thin, 0, 1, 1);
        CHECK(cw_stats(w).ring_records == 0);
        sweep_until_gone(w);
}

TEST_MAIN()
