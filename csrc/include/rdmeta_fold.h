/*
 * rdmeta: change records folded into intervals. Part of rdmeta.h, which
 * includes it.
 *
 * A fold takes the change records of one origin (a recording) in order. It
 * holds a small row per partition, broker, topic and configuration. It returns
 * *intervals*: a state, and the time in which it held, [began_at, ended_at). An
 * interval ends when the state changes, at midnight UTC, and where the
 * observation ends.
 *
 * A record counts from the first `observed_from` or `resync` on. The records
 * of one version and time are one change. An interval that began and ended at
 * one moment is kept, unless it only went on over a midnight. Times never run
 * backwards: a record has the latest time so far.
 *
 * The columns of all tables; `?` may be null. Each table begins with
 * cluster_id. Intervals end with these columns:
 *     began_at, ended_at, us, began_by, ended_by, unseen_us?, source?, origin,
 *     version, offset?, partial
 *
 * partition_interval  topic, topic_id?, partition, leader?, leader_epoch?,
 *                     partition_epoch?, isr?, replicas?, adding?, removing?,
 *                     elr?, offline?, min_isr?, racks?
 * broker_interval     broker, broker_epoch?, rack?, host, port, fenced?,
 *                     shutting_down?
 * topic_interval      topic, topic_id?, partitions
 * config_interval     resource_type, resource, key, value
 * controller          broker?, epoch
 * leader_change       topic, topic_id?, partition, observed_at, old_leader?,
 *                     new_leader?, old_leader_epoch?, new_leader_epoch?,
 *                     elections?, source?, source_broker?, unseen_us?, origin,
 *                     version, offset?, recordings, partial
 * change              kind, topic?, topic_id?, partition?, broker?,
 *                     observed_at, source?, source_broker?, old_isr?, new_isr?,
 *                     old_replicas?, new_replicas?, old_offline?,
 *                     new_offline?, detail?, unseen_us?, origin, version,
 *                     offset?, partial
 *
 * `began_by` and `ended_by` are a kind of change, or one of these words.
 * `baseline`: the state stood when the observation began, or before
 * `counts_from`. `midnight`. `open`: the recording had not ended. `gap`: it
 * ended.
 * Only records of a metadata log tell partition_epoch, adding, removing, elr,
 * broker_epoch, fenced, shutting_down and controllers. The epochs are those of
 * an interval's first record. A configuration of all brokers has the resource
 * "". A row of `controller` without a broker is the time between the last
 * record of one leader and the first one of the next, with the former's epoch.
 * `broker` of an unclean_election in `change` is the new leader.
 * `partial` is true if the fold has passed over records of unknown kinds. It
 * is also true for a topic whose partitions no record listed.
 *
 * Threads: any; one thread at a time may use a fold.
 */
#ifndef RDMETA_FOLD_H
#define RDMETA_FOLD_H

#include "rdmeta.h"
#include "rdmeta_arrow.h"
#include "rdmeta_change.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ArrowSchema;
struct ArrowArray;
struct ArrowArrayStream;
struct rdmeta_change;

typedef struct rdmeta_fold rdmeta_fold_t;

/** The tables of a fold, for rdmeta_fold_take() and rdmeta_arrow_schema(). */
enum {
        RDMETA_FOLD_PARTITION_INTERVAL = 5,
        RDMETA_FOLD_BROKER_INTERVAL,
        RDMETA_FOLD_TOPIC_INTERVAL,
        RDMETA_FOLD_CONFIG_INTERVAL,
        RDMETA_FOLD_LEADER_CHANGE,
        RDMETA_FOLD_CHANGE,
        RDMETA_FOLD_CONTROLLER
};

/** All tables, for the configuration's `tables`. */
enum { RDMETA_FOLD_ALL = (1 << 12) - (1 << 5) };

/** Why the standing intervals end, for rdmeta_fold_end(). */
enum {
        RDMETA_FOLD_OPEN = 0, /**< the recording had not ended */
        RDMETA_FOLD_GAP,      /**< the recording ended */
        RDMETA_FOLD_MIDNIGHT  /**< another recording goes on */
};

