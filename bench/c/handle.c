/*
 * handle TOPICS ROUNDS QUERIES SEED: times the leader of a partition by handle.
 *
 * `call` is the floor: a call into another translation unit that returns its
 * argument. `hot` asks eight handles of that many topics, as one thread of a
 * producer has. `random` asks a handle of every topic, in a random order.
 */
#include "common.h"
#include "floor.h"

enum { HOT = 8, MAX_QUERIES = 1 << 26 };

typedef struct query {
        rdmeta_handle_t *handle;
        int32_t partition, want;
} query_t;

static query_t *queries_new(gen_t *g, rdmeta_handle_t **handles,
                            uint32_t topics, size_t n) {
        query_t *q = gen_pages(n * sizeof(*q));
        size_t i;

        for (i = 0; i < n; i++) {
                const uint32_t t = gen_below(g, topics);
                q[i].handle      = handles[t];
                q[i].partition   = (int32_t)gen_below(g, g->conf.per_topic);
                q[i].want = gen_leader(g, t, (uint32_t)q[i].partition);
        }
        return q;
}

static double by_handle(rdmeta_reader_t *reader, const query_t *q, size_t n,
                        int64_t *sum) {
        const int64_t mono_us = bench_mono_us();
        const double begin    = bench_now_ns();
        int64_t s             = 0;
        size_t i;

        for (i = 0; i < n; i++)
                s += rdmeta_handle_leader(reader, q[i].handle, q[i].partition,
                                          mono_us);
        *sum = s;
        return (bench_now_ns() - begin) / (double)n;
}

static double by_call(const query_t *q, size_t n, int64_t *sum) {
        const double begin = bench_now_ns();
        int64_t s          = 0;
        size_t i;

        for (i = 0; i < n; i++)
                s += floor_call(q[i].want);
        *sum = s;
        return (bench_now_ns() - begin) / (double)n;
}

static void measure(rdmeta_reader_t *reader, const query_t *q, size_t n,
                    int rounds, bench_samples_t *call, bench_samples_t *out) {
        int64_t want, got;
        double ns;
        int i;

        for (i = 0; i <= rounds; i++) {
                ns = by_call(q, n, &want);
                if (i)
                        bench_add(call, ns);
                ns = by_handle(reader, q, n, &got);
                if (i)
                        bench_add(out, ns);
                if (want != got)
                        bench_die("the handles' leaders are not the model's");
        }
}

int main(int argc, char **argv) {
        static bench_samples_t hot_call    = {.name = "hot_call"};
        static bench_samples_t hot         = {.name = "hot"};
        static bench_samples_t random_call = {.name = "random_call"};
        static bench_samples_t random      = {.name = "random"};
        rdmeta_handle_t **handles;
        rdmeta_reader_t *reader;
        rdmeta_cache_t *cache;
        uint32_t topics, i;
        int rounds;
        size_t n;
        gen_t g;

        if (argc != 5)
                bench_die("handle TOPICS ROUNDS QUERIES SEED");
        bench_start();
        topics  = (uint32_t)bench_number(argv[1], HOT, 5000000);
        rounds  = (int)bench_number(argv[2], 1, BENCH_MAX_ROUNDS);
        n       = (size_t)bench_number(argv[3], 1, MAX_QUERIES);
        g       = bench_cluster(topics, GEN_IDS_8,
                                (uint64_t)bench_number(argv[4], 0, INT32_MAX));
        cache   = bench_filled(&g);
        reader  = rdmeta_reader_new(cache, 0);
        handles = gen_pages(topics * sizeof(*handles));
        for (i = 0; i < topics; i++) {
                size_t len;
                const char *name = gen_name(&g, i, &len);
                handles[i]       = rdmeta_resolve(cache, name, len);
                if (!handles[i] || !reader)
                        bench_die("no memory for a handle");
        }
        measure(reader, queries_new(&g, handles, HOT, n), n, rounds, &hot_call,
                &hot);
        measure(reader, queries_new(&g, handles, topics, n), n, rounds,
                &random_call, &random);
        bench_print_begin("handle");
        bench_print_number("topics", topics);
        bench_print_samples(&hot_call);
        bench_print_samples(&hot);
        bench_print_samples(&random_call);
        bench_print_samples(&random);
        bench_print_end();
        for (i = 0; i < topics; i++)
                rdmeta_handle_release(handles[i]);
        rdmeta_reader_destroy(reader);
        rdmeta_cache_unref(cache);
        gen_free(&g);
        return 0;
}
