#include "topic/topic.h"

int rdmeta_list_equal(rdmeta_list_t a, rdmeta_list_t b) {
        uint32_t i;

        if (a.count != b.count)
                return 0;
        for (i = 0; i < a.count; i++)
                if (rdmeta_list_get(a, i) != rdmeta_list_get(b, i))
                        return 0;
        return 1;
}

void rdmeta_list_copy(rdmeta_list_t l, rdmeta_ids_out_t *out) {
        uint32_t i;

        out->count = l.count;
        for (i = 0; i < l.count && i < out->capacity; i++)
                out->ids[i] = rdmeta_list_get(l, i);
}

/* Returns the begin of a column if it is present, and moves *p past it. */
static const char *col_take(const char **p, int present, size_t bytes) {
        const char *col = *p;

        if (!present)
                return NULL;
        *p += bytes;
        return col;
}

void rdmeta_topic_cols(const rdmeta_topic_t *t, rdmeta_cols_t *out) {
        const rdmeta_cold_t *cold = rdmeta_cold(t);
        const char *p    = rdmeta_topic_columns(t);
        const char *end  = (const char *)cold + cold->size;
        const size_t n   = rdmeta_topic_count(t);
        const uint16_t f = cold->flags;

        out->count        = (uint32_t)n;
        out->leader_width = f & RDMETA_TOPIC_F_IDS ? 2 : t->width;
        out->epoch_width  = f >> RDMETA_TOPIC_EPOCH_SHIFT & 3;
        out->list_width   = f >> RDMETA_TOPIC_LIST_SHIFT & 3;
        out->ref_width    = f >> RDMETA_TOPIC_REF_SHIFT & 3;
        out->leaders      = t->name + t->name_len;
        out->epochs       = col_take(&p, 1, n << out->epoch_width);
        out->ids    = col_take(&p, f & RDMETA_TOPIC_F_IDS, 4 * n);
        out->high   = col_take(&p, f & RDMETA_TOPIC_F_HIGH, 4 * n);
        out->last   = col_take(&p, f & RDMETA_TOPIC_F_LAST, 4 * n);
        out->errors = col_take(&p, f & RDMETA_TOPIC_F_ERRORS, 2 * n);
        out->ops    = col_take(&p, f & RDMETA_TOPIC_F_OPS, 4);
        out->replicas = col_take(&p, !(f & RDMETA_TOPIC_F_FLAT),
                                 n << out->ref_width);
        out->isr      = col_take(&p, f & RDMETA_TOPIC_F_ISR,
                                 n << out->ref_width);
        out->offline  = col_take(&p, f & RDMETA_TOPIC_F_OFFLINE,
                                 n << out->ref_width);
        out->lists    = p;
        out->flat     = 0;
        if (f & RDMETA_TOPIC_F_FLAT)
                out->flat = (uint32_t)rdmeta_col_get(p, out->list_width, 0);
        out->n_past   = 0;
        out->past     = NULL;
        if (f & RDMETA_TOPIC_F_PAST) {
                out->n_past = (uint8_t)end[-1];
                end -= 1 + 16 * (size_t)out->n_past;
                out->past = end;
        }
        out->lists_end = end;
}

static rdmeta_list_t cols_flat(const rdmeta_cols_t *c, uint32_t i) {
        rdmeta_list_t l;

        l.count = c->flat;
        l.width = c->list_width;
        l.p     = (const uint8_t *)c->lists +
              ((1 + (size_t)i * c->flat) << c->list_width);
        return l;
}

static rdmeta_list_t cols_list(const rdmeta_cols_t *c, const char *col,
                               uint32_t i) {
        const uint32_t at = rdmeta_ref_get(col, c->ref_width, i);
        const char *p     = c->lists + ((size_t)at << c->list_width);
        rdmeta_list_t l;

        l.count = (uint32_t)rdmeta_col_get(p, c->list_width, 0);
        l.width = c->list_width;
        l.p     = (const uint8_t *)p + ((size_t)1 << c->list_width);
        return l;
}

void rdmeta_topic_row(const rdmeta_cols_t *c, uint32_t i,
                      rdmeta_row_t *out) {
        static const rdmeta_list_t none = {NULL, 0, 0};
        int16_t error                   = 0;

        out->id     = c->ids ? rdmeta_col_get(c->ids, 2, i) : (int32_t)i;
        out->leader = rdmeta_col_get(c->leaders, c->leader_width, i);
        out->epoch  = rdmeta_col_get(c->epochs, c->epoch_width, i);
        out->high   = c->high ? rdmeta_col_get(c->high, 2, i) : out->epoch;
        out->last   = out->leader;
        if (out->leader < 0 && c->last)
                out->last = rdmeta_col_get(c->last, 2, i);
        if (c->errors)
                memcpy(&error, c->errors + 2 * (size_t)i, 2);
        out->error    = error;
        out->replicas = c->replicas ? cols_list(c, c->replicas, i)
                                    : cols_flat(c, i);
        out->isr      = c->isr ? cols_list(c, c->isr, i) : out->replicas;
        out->offline  = c->offline ? cols_list(c, c->offline, i) : none;
}

