/*
 * checksum: XXH64 with seed 0, what files are checked by.
 *
 * A well-known function, so that others can check our files: `xxh64sum`, and a
 * library in every language. Four sums run beside each other, which makes it
 * as fast as memory is read, without an instruction that some CPU lacks. It
 * finds accidents. Nobody who means to forge a file is kept from it.
 */
#ifndef RDMETA_BASE_CHECKSUM_H
#define RDMETA_BASE_CHECKSUM_H

#include "base/hash.h"

/* Pieces are taken in whole steps of so many bytes; only the last may have
 * some left over. */
#define RDMETA_CHECKSUM_STEP 32

typedef struct rdmeta_checksum {
        uint64_t sums[4];
        uint64_t total;
} rdmeta_checksum_t;

void rdmeta_checksum_init(rdmeta_checksum_t *c);
/* `n` is a multiple of the step. */
void rdmeta_checksum_add(rdmeta_checksum_t *c, const void *p, size_t n);
/* The last `n` bytes, of whatever number, and the result. */
uint64_t rdmeta_checksum_end(rdmeta_checksum_t *c, const void *p, size_t n);

/* All in one go. */
uint64_t rdmeta_checksum(const void *p, size_t n);

#endif /* RDMETA_BASE_CHECKSUM_H */
