/* follow: readers that follow a file, in one thread. When they look, which
 * image they keep, and which age they report. */
#include "read/follow.h"
#include "support/image_fixture.h"

#include <sys/stat.h>
#include <sys/wait.h>

enum { LOOK = 20000 };

/* A feeder that publishes topic "a" with one leader after the other, and a
 * reader that follows. */
typedef struct feeder {
        cw_t w;
        const char *path;
        int32_t leader;
        rdmeta_attach_t *a;
        rdmeta_reader_t *r;
        int64_t t; /* of the reader */
} feeder_t;

static void publish(feeder_t *f, int32_t leader) {
        char text[64];

        f->leader = leader;
        f->w.api_version = 12;
        snprintf(text, sizeof(text), "a#a 0:%d@%d; b 0:%d", leader,
                 (int)cw_version(&f->w) + 1, leader);
        CHECK(!cw_all(&f->w, text));
        iw_save(&f->w, f->path);
}

static void feeder_init(feeder_t *f, const char *name) {
        cw_init(&f->w, NULL);
        f->path = iw_path(name);
        publish(f, 1);
}

static rdmeta_attach_t *attached(const feeder_t *f, int32_t flags) {
        rdmeta_attach_t *a = NULL;

        CHECK(!rdmeta_attach_new(f->path, flags, LOOK, f->w.now, &a));
        return a;
}

static int32_t ask(rdmeta_reader_t *r, int64_t mono_us) {
        return rdmeta_leader(r, "a", 1, 0, mono_us);
}

static void followed(feeder_t *f, const char *name, int32_t flags) {
        feeder_init(f, name);
        f->t = f->w.now.mono_us;
        f->a = attached(f, flags);
        f->r = rdmeta_attach_reader(f->a, 0);
        CHECK(f->r && ask(f->r, f->t) == 1);
}

static void followed_free(feeder_t *f) {
        rdmeta_reader_destroy(f->r);
        rdmeta_attach_destroy(f->a);
        cw_destroy(&f->w);
}

TEST(test_a_new_file_is_seen_after_a_look) {
        const int32_t flags[] = {0, RDMETA_IMAGE_COPY};
        feeder_t f;
        int i, k;

        for (i = 0; i < 2; i++) {
                followed(&f, "seen", flags[i]);
                for (k = 2; k < 40; k++) {
                        const int32_t before = f.leader;

                        publish(&f, 1 + k % 3);
                        CHECK(ask(f.r, f.t + LOOK - 1) == before);
                        CHECK(ask(f.r, f.t += LOOK) == 1 + k % 3);
                }
                followed_free(&f);
        }
}

static int32_t check_leader_3(void *opaque, const rdmeta_topic_t *topic) {
        rdmeta_partition_t p;

        memset(&p, 0, sizeof(p));
        CHECK(!rdmeta_topic_partition_at(opaque, topic, 0, &p));
        CHECK(p.leader == 3);
        return 0;
}

