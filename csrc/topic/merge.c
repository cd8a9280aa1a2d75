#include "topic/merge.h"

static int id_known(const uint8_t id[16]) {
        return (rdmeta_load64(id) | rdmeta_load64(id + 8)) != 0;
}

static int id_same(const uint8_t a[16], const uint8_t b[16]) {
        return !memcmp(a, b, 16);
}

/* Returns whether the request left before the topic last changed, so that its
 * answer may lack the change. */
static int is_outdated(const rdmeta_topic_t *old,
                       const rdmeta_merge_in_t *in) {
        return in->sent_known && rdmeta_cold(old)->version > in->sent_version;
}

/* ---- rewinds ------------------------------------------------------------ */

/* Returns whether at least `bound` has passed since a time. */
static int has_lasted(const rdmeta_merge_in_t *in, int64_t since_us,
                      int64_t bound) {
        int64_t lasts;

        return __builtin_sub_overflow(in->mono_us, since_us, &lasts) ||
               lasts >= bound;
}

/* Returns whether max age, or 15 minutes, has passed since a time. */
static int has_aged(const rdmeta_merge_in_t *in, int64_t since_us) {
        return has_lasted(in, since_us,
                          in->max_age_us < RDMETA_REWIND_MAX_US
                                  ? in->max_age_us
                                  : RDMETA_REWIND_MAX_US);
}

/* Returns whether a rewind has enough answers, brokers and time. */
static int is_believed(const rdmeta_rewind_t *r,
                       const rdmeta_merge_in_t *in) {
        if (r->answers < RDMETA_REWIND_ANSWERS ||
            !has_lasted(in, r->since_us, RDMETA_REWIND_US))
                return 0;
        return r->others || in->candidates < RDMETA_REWIND_BROKERS ||
               in->stale || has_aged(in, r->since_us);
}

/* Counts one more older answer in `r`, after those of `before` (NULL: it is the
 * first). Returns 1 if the rewind is believed. */
static int rewind_count(rdmeta_rewind_t *r, const rdmeta_rewind_t *before,
                        const rdmeta_merge_in_t *in) {
        r->since_us     = before ? before->since_us : in->mono_us;
        r->answers      = before ? before->answers + 1 : 1;
        r->first_broker = before ? before->first_broker : -1;
        r->others       = before ? before->others : 0;
        if (r->first_broker < 0)
                r->first_broker = in->broker;
        else
                r->others |= in->broker >= 0 && in->broker != r->first_broker;
        return is_believed(r, in);
}

/* The rows that go back now, ascending. */
typedef struct believed {
        const int32_t *ids;
        uint32_t count;
} believed_t;

/* Returns whether a row goes back. *at is the position among them: callers ask
 * for rows in ascending order. */
static int goes_back(const believed_t *b, uint32_t *at, int32_t id) {
        while (*at < b->count && b->ids[*at] < id)
                ++*at;
        return *at < b->count && b->ids[*at] == id;
}

static rdmeta_err_t keep_back(rdmeta_merge_out_t *out) {
        out->verdict   = RDMETA_VERDICT_KEEP;
        out->exact     = 0;
        out->kept_back = 1;
        out->due |= RDMETA_DUE_KEPT_BACK;
        out->advice |= RDMETA_ADVICE_ASK_AGAIN | RDMETA_ADVICE_ASK_OTHER;
        return RDMETA_OK;
}

/* ---- errors of the topic ---------------------------------------------- */

static void set_state(rdmeta_merge_out_t *out, uint16_t state, int32_t error) {
        out->verdict = RDMETA_VERDICT_STATE;
        out->state   = state;
        out->error   = (int16_t)error;
        out->due     = rdmeta_merge_due_in(state);
}

/* Returns whether the topic is valid, and was learned or changed after the
 * request left. */
static int changed_since(const rdmeta_topic_t *old,
                         const rdmeta_merge_in_t *in) {
        return old && old->state == RDMETA_TOPIC_VALID && is_outdated(old, in);
}

static void ask_by_name(rdmeta_merge_out_t *out) {
        out->due = (out->due & ~(uint32_t)RDMETA_DUE_KEPT_BACK) |
                   RDMETA_DUE_ASK_BY_NAME;
        out->advice |= RDMETA_ADVICE_ASK_BY_NAME | RDMETA_ADVICE_ASK_AGAIN;
}

