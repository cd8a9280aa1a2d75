/* checksum: compared with the values of other XXH64 implementations. */
#include "base/checksum.h"

#include "support/testing.h"

static void check(const char *text, uint64_t wanted) {
        const size_t n = strlen(text);
        char *exact    = malloc(n ? n : 1); /* ASan sees a byte too many */

        CHECK(exact);
        memcpy(exact, text, n);
        CHECK(rdmeta_checksum(exact, n) == wanted);
        free(exact);
}

/* The values are from xxHash's own tests and from its Python binding's. */
TEST(test_known_texts_have_their_known_sums) {
        check("", UINT64_C(0xef46db3751d8e999));
        check("a", UINT64_C(0xd24ec4f1a98c6e5b));
        check("abc", UINT64_C(0x44bc2cf5ad770999));
        check("Nobody inspects the spammish repetition",
              UINT64_C(0xfbcea83c8a378bf1));
}

/* The bytes are the first 101 of the sanity buffer of xxHash's own tests. */
TEST(test_a_buffer_of_whole_and_broken_steps_has_its_known_sum) {
        uint8_t bytes[222];
        uint64_t random = UINT64_C(2654435761);
        size_t i;

        for (i = 0; i < sizeof(bytes); i++) {
                bytes[i] = (uint8_t)(random >> 56);
                random *= UINT64_C(11400714785074694797);
        }
        CHECK(rdmeta_checksum(bytes, 1) == UINT64_C(0xe934a84adb052768));
        CHECK(rdmeta_checksum(bytes, 4) == UINT64_C(0x9136a0dca57457ee));
        CHECK(rdmeta_checksum(bytes, 14) == UINT64_C(0x8282dcc4994e35c8));
        CHECK(rdmeta_checksum(bytes, 222) == UINT64_C(0xb641ae8cb691c174));
}

TEST(test_pieces_give_the_sum_of_the_whole) {
        test_rng_t rng = test_rng(1);
        uint8_t bytes[1000];
        size_t i, n, cut;

        for (i = 0; i < sizeof(bytes); i++)
                bytes[i] = (uint8_t)test_u64(&rng);
        for (i = 0; i < 2000; i++) {
                rdmeta_checksum_t c;

                n   = test_below(&rng, sizeof(bytes) + 1);
                cut = test_below(&rng, n + 1) / RDMETA_CHECKSUM_STEP *
                      RDMETA_CHECKSUM_STEP;
                rdmeta_checksum_init(&c);
                rdmeta_checksum_add(&c, bytes, cut);
                CHECK(rdmeta_checksum_end(&c, bytes + cut, n - cut) ==
                      rdmeta_checksum(bytes, n));
        }
}

TEST(test_every_bit_counts) {
        uint8_t bytes[77] = {0};
        const uint64_t before = rdmeta_checksum(bytes, sizeof(bytes));
        size_t bit;

        for (bit = 0; bit < 8 * sizeof(bytes); bit++) {
                bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
                CHECK(rdmeta_checksum(bytes, sizeof(bytes)) != before);
                bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        CHECK(rdmeta_checksum(bytes, sizeof(bytes)) == before);
        CHECK(rdmeta_checksum(bytes, sizeof(bytes) - 1) != before);
}

TEST_MAIN()
