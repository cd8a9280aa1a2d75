/* murmur2: the values of Java's UtilsTest; tests/core/
 * test_partition_for.py has more. */
#include "support/testing.h"

TEST(test_the_hash_is_that_of_the_java_client) {
        static const struct {
                const char *key;
                int32_t hash;
        } known[] = {{"21", -973932308},
                     {"foobar", -790332482},
                     {"a-little-bit-long-string", -985981536},
                     {"a-little-bit-longer-string", -1486304829},
                     {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                      -58897971},
                     {"abc", 479470107}};
        size_t i;

        for (i = 0; i < sizeof(known) / sizeof(*known); i++)
                CHECK((int32_t)rdmeta_murmur2(known[i].key,
                                              strlen(known[i].key)) ==
                      known[i].hash);
}

/* For every length of the tail, at every alignment, it reads its bytes and no
 * others; ASan sees any other. */
TEST(test_a_key_may_lie_anywhere_and_end_anywhere) {
        size_t len, at, i;

        for (len = 0; len < 40; len++) {
                uint8_t *key  = malloc(len + 1);
                uint32_t hash = 0;

                for (at = 0; at < 8; at++) {
                        uint8_t *p = malloc(at + len + (at + len == 0));

                        for (i = 0; i < len; i++)
                                p[at + i] = key[i] = (uint8_t)(200 + 7 * i);
                        if (at)
                                CHECK(rdmeta_murmur2(p + at, len) == hash);
                        hash = rdmeta_murmur2(p + at, len);
                        free(p);
                }
                CHECK(rdmeta_murmur2(key, len) == hash);
                for (i = 0; i < len; i++) {
                        key[i] ^= 1;
                        CHECK(rdmeta_murmur2(key, len) != hash);
                        key[i] ^= 1;
                }
                free(key);
        }
}

TEST_MAIN()
