#include "topic/builder.h"

#include "base/alloc.h"

#include <stdlib.h>

void rdmeta_builder_init(rdmeta_builder_t *s,
                         const rdmeta_allocator_t *allocator,
                         const uint64_t *key) {
        memset(s, 0, sizeof(*s));
        s->allocator = allocator;
        s->key       = key;
}

void rdmeta_builder_destroy(rdmeta_builder_t *s) {
        rdmeta_free(s->allocator, s->memory, s->memory_size);
        rdmeta_free(s->allocator, s->kept, s->kept_size);
        rdmeta_free(s->allocator, s->spare, s->spare_size);
        rdmeta_builder_init(s, s->allocator, s->key);
}

/* Allocates columns for n rows: three lists per row, the empty list, and slots
 * for twice as many lists. Members aligned to 8 bytes come first. The caller
 * frees the builder's former memory. */
static rdmeta_err_t builder_alloc(rdmeta_builder_t *s, uint32_t n) {
        size_t rows = 64, lists, slots = 64, size;
        char *p;
        int i;

        while (rows < n)
                rows *= 2;
        lists = 3 * rows + 1;
        while (slots < 2 * lists)
                slots *= 2;
        size = slots * 8 + (lists + 3 * rows) * sizeof(rdmeta_wire_ids_t) +
               4 * lists + 9 * 4 * rows;
        p    = (char *)rdmeta_alloc(s->allocator, size);
        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        s->memory      = p;
        s->memory_size = size;
        s->capacity    = (uint32_t)rows;
        s->slots       = (uint64_t *)(void *)p;
        s->slot_mask   = (uint32_t)slots - 1;
        s->generation  = 0;
        memset(s->slots, 0, slots * 8);
        s->lists    = (rdmeta_wire_ids_t *)(void *)(p += slots * 8);
        s->replicas = s->lists + lists;
        s->isr      = s->replicas + rows;
        s->offline  = s->isr + rows;
        s->at       = (uint32_t *)(void *)(s->offline + rows);
        s->id       = (int32_t *)(void *)(s->at + lists);
        s->leader   = s->id + rows;
        s->epoch    = s->leader + rows;
        s->high     = s->epoch + rows;
        s->last     = s->high + rows;
        s->error    = s->last + rows;
        for (i = 0; i < 3; i++)
                s->refs[i] = (uint32_t *)(s->error + rows) + i * rows;
        return RDMETA_OK;
}

static rdmeta_err_t builder_grow(rdmeta_builder_t *s, uint32_t n) {
        void *former      = s->memory;
        const size_t size = s->memory_size;
        rdmeta_err_t err  = builder_alloc(s, n);

        if (!err)
                rdmeta_free(s->allocator, former, size);
        return err;
}

enum { KEEP_ROWS = 4096, KEEP_BYTES = 64 << 10 };

void rdmeta_builder_trim(rdmeta_builder_t *s) {
        if (s->capacity > KEEP_ROWS) {
                rdmeta_free(s->allocator, s->memory, s->memory_size);
                s->memory      = NULL;
                s->memory_size = s->capacity = 0;
        }
        if (s->kept_size > KEEP_BYTES) {
                rdmeta_free(s->allocator, s->kept, s->kept_size);
                s->kept      = NULL;
                s->kept_size = 0;
        }
        if (s->spare_size > KEEP_BYTES) {
                rdmeta_free(s->allocator, s->spare, s->spare_size);
                s->spare      = NULL;
                s->spare_size = 0;
        }
}

/* Returns a number whose top bit is set if `v` is less than -1. */
RDMETA_INLINE uint32_t below_none(int32_t v) {
        return (uint32_t)v & ((uint32_t)v + 1);
}

/* Returns the OR of the members in their big-endian form. */
RDMETA_INLINE uint32_t list_members(rdmeta_wire_ids_t l) {
        uint32_t bits = 0, k;

        for (k = 0; k < l.count; k++)
                bits |= rdmeta_load32(l.be + 4 * (size_t)k);
        return bits;
}

/* Returns the OR of both lists' members. Makes *differ nonzero if the lists
 * differ. Replicas and ISR are nearly always equal, so one loop reads both. */
RDMETA_INLINE uint32_t lists_compare(rdmeta_wire_ids_t a, rdmeta_wire_ids_t b,
                                     uint32_t *differ) {
        uint32_t bits = 0, odd = a.count ^ b.count, k;

        if (RDMETA_UNLIKELY(odd)) {
                *differ |= odd;
                return list_members(a) | list_members(b);
        }
        for (k = 0; k < a.count; k++) {
                const uint32_t x = rdmeta_load32(a.be + 4 * (size_t)k);
                const uint32_t y = rdmeta_load32(b.be + 4 * (size_t)k);
                bits |= x | y;
                odd |= x ^ y;
        }
        *differ |= odd;
        return bits;
}

