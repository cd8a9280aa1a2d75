/*
 * cache: readers of every kind beside writers of every kind. `make tsan` builds
 * it too, because its name ends in _thread. Each row that they read proves
 * itself: see race_fixture.h. `make stress` does the same for longer.
 */
#include "support/race_fixture.h"

enum { SECONDS = 2 };

TEST(test_readers_see_each_topic_whole_whatever_writers_do) {
        race_run(test_seed, 0, SECONDS);
}

TEST(test_readers_see_each_topic_whole_without_membarrier) {
        race_run(test_seed, 1, SECONDS);
}

/* ---- one thread, and the last reference ---------------------------------- */

static rdmeta_stats_t write_much(race_t *w, race_writer_t *x) {
        rdmeta_stats_t stats;
        int k;

        for (k = 0; k < 200; k++)
                race_write_step(x);
        CHECK(!rdmeta_cache_check(w->cache));
        rdmeta_cache_stats(w->cache, &stats);
        return stats;
}

TEST(test_topics_that_a_reader_found_stay_until_it_leaves) {
        static race_writer_t x;
        static race_t w;
        const rdmeta_topic_t *live[RACE_TOPICS];
        const rdmeta_brokers_t *brokers;
        rdmeta_stats_t before, after;
        rdmeta_reader_t *r;
        uint32_t i;

        race_init(&w, test_seed, 0);
        x.fixture = &w;
        x.rng     = test_rng(7);
        write_much(&w, &x);
        r = rdmeta_reader_new(w.cache, RDMETA_ALLOW_STALE);
        CHECK(r);
        rdmeta_reader_enter(r);
        brokers = rdmeta_brokers(r);
        for (i = 0; i < RACE_TOPICS; i++)
                rdmeta_topic_find(r, w.names[i], strlen(w.names[i]),
                                  race_now(&w).mono_us, &live[i]);
        for (i = 0; i < 20; i++) {
                before = write_much(&w, &x);
                if (before.bytes_limbo > 4 * RDMETA_LIMBO_LOOK)
                        break;
        }
        CHECK(i < 20);
        for (i = 0; i < RACE_TOPICS; i++)
                if (live[i])
                        CHECK(race_topic_check(&w, r, live[i]) == i);
        race_brokers_check(brokers);
        rdmeta_reader_leave(r);
        for (i = 0; i < 20; i++) {
                after = write_much(&w, &x);
                if (after.bytes_limbo < before.bytes_limbo)
                        break;
        }
        CHECK(i < 20);
        rdmeta_reader_destroy(r);
        rdmeta_cache_sweep(w.cache, race_now(&w));
        rdmeta_cache_stats(w.cache, &after);
        CHECK(after.bytes_limbo == 0 && after.readers == 0);
        race_writer_end(&x);
        race_destroy(&w);
}

static void *last_reader_main(void *arg) {
        rdmeta_reader_t *r = arg;

        CHECK(rdmeta_leader(r, "t", 1, 0, 0) == RDMETA_NOT_CACHED);
        rdmeta_reader_destroy(r);
        return NULL;
}

static void *reader_make(rdmeta_cache_t *c) {
        return rdmeta_reader_new(c, 0);
}

TEST(test_the_last_reference_frees_the_cache) {
        race_to_be_last(reader_make, last_reader_main);
}

TEST_MAIN()