/* Merges an answer that there is no such topic. A topic that was seen goes as
 * one that is absent, and at once if only one broker can be asked. */
static void merge_unknown(const rdmeta_topic_t *old, int32_t error,
                          const rdmeta_merge_in_t *in,
                          rdmeta_merge_out_t *out) {
        uint16_t state = RDMETA_TOPIC_MISSING;

        if (!old || !rdmeta_topic_was_seen(old)) {
                set_state(out, RDMETA_TOPIC_UNKNOWN, error);
                return;
        }
        if (rdmeta_topic_has_gone(old))
                state = rdmeta_merge_absent(old, in);
        if (in->candidates < RDMETA_REWIND_BROKERS)
                state = RDMETA_TOPIC_GONE;
        if (state == old->state)
                error = rdmeta_topic_error(old);
        else if (state == RDMETA_TOPIC_GONE)
                error = 0;
        set_state(out, state, error);
}

static void merge_error(const rdmeta_topic_t *old, int32_t error,
                        const rdmeta_merge_in_t *in,
                        rdmeta_merge_out_t *out) {
        out->verdict = RDMETA_VERDICT_KEEP;
        out->due     = RDMETA_DUE_KEPT_BACK; /* unless it sets a state */
        switch (error) {
        case RDMETA_E_UNKNOWN_TOPIC_ID:
        case RDMETA_E_UNKNOWN_TOPIC_OR_PARTITION:
                if (!changed_since(old, in))
                        merge_unknown(old, error, in, out);
                out->advice |= RDMETA_ADVICE_ASK_AGAIN;
                if (error == RDMETA_E_UNKNOWN_TOPIC_ID)
                        ask_by_name(out);
                return;
        case RDMETA_E_INCONSISTENT_TOPIC_ID:
                ask_by_name(out);
                return;
        case RDMETA_E_TOPIC_AUTHORIZATION_FAILED:
                if (!changed_since(old, in))
                        set_state(out, RDMETA_TOPIC_DENIED, error);
                return;
        case RDMETA_E_INVALID_TOPIC:
                set_state(out, RDMETA_TOPIC_BAD, error);
                return;
        default:
                out->advice |= RDMETA_ADVICE_ASK_AGAIN;
                return;
        }
}

/* ---- topic ids --------------------------------------------------------- */

/* Returns 1 + the place of an id among the topic's past ids; 0: it is none of
 * them. */
static uint8_t place_of_past(const rdmeta_cols_t *old, const uint8_t id[16]) {
        uint8_t i;

        for (i = 0; i < old->n_past; i++)
                if (id_same((const uint8_t *)old->past + 16 * i, id))
                        return (uint8_t)(i + 1);
        return 0;
}

/* Sets the ids that the topic had before: the last one first, without the new
 * one. */
static void keep_past_ids(rdmeta_builder_t *s, const rdmeta_topic_t *old,
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

/* How an answer compares with the old block's rows. */
typedef struct compare {
        uint32_t lower, missing; /* the rows that are older */
        uint32_t undecided;      /* the rows without an epoch of an outdated
                                  * answer, unless they say what is known */
        uint32_t raised;         /* 1: at least one epoch is higher */
} compare_t;

static int is_lower(int32_t epoch, int32_t high) {
        return (epoch >= 0) & (epoch < high);
}

static int ids_equal(rdmeta_wire_ids_t a, rdmeta_list_t b) {
        uint32_t i;

        if (a.count != b.count)
                return 0;
        for (i = 0; i < a.count; i++)
                if ((int32_t)rdmeta_be32(a.be + 4 * i) !=
                    rdmeta_list_get(b, i))
                        return 0;
        return 1;
}

/* Returns whether row `i` of an outdated answer has no epoch, and differs from
 * what is known. Which of the two is newer is not known then. */
static int is_undecided(const rdmeta_builder_t *s, uint32_t i,
                        const rdmeta_row_t *row) {
        return s->epoch[i] < 0 &&
               !(row->epoch < 0 && s->leader[i] == row->leader &&
                 s->error[i] == row->error &&
                 ids_equal(s->replicas[i], row->replicas) &&
                 ids_equal(s->isr[i], row->isr) &&
                 ids_equal(s->offline[i], row->offline));
}

/* Compares the rows of both in the order of ids. An unknown epoch is -1. */
static void compare_rows(const rdmeta_cols_t *old, const rdmeta_builder_t *s,
                         int outdated, compare_t *out) {
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
                out->undecided += outdated && is_undecided(s, k, &row);
                out->raised |= s->epoch[k] > row.high;
        }
}

