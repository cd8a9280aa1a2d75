/*
 * Names in flight: what readers and further hints see of a hint, when a hint
 * ends, and what stays afterwards.
 */
#include "support/cache_fixture.h"

static size_t hint_ttl(cw_t *w, const char *name, int64_t ttl_us) {
        const rdmeta_str_t s = test_str(name);
        rdmeta_str_t ask;
        size_t n;

        CHECK(!rdmeta_cache_hint(w->cache, &s, 1, 0, ttl_us, w->now, &ask, &n));
        cw_check(w);
        CHECK(!n || (ask.data == s.data && ask.len == s.len));
        return n;
}

static int64_t purge(cw_t *w, const char *name) {
        const rdmeta_str_t s = test_str(name);
        const int64_t n      = rdmeta_cache_purge_hints(
                w->cache, name ? &s : NULL, name != NULL, w->now);

        cw_check(w);
        return n;
}

/* ---- lifetimes --------------------------------------------------------- */

CACHE_TEST(test_a_hint_lasts_as_long_as_configured) {
        CHECK_TEXT(cw_hint(w, "t", 0), "t");
        CHECK(cw_state(w, "t") == RDMETA_WAITING);
        CHECK(cw_sweep(w) == w->now.mono_us + 60 * CW_S + 1);
        cw_pass(w, 60 * CW_S);
        CHECK(cw_state(w, "t") == RDMETA_WAITING);
        CHECK_TEXT(cw_hint(w, "t", 0), "");
        cw_pass(w, 1);
        CHECK(cw_state(w, "t") == RDMETA_NOT_CACHED);
        CHECK(cw_sweep(w) == INT64_MAX);
        CHECK(cw_stats(w).hints == 0 && cw_version(w) == 0);
        CHECK_TEXT(cw_hint(w, "t", 0), "t");
}

/* A hint past its deadline has ended, also before a sweep. */
CACHE_TEST(test_a_hint_past_its_deadline_is_asked_for_again) {
        CHECK(!cw_all(w, "t#a 0:1@1"));
        CHECK_TEXT(cw_hint(w, "t n", RDMETA_HINT_FORCE), "t n");
        cw_pass(w, 60 * CW_S);
        CHECK_TEXT(cw_hint(w, "t n", RDMETA_HINT_FORCE), "");
        cw_pass(w, 1);
        CHECK_TEXT(cw_hint(w, "n", 0), "n");
        CHECK_TEXT(cw_hint(w, "t", RDMETA_HINT_FORCE), "t");
        CHECK_TEXT(cw_hint(w, "n t", RDMETA_HINT_FORCE), "");
        CHECK(cw_state(w, "n") == RDMETA_WAITING);
}

CACHE_TEST(test_hints_end_in_the_order_of_their_own_deadlines) {
        static const int64_t ttls[] = {30, 5, 900, 1, 60};
        char name[2] = "a";
        int i;

        for (i = 0; i < 5; i++, name[0]++)
                CHECK(hint_ttl(w, name, ttls[i] * CW_S) == 1);
        for (i = 5; i > 0; i--) {
                const int64_t next = cw_sweep(w);

                CHECK(cw_stats(w).hints == (uint64_t)i);
                CHECK(next > w->now.mono_us);
                cw_pass(w, next - w->now.mono_us);
        }
        CHECK(cw_sweep(w) == INT64_MAX);
        CHECK(w->now.mono_us == 1900 * CW_S + 1);
}

CACHE_TEST(test_a_hint_without_a_ttl_has_the_configured_one) {
        CHECK(hint_ttl(w, "t", 0) == 1 && hint_ttl(w, "u", -5) == 1);
        CHECK(hint_ttl(w, "v", INT64_MAX) == 1);
        cw_pass(w, 60 * CW_S);
        CHECK(cw_state(w, "t") == RDMETA_WAITING);
        CHECK(cw_state(w, "u") == RDMETA_WAITING);
        cw_pass(w, INT64_MAX / 2);
        CHECK(cw_state(w, "t") == RDMETA_NOT_CACHED);
        CHECK(cw_state(w, "v") == RDMETA_WAITING);
}

