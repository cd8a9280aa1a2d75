/* The second half of builder: writes the columns as a block. */
#include "topic/builder_write.h"

/* ---- lists --------------------------------------------------------------- */

/* The builder finds equal lists through a hash, and numbers them. */

static int ids_equal(rdmeta_wire_ids_t a, rdmeta_wire_ids_t b) {
        return a.count == b.count && !memcmp(a.be, b.be, 4 * (size_t)a.count);
}

static uint64_t ids_hash(const uint64_t *key, rdmeta_wire_ids_t l) {
        uint64_t h       = key[0] + l.count;
        size_t n         = 4 * (size_t)l.count;
        const uint8_t *p = l.be;

        for (; n >= 8; n -= 8, p += 8)
                h = rdmeta_mix(rdmeta_load64(p) ^ key[1], h ^ key[2]);
        return n ? rdmeta_mix(rdmeta_load32(p) ^ key[1], h ^ key[3]) : h;
}

/* Returns the number of a list. A new list gets the next number. So does an
 * equal list that cannot be shared because the rows would name too many
 * brokers (rdmeta_lists_fit()). */
static uint32_t builder_list(rdmeta_builder_t *s, rdmeta_wire_ids_t l) {
        uint32_t k;

        if (l.count == 0)
                return 0;
        s->named += l.count;
        k = (uint32_t)ids_hash(s->key, l) & s->slot_mask;
        for (;; k = (k + 1) & s->slot_mask) {
                const uint64_t slot = s->slots[k];
                if ((uint32_t)(slot >> 32) != s->generation) {
                        s->slots[k] = (uint64_t)s->generation << 32 |
                                      s->n_lists;
                        break;
                }
                if (ids_equal(s->lists[(uint32_t)slot], l)) {
                        if (RDMETA_LIKELY(rdmeta_lists_fit(
                                    s->named, s->count, s->units)))
                                return (uint32_t)slot;
                        break;
                }
        }
        s->at[s->n_lists]    = s->units;
        s->lists[s->n_lists] = l;
        s->units += 1 + l.count;
        return s->n_lists++;
}

/* Numbers the lists of all rows. It cannot fail, since there is room. */
static void rdmeta_builder_number(rdmeta_builder_t *s) {
        uint32_t i;

        if (++s->generation == 0) {
                memset(s->slots, 0, ((size_t)s->slot_mask + 1) * 8);
                s->generation = 1;
        }
        s->lists[0].be    = NULL;
        s->lists[0].count = 0;
        s->at[0]          = 0;
        s->n_lists = s->units = 1;
        s->named              = 0;
        for (i = 0; i < s->count; i++) {
                s->refs[0][i] = builder_list(s, s->replicas[i]);
                s->refs[1][i] = builder_list(s, s->isr[i]);
                s->refs[2][i] = builder_list(s, s->offline[i]);
        }
}

/* For topics in sync with at most this many partitions, the builder does not
 * look for equal lists: there is little to save. */
enum { FLAT_ALWAYS = 16 };

/* The widths and flags that a block needs, and its size. */
typedef struct shape {
        unsigned leader_width, epoch_width, list_width, ref_width;
        uint16_t flags;
        int flat;
        size_t rest; /* bytes from the columns on */
} shape_t;

/* Returns the OR of the values, which are >= -1. A -1 counts as 0, since it
 * needs no more bits in a signed integer. */
static uint32_t column_bits(const int32_t *v, uint32_t n) {
        uint32_t bits = 0, i;

        for (i = 0; i < n; i++)
                bits |= (uint32_t)(v[i] ^ (v[i] >> 31));
        return bits;
}

static int column_differs(const int32_t *a, const int32_t *b, uint32_t n) {
        return memcmp(a, b, 4 * (size_t)n) != 0;
}

/* Return the bytes of the lists without references (flat), or with them. */
static size_t flat_bytes(const rdmeta_builder_t *s, const shape_t *shape) {
        return (1 + (size_t)s->count * s->most) << shape->list_width;
}

static size_t shared_bytes(const rdmeta_builder_t *s, const shape_t *shape) {
        return (((size_t)s->count * (1U + s->any_isr + s->any_offline))
                << shape->ref_width) +
               ((size_t)s->units << shape->list_width);
}

/* Chooses flat or shared lists, and numbers shared ones. */
static void shape_lists(rdmeta_builder_t *s, shape_t *out) {
        const int alike = s->least == s->most && s->most && !s->any_isr &&
                          !s->any_offline;

        out->list_width = rdmeta_width_signed(s->members);
        out->ref_width  = 0;
        out->flat       = alike && s->count <= FLAT_ALWAYS;
        if (out->flat)
                return;
        rdmeta_builder_number(s);
        out->ref_width = s->units <= 256 ? 0 : s->units <= 65536 ? 1 : 2;
        out->flat      = alike && flat_bytes(s, out) <= shared_bytes(s, out);
        if (out->flat)
                out->ref_width = 0;
}

