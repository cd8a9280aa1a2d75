/* Opening a file: the head is read and checked, the rest mapped. */
#ifndef RDMETA_IMAGE_FILE_OPEN_H
#define RDMETA_IMAGE_FILE_OPEN_H

#include "image/file.h"

/* rdmeta_image_open() with memory from `allocator`; NULL: the C library. */
rdmeta_err_t rdmeta_file_open(const rdmeta_allocator_t *allocator,
                              const char *path, int32_t flags,
                              rdmeta_time_t now, rdmeta_image_t **out);
/* It was taken then, in the clock of who reads; before anybody does. */
void rdmeta_file_taken(rdmeta_file_t *f, int64_t taken_us);
rdmeta_file_identity_t rdmeta_file_identity_of(const struct stat *st);
int rdmeta_file_identity_same(const rdmeta_file_identity_t *a,
                              const rdmeta_file_identity_t *b);
/* Returns the sum that a head should have. */
uint64_t rdmeta_file_head_checksum(const rdmeta_file_head_t *head);

#endif /* RDMETA_IMAGE_FILE_OPEN_H */
