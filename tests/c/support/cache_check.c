/* Checks every invariant of a cache. Tests call it after each write. */
#include "support/cache_check.h"

#include "cache/due.h"
#include "cache/entry.h"
#include "cache/handles.h"
#include "cache/live_image.h"
#include "cache/notes.h"

static const char *check_entry(rdmeta_cache_t *c, const rdmeta_topic_t *t) {
        rdmeta_entry_t *e = rdmeta_entry_of(c, t);
        const rdmeta_answer_order_slot_t *slot;

        if (e->topic != t)
                return "a table finds another block than its entry has";
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
                        return "an id finds a block that was replaced";
        }
        if (rdmeta_topic_provenance(t).reason > c->reasons.count)
                return "a topic has a reason that does not exist";
        if (e->order >= c->order.count)
                return "an entry's slot is beyond the order";
        slot = &c->order.slots[e->order];
        if (slot->entry != e || rdmeta_topic_order(t) != e->order)
                return "an entry's slot belongs to another entry";
        if (rdmeta_rewind_of(c, e) && (slot->len & ~RDMETA_ANSWER_ORDER_OWN))
                return "a topic with a rewind has a digest";
        if (!(slot->len & RDMETA_ANSWER_ORDER_OWN) !=
            (atomic_load(&t->deadline) == RDMETA_DEADLINE_SHARED))
                return "a slot's OWN mark disagrees with the deadline";
        if (c->tree_made) {
                struct {
                        const char *data;
                        size_t len;
                } key = {t->name, t->name_len};
                if (rdmeta_avl_find(&c->tree, &key) != &e->avl)
                        return "a name is not in the tree";
        }
        return rdmeta_due_check(c, e);
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

/* ---- images -------------------------------------------------------------- */

static rdmeta_slot_page_t *page_at(const rdmeta_table_pin_t *pin, size_t p) {
        return atomic_load(&pin->pages[p]);
}

/* Checks one page of a pinned table: pins with a copy are older than those
 * without, and each copy counts its pins. Adds the copies to *copies. */
static const char *check_slot_page(const rdmeta_table_t *t, size_t p,
                                   size_t *copies) {
        const rdmeta_tailq_node_t *n;
        const rdmeta_slot_page_t *last = NULL;
        size_t pins                    = 0;

        for (n = rdmeta_tailq_first(&t->pins); n; n = rdmeta_tailq_next(n)) {
                const rdmeta_slot_page_t *page = page_at(
                        RDMETA_CONTAINER(n, const rdmeta_table_pin_t, node), p);
                if (last && page != last && last->pins != pins)
                        return "a copied page is miscounted";
                if (!last && page && n != rdmeta_tailq_first(&t->pins))
                        return "a younger image has a copied page that an "
                               "older one lacks";
                *copies += page && page != last;
                pins = page == last ? pins + 1 : 1;
                last = page;
        }
        return last && last->pins != pins ? "a copied page is miscounted"
                                          : NULL;
}

static const char *check_table_pins(const rdmeta_table_t *t, size_t *copies) {
        const rdmeta_tailq_node_t *n;
        const char *wrong = NULL;
        size_t p;

        for (n = rdmeta_tailq_first(&t->pins); n; n = rdmeta_tailq_next(n)) {
                const rdmeta_table_pin_t *pin =
                        RDMETA_CONTAINER(n, const rdmeta_table_pin_t, node);
                size_t left = 0;

                if (pin->table != t)
                        return "a table lists a pin of another table";
                for (p = 0; p < pin->count; p++)
                        left += !page_at(pin, p);
                if (left != pin->uncopied)
                        return "pages without a copy are miscounted";
        }
        for (p = 0; p <= t->mask / RDMETA_SLOTS_PER_PAGE && !wrong; p++)
                wrong = check_slot_page(t, p, copies);
        return wrong;
}

