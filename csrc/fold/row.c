#include "fold/row.h"

#include "base/checksum.h"
#include "fold/brokers.h"
#include "fold/resolve.h"
#include "fold/topics.h"

/* The effects of a record of some kind. */
enum {
        WHOLE    = 1 << 0, /* gives a partition's whole state */
        LED      = 1 << 1, /* gives leader and epoch */
        SYNCED   = 1 << 2, /* gives the ISR */
        PLACED   = 1 << 3, /* gives the replicas */
        LOST     = 1 << 4, /* gives the offline replicas */
        MOVED    = 1 << 5, /* gives the replicas to add and to remove */
        ELIGIBLE = 1 << 6, /* gives the eligible leader replicas */
        STATE    = WHOLE | LED | SYNCED | PLACED | LOST | MOVED | ELIGIBLE,
        END      = 1 << 7, /* without a partition: ends the topic */
        NAMED    = 1 << 8, /* gives the topic's id */
        BROKER   = 1 << 9,
        CONFIG   = 1 << 10,
        TERM     = 1 << 11, /* another controller leads */
        MARK     = 1 << 12, /* the observation begins */
        UNTIL    = 1 << 13  /* only says until when was observed */
};

static const struct {
        uint16_t does;
        uint8_t reason;
} kinds[] = {
        [RDMETA_TOPIC_ADDED]      = {WHOLE, RDMETA_BY_TOPIC_ADDED},
        [RDMETA_TOPIC_ABSENT]     = {END, RDMETA_BY_TOPIC_ABSENT},
        [RDMETA_TOPIC_REMOVED]    = {END, RDMETA_BY_TOPIC_REMOVED},
        [RDMETA_TOPIC_RECREATED]  = {WHOLE | END, RDMETA_BY_TOPIC_RECREATED},
        [RDMETA_TOPIC_ERROR]      = {END, RDMETA_BY_TOPIC_ERROR},
        [RDMETA_PARTITIONS_ADDED] = {WHOLE, RDMETA_BY_PARTITIONS_ADDED},
        [RDMETA_LEADER_CHANGED]   = {LED, RDMETA_BY_LEADER_CHANGED},
        [RDMETA_ISR_CHANGED]      = {SYNCED, RDMETA_BY_ISR_CHANGED},
        [RDMETA_REPLICAS_CHANGED] = {PLACED, RDMETA_BY_REPLICAS_CHANGED},
        [RDMETA_OFFLINE_CHANGED]  = {LOST, RDMETA_BY_OFFLINE_CHANGED},
        [RDMETA_BROKER_ADDED]     = {BROKER, RDMETA_BY_BROKER_ADDED},
        [RDMETA_BROKER_REMOVED]   = {BROKER, RDMETA_BY_BROKER_REMOVED},
        [RDMETA_BROKER_CHANGED]   = {BROKER, RDMETA_BY_BROKER_CHANGED},
        [RDMETA_CONFIG_CHANGED]   = {CONFIG, RDMETA_BY_CONFIG_CHANGED},
        [RDMETA_RESYNC]           = {MARK, RDMETA_BY_NOTHING},
        [RDMETA_OBSERVED_FROM]    = {MARK, RDMETA_BY_NOTHING},
        [RDMETA_OBSERVED_TO]      = {UNTIL, RDMETA_BY_NOTHING},
        [RDMETA_TOPIC_ID_LEARNED] = {NAMED, RDMETA_BY_TOPIC_ID_LEARNED},
        [RDMETA_LEADER_EPOCH_CHANGED] = {LED, RDMETA_BY_LEADER_EPOCH_CHANGED},
        [RDMETA_CLUSTER_ID_LEARNED]   = {0, RDMETA_BY_NOTHING},
        [RDMETA_BROKER_FENCED]        = {BROKER, RDMETA_BY_BROKER_FENCED},
        [RDMETA_BROKER_UNFENCED]      = {BROKER, RDMETA_BY_BROKER_UNFENCED},
        [RDMETA_BROKER_SHUTTING_DOWN] = {BROKER,
                                         RDMETA_BY_BROKER_SHUTTING_DOWN},
        [RDMETA_REASSIGNMENT_CHANGED] = {MOVED,
                                         RDMETA_BY_REASSIGNMENT_CHANGED},
        [RDMETA_ELR_CHANGED]          = {ELIGIBLE, RDMETA_BY_ELR_CHANGED},
        [RDMETA_UNCLEAN_ELECTION]     = {0, RDMETA_BY_NOTHING},
        [RDMETA_CONTROLLER_CHANGED]   = {TERM,
                                         RDMETA_BY_CONTROLLER_CHANGED}};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* A record on its way into the state. */
