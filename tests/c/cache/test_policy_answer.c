/*
 * The rows of docs/internals/policies.md about an answer as a whole: its
 * broker, its request, and the topics that it leaves out.
 *
 *     row                              test
 *     unknown request                  an_unknown_request_..., all_...
 *     no brokers in the answer         no_brokers_...
 *     top-level error                  a_top_level_error_..., error_129_...
 *     another cluster id               another_cluster_...
 *     any non-empty answer             any_answer_replaces_...
 *     controller id                    another_controller_...
 *     absent from an all-topics answer absent_...
 *     asked for, not answered          asked_for_and_not_answered_...
 *     learned after the request left   news_...
 *     hint for a topic in flight       a_topic_in_flight_..., hints_end_...
 */
#include "support/cache_fixture.h"

/* ---- the request ------------------------------------------------------- */

CACHE_TEST(test_an_unknown_request_merges_and_never_removes) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        w->broker = 2;
        CHECK(!cw_say(w, "c#c 0:1@1"));
        CHECK(!cw_say(w, ""));
        CHECK(w->applied.absent == 0);
        CHECK(cw_leader(w, "a", 0) == 1 && cw_leader(w, "b", 0) == 1);
        CHECK(!rdmeta_cache_apply(w->cache, "\0\0\0\1\0\0\0\1\0\1h\0\0\0\1\0\0"
                                           "\0\0", 19, 0, NULL, w->now, NULL));
        cw_check(w);
        CHECK(cw_leader(w, "a", 0) == 1 && cw_leader(w, "c", 0) == 1);
}

TEST(test_all_topics_must_be_stated_at_every_version) {
        cw_t w;
        int v;

        for (v = 0; v <= RDMETA_METADATA_MAX_VERSION; v++) {
                cw_init(&w, NULL);
                w.api_version = v;
                CHECK(!cw_say(&w, "a#a 0:1@1; b#b 0:1@1"));
                CHECK(!cw_asked(&w, "b", "b#b 0:1@1"));
                CHECK(w.applied.absent == 0 && cw_leader(&w, "a", 0) == 1);
                CHECK(!cw_all(&w, "b#b 0:1@1"));
                CHECK(w.applied.absent == 1);
                CHECK(cw_leader(&w, "a", 0) == RDMETA_UNKNOWN_TOPIC);
                CHECK(cw_leader(&w, "b", 0) == 1);
                cw_destroy(&w);
        }
}

/* ---- failed refreshes -------------------------------------------------- */

/* Checks that an answer fails, changes nothing, and ends only its own hints. */
static void check_failed(cw_t *w, rdmeta_err_t err, uint32_t advice) {
        char *before, *after;

        w->error = err == RDMETA_ERR_RESPONSE ? w->error : 0;
        CHECK_TEXT(cw_hint(w, "new", 0), "new");
        before = cw_dump(w);
        CHECK(cw_asked(w, "new", "a#a 0:2@9; c#c 0:1@1") == err);
        CHECK(w->applied.advice == advice);
        CHECK(w->applied.changed == 0 && w->applied.topics == 0);
        CHECK(cw_stats(w).hints == 0);
        CHECK_TEXT(cw_hint(w, "new", 0), "new");
        after = cw_dump(w);
        CHECK_TEXT(after, before);
        free(before);
        free(after);
        CHECK(cw_say(w, "") == err && cw_all(w, "") == err);
        CHECK(cw_leader(w, "a", 0) == 1 && cw_leader(w, "b", 0) == 1);
        CHECK(cw_state(w, "new") == RDMETA_WAITING); /* not theirs */
        CHECK(rdmeta_cache_purge_hints(w->cache, NULL, 0, w->now) == 1);
}

CACHE_TEST(test_no_brokers_is_a_failed_refresh) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        w->brokers = "";
        check_failed(w, RDMETA_ERR_NO_BROKERS,
               RDMETA_ADVICE_ASK_AGAIN | RDMETA_ADVICE_ASK_OTHER);
        CHECK_TEXT(cw_brokers(w), "1=h1:9001 2=h2:9002 3=h3:9003 | c");
}

CACHE_TEST(test_a_top_level_error_is_a_failed_refresh) {
        w->api_version = 13;
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        w->error = 42;
        check_failed(w, RDMETA_ERR_RESPONSE, RDMETA_ADVICE_ASK_AGAIN);
        CHECK(w->applied.error == 42);
        w->brokers = ""; /* the error comes before the lack of brokers */
        check_failed(w, RDMETA_ERR_RESPONSE, RDMETA_ADVICE_ASK_AGAIN);
}

