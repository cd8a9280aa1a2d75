#include "topic/merge.h"

static int id_known(const uint8_t id[16]) {
        return (rdmeta_load64(id) | rdmeta_load64(id + 8)) != 0;
}

static int id_same(const uint8_t a[16], const uint8_t b[16]) {
        return !memcmp(a, b, 16);
}

/* The request left before the topic last changed: its answer cannot know. */
static int is_outdated(const rdmeta_topic_t *old,
                       const rdmeta_merge_in_t *in) {
        return in->sent_known && rdmeta_cold(old)->version > in->sent_version;
}

/* ---- rewinds ------------------------------------------------------------ */

/* Whether so many answers of these brokers, for so long, are believed. */
static int is_believed(const rdmeta_rewind_t *r,
                       const rdmeta_merge_in_t *in) {
        const int64_t bound = in->max_age_us < RDMETA_REWIND_MAX_US
                                      ? in->max_age_us
                                      : RDMETA_REWIND_MAX_US;
        int64_t lasts;

        if (__builtin_sub_overflow(in->mono_us, r->since_us, &lasts))
                lasts = INT64_MAX;
        if (r->answers < RDMETA_REWIND_ANSWERS || lasts < RDMETA_REWIND_US)
                return 0;
        return r->others || in->candidates < RDMETA_REWIND_BROKERS ||
               in->stale || lasts >= bound;
}

/* Counts one more answer that says something older in `r`, after those of
 * `had` (NULL: it is the first). Returns 1 if it is to be believed. */
static int rewind_count(rdmeta_rewind_t *r, const rdmeta_rewind_t *had,
                        const rdmeta_merge_in_t *in) {
        r->since_us     = had ? had->since_us : in->mono_us;
        r->answers      = had ? had->answers + 1 : 1;
        r->first_broker = had ? had->first_broker : -1;
        r->others       = had ? had->others : 0;
        if (r->first_broker < 0)
                r->first_broker = in->broker;
        else
                r->others |= in->broker >= 0 && in->broker != r->first_broker;
        return is_believed(r, in);
}

/* Whether the set has a row; `at` goes through it, as rows are asked for in
 * ascending order. */
