/*
 * rdmeta: handles. Part of rdmeta.h, which includes it.
 *
 * A handle stands for a name in one cache. A program that often asks about the
 * same topics resolves each name once; a lookup then needs no hash, table
 * search or comparison of names. A handle stays valid whatever happens to the
 * topic: refreshed, deleted, created again with another id, purged, stale.
 * The cache need not know the name: lookups return NOT_CACHED until it does.
 */
#ifndef RDMETA_HANDLE_H
#define RDMETA_HANDLE_H

#include "rdmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdmeta_handle rdmeta_handle_t;

/**
 * Returns the handle of a name, with one more reference. A name has the same
 * handle each time. NULL: no memory, an impossible name (empty, above 32 767
 * bytes), or a child that can only look up (rdmeta_reader.h). Copies `topic`;
 * the handle has a reference on the cache. Threads: any; takes the writers'
 * lock.
 */
RDMETA_API rdmeta_handle_t *rdmeta_resolve(rdmeta_cache_t *cache,
                                           const char *topic, size_t len);
/** Adds a reference and returns `handle`. Threads: any, no lock. */
RDMETA_API rdmeta_handle_t *rdmeta_handle_ref(rdmeta_handle_t *handle);
/** Drops a reference. NULL is fine. Threads: any; dropping the last one takes
 *  the writers' lock. */
RDMETA_API void rdmeta_handle_release(rdmeta_handle_t *handle);

/** Returns the name, borrowed from the handle. Threads: any. */
RDMETA_API rdmeta_str_t rdmeta_handle_topic(const rdmeta_handle_t *handle);

/** Gets one name, borrowed during the call. Returns 0, or another value to end
 *  the walk. */
typedef int32_t (*rdmeta_name_visit_t)(void *opaque,
                                       const rdmeta_str_t *topic);
/**
 * Visits the names that handles of this cache hold, each once, in any order. A
 * visit that returns other than 0 ends the call, which returns that value. No
 * lock is held during visits. Errors: NO_MEMORY; FORKED, since a child shares
 * no handles with its parent. Threads: any; may wait for a writer.
 */
RDMETA_API rdmeta_err_t rdmeta_cache_resolved(rdmeta_cache_t *cache,
                                              rdmeta_name_visit_t visit,
                                              void *opaque);

/* The calls below belong to the reader's thread, as those of rdmeta_reader.h:
 * they take no lock, allocate nothing, and run beside any writer. The caller
 * has a reference on the handle; any number of threads may share it. A reader
 * of an image or of another cache looks the handle's name up instead. The
 * result is right, and costs a lookup by name. */

/** Returns rdmeta_leader() of the handle's topic. Threads: the reader's. */
RDMETA_API int32_t rdmeta_handle_leader(rdmeta_reader_t *reader,
                                        const rdmeta_handle_t *handle,
                                        int32_t partition, int64_t mono_us);

/** Finds the handle's topic as rdmeta_topic_find() does, between enter and
 *  leave. Threads: the reader's. */
RDMETA_API rdmeta_err_t rdmeta_handle_find(rdmeta_reader_t *reader,
                                           const rdmeta_handle_t *handle,
                                           int64_t mono_us,
                                           const rdmeta_topic_t **out);

/**
 * Returns the partition where Kafka's Java producer puts a record of this key:
 * murmur2 of its bytes, without the sign, modulo the number of partitions. That
 * is librdkafka's `partitioner=murmur2_random`. A NULL key (an empty key is not
 * NULL) gets any partition that has a leader, or any partition if none
 * has one. Otherwise returns what rdmeta_leader() would return for the topic
 * (<= -100), or NO_PARTITION if it has no partitions. Borrows `key`.
 * Threads: the reader's.
 */
RDMETA_API int32_t rdmeta_handle_partition_for(rdmeta_reader_t *reader,
                                               const rdmeta_handle_t *handle,
                                               const void *key, size_t len,
                                               int64_t mono_us);

/** Returns rdmeta_handle_partition_for() of the topic with this name. It works
 *  with any reader, also of images and files, which have no handles. MALFORMED:
 *  a damaged file. Threads: the reader's. */
RDMETA_API int32_t rdmeta_partition_for(rdmeta_reader_t *reader,
                                        const char *topic, size_t topic_len,
                                        const void *key, size_t len,
                                        int64_t mono_us);

/** Returns the hash that Java's Utils.murmur2() gives for these bytes, as an
 *  unsigned number. Above 2 GiB, for which Java has no array, the length counts
 *  modulo 2^32. Threads: any. */
RDMETA_API uint32_t rdmeta_murmur2(const void *key, size_t len);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_HANDLE_H */
