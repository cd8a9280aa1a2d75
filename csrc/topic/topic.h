/*
 * topic: one topic, one block.
 *
 * A block is immutable but for its deadline and its provenance. It has offsets
 * instead of pointers, so that it is the same bytes in memory and in a file.
 * Readers see blocks and nothing else.
 *
 *     cold      44 bytes; `link` is the writer's, and 0 in a file
 *                 size, link, version, flags, id,
 *                 provenance: broker, reason, and the topic's error
 *     hot       at the begin of a cache line
 *                 deadline, count, name_len, state, width     16 bytes
 *                 name
 *                 leaders    [count]   in 1, 2 or 4 bytes
 *     columns   epochs     [count]   in 1, 2 or 4 bytes
 *               ids        [count]   int32, if not 0..count-1
 *               highest    [count]   int32, if an epoch is not the highest seen
 *               last       [count]   int32, if a leaderless partition had a
 *                                    leader before
 *               errors     [count]   int16, if a partition has an error
 *               operations           int32, if the answer has them
 *     lists     either *flat*, if all partitions have equally many replicas,
 *               all of them in sync:
 *                 n, then n ids per partition, in 1, 2 or 4 bytes
 *               or shared, if that is smaller or a partition differs:
 *                 replicas [count]   references, in 1, 2 or 4 bytes
 *                 isr      [count]   references, if not equal to the replicas
 *                 offline  [count]   references, if there are any
 *                 lists    [units]   n, id, id ...; the first is empty, equal
 *                                    ones are stored once, see
 *                                    rdmeta_lists_fit()
 *     past      [n * 16]  ids that this topic had before, newest first, and
 *               n         one byte, if there are any
 *
 * Columns follow each other without gaps and are read with unaligned loads. A
 * flag says that a topic has a column; columns that it does not need are
 * absent. Integers are as narrow as the topic's values allow. A lookup reads
 * the 16 hot bytes, the name and one leader, mostly in one cache line. That is
 * why the hot part begins a line, and why the cold part precedes it.
 *
 * If the hot part takes at most RDMETA_SPLIT bytes, the block is *split*. Its
 * hot part is a line among other topics' lines, and the rest lies elsewhere
 * (memory.h). The line's last six bytes are the distance:
 *
 *     whole   cold|hot|columns|lists|past             size: all of this
 *     split   hot..cold_offset  cold|columns|lists|past   size: this part
 *                       \____________^ a multiple of 8
 *
 * No flag says that a block is split: name_len, count and width decide it.
 *
 * `width` is log2 of a leader's bytes. A lookup compares (name_len, state,
 * width) with the caller's length as one 32-bit word. So only a valid topic
 * (state 0) with leaders of one byte (width 0) takes the shortest path, after
 * one comparison. The leader's address comes from the *caller's* length. A
 * field of the block would be one more load to wait for.
 */
#pragma once

#include "base/hash.h"
#include "rdmeta.h"
#include "topic/memory.h"

#include <stdatomic.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
        RDMETA_TOPIC_VALID = 0,
        RDMETA_TOPIC_WAIT,    /* in flight, without facts */
        RDMETA_TOPIC_UNKNOWN, /* UNKNOWN_TOPIC_OR_PARTITION */
        RDMETA_TOPIC_DENIED,  /* TOPIC_AUTHORIZATION_FAILED */
        RDMETA_TOPIC_BAD,     /* INVALID_TOPIC_EXCEPTION */
        RDMETA_TOPIC_MISSING, /* it was seen, and a broker does not have it */
        RDMETA_TOPIC_GONE     /* removed; id and epochs are remembered */
};

enum {
        RDMETA_TOPIC_F_IDS      = 1 << 0,
        RDMETA_TOPIC_F_HIGH     = 1 << 1,
        RDMETA_TOPIC_F_LAST     = 1 << 2,
        RDMETA_TOPIC_F_ERRORS   = 1 << 3,
        RDMETA_TOPIC_F_OPS      = 1 << 4,
        RDMETA_TOPIC_F_ISR      = 1 << 5,
        RDMETA_TOPIC_F_OFFLINE  = 1 << 6,
        RDMETA_TOPIC_F_PAST     = 1 << 7,
        RDMETA_TOPIC_F_INTERNAL = 1 << 8,
        /* log2 of widths, two bits each */
        RDMETA_TOPIC_EPOCH_SHIFT = 9,
        RDMETA_TOPIC_LIST_SHIFT  = 11,
        RDMETA_TOPIC_REF_SHIFT   = 13,
        RDMETA_TOPIC_F_FLAT      = 1 << 15
};

