/*
 * gen_old: the cluster of gen.h in Metadata responses v4 and v5, for clients
 * that ask for nothing newer. Both lack topic ids and epochs, v4 also offline
 * replicas. Each length takes four or two bytes.
 */
#pragma once

#include "gen.h"

/* Returns the most bytes that a response may take. */
size_t gen_old_bound(const gen_t *g);
/* Encodes the first `topics` topics as version 4 or 5. Returns the length. */
size_t gen_old_response(const gen_t *g, uint32_t topics, int version,
                        uint8_t *out);
