/*
 * image_writer: a file on its way, for file_write.c (all of it) and
 * file_write.c (its largest part).
 */
#ifndef RDMETA_IMAGE_FILE_WRITE_STATE_H
#define RDMETA_IMAGE_FILE_WRITE_STATE_H

#include "image/file.h"

/* What is asked of an image's memory, in one piece. */
typedef struct rdmeta_writer_room {
        size_t size;
        char *buffer;
        uint64_t *names, *ids;
        uint32_t *order;
} rdmeta_writer_room_t;

typedef struct rdmeta_writer {
        rdmeta_image_t *image;
        int fd;
        uint64_t at; /* bytes that are in the file */
        size_t used; /* bytes in the buffer, that follow them */
        rdmeta_checksum_t sum;
        rdmeta_file_head_t head;
        rdmeta_file_table_t names, ids; /* their slots are in `room` */
        rdmeta_writer_room_t room;
        rdmeta_file_reasons_t reasons;
        size_t count; /* blocks that were put */
} rdmeta_writer_t;

/* What follows in the file; `p` NULL: zeros. IO. */
rdmeta_err_t rdmeta_writer_put(rdmeta_writer_t *s, const void *p, size_t n);
/* All of what was put is in the file. */
rdmeta_err_t rdmeta_writer_flush(rdmeta_writer_t *s);

/* The block that begins at `line` can be found by its name, and by its id. */
void rdmeta_writer_name(rdmeta_writer_t *s, const rdmeta_topic_t *t,
                        uint64_t line);
void rdmeta_writer_id(rdmeta_writer_t *s, const rdmeta_topic_t *t,
                      uint64_t line);

/* The section of the image's `n` blocks, and all that leads to them. */
rdmeta_err_t rdmeta_writer_blocks(rdmeta_writer_t *s, size_t n,
                                  int64_t taken_us);

#endif /* RDMETA_IMAGE_FILE_WRITE_STATE_H */
