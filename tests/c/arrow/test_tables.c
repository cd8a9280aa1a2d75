/* arrow: tables of topics and brokers, compared with the results of readers. */
#include "rdmeta_fold.h"

#include "support/arrow_fixture.h"

static void check_all_as_read(cw_t *w) {
        int stale;

        for (stale = 0; stale < 2; stale++) {
                aw_check_as_read(w, RDMETA_ARROW_PARTITIONS, stale);
                aw_check_as_read(w, RDMETA_ARROW_REPLICAS, stale);
        }
}

CACHE_TEST(test_an_empty_cache_has_columns_and_no_batch) {
        int32_t table;

        for (table = RDMETA_ARROW_BROKERS; table <= RDMETA_ARROW_REPLICAS;
             table++) {
                aw_text_t t = aw_table(w, table);
                CHECK(t.batches == 0 && t.rows == 0);
                aw_free(&t);
        }
}

TEST(test_columns_are_those_of_the_header) {
        static const char *const wanted[] = {
                "broker:i host:u port:i rack:u? controller:b cluster_id:u?",
                "topic:u topic_id:u? internal:b partitions:i error:s "
                "operations:i? version:l state:u source_broker:i? reason:u? "
                "age:g?",
                "topic:u topic_id:u? partition:i leader:i? leader_epoch:i? "
                "replicas:+l<i> isr:+l<i> offline_replicas:+l<i> error:s "
                "unreachable:b leaderless:b stale:b",
                "topic:u topic_id:u? partition:i broker:i position:i leader:b "
                "in_sync:b offline:b preferred:b"};
        struct ArrowSchema s;
        int32_t table;

        for (table = 0; table < 4; table++) {
                aw_text_t t;
                CHECK(!rdmeta_arrow_schema(table, &s));
                t = aw_schema(&s);
                CHECK(strcmp(t.data, wanted[table]) == 0);
                aw_free(&t);
                s.release(&s);
        }
        CHECK(rdmeta_arrow_schema(-1, &s) == RDMETA_ERR_ARGUMENT);
        CHECK(rdmeta_arrow_schema(RDMETA_FOLD_CONTROLLER + 1, &s) ==
              RDMETA_ERR_ARGUMENT);
        CHECK(rdmeta_arrow_schema(INT32_MAX, &s) == RDMETA_ERR_ARGUMENT);
        CHECK(rdmeta_arrow_schema(0, NULL) == RDMETA_ERR_ARGUMENT);
}

CACHE_TEST(test_a_table_that_readers_do_not_have_is_refused) {
        struct ArrowArrayStream s = {0};

        CHECK(rdmeta_reader_arrow(w->reader, -1, AW_ALL, 0, &s) ==
              RDMETA_ERR_ARGUMENT);
        CHECK(rdmeta_reader_arrow(w->reader, RDMETA_ARROW_CHANGES, AW_ALL, 0,
                                  &s) == RDMETA_ERR_ARGUMENT);
        CHECK(rdmeta_reader_arrow(w->reader, RDMETA_FOLD_PARTITION_INTERVAL,
                                  AW_ALL, 0, &s) == RDMETA_ERR_ARGUMENT);
        CHECK(!s.release);
}

CACHE_TEST(test_partitions_have_leaders_epochs_lists_and_errors) {
        CHECK(!cw_say(w, "b#b 0:1@5 1:-1@-1/r2,3/i/e5; "
                          "a 7:3@300/r3,1/i3/o1 9:9@1/r1000"));
        aw_check(w, w->reader, RDMETA_ARROW_PARTITIONS, RDMETA_WALK_VALID,
                 "a|-|7|3|300|[3,1]|[3]|[1]|0|0|0|0\n"
                 "a|-|9|9|1|[1000]|[1000]|[]|0|1|0|0\n"
                 "b|YmJiYmJiYmJiYmJiYmJiYg|0|1|5|[1]|[1]|[]|0|0|0|0\n"
                 "b|YmJiYmJiYmJiYmJiYmJiYg|1|-|-|[2,3]|[]|[]|5|0|1|0\n");
        check_all_as_read(w);
}

CACHE_TEST(test_each_replica_has_a_row) {
        CHECK(!cw_say(w, "a 0:3@300/r1,3,2/i3,2/o1"));
        aw_check(w, w->reader, RDMETA_ARROW_REPLICAS, RDMETA_WALK_VALID,
                 "a|-|0|1|0|0|0|1|1\n"
                 "a|-|0|3|1|1|1|0|0\n"
                 "a|-|0|2|2|0|1|0|0\n");
}

