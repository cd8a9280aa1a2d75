/* floor: see floor.h. */
#include "floor.h"

#include <emmintrin.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64 };

typedef struct entry {
        uint8_t len;
        uint8_t wide; /* leaders take 4 bytes */
        uint16_t partitions;
        char name[]; /* followed by the leaders */
} entry_t;

struct floor_table {
        uint64_t *slots; /* tag << 32 | line; 0: free, as line 0 is unused */
        uint64_t mask;
        uint8_t *entries;
        size_t entries_size;
};

static inline uint64_t load64(const char *p) {
        uint64_t v;

        memcpy(&v, p, 8);
        return v;
}

static inline uint64_t fold(uint64_t a, uint64_t b) {
        __uint128_t m = (__uint128_t)a * b;

        return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t hash_any(const char *s, size_t n) {
        uint64_t h = 0xa0761d6478bd642fu ^ n;

        for (; n >= 8; n -= 8, s += 8)
                h = fold(load64(s) ^ 0xe7037ed1a0b428dbu, h);
        while (n--)
                h = fold(h ^ (uint8_t)*s++, 0x8ebc6af09c88c6e3u);
        return h;
}

static inline uint64_t hash(const char *s, size_t n) {
        uint64_t h;

        if (__builtin_expect(n - 16 > 16, 0))
                return hash_any(s, n);
        h = fold(load64(s) ^ 0xa0761d6478bd642fu,
                 load64(s + 8) ^ 0xe7037ed1a0b428dbu);
        return fold(load64(s + n - 16) ^ 0x8ebc6af09c88c6e3u,
                    load64(s + n - 8) ^ h);
}

static inline int same(const char *a, const char *b, size_t n) {
        __m128i x, y;

        if (__builtin_expect(n - 16 > 16, 0))
                return !memcmp(a, b, n);
        x = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)a),
                           _mm_loadu_si128((const __m128i *)b));
        y = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(a + n - 16)),
                           _mm_loadu_si128((const __m128i *)(b + n - 16)));
        return _mm_movemask_epi8(_mm_and_si128(x, y)) == 0xffff;
}

int32_t floor_leader(const floor_table_t *t, const char *topic, size_t len,
                     int32_t partition) {
        uint64_t h = hash(topic, len), i = h & t->mask, slot;
        const entry_t *e;
        int32_t leader;

        for (; (slot = t->slots[i]) != 0; i = (i + 1) & t->mask) {
                if ((slot ^ h) >> 32)
                        continue;
                e = (const entry_t *)(t->entries + (slot & UINT32_MAX) * LINE);
                if (e->len != len || !same(e->name, topic, len))
                        continue;
                if ((uint32_t)partition >= e->partitions)
                        return -1;
                if (!e->wide)
                        return (uint8_t)e->name[len + (size_t)partition];
                memcpy(&leader, e->name + len + 4 * (size_t)partition, 4);
                return leader;
        }
        return -1;
}

int32_t floor_call(int32_t leader) {
        return leader;
}

static void *huge_pages(size_t size) {
        void *p = gen_pages_untouched(size);

        madvise(p, size, MADV_HUGEPAGE);
        memset(p, 0, size);
        return p;
}

static size_t entry_size(const gen_t *g, size_t len, int wide) {
        size_t n = sizeof(entry_t) + len + g->conf.per_topic * (wide ? 4 : 1);

        return (n + LINE - 1) / LINE * LINE;
}

static void add(floor_table_t *t, const gen_t *g, uint32_t topic,
                const entry_t *e) {
        size_t len;
        const char *name = gen_name(g, topic, &len);
        uint64_t h = hash(name, len), i = h & t->mask;

        while (t->slots[i])
                i = (i + 1) & t->mask;
        t->slots[i] = h >> 32 << 32 |
                      (uint64_t)((const uint8_t *)e - t->entries) / LINE;
}

static void fill(entry_t *e, const gen_t *g, uint32_t topic, int wide) {
        size_t len;
        const char *name = gen_name(g, topic, &len);
        char *leaders    = e->name + len;
        uint32_t i;

        e->len        = (uint8_t)len;
        e->wide       = (uint8_t)wide;
        e->partitions = (uint16_t)g->conf.per_topic;
        memcpy(e->name, name, len);
        for (i = 0; i < g->conf.per_topic; i++) {
                int32_t leader = gen_leader(g, topic, i);

                if (wide)
                        memcpy(leaders + 4 * (size_t)i, &leader, 4);
                else
                        leaders[i] = (char)leader;
        }
}

floor_table_t *floor_new(const gen_t *g) {
        floor_table_t *t = gen_pages(sizeof(*t));
        const int wide   = g->conf.ids != GEN_IDS_8;
        size_t slots = 16, len, size = LINE, at = LINE;
        uint32_t i;

        while (slots < 2 * (size_t)g->conf.topics)
                slots *= 2;
        for (i = 0; i < g->conf.topics; i++) {
                gen_name(g, i, &len);
                size += entry_size(g, len, wide);
        }
        t->mask         = slots - 1;
        t->slots        = huge_pages(slots * sizeof(*t->slots));
        t->entries_size = size;
        t->entries      = huge_pages(size);
        for (i = 0; i < g->conf.topics; i++) {
                entry_t *e = (entry_t *)(t->entries + at);

                fill(e, g, i, wide);
                add(t, g, i, e);
                gen_name(g, i, &len);
                at += entry_size(g, len, wide);
        }
        return t;
}

void floor_destroy(floor_table_t *t) {
        gen_pages_free(t->slots, (t->mask + 1) * sizeof(*t->slots));
        gen_pages_free(t->entries, t->entries_size);
        gen_pages_free(t, sizeof(*t));
}
