/*
 * response: Metadata responses as borrowed views. This code knows no cache.
 *
 * The fields that a version has are one word of bits, from one table, which
 * requests use, too. The functions below take that word as an argument and are
 * inlined. So a caller with a constant word gets code without version tests,
 * and every other caller gets the same code with them.
 *
 *     rdmeta_wire_open      head and brokers may be read
 *       rdmeta_wire_broker      x head.brokers
 *     rdmeta_wire_middle    cluster id, controller, count of topics
 *       rdmeta_wire_topic       x head.topics
 *         rdmeta_wire_partition     x topic.partitions
 *       rdmeta_wire_topic_end
 *     rdmeta_wire_close     last fields, trailing bytes; returns the error
 *
 * Errors stick to the buffer: a caller checks `buf.bad` before it loops, or
 * keeps a value.
 */
#pragma once

#include "base/buf.h"
#include "rdmeta.h"

enum {
        RDMETA_WIRE_FLEXIBLE     = 1 << 0,  /* v9: compact, tagged */
        RDMETA_WIRE_THROTTLE     = 1 << 1,  /* v3 */
        RDMETA_WIRE_RACK         = 1 << 2,  /* v1 */
        RDMETA_WIRE_CLUSTER_ID   = 1 << 3,  /* v2 */
        RDMETA_WIRE_CONTROLLER   = 1 << 4,  /* v1 */
        RDMETA_WIRE_INTERNAL     = 1 << 5,  /* v1 */
        RDMETA_WIRE_TOPIC_ID     = 1 << 6,  /* v10 */
        RDMETA_WIRE_EPOCH        = 1 << 7,  /* v7 */
        RDMETA_WIRE_OFFLINE      = 1 << 8,  /* v5 */
        RDMETA_WIRE_TOPIC_OPS    = 1 << 9,  /* v8 */
        RDMETA_WIRE_CLUSTER_OPS  = 1 << 10, /* v8-10 */
        RDMETA_WIRE_NULL_NAME    = 1 << 11, /* v12 */
        RDMETA_WIRE_TOP_ERROR    = 1 << 12, /* v13 */
        RDMETA_WIRE_NULL_IS_ALL  = 1 << 13, /* request, v1: v0 has empty */
        RDMETA_WIRE_AUTO_CREATE  = 1 << 14, /* request, v4 */
        RDMETA_WIRE_ASK_BY_ID    = 1 << 15, /* request, v12 */
        RDMETA_WIRE_EPOCH_USABLE = 1 << 16, /* v9; before it epochs can go
                                             * backwards (librdkafka, Java) */
        RDMETA_WIRE_KNOWN        = 1 << 17  /* all, so v0's word is not 0 */
};

/* The table: the fields that each version adds to the one before it. */
enum {
        RDMETA_WIRE_V0  = RDMETA_WIRE_KNOWN,
        RDMETA_WIRE_V1  = RDMETA_WIRE_V0 | RDMETA_WIRE_RACK |
                         RDMETA_WIRE_CONTROLLER | RDMETA_WIRE_INTERNAL |
                         RDMETA_WIRE_NULL_IS_ALL,
        RDMETA_WIRE_V2  = RDMETA_WIRE_V1 | RDMETA_WIRE_CLUSTER_ID,
        RDMETA_WIRE_V3  = RDMETA_WIRE_V2 | RDMETA_WIRE_THROTTLE,
        RDMETA_WIRE_V4  = RDMETA_WIRE_V3 | RDMETA_WIRE_AUTO_CREATE,
        RDMETA_WIRE_V5  = RDMETA_WIRE_V4 | RDMETA_WIRE_OFFLINE,
        RDMETA_WIRE_V6  = RDMETA_WIRE_V5, /* throttles after answering */
        RDMETA_WIRE_V7  = RDMETA_WIRE_V6 | RDMETA_WIRE_EPOCH,
        RDMETA_WIRE_V8  = RDMETA_WIRE_V7 | RDMETA_WIRE_TOPIC_OPS |
                         RDMETA_WIRE_CLUSTER_OPS,
        RDMETA_WIRE_V9  = RDMETA_WIRE_V8 | RDMETA_WIRE_FLEXIBLE |
                         RDMETA_WIRE_EPOCH_USABLE,
        RDMETA_WIRE_V10 = RDMETA_WIRE_V9 | RDMETA_WIRE_TOPIC_ID,
        RDMETA_WIRE_V11 = RDMETA_WIRE_V10 & ~RDMETA_WIRE_CLUSTER_OPS,
        RDMETA_WIRE_V12 = RDMETA_WIRE_V11 | RDMETA_WIRE_NULL_NAME |
                          RDMETA_WIRE_ASK_BY_ID,
        RDMETA_WIRE_V13 = RDMETA_WIRE_V12 | RDMETA_WIRE_TOP_ERROR
};

/* Returns the bits of `version`, or 0 if rdmeta does not support it. */
uint32_t rdmeta_wire_fields(int16_t version);

typedef struct rdmeta_wire {
        rdmeta_buf_t buf;
        uint32_t fields;
        int32_t flags; /* RDMETA_REQ_TOLERATE_TRAILING */
        rdmeta_wire_head_t head;
} rdmeta_wire_t;

extern const uint8_t rdmeta_wire_zero_id[16];

