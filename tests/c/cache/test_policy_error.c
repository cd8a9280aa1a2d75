/*
 * The rows of docs/internals/policies.md about a topic's error, the ids and
 * epochs that the cache keeps after it, and leader hints (KIP-951).
 *
 *     row                                    test
 *     UNKNOWN_TOPIC_OR_PARTITION             unknown_...
 *     UNKNOWN_TOPIC_ID, null name            an_unknown_id_..., an_id_...
 *     INCONSISTENT_TOPIC_ID                  an_inconsistent_id_...
 *     TOPIC_AUTHORIZATION_FAILED             denied_...
 *     INVALID_TOPIC                          an_invalid_topic_...
 *     other topic error                      any_other_error_...
 *     negative, denied, absent: kept         negative_..., denied_...
 *     KIP-951 leader hint                    a_leader_hint_...
 */
#include "support/cache_fixture.h"

/* ---- unknown ----------------------------------------------------------- */

CACHE_TEST(test_unknown_is_negative_for_a_short_time) {
        CHECK(!cw_say(w, "t!3"));
        CHECK(w->applied.negative == 1 && w->applied.changed == 1);
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN);
        CHECK(cw_leader(w, "t", 0) == RDMETA_UNKNOWN_TOPIC);
        CHECK_TEXT(cw_hint(w, "t", 0), ""); /* answered a moment ago */
        cw_pass(w, 100000);
        CHECK(cw_leader(w, "t", 0) == RDMETA_UNKNOWN_TOPIC);
        cw_pass(w, 1);
        CHECK(cw_leader(w, "t", 0) == RDMETA_NOT_CACHED);
        CHECK_TEXT(cw_hint(w, "t", 0), "t");
        CHECK(cw_leader(w, "t", 0) == RDMETA_WAITING);
        CHECK(!cw_asked(w, "t", "t#a 0:1@1")); /* created meanwhile */
        CHECK(cw_leader(w, "t", 0) == 1);
        CHECK_TEXT(cw_changes(w, 0),
                   "v1 broker_added 1 h1:9001; v1 broker_added 2 h2:9002; "
                   "v1 broker_added 3 h3:9003; "
                   "v1 topic_error t UNKNOWN_TOPIC_OR_PARTITION; "
                   "v2 topic_added t#a");
}

/* In one list for all TTLs, a deadline of 900 s could hide one of 100 ms. */
CACHE_TEST(test_unknown_ends_though_others_live_longer) {
        CHECK(!cw_say(w, "a#a 0:1@1"));
        CHECK_TEXT(cw_hint(w, "h", 0), "h");
        CHECK(!cw_say(w, "d!29; t!3"));
        CHECK(cw_sweep(w) == w->now.mono_us + 100001);
        cw_pass(w, 100001);
        CHECK(cw_sweep(w) == w->now.mono_us - 100001 + 10 * CW_S + 1);
        CHECK(cw_stats(w).negatives == 1 && cw_stats(w).retained == 1);
        CHECK(cw_state(w, "t") == RDMETA_NOT_CACHED);
        CHECK(cw_state(w, "d") == RDMETA_DENIED);
        CHECK(cw_state(w, "h") == RDMETA_WAITING);
}

CACHE_TEST(test_unknown_again_is_not_a_change) {
        CHECK(!cw_say(w, "t!3"));
        cw_pass(w, 90000);
        CHECK(!cw_say(w, "t!3"));
        CHECK(cw_version(w) == 1 && w->applied.changed == 0);
        cw_pass(w, 90000); /* the TTL begins anew */
        CHECK(cw_leader(w, "t", 0) == RDMETA_UNKNOWN_TOPIC);
}

TEST(test_negative_topics_keep_id_and_highest_epochs) {
        static const char *const errors[] = {"t!3", "t!29", "?#a!100"};
        size_t i;
        cw_t w;

        for (i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
                cw_init(&w, NULL);
                CHECK(!cw_say(&w, "t#a 0:1@5 1:1@5"));
                CHECK(!cw_say(&w, errors[i]));
                CHECK(cw_leader(&w, "t", 0) < RDMETA_NOT_CACHED);
                w.broker = 2;
                CHECK(!cw_say(&w, "t#a 0:2@4 1:1@4"));
                CHECK(w.applied.kept_back == 1 && w.applied.changed == 0);
                CHECK(cw_leader(&w, "t", 0) < RDMETA_NOT_CACHED);
                cw_sweep_after(&w, 60 * CW_S);
                cw_pass(&w, 16 * CW_S); /* past the grace time */
                CHECK(cw_kept_back(&w, "t#a 0:2@4 1:1@4") == 1);
                CHECK(cw_leader(&w, "t", 0) == RDMETA_NOT_CACHED);
                CHECK(!cw_say(&w, "t#a 0:3@5 1:1@5"));
                CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:3@5 1:1@5");
                cw_destroy(&w);
        }
}