int32_t rdmeta_topic_operations(const rdmeta_topic_t *t) {
        rdmeta_cols_t c;

        if (!(rdmeta_cold(t)->flags & RDMETA_TOPIC_F_OPS))
                return RDMETA_NO_OPERATIONS;
        rdmeta_topic_cols(t, &c);
        return rdmeta_col_get(c.ops, 2, 0);
}

int64_t rdmeta_topic_place(const rdmeta_topic_t *t, int32_t partition) {
        uint32_t lo = 0, hi = rdmeta_topic_count(t);
        rdmeta_cols_t c;

        if (RDMETA_LIKELY(!(rdmeta_cold(t)->flags & RDMETA_TOPIC_F_IDS)))
                return partition >= 0 && (uint32_t)partition < hi ? partition
                                                                  : -1;
        rdmeta_topic_cols(t, &c);
        while (lo < hi) {
                const uint32_t mid = lo + (hi - lo) / 2;
                const int32_t id   = rdmeta_col_get(c.ids, 2, mid);
                if (id == partition)
                        return mid;
                if (id < partition)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return -1;
}

int rdmeta_topic_row_of(const rdmeta_topic_t *t, int32_t partition,
                        rdmeta_row_t *out) {
        const int64_t place = rdmeta_topic_place(t, partition);
        rdmeta_cols_t cols;

        if (place < 0)
                return 0;
        rdmeta_topic_cols(t, &cols);
        rdmeta_topic_row(&cols, (uint32_t)place, out);
        return 1;
}

/* ---- making ----------------------------------------------------------- */

/* Returns a line with its cold part and columns; NULL: no memory. */
static rdmeta_topic_t *split_alloc(rdmeta_memory_t *blocks, size_t size) {
        rdmeta_slab_t *hot = &blocks->slabs[RDMETA_MEMORY_HOT];
        rdmeta_topic_t *t =
                (rdmeta_topic_t *)rdmeta_slab_alloc(hot, RDMETA_LINE);
        char *columns;

        if (!t)
                return NULL;
        columns = (char *)rdmeta_slab_alloc(
                &blocks->slabs[RDMETA_MEMORY_COLD], size);
        if (!columns) {
                rdmeta_slab_free(hot, t, RDMETA_LINE);
                return NULL;
        }
        rdmeta_topic_cold_offset_set(
                t, (int64_t)((uintptr_t)columns - (uintptr_t)t));
        return t;
}

rdmeta_topic_t *rdmeta_topic_alloc(rdmeta_memory_t *blocks,
                                   const rdmeta_extent_t *extent,
                                   int16_t error) {
        const size_t hot = rdmeta_hot_bytes(extent->name_len, extent->count,
                                            extent->width);
        const int split   = hot <= RDMETA_SPLIT;
        const size_t size = RDMETA_TOPIC_HEADER_SIZE + (split ? 0 : hot) +
                            extent->rest;
        const rdmeta_provenance_t provenance = {-1, 0, error};
        rdmeta_topic_t *t;
        rdmeta_cold_t *cold;

        if (split)
                t = split_alloc(blocks, size);
        else
                t = (rdmeta_topic_t *)rdmeta_slab_alloc(
                        &blocks->slabs[RDMETA_MEMORY_WHOLE], size);
        if (!t)
                return NULL;
        t->count    = extent->count;
        t->name_len = (uint16_t)extent->name_len;
        t->width    = extent->width;
        atomic_init(&t->deadline, 0);
        cold             = rdmeta_cold(t);
        cold->link       = 0;
        cold->size       = (uint32_t)size;
        cold->provenance = rdmeta_provenance_word(provenance);
        return t;
}

/* Copies the immutable parts of a block, with another error. */
static rdmeta_topic_t *facts_copy(rdmeta_memory_t *blocks,
                                  const rdmeta_topic_t *from, int16_t error) {
        const rdmeta_cold_t *y       = rdmeta_cold(from);
        const rdmeta_extent_t extent = {.name_len = from->name_len,
                                        .rest     = rdmeta_topic_rest(from),
                                        .count    = from->count,
                                        .width    = from->width};
        rdmeta_topic_t *t = rdmeta_topic_alloc(blocks, &extent, error);
        rdmeta_cold_t *x;

        if (!t)
                return NULL;
        x          = rdmeta_cold(t);
        x->version = y->version;
        x->flags   = y->flags;
        memcpy(x->id, y->id, sizeof(x->id));
        t->state = from->state;
        memcpy(t->name, from->name,
               rdmeta_topic_hot(from) - RDMETA_TOPIC_FIXED);
        memcpy(rdmeta_topic_columns(t), rdmeta_topic_columns(from),
               extent.rest);
        return t;
}

rdmeta_topic_t *rdmeta_topic_copy(rdmeta_memory_t *blocks,
                                  const rdmeta_topic_t *from) {
        rdmeta_topic_t *t = facts_copy(blocks, from, 0);

        if (!t)
                return NULL;
        rdmeta_cold(t)->link       = rdmeta_cold(from)->link;
        rdmeta_cold(t)->provenance = rdmeta_cold(from)->provenance;
        atomic_init(&t->deadline,
                    atomic_load_explicit(&from->deadline,
                                         memory_order_relaxed));
        return t;
}

rdmeta_topic_t *rdmeta_topic_bare(rdmeta_memory_t *blocks, rdmeta_str_t name,
                                  const uint8_t id[16], uint16_t state,
                                  int16_t error, uint64_t version) {
        const rdmeta_extent_t extent = {.name_len = name.len, .rest = 1};
        rdmeta_topic_t *t = rdmeta_topic_alloc(blocks, &extent, error);
        rdmeta_cold_t *cold;

        if (!t)
                return NULL;
        cold          = rdmeta_cold(t);
        cold->flags   = 0;
        cold->version = version;
        memcpy(cold->id, id, 16);
        t->state = (uint8_t)state;
        memcpy(t->name, name.data, name.len);
        *rdmeta_topic_columns(t) = 0; /* the list of no brokers */
        return t;
}

rdmeta_topic_t *rdmeta_topic_restate(rdmeta_memory_t *blocks,
                                     const rdmeta_topic_t *old,
                                     uint16_t state, int16_t error,
                                     uint64_t version) {
        rdmeta_topic_t *t = facts_copy(blocks, old, error);

        if (!t)
                return NULL;
        rdmeta_cold(t)->version = version;
        t->state                = (uint8_t)state;
        return t;
}

void rdmeta_topic_destroy(rdmeta_memory_t *blocks, rdmeta_topic_t *t) {
        size_t size;

        if (!t)
                return;
        size = rdmeta_cold(t)->size;
        if (rdmeta_topic_is_split(t)) {
                rdmeta_slab_free(&blocks->slabs[RDMETA_MEMORY_COLD],
                                 rdmeta_topic_columns(t), size);
                rdmeta_slab_free(&blocks->slabs[RDMETA_MEMORY_HOT], t,
                                 RDMETA_LINE);
        } else {
                rdmeta_slab_free(&blocks->slabs[RDMETA_MEMORY_WHOLE], t, size);
        }
}

rdmeta_pieces_t rdmeta_topic_pieces(const rdmeta_memory_t *blocks,
                                    const rdmeta_topic_t *t) {
        const int split   = rdmeta_topic_is_split(t);
        const int which   = split ? RDMETA_MEMORY_COLD : RDMETA_MEMORY_WHOLE;
        rdmeta_pieces_t of = {{0}};

        of.bytes[which] = rdmeta_slab_bytes(&blocks->slabs[which],
                                            rdmeta_cold(t)->size);
        of.bytes[RDMETA_MEMORY_HOT] = split ? RDMETA_LINE : 0;
        return of;
}

size_t rdmeta_topic_bytes(const rdmeta_memory_t *blocks,
                          const rdmeta_topic_t *t) {
        const rdmeta_pieces_t of = rdmeta_topic_pieces(blocks, t);

        return of.bytes[RDMETA_MEMORY_WHOLE] + of.bytes[RDMETA_MEMORY_HOT] +
               of.bytes[RDMETA_MEMORY_COLD];
}

int rdmeta_topic_leaves(const rdmeta_memory_t *blocks,
                        const rdmeta_topic_t *t) {
        const rdmeta_slab_t *slabs = blocks->slabs;

        if (!rdmeta_topic_is_split(t))
                return rdmeta_slab_leaves(&slabs[RDMETA_MEMORY_WHOLE], t);
        return rdmeta_slab_leaves(&slabs[RDMETA_MEMORY_HOT], t) ||
               rdmeta_slab_leaves(&slabs[RDMETA_MEMORY_COLD],
                                  rdmeta_topic_columns(t));
}

int rdmeta_topic_same(const rdmeta_topic_t *a, const rdmeta_topic_t *b) {
        const rdmeta_cold_t *x = rdmeta_cold(a), *y = rdmeta_cold(b);

        return x->size == y->size && x->flags == y->flags &&
               rdmeta_topic_error(a) == rdmeta_topic_error(b) &&
               a->count == b->count &&
               rdmeta_topic_head(a) == rdmeta_topic_head(b) &&
               !memcmp(x->id, y->id, sizeof(x->id)) &&
               !memcmp(a->name, b->name,
                       rdmeta_topic_hot(a) - RDMETA_TOPIC_FIXED) &&
               !memcmp(rdmeta_topic_columns(a), rdmeta_topic_columns(b),
                       rdmeta_topic_rest(a));
}
