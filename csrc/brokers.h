/*
 * brokers: the broker table, one immutable allocation.
 *
 *     header   large, version, count, controller, cluster id
 *     rows     [count] by id: id, port, host, rack (pointers into the same
 *              allocation: a table never leaves its process as it is)
 *     strings
 *
 * Any non-empty answer replaces the whole table, so there is nothing to merge:
 * a new one is made aside and compared.
 */
#ifndef RDMETA_BROKERS_H
#define RDMETA_BROKERS_H

#include "topic.h"
#include "wire.h"

#define RDMETA_BROKERS_LOW 1024

struct rdmeta_brokers {
        rdmeta_large_t large;
        uint64_t version;
        uint32_t count;
        _Atomic int32_t controller; /* moves without a change: any broker */
        uint64_t low_ids[RDMETA_BROKERS_LOW / 64]; /* a bit each */
        rdmeta_str_t cluster_id;
        rdmeta_broker_t *rows;
};

/* From a response that stands right after its head; leaves it right after
 * cluster id and controller. MALFORMED: bytes, negative or equal ids, an
 * empty host. NO_MEMORY. *out is set for 0 only. `keep`: whose cluster id to
 * carry on if the answer names none; may be NULL. */
rdmeta_err_t rdmeta_brokers_read(const rdmeta_allocator_t *allocator,
                                 rdmeta_wire_t *w,
                                 const rdmeta_brokers_t *keep,
                                 uint64_t version, rdmeta_brokers_t **out);

/* `old` with one broker more, or in another place. NULL: no memory. */
rdmeta_brokers_t *rdmeta_brokers_with(const rdmeta_allocator_t *allocator,
                                      const rdmeta_brokers_t *old,
                                      const rdmeta_broker_t *broker,
                                      uint64_t version);
/* No brokers, no cluster id. NULL: no memory. */
rdmeta_brokers_t *rdmeta_brokers_empty(const rdmeta_allocator_t *allocator,
                                       uint64_t version);
void rdmeta_brokers_destroy(const rdmeta_allocator_t *allocator,
                            rdmeta_brokers_t *brokers);

int rdmeta_broker_same(const rdmeta_broker_t *a, const rdmeta_broker_t *b);
int rdmeta_str_same(rdmeta_str_t a, rdmeta_str_t b);
/* Ids, endpoints, racks, cluster id; not the controller, which is a random
 * broker on KRaft. */
int rdmeta_brokers_same(const rdmeta_brokers_t *a, const rdmeta_brokers_t *b);
/* 1: `next` lacks a broker that `old` has, so that a leader may have become
 * one that is not among the brokers. */
int rdmeta_brokers_lost(const rdmeta_brokers_t *old,
                        const rdmeta_brokers_t *next);
int rdmeta_brokers_has_high(const rdmeta_brokers_t *brokers, int32_t id);

/* Asked for every leader of every answer that is read, so cheap for the ids
 * that clusters have. */
RDMETA_INLINE int rdmeta_brokers_has(const rdmeta_brokers_t *brokers,
                                     int32_t id) {
        if (RDMETA_LIKELY((uint32_t)id < RDMETA_BROKERS_LOW))
                return brokers->low_ids[id / 64] >> (id % 64) & 1;
        return rdmeta_brokers_has_high(brokers, id);
}

#endif /* RDMETA_BROKERS_H */
