/*
 * health: how many partitions are in which state, and how many each broker has.
 *
 * One walk visits the blocks. It counts brokers in a table of their ids, open
 * addressing, at most half full. A state may name any number of brokers beside
 * the known ones, so the table grows.
 */
#include "read/follow.h"

#include <stdlib.h>

typedef rdmeta_broker_health_t slot_t; /* broker -1: the slot is free */

typedef struct count {
        rdmeta_reader_t *r;
        rdmeta_health_t sum;
        slot_t *slots;
        size_t mask, used; /* slots - 1, and those with a broker */
        uint64_t factor;   /* odd, and not predictable */
} count_t;

/* ---- memory of the cache or the image ------------------------------------ */

static void *reader_alloc(rdmeta_reader_t *r, size_t size) {
        if (r->image)
                return r->image->ops->alloc(r->image, size);
        return rdmeta_notify_alloc(&r->cache->notify, size);
}

static void reader_free(rdmeta_reader_t *r, void *p, size_t size) {
        if (r->image)
                r->image->ops->free(r->image, p, size);
        else
                rdmeta_notify_free(&r->cache->notify, p, size);
}

/* ---- the table of brokers ------------------------------------------------ */

/* Returns the slot of a broker, or the free slot that it will take. */
static slot_t *slot_of(const count_t *c, int32_t id) {
        const uint64_t h = ((uint64_t)(uint32_t)id + 1) * c->factor;
        size_t k         = (size_t)(h >> 16) & c->mask;

        while (c->slots[k].broker >= 0 && c->slots[k].broker != id)
                k = (k + 1) & c->mask;
        return &c->slots[k];
}

/* Makes a table of `n` slots, a power of 2, and moves all brokers there.
 * NO_MEMORY. */
static rdmeta_err_t table_make(count_t *c, size_t n) {
        const count_t old = *c;
        size_t i;

        c->slots = (slot_t *)reader_alloc(c->r, n * sizeof(slot_t));
        if (!c->slots) {
                c->slots = old.slots;
                return RDMETA_ERR_NO_MEMORY;
        }
        memset(c->slots, 0, n * sizeof(slot_t));
        for (i = 0; i < n; i++)
                c->slots[i].broker = -1;
        c->mask = n - 1;
        if (!old.slots)
                return RDMETA_OK;
        for (i = 0; i <= old.mask; i++)
                if (old.slots[i].broker >= 0)
                        *slot_of(c, old.slots[i].broker) = old.slots[i];
        reader_free(c->r, old.slots, (old.mask + 1) * sizeof(slot_t));
        return RDMETA_OK;
}

/* Returns the slot of a broker, which is new to the table. NULL: no memory. */
static slot_t *broker_add(count_t *c, int32_t id) {
        slot_t *slot;

        if (2 * (c->used + 1) > c->mask + 1 &&
            table_make(c, 2 * (c->mask + 1)))
                return NULL;
        slot         = slot_of(c, id);
        slot->broker = id;
        c->used++;
        return slot;
}

/* Returns the slot of a broker, id >= 0. NULL: no memory. */
RDMETA_INLINE slot_t *broker_at(count_t *c, int32_t id) {
        slot_t *slot = slot_of(c, id);

        return RDMETA_LIKELY(slot->broker >= 0) ? slot : broker_add(c, id);
}

static int by_id(const void *a, const void *b) {
        const int32_t x = ((const slot_t *)a)->broker;
        const int32_t y = ((const slot_t *)b)->broker;

        return (x > y) - (x < y);
}

/* Makes a table that has the known brokers. NO_MEMORY. */
static rdmeta_err_t table_begin(count_t *c) {
        const rdmeta_brokers_t *known = rdmeta_brokers(c->r);
        size_t n                      = 16;
        uint32_t i;

        c->factor = known->factor;
        while (n < 4 * (size_t)known->count)
                n *= 2;
        if (table_make(c, n))
                return c->r->image
                               ? RDMETA_ERR_NO_MEMORY
                               : rdmeta_notify_missing(&c->r->cache->notify);
        for (i = 0; i < known->count; i++)
                broker_at(c, known->rows[i].id);
        return RDMETA_OK;
}

/* Copies the table to the caller's memory, by id, and frees it. */
static void table_end(count_t *c, rdmeta_health_t *out) {
        size_t i, n = 0;

        for (i = 0; i <= c->mask; i++)
                if (c->slots[i].broker >= 0)
                        c->slots[n++] = c->slots[i];
        qsort(c->slots, n, sizeof(slot_t), by_id);
        c->sum.brokers      = out->brokers;
        c->sum.capacity     = out->capacity;
        c->sum.broker_count = (uint32_t)n;
        *out                = c->sum;
        for (i = 0; i < n && i < out->capacity; i++)
                out->brokers[i] = c->slots[i];
}

