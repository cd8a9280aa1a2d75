/* brokers: tables made from answers and from other tables; lookups by id. */
#include "topic/brokers.h"

#include "support/testing.h"
#include "support/wire_gen.h"

enum { MOST = 300 };

typedef struct fixture {
        test_heap_t heap;
        rdmeta_allocator_t allocator;
        gen_cluster_t cluster;
        rdmeta_broker_t rows[MOST];
        char text[MOST][2][24];
        gen_bytes_t body;
} fixture_t;

static void fixture_init(fixture_t *w) {
        memset(w, 0, sizeof(*w));
        w->allocator          = test_allocator(&w->heap);
        w->cluster.brokers    = w->rows;
        w->cluster.cluster_id = GEN_STR("cluster");
        w->cluster.controller = 1;
}

static void fixture_destroy(fixture_t *w) {
        gen_bytes_free(&w->body);
        CHECK(!w->heap.blocks && !w->heap.bytes);
}

/* Adds a broker to the next answer; its host and port follow from its id. */
static void fixture_add(fixture_t *w, int32_t id, int rack) {
        const uint32_t i = w->cluster.broker_count++;

        CHECK(i < MOST);
        snprintf(w->text[i][0], sizeof(w->text[i][0]), "host-%d", (int)id);
        snprintf(w->text[i][1], sizeof(w->text[i][1]), "rack-%d", (int)id);
        w->rows[i].id   = id;
        w->rows[i].port = id % 60000 + 1;
        w->rows[i].host = test_str(w->text[i][0]);
        w->rows[i].rack = test_str(rack ? w->text[i][1] : NULL);
}

static rdmeta_err_t fixture_read(fixture_t *w, int version,
                                 const rdmeta_brokers_t *keep,
                                 rdmeta_brokers_t **out) {
        rdmeta_wire_t wire;
        rdmeta_err_t err;

        gen_bytes_clear(&w->body);
        gen_response(&w->cluster, version, &w->body);
        CHECK(!rdmeta_wire_open(&wire, w->body.data, w->body.len,
                                (int16_t)version, 0));
        *out = NULL;
        err  = rdmeta_brokers_read(&w->allocator, &wire, keep, 77, out);
        CHECK(!err == (*out != NULL));
        /* The reader has stopped where the topics begin. */
        if (!err)
                CHECK(!rdmeta_wire_close(&wire));
        /* The table has copies of its own. */
        memset(w->body.data, 0xee, w->body.len);
        return err;
}

static int by_id(const void *a, const void *b) {
        const rdmeta_broker_t *x = a, *y = b;

        return x->id < y->id ? -1 : x->id > y->id;
}

/* Checks that the table has the answer's brokers, in the order of ids. */
static void table_check(const fixture_t *w, const rdmeta_brokers_t *b,
                        int racks) {
        static rdmeta_broker_t rows[MOST];
        const uint32_t n = w->cluster.broker_count;
        rdmeta_broker_t x;
        uint32_t i;

        memcpy(rows, w->rows, n * sizeof(*rows));
        qsort(rows, n, sizeof(*rows), by_id);
        CHECK(rdmeta_brokers_count(b) == n);
        for (i = 0; i < n; i++) {
                if (!racks)
                        rows[i].rack = test_str(NULL);
                CHECK(!rdmeta_brokers_at(b, i, &x));
                CHECK(rdmeta_broker_same(&x, &rows[i]));
                CHECK(!rdmeta_brokers_find(b, rows[i].id, &x));
                CHECK(rdmeta_broker_same(&x, &rows[i]));
                CHECK(rdmeta_brokers_has(b, rows[i].id));
        }
        CHECK(rdmeta_brokers_at(b, n, &x) == RDMETA_ERR_ARGUMENT);
}

/* Makes ids that are small, that follow each other, or that are random. */
static int32_t any_id(test_rng_t *r) {
        switch (test_below(r, 4)) {
        case 0:
                return (int32_t)test_below(r, 8);
        case 1:
                return 1000 + (int32_t)test_below(r, 50);
        case 2:
                return (int32_t)(64 * test_below(r, 1000));
        default:
                return (int32_t)(test_u64(r) & INT32_MAX);
        }
}

static int fixture_has(const fixture_t *w, int32_t id) {
        uint32_t i;

        for (i = 0; i < w->cluster.broker_count; i++)
                if (w->rows[i].id == id)
                        return 1;
        return 0;
}

static void any_brokers(fixture_t *w, test_rng_t *r, size_t most) {
        size_t n = test_below(r, most + 1);

        w->cluster.broker_count = 0;
        while (n--) {
                const int32_t id = any_id(r);
                if (!fixture_has(w, id))
                        fixture_add(w, id, (int)test_below(r, 2));
        }
}

