/*
 * tmpabuf: one contiguous object, by a sizing pass, one allocation and a
 * filling pass. Never a guess. The idea is librdkafka's rd_tmpabuf_t.
 *
 *     sizing    add(8) add_str("ab") add(4)        sums only
 *     start     one allocation of exactly that
 *     filling   alloc(8)  write_str    alloc(4)
 *               +--------+------------+------------+
 *               | 8      | a b NUL  0 | 4        0 |   0: padding, zeroed
 *               +--------+------------+------------+
 *               base                  used         size
 *     finish    used == size, or it is not an object
 *
 * Every piece starts at a multiple of 8, so any of them may be a struct. The
 * padding is zeroed: objects with equal contents are equal bytes, and nothing
 * of the heap gets into a file. Errors stick, in both passes: sums that
 * overflow, no memory, filling past the end. So only start and finish need be
 * looked at, and the pointers in between before they are written through.
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
#ifndef RDMETA_BASE_TMPABUF_H
#define RDMETA_BASE_TMPABUF_H

#include "base/alloc.h"
#include "rdmeta.h"

#define RDMETA_TMPABUF_ALIGN 8

typedef struct rdmeta_tmpabuf {
        size_t size; /* the sum of the sizing pass; what to free later */
        size_t used;
        char *base; /* NULL: still sizing */
        const rdmeta_allocator_t *allocator;
        int failed;
} rdmeta_tmpabuf_t;

void rdmeta_tmpabuf_init(rdmeta_tmpabuf_t *b);

/* Sizing. A null string needs nothing, any other its length and a NUL. */
void rdmeta_tmpabuf_add(rdmeta_tmpabuf_t *b, size_t size);
void rdmeta_tmpabuf_add_array(rdmeta_tmpabuf_t *b, size_t n, size_t size);
void rdmeta_tmpabuf_add_str(rdmeta_tmpabuf_t *b, rdmeta_str_t s);

/* Allocate. NULL: no memory, or the sums overflowed; nothing to clean up.
 * Borrows the allocator (NULL: the C library) until finish. */
void *rdmeta_tmpabuf_start(rdmeta_tmpabuf_t *b,
                           const rdmeta_allocator_t *allocator);

/* Filling. NULL: past the end, or after an error. Not zeroed but for the
 * padding. A piece of size 0 is a pointer that must not be followed. */
void *rdmeta_tmpabuf_alloc(rdmeta_tmpabuf_t *b, size_t size);
void *rdmeta_tmpabuf_alloc_array(rdmeta_tmpabuf_t *b, size_t n, size_t size);
/* Copies and ends with NUL; the copy. A null string stays one. */
rdmeta_str_t rdmeta_tmpabuf_write_str(rdmeta_tmpabuf_t *b, rdmeta_str_t s);

/* The object, the caller's from now on, of b->size bytes; or NULL if the two
 * passes differ (a bug of the caller's; it is freed). */
void *rdmeta_tmpabuf_finish(rdmeta_tmpabuf_t *b);

#endif /* RDMETA_BASE_TMPABUF_H */
