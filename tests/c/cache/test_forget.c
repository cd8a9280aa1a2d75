/* forget(): what goes, what it records, which waiters wake, what stays. */
#include "support/cache_fixture.h"

CACHE_TEST(test_forget_removes_topics_in_one_version) {
        uint64_t version;

        CHECK(!cw_all(w, "a#a 0:1@5; b#b 0:1@5 1:2@5; c 0:1@5"));
        version = cw_version(w);
        CHECK(cw_forget(w, "a nowhere b a") == 2);
        CHECK(cw_version(w) == version + 1);
        CHECK_TEXT(cw_changes(w, version),
                   "v2 topic_removed(purge) a#a; v2 topic_removed(purge) b#b");
        CHECK(cw_leader(w, "a", 0) == RDMETA_NOT_CACHED);
        CHECK(cw_state_id(w, 'b') == RDMETA_NOT_CACHED);
        CHECK(cw_leader(w, "c", 0) == 1);
        CHECK_TEXT(cw_walk(w, "", 7), "-c ");
        CHECK(cw_stats(w).topics == 1 && cw_stats(w).retained == 0);
}

CACHE_TEST(test_forget_of_nothing_that_was_known_makes_no_version) {
        uint64_t version;

        CHECK(!cw_say(w, "d!29; u!3; a 0:1"));
        cw_hint(w, "h", 0);
        version = cw_version(w);
        CHECK(cw_forget(w, "nowhere") == 0);
        CHECK(cw_forget(w, "") == 0);
        CHECK(rdmeta_cache_forget(w->cache, NULL, 0, w->now) == 0);
        CHECK(cw_state(w, "h") == RDMETA_WAITING);
        CHECK(cw_forget(w, "d h u") == 2);
        CHECK(cw_version(w) == version);
        CHECK_TEXT(cw_changes(w, version), "");
        CHECK(cw_state(w, "h") == RDMETA_NOT_CACHED);
        CHECK(cw_state(w, "d") == RDMETA_NOT_CACHED);
        CHECK(cw_stats(w).hints == 0 && cw_stats(w).negatives == 0);
        CHECK_TEXT(cw_hint(w, "d h", 0), "d h");
}

CACHE_TEST(test_impossible_names_are_skipped) {
        static char name[RDMETA_NAME_MAX + 2];
        const rdmeta_str_t names[] = {{"", 0}, {NULL, 0},
                                      {name, sizeof(name)}, {"a", 1}};

        CHECK(!cw_say(w, "a 0:1"));
        CHECK(rdmeta_cache_forget(w->cache, names, 4, w->now) == 1);
        cw_check(w);
}

/* The ids and epochs of a topic are forgotten too: what comes next is the first
 * answer about it. */
CACHE_TEST(test_a_forgotten_topic_may_return_with_lower_epochs) {
        CHECK(!cw_all(w, "a#a 0:1@5; b#b 0:1@5; c 0:1@5"));
        CHECK(!cw_say(w, "a!3; b#b 0:2@4")); /* b has a rewind */
        w->broker = 2;
        CHECK(!cw_all(w, "b#b 0:2@4; c 0:1@5"));
        CHECK(cw_stats(w).retained == 1);
        CHECK(cw_forget(w, "a b") == 1); /* a was removed before */
        CHECK(cw_stats(w).retained == 0);
        CHECK(cw_kept_back(w, "a#a 0:2@1; b#b 0:3@1") == 0);
        CHECK(cw_leader(w, "a", 0) == 2 && cw_leader(w, "b", 0) == 3);
        CHECK_TEXT(cw_due(w), "");
}

