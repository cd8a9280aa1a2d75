/*
 * stress SECONDS: what the unit tests do for moments, for as long as wanted.
 *
 *     race    readers of every kind beside writers and sweeps, over values that
 *             each reader can check (race_fixture.h). The kernel refuses
 *             membarrier to one of two processes.
 *     churn   a million partitions whose leaders, ISRs and topics come and go
 *             all the time. Lookups stay right. Memory is at most a quarter
 *             more than that of a new cache with the same topics. The memory of
 *             changelog, limbo and former ids does not count.
 *
 * Both run at once, each for all of the seconds.
 *
 * The build has RDMETA_POISON: freed blocks are overwritten at once.
 */
#include "support/race_fixture.h"

#include "support/no_membarrier.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
        TOPICS     = 100000,
        PARTITIONS = 10,
        BROKERS    = 60,
        SOME       = 400, /* the most topics of one answer */
        LOOKUPS    = 64,
        SLICE_S    = 60
};

typedef struct churn {
        rdmeta_cache_t *cache;
        gen_cluster_t *cluster;
        gen_topic_t some[SOME];
        rdmeta_str_t names[SOME];
        uint8_t *gone; /* 1: the topic is deleted */
        gen_bytes_t body;
        test_rng_t rng;
        uint64_t answers, partitions;
        size_t rss_before; /* resident memory before the cache was filled */
        _Atomic int stop;
        _Atomic uint64_t lookups;
} churn_t;