/* Sets the flags. It drops columns that are not needed after all, so that equal
 * facts give equal blocks, whatever answers they came from. */
static void shape_flags(const rdmeta_builder_t *s, shape_t *out) {
        uint32_t f = 0, i, any_last = 0, any_error = 0;

        if (s->any_last)
                for (i = 0; i < s->count; i++)
                        any_last |= s->leader[i] < 0 && s->last[i] >= 0;
        if (s->any_error)
                for (i = 0; i < s->count; i++)
                        any_error |= s->error[i] != 0;
        f |= s->sparse ? RDMETA_TOPIC_F_IDS : 0;
        f |= s->any_high && column_differs(s->high, s->epoch, s->count)
                     ? RDMETA_TOPIC_F_HIGH
                     : 0;
        f |= any_last ? RDMETA_TOPIC_F_LAST : 0;
        f |= any_error ? RDMETA_TOPIC_F_ERRORS : 0;
        f |= s->topic.operations != RDMETA_NO_OPERATIONS ? RDMETA_TOPIC_F_OPS
                                                         : 0;
        f |= s->any_isr ? RDMETA_TOPIC_F_ISR : 0;
        f |= s->any_offline ? RDMETA_TOPIC_F_OFFLINE : 0;
        f |= s->n_past ? RDMETA_TOPIC_F_PAST : 0;
        f |= out->flat ? RDMETA_TOPIC_F_FLAT : 0;
        f |= s->topic.internal ? RDMETA_TOPIC_F_INTERNAL : 0;
        f |= out->epoch_width << RDMETA_TOPIC_EPOCH_SHIFT;
        f |= out->list_width << RDMETA_TOPIC_LIST_SHIFT;
        f |= out->ref_width << RDMETA_TOPIC_REF_SHIFT;
        out->flags = (uint16_t)f;
}

/* Sets widths, flags and size. Returns 0 if the block is too large. The size
 * field is a uint32. RDMETA_PARTITIONS_MAX rows of a response below 2 GiB need
 * far less, but the code checks it all the same. */
static int builder_shape(rdmeta_builder_t *s, shape_t *out) {
        const size_t n = s->count;
        size_t size    = 0;
        uint16_t f;

        if (RDMETA_UNLIKELY(s->put_back))
                rdmeta_builder_regather(s);
        out->leader_width = 2;
        if (!s->sparse)
                out->leader_width =
                        rdmeta_width_signed(column_bits(s->leader, s->count));
        out->epoch_width = rdmeta_width_signed(column_bits(s->epoch,
                                                           s->count));
        shape_lists(s, out);
        shape_flags(s, out);
        f = out->flags;
        size += n << out->epoch_width;
        size += f & RDMETA_TOPIC_F_IDS ? 4 * n : 0;
        size += f & RDMETA_TOPIC_F_HIGH ? 4 * n : 0;
        size += f & RDMETA_TOPIC_F_LAST ? 4 * n : 0;
        size += f & RDMETA_TOPIC_F_ERRORS ? 2 * n : 0;
        size += f & RDMETA_TOPIC_F_OPS ? 4 : 0;
        size += out->flat ? flat_bytes(s, out) : shared_bytes(s, out);
        size += s->n_past ? 1 + 16 * (size_t)s->n_past : 0;
        out->rest = size;
        return RDMETA_TOPIC_HEADER_SIZE +
                       rdmeta_hot_bytes(s->topic.name.len, s->count,
                                        out->leader_width) +
                       size <=
               INT32_MAX;
}

static char *put_column(char *p, unsigned width, const int32_t *v,
                        uint32_t n) {
        uint32_t i;

        if (width == 0) {
                for (i = 0; i < n; i++)
                        p[i] = (char)v[i];
        } else if (width == 1) {
                for (i = 0; i < n; i++) {
                        const int16_t x = (int16_t)v[i];
                        memcpy(p + 2 * (size_t)i, &x, 2);
                }
        } else {
                memcpy(p, v, 4 * (size_t)n);
        }
        return p + ((size_t)n << width);
}

static char *put_refs(char *p, unsigned width, const uint32_t *at,
                      const uint32_t *list, uint32_t n) {
        uint32_t i;

        for (i = 0; i < n; i++) {
                const uint32_t v = at[list[i]];
                if (width == 0) {
                        p[i] = (char)v;
                } else if (width == 1) {
                        const uint16_t x = (uint16_t)v;
                        memcpy(p + 2 * (size_t)i, &x, 2);
                } else {
                        memcpy(p + 4 * (size_t)i, &v, 4);
                }
        }
        return p + ((size_t)n << width);
}

