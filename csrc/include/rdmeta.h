/*
 * rdmeta: Kafka cluster metadata in memory.
 *
 * This header is the contract. What is not said here is not promised.
 *
 * Words. *borrows*: the callee uses the caller's memory during the call only.
 * *copies*: it keeps its own copy. *takes*: it becomes the owner. A pointer
 * that is returned is borrowed from the object it came from, unless the
 * function is called `_new` or `_ref`, or its comment says what gives the
 * pointer back: "for rdmeta_..._destroy()".
 *
 * Threads. A cache may be used by any number of threads at once. Writers are
 * serialised inside; readers never take a lock and never wait for a writer.
 * A reader belongs to one thread at a time. Callbacks run in the thread that
 * makes the call they belong to, and, but for the allocator's, under no lock;
 * they come back by returning, not by longjmp() or an exception.
 *
 * Names. Topic names are (pointer, length) in bytes, never required to end in
 * NUL. Kafka's own limit is 249; ours is 32 767.
 *
 * Errors. 0 is fine; -1 and positive values are Kafka's own error codes;
 * local ones are <= -100. A call that returns an error changed nothing.
 *
 * Time is an argument: a monotonic clock for deadlines, a wall clock for
 * records, both in microseconds. The library reads no clock but for the
 * time-out of rdmeta_cache_wait(), and who follows a file of another process
 * asks by how much the system's wall clock was set. Caches that Python made
 * go by Linux's CLOCK_MONOTONIC and CLOCK_REALTIME, unless they were given a
 * clock.
 *
 * Words named `reserved` are 0; members to come will be made of them, so that
 * programs compiled today go on with the libraries of tomorrow.
 *
 * No logging, no threads, no global state, no abort().
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

/** Layout of this header: the low 16 bits grow when calls are appended, the
 *  high 16 change when something existing does. */
#define RDMETA_ABI_VERSION 0x00010050u

/* ------------------------------------------------------------------------
 * Values
 * --------------------------------------------------------------------- */

/** Kafka's code, or one of the local codes below. */
typedef int32_t rdmeta_err_t;

enum {
        RDMETA_OK = 0,

        /* What a lookup can say instead of a broker id. */
        RDMETA_NO_LEADER     = -1,   /**< known, and has no leader now */
        RDMETA_NOT_CACHED    = -100, /**< nothing known: ask a broker */
        RDMETA_WAITING       = -101, /**< asked for, no answer yet */
        RDMETA_STALE         = -102, /**< known, but past its deadline */
        RDMETA_UNKNOWN_TOPIC = -103, /**< a broker says: no such topic */
        RDMETA_NO_PARTITION  = -104, /**< the topic has no such partition */
        RDMETA_DENIED        = -105, /**< not authorised for this topic */
        RDMETA_INVALID       = -106, /**< not a legal topic name */

        /* What a call can fail with. */
        RDMETA_ERR_NO_MEMORY     = -120, /**< the allocator said no */
        RDMETA_ERR_MALFORMED     = -121, /**< bytes that no broker sends */
        RDMETA_ERR_UNSUPPORTED   = -122, /**< this version cannot say that */
        RDMETA_ERR_ARGUMENT      = -123, /**< a caller's mistake */
        RDMETA_ERR_NO_BROKERS    = -124, /**< answer without brokers: failed */
        RDMETA_ERR_WRONG_CLUSTER = -125, /**< another cluster answered */
        RDMETA_ERR_FORKED        = -126, /**< written to after fork() */
        RDMETA_ERR_TOO_SMALL     = -127, /**< the caller's buffer is */
        RDMETA_ERR_RESPONSE      = -128, /**< top-level error, see applied */
        RDMETA_ERR_IO            = -129  /**< the system's: errno tells */
};

/** A value that is not there: a leader, an epoch, a broker id in a change. */
#define RDMETA_NONE INT32_MIN
/** No operations asked for (Kafka's own sentinel, KIP-430). */
#define RDMETA_NO_OPERATIONS INT32_MIN

/** Bytes with a length; data NULL means absent (null), which "" is not. */
typedef struct rdmeta_str {
        const char *data;
        size_t len;
} rdmeta_str_t;

