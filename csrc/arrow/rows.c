/* See rows.h. */
#include "arrow/rows.h"

#include "arrow/brokers.h"
#include "arrow/partitions.h"
#include "arrow/replicas.h"
#include "arrow/text.h"
#include "arrow/topics.h"

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

        if (i + 8 < r->n) /* topics lie anywhere in memory */
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
