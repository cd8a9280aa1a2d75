/*
 * What says the same again is not even parsed: digests, and what must never
 * get one. csrc/store/answer_order.h has the theory.
 */
#include "support/cache_fixture.h"

static uint64_t hits(cw_t *w) {
        return cw_stats(w).digest_hits;
}

static gen_cluster_t *cluster_new(uint32_t topics) {
        gen_shape_t shape = {.seed = test_seed, .brokers = 5,
                             .first_broker = 1, .topics = topics,
                             .partitions = 4, .replication = 3};

        return gen_cluster_new(&shape);
}

static rdmeta_err_t all_of(cw_t *w, const gen_cluster_t *cluster) {
        const rdmeta_request_t r = cw_request(w, RDMETA_ASKED_ALL);
        gen_bytes_t body         = {0};
        rdmeta_err_t err;

        gen_response(cluster, w->api_version, &body);
        err = cw_apply(w, body.data, body.len, &r);
        gen_bytes_free(&body);
        return err;
}

/* Every topic by every call: as it was said. */
static void is_said(cw_t *w, const gen_cluster_t *cluster) {
        uint32_t i, p;

        for (i = 0; i < cluster->topic_count; i++) {
                const gen_topic_t *t = &cluster->topics[i];
                for (p = 0; p < t->partition_count; p++)
                        CHECK(rdmeta_leader(w->reader, t->name.data,
                                            t->name.len, t->partitions[p].id,
                                            w->now.mono_us) ==
                              t->partitions[p].leader);
        }
}

/* Said again in another order: skipped all the same, nothing changes but the
 * deadline. */
static void again(cw_t *w, const gen_cluster_t *cluster) {
        const uint64_t version = cw_version(w), before = hits(w);

        cw_pass(w, CW_S);
        CHECK(!all_of(w, cluster));
        CHECK(hits(w) - before == cluster->topic_count);
        CHECK(w->applied.unchanged == cluster->topic_count);
        CHECK(w->applied.changed == 0 && w->applied.absent == 0);
        CHECK(cw_version(w) == version);
        CHECK(cw_stats(w).shared_deadline_us ==
              w->now.mono_us + w->conf.max_age_us);
        is_said(w, cluster);
}

static void rotate(gen_cluster_t *cluster, uint32_t by) {
        gen_topic_t *copy = malloc(by * sizeof(*copy));

        CHECK(copy);
        memcpy(copy, cluster->topics, by * sizeof(*copy));
        memmove(cluster->topics, cluster->topics + by,
                (cluster->topic_count - by) * sizeof(*copy));
        memcpy(cluster->topics + cluster->topic_count - by, copy,
               by * sizeof(*copy));
        free(copy);
}

static void test_the_same_again_is_not_parsed(void) {
        gen_cluster_t *cluster = cluster_new(200);
        int version;
        cw_t w;

        for (version = 0; version <= 13; version++) {
                cw_init(&w, NULL);
                w.api_version = version;
                CHECK(!all_of(&w, cluster));
                CHECK(w.applied.changed == 200 && hits(&w) == 0);
                again(&w, cluster);
                again(&w, cluster);
                cw_destroy(&w);
        }
        gen_cluster_free(cluster);
}

static void test_the_same_again_rotated_or_shuffled_is_not_parsed(void) {
        gen_cluster_t *cluster = cluster_new(200);
        cw_t w;
        int i;

        cw_init(&w, NULL);
        CHECK(!all_of(&w, cluster));
        for (i = 0; i < 20; i++) {
                if (i % 2)
                        rotate(cluster, 1 + (uint32_t)i * 9);
                else
                        gen_cluster_shuffle(cluster, test_seed + (uint64_t)i);
                again(&w, cluster);
        }
        gen_cluster_free(cluster);
        cw_destroy(&w);
}

static void test_what_differs_is_parsed_and_the_rest_is_not(void) {
        gen_cluster_t *cluster = cluster_new(200);
        test_rng_t rng         = test_rng(4);
        uint64_t before;
        cw_t w;
        int i;

        cw_init(&w, NULL);
        CHECK(!all_of(&w, cluster));
        for (i = 0; i < 50; i++) {
                const size_t t = test_below(&rng, 200);

                gen_move_leader(&cluster->topics[t],
                                (uint32_t)test_below(&rng, 4));
                before = hits(&w);
                CHECK(!all_of(&w, cluster));
                CHECK(w.applied.changed == 1 && w.applied.unchanged == 199);
                CHECK(hits(&w) - before == 199);
                is_said(&w, cluster);
                again(&w, cluster);
        }
        gen_cluster_free(cluster);
        cw_destroy(&w);
}

