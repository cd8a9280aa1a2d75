/* follow: readers that follow a file while the system's wall clock is set. A
 * test may not set it, so this file replaces clock_gettime(). */
#include "read/follow.h"
#include "support/image_fixture.h"

#include <sys/syscall.h>

#define HOUR (3600 * CW_S)

static int64_t set_us; /* how far the wall clock was set */

/* Replaces the C library's function. */
int clock_gettime(clockid_t id, struct timespec *t) {
        const int failed = (int)syscall(SYS_clock_gettime, id, t);

        if (!failed && id == CLOCK_REALTIME)
                t->tv_sec += set_us / CW_S;
        return failed;
}

static int64_t age(rdmeta_reader_t *r, int64_t mono_us) {
        rdmeta_image_info_t info;

        rdmeta_image_info(r->image, &info);
        return mono_us - info.taken_mono_us;
}

/* Sets the wall clock and restarts the feeder. A reader looks ten seconds after
 * each file is written, and gets only the monotonic clock. */
static void set_and_restart(int64_t by) {
        const char *path = iw_path("clock");
        cw_t old, feeder;
        rdmeta_attach_t *a;
        rdmeta_reader_t *r;
        int32_t k;

        set_us = 0;
        cw_init(&old, NULL);
        iw_publish(&old, 1, path);
        CHECK(!rdmeta_attach_new(path, 0, 0, old.now, &a));
        r = rdmeta_attach_reader(a, 0);
        CHECK(r && rdmeta_leader(r, "a", 1, 0, old.now.mono_us) == 1);
        set_us = by;
        cw_init(&feeder, NULL); /* its monotonic clock is like the reader's */
        feeder.now = old.now;
        feeder.now.wall_us += by;
        for (k = 1; k <= 3; k++) {
                cw_pass(&feeder, CW_S);
                iw_publish(&feeder, k, path);
                cw_pass(&feeder, 10 * CW_S);
                CHECK(rdmeta_leader(r, "a", 1, 0, feeder.now.mono_us) == k);
                /* The clocks are not read at the same moment. */
                CHECK(age(r, feeder.now.mono_us) > 9 * CW_S);
                CHECK(age(r, feeder.now.mono_us) < 11 * CW_S);
        }
        rdmeta_reader_destroy(r);
        rdmeta_attach_destroy(a);
        cw_destroy(&feeder);
        cw_destroy(&old);
}

TEST(test_a_feeder_is_restarted_after_the_clock_was_put_back) {
        set_and_restart(-HOUR);
}

TEST(test_a_feeder_is_restarted_after_the_clock_was_put_forward) {
        set_and_restart(HOUR);
}

TEST_MAIN()
