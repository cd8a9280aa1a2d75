/*
 * validate: checks whether a block of another process can be read as our own.
 *
 * After the check, no function that reads the block reads out of its bounds or
 * loops for ever. A cache may take a copy and merge with it. The check demands
 * what the builder ensures, with two exceptions. Columns may be wider than
 * needed, and equal lists may be stored twice: such a block is only larger.
 *
 * The time of the check is in proportion to the block's bytes, whatever they
 * are. A block that claims to be large, and is all zeros, fails at its first
 * lists. A good block is read in such a time, too: rdmeta_lists_fit() limits
 * how often its rows name a long list.
 */
#include "topic/validate.h"

#include "base/alloc.h"

/* The units of lists that the check covers in one pass without memory. */
#define WINDOW ((size_t)1 << 16)

/* Returns the bytes before the lists, in 64 bits, so that no sum overflows. */
static uint64_t columns_size(const rdmeta_topic_t *t) {
        const uint16_t f    = rdmeta_cold(t)->flags;
        const uint64_t n    = t->count;
        const unsigned refs = f >> RDMETA_TOPIC_REF_SHIFT & 3;
        uint64_t size = rdmeta_topic_is_split(t) ? 0 : rdmeta_topic_hot(t);

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

/* Returns whether the flags fit together and the widths exist. */
static int flags_good(uint16_t f, uint8_t width) {
        const uint16_t lists = RDMETA_TOPIC_F_ISR | RDMETA_TOPIC_F_OFFLINE;

        if (width > RDMETA_TOPIC_SPARSE ||
            (width == RDMETA_TOPIC_SPARSE) != !!(f & RDMETA_TOPIC_F_IDS))
                return 0;
        if (f & RDMETA_TOPIC_F_FLAT && f & lists)
                return 0;
        return (f >> RDMETA_TOPIC_EPOCH_SHIFT & 3) != 3 &&
               (f >> RDMETA_TOPIC_LIST_SHIFT & 3) != 3 &&
               (f >> RDMETA_TOPIC_REF_SHIFT & 3) != 3;
}

const rdmeta_cold_t *rdmeta_topic_cold_within(const rdmeta_topic_t *t,
                                              const char *begin,
                                              const char *end) {
        const int64_t at = (const char *)t - begin;
        int64_t offset   = 0;

        if (rdmeta_topic_is_split(t)) {
                /* A damaged name length splits a block of less than a line. */
                if (end - (const char *)t < RDMETA_LINE)
                        return NULL;
                offset = rdmeta_topic_cold_offset(t);
        }
        if (offset % 8 != 0 ||
            offset < (int64_t)RDMETA_TOPIC_HEADER_SIZE - at ||
            offset > end - begin - at)
                return NULL;
        return rdmeta_cold(t);
}

/* Checks everything that rdmeta_topic_cols() needs to find the columns. */
static int frame_good(const rdmeta_topic_t *t, const char *begin,
                      const char *end) {
        const rdmeta_cold_t *cold = rdmeta_topic_cold_within(t, begin, end);
        uint64_t need, past;

        if (!cold || cold->size > (size_t)(end - (const char *)cold) ||
            cold->size > INT32_MAX || t->name_len == 0 ||
            t->name_len > RDMETA_NAME_MAX ||
            t->state == RDMETA_TOPIC_WAIT || t->state > RDMETA_TOPIC_GONE ||
            rdmeta_topic_count(t) > RDMETA_PARTITIONS_MAX ||
            !flags_good(cold->flags, t->width))
                return 0;
        need = RDMETA_TOPIC_HEADER_SIZE + columns_size(t) +
               (UINT64_C(1) << (cold->flags >> RDMETA_TOPIC_LIST_SHIFT & 3));
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

/* Returns whether no value is below `least`; NULL stands for no column. */
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
        return c->count > 0 && c->flat > 0 && c->flat <= INT32_MAX &&
               units == 1 + (uint64_t)c->count * c->flat;
}

/* Returns whether the lists follow each other up to the end, and only the first
 * one is empty. */
static int chain_good(const rdmeta_cols_t *c, size_t units) {
        size_t at = 0;

        if (rdmeta_col_get(c->lists, c->list_width, 0) != 0)
                return 0;
        for (at = 1; at < units;) {
                const int32_t n = rdmeta_col_get(c->lists, c->list_width, at);

                if (n <= 0 || (size_t)n >= units - at)
                        return 0;
                at += 1 + (size_t)n;
        }
        return 1;
}

/* One bit per unit, set where a list begins; the chain of lists is good. */
typedef struct begins {
        uint64_t *bits;
        size_t from, n; /* units that there are bits for */
        size_t at;      /* the first list that is not marked yet */
} begins_t;

static void begins_mark(begins_t *b, const rdmeta_cols_t *c) {
        memset(b->bits, 0, (b->n + 63) / 64 * 8);
        for (; b->at - b->from < b->n;
             b->at += 1 + (size_t)rdmeta_col_get(c->lists, c->list_width,
                                                 b->at))
                b->bits[(b->at - b->from) / 64] |= UINT64_C(1)
                                                   << (b->at - b->from) % 64;
}

/* Returns whether one column's references into these units all lead to begins
 * of lists. Adds the lengths of these lists to *named. */
static int refs_good(const rdmeta_cols_t *c, const char *col,
                     const begins_t *b, size_t units, uint64_t *named) {
        uint32_t i;

        for (i = 0; col && i < c->count; i++) {
                const size_t at = rdmeta_ref_get(col, c->ref_width, i);
                const size_t k  = at - b->from;

                if (at >= units)
                        return 0;
                if (k >= b->n)
                        continue;
                if (!(b->bits[k / 64] >> k % 64 & 1))
                        return 0;
                *named += (uint32_t)rdmeta_col_get(c->lists, c->list_width,
                                                   at);
        }
        return 1;
}

/* Returns whether all references lead to begins of lists; otherwise a list
 * could consist of parts of others. With memory it covers all units in one
 * pass; without, it goes through the references once per window. */
static int lists_good(const rdmeta_cols_t *c, size_t units,
                      const rdmeta_allocator_t *allocator) {
        const size_t size = (units + 63) / 64 * 8;
        uint64_t few[WINDOW / 64];
        uint64_t *all = units > WINDOW
                                ? (uint64_t *)rdmeta_alloc(allocator, size)
                                : NULL;
        const size_t window = all ? units : WINDOW;
        begins_t b          = {all ? all : few, 0, 0, 0};
        uint64_t named      = 0;
        int good            = 1;

        for (; good && b.from < units; b.from += window) {
                b.n = units - b.from < window ? units - b.from : window;
                begins_mark(&b, c);
                good = refs_good(c, c->replicas, &b, units, &named) &&
                       refs_good(c, c->isr, &b, units, &named) &&
                       refs_good(c, c->offline, &b, units, &named);
        }
        rdmeta_free(allocator, all, size);
        return good && rdmeta_lists_fit(named, c->count, units);
}

rdmeta_err_t rdmeta_topic_check(const rdmeta_allocator_t *allocator,
                                const rdmeta_topic_t *t, const char *begin,
                                const char *end) {
        rdmeta_cols_t c;
        size_t bytes, units;
        int good, flat;

        if (!frame_good(t, begin, end))
                return RDMETA_ERR_MALFORMED;
        rdmeta_topic_cols(t, &c);
        bytes = (size_t)(c.lists_end - c.lists);
        units = bytes >> c.list_width;
        flat  = (rdmeta_cold(t)->flags & RDMETA_TOPIC_F_FLAT) != 0;
        good  = units << c.list_width == bytes &&
               (flat ? flat_good(&c, units) : chain_good(&c, units)) &&
               column_good(c.leaders, c.leader_width, c.count, -1) &&
               column_good(c.epochs, c.epoch_width, c.count, -1) &&
               column_good(c.high, 2, c.count, -1) &&
               column_good(c.last, 2, c.count, -1) && ids_good(&c) &&
               column_good(c.lists, c.list_width, units, 0) &&
               (flat || lists_good(&c, units, allocator));
        return good ? RDMETA_OK : RDMETA_ERR_MALFORMED;
}
