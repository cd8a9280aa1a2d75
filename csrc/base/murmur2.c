/*
 * murmur2: Kafka's hash of a record's key. It is Austin Appleby's MurmurHash2
 * with the seed of org.apache.kafka.common.utils.Utils.murmur2. That reads
 * words as little-endian on every machine, so this does, too.
 */
#include "rdmeta.h"

#define MURMUR_SEED 0x9747b28cu
#define MURMUR_M 0x5bd1e995u

static uint32_t murmur_le32(const uint8_t *p) {
        return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
               (uint32_t)p[3] << 24;
}

uint32_t rdmeta_murmur2(const void *key, size_t len) {
        const uint8_t *p = (const uint8_t *)key;
        uint32_t h       = MURMUR_SEED ^ (uint32_t)len;
        size_t n;

        for (n = len; n >= 4; n -= 4, p += 4) {
                uint32_t k = murmur_le32(p) * MURMUR_M;

                k ^= k >> 24;
                h = h * MURMUR_M ^ k * MURMUR_M;
        }
        if (n) {
                if (n == 3)
                        h ^= (uint32_t)p[2] << 16;
                if (n >= 2)
                        h ^= (uint32_t)p[1] << 8;
                h = (h ^ p[0]) * MURMUR_M;
        }
        h = (h ^ h >> 13) * MURMUR_M;
        return h ^ h >> 15;
}
