/* Applies leader hints: leaders that brokers name in answers to produce and
 * fetch requests (KIP-951). */
#include "cache/transaction.h"

#include "cache/entry.h"
#include "cache/notes.h"
#include "topic/builder_write.h"
#include "topic/diff.h"

/* Returns the entry of the hint's topic, by name or else by id; NULL: none. */
static rdmeta_entry_t *leader_hint_entry(rdmeta_cache_t *c,
                                         const rdmeta_leader_hint_t *h) {
        rdmeta_topic_t *t;

        if (h->topic.data)
                return rdmeta_entry_find(c, h->topic.data, h->topic.len);
        if (!h->topic_id ||
            !(rdmeta_load64(h->topic_id) | rdmeta_load64(h->topic_id + 8)))
                return NULL;
        t = rdmeta_table_id(rdmeta_ids(c), h->topic_id);
        return t ? rdmeta_entry_of(c, t) : NULL;
}

/* Returns a block with the old rows, one of them with the hint's leader. Writes
 * what is left of the rewind to *rewind; NULL: nothing. NULL: no memory. */
static rdmeta_topic_t *leader_hint_block(rdmeta_cache_t *c,
                                         const rdmeta_entry_t *e,
                                         const rdmeta_leader_hint_t *h,
                                         uint64_t version,
                                         rdmeta_kept_rewind_t **rewind) {
        const rdmeta_topic_t *old = e->topic;
        rdmeta_builder_t *s       = &c->builder;
        rdmeta_rewind_t left;
        rdmeta_topic_t *t;
        rdmeta_cols_t cols;
        rdmeta_row_t row;
        uint32_t i;

        rdmeta_topic_cols(old, &cols);
        if (rdmeta_builder_begin(s, old, &cols) ||
            rdmeta_builder_keep_lists(s, &cols))
                return NULL;
        for (i = 0; i < cols.count; i++) {
                rdmeta_topic_row(&cols, i, &row);
                s->id[i] = row.id;
                if (row.id == h->partition) {
                        row.leader = row.last = h->leader;
                        row.epoch = row.high = h->leader_epoch;
                        row.error            = 0;
                }
                rdmeta_builder_keep_row(s, i, &cols, &row);
        }
        if (rdmeta_merge_risen(&cols, s, rdmeta_rewind_of(c, e), &left))
                return NULL;
        *rewind = left.count ? rdmeta_rewind_copy(c, &left) : NULL;
        if (left.count && !*rewind)
                return NULL;
        t = rdmeta_builder_build(s, &c->blocks, version);
        if (!t)
                rdmeta_rewind_free(c, *rewind);
        return t;
}

/* Gives a node without a rack the known one, as long as host and port are the
 * same: a hint without a rack says nothing of the rack. */
static void leader_hint_keep_rack(rdmeta_broker_t *node,
                                  const rdmeta_broker_t *known) {
        if (!node->rack.data && known->port == node->port &&
            rdmeta_str_same(known->host, node->host))
                node->rack = known->rack;
}

/* Writes the broker table with the hint's endpoint to *next; NULL: the table
 * has it already. NO_MEMORY. */
static rdmeta_err_t leader_hint_brokers(const rdmeta_cache_t *c,
                                        const rdmeta_leader_hint_t *h,
                                        uint64_t version,
                                        rdmeta_brokers_t **next) {
        rdmeta_broker_t node = {h->leader, h->port, h->host, h->rack};
        const rdmeta_brokers_t *old = rdmeta_table_brokers(c);
        rdmeta_broker_t known;

        *next = NULL;
        if (!h->host.data)
                return RDMETA_OK;
        if (!rdmeta_brokers_find(old, h->leader, &known)) {
                leader_hint_keep_rack(&node, &known);
                if (rdmeta_broker_same(&known, &node))
                        return RDMETA_OK;
        }
        *next = rdmeta_brokers_with(&c->conf.allocator, old, &node, version);
        return *next ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
}

/* Returns the reasons that an entry has with its new block. A hint adds none: a
 * refresh is due already. */
static uint32_t leader_hint_due(const rdmeta_cache_t *c,
                                const rdmeta_entry_t *e) {
        const uint32_t now = rdmeta_merge_due(e->topic,
                                              rdmeta_table_brokers(c));

        return rdmeta_due_of(c, e) & (now | ~(uint32_t)RDMETA_DUE_OF_BLOCK);
}

