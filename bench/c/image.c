/*
 * image TOPICS ROUNDS QUERIES SEED: measures images of a live cache.
 *
 * 0.1 % of the topics change in each round.
 *
 *     take        takes one image; nanoseconds
 *     apply       applies such an answer without an image; ns per partition
 *     apply_beside
 *                 applies such an answer beside an image
 *     release     frees that image; nanoseconds
 *     order       walks an image for the first time, which sorts it; ns per
 *                 partition
 *     cache, fresh, kept
 *                 looks up a leader in the cache, in an image just taken, and
 *                 in one after the change; nanoseconds. Each reader gets the
 *                 same random queries
 *     bulk        the lookups of `fresh`, in one call
 *     kept_bytes  the bytes that only the image has after the change
 */
#include "common.h"

enum { MAX_QUERIES = 1 << 26 };

typedef struct bench {
        gen_t g;
        rdmeta_cache_t *cache;
        rdmeta_reader_t *reader;
        uint8_t *response;
        size_t bound, n;
        uint32_t topics;
        double partitions;
        bench_query_t *queries;
        rdmeta_str_t *names; /* the same queries, for one call */
        int32_t *rows, *out;
        bench_samples_t take, apply, apply_beside, release, order, cached,
                fresh, kept, bulk, kept_bytes;
} bench_t;

static void ask(bench_t *b) {
        size_t i;

        bench_queries(b->queries, &b->g, b->n);
        for (i = 0; i < b->n; i++) {
                b->names[i].data = b->queries[i].topic;
                b->names[i].len  = b->queries[i].len;
                b->rows[i]       = b->queries[i].partition;
        }
}

/* Returns the sum of the leaders: once to warm up, and once timed. */
static int64_t look(bench_t *b, rdmeta_reader_t *r, bench_samples_t *out) {
        const int64_t mono_us = bench_mono_us();
        double begin          = 0;
        int64_t sum           = 0;
        int k;

        for (k = 0; k < 2; k++) {
                begin = bench_now_ns();
                sum   = bench_ask(r, b->queries, b->n, mono_us);
        }
        bench_add(out, (bench_now_ns() - begin) / (double)b->n);
        return sum;
}

static int64_t look_bulk(bench_t *b, rdmeta_reader_t *r) {
        const double begin = bench_now_ns();
        int64_t sum        = 0;
        size_t i;

        rdmeta_leaders(r, b->names, b->rows, b->n, bench_mono_us(), b->out);
        bench_add(&b->bulk, (bench_now_ns() - begin) / (double)b->n);
        for (i = 0; i < b->n; i++)
                sum += b->out[i];
        return sum;
}

static rdmeta_image_t *take(bench_t *b) {
        const rdmeta_time_t now = {bench_mono_us(), 0};
        const double begin      = bench_now_ns();
        rdmeta_image_t *image   = rdmeta_cache_image(b->cache, now);

        bench_add(&b->take, bench_now_ns() - begin);
        if (!image)
                bench_die("no memory for an image");
        return image;
}

static rdmeta_reader_t *reader_of(rdmeta_image_t *image) {
        rdmeta_reader_t *r = rdmeta_image_reader(image, 0);

        if (!r)
                bench_die("no memory for a reader");
        return r;
}

/* Applies an answer in which 0.1 % of the topics differ. */
static void change(bench_t *b, bench_samples_t *out) {
        const uint32_t n = b->topics < 1000 ? 1 : b->topics / 1000;
        rdmeta_applied_t applied;
        size_t len;

        gen_change(&b->g, n);
        len = gen_response(&b->g, NULL, b->response);
        bench_add(out, bench_apply(b->cache, b->response, len, b->topics,
                                   &applied) /
                               b->partitions);
}

static int32_t visit(void *opaque, const rdmeta_topic_t *topic) {
        (void)topic;
        ++*(uint32_t *)opaque;
        return 0;
}

static void walk(bench_t *b, rdmeta_reader_t *r) {
        double begin   = bench_now_ns();
        uint32_t count = 0;

        if (rdmeta_reader_walk(r, "", 0, RDMETA_WALK_VALID, bench_mono_us(),
                               visit, &count) ||
            count != b->topics)
                bench_die("an image lacks topics");
        bench_add(&b->order, (bench_now_ns() - begin) / b->partitions);
}

