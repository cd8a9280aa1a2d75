/*
 * changes: records of each kind, how far back they go, and which waits and
 * watches they end or call.
 */
#include "support/cache_fixture.h"

/* ---- kinds ------------------------------------------------------------- */

/* Checks that the answer `second` after `first` makes the records `wanted`. */
static void diff(const char *first, const char *second, const char *wanted) {
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, first));
        CHECK(!cw_say(&w, second));
        CHECK_TEXT(cw_changes(&w, 1), wanted);
        CHECK_TEXT(cw_changes(&w, cw_version(&w)), "");
        cw_destroy(&w);
}

TEST(test_a_topic_has_one_record_whatever_its_partitions) {
        diff("a#a 0:1@1", "b#b 0:1@1 1:1@1 2:1@1; c 0:1", /* no id: no #x */
                      "v2 topic_added b#b; v2 topic_added c");
        diff("t#a 0:1@1 1:1@1", "t#b 0:2@0 1:1@0", "v2 topic_recreated t#b");
        diff("t#a 0:1@1", "t!3", "v2 topic_absent t#a");
        diff("t#a 0:1@1", "t!17", "v2 topic_error t#a INVALID_TOPIC_EXCEPTION");
        diff("t!3", "t!29", "v2 topic_error t TOPIC_AUTHORIZATION_FAILED");
        diff("t!3", "t#a 0:1@1", "v2 topic_added t#a");
        diff("t#a 0:1@1", "t#a 0:1@1", "");
}

CACHE_TEST(test_whole_records_tell_the_partitions_of_topics_that_came) {
        CHECK(!cw_say(w, "t#a 0:1@1/r1,2"));
        CHECK(!cw_say(w, "b#b 0:1@1 1:2@3/r2,3/i2/o3; c 0:1"));
        CHECK(!cw_say(w, "b#b 0:2@2"));
        CHECK(!cw_say(w, "t#b 0:2@0 1:-1@0/r3"));
        CHECK(!cw_say(w, "t!3"));
        CHECK_TEXT(cw_whole_changes(w, 1),
                   "v2 topic_added b#b; v2 topic_added b#b/0>1@1>1>1; "
                   "v2 topic_added b#b/1>2@3>2>2,3 offline 3; "
                   "v2 topic_added c; v2 topic_added c/0>1>1>1; "
                   "v3 leader_changed b#b/0 1@1>2@2; "
                   "v3 isr_changed b#b/0 1@1>2@2 isr 1>2; "
                   "v3 replicas_changed b#b/0 replicas 1>2; "
                   "v4 topic_recreated t#b; "
                   "v4 topic_recreated t#b/0>2@0>2>2; "
                   "v4 topic_recreated t#b/1>-1@0>3>3; "
                   "v5 topic_absent t#b");
        CHECK_TEXT(cw_whole_changes(w, cw_version(w)), "");
}

CACHE_TEST(test_the_records_of_an_image_tell_its_state) {
        rdmeta_image_t *image;

        w->brokers = "1,4=h4:1=rack";
        CHECK(!cw_say(w, "t#a 0:1@1/r1,2/i1; bad!3; e#e 0:1@1"));
        CHECK(!cw_all(w, "c 0:1; t#a 0:2@2/r1,2/i2/o1")); /* no e */
        image = rdmeta_cache_image(w->cache, w->now);
        CHECK(image);
        CHECK(!cw_say(w, "t#a 0:1@3/r1,2/i1"));
        CHECK_TEXT(cw_image_changes(w, image),
                   "v2 broker_added 1 h1:9001; v2 broker_added 4 h4:1 "
                   "rack=rack; v2 topic_added c; v2 topic_added c/0>1>1>1; "
                   "v2 topic_added t#a; "
                   "v2 topic_added t#a/0>2@2>2>1,2 offline 1");
        rdmeta_image_unref(image);
}

