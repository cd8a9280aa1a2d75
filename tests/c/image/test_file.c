/* Reads images in files, mapped and copied, by any clock. test_file_save.c
 * writes files, test_file_damaged.c reads damaged ones. */
#include "support/image_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* ---- contents and info ------------------------------------------------- */

CACHE_TEST(test_a_file_reads_as_the_image_that_was_saved) {
        const int32_t flags[] = {0, RDMETA_IMAGE_COPY};
        rdmeta_image_t *image, *file;
        const char *path = iw_path("same");
        int i;

        iw_fill(w);
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        for (i = 0; i < 2; i++) {
                file = iw_open(path, flags[i], w->now);
                CHECK(!rdmeta_image_verify(file));
                iw_same(file, image, w->now.mono_us);
                iw_same(file, image, w->now.mono_us + 30 * CW_S);
                iw_same(file, image, w->now.mono_us + 2000 * CW_S);
                rdmeta_image_unref(file);
        }
        rdmeta_image_unref(image);
}

CACHE_TEST(test_an_empty_cache_can_be_saved_and_opened) {
        const char *path = iw_path("empty");
        rdmeta_image_t *image, *file;

        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, RDMETA_IMAGE_SYNC));
        file = iw_open(path, 0, w->now);
        CHECK(!rdmeta_image_verify(file));
        iw_same(file, image, w->now.mono_us);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
}

CACHE_TEST(test_an_opened_file_can_be_saved_again_unchanged) {
        const char *one = iw_path("one"), *two = iw_path("two");
        rdmeta_image_t *image, *file, *again;
        rdmeta_image_info_t a, b;
        rdmeta_time_t later;

        iw_fill(w);
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, one, 0));
        later = w->now;
        later.mono_us += 7 * CW_S; /* another process's clock */
        later.wall_us += 3 * CW_S;
        file = iw_open(one, 0, later);
        CHECK(!rdmeta_image_save(file, two, 0));
        again = iw_open(two, 0, later);
        CHECK(!rdmeta_image_verify(again));
        iw_same(again, file, later.mono_us);
        rdmeta_image_info(file, &a);
        rdmeta_image_info(again, &b);
        CHECK(!memcmp(&a, &b, sizeof(a)));
        rdmeta_image_unref(again);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
}

CACHE_TEST(test_an_images_info_matches_its_cache) {
        const char *path = iw_path("info");
        rdmeta_image_info_t wanted, info;
        rdmeta_image_t *image, *file;
        struct stat st;

        iw_fill(w);
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        rdmeta_image_info(image, &wanted);
        file = iw_open(path, 0, w->now);
        rdmeta_image_info(file, &info);
        CHECK(!stat(path, &st) && info.bytes == (uint64_t)st.st_size);
        CHECK(info.mapped && info.version == cw_version(w));
        CHECK(info.topics == cw_stats(w).topics && info.topics);
        CHECK(info.partitions == cw_stats(w).partitions);
        CHECK(info.negatives == cw_stats(w).negatives && info.negatives);
        CHECK(info.max_age_us == w->conf.max_age_us);
        CHECK(info.taken_mono_us == w->now.mono_us);
        CHECK(info.taken_wall_us == w->now.wall_us);
        CHECK(info.shared_deadline_us == cw_stats(w).shared_deadline_us);
        CHECK(!memcmp(info.session, wanted.session, 16));
        rdmeta_image_unref(file);
        file = iw_open(path, RDMETA_IMAGE_COPY, w->now);
        rdmeta_image_info(file, &info);
        CHECK(!info.mapped);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
}

/* ---- time -------------------------------------------------------------- */

static int64_t taken_at(const char *path, int64_t mono_us, int64_t wall_us) {
        const rdmeta_time_t now = {mono_us, wall_us};
        rdmeta_image_t *file    = iw_open(path, 0, now);
        rdmeta_image_info_t info;

        rdmeta_image_info(file, &info);
        CHECK(!rdmeta_image_verify(file));
        rdmeta_image_unref(file);
        return info.taken_mono_us;
}

CACHE_TEST(test_age_comes_from_the_wall_clock_and_is_never_negative) {
        const char *path = iw_path("age");
        rdmeta_image_t *image;
        int64_t wall;

        CHECK(!cw_all(w, "a 0:1"));
        image = iw_image(w);
        wall  = w->now.wall_us;
        CHECK(!rdmeta_image_save(image, path, 0));
        CHECK(taken_at(path, 50, wall) == 50);
        CHECK(taken_at(path, 50, wall + 20) == 30);
        CHECK(taken_at(path, 50, wall + 200) == -150);
        CHECK(taken_at(path, 50, wall - 1) == 50);
        CHECK(taken_at(path, 50, INT64_MIN) == 50);
        CHECK(taken_at(path, INT64_MIN, INT64_MAX) < 0);
        CHECK(taken_at(path, INT64_MAX, wall) == INT64_MAX);
        rdmeta_image_unref(image);
}

