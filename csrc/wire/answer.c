#include "wire/answer.h"

#include "base/alloc.h"
#include "base/buf.h"

enum { UVAR_MAX = 5 };

/* Makes room for `n` more bytes. Returns 0 after an error. */
static int answer_room(rdmeta_answer_t *a, size_t n) {
        size_t capacity = a->capacity;
        uint8_t *grown;

        if (RDMETA_UNLIKELY(a->err))
                return 0;
        if (RDMETA_LIKELY(n <= capacity - a->len))
                return 1;
        while (capacity - a->len < n)
                capacity = 2 * capacity + 1024;
        grown = (uint8_t *)realloc(a->data, capacity);
        if (!grown) {
                a->err = RDMETA_ERR_NO_MEMORY;
                return 0;
        }
        a->data     = grown;
        a->capacity = capacity;
        return 1;
}

static void answer_fail(rdmeta_answer_t *a) {
        if (!a->err)
                a->err = RDMETA_ERR_ARGUMENT;
}

/* ---- values; there is room for them ------------------------------------- */

RDMETA_INLINE uint8_t *put_16(uint8_t *p, int32_t v) {
        const uint16_t be = __builtin_bswap16((uint16_t)v);

        memcpy(p, &be, 2);
        return p + 2;
}

RDMETA_INLINE uint8_t *put_32(uint8_t *p, int32_t v) {
        const uint32_t be = __builtin_bswap32((uint32_t)v);

        memcpy(p, &be, 4);
        return p + 4;
}

/* Writes the number of elements as a compact array's: one more. */
RDMETA_INLINE uint8_t *put_count(uint8_t *p, uint32_t count) {
        uint32_t v = count + 1;

        for (; RDMETA_UNLIKELY(v >= 0x80); v >>= 7)
                *p++ = (uint8_t)(v | 0x80);
        *p++ = (uint8_t)v;
        return p;
}

RDMETA_INLINE uint8_t *put_bytes(uint8_t *p, const void *bytes, size_t n) {
        if (n)
                memcpy(p, bytes, n);
        return p + n;
}

/* Writes a string; one without data is null. */
RDMETA_INLINE uint8_t *put_str(uint8_t *p, rdmeta_str_t s) {
        if (!s.data) {
                *p++ = 0;
                return p;
        }
        return put_bytes(put_count(p, (uint32_t)s.len), s.data, s.len);
}

RDMETA_INLINE uint8_t *put_ids(uint8_t *p, rdmeta_wire_ids_t ids) {
        return put_bytes(put_count(p, ids.count), ids.be,
                         4 * (size_t)ids.count);
}

static int is_str(rdmeta_str_t s, int nullable) {
        return s.data ? s.len <= INT16_MAX : nullable && !s.len;
}

/* ---- the parts of an answer --------------------------------------------- */

/* Takes one of the elements that were announced. */
static void answer_take(rdmeta_answer_t *a, uint32_t *left, int is_sound) {
        if (!*left || !is_sound)
                answer_fail(a);
        else
                --*left;
}

void rdmeta_answer_begin(rdmeta_answer_t *a, uint32_t brokers) {
        memset(a, 0, sizeof(*a));
        a->brokers = brokers;
        if (brokers > INT32_MAX)
                answer_fail(a);
        if (!answer_room(a, 4 + UVAR_MAX))
                return;
        a->len = (size_t)(put_count(put_32(a->data, 0), brokers) - a->data);
}

void rdmeta_answer_expect(rdmeta_answer_t *a, size_t bytes) {
        uint8_t *p;

        if (a->err || bytes <= a->capacity)
                return;
        p = (uint8_t *)rdmeta_alloc_again(bytes);
        if (!p)
                return;
        memcpy(p, a->data, a->len);
        free(a->data);
        a->data     = p;
        a->capacity = bytes;
}

void rdmeta_answer_broker(rdmeta_answer_t *a, const rdmeta_broker_t *broker) {
        uint8_t *p;

        answer_take(a, &a->brokers,
                    is_str(broker->host, 0) && is_str(broker->rack, 1));
        if (!answer_room(a, 9 + 2 * UVAR_MAX + broker->host.len +
                                    broker->rack.len))
                return;
        p      = put_32(a->data + a->len, broker->id);
        p      = put_32(put_str(p, broker->host), broker->port);
        p      = put_str(p, broker->rack);
        *p++   = 0;
        a->len = (size_t)(p - a->data);
}

