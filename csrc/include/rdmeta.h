/*
 * rdmeta: Kafka cluster metadata in memory.
 *
 * This header is the contract. It does not promise what it does not say.
 *
 * Words. *borrows*: the function uses the caller's memory during the call only.
 * *copies*: it keeps its own copy. *takes*: it becomes the owner. A returned
 * pointer is borrowed from the object it came from. The exceptions are `_new`,
 * `_ref`, and functions whose comment names the call that gives the pointer
 * back: "for rdmeta_..._destroy()".
 *
 * Threads. Any number of threads may use a cache at once. Writers are
 * serialised inside. Readers never take a lock and never wait for a writer.
 * A reader belongs to one thread at a time. A callback runs in the thread that
 * makes the call it belongs to, and under no lock. The exception is the
 * allocator's: it may run under one. A callback must return: it must not
 * longjmp() or throw.
 *
 * Names. A topic name is (pointer, length) in bytes. It need not end in NUL.
 * Kafka's own limit is 249 bytes; the limit here is 32 767.
 *
 * Errors. 0 is success. -1 and positive values are Kafka's own error codes.
 * Local codes are <= -100. A call that returns an error changed nothing.
 *
 * Time is an argument: a monotonic clock for deadlines, a wall clock for
 * records, both in microseconds. The library reads a clock in two places only.
 * It does so for the time-out of rdmeta_cache_wait(). When it follows a file of
 * another process, it does so to see if the wall clock was set. Caches made in
 * Python use Linux's CLOCK_MONOTONIC and CLOCK_REALTIME, unless they were
 * given a clock.
 *
 * Members named `reserved` are 0. Later versions make new members of them, so
 * that programs compiled today work with later libraries.
 *
 * The library does not log, starts no thread, has no global state and never
 * calls abort().
 */
#ifndef RDMETA_H
#define RDMETA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RDMETA_API __attribute__((visibility("default")))
#else
#define RDMETA_API
#endif

/** The layout of the public headers. The low 16 bits grow when functions are
 *  appended; the high 16 bits change when something existing changes. */
#define RDMETA_ABI_VERSION 0x00010082u

/* ------------------------------------------------------------------------
 * Values
 * --------------------------------------------------------------------- */

/** Kafka's error code, or one of the local codes below. */
typedef int32_t rdmeta_err_t;

enum {
        RDMETA_OK = 0,

        /* A lookup can return these instead of a broker id. */
        RDMETA_NO_LEADER     = -1,   /**< the partition has no leader now */
        RDMETA_NOT_CACHED    = -100, /**< nothing is known: ask a broker */
        RDMETA_WAITING       = -101, /**< in flight: no answer yet */
        RDMETA_STALE         = -102, /**< known, but past its deadline */
        RDMETA_UNKNOWN_TOPIC = -103, /**< a broker says: no such topic */
        RDMETA_NO_PARTITION  = -104, /**< the topic has no such partition */
        RDMETA_DENIED        = -105, /**< not authorised for this topic */
        RDMETA_INVALID       = -106, /**< not a legal topic name */

        /* The errors of calls. */
        RDMETA_ERR_NO_MEMORY     = -120, /**< the allocator returned NULL */
        RDMETA_ERR_MALFORMED     = -121, /**< bytes that no broker sends */
        RDMETA_ERR_UNSUPPORTED   = -122, /**< not possible in this version */
        RDMETA_ERR_ARGUMENT      = -123, /**< the caller passed a bad value */
        RDMETA_ERR_NO_BROKERS    = -124, /**< answer without brokers: failed */
        RDMETA_ERR_WRONG_CLUSTER = -125, /**< another cluster answered */
        RDMETA_ERR_FORKED        = -126, /**< written to after fork() */
        RDMETA_ERR_TOO_SMALL     = -127, /**< the caller's buffer is small */
        RDMETA_ERR_RESPONSE      = -128, /**< top-level error, see applied */
        RDMETA_ERR_IO            = -129  /**< a system call failed: errno */
};

/** No value: of a leader, an epoch, or a broker id in a change. */
#define RDMETA_NONE INT32_MIN
/** No operations were asked for (Kafka's own sentinel, KIP-430). */
#define RDMETA_NO_OPERATIONS INT32_MIN

