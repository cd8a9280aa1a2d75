/*
 * Valid responses. test_response_bad.c has the invalid ones; test_request.c has
 * requests.
 */
#include "wire/response.h"

#include "support/testing.h"
#include "support/wire_check.h"
#include "support/wire_gen.h"

#define EACH_VERSION(v)                                                       \
        for (v = RDMETA_METADATA_MIN_VERSION;                                 \
             v <= RDMETA_METADATA_MAX_VERSION; v++)

/* ------------------------------------------------------------------------
 * A visitor that compares the visits with the cluster that was written
 * --------------------------------------------------------------------- */

typedef struct compare {
        const gen_cluster_t *cluster;
        int version;
        uint32_t brokers, topics, partitions; /* seen so far */
        int ended;
} compare_t;

static int same_str(rdmeta_str_t a, rdmeta_str_t b) {
        return a.len == b.len && !a.data == !b.data &&
               (!a.len || memcmp(a.data, b.data, a.len) == 0);
}

static int same_ids(rdmeta_wire_ids_t seen, gen_ids_t written) {
        uint32_t i;

        if (seen.count != (uint32_t)(written.count < 0 ? 0 : written.count))
                return 0;
        for (i = 0; i < seen.count; i++)
                if ((int32_t)rdmeta_be32(seen.be + 4 * i) != written.ids[i])
                        return 0;
        return 1;
}

static int32_t compare_broker(void *opaque, const rdmeta_broker_t *b) {
        compare_t *c                = opaque;
        const rdmeta_broker_t *want = &c->cluster->brokers[c->brokers++];
        const rdmeta_str_t null     = {NULL, 0};

        CHECK(b->id == want->id && b->port == want->port);
        CHECK(same_str(b->host, want->host));
        CHECK(same_str(b->rack, c->version >= 1 ? want->rack : null));
        return 0;
}

static int32_t compare_head(void *opaque, const rdmeta_wire_head_t *h) {
        compare_t *c              = opaque;
        const gen_cluster_t *want = c->cluster;
        const rdmeta_str_t null   = {NULL, 0};

        CHECK(h->brokers == want->broker_count && c->brokers == h->brokers);
        CHECK(h->topics == want->topic_count);
        CHECK(h->throttle_ms == (c->version >= 3 ? want->throttle_ms : 0));
        CHECK(h->controller == (c->version >= 1 ? want->controller : -1));
        CHECK(same_str(h->cluster_id,
                       c->version >= 2 ? want->cluster_id : null));
        return 0;
}

static int32_t compare_topic(void *opaque, const rdmeta_wire_topic_t *t) {
        compare_t *c            = opaque;
        const gen_topic_t *want = &c->cluster->topics[c->topics];
        rdmeta_str_t name       = want->name;

        if (!name.data && c->version < 12)
                name.data = "";
        CHECK(same_str(t->name, name));
        CHECK(memcmp(t->id, c->version >= 10 ? want->id : rdmeta_wire_zero_id,
                     16) == 0);
        CHECK(t->error == want->error);
        CHECK(t->internal == (c->version >= 1 ? want->internal : 0));
        CHECK(t->partitions == want->partition_count);
        c->partitions = 0;
        return 0;
}

static int32_t compare_partition(void *opaque,
                                 const rdmeta_wire_partition_t *p) {
        compare_t *c         = opaque;
        const gen_ids_t none = {NULL, 0};
        const gen_partition_t *want =
                &c->cluster->topics[c->topics].partitions[c->partitions++];

        CHECK(p->id == want->id && p->leader == want->leader);
        CHECK(p->error == want->error);
        CHECK(p->leader_epoch == (c->version >= 7 ? want->epoch : -1));
        CHECK(same_ids(p->replicas, want->replicas));
        CHECK(same_ids(p->isr, want->isr));
        CHECK(same_ids(p->offline_replicas,
                       c->version >= 5 ? want->offline : none));
        return 0;
}

