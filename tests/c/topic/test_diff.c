/*
 * diff: the records of a pair of blocks, for every pair of states, and of a
 * pair of broker tables. test_changes.c has the records of partitions.
 */
#include "topic/diff.h"

#include "base/alloc.h"
#include "support/cache_fixture.h"

typedef struct seen {
        int n;
        int32_t kinds[8];
        char detail[400];
        size_t detail_len;
        int32_t broker, stop;
} seen_t;

static int32_t see(void *opaque, const rdmeta_change_t *c) {
        seen_t *t = opaque;

        CHECK(t->n < 8 && rdmeta_change_kind_name(c->kind));
        t->kinds[t->n++] = c->kind;
        t->broker        = c->broker;
        t->detail_len    = c->detail.len;
        CHECK(c->detail.len < sizeof(t->detail));
        memset(t->detail, 0, sizeof(t->detail));
        if (c->detail.data)
                memcpy(t->detail, c->detail.data, c->detail.len);
        return t->stop;
}

static rdmeta_diff_out_t out_to(seen_t *t) {
        static int32_t ids[RDMETA_DIFF_LISTS];
        rdmeta_diff_out_t out;

        memset(t, 0, sizeof(*t));
        memset(&out, 0, sizeof(out));
        out.visit    = see;
        out.opaque   = t;
        out.ids      = ids;
        out.ids_each = 1;
        return out;
}

/* ---- topics ------------------------------------------------------------ */

enum { STATES = RDMETA_TOPIC_GONE + 1, NONE = -1 };

/* Returns the kind of record that is expected for two blocks without
 * partitions, or -1. Only a valid or absent one has certainly been seen. */
static int32_t wanted(int from, int to) {
        if (to == NONE || to == RDMETA_TOPIC_GONE)
                return from == RDMETA_TOPIC_VALID ||
                                       from == RDMETA_TOPIC_MISSING
                               ? RDMETA_TOPIC_REMOVED
                               : -1;
        if (to == RDMETA_TOPIC_VALID)
                return from == RDMETA_TOPIC_VALID ? -1 : RDMETA_TOPIC_ADDED;
        if (to == RDMETA_TOPIC_WAIT || from == to)
                return -1;
        if (to == RDMETA_TOPIC_MISSING)
                return RDMETA_TOPIC_ABSENT;
        return RDMETA_TOPIC_ERROR;
}

TEST(test_every_pair_of_states_makes_its_record) {
        const rdmeta_str_t name = {"a topic", 7};
        const uint8_t id[16]    = {1};
        rdmeta_topic_t *topics[STATES];
        rdmeta_diff_out_t out;
        rdmeta_memory_t blocks;
        int from, to;
        seen_t t;

        rdmeta_memory_init(&blocks, NULL, RDMETA_TOPIC_HEADER_SIZE);
        for (to = 0; to < STATES; to++) {
                topics[to] = rdmeta_topic_bare(&blocks, name, id, (uint16_t)to,
                                               (int16_t)to, 1);
                CHECK(topics[to]);
        }
        for (from = NONE; from < STATES; from++) {
                for (to = NONE; to < STATES; to++) {
                        if (from == NONE && to == NONE)
                                continue;
                        out = out_to(&t);
                        CHECK(!rdmeta_diff_topics(
                                &out, from == NONE ? NULL : topics[from],
                                to == NONE ? NULL : topics[to]));
                        if (wanted(from, to) < 0) {
                                CHECK(t.n == 0);
                        } else {
                                CHECK(t.n == 1);
                                CHECK(t.kinds[0] == wanted(from, to));
                        }
                        out    = out_to(&t);
                        t.stop = 9;
                        CHECK(rdmeta_diff_topics(
                                      &out, from == NONE ? NULL : topics[from],
                                      to == NONE ? NULL : topics[to]) ==
                              9 * t.n);
                }
        }
        for (to = 0; to < STATES; to++)
                rdmeta_topic_destroy(&blocks, topics[to]);
        rdmeta_memory_destroy(&blocks);
}

/* ---- lists ------------------------------------------------------------- */

enum { ROWS = 20000, MEMBERS = 1024 };

/* Returns a block whose rows all have the replicas 0, 1, ... and the same in
 * sync, backwards from `from` on. The caller frees the memory that begins 4
 * bytes before its cold part. */