CACHE_TEST(test_negative_topics_are_forgotten_after_max_age) {
        CHECK(!cw_say(w, "t#a 0:1@5"));
        CHECK(!cw_say(w, "t!29"));
        cw_sweep_after(w, 11 * CW_S);
        CHECK(cw_stats(w).retained == 1 && cw_version(w) == 2);
        cw_pass(w, 901 * CW_S);
        CHECK(cw_sweep(w) == INT64_MAX);
        CHECK(cw_stats(w).retained == 0 && cw_stats(w).topics == 0);
        CHECK(cw_state_id(w, 'a') == RDMETA_NOT_CACHED);
        CHECK_TEXT(cw_changes(w, 2), "v3 topic_removed(expiry) t#a");
        CHECK(!cw_say(w, "t#a 0:2@1"));
        CHECK(cw_leader(w, "t", 0) == 2);
}

/* The time also does not begin earlier for a topic that is not swept yet. */
TEST(test_negative_topics_are_kept_no_longer_after_old_answers) {
        uint64_t swept;
        cw_t w;

        for (swept = 0; swept < 2; swept++) {
                cw_init(&w, NULL);
                CHECK(!cw_say(&w, "t#a 0:1@5"));
                CHECK(!cw_say(&w, "t!29"));
                cw_pass(&w, 11 * CW_S);
                if (swept)
                        cw_sweep(&w);
                CHECK(cw_kept_back(&w, "t#a 0:2@4") == 1);
                CHECK(cw_stats(&w).retained == swept);
                cw_sweep_after(&w, 10 * CW_S);
                CHECK(cw_stats(&w).retained == 1);
                cw_pass(&w, (swept ? 889 : 899) * CW_S);
                /* without the sweep the row's own clock would be over */
                if (swept) {
                        CHECK(cw_kept_back(&w, "t#a 0:2@4") == 1);
                }
                cw_sweep(&w);
                CHECK(cw_stats(&w).retained == 1);
                cw_sweep_after(&w, 2 * CW_S);
                CHECK(cw_stats(&w).retained == 0);
                CHECK(!cw_say(&w, "t#a 0:2@4"));
                CHECK(cw_leader(&w, "t", 0) == 2);
                cw_destroy(&w);
        }
}

/* ---- ids --------------------------------------------------------------- */

CACHE_TEST(test_an_unknown_id_is_matched_by_id_and_asked_by_name) {
        CHECK(!cw_say(w, "t#a 0:1@5; u#u 0:1@1"));
        CHECK(!cw_say(w, "?#a!100; v#v 0:-1@1; ?#z!100"));
        CHECK(w->applied.negative == 2 && w->applied.changed == 2);
        CHECK(w->applied.leaderless == 1); /* though all is read twice */
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_BY_NAME);
        CHECK(cw_leader(w, "t", 0) == RDMETA_UNKNOWN_TOPIC);
        CHECK(cw_state_id(w, 'a') == RDMETA_UNKNOWN_TOPIC);
        CHECK(cw_leader(w, "u", 0) == 1);
        w->api_version = 10; /* an empty name, before names could be null */
        CHECK(!cw_say(w, "?#u!100"));
        CHECK(cw_leader(w, "u", 0) == RDMETA_UNKNOWN_TOPIC);
}

/* Brokers put unknown ids first in an answer. */
CACHE_TEST(test_an_id_that_a_known_name_no_longer_has_changes_nothing) {
        CHECK(!cw_say(w, "t#a 0:1@5"));
        CHECK(!cw_say(w, "?#a!100; t#b 0:2@0"));
        CHECK_TEXT(cw_topic(w, "t"), "t#b 0:2@0");
        CHECK(!cw_say(w, "t#c 0:3@0; ?#b!100"));
        CHECK_TEXT(cw_topic(w, "t"), "t#c 0:3@0");
        CHECK_TEXT(cw_changes(w, 1),
                   "v2 topic_recreated t#b; v3 topic_recreated t#c");
}

