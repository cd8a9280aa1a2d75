#include "wire/response.h"

/*
 * The output. The same code runs twice: first with p NULL, which only counts,
 * then with a buffer that is known to be large enough. So an error leaves the
 * caller's buffer untouched.
 */
typedef struct request_out {
        uint8_t *p;
        size_t len;
} request_out_t;

static void out_put(request_out_t *out, const void *bytes, size_t n) {
        if (out->p && n)
                memcpy(out->p + out->len, bytes, n);
        out->len += n;
}

static void out_u8(request_out_t *out, uint8_t v) {
        out_put(out, &v, 1);
}

static void out_u16(request_out_t *out, uint16_t v) {
        uint8_t bytes[2] = {(uint8_t)(v >> 8), (uint8_t)v};

        out_put(out, bytes, sizeof(bytes));
}

static void out_u32(request_out_t *out, uint32_t v) {
        out_u16(out, (uint16_t)(v >> 16));
        out_u16(out, (uint16_t)v);
}

static void out_uvar(request_out_t *out, uint32_t v) {
        for (; v >= 0x80; v >>= 7)
                out_u8(out, (uint8_t)(v | 0x80));
        out_u8(out, (uint8_t)v);
}

static void out_tags(request_out_t *out, uint32_t fields) {
        if (fields & RDMETA_WIRE_FLEXIBLE)
                out_u8(out, 0);
}

/* Writes the count of an array; -1 stands for a null array. */
static void out_count(request_out_t *out, uint32_t fields, int64_t n) {
        if (fields & RDMETA_WIRE_FLEXIBLE)
                out_uvar(out, (uint32_t)(n + 1));
        else
                out_u32(out, (uint32_t)n);
}

/* Writes a name, or null (flexible versions only). */
static void out_name(request_out_t *out, uint32_t fields, rdmeta_str_t name) {
        if (fields & RDMETA_WIRE_FLEXIBLE)
                out_uvar(out, name.data ? (uint32_t)name.len + 1 : 0);
        else
                out_u16(out, (uint16_t)name.len);
        out_put(out, name.data, name.len);
}

static int asks_by_id(const rdmeta_request_t *request) {
        return request->asked == RDMETA_ASKED_IDS;
}

/* ------------------------------------------------------------------------
 * Checks: is the request well-formed, and can the version carry it
 * --------------------------------------------------------------------- */

static int is_zero_id(const uint8_t *id) {
        return memcmp(id, rdmeta_wire_zero_id, 16) == 0;
}

static int is_name(rdmeta_str_t name) {
        return name.data && name.len && name.len <= INT16_MAX;
}

static int are_names(const rdmeta_request_t *request) {
        size_t i;

        if (request->ids || request->n >= INT32_MAX ||
            (request->n && !request->names))
                return 0;
        for (i = 0; i < request->n; i++)
                if (!is_name(request->names[i]))
                        return 0;
        return 1;
}

static int are_ids(const rdmeta_request_t *request) {
        size_t i;

        if (request->names || request->n >= INT32_MAX ||
            (request->n && !request->ids))
                return 0;
        for (i = 0; i < request->n; i++)
                if (is_zero_id(request->ids[i]))
                        return 0;
        return 1;
}

/* Returns whether the request has names only where it asks for names, and ids
 * only where it asks for ids. */
static int is_well_formed(const rdmeta_request_t *request) {
        switch (request->asked) {
        case RDMETA_ASKED_ALL:
        case RDMETA_ASKED_BROKERS:
                return request->n == 0;
        case RDMETA_ASKED_NAMES:
                return are_names(request);
        case RDMETA_ASKED_IDS:
                return are_ids(request);
        default:
                return 0;
        }
}

/* Returns whether a version with these fields can carry the request. */
static int is_supported(const rdmeta_request_t *request, uint32_t fields) {
        const int32_t flags = request->flags;

        if (asks_by_id(request) && !(fields & RDMETA_WIRE_ASK_BY_ID))
                return 0;
        /* In v0 an empty list means all topics. */
        if (request->asked != RDMETA_ASKED_ALL && !request->n &&
            !(fields & RDMETA_WIRE_NULL_IS_ALL))
                return 0;
        /* Before v4 a broker may create each topic that is asked for by name,
         * and the request cannot forbid it. */
        if (request->asked == RDMETA_ASKED_NAMES && request->n &&
            !(flags & RDMETA_REQ_AUTO_CREATE) &&
            !(fields & RDMETA_WIRE_AUTO_CREATE))
                return 0;
        if ((flags & RDMETA_REQ_CLUSTER_OPS) &&
            !(fields & RDMETA_WIRE_CLUSTER_OPS))
                return 0;
        return !(flags & RDMETA_REQ_TOPIC_OPS) ||
               (fields & RDMETA_WIRE_TOPIC_OPS);
}

/* ------------------------------------------------------------------------
 * Encoding
 * --------------------------------------------------------------------- */

static void put_topic(request_out_t *out, uint32_t fields,
                      const rdmeta_request_t *request, size_t i) {
        const int by_id   = asks_by_id(request);
        rdmeta_str_t name = {NULL, 0};

        if (!by_id)
                name = request->names[i];
        if (fields & RDMETA_WIRE_TOPIC_ID)
                out_put(out, by_id ? request->ids[i] : rdmeta_wire_zero_id,
                        16);
        out_name(out, fields, name);
        out_tags(out, fields);
}

static void put_request(request_out_t *out, uint32_t fields,
                        const rdmeta_request_t *request) {
        const int32_t flags = request->flags;
        const int null      = request->asked == RDMETA_ASKED_ALL &&
                         (fields & RDMETA_WIRE_NULL_IS_ALL);
        size_t i;

        out_count(out, fields, null ? -1 : (int64_t)request->n);
        for (i = 0; i < request->n; i++)
                put_topic(out, fields, request, i);
        if (fields & RDMETA_WIRE_AUTO_CREATE)
                out_u8(out, !!(flags & RDMETA_REQ_AUTO_CREATE));
        if (fields & RDMETA_WIRE_CLUSTER_OPS)
                out_u8(out, !!(flags & RDMETA_REQ_CLUSTER_OPS));
        if (fields & RDMETA_WIRE_TOPIC_OPS)
                out_u8(out, !!(flags & RDMETA_REQ_TOPIC_OPS));
        out_tags(out, fields);
}

rdmeta_err_t rdmeta_metadata_request_encode(int16_t version,
                                            const rdmeta_request_t *request,
                                            void *buf, size_t capacity,
                                            size_t *len) {
        const uint32_t fields = rdmeta_wire_fields(version);
        request_out_t out     = {NULL, 0};

        *len = 0;
        if (!fields)
                return RDMETA_ERR_UNSUPPORTED;
        if (!is_well_formed(request))
                return RDMETA_ERR_ARGUMENT;
        if (!is_supported(request, fields))
                return RDMETA_ERR_UNSUPPORTED;
        put_request(&out, fields, request);
        *len = out.len;
        if (!buf || out.len > capacity)
                return RDMETA_ERR_TOO_SMALL;
        out.p   = buf;
        out.len = 0;
        put_request(&out, fields, request);
        return RDMETA_OK;
}