/* The deadline of topics that the last all-topics answer named; its time is
 * stored once per cache. It is above all times, so that a lookup takes it for a
 * deadline to come without a test of its own. */
#define RDMETA_DEADLINE_SHARED INT64_MAX
/* The deadline of a stale topic in flight, where the time of that has no
 * limit. */
#define RDMETA_DEADLINE_ASKED (INT64_MIN + 1)
/* A deadline minus this counts as past, but still gives the time of the answer.
 * A time minus twice this: the topic is stale, and in flight until that time.
 * Other deadlines are plain. */
#define RDMETA_DEADLINE_PAST (INT64_C(1) << 61)

/* A value of `width`: ids are not 0..count-1, and leaders take four bytes. So
 * the fast path's one comparison excludes such topics, too. */
#define RDMETA_TOPIC_SPARSE 3

#define RDMETA_NAME_MAX 32767
#define RDMETA_PARTITIONS_MAX (1u << 29)
#define RDMETA_PAST_MAX 4

/* Returns whether all rows of a block together may name this many brokers. A
 * reader's time is in proportion to them, so the limit keeps it in proportion
 * to the block's bytes. An answer has bytes of its own for each row. Above the
 * limit the builder stores equal lists more than once. Lists of up to 21
 * brokers never reach it. */
RDMETA_INLINE int rdmeta_lists_fit(uint64_t named, uint32_t count,
                                   size_t units) {
        return named <= 64 * ((uint64_t)count + units);
}

/* The provenance of a topic's facts: the broker of the last answer, and the
 * reason of its request. Both are stored and read as one word, so that a reader
 * never gets them from different answers. */
typedef struct rdmeta_provenance {
        int32_t broker;  /* -1: not known */
        uint16_t reason; /* its number (store/reasons.h); 0: not known */
        int16_t error;   /* in a block: the topic's, which stays; else 0 */
} rdmeta_provenance_t;

/* Packed only for its size. Each member is aligned, since the end of the struct
 * is a multiple of 16. */
typedef struct __attribute__((packed, aligned(4))) rdmeta_cold {
        uint32_t size; /* from here on, to the end of this piece */
        uint64_t link; /* the place in the order array; in a retired block,
                        * the next retired one */
        uint64_t version : 48; /* the cache's version that made this block */
        uint64_t flags : 16;
        uint8_t id[16];
        uint64_t provenance; /* a rdmeta_provenance_t; read atomically */
} rdmeta_cold_t;

_Static_assert(sizeof(rdmeta_cold_t) == 44, "the file format has 44 bytes");
_Static_assert(sizeof(rdmeta_provenance_t) == 8, "it is one word");

/* The header of a table, which is no slab's piece, but is retired as blocks
 * are. */
typedef struct rdmeta_large {
        void *link;
        size_t size;
} rdmeta_large_t;

struct rdmeta_topic {
        _Atomic int64_t deadline;
        uint32_t count; /* the number of partitions */
        uint16_t name_len;
        uint8_t state;
        uint8_t width; /* log2 of a leader's bytes, or SPARSE */
        char name[];
};

#define RDMETA_TOPIC_HEADER_SIZE sizeof(rdmeta_cold_t)
#define RDMETA_TOPIC_FIXED offsetof(rdmeta_topic_t, name)
/* The most hot bytes of a split block; the other six are the cold offset. */
#define RDMETA_SPLIT (RDMETA_LINE - 6)

/* Returns the bytes of a hot part. */
RDMETA_INLINE size_t rdmeta_hot_bytes(size_t name_len, uint32_t count,
                                      unsigned width) {
        return RDMETA_TOPIC_FIXED + name_len +
               ((size_t)count << (width > 2 ? 2 : width));
}

RDMETA_INLINE size_t rdmeta_topic_hot(const rdmeta_topic_t *t) {
        return rdmeta_hot_bytes(t->name_len, t->count, t->width);
}

RDMETA_INLINE int rdmeta_topic_is_split(const rdmeta_topic_t *t) {
        return rdmeta_topic_hot(t) <= RDMETA_SPLIT;
}

/* Returns the distance from a split block's begin to its columns, modulo 2^48.
 * Addresses are below that, but two may be further apart than a signed number
 * of 48 bits. */
RDMETA_INLINE int64_t rdmeta_topic_cold_offset(const rdmeta_topic_t *t) {
        const char *end = (const char *)t + RDMETA_LINE;

        return (int64_t)rdmeta_load64(end - 8) >> 16;
}

RDMETA_INLINE void rdmeta_topic_cold_offset_set(rdmeta_topic_t *t,
                                                int64_t cold_offset) {
        memcpy((char *)t + RDMETA_SPLIT, &cold_offset,
               RDMETA_LINE - RDMETA_SPLIT);
}

