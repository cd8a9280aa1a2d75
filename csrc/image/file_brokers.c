/* Brokers in a file: a Metadata response without topics. */
#include "image/file.h"

/* A response, measured when `p` is NULL. */
typedef struct response {
        uint8_t *p;
        size_t n;
} response_t;

static void add_bytes(response_t *r, const void *p, size_t n) {
        if (r->p && n)
                memcpy(r->p + r->n, p, n);
        r->n += n;
}

static void add_int(response_t *r, uint32_t v) {
        v = __builtin_bswap32(v);
        add_bytes(r, &v, 4);
}

static void add_count(response_t *r, size_t v) {
        uint8_t byte;

        do {
                byte = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
                add_bytes(r, &byte, 1);
        } while (v >>= 7);
}

static void add_str(response_t *r, rdmeta_str_t s) {
        add_count(r, s.data ? s.len + 1 : 0);
        add_bytes(r, s.data, s.len);
}

static void add_response(response_t *r, const rdmeta_brokers_t *b) {
        uint32_t i;

        add_int(r, 0); /* throttled for no time */
        add_count(r, (size_t)b->count + 1);
        for (i = 0; i < b->count; i++) {
                add_int(r, (uint32_t)b->rows[i].id);
                add_str(r, b->rows[i].host);
                add_int(r, (uint32_t)b->rows[i].port);
                add_str(r, b->rows[i].rack);
                add_count(r, 0);
        }
        add_str(r, b->cluster_id);
        add_int(r, (uint32_t)rdmeta_brokers_controller(b));
        add_count(r, 1); /* no topics */
        add_count(r, 0);
}

size_t rdmeta_file_brokers_fill(const rdmeta_brokers_t *b, uint8_t *out) {
        response_t r = {out, 0};

        add_response(&r, b);
        return r.n;
}