CACHE_TEST(test_error_129_asks_for_a_rebootstrap) {
        w->api_version = 13;
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        w->error = 129;
        check_failed(w, RDMETA_ERR_RESPONSE, RDMETA_ADVICE_REBOOTSTRAP);
        CHECK(w->applied.error == 129);
}

/* ---- clusters and brokers ---------------------------------------------- */

CACHE_TEST(test_another_cluster_is_an_error) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        w->cluster_id = "d";
        check_failed(w, RDMETA_ERR_WRONG_CLUSTER, 0);
        w->cluster_id = NULL; /* v0 and v1 have no cluster id */
        CHECK(!cw_say(w, "a#a 0:2@2"));
        CHECK_TEXT(cw_brokers(w), "1=h1:9001 2=h2:9002 3=h3:9003 | c");
}

CACHE_TEST(test_another_cluster_after_a_rebootstrap_replaces_all) {
        CHECK(!cw_all(w, "a#a 0:1@9; b#b 0:1@9; k#k 0:1@9; n!3"));
        CHECK_TEXT(cw_hint(w, "flying", 0), "flying");
        w->cluster_id = "d";
        w->flags      = RDMETA_REQ_REBOOTSTRAPPED;
        w->brokers    = "7";
        CHECK(!cw_say(w, "a#a 0:7@2; z#z 0:7@1; k!3"));
        CHECK_TEXT(cw_brokers(w), "7=h7:9007 | d");
        CHECK_TEXT(cw_topic(w, "a"), "a#a 0:7@2");
        CHECK_TEXT(cw_topic(w, "z"), "z#z 0:7@1");
        CHECK(cw_state(w, "b") == RDMETA_NOT_CACHED);
        CHECK_TEXT(cw_topic(w, "k"), "k!3");
        CHECK(cw_state(w, "flying") == RDMETA_WAITING);
        CHECK_TEXT(cw_changes(w, 1),
                   "v2 cluster_changed c; "
                   "v2 broker_removed 1 h1:9001; v2 broker_removed 2 h2:9002; "
                   "v2 broker_removed 3 h3:9003; v2 broker_added 7 h7:9007; "
                   "v2 topic_added z#z; v2 leader_changed a#a/0 1@9>7@2; "
                   "v2 isr_changed a#a/0 1@9>7@2 isr 1>7; "
                   "v2 replicas_changed a#a/0 replicas 1>7; "
                   "v2 topic_error k UNKNOWN_TOPIC_OR_PARTITION; "
                   "v2 topic_removed b");
}

/* Ids and epochs of another cluster's topics keep out no answer of this one. */
CACHE_TEST(test_another_cluster_leaves_no_ids_and_epochs_behind) {
        w->api_version = 9;
        CHECK(!cw_say(w, "a 0:1@9 1:1@9; b 0:1@9 1:1@9"));
        w->cluster_id = "d";
        w->flags      = RDMETA_REQ_REBOOTSTRAPPED;
        CHECK(!cw_all(w, "a!3"));
        w->flags = 0;
        CHECK(!cw_all(w, "a 0:2@1; b 0:2@1"));
        CHECK(w->applied.kept_back == 0);
        CHECK_TEXT(cw_topic(w, "a"), "a 0:2@1");
        CHECK_TEXT(cw_topic(w, "b"), "b 0:2@1");
}

/* An error that says nothing of a topic does not keep another cluster's facts.
 */
CACHE_TEST(test_another_cluster_leaves_no_topic_whose_error_says_nothing) {
        const char *topic;

        w->api_version = 9;
        CHECK(!cw_all(w, "a 0:1@9; b 0:-1@9; c 0:1@9; n!29"));
        CHECK(!cw_say(w, "c 0:1@8"));
        CHECK_TEXT(cw_hint(w, "flying", 0), "flying");
        w->cluster_id = "d";
        w->flags      = RDMETA_REQ_REBOOTSTRAPPED;
        CHECK(!cw_say(w, "a!5; b!103; c!-1; n!5; flying!5; new!5"));
        for (topic = "abcn"; *topic; topic++)
                CHECK(cw_state(w, (char[]){*topic, '\0'}) ==
                      RDMETA_NOT_CACHED);
        CHECK_TEXT(cw_due(w), "");
        w->flags = 0;
        CHECK(cw_kept_back(w, "a 0:2@1; b 0:2@1; c 0:2@1; flying 0:2@1") == 0);
        CHECK_TEXT(cw_topic(w, "a"), "a 0:2@1");
        CHECK_TEXT(cw_topic(w, "b"), "b 0:2@1");
}