/** A list of broker ids borrowed by the reader; ids NULL means absent. */
typedef struct rdmeta_ids {
        const int32_t *ids;
        uint32_t count;
} rdmeta_ids_t;

/** A broker; its strings belong to whoever gave it. */
typedef struct rdmeta_broker {
        int32_t id;
        int32_t port;
        rdmeta_str_t host;
        rdmeta_str_t rack; /**< data NULL: none */
} rdmeta_broker_t;

/** The caller's two clocks, microseconds. */
typedef struct rdmeta_time {
        int64_t mono_us; /**< any monotonic clock above -2^60, the same in every
                           call */
        int64_t wall_us; /**< since 1970-01-01 UTC; for records only */
} rdmeta_time_t;

/** Where memory comes from. Both or neither function; neither: the C library.
 *  May be called by any thread, one at a time for each cache, and in a fork's
 *  child, where the fork may have come in the middle of a call. `size` given
 *  to free is what alloc was asked for. */
typedef struct rdmeta_allocator {
        void *(*alloc)(void *opaque, size_t size);
        void (*free)(void *opaque, void *ptr, size_t size);
        void *opaque;
} rdmeta_allocator_t;

/** Configuration: start from rdmeta_conf_init(), then change fields. */
typedef struct rdmeta_conf {
        size_t size;             /**< sizeof(rdmeta_conf_t), set by init */
        int64_t max_age_us;      /**< a valid topic's TTL; 900 s */
        int64_t negative_ttl_us; /**< "unknown topic" TTL; 100 ms */
        int64_t denied_ttl_us;   /**< cap of "not authorised"; 10 s */
        int64_t hint_ttl_us;     /**< a name in flight; 60 s */
        int64_t absent_grace_us; /**< absent until removed; 15 s */
        size_t ring_bytes;       /**< bound of the change ring; 4 MiB */
        uint64_t seed;           /**< 0: from the system's randomness */
        rdmeta_allocator_t allocator;
} rdmeta_conf_t;

/** Fill in the defaults. Cannot fail. Threads: any. */
RDMETA_API void rdmeta_conf_init(rdmeta_conf_t *conf);

/* ------------------------------------------------------------------------
 * Life
 * --------------------------------------------------------------------- */

typedef struct rdmeta_cache rdmeta_cache_t;
/** Who reads: rdmeta_reader.h. */
typedef struct rdmeta_reader rdmeta_reader_t;
/** One topic at one version: immutable, borrowed between enter and leave. */
typedef struct rdmeta_topic rdmeta_topic_t;

/**
 * A new, empty cache with one reference. Copies `conf`; NULL means defaults.
 * NULL back: no memory, or a conf that cannot be: a TTL below 0, a max age or a
 * hint TTL of 0, another size, one function of an allocator's two.
 * Threads: any.
 */
RDMETA_API rdmeta_cache_t *rdmeta_cache_new(const rdmeta_conf_t *conf);

/** One more reference; returns `cache`. Threads: any. */
RDMETA_API rdmeta_cache_t *rdmeta_cache_ref(rdmeta_cache_t *cache);

/** One reference less; the last one frees. Readers, images and handles hold
 *  one of their own. Watches do not: they must have been destroyed before, and
 *  waiters be back. In a child of a fork in the middle of a write it frees
 *  nothing: that memory goes with the process. Threads: any. */
RDMETA_API void rdmeta_cache_unref(rdmeta_cache_t *cache);

/* ------------------------------------------------------------------------
 * Writers: any thread, serialised inside
 * --------------------------------------------------------------------- */

/** What was asked, which decides what an answer may remove. */
enum {
        RDMETA_ASKED_UNKNOWN = 0, /**< merges, never removes */
        RDMETA_ASKED_ALL     = 1, /**< every topic: absence means something */
        RDMETA_ASKED_NAMES   = 2,
        RDMETA_ASKED_IDS     = 3,
        RDMETA_ASKED_BROKERS = 4 /**< no topics at all */
};