CACHE_TEST(test_the_hint_of_a_forgotten_topic_ends) {
        rdmeta_request_t asked;

        CHECK(!cw_say(w, "a 0:1"));
        CHECK_TEXT(cw_hint(w, "a h", RDMETA_HINT_FORCE), "a h");
        CHECK(cw_forget(w, "a h") == 1);
        CHECK(cw_stats(w).hints == 0);
        CHECK_TEXT(cw_hint(w, "h", 0), "h");
        asked = cw_request(w, RDMETA_ASKED_ALL);
        CHECK(!cw_answer(w, &asked, "a 0:2; h 0:2")); /* it brings it back */
        CHECK(cw_leader(w, "a", 0) == 2);
}

CACHE_TEST(test_a_handle_and_a_held_topic_outlive_it) {
        const rdmeta_topic_t *t;
        rdmeta_handle_t *h;
        rdmeta_image_t *image;
        rdmeta_reader_t *r;

        CHECK(!cw_say(w, "a 0:1; b 0:1"));
        h = rdmeta_resolve(w->cache, "a", 1);
        image = rdmeta_cache_image(w->cache, w->now);
        CHECK(h && image);
        rdmeta_reader_enter(w->reader);
        CHECK(!rdmeta_topic_find(w->reader, "a", 1, w->now.mono_us, &t));
        CHECK(cw_forget(w, "a") == 1);
        CHECK(rdmeta_topic_count(t) == 1 && t->name[0] == 'a');
        rdmeta_reader_leave(w->reader);
        CHECK(rdmeta_handle_leader(w->reader, h, 0, w->now.mono_us) ==
              RDMETA_NOT_CACHED);
        r = rdmeta_image_reader(image, 0);
        CHECK(rdmeta_leader(r, "a", 1, 0, w->now.mono_us) == 1);
        rdmeta_reader_destroy(r);
        rdmeta_image_unref(image);
        CHECK(!cw_say(w, "a 0:2"));
        CHECK(rdmeta_handle_leader(w->reader, h, 0, w->now.mono_us) == 2);
        rdmeta_handle_release(h);
}

static void count_call(void *opaque, uint64_t version) {
        (void)version;
        ++*(int *)opaque;
}

CACHE_TEST(test_a_wait_and_a_watch_of_the_topic_end) {
        const rdmeta_str_t a = {"a", 1}, b = {"b", 1};
        rdmeta_watch_t *watch_a, *watch_b;
        int calls_a = 0, calls_b = 0;
        uint64_t version;

        CHECK(!cw_say(w, "a 0:1; b 0:1"));
        version = cw_version(w);
        watch_a = rdmeta_watch_new(w->cache, &a, 1, count_call, &calls_a);
        watch_b = rdmeta_watch_new(w->cache, &b, 1, count_call, &calls_b);
        CHECK(watch_a && watch_b);
        CHECK(cw_forget(w, "a") == 1);
        CHECK(calls_a == 1 && calls_b == 0);
        CHECK(rdmeta_cache_wait(w->cache, version, &a, 1, 0) == version + 1);
        CHECK(rdmeta_cache_wait(w->cache, version, &b, 1, 0) == 0);
        rdmeta_watch_destroy(watch_a);
        rdmeta_watch_destroy(watch_b);
}

/* A cache whose topics come and go does not grow. */
CACHE_TEST_WITH(test_topics_that_come_and_go_leave_no_memory, cw_no_changelog) {
        uint64_t bytes = 0;
        char names[64], rows[128];
        int i;

        for (i = 0; i < 5000; i++) {
                snprintf(names, sizeof(names), "topic-number-%06d", i);
                snprintf(rows, sizeof(rows), "%s#%c 0:-1@5", names,
                         'a' + i % 26);
                CHECK(!cw_say(w, rows));
                if (i >= 20) {
                        snprintf(names, sizeof(names), "topic-number-%06d",
                                 i - 20);
                        CHECK(cw_forget(w, names) == 1);
                }
                if (i % 100 == 0)
                        cw_sweep(w);
                if (i == 1000)
                        bytes = cw_stats(w).bytes;
        }
        CHECK(cw_stats(w).topics == 20);
        CHECK(cw_stats(w).bytes < bytes + bytes / 8);
}

TEST_MAIN()
