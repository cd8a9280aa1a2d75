/*
 * due(): which topics need another answer, why, and when that ends. Each test
 * also compares the list with a walk over all topics. The letters of cw_due():
 * No leader, Unreachable, Kept back, ask by nAme, abSent, Denied.
 */
#include "support/cache_fixture.h"

/* Checks what is due, and that a walk finds the same. */
static void check_due(cw_t *w, const char *wanted) {
        CHECK_TEXT(cw_due(w), wanted);
        cw_check_due(w);
}

/* ---- each reason ------------------------------------------------------- */

CACHE_TEST(test_a_leaderless_topic_is_due_until_it_has_a_leader) {
        int i;

        check_due(w, "");
        for (i = 0; i < 3; i++) { /* the same bytes again, which are read */
                CHECK(!cw_all(w, "a 0:1@5; b 0:1@5 1:-1@6/e5"));
                check_due(w, "b=N");
        }
        CHECK(!cw_say(w, "a 0:2@6")); /* says nothing of b */
        check_due(w, "b=N");
        CHECK(!cw_say(w, "b 0:-1@7 1:2@7"));
        check_due(w, "b=N");
        CHECK(!cw_say(w, "b 0:1@8 1:2@7"));
        check_due(w, "");
}

CACHE_TEST(test_a_leader_hint_ends_the_lack_of_a_leader) {
        CHECK(!cw_all(w, "a 0:-1@5 1:-1@5; b 0:9@5"));
        check_due(w, "a=N b=U");
        CHECK(cw_leader_hint(w, "a", 0, 2, 6, NULL));
        check_due(w, "a=N b=U");
        CHECK(cw_leader_hint(w, "a", 1, 2, 6, NULL));
        check_due(w, "b=U");
        CHECK(cw_leader_hint(w, "a", 1, 9, 7, "h9")); /* broker 9 is known */
        check_due(w, "");
}

CACHE_TEST(test_a_leader_that_is_no_broker_is_a_reason) {
        CHECK(!cw_all(w, "a 0:1@5; b 0:9@5 1:1@5; c 0:9@5 1:-1@5"));
        check_due(w, "b=U c=NU");
        w->brokers = "1,2,3,9";
        CHECK(!cw_say(w, ""));
        check_due(w, "c=N");
        w->brokers = "2,3,9"; /* no answer touches a and b */
        CHECK(!cw_say(w, ""));
        check_due(w, "a=U b=U c=N");
        w->brokers = "1,2,3"; /* 1 comes and 9 goes, between two calls */
        CHECK(!cw_say(w, ""));
        CHECK(!cw_say(w, "b 0:2@6 1:2@6"));
        check_due(w, "c=NU");
        CHECK(!cw_all(w, "a 0:1@5; b 0:2@6 1:2@6; c 0:1@6 1:1@6"));
        check_due(w, "");
}

CACHE_TEST(test_a_broker_that_goes_in_an_answer_to_all_is_noticed) {
        CHECK(!cw_all(w, "a 0:1@5; b 0:2@5; c 0:1@5"));
        CHECK(!cw_all(w, "a 0:1@5; b 0:2@5; c 0:1@5"));
        w->brokers = "2,3";
        CHECK(!cw_all(w, "a 0:1@4; b 0:2@5; c 0:1@5"));
        check_due(w, "a=UK c=U");
}

CACHE_TEST(test_an_answer_that_is_kept_back_is_a_reason) {
        CHECK(!cw_say(w, "e#a 0:1@5; i#b 0:1@5; s#c 0:1@5 1:1@5; p#d 0:1@5 "
                          "1:1@5; t#e 0:1@5"));
        CHECK(!cw_say(w, "i#f 0:1@5"));
        check_due(w, "");
        CHECK(!cw_say(w, "e#a 0:1@4; i#b 0:1@5; s#c 0:1@5; p#d 0:2@6 1:1@4; "
                          "t#e!5"));
        check_due(w, "e=K i=K p=K s=K t=K");
        CHECK(!cw_say(w, "x 0:1@1")); /* says nothing of them */
        check_due(w, "e=K i=K p=K s=K t=K");
        CHECK(!cw_say(w, "e#a 0:1@5; i#f 0:1@5; s#c 0:1@5 1:1@5; p#d 0:2@6 "
                          "1:1@5; t#e 0:1@5"));
        check_due(w, "");
}

