/* crc32: compared with published values and with the sum bit by bit. */
#include "support/testing.h"

static uint32_t bit_by_bit(const uint8_t *p, size_t n) {
        uint32_t sum = UINT32_MAX;
        int bit;

        for (; n; n--, p++)
                for (sum ^= *p, bit = 0; bit < 8; bit++)
                        sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
        return ~sum;
}

TEST(test_known_texts_have_their_known_sums) {
        CHECK(rdmeta_crc32("123456789", 9) == 0xcbf43926u);
        CHECK(rdmeta_crc32("a", 1) == 0xe8b7be43u);
        CHECK(rdmeta_crc32("", 0) == 0);
        CHECK(rdmeta_crc32(NULL, 0) == 0);
}

TEST(test_each_byte_at_each_place_of_a_word_counts) {
        uint8_t bytes[8] = {0};
        int value;
        size_t at;

        for (at = 0; at < sizeof(bytes); at++)
                for (value = 0; value < 256; value++) {
                        bytes[at] = (uint8_t)value;
                        CHECK(rdmeta_crc32(bytes, sizeof(bytes)) ==
                              bit_by_bit(bytes, sizeof(bytes)));
                }
}

/* ASan sees a byte too many. */
TEST(test_data_may_lie_anywhere_and_end_anywhere) {
        test_rng_t rng = test_rng(1);
        size_t len, at, i;

        for (len = 0; len < 40; len++)
                for (at = 0; at < 8; at++) {
                        uint8_t *p = malloc(at + len + (at + len == 0));

                        for (i = 0; i < at + len; i++)
                                p[i] = (uint8_t)test_u64(&rng);
                        CHECK(rdmeta_crc32(p + at, len) ==
                              bit_by_bit(p + at, len));
                        free(p);
                }
}

TEST_MAIN()
