/*
 * transaction: puts one version into the changelog, and wakes its waiters. It
 * is the same for an answer, a deadline, a purge and a leader hint.
 *
 *     init - reserve - begin - brokers? - item ... - end
 *            may fail  from here on it cannot
 *
 * The caller holds the writers' lock throughout.
 */
#pragma once

#include "cache/state.h"

typedef struct rdmeta_transaction {
        rdmeta_cache_t *c;
        rdmeta_time_t now;
        int32_t source, source_broker;
        uint64_t version;
        int begun;
        int recorded; /* 1: the changelog has room for it */
} rdmeta_transaction_t;

/* Begins the transaction of the next version. Changes nothing yet. */
void rdmeta_transaction_init(rdmeta_transaction_t *w, rdmeta_cache_t *c,
                             rdmeta_time_t now, int32_t source,
                             int32_t source_broker);
/* Reserves room for n changed topics; NO_MEMORY. */
rdmeta_err_t rdmeta_transaction_reserve(rdmeta_transaction_t *w, size_t n);
/* Begins the version's batch in the changelog. `next`: the new broker table;
 * NULL: it does not change. */
void rdmeta_transaction_begin(rdmeta_transaction_t *w,
                              const rdmeta_brokers_t *next);
/* Adds a changed topic. Takes `old`, which no table has any more, for the
 * changelog or limbo. NULL: there is no such block. */
void rdmeta_transaction_item(rdmeta_transaction_t *w, rdmeta_topic_t *old,
                             rdmeta_topic_t *new_);
/* Publishes the broker table that begin was given. Takes it. If the set of
 * brokers differs, due() must look at topics (due.h). */
void rdmeta_transaction_brokers(rdmeta_transaction_t *w,
                                rdmeta_brokers_t *next);
/* Ends the transaction. `changed`: 1: raises the version, and wakes waiters and
 * watches. */
void rdmeta_transaction_end(rdmeta_transaction_t *w, int changed);
