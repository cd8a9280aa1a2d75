/*
 * peer speed|memory DIR ROUNDS SECONDS: asks this cache what bench/peers asks
 * the other clients, with the bare table of floor.h beside it.
 *
 *     speed    times lookups of the workload's queries in the table and in the
 *              cache, by name and by handle, by turns; and responses into a new
 *              cache, and again into a cache that has them
 *     memory   measures the resident bytes per partition of a process that does
 *              nothing else: it fills, walks and fills a cache again
 *
 * Samples are called FIGURE:SUBJECT. `sum` is the sum of the leaders found.
 */
#include "floor.h"
#include "workload.h"

#include <stdio.h>
#include <string.h>

typedef struct subject {
        const floor_table_t *floor;
        rdmeta_reader_t *reader;
        rdmeta_handle_t **handles; /* one per topic */
        int64_t mono_us;
} subject_t;

static __attribute__((noinline)) int64_t loop_floor(void *opaque,
                                                    const query_t *q,
                                                    size_t n) {
        const floor_table_t *floor = ((subject_t *)opaque)->floor;
        int64_t sum                = 0;
        size_t i;

        for (i = 0; i < n; i++)
                sum += floor_leader(floor, q[i].topic, q[i].len,
                                    q[i].partition);
        return sum;
}

static __attribute__((noinline)) int64_t loop_cache(void *opaque,
                                                    const query_t *q,
                                                    size_t n) {
        const subject_t *s      = opaque;
        rdmeta_reader_t *reader = s->reader;
        const int64_t mono_us   = s->mono_us;
        int64_t sum             = 0;
        size_t i;

        for (i = 0; i < n; i++)
                sum += rdmeta_leader(reader, q[i].topic, q[i].len,
                                     q[i].partition, mono_us);
        return sum;
}

static __attribute__((noinline)) int64_t loop_handle(void *opaque,
                                                     const query_t *q,
                                                     size_t n) {
        const subject_t *s      = opaque;
        rdmeta_reader_t *reader = s->reader;
        const int64_t mono_us   = s->mono_us;
        int64_t sum             = 0;
        size_t i;

        for (i = 0; i < n; i++)
                sum += rdmeta_handle_leader(reader, s->handles[q[i].number],
                                            q[i].partition, mono_us);
        return sum;
}

static rdmeta_handle_t **resolve(rdmeta_cache_t *cache, const gen_t *g) {
        rdmeta_handle_t **h = gen_pages(g->conf.topics * sizeof(*h));
        uint32_t i;

        for (i = 0; i < g->conf.topics; i++) {
                size_t len;
                const char *name = gen_name(g, i, &len);

                h[i] = rdmeta_resolve(cache, name, len);
                if (!h[i])
                        bench_die("no memory for handles");
        }
        return h;
}

static void lookups(const workload_t *w, rdmeta_cache_t *cache, gen_t *g,
                    int rounds, double seconds) {
        static bench_samples_t random[3] = {{.name = "random:floor"},
                                            {.name = "random:cache"},
                                            {.name = "random:handle"}};
        static bench_samples_t hot[3]    = {{.name = "hot:floor"},
                                            {.name = "hot:cache"},
                                            {.name = "hot:handle"}};
        const workload_loop_t loops[3] = {loop_floor, loop_cache, loop_handle};
        workload_budget_t budget       = workload_budget(rounds, seconds);
        floor_table_t *floor           = floor_new(g);
        int64_t sums[3]                = {0};
        subject_t s = {floor, rdmeta_reader_new(cache, 0), resolve(cache, g),
                       bench_mono_us()};
        uint32_t i;
        int k;

        if (!s.reader)
                bench_die("no memory for a reader");
        while (workload_next(&budget))
                for (k = 0; k < 3; k++) {
                        int at = (k + budget.done) % 3;

                        sums[at] = workload_time(w, loops[at], &s,
                                                 budget.done, &random[at],
                                                 &hot[at]);
                }
        if (sums[0] != sums[1] || sums[0] != sums[2])
                bench_die("the leaders differ");
        bench_print_number("sum", (double)sums[1]);
        for (k = 0; k < 3; k++) {
                bench_print_samples(&random[k]);
                bench_print_samples(&hot[k]);
        }
        for (i = 0; i < g->conf.topics; i++)
                rdmeta_handle_release(s.handles[i]);
        gen_pages_free(s.handles, g->conf.topics * sizeof(*s.handles));
        rdmeta_reader_destroy(s.reader);
        floor_destroy(floor);
}

static void fills(const workload_t *w, rdmeta_cache_t *lasting,
                  const uint8_t *response, size_t len, int rounds,
                  double seconds) {
        static bench_samples_t cold = {.name = "cold:cache"};
        static bench_samples_t same = {.name = "same:cache"};
        workload_budget_t budget    = workload_budget(rounds, seconds);
        const double partitions     = (double)w->topics * w->per_topic;
        rdmeta_applied_t applied;

        while (workload_next(&budget)) {
                rdmeta_cache_t *cache = bench_cache();

                bench_add(&cold, bench_apply(cache, response, len, w->topics,
                                             &applied) /
                                         partitions);
                rdmeta_cache_unref(cache);
                bench_add(&same, bench_apply(lasting, response, len,
                                             w->topics, &applied) /
                                         partitions);
                if (applied.changed)
                bench_die("the same answer changed %u topics",
                                  applied.changed);
        }
        bench_print_samples(&cold);
        bench_print_samples(&same);
}

static void memory(const workload_t *w, const uint8_t *response, size_t len) {
        const double partitions = (double)w->topics * w->per_topic;
        double before           = (bench_memory("Rss"), bench_memory("Rss"));
        rdmeta_cache_t *cache   = bench_cache();
        rdmeta_applied_t applied;

        bench_apply(cache, response, len, w->topics, &applied);
        bench_walk(cache, w->topics);
        bench_apply(cache, response, len, w->topics, &applied);
        printf(", \"memory:cache\": [%.3f]",
               (bench_memory("Rss") - before) / partitions);
        rdmeta_cache_unref(cache);
}

static void speed(const workload_t *w, const uint8_t *response, size_t len,
                  int rounds, double seconds) {
        rdmeta_cache_t *cache = bench_cache();
        rdmeta_applied_t applied;
        gen_t g = bench_cluster(w->topics, GEN_IDS_8, w->seed);

        bench_apply(cache, response, len, w->topics, &applied);
        lookups(w, cache, &g, rounds, seconds);
        fills(w, cache, response, len, rounds, seconds);
        rdmeta_cache_unref(cache);
        gen_free(&g);
}

int main(int argc, char **argv) {
        const uint8_t *response;
        workload_t w;
        double seconds;
        int rounds;
        size_t len;

        if (argc != 5)
                bench_die("peer speed|memory DIR ROUNDS SECONDS");
        rounds  = (int)bench_number(argv[3], 1, BENCH_MAX_ROUNDS);
        seconds = (double)bench_number(argv[4], 0, 3600);
        bench_start();
        w        = workload_open(argv[2]);
        response = workload_file(argv[2], "all-12", &len);
        bench_print_begin("peer");
        if (!strcmp(argv[1], "memory"))
                memory(&w, response, len);
        else
                speed(&w, response, len, rounds, seconds);
        bench_print_end();
        return 0;
}