/* ---- partitions ---------------------------------------------------------- */

/* Counts a leader, or a partition without one. NO_MEMORY. */
RDMETA_INLINE rdmeta_err_t leader_count(count_t *c, int32_t leader,
                                        int32_t preferred) {
        slot_t *slot;

        if (RDMETA_UNLIKELY(leader < 0)) {
                c->sum.leaderless++;
                return RDMETA_OK;
        }
        c->sum.non_preferred += leader != preferred;
        slot = broker_at(c, leader);
        if (!slot)
                return RDMETA_ERR_NO_MEMORY;
        slot->leaders++;
        return RDMETA_OK;
}

/* Counts replicas. NO_MEMORY. */
RDMETA_INLINE rdmeta_err_t replicas_count(count_t *c, rdmeta_list_t ids) {
        slot_t *slot;
        uint32_t i;

        c->sum.replicas += ids.count;
        for (i = 0; i < ids.count; i++) {
                const int32_t id = rdmeta_col_get(ids.p, ids.width, i);
                if (RDMETA_UNLIKELY(id < 0))
                        continue; /* only a file made by hand has that */
                slot = broker_at(c, id);
                if (RDMETA_UNLIKELY(!slot))
                        return RDMETA_ERR_NO_MEMORY;
                slot->replicas++;
        }
        return RDMETA_OK;
}

/* Counts a topic whose partitions all have the same number of replicas, all in
 * sync: the ids are one run. NO_MEMORY. */
static rdmeta_err_t flat_count(count_t *c, const rdmeta_cols_t *cols) {
        const rdmeta_list_t ids = {
                (const uint8_t *)cols->lists + ((size_t)1 << cols->list_width),
                cols->count * cols->flat, cols->list_width};
        rdmeta_err_t err = RDMETA_OK;
        uint32_t i;

        for (i = 0; i < cols->count && !err; i++) {
                const int32_t leader =
                        rdmeta_col_get(cols->leaders, cols->leader_width, i);
                err = leader_count(c, leader,
                                   cols->flat ? rdmeta_col_get(
                                                        ids.p, ids.width,
                                                        (size_t)i * cols->flat)
                                              : leader);
        }
        return err ? err : replicas_count(c, ids);
}

/* Counts a topic row by row. NO_MEMORY. */
static rdmeta_err_t rows_count(count_t *c, const rdmeta_cols_t *cols) {
        rdmeta_err_t err = RDMETA_OK;
        rdmeta_row_t row;
        uint32_t i;

        for (i = 0; i < cols->count && !err; i++) {
                rdmeta_topic_row(cols, i, &row);
                c->sum.under_replicated += row.isr.count < row.replicas.count;
                c->sum.offline += row.offline.count > 0;
                err = leader_count(c, row.leader,
                                   row.replicas.count
                                           ? rdmeta_list_get(row.replicas, 0)
                                           : row.leader);
                if (!err)
                        err = replicas_count(c, row.replicas);
        }
        return err;
}

static int32_t topic_count(void *opaque, const rdmeta_topic_t *t) {
        count_t *c = (count_t *)opaque;
        rdmeta_cols_t cols;

        rdmeta_topic_cols(t, &cols);
        c->sum.topics++;
        c->sum.partitions += cols.count;
        return cols.replicas ? rows_count(c, &cols) : flat_count(c, &cols);
}

rdmeta_err_t rdmeta_reader_health(rdmeta_reader_t *r, int32_t which,
                                  int64_t mono_us, rdmeta_health_t *out) {
        const int32_t facts = RDMETA_WALK_VALID | RDMETA_WALK_STALE;
        rdmeta_err_t err;
        count_t c;

        memset(&c, 0, sizeof(c));
        c.r = r;
        rdmeta_attach_time(r, mono_us);
        rdmeta_reader_enter(r); /* from now on the reader's image stays */
        err = table_begin(&c);
        if (!err)
                err = rdmeta_reader_walk(r, "", 0, which & facts, mono_us,
                                         topic_count, &c);
        if (!err)
                table_end(&c, out);
        if (c.slots)
                reader_free(r, c.slots, (c.mask + 1) * sizeof(slot_t));
        rdmeta_reader_leave(r);
        return err;
}