CACHE_TEST(test_an_inconsistent_id_asks_by_name_and_changes_nothing) {
        CHECK(!cw_say(w, "t#a 0:1@5"));
        CHECK(!cw_say(w, "t#b!103"));
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_BY_NAME);
        CHECK(w->applied.changed == 0 && w->applied.negative == 0);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:1@5");
}

/* ---- denied, invalid, others ------------------------------------------- */

CACHE_TEST(test_denied_lasts_10_s_at_most) {
        CHECK(!cw_say(w, "t#a 0:1@5"));
        CHECK(!cw_say(w, "t!29; n!29"));
        CHECK(w->applied.negative == 2);
        CHECK(!(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN));
        CHECK(cw_leader(w, "t", 0) == RDMETA_DENIED);
        CHECK(cw_leader(w, "n", 0) == RDMETA_DENIED);
        CHECK_TEXT(cw_hint(w, "t n", 0), "");
        CHECK_TEXT(cw_hint(w, "t", RDMETA_HINT_FORCE), "t"); /* forced */
        cw_pass(w, 10 * CW_S + 1);
        CHECK(cw_leader(w, "n", 0) == RDMETA_NOT_CACHED);
        CHECK_TEXT(cw_hint(w, "n", 0), "n");
}

static void short_max_age(rdmeta_conf_t *conf) {
        conf->max_age_us = 3 * CW_S;
}

CACHE_TEST_WITH(test_denied_lasts_max_age_if_that_is_less, short_max_age) {
        CHECK(!cw_say(w, "t!29"));
        cw_pass(w, 3 * CW_S);
        CHECK(cw_leader(w, "t", 0) == RDMETA_DENIED);
        cw_pass(w, 1);
        CHECK(cw_leader(w, "t", 0) == RDMETA_NOT_CACHED);
}

CACHE_TEST(test_an_invalid_topic_is_never_polled) {
        CHECK(!cw_say(w, "in/valid!17"));
        CHECK(!w->applied.advice && w->applied.negative == 1);
        CHECK(cw_leader(w, "in/valid", 0) == RDMETA_INVALID);
        cw_sweep_after(w, 899 * CW_S);
        CHECK(cw_leader(w, "in/valid", 0) == RDMETA_INVALID);
        CHECK_TEXT(cw_hint(w, "in/valid", 0), "");
}

TEST(test_any_other_error_leaves_the_block) {
        static const int errors[] = {-1, 2, 5, 6, 7, 9, 13, 14, 15, 72, 87};
        char text[32];
        size_t i;
        cw_t w;

        for (i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
                int64_t deadline;

                cw_init(&w, NULL);
                CHECK(!cw_all(&w, "t#a 0:1@5; u#u 0:1@1"));
                deadline = cw_info(&w, "t").deadline_us;
                cw_pass(&w, CW_S);
                snprintf(text, sizeof(text), "t!%d; n!%d; u#u 0:1@1",
                         errors[i], errors[i]);
                CHECK(!cw_all(&w, text));
                CHECK(w.applied.changed == 0 && w.applied.negative == 0);
                CHECK(w.applied.advice & RDMETA_ADVICE_ASK_AGAIN);
                CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:1@5");
                CHECK(cw_info(&w, "t").deadline_us == deadline);
                CHECK(cw_state(&w, "n") == RDMETA_NOT_CACHED);
                CHECK(cw_version(&w) == 1);
                cw_destroy(&w);
        }
}

/* All brokers are down: topics stay, and are stale. */
CACHE_TEST(test_past_its_deadline_a_topic_is_stale_and_readable) {
        CHECK(!cw_all(w, "t#a 0:1@5 1:-1@5/r2; u#u 0:2@1"));
        CHECK(!cw_say(w, "o#o 0:3@1"));
        cw_pass(w, 900 * CW_S);
        CHECK(cw_leader(w, "t", 0) == 1 && cw_leader(w, "o", 0) == 3);
        cw_sweep_after(w, 100000 * CW_S);
        CHECK(cw_leader(w, "t", 0) == RDMETA_STALE);
        CHECK(cw_leader(w, "t", 9) == RDMETA_STALE);
        CHECK(cw_leader(w, "o", 0) == RDMETA_STALE);
        CHECK(cw_leader_stale(w, "t", 0) == 1);
        CHECK(cw_leader_stale(w, "o", 0) == 3);
        CHECK(cw_leader_stale(w, "t", 9) == RDMETA_NO_PARTITION);
        CHECK(cw_stats(w).topics == 3 && cw_version(w) == 2);
        CHECK_TEXT(cw_walk(w, "", RDMETA_WALK_STALE), "-o -t -u ");
        CHECK_TEXT(cw_walk(w, "", RDMETA_WALK_VALID), "");
        CHECK_TEXT(cw_hint(w, "t", 0), "t");
        CHECK(cw_leader(w, "t", 0) == RDMETA_STALE); /* not "waiting" */
}

