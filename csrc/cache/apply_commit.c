/* The second half of a write: it stores pointers and cannot fail. See
 * apply_state.h. */
#include "cache/apply_commit.h"

#include "cache/entry.h"
#include "cache/hints.h"
#include "cache/notes.h"
#include "cache/tree.h"

/* Sets deadline and list of an entry whose topic the answer named. `how`:
 * RDMETA_UPDATE_... */
static void commit_deadline(rdmeta_apply_t *a, rdmeta_entry_t *e, int how) {
        rdmeta_cache_t *c = a->c;
        const int64_t now = a->now.mono_us;
        int64_t deadline;

        if (how == RDMETA_UPDATE_FREEZE) {
                deadline = rdmeta_view_deadline(&c->root, e->topic);
        } else if (a->all && e->topic->state == RDMETA_TOPIC_VALID) {
                rdmeta_entry_deadline(c, e, RDMETA_DEADLINE_SHARED);
                rdmeta_entry_list(c, e, RDMETA_DEADLINES_NONE, 0);
                return;
        } else if (how == RDMETA_UPDATE_GONE) {
                deadline = now - 1; /* it is retained for max age */
        } else {
                deadline = rdmeta_deadlines_after(
                        now, rdmeta_merge_ttl(&c->conf, e->topic->state));
        }
        rdmeta_entry_deadline(c, e, deadline);
        rdmeta_entry_relist(c, e, now);
}

static void commit_swap(rdmeta_apply_t *a, const rdmeta_update_t *p) {
        rdmeta_entry_t *e      = p->entry;
        rdmeta_topic_t *old    = e->topic;
        const int64_t deadline = rdmeta_view_deadline(&a->c->root, old);

        /* An update that freezes the deadline reads it from the new block. */
        atomic_store_explicit(&p->topic->deadline, deadline,
                              memory_order_relaxed);
        rdmeta_entry_swap(a->c, e, p->topic);
        if (old->state == RDMETA_TOPIC_WAIT) {
                rdmeta_transaction_item(&a->write, NULL, p->topic);
                rdmeta_entry_retire(a->c, old);
        } else {
                rdmeta_transaction_item(&a->write, old, p->topic);
        }
}

/* Commits what the answer says of a known topic: block, provenance, digest,
 * reasons, rewind, deadline and list. */
static void commit_known(rdmeta_apply_t *a, const rdmeta_update_t *p) {
        rdmeta_entry_t *e = p->entry;
        rdmeta_answer_order_slot_t *slot;

        if (p->topic)
                commit_swap(a, p);
        else if (p->deadline != RDMETA_UPDATE_FREEZE)
                rdmeta_entry_provenance(a->c, e, a->provenance);
        slot         = &a->c->order.slots[e->order];
        slot->len    = p->len | (slot->len & RDMETA_ANSWER_ORDER_OWN);
        slot->digest = p->digest;
        if (e->topic->state == RDMETA_TOPIC_WAIT) {
                /* Nothing was learned, but it is no longer in flight. */
                rdmeta_entry_unhint(a->c, e, a->now.mono_us);
                return;
        }
        if (p->topic)
                rdmeta_note_gone(a->c, e,
                                 rdmeta_topic_has_gone(p->topic) &&
                                                 !a->replace_all
                                         ? a->now.mono_us
                                         : RDMETA_GONE_NEVER);
        if (p->given)
                rdmeta_note_given(a->c, e, a->in.broker);
        if (p->due_known)
                rdmeta_note_due(a->c, e, p->due);
        if (p->counted)
                rdmeta_note_rewind(a->c, e, p->rewind);
        /* An answer that was kept out does not change the list either, so a
         * retained topic is not retained for longer because of it. */
        if (p->topic || p->deadline != RDMETA_UPDATE_FREEZE ||
            e->list == RDMETA_DEADLINES_NONE ||
            e->list == RDMETA_DEADLINES_HINT)
                commit_deadline(a, e, p->deadline);
}

/* Commits an update. A topic stays in flight if its hint was made after the
 * request left. */
static void commit_update(rdmeta_apply_t *a, const rdmeta_update_t *p) {
        rdmeta_entry_t *e                     = p->entry;
        rdmeta_answer_order_slot_t *slots     = a->c->order.slots;
        const int64_t deadline                = e->deadlines.deadline_us;
        const rdmeta_answer_order_hint_t hint = slots[e->order].hint;
        const int keeps = rdmeta_entry_keeps_hint(a->c, e, a->asked,
                                                  a->now.mono_us);

        if (keeps && !p->topic && e->topic->state == RDMETA_TOPIC_WAIT)
                return; /* nothing was learned, and it is still in flight */
        commit_known(a, p);
        if (!keeps)
                return;
        rdmeta_hint_known(a->c, e, deadline, a->now.mono_us);
        slots[e->order].len &= RDMETA_ANSWER_ORDER_OWN;
        slots[e->order].hint = hint;
}

