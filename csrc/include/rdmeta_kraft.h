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
#include "rdmeta_change.h"
#include "rdmeta_wire.h"

#ifdef __cplusplus
extern "C" {
#endif

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
        RDMETA_KRAFT_GAP,        /**< offsets are missing before the batch */
        RDMETA_KRAFT_CONTRADICTS /**< the record contradicts the state */
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

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_KRAFT_H */