/** Bytes with a length. data NULL means absent (null), which "" does not. */
typedef struct rdmeta_str {
        const char *data;
        size_t len;
} rdmeta_str_t;

/** A list of big-endian int32 in a response's or a log's own bytes,
 *  unaligned. */
typedef struct rdmeta_wire_ids {
        const uint8_t *be;
        uint32_t count;
} rdmeta_wire_ids_t;

/** A list of broker ids that the reader lends. ids NULL means absent. */
typedef struct rdmeta_ids {
        const int32_t *ids;
        uint32_t count;
} rdmeta_ids_t;

/** A broker. Its strings belong to the object that it came from. */
typedef struct rdmeta_broker {
        int32_t id;
        int32_t port;
        rdmeta_str_t host;
        rdmeta_str_t rack; /**< data NULL: it has no rack */
} rdmeta_broker_t;

/** The caller's two clocks, in microseconds. */
typedef struct rdmeta_time {
        int64_t mono_us; /**< any monotonic clock above -2^60, the same in every
                           call */
        int64_t wall_us; /**< since 1970-01-01 UTC; for records only */
} rdmeta_time_t;

/** The source of memory. Give both functions or neither; with neither it is
 *  the C library. Any thread may call them, one thread at a time per cache. A
 *  fork's child may call them too: fork() waits until no thread is in a call,
 *  so a call must not wait for the thread that forks.
 *  free() gets the `size` that alloc() was asked for. */
typedef struct rdmeta_allocator {
        void *(*alloc)(void *opaque, size_t size);
        void (*free)(void *opaque, void *ptr, size_t size);
        void *opaque;
} rdmeta_allocator_t;

/** The configuration. Call rdmeta_conf_init() first, then change fields. */
typedef struct rdmeta_conf {
        size_t size;             /**< sizeof(rdmeta_conf_t), set by init */
        int64_t max_age_us;      /**< TTL of a valid topic; 900 s */
        int64_t negative_ttl_us; /**< TTL of "unknown topic"; 100 ms */
        int64_t denied_ttl_us;   /**< cap of "not authorised"; 10 s */
        int64_t hint_ttl_us;     /**< TTL of a name in flight; 60 s */
        int64_t absent_grace_us; /**< an absent topic is removed; 15 s */
        size_t ring_bytes;       /**< bound of the changelog; 4 MiB */
        uint64_t seed;           /**< 0: from the system's randomness */
        rdmeta_allocator_t allocator;
} rdmeta_conf_t;

/** Sets the defaults. Cannot fail. Threads: any. */
RDMETA_API void rdmeta_conf_init(rdmeta_conf_t *conf);

/* ------------------------------------------------------------------------
 * Life
 * --------------------------------------------------------------------- */

typedef struct rdmeta_cache rdmeta_cache_t;
/** A reader: see rdmeta_reader.h. */
typedef struct rdmeta_reader rdmeta_reader_t;
/** One topic at one version: immutable, borrowed between enter and leave. */
typedef struct rdmeta_topic rdmeta_topic_t;

/**
 * Returns a new, empty cache with one reference. Copies `conf`; NULL means the
 * defaults. NULL: no memory, or `conf` is not possible. That is a TTL below 0,
 * a max age or hint TTL of 0, another `size`, or only one of the allocator's
 * two functions.
 * Threads: any.
 */
RDMETA_API rdmeta_cache_t *rdmeta_cache_new(const rdmeta_conf_t *conf);

/** Adds a reference and returns `cache`. Threads: any. */
RDMETA_API rdmeta_cache_t *rdmeta_cache_ref(rdmeta_cache_t *cache);

/** Drops a reference; the last one frees the cache. Each reader, image and
 *  handle has a reference of its own. A watch has none: destroy every watch
 *  before, and let every waiter return before. Threads: any. */
RDMETA_API void rdmeta_cache_unref(rdmeta_cache_t *cache);

/* ------------------------------------------------------------------------
 * Writers: any thread, serialised inside
 * --------------------------------------------------------------------- */