#define START "start\xef\xbf\xbd"

CACHE_TEST(test_topics_have_their_state_source_reason_and_age) {
        w->api_version = 10;
        w->reason      = "start\xff";
        CHECK(!cw_all(w, "a#a^7~ 0:1@5 1:2@5; b 0:1@1; c!3; d!29; e!17"));
        w->broker = 2;
        w->reason = NULL;
        CHECK(!cw_say(w, "b 0:1@2"));
        aw_check(w, w->reader, RDMETA_ARROW_TOPICS, AW_ALL,
                 "a|YWFhYWFhYWFhYWFhYWFhYQ|1|2|0|7|1|valid|1|" START
                 "|0.000000\n"
                 "b|-|0|1|0|-|2|valid|2|-|0.000000\n"
                 "c|-|0|0|3|-|1|unknown_topic|1|" START "|-\n"
                 "d|-|0|0|29|-|1|denied|1|" START "|-\n"
                 "e|-|0|0|17|-|1|invalid|1|" START "|-\n");
        cw_pass(w, 901 * CW_S);
        aw_check(w, w->reader, RDMETA_ARROW_TOPICS,
                 RDMETA_WALK_STALE | RDMETA_WALK_VALID,
                 "a|YWFhYWFhYWFhYWFhYWFhYQ|1|2|0|7|1|stale|1|" START
                 "|901.000000\n"
                 "b|-|0|1|0|-|2|stale|2|-|901.000000\n");
        aw_check(w, w->reader, RDMETA_ARROW_TOPICS, RDMETA_WALK_VALID, "");
}

CACHE_TEST(test_only_the_topics_table_has_negative_topics) {
        CHECK(!cw_say(w, "a 0:1@5"));
        CHECK(!cw_say(w, "a!3"));
        aw_check(w, w->reader, RDMETA_ARROW_PARTITIONS, AW_ALL, "");
        aw_check(w, w->reader, RDMETA_ARROW_REPLICAS, AW_ALL, "");
}

CACHE_TEST(test_brokers_have_racks_and_a_controller) {
        w->brokers = "2=h2:9092=r2,7=h7:1";
        w->controller = 7;
        CHECK(!cw_say(w, ""));
        aw_check(w, w->reader, RDMETA_ARROW_BROKERS, 0,
                 "2|h2|9092|r2|0|c\n7|h7|1|-|1|c\n");
}

CACHE_TEST(test_a_stale_reader_has_last_leaders_and_stale_topics) {
        CHECK(!cw_say(w, "a 0:1@5/r1,2 1:2@5/r1,2"));
        CHECK(!cw_say(w, "a 0:-1@6/r1,2/e5 1:2@5/r1,2"));
        aw_check(w, w->stale, RDMETA_ARROW_PARTITIONS, AW_ALL,
                 "a|-|0|1|6|[1,2]|[1,2]|[]|5|0|1|0\n"
                 "a|-|1|2|5|[1,2]|[1,2]|[]|0|0|0|0\n");
        check_all_as_read(w);
        cw_pass(w, 901 * CW_S);
        aw_check(w, w->stale, RDMETA_ARROW_PARTITIONS, AW_ALL,
                 "a|-|0|1|6|[1,2]|[1,2]|[]|5|0|1|1\n"
                 "a|-|1|2|5|[1,2]|[1,2]|[]|0|0|0|1\n");
        aw_check(w, w->reader, RDMETA_ARROW_PARTITIONS, RDMETA_WALK_VALID, "");
        check_all_as_read(w);
}

