/* gen_old: see gen_old.h. */
#include "gen_old.h"

#include <stdio.h>
#include <string.h>

static uint8_t *put16(uint8_t *o, uint32_t v) {
        *o++ = (uint8_t)(v >> 8);
        *o++ = (uint8_t)v;
        return o;
}

static uint8_t *put32(uint8_t *o, uint32_t v) {
        return put16(put16(o, v >> 16), v);
}

static uint8_t *put_str(uint8_t *o, const char *s, size_t len) {
        o = put16(o, (uint32_t)len);
        memcpy(o, s, len);
        return o + len;
}

static uint8_t *put_brokers(const gen_t *g, uint8_t *o) {
        char s[64];
        uint32_t i;
        int n;

        o = put32(o, g->conf.brokers);
        for (i = 0; i < g->conf.brokers; i++) {
                o = put32(o, (uint32_t)g->broker_ids[i]);
                n = snprintf(s, sizeof(s), "broker-%u.kafka.example.com", i);
                o = put_str(o, s, (size_t)n);
                o = put32(o, 9092);
                n = snprintf(s, sizeof(s), "rack-%u", i % 3);
                o = put_str(o, s, (size_t)n);
        }
        return o;
}

static uint8_t *put_ids(const gen_t *g, uint8_t *o, const gen_partition_t *p,
                        unsigned which) {
        int k;

        o = put32(o, (uint32_t)__builtin_popcount(which));
        for (k = 0; k < GEN_RF; k++)
                if (which >> k & 1)
                        o = put32(o,
                                  (uint32_t)g->broker_ids[p->replicas[k]]);
        return o;
}

static uint8_t *put_partition(const gen_t *g, uint8_t *o, uint32_t id,
                              const gen_partition_t *p, int version) {
        o = put16(o, 0); /* error */
        o = put32(o, id);
        o = put32(o, (uint32_t)g->broker_ids[p->replicas[p->leader]]);
        o = put_ids(g, o, p, (1u << GEN_RF) - 1);
        o = put_ids(g, o, p, p->isr);
        return version < 5 ? o : put32(o, 0); /* no offline replicas */
}

size_t gen_old_bound(const gen_t *g) {
        size_t partition = 14 + 2 * (4 + 4 * GEN_RF);

        return gen_response_bound(g) + g->conf.brokers * 16 +
               (size_t)g->conf.topics * g->conf.per_topic * partition;
}

size_t gen_old_response(const gen_t *g, uint32_t topics, int version,
                        uint8_t *out) {
        static const char cluster[] = "bench-cluster-00000001";
        const gen_partition_t *p    = g->partitions;
        uint8_t *o                  = out;
        uint32_t t, i;

        o = put32(o, 0); /* throttle */
        o = put_brokers(g, o);
        o = put_str(o, cluster, sizeof(cluster) - 1);
        o = put32(o, (uint32_t)g->broker_ids[0]);
        o = put32(o, topics);
        for (t = 0; t < topics; t++) {
                size_t len;
                const char *name = gen_name(g, t, &len);

                o    = put16(o, 0); /* error */
                o    = put_str(o, name, len);
                *o++ = 0; /* not internal */
                o    = put32(o, g->conf.per_topic);
                for (i = 0; i < g->conf.per_topic; i++)
                        o = put_partition(g, o, i, p++, version);
        }
        return (size_t)(o - out);
}
