/*
 * cache: names of all lengths, batches, ids, walks, large and odd topics.
 */
#include "support/cache_fixture.h"

/* ---- names ------------------------------------------------------------- */

/* Applies topics of one partition each, led by (index % 7) + 1. */
static void named(cw_t *w, const rdmeta_str_t *names, uint32_t n) {
        const rdmeta_request_t r = cw_request(w, RDMETA_ASKED_ALL);
        gen_topic_t *topics      = calloc(n, sizeof(*topics));
        gen_partition_t *rows    = calloc(n, sizeof(*rows));
        rdmeta_broker_t b        = {1, 9092, GEN_STR("h"), {NULL, 0}};
        gen_cluster_t cluster    = {.brokers = &b, .broker_count = 1,
                                    .cluster_id = GEN_STR("c"),
                                    .topics = topics, .topic_count = n};
        gen_bytes_t body         = {0};
        uint32_t i;

        CHECK(topics && rows);
        for (i = 0; i < n; i++) {
                rows[i].leader            = 1 + (int32_t)(i % 7);
                topics[i].name            = names[i];
                topics[i].partitions      = &rows[i];
                topics[i].partition_count = 1;
                memcpy(topics[i].id, &i, sizeof(i));
                topics[i].id[15] = 1;
        }
        gen_response(&cluster, w->api_version, &body);
        CHECK(!cw_apply(w, body.data, body.len, &r));
        gen_bytes_free(&body);
        free(topics);
        free(rows);
}

static int32_t leader_of(cw_t *w, rdmeta_str_t name) {
        return rdmeta_leader(w->reader, name.data, name.len, 0, w->now.mono_us);
}

/* Checks that each topic is found by name and by id. */
static void are_found(cw_t *w, const rdmeta_str_t *names, uint32_t n) {
        const rdmeta_topic_t *t;
        uint8_t id[16] = {0};
        uint32_t i;

        id[15] = 1;
        for (i = 0; i < n; i++) {
                CHECK(leader_of(w, names[i]) == 1 + (int32_t)(i % 7));
                memcpy(id, &i, sizeof(i));
                rdmeta_reader_enter(w->reader);
                CHECK(!rdmeta_topic_find_id(w->reader, id, w->now.mono_us, &t));
                CHECK(t->name_len == names[i].len);
                CHECK(!memcmp(t->name, names[i].data, names[i].len));
                rdmeta_reader_leave(w->reader);
        }
}

TEST(test_names_of_every_length_are_found) {
        enum { MOST = 300 };
        static const size_t lengths[] = {1000, 4095, 4096, 32767};
        static char text[32768];
        rdmeta_str_t names[MOST + 4];
        uint32_t i;
        int version;
        cw_t w;

        for (i = 0; i < sizeof(text); i++)
                text[i] = (char)('a' + i % 26);
        for (i = 0; i < MOST + 4; i++) {
                names[i].data = text;
                names[i].len  = i < MOST ? i + 1 : lengths[i - MOST];
        }
        for (version = 10; version <= 12; version += 2) {
                cw_init(&w, NULL);
                w.api_version = version;
                named(&w, names, MOST + 4);
                are_found(&w, names, MOST + 4);
                names[0].len = 301;
                CHECK(leader_of(&w, names[0]) == RDMETA_NOT_CACHED);
                names[0].len = 0;
                CHECK(leader_of(&w, names[0]) == RDMETA_NOT_CACHED);
                names[0].len = 32768;
                CHECK(leader_of(&w, names[0]) == RDMETA_NOT_CACHED);
                names[0].len = 1;
                named(&w, names, MOST + 4);
                CHECK(w.applied.unchanged == MOST + 4);
                cw_destroy(&w);
        }
}

/* The names have one length, and differ in one byte, anywhere. */
TEST(test_names_that_differ_in_one_byte_are_two) {
        static const size_t lengths[] = {1,  2,  3,  4,  7,  8,  9,   15,
                                         16, 17, 31, 32, 33, 64, 249};
        char text[250][250];
        rdmeta_str_t names[250];
        size_t l, i;
        cw_t w;

        for (l = 0; l < sizeof(lengths) / sizeof(*lengths); l++) {
                const size_t n = lengths[l];

                for (i = 0; i <= n; i++) {
                        memset(text[i], 'x', n);
                        if (i < n)
                                text[i][i] = 'y';
                        names[i].data = text[i];
                        names[i].len  = n;
                }
                cw_init(&w, NULL);
                named(&w, names, (uint32_t)n + 1);
                are_found(&w, names, (uint32_t)n + 1);
                cw_destroy(&w);
        }
}

