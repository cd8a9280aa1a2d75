/* The life of a live image, and what writers do so that it stays as it is. See
 * live_image.h. */
#include "cache/live_image.h"

static rdmeta_live_image_t *live_of(rdmeta_tailq_node_t *n) {
        return RDMETA_CONTAINER(n, rdmeta_live_image_t, epoch_image.node);
}

static rdmeta_live_image_t *youngest(const rdmeta_cache_t *c) {
        rdmeta_tailq_node_t *n = rdmeta_tailq_last(&c->epochs.images);

        return n ? live_of(n) : NULL;
}

static rdmeta_live_image_t *older(const rdmeta_live_image_t *h) {
        rdmeta_tailq_node_t *n = rdmeta_tailq_prev(&h->epoch_image.node);

        return n ? live_of(n) : NULL;
}

void rdmeta_live_images_init(rdmeta_cache_t *c) {
        const rdmeta_allocator_t *allocator = &c->conf.allocator;

        rdmeta_slot_page_pool_init(&c->live_images.names, allocator, 1);
        rdmeta_slot_page_pool_init(&c->live_images.ids, allocator, 0);
}

void rdmeta_live_images_destroy(rdmeta_cache_t *c) {
        rdmeta_slot_page_pool_trim(&c->live_images.names, 0);
        rdmeta_slot_page_pool_trim(&c->live_images.ids, 0);
}

/* ---- room ---------------------------------------------------------------- */

static size_t least(size_t a, size_t b) {
        return a < b ? a : b;
}

/* Images of one table follow each other in the list. A topic's slot, deadline
 * and provenance are in one page of the name table. Where a topic gets another
 * id, two pages of the id table change. */
void rdmeta_live_images_room(const rdmeta_cache_t *c, size_t n, size_t *names,
                             size_t *ids) {
        const size_t hints =
                rdmeta_deadlines_count(&c->deadlines, RDMETA_DEADLINES_HINT);
        const rdmeta_table_t *last = NULL;
        const rdmeta_live_image_t *h;

        *names = 0;
        for (h = youngest(c); h; h = older(h)) {
                if (h->names->table == last)
                        continue;
                last = h->names->table;
                *names += least(rdmeta_table_pins_uncopied(last), n + hints);
        }
        *ids = least(rdmeta_table_pins_uncopied(rdmeta_ids(c)), 2 * n);
}

rdmeta_err_t rdmeta_live_images_reserve(rdmeta_cache_t *c, size_t n) {
        rdmeta_err_t err;
        size_t names, ids;

        if (!youngest(c))
                return RDMETA_OK;
        rdmeta_live_images_room(c, n, &names, &ids);
        err = rdmeta_slot_page_pool_reserve(&c->live_images.names, names);
        if (!err)
                err = rdmeta_slot_page_pool_reserve(&c->live_images.ids, ids);
        return err;
}

void rdmeta_live_images_trim(rdmeta_cache_t *c) {
        size_t names, ids;

        if (!c->live_images.names.n && !c->live_images.ids.n)
                return;
        rdmeta_live_images_room(c, 0, &names, &ids);
        rdmeta_slot_page_pool_trim(&c->live_images.names, names);
        rdmeta_slot_page_pool_trim(&c->live_images.ids, ids);
}

/* ---- while the writer goes on -------------------------------------------- */

void rdmeta_live_images_times(rdmeta_cache_t *c, const rdmeta_topic_t *t) {
        rdmeta_table_t *last = NULL;
        const rdmeta_live_image_t *h;

        if (t->state == RDMETA_TOPIC_WAIT)
                return; /* no image has it */
        for (h = youngest(c); h; h = older(h)) {
                if (!rdmeta_epoch_image_has(&h->epoch_image, t))
                        return;
                if (h->names->table == last)
                        continue;
                last = h->names->table;
                rdmeta_table_pins_topic(last, t);
        }
}

int rdmeta_live_images_table(rdmeta_cache_t *c, rdmeta_table_t *t) {
        if (!t->pins.count)
                return 0;
        c->live_images.tables += t->large.size;
        return 1;
}

size_t rdmeta_live_images_bytes(const rdmeta_cache_t *c) {
        const rdmeta_live_images_t *s = &c->live_images;

        return s->bytes + s->tables + s->names.n * s->names.size +
               s->ids.n * s->ids.size;
}

size_t rdmeta_live_images_bytes_all(const rdmeta_cache_t *c) {
        size_t bytes = rdmeta_live_images_bytes(c);
        const rdmeta_live_image_t *h;

        for (h = youngest(c); h; h = older(h))
                bytes += h->epoch_image.kept_bytes;
        return bytes;
}

/* ---- life ---------------------------------------------------------------- */

static size_t live_bytes(const rdmeta_live_image_t *h) {
        const rdmeta_live_image_order_t *order = atomic_load_explicit(
                &h->order, memory_order_relaxed);
        size_t bytes = sizeof(*h);

        bytes += h->names ? rdmeta_table_pin_size(h->names) : 0;
        bytes += h->ids ? rdmeta_table_pin_size(h->ids) : 0;
        bytes += h->image.brokers ? h->image.brokers->large.size : 0;
        return bytes + (order ? order->size : 0);
}

static void pin_drop(rdmeta_cache_t *c, rdmeta_table_pin_t *pin) {
        rdmeta_table_t *t = pin ? pin->table : NULL;

        if (!pin)
                return;
        rdmeta_table_pin_destroy(pin);
        if (t->pins.count || t == rdmeta_names(c) || t == rdmeta_ids(c))
                return;
        c->live_images.tables -= t->large.size;
        rdmeta_epoch_large(&c->epochs, &t->large);
}

