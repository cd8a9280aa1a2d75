/*
 * churn TOPICS SECONDS SEED: measures memory after a long time of changes.
 *
 * A cache with a reader gets one answer per second of its own clock, from a
 * cluster that keeps changing. Leaders move in one topic of a hundred. ISRs
 * shrink and are whole again in one topic of fifty. One hundredth of the topics
 * goes and another one comes back. Names in flight are answered or time out.
 * The program sweeps the cache as a client would. Broker ids have 16 bits.
 *
 * SECONDS are seconds on the wall: `churn 100000 3600 1` takes an hour. The
 * program prints the bytes that the cache asked its allocator for, and the
 * resident bytes of the process, after the first answer and at the end. It also
 * prints the bytes of a new cache with the last answer alone, and how many of
 * the cache's own seconds passed.
 */
#include "common.h"

enum { PARTS = 100 };

static rdmeta_stats_t stats_of(rdmeta_cache_t *cache) {
        rdmeta_stats_t s;

        rdmeta_cache_stats(cache, &s);
        return s;
}

/* Encodes an answer about all topics but those of part `gone`; *topics is how
 * many it has. */
static size_t answer(gen_t *g, uint32_t *order, uint32_t gone, uint8_t *out,
                     uint32_t *topics) {
        const uint32_t all = g->conf.topics;
        uint32_t i, n = 0;
        size_t len;

        for (i = 0; i < all; i++)
                if (i % PARTS != gone)
                        order[n++] = i;
        g->conf.topics = n; /* the length of `order` */
        len            = gen_response(g, order, out);
        g->conf.topics = all;
        *topics        = n;
        return len;
}

/* Changes one partition in each of n random topics: its leader, or in topics
 * whose ISR moves, its ISR. */
static void move(gen_t *g, uint32_t n) {
        while (n--) {
                const uint32_t topic = gen_below(g, g->conf.topics);
                gen_partition_t *p =
                        &g->partitions[(size_t)topic * g->conf.per_topic +
                                       gen_below(g, g->conf.per_topic)];

                if (topic % 50 == 0) {
                        const uint8_t whole = (1 << GEN_RF) - 1;
                        p->isr = p->isr == whole ? (uint8_t)(1 << p->leader)
                                                 : whole;
                } else {
                        p->leader = (uint8_t)gen_below(g, GEN_RF);
                        p->epoch++;
                }
        }
}

/* Returns the bytes of a new cache with the same answer. */
static double fresh_bytes(const uint8_t *out, size_t len, uint32_t topics) {
        rdmeta_cache_t *cache = bench_cache();
        rdmeta_applied_t applied;
        double bytes;

        bench_apply(cache, out, len, topics, &applied);
        bytes = (double)stats_of(cache).bytes;
        rdmeta_cache_unref(cache);
        return bytes;
}

static size_t turn(rdmeta_cache_t *cache, gen_t *g, uint32_t *order,
                   uint8_t *out, uint32_t k, uint32_t *topics) {
        const uint32_t gone   = k / 4 % PARTS;
        const rdmeta_str_t in_flight[] = {{"a name in flight", 16},
                                          {"another", 7}};
        rdmeta_request_t asked = {0};
        rdmeta_applied_t applied;
        rdmeta_str_t ask[2];
        rdmeta_time_t now;
        rdmeta_err_t err;
        size_t n, len;

        move(g, g->conf.topics / 100 + 1);
        len                = answer(g, order, gone, out, topics);
        now                = bench_tick();
        asked.asked        = RDMETA_ASKED_ALL;
        asked.broker       = 1 + (int32_t)(k % 3);
        asked.flags        = RDMETA_REQ_SENT_VERSION;
        asked.sent_version = rdmeta_cache_version(cache);
        err = rdmeta_cache_hint(cache, in_flight, 2, 0, 0, now, ask, &n);
        if (!err)
                err = rdmeta_cache_apply(cache, out, len, GEN_API_VERSION,
                                         &asked, now, &applied);
        if (err)
                bench_die("churn: %s", rdmeta_err_name(err));
        rdmeta_cache_sweep(cache, now);
        return len;
}

int main(int argc, char **argv) {
        double end, own_first = 0, rss_first = 0, rss_empty;
        rdmeta_reader_t *reader;
        rdmeta_cache_t *cache;
        rdmeta_stats_t s;
        uint32_t *order, k, topics = 0;
        uint8_t *out;
        size_t last = 0;
        gen_t g;

        if (argc != 4)
                bench_die("churn TOPICS SECONDS SEED");
        bench_start();
        g     = bench_cluster((uint32_t)bench_number(argv[1], 100, 5000000),
                              GEN_IDS_16,
                              (uint64_t)bench_number(argv[3], 0, INT32_MAX));
        out   = gen_pages(gen_response_bound(&g));
        order = gen_pages(g.conf.topics * sizeof(*order));
        end   = bench_wall_ns() + 1e9 * (double)bench_number(argv[2], 1, 86400);
        rss_empty = bench_memory("Rss");
        cache     = bench_cache();
        reader    = rdmeta_reader_new(cache, 0);
        if (!reader)
                bench_die("no memory for a reader");
        for (k = 0; bench_wall_ns() < end || k < 2 * PARTS; k++) {
                size_t len;
                const char *name = gen_name(&g, k % g.conf.topics, &len);

                last = turn(cache, &g, order, out, k, &topics);
                rdmeta_leader(reader, name, len, 0, bench_mono_us());
                if (k == 0) {
                        own_first = (double)stats_of(cache).bytes;
                        rss_first = bench_memory("Rss") - rss_empty;
                }
        }
        s = stats_of(cache);
        bench_print_begin("churn");
        bench_print_number("topics", g.conf.topics);
        bench_print_number("seconds", k);
        bench_print_number("partitions_first",
                           (double)(g.conf.topics - g.conf.topics / PARTS) *
                                   g.conf.per_topic);
        bench_print_number("partitions",
                           (double)g.conf.topics * g.conf.per_topic);
        bench_print_number("own_first", own_first);
        bench_print_number("rss_first", rss_first);
        bench_print_number("own", (double)s.bytes);
        bench_print_number("rss", bench_memory("Rss") - rss_empty);
        bench_print_number("own_fresh",
                           fresh_bytes(out, last, topics));
        bench_print_number("free", (double)s.bytes_free);
        bench_print_number("limbo", (double)s.bytes_limbo);
        bench_print_number("ring", (double)s.bytes_ring);
        bench_print_number("version", (double)s.version);
        bench_print_end();
        rdmeta_reader_destroy(reader);
        rdmeta_cache_unref(cache);
        gen_free(&g);
        return 0;
}
