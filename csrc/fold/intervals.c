#include "fold/intervals.h"

#include "arrow/text.h"
#include "topic/diff_table.h"

#include <stdio.h>

#define NAME(text) {text, sizeof(text) - 1}
#define NAME_OF(text) NAME(text),

/* In the order of the reasons. */
static const rdmeta_str_t reasons[] = {NAME("topic_absent"),
                                       NAME("topic_removed"),
                                       NAME("topic_recreated"),
                                       NAME("topic_error"),
                                       NAME("topic_added"),
                                       NAME("baseline"),
                                       NAME("partitions_added"),
                                       NAME("leader_changed"),
                                       NAME("isr_changed"),
                                       NAME("replicas_changed"),
                                       NAME("reassignment_changed"),
                                       NAME("elr_changed"),
                                       NAME("leader_epoch_changed"),
                                       NAME("offline_changed"),
                                       NAME("topic_id_learned"),
                                       NAME("config_changed"),
                                       NAME("broker_added"),
                                       NAME("broker_removed"),
                                       NAME("broker_changed"),
                                       NAME("broker_fenced"),
                                       NAME("broker_unfenced"),
                                       NAME("broker_shutting_down"),
                                       NAME("controller_changed"),
                                       NAME("midnight"),
                                       NAME("open"),
                                       NAME("gap")};

/* Returns the output of a table; NULL: the fold does not make that table. */
static rdmeta_fold_out_t *out_of(rdmeta_fold_t *f, int32_t table) {
        return f->tables >> table & 1
                       ? &f->out[table - RDMETA_FOLD_PARTITION_INTERVAL]
                       : NULL;
}

/* ---- columns that many tables have --------------------------------------- */

static void put_word(rdmeta_fold_t *f, rdmeta_fold_out_t *o, int column,
                     uint32_t word, int shift) {
        const rdmeta_fold_word_t *w = word ? f->interned.words[word] : NULL;

        rdmeta_fold_put_bytes(o, column, w ? w->data : NULL, w ? w->size : 0,
                              shift);
}

/* Stores the name of a source, or null. */
static void put_source(rdmeta_fold_out_t *o, int column, int32_t source) {
        static const rdmeta_str_t none    = {NULL, 0};
        static const rdmeta_str_t names[] = {RDMETA_SOURCE_NAMES(NAME_OF)};
        const int known =
                source >= 0 && source < (int)(sizeof(names) / sizeof(*names));

        rdmeta_fold_put_text(o, column, known ? names[source] : none);
}

static void put_name(rdmeta_fold_out_t *o, int column, const char *name) {
        const rdmeta_str_t s = {name, name ? strlen(name) : 0};

        rdmeta_fold_put_text(o, column, s);
}

/* Stores a text of any bytes as UTF-8. */
static void put_clean(rdmeta_fold_out_t *o, int column, rdmeta_str_t s) {
        const size_t size = s.data ? rdmeta_text_size(s.data, s.len) : 0;
        char *clean;

        if (size == s.len) {
                rdmeta_fold_put_text(o, column, s);
                return;
        }
        clean = (char *)malloc(size);
        if (!clean) {
                o->failed = 1;
                return;
        }
        rdmeta_text_copy(clean, size, s.data, s.len);
        rdmeta_fold_put_bytes(o, column, clean, size, 0);
        free(clean);
}

/* The part of an interval that counts. */
typedef struct part {
        int64_t began_at, ended_at, unseen;
        uint8_t began_by, ended_by;
} part_t;

/* Sets *p. Returns 0 if no part of the interval counts. */
static int part_of(const rdmeta_fold_t *f, const rdmeta_fold_began_t *began,
                   rdmeta_fold_ended_t ended, part_t *p) {
        p->began_at = began->at;
        p->began_by = began->by;
        p->unseen   = began->unseen;
        p->ended_at = ended.at > began->at ? ended.at : began->at;
        p->ended_by = ended.by;
        if (p->ended_at > f->counts_to) {
                p->ended_at = f->counts_to;
                p->ended_by = f->counts_to % RDMETA_FOLD_DAY
                                      ? RDMETA_BY_OPEN
                                      : RDMETA_BY_MIDNIGHT;
        }
        if (p->began_at >= f->counts_to)
                return 0;
        if (p->began_at < f->counts_from) {
                p->began_at = f->counts_from;
                p->began_by = RDMETA_BY_BASELINE;
                p->unseen   = -1;
                return p->ended_at > f->counts_from;
        }
        return p->ended_at > p->began_at || p->began_by != RDMETA_BY_MIDNIGHT;
}

/* Stores the columns that all intervals end with, from `column` on. */
static void put_part(const rdmeta_fold_t *f, rdmeta_fold_out_t *o, int column,
                     const part_t *p, const rdmeta_fold_began_t *began,
                     int partial) {
        rdmeta_fold_put_int64(o, column, p->began_at);
        rdmeta_fold_put_int64(o, column + 1, p->ended_at);
        rdmeta_fold_put_int64(o, column + 2, p->ended_at - p->began_at);
        rdmeta_fold_put_text(o, column + 3, reasons[p->began_by]);
        rdmeta_fold_put_text(o, column + 4, reasons[p->ended_by]);
        rdmeta_fold_put_some64(o, column + 5, p->unseen);
        put_source(o, column + 6, began->source);
        rdmeta_fold_put_int64(o, column + 8, began->version);
        rdmeta_fold_put_some64(o, column + 9, began->offset);
        rdmeta_fold_put_bool(o, column + 10, partial || f->partial);
}

