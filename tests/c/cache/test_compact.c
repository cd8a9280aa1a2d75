/*
 * compact: chunks that are mostly free are given back, and readers, images,
 * handles and the changelog do not change. The tests compare everything that
 * can be read, before and after.
 */
#include "support/compact_fixture.h"

/* ---- memory -------------------------------------------------------------- */

/* Returns the bytes of a cache without its changelog. */
static size_t bytes_kept(cw_t *w) {
        const rdmeta_stats_t s = cw_stats(w);

        return s.bytes - s.bytes_ring;
}

/* Returns the bytes of a cache that never had other topics than these. */
static size_t bytes_of_new(const shape_t *like) {
        size_t bytes;
        cw_t w;

        cw_init(&w, cw_no_changelog);
        set_shape(&w, like, 0, TOPICS, 1);
        bytes = bytes_kept(&w);
        cw_destroy(&w);
        return bytes;
}

CACHE_TEST_WITH(test_topics_that_change_their_size_cost_what_new_ones_do,
                cw_no_changelog) {
        const shape_t *const likes[] = {&thin, &long_, &wide, &small, &thin};
        rdmeta_stats_t s;
        shape_t like;
        size_t fresh;
        int k;

        for (k = 0; k < 5; k++) {
                like = *likes[k];
                like.id = k < 3 ? 'a' : k < 4 ? 'b' : 'c';
                set_shape_slowly(w, &like);
                for (int i = 0; i < 10; i++)
                        cw_sweep(w);
                fresh = bytes_of_new(&like);
                s     = cw_stats(w);
                CHECK(s.bytes_free <= s.bytes / 8 + (64 << 10));
                CHECK(bytes_kept(w) <= fresh + fresh / 4 + (64 << 10));
        }
        CHECK(s.topics_moved > 0);
}

CACHE_TEST_WITH(test_deleted_topics_give_their_memory_back, cw_no_changelog) {
        size_t before, k;
        char name[80];

        set_shape(w, &wide, 0, TOPICS, 1);
        before = cw_bytes(w);
        CHECK(!cw_all(w, "x#x 0:1@1"));
        for (k = 0; k < ALL; k++)
                cw_sweep_after(w, 60 * CW_S);
        CHECK(cw_stats(w).retained == 0);
        CHECK(cw_bytes(w) < before / 4);
        snprintf(name, sizeof(name), "topic-%06u", 0);
        CHECK(cw_leader(w, name, 0) == RDMETA_NOT_CACHED);
}

CACHE_TEST_WITH(test_stats_count_the_bytes_that_are_free, cw_no_changelog) {
        rdmeta_stats_t s, t;

        cw_least(w, SIZE_MAX);
        set_shape(w, &wide, 0, TOPICS, 1);
        s = cw_stats(w);
        CHECK(s.bytes_free < s.bytes / 8 && !s.topics_moved);
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        t = cw_stats(w);
        CHECK(t.bytes_free > s.bytes_free + cw_bytes(w) / 8 * 7);
        CHECK(t.bytes_free < t.bytes);
}

/* ---- what stays the same ------------------------------------------------- */

static void no_call(void *opaque, uint64_t version) {
        (void)version;
        ++*(int *)opaque;
}

CACHE_TEST_WITH(test_a_move_raises_no_version_and_calls_no_watch,
                cw_no_changelog) {
        char *before, *after;
        rdmeta_watch_t *watch;
        int called = 0;
        uint64_t version;
        size_t moved;

        make_churn(w);
        cw_hint(w, "topic-000003-wh topic-000000 in-flight", 0);
        version = cw_version(w);
        before  = cw_dump(w);
        moved   = cw_stats(w).topics_moved;
        watch   = rdmeta_watch_new(w->cache, NULL, 0, no_call, &called);
        CHECK(watch);
        CHECK(plan(w));
        sweep_until_gone(w);
        CHECK(cw_stats(w).topics_moved > moved);
        after = cw_dump(w);
        CHECK_TEXT(after, before);
        CHECK(cw_version(w) == version && !called);
        CHECK_TEXT(cw_changes(w, version), "");
        rdmeta_watch_destroy(watch);
        free(before);
        free(after);
}