CACHE_TEST(test_what_is_kept_back_keeps_the_other_reasons) {
        CHECK(!cw_say(w, "a 0:-1@5 1:9@5; d!29"));
        CHECK(!cw_say(w, "a 0:1@4 1:1@4; d!5"));
        check_due(w, "a=NUK d=K");
        cw_pass(w, 11 * CW_S);
        check_due(w, "a=NUK d=KD");
}

CACHE_TEST(test_an_outdated_answer_is_a_reason) {
        cw_sent(w);
        w->sent_known = 0;
        CHECK(!cw_say(w, "a 0:1@5; b 0:1@5"));
        w->sent_known = 1;
        CHECK(!cw_say(w, "a!3; b!29"));
        check_due(w, "a=K b=K");
}

CACHE_TEST(test_an_unknown_id_is_to_be_asked_by_name) {
        CHECK(!cw_say(w, "a#a 0:1@5; b#b 0:-1@5; c#c 0:1@5"));
        CHECK(!cw_say(w, "?#a!100; b#z!103; ?#y!100"));
        check_due(w, "a=AS b=NA");
        CHECK(!cw_say(w, "b#b 0:1@6"));
        check_due(w, "a=AS");
        cw_pass(w, CW_S); /* past the TTL of unknown topics */
        cw_sweep(w);
        check_due(w, "a=AS");
        CHECK(!cw_say(w, "a!3"));
        check_due(w, "a=S");
        w->broker = 2;
        CHECK(!cw_say(w, "a!3"));
        check_due(w, "");
}

CACHE_TEST(test_an_absent_topic_is_due_within_its_grace_time) {
        CHECK(!cw_all(w, "a 0:1@5; b 0:1@5"));
        CHECK(!cw_all(w, "b 0:1@5"));
        check_due(w, "a=S");
        cw_pass(w, 15 * CW_S);
        check_due(w, "a=S");
        cw_hint(w, "a", RDMETA_HINT_FORCE);
        check_due(w, "a=S");
        cw_pass(w, 1);
        check_due(w, "");
        CHECK_TEXT(cw_hint(w, "a", RDMETA_HINT_REPLACE), "a");
        check_due(w, "");
        cw_sweep(w);
        check_due(w, "");
}

CACHE_TEST(test_an_absent_topic_that_returns_or_goes_is_not_due) {
        CHECK(!cw_all(w, "a 0:1@5; b 0:1@5; c 0:1@5"));
        CHECK(!cw_all(w, "c 0:1@5"));
        check_due(w, "a=S b=S");
        CHECK(!cw_say(w, "a 0:1@4"));
        check_due(w, "a=KS b=S");
        CHECK(!cw_say(w, "a 0:1@5"));
        check_due(w, "b=S");
        w->broker = 2; /* a second broker, which does not name b either */
        CHECK(!cw_all(w, "a 0:1@5; c 0:1@5"));
        check_due(w, "");
}

TEST(test_a_denied_topic_is_due_after_its_ttl) {
        cw_t w;
        int swept;

        for (swept = 0; swept < 2; swept++) {
                cw_init(&w, NULL);
                CHECK(!cw_say(&w, "a!29; b!29; c!17; d!3"));
                check_due(&w, "");
                cw_pass(&w, 10 * CW_S);
                check_due(&w, "");
                cw_pass(&w, 1);
                if (swept)
                        cw_sweep(&w);
                check_due(&w, "a=D b=D");
                CHECK_TEXT(cw_hint(&w, "a", 0), "a");
                check_due(&w, "a=D b=D");
                CHECK(!cw_asked(&w, "a", "a!29"));
                check_due(&w, "b=D");
                CHECK(!cw_say(&w, "b 0:1@5"));
                check_due(&w, "");
                cw_pass(&w, 11 * CW_S);
                check_due(&w, "a=D");
                cw_sweep_after(&w, 2000 * CW_S);
                cw_sweep_after(&w, 2000 * CW_S);
                check_due(&w, "");
                cw_destroy(&w);
        }
}