TEST(test_each_partition_has_records_of_its_own) {
        diff("t#a 0:1@1", "t#a 0:1@1 1:2@0/r2,3/i2 2:-1@0/r1",
                      "v2 partitions_added t#a/1>2@0>2>2,3; "
             "v2 partitions_added t#a/2>-1@0>1>1");
        diff("t#a 0:1@1/r1,2 1:1@1/r1,2", "t#a 0:2@2/r1,2 1:1@1/r1,2",
                      "v2 leader_changed t#a/0 1@1>2@2");
        diff("t#a 0:1@1", "t#a 0:1@2", "v2 leader_changed t#a/0 1@1>1@2");
        diff("t#a 0:1@1/r1,2", "t#a 0:1@1/r1,2/i1",
                      "v2 isr_changed t#a/0 1@1>1@1 isr 1,2>1");
        diff("t#a 0:1@1/r1,2", "t#a 0:1@1/r1,3/i1,2",
                      "v2 replicas_changed t#a/0 replicas 1,2>1,3");
        diff("t#a 0:1@1/r1,2", "t#a 0:1@1/r1,2/o2",
                      "v2 offline_changed t#a/0 offline >2");
        diff("t#a 0:1@1/r1,2,3/o2,3", "t#a 0:1@1/r1,2,3/o3",
                      "v2 offline_changed t#a/0 offline 2,3>3");
        diff("t#a 0:1@1", "t#a 0:1@1 1:2@0/r2,3/i2/o3",
                      "v2 partitions_added t#a/1>2@0>2>2,3 offline 3");
}

/* ISR and offline replicas are sets. Replicas are in order: the first one is
 * the preferred leader. */
TEST(test_an_isr_in_another_order_is_no_change) {
        diff("t#a 0:1@1/r1,2,3/i1,2,3", "t#a 0:1@1/r1,2,3/i3,1,2", "");
        diff("t#a 0:1@1/r1,2,3/o2,3", "t#a 0:1@1/r1,2,3/o3,2", "");
        diff("t#a 0:1@1/r1,2/i1,2", "t#a 0:1@1/r2,1/i1,2",
                      "v2 replicas_changed t#a/0 replicas 1,2>2,1");
}

TEST(test_an_epoch_that_becomes_known_has_a_kind_of_its_own) {
        diff("t#a 0:1 1:1", "t#a 0:1@4 1:2@4",
                      "v2 leader_epoch_changed t#a/0 1>1@4; "
             "v2 leader_changed t#a/1 1>2@4; "
             "v2 isr_changed t#a/1 1>2@4 isr 1>2; "
             "v2 replicas_changed t#a/1 replicas 1>2");
        diff("t#a 0:1@4", "t#a 0:1", "v2 leader_epoch_changed t#a/0 1@4>1");
}

/* Such as the internal flag, operations and errors of partitions. */
TEST(test_every_visible_difference_has_a_record) {
        diff("t#a 0:1@1", "t#a~ 0:1@1", "v2 internal_changed t#a true");
        diff("t#a~ 0:1@1", "t#a 0:1@1", "v2 internal_changed t#a false");
        diff("t#a 0:1@1", "t#a^8 0:1@1", "v2 operations_changed t#a 8");
        diff("t#a^8 0:1@1", "t#a^24 0:1@1", "v2 operations_changed t#a 24");
        diff("t#a 0:1@1", "t#a 0:1@1/e9",
                      "v2 partition_error t#a/0 REPLICA_NOT_AVAILABLE");
        diff("t#a 0:1@1/e9", "t#a 0:1@1", "v2 partition_error t#a/0 NONE");
        diff("t#a 0:1@1/e9", "t#a 0:2@2/r1/e5",
                      "v2 leader_changed t#a/0 1@1>2@2; "
             "v2 partition_error t#a/0 LEADER_NOT_AVAILABLE");
}

TEST(test_an_id_that_becomes_known_has_a_kind_of_its_own) {
        diff("t 0:1@1", "t#a 0:1@1", "v2 topic_id_learned t#a");
        diff("t 0:1@1", "t#a 0:2@2",
             "v2 topic_id_learned t#a; v2 leader_changed t#a/0 1@1>2@2; "
             "v2 isr_changed t#a/0 1@1>2@2 isr 1>2; "
             "v2 replicas_changed t#a/0 replicas 1>2");
        diff("t#a 0:1@1", "t 0:1@1", "");
}

CACHE_TEST(test_a_cluster_id_that_becomes_known_has_a_record) {
        w->cluster_id = NULL;
        CHECK(!cw_say(w, "t#a 0:1@1"));
        w->cluster_id = "c";
        CHECK(!cw_say(w, "t#a 0:1@1"));
        CHECK_TEXT(cw_changes(w, 1), "v2 cluster_id_learned c");
        CHECK(!cw_say(w, "t#a 0:1@1"));
        CHECK(cw_version(w) == 2);
}