/* A topic more, one less: the others are found again at once. */
static void test_topics_that_come_and_go_do_not_disturb_the_rest(void) {
        gen_cluster_t *cluster = cluster_new(100);
        uint64_t before;
        cw_t w;

        cw_init(&w, NULL);
        cluster->topic_count = 99;
        CHECK(!all_of(&w, cluster));
        cluster->topic_count = 100;
        rotate(cluster, 50);
        before = hits(&w);
        CHECK(!all_of(&w, cluster));
        CHECK(w.applied.changed == 1 && hits(&w) - before == 99);
        again(&w, cluster);
        cluster->topic_count = 90;
        before               = hits(&w);
        CHECK(!all_of(&w, cluster));
        CHECK(w.applied.absent == 10 && hits(&w) - before == 90);
        again(&w, cluster);
        cluster->topic_count = 100; /* back: their blocks said "missing" */
        before               = hits(&w);
        CHECK(!all_of(&w, cluster));
        CHECK(w.applied.changed == 10 && hits(&w) - before == 90);
        again(&w, cluster);
        gen_cluster_free(cluster);
        cw_destroy(&w);
}

static void test_another_api_version_is_read_anew(void) {
        gen_cluster_t *cluster = cluster_new(50);
        uint64_t before;
        cw_t w;

        cw_init(&w, NULL);
        w.api_version = 13;
        CHECK(!all_of(&w, cluster));
        again(&w, cluster);
        w.api_version = 12;
        before        = hits(&w);
        CHECK(!all_of(&w, cluster));
        CHECK(hits(&w) == before && w.applied.unchanged == 50);
        again(&w, cluster);
        gen_cluster_free(cluster);
        cw_destroy(&w);
}

/* A partial answer of another version: digests stay those of all topics. */
static void test_a_part_in_another_api_version_is_read_each_time(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@1"));
        w.api_version = 11;
        CHECK(!cw_say(&w, "a#a 0:1@1"));
        CHECK(!cw_say(&w, "a#a 0:1@1"));
        CHECK(hits(&w) == 0 && w.applied.unchanged == 1);
        w.api_version = 12;
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK(hits(&w) == 1 && cw_version(&w) == 1);
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK(hits(&w) == 3);
        cw_destroy(&w);
}

/* Partial answers use them too, and each gets its own deadline. */
static void test_a_part_of_the_answer_is_not_parsed_either(void) {
        int64_t shared;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@1; c#c 0:1@1"));
        shared = cw_info(&w, "a").deadline_us;
        cw_pass(&w, CW_S);
        CHECK(!cw_asked(&w, "b", "b#b 0:1@1"));
        CHECK(hits(&w) == 1 && w.applied.unchanged == 1);
        CHECK(cw_info(&w, "a").deadline_us == shared);
        CHECK(cw_info(&w, "b").deadline_us == shared + CW_S);
        cw_pass(&w, CW_S);
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@1; c#c 0:1@1"));
        CHECK(hits(&w) == 4);
        CHECK(cw_info(&w, "b").deadline_us == shared + 2 * CW_S);
        CHECK(!cw_say(&w, "n#n 0:1@1")); /* new by a partial answer */
        CHECK(!cw_say(&w, "n#n 0:1@1"));
        CHECK(hits(&w) == 5);
        cw_destroy(&w);
}

/* Who said it last, skipped or not. */
static void test_what_is_said_again_is_the_last_ones_word(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1; c#c 0:-1@1"));
        w.broker = 2;
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1; c#c 0:-1@1"));
        CHECK(cw_info(&w, "a").source_broker == 2);
        CHECK(cw_info(&w, "c").source_broker == 2);
        w.broker = 3; /* c is read each time, a is not */
        CHECK(!cw_say(&w, "a#a 0:1@1; c#c 0:-1@1"));
        CHECK(cw_info(&w, "a").source_broker == 3);
        CHECK(cw_info(&w, "b").source_broker == 2);
        CHECK(cw_info(&w, "c").source_broker == 3);
        CHECK(cw_version(&w) == 1);
        cw_destroy(&w);
}

/* News that an answer could not name keeps its digest. */
static void test_news_that_was_not_named_is_not_parsed_again(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "a#a 0:1@1"));
        cw_sent(&w);
        CHECK(!cw_all(&w, "a#a 0:1@1; n#n 0:1@1"));
        CHECK(!cw_all(&w, "a#a 0:1@1"));
        CHECK(hits(&w) == 2);
        CHECK(!cw_all(&w, "a#a 0:1@1; n#n 0:1@1"));
        CHECK(hits(&w) == 4);
        cw_destroy(&w);
}

/* ---- never ------------------------------------------------------------- */

/* `second` is said twice after `first`: read both times. */
static void never(const char *first, const char *second) {
        uint64_t before;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, first));
        CHECK(!cw_all(&w, second));
        before = hits(&w);
        CHECK(!cw_all(&w, second));
        CHECK(hits(&w) == before);
        CHECK(w.applied.changed == 0);
        cw_destroy(&w);
}

