/*
 * changes: hands the changelog to readers that want to know what changed.
 *
 * The call copies pairs of blocks out under the lock, and compares them after
 * it has dropped the lock. So neither visits nor the comparison delay writers.
 * A reader of the call's own is entered all the while. So blocks that leave the
 * changelog meanwhile stay until the end of the call.
 */
#include "cache/state.h"
#include "topic/diff.h"

#include <stdlib.h>

typedef struct feed {
        rdmeta_cache_t *c;
        rdmeta_reader_t *reader;
        rdmeta_changelog_batch_t *batches;
        rdmeta_changelog_item_t *items;
        int32_t *ids;
        size_t n_batches, n_items, size;
        uint32_t ids_each;
        char *memory;
} feed_t;

/* Returns the first batch after `since`. Batches are in the order of their
 * versions. */
static uint64_t feed_first(const rdmeta_changelog_t *changelog,
                           uint64_t since) {
        uint64_t lo = changelog->batch_head, hi = changelog->batch_tail;

        while (lo < hi) {
                const uint64_t mid = lo + (hi - lo) / 2;
                if (rdmeta_changelog_batch(changelog, mid)->version > since)
                        hi = mid;
                else
                        lo = mid + 1;
        }
        return lo;
}

/* Copies the batches from `first` on, and their items. One allocation has both
 * and the lists of one record. */
static rdmeta_err_t feed_copy(feed_t *f, const rdmeta_changelog_t *changelog,
                              uint64_t first) {
        uint64_t i, item = changelog->item_tail;
        uint32_t longest = 1;
        char *p;

        if (first != changelog->batch_tail)
                item = rdmeta_changelog_batch(changelog, first)->first;
        f->n_batches = (size_t)(changelog->batch_tail - first);
        f->n_items   = (size_t)(changelog->item_tail - item);
        for (i = item; i < changelog->item_tail; i++) {
                const rdmeta_changelog_item_t *it =
                        rdmeta_changelog_at(changelog, i);
                const uint32_t a = rdmeta_diff_longest(it->old_);
                const uint32_t b = rdmeta_diff_longest(it->new_);
                longest          = a > longest ? a : longest;
                longest          = b > longest ? b : longest;
        }
        f->ids_each = longest;
        f->size     = f->n_batches * sizeof(*f->batches) +
                  f->n_items * sizeof(*f->items) +
                  RDMETA_DIFF_LISTS * (size_t)longest * sizeof(int32_t);
        p = (char *)rdmeta_alloc(&f->c->conf.allocator, f->size);
        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        f->memory  = p;
        f->batches = (rdmeta_changelog_batch_t *)(void *)p;
        p += f->n_batches * sizeof(*f->batches);
        f->items = (rdmeta_changelog_item_t *)(void *)p;
        p += f->n_items * sizeof(*f->items);
        f->ids = (int32_t *)(void *)p;
        for (i = 0; i < f->n_batches; i++)
                f->batches[i] = *rdmeta_changelog_batch(changelog, first + i);
        for (i = 0; i < f->n_items; i++)
                f->items[i] = *rdmeta_changelog_at(changelog, item + i);
        return RDMETA_OK;
}

/* Visits the records of one batch. Returns 0, or what a visit returned to end
 * the walk. */
static int32_t feed_batch(rdmeta_diff_out_t *out,
                          const rdmeta_changelog_batch_t *b,
                          const rdmeta_changelog_item_t *items) {
        int32_t res = 0;
        uint32_t i;

        out->record.offset        = -1;
        out->record.version       = b->version;
        out->record.wall_us       = b->wall_us;
        out->record.source        = b->source;
        out->record.source_broker = b->source_broker < 0 ? RDMETA_NONE
                                                         : b->source_broker;
        out->record.cluster_id    = b->brokers->cluster_id;
        if (b->old_brokers)
                res = rdmeta_diff_brokers(out, b->old_brokers, b->brokers);
        for (i = 0; i < b->n && !res; i++)
                res = rdmeta_diff_topics(out, items[i].old_, items[i].new_);
        return res;
}

/* Visits the records of all batches. */
static rdmeta_err_t feed_visit(const feed_t *f, int whole,
                               rdmeta_change_visit_t visit, void *opaque) {
        const rdmeta_changelog_item_t *items = f->items;
        rdmeta_diff_out_t out;
        rdmeta_err_t err = RDMETA_OK;
        size_t i;

        memset(&out, 0, sizeof(out));
        out.visit    = visit;
        out.opaque   = opaque;
        out.whole    = whole;
        out.ids      = f->ids;
        out.ids_each = f->ids_each;
        for (i = 0; i < f->n_batches && !err; i++) {
                err = feed_batch(&out, &f->batches[i], items);
                items += f->batches[i].n;
        }
        return err;
}

static rdmeta_err_t feed(rdmeta_cache_t *c, uint64_t since, int whole,
                         rdmeta_change_visit_t visit, void *opaque,
                         uint64_t *until, int32_t *resync) {
        rdmeta_err_t err = RDMETA_OK;
        feed_t f;

        memset(&f, 0, sizeof(f));
        f.c      = c;
        f.reader = rdmeta_reader_new(c, 0);
        if (!f.reader)
                return rdmeta_notify_missing(&c->notify);
        rdmeta_reader_enter(f.reader);
        rdmeta_notify_lock(&c->notify);
        *until  = rdmeta_notify_version(&c->notify);
        *resync = since < c->changelog.floor || since > *until;
        if (!*resync)
                err = feed_copy(&f, &c->changelog,
                                feed_first(&c->changelog, since));
        rdmeta_notify_unlock(&c->notify);
        if (!err && !*resync)
                err = feed_visit(&f, whole, visit, opaque);
        rdmeta_reader_leave(f.reader);
        rdmeta_notify_free(&c->notify, f.memory, f.size);
        rdmeta_reader_destroy(f.reader);
        return err;
}

rdmeta_err_t rdmeta_cache_changes(rdmeta_cache_t *c, uint64_t since,
                                  rdmeta_change_visit_t visit, void *opaque,
                                  uint64_t *until, int32_t *resync) {
        return feed(c, since, 0, visit, opaque, until, resync);
}

rdmeta_err_t rdmeta_cache_changes_whole(rdmeta_cache_t *c, uint64_t since,
                                        rdmeta_change_visit_t visit,
                                        void *opaque, uint64_t *until,
                                        int32_t *resync) {
        return feed(c, since, 1, visit, opaque, until, resync);
}
