/*
 * fold: change records become intervals in one pass, without a sort.
 *
 *     interned   texts and lists of ids, each once, by number
 *     state      the picture of a fold; what a partition, a broker says
 *     topics     topics by name, their partitions, their order
 *     brokers    brokers and configurations in order; racks of a list
 *     out        columns that grow, batches, streams
 *     intervals  writes an interval or a change into its columns
 *     resolve    ends a version; midnights; the end of the observation
 *     row        takes one record
 *     batch      reads records out of an Arrow batch
 *     saved      the state as bytes
 *     fold       the public calls
 *
 * Records of a recording come in order of versions. So the state of each
 * partition, and since when it has stood, are enough to end its interval when a
 * record changes it. Nothing is kept of what has been: an interval goes into
 * the columns of its table at once.
 *
 *     fold
 *      | slots: by hash of the name      interned: 1 "AAAA..", 2 [1,2,3] ...
 *      | topics: in any order                        ^
 *      v                                             | numbers
 *     topic "orders" -> partitions: [ says: id, isr, replicas, offline,
 *      | min_isr, polled_min_isr    |         leader, epoch, min_isr, racks,
 *      | says: id, partitions       |         adding, removing, elr
 *      | began                      | began: at, version, by, source ]
 *                                   [ ... ] 96 bytes each
 *
 * Only partitions that a record has named are there, so that one record with a
 * high number costs no more than another. They come in the order of their
 * numbers in nearly all recordings. Then partition i has the place i, and is
 * found without a search. Otherwise a topic has slots, too, to find them by.
 *
 *     brokers, configs: AVL trees, by id and by name
 *     out: per table, a batch that grows and the finished ones
 *
 * The records of one version are one change. A later time without a higher
 * version counts as another version, for a recorder learns configurations after
 * it has seen the topics. The records of a version may touch a partition more
 * than once: a topic that is recreated ends, and its partitions come again. So
 * the first record of a version that touches a partition makes an *entry*. It
 * has what the partition said before. When the next version comes, the version
 * is *resolved*: each entry whose partition says something else now ends an
 * interval and begins another. The kind that comes first in the order of
 * reasons gives `ended_by` and `began_by`; a topic's end comes before a new
 * state.
 *
 *     version 7    entries: [orders 0, before][orders 1, before] ...
 *     version 8 -> resolve: intervals of orders 0 and 1 end, others begin
 *
 * The parts that a record gives win over an end in the same version, in either
 * order, for answers have none: `given` has a bit per part. Those of a log are
 * in order. A broker has what it said before beside what it says. Intervals of
 * configurations and controllers end at once: a version has one record of each.
 *
 * A call that fails has left everything as it was, or can be repeated. Taking a
 * record first gets all memory, and then changes the state. A resolving version
 * goes entry by entry: its row is written, then the partition begins anew. A
 * midnight goes partition by partition: those that begin at that midnight are
 * done.
 */
#pragma once

#include "base/avl.h"
#include "fold/out.h"
#include "fold/interned.h"

#define RDMETA_FOLD_DAY (INT64_C(86400) * 1000000)
/* The last microsecond of the year 9999. */
#define RDMETA_FOLD_LAST (INT64_C(253402300800) * 1000000 - 1)

/* Bounds of one record: rdmeta_fold.h names them. */
enum {
        RDMETA_FOLD_PARTITIONS = 1 << 20,
        RDMETA_FOLD_NAME       = 32767,
        RDMETA_FOLD_IDS        = 1 << 16,
        RDMETA_FOLD_TEXT       = 1 << 20,
        RDMETA_FOLD_LABEL      = 16383, /* bytes of cluster id and origin */
        RDMETA_FOLD_DAYS       = 32,    /* without a record or a cut */
        RDMETA_FOLD_GONE       = 1024   /* brokers that are gone */
};

/* Why an interval begins or ends. If records of one version give several
 * reasons, the first one in this order counts. */
typedef enum rdmeta_fold_reason {
        RDMETA_BY_TOPIC_ABSENT,
        RDMETA_BY_TOPIC_REMOVED,
        RDMETA_BY_TOPIC_RECREATED,
        RDMETA_BY_TOPIC_ERROR,
        RDMETA_BY_TOPIC_ADDED,
        RDMETA_BY_BASELINE,
        RDMETA_BY_PARTITIONS_ADDED,
        RDMETA_BY_LEADER_CHANGED,
        RDMETA_BY_ISR_CHANGED,
        RDMETA_BY_REPLICAS_CHANGED,
        RDMETA_BY_REASSIGNMENT_CHANGED,
        RDMETA_BY_ELR_CHANGED,
        RDMETA_BY_LEADER_EPOCH_CHANGED,
        RDMETA_BY_OFFLINE_CHANGED,
        RDMETA_BY_TOPIC_ID_LEARNED,
        RDMETA_BY_CONFIG_CHANGED,
        RDMETA_BY_BROKER_ADDED,
        RDMETA_BY_BROKER_REMOVED,
        RDMETA_BY_BROKER_CHANGED,
        RDMETA_BY_BROKER_FENCED,
        RDMETA_BY_BROKER_UNFENCED,
        RDMETA_BY_BROKER_SHUTTING_DOWN,
        RDMETA_BY_CONTROLLER_CHANGED,
        RDMETA_BY_MIDNIGHT,
        RDMETA_BY_OPEN,
        RDMETA_BY_GAP,
        RDMETA_BY_NOTHING
} rdmeta_fold_reason_t;

