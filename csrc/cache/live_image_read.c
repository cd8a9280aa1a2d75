/* Reads a live image: lookups by name and id, and the walk in the order of
 * names. It finds the tables as they were. Takes the lock only for memory. */
#include "cache/live_image.h"

#include "topic/sort.h"

RDMETA_INLINE const rdmeta_live_image_t *live(const rdmeta_image_t *image) {
        return (const rdmeta_live_image_t *)(const void *)image;
}

/* Returns the deadline of a topic in an image, from its own one. An image does
 * not say that a name is in flight. */
static int64_t live_deadline(const rdmeta_live_image_t *h, int64_t own) {
        if (own == RDMETA_DEADLINE_SHARED)
                return h->shared_deadline;
        return rdmeta_deadline_unasked(own);
}

/* Writes the topic that slot `k` of the name table led to. */
static void live_seen(const rdmeta_live_image_t *h, uint32_t k,
                      const rdmeta_topic_t *t, rdmeta_seen_t *out) {
        const int64_t own = rdmeta_table_pin_deadline(h->names, k, t);

        out->topic      = t;
        out->deadline   = live_deadline(h, own);
        out->provenance = own == RDMETA_DEADLINE_SHARED
                                  ? h->shared_provenance
                                  : rdmeta_table_pin_provenance(h->names, k,
                                                                t);
}

/* Returns the block of a name, and writes its slot to *at; NULL: none. */
RDMETA_INLINE const rdmeta_topic_t *live_name(const rdmeta_live_image_t *h,
                                              const char *name, size_t len,
                                              uint32_t *at) {
        const rdmeta_table_t *table = h->names->table;
        const uint64_t hash         = rdmeta_hash(table->key, name, len);
        uint32_t k                  = rdmeta_slot_first(hash) & table->mask;

        for (;; k = (k + 1) & table->mask) {
                const uint64_t slot = rdmeta_table_pin_slot(h->names, k);
                const rdmeta_topic_t *t;

                if (!slot)
                        return NULL;
                if (!rdmeta_slot_tag_is(slot, hash))
                        continue;
                t = rdmeta_slot_topic(slot);
                if (t->name_len != len ||
                    !rdmeta_name_equal(t->name, name, len))
                        continue;
                *at = k;
                return t->state == RDMETA_TOPIC_WAIT ? NULL : t;
        }
}

static int32_t live_leader(const rdmeta_image_t *image, const char *name,
                           size_t len, int32_t partition, int64_t mono_us,
                           int stale_ok) {
        const rdmeta_live_image_t *h = live(image);
        int32_t leader               = RDMETA_VIEW_GENERAL;
        const rdmeta_topic_t *t;
        int64_t deadline;
        uint32_t k;

        t = live_name(h, name, len, &k);
        if (!t)
                return RDMETA_NOT_CACHED;
        deadline = live_deadline(h, rdmeta_table_pin_deadline(h->names, k, t));
        if (RDMETA_LIKELY(deadline >= mono_us))
                leader = rdmeta_view_pick(t, len, partition);
        return RDMETA_LIKELY(leader >= 0)
                       ? leader
                       : rdmeta_view_leader_at(t, deadline, partition,
                                               mono_us, stale_ok);
}

static void live_prefetch(const rdmeta_image_t *image,
                          const rdmeta_str_t *names, size_t n) {
        const rdmeta_table_t *table = live(image)->names->table;
        uint64_t hash[RDMETA_IMAGE_PREFETCH];
        size_t i;

        for (i = 0; i < n; i++) {
                hash[i] = names[i].len - 1 < RDMETA_NAME_MAX
                                  ? rdmeta_hash(table->key, names[i].data,
                                                names[i].len)
                                  : 0;
                rdmeta_table_prefetch(table, hash[i]);
        }
        for (i = 0; i < n; i++)
                __builtin_prefetch(rdmeta_slot_topic(atomic_load_explicit(
                        &table->slots[rdmeta_slot_first(hash[i]) &
                                      table->mask],
                        memory_order_relaxed)));
}

static rdmeta_err_t live_find(const rdmeta_image_t *image, const char *name,
                              size_t len, rdmeta_seen_t *out) {
        const rdmeta_live_image_t *h = live(image);
        const rdmeta_topic_t *t;
        uint32_t k;

        t = live_name(h, name, len, &k);
        if (!t)
                return RDMETA_NOT_CACHED;
        live_seen(h, k, t, out);
        return RDMETA_OK;
}

/* Writes deadline and provenance of a topic that the caller found before. */
static void live_times(const rdmeta_image_t *image, rdmeta_seen_t *seen) {
        const rdmeta_live_image_t *h = live(image);
        const rdmeta_topic_t *t      = seen->topic;
        uint32_t k;

        if (live_name(h, t->name, t->name_len, &k) == t)
                live_seen(h, k, t, seen);
        else { /* the caller gave a topic of another image */
                seen->deadline   = RDMETA_DEADLINE_ASKED + 1;
                seen->provenance = rdmeta_provenance_none();
        }
}

/* Returns the text of a reason; it lives as long as the cache. */
static rdmeta_str_t live_reason(const rdmeta_image_t *image,
                                uint32_t number) {
        return rdmeta_reasons_text(&live(image)->cache->reasons, number);
}

