/* write_workload DIR TOPICS QUERIES SEED: writes the files of workload.h. */
#include "gen_old.h"
#include "workload.h"

#include <stdio.h>

static FILE *create(const char *dir, const char *file) {
        char path[4096];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", dir, file);
        f = fopen(path, "wb");
        if (!f)
                bench_die("%s cannot be written", path);
        return f;
}

static void finish(FILE *f, const char *file) {
        if (ferror(f) || fclose(f))
                bench_die("%s cannot be written", file);
}

static void save(const char *dir, const char *file, const uint8_t *p,
                 size_t len) {
        FILE *f = create(dir, file);

        fwrite(p, 1, len, f);
        finish(f, file);
}

static void responses(gen_t *g, const char *dir) {
        const uint32_t topics = g->conf.topics;
        uint8_t *out          = gen_pages(gen_old_bound(g));

        save(dir, "all-12", out, gen_response(g, NULL, out));
        g->conf.topics = 1;
        save(dir, "one-12", out, gen_response(g, NULL, out));
        g->conf.topics = topics;
        save(dir, "all-5", out, gen_old_response(g, topics, 5, out));
        save(dir, "one-5", out, gen_old_response(g, 1, 5, out));
        save(dir, "all-4", out, gen_old_response(g, topics, 4, out));
        save(dir, "one-4", out, gen_old_response(g, 1, 4, out));
        gen_pages_free(out, gen_old_bound(g));
}

static void names(const gen_t *g, const char *dir) {
        FILE *f = create(dir, "names");
        uint32_t i;
        size_t len;

        for (i = 0; i < g->conf.topics; i++) {
                const char *name = gen_name(g, i, &len);

                fprintf(f, "%.*s\n", (int)len, name);
        }
        finish(f, "names");
}

static void ask(gen_t *g, FILE *f, uint32_t topic) {
        uint32_t pair[2];

        pair[0] = topic;
        pair[1] = gen_below(g, g->conf.per_topic);
        fwrite(pair, sizeof(pair), 1, f);
}

static void queries(gen_t *g, const char *dir, size_t n) {
        uint32_t topics[WORKLOAD_HOT_TOPICS];
        FILE *f = create(dir, "random");
        size_t i, k;

        for (i = 0; i < n; i++)
                ask(g, f, gen_below(g, g->conf.topics));
        finish(f, "random");
        f = create(dir, "hot");
        for (k = 0; k < WORKLOAD_HOT_SETS; k++) {
                for (i = 0; i < WORKLOAD_HOT_TOPICS; i++)
                        topics[i] = gen_below(g, g->conf.topics);
                for (i = 0; i < WORKLOAD_HOT; i++)
                        ask(g, f, topics[gen_below(g, WORKLOAD_HOT_TOPICS)]);
        }
        finish(f, "hot");
}

int main(int argc, char **argv) {
        uint32_t topics;
        size_t count;
        long seed;
        FILE *about;
        gen_t g;

        if (argc != 5)
                bench_die("write_workload DIR TOPICS QUERIES SEED");
        topics = (uint32_t)bench_number(argv[2], 1, 1000000);
        count  = (size_t)bench_number(argv[3], 1, 1 << 26);
        seed   = bench_number(argv[4], 0, INT32_MAX);
        g      = bench_cluster(topics, GEN_IDS_8, (uint64_t)seed);
        responses(&g, argv[1]);
        names(&g, argv[1]);
        queries(&g, argv[1], count);
        about = create(argv[1], "about");
        fprintf(about, "%u %u %ld\n", topics, g.conf.per_topic, seed);
        finish(about, "about");
        gen_free(&g);
        return 0;
}
