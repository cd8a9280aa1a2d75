/*
 * merge: the rows of docs/internals/policies.md about epochs, leaders, ids and
 * shorter lists of one topic, and about malformed ones. test_merge_rewind.c,
 * test_policy_answer.c and test_policy_error.c have the others.
 *
 *     row                                   test
 *     epoch higher                          a_higher_epoch_is_taken
 *     epoch equal                           an_equal_epoch_is_taken
 *     epoch lower, same id                  a_lower_epoch_..., and all of
 *                                           test_merge_rewind.c
 *     epoch -1, or Metadata < v9            an_unknown_epoch_..., before_v9...
 *     leader -1 at an epoch >= ours         no_leader_...
 *     leader not among the brokers          a_leader_not_among_the_brokers_...
 *     id changed, both known                another_id_...
 *     id already superseded                 an_id_already_superseded_...
 *     known id, zero id in the answer       a_zero_id_...
 *     no id known, an id in the answer      an_id_where_none_was_...
 *     REPLICA_NOT_AVAILABLE                 replica_not_available_...
 *     authorized operations not asked for   operations_not_asked_for_...
 *     fewer partitions                      a_shorter_list_...
 */
#include "support/cache_fixture.h"

CACHE_TEST(test_a_higher_epoch_is_taken) {
        CHECK(!cw_say(w, "t#a 0:1@5 1:1@5"));
        CHECK(!cw_say(w, "t#a 0:2@6/r2,3 1:1@5"));
        CHECK(w->applied.changed == 1 && w->applied.kept_back == 0);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:2@6/r2,3 1:1@5");
        CHECK_TEXT(cw_changes(w, 1),
                   "v2 leader_changed t#a/0 1@5>2@6; "
                   "v2 isr_changed t#a/0 1@5>2@6 isr 1>2,3; "
                   "v2 replicas_changed t#a/0 replicas 1>2,3");
}

/* The ISR changes within an epoch, so answers of one epoch may differ. */
CACHE_TEST(test_an_equal_epoch_is_taken) {
        CHECK(!cw_say(w, "t#a 0:1@5/r1,2,3"));
        CHECK(!cw_say(w, "t#a 0:1@5/r1,2,3/i1,2"));
        CHECK(w->applied.changed == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:1@5/r1,2,3/i1,2");
        CHECK(!cw_say(w, "t#a 0:2@5/r1,2,3/i1,2"));
        CHECK(cw_leader(w, "t", 0) == 2);
}

CACHE_TEST(test_a_lower_epoch_is_kept_out_and_another_broker_asked) {
        int64_t deadline;

        CHECK(!cw_say(w, "t#a 0:1@5/r1,2"));
        deadline = cw_info(w, "t").deadline_us;
        cw_pass(w, CW_S);
        w->broker = 2;
        CHECK(!cw_say(w, "t#a 0:3@4/r3/e9"));
        CHECK(w->applied.kept_back == 1 && w->applied.changed == 0);
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_OTHER);
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN);
        CHECK(cw_version(w) == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:1@5/r1,2");
        CHECK(cw_info(w, "t").deadline_us == deadline);
        CHECK(cw_info(w, "t").source_broker == 1);
}

/* Each row goes by its own epoch: a broker may be behind in only one. */
CACHE_TEST(test_a_lower_epoch_holds_back_its_own_partition_only) {
        CHECK(!cw_say(w, "t#a 0:1@5/r1,2/i1 1:1@5/r1,3 2:2@9"));
        CHECK(!cw_say(w, "t#a 0:3@4/r3,2 1:3@6/r3,1 2:2@9 3:1@0"));
        CHECK(w->applied.kept_back == 1 && w->applied.changed == 1);
        CHECK_TEXT(cw_topic(w, "t"),
                   "t#a 0:1@5/r1,2/i1 1:3@6/r3,1 2:2@9 3:1@0");
}

/* ---- unknown epochs ---------------------------------------------------- */

