/* Stages what an answer says of one topic. See apply_state.h. */
#pragma once

#include "cache/apply_state.h"

/* Returns an update for `e`, zeroed but for the entry; NULL: no memory. Valid
 * until the next call. */
rdmeta_update_t *rdmeta_apply_update(rdmeta_apply_t *a, rdmeta_entry_t *e);
/* Stages a new topic that was read and merged. `start` is where its bytes
 * begin. NO_MEMORY; MALFORMED: the answer names it twice. */
rdmeta_err_t rdmeta_apply_new(rdmeta_apply_t *a, const uint8_t *start);
/* Stages the known topic of `e` that was read and merged. `start` is where its
 * bytes begin. NO_MEMORY. */
rdmeta_err_t rdmeta_apply_known(rdmeta_apply_t *a, rdmeta_entry_t *e,
                                const uint8_t *start);
/* Stages another state for a known topic of which the answer says nothing.
 * NO_MEMORY. */
rdmeta_err_t rdmeta_apply_absent(rdmeta_apply_t *a, rdmeta_entry_t *e,
                                 uint16_t state);
