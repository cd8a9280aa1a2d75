/*
 * state: all that the metadata log says at one offset.
 *
 *     slots[mask + 1]          topic            rows[count], by partition id
 *     +---+                   +---------+      +---+---+---+
 *     | * |--- by UUID ------>| id name |----->| * | * | * |--> row
 *     +---+                   | rows    |      +---+---+---+
 *     names  -- by name ----->|         |
 *     brokers -- by id ------> broker: its registration's bytes, its log dirs
 *     facts -- by kind, key -> the last record's bytes
 *     directories[n]           UUIDs that rows refer to, hashed; never removed
 *     epochs[n]                first offset of each leader epoch
 *
 * Each row and fact has the offset and the time of its record. Its epoch
 * follows from the offset. What comes from a snapshot has the snapshot's last
 * offset: `snapshot_end` says which those are.
 *
 * Every function here either does all that it says, or returns "no memory" and
 * has changed nothing that a reader sees.
 */
#pragma once

#include "base/hash.h"
#include "base/slab.h"
#include "base/tailq.h"
#include "kraft/facts.h"

enum {
        RDMETA_KRAFT_REPLICAS = 0,
        RDMETA_KRAFT_ISR,
        RDMETA_KRAFT_REMOVING,
        RDMETA_KRAFT_ADDING,
        RDMETA_KRAFT_ELR,
        RDMETA_KRAFT_LAST_ELR,
        RDMETA_KRAFT_DIRECTORIES,
        RDMETA_KRAFT_LISTS
};

/* The leader of a PartitionChange that names none. */
enum { RDMETA_KRAFT_SAME_LEADER = -2 };

/* The longest list of a row. No partition has as many replicas. */
enum { RDMETA_KRAFT_LIST_MAX = 255 };

/*
 * A partition. Its lists follow each other as big-endian int32, as the log has
 * them; directories are numbers of the state's table.
 *
 *     | offset time | id leader epochs | recovery counts[7] capacity |
 *     | replicas ... isr ... removing ... adding ... elr ... last ... dirs ...
 */
typedef struct rdmeta_kraft_row {
        int64_t offset, time_us;
        int32_t id, leader, leader_epoch, partition_epoch;
        int8_t recovery;
        uint8_t counts[RDMETA_KRAFT_LISTS];
        uint16_t capacity; /* of the lists, in int32 */
        uint8_t lists[];
} rdmeta_kraft_row_t;

#define RDMETA_KRAFT_ROW_FIXED offsetof(rdmeta_kraft_row_t, lists)
enum {
        RDMETA_KRAFT_ROW_MAX = sizeof(rdmeta_kraft_row_t) +
                               4 * RDMETA_KRAFT_LISTS * RDMETA_KRAFT_LIST_MAX
};

/* Returns how many int32 the lists have. */
static inline size_t rdmeta_kraft_row_units(const rdmeta_kraft_row_t *row) {
        size_t sum = 0;
        int i;

        for (i = 0; i < RDMETA_KRAFT_LISTS; i++)
                sum += row->counts[i];
        return sum;
}

/* Returns a list of the row. */
static inline rdmeta_wire_ids_t
rdmeta_kraft_row_list(const rdmeta_kraft_row_t *row, int which) {
        rdmeta_wire_ids_t l = {row->lists, row->counts[which]};
        int i;

        for (i = 0; i < which; i++)
                l.be += 4 * (size_t)row->counts[i];
        return l;
}

/* What a replay reads for each record is first, in one cache line. */
typedef struct rdmeta_kraft_topic_entry {
        uint8_t id[16];
        rdmeta_kraft_row_t **rows;
        uint32_t count, capacity;
        rdmeta_avl_node_t by_name;
        int64_t offset, time_us;
        int64_t born; /* the version of the commit that made it */
        uint32_t name_len;
        char name[];
} rdmeta_kraft_topic_entry_t;

