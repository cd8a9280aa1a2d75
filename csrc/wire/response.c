#include "wire/response.h"

const uint8_t rdmeta_wire_zero_id[16];

uint32_t rdmeta_wire_fields(int16_t version) {
        static const uint32_t table[] = {
                RDMETA_WIRE_V0,  RDMETA_WIRE_V1,  RDMETA_WIRE_V2,
                RDMETA_WIRE_V3,  RDMETA_WIRE_V4,  RDMETA_WIRE_V5,
                RDMETA_WIRE_V6,  RDMETA_WIRE_V7,  RDMETA_WIRE_V8,
                RDMETA_WIRE_V9,  RDMETA_WIRE_V10, RDMETA_WIRE_V11,
                RDMETA_WIRE_V12, RDMETA_WIRE_V13};

        _Static_assert(sizeof(table) / sizeof(*table) ==
                               RDMETA_METADATA_MAX_VERSION + 1,
                       "one word per version");
        if (version < RDMETA_METADATA_MIN_VERSION ||
            version > RDMETA_METADATA_MAX_VERSION)
                return 0;
        return table[version];
}

/* ------------------------------------------------------------------------
 * The parts that come once per response
 * --------------------------------------------------------------------- */

static int is_flexible(uint32_t fields) {
        return !!(fields & RDMETA_WIRE_FLEXIBLE);
}

/* Returns the fewest bytes of a broker: id, host, port and the fields that the
 * version adds. */
static size_t broker_min(uint32_t fields) {
        const size_t length = is_flexible(fields) ? 1 : 2;

        return 8 + length + (fields & RDMETA_WIRE_RACK ? length : 0) +
               (is_flexible(fields) ? 1 : 0);
}

/* Returns the fewest bytes of a topic: error, name, partitions and the fields
 * that the version adds. */
static size_t topic_min(uint32_t fields) {
        return 2 + (is_flexible(fields) ? 1 + 1 + 1 : 2 + 4) +
               (fields & RDMETA_WIRE_TOPIC_ID ? 16 : 0) +
               (fields & RDMETA_WIRE_INTERNAL ? 1 : 0) +
               (fields & RDMETA_WIRE_TOPIC_OPS ? 4 : 0);
}

rdmeta_err_t rdmeta_wire_open(rdmeta_wire_t *w, const void *p, size_t len,
                              int16_t version, int32_t flags) {
        memset(w, 0, sizeof(*w));
        w->fields          = rdmeta_wire_fields(version);
        w->flags           = flags;
        w->head.controller = -1;
        w->head.operations = RDMETA_NO_OPERATIONS;
        /* With len 0 `p` may be NULL, and C allows no addition to NULL. */
        rdmeta_buf_init(&w->buf, len ? p : rdmeta_wire_zero_id, len);
        if (!w->fields)
                return RDMETA_ERR_UNSUPPORTED;
        if (w->fields & RDMETA_WIRE_THROTTLE)
                w->head.throttle_ms = rdmeta_buf_i32(&w->buf);
        w->head.brokers = rdmeta_buf_count(&w->buf, is_flexible(w->fields),
                                           broker_min(w->fields), NULL);
        return RDMETA_OK;
}

void rdmeta_wire_broker(rdmeta_wire_t *w, rdmeta_broker_t *out) {
        rdmeta_buf_t *b = &w->buf;
        const int flex  = is_flexible(w->fields);

        memset(out, 0, sizeof(*out));
        out->id   = rdmeta_buf_i32(b);
        out->host = rdmeta_buf_str(b, flex, 0);
        out->port = rdmeta_buf_i32(b);
        if (w->fields & RDMETA_WIRE_RACK)
                out->rack = rdmeta_buf_str(b, flex, 1);
        if (flex)
                rdmeta_buf_tags(b);
}

void rdmeta_wire_middle(rdmeta_wire_t *w) {
        rdmeta_buf_t *b = &w->buf;
        const int flex  = is_flexible(w->fields);

        if (w->fields & RDMETA_WIRE_CLUSTER_ID)
                w->head.cluster_id = rdmeta_buf_str(b, flex, 1);
        if (w->fields & RDMETA_WIRE_CONTROLLER)
                w->head.controller = rdmeta_buf_i32(b);
        w->head.topics = rdmeta_buf_count(b, flex, topic_min(w->fields), NULL);
}

