#include "stage.h"

#include "alloc.h"

#include <stdlib.h>

void rdmeta_stage_init(rdmeta_stage_t *s, const rdmeta_allocator_t *allocator,
                       const uint64_t *key) {
        memset(s, 0, sizeof(*s));
        s->allocator = allocator;
        s->key       = key;
}

void rdmeta_stage_destroy(rdmeta_stage_t *s) {
        rdmeta_free(s->allocator, s->memory, s->memory_size);
        rdmeta_free(s->allocator, s->kept, s->kept_size);
        rdmeta_stage_init(s, s->allocator, s->key);
}

/* Rows and lists for n partitions: three lists a row and the empty one, as
 * many again for rows that a merge puts back, and room to renumber them. */
static rdmeta_err_t stage_grow(rdmeta_stage_t *s, uint32_t n) {
        size_t rows = 64, lists, slots = 64, size;
        char *p;

        while (rows < n)
                rows *= 2;
        lists = 9 * rows + 2;
        while (slots < 12 * rows + 2)
                slots *= 2;
        size = slots * 8 + lists * (sizeof(rdmeta_wire_ids_t) + 4) + rows * 36;
        p    = (char *)rdmeta_alloc(s->allocator, size);
        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        rdmeta_free(s->allocator, s->memory, s->memory_size);
        s->memory      = p;
        s->memory_size = size;
        s->capacity    = (uint32_t)rows;
        s->slots       = (uint64_t *)(void *)p;
        s->slot_mask   = (uint32_t)slots - 1;
        s->generation  = 0;
        memset(s->slots, 0, slots * 8);
        s->lists = (rdmeta_wire_ids_t *)(void *)(p += slots * 8);
        p += lists * sizeof(rdmeta_wire_ids_t);
        s->at       = (uint32_t *)(void *)p;
        s->id       = (int32_t *)(void *)(p += lists * 4);
        s->leader   = (int32_t *)(void *)(p += rows * 4);
        s->epoch    = (int32_t *)(void *)(p += rows * 4);
        s->high     = (int32_t *)(void *)(p += rows * 4);
        s->last     = (int32_t *)(void *)(p += rows * 4);
        s->error    = (int32_t *)(void *)(p += rows * 4);
        s->replicas = (uint32_t *)(void *)(p += rows * 4);
        s->isr      = (uint32_t *)(void *)(p += rows * 4);
        s->offline  = (uint32_t *)(void *)(p + rows * 4);
        return RDMETA_OK;
}

RDMETA_INLINE int wire_ids_equal(rdmeta_wire_ids_t a, rdmeta_wire_ids_t b) {
        size_t n         = 4 * (size_t)a.count;
        const uint8_t *x = a.be, *y = b.be;

        if (a.count != b.count)
                return 0;
        for (; n >= 8; n -= 8, x += 8, y += 8)
                if (rdmeta_load64(x) != rdmeta_load64(y))
                        return 0;
        return n == 0 || rdmeta_load32(x) == rdmeta_load32(y);
}

/* The number of a list; a new one gets the next. */
RDMETA_INLINE uint32_t stage_list(rdmeta_stage_t *s, rdmeta_wire_ids_t l) {
        const uint64_t *key = s->key;
        uint64_t h          = key[0] + l.count;
        size_t n            = 4 * (size_t)l.count;
        const uint8_t *p    = l.be;
        uint32_t bits       = 0, k;

        if (l.count == 0)
                return 0;
        for (; n >= 8; n -= 8, p += 8) {
                const uint64_t two = rdmeta_load64(p);
                h = rdmeta_mix(two ^ key[1], h ^ key[2]);
                bits |= (uint32_t)two | (uint32_t)(two >> 32);
        }
        if (n) {
                h = rdmeta_mix(rdmeta_load32(p) ^ key[1], h ^ key[3]);
                bits |= rdmeta_load32(p);
        }
        for (k = (uint32_t)h & s->slot_mask;; k = (k + 1) & s->slot_mask) {
                const uint64_t slot = s->slots[k];
                if ((uint32_t)(slot >> 32) != s->generation)
                        break;
                if (wire_ids_equal(s->lists[(uint32_t)slot], l))
                        return (uint32_t)slot;
        }
        s->slots[k] = (uint64_t)s->generation << 32 | s->n_lists;
        s->list_bits |= bits;
        s->list_counts |= l.count;
        s->list_counts_and &= l.count;
        s->lists[s->n_lists] = l;
        s->units += 1 + l.count;
        return s->n_lists++;
}

