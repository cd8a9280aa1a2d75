/*
 * tail TOPICS ROUNDS LOOKUPS SEED: measures how slow the slowest lookups are
 * while answers about every topic are applied, and while nothing is.
 *
 * A reader on one core takes the time of each of its lookups. A writer on
 * another core applies answers, each with a tenth of the topics changed. Making
 * them takes time as well; lookups during that do not count. The program prints
 * the latency that one lookup of a thousand exceeds, with the cost of reading
 * the clock, one sample per round. It also prints the longest of all, which
 * means little if anything else runs on the machine.
 */
#include "common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { MAX_LOOKUPS = 1 << 24 };

typedef struct bench {
        gen_t g; /* the writer's, once it runs */
        rdmeta_cache_t *cache;
        _Atomic int go, stop;
        _Atomic uint64_t applying; /* odd: an apply is running */
} bench_t;

static void *writer_main(void *arg) {
        bench_t *w           = arg;
        const uint32_t tenth = w->g.conf.topics / 10 + 1;
        uint8_t *answer      = gen_pages(gen_response_bound(&w->g));
        rdmeta_applied_t applied;
        size_t len;

        bench_pin(1);
        while (!atomic_load(&w->stop)) {
                if (!atomic_load(&w->go))
                        continue;
                gen_change(&w->g, tenth);
                len = gen_response(&w->g, NULL, answer);
                atomic_fetch_add(&w->applying, 1);
                bench_apply(w->cache, answer, len, w->g.conf.topics,
                            &applied);
                atomic_fetch_add(&w->applying, 1);
        }
        return NULL;
}

static int by_size(const void *a, const void *b) {
        const float x = *(const float *)a, y = *(const float *)b;

        return x < y ? -1 : x > y;
}

static float *took;

/* Times `n` lookups of random topics that count; returns the latency of the
 * n * 0.999-th. With `busy` those count that begin beside an apply. That
 * includes a lookup that would have to wait for its end. */
static double late(bench_t *w, gen_t *g, rdmeta_reader_t *reader, size_t n,
                   int busy, double *most) {
        /* Time does not move for readers: deadlines are far away. */
        const int64_t mono_us = 1000000000;
        size_t i, len;

        for (i = 0; i < n;) {
                const uint32_t t      = gen_below(g, g->conf.topics);
                const uint32_t p      = gen_below(g, g->conf.per_topic);
                const char *name      = gen_name(g, t, &len);
                const uint64_t before = atomic_load(&w->applying);
                const double begin    = bench_wall_ns();
                const int32_t leader  = rdmeta_leader(reader, name, len,
                                                      (int32_t)p, mono_us);

                took[i] = (float)(bench_wall_ns() - begin);
                if (leader < 1 || leader > BENCH_BROKERS)
                        bench_die("%.*s %u: leader %d", (int)len, name, p,
                                  leader);
                i += !busy || before % 2;
        }
        qsort(took, n, sizeof(*took), by_size);
        *most = took[n - 1];
        return took[n - 1 - n / 1000];
}

static void measure(bench_t *w, gen_t *g, rdmeta_reader_t *reader, int rounds,
                    size_t n) {
        static bench_samples_t idle = {.name = "idle"};
        static bench_samples_t busy = {.name = "busy"};
        static bench_samples_t idle_most = {.name = "idle_longest"};
        static bench_samples_t busy_most = {.name = "busy_longest"};
        double most;
        int i;

        late(w, g, reader, n, 0, &most); /* warms up */
        for (i = 0; i < rounds; i++) {
                bench_add(&idle, late(w, g, reader, n, 0, &most));
                bench_add(&idle_most, most);
                atomic_store(&w->go, 1);
                bench_add(&busy, late(w, g, reader, n, 1, &most));
                bench_add(&busy_most, most);
                atomic_store(&w->go, 0);
                while (atomic_load(&w->applying) % 2)
                        ;
        }
        bench_print_begin("tail");
        bench_print_number("topics", g->conf.topics);
        bench_print_number("cores", bench_cores());
        bench_print_number("applied", (double)atomic_load(&w->applying) / 2);
        bench_print_samples(&idle);
        bench_print_samples(&busy);
        bench_print_samples(&idle_most);
        bench_print_samples(&busy_most);
        bench_print_end();
}

int main(int argc, char **argv) {
        static bench_t w;
        rdmeta_reader_t *reader;
        pthread_t writer;
        size_t n;
        gen_t g;

        if (argc != 5)
                bench_die("tail TOPICS ROUNDS LOOKUPS SEED");
        bench_start();
        n    = (size_t)bench_number(argv[3], 1000, MAX_LOOKUPS);
        took = gen_pages(n * sizeof(*took));
        w.g  = bench_cluster((uint32_t)bench_number(argv[1], 1, 5000000),
                             GEN_IDS_8,
                             (uint64_t)bench_number(argv[4], 0, INT32_MAX));
        g       = w.g; /* the reader uses its names and random numbers */
        w.cache = bench_filled(&w.g);
        reader = rdmeta_reader_new(w.cache, 0);
        if (!reader || pthread_create(&writer, NULL, writer_main, &w))
                bench_die("no memory for a reader, or no thread");
        measure(&w, &g, reader,
                (int)bench_number(argv[2], 1, BENCH_MAX_ROUNDS), n);
        atomic_store(&w.stop, 1);
        pthread_join(writer, NULL);
        rdmeta_reader_destroy(reader);
        rdmeta_cache_unref(w.cache);
        return 0;
}
