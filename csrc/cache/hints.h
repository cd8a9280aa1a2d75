/*
 * hints: names that were asked for and not answered yet.
 *
 * A hint marks a name as in flight. It keeps a second thread from asking again,
 * and a reader from taking silence for absence. A name that is not cached gets
 * a block that only waits. A topic that is stale, negative or denied keeps its
 * block, and only moves to the list of hints.
 *
 * A block has one deadline. For a topic that is retained, or negative and past
 * its deadline, a hint stores "asked until" there. No time has that value
 * (rdmeta_deadline_asked()). So past the hint's deadline readers stop waiting,
 * and threads may ask again. No sweep is needed for that.
 *
 * A hint changes nothing that is known, so it raises no version. Each call that
 * makes hints has a number. A request carries the last number at the time when
 * it left. So its answer ends no hint that was made later.
 */
#pragma once

#include "cache/state.h"

/* Puts a known topic in flight until `deadline`. A commit calls it again if the
 * hint was made after the answer's request left. */
void rdmeta_hint_known(rdmeta_cache_t *c, rdmeta_entry_t *e, int64_t deadline,
                       int64_t mono_us);
/* Ends the hints of a request. A request by name ends those of its names. An
 * answered request for all topics ends every hint. So does a failure that the
 * caller reports for an unknown request. Hints that were made after the request
 * left stay. */
void rdmeta_hints_end(rdmeta_cache_t *c, const rdmeta_request_t *asked,
                      int failed, int64_t mono_us);
