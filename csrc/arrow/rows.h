/* Cuts the rows of a table into batches. */
#pragma once

#include "arrow/fill.h"

/* Sets *out to the next batch and moves the cursor past it; out->release NULL:
 * there is no more row. Returns NO_MEMORY, and then the cursor stays. */
rdmeta_err_t rdmeta_arrow_rows_next(rdmeta_arrow_rows_t *r,
                                    struct ArrowArray *out);