TEST(test_each_call_that_gets_the_time_looks) {
        const rdmeta_str_t names[] = {GEN_STR("a"), GEN_STR("b")};
        const int32_t zeros[]      = {0, 0};
        const rdmeta_topic_t *topic;
        rdmeta_broker_health_t brokers[3];
        rdmeta_health_t health = {.brokers = brokers, .capacity = 3};
        rdmeta_partition_t p;
        int32_t out[2];
        uint8_t id[16];
        rdmeta_attach_t *a;
        rdmeta_reader_t *r;
        feeder_t f;
        int64_t t;

        memset(id, 'a', sizeof(id));
        memset(&p, 0, sizeof(p));
        feeder_init(&f, "calls");
        t = f.w.now.mono_us;
        a = attached(&f, 0);
        r = rdmeta_attach_reader(a, RDMETA_ALLOW_STALE);
        CHECK(ask(r, t) == 1);
        publish(&f, 2);
        rdmeta_leaders(r, names, zeros, 2, t += LOOK, out);
        CHECK(out[0] == 2 && out[1] == 2);
        publish(&f, 3);
        CHECK(!rdmeta_partition(r, "a", 1, 0, t += LOOK, &p));
        CHECK(p.leader == 3);
        publish(&f, 1);
        rdmeta_reader_enter(r);
        CHECK(!rdmeta_topic_find(r, "a", 1, t += LOOK, &topic));
        CHECK(!rdmeta_topic_partition_at(r, topic, 0, &p) && p.leader == 1);
        rdmeta_reader_leave(r);
        publish(&f, 2);
        rdmeta_reader_enter(r);
        CHECK(!rdmeta_topic_find_id(r, id, t += LOOK, &topic));
        CHECK(!rdmeta_topic_partition_at(r, topic, 0, &p) && p.leader == 2);
        rdmeta_reader_leave(r);
        publish(&f, 3);
        CHECK(!rdmeta_reader_walk(r, "", 0, 7, t += LOOK, check_leader_3, r));
        publish(&f, 2);
        CHECK(!rdmeta_reader_health(r, 1, t += LOOK, &health));
        CHECK(health.broker_count == 3 && brokers[1].leaders > 0);
        rdmeta_reader_destroy(r);
        rdmeta_attach_destroy(a);
        cw_destroy(&f.w);
}

/* When one reader has seen a new file, the others of its thread see it at once.
 */
TEST(test_no_reader_is_behind_another_of_its_thread) {
        rdmeta_image_info_t info;
        rdmeta_image_t *image;
        rdmeta_attach_t *a;
        rdmeta_reader_t *r, *other;
        feeder_t f;
        int64_t t;

        feeder_init(&f, "behind");
        t     = f.w.now.mono_us;
        a     = attached(&f, 0);
        r     = rdmeta_attach_reader(a, 0);
        other = rdmeta_attach_reader(a, 0);
        CHECK(ask(r, t) == 1 && ask(other, t + 1) == 1);
        publish(&f, 2);
        CHECK(ask(other, t + LOOK) == 1);
        CHECK(ask(r, t + LOOK) == 2);
        CHECK(ask(other, t + LOOK) == 2);
        publish(&f, 3);
        image = rdmeta_attach_image(a, f.w.now); /* looks at once */
        rdmeta_image_info(image, &info);
        CHECK(info.version == cw_version(&f.w));
        rdmeta_image_unref(image);
        CHECK(ask(r, t + LOOK) == 3 && ask(other, t + LOOK) == 3);
        rdmeta_reader_destroy(r);
        rdmeta_reader_destroy(other);
        rdmeta_attach_destroy(a);
        cw_destroy(&f.w);
}

TEST(test_between_enter_and_leave_all_is_of_one_image) {
        const rdmeta_topic_t *topic;
        const rdmeta_brokers_t *brokers;
        rdmeta_partition_t p;
        feeder_t f;
        int i;

        memset(&p, 0, sizeof(p));
        followed(&f, "inside", 0);
        for (i = 2; i < 30; i++) {
                const int32_t before = f.leader;

                rdmeta_reader_enter(f.r);
                if (i & 1)
                        brokers = rdmeta_brokers(f.r);
                else
                        CHECK(!rdmeta_topic_find(f.r, "a", 1, f.t, &topic));
                publish(&f, 1 + i % 3);
                f.t += 2 * LOOK;
                CHECK(ask(f.r, f.t) == before);
                rdmeta_reader_enter(f.r);
                CHECK(ask(f.r, f.t + LOOK) == before);
                rdmeta_reader_leave(f.r);
                CHECK(ask(f.r, f.t + 3 * LOOK) == before);
                if (i & 1)
                        CHECK(rdmeta_brokers_count(brokers) == 3);
                else
                        CHECK(!rdmeta_topic_partition_at(f.r, topic, 0, &p) &&
                              p.leader == before);
                rdmeta_reader_leave(f.r);
                rdmeta_reader_enter(f.r); /* it makes up for its look */
                CHECK(!rdmeta_topic_find(f.r, "a", 1, f.t, &topic));
                CHECK(!rdmeta_topic_partition_at(f.r, topic, 0, &p));
                CHECK(p.leader == 1 + i % 3);
                rdmeta_reader_leave(f.r);
        }
        followed_free(&f);
}

