/* Ends versions, days and the observation: intervals end, and others begin. */
#pragma once

#include "fold/state.h"

/* Returns the entry of a partition in the open version, a new one if it has
 * none; NULL: no memory. The topic has that partition. */
rdmeta_fold_entry_t *rdmeta_fold_touch(rdmeta_fold_t *f,
                                       rdmeta_fold_topic_t *t,
                                       uint32_t partition, uint8_t reason,
                                       const rdmeta_fold_began_t *next);
/* Adds a topic to the open version. Returns NO_MEMORY. */
rdmeta_err_t rdmeta_fold_touch_topic(rdmeta_fold_t *f, rdmeta_fold_topic_t *t,
                                     uint8_t reason,
                                     const rdmeta_fold_began_t *next);

/* Adds a broker to the open version. Returns NO_MEMORY. */
rdmeta_err_t rdmeta_fold_touch_broker(rdmeta_fold_t *f,
                                      rdmeta_fold_broker_t *b, uint8_t reason,
                                      const rdmeta_fold_began_t *next);

/* Returns the begin of an interval by a record. A state that stood at the begin
 * of the observation began by `baseline`, or by a midnight if that is its time.
 * */
rdmeta_fold_began_t rdmeta_fold_began(const rdmeta_fold_began_t *next,
                                      uint8_t reason);

/* Ends the open version: writes the intervals that it ended. Returns NO_MEMORY;
 * the next call goes on where this one stopped. */
rdmeta_err_t rdmeta_fold_resolve(rdmeta_fold_t *f);

/* Returns the earliest time that a record may still have: that of the latest
 * record, or of a later midnight at which the caller has cut. */
int64_t rdmeta_fold_least_time(const rdmeta_fold_t *f);
/* Returns whether a time is too far behind that one: each day in between would
 * make a row of all that stands. */
int rdmeta_fold_is_far(const rdmeta_fold_t *f, int64_t at);

/* Ends all standing intervals at a midnight; they begin again there. Returns
 * NO_MEMORY; the same call goes on. */
rdmeta_err_t rdmeta_fold_midnight(rdmeta_fold_t *f, int64_t at);
/* Cuts at each midnight up to `at`. Returns NO_MEMORY, or MALFORMED if that is
 * too far from the last record or cut. */
rdmeta_err_t rdmeta_fold_midnights(rdmeta_fold_t *f, int64_t at);

/* Ends all standing intervals, and forgets all state but the racks of brokers.
 * Returns NO_MEMORY; the same call goes on. */
rdmeta_err_t rdmeta_fold_stop(rdmeta_fold_t *f, int64_t at, uint8_t by);
