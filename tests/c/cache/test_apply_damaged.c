/*
 * Damaged answers: the cache returns an error and does not change, or it takes
 * an answer that makes sense. It never allocates more than a fixed multiple of
 * the answer's bytes.
 */
#include "support/cache_fixture.h"

/* The most bytes that one apply allocates: a multiple of the answer's length,
 * and a constant. The worst answer has a topic of many partitions without
 * replicas. Each has 18 bytes there, which the builder spreads into columns,
 * lists and a hash of lists. */
enum { MULTIPLE = 100, CONSTANT = 256 << 10 };

typedef struct meter {
        size_t asked, live;
} meter_t;

static void *meter_alloc(void *opaque, size_t size) {
        meter_t *m = opaque;

        m->asked += size;
        m->live += size;
        return malloc(size);
}

static void meter_free(void *opaque, void *p, size_t size) {
        meter_t *m = opaque;

        CHECK(m->live >= size);
        m->live -= size;
        free(p);
}

static meter_t meter;

static void with_meter(rdmeta_conf_t *conf) {
        const rdmeta_allocator_t a = {meter_alloc, meter_free, &meter};

        memset(&meter, 0, sizeof(meter));
        conf->allocator = a;
}

static const char known[] = "t#a 0:1@5/r1,2,3/i1,2 1:2@5; known#k 0:1@1";
static const char damaged[] = "t#a^8 0:1@6/r1,2,3/i1,2/o3 1:-1@5/e5; b~ 0:2@1; "
                              "?#k!100; err!3";

/* Makes a cache that knows the topics of `known`. */
static void fill(cw_t *w, int version) {
        cw_init(w, with_meter);
        w->api_version = version;
        w->brokers     = "1=a:1=r,2,3";
        CHECK(!cw_all(w, known));
}

static void refill(cw_t *w, int version) {
        cw_destroy(w);
        CHECK(meter.live == 0);
        fill(w, version);
}

/* The sum of all bytes. It makes a sanitizer check every byte. */
static uint64_t sum;

static void read_bytes(const void *data, size_t len) {
        const uint8_t *p = data;

        while (len--)
                sum += p[len];
}

static int32_t visit_change(void *opaque, const rdmeta_change_t *c) {
        (void)opaque;
        read_bytes(c->topic.data, c->topic.len);
        read_bytes(c->detail.data, c->detail.len);
        read_bytes(c->new_isr.ids, 4 * c->new_isr.count);
        read_bytes(c->old_replicas.ids, 4 * c->old_replicas.count);
        read_bytes(c->new_offline.ids, 4 * c->new_offline.count);
        CHECK(rdmeta_change_kind_name(c->kind));
        return 0;
}

static int32_t visit_topic(void *opaque, const rdmeta_topic_t *t) {
        rdmeta_partition_t p;
        int32_t ids[4];
        uint32_t i;

        memset(&p, 0, sizeof(p));
        p.isr.ids      = ids;
        p.isr.capacity = 4;
        for (i = 0; !rdmeta_topic_partition_at(NULL, t, i, &p); i++)
                CHECK(p.leader >= -1 && p.leader_epoch >= -1);
        ++*(int *)opaque;
        return 0;
}

static void read_all(cw_t *w) {
        uint64_t until;
        int32_t resync;
        int n = 0;

        CHECK(!rdmeta_cache_changes(w->cache, cw_version(w) - 1, visit_change,
                                    NULL, &until, &resync));
        CHECK(!rdmeta_reader_walk(w->reader, "", 0, 7, w->now.mono_us,
                                  visit_topic, &n));
        cw_check(w);
}

/* Applies an answer and checks the cache. Returns 0 if the cache took it. */
static rdmeta_err_t try(cw_t *w, const uint8_t *data, size_t len,
                        int32_t asked, const char *before) {
        const rdmeta_request_t r = cw_request(w, asked);
        rdmeta_err_t err;
        char *after;

        meter.asked = 0;
        err         = cw_apply(w, data, len, &r);
        CHECK(meter.asked <= MULTIPLE * len + CONSTANT);
        if (err) {
                after = cw_dump(w);
                CHECK_TEXT(after, before);
                free(after);
        } else {
                read_all(w);
        }
        return err;
}

TEST(test_every_prefix_is_refused) {
        gen_bytes_t body = {0};
        char *before;
        int version;
        size_t len;
        cw_t w;

        for (version = 0; version <= 13; version++) {
                fill(&w, version);
                before = cw_dump(&w);
                gen_bytes_clear(&body);
                cw_body(&w, damaged, &body);
                for (len = 0; len < body.len; len++) {
                        w.flags = len & 1 ? RDMETA_REQ_TOLERATE_TRAILING : 0;
                        CHECK(try(&w, body.data, len,
                                  len & 2 ? RDMETA_ASKED_ALL
                                          : RDMETA_ASKED_UNKNOWN,
                                  before) == RDMETA_ERR_MALFORMED);
                }
                CHECK(!try(&w, body.data, len, RDMETA_ASKED_ALL, before));
                free(before);
                cw_destroy(&w);
        }
        gen_bytes_free(&body);
}

