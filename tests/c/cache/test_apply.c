/* apply: the counts of a whole answer, and the deadlines that it leaves alone.
 */
#include "support/cache_fixture.h"

#include <pthread.h>
#include <sched.h>

/* The answer confirms the other rows, so the deadline moves. An answer that is
 * kept back wholly, or came too late, moves nothing. */
CACHE_TEST(test_a_topic_taken_in_part_moves_its_deadline) {
        int64_t deadline;

        CHECK(!cw_say(w, "t#a 0:1@5 1:1@5"));
        deadline = cw_info(w, "t").deadline_us;
        cw_pass(w, CW_S);
        CHECK(!cw_say(w, "t#a 0:2@4 1:2@6"));
        CHECK(w->applied.kept_back == 1 && w->applied.changed == 1);
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:1@5 1:2@6");
        CHECK(cw_info(w, "t").deadline_us == deadline + CW_S);
        cw_pass(w, CW_S);
        CHECK(!cw_all(w, "t#a 0:2@4 1:2@6"));
        CHECK(cw_info(w, "t").deadline_us == deadline + 2 * CW_S);
        deadline += 2 * CW_S;
        cw_pass(w, CW_S);
        CHECK(!cw_say(w, "t#a 0:2@4 1:2@5"));
        CHECK(cw_info(w, "t").deadline_us == deadline);
        cw_sent(w);
        w->sent_version = 0;
        CHECK(!cw_say(w, "t#a 0:2@4 1:2@6"));
        CHECK(cw_info(w, "t").deadline_us == deadline);
        cw_sent(w);
        cw_pass(w, CW_S);
        CHECK(!cw_all(w, "t#a 0:1@5 1:2@6"));
        CHECK(cw_info(w, "t").deadline_us > deadline);
}

/* Topics without a name are read last. All others are read once. */
CACHE_TEST(test_a_topic_without_a_name_does_not_make_others_count_twice) {
        CHECK(!cw_say(w, "gone#g 0:1@1"));
        CHECK(!cw_say(w, "?#g!100; t#a 0:-1@5/r1 1:9@5/r1,9 2:-1@1/r1/e72"));
        CHECK(w->applied.leaderless == 2);
        CHECK(w->applied.listener_not_found == 1);
        CHECK(w->applied.unreachable == 1);
        CHECK(w->applied.negative == 1);
        CHECK(cw_state(w, "gone") == RDMETA_UNKNOWN_TOPIC);
}

static void *wait_for_ever(void *opaque) {
        cw_t *w = (cw_t *)opaque;

        return (void *)(uintptr_t)rdmeta_cache_wait(w->cache, cw_version(w),
                                                    NULL, 0, INT64_MAX);
}

/* The longest time-out does not overflow to one in the past. */
CACHE_TEST(test_the_longest_wait_ends_with_a_change) {
        pthread_t waiter;
        rdmeta_stats_t stats;
        void *version;

        CHECK(!cw_say(w, "t#a 0:1@1"));
        CHECK(!pthread_create(&waiter, NULL, wait_for_ever, w));
        do {
                sched_yield();
                stats = cw_stats(w);
        } while (!stats.waiters);
        CHECK(!cw_say(w, "t#a 0:2@2"));
        CHECK(!pthread_join(waiter, &version));
        CHECK((uintptr_t)version == cw_version(w));
}

TEST_MAIN()
