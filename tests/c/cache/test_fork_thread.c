/*
 * Forks at random moments while two threads write and another makes and drops
 * caches. Each child has a whole cache. All kinds of readers must work there,
 * and they check what they read: see race_fixture.h.
 */
#include "support/race_fixture.h"

#include <sys/wait.h>

enum { WRITERS = 2, FORKS = 25, MANY = 1000 };

/* TSan's search for deadlocks has room for 64 locks that a thread has. */
__attribute__((visibility("default"))) const char *
__tsan_default_options(void);
const char *__tsan_default_options(void) {
        return "detect_deadlocks=0";
}

/* The child's memory. Another thread may be inside malloc() at the fork, so
 * under ASan the child must not call malloc(). */
static char arena[64 << 20];
static size_t arena_used;

static void *arena_alloc(void *opaque, size_t size) {
        void *p = arena + arena_used;

        (void)opaque;
        arena_used += (size + 63) / 64 * 64;
        CHECK(arena_used <= sizeof(arena));
        return p;
}

static void arena_free(void *opaque, void *p, size_t size) {
        (void)opaque;
        if ((char *)p >= arena && (char *)p < arena + sizeof(arena))
                memset(p, 0xdb, size);
}

/* The kinds of readers that do not wait. */
static const int kinds[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 15, 16};

static void read_everything(race_t *w) {
        size_t i;
        int k;

        for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                race_worker_t x;

                race_worker_init(&x, w, kinds[i],
                                 test_rng(w->cache->stats.version + i));
                for (k = 0; k < 2; k++)
                        x.step(&x);
                rdmeta_reader_destroy(x.reader);
        }
}

typedef struct census {
        const race_t *fixture;
        rdmeta_reader_t *reader;
        uint64_t topics, partitions, negatives;
        char last[RACE_NAME];
} census_t;

static int32_t count_topic(void *opaque, const rdmeta_topic_t *t) {
        census_t *s = opaque;
        rdmeta_topic_info_t info;

        race_topic_check(s->fixture, s->reader, t);
        rdmeta_topic_info(s->reader, t, INT64_MAX, &info);
        CHECK(strcmp(s->last, info.name.data) < 0);
        memcpy(s->last, info.name.data, info.name.len + 1);
        s->topics += info.state == RDMETA_STALE;
        s->partitions += info.state == RDMETA_STALE ? info.partitions : 0;
        s->negatives += info.state != RDMETA_STALE;
        return 0;
}

static void take_census(const race_t *w, rdmeta_reader_t *r, census_t *out) {
        CHECK(r);
        memset(out, 0, sizeof(*out));
        out->fixture  = w;
        out->reader  = r;
        CHECK(!rdmeta_reader_walk(r, "", 0, 7, 0, count_topic, out));
        rdmeta_reader_destroy(r);
}

/* Checks that walks, images and statistics of the child's cache agree. */
static void count_everything(race_t *w) {
        rdmeta_image_t *image = rdmeta_cache_image(w->cache, race_now(w));
        rdmeta_image_info_t info;
        rdmeta_stats_t stats;
        census_t own, live;

        CHECK(image);
        take_census(w, rdmeta_reader_new(w->cache, 0), &own);
        take_census(w, rdmeta_image_reader(image, 0), &live);
        CHECK(own.topics == live.topics && own.negatives == live.negatives);
        CHECK(own.partitions == live.partitions);
        rdmeta_image_info(image, &info);
        CHECK(info.topics == own.topics && info.partitions == own.partitions);
        rdmeta_cache_stats(w->cache, &stats);
        CHECK(stats.topics == own.topics);
        CHECK(stats.partitions == own.partitions);
        rdmeta_image_unref(image);
}

static void in_a_child(race_t *w, rdmeta_reader_t *reader,
                      rdmeta_image_t *image) {
        rdmeta_cache_t *c = w->cache;
        census_t first, again;

        c->conf.allocator = (rdmeta_allocator_t){arena_alloc, arena_free,
                                                 NULL};
        CHECK(!rdmeta_cache_check(c));
        read_everything(w);
        count_everything(w);
        take_census(w, rdmeta_image_reader(image, 0), &first);
        take_census(w, rdmeta_image_reader(image, 0), &again);
        CHECK(first.topics == again.topics);
        CHECK(rdmeta_cache_apply(c, "", 0, 12, NULL, race_now(w), NULL) ==
              RDMETA_ERR_FORKED);
        rdmeta_reader_destroy(reader);
        rdmeta_image_unref(image);
        rdmeta_cache_unref(c); /* the last one */
}

/* Takes an image, and forks after the next write. The child reads that image
 * and takes another. */