typedef struct step {
        rdmeta_fold_t *f;
        const rdmeta_fold_row_t *row;
        unsigned does;
        uint8_t reason;
        int is_known_better; /* by a log: the record is passed over */
        rdmeta_fold_began_t next;
} step_t;

/* Only records of a log have offsets. */
static int is_of_log(const rdmeta_fold_row_t *row) {
        return row->offset >= 0;
}

/* ---- partitions ---------------------------------------------------------- */

/* The words of the parts that a record gives. */
typedef struct parts {
        uint32_t id, isr, replicas, offline, adding, removing, elr;
} parts_t;

/* Sorts a few ids; lists of replicas have three or so. */
static void sort_few(int32_t *ids, uint32_t n) {
        uint32_t i, k;

        for (i = 1; i < n; i++) {
                const int32_t id = ids[i];
                for (k = i; k > 0 && ids[k - 1] > id; k--)
                        ids[k] = ids[k - 1];
                ids[k] = id;
        }
}

static int by_id(const void *a, const void *b) {
        const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

        return (x > y) - (x < y);
}

/* Sets *word to a list's number; a set is put in order. Returns NO_MEMORY. */
static rdmeta_err_t list_word(rdmeta_fold_t *f, rdmeta_ids_t ids, int is_set,
                              uint32_t *word) {
        int32_t few[16];
        void *sorted = few;

        if (!ids.ids)
                return RDMETA_OK;
        if (is_set && ids.count > 16) {
                sorted = rdmeta_fold_room(f, f->scratch, 0, &f->scratch_room,
                                          ids.count, sizeof(*f->scratch));
                if (!sorted)
                        return RDMETA_ERR_NO_MEMORY;
                f->scratch = sorted;
        }
        if (is_set) {
                memcpy(sorted, ids.ids, 4 * (size_t)ids.count);
                if (ids.count > 16)
                        qsort(sorted, ids.count, 4, by_id);
                else
                        sort_few(sorted, ids.count);
                ids.ids = sorted;
        }
        *word = rdmeta_fold_interned_put(&f->interned, ids.ids,
                                      4 * (size_t)ids.count);
        return *word ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
}

/* Sets *word to the topic id's number; most often it is the old one. */
static rdmeta_err_t id_word(rdmeta_fold_t *f, rdmeta_str_t id, uint32_t old,
                            uint32_t *word) {
        if (!id.data)
                return RDMETA_OK;
        if (old && rdmeta_fold_interned_is(&f->interned, old, id.data, id.len))
                *word = old;
        else
                *word = rdmeta_fold_text(f, id);
        return *word ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
}

static rdmeta_err_t parts_get(step_t *s, const rdmeta_fold_topic_t *t,
                              parts_t *p) {
        const rdmeta_fold_row_t *row = s->row;
        const uint32_t old =
                rdmeta_fold_partition_find(s->f, t, (uint32_t)row->partition)
                        ->says.id;
        rdmeta_err_t err = RDMETA_OK;

        if (!(s->does & LOST))
                err = id_word(s->f, row->topic_id, old, &p->id);
        if (!err && s->does & (WHOLE | SYNCED))
                err = list_word(s->f, row->new_isr, 1, &p->isr);
        if (!err && s->does & (WHOLE | PLACED))
                err = list_word(s->f, row->new_replicas, 0, &p->replicas);
        if (!err && s->does & (WHOLE | LOST))
                err = list_word(s->f, row->new_offline, 1, &p->offline);
        if (!err && s->does & (WHOLE | MOVED))
                err = list_word(s->f, row->new_adding, 1, &p->adding);
        if (!err && s->does & (WHOLE | MOVED))
                err = list_word(s->f, row->new_removing, 1, &p->removing);
        if (!err && s->does & (WHOLE | ELIGIBLE))
                err = list_word(s->f, row->new_elr, 1, &p->elr);
        return err;
}

