/*
 * bulk TOPICS ROUNDS ROWS SEED: times the leaders of many partitions at once.
 *
 * A row is a random name and a random partition. The same rows are asked for
 * one by one and in one call of rdmeta_leaders(), by turns. Their names lie in
 * one pool with all others, as in a program that received them.
 */
#include "common.h"

#include <string.h>

enum { MAX_ROWS = 1 << 26 };

typedef struct rows {
        rdmeta_str_t *topics;
        int32_t *partitions, *out, *want;
        size_t n;
} rows_t;

static rows_t rows_new(gen_t *g, size_t n) {
        rows_t r = {gen_pages(n * sizeof(*r.topics)), gen_pages(4 * n),
                    gen_pages(4 * n), gen_pages(4 * n), n};
        size_t i;

        for (i = 0; i < n; i++) {
                const uint32_t t   = gen_below(g, g->conf.topics);
                r.topics[i].data   = gen_name(g, t, &r.topics[i].len);
                r.partitions[i]    = (int32_t)gen_below(g, g->conf.per_topic);
                r.want[i] = gen_leader(g, t, (uint32_t)r.partitions[i]);
        }
        return r;
}

static double by_one(rdmeta_reader_t *reader, const rows_t *r) {
        const int64_t mono_us = bench_mono_us();
        const double begin    = bench_now_ns();
        size_t i;

        for (i = 0; i < r->n; i++)
                r->out[i] = rdmeta_leader(reader, r->topics[i].data,
                                          r->topics[i].len, r->partitions[i],
                                          mono_us);
        return (bench_now_ns() - begin) / (double)r->n;
}

static double at_once(rdmeta_reader_t *reader, const rows_t *r) {
        const double begin = bench_now_ns();

        rdmeta_leaders(reader, r->topics, r->partitions, r->n,
                       bench_mono_us(), r->out);
        return (bench_now_ns() - begin) / (double)r->n;
}

static void check(const rows_t *r) {
        if (memcmp(r->out, r->want, 4 * r->n) != 0)
                bench_die("the cache's leaders are not the model's");
        memset(r->out, 0, 4 * r->n);
}

int main(int argc, char **argv) {
        static bench_samples_t one = {.name = "one"}, bulk = {.name = "bulk"};
        rdmeta_reader_t *reader;
        rdmeta_cache_t *cache;
        int rounds, i, k;
        gen_t g;
        rows_t r;

        if (argc != 5)
                bench_die("bulk TOPICS ROUNDS ROWS SEED");
        bench_start();
        g      = bench_cluster((uint32_t)bench_number(argv[1], 1, 5000000),
                               GEN_IDS_8,
                               (uint64_t)bench_number(argv[4], 0, INT32_MAX));
        rounds = (int)bench_number(argv[2], 1, BENCH_MAX_ROUNDS);
        r      = rows_new(&g, (size_t)bench_number(argv[3], 1, MAX_ROWS));
        cache  = bench_filled(&g);
        reader = rdmeta_reader_new(cache, 0);
        if (!reader)
                bench_die("no memory for a reader");
        for (i = 0; i <= rounds; i++)
                for (k = 0; k < 2; k++) {
                        const int which = (i + k) & 1;
                        const double ns = which ? at_once(reader, &r)
                                                : by_one(reader, &r);
                        check(&r);
                        if (i) /* the first round warms up */
                                bench_add(which ? &bulk : &one, ns);
                }
        bench_print_begin("bulk");
        bench_print_number("topics", g.conf.topics);
        bench_print_samples(&one);
        bench_print_samples(&bulk);
        bench_print_end();
        rdmeta_reader_destroy(reader);
        rdmeta_cache_unref(cache);
        gen_free(&g);
        return 0;
}