static int32_t compare_topic_end(void *opaque, const rdmeta_wire_topic_t *t) {
        compare_t *c            = opaque;
        const gen_topic_t *want = &c->cluster->topics[c->topics++];
        const int provenance          = c->version >= 8 && want->has_operations;

        CHECK(c->partitions == want->partition_count);
        CHECK(t->operations ==
              (provenance ? want->operations : RDMETA_NO_OPERATIONS));
        return 0;
}

static int32_t compare_end(void *opaque, const rdmeta_wire_head_t *h) {
        compare_t *c              = opaque;
        const gen_cluster_t *want = c->cluster;
        const int provenance            = c->version >= 8 && c->version <= 10 &&
                         want->has_operations;

        CHECK(c->topics == want->topic_count);
        CHECK(h->operations ==
              (provenance ? want->operations : RDMETA_NO_OPERATIONS));
        CHECK(h->error == (c->version >= 13 ? want->error : 0));
        c->ended = 1;
        return 0;
}

static const rdmeta_wire_visitor_t comparing = {
        compare_broker,    compare_head,      compare_topic,
        compare_partition, compare_topic_end, compare_end};

/* Writes `cluster` into `b`, decodes that, and compares both. */
static void check_same(const gen_cluster_t *cluster, int version,
                       gen_bytes_t *b) {
        compare_t c = {.cluster = cluster, .version = version};
        size_t offset;
        uint8_t *copy;

        gen_bytes_clear(b);
        gen_response(cluster, version, b);
        copy = gen_bytes_exact(b->data, b->len);
        CHECK(rdmeta_metadata_response_decode(copy, b->len, (int16_t)version,
                                              0, &comparing, &c,
                                              &offset) == 0);
        CHECK(c.ended && offset == b->len);
        CHECK(wire_check(copy, b->len, (int16_t)version, 0, NULL) == 0);
        free(copy);
}

/* ------------------------------------------------------------------------
 * Tests
 * --------------------------------------------------------------------- */

TEST(test_every_version_reads_what_was_written) {
        test_rng_t rng = test_rng(1);
        gen_bytes_t b  = {0};
        int version, i;

        for (i = 0; i < 300; i++) {
                gen_cluster_t *cluster = gen_odd_cluster_new(test_u64(&rng));

                EACH_VERSION(version)
                        check_same(cluster, version, &b);
                free(cluster);
        }
        gen_bytes_free(&b);
}

TEST(test_varints_need_not_be_minimal) {
        test_rng_t rng = test_rng(2);
        gen_bytes_t b  = {0};
        int version, i;

        for (i = 0; i < 20; i++) {
                gen_cluster_t *cluster = gen_odd_cluster_new(test_u64(&rng));

                for (b.uvar_width = 2; b.uvar_width <= 5; b.uvar_width++)
                        EACH_VERSION(version)
                                check_same(cluster, version, &b);
                free(cluster);
        }
        gen_bytes_free(&b);
}

TEST(test_tagged_fields_are_skipped_wherever_they_may_be) {
        gen_shape_t shape      = {.seed = 3, .brokers = 5, .topics = 10,
                                  .partitions = 4, .replication = 3};
        gen_cluster_t *cluster = gen_cluster_new(&shape);
        gen_bytes_t b          = {0};
        test_rng_t rng         = test_rng(3);
        size_t without;
        int version;

        for (version = 9; version <= 13; version++) {
                cluster->tag_seed = 0;
                check_same(cluster, version, &b);
                without           = b.len;
                cluster->tag_seed = test_u64(&rng) | 1;
                check_same(cluster, version, &b);
                CHECK(b.len > without);
        }
        gen_bytes_free(&b);
        gen_cluster_free(cluster);
}

TEST(test_a_large_cluster_reads_what_was_written) {
        gen_shape_t shape      = {.seed = test_seed, .brokers = 30,
                                  .first_broker = 1, .topics = 2000,
                                  .partitions = 10, .replication = 3};
        gen_cluster_t *cluster = gen_cluster_new(&shape);
        gen_bytes_t b          = {0};
        int version;

        gen_cluster_shuffle(cluster, test_seed);
        gen_move_leader(&cluster->topics[7], 3);
        EACH_VERSION(version)
                check_same(cluster, version, &b);
        gen_bytes_free(&b);
        gen_cluster_free(cluster);
}

