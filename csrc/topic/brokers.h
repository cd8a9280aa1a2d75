/*
 * brokers: the broker table, one immutable allocation.
 *
 *     header   large, version, count, controller, cluster id
 *     rows     [count] by id: id, port, host, rack (pointers into the same
 *              allocation, since a table never leaves its process as it is)
 *     ids      the same ids hashed
 *     strings
 *
 * Any answer with brokers replaces the whole table, so there is nothing to
 * merge. The writer makes a new table and compares it with the old one.
 */
#pragma once

#include "topic/topic.h"
#include "wire/response.h"

struct rdmeta_brokers {
        rdmeta_large_t large;
        uint64_t version;
        uint32_t count;
        _Atomic int32_t controller; /* any broker; its move is no change */
        uint32_t mask;   /* slots of `ids` - 1; at most half are used */
        uint32_t factor; /* odd, and not predictable */
        int32_t *ids;    /* open addressing; -1: free */
        rdmeta_str_t cluster_id;
        rdmeta_broker_t *rows;
};

/* Reads the brokers, cluster id and controller of a response that
 * rdmeta_wire_open() has opened. Sets *out, which the caller destroys, and
 * returns 0. If the answer has no cluster id, the table takes that of `keep`,
 * which may be NULL. Returns MALFORMED for bad bytes, negative or equal ids, an
 * empty host or a bad port, or NO_MEMORY. */
rdmeta_err_t rdmeta_brokers_read(const rdmeta_allocator_t *allocator,
                                 rdmeta_wire_t *w,
                                 const rdmeta_brokers_t *keep,
                                 uint64_t version, rdmeta_brokers_t **out);

/* Returns a copy of `old` with one more broker, or with another address for it.
 * NULL: no memory. */
rdmeta_brokers_t *rdmeta_brokers_with(const rdmeta_allocator_t *allocator,
                                      const rdmeta_brokers_t *old,
                                      const rdmeta_broker_t *broker,
                                      uint64_t version);
/* Returns a copy whose controller no longer moves. NULL: no memory. */
rdmeta_brokers_t *rdmeta_brokers_copy(const rdmeta_allocator_t *allocator,
                                      const rdmeta_brokers_t *from);
/* Returns a table without brokers and cluster id. NULL: no memory. */
rdmeta_brokers_t *rdmeta_brokers_empty(const rdmeta_allocator_t *allocator,
                                       uint64_t version);
/* Frees a table, which may be NULL. */
void rdmeta_brokers_destroy(const rdmeta_allocator_t *allocator,
                            rdmeta_brokers_t *brokers);

int rdmeta_broker_same(const rdmeta_broker_t *a, const rdmeta_broker_t *b);
int rdmeta_str_same(rdmeta_str_t a, rdmeta_str_t b);
/* Returns whether ids, endpoints, racks and cluster id are equal. It does not
 * compare the controller, which is a random broker on KRaft. */
int rdmeta_brokers_same(const rdmeta_brokers_t *a, const rdmeta_brokers_t *b);
/* Returns 1 if `next` lacks a broker that `old` has. A leader may then be no
 * longer among the brokers. */
int rdmeta_brokers_lost(const rdmeta_brokers_t *old,
                        const rdmeta_brokers_t *next);
/* Returns the first slot of `ids` where an id may be. */
RDMETA_INLINE uint32_t rdmeta_brokers_place(const rdmeta_brokers_t *brokers,
                                            int32_t id) {
        const uint64_t h = ((uint64_t)(uint32_t)id + 1) * brokers->factor;

        return (uint32_t)(h >> 16) & brokers->mask;
}

/* Returns whether the table has a broker. A merge calls it for each leader of
 * each answer, so it uses a hash. */
RDMETA_INLINE int rdmeta_brokers_has(const rdmeta_brokers_t *brokers,
                                     int32_t id) {
        uint32_t k = rdmeta_brokers_place(brokers, id);

        for (; brokers->ids[k] >= 0; k = (k + 1) & brokers->mask)
                if (brokers->ids[k] == id)
                        return 1;
        return 0;
}
