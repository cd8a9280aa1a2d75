/*
 * Digests: the cache does not parse a topic whose bytes are those of the last
 * answer. Some topics must never get a digest. csrc/store/answer_order.h
 * explains why.
 */
#include "support/cache_fixture.h"

static uint64_t hits(cw_t *w) {
        return cw_stats(w).digest_hits;
}

static gen_cluster_t *cluster_new(uint32_t topics) {
        gen_shape_t shape = {.seed = test_seed, .brokers = 5,
                             .first_broker = 1, .topics = topics,
                             .partitions = 4, .replication = 3};

        return gen_cluster_new(&shape);
}

static rdmeta_err_t all_of(cw_t *w, const gen_cluster_t *cluster) {
        const rdmeta_request_t r = cw_request(w, RDMETA_ASKED_ALL);
        gen_bytes_t body         = {0};
        rdmeta_err_t err;

        gen_response(cluster, w->api_version, &body);
        err = cw_apply(w, body.data, body.len, &r);
        gen_bytes_free(&body);
        return err;
}

/* Checks that each partition has the leader that the answer gave it. */
static void check_leaders(cw_t *w, const gen_cluster_t *cluster) {
        uint32_t i, p;

        for (i = 0; i < cluster->topic_count; i++) {
                const gen_topic_t *t = &cluster->topics[i];
                for (p = 0; p < t->partition_count; p++)
                        CHECK(rdmeta_leader(w->reader, t->name.data,
                                            t->name.len, t->partitions[p].id,
                                            w->now.mono_us) ==
                              t->partitions[p].leader);
        }
}

/* Applies the same topics, in any order. Checks that all were skipped, and that
 * nothing has changed but the deadline. */
static void again(cw_t *w, const gen_cluster_t *cluster) {
        const uint64_t version = cw_version(w), before = hits(w);

        cw_pass(w, CW_S);
        CHECK(!all_of(w, cluster));
        CHECK(hits(w) - before == cluster->topic_count);
        CHECK(w->applied.unchanged == cluster->topic_count);
        CHECK(w->applied.changed == 0 && w->applied.absent == 0);
        CHECK(cw_version(w) == version);
        CHECK(cw_stats(w).shared_deadline_us ==
              w->now.mono_us + w->conf.max_age_us);
        check_leaders(w, cluster);
}

static void rotate(gen_cluster_t *cluster, uint32_t by) {
        gen_topic_t *copy = malloc(by * sizeof(*copy));

        CHECK(copy);
        memcpy(copy, cluster->topics, by * sizeof(*copy));
        memmove(cluster->topics, cluster->topics + by,
                (cluster->topic_count - by) * sizeof(*copy));
        memcpy(cluster->topics + cluster->topic_count - by, copy,
               by * sizeof(*copy));
        free(copy);
}

TEST(test_the_same_again_is_not_parsed) {
        gen_cluster_t *cluster = cluster_new(200);
        int version;
        cw_t w;

        for (version = 0; version <= 13; version++) {
                cw_init(&w, NULL);
                w.api_version = version;
                CHECK(!all_of(&w, cluster));
                CHECK(w.applied.changed == 200 && hits(&w) == 0);
                again(&w, cluster);
                again(&w, cluster);
                cw_destroy(&w);
        }
        gen_cluster_free(cluster);
}

CACHE_TEST(test_the_same_again_rotated_or_shuffled_is_not_parsed) {
        gen_cluster_t *cluster = cluster_new(200);
        int i;

        CHECK(!all_of(w, cluster));
        for (i = 0; i < 20; i++) {
                if (i % 2)
                        rotate(cluster, 1 + (uint32_t)i * 9);
                else
                        gen_cluster_shuffle(cluster, test_seed + (uint64_t)i);
                again(w, cluster);
        }
        gen_cluster_free(cluster);
}

CACHE_TEST(test_topics_that_differ_are_parsed_and_the_rest_is_not) {
        gen_cluster_t *cluster = cluster_new(200);
        test_rng_t rng         = test_rng(4);
        uint64_t before;
        int i;

        CHECK(!all_of(w, cluster));
        for (i = 0; i < 50; i++) {
                const size_t t = test_below(&rng, 200);

                gen_move_leader(&cluster->topics[t],
                                (uint32_t)test_below(&rng, 4));
                before = hits(w);
                CHECK(!all_of(w, cluster));
                CHECK(w->applied.changed == 1 && w->applied.unchanged == 199);
                CHECK(hits(w) - before == 199);
                check_leaders(w, cluster);
                again(w, cluster);
        }
        gen_cluster_free(cluster);
}

