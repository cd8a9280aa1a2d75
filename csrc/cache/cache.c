/* The life of a cache, its statistics, and the calls that pass their arguments
 * to store/notify.h. See state.h. */
#include "cache/state.h"

#include "cache/entry.h"
#include "cache/handles.h"
#include "cache/live_image.h"
#include "cache/notes.h"
#include "cache/tree.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { PREFETCH = 8 };

void rdmeta_conf_init(rdmeta_conf_t *conf) {
        memset(conf, 0, sizeof(*conf));
        conf->size            = sizeof(*conf);
        conf->max_age_us      = INT64_C(900) * 1000000;
        conf->negative_ttl_us = 100000;
        conf->denied_ttl_us   = 10 * 1000000;
        conf->hint_ttl_us     = 60 * 1000000;
        conf->absent_grace_us = 15 * 1000000;
        conf->ring_bytes      = (size_t)4 << 20;
}

/* Returns the wanted seed, or a random one if that is 0. Without a source of
 * randomness it mixes the clock and an address. Then only the reseeding of the
 * index protects against chosen names. */
static uint64_t seed_make(uint64_t wanted, const void *address) {
        uint64_t seed = wanted;
        struct timespec ts;

        if (seed)
                return seed;
        if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) ==
                    (ssize_t)sizeof(seed) &&
            seed)
                return seed;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_nsec ^ (uint64_t)ts.tv_sec << 30 ^
               (uint64_t)(uintptr_t)address;
}

/* Writes a session id that differs per cache: versions can be compared only
 * within one session. It is public, so it does not depend on the seed. */
static void session_make(uint8_t out[16]) {
        uint64_t words[2] = {0, 0};
        struct timespec ts;

        if (getrandom(words, sizeof(words), GRND_NONBLOCK) !=
            (ssize_t)sizeof(words)) {
                clock_gettime(CLOCK_REALTIME, &ts);
                words[0] = (uint64_t)ts.tv_sec << 30 ^ (uint64_t)ts.tv_nsec;
                clock_gettime(CLOCK_MONOTONIC, &ts);
                words[1] = (uint64_t)getpid() << 40 ^
                           (uint64_t)ts.tv_sec << 30 ^ (uint64_t)ts.tv_nsec;
        }
        memcpy(out, words, sizeof(words));
}

static int conf_is_good(const rdmeta_conf_t *conf) {
        return conf->size == sizeof(*conf) && conf->max_age_us > 0 &&
               conf->negative_ttl_us >= 0 && conf->denied_ttl_us >= 0 &&
               conf->hint_ttl_us > 0 && conf->absent_grace_us >= 0 &&
               !conf->allocator.alloc == !conf->allocator.free;
}

/* Returns 1 if the topic has changed, or was removed, after version `since`.
 * For store/notify.h. */
static int topic_changed(void *opaque, const rdmeta_str_t *topic,
                         uint64_t since) {
        rdmeta_cache_t *c       = (rdmeta_cache_t *)opaque;
        const rdmeta_entry_t *e = rdmeta_entry_find(c, topic->data,
                                                    topic->len);

        if (!e || e->topic->state == RDMETA_TOPIC_WAIT)
                return c->erased > since;
        return rdmeta_cold(e->topic)->version > since;
}

/* Makes the empty tables that readers need. Returns 0 if there is no memory. */
static int root_init(rdmeta_cache_t *c) {
        const rdmeta_allocator_t *allocator = &c->conf.allocator;
        rdmeta_table_t *names = rdmeta_table_new(allocator, 0, 0, &c->seed);
        rdmeta_table_t *ids   = rdmeta_table_new(allocator, 0, 1, &c->seed);
        rdmeta_brokers_t *brokers = rdmeta_brokers_empty(allocator, 0);

        if (!names || !ids || !brokers) {
                rdmeta_table_destroy(allocator, names);
                rdmeta_table_destroy(allocator, ids);
                rdmeta_brokers_destroy(allocator, brokers);
                return 0;
        }
        atomic_init(&c->root.names, names);
        atomic_init(&c->root.ids, ids);
        atomic_init(&c->root.brokers, brokers);
        atomic_init(&c->root.shared_deadline, INT64_MIN + 2);
        atomic_init(&c->root.fresh_until, INT64_MAX);
        atomic_init(&c->root.shared_provenance,
                    rdmeta_provenance_word(rdmeta_provenance_none()));
        return 1;
}