static int32_t count_change(void *opaque, const rdmeta_change_t *c) {
        uint64_t *sum = opaque;
        size_t i;

        sum[0]++;
        sum[1] = sum[1] * 31 + c->version + (uint64_t)c->kind;
        sum[1] = sum[1] * 31 + (uint64_t)c->partition;
        for (i = 0; i < c->topic.len; i++)
                sum[1] = sum[1] * 31 + (uint8_t)c->topic.data[i];
        return 0;
}

/* Writes the number of changes since a version, and a hash of them. */
static void changes_sum(cw_t *w, uint64_t since, uint64_t sum[2]) {
        int32_t resync;
        uint64_t until;

        sum[0] = sum[1] = 0;
        CHECK(!rdmeta_cache_changes(w->cache, since, count_change, sum, &until,
                                    &resync));
        CHECK(!resync);
}

/* Blocks that move are the changelog's alone, or readers find them, too. */
CACHE_TEST_WITH(test_changes_are_the_same_after_a_move, cw_no_changelog) {
        uint64_t before[2], after[2], since;
        size_t moved, records;

        make_churn(w);
        w->cache->changelog.limit = 4 << 20;
        since                    = cw_version(w);
        set_shape(w, &wide, 0, TOPICS, 2);
        set_shape(w, &wider, 1, TOPICS, 4);
        set_shape(w, &small, 0, TOPICS, 5); /* other topics, with old names */
        CHECK(!cw_say(w, "topic-000000!3"));
        changes_sum(w, since, before);
        records = cw_stats(w).ring_records;
        moved   = cw_stats(w).topics_moved;
        while (plan(w))
                sweep_until_gone(w);
        CHECK(cw_stats(w).topics_moved > moved + records / 4);
        CHECK(cw_stats(w).ring_records == records);
        changes_sum(w, since, after);
        CHECK(before[0] == after[0] && before[1] == after[1]);
        /* A block that leaves the changelog is freed: the check counts. */
        w->cache->changelog.limit = 0;
        set_shape(w, &thin, 0, 1, 1);
        CHECK(cw_stats(w).ring_records == 0);
}

CACHE_TEST_WITH(test_handles_follow_topics_that_move, cw_no_changelog) {
        rdmeta_handle_t *h[2];

        make_churn(w);
        h[0] = rdmeta_resolve(w->cache, "topic-000000", 12);
        h[1] = rdmeta_resolve(w->cache, "nowhere", 7);
        CHECK(h[0] && h[1]);
        CHECK(plan(w));
        sweep_until_gone(w); /* the check looks at each handle */
        CHECK(rdmeta_handle_leader(w->reader, h[0], 0, w->now.mono_us) == 1);
        rdmeta_handle_release(h[0]);
        rdmeta_handle_release(h[1]);
}

CACHE_TEST_WITH(test_images_do_not_change_while_topics_move, cw_no_changelog) {
        rdmeta_image_t *before, *after;
        uint64_t sum[2] = {0, 0};
        char *was, *is, *later;

        make_churn(w);
        before = iw_image(w);
        was    = iw_text(before, w->now.mono_us);
        CHECK(plan(w));
        while (w->cache->compact_at != UINT32_MAX)
                cw_sweep(w);
        CHECK(cw_leaving(w)); /* it keeps the originals */
        after = iw_image(w);
        is    = iw_text(before, w->now.mono_us);
        later = iw_text(after, w->now.mono_us);
        CHECK_TEXT(is, was);
        CHECK_TEXT(later, was);
        CHECK(!rdmeta_image_diff(before, after, count_change, sum));
        CHECK(!sum[0]);
        set_shape(w, &wide, 0, TOPICS, 2);
        free(is);
        free(later);
        is    = iw_text(before, w->now.mono_us);
        later = iw_text(after, w->now.mono_us);
        CHECK_TEXT(is, was);
        CHECK_TEXT(later, was);
        rdmeta_image_unref(before);
        sweep_until_gone(w); /* the younger image has only copies */
        rdmeta_image_unref(after);
        free(was);
        free(is);
        free(later);
}