static inline rdmeta_str_t
rdmeta_kraft_topic_name(const rdmeta_kraft_topic_entry_t *t) {
        return (rdmeta_str_t){t->name, t->name_len};
}

/* UUIDs: within a registration, or of a change. */
typedef struct rdmeta_kraft_dirs {
        const uint8_t *p; /* NULL: null */
        uint32_t n, own_n;
        uint8_t *own; /* NULL: within the registration, or none */
} rdmeta_kraft_dirs_t;

typedef struct rdmeta_kraft_broker_entry {
        rdmeta_avl_node_t by_id;
        int64_t offset, time_us; /* of the last record about it */
        rdmeta_kraft_record_t registration; /* its value follows this struct */
        int64_t epoch;
        int32_t id;
        int8_t fenced, shutting_down;
        rdmeta_kraft_dirs_t dirs, cordoned;
        uint8_t value[];
} rdmeta_kraft_broker_entry_t;

/* Return the topic or the broker of a node. */
#define RDMETA_KRAFT_TOPIC_AT(n) \
        RDMETA_CONTAINER(n, rdmeta_kraft_topic_entry_t, by_name)
#define RDMETA_KRAFT_BROKER_AT(n) \
        RDMETA_CONTAINER(n, rdmeta_kraft_broker_entry_t, by_id)

typedef struct rdmeta_kraft_epoch {
        int64_t from; /* offset */
        int32_t epoch;
        int32_t leader; /* RDMETA_NONE: not known; -1: none */
} rdmeta_kraft_epoch_t;

struct rdmeta_kraft_state {
        rdmeta_allocator_t allocator;
        rdmeta_slab_t slab; /* of topics and rows */
        uint64_t key[RDMETA_HASH_KEYS];
        rdmeta_kraft_topic_entry_t **slots;
        /* Topics that the last batch removed, by by_name.child[0]: records of
         * it have their names. */
        rdmeta_kraft_topic_entry_t *gone;
        uint32_t mask; /* slots - 1; at most half are used */
        uint32_t topics;
        uint64_t partitions;
        rdmeta_avl_t names, brokers;
        rdmeta_kraft_facts_t facts;
        uint8_t (*directories)[16];
        uint32_t *directory_slots; /* number + 1; 0: free */
        uint32_t n_directories, directory_mask;
        rdmeta_kraft_epoch_t *epochs;
        uint32_t n_epochs, epochs_capacity;
        int64_t next;         /* the offset behind what was replayed */
        int64_t snapshot_end; /* the offset behind its snapshot; 0: none */
        int64_t time_us;      /* the latest time so far */
        uint64_t unknown;     /* records of unknown types or versions */
        uint64_t skipped;     /* records that contradict the state */
        uint64_t clocks_back;
};

/* Returns an empty state. NULL: no memory. */
rdmeta_kraft_state_t *rdmeta_kraft_state_new(const rdmeta_allocator_t *a,
                                             uint64_t seed);
/* Frees a state, which may be NULL. */
void rdmeta_kraft_state_destroy(rdmeta_kraft_state_t *s);

/* Returns the topic of an id, or of a name. NULL: none. */
rdmeta_kraft_topic_entry_t *
rdmeta_kraft_topic_by_id(const rdmeta_kraft_state_t *s, const uint8_t id[16]);
rdmeta_kraft_topic_entry_t *
rdmeta_kraft_topic_by_name(const rdmeta_kraft_state_t *s, rdmeta_str_t name);
/* Where the prefetch is in the bytes of a log, which need not be good. */
typedef struct rdmeta_kraft_ahead {
        const uint8_t *p; /* of the next batch */
        size_t len;
        rdmeta_kraft_batch_t batch;
        rdmeta_kraft_records_t records;
        int64_t offset; /* behind the last record that was looked at */
} rdmeta_kraft_ahead_t;

/* Fetches into the CPU's cache what the replay of the next records will read,
 * step by step for all of them: slot, topic, place, row. */