/* After a topic more or less, the others still have their digests. */
CACHE_TEST(test_topics_that_come_and_go_do_not_disturb_the_rest) {
        gen_cluster_t *cluster = cluster_new(100);
        uint64_t before;

        cluster->topic_count = 99;
        CHECK(!all_of(w, cluster));
        cluster->topic_count = 100;
        rotate(cluster, 50);
        before = hits(w);
        CHECK(!all_of(w, cluster));
        CHECK(w->applied.changed == 1 && hits(w) - before == 99);
        again(w, cluster);
        cluster->topic_count = 90;
        before               = hits(w);
        CHECK(!all_of(w, cluster));
        CHECK(w->applied.absent == 10 && hits(w) - before == 90);
        again(w, cluster);
        cluster->topic_count = 100; /* ten come back from "missing" */
        before               = hits(w);
        CHECK(!all_of(w, cluster));
        CHECK(w->applied.changed == 10 && hits(w) - before == 90);
        again(w, cluster);
        gen_cluster_free(cluster);
}

CACHE_TEST(test_another_api_version_is_read_anew) {
        gen_cluster_t *cluster = cluster_new(50);
        uint64_t before;

        w->api_version = 13;
        CHECK(!all_of(w, cluster));
        again(w, cluster);
        w->api_version = 12;
        before        = hits(w);
        CHECK(!all_of(w, cluster));
        CHECK(hits(w) == before && w->applied.unchanged == 50);
        again(w, cluster);
        gen_cluster_free(cluster);
}

/* Digests stay those of the all-topics answer's API version. */
CACHE_TEST(test_a_partial_answer_of_another_version_is_read_each_time) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        w->api_version = 11;
        CHECK(!cw_say(w, "a#a 0:1@1"));
        CHECK(!cw_say(w, "a#a 0:1@1"));
        CHECK(hits(w) == 0 && w->applied.unchanged == 1);
        w->api_version = 12;
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK(hits(w) == 1 && cw_version(w) == 1);
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK(hits(w) == 3);
}

/* Partial answers use digests, too. Their topics get deadlines of their own. */
CACHE_TEST(test_a_partial_answer_is_not_parsed_either) {
        int64_t shared;

        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1; c#c 0:1@1"));
        shared = cw_info(w, "a").deadline_us;
        cw_pass(w, CW_S);
        CHECK(!cw_asked(w, "b", "b#b 0:1@1"));
        CHECK(hits(w) == 1 && w->applied.unchanged == 1);
        CHECK(cw_info(w, "a").deadline_us == shared);
        CHECK(cw_info(w, "b").deadline_us == shared + CW_S);
        cw_pass(w, CW_S);
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1; c#c 0:1@1"));
        CHECK(hits(w) == 4);
        CHECK(cw_info(w, "b").deadline_us == shared + 2 * CW_S);
        CHECK(!cw_say(w, "n#n 0:1@1")); /* new by a partial answer */
        CHECK(!cw_say(w, "n#n 0:1@1"));
        CHECK(hits(w) == 5);
}

/* It does not matter whether the topic was parsed or skipped. */
CACHE_TEST(test_an_unchanged_topic_has_the_last_broker_as_source) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1; c#c 0:-1@1"));
        w->broker = 2;
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1; c#c 0:-1@1"));
        CHECK(cw_info(w, "a").source_broker == 2);
        CHECK(cw_info(w, "c").source_broker == 2);
        w->broker = 3; /* c is read each time, a is not */
        CHECK(!cw_say(w, "a#a 0:1@1; c#c 0:-1@1"));
        CHECK(cw_info(w, "a").source_broker == 3);
        CHECK(cw_info(w, "b").source_broker == 2);
        CHECK(cw_info(w, "c").source_broker == 3);
        CHECK(cw_version(w) == 1);
}

/* The answer without the topic is one to a request that left before the topic
 * was known. */
