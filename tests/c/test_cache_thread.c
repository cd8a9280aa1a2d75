/*
 * cache: readers of every kind beside writers of every kind. `make tsan`
 * builds it too, as its name asks for. What is read carries its own proof: see
 * race_world.h. Threads end when the writers have done enough or two seconds
 * are over, but not before each has seen something.
 */
#include "race_world.h"

enum { WRITERS = 2, SECONDS = 2, ENOUGH = 20, BATCH = 40 };

typedef struct worker {
        race_t *world;
        void (*step)(struct worker *x);
        test_rng_t rng;
        rdmeta_reader_t *reader;
        uint64_t since;
        int stale;
        _Atomic uint64_t done; /* steps that could have failed a check */
} worker_t;

static void worker_did(worker_t *x) {
        atomic_fetch_add_explicit(&x->done, 1, memory_order_relaxed);
}

static void worker_dither(worker_t *x) {
        race_dither(&x->rng);
}

/* Now and then so long that writers retire much and free what they may. */
static void worker_linger(worker_t *x) {
        const struct timespec nap = {0, 10000000};

        if (test_below(&x->rng, 100) == 0)
                nanosleep(&nap, NULL);
        worker_dither(x);
}

static uint32_t any_topic(worker_t *x) {
        return (uint32_t)test_below(&x->rng, RACE_TOPICS);
}

static int64_t any_now(worker_t *x) {
        return race_now(x->world).mono_us;
}

/* ---- readers ------------------------------------------------------------- */

static void read_leader(worker_t *x) {
        const int stale = x->stale;
        int k;

        for (k = 0; k < 20; k++) {
                const uint32_t i = any_topic(x);
                const rdmeta_str_t name = race_name(x->world, i);
                const uint32_t p = (uint32_t)test_below(&x->rng, 10);

                if (race_leader_check(i, p,
                                      rdmeta_leader(x->reader, name.data,
                                                    name.len, (int32_t)p,
                                                    any_now(x)),
                                      stale))
                        worker_did(x);
        }
        CHECK(rdmeta_leader(x->reader, "team-000.race-no-such-topic", 27, 0,
                            any_now(x)) == RDMETA_NOT_CACHED);
}

static void read_leaders(worker_t *x) {
        int32_t partitions[BATCH], out[BATCH];
        rdmeta_str_t names[BATCH];
        uint32_t topics[BATCH];
        int k;

        for (k = 0; k < BATCH; k++) {
                topics[k]     = any_topic(x);
                names[k]      = race_name(x->world, topics[k]);
                partitions[k] = (int32_t)test_below(&x->rng, 10);
        }
        rdmeta_leaders(x->reader, names, partitions, BATCH, any_now(x), out);
        for (k = 0; k < BATCH; k++)
                if (race_leader_check(topics[k], (uint32_t)partitions[k],
                                      out[k], x->stale))
                        worker_did(x);
}

static void read_partition(worker_t *x) {
        int32_t lists[3][RACE_REPLICAS + 1];
        const uint32_t i        = any_topic(x);
        const rdmeta_str_t name = race_name(x->world, i);
        const int32_t partition = (int32_t)test_below(&x->rng, 10);
        rdmeta_partition_t p;

        memset(&p, 0, sizeof(p));
        p.replicas.capacity = p.isr.capacity = RACE_REPLICAS + 1;
        p.offline_replicas.capacity          = RACE_REPLICAS + 1;
        p.replicas.ids                       = lists[0];
        p.isr.ids                            = lists[1];
        p.offline_replicas.ids               = lists[2];
        if (rdmeta_partition(x->reader, name.data, name.len, partition,
                             any_now(x), &p))
                return;
        CHECK(p.partition == partition);
        race_partition_check(i, &p);
        worker_did(x);
}

