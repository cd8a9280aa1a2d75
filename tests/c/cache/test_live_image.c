/*
 * Live images: their cost in memory, the lifetime of blocks and tables under
 * them, and fork.
 *
 * test_image.c tests the lookups of images.
 */
#include "support/image_fixture.h"

#include <sys/wait.h>

/* ---- memory -------------------------------------------------------------- */

static size_t bytes_images(cw_t *w) {
        return cw_stats(w).bytes_images;
}

static void many_topics(cw_t *w, int32_t epoch, uint32_t first, uint32_t n) {
        enum { TOPICS = 20000 };
        static gen_topic_t topics[TOPICS];
        static gen_partition_t rows[TOPICS][4];
        static char names[TOPICS][32];
        static int32_t replicas[3] = {1, 2, 3};
        static rdmeta_broker_t brokers[3];
        gen_cluster_t c = {.topics = topics + first, .brokers = brokers,
                           .topic_count = n, .broker_count = 3,
                           .cluster_id = GEN_STR("c"), .controller = 1};
        const rdmeta_request_t asked = cw_request(w, RDMETA_ASKED_UNKNOWN);
        gen_bytes_t body             = {0};
        uint32_t i, p;

        for (i = 0; i < 3; i++)
                brokers[i] = (rdmeta_broker_t){(int32_t)i + 1, 9092,
                                               GEN_STR("h"), {NULL, 0}};
        for (i = first; i < first + n; i++) {
                snprintf(names[i], sizeof(names[i]), "a.topic.number-%06u", i);
                memset(&topics[i], 0, sizeof(topics[i]));
                topics[i].name            = test_str(names[i]);
                topics[i].partitions      = rows[i];
                topics[i].partition_count = 4;
                memcpy(topics[i].id, &(uint32_t){i + 1}, 4);
                for (p = 0; p < 4; p++)
                        rows[i][p] = (gen_partition_t){
                                .id = (int32_t)p, .leader = 1 + epoch % 3,
                                .epoch    = epoch,
                                .replicas = {replicas, 3},
                                .isr      = {replicas, 3}};
        }
        gen_response(&c, w->api_version, &body);
        CHECK(!cw_apply(w, body.data, body.len, &asked));
        gen_bytes_free(&body);
}

CACHE_TEST_WITH(test_an_old_image_costs_only_the_blocks_that_changed_since,
                cw_no_changelog) {
        size_t taken, after_one, page, block, k;
        rdmeta_image_t *image;

        many_topics(w, 1, 0, 20000);
        CHECK(bytes_images(w) == 0);
        image = rdmeta_cache_image(w->cache, w->now);
        CHECK(image);
        taken = bytes_images(w);
        CHECK(taken < 20000); /* under a byte per topic: nothing is copied */
        page  = w->cache->live_images.names.size;
        page += w->cache->live_images.ids.size;
        block = 256;
        many_topics(w, 2, 5000, 20);
        after_one = bytes_images(w);
        CHECK(after_one > taken + 20 * 64);
        CHECK(after_one <= taken + 20 * (page + block));
        /* The image keeps no block that came and went since. */
        for (k = 3; k < 200; k++)
                many_topics(w, (int32_t)k, 5000, 20);
        CHECK(bytes_images(w) == after_one);
        /* Now all pages are copied, and all old blocks are kept. */
        many_topics(w, 200, 0, 20000);
        CHECK(bytes_images(w) > 20000 * 64);
        CHECK(bytes_images(w) <= 20000 * (block + 2 * 2 * 20));
        rdmeta_image_unref(image);
        CHECK(bytes_images(w) == 0);
}

/* Frees an image while a reader is inside; after that no topic changes any
 * more. `again` is a call that a program makes now and then. */
static void quiet(void (*again)(cw_t *w), int most) {
        rdmeta_image_t *image;
        cw_t w;
        int k;

        cw_init(&w, cw_no_changelog);
        many_topics(&w, 1, 0, 20000);
        image = iw_image(&w);
        many_topics(&w, 2, 0, 20000);
        CHECK(bytes_images(&w) > 20000 * 64);
        rdmeta_reader_enter(w.reader);
        rdmeta_image_unref(image);
        again(&w);
        CHECK(cw_stats(&w).bytes_limbo > 20000 * 64);
        rdmeta_reader_leave(w.reader);
        for (k = 0; k < most; k++)
                again(&w);
        CHECK(cw_stats(&w).bytes_limbo < RDMETA_LIMBO_LOOK);
        cw_destroy(&w);
}