static int64_t mono_us(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static rdmeta_time_t now_of(void) {
        rdmeta_time_t now = {mono_us(), 1};

        return now;
}

/* ---- churn: the writer --------------------------------------------------- */

static void churn_partition(churn_t *x, gen_topic_t *t) {
        const uint32_t k   = (uint32_t)test_below(&x->rng, t->partition_count);
        gen_partition_t *p = &t->partitions[k];

        if (test_below(&x->rng, 2))
                gen_move_leader(t, k);
        else
                p->epoch++;
        p->isr.count = p->replicas.count - !test_below(&x->rng, 8);
}

static void churn_topic(churn_t *x, uint32_t i) {
        gen_topic_t *t = &x->cluster->topics[i];
        uint32_t k;

        if (!x->gone[i] && test_below(&x->rng, 50)) {
                churn_partition(x, t);
                return;
        }
        x->gone[i] = !x->gone[i];
        if (x->gone[i])
                return;
        for (k = 0; k < 16; k++) /* a new topic of that name */
                t->id[k] = (uint8_t)(test_u64(&x->rng) >> 32);
        for (k = 0; k < t->partition_count; k++)
                t->partitions[k].epoch = 0;
}

static void churn_apply(churn_t *x, gen_topic_t *topics, uint32_t n,
                        const rdmeta_request_t *asked) {
        gen_cluster_t c = *x->cluster;
        rdmeta_err_t err;

        c.topics      = topics;
        c.topic_count = n;
        gen_bytes_clear(&x->body);
        gen_response(&c, 12, &x->body);
        err = rdmeta_cache_apply(x->cache, x->body.data, x->body.len, 12,
                                 asked, now_of(), NULL);
        CHECK(!err);
        x->answers++;
}

static void churn_some(churn_t *x) {
        const uint32_t n     = 1 + (uint32_t)test_below(&x->rng, SOME - 1);
        const uint32_t first = (uint32_t)test_below(&x->rng, TOPICS - n);
        rdmeta_request_t asked = {.asked = RDMETA_ASKED_NAMES,
                                  .names = x->names, .n = n, .broker = 1};
        rdmeta_str_t ask[SOME];
        uint32_t k;
        size_t n_ask;

        asked.flags        = RDMETA_REQ_SENT_VERSION;
        asked.sent_version = rdmeta_cache_version(x->cache);
        for (k = 0; k < n; k++) {
                churn_topic(x, first + k);
                x->some[k]  = x->cluster->topics[first + k];
                x->names[k] = x->some[k].name;
                if (!x->gone[first + k])
                        continue;
                x->some[k].error           = 3;
                x->some[k].partition_count = 0;
                memset(x->some[k].id, 0, 16);
        }
        if (test_below(&x->rng, 4) == 0)
                CHECK(!rdmeta_cache_hint(x->cache, x->names, n,
                                         RDMETA_HINT_FORCE, 0, now_of(), ask,
                                         &n_ask));
        churn_apply(x, x->some, n, &asked);
        CHECK(rdmeta_cache_sweep(x->cache, now_of()) > 0);
}

static void churn_all(churn_t *x) {
        rdmeta_request_t asked = {.asked = RDMETA_ASKED_ALL, .broker = 1};
        gen_topic_t *here;
        uint32_t i, n = 0;

        asked.flags        = RDMETA_REQ_SENT_VERSION;
        asked.sent_version = rdmeta_cache_version(x->cache);
        here = malloc(TOPICS * sizeof(*here));
        CHECK(here);
        for (i = 0; i < TOPICS; i++)
                if (!x->gone[i])
                        here[n++] = x->cluster->topics[i];
        churn_apply(x, here, n, &asked);
        free(here);
}

/* ---- churn: the readers -------------------------------------------------- */

/* Checks that each leader is a broker of the cluster or none, but no other
 * number. */
static void *churn_reader(void *arg) {
        churn_t *x         = arg;
        rdmeta_reader_t *r = rdmeta_reader_new(x->cache, RDMETA_ALLOW_STALE);
        test_rng_t rng     = test_rng(77);
        rdmeta_str_t name;
        int32_t leader;
        int k;

        CHECK(r);
        while (!atomic_load_explicit(&x->stop, memory_order_relaxed)) {
                for (k = 0; k < LOOKUPS; k++) {
                        name = x->cluster->topics[test_below(&rng, TOPICS)]
                                       .name;
                        leader = rdmeta_leader(
                                r, name.data, name.len,
                                (int32_t)test_below(&rng, PARTITIONS),
                                mono_us());
                        CHECK((leader >= 1 && leader <= BROKERS) ||
                              leader == RDMETA_UNKNOWN_TOPIC ||
                              leader == RDMETA_NOT_CACHED ||
                              leader == RDMETA_WAITING);
                }
                atomic_fetch_add_explicit(&x->lookups, LOOKUPS,
                                          memory_order_relaxed);
        }
        rdmeta_reader_destroy(r);
        return NULL;
}

/* Compares the cache, while no writer writes, with the last answers. */
static void churn_compare(churn_t *x) {
        rdmeta_reader_t *r = rdmeta_reader_new(x->cache, 0);
        const int64_t now  = mono_us();
        uint32_t i, k;

        CHECK(r);
        for (i = 0; i < TOPICS; i++) {
                const gen_topic_t *t = &x->cluster->topics[i];

                for (k = 0; k < t->partition_count; k++) {
                        const int32_t leader =
                                rdmeta_leader(r, t->name.data, t->name.len,
                                              (int32_t)k, now);
                        CHECK(x->gone[i] ? leader <= RDMETA_NOT_CACHED
                                         : leader == t->partitions[k].leader);
                }
        }
        rdmeta_reader_destroy(r);
}

/* ---- churn: the memory --------------------------------------------------- */

/* Prints the cache's memory. Returns the bytes per partition without changelog
 * and limbo, which have limits of their own. */
static double cost_print(rdmeta_cache_t *c, const char *when) {
        rdmeta_stats_t s;
        double n;

        rdmeta_cache_stats(c, &s);
        n = (double)s.partitions;
        printf("   %-8s %5.1f B per partition: changelog %.1f, limbo %.1f,"
               " free %.1f; %" PRIu64 " partitions, version %" PRIu64
               ", %" PRIu64 " topics remembered, %" PRIu64 " moved\n",
               when, (double)s.bytes / n, (double)s.bytes_ring / n,
               (double)s.bytes_limbo / n, (double)s.bytes_free / n,
               s.partitions, s.version, s.retained, s.topics_moved);
        fflush(stdout);
        return (double)(s.bytes - s.bytes_ring - s.bytes_limbo) / n;
}

static void rss_print(const churn_t *x) {
        const double rss = (double)test_memory(TEST_RESIDENT);

        printf("   %-8s %5.1f B per partition by the pages of this process\n",
               "", (rss - (double)x->rss_before) / TOPICS / PARTITIONS);
        fflush(stdout);
}

/* Returns the bytes per partition of a new cache with the same topics. */
static double cost_of_new(churn_t *x) {
        rdmeta_cache_t *churned = x->cache;
        double cost;

        x->cache = rdmeta_cache_new(NULL);
        CHECK(x->cache);
        churn_all(x);
        cost = cost_print(x->cache, "new");
        rdmeta_cache_unref(x->cache);
        x->cache = churned;
        return cost;
}

static churn_t *churn_new(void) {
        const gen_shape_t shape = {.seed         = test_seed,
                                   .brokers      = BROKERS,
                                   .first_broker = 1,
                                   .topics       = TOPICS,
                                   .partitions   = PARTITIONS,
                                   .replication  = 3};
        churn_t *x              = calloc(1, sizeof(*x));

        CHECK(x);
        x->cluster = gen_cluster_new(&shape);
        x->gone    = calloc(TOPICS, 1);
        x->cache   = rdmeta_cache_new(NULL);
        x->rng     = test_rng(5);
        CHECK(x->gone && x->cache);
        gen_response(x->cluster, 12, &x->body); /* allocate its memory before */
        x->rss_before = test_memory(TEST_RESIDENT);
        churn_all(x);
        return x;
}

static void churn_run(churn_t *x, int seconds) {
        const int64_t end = mono_us() + (int64_t)seconds * 1000000;
        pthread_t reader;
        int k = 0;

        atomic_store(&x->stop, 0);
        CHECK(!pthread_create(&reader, NULL, churn_reader, x));
        while (mono_us() < end) {
                churn_some(x);
                if (++k % 1000 == 0)
                        churn_all(x);
        }
        atomic_store(&x->stop, 1);
        CHECK(!pthread_join(reader, NULL));
        CHECK(!rdmeta_cache_check(x->cache));
        churn_compare(x);
}

static void churn_free(churn_t *x) {
        rdmeta_cache_unref(x->cache);
        gen_cluster_free(x->cluster);
        gen_bytes_free(&x->body);
        free(x->gone);
        free(x);
}

/* ---- race ---------------------------------------------------------------- */

/* Starts a race in a child. Its memory does not count here, and a refusal of
 * membarrier is for good. Returns the child. */
static pid_t race_start(int refused, int seconds) {
        const pid_t parent = getpid();
        const pid_t pid    = fork();
        uint64_t steps;

        CHECK(pid >= 0);
        if (!pid) {
                CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
                if (getppid() != parent)
                        _Exit(1);
                if (refused && !no_membarrier())
                        printf("   no seccomp here: fences are set\n");
                steps = race_run(test_seed + (uint64_t)mono_us(), refused,
                                 seconds);
                printf("   race%s for %d s: %" PRIu64 " steps checked\n",
                       refused ? " without membarrier" : "", seconds, steps);
                fflush(stdout);
                _Exit(0);
        }
        return pid;
}

/* Runs one kind of race after the other, and churn all the time. */
static void slice_run(churn_t *x, int seconds) {
        int refused, status, half;
        pid_t pid;

        for (refused = 0; refused < 2; refused++) {
                half = refused ? seconds - seconds / 2 : seconds / 2;
                pid  = race_start(refused, half);
                churn_run(x, half);
                CHECK(waitpid(pid, &status, 0) == pid);
                CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
}

int main(int argc, char **argv) {
        const int seconds = argc > 1 ? atoi(argv[1]) : 60;
        const int slices  = (seconds + SLICE_S - 1) / SLICE_S;
        double fresh, churned;
        churn_t *x;
        int k;

        test_begin();
        CHECK(seconds >= 2);
        x = churn_new();
        cost_print(x->cache, "filled");
        rss_print(x);
        for (k = 0; k < slices; k++)
                slice_run(x, seconds * (k + 1) / slices - seconds * k / slices);
        churned = cost_print(x->cache, "churned");
        rss_print(x);
        fresh = cost_of_new(x);
        printf("   %" PRIu64 " answers, %" PRIu64 " lookups beside them\n",
               x->answers, (uint64_t)atomic_load(&x->lookups));
        /* Once epochs are above 127 every block is in a larger piece. The
         * cache gives back all but an eighth of the smaller pieces
         * (cache/compact.c). A chunk that has just begun is a sixteenth, and
         * tables have tombstones. A new cache does not have the ids that are
         * no topic's any more. */
        CHECK(churned < fresh * 1.25 +
                                (16.0 * RDMETA_PAST_MAX + 1) / PARTITIONS);
        churn_free(x);
        return 0;
}
