/*
 * apply: one response on its way into the cache.
 *
 *     staging (apply*.c)                      commit (apply_commit.c)
 *       brokers    a table aside                pointer
 *       topics     unchanged: skipped           shared deadline
 *                  known: pends                 swaps, deadlines, digests
 *                  new: order[count..], aside   tables, count
 *       prepare    absent topics, room          ring, version, wake-ups
 *
 * A *pend* is what commit shall do to an entry that was there before.
 */
#ifndef RDMETA_CACHE_APPLY_STATE_H
#define RDMETA_CACHE_APPLY_STATE_H

#include "cache/transaction.h"

enum {
        RDMETA_UPDATE_MOVE = 0, /* said again: its deadline moves */
        RDMETA_UPDATE_FREEZE,   /* nothing was learned: its deadline stays */
        RDMETA_UPDATE_STATE     /* the deadline that its state has */
};

typedef struct rdmeta_update {
        rdmeta_entry_t *entry;
        rdmeta_topic_t *topic; /* the next block; NULL: the same */
        rdmeta_digest_t digest;
        uint32_t len;   /* of the digest; 0: none */
        uint16_t deadline;
        uint16_t counted; /* 1: `rewind` replaces the one that it had */
        rdmeta_kept_rewind_t *rewind;
} rdmeta_update_t;

typedef struct rdmeta_apply {
        rdmeta_cache_t *c;
        rdmeta_wire_t w;
        const rdmeta_request_t *asked;
        rdmeta_time_t now;
        rdmeta_applied_t *out;
        int16_t api_version;
        uint64_t version; /* the next one */
        int all;          /* every topic was asked for */
        int replace_all;  /* another cluster's, after a rebootstrap */
        int digests;      /* those of the order array may be compared */
        int forget;       /* none of them holds any more */
        int brokers_changed;
        rdmeta_brokers_t *brokers;
        rdmeta_merge_in_t in;
        rdmeta_provenance_t provenance; /* of what is learned */
        uint32_t reasons;   /* how many there were before */
        rdmeta_merge_out_t verdict;

        rdmeta_table_t *aside; /* names of new topics ... */
        int aside_is_next;     /* ... and of all others: the next table */
        rdmeta_topic_t *undecided; /* in it only so as not to be named twice */
        uint32_t cursor;       /* in the order array */
        uint32_t lost;         /* topics since one was where it stood */
        uint32_t follows;      /* looked up, and where it stood all the same */
        uint32_t nameless;     /* topics named by an unknown id alone */
        uint32_t digest_hits;
        uint32_t tail;         /* slots beyond its count */
        uint32_t fresh;        /* the same, once their entries are there */
        rdmeta_pieces_t fresh_of; /* what their blocks take */
        rdmeta_update_t *updates;
        size_t n_updates, updates_capacity;
        size_t replaced; /* pends with another block */
        size_t new_ids;
        size_t rewinds;
        rdmeta_transaction_t write; /* from prepare on */
} rdmeta_apply_t;

#endif /* RDMETA_CACHE_APPLY_STATE_H */
