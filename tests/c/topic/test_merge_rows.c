/*
 * The row of docs/policies.md about a partition list that is shorter, how the
 * rows of an answer find those that are known, and ids that a topic had.
 */
#include "support/cache_world.h"

/* Say `topics` again and again: five times, by two brokers, over 5 s. */
static void insist(cw_t *w, const char *topics) {
        int i;

        for (i = 0; i < RDMETA_REWIND_ANSWERS; i++) {
                w->broker = 1 + i % 2;
                CHECK(cw_say(w, topics) == 0);
                cw_pass(w, 5 * CW_S / 4);
        }
}

/* ---- ids that were ------------------------------------------------------ */

/* A topic recreated for ever does not grow for ever. */
static void test_the_last_four_ids_are_remembered(void) {
        static const char ids[] = "abcdefghijklmnop";
        char text[32];
        int i, k;
        cw_t w;

        cw_init(&w, NULL);
        for (i = 0; ids[i]; i++) {
                snprintf(text, sizeof(text), "t#%c 0:1@%d", ids[i], 20 - i);
                CHECK(!cw_say(&w, text) && w.applied.changed == 1);
                for (k = i - 1; k >= 0 && k >= i - RDMETA_PAST_MAX; k--) {
                        snprintf(text, sizeof(text), "t#%c 0:2@90", ids[k]);
                        CHECK(!cw_say(&w, text) && w.applied.kept_back == 1);
                }
        }
        snprintf(text, sizeof(text), "t#%c 0:3@0",
                 ids[i - 2 - RDMETA_PAST_MAX]);
        CHECK(!cw_say(&w, text)); /* that one is as good as new */
        CHECK_TEXT(cw_topic(&w, "t"), text);
        cw_destroy(&w);
}

/* They are the topic's, and stay when its facts are replaced. */
static void test_an_id_already_superseded_stays_so_whatever_changes(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@50"));
        CHECK(!cw_say(&w, "t#b 0:2@0"));
        CHECK(!cw_say(&w, "t#b 0:3@1") && w.applied.changed == 1);
        CHECK(!cw_say(&w, "t#a 0:1@51") && w.applied.kept_back == 1);
        CHECK(!cw_asked(&w, "t", "t!3"));
        CHECK(!cw_say(&w, "t 0:1@2") && w.applied.changed == 1);
        CHECK(!cw_say(&w, "t#a 0:1@51") && w.applied.kept_back == 1);
        CHECK_TEXT(cw_topic(&w, "t"), "t#b 0:1@2");
        cw_destroy(&w);
}

/* ---- partitions -------------------------------------------------------- */

/* What it has goes by its epochs, what it leaves out is as it was. */
static void test_a_shorter_list_keeps_only_what_it_leaves_out(void) {
        int64_t deadline;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@5 1:1@5 2:-1@5/r1,2/o2/e5 4:3@9/r3,1/i3"));
        deadline = cw_info(&w, "t").deadline_us;
        cw_pass(&w, CW_S);
        CHECK(!cw_say(&w, "t#a 0:2@6 1:2@4 3:1@0"));
        CHECK(w.applied.kept_back == 1 && w.applied.changed == 1);
        CHECK(w.applied.advice & RDMETA_ADVICE_ASK_AGAIN);
        CHECK(w.applied.advice & RDMETA_ADVICE_ASK_OTHER);
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:2@6 1:1@5 2:-1@5/r1,2/o2/e5 "
                                      "3:1@0 4:3@9/r3,1/i3");
        CHECK(cw_info(&w, "t").deadline_us == deadline);
        CHECK(!cw_say(&w, "t#a 2:1@4 4:1@8")); /* which are lower */
        CHECK(w.applied.kept_back == 1 && w.applied.changed == 0);
        CHECK(!cw_say(&w, "t#a")); /* none at all */
        CHECK(w.applied.kept_back == 1 && w.applied.changed == 0);
        w.api_version = 8; /* its rows have no epochs, and are taken */
        CHECK(!cw_say(&w, "t 1:3"));
        CHECK(w.applied.kept_back == 1 && w.applied.changed == 1);
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:2@6 1:3 2:-1@5/r1,2/o2/e5 "
                                      "3:1@0 4:3@9/r3,1/i3");
        w.api_version = 12;
        CHECK(!cw_say(&w, "t#a 1:1@4 3:1@0 4:3@9/r3,1/i3"));
        CHECK(w.applied.kept_back == 1); /* 1 still has its highest epoch */
        CHECK(cw_leader(&w, "t", 1) == 3);
        cw_destroy(&w);
}

