/* keys: the partition of a key, and of each key of a column. */
#include "rdmeta.h"

/* Returns the partition of a key that is there. `partitioner` is a known one,
 * and `partitions` is above 0. */
static int32_t chosen(int32_t partitioner, const void *key, size_t len,
                      int32_t partitions) {
        const uint32_t count = (uint32_t)partitions;

        /* Java's toPositive() clears the sign bit. */
        if (partitioner == RDMETA_PARTITIONER_MURMUR2)
                return (int32_t)((rdmeta_murmur2(key, len) & INT32_MAX) %
                                 count);
        if (!len)
                return RDMETA_ANY_PARTITION;
        return (int32_t)(rdmeta_crc32(key, len) % count);
}

static int is_known(int32_t partitioner) {
        return partitioner == RDMETA_PARTITIONER_MURMUR2 ||
               partitioner == RDMETA_PARTITIONER_CRC32;
}

int32_t rdmeta_key_partition(int32_t partitioner, const void *key, size_t len,
                             int32_t partitions) {
        if (!is_known(partitioner))
                return RDMETA_ERR_ARGUMENT;
        if (partitions <= 0)
                return partitions ? partitions : RDMETA_NO_PARTITION;
        if (!key)
                return RDMETA_ANY_PARTITION;
        return chosen(partitioner, key, len, partitions);
}

/* Returns where key i, counted from the begin of the buffers, begins. */
static int64_t offset_at(const rdmeta_keys_t *keys, int64_t i) {
        if (keys->offset_width == 4)
                return ((const int32_t *)keys->offsets)[i];
        return ((const int64_t *)keys->offsets)[i];
}

rdmeta_err_t rdmeta_key_partitions(int32_t partitioner,
                                   const rdmeta_keys_t *keys, size_t n,
                                   const int32_t *partitions, size_t step,
                                   int32_t *out) {
        /* C allows no addition to NULL, so empty keys need a place. */
        const uint8_t *data = keys->data ? keys->data : (const uint8_t *)"";
        int64_t at          = keys->first, begin, end;
        size_t i;

        if (!is_known(partitioner) ||
            (keys->offset_width != 4 && keys->offset_width != 8))
                return RDMETA_ERR_ARGUMENT;
        if (!n) /* an empty column may have no offsets */
                return RDMETA_OK;
        end = offset_at(keys, at);
        for (i = 0; i < n; i++, at++) {
                const uint8_t *key = data + end;

                begin = end;
                end   = offset_at(keys, at + 1);
                if (keys->validity &&
                    !(keys->validity[at >> 3] >> (at & 7) & 1))
                        key = NULL;
                out[i] = rdmeta_key_partition(partitioner, key,
                                              (size_t)(end - begin),
                                              partitions[i * step]);
        }
        return RDMETA_OK;
}
