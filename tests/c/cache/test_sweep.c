/*
 * Deadlines that come in no order. There are so many topics that a linear
 * search for a deadline's place would take longer than the test may.
 */
#include "support/cache_fixture.h"

enum { N = 200000 };

/* Makes a cache, and the topics 0 to 2 N - 1. */
static gen_cluster_t *many(cw_t *w) {
        const gen_shape_t shape = {.seed = 7, .brokers = 3,
                                   .first_broker = 1, .topics = 2 * N,
                                   .partitions = 1, .replication = 1};

        cw_init(w, NULL);
        return gen_cluster_new(&shape);
}

static void done(cw_t *w, gen_cluster_t *g) {
        gen_cluster_free(g);
        cw_destroy(w);
}

/* Applies an answer about `n` topics, without the checks of cw_apply(), which
 * take long. */
static void say(cw_t *w, const gen_cluster_t *g, uint32_t from, uint32_t n,
                int32_t asked) {
        const rdmeta_request_t r = cw_request(w, asked);
        gen_cluster_t part       = *g;
        gen_bytes_t body         = {0};

        part.topics += from;
        part.topic_count = n;
        gen_response(&part, 12, &body);
        CHECK(!rdmeta_cache_apply(w->cache, body.data, body.len, 12, &r,
                                  w->now, &w->applied));
        gen_bytes_free(&body);
}

/* Asks for the first N topics again, though they are valid. */
static void ask(cw_t *w, const gen_cluster_t *g) {
        rdmeta_str_t *names = calloc(2 * N, sizeof(*names));
        size_t i, n;

        CHECK(names);
        for (i = 0; i < N; i++)
                names[i] = g->topics[i].name;
        CHECK(!rdmeta_cache_hint(w->cache, names, N, RDMETA_HINT_FORCE, 0,
                                 w->now, names + N, &n));
        CHECK(n == N && cw_stats(w).hints == N);
        free(names);
}

/* Checks that `first` is the next deadline, and `second` the one after it. */
static void check_deadlines(cw_t *w, int64_t first, int64_t second) {
        CHECK(rdmeta_cache_sweep(w->cache, w->now) == first + 1);
        cw_pass(w, first + 1 - w->now.mono_us);
        CHECK(rdmeta_cache_sweep(w->cache, w->now) == second + 1);
}

TEST(test_many_topics_get_their_deadlines_back_when_their_request_fails) {
        int64_t deadline;
        int purged;
        cw_t w;

        for (purged = 0; purged < 2; purged++) {
                gen_cluster_t *g = many(&w);

                deadline = w.now.mono_us + 900 * CW_S;
                say(&w, g, 0, N, RDMETA_ASKED_UNKNOWN);
                cw_pass(&w, CW_S);
                say(&w, g, N, N, RDMETA_ASKED_UNKNOWN);
                ask(&w, g);
                if (purged)
                        CHECK(rdmeta_cache_purge_hints(w.cache, NULL, 0,
                                                       w.now) == N);
                else
                        CHECK(!rdmeta_cache_apply_failure(w.cache, NULL,
                                                          w.now));
                CHECK(cw_stats(&w).hints == 0);
                check_deadlines(&w, deadline, deadline + CW_S);
                done(&w, g);
        }
}

TEST(test_many_topics_keep_their_deadline_when_a_broker_lags) {
        cw_t w;
        gen_cluster_t *g  = many(&w);
        const int64_t deadline = w.now.mono_us + 900 * CW_S;
        uint32_t i;

        for (i = 0; i < N; i++)
                g->topics[i].partitions[0].epoch = 5;
        say(&w, g, 0, 2 * N, RDMETA_ASKED_ALL);
        cw_pass(&w, CW_S);
        say(&w, g, N, N, RDMETA_ASKED_UNKNOWN);
        for (i = 0; i < N; i++)
                g->topics[i].partitions[0].epoch = 4;
        w.broker = 2;
        say(&w, g, 0, N, RDMETA_ASKED_UNKNOWN);
        CHECK(w.applied.kept_back == N);
        check_deadlines(&w, deadline, deadline + CW_S);
        done(&w, g);
}

/* An invalid name stays invalid for max age; unknown lasts 100 ms. */
TEST(test_many_short_errors_end_before_as_many_long_ones) {
        cw_t w;
        gen_cluster_t *g = many(&w);
        uint32_t i;

        for (i = 0; i < 2 * N; i++)
                g->topics[i].error = i < N ? 17 : 3;
        say(&w, g, 0, N, RDMETA_ASKED_UNKNOWN);
        say(&w, g, N, N, RDMETA_ASKED_UNKNOWN);
        CHECK(cw_stats(&w).negatives == 2 * N);
        check_deadlines(&w, w.now.mono_us + 100000, w.now.mono_us + 900 * CW_S);
        CHECK(cw_stats(&w).negatives == N && cw_stats(&w).retained == N);
        done(&w, g);
}

TEST_MAIN()