/* ---- intervals ----------------------------------------------------------- */

rdmeta_err_t rdmeta_fold_put_partition(rdmeta_fold_t *f,
                                       const rdmeta_fold_topic_t *t,
                                       uint32_t partition,
                                       const rdmeta_fold_says_t *says,
                                       const rdmeta_fold_began_t *began,
                                       rdmeta_fold_ended_t ended) {
        rdmeta_fold_out_t *o = out_of(f, RDMETA_FOLD_PARTITION_INTERVAL);
        part_t p;

        if (!o || !part_of(f, began, ended, &p))
                return RDMETA_OK;
        if (rdmeta_fold_out_begin(o))
                return RDMETA_ERR_NO_MEMORY;
        put_word(f, o, 1, t->shown, 0);
        put_word(f, o, 2, says->id, 0);
        rdmeta_fold_put_int32(o, 3, (int32_t)partition);
        rdmeta_fold_put_some(o, 4, says->leader);
        rdmeta_fold_put_some(o, 5, says->epoch);
        rdmeta_fold_put_some(o, 6, began->epoch);
        put_word(f, o, 7, says->isr, 2);
        put_word(f, o, 8, says->replicas, 2);
        put_word(f, o, 9, says->adding, 2);
        put_word(f, o, 10, says->removing, 2);
        put_word(f, o, 11, says->elr, 2);
        put_word(f, o, 12, says->offline, 2);
        rdmeta_fold_put_some(o, 13, says->min_isr);
        rdmeta_fold_put_some(o, 14, says->racks);
        put_part(f, o, 15, &p, began, 0);
        return rdmeta_fold_out_end(o);
}

rdmeta_err_t rdmeta_fold_put_topic(rdmeta_fold_t *f,
                                   const rdmeta_fold_topic_t *t,
                                   const rdmeta_fold_topic_says_t *says,
                                   rdmeta_fold_ended_t ended) {
        rdmeta_fold_out_t *o = out_of(f, RDMETA_FOLD_TOPIC_INTERVAL);
        part_t p;

        if (!o || !part_of(f, &t->began, ended, &p))
                return RDMETA_OK;
        if (rdmeta_fold_out_begin(o))
                return RDMETA_ERR_NO_MEMORY;
        put_word(f, o, 1, t->shown, 0);
        put_word(f, o, 2, says->id, 0);
        rdmeta_fold_put_int32(o, 3, (int32_t)says->partitions);
        put_part(f, o, 4, &p, &t->began, !says->listed);
        return rdmeta_fold_out_end(o);
}

rdmeta_err_t rdmeta_fold_put_broker(rdmeta_fold_t *f,
                                    const rdmeta_fold_broker_t *b,
                                    rdmeta_fold_ended_t ended) {
        rdmeta_fold_out_t *o = out_of(f, RDMETA_FOLD_BROKER_INTERVAL);
        part_t p;

        if (!o || f->bucket || !part_of(f, &b->began, ended, &p))
                return RDMETA_OK;
        if (rdmeta_fold_out_begin(o))
                return RDMETA_ERR_NO_MEMORY;
        rdmeta_fold_put_int32(o, 1, b->id);
        rdmeta_fold_put_some64(o, 2, b->epoch);
        put_word(f, o, 3, b->before.rack, 0);
        put_word(f, o, 4, b->before.host, 0);
        rdmeta_fold_put_int32(o, 5, b->before.port);
        rdmeta_fold_put_maybe(o, 6, b->before.fenced);
        rdmeta_fold_put_maybe(o, 7, b->before.shutting_down);
        put_part(f, o, 8, &p, &b->began, 0);
        return rdmeta_fold_out_end(o);
}

rdmeta_err_t rdmeta_fold_put_config(rdmeta_fold_t *f,
                                    const rdmeta_fold_config_t *c,
                                    rdmeta_fold_ended_t ended) {
        rdmeta_fold_out_t *o = out_of(f, RDMETA_FOLD_CONFIG_INTERVAL);
        char number[16];
        part_t p;

        if (!o || (c->broker != RDMETA_FOLD_OF_TOPIC && f->bucket) ||
            !part_of(f, &c->began, ended, &p))
                return RDMETA_OK;
        if (rdmeta_fold_out_begin(o))
                return RDMETA_ERR_NO_MEMORY;
        put_name(o, 1,
                 c->broker == RDMETA_FOLD_OF_TOPIC ? "topic" : "broker");
        snprintf(number, sizeof(number), "%d", c->broker);
        if (c->broker == RDMETA_FOLD_OF_TOPIC)
                put_word(f, o, 2, c->resource, 0);
        else
                put_name(o, 2, c->broker < 0 ? "" : number);
        put_word(f, o, 3, c->key, 0);
        put_word(f, o, 4, c->value, 0);
        put_part(f, o, 5, &p, &c->began, 0);
        return rdmeta_fold_out_end(o);
}

