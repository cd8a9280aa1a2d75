/*
 * topic: one topic, one block.
 *
 * A block is immutable but for its deadline and who said it, and holds offsets
 * where others hold pointers, so that it is the same bytes in memory and in a
 * file. Readers see blocks and nothing else.
 *
 *     cold      44 bytes; `link` is the writer's, and 0 in a file
 *                 size, link, version, flags, id,
 *                 said: broker, reason, and the topic's error
 *     hot       at the begin of a cache line
 *                 deadline, count, name_len, state, width     16 bytes
 *                 name
 *                 leaders    [count]   in 1, 2 or 4 bytes
 *     columns   epochs     [count]   in 1, 2 or 4 bytes
 *               ids        [count]   int32, if not 0..count-1
 *               highest    [count]   int32, if an epoch is not the highest seen
 *               last       [count]   int32, if a leaderless partition had one
 *               errors     [count]   int16, if there is one
 *               operations           int32, if said
 *     lists     either *flat*, when each partition has as many replicas as the
 *               next, all of them in sync:
 *                 n, then n ids for each partition, in 1, 2 or 4 bytes
 *               or shared, where that is smaller or one differs:
 *                 replicas [count]   references, in 1, 2 or 4 bytes
 *                 isr      [count]   the same, if not equal to the replicas
 *                 offline  [count]   the same, if there are any
 *                 lists    [units]   n, id, id ...; the first is empty, equal
 *                                    ones are stored once, see
 *                                    rdmeta_lists_fit()
 *     past      [n * 16]  ids that this topic had before, newest first, and
 *               n         one byte, if there are any
 *
 * Columns follow each other without gaps and are read with unaligned loads; a
 * column that a topic does not need is absent, by a flag; integers are as
 * narrow as the topic's values allow. A lookup touches the 16 hot bytes, the
 * name and one leader, most often one cache line: that is why the cold part
 * precedes it, and why it begins a line.
 *
 * Where the hot part takes RDMETA_SPLIT bytes at most, the block is *split*: it
 * is a line among others' lines, and the rest lies elsewhere (memory.h). The
 * line's end says how far:
 *
 *     whole   cold|hot|columns|lists|past             size: of all that
 *     split   hot..far      cold|columns|lists|past   size: of this
 *                    \___________^ a multiple of 8
 *
 * Nothing says that a block is split: it is told from name_len, count, width.
 *
 * `width` is log2 of a leader's bytes, and (name_len, state, width) is compared
 * with the caller's length as one 32-bit word, so that only a valid topic
 * (state 0) with leaders of one byte (width 0) takes the shortest path: one
 * comparison for all of that. The leader's address comes from the *caller's*
 * length, not from a field of the block, which would be one more load to wait
 * for.
 */
#ifndef RDMETA_TOPIC_TOPIC_H
#define RDMETA_TOPIC_TOPIC_H

#include "base/hash.h"
#include "rdmeta.h"
#include "topic/memory.h"

#include <stdatomic.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
        RDMETA_TOPIC_VALID = 0,
        RDMETA_TOPIC_WAIT,    /* asked for, nothing known */
        RDMETA_TOPIC_UNKNOWN, /* UNKNOWN_TOPIC_OR_PARTITION */
        RDMETA_TOPIC_DENIED,  /* TOPIC_AUTHORIZATION_FAILED */
        RDMETA_TOPIC_BAD,     /* INVALID_TOPIC_EXCEPTION */
        RDMETA_TOPIC_MISSING, /* absent from an all-topics answer */
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

/* A deadline: the time of the last all-topics answer's, held once a cache.
 * Above all others, so that a lookup need not tell it from one to come. */
#define RDMETA_DEADLINE_SHARED INT64_MAX
/* A deadline: long past, and asked for again, for as long as anybody says. */
#define RDMETA_DEADLINE_ASKED (INT64_MIN + 1)
/* Less this: a deadline that is not to count, as if it were past. It still
 * tells when the topic was answered. Less it twice: long past, and asked for
 * again until then. Real ones are plain. */
#define RDMETA_DEADLINE_PAST (INT64_C(1) << 61)

/* In place of a leader's width: ids are not 0..count-1 (and leaders are four
 * bytes wide), so that one comparison keeps the fast path honest. */
#define RDMETA_TOPIC_SPARSE 3

#define RDMETA_NAME_MAX 32767
#define RDMETA_PARTITIONS_MAX (1u << 29)
#define RDMETA_PAST_MAX 4

/* Returns whether all rows of a block together may name so many brokers: a
 * reader takes as long as that, so it stays in proportion to the block's bytes.
 * An answer has bytes of its own for each row. Where these are too many, equal
 * lists are stored more than once; lists of 21 brokers never are. */
RDMETA_INLINE int rdmeta_lists_fit(uint64_t named, uint32_t count,
                                   size_t units) {
        return named <= 64 * ((uint64_t)count + units);
}

/* Who said it last, and why he was asked. They are stored and read at once, as
 * one word, so that none is told with another answer's. */
