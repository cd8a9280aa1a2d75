/* Hints and their end: which names are in flight. See hints.h. */
#include "cache/hints.h"

#include "cache/entry.h"
#include "cache/live_image.h"

static int64_t ttl_of(const rdmeta_cache_t *c, int64_t ttl_us) {
        return ttl_us > 0 ? ttl_us : c->conf.hint_ttl_us;
}

/* Makes an entry, with a block that only waits, for a name that is not cached.
 * NO_MEMORY. */
static rdmeta_err_t hint_new(rdmeta_cache_t *c, rdmeta_str_t name,
                             int64_t deadline) {
        rdmeta_err_t err = rdmeta_entry_reserve(c, 1);
        rdmeta_answer_order_slot_t *slot;
        rdmeta_topic_t *t;
        rdmeta_entry_t *e;
        uint32_t order;

        if (err)
                return err;
        t = rdmeta_topic_bare(&c->blocks, name, rdmeta_wire_zero_id,
                              RDMETA_TOPIC_WAIT, 0, c->epochs.taken);
        if (!t)
                return RDMETA_ERR_NO_MEMORY;
        slot = rdmeta_answer_order_take(&c->order, &c->conf.allocator);
        if (!slot) {
                rdmeta_topic_destroy(&c->blocks, t);
                return RDMETA_ERR_NO_MEMORY;
        }
        order = (uint32_t)(slot - c->order.slots);
        e     = rdmeta_entry_new(c, t, order);
        if (!e) {
                rdmeta_answer_order_give(&c->order, order);
                rdmeta_topic_destroy(&c->blocks, t);
                return RDMETA_ERR_NO_MEMORY;
        }
        rdmeta_entry_deadline(c, e, deadline);
        rdmeta_entry_publish(c, e, 0);
        rdmeta_entry_list(c, e, RDMETA_DEADLINES_HINT, deadline);
        return RDMETA_OK;
}

/* Returns 1 if the caller must ask for a known name. A name in flight needs it
 * only with HINT_REPLACE. Others need it if they are stale or retained, or with
 * HINT_FORCE. */
static int hint_is_needed(const rdmeta_cache_t *c, const rdmeta_entry_t *e,
                          int32_t flags, int64_t mono_us) {
        if (e->list == RDMETA_DEADLINES_HINT &&
            e->deadlines.deadline_us >= mono_us)
                return (flags & RDMETA_HINT_REPLACE) != 0;
        return (flags & RDMETA_HINT_FORCE) ||
               rdmeta_view_deadline(&c->root, e->topic) < mono_us;
}

/* Also gives a topic that is neither valid nor freshly negative a deadline that
 * makes readers wait. */
void rdmeta_hint_known(rdmeta_cache_t *c, rdmeta_entry_t *e, int64_t deadline,
                       int64_t mono_us) {
        const uint16_t state = e->topic->state;

        if (state == RDMETA_TOPIC_WAIT)
                rdmeta_entry_deadline(c, e, deadline);
        else if (state != RDMETA_TOPIC_VALID &&
                 rdmeta_view_deadline(&c->root, e->topic) < mono_us)
                rdmeta_entry_deadline(c, e, rdmeta_deadline_asked(deadline));
        rdmeta_entry_list(c, e, RDMETA_DEADLINES_HINT, deadline);
}

/* Marks of an entry during one call. */
enum { MARK_NEW = 1, MARK_TO_ASK = 2 };

/* Makes entries for the names that have none. This comes first because it needs
 * memory. NO_MEMORY: no name is in flight because of this call. */
static rdmeta_err_t hint_make(rdmeta_cache_t *c, const rdmeta_str_t *topics,
                              size_t n, int64_t deadline) {
        rdmeta_err_t err = RDMETA_OK;
        rdmeta_entry_t *e;
        size_t i;

        for (i = 0; i < n && !err; i++) {
                if (rdmeta_entry_find(c, topics[i].data, topics[i].len))
                        continue;
                err = hint_new(c, topics[i], deadline);
                e = rdmeta_entry_find(c, topics[i].data, topics[i].len);
                if (e)
                        e->staged = MARK_NEW;
        }
        for (i = 0; i < n && err; i++) {
                e = rdmeta_entry_find(c, topics[i].data, topics[i].len);
                if (e && e->staged == MARK_NEW)
                        rdmeta_entry_unhint(c, e, 0);
        }
        return err;
}

/* Stores the number of a hint in place of the digest. So the next answer is
 * read. */
static void hint_number(rdmeta_cache_t *c, const rdmeta_entry_t *e,
                        uint64_t number) {
        rdmeta_answer_order_slot_t *slot = &c->order.slots[e->order];

        slot->len &= RDMETA_ANSWER_ORDER_OWN;
        slot->hint.number = number;
}

/* Puts the names that need it in flight, and writes them to to_ask: the caller
 * must ask for them. Returns their number. A name given twice counts once. */
static size_t hint_needed(rdmeta_cache_t *c, const rdmeta_str_t *topics,
                          size_t n, int32_t flags, int64_t deadline,
                          int64_t mono_us, rdmeta_str_t *to_ask) {
        const uint64_t number = c->hints + 1;
        size_t i, n_ask = 0;

        for (i = 0; i < n; i++) {
                rdmeta_entry_t *e = rdmeta_entry_find(c, topics[i].data,
                                                      topics[i].len);
                if (e->staged == MARK_TO_ASK ||
                    (!e->staged && !hint_is_needed(c, e, flags, mono_us)))
                        continue;
                rdmeta_hint_known(c, e, deadline, mono_us);
                hint_number(c, e, number);
                e->staged       = MARK_TO_ASK;
                to_ask[n_ask++] = topics[i];
        }
        for (i = 0; i < n_ask; i++)
                rdmeta_entry_find(c, to_ask[i].data, to_ask[i].len)->staged =
                        0;
        if (n_ask)
                c->hints = number;
        return n_ask;
}