/** The kind of a request. It decides what the answer may remove. */
enum {
        RDMETA_ASKED_UNKNOWN = 0, /**< the answer merges, never removes */
        RDMETA_ASKED_ALL     = 1, /**< every topic: a missing one is absent */
        RDMETA_ASKED_NAMES   = 2, /**< topics by name */
        RDMETA_ASKED_IDS     = 3, /**< topics by id */
        RDMETA_ASKED_BROKERS = 4  /**< no topics at all */
};

/** Flags of a request. */
enum {
        RDMETA_REQ_AUTO_CREATE = 1 << 0, /**< v4+; implied before v4 */
        RDMETA_REQ_CLUSTER_OPS = 1 << 1, /**< v8-10 (KIP-430) */
        RDMETA_REQ_TOPIC_OPS   = 1 << 2, /**< v8+ */
        /** The decoder accepts one extra byte at a response's end:
         *  librdkafka's mock brokers send it from v9 on. */
        RDMETA_REQ_TOLERATE_TRAILING = 1 << 3,
        /** The client has just rebootstrapped (KIP-1102): the cache accepts
         *  another cluster's id and replaces everything it knew. */
        RDMETA_REQ_REBOOTSTRAPPED = 1 << 4,
        /** `sent_version` is known. */
        RDMETA_REQ_SENT_VERSION = 1 << 5,
        /** `sent_hints` is known: see rdmeta_cache_request_sent(). */
        RDMETA_REQ_SENT_HINTS = 1 << 6
};

/** A Metadata request. The caller encodes it, and hands it back with its
 *  answer. Its members are borrowed. */
typedef struct rdmeta_request {
        int32_t asked; /**< RDMETA_ASKED_... */
        int32_t flags; /**< RDMETA_REQ_... */
        const rdmeta_str_t *names;  /**< n names, with NAMES */
        const uint8_t (*ids)[16];   /**< n ids, with IDS */
        size_t n;
        /** The cache's version when the request left. It is known if `flags`
         *  has RDMETA_REQ_SENT_VERSION; 0 is then the version of a new cache.
         *  The answer does not remove or deny what was learned or changed
         *  after that version. Nor does it replace that where it carries no
         *  leader epoch, and lower epochs in it are not counted.
         *  Without the flag (as in a zeroed struct) the version is not known:
         *  the cache treats the request as if it had left just now. */
        uint64_t sent_version;
        int32_t broker;        /**< the broker that answered; -1: not known */
        /** How many brokers the client could have asked, for the rules that
         *  want a second opinion; 0: as many as the cache knows. */
        int32_t candidates;
        /** Why the client asked, in its own words, for rdmeta_topic_info();
         *  {NULL, 0}: no reason. The cache keeps up to 255 bytes, cut at a
         *  whole character of UTF-8, and up to 1024 different reasons. */
        rdmeta_str_t reason;
        /** The number of the cache's last hint when the request left: the
         *  answer ends no later hint. The cache reads this member only with
         *  RDMETA_REQ_SENT_HINTS, so that programs compiled without it work
         *  as before. */
        uint64_t sent_hints;
} rdmeta_request_t;

/** The client's next step: bits of rdmeta_applied_t.advice. */
enum {
        RDMETA_ADVICE_ASK_AGAIN    = 1 << 0, /**< with backoff */
        RDMETA_ADVICE_ASK_OTHER    = 1 << 1, /**< another broker: this is old */
        RDMETA_ADVICE_ASK_BY_NAME  = 1 << 2, /**< a topic id is not known */
        RDMETA_ADVICE_REBOOTSTRAP  = 1 << 3  /**< error 129 (KIP-1102) */
};

/** The result of an apply. */
typedef struct rdmeta_applied {
        uint64_t version;     /**< the cache's version after the apply */
        uint32_t topics;      /**< topics in the answer */
        uint32_t changed;     /**< topics that changed, removals included */
        uint32_t unchanged;   /**< topics answered as they are known */
        uint32_t kept_back;   /**< topics where the known state was kept */
        uint32_t negative;    /**< topics answered unknown, denied, invalid */
        uint32_t absent;      /**< missing from an all-topics answer */
        uint32_t leaderless;  /**< partitions answered without a leader */
        uint32_t listener_not_found; /**< those of them with error 72 */
        uint32_t unreachable; /**< partitions led by none of the brokers */
        uint32_t brokers_changed;    /**< 1: the broker table changed */
        uint32_t advice;             /**< RDMETA_ADVICE_... */
        int32_t throttle_ms;         /**< KIP-219; 0 before v3 */
        rdmeta_err_t error;          /**< the top-level error, v13 */
        uint32_t reserved[5];
} rdmeta_applied_t;

