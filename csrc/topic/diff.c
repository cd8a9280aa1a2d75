#include "topic/diff.h"

#include "topic/diff_table.h"
#include "topic/merge.h"

#include <stdio.h>

#define NAME(name) name,

static const char *const kind_names[]   = {RDMETA_KIND_NAMES(NAME)};
static const char *const source_names[] = {RDMETA_SOURCE_NAMES(NAME)};

const char *rdmeta_change_kind_name(int32_t kind) {
        const size_t n = sizeof(kind_names) / sizeof(kind_names[0]);

        return kind >= 0 && (size_t)kind < n ? kind_names[kind] : NULL;
}

const char *rdmeta_source_name(int32_t source) {
        const size_t n = sizeof(source_names) / sizeof(source_names[0]);

        return source >= 0 && (size_t)source < n ? source_names[source] : NULL;
}

uint32_t rdmeta_diff_longest(const rdmeta_topic_t *t) {
        rdmeta_cols_t c;
        uint32_t longest = 0;
        const char *p;

        if (!t)
                return 0;
        rdmeta_topic_cols(t, &c);
        if (!c.replicas)
                return c.flat;
        for (p = c.lists; p < c.lists_end;) {
                const uint32_t n =
                        (uint32_t)rdmeta_col_get(p, c.list_width, 0);
                longest = n > longest ? n : longest;
                p += ((size_t)n + 1) << c.list_width;
        }
        return longest;
}

/* Clears the fields that belong to one partition or one broker. */
static void change_clear(rdmeta_change_t *r) {
        static const rdmeta_ids_t none = {NULL, 0};

        r->partition        = RDMETA_NONE;
        r->broker           = RDMETA_NONE;
        r->old_leader       = RDMETA_NONE;
        r->new_leader       = RDMETA_NONE;
        r->old_leader_epoch = RDMETA_NONE;
        r->new_leader_epoch = RDMETA_NONE;
        r->old_isr = r->new_isr = none;
        r->old_replicas = r->new_replicas = none;
        r->old_offline = r->new_offline = none;
        r->broker_epoch = r->unseen_us = -1;
        r->partition_epoch             = RDMETA_NONE;
        r->new_adding = r->new_removing = none;
        r->new_elr                      = none;
        memset(&r->detail, 0, sizeof(r->detail));
}

/* Visits the record, and clears it for the next one. */
static int32_t change_emit(rdmeta_diff_out_t *out, int32_t kind) {
        int32_t res;

        out->record.kind = kind;
        res              = out->visit(out->opaque, &out->record);
        change_clear(&out->record);
        return res;
}

void rdmeta_diff_begin(rdmeta_diff_out_t *out, rdmeta_str_t topic,
                       const uint8_t *topic_id) {
        out->record.topic    = topic;
        out->record.topic_id = topic_id;
        change_clear(&out->record);
}

int32_t rdmeta_diff_emit(rdmeta_diff_out_t *out, int32_t kind) {
        return change_emit(out, kind);
}

rdmeta_ids_t rdmeta_diff_ids(rdmeta_diff_out_t *out, int which,
                             rdmeta_list_t l) {
        rdmeta_ids_out_t copy;
        rdmeta_ids_t ids;

        copy.ids      = out->ids + (size_t)which * out->ids_each;
        copy.capacity = out->ids_each;
        rdmeta_list_copy(l, &copy);
        ids.ids   = copy.ids;
        ids.count = copy.count;
        return ids;
}

/* More replicas than any partition has. Longer lists are compared as lists, not
 * as sets. */
enum { SET_MAX = 1024 };

/* Copies a list of at most SET_MAX members in ascending order. It uses Shell's
 * sort, so that long lists of a hostile broker or file do not take long. */
