/*
 * rdmeta: readers. Part of rdmeta.h, which includes it.
 *
 * A reader reads a cache (rdmeta_reader_new) or an image
 * (rdmeta_image_reader), or follows a file (rdmeta_attach_reader), with the
 * same calls. An image in a file is looked at as it is read: there a call may
 * also say RDMETA_ERR_MALFORMED.
 *
 * No lock, no allocation but where it says so. Threads: a reader belongs to
 * one thread at a time, so every call here is that thread's; different readers
 * of one cache may be used at once, and beside any writer.
 *
 * In a fork's child all of it works, whatever other threads were at: what is
 * read there is what the cache said at the fork. In the middle of a write that
 * is of each topic what it was either before or after.
 */
#ifndef RDMETA_READER_H
#define RDMETA_READER_H

#include "rdmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Take last known values for stale topics and leaderless partitions. */
enum { RDMETA_ALLOW_STALE = 1 << 0 };

/** A reader, flags RDMETA_ALLOW_STALE or 0, for rdmeta_reader_destroy(). Holds
 *  a reference on the cache. NULL: no memory. Threads: any; may wait for a
 *  writer, unlike what the reader is for: make it ahead of time. */
RDMETA_API rdmeta_reader_t *rdmeta_reader_new(rdmeta_cache_t *cache,
                                              int32_t flags);
/** The end of a reader of a cache, an image or a file. NULL is fine.
 *  Threads: any, while nobody uses it. */
RDMETA_API void rdmeta_reader_destroy(rdmeta_reader_t *reader);

/** Everything borrowed between these two stays valid; memory that writers
 *  retire meanwhile is kept, so leave soon, and before the thread ends. They
 *  nest. The point lookups below need neither. What a reader of an image
 *  gives stays valid as long as the image, without them; not so one that
 *  follows a file. Threads: the reader's. */
RDMETA_API void rdmeta_reader_enter(rdmeta_reader_t *reader);
/** The end of what the last enter began. Threads: the reader's. */
RDMETA_API void rdmeta_reader_leave(rdmeta_reader_t *reader);

/** The leader's broker id; RDMETA_NO_LEADER; or a local code <= -100.
 *  Threads: the reader's. */
RDMETA_API int32_t rdmeta_leader(rdmeta_reader_t *reader, const char *topic,
                                 size_t len, int32_t partition,
                                 int64_t mono_us);

/** rdmeta_leader() for n rows, with prefetch: out[i] for topics[i],
 *  partitions[i]. Borrows all; out has room for n. Cannot fail: what is to be
 *  said of a row is in out. Threads: the reader's. */
RDMETA_API void rdmeta_leaders(rdmeta_reader_t *reader,
                               const rdmeta_str_t *topics,
                               const int32_t *partitions, size_t n,
                               int64_t mono_us, int32_t *out);

/** A list in the caller's memory: up to `capacity` ids are written, `count`
 *  says how many there are. */
typedef struct rdmeta_ids_out {
        int32_t *ids;
        uint32_t capacity;
        uint32_t count;
} rdmeta_ids_out_t;

typedef struct rdmeta_partition {
        int32_t partition;
        int32_t leader;       /**< -1: none now */
        int32_t last_leader;  /**< the last one known; -1: never one */
        int32_t leader_epoch; /**< -1: the broker did not say */
        int32_t error;        /**< Kafka's code; 0, 5, 9, 72 ... */
        /** 1: the leader is not among the brokers now. KRaft does not look at
         *  fencing when it answers, so that is no mistake, but a reason to
         *  refresh. */
        int32_t unreachable;
        int32_t reserved[2];
        /** The caller sets ids and capacity (0 and NULL are fine). */
        rdmeta_ids_out_t replicas;
        rdmeta_ids_out_t isr;
        rdmeta_ids_out_t offline_replicas;
} rdmeta_partition_t;

/** Everything about one partition, copied out. 0, or the code that
 *  rdmeta_leader() would have returned (<= -100). Threads: the reader's. */
RDMETA_API rdmeta_err_t rdmeta_partition(rdmeta_reader_t *reader,
                                         const char *topic, size_t len,
                                         int32_t partition, int64_t mono_us,
                                         rdmeta_partition_t *out);