CACHE_TEST(test_any_answer_replaces_the_broker_list) {
        CHECK(!cw_all(w, "a#a 0:1@1"));
        w->brokers = "3=h3:9003=r1,1=new:9001";
        CHECK(!cw_asked(w, "a", "a#a 0:1@1"));
        CHECK(w->applied.brokers_changed == 1 && w->applied.changed == 0);
        CHECK_TEXT(cw_brokers(w), "1=new:9001 3=h3:9003=r1 | c");
        CHECK_TEXT(cw_changes(w, 1),
                   "v2 broker_changed 1 new:9001; "
                   "v2 broker_removed 2 h2:9002; "
                   "v2 broker_changed 3 h3:9003 rack=r1");
}

CACHE_TEST(test_another_controller_is_not_a_change) {
        const rdmeta_brokers_t *brokers;

        CHECK(!cw_all(w, "a#a 0:1@1"));
        w->controller = 3;
        CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK(cw_version(w) == 1 && w->applied.brokers_changed == 0);
        rdmeta_reader_enter(w->reader);
        brokers = rdmeta_brokers(w->reader);
        CHECK(rdmeta_brokers_controller(brokers) == 3);
        rdmeta_reader_leave(w->reader);
}

/* ---- absence ----------------------------------------------------------- */

CACHE_TEST(test_absent_is_negative_and_back_when_named_again) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK(w->applied.absent == 1 && w->applied.changed == 1);
        CHECK(cw_leader(w, "b", 0) == RDMETA_UNKNOWN_TOPIC);
        CHECK_TEXT(cw_walk(w, "", RDMETA_WALK_NEGATIVE), "-b ");
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK(cw_leader(w, "b", 0) == 1);
        CHECK_TEXT(cw_changes(w, 1), "v2 topic_absent b#b; v3 topic_added b#b");
}

/* Answers without b: all others, or that b is unknown. */
static void without_b(cw_t *w, int by_name) {
        CHECK(!(by_name ? cw_say(w, "b!3") : cw_all(w, "a#a 0:1@1")));
}

/* Another broker lags, or DESCRIBE was revoked and is granted again. */
TEST(test_absent_is_back_when_two_other_brokers_name_it) {
        int by_name;
        cw_t w;

        for (by_name = 0; by_name < 2; by_name++) {
                cw_init(&w, NULL);
                CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@1"));
                without_b(&w, by_name);
                w.broker = 2;
                CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@1"));
                CHECK(cw_kept_back(&w, "b#b 0:1@1") == 1);
                CHECK(cw_leader(&w, "b", 0) == RDMETA_UNKNOWN_TOPIC);
                w.broker = 3;
                CHECK(!cw_say(&w, "b#b 0:1@1")); /* both may lag */
                CHECK(cw_leader(&w, "b", 0) == RDMETA_UNKNOWN_TOPIC);
                cw_pass(&w, CW_S / 2);
                CHECK(!cw_say(&w, "b#b 0:1@1"));
                CHECK(cw_leader(&w, "b", 0) == 1);
                CHECK_TEXT(cw_changes(&w, 1),
                           "v2 topic_absent b#b; v3 topic_added b#b");
                cw_destroy(&w);
        }
}

CACHE_TEST(test_absent_twice_from_one_broker_is_still_absent) {
        int i;

        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        for (i = 0; i < 5; i++, cw_pass(w, CW_S))
                CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK(cw_version(w) == 2);
        CHECK(cw_leader(w, "b", 0) == RDMETA_UNKNOWN_TOPIC);
}

CACHE_TEST(test_absent_from_two_brokers_is_removed) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK(!cw_all(w, "a#a 0:1@1"));
        w->broker = 2;
        CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK(cw_leader(w, "b", 0) == RDMETA_NOT_CACHED);
        CHECK_TEXT(cw_topic(w, "b"), "-");
        CHECK_TEXT(cw_changes(w, 1),
                   "v2 topic_absent b#b; v3 topic_removed b#b");
}