CACHE_TEST(test_deadlines_continue_in_another_process) {
        const char *path = iw_path("ttl");
        rdmeta_image_t *image, *file;
        rdmeta_time_t there;
        rdmeta_reader_t *r;

        CHECK(!cw_all(w, "a 0:1"));
        cw_pass(w, 800 * CW_S); /* of 900 */
        CHECK(!cw_say(w, "b 0:2; n!3; v!29"));
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        there.mono_us = -5;
        there.wall_us = w->now.wall_us + 10 * CW_S;
        file          = iw_open(path, 0, there);
        r             = rdmeta_image_reader(file, 0);
        CHECK(r);
        CHECK(rdmeta_leader(r, "a", 1, 0, -5 + 90 * CW_S) == 1);
        CHECK(rdmeta_leader(r, "a", 1, 0, -4 + 90 * CW_S) == RDMETA_STALE);
        CHECK(rdmeta_leader(r, "b", 1, 0, -5 + 890 * CW_S) == 2);
        CHECK(rdmeta_leader(r, "b", 1, 0, -4 + 890 * CW_S) == RDMETA_STALE);
        CHECK(rdmeta_leader(r, "n", 1, 0, -5) == RDMETA_NOT_CACHED);
        CHECK(rdmeta_leader(r, "v", 1, 0, -5) == RDMETA_DENIED);
        CHECK(rdmeta_leader(r, "v", 1, 0, -4) == RDMETA_NOT_CACHED);
        rdmeta_reader_destroy(r);
        r = rdmeta_image_reader(file, RDMETA_ALLOW_STALE);
        CHECK(rdmeta_leader(r, "a", 1, 0, INT64_MAX) == 1);
        rdmeta_reader_destroy(r);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
}

/* ---- blocks, ids, names ------------------------------------------------ */

CACHE_TEST(test_blocks_are_the_same_bytes_as_in_memory) {
        const char *path = iw_path("bytes");
        rdmeta_image_t *image, *file;
        rdmeta_seen_t a, b;
        size_t i, n, m;

        iw_fill(w);
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        file = iw_open(path, 0, w->now);
        CHECK(!image->ops->order(image, &n) && !file->ops->order(file, &m));
        CHECK(n == m && n > 50);
        for (i = 0; i < n; i++) {
                rdmeta_cold_t x, y;

                CHECK(!image->ops->at(image, i, &a));
                CHECK(!file->ops->at(file, i, &b));
                CHECK((uintptr_t)b.topic % RDMETA_LINE == 0);
                CHECK(rdmeta_topic_same(a.topic, b.topic));
                x = *rdmeta_cold(a.topic);
                y = *rdmeta_cold(b.topic);
                CHECK(y.link == 0);
                CHECK(rdmeta_provenance_of(y.provenance).broker ==
                      a.provenance.broker);
                x.link       = y.link;
                x.provenance = y.provenance;
                CHECK(!memcmp(&x, &y, sizeof(x)));
        }
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
}

/* A lookup of a removed topic returns NOT_CACHED, but the file still has it. A
 * name in flight is not in the file. */
CACHE_TEST(test_a_file_has_removed_topics_but_no_names_in_flight) {
        const char *path = iw_path("gone");
        rdmeta_image_t *image, *file;
        rdmeta_seen_t seen;

        iw_fill(w);
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        file = iw_open(path, 0, w->now);
        CHECK(!file->ops->find(file, "gone", 4, &seen));
        CHECK(seen.topic->state == RDMETA_TOPIC_GONE);
        CHECK(rdmeta_cold(seen.topic)->id[0] == 'g');
        CHECK(rdmeta_topic_count(seen.topic) == 1);
        CHECK(!file->ops->find(file, "n", 1, &seen));
        CHECK(seen.topic->state == RDMETA_TOPIC_UNKNOWN);
        CHECK(seen.deadline != RDMETA_DEADLINE_ASKED);
        CHECK(file->ops->find(file, "in-flight", 9, &seen) ==
              RDMETA_NOT_CACHED);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
}

/* Two topics may have one id, if brokers say so. A lookup by it finds the same
 * topic in the file as in the cache. */