/* Since when a state stands, and the record that began it. */
typedef struct rdmeta_fold_began {
        int64_t at, version;
        int64_t unseen; /* -1: not known */
        int64_t offset; /* -1: none */
        uint8_t by;
        int8_t source; /* RDMETA_SOURCE_..., -1: not known */
        int32_t epoch; /* the partition epoch; -1: not known */
} rdmeta_fold_began_t;

/* The state of a partition. Equal states have equal bytes. */
typedef struct rdmeta_fold_says {
        uint32_t id, isr, replicas, offline;   /* interned; 0: null */
        int32_t leader, epoch, min_isr, racks; /* -1: null */
        uint32_t adding, removing, elr;        /* interned; 0: null */
} rdmeta_fold_says_t;

typedef struct rdmeta_fold_partition {
        rdmeta_fold_says_t says;
        rdmeta_fold_began_t began; /* valid if its interval stands */
        uint32_t entry;            /* its entry's place + 1, or 0 */
        uint32_t number : 24;
        uint32_t live   : 1; /* its leader is given: it has an interval */
        uint32_t stands : 1; /* an interval of it has begun and not ended */
} rdmeta_fold_partition_t;

typedef struct rdmeta_fold_topic_says {
        uint32_t id; /* a word; 0: null */
        uint32_t partitions;
        uint16_t exists, listed; /* listed: its partitions were */
} rdmeta_fold_topic_says_t;

typedef struct rdmeta_fold_topic {
        rdmeta_str_t name;  /* as it came: the key */
        uint32_t shown;     /* the word of the name as UTF-8 */
        uint32_t hash;
        rdmeta_fold_partition_t *partitions;
        uint32_t n, room;
        uint32_t *slots;   /* NULL: partition i is at place i */
        uint32_t mask;     /* of slots: places + 1, by hash of the number */
        uint32_t unsorted; /* a partition came after a higher one */
        uint32_t live; /* partitions that have a leader given */
        int32_t min_isr;
        int32_t polled_min_isr; /* by a poll; where a log knows none */
        size_t place; /* in the fold's list of topics */
        rdmeta_fold_topic_says_t says, before;
        rdmeta_fold_began_t began, next;
        uint8_t open;   /* records of the open version touched it */
        uint8_t ended;  /* one of them ended it */
        uint8_t reason; /* the first of their reasons */
        uint8_t end_reason;
        uint8_t stands;
        char text[];
} rdmeta_fold_topic_t;

/* The parts of a partition's state that a record can give. */
enum {
        RDMETA_GAVE_LEADER   = 1 << 0,
        RDMETA_GAVE_ID       = 1 << 1,
        RDMETA_GAVE_ISR      = 1 << 2,
        RDMETA_GAVE_REPLICAS = 1 << 3,
        RDMETA_GAVE_OFFLINE  = 1 << 4,
        RDMETA_GAVE_MOVES    = 1 << 5, /* adding and removing */
        RDMETA_GAVE_ELR      = 1 << 6,
        RDMETA_GAVE_ALL      = (1 << 7) - 1
};

/* A partition that records of the open version have touched. */
typedef struct rdmeta_fold_entry {
        rdmeta_fold_topic_t *topic;
        uint32_t partition;
        uint8_t reason;
        uint8_t ended;
        uint8_t given;
        rdmeta_fold_says_t before;
        /* The last of these records; of a log the last of the partition. */
        rdmeta_fold_began_t next;
} rdmeta_fold_entry_t;

/* The state of a broker. Equal states have equal bytes. */
typedef struct rdmeta_fold_broker_says {
        uint32_t host, rack; /* interned; rack 0: none, or never given */
        int32_t port;
        int8_t fenced, shutting_down; /* -1: not known */
        uint16_t listed;
} rdmeta_fold_broker_says_t;

typedef struct rdmeta_fold_broker {
        rdmeta_avl_node_t node; /* first */
        int32_t id;
        uint8_t open;   /* records of the open version touched it */
        uint8_t reason; /* the first of their reasons */
        /* `before` is what stands, if it is listed. */
        rdmeta_fold_broker_says_t says, before;
        rdmeta_fold_began_t began, next;
        int64_t epoch, next_epoch; /* of the first record, of the last; -1 */
} rdmeta_fold_broker_t;

/* A configuration that is no broker's. */
enum { RDMETA_FOLD_OF_TOPIC = -1, RDMETA_FOLD_OF_ALL_BROKERS = -2 };