void rdmeta_kraft_prefetch(const rdmeta_kraft_state_t *s,
                           rdmeta_kraft_ahead_t *ahead);
/* Adds a topic that the state lacks. NULL: no memory. */
rdmeta_kraft_topic_entry_t *rdmeta_kraft_topic_add(rdmeta_kraft_state_t *s,
                                                   rdmeta_str_t name,
                                                   const uint8_t id[16]);
/* Frees the topics that are gone. */
void rdmeta_kraft_gone_free(rdmeta_kraft_state_t *s);
/* Removes a topic and its partitions. It is gone, but not freed. */
void rdmeta_kraft_topic_remove(rdmeta_kraft_state_t *s,
                               rdmeta_kraft_topic_entry_t *t);

/* Returns the place of a partition in t->rows, or where it would be. */
uint32_t rdmeta_kraft_row_place(const rdmeta_kraft_topic_entry_t *t,
                                int32_t id);
/* Returns a partition's row. NULL: none. */
rdmeta_kraft_row_t *rdmeta_kraft_row_of(const rdmeta_kraft_topic_entry_t *t,
                                        int32_t id);
/* Puts a copy of `row` in place of `old`, or as a new one if that is NULL. It
 * may write into the old one. Returns 0: no memory. */
int rdmeta_kraft_row_set(rdmeta_kraft_state_t *s,
                         rdmeta_kraft_topic_entry_t *t,
                         rdmeta_kraft_row_t *old,
                         const rdmeta_kraft_row_t *row);
/* Returns the number of a directory, which it adds if it is new; -1: no
 * memory. */
int64_t rdmeta_kraft_directory(rdmeta_kraft_state_t *s, const uint8_t id[16]);

/* Returns a broker. NULL: none. */
rdmeta_kraft_broker_entry_t *
rdmeta_kraft_broker_of(const rdmeta_kraft_state_t *s, int32_t id);
/* Returns a broker of this registration, which is not in the state yet. NULL:
 * no memory. */
rdmeta_kraft_broker_entry_t *
rdmeta_kraft_broker_new(rdmeta_kraft_state_t *s,
                        const rdmeta_kraft_record_t *record,
                        const rdmeta_kraft_schema_t *schema,
                        const rdmeta_kraft_value_t *values);
/* Frees a broker that is not in the state. */
void rdmeta_kraft_broker_free(rdmeta_kraft_state_t *s,
                              rdmeta_kraft_broker_entry_t *b);
/* Takes a broker in place of the one with its id. */
void rdmeta_kraft_broker_put(rdmeta_kraft_state_t *s,
                             rdmeta_kraft_broker_entry_t *b);
/* Reads a broker's rack, and its endpoint of the listener (data NULL: the first
 * one). Returns 0 if there is no such endpoint: the host is empty then. */
int rdmeta_kraft_endpoint(const rdmeta_kraft_broker_entry_t *b,
                          rdmeta_str_t listener, rdmeta_broker_t *out);
/* Sets a broker's directories to a copy. Returns 0: no memory. */
int rdmeta_kraft_dirs_set(rdmeta_kraft_state_t *s, rdmeta_kraft_dirs_t *dirs,
                          const rdmeta_kraft_value_t *to);
void rdmeta_kraft_broker_remove(rdmeta_kraft_state_t *s,
                                rdmeta_kraft_broker_entry_t *b);

/* Records that the batches from this offset on have this epoch and leader; an
 * epoch that goes on is not recorded again. Returns 0: no memory. */
int rdmeta_kraft_epoch_add(rdmeta_kraft_state_t *s, int64_t from,
                           int32_t epoch, int32_t leader);
/* Returns the epoch of an offset; NULL: none is known. */
const rdmeta_kraft_epoch_t *
rdmeta_kraft_epoch_at(const rdmeta_kraft_state_t *s, int64_t offset);
