/*
 * rdmeta: readers. Part of rdmeta.h, which includes it.
 *
 * A reader reads a cache (rdmeta_reader_new) or an image (rdmeta_image_reader),
 * or follows a file (rdmeta_attach_reader), with the same calls. An image in a
 * file is checked as it is read: there a call may also return
 * RDMETA_ERR_MALFORMED.
 *
 * The calls take no lock, and allocate only where their comment says so.
 * Threads: a reader belongs to one thread at a time, so every call here belongs
 * to that thread. Several threads may use several readers of one cache at once,
 * beside any writer.
 *
 * Every call works in the child of fork(), whatever other threads were doing.
 * The child has the state of each cache at the fork, and cannot write to it.
 * fork() lets writes end, and other writes begin after it. It waits for 2 s at
 * most. If a write took longer, or if the child was made without the handlers
 * of fork(), as by clone() or _Fork(), the child can only look up: calls that
 * allocate or free return FORKED or NULL there, or do nothing.
 */
#ifndef RDMETA_READER_H
#define RDMETA_READER_H

#include "rdmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Return last known values for stale topics and leaderless partitions. */
enum { RDMETA_ALLOW_STALE = 1 << 0 };

/** Returns a new reader, for rdmeta_reader_destroy(). NULL: no memory. `flags`:
 *  RDMETA_ALLOW_STALE or 0. The reader has a reference on the cache. Threads:
 *  any. It may wait for a writer, unlike the reader's own calls: make readers
 *  ahead of time. */
RDMETA_API rdmeta_reader_t *rdmeta_reader_new(rdmeta_cache_t *cache,
                                              int32_t flags);
/** Frees a reader of a cache, an image or a file. NULL is fine.
 *  Threads: any, while no thread uses the reader. */
RDMETA_API void rdmeta_reader_destroy(rdmeta_reader_t *reader);

/** Begins a section: everything borrowed between enter and leave stays valid.
 *  The cache keeps memory that writers retire meanwhile, so leave soon, and
 *  before the thread ends. Sections nest. The point lookups below need none.
 *  For a reader of an image it stays valid as long as the image, without a
 *  section. A reader that follows a file needs one. Threads: the reader's. */
RDMETA_API void rdmeta_reader_enter(rdmeta_reader_t *reader);
/** Ends what the last enter began. Threads: the reader's. */
RDMETA_API void rdmeta_reader_leave(rdmeta_reader_t *reader);

/** Returns the leader's broker id, RDMETA_NO_LEADER, or a local code <= -100.
 *  Threads: the reader's. */
RDMETA_API int32_t rdmeta_leader(rdmeta_reader_t *reader, const char *topic,
                                 size_t len, int32_t partition,
                                 int64_t mono_us);

/** Stores rdmeta_leader() of topics[i] and partitions[i] in out[i], for n rows,
 *  with prefetch. Cannot fail: each row's code is in `out`. Borrows all
 *  arguments; `out` has room for n. Threads: the reader's. */
RDMETA_API void rdmeta_leaders(rdmeta_reader_t *reader,
                               const rdmeta_str_t *topics,
                               const int32_t *partitions, size_t n,
                               int64_t mono_us, int32_t *out);

/** A list in the caller's memory. The call writes up to `capacity` ids; `count`
 *  is how many there are. */
typedef struct rdmeta_ids_out {
        int32_t *ids;
        uint32_t capacity;
        uint32_t count;
} rdmeta_ids_out_t;

typedef struct rdmeta_partition {
        int32_t partition;
        int32_t leader;       /**< -1: none now */
        int32_t last_leader;  /**< the last known one; -1: never known */
        int32_t leader_epoch; /**< -1: not known */
        int32_t error;        /**< Kafka's code; 0, 5, 9, 72 ... */
        /** 1: the leader is not among the brokers now. That is no error, as
         *  KRaft ignores fencing when it answers, but a reason to refresh. */
        int32_t unreachable;
        int32_t reserved[2];
        /** The caller sets ids and capacity (0 and NULL are fine). */
        rdmeta_ids_out_t replicas;
        rdmeta_ids_out_t isr;
        rdmeta_ids_out_t offline_replicas;
} rdmeta_partition_t;

