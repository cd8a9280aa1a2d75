/*
 * Invalid responses: the decoder returns an error or a parse that makes sense,
 * and never reads beyond the bytes. Inputs are in blocks of exactly their size,
 * for the sanitizers. wire_check() aborts on nonsense.
 */
#include "wire/response.h"

#include "support/testing.h"
#include "support/wire_check.h"
#include "support/wire_gen.h"

#define EACH_VERSION(v)                                                       \
        for (v = RDMETA_METADATA_MIN_VERSION;                                 \
             v <= RDMETA_METADATA_MAX_VERSION; v++)

/* ------------------------------------------------------------------------
 * Damaged responses
 * --------------------------------------------------------------------- */

static rdmeta_err_t check_copy(const uint8_t *data, size_t len, int version,
                               int32_t flags) {
        uint8_t *copy    = gen_bytes_exact(data, len);
        rdmeta_err_t err = wire_check(copy, len, (int16_t)version, flags, NULL);

        free(copy);
        return err;
}

/* A prefix that lacks only a last zero must not pass with the flag either. */
TEST(test_every_prefix_is_malformed) {
        test_rng_t rng = test_rng(1);
        gen_bytes_t b  = {0};
        int version, i;
        size_t len;

        for (i = 0; i < 30; i++) {
                gen_cluster_t *cluster = gen_odd_cluster_new(test_u64(&rng));

                EACH_VERSION(version) {
                        gen_bytes_clear(&b);
                        gen_response(cluster, version, &b);
                        for (len = 0; len < b.len; len++) {
                                const int32_t flags =
                                        len & 1 ? RDMETA_REQ_TOLERATE_TRAILING
                                                : 0;

                                CHECK(check_copy(b.data, len, version,
                                                 flags) ==
                                      RDMETA_ERR_MALFORMED);
                        }
                }
                free(cluster);
        }
        gen_bytes_free(&b);
}

/* Makes a cluster with one of everything, small enough to try all values of all
 * bytes. */
static gen_cluster_t *small_cluster(void) {
        gen_shape_t shape      = {.seed = 5, .brokers = 2, .topics = 2,
                                  .partitions = 2, .replication = 2};
        gen_cluster_t *cluster = gen_cluster_new(&shape);

        cluster->tag_seed             = 9;
        cluster->brokers[1].rack.data = NULL;
        cluster->brokers[0].host.len  = 3;
        cluster->topics[0].name.len   = 4;
        cluster->topics[1].name.len   = 0;
        return cluster;
}

TEST(test_every_corruption_of_a_byte_is_survived) {
        gen_cluster_t *cluster = small_cluster();
        gen_bytes_t b          = {0};
        int version, value;
        size_t i;

        EACH_VERSION(version) {
                uint8_t *copy;

                gen_bytes_clear(&b);
                gen_response(cluster, version, &b);
                copy = gen_bytes_exact(b.data, b.len);
                for (i = 0; i < b.len; i++) {
                        for (value = 0; value < 256; value++) {
                                copy[i] = (uint8_t)value;
                                wire_check(copy, b.len, (int16_t)version, 0,
                                           NULL);
                        }
                        copy[i] = b.data[i];
                }
                CHECK(wire_check(copy, b.len, (int16_t)version, 0, NULL) == 0);
                free(copy);
        }
        gen_bytes_free(&b);
        gen_cluster_free(cluster);
}

TEST(test_heavy_corruption_is_survived) {
        test_rng_t rng = test_rng(2);
        gen_bytes_t b  = {0};
        int i, n;

        for (i = 0; i < 20000; i++) {
                gen_cluster_t *cluster = gen_odd_cluster_new(test_u64(&rng));

                gen_bytes_clear(&b);
                gen_response(cluster, (int)test_below(&rng, 14), &b);
                for (n = (int)test_below(&rng, 8); n > 0; n--)
                        b.data[test_below(&rng, b.len)] =
                                (uint8_t)test_u64(&rng);
                /* Sometimes decode it as another version. */
                check_copy(b.data, b.len, (int)test_below(&rng, 14), 0);
                free(cluster);
        }
        gen_bytes_free(&b);
}

