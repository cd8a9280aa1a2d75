/* See topics.h. */
#include "arrow/topics.h"

#include "arrow/text.h"

static const char *state_name(int32_t state) {
        switch (state) {
        case RDMETA_OK:
                return "valid";
        case RDMETA_STALE:
                return "stale";
        case RDMETA_WAITING:
                return "waiting";
        case RDMETA_UNKNOWN_TOPIC:
                return "unknown_topic";
        case RDMETA_DENIED:
                return "denied";
        case RDMETA_INVALID:
                return "invalid";
        default:
                return "not_cached";
        }
}

enum { STATE_MAX = 13 };

static size_t text_size(rdmeta_str_t s) {
        return s.data ? rdmeta_text_size(s.data, s.len) : 0;
}

/* Adds the size of a topic's row. The deadline, and with it the state, may
 * change between the two passes, so this adds the size of the longest state.
 * Reasons are short: those of all rows of a batch always fit. */
int rdmeta_topics_size(const rdmeta_shown_t *t, rdmeta_arrow_cursor_t *c,
                       rdmeta_sizes_t *s) {
        (void)c;
        if (!rdmeta_sizes_fit_rows(s, t, 1))
                return 0;
        rdmeta_sizes_add(s, t, 1);
        s->items[T_STATE] += STATE_MAX;
        s->items[T_REASON] += (int64_t)text_size(t->info.reason);
        return 1;
}

/* Puts the topic's age in seconds, as MetadataCache.age() returns it.
 * Puts null for a topic that is neither valid nor stale. */
static void put_age(rdmeta_fill_t *f, const rdmeta_topic_info_t *info) {
        rdmeta_arrow_column_t *c = &f->columns[T_AGE];
        double *out = (double *)(void *)c->values.data + f->row;
        int64_t since, age;

        *out = 0;
        if (info->state && info->state != RDMETA_STALE) {
                rdmeta_arrow_null(c, f->row, 1);
                return;
        }
        /* A file may contain any time: take the nearest number. */
        if (__builtin_sub_overflow(info->deadline_us, f->r->max_age_us,
                                   &since))
                since = INT64_MIN;
        if (__builtin_sub_overflow(f->r->mono_us, since, &age))
                age = since < 0 ? INT64_MAX : 0;
        if (age > 0)
                *out = (double)age / 1e6;
}

rdmeta_err_t rdmeta_topics_fill(rdmeta_fill_t *f, const rdmeta_shown_t *t,
                                rdmeta_arrow_cursor_t from,
                                rdmeta_arrow_cursor_t to) {
        rdmeta_arrow_column_t *c        = f->columns;
        const rdmeta_topic_info_t *info = &t->info;
        const int64_t row               = f->row;
        rdmeta_str_t state;

        (void)from;
        (void)to;
        rdmeta_put_topic(f, t, 1);
        rdmeta_put_bool(&c[T_INTERNAL], row, info->internal);
        rdmeta_put_int32(&c[T_PARTITIONS], row, (int32_t)info->partitions);
        ((int16_t *)(void *)c[T_ERROR].values.data)[row] =
                (int16_t)info->error;
        rdmeta_put_int32(&c[T_OPERATIONS], row, info->operations);
        if (info->operations == RDMETA_NO_OPERATIONS)
                rdmeta_arrow_null(&c[T_OPERATIONS], row, 1);
        ((int64_t *)(void *)c[T_VERSION].values.data)[row] =
                (int64_t)info->version;
        state.data = state_name(info->state);
        state.len  = strlen(state.data);
        rdmeta_put_text(&c[T_STATE], row, 1, state, state.len);
        rdmeta_put_some(&c[T_SOURCE], row, info->source_broker);
        rdmeta_put_text(&c[T_REASON], row, 1, info->reason,
                        text_size(info->reason));
        put_age(f, info);
        f->row++;
        return RDMETA_OK;
}
