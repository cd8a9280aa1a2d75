/* crc32c: compared with the published values, and with a sum bit by bit. */
#include "base/crc32c.h"

#include "support/testing.h"

static uint32_t bit_by_bit(const uint8_t *p, size_t n) {
        uint32_t sum = UINT32_MAX;
        int bit;

        for (; n; n--) {
                sum ^= *p++;
                for (bit = 0; bit < 8; bit++)
                        sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78u : 0);
        }
        return ~sum;
}

/* Checks both ways, with the bytes in memory of exactly their size. */
static void check(const uint8_t *bytes, size_t n, uint32_t wanted) {
        uint8_t *exact = malloc(n ? n : 1);

        CHECK(exact);
        memcpy(exact, bytes, n);
        CHECK(rdmeta_crc32c(exact, n) == wanted);
        CHECK(rdmeta_crc32c_by_tables(exact, n) == wanted);
        free(exact);
}

/* The values are from RFC 3720, B.4, and the usual check value. */
TEST(test_known_bytes_have_their_known_sums) {
        uint8_t bytes[32];
        int i;

        check((const uint8_t *)"123456789", 9, 0xe3069283u);
        memset(bytes, 0, sizeof(bytes));
        check(bytes, 0, 0);
        check(bytes, 32, 0x8a9136aau);
        memset(bytes, 0xff, sizeof(bytes));
        check(bytes, 32, 0x62a8ab43u);
        for (i = 0; i < 32; i++)
                bytes[i] = (uint8_t)i;
        check(bytes, 32, 0x46dd794eu);
}

TEST(test_all_lengths_and_places_give_the_sum_bit_by_bit) {
        test_rng_t rng = test_rng(1);
        uint8_t bytes[80];
        size_t i, n;

        for (i = 0; i < sizeof(bytes); i++)
                bytes[i] = (uint8_t)test_u64(&rng);
        for (i = 0; i < 8; i++)
                for (n = 0; n <= sizeof(bytes) - i; n++)
                        check(bytes + i, n, bit_by_bit(bytes + i, n));
}

TEST_MAIN()