static void set_live(rdmeta_fold_topic_t *t, rdmeta_fold_partition_t *p,
                     int live) {
        t->live += (uint32_t)live - p->live;
        p->live = (uint8_t)live;
}

/* Stores the parts that a record gives. It cannot fail. */
static void parts_set(const step_t *s, rdmeta_fold_entry_t *e,
                      const parts_t *parts) {
        rdmeta_fold_partition_t *p =
                rdmeta_fold_partition_find(s->f, e->topic, e->partition);
        const unsigned whole = s->does & WHOLE;

        if (s->does & (WHOLE | LED)) {
                p->says.leader = s->row->new_leader;
                p->says.epoch  = s->row->new_epoch;
                set_live(e->topic, p, 1);
                e->given |= RDMETA_GAVE_LEADER;
        }
        if (whole || parts->id) {
                p->says.id = parts->id;
                e->given |= RDMETA_GAVE_ID;
        }
        if (s->does & (WHOLE | SYNCED)) {
                p->says.isr = parts->isr;
                e->given |= RDMETA_GAVE_ISR;
        }
        if (s->does & (WHOLE | PLACED)) {
                p->says.replicas = parts->replicas;
                e->given |= RDMETA_GAVE_REPLICAS;
        }
        if (s->does & (WHOLE | LOST)) {
                p->says.offline = parts->offline;
                e->given |= RDMETA_GAVE_OFFLINE;
        }
        if (s->does & (WHOLE | MOVED)) {
                p->says.adding   = parts->adding;
                p->says.removing = parts->removing;
                e->given |= RDMETA_GAVE_MOVES;
        }
        if (s->does & (WHOLE | ELIGIBLE)) {
                p->says.elr = parts->elr;
                e->given |= RDMETA_GAVE_ELR;
        }
}

/* Takes a record that gives a part of a partition's state. */
static rdmeta_err_t take_partition(step_t *s, rdmeta_fold_topic_t *t) {
        const uint32_t partition = (uint32_t)s->row->partition;
        parts_t parts            = {0};
        rdmeta_fold_entry_t *e;
        rdmeta_err_t err;

        if (!rdmeta_fold_partition_get(s->f, t, partition))
                return RDMETA_ERR_NO_MEMORY;
        err = parts_get(s, t, &parts);
        if (!err)
                err = rdmeta_fold_touch_topic(s->f, t, s->reason, &s->next);
        if (err)
                return err;
        e = rdmeta_fold_touch(s->f, t, partition, s->reason, &s->next);
        if (!e)
                return RDMETA_ERR_NO_MEMORY;
        parts_set(s, e, &parts);
        if (s->does & WHOLE)
                t->says.listed = 1;
        if (parts.id)
                t->says.id = parts.id;
        return RDMETA_OK;
}

/* ---- topics -------------------------------------------------------------- */

/* Makes room for an entry per partition, so that touching cannot fail. */
static rdmeta_err_t entries_room(rdmeta_fold_t *f,
                                 const rdmeta_fold_topic_t *t) {
        void *grown = rdmeta_fold_room(f, f->entries, f->n_entries,
                                       &f->entries_room, f->n_entries + t->n,
                                       sizeof(*f->entries));

        if (!grown && t->n)
                return RDMETA_ERR_NO_MEMORY;
        f->entries = grown;
        return RDMETA_OK;
}

/* Makes the parts that no record of the version gave unknown. The records of a
 * log are in order: what they gave before has ended, too. */