static void list_sorted(rdmeta_list_t l, int32_t *out) {
        static const uint32_t gaps[] = {701, 301, 132, 57, 23, 10, 4, 1};
        const uint32_t *gap          = gaps;
        uint32_t i, k;

        for (i = 0; i < l.count; i++)
                out[i] = rdmeta_list_get(l, i);
        for (;; gap++) {
                for (i = *gap; i < l.count; i++) {
                        const int32_t id = out[i];

                        for (k = i; k >= *gap && out[k - *gap] > id; k -= *gap)
                                out[k] = out[k - *gap];
                        out[k] = id;
                }
                if (*gap == 1)
                        return;
        }
}

static int set_equal(rdmeta_list_t a, rdmeta_list_t b) {
        int32_t x[SET_MAX], y[SET_MAX];

        if (rdmeta_list_equal(a, b))
                return 1;
        if (a.count != b.count || a.count > SET_MAX)
                return 0;
        list_sorted(a, x);
        list_sorted(b, y);
        return !memcmp(x, y, a.count * sizeof(x[0]));
}

/* Sets leaders and epochs as the broker gave them: -1 is "no leader" or "epoch
 * not known". The fields of a row that is absent stay RDMETA_NONE, not -1. */
static void put_leaders(rdmeta_change_t *r, const rdmeta_row_t *a,
                        const rdmeta_row_t *b) {
        if (a) {
                r->old_leader       = a->leader;
                r->old_leader_epoch = a->epoch;
        }
        if (b) {
                r->new_leader       = b->leader;
                r->new_leader_epoch = b->epoch;
        }
}

static void put_text(rdmeta_change_t *r, const char *text) {
        r->detail.data = text;
        r->detail.len  = strlen(text);
}

/* Returns 1 if the leader or its epoch is another one. If both rows have no
 * leader, but different last leaders, there was a leader in between. An unknown
 * epoch is equal to any. */
static int leader_differs(const rdmeta_row_t *a, const rdmeta_row_t *b) {
        return a->leader != b->leader || a->last != b->last ||
               (a->epoch != b->epoch && a->epoch >= 0 && b->epoch >= 0);
}

/* Visits the records of one row; it is inlined for the loop over blocks. */
RDMETA_INLINE int32_t change_row(rdmeta_diff_out_t *out, const rdmeta_row_t *a,
                                 const rdmeta_row_t *b) {
        rdmeta_change_t *r = &out->record;
        int32_t res        = 0;

        if (leader_differs(a, b) || a->epoch != b->epoch ||
            a->high != b->high) {
                r->partition = b->id;
                put_leaders(r, a, b);
                res = change_emit(out, leader_differs(a, b)
                                               ? RDMETA_LEADER_CHANGED
                                               : RDMETA_LEADER_EPOCH_CHANGED);
        }
        if (!res && !set_equal(a->isr, b->isr)) {
                r->partition = b->id;
                put_leaders(r, a, b);
                r->old_isr = rdmeta_diff_ids(out, 0, a->isr);
                r->new_isr = rdmeta_diff_ids(out, 1, b->isr);
                res        = change_emit(out, RDMETA_ISR_CHANGED);
        }
        if (!res && !rdmeta_list_equal(a->replicas, b->replicas)) {
                r->partition    = b->id;
                r->old_replicas = rdmeta_diff_ids(out, 2, a->replicas);
                r->new_replicas = rdmeta_diff_ids(out, 3, b->replicas);
                res             = change_emit(out, RDMETA_REPLICAS_CHANGED);
        }
        if (!res && !set_equal(a->offline, b->offline)) {
                r->partition   = b->id;
                r->old_offline = rdmeta_diff_ids(out, 4, a->offline);
                r->new_offline = rdmeta_diff_ids(out, 5, b->offline);
                res            = change_emit(out, RDMETA_OFFLINE_CHANGED);
        }
        if (!res && a->error != b->error) {
                r->partition = b->id;
                put_text(r, rdmeta_err_name(b->error));
                res = change_emit(out, RDMETA_PARTITION_ERROR);
        }
        return res;
}

int32_t rdmeta_diff_row(rdmeta_diff_out_t *out, const rdmeta_row_t *old,
                        const rdmeta_row_t *new_) {
        return change_row(out, old, new_);
}

