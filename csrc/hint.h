/*
 * hint: names in flight, and everything that goes by deadline.
 *
 * A hint says "asked for": it keeps a second thread from asking again, and a
 * reader from taking silence for absence. What was never known waits in a
 * block of its own; what is stale or was answered negatively keeps its block
 * and only moves to the list of hints.
 *
 * A block has one deadline, and that of a name only remembered says "asked
 * until", which is no time that a deadline could be (rdmeta_deadline_asked()).
 * So past a hint's time its readers are no longer told to wait, nor is anybody
 * kept from asking, whether a sweep has ended it or not.
 */
#ifndef RDMETA_HINT_H
#define RDMETA_HINT_H

#include "cache.h"

/* The hints that a request's end ends: those of the names it asked for, every
 * one if it was for all topics, or failed and nobody knows what it was for. */
void rdmeta_hints_end(rdmeta_cache_t *c, const rdmeta_request_t *asked,
                      int failed, int64_t mono_us);

#endif /* RDMETA_HINT_H */
