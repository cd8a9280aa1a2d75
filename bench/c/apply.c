/*
 * apply TOPICS ROUNDS SEED [PART]: times a Metadata response into the cache, in
 * a process that has done so before; nanoseconds per partition.
 *
 *     memcpy    copies the response's bytes to pages that are in memory
 *     cold      applies it to a new cache with memory from the C library, which
 *               takes most of it from the kernel each time
 *     warm      applies it to a new cache in pages that are in memory. The
 *               difference from cold is the kernel's part
 *     walk      walks that cache in order for the first time. It pays for the
 *               part of the ordered index that the fill left for later
 *     rewalk    walks it for the second time
 *     drop      frees that cache
 *     same      applies the same bytes again, to a cache that lives on
 *     shuffled  applies the same topics, each time in another random order
 *     changed   applies an answer in which 0.1 % of the topics changed, in the
 *               order of the last answer
 *
 * Each round runs all parts, so that a slow moment hits them all. For a
 * profiler, PART runs only one of cold (with walk and drop), warm, same,
 * shuffled, changed. The counts of each apply are checked, and at the end every
 * leader.
 */
#include "common.h"

#include <string.h>

enum { ORDERS = 2 };

typedef struct bytes {
        uint8_t *p;
        size_t len, room;
} bytes_t;

typedef struct bench {
        gen_t g;
        uint32_t topics;
        double partitions;
        rdmeta_cache_t *lasting;
        bytes_t plain, copy, changed, shuffled[ORDERS];
        uint32_t *orders[ORDERS];
        bench_samples_t memcpy_, cold, warm, walk, rewalk, drop;
        bench_samples_t same, shuffle, change;
} bench_t;

static bytes_t bytes_new(const bench_t *b) {
        bytes_t s = {NULL, 0, gen_response_bound(&b->g)};

        s.p = gen_pages(s.room);
        return s;
}

static void encode(const bench_t *b, const uint32_t *order, bytes_t *out) {
        out->len = gen_response(&b->g, order, out->p);
}

static void expect_unchanged(const rdmeta_applied_t *a, const char *what) {
        if (a->changed)
                bench_die("%s: %u topics changed", what, a->changed);
}

/* The compiler cannot see through this call. */
static void *(*volatile copy_bytes)(void *, const void *, size_t) = memcpy;

static void round_memcpy(bench_t *b) {
        double begin = bench_now_ns();

        copy_bytes(b->copy.p, b->plain.p, b->plain.len);
        bench_add(&b->memcpy_, (bench_now_ns() - begin) / b->partitions);
        if (b->copy.p[b->plain.len / 2] != b->plain.p[b->plain.len / 2])
                bench_die("memcpy did not");
}

static void round_cold(bench_t *b) {
        rdmeta_cache_t *cache = bench_cache();
        rdmeta_applied_t applied;
        double begin, ns;

        ns = bench_apply(cache, b->plain.p, b->plain.len, b->topics, &applied);
        bench_add(&b->cold, ns / b->partitions);
        bench_add(&b->walk, bench_walk(cache, b->topics) / b->partitions);
        bench_add(&b->rewalk, bench_walk(cache, b->topics) / b->partitions);
        begin = bench_now_ns();
        rdmeta_cache_unref(cache);
        bench_add(&b->drop, (bench_now_ns() - begin) / b->partitions);
}

/* An allocator over pages that are in memory. It takes from the front, and
 * frees nothing before it starts again. */
typedef struct arena {
        char *p;
        size_t size, used;
} arena_t;

static void *arena_alloc(void *opaque, size_t size) {
        arena_t *arena = (arena_t *)opaque;
        char *p        = arena->p + arena->used;

        size = (size + 63) & ~(size_t)63;
        if (size > arena->size - arena->used)
                return NULL;
        arena->used += size;
        return p;
}

static void arena_free(void *opaque, void *p, size_t size) {
        (void)opaque;
        (void)p;
        (void)size;
}

static void round_warm(bench_t *b) {
        static arena_t arena;
        rdmeta_applied_t applied;
        rdmeta_cache_t *cache;
        rdmeta_conf_t conf;
        double ns;

        if (!arena.p) {
                arena.size = 3 * b->plain.room + (4 << 20);
                arena.p    = gen_pages(arena.size);
        }
        arena.used = 0;
        rdmeta_conf_init(&conf);
        conf.allocator.alloc  = arena_alloc;
        conf.allocator.free   = arena_free;
        conf.allocator.opaque = &arena;
        cache                 = rdmeta_cache_new(&conf);
        if (!cache)
                bench_die("no memory for a cache");
        ns = bench_apply(cache, b->plain.p, b->plain.len, b->topics, &applied);
        bench_add(&b->warm, ns / b->partitions);
        rdmeta_cache_unref(cache);
}

