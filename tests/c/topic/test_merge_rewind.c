/*
 * merge, rewinds: when an older answer is believed, which rows go back, and
 * when the count ends. These are rows of docs/internals/policies.md.
 * test_merge.c has the one about fewer partitions:
 *
 *     epoch lower, same id              a_lower_epoch_...
 *     which rows go back                a_lower_epoch_is_believed_where_...
 *     a row rises                       a_row_that_rises_..., a_rise_in_...
 *     taken in part                     a_lower_epoch_here_and_there_...,
 *                                       a_lower_epoch_of_one_row_...
 *     error, absence, outdated request  a_lower_epoch_is_counted_on_...,
 *                                       a_lower_epoch_of_an_outdated_...
 *     topic id already superseded       an_id_already_superseded_...
 */
#include "support/cache_fixture.h"

static void test_a_lower_epoch_is_believed_after_five_by_two_over_5_s(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@5 1:1@1"));
        cw_insist(&w, "t#a 0:2@3 1:1@1");
        CHECK(w.applied.kept_back == 0 && w.applied.changed == 1);
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:2@3 1:1@1");
        /* From here on 3 is the highest. */
        CHECK(!cw_say(&w, "t#a 0:3@4 1:1@1"));
        CHECK(cw_leader(&w, "t", 0) == 3);
        cw_destroy(&w);
}

static void test_a_lower_epoch_is_not_believed_before_5_s(void) {
        cw_t w;
        int i;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@5"));
        for (i = 0; i < 20; i++) {
                w.broker = 1 + i % 3;
                CHECK(!cw_say(&w, "t#a 0:2@3"));
                CHECK(w.applied.kept_back == 1);
                cw_pass(&w, CW_S / 5);
        }
        CHECK(cw_leader(&w, "t", 0) == 1);
        cw_destroy(&w);
}

static void test_a_lower_epoch_is_not_believed_of_one_broker_of_many(void) {
        cw_t w;
        int i;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@5"));
        for (i = 0; i < 20; i++, cw_pass(&w, CW_S)) {
                CHECK(!cw_say(&w, "t#a 0:2@3"));
                CHECK(w.applied.kept_back == 1);
        }
        CHECK(cw_leader(&w, "t", 0) == 1);
        cw_destroy(&w);
}

/* The caller asks the same server again and again, with or without its id. */
static void test_a_lower_epoch_of_one_broker_is_believed_once_stale(void) {
        static const int32_t brokers[] = {1, 0, -1};
        int64_t first;
        int i, k;
        cw_t w;

        for (k = 0; k < 3; k++) {
                cw_init(&w, NULL);
                w.brokers = "0,1,2";
                CHECK(!cw_say(&w, "t#a 0:1@5"));
                first    = w.now.mono_us;
                w.broker = brokers[k];
                for (i = 0; i < 90; i++) {
                        cw_pass(&w, 10 * CW_S);
                        CHECK(!cw_say(&w, "t#a 0:2@3"));
                        CHECK(w.applied.kept_back == 1);
                        CHECK(cw_leader(&w, "t", 0) == 1);
                }
                CHECK(w.now.mono_us == first + 900 * CW_S);
                cw_pass(&w, 1);
                CHECK(cw_leader(&w, "t", 0) == RDMETA_STALE);
                CHECK(!cw_say(&w, "t#a 0:2@3"));
                CHECK(w.applied.kept_back == 0 && w.applied.changed == 1);
                CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:2@3");
                CHECK(cw_leader(&w, "t", 0) == 2);
                cw_destroy(&w);
        }
}

