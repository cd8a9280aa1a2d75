/*
 * apply: one response on its way into the cache.
 *
 *     staging (apply.c, apply_topic.c)        commit (apply_commit.c)
 *       brokers    a table aside                pointer
 *       topics     unchanged: skipped           shared deadline
 *                  known: updates               swaps, deadlines, digests
 *                  new: order[count..], aside   tables, count
 *       prepare    absent topics, room          changelog, version, wake-ups
 *
 * An *update* is what commit will do to an entry that the cache already has.
 */
#pragma once

#include "cache/transaction.h"

enum {
        RDMETA_UPDATE_MOVE = 0, /* the answer confirms it: deadline moves */
        RDMETA_UPDATE_FREEZE,   /* nothing was learned: deadline stays */
        RDMETA_UPDATE_STATE,    /* the deadline follows from its state */
        RDMETA_UPDATE_GONE      /* the topic is removed: deadline is past */
};

typedef struct rdmeta_update {
        rdmeta_entry_t *entry;
        rdmeta_topic_t *topic; /* the next block; NULL: the block stays */
        rdmeta_digest_t digest;
        uint32_t len;   /* of the bytes under the digest; 0: no digest */
        uint8_t deadline; /* RDMETA_UPDATE_... */
        uint8_t counted;  /* 1: `rewind` replaces the entry's rewind */
        uint8_t due_known; /* 1: `due` replaces the entry's reasons */
        uint8_t due;      /* RDMETA_DUE_... */
        uint8_t given;    /* 1: the broker gave a topic that was removed */
        rdmeta_kept_rewind_t *rewind;
} rdmeta_update_t;

typedef struct rdmeta_apply {
        rdmeta_cache_t *c;
        rdmeta_wire_t w;
        const rdmeta_request_t *asked;
        rdmeta_time_t now;
        rdmeta_applied_t *out;
        int16_t api_version;
        uint64_t version; /* the one that this write will make */
        int all;          /* 1: the request asked for all topics */
        int replace_all;  /* 1: another cluster's, after a rebootstrap */
        int digests;      /* 1: the order array's digests may be compared */
        int forget;       /* 1: commit forgets all digests */
        int brokers_changed;
        rdmeta_brokers_t *brokers;
        rdmeta_merge_in_t in;
        rdmeta_provenance_t provenance; /* of this answer */
        uint32_t reasons;   /* number of reasons before this answer */
        rdmeta_merge_out_t verdict;

        rdmeta_table_t *aside; /* names of new topics */
        int aside_is_next;     /* 1: aside has all names: the next table */
        rdmeta_topic_t *undecided; /* in aside, to find a name given twice */
        uint32_t cursor;       /* the slot expected for the next topic */
        uint32_t misses;       /* topics in a row that were elsewhere */
        uint32_t follows;      /* looked-up topics in a row at the cursor */
        uint32_t nameless;     /* topics that have only an unknown id */
        uint32_t digest_hits;
        uint32_t tail;         /* slots beyond the order array's count */
        uint32_t fresh;        /* new topics, each with entry and tail slot */
        rdmeta_pieces_t fresh_of; /* bytes of their blocks, per slab */
        rdmeta_update_t *updates;
        size_t n_updates, updates_capacity;
        size_t replaced; /* updates with another block */
        size_t new_ids;
        size_t notes;    /* topics that may need a note (cache/notes.h) */
        rdmeta_transaction_t write; /* begins in prepare */
} rdmeta_apply_t;
