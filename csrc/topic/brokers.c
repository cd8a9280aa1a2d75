#include "topic/brokers.h"

#include "base/alloc.h"
#include "base/tmpabuf.h"

#include <stdlib.h>

int rdmeta_str_same(rdmeta_str_t a, rdmeta_str_t b) {
        if (!a.data || !b.data)
                return a.data == b.data;
        return a.len == b.len && !memcmp(a.data, b.data, a.len);
}

int rdmeta_broker_same(const rdmeta_broker_t *a, const rdmeta_broker_t *b) {
        return a->id == b->id && a->port == b->port &&
               rdmeta_str_same(a->host, b->host) &&
               rdmeta_str_same(a->rack, b->rack);
}

int rdmeta_brokers_same(const rdmeta_brokers_t *a,
                        const rdmeta_brokers_t *b) {
        uint32_t i;

        if (a->count != b->count ||
            !rdmeta_str_same(a->cluster_id, b->cluster_id))
                return 0;
        for (i = 0; i < a->count; i++)
                if (!rdmeta_broker_same(&a->rows[i], &b->rows[i]))
                        return 0;
        return 1;
}

uint32_t rdmeta_brokers_count(const rdmeta_brokers_t *brokers) {
        return brokers->count;
}

rdmeta_err_t rdmeta_brokers_at(const rdmeta_brokers_t *brokers, uint32_t i,
                               rdmeta_broker_t *out) {
        if (i >= brokers->count)
                return RDMETA_ERR_ARGUMENT;
        *out = brokers->rows[i];
        return RDMETA_OK;
}

