/*
 * rdmeta: the metadata log of KRaft. Part of rdmeta.h, which includes it.
 *
 * The caller reads files; these calls take pieces of their bytes. A *batch* is
 * the unit that Kafka writes, with one CRC. Its records are decoded by a table
 * of all types and versions of Kafka 3.3 to 4.3.
 *
 * Threads: any. One thread at a time may use a replay, or a state that is being
 * replayed.
 */
#ifndef RDMETA_KRAFT_H
#define RDMETA_KRAFT_H

#include "rdmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rdmeta_change;

/** What is wrong with bytes, or with a record. */
enum {
        RDMETA_KRAFT_OK = 0,
        RDMETA_KRAFT_CUT,        /**< the bytes end within the batch */
        RDMETA_KRAFT_ZEROS,      /**< no batch, only zeros */
        RDMETA_KRAFT_NO_BATCH,   /**< lengths or counts that no batch has */
        RDMETA_KRAFT_OLD_FORMAT, /**< message format 0 or 1 */
        RDMETA_KRAFT_BAD_CRC,
        RDMETA_KRAFT_COMPRESSED, /**< never so in a metadata log */
        RDMETA_KRAFT_BAD_RECORD, /**< a record's bytes contradict themselves */
        RDMETA_KRAFT_GAP,         /**< offsets are missing before the batch */
        RDMETA_KRAFT_CONTRADICTS, /**< the record contradicts the state */
        RDMETA_KRAFT_REACHED      /**< the end that was asked for */
};

/** One record batch of version 2. It borrows the bytes. */
typedef struct rdmeta_kraft_batch {
        int64_t base_offset, last_offset;
        int64_t base_time_ms, time_ms; /**< of the first record; the latest */
        int32_t epoch;                 /**< the leader's that wrote it */
        int32_t count;                 /**< records */
        int32_t control;               /**< 1: control records */
        int32_t reserved;
        const uint8_t *bytes; /**< the batch with its header */
        /** Bytes of the batch. With CUT: those that it takes, as far as it is
         *  known; at least one more than there are. */
        size_t size;
} rdmeta_kraft_batch_t;

/** Reads the batch at the begin of `len` bytes, and checks its CRC. Borrows the
 *  bytes. Returns RDMETA_KRAFT_OK to RDMETA_KRAFT_COMPRESSED; *out is set as
 *  far as the bytes say it. Threads: any. */
RDMETA_API int32_t rdmeta_kraft_batch(const void *bytes, size_t len,
                                      rdmeta_kraft_batch_t *out);

/** One record. It borrows the batch's bytes. */
typedef struct rdmeta_kraft_record {
        int64_t offset;
        int64_t time_us;
        int32_t epoch;
        int32_t type;    /**< Kafka's api key; or the control record's type */
        int32_t version; /**< of the type */
        int32_t control; /**< 1: a control record */
        /** The value: with the frame of three varints, or with a control
         *  record's version. */
        const uint8_t *value;
        size_t len;
} rdmeta_kraft_record_t;

/** A place in a batch; zeros: before its first record. */
typedef struct rdmeta_kraft_place {
        size_t byte; /**< of the next record, in the batch */
        int32_t next; /**< its number */
        int32_t reserved;
} rdmeta_kraft_place_t;

/** Reads the next record of a good batch, and moves *place behind it. Borrows
 *  the batch's bytes. Returns 1, or 0 behind the last record, or -1 for bad
 *  bytes. Threads: any. */
RDMETA_API int32_t rdmeta_kraft_record_next(const rdmeta_kraft_batch_t *batch,
                                            rdmeta_kraft_place_t *place,
                                            rdmeta_kraft_record_t *out);

/** What a record is about. A value that does not apply is RDMETA_NONE, or has a
 *  NULL pointer. It borrows the record's bytes. */
typedef struct rdmeta_kraft_about {
        const uint8_t *topic_id; /**< 16 bytes */
        rdmeta_str_t topic;      /**< a name, if the record has it */
        int32_t partition, broker;
} rdmeta_kraft_about_t;