CACHE_TEST(test_an_unknown_epoch_is_taken_and_the_highest_kept) {
        CHECK(!cw_say(w, "t#a 0:1@5 1:1@5"));
        CHECK(cw_kept_back(w, "t#a 0:2 1:1@5") == 0);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:2 1:1@5");
        CHECK(cw_kept_back(w, "t#a 0:3@4 1:1@5") == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:2 1:1@5");
        CHECK(!cw_say(w, "t#a 0:3@5 1:1@5"));
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:3@5 1:1@5");
}

CACHE_TEST(test_before_v9_epochs_are_not_to_be_relied_on) {
        CHECK(!cw_say(w, "t#a 0:1@20"));
        w->api_version = 8;
        CHECK(!cw_say(w, "t 0:2@7"));
        CHECK(w->applied.kept_back == 0 && w->applied.changed == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:2");
        w->api_version = 12;
        CHECK(cw_kept_back(w, "t#a 0:3@19") == 1);
        CHECK(cw_leader(w, "t", 0) == 2);
        CHECK(!cw_say(w, "t#a 0:3@20"));
        CHECK(cw_leader(w, "t", 0) == 3);
        w->api_version = 8; /* such epochs are not stored either */
        CHECK(!cw_say(w, "u 0:2@7"));
        CHECK_TEXT(cw_topic(w, "u"), "u 0:2");
        w->api_version = 12;
        CHECK(!cw_say(w, "u#u 0:3@4"));
        CHECK_TEXT(cw_topic(w, "u"), "u#u 0:3@4");
}

/* The request left before the leader changed, so its answer has the old one. */
CACHE_TEST(test_an_unknown_epoch_in_an_outdated_answer_is_not_taken) {
        w->api_version = 8;
        CHECK(!cw_say(w, "t 0:1 1:1"));
        cw_sent(w);
        CHECK(!cw_say(w, "t 0:2/r1,2 1:1"));
        CHECK(cw_kept_back(w, "t 0:1 1:1 2:3") == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t 0:2/r1,2 1:1 2:3");
        w->api_version = 12;
        CHECK(!cw_say(w, "t 0:1"));
        CHECK_TEXT(cw_topic(w, "t"), "t 0:2/r1,2 1:1 2:3");
        cw_sent(w); /* the next request leaves after the change */
        w->api_version = 8;
        CHECK(cw_kept_back(w, "t 0:1 1:1 2:3") == 0);
        CHECK_TEXT(cw_topic(w, "t"), "t 0:1 1:1 2:3");
}

CACHE_TEST(test_an_unknown_epoch_with_what_is_known_is_not_kept_back) {
        w->api_version = 12;
        CHECK(!cw_say(w, "t 0:1/r1,2"));
        cw_sent(w);
        CHECK(!cw_say(w, "t 0:2/r1,2"));
        CHECK(!cw_say(w, "t 0:2/r1,2")); /* the same bytes */
        CHECK(w->applied.kept_back == 0);
        w->api_version = 8; /* the same facts in other bytes */
        CHECK(cw_kept_back(w, "t 0:2/r1,2") == 0);
        CHECK(cw_kept_back(w, "t 0:2/r1,3") == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t 0:2/r1,2");
}

/* In a rolling upgrade brokers of two versions answer in turn. */
CACHE_TEST(test_a_roll_of_mixed_versions_goes_on_being_followed) {
        char text[64];
        int i;

        for (i = 0; i < 40; i++) {
                w->api_version = i % 2 ? 8 : 12;
                snprintf(text, sizeof(text), "t#a 0:%d@%d", 1 + i % 3, i);
                CHECK(!cw_say(w, text));
                CHECK(w->applied.kept_back == 0);
                CHECK(cw_leader(w, "t", 0) == 1 + i % 3);
        }
}

/* ---- leaders ----------------------------------------------------------- */

CACHE_TEST(test_no_leader_is_returned_and_the_last_one_readable) {
        CHECK(!cw_say(w, "t#a 0:2@5/r2,3 1:1@5"));
        CHECK(!cw_say(w, "t#a 0:-1@6/r2,3/i3/o2/e5 1:1@5"));
        CHECK(w->applied.leaderless == 1 && w->applied.listener_not_found == 0);
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN);
        CHECK(cw_leader(w, "t", 0) == RDMETA_NO_LEADER);
        CHECK(cw_leader_stale(w, "t", 0) == 2);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:-1@6/r2,3/i3/o2/e5/l2 1:1@5");
        /* After a second such answer the last leader is still the same. */
        CHECK(!cw_say(w, "t#a 0:-1@7/r2,3/i3/o2/e5 1:1@5"));
        CHECK(w->applied.leaderless == 1);
        CHECK(cw_leader_stale(w, "t", 0) == 2);
        CHECK(!cw_say(w, "t#a 0:3@8/r2,3 1:1@5"));
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:3@8/r2,3 1:1@5");
}

CACHE_TEST(test_no_leader_at_a_lower_epoch_is_kept_out) {
        CHECK(!cw_say(w, "t#a 0:2@5"));
        CHECK(!cw_say(w, "t#a 0:-1@4/r2/e5"));
        CHECK(w->applied.kept_back == 1 && w->applied.leaderless == 0);
        CHECK(cw_leader(w, "t", 0) == 2);
}

CACHE_TEST(test_no_leader_for_want_of_a_listener_is_counted_each_time) {
        int i;

        for (i = 0; i < 3; i++) {
                CHECK(!cw_all(w, "t#a 0:-1@6/r2/e72 1:-1@6/r2/e5 2:1@6"));
                CHECK(w->applied.leaderless == 2);
                CHECK(w->applied.listener_not_found == 1);
                CHECK(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN);
        }
        CHECK(cw_version(w) == 1); /* the same answer changes nothing */
}

static int unreachable(const cw_t *w, int32_t partition) {
        rdmeta_partition_t p;

        memset(&p, 0, sizeof(p));
        CHECK(!rdmeta_partition(w->reader, "t", 1, partition, w->now.mono_us,
                                &p));
        return p.unreachable;
}

CACHE_TEST(test_a_leader_not_among_the_brokers_is_returned) {
        int i;

        for (i = 0; i < 2; i++) { /* each time, not only the first time */
                CHECK(!cw_all(w, "t#a 0:1@5 1:7@5"));
                CHECK(cw_leader(w, "t", 1) == 7);
                CHECK(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN);
                CHECK(w->applied.leaderless == 0);
                CHECK(w->applied.unreachable == 1);
                CHECK(!unreachable(w, 0) && unreachable(w, 1));
        }
        w->brokers = "1,2,3,7";
        CHECK(!cw_all(w, "t#a 0:1@5 1:7@5"));
        CHECK(w->applied.unreachable == 0 && !unreachable(w, 1));
        CHECK(!(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN));
}

/* The topic's bytes are the same, but its leader is no longer a broker. */
CACHE_TEST(test_a_leader_not_among_the_brokers_any_more_is_noticed) {
        CHECK(!cw_all(w, "t#a 0:1@5; u#b 0:3@1"));
        CHECK(!w->applied.advice);
        w->brokers = "1,2";
        CHECK(!cw_all(w, "t#a 0:1@5; u#b 0:3@1"));
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN);
        CHECK(!cw_all(w, "t#a 0:1@5; u#b 0:3@1"));
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN);
        w->brokers = "1,2,3";
        CHECK(!cw_all(w, "t#a 0:1@5; u#b 0:3@1"));
        CHECK(!w->applied.advice);
        w->brokers = "1,2"; /* an answer about another topic has this */
        CHECK(!cw_say(w, "t#a 0:1@5"));
        CHECK(!w->applied.advice);
        CHECK(!cw_all(w, "t#a 0:1@5; u#b 0:3@1"));
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN);
}