/** Flags of a request. */
enum {
        RDMETA_REQ_AUTO_CREATE = 1 << 0, /**< v4+; before it is implied */
        RDMETA_REQ_CLUSTER_OPS = 1 << 1, /**< v8-10 (KIP-430) */
        RDMETA_REQ_TOPIC_OPS   = 1 << 2, /**< v8+ */
        /** One byte too many at a response's end is let pass: librdkafka's
         *  mock brokers send it from v9 on. */
        RDMETA_REQ_TOLERATE_TRAILING = 1 << 3,
        /** The client has just rebootstrapped (KIP-1102): another cluster's
         *  id is then taken, and everything known replaced. */
        RDMETA_REQ_REBOOTSTRAPPED = 1 << 4,
        /** sent_version is known. */
        RDMETA_REQ_SENT_VERSION = 1 << 5,
        /** `sent_hints` is known: see rdmeta_cache_request_sent(). */
        RDMETA_REQ_SENT_HINTS = 1 << 6
};

/** A Metadata request: encoded, and handed back with its answer. Borrowed. */
typedef struct rdmeta_request {
        int32_t asked; /**< RDMETA_ASKED_... */
        int32_t flags; /**< RDMETA_REQ_... */
        const rdmeta_str_t *names;  /**< NAMES: n of them */
        const uint8_t (*ids)[16];   /**< IDS: n of them */
        size_t n;
        /** The cache's version when it was sent, if `flags` has
         *  RDMETA_REQ_SENT_VERSION: 0 is that of a new cache. What was learned
         *  or changed after it is not removed or denied by the answer, nor
         *  replaced where that has no leader epoch, and an older answer does
         *  not count. Without the flag, as in a zeroed struct, it is not known,
         *  and the answer is taken as if the request had left just now. */
        uint64_t sent_version;
        int32_t broker;        /**< who answered; -1 not known */
        /** Brokers that could have been asked, for rules that want a second
         *  opinion; 0: as many as the cache knows. */
        int32_t candidates;
        /** Why it was asked, in the caller's words, for rdmeta_topic_info();
         *  {NULL, 0}: not said. Kept to 255 bytes, and whole characters of
         *  UTF-8; a cache keeps 1024 different ones. */
        rdmeta_str_t reason;
        /** The number of the cache's last hint when it was sent: the answer
         *  ends no later one. Read only with RDMETA_REQ_SENT_HINTS, so that
         *  a program compiled without this member is read as before. */
        uint64_t sent_hints;
} rdmeta_request_t;

/** What the client should do next; bits in rdmeta_applied_t.advice. */
enum {
        RDMETA_ADVICE_ASK_AGAIN    = 1 << 0, /**< with backoff */
        RDMETA_ADVICE_ASK_OTHER    = 1 << 1, /**< another broker: this is old */
        RDMETA_ADVICE_ASK_BY_NAME  = 1 << 2, /**< a topic id is not known */
        RDMETA_ADVICE_REBOOTSTRAP  = 1 << 3  /**< error 129 (KIP-1102) */
};

/** What an apply did. */
typedef struct rdmeta_applied {
        uint64_t version;     /**< the cache's, afterwards */
        uint32_t topics;      /**< topics in the answer */
        uint32_t changed;     /**< of which differ now, removals included */
        uint32_t unchanged;   /**< of which said the same again */
        uint32_t kept_back;   /**< of which lost to what was known */
        uint32_t negative;    /**< answered unknown, denied or invalid */
        uint32_t absent;      /**< missing from an all-topics answer */
        uint32_t leaderless;  /**< partitions answered without a leader */
        uint32_t listener_not_found; /**< of which for error 72 */
        uint32_t unreachable; /**< partitions led by none of the brokers */
        uint32_t brokers_changed;    /**< 1: the broker table differs */
        uint32_t advice;             /**< RDMETA_ADVICE_... */
        int32_t throttle_ms;         /**< KIP-219; 0 before v3 */
        rdmeta_err_t error;          /**< the top-level error, v13 */
        uint32_t reserved[5];
} rdmeta_applied_t;