/* An answer for a stale topic has to count, too. */
static void test_a_lower_epoch_of_a_stale_topic_needs_5_over_5_s(void) {
        int i;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@5"));
        cw_pass(&w, 2000 * CW_S);
        for (i = 0; i < 5; i++, cw_pass(&w, CW_S))
                CHECK(!cw_say(&w, "t#a 0:2@3") && w.applied.kept_back == 1);
        CHECK(!cw_say(&w, "t#a 0:2@3") && w.applied.kept_back == 0);
        CHECK(cw_leader(&w, "t", 0) == 2);
        CHECK(!cw_say(&w, "t#a 0:1@5"));
        cw_pass(&w, 2000 * CW_S);
        for (i = 0; i < 4; i++, cw_pass(&w, 5 * CW_S))
                CHECK(!cw_say(&w, "t#a 0:2@3") && w.applied.kept_back == 1);
        CHECK(!cw_say(&w, "t#a 0:2@3") && w.applied.kept_back == 0);
        cw_destroy(&w);
}

static void hour(rdmeta_conf_t *conf) {
        conf->max_age_us = 3600 * CW_S;
}

static void test_a_lower_epoch_of_one_broker_is_believed_after_15_min(void) {
        int i;
        cw_t w;

        cw_init(&w, hour);
        CHECK(!cw_say(&w, "t#a 0:1@5"));
        for (i = 0; i < 900; i += 10, cw_pass(&w, 10 * CW_S)) {
                CHECK(!cw_say(&w, "t#a 0:2@3"));
                CHECK(w.applied.kept_back == 1);
        }
        CHECK(!cw_say(&w, "t#a 0:2@3") && w.applied.kept_back == 0);
        CHECK(cw_leader(&w, "t", 0) == 2);
        cw_destroy(&w);
}

/* A broker without an id may be the first one. */
static void test_a_lower_epoch_of_a_broker_without_a_name_is_no_second(void) {
        int i;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@5"));
        for (i = 0; i < 20; i++, cw_pass(&w, CW_S)) {
                w.broker = i % 2 ? 1 : -1;
                CHECK(!cw_say(&w, "t#a 0:2@3") && w.applied.kept_back == 1);
        }
        w.broker = 2;
        CHECK(!cw_say(&w, "t#a 0:2@3") && w.applied.kept_back == 0);
        cw_destroy(&w);
}

/* Errors and absence contain no epochs. */
static void test_a_lower_epoch_is_counted_on_after_errors_and_absence(void) {
        int i;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@5; z#z 0:1@1"));
        for (i = 0; i < 5; i++, cw_pass(&w, CW_S)) {
                w.broker = 1 + i % 2;
                CHECK(!cw_say(&w, "t#a 0:2@3") && w.applied.kept_back == 1);
                if (i == 0)
                        CHECK(!cw_all(&w, "z#z 0:1@1"));
                CHECK(!cw_say(&w, i % 2 ? "t!5" : "t!29"));
        }
        CHECK(!cw_say(&w, "t#a 0:2@3") && w.applied.kept_back == 0);
        CHECK(cw_leader(&w, "t", 0) == 2);
        cw_destroy(&w);
}

static void test_a_lower_epoch_of_an_outdated_answer_does_not_count(void) {
        int i;
        cw_t w;

        cw_init(&w, NULL);
        w.brokers = "1";
        CHECK(!cw_say(&w, "t#a 0:1@5 1:1@5"));
        for (i = 0; i < 4; i++, cw_pass(&w, 2 * CW_S))
                CHECK(!cw_say(&w, "t#a 0:2@3 1:1@5") && w.applied.kept_back);
        cw_sent(&w);
        w.sent_version = 0;
        /* outdated answers neither count nor end the rewind */
        for (i = 0; i < 4; i++, cw_pass(&w, 2 * CW_S)) {
                CHECK(!cw_say(&w, "t#a 0:2@3 1:1@5") && w.applied.kept_back);
                CHECK(!cw_say(&w, "t#a 0:1@5 1:1@5"));
                CHECK(w.applied.kept_back == 0);
        }
        CHECK(cw_leader(&w, "t", 0) == 1);
        cw_sent(&w);
        CHECK(!cw_say(&w, "t#a 0:2@3 1:1@5") && w.applied.kept_back == 0);
        CHECK(cw_leader(&w, "t", 0) == 2);
        cw_destroy(&w);
}