int32_t rdmeta_diff_row_added(rdmeta_diff_out_t *out, int32_t kind,
                              const rdmeta_row_t *b) {
        rdmeta_change_t *r = &out->record;

        r->partition = b->id;
        put_leaders(r, NULL, b);
        r->new_isr      = rdmeta_diff_ids(out, 1, b->isr);
        r->new_replicas = rdmeta_diff_ids(out, 3, b->replicas);
        r->new_offline  = rdmeta_diff_ids(out, 5, b->offline);
        return change_emit(out, kind);
}

/* Makes the record of a topic that came, and those of its partitions if they
 * are wanted. */
static int32_t change_came(rdmeta_diff_out_t *out, int32_t kind,
                           const rdmeta_topic_t *t) {
        int32_t res = change_emit(out, kind);
        rdmeta_cols_t cols;
        rdmeta_row_t row;
        uint32_t i;

        if (!out->whole)
                return res;
        rdmeta_topic_cols(t, &cols);
        for (i = 0; i < cols.count && !res; i++) {
                rdmeta_topic_row(&cols, i, &row);
                res = rdmeta_diff_row_added(out, kind, &row);
        }
        return res;
}

static int32_t change_rows(rdmeta_diff_out_t *out,
                           const rdmeta_topic_t *old,
                           const rdmeta_topic_t *new_) {
        rdmeta_cols_t a, b;
        rdmeta_row_t x, y;
        uint32_t i, k = 0;
        int32_t res = 0;

        rdmeta_topic_cols(old, &a);
        rdmeta_topic_cols(new_, &b);
        for (i = 0; i < b.count && !res; i++) {
                rdmeta_topic_row(&b, i, &y);
                for (x.id = -1; k < a.count; k++) {
                        rdmeta_topic_row(&a, k, &x);
                        if (x.id >= y.id)
                                break;
                }
                if (k < a.count && x.id == y.id)
                        res = change_row(out, &x, &y);
                else
                        res = rdmeta_diff_row_added(
                                out, RDMETA_PARTITIONS_ADDED, &y);
        }
        return res;
}

static int32_t change_error(rdmeta_diff_out_t *out,
                            const rdmeta_topic_t *t) {
        put_text(&out->record, rdmeta_err_name(rdmeta_topic_error(t)));
        return change_emit(out, RDMETA_TOPIC_ERROR);
}

/* Returns whether the topic was valid at some time, and not removed since. */
static int was_seen(const rdmeta_topic_t *t) {
        return t && rdmeta_topic_was_seen(t) && t->state != RDMETA_TOPIC_GONE;
}

/* Returns whether the new block lacks a partition of the old one. Kafka never
 * removes a partition, so it is another topic then. */
static int lost_partition(const rdmeta_topic_t *old,
                          const rdmeta_topic_t *new_) {
        rdmeta_cols_t cols;
        rdmeta_row_t row;
        uint32_t i;

        rdmeta_topic_cols(old, &cols);
        if (!cols.ids && old->count <= new_->count &&
            !(rdmeta_cold(new_)->flags & RDMETA_TOPIC_F_IDS))
                return 0; /* both are 0 .. count-1 */
        for (i = 0; i < cols.count; i++) {
                rdmeta_topic_row(&cols, i, &row);
                if (rdmeta_topic_place(new_, row.id) < 0)
                        return 1;
        }
        return 0;
}

/* Returns 1 if an epoch is below one that was seen. */
static int lower_epoch(const rdmeta_topic_t *old,
                       const rdmeta_topic_t *new_) {
        rdmeta_cols_t a, b;
        rdmeta_row_t x, y;
        int64_t place;
        uint32_t i;

        rdmeta_topic_cols(old, &a);
        rdmeta_topic_cols(new_, &b);
        for (i = 0; i < a.count; i++) {
                rdmeta_topic_row(&a, i, &x);
                place = rdmeta_topic_place(new_, x.id);
                if (place < 0)
                        continue;
                rdmeta_topic_row(&b, (uint32_t)place, &y);
                if (y.epoch >= 0 && y.epoch < x.high)
                        return 1;
        }
        return 0;
}

