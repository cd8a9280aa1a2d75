/* The second half of a write. See apply.h. */
#ifndef RDMETA_COMMIT_H
#define RDMETA_COMMIT_H

#include "apply.h"

/* After everything was read: absent topics, and all the room that commit will
 * need. NO_MEMORY. */
rdmeta_err_t rdmeta_apply_prepare(rdmeta_apply_t *a);
void rdmeta_apply_commit(rdmeta_apply_t *a);
/* Free what was staged. */
void rdmeta_apply_abort(rdmeta_apply_t *a);

#endif /* RDMETA_COMMIT_H */