static void parts_end(const step_t *s, rdmeta_fold_topic_t *t,
                      rdmeta_fold_partition_t *p, rdmeta_fold_entry_t *e) {
        e->ended = 1;
        if (is_of_log(s->row))
                e->given = 0;
        if (!(e->given & RDMETA_GAVE_LEADER)) {
                p->says.leader = p->says.epoch = -1;
                set_live(t, p, 0);
        }
        if (!(e->given & RDMETA_GAVE_ID))
                p->says.id = 0;
        if (!(e->given & RDMETA_GAVE_ISR))
                p->says.isr = 0;
        if (!(e->given & RDMETA_GAVE_REPLICAS))
                p->says.replicas = 0;
        if (!(e->given & RDMETA_GAVE_OFFLINE))
                p->says.offline = 0;
        if (!(e->given & RDMETA_GAVE_MOVES))
                p->says.adding = p->says.removing = 0;
        if (!(e->given & RDMETA_GAVE_ELR))
                p->says.elr = 0;
}

/* Ends the intervals of a topic's configurations. */
static rdmeta_err_t end_configs(step_t *s, const rdmeta_fold_topic_t *t) {
        const rdmeta_fold_ended_t ended = {s->next.at, s->reason};
        rdmeta_fold_t *f                = s->f;
        rdmeta_fold_config_t *c;
        uint32_t shown;

        if (!f->configs.count)
                return RDMETA_OK;
        shown = t ? t->shown : rdmeta_fold_text(f, s->row->topic);
        if (!shown)
                return RDMETA_ERR_NO_MEMORY;
        while ((c = rdmeta_fold_config_of(f, shown)) != NULL) {
                if (rdmeta_fold_put_config(f, c, ended))
                        return RDMETA_ERR_NO_MEMORY;
                rdmeta_fold_config_drop(f, c);
        }
        return RDMETA_OK;
}

static void end_parts(step_t *s, rdmeta_fold_topic_t *t) {
        uint32_t i;

        t->end_reason = t->ended && t->end_reason < s->reason ? t->end_reason
                                                              : s->reason;
        t->ended      = 1;
        t->min_isr    = t->polled_min_isr = -1;
        rdmeta_fold_partitions_sort(s->f, t);
        for (i = 0; i < t->n; i++) {
                rdmeta_fold_partition_t *p = &t->partitions[i];
                parts_end(s, t, p,
                          rdmeta_fold_touch(s->f, t, p->number, s->reason,
                                            &s->next));
        }
        t->says.exists = t->says.listed = 0;
        t->says.id                      = 0;
}

/* Takes a record about a whole topic: its end, its begin, or both. */
static rdmeta_err_t take_topic(step_t *s, rdmeta_fold_topic_t *t) {
        uint32_t id = 0;
        rdmeta_err_t err = id_word(s->f, s->row->topic_id, t->says.id, &id);

        if (!err)
                err = rdmeta_fold_touch_topic(s->f, t, s->reason, &s->next);
        if (!err && s->does & END) {
                err = entries_room(s->f, t);
                if (!err)
                        err = end_configs(s, t);
                if (!err)
                        end_parts(s, t);
        }
        if (err)
                return err;
        if (s->does & WHOLE) {
                t->says.exists = 1;
                t->says.id     = id;
        } else if (s->does & NAMED && id) {
                t->says.id = id;
        }
        return RDMETA_OK;
}

/* ---- configurations ------------------------------------------------------ */

static int32_t number_of(rdmeta_str_t s) {
        int64_t number = 0;
        size_t i;

        if (!s.data || !s.len || s.len > 10)
                return -1;
        for (i = 0; i < s.len; i++) {
                if (s.data[i] < '0' || s.data[i] > '9')
                        return -1;
                number = 10 * number + (s.data[i] - '0');
        }
        return number <= INT32_MAX ? (int32_t)number : -1;
}

/* Splits `key=value`; a key alone has a value without a pointer. Returns 0 if
 * there is no key. */
static int config_split(rdmeta_str_t detail, rdmeta_str_t *key,
                        rdmeta_str_t *value) {
        const char *equals =
                detail.data ? memchr(detail.data, '=', detail.len) : NULL;

        *key        = detail;
        value->data = NULL;
        value->len  = 0;
        if (equals) {
                key->len    = (size_t)(equals - detail.data);
                value->data = equals + 1;
                value->len  = detail.len - key->len - 1;
        }
        return detail.data && key->len > 0;
}