static int other_id(const rdmeta_topic_t *old, const rdmeta_topic_t *new_) {
        return rdmeta_topic_has_id(old) && rdmeta_topic_has_id(new_) &&
               memcmp(rdmeta_cold(old)->id, rdmeta_cold(new_)->id, 16) != 0;
}

/* Returns 1 if the past ids differ. If the id itself is the same, there was
 * another topic in between. */
static int other_past(const rdmeta_topic_t *old, const rdmeta_topic_t *new_) {
        rdmeta_cols_t a, b;

        rdmeta_topic_cols(old, &a);
        rdmeta_topic_cols(new_, &b);
        return a.n_past != b.n_past ||
               (a.n_past && memcmp(a.past, b.past, 16 * (size_t)a.n_past));
}

/* Returns 1 if two valid blocks of one name are of two topics. No topic ever
 * loses a partition, and none whose id was just learned goes back to a lower
 * epoch. Only a topic of another cluster has no id where one was known. */
static int is_another(const rdmeta_topic_t *old, const rdmeta_topic_t *new_) {
        if (lost_partition(old, new_) || other_id(old, new_))
                return 1;
        if (rdmeta_topic_has_id(old))
                return !rdmeta_topic_has_id(new_) || other_past(old, new_);
        return rdmeta_topic_has_id(new_) && lower_epoch(old, new_);
}

/* Makes the records of fields that belong to the topic as a whole. */
static int32_t change_topic(rdmeta_diff_out_t *out,
                            const rdmeta_topic_t *old,
                            const rdmeta_topic_t *new_) {
        const int internal =
                rdmeta_cold(new_)->flags & RDMETA_TOPIC_F_INTERNAL;
        const int32_t operations = rdmeta_topic_operations(new_);
        int32_t res              = 0;

        if (!rdmeta_topic_has_id(old) && rdmeta_topic_has_id(new_))
                res = change_emit(out, RDMETA_TOPIC_ID_LEARNED);
        if (!res &&
            internal != (rdmeta_cold(old)->flags & RDMETA_TOPIC_F_INTERNAL)) {
                put_text(&out->record, internal ? "true" : "false");
                res = change_emit(out, RDMETA_INTERNAL_CHANGED);
        }
        if (!res && operations != rdmeta_topic_operations(old)) {
                if (operations != RDMETA_NO_OPERATIONS) {
                        snprintf(out->detail, sizeof(out->detail), "%d",
                                 operations);
                        put_text(&out->record, out->detail);
                }
                res = change_emit(out, RDMETA_OPERATIONS_CHANGED);
        }
        return res;
}

static int32_t change_to_valid(rdmeta_diff_out_t *out,
                               const rdmeta_topic_t *old,
                               const rdmeta_topic_t *new_) {
        int32_t res;

        if (was_seen(old) && other_id(old, new_))
                return change_came(out, RDMETA_TOPIC_RECREATED, new_);
        if (!old || old->state != RDMETA_TOPIC_VALID)
                return change_came(out, RDMETA_TOPIC_ADDED, new_);
        if (is_another(old, new_))
                return change_came(out, RDMETA_TOPIC_RECREATED, new_);
        res = change_topic(out, old, new_);
        return res ? res : change_rows(out, old, new_);
}

int32_t rdmeta_diff_topics(rdmeta_diff_out_t *out,
                           const rdmeta_topic_t *old,
                           const rdmeta_topic_t *new_) {
        const rdmeta_topic_t *named = new_ ? new_ : old;
        const rdmeta_str_t name     = {named->name, named->name_len};
        const uint8_t *id           = NULL;

        if (rdmeta_topic_has_id(named))
                id = rdmeta_cold(named)->id;
        rdmeta_diff_begin(out, name, id);
        if (!new_ || new_->state == RDMETA_TOPIC_GONE)
                return was_seen(old) ? change_emit(out, RDMETA_TOPIC_REMOVED)
                                     : 0;
        switch (new_->state) {
        case RDMETA_TOPIC_VALID:
                return change_to_valid(out, old, new_);
        case RDMETA_TOPIC_MISSING:
                return old && old->state == RDMETA_TOPIC_MISSING
                               ? 0
                               : change_emit(out, RDMETA_TOPIC_ABSENT);
        case RDMETA_TOPIC_WAIT:
                return 0;
        default:
                if (old && old->state == new_->state &&
                    rdmeta_topic_error(old) == rdmeta_topic_error(new_))
                        return 0;
                return change_error(out, new_);
        }
}

