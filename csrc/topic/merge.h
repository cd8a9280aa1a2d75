/*
 * merge: decides what an answer changes in a topic. It is a pure function: it
 * uses no cache, clock or lock, and allocates only in the builder.
 *
 *     old block (or none) --+
 *     answer in a builder --+--> verdict, and the builder with rows put back
 *     rules, rewind --------+
 *
 * Epochs come first: a row with a lower epoch loses, whatever its other values
 * are. A row's error decides nothing: with REPLICA_NOT_AVAILABLE the leader is
 * valid. docs/internals/policies.md has the rules and names their tests.
 *
 * *Rewind.* Kafka's brokers learn of changes one after the other, so an answer
 * older than the block is normal. The merge keeps it back, and advises the
 * caller to ask another broker. But a cluster may really have gone back: by an
 * unclean restore, as a copy, or with a topic that was made again. So the merge
 * accepts the older answer in the end. Per topic, a rewind counts the older
 * answers. It remembers in what all of them were older:
 *
 *     either   rows:     partitions with a lower epoch, or left out
 *     or       an id:    one that the topic had before
 *
 *     an answer                         does this to the rewind
 *     is older in rows of the set       counts; its other rows leave the set
 *     is older, but in no row of it     begins it anew, as the first answer
 *     has an older id, another one      begins it anew, as the first answer
 *     raises a row, and is older        begins it anew, as the first answer
 *     is not older in anything          ends it
 *     has a topic error; is absent      nothing
 *     belongs to an outdated request    nothing; ends it if it raises a row
 *
 * A leader hint raises a row, and ends it. A request is outdated if it left
 * before the topic last changed. The merge believes a rewind at an answer that
 * is at least the RDMETA_REWIND_ANSWERS'th, and RDMETA_REWIND_US after the
 * first, if
 *
 *     - RDMETA_REWIND_BROKERS different known brokers gave such answers (all,
 *       if there are fewer), or
 *     - max age, RDMETA_REWIND_MAX_US at most, has passed since the first, or
 *     - the topic is past its deadline.
 *
 * The last two need no second broker. If the caller asks only one broker, or
 * names none of them, a topic is wrong for that long and no longer. Rows that
 * are older but not in the set stay as they were. The next answer begins their
 * count. franz-go accepts a rewind after 5 answers; the conditions on brokers
 * and time are rdmeta's own.
 *
 * *Removal.* A topic that was seen is absent once a broker leaves it out or
 * says UNKNOWN. It is removed if another broker does so, too, after the grace
 * time, or at once if the only broker says UNKNOWN. If another broker gave it
 * meanwhile, it has that time once more. UNKNOWN does not change a topic that
 * was removed. For the grace time after either step, an answer that gives it
 * again is a lagging broker's, and is kept back. It is taken if it has another
 * id, if a second named broker gives it, or if only one broker can be asked.
 * Several brokers may lag: so two of them count for an absent topic only after
 * RDMETA_PROPAGATES_US, and for one that a broker removed only if one of the
 * two is the broker that did not have it last. An absent topic is also taken
 * from the broker that did not have it.
 *
 * *Clocks.* An answer that is kept back wholly moves no deadline, so the topic
 * gets past it. An answer that is taken in part moves it, and the topic stays
 * due. So each row that is kept back has a clock of its own, from the first
 * answer that was older in it. After max age, RDMETA_REWIND_MAX_US at most, the
 * merge believes that row, whatever other rows do. A row loses its clock once
 * an answer is not older in it, or a leader hint raises it. A count that begins
 * anew, or ends, stops no clock of another row.
 */
#pragma once

#include "topic/brokers.h"
#include "topic/builder.h"

enum {
        RDMETA_REWIND_ANSWERS = 5,
        RDMETA_REWIND_BROKERS = 2,
        RDMETA_REWIND_US      = 5000000,
        RDMETA_PROPAGATES_US  = 500000,
        RDMETA_REWIND_MAX_US  = 900000000
};

/* Brokers are compared by these bits after a removal. */
#define RDMETA_GIVEN_MASK 0x7fffff

/* Kafka's error codes that have rules here. */
enum {
        RDMETA_E_UNKNOWN_TOPIC_OR_PARTITION = 3,
        RDMETA_E_INVALID_TOPIC              = 17,
        RDMETA_E_TOPIC_AUTHORIZATION_FAILED = 29,
        RDMETA_E_LISTENER_NOT_FOUND         = 72,
        RDMETA_E_UNKNOWN_TOPIC_ID           = 100,
        RDMETA_E_INCONSISTENT_TOPIC_ID      = 103,
        RDMETA_E_REBOOTSTRAP_REQUIRED       = 129
};

/* A row that the last answer was older in, and its clock. */
typedef struct rdmeta_rewind_row {
        int64_t since_us; /* the first of the older answers in a row */
        int32_t id;
        int32_t in_set; /* 1: all answers of the count were older in it */
} rdmeta_rewind_row_t;

