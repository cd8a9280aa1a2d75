/* The first half of a write: it reads an answer, merges it with what is known
 * and builds the next blocks aside. See apply_state.h. */
#include "cache/apply_state.h"

#include "base/alloc.h"
#include "cache/apply_commit.h"
#include "cache/apply_topic.h"
#include "cache/compact.h"
#include "cache/entry.h"
#include "cache/hints.h"
#include "cache/live_image.h"
#include "cache/notes.h"
#include "cache/prefetch.h"

/* ---- one topic of the answer -------------------------------------------- */

/* Returns 1 if the bytes at `start` are the ones under the slot's digest, and
 * the answer has not named the slot's topic before. */
RDMETA_INLINE int slot_matches(const rdmeta_apply_t *a,
                               const rdmeta_answer_order_slot_t *slot,
                               const uint8_t *start, uint32_t len) {
        rdmeta_digest_t d;

        if (!len || len > (size_t)(a->w.buf.end - start) ||
            slot->seen == a->c->order.answer)
                return 0;
        d = rdmeta_digest(&a->c->digest_key, start, len);
        return d.lo == slot->digest.lo && d.hi == slot->digest.hi;
}

static void count_verdict(rdmeta_apply_t *a) {
        const rdmeta_merge_out_t *v = &a->verdict;

        a->out->advice |= v->advice;
        a->out->leaderless += v->leaderless;
        a->out->listener_not_found += v->listener_not_found;
        a->out->unreachable += v->unreachable;
        a->out->kept_back += v->kept_back;
        a->out->negative += v->verdict == RDMETA_VERDICT_STATE;
}

/* Moves the cursor behind the slot of a known topic that was not at the
 * cursor. Returns 1 if its bytes are those of the last answer, and 0 if they
 * must be read. MALFORMED: this answer named it before; NO_MEMORY. */
static rdmeta_err_t stage_resync(rdmeta_apply_t *a, uint32_t order,
                                 const uint8_t *start) {
        rdmeta_answer_order_slot_t *slot = &a->c->order.slots[order];
        const uint32_t len = slot->len & ~RDMETA_ANSWER_ORDER_OWN;
        rdmeta_update_t *p;
        int same = 0;

        a->cursor = order + 1;
        if (slot->seen == a->c->order.answer)
                return RDMETA_ERR_MALFORMED;
        if (a->digests)
                same = slot_matches(a, slot, start, len);
        slot->seen = a->c->order.answer;
        if (!same)
                return 0;
        if (!a->all || slot->len != len) {
                p = rdmeta_apply_update(a, slot->entry);
                if (!p)
                        return RDMETA_ERR_NO_MEMORY;
                p->len    = len;
                p->digest = slot->digest;
        }
        a->w.buf.p = start + len;
        a->out->unchanged++;
        a->digest_hits++;
        return 1;
}

/* Returns the entry that has this id, or NULL. Where a request asked by id and
 * the broker does not know the id, the answer has no name for the topic. */
static rdmeta_entry_t *entry_of_id(rdmeta_apply_t *a, const uint8_t *id) {
        rdmeta_topic_t *t = NULL;

        if ((rdmeta_load64(id) | rdmeta_load64(id + 8)) != 0)
                t = rdmeta_table_id(rdmeta_ids(a->c), id);
        return t ? rdmeta_entry_of(a->c, t) : NULL;
}

/* Reads the rest of a topic into the builder and merges it with what `e`
 * knows; NULL: the topic is new. */
static rdmeta_err_t stage_read_merge(rdmeta_apply_t *a, rdmeta_entry_t *e,
                                     const rdmeta_wire_topic_t *t) {
        rdmeta_cache_t *c = a->c;
        rdmeta_err_t err  = rdmeta_builder_read(&c->builder, &a->w.buf,
                                                a->w.fields, t);
        const rdmeta_note_t *gone;

        if (err)
                return err;
        gone           = e ? rdmeta_note_in_grace(c, e, a->now.mono_us) : NULL;
        a->in.in_grace = gone != NULL;
        a->in.expired  = gone && gone->expired;
        a->in.given_by = gone ? (int32_t)gone->given - 1 : -1;
        a->in.gone_for_us = gone ? rdmeta_note_gone_for(gone, a->now.mono_us)
                                 : 0;
        a->in.rewind   = e ? rdmeta_rewind_of(c, e) : NULL;
        if (a->in.rewind)
                a->in.stale = rdmeta_view_deadline(&c->root, e->topic) <
                              a->now.mono_us;
        err = rdmeta_merge(e && !a->replace_all ? e->topic : NULL, &c->builder,
                           &a->in, &a->verdict);
        if (!err)
                count_verdict(a);
        return err;
}

