#include "merge.h"

static int id_known(const uint8_t id[16]) {
        return (rdmeta_load64(id) | rdmeta_load64(id + 8)) != 0;
}

static int id_same(const uint8_t a[16], const uint8_t b[16]) {
        return !memcmp(a, b, 16);
}

/* One more answer that says something older: 1 when it is to be believed. */
static int doubt_add(const rdmeta_merge_in_t *in, rdmeta_doubt_t *d) {
        const int32_t need = in->candidates < RDMETA_DOUBT_BROKERS
                                     ? in->candidates
                                     : RDMETA_DOUBT_BROKERS;
        int64_t lasts;

        *d = in->doubt;
        if (d->answers == 0) {
                d->since_us     = in->mono_us;
                d->first_broker = in->broker;
                d->others       = 0;
        }
        d->answers++;
        d->others |= d->first_broker != in->broker;
        if (__builtin_sub_overflow(in->mono_us, d->since_us, &lasts))
                lasts = INT64_MAX;
        if (d->answers < RDMETA_DOUBT_ANSWERS || lasts < RDMETA_DOUBT_US ||
            (need > 1 && !d->others))
                return 0;
        memset(d, 0, sizeof(*d));
        return 1;
}

static rdmeta_err_t keep_back(rdmeta_merge_out_t *out) {
        out->verdict   = RDMETA_VERDICT_KEEP;
        out->exact     = 0;
        out->kept_back = 1;
        out->advice |= RDMETA_ADVICE_ASK_AGAIN | RDMETA_ADVICE_ASK_OTHER;
        return RDMETA_OK;
}

/* ---- errors of the topic ---------------------------------------------- */

static void to_state(rdmeta_merge_out_t *out, uint16_t state, int32_t error) {
        out->verdict = RDMETA_VERDICT_STATE;
        out->state   = state;
        out->error   = (int16_t)error;
}

/* Learned or changed after the request left: this answer cannot know. */
static int is_news(const rdmeta_topic_t *old, const rdmeta_merge_in_t *in) {
        return old && old->state == RDMETA_TOPIC_VALID &&
               in->sent_version && rdmeta_cold(old)->version > in->sent_version;
}

static void merge_error(const rdmeta_topic_t *old, int32_t error,
                        const rdmeta_merge_in_t *in,
                        rdmeta_merge_out_t *out) {
        out->verdict = RDMETA_VERDICT_KEEP;
        switch (error) {
        case RDMETA_E_UNKNOWN_TOPIC_ID:
                out->advice |= RDMETA_ADVICE_ASK_BY_NAME;
                /* fall through */
        case RDMETA_E_UNKNOWN_TOPIC_OR_PARTITION:
                if (!is_news(old, in))
                        to_state(out, RDMETA_TOPIC_UNKNOWN, error);
                out->advice |= RDMETA_ADVICE_ASK_AGAIN;
                return;
        case RDMETA_E_INCONSISTENT_TOPIC_ID:
                out->advice |= RDMETA_ADVICE_ASK_BY_NAME |
                               RDMETA_ADVICE_ASK_AGAIN;
                return;
        case RDMETA_E_TOPIC_AUTHORIZATION_FAILED:
                if (!is_news(old, in))
                        to_state(out, RDMETA_TOPIC_DENIED, error);
                return;
        case RDMETA_E_INVALID_TOPIC:
                to_state(out, RDMETA_TOPIC_BAD, error);
                return;
        default:
                out->advice |= RDMETA_ADVICE_ASK_AGAIN;
                return;
        }
}

/* ---- topic ids --------------------------------------------------------- */

static int is_superseded(const rdmeta_cols_t *old, const uint8_t id[16]) {
        int i;

        for (i = 0; i < old->n_past; i++)
                if (id_same((const uint8_t *)old->past + 16 * i, id))
                        return 1;
        return 0;
}

/* The ids that this topic had: the last one first, without the new one. */
static void stage_past(rdmeta_stage_t *s, const rdmeta_topic_t *old,
                       const rdmeta_cols_t *cols, int recreated) {
        int i;

        s->n_past = 0;
        if (recreated)
                memcpy(s->past + 16 * s->n_past++, rdmeta_cold(old)->id, 16);
        for (i = 0; i < cols->n_past && s->n_past < RDMETA_PAST_MAX; i++) {
                const uint8_t *id = (const uint8_t *)cols->past + 16 * i;
                if (!id_same(id, s->id_bytes))
                        memcpy(s->past + 16 * s->n_past++, id, 16);
        }
}

