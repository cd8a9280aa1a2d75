#include "kraft/record.h"

static const rdmeta_kraft_value_t nothing;

const rdmeta_kraft_type_t *
rdmeta_kraft_type_of(const rdmeta_kraft_record_t *r) {
        const rdmeta_kraft_type_t *t;

        if (r->type >= (r->control ? RDMETA_KRAFT_CONTROLS
                                   : RDMETA_KRAFT_TYPES))
                return NULL;
        t = r->control ? &rdmeta_kraft_controls[r->type]
                       : &rdmeta_kraft_types[r->type];
        return t->name ? t : NULL;
}

const rdmeta_kraft_schema_t *
rdmeta_kraft_schema_of(const rdmeta_kraft_record_t *r) {
        const rdmeta_kraft_type_t *t = rdmeta_kraft_type_of(r);

        return t && r->version <= t->last ? t->schemas[r->version] : NULL;
}

/* Returns the bytes of one element of a fixed width; 0: of another type. */
static size_t width_of(uint8_t type) {
        static const uint8_t widths[] = {1, 1, 2, 2, 4, 8, 8, 16, 0, 0, 0};

        return widths[type];
}

static void number_read(rdmeta_buf_t *b, uint8_t type,
                        rdmeta_kraft_value_t *out) {
        const uint8_t *p = rdmeta_buf_bytes(b, width_of(type));

        if (!p)
                return;
        switch (type) {
        case RDMETA_KRAFT_BOOL: out->number = *p != 0; break;
        case RDMETA_KRAFT_INT8: out->number = (int8_t)*p; break;
        case RDMETA_KRAFT_INT16:
                out->number = (int16_t)rdmeta_be16(p);
                break;
        case RDMETA_KRAFT_UINT16: out->number = rdmeta_be16(p); break;
        case RDMETA_KRAFT_INT32:
                out->number = (int32_t)rdmeta_be32(p);
                break;
        case RDMETA_KRAFT_UUID:
                out->p    = p;
                out->size = 16;
                break;
        default: out->number = (int64_t)rdmeta_be64(p); break;
        }
}

/* Reads a text, or bytes. Kafka's strings have at most 32 767 bytes. */
static void text_read(rdmeta_buf_t *b, const rdmeta_kraft_field_t *field,
                      int nullable, rdmeta_kraft_value_t *out) {
        const int64_t n = (int64_t)rdmeta_buf_uvar(b) - 1;

        if (n < 0 || (field->type == RDMETA_KRAFT_STRING && n > INT16_MAX)) {
                if (n != -1 || !nullable)
                        rdmeta_buf_fail(b);
                return;
        }
        out->p     = rdmeta_buf_bytes(b, (size_t)n);
        out->count = out->size = out->p ? (uint32_t)n : 0;
}

static void element_read(rdmeta_buf_t *b, const rdmeta_kraft_field_t *field,
                         int nullable, rdmeta_kraft_value_t *out) {
        rdmeta_kraft_value_t inner[RDMETA_KRAFT_FIELDS];

        if (width_of(field->type)) {
                number_read(b, field->type, out);
        } else if (field->type == RDMETA_KRAFT_STRUCT) {
                out->p = b->p;
                rdmeta_kraft_read(b, field->of, inner);
                out->size = (uint32_t)(b->p - out->p);
        } else {
                text_read(b, field, nullable, out);
        }
}

static void array_read(rdmeta_buf_t *b, const rdmeta_kraft_field_t *field,
                       rdmeta_kraft_value_t *out) {
        const size_t width = width_of(field->type);
        rdmeta_kraft_value_t element;
        uint32_t i;
        int null = 0;
        size_t least = width ? width : 1;

        if (field->type == RDMETA_KRAFT_STRUCT)
                least = field->of->least;
        out->count = rdmeta_buf_count(
                b, 1, least,
                field->flags & RDMETA_KRAFT_NULLABLE ? &null : NULL);
        if (null || b->bad)
                return;
        out->p = b->p;
        if (width)
                rdmeta_buf_bytes(b, width * out->count);
        else
                for (i = 0; i < out->count && !b->bad; i++)
                        rdmeta_kraft_element(b, field, &element);
        out->size = (uint32_t)(b->p - out->p);
}

static void field_read(rdmeta_buf_t *b, const rdmeta_kraft_field_t *field,
                       rdmeta_kraft_value_t *out) {
        *out = nothing;
        if (field->flags & RDMETA_KRAFT_ARRAY)
                array_read(b, field, out);
        else
                element_read(b, field, field->flags & RDMETA_KRAFT_NULLABLE,
                             out);
}

/* Sets the value of a tagged field that is not there. */
static void default_set(const rdmeta_kraft_field_t *field,
                        rdmeta_kraft_value_t *out) {
        static const uint8_t zeros[16];

        *out            = nothing;
        out->number     = field->number;
        out->is_default = 1;
        if (!(field->flags & RDMETA_KRAFT_DEFAULT_NULL))
                out->p = zeros;
        if (field->type == RDMETA_KRAFT_UUID)
                out->size = 16;
}