/* A row that an outdated answer raises counts as risen. */
static void test_a_rise_in_an_outdated_answer_ends_the_rewind(void) {
        int i;
        cw_t w;

        cw_init(&w, NULL);
        w.brokers = "1";
        CHECK(!cw_say(&w, "t#a 0:1@5 1:1@5"));
        for (i = 0; i < 4; i++, cw_pass(&w, 2 * CW_S))
                CHECK(!cw_say(&w, "t#a 0:2@3 1:1@5") && w.applied.kept_back);
        cw_sent(&w);
        w.sent_version = 0;
        CHECK(!cw_say(&w, "t#a 0:2@3 1:2@6") && w.applied.kept_back == 1);
        CHECK(cw_leader(&w, "t", 1) == 2);
        cw_sent(&w);
        for (i = 0; i < 4; i++, cw_pass(&w, 2 * CW_S))
                CHECK(!cw_say(&w, "t#a 0:2@3 1:2@6") && w.applied.kept_back);
        CHECK(!cw_say(&w, "t#a 0:2@3 1:2@6") && !w.applied.kept_back);
        cw_destroy(&w);
}

/* Five lower answers, each in another partition: none of them goes back. */
static void test_a_lower_epoch_now_here_now_there_is_never_believed(void) {
        char text[128];
        int i, p, n;
        cw_t w;

        cw_init(&w, NULL);
        w.brokers = "1";
        CHECK(!cw_say(&w, "t#a 0:1@11 1:1@11 2:1@11 3:1@11 4:1@11"));
        for (i = 0; i < 50; i++, cw_pass(&w, 2 * CW_S)) {
                n = snprintf(text, sizeof(text), "t#a");
                for (p = 0; p < 5; p++)
                        n += snprintf(text + n, sizeof(text) - (size_t)n,
                                      p == i % 5 ? " %d:2@10" : " %d:1@11",
                                      p);
                CHECK(!cw_say(&w, text) && w.applied.kept_back == 1);
        }
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:1@11 1:1@11 2:1@11 3:1@11 4:1@11");
        cw_destroy(&w);
}

static void test_a_lower_epoch_is_believed_where_every_answer_has_it(void) {
        static const char *const answers[] = {
                "t#a 0:2@3 1:2@3 2:2@3", "t#a 0:2@3 1:1@5 2:2@3",
                "t#a 0:2@3 1:2@3 2:1@5", "t#a 0:2@3 1:2@3 2:2@3",
                "t#a 0:2@3 1:2@3 2:2@3"};
        int i;
        cw_t w;

        cw_init(&w, NULL);
        w.brokers = "1";
        CHECK(!cw_say(&w, "t#a 0:1@5 1:1@5 2:1@5"));
        for (i = 0; i < 5; i++, cw_pass(&w, 2 * CW_S))
                CHECK(!cw_say(&w, answers[i]) && w.applied.kept_back == 1);
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:2@3 1:1@5 2:1@5");
        for (i = 0; i < 4; i++, cw_pass(&w, 2 * CW_S))
                CHECK(!cw_say(&w, answers[0]) && w.applied.kept_back == 1);
        CHECK(!cw_say(&w, answers[0]) && w.applied.kept_back == 0);
        CHECK_TEXT(cw_topic(&w, "t"), answers[0]);
        cw_destroy(&w);
}

