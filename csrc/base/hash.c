#include "base/hash.h"

#define MERSENNE_61 ((UINT64_C(1) << 61) - 1)

uint64_t rdmeta_seed_next(uint64_t *state) {
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

void rdmeta_digest_key_init(rdmeta_digest_key_t *key, uint64_t *seed) {
        int i;

        for (i = 0; i < RDMETA_DIGEST_KEYS; i++)
                key->nh[i] = rdmeta_seed_next(seed);
        for (i = 0; i < 2; i++)
                key->point[i] = rdmeta_seed_next(seed) % MERSENNE_61;
}

/* Sets *a and *b from the name's ends. They may overlap: the hash also contains
 * the length, so this makes no two names alike. */
static void hash_ends(const char *s, size_t n, uint64_t *a, uint64_t *b) {
        size_t i;

        if (n >= 16) {
                *a = rdmeta_load64(s + n - 16);
                *b = rdmeta_load64(s + n - 8);
        } else if (n >= 8) {
                *a = rdmeta_load64(s);
                *b = rdmeta_load64(s + n - 8);
        } else if (n >= 4) {
                *a = rdmeta_load32(s);
                *b = rdmeta_load32(s + n - 4);
        } else {
                for (*a = *b = 0, i = 0; i < n; i++)
                        *a = *a << 8 | (uint8_t)s[i];
        }
}

uint64_t rdmeta_hash_other(const uint64_t key[RDMETA_HASH_KEYS],
                           const char *s, size_t n) {
        uint64_t h = key[0] + n, a, b;
        const char *end = s + n;

        hash_ends(s, n, &a, &b);
        for (; end - s > 16; s += 16)
                h = rdmeta_mix(rdmeta_load64(s) ^ key[1],
                               rdmeta_load64(s + 8) ^ h);
        return rdmeta_mix(a ^ key[2], b ^ h ^ key[3]);
}

static uint64_t mod_mul_add(uint64_t acc, uint64_t point, uint64_t add) {
        unsigned __int128 m = (unsigned __int128)acc * point + add;
        uint64_t r = (uint64_t)(m & MERSENNE_61) + (uint64_t)(m >> 61);

        return r >= MERSENNE_61 ? r - MERSENNE_61 : r;
}

rdmeta_digest_t rdmeta_digest_long(const rdmeta_digest_key_t *key,
                                   const uint8_t *p, size_t n) {
        rdmeta_digest_t d = {0, 0};

        while (n) {
                const size_t m = n < RDMETA_DIGEST_BLOCK ? n
                                                         : RDMETA_DIGEST_BLOCK;
                unsigned __int128 sum = rdmeta_digest_nh(key->nh, p, m);
                int limb;

                for (limb = 0; limb < 3; limb++, sum >>= 48) {
                        const uint64_t c = (uint64_t)sum &
                                           ((UINT64_C(1) << 48) - 1);
                        d.lo = mod_mul_add(d.lo, key->point[0], c);
                        d.hi = mod_mul_add(d.hi, key->point[1], c);
                }
                p += m;
                n -= m;
        }
        return d;
}