/* The broker without a name may be the one that has a name. */
CACHE_TEST(test_absent_from_a_broker_without_a_name_is_still_absent) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1; c#c 0:1@1"));
        CHECK(!cw_all(w, "a#a 0:1@1; c#c 0:1@1"));
        w->broker = -1;
        CHECK(!cw_all(w, "a#a 0:1@1"));
        w->broker = 2;
        CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK_TEXT(cw_changes(w, 1),
                   "v2 topic_absent b#b; v3 topic_absent c#c; "
                   "v4 topic_removed b#b");
        CHECK(cw_leader(w, "c", 0) == RDMETA_UNKNOWN_TOPIC);
}

/* One broker answers that the topic is unknown, and another leaves it out. */
CACHE_TEST(test_absent_from_one_and_unknown_to_another_is_removed) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1; n!3"));
        CHECK(!cw_say(w, "b!3"));
        w->broker = 2;
        CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK(cw_leader(w, "b", 0) == RDMETA_NOT_CACHED);
        CHECK(cw_state(w, "n") == RDMETA_UNKNOWN_TOPIC); /* never seen */
        CHECK_TEXT(cw_changes(w, 1),
                   "v2 topic_absent b#b; v3 topic_removed b#b");
}

CACHE_TEST(test_absent_for_15_s_is_removed) {
        int64_t next;
        int i;

        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK(!cw_all(w, "a#a 0:1@1"));
        for (i = 0; i < 14; i++) {
                cw_pass(w, CW_S);
                without_b(w, i % 2); /* it puts nothing off */
        }
        next = cw_sweep(w);
        CHECK(cw_leader(w, "b", 0) == RDMETA_UNKNOWN_TOPIC);
        CHECK(next > w->now.mono_us && next <= w->now.mono_us + CW_S + 1);
        cw_sweep_after(w, next - w->now.mono_us);
        CHECK(cw_leader(w, "b", 0) == RDMETA_NOT_CACHED);
        CHECK_TEXT(cw_changes(w, 2), "v3 topic_removed(expiry) b#b");
        CHECK(cw_leader(w, "a", 0) == 1);
}

CACHE_TEST(test_absent_topics_keep_their_id_and_epochs) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@7"));
        CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK(cw_kept_back(w, "b#b 0:2@6") == 1);
        CHECK(cw_leader(w, "b", 0) == RDMETA_UNKNOWN_TOPIC);
        w->broker = 2;
        CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK(!cw_say(w, "b#b 0:2@6")); /* removed; the epochs are kept */
        CHECK(w->applied.kept_back == 1);
        CHECK(cw_leader(w, "b", 0) == RDMETA_NOT_CACHED);
        cw_pass(w, 16 * CW_S); /* past the grace time */
        CHECK(cw_kept_back(w, "b#b 0:2@6") == 1);
        CHECK(cw_leader(w, "b", 0) == RDMETA_NOT_CACHED);
        CHECK(!cw_say(w, "b#b 0:2@7"));
        CHECK(cw_leader(w, "b", 0) == 2);
        CHECK_TEXT(cw_changes(w, 3), "v4 topic_added b#b");
}

/* Makes a world of which b was just removed, with ids or without. */
static void world_without_b(cw_t *w, int ids, int by_name) {
        cw_init(w, NULL);
        if (!ids)
                w->api_version = 9;
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@7"));
        without_b(w, by_name);
        without_b(w, by_name); /* once more the same broker */
        CHECK(cw_version(w) == 2);
        CHECK(cw_leader(w, "b", 0) == RDMETA_UNKNOWN_TOPIC);
        w->broker = 3; /* it lags */
        CHECK(!cw_say(w, "b#b 0:1@7"));
        CHECK(w->applied.kept_back == 1 && cw_version(w) == 2);
        w->broker = 2;
        without_b(w, by_name);
        CHECK_TEXT(cw_changes(w, 1), ids ? "v2 topic_absent b#b; "
                                           "v3 topic_removed b#b"
                                         : "v2 topic_absent b; "
                                           "v3 topic_removed b");
}

