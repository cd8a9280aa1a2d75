/* Verifies a file, and reports the first fault. */
#pragma once

#include "image/file.h"

/* Returns MALFORMED, and sets *out to the fault `what` at `offset` of the file,
 * in `section`; -1: in the head. `what` must be static. */
rdmeta_err_t rdmeta_file_fault(rdmeta_image_fault_t *out, int section,
                               uint64_t offset, const char *what);
