/*
 * compact: blocks move all the time while readers of every kind read, and some
 * of them take images. Each row that they read proves itself: race_fixture.h.
 */
#include "support/race_fixture.h"

enum { SECONDS = 2, ENOUGH = 20, MOVED = 200 };

/* Makes chunks leave however little is free, a few blocks at a time. */
static void *mover_main(void *arg) {
        race_t *w         = arg;
        rdmeta_cache_t *c = w->cache;
        test_rng_t rng    = test_rng(5);

        while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
                rdmeta_notify_lock(&c->notify);
                if (!rdmeta_memory_leaving(&c->blocks)) {
                        c->compact_at = 0;
                        rdmeta_memory_plan(&c->blocks, 1000);
                }
                rdmeta_compact(c, 1 + test_below(&rng, 64), 16);
                rdmeta_entry_collect(c);
                rdmeta_epoch_look(&c->epochs);
                rdmeta_notify_unlock(&c->notify);
                race_dither(&rng);
        }
        return NULL;
}

static int is_enough(race_t *w, const race_worker_t *workers) {
        rdmeta_stats_t stats;
        int k;

        CHECK(!rdmeta_cache_check(w->cache));
        rdmeta_cache_stats(w->cache, &stats);
        for (k = 0; k < RACE_KINDS; k++)
                if (atomic_load(&workers[k].done) < ENOUGH)
                        return 0;
        return stats.topics_moved >= MOVED;
}

static void run(int fence) {
        static race_worker_t workers[RACE_KINDS];
        static race_writer_t writer;
        static race_t w;
        const struct timespec nap = {0, 20000000};
        const time_t end          = time(NULL) + SECONDS;
        pthread_t threads[RACE_KINDS], writing, moving;
        int k;

        race_init(&w, test_seed, fence);
        writer.fixture = &w;
        writer.rng     = test_rng(1);
        CHECK(!pthread_create(&writing, NULL, race_writer_main, &writer));
        CHECK(!pthread_create(&moving, NULL, mover_main, &w));
        for (k = 0; k < RACE_KINDS; k++) {
                race_worker_init(&workers[k], &w, k,
                                 test_rng((uint64_t)k + 100));
                CHECK(!pthread_create(&threads[k], NULL, race_worker_main,
                                      &workers[k]));
        }
        while (!is_enough(&w, workers) || time(NULL) < end)
                nanosleep(&nap, NULL);
        atomic_store(&w.stop, 1);
        rdmeta_cache_interrupt(w.cache);
        CHECK(!pthread_join(writing, NULL));
        CHECK(!pthread_join(moving, NULL));
        for (k = 0; k < RACE_KINDS; k++) {
                CHECK(!pthread_join(threads[k], NULL));
                rdmeta_reader_destroy(workers[k].reader);
        }
        race_writer_end(&writer);
        race_destroy(&w);
}

TEST(test_readers_see_each_topic_whole_while_it_moves) {
        run(0);
}

TEST(test_readers_see_each_topic_whole_without_membarrier) {
        run(1);
}

TEST_MAIN()
