/* race_run: readers of every kind beside writers of every kind. */
#include "support/race_fixture.h"

enum { WRITERS = 2, ENOUGH = 20 };

static uint64_t least_done(const race_worker_t *workers) {
        uint64_t least = UINT64_MAX, done;
        int k;

        for (k = 0; k < RACE_KINDS; k++) {
                done  = atomic_load(&workers[k].done);
                least = done < least ? done : least;
        }
        return least;
}

/* Waits until enough of everything has happened, and for so many seconds. */
static void watch_over(race_t *w, const race_worker_t *workers, int seconds) {
        const struct timespec nap = {0, 20000000};
        const time_t end          = time(NULL) + seconds;
        rdmeta_stats_t stats;

        do {
                nanosleep(&nap, NULL);
                CHECK(!rdmeta_cache_check(w->cache));
                rdmeta_cache_stats(w->cache, &stats);
        } while (least_done(workers) < ENOUGH || stats.rehashes < 3 ||
                 stats.ring_floor == 0 || stats.topics_kept_back == 0 ||
                 stats.leader_hints_taken == 0 || stats.topics_moved == 0 ||
                 time(NULL) < end);
        atomic_store(&w->stop, 1);
        rdmeta_cache_interrupt(w->cache);
}

uint64_t race_run(uint64_t seed, int fence, int seconds) {
        static race_writer_t writers[WRITERS];
        static race_worker_t workers[RACE_KINDS];
        static race_t w;
        pthread_t threads[RACE_KINDS + WRITERS];
        uint64_t done = 0;
        int k;

        test_seed = seed; /* the variable of this file */
        race_init(&w, seed, fence);
        for (k = 0; k < RACE_KINDS; k++)
                race_worker_init(&workers[k], &w, k,
                                 test_rng((uint64_t)k + 100));
        for (k = 0; k < WRITERS; k++) {
                writers[k].fixture = &w;
                writers[k].rng     = test_rng((uint64_t)k + 1);
                CHECK(!pthread_create(&threads[RACE_KINDS + k], NULL,
                                      race_writer_main, &writers[k]));
        }
        for (k = 0; k < RACE_KINDS; k++)
                CHECK(!pthread_create(&threads[k], NULL, race_worker_main,
                                      &workers[k]));
        watch_over(&w, workers, seconds);
        for (k = 0; k < RACE_KINDS + WRITERS; k++)
                CHECK(!pthread_join(threads[k], NULL));
        for (k = 0; k < RACE_KINDS; k++) {
                rdmeta_reader_destroy(workers[k].reader);
                done += atomic_load(&workers[k].done);
        }
        for (k = 0; k < WRITERS; k++)
                race_writer_end(&writers[k]);
        race_destroy(&w);
        return done;
}