typedef struct rdmeta_provenance {
        int32_t broker;  /* -1: not known */
        uint16_t reason; /* its number (store/reasons.h); 0: not said */
        int16_t error;   /* in a block: the topic's, which stays; else 0 */
} rdmeta_provenance_t;

/* Packed for its size, not for its places: each member is where its type
 * wants it, given that the end is a multiple of 64. */
typedef struct __attribute__((packed, aligned(4))) rdmeta_cold {
        uint32_t size; /* from here on, to the end of this piece */
        uint64_t link; /* place in the order array; once retired, the next
                        * retired block */
        uint64_t version : 48; /* the cache's when this block was made */
        uint64_t flags : 16;
        uint8_t id[16];
        uint64_t provenance; /* a rdmeta_provenance_t; read atomically */
} rdmeta_cold_t;

_Static_assert(sizeof(rdmeta_cold_t) == 44, "the format's");
_Static_assert(sizeof(rdmeta_provenance_t) == 8, "a word");

/* What is not a slab's piece but is retired like blocks: tables. */
typedef struct rdmeta_large {
        void *link;
        size_t size;
} rdmeta_large_t;

struct rdmeta_topic {
        _Atomic int64_t deadline;
        uint32_t count; /* of partitions */
        uint16_t name_len;
        uint8_t state;
        uint8_t width; /* log2 of a leader's bytes, or SPARSE */
        char name[];
};

#define RDMETA_TOPIC_HEADER_SIZE sizeof(rdmeta_cold_t)
#define RDMETA_TOPIC_FIXED offsetof(rdmeta_topic_t, name)
/* Hot bytes of a split block at most; the other six are `far`. */
#define RDMETA_SPLIT (RDMETA_LINE - 6)

/* Bytes of a hot part. */
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

/* From a split block's begin to its columns: modulo 2^48, since an address is
 * below that, and two may be further apart than a signed number of 48 bits. */
RDMETA_INLINE int64_t rdmeta_topic_cold_offset(const rdmeta_topic_t *t) {
        const char *end = (const char *)t + RDMETA_LINE;

        return (int64_t)rdmeta_load64(end - 8) >> 16;
}

RDMETA_INLINE void rdmeta_topic_cold_offset_set(rdmeta_topic_t *t, int64_t cold_offset) {
        memcpy((char *)t + RDMETA_SPLIT, &cold_offset, RDMETA_LINE - RDMETA_SPLIT);
}

/* What the cold part precedes. */
RDMETA_INLINE uintptr_t rdmeta_topic_place_of_cold(const rdmeta_topic_t *t) {
        if (!rdmeta_topic_is_split(t))
                return (uintptr_t)t;
        return ((uintptr_t)t + (uintptr_t)rdmeta_topic_cold_offset(t)) &
               (((uintptr_t)1 << 48) - 1);
}

RDMETA_INLINE rdmeta_cold_t *rdmeta_cold(const rdmeta_topic_t *t) {
        return (rdmeta_cold_t *)rdmeta_topic_place_of_cold(t) - 1;
}

/* Where columns begin, of a block that may not have been filled yet. */
RDMETA_INLINE char *rdmeta_topic_columns(const rdmeta_topic_t *t) {
        return (char *)(rdmeta_topic_is_split(t)
                                ? rdmeta_topic_place_of_cold(t)
                                : (uintptr_t)t + rdmeta_topic_hot(t));
}

/* Bytes from there to the block's end. */
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

RDMETA_INLINE rdmeta_provenance_t rdmeta_topic_provenance(const rdmeta_topic_t *t) {
        return rdmeta_provenance_of(__atomic_load_n(
                (const uint64_t *)rdmeta_topic_place_of_cold(t) - 1,
                __ATOMIC_ACQUIRE));
}

RDMETA_INLINE int16_t rdmeta_topic_error(const rdmeta_topic_t *t) {
        return rdmeta_topic_provenance(t).error;
}

/* The writer's; what the topic's error is stays. */
RDMETA_INLINE void rdmeta_topic_provenance_set(rdmeta_topic_t *t,
                                         rdmeta_provenance_t provenance) {
        provenance.error = rdmeta_topic_error(t);
        __atomic_store_n((uint64_t *)rdmeta_topic_place_of_cold(t) - 1,
                         rdmeta_provenance_word(provenance), __ATOMIC_RELEASE);
}

/* The length of a valid topic's name where leaders take one byte, that and the
 * width above it where they take more, and what is neither of any other. */
RDMETA_INLINE uint32_t rdmeta_topic_head(const rdmeta_topic_t *t) {
        return t->name_len | (uint32_t)t->state << 16 |
               (uint32_t)t->width << 24;
}

/* Of a head, whatever the width. */
#define RDMETA_HEAD_VALID 0xffffffu

RDMETA_INLINE uint32_t rdmeta_topic_count(const rdmeta_topic_t *t) {
        return t->count;
}