/**
 * Applies the body of a Metadata response (no header), whole or not at all.
 * Borrows every argument. An error changes nothing but hints. The answer ends
 * the hints of the names that were asked for, also on an error; an answer to
 * ALL that is applied ends every hint. Neither ends a hint that was made after
 * the request left. `asked` NULL means RDMETA_ASKED_UNKNOWN, from an
 * unknown broker. `out` may be NULL. The call fills it on errors too (error,
 * advice, throttle). Errors: MALFORMED, UNSUPPORTED (the version), NO_BROKERS,
 * WRONG_CLUSTER, RESPONSE, NO_MEMORY, FORKED.
 * Threads: any; may wait for another writer.
 */
RDMETA_API rdmeta_err_t rdmeta_cache_apply(rdmeta_cache_t *cache,
                                           const void *response, size_t len,
                                           int16_t api_version,
                                           const rdmeta_request_t *asked,
                                           rdmeta_time_t now,
                                           rdmeta_applied_t *out);

/** Records in `request` that it leaves now: sets sent_version, sent_hints and
 *  their flags. Call it before sending the request, and hand the request back
 *  with its answer. Errors: FORKED, as the answer could not be applied; the
 *  request is then left as it was. Threads: any, no lock. */
RDMETA_API rdmeta_err_t
rdmeta_cache_request_sent(const rdmeta_cache_t *cache,
                          rdmeta_request_t *request);

/** Ends the hints of a request that failed: those of the names that it asked
 *  for, or every hint if `asked` is NULL or UNKNOWN. A hint that was made after
 *  the request left stays, if the request says when it left. Errors: FORKED.
 *  Threads: any; may wait for another writer. */
RDMETA_API rdmeta_err_t rdmeta_cache_apply_failure(
        rdmeta_cache_t *cache, const rdmeta_request_t *asked,
        rdmeta_time_t now);

/** Why a topic needs another answer: bits of rdmeta_due_t.reasons. */
enum {
        RDMETA_DUE_NO_LEADER   = 1 << 0, /**< a partition has no leader now */
        RDMETA_DUE_UNREACHABLE = 1 << 1, /**< a leader is no known broker */
        /** An answer was kept back. The last one about the topic was older,
         *  wholly or in part: an epoch, an id, a shorter list. Or it had an
         *  error that says nothing of the topic. */
        RDMETA_DUE_KEPT_BACK   = 1 << 2,
        RDMETA_DUE_ASK_BY_NAME = 1 << 3, /**< a broker does not know its id */
        RDMETA_DUE_ABSENT      = 1 << 4, /**< absent, within its grace time */
        RDMETA_DUE_DENIED      = 1 << 5  /**< denied, and past its TTL */
};

/** A topic that needs another answer. */
typedef struct rdmeta_due {
        rdmeta_str_t topic;
        uint32_t reasons; /**< RDMETA_DUE_...; at least one */
        uint32_t reserved[3];
} rdmeta_due_t;
/** Gets one topic, borrowed during the call. Returns 0, or another value to end
 *  the walk. */
typedef int32_t (*rdmeta_due_visit_t)(void *opaque, const rdmeta_due_t *due);

/**
 * Visits the topics that need another answer, each once, in any order: up to
 * `limit` of them, or all if `limit` is 0. A reason holds until a later answer
 * clears it, or the topic goes. A stale topic, or one whose hint is in flight,
 * is visited if it has a reason. A visit that returns other than 0 ends the
 * call, which returns that value. No lock is held during visits.
 * The time of a call depends on the number of topics that are due, or denied.
 * After a broker has gone from the brokers, and after rdmeta_cache_load(), the
 * next call looks at every topic. Errors: NO_MEMORY, FORKED.
 * Threads: any; may wait for a writer.
 */
