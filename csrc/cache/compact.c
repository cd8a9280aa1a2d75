/* See compact.h. */
#include "cache/compact.h"

#include "cache/entry.h"
#include "cache/live_image.h"

/* In a link: what follows is a copy's address. No place in the order array has
 * it, nor has an address. */
#define MOVED (UINT64_C(1) << 63)
#define AT_REST UINT32_MAX

/* 0: no memory. */
static int entry_move(rdmeta_cache_t *c, rdmeta_entry_t *e) {
        rdmeta_topic_t *old  = e->topic;
        rdmeta_topic_t *copy = rdmeta_topic_copy(&c->blocks, old);

        if (!copy)
                return 0;
        rdmeta_entry_swap(c, e, copy);
        rdmeta_retire(c, old);
        c->stats.topics_moved++;
        return 1;
}

/* ---- the ring ------------------------------------------------------------ */

/* NULL: it has been replaced. */
static rdmeta_entry_t *entry_living(const rdmeta_cache_t *c,
                                    const rdmeta_topic_t *t) {
        const uint64_t order = rdmeta_cold(t)->link;
        rdmeta_entry_t *e;

        if (order >= c->order.count)
                return NULL;
        e = c->order.slots[order].entry;
        return e && e->topic == t ? e : NULL;
}

/* Where the copy of a replaced block is, made now if `more`; NULL: nowhere. */
static rdmeta_topic_t *copy_of(rdmeta_cache_t *c, rdmeta_topic_t *t,
                               int more) {
        rdmeta_cold_t *cold = rdmeta_cold(t);
        rdmeta_topic_t *copy;

        if (cold->link & MOVED)
                return (rdmeta_topic_t *)(uintptr_t)(cold->link & ~MOVED);
        copy = more ? rdmeta_topic_copy(&c->blocks, t) : NULL;
        if (copy)
                cold->link = (uint64_t)(uintptr_t)copy | MOVED;
        return copy;
}

/* 0: no memory. */
static int ring_new(rdmeta_cache_t *c, rdmeta_changelog_item_t *item, int more) {
        rdmeta_entry_t *e = entry_living(c, item->new_);
        rdmeta_topic_t *copy;

        if (e) {
                if (!more || !entry_move(c, e))
                        return 0;
                item->new_ = e->topic;
                return 1;
        }
        copy = copy_of(c, item->new_, more);
        if (copy)
                item->new_ = copy;
        return copy != NULL;
}

static int ring_old(rdmeta_cache_t *c, rdmeta_changelog_item_t *item,
                    uint64_t taken, int more) {
        rdmeta_topic_t *old  = item->old_;
        rdmeta_topic_t *copy = copy_of(c, old, more);

        if (!copy)
                return 0;
        item->old_ = copy;
        rdmeta_epoch_topic(&c->reclaim, old, taken);
        c->stats.topics_moved++;
        return 1;
}

/* From the oldest on: where a block is new comes before where it is old. If
 * there was no memory for a copy there, there is none here: both, or neither,
 * point to it. 0: no memory. */
static int ring_move(rdmeta_cache_t *c) {
        rdmeta_changelog_t *changelog = &c->changelog;
        int more            = 1;
        uint64_t b, i = changelog->item_head;

        for (b = changelog->batch_head; b != changelog->batch_tail; b++) {
                const rdmeta_changelog_batch_t *batch = rdmeta_changelog_batch(changelog, b);
                uint32_t k;

                for (k = 0; k < batch->n; k++, i++) {
                        rdmeta_changelog_item_t *item =
                                &changelog->items[i & changelog->item_mask];

                        if (item->new_ &&
                            rdmeta_topic_leaves(&c->blocks, item->new_))
                                more &= ring_new(c, item, more);
                        if (item->old_ &&
                            rdmeta_topic_leaves(&c->blocks, item->old_))
                                more &= ring_old(c, item, batch->taken, more);
                }
        }
        return more;
}

/* ---- the cursor ---------------------------------------------------------- */

static int ring_has_new(const rdmeta_cache_t *c, const rdmeta_topic_t *t) {
        return t->state != RDMETA_TOPIC_WAIT &&
               rdmeta_cold(t)->version > c->changelog.floor;
}

static void cursor_begin(rdmeta_cache_t *c) {
        c->compact_at   = 0;
        c->compact_left = UINT64_MAX;
}

static void cursor_leave(rdmeta_cache_t *c, const rdmeta_topic_t *t) {
        const uint64_t version = rdmeta_cold(t)->version;

        if (version < c->compact_left)
                c->compact_left = version;
}

/* 0: no memory. */
static int order_move(rdmeta_cache_t *c, size_t looks, size_t moves) {
        uint32_t *at = &c->compact_at;

        for (; *at < c->order.count && looks && moves; ++*at, looks--) {
                rdmeta_entry_t *e = c->order.slots[*at].entry;

                if (!e || !rdmeta_topic_leaves(&c->blocks, e->topic))
                        continue;
                if (ring_has_new(c, e->topic)) {
                        cursor_leave(c, e->topic);
                        continue;
                }
                if (!entry_move(c, e))
                        return 0;
                moves--;
        }
        return 1;
}

/* Images that are held keep what is moved, and pages besides: then there has
 * to be more to gain. What has been moved, and waits for them, is no reason
 * not to go on. */
static int compact_wanted(rdmeta_cache_t *c) {
        const size_t part = rdmeta_tailq_first(&c->reclaim.images) ? 4 : 8;

        if (c->compact_generation != c->order.generation) {
                c->compact_generation = c->order.generation;
                if (c->compact_at != AT_REST)
                        cursor_begin(c);
        }
        if (rdmeta_memory_leaving(&c->blocks) && c->compact_at != AT_REST)
                return 1;
        if (!rdmeta_memory_plan(&c->blocks, part))
                return 0;
        cursor_begin(c);
        return 1;
}

void rdmeta_compact(rdmeta_cache_t *c, size_t looks, size_t moves) {
        if (!compact_wanted(c) || rdmeta_live_images_reserve(c, moves) ||
            !order_move(c, looks, moves) || c->compact_at < c->order.count)
                return;
        if (rdmeta_live_images_reserve(c, c->changelog.item_tail - c->changelog.item_head))
                return;
        if (ring_move(c) && c->compact_left > c->changelog.floor)
                c->compact_at = AT_REST;
        else
                cursor_begin(c);
}
