/* Writes without an answer: sweep, which ends what is past its deadline; purge;
 * forget. */
#include "cache/transaction.h"

#include "cache/compact.h"
#include "cache/entry.h"
#include "cache/live_image.h"
#include "cache/notes.h"
#include "cache/tree.h"
#include "topic/builder_write.h"
#include "topic/diff.h"

/* ---- sweep --------------------------------------------------------------- */

/* The most that compact does per sweep: about a millisecond. */
enum { SWEEP_LOOKS = 32 << 10, SWEEP_MOVES = 4 << 10 };

/* Returns the next entry of `list` that is past its deadline; NULL: none. */
static rdmeta_entry_t *sweep_due(const rdmeta_cache_t *c, int list,
                                 int64_t mono_us) {
        rdmeta_deadlines_node_t *n = rdmeta_deadlines_due(&c->deadlines, list,
                                                          mono_us);

        return n ? RDMETA_CONTAINER(n, rdmeta_entry_t, deadlines) : NULL;
}

/* Gives an absent topic its time once more. The caller has reserved. */
static void sweep_postpone(rdmeta_cache_t *c, rdmeta_entry_t *e,
                           int64_t mono_us) {
        const int64_t ttl = rdmeta_merge_ttl(&c->conf, e->topic->state);

        rdmeta_entry_deadline(c, e, rdmeta_deadlines_after(mono_us, ttl));
        rdmeta_entry_relist(c, e, mono_us);
}

/* Records topics as removed that were absent for too long. They are retained:
 * their ids and epochs stay known. One that a broker gave meanwhile waits for
 * as long again: that broker's next answer brings it back. NO_MEMORY. */
static rdmeta_err_t sweep_absent(rdmeta_cache_t *c, rdmeta_time_t now) {
        rdmeta_topic_t *old, *t;
        rdmeta_entry_t *e;
        rdmeta_transaction_t w;

        rdmeta_transaction_init(&w, c, now, RDMETA_SOURCE_EXPIRY, -1);
        while ((e = sweep_due(c, RDMETA_DEADLINES_ABSENT, now.mono_us)) !=
               NULL) {
                old = e->topic;
                if (!w.begun) {
                        const size_t n = rdmeta_deadlines_count(
                                &c->deadlines, RDMETA_DEADLINES_ABSENT);
                        rdmeta_err_t err = rdmeta_transaction_reserve(&w, n);

                        if (!err)
                                err = rdmeta_notes_reserve(c, n);
                        if (err)
                                return err;
                }
                if (rdmeta_note_take_given(c, e)) {
                        sweep_postpone(c, e, now.mono_us);
                        continue;
                }
                t = rdmeta_topic_restate(&c->blocks, old, RDMETA_TOPIC_GONE, 0,
                                         w.version);
                if (!t)
                        break; /* the next sweep will try again */
                if (!w.begun)
                        rdmeta_transaction_begin(&w, NULL);
                rdmeta_topic_provenance_set(t, rdmeta_topic_provenance(old));
                /* A past deadline: it is retained for max age from now on. */
                atomic_init(&t->deadline, now.mono_us - 1);
                rdmeta_entry_swap(c, e, t);
                rdmeta_note_expired(c, e, now.mono_us);
                rdmeta_note_due(c, e, 0);
                rdmeta_transaction_item(&w, old, t);
                rdmeta_entry_relist(c, e, now.mono_us);
        }
        rdmeta_transaction_end(&w, w.begun);
        return RDMETA_OK;
}

/* Returns 1 if one of the due topics was never recorded as removed. Its last
 * answer was an error, and it still has partitions. */
static int sweep_is_change(const rdmeta_cache_t *c, int64_t mono_us) {
        rdmeta_deadlines_iter_t it;
        const rdmeta_deadlines_node_t *n;

        rdmeta_deadlines_iter_init(&it, &c->deadlines,
                                   RDMETA_DEADLINES_RETAINED);
        while ((n = rdmeta_deadlines_iter_next(&it)) &&
               n->deadline_us < mono_us) {
                const rdmeta_entry_t *e =
                        RDMETA_CONTAINER(n, const rdmeta_entry_t, deadlines);
                if (e->topic->state != RDMETA_TOPIC_GONE &&
                    rdmeta_topic_count(e->topic) > 0)
                        return 1;
        }
        return 0;
}

/* Erases topics that were retained for long enough. It makes a version only if
 * one of them was not recorded as removed before. `erased` becomes at least the
 * version of each erased topic. So a waiter that has an older version still
 * learns that the topic has changed. NO_MEMORY. */
