/*
 * mapped TOPICS ROUNDS LOOKUPS SEED DIRECTORY: measures what it costs to save
 * an image file, to open it and to look things up in it. In milliseconds:
 *
 * save    writes it to a file of DIRECTORY, without waiting for a disk
 * open    maps that file, looks one leader up, and unmaps it
 * owner, attached, opened
 *         look up the same leaders, by turns: in the cache itself, through
 *         rdmeta_attach_new() and through rdmeta_image_open()
 * private bytes that opening added to the process's private memory; `file`:
 *         the bytes of the file
 */
#include "common.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_LOOKUPS = 1 << 26, OWNER, ATTACHED, OPENED, READERS };

static char path[4096];

/* Returns the private bytes of the process that were written to. */
static double private_bytes(void) {
        return bench_memory("Private_Dirty");
}

static double file_bytes(void) {
        struct stat st;

        if (stat(path, &st))
                bench_die("%s is not there", path);
        return (double)st.st_size;
}

static rdmeta_time_t now(void) {
        const rdmeta_time_t t = {bench_mono_us(), 1700000000000000};

        return t;
}

static double round_save(rdmeta_cache_t *cache) {
        rdmeta_image_t *image = rdmeta_cache_image(cache, now());
        const double begin    = bench_now_ns();
        rdmeta_err_t err;

        err = image ? rdmeta_image_save(image, path, 0) : RDMETA_ERR_NO_MEMORY;
        if (err)
                bench_die("save: %s", rdmeta_err_name(err));
        rdmeta_image_unref(image);
        return (bench_now_ns() - begin) / 1e6;
}

static double round_open(const bench_query_t *q, double *private_) {
        const double had   = private_bytes();
        const double begin = bench_now_ns();
        rdmeta_reader_t *reader;
        rdmeta_image_t *image;
        rdmeta_err_t err = rdmeta_image_open(path, 0, now(), &image);
        double took;

        if (err)
                bench_die("open: %s", rdmeta_err_name(err));
        reader = rdmeta_image_reader(image, 0);
        if (!reader || rdmeta_leader(reader, q->topic, q->len, q->partition,
                                     bench_mono_us()) < 1)
                bench_die("open: a leader is not there");
        took      = bench_now_ns() - begin;
        *private_ = private_bytes() - had;
        rdmeta_reader_destroy(reader);
        rdmeta_image_unref(image);
        return took / 1e6;
}

static double lookups(rdmeta_reader_t *reader, const bench_query_t *q, size_t n,
                      int64_t *sum) {
        const int64_t mono_us = bench_mono_us();
        const double begin    = bench_now_ns();

        *sum = bench_ask(reader, q, n, mono_us);
        return (bench_now_ns() - begin) / (double)n;
}

/* Times each by turns, each first in its round. `out` is in the order of
 * OWNER ... */
static void measure_lookups(rdmeta_cache_t *cache, const bench_query_t *q,
                            size_t n, int rounds, bench_samples_t *out) {
        rdmeta_reader_t *readers[READERS - OWNER];
        rdmeta_attach_t *attach = NULL;
        rdmeta_image_t *image   = NULL;
        int64_t sum, want;
        int i, k;

        if (rdmeta_attach_new(path, 0, 0, now(), &attach) ||
            rdmeta_image_open(path, 0, now(), &image))
                bench_die("attach: the file cannot be opened");
        readers[0] = rdmeta_reader_new(cache, 0);
        readers[1] = rdmeta_attach_reader(attach, 0);
        readers[2] = rdmeta_image_reader(image, 0);
        for (i = 0; i <= rounds; i++)
                for (k = 0; k < READERS - OWNER; k++) {
                        const int which = (i + k) % (READERS - OWNER);
                        double ns;

                        if (!readers[which])
                                bench_die("no memory for a reader");
                        lookups(readers[which], q, n, &want);
                        ns = lookups(readers[which], q, n, &sum);
                        if (sum != want || sum <= 0)
                bench_die("the lookups differ");
                        if (i)
                                bench_add(&out[which], ns);
                }
        for (k = 0; k < READERS - OWNER; k++)
                rdmeta_reader_destroy(readers[k]);
        rdmeta_image_unref(image);
        rdmeta_attach_destroy(attach);
}

int main(int argc, char **argv) {
        static bench_samples_t save     = {.name = "save"};
        static bench_samples_t opening  = {.name = "open"};
        static bench_samples_t private_ = {.name = "private"};
        static bench_samples_t file     = {.name = "file"};
        static bench_samples_t by[READERS - OWNER] = {
                {.name = "owner"}, {.name = "attached"}, {.name = "opened"}};
        rdmeta_cache_t *cache;
        int rounds, i;
        double bytes;
        bench_query_t *q;
        size_t n;
        gen_t g;

        if (argc != 6)
                bench_die("mapped TOPICS ROUNDS LOOKUPS SEED DIRECTORY");
        bench_start();
        g      = bench_cluster((uint32_t)bench_number(argv[1], 1, 5000000),
                               GEN_IDS_8,
                               (uint64_t)bench_number(argv[4], 0, INT32_MAX));
        rounds = (int)bench_number(argv[2], 1, BENCH_MAX_ROUNDS);
        n      = (size_t)bench_number(argv[3], 1, MAX_LOOKUPS);
        cache  = bench_filled(&g);
        q      = gen_pages(n * sizeof(*q));
        bench_queries(q, &g, n);
        snprintf(path, sizeof(path), "%s/bench-%ld.rdmeta", argv[5],
                 (long)getpid());
        for (i = 0; i <= rounds; i++) {
                const double saved  = round_save(cache);
                const double opened = round_open(q, &bytes);

                if (!i)
                        continue; /* the first round warms up */
                bench_add(&save, saved);
                bench_add(&opening, opened);
                bench_add(&private_, bytes);
                bench_add(&file, file_bytes());
        }
        measure_lookups(cache, q, n, rounds, by);
        unlink(path);
        bench_print_begin("mapped");
        bench_print_number("topics", g.conf.topics);
        bench_print_samples(&save);
        bench_print_samples(&opening);
        bench_print_samples(&private_);
        bench_print_samples(&file);
        for (i = 0; i < READERS - OWNER; i++)
                bench_print_samples(&by[i]);
        bench_print_end();
        rdmeta_cache_unref(cache);
        gen_free(&g);
        return 0;
}
