/* gen: see gen.h. */
#include "gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* splitmix64: any seed is good; each step is independent of the last one. */
static uint64_t next(gen_t *g) {
        uint64_t z = g->random += 0x9e3779b97f4a7c15u;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
}

uint32_t gen_below(gen_t *g, uint32_t n) {
        return (uint32_t)((next(g) >> 32) * n >> 32);
}

static void *map(size_t size, int flags) {
        void *p = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

        if (p == MAP_FAILED) {
                fprintf(stderr, "no memory for %zu bytes\n", size);
                exit(1);
        }
        return p;
}

void *gen_pages(size_t size) {
        return map(size, MAP_POPULATE);
}

void *gen_pages_untouched(size_t size) {
        return map(size, 0);
}

void gen_pages_free(void *p, size_t size) {
        if (p)
                munmap(p, size ? size : 1);
}

/* ------------------------------------------------------------------------
 * The model
 * --------------------------------------------------------------------- */

enum { NAME_ROOM = 48 };

static size_t partitions_size(const gen_conf_t *c) {
        return (size_t)c->topics * c->per_topic * sizeof(gen_partition_t);
}

static int has_id(const int32_t *ids, uint32_t n, int32_t id) {
        uint32_t i;

        for (i = 0; i < n; i++)
                if (ids[i] == id)
                        return 1;
        return 0;
}

static void make_broker_ids(gen_t *g) {
        uint32_t i;

        for (i = 0; i < g->conf.brokers; i++) {
                int32_t id = (int32_t)i + 1;

                do {
                        if (g->conf.ids == GEN_IDS_16)
                                id = 128 + (int32_t)gen_below(g, 32640);
                        if (g->conf.ids == GEN_IDS_32)
                                id = 32768 + (int32_t)gen_below(
                                                     g, INT32_MAX - 32767u);
                } while (has_id(g->broker_ids, i, id));
                g->broker_ids[i] = id;
        }
}

static void make_partition(gen_t *g, gen_partition_t *p) {
        uint32_t brokers = g->conf.brokers;
        uint64_t u;
        int k, j;

        for (k = 0; k < GEN_RF; k++) {
                do {
                        p->replicas[k] = (uint16_t)gen_below(g, brokers);
                        for (j = 0; j < k; j++)
                                if (p->replicas[j] == p->replicas[k])
                                        break;
                } while (j < k);
        }
        p->leader = (uint8_t)gen_below(g, GEN_RF);
        p->isr    = (1 << GEN_RF) - 1;
        /* u * u * 501 for u in [0, 1): half of the epochs are below 125. */
        u        = next(g) >> 48;
        p->epoch = (int32_t)(u * u * 501 >> 32);
}

static void make_names(gen_t *g) {
        char name[NAME_ROOM];
        uint32_t i, end = 0;

        for (i = 0; i < g->conf.topics; i++) {
                int n = snprintf(name, sizeof(name),
                                 "team-%03u.service.events-%06u", i % 97, i);

                memcpy(g->names + end, name, (size_t)n);
                end += (uint32_t)n;
                g->name_ends[i] = end;
        }
}

int gen_init(gen_t *g, const gen_conf_t *conf) {
        size_t i, n = (size_t)conf->topics * conf->per_topic;

        if (conf->brokers < GEN_RF || conf->brokers > 127)
                return -1;
        memset(g, 0, sizeof(*g));
        g->conf       = *conf;
        g->random     = conf->seed;
        g->broker_ids = gen_pages(conf->brokers * sizeof(int32_t));
        g->partitions = gen_pages(partitions_size(conf));
        g->name_ends  = gen_pages((size_t)conf->topics * sizeof(uint32_t));
        g->names      = gen_pages((size_t)conf->topics * NAME_ROOM);
        make_broker_ids(g);
        for (i = 0; i < n; i++)
                make_partition(g, &g->partitions[i]);
        make_names(g);
        return 0;
}

void gen_free(gen_t *g) {
        const gen_conf_t *c = &g->conf;

        gen_pages_free(g->broker_ids, c->brokers * sizeof(int32_t));
        gen_pages_free(g->partitions, partitions_size(c));
        gen_pages_free(g->name_ends, (size_t)c->topics * sizeof(uint32_t));
        gen_pages_free(g->names, (size_t)c->topics * NAME_ROOM);
        memset(g, 0, sizeof(*g));
}

static void change_leader(gen_partition_t *p) {
        p->leader = (uint8_t)((p->leader + 1) % GEN_RF);
        p->isr |= (uint8_t)(1 << p->leader); /* the leader is in sync */
        p->epoch++;
}

static void change_isr(gen_partition_t *p) {
        const uint8_t all = (1 << GEN_RF) - 1;

        if (p->isr == all)
                p->isr &= (uint8_t)~(1 << (p->leader + 1) % GEN_RF);
        else
                p->isr = all;
}

void gen_change(gen_t *g, uint32_t n) {
        uint32_t i, topic, partition;

        for (i = 0; i < n; i++) {
                gen_partition_t *p;

                topic     = gen_below(g, g->conf.topics);
                partition = gen_below(g, g->conf.per_topic);
                p = &g->partitions[(size_t)topic * g->conf.per_topic +
                                   partition];
                if (i & 1)
                        change_isr(p);
                else
                        change_leader(p);
        }
}