/* There are so many of the smallest elements that the rest of the response does
 * not matter. If the decoder took one for larger than it is, it would refuse
 * them. */
TEST(test_the_smallest_elements_are_accepted) {
        enum { MANY = 500 };
        static rdmeta_broker_t brokers[MANY];
        static gen_topic_t topics[MANY];
        static gen_partition_t partitions[MANY];
        gen_topic_t topic = {.name            = GEN_STR(""),
                             .partitions      = partitions,
                             .partition_count = MANY};
        gen_bytes_t b     = {0};
        int version, i;

        for (i = 0; i < MANY; i++) {
                brokers[i].host = GEN_STR("");
                topics[i].name  = GEN_STR("");
        }
        EACH_VERSION(version) {
                gen_cluster_t cluster = {.brokers = brokers,
                                         .broker_count = MANY};
                check_same(&cluster, version, &b);
                cluster.broker_count = 0;
                cluster.topics       = topics;
                cluster.topic_count  = MANY;
                check_same(&cluster, version, &b);
                cluster.topics      = &topic;
                cluster.topic_count = 1;
                check_same(&cluster, version, &b);
        }
        gen_bytes_free(&b);
}

/* The generator and the decoder could have the same fault. So these bytes come
 * from the encoder of kafka-python 3.0, which is made from Kafka's own
 * definitions. */
TEST(test_the_generator_writes_the_bytes_of_another_encoder) {
        static const char *const golden[] = {
                "0000000100000001000168000023840000000100000001740000000100"
                "0000000000000000010000000200000001000000020000000100000001",
                "0000000100000001000168000023840001720000000100000001000000"
                "0174000000000100000000000000000001000000020000000100000002"
                "0000000100000001",
                "0000000100000001000168000023840001720001630000000100000001"
                "0000000174000000000100000000000000000001000000020000000100"
                "0000020000000100000001",
                "0000000500000001000000010001680000238400017200016300000001"
                "0000000100000001740000000001000000000000000000010000000200"
                "000001000000020000000100000001",
                "0000000500000001000000010001680000238400017200016300000001"
                "0000000100000001740000000001000000000000000000010000000200"
                "000001000000020000000100000001",
                "0000000500000001000000010001680000238400017200016300000001"
                "0000000100000001740000000001000000000000000000010000000200"
                "0000010000000200000001000000010000000100000002",
                "0000000500000001000000010001680000238400017200016300000001"
                "0000000100000001740000000001000000000000000000010000000200"
                "0000010000000200000001000000010000000100000002",
                "0000000500000001000000010001680000238400017200016300000001"
                "0000000100000001740000000001000000000000000000010000000700"
                "000002000000010000000200000001000000010000000100000002",
                "0000000500000001000000010001680000238400017200016300000001"
                "0000000100000001740000000001000000000000000000010000000700"
                "0000020000000100000002000000010000000100000001000000028000"
                "000080000000",
                "0000000502000000010268000023840272000263000000010200000274"
                "0002000000000000000000010000000703000000010000000202000000"
                "0102000000020080000000008000000000",
                "0000000502000000010268000023840272000263000000010200000274"
                "ab00000000000000000000000000000000020000000000000000000100"
                "0000070300000001000000020200000001020000000200800000000080"
                "00000000",
                "0000000502000000010268000023840272000263000000010200000274"
                "ab00000000000000000000000000000000020000000000000000000100"
                "0000070300000001000000020200000001020000000200800000000000",
                "0000000502000000010268000023840272000263000000010200000274"
                "ab00000000000000000000000000000000020000000000000000000100"
                "0000070300000001000000020200000001020000000200800000000000",
                "0000000502000000010268000023840272000263000000010200000274"
                "ab00000000000000000000000000000000020000000000000000000100"
                "0000070300000001000000020200000001020000000200800000000000"
                "8100",
        };
        int32_t ids[]          = {1, 2};
        gen_partition_t part   = {.leader   = 1,
                                  .epoch    = 7,
                                  .replicas = GEN_IDS(ids),
                                  .isr      = {ids, 1},
                                  .offline  = {ids + 1, 1}};
        rdmeta_broker_t broker = {1, 9092, GEN_STR("h"), GEN_STR("r")};
        gen_topic_t topic      = {.name            = GEN_STR("t"),
                                  .id              = {0xab},
                                  .partitions      = &part,
                                  .partition_count = 1};
        gen_cluster_t cluster  = {.throttle_ms  = 5,
                                  .brokers      = &broker,
                                  .broker_count = 1,
                                  .cluster_id   = GEN_STR("c"),
                                  .controller   = 1,
                                  .topics       = &topic,
                                  .topic_count  = 1,
                                  .error        = 129};
        gen_bytes_t b          = {0};
        int version;

        EACH_VERSION(version) {
                gen_bytes_clear(&b);
                gen_response(&cluster, version, &b);
                CHECK(gen_is_hex(&b, golden[version]));
        }
        gen_bytes_free(&b);
}

