/* Checks every invariant of a cache, for tests. */
#ifndef RDMETA_CACHE_CHECK_H
#define RDMETA_CACHE_CHECK_H

#include "cache/state.h"

/* Returns NULL if every invariant holds, or else which one does not. Takes the
 * writers' lock. */
const char *rdmeta_cache_check(rdmeta_cache_t *c);

#endif /* RDMETA_CACHE_CHECK_H */