static const rdmeta_topic_t *known_topic(const rdmeta_apply_t *a,
                                         rdmeta_str_t name) {
        const rdmeta_table_t *names = rdmeta_names(a->c);

        if (!names->used)
                return NULL;
        return rdmeta_table_find(names, name.data, name.len);
}

/* Stages the topic at `start`, which is not the one that the cursor expects.
 * MALFORMED, NO_MEMORY. */
static rdmeta_err_t stage_topic(rdmeta_apply_t *a, const uint8_t *start) {
        const rdmeta_topic_t *known;
        rdmeta_entry_t *e = NULL;
        rdmeta_wire_topic_t t;
        rdmeta_err_t err;

        rdmeta_wire_topic(&a->w.buf, a->w.fields, &t);
        if (a->w.buf.bad || t.name.len > RDMETA_NAME_MAX ||
            (!t.name.len && !t.error))
                return RDMETA_ERR_MALFORMED;
        if (!t.name.len) {
                a->nameless++;
                return rdmeta_builder_read(&a->c->builder, &a->w.buf,
                                           a->w.fields, &t);
        }
        known = known_topic(a, t.name);
        if (known) {
                err = stage_resync(a, rdmeta_topic_order(known), start);
                if (err)
                        return err == 1 ? RDMETA_OK : err;
                e = rdmeta_entry_of(a->c, known);
        }
        err = stage_read_merge(a, e, &t);
        if (err)
                return err;
        if (e)
                return rdmeta_apply_known(a, e, start);
        return rdmeta_apply_new(a, start);
}

/* Stages the topics that have no name, after all others. Brokers put them
 * first in an answer. If the answer also names the topic that had the id, only
 * the named part counts, because the topic may have another id now. */
static rdmeta_err_t stage_nameless(rdmeta_apply_t *a, rdmeta_buf_t topics) {
        rdmeta_err_t err = RDMETA_OK;
        rdmeta_wire_topic_t t;
        rdmeta_entry_t *e;

        for (a->w.buf = topics; a->nameless && !err;) {
                const uint8_t *start = a->w.buf.p;
                rdmeta_wire_topic(&a->w.buf, a->w.fields, &t);
                e = t.name.len ? NULL : entry_of_id(a, t.id);
                if (e && a->c->order.slots[e->order].seen ==
                                 a->c->order.answer)
                        e = NULL; /* its name was answered, too */
                if (t.name.len)
                        err = rdmeta_builder_read(&a->c->builder, &a->w.buf,
                                                  a->w.fields, &t);
                else
                        err = stage_read_merge(a, e, &t);
                if (!err && e) {
                        a->c->order.slots[e->order].seen =
                                a->c->order.answer;
                        err = rdmeta_apply_known(a, e, start);
                }
                a->nameless -= t.name.len == 0;
        }
        return err;
}

/* After MOST_MISSES topics in a row that were not at the cursor, the answer is
 * in another order. Topics are prefetched from then on, until END_FOLLOWS of
 * them in a row are at the cursor again. */
enum { MOST_MISSES = 4, END_FOLLOWS = 2 };

/* Stages a topic by its name, and starts or goes on with the prefetch of those
 * behind it. `rest`: the number of topics behind it. */
static rdmeta_err_t stage_by_name(rdmeta_apply_t *a,
                                  rdmeta_prefetch_t *prefetch,
                                  const uint8_t *start, uint32_t rest) {
        const uint32_t expected = a->cursor;
        rdmeta_err_t err        = stage_topic(a, start);

        if (err || !a->digests || !a->all)
                return err;
        a->follows = a->cursor == expected + 1 ? a->follows + 1 : 0;
        a->misses  = a->follows >= END_FOLLOWS ? 0 : a->misses + 1;
        if (a->misses == MOST_MISSES)
                rdmeta_prefetch_start(prefetch, a->c, &a->w.buf, a->w.fields,
                                      rest);
        else if (a->misses > MOST_MISSES)
                rdmeta_prefetch_step(prefetch);
        return RDMETA_OK;
}

