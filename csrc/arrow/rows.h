/* Batches of the rows of a table. */
#ifndef RDMETA_ARROW_ROWS_H
#define RDMETA_ARROW_ROWS_H

#include "arrow/fill.h"

/* The next batch, and the cursor behind it; out->release NULL: no row is left.
 * NO_MEMORY: nothing has moved. */
rdmeta_err_t rdmeta_arrow_rows_next(rdmeta_arrow_rows_t *r,
                                    struct ArrowArray *out);

#endif /* RDMETA_ARROW_ROWS_H */
