/*
 * merge, rewinds: when an older answer is believed, which rows go back, and
 * when the count ends. These are rows of docs/internals/policies.md.
 * test_merge.c has the one about fewer partitions. Scripts:
 * support/cache_script.h.
 */
#include "support/cache_script.h"

static void hour(rdmeta_conf_t *conf) {
        conf->max_age_us = 3600 * CW_S;
}

TEST(test_a_lower_epoch_of_one_broker_is_believed_after_15_min) {
        cw_script(hour, "say t#a 0:1@5 | 90x kept t#a 0:2@3 & wait 10 |"
                        " taken t#a 0:2@3 | leader 0 2");
}

/* The caller asks the same server again and again, with or without its id. */
TEST(test_a_lower_epoch_of_one_broker_is_believed_once_stale) {
        int broker;

        for (broker = -1; broker < 2; broker++)
                cw_script(NULL, "brokers 0,1,2 | say t#a 0:1@5 | by %d |"
                                " 90x wait 10 & kept t#a 0:2@3 & leader 0 1 |"
                                " wait 0.000001 | stale 0 | taken t#a 0:2@3 |"
                                " changed 1 | is t#a 0:2@3 | leader 0 2",
                          broker);
}

TEST(test_a_row_that_rises_begins_the_count_anew) {
        static const char *const rises[] = {"by 2 & say t#a 0:2@11 1:2@9",
                                            "hint 0 2 11"};
        int k;

        for (k = 0; k < 2; k++)
                cw_script(NULL, "brokers 1,2 | say t#a 0:1@10 1:1@10 |"
                                " by 1,2 | 4x say t#a 0:2@9 1:2@9 & wait 2 |"
                                " %s | by 1,2 |"
                                " 3x kept t#a 0:1@10 1:2@9 & wait 2 |"
                                " leader 0 2 | leader 1 1",
                          rises[k]);
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

CACHE_TEST(test_a_lower_epoch_here_and_there_leaves_no_topic_stale) {
        int i;

        CHECK(!cw_say(w, hundred(-1, -1)));
        for (i = 0; i < 600; i++) { /* each is lower in another row */
                cw_pass(w, 10 * CW_S);
                CHECK(!cw_say(w, hundred(i % 100, -1)));
                CHECK(w->applied.kept_back == 1 && leaders(w) == 100);
                CHECK(cw_leader(w, "t", i % 100) == 1);
        }
}

/* The clock of row 99 goes on, while the other row is now here, now there. */
CACHE_TEST(test_a_lower_epoch_here_and_there_is_believed_where_it_stays) {
        int i;

        CHECK(!cw_say(w, hundred(-1, -1)));
        for (i = 0; i < 100; i++) {
                cw_pass(w, 10 * CW_S);
                CHECK(!cw_say(w, hundred(i % 99, 99)));
                CHECK(cw_leader(w, "t", i % 99) == 1 && leaders(w) == 100);
                CHECK(cw_leader(w, "t", 99) == (i < 90 ? 1 : 2));
        }
}

/* After UNKNOWN, an answer that is lower in one row shows them all. */
CACHE_TEST(test_a_lower_epoch_of_one_row_hides_no_other_after_unknown) {
        CHECK(!cw_say(w, hundred(-1, -1)));
        CHECK(!cw_say(w, "t!3"));
        CHECK(leaders(w) == 0);
        cw_pass(w, CW_S);
        CHECK(!cw_say(w, hundred(7, -1)) && w->applied.kept_back == 1);
        CHECK(leaders(w) == 100 && cw_leader(w, "t", 7) == 1);
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

TEST(test_a_row_that_rises_leaves_the_clocks_of_others) {
        clock_of_a_row_while_another_rises(1);
        clock_of_a_row_while_another_rises(0);
}

/* Rewinds have any size, and end in any order. */
CACHE_TEST_WITH(test_each_topic_has_a_rewind_of_its_own, cw_no_changelog) {
        int i, k, n;
        char text[512];

        w->brokers = "1";
        for (i = 0; i < 2; i++, cw_pass(w, CW_S)) {
                for (k = 0; k < 40; k++) {
                        snprintf(text, sizeof(text), "%c%d#a 0:1@%d 1:1@%d%s",
                                 'a' + k % 20, k, 5 - i, 5 - i,
                                 i ? "" : " 2:1@5");
                        CHECK(!cw_say(w, text));
                        CHECK(w->applied.kept_back == (uint32_t)i);
                }
        }
        for (n = 0; n < 40; n++) {
                k = n * 7 % 40;
                snprintf(text, sizeof(text), "%c%d#a 0:1@5 1:1@%d 2:1@5",
                         'a' + k % 20, k, n % 2 ? 5 : 4);
                CHECK(!cw_say(w, text));
        }
        for (i = 0; i < 3; i++, cw_pass(w, 3 * CW_S))
                for (k = 0; k < 40; k++) {
                        snprintf(text, sizeof(text), "%c%d#a 0:1@5 1:1@4 2:1@5",
                                 'a' + k % 20, k);
                        CHECK(!cw_say(w, text));
                        n = k * 23 % 40; /* its turn in the loop above */
                        CHECK(w->applied.kept_back == (i < 2 || n % 2));
                }
}

CACHE_TEST_WITH(test_a_rewind_goes_with_its_topic, cw_no_changelog) {
        size_t bytes = 0;
        int i;

        for (i = 0; i < 20000; i++) {
                CHECK(!cw_say(w, "t#a 0:1@5"));
                CHECK(!cw_say(w, "t#a 0:2@3") && w->applied.kept_back == 1);
                CHECK(!rdmeta_cache_purge(w->cache, w->now));
                bytes = i == 100 ? w->heap.bytes : bytes;
        }
        CHECK(w->heap.bytes < 2 * bytes);
}

/* A row of these tables is a rule, and the shortest history that shows it. */
TEST_SCRIPT(test_a_lower_epoch_is_believed_after_five_by_two_over_5_s,
            "say t#a 0:1@5 1:1@1 | insist t#a 0:2@3 1:1@1 |"
            " changed 1 | is t#a 0:2@3 1:1@1 |"
            /* from here on 3 is the highest */
            " taken t#a 0:3@4 1:1@1 | leader 0 3")
TEST_SCRIPT(test_a_lower_epoch_is_not_believed_before_5_s,
            "say t#a 0:1@5 | by 1,2,3 |"
            " 20x kept t#a 0:2@3 & wait 0.2 | leader 0 1")
TEST_SCRIPT(test_a_lower_epoch_is_not_believed_of_one_broker_of_many,
            "say t#a 0:1@5 | 20x kept t#a 0:2@3 & wait 1 | leader 0 1")
/* An answer for a stale topic has to count, too. */
TEST_SCRIPT(test_a_lower_epoch_of_a_stale_topic_needs_5_over_5_s,
            "say t#a 0:1@5 | wait 2000 | 5x kept t#a 0:2@3 & wait 1 |"
            " taken t#a 0:2@3 | leader 0 2 |"
            " say t#a 0:1@5 | wait 2000 | 4x kept t#a 0:2@3 & wait 5 |"
            " taken t#a 0:2@3")
/* A broker without an id may be the first one. */
TEST_SCRIPT(test_a_lower_epoch_of_a_broker_without_a_name_is_no_second,
            "say t#a 0:1@5 | by -1,1 | 20x kept t#a 0:2@3 & wait 1 |"
            " by 2 | taken t#a 0:2@3")
/* Errors and absence contain no epochs. */
TEST_SCRIPT(test_a_lower_epoch_is_counted_on_after_errors_and_absence,
            "say t#a 0:1@5; z#z 0:1@1 | by 1,1,2,2 |"
            " kept t#a 0:2@3 | all z#z 0:1@1 | say t!29 | wait 1 |"
            " 4x kept t#a 0:2@3 & say t!5 / t!29 & wait 1 |"
            " by 1 | taken t#a 0:2@3 | leader 0 2")
/* Outdated answers neither count nor end the rewind. */
TEST_SCRIPT(test_a_lower_epoch_of_an_outdated_answer_does_not_count,
            "brokers 1 | say t#a 0:1@5 1:1@5 |"
            " 4x kept t#a 0:2@3 1:1@5 & wait 2 | sent 0 |"
            " 4x kept t#a 0:2@3 1:1@5 & taken t#a 0:1@5 1:1@5 &"
            " wait 2 | leader 0 1 |"
            " sent | taken t#a 0:2@3 1:1@5 | leader 0 2")
/* A row that an outdated answer raises counts as risen. */
TEST_SCRIPT(test_a_rise_in_an_outdated_answer_ends_the_rewind,
            "brokers 1 | say t#a 0:1@5 1:1@5 |"
            " 4x kept t#a 0:2@3 1:1@5 & wait 2 |"
            " sent 0 | kept t#a 0:2@3 1:2@6 | leader 1 2 |"
            " sent | 4x kept t#a 0:2@3 1:2@6 & wait 2 |"
            " taken t#a 0:2@3 1:2@6")
/* Each lower answer is so in another partition: none goes back. */
TEST_SCRIPT(test_a_lower_epoch_now_here_now_there_is_never_believed,
            "brokers 1 | say t#a 0:1@11 1:1@11 2:1@11 3:1@11 4:1@11 |"
            " 50x kept t#a 0:2@10 1:1@11 2:1@11 3:1@11 4:1@11"
            " / t#a 0:1@11 1:2@10 2:1@11 3:1@11 4:1@11"
            " / t#a 0:1@11 1:1@11 2:2@10 3:1@11 4:1@11"
            " / t#a 0:1@11 1:1@11 2:1@11 3:2@10 4:1@11"
            " / t#a 0:1@11 1:1@11 2:1@11 3:1@11 4:2@10 & wait 2 |"
            " is t#a 0:1@11 1:1@11 2:1@11 3:1@11 4:1@11")
TEST_SCRIPT(test_a_lower_epoch_is_believed_where_every_answer_has_it,
            "brokers 1 | say t#a 0:1@5 1:1@5 2:1@5 |"
            " 5x kept t#a 0:2@3 1:2@3 2:2@3 / t#a 0:2@3 1:1@5 2:2@3"
            " / t#a 0:2@3 1:2@3 2:1@5 / t#a 0:2@3 1:2@3 2:2@3"
            " / t#a 0:2@3 1:2@3 2:2@3 & wait 2 |"
            " is t#a 0:2@3 1:1@5 2:1@5 |"
            " 4x kept t#a 0:2@3 1:2@3 2:2@3 & wait 2 |"
            " taken t#a 0:2@3 1:2@3 2:2@3 | is t#a 0:2@3 1:2@3 2:2@3")
TEST_SCRIPT(test_a_lower_epoch_of_the_only_broker_is_believed,
            "brokers 1 | say t#a 0:1@5 |"
            " 4x kept t#a 0:1@3 & wait 1.25 | taken t#a 0:1@3 |"
            " is t#a 0:1@3")
/* The other two brokers cannot be reached. */
TEST_SCRIPT(test_a_lower_epoch_is_believed_of_as_many_as_could_be_asked,
            "candidates 1 | say t#a 0:1@5 |"
            " 4x kept t#a 0:1@3 & wait 1.25 | taken t#a 0:1@3")
TEST_SCRIPT(test_an_answer_that_is_not_lower_ends_the_rewind,
            "say t#a 0:1@5 | by 1,2 | 40x say t#a 0:2@3 / t#a 0:2@3"
            " / t#a 0:2@3 / t#a 0:1@5 & last 0 1 & wait 2")
/* Clocks may begin anywhere, so the time between may overflow. */
TEST_SCRIPT(test_a_rewind_lasts_from_any_time_to_any_other,
            "brokers 1 | at -6000000000000000000 | say t#a 0:1@5 |"
            " 4x kept t#a 0:1@3 | at 6000000000000000000 |"
            " taken t#a 0:1@3")
/* Each fourth answer has the id before, of another broker. */
TEST_SCRIPT(test_a_past_id_leaves_the_clocks_of_rows,
            "say t#z 0:1@1 1:1@1 | say t#a 0:1@5 1:1@5 | by 1,1,1,3 |"
            " 91x leader 0 1 & wait 10 & say t#a 0:2@4 1:1@5"
            " / t#a 0:2@4 1:2@4 / t#a 0:2@4 1:1@5"
            " / t#z 0:1@1 1:1@1 | is t#a 0:2@4 1:1@5")
/* Row 0 was lower for long before it rose: its clock begins anew. */
TEST_SCRIPT(test_a_row_that_rises_loses_its_own_clock,
            "say t#a 0:1@5 1:1@5 | say t#a 0:2@4 1:2@4 | wait 899 |"
            " hint 0 3 6 | wait 2 | kept t#a 0:2@4 1:2@4 |"
            " is t#a 0:3@6/r1 1:2@4")
TEST_SCRIPT(test_an_id_already_superseded_is_believed_in_the_end,
            "say t#a 0:1@50 | say t#b 0:2@0 | insist t#a 0:1@51 |"
            " is t#a 0:1@51 |"
            /* now the other one is superseded */
            " kept t#b 0:2@0")
TEST_SCRIPT(test_an_id_already_superseded_is_believed_of_one_once_stale,
            "say t#a 0:1@50 | say t#b 0:2@0 |"
            " 90x kept t#a 0:1@51 & wait 10 | taken t#a 0:1@51 |"
            " is t#a 0:1@51")
/* Answers that go back to different ids do not count together. */
TEST_SCRIPT(test_an_id_already_superseded_is_not_believed_for_others,
            "brokers 1 | say t#a 0:1@50 | say t#b 0:2@50 |"
            " say t#c 0:2@3 |"
            " 30x kept t#a 0:1@51 / t#b 0:1@51 / t#c 0:1@2 & wait 2 |"
            " 30x kept t#a 0:1@51 / t#b 0:1@51 & wait 2 |"
            " is t#c 0:2@3 | sent 1 | 30x kept t#a 0:1@51 & wait 2")

TEST_MAIN()
