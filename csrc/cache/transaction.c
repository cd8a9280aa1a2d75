/* Versions: their batches in the changelog, and their wake-ups. See
 * transaction.h. */
#include "cache/transaction.h"

#include "cache/entry.h"
#include "cache/live_image.h"

void rdmeta_transaction_init(rdmeta_transaction_t *w, rdmeta_cache_t *c,
                             rdmeta_time_t now, int32_t source,
                             int32_t source_broker) {
        memset(w, 0, sizeof(*w));
        w->c             = c;
        w->now           = now;
        w->source        = source;
        w->source_broker = source_broker;
        w->version       = rdmeta_notify_version(&c->notify) + 1;
}

rdmeta_err_t rdmeta_transaction_reserve(rdmeta_transaction_t *w, size_t n) {
        rdmeta_err_t err = rdmeta_live_images_reserve(w->c, n);

        if (err)
                return err;
        err         = rdmeta_changelog_reserve(&w->c->changelog, n);
        w->recorded = err == 1;
        return err == 1 ? RDMETA_OK : err;
}

void rdmeta_transaction_begin(rdmeta_transaction_t *w,
                              const rdmeta_brokers_t *next) {
        rdmeta_changelog_batch_t batch;

        w->begun = 1;
        if (!w->recorded) {
                rdmeta_changelog_skip(&w->c->changelog, w->version);
                return;
        }
        memset(&batch, 0, sizeof(batch));
        batch.version       = w->version;
        batch.wall_us       = w->now.wall_us;
        batch.source        = w->source;
        batch.source_broker = w->source_broker;
        batch.brokers       = next ? next : rdmeta_table_brokers(w->c);
        batch.old_brokers   = next ? rdmeta_table_brokers(w->c) : NULL;
        rdmeta_changelog_begin(&w->c->changelog, &batch);
}

void rdmeta_transaction_item(rdmeta_transaction_t *w, rdmeta_topic_t *old,
                             rdmeta_topic_t *new_) {
        if (w->recorded)
                rdmeta_changelog_item(&w->c->changelog, old, new_);
        else if (old)
                rdmeta_entry_retire(w->c, old);
}

void rdmeta_transaction_brokers(rdmeta_transaction_t *w,
                                rdmeta_brokers_t *next) {
        rdmeta_brokers_t *old = rdmeta_table_brokers(w->c);

        if (rdmeta_brokers_lost(old, next))
                w->c->notes.walk = 1;
        else if (rdmeta_brokers_lost(next, old))
                w->c->notes.recheck = 1;
        atomic_store_explicit(&w->c->root.brokers, next, memory_order_release);
        if (!w->recorded)
                rdmeta_epoch_large(&w->c->epochs, &old->large);
}

void rdmeta_transaction_end(rdmeta_transaction_t *w, int changed) {
        rdmeta_changelog_trim(&w->c->changelog);
        if (changed)
                rdmeta_notify_all(&w->c->notify, w->version);
}
