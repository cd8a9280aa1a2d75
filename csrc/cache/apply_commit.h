/* The second half of a write. See apply_state.h. */
#pragma once

#include "cache/apply_state.h"

/* Makes the staged answer visible to readers. Nothing staged is left but
 * scratch memory. */
void rdmeta_apply_commit(rdmeta_apply_t *a);
