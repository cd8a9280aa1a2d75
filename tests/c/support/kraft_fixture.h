/*
 * kraft_fixture: writes batches of the metadata log, record by record.
 *
 *     kw_t w = {.epoch = 1, .time_ms = 1000};
 *     kw_add(&w, 2, 0, "su", "orders", 'a');         TopicRecord
 *     kw_add(&w, 5, 0, "iu<i>", 0, 'a', 1, 2);       PartitionChange: leader 2
 *     kw_batch(&w);                                  w.log has the bytes
 *     kw_free(&w);
 *
 * The letters of a record's fields:
 *
 *     b h i l   int8, int16, int32, int64 (int64_t)
 *     d         float64
 *     s         a string, or NULL        u  a UUID of 16 bytes of this char
 *     c         an array's count         L  int32s as "1,2,3", or NULL
 *     .         no tagged fields, of an element of an array
 *     <  >      a tagged field of that number
 *
 * The tagged fields of the record itself are counted and written at its end.
 */
#pragma once

#include "base/crc32c.h"
#include "kraft/batch.h"

#include "support/testing.h"
#include "support/wire_gen.h"

#include <stdarg.h>

typedef struct kw {
        gen_bytes_t log;     /* whole batches */
        gen_bytes_t records; /* of the next batch */
        int64_t offset;      /* of the next batch */
        int64_t time_ms;
        int32_t epoch, count, control;
} kw_t;

static TEST_UNUSED void kw_free(kw_t *w) {
        gen_bytes_free(&w->log);
        gen_bytes_free(&w->records);
        memset(w, 0, sizeof(*w));
}

static TEST_UNUSED void kw_i64(gen_bytes_t *b, int64_t v) {
        gen_i32(b, (int32_t)(v >> 32));
        gen_i32(b, (int32_t)v);
}

static TEST_UNUSED void kw_zigzag(gen_bytes_t *b, int64_t v) {
        gen_uvar(b, (uint32_t)v << 1 ^ (uint32_t)(v >> 63));
}

/* Makes each " of a JSON text a ', which needs no escape in C. */
static TEST_UNUSED void kw_unquote(char *text) {
        for (; *text; text++)
                if (*text == '"')
                        *text = '\'';
}

/* Writes a list "1,2,3". */
static TEST_UNUSED void kw_list(gen_bytes_t *b, const char *list) {
        const char *p;
        int64_t n = list && *list;

        for (p = list; p && *p; p++)
                n += *p == ',';
        gen_count(b, 1, list ? n : -1);
        for (p = list; n; n--, p++)
                gen_i32(b, (int32_t)strtol(p, (char **)&p, 10));
}

static TEST_UNUSED void kw_field(gen_bytes_t *b, char letter, va_list *args) {
        uint8_t id[16];
        double number;
        int64_t bits;

        switch (letter) {
        case 'b': gen_i8(b, va_arg(*args, int)); return;
        case 'h': gen_i16(b, va_arg(*args, int)); return;
        case 'i': gen_i32(b, va_arg(*args, int)); return;
        case 'l': kw_i64(b, va_arg(*args, int64_t)); return;
        case 'd':
                number = va_arg(*args, double);
                memcpy(&bits, &number, 8);
                kw_i64(b, bits);
                return;
        case 's': gen_str(b, 1, test_str(va_arg(*args, char *))); return;
        case 'u':
                memset(id, va_arg(*args, int), sizeof(id));
                gen_put(b, id, sizeof(id));
                return;
        case 'c': gen_count(b, 1, va_arg(*args, int)); return;
        case 'L': kw_list(b, va_arg(*args, char *)); return;
        case '.': gen_uvar(b, 0); return;
        default: CHECK(!"a letter of kraft_fixture.h");
        }
}

/* Writes the fields of a record, and its tagged ones. */
static TEST_UNUSED void kw_fields(gen_bytes_t *b, const char *letters,
                                  va_list *args) {
        gen_bytes_t tags = {0}, tag = {0}, *to = b;
        uint32_t count = 0;

        for (; *letters; letters++) {
                if (*letters == '<') {
                        count++;
                        gen_uvar(&tags, va_arg(*args, unsigned));
                        to = &tag;
                } else if (*letters == '>') {
                        gen_uvar(&tags, (uint32_t)tag.len);
                        gen_put(&tags, tag.data, tag.len);
                        gen_bytes_clear(&tag);
                        to = b;
                } else {
                        kw_field(to, *letters, args);
                }
        }
        gen_uvar(b, count);
        gen_put(b, tags.data, tags.len);
        gen_bytes_free(&tags);
        gen_bytes_free(&tag);
}

/* Appends a record with this value. */
static TEST_UNUSED void kw_value(kw_t *w, const void *key, size_t key_len,
                                 const gen_bytes_t *value) {
        gen_bytes_t body = {0};

        gen_i8(&body, 0);
        kw_zigzag(&body, 0);
        kw_zigzag(&body, w->count++);
        kw_zigzag(&body, key ? (int64_t)key_len : -1);
        gen_put(&body, key, key_len);
        kw_zigzag(&body, (int64_t)value->len);
        gen_put(&body, value->data, value->len);
        gen_uvar(&body, 0);
        kw_zigzag(&w->records, (int64_t)body.len);
        gen_put(&w->records, body.data, body.len);
        gen_bytes_free(&body);
}

/* Appends a metadata record. */
static TEST_UNUSED void kw_add(kw_t *w, uint32_t key, uint32_t version,
                               const char *letters, ...) {
        gen_bytes_t value = {0};
        va_list args;

        gen_uvar(&value, 1);
        gen_uvar(&value, key);
        gen_uvar(&value, version);
        va_start(args, letters);
        kw_fields(&value, letters, &args);
        va_end(args);
        kw_value(w, NULL, 0, &value);
        gen_bytes_free(&value);
}

/* Appends a control record; its first field is the version. */
static TEST_UNUSED void kw_control(kw_t *w, int type, const char *letters,
                                   ...) {
        const uint8_t key[4] = {0, 0, 0, (uint8_t)type};
        gen_bytes_t value    = {0};
        va_list args;

        va_start(args, letters);
        kw_fields(&value, letters, &args);
        va_end(args);
        w->control = 1;
        kw_value(w, key, sizeof(key), &value);
        gen_bytes_free(&value);
}

/* Writes the batch of the records so far to the log. */
static TEST_UNUSED void kw_batch(kw_t *w) {
        gen_bytes_t b = {0}, *log = &w->log;

        gen_i16(&b, w->control ? 0x20 : 0);
        gen_i32(&b, w->count - 1);
        kw_i64(&b, w->time_ms);
        kw_i64(&b, w->time_ms);
        kw_i64(&b, -1);
        gen_i16(&b, -1);
        gen_i32(&b, -1);
        gen_i32(&b, w->count);
        gen_put(&b, w->records.data, w->records.len);
        kw_i64(log, w->offset);
        gen_i32(log, (int32_t)b.len + 9);
        gen_i32(log, w->epoch);
        gen_i8(log, 2);
        gen_i32(log, (int32_t)rdmeta_crc32c(b.data, b.len));
        gen_put(log, b.data, b.len);
        gen_bytes_free(&b);
        gen_bytes_clear(&w->records);
        w->offset += w->count;
        w->count = w->control = 0;
}

/* Sets the CRC of the batch at this place anew, after a test has changed it. */
static TEST_UNUSED void kw_crc(uint8_t *batch, size_t size) {
        const uint32_t crc =
                __builtin_bswap32(rdmeta_crc32c(batch + 21, size - 21));

        memcpy(batch + 17, &crc, 4);
}