/* ---- KIP-951 ----------------------------------------------------------- */

CACHE_TEST(test_a_leader_hint_is_taken_if_strictly_newer) {
        int64_t deadline;

        CHECK(!cw_all(w, "t#a^8 0:1@5/r1,2,3/i1,2 1:-1@5/r1,3/i3/o1/e5"));
        deadline = cw_info(w, "t").deadline_us;
        cw_pass(w, CW_S);
        CHECK(!cw_leader_hint(w, "t", 0, 2, 4, NULL));
        CHECK(!cw_leader_hint(w, "t", 0, 2, 5, NULL));
        CHECK(!cw_leader_hint(w, "t", 0, 2, -1, NULL));
        CHECK(!cw_leader_hint(w, "t", 0, -1, 6, NULL)); /* no leader */
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN);
        CHECK(cw_version(w) == 1);
        CHECK(cw_leader_hint(w, "t", 0, 2, 6, NULL));
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN);
        CHECK(cw_leader_hint(w, "t", 1, 3, 6, NULL));
        CHECK_TEXT(cw_topic(w, "t"),
                   "t#a^8 0:2@6/r1,2,3/i1,2 1:3@6/r1,3/i3/o1");
        CHECK(cw_info(w, "t").deadline_us == deadline);
        CHECK_TEXT(cw_changes(w, 1),
                   "v2 leader_changed(hint) t#a/0 1@5>2@6; "
                   "v3 leader_changed(hint) t#a/1 -1@5>3@6; "
                   "v3 partition_error(hint) t#a/1 NONE");
        CHECK(cw_stats(w).leader_hints_taken == 2);
        CHECK(cw_stats(w).leader_hints_ignored == 4);
        CHECK(!cw_all(w, "t#a^8 0:1@5/r1,2,3/i1,2 1:-1@5/r1,3/i3/o1/e5"));
        CHECK(w->applied.kept_back == 1); /* older than the hint */
        CHECK(cw_leader(w, "t", 0) == 2);
}

static int hint_on_rack(cw_t *w, int32_t epoch, const char *host,
                        const char *rack) {
        const rdmeta_leader_hint_t hint = {.topic        = GEN_STR("t"),
                                           .leader       = 2,
                                           .leader_epoch = epoch,
                                           .host         = test_str(host),
                                           .rack         = test_str(rack),
                                           .port         = 9002};

        CHECK(!rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now,
                                              &w->applied));
        cw_check(w);
        return w->applied.changed == 1;
}

CACHE_TEST(test_a_leader_hint_keeps_the_rack_of_its_broker) {
        w->brokers = "1,2=h2:9002=r2";
        CHECK(!cw_all(w, "t#a 0:1@5"));
        CHECK(cw_leader_hint(w, "t", 0, 2, 6, "h2"));
        CHECK_TEXT(cw_brokers(w), "1=h1:9001 2=h2:9002=r2 | c");
        CHECK_TEXT(cw_changes(w, 1), "v2 leader_changed(hint) t#a/0 1@5>2@6");
        CHECK(hint_on_rack(w, 7, "h2", "r3")); /* the hint names another */
        CHECK_TEXT(cw_brokers(w), "1=h1:9001 2=h2:9002=r3 | c");
        CHECK(hint_on_rack(w, 8, "moved", NULL)); /* another host */
        CHECK_TEXT(cw_brokers(w), "1=h1:9001 2=moved:9002 | c");
        CHECK(hint_on_rack(w, 9, "moved", "r4"));
        CHECK_TEXT(cw_brokers(w), "1=h1:9001 2=moved:9002=r4 | c");
}