/**
 * Apply a Metadata response body (no header). Borrows everything; all or
 * nothing: on an error the cache is as it was, but for hints that the answer
 * ends: those of the names that were asked for, every one for ALL that is
 * applied, and none that was made after the request left.
 * `asked` NULL: unknown, from an unknown broker. `out` may be NULL; it
 * is filled on errors too (error, advice, throttle).
 * MALFORMED, UNSUPPORTED (version), NO_BROKERS, WRONG_CLUSTER, RESPONSE,
 * NO_MEMORY, FORKED. Threads: any; may wait for another writer.
 */
RDMETA_API rdmeta_err_t rdmeta_cache_apply(rdmeta_cache_t *cache,
                                           const void *response, size_t len,
                                           int16_t api_version,
                                           const rdmeta_request_t *asked,
                                           rdmeta_time_t now,
                                           rdmeta_applied_t *out);

/** Notes in `request` that it leaves now: sets sent_version, sent_hints and
 *  their flags. Call it before the request is sent, and hand the request back
 *  with its answer. Threads: any, no lock. */
RDMETA_API void rdmeta_cache_request_sent(const rdmeta_cache_t *cache,
                                          rdmeta_request_t *request);

/** Ends the hints of a request that failed: those of the names that it asked
 *  for; every one if `asked` is NULL or UNKNOWN. Hints made after the request
 *  left stay, where it says when that was. FORKED.
 *  Threads: any; may wait for another writer. */
RDMETA_API rdmeta_err_t rdmeta_cache_apply_failure(
        rdmeta_cache_t *cache, const rdmeta_request_t *asked,
        rdmeta_time_t now);

/** A leader learned from a Produce or Fetch answer (KIP-951). Borrowed. */
typedef struct rdmeta_leader_hint {
        rdmeta_str_t topic;      /**< or data NULL, and ... */
        const uint8_t *topic_id; /**< ... 16 bytes; with a name: must match */
        int32_t partition;
        int32_t leader;
        int32_t leader_epoch;
        /** The leader's endpoint if the answer carried it; host.data NULL:
         *  it did not, and the broker must be known already. rack.data NULL:
         *  the known rack stays where host and port are as known. */
        rdmeta_str_t host;
        rdmeta_str_t rack;
        int32_t port;
        int64_t reserved[2];
} rdmeta_leader_hint_t;

/** Take a leader hint if it is strictly newer than what is known; otherwise
 *  nothing happens and out->changed is 0. The deadline does not move: a
 *  refresh is still due (out->advice says so). `out` may be NULL. NO_MEMORY,
 *  FORKED, ARGUMENT (neither name nor id; an empty host, a port that is none).
 *  Threads: any; may wait for another writer. */
RDMETA_API rdmeta_err_t rdmeta_cache_apply_leader_hint(
        rdmeta_cache_t *cache, const rdmeta_leader_hint_t *hint,
        rdmeta_time_t now, rdmeta_applied_t *out);

enum {
        RDMETA_HINT_REPLACE = 1 << 0, /**< ask although it is in flight */
        RDMETA_HINT_FORCE   = 1 << 1  /**< ask although valid or denied */
};

/**
 * Note that `topics` are about to be asked for, and say which really must be:
 * not those valid, in flight, or answered negatively a moment ago. `to_ask`
 * has room for n and receives borrows of the caller's names, duplicates
 * dropped; *n_ask their number. ttl_us <= 0: the configured one.
 * NO_MEMORY, ARGUMENT (empty or too long a name), FORKED.
 * Threads: any; may wait for another writer.
 */
RDMETA_API rdmeta_err_t rdmeta_cache_hint(rdmeta_cache_t *cache,
                                          const rdmeta_str_t *topics, size_t n,
                                          int32_t flags, int64_t ttl_us,
                                          rdmeta_time_t now,
                                          rdmeta_str_t *to_ask, size_t *n_ask);

/** End hints: of `topics`, or all of them if NULL. Returns how many, or an
 *  error < 0 (FORKED). Threads: any; may wait for another writer. */
RDMETA_API int64_t rdmeta_cache_purge_hints(rdmeta_cache_t *cache,
                                            const rdmeta_str_t *topics,
                                            size_t n, rdmeta_time_t now);