/* ---- what has no part in it -------------------------------------------- */

CACHE_TEST(test_staleness_and_hints_are_no_reasons) {
        cw_hint(w, "unknown", 0);
        CHECK(!cw_say(w, "a 0:1@5; b 0:-1@5; x!3"));
        check_due(w, "b=N");
        cw_sweep_after(w, 2000 * CW_S);
        check_due(w, "b=N");
        cw_hint(w, "a b x", 0);
        check_due(w, "b=N");
        CHECK(!cw_asked(w, "unknown b", "unknown!5; b 0:-1@5"));
        check_due(w, "b=N");
}

/* ---- the end of a topic ------------------------------------------------ */

CACHE_TEST(test_a_topic_that_goes_is_not_due) {
        const char *all = "a#a 0:-1@5; b#b 0:9@5; c#c 0:1@5; d!29; e 0:1@5";

        CHECK(!cw_all(w, all));
        CHECK(!cw_say(w, "c#c 0:1@4"));
        cw_pass(w, 11 * CW_S);
        check_due(w, "a=N b=U c=K d=D");
        CHECK(!cw_say(w, "c#z 0:1@1")); /* it was made again */
        check_due(w, "a=N b=U d=D");
        w->candidates = 1;
        CHECK(!cw_say(w, "b!3")); /* deleted, as the only broker says */
        check_due(w, "a=N d=D");
        CHECK(cw_forget(w, "a d nowhere") == 2);
        check_due(w, "");
        CHECK(!cw_all(w, all));
        CHECK(!cw_say(w, "e 0:1@4"));
        check_due(w, "a=N b=U c=K e=K");
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        check_due(w, "");
}

CACHE_TEST(test_a_removed_topic_is_due_while_answers_disagree) {
        CHECK(!cw_all(w, "a#a 0:1@5; b 0:1@5"));
        CHECK(!cw_say(w, "a!3"));
        w->broker = 2;
        CHECK(!cw_all(w, "b 0:1@5")); /* a is removed */
        CHECK(!cw_say(w, "a#a 0:1@4"));
        check_due(w, "a=K");
        CHECK(!cw_all(w, "b 0:1@5"));
        check_due(w, "");
}

CACHE_TEST(test_another_cluster_leaves_no_reason) {
        CHECK(!cw_all(w, "a 0:-1@5; b 0:9@5; c 0:1@5; d 0:1@5"));
        CHECK(!cw_say(w, "c 0:1@4; d 0:1@4"));
        check_due(w, "a=N b=U c=K d=K");
        w->cluster_id = "other";
        w->flags      = RDMETA_REQ_REBOOTSTRAPPED;
        CHECK(!cw_say(w, "d 0:1@1; e 0:-1"));
        check_due(w, "e=N");
}

/* ---- a load ------------------------------------------------------------ */

TEST(test_after_a_load_due_looks_at_every_topic) {
        rdmeta_image_t *image;
        cw_t from, to;

        cw_init(&from, NULL);
        CHECK(!cw_all(&from, "a 0:-1@5; b 0:9@5; c 0:1@5; d!29; e 0:1@5; "
                             "f 0:1@5"));
        CHECK(!cw_all(&from, "a 0:-1@5; b 0:9@5; c 0:1@4; d!29; f 0:1@5"));
        check_due(&from, "a=N b=U c=K e=S");
        image = rdmeta_cache_image(from.cache, from.now);
        CHECK(image);
        cw_init(&to, NULL);
        CHECK(!rdmeta_cache_load(to.cache, image, to.now));
        cw_check(&to);
        /* Every deadline is past: that of d, and the grace time of e. */
        check_due(&to, "a=N b=U d=D");
        CHECK(!cw_say(&to, "a 0:1@6; c 0:1@4"));
        check_due(&to, "b=U c=K d=D");
        rdmeta_image_unref(image);
        cw_destroy(&to);
        cw_destroy(&from);
}