/* The facts that are gathered from all rows while they are read. */
typedef struct gather {
        uint32_t out_of_place, errors, isr, offline, negative;
        uint32_t members, counts, least, most;
} gather_t;

RDMETA_INLINE void builder_row(rdmeta_builder_t *s, uint32_t i,
                               const rdmeta_wire_partition_t *p, gather_t *g) {
        const uint32_t n = p->replicas.count;

        s->id[i]       = p->id;
        s->leader[i]   = p->leader;
        s->epoch[i]    = p->leader_epoch;
        s->error[i]    = p->error;
        s->replicas[i] = p->replicas;
        s->isr[i]      = p->isr;
        s->offline[i]  = p->offline_replicas;
        g->errors |= (uint32_t)p->error;
        g->out_of_place |= (uint32_t)p->id ^ i;
        g->negative |= (uint32_t)p->id | below_none(p->leader) |
                       below_none(p->leader_epoch);
        g->members |= lists_compare(p->replicas, p->isr, &g->isr);
        g->counts |= n | p->isr.count | p->offline_replicas.count;
        g->least = n < g->least ? n : g->least;
        g->most  = n > g->most ? n : g->most;
        if (RDMETA_UNLIKELY(p->offline_replicas.count)) {
                g->offline = 1;
                g->members |= list_members(p->offline_replicas);
        }
}

/* Reads n rows; returns 0 for bad bytes or values. This is the hot loop: it is
 * inlined once with the newest versions' constant fields. */
RDMETA_INLINE int builder_rows(rdmeta_builder_t *s, rdmeta_buf_t *b,
                               uint32_t fields, uint32_t n) {
        const uint32_t plain = RDMETA_WIRE_FLEXIBLE | RDMETA_WIRE_EPOCH |
                               RDMETA_WIRE_OFFLINE;
        gather_t g           = {.least = UINT32_MAX};
        uint32_t i;

        for (i = 0; i < n; i++) {
                rdmeta_wire_partition_t p;
                const uint8_t *next = NULL;

                if ((fields & plain) == plain)
                        next = rdmeta_wire_partition_plain(b->p, b->end, &p);
                if (RDMETA_LIKELY(next != NULL))
                        b->p = next;
                else
                        rdmeta_wire_partition(b, fields, &p);
                if (RDMETA_UNLIKELY(b->bad != NULL))
                        return 0;
                builder_row(s, i, &p, &g);
        }
        s->sparse      = g.out_of_place != 0;
        s->any_error   = g.errors != 0;
        s->any_isr     = g.isr != 0;
        s->any_offline = g.offline != 0;
        s->members     = rdmeta_be32(&g.members) | g.counts;
        s->least       = g.least;
        s->most        = g.most;
        return !((g.negative | s->members) >> 31);
}

static int order_compare(const void *a, const void *b) {
        const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return x < y ? -1 : x > y;
}

/* Puts one column into the order of `order`'s low halves. */
static void builder_permute(const uint64_t *order, uint32_t n, void *column,
                            size_t size, char *spare) {
        char *p = (char *)column;
        uint32_t i;

        memcpy(spare, p, size * n);
        for (i = 0; i < n; i++)
                memcpy(p + size * i, spare + size * (uint32_t)order[i], size);
}

static void builder_permute_all(rdmeta_builder_t *s, const uint64_t *order,
                                char *spare) {
        const uint32_t n = s->count;

        builder_permute(order, n, s->id, sizeof(*s->id), spare);
        builder_permute(order, n, s->leader, sizeof(*s->leader), spare);
        builder_permute(order, n, s->epoch, sizeof(*s->epoch), spare);
        builder_permute(order, n, s->error, sizeof(*s->error), spare);
        builder_permute(order, n, s->replicas, sizeof(*s->replicas), spare);
        builder_permute(order, n, s->isr, sizeof(*s->isr), spare);
        builder_permute(order, n, s->offline, sizeof(*s->offline), spare);
}

/* Sorts rows by id, for answers that have rows out of place. Returns 0,
 * MALFORMED for duplicates, or NO_MEMORY. */
static rdmeta_err_t builder_sort(rdmeta_builder_t *s) {
        const size_t size  = (8 + sizeof(rdmeta_wire_ids_t)) *
                            (size_t)s->count;
        uint64_t *order    = (uint64_t *)rdmeta_alloc(s->allocator, size);
        rdmeta_err_t err   = RDMETA_OK;
        uint32_t i, moved = 0, gaps = 0;

        if (!order)
                return RDMETA_ERR_NO_MEMORY;
        for (i = 0; i < s->count; i++)
                order[i] = (uint64_t)(uint32_t)s->id[i] << 32 | i;
        qsort(order, s->count, sizeof(*order), order_compare);
        for (i = 0; i < s->count; i++) {
                if (i && order[i] >> 32 == order[i - 1] >> 32)
                        err = RDMETA_ERR_MALFORMED;
                moved |= (uint32_t)order[i] ^ i;
                gaps |= (uint32_t)(order[i] >> 32) ^ i;
        }
        if (!err && moved)
                builder_permute_all(s, order, (char *)(order + s->count));
        s->sparse = gaps != 0;
        rdmeta_free(s->allocator, order, size);
        return err;
}