/* Brokers that know of the removal and one that lags alternate. */
static void lag(int ids, int by_name) {
        cw_t w;
        int i;

        world_without_b(&w, ids, by_name);
        for (i = 0; i < 14; i++) {
                cw_pass(&w, CW_S);
                w.broker = 3;
                CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@8"));
                CHECK(w.applied.kept_back == 1);
                CHECK(cw_leader(&w, "b", 0) == RDMETA_NOT_CACHED);
                w.broker = 1 + i % 2;
                CHECK_TEXT(cw_hint(&w, "b", RDMETA_HINT_FORCE), "b");
                CHECK(!cw_say(&w, "b!3"));
                CHECK(cw_leader(&w, "b", 0) == RDMETA_UNKNOWN_TOPIC);
                CHECK(!cw_all(&w, "a#a 0:1@1"));
        }
        cw_sweep_after(&w, 2 * CW_S);
        CHECK(cw_version(&w) == 3); /* no change since the removal */
        CHECK(cw_stats(&w).retained == 1);
        cw_sweep_after(&w, 901 * CW_S);
        CHECK(cw_stats(&w).retained == 0 && cw_version(&w) == 3);
        cw_destroy(&w);
}

TEST(test_removed_once_whatever_lagging_brokers_answer) {
        int i;

        for (i = 0; i < 4; i++)
                lag(i & 1, i >> 1);
}

/* Brokers 3 to 5 lag: none of them ever lacked the topic. */
TEST(test_removed_once_though_several_brokers_lag) {
        cw_t w;
        int i;

        world_without_b(&w, 1, 0);
        for (i = 0; i < 14; i++) {
                cw_pass(&w, CW_S);
                w.broker = 3 + i % 3;
                CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@7"));
                CHECK(w.applied.kept_back == 1);
        }
        CHECK(cw_version(&w) == 3);
        w.broker = 2; /* granted again: it lacked the topic last */
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@7"));
        CHECK(cw_leader(&w, "b", 0) == 1);
        cw_destroy(&w);
}

/* DESCRIBE was revoked, and is granted again: the topic has its old id. */
TEST(test_removed_topics_are_back_when_two_brokers_give_them) {
        cw_t w;

        world_without_b(&w, 1, 0);
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@7"));
        w.broker = -1; /* it may be broker 2 */
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@7"));
        CHECK(cw_leader(&w, "b", 0) == RDMETA_NOT_CACHED);
        w.broker = 3;
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@7"));
        CHECK(cw_leader(&w, "b", 0) == 1);
        CHECK_TEXT(cw_changes(&w, 3), "v4 topic_added b#b");
        cw_destroy(&w);
}

TEST(test_removed_topics_are_back_when_the_only_broker_gives_them) {
        cw_t w;

        world_without_b(&w, 1, 0);
        w.candidates = 1;
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@7"));
        CHECK(cw_leader(&w, "b", 0) == 1);
        cw_destroy(&w);
}

CACHE_TEST(test_removed_at_once_if_the_only_broker_says_unknown) {
        w->brokers = "1";
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@7"));
        CHECK(!cw_say(w, "b!3"));
        CHECK(cw_leader(w, "b", 0) == RDMETA_UNKNOWN_TOPIC);
        CHECK(!cw_say(w, "b!3"));
        CHECK_TEXT(cw_changes(w, 1), "v2 topic_removed b#b");
        CHECK(!cw_say(w, "b#c 0:1@0")); /* made again */
        CHECK_TEXT(cw_changes(w, 2), "v3 topic_added b#c");
}

CACHE_TEST(test_removed_by_a_sweep_has_its_grace_too) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@7"));
        CHECK(!cw_all(w, "a#a 0:1@1"));
        cw_sweep_after(w, 16 * CW_S);
        cw_pass(w, 15 * CW_S);
        CHECK(cw_kept_back(w, "b#b 0:1@7") == 1);
        CHECK(!cw_say(w, "b#c 0:1@0")); /* made again: another id */
        CHECK(cw_leader(w, "b", 0) == 1);
}

/* Broker 1 alone lacked it, until the grace time was over. */
TEST(test_removed_by_a_sweep_is_back_when_two_others_give_it) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@7"));
        CHECK(!cw_all(&w, "a#a 0:1@1"));
        cw_pass(&w, 16 * CW_S);
        cw_sweep(&w);
        w.broker = 2;
        CHECK(!cw_say(&w, "b#b 0:1@7"));
        CHECK(w.applied.kept_back == 1);
        w.broker = 3;
        CHECK(!cw_say(&w, "b#b 0:1@7"));
        CHECK(cw_leader(&w, "b", 0) == 1);
        cw_destroy(&w);
}