TEST(test_a_table_is_the_answers_brokers_by_id) {
        static const int32_t edges[] = {-1, 0, 63, 64, 1023, 1024, INT32_MAX,
                                        INT32_MIN, RDMETA_NONE};
        test_rng_t r = test_rng(1);
        static fixture_t w;
        rdmeta_brokers_t *b;
        rdmeta_broker_t x;
        int round, k;

        fixture_init(&w);
        for (round = 0; round < 600; round++) {
                const int version = (int)test_below(&r, 14);

                any_brokers(&w, &r, round % 20 ? 12 : MOST);
                CHECK(!fixture_read(&w, version, NULL, &b));
                table_check(&w, b, version >= 1);
                CHECK(b->version == 77);
                for (k = 0; k < 60; k++) {
                        const int32_t id =
                                k < 9 ? edges[k] : any_id(&r);
                        const int has = fixture_has(&w, id);

                        CHECK(rdmeta_brokers_has(b, id) == has);
                        CHECK(rdmeta_brokers_find(b, id, &x) ==
                              (has ? RDMETA_OK : RDMETA_NOT_CACHED));
                }
                rdmeta_brokers_destroy(&w.allocator, b);
        }
        fixture_destroy(&w);
}

TEST(test_the_cluster_has_the_fields_of_the_version) {
        static fixture_t w;
        rdmeta_brokers_t *b, *next;
        int version;

        fixture_init(&w);
        fixture_add(&w, 3, 1);
        w.cluster.controller = 3;
        for (version = 0; version <= 13; version++) {
                const rdmeta_str_t none = {NULL, 0};

                w.cluster.cluster_id = GEN_STR("cluster");
                CHECK(!fixture_read(&w, version, NULL, &b));
                CHECK(rdmeta_str_same(rdmeta_brokers_cluster_id(b),
                                      version < 2 ? none
                                                  : w.cluster.cluster_id));
                CHECK(rdmeta_brokers_controller(b) == (version < 1 ? -1 : 3));
                /* An answer without a cluster id keeps the known one. */
                w.cluster.cluster_id = none;
                CHECK(!fixture_read(&w, version, b, &next));
                CHECK(rdmeta_brokers_same(b, next));
                rdmeta_brokers_destroy(&w.allocator, b);
                if (version >= 2)
                        CHECK(next->cluster_id.len == 7 &&
                              !memcmp(next->cluster_id.data, "cluster", 7));
                rdmeta_brokers_destroy(&w.allocator, next);
        }
        fixture_destroy(&w);
}

TEST(test_impossible_brokers_are_malformed) {
        static const rdmeta_broker_t bad[] = {
            {-1, 9092, {"h", 1}, {NULL, 0}},
            {INT32_MIN, 9092, {"h", 1}, {NULL, 0}},
            {5, 9092, {"", 0}, {NULL, 0}},
            {5, -1, {"h", 1}, {NULL, 0}},
            {5, 65536, {"h", 1}, {NULL, 0}},
            {7, 9092, {"other", 5}, {NULL, 0}}}; /* a duplicate */
        static fixture_t w;
        rdmeta_brokers_t *b;
        size_t i, at;

        fixture_init(&w);
        for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                for (at = 0; at < 4; at++) {
                        w.cluster.broker_count = 0;
                        fixture_add(&w, 1, 0);
                        fixture_add(&w, 7, 1);
                        fixture_add(&w, 4, 0);
                        w.rows[3]  = w.rows[at];
                        w.rows[at] = bad[i];
                        w.cluster.broker_count = 4;
                        CHECK(fixture_read(&w, 9, NULL, &b) ==
                              RDMETA_ERR_MALFORMED);
                        CHECK(!w.heap.blocks);
                }
        fixture_destroy(&w);
}

TEST(test_same_means_all_but_the_controller) {
        static fixture_t w;
        rdmeta_brokers_t *a, *b;
        int what;

        for (what = 0; what < 8; what++) {
                fixture_init(&w);
                fixture_add(&w, 1, 1);
                fixture_add(&w, 2, 0);
                CHECK(!fixture_read(&w, 9, NULL, &a));
                if (what == 1)
                        w.cluster.controller = 2;
                if (what == 2)
                        w.rows[0].port++;
                if (what == 3)
                        w.rows[1].host = test_str("elsewhere");
                if (what == 4)
                        w.rows[1].rack = test_str("");
                if (what == 5)
                        w.rows[1].id = 3;
                if (what == 6)
                        fixture_add(&w, 9, 0);
                if (what == 7)
                        w.cluster.cluster_id = test_str("another");
                CHECK(!fixture_read(&w, 9, NULL, &b));
                CHECK(rdmeta_brokers_same(a, b) == (what < 2));
                CHECK(rdmeta_brokers_same(b, a) == (what < 2));
                CHECK(rdmeta_brokers_lost(a, b) == (what == 5));
                CHECK(rdmeta_brokers_lost(b, a) == (what == 5 || what == 6));
                rdmeta_brokers_destroy(&w.allocator, a);
                rdmeta_brokers_destroy(&w.allocator, b);
                fixture_destroy(&w);
        }
}