RDMETA_API rdmeta_err_t rdmeta_cache_due(rdmeta_cache_t *cache,
                                         int64_t mono_us, size_t limit,
                                         rdmeta_due_visit_t visit,
                                         void *opaque);

/** A leader learned from a Produce or Fetch response (KIP-951). Borrowed. */
typedef struct rdmeta_leader_hint {
        rdmeta_str_t topic;      /**< the name; data NULL: only topic_id */
        const uint8_t *topic_id; /**< 16 bytes or NULL; must match the name */
        int32_t partition;
        int32_t leader;
        int32_t leader_epoch;
        /** The leader's endpoint, if the response carried it. host.data NULL:
         *  it did not, and the cache must know the broker. rack.data NULL: the
         *  broker keeps its rack if host and port are the known ones. */
        rdmeta_str_t host;
        rdmeta_str_t rack;
        int32_t port;
        int64_t reserved[2];
} rdmeta_leader_hint_t;

/** Takes a leader hint if it is strictly newer than what is known. Otherwise
 *  nothing happens and out->changed is 0. The deadline does not move: a refresh
 *  is still due, and out->advice says so. `out` may be NULL. Errors: NO_MEMORY,
 *  FORKED, ARGUMENT (neither name nor id; an empty host; an impossible port).
 *  Threads: any; may wait for another writer. */
RDMETA_API rdmeta_err_t rdmeta_cache_apply_leader_hint(
        rdmeta_cache_t *cache, const rdmeta_leader_hint_t *hint,
        rdmeta_time_t now, rdmeta_applied_t *out);

enum {
        RDMETA_HINT_REPLACE = 1 << 0, /**< ask for names in flight, too */
        RDMETA_HINT_FORCE   = 1 << 1  /**< ask for valid and denied ones, too */
};

/**
 * Notes that the caller is about to ask for `topics`, and returns the names
 * that it must ask for. It leaves out names that are valid, in flight, or were
 * answered negatively a moment ago. `to_ask` has room for n. It receives
 * borrows of the caller's names, without duplicates; *n_ask is their number.
 * ttl_us <= 0 means the configured TTL. Errors: NO_MEMORY, ARGUMENT (a name
 * that is empty or too long), FORKED.
 * Threads: any; may wait for another writer.
 */
RDMETA_API rdmeta_err_t rdmeta_cache_hint(rdmeta_cache_t *cache,
                                          const rdmeta_str_t *topics, size_t n,
                                          int32_t flags, int64_t ttl_us,
                                          rdmeta_time_t now,
                                          rdmeta_str_t *to_ask, size_t *n_ask);

/** Ends the hints of `topics`, or all hints if NULL. Returns how many it ended,
 *  or an error < 0 (FORKED). Threads: any; may wait for another writer. */
RDMETA_API int64_t rdmeta_cache_purge_hints(rdmeta_cache_t *cache,
                                            const rdmeta_str_t *topics,
                                            size_t n, rdmeta_time_t now);

/** Forgets every topic, every broker and the cluster id. It records the
 *  changes, and raises the version if there are any. Errors: NO_MEMORY, FORKED.
 *  Threads: any; may wait for another writer. */
RDMETA_API rdmeta_err_t rdmeta_cache_purge(rdmeta_cache_t *cache,
                                           rdmeta_time_t now);

/** Forgets these topics, as rdmeta_cache_purge() forgets all: those that are
 *  valid, stale or negative, and the ids and epochs of removed ones. Their
 *  hints end, and their handles read NOT_CACHED. It records the changes, and
 *  raises the version once if there are any. Skips names that are not cached,
 *  and names that come twice. Borrows `topics`. Returns how many topics it
 *  forgot, without those that were only in flight or already removed. Errors
 *  < 0: NO_MEMORY, FORKED. An answer that names a topic again brings it back.
 *  Threads: any; may wait for another writer. */
RDMETA_API int64_t rdmeta_cache_forget(rdmeta_cache_t *cache,
                                       const rdmeta_str_t *topics, size_t n,
                                       rdmeta_time_t now);