/** Sets *out to what a record is about: a topic, a partition, or a broker.
 *  Threads: any. */
RDMETA_API void rdmeta_kraft_record_about(const rdmeta_kraft_record_t *record,
                                          rdmeta_kraft_about_t *out);

/** Returns the name of a record's type: "TOPIC_RECORD", "LEADER_CHANGE"; NULL:
 *  the table has none. The string is static. Threads: any. */
RDMETA_API const char *rdmeta_kraft_type_name(int32_t control, int32_t type);

/** Kafka's api keys, as far as code names them. */
enum {
        RDMETA_KRAFT_REGISTER_BROKER   = 0,
        RDMETA_KRAFT_UNREGISTER_BROKER = 1,
        RDMETA_KRAFT_TOPIC             = 2,
        RDMETA_KRAFT_PARTITION         = 3,
        RDMETA_KRAFT_CONFIG            = 4,
        RDMETA_KRAFT_PARTITION_CHANGE  = 5,
        RDMETA_KRAFT_FENCE_BROKER      = 7,
        RDMETA_KRAFT_UNFENCE_BROKER    = 8,
        RDMETA_KRAFT_REMOVE_TOPIC      = 9,
        RDMETA_KRAFT_BROKER_CHANGE     = 17,
        RDMETA_KRAFT_BEGIN             = 23,
        RDMETA_KRAFT_END               = 24,
        RDMETA_KRAFT_ABORT             = 25,
        RDMETA_KRAFT_CLEAR_ELR         = 28
};

/** The types of control records. */
enum {
        RDMETA_KRAFT_LEADER_CHANGE   = 2,
        RDMETA_KRAFT_SNAPSHOT_HEADER = 3,
        RDMETA_KRAFT_SNAPSHOT_FOOTER = 4
};

/** The types of a configuration's resource. Others have no change records. */
enum {
        RDMETA_KRAFT_OF_TOPIC  = 2,
        RDMETA_KRAFT_OF_BROKER = 4 /**< "" as its name: all brokers */
};

/** Flags of rdmeta_kraft_record_json(). */
enum {
        RDMETA_KRAFT_SHOW_SECRETS = 1 << 0, /**< else they are "***" */
        RDMETA_KRAFT_DATA_ALONE   = 1 << 1  /**< the fields, without a head */
};

/**
 * Writes a record as one JSON object, without a newline: offset, epoch, time
 * (milliseconds), type, version, data; and `topic` if it has data. `data` has
 * the fields as Kafka's DumpLogSegments prints them. A type or version that is
 * not known has its number, and `raw`, its value in base64, instead of data.
 * Secrets are "***": SCRAM salts and keys, ids of tokens, and configurations of
 * a sensitive key. Sets *len to the length, with TOO_SMALL to what is needed.
 * Errors: MALFORMED: bad bytes. TOO_SMALL. Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_kraft_record_json(
        const rdmeta_kraft_record_t *record, rdmeta_str_t topic, int32_t flags,
        char *buf, size_t capacity, size_t *len);

/** Returns 1 if the name of a configuration says that its value is a secret.
 *  Threads: any. */
RDMETA_API int32_t rdmeta_kraft_is_sensitive(rdmeta_str_t key);

/* ------------------------------------------------------------------------
 * Replay
 * --------------------------------------------------------------------- */

typedef struct rdmeta_kraft_replay rdmeta_kraft_replay_t;
/** All that the log says at one offset. It belongs to its replay. */
typedef struct rdmeta_kraft_state rdmeta_kraft_state_t;