/* Makes the value of a configuration `value`; 0: no longer known. */
static rdmeta_err_t config_set(step_t *s, int32_t broker, uint32_t resource,
                               uint32_t key, uint32_t value) {
        const rdmeta_fold_ended_t ended = {s->next.at, s->reason};
        rdmeta_fold_config_t *c =
                rdmeta_fold_config_find(s->f, broker, resource, key);

        if (!c && !value)
                return RDMETA_OK;
        if (c && c->value == value)
                return RDMETA_OK;
        if (c && c->value && rdmeta_fold_put_config(s->f, c, ended))
                return RDMETA_ERR_NO_MEMORY;
        if (!value) {
                rdmeta_fold_config_drop(s->f, c);
                return RDMETA_OK;
        }
        if (!c)
                c = rdmeta_fold_config_add(s->f, broker, resource, key);
        if (!c)
                return RDMETA_ERR_NO_MEMORY;
        c->value = value;
        c->began = rdmeta_fold_began(&s->next, s->reason);
        return RDMETA_OK;
}

/* Gives the topics without their own another minimum ISR. */
static void take_min_isr_of_all(step_t *s, int32_t min_isr) {
        rdmeta_fold_wide_t *wide = &s->f->min_isrs;

        s->f->min_isr = min_isr;
        wide->began   = s->next;
        if (s->reason < wide->reason)
                wide->reason = s->reason;
}

/* Gives all partitions of a topic another minimum ISR: its own, or the one that
 * a poll reported. */
static rdmeta_err_t take_min_isr(step_t *s, rdmeta_fold_topic_t *t,
                                 int32_t min_isr) {
        int32_t *place = s->row->source == RDMETA_SOURCE_POLL
                                 ? &t->polled_min_isr
                                 : &t->min_isr;
        rdmeta_err_t err = RDMETA_OK;
        uint32_t i;

        if (*place == min_isr)
                return RDMETA_OK;
        err = rdmeta_fold_touch_topic(s->f, t, s->reason, &s->next);
        if (!err)
                err = entries_room(s->f, t);
        if (err)
                return err;
        rdmeta_fold_partitions_sort(s->f, t);
        for (i = 0; i < t->n; i++)
                if (t->partitions[i].live || t->partitions[i].entry)
                        rdmeta_fold_touch(s->f, t, t->partitions[i].number,
                                          s->reason, &s->next);
        *place = min_isr;
        return RDMETA_OK;
}

static rdmeta_err_t take_config(step_t *s) {
        const rdmeta_fold_row_t *row = s->row;
        const rdmeta_str_t wanted    = {"min.insync.replicas", 19};
        rdmeta_fold_t *f             = s->f;
        rdmeta_fold_topic_t *t       = NULL;
        rdmeta_str_t key, value;
        uint32_t resource, key_word, value_word = 0;
        rdmeta_err_t err = RDMETA_OK;
        int32_t min_isr  = -1, broker;
        int is_min_isr;

        /* Only a log has configurations of all brokers. */
        if (!config_split(row->detail, &key, &value) ||
            (!row->topic.data && row->broker < 0 &&
             !is_of_log(row))) {
                f->stats.bad_details++;
                f->partial = 1;
                return RDMETA_OK;
        }
        broker = row->topic.data    ? RDMETA_FOLD_OF_TOPIC
                 : row->broker >= 0 ? row->broker
                                    : RDMETA_FOLD_OF_ALL_BROKERS;
        is_min_isr = key.len == wanted.len &&
                     !memcmp(key.data, wanted.data, key.len);
        if (is_min_isr)
                min_isr = number_of(value);
        if (is_min_isr && row->topic.data) {
                t = min_isr < 0 ? rdmeta_fold_topic_find(f, row->topic)
                                : rdmeta_fold_topic_get(f, row->topic);
                if (!t && min_isr >= 0)
                        return RDMETA_ERR_NO_MEMORY;
                err = t ? take_min_isr(s, t, min_isr) : RDMETA_OK;
                s->is_known_better =
                        row->source == RDMETA_SOURCE_POLL &&
                        (f->min_isr >= 0 || (t && t->min_isr >= 0));
        }
        if (!err && s->is_known_better)
                return RDMETA_OK;
        key_word = rdmeta_fold_text(f, key);
        if (value.data)
                value_word = rdmeta_fold_text(f, value);
        resource = row->topic.data ? rdmeta_fold_text(f, row->topic) : 0;
        if (err || !key_word || (value.data && !value_word) ||
            (row->topic.data && !resource))
                return RDMETA_ERR_NO_MEMORY;
        err = config_set(s, broker, resource, key_word, value_word);
        if (!err && is_min_isr && broker == RDMETA_FOLD_OF_ALL_BROKERS)
                take_min_isr_of_all(s, min_isr);
        return err;
}

