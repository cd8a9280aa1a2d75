/*
 * common: what every bench needs. It stays on one core, reads the clock,
 * applies a response, checks that the cache understood it, and prints samples.
 *
 * A bench prints one JSON object: its arguments as numbers, and one list of
 * samples per thing that it timed. A list has one sample per round, in
 * nanoseconds per unit of work. The runner knows their meaning.
 *
 * Time is this thread's time on the CPU, the kernel included. On a quiet
 * machine that equals the time on the wall; on a busy one it leaves out the
 * moments of other programs. `off_cpu` shows the difference: the part of the
 * process's life, 0 to 1, in which it did not run, pushed aside or asleep.
 * Nothing that is timed here sleeps or waits.
 */
#pragma once

#include "gen.h"
#include "rdmeta.h"

enum { BENCH_PER_TOPIC = 10, BENCH_BROKERS = 30, BENCH_MAX_ROUNDS = 1000 };

typedef struct bench_samples {
        const char *name;
        double ns[BENCH_MAX_ROUNDS];
        int count;
} bench_samples_t;

/* Starts the clocks, on the last core that this process may run on, as the
 * first ones handle most interrupts. Without such a core it is not pinned. */
void bench_start(void);
double bench_now_ns(void);
/* Returns the time on the wall, for work of more than one thread. */
double bench_wall_ns(void);
/* bench_cores() returns the number of cores that this process could run on at
 * its start. bench_pin() moves this thread to the k-th; 0 is the last. */
int bench_cores(void);
void bench_pin(int k);
void bench_add(bench_samples_t *s, double ns);

/* Prints the message and exits. */
__attribute__((noreturn, format(printf, 1, 2))) void bench_die(
        const char *format, ...);
/* Returns the whole number in `text`, between low and high, or exits. */
long bench_number(const char *text, long low, long high);
/* Returns the bits that broker ids need, from "8", "16" or "32", or exits. */
gen_ids_t bench_ids(const char *bits);
gen_t bench_cluster(uint32_t topics, gen_ids_t ids, uint64_t seed);

/* Adds one second to the caller's clocks and returns them. */
rdmeta_time_t bench_tick(void);
int64_t bench_mono_us(void);

rdmeta_cache_t *bench_cache(void);
/* Applies a response as the answer to an all-topics request. Returns the
 * nanoseconds it took. Exits unless it succeeds with all of `topics` in it. */
double bench_apply(rdmeta_cache_t *cache, const uint8_t *response, size_t len,
                   uint32_t topics, rdmeta_applied_t *out);
/* Returns a cache with the whole cluster, verified. */
rdmeta_cache_t *bench_filled(const gen_t *g);
/* Checks that every leader is the model's, and that a walk visits every topic
 * in the order of names; exits if not. */
void bench_verify(rdmeta_cache_t *cache, const gen_t *g);
/* Visits every topic, which builds the ordered index. Returns the nanoseconds
 * that it took. Exits unless there are `topics` of them. */
double bench_walk(rdmeta_cache_t *cache, uint32_t topics);

/* A query that is asked again and again. The array of a timed loop has nothing
 * else in it. */
typedef struct bench_query {
        const char *topic;
        uint32_t len;
        int32_t partition;
} bench_query_t;

/* Sets a query for that topic and a random partition of it. */
void bench_query(bench_query_t *q, gen_t *g, uint32_t topic);
/* Sets queries for n random topics. */
void bench_queries(bench_query_t *q, gen_t *g, size_t n);
/* Returns the sum of the leaders: the loop that is timed. */
int64_t bench_ask(rdmeta_reader_t *reader, const bench_query_t *q, size_t n,
                  int64_t mono_us);

/* Returns the bytes of this process that /proc/self/smaps_rollup lists as
 * `what`, or exits. */
double bench_memory(const char *what);

void bench_print_begin(const char *bench);
void bench_print_number(const char *name, double value);
void bench_print_samples(const bench_samples_t *s);
/* Prints off_cpu of this thread since bench_start(), and the end. */
void bench_print_end(void);
/* Prints the same of other threads' times, and the end. */
void bench_print_end_of(double wall_ns, double cpu_ns);
