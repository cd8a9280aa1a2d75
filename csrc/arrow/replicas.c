/* The table of replicas: one row per broker in a partition's list. */
#include "arrow/replicas.h"

int rdmeta_replicas_size(const rdmeta_shown_t *t, rdmeta_arrow_cursor_t *c,
                         rdmeta_sizes_t *s) {
        rdmeta_row_t row;

        for (; c->partition < t->cols.count; c->partition++) {
                int64_t more, n;

                rdmeta_topic_row(&t->cols, c->partition, &row);
                more = (int64_t)row.replicas.count - c->replica;
                n    = rdmeta_sizes_fit_rows(s, t, more);
                rdmeta_sizes_add(s, t, n);
                if (n < more) {
                        c->replica += (uint32_t)n;
                        return 0;
                }
                c->replica = 0;
        }
        return 1;
}

/* A list to search. A long list has a sorted copy: otherwise a broker's answer
 * with very long lists could make a reader search for hours. */
typedef struct members {
        rdmeta_list_t list;
        int32_t *sorted;
} members_t;

enum { FEW = 32 };

static int compare_ids(const void *a, const void *b) {
        const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

        return x < y ? -1 : x > y;
}

static rdmeta_err_t members_init(members_t *m, rdmeta_list_t l) {
        m->list   = l;
        m->sorted = NULL;
        if (l.count <= FEW)
                return RDMETA_OK;
        m->sorted = (int32_t *)malloc(l.count * sizeof(*m->sorted));
        if (!m->sorted)
                return RDMETA_ERR_NO_MEMORY;
        rdmeta_col_widen((const char *)l.p, l.width, 0, l.count, m->sorted);
        qsort(m->sorted, l.count, sizeof(*m->sorted), compare_ids);
        return RDMETA_OK;
}

static int members_have(const members_t *m, int32_t id) {
        uint32_t i;

        if (m->sorted)
                return bsearch(&id, m->sorted, m->list.count,
                               sizeof(*m->sorted), compare_ids) != NULL;
        for (i = 0; i < m->list.count; i++)
                if (rdmeta_list_get(m->list, i) == id)
                        return 1;
        return 0;
}

/* Fills the rows of replicas `first` up to `end` of one partition. Returns
 * NO_MEMORY. */
static rdmeta_err_t fill_replicas(rdmeta_fill_t *f, const rdmeta_row_t *row,
                                  uint32_t first, uint32_t end) {
        const int32_t leader =
                f->r->reader->stale_ok ? row->last : row->leader;
        rdmeta_arrow_column_t *c = f->columns;
        members_t isr, offline = {{NULL, 0, 0}, NULL};
        rdmeta_err_t err;

        err = members_init(&isr, row->isr);
        if (!err)
                err = members_init(&offline, row->offline);
        for (; first < end && !err; first++, f->row++) {
                const int32_t id = rdmeta_list_get(row->replicas, first);

                rdmeta_put_int32(&c[R_PARTITION], f->row, row->id);
                rdmeta_put_int32(&c[R_BROKER], f->row, id);
                rdmeta_put_int32(&c[R_POSITION], f->row, (int32_t)first);
                rdmeta_put_bool(&c[R_LEADER], f->row, id == leader);
                rdmeta_put_bool(&c[R_IN_SYNC], f->row,
                                members_have(&isr, id));
                rdmeta_put_bool(&c[R_OFFLINE], f->row,
                                members_have(&offline, id));
                rdmeta_put_bool(&c[R_PREFERRED], f->row, first == 0);
        }
        free(isr.sorted);
        free(offline.sorted);
        return err;
}

rdmeta_err_t rdmeta_replicas_fill(rdmeta_fill_t *f, const rdmeta_shown_t *t,
                                  rdmeta_arrow_cursor_t from,
                                  rdmeta_arrow_cursor_t to) {
        const int64_t begin = f->row;
        rdmeta_err_t err    = RDMETA_OK;
        rdmeta_row_t row;
        int64_t n;

        while (!err && (from.partition < to.partition ||
                        (from.partition == to.partition &&
                         from.replica < to.replica))) {
                rdmeta_topic_row(&t->cols, from.partition, &row);
                err = fill_replicas(f, &row, from.replica,
                                    from.partition == to.partition
                                            ? to.replica
                                            : row.replicas.count);
                from.partition++;
                from.replica = 0;
        }
        n      = f->row - begin;
        f->row = begin;
        if (!err)
                rdmeta_put_topic(f, t, n);
        f->row += n;
        return err;
}