TEST(test_a_topic_answered_between_load_and_due_is_listed_once) {
        rdmeta_image_t *image;
        cw_t from, to;

        cw_init(&from, NULL);
        CHECK(!cw_all(&from, "a 0:-1@5; b 0:-1@5; c 0:-1@5; d 0:-1@5"));
        image = rdmeta_cache_image(from.cache, from.now);
        CHECK(image);
        cw_init(&to, NULL);
        CHECK(!rdmeta_cache_load(to.cache, image, to.now));
        CHECK(!cw_say(&to, "a 0:-1@4; b 0:1@6; d 0:-1@7"));
        CHECK(cw_leader_hint(&to, "c", 0, 1, 9, NULL));
        check_due(&to, "a=NK d=N");
        rdmeta_image_unref(image);
        cw_destroy(&to);
        cw_destroy(&from);
}

/* ---- the call ---------------------------------------------------------- */

static int32_t count_to(void *opaque, const rdmeta_due_t *due) {
        int *left = opaque;

        CHECK(due->reasons && due->topic.len == 1);
        return --*left ? 0 : 77;
}

static int32_t forget_it(void *opaque, const rdmeta_due_t *due) {
        cw_t *w = opaque;

        CHECK(rdmeta_cache_forget(w->cache, &due->topic, 1, w->now) == 1);
        return 0;
}

CACHE_TEST(test_a_visit_may_end_the_call_and_write_to_the_cache) {
        int left;

        CHECK(!cw_say(w, "a 0:-1; b 0:-1; c 0:-1; d 0:-1"));
        left = 2;
        CHECK(rdmeta_cache_due(w->cache, w->now.mono_us, 0, count_to, &left) ==
              77);
        left = 9;
        CHECK(!rdmeta_cache_due(w->cache, w->now.mono_us, 3, count_to, &left));
        CHECK(left == 6);
        left = 9;
        CHECK(!rdmeta_cache_due(w->cache, w->now.mono_us, 0, count_to, &left));
        CHECK(left == 5);
        CHECK(!rdmeta_cache_due(w->cache, w->now.mono_us, 0, forget_it, w));
        check_due(w, "");
}

/* Applies an answer in which each of n topics has this leader. */
static void say_many(cw_t *w, size_t n, int32_t leader, int32_t epoch) {
        const rdmeta_request_t r = cw_request(w, RDMETA_ASKED_UNKNOWN);
        gen_shape_t shape      = {.seed = 1, .brokers = 3, .first_broker = 1,
                                  .topics = (uint32_t)n, .partitions = 1,
                                  .replication = 1};
        gen_cluster_t *cluster = gen_cluster_new(&shape);
        gen_bytes_t body       = {0};
        size_t i;

        for (i = 0; i < n; i++) {
                cluster->topics[i].partitions[0].leader = leader;
                cluster->topics[i].partitions[0].epoch  = epoch;
        }
        gen_response(cluster, 12, &body);
        CHECK(!cw_apply(w, body.data, body.len, &r));
        gen_bytes_free(&body);
        gen_cluster_free(cluster);
}

CACHE_TEST_WITH(test_the_memory_of_reasons_comes_back, cw_no_changelog) {
        enum { N = 20000 };
        uint64_t before, full;

        say_many(w, N, 1, 1);
        cw_sweep(w);
        before = cw_stats(w).bytes;
        say_many(w, N, -1, 2);
        CHECK(w->applied.leaderless == N);
        full = cw_stats(w).bytes;
        CHECK(full >= before + N * sizeof(rdmeta_note_t));
        say_many(w, N, 1, 3);
        CHECK_TEXT(cw_due(w), "");
        cw_sweep(w);
        CHECK(w->cache->notes.capacity <= 16);
}

TEST(test_an_entry_has_room_for_no_more_than_the_place_of_a_note) {
        CHECK(sizeof(rdmeta_entry_t) == 56);
        CHECK(sizeof(rdmeta_note_t) <= 24);
}

TEST_MAIN()