static void test_a_row_that_rises_begins_the_count_anew(void) {
        int by_hint, i;
        cw_t w;

        for (by_hint = 0; by_hint < 2; by_hint++) {
                cw_init(&w, NULL);
                w.brokers = "1,2";
                CHECK(!cw_say(&w, "t#a 0:1@10 1:1@10"));
                for (i = 0; i < 4; i++, cw_pass(&w, 2 * CW_S)) {
                        w.broker = 1 + i % 2;
                        CHECK(!cw_say(&w, "t#a 0:2@9 1:2@9"));
                }
                if (by_hint)
                        CHECK(cw_leader_hint(&w, "t", 0, 2, 11, NULL));
                else
                        CHECK(!cw_say(&w, "t#a 0:2@11 1:2@9"));
                for (i = 0; i < 3; i++, cw_pass(&w, 2 * CW_S)) {
                        w.broker = 1 + i % 2;
                        CHECK(!cw_say(&w, "t#a 0:1@10 1:2@9"));
                        CHECK(w.applied.kept_back == 1);
                }
                CHECK(cw_leader(&w, "t", 0) == 2);
                CHECK(cw_leader(&w, "t", 1) == 1);
                cw_destroy(&w);
        }
}

static void test_a_lower_epoch_of_the_only_broker_is_believed(void) {
        cw_t w;
        int i;

        cw_init(&w, NULL);
        w.brokers = "1";
        CHECK(!cw_say(&w, "t#a 0:1@5"));
        for (i = 1; i < 5; i++, cw_pass(&w, 5 * CW_S / 4)) {
                CHECK(!cw_say(&w, "t#a 0:1@3"));
                CHECK(w.applied.kept_back == 1);
        }
        CHECK(!cw_say(&w, "t#a 0:1@3"));
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:1@3");
        cw_destroy(&w);
}

static void test_a_lower_epoch_is_believed_of_as_many_as_could_be_asked(void) {
        cw_t w;
        int i;

        cw_init(&w, NULL);
        w.candidates = 1; /* the other two cannot be reached */
        CHECK(!cw_say(&w, "t#a 0:1@5"));
        for (i = 1; i < 5; i++, cw_pass(&w, 5 * CW_S / 4))
                CHECK(!cw_say(&w, "t#a 0:1@3") && w.applied.kept_back);
        CHECK(!cw_say(&w, "t#a 0:1@3") && !w.applied.kept_back);
        cw_destroy(&w);
}

static void test_an_answer_that_is_not_lower_ends_the_rewind(void) {
        cw_t w;
        int i;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@5"));
        for (i = 0; i < 40; i++, cw_pass(&w, 2 * CW_S)) {
                w.broker = 1 + i % 2;
                CHECK(!cw_say(&w, i % 4 == 3 ? "t#a 0:1@5" : "t#a 0:2@3"));
                CHECK(cw_leader_stale(&w, "t", 0) == 1);
        }
        cw_destroy(&w);
}

/* Clocks may begin anywhere, so the time between may overflow. */
static void test_a_rewind_lasts_from_any_time_to_any_other(void) {
        int i;
        cw_t w;

        cw_init(&w, NULL);
        w.brokers     = "1";
        w.now.mono_us = -6 * INT64_C(1000000000000000000);
        CHECK(!cw_say(&w, "t#a 0:1@5"));
        for (i = 1; i < 5; i++)
                CHECK(!cw_say(&w, "t#a 0:1@3") && w.applied.kept_back);
        w.now.mono_us = 6 * INT64_C(1000000000000000000);
        CHECK(!cw_say(&w, "t#a 0:1@3") && !w.applied.kept_back);
        cw_destroy(&w);
}

/* Returns an answer of 100 rows, in two of which (-1: none) it is lower. */
static const char *hundred(int lower, int lower_too) {
        static char text[2048];
        int p, n = snprintf(text, sizeof(text), "t#a");

        for (p = 0; p < 100; p++) {
                const int is_lower = p == lower || p == lower_too;

                n += snprintf(text + n, sizeof(text) - (size_t)n, " %d:%d@%d",
                              p, is_lower ? 2 : 1, is_lower ? 4 : 5);
        }
        return text;
}

