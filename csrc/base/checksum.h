/*
 * checksum: XXH64 with seed 0, the checksum of image files.
 *
 * It is a well-known function, so other programs can check the files: there is
 * `xxh64sum`, and a library in every language. Its four sums are independent,
 * so it runs at the speed of memory, without an instruction that some CPUs
 * lack. It finds accidents; it does not stop an attacker that forges a file.
 */
#pragma once

#include "base/hash.h"

/* rdmeta_checksum_add() takes multiples of this many bytes. */
#define RDMETA_CHECKSUM_STEP 32

typedef struct rdmeta_checksum {
        uint64_t sums[4];
        uint64_t total;
} rdmeta_checksum_t;

void rdmeta_checksum_init(rdmeta_checksum_t *c);
/* Adds `n` bytes; `n` is a multiple of the step. */
void rdmeta_checksum_add(rdmeta_checksum_t *c, const void *p, size_t n);
/* Adds the last `n` bytes, any number, and returns the checksum. */
uint64_t rdmeta_checksum_end(rdmeta_checksum_t *c, const void *p, size_t n);

/* Returns the checksum of `n` bytes. */
uint64_t rdmeta_checksum(const void *p, size_t n);
