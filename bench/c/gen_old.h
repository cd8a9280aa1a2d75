/*
 * gen_old: the same cluster as gen.h makes, in Metadata responses v4 and v5,
 * for clients that ask for nothing newer. These have no topic ids, no epochs,
 * v4 no offline replicas, and four or two bytes for every length.
 */
#ifndef RDMETA_BENCH_GEN_OLD_H
#define RDMETA_BENCH_GEN_OLD_H

#include "gen.h"

/* Room that a response may take at most. */
size_t gen_old_bound(const gen_t *g);
/* Encode the first `topics` topics as version 4 or 5; returns the length. */
size_t gen_old_response(const gen_t *g, uint32_t topics, int version,
                        uint8_t *out);

#endif