/* Returns how many of the 100 partitions have a leader that is not stale. */
static int leaders(cw_t *w) {
        int p, n = 0;

        for (p = 0; p < 100; p++)
                n += cw_leader(w, "t", p) >= 0;
        return n;
}

static void test_a_lower_epoch_here_and_there_leaves_no_topic_stale(void) {
        cw_t w;
        int i;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, hundred(-1, -1)));
        for (i = 0; i < 600; i++) { /* each is lower in another row */
                cw_pass(&w, 10 * CW_S);
                CHECK(!cw_say(&w, hundred(i % 100, -1)));
                CHECK(w.applied.kept_back == 1 && leaders(&w) == 100);
                CHECK(cw_leader(&w, "t", i % 100) == 1);
        }
        cw_destroy(&w);
}

/* The clock of row 99 goes on, while the other row is now here, now there. */
static void test_a_lower_epoch_here_and_there_is_believed_where_it_stays(
        void) {
        cw_t w;
        int i;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, hundred(-1, -1)));
        for (i = 0; i < 100; i++) {
                cw_pass(&w, 10 * CW_S);
                CHECK(!cw_say(&w, hundred(i % 99, 99)));
                CHECK(cw_leader(&w, "t", i % 99) == 1 && leaders(&w) == 100);
                CHECK(cw_leader(&w, "t", 99) == (i < 90 ? 1 : 2));
        }
        cw_destroy(&w);
}

/* After UNKNOWN, an answer that is lower in one row shows them all. */
static void test_a_lower_epoch_of_one_row_hides_no_other_after_unknown(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, hundred(-1, -1)));
        CHECK(!cw_say(&w, "t!3"));
        CHECK(leaders(&w) == 0);
        cw_pass(&w, CW_S);
        CHECK(!cw_say(&w, hundred(7, -1)) && w.applied.kept_back == 1);
        CHECK(leaders(&w) == 100 && cw_leader(&w, "t", 7) == 1);
        cw_destroy(&w);
}

/* Row 0 rises each minute, and row 1 stays lower: that is believed in time. */
static void clock_of_a_row_while_another_rises(int by_hint) {
        char text[64];
        int i;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@5 1:1@5"));
        CHECK(!cw_say(&w, "t#a 0:1@4 1:2@4"));
        for (i = 1; i < 15; i++) {
                cw_pass(&w, 60 * CW_S);
                if (by_hint) {
                        CHECK(cw_leader_hint(&w, "t", 0, 1, 5 + i, NULL));
                } else {
                        w.sent_known = 1; /* version 0: it is outdated */
                        snprintf(text, sizeof(text), "t#a 0:1@%d 1:1@5", 5 + i);
                        CHECK(!cw_say(&w, text));
                        w.sent_known = 0;
                }
                snprintf(text, sizeof(text), "t#a 0:1@%d 1:2@4", 5 + i);
                CHECK(!cw_say(&w, text) && w.applied.kept_back == 1);
        }
        cw_pass(&w, 60 * CW_S);
        CHECK(!cw_say(&w, text) && w.applied.kept_back == 0);
        CHECK_TEXT(cw_topic(&w, "t"), text);
        cw_destroy(&w);
}

static void test_a_row_that_rises_leaves_the_clocks_of_others(void) {
        clock_of_a_row_while_another_rises(1);
        clock_of_a_row_while_another_rises(0);
}

/* Each fourth answer has the id before, of another broker. */
static void test_a_past_id_leaves_the_clocks_of_rows(void) {
        cw_t w;
        int i;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#z 0:1@1 1:1@1"));
        CHECK(!cw_say(&w, "t#a 0:1@5 1:1@5"));
        for (i = 0; i <= 90; i++) {
                CHECK(cw_leader(&w, "t", 0) == 1);
                cw_pass(&w, 10 * CW_S);
                w.broker = i % 4 == 3 ? 3 : 1;
                CHECK(!cw_say(&w, i % 4 == 3 ? "t#z 0:1@1 1:1@1"
                                  : i % 2    ? "t#a 0:2@4 1:2@4"
                                             : "t#a 0:2@4 1:1@5"));
        }
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:2@4 1:1@5");
        cw_destroy(&w);
}

