/*
 * threads TOPICS ROUNDS QUERIES SEED: times two readers at once, and one alone.
 *
 * Each thread has a reader, queries and a core of its own. `two` is the time on
 * the wall per lookup of both threads together: half of `one` if they do not
 * disturb each other. With fewer than two cores it means nothing, and the
 * program prints that.
 */
#include "common.h"

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 2, MAX_QUERIES = 1 << 26 };

typedef struct worker {
        rdmeta_reader_t *reader;
        bench_query_t *queries;
        size_t n;
        int core;
        pthread_barrier_t *start;
        double begin, end, cpu;
        int64_t sum, want;
} worker_t;

static void *worker_main(void *arg) {
        worker_t *w           = arg;
        const int64_t mono_us = bench_mono_us();
        int64_t sum;
        int again;

        bench_pin(w->core);
        for (again = 0; again < 2; again++) { /* the first time warms up */
                pthread_barrier_wait(w->start);
                w->cpu   = bench_now_ns();
                w->begin = bench_wall_ns();
                sum      = bench_ask(w->reader, w->queries, w->n, mono_us);
                w->end   = bench_wall_ns();
                w->cpu   = bench_now_ns() - w->cpu;
                w->sum   = sum;
        }
        return NULL;
}

/* The times of all workers together. */
static double wall_ns, cpu_ns;

/* Returns the nanoseconds on the wall per lookup of `n` threads. */
static double together(worker_t *workers, int n) {
        pthread_t threads[THREADS];
        pthread_barrier_t start;
        double begin, end;
        int i;

        pthread_barrier_init(&start, NULL, (unsigned)n);
        for (i = 0; i < n; i++) {
                workers[i].start = &start;
                if (pthread_create(&threads[i], NULL, worker_main,
                                   &workers[i]))
                        bench_die("no thread could be started");
        }
        for (i = 0; i < n; i++)
                pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&start);
        begin = workers[0].begin;
        end   = workers[0].end;
        for (i = 0; i < n; i++) {
                if (workers[i].sum != workers[i].want)
                        bench_die("the cache's leaders are not the model's");
                begin = workers[i].begin < begin ? workers[i].begin : begin;
                end   = workers[i].end > end ? workers[i].end : end;
                wall_ns += workers[i].end - workers[i].begin;
                cpu_ns += workers[i].cpu;
        }
        return (end - begin) / (double)((size_t)n * workers[0].n);
}

static void worker_init(worker_t *w, gen_t *g, rdmeta_cache_t *cache, size_t n,
                        int core) {
        size_t i;

        w->reader  = rdmeta_reader_new(cache, 0);
        w->queries = gen_pages(n * sizeof(*w->queries));
        w->n       = n;
        w->core    = core;
        if (!w->reader)
                bench_die("no memory for a reader");
        for (i = 0; i < n; i++) {
                const uint32_t t = gen_below(g, g->conf.topics);

                bench_query(&w->queries[i], g, t);
                w->want += gen_leader(g, t, (uint32_t)w->queries[i].partition);
        }
}

int main(int argc, char **argv) {
        static bench_samples_t one = {.name = "one"}, two = {.name = "two"};
        static worker_t workers[THREADS];
        rdmeta_cache_t *cache;
        int rounds, i;
        gen_t g;

        if (argc != 5)
                bench_die("threads TOPICS ROUNDS QUERIES SEED");
        bench_start();
        g      = bench_cluster((uint32_t)bench_number(argv[1], 1, 5000000),
                               GEN_IDS_8,
                               (uint64_t)bench_number(argv[4], 0, INT32_MAX));
        rounds = (int)bench_number(argv[2], 1, BENCH_MAX_ROUNDS);
        cache  = bench_filled(&g);
        for (i = 0; i < THREADS; i++)
                worker_init(&workers[i], &g, cache,
                            (size_t)bench_number(argv[3], 1, MAX_QUERIES), i);
        if (bench_cores() < THREADS)
                fprintf(stderr, "threads: there is one core only\n");
        for (i = 0; i < rounds; i++) {
                bench_add(&one, together(workers, 1));
                bench_add(&two, together(workers, THREADS));
        }
        bench_print_begin("threads");
        bench_print_number("topics", g.conf.topics);
        bench_print_number("cores", bench_cores());
        bench_print_samples(&one);
        bench_print_samples(&two);
        bench_print_end_of(wall_ns, cpu_ns);
        for (i = 0; i < THREADS; i++)
                rdmeta_reader_destroy(workers[i].reader);
        rdmeta_cache_unref(cache);
        gen_free(&g);
        return 0;
}