/* Skips topics as long as the next one is at the cursor and has the bytes of
 * the last answer and the shared deadline; at most `most`. Returns how many.
 * Most answers are one such run, so the loop has a function and registers of
 * its own. */
static RDMETA_NOINLINE uint32_t skip_unchanged(rdmeta_apply_t *a,
                                               uint32_t most) {
        const rdmeta_answer_order_t *o    = &a->c->order;
        rdmeta_answer_order_slot_t *slot  = o->slots + a->cursor;
        const uint32_t room               = o->count - a->cursor;
        const uint8_t *p                  = a->w.buf.p;
        uint32_t n;

        if (most > room)
                most = room;
        /* With OWN, a length exceeds that of any answer. */
        for (n = 0; n < most && slot_matches(a, slot, p, slot->len); n++) {
                slot->seen = o->answer;
                p += slot->len;
                slot++;
        }
        a->w.buf.p = p;
        a->cursor += n;
        return n;
}

/* Stages all topics of an answer. For most topics one comparison of digests is
 * enough. */
static rdmeta_err_t stage_topics(rdmeta_apply_t *a) {
        const rdmeta_buf_t topics = a->w.buf;
        rdmeta_err_t err          = RDMETA_OK;
        uint32_t rest, hits, all = 0;
        rdmeta_prefetch_t prefetch;
        rdmeta_buf_t end;

        for (rest = a->w.head.topics; rest; rest--) {
                if (a->digests && a->all && a->misses < MOST_MISSES &&
                    a->cursor < a->c->order.count) {
                        hits = skip_unchanged(a, rest);
                        all += hits;
                        rest -= hits;
                        if (hits)
                                a->misses = 0;
                        if (!rest)
                                break;
                }
                err = stage_by_name(a, &prefetch, a->w.buf.p, rest - 1);
                if (err)
                        return err;
        }
        a->out->unchanged += all;
        a->digest_hits += all;
        end = a->w.buf;
        if (a->nameless) {
                err      = stage_nameless(a, topics);
                a->w.buf = end;
        }
        return err;
}

/* ---- the end of staging -------------------------------------------------- */

/* Frees the names about which the answer said nothing. They served only to find
 * a name given twice. */
static void drop_undecided(rdmeta_apply_t *a) {
        rdmeta_topic_t *t;

        while ((t = a->undecided) != NULL) {
                a->undecided =
                        (rdmeta_topic_t *)(uintptr_t)rdmeta_cold(t)->link;
                rdmeta_table_drop(a->aside, rdmeta_name_hash(a->aside, t), t);
                rdmeta_topic_destroy(&a->c->blocks, t);
        }
}

/* Stages that a topic keeps its deadline, if it follows the shared one. */
static rdmeta_err_t absent_freeze(rdmeta_apply_t *a, rdmeta_entry_t *e) {
        rdmeta_update_t *p;

        if (atomic_load_explicit(&e->topic->deadline, memory_order_relaxed) !=
            RDMETA_DEADLINE_SHARED)
                return RDMETA_OK;
        p = rdmeta_apply_update(a, e);
        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        p->deadline = RDMETA_UPDATE_FREEZE;
        if (a->digests) {
                const rdmeta_answer_order_slot_t *slot =
                        &a->c->order.slots[e->order];
                p->len    = slot->len & ~RDMETA_ANSWER_ORDER_OWN;
                p->digest = slot->digest;
        }
        return RDMETA_OK;
}

/* Stages the end of a negative topic's reasons from earlier answers: its
 * absence answers them. NO_MEMORY. */
static rdmeta_err_t absent_again(rdmeta_apply_t *a, rdmeta_entry_t *e) {
        const uint32_t due = rdmeta_due_of(a->c, e);
        rdmeta_update_t *p;

        if (!(due & ~(uint32_t)RDMETA_DUE_OF_BLOCK))
                return RDMETA_OK;
        p = rdmeta_apply_update(a, e);
        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        p->deadline  = RDMETA_UPDATE_FREEZE;
        p->due       = (uint8_t)(due & RDMETA_DUE_OF_BLOCK);
        p->due_known = 1;
        return RDMETA_OK;
}

static rdmeta_err_t absent_one(rdmeta_apply_t *a, rdmeta_entry_t *e) {
        const rdmeta_topic_t *t = e->topic;
        const uint16_t state    = rdmeta_merge_absent(t, &a->in);

        if (a->replace_all && t->state != RDMETA_TOPIC_WAIT)
                return rdmeta_apply_absent(a, e, RDMETA_TOPIC_GONE);
        if (state != t->state)
                return rdmeta_apply_absent(a, e, state);
        return state == RDMETA_TOPIC_VALID ? absent_freeze(a, e)
                                           : absent_again(a, e);
}

