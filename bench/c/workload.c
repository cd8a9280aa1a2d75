/* workload: see workload.h. */
#include "workload.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static FILE *open_file(const char *dir, const char *file) {
        char path[4096];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", dir, file);
        f = fopen(path, "rb");
        if (!f)
                bench_die("%s cannot be read", path);
        return f;
}

uint8_t *workload_file(const char *dir, const char *file, size_t *len) {
        FILE *f = open_file(dir, file);
        struct stat st;
        uint8_t *p;

        if (fstat(fileno(f), &st))
                bench_die("%s/%s: no size", dir, file);
        *len = (size_t)st.st_size;
        p    = gen_pages(*len + 1);
        if (fread(p, 1, *len, f) != *len)
                bench_die("%s/%s is cut short", dir, file);
        fclose(f);
        return p;
}

/* Returns the lines of `names`, each with a NUL at its end. */
static const char **read_names(const workload_t *w) {
        const char **names = gen_pages((w->topics + 1) * sizeof(*names));
        size_t len;
        char *p = (char *)workload_file(w->dir, "names", &len), *end = p + len;
        uint32_t i;

        for (i = 0; i < w->topics && p < end; i++) {
                names[i] = p;
                p        = memchr(p, '\n', (size_t)(end - p));
                if (!p)
                        break;
                *p++ = '\0';
        }
        if (i != w->topics || p != end)
                bench_die("%s/names: not %u lines", w->dir, w->topics);
        return names;
}

static query_t *read_queries(const workload_t *w, const char *file,
                             size_t *count) {
        size_t len, i;
        const uint32_t *pairs =
                (const uint32_t *)workload_file(w->dir, file, &len);
        query_t *q;

        *count = len / 8;
        q      = gen_pages(*count * sizeof(*q));
        for (i = 0; i < *count; i++) {
                q[i].number = pairs[2 * i];
                if (q[i].number >= w->topics)
                        bench_die("%s/%s: no such topic", w->dir, file);
                q[i].topic     = w->names[q[i].number];
                q[i].len       = (uint32_t)strlen(q[i].topic);
                q[i].partition = (int32_t)pairs[2 * i + 1];
        }
        return q;
}

workload_t workload_open(const char *dir) {
        workload_t w = {.dir = dir};
        unsigned long seed;
        size_t hot;
        FILE *f = open_file(dir, "about");

        if (fscanf(f, "%u %u %lu", &w.topics, &w.per_topic, &seed) != 3)
                bench_die("%s/about does not match", dir);
        fclose(f);
        w.seed   = seed;
        w.names  = read_names(&w);
        w.random = read_queries(&w, "random", &w.queries);
        w.hot    = read_queries(&w, "hot", &hot);
        if (hot != WORKLOAD_HOT * WORKLOAD_HOT_SETS)
                bench_die("%s/hot: %zu queries", dir, hot);
        return w;
}

int64_t workload_time(const workload_t *w, workload_loop_t loop, void *subject,
                      int round, bench_samples_t *random,
                      bench_samples_t *hot) {
        const query_t *set = w->hot + round % WORKLOAD_HOT_SETS * WORKLOAD_HOT;
        size_t times = w->queries / WORKLOAD_HOT ? w->queries / WORKLOAD_HOT
                                                 : 1;
        volatile int64_t keep;
        double begin;
        int64_t sum;
        size_t i;

        loop(subject, w->random, w->queries);
        begin = bench_now_ns();
        sum   = loop(subject, w->random, w->queries);
        bench_add(random, (bench_now_ns() - begin) / (double)w->queries);
        keep  = loop(subject, set, WORKLOAD_HOT);
        begin = bench_now_ns();
        for (i = 0; i < times; i++)
                keep = loop(subject, set, WORKLOAD_HOT);
        bench_add(hot, (bench_now_ns() - begin) /
                               (double)(times * WORKLOAD_HOT));
        (void)keep;
        return sum;
}

static double wall_ns(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

workload_budget_t workload_budget(int rounds, double seconds) {
        workload_budget_t b = {wall_ns() + seconds * 1e9, rounds, 0};

        return b;
}

int workload_next(workload_budget_t *b) {
        if (b->done && (b->done >= b->rounds || wall_ns() > b->end_ns))
                return 0;
        b->done++;
        return 1;
}