CACHE_TEST(test_names_may_be_any_bytes) {
        const rdmeta_str_t names[] = {{"\xff\xfe", 2}, {"\0", 1}, {"\0\0", 2},
                                      {"a\0b", 3},     {"a\0c", 3}, {" ", 1},
                                      {"\xc3\xa9", 2}, {"../..", 5}};

        named(w, names, 8);
        are_found(w, names, 8);
        CHECK(cw_stats(w).topics == 8);
}

TEST(test_a_name_longer_than_the_limit_is_refused) {
        rdmeta_str_t name = {NULL, 32768}, ask;
        char *text        = calloc(1, 32768);
        size_t n;
        cw_t w;

        CHECK(text);
        name.data = text;
        cw_init(&w, NULL);
        CHECK(rdmeta_cache_hint(w.cache, &name, 1, 0, 0, w.now, &ask, &n) ==
              RDMETA_ERR_ARGUMENT);
        name.len = 0;
        CHECK(rdmeta_cache_hint(w.cache, &name, 1, 0, 0, w.now, &ask, &n) ==
              RDMETA_ERR_ARGUMENT);
        free(text);
        cw_destroy(&w);
}

/* Other names in the batch do not matter. */
CACHE_TEST(test_leaders_of_a_batch_are_those_of_single_lookups) {
        enum { N = 100 };
        static const char *const known[] = {"a", "a.rather.long.name.of.one",
                                            "stale", "gone", "nobody", "odd",
                                            "sixteen-letters.", ""};
        rdmeta_str_t names[N];
        int32_t partitions[N], leaders[N + 1];
        test_rng_t rng = test_rng(5);
        size_t i, n;

        CHECK(!cw_say(w, "stale 0:1 1:2"));
        cw_pass(w, 901 * CW_S);
        CHECK(!cw_say(w, "a 0:1 1:-1; a.rather.long.name.of.one 0:3 1:2; "
                          "gone!3; odd 1:2 5:1; sixteen-letters. 0:2"));
        for (n = 0; n <= N; n++) {
                for (i = 0; i < n; i++) {
                        names[i]      = test_str(known[test_below(&rng, 8)]);
                        partitions[i] = (int32_t)test_below(&rng, 4) - 1;
                }
                leaders[n] = -77;
                rdmeta_leaders(w->reader, names, partitions, n, w->now.mono_us,
                               leaders);
                CHECK(leaders[n] == -77);
                for (i = 0; i < n; i++)
                        CHECK(leaders[i] ==
                              rdmeta_leader(w->reader, names[i].data,
                                            names[i].len, partitions[i],
                                            w->now.mono_us));
        }
}

/* ---- ids --------------------------------------------------------------- */

/* Brokers may wrongly give two topics one id. Then names find both topics, and
 * the id finds the last one. When the last one gets another id, the id finds
 * the other topic once that changes. */
CACHE_TEST(test_two_topics_of_one_id_are_found_by_name) {
        CHECK(!cw_all(w, "a#x 0:1@1; b#x 0:2@1; c#c 0:3@1"));
        CHECK(cw_leader(w, "a", 0) == 1 && cw_leader(w, "b", 0) == 2);
        CHECK(cw_state_id(w, 'x') == 0);
        CHECK(!cw_all(w, "a#x 0:1@1; b#y 0:2@1; c#c 0:3@1"));
        CHECK(cw_state_id(w, 'y') == 0);
        CHECK(!cw_all(w, "a#x 0:2@2; b#y 0:2@1; c#c 0:3@1"));
        CHECK(cw_state_id(w, 'x') == 0);
        CHECK(!cw_all(w, "a#z 0:1@1; b#z 0:2@1; c#c 0:3@1"));
        CHECK(!cw_all(w, "a#z 0:1@2; c#z 0:2@1"));
        CHECK(cw_state_id(w, 'z') == 0);
        w->broker = 2;
        CHECK(!cw_all(w, "a#z 0:1@1; c#y 0:2@1"));
        cw_pass(w, 2000 * CW_S);
        cw_sweep(w); /* erases b */
        cw_sweep(w);
        CHECK(cw_leader_stale(w, "a", 0) == 1);
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        CHECK(cw_state_id(w, 'z') == RDMETA_NOT_CACHED);
}