/* Picks rows of `old`. OLDER: rows for which the answer is older. MISSING: rows
 * that the answer leaves out, and which do not go back. RISEN: rows whose epoch
 * it raises. Writes their ids to `ids`, and returns how many there are. */
enum { OLDER, MISSING, RISEN };
static uint32_t pick_rows(const rdmeta_cols_t *old, const rdmeta_builder_t *s,
                          int which, const believed_t *believed,
                          int32_t *ids) {
        uint32_t i, k = 0, at = 0, n = 0;
        rdmeta_row_t row;

        for (i = 0; i < old->count; i++) {
                int picked;

                rdmeta_topic_row(old, i, &row);
                while (k < s->count && s->id[k] < row.id)
                        k++;
                picked = k == s->count || s->id[k] != row.id;
                if (which == OLDER)
                        picked = picked || is_lower(s->epoch[k], row.high);
                else if (which == RISEN)
                        picked = !picked && s->epoch[k] > row.high;
                else
                        picked = picked && !goes_back(believed, &at, row.id);
                if (picked)
                        ids[n++] = row.id;
        }
        return n;
}

/* Returns scratch memory for the rows of a rewind, and behind it for two lists
 * of ids; NULL: no memory. The same call returns the same memory. */
static rdmeta_rewind_row_t *rewind_scratch(const rdmeta_cols_t *old,
                                           rdmeta_builder_t *s,
                                           int32_t **lists) {
        const size_t words = sizeof(rdmeta_rewind_row_t) / sizeof(int32_t);
        int32_t *p = rdmeta_builder_spare(s, (words + 2) * (size_t)old->count);

        *lists = p ? p + words * (size_t)old->count : NULL;
        return (rdmeta_rewind_row_t *)(void *)p;
}

/* Fills the rows of a rewind from the ids of rows that are older. Clocks go on;
 * the set shrinks if the count goes on. Returns whether the set has a row. */
static int go_on(const rdmeta_rewind_t *before, int counts, int64_t mono_us,
                 const int32_t *ids, uint32_t n, rdmeta_rewind_row_t *rows) {
        uint32_t i, at = 0;
        int any = 0;

        for (i = 0; i < n; i++) {
                const rdmeta_rewind_row_t *was = NULL;

                while (before && at < before->count &&
                       before->rows[at].id < ids[i])
                        at++;
                if (before && at < before->count &&
                    before->rows[at].id == ids[i])
                        was = &before->rows[at];
                rows[i].id       = ids[i];
                rows[i].since_us = was ? was->since_us : mono_us;
                rows[i].in_set   = counts && was && was->in_set;
                any |= rows[i].in_set;
        }
        return any;
}

/* Counts an answer that is older in some rows. Lists the rows that go back in
 * *believed; the others stay in the rewind. Returns 0 or NO_MEMORY. */
static rdmeta_err_t rewind_rows(const rdmeta_cols_t *old, rdmeta_builder_t *s,
                                const rdmeta_merge_in_t *in, int raised,
                                rdmeta_merge_out_t *out,
                                believed_t *believed) {
        const rdmeta_rewind_t *before = in->rewind;
        rdmeta_rewind_t *r            = &out->rewind;
        rdmeta_rewind_row_t *rows;
        uint32_t i, n, left = 0;
        int32_t *ids;
        int all, whole;

        rows = rewind_scratch(old, s, &ids);
        if (!rows)
                return RDMETA_ERR_NO_MEMORY;
        n   = pick_rows(old, s, OLDER, NULL, ids);
        all = !go_on(before, !raised && before && before->answers, in->mono_us,
                     ids, n, rows);
        whole = rewind_count(r, all ? NULL : before, in);
        for (i = 0; i < n; i++) {
                rdmeta_rewind_row_t row = rows[i];

                row.in_set |= all;
                if ((whole && row.in_set) || has_aged(in, row.since_us)) {
                        ids[believed->count++] = row.id;
                        continue;
                }
                row.in_set &= !whole;
                rows[left++] = row;
        }
        believed->ids = ids;
        if (whole || !left)
                memset(r, 0, sizeof(*r)); /* the clocks stay */
        r->rows  = rows;
        r->count = left;
        return RDMETA_OK;
}