static rdmeta_err_t sweep_retained(rdmeta_cache_t *c, rdmeta_time_t now) {
        const int changed = sweep_is_change(c, now.mono_us);
        rdmeta_entry_t *e;
        rdmeta_transaction_t w;

        rdmeta_transaction_init(&w, c, now, RDMETA_SOURCE_EXPIRY, -1);
        w.version -= !changed; /* without a change, the version stays */
        while ((e = sweep_due(c, RDMETA_DEADLINES_RETAINED, now.mono_us)) !=
               NULL) {
                rdmeta_topic_t *t = e->topic;

                if (!w.begun) {
                        const rdmeta_err_t err = rdmeta_transaction_reserve(
                                &w, rdmeta_deadlines_count(
                                            &c->deadlines,
                                            RDMETA_DEADLINES_RETAINED));
                        if (err)
                                return err;
                        rdmeta_transaction_begin(&w, NULL);
                }
                if (rdmeta_cold(t)->version > c->erased)
                        c->erased = rdmeta_cold(t)->version;
                rdmeta_entry_erase(c, e);
                rdmeta_transaction_item(&w, t, NULL);
        }
        if (changed)
                c->erased = w.version;
        rdmeta_transaction_end(&w, changed);
        return RDMETA_OK;
}

int64_t rdmeta_cache_sweep(rdmeta_cache_t *c, rdmeta_time_t now) {
        rdmeta_entry_t *e;
        int64_t next, shared;
        int i;

        if (rdmeta_notify_forked(&c->notify))
                return INT64_MAX;
        rdmeta_notify_lock(&c->notify);
        for (i = RDMETA_DEADLINES_VALID; i < RDMETA_DEADLINES_CLASSES; i++) {
                if (i == RDMETA_DEADLINES_ABSENT ||
                    i == RDMETA_DEADLINES_RETAINED)
                        continue; /* these make versions, below */
                while ((e = sweep_due(c, i, now.mono_us)) != NULL)
                        rdmeta_entry_unhint(c, e, now.mono_us);
        }
        sweep_absent(c, now);
        sweep_retained(c, now);
        next   = rdmeta_deadlines_next(&c->deadlines);
        shared = atomic_load_explicit(&c->root.shared_deadline,
                                      memory_order_relaxed);
        if (shared >= now.mono_us && shared < next)
                next = shared;
        rdmeta_compact(c, SWEEP_LOOKS, SWEEP_MOVES);
        rdmeta_notes_trim(c);
        rdmeta_live_images_trim(c);
        rdmeta_epoch_look(&c->epochs);
        rdmeta_notify_unlock(&c->notify);
        /* An entry is still in time at its deadline. */
        return next == INT64_MAX ? next : next + 1;
}

/* ---- purge --------------------------------------------------------------- */

/* Returns 1 if a purge changes anything that the changelog records: brokers,
 * the cluster id, a topic that was seen. It records no name that was only asked
 * for or denied. */
static int purge_is_change(const rdmeta_cache_t *c) {
        const rdmeta_brokers_t *b   = rdmeta_table_brokers(c);
        const rdmeta_table_t *names = rdmeta_names(c);
        uint32_t k;

        if (b->count || b->cluster_id.data)
                return 1;
        for (k = 0; k <= names->mask; k++) {
                const rdmeta_topic_t *t = rdmeta_slot_topic(
                        atomic_load_explicit(&names->slots[k],
                                             memory_order_relaxed));
                if (t && t != &rdmeta_tombstone.topic &&
                    rdmeta_change_differs(t, NULL))
                        return 1;
        }
        return 0;
}

static void purge_topics(rdmeta_transaction_t *w) {
        rdmeta_cache_t *c     = w->c;
        rdmeta_table_t *names = rdmeta_names(c);
        uint32_t k;

        for (k = 0; k <= names->mask; k++) {
                rdmeta_topic_t *t = rdmeta_slot_topic(atomic_load_explicit(
                        &names->slots[k], memory_order_relaxed));
                if (!t || t == &rdmeta_tombstone.topic)
                        continue;
                rdmeta_entry_erase(c, rdmeta_entry_of(c, t));
                if (t->state == RDMETA_TOPIC_WAIT)
                        rdmeta_entry_retire(c, t);
                else
                        rdmeta_transaction_item(w, t, NULL);
        }
}

