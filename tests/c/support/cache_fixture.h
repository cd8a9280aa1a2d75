/*
 * cache_fixture: a cache, brokers whose answers a test writes as text, and a
 * clock.
 *
 *     CACHE_TEST(test_an_answer_is_taken) {
 *             CHECK(cw_say(w, "orders#a 0:1@5 1:2@7/r2,3/i2; audit!3") == 0);
 *             CHECK(cw_leader(w, "orders", 0) == 1);
 *             CHECK_TEXT(cw_topic(w, "audit"), "audit!3");
 *             w->broker = 2;
 *             w->now.mono_us += 5000000;
 *     }
 *
 * The text of a topic has this form; "; " separates topics:
 *
 *     NAME[#x][!ERROR][^OPERATIONS][~] PARTITION:LEADER[@EPOCH][/...] ...
 *       "?" as NAME: a null name
 *       #x      an id of sixteen bytes x          ~   internal
 *       @EPOCH  the leader epoch; without it -1
 *       /r1,2   replicas; without it the leader alone
 *       /i1     ISR; without it the replicas
 *       /o3     offline replicas                  /e5  error
 *       /l4     last leader, only in results
 *
 * Every call that writes runs cw_check() afterwards. It checks the cache's
 * invariants, and that each version since the last check has a record.
 */
#pragma once

#include "cache/compact.h"
#include "cache/entry.h"
#include "cache/handles.h"
#include "cache/live_image.h"
#include "cache/notes.h"
#include "cache/state.h"
#include "read/state.h"

#include "support/cache_check.h"
#include "support/testing.h"
#include "support/wire_gen.h"

#define CW_S INT64_C(1000000)

enum { CW_TEXT = 16384, CW_TEXTS = 8 };

typedef struct cw {
        rdmeta_cache_t *cache;
        rdmeta_reader_t *reader; /* strict */
        rdmeta_reader_t *stale;  /* allows stale topics */
        test_heap_t heap;
        rdmeta_conf_t conf;
        rdmeta_time_t now; /* starts at 1000 s, wall at 5000 s */

        /* The next answer, with the defaults of cw_init(): */
        int api_version; /* 12 */
        int32_t broker;  /* 1 */
        int32_t flags;   /* its request's flags: 0 */
        uint64_t sent_version; /* when its request left, if sent_known */
        int sent_known;
        int32_t candidates;
        const char *reason;  /* its request's reason; NULL: none */
        const char *brokers; /* "1,2,3"; "4=host:99=rack" is the long form */
        const char *cluster_id; /* "c"; NULL: null */
        int32_t controller;     /* 1 */
        int32_t error;          /* the top-level error of v13 */

        rdmeta_applied_t applied; /* the result of the last answer */
        uint64_t checked; /* the version of the last cw_check() */
        char texts[CW_TEXTS][CW_TEXT];
        int next_text;
} cw_t;

/* Makes the cache and its readers. `change` may change the configuration. */
void cw_init(cw_t *w, void (*change)(rdmeta_conf_t *conf));
/* A `change` for cw_init(): without a changelog, which would keep blocks. */
void cw_no_changelog(rdmeta_conf_t *conf);
/* Frees the cache and its readers, and checks that nothing leaked. */
void cw_destroy(cw_t *w);
/* Begins a test of a new cache, `w`; cw_destroy() ends it. */
#define CACHE_TEST(name) CACHE_TEST_WITH(name, NULL)
/* The same with a `change` for cw_init(). */
#define CACHE_TEST_WITH(name, change)                                        \
        TEST_BETWEEN(name, cw_t, cw_init(&w, change), cw_destroy(&w))
/* Checks the invariants, the statistics and the change records. */
void cw_check(cw_t *w);
/* Checks that the statistics of topics equal a count of them. */
void cw_check_stats(cw_t *w);
/* Moves both clocks forward. */
void cw_pass(cw_t *w, int64_t us);

/* Appends the body of an answer to `out`. */
void cw_body(const cw_t *w, const char *topics, gen_bytes_t *out);
/* Applies a body as the answer to this request; returns the cache's error. */
rdmeta_err_t cw_apply(cw_t *w, const void *body, size_t len,
                      const rdmeta_request_t *asked);