/* A test below checks that such a write wakes no waiter either. */
CACHE_TEST(test_a_write_without_a_change_makes_no_version) {
        CHECK(!cw_all(w, "t#a 0:1@1/r1,2,3/i1,2/o2,3"));
        CHECK(!cw_all(w, "t#a 0:1@1/r1,2,3/i2,1/o3,2"));
        CHECK(cw_version(w) == 1 && w->applied.changed == 0);
        CHECK(w->applied.unchanged == 1);
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        CHECK(cw_version(w) == 2);
        CHECK_TEXT(cw_hint(w, "h", 0), "h");
        CHECK(!rdmeta_cache_purge(w->cache, w->now)); /* no topic is known */
        cw_check(w);
        CHECK(cw_version(w) == 2 && cw_stats(w).hints == 0);
}

CACHE_TEST(test_a_topic_of_no_partitions_has_a_record_when_it_goes) {
        CHECK(!cw_all(w, "t#a; u 0:1@1"));
        CHECK(!cw_all(w, "u 0:1@1"));
        cw_sweep_after(w, 20 * CW_S);
        CHECK_TEXT(cw_changes(w, 1),
                   "v2 topic_absent t#a; v3 topic_removed(expiry) t#a");
}

static int32_t is_from(void *opaque, const rdmeta_change_t *c) {
        const cw_t *w = opaque;

        CHECK(c->source == RDMETA_SOURCE_POLL && c->source_broker == 7);
        CHECK(c->wall_us == w->now.wall_us && c->version == 1);
        CHECK(c->cluster_id.len == 1 && c->cluster_id.data[0] == 'c');
        return 0;
}

CACHE_TEST(test_records_have_the_time_and_the_source) {
        uint64_t until;
        int32_t resync;

        w->broker = 7;
        CHECK(!cw_say(w, "t#a 0:1@1; u!3"));
        CHECK(!rdmeta_cache_changes(w->cache, 0, is_from, w, &until, &resync));
        CHECK(until == 1 && !resync);
}

static int32_t stop_at_second(void *opaque, const rdmeta_change_t *c) {
        (void)c;
        return ++*(int *)opaque == 2 ? 77 : 0;
}

CACHE_TEST(test_a_visit_may_end_the_visits) {
        uint64_t until;
        int32_t resync;
        int n = 0;

        CHECK(!cw_say(w, "a 0:1; b 0:1; c 0:1"));
        CHECK(rdmeta_cache_changes(w->cache, 0, stop_at_second, &n, &until,
                                   &resync) == 77);
        CHECK(n == 2);
}

CACHE_TEST(test_a_purge_has_a_record_of_all_that_it_removes) {
        w->brokers = "1";
        CHECK(!cw_say(w, "t#a 0:1@1; n!3; o#o 0:1@1"));
        CHECK(!cw_say(w, "o!17"));
        CHECK_TEXT(cw_hint(w, "h", 0), "h");
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        cw_check(w);
        CHECK(cw_version(w) == 3 && cw_stats(w).topics == 0);
        CHECK(cw_state(w, "t") == RDMETA_NOT_CACHED);
        CHECK(cw_state(w, "h") == RDMETA_NOT_CACHED);
        CHECK_TEXT(cw_brokers(w), "| -");
        CHECK(strstr(cw_changes(w, 2), "topic_removed(purge) t#a"));
        CHECK(strstr(cw_changes(w, 2), "topic_removed(purge) o#o"));
        CHECK(!strstr(cw_changes(w, 2), "topic_removed(purge) n"));
        CHECK(strstr(cw_changes(w, 2), "broker_removed(purge) 1 h1:9001"));
        w->cluster_id = "another"; /* it has no other to differ from */
        CHECK(!cw_all(w, "t#a 0:2@0"));
        CHECK_TEXT(cw_topic(w, "t"), "t#a 0:2@0");
}

/* ---- how far back ------------------------------------------------------ */

static void small_changelog(rdmeta_conf_t *conf) {
        conf->ring_bytes = 4096;
}

CACHE_TEST_WITH(test_a_reader_that_falls_behind_gets_a_resync,
                small_changelog) {
        char text[32];
        uint64_t floor;
        int i;

        for (i = 0; i < 100; i++) {
                snprintf(text, sizeof(text), "t#a 0:1@%d", i);
                CHECK(!cw_say(w, text));
                CHECK(cw_stats(w).bytes_ring < 3 * 4096);
        }
        floor = cw_stats(w).ring_floor;
        CHECK(floor > 1 && floor < 100);
        CHECK_TEXT(cw_changes(w, 0), "resync");
        CHECK_TEXT(cw_changes(w, floor - 1), "resync");
        CHECK(strcmp(cw_changes(w, floor), "resync") != 0);
        CHECK_TEXT(cw_changes(w, 99), "v100 leader_changed t#a/0 1@98>1@99");
        CHECK_TEXT(cw_changes(w, 100), "");
        CHECK_TEXT(cw_changes(w, 101), "resync"); /* another cache's */
}