/* ---- epochs ------------------------------------------------------------ */

static int is_usable(const rdmeta_merge_in_t *in, int32_t epoch) {
        return in->fields & RDMETA_WIRE_EPOCH_USABLE && epoch >= 0;
}

/* Walk both in the order of ids: how many partitions are lower, and whether
 * one of the old ones is missing. */
static void compare_rows(const rdmeta_cols_t *old, const rdmeta_stage_t *s,
                         const rdmeta_merge_in_t *in, uint32_t *lower,
                         int *missing) {
        uint32_t i, k = 0;
        rdmeta_row_t row;

        *lower   = 0;
        *missing = 0;
        for (i = 0; i < old->count; i++) {
                rdmeta_topic_row(old, i, &row);
                while (k < s->count && s->id[k] < row.id)
                        k++;
                if (k == s->count || s->id[k] != row.id) {
                        *missing = 1;
                        continue;
                }
                if (is_usable(in, s->epoch[k]) && s->epoch[k] < row.high)
                        ++*lower;
        }
}

/* One partition that both have, and whose answer is not older. */
static void merge_row(rdmeta_stage_t *s, uint32_t i, const rdmeta_row_t *row,
                      const rdmeta_merge_in_t *in, rdmeta_merge_out_t *out) {
        if (!is_usable(in, s->epoch[i])) {
                s->epoch[i] = -1;
                if (row->high >= 0) {
                        rdmeta_stage_want_high(s);
                        s->high[i] = row->high;
                        out->exact = 0;
                }
        }
        if (s->leader[i] < 0 && row->last >= 0) {
                rdmeta_stage_want_last(s);
                s->last[i] = row->last;
        }
}

static rdmeta_err_t merge_rows(const rdmeta_cols_t *old, rdmeta_stage_t *s,
                               const rdmeta_merge_in_t *in, int believe,
                               uint32_t lower, rdmeta_merge_out_t *out) {
        uint32_t i, k = 0;
        rdmeta_row_t row;

        if (lower && !believe &&
            rdmeta_stage_keep_lists(s, old) != RDMETA_OK)
                return RDMETA_ERR_NO_MEMORY;
        for (i = 0; i < old->count; i++) {
                rdmeta_topic_row(old, i, &row);
                while (k < s->count && s->id[k] < row.id)
                        k++;
                if (k == s->count || s->id[k] != row.id)
                        continue;
                if (!believe && is_usable(in, s->epoch[k]) &&
                    s->epoch[k] < row.high)
                        rdmeta_stage_keep_row(s, k, old, &row);
                else
                        merge_row(s, k, &row, in, out);
        }
        return RDMETA_OK;
}

/* ---- the whole topic --------------------------------------------------- */

static void hide_epochs(rdmeta_stage_t *s, const rdmeta_merge_in_t *in) {
        uint32_t i;

        if (!(in->fields & RDMETA_WIRE_EPOCH_USABLE))
                for (i = 0; i < s->count; i++)
                        s->epoch[i] = -1;
}

static void count_leaderless(int32_t error, rdmeta_merge_out_t *out) {
        out->leaderless++;
        out->listener_not_found += error == RDMETA_E_LISTENER_NOT_FOUND;
}

/* What asks for another look: no leader, or one that is not among the
 * brokers (a fenced one: KRaft does not check when it answers). */
static void count_leaders(const rdmeta_stage_t *s,
                          const rdmeta_merge_in_t *in,
                          rdmeta_merge_out_t *out) {
        uint32_t i;

        for (i = 0; i < s->count; i++) {
                const int32_t leader = s->leader[i];

                if (RDMETA_UNLIKELY(leader < 0))
                        count_leaderless(s->error[i], out);
                else if (RDMETA_UNLIKELY(in->brokers &&
                                         !rdmeta_brokers_has(in->brokers,
                                                             leader)))
                        out->unreachable++;
        }
        if (out->leaderless || out->unreachable) {
                out->exact = 0; /* so that it is counted every time */
                out->advice |= RDMETA_ADVICE_ASK_AGAIN;
        }
}

