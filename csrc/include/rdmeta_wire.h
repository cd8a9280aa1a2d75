/*
 * rdmeta: Kafka's Metadata request and response (API key 3) v0-v13, alone.
 *
 * Part of rdmeta.h, which includes it; for programs that need the bytes and no
 * cache. No call here keeps anything. Threads: any.
 */
#ifndef RDMETA_WIRE_H
#define RDMETA_WIRE_H

#include "rdmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RDMETA_METADATA_MIN_VERSION 0
#define RDMETA_METADATA_MAX_VERSION 13

/**
 * Encodes the body of a Metadata request into `buf` and sets *len to its
 * length. With TOO_SMALL *len is the length that is needed (so buf NULL and
 * capacity 0 ask for it); with other errors it is 0. NAMES and IDS with n = 0
 * ask for no topics, as BROKERS does. Errors:
 * UNSUPPORTED: this version cannot ask that: "no topics" at v0; ids before v12;
 * cluster operations outside v8-10; topic operations before v8; NAMES without
 * RDMETA_REQ_AUTO_CREATE before v4, where it is implied. (A broker creates
 * nothing for ALL and BROKERS, so those are fine.)
 * ARGUMENT: ASKED_UNKNOWN, topics with ALL or BROKERS, names and ids mixed,
 * an empty name or one above 32 767 bytes, an id of zeros. TOO_SMALL.
 * Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_metadata_request_encode(
        int16_t version, const rdmeta_request_t *request, void *buf,
        size_t capacity, size_t *len);

typedef struct rdmeta_wire_partition {
        int32_t id;
        int32_t leader;       /**< -1: none */
        int32_t leader_epoch; /**< -1: not in the response, or before v7 */
        int32_t error;
        rdmeta_wire_ids_t replicas, isr, offline_replicas;
} rdmeta_wire_partition_t;

typedef struct rdmeta_wire_topic {
        rdmeta_str_t name;   /**< data NULL: an id that is unknown (v12+) */
        const uint8_t *id;   /**< 16 bytes, all zero before v10 */
        int32_t error;
        int32_t internal;    /**< 0 or 1 */
        uint32_t partitions;
        int32_t operations; /**< set only when topic_end is called */
} rdmeta_wire_topic_t;

typedef struct rdmeta_wire_head {
        int32_t throttle_ms;
        rdmeta_str_t cluster_id; /**< data NULL: not in the response */
        int32_t controller;      /**< -1: not in the response */
        uint32_t brokers, topics;
        int32_t operations; /**< the cluster's, v8-10; set at the end */
        rdmeta_err_t error; /**< v13's last field; set at the end */
} rdmeta_wire_head_t;

/** The calls of the decoder, in the order of the bytes; NULL members are
 *  skipped. A call that returns other than 0 ends the decoding, which returns
 *  that value. Views are borrowed from the response. Nothing is allocated. */
typedef struct rdmeta_wire_visitor {
        int32_t (*broker)(void *opaque, const rdmeta_broker_t *broker);
        /** Called after the last broker; head->topics topics follow. */
        int32_t (*head)(void *opaque, const rdmeta_wire_head_t *head);
        int32_t (*topic)(void *opaque, const rdmeta_wire_topic_t *topic);
        int32_t (*partition)(void *opaque,
                             const rdmeta_wire_partition_t *partition);
        int32_t (*topic_end)(void *opaque, const rdmeta_wire_topic_t *topic);
        int32_t (*end)(void *opaque, const rdmeta_wire_head_t *head);
} rdmeta_wire_visitor_t;

/** Decodes a response body and calls `visitor`. `flags`:
 *  RDMETA_REQ_TOLERATE_TRAILING or 0. Errors: MALFORMED: *offset (may be NULL)
 *  is the byte. UNSUPPORTED: the version. Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_metadata_response_decode(
        const void *response, size_t len, int16_t version, int32_t flags,
        const rdmeta_wire_visitor_t *visitor, void *opaque, size_t *offset);

/**
 * Encodes the body of a Metadata response of version 12 into `buf` and sets
 * *len to its length, as rdmeta_metadata_request_encode() does. `head` says how
 * many brokers and topics there are, each topic how many of `partitions` are
 * its own; they follow on each other. Version 12 has neither the head's error
 * nor its operations, and the throttle time becomes 0. It allocates the bytes
 * for a while. ARGUMENT: a string above 32 767 bytes, or NULL where it may not
 * be; too many brokers, topics or partitions. TOO_SMALL, NO_MEMORY. Threads:
 * any.
 */
RDMETA_API rdmeta_err_t rdmeta_metadata_response_encode(
        const rdmeta_wire_head_t *head, const rdmeta_broker_t *brokers,
        const rdmeta_wire_topic_t *topics,
        const rdmeta_wire_partition_t *partitions, void *buf, size_t capacity,
        size_t *len);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_WIRE_H */