static void fork_once(race_t *w, rdmeta_reader_t *reader) {
        const uint64_t version = rdmeta_cache_version(w->cache);
        rdmeta_image_t *image  = rdmeta_cache_image(w->cache, race_now(w));
        int status;
        pid_t pid;

        CHECK(image);
        while (rdmeta_cache_wait(w->cache, version, NULL, 0, INT64_MAX) <=
               version)
                ; /* a writer interrupts waits, too */
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                in_a_child(w, reader, image);
                _Exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && !status);
        rdmeta_image_unref(image);
}

/* Writes without a pause, so that a writer has the lock most of the time. */
static void *writer_main(void *arg) {
        race_writer_t *x = arg;

        while (!atomic_load_explicit(&x->fixture->stop, memory_order_relaxed))
                race_write_step(x);
        return NULL;
}

static void *come_and_go(void *arg) {
        race_t *w = arg;

        while (!atomic_load_explicit(&w->stop, memory_order_relaxed))
                rdmeta_cache_unref(rdmeta_cache_new(NULL));
        return NULL;
}

TEST(test_a_child_can_read_whatever_its_parent_was_doing) {
        static race_writer_t writers[WRITERS];
        static race_t w;
        pthread_t threads[WRITERS], other;
        rdmeta_reader_t *reader;
        int k;

        race_init(&w, test_seed, 0);
        reader = rdmeta_reader_new(w.cache, 0);
        CHECK(reader);
        for (k = 0; k < WRITERS; k++) {
                writers[k].fixture = &w;
                writers[k].rng     = test_rng((uint64_t)k + 1);
                CHECK(!pthread_create(&threads[k], NULL, writer_main,
                                      &writers[k]));
        }
        CHECK(!pthread_create(&other, NULL, come_and_go, &w));
        for (k = 0; k < FORKS; k++)
                fork_once(&w, reader);
        atomic_store(&w.stop, 1);
        CHECK(!pthread_join(other, NULL));
        for (k = 0; k < WRITERS; k++) {
                CHECK(!pthread_join(threads[k], NULL));
                race_writer_end(&writers[k]);
        }
        rdmeta_reader_destroy(reader);
        race_destroy(&w);
}

/* ---- many caches --------------------------------------------------------- */

typedef struct caches {
        rdmeta_cache_t *all[MANY];
        size_t n;
        _Atomic int stop;
} caches_t;

/* Puts a name in flight in each cache, and ends that, without a pause. */
static void *write_all(void *arg) {
        const rdmeta_time_t now = {0, 0};
        const rdmeta_str_t name = {"name", 4};
        caches_t *w             = arg;
        rdmeta_str_t ask;
        size_t i, n;

        while (!atomic_load(&w->stop))
                for (i = 0; i < w->n; i++) {
                        CHECK(!rdmeta_cache_hint(w->all[i], &name, 1, 0, 0,
                                                 now, &ask, &n));
                        CHECK(rdmeta_cache_purge_hints(w->all[i], &name, 1,
                                                       now) == 1);
                }
        return NULL;
}

static void check_all(const caches_t *w) {
        size_t i;

        for (i = 0; i < w->n; i++) {
                rdmeta_cache_t *c = w->all[i];
                rdmeta_reader_t *r;

                c->conf.allocator = (rdmeta_allocator_t){arena_alloc,
                                                         arena_free, NULL};
                CHECK(!rdmeta_cache_check(c));
                r = rdmeta_reader_new(c, 0);
                CHECK(r && rdmeta_leader(r, "name", 4, 0, 0) < 0);
                rdmeta_reader_destroy(r);
                rdmeta_cache_unref(c);
        }
}

static void fork_beside(size_t n) {
        caches_t w = {.n = n};
        pthread_t thread;
        int status, k;
        size_t i;
        pid_t pid;

        for (i = 0; i < n; i++)
                CHECK((w.all[i] = rdmeta_cache_new(NULL)) != NULL);
        CHECK(!pthread_create(&thread, NULL, write_all, &w));
        for (k = 0; k < 5; k++) {
                pid = fork();
                CHECK(pid >= 0);
                if (pid == 0) {
                        check_all(&w);
                        _Exit(0);
                }
                CHECK(waitpid(pid, &status, 0) == pid && !status);
        }
        atomic_store(&w.stop, 1);
        CHECK(!pthread_join(thread, NULL));
        for (i = 0; i < n; i++)
                rdmeta_cache_unref(w.all[i]);
}

TEST(test_each_of_many_caches_is_whole_in_the_child) {
        fork_beside(1);
        fork_beside(100);
        fork_beside(MANY);
}

TEST_MAIN()
