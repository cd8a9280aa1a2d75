/* The entries of a cache, their tables and lists. See entry.h. */
#include "cache/entry.h"

#include "cache/handles.h"
#include "cache/live_image.h"
#include "cache/notes.h"
#include "cache/tree.h"

#include "base/alloc.h"

rdmeta_entry_t *rdmeta_entry_find(rdmeta_cache_t *c, const char *name,
                                  size_t len) {
        const rdmeta_topic_t *t;

        if (len == 0 || len > RDMETA_NAME_MAX)
                return NULL;
        t = rdmeta_table_find(rdmeta_names(c), name, len);
        return t ? rdmeta_entry_of(c, t) : NULL;
}

rdmeta_entry_t *rdmeta_entry_new(rdmeta_cache_t *c, rdmeta_topic_t *topic,
                                 uint32_t order) {
        rdmeta_entry_t *e =
                (rdmeta_entry_t *)rdmeta_slab_alloc(&c->entry_slab, sizeof(*e));

        if (!e)
                return NULL;
        memset(e, 0, sizeof(*e));
        e->topic = topic;
        e->order = order;
        rdmeta_cold(topic)->link    = order;
        c->order.slots[order].entry = e;
        return e;
}

void rdmeta_entry_drop(rdmeta_cache_t *c, rdmeta_entry_t *e) {
        rdmeta_topic_destroy(&c->blocks, e->topic);
        rdmeta_slab_free(&c->entry_slab, e, sizeof(*e));
}

void rdmeta_entry_retire(rdmeta_cache_t *c, rdmeta_topic_t *t) {
        rdmeta_epoch_topic(&c->epochs, t, c->epochs.taken);
}

void rdmeta_entry_collect(rdmeta_cache_t *c) {
        rdmeta_live_images_trim(c);
        rdmeta_epoch_collect(&c->epochs);
}

/* ---- tables ------------------------------------------------------------ */

static uint64_t topic_hash(const rdmeta_table_t *t, const rdmeta_topic_t *topic,
                           int ids) {
        return ids ? rdmeta_hash_id(t->key, rdmeta_cold(topic)->id)
                   : rdmeta_name_hash(t, topic);
}

static rdmeta_table_t *table_copy(rdmeta_cache_t *c,
                                  const rdmeta_table_t *from, size_t n,
                                  int ids) {
        rdmeta_table_t *t = rdmeta_table_new(
                &c->conf.allocator, from->used - from->tombstones + n, ids,
                &c->seed);
        uint32_t k;

        if (!t)
                return NULL;
        for (k = 0; k <= from->mask; k++) {
                rdmeta_topic_t *topic = rdmeta_slot_topic(
                        atomic_load_explicit(&from->slots[k],
                                             memory_order_relaxed));
                if (topic && topic != &rdmeta_tombstone.topic)
                        rdmeta_table_put(t, topic_hash(t, topic, ids), topic);
        }
        c->stats.rehashes++;
        return t;
}

/* Tries a few keys, until no probe is too long. */
rdmeta_table_t *rdmeta_entry_table_grown(rdmeta_cache_t *c,
                                         const rdmeta_table_t *from, size_t n,
                                         int ids) {
        const uint32_t max = ids ? RDMETA_PROBE_MAX_IDS
                                 : RDMETA_PROBE_MAX_NAMES;
        rdmeta_table_t *t  = table_copy(c, from, n, ids);
        int tries;

        for (tries = 0; t && t->longest > max && tries < 3; tries++) {
                rdmeta_table_destroy(&c->conf.allocator, t);
                t = table_copy(c, from, n, ids);
        }
        return t;
}

void rdmeta_entry_table_publish(rdmeta_cache_t *c,
                                _Atomic(rdmeta_table_t *) *where,
                                rdmeta_table_t *t) {
        rdmeta_table_t *old = atomic_load_explicit(where,
                                                   memory_order_relaxed);

        atomic_store_explicit(where, t, memory_order_release);
        if (!rdmeta_live_images_table(c, old))
                rdmeta_epoch_large(&c->epochs, &old->large);
}

