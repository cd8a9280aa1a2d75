/*
 * hash: seeded hashes of names and ids, and the digest of a topic's bytes.
 *
 * The hash is a chain of folded 64 x 64 -> 128 bit multiplications. It is not
 * cryptographic: SipHash would cost more than the lookup itself. An attacker
 * still cannot choose names that collide, since every constant that meets the
 * name's bytes is secret and drawn per table. With public constants an input
 * can make a factor zero, whatever the seed. If a probe still grows too long,
 * the index reseeds itself.
 *
 * The digest shows whether a topic's encoded bytes are the same as last time.
 * It is NH (the core of UMAC, Black et al. 1999) with 64-bit words. Two
 * different inputs of one length up to RDMETA_DIGEST_BLOCK bytes agree with
 * probability 2^-64 over the key. Longer inputs are cut into blocks. The NH
 * sums of these are the coefficients of two polynomials modulo 2^61 - 1 at
 * secret points. This adds 2^-61 per coefficient, twice independently.
 */
#pragma once

#include "base/buf.h"

#include <stdint.h>
#include <string.h>

#define RDMETA_HASH_KEYS 4
#define RDMETA_DIGEST_BLOCK 1024
#define RDMETA_DIGEST_KEYS (RDMETA_DIGEST_BLOCK / 8)

typedef struct rdmeta_digest {
        uint64_t lo, hi;
} rdmeta_digest_t;

typedef struct rdmeta_digest_key {
        uint64_t nh[RDMETA_DIGEST_KEYS];
        uint64_t point[2];
} rdmeta_digest_key_t;

/* Returns the next secret word of a seed's stream (SplitMix64). */
uint64_t rdmeta_seed_next(uint64_t *state);
void rdmeta_digest_key_init(rdmeta_digest_key_t *key, uint64_t *seed);

RDMETA_INLINE uint64_t rdmeta_load64(const void *p) {
        uint64_t v;
        memcpy(&v, p, 8);
        return v;
}

RDMETA_INLINE uint32_t rdmeta_load32(const void *p) {
        uint32_t v;
        memcpy(&v, p, 4);
        return v;
}

/* Returns both halves of the product, folded. A compiler reserves four
 * registers for the wide product, so a lookup would save two that it never
 * uses. The assembly avoids that. */
RDMETA_INLINE uint64_t rdmeta_mix(uint64_t a, uint64_t b) {
#if defined(__x86_64__)
        uint64_t lo, hi;

        __asm__("mulq %3\n\txorq %1, %0"
                : "=a"(lo), "=d"(hi)
                : "%0"(a), "r"(b)
                : "cc");
        return lo;
#else
        const unsigned __int128 m = (unsigned __int128)a * b;

        return (uint64_t)m ^ (uint64_t)(m >> 64);
#endif
}

/* Hashes a name of any length but 17 to 32 bytes. */
uint64_t rdmeta_hash_other(const uint64_t key[RDMETA_HASH_KEYS],
                           const char *s, size_t n);

/* Hashes a name of 17 to 32 bytes, as most names are. */
RDMETA_INLINE uint64_t rdmeta_hash_short(const uint64_t key[RDMETA_HASH_KEYS],
                                         const char *s, size_t n) {
        const uint64_t h = rdmeta_mix(rdmeta_load64(s) ^ key[1],
                                      rdmeta_load64(s + 8) ^ (key[0] + n));

        return rdmeta_mix(rdmeta_load64(s + n - 16) ^ key[2],
                          rdmeta_load64(s + n - 8) ^ h ^ key[3]);
}

RDMETA_INLINE int rdmeta_hash_is_short(size_t n) {
        return n - 17 <= 15;
}

RDMETA_INLINE uint64_t rdmeta_hash(const uint64_t key[RDMETA_HASH_KEYS],
                                   const char *s, size_t n) {
        if (RDMETA_LIKELY(rdmeta_hash_is_short(n)))
                return rdmeta_hash_short(key, s, n);
        return rdmeta_hash_other(key, s, n);
}

RDMETA_INLINE uint64_t rdmeta_hash_id(const uint64_t key[RDMETA_HASH_KEYS],
                                      const uint8_t id[16]) {
        return rdmeta_mix(rdmeta_load64(id) ^ key[0],
                          rdmeta_load64(id + 8) ^ key[1]);
}

rdmeta_digest_t rdmeta_digest_long(const rdmeta_digest_key_t *key,
                                   const uint8_t *p, size_t n);

/* Adds two products of NH to its two sums. */
#define RDMETA_NH_STEP(p)                                                     \
        do {                                                                  \
                a += (unsigned __int128)(rdmeta_load64(p) + k[0]) *           \
                     (rdmeta_load64((p) + 8) + k[1]);                         \
                b += (unsigned __int128)(rdmeta_load64((p) + 16) + k[2]) *    \
                     (rdmeta_load64((p) + 24) + k[3]);                        \
        } while (0)

/* Returns the NH sum of at most one block: 32 bytes and two products per
 * step. The last step takes the last 32 bytes, some of them again, which costs
 * less than a copy of the rest. Fewer than 32 bytes are filled up with zeros. */
RDMETA_INLINE unsigned __int128 rdmeta_digest_nh(const uint64_t *k,
                                                 const uint8_t *p, size_t n) {
        unsigned __int128 a = 0, b = 0;
        uint8_t all[32]     = {0};
        const uint8_t *last = all;

        if (RDMETA_LIKELY(n >= 32))
                last = p + n - 32;
        else
                p = memcpy(all, p, n);
        for (; p < last; p += 32, k += 4)
                RDMETA_NH_STEP(p);
        RDMETA_NH_STEP(last);
        return a + b;
}
#undef RDMETA_NH_STEP

/* Returns the digest of `n` bytes. It does not contain the length: the caller
 * compares that itself. */
RDMETA_INLINE rdmeta_digest_t rdmeta_digest(const rdmeta_digest_key_t *key,
                                            const uint8_t *p, size_t n) {
        rdmeta_digest_t d;
        unsigned __int128 sum;

        if (RDMETA_UNLIKELY(n > RDMETA_DIGEST_BLOCK))
                return rdmeta_digest_long(key, p, n);
        sum  = rdmeta_digest_nh(key->nh, p, n);
        d.lo = (uint64_t)sum;
        d.hi = (uint64_t)(sum >> 64);
        return d;
}
