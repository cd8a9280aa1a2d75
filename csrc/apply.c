/* The first half of a write: read, merge, build aside. See apply.h. */
#include "apply.h"

#include "alloc.h"

rdmeta_pend_t *rdmeta_apply_pend(rdmeta_apply_t *a, rdmeta_entry_t *e) {
        rdmeta_cache_t *c = a->c;
        rdmeta_pend_t *p;

        if (a->n_pends == a->pends_capacity) {
                const size_t n = a->pends_capacity ? 2 * a->pends_capacity : 16;
                p              = (rdmeta_pend_t *)rdmeta_alloc(
                        &c->conf.allocator, n * sizeof(*p));
                if (!p)
                        return NULL;
                if (a->n_pends)
                        memcpy(p, a->pends, a->n_pends * sizeof(*p));
                rdmeta_free(&c->conf.allocator, a->pends,
                            a->pends_capacity * sizeof(*p));
                a->pends          = p;
                a->pends_capacity = n;
        }
        p = &a->pends[a->n_pends++];
        memset(p, 0, sizeof(*p));
        p->entry  = e;
        p->order  = e->order;
        e->staged = 1;
        return p;
}

/* ---- slots of the order array ------------------------------------------ */

/* One slot beyond the count. An all-topics answer to an empty cache gets as
 * many as it has topics, so that none is copied or wasted. */
static rdmeta_order_slot_t *tail_slot(rdmeta_apply_t *a) {
        rdmeta_order_t *o   = &a->c->order;
        const size_t need   = (size_t)o->count + a->tail + 1;
        const size_t topics = a->w.head.topics;
        rdmeta_order_slot_t *slot;

        if (need > o->capacity) {
                size_t want = need + need / 8 + 8;
                if (topics > a->c->entries)
                        want = o->count + a->tail + topics - a->c->entries;
                if (want < need)
                        want = need;
                if (rdmeta_order_reserve(o, &a->c->conf.allocator, want))
                        return NULL;
        }
        slot = &o->slots[need - 1];
        memset(slot, 0, sizeof(*slot));
        slot->seen = o->answer;
        a->tail++;
        return slot;
}

RDMETA_INLINE int slot_matches(const rdmeta_apply_t *a,
                               const rdmeta_order_slot_t *slot,
                               const uint8_t *start, uint32_t len) {
        rdmeta_digest_t d;

        if (!len || len > (size_t)(a->w.buf.end - start) ||
            slot->seen == a->c->order.answer)
                return 0;
        d = rdmeta_digest(&a->c->digest_key, start, len);
        return d.lo == slot->digest.lo && d.hi == slot->digest.hi;
}

/* A digest may be kept if the block says just what the bytes say, and they
 * are of the version that all digests are of (or will be). */
static uint32_t digest_of(const rdmeta_apply_t *a, const uint8_t *start,
                          rdmeta_digest_t *out) {
        const size_t len  = (size_t)(a->w.buf.p - start);
        const int16_t had = a->c->order.api_version;

        if (!a->verdict.exact || len >= RDMETA_ORDER_OWN ||
            (!a->all && had != -1 && had != a->api_version))
                return 0;
        *out = rdmeta_digest(&a->c->digest_key, start, len);
        return (uint32_t)len;
}

/* ---- new topics --------------------------------------------------------- */

/* A table for the names that are new. When the answer has more topics than
 * the live table could take, it is the next table at once, others included. */
static rdmeta_err_t aside_make(rdmeta_apply_t *a) {
        rdmeta_cache_t *c           = a->c;
        const rdmeta_table_t *names = rdmeta_names(c);
        const size_t topics         = a->w.head.topics;
        rdmeta_table_t *t;

        if (a->aside && rdmeta_table_room(a->aside, 0))
                return RDMETA_OK;
        if (!a->aside && topics > c->entries + rdmeta_table_room(names, 0)) {
                a->aside = rdmeta_table_grown(c, names,
                                              topics - c->entries, 0);
                a->aside_is_next = a->aside != NULL;
        } else if (!a->aside) {
                a->aside = rdmeta_table_new(&c->conf.allocator, 64, 0,
                                            &c->seed);
        } else {
                t = rdmeta_table_grown(c, a->aside, a->aside->used, 0);
                if (!t)
                        return RDMETA_ERR_NO_MEMORY;
                rdmeta_table_destroy(&c->conf.allocator, a->aside);
                a->aside = t;
        }
        return a->aside ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
}