static rdmeta_topic_t *lists_topic(int from) {
        const size_t size = RDMETA_TOPIC_HEADER_SIZE + RDMETA_TOPIC_FIXED + 1 +
                            6 * (size_t)ROWS + 2 * (3 + 2 * MEMBERS);
        char *raw         = calloc(1, 4 + size);
        int16_t lists[3 + 2 * MEMBERS] = {0}, refs[2] = {1, 2 + MEMBERS};
        rdmeta_topic_t *t;
        char *p;
        int i;

        CHECK(raw);
        t           = (rdmeta_topic_t *)(void *)(raw + 4 +
                                                 RDMETA_TOPIC_HEADER_SIZE);
        t->count    = ROWS;
        t->name_len = 1;
        rdmeta_cold(t)->size  = (uint32_t)size;
        rdmeta_cold(t)->flags = RDMETA_TOPIC_F_ISR |
                                1 << RDMETA_TOPIC_LIST_SHIFT |
                                1 << RDMETA_TOPIC_REF_SHIFT;
        lists[1] = lists[2 + MEMBERS] = MEMBERS;
        for (i = 0; i < MEMBERS; i++)
                lists[2 + i] = lists[3 + MEMBERS + i] = (int16_t)i;
        for (i = from; i < MEMBERS; i++)
                lists[3 + MEMBERS + i] = (int16_t)(from + MEMBERS - 1 - i);
        p = raw + 4 + size - sizeof(lists);
        memcpy(p, lists, sizeof(lists));
        for (i = 0, p -= 4 * (size_t)ROWS; i < 2 * ROWS; i++, p += 2)
                memcpy(p, &refs[i / ROWS], 2);
        return t;
}

/* The same brokers are in sync, in another order. The comparison takes no time
 * that grows with the square of their number. */
TEST(test_brokers_in_sync_are_compared_without_their_order) {
        const int from[]      = {0, 1, MEMBERS / 2, MEMBERS - 2};
        const clock_t began   = clock();
        rdmeta_topic_t *whole = lists_topic(MEMBERS), *other;
        rdmeta_diff_out_t out;
        seen_t t;
        size_t i;

        for (i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
                other = lists_topic(from[i]);
                out   = out_to(&t);
                CHECK(!rdmeta_diff_topics(&out, whole, other));
                CHECK(!t.n);
                free((char *)other - RDMETA_TOPIC_HEADER_SIZE - 4);
        }
        free((char *)whole - RDMETA_TOPIC_HEADER_SIZE - 4);
        CHECK(clock() - began < 30 * CLOCKS_PER_SEC);
}

/* ---- rows of anywhere --------------------------------------------------- */

typedef struct rows_seen {
        int n;
        rdmeta_change_t records[8];
        int32_t ids[8]; /* the first id of each record's new ISR, or -1 */
} rows_seen_t;

static int32_t see_row(void *opaque, const rdmeta_change_t *c) {
        rows_seen_t *seen = opaque;

        CHECK(seen->n < 8);
        CHECK(c->topic.len == 6 && !memcmp(c->topic.data, "orders", 6));
        CHECK(c->topic_id && c->topic_id[0] == 7);
        CHECK(c->version == 12 && c->offset == 11 && c->wall_us == 1000);
        CHECK(c->source == RDMETA_SOURCE_LOG && c->source_broker == 3);
        seen->ids[seen->n]       = c->new_isr.count ? c->new_isr.ids[0] : -1;
        seen->records[seen->n++] = *c;
        return 0;
}

/* Returns a list of big-endian ids; each takes four bytes. */
static rdmeta_list_t wire_list(const char *bytes, uint32_t count) {
        return (rdmeta_list_t){(const uint8_t *)bytes, count,
                               RDMETA_LIST_WIRE};
}

static rdmeta_diff_out_t out_to_rows(rows_seen_t *seen, int32_t *ids) {
        static const uint8_t id[16] = {7};
        rdmeta_diff_out_t out;

        memset(seen, 0, sizeof(*seen));
        memset(&out, 0, sizeof(out));
        out.visit                = see_row;
        out.opaque               = seen;
        out.ids                  = ids;
        out.ids_each             = 3;
        out.record.version       = 12;
        out.record.offset        = 11;
        out.record.wall_us       = 1000;
        out.record.source        = RDMETA_SOURCE_LOG;
        out.record.source_broker = 3;
        rdmeta_diff_begin(&out, (rdmeta_str_t){"orders", 6}, id);
        return out;
}

#define ID(n) "\0\0\0" n

