/*
 * Warm start: loads an image into a cache that knows nothing.
 *
 * The topics are copies of the image's blocks, past their deadlines: readers
 * get them as last known values, and clients ask for them again. Each keeps the
 * time when it was answered (RDMETA_DEADLINE_PAST). Answers are merged with
 * them. So an answer that is older than the image loses, as it would have lost
 * before. They have no digests, so the first answer is read.
 */
#include "cache/transaction.h"

#include "base/alloc.h"
#include "cache/entry.h"
#include "cache/tree.h"

typedef struct load {
        rdmeta_cache_t *c;
        rdmeta_image_t *image;
        rdmeta_time_t now;
        size_t n;      /* topics of the image */
        size_t staged; /* topics that have an entry already */
        size_t ids;    /* topics that have an id */
        rdmeta_brokers_t *brokers;
        rdmeta_transaction_t write;
        uint32_t reasons; /* number of reasons before the load */
        uint64_t dropped; /* reasons for which there was no number */
        /* By the image's number of a reason: 1 + this cache's number of it;
         * 0: not met yet. */
        uint16_t numbers[RDMETA_REASONS_MAX + 1];
} load_t;

/* Returns 1 if the cache has no entry, no broker and no cluster id. */
static int knows_nothing(const rdmeta_cache_t *c) {
        const rdmeta_brokers_t *b = rdmeta_table_brokers(c);

        return !c->entries && !b->count && !b->cluster_id.data;
}

/* Returns a deadline that makes a topic stale at once and keeps its age. Where
 * the old deadline came from the image's max age, it is moved to this cache's
 * max age. */
static int64_t load_deadline(const load_t *l, const rdmeta_seen_t *seen) {
        const int64_t past = rdmeta_deadlines_after(l->now.mono_us, -1);
        const int64_t old  = rdmeta_deadline_visible(seen->deadline);
        int64_t moved;

        if (seen->topic->state != RDMETA_TOPIC_VALID ||
            !rdmeta_deadline_plain(old))
                return old < past ? old : past;
        moved = rdmeta_deadlines_after(
                old, l->c->conf.max_age_us - l->image->about.max_age_us);
        if (moved < past)
                return moved;
        return rdmeta_deadline_plain(moved) ? moved - RDMETA_DEADLINE_PAST
                                            : past;
}

/* Replaces the image's number of a reason by this cache's. NO_MEMORY. */
static rdmeta_err_t load_provenance(load_t *l,
                                    rdmeta_provenance_t *provenance) {
        const rdmeta_str_t text = l->image->ops->reason(l->image,
                                                        provenance->reason);
        rdmeta_err_t err;
        uint16_t number;

        if (!text.data) {
                provenance->reason = 0;
                return RDMETA_OK;
        }
        if (!l->numbers[provenance->reason]) {
                err = rdmeta_reasons_number(&l->c->reasons, text, &number);
                if (err)
                        return err;
                l->numbers[provenance->reason] = (uint16_t)(number + 1);
                l->dropped += !number;
        }
        provenance->reason = (uint16_t)(l->numbers[provenance->reason] - 1);
        return RDMETA_OK;
}

/* Makes the entry of the image's topic `i`, unpublished. NO_MEMORY, or what the
 * image returns. */
static rdmeta_err_t load_topic(load_t *l, size_t i) {
        rdmeta_cache_t *c                = l->c;
        rdmeta_answer_order_slot_t *slot = &c->order.slots[i];
        rdmeta_seen_t seen;
        rdmeta_topic_t *t;
        rdmeta_err_t err = l->image->ops->at(l->image, i, &seen);

        if (!err)
                err = load_provenance(l, &seen.provenance);
        if (err)
                return err;
        t = rdmeta_topic_restate(&c->blocks, seen.topic, seen.topic->state,
                                 rdmeta_topic_error(seen.topic),
                                 l->write.version);
        if (!t)
                return RDMETA_ERR_NO_MEMORY;
        memset(slot, 0, sizeof(*slot));
        if (!rdmeta_entry_new(c, t, (uint32_t)i)) {
                rdmeta_topic_destroy(&c->blocks, t);
                return RDMETA_ERR_NO_MEMORY;
        }
        rdmeta_topic_provenance_set(t, seen.provenance);
        rdmeta_entry_deadline(c, slot->entry, load_deadline(l, &seen));
        l->ids += rdmeta_topic_has_id(t) != 0;
        l->staged++;
        return RDMETA_OK;
}

/* Makes all entries and the broker table, and reserves the room that commit
 * needs. */
static rdmeta_err_t load_stage(load_t *l) {
        rdmeta_cache_t *c                   = l->c;
        const rdmeta_allocator_t *allocator = &c->conf.allocator;
        rdmeta_err_t err;
        size_t i;

        c->order.count = c->order.holes = 0; /* the cache has no entry */
        c->order.api_version            = -1;
        rdmeta_transaction_init(&l->write, c, l->now, RDMETA_SOURCE_POLL, -1);
        err = rdmeta_answer_order_reserve(&c->order, allocator, l->n);
        for (i = 0; i < l->n && !err; i++)
                err = load_topic(l, i);
        if (!err)
                err = rdmeta_entry_reserve(c, l->n);
        if (!err)
                err = rdmeta_ids_reserve(c, l->ids);
        if (!err)
                err = rdmeta_transaction_reserve(&l->write, l->n);
        if (err)
                return err;
        l->brokers = rdmeta_brokers_copy(allocator, l->image->brokers);
        if (!l->brokers)
                return RDMETA_ERR_NO_MEMORY;
        l->brokers->version = l->write.version;
        return RDMETA_OK;
}

static void load_undo(load_t *l) {
        size_t i;

        for (i = 0; i < l->staged; i++)
                rdmeta_entry_drop(l->c, l->c->order.slots[i].entry);
        rdmeta_reasons_forget(&l->c->reasons, l->reasons);
}

/* Publishes the topics. The changelog records nothing, because the cache was
 * empty: readers that follow changes must resync. */
static void load_commit(load_t *l) {
        rdmeta_cache_t *c = l->c;
        size_t i;

        l->write.recorded = 0;
        c->notes.walk     = 1; /* due() finds the reasons */
        c->stats.reasons_dropped += l->dropped;
        rdmeta_tree_expect(c, l->n);
        rdmeta_transaction_begin(&l->write, l->brokers);
        rdmeta_transaction_brokers(&l->write, l->brokers);
        c->order.count = (uint32_t)l->n;
        for (i = 0; i < l->n; i++) {
                rdmeta_entry_t *e = c->order.slots[i].entry;

                rdmeta_entry_publish(c, e, 0);
                rdmeta_entry_relist(c, e, l->now.mono_us);
        }
        rdmeta_transaction_end(&l->write, 1);
}

rdmeta_err_t rdmeta_cache_load(rdmeta_cache_t *c, rdmeta_image_t *image,
                               rdmeta_time_t now) {
        load_t l = {.c = c, .image = image, .now = now};
        rdmeta_err_t err;

        if (rdmeta_notify_forked(&c->notify))
                return RDMETA_ERR_FORKED;
        /* This takes the lock of the image's cache, which may be this one. */
        err = image->ops->order(image, &l.n);
        if (err)
                return err;
        rdmeta_notify_lock(&c->notify);
        l.reasons = c->reasons.count;
        err = knows_nothing(c) ? load_stage(&l) : RDMETA_ERR_ARGUMENT;
        if (err)
                load_undo(&l);
        else
                load_commit(&l);
        rdmeta_entry_collect(c);
        rdmeta_notify_unlock(&c->notify);
        return err;
}