static void cache_destroy(rdmeta_ref_t *references);

rdmeta_cache_t *rdmeta_cache_new(const rdmeta_conf_t *wanted) {
        rdmeta_conf_t conf;
        rdmeta_cache_t *c;
        int i;

        rdmeta_conf_init(&conf);
        if (wanted)
                conf = *wanted;
        if (!conf_is_good(&conf))
                return NULL;
        c = (rdmeta_cache_t *)rdmeta_alloc(&conf.allocator, sizeof(*c));
        if (!c)
                return NULL;
        memset(c, 0, sizeof(*c));
        c->conf = conf;
        c->seed = seed_make(conf.seed, c);
        session_make(c->session);
        rdmeta_ref_init(&c->references, cache_destroy);
        if (rdmeta_notify_init(&c->notify, &c->conf.allocator, topic_changed,
                               c)) {
                rdmeta_free(&conf.allocator, c, sizeof(*c));
                return NULL;
        }
        if (!root_init(c)) {
                rdmeta_notify_destroy(&c->notify);
                rdmeta_free(&conf.allocator, c, sizeof(*c));
                return NULL;
        }
        rdmeta_digest_key_init(&c->digest_key, &c->seed);
        for (i = 0; i < RDMETA_HASH_KEYS; i++)
                c->list_key[i] = rdmeta_seed_next(&c->seed);
        rdmeta_slab_init(&c->entry_slab, &c->conf.allocator, 8, 0);
        rdmeta_memory_init(&c->blocks, &c->conf.allocator,
                           RDMETA_TOPIC_HEADER_SIZE);
        rdmeta_epoch_init(&c->epochs, &c->blocks);
        rdmeta_changelog_init(&c->changelog, &c->conf.allocator, &c->epochs,
                              conf.ring_bytes);
        rdmeta_live_images_init(c);
        rdmeta_builder_init(&c->builder, &c->conf.allocator, c->list_key);
        rdmeta_deadlines_init(&c->deadlines);
        rdmeta_tree_init(c);
        rdmeta_handles_init(&c->handles);
        rdmeta_reasons_init(&c->reasons, &c->conf.allocator, &c->seed);
        c->order.api_version = -1;
        return c;
}

rdmeta_cache_t *rdmeta_cache_ref(rdmeta_cache_t *c) {
        rdmeta_ref_take(&c->references);
        return c;
}

/* Returns the topic of a slot; NULL: the slot is empty or does not exist. */
static rdmeta_topic_t *names_at(const rdmeta_table_t *names, uint32_t k) {
        if (k > names->mask)
                return NULL;
        return rdmeta_slot_topic(atomic_load_explicit(&names->slots[k],
                                                      memory_order_relaxed));
}

/* Frees every block: a block that is not a slab's piece must be freed alone.
 * Blocks lie anywhere in memory, so it prefetches. */
static void topics_destroy(rdmeta_cache_t *c) {
        const rdmeta_table_t *names = rdmeta_names(c);
        uint32_t k;

        for (k = 0; k <= names->mask; k++) {
                rdmeta_topic_t *t    = names_at(names, k);
                rdmeta_topic_t *next = names_at(names, k + PREFETCH);

                __builtin_prefetch(names_at(names, k + 2 * PREFETCH));
                if (next)
                        __builtin_prefetch(rdmeta_cold(next));
                if (t && t != &rdmeta_tombstone.topic)
                        rdmeta_topic_destroy(&c->blocks, t);
        }
}

/* Frees a cache. If its lock is lost, a write may be half done: the memory goes
 * with the process. */
static void cache_destroy(rdmeta_ref_t *references) {
        rdmeta_cache_t *c = RDMETA_CONTAINER(references, rdmeta_cache_t,
                                             references);
        rdmeta_allocator_t allocator;

        if (rdmeta_lock_check(&c->notify.lock))
                return;
        allocator = c->conf.allocator;
        rdmeta_changelog_destroy(&c->changelog);
        rdmeta_live_images_destroy(c);
        rdmeta_epoch_destroy(&c->epochs);
        topics_destroy(c);
        rdmeta_table_destroy(&allocator, rdmeta_names(c));
        rdmeta_table_destroy(&allocator, rdmeta_ids(c));
        rdmeta_brokers_destroy(&allocator, rdmeta_table_brokers(c));
        rdmeta_answer_order_destroy(&c->order, &allocator);
        rdmeta_builder_destroy(&c->builder);
        rdmeta_reasons_destroy(&c->reasons);
        rdmeta_notes_destroy(c);
        rdmeta_slab_destroy(&c->entry_slab);
        rdmeta_memory_destroy(&c->blocks);
        rdmeta_notify_destroy(&c->notify);
        rdmeta_free(&allocator, c, sizeof(*c));
}

