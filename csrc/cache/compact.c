/* Copies blocks out of chunks that are to leave. See compact.h. */
#include "cache/compact.h"

#include "cache/entry.h"
#include "cache/live_image.h"

/* The bit of a link that says: the other bits are a copy's address. A place in
 * the order array never has this bit, and an address never has it. */
#define MOVED (UINT64_C(1) << 63)
#define AT_REST UINT32_MAX

/* Gives an entry a copy of its block and retires the block. Returns 0 if there
 * is no memory. */
static int entry_move(rdmeta_cache_t *c, rdmeta_entry_t *e) {
        rdmeta_topic_t *old  = e->topic;
        rdmeta_topic_t *copy = rdmeta_topic_copy(&c->blocks, old);

        if (!copy)
                return 0;
        rdmeta_entry_swap(c, e, copy);
        rdmeta_entry_retire(c, old);
        c->stats.topics_moved++;
        return 1;
}

/* ---- the changelog ------------------------------------------------------- */

/* Returns the entry whose block is `t`; NULL: `t` was replaced. */
static rdmeta_entry_t *entry_living(const rdmeta_cache_t *c,
                                    const rdmeta_topic_t *t) {
        const uint64_t order = rdmeta_cold(t)->link;
        rdmeta_entry_t *e;

        if (order >= c->order.count)
                return NULL;
        e = c->order.slots[order].entry;
        return e && e->topic == t ? e : NULL;
}

/* Returns the copy of a replaced block, and makes it if there is none and
 * `more` is set. NULL: there is no copy. */
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

/* Moves the block that an item has as `new_`. Returns 0 if it stays, because
 * there is no memory or `more` is 0. */
static int changelog_new(rdmeta_cache_t *c, rdmeta_changelog_item_t *item,
                         int more) {
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

/* Moves the block that an item has as `old_`, and retires the original.
 * `taken`: the images that were taken before the batch. Returns 0 if it stays,
 * because there is no memory or `more` is 0. */
static int changelog_old(rdmeta_cache_t *c, rdmeta_changelog_item_t *item,
                         uint64_t taken, int more) {
        rdmeta_topic_t *old  = item->old_;
        rdmeta_topic_t *copy = copy_of(c, old, more);

        if (!copy)
                return 0;
        item->old_ = copy;
        rdmeta_epoch_topic(&c->epochs, old, taken);
        c->stats.topics_moved++;
        return 1;
}

/* Moves the blocks of all items, the oldest item first. So an item that has a
 * block as `new_` comes before the one that has it as `old_`. Once there is no
 * memory for a copy, no later item gets one: so both items point to the copy,
 * or neither does. Returns 0 if there was no memory. */
static int changelog_move(rdmeta_cache_t *c) {
        rdmeta_changelog_t *changelog = &c->changelog;
        int more                      = 1;
        uint64_t b, i = changelog->item_head;

        for (b = changelog->batch_head; b != changelog->batch_tail; b++) {
                const rdmeta_changelog_batch_t *batch =
                        rdmeta_changelog_batch(changelog, b);
                uint32_t k;

                for (k = 0; k < batch->n; k++, i++) {
                        rdmeta_changelog_item_t *item =
                                &changelog->items[i & changelog->item_mask];

                        if (item->new_ &&
                            rdmeta_topic_leaves(&c->blocks, item->new_))
                                more &= changelog_new(c, item, more);
                        if (item->old_ &&
                            rdmeta_topic_leaves(&c->blocks, item->old_))
                                more &= changelog_old(c, item, batch->taken,
                                                      more);
                }
        }
        return more;
}

/* ---- the cursor ---------------------------------------------------------- */

/* Returns 1 if an item of the changelog has `t` as `new_`. */
static int changelog_has_new(const rdmeta_cache_t *c,
                             const rdmeta_topic_t *t) {
        return t->state != RDMETA_TOPIC_WAIT &&
               rdmeta_cold(t)->version > c->changelog.floor;
}

static void cursor_begin(rdmeta_cache_t *c) {
        c->compact_at      = 0;
        c->compact_skipped = UINT64_MAX;
}

static void cursor_skip(rdmeta_cache_t *c, const rdmeta_topic_t *t) {
        const uint64_t version = rdmeta_cold(t)->version;

        if (version < c->compact_skipped)
                c->compact_skipped = version;
}

/* Moves blocks from the cursor on. Returns 0 if there is no memory. */
static int order_move(rdmeta_cache_t *c, size_t looks, size_t moves) {
        uint32_t *at = &c->compact_at;

        for (; *at < c->order.count && looks && moves; ++*at, looks--) {
                rdmeta_entry_t *e = c->order.slots[*at].entry;

                if (!e || !rdmeta_topic_leaves(&c->blocks, e->topic))
                        continue;
                if (changelog_has_new(c, e->topic)) {
                        cursor_skip(c, e->topic);
                        continue;
                }
                if (!entry_move(c, e))
                        return 0;
                moves--;
        }
        return 1;
}

/* Returns 1 if the cursor has work to do, or a new plan gives it some. Live
 * images keep each original that is moved, and pages besides. So with images,
 * more memory must be unused before a plan is made. Chunks whose last originals
 * images keep do not prevent a new plan. */
static int compact_is_due(rdmeta_cache_t *c) {
        const size_t part = rdmeta_tailq_first(&c->epochs.images) ? 4 : 8;

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
        const rdmeta_changelog_t *changelog = &c->changelog;

        if (!compact_is_due(c) || rdmeta_live_images_reserve(c, moves) ||
            !order_move(c, looks, moves) || c->compact_at < c->order.count)
                return;
        if (rdmeta_live_images_reserve(
                    c, changelog->item_tail - changelog->item_head))
                return;
        if (changelog_move(c) && c->compact_skipped > changelog->floor)
                c->compact_at = AT_REST;
        else
                cursor_begin(c);
}