/** Ends what is past its deadline. Returns when to call again (mono_us;
 *  INT64_MAX: never). In a fork's child it does nothing.
 *  Threads: any; may wait for another writer. */
RDMETA_API int64_t rdmeta_cache_sweep(rdmeta_cache_t *cache,
                                      rdmeta_time_t now);

/* ------------------------------------------------------------------------
 * State
 * --------------------------------------------------------------------- */

/** Returns the version: 0 in a new cache, +1 with every write that changed
 *  something. Each version has a change record: see rdmeta_cache_changes().
 *  Threads: any, no lock. */
RDMETA_API uint64_t rdmeta_cache_version(const rdmeta_cache_t *cache);

/** Counters and sizes. Bytes are what the allocator was asked for. */
typedef struct rdmeta_stats {
        uint64_t version;
        uint64_t applies, apply_failures;
        uint64_t topics_applied, topics_unchanged, topics_changed;
        uint64_t topics_kept_back; /**< the known state was kept */
        uint64_t digest_hits;      /**< unchanged, found without parsing */
        uint64_t leader_hints_taken, leader_hints_ignored;
        uint64_t topics;    /**< valid or stale */
        uint64_t negatives; /**< unknown, denied, invalid, absent */
        uint64_t hints;     /**< names in flight */
        uint64_t retained;  /**< ids and epochs kept of topics that are gone */
        uint64_t partitions;
        uint64_t bytes;         /**< of everything */
        uint64_t bytes_ring;    /**< part of bytes: changelog, old blocks */
        uint64_t bytes_limbo;   /**< part of bytes: kept until readers leave */
        uint64_t ring_records;  /**< changed topics in the changelog */
        uint64_t ring_floor;    /**< lowest `since` of changes() to serve */
        uint64_t rehashes, reseeds;
        /** Of the last all-topics answer. Below INT64_MIN / 2: there
         *  was none of this cluster since the last purge. */
        int64_t shared_deadline_us;
        int32_t readers, waiters, watches;
        int32_t handles;       /**< names with a handle */
        uint64_t bytes_images; /**< part of bytes: only images have it */
        int32_t images;        /**< images that have not been freed */
        int32_t reserved_small;
        uint64_t reasons;         /**< different reasons that are kept */
        uint64_t reasons_dropped; /**< answers whose reason found no room */
        uint64_t bytes_free;   /**< part of bytes: unused room for topics */
        uint64_t topics_moved; /**< moved so that memory could be freed */
        uint64_t reserved[2];
} rdmeta_stats_t;
/** Fills `out`. Cannot fail, but writes zeros in a child that can only look up
 *  (rdmeta_reader.h). Threads: any; takes the writers' lock for a moment. */
RDMETA_API void rdmeta_cache_stats(rdmeta_cache_t *cache,
                                   rdmeta_stats_t *out);

/* ------------------------------------------------------------------------
 * Names
 * --------------------------------------------------------------------- */

/* Threads: any. The strings that these functions return are static. */

/** Returns the name of a code: "UNKNOWN_TOPIC_OR_PARTITION", "RDMETA_STALE" ...
 *  Never NULL. Threads: any. */
RDMETA_API const char *rdmeta_err_name(rdmeta_err_t err);
/** Returns the name of a kind as change records have it: "leader_changed" ...
 *  NULL: no such kind. Threads: any. */
RDMETA_API const char *rdmeta_change_kind_name(int32_t kind);
/** Returns "poll", "hint", "log", "expiry" or "purge"; NULL: no such source.
 *  Threads: any. */
RDMETA_API const char *rdmeta_source_name(int32_t source);
/** Returns the RDMETA_ABI_VERSION of the library. Threads: any. */
RDMETA_API uint32_t rdmeta_abi_version(void);

#ifdef __cplusplus
}
#endif

#include "rdmeta_arrow.h"
#include "rdmeta_change.h"
#include "rdmeta_fold.h"
#include "rdmeta_handle.h"
#include "rdmeta_image.h"
#include "rdmeta_keys.h"
#include "rdmeta_kraft.h"
#include "rdmeta_reader.h"
#include "rdmeta_wire.h"

#endif /* RDMETA_H */