typedef struct rdmeta_fold_config {
        rdmeta_avl_node_t node; /* first */
        int32_t broker;         /* or RDMETA_FOLD_OF_... */
        uint32_t resource, key, value; /* words */
        rdmeta_fold_began_t began;
} rdmeta_fold_config_t;

/* The leader of the controllers; its term stands if `epoch` is not -1. */
typedef struct rdmeta_fold_controller {
        int32_t broker, epoch; /* broker -1: none */
        rdmeta_fold_began_t began;
} rdmeta_fold_controller_t;

/* A reason for which partitions that no record names may say something else. */
typedef struct rdmeta_fold_wide {
        rdmeta_fold_began_t began;
        uint8_t reason; /* NOTHING: there is none */
} rdmeta_fold_wide_t;

struct rdmeta_fold {
        rdmeta_allocator_t allocator;
        rdmeta_str_t cluster_id, origin;
        int64_t counts_from, counts_to;
        uint32_t buckets, bucket;
        uint32_t tables; /* that get rows: the sum of 1 << table */
        uint64_t most_waiting; /* bytes of rows; 0: no bound */

        rdmeta_fold_interned_t interned;
        uint64_t key[RDMETA_HASH_KEYS];
        rdmeta_fold_topic_t **topics, **slots;
        size_t n_topics, topics_room, mask;
        rdmeta_fold_topic_t **sorted; /* topics_room; valid if in_order */
        int in_order;
        rdmeta_avl_t brokers, configs;
        size_t gone; /* brokers that are not listed: their racks count */
        rdmeta_fold_controller_t controller;
        int32_t min_isr; /* of topics without their own; -1: not known */

        int begun;       /* an observed_from has come */
        int has_version; /* a record has come */
        int is_baseline; /* the open version is the observation's begin */
        int64_t mark;    /* the version of that begin */
        int64_t version; /* the open version */
        int64_t clock;   /* the latest time; INT64_MIN: none yet */
        int64_t day_end; /* the next midnight */
        uint8_t partial;

        rdmeta_fold_entry_t *entries; /* of the open version */
        size_t n_entries, entries_room, resolved;
        rdmeta_fold_topic_t **touched; /* topics of the open version */
        size_t n_touched, touched_room, resolved_topics;
        rdmeta_fold_broker_t **moved; /* brokers of the open version */
        size_t n_moved, moved_room, resolved_brokers;
        rdmeta_fold_wide_t min_isrs, racks;
        uint32_t racks_turn;
        uint32_t *scratch; /* for sorting a list */
        size_t scratch_room;

        rdmeta_fold_out_t out[RDMETA_FOLD_TABLES];
        rdmeta_fold_stats_t stats;
        size_t bytes; /* of topics, partitions, lists; without words */
        char error[192];
        char labels[]; /* cluster id, origin: UTF-8 */
};

/* Returns about how many bytes the rows that wait for take() have. */
RDMETA_INLINE uint64_t rdmeta_fold_waiting(const rdmeta_fold_t *f) {
        uint64_t size = 0;
        int i;

        for (i = 0; i < RDMETA_FOLD_TABLES; i++)
                size += rdmeta_fold_out_size(&f->out[i]);
        return size;
}

/* Forgets what holds for the cluster as a whole. */
RDMETA_INLINE void rdmeta_fold_clear(rdmeta_fold_t *f) {
        f->min_isr           = -1;
        f->controller.broker = f->controller.epoch = -1;
}

/* Returns the minimum ISR that counts for a topic; -1: not known. A poll
 * reported what counted then, static settings of brokers too, which are in no
 * log. */
RDMETA_INLINE int32_t rdmeta_fold_min_isr(const rdmeta_fold_t *f,
                                          const rdmeta_fold_topic_t *t) {
        if (t->min_isr >= 0 || f->min_isr >= 0)
                return t->min_isr >= 0 ? t->min_isr : f->min_isr;
        return t->polled_min_isr;
}

/* Allocates memory of the state, which stats count. NULL: no memory. */
RDMETA_INLINE void *rdmeta_fold_alloc(rdmeta_fold_t *f, size_t size) {
        void *p = rdmeta_alloc(&f->allocator, size);

        if (p)
                f->bytes += size;
        return p;
}

RDMETA_INLINE void rdmeta_fold_free(rdmeta_fold_t *f, void *p, size_t size) {
        if (p)
                f->bytes -= size;
        rdmeta_free(&f->allocator, p, size);
}

/* Makes room for `need` items of `size` bytes, of which there are `n`. Returns
 * the memory, or NULL and leaves the old one. */
void *rdmeta_fold_room(rdmeta_fold_t *f, void *old, size_t n, size_t *room,
                       size_t need, size_t size);

/* Stores what was wrong, for rdmeta_fold_error(). Returns `err`. */
rdmeta_err_t rdmeta_fold_wrong(rdmeta_fold_t *f, rdmeta_err_t err,
                               const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* Returns the number of a text, as UTF-8; 0: no memory. */
uint32_t rdmeta_fold_text(rdmeta_fold_t *f, rdmeta_str_t s);
