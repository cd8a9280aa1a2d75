/*
 * json: a record as a line of JSON, with the names and values that Kafka's
 * DumpLogSegments prints. Tagged fields at their default are left out.
 */
#include "arrow/text.h"
#include "kraft/record.h"

#include <stdio.h>
#include <stdlib.h>

/* Counts all bytes, and writes those that fit. */
typedef struct json_out {
        char *p;
        size_t len, capacity;
} json_out_t;

RDMETA_INLINE void put(json_out_t *o, const char *s, size_t n) {
        if (n <= o->capacity && o->len <= o->capacity - n)
                memcpy(o->p + o->len, s, n);
        o->len += n;
}

#define PUT(o, literal) put(o, literal, sizeof(literal) - 1)

static void put_number(json_out_t *o, int64_t v) {
        char text[20], *p = text + sizeof(text);
        uint64_t n = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

        if (n < 10 && v >= 0) {
                *--p = (char)('0' + n);
                put(o, p, 1);
                return;
        }

        do {
                *--p = (char)('0' + n % 10);
                n /= 10;
        } while (n);
        if (v < 0)
                *--p = '-';
        put(o, p, (size_t)(text + sizeof(text) - p));
}

/* Writes bytes without an escape: as UTF-8, whatever they are. */
static void put_plain(json_out_t *o, const char *s, size_t n) {
        const size_t size = rdmeta_text_size(s, n);

        if (size <= o->capacity && o->len <= o->capacity - size)
                rdmeta_text_copy(o->p + o->len, size, s, n);
        o->len += size;
}

static void put_text(json_out_t *o, const char *s, size_t n) {
        size_t i, from = 0;
        char escape[8];

        PUT(o, "\"");
        for (i = 0; i < n; i++) {
                const uint8_t c = (uint8_t)s[i];

                if (c >= 0x20 && c != '"' && c != '\\')
                        continue;
                put_plain(o, s + from, i - from);
                from = i + 1;
                if (c >= 0x20)
                        snprintf(escape, sizeof(escape), "\\%c", c);
                else
                        snprintf(escape, sizeof(escape), "\\u%04x", c);
                put(o, escape, strlen(escape));
        }
        put_plain(o, s + from, n - from);
        PUT(o, "\"");
}

/* Writes a float64 so that it reads as the same number, in any locale. */
static void put_float(json_out_t *o, int64_t bits) {
        char text[32], *comma;
        int digits;
        double v;

        memcpy(&v, &bits, sizeof(v));
        if (v != v || v - v != 0) {
                if (v != v)
                        PUT(o, "\"NaN\"");
                else if (v > 0)
                        PUT(o, "\"Infinity\"");
                else
                        PUT(o, "\"-Infinity\"");
                return;
        }
        for (digits = 15; digits <= 17; digits++) {
                snprintf(text, sizeof(text), "%.*g", digits, v);
                if (strtod(text, NULL) == v)
                        break;
        }
        comma = strchr(text, ',');
        if (comma)
                *comma = '.';
        put(o, text, strlen(text));
        if (!strpbrk(text, ".e"))
                PUT(o, ".0");
}

static void put_base64(json_out_t *o, const uint8_t *p, size_t n) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "abcdefghijklmnopqrstuvwxyz"
                                     "0123456789+/";
        size_t i;

        PUT(o, "\"");
        for (i = 0; i < n; i += 3) {
                const uint32_t word = (uint32_t)p[i] << 16 |
                                      (i + 1 < n ? p[i + 1] << 8 : 0) |
                                      (i + 2 < n ? p[i + 2] : 0);
                const char four[4] = {
                        digits[word >> 18], digits[word >> 12 & 63],
                        i + 1 < n ? digits[word >> 6 & 63] : '=',
                        i + 2 < n ? digits[word & 63] : '='};

                put(o, four, 4);
        }
        PUT(o, "\"");
}

static void put_struct(json_out_t *o, rdmeta_buf_t *b,
                       const rdmeta_kraft_schema_t *schema);

