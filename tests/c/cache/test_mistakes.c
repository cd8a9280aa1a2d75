/*
 * Mistakes of other clients, as scenarios: several rules at once, over many
 * answers. docs/internals/policies.md names the client of each mistake.
 */
#include "support/cache_fixture.h"

/* ---- leaders that move, and move back ------------------------------------ */

/* Polls and leader hints of brokers that lag contain A, B, A, B ... */
CACHE_TEST(test_leaders_that_flip_back_and_forth_strand_no_partition) {
        char answer[64], stale[64];
        int32_t epoch = 5;
        int k;

        CHECK(!cw_all(w, "t#a 0:1@5"));
        for (k = 0; k < 40; k++) {
                const int32_t leader = 1 + (k + 1) % 2;

                snprintf(stale, sizeof(stale), "t#a 0:%d@%d",
                         3 - (int)leader, (int)epoch);
                epoch++;
                if (k % 3) {
                        CHECK(cw_leader_hint(w, "t", 0, leader, epoch, NULL));
                } else {
                        snprintf(answer, sizeof(answer), "t#a 0:%d@%d",
                                 (int)leader, (int)epoch);
                        CHECK(!cw_say(w, answer));
                }
                CHECK(cw_leader(w, "t", 0) == leader);
                w->broker = 1 + k % 3;
                CHECK(!cw_say(w, stale));
                CHECK(w->applied.kept_back == 1);
                CHECK(w->applied.advice & RDMETA_ADVICE_ASK_OTHER);
                CHECK(!cw_leader_hint(w, "t", 0, 3 - leader, epoch - 1, NULL));
                CHECK(cw_leader(w, "t", 0) == leader);
        }
}

/* librdkafka skipped a hint of leader -1, and every later one with it. */
CACHE_TEST(test_a_leader_hint_without_a_leader_spoils_no_later_one) {
        CHECK(!cw_all(w, "t#a 0:1@5"));
        CHECK(!cw_leader_hint(w, "t", 0, -1, 6, NULL));
        CHECK(cw_leader(w, "t", 0) == 1);
        CHECK(cw_leader_hint(w, "t", 0, 2, 6, NULL));
        CHECK(cw_leader(w, "t", 0) == 2);
}

/* A client of a deleted topic of the same name may still get its hints. */
CACHE_TEST(test_a_hint_from_a_dead_incarnation_is_ignored) {
        uint8_t dead[16];
        rdmeta_leader_hint_t hint = {.topic = GEN_STR("t"), .topic_id = dead,
                                     .leader = 3, .leader_epoch = 1000};

        memset(dead, 'a', sizeof(dead));
        CHECK(!cw_all(w, "t#a 0:1@50"));
        CHECK(!cw_all(w, "t#b 0:2@0"));
        CHECK_TEXT(cw_changes(w, 1), "v2 topic_recreated t#b");
        CHECK(!rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now, NULL));
        hint.topic.data = NULL; /* by its id alone */
        CHECK(!rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now, NULL));
        CHECK_TEXT(cw_topic(w, "t"), "t#b 0:2@0");
        CHECK(cw_version(w) == 2 && cw_stats(w).leader_hints_ignored == 2);
        cw_check(w);
        memset(dead, 'b', sizeof(dead));
        CHECK(!rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now, NULL));
        CHECK(cw_leader(w, "t", 0) == 3);
}

/* An answer about the deleted topic, whose epochs are higher than the new
 * topic's. */
CACHE_TEST(test_an_answer_about_a_dead_incarnation_is_kept_out) {
        CHECK(!cw_all(w, "t#a 0:1@50 1:1@50"));
        CHECK(!cw_say(w, "t#b 0:2@0"));
        w->broker = 2;
        CHECK(cw_kept_back(w, "t#a 0:1@51 1:1@51") == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#b 0:2@0");
        CHECK(!cw_say(w, "t#b 0:3@1"));
        CHECK(cw_leader(w, "t", 0) == 3);
}

/* ---- rolls of mixed versions -------------------------------------------- */

/* librdkafka took -1 for lower than 20 and asked for ever. */
CACHE_TEST(test_a_missing_epoch_is_not_lower_than_20) {
        int k;

        CHECK(!cw_all(w, "t#a 0:1@20"));
        for (k = 0; k < 20; k++) {
                w->broker      = 1 + k % 3;
                w->api_version = k % 2 ? 12 : 5; /* rolled already, or not */
                CHECK(!cw_all(w, k % 2 ? "t#a 0:1@20" : "t 0:1"));
                CHECK(w->applied.kept_back == 0);
                CHECK(!(w->applied.advice & RDMETA_ADVICE_ASK_OTHER));
                CHECK(cw_leader(w, "t", 0) == 1);
        }
        w->api_version = 5;
        CHECK(!cw_all(w, "t 0:2"));
        CHECK(cw_leader(w, "t", 0) == 2);
        w->api_version = 12;
        CHECK(!cw_all(w, "t#a 0:3@21"));
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:3@21");
}

/* ---- errors that come and go -------------------------------------------- */

TEST(test_a_topic_whose_errors_come_and_go_is_the_same_one) {
        static const char *const errors[] = {"t!5", "t!3", "t!-1", "t!56",
                                             "t!29", "t!13"};
        size_t k;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "t#a 0:1@5 1:2@7; u#u 0:1@1"));
        for (k = 0; k < 60; k++) {
                const char *error = errors[k % 6];
                const int lost    = k % 6 == 1 || k % 6 == 4;

                w.broker = 1 + (int32_t)k % 3;
                CHECK(!cw_asked(&w, "t", error));
                CHECK(cw_leader(&w, "t", 0) ==
                      (!lost           ? 1
                       : k % 6 == 1 ? RDMETA_UNKNOWN_TOPIC
                                    : RDMETA_DENIED));
                CHECK(cw_leader(&w, "u", 0) == 1);
                /* A broker that lags returns the state of before. */
                CHECK(!cw_asked(&w, "t", "t#a 0:3@4 1:3@6"));
                CHECK(cw_leader(&w, "t", 0) != 3);
                CHECK(!cw_asked(&w, "t", "t#a 0:1@5 1:2@7"));
                CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:1@5 1:2@7");
        }
        CHECK(cw_stats(&w).topics == 2 && cw_stats(&w).negatives == 0);
        cw_destroy(&w);
}

