/*
 * Many threads take, read, compare and release images, beside readers of the
 * cache, writers of every kind and a sweeper. Each value that is read can be
 * checked by itself (race_fixture.h). An image must return the same values each
 * time. `make tsan` builds this test too.
 */
#include "support/race_fixture.h"

enum { WRITERS = 2, SECONDS = 2, ENOUGH = 20, SHARED = 4 };

/* Images that several threads read at once, until they are replaced. */
typedef struct shared {
        pthread_mutex_t lock;
        rdmeta_image_t *images[SHARED];
} shared_t;

typedef struct worker {
        race_t *fixture;
        shared_t *shared;
        void (*step)(struct worker *x);
        test_rng_t rng;
        rdmeta_reader_t *reader; /* of the cache */
        _Atomic uint64_t done;   /* steps that made checks */
} worker_t;

static void worker_did(worker_t *x) {
        atomic_fetch_add_explicit(&x->done, 1, memory_order_relaxed);
}

static uint32_t any_topic(worker_t *x) {
        return (uint32_t)test_below(&x->rng, RACE_TOPICS);
}

/* ---- reading ------------------------------------------------------------- */

/* Checks all that a reader returns for some topics. Returns a hash of it. */
static uint64_t read_some(worker_t *x, rdmeta_reader_t *r, uint32_t first,
                          int64_t mono_us) {
        uint64_t sum = 0;
        uint32_t k, p;

        rdmeta_reader_enter(r);
        for (k = 0; k < 24; k++) {
                const uint32_t i        = (first + 5 * k) % RACE_TOPICS;
                const rdmeta_str_t name = race_name(x->fixture, i);
                const rdmeta_topic_t *t, *same;
                rdmeta_topic_info_t info;

                for (p = 0; p < 3; p++) {
                        const int32_t leader = rdmeta_leader(
                                r, name.data, name.len, (int32_t)p, mono_us);
                        race_leader_check(i, p, leader, 0);
                        sum = sum * 31 + (uint32_t)leader;
                }
                rdmeta_topic_find(r, name.data, name.len, mono_us, &t);
                if (!t)
                        continue;
                CHECK(race_topic_check(x->fixture, r, t) == i);
                rdmeta_topic_info(r, t, mono_us, &info);
                sum = sum * 31 + info.version;
                sum = sum * 31 + (uint64_t)info.deadline_us;
                sum = sum * 31 + (uint32_t)info.source_broker;
                for (p = 0; p < info.reason.len; p++)
                        sum = sum * 31 + (uint8_t)info.reason.data[p];
                rdmeta_topic_find_id(r, info.topic_id, mono_us, &same);
                if (same)
                        CHECK(race_topic_check(x->fixture, r, same) == i);
                sum = sum * 31 + (same != NULL);
        }
        race_brokers_check(rdmeta_brokers(r));
        sum = sum * 31 +
              (uint32_t)rdmeta_brokers_controller(rdmeta_brokers(r));
        rdmeta_reader_leave(r);
        return sum;
}

/* Reads an image several times, with time for writers in between. All results
 * must be equal. */
static void read_again(worker_t *x, rdmeta_image_t *image) {
        rdmeta_reader_t *r   = rdmeta_image_reader(image, 0);
        const uint32_t first = any_topic(x);
        rdmeta_image_info_t info;
        uint64_t sum;
        int k;

        CHECK(r);
        rdmeta_image_info(image, &info);
        sum = read_some(x, r, first, info.taken_mono_us);
        for (k = 0; k < 3; k++) {
                race_dither(&x->rng);
                CHECK(read_some(x, r, first, info.taken_mono_us) == sum);
        }
        rdmeta_reader_destroy(r);
        worker_did(x);
}

static rdmeta_image_t *image_new(worker_t *x) {
        rdmeta_image_t *image = rdmeta_cache_image(x->fixture->cache,
                                                   race_now(x->fixture));

        CHECK(image);
        return image;
}

static rdmeta_image_t *image_shared(worker_t *x) {
        rdmeta_image_t *image;

        CHECK(!pthread_mutex_lock(&x->shared->lock));
        image = rdmeta_image_ref(
                x->shared->images[test_below(&x->rng, SHARED)]);
        CHECK(!pthread_mutex_unlock(&x->shared->lock));
        return image;
}

