/* Every invariant of a cache, for tests. */
#ifndef RDMETA_CACHE_CHECK_H
#define RDMETA_CACHE_CHECK_H

#include "cache/state.h"

/* NULL: every invariant holds; otherwise which does not. Takes the lock. */
const char *rdmeta_cache_check(rdmeta_cache_t *c);

#endif /* RDMETA_CACHE_CHECK_H */
