/*
 * interned: texts and lists of ids, each kept once, by number.
 *
 * The same few lists of replicas and ISRs come again with each election. So a
 * partition holds the numbers of its lists. Two of them are the same list if
 * their numbers are equal.
 *
 *     slots  [ | 7 | | 2 | ... ]        by hash, linear probing
 *              |     |
 *     words  [NULL | w1 | w2 | ... | w7]       number 0: no text, no list
 *                           |
 *                           hash, size, racks | bytes ...
 *
 * They are not counted by their users. When there are twice as many as after
 * the last sweep, the fold marks those in use, and a sweep frees the others.
 * So their memory is bounded by the state, and the hot path has no counts.
 */
#pragma once

#include "base/alloc.h"
#include "base/hash.h"

typedef struct rdmeta_fold_word {
        uint32_t hash;
        uint32_t size;
        uint32_t turn;  /* when `racks` was counted; for lists of replicas */
        int32_t racks;
        uint32_t marked;
        int64_t data[]; /* aligned for ids */
} rdmeta_fold_word_t;

typedef struct rdmeta_fold_interned {
        const rdmeta_allocator_t *allocator;
        uint64_t key[RDMETA_HASH_KEYS];
        rdmeta_fold_word_t **words; /* by number */
        uint32_t *free;             /* numbers in no use */
        uint32_t *slots;
        uint32_t n, room; /* numbers given out, 0 among them; room of words */
        uint32_t n_free;
        uint32_t mask; /* of slots */
        uint32_t limit; /* of words in use, before a sweep is due */
        size_t bytes;
} rdmeta_fold_interned_t;

/* Makes an empty set; borrows the allocator. It holds no memory yet. */
void rdmeta_fold_interned_init(rdmeta_fold_interned_t *w,
                               const rdmeta_allocator_t *allocator,
                               uint64_t *seed);
void rdmeta_fold_interned_destroy(rdmeta_fold_interned_t *w);

/* Returns the number of these bytes, which it copies; 0: no memory. */
uint32_t rdmeta_fold_interned_put(rdmeta_fold_interned_t *w, const void *data,
                                  size_t size);

/* Returns whether a sweep is due. */
RDMETA_INLINE int rdmeta_fold_interned_many(const rdmeta_fold_interned_t *w) {
        return w->n - w->n_free > w->limit;
}

/* Marks a word as in use; 0 is fine. */
RDMETA_INLINE void rdmeta_fold_interned_mark(rdmeta_fold_interned_t *w,
                                             uint32_t number) {
        if (number)
                w->words[number]->marked = 1;
}

/* Frees the words that are not marked, and takes all marks off. */
void rdmeta_fold_interned_sweep(rdmeta_fold_interned_t *w);

RDMETA_INLINE int rdmeta_fold_interned_is(const rdmeta_fold_interned_t *w,
                                          uint32_t number, const void *data,
                                          size_t size) {
        const rdmeta_fold_word_t *word = w->words[number];

        return word->size == size && !memcmp(word->data, data, size);
}
