/* The second half of a write. See apply_state.h. */
#ifndef RDMETA_CACHE_APPLY_COMMIT_H
#define RDMETA_CACHE_APPLY_COMMIT_H

#include "cache/apply_state.h"

/* After everything was read: absent topics, and all the room that commit will
 * need. NO_MEMORY. */
rdmeta_err_t rdmeta_apply_prepare(rdmeta_apply_t *a);
void rdmeta_apply_commit(rdmeta_apply_t *a);
/* Free what was staged. */
void rdmeta_apply_abort(rdmeta_apply_t *a);

#endif /* RDMETA_CACHE_APPLY_COMMIT_H */