static void sweep_once(cw_t *w) {
        cw_sweep(w);
}

static void ask_once(cw_t *w) {
        CHECK(!cw_asked(w, "none", "none!3"));
}

TEST(test_blocks_of_a_freed_image_are_freed_without_changes) {
        quiet(sweep_once, 3);
        quiet(ask_once, 3 * 16);
}

/* Blocks that were replaced before an image was taken leave the changelog while
 * the image lives. They do not belong to the image, so they are freed. */
CACHE_TEST(test_a_younger_image_keeps_no_block_of_the_changelog) {
        rdmeta_image_t *image;
        size_t taken;

        many_topics(w, 1, 0, 20000);
        many_topics(w, 2, 0, 5000);
        CHECK(cw_stats(w).ring_records == 25000);
        image = rdmeta_cache_image(w->cache, w->now);
        CHECK(image);
        taken                    = bytes_images(w);
        w->cache->changelog.limit = 0;
        many_topics(w, 3, 0, 1);
        CHECK(cw_stats(w).ring_records == 0);
        CHECK(bytes_images(w) <= taken + 4096);
        rdmeta_image_unref(image);
}

CACHE_TEST(test_names_in_flight_use_no_more_memory_beside_an_image) {
        rdmeta_image_t *image;
        size_t bytes = 0;
        char name[32];
        int k;

        CHECK(!cw_say(w, "a#a 0:1@1; b!3"));
        cw_hint(w, "before", 0);
        image = rdmeta_cache_image(w->cache, w->now);
        CHECK(image);
        for (k = 0; k < 1000; k++) {
                snprintf(name, sizeof(name), "flight-%04d", k % 100);
                cw_pass(w, CW_S);
                cw_hint(w, name, 0);
                cw_hint(w, "b", 0);
                CHECK(rdmeta_cache_purge_hints(w->cache, NULL, 0, w->now) > 0);
                cw_check(w);
                if (k == 100)
                        bytes = bytes_images(w);
                CHECK(k < 100 || bytes_images(w) == bytes);
        }
        rdmeta_image_unref(image);
}

/* The memory of a freed block in flight becomes another block of the same name.
 * An image must not take the new block for the old one. */
CACHE_TEST_WITH(test_a_name_in_flight_does_not_become_a_topic_of_an_image,
                cw_no_changelog) {
        /* A long name: both blocks have the same size class. */
        static const char stem[] =
                "a-name-that-is-longer-than-all-that-a-block-has-besides-it";
        char name[80], topics[100];
        rdmeta_image_t *image;
        rdmeta_reader_t *r;
        int k;

        rdmeta_reader_destroy(w->reader);
        rdmeta_reader_destroy(w->stale);
        for (k = 0; k < 50; k++) {
                const void *waits;

                snprintf(name, sizeof(name), "%s-%d", stem, k);
                snprintf(topics, sizeof(topics), "%s 0:1@1", name);
                cw_hint(w, name, 0);
                waits = rdmeta_entry_find(w->cache, name, strlen(name))->topic;
                image = rdmeta_cache_image(w->cache, w->now);
                CHECK(image);
                CHECK(rdmeta_cache_purge_hints(w->cache, NULL, 0, w->now) == 1);
                CHECK(!cw_say(w, topics));
                CHECK(rdmeta_entry_find(w->cache, name, strlen(name))->topic !=
                      waits);
                r = rdmeta_image_reader(image, 0);
                CHECK(r);
                CHECK(rdmeta_leader(r, name, strlen(name), 0,
                                    w->now.mono_us) == RDMETA_NOT_CACHED);
                rdmeta_reader_destroy(r);
                rdmeta_image_unref(image);
        }
        w->reader = w->stale = NULL;
}