/* Returns the address right after the cold part. */
RDMETA_INLINE uintptr_t rdmeta_topic_place_of_cold(const rdmeta_topic_t *t) {
        if (!rdmeta_topic_is_split(t))
                return (uintptr_t)t;
        return ((uintptr_t)t + (uintptr_t)rdmeta_topic_cold_offset(t)) &
               (((uintptr_t)1 << 48) - 1);
}

RDMETA_INLINE rdmeta_cold_t *rdmeta_cold(const rdmeta_topic_t *t) {
        return (rdmeta_cold_t *)rdmeta_topic_place_of_cold(t) - 1;
}

/* Returns the begin of the columns, also in a block that is not filled yet. */
RDMETA_INLINE char *rdmeta_topic_columns(const rdmeta_topic_t *t) {
        return (char *)(rdmeta_topic_is_split(t)
                                ? rdmeta_topic_place_of_cold(t)
                                : (uintptr_t)t + rdmeta_topic_hot(t));
}

/* Returns the bytes from the begin of the columns to the block's end. */
RDMETA_INLINE size_t rdmeta_topic_rest(const rdmeta_topic_t *t) {
        const rdmeta_cold_t *cold = rdmeta_cold(t);

        return (size_t)((const char *)cold + cold->size -
                        rdmeta_topic_columns(t));
}

RDMETA_INLINE rdmeta_provenance_t rdmeta_provenance_of(uint64_t word) {
        rdmeta_provenance_t provenance;

        memcpy(&provenance, &word, sizeof(provenance));
        return provenance;
}

RDMETA_INLINE uint64_t rdmeta_provenance_word(rdmeta_provenance_t provenance) {
        uint64_t word;

        memcpy(&word, &provenance, sizeof(word));
        return word;
}

RDMETA_INLINE rdmeta_provenance_t rdmeta_provenance_none(void) {
        const rdmeta_provenance_t none = {-1, 0, 0};

        return none;
}

/* Returns a topic's provenance. Any thread. */
RDMETA_INLINE rdmeta_provenance_t
rdmeta_topic_provenance(const rdmeta_topic_t *t) {
        return rdmeta_provenance_of(__atomic_load_n(
                (const uint64_t *)rdmeta_topic_place_of_cold(t) - 1,
                __ATOMIC_ACQUIRE));
}

RDMETA_INLINE int16_t rdmeta_topic_error(const rdmeta_topic_t *t) {
        return rdmeta_topic_provenance(t).error;
}

/* Sets a topic's provenance, but keeps its error. Only the writer calls it. */
RDMETA_INLINE void
rdmeta_topic_provenance_set(rdmeta_topic_t *t,
                            rdmeta_provenance_t provenance) {
        provenance.error = rdmeta_topic_error(t);
        __atomic_store_n((uint64_t *)rdmeta_topic_place_of_cold(t) - 1,
                         rdmeta_provenance_word(provenance), __ATOMIC_RELEASE);
}

/* Returns name_len, state and width as one word. It is the length of the name
 * for a valid topic with leaders of one byte. Wider leaders add the width above
 * that. Every other topic has a word that is neither. */
RDMETA_INLINE uint32_t rdmeta_topic_head(const rdmeta_topic_t *t) {
        return t->name_len | (uint32_t)t->state << 16 |
               (uint32_t)t->width << 24;
}

/* The bits of a head without the width. */
#define RDMETA_HEAD_VALID 0xffffffu

RDMETA_INLINE uint32_t rdmeta_topic_count(const rdmeta_topic_t *t) {
        return t->count;
}

RDMETA_INLINE int rdmeta_topic_has_id(const rdmeta_topic_t *t) {
        const uint8_t *id = rdmeta_cold(t)->id;

        return (rdmeta_load64(id) | rdmeta_load64(id + 8)) != 0;
}

/* Returns whether the topic was seen, and is absent or removed now. */
RDMETA_INLINE int rdmeta_topic_has_gone(const rdmeta_topic_t *t) {
        return t->state == RDMETA_TOPIC_MISSING ||
               t->state == RDMETA_TOPIC_GONE;
}

/* Returns whether the topic was valid at some time. */
RDMETA_INLINE int rdmeta_topic_was_seen(const rdmeta_topic_t *t) {
        return t->state == RDMETA_TOPIC_VALID || rdmeta_topic_has_gone(t) ||
               rdmeta_topic_count(t) > 0;
}

/* Returns whether lookups return the topic: it is not merely in flight, and not
 * merely remembered. */
