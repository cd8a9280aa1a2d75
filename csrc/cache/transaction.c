#include "cache/transaction.h"

#include "cache/entry.h"
#include "cache/live_image.h"

void rdmeta_write_init(rdmeta_write_t *w, rdmeta_cache_t *c, rdmeta_time_t now,
                       int32_t source, int32_t source_broker) {
        memset(w, 0, sizeof(*w));
        w->c             = c;
        w->now           = now;
        w->source        = source;
        w->source_broker = source_broker;
        w->version       = rdmeta_wait_version(&c->wait) + 1;
}

rdmeta_err_t rdmeta_write_reserve(rdmeta_write_t *w, size_t n) {
        rdmeta_err_t err = rdmeta_holds_reserve(w->c, n);

        if (err)
                return err;
        err         = rdmeta_ring_reserve(&w->c->ring, n);
        w->recorded = err == 1;
        return err == 1 ? RDMETA_OK : err;
}

void rdmeta_write_begin(rdmeta_write_t *w, const rdmeta_brokers_t *next) {
        rdmeta_ring_batch_t batch;

        w->begun = 1;
        if (!w->recorded) {
                rdmeta_ring_skip(&w->c->ring, w->version);
                return;
        }
        memset(&batch, 0, sizeof(batch));
        batch.version       = w->version;
        batch.wall_us       = w->now.wall_us;
        batch.source        = w->source;
        batch.source_broker = w->source_broker;
        batch.brokers       = next ? next : rdmeta_table_brokers(w->c);
        batch.old_brokers   = next ? rdmeta_table_brokers(w->c) : NULL;
        rdmeta_ring_begin(&w->c->ring, &batch);
}

void rdmeta_write_item(rdmeta_write_t *w, rdmeta_topic_t *old,
                       rdmeta_topic_t *new_) {
        if (w->recorded)
                rdmeta_ring_item(&w->c->ring, old, new_);
        else if (old)
                rdmeta_retire(w->c, old);
}

void rdmeta_write_brokers(rdmeta_write_t *w, rdmeta_brokers_t *next) {
        rdmeta_brokers_t *old = rdmeta_table_brokers(w->c);

        atomic_store_explicit(&w->c->root.brokers, next, memory_order_release);
        if (!w->recorded)
                rdmeta_reclaim_large(&w->c->reclaim, &old->large);
}

void rdmeta_write_end(rdmeta_write_t *w, int told) {
        rdmeta_ring_trim(&w->c->ring);
        if (told)
                rdmeta_wait_notify(&w->c->wait, w->version);
}