/* ---- brokers ------------------------------------------------------------- */

/* Makes a broker one with this endpoint. A log tells of a registration; if that
 * shuts down, another record of the version says so. */
static rdmeta_err_t broker_set(step_t *s, rdmeta_fold_broker_t *b,
                               const rdmeta_fold_endpoint_t *e) {
        rdmeta_fold_t *f    = s->f;
        const uint32_t host = rdmeta_fold_text(f, e->host);
        const uint32_t rack =
                e->rack.data ? rdmeta_fold_text(f, e->rack) : 0;

        if (!host || (e->rack.data && !rack) ||
            rdmeta_fold_touch_broker(f, b, s->reason, &s->next))
                return RDMETA_ERR_NO_MEMORY;
        if (b->says.rack != rack)
                rdmeta_fold_racks_moved(f, s->reason, &s->next);
        b->says.shutting_down = s->row->source == RDMETA_SOURCE_LOG ? 0 : -1;
        f->gone -= !b->says.listed;
        b->says.host   = host;
        b->says.rack   = rack;
        b->says.port   = e->port;
        b->says.listed = 1;
        b->next_epoch  = s->row->broker_epoch;
        return RDMETA_OK;
}

static rdmeta_err_t take_broker(step_t *s) {
        const rdmeta_fold_row_t *row = s->row;
        const int is_whole           = row->kind == RDMETA_BROKER_ADDED ||
                             row->kind == RDMETA_BROKER_CHANGED;
        rdmeta_fold_endpoint_t endpoint;
        rdmeta_fold_broker_t *b;

        if (row->broker < 0 ||
            (is_whole && !rdmeta_fold_endpoint(row->detail, &endpoint))) {
                s->f->stats.bad_details++;
                s->f->partial = 1;
                return RDMETA_OK;
        }
        b = rdmeta_fold_broker_get(s->f, row->broker);
        if (!b)
                return RDMETA_ERR_NO_MEMORY;
        if (is_whole)
                return broker_set(s, b, &endpoint);
        if (rdmeta_fold_touch_broker(s->f, b, s->reason, &s->next))
                return RDMETA_ERR_NO_MEMORY;
        b->next_epoch = row->broker_epoch;
        if (row->kind == RDMETA_BROKER_REMOVED) {
                s->f->gone += b->says.listed;
                b->says.listed = 0;
        }
        if (!b->says.listed)
                b->says.fenced = b->says.shutting_down = -1;
        else if (row->kind == RDMETA_BROKER_SHUTTING_DOWN)
                b->says.shutting_down = 1;
        else
                b->says.fenced = row->kind == RDMETA_BROKER_FENCED;
        return RDMETA_OK;
}

/* ---- the controller ------------------------------------------------------ */

/* Ends a term where its last record was, which is `unseen` before this one, and
 * begins another. */
