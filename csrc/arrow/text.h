/* Names of any bytes as UTF-8, ids as base64. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { RDMETA_ARROW_ID = 22 }; /* characters of a topic's id */

/* Returns the size of these bytes as UTF-8. Each byte that is not part of a
 * character counts as U+FFFD, three bytes. */
size_t rdmeta_text_size(const char *s, size_t len);
/* Writes `size` bytes of UTF-8, as many as rdmeta_text_size() returned. */
void rdmeta_text_copy(char *out, size_t size, const char *s, size_t len);
/* Writes an id as Kafka does: in base64, URL-safe, without padding. */
void rdmeta_text_id(char out[RDMETA_ARROW_ID], const uint8_t id[16]);