/* Copies the clocks of rows, out of any set; those of rows that the answer
 * raises end if `risen`. Returns 0 or NO_MEMORY. */
static rdmeta_err_t copy_clocks(const rdmeta_cols_t *old, rdmeta_builder_t *s,
                                const rdmeta_rewind_t *before, int risen,
                                rdmeta_rewind_t *after) {
        rdmeta_rewind_row_t *rows;
        uint32_t i, n, at = 0;
        int32_t *ids;

        if (!before || !before->count)
                return RDMETA_OK;
        rows = rewind_scratch(old, s, &ids);
        if (!rows)
                return RDMETA_ERR_NO_MEMORY;
        n = risen ? pick_rows(old, s, RISEN, NULL, ids) : 0;
        for (i = 0; i < before->count; i++) {
                while (at < n && ids[at] < before->rows[i].id)
                        at++;
                if (at < n && ids[at] == before->rows[i].id)
                        continue;
                rows[after->count]          = before->rows[i];
                rows[after->count++].in_set = 0;
        }
        after->rows = rows;
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_merge_risen(const rdmeta_cols_t *old, rdmeta_builder_t *s,
                                const rdmeta_rewind_t *before,
                                rdmeta_rewind_t *after) {
        memset(after, 0, sizeof(*after));
        return copy_clocks(old, s, before, 1, after);
}

/* Merges one partition that both have, where the answer is not older: keeps the
 * highest epoch and the last leader. */
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
 * lower, unless it is to go back, and where an outdated answer is undecided.
 * Returns how many stay. */
static uint32_t merge_rows(const rdmeta_cols_t *old, rdmeta_builder_t *s,
                           int outdated, const believed_t *believed,
                           rdmeta_merge_out_t *out) {
        uint32_t i, k = 0, at = 0, kept = 0;
        rdmeta_row_t row;

        for (i = 0; i < old->count; i++) {
                rdmeta_topic_row(old, i, &row);
                while (k < s->count && s->id[k] < row.id)
                        k++;
                if (k == s->count || s->id[k] != row.id)
                        continue;
                if (RDMETA_UNLIKELY(s->epoch[k] < 0
                                            ? outdated &&
                                                      is_undecided(s, k, &row)
                                            : s->epoch[k] < row.high) &&
                    !goes_back(believed, &at, row.id)) {
                        rdmeta_builder_keep_row(s, k, old, &row);
                        kept++;
                } else {
                        merge_row(s, k, &row, out);
                }
        }
        return kept;
}

/* Puts back the rows that an answer leaves out, but for those that a believed
 * rewind removes. Adds their number to *kept. Returns 0 or NO_MEMORY. */
static rdmeta_err_t merge_missing(const rdmeta_cols_t *old, rdmeta_builder_t *s,
                                  const believed_t *believed,
                                  uint32_t *kept) {
        int32_t *ids;
        uint32_t n;

        if (!rewind_scratch(old, s, &ids))
                return RDMETA_ERR_NO_MEMORY;
        ids += old->count; /* the first list is that of `believed` */
        n = pick_rows(old, s, MISSING, believed, ids);
        *kept += n;
        return rdmeta_builder_insert(s, old, ids, n);
}

/* ---- the whole topic --------------------------------------------------- */

/* Clears the epochs of versions before v9, where they can go backwards. */
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

/* Counts partitions without a leader, and those whose leader is not among the
 * brokers. For both it advises to ask again. (KRaft does not check for such a
 * leader, a fenced broker, when it answers.) */
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
        out->due |= (out->leaderless ? RDMETA_DUE_NO_LEADER : 0u) |
                    (out->unreachable ? RDMETA_DUE_UNREACHABLE : 0u);
}

