/*
 * Provenance: the broker and the reason of the answer that a topic's block
 * comes from. Caches, images, files, followers of a file and warm starts must
 * return the same provenance.
 */
#include "support/image_fixture.h"

/* Writes the provenance of a topic into `out`, and returns `out`: "1 start" is
 * broker 1 with a reason, "2" has no reason, "-" is no topic. */
static const char *provenance(rdmeta_reader_t *r, const char *topic,
                           int64_t mono_us, char out[300]) {
        const rdmeta_topic_t *t;
        rdmeta_topic_info_t info;

        rdmeta_reader_enter(r);
        rdmeta_topic_find(r, topic, strlen(topic), mono_us, &t);
        strcpy(out, "-");
        if (t) {
                rdmeta_topic_info(r, t, mono_us, &info);
                sprintf(out, info.reason.data ? "%d %.*s" : "%d",
                        info.source_broker, (int)info.reason.len,
                        info.reason.data);
        }
        rdmeta_reader_leave(r);
        return out;
}

#define CHECK_PROVENANCE(w, r, topic, wanted)                                \
        do {                                                                 \
                char text_[300];                                             \
                CHECK_TEXT(provenance(r, topic, (w)->now.mono_us, text_),    \
                           wanted);                                          \
        } while (0)

static void say_for(cw_t *w, int32_t broker, const char *reason,
                    const char *topics) {
        w->broker = broker;
        w->reason = reason;
        CHECK(!cw_say(w, topics));
}

static void all_for(cw_t *w, int32_t broker, const char *reason,
                    const char *topics) {
        w->broker = broker;
        w->reason = reason;
        CHECK(!cw_all(w, topics));
}

/* ---- a cache ------------------------------------------------------------- */

CACHE_TEST(test_the_reason_is_that_of_the_last_answer_with_the_topic) {
        all_for(w, 1, "start", "a 0:1@5; b 0:1@5; c 0:1@5");
        CHECK_PROVENANCE(w, w->reader, "a", "1 start");
        say_for(w, 2, "not the leader", "a 0:2@6"); /* a new block */
        say_for(w, 3, "", "b 0:1@5");               /* the same block */
        CHECK_PROVENANCE(w, w->reader, "a", "2 not the leader");
        CHECK_PROVENANCE(w, w->reader, "b", "3 ");
        CHECK_PROVENANCE(w, w->reader, "c", "1 start");
        say_for(w, 3, NULL, "a 0:2@6");
        CHECK_PROVENANCE(w, w->reader, "a", "3");
        all_for(w, 2, "age", "a 0:2@6; b 0:1@5; c 0:1@5");
        CHECK_PROVENANCE(w, w->reader, "a", "2 age");
        CHECK_PROVENANCE(w, w->reader, "b", "2 age");
        all_for(w, 1, NULL, "a 0:2@6; b 0:1@5; c 0:1@5");
        CHECK_PROVENANCE(w, w->reader, "c", "1");
        CHECK(cw_stats(w).reasons == 4);
        CHECK(cw_stats(w).reasons_dropped == 0);
}

/* The answer is older than the block, or its error leaves the block. */
CACHE_TEST(test_an_answer_that_is_not_taken_leaves_the_reason) {
        all_for(w, 1, "start", "a#a 0:1@5; b 0:1@5");
        say_for(w, 2, "late", "a#a 0:2@4; b!5");
        CHECK_PROVENANCE(w, w->reader, "a", "1 start");
        CHECK_PROVENANCE(w, w->reader, "b", "1 start");
        all_for(w, 3, "age", "a#a 0:2@4; b 0:1@5"); /* a stays */
        CHECK_PROVENANCE(w, w->reader, "a", "1 start");
        CHECK_PROVENANCE(w, w->reader, "b", "3 age");
        all_for(w, 2, "age", "a#a 0:1@5; b 0:1@5");
        all_for(w, 1, "again", "a#a 0:1@5; b 0:1@5"); /* all at once */
        say_for(w, 3, "late", "b!5");
        all_for(w, 3, "late", "a#a 0:2@4; b!5");
        CHECK_PROVENANCE(w, w->reader, "a", "1 again");
        CHECK_PROVENANCE(w, w->reader, "b", "1 again");
}

CACHE_TEST(test_denied_absent_and_removed_have_the_answers_reason) {
        rdmeta_image_t *image;
        rdmeta_seen_t seen;

        all_for(w, 1, "start", "a#a 0:1@5; b#b 0:1@5; c#c 0:1@5");
        say_for(w, 2, "wanted", "a!29; c!3");
        CHECK_PROVENANCE(w, w->reader, "a", "2 wanted");
        CHECK_PROVENANCE(w, w->reader, "c", "2 wanted");
        all_for(w, 3, "age", "a!29; c!3"); /* "b" is absent */
        CHECK_PROVENANCE(w, w->reader, "b", "3 age");
        cw_pass(w, 16 * CW_S);
        cw_sweep(w); /* and removed */
        image = iw_image(w);
        CHECK(!image->ops->find(image, "b", 1, &seen));
        CHECK(seen.topic->state == RDMETA_TOPIC_GONE);
        CHECK(seen.provenance.broker == 3);
        CHECK(image->ops->reason(image, seen.provenance.reason).len == 3);
        rdmeta_image_unref(image);
}

