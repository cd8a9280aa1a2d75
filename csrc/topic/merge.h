/*
 * merge: what an answer means for what is known. Pure: no cache, no clock, no
 * lock, no allocation but the stage's own.
 *
 *     old block (or none) --+
 *     staged answer --------+--> verdict, and the stage with rows put back
 *     rules, rewind --------+
 *
 * Epoch first: a lower epoch loses whatever else it says. The rules, each with
 * a test of its name in tests/c/topic/test_merge.c, are in docs/policies.md.
 *
 * *Rewind.* Kafka's brokers learn of changes one after the other, so an answer
 * that is older than what is known is normal. It is kept out, and the caller
 * asks another broker. But a cluster may really have gone back: an unclean
 * restore, a copy, a topic that was made again. So the older answer is believed
 * in the end. Per topic a rewind counts the answers that say something older,
 * and remembers what every one of them said so of:
 *
 *     either   rows:     partitions with a lower epoch, or left out
 *     or       an id:    one that the topic had before
 *
 *     an answer                         does this to the rewind
 *     is older in rows of the set       counts; its other rows leave the set
 *     is older, but in no row of it     begins it anew, as the first answer
 *     names an older id, another one    begins it anew, as the first answer
 *     raises a row, and is older        begins it anew, as the first answer
 *     is not older in anything          ends it
 *     has a topic error; is absent      nothing
 *     belongs to an outdated request    nothing; ends it if it raises a row
 *
 * A leader hint raises a row, and ends it. A request is outdated if it left
 * before the topic last changed. A rewind is believed at an answer that is at
 * least the RDMETA_REWIND_ANSWERS'th, and RDMETA_REWIND_US after the first, if
 *
 *     - RDMETA_REWIND_BROKERS different brokers that have a name gave such
 *       answers (all, if there are fewer), or
 *     - max age, RDMETA_REWIND_MAX_US at most, has passed since the first, or
 *     - the topic is past its deadline.
 *
 * The last two need no second broker. Where the caller asks only one, or gives
 * none of them a name, a topic is wrong for that long and no longer. An answer
 * that is kept out moves no deadline, so the topic gets past it. Rows that are
 * older but not in the set stay as they were. The next answer begins their
 * count. franz-go accepts a rewind after 5 answers; brokers and time are ours.
 */
#ifndef RDMETA_TOPIC_MERGE_H
#define RDMETA_TOPIC_MERGE_H

#include "topic/brokers.h"
#include "topic/builder.h"

enum {
        RDMETA_REWIND_ANSWERS = 5,
        RDMETA_REWIND_BROKERS = 2,
        RDMETA_REWIND_US      = 5000000,
        RDMETA_REWIND_MAX_US  = 900000000
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

/* Counts the answers about a topic that said something older, and what of. */
typedef struct rdmeta_rewind {
        int64_t since_us;     /* when the first of them came */
        const int32_t *rows;  /* partitions that all were older in, ascending */
        uint32_t count;       /* of rows */
        uint32_t answers;     /* 0: there is no rewind */
        int32_t first_broker; /* the first that has a name; -1: none has */
        uint8_t others;       /* 1: another broker gave one, too */
        uint8_t past;         /* 1 + place of the id among the topic's past
                               * ids; 0: the rewind is of rows */
} rdmeta_rewind_t;

typedef struct rdmeta_merge_in {
        uint32_t fields;         /* RDMETA_WIRE_..., of the answer's version */
        int32_t broker;          /* who answered; -1 not known */
        int32_t candidates;      /* brokers that could be asked */
        int64_t mono_us;
        int64_t max_age_us;
        uint64_t sent_version;   /* the cache's when the request left ... */
        int32_t sent_known;      /* ... 1: if that is known */
        int32_t stale;           /* 1: the topic is past its deadline; only
                                  * read if there is a rewind */
        const rdmeta_rewind_t *rewind;   /* NULL: none yet */
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
        uint8_t counted;   /* 1: `rewind` replaces the one there was */
        uint32_t leaderless, listener_not_found, unreachable;
        rdmeta_rewind_t rewind; /* answers 0: none; rows are the stage's */
} rdmeta_merge_out_t;

/* NO_MEMORY, or 0. `old` may be NULL or a block that only waits. */
rdmeta_err_t rdmeta_merge(const rdmeta_topic_t *old, rdmeta_builder_t *builder,
                          const rdmeta_merge_in_t *in,
                          rdmeta_merge_out_t *out);

/* Returns for how long an answer that puts a topic into `state` holds. */
int64_t rdmeta_merge_ttl(const rdmeta_conf_t *conf, uint16_t state);

/* The state of a topic that an answer to all topics does not name; its own:
 * that stays. Brokers omit what one may not describe, and lag. */
uint16_t rdmeta_merge_absent(const rdmeta_topic_t *t,
                             const rdmeta_merge_in_t *in);

/* A leader hint (KIP-951) against one partition: 1 take it, 0 not. */
int rdmeta_merge_hint(const rdmeta_topic_t *old, const rdmeta_row_t *row,
                      const rdmeta_leader_hint_t *hint);

#endif /* RDMETA_TOPIC_MERGE_H */
