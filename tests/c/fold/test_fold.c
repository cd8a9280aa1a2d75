/* fold: records one by one, states as bytes, and many topics and partitions. */
#include "support/fold_fixture.h"

static void take(rdmeta_fold_t *f, rdmeta_change_t c) {
        CHECK(rdmeta_fold_change(f, &c, 5) == RDMETA_OK);
}

static void begin(rdmeta_fold_t *f) {
        take(f, fw_record(1, RDMETA_OBSERVED_FROM, NULL, -1, -1));
}

TEST(test_records_of_a_visit_become_intervals) {
        rdmeta_fold_t *f  = fw_new(NULL);
        rdmeta_change_t c = fw_record(2, RDMETA_TOPIC_ADDED, "t", 0, 1);

        begin(f);
        CHECK(rdmeta_fold_visit(f, &c) == 0);
        take(f, fw_record(3, RDMETA_LEADER_CHANGED, "t", 0, 2));
        CHECK(rdmeta_fold_end(f, FW_NOON + 5000, RDMETA_FOLD_GAP) == RDMETA_OK);
        fw_check(f, RDMETA_FOLD_PARTITION_INTERVAL,
                 "c|t|-|0|1|4|-|[1,2]|[2,1]|-|-|-|-|-|-|1728043200002000|"
                 "1728043200003000|1000|topic_added|leader_changed|-|poll|o|2"
                 "|-|0\n"
                 "c|t|-|0|2|4|-|[1,2]|[2,1]|-|-|-|-|-|-|1728043200003000|"
                 "1728043200005000|2000|leader_changed|gap|5|poll|o|3|-|0\n");
        rdmeta_fold_destroy(f);
}

/* Bytes of names that are no UTF-8 become U+FFFD, as in all tables. */
TEST(test_a_name_may_have_any_bytes) {
        rdmeta_fold_t *f = fw_new(NULL);

        begin(f);
        take(f, fw_record(2, RDMETA_TOPIC_ADDED, "a\xff", -1, -1));
        CHECK(rdmeta_fold_end(f, FW_NOON + 5000, RDMETA_FOLD_OPEN) == 0);
        fw_check(f, RDMETA_FOLD_TOPIC_INTERVAL,
                 "c|a\xef\xbf\xbd|-|0|1728043200002000|1728043200005000|3000|"
                 "topic_added|open|5|poll|o|2|-|1\n");
        rdmeta_fold_destroy(f);
}

TEST(test_wrong_configurations_are_refused) {
        rdmeta_fold_conf_t conf;
        rdmeta_fold_t *f = NULL;

        rdmeta_fold_conf_init(&conf);
        CHECK(rdmeta_fold_new(&conf, &f) == RDMETA_ERR_ARGUMENT);
        conf.cluster_id = conf.origin = test_str("c");
        conf.buckets                  = 0;
        CHECK(rdmeta_fold_new(&conf, &f) == RDMETA_ERR_ARGUMENT);
        conf.buckets = conf.bucket = 1;
        CHECK(rdmeta_fold_new(&conf, &f) == RDMETA_ERR_ARGUMENT);
        conf.bucket = 0;
        conf.size--;
        CHECK(rdmeta_fold_new(&conf, &f) == RDMETA_ERR_ARGUMENT);
        CHECK(rdmeta_fold_new(NULL, &f) == RDMETA_ERR_ARGUMENT);
        CHECK(!f);
}

TEST(test_a_reason_and_a_table_must_exist) {
        rdmeta_fold_t *f = fw_new(NULL);
        struct ArrowArrayStream s;

        CHECK(rdmeta_fold_end(f, FW_NOON, 3) == RDMETA_ERR_ARGUMENT);
        CHECK(rdmeta_fold_take(f, RDMETA_ARROW_CHANGES, &s) ==
              RDMETA_ERR_ARGUMENT);
        CHECK(rdmeta_fold_error(f)[0]);
        rdmeta_fold_destroy(f);
}