static rdmeta_err_t stage_fresh(rdmeta_apply_t *a, const uint8_t *start,
                                uint64_t hash, rdmeta_topic_t *t) {
        rdmeta_cache_t *c = a->c;
        rdmeta_order_slot_t *slot;
        rdmeta_entry_t *e = rdmeta_entry_new(c, t);

        if (!e) {
                rdmeta_topic_destroy(&c->blocks, t);
                return RDMETA_ERR_NO_MEMORY;
        }
        slot = tail_slot(a);
        if (!slot) {
                rdmeta_entry_drop(c, e);
                return RDMETA_ERR_NO_MEMORY;
        }
        slot->entry = e;
        slot->len   = digest_of(a, start, &slot->digest);
        e->order    = c->order.count + a->tail - 1;
        rdmeta_topic_source_set(t, a->in.broker);
        rdmeta_table_put(a->aside, hash, t);
        a->fresh++;
        a->new_ids += rdmeta_topic_has_id(t) != 0;
        return RDMETA_OK;
}

static rdmeta_err_t stage_new(rdmeta_apply_t *a, const uint8_t *start) {
        rdmeta_stage_t *s       = &a->c->stage;
        const rdmeta_str_t name = s->topic.name;
        rdmeta_topic_t *t;
        rdmeta_err_t err;
        uint64_t hash;

        if (a->verdict.verdict == RDMETA_VERDICT_KEEP)
                return RDMETA_OK; /* an error that says nothing of it */
        err = aside_make(a);
        if (err)
                return err;
        hash = rdmeta_hash(a->aside->key, name.data, name.len);
        rdmeta_table_prefetch(a->aside, hash);
        if (a->verdict.verdict == RDMETA_VERDICT_TAKE)
                t = rdmeta_stage_build(s, &a->c->blocks, a->version);
        else
                t = rdmeta_topic_bare(&a->c->blocks, name, s->topic.id,
                                      a->verdict.state, a->verdict.error,
                                      a->version);
        if (!t)
                return RDMETA_ERR_NO_MEMORY;
        if (rdmeta_table_name(a->aside, hash, name.data, name.len)) {
                rdmeta_topic_destroy(&a->c->blocks, t);
                return RDMETA_ERR_MALFORMED; /* named twice */
        }
        return stage_fresh(a, start, hash, t);
}

/* ---- known topics ------------------------------------------------------- */

static int is_named_already(const rdmeta_apply_t *a, const rdmeta_entry_t *e) {
        const rdmeta_order_t *o = &a->c->order;

        return e->staged || (e->order != RDMETA_ORDER_NONE &&
                             o->slots[e->order].seen == o->answer);
}

/* The next block of a known topic in *out, or NULL: as it was. */
static rdmeta_err_t known_block(rdmeta_apply_t *a, rdmeta_entry_t *e,
                                rdmeta_pend_t *p, rdmeta_topic_t **out) {
        const rdmeta_merge_out_t *v = &a->verdict;
        const rdmeta_topic_t *old   = e->topic;
        const rdmeta_str_t name     = {old->name, old->name_len};

        *out = NULL;
        if (v->verdict == RDMETA_VERDICT_KEEP) {
                p->deadline = RDMETA_PEND_FREEZE;
                return RDMETA_OK;
        }
        if (v->verdict == RDMETA_VERDICT_STATE) {
                p->deadline = RDMETA_PEND_STATE;
                if (a->replace_all) { /* nothing of another cluster's */
                        *out = rdmeta_topic_bare(
                                &a->c->blocks, name, a->c->stage.topic.id,
                                v->state, v->error, a->version);
                        return *out ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
                }
                if (old->state == v->state && rdmeta_cold(old)->error == v->error)
                        return RDMETA_OK;
                *out = rdmeta_topic_restate(&a->c->blocks, old, v->state,
                                            v->error, a->version);
                return *out ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
        }
        p->deadline = v->kept_back ? RDMETA_PEND_FREEZE : RDMETA_PEND_MOVE;
        *out = rdmeta_stage_build(&a->c->stage, &a->c->blocks, a->version);
        if (!*out)
                return RDMETA_ERR_NO_MEMORY;
        if (rdmeta_topic_same(*out, old)) {
                rdmeta_topic_destroy(&a->c->blocks, *out);
                *out = NULL;
        }
        return RDMETA_OK;
}