CACHE_TEST_WITH(test_without_a_changelog_every_change_is_a_resync,
                cw_no_changelog) {
        CHECK(!cw_say(w, "t#a 0:1@1"));
        CHECK(!cw_say(w, "t#a 0:1@2; u!3"));
        CHECK_TEXT(cw_changes(w, 1), "resync");
        CHECK_TEXT(cw_changes(w, 2), "");
        CHECK(cw_leader_hint(w, "t", 0, 9, 3, "h9")); /* other brokers */
        w->brokers = "1,9";
        CHECK(!cw_all(w, ""));
        cw_sweep_after(w, 20 * CW_S);
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        CHECK_TEXT(cw_changes(w, 5), "resync");
        CHECK_TEXT(cw_changes(w, 6), "");
        CHECK(cw_version(w) == 6);
}

/* The cache removes entries without records, such as unknown topics. That moves
 * neither version nor floor. A floor above the version would ask for a resync
 * that never helps. */
static void check_silent_removals(void (*conf)(rdmeta_conf_t *conf)) {
        cw_t w;
        int i;

        cw_init(&w, conf);
        for (i = 0; i < 100; i++) {
                CHECK(!cw_say(&w, i % 2 ? "n!3" : "m!29; o!3"));
                cw_sweep_after(&w, 1000 * CW_S);
                cw_sweep_after(&w, 1000 * CW_S);
                CHECK(cw_stats(&w).ring_floor <= cw_version(&w));
                CHECK_TEXT(cw_changes(&w, cw_version(&w)), "");
        }
        CHECK(cw_stats(&w).retained == 0);
        cw_destroy(&w);
}

TEST(test_a_silent_removal_asks_for_no_resync) {
        check_silent_removals(NULL);
        check_silent_removals(small_changelog);
        check_silent_removals(cw_no_changelog);
}

CACHE_TEST_WITH(test_more_than_the_changelog_holds_is_a_resync,
                small_changelog) {
        gen_shape_t shape = {.seed = 1, .brokers = 3, .first_broker = 1,
                             .topics = 1000, .partitions = 2,
                             .replication = 2};
        gen_cluster_t *cluster = gen_cluster_new(&shape);
        gen_bytes_t body       = {0};

        cluster->cluster_id = test_str("c");
        CHECK(!cw_say(w, "t#a 0:1@1"));
        gen_response(cluster, 12, &body);
        CHECK(!cw_apply(w, body.data, body.len, NULL));
        CHECK_TEXT(cw_changes(w, 1), "resync");
        CHECK_TEXT(cw_changes(w, 2), "");
        CHECK(!cw_say(w, "t#a 0:1@2"));
        CHECK(!strstr(cw_changes(w, 2), "resync"));
        CHECK_TEXT(cw_changes(w, 1), "resync");
        gen_bytes_free(&body);
        gen_cluster_free(cluster);
}

/* A visit runs without the lock, so it may write. */
static int32_t write_on_visit(void *opaque, const rdmeta_change_t *c) {
        cw_t *w = opaque;
        char name[64], text[80];

        snprintf(name, sizeof(name), "%.*s", (int)c->topic.len,
                 c->topic.data ? c->topic.data : "");
        snprintf(text, sizeof(text), "t#a 0:1@%d", (int)cw_version(w) + 10);
        CHECK(!cw_say(w, text));
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        CHECK(c->version == 1);
        CHECK(!strncmp(name, c->topic.data ? c->topic.data : "",
                       c->topic.len)); /* the record stays for the visit */
        return 0;
}

CACHE_TEST_WITH(test_a_visit_may_write, small_changelog) {
        uint64_t until;
        int32_t resync;

        CHECK(!cw_say(w, "t#a 0:1@1; b#b 0:1@1; c#c 0:1@1"));
        CHECK(!rdmeta_cache_changes(w->cache, 0, write_on_visit, w, &until,
                                    &resync));
        CHECK(until == 1);
}

/* ---- waiting ----------------------------------------------------------- */