static void round_once(bench_t *b) {
        rdmeta_image_info_t info;
        rdmeta_image_t *image;
        rdmeta_reader_t *r;
        int64_t before;
        double begin;

        change(b, &b->apply);
        ask(b);
        before = look(b, b->reader, &b->cached);
        image  = take(b);
        r      = reader_of(image);
        if (look(b, r, &b->fresh) != before || look_bulk(b, r) != before)
                bench_die("an image's leaders are not the cache's");
        change(b, &b->apply_beside);
        if (look(b, r, &b->kept) != before)
                bench_die("an image has changed");
        rdmeta_image_info(image, &info);
        bench_add(&b->kept_bytes, (double)info.bytes);
        rdmeta_reader_destroy(r);
        begin = bench_now_ns();
        rdmeta_image_unref(image);
        bench_add(&b->release, bench_now_ns() - begin);
        image = take(b);
        r     = reader_of(image);
        walk(b, r);
        rdmeta_reader_destroy(r);
        rdmeta_image_unref(image);
}

static void names(bench_t *b) {
        b->take.name         = "take";
        b->apply.name        = "apply";
        b->apply_beside.name = "apply_beside";
        b->release.name      = "release";
        b->order.name        = "order";
        b->cached.name       = "cache";
        b->fresh.name        = "fresh";
        b->kept.name         = "kept";
        b->bulk.name         = "bulk";
        b->kept_bytes.name   = "kept_bytes";
}

static void print(const bench_t *b) {
        const bench_samples_t *all[] = {
                &b->take,   &b->apply, &b->apply_beside, &b->release,
                &b->order,  &b->cached, &b->fresh,       &b->kept,
                &b->bulk,   &b->kept_bytes};
        size_t i;

        bench_print_begin("image");
        bench_print_number("topics", b->topics);
        for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                bench_print_samples(all[i]);
        bench_print_end();
}

static void init(bench_t *b, char **argv) {
        rdmeta_applied_t applied;
        size_t len;

        b->topics     = (uint32_t)bench_number(argv[1], 1, 5000000);
        b->n          = (size_t)bench_number(argv[3], 1, MAX_QUERIES);
        b->partitions = (double)b->topics * BENCH_PER_TOPIC;
        b->g          = bench_cluster(b->topics, GEN_IDS_8,
                                      (uint64_t)bench_number(argv[4], 0,
                                                             INT32_MAX));
        b->bound      = gen_response_bound(&b->g);
        b->response   = gen_pages(b->bound);
        b->queries    = gen_pages(b->n * sizeof(*b->queries));
        b->names      = gen_pages(b->n * sizeof(*b->names));
        b->rows       = gen_pages(b->n * sizeof(*b->rows));
        b->out        = gen_pages(b->n * sizeof(*b->out));
        b->cache      = bench_cache();
        len           = gen_response(&b->g, NULL, b->response);
        bench_apply(b->cache, b->response, len, b->topics, &applied);
        bench_verify(b->cache, &b->g);
        b->reader = rdmeta_reader_new(b->cache, 0);
        if (!b->reader)
                bench_die("no memory for a reader");
}

int main(int argc, char **argv) {
        static bench_t b;
        int rounds, i;

        if (argc != 5)
                bench_die("image TOPICS ROUNDS QUERIES SEED");
        rounds = (int)bench_number(argv[2], 1, BENCH_MAX_ROUNDS / 2);
        bench_start();
        names(&b);
        init(&b, argv);
        for (i = 0; i < rounds; i++)
                round_once(&b);
        print(&b);
        rdmeta_reader_destroy(b.reader);
        rdmeta_cache_unref(b.cache);
        gen_pages_free(b.response, b.bound);
        gen_pages_free(b.queries, b.n * sizeof(*b.queries));
        gen_pages_free(b.names, b.n * sizeof(*b.names));
        gen_pages_free(b.rows, b.n * sizeof(*b.rows));
        gen_pages_free(b.out, b.n * sizeof(*b.out));
        gen_free(&b.g);
        return 0;
}
