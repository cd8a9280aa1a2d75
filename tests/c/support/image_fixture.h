/*
 * image_fixture: makes images and their files, and prints all their contents.
 *
 *     rdmeta_image_t *image = iw_image(&w);      of a cw_t's cache
 *     const char *path      = iw_path("a");      in a temporary directory
 *     char *text            = iw_text(image, mono_us);
 *
 * iw_text() looks up each topic by every call of a reader and prints the
 * results. Two images are equal if their texts are.
 */
#pragma once

#include "image/file.h"
#include "image/file_open.h"
#include "image/file_verify.h"
#include "image/file_write.h"
#include "support/cache_fixture.h"

/* Returns an image of the fixture's cache as it is now. Ends the test if there
 * is no memory. */
rdmeta_image_t *iw_image(cw_t *w);
/* Returns the path of a file with that name. The directory is removed when the
 * process ends. The eighth call after this one overwrites the returned path. */
const char *iw_path(const char *name);
/* Returns how many files are in the directory. */
int iw_files(void);
/* Saves an image of the cache as it is now. */
void iw_save(cw_t *w, const char *path);
/* Applies an answer that gives partition 0 of "a" this leader, then saves. */
void iw_publish(cw_t *w, int32_t leader, const char *path);
/* Opens an image file; ends the test if that fails. */
rdmeta_image_t *iw_open(const char *path, int32_t flags, rdmeta_time_t now);

/* Returns all bytes of a file; the caller calls free(). */
uint8_t *iw_read(const char *path, size_t *size);
/* Replaces the contents of a file. */
void iw_write(const char *path, const void *data, size_t size);

/* Returns all contents of an image as text, which the caller frees by free().
 * NULL: a call returned MALFORMED. */
char *iw_text(rdmeta_image_t *image, int64_t mono_us);
/* Checks that both images have the same text at that time. */
void iw_same(rdmeta_image_t *a, rdmeta_image_t *b, int64_t mono_us);
/* Returns the text as iw_text() does, through any reader: of a cache, or one
 * that follows a file. */
char *iw_reader_text(rdmeta_reader_t *r, int64_t mono_us);

/* Fills a cache with topics of all states, widths, columns and lists. */
void iw_fill(cw_t *w);