TEST(test_rows_of_a_log_have_the_records_of_a_blocks_rows) {
        const rdmeta_list_t all = wire_list(ID("\1") ID("\2") ID("\3"), 3);
        const rdmeta_list_t turned =
                wire_list(ID("\3") ID("\1") ID("\2"), 3);
        const rdmeta_list_t two = wire_list(ID("\2") ID("\3"), 2);
        const rdmeta_row_t old  = {5, 1, 1, 8, 8, 0, all, all, {NULL, 0, 0}};
        rdmeta_row_t row        = old;
        int32_t ids[RDMETA_DIFF_ALL_LISTS * 3];
        rdmeta_diff_out_t out;
        rows_seen_t seen;

        out     = out_to_rows(&seen, ids);
        row.isr = turned;
        CHECK(!rdmeta_diff_row(&out, &old, &row) && !seen.n);
        row.leader = row.last = 2;
        row.epoch = row.high = 9;
        row.isr              = two;
        row.replicas         = turned;
        CHECK(!rdmeta_diff_row(&out, &old, &row) && seen.n == 3);
        CHECK(seen.records[0].kind == RDMETA_LEADER_CHANGED);
        CHECK(seen.records[0].old_leader == 1);
        CHECK(seen.records[0].new_leader_epoch == 9);
        CHECK(seen.records[1].kind == RDMETA_ISR_CHANGED);
        CHECK(seen.records[1].old_isr.count == 3 && seen.ids[1] == 2);
        CHECK(seen.records[2].kind == RDMETA_REPLICAS_CHANGED);
        CHECK(seen.records[2].partition == 5 && seen.ids[2] == -1);
}

TEST(test_a_row_added_and_a_record_by_hand_stand_alone) {
        const rdmeta_list_t two = wire_list(ID("\2") ID("\3"), 2);
        const rdmeta_row_t row  = {5, -1, -1, 8, 8, 0, two, two, two};
        int32_t ids[RDMETA_DIFF_ALL_LISTS * 3];
        rdmeta_diff_out_t out;
        rows_seen_t seen;

        out = out_to_rows(&seen, ids);
        CHECK(!rdmeta_diff_row_added(&out, RDMETA_PARTITIONS_ADDED, &row));
        CHECK(seen.n == 1 && seen.ids[0] == 2);
        CHECK(seen.records[0].new_leader == -1);
        CHECK(seen.records[0].old_leader == RDMETA_NONE);
        CHECK(seen.records[0].new_offline.count == 2);
        out.record.partition = 5;
        out.record.new_isr   = rdmeta_diff_ids(&out, RDMETA_DIFF_ELR, two);
        CHECK(out.record.new_isr.ids == ids + 3 * RDMETA_DIFF_ELR);
        out.record.new_elr = out.record.new_adding = out.record.new_isr;
        CHECK(!rdmeta_diff_emit(&out, RDMETA_ISR_CHANGED));
        CHECK(seen.n == 2 && seen.ids[1] == 2);
        CHECK(!out.record.new_isr.ids && !out.record.new_elr.ids);
        CHECK(seen.records[1].new_adding.count == 2);
        CHECK(!out.record.new_adding.ids);
        CHECK(out.record.partition == RDMETA_NONE);
}

/* ---- brokers ----------------------------------------------------------- */

/* Returns a table of these brokers. */
static rdmeta_brokers_t *table(const rdmeta_broker_t *rows, size_t n) {
        rdmeta_brokers_t *b = rdmeta_brokers_empty(NULL, 0);
        size_t i;

        for (i = 0; i < n; i++) {
                rdmeta_brokers_t *more =
                        rdmeta_brokers_with(NULL, b, &rows[i], 0);
                CHECK(more);
                rdmeta_brokers_destroy(NULL, b);
                b = more;
        }
        return b;
}

TEST(test_brokers_have_records_in_the_order_of_their_ids) {
        const rdmeta_str_t none    = {NULL, 0};
        const rdmeta_broker_t a[]  = {{1, 1, {"a", 1}, none},
                                      {3, 1, {"c", 1}, none},
                                      {5, 1, {"e", 1}, none},
                                      {2000, 1, {"x", 1}, none}};
        const rdmeta_broker_t b[]  = {{3, 1, {"c", 1}, none},
                                      {4, 1, {"d", 1}, none},
                                      {5, 2, {"e", 1}, none}};
        rdmeta_brokers_t *x = table(a, 4), *y = table(b, 3);
        rdmeta_diff_out_t out;
        seen_t t;

        out = out_to(&t);
        CHECK(!rdmeta_diff_brokers(&out, x, y));
        CHECK(t.n == 4 && t.kinds[0] == RDMETA_BROKER_REMOVED);
        CHECK(t.kinds[1] == RDMETA_BROKER_ADDED);
        CHECK(t.kinds[2] == RDMETA_BROKER_CHANGED);
        CHECK(t.kinds[3] == RDMETA_BROKER_REMOVED && t.broker == 2000);
        out    = out_to(&t);
        t.stop = 5;
        CHECK(rdmeta_diff_brokers(&out, x, y) == 5 && t.n == 1);
        out = out_to(&t);
        CHECK(!rdmeta_diff_brokers(&out, x, x) && t.n == 0);
        rdmeta_brokers_destroy(NULL, x);
        rdmeta_brokers_destroy(NULL, y);
}

