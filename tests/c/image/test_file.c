/* An image in a file: what is read of it, mapped and copied, by any clock.
 * How files are written is in test_file_save.c, damaged ones are in
 * test_file_damaged.c. */
#include "support/image_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* ---- what is read ------------------------------------------------------ */

static void test_a_file_says_what_the_image_said(void) {
        const int32_t flags[] = {0, RDMETA_IMAGE_COPY};
        rdmeta_image_t *image, *file;
        const char *path = iw_path("same");
        cw_t w;
        int i;

        cw_init(&w, NULL);
        iw_fill(&w);
        image = iw_image(&w);
        CHECK(!rdmeta_image_save(image, path, 0));
        for (i = 0; i < 2; i++) {
                file = iw_open(path, flags[i], w.now);
                CHECK(!rdmeta_image_verify(file));
                iw_same(file, image, w.now.mono_us);
                iw_same(file, image, w.now.mono_us + 30 * CW_S);
                iw_same(file, image, w.now.mono_us + 2000 * CW_S);
                rdmeta_image_unref(file);
        }
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

static void test_an_empty_cache_has_a_file_too(void) {
        const char *path = iw_path("empty");
        rdmeta_image_t *image, *file;
        cw_t w;

        cw_init(&w, NULL);
        image = iw_image(&w);
        CHECK(!rdmeta_image_save(image, path, RDMETA_IMAGE_SYNC));
        file = iw_open(path, 0, w.now);
        CHECK(!rdmeta_image_verify(file));
        iw_same(file, image, w.now.mono_us);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

static void test_a_file_of_a_file_is_the_same_file(void) {
        const char *one = iw_path("one"), *two = iw_path("two");
        rdmeta_image_t *image, *file, *again;
        rdmeta_image_info_t a, b;
        rdmeta_time_t later;
        cw_t w;

        cw_init(&w, NULL);
        iw_fill(&w);
        image = iw_image(&w);
        CHECK(!rdmeta_image_save(image, one, 0));
        later = w.now;
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
        cw_destroy(&w);
}

static void test_an_image_tells_what_it_is(void) {
        const char *path = iw_path("info");
        rdmeta_image_info_t had, info;
        rdmeta_image_t *image, *file;
        struct stat st;
        cw_t w;

        cw_init(&w, NULL);
        iw_fill(&w);
        image = iw_image(&w);
        CHECK(!rdmeta_image_save(image, path, 0));
        rdmeta_image_info(image, &had);
        file = iw_open(path, 0, w.now);
        rdmeta_image_info(file, &info);
        CHECK(!stat(path, &st) && info.bytes == (uint64_t)st.st_size);
        CHECK(info.mapped && info.version == cw_version(&w));
        CHECK(info.topics == cw_stats(&w).topics && info.topics);
        CHECK(info.partitions == cw_stats(&w).partitions);
        CHECK(info.negatives == cw_stats(&w).negatives && info.negatives);
        CHECK(info.max_age_us == w.conf.max_age_us);
        CHECK(info.taken_mono_us == w.now.mono_us);
        CHECK(info.taken_wall_us == w.now.wall_us);
        CHECK(info.shared_deadline_us == cw_stats(&w).shared_deadline_us);
        CHECK(!memcmp(info.session, had.session, 16));
        rdmeta_image_unref(file);
        file = iw_open(path, RDMETA_IMAGE_COPY, w.now);
        rdmeta_image_info(file, &info);
        CHECK(!info.mapped);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
        cw_destroy(&w);
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

static void test_age_is_the_wall_clocks_and_never_below_zero(void) {
        const char *path = iw_path("age");
        rdmeta_image_t *image;
        int64_t wall;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "a 0:1"));
        image = iw_image(&w);
        wall  = w.now.wall_us;
        CHECK(!rdmeta_image_save(image, path, 0));
        CHECK(taken_at(path, 50, wall) == 50);
        CHECK(taken_at(path, 50, wall + 20) == 30);
        CHECK(taken_at(path, 50, wall + 200) == -150);
        CHECK(taken_at(path, 50, wall - 1) == 50);
        CHECK(taken_at(path, 50, INT64_MIN) == 50);
        CHECK(taken_at(path, INT64_MIN, INT64_MAX) < 0);
        CHECK(taken_at(path, INT64_MAX, wall) == INT64_MAX);
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

static void test_what_is_left_of_a_deadline_is_left_elsewhere(void) {
        const char *path = iw_path("ttl");
        rdmeta_image_t *image, *file;
        rdmeta_time_t there;
        rdmeta_reader_t *r;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "a 0:1"));
        cw_pass(&w, 800 * CW_S); /* of 900 */
        CHECK(!cw_say(&w, "b 0:2; n!3; v!29"));
        image = iw_image(&w);
        CHECK(!rdmeta_image_save(image, path, 0));
        there.mono_us = -5;
        there.wall_us = w.now.wall_us + 10 * CW_S;
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
        cw_destroy(&w);
}

