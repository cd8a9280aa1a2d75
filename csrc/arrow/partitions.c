/* The table of partitions: fills the rows of a topic column by column. */
#include "arrow/partitions.h"

static int lists_full(const rdmeta_sizes_t *s) {
        return s->items[P_REPLICAS] >= RDMETA_ARROW_ITEMS ||
               s->items[P_ISR] >= RDMETA_ARROW_ITEMS ||
               s->items[P_OFFLINE] >= RDMETA_ARROW_ITEMS;
}

/* Returns how many of n partitions have lists that fit, from `first` on, and
 * adds the sizes of those lists. */
static int64_t lists_size(const rdmeta_cols_t *cols, uint32_t first,
                          int64_t n, rdmeta_sizes_t *s) {
        rdmeta_row_t row;
        int64_t i;

        if (!cols->replicas) {
                n = rdmeta_sizes_fit(s, P_REPLICAS, cols->flat,
                                     RDMETA_ARROW_ITEMS, n);
                s->items[P_REPLICAS] += n * cols->flat;
                s->items[P_ISR] += n * cols->flat;
                return n;
        }
        for (i = 0; i < n && !(s->rows + i && lists_full(s)); i++) {
                rdmeta_topic_row(cols, first + (uint32_t)i, &row);
                s->items[P_REPLICAS] += row.replicas.count;
                s->items[P_ISR] += row.isr.count;
                s->items[P_OFFLINE] += row.offline.count;
        }
        return i;
}

int rdmeta_partitions_size(const rdmeta_shown_t *t, rdmeta_arrow_cursor_t *c,
                           rdmeta_sizes_t *s) {
        const uint32_t more = t->cols.count - c->partition;
        int64_t n           = rdmeta_sizes_fit_rows(s, t, more);

        n = lists_size(&t->cols, c->partition, n, s);
        rdmeta_sizes_add(s, t, n);
        c->partition += (uint32_t)n;
        return n == more;
}

static void fill_leaders(rdmeta_fill_t *f, const rdmeta_cols_t *cols,
                         uint32_t first, uint32_t n) {
        const rdmeta_brokers_t *brokers = rdmeta_brokers(f->r->reader);
        const int last                  = f->r->reader->stale_ok && cols->last;
        rdmeta_arrow_column_t *c        = &f->columns[P_LEADER];
        int32_t *out                    = rdmeta_arrow_int32(c) + f->row;
        uint32_t i;

        rdmeta_col_widen(cols->leaders, cols->leader_width, first, n, out);
        for (i = 0; i < n; i++) {
                if (RDMETA_LIKELY(out[i] >= 0)) {
                        rdmeta_put_bool(&f->columns[P_UNREACHABLE],
                                        f->row + i,
                                        !rdmeta_brokers_has(brokers, out[i]));
                        continue;
                }
                rdmeta_put_bool(&f->columns[P_LEADERLESS], f->row + i, 1);
                if (last)
                        out[i] = rdmeta_col_get(cols->last, 2, first + i);
                if (out[i] < 0)
                        rdmeta_arrow_null(c, f->row + i, 1);
        }
}

static void fill_numbers(rdmeta_fill_t *f, const rdmeta_cols_t *cols,
                         uint32_t first, uint32_t n) {
        int32_t *ids = rdmeta_arrow_int32(&f->columns[P_PARTITION]) + f->row;
        rdmeta_arrow_column_t *c = &f->columns[P_EPOCH];
        int32_t *epochs          = rdmeta_arrow_int32(c) + f->row;
        uint8_t *errors = f->columns[P_ERROR].values.data + 2 * f->row;
        uint32_t i;

        if (cols->ids)
                rdmeta_col_widen(cols->ids, 2, first, n, ids);
        else
                for (i = 0; i < n; i++)
                        ids[i] = (int32_t)(first + i);
        rdmeta_col_widen(cols->epochs, cols->epoch_width, first, n, epochs);
        for (i = 0; i < n; i++)
                if (RDMETA_UNLIKELY(epochs[i] < 0))
                        rdmeta_arrow_null(c, f->row + i, 1);
        if (cols->errors)
                memcpy(errors, cols->errors + 2 * (size_t)first,
                       2 * (size_t)n);
        else
                memset(errors, 0, 2 * (size_t)n);
}

/* Fills the lists of a topic whose partitions all have the same number of
 * replicas, all in sync: the ids are one run. */
static void fill_flat(rdmeta_fill_t *f, const rdmeta_cols_t *cols,
                      uint32_t first, uint32_t n) {
        const size_t each = cols->flat, ids = n * each;
        rdmeta_arrow_column_t *replicas = &f->columns[P_REPLICAS];
        rdmeta_arrow_column_t *isr      = &f->columns[P_ISR];
        int32_t *out = rdmeta_arrow_int32(replicas) +
                       rdmeta_arrow_offsets(replicas)[f->row];

        rdmeta_col_widen(cols->lists, cols->list_width, 1 + first * each, ids,
                         out);
        memcpy(rdmeta_arrow_int32(isr) + rdmeta_arrow_offsets(isr)[f->row],
               out, ids * sizeof(*out));
        rdmeta_put_offsets(replicas, f->row, n, each);
        rdmeta_put_offsets(isr, f->row, n, each);
        rdmeta_put_offsets(&f->columns[P_OFFLINE], f->row, n, 0);
}

static void fill_lists(rdmeta_fill_t *f, const rdmeta_cols_t *cols,
                       uint32_t first, uint32_t n) {
        rdmeta_arrow_column_t *c = f->columns;
        rdmeta_row_t row;
        uint32_t i;

        for (i = 0; i < n; i++) {
                rdmeta_topic_row(cols, first + i, &row);
                rdmeta_put_ids(&c[P_REPLICAS], f->row + i, row.replicas);
                rdmeta_put_ids(&c[P_ISR], f->row + i, row.isr);
                rdmeta_put_ids(&c[P_OFFLINE], f->row + i, row.offline);
        }
}

/* Returns whether a topic is stale. Skips the search for its deadline if the
 * walk has no stale topics. */
static int is_stale(const rdmeta_fill_t *f, const rdmeta_shown_t *t) {
        rdmeta_topic_info_t info;

        if (!(f->r->which & RDMETA_WALK_STALE))
                return 0;
        rdmeta_topic_info(f->r->reader, t->topic, f->r->mono_us, &info);
        return info.state == RDMETA_STALE;
}

rdmeta_err_t rdmeta_partitions_fill(rdmeta_fill_t *f, const rdmeta_shown_t *t,
                                    rdmeta_arrow_cursor_t from,
                                    rdmeta_arrow_cursor_t to) {
        const uint32_t first = from.partition, n = to.partition - first;

        rdmeta_put_topic(f, t, n);
        fill_leaders(f, &t->cols, first, n);
        fill_numbers(f, &t->cols, first, n);
        if (t->cols.replicas)
                fill_lists(f, &t->cols, first, n);
        else
                fill_flat(f, &t->cols, first, n);
        if (is_stale(f, t))
                ArrowBitsSetTo(f->columns[P_STALE].values.data, f->row, n, 1);
        f->row += n;
        return RDMETA_OK;
}