/* Reads the tagged fields; it passes over those that the table lacks. */
static void tags_read(rdmeta_buf_t *b, const rdmeta_kraft_schema_t *schema,
                      rdmeta_kraft_value_t *out) {
        uint32_t left = rdmeta_buf_uvar(b);

        for (; left && !b->bad; left--) {
                const uint32_t tag = rdmeta_buf_uvar(b);
                const uint32_t n   = rdmeta_buf_uvar(b);
                const uint8_t *p   = rdmeta_buf_bytes(b, n);
                rdmeta_buf_t inner;
                int i;

                if (!p)
                        return;
                for (i = 0; i < schema->count; i++)
                        if (schema->fields[i].tag >= 0 &&
                            (uint32_t)schema->fields[i].tag == tag)
                                break;
                if (i == schema->count)
                        continue;
                rdmeta_buf_init(&inner, p, n);
                field_read(&inner, &schema->fields[i], &out[i]);
                if (inner.bad || inner.p != inner.end)
                        rdmeta_buf_fail(b);
        }
}

void rdmeta_kraft_read(rdmeta_buf_t *b, const rdmeta_kraft_schema_t *schema,
                       rdmeta_kraft_value_t *out) {
        int i;

        for (i = 0; i < schema->count; i++) {
                if (schema->fields[i].tag < 0)
                        field_read(b, &schema->fields[i], &out[i]);
                else
                        default_set(&schema->fields[i], &out[i]);
        }
        tags_read(b, schema, out);
}

void rdmeta_kraft_element(rdmeta_buf_t *b, const rdmeta_kraft_field_t *field,
                          rdmeta_kraft_value_t *out) {
        *out = nothing;
        element_read(b, field, 0, out);
}

const rdmeta_kraft_schema_t *
rdmeta_kraft_record_read(const rdmeta_kraft_record_t *record,
                         rdmeta_kraft_value_t *out, int *bad) {
        const rdmeta_kraft_schema_t *schema = rdmeta_kraft_schema_of(record);
        rdmeta_buf_t b = rdmeta_kraft_record_body(record);

        *bad = 0;
        if (!schema)
                return NULL;
        rdmeta_kraft_read(&b, schema, out);
        *bad = b.bad || b.p != b.end;
        return *bad ? NULL : schema;
}

rdmeta_kraft_value_t
rdmeta_kraft_value_of(const rdmeta_kraft_schema_t *schema,
                      const rdmeta_kraft_value_t *values, const char *name) {
        int i;

        for (i = 0; i < schema->count; i++)
                if (!strcmp(schema->fields[i].name, name))
                        return values[i];
        return nothing;
}

const char *rdmeta_kraft_type_name(int32_t control, int32_t type) {
        rdmeta_kraft_record_t r = {0};
        const rdmeta_kraft_type_t *t;

        r.control = control;
        r.type    = type;
        t         = type >= 0 ? rdmeta_kraft_type_of(&r) : NULL;
        return t ? t->name : NULL;
}

/* Sets what a configuration is about: the topic or the broker of its name. */
static void config_about(const rdmeta_kraft_value_t *values,
                         rdmeta_kraft_about_t *out) {
        int64_t id = 0;
        uint32_t i;

        if (values[0].number == RDMETA_KRAFT_OF_TOPIC) {
                out->topic.data = (const char *)values[1].p;
                out->topic.len  = values[1].count;
        }
        if (values[0].number != RDMETA_KRAFT_OF_BROKER || !values[1].count ||
            values[1].count > 10)
                return;
        for (i = 0; i < values[1].count; i++) {
                if (values[1].p[i] < '0' || values[1].p[i] > '9')
                        return;
                id = 10 * id + values[1].p[i] - '0';
        }
        if (id <= INT32_MAX)
                out->broker = (int32_t)id;
}

void rdmeta_kraft_record_about(const rdmeta_kraft_record_t *record,
                               rdmeta_kraft_about_t *out) {
        rdmeta_kraft_value_t values[RDMETA_KRAFT_FIELDS];
        int bad;

        memset(out, 0, sizeof(*out));
        out->partition = RDMETA_NONE;
        out->broker    = RDMETA_NONE;
        if (record->control || !rdmeta_kraft_record_read(record, values, &bad))
                return;
        switch (record->type) {
        case RDMETA_KRAFT_TOPIC:
                out->topic_id   = values[1].p; /* fall through */
        case RDMETA_KRAFT_CLEAR_ELR:
                out->topic.data = (const char *)values[0].p;
                out->topic.len  = values[0].count;
                break;
        case RDMETA_KRAFT_REMOVE_TOPIC: out->topic_id = values[0].p; break;
        case RDMETA_KRAFT_PARTITION:
        case RDMETA_KRAFT_PARTITION_CHANGE:
                out->partition = (int32_t)values[0].number;
                out->topic_id  = values[1].p;
                break;
        case RDMETA_KRAFT_CONFIG: config_about(values, out); break;
        case RDMETA_KRAFT_REGISTER_BROKER:
        case RDMETA_KRAFT_UNREGISTER_BROKER:
        case RDMETA_KRAFT_FENCE_BROKER:
        case RDMETA_KRAFT_UNFENCE_BROKER:
        case RDMETA_KRAFT_BROKER_CHANGE:
                out->broker = (int32_t)values[0].number;
                break;
        default: break;
        }
}
