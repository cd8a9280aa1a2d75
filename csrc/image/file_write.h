/* Writes an image into a file. */
#pragma once

#include "image/file.h"

/* Writes an image into an empty file. Returns IO or NO_MEMORY; MALFORMED, if
 * the image is itself a file that is damaged. */
rdmeta_err_t rdmeta_file_write(rdmeta_image_t *image, int fd);
/* Returns a random number, for hash keys and names of temporary files. */
uint64_t rdmeta_file_random(const void *address);