static const char *check_kept(rdmeta_cache_t *c,
                              const rdmeta_epoch_image_t *h) {
        const rdmeta_topic_t *t;
        size_t bytes = 0;

        for (t = h->kept; t;
             t = (const rdmeta_topic_t *)(uintptr_t)rdmeta_cold(t)->link) {
                if (!rdmeta_epoch_image_has(h, t))
                        return "a kept block is younger than its image";
                if (rdmeta_table_find(rdmeta_names(c), t->name,
                                      t->name_len) == t)
                        return "a kept block has not been unlinked";
                bytes += rdmeta_topic_bytes(&c->blocks, t);
        }
        return bytes == h->kept_bytes ? NULL : "kept bytes are miscounted";
}

static const char *check_room(const rdmeta_cache_t *c, size_t copied_names,
                              size_t copied_ids) {
        const rdmeta_slot_page_pool_t *pools[2] = {&c->live_images.names,
                                                   &c->live_images.ids};
        const size_t copied[2]                  = {copied_names, copied_ids};
        size_t room[2];
        int i;

        rdmeta_live_images_room(c, 0, &room[0], &room[1]);
        for (i = 0; i < 2; i++) {
                const rdmeta_slot_page_t *page = pools[i]->free;
                size_t n                       = 0;

                for (; page; page = page->next)
                        n++;
                if (n != pools[i]->n_free || n + copied[i] != pools[i]->n)
                        return "pages are miscounted";
                if (n != room[i])
                        return "the number of free pages is wrong";
        }
        return NULL;
}

static const char *check_live_images(rdmeta_cache_t *c) {
        const rdmeta_table_t *names = NULL, *ids = NULL;
        size_t n_names = 0, n_ids = 0, tables = 0;
        const rdmeta_live_image_t *last = NULL;
        const rdmeta_tailq_node_t *n;
        const char *wrong = NULL;

        for (n = rdmeta_tailq_first(&c->epochs.images); n && !wrong;
             n = rdmeta_tailq_next(n)) {
                const rdmeta_live_image_t *h = RDMETA_CONTAINER(
                        n, const rdmeta_live_image_t, epoch_image.node);
                const rdmeta_epoch_image_t *own = &h->epoch_image;

                if (own->number > c->epochs.taken ||
                    (last && (own->number <= last->epoch_image.number ||
                              own->version < last->epoch_image.version)))
                        return "images are out of order";
                last  = h;
                wrong = check_kept(c, own);
                if (!wrong && h->names->table != names) {
                        names = h->names->table;
                        wrong = check_table_pins(names, &n_names);
                        tables += names == rdmeta_names(c)
                                          ? 0
                                          : names->large.size;
                }
                if (!wrong && h->ids->table != ids) {
                        ids   = h->ids->table;
                        wrong = check_table_pins(ids, &n_ids);
                        tables += ids == rdmeta_ids(c) ? 0 : ids->large.size;
                }
        }
        if (wrong)
                return wrong;
        if (tables != c->live_images.tables)
                return "tables of images are miscounted";
        return check_room(c, n_names, n_ids);
}

/* ---- memory -------------------------------------------------------------- */

/* Adds the bytes that a block has in chunks of each slab. Large pieces belong
 * to the allocator and do not count. */
static void block_count(const rdmeta_cache_t *c, const rdmeta_topic_t *t,
                        rdmeta_pieces_t *sum) {
        const rdmeta_pieces_t of = rdmeta_topic_pieces(&c->blocks, t);
        int i;

        for (i = 0; i < RDMETA_MEMORY_SLABS; i++)
                if (rdmeta_slab_units(&c->blocks.slabs[i], of.bytes[i]) <
                    RDMETA_SLAB_LISTS)
                        sum->bytes[i] += of.bytes[i];
}

