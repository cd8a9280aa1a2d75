/* Prefetches the topics of an answer in another order. See prefetch.h. */
#include "cache/prefetch.h"

/* Returns the hash of a topic's name and skips the topic; 0: it has no name, or
 * its bytes are malformed. */
RDMETA_INLINE uint64_t peek_topic(rdmeta_buf_t *b, uint32_t fields,
                                  const uint64_t *key) {
        rdmeta_wire_partition_t p;
        rdmeta_wire_topic_t t;
        uint64_t hash = 0;
        uint32_t i;

        rdmeta_wire_topic(b, fields, &t);
        if (t.name.len)
                hash = rdmeta_hash(key, t.name.data, t.name.len);
        for (i = 0; i < t.partitions && !b->bad; i++)
                rdmeta_wire_partition(b, fields, &p);
        rdmeta_wire_topic_end(b, fields, &t);
        return b->bad ? 0 : hash;
}

#define FIELDS_TOPIC                                                          \
        (RDMETA_WIRE_FLEXIBLE | RDMETA_WIRE_INTERNAL | RDMETA_WIRE_TOPIC_ID | \
         RDMETA_WIRE_EPOCH | RDMETA_WIRE_OFFLINE | RDMETA_WIRE_TOPIC_OPS |    \
         RDMETA_WIRE_NULL_NAME)

/* Calls peek_topic(), which is inlined twice: once with the newest versions'
 * fields as constants. */
static uint64_t peek(rdmeta_prefetch_t *h, const uint64_t *key) {
        if (!h->rest || h->buf.bad)
                return 0;
        h->rest--;
        if ((h->fields & FIELDS_TOPIC) == FIELDS_TOPIC)
                return peek_topic(&h->buf, FIELDS_TOPIC, key);
        return peek_topic(&h->buf, h->fields, key);
}

/* Returns the block of the first slot whose tag fits the hash; NULL: none. */
static const rdmeta_topic_t *guess(const rdmeta_table_t *names,
                                   uint64_t hash) {
        uint32_t k = rdmeta_slot_first(hash) & names->mask;

        for (; hash; k = (k + 1) & names->mask) {
                const uint64_t slot = atomic_load_explicit(
                        &names->slots[k], memory_order_relaxed);
                if (!slot)
                        break;
                if (rdmeta_slot_tag_is(slot, hash) &&
                    rdmeta_slot_topic(slot) != &rdmeta_tombstone.topic)
                        return rdmeta_slot_topic(slot);
        }
        return NULL;
}

void rdmeta_prefetch_step(rdmeta_prefetch_t *h) {
        const rdmeta_table_t *names = rdmeta_names(h->c);
        uint32_t i                  = h->put++ % RDMETA_PREFETCH;

        h->hash[i] = peek(h, names->key);
        rdmeta_table_prefetch(names, h->hash[i]);

        i           = (i - RDMETA_PREFETCH_STEP) % RDMETA_PREFETCH;
        h->topic[i] = guess(names, h->hash[i]);
        if (h->topic[i])
                __builtin_prefetch(h->topic[i]);

        i = (i - RDMETA_PREFETCH_STEP) % RDMETA_PREFETCH;
        if (h->topic[i])
                __builtin_prefetch(rdmeta_cold(h->topic[i]));

        i = (i - RDMETA_PREFETCH_STEP) % RDMETA_PREFETCH;
        if (h->topic[i])
                __builtin_prefetch(
                        &h->c->order.slots[rdmeta_topic_order(h->topic[i])]);
}

void rdmeta_prefetch_start(rdmeta_prefetch_t *h, const rdmeta_cache_t *c,
                           const rdmeta_buf_t *buf, uint32_t fields,
                           uint32_t rest) {
        uint32_t i;

        memset(h, 0, sizeof(*h));
        h->c      = c;
        h->buf    = *buf;
        h->fields = fields;
        h->rest   = rest;
        for (i = 0; i < 4 * RDMETA_PREFETCH_STEP; i++)
                rdmeta_prefetch_step(h);
}