/* Writes a version with the hint's leader and endpoint. NO_MEMORY. */
static rdmeta_err_t leader_hint_take(rdmeta_cache_t *c, rdmeta_entry_t *e,
                                     const rdmeta_leader_hint_t *h,
                                     rdmeta_time_t now) {
        rdmeta_topic_t *old = e->topic, *t;
        rdmeta_kept_rewind_t *rewind;
        rdmeta_brokers_t *next;
        rdmeta_transaction_t w;

        rdmeta_transaction_init(&w, c, now, RDMETA_SOURCE_HINT, -1);
        if (rdmeta_transaction_reserve(&w, 1))
                return RDMETA_ERR_NO_MEMORY;
        if (leader_hint_brokers(c, h, w.version, &next))
                return RDMETA_ERR_NO_MEMORY;
        t = leader_hint_block(c, e, h, w.version, &rewind);
        if (!t) {
                rdmeta_brokers_destroy(&c->conf.allocator, next);
                return RDMETA_ERR_NO_MEMORY;
        }
        rdmeta_topic_provenance_set(t, rdmeta_topic_provenance(old));
        atomic_init(&t->deadline, atomic_load_explicit(&old->deadline,
                                                       memory_order_relaxed));
        rdmeta_transaction_begin(&w, next);
        if (next)
                rdmeta_transaction_brokers(&w, next);
        rdmeta_entry_swap(c, e, t);
        rdmeta_note_rewind(c, e, rewind);
        rdmeta_note_due(c, e, leader_hint_due(c, e));
        /* The block differs from the last answer, so its digest goes. */
        c->order.slots[e->order].len &= RDMETA_ANSWER_ORDER_OWN;
        rdmeta_transaction_item(&w, old, t);
        rdmeta_transaction_end(&w, 1);
        return RDMETA_OK;
}

/* Returns 1 if the hint is newer than the cached partition. Its leader must be
 * a broker that the cache has, or whose endpoint the hint gives. */
static int leader_hint_is_news(const rdmeta_cache_t *c,
                               const rdmeta_topic_t *t,
                               const rdmeta_leader_hint_t *h) {
        const int64_t place = t->state == RDMETA_TOPIC_VALID
                                      ? rdmeta_topic_place(t, h->partition)
                                      : -1;
        rdmeta_cols_t cols;
        rdmeta_row_t row;

        if (place < 0 ||
            (!h->host.data &&
             !rdmeta_brokers_has(rdmeta_table_brokers(c), h->leader)))
                return 0;
        rdmeta_topic_cols(t, &cols);
        rdmeta_topic_row(&cols, (uint32_t)place, &row);
        return rdmeta_merge_hint(t, &row, h);
}

rdmeta_err_t rdmeta_cache_apply_leader_hint(rdmeta_cache_t *c,
                                            const rdmeta_leader_hint_t *h,
                                            rdmeta_time_t now,
                                            rdmeta_applied_t *out) {
        rdmeta_applied_t applied;
        rdmeta_err_t err = RDMETA_OK;
        rdmeta_entry_t *e;

        if ((!h->topic.data && !h->topic_id) ||
            (h->host.data &&
             (!h->host.len || h->port < 0 || h->port > 65535)))
                return RDMETA_ERR_ARGUMENT;
        if (rdmeta_notify_forked(&c->notify))
                return RDMETA_ERR_FORKED;
        memset(&applied, 0, sizeof(applied));
        applied.advice = RDMETA_ADVICE_ASK_AGAIN;
        rdmeta_notify_lock(&c->notify);
        e = leader_hint_entry(c, h);
        if (e && h->leader >= 0 && leader_hint_is_news(c, e->topic, h)) {
                err             = leader_hint_take(c, e, h, now);
                applied.changed = !err;
                applied.topics  = 1;
        }
        c->stats.leader_hints_taken += applied.changed;
        c->stats.leader_hints_ignored += !applied.changed;
        applied.version = rdmeta_notify_version(&c->notify);
        rdmeta_entry_collect(c);
        rdmeta_notify_unlock(&c->notify);
        if (out)
                *out = applied;
        return err;
}
