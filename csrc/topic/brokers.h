/*
 * brokers: the broker table, one immutable allocation.
 *
 *     header   large, version, count, controller, cluster id
 *     rows     [count] by id: id, port, host, rack (pointers into the same
 *              allocation: a table never leaves its process as it is)
 *     ids      the same ids hashed
 *     strings
 *
 * Any non-empty answer replaces the whole table, so there is nothing to merge:
 * a new one is made aside and compared.
 */
#ifndef RDMETA_TOPIC_BROKERS_H
#define RDMETA_TOPIC_BROKERS_H

#include "topic/topic.h"
#include "wire/response.h"

struct rdmeta_brokers {
        rdmeta_large_t large;
        uint64_t version;
        uint32_t count;
        _Atomic int32_t controller; /* moves without a change: any broker */
        uint32_t mask;   /* of `ids`: at most half of them are used */
        uint32_t factor; /* odd, and not to be known beforehand */
        int32_t *ids;   /* open addressing; -1: free */
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
/* The same, with a controller that does not move. NULL: no memory. */
rdmeta_brokers_t *rdmeta_brokers_copy(const rdmeta_allocator_t *allocator,
                                      const rdmeta_brokers_t *from);
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
RDMETA_INLINE uint32_t rdmeta_brokers_place(const rdmeta_brokers_t *brokers,
                                            int32_t id) {
        const uint64_t h = ((uint64_t)(uint32_t)id + 1) * brokers->factor;

        return (uint32_t)(h >> 16) & brokers->mask;
}

/* Asked for every leader of every answer that is read, so a hash. */
RDMETA_INLINE int rdmeta_brokers_has(const rdmeta_brokers_t *brokers,
                                     int32_t id) {
        uint32_t k = rdmeta_brokers_place(brokers, id);

        for (; brokers->ids[k] >= 0; k = (k + 1) & brokers->mask)
                if (brokers->ids[k] == id)
                        return 1;
        return 0;
}

#endif /* RDMETA_TOPIC_BROKERS_H */
