/*
 * record: the fields of a record, read by the table, and as JSON.
 *
 *     bytes --rdmeta_kraft_read()--> values, one per field of the schema
 *                                      number, or bytes that are borrowed
 *                                      array of structs: the bytes of all of
 *                                      them; each is read as a record is
 *
 * All of a record is checked when it is read, however deep: so the values that
 * it gives need no further check. The schemas bound the depth. Nothing is
 * allocated.
 */
#pragma once

#include "kraft/batch.h"
#include "kraft/record_table.h"

typedef struct rdmeta_kraft_value {
        const uint8_t *p; /* of a text, UUID, array or struct; NULL: null */
        uint32_t count;   /* bytes of a text; elements of an array */
        uint32_t size;    /* bytes of all of it, without its length */
        int64_t number;   /* of a float64: its bits */
        int is_default;   /* a tagged field that the record does not have */
} rdmeta_kraft_value_t;

/* Returns the schema of a record, or NULL if the table has no such type or
 * version. */
const rdmeta_kraft_schema_t *
rdmeta_kraft_schema_of(const rdmeta_kraft_record_t *record);
/* Returns the row of the table of a type; NULL: there is none. */
const rdmeta_kraft_type_t *
rdmeta_kraft_type_of(const rdmeta_kraft_record_t *record);

/* Reads one struct of `schema` into `out`, which has RDMETA_KRAFT_FIELDS. Bad
 * bytes set b->bad; the values are zeros then. */
void rdmeta_kraft_read(rdmeta_buf_t *b, const rdmeta_kraft_schema_t *schema,
                       rdmeta_kraft_value_t *out);
/* Reads one element of an array. */
void rdmeta_kraft_element(rdmeta_buf_t *b, const rdmeta_kraft_field_t *field,
                          rdmeta_kraft_value_t *out);
/* Reads a whole record. Returns its schema. Returns NULL if the type or version
 * is unknown, and sets *bad if the bytes are bad or go on behind it. */
const rdmeta_kraft_schema_t *
rdmeta_kraft_record_read(const rdmeta_kraft_record_t *record,
                         rdmeta_kraft_value_t *out, int *bad);

/* Returns a value as a text, whose data is NULL for null. */
static inline rdmeta_str_t rdmeta_kraft_text(rdmeta_kraft_value_t v) {
        return (rdmeta_str_t){(const char *)v.p, v.count};
}
/* Returns the id that a broker's resource is named by; RDMETA_NONE: none. */
int32_t rdmeta_kraft_broker_id(rdmeta_str_t name);

/* Returns the value of a field by its name; a schema without it has a null of
 * number 0. */
rdmeta_kraft_value_t
rdmeta_kraft_value_of(const rdmeta_kraft_schema_t *schema,
                      const rdmeta_kraft_value_t *values, const char *name);
