/* Writing an image into a file. */
#ifndef RDMETA_IMAGE_FILE_WRITE_H
#define RDMETA_IMAGE_FILE_WRITE_H

#include "image/file.h"

/* Everything, into an empty file. IO, NO_MEMORY; MALFORMED:
 * the image is a file's. */
rdmeta_err_t rdmeta_file_write(rdmeta_image_t *image, int fd);
/* Returns a number for keys and names. */
uint64_t rdmeta_file_random(const void *address);

#endif /* RDMETA_IMAGE_FILE_WRITE_H */