/** The configuration. Call rdmeta_kraft_conf_init() first. */
typedef struct rdmeta_kraft_conf {
        size_t size; /**< sizeof(rdmeta_kraft_conf_t), set by init */
        /** The replay ends before the first batch that reaches beyond this
         *  offset, and before one with a later time; INT64_MAX. */
        int64_t until_offset, until_us;
        /** Visits change records, or NULL. They have what the log knows: no
         *  offline replicas and no errors. A result other than 0 ends the
         *  replay, which returns it; the record is not applied. */
        int32_t (*visit)(void *opaque, const struct rdmeta_change *change);
        void *opaque;
        rdmeta_str_t cluster_id; /**< in each change; borrowed */
        rdmeta_str_t listener;   /**< of brokers' endpoints; data NULL: the
                                  * first one; borrowed */
        /** What is known of the log before the first batch: the leader of the
         *  epoch, or RDMETA_NONE, and the latest time; INT64_MIN. */
        int32_t epoch, leader;
        int64_t latest_us;
        /** 1: goes on behind records that contradict the state, and behind
         *  gaps. They are counted, and the state is partial. */
        int32_t skip;
        /** 1: change records have the values of sensitive configurations;
         *  0: they are "***". */
        int32_t show_secrets;
        uint64_t seed; /**< of hash tables; 0: from the system's randomness */
        rdmeta_allocator_t allocator;
        int64_t reserved[4];
} rdmeta_kraft_conf_t;

/** Sets the defaults. Cannot fail. Threads: any. */
RDMETA_API void rdmeta_kraft_conf_init(rdmeta_kraft_conf_t *conf);

/** Sets *out to a replay with an empty state, for
 *  rdmeta_kraft_replay_destroy(). Copies `conf`, not what it borrows. Errors:
 *  ARGUMENT: `conf` has another size, or one of the allocator's functions.
 *  NO_MEMORY. Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_kraft_replay_new(
        const rdmeta_kraft_conf_t *conf, rdmeta_kraft_replay_t **out);
/** Frees a replay and its state. NULL is fine. Threads: any, one at a time. */
RDMETA_API void rdmeta_kraft_replay_destroy(rdmeta_kraft_replay_t *replay);

/** Moves the end: `until_offset` and `until_us` as in the configuration. So a
 *  replay goes on from one point of a log to the next. Threads: any, one at a
 *  time. */
RDMETA_API void rdmeta_kraft_replay_until(rdmeta_kraft_replay_t *replay,
                                          int64_t until_offset,
                                          int64_t until_us);

/** Why a replay ended, or what it refused. */
typedef struct rdmeta_kraft_fault {
        int32_t code;     /**< RDMETA_KRAFT_... */
        int32_t reserved;
        int64_t offset;   /**< of the record, or of the batch; -1: none */
        size_t byte;      /**< of the batch, in the bytes of the call */
        size_t needed;    /**< with CUT: bytes of the batch, at least */
        char text[192];   /**< one line, ends with NUL */
} rdmeta_kraft_fault_t;

/**
 * Applies the batches in `len` bytes of a log. *used is set to the bytes of
 * whole batches that were applied: the next call begins with what follows. A
 * batch below the state's offset changes nothing, so a call may be repeated
 * with the same bytes, as after NO_MEMORY: the changes of the record that
 * failed are then visited again. Borrows all. rdmeta_kraft_fault()
 * says how it ended: with OK at the end of the bytes, or at CUT, ZEROS or
 * REACHED. Errors: MALFORMED: the batch at *used is bad, or a record of it
 * contradicts the state; what precedes it is applied. ARGUMENT: a snapshot was
 * begun and has not ended. NO_MEMORY. Threads: any, one at a time.
 */
RDMETA_API rdmeta_err_t rdmeta_kraft_replay(rdmeta_kraft_replay_t *replay,
                                            const void *bytes, size_t len,
                                            size_t *used);
/**
 * Applies the batches of a snapshot, piece by piece as
 * rdmeta_kraft_replay() does. The state must be empty. `end` and `epoch` are
 * those of the file's name. The snapshot has ended with its footer: then
 * *ended is 1, and the log goes on at `end`. Errors: MALFORMED, NO_MEMORY.
 * ARGUMENT: the state is not empty. Threads: any, one at a time.
 */
RDMETA_API rdmeta_err_t rdmeta_kraft_replay_snapshot(
        rdmeta_kraft_replay_t *replay, const void *bytes, size_t len,
        int64_t end, int32_t epoch, size_t *used, int32_t *ended);

