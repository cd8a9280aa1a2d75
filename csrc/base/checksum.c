/* XXH64 as in its specification (Yann Collet). See checksum.h. */
#include "base/checksum.h"

#define PRIME_1 UINT64_C(0x9e3779b185ebca87)
#define PRIME_2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define PRIME_3 UINT64_C(0x165667b19e3779f9)
#define PRIME_4 UINT64_C(0x85ebca77c2b2ae63)
#define PRIME_5 UINT64_C(0x27d4eb2f165667c5)

static inline uint64_t rotate(uint64_t v, unsigned bits) {
        return v << bits | v >> (64 - bits);
}

/* Reads a little-endian word. */
static inline uint64_t word64(const uint8_t *p) {
        return __builtin_bswap64(rdmeta_be64(p));
}

static inline uint64_t word32(const uint8_t *p) {
        return __builtin_bswap32(rdmeta_be32(p));
}

static inline uint64_t step(uint64_t sum, uint64_t word) {
        return rotate(sum + word * PRIME_2, 31) * PRIME_1;
}

void rdmeta_checksum_init(rdmeta_checksum_t *c) {
        c->sums[0] = PRIME_1 + PRIME_2;
        c->sums[1] = PRIME_2;
        c->sums[2] = 0;
        c->sums[3] = 0 - PRIME_1;
        c->total   = 0;
}

void rdmeta_checksum_add(rdmeta_checksum_t *c, const void *data, size_t n) {
        const uint8_t *p = (const uint8_t *)data;
        uint64_t a = c->sums[0], b = c->sums[1];
        uint64_t d = c->sums[2], e = c->sums[3];
        size_t left;

        /* With n = 0 `data` may be NULL, and C allows no addition to NULL. */
        for (left = n; left; left -= RDMETA_CHECKSUM_STEP) {
                a = step(a, word64(p));
                b = step(b, word64(p + 8));
                d = step(d, word64(p + 16));
                e = step(e, word64(p + 24));
                p += RDMETA_CHECKSUM_STEP;
        }
        c->sums[0] = a;
        c->sums[1] = b;
        c->sums[2] = d;
        c->sums[3] = e;
        c->total += n;
}

static uint64_t converge(const rdmeta_checksum_t *c) {
        const uint64_t *s = c->sums;
        uint64_t h        = rotate(s[0], 1) + rotate(s[1], 7) +
                     rotate(s[2], 12) + rotate(s[3], 18);
        int i;

        if (c->total < RDMETA_CHECKSUM_STEP)
                return PRIME_5;
        for (i = 0; i < 4; i++)
                h = (h ^ step(0, s[i])) * PRIME_1 + PRIME_4;
        return h;
}

uint64_t rdmeta_checksum_end(rdmeta_checksum_t *c, const void *data,
                             size_t n) {
        const size_t whole = n & ~(size_t)(RDMETA_CHECKSUM_STEP - 1);
        const uint8_t *p   = (const uint8_t *)data;
        uint64_t h;

        rdmeta_checksum_add(c, p, whole);
        if (whole)
                p += whole;
        h = converge(c) + c->total + (n -= whole);
        for (; n >= 8; n -= 8, p += 8)
                h = rotate(h ^ step(0, word64(p)), 27) * PRIME_1 + PRIME_4;
        for (; n >= 4; n -= 4, p += 4)
                h = rotate(h ^ word32(p) * PRIME_1, 23) * PRIME_2 + PRIME_3;
        for (; n; n--, p++)
                h = rotate(h ^ *p * PRIME_5, 11) * PRIME_1;
        h = (h ^ h >> 33) * PRIME_2;
        h = (h ^ h >> 29) * PRIME_3;
        return h ^ h >> 32;
}

uint64_t rdmeta_checksum(const void *p, size_t n) {
        rdmeta_checksum_t c;

        rdmeta_checksum_init(&c);
        return rdmeta_checksum_end(&c, p, n);
}