CACHE_TEST(test_a_replaced_hint_begins_anew) {
        CHECK(!cw_all(w, "t#a 0:1@1"));
        CHECK_TEXT(cw_hint(w, "n t", RDMETA_HINT_FORCE), "n t");
        cw_pass(w, 50 * CW_S);
        CHECK_TEXT(cw_hint(w, "n t", RDMETA_HINT_REPLACE), "n t");
        cw_pass(w, 50 * CW_S);
        CHECK(cw_sweep(w) == w->now.mono_us + 10 * CW_S + 1);
        CHECK(cw_state(w, "n") == RDMETA_WAITING);
        CHECK_TEXT(cw_hint(w, "n t", RDMETA_HINT_FORCE), "");
        cw_pass(w, 10 * CW_S + 1);
        CHECK(cw_state(w, "n") == RDMETA_NOT_CACHED);
}

/* ---- hints of known topics --------------------------------------------- */

CACHE_TEST(test_a_hint_never_hides_a_known_topic) {
        CHECK(!cw_all(w, "v#a 0:1@1; s#b 0:2@1"));
        cw_pass(w, 901 * CW_S);
        CHECK(!cw_say(w, "v#a 0:1@1; u!3; d!29; b!17"));
        CHECK_TEXT(cw_hint(w, "v s u d b", RDMETA_HINT_FORCE), "v s u d b");
        CHECK(cw_leader(w, "v", 0) == 1);
        CHECK(cw_leader(w, "s", 0) == RDMETA_STALE);
        CHECK(cw_leader_stale(w, "s", 0) == 2);
        CHECK(cw_state(w, "u") == RDMETA_UNKNOWN_TOPIC);
        CHECK(cw_state(w, "d") == RDMETA_DENIED);
        CHECK(cw_state(w, "b") == RDMETA_INVALID);
        CHECK(cw_stats(w).hints == 5);
        CHECK(purge(w, NULL) == 5);
        CHECK(cw_leader(w, "v", 0) == 1);
        CHECK(cw_leader_stale(w, "s", 0) == 2);
        CHECK(cw_state(w, "u") == RDMETA_UNKNOWN_TOPIC);
        CHECK(cw_state(w, "d") == RDMETA_DENIED);
        CHECK(cw_state(w, "b") == RDMETA_INVALID);
}

/* A negative past its deadline, or a removed topic, is waiting like a new name;
 * the cache still keeps its id and epochs. */
CACHE_TEST(test_a_hint_of_a_topic_past_its_deadline_is_waiting) {
        CHECK(!cw_all(w, "t#a 0:1@5; g#g 0:1@5"));
        CHECK(!cw_all(w, "t!3"));
        w->broker = 2;
        CHECK(!cw_all(w, "t!3")); /* g: absent from both */
        cw_pass(w, CW_S);
        CHECK(cw_state(w, "t") == RDMETA_NOT_CACHED);
        CHECK_TEXT(cw_hint(w, "t g", 0), "t g");
        CHECK(cw_state(w, "t") == RDMETA_WAITING);
        CHECK(cw_state(w, "g") == RDMETA_WAITING);
        CHECK(purge(w, NULL) == 2);
        CHECK(cw_state(w, "t") == RDMETA_NOT_CACHED);
        CHECK(cw_state(w, "g") == RDMETA_NOT_CACHED);
        CHECK_TEXT(cw_hint(w, "t g", 0), "t g");
        CHECK(!cw_asked(w, "t g", "t#a 0:2@4; g#g 0:2@4"));
        CHECK(w->applied.kept_back == 2); /* still older than the kept epochs */
        CHECK(cw_state(w, "t") == RDMETA_NOT_CACHED);
        CHECK(cw_state(w, "g") == RDMETA_NOT_CACHED);
        w->broker = 3; /* the second broker that gives g */
        CHECK(!cw_asked(w, "t g", "t#a 0:2@5; g#g 0:2@5"));
        CHECK(cw_leader(w, "t", 0) == 2 && cw_leader(w, "g", 0) == 2);
}

/* Makes topics that are unknown, denied, absent and removed; their deadlines
 * pass, and they are in flight. */