rdmeta_err_t rdmeta_fold_put_controller(rdmeta_fold_t *f,
                                        const rdmeta_fold_controller_t *c,
                                        rdmeta_fold_ended_t ended) {
        rdmeta_fold_out_t *o = out_of(f, RDMETA_FOLD_CONTROLLER);
        part_t p;

        if (!o || f->bucket || !part_of(f, &c->began, ended, &p))
                return RDMETA_OK;
        if (rdmeta_fold_out_begin(o))
                return RDMETA_ERR_NO_MEMORY;
        rdmeta_fold_put_some(o, 1, c->broker);
        rdmeta_fold_put_int32(o, 2, c->epoch);
        put_part(f, o, 3, &p, &c->began, 0);
        return rdmeta_fold_out_end(o);
}

/* ---- changes ------------------------------------------------------------- */

/* Returns the rise of the epoch; -1: not known. */
static int32_t elections_of(const rdmeta_fold_row_t *row) {
        if (row->old_epoch < 0 || row->new_epoch < 0)
                return -1;
        return row->new_epoch - row->old_epoch;
}

static rdmeta_err_t put_leader_change(rdmeta_fold_t *f,
                                      const rdmeta_fold_row_t *row,
                                      int64_t at) {
        rdmeta_fold_out_t *o = out_of(f, RDMETA_FOLD_LEADER_CHANGE);

        if (!o)
                return RDMETA_OK;
        if (rdmeta_fold_out_begin(o))
                return RDMETA_ERR_NO_MEMORY;
        put_clean(o, 1, row->topic);
        put_clean(o, 2, row->topic_id);
        rdmeta_fold_put_int32(o, 3, row->partition);
        rdmeta_fold_put_int64(o, 4, at);
        rdmeta_fold_put_some(o, 5, row->old_leader);
        rdmeta_fold_put_some(o, 6, row->new_leader);
        rdmeta_fold_put_some(o, 7, row->old_epoch);
        rdmeta_fold_put_some(o, 8, row->new_epoch);
        rdmeta_fold_put_int32(o, 9, elections_of(row));
        if (row->old_epoch < 0 || row->new_epoch < 0)
                rdmeta_fold_put_null(&o->batch.columns[9], o->batch.rows);
        put_source(o, 10, row->source);
        rdmeta_fold_put_some(o, 11, row->source_broker);
        rdmeta_fold_put_some64(o, 12, row->unseen);
        rdmeta_fold_put_int64(o, 14, row->version);
        rdmeta_fold_put_some64(o, 15, row->offset);
        rdmeta_fold_put_int32(o, 16, 1);
        rdmeta_fold_put_bool(o, 17, f->partial);
        return rdmeta_fold_out_end(o);
}

static rdmeta_err_t put_other_change(rdmeta_fold_t *f,
                                     const rdmeta_fold_row_t *row,
                                     int64_t at) {
        rdmeta_fold_out_t *o = out_of(f, RDMETA_FOLD_CHANGE);

        if (!o)
                return RDMETA_OK;
        if (rdmeta_fold_out_begin(o))
                return RDMETA_ERR_NO_MEMORY;
        put_name(o, 1, rdmeta_change_kind_name(row->kind));
        put_clean(o, 2, row->topic);
        put_clean(o, 3, row->topic_id);
        rdmeta_fold_put_some(o, 4, row->partition);
        rdmeta_fold_put_some(o, 5,
                             row->kind == RDMETA_UNCLEAN_ELECTION
                                     ? row->new_leader
                                     : row->broker);
        rdmeta_fold_put_int64(o, 6, at);
        put_source(o, 7, row->source);
        rdmeta_fold_put_some(o, 8, row->source_broker);
        rdmeta_fold_put_ids(o, 9, row->old_isr);
        rdmeta_fold_put_ids(o, 10, row->new_isr);
        rdmeta_fold_put_ids(o, 11, row->old_replicas);
        rdmeta_fold_put_ids(o, 12, row->new_replicas);
        rdmeta_fold_put_ids(o, 13, row->old_offline);
        rdmeta_fold_put_ids(o, 14, row->new_offline);
        put_clean(o, 15, row->detail);
        rdmeta_fold_put_some64(o, 16, row->unseen);
        rdmeta_fold_put_int64(o, 18, row->version);
        rdmeta_fold_put_some64(o, 19, row->offset);
        rdmeta_fold_put_bool(o, 20, f->partial);
        return rdmeta_fold_out_end(o);
}

rdmeta_err_t rdmeta_fold_put_change(rdmeta_fold_t *f,
                                    const rdmeta_fold_row_t *row, int64_t at) {
        if (at < f->counts_from || at >= f->counts_to ||
            (!row->topic.data && f->bucket))
                return RDMETA_OK;
        if (row->kind == RDMETA_LEADER_CHANGED && row->partition >= 0 &&
            row->topic.data)
                return put_leader_change(f, row, at);
        return put_other_change(f, row, at);
}