static rdmeta_err_t prepare_absent(rdmeta_apply_t *a) {
        const rdmeta_answer_order_t *o = &a->c->order;
        rdmeta_err_t err;
        uint32_t i;

        if (!a->all && !a->replace_all)
                return RDMETA_OK;
        for (i = 0; i < o->count; i++) {
                rdmeta_entry_t *e = o->slots[i].entry;
                if (o->slots[i].seen == o->answer || !e)
                        continue;
                err = absent_one(a, e);
                if (err)
                        return err;
        }
        return RDMETA_OK;
}

/* Ends staging once the whole answer was read: stages absent topics, drops the
 * names about which it said nothing, and reserves all room that commit needs.
 * NO_MEMORY. */
static rdmeta_err_t prepare(rdmeta_apply_t *a) {
        rdmeta_cache_t *c = a->c;
        rdmeta_err_t err  = prepare_absent(a);

        drop_undecided(a);
        if (!err && a->fresh && !a->aside_is_next)
                err = rdmeta_entry_reserve(c, a->fresh);
        if (!err && a->new_ids)
                err = rdmeta_ids_reserve(c, a->new_ids);
        if (!err)
                err = rdmeta_notes_reserve(c, a->notes);
        if (!err)
                err = rdmeta_live_images_reserve(c, a->n_updates + a->fresh);
        if (err)
                return err;
        rdmeta_transaction_init(&a->write, c, a->now, RDMETA_SOURCE_POLL,
                                a->in.broker);
        return rdmeta_transaction_reserve(&a->write, a->replaced + a->fresh);
}

/* ---- the whole answer ---------------------------------------------------- */

/* Returns WRONG_CLUSTER if the answer has another cluster id than the cache.
 * After a rebootstrap it takes the other cluster and replaces all topics. */
static rdmeta_err_t check_cluster(rdmeta_apply_t *a) {
        const rdmeta_str_t known    = rdmeta_table_brokers(a->c)->cluster_id;
        const rdmeta_str_t answered = a->w.head.cluster_id;

        if (!known.data || !answered.data ||
            rdmeta_str_same(known, answered))
                return RDMETA_OK;
        if (!(a->asked->flags & RDMETA_REQ_REBOOTSTRAPPED))
                return RDMETA_ERR_WRONG_CLUSTER;
        a->replace_all = 1;
        return RDMETA_OK;
}

/* Reads the end of the answer, and returns an error if the answer as a whole
 * has one or names no broker. Sets the advice that goes with it. */
static rdmeta_err_t reject_failed_answer(rdmeta_apply_t *a) {
        rdmeta_err_t err = rdmeta_wire_close(&a->w);

        if (err)
                return err;
        a->out->error = a->w.head.error;
        if (a->w.head.error) {
                a->out->advice = RDMETA_ADVICE_ASK_AGAIN;
                if (a->w.head.error == RDMETA_E_REBOOTSTRAP_REQUIRED)
                        a->out->advice = RDMETA_ADVICE_REBOOTSTRAP;
                return RDMETA_ERR_RESPONSE;
        }
        if (a->w.head.brokers == 0) {
                a->out->advice = RDMETA_ADVICE_ASK_AGAIN |
                                 RDMETA_ADVICE_ASK_OTHER;
                return RDMETA_ERR_NO_BROKERS;
        }
        return RDMETA_OK;
}