/* Brokers added one by one, in any order, some of them twice, give the same
 * table as one answer. */
TEST(test_with_one_more_is_as_if_it_had_been_there) {
        test_rng_t r = test_rng(2);
        static fixture_t w;
        rdmeta_brokers_t *b, *next, *whole;
        uint32_t i;
        int round;

        fixture_init(&w);
        for (round = 0; round < 100; round++) {
                any_brokers(&w, &r, 40);
                CHECK(!fixture_read(&w, 12, NULL, &whole));
                b             = rdmeta_brokers_empty(&w.allocator, 1);
                b->cluster_id = w.cluster.cluster_id;
                for (i = 0; i < w.cluster.broker_count; i++) {
                        rdmeta_broker_t moved = w.rows[i];

                        moved.port = 1;
                        moved.rack = test_str("moved");
                        if (test_below(&r, 2)) {
                                next = rdmeta_brokers_with(&w.allocator, b,
                                                           &moved, i + 2);
                                rdmeta_brokers_destroy(&w.allocator, b);
                                b = next;
                                CHECK(rdmeta_brokers_count(b) == i + 1);
                        }
                        next = rdmeta_brokers_with(&w.allocator, b,
                                                   &w.rows[i], i + 2);
                        CHECK(next && next->version == i + 2);
                        rdmeta_brokers_destroy(&w.allocator, b);
                        b = next;
                }
                table_check(&w, b, 1);
                CHECK(rdmeta_brokers_same(b, whole));
                rdmeta_brokers_destroy(&w.allocator, b);
                rdmeta_brokers_destroy(&w.allocator, whole);
        }
        fixture_destroy(&w);
}

TEST(test_no_brokers_is_a_table_too) {
        static fixture_t w;
        rdmeta_brokers_t *b, *read;
        rdmeta_broker_t x;

        fixture_init(&w);
        b = rdmeta_brokers_empty(&w.allocator, 5);
        CHECK(b && b->version == 5 && rdmeta_brokers_count(b) == 0);
        CHECK(!rdmeta_brokers_cluster_id(b).data);
        CHECK(rdmeta_brokers_controller(b) == -1);
        CHECK(rdmeta_brokers_find(b, 0, &x) == RDMETA_NOT_CACHED);
        CHECK(!rdmeta_brokers_has(b, 0) && !rdmeta_brokers_has(b, -1));
        w.cluster.cluster_id = test_str(NULL);
        CHECK(!fixture_read(&w, 12, NULL, &read));
        CHECK(rdmeta_brokers_same(b, read));
        rdmeta_brokers_destroy(&w.allocator, read);
        rdmeta_brokers_destroy(&w.allocator, b);
        rdmeta_brokers_destroy(&w.allocator, NULL);
        fixture_destroy(&w);
}

TEST(test_every_allocation_may_fail) {
        static fixture_t w;
        rdmeta_brokers_t *b = NULL, *next = NULL;
        size_t n;

        fixture_init(&w);
        fixture_add(&w, 1, 1);
        fixture_add(&w, 2, 0);
        for (n = 1; !b; n++) {
                w.heap.calls   = 0;
                w.heap.fail_at = n;
                if (fixture_read(&w, 12, NULL, &b))
                        CHECK(!w.heap.blocks);
        }
        CHECK(n > 2);
        for (n = 1; !next; n++) {
                const size_t blocks = w.heap.blocks;

                w.heap.calls   = 0;
                w.heap.fail_at = n;
                next = rdmeta_brokers_with(&w.allocator, b, &w.rows[0], 3);
                CHECK(w.heap.blocks == blocks + (next != NULL));
        }
        CHECK(n > 2);
        w.heap.calls   = 0;
        w.heap.fail_at = 1;
        CHECK(!rdmeta_brokers_empty(&w.allocator, 1));
        rdmeta_brokers_destroy(&w.allocator, b);
        rdmeta_brokers_destroy(&w.allocator, next);
        fixture_destroy(&w);
}

TEST_MAIN()
