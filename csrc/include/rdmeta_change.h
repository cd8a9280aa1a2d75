/*
 * rdmeta: changes and waiting. Part of rdmeta.h, which includes it.
 *
 * Threads: any, for every call here.
 */
#ifndef RDMETA_CHANGE_H
#define RDMETA_CHANGE_H

#include "rdmeta.h"
#include "rdmeta_kinds.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Wait until the version is above `since`: at once if it already is, so that
 * no change can be missed. With topics: until one of them has changed after
 * `since`, removals included; n = 0: anything. timeout_us < 0: no limit; 0:
 * only look. Returns the version; or 0: on time-out, when interrupted, and at
 * once in a fork's child, where nothing changes. Borrows the names. Every
 * waiter must be back before the last reference goes. Threads: any.
 */
RDMETA_API uint64_t rdmeta_cache_wait(rdmeta_cache_t *cache, uint64_t since,
                                      const rdmeta_str_t *topics, size_t n,
                                      int64_t timeout_us);

/** Make every waiter look again: those of rdmeta_cache_wait() return 0.
 *  Threads: any. */
RDMETA_API void rdmeta_cache_interrupt(rdmeta_cache_t *cache);

typedef struct rdmeta_watch rdmeta_watch_t;
/**
 * Call fn(opaque, version) after every write that changed one of `topics`
 * (n = 0: anything), whichever door it came through. Called by the writing
 * thread after it has unlocked; it may read and write the cache, but not
 * destroy this watch. Copies the names. For rdmeta_watch_destroy(), before the
 * cache goes. NULL: no memory, or forked. Threads: any.
 */
RDMETA_API rdmeta_watch_t *rdmeta_watch_new(rdmeta_cache_t *cache,
                                            const rdmeta_str_t *topics,
                                            size_t n,
                                            void (*fn)(void *opaque,
                                                       uint64_t version),
                                            void *opaque);
/**
 * rdmeta_watch_new() for every answer that is applied, whether or not it
 * changed anything: one that only says again what is known moves deadlines.
 * Not for writes that are no answers. For rdmeta_watch_destroy(), before the
 * cache goes. NULL: no memory, or forked. Threads: any.
 */
RDMETA_API rdmeta_watch_t *rdmeta_watch_answers(rdmeta_cache_t *cache,
                                                void (*fn)(void *opaque,
                                                           uint64_t version),
                                                void *opaque);
/** Returns when no call of it is running. NULL is fine.
 *  Threads: any, but not from within a call of it. */
RDMETA_API void rdmeta_watch_destroy(rdmeta_watch_t *watch);

/** One record. Everything is borrowed during the visit; a value that does not
 *  apply is RDMETA_NONE, or has a NULL pointer. */
typedef struct rdmeta_change {
        uint64_t version;
        int64_t wall_us;       /**< when it was applied */
        int32_t kind;          /**< RDMETA_TOPIC_ADDED ... */
        int32_t source;        /**< RDMETA_SOURCE_... */
        int32_t source_broker; /**< or RDMETA_NONE */
        int32_t partition;
        int32_t broker;
        int32_t old_leader, new_leader;
        int32_t old_leader_epoch, new_leader_epoch;
        rdmeta_str_t cluster_id;
        rdmeta_str_t topic;
        const uint8_t *topic_id; /**< 16 bytes, or NULL */
        rdmeta_ids_t old_isr, new_isr;
        rdmeta_ids_t old_replicas, new_replicas;
        rdmeta_str_t detail; /**< e.g. an error's name, an endpoint */
        int64_t offset;      /**< in the metadata log; -1: not from it */
        int64_t reserved[2];
} rdmeta_change_t;

typedef int32_t (*rdmeta_change_visit_t)(void *opaque,
                                         const rdmeta_change_t *change);
/**
 * Visit what changed after version `since`, oldest first. *until: the version
 * up to which that is all, to be given as `since` next time. *resync 1: older
 * records are no longer held, nothing is visited, and the caller must read
 * the state anew as of *until; so are all in a child of a fork in the middle
 * of a write. No lock is held during visits. A visit that returns other than 0
 * ends it and is returned. NO_MEMORY. Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_cache_changes(rdmeta_cache_t *cache,
                                             uint64_t since,
                                             rdmeta_change_visit_t visit,
                                             void *opaque, uint64_t *until,
                                             int32_t *resync);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_CHANGE_H */
