/*
 * A block that somebody else wrote: whether it may be read like one's own.
 *
 * After it was said to be good, nothing that reads blocks reads out of its
 * bounds, or loops for ever, and a cache may take a copy and merge with it.
 * What is checked is what making a block ensures; that its columns are as
 * narrow as they could be, and equal lists stored once, is not: it would only
 * be larger than it need.
 */
#include "topic.h"

/* Units of lists that are looked at in one go, a bit each. */
#define WINDOW ((size_t)1 << 16)

/* What stands between the name and the lists. */
static size_t columns_size(uint16_t f, uint32_t shape) {
        const size_t n      = shape >> 2;
        const unsigned refs = f >> RDMETA_TOPIC_REF_SHIFT & 3;
        size_t size         = n << (f & RDMETA_TOPIC_F_IDS ? 2 : shape & 3);

        size += n << (f >> RDMETA_TOPIC_EPOCH_SHIFT & 3);
        size += f & RDMETA_TOPIC_F_IDS ? 4 * n : 0;
        size += f & RDMETA_TOPIC_F_HIGH ? 4 * n : 0;
        size += f & RDMETA_TOPIC_F_LAST ? 4 * n : 0;
        size += f & RDMETA_TOPIC_F_ERRORS ? 2 * n : 0;
        size += f & RDMETA_TOPIC_F_OPS ? 4 : 0;
        size += f & RDMETA_TOPIC_F_FLAT ? 0 : n << refs;
        size += f & RDMETA_TOPIC_F_ISR ? n << refs : 0;
        size += f & RDMETA_TOPIC_F_OFFLINE ? n << refs : 0;
        return size;
}

/* Flags that go together, and widths that there are. */
static int flags_good(uint16_t f, uint32_t shape) {
        const uint16_t lists = RDMETA_TOPIC_F_ISR | RDMETA_TOPIC_F_OFFLINE;

        if (((shape & 3) == RDMETA_TOPIC_SPARSE) != !!(f & RDMETA_TOPIC_F_IDS))
                return 0;
        if (f & RDMETA_TOPIC_F_FLAT && f & lists)
                return 0;
        return (f >> RDMETA_TOPIC_EPOCH_SHIFT & 3) != 3 &&
               (f >> RDMETA_TOPIC_LIST_SHIFT & 3) != 3 &&
               (f >> RDMETA_TOPIC_REF_SHIFT & 3) != 3;
}

/* All that is needed to tell where the columns are. */
static int frame_good(const rdmeta_topic_t *t, size_t available) {
        const rdmeta_cold_t *cold = rdmeta_cold(t);
        size_t need, past;

        if (available < RDMETA_TOPIC_FIXED || cold->size > available ||
            cold->size > INT32_MAX || t->name_len == 0 ||
            t->name_len > RDMETA_NAME_MAX ||
            t->state == RDMETA_TOPIC_WAIT || t->state > RDMETA_TOPIC_GONE ||
            rdmeta_topic_count(t) > RDMETA_PARTITIONS_MAX ||
            !flags_good(cold->flags, t->shape))
                return 0;
        need = RDMETA_TOPIC_FIXED + t->name_len +
               columns_size(cold->flags, t->shape) +
               ((size_t)1 << (cold->flags >> RDMETA_TOPIC_LIST_SHIFT & 3));
        if (cold->flags & RDMETA_TOPIC_F_PAST) {
                if (need >= cold->size)
                        return 0;
                past = ((const uint8_t *)cold)[cold->size - 1];
                if (past == 0 || past > RDMETA_PAST_MAX)
                        return 0;
                need += 1 + 16 * past;
        }
        return need <= cold->size;
}

/* No value is below `least`. NULL: no such column. */
static int column_good(const char *col, unsigned width, size_t n,
                       int32_t least) {
        int bad = 0;
        size_t i;

        for (i = 0; col && i < n; i++)
                bad |= rdmeta_col_get(col, width, i) < least;
        return !bad;
}

static int ids_good(const rdmeta_cols_t *c) {
        uint32_t i;

        if (!c->ids)
                return 1;
        for (i = 1; i < c->count; i++)
                if (rdmeta_col_get(c->ids, 2, i) <=
                    rdmeta_col_get(c->ids, 2, i - 1))
                        return 0;
        return column_good(c->ids, 2, c->count, 0);
}

static int flat_good(const rdmeta_cols_t *c, size_t units) {
        return c->flat > 0 && c->flat <= INT32_MAX &&
               units == 1 + (size_t)c->count * c->flat;
}

/* References of one column into the window: each is a list's begin. */
static int refs_good(const rdmeta_cols_t *c, const char *col,
                     const uint64_t *begins, size_t from, size_t units) {
        uint32_t i;

        for (i = 0; col && i < c->count; i++) {
                const size_t at = rdmeta_ref_get(col, c->ref_width, i);

                if (at >= units)
                        return 0;
                if (at - from < WINDOW &&
                    !(begins[(at - from) / 64] >> (at - from) % 64 & 1))
                        return 0;
        }
        return 1;
}

/* Lists follow each other up to the end, the first is empty, and references
 * lead to their begins: else one could be made of pieces of others. */
static int lists_good(const rdmeta_cols_t *c, size_t units) {
        uint64_t begins[WINDOW / 64];
        size_t at = 0, from;

        if (rdmeta_col_get(c->lists, c->list_width, 0) != 0)
                return 0;
        for (from = 0; from < units; from += WINDOW) {
                const size_t n = units - from < WINDOW ? units - from : WINDOW;

                memset(begins, 0, (n + 63) / 64 * 8);
                while (at < from + n) {
                        const int32_t count =
                                rdmeta_col_get(c->lists, c->list_width, at);

                        if (count < 0 || (size_t)count >= units - at)
                                return 0;
                        begins[(at - from) / 64] |= UINT64_C(1)
                                                    << (at - from) % 64;
                        at += 1 + (size_t)count;
                }
                if (!refs_good(c, c->replicas, begins, from, units) ||
                    !refs_good(c, c->isr, begins, from, units) ||
                    !refs_good(c, c->offline, begins, from, units))
                        return 0;
        }
        return 1;
}

rdmeta_err_t rdmeta_topic_check(const rdmeta_topic_t *t, size_t available) {
        rdmeta_cols_t c;
        size_t bytes, units;
        int good;

        if (!frame_good(t, available))
                return RDMETA_ERR_MALFORMED;
        rdmeta_topic_cols(t, &c);
        bytes = (size_t)(c.lists_end - c.lists);
        units = bytes >> c.list_width;
        good  = units << c.list_width == bytes &&
               column_good(c.leaders, c.leader_width, c.count, -1) &&
               column_good(c.epochs, c.epoch_width, c.count, -1) &&
               column_good(c.high, 2, c.count, -1) &&
               column_good(c.last, 2, c.count, -1) && ids_good(&c) &&
               column_good(c.lists, c.list_width, units, 0);
        if (good)
                good = rdmeta_cold(t)->flags & RDMETA_TOPIC_F_FLAT
                               ? flat_good(&c, units)
                               : lists_good(&c, units);
        return good ? RDMETA_OK : RDMETA_ERR_MALFORMED;
}