/** Copies everything about one partition into `out`. Returns 0, or the code
 *  that rdmeta_leader() would have returned (<= -100). Threads: the
 *  reader's. */
RDMETA_API rdmeta_err_t rdmeta_partition(rdmeta_reader_t *reader,
                                         const char *topic, size_t len,
                                         int32_t partition, int64_t mono_us,
                                         rdmeta_partition_t *out);

/** Returns a broker to fetch a partition from that is in a rack (KIP-392). It
 *  is the leader if the leader's broker has that rack. Otherwise it is the
 *  first of the partition's replicas that is in sync, not offline, and has a
 *  known broker of that rack. Without such a replica it is the leader.
 *  If there is no leader to return, the codes are those of rdmeta_leader().
 *  Racks are compared as bytes; an empty `rack`: the leader. Borrows all
 *  arguments. Threads: the reader's. */
RDMETA_API int32_t rdmeta_replica_in(rdmeta_reader_t *reader,
                                     const char *topic, size_t len,
                                     int32_t partition, rdmeta_str_t rack,
                                     int64_t mono_us);

typedef struct rdmeta_topic_info {
        rdmeta_str_t name;
        uint8_t topic_id[16];   /**< all zero: not known (before v10) */
        uint64_t version;       /**< the cache's when the topic last changed */
        uint32_t partitions;    /**< the number of partitions */
        int32_t internal;       /**< 1: a topic of Kafka itself */
        int32_t error;          /**< Kafka's code for the topic */
        int32_t state;          /**< 0, or the lookup's local code */
        int32_t operations;     /**< bit field, or RDMETA_NO_OPERATIONS */
        int32_t source_broker;  /**< the broker that answered; -1: unknown */
        int64_t deadline_us;    /**< mono_us after which it is stale: max age
                                 *   after its answer. After a warm start
                                 *   `state` is stale before that, too */
        /** Why the last answer about the topic was asked for
         *  (rdmeta_request_t); {NULL, 0}: no reason. Borrowed, as `name`. */
        rdmeta_str_t reason;
} rdmeta_topic_info_t;

/** Finds a topic by name, between enter and leave. Sets *out for valid topics,
 *  stale ones and those answered negatively; NULL for all others. Returns what
 *  rdmeta_leader() would return for the topic: 0 or <= -100.
 *  Threads: the reader's. */
RDMETA_API rdmeta_err_t rdmeta_topic_find(rdmeta_reader_t *reader,
                                          const char *name, size_t len,
                                          int64_t mono_us,
                                          const rdmeta_topic_t **out);
/** Finds a topic by id, as rdmeta_topic_find(). Threads: the reader's. */
RDMETA_API rdmeta_err_t rdmeta_topic_find_id(rdmeta_reader_t *reader,
                                             const uint8_t id[16],
                                             int64_t mono_us,
                                             const rdmeta_topic_t **out);
/** Fills `out` with a topic's facts; `topic` is not NULL. Its `state` is as of
 *  `mono_us`. Threads: the reader's. */
RDMETA_API void rdmeta_topic_info(rdmeta_reader_t *reader,
                                  const rdmeta_topic_t *topic,
                                  int64_t mono_us, rdmeta_topic_info_t *out);
/** Copies the i-th partition, in the order of ids. NO_PARTITION beyond the last
 *  one. With `reader` NULL, `unreachable` is not set. Threads: the
 *  reader's. */
RDMETA_API rdmeta_err_t rdmeta_topic_partition_at(rdmeta_reader_t *reader,
                                                  const rdmeta_topic_t *topic,
                                                  uint32_t i,
                                                  rdmeta_partition_t *out);

