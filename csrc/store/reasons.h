/*
 * reasons: why topics were asked for, by number.
 *
 *     reasons  table -+-> texts   [0] none | [1] | [2] | ...  by number
 *              count  |              |        |
 *                     |              |        +--> len, text
 *                     |              +-----------> len, text
 *                     +-> places  0 | 2 | 0 | 1 | ...         by hash
 *
 * A caller that asks for topics may give a reason in its own words, and there
 * are few different reasons. So a topic's provenance (rdmeta_provenance_t) has
 * the number of a text, beside the broker that answered last. Number 0 is no
 * reason.
 *
 * A text gets its number once. Then it neither moves nor goes until the cache
 * does. So readers may borrow it without a lock, and an image returns it long
 * after the cache has had other reasons. That is why there is a limit:
 * RDMETA_REASONS_MAX texts of RDMETA_REASON_MAX bytes. A longer text is cut. A
 * new text gets number 0 when all numbers are taken. Nothing is allocated
 * before the first text.
 *
 * Memory order. The writer stores a text (release) before it stores any word
 * with its number (release). A reader loads the word (acquire), then the text
 * (acquire).
 *
 * A write that fails takes back the numbers that it gave. No reader has seen
 * them, because the write stored none.
 *
 * Threads: all calls need the writer's lock, except rdmeta_reasons_text().
 */
#pragma once

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
        /* Numbers, at places by hash. At most half are used; 0: free. */
        uint16_t places[2 * RDMETA_REASONS_MAX];
} rdmeta_reasons_table_t;

typedef struct rdmeta_reasons {
        const rdmeta_allocator_t *allocator;
        _Atomic(rdmeta_reasons_table_t *) table; /* NULL: no text yet */
        uint64_t key[RDMETA_HASH_KEYS];
        uint32_t count; /* the number of texts */
        size_t bytes;   /* of the table and the texts */
} rdmeta_reasons_t;

/* Initialises without a text. Draws a key from `seed`; borrows the allocator.
 */
void rdmeta_reasons_init(rdmeta_reasons_t *r,
                         const rdmeta_allocator_t *allocator, uint64_t *seed);
/* Frees the texts and the table. */
void rdmeta_reasons_destroy(rdmeta_reasons_t *r);

/* Returns the part of a reason that is kept: all of it, or as many whole
 * characters as fit. Borrows the reason's memory. */
rdmeta_str_t rdmeta_reason_cut(rdmeta_str_t reason);
/* Sets *out to the reason's number. 0: there is no reason, or no number is
 * free. Copies a new text. Returns RDMETA_ERR_NO_MEMORY without memory. */
rdmeta_err_t rdmeta_reasons_number(rdmeta_reasons_t *r, rdmeta_str_t reason,
                                   uint16_t *out);
/* Frees all but the first `count` texts. No word has the numbers of the others.
 */
void rdmeta_reasons_forget(rdmeta_reasons_t *r, uint32_t count);
/* Returns the text of a number from a word. {NULL, 0}: there is none. The text
 * lives as long as `r`. Any thread. */
rdmeta_str_t rdmeta_reasons_text(const rdmeta_reasons_t *r, uint32_t number);
/* Returns 1 if every invariant is true. */
int rdmeta_reasons_check(const rdmeta_reasons_t *r);