RDMETA_INLINE int rdmeta_topic_is_visible(const rdmeta_topic_t *t) {
        return t->state != RDMETA_TOPIC_WAIT &&
               t->state != RDMETA_TOPIC_GONE;
}

/* ---- columns ---------------------------------------------------------- */

RDMETA_INLINE int32_t rdmeta_col_get(const void *col, unsigned width,
                                     size_t i) {
        const char *p = (const char *)col;
        int16_t v16;
        int32_t v32;

        if (RDMETA_LIKELY(width == 0))
                return (int8_t)p[i];
        if (RDMETA_LIKELY(width == 1)) {
                memcpy(&v16, p + 2 * i, 2);
                return v16;
        }
        memcpy(&v32, p + 4 * i, 4);
        return v32;
}

/* Returns a reference, which is unsigned. */
RDMETA_INLINE uint32_t rdmeta_ref_get(const void *col, unsigned width,
                                      size_t i) {
        const uint32_t v = (uint32_t)rdmeta_col_get(col, width, i);
        return width == 0 ? v & 0xff : width == 1 ? v & 0xffff : v;
}

/* Returns log2 of the bytes of a signed integer for -1..max. */
RDMETA_INLINE unsigned rdmeta_width_signed(uint32_t max) {
        return max <= INT8_MAX ? 0 : max <= INT16_MAX ? 1 : 2;
}

/* A list of int32 in a block or in a response's bytes. */
enum { RDMETA_LIST_WIRE = 3 };
typedef struct rdmeta_list {
        const uint8_t *p;
        uint32_t count;
        uint32_t width; /* log2, or RDMETA_LIST_WIRE: big-endian int32 */
} rdmeta_list_t;

RDMETA_INLINE int32_t rdmeta_list_get(rdmeta_list_t l, uint32_t i) {
        return l.width == RDMETA_LIST_WIRE
                       ? (int32_t)rdmeta_be32(l.p + 4 * (size_t)i)
                       : rdmeta_col_get(l.p, l.width, i);
}

int rdmeta_list_equal(rdmeta_list_t a, rdmeta_list_t b);
/* Copies up to out->capacity ids. Sets out->count to the list's full length. */
void rdmeta_list_copy(rdmeta_list_t l, rdmeta_ids_out_t *out);

/* The begins of a block's columns; NULL: the column is absent. */
typedef struct rdmeta_cols {
        const char *leaders, *epochs, *ids, *high, *last, *errors, *ops;
        const char *replicas, *isr, *offline, *lists, *lists_end, *past;
        uint32_t count;
        uint32_t flat; /* replicas per partition; 0: not flat */
        uint8_t leader_width, epoch_width, list_width, ref_width, n_past;
} rdmeta_cols_t;

void rdmeta_topic_cols(const rdmeta_topic_t *t, rdmeta_cols_t *out);

/* One partition of a block. */
typedef struct rdmeta_row {
        int32_t id, leader, last, epoch, high, error;
        rdmeta_list_t replicas, isr, offline;
} rdmeta_row_t;

void rdmeta_topic_row(const rdmeta_cols_t *cols, uint32_t i,
                      rdmeta_row_t *out);

int32_t rdmeta_topic_operations(const rdmeta_topic_t *t);

/* Returns the row of a partition id, or -1. */
int64_t rdmeta_topic_place(const rdmeta_topic_t *t, int32_t partition);
/* Reads the row of a partition id. Returns 0 if there is none. */
int rdmeta_topic_row_of(const rdmeta_topic_t *t, int32_t partition,
                        rdmeta_row_t *out);

/* ---- making ----------------------------------------------------------- */

/* The size of a block: `rest` is the bytes from its columns on. */
typedef struct rdmeta_extent {
        size_t name_len, rest;
        uint32_t count;
        uint8_t width; /* or SPARSE */
} rdmeta_extent_t;

/* Returns a block with extent, link, deadline and provenance set; the rest is
 * not filled. NULL: no memory. The caller frees it with
 * rdmeta_topic_destroy(). */
rdmeta_topic_t *rdmeta_topic_alloc(rdmeta_memory_t *blocks,
                                   const rdmeta_extent_t *extent,
                                   int16_t error);
/* Returns a copy with the same deadline, link and provenance. NULL: no memory.
 * Only the writer calls it. */
rdmeta_topic_t *rdmeta_topic_copy(rdmeta_memory_t *blocks,
                                  const rdmeta_topic_t *from);
/* Returns a block without partitions. NULL: no memory. */
rdmeta_topic_t *rdmeta_topic_bare(rdmeta_memory_t *blocks, rdmeta_str_t name,
                                  const uint8_t id[16], uint16_t state,
                                  int16_t error, uint64_t version);
