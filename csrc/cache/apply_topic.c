/* Stages what an answer says of one topic: its block, its slot of the order
 * array, its update. */
#include "cache/apply_topic.h"

#include "base/alloc.h"
#include "cache/entry.h"
#include "cache/notes.h"
#include "topic/builder_write.h"
#include "topic/diff.h"

rdmeta_update_t *rdmeta_apply_update(rdmeta_apply_t *a, rdmeta_entry_t *e) {
        rdmeta_cache_t *c = a->c;
        rdmeta_update_t *p;

        if (a->n_updates == a->updates_capacity) {
                const size_t n =
                        a->updates_capacity ? 2 * a->updates_capacity : 16;
                p = (rdmeta_update_t *)rdmeta_alloc(
                        &c->conf.allocator, n * sizeof(*p));
                if (!p)
                        return NULL;
                if (a->n_updates)
                        memcpy(p, a->updates, a->n_updates * sizeof(*p));
                rdmeta_free(&c->conf.allocator, a->updates,
                            a->updates_capacity * sizeof(*p));
                a->updates          = p;
                a->updates_capacity = n;
        }
        p = &a->updates[a->n_updates++];
        memset(p, 0, sizeof(*p));
        p->entry = e;
        return p;
}

/* ---- slots of the order array ------------------------------------------ */

/* Returns one more slot beyond the count; NULL: no memory. Where an answer has
 * more topics than the cache, it reserves a slot for each of them at once. So
 * the first answer copies no slot and wastes none. */
static rdmeta_answer_order_slot_t *tail_slot(rdmeta_apply_t *a) {
        rdmeta_answer_order_t *o = &a->c->order;
        const size_t need        = (size_t)o->count + a->tail + 1;
        const size_t topics      = a->w.head.topics;
        rdmeta_answer_order_slot_t *slot;

        if (need > o->capacity) {
                size_t want = need + need / 8 + 8;
                if (topics > a->c->entries)
                        want = o->count + a->tail + topics - a->c->entries;
                if (want < need)
                        want = need;
                if (rdmeta_answer_order_reserve(o, &a->c->conf.allocator, want))
                        return NULL;
        }
        slot = &o->slots[need - 1];
        memset(slot, 0, sizeof(*slot));
        slot->seen = o->answer;
        a->tail++;
        return slot;
}

/* Writes the digest of a topic's bytes to *out. Returns their length, or 0 if
 * no digest may be kept. It may be kept if the block says just what the bytes
 * say, and the bytes have the API version that all digests (will) have. */
static uint32_t digest_of(const rdmeta_apply_t *a, const uint8_t *start,
                          rdmeta_digest_t *out) {
        const size_t len    = (size_t)(a->w.buf.p - start);
        const int16_t known = a->c->order.api_version;

        if (!a->verdict.exact || len >= RDMETA_ANSWER_ORDER_OWN ||
            (!a->all && known != -1 && known != a->api_version))
                return 0;
        *out = rdmeta_digest(&a->c->digest_key, start, len);
        return (uint32_t)len;
}

/* ---- new topics --------------------------------------------------------- */

/* Makes a table for the new names, or room in it. If the live table has no
 * room for all topics of the answer, the table also takes the known names. It
 * is the next live table then. NO_MEMORY. */
static rdmeta_err_t aside_make(rdmeta_apply_t *a) {
        rdmeta_cache_t *c           = a->c;
        const rdmeta_table_t *names = rdmeta_names(c);
        const size_t topics         = a->w.head.topics;
        rdmeta_table_t *t;

        if (a->aside && rdmeta_table_room(a->aside, 0))
                return RDMETA_OK;
        if (!a->aside && topics > c->entries + rdmeta_table_room(names, 0)) {
                a->aside = rdmeta_entry_table_grown(c, names,
                                                    topics - c->entries, 0);
                a->aside_is_next = a->aside != NULL;
        } else if (!a->aside) {
                a->aside = rdmeta_table_new(&c->conf.allocator, 64, 0,
                                            &c->seed);
        } else {
                t = rdmeta_entry_table_grown(c, a->aside, a->aside->used, 0);
                if (!t)
                        return RDMETA_ERR_NO_MEMORY;
                rdmeta_table_destroy(&c->conf.allocator, a->aside);
                a->aside = t;
        }
        return a->aside ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
}

/* From this many new topics the size of the others is estimated. */
enum { FRESH_SAMPLE = 64 };

/* Reserves the memory for the rest of a first fill, so that it is touched in
 * one go and none of it is left over. The size is an estimate, and never more
 * than the bytes that are still to be read. A failure does no harm. */