/* Broker 1 lagged, and broker 2 gives the topic again and again. */
CACHE_TEST(test_absent_is_back_after_its_grace_if_a_broker_gave_it) {
        int i;

        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@7"));
        CHECK(!cw_say(w, "b!3"));
        w->broker = 2;
        for (i = 0; i < 15; i++) {
                cw_pass(w, CW_S);
                CHECK(!cw_say(w, "b#b 0:1@7"));
                CHECK(cw_leader(w, "b", 0) == RDMETA_UNKNOWN_TOPIC);
        }
        cw_sweep_after(w, CW_S);
        CHECK(!cw_say(w, "b#b 0:1@7"));
        CHECK(cw_leader(w, "b", 0) == 1);
        CHECK_TEXT(cw_changes(w, 1), "v2 topic_absent b#b; v3 topic_added b#b");
}

/* The broker that gave it is silent from then on. */
CACHE_TEST(test_absent_is_removed_although_a_broker_gave_it) {
        int i;

        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@7"));
        CHECK(!cw_all(w, "a#a 0:1@1"));
        w->broker = 2;
        CHECK(!cw_say(w, "b#b 0:1@7"));
        for (i = 0; i < 2; i++) {
                CHECK(cw_version(w) == 2);
                cw_sweep_after(w, 16 * CW_S);
        }
        CHECK_TEXT(cw_changes(w, 2), "v3 topic_removed(expiry) b#b");
}

static void short_age(rdmeta_conf_t *conf) {
        conf->max_age_us = 2 * CW_S;
}

CACHE_TEST_WITH(test_removed_has_its_grace_whatever_max_age_is, short_age) {
        int i;

        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@7"));
        for (i = 0; i < 15; i++, cw_pass(w, CW_S)) {
                w->broker = 1 + i % 2;
                CHECK(!cw_all(w, "a#a 0:1@1"));
                cw_sweep(w);
                w->broker = 3;
                CHECK(!cw_say(w, "b#b 0:1@7"));
        }
        CHECK_TEXT(cw_changes(w, 1),
                   "v2 topic_absent b#b; v3 topic_removed b#b");
}

CACHE_TEST(test_absent_topics_keep_them_for_max_age_once_removed) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@7"));
        CHECK(!cw_all(w, "a#a 0:1@1"));
        cw_sweep_after(w, 16 * CW_S);
        CHECK(cw_stats(w).retained == 1);
        cw_pass(w, CW_S); /* the next sweep forgets nothing */
        cw_sweep(w);
        CHECK(cw_stats(w).retained == 1);
        CHECK(cw_kept_back(w, "b#b 0:2@6") == 1);
        cw_sweep_after(w, 898 * CW_S);
        CHECK(cw_stats(w).retained == 1);
        cw_sweep_after(w, 2 * CW_S);
        CHECK(cw_stats(w).retained == 0);
}

/* Removes b by a second broker's absence, or by a sweep. Returns the state of b
 * after an answer that is lower in one of its partitions. */
static int state_after_removal(int by_sweep) {
        cw_t w;
        int state;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@7 1:1@7"));
        CHECK(!cw_all(&w, "a#a 0:1@1"));
        cw_pass(&w, 16 * CW_S);
        w.broker = 2;
        if (by_sweep)
                cw_sweep(&w);
        else
                CHECK(!cw_all(&w, "a#a 0:1@1"));
        CHECK(cw_stats(&w).retained == 1);
        cw_pass(&w, 16 * CW_S);
        CHECK(cw_kept_back(&w, "b#b 0:2@6 1:2@7") == 1);
        state = (int)cw_state(&w, "b");
        cw_destroy(&w);
        return state;
}

TEST(test_absent_topics_read_the_same_however_they_went) {
        CHECK(state_after_removal(0) == state_after_removal(1));
}

CACHE_TEST(test_asked_for_and_not_answered_is_not_absent) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK_TEXT(cw_hint(w, "n a", RDMETA_HINT_FORCE), "n a");
        CHECK(!cw_asked(w, "a b n", "b#b 0:1@1"));
        CHECK(w->applied.absent == 0 && cw_version(w) == 1);
        CHECK(cw_leader(w, "a", 0) == 1);
        CHECK(cw_leader(w, "n", 0) == RDMETA_NOT_CACHED); /* not waiting */
        CHECK(cw_stats(w).hints == 0);
}