static int32_t stop(void *opaque, const rdmeta_change_t *change) {
        (void)opaque;
        (void)change;
        return 1;
}

int rdmeta_change_differs(const rdmeta_topic_t *old,
                          const rdmeta_topic_t *new_) {
        rdmeta_diff_out_t out;
        int32_t ids[RDMETA_DIFF_LISTS]; /* cut short: stop() reads none */

        if (old && new_ && old->count == new_->count &&
            rdmeta_topic_head(old) == rdmeta_topic_head(new_) &&
            old->state == RDMETA_TOPIC_VALID &&
            memcmp(old->name, new_->name,
                   rdmeta_topic_hot(old) - RDMETA_TOPIC_FIXED) != 0)
                return 1; /* a leader differs, the most common change */
        memset(&out, 0, sizeof(out));
        out.visit    = stop;
        out.ids      = ids;
        out.ids_each = 1;
        return rdmeta_diff_topics(&out, old, new_);
}

int32_t rdmeta_diff_broker(rdmeta_diff_out_t *out, int32_t kind,
                           const rdmeta_broker_t *b) {
        int n = snprintf(out->detail, sizeof(out->detail), "%.*s:%d%s%.*s",
                         (int)(b->host.len > 255 ? 255 : b->host.len),
                         b->host.data, b->port, b->rack.data ? " rack=" : "",
                         (int)(b->rack.len > 48 ? 48 : b->rack.len),
                         b->rack.data ? b->rack.data : "");

        out->record.broker      = b->id;
        out->record.detail.data = out->detail;
        out->record.detail.len  = n < 0 ? 0 : (size_t)n;
        if (out->record.detail.len >= sizeof(out->detail))
                out->record.detail.len = sizeof(out->detail) - 1;
        return change_emit(out, kind);
}

/* Makes the record of a cluster id that differs. The first brokers of an empty
 * table need none: they have records of their own. */
static int32_t change_cluster(rdmeta_diff_out_t *out,
                              const rdmeta_brokers_t *old,
                              const rdmeta_brokers_t *new_) {
        if (old->cluster_id.data) {
                out->record.detail = old->cluster_id;
                return change_emit(out, RDMETA_CLUSTER_CHANGED);
        }
        if (!old->count && new_->count)
                return 0;
        out->record.detail = new_->cluster_id;
        return change_emit(out, RDMETA_CLUSTER_ID_LEARNED);
}

int32_t rdmeta_diff_brokers(rdmeta_diff_out_t *out,
                            const rdmeta_brokers_t *old,
                            const rdmeta_brokers_t *new_) {
        const rdmeta_str_t none = {NULL, 0};
        uint32_t i = 0, k = 0;
        int32_t res = 0;

        rdmeta_diff_begin(out, none, NULL);
        if (!rdmeta_str_same(old->cluster_id, new_->cluster_id))
                res = change_cluster(out, old, new_);
        while (!res && (i < old->count || k < new_->count)) {
                const rdmeta_broker_t *a = &old->rows[i], *b = &new_->rows[k];

                if (k == new_->count || (i < old->count && a->id < b->id)) {
                        res = rdmeta_diff_broker(out, RDMETA_BROKER_REMOVED, a);
                        i++;
                } else if (i == old->count || b->id < a->id) {
                        res = rdmeta_diff_broker(out, RDMETA_BROKER_ADDED, b);
                        k++;
                } else {
                        if (!rdmeta_broker_same(a, b))
                                res = rdmeta_diff_broker(
                                        out, RDMETA_BROKER_CHANGED, b);
                        i++;
                        k++;
                }
        }
        return res;
}