TEST(test_a_rack_is_a_change_and_an_empty_one_is_one) {
        const rdmeta_broker_t none  = {1, 1, {"a", 1}, {NULL, 0}};
        const rdmeta_broker_t empty = {1, 1, {"a", 1}, {"", 0}};
        const rdmeta_broker_t rack  = {1, 1, {"a", 1}, {"r", 1}};
        const rdmeta_broker_t *const rows[] = {&none, &empty, &rack};
        static const char *const texts[] = {"a:1", "a:1 rack=", "a:1 rack=r"};
        rdmeta_diff_out_t out;
        int i, k;
        seen_t t;

        for (i = 0; i < 3; i++)
                for (k = 0; k < 3; k++) {
                        rdmeta_brokers_t *x = table(rows[i], 1);
                        rdmeta_brokers_t *y = table(rows[k], 1);

                        out = out_to(&t);
                        CHECK(!rdmeta_diff_brokers(&out, x, y));
                        CHECK(t.n == (i != k));
                        if (i != k) {
                                CHECK(t.kinds[0] == RDMETA_BROKER_CHANGED);
                                CHECK(!strcmp(t.detail, texts[k]));
                        }
                        rdmeta_brokers_destroy(NULL, x);
                        rdmeta_brokers_destroy(NULL, y);
                }
}

/* The longest strings of Kafka's are cut, and do not overrun the buffer. */
TEST(test_details_of_any_length_are_recorded) {
        static const size_t lengths[] = {1, 200, 254, 255, 256, 300, 32767};
        char *text = malloc(32767);
        rdmeta_diff_out_t out;
        size_t i, k;
        seen_t t;

        CHECK(text);
        memset(text, 'h', 32767);
        for (i = 0; i < 7; i++)
                for (k = 0; k < 7; k++) {
                        const rdmeta_broker_t row = {INT32_MAX,
                                                     65535,
                                                     {text, lengths[i]},
                                                     {text, lengths[k]}};
                        rdmeta_brokers_t *x = table(NULL, 0);
                        rdmeta_brokers_t *y = table(&row, 1);

                        out = out_to(&t);
                        CHECK(!rdmeta_diff_brokers(&out, x, y));
                        CHECK(t.n == 1 && t.broker == INT32_MAX);
                        CHECK(t.detail_len == strlen(t.detail));
                        CHECK(!strncmp(t.detail, "h", 1));
                        rdmeta_brokers_destroy(NULL, x);
                        rdmeta_brokers_destroy(NULL, y);
                }
        free(text);
}

/* ---- any difference ---------------------------------------------------- */

/* Makes a topic with a few facts that may each differ. Lists are in order,
 * since a set in another order makes no record. */
static const char *any_topic(test_rng_t *rng, char text[256]) {
        static const char *const ids[]  = {"", "#a", "#a", "#a", "#b"};
        static const char *const ops[]  = {"", "", "^8", "^24"};
        static const char *const rows[] = {
                "1@3",         "1",           "2@4",         "-1@3/r1",
                "-1/r1",       "1@3/r1,2",    "1@3/r1,2/i1", "1@3/r1,2/o2",
                "1@3/r1,2/e9", "-1@4/r1/e5", "1@4",         "1@3/r2,1/i1,2"};
        const int n = 1 + (int)test_below(rng, 2);
        int i, at;

        at = snprintf(text, 256, "t%s%s%s", ids[test_below(rng, 5)],
                      ops[test_below(rng, 4)], test_below(rng, 6) ? "" : "~");
        for (i = 0; i < n; i++)
                at += snprintf(text + at, 256 - (size_t)at, " %d:%s", i,
                               rows[test_below(rng, 12)]);
        return text;
}

/* Returns a block after one answer, or after two, so that it remembers facts of
 * the first. */
