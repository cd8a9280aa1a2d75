/* The second half of a write. See apply_state.h. */
#ifndef RDMETA_CACHE_APPLY_COMMIT_H
#define RDMETA_CACHE_APPLY_COMMIT_H

#include "cache/apply_state.h"

/* Ends staging once the whole answer was read: stages absent topics, and
 * reserves all room that commit will need. NO_MEMORY. */
rdmeta_err_t rdmeta_apply_prepare(rdmeta_apply_t *a);
/* Makes the staged answer visible to readers. Cannot fail. */
void rdmeta_apply_commit(rdmeta_apply_t *a);
/* Frees everything that was staged and not committed. */
void rdmeta_apply_abort(rdmeta_apply_t *a);

#endif /* RDMETA_CACHE_APPLY_COMMIT_H */