static const rdmeta_broker_t *brokers_search(const rdmeta_brokers_t *b,
                                             int32_t id) {
        uint32_t lo = 0, hi = b->count;

        while (lo < hi) {
                const uint32_t mid = lo + (hi - lo) / 2;
                if (b->rows[mid].id == id)
                        return &b->rows[mid];
                if (b->rows[mid].id < id)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return NULL;
}

rdmeta_err_t rdmeta_brokers_find(const rdmeta_brokers_t *brokers, int32_t id,
                                 rdmeta_broker_t *out) {
        const rdmeta_broker_t *found = brokers_search(brokers, id);

        if (!found)
                return RDMETA_NOT_CACHED;
        *out = *found;
        return RDMETA_OK;
}

int rdmeta_brokers_lost(const rdmeta_brokers_t *old,
                        const rdmeta_brokers_t *next) {
        uint32_t i;

        for (i = 0; i < old->count; i++)
                if (!rdmeta_brokers_has(next, old->rows[i].id))
                        return 1;
        return 0;
}

rdmeta_str_t rdmeta_brokers_cluster_id(const rdmeta_brokers_t *brokers) {
        return brokers->cluster_id;
}

int32_t rdmeta_brokers_controller(const rdmeta_brokers_t *brokers) {
        return atomic_load_explicit(&brokers->controller,
                                    memory_order_relaxed);
}

void rdmeta_brokers_destroy(const rdmeta_allocator_t *allocator,
                            rdmeta_brokers_t *brokers) {
        if (brokers)
                rdmeta_free(allocator, brokers, brokers->large.size);
}

static uint32_t ids_slots(uint32_t n) {
        uint32_t slots = 4;

        while (slots < 2 * n)
                slots *= 2;
        return slots;
}

static void ids_put(rdmeta_brokers_t *b, int32_t id) {
        uint32_t k = rdmeta_brokers_place(b, id);

        while (b->ids[k] >= 0)
                k = (k + 1) & b->mask;
        b->ids[k] = id;
}

/* Copies rows and cluster id into one allocation. NULL: no memory. */
static rdmeta_brokers_t *brokers_make(const rdmeta_allocator_t *allocator,
                                      const rdmeta_broker_t *rows, uint32_t n,
                                      rdmeta_str_t cluster_id,
                                      int32_t controller, uint64_t version) {
        rdmeta_tmpabuf_t b;
        rdmeta_brokers_t *out;
        uint32_t i;

        rdmeta_tmpabuf_init(&b);
        rdmeta_tmpabuf_add(&b, sizeof(*out));
        rdmeta_tmpabuf_add_array(&b, n, sizeof(*rows));
        rdmeta_tmpabuf_add_array(&b, ids_slots(n), sizeof(*out->ids));
        rdmeta_tmpabuf_add_str(&b, cluster_id);
        for (i = 0; i < n; i++) {
                rdmeta_tmpabuf_add_str(&b, rows[i].host);
                rdmeta_tmpabuf_add_str(&b, rows[i].rack);
        }
        if (!rdmeta_tmpabuf_start(&b, allocator))
                return NULL;
        out = (rdmeta_brokers_t *)rdmeta_tmpabuf_alloc(&b, sizeof(*out));
        memset(out, 0, sizeof(*out));
        out->large.size = b.size;
        out->version    = version;
        out->count      = n;
        atomic_init(&out->controller, controller);
        out->rows = (rdmeta_broker_t *)rdmeta_tmpabuf_alloc_array(
                &b, n, sizeof(*rows));
        out->mask   = ids_slots(n) - 1;
        out->factor = (uint32_t)(((uintptr_t)out >> 4) *
                                 UINT32_C(0x9e3779b1)) |
                      1;
        out->ids    = (int32_t *)rdmeta_tmpabuf_alloc_array(
                &b, ids_slots(n), sizeof(*out->ids));
        memset(out->ids, 0xff, ids_slots(n) * sizeof(*out->ids));
        out->cluster_id = rdmeta_tmpabuf_write_str(&b, cluster_id);
        for (i = 0; i < n; i++) {
                const int32_t id = rows[i].id;

                ids_put(out, id);
                out->rows[i].id   = id;
                out->rows[i].port = rows[i].port;
                out->rows[i].host = rdmeta_tmpabuf_write_str(&b, rows[i].host);
                out->rows[i].rack = rdmeta_tmpabuf_write_str(&b, rows[i].rack);
        }
        return (rdmeta_brokers_t *)rdmeta_tmpabuf_finish(&b);
}

rdmeta_brokers_t *rdmeta_brokers_empty(const rdmeta_allocator_t *allocator,
                                       uint64_t version) {
        const rdmeta_str_t none = {NULL, 0};

        return brokers_make(allocator, NULL, 0, none, -1, version);
}

rdmeta_brokers_t *rdmeta_brokers_copy(const rdmeta_allocator_t *allocator,
                                      const rdmeta_brokers_t *from) {
        return brokers_make(allocator, from->rows, from->count,
                            from->cluster_id, rdmeta_brokers_controller(from),
                            from->version);
}

rdmeta_brokers_t *rdmeta_brokers_with(const rdmeta_allocator_t *allocator,
                                      const rdmeta_brokers_t *old,
                                      const rdmeta_broker_t *broker,
                                      uint64_t version) {
        const size_t size     = ((size_t)old->count + 1) * sizeof(*broker);
        rdmeta_broker_t *rows = (rdmeta_broker_t *)rdmeta_alloc(allocator,
                                                                size);
        rdmeta_brokers_t *out;
        uint32_t i, n = 0;

        if (!rows)
                return NULL;
        for (i = 0; i < old->count && old->rows[i].id < broker->id; i++)
                rows[n++] = old->rows[i];
        rows[n++] = *broker;
        if (i < old->count && old->rows[i].id == broker->id)
                i++;
        for (; i < old->count; i++)
                rows[n++] = old->rows[i];
        out = brokers_make(allocator, rows, n, old->cluster_id,
                           rdmeta_brokers_controller(old), version);
        rdmeta_free(allocator, rows, size);
        return out;
}

static int rows_compare(const void *a, const void *b) {
        const int32_t x = ((const rdmeta_broker_t *)a)->id;
        const int32_t y = ((const rdmeta_broker_t *)b)->id;

        return x < y ? -1 : x > y;
}

static rdmeta_err_t rows_read(rdmeta_wire_t *w, rdmeta_broker_t *rows) {
        const uint32_t n = w->head.brokers;
        uint32_t i;

        for (i = 0; i < n && !w->buf.bad; i++) {
                rdmeta_wire_broker(w, &rows[i]);
                if (rows[i].id < 0 || rows[i].host.len == 0 ||
                    rows[i].port < 0 || rows[i].port > 65535)
                        return RDMETA_ERR_MALFORMED;
        }
        if (w->buf.bad)
                return RDMETA_ERR_MALFORMED;
        if (n > 1)
                qsort(rows, n, sizeof(*rows), rows_compare);
        for (i = 1; i < n; i++)
                if (rows[i].id == rows[i - 1].id)
                        return RDMETA_ERR_MALFORMED;
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_brokers_read(const rdmeta_allocator_t *allocator,
                                 rdmeta_wire_t *w,
                                 const rdmeta_brokers_t *keep,
                                 uint64_t version, rdmeta_brokers_t **out) {
        const size_t size = ((size_t)w->head.brokers + 1) *
                            sizeof(rdmeta_broker_t);
        rdmeta_broker_t *rows = (rdmeta_broker_t *)rdmeta_alloc(allocator,
                                                                size);
        rdmeta_str_t cluster_id;
        rdmeta_err_t err;

        if (!rows)
                return RDMETA_ERR_NO_MEMORY;
        err = rows_read(w, rows);
        if (!err) {
                rdmeta_wire_middle(w);
                if (w->buf.bad)
                        err = RDMETA_ERR_MALFORMED;
        }
        if (!err) {
                cluster_id = w->head.cluster_id;
                if (!cluster_id.data && keep)
                        cluster_id = keep->cluster_id;
                *out = brokers_make(allocator, rows, w->head.brokers,
                                    cluster_id, w->head.controller, version);
                if (!*out)
                        err = RDMETA_ERR_NO_MEMORY;
        }
        rdmeta_free(allocator, rows, size);
        return err;
}
