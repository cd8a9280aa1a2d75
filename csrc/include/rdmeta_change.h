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
 * Waits until the version is above `since`. It returns at once if it is
 * already, so no change can be missed. With topics it waits until one of them
 * changed or was removed after `since`; n = 0 means any change. timeout_us < 0:
 * no limit; 0: only look. Returns the version, or 0 on time-out, after an
 * interrupt, and at once in a fork's child, where nothing changes. Borrows the
 * names. Every waiter must return before the last reference is dropped.
 * Threads: any.
 */
RDMETA_API uint64_t rdmeta_cache_wait(rdmeta_cache_t *cache, uint64_t since,
                                      const rdmeta_str_t *topics, size_t n,
                                      int64_t timeout_us);

/** Makes every waiter look again: rdmeta_cache_wait() returns 0.
 *  Threads: any. */
RDMETA_API void rdmeta_cache_interrupt(rdmeta_cache_t *cache);

typedef struct rdmeta_watch rdmeta_watch_t;
/**
 * Returns a watch that calls fn(opaque, version) after every write that changed
 * one of `topics` (n = 0: anything), in C or Python. For
 * rdmeta_watch_destroy(), before the cache is freed. NULL: no memory, or in a
 * fork's child. Copies the names. The writing thread calls fn after it has
 * unlocked. fn may read and write the cache, but must not destroy this watch.
 * Threads: any.
 */
RDMETA_API rdmeta_watch_t *rdmeta_watch_new(rdmeta_cache_t *cache,
                                            const rdmeta_str_t *topics,
                                            size_t n,
                                            void (*fn)(void *opaque,
                                                       uint64_t version),
                                            void *opaque);
/**
 * Returns a watch like that of rdmeta_watch_new(), but for every answer that is
 * applied. An answer that changes nothing calls fn, too, as it moves deadlines.
 * Other writes do not call it. For rdmeta_watch_destroy(), before the cache is
 * freed. NULL: no memory, or in a fork's child. Threads: any.
 */
RDMETA_API rdmeta_watch_t *rdmeta_watch_answers(rdmeta_cache_t *cache,
                                                void (*fn)(void *opaque,
                                                           uint64_t version),
                                                void *opaque);
/** Frees a watch. Returns when no call of its fn is running. NULL is fine.
 *  Threads: any, but not from within its fn. */
RDMETA_API void rdmeta_watch_destroy(rdmeta_watch_t *watch);

/** One change record. Everything in it is borrowed during the visit. A value
 *  that does not apply is RDMETA_NONE, or has a NULL pointer. */
typedef struct rdmeta_change {
        uint64_t version;
        int64_t wall_us;       /**< when the change was applied */
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
        rdmeta_str_t detail; /**< such as an error's name, an endpoint */
        int64_t offset;      /**< in the metadata log; -1: not from it */
        rdmeta_ids_t old_offline, new_offline;
        /* These are in the metadata log alone. */
        int64_t broker_epoch;    /**< -1: does not apply */
        int64_t unseen_us;       /**< how long nothing was seen before; -1 */
        int32_t partition_epoch; /**< or RDMETA_NONE */
        int32_t reserved_small;
        rdmeta_ids_t new_adding, new_removing, new_elr;
        int64_t reserved[2]; /**< the record may grow after it, too */
} rdmeta_change_t;

typedef int32_t (*rdmeta_change_visit_t)(void *opaque,
                                         const rdmeta_change_t *change);
/**
 * Visits what changed after version `since`, oldest first. *until is the
 * version that the records reach: pass it as `since` next time. *resync is 1
 * if older records are no longer kept. Then nothing is visited, and the caller
 * must read the state anew as of *until. No lock is held during visits. A visit
 * that returns other than 0 ends the call, which returns that value. Errors:
 * NO_MEMORY, FORKED. Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_cache_changes(rdmeta_cache_t *cache,
                                             uint64_t since,
                                             rdmeta_change_visit_t visit,
                                             void *opaque, uint64_t *until,
                                             int32_t *resync);
/**
 * The same, and after each TOPIC_ADDED and TOPIC_RECREATED a record of that
 * kind per partition, with its state at that version: leader, epoch, ISR,
 * replicas and offline replicas. So the records alone tell every state.
 * Errors: NO_MEMORY. Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_cache_changes_whole(
        rdmeta_cache_t *cache, uint64_t since, rdmeta_change_visit_t visit,
        void *opaque, uint64_t *until, int32_t *resync);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_CHANGE_H */