rdmeta_err_t rdmeta_cache_hint(rdmeta_cache_t *c, const rdmeta_str_t *topics,
                               size_t n, int32_t flags, int64_t ttl_us,
                               rdmeta_time_t now, rdmeta_str_t *to_ask,
                               size_t *n_ask) {
        const int64_t deadline = rdmeta_deadlines_after(now.mono_us,
                                                        ttl_of(c, ttl_us));
        rdmeta_err_t err;
        size_t i;

        *n_ask = 0;
        for (i = 0; i < n; i++)
                if (!topics[i].data || !topics[i].len ||
                    topics[i].len > RDMETA_NAME_MAX)
                        return RDMETA_ERR_ARGUMENT;
        if (rdmeta_notify_forked(&c->notify))
                return RDMETA_ERR_FORKED;
        rdmeta_notify_lock(&c->notify);
        /* Each hint may change a page now, and another when it ends. */
        err = rdmeta_live_images_reserve(c, 2 * n);
        if (!err)
                err = hint_make(c, topics, n, deadline);
        if (!err)
                *n_ask = hint_needed(c, topics, n, flags, deadline, now.mono_us,
                                     to_ask);
        rdmeta_entry_collect(c);
        rdmeta_notify_unlock(&c->notify);
        return err;
}

/* Ends all hints that were made before the request left. Returns their number.
 * It first links the slots of these hints and then ends them, because the list
 * must not change while it is walked. */
static int64_t unhint_all(rdmeta_cache_t *c, const rdmeta_request_t *asked,
                          int64_t mono_us) {
        rdmeta_answer_order_slot_t *slots = c->order.slots;
        const rdmeta_deadlines_node_t *n;
        rdmeta_deadlines_iter_t it;
        uint32_t next = 0;
        int64_t ended = 0;

        rdmeta_deadlines_iter_init(&it, &c->deadlines, RDMETA_DEADLINES_HINT);
        while ((n = rdmeta_deadlines_iter_next(&it))) {
                const rdmeta_entry_t *e =
                        RDMETA_CONTAINER(n, const rdmeta_entry_t, deadlines);

                if (rdmeta_entry_keeps_hint(c, e, asked, mono_us))
                        continue;
                slots[e->order].hint.next = next;
                next                      = e->order + 1;
        }
        while (next) {
                rdmeta_entry_t *e = slots[next - 1].entry;

                next = slots[next - 1].hint.next;
                rdmeta_entry_unhint(c, e, mono_us);
                ended++;
        }
        return ended;
}

/* Ends the hints of these names that were made before the request left. Returns
 * their number. */
static int64_t unhint_names(rdmeta_cache_t *c, const rdmeta_str_t *names,
                            size_t n, const rdmeta_request_t *asked,
                            int64_t mono_us) {
        int64_t ended = 0;
        size_t i;

        for (i = 0; i < n; i++) {
                rdmeta_entry_t *e = rdmeta_entry_find(c, names[i].data,
                                                      names[i].len);
                if (!e || e->list != RDMETA_DEADLINES_HINT ||
                    rdmeta_entry_keeps_hint(c, e, asked, mono_us))
                        continue;
                rdmeta_entry_unhint(c, e, mono_us);
                ended++;
        }
        return ended;
}

void rdmeta_hints_end(rdmeta_cache_t *c, const rdmeta_request_t *asked,
                      int failed, int64_t mono_us) {
        const int32_t what = asked ? asked->asked : RDMETA_ASKED_UNKNOWN;

        if (what == RDMETA_ASKED_NAMES)
                unhint_names(c, asked->names, asked->n, asked, mono_us);
        else if (what == (failed ? RDMETA_ASKED_UNKNOWN : RDMETA_ASKED_ALL))
                unhint_all(c, asked, mono_us);
}

rdmeta_err_t rdmeta_cache_request_sent(const rdmeta_cache_t *c,
                                       rdmeta_request_t *request) {
        if (rdmeta_notify_forked(&c->notify))
                return RDMETA_ERR_FORKED;
        request->sent_version = rdmeta_notify_version(&c->notify);
        request->sent_hints   = atomic_load(&c->hints);
        request->flags |= RDMETA_REQ_SENT_VERSION | RDMETA_REQ_SENT_HINTS;
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_cache_apply_failure(rdmeta_cache_t *c,
                                        const rdmeta_request_t *asked,
                                        rdmeta_time_t now) {
        if (rdmeta_notify_forked(&c->notify))
                return RDMETA_ERR_FORKED;
        rdmeta_notify_lock(&c->notify);
        rdmeta_hints_end(c, asked, 1, now.mono_us);
        c->stats.apply_failures++;
        rdmeta_entry_collect(c);
        rdmeta_notify_unlock(&c->notify);
        return RDMETA_OK;
}

int64_t rdmeta_cache_purge_hints(rdmeta_cache_t *c,
                                 const rdmeta_str_t *topics, size_t n,
                                 rdmeta_time_t now) {
        int64_t ended;

        if (rdmeta_notify_forked(&c->notify))
                return RDMETA_ERR_FORKED;
        rdmeta_notify_lock(&c->notify);
        ended = topics ? unhint_names(c, topics, n, NULL, now.mono_us)
                       : unhint_all(c, NULL, now.mono_us);
        rdmeta_entry_collect(c);
        rdmeta_notify_unlock(&c->notify);
        return ended;
}