static int rewind_has(const rdmeta_rewind_t *r, uint32_t *at, int32_t id) {
        while (*at < r->count && r->rows[*at] < id)
                ++*at;
        return *at < r->count && r->rows[*at] == id;
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

/* Learned or changed after the request left. */
static int is_news(const rdmeta_topic_t *old, const rdmeta_merge_in_t *in) {
        return old && old->state == RDMETA_TOPIC_VALID && is_outdated(old, in);
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

/* 1 + the place of an id among those that the topic had; 0: it had not. */
static uint8_t place_of_past(const rdmeta_cols_t *old, const uint8_t id[16]) {
        uint8_t i;

        for (i = 0; i < old->n_past; i++)
                if (id_same((const uint8_t *)old->past + 16 * i, id))
                        return (uint8_t)(i + 1);
        return 0;
}

/* The ids that this topic had: the last one first, without the new one. */
static void stage_past(rdmeta_builder_t *s, const rdmeta_topic_t *old,
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

/* Counts how an answer compares with the rows that are known. */
typedef struct compare {
        uint32_t lower, missing; /* older */
        uint32_t undecided;         /* without an epoch */
        uint32_t raised;         /* 1: the epoch of one is higher */
} compare_t;

static int is_lower(int32_t epoch, int32_t high) {
        return (epoch >= 0) & (epoch < high);
}

/* Walks both in the order of ids. Epochs that say nothing are -1. */
static void compare_rows(const rdmeta_cols_t *old, const rdmeta_builder_t *s,
                         compare_t *out) {
        uint32_t i, k = 0;
        rdmeta_row_t row;

        memset(out, 0, sizeof(*out));
        for (i = 0; i < old->count; i++) {
                rdmeta_topic_row(old, i, &row);
                while (k < s->count && s->id[k] < row.id)
                        k++;
                if (k == s->count || s->id[k] != row.id) {
                        out->missing++;
                        continue;
                }
                out->lower += (uint32_t)is_lower(s->epoch[k], row.high);
                out->undecided += s->epoch[k] < 0;
                out->raised |= s->epoch[k] > row.high;
        }
}

/* Picks rows of `old` by what the answer says of them. OLDER_AMONG: those that
 * are older, and in `set` if it is not NULL. MISSING_BUT: those that are left
 * out, and not in `set`. Their ids go to `ids`; returns how many there are. */
enum { OLDER_AMONG, MISSING_BUT };
static uint32_t pick_rows(const rdmeta_cols_t *old, const rdmeta_builder_t *s,
                          int which, const rdmeta_rewind_t *set,
                          int32_t *ids) {
        uint32_t i, k = 0, at = 0, n = 0;
        rdmeta_row_t row;

        for (i = 0; i < old->count; i++) {
                int picked;

                rdmeta_topic_row(old, i, &row);
                while (k < s->count && s->id[k] < row.id)
                        k++;
                picked = k == s->count || s->id[k] != row.id;
                if (which == OLDER_AMONG)
                        picked = (picked || is_lower(s->epoch[k], row.high)) &&
                                 (!set || rewind_has(set, &at, row.id));
                else
                        picked = picked &&
                                 !(set && rewind_has(set, &at, row.id));
                if (picked)
                        ids[n++] = row.id;
        }
        return n;
}

/* Counts an answer that is older in some rows. *believed is then the set of
 * rows to go back to, if there is one. NO_MEMORY. */
static rdmeta_err_t rewind_rows(const rdmeta_cols_t *old, rdmeta_builder_t *s,
                                const rdmeta_merge_in_t *in, int raised,
                                rdmeta_merge_out_t *out,
                                const rdmeta_rewind_t **believed) {
        const rdmeta_rewind_t *had = raised ? NULL : in->rewind;
        rdmeta_rewind_t *r         = &out->rewind;
        int32_t *ids = rdmeta_builder_spare(s, 2 * (size_t)old->count);

        if (!ids)
                return RDMETA_ERR_NO_MEMORY;
        if (had && !had->past)
                r->count = pick_rows(old, s, OLDER_AMONG, had, ids);
        if (!r->count) {
                had      = NULL;
                r->count = pick_rows(old, s, OLDER_AMONG, NULL, ids);
        }
        r->rows = ids;
        if (rewind_count(r, had, in))
                *believed = r;
        return RDMETA_OK;
}

/* One partition that both have, and whose answer is not older. */
static void merge_row(rdmeta_builder_t *s, uint32_t i, const rdmeta_row_t *row,
                      rdmeta_merge_out_t *out) {
        if (s->epoch[i] < 0 && row->high >= 0) {
                rdmeta_builder_want_high(s);
                s->high[i] = row->high;
                out->exact = 0;
        }
        if (s->leader[i] < 0 && row->last >= 0) {
                rdmeta_builder_want_last(s);
                s->last[i] = row->last;
        }
}

/* Merges the rows that both have. The old one stays where the answer's epoch is
 * lower, unless it is to go back, and where an outdated answer has no epoch.
 * Returns how many stay. */
static uint32_t merge_rows(const rdmeta_cols_t *old, rdmeta_builder_t *s,
                           int outdated, const rdmeta_rewind_t *believed,
                           rdmeta_merge_out_t *out) {
        uint32_t i, k = 0, at = 0, kept = 0;
        rdmeta_row_t row;

        for (i = 0; i < old->count; i++) {
                rdmeta_topic_row(old, i, &row);
                while (k < s->count && s->id[k] < row.id)
                        k++;
                if (k == s->count || s->id[k] != row.id)
                        continue;
                if (RDMETA_UNLIKELY(s->epoch[k] < 0 ? outdated
                                                    : s->epoch[k] < row.high) &&
                    !(believed && rewind_has(believed, &at, row.id))) {
                        rdmeta_builder_keep_row(s, k, old, &row);
                        kept++;
                } else {
                        merge_row(s, k, &row, out);
                }
        }
        return kept;
}

/* Puts back the rows that an answer leaves out, but for those that it is
 * believed to have lost. Adds their number to *kept. NO_MEMORY. */
static rdmeta_err_t merge_missing(const rdmeta_cols_t *old, rdmeta_builder_t *s,
                                  const rdmeta_rewind_t *believed,
                                  uint32_t *kept) {
        int32_t *ids = rdmeta_builder_spare(s, 2 * (size_t)old->count);
        uint32_t n;

        if (!ids)
                return RDMETA_ERR_NO_MEMORY;
        ids += old->count; /* the first half may be the set's */
        n = pick_rows(old, s, MISSING_BUT, believed, ids);
        *kept += n;
        return rdmeta_builder_insert(s, old, ids, n);
}

/* ---- the whole topic --------------------------------------------------- */

static void hide_epochs(rdmeta_builder_t *s, const rdmeta_merge_in_t *in) {
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
static void count_leaders(const rdmeta_builder_t *s,
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

/* Keeps the operations and the id of a topic whose answer has none. */
static void merge_unsaid(const rdmeta_topic_t *old, rdmeta_builder_t *s,
                         rdmeta_merge_out_t *out) {
        const int32_t operations = rdmeta_topic_operations(old);

        if (s->topic.operations == RDMETA_NO_OPERATIONS &&
            operations != RDMETA_NO_OPERATIONS) {
                s->topic.operations = operations;
                out->exact          = 0;
        }
        if (id_known(rdmeta_cold(old)->id) && !id_known(s->topic.id)) {
                memcpy(s->id_bytes, rdmeta_cold(old)->id, 16);
                out->exact = 0;
        }
}

/* Merges an answer with rows that are older, or come too late. NO_MEMORY. */
static rdmeta_err_t merge_older(const rdmeta_cols_t *cols, rdmeta_builder_t *s,
                                const rdmeta_merge_in_t *in, int outdated,
                                const compare_t *is, rdmeta_merge_out_t *out) {
        const rdmeta_rewind_t *believed = NULL;
        uint32_t kept = is->lower + (outdated ? is->undecided : 0);
        rdmeta_err_t err = RDMETA_OK;

        if (!outdated)
                err = rewind_rows(cols, s, in, (int)is->raised, out,
                                  &believed);
        if (!err && !believed && kept == s->count)
                return keep_back(out);
        if (!err)
                err = rdmeta_builder_keep_lists(s, cols);
        if (err)
                return err;
        kept = merge_rows(cols, s, outdated, believed, out);
        if (is->missing)
                err = merge_missing(cols, s, believed, &kept);
        if (err)
                return err;
        if (kept) {
                keep_back(out);
                out->verdict = RDMETA_VERDICT_TAKE; /* the other rows */
        }
        if (believed)
                memset(&out->rewind, 0, sizeof(out->rewind));
        return RDMETA_OK;
}

/* Merges the same topic, or one whose id was not known on one side. An id that
 * comes for the first time, with older rows, is another topic's: nothing is
 * left of the rows that are known. NO_MEMORY. */
static rdmeta_err_t merge_known(const rdmeta_topic_t *old,
                                const rdmeta_cols_t *cols, rdmeta_builder_t *s,
                                const rdmeta_merge_in_t *in,
                                rdmeta_merge_out_t *out) {
        const int outdated = is_outdated(old, in);
        const int new_id   = !id_known(rdmeta_cold(old)->id) &&
                           id_known(s->topic.id);
        uint32_t older;
        compare_t is;

        compare_rows(cols, s, &is);
        older = is.lower + is.missing;
        if (RDMETA_UNLIKELY(older && new_id && outdated))
                return keep_back(out);
        out->counted = !outdated || is.raised;
        if (!out->counted && in->rewind)
                out->exact = 0; /* so that the same bytes count next time */
        if (RDMETA_UNLIKELY(older && new_id)) {
                stage_past(s, old, cols, 0);
                return RDMETA_OK;
        }
        merge_unsaid(old, s, out);
        stage_past(s, old, cols, 0);
        if (RDMETA_UNLIKELY(older || (outdated && is.undecided)))
                return merge_older(cols, s, in, outdated, &is, out);
        merge_rows(cols, s, 0, NULL, out);
        return RDMETA_OK;
}

/* Merges a topic with another id: it was made again, or is long gone. */
static rdmeta_err_t merge_another(const rdmeta_topic_t *old,
                                  const rdmeta_cols_t *cols, rdmeta_builder_t *s,
                                  const rdmeta_merge_in_t *in,
                                  rdmeta_merge_out_t *out) {
        const uint8_t past = place_of_past(cols, s->topic.id);
        const rdmeta_rewind_t *had =
                in->rewind && in->rewind->past == past ? in->rewind : NULL;

        if (past && is_outdated(old, in))
                return keep_back(out);
        out->counted = 1;
        if (past) {
                out->rewind.past = past;
                if (!rewind_count(&out->rewind, had, in))
                        return keep_back(out);
                memset(&out->rewind, 0, sizeof(out->rewind));
        }
        stage_past(s, old, cols, 1);
        return RDMETA_OK;
}

static rdmeta_err_t merge_valid(const rdmeta_topic_t *old, rdmeta_builder_t *s,
                                const rdmeta_merge_in_t *in,
                                rdmeta_merge_out_t *out) {
        const uint8_t *id = rdmeta_cold(old)->id;
        rdmeta_cols_t cols;

        rdmeta_topic_cols(old, &cols);
        if (id_known(id) && id_known(s->topic.id) && !id_same(id, s->topic.id))
                return merge_another(old, &cols, s, in, out);
        return merge_known(old, &cols, s, in, out);
}

rdmeta_err_t rdmeta_merge(const rdmeta_topic_t *old, rdmeta_builder_t *s,
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

int64_t rdmeta_merge_ttl(const rdmeta_conf_t *conf, uint16_t state) {
        int64_t ttl = conf->max_age_us;

        switch (state) {
        case RDMETA_TOPIC_UNKNOWN:
                ttl = conf->negative_ttl_us;
                break;
        case RDMETA_TOPIC_DENIED:
                ttl = conf->denied_ttl_us;
                break;
        case RDMETA_TOPIC_MISSING:
                ttl = conf->absent_grace_us;
                break;
        default: /* VALID; GONE; BAD, which will not get better */
                break;
        }
        return ttl < conf->max_age_us ? ttl : conf->max_age_us;
}

uint16_t rdmeta_merge_absent(const rdmeta_topic_t *t,
                             const rdmeta_merge_in_t *in) {
        switch (t->state) {
        case RDMETA_TOPIC_VALID:
                return is_news(t, in) ? t->state : RDMETA_TOPIC_MISSING;
        case RDMETA_TOPIC_MISSING:
                return rdmeta_topic_provenance(t).broker != in->broker
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