TEST(test_an_id_of_two_topics_finds_the_same_topic_in_the_file) {
        const char *path = iw_path("shared-id");
        const char *ways[] = {"a#x 0:1; b#x 0:1", "b#x 0:1; a#x 0:1"};
        rdmeta_image_t *image, *file;
        int i;

        for (i = 0; i < 2; i++) {
                rdmeta_seen_t in_cache, in_file;
                uint8_t id[16];
                cw_t w;

                cw_init(&w, NULL);
                CHECK(!cw_all(&w, ways[i]));
                image = iw_image(&w);
                CHECK(!rdmeta_image_save(image, path, 0));
                file = iw_open(path, 0, w.now);
                memset(id, 'x', sizeof(id));
                CHECK(!image->ops->find_id(image, id, &in_cache));
                CHECK(!file->ops->find_id(file, id, &in_file));
                CHECK(in_cache.topic->name[0] == in_file.topic->name[0]);
                CHECK(!rdmeta_image_verify(file));
                rdmeta_image_unref(file);
                rdmeta_image_unref(image);
                cw_destroy(&w);
        }
}

TEST(test_topics_with_names_of_all_lengths_are_found) {
        enum { TOPICS = 3000 };
        const char *path = iw_path("many");
        test_rng_t rng   = test_rng(1);
        rdmeta_image_t *image, *file;
        gen_topic_t *topics = calloc(TOPICS, sizeof(*topics));
        gen_partition_t one = {.leader = 1};
        rdmeta_broker_t broker = {1, 9092, GEN_STR("h"), {NULL, 0}};
        gen_cluster_t cluster  = {.brokers = &broker, .broker_count = 1,
                                  .topics = topics, .topic_count = TOPICS};
        char(*names)[400] = calloc(TOPICS, sizeof(*names));
        const rdmeta_request_t asked = {.asked = RDMETA_ASKED_ALL};
        gen_bytes_t body             = {0};
        rdmeta_reader_t *r;
        size_t i, k;
        cw_t w;

        CHECK(topics && names);
        for (i = 0; i < TOPICS; i++) {
                topics[i].name.len = 8 + test_below(&rng, i % 9 ? 40 : 392);
                snprintf(names[i], 9, "%08zu", i);
                for (k = 8; k < topics[i].name.len; k++)
                        names[i][k] = (char)test_u64(&rng);
                topics[i].name.data       = names[i];
                topics[i].partitions      = &one;
                topics[i].partition_count = 1;
                topics[i].id[0] = (uint8_t)(1 + i % 200);
                topics[i].id[9] = (uint8_t)(i / 200);
        }
        cw_init(&w, NULL);
        gen_response(&cluster, 12, &body);
        CHECK(!cw_apply(&w, body.data, body.len, &asked));
        image = iw_image(&w);
        CHECK(!rdmeta_image_save(image, path, 0));
        file = iw_open(path, 0, w.now);
        r    = rdmeta_image_reader(file, 0);
        CHECK(r && !rdmeta_image_verify(file));
        for (i = 0; i < TOPICS; i++) {
                const rdmeta_topic_t *t;

                CHECK(rdmeta_leader(r, names[i], topics[i].name.len, 0,
                                    w.now.mono_us) == 1);
                CHECK(rdmeta_leader(r, names[i], topics[i].name.len, 1,
                                    w.now.mono_us) == RDMETA_NO_PARTITION);
                CHECK(rdmeta_leader(r, names[i], topics[i].name.len - 1, 0,
                                    w.now.mono_us) == RDMETA_NOT_CACHED);
                CHECK(!rdmeta_topic_find_id(r, topics[i].id, w.now.mono_us,
                                            &t));
                CHECK(t->name_len == topics[i].name.len);
        }
        rdmeta_reader_destroy(r);
        iw_same(file, image, w.now.mono_us);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
        cw_destroy(&w);
        gen_bytes_free(&body);
        free(topics);
        free(names);
}

/* ---- errors ------------------------------------------------------------ */

static rdmeta_err_t try_open(const char *path, int32_t flags) {
        const rdmeta_time_t now = {1, 1};
        rdmeta_image_t *none    = NULL;
        const rdmeta_err_t err  = rdmeta_image_open(path, flags, now, &none);

        CHECK(err && !none);
        return err;
}

TEST(test_a_path_that_is_not_an_image_is_refused) {
        const char *path = iw_path("other");

        CHECK(try_open(iw_path("missing"), 0) == RDMETA_ERR_IO);
        CHECK(errno == ENOENT);
        iw_write(path, "", 0);
        CHECK(try_open(path, 0) == RDMETA_ERR_MALFORMED);
        iw_write(path, "PK\3\4 and so on, for more than one line of text", 46);
        CHECK(try_open(path, RDMETA_IMAGE_COPY) == RDMETA_ERR_MALFORMED);
        CHECK(try_open("/tmp", 0) == RDMETA_ERR_IO && errno == EISDIR);
        CHECK(try_open("/dev/zero", 0) == RDMETA_ERR_MALFORMED);
        CHECK(try_open(path, 1 << 9) == RDMETA_ERR_ARGUMENT);
        CHECK(!mkfifo(iw_path("fifo"), 0600)); /* without a writer */
        CHECK(try_open(iw_path("fifo"), 0) == RDMETA_ERR_MALFORMED);
}

TEST_MAIN()