/* ---- order ------------------------------------------------------------- */

CACHE_TEST(test_walks_are_in_the_order_of_bytes_and_by_prefix) {
        CHECK_TEXT(cw_walk(w, "", 7), "");
        CHECK(!cw_all(w, "b 0:1; a.b 0:1; a 0:1; ab 0:1; a.c 0:1; c!3; B 0:1"));
        CHECK_TEXT(cw_walk(w, "", 7), "-B -a -a.b -a.c -ab -b -c ");
        CHECK_TEXT(cw_walk(w, "", RDMETA_WALK_VALID),
                   "-B -a -a.b -a.c -ab -b ");
        CHECK_TEXT(cw_walk(w, "a.", 7), "-a.b -a.c ");
        CHECK_TEXT(cw_walk(w, "a.c", 7), "-a.c ");
        CHECK_TEXT(cw_walk(w, "a.cc", 7), "");
        CHECK_TEXT(cw_walk(w, "z", 7), "");
        CHECK_TEXT(cw_walk(w, "", RDMETA_WALK_NEGATIVE), "-c ");
        CHECK(!cw_say(w, "aa 0:1; c 0:1")); /* the tree is made already */
        cw_hint(w, "a.a", 0);
        CHECK_TEXT(cw_walk(w, "", 7), "-B -a -a.b -a.c -aa -ab -b -c ");
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        CHECK_TEXT(cw_walk(w, "", 7), "");
}

/* ---- large and odd topics ---------------------------------------------- */

static gen_topic_t odd_topic(gen_partition_t *rows, uint32_t n,
                             int32_t (*id_of)(uint32_t i)) {
        gen_topic_t t = {.name = GEN_STR("t"), .partitions = rows,
                         .partition_count = n};
        uint32_t i;

        memset(rows, 0, n * sizeof(*rows));
        for (i = 0; i < n; i++) {
                rows[i].id     = id_of(i);
                rows[i].leader = (int32_t)(i % 1000);
                rows[i].epoch  = (int32_t)(i % 7);
        }
        return t;
}

static rdmeta_err_t apply_topic(cw_t *w, gen_topic_t *t) {
        rdmeta_broker_t b     = {1, 9092, GEN_STR("h"), {NULL, 0}};
        gen_cluster_t cluster = {.brokers = &b, .broker_count = 1,
                                 .topics = t, .topic_count = 1};
        gen_bytes_t body      = {0};
        rdmeta_err_t err;

        gen_response(&cluster, w->api_version, &body);
        err = cw_apply(w, body.data, body.len, NULL);
        gen_bytes_free(&body);
        return err;
}

static int32_t id_dense(uint32_t i) { return (int32_t)i; }
static int32_t id_backwards(uint32_t i) { return 99999 - (int32_t)i; }
static int32_t id_sparse(uint32_t i) { return (int32_t)i * 3 + 5; }
static int32_t id_mixed(uint32_t i) {
        return (int32_t)((i * UINT32_C(2654435761)) >> 1);
}

static void large(int32_t (*id_of)(uint32_t i)) {
        enum { N = 100000 };
        gen_partition_t *rows = malloc(N * sizeof(*rows));
        gen_topic_t t;
        uint32_t i;
        cw_t w;

        CHECK(rows);
        t = odd_topic(rows, N, id_of);
        cw_init(&w, NULL);
        CHECK(!apply_topic(&w, &t));
        for (i = 0; i < N; i++)
                CHECK(cw_leader(&w, "t", rows[i].id) == (int32_t)(i % 1000));
        CHECK(cw_leader(&w, "t", INT32_MAX) == RDMETA_NO_PARTITION);
        CHECK(cw_leader(&w, "t", -1) == RDMETA_NO_PARTITION);
        CHECK(cw_leader(&w, "t", INT32_MIN) == RDMETA_NO_PARTITION);
        CHECK(cw_stats(&w).partitions == N);
        CHECK(!apply_topic(&w, &t));
        CHECK(w.applied.changed == 0);
        rows[N / 2].id = rows[N / 3].id;
        CHECK(apply_topic(&w, &t) == RDMETA_ERR_MALFORMED);
        cw_destroy(&w);
        free(rows);
}

TEST(test_100_000_partitions_are_found_whatever_their_ids) {
        large(id_dense);
        large(id_backwards);
        large(id_sparse);
        large(id_mixed);
}