RDMETA_INLINE char *put_members(char *p, unsigned width,
                                rdmeta_wire_ids_t l) {
        uint32_t k;

        for (k = 0; k < l.count; k++, p += (size_t)1 << width) {
                const uint8_t *be = l.be + 4 * (size_t)k;
                if (width == 0) {
                        *p = (char)be[3];
                } else if (width == 1) {
                        const uint16_t x = rdmeta_be16(be + 2);
                        memcpy(p, &x, 2);
                } else {
                        const uint32_t x = rdmeta_be32(be);
                        memcpy(p, &x, 4);
                }
        }
        return p;
}

/* Writes flat lists, those of all rows, or shared ones, each once after its
 * length. */
RDMETA_INLINE char *put_lists_as(const rdmeta_builder_t *s, char *p,
                                 unsigned width, int flat) {
        const rdmeta_wire_ids_t *lists = flat ? s->replicas : s->lists;
        const uint32_t n               = flat ? s->count : s->n_lists;
        uint32_t i;

        if (flat)
                p = put_column(p, width, (const int32_t *)&s->most, 1);
        for (i = 0; i < n; i++) {
                if (!flat)
                        p = put_column(p, width,
                                       (const int32_t *)&lists[i].count, 1);
                p = put_members(p, width, lists[i]);
        }
        return p;
}

static char *put_lists(const rdmeta_builder_t *s, char *p, unsigned width,
                       int flat) {
        if (width == 0)
                return put_lists_as(s, p, 0, flat);
        if (width == 1)
                return put_lists_as(s, p, 1, flat);
        return put_lists_as(s, p, 2, flat);
}

/* Writes the columns that few topics need. */
static char *put_rare(const rdmeta_builder_t *s, uint16_t f, char *p) {
        const uint32_t n = s->count;

        if (f & RDMETA_TOPIC_F_IDS)
                p = put_column(p, 2, s->id, n);
        if (f & RDMETA_TOPIC_F_HIGH)
                p = put_column(p, 2, s->high, n);
        if (f & RDMETA_TOPIC_F_LAST)
                p = put_column(p, 2, s->last, n);
        if (f & RDMETA_TOPIC_F_ERRORS)
                p = put_column(p, 1, s->error, n);
        if (f & RDMETA_TOPIC_F_OPS)
                p = put_column(p, 2, &s->topic.operations, 1);
        return p;
}

static char *put_columns(rdmeta_builder_t *s, const shape_t *shape, char *p) {
        const uint16_t f   = shape->flags;
        const unsigned ref = shape->ref_width;
        const uint32_t n   = s->count;

        p = put_column(p, shape->epoch_width, s->epoch, n);
        p = put_rare(s, f, p);
        if (!shape->flat)
                p = put_refs(p, ref, s->at, s->refs[0], n);
        if (f & RDMETA_TOPIC_F_ISR)
                p = put_refs(p, ref, s->at, s->refs[1], n);
        if (f & RDMETA_TOPIC_F_OFFLINE)
                p = put_refs(p, ref, s->at, s->refs[2], n);
        p = put_lists(s, p, shape->list_width, shape->flat);
        if (s->n_past) {
                memcpy(p, s->past, 16 * (size_t)s->n_past);
                p += 16 * (size_t)s->n_past;
                *p++ = (char)s->n_past;
        }
        return p;
}

RDMETA_INLINE void put_name(char *to, rdmeta_str_t name) {
        if (RDMETA_LIKELY(name.len - 16 <= 16)) {
                memcpy(to, name.data, 16);
                memcpy(to + name.len - 16, name.data + name.len - 16, 16);
        } else {
                memcpy(to, name.data, name.len);
        }
}

rdmeta_topic_t *rdmeta_builder_build(rdmeta_builder_t *s,
                                     rdmeta_memory_t *blocks,
                                     uint64_t version) {
        rdmeta_extent_t extent;
        rdmeta_cold_t *cold;
        rdmeta_topic_t *t;
        shape_t shape;
        char *columns, *end;

        if (!builder_shape(s, &shape))
                return NULL;
        extent.name_len = s->topic.name.len;
        extent.count    = s->count;
        extent.width    = s->sparse ? RDMETA_TOPIC_SPARSE
                                    : (uint8_t)shape.leader_width;
        extent.rest     = shape.rest;
        t = rdmeta_topic_alloc(blocks, &extent, (int16_t)s->topic.error);
        if (!t)
                return NULL;
        cold          = rdmeta_cold(t);
        cold->flags   = shape.flags;
        cold->version = version;
        memcpy(cold->id, s->id_bytes, 16);
        t->state = (uint8_t)s->state;
        put_name(t->name, s->topic.name);
        put_column(t->name + t->name_len, shape.leader_width, s->leader,
                   s->count);
        columns = rdmeta_topic_columns(t);
        end     = put_columns(s, &shape, columns);
        if (RDMETA_UNLIKELY((size_t)(end - columns) != shape.rest)) {
                rdmeta_topic_destroy(blocks, t);
                return NULL; /* cannot happen: sizing and filling agree */
        }
        return t;
}