/* Borrowed memory is read twice, with other calls and some time between. */
static void read_topic(worker_t *x) {
        const uint32_t i        = any_topic(x);
        const rdmeta_str_t name = race_name(x->world, i);
        const rdmeta_topic_t *t, *same;
        rdmeta_topic_info_t info;

        rdmeta_reader_enter(x->reader);
        rdmeta_topic_find(x->reader, name.data, name.len, any_now(x), &t);
        if (t) {
                CHECK(race_topic_check(x->world, x->reader, t) == i);
                rdmeta_topic_info(x->reader, t, any_now(x), &info);
                read_leader(x);
                rdmeta_reader_enter(x->reader);
                worker_linger(x);
                rdmeta_topic_find_id(x->reader, info.topic_id, any_now(x),
                                     &same);
                if (same)
                        CHECK(race_topic_check(x->world, x->reader, same) ==
                              i);
                rdmeta_reader_leave(x->reader);
                worker_dither(x);
                CHECK(race_topic_check(x->world, x->reader, t) == i);
                worker_did(x);
        }
        rdmeta_reader_leave(x->reader);
}

static void read_brokers(worker_t *x) {
        const rdmeta_brokers_t *b;

        rdmeta_reader_enter(x->reader);
        b = rdmeta_brokers(x->reader);
        race_brokers_check(b);
        worker_linger(x);
        race_brokers_check(b);
        if (rdmeta_brokers_count(b))
                worker_did(x);
        rdmeta_reader_leave(x->reader);
}

typedef struct walk {
        worker_t *worker;
        char last[RACE_NAME];
        size_t last_len;
        rdmeta_str_t prefix;
        int left;
} walk_t;

static int32_t walk_visit(void *opaque, const rdmeta_topic_t *t) {
        walk_t *walk    = opaque;
        worker_t *x     = walk->worker;
        const uint32_t i = race_topic_check(x->world, x->reader, t);
        const rdmeta_str_t name = race_name(x->world, i);

        CHECK(!walk->last_len || strcmp(walk->last, name.data) < 0);
        CHECK(!strncmp(name.data, walk->prefix.data, walk->prefix.len));
        memcpy(walk->last, name.data, name.len + 1);
        walk->last_len = name.len;
        worker_did(x);
        worker_linger(x);
        return --walk->left == 0 ? 77 : 0;
}

static void read_walk(worker_t *x) {
        static const char *const prefixes[] = {"", "team-0", "t", "a-", "no"};
        const rdmeta_str_t prefix = test_str(prefixes[test_below(&x->rng, 5)]);
        walk_t walk = {.worker = x, .prefix = prefix,
                       .left = (int)test_below(&x->rng, 400)};
        rdmeta_err_t err;

        err = rdmeta_reader_walk(x->reader, prefix.data, prefix.len,
                                 1 + (int32_t)test_below(&x->rng, 7),
                                 any_now(x), walk_visit, &walk);
        CHECK(err == (walk.left == 0 && walk.last_len ? 77 : 0));
        CHECK(prefix.data[0] != 'n' || !walk.last_len);
        worker_dither(x);
}

static int32_t change_visit(void *opaque, const rdmeta_change_t *c) {
        worker_t *x = opaque;

        CHECK(c->version > x->since);
        CHECK(c->wall_us > 1000000);
        race_change_check(x->world, c);
        worker_did(x);
        worker_linger(x);
        if (test_below(&x->rng, 256) == 0)
                read_leader(x);
        return 0;
}

static void read_changes(worker_t *x) {
        uint64_t until;
        int32_t resync;

        CHECK(!rdmeta_cache_changes(x->world->cache, x->since, change_visit,
                                    x, &until, &resync));
        CHECK(until >= x->since);
        x->since = until;
        worker_dither(x);
}

static void read_wait(worker_t *x) {
        rdmeta_cache_t *c    = x->world->cache;
        const uint64_t since = rdmeta_cache_version(c);
        const size_t n       = test_below(&x->rng, 4);
        rdmeta_str_t topics[4];
        uint64_t version;
        size_t k;

        for (k = 0; k < n; k++)
                topics[k] = race_name(x->world, any_topic(x));
        version = rdmeta_cache_wait(c, since, topics, n, 2000);
        CHECK(version == 0 || version > since);
        if (version)
                worker_did(x);
}

/* Readers come and go, and look at figures meanwhile. */
static void read_coming_and_going(worker_t *x) {
        rdmeta_cache_t *c = x->world->cache;
        rdmeta_reader_t *own[3];
        rdmeta_stats_t stats;
        int k;

        for (k = 0; k < 3; k++) {
                own[k] = rdmeta_reader_new(c, k);
                CHECK(own[k]);
        }
        rdmeta_cache_stats(c, &stats);
        CHECK(stats.readers >= 3 && stats.waiters >= 0);
        CHECK(stats.topics + stats.negatives <= RACE_TOPICS);
        CHECK(stats.ring_floor <= stats.version);
        for (k = 0; k < 3; k++) {
                worker_t y = {.world = x->world, .reader = own[k],
                              .rng = x->rng, .stale = k & 1};
                read_leader(&y);
                read_topic(&y);
                rdmeta_reader_destroy(own[k]);
        }
        test_u64(&x->rng);
        worker_did(x);
}