/* ---- kinds of workers ---------------------------------------------------- */

static void step_cache(worker_t *x) {
        read_some(x, x->reader, any_topic(x), race_now(x->fixture).mono_us);
        worker_did(x);
}

static void step_own(worker_t *x) {
        rdmeta_image_t *images[3];
        int k, n = 1 + (int)test_below(&x->rng, 3);

        for (k = 0; k < n; k++)
                images[k] = image_new(x);
        for (k = 0; k < n; k++)
                read_again(x, images[k]);
        for (k = n - 1; k >= 0; k--)
                rdmeta_image_unref(images[k]);
}

static void step_shared(worker_t *x) {
        rdmeta_image_t *image = image_shared(x);

        read_again(x, image);
        rdmeta_image_unref(image);
}

static void step_replace(worker_t *x) {
        const size_t k       = test_below(&x->rng, SHARED);
        rdmeta_image_t *next = image_new(x), *last;

        CHECK(!pthread_mutex_lock(&x->shared->lock));
        last                 = x->shared->images[k];
        x->shared->images[k] = next;
        CHECK(!pthread_mutex_unlock(&x->shared->lock));
        rdmeta_image_unref(last);
        worker_did(x);
}

typedef struct walk {
        worker_t *worker;
        rdmeta_reader_t *reader;
        char last[RACE_NAME];
        int n;
} walk_t;

static int32_t walk_visit(void *opaque, const rdmeta_topic_t *t) {
        walk_t *walk     = opaque;
        worker_t *x      = walk->worker;
        const uint32_t i = race_topic_check(x->fixture, walk->reader, t);

        CHECK(strcmp(walk->last, x->fixture->names[i]) < 0);
        memcpy(walk->last, x->fixture->names[i], RACE_NAME);
        walk->n++;
        return 0;
}

/* Walks a shared image. The first walk sorts the topics, while other threads
 * may begin to walk. */
static void step_walk(worker_t *x) {
        rdmeta_image_t *image = image_shared(x);
        rdmeta_reader_t *r    = rdmeta_image_reader(image, RDMETA_ALLOW_STALE);
        walk_t walk = {.worker = x, .reader = r};
        rdmeta_image_info_t info;

        CHECK(r);
        rdmeta_image_info(image, &info);
        CHECK(!rdmeta_reader_walk(r, "", 0,
                                  RDMETA_WALK_VALID | RDMETA_WALK_STALE,
                                  info.taken_mono_us, walk_visit, &walk));
        CHECK((uint64_t)walk.n == info.topics);
        rdmeta_reader_destroy(r);
        rdmeta_image_unref(image);
        worker_did(x);
}

static int32_t diff_visit(void *opaque, const rdmeta_change_t *c) {
        worker_t *x = opaque;

        race_change_check(x->fixture, c);
        return 0;
}

static void step_diff(worker_t *x) {
        rdmeta_image_t *a = image_shared(x), *b = image_shared(x);

        CHECK(!rdmeta_image_diff(a, b, diff_visit, x));
        rdmeta_image_unref(a);
        rdmeta_image_unref(b);
        worker_did(x);
}

static void step_stats(worker_t *x) {
        rdmeta_stats_t stats;

        rdmeta_cache_stats(x->fixture->cache, &stats);
        CHECK(stats.images >= SHARED - 1);
        CHECK(stats.bytes_images <= stats.bytes);
        worker_did(x);
}

static void (*const kinds[])(worker_t *x) = {
        step_cache,   step_own,  step_own,  step_shared, step_shared,
        step_replace, step_walk, step_walk, step_diff,   step_stats};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* ---- all of them at once ------------------------------------------------- */

static void *worker_main(void *arg) {
        worker_t *x = arg;

        while (!atomic_load_explicit(&x->fixture->stop, memory_order_relaxed)) {
                x->step(x);
                race_dither(&x->rng);
        }
        return NULL;
}