static void round_same(bench_t *b) {
        rdmeta_applied_t applied;
        double ns;

        /* Applies it once before: the last answer may have another order. */
        bench_apply(b->lasting, b->plain.p, b->plain.len, b->topics, &applied);
        ns = bench_apply(b->lasting, b->plain.p, b->plain.len, b->topics,
                         &applied);
        expect_unchanged(&applied, "same");
        bench_add(&b->same, ns / b->partitions);
}

static void round_shuffled(bench_t *b) {
        rdmeta_applied_t applied;
        double ns;
        int k;

        for (k = 0; k < ORDERS; k++) {
                ns = bench_apply(b->lasting, b->shuffled[k].p,
                                 b->shuffled[k].len, b->topics, &applied);
                expect_unchanged(&applied, "shuffled");
                bench_add(&b->shuffle, ns / b->partitions);
        }
}

static void round_changed(bench_t *b) {
        uint32_t n = b->topics / 1000 ? b->topics / 1000 : 1;
        rdmeta_applied_t applied;
        double ns;

        bench_apply(b->lasting, b->plain.p, b->plain.len, b->topics, &applied);
        gen_change(&b->g, n);
        encode(b, NULL, &b->changed);
        ns = bench_apply(b->lasting, b->changed.p, b->changed.len, b->topics,
                         &applied);
        if (applied.changed > n || applied.changed < n - n / 10)
                bench_die("changed: %u topics, not %u", applied.changed, n);
        bench_add(&b->change, ns / b->partitions);
}

/* Encodes the changes into the other responses, too, and applies one. */
static void catch_up(bench_t *b) {
        rdmeta_applied_t applied;
        int k;

        encode(b, NULL, &b->plain);
        for (k = 0; k < ORDERS; k++)
                encode(b, b->orders[k], &b->shuffled[k]);
        bench_apply(b->lasting, b->plain.p, b->plain.len, b->topics, &applied);
        expect_unchanged(&applied, "the changes again");
}

static void start(bench_t *b, uint32_t topics, uint64_t seed) {
        rdmeta_applied_t applied;
        int k;

        b->topics     = topics;
        b->g          = bench_cluster(topics, GEN_IDS_8, seed);
        b->partitions = (double)topics * b->g.conf.per_topic;
        b->lasting    = bench_cache();
        b->plain      = bytes_new(b);
        b->copy       = bytes_new(b);
        b->changed    = bytes_new(b);
        encode(b, NULL, &b->plain);
        for (k = 0; k < ORDERS; k++) {
                b->orders[k]   = gen_shuffle(&b->g);
                b->shuffled[k] = bytes_new(b);
                encode(b, b->orders[k], &b->shuffled[k]);
        }
        bench_apply(b->lasting, b->plain.p, b->plain.len, topics, &applied);
}

static void print(const bench_t *b) {
        bench_print_begin("apply");
        bench_print_number("topics", b->topics);
        bench_print_number("bytes", (double)b->plain.len);
        bench_print_samples(&b->memcpy_);
        bench_print_samples(&b->cold);
        bench_print_samples(&b->warm);
        bench_print_samples(&b->walk);
        bench_print_samples(&b->rewalk);
        bench_print_samples(&b->drop);
        bench_print_samples(&b->same);
        bench_print_samples(&b->shuffle);
        bench_print_samples(&b->change);
        bench_print_end();
}

static void round_all(bench_t *b, const char *part) {
        round_memcpy(b);
        if (!part || !strcmp(part, "cold"))
                round_cold(b);
        if (!part || !strcmp(part, "warm"))
                round_warm(b);
        if (!part || !strcmp(part, "same"))
                round_same(b);
        if (!part || !strcmp(part, "shuffled"))
                round_shuffled(b);
        if (part && strcmp(part, "changed"))
                return;
        round_changed(b);
        catch_up(b);
}

int main(int argc, char **argv) {
        static bench_t b = {
                .memcpy_ = {.name = "memcpy"}, .cold = {.name = "cold"},
                .warm = {.name = "warm"},
                .walk = {.name = "walk"},      .rewalk = {.name = "rewalk"},
                .drop = {.name = "drop"},      .same = {.name = "same"},
                .shuffle = {.name = "shuffled"},
                .change  = {.name = "changed"},
        };
        int rounds, r;

        if (argc != 4 && argc != 5)
                bench_die("apply TOPICS ROUNDS SEED [PART]");
        bench_start();
        rounds = (int)bench_number(argv[2], 1, BENCH_MAX_ROUNDS / ORDERS);
        start(&b, (uint32_t)bench_number(argv[1], 1, 5000000),
              (uint64_t)bench_number(argv[3], 0, INT32_MAX));
        for (r = 0; r < rounds; r++)
                round_all(&b, argv[4]);
        bench_verify(b.lasting, &b.g);
        rdmeta_cache_unref(b.lasting);
        print(&b);
        return 0;
}
