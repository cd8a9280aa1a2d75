/* common: see common.h. */
#include "common.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double read_clock(clockid_t id) {
        struct timespec t;

        clock_gettime(id, &t);
        return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double bench_now_ns(void) {
        return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

double bench_wall_ns(void) {
        return read_clock(CLOCK_MONOTONIC);
}

static double started_wall, started_cpu;
static cpu_set_t allowed;

void bench_start(void) {
        started_wall = bench_wall_ns();
        started_cpu  = bench_now_ns();
        if (sched_getaffinity(0, sizeof(allowed), &allowed))
                CPU_ZERO(&allowed);
        bench_pin(0);
}

int bench_cores(void) {
        return CPU_COUNT(&allowed);
}

void bench_pin(int k) {
        cpu_set_t one;
        int i;

        for (i = CPU_SETSIZE - 1; i >= 0; i--)
                if (CPU_ISSET(i, &allowed) && k-- == 0)
                        break;
        if (i < 0)
                return;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        (void)sched_setaffinity(0, sizeof(one), &one);
}

void bench_add(bench_samples_t *s, double ns) {
        if (s->count < BENCH_MAX_ROUNDS)
                s->ns[s->count++] = ns;
}

void bench_die(const char *format, ...) {
        va_list args;

        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
        exit(1);
}

long bench_number(const char *text, long low, long high) {
        char *end;
        long n;

        errno = 0;
        n     = strtol(text, &end, 10);
        if (errno || end == text || *end || n < low || n > high)
                bench_die("not a number from %ld to %ld: %s", low, high, text);
        return n;
}

gen_ids_t bench_ids(const char *bits) {
        if (!strcmp(bits, "8"))
                return GEN_IDS_8;
        if (!strcmp(bits, "16"))
                return GEN_IDS_16;
        if (!strcmp(bits, "32"))
                return GEN_IDS_32;
        bench_die("ids take 8, 16 or 32 bits, not %s", bits);
}

gen_t bench_cluster(uint32_t topics, gen_ids_t ids, uint64_t seed) {
        const gen_conf_t conf = {topics, BENCH_PER_TOPIC, BENCH_BROKERS, ids,
                                 seed};
        gen_t g;

        if (gen_init(&g, &conf))
                bench_die("no such cluster can be made");
        return g;
}

/* ------------------------------------------------------------------------
 * The cache
 * --------------------------------------------------------------------- */

static rdmeta_time_t clocks = {1000000000, 1700000000000000};

rdmeta_time_t bench_tick(void) {
        clocks.mono_us += 1000000;
        clocks.wall_us += 1000000;
        return clocks;
}

int64_t bench_mono_us(void) {
        return clocks.mono_us;
}

rdmeta_cache_t *bench_cache(void) {
        rdmeta_conf_t conf;
        rdmeta_cache_t *cache;

        rdmeta_conf_init(&conf);
        cache = rdmeta_cache_new(&conf);
        if (!cache)
                bench_die("no memory for a cache");
        return cache;
}

double bench_apply(rdmeta_cache_t *cache, const uint8_t *response, size_t len,
                   uint32_t topics, rdmeta_applied_t *out) {
        rdmeta_request_t asked = {0};
        rdmeta_time_t now      = bench_tick();
        rdmeta_err_t err;
        double begin, end;

        asked.asked        = RDMETA_ASKED_ALL;
        asked.broker       = 1;
        asked.flags        = RDMETA_REQ_SENT_VERSION;
        asked.sent_version = rdmeta_cache_version(cache);

        begin = bench_now_ns();
        err   = rdmeta_cache_apply(cache, response, len, GEN_API_VERSION,
                                   &asked, now, out);
        end   = bench_now_ns();

        if (err)
                bench_die("apply: %s", rdmeta_err_name(err));
        if (out->topics != topics ||
            out->changed + out->unchanged != topics)
                bench_die("apply: %u topics, %u changed, %u unchanged of %u",
                          out->topics, out->changed, out->unchanged, topics);
        return end - begin;
}

rdmeta_cache_t *bench_filled(const gen_t *g) {
        size_t bound          = gen_response_bound(g), len;
        uint8_t *response     = gen_pages(bound);
        rdmeta_cache_t *cache = bench_cache();
        rdmeta_applied_t applied;

        len = gen_response(g, NULL, response);
        bench_apply(cache, response, len, g->conf.topics, &applied);
        gen_pages_free(response, bound);
        bench_verify(cache, g);
        return cache;
}

static void verify_leaders(rdmeta_reader_t *reader, const gen_t *g,
                           uint32_t topic) {
        size_t len;
        const char *name = gen_name(g, topic, &len);
        uint32_t p;

        for (p = 0; p < g->conf.per_topic; p++) {
                int32_t want = gen_leader(g, topic, p);
                int32_t got  = rdmeta_leader(reader, name, len, (int32_t)p,
                                             bench_mono_us());

                if (got != want)
                        bench_die("%.*s %u: leader %d, not %d", (int)len,
                                  name, p, got, want);
        }
}

typedef struct in_order {
        rdmeta_reader_t *reader;
        rdmeta_topic_info_t last;
        uint32_t n;
} in_order_t;

static int32_t order_visit(void *opaque, const rdmeta_topic_t *topic) {
        in_order_t *o                 = (in_order_t *)opaque;
        const rdmeta_topic_info_t was = o->last;
        size_t len;
        int res;

        rdmeta_topic_info(o->reader, topic, bench_mono_us(), &o->last);
        if (o->n++ == 0)
                return 0;
        len = was.name.len < o->last.name.len ? was.name.len
                                              : o->last.name.len;
        res = memcmp(was.name.data, o->last.name.data, len);
        return res > 0 || (res == 0 && was.name.len >= o->last.name.len);
}

void bench_verify(rdmeta_cache_t *cache, const gen_t *g) {
        rdmeta_reader_t *reader = rdmeta_reader_new(cache, 0);
        in_order_t order        = {0};
        int32_t err;
        uint32_t i;

        if (!reader)
                bench_die("no memory for a reader");
        for (i = 0; i < g->conf.topics; i++)
                verify_leaders(reader, g, i);
        order.reader = reader;
        rdmeta_reader_enter(reader);
        err = rdmeta_reader_walk(reader, "", 0, RDMETA_WALK_VALID,
                                 bench_mono_us(), order_visit, &order);
        rdmeta_reader_leave(reader);
        if (err || order.n != g->conf.topics)
                bench_die("walk: %d after %u topics", err, order.n);
        rdmeta_reader_destroy(reader);
}

static int32_t count_visit(void *opaque, const rdmeta_topic_t *topic) {
        (void)topic;
        ++*(uint32_t *)opaque;
        return 0;
}

double bench_walk(rdmeta_cache_t *cache, uint32_t topics) {
        rdmeta_reader_t *reader = rdmeta_reader_new(cache, 0);
        uint32_t n              = 0;
        rdmeta_err_t err;
        double begin, end;

        if (!reader)
                bench_die("no memory for a reader");
        begin = bench_now_ns();
        err   = rdmeta_reader_walk(reader, "", 0, RDMETA_WALK_VALID,
                                   bench_mono_us(), count_visit, &n);
        end   = bench_now_ns();
        if (err || n != topics)
                bench_die("walk: %s, %u topics of %u", rdmeta_err_name(err),
                          n, topics);
        rdmeta_reader_destroy(reader);
        return end - begin;
}

/* ------------------------------------------------------------------------
 * Output
 * --------------------------------------------------------------------- */

void bench_query(bench_query_t *q, gen_t *g, uint32_t topic) {
        size_t len;

        q->topic     = gen_name(g, topic, &len);
        q->len       = (uint32_t)len;
        q->partition = (int32_t)gen_below(g, g->conf.per_topic);
}

void bench_queries(bench_query_t *q, gen_t *g, size_t n) {
        size_t i;

        for (i = 0; i < n; i++)
                bench_query(&q[i], g, gen_below(g, g->conf.topics));
}

int64_t bench_ask(rdmeta_reader_t *reader, const bench_query_t *q, size_t n,
                  int64_t mono_us) {
        int64_t sum = 0;
        size_t i;

        for (i = 0; i < n; i++)
                sum += rdmeta_leader(reader, q[i].topic, q[i].len,
                                     q[i].partition, mono_us);
        return sum;
}

double bench_memory(const char *what) {
        FILE *f          = fopen("/proc/self/smaps_rollup", "r");
        const size_t len = strlen(what);
        long kib         = -1;
        char line[256];

        while (f && kib < 0 && fgets(line, sizeof(line), f))
                if (!strncmp(line, what, len) && line[len] == ':')
                        kib = atol(line + len + 1);
        if (f)
                fclose(f);
        if (kib < 0)
                bench_die("this system does not report %s memory", what);
        return (double)kib * 1024;
}

void bench_print_begin(const char *bench) {
        printf("{\"bench\": \"%s\"", bench);
}

void bench_print_number(const char *name, double value) {
        printf(", \"%s\": %.17g", name, value);
}

void bench_print_samples(const bench_samples_t *s) {
        int i;

        printf(", \"%s\": [", s->name);
        for (i = 0; i < s->count; i++)
                printf("%s%.4f", i ? ", " : "", s->ns[i]);
        printf("]");
}

void bench_print_end_of(double wall_ns, double cpu_ns) {
        bench_print_number("off_cpu",
                           cpu_ns < wall_ns ? 1 - cpu_ns / wall_ns : 0);
        printf("}\n");
}

void bench_print_end(void) {
        bench_print_end_of(bench_wall_ns() - started_wall,
                           bench_now_ns() - started_cpu);
}