static rdmeta_err_t take_controller(step_t *s) {
        rdmeta_fold_t *f            = s->f;
        rdmeta_fold_controller_t *c = &f->controller;
        rdmeta_fold_ended_t ended   = {s->next.at, s->reason};

        if (s->row->new_epoch < 0) {
                f->stats.bad_details++;
                f->partial = 1;
                return RDMETA_OK;
        }
        if (c->epoch == s->row->new_epoch && c->broker == s->row->broker)
                return RDMETA_OK;
        if (c->epoch >= 0 && c->broker >= 0 && s->next.unseen > 0) {
                if (ended.at - c->began.at > s->next.unseen)
                        ended.at -= s->next.unseen;
                else
                        ended.at = c->began.at;
                if (rdmeta_fold_put_controller(f, c, ended))
                        return RDMETA_ERR_NO_MEMORY;
                c->broker       = -1;
                c->began        = rdmeta_fold_began(&s->next, s->reason);
                c->began.at     = ended.at;
                c->began.unseen = -1;
                if (s->next.offset > 0) /* the first record of its epoch */
                        c->began.offset = s->next.offset - 1;
                ended.at = s->next.at;
        }
        if (c->epoch >= 0 && rdmeta_fold_put_controller(f, c, ended))
                return RDMETA_ERR_NO_MEMORY;
        c->broker = s->row->broker;
        c->epoch  = s->row->new_epoch;
        c->began  = rdmeta_fold_began(&s->next, s->reason);
        return RDMETA_OK;
}

/* ---- one record ---------------------------------------------------------- */

static rdmeta_err_t too_much(rdmeta_fold_t *f, const char *what,
                             int64_t value) {
        return rdmeta_fold_wrong(f, RDMETA_ERR_MALFORMED,
                                 "%s is %lld, which no recording has", what,
                                 (long long)value);
}

static int64_t longest_list(const rdmeta_fold_row_t *row) {
        const rdmeta_ids_t *lists[] = {&row->old_isr,      &row->new_isr,
                                       &row->old_replicas, &row->new_replicas,
                                       &row->old_offline,  &row->new_offline,
                                       &row->new_adding,   &row->new_removing,
                                       &row->new_elr};
        int64_t most = 0;
        size_t i;

        for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
                if (lists[i]->ids && lists[i]->count > most)
                        most = lists[i]->count;
        return most;
}

static rdmeta_err_t check(rdmeta_fold_t *f, const rdmeta_fold_row_t *row) {
        if (row->version < 0)
                return too_much(f, "a version", row->version);
        if (row->at < 0 || row->at > RDMETA_FOLD_LAST)
                return too_much(f, "a time in microseconds", row->at);
        if (row->partition >= RDMETA_FOLD_PARTITIONS)
                return too_much(f, "a partition", row->partition);
        if (row->topic.data && row->topic.len > RDMETA_FOLD_NAME)
                return too_much(f, "the length of a topic's name",
                                (int64_t)row->topic.len);
        if (longest_list(row) > RDMETA_FOLD_IDS)
                return too_much(f, "the length of a list",
                                longest_list(row));
        if (row->detail.len > RDMETA_FOLD_TEXT ||
            row->topic_id.len > RDMETA_FOLD_TEXT)
                return too_much(f, "the length of a text",
                                (int64_t)(row->detail.len > RDMETA_FOLD_TEXT
                                                  ? row->detail.len
                                                  : row->topic_id.len));
        if (f->has_version && row->version < f->version)
                return rdmeta_fold_wrong(
                        f, RDMETA_ERR_MALFORMED,
                        "version %lld comes after version %lld: the records"
                        " are not in order",
                        (long long)row->version, (long long)f->version);
        return RDMETA_OK;
}