/** Forget every topic, broker and the cluster id: changes are recorded, and
 *  the version moves on if there are any. NO_MEMORY, FORKED.
 *  Threads: any; may wait for another writer. */
RDMETA_API rdmeta_err_t rdmeta_cache_purge(rdmeta_cache_t *cache,
                                           rdmeta_time_t now);

/** Let go what is past its deadline. Returns when to call again (mono_us;
 *  INT64_MAX: nothing to wait for). In a fork's child it does nothing.
 *  Threads: any; may wait for another writer. */
RDMETA_API int64_t rdmeta_cache_sweep(rdmeta_cache_t *cache,
                                      rdmeta_time_t now);

/* ------------------------------------------------------------------------
 * State
 * --------------------------------------------------------------------- */

/** The version: 0 when new, +1 with every write that changed something. Each
 *  has a record: see rdmeta_cache_changes(). Threads: any, no lock. */
RDMETA_API uint64_t rdmeta_cache_version(const rdmeta_cache_t *cache);

/** Counters and sizes; bytes are what the allocator was asked for. */
typedef struct rdmeta_stats {
        uint64_t version;
        uint64_t applies, apply_failures;
        uint64_t topics_applied, topics_unchanged, topics_changed;
        uint64_t topics_kept_back; /**< lost to what was known */
        uint64_t digest_hits;      /**< unchanged and not even parsed */
        uint64_t leader_hints_taken, leader_hints_ignored;
        uint64_t topics;    /**< valid or stale */
        uint64_t negatives; /**< unknown, denied, invalid, absent */
        uint64_t hints;     /**< in flight */
        uint64_t retained;  /**< ids and epochs of what is gone */
        uint64_t partitions;
        uint64_t bytes;         /**< everything */
        uint64_t bytes_ring;    /**< of which change records, old blocks */
        uint64_t bytes_limbo;   /**< of which waiting for readers to leave */
        uint64_t ring_records;  /**< changed topics held */
        uint64_t ring_floor;    /**< changes() from below it say resync */
        uint64_t rehashes, reseeds;
        int64_t shared_deadline_us; /**< of the last all-topics answer */
        int32_t readers, waiters, watches;
        int32_t handles; /**< names resolved and held */
        uint64_t bytes_images; /**< of `bytes`: what only images hold */
        int32_t images;        /**< taken, and not let go */
        int32_t reserved_small;
        uint64_t reasons;         /**< different ones that are kept */
        uint64_t reasons_dropped; /**< answers, for whose there was no room */
        uint64_t bytes_free; /**< of `bytes`: had for topics, and nobody's */
        uint64_t topics_moved; /**< so that memory could be given back */
        uint64_t reserved[2];
} rdmeta_stats_t;
/** Threads: any; takes the writers' lock for a moment. Cannot fail. */
RDMETA_API void rdmeta_cache_stats(rdmeta_cache_t *cache,
                                   rdmeta_stats_t *out);

/* ------------------------------------------------------------------------
 * Names
 * --------------------------------------------------------------------- */

/* Threads: any; what they return lives for ever. */

/** "UNKNOWN_TOPIC_OR_PARTITION", "RDMETA_STALE" ...; never NULL.
 *  Threads: any. */
RDMETA_API const char *rdmeta_err_name(rdmeta_err_t err);
/** "leader_changed" ... as in change records; NULL: no such kind.
 *  Threads: any. */
RDMETA_API const char *rdmeta_change_kind_name(int32_t kind);
/** "poll", "hint", "log", "expiry", "purge"; NULL: no such source.
 *  Threads: any. */
RDMETA_API const char *rdmeta_source_name(int32_t source);
/** RDMETA_ABI_VERSION of the library. Threads: any. */
RDMETA_API uint32_t rdmeta_abi_version(void);

#ifdef __cplusplus
}
#endif

#include "rdmeta_arrow.h"
#include "rdmeta_change.h"
#include "rdmeta_handle.h"
#include "rdmeta_image.h"
#include "rdmeta_reader.h"
#include "rdmeta_wire.h"

#endif /* RDMETA_H */