/* ---- news -------------------------------------------------------------- */

CACHE_TEST(test_news_is_not_removed_by_an_answer_asked_before) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        cw_sent(w);
        CHECK(!cw_say(w, "n#n 0:1@1; b#b 0:2@2"));
        CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK(w->applied.absent == 0);
        CHECK(cw_leader(w, "n", 0) == 1 && cw_leader(w, "b", 0) == 2);
        cw_sent(w); /* the next request leaves after that */
        CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK(w->applied.absent == 2);
        CHECK(cw_leader(w, "n", 0) == RDMETA_UNKNOWN_TOPIC);
}

CACHE_TEST(test_news_is_not_denied_by_an_answer_asked_before) {
        CHECK(!cw_all(w, "a#a 0:1@1; b#b 0:1@1"));
        cw_sent(w);
        CHECK(!cw_say(w, "n#n 0:1@1; m#m 0:1@1"));
        CHECK(!cw_asked(w, "n m", "n!3; m!29"));
        CHECK(cw_leader(w, "n", 0) == 1 && cw_leader(w, "m", 0) == 1);
        CHECK(!cw_asked(w, "b", "b!3")); /* b is not news */
        CHECK(cw_leader(w, "b", 0) == RDMETA_UNKNOWN_TOPIC);
}

/* Version 0 of a new cache counts as a version if the request has it. */
CACHE_TEST(test_news_of_a_new_cache_is_kept_from_its_first_requests) {
        cw_sent(w);
        CHECK(w->sent_version == 0);
        CHECK(!cw_say(w, "a#a 0:1@1; b#b 0:1@1; c#c 0:1@1"));
        CHECK(!cw_all(w, "c#c 0:1@1"));
        CHECK(w->applied.absent == 0);
        CHECK(!cw_asked(w, "a b", "a!3; b!29"));
        CHECK(cw_leader(w, "a", 0) == 1 && cw_leader(w, "b", 0) == 1);
        w->sent_known = 0; /* as in a struct of zeros */
        CHECK(!cw_all(w, "c#c 0:1@1; a!3"));
        CHECK(w->applied.absent == 1);
        CHECK(cw_leader(w, "a", 0) == RDMETA_UNKNOWN_TOPIC);
        CHECK(cw_leader(w, "b", 0) == RDMETA_UNKNOWN_TOPIC);
}

/* News keeps its own deadline: the older answer does not count for it. */
CACHE_TEST(test_news_keeps_its_deadline_after_an_answer_asked_before) {
        int64_t deadline;

        CHECK(!cw_all(w, "a#a 0:1@1"));
        cw_sent(w);
        CHECK(!cw_all(w, "a#a 0:1@1; n#n 0:1@1"));
        deadline = cw_info(w, "n").deadline_us;
        cw_pass(w, CW_S);
        CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK(cw_info(w, "n").deadline_us == deadline);
        CHECK(cw_info(w, "a").deadline_us == deadline + CW_S);
        CHECK(cw_info(w, "n").source_broker == 1);
}

/* ---- in flight --------------------------------------------------------- */

CACHE_TEST(test_a_topic_in_flight_is_not_asked_for_again) {
        CHECK(!cw_all(w, "a#a 0:1@1"));
        CHECK_TEXT(cw_hint(w, "n a m n", 0), "n m");
        CHECK_TEXT(cw_hint(w, "n o", 0), "o");
        CHECK(cw_leader(w, "n", 0) == RDMETA_WAITING);
        CHECK_TEXT(cw_hint(w, "n a", RDMETA_HINT_REPLACE), "n");
        CHECK_TEXT(cw_hint(w, "n a", RDMETA_HINT_FORCE), "a");
        CHECK(cw_leader(w, "a", 0) == 1); /* never overwritten by a hint */
        CHECK(cw_version(w) == 1);
}

CACHE_TEST(test_hints_end_with_the_answer) {
        CHECK_TEXT(cw_hint(w, "a b c", 0), "a b c");
        CHECK(!cw_asked(w, "a b", "a#a 0:1@1"));
        CHECK(cw_leader(w, "a", 0) == 1);
        CHECK(cw_leader(w, "b", 0) == RDMETA_NOT_CACHED);
        CHECK(cw_leader(w, "c", 0) == RDMETA_WAITING);
        CHECK(!cw_say(w, "c#c 0:1@1")); /* asked or not */
        CHECK(cw_leader(w, "c", 0) == 1 && cw_stats(w).hints == 0);
}

