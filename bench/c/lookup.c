/*
 * lookup TOPICS ROUNDS QUERIES SEED: times the leader of a partition, in C.
 *
 * The same prepared queries go to the bare table (floor.h) and to the cache, by
 * turns. Each goes through a call into another translation unit. The one that
 * goes first changes with each round. A query is (name, length, partition). Its
 * name lies in one pool with every other topic's. So a random query also misses
 * the cache lines of its own bytes, as in a program.
 *
 * `hot` asks HOT_QUERIES again and again, about eight topics. Each round takes
 * eight others, so that no luck of a hash lasts.
 */
#include "common.h"
#include "floor.h"

enum { HOT_TOPICS = 8, HOT_QUERIES = 1024, MAX_QUERIES = 1 << 26 };

typedef struct subject {
        const floor_table_t *floor;
        rdmeta_reader_t *reader;
        int64_t mono_us;
} subject_t;

/* Returns the sum of the leaders. Both must have the same; no code is dead. */
typedef int64_t (*loop_t)(const subject_t *s, const bench_query_t *q, size_t n);

static __attribute__((noinline)) int64_t loop_floor(const subject_t *s,
                                                    const bench_query_t *q,
                                                    size_t n) {
        const floor_table_t *floor = s->floor;
        int64_t sum                = 0;
        size_t i;

        for (i = 0; i < n; i++)
                sum += floor_leader(floor, q[i].topic, q[i].len,
                                    q[i].partition);
        return sum;
}

static int64_t loop_cache(const subject_t *s, const bench_query_t *q,
                          size_t n) {
        return bench_ask(s->reader, q, n, s->mono_us);
}

static int64_t timed(loop_t loop, const subject_t *s, const bench_query_t *q,
                     size_t n, size_t times, bench_samples_t *out) {
        double begin = bench_now_ns();
        int64_t sum  = 0;
        size_t i;

        for (i = 0; i < times; i++)
                sum += loop(s, q, n);
        if (out)
                bench_add(out, (bench_now_ns() - begin) /
                                       (double)(n * times));
        return sum;
}

/* Times floor and cache over the same queries, once to warm up and once
 * measured. `swap`: the cache goes first. */
static void pair(const subject_t *s, const bench_query_t *q, size_t n,
                 size_t times, int swap, bench_samples_t *floor,
                 bench_samples_t *cache) {
        const loop_t loops[2] = {loop_floor, loop_cache};
        bench_samples_t *out[2];
        int64_t sums[2];
        int k, which;

        out[0] = floor;
        out[1] = cache;
        for (k = 0; k < 2; k++) {
                which = k ^ swap;
                timed(loops[which], s, q, n, 1, NULL);
                sums[which] =
                        timed(loops[which], s, q, n, times, out[which]);
        }
        if (sums[0] != sums[1])
                bench_die("the cache's leaders are not the table's");
}

static void measure(gen_t *g, const subject_t *s, size_t n, int rounds) {
        static bench_samples_t random_floor = {.name = "random_floor"};
        static bench_samples_t random_cache = {.name = "random_cache"};
        static bench_samples_t hot_floor    = {.name = "hot_floor"};
        static bench_samples_t hot_cache    = {.name = "hot_cache"};
        bench_query_t *q = gen_pages(n * sizeof(*q)), hot[HOT_QUERIES];
        size_t i, times = n / HOT_QUERIES ? n / HOT_QUERIES : 1;
        int r;

        bench_queries(q, g, n);
        for (r = 0; r < rounds; r++) {
                uint32_t topics[HOT_TOPICS];

                for (i = 0; i < HOT_TOPICS; i++)
                        topics[i] = gen_below(g, g->conf.topics);
                for (i = 0; i < HOT_QUERIES; i++)
                        bench_query(&hot[i], g,
                                    topics[gen_below(g, HOT_TOPICS)]);
                pair(s, q, n, 1, r & 1, &random_floor, &random_cache);
                pair(s, hot, HOT_QUERIES, times, r & 1, &hot_floor,
                     &hot_cache);
        }
        bench_print_samples(&random_floor);
        bench_print_samples(&random_cache);
        bench_print_samples(&hot_floor);
        bench_print_samples(&hot_cache);
        gen_pages_free(q, n * sizeof(*q));
}

int main(int argc, char **argv) {
        rdmeta_cache_t *cache;
        floor_table_t *floor;
        subject_t subject;
        uint32_t topics;
        size_t queries;
        int rounds;
        gen_t g;

        if (argc != 5)
                bench_die("lookup TOPICS ROUNDS QUERIES SEED");
        topics  = (uint32_t)bench_number(argv[1], 1, 5000000);
        rounds  = (int)bench_number(argv[2], 1, BENCH_MAX_ROUNDS);
        queries = (size_t)bench_number(argv[3], 1, MAX_QUERIES);
        bench_start();
        g = bench_cluster(topics, GEN_IDS_8,
                          (uint64_t)bench_number(argv[4], 0, INT32_MAX));
        cache           = bench_filled(&g);
        floor           = floor_new(&g);
        subject.floor   = floor;
        subject.reader  = rdmeta_reader_new(cache, 0);
        subject.mono_us = bench_mono_us();
        if (!subject.reader)
                bench_die("no memory for a reader");
        bench_print_begin("lookup");
        bench_print_number("topics", topics);
        measure(&g, &subject, queries, rounds);
        bench_print_end();
        rdmeta_reader_destroy(subject.reader);
        rdmeta_cache_unref(cache);
        floor_destroy(floor);
        gen_free(&g);
        return 0;
}