/* Stages a whole answer. */
static rdmeta_err_t stage_all(rdmeta_apply_t *a, const void *response,
                              size_t len) {
        rdmeta_cache_t *c = a->c;
        rdmeta_err_t err  = rdmeta_wire_open(&a->w, response, len,
                                             a->api_version, a->asked->flags);

        if (err)
                return err;
        a->out->throttle_ms = a->w.head.throttle_ms;
        err = rdmeta_brokers_read(&c->conf.allocator, &a->w,
                                  rdmeta_table_brokers(c), a->version,
                                  &a->brokers);
        if (err)
                return err;
        a->out->topics = a->w.head.topics;
        err            = check_cluster(a);
        if (err)
                return err;
        a->brokers_changed =
                !rdmeta_brokers_same(rdmeta_table_brokers(c), a->brokers);
        /* A leader counts only if the answer has that broker. So the same
         * bytes mean something else once a broker is lost. */
        a->forget = a->replace_all ||
                    rdmeta_brokers_lost(rdmeta_table_brokers(c), a->brokers);
        a->digests &= !a->forget;
        a->in.fields       = a->w.fields;
        a->in.brokers      = a->brokers;
        a->in.broker       = a->asked->broker;
        a->in.mono_us      = a->now.mono_us;
        a->in.max_age_us   = c->conf.max_age_us;
        a->in.sent_version = a->asked->sent_version;
        a->in.sent_known   = a->asked->flags & RDMETA_REQ_SENT_VERSION;
        a->in.candidates   = a->asked->candidates
                                     ? a->asked->candidates
                                     : (int32_t)a->brokers->count;
        a->provenance.broker = a->in.broker;
        err = rdmeta_reasons_number(&c->reasons, a->asked->reason,
                                    &a->provenance.reason);
        if (!err)
                err = stage_topics(a);
        if (!err)
                err = reject_failed_answer(a);
        return err ? err : prepare(a);
}

/* Frees what was staged and not committed, and the scratch memory. */
static void apply_free(rdmeta_apply_t *a) {
        const rdmeta_allocator_t *allocator = &a->c->conf.allocator;
        rdmeta_answer_order_t *o            = &a->c->order;
        uint32_t k;
        size_t i;

        drop_undecided(a);
        rdmeta_reasons_forget(&a->c->reasons, a->reasons);
        for (i = 0; i < a->n_updates; i++) {
                rdmeta_topic_destroy(&a->c->blocks, a->updates[i].topic);
                rdmeta_rewind_free(a->c, a->updates[i].rewind);
        }
        for (k = o->count; k < o->count + a->tail; k++)
                if (o->slots[k].entry)
                        rdmeta_entry_drop(a->c, o->slots[k].entry);
        rdmeta_free(allocator, a->updates,
                    a->updates_capacity * sizeof(*a->updates));
        rdmeta_table_destroy(allocator, a->aside);
        rdmeta_brokers_destroy(allocator, a->brokers);
        a->aside   = NULL;
        a->brokers = NULL;
}

rdmeta_err_t rdmeta_cache_apply(rdmeta_cache_t *c, const void *response,
                                size_t len, int16_t api_version,
                                const rdmeta_request_t *asked,
                                rdmeta_time_t now, rdmeta_applied_t *out) {
        const rdmeta_request_t unknown = {.asked  = RDMETA_ASKED_UNKNOWN,
                                          .broker = -1};
        rdmeta_applied_t applied;
        rdmeta_apply_t a;
        rdmeta_err_t err;

        if (rdmeta_notify_forked(&c->notify))
                return RDMETA_ERR_FORKED;
        memset(&a, 0, sizeof(a));
        memset(&applied, 0, sizeof(applied));
        a.c           = c;
        a.asked       = asked ? asked : &unknown;
        a.now         = now;
        a.out         = &applied;
        a.api_version = api_version;
        a.all         = a.asked->asked == RDMETA_ASKED_ALL;
        rdmeta_notify_lock(&c->notify);
        a.reasons = c->reasons.count;
        a.version = rdmeta_notify_version(&c->notify) + 1;
        a.digests = c->order.api_version == api_version;
        rdmeta_entry_answer_begin(c);
        err = stage_all(&a, response, len);
        if (!err) {
                rdmeta_apply_commit(&a);
                rdmeta_notify_answered(&c->notify);
        }
        apply_free(&a);
        rdmeta_builder_trim(&c->builder);
        if (!err || a.asked->asked != RDMETA_ASKED_UNKNOWN)
                rdmeta_hints_end(c, a.asked, err != 0, now.mono_us);
        if (err) { /* the counts are of an answer that was not applied */
                const rdmeta_applied_t failed = {
                        .error       = applied.error,
                        .advice      = applied.advice,
                        .throttle_ms = applied.throttle_ms};
                applied = failed;
        }
        c->stats.applies++;
        c->stats.apply_failures += err != 0;
        applied.version = rdmeta_notify_version(&c->notify);
        rdmeta_compact(c, 512 + applied.topics / 4,
                       64 + applied.topics / 64 + 2 * (size_t)applied.changed);
        rdmeta_entry_collect(c);
        rdmeta_notify_unlock(&c->notify);
        if (out)
                *out = applied;
        return err;
}
