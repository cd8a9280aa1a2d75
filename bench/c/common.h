/*
 * common: what every bench does - stay on one core, read the clock, apply a
 * response and hold the cache to having understood it, print what was found.
 *
 * A bench prints one JSON object: its arguments as numbers, and the samples
 * of each thing it timed as a list, one a round, in nanoseconds for each unit
 * of work. What they mean is for the runner to say.
 *
 * Time is this thread's on the CPU, in the kernel too. On a quiet machine that
 * is what a clock on the wall says; on a busy one it leaves out the moments in
 * which somebody else ran. `off_cpu` tells the two apart: the part of the
 * process's life, 0 to 1, in which it did not run, whether pushed aside or
 * asleep of its own accord. Nothing that is timed here sleeps or waits.
 */
#ifndef RDMETA_BENCH_COMMON_H
#define RDMETA_BENCH_COMMON_H

#include "gen.h"
#include "rdmeta.h"

enum { BENCH_PER_TOPIC = 10, BENCH_BROKERS = 30, BENCH_MAX_ROUNDS = 1000 };

typedef struct bench_samples {
        const char *name;
        double ns[BENCH_MAX_ROUNDS];
        int count;
} bench_samples_t;

/* The clocks begin, on the last core that this process may run on, so as to
 * keep away from where interrupts mostly go. None to be had: unpinned. */
void bench_start(void);
double bench_now_ns(void);
/* What a clock on the wall says, for what more than one thread does. */
double bench_wall_ns(void);
/* The cores that this process might run on at the start, and this thread on
 * the k-th of them, the last one being 0. */
int bench_cores(void);
void bench_pin(int k);
void bench_add(bench_samples_t *s, double ns);

/* Say what is wrong and exit. */
__attribute__((noreturn, format(printf, 1, 2))) void bench_die(
        const char *format, ...);
/* A whole number from `text`, between low and high, or die. */
long bench_number(const char *text, long low, long high);
/* "8", "16" or "32": the bits that broker ids need; or die. */
gen_ids_t bench_ids(const char *bits);
gen_t bench_cluster(uint32_t topics, gen_ids_t ids, uint64_t seed);

/* One more second on the caller's clocks. */
rdmeta_time_t bench_tick(void);
int64_t bench_mono_us(void);

rdmeta_cache_t *bench_cache(void);
/* Apply as the answer to an all-topics request; dies unless that succeeds
 * with every one of `topics` in it. Returns the nanoseconds it took. */
double bench_apply(rdmeta_cache_t *cache, const uint8_t *response, size_t len,
                   uint32_t topics, rdmeta_applied_t *out);
/* A cache that was told of the cluster, and verified. */
rdmeta_cache_t *bench_filled(const gen_t *g);
/* Every leader of every topic is what the model says, and a walk comes by
 * every topic in the order of names, or die. */
void bench_verify(rdmeta_cache_t *cache, const gen_t *g);
/* Build the ordered index by visiting every topic; dies unless there are
 * `topics` of them. Returns the nanoseconds it took. */
double bench_walk(rdmeta_cache_t *cache, uint32_t topics);

/* A question that is put over and over: nothing else is in the array that a
 * timed loop goes through. */
typedef struct bench_query {
        const char *topic;
        uint32_t len;
        int32_t partition;
} bench_query_t;

/* About that topic, and any of its partitions. */
void bench_query(bench_query_t *q, gen_t *g, uint32_t topic);
/* About any n topics. */
void bench_queries(bench_query_t *q, gen_t *g, size_t n);
/* The sum of the leaders: the loop that is timed. */
int64_t bench_ask(rdmeta_reader_t *reader, const bench_query_t *q, size_t n,
                  int64_t mono_us);

/* Bytes of this process that /proc/self/smaps_rollup calls `what`, or die. */
double bench_memory(const char *what);

void bench_print_begin(const char *bench);
void bench_print_number(const char *name, double value);
void bench_print_samples(const bench_samples_t *s);
/* off_cpu of this thread since bench_start(), and the end. */
void bench_print_end(void);
/* The same where the time was that of others. */
void bench_print_end_of(double wall_ns, double cpu_ns);

#endif