/* Moves all topics, and reserves no more slot pages than a step of the cursor
 * needs. */
static void move_all(cw_t *w) {
        CHECK(plan(w));
        while (w->cache->compact_at != UINT32_MAX) {
                rdmeta_notify_lock(&w->cache->notify);
                rdmeta_compact(w->cache, SIZE_MAX, 1);
                rdmeta_entry_collect(w->cache);
                rdmeta_notify_unlock(&w->cache->notify);
        }
        cw_sweep(w); /* frees the originals that nothing keeps */
}

/* The image found these blocks before they were replaced. */
CACHE_TEST_WITH(test_an_image_keeps_replaced_topics_that_the_changelog_moves,
                cw_no_changelog) {
        rdmeta_image_t *image;
        char *was, *is;

        make_churn(w);
        w->cache->changelog.limit = 4 << 20;
        image                    = iw_image(w);
        was                      = iw_text(image, w->now.mono_us);
        set_shape(w, &wide, 0, TOPICS, 2);
        move_all(w);
        w->cache->changelog.limit = 0;
        set_shape(w, &thin, 0, 1, 1);
        cw_sweep(w);
        is = iw_text(image, w->now.mono_us);
        CHECK_TEXT(is, was);
        rdmeta_image_unref(image);
        sweep_until_gone(w);
        free(was);
        free(is);
}

/* The changelog has these blocks as new ones. No image has copied their slot
 * pages yet. */
CACHE_TEST(test_an_image_keeps_live_topics_that_the_changelog_moves) {
        rdmeta_image_t *image;
        char names[4096], *was, *is;
        size_t moved;
        uint32_t i, k;
        int n;

        cw_least(w, SIZE_MAX);
        for (k = 0; k < 40; k++) {
                set_shape(w, &thin, k, TOPICS, 40);
                for (i = n = 0; i < 30; i++)
                        n += snprintf(names + n, sizeof(names) - (size_t)n,
                                      "a-name-in-flight-that-is-not-short-at-"
                                      "all-for-a-name-%03u-%03u ", k, i);
                cw_hint(w, names, 0);
        }
        CHECK(rdmeta_cache_purge_hints(w->cache, NULL, 0, w->now) == 1200);
        image = iw_image(w);
        was   = iw_text(image, w->now.mono_us);
        moved = cw_stats(w).topics_moved;
        move_all(w);
        CHECK(cw_stats(w).topics_moved > moved + 20);
        is = iw_text(image, w->now.mono_us);
        CHECK_TEXT(is, was);
        rdmeta_image_unref(image);
        sweep_until_gone(w);
        free(was);
        free(is);
}

CACHE_TEST_WITH(test_with_an_image_topics_move_only_if_more_is_free,
                cw_no_changelog) {
        rdmeta_image_t *image;
        rdmeta_stats_t s;

        set_shape(w, &thin, 0, TOPICS, 1);
        set_shape(w, &wide, 0, TOPICS, 4);
        image = iw_image(w);
        s     = cw_stats(w);
        CHECK(cw_free(w) > cw_bytes(w) / 8);
        CHECK(cw_free(w) < cw_bytes(w) / 4);
        cw_sweep(w);
        CHECK(cw_stats(w).topics_moved == s.topics_moved);
        rdmeta_image_unref(image);
        cw_sweep(w);
        CHECK(cw_stats(w).topics_moved > s.topics_moved);
}