TEST(test_bytes_that_are_not_utf8_are_replaced) {
        static const struct {
                const char *bytes, *text;
        } rows[] = {
                {"\xff", "\xef\xbf\xbd"},
                {"caf\xc3\xa9", "caf\xc3\xa9"},
                {"\xc3", "\xef\xbf\xbd"},
                {"a\xe2\x82z", "a\xef\xbf\xbd\xef\xbf\xbdz"},
                {"\xed\xa0\x80",
                 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
                {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
                {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"}, /* too long a "/" */
                {"\xf4\x90\x80\x80",
                 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
                {"longer than eight \xe0\x80\x80",
                 "longer than eight \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
                {"\xf0\x8f\xbf\xbf",
                 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        };
        size_t i;

        for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const size_t len  = strlen(rows[i].bytes);
                const size_t size = rdmeta_text_size(rows[i].bytes, len);
                char out[64]      = {0};

                CHECK(size == strlen(rows[i].text));
                rdmeta_text_copy(out, size, rows[i].bytes, len);
                CHECK(strcmp(out, rows[i].text) == 0);
        }
}

CACHE_TEST(test_a_name_that_is_not_utf8_is_replaced_on_each_row) {
        CHECK(!cw_say(w, "a\xff" "b 0:1@1 1:1@1 2:1@1"));
        aw_check(w, w->reader, RDMETA_ARROW_PARTITIONS, RDMETA_WALK_VALID,
                 "a\xef\xbf\xbd" "b|-|0|1|1|[1]|[1]|[]|0|0|0|0\n"
                 "a\xef\xbf\xbd" "b|-|1|1|1|[1]|[1]|[]|0|0|0|0\n"
                 "a\xef\xbf\xbd" "b|-|2|1|1|[1]|[1]|[]|0|0|0|0\n");
}

/* Gives some partitions unusual leaders, epochs, errors and lists. */
static void make_odd(test_rng_t *rng, gen_cluster_t *c) {
        uint32_t i, k;

        for (i = 0; i < c->topic_count; i++) {
                gen_topic_t *t = &c->topics[i];
                const int odd  = (int)test_below(rng, 3);
                if (test_below(rng, 4) == 0)
                        memset(t->id, 0, sizeof(t->id));
                t->partition_count = (uint32_t)test_below(
                        rng, t->partition_count + 1);
                for (k = 0; k < t->partition_count && odd; k++) {
                        gen_partition_t *p = &t->partitions[k];
                        if (odd == 2)
                                p->id = (int32_t)(3 * k);
                        if (test_below(rng, 4) == 0)
                                p->leader = -1;
                        if (test_below(rng, 4) == 0)
                                p->epoch = (int32_t)test_below(rng, 1000000);
                        if (test_below(rng, 4) == 0)
                                p->error = 5;
                        if (test_below(rng, 4) == 0)
                                p->leader = 77;
                        p->isr.count -= (int32_t)test_below(rng, 3);
                        if (test_below(rng, 4) == 0)
                                p->replicas.count--;
                        if (p->isr.count > p->replicas.count)
                                p->isr.count = p->replicas.count;
                        p->offline       = p->replicas;
                        p->offline.count = (int32_t)test_below(rng, 2);
                }
        }
}

TEST(test_random_clusters_have_the_rows_that_readers_return) {
        static const int32_t firsts[] = {1, 126, 32766, 100000};
        test_rng_t rng                = test_rng(1);
        int round;

        for (round = 0; round < 24; round++) {
                gen_cluster_t *c = aw_cluster(test_u64(&rng), 60, 40,
                                              firsts[round % 4]);
                cw_t w;

                cw_init(&w, NULL);
                make_odd(&rng, c);
                aw_say(&w, c);
                check_all_as_read(&w);
                gen_cluster_free(c);
                cw_destroy(&w);
        }
}

TEST(test_a_long_isr_gives_the_same_rows_as_a_reader) {
        enum { LONG = 100 };
        int32_t replicas[LONG], isr[LONG / 2];
        gen_partition_t p = {.leader = 1, .epoch = 1,
                             .replicas = GEN_IDS(replicas),
                             .isr = GEN_IDS(isr)};
        gen_topic_t topic     = {.name = GEN_STR("a"), .partitions = &p,
                                 .partition_count = 1};
        rdmeta_broker_t broker = {.id = 1, .port = 1, .host = GEN_STR("h")};
        gen_cluster_t c = {.brokers = &broker, .broker_count = 1,
                           .topics = &topic, .topic_count = 1};
        cw_t w;
        int i;

        for (i = 0; i < LONG; i++)
                replicas[i] = 7 * i % LONG;
        for (i = 0; i < LONG / 2; i++)
                isr[i] = LONG - 1 - 2 * i;
        cw_init(&w, NULL);
        aw_say(&w, &c);
        aw_check_as_read(&w, RDMETA_ARROW_REPLICAS, 0);
        cw_destroy(&w);
}

TEST_MAIN()