/** The version of the bytes that rdmeta_fold_save() writes. They have it, as a
 *  little-endian uint64, at offset 8. */
enum { RDMETA_FOLD_STATE_VERSION = 3 };

/** The configuration. Call rdmeta_fold_conf_init() first. */
typedef struct rdmeta_fold_conf {
        size_t size; /**< sizeof(rdmeta_fold_conf_t), set by init */
        rdmeta_str_t cluster_id; /**< in every row; 16 383 bytes at most */
        rdmeta_str_t origin;     /**< in every row; 16 383 bytes at most */
        int64_t counts_from; /**< intervals are cut to begin here; INT64_MIN */
        int64_t counts_to;   /**< and to end here; INT64_MAX */
        /** Only topics with XXH64(name) % buckets == bucket have rows. Brokers
         *  have rows in bucket 0. */
        uint32_t buckets; /**< 1 */
        uint32_t bucket;  /**< 0 */
        /** The tables that the fold makes rows of: the sum of 1 << table. */
        uint32_t tables; /**< RDMETA_FOLD_ALL */
        /** The bytes of rdmeta_fold_save(), of the same cluster, origin and
         *  bucket: the fold goes on from there. NULL: it begins empty. */
        const void *state;
        size_t state_size;
        uint64_t seed; /**< of hash tables; 0: from the system's randomness */
        rdmeta_allocator_t allocator; /**< of the state. Rows use malloc. */
        /** Bytes of rows above which rdmeta_fold_batch() takes no further
         *  record; 0: it takes all. */
        uint64_t most_waiting;
        int64_t reserved[3];
} rdmeta_fold_conf_t;

/** Sets the defaults. Cannot fail. Threads: any. */
RDMETA_API void rdmeta_fold_conf_init(rdmeta_fold_conf_t *conf);

/** Sets *out to a new fold, for rdmeta_fold_destroy(). Copies `conf`, except
 *  the allocator's `opaque`. Errors: ARGUMENT: `conf` is not possible, or the
 *  state is of another cluster, origin or bucket. MALFORMED: the state is
 *  damaged. UNSUPPORTED: another version wrote it. NO_MEMORY. Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_fold_new(const rdmeta_fold_conf_t *conf,
                                        rdmeta_fold_t **out);
/** Frees a fold. Streams that it gave stay valid. NULL is fine. Threads: any,
 *  one at a time. */
RDMETA_API void rdmeta_fold_destroy(rdmeta_fold_t *fold);

/**
 * Takes one change record. Copies what it needs. `unseen_us`: the time between
 * the observation that saw the change and the one before; < 0: not known.
 * Errors: MALFORMED: a version below the last one. A time before 1970, after
 * the year 9999, or more than 32 days after the last record or cut of an
 * observation. A partition above 1 048 575. A topic's name above 32 767 bytes.
 * A list above 65 536 ids. A text above 1 MiB. NO_MEMORY. After an error the
 * record is not taken; every record before it is. Threads: any, one at a time.
 */
RDMETA_API rdmeta_err_t rdmeta_fold_change(rdmeta_fold_t *fold,
                                           const struct rdmeta_change *change,
                                           int64_t unseen_us);
/** Takes one record as rdmeta_fold_change() does, without `unseen_us`. It is a
 *  rdmeta_change_visit_t; `fold` is the opaque. Errors: those of
 *  rdmeta_fold_change(). Threads: any, one at a time. */
RDMETA_API int32_t rdmeta_fold_visit(void *fold,
                                     const struct rdmeta_change *change);

