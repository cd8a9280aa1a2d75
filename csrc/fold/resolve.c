#include "fold/resolve.h"

#include "fold/brokers.h"
#include "fold/intervals.h"
#include "fold/topics.h"

/* ---- the open version ---------------------------------------------------- */

rdmeta_fold_entry_t *rdmeta_fold_touch(rdmeta_fold_t *f,
                                       rdmeta_fold_topic_t *t,
                                       uint32_t partition, uint8_t reason,
                                       const rdmeta_fold_began_t *next) {
        rdmeta_fold_partition_t *p =
                rdmeta_fold_partition_find(f, t, partition);
        rdmeta_fold_entry_t *e;
        void *grown;

        if (!p->entry) {
                grown = rdmeta_fold_room(f, f->entries, f->n_entries,
                                         &f->entries_room, f->n_entries + 1,
                                         sizeof(*f->entries));
                if (!grown)
                        return NULL;
                f->entries   = grown;
                e            = &f->entries[f->n_entries++];
                p->entry     = (uint32_t)f->n_entries;
                e->topic     = t;
                e->partition = partition;
                e->reason    = t->ended ? t->end_reason : RDMETA_BY_NOTHING;
                e->ended     = t->ended;
                e->given     = 0;
                e->before    = p->says;
                e->next      = *next;
        }
        e = &f->entries[p->entry - 1];
        if (reason < e->reason)
                e->reason = reason;
        if (next->epoch >= 0 || e->next.epoch < 0)
                e->next = *next;
        return e;
}