static void make_overdue(cw_t *w) {
        cw_init(w, NULL);
        CHECK(!cw_all(w, "u!3; d!29; m#m 0:1@5; g#g 0:1@5; v#v 0:1@1"));
        CHECK(!cw_all(w, "u!3; d!29; m#m 0:1@5; v#v 0:1@1"));
        w->broker = 2;
        CHECK(!cw_all(w, "u!3; d!29; m#m 0:1@5; v#v 0:1@1")); /* g is gone */
        w->broker = 1;
        CHECK(!cw_all(w, "u!3; d!29; v#v 0:1@1")); /* m is absent */
        cw_pass(w, 20 * CW_S);
        CHECK_TEXT(cw_hint(w, "u d m g", 0), "u d m g");
}

static void check_overdue(cw_t *w, int32_t wanted) {
        static const char *const names[] = {"u", "d", "m", "g"};
        int i;

        for (i = 0; i < 4; i++) {
                CHECK(cw_state(w, names[i]) == wanted);
                CHECK(cw_leader(w, names[i], 0) == wanted);
                CHECK(cw_leader_stale(w, names[i], 0) == wanted);
        }
}

TEST(test_a_hint_of_a_topic_past_its_deadline_can_be_purged) {
        cw_t w;

        make_overdue(&w);
        check_overdue(&w, RDMETA_WAITING);
        CHECK(purge(&w, NULL) == 4);
        check_overdue(&w, RDMETA_NOT_CACHED);
        cw_destroy(&w);
}

TEST(test_a_hint_of_a_topic_past_its_deadline_ends_by_itself) {
        int replaced;
        cw_t w;

        for (replaced = 0; replaced < 2; replaced++) {
                make_overdue(&w);
                if (replaced) {
                        cw_pass(&w, 30 * CW_S);
                        CHECK_TEXT(cw_hint(&w, "u d m g",
                                           RDMETA_HINT_REPLACE),
                                   "u d m g");
                }
                cw_pass(&w, 60 * CW_S);
                check_overdue(&w, RDMETA_WAITING);
                cw_pass(&w, 1);
                check_overdue(&w, RDMETA_NOT_CACHED);
                CHECK(cw_stats(&w).hints == 4); /* there was no sweep */
                cw_sweep(&w);
                check_overdue(&w, RDMETA_NOT_CACHED);
                CHECK(cw_stats(&w).hints == 0);
                cw_destroy(&w);
        }
}

static int64_t deadline_of(rdmeta_reader_t *r, const char *name,
                           int64_t mono_us) {
        const rdmeta_topic_t *t;
        rdmeta_topic_info_t info;

        rdmeta_reader_enter(r);
        rdmeta_topic_find(r, name, strlen(name), mono_us, &t);
        CHECK(t);
        rdmeta_topic_info(r, t, mono_us, &info);
        rdmeta_reader_leave(r);
        return info.deadline_us;
}