/** Returns how the last call ended. The replay owns it. Never NULL. Threads:
 *  any, one at a time. */
RDMETA_API const rdmeta_kraft_fault_t *
rdmeta_kraft_fault(const rdmeta_kraft_replay_t *replay);
/** Returns the state, which the replay owns and changes. Never NULL. Threads:
 *  any, one at a time. */
RDMETA_API const rdmeta_kraft_state_t *
rdmeta_kraft_replay_state(const rdmeta_kraft_replay_t *replay);

/** Visits the change records that tell the state from nothing: its brokers,
 *  topics with their partitions, and configurations. They have this time, the
 *  state's offset as version, and the offset of the record that made them so. A
 *  visit's result other than 0 ends the call, which returns it. Errors:
 *  NO_MEMORY. Threads: any, one at a time. */
RDMETA_API rdmeta_err_t rdmeta_kraft_state_changes(
        rdmeta_kraft_replay_t *replay, int64_t wall_us,
        int32_t (*visit)(void *opaque, const struct rdmeta_change *change),
        void *opaque);

/** Where a state ends, what it has, and what it lacks. */
typedef struct rdmeta_kraft_info {
        int64_t next;         /**< the offset behind what was replayed */
        int64_t snapshot_end; /**< of the snapshot that it began with; 0 */
        int64_t snapshot_us;  /**< the time of the snapshot's last record */
        int64_t latest_us;    /**< the latest time so far; INT64_MIN: none */
        int64_t transaction;  /**< offset of the open transaction's begin; -1 */
        uint64_t pending;     /**< its records, which the state lacks */
        uint64_t topics, partitions, brokers, facts, directories;
        uint64_t unknown; /**< records of unknown types or versions */
        uint64_t skipped; /**< records and gaps that `skip` passed over */
        uint64_t clocks_back;  /**< batches with a time before an earlier one */
        int32_t epoch, leader; /**< of the last batch; RDMETA_NONE: unknown */
        int32_t partial; /**< 1: something is unknown or was passed over */
        int32_t reserved[5];
} rdmeta_kraft_info_t;

/** Sets *out. Cannot fail. Threads: any, one at a time. */
RDMETA_API void rdmeta_kraft_info(const rdmeta_kraft_replay_t *replay,
                                  rdmeta_kraft_info_t *out);

/* ------------------------------------------------------------------------
 * State: views, which are valid until the next replay
 * --------------------------------------------------------------------- */

/** The record that made something what it is. */
typedef struct rdmeta_kraft_mark {
        int64_t offset, time_us;
        int32_t epoch;        /**< RDMETA_NONE: not known */
        int32_t at_or_before; /**< 1: a snapshot says it: so or earlier */
} rdmeta_kraft_mark_t;

typedef struct rdmeta_kraft_topic {
        rdmeta_str_t name;
        const uint8_t *id; /**< 16 bytes */
        uint32_t partitions;
        int32_t reserved;
        rdmeta_kraft_mark_t mark;
} rdmeta_kraft_topic_t;

typedef struct rdmeta_kraft_partition {
        int32_t id, leader, leader_epoch, partition_epoch; /**< leader -1 */
        int32_t recovery; /**< 1: recovering after an unclean election */
        int32_t reserved;
        rdmeta_wire_ids_t replicas, isr, removing, adding, elr, last_elr;
        /** Numbers for rdmeta_kraft_directory_id(), one per replica. Empty: the
         *  log does not say them. */
        rdmeta_wire_ids_t directories;
        rdmeta_kraft_mark_t mark;
} rdmeta_kraft_partition_t;

typedef struct rdmeta_kraft_broker {
        int32_t id;
        int32_t fenced, shutting_down; /**< 0 or 1 */
        uint32_t n_log_dirs, n_cordoned;
        int32_t reserved;
        int64_t epoch;
        const uint8_t *log_dirs; /**< 16 bytes each */
        const uint8_t *cordoned; /**< NULL: not known */
        /** Its registration: incarnation, endpoints, features, rack. */
        rdmeta_kraft_record_t registration;
        rdmeta_kraft_mark_t mark; /**< of the last record about it */
} rdmeta_kraft_broker_t;

