/*
 * handle: threads that resolve, share, read and release handles, while a writer
 * creates, deletes and purges their topics. Readers can check all that they
 * read: see race_fixture.h. `make tsan` builds this test too.
 */
#include "support/race_fixture.h"

enum { READERS = 4, SHARED = 64, SECONDS = 2, ENOUGH = 200 };

typedef struct worker {
        race_t *fixture;
        test_rng_t rng;
        rdmeta_reader_t *reader;
        rdmeta_handle_t **shared; /* of topics 0 .. SHARED - 1 */
        rdmeta_handle_t *own[8];
        uint32_t own_topic[8];
        int stale;
        _Atomic uint64_t done;
} worker_t;

static void ask(worker_t *x, const rdmeta_handle_t *h, uint32_t i) {
        const uint32_t p  = (uint32_t)test_below(&x->rng, 10);
        const int64_t now = race_now(x->fixture).mono_us;
        int32_t key;

        if (race_leader_check(i, p,
                              rdmeta_handle_leader(x->reader, h, (int32_t)p,
                                                   now),
                              x->stale))
                atomic_fetch_add_explicit(&x->done, 1, memory_order_relaxed);
        key = rdmeta_handle_partition_for(x->reader, h, p ? "key" : NULL, 3,
                                          now);
        CHECK(key <= RDMETA_NOT_CACHED || (key >= 0 && key < 256));
}

/* A found topic stays until leave, although the writer continues. */
static void check_borrowed(worker_t *x, const rdmeta_handle_t *h, uint32_t i) {
        const rdmeta_topic_t *t;
        int k;

        rdmeta_reader_enter(x->reader);
        rdmeta_handle_find(x->reader, h, race_now(x->fixture).mono_us, &t);
        for (k = 0; k < 4 && t; k++) {
                CHECK(race_topic_check(x->fixture, x->reader, t) == i);
                ask(x, h, i);
                race_dither(&x->rng);
        }
        rdmeta_reader_leave(x->reader);
}

/* Replaces one of the worker's own handles. */
static void renew(worker_t *x, uint32_t i) {
        const size_t k          = test_below(&x->rng, 8);
        const rdmeta_str_t name = race_name(x->fixture, i);

        rdmeta_handle_release(x->own[k]);
        x->own[k] = rdmeta_resolve(x->fixture->cache, name.data, name.len);
        CHECK(x->own[k]);
        CHECK(rdmeta_handle_topic(x->own[k]).len == name.len);
        x->own_topic[k] = i;
}

static void *reader_main(void *arg) {
        worker_t *x = arg;
        int k;

        while (!atomic_load_explicit(&x->fixture->stop, memory_order_relaxed)) {
                const uint32_t i = (uint32_t)test_below(&x->rng, SHARED);
                const size_t own = test_below(&x->rng, 8);

                for (k = 0; k < 20; k++)
                        ask(x, x->shared[(i + (uint32_t)k) % SHARED],
                            (i + (uint32_t)k) % SHARED);
                check_borrowed(x, x->shared[i], i);
                if (x->own[own])
                        ask(x, x->own[own], x->own_topic[own]);
                /* Few names, so that threads meet at the first and the last
                 * reference. */
                renew(x, SHARED + (uint32_t)test_below(&x->rng, 6));
                rdmeta_handle_release(rdmeta_handle_ref(x->shared[i]));
                race_dither(&x->rng);
        }
        for (k = 0; k < 8; k++)
                rdmeta_handle_release(x->own[k]);
        return NULL;
}

static void watch_over(race_t *w, const worker_t *workers) {
        const struct timespec nap = {0, 20000000};
        const time_t end          = time(NULL) + SECONDS;
        uint64_t least;
        int k;

        do {
                nanosleep(&nap, NULL);
                CHECK(!rdmeta_cache_check(w->cache));
                for (k = 0, least = UINT64_MAX; k < READERS; k++) {
                        const uint64_t done = atomic_load(&workers[k].done);
                        least = done < least ? done : least;
                }
        } while (least < ENOUGH || time(NULL) < end);
        atomic_store(&w->stop, 1);
}

static void run_all(int fence) {
        static worker_t workers[READERS];
        static race_writer_t writer;
        static race_t w;
        rdmeta_handle_t *shared[SHARED];
        pthread_t threads[READERS + 1];
        int k;

        race_init(&w, test_seed, fence);
        for (k = 0; k < SHARED; k++) {
                const rdmeta_str_t name = race_name(&w, (uint32_t)k);
                shared[k] = rdmeta_resolve(w.cache, name.data, name.len);
                CHECK(shared[k]);
        }
        memset(workers, 0, sizeof(workers));
        writer.fixture = &w;
        writer.rng     = test_rng(1);
        CHECK(!pthread_create(&threads[READERS], NULL, race_writer_main,
                              &writer));
        for (k = 0; k < READERS; k++) {
                worker_t *x = &workers[k];
                x->fixture  = &w;
                x->rng      = test_rng((uint64_t)k + 100);
                x->shared   = shared;
                x->stale    = k & 1;
                x->reader   = rdmeta_reader_new(
                        w.cache, x->stale ? RDMETA_ALLOW_STALE : 0);
                CHECK(x->reader);
                CHECK(!pthread_create(&threads[k], NULL, reader_main, x));
        }
        watch_over(&w, workers);
        for (k = 0; k <= READERS; k++)
                CHECK(!pthread_join(threads[k], NULL));
        for (k = 0; k < READERS; k++)
                rdmeta_reader_destroy(workers[k].reader);
        CHECK(!rdmeta_cache_check(w.cache));
        for (k = 0; k < SHARED; k++)
                rdmeta_handle_release(shared[k]);
        race_writer_end(&writer);
        race_destroy(&w);
}

TEST(test_handles_lead_to_whole_topics_whatever_a_writer_does) {
        run_all(0);
}

TEST(test_the_same_where_the_kernel_has_no_membarrier) {
        run_all(1);
}

/* ---- the last reference ------------------------------------------------ */

static void *last_main(void *arg) {
        rdmeta_handle_release(arg);
        return NULL;
}

static void *handle_make(rdmeta_cache_t *c) {
        return rdmeta_resolve(c, "t", 1);
}

TEST(test_the_last_release_destroys_the_cache) {
        race_to_be_last(handle_make, last_main);
}

TEST_MAIN()
