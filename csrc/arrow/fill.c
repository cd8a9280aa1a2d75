/* See fill.h. */
#include "arrow/fill.h"

#include "arrow/text.h"

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

/* Repeats the item at p until there are n of it. */
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
