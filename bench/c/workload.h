/*
 * workload: the input of every peer, in the files of one directory. So programs
 * in any language get the same topics and the same queries.
 *
 *     about            topics, partitions per topic, seed: "10000 10 1\n"
 *     names            one per line; topic i is line i
 *     random           queries of random topics: pairs of (topic, partition),
 *                      little-endian uint32 each
 *     hot              WORKLOAD_HOT_SETS times WORKLOAD_HOT queries. Those of a
 *                      set have eight topics only, other ones in each set, so
 *                      that no luck of a hash lasts
 *     all-12 one-12    Metadata response bodies v12: of all topics, and of
 *     all-5  one-5     topic 0 alone; v5 and v4 for clients that ask for
 *     all-4  one-4     nothing newer
 *
 * The program `write_workload` writes them. In C the calls below read them, and
 * exit if anything is wrong. Everything that they read is in pages of its own,
 * never on the heap.
 */
#pragma once

#include "common.h"

enum { WORKLOAD_HOT_TOPICS = 8, WORKLOAD_HOT = 1024, WORKLOAD_HOT_SETS = 16 };

typedef struct query {
        const char *topic; /* ends in NUL, too */
        uint32_t len;
        int32_t partition;
        uint32_t number; /* the topic's number */
} query_t;

typedef struct workload {
        const char *dir;
        uint32_t topics, per_topic;
        uint64_t seed;
        const char **names;
        query_t *random, *hot; /* hot: one set after the other */
        size_t queries;        /* in random */
} workload_t;

workload_t workload_open(const char *dir);
/* Returns the bytes of a file of the workload, such as "all-12". */
uint8_t *workload_file(const char *dir, const char *file, size_t *len);

/* Times `random`, after one untimed pass, and one of the hot sets, with as many
 * queries in all. Adds the nanoseconds per query to their samples. Returns the
 * sum of the leaders of `random`. */
typedef int64_t (*workload_loop_t)(void *subject, const query_t *q, size_t n);
int64_t workload_time(const workload_t *w, workload_loop_t loop, void *subject,
                      int round, bench_samples_t *random,
                      bench_samples_t *hot);

/* The rounds of one thing: at least one, at most `rounds`, and none that begins
 * after `seconds`. */
typedef struct workload_budget {
        double end_ns;
        int rounds, done;
} workload_budget_t;

workload_budget_t workload_budget(int rounds, double seconds);
int workload_next(workload_budget_t *b);
