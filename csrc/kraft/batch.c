#include "kraft/batch.h"

#include "base/crc32c.h"

enum { CONTROL = 0x20, COMPRESSION = 7, CRC_FROM = 21 };

static int all_zero(const uint8_t *p, size_t n) {
        while (n && !*p) {
                p++;
                n--;
        }
        return !n;
}

/* Returns CUT, with the size that the batch needs. */
static int32_t cut(rdmeta_kraft_batch_t *out, size_t len, size_t needed) {
        out->size = needed > len ? needed : len + 1;
        return RDMETA_KRAFT_CUT;
}

/* Reads the header of a batch whose bytes are all there. */
static void header_read(rdmeta_kraft_batch_t *out, const uint8_t *p) {
        out->epoch        = (int32_t)rdmeta_be32(p + 12);
        out->control      = !!(rdmeta_be16(p + 21) & CONTROL);
        out->last_offset  = (int32_t)rdmeta_be32(p + 23);
        out->base_time_ms = (int64_t)rdmeta_be64(p + 27);
        out->time_ms      = (int64_t)rdmeta_be64(p + 35);
        out->count        = (int32_t)rdmeta_be32(p + 57);
}

/* Returns whether times can be microseconds, and whether offsets have no gap.
 * A record takes 7 bytes at least. */
static int header_is_possible(rdmeta_kraft_batch_t *b) {
        const int64_t delta = b->last_offset;

        b->last_offset = b->base_offset;
        if (b->count < 1 || delta != (int64_t)b->count - 1 ||
            b->base_offset < 0 || b->base_offset > INT64_MAX / 2 ||
            b->epoch < 0 ||
            (size_t)b->count > (b->size - RDMETA_KRAFT_HEADER) / 7)
                return 0;
        b->last_offset += delta;
        return b->time_ms >= b->base_time_ms && b->base_time_ms >= -1 &&
               b->time_ms <= INT64_MAX / 2000;
}

int32_t rdmeta_kraft_batch(const void *bytes, size_t len,
                           rdmeta_kraft_batch_t *out) {
        const uint8_t *p = (const uint8_t *)bytes;
        size_t size;

        memset(out, 0, sizeof(*out));
        out->bytes = p;
        if (len >= 12 && all_zero(p, len < RDMETA_KRAFT_HEADER
                                             ? len
                                             : RDMETA_KRAFT_HEADER))
                return RDMETA_KRAFT_ZEROS;
        if (len < 17)
                return cut(out, len, 17);
        out->base_offset = (int64_t)rdmeta_be64(p);
        size             = (size_t)rdmeta_be32(p + 8) + 12;
        if (size < 12 + 14 || size > RDMETA_KRAFT_BATCH_MAX)
                return RDMETA_KRAFT_NO_BATCH;
        if (p[16] < 2)
                return RDMETA_KRAFT_OLD_FORMAT;
        if (p[16] != 2 || size < RDMETA_KRAFT_HEADER)
                return RDMETA_KRAFT_NO_BATCH;
        if (len < size)
                return cut(out, len, size);
        out->size = size;
        header_read(out, p);
        if (rdmeta_crc32c(p + CRC_FROM, size - CRC_FROM) !=
            rdmeta_be32(p + 17))
                return RDMETA_KRAFT_BAD_CRC;
        if (rdmeta_be16(p + 21) & COMPRESSION)
                return RDMETA_KRAFT_COMPRESSED;
        return header_is_possible(out) ? RDMETA_KRAFT_OK
                                       : RDMETA_KRAFT_NO_BATCH;
}

int rdmeta_kraft_batch_head(const uint8_t *p, size_t len,
                            rdmeta_kraft_batch_t *out) {
        if (len < RDMETA_KRAFT_HEADER)
                return 0;
        out->bytes       = p;
        out->base_offset = (int64_t)rdmeta_be64(p);
        out->size        = (size_t)rdmeta_be32(p + 8) + 12;
        header_read(out, p);
        return out->size >= RDMETA_KRAFT_HEADER && out->size <= len &&
               header_is_possible(out);
}

