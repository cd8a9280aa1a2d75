#include "store/changelog.h"

#include "base/alloc.h"

void rdmeta_changelog_init(rdmeta_changelog_t *changelog,
                           const rdmeta_allocator_t *allocator,
                           rdmeta_epoch_t *epochs, size_t limit) {
        memset(changelog, 0, sizeof(*changelog));
        changelog->allocator = allocator;
        changelog->epochs    = epochs;
        changelog->limit     = limit;
}

static size_t capacity(const void *p, size_t mask) {
        return p ? mask + 1 : 0;
}

static size_t used_bytes(const rdmeta_changelog_t *changelog) {
        return changelog->live +
               (size_t)(changelog->batch_tail - changelog->batch_head) *
                       sizeof(rdmeta_changelog_batch_t) +
               (size_t)(changelog->item_tail - changelog->item_head) *
                       sizeof(rdmeta_changelog_item_t);
}

size_t rdmeta_changelog_bytes(const rdmeta_changelog_t *changelog) {
        return changelog->live +
               capacity(changelog->batches, changelog->batch_mask) *
                       sizeof(rdmeta_changelog_batch_t) +
               capacity(changelog->items, changelog->item_mask) *
                       sizeof(rdmeta_changelog_item_t);
}

static size_t old_bytes(const rdmeta_changelog_t *changelog,
                        const rdmeta_changelog_item_t *item) {
        if (!item->old_)
                return 0;
        return rdmeta_topic_bytes(changelog->epochs->blocks, item->old_);
}

static void batch_pop(rdmeta_changelog_t *changelog) {
        const rdmeta_changelog_batch_t *b =
                rdmeta_changelog_batch(changelog, changelog->batch_head++);
        uint32_t i;

        for (i = 0; i < b->n; i++) {
                const rdmeta_changelog_item_t *item =
                        rdmeta_changelog_at(changelog, changelog->item_head++);
                changelog->live -= old_bytes(changelog, item);
                if (item->old_)
                        rdmeta_epoch_topic(changelog->epochs, item->old_,
                                           b->taken);
        }
        if (b->old_brokers) {
                changelog->live -= b->old_brokers->large.size;
                changelog->live_large -= b->old_brokers->large.size;
                rdmeta_epoch_large(
                        changelog->epochs,
                        (rdmeta_large_t *)(uintptr_t)b->old_brokers);
        }
        if (b->version > changelog->floor)
                changelog->floor = b->version;
}

void rdmeta_changelog_trim(rdmeta_changelog_t *changelog) {
        while (changelog->batch_head != changelog->batch_tail &&
               used_bytes(changelog) > changelog->limit)
                batch_pop(changelog);
}

void rdmeta_changelog_skip(rdmeta_changelog_t *changelog, uint64_t version) {
        while (changelog->batch_head != changelog->batch_tail)
                batch_pop(changelog);
        changelog->floor = version;
}

void rdmeta_changelog_destroy(rdmeta_changelog_t *changelog) {
        rdmeta_changelog_skip(changelog, 0);
        rdmeta_free(changelog->allocator, changelog->batches,
                    capacity(changelog->batches, changelog->batch_mask) *
                            sizeof(*changelog->batches));
        rdmeta_free(changelog->allocator, changelog->items,
                    capacity(changelog->items, changelog->item_mask) *
                            sizeof(*changelog->items));
        memset(changelog, 0, sizeof(*changelog));
}

/* Moves a circular array to one with room for `need`. NULL: no memory. */
static void *array_grow(const rdmeta_allocator_t *allocator, void *old,
                        size_t *mask, size_t size, size_t need, uint64_t head,
                        uint64_t tail) {
        size_t n = 16;
        uint64_t i;
        char *p;

        while (n < need)
                n *= 2;
        p = (char *)rdmeta_alloc(allocator, n * size);
        if (!p)
                return NULL;
        for (i = head; i != tail; i++)
                memcpy(p + (i & (n - 1)) * size,
                       (const char *)old + (i & *mask) * size, size);
        rdmeta_free(allocator, old, capacity(old, *mask) * size);
        *mask = n - 1;
        return p;
}

/* Returns 1 if the room is far more than needed: one version of very many
 * topics, such as the first, needs room that later ones do not. */
static int has_too_much_room(size_t room, size_t items) {
        return room > 4096 && items < room / 8;
}

rdmeta_err_t rdmeta_changelog_reserve(rdmeta_changelog_t *changelog, size_t n) {
        const size_t batches =
                (size_t)(changelog->batch_tail - changelog->batch_head) + 1;
        const size_t items =
                (size_t)(changelog->item_tail - changelog->item_head) + n;
        const size_t room = capacity(changelog->items, changelog->item_mask);
        void *p;

        if (n > changelog->limit / sizeof(rdmeta_changelog_item_t))
                return 0;
        if (batches > capacity(changelog->batches, changelog->batch_mask)) {
                p = array_grow(changelog->allocator, changelog->batches,
                               &changelog->batch_mask,
                               sizeof(*changelog->batches), batches,
                               changelog->batch_head, changelog->batch_tail);
                if (!p)
                        return RDMETA_ERR_NO_MEMORY;
                changelog->batches = (rdmeta_changelog_batch_t *)p;
        }
        if (items > room || has_too_much_room(room, items)) {
                p = array_grow(changelog->allocator, changelog->items,
                               &changelog->item_mask,
                               sizeof(*changelog->items), items,
                               changelog->item_head, changelog->item_tail);
                if (!p && items > room)
                        return RDMETA_ERR_NO_MEMORY;
                if (p)
                        changelog->items = (rdmeta_changelog_item_t *)p;
        }
        return 1;
}

void rdmeta_changelog_begin(rdmeta_changelog_t *changelog,
                            const rdmeta_changelog_batch_t *batch) {
        const uint64_t k = changelog->batch_tail++;
        rdmeta_changelog_batch_t *b =
                &changelog->batches[k & changelog->batch_mask];

        *b       = *batch;
        b->first = changelog->item_tail;
        b->taken = changelog->epochs->taken;
        b->n     = 0;
        if (b->old_brokers) {
                changelog->live += b->old_brokers->large.size;
                changelog->live_large += b->old_brokers->large.size;
        }
}

void rdmeta_changelog_item(rdmeta_changelog_t *changelog, rdmeta_topic_t *old_,
                           rdmeta_topic_t *new_) {
        const uint64_t k = changelog->item_tail++;
        rdmeta_changelog_item_t *item =
                &changelog->items[k & changelog->item_mask];

        item->old_ = old_;
        item->new_ = new_;
        changelog->live += old_bytes(changelog, item);
        changelog->batches[(changelog->batch_tail - 1) & changelog->batch_mask]
                .n++;
}
