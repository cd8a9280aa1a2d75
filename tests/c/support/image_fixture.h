/*
 * image_fixture: files of images, and everything that can be read of them.
 *
 *     rdmeta_image_t *image = iw_image(&w);      of a cw_t's cache
 *     const char *path      = iw_path("a");      in a directory of its own
 *     char *text            = iw_text(image, mono_us);
 *
 * iw_text() asks each topic in every way that readers have and writes down the
 * answers: equal texts, equal images. NULL: a call said MALFORMED.
 */
#ifndef RDMETA_IMAGE_WORLD_H
#define RDMETA_IMAGE_WORLD_H

#include "image/file.h"
#include "image/file_open.h"
#include "image/file_verify.h"
#include "image/file_write.h"
#include "support/cache_fixture.h"

/* What the fixture's cache says now; dies without memory. */
rdmeta_image_t *iw_image(cw_t *w);
/* A file of that name; the directory goes when the process ends. The same
 * memory for the next but seven calls. */
const char *iw_path(const char *name);
/* How many files are in the directory. */
int iw_files(void);
/* Saves what the cache says now. */
void iw_save(cw_t *w, const char *path);
/* The same after an answer: partition 0 of "a" has another leader. */
void iw_publish(cw_t *w, int32_t leader, const char *path);
rdmeta_image_t *iw_open(const char *path, int32_t flags, rdmeta_time_t now);

/* All of a file; free(). */
uint8_t *iw_read(const char *path, size_t *size);
void iw_write(const char *path, const void *data, size_t size);

/* free(). */
char *iw_text(rdmeta_image_t *image, int64_t mono_us);
/* Both say the same then. */
void iw_same(rdmeta_image_t *a, rdmeta_image_t *b, int64_t mono_us);
/* As iw_text(), by a reader that follows a file or a cache, too. */
char *iw_reader_text(rdmeta_reader_t *r, int64_t mono_us);

/* A cache's worth of everything: all states, widths, columns, lists. */
void iw_fill(cw_t *w);

#endif /* RDMETA_IMAGE_WORLD_H */