/* Row 0 was lower for long before it rose: its clock begins anew. */
static void test_a_row_that_rises_loses_its_own_clock(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@5 1:1@5"));
        CHECK(!cw_say(&w, "t#a 0:2@4 1:2@4"));
        cw_pass(&w, 899 * CW_S);
        CHECK(cw_leader_hint(&w, "t", 0, 3, 6, NULL));
        cw_pass(&w, 2 * CW_S);
        CHECK(!cw_say(&w, "t#a 0:2@4 1:2@4") && w.applied.kept_back == 1);
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:3@6/r1 1:2@4");
        cw_destroy(&w);
}

/* ---- ids --------------------------------------------------------------- */

static void test_an_id_already_superseded_is_believed_in_the_end(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@50"));
        CHECK(!cw_say(&w, "t#b 0:2@0"));
        cw_insist(&w, "t#a 0:1@51");
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:1@51");
        CHECK(!cw_say(&w, "t#b 0:2@0")); /* now this one is superseded */
        CHECK(w.applied.kept_back == 1);
        cw_destroy(&w);
}

static void test_an_id_already_superseded_is_believed_of_one_once_stale(void) {
        int i;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "t#a 0:1@50"));
        CHECK(!cw_say(&w, "t#b 0:2@0"));
        for (i = 0; i < 90; i++, cw_pass(&w, 10 * CW_S))
                CHECK(!cw_say(&w, "t#a 0:1@51") && w.applied.kept_back);
        CHECK(!cw_say(&w, "t#a 0:1@51") && !w.applied.kept_back);
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:1@51");
        cw_destroy(&w);
}

/* Answers that go back to different ids do not count together. */
static void test_an_id_already_superseded_is_not_believed_for_others(void) {
        static const char *const answers[] = {"t#a 0:1@51", "t#b 0:1@51",
                                              "t#c 0:1@2"};
        int i;
        cw_t w;

        cw_init(&w, NULL);
        w.brokers = "1";
        CHECK(!cw_say(&w, "t#a 0:1@50"));
        CHECK(!cw_say(&w, "t#b 0:2@50"));
        CHECK(!cw_say(&w, "t#c 0:2@3"));
        for (i = 0; i < 30; i++, cw_pass(&w, 2 * CW_S))
                CHECK(!cw_say(&w, answers[i % 3]) && w.applied.kept_back == 1);
        for (i = 0; i < 30; i++, cw_pass(&w, 2 * CW_S))
                CHECK(!cw_say(&w, answers[i % 2]) && w.applied.kept_back == 1);
        CHECK_TEXT(cw_topic(&w, "t"), "t#c 0:2@3");
        cw_sent(&w);
        w.sent_version = 1;
        for (i = 0; i < 30; i++, cw_pass(&w, 2 * CW_S))
                CHECK(!cw_say(&w, answers[0]) && w.applied.kept_back == 1);
        cw_destroy(&w);
}

/* ---- entries ------------------------------------------------------------ */