rdmeta_err_t rdmeta_cache_purge(rdmeta_cache_t *c, rdmeta_time_t now) {
        rdmeta_brokers_t *none = NULL;
        rdmeta_err_t err;
        rdmeta_transaction_t w;
        int changed;

        if (rdmeta_notify_forked(&c->notify))
                return RDMETA_ERR_FORKED;
        rdmeta_notify_lock(&c->notify);
        changed = purge_is_change(c);
        rdmeta_transaction_init(&w, c, now, RDMETA_SOURCE_PURGE, -1);
        w.version -= !changed;
        err = rdmeta_transaction_reserve(&w, c->entries);
        if (!err) {
                none = rdmeta_brokers_empty(&c->conf.allocator, w.version);
                err  = none ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
        }
        if (!err) {
                rdmeta_tree_expect(c, SIZE_MAX);
                rdmeta_transaction_begin(&w, none);
                purge_topics(&w);
                rdmeta_transaction_brokers(&w, none);
                c->order.count = c->order.holes = 0; /* no entry is left */
                c->order.api_version            = -1;
                c->erased                       = w.version;
                c->all_answered                 = 0;
                c->notes.walk                   = 0; /* no topic is left */
                rdmeta_transaction_end(&w, changed);
        }
        rdmeta_entry_collect(c);
        rdmeta_notify_unlock(&c->notify);
        return err;
}

/* ---- forget -------------------------------------------------------------- */

/* Marks of an entry during one call. */
enum { MARK_FORGET = 1 };

/* The work of one call of forget. */
typedef struct forget {
        size_t n;       /* entries to erase */
        int64_t topics; /* those that lookups return something for */
        int items;      /* 1: the transaction gets at least one of them */
        int changed;    /* 1: the changelog records one of them */
} forget_t;

/* Marks the entries of the names, each once. */
static void forget_mark(rdmeta_cache_t *c, const rdmeta_str_t *topics,
                        size_t n, forget_t *f) {
        size_t i;

        for (i = 0; i < n; i++) {
                rdmeta_entry_t *e = rdmeta_entry_find(c, topics[i].data,
                                                      topics[i].len);
                if (!e || e->staged)
                        continue;
                e->staged = MARK_FORGET;
                f->n++;
                f->topics += rdmeta_topic_is_visible(e->topic) != 0;
                if (e->topic->state == RDMETA_TOPIC_WAIT)
                        continue;
                f->items = 1;
                f->changed |= rdmeta_change_differs(e->topic, NULL) != 0;
        }
}

/* Removes the marks, after a failure. */
static void forget_unmark(rdmeta_cache_t *c, const rdmeta_str_t *topics,
                          size_t n) {
        size_t i;

        for (i = 0; i < n; i++) {
                rdmeta_entry_t *e = rdmeta_entry_find(c, topics[i].data,
                                                      topics[i].len);
                if (e)
                        e->staged = 0;
        }
}

/* Erases the entries of the names. */
static void forget_erase(rdmeta_transaction_t *w, const rdmeta_str_t *topics,
                         size_t n) {
        rdmeta_cache_t *c = w->c;
        size_t i;

        for (i = 0; i < n; i++) {
                rdmeta_entry_t *e = rdmeta_entry_find(c, topics[i].data,
                                                      topics[i].len);
                rdmeta_topic_t *t;

                if (!e)
                        continue; /* or the name came before */
                t = e->topic;
                rdmeta_entry_erase(c, e);
                if (t->state == RDMETA_TOPIC_WAIT) {
                        rdmeta_entry_retire(c, t);
                        continue;
                }
                if (rdmeta_cold(t)->version > c->erased)
                        c->erased = rdmeta_cold(t)->version;
                rdmeta_transaction_item(w, t, NULL);
        }
}

int64_t rdmeta_cache_forget(rdmeta_cache_t *c, const rdmeta_str_t *topics,
                            size_t n, rdmeta_time_t now) {
        forget_t f = {0};
        rdmeta_err_t err;
        rdmeta_transaction_t w;

        if (rdmeta_notify_forked(&c->notify))
                return RDMETA_ERR_FORKED;
        rdmeta_notify_lock(&c->notify);
        forget_mark(c, topics, n, &f);
        rdmeta_transaction_init(&w, c, now, RDMETA_SOURCE_PURGE, -1);
        w.version -= !f.changed; /* without a change, the version stays */
        err = rdmeta_transaction_reserve(&w, f.n);
        if (err) {
                forget_unmark(c, topics, n);
        } else if (f.n) {
                rdmeta_tree_expect(c, f.n);
                if (f.items)
                        rdmeta_transaction_begin(&w, NULL);
                forget_erase(&w, topics, n);
                if (f.changed)
                        c->erased = w.version;
                rdmeta_transaction_end(&w, f.changed);
        }
        rdmeta_entry_collect(c);
        rdmeta_notify_unlock(&c->notify);
        return err ? err : f.topics;
}