static const rdmeta_topic_t *any_block(cw_t *w, test_rng_t *rng) {
        static const int versions[] = {12, 12, 12, 8, 5};
        const rdmeta_topic_t *t;
        char text[256];
        int i;

        cw_init(w, NULL);
        for (i = 1 + (int)test_below(rng, 3); i > 0; i--) {
                w->api_version = versions[test_below(rng, 5)];
                CHECK(!cw_say(w, any_topic(rng, text)));
        }
        rdmeta_reader_enter(w->reader);
        rdmeta_topic_find(w->reader, "t", 1, w->now.mono_us, &t);
        CHECK(t);
        return t;
}

TEST(test_blocks_differ_exactly_when_there_is_a_record) {
        test_rng_t rng = test_rng(1);
        int i, n[2] = {0, 0};

        for (i = 0; i < 4000; i++) {
                test_rng_t same = rng;
                const rdmeta_topic_t *a, *b;
                cw_t x, y;

                a = any_block(&x, &rng);
                b = any_block(&y, i % 4 ? &rng : &same);
                CHECK(rdmeta_change_differs(a, b) == !rdmeta_topic_same(a, b));
                CHECK(rdmeta_change_differs(b, a) == !rdmeta_topic_same(a, b));
                CHECK(!rdmeta_change_differs(a, a));
                n[rdmeta_topic_same(a, b)]++;
                rdmeta_reader_leave(x.reader);
                rdmeta_reader_leave(y.reader);
                cw_destroy(&x);
                cw_destroy(&y);
        }
        CHECK(n[0] && n[1]);
}

/* Returns the first kind of record between two answers about one topic, each in
 * a new cache. */
static int32_t first_kind(const char *before, const char *after) {
        const rdmeta_topic_t *topics[2];
        rdmeta_diff_out_t out;
        cw_t caches[2];
        seen_t t;
        int i;

        for (i = 0; i < 2; i++) {
                cw_init(&caches[i], NULL);
                CHECK(!cw_say(&caches[i], i ? after : before));
                rdmeta_reader_enter(caches[i].reader);
                rdmeta_topic_find(caches[i].reader, "t", 1,
                                  caches[i].now.mono_us, &topics[i]);
        }
        out    = out_to(&t);
        t.stop = 1;
        CHECK(rdmeta_diff_topics(&out, topics[0], topics[1]) == 1);
        for (i = 0; i < 2; i++) {
                rdmeta_reader_leave(caches[i].reader);
                cw_destroy(&caches[i]);
        }
        return t.kinds[0];
}

TEST(test_an_id_that_comes_with_less_is_another_topics) {
        CHECK(first_kind("t 0:1@5", "t#a 0:1@5") == RDMETA_TOPIC_ID_LEARNED);
        CHECK(first_kind("t 0:1@5", "t#a 0:1@6") == RDMETA_TOPIC_ID_LEARNED);
        CHECK(first_kind("t 0:1@5", "t#a 0:1") == RDMETA_TOPIC_ID_LEARNED);
        CHECK(first_kind("t 0:1@5", "t#a 0:1@4") == RDMETA_TOPIC_RECREATED);
        CHECK(first_kind("t 0:1 1:1", "t#a 0:1") == RDMETA_TOPIC_RECREATED);
}

/* ---- names ------------------------------------------------------------- */

TEST(test_kinds_and_sources_have_names_of_their_own) {
        int i, k;

        for (i = 0; i <= RDMETA_CONTROLLER_CHANGED; i++)
                for (k = 0; k < i; k++)
                        CHECK(strcmp(rdmeta_change_kind_name(i),
                                     rdmeta_change_kind_name(k)) != 0);
        for (i = 0; i <= RDMETA_SOURCE_PURGE; i++)
                for (k = 0; k < i; k++)
                        CHECK(strcmp(rdmeta_source_name(i),
                                     rdmeta_source_name(k)) != 0);
        CHECK(!rdmeta_change_kind_name(RDMETA_CONTROLLER_CHANGED + 1));
        CHECK(!rdmeta_change_kind_name(-1) && !rdmeta_source_name(-1));
        CHECK(!rdmeta_source_name(RDMETA_SOURCE_PURGE + 1));
        CHECK(!strcmp(rdmeta_change_kind_name(RDMETA_TOPIC_ADDED),
                      "topic_added"));
        CHECK(!strcmp(rdmeta_change_kind_name(RDMETA_ISR_CHANGED),
                      "isr_changed"));
        CHECK(!strcmp(rdmeta_change_kind_name(RDMETA_CLUSTER_CHANGED),
                      "cluster_changed"));
        CHECK(!strcmp(rdmeta_change_kind_name(RDMETA_OBSERVED_TO),
                      "observed_to"));
        CHECK(!strcmp(rdmeta_source_name(RDMETA_SOURCE_EXPIRY), "expiry"));
}

TEST_MAIN()
