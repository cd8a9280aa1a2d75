/*
 * rdmeta: handles. Part of rdmeta.h, which includes it.
 *
 * A handle stands for a name in one cache. Who asks about the same topics
 * again and again resolves each once, and a lookup is spared hash, table and
 * name. It stays true whatever happens to the topic - refreshed, deleted,
 * created again with another id, purged, expired - and a name need not be
 * known when it is resolved: what is not known is NOT_CACHED, until it is.
 */
#ifndef RDMETA_HANDLE_H
#define RDMETA_HANDLE_H

#include "rdmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdmeta_handle rdmeta_handle_t;

/**
 * The handle of a name, with one more reference: the same one whenever it is
 * resolved, but perhaps another in a fork's child. Copies `topic`; the handle
 * holds a reference on the cache. NULL: no memory, or a name that cannot be
 * (empty, above 32 767 bytes). Threads: any; takes the writers' lock.
 */
RDMETA_API rdmeta_handle_t *rdmeta_resolve(rdmeta_cache_t *cache,
                                           const char *topic, size_t len);
/** One more reference; returns `handle`. Threads: any, no lock. */
RDMETA_API rdmeta_handle_t *rdmeta_handle_ref(rdmeta_handle_t *handle);
/** One reference less. NULL is fine. Threads: any; the last one takes the
 *  writers' lock. */
RDMETA_API void rdmeta_handle_release(rdmeta_handle_t *handle);

/** The name that was resolved; borrowed from the handle. Threads: any. */
RDMETA_API rdmeta_str_t rdmeta_handle_topic(const rdmeta_handle_t *handle);

/* The calls from here on are the reader's, and as those of rdmeta_reader.h:
 * no lock, no allocation, beside any writer. The caller holds a reference on
 * the handle, which any number of threads may share. A reader of anything else
 * than the handle's cache - an image, another cache - is asked by the handle's
 * name: right all the same, at the price of a lookup by name. */

/** rdmeta_leader() of the handle's topic. Threads: the reader's. */
RDMETA_API int32_t rdmeta_handle_leader(rdmeta_reader_t *reader,
                                        const rdmeta_handle_t *handle,
                                        int32_t partition, int64_t mono_us);

/** rdmeta_topic_find() of the handle's topic: between enter and leave.
 *  Threads: the reader's. */
RDMETA_API rdmeta_err_t rdmeta_handle_find(rdmeta_reader_t *reader,
                                           const rdmeta_handle_t *handle,
                                           int64_t mono_us,
                                           const rdmeta_topic_t **out);

/**
 * The partition that Kafka's Java producer puts a record of this key into:
 * murmur2 of its bytes, without the sign, modulo the number of partitions.
 * librdkafka calls that `partitioner=murmur2_random`, so a key that is NULL
 * (an empty one is not) gets any of the partitions that have a leader, or any
 * at all where none has. Borrows `key`. What rdmeta_leader() would say of the
 * topic otherwise (<= -100); NO_PARTITION if it has none.
 * Threads: the reader's.
 */
RDMETA_API int32_t rdmeta_handle_partition_for(rdmeta_reader_t *reader,
                                               const rdmeta_handle_t *handle,
                                               const void *key, size_t len,
                                               int64_t mono_us);

/** rdmeta_handle_partition_for() by the topic's name, for readers of anything:
 *  of images and files, which have no handles, too. MALFORMED for a damaged
 *  file. Threads: the reader's. */
RDMETA_API int32_t rdmeta_partition_for(rdmeta_reader_t *reader,
                                        const char *topic, size_t topic_len,
                                        const void *key, size_t len,
                                        int64_t mono_us);

/** The hash that Java's Utils.murmur2() gives for these bytes, unsigned. Above
 *  2 GiB, which Java has no array for, the length counts modulo 2^32.
 *  Threads: any. */
RDMETA_API uint32_t rdmeta_murmur2(const void *key, size_t len);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_HANDLE_H */