/* The cache has another table than the image, but still the same blocks. */
CACHE_TEST(test_deadlines_of_an_image_stay_after_a_change_of_table) {
        static const char name[] = "a.topic.number-000017";
        const rdmeta_topic_t *t, *now;
        rdmeta_topic_info_t before, after;
        const rdmeta_table_t *table;
        rdmeta_image_t *image, *younger;
        rdmeta_reader_t *r;

        many_topics(w, 1, 0, 1000);
        image = rdmeta_cache_image(w->cache, w->now);
        r     = rdmeta_image_reader(image, 0);
        CHECK(image && r);
        table = rdmeta_names(w->cache);
        CHECK(!rdmeta_topic_find(r, name, 21, w->now.mono_us, &t));
        rdmeta_topic_info(r, t, w->now.mono_us, &before);
        many_topics(w, 1, 1000, 19000);
        CHECK(rdmeta_names(w->cache) != table);
        younger = rdmeta_cache_image(w->cache, w->now);
        CHECK(younger);
        cw_pass(w, CW_S);
        w->broker = 3;
        many_topics(w, 1, 0, 100); /* the same facts again */
        CHECK(!rdmeta_topic_find(r, name, 21, w->now.mono_us, &now));
        CHECK(now == t);
        rdmeta_topic_info(r, t, w->now.mono_us, &after);
        CHECK(after.deadline_us == before.deadline_us);
        CHECK(after.source_broker == before.source_broker);
        after = cw_info(w, name);
        CHECK(after.deadline_us == before.deadline_us + CW_S);
        CHECK(after.source_broker == 3 && before.source_broker == 1);
        rdmeta_reader_destroy(r);
        rdmeta_image_unref(younger);
        rdmeta_image_unref(image);
}

/* A clock of nanoseconds since 1970: no deadline in microseconds is so late. */
CACHE_TEST(test_a_stale_topic_is_swept_beside_an_image_by_any_clock) {
        rdmeta_image_t *image;

        w->now.mono_us = INT64_C(1800000000) * 1000000000;
        CHECK(!cw_say(w, "a 0:1@1; b!3"));
        image = iw_image(w);
        cw_sweep_after(w, 1000 * CW_S);
        CHECK(cw_leader(w, "a", 0) == RDMETA_STALE);
        cw_sweep(w);
        rdmeta_image_unref(image);
}

TEST(test_an_image_outlives_every_other_reference) {
        rdmeta_reader_t *r;
        rdmeta_image_t *image;
        rdmeta_conf_t conf;
        test_heap_t heap;
        rdmeta_cache_t *c;

        rdmeta_conf_init(&conf);
        conf.allocator = test_allocator(&heap);
        c              = rdmeta_cache_new(&conf);
        image          = rdmeta_cache_image(c, (rdmeta_time_t){1, 2});
        CHECK(c && image);
        rdmeta_cache_unref(c);
        r = rdmeta_image_reader(image, 0);
        CHECK(r);
        rdmeta_image_unref(image);
        CHECK(rdmeta_leader(r, "t", 1, 0, 0) == RDMETA_NOT_CACHED);
        rdmeta_reader_destroy(r);
        CHECK(!heap.blocks && !heap.bytes);
}

TEST(test_each_cache_has_a_session_of_its_own) {
        static const uint8_t none[16];
        uint8_t first[16];
        rdmeta_image_info_t info;
        int k;

        for (k = 0; k < 2; k++) {
                rdmeta_cache_t *c     = rdmeta_cache_new(NULL);
                rdmeta_image_t *image = rdmeta_cache_image(
                        c, (rdmeta_time_t){0, 0});

                CHECK(c && image);
                rdmeta_image_info(image, &info);
                CHECK(memcmp(info.session, none, 16) != 0);
                CHECK(k == 0 || memcmp(info.session, first, 16) != 0);
                memcpy(first, info.session, 16);
                rdmeta_image_unref(image);
                rdmeta_cache_unref(c);
        }
}

/* ---- fork ---------------------------------------------------------------- */

CACHE_TEST(test_the_child_of_a_fork_can_read_take_and_free_images) {
        rdmeta_image_t *image, *other;
        rdmeta_reader_t *r;
        int status;
        pid_t pid;

        CHECK(!cw_say(w, "a#a 0:1@1 1:2@1"));
        image = rdmeta_cache_image(w->cache, w->now);
        CHECK(image);
        CHECK(!cw_say(w, "a#a 0:3@2 1:2@1"));
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                other = rdmeta_cache_image(w->cache, w->now);
                r     = rdmeta_image_reader(image, 0);
                CHECK(other && r);
                CHECK(rdmeta_leader(r, "a", 1, 0, w->now.mono_us) == 1);
                rdmeta_reader_destroy(r);
                rdmeta_image_unref(image);
                r = rdmeta_image_reader(other, 0);
                CHECK(rdmeta_leader(r, "a", 1, 0, w->now.mono_us) == 3);
                rdmeta_reader_destroy(r);
                rdmeta_image_unref(other);
                rdmeta_reader_destroy(w->reader);
                rdmeta_reader_destroy(w->stale);
                rdmeta_cache_unref(w->cache);
                CHECK(!w->heap.blocks && !w->heap.bytes);
                _Exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        rdmeta_image_unref(image);
}

TEST_MAIN()
