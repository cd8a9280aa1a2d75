/* Reads change records out of Arrow batches of other programs. */
#pragma once

#include "fold/state.h"

/* Takes all records of a batch, as rdmeta_fold_batch() says. */
rdmeta_err_t rdmeta_fold_take_batch(rdmeta_fold_t *f,
                                    const struct ArrowSchema *schema,
                                    const struct ArrowArray *batch);
