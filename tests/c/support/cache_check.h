/* Checks every invariant of a cache, for tests. */
#pragma once

#include "cache/state.h"

/* Returns NULL if every invariant holds, or else which one does not. Takes the
 * writers' lock. */
const char *rdmeta_cache_check(rdmeta_cache_t *c);