static void stage_lists_reset(rdmeta_stage_t *s) {
        if (++s->generation == 0) {
                memset(s->slots, 0, ((size_t)s->slot_mask + 1) * 8);
                s->generation = 1;
        }
        s->lists[0].be    = NULL;
        s->lists[0].count = 0;
        s->n_lists        = 1;
        s->units          = 1;
        s->list_bits = s->list_counts = 0;
        s->list_counts_and            = UINT32_MAX;
}

/* The top bit is set for what is less than -1. */
RDMETA_INLINE uint32_t below_none(int32_t v) {
        return (uint32_t)v & ((uint32_t)v + 1);
}

/* The hot loop: inlined once with the newest versions' constant fields. */
RDMETA_INLINE uint32_t stage_rows(rdmeta_stage_t *s, rdmeta_buf_t *b,
                                  uint32_t fields, uint32_t n) {
        uint32_t i, out_of_place = 0, errors = 0, isr = 0, offline = 0;
        uint32_t negative = 0, last = 0;
        rdmeta_wire_partition_t p;

        for (i = 0; i < n; i++) {
                uint32_t r, q, o;
                rdmeta_wire_partition(b, fields, &p);
                if (RDMETA_UNLIKELY(b->bad != NULL))
                        return 1;
                s->id[i]     = p.id;
                s->leader[i] = p.leader;
                s->epoch[i]  = p.leader_epoch;
                s->error[i]  = p.error;
                errors |= (uint32_t)p.error;
                out_of_place |= (uint32_t)p.id ^ i;
                negative |= (uint32_t)p.id | below_none(p.leader) |
                            below_none(p.leader_epoch);
                r = wire_ids_equal(p.replicas, s->lists[last])
                            ? last
                            : stage_list(s, p.replicas);
                last = r;
                q    = wire_ids_equal(p.isr, p.replicas)
                               ? r
                               : stage_list(s, p.isr);
                o    = stage_list(s, p.offline_replicas);
                s->replicas[i] = r;
                s->isr[i]      = q;
                s->offline[i]  = o;
                isr |= r ^ q;
                offline |= o;
        }
        s->sparse      = out_of_place != 0;
        s->any_error   = errors != 0;
        s->any_isr     = isr != 0;
        s->any_offline = offline != 0;
        return negative >> 31;
}

static int order_compare(const void *a, const void *b) {
        const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return x < y ? -1 : x > y;
}

/* Put every column into the order of `order`'s low halves. */
static void stage_permute(rdmeta_stage_t *s, const uint64_t *order,
                          uint32_t *spare) {
        uint32_t *columns[7];
        int c;
        uint32_t i;

        columns[0] = (uint32_t *)s->id;
        columns[1] = (uint32_t *)s->leader;
        columns[2] = (uint32_t *)s->epoch;
        columns[3] = (uint32_t *)s->error;
        columns[4] = s->replicas;
        columns[5] = s->isr;
        columns[6] = s->offline;
        for (c = 0; c < 7; c++) {
                memcpy(spare, columns[c], 4 * (size_t)s->count);
                for (i = 0; i < s->count; i++)
                        columns[c][i] = spare[(uint32_t)order[i]];
        }
}

/* Rows out of their place: sort them by id, and refuse duplicates. */
static rdmeta_err_t stage_sort(rdmeta_stage_t *s) {
        const size_t size  = 12 * (size_t)s->count;
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
        if (!err && moved) {
                stage_permute(s, order, (uint32_t *)(void *)(order + s->count));
                s->unordered = 1;
        }
        s->sparse = gaps != 0;
        rdmeta_free(s->allocator, order, size);
        return err;
}

#define FIELDS_V12                                                            \
        (RDMETA_WIRE_FLEXIBLE | RDMETA_WIRE_EPOCH | RDMETA_WIRE_OFFLINE)