/* Begins to read `len` bytes: sets head.brokers and head.throttle_ms. Returns 0
 * or UNSUPPORTED. `w` borrows the bytes. */
rdmeta_err_t rdmeta_wire_open(rdmeta_wire_t *w, const void *p, size_t len,
                              int16_t version, int32_t flags);
/* Reads one broker. Bad bytes set buf.bad. */
void rdmeta_wire_broker(rdmeta_wire_t *w, rdmeta_broker_t *out);
/* Reads head.cluster_id, controller and topics. Bad bytes set buf.bad. */
void rdmeta_wire_middle(rdmeta_wire_t *w);
/* Reads head.operations and error. Returns 0, or MALFORMED for any error so far
 * and for trailing bytes (but for one zero byte that the flags tolerate). */
rdmeta_err_t rdmeta_wire_close(rdmeta_wire_t *w);

/* Reads a topic up to its partitions; `fields` is w->fields or a constant equal
 * to it. A partition takes 18 bytes at least: 14 and four varints if flexible,
 * otherwise 10 and two int32 counts. */
RDMETA_INLINE void rdmeta_wire_topic(rdmeta_buf_t *b, uint32_t fields,
                                     rdmeta_wire_topic_t *t) {
        const int flex = !!(fields & RDMETA_WIRE_FLEXIBLE);
        const uint8_t *id;

        t->error = rdmeta_buf_i16(b);
        t->name  = rdmeta_buf_str(b, flex, !!(fields & RDMETA_WIRE_NULL_NAME));
        t->id    = rdmeta_wire_zero_id;
        if (fields & RDMETA_WIRE_TOPIC_ID) {
                id = rdmeta_buf_bytes(b, 16);
                if (RDMETA_LIKELY(id != NULL))
                        t->id = id;
        }
        t->internal = 0;
        if (fields & RDMETA_WIRE_INTERNAL)
                t->internal = rdmeta_buf_i8(b) != 0;
        t->operations = RDMETA_NO_OPERATIONS;
        t->partitions = rdmeta_buf_count(b, flex, 18, NULL);
}

/* Reads one partition. */
RDMETA_INLINE void rdmeta_wire_partition(rdmeta_buf_t *b, uint32_t fields,
                                         rdmeta_wire_partition_t *out) {
        const int flex     = !!(fields & RDMETA_WIRE_FLEXIBLE);
        const size_t fixed = fields & RDMETA_WIRE_EPOCH ? 14 : 10;
        const uint8_t *p   = rdmeta_buf_bytes(b, fixed);

        if (RDMETA_UNLIKELY(!p)) {
                memset(out, 0, sizeof(*out));
                return;
        }
        out->error        = (int16_t)rdmeta_be16(p);
        out->id           = (int32_t)rdmeta_be32(p + 2);
        out->leader       = (int32_t)rdmeta_be32(p + 6);
        out->leader_epoch = -1;
        if (fields & RDMETA_WIRE_EPOCH)
                out->leader_epoch = (int32_t)rdmeta_be32(p + 10);
        out->replicas               = rdmeta_buf_ids(b, flex);
        out->isr                    = rdmeta_buf_ids(b, flex);
        out->offline_replicas.be    = b->p;
        out->offline_replicas.count = 0;
        if (fields & RDMETA_WIRE_OFFLINE)
                out->offline_replicas = rdmeta_buf_ids(b, flex);
        if (flex)
                rdmeta_buf_tags(b);
}

/*
 * Reads the common partition of v9 and later, from p on, in registers: its
 * counts take one byte each, and it has no tagged fields. Returns the end of
 * it. Returns NULL for any other partition, or one that is cut off; then the
 * caller calls rdmeta_wire_partition(), which reads it or sets the error.
 */
RDMETA_INLINE const uint8_t *
rdmeta_wire_partition_plain(const uint8_t *p, const uint8_t *end,
                            rdmeta_wire_partition_t *out) {
        rdmeta_wire_ids_t *const lists[3] = {&out->replicas, &out->isr,
                                             &out->offline_replicas};
        int i;

        if (RDMETA_UNLIKELY(end - p < 18))
                return NULL;
        out->error        = (int16_t)rdmeta_be16(p);
        out->id           = (int32_t)rdmeta_be32(p + 2);
        out->leader       = (int32_t)rdmeta_be32(p + 6);
        out->leader_epoch = (int32_t)rdmeta_be32(p + 10);
        p += 14;
        for (i = 0; i < 3; i++) {
                const uint32_t n = (uint32_t)*p - 1;
                if (RDMETA_UNLIKELY(n > 126) ||
                    RDMETA_UNLIKELY((size_t)(end - p) < 4 * n + 4))
                        return NULL;
                lists[i]->count = n;
                lists[i]->be    = p + 1;
                p += 1 + 4 * (size_t)n;
        }
        return *p ? NULL : p + 1;
}

/* Reads the fields of a topic that follow its partitions. */
RDMETA_INLINE void rdmeta_wire_topic_end(rdmeta_buf_t *b, uint32_t fields,
                                         rdmeta_wire_topic_t *t) {
        if (fields & RDMETA_WIRE_TOPIC_OPS)
                t->operations = rdmeta_buf_i32(b);
        if (fields & RDMETA_WIRE_FLEXIBLE)
                rdmeta_buf_tags(b);
}
