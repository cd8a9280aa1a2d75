/*
 * transaction: one version's way into the ring and out to who waits, whatever
 * brought it: an answer, a deadline, a purge, a leader hint.
 *
 *     init - reserve - begin - brokers? - item ... - end
 *            may fail  from here on it cannot
 *
 * The writers' lock is held throughout.
 */
#ifndef RDMETA_CACHE_TRANSACTION_H
#define RDMETA_CACHE_TRANSACTION_H

#include "cache/state.h"

typedef struct rdmeta_transaction {
        rdmeta_cache_t *c;
        rdmeta_time_t now;
        int32_t source, source_broker;
        uint64_t version;
        int begun;
        int recorded; /* the ring has room */
} rdmeta_transaction_t;

/* The next version's. */
void rdmeta_transaction_init(rdmeta_transaction_t *w, rdmeta_cache_t *c, rdmeta_time_t now,
                       int32_t source, int32_t source_broker);
/* Room for n changed topics; NO_MEMORY. */
rdmeta_err_t rdmeta_transaction_reserve(rdmeta_transaction_t *w, size_t n);
/* `next`: the broker table from now on; NULL: it does not change. */
void rdmeta_transaction_begin(rdmeta_transaction_t *w, const rdmeta_brokers_t *next);
/* `old` leaves, and is the ring's or limbo's now; NULL: there was none. */
void rdmeta_transaction_item(rdmeta_transaction_t *w, rdmeta_topic_t *old,
                       rdmeta_topic_t *new_);
/* Let readers see what begin was told of. */
void rdmeta_transaction_brokers(rdmeta_transaction_t *w, rdmeta_brokers_t *next);
/* `told`: the version moves on, and who waits for it is woken. */
void rdmeta_transaction_end(rdmeta_transaction_t *w, int told);

#endif /* RDMETA_CACHE_TRANSACTION_H */