rdmeta_err_t rdmeta_stage_read(rdmeta_stage_t *s, rdmeta_buf_t *b,
                               uint32_t fields,
                               const rdmeta_wire_topic_t *topic) {
        const uint32_t n = topic->partitions;
        rdmeta_err_t err;
        uint32_t bad;

        if (n > RDMETA_PARTITIONS_MAX)
                return RDMETA_ERR_MALFORMED;
        if (RDMETA_UNLIKELY(n > s->capacity || !s->capacity)) {
                err = stage_grow(s, n);
                if (err)
                        return err;
        }
        stage_lists_reset(s);
        s->topic = *topic;
        memcpy(s->id_bytes, topic->id, 16);
        s->count    = n;
        s->any_high = s->any_last = s->unordered = s->n_past = 0;
        s->state                                   = RDMETA_TOPIC_VALID;
        if (RDMETA_LIKELY((fields & FIELDS_V12) == FIELDS_V12))
                bad = stage_rows(s, b, FIELDS_V12, n);
        else
                bad = stage_rows(s, b, fields, n);
        rdmeta_wire_topic_end(b, fields, &s->topic);
        if (RDMETA_UNLIKELY(bad || b->bad ||
                            rdmeta_be32(&s->list_bits) >> 31))
                return RDMETA_ERR_MALFORMED;
        if (RDMETA_UNLIKELY(s->sparse))
                return stage_sort(s);
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_stage_begin(rdmeta_stage_t *s, const rdmeta_topic_t *old,
                                const rdmeta_cols_t *cols) {
        rdmeta_err_t err = RDMETA_OK;

        if (cols->count > s->capacity || !s->capacity)
                err = stage_grow(s, cols->count);
        if (err)
                return err;
        stage_lists_reset(s);
        memset(&s->topic, 0, sizeof(s->topic));
        s->topic.name.data  = old->name;
        s->topic.name.len   = old->name_len;
        s->topic.id         = rdmeta_cold(old)->id;
        s->topic.error      = rdmeta_cold(old)->error;
        s->topic.internal   = (rdmeta_cold(old)->flags & RDMETA_TOPIC_F_INTERNAL) != 0;
        s->topic.operations = rdmeta_topic_operations(old);
        memcpy(s->id_bytes, rdmeta_cold(old)->id, 16);
        s->count     = cols->count;
        s->state     = old->state;
        s->sparse    = cols->ids != NULL;
        s->unordered = 1;
        s->any_error = cols->errors != NULL;
        s->any_high = s->any_last = 0;
        memset(s->epoch, 0, 4 * (size_t)s->count);
        s->n_past = cols->n_past;
        if (cols->n_past)
                memcpy(s->past, cols->past, 16 * (size_t)cols->n_past);
        return RDMETA_OK;
}

void rdmeta_stage_want_high(rdmeta_stage_t *s) {
        if (!s->any_high)
                memcpy(s->high, s->epoch, 4 * (size_t)s->count);
        s->any_high = 1;
}

void rdmeta_stage_want_last(rdmeta_stage_t *s) {
        if (!s->any_last)
                memset(s->last, 0xff, 4 * (size_t)s->count);
        s->any_last = 1;
}

rdmeta_err_t rdmeta_stage_keep_lists(rdmeta_stage_t *s,
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

static uint32_t stage_kept_list(rdmeta_stage_t *s, const rdmeta_cols_t *old,
                                rdmeta_list_t l) {
        rdmeta_wire_ids_t w;

        w.count = l.count;
        w.be    = NULL;
        if (l.count)
                w.be = s->kept + 4 * ((size_t)((const char *)l.p -
                                               old->lists) >>
                                      old->list_width);
        return stage_list(s, w);
}

void rdmeta_stage_keep_row(rdmeta_stage_t *s, uint32_t i,
                           const rdmeta_cols_t *old,
                           const rdmeta_row_t *row) {
        s->leader[i]   = row->leader;
        s->epoch[i]    = row->epoch;
        s->error[i]    = row->error;
        s->any_error |= row->error != 0;
        s->replicas[i] = stage_kept_list(s, old, row->replicas);
        s->isr[i]      = stage_kept_list(s, old, row->isr);
        s->offline[i]  = stage_kept_list(s, old, row->offline);
        if (row->high != row->epoch || s->any_high) {
                rdmeta_stage_want_high(s);
                s->high[i] = row->high;
        }
        if (row->leader < 0 && row->last >= 0) {
                rdmeta_stage_want_last(s);
                s->last[i] = row->last;
        }
        s->unordered = 1;
}