static void *sweeper_main(void *arg) {
        const struct timespec nap = {0, 2000000};
        race_t *w = arg;

        while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
                rdmeta_cache_sweep(w->cache, race_now(w));
                nanosleep(&nap, NULL);
        }
        return NULL;
}

static uint64_t least_done(const worker_t *workers) {
        uint64_t least = UINT64_MAX, done;
        int k;

        for (k = 0; k < KINDS; k++) {
                done  = atomic_load(&workers[k].done);
                least = done < least ? done : least;
        }
        return least;
}

static void check_until_done(race_t *w, const worker_t *workers) {
        const struct timespec nap = {0, 20000000};
        const time_t end          = time(NULL) + SECONDS;
        rdmeta_stats_t stats;
        const char *wrong;

        do {
                nanosleep(&nap, NULL);
                wrong = rdmeta_cache_check(w->cache);
                if (wrong)
                        fprintf(stderr, "cache: %s\n", wrong);
                CHECK(!wrong);
                rdmeta_cache_stats(w->cache, &stats);
        } while (least_done(workers) < ENOUGH || stats.rehashes < 3 ||
                 stats.leader_hints_taken == 0 || time(NULL) < end);
        atomic_store(&w->stop, 1);
}

static void shared_init(shared_t *s, race_t *w) {
        int k;

        CHECK(!pthread_mutex_init(&s->lock, NULL));
        for (k = 0; k < SHARED; k++) {
                s->images[k] = rdmeta_cache_image(w->cache, race_now(w));
                CHECK(s->images[k]);
        }
}

static void shared_destroy(shared_t *s) {
        int k;

        for (k = 0; k < SHARED; k++)
                rdmeta_image_unref(s->images[k]);
        CHECK(!pthread_mutex_destroy(&s->lock));
}

static void run_all(int fence) {
        static race_writer_t writers[WRITERS];
        static worker_t workers[KINDS];
        static shared_t shared;
        static race_t w;
        pthread_t threads[KINDS + WRITERS + 1];
        rdmeta_stats_t stats;
        int k;

        race_init(&w, test_seed, fence);
        shared_init(&shared, &w);
        memset(workers, 0, sizeof(workers));
        for (k = 0; k < KINDS; k++) {
                workers[k].fixture = &w;
                workers[k].shared  = &shared;
                workers[k].step    = kinds[k];
                workers[k].rng     = test_rng((uint64_t)k + 100);
                workers[k].reader  = rdmeta_reader_new(w.cache, 0);
                CHECK(workers[k].reader);
                CHECK(!pthread_create(&threads[k], NULL, worker_main,
                                      &workers[k]));
        }
        for (k = 0; k < WRITERS; k++) {
                writers[k].fixture = &w;
                writers[k].rng     = test_rng((uint64_t)k + 1);
                CHECK(!pthread_create(&threads[KINDS + k], NULL,
                                      race_writer_main, &writers[k]));
        }
        CHECK(!pthread_create(&threads[KINDS + k], NULL, sweeper_main, &w));
        check_until_done(&w, workers);
        for (k = 0; k < KINDS + WRITERS + 1; k++)
                CHECK(!pthread_join(threads[k], NULL));
        for (k = 0; k < KINDS; k++)
                rdmeta_reader_destroy(workers[k].reader);
        shared_destroy(&shared);
        rdmeta_cache_stats(w.cache, &stats);
        CHECK(stats.images == 0 && stats.bytes_images == 0);
        for (k = 0; k < WRITERS; k++)
                race_writer_end(&writers[k]);
        race_destroy(&w);
}

TEST(test_an_image_does_not_change_while_other_threads_write) {
        run_all(0);
}

TEST(test_an_image_does_not_change_without_membarrier) {
        run_all(1);
}

/* ---- one at a time ------------------------------------------------------- */

static void *last_main(void *arg) {
        rdmeta_image_unref(arg);
        return NULL;
}

static void *image_make(rdmeta_cache_t *c) {
        return rdmeta_cache_image(c, (rdmeta_time_t){0, 0});
}

TEST(test_the_last_release_frees_the_cache) {
        race_to_be_last(image_make, last_main);
}

TEST_MAIN()