/* Frees an image that is in no list, with all that only it has. */
static void live_free(rdmeta_cache_t *c, rdmeta_live_image_t *h) {
        const rdmeta_allocator_t *allocator = &c->conf.allocator;
        rdmeta_live_image_order_t *order    = atomic_load_explicit(
                &h->order, memory_order_relaxed);

        pin_drop(c, h->names);
        pin_drop(c, h->ids);
        rdmeta_brokers_destroy(allocator, h->image.brokers);
        rdmeta_free(allocator, order, order ? order->size : 0);
        rdmeta_free(allocator, h, sizeof(*h));
}

/* Fills in what an image says of itself: version, times, counts. */
static void live_about(rdmeta_live_image_t *h, rdmeta_time_t now) {
        rdmeta_image_info_t *about = &h->image.about;
        const rdmeta_cache_t *c    = h->cache;
        const uint64_t retained    = rdmeta_deadlines_count(
                &c->deadlines, RDMETA_DEADLINES_RETAINED);

        h->shared_deadline = atomic_load_explicit(&c->root.shared_deadline,
                                                  memory_order_relaxed);
        h->shared_provenance      = rdmeta_view_shared_provenance(&c->root);
        about->version            = rdmeta_notify_version(&c->notify);
        about->taken_mono_us      = now.mono_us;
        about->said_mono_us       = now.mono_us;
        about->taken_wall_us      = now.wall_us;
        about->max_age_us         = c->conf.max_age_us;
        about->shared_deadline_us = rdmeta_all_deadline(c);
        about->topics             = c->stats.topics;
        about->partitions         = c->stats.partitions;
        about->erased             = c->erased;
        about->negatives          = c->stats.negatives;
        if (about->negatives > retained)
                about->negatives -= retained;
        else
                about->negatives = 0;
        memcpy(about->session, c->session, sizeof(about->session));
}

/* Returns an image that is not in the list of images yet. NULL: no memory. */
static rdmeta_live_image_t *live_new(rdmeta_cache_t *c, rdmeta_time_t now,
                                     const rdmeta_image_ops_t *ops) {
        const rdmeta_allocator_t *allocator = &c->conf.allocator;
        rdmeta_live_image_t *h =
                (rdmeta_live_image_t *)rdmeta_alloc(allocator, sizeof(*h));

        if (!h)
                return NULL;
        memset(h, 0, sizeof(*h));
        rdmeta_image_init(&h->image, ops);
        h->cache         = c;
        h->names         = rdmeta_table_pin_new(&c->live_images.names,
                                                rdmeta_names(c));
        h->ids           = rdmeta_table_pin_new(&c->live_images.ids,
                                                rdmeta_ids(c));
        h->image.brokers = rdmeta_brokers_copy(allocator,
                                               rdmeta_table_brokers(c));
        live_about(h, now);
        if (!h->names || !h->ids || !h->image.brokers) {
                live_free(c, h);
                return NULL;
        }
        return h;
}

/* Adds an image to the list, so that writers copy pages and keep blocks for it.
 * Returns 1, or 0 if there is no memory: then it has freed the image. */
static int live_list(rdmeta_cache_t *c, rdmeta_live_image_t *h) {
        rdmeta_epoch_image_add(&c->epochs, &h->epoch_image,
                               h->image.about.version);
        if (!rdmeta_live_images_reserve(c, 0))
                return 1;
        rdmeta_epoch_image_remove(&c->epochs, &h->epoch_image);
        live_free(c, h);
        rdmeta_live_images_trim(c);
        return 0;
}

rdmeta_image_t *rdmeta_live_image_take(rdmeta_cache_t *c, rdmeta_time_t now,
                                       const rdmeta_image_ops_t *ops) {
        rdmeta_live_image_t *h;

        if (rdmeta_notify_lock(&c->notify))
                return NULL;
        h = live_new(c, now, ops);
        if (h && !live_list(c, h))
                h = NULL;
        if (h) {
                c->live_images.bytes += live_bytes(h);
                rdmeta_ref_take(&c->references);
        }
        rdmeta_notify_unlock(&c->notify);
        return h ? &h->image : NULL;
}

void rdmeta_live_image_destroy(rdmeta_image_t *image) {
        rdmeta_live_image_t *h = (rdmeta_live_image_t *)(void *)image;
        rdmeta_cache_t *c      = h->cache;

        if (rdmeta_notify_lock(&c->notify))
                return;
        c->live_images.bytes -= live_bytes(h);
        rdmeta_epoch_image_remove(&c->epochs, &h->epoch_image);
        live_free(c, h);
        rdmeta_live_images_trim(c);
        rdmeta_epoch_collect(&c->epochs);
        rdmeta_notify_unlock(&c->notify);
        rdmeta_ref_drop(&c->references);
}

void rdmeta_live_image_info(const rdmeta_image_t *image,
                            rdmeta_image_info_t *out) {
        const rdmeta_live_image_t *h =
                (const rdmeta_live_image_t *)(const void *)image;
        size_t names, ids;

        if (rdmeta_notify_lock(&h->cache->notify)) {
                out->bytes = 0;
                return;
        }
        names      = h->names->count - h->names->uncopied;
        ids        = h->ids->count - h->ids->uncopied;
        out->bytes = live_bytes(h) + h->epoch_image.kept_bytes +
                     names * h->names->pool->size + ids * h->ids->pool->size;
        rdmeta_notify_unlock(&h->cache->notify);
}