static uint64_t looks(const feeder_t *f) {
        rdmeta_attach_stats_t s;

        rdmeta_attach_stats(f->a, &s);
        return s.looks;
}

TEST(test_a_look_missed_inside_is_made_up_for_once) {
        const rdmeta_topic_t *topic;
        uint64_t before;
        feeder_t f;

        followed(&f, "missed", 0);
        rdmeta_reader_enter(f.r);
        CHECK(!rdmeta_topic_find(f.r, "a", 1, f.t, &topic));
        publish(&f, 2);
        CHECK(ask(f.r, f.t + LOOK) == 1);
        rdmeta_reader_leave(f.r);
        before = looks(&f);
        rdmeta_reader_enter(f.r);
        CHECK(looks(&f) == before + 1);
        CHECK(ask(f.r, f.t) == 2); /* at a time when no look is due */
        rdmeta_reader_leave(f.r);
        rdmeta_reader_enter(f.r);
        rdmeta_reader_leave(f.r);
        CHECK(looks(&f) == before + 1);
        followed_free(&f);
}

static int32_t ask_more(void *opaque, const rdmeta_topic_t *topic) {
        rdmeta_reader_t *r = opaque;
        rdmeta_topic_info_t info;

        /* Much later; the visited topic must still be there. */
        CHECK(ask(r, INT64_MAX - 1) == RDMETA_STALE);
        rdmeta_topic_info(r, topic, 0, &info);
        CHECK(info.name.len == 1);
        return 0;
}

TEST(test_a_walk_stays_with_its_image) {
        feeder_t f;

        followed(&f, "walk", 0);
        publish(&f, 2);
        CHECK(!rdmeta_reader_walk(f.r, "", 0, 7, f.w.now.mono_us + 1, ask_more,
                                  f.r));
        followed_free(&f);
}

TEST(test_a_missing_or_broken_file_leaves_the_last_good_one) {
        const char *aside = iw_path("aside");
        rdmeta_attach_t *a;
        rdmeta_reader_t *r, *late;
        uint8_t *bytes;
        size_t size;
        feeder_t f;
        int64_t t;

        feeder_init(&f, "missing");
        t = f.w.now.mono_us;
        a = attached(&f, 0);
        r = rdmeta_attach_reader(a, 0);
        CHECK(ask(r, t) == 1);
        CHECK(!unlink(f.path));
        CHECK(ask(r, t += LOOK) == 1);
        late = rdmeta_attach_reader(a, 0);
        CHECK(late && ask(late, t) == 1);
        bytes = (uint8_t *)"not an image";
        iw_write(f.path, bytes, 12);
        CHECK(ask(r, t += LOOK) == 1 && ask(late, t) == 1);
        publish(&f, 2);
        CHECK(ask(r, t += LOOK) == 2 && ask(late, t) == 2);
        /* A file that was cut off before its rename. */
        bytes = iw_read(f.path, &size);
        iw_write(aside, bytes, size - 1);
        CHECK(!rename(aside, f.path));
        CHECK(ask(r, t += LOOK) == 2);
        free(bytes);
        publish(&f, 3);
        CHECK(ask(r, t += LOOK) == 3 && ask(late, t) == 3);
        rdmeta_reader_destroy(r);
        rdmeta_reader_destroy(late);
        rdmeta_attach_destroy(a);
        cw_destroy(&f.w);
}

TEST(test_no_file_at_first_is_an_error) {
        const rdmeta_time_t now = {1, 1};
        rdmeta_attach_t *a      = NULL;

        CHECK(rdmeta_attach_new(iw_path("nothing"), 0, 0, now, &a) ==
              RDMETA_ERR_IO);
        iw_write(iw_path("nothing"), "x", 1);
        CHECK(rdmeta_attach_new(iw_path("nothing"), 0, 0, now, &a) ==
              RDMETA_ERR_MALFORMED);
        CHECK(!a);
        rdmeta_attach_destroy(NULL);
}

