/*
 * cache_fixture: a cache, brokers that say whatever a test wants, and a clock.
 *
 *     cw_t w;
 *     cw_init(&w, NULL);
 *     CHECK(cw_say(&w, "orders#a 0:1@5 1:2@7/r2,3/i2; audit!3") == 0);
 *     CHECK(cw_leader(&w, "orders", 0) == 1);
 *     CHECK_TEXT(cw_topic(&w, "orders"), "orders#a 0:1@5 1:2@7/r2,3/i2");
 *     w.broker = 2; w.now.mono_us += 5000000;
 *     ...
 *     cw_destroy(&w);
 *
 * Topics are written down like this, separated by "; ":
 *
 *     NAME[#x][!ERROR][^OPERATIONS][~] PARTITION:LEADER[@EPOCH][/...] ...
 *       #x   an id of sixteen bytes x; "?" as NAME is a null name; ~ internal
 *       /r1,2  replicas (the leader alone if not said)
 *       /i1    ISR (the replicas if not said)    /o3  offline    /e5  error
 *       /l4    last leader, when reading         @EPOCH: -1 if not said
 *
 * Every call that writes runs cw_check() afterwards: it checks the cache's
 * invariants, and that each version since the last check has a record.
 */
#ifndef RDMETA_CACHE_WORLD_H
#define RDMETA_CACHE_WORLD_H

#include "cache/check.h"
#include "cache/compact.h"
#include "cache/entry.h"
#include "cache/handles.h"
#include "cache/live_image.h"
#include "cache/state.h"
#include "read/state.h"

#include "support/testing.h"
#include "support/wire_gen.h"

#define CW_S INT64_C(1000000)

enum { CW_TEXT = 16384, CW_TEXTS = 8 };

typedef struct cw {
        rdmeta_cache_t *cache;
        rdmeta_reader_t *reader; /* strict */
        rdmeta_reader_t *stale;  /* takes last known values */
        test_heap_t heap;
        rdmeta_conf_t conf;
        rdmeta_time_t now; /* starts at 1000 s, wall at 5000 s */

        /* The next answer: */
        int api_version; /* 12 */
        int32_t broker;  /* who gives it: 1 */
        int32_t flags;   /* of its request: 0 */
        uint64_t sent_version; /* with sent_known: when its request left */
        int sent_known;
        int32_t candidates;
        const char *reason;  /* why it was asked; NULL: not said */
        const char *brokers; /* "1,2,3"; "4=host:99=rack" spells one out */
        const char *cluster_id; /* "c"; NULL: null */
        int32_t controller;     /* 1 */
        int32_t error;          /* of v13 */

        rdmeta_applied_t applied; /* what the last answer did */
        uint64_t checked; /* the version when cw_check() looked */
        char texts[CW_TEXTS][CW_TEXT];
        int next_text;
} cw_t;

/* Changes the defaults of the configuration if `change` is given. */
void cw_init(cw_t *w, void (*change)(rdmeta_conf_t *conf));
/* A change for cw_init(): nothing keeps blocks for who asks what changed. */
void cw_no_ring(rdmeta_conf_t *conf);
/* Checks that nothing leaked. */
void cw_destroy(cw_t *w);
void cw_check(cw_t *w);
/* What stats say of topics is what a look at each one says. */
void cw_check_stats(cw_t *w);
/* Let time pass, on both clocks. */
void cw_pass(cw_t *w, int64_t us);

/* The body of an answer. */
void cw_body(const cw_t *w, const char *topics, gen_bytes_t *out);
rdmeta_err_t cw_apply(cw_t *w, const void *body, size_t len,
                      const rdmeta_request_t *asked);
/* From now on answers are to requests that leave at this moment. */
void cw_sent(cw_t *w);
/* An answer to nobody knows what; to all; to these names ("a b c"). */
rdmeta_err_t cw_say(cw_t *w, const char *topics);
rdmeta_err_t cw_all(cw_t *w, const char *topics);
rdmeta_err_t cw_asked(cw_t *w, const char *names, const char *topics);
/* An answer to this request. */
rdmeta_err_t cw_answer(cw_t *w, const rdmeta_request_t *asked,
                       const char *topics);
rdmeta_request_t cw_request(const cw_t *w, int32_t asked);
/* Hints of these names; returns those to ask, as "a b". */
const char *cw_hint(cw_t *w, const char *names, int32_t flags);
int64_t cw_sweep(cw_t *w);
/* KIP-951, for a name, with the broker's endpoint or not. 1: it was taken. */
int cw_lead(cw_t *w, const char *topic, int32_t partition, int32_t leader,
            int32_t epoch, const char *host);

int32_t cw_leader(cw_t *w, const char *topic, int32_t partition);
int32_t cw_leader_stale(cw_t *w, const char *topic, int32_t partition);
/* What rdmeta_topic_find() says: 0, or a local code. */
int32_t cw_state(cw_t *w, const char *topic);
/* The same, of an id of sixteen bytes `x`. */
int32_t cw_state_id(cw_t *w, char x);
rdmeta_topic_info_t cw_info(cw_t *w, const char *topic);
/* The block as readers see it, written as above; "-": there is none. */
const char *cw_topic(cw_t *w, const char *topic);
/* "1=h1:9091 2=h2:9092=rack | cluster". */
const char *cw_brokers(cw_t *w);
/* "v7 leader_changed orders/0 1@5>2@6; ..."; "resync"; "": nothing. */
const char *cw_changes(cw_t *w, uint64_t since);
/* "-a -b": the names that a walk visits. */
const char *cw_walk(cw_t *w, const char *prefix, int32_t which);
rdmeta_stats_t cw_stats(cw_t *w);
uint64_t cw_version(const cw_t *w);

/* Everything that the cache holds, to compare: of whatever length; free(). */
char *cw_dump(const cw_t *w);
/* The same without what only saves work: places in the order, digests. */
char *cw_facts(const cw_t *w);

/* Prints the first lines that differ, and ends the test. */
void cw_text_fails(const char *file, int line, const char *got,
                   const char *wanted);

#define CHECK_TEXT(got, wanted)                                              \
        do {                                                                 \
                const char *got_ = (got), *wanted_ = (wanted);               \
                if (strcmp(got_, wanted_) != 0) {                            \
                        fprintf(stderr, "seed %" PRIu64 "\n", test_seed);    \
                        cw_text_fails(__FILE__, __LINE__, got_, wanted_);    \
                }                                                            \
        } while (0)

#endif /* RDMETA_CACHE_WORLD_H */
