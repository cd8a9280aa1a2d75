/*
 * buf: a reader over a slice of bytes with a sticky error.
 *
 *     begin        p                          end
 *       |----------|---------------------------|
 *         read       left: every length and count is compared with this
 *
 * A read that does not fit moves p to end. It sets `bad` to the position where
 * it failed. From then on every read returns zeros. So a decoder checks before
 * it loops or allocates, and not after every field.
 * Kafka's integers are big-endian; varints are LEB128, 32 bits at most.
 */
#pragma once

#include "rdmeta.h"

#include <string.h>

/* A topic block is its columns' bytes as they are in memory, and a slot holds a
 * 48-bit address. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || __SIZEOF_POINTER__ != 8
#error "rdmeta is for 64-bit little-endian machines"
#endif

#define RDMETA_LIKELY(x) __builtin_expect(!!(x), 1)
#define RDMETA_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RDMETA_INLINE static inline __attribute__((always_inline))
#define RDMETA_NOINLINE __attribute__((noinline, unused))

typedef struct rdmeta_buf {
        const uint8_t *p;
        const uint8_t *end;
        const uint8_t *begin;
        const uint8_t *bad; /* NULL: no error yet */
} rdmeta_buf_t;

RDMETA_INLINE uint16_t rdmeta_be16(const void *p) {
        uint16_t v;
        memcpy(&v, p, 2);
        return __builtin_bswap16(v);
}

RDMETA_INLINE uint32_t rdmeta_be32(const void *p) {
        uint32_t v;
        memcpy(&v, p, 4);
        return __builtin_bswap32(v);
}

RDMETA_INLINE uint64_t rdmeta_be64(const void *p) {
        uint64_t v;
        memcpy(&v, p, 8);
        return __builtin_bswap64(v);
}

static inline void rdmeta_buf_init(rdmeta_buf_t *b, const void *p, size_t n) {
        b->p = b->begin = (const uint8_t *)p;
        b->end          = b->p + n;
        b->bad          = NULL;
}

RDMETA_INLINE size_t rdmeta_buf_left(const rdmeta_buf_t *b) {
        return (size_t)(b->end - b->p);
}

/* Sets the error; `bad` keeps the position of the first one. */
static RDMETA_NOINLINE void rdmeta_buf_fail(rdmeta_buf_t *b) {
        if (!b->bad)
                b->bad = b->p;
        b->p = b->end;
}

RDMETA_INLINE int rdmeta_buf_need(rdmeta_buf_t *b, size_t n) {
        if (RDMETA_LIKELY(rdmeta_buf_left(b) >= n))
                return 1;
        rdmeta_buf_fail(b);
        return 0;
}

RDMETA_INLINE const uint8_t *rdmeta_buf_bytes(rdmeta_buf_t *b, size_t n) {
        const uint8_t *p = b->p;
        if (RDMETA_UNLIKELY(!rdmeta_buf_need(b, n)))
                return NULL;
        b->p = p + n;
        return p;
}

RDMETA_INLINE int8_t rdmeta_buf_i8(rdmeta_buf_t *b) {
        const uint8_t *p = rdmeta_buf_bytes(b, 1);
        return p ? (int8_t)*p : 0;
}

RDMETA_INLINE int16_t rdmeta_buf_i16(rdmeta_buf_t *b) {
        const uint8_t *p = rdmeta_buf_bytes(b, 2);
        return p ? (int16_t)rdmeta_be16(p) : 0;
}

RDMETA_INLINE int32_t rdmeta_buf_i32(rdmeta_buf_t *b) {
        const uint8_t *p = rdmeta_buf_bytes(b, 4);
        return p ? (int32_t)rdmeta_be32(p) : 0;
}

static RDMETA_NOINLINE uint32_t rdmeta_buf_uvar_long(rdmeta_buf_t *b) {
        uint64_t v = 0;
        int shift;

        for (shift = 0; shift < 35 && b->p < b->end; shift += 7) {
                uint8_t c = *b->p++;
                v |= (uint64_t)(c & 0x7f) << shift;
                if (c < 0x80 && v <= UINT32_MAX)
                        return (uint32_t)v;
        }
        rdmeta_buf_fail(b);
        return 0;
}

/* Reads an unsigned varint of at most 32 bits. */
RDMETA_INLINE uint32_t rdmeta_buf_uvar(rdmeta_buf_t *b) {
        if (RDMETA_LIKELY(b->p < b->end && *b->p < 0x80))
                return *b->p++;
        return rdmeta_buf_uvar_long(b);
}

static RDMETA_NOINLINE void rdmeta_buf_tags_skip(rdmeta_buf_t *b,
                                                        uint32_t n) {
        while (n-- && !b->bad) {
                rdmeta_buf_uvar(b);
                rdmeta_buf_bytes(b, rdmeta_buf_uvar(b));
        }
}

/* Skips the tagged fields (KIP-482); Metadata has none that rdmeta reads. */
RDMETA_INLINE void rdmeta_buf_tags(rdmeta_buf_t *b) {
        uint32_t n = rdmeta_buf_uvar(b);
        if (RDMETA_UNLIKELY(n))
                rdmeta_buf_tags_skip(b, n);
}

/*
 * Reads a count of elements that take at least `min` bytes each, and fails if
 * they do not fit. So a caller may loop over it, or allocate by it, in
 * proportion to the input. A null array (-1) sets *null and returns 0; it is an
 * error if `null` is NULL.
 */
RDMETA_INLINE uint32_t rdmeta_buf_count(rdmeta_buf_t *b, int flexible,
                                        size_t min, int *null) {
        int64_t n = flexible ? (int64_t)rdmeta_buf_uvar(b) - 1
                             : (int64_t)rdmeta_buf_i32(b);

        if (null)
                *null = n == -1 && !b->bad;
        if (RDMETA_UNLIKELY(n < 0)) {
                if (n < -1 || !null)
                        rdmeta_buf_fail(b);
                return 0;
        }
        if (RDMETA_UNLIKELY((uint64_t)n > rdmeta_buf_left(b) / min)) {
                rdmeta_buf_fail(b);
                return 0;
        }
        return (uint32_t)n;
}

/* Reads a string, which is borrowed. A null string has data NULL, and is an
 * error unless `nullable`. */
RDMETA_INLINE rdmeta_str_t rdmeta_buf_str(rdmeta_buf_t *b, int flexible,
                                          int nullable) {
        rdmeta_str_t s = {NULL, 0};
        int64_t n      = flexible ? (int64_t)rdmeta_buf_uvar(b) - 1
                                  : (int64_t)rdmeta_buf_i16(b);
        const uint8_t *p;

        /* Negative, or longer than any of Kafka's strings, compact or not. */
        if (RDMETA_UNLIKELY((uint64_t)n > INT16_MAX)) {
                if (n != -1 || !nullable)
                        rdmeta_buf_fail(b);
                return s;
        }
        p = rdmeta_buf_bytes(b, (size_t)n);
        if (RDMETA_LIKELY(p != NULL && !b->bad)) {
                s.data = (const char *)p;
                s.len  = (size_t)n;
        }
        return s;
}

/* Reads a list of int32, which is borrowed. Null reads as empty. */
RDMETA_INLINE rdmeta_wire_ids_t rdmeta_buf_ids(rdmeta_buf_t *b,
                                               int flexible) {
        rdmeta_wire_ids_t l;
        int null = 0;

        l.count = rdmeta_buf_count(b, flexible, 4, &null);
        l.be    = b->p;
        b->p += 4 * (size_t)l.count;
        return l;
}