/* ---- records ----------------------------------------------------------- */

static RDMETA_NOINLINE int64_t zigzag_long(rdmeta_buf_t *b) {
        uint64_t v = 0;
        int shift;

        for (shift = 0; shift < 70 && b->p < b->end; shift += 7) {
                const uint8_t c = *b->p++;

                v |= (uint64_t)(c & 0x7f) << (shift & 63);
                if (c < 0x80)
                        return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
        }
        rdmeta_buf_fail(b);
        return 0;
}

/* Reads a signed varint of at most 64 bits. */
RDMETA_INLINE int64_t zigzag(rdmeta_buf_t *b) {
        if (RDMETA_LIKELY(b->p < b->end && *b->p < 0x80)) {
                const uint8_t v = *b->p++;

                return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
        }
        return zigzag_long(b);
}

/* Reads a length, and returns that many bytes of the record; NULL: null, or
 * bad bytes. */
RDMETA_INLINE const uint8_t *piece(rdmeta_buf_t *b, size_t *len) {
        const int64_t n = zigzag(b);

        *len = 0;
        if (n < 0 || b->bad) {
                if (n != -1)
                        rdmeta_buf_fail(b);
                return NULL;
        }
        *len = (size_t)n;
        return rdmeta_buf_bytes(b, (size_t)n);
}

/* Returns whether the frame has a byte for each of its three varints. */
RDMETA_INLINE int has_short_frame(const rdmeta_kraft_record_t *r) {
        return !r->control && r->len >= 3 &&
               !((r->value[0] | r->value[1] | r->value[2]) & 0x80);
}

/* Reads the type and the version from key and value, or from the frame. */
static int type_read(rdmeta_kraft_record_t *r, const uint8_t *key,
                     size_t key_len) {
        rdmeta_buf_t b;

        if (!r->value)
                return 0;
        if (RDMETA_LIKELY(has_short_frame(r) && !key)) {
                r->type    = r->value[1];
                r->version = r->value[2];
                return r->value[0] == 1;
        }
        rdmeta_buf_init(&b, r->value, r->len);
        if (r->control) {
                if (key_len != 4 || r->len < 2)
                        return 0;
                r->type    = rdmeta_be16(key + 2);
                r->version = rdmeta_buf_i16(&b);
                return r->version >= 0;
        }
        if (key || rdmeta_buf_uvar(&b) != 1)
                return 0;
        r->type    = (int32_t)rdmeta_buf_uvar(&b);
        r->version = (int32_t)rdmeta_buf_uvar(&b);
        return !b.bad && (uint32_t)r->type <= INT16_MAX &&
               (uint32_t)r->version <= INT16_MAX;
}

void rdmeta_kraft_records_init(rdmeta_kraft_records_t *it,
                               const rdmeta_kraft_batch_t *batch) {
        it->batch = batch;
        it->next  = 0;
        rdmeta_buf_init(&it->buf, batch->bytes + RDMETA_KRAFT_HEADER,
                        batch->size - RDMETA_KRAFT_HEADER);
}

static int bad(rdmeta_kraft_records_t *it, const uint8_t *at) {
        it->buf.p   = it->buf.end;
        it->buf.bad = at;
        return -1;
}

/* Reads a varint of one or two bytes; a longer one gives an odd number, which
 * no length here is. */
RDMETA_INLINE uint32_t short_varint(const uint8_t **p) {
        uint32_t v = *(*p)++;

        if (v >= 0x80) {
                v = (v & 0x7f) | (uint32_t)**p << 7;
                if (*(*p)++ >= 0x80)
                        return UINT32_MAX;
        }
        return v;
}

/* Reads a metadata record whose lengths and deltas have the usual bytes: two
 * for each length, or one, and no time delta. Returns 0 for any other record,
 * or a bad one, and has read nothing then. */