/* The image keeps originals in the chunks that wait to leave, and nothing in
 * other chunks. */
CACHE_TEST_WITH(test_chunks_that_wait_for_an_image_do_not_stop_other_moves,
                cw_no_changelog) {
        rdmeta_image_t *image;
        uint64_t live;
        int32_t k;

        cw_least(w, SIZE_MAX);
        set_shape(w, &thin, 0, TOPICS, 1);
        set_shape(w, &wide, 0, TOPICS, 2);
        image = iw_image(w);
        CHECK(plan(w));
        for (k = 0; k < 9; k++)
                cw_sweep(w);
        CHECK(cw_leaving(w));
        cw_least(w, 16 << 10);
        for (k = 0; k < 8; k++) {
                const shape_t like = {k % 2 ? 100000 : 1, 1, k % 4,
                                      (uint32_t)(12 - k), (char)('p' + k)};
                int n;

                set_shape_slowly(w, &like);
                for (n = 0; n < ALL; n++)
                        rdmeta_cache_sweep(w->cache, w->now);
        }
        live = cw_stats(w).bytes_images;
        CHECK(cw_leaving(w) && live);
        CHECK(cw_free(w) < (cw_bytes(w) - live) / 2);
        rdmeta_image_unref(image);
        sweep_until_gone(w);
}

CACHE_TEST_WITH(test_a_reader_inside_keeps_topics_that_it_has_found,
                cw_no_changelog) {
        const rdmeta_topic_t *live[TOPICS];
        rdmeta_partition_t p = {.leader = -1}; /* no room for lists */
        char name[80];
        uint32_t i;
        int k;

        make_churn(w);
        rdmeta_reader_enter(w->reader);
        for (i = 0; i < TOPICS; i += 50) {
                snprintf(name, sizeof(name), "topic-%06u", i);
                CHECK(!rdmeta_topic_find(w->reader, name, strlen(name),
                                         w->now.mono_us, &live[i]));
        }
        CHECK(plan(w));
        for (k = 0; k < 5; k++)
                cw_sweep(w);
        CHECK(cw_leaving(w));
        for (i = 0; i < TOPICS; i += 50) {
                CHECK(!rdmeta_topic_partition_at(w->reader, live[i], 0, &p));
                CHECK(p.leader == 1 + (int32_t)(i % 3));
        }
        rdmeta_reader_leave(w->reader);
        sweep_until_gone(w);
}

/* Names in flight have the first slots, and the cursor stops behind them. Their
 * hints end, and the next answer closes the holes that they leave. So half of
 * the topics get slots that the cursor has passed. */
CACHE_TEST(test_topics_that_get_slots_behind_the_cursor_move_too) {
        enum { NAMES = 1000, CALLS = 25 };
        char names[8192];
        uint32_t i, k;
        int n;

        w->cache->changelog.limit = 0;
        for (k = i = 0; k < CALLS; k++) {
                for (n = 0; i < (k + 1) * NAMES / CALLS; i++)
                        n += snprintf(names + n, sizeof(names) - (size_t)n,
                                      "in-flight-%04u ", i);
                cw_hint(w, names, 0);
        }
        make_churn(w);
        CHECK(rdmeta_cache_purge_hints(w->cache, NULL, 0, w->now) == NAMES);
        CHECK(w->cache->order.holes == NAMES);
        cw_least(w, 1);
        rdmeta_notify_lock(&w->cache->notify);
        rdmeta_compact(w->cache, NAMES, SIZE_MAX);
        rdmeta_entry_collect(w->cache);
        rdmeta_notify_unlock(&w->cache->notify);
        CHECK(w->cache->compact_at == NAMES && cw_leaving(w));
        cw_least(w, SIZE_MAX); /* no other plan moves what the cursor misses */
        set_shape(w, &thin, 0, 1, 1);
        CHECK(w->cache->order.holes == 0);
        sweep_until_gone(w);
}

TEST_MAIN()