static rdmeta_err_t live_find_id(const rdmeta_image_t *image,
                                 const uint8_t id[16], rdmeta_seen_t *out) {
        const rdmeta_live_image_t *h = live(image);
        const rdmeta_table_t *table  = h->ids->table;
        const uint64_t hash          = rdmeta_hash_id(table->key, id);
        uint32_t k                   = rdmeta_slot_first(hash) & table->mask;

        for (;; k = (k + 1) & table->mask) {
                const uint64_t slot = rdmeta_table_pin_slot(h->ids, k);

                if (!slot)
                        return RDMETA_NOT_CACHED;
                out->topic = rdmeta_slot_topic(slot);
                if (rdmeta_slot_tag_is(slot, hash) &&
                    out->topic != &rdmeta_tombstone.topic &&
                    !memcmp(rdmeta_cold(out->topic)->id, id, 16))
                        break;
        }
        live_times(image, out);
        return RDMETA_OK;
}

/* ---- in the order of names ----------------------------------------------- */

static void *live_alloc(rdmeta_image_t *image, size_t size) {
        return rdmeta_notify_alloc(&live(image)->cache->notify, size);
}

static void live_give(rdmeta_image_t *image, void *p, size_t size) {
        rdmeta_notify_free(&live(image)->cache->notify, p, size);
}

enum { PREFETCH = 16 };

/* Writes all topics of an image to `items`, in no order. Returns their number.
 * Blocks lie anywhere in memory, so it prefetches. */
static size_t live_collect(const rdmeta_live_image_t *h,
                           rdmeta_sort_item_t *items) {
        const rdmeta_table_t *table = h->names->table;
        size_t n                    = 0;
        uint32_t k;

        for (k = 0; k <= table->mask; k++) {
                const rdmeta_topic_t *t = rdmeta_slot_topic(
                        rdmeta_table_pin_slot(h->names, k));

                __builtin_prefetch(rdmeta_slot_topic(rdmeta_table_pin_slot(
                        h->names, (k + PREFETCH) & table->mask)));
                if (!t || t == &rdmeta_tombstone.topic ||
                    t->state == RDMETA_TOPIC_WAIT)
                        continue;
                items[n].topic = t;
                items[n].with  = k;
                n++;
        }
        return n;
}

/* Makes the list of an image's topics by name. NO_MEMORY. */
static rdmeta_err_t order_make(rdmeta_live_image_t *h,
                               rdmeta_live_image_order_t **out) {
        /* A table is never filled by more than half. */
        const size_t most       = ((size_t)h->names->table->mask + 1) / 2;
        const size_t items_size = (most + 1) * sizeof(rdmeta_sort_item_t);
        rdmeta_live_image_order_t *order;
        rdmeta_sort_item_t *items;
        size_t size, i, n;

        items = (rdmeta_sort_item_t *)live_alloc(&h->image, items_size);
        if (!items)
                return rdmeta_notify_missing(&h->cache->notify);
        n     = live_collect(h, items);
        size  = sizeof(*order) + n * sizeof(order->topics[0]);
        order = (rdmeta_live_image_order_t *)live_alloc(&h->image, size);
        if (order) {
                rdmeta_sort_topics(items, n);
                order->size = size;
                order->n    = n;
                for (i = 0; i < n; i++) {
                        order->topics[i].topic = items[i].topic;
                        order->topics[i].slot  = (uint32_t)items[i].with;
                }
        }
        live_give(&h->image, items, items_size);
        *out = order;
        return order ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
}

/* Sorts the topics at the first walk, without the lock. If two threads sort at
 * once, the second one drops its list. */
static rdmeta_err_t live_order(rdmeta_image_t *image, size_t *n) {
        rdmeta_live_image_t *h = (rdmeta_live_image_t *)(void *)image;
        rdmeta_live_image_order_t *order = atomic_load_explicit(
                &h->order, memory_order_acquire);
        rdmeta_live_image_order_t *none  = NULL;
        rdmeta_err_t err;

        if (!order) {
                err = order_make(h, &order);
                if (err)
                        return err;
                if (atomic_compare_exchange_strong_explicit(
                            &h->order, &none, order, memory_order_acq_rel,
                            memory_order_acquire)) {
                        atomic_fetch_add_explicit(&h->cache->live_images.bytes,
                                                  order->size,
                                                  memory_order_relaxed);
                } else {
                        live_give(image, order, order->size);
                        order = none;
                }
        }
        *n = order->n;
        return RDMETA_OK;
}

static rdmeta_err_t live_at(const rdmeta_image_t *image, size_t i,
                            rdmeta_seen_t *out) {
        const rdmeta_live_image_t *h           = live(image);
        const rdmeta_live_image_order_t *order = atomic_load_explicit(
                &h->order, memory_order_acquire);

        live_seen(h, order->topics[i].slot, order->topics[i].topic, out);
        return RDMETA_OK;
}

static const rdmeta_image_ops_t live_ops = {
        .leader  = live_leader,
        .prefetch   = live_prefetch,
        .find    = live_find,
        .find_id = live_find_id,
        .times   = live_times,
        .reason  = live_reason,
        .order   = live_order,
        .at      = live_at,
        .info    = rdmeta_live_image_info,
        .alloc   = live_alloc,
        .free    = live_give,
        .destroy = rdmeta_live_image_destroy};

rdmeta_image_t *rdmeta_cache_image(rdmeta_cache_t *c, rdmeta_time_t now) {
        return rdmeta_live_image_take(c, now, &live_ops);
}