void rdmeta_answer_head(rdmeta_answer_t *a, const rdmeta_wire_head_t *head) {
        uint8_t *p;

        if (a->brokers || head->topics > INT32_MAX ||
            !is_str(head->cluster_id, 1))
                answer_fail(a);
        if (!answer_room(a, 4 + 2 * UVAR_MAX + head->cluster_id.len))
                return;
        a->topics = head->topics;
        p         = put_str(a->data + a->len, head->cluster_id);
        p         = put_32(p, head->controller);
        p         = put_count(p, head->topics);
        a->len    = (size_t)(p - a->data);
}

void rdmeta_answer_topic(rdmeta_answer_t *a,
                         const rdmeta_wire_topic_t *topic) {
        uint8_t *p;

        answer_take(a, &a->topics,
                    is_str(topic->name, 1) && topic->id && !a->partitions &&
                            topic->partitions <= INT32_MAX);
        if (!answer_room(a, 2 + 16 + 1 + 2 * UVAR_MAX + topic->name.len))
                return;
        a->partitions = topic->partitions;
        p             = put_16(a->data + a->len, topic->error);
        p             = put_bytes(put_str(p, topic->name), topic->id, 16);
        *p++          = !!topic->internal;
        p             = put_count(p, topic->partitions);
        a->len        = (size_t)(p - a->data);
}

void rdmeta_answer_partition(rdmeta_answer_t *a,
                             const rdmeta_wire_partition_t *row) {
        const uint64_t ids = (uint64_t)row->replicas.count + row->isr.count +
                             row->offline_replicas.count;
        uint8_t *p;

        answer_take(a, &a->partitions, ids <= INT32_MAX);
        if (!answer_room(a, 15 + 3 * UVAR_MAX + 4 * (size_t)ids))
                return;
        p    = put_16(a->data + a->len, row->error);
        p    = put_32(put_32(p, row->id), row->leader);
        p    = put_ids(put_32(p, row->leader_epoch), row->replicas);
        p    = put_ids(put_ids(p, row->isr), row->offline_replicas);
        *p++ = 0;
        a->len = (size_t)(p - a->data);
}

void rdmeta_answer_topic_end(rdmeta_answer_t *a,
                             const rdmeta_wire_topic_t *topic) {
        if (a->partitions)
                answer_fail(a);
        if (!answer_room(a, 5))
                return;
        *put_32(a->data + a->len, topic->operations) = 0;
        a->len += 5;
}

rdmeta_err_t rdmeta_answer_end(rdmeta_answer_t *a) {
        if (a->brokers || a->topics || a->partitions)
                answer_fail(a);
        if (answer_room(a, 1))
                a->data[a->len++] = 0;
        return a->err;
}

void rdmeta_answer_destroy(rdmeta_answer_t *a) {
        free(a->data);
        memset(a, 0, sizeof(*a));
}

/* ---- a whole answer ------------------------------------------------------ */

rdmeta_err_t rdmeta_metadata_response_encode(
        const rdmeta_wire_head_t *head, const rdmeta_broker_t *brokers,
        const rdmeta_wire_topic_t *topics,
        const rdmeta_wire_partition_t *partitions, void *buf, size_t capacity,
        size_t *len) {
        rdmeta_answer_t a;
        rdmeta_err_t err;
        uint32_t i, k;

        rdmeta_answer_begin(&a, head->brokers);
        for (i = 0; i < head->brokers && !a.err; i++)
                rdmeta_answer_broker(&a, &brokers[i]);
        rdmeta_answer_head(&a, head);
        for (i = 0; i < head->topics && !a.err; i++) {
                rdmeta_answer_topic(&a, &topics[i]);
                for (k = 0; k < topics[i].partitions && !a.err; k++)
                        rdmeta_answer_partition(&a, partitions++);
                rdmeta_answer_topic_end(&a, &topics[i]);
        }
        err  = rdmeta_answer_end(&a);
        *len = err ? 0 : a.len;
        if (!err && a.len > capacity)
                err = RDMETA_ERR_TOO_SMALL;
        else if (!err)
                memcpy(buf, a.data, a.len);
        rdmeta_answer_destroy(&a);
        return err;
}
