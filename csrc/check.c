/* Every invariant of a cache, for tests: run after each mutation. */
#include "cache.h"

static const char *check_entry(rdmeta_cache_t *c, const rdmeta_topic_t *t) {
        rdmeta_entry_t *e = rdmeta_entry_of(c, t);
        const rdmeta_order_slot_t *slot;

        if (e->topic != t)
                return "an entry's block is not the one that is found";
        if (e->staged)
                return "an entry is still marked";
        if (rdmeta_entry_find(c, t->name, t->name_len) != e)
                return "a name does not find its entry";
        if (rdmeta_topic_has_id(t)) {
                const rdmeta_topic_t *by_id =
                        rdmeta_table_id(rdmeta_ids(c), rdmeta_cold(t)->id);
                if (by_id ? memcmp(rdmeta_cold(by_id)->id, rdmeta_cold(t)->id,
                                   16) != 0
                          : !c->ids_shared)
                        return "an id does not find a block";
                if (by_id && rdmeta_entry_find(c, by_id->name,
                                               by_id->name_len) !=
                                     rdmeta_entry_of(c, by_id))
                        return "an id finds a block that is no longer there";
        }
        if (e->order >= c->order.count)
                return "an entry's slot is beyond the order";
        slot = &c->order.slots[e->order];
        if (slot->entry != e || rdmeta_topic_order(t) != e->order)
                return "a slot is another entry's";
        if (!(slot->len & RDMETA_ORDER_OWN) !=
            (atomic_load(&t->deadline) == RDMETA_DEADLINE_SHARED))
                return "a slot does not say whose deadline it is";
        if (c->tree_made) {
                struct {
                        const char *data;
                        size_t len;
                } key = {t->name, t->name_len};
                if (rdmeta_avl_find(&c->tree, &key) != &e->avl)
                        return "a name is not in the tree";
        }
        return NULL;
}

static const char *check_order(const rdmeta_cache_t *c) {
        uint32_t i, holes = 0;

        for (i = 0; i < c->order.count; i++) {
                const rdmeta_entry_t *e = c->order.slots[i].entry;
                holes += e == NULL;
                if (e && e->order != i)
                        return "a slot's entry has another slot";
        }
        return holes == c->order.holes ? NULL : "holes are miscounted";
}

static const char *check_locked(rdmeta_cache_t *c) {
        const rdmeta_table_t *names = rdmeta_names(c);
        size_t n = 0, used = 0, graves = 0;
        const char *wrong;
        uint32_t k;

        for (k = 0; k <= names->mask; k++) {
                const uint64_t slot = atomic_load(&names->slots[k]);
                const rdmeta_topic_t *t = rdmeta_slot_topic(slot);
                if (!slot)
                        continue;
                used++;
                if (t == &rdmeta_grave.topic) {
                        graves++;
                        continue;
                }
                n++;
                wrong = check_entry(c, t);
                if (wrong)
                        return wrong;
        }
        if (n != c->entries || used != names->used || graves != names->graves)
                return "names are miscounted";
        if (c->tree_made && (!rdmeta_avl_check(&c->tree) ||
                             c->tree.count != c->entries))
                return "the tree is out of order";
        if (!rdmeta_expiry_check(&c->expiry))
                return "a list is out of order";
        wrong = rdmeta_handles_check(c);
        return wrong ? wrong : check_order(c);
}

const char *rdmeta_cache_check(rdmeta_cache_t *c) {
        const char *wrong;

        rdmeta_wait_lock(&c->wait);
        wrong = check_locked(c);
        rdmeta_wait_unlock(&c->wait);
        return wrong;
}