/* A -> B -> A: each move has its own epoch. */
CACHE_TEST(test_a_leader_hint_may_return_to_an_earlier_leader) {
        CHECK(!cw_all(w, "t#a 0:1@5"));
        CHECK(cw_leader_hint(w, "t", 0, 2, 6, NULL));
        CHECK(cw_leader_hint(w, "t", 0, 1, 7, NULL));
        CHECK(cw_leader(w, "t", 0) == 1);
        CHECK(!cw_all(w, "t#a 0:2@8"));
        CHECK(cw_leader_hint(w, "t", 0, 1, 9, NULL));
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:1@9/r2");
        CHECK(!cw_all(w, "t#a 0:2@10"));
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:2@10");
}

CACHE_TEST(test_a_leader_hint_needs_a_partition_that_is_cached) {
        CHECK(!cw_all(w, "t#a 0:1@5; n!3; g#g 0:1@1"));
        CHECK(!cw_all(w, "t#a 0:1@5; n!3"));
        CHECK(!cw_leader_hint(w, "t", 1, 2, 6, NULL));
        CHECK(!cw_leader_hint(w, "t", -1, 2, 6, NULL));
        CHECK(!cw_leader_hint(w, "n", 0, 2, 6, NULL));
        CHECK(!cw_leader_hint(w, "g", 0, 2, 6, NULL));
        CHECK(!cw_leader_hint(w, "missing", 0, 2, 6, NULL));
        CHECK(cw_version(w) == 2);
}

CACHE_TEST(test_a_leader_hint_needs_a_node_that_is_given_or_known) {
        CHECK(!cw_all(w, "t#a 0:1@5"));
        CHECK(!cw_leader_hint(w, "t", 0, 9, 6, NULL));
        CHECK(cw_leader_hint(w, "t", 0, 9, 6, "h9"));
        CHECK_TEXT(cw_brokers(w),
                   "1=h1:9001 2=h2:9002 3=h3:9003 9=h9:9009 | c");
        CHECK_TEXT(cw_changes(w, 1),
                   "v2 broker_added(hint) 9 h9:9009; "
                   "v2 leader_changed(hint) t#a/0 1@5>9@6");
        CHECK(cw_leader_hint(w, "t", 0, 9, 7, NULL));
        CHECK(cw_leader_hint(w, "t", 0, 2, 8, "moved"));
        CHECK_TEXT(cw_brokers(w),
                   "1=h1:9001 2=moved:9002 3=h3:9003 9=h9:9009 | c");
}

CACHE_TEST(test_a_leader_hint_needs_a_possible_address) {
        static const int32_t wrong[] = {-1, 65536, INT32_MAX};
        rdmeta_leader_hint_t hint    = {.topic        = test_str("t"),
                                        .leader       = 9,
                                        .leader_epoch = 6,
                                        .host         = test_str("h9")};
        size_t i;

        CHECK(!cw_all(w, "t#a 0:1@5"));
        for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                hint.port = wrong[i];
                CHECK(rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now,
                                                     NULL) ==
                      RDMETA_ERR_ARGUMENT);
        }
        CHECK(cw_version(w) == 1);
        hint.port = 65535;
        CHECK(!rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now, NULL));
        CHECK(cw_version(w) == 2);
}

CACHE_TEST(test_a_leader_hint_must_be_of_the_same_id) {
        uint8_t id[16];
        rdmeta_leader_hint_t hint = {.topic = GEN_STR("t"), .topic_id = id,
                                     .leader = 2, .leader_epoch = 6};

        CHECK(!cw_all(w, "t#a 0:1@5"));
        memset(id, 'b', sizeof(id));
        CHECK(!rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now, NULL));
        CHECK(cw_leader(w, "t", 0) == 1);
        memset(id, 'a', sizeof(id));
        CHECK(!rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now, NULL));
        CHECK(cw_leader(w, "t", 0) == 2);
        hint.topic.data   = NULL; /* by id only */
        hint.leader_epoch = 7;
        hint.leader       = 3;
        CHECK(!rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now, NULL));
        CHECK(cw_leader(w, "t", 0) == 3);
        memset(id, 0, sizeof(id));
        CHECK(!rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now, NULL));
        hint.topic_id = NULL;
        CHECK(rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now, NULL) ==
              RDMETA_ERR_ARGUMENT);
        cw_check(w);
}

TEST_MAIN()