/* Makes room for n more in a table. Copies it under a new key if its probes
 * are too long. NO_MEMORY. */
static rdmeta_err_t table_reserve(rdmeta_cache_t *c,
                                  _Atomic(rdmeta_table_t *) *where, size_t n,
                                  int ids) {
        rdmeta_table_t *t = atomic_load_explicit(where, memory_order_relaxed);
        const int clash   = t->longest > (ids ? RDMETA_PROBE_MAX_IDS
                                              : RDMETA_PROBE_MAX_NAMES);

        if (rdmeta_table_room(t, ids) >= n && !clash)
                return RDMETA_OK;
        /* A table that gets one topic at a time grows by a quarter. Where an
         * eighth is tombstones, a copy without them has room enough. */
        if (t->tombstones < t->used / 8)
                n += (t->used - t->tombstones) / 4;
        t = rdmeta_entry_table_grown(c, t, n, ids);
        if (!t)
                return RDMETA_ERR_NO_MEMORY;
        c->stats.reseeds += (uint64_t)clash;
        rdmeta_entry_table_publish(c, where, t);
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_entry_reserve(rdmeta_cache_t *c, size_t n) {
        return table_reserve(c, &c->root.names, n, 0);
}

rdmeta_err_t rdmeta_ids_reserve(rdmeta_cache_t *c, size_t n) {
        return table_reserve(c, &c->root.ids, n, 1);
}

/* Puts a topic into the id table. Brokers may wrongly give two topics one id:
 * then the id leads to the last one. */
static void id_put(rdmeta_cache_t *c, rdmeta_topic_t *t) {
        rdmeta_table_t *ids = rdmeta_ids(c);
        rdmeta_topic_t *old;
        uint64_t hash;

        if (!rdmeta_topic_has_id(t))
                return;
        hash = rdmeta_hash_id(ids->key, rdmeta_cold(t)->id);
        old  = rdmeta_table_id(ids, rdmeta_cold(t)->id);
        if (old) {
                rdmeta_table_swap(ids, hash, old, t);
                c->ids_shared = 1;
        } else {
                rdmeta_table_put(ids, hash, t);
        }
}

static void id_drop(rdmeta_cache_t *c, const rdmeta_topic_t *t) {
        rdmeta_table_t *ids = rdmeta_ids(c);

        if (rdmeta_topic_has_id(t))
                rdmeta_table_drop(
                        ids, rdmeta_hash_id(ids->key, rdmeta_cold(t)->id), t);
}

/* Gives an id another block. Where two topics had the id, and the other one has
 * a new id now, the id may lead nowhere. Then it is put into the table. */
static void id_swap(rdmeta_cache_t *c, const rdmeta_topic_t *old,
                    rdmeta_topic_t *topic) {
        rdmeta_table_t *ids = rdmeta_ids(c);
        const uint8_t *id   = rdmeta_cold(topic)->id;

        if (c->ids_shared && !rdmeta_table_id(ids, id) &&
            rdmeta_table_room(ids, 1))
                id_put(c, topic);
        else
                rdmeta_table_swap(ids, rdmeta_hash_id(ids->key, id), old,
                                  topic);
}

/* ---- life of an entry -------------------------------------------------- */

/* Adds `by` (1 or -1) topics to the counts that stats returns without a look
 * at every topic. Retained topics count as negatives here. Stats subtracts the
 * length of their list. */
static void entry_count(rdmeta_cache_t *c, const rdmeta_topic_t *t, int by) {
        if (t->state == RDMETA_TOPIC_VALID) {
                c->stats.topics += (uint64_t)by;
                c->stats.partitions +=
                        (uint64_t)by * rdmeta_topic_count(t);
        } else if (t->state != RDMETA_TOPIC_WAIT) {
                c->stats.negatives += (uint64_t)by;
        }
}

void rdmeta_entry_publish(rdmeta_cache_t *c, rdmeta_entry_t *e, int named) {
        rdmeta_table_t *names = rdmeta_names(c);

        if (!named)
                rdmeta_table_put(names, rdmeta_name_hash(names, e->topic),
                                 e->topic);
        id_put(c, e->topic);
        rdmeta_handles_point(&c->handles, e->topic, e->topic);
        rdmeta_tree_add(c, e);
        entry_count(c, e->topic, 1);
        c->entries++;
}

void rdmeta_entry_erase(rdmeta_cache_t *c, rdmeta_entry_t *e) {
        rdmeta_table_t *names = rdmeta_names(c);

        rdmeta_table_drop(names, rdmeta_name_hash(names, e->topic), e->topic);
        id_drop(c, e->topic);
        rdmeta_handles_point(&c->handles, e->topic, NULL);
        rdmeta_tree_remove(c, e);
        rdmeta_entry_list(c, e, RDMETA_DEADLINES_NONE, 0);
        rdmeta_note_rewind(c, e, NULL);
        rdmeta_note_gone(c, e, RDMETA_GONE_NEVER);
        rdmeta_note_due(c, e, 0);
        rdmeta_answer_order_give(&c->order, e->order);
        entry_count(c, e->topic, -1);
        c->entries--;
        rdmeta_slab_free(&c->entry_slab, e, sizeof(*e));
}

void rdmeta_entry_swap(rdmeta_cache_t *c, rdmeta_entry_t *e,
                       rdmeta_topic_t *topic) {
        rdmeta_table_t *names = rdmeta_names(c);
        rdmeta_topic_t *old   = e->topic;
        const int same_id     = !memcmp(rdmeta_cold(old)->id,
                                        rdmeta_cold(topic)->id, 16);

        rdmeta_cold(topic)->link = e->order;
        e->topic                 = topic;
        entry_count(c, old, -1);
        entry_count(c, topic, 1);
        rdmeta_table_swap(names, rdmeta_name_hash(names, topic), old, topic);
        rdmeta_handles_point(&c->handles, topic, topic);
        if (same_id && rdmeta_topic_has_id(topic)) {
                id_swap(c, old, topic);
        } else if (!same_id) {
                id_drop(c, old);
                id_put(c, topic);
        }
}

void rdmeta_entry_list(rdmeta_cache_t *c, rdmeta_entry_t *e, int list,
                       int64_t deadline_us) {
        rdmeta_deadlines_remove(&c->deadlines, (int)e->list, &e->deadlines);
        e->list = (uint32_t)list & 15;
        if (list != RDMETA_DEADLINES_NONE)
                rdmeta_deadlines_add(&c->deadlines, list, &e->deadlines,
                                     deadline_us);
}

void rdmeta_entry_deadline(rdmeta_cache_t *c, rdmeta_entry_t *e,
                           int64_t deadline) {
        if (RDMETA_UNLIKELY(c->epochs.images.count))
                rdmeta_live_images_times(c, e->topic);
        atomic_store_explicit(&e->topic->deadline, deadline,
                              memory_order_release);
        if (deadline == RDMETA_DEADLINE_SHARED)
                c->order.slots[e->order].len &= ~RDMETA_ANSWER_ORDER_OWN;
        else
                c->order.slots[e->order].len |= RDMETA_ANSWER_ORDER_OWN;
}

void rdmeta_entry_provenance(rdmeta_cache_t *c, rdmeta_entry_t *e,
                             rdmeta_provenance_t provenance) {
        rdmeta_live_images_times(c, e->topic);
        rdmeta_topic_provenance_set(e->topic, provenance);
}

/* Returns the list of deadlines for topics of a state. */
static int state_list(uint16_t state) {
        switch (state) {
        case RDMETA_TOPIC_VALID:
                return RDMETA_DEADLINES_VALID;
        case RDMETA_TOPIC_DENIED:
                return RDMETA_DEADLINES_DENIED;
        case RDMETA_TOPIC_MISSING:
                return RDMETA_DEADLINES_ABSENT;
        case RDMETA_TOPIC_WAIT:
                return RDMETA_DEADLINES_HINT;
        default:
                return RDMETA_DEADLINES_NEGATIVE;
        }
}

void rdmeta_entry_relist(rdmeta_cache_t *c, rdmeta_entry_t *e,
                         int64_t mono_us) {
        const int64_t deadline = atomic_load_explicit(&e->topic->deadline,
                                                      memory_order_relaxed);
        int list               = state_list(e->topic->state);

        if (deadline == RDMETA_DEADLINE_SHARED) { /* it needs no list */
                rdmeta_entry_list(c, e, RDMETA_DEADLINES_NONE, 0);
        } else if (deadline >= mono_us) { /* still in time */
                rdmeta_entry_list(c, e, list, deadline);
        } else if (e->topic->state == RDMETA_TOPIC_VALID) {
                /* If the deadline says no more than that it is stale, it
                 * becomes one that has just passed, so that it has an age. */
                if (deadline < 0 &&
                    !rdmeta_deadline_plain(rdmeta_deadline_visible(deadline)))
                        rdmeta_entry_deadline(c, e, mono_us - 1);
                rdmeta_entry_list(c, e, RDMETA_DEADLINES_NONE, 0);
        } else if (e->topic->state == RDMETA_TOPIC_MISSING) {
                /* It is overdue: the next sweep removes it. */
                if (rdmeta_deadline_is_asked(deadline))
                        rdmeta_entry_deadline(c, e, mono_us - 1);
                rdmeta_entry_list(c, e, list, mono_us);
        } else {
                /* A topic that is not valid is retained for max age, so that
                 * a stale answer is not taken for the first one; a removed one
                 * for the grace time at least, so that it is reported once. */
                int64_t ttl = c->conf.max_age_us;

                if (rdmeta_topic_has_gone(e->topic) &&
                    ttl < c->conf.absent_grace_us)
                        ttl = c->conf.absent_grace_us;
                if (rdmeta_deadline_is_asked(deadline))
                        rdmeta_entry_deadline(c, e, mono_us - 1);
                rdmeta_entry_list(c, e, RDMETA_DEADLINES_RETAINED,
                                  rdmeta_deadlines_after(mono_us, ttl));
        }
}

int rdmeta_entry_keeps_hint(const rdmeta_cache_t *c, const rdmeta_entry_t *e,
                            const rdmeta_request_t *asked, int64_t mono_us) {
        return e->list == RDMETA_DEADLINES_HINT && asked &&
               (asked->flags & RDMETA_REQ_SENT_HINTS) &&
               e->deadlines.deadline_us >= mono_us &&
               c->order.slots[e->order].hint.number > asked->sent_hints;
}

void rdmeta_entry_unhint(rdmeta_cache_t *c, rdmeta_entry_t *e,
                         int64_t mono_us) {
        rdmeta_topic_t *t = e->topic;

        if (t->state == RDMETA_TOPIC_WAIT) {
                rdmeta_entry_erase(c, e);
                rdmeta_entry_retire(c, t);
        } else {
                rdmeta_entry_relist(c, e, mono_us);
        }
}

/* ---- order ----------------------------------------------------------- */

/* Closes the holes of the order array: entries get other slots. */
static void order_compact(rdmeta_cache_t *c) {
        rdmeta_answer_order_t *o = &c->order;
        uint32_t i, n = 0;

        for (i = 0; i < o->count; i++) {
                rdmeta_entry_t *e = o->slots[i].entry;
                if (!e)
                        continue;
                o->slots[n]                 = o->slots[i];
                e->order                    = n;
                rdmeta_cold(e->topic)->link = n++;
        }
        o->count = n;
        o->holes = 0;
        o->generation++;
}

void rdmeta_entry_answer_begin(rdmeta_cache_t *c) {
        rdmeta_answer_order_t *o = &c->order;

        if (o->holes > o->count / 4 + 16)
                order_compact(c);
        if (++o->answer == 0)
                o->answer = 1;
}
