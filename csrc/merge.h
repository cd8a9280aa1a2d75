/*
 * merge: what an answer means for what is known. Pure: no cache, no clock, no
 * lock, no allocation but the stage's own.
 *
 *     old block (or none) --+
 *     staged answer --------+--> verdict, and the stage with rows put back
 *     rules, doubt ---------+
 *
 * Epoch first: a lower epoch loses whatever else it says. The rules, each with
 * a test of its name in tests/c/test_merge.c, are in docs/policies.md.
 *
 * *Doubt.* Kafka's brokers learn of changes one after the other, so an answer
 * that is older than what is known is normal: it is kept out and another
 * broker asked. But a cluster may really have gone back (an unclean restore),
 * so after DOUBT_ANSWERS such answers from DOUBT_BROKERS brokers (all, if
 * there are fewer) over DOUBT_US the older one is believed. franz-go accepts
 * a rewind after 5; asking several brokers over time is ours. Any answer that
 * is not older ends the doubt.
 */
#ifndef RDMETA_MERGE_H
#define RDMETA_MERGE_H

#include "brokers.h"
#include "stage.h"

enum {
        RDMETA_DOUBT_ANSWERS = 5,
        RDMETA_DOUBT_BROKERS = 2,
        RDMETA_DOUBT_US      = 5000000
};

/* Kafka's codes that mean something here. */
enum {
        RDMETA_E_UNKNOWN_TOPIC_OR_PARTITION = 3,
        RDMETA_E_INVALID_TOPIC              = 17,
        RDMETA_E_TOPIC_AUTHORIZATION_FAILED = 29,
        RDMETA_E_LISTENER_NOT_FOUND         = 72,
        RDMETA_E_UNKNOWN_TOPIC_ID           = 100,
        RDMETA_E_INCONSISTENT_TOPIC_ID      = 103,
        RDMETA_E_REBOOTSTRAP_REQUIRED       = 129
};

/* How often, since when and by whom something older was said. */
typedef struct rdmeta_doubt {
        int64_t since_us;
        uint32_t answers;
        int32_t first_broker;
        uint32_t others; /* 1: by another than the first, too */
} rdmeta_doubt_t;

typedef struct rdmeta_merge_in {
        uint32_t fields;         /* RDMETA_WIRE_..., of the answer's version */
        int32_t broker;          /* who answered; -1 not known */
        int32_t candidates;      /* brokers that could be asked */
        int64_t mono_us;
        uint64_t sent_version;   /* 0: not known */
        rdmeta_doubt_t doubt;    /* answers 0: none yet */
        const rdmeta_brokers_t *brokers; /* of the answer */
} rdmeta_merge_in_t;

/* What becomes of the topic. */
enum {
        RDMETA_VERDICT_KEEP = 0, /* the block stays, nothing was learned */
        RDMETA_VERDICT_TAKE,     /* build the stage */
        RDMETA_VERDICT_STATE     /* the old facts (or none) in `state` */
};

typedef struct rdmeta_merge_out {
        int32_t verdict;
        uint16_t state;    /* for STATE */
        int16_t error;     /* for STATE */
        uint8_t exact;     /* the block will say just what the bytes say */
        uint8_t kept_back; /* something older was said */
        uint32_t advice;
        uint32_t leaderless, listener_not_found, unreachable;
        rdmeta_doubt_t doubt; /* what to remember; answers 0: nothing */
} rdmeta_merge_out_t;

/* NO_MEMORY, or 0. `old` may be NULL or a block that only waits. */
rdmeta_err_t rdmeta_merge(const rdmeta_topic_t *old, rdmeta_stage_t *stage,
                          const rdmeta_merge_in_t *in,
                          rdmeta_merge_out_t *out);

/* The state of a topic that an answer to all topics does not name; its own:
 * that stays. Brokers omit what one may not describe, and lag. */
uint16_t rdmeta_merge_absent(const rdmeta_topic_t *t,
                             const rdmeta_merge_in_t *in);

/* A leader hint (KIP-951) against one partition: 1 take it, 0 not. */
int rdmeta_merge_hint(const rdmeta_topic_t *old, const rdmeta_row_t *row,
                      const rdmeta_leader_hint_t *hint);

#endif /* RDMETA_MERGE_H */
