/*
 * crc32c: the CRC-32C (Castagnoli) of Kafka's record batches.
 *
 * CPUs with SSE4.2 have an instruction for eight bytes; it is looked for at run
 * time. Others take eight bytes at a time by tables.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the CRC-32C of `len` bytes. */
uint32_t rdmeta_crc32c(const void *data, size_t len);
/* Returns the same by tables, on every CPU. */
uint32_t rdmeta_crc32c_by_tables(const void *data, size_t len);
