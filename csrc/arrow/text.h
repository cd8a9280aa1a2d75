/* Names of any bytes as UTF-8, ids as base64. */
#ifndef RDMETA_ARROW_TEXT_H
#define RDMETA_ARROW_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { RDMETA_ARROW_ID = 22 }; /* characters of a topic's id */

/* How long these bytes are as UTF-8, each byte that is none replaced. */
size_t rdmeta_text_size(const char *s, size_t len);
/* Write that many; `size` is what rdmeta_text_size() said. */
void rdmeta_text_copy(char *out, size_t size, const char *s, size_t len);
/* Kafka's base64: URL-safe, without padding. */
void rdmeta_text_id(char out[RDMETA_ARROW_ID], const uint8_t id[16]);

#endif /* RDMETA_ARROW_TEXT_H */
