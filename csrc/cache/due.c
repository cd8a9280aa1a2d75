/* Which topics need another answer, and why. See due.h. */
#include "cache/due.h"

#include "cache/copied.h"
#include "cache/notes.h"

/* How many topics before its turn a block is prefetched. */
enum { PREFETCH = 8 };

/* ---- a look at topics after brokers changed ------------------------------ */

/* Sets the reasons of an entry that follow from its block. NO_MEMORY. */
static rdmeta_err_t look_at(rdmeta_cache_t *c, rdmeta_entry_t *e) {
        const uint32_t before = rdmeta_due_of(c, e);
        const uint32_t now    = (before & ~(uint32_t)RDMETA_DUE_OF_BLOCK) |
                             rdmeta_merge_due(e->topic,
                                              rdmeta_table_brokers(c));

        if (now == before)
                return RDMETA_OK;
        if (!e->note && rdmeta_notes_reserve(c, 1))
                return RDMETA_ERR_NO_MEMORY;
        rdmeta_note_due(c, e, now);
        return RDMETA_OK;
}

static rdmeta_err_t look_at_all(rdmeta_cache_t *c) {
        const rdmeta_answer_order_t *o = &c->order;
        rdmeta_err_t err               = RDMETA_OK;
        uint32_t i;

        for (i = 0; i < o->count && !err; i++) {
                if (i + 2 * PREFETCH < o->count)
                        __builtin_prefetch(o->slots[i + 2 * PREFETCH].entry);
                if (i + PREFETCH < o->count && o->slots[i + PREFETCH].entry)
                        __builtin_prefetch(o->slots[i + PREFETCH].entry->topic);
                if (o->slots[i].entry)
                        err = look_at(c, o->slots[i].entry);
        }
        return err;
}

/* Brings the notes up to date with the brokers. NO_MEMORY: the next call goes
 * on. */
static rdmeta_err_t look(rdmeta_cache_t *c) {
        rdmeta_notes_t *notes = &c->notes;
        rdmeta_err_t err      = RDMETA_OK;
        uint32_t i;

        if (notes->walk)
                err = look_at_all(c);
        else if (notes->recheck)
                for (i = notes->count; i-- > 0;) /* one may go: from the end */
                        if (notes->all[i].due & RDMETA_DUE_UNREACHABLE)
                                look_at(c, notes->all[i].entry);
        if (!err)
                notes->walk = notes->recheck = 0;
        return err;
}

/* ---- the call ------------------------------------------------------------ */

uint32_t rdmeta_due_at(const rdmeta_cache_t *c, const rdmeta_entry_t *e,
                       int64_t mono_us) {
        uint32_t due = rdmeta_due_of(c, e);
        int in_time;

        if (RDMETA_LIKELY(!(due & (RDMETA_DUE_ABSENT | RDMETA_DUE_DENIED))))
                return due;
        in_time = rdmeta_view_deadline(&c->root, e->topic) >= mono_us;
        due &= ~(uint32_t)(in_time ? RDMETA_DUE_DENIED : RDMETA_DUE_ABSENT);
        return due;
}

/* Copies up to `limit` due topics. NO_MEMORY. */
static rdmeta_err_t collect(rdmeta_cache_t *c, int64_t mono_us, size_t limit,
                            rdmeta_copied_t *out) {
        const rdmeta_notes_t *notes = &c->notes;
        size_t n = 0, bytes = 0;
        uint32_t i, last;

        for (last = 0; last < notes->count && (!limit || n < limit); last++) {
                const rdmeta_entry_t *e = notes->all[last].entry;

                if (!rdmeta_due_at(c, e, mono_us))
                        continue;
                bytes += e->topic->name_len;
                n++;
        }
        if (rdmeta_copied_init(c, out, n, bytes))
                return RDMETA_ERR_NO_MEMORY;
        for (i = 0; i < last; i++) {
                const rdmeta_entry_t *e = notes->all[i].entry;
                const uint32_t due      = rdmeta_due_at(c, e, mono_us);

                if (due)
                        rdmeta_copied_add(out, e->topic->name,
                                          e->topic->name_len, due);
        }
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_cache_due(rdmeta_cache_t *c, int64_t mono_us, size_t limit,
                              rdmeta_due_visit_t visit, void *opaque) {
        rdmeta_copied_t copied;
        rdmeta_err_t err;
        size_t i;

        if (rdmeta_notify_forked(&c->notify))
                return RDMETA_ERR_FORKED;
        memset(&copied, 0, sizeof(copied));
        rdmeta_notify_lock(&c->notify);
        err = look(c);
        if (!err)
                err = collect(c, mono_us, limit, &copied);
        rdmeta_notify_unlock(&c->notify);
        for (i = 0; i < copied.n && !err; i++)
                err = visit(opaque, &copied.rows[i]);
        rdmeta_copied_free(c, &copied);
        return err;
}

/* ---- check --------------------------------------------------------------- */

const char *rdmeta_due_check(const rdmeta_cache_t *c,
                             const rdmeta_entry_t *e) {
        const uint32_t due = rdmeta_due_of(c, e);
        uint32_t same      = RDMETA_DUE_OF_BLOCK;

        if (due && (c->order.slots[e->order].len & ~RDMETA_ANSWER_ORDER_OWN))
                return "a topic that is due has a digest";
        if (due && e->topic->state == RDMETA_TOPIC_WAIT)
                return "a name in flight is due without facts";
        if (c->notes.walk)
                return NULL;
        if (c->notes.recheck)
                same &= ~(uint32_t)RDMETA_DUE_UNREACHABLE;
        if ((due ^ rdmeta_merge_due(e->topic, rdmeta_table_brokers(c))) & same)
                return "a topic's block and its reasons differ";
        return NULL;
}
