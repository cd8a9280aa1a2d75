/* Reads change records out of Arrow batches of other programs. */
#ifndef RDMETA_FOLD_BATCH_H
#define RDMETA_FOLD_BATCH_H

#include "fold/state.h"

/* Takes all records of a batch, as rdmeta_fold_batch() says. */
rdmeta_err_t rdmeta_fold_take_batch(rdmeta_fold_t *f,
                                    const struct ArrowSchema *schema,
                                    const struct ArrowArray *batch);

#endif /* RDMETA_FOLD_BATCH_H */