/* Equal facts make equal blocks, in any order. */
CACHE_TEST(test_partitions_in_another_order_are_not_a_change) {
        CHECK(!cw_say(w, "t#a 0:1@1/r1,2 1:2@1/r2,3 2:3@1/r1,2 9:1@1/o3"));
        CHECK(!cw_say(w, "t#a 9:1@1/o3 2:3@1/r1,2 0:1@1/r1,2 1:2@1/r2,3"));
        CHECK(w->applied.unchanged == 1 && cw_version(w) == 1);
}

CACHE_TEST(test_columns_are_as_wide_as_values_need) {
        static const int32_t values[] = {0,     1,     127,   128,  255,
                                         256,   32767, 32768, 65535, 65536,
                                         INT32_MAX};
        char text[200];
        size_t i, k;

        for (i = 0; i < sizeof(values) / sizeof(*values); i++)
                for (k = 0; k < sizeof(values) / sizeof(*values); k++) {
                        CHECK(!rdmeta_cache_purge(w->cache, w->now));
                        snprintf(text, sizeof(text),
                                 "t#a 0:%d@%d/r%d,%d/i%d/o%d 1:-1@3/r%d,7",
                                 values[i], values[k], values[i], values[k],
                                 values[k], values[i], values[k]);
                        CHECK(!cw_say(w, text));
                        CHECK_TEXT(cw_topic(w, "t"), text);
                        CHECK(cw_leader(w, "t", 0) == values[i]);
                }
}

/* The counts make references to lists that need one, two and four bytes. */
TEST(test_lists_of_all_numbers_and_lengths_are_kept) {
        enum { N = 3000, MOST = 40 };
        static const uint32_t counts[] = {1, 3, 60, 120, N};
        gen_partition_t *rows = calloc(N, sizeof(*rows));
        int32_t *ids          = calloc(N * MOST, sizeof(*ids));
        test_rng_t rng        = test_rng(8);
        rdmeta_partition_t p;
        int32_t got[MOST];
        uint32_t i, k, c;
        gen_topic_t t;
        cw_t w;

        CHECK(rows && ids);
        memset(&p, 0, sizeof(p));
        p.replicas.ids      = got;
        p.replicas.capacity = MOST;
        for (c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
                t = odd_topic(rows, counts[c], id_dense);
                for (i = 0; i < counts[c]; i++) {
                        rows[i].replicas.ids   = ids + i * MOST;
                        rows[i].replicas.count =
                                (int32_t)test_below(&rng, MOST + 1);
                        for (k = 0; k < MOST; k++)
                                ids[i * MOST + k] =
                                        (int32_t)test_below(&rng, 30);
                        rows[i].isr = rows[test_below(&rng, i + 1)].replicas;
                }
                cw_init(&w, NULL);
                CHECK(!apply_topic(&w, &t));
                for (i = 0; i < counts[c]; i++) {
                        CHECK(!rdmeta_partition(w.reader, "t", 1, (int32_t)i,
                                                w.now.mono_us, &p));
                        CHECK(p.replicas.count ==
                              (uint32_t)rows[i].replicas.count);
                        CHECK(!memcmp(got, rows[i].replicas.ids,
                                      4 * p.replicas.count));
                        CHECK(p.isr.count == (uint32_t)rows[i].isr.count);
                }
                cw_destroy(&w);
        }
        free(rows);
        free(ids);
}

CACHE_TEST(test_a_list_longer_than_the_callers_room_is_counted) {
        rdmeta_partition_t p;
        int32_t ids[2] = {-7, -7};

        CHECK(!cw_say(w, "t#a 0:1@1/r1,2,3,4,5"));
        memset(&p, 0, sizeof(p));
        p.replicas.ids      = ids;
        p.replicas.capacity = 1;
        CHECK(!rdmeta_partition(w->reader, "t", 1, 0, w->now.mono_us, &p));
        CHECK(p.replicas.count == 5 && p.isr.count == 5);
        CHECK(ids[0] == 1 && ids[1] == -7);
        CHECK(rdmeta_partition(w->reader, "t", 1, 1, w->now.mono_us, &p) ==
              RDMETA_NO_PARTITION);
        CHECK(rdmeta_partition(w->reader, "u", 1, 0, w->now.mono_us, &p) ==
              RDMETA_NOT_CACHED);
}

TEST_MAIN()
