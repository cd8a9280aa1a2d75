/* What a file says about itself, and what of it does not hold. */
#ifndef RDMETA_IMAGE_FILE_VERIFY_H
#define RDMETA_IMAGE_FILE_VERIFY_H

#include "image/file.h"

/* MALFORMED, and what is at `offset` of the file, in that section; -1: in the
 * head. */
rdmeta_err_t rdmeta_file_fault(rdmeta_image_fault_t *out, int section,
                               uint64_t offset, const char *what);

#endif /* RDMETA_IMAGE_FILE_VERIFY_H */