/* Keeps the topic's operations and id where the answer has none. */
static void keep_operations_and_id(const rdmeta_topic_t *old,
                                   rdmeta_builder_t *s,
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

/* Merges an answer with rows that are older, or that have no epoch and come too
 * late. Returns 0 or NO_MEMORY. */
static rdmeta_err_t merge_older(const rdmeta_cols_t *cols, rdmeta_builder_t *s,
                                const rdmeta_merge_in_t *in, int outdated,
                                const compare_t *cmp,
                                rdmeta_merge_out_t *out) {
        believed_t believed = {NULL, 0};
        uint32_t kept    = cmp->lower + cmp->undecided;
        rdmeta_err_t err = RDMETA_OK;

        if (!outdated)
                err = rewind_rows(cols, s, in, (int)cmp->raised, out,
                                  &believed);
        if (!err && !believed.count && kept == s->count)
                return keep_back(out);
        if (!err)
                err = rdmeta_builder_keep_lists(s, cols);
        if (err)
                return err;
        kept = merge_rows(cols, s, outdated, &believed, out);
        if (cmp->missing)
                err = merge_missing(cols, s, &believed, &kept);
        if (err)
                return err;
        if (kept) {
                keep_back(out);
                out->verdict = RDMETA_VERDICT_TAKE; /* the other rows */
                out->in_part = !outdated;
        }
        return RDMETA_OK;
}

/* Merges the same topic, or one whose id was not known on one side. An id that
 * comes for the first time, with older rows, is another topic's: no old row
 * stays. Returns 0 or NO_MEMORY. */
static rdmeta_err_t merge_known(const rdmeta_topic_t *old,
                                const rdmeta_cols_t *cols, rdmeta_builder_t *s,
                                const rdmeta_merge_in_t *in,
                                rdmeta_merge_out_t *out) {
        const int outdated = is_outdated(old, in);
        const int new_id   = !id_known(rdmeta_cold(old)->id) &&
                           id_known(s->topic.id);
        rdmeta_err_t err = RDMETA_OK;
        uint32_t older;
        compare_t cmp;

        compare_rows(cols, s, outdated, &cmp);
        older = cmp.lower + cmp.missing;
        if (RDMETA_UNLIKELY(older && new_id && outdated))
                return keep_back(out);
        out->counted = !outdated || cmp.raised;
        if (outdated && in->rewind)
                out->exact = 0; /* so that the same bytes count next time */
        if (RDMETA_UNLIKELY(older && new_id)) {
                keep_past_ids(s, old, cols, 0);
                return RDMETA_OK;
        }
        keep_operations_and_id(old, s, out);
        keep_past_ids(s, old, cols, 0);
        if (RDMETA_UNLIKELY(outdated && cmp.raised))
                err = rdmeta_merge_risen(cols, s, in->rewind, &out->rewind);
        if (RDMETA_UNLIKELY(err))
                return err;
        if (RDMETA_UNLIKELY(older || cmp.undecided))
                return merge_older(cols, s, in, outdated, &cmp, out);
        merge_rows(cols, s, 0, &(believed_t){NULL, 0}, out);
        return RDMETA_OK;
}

/* Merges a topic with another id: it was made again, or the answer has one of
 * its past ids. */
static rdmeta_err_t merge_another(const rdmeta_topic_t *old,
                                  const rdmeta_cols_t *cols,
                                  rdmeta_builder_t *s,
                                  const rdmeta_merge_in_t *in,
                                  rdmeta_merge_out_t *out) {
        const uint8_t past = place_of_past(cols, s->topic.id);
        const rdmeta_rewind_t *before =
                in->rewind && in->rewind->past == past ? in->rewind : NULL;

        if (past && is_outdated(old, in))
                return keep_back(out);
        out->counted = 1;
        if (past) {
                out->rewind.past = past;
                if (!rewind_count(&out->rewind, before, in)) {
                        keep_back(out);
                        return copy_clocks(cols, s, in->rewind, 0,
                                           &out->rewind);
                }
                memset(&out->rewind, 0, sizeof(out->rewind));
        }
        keep_past_ids(s, old, cols, 1);
        return RDMETA_OK;
}

/* Returns whether a second named broker gives a topic in its grace time, and
 * the two may not both lag. `lacked`: the broker that did not have it last. */
static int is_seconded(const rdmeta_topic_t *old, const rdmeta_merge_in_t *in,
                       int32_t lacked) {
        const int32_t broker = in->broker & RDMETA_GIVEN_MASK;

        if (in->given_by < 0 || in->broker < 0 || broker == in->given_by)
                return 0;
        if (old->state == RDMETA_TOPIC_MISSING)
                return in->gone_for_us >= RDMETA_PROPAGATES_US;
        lacked = lacked < 0 ? -1 : lacked & RDMETA_GIVEN_MASK;
        return in->expired || lacked == in->given_by || lacked == broker;
}

/* Returns whether the answer may be a lagging broker's, about a topic that is
 * absent or was removed just now. */
static int is_lagging(const rdmeta_topic_t *old, const rdmeta_merge_in_t *in) {
        int32_t lacked;

        if (!in->in_grace || in->candidates < RDMETA_REWIND_BROKERS)
                return 0;
        lacked = rdmeta_topic_provenance(old).broker;
        if (old->state == RDMETA_TOPIC_MISSING && lacked == in->broker)
                return 0; /* the broker that did not have it */
        return !is_seconded(old, in, lacked);
}

static rdmeta_err_t merge_valid(const rdmeta_topic_t *old, rdmeta_builder_t *s,
                                const rdmeta_merge_in_t *in,
                                rdmeta_merge_out_t *out) {
        const uint8_t *id = rdmeta_cold(old)->id;
        rdmeta_cols_t cols;

        rdmeta_topic_cols(old, &cols);
        if (id_known(id) && id_known(s->topic.id) && !id_same(id, s->topic.id))
                return merge_another(old, &cols, s, in, out);
        if (RDMETA_UNLIKELY(is_lagging(old, in))) {
                out->given = 1;
                return keep_back(out);
        }
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

uint32_t rdmeta_merge_due_in(uint16_t state) {
        switch (state) {
        case RDMETA_TOPIC_DENIED:
                return RDMETA_DUE_DENIED;
        case RDMETA_TOPIC_MISSING:
                return RDMETA_DUE_ABSENT;
        default:
                return 0;
        }
}

uint32_t rdmeta_merge_due(const rdmeta_topic_t *t,
                          const rdmeta_brokers_t *brokers) {
        rdmeta_cols_t cols;
        uint32_t i, due = 0;

        if (t->state != RDMETA_TOPIC_VALID)
                return rdmeta_merge_due_in(t->state);
        rdmeta_topic_cols(t, &cols);
        for (i = 0; i < cols.count; i++) {
                const int32_t leader = rdmeta_col_get(cols.leaders,
                                                      cols.leader_width, i);

                if (RDMETA_UNLIKELY(leader < 0))
                        due |= RDMETA_DUE_NO_LEADER;
                else if (RDMETA_UNLIKELY(!rdmeta_brokers_has(brokers, leader)))
                        due |= RDMETA_DUE_UNREACHABLE;
        }
        return due;
}

int64_t rdmeta_merge_ttl(const rdmeta_conf_t *conf, uint16_t state) {
        int64_t ttl = conf->max_age_us;

        switch (state) {
        case RDMETA_TOPIC_UNKNOWN:
        case RDMETA_TOPIC_GONE:
                ttl = conf->negative_ttl_us;
                break;
        case RDMETA_TOPIC_DENIED:
                ttl = conf->denied_ttl_us;
                break;
        case RDMETA_TOPIC_MISSING:
                ttl = conf->absent_grace_us;
                break;
        default: /* VALID; BAD, which does not get better */
                break;
        }
        return ttl < conf->max_age_us ? ttl : conf->max_age_us;
}

uint16_t rdmeta_merge_absent(const rdmeta_topic_t *t,
                             const rdmeta_merge_in_t *in) {
        const int32_t before = rdmeta_topic_provenance(t).broker;

        switch (t->state) {
        case RDMETA_TOPIC_VALID:
                return changed_since(t, in) ? t->state : RDMETA_TOPIC_MISSING;
        case RDMETA_TOPIC_MISSING:
                return before >= 0 && in->broker >= 0 && before != in->broker
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