/** What is no row: the last record about it. */
typedef struct rdmeta_kraft_fact {
        /** In the order of the key, which is that of the record's values. */
        const uint8_t *key;
        size_t key_len;
        rdmeta_kraft_record_t record;
        rdmeta_kraft_mark_t mark;
} rdmeta_kraft_fact_t;

/** Each sets *out and returns 1, or returns 0: there is none. With `_next` it
 *  is the first one behind a name, an id, or a key; data or key NULL: the first
 *  one of all. They borrow. Threads: any, one at a time. */
RDMETA_API int32_t rdmeta_kraft_topic_find(const rdmeta_kraft_state_t *state,
                                           rdmeta_str_t name,
                                           rdmeta_kraft_topic_t *out);
/** Finds a topic by its id; also one that the last batch has removed, which has
 *  no partitions then. Threads: any, one at a time. */
RDMETA_API int32_t rdmeta_kraft_topic_find_id(
        const rdmeta_kraft_state_t *state, const uint8_t *id,
        rdmeta_kraft_topic_t *out);
/** Finds the next topic, by name. Threads: any, one at a time. */
RDMETA_API int32_t rdmeta_kraft_topic_next(const rdmeta_kraft_state_t *state,
                                           rdmeta_str_t after,
                                           rdmeta_kraft_topic_t *out);
/** Finds a partition by its topic's id. Threads: any, one at a time. */
RDMETA_API int32_t rdmeta_kraft_partition_find(
        const rdmeta_kraft_state_t *state, const uint8_t *topic_id,
        int32_t partition, rdmeta_kraft_partition_t *out);
/** Finds the partition at a place, from 0 on, in the order of ids. Threads:
 *  any, one at a time. */
RDMETA_API int32_t rdmeta_kraft_partition_at(
        const rdmeta_kraft_state_t *state, const uint8_t *topic_id,
        uint32_t place, rdmeta_kraft_partition_t *out);
/** Finds a broker. Threads: any, one at a time. */
RDMETA_API int32_t rdmeta_kraft_broker_find(const rdmeta_kraft_state_t *state,
                                            int32_t id,
                                            rdmeta_kraft_broker_t *out);
/** Finds the broker with the next id; -1: the first one. Threads: any, one at a
 *  time. */
RDMETA_API int32_t rdmeta_kraft_broker_next(const rdmeta_kraft_state_t *state,
                                            int32_t after,
                                            rdmeta_kraft_broker_t *out);
/** Finds the next fact: of this type, behind this key; key NULL: the first one
 *  of the type or a higher one. Control records' types follow all others.
 *  Threads: any, one at a time. */
RDMETA_API int32_t rdmeta_kraft_fact_next(const rdmeta_kraft_state_t *state,
                                          int32_t control, int32_t type,
                                          const uint8_t *key, size_t key_len,
                                          rdmeta_kraft_fact_t *out);
/** Returns the 16 bytes of a directory's UUID; NULL: no such number. Threads:
 *  any, one at a time. */
RDMETA_API const uint8_t *
rdmeta_kraft_directory_id(const rdmeta_kraft_state_t *state, uint32_t number);

/**
 * Sets *out and *len to the body of a Metadata answer of version 12 about all
 * topics: what a broker that has caught up with the state would answer at this
 * listener; data NULL: at each broker's first one. Brokers are those not
 * fenced. The caller frees it with rdmeta_kraft_answer_free(). Errors:
 * NO_MEMORY. ARGUMENT: a name that no answer can have. Threads: any, one at a
 * time.
 */
RDMETA_API rdmeta_err_t rdmeta_kraft_answer(const rdmeta_kraft_state_t *state,
                                            rdmeta_str_t cluster_id,
                                            rdmeta_str_t listener, void **out,
                                            size_t *len);
/** Frees an answer. NULL is fine. Threads: any. */
RDMETA_API void rdmeta_kraft_answer_free(void *answer);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_KRAFT_H */
