/*
 * arrow TOPICS ROUNDS IDS SEED: times tables through the Arrow C data
 * interface; nanoseconds per row.
 *
 * `partitions`, `replicas`, `topics`: makes a stream of the cache, with its
 * image, and makes and releases every batch. `kept`: partitions, but keeps
 * every batch to the end, as a program does that wants a whole table. So each
 * batch is in new memory.
 */
#include "common.h"

enum { MAX_BATCHES = 4096 };

static struct ArrowArray kept[MAX_BATCHES];

static void pull(rdmeta_reader_t *reader, int32_t table, int keep,
                 bench_samples_t *out) {
        const double begin = bench_now_ns();
        struct ArrowArrayStream s;
        int64_t rows = 0;
        int n, i;

        if (rdmeta_reader_arrow(reader, table, RDMETA_WALK_VALID,
                                bench_mono_us(), &s))
                bench_die("no stream");
        for (n = 0; n < MAX_BATCHES; n++) {
                if (s.get_next(&s, &kept[n]))
                        bench_die("no batch");
                if (!kept[n].release)
                        break;
                rows += kept[n].length;
                if (!keep)
                        kept[n].release(&kept[n]);
        }
        s.release(&s);
        bench_add(out, (bench_now_ns() - begin) / (double)rows);
        for (i = 0; i < n; i++)
                if (kept[i].release)
                        kept[i].release(&kept[i]);
}

int main(int argc, char **argv) {
        static bench_samples_t partitions = {.name = "partitions"};
        static bench_samples_t whole      = {.name = "kept"};
        static bench_samples_t replicas   = {.name = "replicas"};
        static bench_samples_t topics     = {.name = "topics"};
        rdmeta_cache_t *cache;
        rdmeta_reader_t *reader;
        rdmeta_applied_t applied;
        uint8_t *response;
        uint32_t n;
        int rounds, r;
        size_t len;
        gen_t g;

        if (argc != 5)
                bench_die("usage: arrow TOPICS ROUNDS IDS SEED");
        n      = (uint32_t)bench_number(argv[1], 1, 1000000);
        rounds = (int)bench_number(argv[2], 1, BENCH_MAX_ROUNDS);
        bench_start();
        g        = bench_cluster(n, bench_ids(argv[3]),
                                 (uint64_t)bench_number(argv[4], 0, 1L << 62));
        response = gen_pages(gen_response_bound(&g));
        len      = gen_response(&g, NULL, response);
        cache    = bench_cache();
        bench_apply(cache, response, len, n, &applied);
        reader = rdmeta_reader_new(cache, 0);
        if (!reader)
                bench_die("no memory for a reader");
        for (r = 0; r < rounds; r++) {
                pull(reader, RDMETA_ARROW_PARTITIONS, 0, &partitions);
                pull(reader, RDMETA_ARROW_PARTITIONS, 1, &whole);
                pull(reader, RDMETA_ARROW_REPLICAS, 0, &replicas);
                pull(reader, RDMETA_ARROW_TOPICS, 0, &topics);
        }
        bench_print_begin("arrow");
        bench_print_number("topics", n);
        bench_print_samples(&partitions);
        bench_print_samples(&whole);
        bench_print_samples(&replicas);
        bench_print_samples(&topics);
        bench_print_end();
        rdmeta_reader_destroy(reader);
        rdmeta_cache_unref(cache);
        gen_pages_free(response, gen_response_bound(&g));
        gen_free(&g);
        return 0;
}
