/*
 * response: Metadata requests and responses as borrowed views. Knows no cache.
 *
 * What a version has is one word of bits, out of one table; the readers below
 * take that word as an argument and are inlined, so that a caller with a
 * constant word gets code without version tests, and everybody else gets the
 * same code with them.
 *
 *     rdmeta_wire_open      head and brokers may be read
 *       rdmeta_wire_broker      x head.brokers
 *     rdmeta_wire_middle    cluster id, controller, count of topics
 *       rdmeta_wire_topic       x head.topics
 *         rdmeta_wire_partition     x topic.partitions
 *       rdmeta_wire_topic_end
 *     rdmeta_wire_close     last fields, trailing bytes; says whether all fit
 *
 * Errors stick to the buffer: look at `buf.bad` before looping or keeping.
 */
#ifndef RDMETA_WIRE_RESPONSE_H
#define RDMETA_WIRE_RESPONSE_H

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
        RDMETA_WIRE_EPOCH_USABLE = 1 << 16, /* v9: librdkafka, Java: before
                                             * it epochs can go backwards */
        RDMETA_WIRE_KNOWN        = 1 << 17  /* every version: v0 is no 0 */
};

/* The table: what each version is beyond the one before it. */
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

/* The bits of `version`, 0 if it is not one of ours. */
uint32_t rdmeta_wire_fields(int16_t version);

typedef struct rdmeta_wire {
        rdmeta_buf_t buf;
        uint32_t fields;
        int32_t flags; /* RDMETA_REQ_TOLERATE_TRAILING */
        rdmeta_wire_head_t head;
} rdmeta_wire_t;

extern const uint8_t rdmeta_wire_zero_id[16];

/* UNSUPPORTED, or 0 with head.brokers and throttle_ms set. */
rdmeta_err_t rdmeta_wire_open(rdmeta_wire_t *w, const void *p, size_t len,
                              int16_t version, int32_t flags);
/* One broker; MALFORMED strings leave buf.bad set. */
void rdmeta_wire_broker(rdmeta_wire_t *w, rdmeta_broker_t *out);
/* head.cluster_id, controller, topics. */
void rdmeta_wire_middle(rdmeta_wire_t *w);
/* head.operations, error; 0, or MALFORMED for any error so far and for bytes
 * left over (but one, zero, where the flags tolerate it). */
rdmeta_err_t rdmeta_wire_close(rdmeta_wire_t *w);

/* A topic up to its partitions; `fields` is w->fields or a constant equal to
 * it. A partition takes 18 bytes at least:
 * 14 and four varints if flexible, otherwise 10 and two int32 counts. */
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
 * A partition as v9 and later write it, where its counts take one byte each and
 * it has no tagged fields: in registers, from p on. NULL: it is otherwise, or
 * is cut off; the reader above says which.
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

RDMETA_INLINE void rdmeta_wire_topic_end(rdmeta_buf_t *b, uint32_t fields,
                                         rdmeta_wire_topic_t *t) {
        if (fields & RDMETA_WIRE_TOPIC_OPS)
                t->operations = rdmeta_buf_i32(b);
        if (fields & RDMETA_WIRE_FLEXIBLE)
                rdmeta_buf_tags(b);
}

#endif /* RDMETA_WIRE_RESPONSE_H */
