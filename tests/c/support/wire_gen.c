#include "base/hash.h"
#include "support/wire_gen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must_alloc(size_t size) {
        void *p = calloc(1, size ? size : 1);

        if (!p) {
                fprintf(stderr, "out of memory\n");
                abort();
        }
        return p;
}

static uint32_t random_below(uint64_t *seed, uint32_t n) {
        return (uint32_t)(rdmeta_seed_next(seed) % n);
}

/* ------------------------------------------------------------------------
 * Bytes
 * --------------------------------------------------------------------- */

void gen_bytes_clear(gen_bytes_t *b) {
        b->len = 0;
}

void gen_bytes_free(gen_bytes_t *b) {
        free(b->data);
        memset(b, 0, sizeof(*b));
}

uint8_t *gen_bytes_exact(const uint8_t *data, size_t len) {
        /* malloc(0) may return a byte that can be read; NULL has none. */
        uint8_t *copy = len ? must_alloc(len) : NULL;

        if (len)
                memcpy(copy, data, len);
        return copy;
}

int gen_is_hex(const gen_bytes_t *b, const char *hex) {
        char two[3];
        size_t i;

        for (i = 0; i < b->len; i++, hex += 2) {
                snprintf(two, sizeof(two), "%02x", b->data[i]);
                if (strncmp(two, hex, 2) != 0)
                        return 0;
        }
        return *hex == 0;
}

void gen_put(gen_bytes_t *b, const void *p, size_t n) {
        if (b->capacity - b->len < n) {
                size_t capacity = b->capacity * 2 + n + 64;
                uint8_t *data   = realloc(b->data, capacity);

                if (!data)
                        abort();
                b->data     = data;
                b->capacity = capacity;
        }
        if (n)
                memcpy(b->data + b->len, p, n);
        b->len += n;
}

void gen_i8(gen_bytes_t *b, int v) {
        uint8_t byte = (uint8_t)v;

        gen_put(b, &byte, 1);
}

void gen_i16(gen_bytes_t *b, int v) {
        uint8_t bytes[2] = {(uint8_t)(v >> 8), (uint8_t)v};

        gen_put(b, bytes, 2);
}

void gen_i32(gen_bytes_t *b, int32_t v) {
        uint8_t bytes[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16),
                            (uint8_t)(v >> 8), (uint8_t)v};

        gen_put(b, bytes, 4);
}

void gen_uvar(gen_bytes_t *b, uint32_t v) {
        unsigned n;

        for (n = 1; v >= 0x80 || n < b->uvar_width; n++, v >>= 7)
                gen_i8(b, (int)((v & 0x7f) | 0x80));
        gen_i8(b, (int)v);
}

void gen_str(gen_bytes_t *b, int flexible, rdmeta_str_t s) {
        if (flexible)
                gen_uvar(b, s.data ? (uint32_t)s.len + 1 : 0);
        else
                gen_i16(b, s.data ? (int)s.len : -1);
        if (s.data)
                gen_put(b, s.data, s.len);
}

void gen_count(gen_bytes_t *b, int flexible, int64_t n) {
        if (flexible)
                gen_uvar(b, (uint32_t)(n + 1));
        else
                gen_i32(b, (int32_t)n);
}

void gen_tags(gen_bytes_t *b, uint64_t *seed) {
        uint32_t n = *seed ? random_below(seed, 4) : 0;
        uint32_t i, len;

        gen_uvar(b, n);
        for (i = 0; i < n; i++) {
                gen_uvar(b, i * 100);
                /* Sometimes longer than a length of one byte allows. */
                len = random_below(seed, 20) ? random_below(seed, 6) : 200;
                gen_uvar(b, len);
                while (len--)
                        gen_i8(b, (int)random_below(seed, 256));
        }
}

/* ------------------------------------------------------------------------
 * Responses: the fields of MetadataResponse.json, in its order
 * --------------------------------------------------------------------- */

static void put_ids(gen_bytes_t *b, int flexible, gen_ids_t l) {
        int32_t i;

        gen_count(b, flexible, l.count);
        for (i = 0; i < l.count; i++)
                gen_i32(b, l.ids[i]);
}

