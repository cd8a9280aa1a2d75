/* follow: the counters of readers that follow a file. */
#include "read/follow.h"
#include "support/image_fixture.h"

enum { LOOK = 20000 };

static int32_t ask(rdmeta_reader_t *r, int64_t mono_us) {
        return rdmeta_leader(r, "a", 1, 0, mono_us);
}

static rdmeta_attach_stats_t stats_of(const rdmeta_attach_t *a) {
        rdmeta_attach_stats_t stats;

        rdmeta_attach_stats(a, &stats);
        return stats;
}

CACHE_TEST(test_looks_generations_and_errors_are_counted) {
        const char *path = iw_path("counted");
        rdmeta_attach_t *a;
        rdmeta_reader_t *r;
        int64_t t;

        iw_publish(w, 1, path);
        t = w->now.mono_us;
        CHECK(!rdmeta_attach_new(path, 0, LOOK, w->now, &a));
        r = rdmeta_attach_reader(a, 0);
        CHECK(stats_of(a).looks == 0 && stats_of(a).generations == 1);
        CHECK(ask(r, t) == 1 && ask(r, t + 1) == 1);
        CHECK(stats_of(a).looks == 1 && !stats_of(a).errors);
        iw_publish(w, 2, path);
        CHECK(ask(r, t += LOOK) == 2);
        CHECK(stats_of(a).looks == 2 && stats_of(a).generations == 2);
        CHECK(!unlink(path));
        CHECK(ask(r, t += LOOK) == 2);
        CHECK(stats_of(a).error == RDMETA_ERR_IO && stats_of(a).errors == 1);
        iw_write(path, "x", 1);
        CHECK(ask(r, t += LOOK) == 2);
        CHECK(stats_of(a).error == RDMETA_ERR_MALFORMED);
        rdmeta_image_unref(rdmeta_attach_image(a, w->now));
        CHECK(stats_of(a).looks == 5 && stats_of(a).errors == 3);
        iw_publish(w, 3, path);
        CHECK(ask(r, t += LOOK) == 3 && ask(r, t += LOOK) == 3);
        CHECK(!stats_of(a).error && stats_of(a).errors == 3);
        CHECK(stats_of(a).looks == 7 && stats_of(a).generations == 3);
        rdmeta_reader_destroy(r);
        rdmeta_attach_destroy(a);
}

TEST_MAIN()