static rdmeta_err_t stage_known(rdmeta_apply_t *a, rdmeta_entry_t *e,
                                const uint8_t *start) {
        rdmeta_pend_t *p = rdmeta_apply_pend(a, e);
        rdmeta_topic_t *t;
        rdmeta_err_t err;

        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        if (p->order == RDMETA_ORDER_NONE) {
                if (!tail_slot(a))
                        return RDMETA_ERR_NO_MEMORY;
                p->order = a->c->order.count + a->tail - 1;
        }
        err = known_block(a, e, p, &t);
        if (err)
                return err;
        p->topic = t;
        p->len   = digest_of(a, start, &p->digest);
        p->doubt = a->verdict.doubt;
        a->doubts += p->doubt.answers != 0;
        if (t) {
                rdmeta_topic_source_set(t, a->in.broker);
                a->replaced++;
                a->new_ids += memcmp(rdmeta_cold(t)->id,
                                     rdmeta_cold(e->topic)->id, 16) != 0;
        } else {
                a->out->unchanged += p->deadline == RDMETA_PEND_MOVE;
        }
        return RDMETA_OK;
}

/* ---- one topic of the answer -------------------------------------------- */

static void count_verdict(rdmeta_apply_t *a) {
        const rdmeta_merge_out_t *v = &a->verdict;

        a->out->advice |= v->advice;
        a->out->leaderless += v->leaderless;
        a->out->listener_not_found += v->listener_not_found;
        a->out->kept_back += v->kept_back;
        a->out->negative += v->verdict == RDMETA_VERDICT_STATE;
}

/* The slot of a known topic that is not where the cursor stood. */
static int stage_resync(rdmeta_apply_t *a, rdmeta_entry_t *e,
                        const uint8_t *start) {
        rdmeta_order_slot_t *slot;
        rdmeta_pend_t *p;
        uint32_t len;

        if (e->order == RDMETA_ORDER_NONE)
                return 0;
        a->cursor = e->order + 1;
        slot      = &a->c->order.slots[e->order];
        len       = slot->len & ~RDMETA_ORDER_OWN;
        if (!a->digests || !slot_matches(a, slot, start, len))
                return 0;
        if (!a->all || slot->len != len) {
                p = rdmeta_apply_pend(a, e);
                if (!p)
                        return -1;
                p->len    = len;
                p->digest = slot->digest;
        }
        slot->seen  = a->c->order.answer;
        a->w.buf.p  = start + len;
        a->out->unchanged++;
        a->c->stats.digest_hits++;
        return 1;
}

/* A topic asked for by an id that the broker does not know has no name. */
static rdmeta_entry_t *entry_of_id(rdmeta_apply_t *a, const uint8_t *id) {
        rdmeta_topic_t *t = NULL;

        if ((rdmeta_load64(id) | rdmeta_load64(id + 8)) != 0)
                t = rdmeta_table_id(rdmeta_ids(a->c), id);
        return t ? rdmeta_entry_of(t) : NULL;
}

static rdmeta_err_t stage_read_merge(rdmeta_apply_t *a, rdmeta_entry_t *e,
                                     const rdmeta_wire_topic_t *t) {
        rdmeta_cache_t *c = a->c;
        rdmeta_err_t err  = rdmeta_stage_read(&c->stage, &a->w.buf,
                                              a->w.fields, t);

        if (err)
                return err;
        memset(&a->in.doubt, 0, sizeof(a->in.doubt));
        if (e && e->doubt)
                a->in.doubt = c->doubts.all[e->doubt];
        err = rdmeta_merge(e && !a->replace_all ? e->topic : NULL, &c->stage,
                           &a->in, &a->verdict);
        if (!err)
                count_verdict(a);
        return err;
}

static rdmeta_err_t stage_topic(rdmeta_apply_t *a, const uint8_t *start) {
        rdmeta_table_t *names = rdmeta_names(a->c);
        rdmeta_entry_t *e     = NULL;
        rdmeta_topic_t *known;
        rdmeta_wire_topic_t t;
        rdmeta_err_t err;
        int hit;

        rdmeta_wire_topic(&a->w.buf, a->w.fields, &t);
        if (a->w.buf.bad || t.name.len > RDMETA_NAME_MAX ||
            (!t.name.len && !t.error))
                return RDMETA_ERR_MALFORMED;
        if (!t.name.len) {
                e = entry_of_id(a, t.id);
                if (e && is_named_already(a, e))
                        e = NULL; /* its name was answered, too */
        } else if (names->used) {
                known = rdmeta_table_name(
                        names, rdmeta_hash(names->key, t.name.data, t.name.len),
                        t.name.data, t.name.len);
                e = known ? rdmeta_entry_of(known) : NULL;
                if (e && is_named_already(a, e))
                        return RDMETA_ERR_MALFORMED;
                hit = e ? stage_resync(a, e, start) : 0;
                if (hit)
                        return hit < 0 ? RDMETA_ERR_NO_MEMORY : RDMETA_OK;
        }
        err = stage_read_merge(a, e, &t);
        if (err)
                return err;
        if (e)
                return stage_known(a, e, start);
        return t.name.len ? stage_new(a, start) : RDMETA_OK;
}

