#include "support/wire_gen.h"

#include "base/hash.h"

#include <stdlib.h>

enum { MOST = 4, LONGEST = 300 };

/* All of an odd cluster in one block, so that one free() is its end. */
typedef struct odd {
        gen_cluster_t cluster; /* first: what is handed out */
        rdmeta_broker_t brokers[MOST];
        gen_topic_t topics[MOST];
        gen_partition_t partitions[MOST][MOST];
        int32_t ids[MOST][MOST][3][MOST];
        char texts[1 + 3 * MOST][LONGEST];
        unsigned texts_used;
        uint64_t seed;
} odd_t;

static uint32_t draw(odd_t *o, uint32_t n) {
        return (uint32_t)(rdmeta_seed_next(&o->seed) % n);
}

static int32_t draw_number(odd_t *o) {
        static const int32_t edges[] = {0, -1, 1, INT32_MAX, INT32_MIN, 127,
                                        128, 32767, 32768, 65536};

        return draw(o, 3) ? (int32_t)draw(o, 40)
                          : edges[draw(o, sizeof(edges) / sizeof(*edges))];
}

static int32_t draw_error(odd_t *o) {
        static const int32_t errors[] = {3, 5, 9, 17, 29, 72, 100, 129, -1,
                                         INT16_MAX, INT16_MIN};

        return draw(o, 2) ? 0
                          : errors[draw(o, sizeof(errors) / sizeof(*errors))];
}

static rdmeta_str_t draw_text(odd_t *o, int nullable) {
        char *text = o->texts[o->texts_used++];
        size_t len, i;

        if (nullable && !draw(o, 4))
                return (rdmeta_str_t){NULL, 0};
        /* Around where a compact length takes its second byte, at times. */
        len = draw(o, 8) ? draw(o, 12) : 120 + draw(o, LONGEST - 120);
        for (i = 0; i < len; i++)
                text[i] = (char)draw(o, 256);
        return (rdmeta_str_t){text, len};
}

static gen_ids_t draw_ids(odd_t *o, int32_t *ids) {
        gen_ids_t l = {ids, (int32_t)draw(o, MOST + 2) - 1};
        int32_t i;

        for (i = 0; i < l.count; i++)
                ids[i] = draw_number(o);
        return l;
}

static void draw_topic(odd_t *o, uint32_t t) {
        gen_topic_t *topic = &o->topics[t];
        uint32_t p;

        topic->name           = draw_text(o, 1);
        topic->error          = draw_error(o);
        topic->internal       = (int32_t)draw(o, 2);
        topic->has_operations = (int32_t)draw(o, 2);
        topic->operations     = draw_number(o);
        for (p = 0; p < 16 && draw(o, 40); p++)
                topic->id[p] = (uint8_t)draw(o, 256);
        topic->partitions      = o->partitions[t];
        topic->partition_count = draw(o, MOST + 1);
        for (p = 0; p < topic->partition_count; p++) {
                gen_partition_t *at = &topic->partitions[p];

                at->id       = draw_number(o);
                at->leader   = draw_number(o);
                at->epoch    = draw_number(o);
                at->error    = draw_error(o);
                at->replicas = draw_ids(o, o->ids[t][p][0]);
                at->isr      = draw_ids(o, o->ids[t][p][1]);
                at->offline  = draw_ids(o, o->ids[t][p][2]);
        }
}

gen_cluster_t *gen_odd_cluster_new(uint64_t seed) {
        odd_t *o = calloc(1, sizeof(*o));
        gen_cluster_t *c;
        uint32_t i;

        if (!o)
                abort();
        c                 = &o->cluster;
        o->seed           = seed;
        c->throttle_ms    = draw_number(o);
        c->cluster_id     = draw_text(o, 1);
        c->controller     = draw_number(o);
        c->has_operations = (int32_t)draw(o, 2);
        c->operations     = draw_number(o);
        c->error          = draw_error(o);
        c->tag_seed       = draw(o, 2) ? rdmeta_seed_next(&o->seed) : 0;
        c->brokers        = o->brokers;
        c->broker_count   = draw(o, MOST + 1);
        c->topics         = o->topics;
        c->topic_count    = draw(o, MOST + 1);
        for (i = 0; i < c->broker_count; i++) {
                c->brokers[i].id   = draw_number(o);
                c->brokers[i].port = draw_number(o);
                c->brokers[i].host = draw_text(o, 0);
                c->brokers[i].rack = draw_text(o, 1);
        }
        for (i = 0; i < c->topic_count; i++)
                draw_topic(o, i);
        return c;
}