rdmeta_err_t rdmeta_fold_touch_topic(rdmeta_fold_t *f, rdmeta_fold_topic_t *t,
                                     uint8_t reason,
                                     const rdmeta_fold_began_t *next) {
        void *grown;

        if (!t->open) {
                grown = rdmeta_fold_room(f, f->touched, f->n_touched,
                                         &f->touched_room, f->n_touched + 1,
                                         sizeof(*f->touched));
                if (!grown)
                        return RDMETA_ERR_NO_MEMORY;
                f->touched                 = grown;
                f->touched[f->n_touched++] = t;
                t->open                    = 1;
                t->reason                  = RDMETA_BY_NOTHING;
        }
        if (reason < t->reason)
                t->reason = reason;
        t->next = *next;
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_fold_touch_broker(rdmeta_fold_t *f,
                                      rdmeta_fold_broker_t *b, uint8_t reason,
                                      const rdmeta_fold_began_t *next) {
        void *grown;

        if (!b->open) {
                grown = rdmeta_fold_room(f, f->moved, f->n_moved,
                                         &f->moved_room, f->n_moved + 1,
                                         sizeof(*f->moved));
                if (!grown)
                        return RDMETA_ERR_NO_MEMORY;
                f->moved               = grown;
                f->moved[f->n_moved++] = b;
                b->open                = 1;
                b->reason              = RDMETA_BY_NOTHING;
        }
        if (reason < b->reason)
                b->reason = reason;
        b->next = *next;
        return RDMETA_OK;
}

/* ---- resolving ----------------------------------------------------------- */

rdmeta_fold_began_t rdmeta_fold_began(const rdmeta_fold_began_t *next,
                                      uint8_t reason) {
        rdmeta_fold_began_t began = *next;

        began.by = reason;
        if (reason == RDMETA_BY_BASELINE && next->at % RDMETA_FOLD_DAY == 0)
                began.by = RDMETA_BY_MIDNIGHT;
        if (reason == RDMETA_BY_BASELINE)
                began.unseen = -1;
        return began;
}

static rdmeta_err_t resolve_entry(rdmeta_fold_t *f, rdmeta_fold_entry_t *e) {
        rdmeta_fold_topic_t *t = e->topic;
        rdmeta_fold_partition_t *p =
                rdmeta_fold_partition_find(f, t, e->partition);
        const rdmeta_fold_ended_t ended = {e->next.at, e->reason};
        int differs;

        if (rdmeta_fold_racks(f, p->says.replicas, &p->says.racks))
                return RDMETA_ERR_NO_MEMORY;
        p->says.min_isr = rdmeta_fold_min_isr(f, t);
        if (e->next.epoch < 0 && p->stands && !e->ended)
                e->next.epoch = p->began.epoch;
        differs = e->ended || p->live != p->stands ||
                  memcmp(&p->says, &e->before, sizeof(p->says));
        if (differs && p->stands &&
            rdmeta_fold_put_partition(f, t, e->partition, &e->before,
                                      &p->began, ended))
                return RDMETA_ERR_NO_MEMORY;
        if (differs && p->live)
                p->began = rdmeta_fold_began(&e->next, e->reason);
        p->stands = p->live;
        p->entry  = 0;
        return RDMETA_OK;
}

/* Sets *differs if a partition that no record names says something else, for
 * the topics have another minimum ISR, or a broker has another rack. */
static rdmeta_err_t is_wide(rdmeta_fold_t *f, const rdmeta_fold_wide_t *wide,
                            const rdmeta_fold_topic_t *t,
                            const rdmeta_fold_partition_t *p, int *differs) {
        int32_t racks;

        *differs = rdmeta_fold_min_isr(f, t) != p->says.min_isr;
        if (wide == &f->min_isrs)
                return RDMETA_OK;
        if (rdmeta_fold_racks(f, p->says.replicas, &racks))
                return RDMETA_ERR_NO_MEMORY;
        *differs = racks != p->says.racks;
        return RDMETA_OK;
}

/* Touches each partition that says something else for a wide reason. */
static rdmeta_err_t resolve_wide(rdmeta_fold_t *f, rdmeta_fold_wide_t *wide) {
        size_t i;
        uint32_t k;
        int differs;

        if (wide->reason == RDMETA_BY_NOTHING)
                return RDMETA_OK;

        rdmeta_fold_topics_sort(f);
        for (i = 0; i < f->n_topics; i++) {
                rdmeta_fold_topic_t *t = f->sorted[i];
                rdmeta_fold_partitions_sort(f, t);
                for (k = 0; k < t->n; k++) {
                        const rdmeta_fold_partition_t *p = &t->partitions[k];
                        if (!p->live || p->entry)
                                continue;
                        if (is_wide(f, wide, t, p, &differs) ||
                            (differs && !rdmeta_fold_touch(f, t, p->number,
                                                           wide->reason,
                                                           &wide->began)))
                                return RDMETA_ERR_NO_MEMORY;
                }
        }
        wide->reason = RDMETA_BY_NOTHING;
        return RDMETA_OK;
}

static rdmeta_err_t resolve_broker(rdmeta_fold_t *f, rdmeta_fold_broker_t *b) {
        const rdmeta_fold_ended_t ended = {b->next.at, b->reason};
        const int differs = memcmp(&b->says, &b->before, sizeof(b->says));

        if (differs && b->before.listed && rdmeta_fold_put_broker(f, b, ended))
                return RDMETA_ERR_NO_MEMORY;
        if (differs && b->says.listed) {
                b->began = rdmeta_fold_began(&b->next, b->reason);
                b->epoch = b->next_epoch;
        }
        b->before = b->says;
        b->open   = 0;
        return RDMETA_OK;
}

/* Ends the version for its brokers. Frees those that are gone if they are many:
 * a broker that restarts has its rack meanwhile, but no cluster has so many
 * that do. */
static rdmeta_err_t resolve_brokers(rdmeta_fold_t *f) {
        const rdmeta_fold_broker_t *last;

        while (f->resolved_brokers < f->n_moved) {
                if (resolve_broker(f, f->moved[f->resolved_brokers]))
                        return RDMETA_ERR_NO_MEMORY;
                f->resolved_brokers++;
        }
        if (f->gone > RDMETA_FOLD_GONE && f->n_moved) {
                last = f->moved[f->n_moved - 1];
                rdmeta_fold_racks_moved(f, last->reason, &last->next);
                f->n_moved = f->resolved_brokers = 0;
                rdmeta_fold_brokers_drop(f);
        }
        return RDMETA_OK;
}

/* Looking at this many partitions costs nothing, compared with a record. */
enum { FEW = 64 };

/* Returns whether a topic has ended, and none of its partitions says
 * anything. */
static int is_empty(const rdmeta_fold_topic_t *t) {
        uint32_t i;

        if (t->stands || t->live || t->min_isr >= 0 || t->polled_min_isr >= 0)
                return 0;
        for (i = 0; i < t->n; i++) {
                const rdmeta_fold_says_t *s = &t->partitions[i].says;
                if (s->id || s->isr || s->replicas || s->offline ||
                    s->adding || s->removing || s->elr)
                        return 0;
        }
        return 1;
}

static rdmeta_err_t resolve_topic(rdmeta_fold_t *f, rdmeta_fold_topic_t *t) {
        const rdmeta_fold_ended_t ended = {t->next.at, t->reason};
        rdmeta_fold_topic_says_t *now   = &t->says;
        int exists, differs, look;

        now->partitions = t->live;
        exists          = now->exists || t->live;
        differs = t->ended || exists != t->stands ||
                  now->id != t->before.id ||
                  now->partitions != t->before.partitions ||
                  now->listed != t->before.listed;
        if (differs && t->stands &&
            rdmeta_fold_put_topic(f, t, &t->before, ended))
                return RDMETA_ERR_NO_MEMORY;
        if (differs && exists)
                t->began = rdmeta_fold_began(&t->next, t->reason);
        t->before = *now;
        t->stands = (uint8_t)exists;
        look      = t->ended || t->n <= FEW;
        t->open = t->ended = 0;
        if (look && is_empty(t))
                rdmeta_fold_topic_drop(f, t);
        return RDMETA_OK;
}

/* Frees the words that no state refers to. No version is open. */
static void sweep(rdmeta_fold_t *f) {
        rdmeta_fold_interned_t *w = &f->interned;
        rdmeta_avl_iter_t it;
        const rdmeta_avl_node_t *node;
        size_t i;
        uint32_t k;

        for (i = 0; i < f->n_topics; i++) {
                const rdmeta_fold_topic_t *t = f->topics[i];
                rdmeta_fold_interned_mark(w, t->shown);
                rdmeta_fold_interned_mark(w, t->says.id);
                for (k = 0; k < t->n; k++) {
                        const rdmeta_fold_says_t *s = &t->partitions[k].says;
                        rdmeta_fold_interned_mark(w, s->id);
                        rdmeta_fold_interned_mark(w, s->isr);
                        rdmeta_fold_interned_mark(w, s->replicas);
                        rdmeta_fold_interned_mark(w, s->offline);
                        rdmeta_fold_interned_mark(w, s->adding);
                        rdmeta_fold_interned_mark(w, s->removing);
                        rdmeta_fold_interned_mark(w, s->elr);
                }
        }
        rdmeta_avl_iter_init(&it, &f->brokers, NULL);
        while ((node = rdmeta_avl_iter_next(&it)) != NULL) {
                const rdmeta_fold_broker_t *b = (const void *)node;
                rdmeta_fold_interned_mark(w, b->says.host);
                rdmeta_fold_interned_mark(w, b->says.rack);
        }
        rdmeta_avl_iter_init(&it, &f->configs, NULL);
        while ((node = rdmeta_avl_iter_next(&it)) != NULL) {
                const rdmeta_fold_config_t *c = (const void *)node;
                rdmeta_fold_interned_mark(w, c->resource);
                rdmeta_fold_interned_mark(w, c->key);
                rdmeta_fold_interned_mark(w, c->value);
        }
        rdmeta_fold_interned_sweep(w);
}

rdmeta_err_t rdmeta_fold_resolve(rdmeta_fold_t *f) {
        if (resolve_brokers(f) || resolve_wide(f, &f->min_isrs) ||
            resolve_wide(f, &f->racks))
                return RDMETA_ERR_NO_MEMORY;
        while (f->resolved < f->n_entries) {
                if (resolve_entry(f, &f->entries[f->resolved]))
                        return RDMETA_ERR_NO_MEMORY;
                f->resolved++;
        }
        while (f->resolved_topics < f->n_touched) {
                if (resolve_topic(f, f->touched[f->resolved_topics]))
                        return RDMETA_ERR_NO_MEMORY;
                f->resolved_topics++;
        }
        f->n_entries = f->resolved = 0;
        f->n_touched = f->resolved_topics = 0;
        f->n_moved = f->resolved_brokers = 0;
        if (rdmeta_fold_interned_many(&f->interned))
                sweep(f);
        return RDMETA_OK;
}

/* ---- midnights, and the end ---------------------------------------------- */

/* Makes an interval begin anew at the midnight that has ended it. */
static void again(rdmeta_fold_began_t *began, int64_t at) {
        began->at     = at;
        began->by     = RDMETA_BY_MIDNIGHT;
        began->unseen = -1;
}

/* Ends the intervals of a topic and of its partitions. With `on` they begin
 * again, else they are gone. A midnight that is repeated, because there was no
 * memory, gives no second row for an interval: see part_of() of intervals.c. */
static rdmeta_err_t end_topic(rdmeta_fold_t *f, rdmeta_fold_topic_t *t,
                              rdmeta_fold_ended_t ended, int on) {
        uint32_t i;

        rdmeta_fold_partitions_sort(f, t);
        for (i = 0; i < t->n; i++) {
                rdmeta_fold_partition_t *p = &t->partitions[i];
                if (!p->stands)
                        continue;
                if (rdmeta_fold_put_partition(f, t, p->number, &p->says,
                                              &p->began, ended))
                        return RDMETA_ERR_NO_MEMORY;
                again(&p->began, ended.at);
                p->stands = (uint8_t)on;
        }
        if (!t->stands)
                return RDMETA_OK;
        if (rdmeta_fold_put_topic(f, t, &t->before, ended))
                return RDMETA_ERR_NO_MEMORY;
        again(&t->began, ended.at);
        t->stands = (uint8_t)on;
        return RDMETA_OK;
}

static rdmeta_err_t end_brokers(rdmeta_fold_t *f, rdmeta_fold_ended_t ended,
                                int on) {
        const rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;

        rdmeta_avl_iter_init(&it, &f->brokers, NULL);
        while ((node = rdmeta_avl_iter_next(&it)) != NULL) {
                rdmeta_fold_broker_t *b =
                        (rdmeta_fold_broker_t *)(uintptr_t)node;
                if (!b->before.listed)
                        continue;
                if (rdmeta_fold_put_broker(f, b, ended))
                        return RDMETA_ERR_NO_MEMORY;
                again(&b->began, ended.at);
                if (!on)
                        rdmeta_fold_broker_gone(f, b);
        }
        return RDMETA_OK;
}

static rdmeta_err_t end_controller(rdmeta_fold_t *f,
                                   rdmeta_fold_ended_t ended) {
        rdmeta_fold_controller_t *c = &f->controller;

        if (c->epoch >= 0 && rdmeta_fold_put_controller(f, c, ended))
                return RDMETA_ERR_NO_MEMORY;
        again(&c->began, ended.at);
        return RDMETA_OK;
}

static rdmeta_err_t end_configs(rdmeta_fold_t *f, rdmeta_fold_ended_t ended,
                                int on) {
        const rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;

        while (!on && (node = rdmeta_avl_first(&f->configs)) != NULL) {
                rdmeta_fold_config_t *c =
                        (rdmeta_fold_config_t *)(uintptr_t)node;
                if (rdmeta_fold_put_config(f, c, ended))
                        return RDMETA_ERR_NO_MEMORY;
                rdmeta_fold_config_drop(f, c);
        }
        rdmeta_avl_iter_init(&it, &f->configs, NULL);
        while ((node = rdmeta_avl_iter_next(&it)) != NULL) {
                rdmeta_fold_config_t *c =
                        (rdmeta_fold_config_t *)(uintptr_t)node;
                if (rdmeta_fold_put_config(f, c, ended))
                        return RDMETA_ERR_NO_MEMORY;
                again(&c->began, ended.at);
        }
        return RDMETA_OK;
}

static rdmeta_err_t end_all(rdmeta_fold_t *f, rdmeta_fold_ended_t ended,
                            int on) {
        rdmeta_err_t err = rdmeta_fold_resolve(f);
        size_t i;

        if (err)
                return err;
        rdmeta_fold_topics_sort(f);
        for (i = 0; i < f->n_topics && !err; i++)
                err = end_topic(f, f->sorted[i], ended, on);
        if (!err)
                err = end_brokers(f, ended, on);
        if (!err)
                err = end_configs(f, ended, on);
        if (!err)
                err = end_controller(f, ended);
        return err;
}

rdmeta_err_t rdmeta_fold_midnight(rdmeta_fold_t *f, int64_t at) {
        const rdmeta_fold_ended_t ended = {at, RDMETA_BY_MIDNIGHT};
        const rdmeta_err_t err          = end_all(f, ended, 1);

        if (!err)
                f->day_end = at + RDMETA_FOLD_DAY;
        return err;
}

int64_t rdmeta_fold_least_time(const rdmeta_fold_t *f) {
        const int64_t midnight = f->day_end - RDMETA_FOLD_DAY;

        return f->clock > midnight ? f->clock : midnight;
}

int rdmeta_fold_is_far(const rdmeta_fold_t *f, int64_t at) {
        return f->begun && at - rdmeta_fold_least_time(f) >
                                   RDMETA_FOLD_DAYS * RDMETA_FOLD_DAY;
}

rdmeta_err_t rdmeta_fold_midnights(rdmeta_fold_t *f, int64_t at) {
        rdmeta_err_t err = RDMETA_OK;

        if (f->clock == INT64_MIN || at < f->day_end)
                return RDMETA_OK;
        if (rdmeta_fold_is_far(f, at))
                return rdmeta_fold_wrong(
                        f, RDMETA_ERR_MALFORMED,
                        "a time of %lld us lies more than %d days after the"
                        " last record or cut",
                        (long long)at, RDMETA_FOLD_DAYS);
        if (!f->begun) /* nothing stands: no row would come of a midnight */
                f->day_end = (at / RDMETA_FOLD_DAY + 1) * RDMETA_FOLD_DAY;
        while (!err && f->day_end <= at)
                err = rdmeta_fold_midnight(f, f->day_end);
        return err;
}

rdmeta_err_t rdmeta_fold_stop(rdmeta_fold_t *f, int64_t at, uint8_t by) {
        const rdmeta_fold_ended_t ended = {at, by};
        const rdmeta_err_t err          = end_all(f, ended, 0);

        if (err)
                return err;
        rdmeta_fold_topics_destroy(f);
        rdmeta_fold_clear(f);
        f->begun = 0;
        return RDMETA_OK;
}