TEST(test_no_bytes_at_all_are_malformed) {
        size_t offset = 1;
        const rdmeta_wire_visitor_t none = {0};
        int version;

        EACH_VERSION(version) {
                CHECK(wire_check(NULL, 0, (int16_t)version, 0, NULL) ==
                      RDMETA_ERR_MALFORMED);
                CHECK(rdmeta_metadata_response_decode(
                              NULL, 0, (int16_t)version, 0, &none, NULL,
                              &offset) == RDMETA_ERR_MALFORMED);
                CHECK(offset == 0);
        }
}

/* ------------------------------------------------------------------------
 * Trailing bytes
 * --------------------------------------------------------------------- */

TEST(test_a_trailing_zero_is_tolerated_where_asked_for) {
        const int32_t flag     = RDMETA_REQ_TOLERATE_TRAILING;
        gen_cluster_t *cluster = gen_odd_cluster_new(test_seed);
        gen_bytes_t b          = {0};
        int version, byte;

        EACH_VERSION(version) {
                gen_bytes_clear(&b);
                gen_response(cluster, version, &b);
                CHECK(check_copy(b.data, b.len, version, flag) == 0);
                gen_i8(&b, 0);
                CHECK(check_copy(b.data, b.len, version, flag) == 0);
                CHECK(check_copy(b.data, b.len, version, 0) ==
                      RDMETA_ERR_MALFORMED);
                for (byte = 1; byte < 256; byte++) {
                        b.data[b.len - 1] = (uint8_t)byte;
                        CHECK(check_copy(b.data, b.len, version, flag) ==
                              RDMETA_ERR_MALFORMED);
                }
                b.data[b.len - 1] = 0;
                gen_i8(&b, 0);
                CHECK(check_copy(b.data, b.len, version, flag) ==
                      RDMETA_ERR_MALFORMED);
        }
        gen_bytes_free(&b);
        free(cluster);
}

/* ------------------------------------------------------------------------
 * Wrong counts, and nulls where none may be
 * --------------------------------------------------------------------- */

typedef enum place {
        BROKERS,
        TOPICS,
        PARTITIONS,
        REPLICAS,
        PLACES
} place_t;

static void put_head(gen_bytes_t *b, int version, int64_t brokers) {
        if (version >= 3)
                gen_i32(b, 0);
        gen_count(b, version >= 9, brokers);
}

/* Writes a response up to and with the count at `place`, which is `n`. Returns
 * how many visits come before that count: none, the head, or the head and a
 * topic. */
static uint64_t put_until(gen_bytes_t *b, int version, place_t place,
                          int64_t n) {
        const int flexible = version >= 9;

        put_head(b, version, place == BROKERS ? n : 0);
        if (place == BROKERS)
                return 0;
        if (version >= 2)
                gen_str(b, flexible, GEN_STR("c"));
        if (version >= 1)
                gen_i32(b, 1);
        gen_count(b, flexible, place == TOPICS ? n : 1);
        if (place == TOPICS)
                return 0;
        gen_i16(b, 0);
        gen_str(b, flexible, GEN_STR("t"));
        if (version >= 10)
                gen_put(b, "0123456789abcdef", 16);
        if (version >= 1)
                gen_i8(b, 0);
        gen_count(b, flexible, place == PARTITIONS ? n : 1);
        if (place == PARTITIONS)
                return 1;
        gen_put(b, "\0\0\0\0\0\0\0\0\0\1", 10);
        if (version >= 7)
                gen_i32(b, 3);
        gen_count(b, flexible, n);
        return 2;
}