#define FIELDS_V12                                                            \
        (RDMETA_WIRE_FLEXIBLE | RDMETA_WIRE_EPOCH | RDMETA_WIRE_OFFLINE)

rdmeta_err_t rdmeta_builder_read(rdmeta_builder_t *s, rdmeta_buf_t *b,
                                 uint32_t fields,
                                 const rdmeta_wire_topic_t *topic) {
        const uint32_t n = topic->partitions;
        rdmeta_err_t err;
        int good;

        if (n > RDMETA_PARTITIONS_MAX)
                return RDMETA_ERR_MALFORMED;
        if (RDMETA_UNLIKELY(n > s->capacity || !s->capacity)) {
                err = builder_grow(s, n);
                if (err)
                        return err;
        }
        s->topic = *topic;
        memcpy(s->id_bytes, topic->id, 16);
        s->count    = n;
        s->any_high = s->any_last = s->n_past = s->put_back = 0;
        s->state                            = RDMETA_TOPIC_VALID;
        if (RDMETA_LIKELY((fields & FIELDS_V12) == FIELDS_V12))
                good = builder_rows(s, b, FIELDS_V12, n);
        else
                good = builder_rows(s, b, fields, n);
        rdmeta_wire_topic_end(b, fields, &s->topic);
        if (RDMETA_UNLIKELY(!good || b->bad))
                return RDMETA_ERR_MALFORMED;
        if (RDMETA_UNLIKELY(s->sparse))
                return builder_sort(s);
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_builder_begin(rdmeta_builder_t *s,
                                  const rdmeta_topic_t *old,
                                  const rdmeta_cols_t *cols) {
        rdmeta_err_t err = RDMETA_OK;

        if (cols->count > s->capacity || !s->capacity)
                err = builder_grow(s, cols->count);
        if (err)
                return err;
        memset(&s->topic, 0, sizeof(s->topic));
        s->topic.name.data = old->name;
        s->topic.name.len  = old->name_len;
        s->topic.id        = rdmeta_cold(old)->id;
        s->topic.error     = rdmeta_topic_error(old);
        s->topic.internal =
                (rdmeta_cold(old)->flags & RDMETA_TOPIC_F_INTERNAL) != 0;
        s->topic.operations = rdmeta_topic_operations(old);
        memcpy(s->id_bytes, rdmeta_cold(old)->id, 16);
        s->count     = cols->count;
        s->state     = old->state;
        s->sparse    = cols->ids != NULL;
        s->put_back  = 1;
        s->any_error = cols->errors != NULL;
        s->any_high = s->any_last = 0;
        memset(s->epoch, 0, 4 * (size_t)s->count);
        s->n_past = cols->n_past;
        if (cols->n_past)
                memcpy(s->past, cols->past, 16 * (size_t)cols->n_past);
        return RDMETA_OK;
}

void rdmeta_builder_want_high(rdmeta_builder_t *s) {
        if (!s->any_high)
                memcpy(s->high, s->epoch, 4 * (size_t)s->count);
        s->any_high = 1;
}

void rdmeta_builder_want_last(rdmeta_builder_t *s) {
        if (!s->any_last)
                memset(s->last, 0xff, 4 * (size_t)s->count);
        s->any_last = 1;
}

rdmeta_err_t rdmeta_builder_keep_lists(rdmeta_builder_t *s,
                                       const rdmeta_cols_t *old) {
        const size_t units =
                (size_t)(old->lists_end - old->lists) >> old->list_width;
        const size_t size = 4 * units;
        size_t i;

        if (s->kept_size < size) {
                uint8_t *kept = (uint8_t *)rdmeta_alloc(s->allocator, size);
                if (!kept)
                        return RDMETA_ERR_NO_MEMORY;
                rdmeta_free(s->allocator, s->kept, s->kept_size);
                s->kept      = kept;
                s->kept_size = size;
        }
        for (i = 0; i < units; i++) {
                const uint32_t v = __builtin_bswap32((uint32_t)rdmeta_col_get(
                        old->lists, old->list_width, i));
                memcpy(s->kept + 4 * i, &v, 4);
        }
        return RDMETA_OK;
}

static rdmeta_wire_ids_t builder_kept_list(rdmeta_builder_t *s,
                                           const rdmeta_cols_t *old,
                                           rdmeta_list_t l) {
        const size_t at = (size_t)((const char *)l.p - old->lists) >>
                          old->list_width;
        rdmeta_wire_ids_t w = {NULL, l.count};

        if (l.count)
                w.be = s->kept + 4 * at;
        return w;
}

void rdmeta_builder_keep_row(rdmeta_builder_t *s, uint32_t i,
                             const rdmeta_cols_t *old,
                             const rdmeta_row_t *row) {
        s->leader[i]   = row->leader;
        s->epoch[i]    = row->epoch;
        s->error[i]    = row->error;
        s->replicas[i] = builder_kept_list(s, old, row->replicas);
        s->isr[i]      = builder_kept_list(s, old, row->isr);
        s->offline[i]  = builder_kept_list(s, old, row->offline);
        s->put_back    = 1;
        s->any_error |= row->error != 0;
        if (row->high != row->epoch || s->any_high) {
                rdmeta_builder_want_high(s);
                s->high[i] = row->high;
        }
        if (row->leader < 0 && row->last >= 0) {
                rdmeta_builder_want_last(s);
                s->last[i] = row->last;
        }
}

int32_t *rdmeta_builder_spare(rdmeta_builder_t *s, size_t n) {
        const size_t size = n * sizeof(*s->spare);
        int32_t *spare;

        if (size <= s->spare_size)
                return s->spare;
        spare = (int32_t *)rdmeta_alloc(s->allocator, size);
        if (!spare)
                return NULL;
        rdmeta_free(s->allocator, s->spare, s->spare_size);
        s->spare      = spare;
        s->spare_size = size;
        return spare;
}

/* ---- rows that were left out -------------------------------------------- */

static void builder_move_row(rdmeta_builder_t *to, uint32_t i,
                             const rdmeta_builder_t *from, uint32_t k) {
        to->id[i]       = from->id[k];
        to->leader[i]   = from->leader[k];
        to->epoch[i]    = from->epoch[k];
        to->error[i]    = from->error[k];
        to->replicas[i] = from->replicas[k];
        to->isr[i]      = from->isr[k];
        to->offline[i]  = from->offline[k];
        if (from->any_high)
                to->high[i] = from->high[k];
        if (from->any_last)
                to->last[i] = from->last[k];
}

/* Moves the rows of `from`, the last one first, and leaves an empty row for
 * each of the ids, in order. */
static void builder_spread(rdmeta_builder_t *s, const rdmeta_builder_t *from,
                           const int32_t *ids, uint32_t n) {
        uint32_t k = from->count, i = from->count + n, odd = 0;

        while (i-- > 0) {
                if (n == 0 || (k > 0 && from->id[k - 1] > ids[n - 1])) {
                        builder_move_row(s, i, from, --k);
                } else {
                        s->id[i]    = ids[--n];
                        s->epoch[i] = s->high[i] = s->last[i] = -1;
                }
                odd |= (uint32_t)s->id[i] ^ i;
        }
        s->sparse = odd != 0;
}

rdmeta_err_t rdmeta_builder_insert(rdmeta_builder_t *s,
                                   const rdmeta_cols_t *old,
                                   const int32_t *ids, uint32_t n) {
        const rdmeta_builder_t from = *s;
        uint32_t i = 0, k = 0, done = 0;
        rdmeta_row_t row;

        if (n > RDMETA_PARTITIONS_MAX - s->count)
                return RDMETA_ERR_NO_MEMORY;
        if (s->count + n > s->capacity && builder_alloc(s, s->count + n))
                return RDMETA_ERR_NO_MEMORY;
        builder_spread(s, &from, ids, n);
        s->count += n;
        if (s->memory != from.memory)
                rdmeta_free(s->allocator, from.memory, from.memory_size);
        for (; done < n; i++) {
                rdmeta_topic_row(old, i, &row);
                if (row.id != ids[done])
                        continue;
                while (s->id[k] != row.id)
                        k++;
                rdmeta_builder_keep_row(s, k, old, &row);
                done++;
        }
        return RDMETA_OK;
}

void rdmeta_builder_regather(rdmeta_builder_t *s) {
        gather_t g = {.least = UINT32_MAX};
        uint32_t i;

        for (i = 0; i < s->count; i++) {
                const uint32_t n = s->replicas[i].count;

                g.members |= lists_compare(s->replicas[i], s->isr[i], &g.isr) |
                             list_members(s->offline[i]);
                g.counts |= n | s->isr[i].count | s->offline[i].count;
                g.offline |= s->offline[i].count;
                g.least = n < g.least ? n : g.least;
                g.most  = n > g.most ? n : g.most;
        }
        s->any_isr     = g.isr != 0;
        s->any_offline = g.offline != 0;
        s->members     = rdmeta_be32(&g.members) | g.counts;
        s->least       = g.least;
        s->most        = g.most;
        s->put_back    = 0;
}
