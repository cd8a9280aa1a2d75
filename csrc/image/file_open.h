/* Opens a file: reads and checks its head, and maps or copies the rest. */
#pragma once

#include "image/file.h"

/* Opens a file as rdmeta_image_open() does, with memory from `allocator`; NULL:
 * from the C library. */
rdmeta_err_t rdmeta_file_open(const rdmeta_allocator_t *allocator,
                              const char *path, int32_t flags,
                              rdmeta_time_t now, rdmeta_image_t **out);
/* Sets when the image was taken, in the reader's clock. Call it before any
 * reader uses the image. */
void rdmeta_file_taken(rdmeta_file_t *f, int64_t taken_us);
/* Returns the identity of the file that `st` describes. */
rdmeta_file_identity_t rdmeta_file_identity_of(const struct stat *st);
/* Returns 1 if both are the same file, unchanged. */
int rdmeta_file_identity_same(const rdmeta_file_identity_t *a,
                              const rdmeta_file_identity_t *b);
/* Returns the checksum that a head should have. */
uint64_t rdmeta_file_head_checksum(const rdmeta_file_head_t *head);
