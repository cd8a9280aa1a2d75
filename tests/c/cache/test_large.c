/*
 * Large caches: the time of each operation must not grow with the square of the
 * number of topics. No time is measured: an operation whose time did would not
 * end in the time that tools/run-c-tests gives it.
 */
#include "support/testing.h"
#include "support/wire_gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES = 200000, NAME_SIZE = 16, PARTITIONS = 100000 };

typedef struct large {
        rdmeta_cache_t *cache;
        char (*text)[NAME_SIZE];
        rdmeta_str_t *names, *to_ask;
        rdmeta_time_t now;
} large_t;

static void large_init(large_t *l) {
        size_t i;

        l->cache  = rdmeta_cache_new(NULL);
        l->text   = calloc(NAMES, NAME_SIZE);
        l->names  = calloc(NAMES, sizeof(*l->names));
        l->to_ask = calloc(NAMES, sizeof(*l->to_ask));
        CHECK(l->cache && l->text && l->names && l->to_ask);
        for (i = 0; i < NAMES; i++) {
                const int n = snprintf(l->text[i], NAME_SIZE, "t-%zu", i);
                l->names[i].data = l->text[i];
                l->names[i].len  = (size_t)n;
        }
        l->now.mono_us = 1000000;
        l->now.wall_us = 1000000;
}

static void large_destroy(large_t *l) {
        rdmeta_cache_unref(l->cache);
        free(l->text);
        free(l->names);
        free(l->to_ask);
}

static size_t hint(large_t *l, size_t first, size_t n, int64_t ttl_us) {
        size_t n_ask;

        CHECK(!rdmeta_cache_hint(l->cache, l->names + first, n, 0, ttl_us,
                                 l->now, l->to_ask, &n_ask));
        return n_ask;
}

#define LARGE_TEST(name)                                                     \
        TEST_BETWEEN(name, large_t, large_init(&w), large_destroy(&w))

/* Each call hints one name, with another TTL than the last call. This is the
 * worst case for a list that is kept in order from its end. */
LARGE_TEST(test_hints_with_different_ttls) {
        static const int64_t ttls[] = {60000001, 1000000, 999999, 250000};
        rdmeta_stats_t stats;
        size_t i;

        CHECK(hint(w, 0, NAMES / 2, 0) == NAMES / 2);
        for (i = NAMES / 2; i < NAMES; i++)
                CHECK(hint(w, i, 1, ttls[i % 4]) == 1);
        rdmeta_cache_stats(w->cache, &stats);
        CHECK(stats.hints == NAMES);
        CHECK(rdmeta_cache_sweep(w->cache, w->now) == 1250001);
        w->now.mono_us += 1000001;
        rdmeta_cache_sweep(w->cache, w->now);
        rdmeta_cache_stats(w->cache, &stats);
        CHECK(stats.hints == NAMES / 2 + NAMES / 8);
        CHECK(rdmeta_cache_purge_hints(w->cache, NULL, 0, w->now) ==
              NAMES / 2 + NAMES / 8);
}

static void apply(large_t *l, const gen_cluster_t *g, rdmeta_err_t wanted) {
        const rdmeta_request_t asked = {.asked  = RDMETA_ASKED_ALL,
                                        .broker = 1};
        gen_bytes_t body             = {0};

        gen_response(g, 12, &body);
        l->now.mono_us += 1000000;
        CHECK(rdmeta_cache_apply(l->cache, body.data, body.len, 12, &asked,
                                 l->now, NULL) == wanted);
        gen_bytes_free(&body);
}

/* Adds all topics, removes half of them, and shuffles the rest. */
LARGE_TEST(test_topics_that_are_added_and_removed) {
        const gen_shape_t shape = {.seed = 7, .brokers = 3,
                                   .first_broker = 1, .topics = NAMES / 2,
                                   .partitions = 1, .replication = 2};
        gen_cluster_t *g = gen_cluster_new(&shape);
        rdmeta_stats_t stats;

        apply(w, g, RDMETA_OK);
        g->topic_count /= 2;
        apply(w, g, RDMETA_OK);
        gen_cluster_shuffle(g, 3);
        apply(w, g, RDMETA_OK);
        rdmeta_cache_stats(w->cache, &stats);
        CHECK(stats.topics == NAMES / 4 && stats.negatives == NAMES / 4);
        w->now.mono_us += INT64_C(20) * 1000000;
        rdmeta_cache_sweep(w->cache, w->now);
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        gen_cluster_free(g);
}

/* One topic: its partitions come in descending order, each with its own
 * brokers. */
LARGE_TEST(test_partitions_in_the_wrong_order) {
        const gen_shape_t shape = {.seed = 7, .brokers = 3,
                                   .first_broker = 1, .topics = 1,
                                   .partitions = PARTITIONS,
                                   .replication = 2};
        gen_cluster_t *g        = gen_cluster_new(&shape);
        gen_partition_t *p      = g->topics[0].partitions;
        rdmeta_stats_t stats;
        int i;

        for (i = 0; i < PARTITIONS; i++) {
                p[i].id              = PARTITIONS - 1 - i;
                p[i].replicas.ids[1] = 1000 + i;
        }
        apply(w, g, RDMETA_OK);
        rdmeta_cache_stats(w->cache, &stats);
        CHECK(stats.partitions == PARTITIONS);
        p[PARTITIONS - 1].id = 1; /* twice */
        apply(w, g, RDMETA_ERR_MALFORMED);
        gen_cluster_free(g);
}

TEST_MAIN()