/* Publishes the new topics. */
static void commit_fresh(rdmeta_apply_t *a) {
        rdmeta_cache_t *c        = a->c;
        rdmeta_answer_order_t *o = &c->order;
        uint32_t i;

        rdmeta_tree_expect(c, a->fresh);
        for (i = o->count; i < o->count + a->tail; i++) {
                rdmeta_entry_t *e = o->slots[i].entry;
                if (!e)
                        continue;
                if (!o->slots[i].len)
                        rdmeta_note_due(c, e, (uint32_t)o->slots[i].due);
                commit_deadline(a, e, RDMETA_UPDATE_MOVE);
                rdmeta_entry_publish(c, e, a->aside_is_next);
                rdmeta_transaction_item(&a->write, NULL, e->topic);
        }
        if (a->aside_is_next) {
                rdmeta_entry_table_publish(c, &c->root.names, a->aside);
                a->aside = NULL;
        }
}

/* Moves the shared deadline, before any topic that follows it is published.
 * Topics that must not move with it first get the old value as their own. */
static void commit_shared(rdmeta_apply_t *a) {
        rdmeta_cache_t *c = a->c;
        const rdmeta_provenance_t provenance =
                rdmeta_view_shared_provenance(&c->root);
        int64_t deadline;
        size_t i;

        for (i = 0; i < a->n_updates; i++) {
                rdmeta_entry_t *e = a->updates[i].entry;
                if (a->updates[i].deadline != RDMETA_UPDATE_FREEZE ||
                    atomic_load_explicit(&e->topic->deadline,
                                         memory_order_relaxed) !=
                            RDMETA_DEADLINE_SHARED)
                        continue;
                rdmeta_entry_provenance(c, e, provenance);
                rdmeta_entry_deadline(
                        c, e, rdmeta_view_deadline(&c->root, e->topic));
        }
        if (!a->all)
                return;
        deadline = rdmeta_deadlines_after(a->now.mono_us, c->conf.max_age_us);
        atomic_store_explicit(&c->root.shared_deadline, deadline,
                              memory_order_relaxed);
        atomic_store_explicit(&c->root.fresh_until, deadline,
                              memory_order_relaxed);
        atomic_store_explicit(&c->root.shared_provenance,
                              rdmeta_provenance_word(a->provenance),
                              memory_order_release);
}

/* Publishes the answer's broker table if it differs, which makes a version.
 * Otherwise it stores only the controller, without a version: on KRaft each
 * answer names a random broker as the controller. */
static void commit_brokers(rdmeta_apply_t *a) {
        rdmeta_cache_t *c     = a->c;
        rdmeta_brokers_t *old = rdmeta_table_brokers(c);

        if (!a->brokers_changed) {
                atomic_store_explicit(&old->controller,
                                      rdmeta_brokers_controller(a->brokers),
                                      memory_order_relaxed);
                rdmeta_brokers_destroy(&c->conf.allocator, a->brokers);
                a->brokers = NULL;
                return;
        }
        rdmeta_transaction_brokers(&a->write, a->brokers);
        a->brokers = NULL;
}

static void commit_stats(rdmeta_apply_t *a) {
        rdmeta_stats_t *s = &a->c->stats;

        a->out->changed         = (uint32_t)(a->replaced + a->fresh);
        a->out->brokers_changed = (uint32_t)a->brokers_changed;
        s->topics_applied += a->out->topics;
        s->topics_unchanged += a->out->unchanged;
        s->digest_hits += a->digest_hits;
        s->topics_changed += a->out->changed;
        s->topics_kept_back += a->out->kept_back;
        s->reasons_dropped += a->asked->reason.data && !a->provenance.reason;
}

void rdmeta_apply_commit(rdmeta_apply_t *a) {
        rdmeta_cache_t *c = a->c;
        const int changed = a->replaced || a->fresh || a->brokers_changed;
        size_t i;

        if (a->forget)
                c->order.api_version = -1;
        if (a->all || c->order.api_version == -1)
                rdmeta_answer_order_forget(&c->order, a->api_version);
        if (changed)
                rdmeta_transaction_begin(
                        &a->write, a->brokers_changed ? a->brokers : NULL);
        commit_brokers(a);
        commit_shared(a);
        c->all_answered = a->all || (c->all_answered && !a->replace_all);
        if (a->fresh)
                commit_fresh(a);
        c->order.count += a->tail;
        for (i = 0; i < a->n_updates; i++)
                commit_update(a, &a->updates[i]);
        rdmeta_transaction_end(&a->write, changed);
        commit_stats(a);
        a->tail = a->fresh = 0;
        a->n_updates       = 0;
        a->reasons         = c->reasons.count;
}
