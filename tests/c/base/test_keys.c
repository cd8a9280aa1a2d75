/* keys: columns beside one key at a time; tests/core/test_partitions_for.py
 * compares with what clients of Kafka do. */
#include "support/testing.h"

#define MURMUR2 RDMETA_PARTITIONER_MURMUR2
#define CRC32 RDMETA_PARTITIONER_CRC32

TEST(test_a_key_has_the_partition_of_its_producer) {
        CHECK(rdmeta_key_partition(MURMUR2, "21", 2, 12) ==
              (-973932308 & INT32_MAX) % 12);
        CHECK(rdmeta_key_partition(MURMUR2, "", 0, 12) >= 0);
        CHECK(rdmeta_key_partition(CRC32, "123456789", 9, 12) ==
              (int32_t)(0xcbf43926u % 12));
        CHECK(rdmeta_key_partition(CRC32, "a", 1, INT32_MAX) ==
              (int32_t)(0xe8b7be43u % INT32_MAX));
}

TEST(test_what_is_no_key_may_go_anywhere) {
        CHECK(rdmeta_key_partition(MURMUR2, NULL, 0, 3) ==
              RDMETA_ANY_PARTITION);
        CHECK(rdmeta_key_partition(CRC32, NULL, 0, 3) == RDMETA_ANY_PARTITION);
        CHECK(rdmeta_key_partition(CRC32, "", 0, 3) == RDMETA_ANY_PARTITION);
}

TEST(test_a_number_that_is_a_code_is_the_result) {
        CHECK(rdmeta_key_partition(MURMUR2, "a", 1, RDMETA_UNKNOWN_TOPIC) ==
              RDMETA_UNKNOWN_TOPIC);
        CHECK(rdmeta_key_partition(CRC32, NULL, 0, RDMETA_STALE) ==
              RDMETA_STALE);
        CHECK(rdmeta_key_partition(CRC32, "a", 1, 0) == RDMETA_NO_PARTITION);
}

TEST(test_an_unknown_partitioner_or_width_is_refused) {
        const int32_t offsets[] = {0, 1}, count = 3;
        rdmeta_keys_t keys      = {.offsets = offsets,
                                   .data    = (const uint8_t *)"a",
                                   .offset_width = 4};
        int32_t out             = 7;

        CHECK(rdmeta_key_partition(2, "a", 1, 3) == RDMETA_ERR_ARGUMENT);
        CHECK(rdmeta_key_partitions(-1, &keys, 1, &count, 0, &out) ==
              RDMETA_ERR_ARGUMENT);
        keys.offset_width = 2;
        CHECK(rdmeta_key_partitions(CRC32, &keys, 1, &count, 0, &out) ==
              RDMETA_ERR_ARGUMENT);
        CHECK(out == 7);
}

enum { MOST = 200 };

/* A random column of `first` + `n` keys in buffers of just their size. */
typedef struct column {
        rdmeta_keys_t keys;
        uint8_t *data, *bits;
        void *offsets;
        int64_t ends[MOST + 1];
} column_t;

static void column_make(column_t *c, test_rng_t *rng, size_t n, int width) {
        size_t i, bytes;

        c->ends[0] = (int64_t)test_below(rng, 5);
        for (i = 0; i < n; i++)
                c->ends[i + 1] = c->ends[i] + (int64_t)test_below(rng, 20);
        bytes      = (size_t)c->ends[n];
        c->data    = malloc(bytes ? bytes : 1);
        c->bits    = malloc((n + 7) / 8 + (n == 0));
        c->offsets = malloc((n + 1) * (size_t)width);
        for (i = 0; i < bytes; i++)
                c->data[i] = (uint8_t)test_u64(rng);
        for (i = 0; i < (n + 7) / 8; i++)
                c->bits[i] = (uint8_t)test_u64(rng);
        for (i = 0; i <= n; i++)
                if (width == 4)
                        ((int32_t *)c->offsets)[i] = (int32_t)c->ends[i];
                else
                        ((int64_t *)c->offsets)[i] = c->ends[i];
        c->keys = (rdmeta_keys_t){.offsets      = c->offsets,
                                  .data         = c->data,
                                  .offset_width = width};
}

static void column_free(column_t *c) {
        free(c->data);
        free(c->bits);
        free(c->offsets);
}

static void check_column(column_t *c, size_t n, size_t step,
                         const int32_t *counts, int32_t partitioner) {
        const size_t first = (size_t)c->keys.first;
        int32_t out[MOST + 1];
        size_t i, at;

        out[n - first] = 77;
        CHECK(rdmeta_key_partitions(partitioner, &c->keys, n - first, counts,
                                    step, out) == RDMETA_OK);
        CHECK(out[n - first] == 77);
        for (i = 0; i < n - first; i++) {
                const uint8_t *key = c->data + c->ends[first + i];

                at = first + i;
                if (c->keys.validity && !(c->bits[at / 8] >> at % 8 & 1))
                        key = NULL;
                CHECK(out[i] ==
                      rdmeta_key_partition(
                              partitioner, key,
                              (size_t)(c->ends[at + 1] - c->ends[at]),
                              counts[i * step]));
        }
}

TEST(test_a_column_has_the_partition_of_each_of_its_keys) {
        test_rng_t rng = test_rng(2);
        int32_t counts[MOST];
        column_t c;
        size_t n, i;
        int round;

        for (round = 0; round < 400; round++) {
                n = test_below(&rng, MOST + 1);
                column_make(&c, &rng, n, round & 1 ? 4 : 8);
                for (i = 0; i < MOST; i++)
                        counts[i] = (int32_t)test_below(&rng, 100) - 2;
                c.keys.first    = (int64_t)test_below(&rng, n + 1);
                c.keys.validity = round & 2 ? c.bits : NULL;
                check_column(&c, n, (size_t)(round >> 2 & 1), counts,
                             round & 8 ? CRC32 : MURMUR2);
                column_free(&c);
        }
}

TEST(test_an_empty_column_needs_no_buffers) {
        const rdmeta_keys_t keys = {.offset_width = 4};
        int32_t out              = 7;

        CHECK(rdmeta_key_partitions(CRC32, &keys, 0, &out, 0, &out) ==
              RDMETA_OK);
        CHECK(out == 7);
}

TEST(test_empty_keys_need_no_data) {
        const int32_t offsets[] = {0, 0, 0}, count = 5;
        const rdmeta_keys_t keys = {.offsets = offsets, .offset_width = 4};
        int32_t out[2];

        CHECK(rdmeta_key_partitions(MURMUR2, &keys, 2, &count, 0, out) ==
              RDMETA_OK);
        CHECK(out[0] == rdmeta_key_partition(MURMUR2, "", 0, 5));
        CHECK(out[1] == out[0] && out[0] >= 0);
}

TEST_MAIN()