/** The broker table at one version: immutable, borrowed as topics are. */
typedef struct rdmeta_brokers rdmeta_brokers_t;

/** Returns the broker table, between enter and leave; never NULL, perhaps
 *  empty. Threads: the reader's. */
RDMETA_API const rdmeta_brokers_t *rdmeta_brokers(rdmeta_reader_t *reader);
/** Returns the number of brokers. Threads: any, as long as the table is
 *  borrowed. */
RDMETA_API uint32_t rdmeta_brokers_count(const rdmeta_brokers_t *brokers);
/** Copies the i-th broker, in the order of ids. ARGUMENT beyond the last.
 *  Threads: any, as long as the table is borrowed. */
RDMETA_API rdmeta_err_t rdmeta_brokers_at(const rdmeta_brokers_t *brokers,
                                          uint32_t i, rdmeta_broker_t *out);
/** Finds a broker by id. Returns 0 or NOT_CACHED. Threads: any, as long as the
 *  table is borrowed. */
RDMETA_API rdmeta_err_t rdmeta_brokers_find(const rdmeta_brokers_t *brokers,
                                            int32_t id, rdmeta_broker_t *out);
/** Returns the cluster id; data NULL: not known (before v2).
 *  Threads: any, as long as the table is borrowed. */
RDMETA_API rdmeta_str_t rdmeta_brokers_cluster_id(
        const rdmeta_brokers_t *brokers);
/** Returns a broker that forwards to the controller; -1: not known. On KRaft
 *  this is any alive broker, so another one is not a change.
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
 * Visits topics whose names begin with `prefix`, in the order of their bytes,
 * all at one version. A visit that returns other than 0 ends the walk, which
 * returns that value. No lock is held during visits, and writers may write
 * meanwhile. The walk may build the ordered index. Errors: NO_MEMORY; MALFORMED
 * for an image.
 * Threads: the reader's.
 */
RDMETA_API rdmeta_err_t rdmeta_reader_walk(rdmeta_reader_t *reader,
                                           const char *prefix, size_t len,
                                           int32_t which, int64_t mono_us,
                                           rdmeta_topic_visit_t visit,
                                           void *opaque);

/** Counts of the partitions that name a broker. */
typedef struct rdmeta_broker_health {
        int32_t broker;    /**< its id; perhaps not among the brokers now */
        int32_t reserved;
        uint64_t leaders;  /**< partitions that it leads now */
        uint64_t replicas; /**< partitions with a replica on it */
} rdmeta_broker_health_t;

/** Counts of partitions, but for the first member. */
typedef struct rdmeta_health {
        uint64_t topics;
        uint64_t partitions;
        uint64_t replicas;         /**< of all partitions together */
        uint64_t leaderless;       /**< there is no leader now */
        uint64_t under_replicated; /**< the ISR is shorter than the replicas */
        uint64_t offline;          /**< a replica is offline */
        uint64_t non_preferred;    /**< another replica than the first leads */
        uint64_t reserved[4];
        /** By id: each broker of the table, and each one that is named by a
         *  partition. The caller sets brokers and capacity (NULL and 0 are
         *  fine). The call writes up to `capacity` brokers; `broker_count` is
         *  how many there are. */
        rdmeta_broker_health_t *brokers;
        uint32_t capacity;
        uint32_t broker_count;
} rdmeta_health_t;

/** Counts the states of all partitions in one walk, all at one version.
 *  `which`: RDMETA_WALK_VALID and RDMETA_WALK_STALE as of mono_us; other topics
 *  have no partitions. Last known leaders do not count as leaders. Takes no
 *  lock while it counts, and allocates a table of brokers meanwhile. Writes
 *  *out only when it returns 0. Errors: NO_MEMORY; MALFORMED for an image.
 *  Threads: the reader's. */
RDMETA_API rdmeta_err_t rdmeta_reader_health(rdmeta_reader_t *reader,
                                             int32_t which, int64_t mono_us,
                                             rdmeta_health_t *out);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_READER_H */