CACHE_TEST(test_a_leader_hint_leaves_the_reason) {
        all_for(w, 1, "start", "a 0:1@5; b 0:1@5");
        say_for(w, 2, "wanted", "b 0:1@5");
        CHECK(cw_leader_hint(w, "a", 0, 2, 6, NULL));
        CHECK(cw_leader_hint(w, "b", 0, 2, 6, NULL));
        CHECK_PROVENANCE(w, w->reader, "a", "1 start");
        CHECK_PROVENANCE(w, w->reader, "b", "2 wanted");
}

CACHE_TEST(test_a_failed_answer_leaves_reasons_and_bytes) {
        uint64_t bytes;

        all_for(w, 1, "start", "a 0:1@5; b 0:1@5");
        CHECK(!cw_say(w, "a 0:1@5")); /* allocates the scratch memory */
        bytes     = cw_stats(w).bytes;
        w->reason  = "another";
        w->brokers = "";
        CHECK(cw_all(w, "a 0:2@6") == RDMETA_ERR_NO_BROKERS);
        w->brokers    = "1,2,3";
        w->cluster_id = "d";
        CHECK(cw_all(w, "a 0:2@6") == RDMETA_ERR_WRONG_CLUSTER);
        CHECK_PROVENANCE(w, w->reader, "a", "1 start");
        CHECK(cw_stats(w).reasons == 1);
        CHECK(cw_stats(w).bytes == bytes);
}

/* The first answer, which allocates the memory of reasons. */
CACHE_TEST(test_a_failed_first_answer_leaves_no_reason) {
        w->reason  = "start";
        w->brokers = "";
        CHECK(cw_all(w, "a 0:2@6") == RDMETA_ERR_NO_BROKERS);
        CHECK(cw_stats(w).reasons == 0 && !w->cache->reasons.bytes);
}

CACHE_TEST(test_a_purge_leaves_the_memory_of_reasons) {
        rdmeta_topic_info_t info;

        all_for(w, 1, "start", "a 0:1@5");
        info = cw_info(w, "a");
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        cw_check(w);
        CHECK(!memcmp(info.reason.data, "start", 5));
        all_for(w, 2, "start", "a 0:1@5");
        CHECK(cw_info(w, "a").reason.data == info.reason.data);
        CHECK(cw_stats(w).reasons == 1);
}

CACHE_TEST(test_reasons_beyond_the_limit_are_dropped_and_counted) {
        char reason[16];
        int i;

        for (i = 0; i < RDMETA_REASONS_MAX + 3; i++) {
                sprintf(reason, "%d", i);
                say_for(w, 1, reason, "a 0:1@5");
        }
        CHECK_PROVENANCE(w, w->reader, "a", "1");
        CHECK(cw_stats(w).reasons == RDMETA_REASONS_MAX);
        CHECK(cw_stats(w).reasons_dropped == 3);
        say_for(w, 2, "7", "a 0:1@5");
        CHECK_PROVENANCE(w, w->reader, "a", "2 7");
        CHECK(cw_stats(w).reasons_dropped == 3);
}

/* ---- images, files, followers, warm starts ------------------ */

CACHE_TEST(test_an_image_keeps_provenance_while_the_cache_changes) {
        rdmeta_image_t *image;
        rdmeta_reader_t *r;

        all_for(w, 1, "start", "a 0:1@5; b 0:1@5; c 0:1@5; d 0:1@5");
        say_for(w, 2, "wanted", "b 0:1@5; c 0:1@5");
        image = iw_image(w);
        r     = rdmeta_image_reader(image, 0);
        CHECK(r);
        say_for(w, 3, "again", "a 0:1@5; b 0:1@5; c 0:2@6");
        all_for(w, 3, "age", "a 0:1@5; b 0:1@5; c 0:2@6; d 0:1@5");
        CHECK_PROVENANCE(w, w->reader, "b", "3 age");
        CHECK_PROVENANCE(w, r, "a", "1 start");
        CHECK_PROVENANCE(w, r, "b", "2 wanted");
        CHECK_PROVENANCE(w, r, "c", "2 wanted");
        CHECK_PROVENANCE(w, r, "d", "1 start");
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        CHECK_PROVENANCE(w, r, "d", "1 start");
        rdmeta_reader_destroy(r);
        rdmeta_image_unref(image);
}

/* Saves an image. Its file has only the reasons that its topics have. */
static rdmeta_image_t *saved(cw_t *w, const char *path) {
        rdmeta_image_t *image;

        all_for(w, 1, "replaced", "a 0:1@5; b 0:1@5; c 0:1@5");
        all_for(w, 1, "start", "a 0:1@5; b 0:1@5; c 0:1@5; e 0:1@5");
        say_for(w, 2, "wanted", "b 0:1@5");
        say_for(w, 3, NULL, "c 0:1@5");
        say_for(w, 3, "", "e 0:1@5");
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        return image;
}