TEST(test_every_corruption_of_a_byte_is_survived) {
        static const uint8_t flips[] = {1,   2,   4,    8,    16,  32,
                                        64,  128, 0xff, 0x7f, 0x81};
        gen_bytes_t body = {0};
        char *before;
        int version;
        size_t i, f, taken = 0, refused = 0;
        cw_t w;

        for (version = 0; version <= 13; version++) {
                fill(&w, version);
                before = cw_dump(&w);
                gen_bytes_clear(&body);
                cw_body(&w, damaged, &body);
                for (i = 0; i < body.len; i++) {
                        for (f = 0; f < sizeof(flips); f++) {
                                body.data[i] ^= flips[f];
                                if (try(&w, body.data, body.len,
                                        f & 1 ? RDMETA_ASKED_ALL
                                              : RDMETA_ASKED_UNKNOWN,
                                        before)) {
                                        refused++;
                                } else {
                                        taken++;
                                        refill(&w, version);
                                }
                                body.data[i] ^= flips[f];
                        }
                }
                free(before);
                cw_destroy(&w);
        }
        CHECK(taken && refused);
        gen_bytes_free(&body);
}

TEST(test_bytes_of_another_version_are_survived) {
        gen_bytes_t body = {0};
        int version, other;
        char *before;
        cw_t w;

        for (version = 0; version <= 13; version++) {
                fill(&w, version);
                gen_bytes_clear(&body);
                cw_body(&w, damaged, &body);
                for (other = -1; other <= 14; other++) {
                        const rdmeta_err_t wanted =
                                other < 0 || other > 13
                                        ? RDMETA_ERR_UNSUPPORTED
                                        : RDMETA_ERR_MALFORMED;
                        rdmeta_err_t err;

                        before        = cw_dump(&w);
                        w.api_version = other;
                        err = try(&w, body.data, body.len, RDMETA_ASKED_ALL,
                                  before);
                        CHECK(err == 0 || err == wanted);
                        CHECK(err == 0 || other != version);
                        w.api_version = version;
                        free(before);
                }
                cw_destroy(&w);
        }
        gen_bytes_free(&body);
}

/* Heavier damage of answers of odd clusters, all applied to one cache. */
TEST(test_heavy_corruption_is_survived) {
        test_rng_t rng   = test_rng(3);
        gen_bytes_t body = {0};
        char *before;
        int i, n, taken = 0;
        cw_t w;

        fill(&w, 12);
        for (i = 0; i < 6000; i++) {
                gen_cluster_t *cluster = gen_odd_cluster_new(test_u64(&rng));

                w.api_version = (int)test_below(&rng, 14);
                w.broker      = (int32_t)test_below(&rng, 3);
                w.flags       = test_below(&rng, 8)
                                        ? 0
                                        : RDMETA_REQ_REBOOTSTRAPPED;
                gen_bytes_clear(&body);
                gen_response(cluster, w.api_version, &body);
                for (n = (int)test_below(&rng, 5); n > 0; n--)
                        body.data[test_below(&rng, body.len)] ^=
                                (uint8_t)(1u << test_below(&rng, 8));
                before = cw_dump(&w);
                taken += !try(&w, body.data, body.len,
                              (int32_t)test_below(&rng, 2), before);
                free(before);
                free(cluster);
                if (i % 16 == 0)
                        cw_sweep_after(&w,
                                       (int64_t)test_below(&rng, 1000) * CW_S);
        }
        CHECK(taken);
        gen_bytes_free(&body);
        cw_destroy(&w);
}

/* Checks the allocated bytes of an answer with these topics. */
static void densest(int version, gen_topic_t *topics, uint32_t n,
                    gen_bytes_t *body) {
        rdmeta_broker_t b     = {1, 1, GEN_STR("h"), {NULL, 0}};
        gen_cluster_t cluster = {.brokers      = &b,
                                 .broker_count = 1,
                                 .topics       = topics,
                                 .topic_count  = n};
        cw_t w;

        gen_bytes_clear(body);
        gen_response(&cluster, version, body);
        fill(&w, version);
        CHECK(!try(&w, body->data, body->len, RDMETA_ASKED_UNKNOWN, ""));
        CHECK(w.applied.topics == n && w.applied.changed == n);
        cw_destroy(&w);
}

/* The densest answers have rows without lists and in no order, or topics
 * without rows. */
TEST(test_memory_is_a_fixed_multiple_of_the_densest_answers) {
        enum { N = 30000 };
        gen_partition_t *rows = calloc(N, sizeof(*rows));
        gen_topic_t *topics   = calloc(N, sizeof(*topics));
        char(*names)[4]       = calloc(N, sizeof(*names));
        gen_topic_t one       = {.name = GEN_STR("one"), .partitions = rows,
                                 .partition_count = N};
        gen_bytes_t body      = {0};
        int version, i;

        CHECK(rows && topics && names);
        for (i = 0; i < N; i++) {
                rows[i].id = N - i;
                memcpy(names[i], &i, 3);
                topics[i].name.data = names[i];
                topics[i].name.len  = 2;
        }
        for (version = 0; version <= 13; version++) {
                densest(version, &one, 1, &body);
                densest(version, topics, N, &body);
        }
        gen_bytes_free(&body);
        free(rows);
        free(topics);
        free(names);
}

TEST_MAIN()
