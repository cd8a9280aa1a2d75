#include "arrow_rows.h"

/* ---- how many fit -------------------------------------------------------- */

int64_t rdmeta_sizes_fit(const rdmeta_sizes_t *s, int column, int64_t each,
                         int64_t most, int64_t n) {
        const int64_t fit = each ? (most - s->items[column]) / each : n;

        if (fit >= n)
                return n;
        return fit > 0 ? fit : s->rows == 0;
}

int64_t rdmeta_sizes_fit_rows(const rdmeta_sizes_t *s,
                              const rdmeta_shown_t *t, int64_t n) {
        if (n > RDMETA_ARROW_ROWS - s->rows)
                n = RDMETA_ARROW_ROWS - s->rows;
        return rdmeta_sizes_fit(s, TOPIC, (int64_t)t->name, RDMETA_ARROW_TEXT,
                                n);
}

void rdmeta_sizes_add(rdmeta_sizes_t *s, const rdmeta_shown_t *t, int64_t n) {
        s->rows += n;
        s->items[TOPIC] += n * (int64_t)t->name;
        s->items[TOPIC_ID] += t->has_id ? n * RDMETA_ARROW_ID : 0;
}

/* ---- columns ------------------------------------------------------------- */

void rdmeta_put_offsets(rdmeta_arrow_column_t *c, int64_t row, int64_t n,
                        size_t each) {
        int32_t *out       = rdmeta_arrow_offsets(c) + row;
        const int32_t step = (int32_t)each, first = out[0];
        int64_t i;

        for (i = 1; i <= n; i++)
                out[i] = first + (int32_t)i * step;
}

/* `n` times what stands at p once. */
static void repeat(char *p, size_t size, size_t n) {
        size_t have = 1;

        while (have < n) {
                const size_t more = have < n - have ? have : n - have;
                memcpy(p + have * size, p, more * size);
                have += more;
        }
}

void rdmeta_put_text(rdmeta_arrow_column_t *c, int64_t row, int64_t n,
                     rdmeta_str_t s, size_t size) {
        char *p = (char *)c->values.data + rdmeta_arrow_offsets(c)[row];

        if (!s.data) {
                size = 0;
                rdmeta_arrow_null(c, row, n);
        } else if (n > 0) {
                rdmeta_text_copy(p, size, s.data, s.len);
                repeat(p, size, (size_t)n);
        }
        rdmeta_put_offsets(c, row, n, size);
}

void rdmeta_put_topic(rdmeta_fill_t *f, const rdmeta_shown_t *t, int64_t n) {
        const rdmeta_str_t name = {t->topic->name, t->topic->name_len};
        rdmeta_str_t id         = {NULL, 0};
        char text[RDMETA_ARROW_ID];

        rdmeta_put_text(&f->columns[TOPIC], f->row, n, name, t->name);
        if (t->has_id) {
                rdmeta_text_id(text, rdmeta_cold(t->topic)->id);
                id.data = text;
                id.len  = sizeof(text);
        }
        rdmeta_put_text(&f->columns[TOPIC_ID], f->row, n, id, id.len);
}

void rdmeta_col_widen(const char *col, unsigned width, size_t i, size_t n,
                      int32_t *out) {
        size_t k;

        if (width == 0)
                for (k = 0; k < n; k++)
                        out[k] = (int8_t)col[i + k];
        else if (width == 1)
                for (k = 0; k < n; k++)
                        out[k] = rdmeta_col_get(col, 1, i + k);
        else
                memcpy(out, col + 4 * i, 4 * n);
}

void rdmeta_put_ids(rdmeta_arrow_column_t *c, int64_t row, rdmeta_list_t l) {
        int32_t *offsets = rdmeta_arrow_offsets(c) + row;

        if (l.count)
                rdmeta_col_widen((const char *)l.p, l.width, 0, l.count,
                                 rdmeta_arrow_int32(c) + offsets[0]);
        offsets[1] = offsets[0] + (int32_t)l.count;
}

