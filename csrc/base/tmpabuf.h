/*
 * tmpabuf: one contiguous object, by a sizing pass, one allocation and a
 * filling pass. The size is exact. The idea is librdkafka's rd_tmpabuf_t.
 *
 *     sizing    add(8) add_str("ab") add(4)        sums only
 *     start     one allocation of exactly that size
 *     filling   alloc(8)  write_str    alloc(4)
 *               +--------+------------+------------+
 *               | 8      | a b NUL  0 | 4        0 |   0: padding, zeroed
 *               +--------+------------+------------+
 *               base                  used         size
 *     finish    returns the object if used == size, else NULL
 *
 * Every piece starts at a multiple of 8, so any of them may be a struct. The
 * padding is zeroed: objects with equal contents are equal bytes, and no bytes
 * of the heap get into a file. Errors stick in both passes: sums that overflow,
 * no memory, filling past the end. So a caller checks the results of start and
 * finish, and each pointer in between before it writes through it.
 *
 *     rdmeta_tmpabuf_t b;
 *     rdmeta_tmpabuf_init(&b);
 *     rdmeta_tmpabuf_add_array(&b, n, sizeof(*row));
 *     rdmeta_tmpabuf_add_str(&b, name);
 *     if (!rdmeta_tmpabuf_start(&b, allocator))
 *             return RDMETA_ERR_NO_MEMORY;
 *     row  = rdmeta_tmpabuf_alloc_array(&b, n, sizeof(*row));
 *     copy = rdmeta_tmpabuf_write_str(&b, name);
 *     return rdmeta_tmpabuf_finish(&b);
 */
#pragma once

#include "base/alloc.h"
#include "rdmeta.h"

#define RDMETA_TMPABUF_ALIGN 8

typedef struct rdmeta_tmpabuf {
        size_t size; /* the sum of the sizing pass, the size of the object */
        size_t used;
        char *base; /* NULL: in the sizing pass */
        const rdmeta_allocator_t *allocator;
        int failed;
} rdmeta_tmpabuf_t;

void rdmeta_tmpabuf_init(rdmeta_tmpabuf_t *b);

/* Add to the size. A null string needs 0 bytes, any other its length and a
 * NUL. */
void rdmeta_tmpabuf_add(rdmeta_tmpabuf_t *b, size_t size);
void rdmeta_tmpabuf_add_array(rdmeta_tmpabuf_t *b, size_t n, size_t size);
void rdmeta_tmpabuf_add_str(rdmeta_tmpabuf_t *b, rdmeta_str_t s);

/* Allocates the object and returns it. Returns NULL if there is no memory or
 * the sums overflowed; there is nothing to free then. Borrows the allocator
 * (NULL: the C library's) until finish. */
void *rdmeta_tmpabuf_start(rdmeta_tmpabuf_t *b,
                           const rdmeta_allocator_t *allocator);

/* Return the next piece; NULL: past the end, or after an error. Only its
 * padding is zeroed. A piece of size 0 is a pointer that must not be
 * followed. */
void *rdmeta_tmpabuf_alloc(rdmeta_tmpabuf_t *b, size_t size);
void *rdmeta_tmpabuf_alloc_array(rdmeta_tmpabuf_t *b, size_t n, size_t size);
/* Returns a copy of `s` that ends with NUL. A null string stays null. */
rdmeta_str_t rdmeta_tmpabuf_write_str(rdmeta_tmpabuf_t *b, rdmeta_str_t s);

/* Returns the object of b->size bytes; the caller owns it. If the two passes
 * differ, which is a bug of the caller's, frees it and returns NULL. */
void *rdmeta_tmpabuf_finish(rdmeta_tmpabuf_t *b);