typedef struct rdmeta_topic_info {
        rdmeta_str_t name;
        uint8_t topic_id[16];   /**< all zero: not known (before v10) */
        uint64_t version;       /**< the cache's when it last changed */
        uint32_t partitions;    /**< how many */
        int32_t internal;       /**< 1: Kafka's own */
        int32_t error;          /**< Kafka's code of the topic */
        int32_t state;          /**< 0, or the lookup's local code */
        int32_t operations;     /**< bit field, or RDMETA_NO_OPERATIONS */
        int32_t source_broker;  /**< who said it; -1 not known */
        int64_t deadline_us;    /**< mono_us after which it is stale: max age
                                 *   after it was answered; `state` says that
                                 *   of a warm start is so before, too */
        /** Why it was asked, when it was said last (rdmeta_request_t);
         *  {NULL, 0}: that was not said. Borrowed, as `name` is. */
        rdmeta_str_t reason;
} rdmeta_topic_info_t;

/** Find by name. Between enter and leave. *out is set for valid topics, for
 *  stale ones and for those answered negatively, and NULL for all others; the
 *  result is what rdmeta_leader() would say of the topic: 0 or <= -100.
 *  Threads: the reader's. */
RDMETA_API rdmeta_err_t rdmeta_topic_find(rdmeta_reader_t *reader,
                                          const char *name, size_t len,
                                          int64_t mono_us,
                                          const rdmeta_topic_t **out);
/** rdmeta_topic_find() by id. Threads: the reader's. */
RDMETA_API rdmeta_err_t rdmeta_topic_find_id(rdmeta_reader_t *reader,
                                             const uint8_t id[16],
                                             int64_t mono_us,
                                             const rdmeta_topic_t **out);
/** What a topic, not NULL, says of itself. state is as of `mono_us`.
 *  Threads: the reader's. */
RDMETA_API void rdmeta_topic_info(rdmeta_reader_t *reader,
                                  const rdmeta_topic_t *topic,
                                  int64_t mono_us, rdmeta_topic_info_t *out);
/** The i-th partition in the order of ids; NO_PARTITION beyond the last.
 *  `reader` NULL: `unreachable` is not worked out. Threads: the reader's. */
RDMETA_API rdmeta_err_t rdmeta_topic_partition_at(rdmeta_reader_t *reader,
                                                  const rdmeta_topic_t *topic,
                                                  uint32_t i,
                                                  rdmeta_partition_t *out);

/** The broker table at one version: immutable, borrowed as topics are. */
typedef struct rdmeta_brokers rdmeta_brokers_t;

/** Between enter and leave; never NULL, perhaps empty.
 *  Threads: the reader's. */
RDMETA_API const rdmeta_brokers_t *rdmeta_brokers(rdmeta_reader_t *reader);
/** How many. Threads: any, as long as the table is borrowed. */
RDMETA_API uint32_t rdmeta_brokers_count(const rdmeta_brokers_t *brokers);
/** In the order of ids. ARGUMENT beyond the last.
 *  Threads: any, as long as the table is borrowed. */
RDMETA_API rdmeta_err_t rdmeta_brokers_at(const rdmeta_brokers_t *brokers,
                                          uint32_t i, rdmeta_broker_t *out);
/** By id: 0, or NOT_CACHED. Threads: any, as long as the table is borrowed. */
RDMETA_API rdmeta_err_t rdmeta_brokers_find(const rdmeta_brokers_t *brokers,
                                            int32_t id, rdmeta_broker_t *out);
/** data NULL: not known (before v2).
 *  Threads: any, as long as the table is borrowed. */
RDMETA_API rdmeta_str_t rdmeta_brokers_cluster_id(
        const rdmeta_brokers_t *brokers);
/** A broker that forwards to the controller; -1: not known. On KRaft this is
 *  any alive broker, so it is not a change when it differs.
 *  Threads: any, as long as the table is borrowed. */
RDMETA_API int32_t rdmeta_brokers_controller(const rdmeta_brokers_t *brokers);

/** Which topics to walk. */
enum {
        RDMETA_WALK_VALID = 1 << 0,   /**< valid and not stale at mono_us */
        RDMETA_WALK_STALE = 1 << 1,   /**< past their deadline */
        RDMETA_WALK_NEGATIVE = 1 << 2 /**< unknown, denied, invalid, absent */
};
typedef int32_t (*rdmeta_topic_visit_t)(void *opaque,
                                        const rdmeta_topic_t *topic);
/**
 * Visit topics whose names begin with `prefix` in the order of their bytes,
 * as they stood at one version; a visit that returns other than 0 ends it and
 * is returned. No lock is held during visits and the cache may be written to
 * meanwhile. May build the ordered index: NO_MEMORY. MALFORMED (an image's).
 * Threads: the reader's.
 */
RDMETA_API rdmeta_err_t rdmeta_reader_walk(rdmeta_reader_t *reader,
                                           const char *prefix, size_t len,
                                           int32_t which, int64_t mono_us,
                                           rdmeta_topic_visit_t visit,
                                           void *opaque);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_READER_H */