/* Rewinds have any size, and end in any order. */
static void test_each_topic_has_a_rewind_of_its_own(void) {
        int i, k, n;
        char text[512];
        cw_t w;

        cw_init(&w, cw_no_changelog);
        w.brokers = "1";
        for (i = 0; i < 2; i++, cw_pass(&w, CW_S)) {
                for (k = 0; k < 40; k++) {
                        snprintf(text, sizeof(text), "%c%d#a 0:1@%d 1:1@%d%s",
                                 'a' + k % 20, k, 5 - i, 5 - i,
                                 i ? "" : " 2:1@5");
                        CHECK(!cw_say(&w, text));
                        CHECK(w.applied.kept_back == (uint32_t)i);
                }
        }
        for (n = 0; n < 40; n++) {
                k = n * 7 % 40;
                snprintf(text, sizeof(text), "%c%d#a 0:1@5 1:1@%d 2:1@5",
                         'a' + k % 20, k, n % 2 ? 5 : 4);
                CHECK(!cw_say(&w, text));
        }
        for (i = 0; i < 3; i++, cw_pass(&w, 3 * CW_S))
                for (k = 0; k < 40; k++) {
                        snprintf(text, sizeof(text), "%c%d#a 0:1@5 1:1@4 2:1@5",
                                 'a' + k % 20, k);
                        CHECK(!cw_say(&w, text));
                        n = k * 23 % 40; /* its turn in the loop above */
                        CHECK(w.applied.kept_back == (i < 2 || n % 2));
                }
        cw_destroy(&w);
}

static void test_a_rewind_goes_with_its_topic(void) {
        size_t bytes = 0;
        cw_t w;
        int i;

        cw_init(&w, cw_no_changelog);
        for (i = 0; i < 20000; i++) {
                CHECK(!cw_say(&w, "t#a 0:1@5"));
                CHECK(!cw_say(&w, "t#a 0:2@3") && w.applied.kept_back == 1);
                CHECK(!rdmeta_cache_purge(w.cache, w.now));
                bytes = i == 100 ? w.heap.bytes : bytes;
        }
        CHECK(w.heap.bytes < 2 * bytes);
        cw_destroy(&w);
}

int main(void) {
        test_begin(60);
        RUN(test_a_lower_epoch_is_believed_after_five_by_two_over_5_s);
        RUN(test_a_lower_epoch_is_not_believed_before_5_s);
        RUN(test_a_lower_epoch_is_not_believed_of_one_broker_of_many);
        RUN(test_a_lower_epoch_of_one_broker_is_believed_once_stale);
        RUN(test_a_lower_epoch_of_a_stale_topic_needs_5_over_5_s);
        RUN(test_a_lower_epoch_of_one_broker_is_believed_after_15_min);
        RUN(test_a_lower_epoch_of_a_broker_without_a_name_is_no_second);
        RUN(test_a_lower_epoch_is_counted_on_after_errors_and_absence);
        RUN(test_a_lower_epoch_of_an_outdated_answer_does_not_count);
        RUN(test_a_rise_in_an_outdated_answer_ends_the_rewind);
        RUN(test_a_lower_epoch_now_here_now_there_is_never_believed);
        RUN(test_a_lower_epoch_is_believed_where_every_answer_has_it);
        RUN(test_a_row_that_rises_begins_the_count_anew);
        RUN(test_a_lower_epoch_of_the_only_broker_is_believed);
        RUN(test_a_lower_epoch_is_believed_of_as_many_as_could_be_asked);
        RUN(test_an_answer_that_is_not_lower_ends_the_rewind);
        RUN(test_a_rewind_lasts_from_any_time_to_any_other);
        RUN(test_a_lower_epoch_here_and_there_leaves_no_topic_stale);
        RUN(test_a_lower_epoch_here_and_there_is_believed_where_it_stays);
        RUN(test_a_lower_epoch_of_one_row_hides_no_other_after_unknown);
        RUN(test_a_row_that_rises_leaves_the_clocks_of_others);
        RUN(test_a_past_id_leaves_the_clocks_of_rows);
        RUN(test_a_row_that_rises_loses_its_own_clock);
        RUN(test_an_id_already_superseded_is_believed_in_the_end);
        RUN(test_an_id_already_superseded_is_believed_of_one_once_stale);
        RUN(test_an_id_already_superseded_is_not_believed_for_others);
        RUN(test_each_topic_has_a_rewind_of_its_own);
        RUN(test_a_rewind_goes_with_its_topic);
        return 0;
}