static void put_partition(const gen_partition_t *p, int version,
                          uint64_t *tag_seed, gen_bytes_t *b) {
        const int flexible = version >= 9;

        gen_i16(b, p->error);
        gen_i32(b, p->id);
        gen_i32(b, p->leader);
        if (version >= 7)
                gen_i32(b, p->epoch);
        put_ids(b, flexible, p->replicas);
        put_ids(b, flexible, p->isr);
        if (version >= 5)
                put_ids(b, flexible, p->offline);
        if (flexible)
                gen_tags(b, tag_seed);
}

void gen_response_broker(const rdmeta_broker_t *broker, int version,
                         uint64_t *tag_seed, gen_bytes_t *out) {
        const int flexible = version >= 9;

        gen_i32(out, broker->id);
        gen_str(out, flexible, broker->host);
        gen_i32(out, broker->port);
        if (version >= 1)
                gen_str(out, flexible, broker->rack);
        if (flexible)
                gen_tags(out, tag_seed);
}

void gen_response_topic(const gen_topic_t *topic, int version,
                        uint64_t *tag_seed, gen_bytes_t *out) {
        const int flexible = version >= 9;
        rdmeta_str_t name  = topic->name;
        uint32_t i;

        if (!name.data && version < 12)
                name.data = "";
        gen_i16(out, topic->error);
        gen_str(out, flexible, name);
        if (version >= 10)
                gen_put(out, topic->id, 16);
        if (version >= 1)
                gen_i8(out, topic->internal);
        gen_count(out, flexible, topic->partition_count);
        for (i = 0; i < topic->partition_count; i++)
                put_partition(&topic->partitions[i], version, tag_seed, out);
        if (version >= 8)
                gen_i32(out, topic->has_operations ? topic->operations
                                                   : RDMETA_NO_OPERATIONS);
        if (flexible)
                gen_tags(out, tag_seed);
}

void gen_response(const gen_cluster_t *cluster, int version, gen_bytes_t *out) {
        const int flexible = version >= 9;
        uint64_t tag_seed  = cluster->tag_seed;
        uint32_t i;

        if (version >= 3)
                gen_i32(out, cluster->throttle_ms);
        gen_count(out, flexible, cluster->broker_count);
        for (i = 0; i < cluster->broker_count; i++)
                gen_response_broker(&cluster->brokers[i], version, &tag_seed,
                                    out);
        if (version >= 2)
                gen_str(out, flexible, cluster->cluster_id);
        if (version >= 1)
                gen_i32(out, cluster->controller);
        gen_count(out, flexible, cluster->topic_count);
        for (i = 0; i < cluster->topic_count; i++)
                gen_response_topic(&cluster->topics[i], version, &tag_seed,
                                   out);
        if (version >= 8 && version <= 10)
                gen_i32(out, cluster->has_operations ? cluster->operations
                                                     : RDMETA_NO_OPERATIONS);
        if (version >= 13)
                gen_i16(out, cluster->error);
        if (flexible)
                gen_tags(out, &tag_seed);
}

/* ------------------------------------------------------------------------
 * A large cluster: one block of memory per type
 * --------------------------------------------------------------------- */

enum { TEXT = 48 }; /* the bytes reserved per name */

typedef struct large {
        gen_cluster_t cluster; /* first, since callers get its address */
        gen_partition_t *partitions;
        int32_t *ids;
        char *text;
} large_t;

__attribute__((format(printf, 2, 3))) static rdmeta_str_t
text_set(char *text, const char *format, ...) {
        va_list args;
        int n;

        va_start(args, format);
        n = vsnprintf(text, TEXT, format, args);
        va_end(args);
        return (rdmeta_str_t){text, (size_t)n};
}

static void brokers_fill(large_t *l, const gen_shape_t *shape) {
        uint32_t i;

        for (i = 0; i < shape->brokers; i++) {
                rdmeta_broker_t *broker = &l->cluster.brokers[i];
                char *text              = l->text + (size_t)i * 2 * TEXT;

                broker->id   = shape->first_broker + (int32_t)i;
                broker->port = 9092;
                broker->host = text_set(text, "broker-%03u.internal", i);
                broker->rack = text_set(text + TEXT, "rack-%u", i % 3);
        }
}

