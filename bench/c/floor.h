/*
 * floor: the least that a lookup by topic name can cost. A table with open
 * addressing over a cluster's names and leaders, and no rules at all: no
 * states, no deadlines, no epochs, no readers, no writers after the build, no
 * seed. Nobody could use it; it is what the cache's lookups are held against.
 *
 *     slots    8 bytes, at most half of them used, linear probing
 *       +------+------+
 *       | tag  | line |-------+           tag: 32 bits of the hash
 *       +------+------+       v
 *     entries  one after the other, each from the start of a cache line
 *       +-----+-------+------------+------+---------+
 *       | len | width | partitions | name | leaders |
 *       +-----+-------+------------+------+---------+
 *                                           1 or 4 bytes each, as ids need
 *
 * Two multiplications a hash, one 16-byte compare twice for a name. Packing
 * the entries instead of aligning them costs 10 % at a million topics and
 * gains nothing below; leaders of 4 bytes always cost 10 to 20 %. Everything
 * is touched by the build, and in huge pages where the kernel grants them.
 */
#ifndef RDMETA_BENCH_FLOOR_H
#define RDMETA_BENCH_FLOOR_H

#include "gen.h"

typedef struct floor_table floor_table_t;

/* Exits with a message when there is no memory. */
floor_table_t *floor_new(const gen_t *g);
void floor_destroy(floor_table_t *t);

/* The leader's id, -1 for what is not there. */
int32_t floor_leader(const floor_table_t *t, const char *topic, size_t len,
                     int32_t partition);

/* `leader` back again: what any call into another file costs. */
int32_t floor_call(int32_t leader);

#endif
