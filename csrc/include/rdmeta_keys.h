/*
 * rdmeta: the partitions of many keys. Part of rdmeta.h, which includes it.
 *
 * A producer puts a record where a hash of its key says. Programs that route
 * rows before they write them need this for whole columns. These calls know no
 * cache: the caller passes the number of partitions.
 */
#ifndef RDMETA_KEYS_H
#define RDMETA_KEYS_H

#include "rdmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The rule that chooses the partition of a key. */
enum {
        /** Java's producer, and librdkafka's murmur2_random: murmur2 without
         *  its sign, modulo the number of partitions */
        RDMETA_PARTITIONER_MURMUR2 = 0,
        /** librdkafka's default, consistent_random: CRC-32 modulo the number of
         *  partitions. An empty key counts as no key there. */
        RDMETA_PARTITIONER_CRC32 = 1
};

/** The value for a record without a key: its producer may choose any. */
#define RDMETA_ANY_PARTITION (-1)

/** A column of keys, as Arrow lays out binary and string arrays. Key i has the
 *  bytes offsets[first + i] to offsets[first + i + 1] of `data`. It is null if
 *  bit first + i of `validity` is 0. */
typedef struct rdmeta_keys {
        const void *offsets;     /**< int32_t or int64_t, native byte order */
        const uint8_t *data;     /**< may be NULL if all keys are empty */
        const uint8_t *validity; /**< NULL: no key is null */
        int64_t first;           /**< where the column begins in its buffers */
        int32_t offset_width;    /**< bytes of an offset: 4 or 8 */
        int32_t reserved;
} rdmeta_keys_t;

/** Returns the CRC-32 that zlib's crc32() gives for these bytes. Threads:
 *  any. */
RDMETA_API uint32_t rdmeta_crc32(const void *data, size_t len);

/**
 * Returns the partition of a key among `partitions`, or RDMETA_ANY_PARTITION
 * for a NULL key, and with CRC32 for an empty one. If `partitions` is below 0,
 * it is returned itself, so a code of a lookup may stand for it; for 0 the
 * result is NO_PARTITION. Errors: ARGUMENT: no such partitioner. Borrows `key`.
 * Threads: any.
 */
RDMETA_API int32_t rdmeta_key_partition(int32_t partitioner, const void *key,
                                        size_t len, int32_t partitions);

/**
 * Writes rdmeta_key_partition() of each of `n` keys to `out`, which has `n`.
 * Key i is one of partitions[i * step]: with `step` 0 all keys belong to one
 * number of partitions, with 1 each has its own. Borrows all. It reads what the
 * offsets say, without a check of them. Errors: ARGUMENT: no such partitioner,
 * or an offset width other than 4 and 8. Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_key_partitions(int32_t partitioner,
                                              const rdmeta_keys_t *keys,
                                              size_t n,
                                              const int32_t *partitions,
                                              size_t step, int32_t *out);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_KEYS_H */