/* Draws the different replicas of a partition; the first one is its leader. */
static void replicas_draw(const gen_shape_t *shape, uint64_t *seed,
                          int32_t *ids) {
        uint32_t n = 0, i;

        while (n < shape->replication) {
                int32_t id = shape->first_broker +
                             (int32_t)random_below(seed, shape->brokers);
                for (i = 0; i < n && ids[i] != id; i++)
                        ;
                if (i == n)
                        ids[n++] = id;
        }
}

static void topic_fill(large_t *l, const gen_shape_t *shape, uint32_t i,
                       uint64_t *seed) {
        gen_topic_t *topic = &l->cluster.topics[i];
        const size_t first = (size_t)i * shape->partitions;
        char *text = l->text + ((size_t)shape->brokers * 2 + i) * TEXT;
        uint64_t id[2];
        uint32_t p;

        id[0] = rdmeta_seed_next(seed);
        id[1] = rdmeta_seed_next(seed);
        memcpy(topic->id, id, 16);
        topic->name            = text_set(text, "team-%03u.service.events-%06u",
                                          i * 7919u % 1000, i);
        topic->partitions      = l->partitions + first;
        topic->partition_count = shape->partitions;
        for (p = 0; p < shape->partitions; p++) {
                gen_partition_t *at = &topic->partitions[p];
                int32_t *ids = l->ids + (first + p) * shape->replication;

                replicas_draw(shape, seed, ids);
                at->id       = (int32_t)p;
                at->leader   = shape->replication ? ids[0] : -1;
                at->epoch    = (int32_t)random_below(seed, 100);
                at->replicas = (gen_ids_t){ids, (int32_t)shape->replication};
                at->isr      = at->replicas;
        }
}

gen_cluster_t *gen_cluster_new(const gen_shape_t *shape) {
        const size_t partitions = (size_t)shape->topics * shape->partitions;
        large_t *l              = must_alloc(sizeof(*l));
        gen_cluster_t *c        = &l->cluster;
        uint64_t seed           = shape->seed;
        uint32_t i;

        if (shape->replication > shape->brokers) {
                fprintf(stderr, "more replicas than brokers\n");
                abort();
        }
        l->partitions   = must_alloc(partitions * sizeof(gen_partition_t));
        l->ids          = must_alloc(partitions * shape->replication *
                                     sizeof(int32_t));
        l->text         = must_alloc(((size_t)shape->brokers * 2 +
                                      shape->topics) * TEXT);
        c->brokers      = must_alloc(shape->brokers * sizeof(*c->brokers));
        c->broker_count = shape->brokers;
        c->topics       = must_alloc(shape->topics * sizeof(*c->topics));
        c->topic_count  = shape->topics;
        c->cluster_id   = GEN_STR("XhZ1vTq9QxGk2nC0b7LmRw");
        c->controller   = shape->first_broker;
        brokers_fill(l, shape);
        for (i = 0; i < shape->topics; i++)
                topic_fill(l, shape, i, &seed);
        return c;
}

void gen_cluster_free(gen_cluster_t *cluster) {
        large_t *l = (large_t *)cluster;

        if (!l)
                return;
        free(l->partitions);
        free(l->ids);
        free(l->text);
        free(cluster->brokers);
        free(cluster->topics);
        free(l);
}

void gen_cluster_shuffle(gen_cluster_t *cluster, uint64_t seed) {
        uint32_t i, j;

        for (i = cluster->topic_count; i > 1; i--) {
                gen_topic_t topic = cluster->topics[i - 1];

                j                      = random_below(&seed, i);
                cluster->topics[i - 1] = cluster->topics[j];
                cluster->topics[j]     = topic;
        }
}

void gen_move_leader(gen_topic_t *topic, uint32_t p) {
        gen_partition_t *at = &topic->partitions[p];
        int32_t i;

        for (i = 0; i < at->replicas.count; i++)
                if (at->replicas.ids[i] == at->leader)
                        break;
        at->leader = at->replicas.ids[(i + 1) % at->replicas.count];
        at->epoch++;
}

/* ---- odd clusters -------------------------------------------------------- */

enum { MOST = 4, LONGEST = 300 };

/* An odd cluster in one block, so that one free() frees it. */
typedef struct odd {
        gen_cluster_t cluster; /* first, since callers get its address */
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
        /* Sometimes about as long as where a compact length needs a second
         * byte. */
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