/* Returns whether the rest is one zero byte that the flags tolerate, as
 * librdkafka's mock brokers send it. */
static int is_tolerable(const rdmeta_wire_t *w) {
        return (w->flags & RDMETA_REQ_TOLERATE_TRAILING) &&
               rdmeta_buf_left(&w->buf) == 1 && *w->buf.p == 0;
}

rdmeta_err_t rdmeta_wire_close(rdmeta_wire_t *w) {
        rdmeta_buf_t *b = &w->buf;

        if (w->fields & RDMETA_WIRE_CLUSTER_OPS)
                w->head.operations = rdmeta_buf_i32(b);
        if (w->fields & RDMETA_WIRE_TOP_ERROR)
                w->head.error = rdmeta_buf_i16(b);
        if (is_flexible(w->fields))
                rdmeta_buf_tags(b);
        if (rdmeta_buf_left(b) && !is_tolerable(w))
                rdmeta_buf_fail(b);
        return b->bad ? RDMETA_ERR_MALFORMED : RDMETA_OK;
}

/* ------------------------------------------------------------------------
 * The public decoder
 * --------------------------------------------------------------------- */

typedef struct walk {
        rdmeta_wire_t wire;
        const rdmeta_wire_visitor_t *visitor;
        void *opaque;
} walk_t;

/* Passes `view` to the visitor's function, if it has one. Returns MALFORMED if
 * the bytes were not all there. */
#define WALK_SHOW(walk, what, view)                                           \
        ((walk)->wire.buf.bad ? RDMETA_ERR_MALFORMED                          \
         : (walk)->visitor->what                                              \
                 ? (walk)->visitor->what((walk)->opaque, (view))              \
                 : RDMETA_OK)

static rdmeta_err_t walk_brokers(walk_t *walk) {
        rdmeta_err_t err = RDMETA_OK;
        rdmeta_broker_t broker;
        uint32_t i;

        for (i = 0; i < walk->wire.head.brokers && !err; i++) {
                rdmeta_wire_broker(&walk->wire, &broker);
                err = WALK_SHOW(walk, broker, &broker);
        }
        return err;
}

static rdmeta_err_t walk_topic(walk_t *walk) {
        rdmeta_buf_t *b       = &walk->wire.buf;
        const uint32_t fields = walk->wire.fields;
        rdmeta_wire_partition_t partition;
        rdmeta_wire_topic_t topic;
        rdmeta_err_t err;
        uint32_t i;

        rdmeta_wire_topic(b, fields, &topic);
        err = WALK_SHOW(walk, topic, &topic);
        for (i = 0; i < topic.partitions && !err; i++) {
                rdmeta_wire_partition(b, fields, &partition);
                err = WALK_SHOW(walk, partition, &partition);
        }
        if (err)
                return err;
        rdmeta_wire_topic_end(b, fields, &topic);
        return WALK_SHOW(walk, topic_end, &topic);
}

static rdmeta_err_t walk_response(walk_t *walk) {
        rdmeta_err_t err = walk_brokers(walk);
        uint32_t i;

        if (err)
                return err;
        rdmeta_wire_middle(&walk->wire);
        err = WALK_SHOW(walk, head, &walk->wire.head);
        for (i = 0; i < walk->wire.head.topics && !err; i++)
                err = walk_topic(walk);
        if (!err)
                err = rdmeta_wire_close(&walk->wire);
        return err ? err : WALK_SHOW(walk, end, &walk->wire.head);
}

rdmeta_err_t rdmeta_metadata_response_decode(
        const void *response, size_t len, int16_t version, int32_t flags,
        const rdmeta_wire_visitor_t *visitor, void *opaque, size_t *offset) {
        walk_t walk;
        rdmeta_err_t err;
        const rdmeta_buf_t *b = &walk.wire.buf;

        walk.visitor = visitor;
        walk.opaque  = opaque;
        err = rdmeta_wire_open(&walk.wire, response, len, version, flags);
        if (!err)
                err = walk_response(&walk);
        if (offset)
                *offset = (size_t)((b->bad ? b->bad : b->p) - b->begin);
        return err;
}