const char *gen_name(const gen_t *g, uint32_t topic, size_t *len) {
        uint32_t begin = topic ? g->name_ends[topic - 1] : 0;

        *len = g->name_ends[topic] - begin;
        return g->names + begin;
}

int32_t gen_leader(const gen_t *g, uint32_t topic, uint32_t partition) {
        const gen_partition_t *p =
                &g->partitions[(size_t)topic * g->conf.per_topic + partition];

        return g->broker_ids[p->replicas[p->leader]];
}

uint32_t *gen_shuffle(gen_t *g) {
        uint32_t n   = g->conf.topics, i;
        uint32_t *at = gen_pages((size_t)n * sizeof(*at));

        for (i = 0; i < n; i++)
                at[i] = i;
        for (i = n; i > 1; i--) {
                uint32_t j = gen_below(g, i), t = at[i - 1];

                at[i - 1] = at[j];
                at[j]     = t;
        }
        return at;
}

/* ------------------------------------------------------------------------
 * The response
 * --------------------------------------------------------------------- */

static uint8_t *put32(uint8_t *o, uint32_t v) {
        v = __builtin_bswap32(v);
        memcpy(o, &v, 4);
        return o + 4;
}

static uint8_t *put_varint(uint8_t *o, uint32_t v) {
        for (; v > 0x7f; v >>= 7)
                *o++ = (uint8_t)(v | 0x80);
        *o++ = (uint8_t)v;
        return o;
}

static uint8_t *put_str(uint8_t *o, const char *s, size_t len) {
        o = put_varint(o, (uint32_t)len + 1);
        memcpy(o, s, len);
        return o + len;
}

static uint8_t *put_brokers(const gen_t *g, uint8_t *o) {
        char s[64];
        uint32_t i;
        int n;

        o = put_varint(o, g->conf.brokers + 1);
        for (i = 0; i < g->conf.brokers; i++) {
                o = put32(o, (uint32_t)g->broker_ids[i]);
                n = snprintf(s, sizeof(s), "broker-%u.kafka.example.com", i);
                o = put_str(o, s, (size_t)n);
                o = put32(o, 9092);
                n = snprintf(s, sizeof(s), "rack-%u", i % 3);
                o = put_str(o, s, (size_t)n);
                *o++ = 0;
        }
        return o;
}

static uint8_t *put_ids(const gen_t *g, uint8_t *o, const gen_partition_t *p,
                        unsigned which) {
        int k;

        *o++ = (uint8_t)(__builtin_popcount(which) + 1);
        for (k = 0; k < GEN_RF; k++)
                if (which >> k & 1)
                        o = put32(o,
                                  (uint32_t)g->broker_ids[p->replicas[k]]);
        return o;
}

static uint8_t *put_partition(const gen_t *g, uint8_t *o, uint32_t id,
                              const gen_partition_t *p) {
        *o++ = 0; /* error */
        *o++ = 0;
        o    = put32(o, id);
        o    = put32(o, (uint32_t)g->broker_ids[p->replicas[p->leader]]);
        o    = put32(o, (uint32_t)p->epoch);
        o    = put_ids(g, o, p, (1u << GEN_RF) - 1);
        o    = put_ids(g, o, p, p->isr);
        *o++ = 1; /* no offline replicas */
        *o++ = 0; /* no tagged fields */
        return o;
}

/* Writes an id made from the topic's number, so that it never changes. */
static uint8_t *put_topic_id(const gen_t *g, uint8_t *o, uint32_t topic) {
        gen_t of;
        uint64_t id[2];

        of.random = g->conf.seed ^ (uint64_t)topic << 20;
        id[0]     = next(&of);
        id[1]     = next(&of);
        memcpy(o, id, 16);
        return o + 16;
}

static uint8_t *put_topic(const gen_t *g, uint8_t *o, uint32_t topic) {
        const gen_partition_t *p =
                g->partitions + (size_t)topic * g->conf.per_topic;
        size_t len;
        const char *name = gen_name(g, topic, &len);
        uint32_t i;

        *o++ = 0; /* error */
        *o++ = 0;
        o    = put_str(o, name, len);
        o    = put_topic_id(g, o, topic);
        *o++ = 0; /* not internal */
        o    = put_varint(o, g->conf.per_topic + 1);
        for (i = 0; i < g->conf.per_topic; i++)
                o = put_partition(g, o, i, p + i);
        o    = put32(o, 0x80000000u); /* operations: not asked for */
        *o++ = 0;
        return o;
}

size_t gen_response_bound(const gen_t *g) {
        size_t partition = 14 + 2 * (1 + 4 * GEN_RF) + 2;
        size_t topic     = 2 + NAME_ROOM + 1 + 16 + 1 + 5 + 5 +
                       g->conf.per_topic * partition;

        return 128 + (size_t)g->conf.brokers * 80 + g->conf.topics * topic;
}

size_t gen_response(const gen_t *g, const uint32_t *order, uint8_t *out) {
        static const char cluster[] = "bench-cluster-00000001";
        uint8_t *o = out;
        uint32_t i;

        o = put32(o, 0); /* throttle */
        o = put_brokers(g, o);
        o = put_str(o, cluster, sizeof(cluster) - 1);
        o = put32(o, (uint32_t)g->broker_ids[0]);
        o = put_varint(o, g->conf.topics + 1);
        for (i = 0; i < g->conf.topics; i++)
                o = put_topic(g, o, order ? order[i] : i);
        *o++ = 0;
        return (size_t)(o - out);
}
