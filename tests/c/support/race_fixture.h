/*
 * race_fixture: a cluster whose every row can be checked by whoever reads it,
 * for tests in which threads read what others write.
 *
 *     name  ends in the topic's number i          "team-003.race-000042"
 *     id    says i and the generation g of the topic, and a sum of both
 *     row   its leader, replicas, ISR and offline replicas are a function of
 *           i, the partition and its leader epoch
 *     count is a function of i and g; all rows of a topic have one epoch
 *     reason  begins with the number of the broker that was asked for it;
 *             of broker RACE_MUTE there is none
 *
 * So a torn row, a row of another topic, a half-written or freed block all
 * show. Topics that take leader hints move row by row: of them only leaders
 * are checked.
 */
#ifndef RDMETA_RACE_WORLD_H
#define RDMETA_RACE_WORLD_H

#include "cache/check.h"
#include "cache/compact.h"
#include "cache/entry.h"
#include "cache/handles.h"
#include "cache/live_image.h"
#include "cache/state.h"
#include "read/state.h"

#include "support/testing.h"
#include "support/wire_gen.h"

#include <pthread.h>

enum {
        RACE_TOPICS   = 256,
        RACE_NAME     = 64,
        RACE_REPLICAS = 5,
        RACE_BROKERS  = 12,
        RACE_MUTE     = 3,
        RACE_ROWS     = 8192 /* of a whole answer at most */
};

typedef struct race {
        rdmeta_cache_t *cache;
        test_heap_t heap; /* one call at a time: TSan checks the promise */
        char names[RACE_TOPICS][RACE_NAME];
        _Atomic int64_t now_us;
        _Atomic int stop;

        /* What the cluster is like now. */
        pthread_mutex_t lock;
        int present[RACE_TOPICS];
        uint32_t generation[RACE_TOPICS];
        int32_t epoch[RACE_TOPICS];
        int32_t brokers_epoch;
} race_t;

/* `fence`: as where the kernel has no membarrier. */
void race_init(race_t *w, uint64_t seed, int fence);
/* Checks that nothing leaked. */
void race_destroy(race_t *w);

rdmeta_time_t race_now(race_t *w);
rdmeta_str_t race_name(const race_t *w, uint32_t i);
int race_is_hinted(uint32_t i);

/* ---- what writers say -------------------------------------------------- */

/* Scratch of one writer. */
typedef struct race_answer {
        gen_topic_t topics[RACE_TOPICS];
        gen_partition_t partitions[RACE_ROWS];
        int32_t ids[RACE_ROWS][RACE_REPLICAS];
        rdmeta_broker_t brokers[RACE_BROKERS];
        char hosts[RACE_BROKERS][2][24];
        size_t n_topics, n_rows;
        gen_bytes_t body;
} race_answer_t;

/* The lock is held: an answer about topic i as it is now; all of them; and
 * then its body. */
void race_answer_begin(race_answer_t *a);
void race_answer_topic(race_t *w, race_answer_t *a, uint32_t i);
void race_answer_body(race_t *w, race_answer_t *a, int version);
/* A hint of a leader of topic i that is newer than what is. */
rdmeta_leader_hint_t race_leader_hint(race_t *w, uint32_t i,
                                      uint32_t partition);

typedef struct race_writer {
        race_t *fixture;
        test_rng_t rng;
        race_answer_t answer;
} race_writer_t;

/* One step of any kind, and the time it takes. */
void race_write_step(race_writer_t *x);
/* A thread of it, until the fixture stops; and its scratch given back. */
void *race_writer_main(void *writer);
void race_writer_end(race_writer_t *x);
/* A little time, never the same: other threads get in between. */
void race_dither(test_rng_t *rng);

/* Three threads each drop one of what `make` gives of an empty cache, while
 * this one lets the cache go, again and again: whoever is last takes it along,
 * and nothing is left. */
void race_to_be_last(void *(*make)(rdmeta_cache_t *c),
                     void *(*drop)(void *made));

/* ---- what readers check ------------------------------------------------ */

uint32_t race_count(uint32_t i, uint32_t generation);
int32_t race_leader_of(uint32_t i, uint32_t partition, int32_t epoch);
/* A leader or a code, of whatever epoch. `stale`: codes that such a reader
 * never gets are wrong. 1: it is a broker or "no leader". */
int race_leader_check(uint32_t i, uint32_t partition, int32_t leader,
                      int stale);
/* To be read into, with room for one id too many. */
void race_partition_room(rdmeta_partition_t *p,
                         int32_t lists[3][RACE_REPLICAS + 1]);
void race_partition_check(uint32_t i, const rdmeta_partition_t *p);
/* The whole topic, between enter and leave: its number. */
uint32_t race_topic_check(const race_t *w, rdmeta_reader_t *r,
                          const rdmeta_topic_t *t);
void race_brokers_check(const rdmeta_brokers_t *b);
void race_change_check(const race_t *w, const rdmeta_change_t *c);

/* ---- readers of every kind, and all of them at once ---------------------- */

enum { RACE_KINDS = 15 };

typedef struct race_worker {
        race_t *fixture;
        void (*step)(struct race_worker *x);
        test_rng_t rng;
        rdmeta_reader_t *reader;
        uint64_t since;
        int stale;
        _Atomic uint64_t done; /* steps that could have failed a check */
} race_worker_t;

/* The k-th kind of reader; race_worker_main() runs it until the fixture stops. */
void race_worker_init(race_worker_t *x, race_t *w, int k, test_rng_t rng);
void *race_worker_main(void *worker);

/* A fixture, two writers and a reader of each kind, for so many seconds, but
 * not before each has seen something. `fence`: as in race_init(). Returns how
 * many steps of readers have been checked. */
uint64_t race_run(uint64_t seed, int fence, int seconds);

#endif /* RDMETA_RACE_WORLD_H */