CACHE_TEST(test_replica_not_available_does_not_void_leader_or_epoch) {
        CHECK(!cw_say(w, "t#a 0:1@5/r1,2"));
        CHECK(!cw_say(w, "t#a 0:2@6/r1,2/e9"));
        CHECK(w->applied.kept_back == 0 && w->applied.advice == 0);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:2@6/r1,2/e9");
        CHECK(cw_kept_back(w, "t#a 0:1@5/r1,2") == 1);
        CHECK(cw_leader(w, "t", 0) == 2);
}

/* ---- ids --------------------------------------------------------------- */

CACHE_TEST(test_another_id_replaces_the_topic_whatever_its_epochs) {
        CHECK(!cw_say(w, "t#a^7 0:1@50/e9 1:1@50 2:-1@9/r1/e5"));
        CHECK(!cw_say(w, "t#b 0:2@0"));
        CHECK(w->applied.kept_back == 0 && w->applied.changed == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#b 0:2@0");
        CHECK(cw_state_id(w, 'b') == 0);
        CHECK(cw_state_id(w, 'a') == RDMETA_NOT_CACHED);
        CHECK_TEXT(cw_changes(w, 1), "v2 topic_recreated t#b");
}

CACHE_TEST(test_an_id_already_superseded_is_kept_out) {
        CHECK(!cw_say(w, "t#a 0:1@50"));
        CHECK(!cw_say(w, "t#b 0:2@0"));
        CHECK(!cw_say(w, "t#c 0:3@0"));
        CHECK(!cw_say(w, "t#a 0:1@51"));
        CHECK(w->applied.kept_back == 1 && w->applied.changed == 0);
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_OTHER);
        CHECK(cw_kept_back(w, "t#b 0:2@1") == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#c 0:3@0");
}

/* As in Java, an id where none was known is another topic's. */
CACHE_TEST(test_an_id_where_none_was_is_taken_with_lower_epochs) {
        w->api_version = 9;
        CHECK(!cw_say(w, "t 0:1@5 1:1@5; u 0:1@5 1:1@5; v 0:1@5; "
                      "x 0:1@5 1:-1@6/r1/e5"));
        w->api_version = 12;
        CHECK(!cw_say(w, "t#t 0:2@0 1:2@9; u#u 0:2@5; v#v 0:1@5; "
                      "x#x 0:2@5 1:-1@6/r1/e5"));
        CHECK(w->applied.kept_back == 0 && w->applied.changed == 4);
        CHECK_TEXT(cw_topic(w, "t"), "t#t 0:2@0 1:2@9");
        CHECK_TEXT(cw_topic(w, "u"), "u#u 0:2@5");
        CHECK_TEXT(cw_topic(w, "v"), "v#v 0:1@5");
        CHECK_TEXT(cw_topic(w, "x"), "x#x 0:2@5 1:-1@6/r1/e5");
        CHECK(cw_state_id(w, 't') == 0 && cw_state_id(w, 'u') == 0);
        CHECK(!strstr(cw_changes(w, 1), "recreated v"));
        CHECK(!strstr(cw_changes(w, 1), "recreated x"));
        CHECK(strstr(cw_changes(w, 1), "v2 topic_recreated t#t"));
        CHECK(strstr(cw_changes(w, 1), "v2 topic_recreated u#u"));
        CHECK(!cw_say(w, "t#t 0:1@1 1:2@8")); /* a lower epoch now */
        CHECK(w->applied.kept_back == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#t 0:1@1 1:2@9");
}

CACHE_TEST(test_an_id_where_none_was_is_not_taken_from_an_outdated) {
        w->api_version = 9;
        CHECK(!cw_say(w, "t 0:1@5; u 0:1@5"));
        cw_sent(w);
        CHECK(!cw_say(w, "t 0:2@6; u 0:2@6"));
        w->api_version = 12;
        CHECK(cw_kept_back(w, "t#t 0:1@5; u#u 0:2@6") == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t 0:2@6");
        CHECK_TEXT(cw_topic(w, "u"), "u#u 0:2@6");
}

CACHE_TEST(test_a_zero_id_is_the_same_topic_and_epochs_compare) {
        CHECK(!cw_say(w, "t#a 0:1@5"));
        CHECK(cw_kept_back(w, "t 0:2@4") == 1);
        CHECK(!cw_say(w, "t 0:2@6"));
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:2@6");
        CHECK(cw_state_id(w, 'a') == 0);
        w->api_version = 9; /* no ids yet */
        CHECK(!cw_say(w, "t 0:3@7"));
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:3@7");
        w->api_version = 12; /* an id that is learned later */
        CHECK(!cw_say(w, "u 0:1@1"));
        CHECK(!cw_say(w, "u#u 0:1@1"));
        CHECK(w->applied.changed == 1 && cw_state_id(w, 'u') == 0);
}

CACHE_TEST(test_operations_not_asked_for_overwrite_nothing) {
        CHECK(!cw_say(w, "t#a^264 0:1@5"));
        CHECK(!cw_say(w, "t#a 0:1@5"));
        CHECK(w->applied.changed == 0 && w->applied.unchanged == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#a^264 0:1@5");
        CHECK(!cw_say(w, "t#a^0 0:1@5"));
        CHECK_TEXT(cw_topic(w, "t"), "t#a^0 0:1@5");
        w->api_version = 7;
        CHECK(!cw_say(w, "t 0:1"));
        CHECK(cw_info(w, "t").operations == 0);
}

/* ---- past ids ----------------------------------------------------------- */

/* A topic that is recreated again and again does not grow for ever. */
CACHE_TEST(test_the_last_four_ids_are_remembered) {
        static const char ids[] = "abcdefghijklmnop";
        char text[32];
        int i, k;

        for (i = 0; ids[i]; i++) {
                snprintf(text, sizeof(text), "t#%c 0:1@%d", ids[i], 20 - i);
                CHECK(!cw_say(w, text) && w->applied.changed == 1);
                for (k = i - 1; k >= 0 && k >= i - RDMETA_PAST_MAX; k--) {
                        snprintf(text, sizeof(text), "t#%c 0:2@90", ids[k]);
                        CHECK(!cw_say(w, text) && w->applied.kept_back == 1);
                }
        }
        snprintf(text, sizeof(text), "t#%c 0:3@0",
                 ids[i - 2 - RDMETA_PAST_MAX]);
        CHECK(!cw_say(w, text)); /* an older one counts as new */
        CHECK_TEXT(cw_topic(w, "t"), text);
}

/* A topic keeps its past ids when its facts are replaced. */
CACHE_TEST(test_an_id_already_superseded_stays_so_whatever_changes) {
        CHECK(!cw_say(w, "t#a 0:1@50"));
        CHECK(!cw_say(w, "t#b 0:2@0"));
        CHECK(!cw_say(w, "t#b 0:3@1") && w->applied.changed == 1);
        CHECK(!cw_say(w, "t#a 0:1@51") && w->applied.kept_back == 1);
        CHECK(!cw_asked(w, "t", "t!3"));
        CHECK(!cw_say(w, "t 0:1@2") && w->applied.changed == 1);
        CHECK(!cw_say(w, "t#a 0:1@51") && w->applied.kept_back == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#b 0:1@2");
}

/* ---- partitions -------------------------------------------------------- */

/* Rows in the answer go by their epochs; rows that it leaves out stay. */
CACHE_TEST(test_a_shorter_list_keeps_only_what_it_leaves_out) {
        int64_t deadline;

        CHECK(!cw_say(w, "t#a 0:1@5 1:1@5 2:-1@5/r1,2/o2/e5 4:3@9/r3,1/i3"));
        deadline = cw_info(w, "t").deadline_us;
        cw_pass(w, CW_S);
        CHECK(!cw_say(w, "t#a 0:2@6 1:2@4 3:1@0"));
        CHECK(w->applied.kept_back == 1 && w->applied.changed == 1);
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_AGAIN);
        CHECK(w->applied.advice & RDMETA_ADVICE_ASK_OTHER);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:2@6 1:1@5 2:-1@5/r1,2/o2/e5 "
                                      "3:1@0 4:3@9/r3,1/i3");
        CHECK(cw_info(w, "t").deadline_us == deadline + CW_S);
        cw_pass(w, CW_S);
        CHECK(!cw_say(w, "t#a 2:1@4 4:1@8")); /* both are lower */
        CHECK(w->applied.kept_back == 1 && w->applied.changed == 0);
        CHECK(cw_info(w, "t").deadline_us == deadline + CW_S);
        CHECK(!cw_say(w, "t#a")); /* no partitions */
        CHECK(w->applied.kept_back == 1 && w->applied.changed == 0);
        w->api_version = 8; /* rows without epochs are taken */
        CHECK(!cw_say(w, "t 1:3"));
        CHECK(w->applied.kept_back == 1 && w->applied.changed == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:2@6 1:3 2:-1@5/r1,2/o2/e5 "
                                      "3:1@0 4:3@9/r3,1/i3");
        w->api_version = 12;
        CHECK(!cw_say(w, "t#a 1:1@4 3:1@0 4:3@9/r3,1/i3"));
        CHECK(w->applied.kept_back == 1); /* 1 still has its highest epoch */
        CHECK(cw_leader(w, "t", 1) == 3);
}

/* Clusters are restored from copies, with topics and their ids. */
CACHE_TEST(test_a_shorter_list_of_the_same_id_is_believed_in_the_end) {
        CHECK(!cw_say(w, "t#a 0:1@5 1:1@5 2:1@5"));
        cw_insist(w, "t#a 0:2@6 1:1@5");
        CHECK(w->applied.kept_back == 0);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:2@6 1:1@5");
        CHECK(cw_leader(w, "t", 2) == RDMETA_NO_PARTITION);
        CHECK_TEXT(cw_changes(w, 2), "v3 topic_recreated t#a");
        cw_insist(w, "t#a"); /* no partitions */
        CHECK_TEXT(cw_topic(w, "t"), "t#a");
}

CACHE_TEST(test_a_shorter_list_of_one_broker_is_believed_once_stale) {
        int i;

        w->api_version = 9;
        CHECK(!cw_say(w, "t 0:1@5 1:1@5 2:1@5"));
        for (i = 0; i < 90; i++, cw_pass(w, 10 * CW_S)) {
                w->broker = i % 3 ? -1 : 0;
                CHECK(cw_kept_back(w, "t 0:2@1 1:1@1") == 1);
                CHECK(cw_leader_stale(w, "t", 2) == 1);
        }
        CHECK(!cw_say(w, "t 0:2@1 1:1@1"));
        CHECK_TEXT(cw_topic(w, "t"), "t 0:2@1 1:1@1");
}

/* Rows that are left out count row by row, too. */
CACHE_TEST(test_a_shorter_list_is_believed_where_every_answer_is) {
        int i;

        w->brokers = "1";
        CHECK(!cw_say(w, "t#a 0:1@5 1:1@5 2:1@5 3:1@5 4:1@5"));
        for (i = 0; i < 5; i++, cw_pass(w, 2 * CW_S))
                CHECK(!cw_say(w, i % 2 ? "t#a 0:1@5 2:1@5 4:2@4"
                                        : "t#a 0:1@5 1:1@5 3:1@5"));
        CHECK(w->applied.kept_back == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:1@5 1:1@5 2:1@5 3:1@5");
}

CACHE_TEST(test_a_shorter_list_of_an_outdated_answer_does_not_count) {
        int i;

        w->brokers     = "1";
        w->api_version = 9;
        CHECK(!cw_say(w, "t 0:1@5"));
        cw_sent(w);
        CHECK(!cw_say(w, "t 0:1@5 1:1@0"));
        for (i = 0; i < 20; i++, cw_pass(w, CW_S)) {
                CHECK(!cw_say(w, "t 0:1@5") && w->applied.kept_back == 1);
                CHECK(w->applied.changed == 0);
        }
        cw_sent(w);
        for (i = 0; i < 5; i++, cw_pass(w, 2 * CW_S))
                CHECK(!cw_say(w, "t 0:1@5"));
        CHECK_TEXT(cw_topic(w, "t"), "t 0:1@5");
}

CACHE_TEST(test_a_shorter_list_without_ids_is_as_a_lower_epoch) {
        w->api_version = 9;
        CHECK(!cw_say(w, "t 0:1@5 1:1@5 2:1@5"));
        CHECK(cw_kept_back(w, "t 0:1@5 1:1@5") == 1);
        cw_insist(w, "t 0:1@5 1:1@5");
        CHECK_TEXT(cw_topic(w, "t"), "t 0:1@5 1:1@5");
        CHECK(cw_leader(w, "t", 2) == RDMETA_NO_PARTITION);
        CHECK_TEXT(cw_changes(w, 1), "v2 topic_recreated t");
        /* A row is missing in the middle; the others keep their facts. */
        CHECK(!cw_say(w, "u 0:1@5 1:2@7 2:3@5 3:4@5"));
        cw_insist(w, "u 0:-1@5 2:-1@5 3:4");
        CHECK_TEXT(cw_topic(w, "u"), "u 0:-1@5/l1 2:-1@5/l3 3:4");
        CHECK(!cw_say(w, "u 0:1@5 2:2@5 3:1@4"));
        CHECK(w->applied.kept_back == 1 && cw_leader(w, "u", 3) == 4);
}

CACHE_TEST(test_a_shorter_list_with_an_id_once_is_as_a_lower_epoch) {
        CHECK(!cw_say(w, "t#a 0:1@5 1:1@5"));
        CHECK(cw_kept_back(w, "t 0:1@5") == 1);
        cw_insist(w, "t 0:1@5");
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:1@5");
}

/* A new partition takes no facts from one that was left out. */
CACHE_TEST(test_a_shorter_list_moves_no_facts_between_partitions) {
        CHECK(!cw_say(w, "t 0:1@5 2:3@5 4:2@9"));
        cw_insist(w, "t 1:-1@6 2:3@5");
        CHECK_TEXT(cw_topic(w, "t"), "t 1:-1@6 2:3@5");
        CHECK(cw_leader_stale(w, "t", 1) == RDMETA_NO_LEADER);
}

/* Most clusters have a broker 0, and each partition begins with epoch 0. */
CACHE_TEST(test_no_leader_is_not_broker_0_and_follows_it) {
        w->brokers = "0,1,2";
        CHECK(!cw_all(w, "t#a 0:2@0"));
        CHECK(!cw_all(w, "t#a 0:0@1"));
        CHECK(w->applied.leaderless == 0 && w->applied.advice == 0);
        CHECK(cw_leader(w, "t", 0) == 0);
        CHECK(!cw_all(w, "t#a 0:-1@2"));
        CHECK(!cw_all(w, "t#a 0:-1@3"));
        CHECK(w->applied.leaderless == 1);
        CHECK(cw_leader(w, "t", 0) == RDMETA_NO_LEADER);
        CHECK(cw_leader_stale(w, "t", 0) == 0);
}

CACHE_TEST(test_a_leader_hint_may_be_of_broker_0_and_epoch_0) {
        w->brokers = "0,1,2";
        CHECK(!cw_all(w, "t#a 0:1@5; u#u 0:1"));
        CHECK(cw_leader_hint(w, "t", 0, 0, 6, NULL));
        CHECK(cw_leader(w, "t", 0) == 0);
        CHECK(cw_leader_hint(w, "u", 0, 0, 0, NULL));
        CHECK_TEXT(cw_topic(w, "u"), "u#u 0:0@0/r1");
}

/* Old and new rows are paired by id, in any order. */
CACHE_TEST(test_partitions_are_paired_by_id) {
        CHECK(!cw_say(w, "t#a 7:1@5 3:2@9 11:3@2/r3,1/i1"));
        CHECK_TEXT(cw_topic(w, "t"), "t#a 3:2@9 7:1@5 11:3@2/r3,1/i1");
        CHECK(cw_kept_back(w, "t#a 3:1@8 5:1@1 11:1@3 7:2@5") == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 3:2@9 5:1@1 7:2@5 11:1@3");
        CHECK(cw_leader(w, "t", 5) == 1);
        CHECK(cw_leader(w, "t", 4) == RDMETA_NO_PARTITION);
}

/* ---- malformed --------------------------------------------------------- */

/* Checks that an answer that no broker can send is refused whole. */
static void refused(const char *known, const char *topics) {
        char *before, *after;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, known));
        before = cw_dump(&w);
        CHECK(cw_say(&w, topics) == RDMETA_ERR_MALFORMED);
        CHECK(cw_all(&w, topics) == RDMETA_ERR_MALFORMED);
        after = cw_dump(&w);
        CHECK_TEXT(after, before);
        free(before);
        free(after);
        cw_destroy(&w);
}

TEST(test_duplicate_topics_are_refused_whole) {
        refused("t#a 0:1@5", "u#u 0:1@1; t#a 0:1@6; t#a 0:1@6");
        refused("t#a 0:1@5", "t#a 0:1@5; u#u 0:1@1; t#a 0:1@5");
        refused("t#a 0:1@5", "t#a 0:1@6; t!3");
        refused("t#a 0:1@5", "n#n 0:1@1; t#a 0:1@6; n#n 0:1@1");
        refused("t#a 0:1@5", "n!3; n!3");
        refused("t#a 0:1@5", "n#n 0:1@1; n!5"); /* n is not learned */
        refused("t#a 0:1@5", "n!5; m!5; n#n 0:1@1");
        refused("t#a 0:1@5", "m#m 0:1@1; n!5; n!5");
}

/* A null name is valid only for an unknown id. */
TEST(test_a_topic_without_name_and_error_is_refused_whole) {
        refused("t#a 0:1@5", "u#u 0:1@1; ?#a 0:1@6");
        refused("t#a 0:1@5", "?");
}

TEST(test_duplicate_partitions_are_refused_whole) {
        refused("t#a 0:1@5", "u#u 0:1@1; t#a 0:1@6 0:1@6");
        refused("t#a 0:1@5", "t#a 0:1@6 7:1@1 5:1@1 7:1@2");
        refused("t#a 0:1@5", "v#v 2:1@6 1:1@1 2:1@1");
}

TEST(test_negative_ids_are_refused_whole) {
        refused("t#a 0:1@5", "t#a 0:1@6 -1:1@6");
        refused("t#a 0:1@5", "t#a 0:-2@6");
        refused("t#a 0:1@5", "t#a 0:1@-2");
        refused("t#a 0:1@5", "t#a 0:1@6/r1,-1");
        refused("t#a 0:1@5", "t#a 0:1@6/r1/i-2147483648");
        refused("t#a 0:1@5", "t#a 0:1@6/r1/o-7");
        refused("t#a 0:1@5", "t#a 0:-2147483648@6");
        refused("t#a 0:1@5", "t#a -2147483648:1@6");
}

CACHE_TEST(test_extreme_numbers_are_numbers) {
        const char *text = "t#a 0:2147483647@2147483647 "
                           "2147483647:32768@32768/r128,127/i32767";

        CHECK(!cw_say(w, text));
        CHECK_TEXT(cw_topic(w, "t"), text);
        CHECK(cw_leader(w, "t", INT32_MAX) == 32768);
        CHECK(cw_leader(w, "t", 0) == INT32_MAX);
}

TEST_MAIN()