/* Returns a block with the same facts in another state. NULL: no memory. */
rdmeta_topic_t *rdmeta_topic_restate(rdmeta_memory_t *blocks,
                                     const rdmeta_topic_t *old,
                                     uint16_t state, int16_t error,
                                     uint64_t version);
/* Frees a block, which may be NULL. */
void rdmeta_topic_destroy(rdmeta_memory_t *blocks, rdmeta_topic_t *t);
/* Returns the bytes that a block takes in each slab, large pieces included. */
rdmeta_pieces_t rdmeta_topic_pieces(const rdmeta_memory_t *blocks,
                                    const rdmeta_topic_t *t);
/* Returns the sum of these bytes. */
size_t rdmeta_topic_bytes(const rdmeta_memory_t *blocks,
                          const rdmeta_topic_t *t);
/* Returns whether a part of the block is in a chunk that is leaving. */
int rdmeta_topic_leaves(const rdmeta_memory_t *blocks,
                        const rdmeta_topic_t *t);
/* Returns whether two blocks have the same facts; their times and versions may
 * differ. */
int rdmeta_topic_same(const rdmeta_topic_t *a, const rdmeta_topic_t *b);

/* ---- the fast path ---------------------------------------------------- */

/* Returns whether two names of length n are equal. With SSE2 it makes no call
 * for names of 8 to 32 bytes. */
RDMETA_INLINE int rdmeta_name_equal(const char *a, const char *b, size_t n) {
#if defined(__SSE2__)
        if (RDMETA_LIKELY(n - 16 <= 16)) {
                const __m128i x = _mm_cmpeq_epi8(
                        _mm_loadu_si128((const __m128i *)(const void *)a),
                        _mm_loadu_si128((const __m128i *)(const void *)b));
                const __m128i y = _mm_cmpeq_epi8(
                        _mm_loadu_si128(
                                (const __m128i *)(const void *)(a + n - 16)),
                        _mm_loadu_si128(
                                (const __m128i *)(const void *)(b + n - 16)));
                return _mm_movemask_epi8(_mm_and_si128(x, y)) == 0xffff;
        }
#endif
        if (RDMETA_LIKELY(n - 8 <= 8))
                return !((rdmeta_load64(a) ^ rdmeta_load64(b)) |
                         (rdmeta_load64(a + n - 8) ^
                          rdmeta_load64(b + n - 8)));
        return !memcmp(a, b, n);
}

/* Returns whether a deadline is a time, and neither made past nor asked for. */
static inline int rdmeta_deadline_plain(int64_t deadline) {
        return deadline > -(RDMETA_DEADLINE_PAST / 2) &&
               deadline < RDMETA_DEADLINE_PAST / 2;
}

/* Returns the deadline of a stale topic that is in flight until `until`. */
static inline int64_t rdmeta_deadline_asked(int64_t until) {
        return rdmeta_deadline_plain(until) ? until - 2 * RDMETA_DEADLINE_PAST
                                            : RDMETA_DEADLINE_ASKED;
}

/* Returns until when a stale topic is in flight: INT64_MAX: without limit;
 * INT64_MIN: it is not in flight. */
static inline int64_t rdmeta_deadline_asked_until(int64_t deadline) {
        if (deadline == RDMETA_DEADLINE_ASKED)
                return INT64_MAX;
        if (deadline < 0 &&
            rdmeta_deadline_plain(deadline + 2 * RDMETA_DEADLINE_PAST))
                return deadline + 2 * RDMETA_DEADLINE_PAST;
        return INT64_MIN;
}

static inline int rdmeta_deadline_is_asked(int64_t deadline) {
        return rdmeta_deadline_asked_until(deadline) != INT64_MIN;
}

/* Returns the deadline of the topic if it were not in flight: then it is only
 * stale. */
static inline int64_t rdmeta_deadline_unasked(int64_t deadline) {
        return rdmeta_deadline_is_asked(deadline) ? RDMETA_DEADLINE_ASKED + 1
                                                  : deadline;
}

/* Returns the deadline that callers see: as it was before it was made past. For
 * a topic in flight it returns ASKED, without the time. */
static inline int64_t rdmeta_deadline_visible(int64_t deadline) {
        if (rdmeta_deadline_is_asked(deadline))
                return RDMETA_DEADLINE_ASKED;
        if (deadline < 0 && deadline > INT64_MIN / 2 &&
            rdmeta_deadline_plain(deadline + RDMETA_DEADLINE_PAST))
                return deadline + RDMETA_DEADLINE_PAST;
        return deadline;
}