/* Writes one value that is no array. */
static void put_one(json_out_t *o, const rdmeta_kraft_field_t *field,
                    const rdmeta_kraft_value_t *v) {
        char id[RDMETA_ARROW_ID + 2] = {[0] = '"', [RDMETA_ARROW_ID + 1] = '"'};
        rdmeta_buf_t b;

        switch (field->type) {
        case RDMETA_KRAFT_BOOL:
                v->number ? PUT(o, "true") : PUT(o, "false");
                return;
        case RDMETA_KRAFT_FLOAT64: put_float(o, v->number); return;
        case RDMETA_KRAFT_UUID:
                rdmeta_text_id(id + 1, v->p);
                put(o, id, sizeof(id));
                return;
        case RDMETA_KRAFT_STRING:
                put_text(o, (const char *)v->p, v->count);
                return;
        case RDMETA_KRAFT_BYTES: put_base64(o, v->p, v->count); return;
        case RDMETA_KRAFT_STRUCT:
                rdmeta_buf_init(&b, v->p, v->size);
                put_struct(o, &b, field->of);
                return;
        default: put_number(o, v->number);
        }
}

static void put_array(json_out_t *o, const rdmeta_kraft_field_t *field,
                      const rdmeta_kraft_value_t *v) {
        rdmeta_kraft_value_t element;
        rdmeta_buf_t b;
        uint32_t i;

        rdmeta_buf_init(&b, v->p, v->size);
        PUT(o, "[");
        for (i = 0; i < v->count; i++) {
                if (i)
                        PUT(o, ",");
                rdmeta_kraft_element(&b, field, &element);
                put_one(o, field, &element);
        }
        PUT(o, "]");
}

/* Writes a field's name, behind what separates it from the one before. */
static void put_name(json_out_t *o, char before, const char *name) {
        const char begin[] = {before, '"'};

        put(o, begin, 2);
        put(o, name, strlen(name));
        PUT(o, "\":");
}

static void put_value(json_out_t *o, const rdmeta_kraft_field_t *field,
                      const rdmeta_kraft_value_t *v) {
        const int array = field->flags & RDMETA_KRAFT_ARRAY;

        if (!v->p && (array || field->type >= RDMETA_KRAFT_UUID))
                PUT(o, "null");
        else if (array)
                put_array(o, field, v);
        else
                put_one(o, field, v);
}

/* Writes fields as an object; those with one of the flags `hidden` as "***". */
static void put_fields(json_out_t *o, const rdmeta_kraft_schema_t *schema,
                       const rdmeta_kraft_value_t *values, int hidden) {
        char before = '{';
        int i;

        for (i = 0; i < schema->count; i++) {
                const rdmeta_kraft_field_t *f = &schema->fields[i];

                if (values[i].is_default)
                        continue;
                put_name(o, before, f->name);
                before = ',';
                if (f->flags & hidden && values[i].p)
                        PUT(o, "\"***\"");
                else
                        put_value(o, f, &values[i]);
        }
        before == '{' ? PUT(o, "{}") : PUT(o, "}");
}

static void put_struct(json_out_t *o, rdmeta_buf_t *b,
                       const rdmeta_kraft_schema_t *schema) {
        rdmeta_kraft_value_t values[RDMETA_KRAFT_FIELDS];

        rdmeta_kraft_read(b, schema, values);
        put_fields(o, schema, values, 0);
}

/* ---- records ----------------------------------------------------------- */

/* Returns whether `s` has the word at `at`, in any case. */
static int has_at(rdmeta_str_t s, size_t at, const char *word) {
        for (; *word; word++, at++)
                if (at >= s.len || (s.data[at] | 32) != (*word | 32))
                        return 0;
        return 1;
}

