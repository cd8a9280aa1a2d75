/*
 * in_flight: names in flight, and everything that goes by deadline.
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
 *
 * A hint changes nothing that is known, so it raises no version. Each call that
 * makes hints has a number of its own, and a request carries the last number
 * as of when it left: the answer to it ends no hint that was made since.
 */
#ifndef RDMETA_CACHE_IN_FLIGHT_H
#define RDMETA_CACHE_IN_FLIGHT_H

#include "cache/state.h"

/* A topic that is known, and is in flight until `due`, whatever an answer to an
 * earlier request has said of it. */
void rdmeta_hint_known(rdmeta_cache_t *c, rdmeta_entry_t *e, int64_t due,
                       int64_t mono_us);
/* Ends the hints that go with a request: those of the names that it asked for;
 * every one if it was for all topics and was answered, or if it failed and
 * what it asked for is not known. A hint that was made after the request left
 * stays. */
void rdmeta_hints_end(rdmeta_cache_t *c, const rdmeta_request_t *asked,
                      int failed, int64_t mono_us);

#endif /* RDMETA_CACHE_IN_FLIGHT_H */