/* ---- life of readers and images --------------------------------------- */

TEST(test_readers_and_images_outlive_the_attach_and_the_file) {
        rdmeta_image_t *image;
        rdmeta_attach_t *a;
        rdmeta_reader_t *r, *of_image;
        feeder_t f;
        int64_t t;

        feeder_init(&f, "outlive");
        t     = f.w.now.mono_us;
        a     = attached(&f, 0);
        r     = rdmeta_attach_reader(a, 0);
        image = rdmeta_attach_image(a, f.w.now);
        rdmeta_attach_destroy(a);
        publish(&f, 2);
        CHECK(ask(r, t + LOOK) == 2); /* it still follows */
        of_image = rdmeta_image_reader(image, 0);
        CHECK(ask(of_image, t + LOOK) == 1);
        CHECK(!unlink(f.path));
        CHECK(ask(r, t + 2 * LOOK) == 2);
        rdmeta_reader_destroy(r);
        CHECK(!rdmeta_image_verify(image));
        rdmeta_image_unref(image);
        CHECK(ask(of_image, t) == 1);
        rdmeta_reader_destroy(of_image);
        cw_destroy(&f.w);
}

TEST(test_if_an_allocation_fails_the_last_good_file_stays) {
        rdmeta_allocator_t allocator;
        test_heap_t heap;
        rdmeta_attach_t *a = NULL;
        rdmeta_reader_t *r;
        feeder_t f;
        int64_t t;
        size_t nth;

        feeder_init(&f, "memory");
        t = f.w.now.mono_us;
        for (nth = 1; !a; nth++) {
                allocator    = test_allocator(&heap);
                heap.fail_at = nth;
                if (rdmeta_attach_make(&allocator, f.path, 0, LOOK, f.w.now,
                                       &a))
                        CHECK(heap.blocks == 0);
        }
        CHECK(nth > 4);
        heap.fail_at = heap.calls + 1;
        CHECK(!rdmeta_attach_reader(a, 0));
        r = rdmeta_attach_reader(a, 0);
        CHECK(r && ask(r, t) == 1);
        publish(&f, 2);
        for (nth = 1;; nth++) {
                heap.fail_at = heap.calls + nth;
                if (ask(r, t += LOOK) == 2)
                        break;
                CHECK(ask(r, t) == 1);
        }
        heap.fail_at = 0;
        CHECK(nth > 3);
        rdmeta_reader_destroy(r);
        rdmeta_attach_destroy(a);
        CHECK(heap.blocks == 0 && heap.bytes == 0);
        cw_destroy(&f.w);
}

/* ---- age -------------------------------------------------------------- */

static int64_t age(rdmeta_attach_t *a, rdmeta_time_t now) {
        rdmeta_image_t *image = rdmeta_attach_image(a, now);
        rdmeta_image_info_t info;

        rdmeta_image_info(image, &info);
        rdmeta_image_unref(image);
        CHECK(info.taken_mono_us <= now.mono_us);
        return now.mono_us - info.taken_mono_us;
}

TEST(test_the_age_of_a_file_is_right_when_a_wall_clock_is_set) {
        rdmeta_time_t here;
        rdmeta_attach_t *a;
        feeder_t f;

        feeder_init(&f, "age");
        here.mono_us = 77; /* another clock */
        here.wall_us = f.w.now.wall_us + 3 * CW_S;
        CHECK(!rdmeta_attach_new(f.path, 0, LOOK, here, &a));
        CHECK(age(a, here) == 3 * CW_S);
        /* A wall clock is put back by an hour while a file is made. By the
         * clock of the same cache ten seconds have passed. */
        cw_pass(&f.w, 10 * CW_S);
        f.w.now.wall_us -= 3600 * CW_S;
        publish(&f, 2);
        here.mono_us += 10 * CW_S;
        here.wall_us += 10 * CW_S;
        CHECK(age(a, here) == 3 * CW_S);
        cw_pass(&f.w, CW_S);
        here.mono_us += CW_S;
        CHECK(age(a, here) == 4 * CW_S);
        publish(&f, 3);
        CHECK(age(a, here) == 3 * CW_S);
        cw_pass(&f.w, 10 * CW_S); /* a clock that is faster than the reader's */
        publish(&f, 1);
        CHECK(age(a, here) == 0);
        rdmeta_attach_destroy(a);
        cw_destroy(&f.w);
}