RDMETA_INLINE int plain_next(rdmeta_kraft_records_t *it,
                             rdmeta_kraft_record_t *out) {
        const rdmeta_kraft_batch_t *batch = it->batch;
        const uint8_t *p                  = it->buf.p, *end;
        uint32_t len, delta, value;

        if (it->buf.end - p < 16 || batch->control)
                return 0;
        len = short_varint(&p);
        if (len & 1 || len >> 1 > (size_t)(it->buf.end - p))
                return 0;
        end = p + (len >> 1);
        if (p[1]) /* the time delta, behind the attributes */
                return 0;
        p += 2;
        delta = short_varint(&p);
        if (delta != 2 * (uint32_t)it->next || *p++ != 1) /* no key */
                return 0;
        value = short_varint(&p);
        if (value & 1 || p + (value >> 1) + 1 != end || end[-1] ||
            value < 6 || p[0] != 1 || (p[1] | p[2]) & 0x80)
                return 0;
        out->value   = p;
        out->len     = value >> 1;
        out->control = 0;
        out->type    = p[1];
        out->version = p[2];
        out->offset  = batch->base_offset + it->next++;
        out->epoch   = batch->epoch;
        out->time_us = 1000 * batch->base_time_ms;
        it->buf.p    = end;
        return 1;
}

int rdmeta_kraft_records_next(rdmeta_kraft_records_t *it,
                              rdmeta_kraft_record_t *out) {
        const rdmeta_kraft_batch_t *batch = it->batch;
        const uint8_t *begin = it->buf.p, *key, *bytes;
        size_t len, key_len;
        int64_t time, delta;
        rdmeta_buf_t b;

        if (it->buf.bad)
                return -1;
        if (it->next == batch->count)
                return begin == it->buf.end ? 0 : bad(it, begin);
        if (RDMETA_LIKELY(plain_next(it, out)))
                return 1;
        bytes = piece(&it->buf, &len);
        if (!bytes)
                return bad(it, begin);
        rdmeta_buf_init(&b, bytes, len);
        rdmeta_buf_i8(&b); /* attributes, which are not used */
        time         = zigzag(&b);
        delta        = zigzag(&b);
        key          = piece(&b, &key_len);
        out->value   = piece(&b, &out->len);
        out->control = batch->control;
        if (zigzag(&b) || b.bad || b.p != b.end || delta != it->next ||
            time < 0 || time > batch->time_ms - batch->base_time_ms ||
            !type_read(out, key, key_len))
                return bad(it, begin);
        out->offset  = batch->base_offset + delta;
        out->epoch   = batch->epoch;
        out->time_us = 1000 * (batch->base_time_ms + time);
        it->next++;
        return 1;
}

int32_t rdmeta_kraft_record_next(const rdmeta_kraft_batch_t *batch,
                                 rdmeta_kraft_place_t *place,
                                 rdmeta_kraft_record_t *out) {
        rdmeta_kraft_records_t it;
        int got;

        rdmeta_kraft_records_init(&it, batch);
        if (place->byte)
                it.buf.p = batch->bytes + place->byte;
        it.next     = place->next;
        got         = rdmeta_kraft_records_next(&it, out);
        place->byte = (size_t)(it.buf.p - batch->bytes);
        place->next = it.next;
        return got;
}

rdmeta_buf_t rdmeta_kraft_record_body(const rdmeta_kraft_record_t *record) {
        /* Its members are stored once: a CPU waits where a copy of them follows
         * a change of one. */
        const uint8_t *end = record->value + record->len;
        rdmeta_buf_t b     = {record->value, end, record->value, NULL};
        int i;

        if (RDMETA_LIKELY(has_short_frame(record)))
                return (rdmeta_buf_t){record->value + 3, end, record->value,
                                      NULL};
        for (i = 0; i < 3 && !record->control; i++)
                rdmeta_buf_uvar(&b);
        return b;
}
