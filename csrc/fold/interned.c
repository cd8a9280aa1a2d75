#include "fold/interned.h"

enum { FIRST_ROOM = 64, LEAST_LIMIT = 1024 };

void rdmeta_fold_interned_init(rdmeta_fold_interned_t *w,
                               const rdmeta_allocator_t *allocator,
                               uint64_t *seed) {
        int i;

        memset(w, 0, sizeof(*w));
        w->allocator = allocator;
        w->limit     = LEAST_LIMIT;
        for (i = 0; i < RDMETA_HASH_KEYS; i++)
                w->key[i] = rdmeta_seed_next(seed);
}

static size_t word_bytes(size_t size) {
        return sizeof(rdmeta_fold_word_t) + ((size + 7) & ~(size_t)7);
}

static size_t slots_bytes(const rdmeta_fold_interned_t *w) {
        return ((size_t)w->mask + 1) * sizeof(*w->slots);
}

static void word_free(rdmeta_fold_interned_t *w, rdmeta_fold_word_t *word) {
        w->bytes -= word_bytes(word->size);
        rdmeta_free(w->allocator, word, word_bytes(word->size));
}

void rdmeta_fold_interned_destroy(rdmeta_fold_interned_t *w) {
        uint32_t i;

        for (i = 1; i < w->n; i++)
                if (w->words[i])
                        word_free(w, w->words[i]);
        rdmeta_free(w->allocator, w->words, w->room * sizeof(*w->words));
        rdmeta_free(w->allocator, w->free, w->room * sizeof(*w->free));
        if (w->slots)
                rdmeta_free(w->allocator, w->slots, slots_bytes(w));
}

static void slot_put(rdmeta_fold_interned_t *w, uint32_t number) {
        uint32_t i = w->words[number]->hash & w->mask;

        while (w->slots[i])
                i = (i + 1) & w->mask;
        w->slots[i] = number;
}

static void slots_fill(rdmeta_fold_interned_t *w) {
        uint32_t i;

        memset(w->slots, 0, slots_bytes(w));
        for (i = 1; i < w->n; i++)
                if (w->words[i])
                        slot_put(w, i);
}

/* Doubles the room for words, with two slots per word. Returns 0: no memory. */
static int grow(rdmeta_fold_interned_t *w) {
        const uint32_t room = w->room ? 2 * w->room : FIRST_ROOM;
        const size_t bytes  = room * (sizeof(*w->words) + sizeof(*w->free) +
                                     2 * sizeof(*w->slots));
        rdmeta_fold_interned_t old = *w;

        if (room > UINT32_C(1) << 30)
                return 0;
        w->words = rdmeta_alloc(w->allocator, room * sizeof(*w->words));
        w->free  = rdmeta_alloc(w->allocator, room * sizeof(*w->free));
        w->slots = rdmeta_alloc(w->allocator, 2 * room * sizeof(*w->slots));
        if (!w->words || !w->free || !w->slots) {
                rdmeta_free(w->allocator, w->words, room * sizeof(*w->words));
                rdmeta_free(w->allocator, w->free, room * sizeof(*w->free));
                rdmeta_free(w->allocator, w->slots,
                            2 * room * sizeof(*w->slots));
                *w = old;
                return 0;
        }
        if (old.n) {
                memcpy(w->words, old.words, old.n * sizeof(*w->words));
                memcpy(w->free, old.free, old.n_free * sizeof(*w->free));
        } else {
                w->words[0] = NULL;
                w->n        = 1;
        }
        rdmeta_free(w->allocator, old.words, old.room * sizeof(*w->words));
        rdmeta_free(w->allocator, old.free, old.room * sizeof(*w->free));
        if (old.slots)
                rdmeta_free(w->allocator, old.slots, slots_bytes(&old));
        w->bytes += bytes - bytes / 2 * (old.room != 0);
        w->room = room;
        w->mask = 2 * room - 1;
        slots_fill(w);
        return 1;
}

static uint32_t find(const rdmeta_fold_interned_t *w, uint32_t hash,
                     const void *data, size_t size) {
        uint32_t i;

        if (!w->slots)
                return 0;
        for (i = hash & w->mask; w->slots[i]; i = (i + 1) & w->mask)
                if (w->words[w->slots[i]]->hash == hash &&
                    rdmeta_fold_interned_is(w, w->slots[i], data, size))
                        return w->slots[i];
        return 0;
}

uint32_t rdmeta_fold_interned_put(rdmeta_fold_interned_t *w, const void *data,
                                  size_t size) {
        const uint32_t hash =
                (uint32_t)rdmeta_hash(w->key, size ? data : "", size);
        uint32_t number = find(w, hash, size ? data : "", size);
        rdmeta_fold_word_t *word;

        if (number)
                return number;
        if (w->n == w->room && !w->n_free && !grow(w))
                return 0;
        word = rdmeta_alloc(w->allocator, word_bytes(size));
        if (!word)
                return 0;
        memset(word, 0, sizeof(*word));
        word->hash = hash;
        word->size = (uint32_t)size;
        if (size)
                memcpy(word->data, data, size);
        w->bytes += word_bytes(size);
        number           = w->n_free ? w->free[--w->n_free] : w->n++;
        w->words[number] = word;
        slot_put(w, number);
        return number;
}

void rdmeta_fold_interned_sweep(rdmeta_fold_interned_t *w) {
        uint32_t i, kept;

        for (i = 1; i < w->n; i++) {
                if (!w->words[i])
                        continue;
                if (w->words[i]->marked) {
                        w->words[i]->marked = 0;
                        continue;
                }
                word_free(w, w->words[i]);
                w->words[i]          = NULL;
                w->free[w->n_free++] = i;
        }
        if (w->slots)
                slots_fill(w);
        kept     = w->n - w->n_free;
        w->limit = 2 * kept > LEAST_LIMIT ? 2 * kept : LEAST_LIMIT;
}