static void test_what_was_kept_back_never_gets_a_digest(void) {
        never("t#a 0:1@5", "t#a 0:2@4");               /* a lower epoch */
        never("t#a 0:1@5 1:1@5", "t#a 0:2@4 1:2@6");   /* in one row */
        never("t#a 0:1@5 1:1@5", "t#a 0:1@5");         /* shorter */
        never("t#a 0:1@5", "t!5");                     /* an error */
        never("t#a 0:1@5", "t!3");                     /* unknown */
}

static void test_what_was_merged_never_gets_a_digest(void) {
        never("t#a 0:1@5", "t#a 0:1");    /* the highest epoch is kept */
        never("t#a 0:1@5", "t 0:1@6");    /* the id is */
        never("t#a^8 0:1@5", "t#a 0:1@6"); /* operations are */
}

static void test_what_needs_another_look_never_gets_a_digest(void) {
        never("t#a 0:1@5", "t#a 0:-1@6/r1/e5");
        never("t#a 0:1@5", "t#a 0:9@6");
}

/* Stale answers are counted though they are the same bytes each time. */
static void test_older_answers_are_counted_each_time(void) {
        cw_t w;
        int i;

        cw_init(&w, NULL);
        w.brokers = "1";
        CHECK(!cw_all(&w, "t#a 0:1@5; u#u 0:1@1"));
        for (i = 0; i < 5; i++, cw_pass(&w, 2 * CW_S))
                CHECK(!cw_all(&w, "t#a 0:1@3; u#u 0:1@1"));
        CHECK_TEXT(cw_topic(&w, "t"), "t#a 0:1@3");
        CHECK(cw_stats(&w).topics_kept_back == 4);
        cw_destroy(&w);
}

static void test_a_leader_hint_takes_the_digest_away(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "t#a 0:1@5; u#u 0:1@1"));
        CHECK(cw_leader_hint(&w, "t", 0, 2, 6, NULL));
        CHECK(!cw_all(&w, "t#a 0:1@5; u#u 0:1@1"));
        CHECK(hits(&w) == 1 && w.applied.kept_back == 1);
        CHECK(cw_leader(&w, "t", 0) == 2);
        cw_destroy(&w);
}

/* A refused answer has read some: it must not count. */
static void test_an_answer_that_was_refused_counts_nothing(void) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK(cw_all(&w, "a#a 0:1@1; b#b 0:1@1; a#a 0:1@1") != 0);
        CHECK(hits(&w) == 0);
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@1"));
        CHECK(hits(&w) == 2);
        cw_destroy(&w);
}

/* Answers again and again of topics that come and go: the order of answers
 * must not grow with the number of names that ever were. */
static void test_names_that_are_gone_leave_no_room_behind(void) {
        char text[64];
        uint64_t bytes = 0;
        cw_t w;
        int i;

        cw_init(&w, NULL);
        CHECK(!cw_all(&w, "a#a 0:1@1; b#b 0:1@1"));
        for (i = 0; i < 4000; i++) {
                snprintf(text, sizeof(text), "name-%d!3", i);
                CHECK(!cw_say(&w, text));
                cw_pass(&w, 1000 * CW_S);
                cw_sweep(&w); /* past its time */
                cw_pass(&w, 1000 * CW_S);
                cw_sweep(&w); /* and no longer remembered */
                if (i == 1000)
                        bytes = cw_stats(&w).bytes - cw_stats(&w).bytes_ring;
        }
        CHECK(cw_stats(&w).topics == 2 && cw_stats(&w).negatives == 0);
        CHECK(cw_stats(&w).bytes - cw_stats(&w).bytes_ring <= bytes + 65536);
        cw_destroy(&w);
}

int main(void) {
        test_begin(60);
        RUN(test_the_same_again_is_not_parsed);
        RUN(test_the_same_again_rotated_or_shuffled_is_not_parsed);
        RUN(test_what_differs_is_parsed_and_the_rest_is_not);
        RUN(test_topics_that_come_and_go_do_not_disturb_the_rest);
        RUN(test_another_api_version_is_read_anew);
        RUN(test_a_part_in_another_api_version_is_read_each_time);
        RUN(test_a_part_of_the_answer_is_not_parsed_either);
        RUN(test_what_is_said_again_is_the_last_ones_word);
        RUN(test_news_that_was_not_named_is_not_parsed_again);
        RUN(test_what_was_kept_back_never_gets_a_digest);
        RUN(test_what_was_merged_never_gets_a_digest);
        RUN(test_what_needs_another_look_never_gets_a_digest);
        RUN(test_older_answers_are_counted_each_time);
        RUN(test_a_leader_hint_takes_the_digest_away);
        RUN(test_an_answer_that_was_refused_counts_nothing);
        RUN(test_names_that_are_gone_leave_no_room_behind);
        return 0;
}