/* Moves the fold to a record's version and time: what comes before ends. */
static rdmeta_err_t advance(step_t *s) {
        rdmeta_fold_t *f    = s->f;
        const int64_t least = rdmeta_fold_least_time(f);
        const int back      = s->row->at < least;
        const int is_later =
                f->has_version && (s->row->version > f->version ||
                                   s->row->at > f->clock);
        rdmeta_err_t err = RDMETA_OK;

        s->next.at      = back ? least : s->row->at;
        s->next.version = s->row->version;
        s->next.unseen  = s->row->unseen < 0 ? -1 : s->row->unseen;
        s->next.offset  = s->row->offset < 0 ? -1 : s->row->offset;
        s->next.source  = (int8_t)s->row->source;
        s->next.by      = s->reason;
        s->next.epoch   = s->row->partition_epoch;
        if (s->does & MARK && f->begun && s->row->version > f->mark)
                err = rdmeta_fold_stop(f, least, RDMETA_BY_GAP);
        else if (is_later)
                err = rdmeta_fold_resolve(f);
        if (!err)
                err = rdmeta_fold_midnights(f, s->next.at);
        if (err)
                return err;
        if (is_later)
                f->is_baseline = 0;
        if (s->does & MARK && !f->begun) {
                f->begun = f->is_baseline = 1;
                f->mark                   = s->row->version;
        }
        if (f->clock == INT64_MIN)
                f->day_end = (s->next.at / RDMETA_FOLD_DAY + 1) *
                             RDMETA_FOLD_DAY;
        f->stats.clocks_back += (uint64_t)back;
        f->clock       = s->next.at;
        f->version     = s->row->version;
        f->has_version = 1;
        return RDMETA_OK;
}

static int is_in_bucket(const rdmeta_fold_t *f, rdmeta_str_t topic) {
        return f->buckets == 1 || rdmeta_checksum(topic.data, topic.len) %
                                                  f->buckets == f->bucket;
}

/* Takes a record about a topic or one of its partitions. */
static rdmeta_err_t take_named(step_t *s) {
        const rdmeta_fold_row_t *row = s->row;
        const int of_partition = row->partition >= 0 && s->does & STATE;
        rdmeta_fold_topic_t *t;

        if (!of_partition && (row->partition >= 0 ||
                              !(s->does & (WHOLE | END | NAMED))))
                return RDMETA_OK;
        if (of_partition || s->does & WHOLE) {
                t = rdmeta_fold_topic_get(s->f, row->topic);
                if (!t)
                        return RDMETA_ERR_NO_MEMORY;
                return of_partition ? take_partition(s, t)
                                    : take_topic(s, t);
        }
        t = rdmeta_fold_topic_find(s->f, row->topic);
        if (t)
                return take_topic(s, t);
        return s->does & END ? end_configs(s, NULL) : RDMETA_OK;
}

static rdmeta_err_t take(step_t *s) {
        rdmeta_fold_t *f             = s->f;
        const rdmeta_fold_row_t *row = s->row;
        rdmeta_err_t err             = RDMETA_OK;

        if (row->topic.data && !is_in_bucket(f, row->topic)) {
                f->stats.other_buckets++;
                return RDMETA_OK;
        }
        if (s->does & BROKER)
                err = take_broker(s);
        else if (s->does & CONFIG)
                err = take_config(s);
        else if (s->does & TERM)
                err = take_controller(s);
        else if (row->topic.data)
                err = take_named(s);
        if (!err && !f->is_baseline && !s->is_known_better &&
            !(s->does & (MARK | UNTIL)))
                err = rdmeta_fold_put_change(f, row, s->next.at);
        return err;
}

rdmeta_err_t rdmeta_fold_row(rdmeta_fold_t *f, const rdmeta_fold_row_t *row) {
        step_t s         = {.f = f, .row = row};
        rdmeta_err_t err = check(f, row);

        if (err)
                return err;
        if (row->kind < 0 || row->kind >= KINDS) {
                f->stats.rows++;
                f->stats.unknown_kinds++;
                f->partial = 1;
                return RDMETA_OK;
        }
        s.does   = kinds[row->kind].does;
        s.reason = kinds[row->kind].reason;
        if (!f->begun && !(s.does & MARK)) {
                f->stats.rows++;
                f->stats.before++;
                return RDMETA_OK;
        }
        err = advance(&s);
        if (!err && f->is_baseline && !(s.does & END && row->partition < 0))
                s.reason = RDMETA_BY_BASELINE;
        if (!err)
                err = take(&s);
        if (err)
                return err;
        f->stats.rows++;
        f->stats.kinds[row->kind]++;
        return RDMETA_OK;
}
