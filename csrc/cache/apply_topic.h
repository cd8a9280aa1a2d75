/* What an answer says of one topic, staged. See apply_state.h. */
#ifndef RDMETA_CACHE_APPLY_TOPIC_H
#define RDMETA_CACHE_APPLY_TOPIC_H

#include "cache/apply_state.h"

/* A pend for `e`, zeroed but for the entry; NULL: no memory. */
rdmeta_update_t *rdmeta_apply_update(rdmeta_apply_t *a, rdmeta_entry_t *e);
/* A topic that was read and merged: one that nobody knew, or `e`. `start` is
 * where its bytes begin. NO_MEMORY; MALFORMED: named twice. */
rdmeta_err_t rdmeta_apply_new(rdmeta_apply_t *a, const uint8_t *start);
rdmeta_err_t rdmeta_apply_known(rdmeta_apply_t *a, rdmeta_entry_t *e,
                                const uint8_t *start);

#endif /* RDMETA_CACHE_APPLY_TOPIC_H */