/* The loop over an answer. What says the same again, in the same order, under
 * the shared deadline, ends here. */
static rdmeta_err_t stage_topics(rdmeta_apply_t *a) {
        const uint32_t n  = a->w.head.topics;
        rdmeta_order_t *o = &a->c->order;
        rdmeta_err_t err;
        uint32_t i, hits = 0;

        for (i = 0; i < n; i++) {
                const uint8_t *start = a->w.buf.p;
                if (RDMETA_LIKELY(a->digests && a->all &&
                                  a->cursor < o->count)) {
                        rdmeta_order_slot_t *slot = &o->slots[a->cursor];
                        /* OWN makes a length that is longer than any */
                        if (slot_matches(a, slot, start, slot->len)) {
                                slot->seen = o->answer;
                                a->w.buf.p += slot->len;
                                a->cursor++;
                                hits++;
                                continue;
                        }
                }
                err = stage_topic(a, start);
                if (err)
                        return err;
        }
        a->out->unchanged += hits;
        a->c->stats.digest_hits += hits;
        return RDMETA_OK;
}

/* ---- the whole answer ---------------------------------------------------- */

static rdmeta_err_t check_cluster(rdmeta_apply_t *a) {
        const rdmeta_str_t had = rdmeta_table_brokers(a->c)->cluster_id;
        const rdmeta_str_t has = a->w.head.cluster_id;

        if (!had.data || !has.data || rdmeta_str_same(had, has))
                return RDMETA_OK;
        if (!(a->asked->flags & RDMETA_REQ_REBOOTSTRAPPED))
                return RDMETA_ERR_WRONG_CLUSTER;
        a->replace_all = 1;
        return RDMETA_OK;
}

static rdmeta_err_t check_close(rdmeta_apply_t *a) {
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
        /* What a topic's bytes mean depends on who is there to lead it. */
        if (a->replace_all ||
            rdmeta_brokers_lost(rdmeta_table_brokers(c), a->brokers))
                a->digests = 0;
        a->in.fields       = a->w.fields;
        a->in.brokers      = a->brokers;
        a->in.broker       = a->asked->broker;
        a->in.mono_us      = a->now.mono_us;
        a->in.sent_version = a->asked->sent_version;
        a->in.candidates   = a->asked->candidates
                                     ? a->asked->candidates
                                     : (int32_t)a->brokers->count;
        err = stage_topics(a);
        if (!err)
                err = check_close(a);
        return err ? err : rdmeta_apply_prepare(a);
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

        if (rdmeta_wait_forked(&c->wait))
                return RDMETA_ERR_FORKED;
        memset(&a, 0, sizeof(a));
        memset(&applied, 0, sizeof(applied));
        a.c           = c;
        a.asked       = asked ? asked : &unknown;
        a.now         = now;
        a.out         = &applied;
        a.api_version = api_version;
        a.all         = a.asked->asked == RDMETA_ASKED_ALL;
        rdmeta_wait_lock(&c->wait);
        a.version = rdmeta_wait_version(&c->wait) + 1;
        a.digests = c->order.api_version == api_version;
        c->order.answer++;
        err = stage_all(&a, response, len);
        if (err)
                rdmeta_apply_abort(&a);
        else
                rdmeta_apply_commit(&a);
        rdmeta_hints_end(c, a.asked, err != 0, now.mono_us);
        if (err) { /* what was counted did not happen */
                const rdmeta_applied_t failed = {
                        .error       = applied.error,
                        .advice      = applied.advice,
                        .throttle_ms = applied.throttle_ms};
                applied = failed;
        }
        c->stats.applies++;
        c->stats.apply_failures += err != 0;
        applied.version = rdmeta_wait_version(&c->wait);
        rdmeta_reclaim_collect(&c->reclaim);
        rdmeta_wait_unlock(&c->wait);
        if (out)
                *out = applied;
        return err;
}