int32_t rdmeta_kraft_is_sensitive(rdmeta_str_t key) {
        static const char *const anywhere[] = {"password", "passphrase",
                                               "secret", "credential",
                                               "jaas"};
        static const char *const at_end[]   = {".key", ".token",
                                               ".certificates",
                                               ".certificate.chain"};
        size_t i, at, n;

        for (i = 0; i < 5; i++)
                for (at = 0; at < key.len; at++)
                        if (has_at(key, at, anywhere[i]))
                                return 1;
        for (i = 0; i < 4; i++) {
                n = strlen(at_end[i]);
                if (n <= key.len && has_at(key, key.len - n, at_end[i]))
                        return 1;
        }
        return 0;
}

/* Returns whether the record is the configuration of a sensitive key. */
static int is_sensitive(const rdmeta_kraft_record_t *r,
                        const rdmeta_kraft_schema_t *schema,
                        const rdmeta_kraft_value_t *values) {
        return !r->control && r->type == RDMETA_KRAFT_CONFIG &&
               rdmeta_kraft_is_sensitive(rdmeta_kraft_text(
                       rdmeta_kraft_value_of(schema, values, "name")));
}

/* Returns whether records of the type may have secrets, also in a version that
 * the table lacks. */
static int may_hide(const rdmeta_kraft_record_t *r) {
        const rdmeta_kraft_type_t *t = rdmeta_kraft_type_of(r);
        int i;

        if (!t || r->control)
                return 0;
        for (i = 0; i < t->schemas[t->last].count; i++)
                if (t->schemas[t->last].fields[i].flags & RDMETA_KRAFT_SECRET)
                        return 1;
        return r->type == RDMETA_KRAFT_CONFIG;
}

static void put_raw(json_out_t *o, const rdmeta_kraft_record_t *r,
                    int32_t flags) {
        if (!(flags & RDMETA_KRAFT_SHOW_SECRETS) && may_hide(r))
                PUT(o, "\"***\"");
        else
                put_base64(o, r->value, r->len);
}

static void put_head(json_out_t *o, const rdmeta_kraft_record_t *r,
                     rdmeta_str_t topic) {
        const rdmeta_kraft_type_t *t = rdmeta_kraft_type_of(r);

        put_name(o, '{', "offset");
        put_number(o, r->offset);
        put_name(o, ',', "epoch");
        put_number(o, r->epoch);
        put_name(o, ',', "time");
        put_number(o, r->time_us / 1000);
        put_name(o, ',', "type");
        if (t)
                put_text(o, t->name, strlen(t->name));
        else
                put_number(o, r->type);
        put_name(o, ',', "version");
        put_number(o, r->version);
        if (topic.data) {
                put_name(o, ',', "topic");
                put_text(o, topic.data, topic.len);
        }
}

rdmeta_err_t rdmeta_kraft_record_json(const rdmeta_kraft_record_t *record,
                                      rdmeta_str_t topic, int32_t flags,
                                      char *buf, size_t capacity,
                                      size_t *len) {
        rdmeta_kraft_value_t values[RDMETA_KRAFT_FIELDS];
        const rdmeta_kraft_schema_t *schema;
        json_out_t o = {buf, 0, capacity};
        int bad;

        *len   = 0;
        schema = rdmeta_kraft_record_read(record, values, &bad);
        if (bad)
                return RDMETA_ERR_MALFORMED;
        if (!(flags & RDMETA_KRAFT_DATA_ALONE))
                put_head(&o, record, topic);
        if (!(flags & RDMETA_KRAFT_DATA_ALONE))
                put_name(&o, ',', schema ? "data" : "raw");
        if (!schema)
                put_raw(&o, record, flags);
        else if (flags & RDMETA_KRAFT_SHOW_SECRETS)
                put_fields(&o, schema, values, 0);
        else
                put_fields(&o, schema, values,
                           RDMETA_KRAFT_SECRET |
                                   (is_sensitive(record, schema, values)
                                            ? RDMETA_KRAFT_GONE_IF_NULL
                                            : 0));
        if (!(flags & RDMETA_KRAFT_DATA_ALONE))
                PUT(&o, "}");
        *len = o.len;
        return o.len <= capacity ? RDMETA_OK : RDMETA_ERR_TOO_SMALL;
}
