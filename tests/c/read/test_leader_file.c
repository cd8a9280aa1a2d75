/* leader: lookups in a file, by names that take the fast path of read/leader.c.
 */
#include "support/image_fixture.h"

#include <stddef.h>

static const char name[] = "a.name.of.twenty.bytes";

enum { LEN = sizeof(name) - 1 };

/* A file with that topic, and a reader with other clocks than its writer. */
typedef struct filed {
        const char *path;
        rdmeta_time_t saved; /* by the writer's clocks */
        rdmeta_image_t *image;
        rdmeta_reader_t *reader;
} filed_t;

static void filed_save(filed_t *f, const char *topics) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, topics));
        f->path  = iw_path("lookups");
        f->saved = w.now;
        iw_save(&w, f->path);
        cw_destroy(&w);
}

static void filed_open(filed_t *f, rdmeta_time_t now, int32_t flags) {
        f->image  = iw_open(f->path, RDMETA_IMAGE_COPY, now);
        f->reader = rdmeta_image_reader(f->image, flags);
        CHECK(f->reader);
}

static void filed_close(filed_t *f) {
        rdmeta_reader_destroy(f->reader);
        rdmeta_image_unref(f->image);
}

/* Opens a file that is 800 s old with a clock that is at 5 s. */
static void filed_elsewhere(filed_t *f, const char *topics) {
        rdmeta_time_t now = {5 * CW_S, 0};

        filed_save(f, topics);
        now.wall_us = f->saved.wall_us + 800 * CW_S;
        filed_open(f, now, 0);
}

/* Overwrites the file at `offset` of the topic's block. */
static void filed_forge(const filed_t *f, size_t offset, const void *what,
                        size_t size) {
        size_t all;
        uint8_t *bytes = iw_read(f->path, &all);
        uint8_t *at    = memmem(bytes, all, name, LEN);

        CHECK(at);
        memcpy(at - offsetof(rdmeta_topic_t, name) + offset, what, size);
        iw_write(f->path, bytes, all);
        free(bytes);
}

static int32_t ask(const filed_t *f, int32_t partition, int64_t mono_us) {
        return rdmeta_leader(f->reader, name, LEN, partition, mono_us);
}

TEST(test_a_file_older_than_this_clock_becomes_stale_in_time) {
        filed_t f;

        filed_elsewhere(&f, "a.name.of.twenty.bytes 0:1 1:2");
        CHECK(ask(&f, 0, 5 * CW_S) == 1 && ask(&f, 1, 105 * CW_S) == 2);
        CHECK(ask(&f, 0, 105 * CW_S + 1) == RDMETA_STALE);
        CHECK(ask(&f, -1, 5 * CW_S) < -1 && ask(&f, 2, 5 * CW_S) < -1);
        filed_close(&f);
}

TEST(test_the_latest_and_earliest_times_do_not_overflow) {
        filed_t f;

        filed_elsewhere(&f, "a.name.of.twenty.bytes 0:1");
        CHECK(ask(&f, 0, INT64_MAX) == RDMETA_STALE);
        CHECK(ask(&f, 0, INT64_MIN) == 1);
        filed_close(&f);
}

CACHE_TEST(test_a_reader_that_allows_stale_gets_the_last_leader) {
        filed_t f;

        CHECK(!cw_all(w, "a.name.of.twenty.bytes 0:3@1/r1,2,3 1:2@1"));
        CHECK(!cw_all(w, "a.name.of.twenty.bytes 0:-1@2/r1,2,3 1:2@1"));
        f.path = iw_path("last");
        iw_save(w, f.path);
        filed_open(&f, w->now, 0);
        CHECK(ask(&f, 0, w->now.mono_us) == -1);
        filed_close(&f);
        filed_open(&f, w->now, RDMETA_ALLOW_STALE);
        CHECK(ask(&f, 0, w->now.mono_us) == 3);
        CHECK(ask(&f, 1, INT64_MAX) == 2);
        filed_close(&f);
}

/* The file claims more partitions than fit into it. */
TEST(test_a_leader_behind_the_blocks_is_an_error) {
        const uint32_t many = RDMETA_PARTITIONS_MAX;
        const int32_t partitions[] = {1000, 1 << 20, 1 << 28};
        size_t i;
        filed_t f;

        filed_save(&f, "a.name.of.twenty.bytes 0:1 1:2");
        filed_forge(&f, offsetof(rdmeta_topic_t, count), &many, sizeof(many));
        filed_open(&f, f.saved, 0);
        for (i = 0; i < sizeof(partitions) / sizeof(partitions[0]); i++)
                CHECK(ask(&f, partitions[i], f.saved.mono_us) ==
                      RDMETA_ERR_MALFORMED);
        filed_close(&f);
}

/* No byte behind the end of the blocks is a part of a leader. */
TEST(test_a_leader_at_the_end_of_the_blocks_is_an_error) {
        static const char *const topics[] = {"a.name.of.twenty.bytes 0:1 1:2",
                                             "a.name.of.twenty.bytes 0:300"};
        const uint32_t many = RDMETA_PARTITIONS_MAX;
        const rdmeta_file_t *file;
        const char *leaders;
        int32_t width, k;
        filed_t f;

        for (width = 0; width < 2; width++) {
                filed_save(&f, topics[width]);
                filed_forge(&f, offsetof(rdmeta_topic_t, count), &many,
                            sizeof(many));
                filed_open(&f, f.saved, 0);
                file    = rdmeta_file_of(f.image);
                leaders = memmem(file->begin,
                                 (size_t)(file->end - file->begin), name, LEN);
                CHECK(leaders);
                leaders += LEN;
                for (k = 0; k < 16; k++)
                        CHECK(ask(&f,
                                  ((int32_t)(file->end - leaders) >> width) +
                                          k,
                                  f.saved.mono_us) == RDMETA_ERR_MALFORMED);
                filed_close(&f);
        }
}

/* Most widths exceed the number of bits that a shift allows. */
TEST(test_an_impossible_width_is_an_error) {
        filed_t f;
        int k;

        filed_save(&f, "a.name.of.twenty.bytes 0:1 1:2");
        for (k = RDMETA_TOPIC_SPARSE; k <= UINT8_MAX; k++) {
                const uint8_t width = (uint8_t)k;

                filed_forge(&f, offsetof(rdmeta_topic_t, width), &width, 1);
                filed_open(&f, f.saved, 0);
                CHECK(ask(&f, 1, f.saved.mono_us) == RDMETA_ERR_MALFORMED);
                filed_close(&f);
        }
}

TEST_MAIN()