void rdmeta_cache_unref(rdmeta_cache_t *c) {
        if (c)
                rdmeta_ref_drop(&c->references);
}

/* ---- versions, waiting, watches ------------------------------------------ */

uint64_t rdmeta_cache_version(const rdmeta_cache_t *c) {
        return rdmeta_notify_version(&c->notify);
}

uint64_t rdmeta_cache_wait(rdmeta_cache_t *c, uint64_t since,
                           const rdmeta_str_t *topics, size_t n,
                           int64_t timeout_us) {
        return rdmeta_notify_until(&c->notify, since, topics, n, timeout_us);
}

void rdmeta_cache_interrupt(rdmeta_cache_t *c) {
        rdmeta_notify_interrupt(&c->notify);
}

rdmeta_watch_t *rdmeta_watch_new(rdmeta_cache_t *c, const rdmeta_str_t *topics,
                                 size_t n,
                                 void (*fn)(void *opaque, uint64_t version),
                                 void *opaque) {
        return rdmeta_notify_watch_new(&c->notify, topics, n, fn, opaque);
}

rdmeta_watch_t *rdmeta_watch_answers(rdmeta_cache_t *c,
                                     void (*fn)(void *opaque,
                                                uint64_t version),
                                     void *opaque) {
        return rdmeta_notify_watch_answers(&c->notify, fn, opaque);
}

void rdmeta_watch_destroy(rdmeta_watch_t *watch) {
        rdmeta_notify_watch_destroy(watch);
}

/* ---- stats --------------------------------------------------------------- */

static uint64_t stats_bytes(const rdmeta_cache_t *c) {
        return sizeof(*c) + c->entry_slab.bytes +
               rdmeta_memory_bytes(&c->blocks) +
               rdmeta_names(c)->large.size + rdmeta_ids(c)->large.size +
               rdmeta_table_brokers(c)->large.size +
               c->order.capacity * sizeof(rdmeta_answer_order_slot_t) +
               c->handles.bytes + c->reasons.bytes + c->builder.memory_size +
               c->builder.kept_size + c->builder.spare_size +
               c->notes.capacity * sizeof(*c->notes.all) +
               c->notes.rewind_bytes +
               rdmeta_changelog_bytes(&c->changelog) - c->changelog.live +
               c->changelog.live_large + c->epochs.large_bytes +
               rdmeta_live_images_bytes(c);
}

void rdmeta_cache_stats(rdmeta_cache_t *c, rdmeta_stats_t *out) {
        memset(out, 0, sizeof(*out));
        if (rdmeta_notify_lock(&c->notify))
                return;
        *out = c->stats;
        out->version = rdmeta_notify_version(&c->notify);
        out->retained = rdmeta_deadlines_count(&c->deadlines,
                                               RDMETA_DEADLINES_RETAINED);
        out->negatives -= out->retained < out->negatives ? out->retained
                                                         : out->negatives;
        out->hints =
                rdmeta_deadlines_count(&c->deadlines, RDMETA_DEADLINES_HINT);
        out->bytes = stats_bytes(c);
        out->bytes_ring   = rdmeta_changelog_bytes(&c->changelog);
        out->bytes_free   = rdmeta_memory_spare(&c->blocks) +
                          rdmeta_slab_spare(&c->entry_slab);
        out->bytes_limbo  = c->epochs.limbo_bytes;
        out->bytes_images = rdmeta_live_images_bytes_all(c);
        out->images       = (int32_t)c->epochs.images.count;
        out->ring_records = c->changelog.item_tail - c->changelog.item_head;
        out->ring_floor   = c->changelog.floor;
        out->shared_deadline_us = rdmeta_all_deadline(c);
        out->readers = (int32_t)c->epochs.readers.count;
        out->waiters = (int32_t)rdmeta_notify_waiters(&c->notify);
        out->watches = (int32_t)rdmeta_notify_watches(&c->notify);
        out->handles = (int32_t)c->handles.tree.count;
        out->reasons = c->reasons.count;
        rdmeta_notify_unlock(&c->notify);
}