/* ------------------------------------------------------------------------
 * Visiting
 * --------------------------------------------------------------------- */

typedef struct stopper {
        int calls, stop_at;
} stopper_t;

static int32_t stop(stopper_t *s) {
        return ++s->calls == s->stop_at ? 4711 : 0;
}

static int32_t stop_broker(void *o, const rdmeta_broker_t *v) {
        return v ? stop(o) : 0;
}
static int32_t stop_head(void *o, const rdmeta_wire_head_t *v) {
        return v ? stop(o) : 0;
}
static int32_t stop_topic(void *o, const rdmeta_wire_topic_t *v) {
        return v ? stop(o) : 0;
}
static int32_t stop_partition(void *o, const rdmeta_wire_partition_t *v) {
        return v ? stop(o) : 0;
}

TEST(test_a_visit_ends_the_decoding_and_is_returned) {
        static const rdmeta_wire_visitor_t stopping = {
                stop_broker,    stop_head,  stop_topic,
                stop_partition, stop_topic, stop_head};
        gen_shape_t shape      = {.brokers = 2, .topics = 3, .partitions = 2,
                                  .replication = 2};
        const int visits       = 2 + 1 + 3 * (1 + 2 + 1) + 1;
        gen_cluster_t *cluster = gen_cluster_new(&shape);
        gen_bytes_t b          = {0};
        int at;

        gen_response(cluster, 12, &b);
        for (at = 1; at <= visits + 1; at++) {
                stopper_t s      = {0, at};
                rdmeta_err_t err = rdmeta_metadata_response_decode(
                        b.data, b.len, 12, 0, &stopping, &s, NULL);

                CHECK(err == (at <= visits ? 4711 : 0));
                CHECK(s.calls == (at <= visits ? at : visits));
        }
        gen_bytes_free(&b);
        gen_cluster_free(cluster);
}

TEST(test_members_that_are_null_are_skipped) {
        static const rdmeta_wire_visitor_t none;
        gen_cluster_t *cluster = gen_odd_cluster_new(test_seed);
        gen_bytes_t b          = {0};
        int version;

        EACH_VERSION(version) {
                gen_bytes_clear(&b);
                gen_response(cluster, version, &b);
                CHECK(rdmeta_metadata_response_decode(b.data, b.len,
                                                      (int16_t)version, 0,
                                                      &none, NULL, NULL) == 0);
        }
        gen_bytes_free(&b);
        free(cluster);
}

TEST(test_versions_that_do_not_exist_are_unsupported) {
        static const int16_t versions[] = {-1, 14, INT16_MAX, INT16_MIN};
        size_t i;
        int version;

        for (i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
                CHECK(rdmeta_wire_fields(versions[i]) == 0);
                CHECK(wire_check("\0\0\0\0\0\0\0\0", 8, versions[i], 0,
                                 NULL) == RDMETA_ERR_UNSUPPORTED);
        }
        EACH_VERSION(version)
                CHECK(rdmeta_wire_fields((int16_t)version) != 0);
}

TEST_MAIN()