/**
 * Takes a batch of change records. It finds columns by name. `version`,
 * `observed_at` and `kind` must be there; other columns that are missing are
 * null. Types: int32 `i`, int64 `l`, utf8 `u`, timestamp[us] `tsu:`, and
 * list<int32> `+l`. A utf8 column may be a dictionary with int32 indices, which
 * takes less time. Columns of other names are passed over. Borrows both.
 * Errors: ARGUMENT: a column is missing or has another type, or offsets,
 * lengths or buffers contradict each other. No record is taken then. MALFORMED:
 * as in rdmeta_fold_change(), or a null where there must be a value; NO_MEMORY:
 * the records before that one are taken. TOO_SMALL: the rows have more than
 * `most_waiting` bytes: take them, and call again with the records that are
 * left. rdmeta_fold_stats() says how many are taken.
 * Threads: any, one at a time.
 */
RDMETA_API rdmeta_err_t rdmeta_fold_batch(rdmeta_fold_t *fold,
                                          const struct ArrowSchema *schema,
                                          const struct ArrowArray *batch);

/** Ends all standing intervals at a midnight; the states go on behind it. A
 *  fold does this by itself before the first record of another day. A record
 *  with an earlier time, which comes after, has that midnight as its time. Does
 *  nothing if the fold has passed that midnight, or has no record yet. Errors:
 *  ARGUMENT: `at_us` is not a midnight, or lies more than 32 days behind the
 *  last record or cut. NO_MEMORY: the same call goes on. Threads: any, one at a
 *  time. */
RDMETA_API rdmeta_err_t rdmeta_fold_cut(rdmeta_fold_t *fold, int64_t at_us);

/** Ends all standing intervals at `at_us`, or at the last record if that is
 *  later. The fold then has no state; records count from the next
 *  `observed_from` on. `by`: RDMETA_FOLD_OPEN ... Errors: ARGUMENT: another
 *  `by`, or a time more than 32 days behind the last record or cut. NO_MEMORY:
 *  the same call goes on. Threads: any, one at a time. */
RDMETA_API rdmeta_err_t rdmeta_fold_end(rdmeta_fold_t *fold, int64_t at_us,
                                        int32_t by);

/** Writes the state, without rows, to `buf` and sets *size to its bytes. Equal
 *  folds write equal bytes. Errors: TOO_SMALL: only *size is set. NO_MEMORY.
 *  Threads: any, one at a time. */
RDMETA_API rdmeta_err_t rdmeta_fold_save(rdmeta_fold_t *fold, void *buf,
                                         size_t capacity, size_t *size);

/** Makes a stream of the rows of `table` so far, which the fold then drops.
 *  The stream does not refer to the fold. Errors: ARGUMENT: the fold makes no
 *  such table.
 *  NO_MEMORY: the fold still has the rows. Threads: any, one at a time. */
RDMETA_API rdmeta_err_t rdmeta_fold_take(rdmeta_fold_t *fold, int32_t table,
                                         struct ArrowArrayStream *out);

/** Counts of what a fold has taken, and its memory. */
typedef struct rdmeta_fold_stats {
        uint64_t rows;          /**< records taken, all of those below too */
        uint64_t kinds[64];     /**< of them, by kind */
        uint64_t unknown_kinds; /**< of a kind that this library lacks */
        uint64_t before;        /**< before the first observed_from */
        uint64_t other_buckets; /**< of topics in other buckets */
        uint64_t bad_details;   /**< brokers or configurations not understood */
        uint64_t clocks_back;   /**< with a time before the latest so far */
        uint64_t bytes;         /**< memory of the state */
        uint64_t waiting;       /**< rows that take() has not returned yet */
        int64_t last_at;        /**< the latest time; INT64_MIN: none yet */
        int32_t partial;
        int32_t reserved[3];
        uint64_t waiting_bytes; /**< of these rows, about */
} rdmeta_fold_stats_t;

/** Sets *out. Cannot fail. Threads: any, one at a time. */
RDMETA_API void rdmeta_fold_stats(const rdmeta_fold_t *fold,
                                  rdmeta_fold_stats_t *out);

/** Returns what was wrong in the last call that refused a record or a value; ""
 *  if there was none. The fold owns the text until the next
 *  call. Never NULL. Threads: any, one at a time. */
RDMETA_API const char *rdmeta_fold_error(const rdmeta_fold_t *fold);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_FOLD_H */
