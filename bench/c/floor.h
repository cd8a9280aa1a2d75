/*
 * floor: the least that a lookup by topic name can cost. It is a table with
 * open addressing over a cluster's names and leaders. It has no rules: no
 * states, deadlines, epochs, readers, writers after the build, or seed. Its
 * only use is to compare the cache's lookups with it.
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
 * A lookup takes two multiplications for the hash, and two compares of 16 bytes
 * for the name. Packed entries, instead of aligned ones, cost 10 % at a million
 * topics and gain nothing below. Leaders of 4 bytes always cost 10 to 20 %. The
 * build touches all pages, in huge pages where the kernel grants them.
 */
#pragma once

#include "gen.h"

typedef struct floor_table floor_table_t;

/* Returns a table of the cluster. Exits with a message without memory. */
floor_table_t *floor_new(const gen_t *g);
void floor_destroy(floor_table_t *t);

/* Returns the leader's id, or -1 if the partition is not there. */
int32_t floor_leader(const floor_table_t *t, const char *topic, size_t len,
                     int32_t partition);

/* Returns `leader`: the cost of any call into another file. */
int32_t floor_call(int32_t leader);