/* A rewind: counts a topic's older answers, and has what they were older in. */
typedef struct rdmeta_rewind {
        int64_t since_us;     /* the time of the first of them */
        const rdmeta_rewind_row_t *rows; /* ascending; not only the set's */
        uint32_t count;       /* the number of `rows` */
        uint32_t answers;     /* 0: no count; there may be clocks */
        int32_t first_broker; /* the first known broker; -1: none yet */
        uint8_t others;       /* 1: another broker gave one, too */
        uint8_t past;         /* 1 + the id's place among the topic's past ids;
                               * 0: the rewind is of rows */
} rdmeta_rewind_t;

typedef struct rdmeta_merge_in {
        uint32_t fields;       /* RDMETA_WIRE_... of the answer's version */
        int32_t broker;        /* the broker that answered; -1: not known */
        int32_t candidates;    /* the number of brokers that can be asked */
        int64_t mono_us;
        int64_t max_age_us;
        uint64_t sent_version; /* the cache's version when the request left */
        int32_t sent_known;    /* 1: sent_version is known */
        int32_t stale;         /* 1: the topic is past its deadline; only read
                                * if there is a rewind */
        int32_t in_grace;      /* 1: it became absent or removed just now */
        int64_t gone_for_us;   /* in grace: for how long it has been so */
        int32_t expired;       /* in grace: its grace time removed it */
        int32_t given_by;      /* in grace: the first broker that gave it since,
                                * by the bits RDMETA_GIVEN_MASK of its id;
                                * -1: none */
        const rdmeta_rewind_t *rewind;   /* NULL: none yet */
        const rdmeta_brokers_t *brokers; /* the answer's */
} rdmeta_merge_in_t;

/* The verdict: what the caller does with the topic. */
enum {
        RDMETA_VERDICT_KEEP = 0, /* keep the block: nothing was learned */
        RDMETA_VERDICT_TAKE,     /* build a new block from the builder */
        RDMETA_VERDICT_STATE     /* put the old facts (or none) in `state` */
};

typedef struct rdmeta_merge_out {
        int32_t verdict;
        uint16_t state;    /* for STATE */
        int16_t error;     /* for STATE */
        uint8_t exact;     /* 1: the same bytes again would change nothing */
        uint8_t kept_back; /* 1: some facts of the answer were older */
        uint8_t given;     /* 1: the broker gave a topic that was removed */
        uint8_t in_part;   /* 1: but others were not, and it came in time */
        uint32_t advice;
        /* Why the topic needs another answer: bits RDMETA_DUE_.... With KEEP
         * they are those of the answer alone; the bits of the block stay. */
        uint32_t due;
        uint8_t counted;   /* 1: `rewind` replaces the topic's rewind */
        uint32_t leaderless, listener_not_found, unreachable;
        rdmeta_rewind_t rewind; /* answers, count 0: none; the builder owns
                                 * `rows` */
} rdmeta_merge_out_t;

/* The bits RDMETA_DUE_... that follow from a topic's block and the brokers. The
 * other ones come from the last answer about the topic. */
#define RDMETA_DUE_OF_BLOCK                                                   \
        (RDMETA_DUE_NO_LEADER | RDMETA_DUE_UNREACHABLE | RDMETA_DUE_ABSENT |  \
         RDMETA_DUE_DENIED)

/* Returns these bits of a block; `brokers`: the brokers that leaders may be. */
uint32_t rdmeta_merge_due(const rdmeta_topic_t *t,
                          const rdmeta_brokers_t *brokers);
/* Returns these bits of a topic in a state other than VALID. */
uint32_t rdmeta_merge_due_in(uint16_t state);

/* Merges the answer in `builder` with `old`, which may be NULL or a block in
 * flight. Returns 0 or NO_MEMORY. */
rdmeta_err_t rdmeta_merge(const rdmeta_topic_t *old, rdmeta_builder_t *builder,
                          const rdmeta_merge_in_t *in,
                          rdmeta_merge_out_t *out);

/* Returns for how long an answer that puts a topic into `state` holds. */
int64_t rdmeta_merge_ttl(const rdmeta_conf_t *conf, uint16_t state);

/* Returns the new state of a topic that a broker does not have, or its present
 * state if that stays. Brokers omit topics that the user may not describe, and
 * they lag. */
uint16_t rdmeta_merge_absent(const rdmeta_topic_t *t,
                             const rdmeta_merge_in_t *in);

/* Writes what is left of `before` (NULL: none) once rows have risen, of which
 * `builder` has the new epochs: the clocks of the other rows. The count begins
 * anew. The builder owns after->rows. Returns 0 or NO_MEMORY. */
rdmeta_err_t rdmeta_merge_risen(const rdmeta_cols_t *old,
                                rdmeta_builder_t *builder,
                                const rdmeta_rewind_t *before,
                                rdmeta_rewind_t *after);

/* Returns 1 if a leader hint (KIP-951) is newer than the partition's row. */
int rdmeta_merge_hint(const rdmeta_topic_t *old, const rdmeta_row_t *row,
                      const rdmeta_leader_hint_t *hint);
