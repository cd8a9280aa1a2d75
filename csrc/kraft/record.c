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

        return t && r->version <= t->last ? &t->schemas[r->version] : NULL;
}

/* Returns the bytes of one element of a fixed width; 0: of another type. */
RDMETA_INLINE size_t width_of(uint8_t type) {
        static const uint8_t widths[] = {1, 1, 2, 2, 4, 8, 8, 16, 0, 0, 0};

        return widths[type];
}

RDMETA_INLINE void number_read(rdmeta_buf_t *b, uint8_t type,
                               rdmeta_kraft_value_t *out) {
        const uint8_t *p = rdmeta_buf_bytes(b, width_of(type));

        *out = nothing;
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
static void text_read(rdmeta_buf_t *b, uint8_t type, int nullable,
                      rdmeta_kraft_value_t *out) {
        const int64_t n = (int64_t)rdmeta_buf_uvar(b) - 1;

        if (n < 0 || (type == RDMETA_KRAFT_STRING && n > INT16_MAX)) {
                if (n != -1 || !nullable)
                        rdmeta_buf_fail(b);
                return;
        }
        out->p     = rdmeta_buf_bytes(b, (size_t)n);
        out->count = out->size = out->p ? (uint32_t)n : 0;
}

static void one_read(rdmeta_buf_t *b, const rdmeta_kraft_field_t *field,
                     int nullable, rdmeta_kraft_value_t *out) {
        rdmeta_kraft_value_t inner[RDMETA_KRAFT_FIELDS];

        if (width_of(field->type)) {
                number_read(b, field->type, out);
                return;
        }
        *out = nothing;
        if (field->type == RDMETA_KRAFT_STRUCT) {
                out->p = b->p;
                rdmeta_kraft_read(b, field->of, inner);
                out->size = (uint32_t)(b->p - out->p);
        } else {
                text_read(b, field->type, nullable, out);
        }
}

/* Reads the count of an array whose elements take so many bytes at least, and
 * passes over those of a fixed width. Returns 0 for a null one, or bad
 * bytes. */
RDMETA_INLINE int count_read(rdmeta_buf_t *b, size_t least, size_t width,
                             int nullable, rdmeta_kraft_value_t *out) {
        int null = 0;

        *out       = nothing;
        out->count = rdmeta_buf_count(b, 1, least, nullable ? &null : NULL);
        if (null || b->bad)
                return 0;
        out->p = b->p;
        b->p += out->size = (uint32_t)(width * out->count);
        return 1;
}

static void array_read(rdmeta_buf_t *b, const rdmeta_kraft_field_t *field,
                       rdmeta_kraft_value_t *out) {
        const size_t width = width_of(field->type);
        const size_t least = width       ? width
                             : field->of ? field->of->least
                                         : 1;
        rdmeta_kraft_value_t element;
        uint32_t i;

        if (!count_read(b, least, width, field->flags & RDMETA_KRAFT_NULLABLE,
                        out) ||
            width)
                return;
        for (i = 0; i < out->count && !b->bad; i++)
                rdmeta_kraft_element(b, field, &element);
        out->size = (uint32_t)(b->p - out->p);
}

static void field_read(rdmeta_buf_t *b, const rdmeta_kraft_field_t *field,
                       rdmeta_kraft_value_t *out) {
        if (field->flags & RDMETA_KRAFT_ARRAY)
                array_read(b, field, out);
        else
                one_read(b, field, field->flags & RDMETA_KRAFT_NULLABLE, out);
}

/* Sets the value of a tagged field that is not there. */
static void default_set(const rdmeta_kraft_field_t *field,
                        rdmeta_kraft_value_t *out) {
        static const uint8_t zeros[16];

        *out            = nothing;
        out->number     = field->number;
        out->is_default = 1;
        if (field->flags & RDMETA_KRAFT_DEFAULT_NULL)
                return;
        if (field->flags & RDMETA_KRAFT_ARRAY ||
            field->type >= RDMETA_KRAFT_UUID)
                out->p = zeros;
        if (!(field->flags & RDMETA_KRAFT_ARRAY))
                out->size = (uint32_t)width_of(field->type) & 16;
}

/* Returns the place of a tagged field; -1: the schema lacks the tag. */
static int place_of(const rdmeta_kraft_schema_t *schema, uint32_t tag) {
        int i = schema->count;

        while (--i >= 0 && (schema->fields[i].tag < 0 ||
                            (uint32_t)schema->fields[i].tag != tag))
                ;
        return i;
}

/* Reads the tagged fields; it passes over those that the table lacks. */
static void tags_read(rdmeta_buf_t *b, const rdmeta_kraft_schema_t *schema,
                      rdmeta_kraft_value_t *out) {
        uint32_t left = rdmeta_buf_uvar(b);

        for (; left && !b->bad; left--) {
                const uint32_t tag = rdmeta_buf_uvar(b);
                const uint32_t n   = rdmeta_buf_uvar(b);
                const uint8_t *p   = rdmeta_buf_bytes(b, n);
                const int i        = p ? place_of(schema, tag) : -1;
                rdmeta_buf_t inner;

                if (i < 0)
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
        one_read(b, field, 0, out);
}

/* ---- the hot records, by hand ------------------------------------------- */

/* Sets `n` values to tagged fields that are not there, and null. */
RDMETA_INLINE void absent_set(rdmeta_kraft_value_t *out, int n) {
        static const rdmeta_kraft_value_t absent = {.is_default = 1};

        while (n-- > 0)
                *out++ = absent;
}

static void partition_read(rdmeta_buf_t *b,
                           const rdmeta_kraft_schema_t *schema,
                           rdmeta_kraft_value_t *out) {
        int i;

        number_read(b, RDMETA_KRAFT_INT32, &out[0]);
        number_read(b, RDMETA_KRAFT_UUID, &out[1]);
        for (i = 2; i < 6; i++) /* replicas, ISR, removing, adding */
                count_read(b, 4, 4, 0, &out[i]);
        number_read(b, RDMETA_KRAFT_INT32, &out[6]); /* leader */
        absent_set(&out[7], 1);                      /* recovery: 0 */
        number_read(b, RDMETA_KRAFT_INT32, &out[8]);
        number_read(b, RDMETA_KRAFT_INT32, &out[9]);
        if (schema->count > 10)
                count_read(b, 16, 16, 0, &out[10]); /* directories */
        absent_set(&out[11], schema->count - 11);
        if (RDMETA_LIKELY(b->p < b->end && !*b->p))
                b->p++; /* no tags */
        else
                tags_read(b, schema, out);
}

static void change_read(rdmeta_buf_t *b, const rdmeta_kraft_schema_t *schema,
                        rdmeta_kraft_value_t *out) {
        /* By tag. The directories come with version 1, ELR with version 2. */
        static const uint8_t places[] = {2, 3, 4, 5, 6, 7, 9, 10, 8};
        uint32_t left;

        number_read(b, RDMETA_KRAFT_INT32, &out[0]);
        number_read(b, RDMETA_KRAFT_UUID, &out[1]);
        absent_set(&out[2], schema->count - 2);
        out[3].number = -2; /* leader: that before */
        out[7].number = -1; /* recovery: as before */
        for (left = rdmeta_buf_uvar(b); left && !b->bad; left--) {
                const uint32_t tag = rdmeta_buf_uvar(b);
                const uint32_t n   = rdmeta_buf_uvar(b);
                const uint8_t *p   = rdmeta_buf_bytes(b, n);
                rdmeta_buf_t inner;

                if (!p || tag > 8 || places[tag] >= schema->count)
                        continue;
                rdmeta_buf_init(&inner, p, n);
                if (tag == 1)
                        number_read(&inner, RDMETA_KRAFT_INT32, &out[3]);
                else if (tag == 5)
                        number_read(&inner, RDMETA_KRAFT_INT8, &out[7]);
                else if (tag == 8)
                        count_read(&inner, 16, 16, 1, &out[8]);
                else
                        count_read(&inner, 4, 4, 1, &out[places[tag]]);
                if (inner.bad || inner.p != inner.end)
                        rdmeta_buf_fail(b);
        }
}

const rdmeta_kraft_schema_t *
rdmeta_kraft_record_read(const rdmeta_kraft_record_t *record,
                         rdmeta_kraft_value_t *out, int *bad) {
        const rdmeta_kraft_schema_t *schema = rdmeta_kraft_schema_of(record);
        rdmeta_buf_t b = rdmeta_kraft_record_body(record);

        *bad = 0;
        if (!schema)
                return NULL;
        if (record->control)
                rdmeta_kraft_read(&b, schema, out);
        else if (record->type == RDMETA_KRAFT_PARTITION_CHANGE)
                change_read(&b, schema, out);
        else if (record->type == RDMETA_KRAFT_PARTITION)
                partition_read(&b, schema, out);
        else
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

int32_t rdmeta_kraft_broker_id(rdmeta_str_t name) {
        int64_t id = 0;
        size_t i;

        for (i = 0; i < name.len && id <= INT32_MAX; i++) {
                if (name.data[i] < '0' || name.data[i] > '9')
                        return RDMETA_NONE;
                id = 10 * id + name.data[i] - '0';
        }
        return name.len && id <= INT32_MAX ? (int32_t)id : RDMETA_NONE;
}

void rdmeta_kraft_record_about(const rdmeta_kraft_record_t *record,
                               rdmeta_kraft_about_t *out) {
        rdmeta_kraft_value_t values[RDMETA_KRAFT_FIELDS];
        rdmeta_str_t name;
        int bad;

        memset(out, 0, sizeof(*out));
        out->partition = RDMETA_NONE;
        out->broker    = RDMETA_NONE;
        if (record->control || !rdmeta_kraft_record_read(record, values, &bad))
                return;
        switch (record->type) {
        case RDMETA_KRAFT_TOPIC:
                out->topic_id = values[1].p; /* fall through */
        case RDMETA_KRAFT_CLEAR_ELR:
                out->topic = rdmeta_kraft_text(values[0]);
                break;
        case RDMETA_KRAFT_REMOVE_TOPIC: out->topic_id = values[0].p; break;
        case RDMETA_KRAFT_PARTITION:
        case RDMETA_KRAFT_PARTITION_CHANGE:
                out->partition = (int32_t)values[0].number;
                out->topic_id  = values[1].p;
                break;
        case RDMETA_KRAFT_CONFIG:
                name = rdmeta_kraft_text(values[1]);
                if (values[0].number == RDMETA_KRAFT_OF_TOPIC)
                        out->topic = name;
                if (values[0].number == RDMETA_KRAFT_OF_BROKER)
                        out->broker = rdmeta_kraft_broker_id(name);
                break;
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