/* Returns the state of a fold; the caller frees it. */
static void *save(rdmeta_fold_t *f, size_t *size) {
        void *p;

        CHECK(rdmeta_fold_save(f, NULL, 0, size) == RDMETA_ERR_TOO_SMALL);
        p = malloc(*size);
        CHECK(p && rdmeta_fold_save(f, p, *size, size) == RDMETA_OK);
        return p;
}

TEST(test_a_state_goes_on_where_it_was_saved) {
        rdmeta_fold_t *f = fw_new(NULL), *g = NULL;
        rdmeta_fold_conf_t conf;
        size_t size, again;
        void *state, *other;

        begin(f);
        take(f, fw_record(2, RDMETA_TOPIC_ADDED, "t", 0, 1));
        take(f, fw_record(2, RDMETA_TOPIC_ADDED, "t", 1, 1));
        state = save(f, &size);
        rdmeta_fold_destroy(f);
        rdmeta_fold_conf_init(&conf);
        conf.cluster_id = test_str("c");
        conf.origin     = test_str("o");
        conf.state      = state;
        conf.state_size = size;
        CHECK(rdmeta_fold_new(&conf, &g) == RDMETA_OK);
        other = save(g, &again);
        CHECK(again == size && !memcmp(state, other, size));
        CHECK(rdmeta_fold_end(g, FW_NOON + 9000, RDMETA_FOLD_MIDNIGHT) == 0);
        fw_check(g, RDMETA_FOLD_TOPIC_INTERVAL,
                 "c|t|-|2|1728043200002000|1728043200009000|7000|topic_added|"
                 "midnight|5|poll|o|2|-|0\n");
        rdmeta_fold_destroy(g);
        free(state);
        free(other);
}

/* A broker's rack touches all partitions once; the count of rows shows it. */
TEST(test_a_rack_cuts_each_partition_once) {
        rdmeta_fold_t *f = fw_new(NULL);
        rdmeta_fold_stats_t stats;
        rdmeta_change_t c;
        int32_t i;

        begin(f);
        for (i = 0; i < 100000; i++)
                take(f, fw_record(2, RDMETA_TOPIC_ADDED, "t", i, 1));
        for (i = 1; i <= 4; i++) {
                c        = fw_record((uint64_t)i + 2, RDMETA_BROKER_CHANGED,
                                     NULL, -1, -1);
                c.broker = i;
                c.detail = test_str("h:9092 rack=a");
                take(f, c);
        }
        CHECK(rdmeta_fold_end(f, FW_NOON + 9000, RDMETA_FOLD_GAP) == 0);
        rdmeta_fold_stats(f, &stats);
        /* Twice the partitions, four brokers, a topic, four changes and the
         * rows of topic_added, which follow the baseline. */
        CHECK(stats.waiting == 200000 + 4 + 1 + 4 + 100000);
        rdmeta_fold_destroy(f);
}

TEST(test_topics_come_and_go_by_the_hundred_thousand) {
        rdmeta_fold_t *f = fw_new(NULL);
        rdmeta_fold_stats_t before, after;
        struct ArrowArrayStream s;
        char name[32];
        int round, i;

        begin(f);
        rdmeta_fold_stats(f, &before);
        for (round = 0; round < 2; round++)
                for (i = 0; i < 100000; i++) {
                        snprintf(name, sizeof(name), "topic-%d", i);
                        take(f, fw_record(2 + (uint64_t)round,
                                          round ? RDMETA_TOPIC_REMOVED
                                                : RDMETA_TOPIC_ADDED,
                                          name, round ? -1 : 0, 1));
                }
        CHECK(rdmeta_fold_end(f, FW_NOON + 9000, RDMETA_FOLD_GAP) == 0);
        CHECK(rdmeta_fold_take(f, RDMETA_FOLD_PARTITION_INTERVAL, &s) == 0);
        s.release(&s);
        rdmeta_fold_stats(f, &after);
        CHECK(after.rows == 200001);
        rdmeta_fold_destroy(f);
}

TEST_MAIN()
