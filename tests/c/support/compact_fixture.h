/* compact_fixture: a cache whose topics grow and shrink, so that much of its
 * memory is free; and functions that make the sweep return that memory. */
#pragma once

#include "support/image_fixture.h"

enum {
        TOPICS     = 2000,
        PARTITIONS = 12,
        ALL        = 100 /* sweeps: more than any of these caches needs */
};

/* The shape of a topic. Each shape needs another size of memory. */
typedef struct shape {
        int32_t epoch;  /* needs 1, 2 or 4 bytes */
        int32_t first;  /* the first broker's id */
        int32_t sick;   /* how many partitions have a smaller ISR */
        uint32_t count; /* the number of partitions */
        char id;        /* another one makes a new topic of the same name */
} shape_t;

static const TEST_UNUSED shape_t thin  = {1, 1, 0, PARTITIONS, 'a'};
static const TEST_UNUSED shape_t long_ = {1000, 1, 0, PARTITIONS, 'a'};
static const TEST_UNUSED shape_t wide  = {100000, 1, 3, PARTITIONS, 'a'};
static const TEST_UNUSED shape_t wider = {100001, 1, 5, PARTITIONS, 'a'};
static const TEST_UNUSED shape_t small = {1, 1, 0, 2, 'b'};

/* Applies an answer that gives this shape to some of the first n topics: each
 * `step`th one from `first` on. */
static TEST_UNUSED void set_shape(cw_t *w, const shape_t *like, uint32_t first,
                                  uint32_t n, uint32_t step) {
        static gen_topic_t topics[TOPICS];
        static gen_partition_t rows[TOPICS][PARTITIONS];
        static char names[TOPICS][80];
        static int32_t brokers_of[5] = {1, 2, 3, 1, 2};
        static rdmeta_broker_t brokers[3];
        gen_cluster_t c = {.topics = topics, .brokers = brokers,
                           .broker_count = 3, .cluster_id = GEN_STR("c"),
                           .controller = 1};
        const rdmeta_request_t asked = cw_request(w, RDMETA_ASKED_UNKNOWN);
        gen_bytes_t body             = {0};
        uint32_t i, p;

        for (i = 0; i < 3; i++)
                brokers[i] = (rdmeta_broker_t){(int32_t)i + 1, 9092,
                                               GEN_STR("h"), {NULL, 0}};
        for (i = first; i < n; i += step) {
                const uint32_t k = c.topic_count++;
                gen_topic_t *t   = &topics[k];

                snprintf(names[k], sizeof(names[k]), "topic-%06u%.*s", i,
                         (int)(i % 50), "-whose-name-is-longer-than-those-of-"
                                        "some-others-are");
                memset(t, 0, sizeof(*t));
                t->name            = test_str(names[k]);
                t->partitions      = rows[k];
                t->partition_count = like->count;
                memset(t->id, like->id, sizeof(t->id));
                memcpy(t->id, &(uint32_t){i + 1}, 4);
                for (p = 0; p < like->count; p++) {
                        int32_t *ids = &brokers_of[(i + p) % 3];

                        rows[k][p] = (gen_partition_t){
                                .id = (int32_t)p, .leader = ids[0],
                                .epoch = like->epoch, .replicas = {ids, 3},
                                .isr = {ids, (int32_t)p < like->sick ? 1 : 3}};
                }
        }
        gen_response(&c, w->api_version, &body);
        CHECK(!cw_apply(w, body.data, body.len, &asked));
        gen_bytes_free(&body);
}

/* Gives this shape to all topics, a few per answer and in no order, so that
 * free memory is everywhere. */
static TEST_UNUSED void set_shape_slowly(cw_t *w, const shape_t *like) {
        uint32_t k;

        for (k = 0; k < 40; k++) {
                set_shape(w, like, k * 7 % 40, TOPICS, 40);
                cw_sweep(w);
        }
}

/* Sets how many bytes of each kind may be free before the sweep compacts. */
static TEST_UNUSED void cw_least(cw_t *w, size_t bytes) {
        int i;

        for (i = 0; i < RDMETA_MEMORY_SLABS; i++)
                w->cache->blocks.slabs[i].least = bytes;
}

static TEST_UNUSED size_t cw_bytes(const cw_t *w) {
        return rdmeta_memory_bytes(&w->cache->blocks);
}

static TEST_UNUSED size_t cw_free(const cw_t *w) {
        size_t bytes = 0;
        int i;

        for (i = 0; i < RDMETA_MEMORY_SLABS; i++)
                bytes += w->cache->blocks.slabs[i].free;
        return bytes;
}

static TEST_UNUSED size_t cw_leaving(const cw_t *w) {
        return rdmeta_memory_leaving(&w->cache->blocks);
}

/* Plans a compaction now, even if little is free. Returns how many chunks are
 * to leave. */
static TEST_UNUSED size_t plan(cw_t *w) {
        rdmeta_cache_t *c = w->cache;
        size_t n;

        cw_least(w, 1);
        rdmeta_notify_lock(&c->notify);
        c->compact_at = 0;
        n             = rdmeta_memory_plan(&c->blocks, 1000);
        rdmeta_notify_unlock(&c->notify);
        return n;
}

static TEST_UNUSED void sweep_until_gone(cw_t *w) {
        int k;

        for (k = 0; k < ALL && cw_leaving(w); k++)
                cw_sweep(w);
        CHECK(!cw_leaving(w));
}

/* Makes topics, and then some of them larger. So much memory is free, and no
 * sweep compacts it before plan() is called. */
static TEST_UNUSED void make_churn(cw_t *w) {
        cw_least(w, SIZE_MAX);
        set_shape(w, &thin, 0, TOPICS, 1);
        set_shape(w, &long_, 0, TOPICS, 3);
        set_shape(w, &wide, 1, TOPICS, 3);
}