/* A retriable error erased kafka-python's partitions of the topic; an answer
 * about one topic dropped all others. */
CACHE_TEST(test_an_answer_about_one_topic_leaves_all_others) {
        CHECK(!cw_all(w, "t#a 0:1@5; u#u 0:2@1 1:3@1"));
        CHECK(!cw_asked(w, "t", "t#a 0:2@6"));
        CHECK_TEXT(cw_topic(w, "u"), "u#u 0:2@1 1:3@1");
        CHECK(!cw_asked(w, "u", "u!5"));
        CHECK_TEXT(cw_topic(w, "u"), "u#u 0:2@1 1:3@1");
        CHECK(!cw_asked(w, "t", ""));
        CHECK(cw_leader(w, "t", 0) == 2 && cw_leader(w, "u", 1) == 3);
}

/* librdkafka disconnected for ever, once it had seen such an answer. */
CACHE_TEST(test_topics_of_no_brokers_fail_once_and_not_for_ever) {
        CHECK(!cw_all(w, "t#a 0:1@5"));
        w->brokers = "";
        CHECK(cw_all(w, "t#a 0:2@6") == RDMETA_ERR_NO_BROKERS);
        CHECK(cw_all(w, "") == RDMETA_ERR_NO_BROKERS);
        CHECK(cw_leader(w, "t", 0) == 1);
        CHECK_TEXT(cw_brokers(w), "1=h1:9001 2=h2:9002 3=h3:9003 | c");
        w->brokers = "1,2,3";
        CHECK(!cw_all(w, "t#a 0:2@6"));
        CHECK(cw_leader(w, "t", 0) == 2);
}

/* ---- time ---------------------------------------------------------------- */

enum { YEAR_S = 31557600 };

static void years(rdmeta_conf_t *conf) {
        conf->max_age_us      = 50 * YEAR_S * CW_S;
        conf->negative_ttl_us = 3 * YEAR_S * CW_S;
        conf->denied_ttl_us   = 2147484 * CW_S; /* librdkafka's int */
        conf->hint_ttl_us     = 2 * YEAR_S * CW_S;
        conf->absent_grace_us = YEAR_S * CW_S;
}

CACHE_TEST_WITH(test_lifetimes_of_years_are_that_long, years) {
        CHECK(!cw_all(w, "t#a 0:1@5; n!3; d!29; m#m 0:1@1"));
        CHECK(cw_info(w, "t").deadline_us ==
              w->now.mono_us + 50 * YEAR_S * CW_S);
        CHECK_TEXT(cw_hint(w, "h", 0), "h");
        cw_pass(w, 2147484 * CW_S);
        CHECK(cw_state(w, "d") == RDMETA_DENIED);
        cw_pass(w, 1);
        CHECK(cw_state(w, "d") == RDMETA_NOT_CACHED);
        CHECK(cw_state(w, "h") == RDMETA_WAITING);
        cw_pass(w, 2 * YEAR_S * CW_S);
        CHECK(cw_state(w, "h") == RDMETA_NOT_CACHED);
        CHECK(cw_state(w, "n") == RDMETA_UNKNOWN_TOPIC);
        cw_pass(w, YEAR_S * CW_S);
        CHECK(cw_state(w, "n") == RDMETA_NOT_CACHED);
        CHECK(cw_sweep(w) > w->now.mono_us);
        CHECK(cw_leader(w, "t", 0) == 1);
        cw_pass(w, 46 * YEAR_S * CW_S);
        CHECK(cw_leader(w, "t", 0) == 1);
        cw_pass(w, 2 * YEAR_S * CW_S);
        CHECK(cw_leader(w, "t", 0) == RDMETA_STALE);
        CHECK(cw_leader_stale(w, "t", 0) == 1);
}

/* ---- work ---------------------------------------------------------------- */

/* Java rebuilds all its maps for one leader of a Fetch answer. */
CACHE_TEST(test_a_leader_hint_touches_no_other_topic) {
        const rdmeta_topic_t *before[3], *after[3];
        const char *const names[] = {"t", "u", "v"};
        int k, again;

        CHECK(!cw_all(w, "t#a 0:1@5; u#u 0:1@1; v#v 0:1@1"));
        rdmeta_reader_enter(w->reader);
        for (again = 0; again < 2; again++) {
                for (k = 0; k < 3; k++)
                        CHECK(!rdmeta_topic_find(w->reader, names[k], 1,
                                                 w->now.mono_us,
                                                 again ? &after[k]
                                                       : &before[k]));
                if (!again)
                        CHECK(cw_leader_hint(w, "t", 0, 2, 6, NULL));
        }
        rdmeta_reader_leave(w->reader);
        CHECK(after[0] != before[0]);
        CHECK(after[1] == before[1] && after[2] == before[2]);
        CHECK(cw_stats(w).topics_changed == 3); /* the topics of the answer */
}

TEST_MAIN()