/* Adds the bytes of a chain of retired blocks. */
static void chain_count(const rdmeta_cache_t *c, const rdmeta_topic_t *t,
                        rdmeta_pieces_t *sum) {
        for (; t; t = (const rdmeta_topic_t *)(uintptr_t)rdmeta_cold(t)->link)
                block_count(c, t, sum);
}

/* Adds the bytes of all blocks that no table finds any more. */
static void retired_count(const rdmeta_cache_t *c, rdmeta_pieces_t *sum) {
        const rdmeta_changelog_t *changelog = &c->changelog;
        const rdmeta_tailq_node_t *n;
        uint64_t i;

        for (i = 0; i < 3; i++)
                chain_count(c, c->epochs.topics[i], sum);
        for (n = rdmeta_tailq_first(&c->epochs.images); n;
             n = rdmeta_tailq_next(n))
                chain_count(
                        c,
                        RDMETA_CONTAINER(n, const rdmeta_epoch_image_t, node)
                                ->kept,
                        sum);
        for (i = changelog->item_head; i != changelog->item_tail; i++) {
                const rdmeta_topic_t *t =
                        rdmeta_changelog_at(changelog, i)->old_;
                if (t)
                        block_count(c, t, sum);
        }
}

/* Checks that each slab has given out as many bytes as blocks and entries
 * have. `sum`: the bytes of the blocks that tables find. */
static const char *check_slabs(const rdmeta_cache_t *c, rdmeta_pieces_t sum) {
        const char *wrong = NULL;
        size_t used;
        int i;

        retired_count(c, &sum);
        for (i = 0; i < RDMETA_MEMORY_SLABS && !wrong; i++) {
                wrong = rdmeta_slab_check(&c->blocks.slabs[i], &used);
                if (!wrong && used != sum.bytes[i])
                        wrong = "the bytes of blocks are miscounted";
        }
        if (!wrong)
                wrong = rdmeta_slab_check(&c->entry_slab, &used);
        if (!wrong && used != c->entries * sizeof(rdmeta_entry_t))
                wrong = "the bytes of entries are miscounted";
        return wrong;
}

/* ---- all of it ----------------------------------------------------------- */

static const char *check_locked(rdmeta_cache_t *c) {
        const rdmeta_table_t *names = rdmeta_names(c);
        size_t n = 0, used = 0, tombstones = 0;
        rdmeta_pieces_t sum = {{0}};
        const char *wrong;
        uint32_t k;

        for (k = 0; k <= names->mask; k++) {
                const uint64_t slot = atomic_load(&names->slots[k]);
                const rdmeta_topic_t *t = rdmeta_slot_topic(slot);
                if (!slot)
                        continue;
                used++;
                if (t == &rdmeta_tombstone.topic) {
                        tombstones++;
                        continue;
                }
                n++;
                block_count(c, t, &sum);
                wrong = check_entry(c, t);
                if (wrong)
                        return wrong;
        }
        if (n != c->entries || used != names->used ||
            tombstones != names->tombstones)
                return "names are miscounted";
        if (c->tree_made && (!rdmeta_avl_check(&c->tree) ||
                             c->tree.count != c->entries))
                return "the tree is out of order";
        if (!rdmeta_reasons_check(&c->reasons) ||
            rdmeta_view_shared_provenance(&c->root).reason > c->reasons.count)
                return "the reasons are out of order";
        if (!rdmeta_deadlines_check(&c->deadlines))
                return "a list of deadlines is out of order";
        wrong = check_slabs(c, sum);
        if (!wrong)
                wrong = rdmeta_notes_check(c);
        if (!wrong)
                wrong = check_live_images(c);
        if (!wrong)
                wrong = rdmeta_handles_check(c);
        return wrong ? wrong : check_order(c);
}

const char *rdmeta_cache_check(rdmeta_cache_t *c) {
        const char *wrong;

        rdmeta_notify_lock(&c->notify);
        wrong = check_locked(c);
        rdmeta_notify_unlock(&c->notify);
        return wrong;
}
