/*
 * race_fixture: a cluster whose every row a reader can check, for tests in
 * which threads read what other threads write.
 *
 *     name    ends in the topic's number i          "team-003.race-000042"
 *     id      has i, the generation g of the topic, and a sum of both
 *     row     its leader, replicas, ISR and offline replicas are a function of
 *             i, the partition and its leader epoch
 *     count   is a function of i and g; all rows of a topic have one epoch
 *     reason  begins with the number of the broker that was asked for it;
 *             an answer of broker RACE_MUTE has no reason
 *
 * So a torn row, a row of another topic, and a half-written or freed block all
 * show. Topics that take leader hints move row by row: for those a reader can
 * check only the leaders.
 */
#pragma once

#include "cache/compact.h"
#include "cache/entry.h"
#include "cache/handles.h"
#include "cache/live_image.h"
#include "cache/state.h"
#include "read/state.h"

#include "support/cache_check.h"
#include "support/testing.h"
#include "support/wire_gen.h"

#include <pthread.h>

enum {
        RACE_TOPICS   = 256,
        RACE_NAME     = 64,
        RACE_REPLICAS = 5,
        RACE_BROKERS  = 12,
        RACE_MUTE     = 3,
        RACE_ROWS     = 8192 /* the most rows of an all-topics answer */
};

typedef struct race {
        rdmeta_cache_t *cache;
        test_heap_t heap; /* one call at a time: TSan checks the promise */
        char names[RACE_TOPICS][RACE_NAME];
        _Atomic int64_t now_us;
        _Atomic int stop;

        /* The cluster's state now. */
        pthread_mutex_t lock;
        int present[RACE_TOPICS];
        uint32_t generation[RACE_TOPICS];
        int32_t epoch[RACE_TOPICS];
        int32_t brokers_epoch;
} race_t;

/* Makes the cluster and its cache. With `fence` the cache works as if the
 * kernel had no membarrier. */
void race_init(race_t *w, uint64_t seed, int fence);
/* Destroys both, and checks that nothing leaked. */
void race_destroy(race_t *w);

/* Return the time now and a topic's name. */
rdmeta_time_t race_now(race_t *w);
rdmeta_str_t race_name(const race_t *w, uint32_t i);
/* Returns 1 for a topic that takes leader hints. */
int race_is_hinted(uint32_t i);

/* ---- answers and hints ------------------------------------------------- */

/* The scratch memory of one writer. */
typedef struct race_answer {
        gen_topic_t topics[RACE_TOPICS];
        gen_partition_t partitions[RACE_ROWS];
        int32_t ids[RACE_ROWS][RACE_REPLICAS];
        rdmeta_broker_t brokers[RACE_BROKERS];
        char hosts[RACE_BROKERS][2][24];
        size_t n_topics, n_rows;
        gen_bytes_t body;
} race_answer_t;

/* Begin an answer, add topic i as it is now, and encode the body. The caller
 * has the lock. */
void race_answer_begin(race_answer_t *a);
void race_answer_topic(race_t *w, race_answer_t *a, uint32_t i);
void race_answer_body(race_t *w, race_answer_t *a, int version);
/* Returns a leader hint for topic i with a newer epoch than its rows have. */
rdmeta_leader_hint_t race_leader_hint(race_t *w, uint32_t i,
                                      uint32_t partition);

typedef struct race_writer {
        race_t *fixture;
        test_rng_t rng;
        race_answer_t answer;
} race_writer_t;

/* Makes one write of any kind, and moves the time. */
void race_write_step(race_writer_t *x);
/* A thread's function: writes until the fixture stops. */
void *race_writer_main(void *writer);
/* Frees the writer's scratch memory. */
void race_writer_end(race_writer_t *x);
/* Spends a short random time, so that other threads get in between. */
void race_dither(test_rng_t *rng);

/* Again and again, three threads each drop an object that `make` made of an
 * empty cache, while this thread drops the cache. The last one destroys the
 * cache. Checks that no memory is left. */
void race_to_be_last(void *(*make)(rdmeta_cache_t *c),
                     void *(*drop)(void *made));

/* ---- what readers check ------------------------------------------------ */

/* Return the number of partitions, and a row's leader. */
uint32_t race_count(uint32_t i, uint32_t generation);
int32_t race_leader_of(uint32_t i, uint32_t partition, int32_t epoch);
/* Checks a lookup's result, which may be of any epoch. With `stale`,
 * RDMETA_STALE is wrong. Returns 1 for a broker or "no leader". */
int race_leader_check(uint32_t i, uint32_t partition, int32_t leader,
                      int stale);
/* Returns 1 if a replica or leader of topic i may have this id. */
int race_is_replica(uint32_t i, int32_t broker);
/* Prepares `p` to be read into, with room for one id too many. */
void race_partition_room(rdmeta_partition_t *p,
                         int32_t lists[3][RACE_REPLICAS + 1]);
void race_partition_check(uint32_t i, const rdmeta_partition_t *p);
/* Checks a whole topic, between enter and leave. Returns its number. */
uint32_t race_topic_check(const race_t *w, rdmeta_reader_t *r,
                          const rdmeta_topic_t *t);
void race_brokers_check(const rdmeta_brokers_t *b);
void race_change_check(const race_t *w, const rdmeta_change_t *c);

/* ---- readers of every kind, and all of them at once ---------------------- */

enum { RACE_KINDS = 18 };

typedef struct race_worker {
        race_t *fixture;
        void (*step)(struct race_worker *x);
        test_rng_t rng;
        rdmeta_reader_t *reader;
        uint64_t since; /* the version that changes were read until */
        int stale;      /* 1: its reader allows stale topics */
        _Atomic uint64_t done; /* steps that could have failed a check */
} race_worker_t;

/* Makes a reader of the k-th kind. race_worker_main() runs it until the fixture
 * stops. */
void race_worker_init(race_worker_t *x, race_t *w, int k, test_rng_t rng);
void *race_worker_main(void *worker);

/* Runs two writers and a reader of each kind for so many seconds, and for
 * longer until each has seen something. `fence` is as in race_init(). Returns
 * how many steps of readers were checked. */
uint64_t race_run(uint64_t seed, int fence, int seconds);
