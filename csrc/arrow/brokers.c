/* See brokers.h. */
#include "arrow/brokers.h"

#include "arrow/text.h"

static size_t text_size(rdmeta_str_t s) {
        return s.data ? rdmeta_text_size(s.data, s.len) : 0;
}

void rdmeta_brokers_size(const rdmeta_arrow_rows_t *r,
                         rdmeta_arrow_cursor_t *c, rdmeta_sizes_t *s) {
        const rdmeta_brokers_t *brokers = rdmeta_brokers(r->reader);
        const int64_t id = (int64_t)text_size(brokers->cluster_id);

        for (; c->item < r->n && s->rows < RDMETA_ARROW_ROWS; c->item++) {
                const rdmeta_broker_t *b = &brokers->rows[c->item];
                if (s->items[B_HOST] >= RDMETA_ARROW_TEXT ||
                    s->items[B_RACK] >= RDMETA_ARROW_TEXT ||
                    s->items[B_CLUSTER] >= RDMETA_ARROW_TEXT)
                        break;
                s->items[B_HOST] += (int64_t)text_size(b->host);
                s->items[B_RACK] += (int64_t)text_size(b->rack);
                s->items[B_CLUSTER] += id;
                s->rows++;
        }
}

static void put_text(rdmeta_fill_t *f, int column, rdmeta_str_t s) {
        rdmeta_put_text(&f->columns[column], f->row, 1, s, text_size(s));
}

void rdmeta_brokers_fill(rdmeta_fill_t *f, size_t from, size_t to) {
        const rdmeta_brokers_t *brokers = rdmeta_brokers(f->r->reader);
        const int32_t controller        = rdmeta_brokers_controller(brokers);
        rdmeta_arrow_column_t *c        = f->columns;

        for (; from < to; from++, f->row++) {
                const rdmeta_broker_t *b = &brokers->rows[from];
                rdmeta_put_int32(&c[B_BROKER], f->row, b->id);
                put_text(f, B_HOST, b->host);
                rdmeta_put_int32(&c[B_PORT], f->row, b->port);
                put_text(f, B_RACK, b->rack);
                rdmeta_put_bool(&c[B_CONTROLLER], f->row,
                                b->id == controller);
                put_text(f, B_CLUSTER, brokers->cluster_id);
        }
}