/* ---- what a file holds ------------------------------------------------- */

static void test_blocks_are_the_same_bytes_as_in_memory(void) {
        const char *path = iw_path("bytes");
        rdmeta_image_t *image, *file;
        rdmeta_seen_t a, b;
        size_t i, n, m;
        cw_t w;

        cw_init(&w, NULL);
        iw_fill(&w);
        image = iw_image(&w);
        CHECK(!rdmeta_image_save(image, path, 0));
        file = iw_open(path, 0, w.now);
        CHECK(!image->ops->order(image, &n) && !file->ops->order(file, &m));
        CHECK(n == m && n > 50);
        for (i = 0; i < n; i++) {
                rdmeta_cold_t x, y;

                CHECK(!image->ops->at(image, i, &a));
                CHECK(!file->ops->at(file, i, &b));
                CHECK((uintptr_t)b.topic % RDMETA_LINE == 0);
                CHECK(rdmeta_topic_same(a.topic, b.topic));
                x      = *rdmeta_cold(a.topic);
                y      = *rdmeta_cold(b.topic);
                CHECK(y.link == 0);
                CHECK(rdmeta_provenance_of(y.provenance).broker == a.provenance.broker);
                x.link = y.link;
                x.provenance = y.provenance;
                CHECK(!memcmp(&x, &y, sizeof(x)));
        }
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

/* Those that are gone answer NOT_CACHED and are remembered all the same; what
 * was in flight is nothing. */
static void test_what_is_gone_is_in_a_file_and_what_waits_is_not(void) {
        const char *path = iw_path("gone");
        rdmeta_image_t *image, *file;
        rdmeta_seen_t seen;
        cw_t w;

        cw_init(&w, NULL);
        iw_fill(&w);
        image = iw_image(&w);
        CHECK(!rdmeta_image_save(image, path, 0));
        file = iw_open(path, 0, w.now);
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
        cw_destroy(&w);
}

/* Brokers' word: the one that is found by it in the cache is in the file. */
static void test_an_id_of_two_topics_leads_where_it_led(void) {
        const char *path = iw_path("shared-id");
        const char *ways[] = {"a#x 0:1; b#x 0:1", "b#x 0:1; a#x 0:1"};
        rdmeta_image_t *image, *file;
        int i;

        for (i = 0; i < 2; i++) {
                rdmeta_seen_t had, has;
                uint8_t id[16];
                cw_t w;

                cw_init(&w, NULL);
                CHECK(!cw_all(&w, ways[i]));
                image = iw_image(&w);
                CHECK(!rdmeta_image_save(image, path, 0));
                file = iw_open(path, 0, w.now);
                memset(id, 'x', sizeof(id));
                CHECK(!image->ops->find_id(image, id, &had));
                CHECK(!file->ops->find_id(file, id, &has));
                CHECK(had.topic->name[0] == has.topic->name[0]);
                CHECK(!rdmeta_image_verify(file));
                rdmeta_image_unref(file);
                rdmeta_image_unref(image);
                cw_destroy(&w);
        }
}

static void test_many_topics_of_all_lengths_are_found(void) {
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

static void test_what_is_no_file_of_ours_is_refused(void) {
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
        CHECK(!mkfifo(iw_path("fifo"), 0600)); /* nobody will write to it */
        CHECK(try_open(iw_path("fifo"), 0) == RDMETA_ERR_MALFORMED);
}

int main(void) {
        test_begin(60);
        RUN(test_a_file_says_what_the_image_said);
        RUN(test_an_empty_cache_has_a_file_too);
        RUN(test_a_file_of_a_file_is_the_same_file);
        RUN(test_an_image_tells_what_it_is);
        RUN(test_age_is_the_wall_clocks_and_never_below_zero);
        RUN(test_what_is_left_of_a_deadline_is_left_elsewhere);
        RUN(test_blocks_are_the_same_bytes_as_in_memory);
        RUN(test_what_is_gone_is_in_a_file_and_what_waits_is_not);
        RUN(test_an_id_of_two_topics_leads_where_it_led);
        RUN(test_many_topics_of_all_lengths_are_found);
        RUN(test_what_is_no_file_of_ours_is_refused);
        return 0;
}