static void fresh_expect(rdmeta_apply_t *a) {
        const size_t left = rdmeta_buf_left(&a->w.buf);
        rdmeta_cache_t *c = a->c;
        size_t more, bytes, room = left;
        int i;

        if (a->w.head.topics < c->entries + 8 * FRESH_SAMPLE)
                return;
        more = a->w.head.topics - c->entries - FRESH_SAMPLE;
        for (i = 0; i < RDMETA_MEMORY_SLABS; i++) {
                bytes = a->fresh_of.bytes[i] / FRESH_SAMPLE * more;
                bytes = bytes < room ? bytes : room;
                rdmeta_slab_reserve(&c->blocks.slabs[i], bytes);
                room -= bytes;
        }
        bytes = more * sizeof(rdmeta_entry_t);
        rdmeta_slab_reserve(&c->entry_slab, bytes < left ? bytes : left);
}

/* Stages the entry and slot of a new topic. Takes `t`. NO_MEMORY. */
static rdmeta_err_t stage_fresh(rdmeta_apply_t *a, const uint8_t *start,
                                uint64_t hash, rdmeta_topic_t *t) {
        rdmeta_cache_t *c                = a->c;
        rdmeta_answer_order_slot_t *slot = tail_slot(a);
        rdmeta_pieces_t of;
        int i;

        if (!slot || !rdmeta_entry_new(c, t, c->order.count + a->tail - 1)) {
                a->tail -= slot != NULL;
                rdmeta_topic_destroy(&c->blocks, t);
                return RDMETA_ERR_NO_MEMORY;
        }
        slot->len = digest_of(a, start, &slot->digest);
        if (a->verdict.due) { /* then there is no digest */
                slot->due = a->verdict.due;
                a->notes++;
        }
        rdmeta_topic_provenance_set(t, a->provenance);
        rdmeta_table_put(a->aside, hash, t);
        a->fresh++;
        of = rdmeta_topic_pieces(&c->blocks, t);
        for (i = 0; i < RDMETA_MEMORY_SLABS; i++)
                a->fresh_of.bytes[i] += of.bytes[i];
        if (a->fresh == FRESH_SAMPLE)
                fresh_expect(a);
        a->new_ids += rdmeta_topic_has_id(t) != 0;
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_apply_new(rdmeta_apply_t *a, const uint8_t *start) {
        rdmeta_builder_t *s     = &a->c->builder;
        const rdmeta_str_t name = s->topic.name;
        rdmeta_topic_t *t;
        rdmeta_err_t err;
        uint64_t hash;

        err = aside_make(a);
        if (err)
                return err;
        hash = rdmeta_hash(a->aside->key, name.data, name.len);
        rdmeta_table_prefetch(a->aside, hash);
        if (a->verdict.verdict == RDMETA_VERDICT_TAKE)
                t = rdmeta_builder_build(s, &a->c->blocks, a->version);
        else /* KEEP: the error says nothing of the topic */
                t = rdmeta_topic_bare(&a->c->blocks, name, s->topic.id,
                                      a->verdict.state, a->verdict.error,
                                      a->version);
        if (!t)
                return RDMETA_ERR_NO_MEMORY;
        if (rdmeta_table_name(a->aside, hash, name.data, name.len)) {
                rdmeta_topic_destroy(&a->c->blocks, t);
                return RDMETA_ERR_MALFORMED; /* named twice */
        }
        if (a->verdict.verdict != RDMETA_VERDICT_KEEP)
                return stage_fresh(a, start, hash, t);
        rdmeta_cold(t)->link = (uint64_t)(uintptr_t)a->undecided;
        a->undecided         = t;
        rdmeta_table_put(a->aside, hash, t);
        return RDMETA_OK;
}

/* ---- known topics ------------------------------------------------------- */

/* Builds the next block of a known topic into *out; NULL: the block stays.
 * Sets how its deadline moves. NO_MEMORY. */
static rdmeta_err_t known_block(rdmeta_apply_t *a, rdmeta_entry_t *e,
                                rdmeta_update_t *p, rdmeta_topic_t **out) {
        const rdmeta_merge_out_t *v = &a->verdict;
        const rdmeta_topic_t *old   = e->topic;
        const rdmeta_str_t name     = {old->name, old->name_len};

        *out = NULL;
        if (v->verdict == RDMETA_VERDICT_KEEP) {
                p->deadline = RDMETA_UPDATE_FREEZE;
                return RDMETA_OK;
        }
        if (v->verdict == RDMETA_VERDICT_STATE) {
                p->deadline = RDMETA_UPDATE_STATE;
                if (a->replace_all) { /* drop the other cluster's facts */
                        *out = rdmeta_topic_bare(
                                &a->c->blocks, name, a->c->builder.topic.id,
                                v->state, v->error, a->version);
                        return *out ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
                }
                if (old->state == v->state &&
                    rdmeta_topic_error(old) == v->error) {
                        if (v->state == RDMETA_TOPIC_MISSING)
                                p->deadline = RDMETA_UPDATE_FREEZE;
                        return RDMETA_OK;
                }
                *out = rdmeta_topic_restate(&a->c->blocks, old, v->state,
                                            v->error, a->version);
                return *out ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
        }
        p->deadline = v->kept_back && !v->in_part ? RDMETA_UPDATE_FREEZE
                                                  : RDMETA_UPDATE_MOVE;
        *out = rdmeta_builder_build(&a->c->builder, &a->c->blocks, a->version);
        if (!*out)
                return RDMETA_ERR_NO_MEMORY;
        /* An ISR in another order is not a change and makes no version. */
        if (rdmeta_topic_same(*out, old) || !rdmeta_change_differs(old, *out)) {
                rdmeta_topic_destroy(&a->c->blocks, *out);
                *out = NULL;
        }
        return RDMETA_OK;
}

/* Sets the update's reasons and copies the rewind that merge made. If the block
 * stays, so do the reasons that follow from it. After a change of cluster the
 * old rewind ends. NO_MEMORY. */
static rdmeta_err_t update_note(rdmeta_apply_t *a, rdmeta_update_t *p) {
        const rdmeta_merge_out_t *v = &a->verdict;
        uint32_t due                = v->due;

        if (v->verdict == RDMETA_VERDICT_KEEP)
                due |= rdmeta_due_of(a->c, p->entry) & RDMETA_DUE_OF_BLOCK;
        p->due       = (uint8_t)due;
        p->due_known = 1;
        p->counted   = v->counted || a->replace_all;
        p->given     = v->given;
        a->notes += due || v->rewind.answers || v->rewind.count ||
                    v->state == RDMETA_TOPIC_GONE;
        if (!v->rewind.answers && !v->rewind.count)
                return RDMETA_OK;
        p->rewind = rdmeta_rewind_copy(a->c, &v->rewind);
        return p->rewind ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
}

/* ---- topics of which the answer says nothing ---------------------------- */

/* Returns the next block of a topic of which the answer says nothing;
 * NULL: no memory. Ids and epochs of another cluster are dropped, because this
 * cluster's answers must not be compared with them. */
static rdmeta_topic_t *absent_block(rdmeta_apply_t *a,
                                    const rdmeta_topic_t *old,
                                    uint16_t state) {
        const rdmeta_str_t name = {old->name, old->name_len};

        if (a->replace_all)
                return rdmeta_topic_bare(&a->c->blocks, name,
                                         rdmeta_wire_zero_id, state, 0,
                                         a->version);
        return rdmeta_topic_restate(&a->c->blocks, old, state, 0, a->version);
}

rdmeta_err_t rdmeta_apply_absent(rdmeta_apply_t *a, rdmeta_entry_t *e,
                                 uint16_t state) {
        rdmeta_update_t *p = rdmeta_apply_update(a, e);

        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        p->deadline  = state == RDMETA_TOPIC_GONE ? RDMETA_UPDATE_GONE
                                                  : RDMETA_UPDATE_STATE;
        p->counted   = a->replace_all != 0;
        p->due       = (uint8_t)rdmeta_merge_due_in(state);
        p->due_known = 1;
        a->notes += p->due || state == RDMETA_TOPIC_GONE;
        p->topic    = absent_block(a, e->topic, state);
        if (!p->topic)
                return RDMETA_ERR_NO_MEMORY;
        rdmeta_topic_provenance_set(p->topic, a->provenance);
        a->replaced++;
        a->out->absent++;
        return RDMETA_OK;
}

/* ---- a known topic as a whole -------------------------------------------- */

rdmeta_err_t rdmeta_apply_known(rdmeta_apply_t *a, rdmeta_entry_t *e,
                                const uint8_t *start) {
        rdmeta_update_t *p;
        rdmeta_topic_t *t;
        rdmeta_err_t err;

        /* The cache knows a topic of another cluster. */
        if (a->replace_all && e->topic->state != RDMETA_TOPIC_WAIT &&
            a->verdict.verdict == RDMETA_VERDICT_KEEP)
                return rdmeta_apply_absent(a, e, RDMETA_TOPIC_GONE);
        p = rdmeta_apply_update(a, e);
        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        err = known_block(a, e, p, &t);
        if (err)
                return err;
        p->topic = t;
        p->len   = digest_of(a, start, &p->digest);
        err      = update_note(a, p);
        if (err)
                return err;
        if (t) {
                rdmeta_topic_provenance_set(t, a->provenance);
                a->replaced++;
                a->new_ids += memcmp(rdmeta_cold(t)->id,
                                     rdmeta_cold(e->topic)->id, 16) != 0;
        } else {
                a->out->unchanged += p->deadline == RDMETA_UPDATE_MOVE;
        }
        return RDMETA_OK;
}