/* The same topic, or one whose id was not known on one side. */
static rdmeta_err_t merge_known(const rdmeta_topic_t *old,
                                const rdmeta_cols_t *cols, rdmeta_stage_t *s,
                                const rdmeta_merge_in_t *in,
                                rdmeta_merge_out_t *out) {
        const int ids_known =
                id_known(rdmeta_cold(old)->id) && id_known(s->topic.id);
        int missing, believe = 0;
        uint32_t lower;
        rdmeta_err_t err;

        compare_rows(cols, s, in, &lower, &missing);
        if (missing && ids_known)
                return keep_back(out); /* partitions are never un-created */
        if (lower || missing) {
                believe = doubt_add(in, &out->doubt);
                if (!believe && (missing || lower == s->count))
                        return keep_back(out);
        }
        if (id_known(rdmeta_cold(old)->id) && !id_known(s->topic.id)) {
                memcpy(s->id_bytes, rdmeta_cold(old)->id, 16);
                out->exact = 0;
        }
        stage_past(s, old, cols, 0);
        err = merge_rows(cols, s, in, believe, lower, out);
        if (!err && lower && !believe) {
                keep_back(out);
                out->verdict = RDMETA_VERDICT_TAKE; /* the other rows */
        }
        return err;
}

static rdmeta_err_t merge_valid(const rdmeta_topic_t *old, rdmeta_stage_t *s,
                                const rdmeta_merge_in_t *in,
                                rdmeta_merge_out_t *out) {
        rdmeta_cols_t cols;
        int32_t operations;

        rdmeta_topic_cols(old, &cols);
        if (id_known(rdmeta_cold(old)->id) && id_known(s->topic.id) &&
            !id_same(rdmeta_cold(old)->id, s->topic.id)) {
                if (is_superseded(&cols, s->topic.id) &&
                    !doubt_add(in, &out->doubt))
                        return keep_back(out);
                stage_past(s, old, &cols, 1);
                return RDMETA_OK;
        }
        operations = rdmeta_topic_operations(old);
        if (s->topic.operations == RDMETA_NO_OPERATIONS &&
            operations != RDMETA_NO_OPERATIONS) {
                s->topic.operations = operations;
                out->exact          = 0;
        }
        return merge_known(old, &cols, s, in, out);
}

rdmeta_err_t rdmeta_merge(const rdmeta_topic_t *old, rdmeta_stage_t *s,
                          const rdmeta_merge_in_t *in,
                          rdmeta_merge_out_t *out) {
        rdmeta_err_t err;

        memset(out, 0, sizeof(*out));
        if (s->topic.error) {
                merge_error(old, s->topic.error, in, out);
                return RDMETA_OK;
        }
        out->verdict = RDMETA_VERDICT_TAKE;
        out->exact   = 1;
        hide_epochs(s, in);
        if (old && old->state != RDMETA_TOPIC_WAIT) {
                err = merge_valid(old, s, in, out);
                if (err || out->verdict == RDMETA_VERDICT_KEEP)
                        return err;
        }
        count_leaders(s, in, out);
        return RDMETA_OK;
}

uint16_t rdmeta_merge_absent(const rdmeta_topic_t *t,
                             const rdmeta_merge_in_t *in) {
        switch (t->state) {
        case RDMETA_TOPIC_VALID:
                return is_news(t, in) ? t->state : RDMETA_TOPIC_MISSING;
        case RDMETA_TOPIC_MISSING:
                return rdmeta_topic_said(t).broker != in->broker
                               ? RDMETA_TOPIC_GONE
                               : t->state;
        case RDMETA_TOPIC_UNKNOWN:
                return rdmeta_topic_count(t) ? RDMETA_TOPIC_GONE : t->state;
        default:
                return t->state;
        }
}

int rdmeta_merge_hint(const rdmeta_topic_t *old, const rdmeta_row_t *row,
                      const rdmeta_leader_hint_t *hint) {
        if (hint->leader < 0 || hint->leader_epoch < 0)
                return 0;
        if (hint->topic_id && id_known(hint->topic_id) &&
            id_known(rdmeta_cold(old)->id) &&
            !id_same(hint->topic_id, rdmeta_cold(old)->id))
                return 0;
        return hint->leader_epoch > row->high;
}