static void watch_told(void *opaque, uint64_t version) {
        worker_t *x = opaque;

        CHECK(version && version <= rdmeta_cache_version(x->world->cache));
        worker_did(x);
}

static void read_watch(worker_t *x) {
        const rdmeta_str_t name = race_name(x->world, any_topic(x));
        rdmeta_watch_t *all, *one;
        rdmeta_stats_t stats;

        all = rdmeta_watch_new(x->world->cache, NULL, 0, watch_told, x);
        one = rdmeta_watch_new(x->world->cache, &name, 1, watch_told, x);
        CHECK(all && one);
        rdmeta_cache_wait(x->world->cache,
                          rdmeta_cache_version(x->world->cache) + 1, NULL, 0,
                          2000);
        rdmeta_cache_stats(x->world->cache, &stats);
        CHECK(stats.watches >= 2);
        rdmeta_watch_destroy(one);
        rdmeta_watch_destroy(all);
}

/* ---- all of them at once ------------------------------------------------- */

typedef struct kind {
        void (*step)(worker_t *x);
        int32_t reader; /* its flags; -1: it needs none */
} kind_t;

static const kind_t kinds[] = {
    {read_leader, 0},
    {read_leader, RDMETA_ALLOW_STALE},
    {read_leaders, 0},
    {read_leaders, RDMETA_ALLOW_STALE},
    {read_partition, 0},
    {read_topic, 0},
    {read_topic, RDMETA_ALLOW_STALE},
    {read_brokers, 0},
    {read_walk, 0},
    {read_changes, 0},
    {read_wait, -1},
    {read_coming_and_going, -1},
    {read_watch, -1}};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void *reader_main(void *arg) {
        worker_t *x = arg;

        while (!atomic_load_explicit(&x->world->stop, memory_order_relaxed)) {
                x->step(x);
                worker_dither(x);
        }
        return NULL;
}

static void *writer_main(void *arg) {
        race_writer_t *x = arg;

        while (!atomic_load_explicit(&x->world->stop, memory_order_relaxed)) {
                race_write_step(x);
                race_dither(&x->rng);
        }
        return NULL;
}

