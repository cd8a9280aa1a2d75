/*
 * reasons: why topics were asked for, by number.
 *
 *     reasons  table -+-> texts   [0] none | [1] | [2] | ...  by number
 *              count  |              |        |
 *                     |              |        +--> len, text
 *                     |              +-----------> len, text
 *                     +-> places  0 | 2 | 0 | 1 | ...         by hash
 *
 * Whoever asks says why in his own words, and those are few: what is kept with
 * a topic is the number of a text, beside the broker that said it last (see
 * rdmeta_provenance_t). Number 0 is no reason. A text gets its number once, and then
 * neither moves nor goes for as long as the cache lives, so that readers may
 * borrow it without a lock, and an image tells it long after the cache was
 * told others. That is why there is an end to them: RDMETA_REASONS_MAX texts
 * of RDMETA_REASON_MAX bytes. What is longer is cut; who comes when all numbers
 * are taken gets 0. Nothing is allocated before the first.
 *
 * Memory order. A text is there (release) before any word has its number
 * (release). A reader loads the word (acquire), then the text (acquire).
 *
 * A write that fails takes back the numbers that it gave: nobody has seen them,
 * since it stored none.
 *
 * Threads: the writer's lock is held for all but rdmeta_reasons_text().
 */
#ifndef RDMETA_STORE_REASONS_H
#define RDMETA_STORE_REASONS_H

#include "base/hash.h"
#include "rdmeta.h"

#include <stdatomic.h>

#define RDMETA_REASONS_MAX 1024
#define RDMETA_REASON_MAX 255

typedef struct rdmeta_reason {
        uint32_t len;
        char text[];
} rdmeta_reason_t;

typedef struct rdmeta_reasons_table {
        _Atomic(rdmeta_reason_t *) texts[RDMETA_REASONS_MAX + 1];
        /* Numbers, half of them at most; 0: free. */
        uint16_t places[2 * RDMETA_REASONS_MAX];
} rdmeta_reasons_table_t;

typedef struct rdmeta_reasons {
        const rdmeta_allocator_t *allocator;
        _Atomic(rdmeta_reasons_table_t *) table; /* NULL: there are none */
        uint64_t key[RDMETA_HASH_KEYS];
        uint32_t count;
        size_t bytes;
} rdmeta_reasons_t;

void rdmeta_reasons_init(rdmeta_reasons_t *r,
                         const rdmeta_allocator_t *allocator, uint64_t *seed);
void rdmeta_reasons_destroy(rdmeta_reasons_t *r);

/* What is kept of a reason: all of it, or as many whole characters as fit. */
rdmeta_str_t rdmeta_reason_cut(rdmeta_str_t reason);
/* Its number; 0: none was said, or there is no room for another. Copies.
 * NO_MEMORY. */
rdmeta_err_t rdmeta_reasons_number(rdmeta_reasons_t *r, rdmeta_str_t reason,
                                   uint16_t *out);
/* Only the first `count` stay: those after them are in no word. */
void rdmeta_reasons_forget(rdmeta_reasons_t *r, uint32_t count);
/* The text of a number that a word had; {NULL, 0}: it is none. Lives as long as
 * `r`. Any thread. */
rdmeta_str_t rdmeta_reasons_text(const rdmeta_reasons_t *r, uint32_t number);
/* 1: every invariant holds. */
int rdmeta_reasons_check(const rdmeta_reasons_t *r);

#endif /* RDMETA_STORE_REASONS_H */