RDMETA_INLINE int rdmeta_topic_has_id(const rdmeta_topic_t *t) {
        const uint8_t *id = rdmeta_cold(t)->id;

        return (rdmeta_load64(id) | rdmeta_load64(id + 8)) != 0;
}

/* An answer, that lookups tell of: not in flight, and not only remembered. */
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

/* References are unsigned. */
RDMETA_INLINE uint32_t rdmeta_ref_get(const void *col, unsigned width,
                                      size_t i) {
        const uint32_t v = (uint32_t)rdmeta_col_get(col, width, i);
        return width == 0 ? v & 0xff : width == 1 ? v & 0xffff : v;
}

/* log2 of the bytes that hold 0..max, or -1 besides, signed. */
RDMETA_INLINE unsigned rdmeta_width_signed(uint32_t max) {
        return max <= INT8_MAX ? 0 : max <= INT16_MAX ? 1 : 2;
}

/* A list of int32 wherever it lies: in a block, or in a response's bytes. */
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
/* Up to out->capacity ids; out->count is how many there are. */
void rdmeta_list_copy(rdmeta_list_t l, rdmeta_ids_out_t *out);

/* Where a block's columns are; what is absent is NULL. */
typedef struct rdmeta_cols {
        const char *leaders, *epochs, *ids, *high, *last, *errors, *ops;
        const char *replicas, *isr, *offline, *lists, *lists_end, *past;
        uint32_t count;
        uint32_t flat; /* replicas of each partition; 0: not flat */
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

/* The place of a partition id, or -1. */
int64_t rdmeta_topic_place(const rdmeta_topic_t *t, int32_t partition);

/* ---- making ----------------------------------------------------------- */

/* How large a block is: `rest` are the bytes from its columns on. */
typedef struct rdmeta_extent {
        size_t name_len, rest;
        uint32_t count;
        uint8_t width; /* or SPARSE */
} rdmeta_extent_t;

/* Room for one: its extent, link, deadline, who said it are set. */
rdmeta_topic_t *rdmeta_topic_alloc(rdmeta_memory_t *blocks,
                                   const rdmeta_extent_t *extent,
                                   int16_t error);
/* All the same in another place; the writer's. NULL: no memory. */
rdmeta_topic_t *rdmeta_topic_copy(rdmeta_memory_t *blocks,
                                  const rdmeta_topic_t *from);
/* A block without partitions. NULL: no memory. */
rdmeta_topic_t *rdmeta_topic_bare(rdmeta_memory_t *blocks, rdmeta_str_t name,
                                  const uint8_t id[16], uint16_t state,
                                  int16_t error, uint64_t version);
/* The same facts in another state. NULL: no memory. */
rdmeta_topic_t *rdmeta_topic_restate(rdmeta_memory_t *blocks,
                                     const rdmeta_topic_t *old,
                                     uint16_t state, int16_t error,
                                     uint64_t version);
void rdmeta_topic_destroy(rdmeta_memory_t *blocks, rdmeta_topic_t *t);
/* What it takes of each slab, large pieces too; and in all. */
rdmeta_pieces_t rdmeta_topic_pieces(const rdmeta_memory_t *blocks,
                                    const rdmeta_topic_t *t);
size_t rdmeta_topic_bytes(const rdmeta_memory_t *blocks,
                          const rdmeta_topic_t *t);
/* A part of it is in a chunk that is leaving. */
int rdmeta_topic_leaves(const rdmeta_memory_t *blocks,
                        const rdmeta_topic_t *t);
/* Whether two blocks say the same, whenever they were made. */
int rdmeta_topic_same(const rdmeta_topic_t *a, const rdmeta_topic_t *b);

/* ---- the fast path ---------------------------------------------------- */

/* Names of equal length, 16 bytes and more, without a call. */
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

static inline int rdmeta_deadline_plain(int64_t deadline) {
        return deadline > -(RDMETA_DEADLINE_PAST / 2) &&
               deadline < RDMETA_DEADLINE_PAST / 2;
}

static inline int64_t rdmeta_deadline_asked(int64_t until) {
        return rdmeta_deadline_plain(until) ? until - 2 * RDMETA_DEADLINE_PAST
                                            : RDMETA_DEADLINE_ASKED;
}

/* Until when it is asked for; INT64_MIN: it is not. */
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

/* As if nobody had asked: long past, and no more. */
static inline int64_t rdmeta_deadline_unasked(int64_t deadline) {
        return rdmeta_deadline_is_asked(deadline) ? RDMETA_DEADLINE_ASKED + 1
                                                  : deadline;
}

/* What it was before it was made past; that it was asked for is not told. */
static inline int64_t rdmeta_deadline_told(int64_t deadline) {
        if (rdmeta_deadline_is_asked(deadline))
                return RDMETA_DEADLINE_ASKED;
        if (deadline < 0 && deadline > INT64_MIN / 2 &&
            rdmeta_deadline_plain(deadline + RDMETA_DEADLINE_PAST))
                return deadline + RDMETA_DEADLINE_PAST;
        return deadline;
}

#endif /* RDMETA_TOPIC_TOPIC_H */