static void saved_check(cw_t *w, rdmeta_reader_t *r) {
        CHECK_PROVENANCE(w, r, "a", "1 start");
        CHECK_PROVENANCE(w, r, "b", "2 wanted");
        CHECK_PROVENANCE(w, r, "c", "3");
        CHECK_PROVENANCE(w, r, "e", "3 ");
        CHECK_PROVENANCE(w, r, "nope", "-");
}

CACHE_TEST(test_a_file_has_the_provenance_of_its_image) {
        const int32_t flags[] = {0, RDMETA_IMAGE_COPY};
        const char *path      = iw_path("provenance");
        rdmeta_image_t *image, *file;
        rdmeta_reader_t *r;
        int i;

        image = saved(w, path);
        r     = rdmeta_image_reader(image, 0);
        CHECK(r);
        saved_check(w, r);
        rdmeta_reader_destroy(r);
        for (i = 0; i < 2; i++) {
                file = iw_open(path, flags[i], w->now);
                CHECK(!rdmeta_image_verify(file));
                CHECK(((rdmeta_file_t *)(void *)file)->head.reasons == 3);
                r = rdmeta_image_reader(file, 0);
                CHECK(r);
                saved_check(w, r);
                rdmeta_reader_destroy(r);
                iw_same(image, file, w->now.mono_us);
                rdmeta_image_unref(file);
        }
        rdmeta_image_unref(image);
}

CACHE_TEST(test_an_attached_reader_sees_the_provenance_of_each_state) {
        const char *path = iw_path("followed");
        rdmeta_image_t *image;
        rdmeta_attach_t *attach;
        rdmeta_reader_t *r;

        rdmeta_image_unref(saved(w, path));
        CHECK(!rdmeta_attach_new(path, 0, 1000, w->now, &attach));
        r = rdmeta_attach_reader(attach, 0);
        CHECK(r);
        saved_check(w, r);
        say_for(w, 1, "news", "a 0:1@5");
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        rdmeta_image_unref(image);
        cw_pass(w, CW_S);
        CHECK_PROVENANCE(w, r, "a", "1 news");
        CHECK_PROVENANCE(w, r, "b", "2 wanted");
        rdmeta_reader_destroy(r);
        rdmeta_attach_destroy(attach);
}

TEST(test_a_warm_start_has_the_reasons_of_the_file) {
        const char *path = iw_path("warm");
        rdmeta_image_t *image, *file;
        cw_t w, v;

        cw_init(&w, NULL);
        image = saved(&w, path);
        file  = iw_open(path, 0, w.now);
        cw_init(&v, NULL);
        v.now = w.now;
        CHECK(!rdmeta_cache_load(v.cache, file, v.now));
        cw_check(&v);
        rdmeta_image_unref(file);
        saved_check(&v, v.stale);
        CHECK(cw_stats(&v).reasons == 3);
        say_for(&v, 1, "first", "b 0:1@5");
        CHECK_PROVENANCE(&v, v.stale, "b", "1 first");
        cw_destroy(&v);
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

TEST(test_a_warm_start_without_memory_leaves_no_reason) {
        const char *path = iw_path("starved");
        rdmeta_image_t *file;
        rdmeta_err_t err;
        size_t nth;
        cw_t w, v;

        cw_init(&w, NULL);
        rdmeta_image_unref(saved(&w, path));
        file = iw_open(path, 0, w.now);
        cw_init(&v, NULL);
        v.now = w.now;
        for (nth = 1;; nth++) {
                v.heap.fail_at = v.heap.calls + nth;
                err = rdmeta_cache_load(v.cache, file, v.now);
                v.heap.fail_at = 0;
                cw_check(&v);
                if (!err)
                        break;
                CHECK(err == RDMETA_ERR_NO_MEMORY);
                CHECK(cw_stats(&v).reasons == 0);
        }
        CHECK(nth > 4 && cw_stats(&v).reasons == 3);
        rdmeta_image_unref(file);
        cw_destroy(&v);
        cw_destroy(&w);
}

/* The table of reasons is almost full, and the image has other reasons. */
TEST(test_a_warm_start_counts_the_reasons_that_it_drops) {
        char reason[16];
        rdmeta_image_t *image;
        cw_t w, v;
        int i;

        cw_init(&w, NULL);
        image = saved(&w, iw_path("full"));
        cw_init(&v, NULL);
        v.now = w.now;
        for (i = 0; i < RDMETA_REASONS_MAX - 2; i++) {
                sprintf(reason, "%d", i);
                say_for(&v, 1, reason, "a 0:1@5");
        }
        CHECK(!rdmeta_cache_purge(v.cache, v.now));
        CHECK(!rdmeta_cache_load(v.cache, image, v.now));
        cw_check(&v);
        CHECK(cw_stats(&v).reasons == RDMETA_REASONS_MAX);
        CHECK(cw_stats(&v).reasons_dropped == 1);
        rdmeta_image_unref(image);
        cw_destroy(&v);
        cw_destroy(&w);
}

TEST_MAIN()