/* Returns the offset at which decoding failed, after `visits` visits. */
static size_t refused_at(const gen_bytes_t *b, int version, uint64_t visits) {
        static const rdmeta_wire_visitor_t none;
        uint8_t *copy = gen_bytes_exact(b->data, b->len);
        uint64_t seen = 0;
        size_t offset = 0;
        rdmeta_err_t err;

        err = wire_check(copy, b->len, (int16_t)version, 0, &seen);
        CHECK(err == RDMETA_ERR_MALFORMED && seen == visits);
        err = rdmeta_metadata_response_decode(copy, b->len, (int16_t)version,
                                              0, &none, NULL, &offset);
        CHECK(err == RDMETA_ERR_MALFORMED);
        free(copy);
        return offset;
}

/* The decoder fails at the count, and not when the bytes run out. By then it
 * would have looped, or allocated, by a number that an attacker chose. */
TEST(test_counts_beyond_the_input_are_refused_at_once) {
        static const int64_t counts[] = {50, 1000, 65536, INT32_MAX - 1,
                                         INT32_MAX};
        gen_bytes_t b = {0};
        uint64_t visits;
        size_t i, after;
        int version, place;

        EACH_VERSION(version)
        for (place = BROKERS; place < PLACES; place++)
                for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
                        gen_bytes_clear(&b);
                        visits = put_until(&b, version, (place_t)place,
                                           counts[i]);
                        after = b.len;
                        while (b.len < after + 150)
                                gen_i8(&b, 0);
                        CHECK(refused_at(&b, version, visits) == after);
                }
        gen_bytes_free(&b);
}

TEST(test_null_arrays_are_refused_but_for_lists_of_ids) {
        gen_bytes_t b = {0};
        int version, place;

        EACH_VERSION(version)
        for (place = BROKERS; place < REPLICAS; place++) {
                gen_bytes_clear(&b);
                put_until(&b, version, (place_t)place, -1);
                while (b.len < 200)
                        gen_i8(&b, 0);
                CHECK(check_copy(b.data, b.len, version, 0) ==
                      RDMETA_ERR_MALFORMED);
        }
        gen_bytes_free(&b);
}

TEST(test_negative_counts_are_refused) {
        static const int32_t counts[] = {-2, -100, INT32_MIN};
        gen_bytes_t b = {0};
        size_t i;
        int version, place;

        for (version = 0; version < 9; version++)
                for (place = BROKERS; place < PLACES; place++)
                        for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
                                gen_bytes_clear(&b);
                                put_until(&b, version, (place_t)place,
                                          counts[i]);
                                while (b.len < 200)
                                        gen_i8(&b, 0);
                                CHECK(check_copy(b.data, b.len, version, 0) ==
                                      RDMETA_ERR_MALFORMED);
                        }
        gen_bytes_free(&b);
}

TEST(test_a_null_host_is_malformed) {
        const rdmeta_broker_t broker = {.id = 1, .port = 9092};
        gen_bytes_t b                = {0};
        uint64_t no_tags             = 0;
        int version;

        EACH_VERSION(version) {
                gen_bytes_clear(&b);
                put_head(&b, version, 1);
                gen_response_broker(&broker, version, &no_tags, &b);
                while (b.len < 100)
                        gen_i8(&b, 0);
                CHECK(check_copy(b.data, b.len, version, 0) ==
                      RDMETA_ERR_MALFORMED);
        }
        gen_bytes_free(&b);
}

/* v11 and v12 have no other difference. */
TEST(test_a_null_topic_name_is_malformed_before_v12) {
        gen_topic_t topic     = {.error = 100, .id = {1}};
        gen_cluster_t cluster = {.topics = &topic, .topic_count = 1};
        gen_bytes_t b         = {0};

        gen_response(&cluster, 12, &b);
        CHECK(check_copy(b.data, b.len, 12, 0) == 0);
        CHECK(check_copy(b.data, b.len, 11, 0) == RDMETA_ERR_MALFORMED);
        gen_bytes_free(&b);
}

TEST_MAIN()