/* ---- batches ------------------------------------------------------------- */

static const struct {
        int (*size)(const rdmeta_shown_t *t, rdmeta_arrow_cursor_t *c,
                    rdmeta_sizes_t *s);
        rdmeta_err_t (*fill)(rdmeta_fill_t *f, const rdmeta_shown_t *t,
                             rdmeta_arrow_cursor_t from,
                             rdmeta_arrow_cursor_t to);
} tables[] = {
        [RDMETA_ARROW_TOPICS]     = {rdmeta_topics_size, rdmeta_topics_fill},
        [RDMETA_ARROW_PARTITIONS] = {rdmeta_partitions_size,
                                     rdmeta_partitions_fill},
        [RDMETA_ARROW_REPLICAS] = {rdmeta_replicas_size,
                                   rdmeta_replicas_fill}};

static void shown_read(const rdmeta_arrow_rows_t *r, size_t i,
                       rdmeta_shown_t *out) {
        const rdmeta_topic_t *t = r->topics[i];

        if (i + 8 < r->n) /* topics lie anywhere */
                __builtin_prefetch(r->topics[i + 8]);
        if (i + 4 < r->n)
                __builtin_prefetch(rdmeta_cold(r->topics[i + 4]));
        out->topic = t;
        rdmeta_topic_cols(t, &out->cols);
        out->name   = rdmeta_text_size(t->name, t->name_len);
        out->has_id = rdmeta_topic_has_id(t);
        if (r->table == RDMETA_ARROW_TOPICS)
                rdmeta_topic_info(r->reader, t, r->mono_us, &out->info);
}

static void rows_size(const rdmeta_arrow_rows_t *r, rdmeta_arrow_cursor_t *c,
                      rdmeta_sizes_t *s) {
        rdmeta_shown_t t;

        if (r->table == RDMETA_ARROW_BROKERS) {
                rdmeta_brokers_size(r, c, s);
                return;
        }
        while (c->item < r->n) {
                shown_read(r, c->item, &t);
                if (!tables[r->table].size(&t, c, s))
                        break;
                c->item++;
                c->partition = 0;
        }
}

static rdmeta_err_t rows_fill(rdmeta_fill_t *f, rdmeta_arrow_cursor_t end) {
        rdmeta_arrow_cursor_t c = f->r->at, to = end;
        rdmeta_err_t err        = RDMETA_OK;
        rdmeta_shown_t t;

        if (f->r->table == RDMETA_ARROW_BROKERS) {
                rdmeta_brokers_fill(f, c.item, end.item);
                return RDMETA_OK;
        }
        for (; c.item <= end.item && !err; c.item++) {
                const int last = c.item == end.item;
                if (last && !end.partition && !end.replica)
                        break;
                shown_read(f->r, c.item, &t);
                to.partition = last ? end.partition : t.cols.count;
                to.replica   = last ? end.replica : 0;
                err          = tables[f->r->table].fill(f, &t, c, to);
                c.partition = c.replica = 0;
        }
        return err;
}

rdmeta_err_t rdmeta_arrow_rows_next(rdmeta_arrow_rows_t *r,
                                    struct ArrowArray *out) {
        rdmeta_arrow_cursor_t end = r->at;
        rdmeta_arrow_batch_t b;
        rdmeta_fill_t f = {r, b.columns, 0};
        rdmeta_sizes_t sizes;
        rdmeta_err_t err;

        memset(&sizes, 0, sizeof(sizes));
        out->release = NULL;
        rows_size(r, &end, &sizes);
        if (!sizes.rows)
                return RDMETA_OK;
        rdmeta_arrow_batch_init(&b, r->table);
        err = rdmeta_arrow_batch_room(&b, sizes.rows, sizes.items);
        if (!err)
                err = rows_fill(&f, end);
        if (!err)
                err = rdmeta_arrow_batch_export(&b, out);
        if (err)
                rdmeta_arrow_batch_reset(&b);
        else
                r->at = end;
        return err;
}