/* Clusters are restored from copies, topics and their ids included. */
static void test_a_shorter_list_of_the_same_id_is_believed_in_the_end(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@5 1:1@5 2:1@5"));
        insist(&w, "t#a 0:2@6 1:1@5");
        CHECK(w.applied.kept_back == 0);
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:2@6 1:1@5");
        CHECK(cw_leader(&w, "t", 2) == RDMETA_NO_PARTITION);
        CHECK_TEXT(cw_changes(&w, 2), "v3 topic_recreated t#a");
        insist(&w, "t#a"); /* none at all */
        CHECK_TEXT(cw_topic(&w, "t"), "t#a");
        cw_destroy(&w);
}

static void test_a_shorter_list_of_one_broker_is_believed_once_stale(void) {
        int i;
        cw_t w;

        cw_init(&w, NULL);
        w.api_version = 9;
        CHECK(!cw_say(&w, "t 0:1@5 1:1@5 2:1@5"));
        for (i = 0; i < 90; i++, cw_pass(&w, 10 * CW_S)) {
                w.broker = i % 3 ? -1 : 0;
                CHECK(!cw_say(&w, "t 0:2@1 1:1@1"));
                CHECK(w.applied.kept_back == 1);
                CHECK(cw_leader_stale(&w, "t", 2) == 1);
        }
        CHECK(!cw_say(&w, "t 0:2@1 1:1@1"));
        CHECK_TEXT(cw_topic(&w, "t"), "t 0:2@1 1:1@1");
        cw_destroy(&w);
}

/* Which are left out is counted row by row, too. */
static void test_a_shorter_list_is_believed_where_every_answer_is(void) {
        int i;
        cw_t w;

        cw_init(&w, NULL);
        w.brokers = "1";
        CHECK(!cw_say(&w, "t#a 0:1@5 1:1@5 2:1@5 3:1@5 4:1@5"));
        for (i = 0; i < 5; i++, cw_pass(&w, 2 * CW_S))
                CHECK(!cw_say(&w, i % 2 ? "t#a 0:1@5 2:1@5 4:2@4"
                                        : "t#a 0:1@5 1:1@5 3:1@5"));
        CHECK(w.applied.kept_back == 1);
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:1@5 1:1@5 2:1@5 3:1@5");
        cw_destroy(&w);
}

static void test_a_shorter_list_of_an_outdated_answer_does_not_count(void) {
        int i;
        cw_t w;

        cw_init(&w, NULL);
        w.brokers     = "1";
        w.api_version = 9;
        CHECK(!cw_say(&w, "t 0:1@5"));
        cw_sent(&w);
        CHECK(!cw_say(&w, "t 0:1@5 1:1@0"));
        for (i = 0; i < 20; i++, cw_pass(&w, CW_S)) {
                CHECK(!cw_say(&w, "t 0:1@5") && w.applied.kept_back == 1);
                CHECK(w.applied.changed == 0);
        }
        cw_sent(&w);
        for (i = 0; i < 5; i++, cw_pass(&w, 2 * CW_S))
                CHECK(!cw_say(&w, "t 0:1@5"));
        CHECK_TEXT(cw_topic(&w, "t"), "t 0:1@5");
        cw_destroy(&w);
}

static void test_a_shorter_list_without_ids_is_as_a_lower_epoch(void) {
        cw_t w;

        cw_init(&w, NULL);
        w.api_version = 9;
        CHECK(!cw_say(&w, "t 0:1@5 1:1@5 2:1@5"));
        CHECK(!cw_say(&w, "t 0:1@5 1:1@5"));
        CHECK(w.applied.kept_back == 1);
        insist(&w, "t 0:1@5 1:1@5");
        CHECK_TEXT(cw_topic(&w, "t"), "t 0:1@5 1:1@5");
        CHECK(cw_leader(&w, "t", 2) == RDMETA_NO_PARTITION);
        CHECK_TEXT(cw_changes(&w, 1), "v2 topic_recreated t");
        /* From the middle: what is left keeps what was its own. */
        CHECK(!cw_say(&w, "u 0:1@5 1:2@7 2:3@5 3:4@5"));
        insist(&w, "u 0:-1@5 2:-1@5 3:4");
        CHECK_TEXT(cw_topic(&w, "u"), "u 0:-1@5/l1 2:-1@5/l3 3:4");
        CHECK(!cw_say(&w, "u 0:1@5 2:2@5 3:1@4"));
        CHECK(w.applied.kept_back == 1 && cw_leader(&w, "u", 3) == 4);
        cw_destroy(&w);
}