CACHE_TEST(test_hints_end_with_a_failure) {
        const rdmeta_str_t names[] = {{"a", 1}, {"zz", 2}};
        rdmeta_request_t asked;

        asked       = cw_request(w, RDMETA_ASKED_NAMES);
        asked.names = names;
        asked.n     = 2;
        CHECK_TEXT(cw_hint(w, "a b c", 0), "a b c");
        CHECK(!rdmeta_cache_apply_failure(w->cache, &asked, w->now));
        cw_check(w);
        CHECK(cw_leader(w, "a", 0) == RDMETA_NOT_CACHED);
        CHECK(cw_leader(w, "b", 0) == RDMETA_WAITING);
        CHECK(!rdmeta_cache_apply_failure(w->cache, NULL, w->now));
        cw_check(w);
        CHECK(cw_stats(w).hints == 0 && cw_version(w) == 0);
}

CACHE_TEST(test_hints_end_only_with_a_request_that_left_after_them) {
        rdmeta_request_t asked;

        CHECK(!cw_all(w, "v#v 0:1@1; m#m 0:1@1"));
        CHECK_TEXT(cw_hint(w, "a", 0), "a");
        asked = cw_request(w, RDMETA_ASKED_ALL);
        rdmeta_cache_request_sent(w->cache, &asked);
        CHECK(asked.sent_version == 1);
        CHECK_TEXT(cw_hint(w, "b v m", RDMETA_HINT_FORCE), "b v m");
        CHECK(!cw_answer(w, &asked, "v#v 0:2@2"));
        CHECK(cw_state(w, "a") == RDMETA_NOT_CACHED);
        CHECK(cw_state(w, "b") == RDMETA_WAITING);
        CHECK(cw_leader(w, "v", 0) == 2);
        CHECK(cw_state(w, "m") == RDMETA_UNKNOWN_TOPIC);
        CHECK(cw_stats(w).hints == 3);
        CHECK_TEXT(cw_hint(w, "b v m", RDMETA_HINT_FORCE), "");
        rdmeta_cache_request_sent(w->cache, &asked);
        CHECK(!cw_answer(w, &asked, "v#v 0:2@2"));
        CHECK(cw_state(w, "b") == RDMETA_NOT_CACHED);
        CHECK(cw_stats(w).hints == 0);
}

/* One name, two requests: the older request does not end the later hint. */
CACHE_TEST(test_hints_end_only_with_their_own_request) {
        const rdmeta_str_t name = {"a", 1};
        rdmeta_request_t first, second;

        first       = cw_request(w, RDMETA_ASKED_NAMES);
        first.names = &name;
        first.n     = 1;
        second      = first;
        CHECK_TEXT(cw_hint(w, "a", 0), "a");
        rdmeta_cache_request_sent(w->cache, &first);
        CHECK_TEXT(cw_hint(w, "a", RDMETA_HINT_REPLACE), "a");
        rdmeta_cache_request_sent(w->cache, &second);
        CHECK(!rdmeta_cache_apply_failure(w->cache, &first, w->now));
        CHECK(cw_state(w, "a") == RDMETA_WAITING);
        CHECK(!cw_answer(w, &first, "a!5")); /* changes nothing */
        CHECK(cw_state(w, "a") == RDMETA_WAITING);
        CHECK(!rdmeta_cache_apply_failure(w->cache, &second, w->now));
        CHECK(cw_state(w, "a") == RDMETA_NOT_CACHED);
}

CACHE_TEST(test_hints_end_with_no_other_requests_failure) {
        rdmeta_request_t all;

        CHECK_TEXT(cw_hint(w, "a", 0), "a");
        all = cw_request(w, RDMETA_ASKED_ALL);
        CHECK(!rdmeta_cache_apply_failure(w->cache, &all, w->now));
        w->brokers = "";
        CHECK(cw_all(w, "") == RDMETA_ERR_NO_BROKERS);
        CHECK(cw_state(w, "a") == RDMETA_WAITING);
        CHECK(!rdmeta_cache_apply_failure(w->cache, NULL, w->now));
        CHECK(cw_state(w, "a") == RDMETA_NOT_CACHED);
}

TEST_MAIN()