/* A feeder that was started anew has another monotonic clock. So the wall
 * clocks count again. */
TEST(test_the_age_of_another_feeders_file_is_by_the_wall_clocks) {
        rdmeta_time_t here;
        rdmeta_attach_t *a;
        feeder_t f;

        feeder_init(&f, "restart");
        here = f.w.now;
        CHECK(!rdmeta_attach_new(f.path, 0, LOOK, here, &a));
        cw_destroy(&f.w);
        cw_init(&f.w, NULL);
        f.w.now.mono_us = 5;
        f.w.now.wall_us = here.wall_us + 2 * CW_S;
        publish(&f, 2);
        here.mono_us += 7 * CW_S;
        here.wall_us += 7 * CW_S;
        CHECK(age(a, here) == 5 * CW_S);
        rdmeta_attach_destroy(a);
        cw_destroy(&f.w);
}

TEST(test_a_file_that_is_not_replaced_becomes_stale) {
        rdmeta_reader_t *r, *stale;
        rdmeta_attach_t *a;
        feeder_t f;
        int64_t t;
        int day;

        feeder_init(&f, "days");
        t     = f.w.now.mono_us;
        a     = attached(&f, 0);
        r     = rdmeta_attach_reader(a, 0);
        stale = rdmeta_attach_reader(a, RDMETA_ALLOW_STALE);
        CHECK(ask(r, t + 900 * CW_S) == 1);
        CHECK(ask(r, t + 900 * CW_S + 1) == RDMETA_STALE);
        for (day = 1; day < 30; day++)
                CHECK(ask(stale, t + day * 86400 * CW_S) == 1);
        rdmeta_reader_destroy(r);
        rdmeta_reader_destroy(stale);
        rdmeta_attach_destroy(a);
        cw_destroy(&f.w);
}

/* ---- fork ------------------------------------------------------------- */

static void child_follows(rdmeta_attach_t *a, rdmeta_reader_t *r,
                          const feeder_t *f, const int *published) {
        const int64_t t = f->w.now.mono_us + LOOK;
        rdmeta_reader_t *own;
        char byte;

        CHECK(ask(r, f->w.now.mono_us) == 1);
        CHECK(read(published[0], &byte, 1) == 1);
        CHECK(ask(r, t) == 2);
        own = rdmeta_attach_reader(a, 0);
        CHECK(own && ask(own, t) == 2);
        rdmeta_image_unref(rdmeta_attach_image(a, f->w.now));
        rdmeta_reader_destroy(own);
        rdmeta_reader_destroy(r);
        rdmeta_attach_destroy(a);
}

TEST(test_a_forks_child_continues_to_follow) {
        int status, published[2];
        feeder_t f;
        pid_t pid;

        followed(&f, "fork", 0);
        CHECK(ask(f.r, f.w.now.mono_us) == 1 && !pipe(published));
        pid = fork();
        CHECK(pid >= 0);
        if (!pid) {
                child_follows(f.a, f.r, &f, published);
                _exit(0);
        }
        publish(&f, 2);
        CHECK(write(published[1], "", 1) == 1);
        CHECK(waitpid(pid, &status, 0) == pid && !status);
        CHECK(ask(f.r, f.w.now.mono_us + LOOK) == 2);
        followed_free(&f);
}

TEST_MAIN()