static void test_a_shorter_list_with_an_id_once_is_as_a_lower_epoch(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@5 1:1@5"));
        CHECK(!cw_say(&w, "t 0:1@5"));
        CHECK(w.applied.kept_back == 1);
        insist(&w, "t 0:1@5");
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:1@5");
        cw_destroy(&w);
}

/* A partition that is new has nothing of one that was left out. */
static void test_a_shorter_list_gives_nobody_what_was_anothers(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t 0:1@5 2:3@5 4:2@9"));
        insist(&w, "t 1:-1@6 2:3@5");
        CHECK_TEXT(cw_topic(&w, "t"), "t 1:-1@6 2:3@5");
        CHECK(cw_leader_stale(&w, "t", 1) == RDMETA_NO_LEADER);
        cw_destroy(&w);
}

/* Most clusters have a broker 0, and each partition begins with epoch 0. */
static void test_no_leader_is_not_broker_0_and_follows_it(void) {
        cw_t w;

        cw_init(&w, NULL);
        w.brokers = "0,1,2";
        CHECK(!cw_all(&w, "t#a 0:2@0"));
        CHECK(!cw_all(&w, "t#a 0:0@1"));
        CHECK(w.applied.leaderless == 0 && w.applied.advice == 0);
        CHECK(cw_leader(&w, "t", 0) == 0);
        CHECK(!cw_all(&w, "t#a 0:-1@2"));
        CHECK(!cw_all(&w, "t#a 0:-1@3"));
        CHECK(w.applied.leaderless == 1);
        CHECK(cw_leader(&w, "t", 0) == RDMETA_NO_LEADER);
        CHECK(cw_leader_stale(&w, "t", 0) == 0);
        cw_destroy(&w);
}

static void test_a_leader_hint_may_be_of_broker_0_and_epoch_0(void) {
        cw_t w;

        cw_init(&w, NULL);
        w.brokers = "0,1,2";
        CHECK(!cw_all(&w, "t#a 0:1@5; u#u 0:1"));
        CHECK(cw_lead(&w, "t", 0, 0, 6, NULL));
        CHECK(cw_leader(&w, "t", 0) == 0);
        CHECK(cw_lead(&w, "u", 0, 0, 0, NULL));
        CHECK_TEXT(cw_topic(&w, "u"), "u#u 0:0@0/r1");
        cw_destroy(&w);
}

/* Old and new rows are paired by id, wherever they stand. */
static void test_partitions_are_paired_by_id(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 7:1@5 3:2@9 11:3@2/r3,1/i1"));
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 3:2@9 7:1@5 11:3@2/r3,1/i1");
        CHECK(!cw_say(&w, "t#a 3:1@8 5:1@1 11:1@3 7:2@5"));
        CHECK(w.applied.kept_back == 1);
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 3:2@9 5:1@1 7:2@5 11:1@3");
        CHECK(cw_leader(&w, "t", 5) == 1);
        CHECK(cw_leader(&w, "t", 4) == RDMETA_NO_PARTITION);
        cw_destroy(&w);
}

int main(void) {
        test_begin(60);
        RUN(test_the_last_four_ids_are_remembered);
        RUN(test_an_id_already_superseded_stays_so_whatever_changes);
        RUN(test_a_shorter_list_keeps_only_what_it_leaves_out);
        RUN(test_a_shorter_list_of_the_same_id_is_believed_in_the_end);
        RUN(test_a_shorter_list_of_one_broker_is_believed_once_stale);
        RUN(test_a_shorter_list_is_believed_where_every_answer_is);
        RUN(test_a_shorter_list_of_an_outdated_answer_does_not_count);
        RUN(test_a_shorter_list_without_ids_is_as_a_lower_epoch);
        RUN(test_a_shorter_list_with_an_id_once_is_as_a_lower_epoch);
        RUN(test_a_shorter_list_gives_nobody_what_was_anothers);
        RUN(test_no_leader_is_not_broker_0_and_follows_it);
        RUN(test_a_leader_hint_may_be_of_broker_0_and_epoch_0);
        RUN(test_partitions_are_paired_by_id);
        return 0;
}