/* From now on, answers belong to requests that leave at this moment. */
void cw_sent(cw_t *w);
/* Applies an answer to an unknown request; returns the cache's error. */
rdmeta_err_t cw_say(cw_t *w, const char *topics);
/* The same; returns how many of its topics were kept back. */
int64_t cw_kept_back(cw_t *w, const char *topics);
/* Applies the same answer five times, by two brokers, over 5 s. */
void cw_insist(cw_t *w, const char *topics);
/* Applies an all-topics answer. */
rdmeta_err_t cw_all(cw_t *w, const char *topics);
/* Applies an answer to a request for these names ("a b c"). */
rdmeta_err_t cw_asked(cw_t *w, const char *names, const char *topics);
/* Applies an answer to this request. */
rdmeta_err_t cw_answer(cw_t *w, const rdmeta_request_t *asked,
                       const char *topics);
/* Returns a request with the fixture's settings. */
rdmeta_request_t cw_request(const cw_t *w, int32_t asked);
/* Hints these names; returns the names to ask for, as "a b". */
const char *cw_hint(cw_t *w, const char *names, int32_t flags);
/* Sweeps; returns the time of the next deadline. */
int64_t cw_sweep(cw_t *w);
/* Lets time pass, then sweeps. */
int64_t cw_sweep_after(cw_t *w, int64_t us);
/* Applies a leader hint (KIP-951), with the broker's endpoint unless `host` is
 * NULL; returns 1 if the cache took it. */
int cw_leader_hint(cw_t *w, const char *topic, int32_t partition,
                   int32_t leader, int32_t epoch, const char *host);

/* Returns a leader, or a local code; cw_leader_stale() allows stale topics. */
int32_t cw_leader(cw_t *w, const char *topic, int32_t partition);
int32_t cw_leader_stale(cw_t *w, const char *topic, int32_t partition);
/* Returns a topic's state as rdmeta_topic_find() does: 0, or a local code. */
int32_t cw_state(cw_t *w, const char *topic);
/* Returns the state of the topic whose id is sixteen bytes `x`. */
int32_t cw_state_id(cw_t *w, char x);
rdmeta_topic_info_t cw_info(cw_t *w, const char *topic);
/* Returns a topic as readers see it, in the form above; "-": there is none. */
const char *cw_topic(cw_t *w, const char *topic);
/* Returns the brokers: "1=h1:9091 2=h2:9092=rack | cluster". */
const char *cw_brokers(cw_t *w);
/* Returns the changes: "v7 leader_changed orders/0 1@5>2@6; ...", "resync", or
 * "" if there is none. */
const char *cw_changes(cw_t *w, uint64_t since);
/* The same, with the partitions of topics that came. */
const char *cw_whole_changes(cw_t *w, uint64_t since);
/* Returns the records that tell an image's state, in the same way. */
const char *cw_image_changes(cw_t *w, rdmeta_image_t *image);
/* Returns what is due, by name: "a=NU b=K", or "". The letters stand for: No
 * leader, Unreachable, Kept back, ask by nAme, abSent, Denied. */
const char *cw_due(cw_t *w);
/* Checks that due() lists what a walk over all topics finds: those reasons that
 * follow from the topics and the brokers. */
void cw_check_due(cw_t *w);
/* Forgets these names ("a b c"); returns what rdmeta_cache_forget() does. */
int64_t cw_forget(cw_t *w, const char *names);
/* Returns the names that a walk visits: "-a -b ". */
const char *cw_walk(cw_t *w, const char *prefix, int32_t which);
rdmeta_stats_t cw_stats(cw_t *w);
uint64_t cw_version(const cw_t *w);

/* Returns all data of the cache as text, to compare; the caller frees it. */
char *cw_dump(const cw_t *w);
/* Returns the same without the data that only saves work: order and digests. */
char *cw_facts(const cw_t *w);

/* Prints the first lines that differ, and ends the test program. */
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