/* The end of a hint is not a deadline of its topic, and images lack it. */
TEST(test_the_end_of_a_hint_is_not_a_deadline_of_a_topic) {
        rdmeta_image_t *image;
        rdmeta_reader_t *r;
        cw_t w;

        make_overdue(&w);
        CHECK(deadline_of(w.reader, "u", w.now.mono_us) ==
              RDMETA_DEADLINE_ASKED);
        image = rdmeta_cache_image(w.cache, w.now);
        r     = rdmeta_image_reader(image, 0);
        CHECK(r && rdmeta_leader(r, "u", 1, 0, w.now.mono_us) ==
                           RDMETA_NOT_CACHED);
        CHECK(deadline_of(r, "u", w.now.mono_us) == RDMETA_DEADLINE_ASKED + 1);
        rdmeta_reader_destroy(r);
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

/* The topic was removed and is asked for again. A broker answers that lags in
 * one partition; the cache takes the other one from it. */
CACHE_TEST(test_a_removed_topic_that_comes_back_in_part_is_valid) {
        int64_t deadline;

        CHECK(!cw_all(w, "t#a 0:1@5 1:1@5; u#b 0:1@1"));
        CHECK(!cw_all(w, "u#b 0:1@1"));
        cw_sweep_after(w, 20 * CW_S);
        cw_pass(w, 16 * CW_S); /* past the grace time */
        CHECK_TEXT(cw_hint(w, "t", 0), "t");
        CHECK(!cw_asked(w, "t", "t#a 0:1@4 1:2@6"));
        CHECK(cw_leader(w, "t", 0) == 1 && cw_leader(w, "t", 1) == 2);
        deadline = deadline_of(w->reader, "t", w->now.mono_us);
        CHECK(deadline > w->now.mono_us && rdmeta_deadline_plain(deadline));
}

/* No time is later than INT64_MAX, and the shared deadline is not a time. */
CACHE_TEST(test_deadlines_end_at_the_end_of_time_too) {
        CHECK(!cw_all(w, "t#a 0:1@5; u#b 0:1@1"));
        CHECK(!cw_all(w, "u#b 0:1@1"));
        w->now.mono_us = INT64_MAX;
        cw_sweep(w);
        CHECK(cw_state(w, "t") == RDMETA_NOT_CACHED);
        CHECK(cw_stats(w).retained == 0 && cw_stats(w).topics == 1);
}

/* A hint does not keep an absent topic for ever. */
CACHE_TEST(test_a_hint_of_an_absent_topic_only_postpones_its_removal) {
        CHECK(!cw_all(w, "t#a 0:1@5; u#b 0:1@1"));
        CHECK(!cw_all(w, "u#b 0:1@1"));
        CHECK_TEXT(cw_hint(w, "t", RDMETA_HINT_FORCE), "t");
        cw_sweep_after(w, 20 * CW_S);
        CHECK(purge(w, "t") == 1);
        cw_sweep_after(w, 1);
        CHECK_TEXT(cw_changes(w, 2), "v3 topic_removed(expiry) t#a");
}

/* An error that leaves the topic as it was is an answer all the same. */
CACHE_TEST(test_an_answer_that_changes_nothing_ends_the_hint) {
        CHECK(!cw_all(w, "t#a 0:1@5"));
        CHECK_TEXT(cw_hint(w, "n t", RDMETA_HINT_FORCE), "n t");
        CHECK(!cw_asked(w, "n t", "n!5; t!5"));
        CHECK(cw_stats(w).hints == 0);
        CHECK(cw_state(w, "n") == RDMETA_NOT_CACHED);
        CHECK(cw_leader(w, "t", 0) == 1);
        CHECK_TEXT(cw_hint(w, "n", 0), "n");
        cw_pass(w, 61 * CW_S); /* past the hint's deadline, before a sweep */
        CHECK(!cw_say(w, "n!5"));
        cw_sweep(w);
        CHECK(cw_sweep(w) == cw_info(w, "t").deadline_us + 1);
        CHECK(cw_stats(w).hints == 0 && cw_stats(w).retained == 0);
}

/* ---- many, and none ---------------------------------------------------- */

CACHE_TEST(test_a_hint_of_no_names_does_nothing) {
        size_t n = 7;

        CHECK(!rdmeta_cache_hint(w->cache, NULL, 0, 0, 0, w->now, NULL, &n));
        CHECK(n == 0);
        CHECK(purge(w, NULL) == 0 && purge(w, "t") == 0);
}

CACHE_TEST(test_an_answer_to_a_hint_is_recorded_as_a_new_topic) {
        CHECK(!cw_say(w, "a#a 0:1@1"));
        cw_hint(w, "t", 0);
        CHECK(!cw_asked(w, "t", "t#b 0:1@1"));
        CHECK_TEXT(cw_changes(w, 1), "v2 topic_added t#b");
        cw_hint(w, "u", 0);
        CHECK(!cw_asked(w, "u", "u!29"));
        CHECK_TEXT(cw_changes(w, 2),
                   "v3 topic_error u TOPIC_AUTHORIZATION_FAILED");
}

CACHE_TEST(test_one_wrong_name_refuses_the_whole_hint) {
        const rdmeta_str_t names[] = {{"a", 1}, {"", 0}, {"b", 1}};
        const rdmeta_str_t nulls[] = {{"a", 1}, {NULL, 0}};
        rdmeta_str_t ask[3];
        size_t n;

        CHECK(rdmeta_cache_hint(w->cache, names, 3, 0, 0, w->now, ask, &n) ==
              RDMETA_ERR_ARGUMENT);
        CHECK(rdmeta_cache_hint(w->cache, nulls, 2, 0, 0, w->now, ask, &n) ==
              RDMETA_ERR_ARGUMENT);
        CHECK(n == 0 && cw_stats(w).hints == 0);
        CHECK(cw_state(w, "a") == RDMETA_NOT_CACHED);
}

/* Twice as many names as topics: each is asked for once. */
TEST(test_thousands_of_names_are_each_asked_for_once) {
        enum { N = 5000 };
        static char text[N][16];
        static rdmeta_str_t names[2 * N], ask[2 * N];
        size_t i, n;
        cw_t w;

        for (i = 0; i < 2 * N; i++) {
                snprintf(text[i % N], sizeof(text[0]), "name-%zu", i % N);
                names[i] = test_str(text[i % N]);
        }
        cw_init(&w, NULL);
        CHECK(!rdmeta_cache_hint(w.cache, names, 2 * N, 0, 0, w.now, ask, &n));
        CHECK(n == N && cw_stats(&w).hints == N);
        cw_check(&w);
        CHECK(!rdmeta_cache_hint(w.cache, names, 2 * N, 0, 0, w.now, ask, &n));
        CHECK(n == 0);
        CHECK(!rdmeta_cache_hint(w.cache, names, 2 * N, RDMETA_HINT_REPLACE,
                                 0, w.now, ask, &n));
        CHECK(n == N);
        CHECK(purge(&w, "name-77") == 1 && purge(&w, "name-77") == 0);
        CHECK(purge(&w, NULL) == N - 1 && cw_version(&w) == 0);
        cw_destroy(&w);
}

/* Otherwise no caller would ask for these names: the hint returned none. */
TEST(test_a_hint_that_fails_leaves_no_name_in_flight) {
        static const char *const names[] = {"a", "b", "c"};
        rdmeta_str_t topics[3], ask[3];
        rdmeta_err_t err = RDMETA_ERR_NO_MEMORY;
        size_t nth, n;
        cw_t w;

        for (n = 0; n < 3; n++)
                topics[n] = test_str(names[n]);
        for (nth = 1; err; nth++) {
                cw_init(&w, NULL);
                w.heap.fail_at = w.heap.calls + nth;
                err = rdmeta_cache_hint(w.cache, topics, 3, 0, 0, w.now, ask,
                                        &n);
                w.heap.fail_at = 0;
                CHECK(n == (err ? 0 : 3));
                CHECK(cw_stats(&w).hints == n);
                CHECK_TEXT(cw_hint(&w, "a b c", 0), err ? "a b c" : "");
                cw_destroy(&w);
        }
        CHECK(nth > 3);
}

/* Walks, changes and counts of topics leave out names in flight. */
CACHE_TEST(test_a_name_in_flight_is_not_a_topic) {
        const rdmeta_topic_t *t;

        CHECK(!cw_all(w, "t#a 0:1@1"));
        cw_hint(w, "n", 0);
        CHECK_TEXT(cw_walk(w, "", 7), "-t ");
        CHECK(cw_stats(w).topics == 1 && cw_stats(w).negatives == 0);
        rdmeta_reader_enter(w->reader);
        CHECK(rdmeta_topic_find(w->reader, "n", 1, w->now.mono_us, &t) ==
              RDMETA_WAITING);
        CHECK(!t);
        rdmeta_reader_leave(w->reader);
        CHECK_TEXT(cw_changes(w, 1), "");
        CHECK(!cw_all(w, "t#a 0:1@1")); /* n is not absent */
        CHECK(w->applied.absent == 0 && cw_version(w) == 1);
        CHECK(cw_stats(w).hints == 0);
}

/* A hint does not change a topic's deadline. */
CACHE_TEST(test_a_stale_topic_that_is_asked_for_keeps_its_age) {
        int64_t deadline[2];

        CHECK(!cw_all(w, "t#a 0:1@5"));
        CHECK(!cw_asked(w, "u", "u#u 0:2@5"));
        deadline[0] = cw_info(w, "t").deadline_us;
        deadline[1] = cw_info(w, "u").deadline_us;
        cw_pass(w, 2000 * CW_S);
        CHECK_TEXT(cw_hint(w, "t u", 0), "t u");
        CHECK(cw_leader(w, "t", 0) == RDMETA_STALE);
        CHECK(cw_leader(w, "u", 0) == RDMETA_STALE);
        CHECK(cw_leader_stale(w, "t", 0) == 1);
        CHECK(cw_info(w, "t").deadline_us == deadline[0]);
        CHECK(cw_info(w, "u").deadline_us == deadline[1]);
}

TEST_MAIN()