CACHE_TEST(test_a_topic_that_an_answer_could_not_name_keeps_its_digest) {
        CHECK(!cw_all(w, "a#a 0:1@1"));
        cw_sent(w);
        CHECK(!cw_all(w, "a#a 0:1@1; n#n 0:1@1"));
        CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK(hits(w) == 2);
        CHECK(!cw_all(w, "a#a 0:1@1; n#n 0:1@1"));
        CHECK(hits(w) == 4);
}

/* ---- never ------------------------------------------------------------- */

/* Applies `first`, and `second` twice. Checks that it was parsed both times. */
static void never(const char *first, const char *second) {
        uint64_t before;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, first));
        CHECK(!cw_all(&w, second));
        before = hits(&w);
        CHECK(!cw_all(&w, second));
        CHECK(hits(&w) == before);
        CHECK(w.applied.changed == 0);
        cw_destroy(&w);
}

TEST(test_topics_kept_back_never_get_a_digest) {
        never("t#a 0:1@5", "t#a 0:2@4");             /* a lower epoch */
        never("t#a 0:1@5 1:1@5", "t#a 0:2@4 1:2@6"); /* one in one row */
        never("t#a 0:1@5 1:1@5", "t#a 0:1@5");       /* fewer partitions */
        never("t#a 0:1@5", "t!5");                   /* a topic error */
        never("t#a 0:1@5", "t!3");                   /* an unknown topic */
}

TEST(test_merged_topics_never_get_a_digest) {
        never("t#a 0:1@5", "t#a 0:1");     /* keeps the highest epoch */
        never("t#a 0:1@5", "t 0:1@6");     /* keeps the id */
        never("t#a^8 0:1@5", "t#a 0:1@6"); /* keeps the operations */
}

TEST(test_topics_without_a_reachable_leader_never_get_a_digest) {
        never("t#a 0:1@5", "t#a 0:-1@6/r1/e5");
        never("t#a 0:1@5", "t#a 0:9@6");
}

/* Older answers are counted, although their bytes are the same each time. */
CACHE_TEST(test_older_answers_are_counted_each_time) {
        int i;

        w->brokers = "1";
        CHECK(!cw_all(w, "t#a 0:1@5; u#u 0:1@1"));
        for (i = 0; i < 5; i++, cw_pass(w, 2 * CW_S))
                CHECK(!cw_all(w, "t#a 0:1@3; u#u 0:1@1"));
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:1@3");
        CHECK(cw_stats(w).topics_kept_back == 4);
}

CACHE_TEST(test_a_leader_hint_takes_the_digest_away) {
        CHECK(!cw_all(w, "t#a 0:1@5; u#u 0:1@1"));
        CHECK(cw_leader_hint(w, "t", 0, 2, 6, NULL));
        CHECK(!cw_all(w, "t#a 0:1@5; u#u 0:1@1"));
        CHECK(hits(w) == 1 && w->applied.kept_back == 1);
        CHECK(cw_leader(w, "t", 0) == 2);
}

/* The cache read part of an answer before it refused it. */
CACHE_TEST(test_an_answer_that_was_refused_counts_nothing) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK(cw_all(w, "a#a 0:1@1; b#b 0:1@1; a#a 0:1@1") != 0);
        CHECK(hits(w) == 0);
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK(hits(w) == 2);
}

/* Topics come and go in many answers. The order array must not grow with the
 * number of all names that ever came. */
CACHE_TEST(test_erased_names_leave_no_memory_behind) {
        char text[64];
        uint64_t bytes = 0;
        int i;

        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        for (i = 0; i < 4000; i++) {
                snprintf(text, sizeof(text), "name-%d!3", i);
                CHECK(!cw_say(w, text));
                cw_pass(w, 1000 * CW_S);
                cw_sweep(w); /* past its deadline */
                cw_pass(w, 1000 * CW_S);
                cw_sweep(w); /* and no longer retained */
                if (i == 1000)
                        bytes = cw_stats(w).bytes - cw_stats(w).bytes_ring;
        }
        CHECK(cw_stats(w).topics == 2 && cw_stats(w).negatives == 0);
        CHECK(cw_stats(w).bytes - cw_stats(w).bytes_ring <= bytes + 65536);
}

TEST_MAIN()