static void worker_init(worker_t *x, race_t *w, int k) {
        memset(x, 0, sizeof(*x));
        x->world = w;
        x->step  = kinds[k].step;
        x->rng   = test_rng((uint64_t)k + 100);
        x->stale = kinds[k].reader == RDMETA_ALLOW_STALE;
        if (kinds[k].reader < 0)
                return;
        x->reader = rdmeta_reader_new(w->cache, kinds[k].reader);
        CHECK(x->reader);
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

/* Until there was enough of everything, and some time for more. */
static void watch_over(race_t *w, const worker_t *workers, int seconds) {
        const struct timespec nap = {0, 20000000};
        const time_t end          = time(NULL) + seconds;
        rdmeta_stats_t stats;

        do {
                nanosleep(&nap, NULL);
                CHECK(!rdmeta_cache_check(w->cache));
                rdmeta_cache_stats(w->cache, &stats);
        } while (least_done(workers) < ENOUGH || stats.rehashes < 3 ||
                 stats.ring_floor == 0 || stats.topics_kept_back == 0 ||
                 stats.leader_hints_taken == 0 || time(NULL) < end);
        atomic_store(&w->stop, 1);
        rdmeta_cache_interrupt(w->cache);
}

static void run_all(int fence, int seconds) {
        static race_writer_t writers[WRITERS];
        static worker_t workers[KINDS];
        static race_t w;
        pthread_t threads[KINDS + WRITERS];
        int k;

        race_init(&w, test_seed, fence);
        for (k = 0; k < KINDS; k++)
                worker_init(&workers[k], &w, k);
        for (k = 0; k < WRITERS; k++) {
                writers[k].world = &w;
                writers[k].rng   = test_rng((uint64_t)k + 1);
                CHECK(!pthread_create(&threads[KINDS + k], NULL, writer_main,
                                      &writers[k]));
        }
        for (k = 0; k < KINDS; k++)
                CHECK(!pthread_create(&threads[k], NULL, reader_main,
                                      &workers[k]));
        watch_over(&w, workers, seconds);
        for (k = 0; k < KINDS + WRITERS; k++)
                CHECK(!pthread_join(threads[k], NULL));
        for (k = 0; k < KINDS; k++)
                rdmeta_reader_destroy(workers[k].reader);
        for (k = 0; k < WRITERS; k++) {
                gen_bytes_free(&writers[k].answer.body);
                writers[k].answer.body.capacity = 0;
        }
        race_destroy(&w);
}

static void test_readers_see_each_topic_whole_whatever_writers_do(void) {
        run_all(0, SECONDS);
}

static void test_the_same_where_the_kernel_has_no_membarrier(void) {
        run_all(1, SECONDS);
}

/* ---- one at a time ------------------------------------------------------- */

static rdmeta_stats_t write_much(race_t *w, race_writer_t *x) {
        rdmeta_stats_t stats;
        int k;

        for (k = 0; k < 200; k++)
                race_write_step(x);
        CHECK(!rdmeta_cache_check(w->cache));
        rdmeta_cache_stats(w->cache, &stats);
        return stats;
}

static void test_what_a_reader_holds_stays_until_it_leaves(void) {
        static race_writer_t x;
        static race_t w;
        const rdmeta_topic_t *held[RACE_TOPICS];
        const rdmeta_brokers_t *brokers;
        rdmeta_stats_t before, after;
        rdmeta_reader_t *r;
        uint32_t i;

        race_init(&w, test_seed, 0);
        x.world = &w;
        x.rng   = test_rng(7);
        write_much(&w, &x);
        r = rdmeta_reader_new(w.cache, RDMETA_ALLOW_STALE);
        CHECK(r);
        rdmeta_reader_enter(r);
        brokers = rdmeta_brokers(r);
        for (i = 0; i < RACE_TOPICS; i++)
                rdmeta_topic_find(r, w.names[i], strlen(w.names[i]),
                                  race_now(&w).mono_us, &held[i]);
        for (i = 0; i < 20; i++) {
                before = write_much(&w, &x);
                if (before.bytes_limbo > 4 * RDMETA_LIMBO_LOOK)
                        break;
        }
        CHECK(i < 20);
        for (i = 0; i < RACE_TOPICS; i++)
                if (held[i])
                        CHECK(race_topic_check(&w, r, held[i]) == i);
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
        gen_bytes_free(&x.answer.body);
        x.answer.body.capacity = 0;
        race_destroy(&w);
}

static void *last_reader_main(void *arg) {
        rdmeta_reader_t *r = arg;

        CHECK(rdmeta_leader(r, "t", 1, 0, 0) == RDMETA_NOT_CACHED);
        rdmeta_reader_destroy(r);
        return NULL;
}

static void test_whoever_goes_last_takes_the_cache_along(void) {
        pthread_t threads[3];
        rdmeta_conf_t conf;
        test_heap_t heap;
        rdmeta_cache_t *c;
        int again, k;

        for (again = 0; again < 100; again++) {
                rdmeta_conf_init(&conf);
                conf.allocator = test_allocator(&heap);
                c              = rdmeta_cache_new(&conf);
                CHECK(c);
                for (k = 0; k < 3; k++) {
                        rdmeta_reader_t *r = rdmeta_reader_new(c, 0);
                        CHECK(r);
                        CHECK(!pthread_create(&threads[k], NULL,
                                              last_reader_main, r));
                }
                rdmeta_cache_unref(c);
                for (k = 0; k < 3; k++)
                        CHECK(!pthread_join(threads[k], NULL));
                CHECK(!heap.blocks && !heap.bytes);
        }
}

int main(void) {
        test_begin(100);
        RUN(test_what_a_reader_holds_stays_until_it_leaves);
        RUN(test_whoever_goes_last_takes_the_cache_along);
        RUN(test_readers_see_each_topic_whole_whatever_writers_do);
        RUN(test_the_same_where_the_kernel_has_no_membarrier);
        return 0;
}