static uint64_t wait_for(cw_t *w, uint64_t since, const char *topic) {
        const rdmeta_str_t name = test_str(topic);

        return rdmeta_cache_wait(w->cache, since, topic ? &name : NULL,
                                 topic != NULL, 0);
}

CACHE_TEST(test_a_wait_ends_at_once_if_the_change_came_first) {
        CHECK(wait_for(w, 0, NULL) == 0);
        CHECK(!cw_say(w, "t#a 0:1@1; u#u 0:1@1"));
        CHECK(wait_for(w, 0, NULL) == 1 && wait_for(w, 1, NULL) == 0);
        CHECK(wait_for(w, 0, "t") == 1 && wait_for(w, 1, "t") == 0);
        CHECK(!cw_say(w, "u#u 0:1@2"));
        CHECK(wait_for(w, 1, "t") == 0);
        CHECK(wait_for(w, 1, "u") == 2);
        CHECK(!cw_say(w, "u#u 0:1@2")); /* no change, no wake-up */
        CHECK(wait_for(w, 2, NULL) == 0);
        cw_hint(w, "h", 0); /* a hint is no change */
        CHECK(wait_for(w, 2, NULL) == 0 && wait_for(w, 0, "h") == 0);
}

CACHE_TEST(test_a_removal_ends_a_wait) {
        CHECK(!cw_all(w, "t#a 0:1@1; u#u 0:1@1"));
        CHECK(!cw_all(w, "u#u 0:1@1"));
        CHECK(wait_for(w, 1, "t") == 2 && wait_for(w, 1, "u") == 0);
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        CHECK(wait_for(w, 2, "u") == 3);
}

/* The waiter may come at any time after the removal. */
CACHE_TEST(test_a_removal_ends_a_wait_after_the_topic_is_forgotten) {
        CHECK(!cw_all(w, "t#a 0:1@1; u#u 0:1@1; n!3"));
        CHECK(!cw_all(w, "u#u 0:1@1"));
        cw_sweep_after(w, 20 * CW_S);
        CHECK(cw_version(w) == 3); /* removed */
        cw_sweep_after(w, 2000 * CW_S);
        CHECK(cw_version(w) == 3); /* check_silent_removals */
        CHECK(wait_for(w, 1, "t") == 3 && wait_for(w, 3, "t") == 0);
        CHECK(wait_for(w, 0, "n") == 3);
        CHECK(!cw_say(w, "u!3")); /* no record of a removal yet */
        cw_sweep_after(w, CW_S);
        cw_sweep_after(w, 2000 * CW_S);
        CHECK(cw_version(w) == 5 && wait_for(w, 4, "u") == 5);
        CHECK(wait_for(w, 5, "u") == 0);
        cw_hint(w, "t", 0);
        CHECK(wait_for(w, 1, "t") == 5 && wait_for(w, 5, "t") == 0);
}

static void count(void *opaque, uint64_t version) {
        (void)version;
        ++*(int *)opaque;
}

CACHE_TEST(test_a_watch_is_called_for_every_kind_of_write) {
        const rdmeta_str_t name = {"t", 1};
        rdmeta_watch_t *all, *one;
        int n_all = 0, n_one = 0;

        all = rdmeta_watch_new(w->cache, NULL, 0, count, &n_all);
        one = rdmeta_watch_new(w->cache, &name, 1, count, &n_one);
        CHECK(all && one && cw_stats(w).watches == 2);
        CHECK(!cw_all(w, "u#u 0:1@1"));
        CHECK(n_all == 1 && n_one == 0);
        CHECK(!cw_all(w, "u#u 0:1@1; t#a 0:1@1"));
        CHECK(n_all == 2 && n_one == 1);
        CHECK(!cw_all(w, "u#u 0:1@1; t#a 0:1@1"));
        CHECK(n_all == 2 && n_one == 1);
        CHECK(cw_leader_hint(w, "t", 0, 2, 2, NULL)); /* a hint */
        CHECK(n_all == 3 && n_one == 2);
        CHECK(!cw_all(w, "u#u 0:1@1")); /* absence */
        CHECK(n_all == 4 && n_one == 3);
        cw_pass(w, 16 * CW_S);
        cw_sweep(w); /* time */
        CHECK(n_all == 5 && n_one == 4);
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        CHECK(n_all == 6 && n_one == 5);
        rdmeta_watch_destroy(all);
        rdmeta_watch_destroy(one);
}

TEST_MAIN()
