/* reader: making readers, and their lookups in a cache or an image. Only making
 * and destroying a reader takes a lock and allocates. Most lookups are in
 * store/view.h. */
#include "read/follow.h"

/* ---- life ---------------------------------------------------------------- */

enum { READER_SIZE = sizeof(rdmeta_reader_t) + RDMETA_LINE };

/* Makes a reader at the start of a cache line within READER_SIZE bytes. */
static rdmeta_reader_t *reader_make(void *memory, int32_t flags) {
        const size_t off = (size_t)(uintptr_t)memory % RDMETA_LINE;
        rdmeta_reader_t *r =
                (rdmeta_reader_t *)(void *)((char *)memory +
                                            (off ? RDMETA_LINE - off : 0));

        memset(r, 0, sizeof(*r));
        r->memory   = memory;
        r->stale_ok = (flags & RDMETA_ALLOW_STALE) != 0;
        return r;
}

rdmeta_reader_t *rdmeta_reader_new(rdmeta_cache_t *c, int32_t flags) {
        rdmeta_reader_t *r = NULL;
        void *memory;

        if (rdmeta_notify_lock(&c->notify))
                return NULL;
        memory = rdmeta_alloc(&c->conf.allocator, READER_SIZE);
        if (memory) {
                r        = reader_make(memory, flags);
                r->root  = &c->root;
                r->cache = c;
                rdmeta_epoch_add(&c->epochs, &r->reading, r->stale_ok);
                rdmeta_cache_ref(c);
        }
        rdmeta_notify_unlock(&c->notify);
        return r;
}

rdmeta_reader_t *rdmeta_image_reader(rdmeta_image_t *image, int32_t flags) {
        void *memory = image->ops->alloc(image, READER_SIZE);
        rdmeta_reader_t *r;

        if (!memory)
                return NULL;
        r        = reader_make(memory, flags);
        r->image = rdmeta_image_ref(image);
        rdmeta_reading_alone(&r->reading);
        return r;
}

rdmeta_reader_t *rdmeta_attach_reader(rdmeta_attach_t *a, int32_t flags) {
        rdmeta_image_t *image = rdmeta_attach_take_image(a);
        rdmeta_reader_t *r    = image ? rdmeta_image_reader(image, flags)
                                      : NULL;

        rdmeta_image_unref(image); /* the reader has its own reference */
        if (!r) {
                rdmeta_attach_destroy(a);
                return NULL;
        }
        r->attach  = a;
        r->next_look_us = r->missed_look_us = INT64_MIN;
        return r;
}

void rdmeta_reader_destroy(rdmeta_reader_t *r) {
        rdmeta_cache_t *c;

        if (!r)
                return;
        if (r->image) {
                rdmeta_image_t *image   = r->image;
                rdmeta_attach_t *attach = r->attach;
                image->ops->free(image, r->memory, READER_SIZE);
                rdmeta_image_unref(image);
                rdmeta_attach_destroy(attach);
                return;
        }
        c = r->cache;
        if (rdmeta_notify_lock(&c->notify))
                return;
        rdmeta_epoch_remove(&c->epochs, &r->reading);
        rdmeta_free(&c->conf.allocator, r->memory, READER_SIZE);
        rdmeta_notify_unlock(&c->notify);
        rdmeta_cache_unref(c);
}

rdmeta_image_t *rdmeta_reader_image(rdmeta_reader_t *r, rdmeta_time_t now) {
        if (!r->image)
                return rdmeta_cache_image(r->cache, now);
        rdmeta_attach_time(r, now.mono_us);
        return rdmeta_image_ref(r->image);
}

void rdmeta_reader_enter(rdmeta_reader_t *r) {
        if (RDMETA_UNLIKELY(r->attach != NULL))
                rdmeta_attach_enter(r);
        rdmeta_reading_enter(&r->reading);
}

void rdmeta_reader_leave(rdmeta_reader_t *r) {
        rdmeta_reading_leave(&r->reading);
}

/* ---- many leaders at once ------------------------------------------------ */

/* Rows per batch, and how many rows before its turn a name is prefetched. */
enum { BATCH = 32, PREFETCHED = 16 };

/* Returns the leader of one row. `t` is the block that its hash leads to first,
 * or NULL. */
RDMETA_INLINE int32_t row_leader(const rdmeta_reader_t *r,
                                 const rdmeta_topic_t *t, rdmeta_str_t name,
                                 int32_t partition, int64_t mono_us) {
        int32_t leader = -1;

        if (RDMETA_UNLIKELY(name.len - 1 >= RDMETA_NAME_MAX))
                return RDMETA_NOT_CACHED;
        if (RDMETA_LIKELY(t != NULL) &&
            RDMETA_LIKELY(t->name_len == name.len) &&
            RDMETA_LIKELY(rdmeta_name_equal(t->name, name.data, name.len)))
                leader = rdmeta_view_pick_fresh(r->root, t, name.len,
                                                partition, mono_us);
        if (RDMETA_LIKELY(leader >= 0))
                return leader;
        return rdmeta_view_leader(r->root, name.data, name.len, partition,
                                  mono_us, r->stale_ok);
}

/* Looks up the leaders of `n` rows. The loads of one row depend on each other;
 * those of different rows do not. So it takes each step for all rows before the
 * next step. Meanwhile it prefetches names of the `more` rows that follow. */
static void leaders_batch(const rdmeta_reader_t *r, const rdmeta_str_t *topics,
                          const int32_t *partitions, size_t n, size_t more,
                          int64_t mono_us, int32_t *out) {
        const rdmeta_table_t *names = atomic_load_explicit(
                &r->root->names, memory_order_acquire);
        const rdmeta_topic_t *blocks[BATCH];
        uint64_t hash[BATCH];
        size_t i;

        for (i = 0; i < n; i++) {
                if (i + PREFETCHED < n + more)
                        __builtin_prefetch(topics[i + PREFETCHED].data);
                hash[i] = topics[i].len - 1 < RDMETA_NAME_MAX
                                  ? rdmeta_hash(names->key, topics[i].data,
                                                topics[i].len)
                                  : 0;
                rdmeta_table_prefetch(names, hash[i]);
        }
        for (i = 0; i < n; i++) {
                blocks[i] = rdmeta_slot_topic(
                        rdmeta_table_first(names, hash[i]));
                __builtin_prefetch(blocks[i]);
        }
        for (i = 0; i < n; i++)
                out[i] = row_leader(r, blocks[i], topics[i], partitions[i],
                                    mono_us);
}

/* Looks up all rows in one image. */
static void image_leaders(const rdmeta_reader_t *r, const rdmeta_str_t *topics,
                          const int32_t *partitions, size_t n,
                          int64_t mono_us, int32_t *out) {
        const rdmeta_image_ops_t *ops = r->image->ops;
        size_t i;

        for (i = 0; i < n; i++) {
                if (i % RDMETA_IMAGE_PREFETCH == 0)
                        ops->prefetch(r->image, topics + i,
                                      n - i < RDMETA_IMAGE_PREFETCH
                                           ? n - i
                                           : RDMETA_IMAGE_PREFETCH);
                out[i] = topics[i].len - 1 < RDMETA_NAME_MAX
                                 ? ops->leader(r->image, topics[i].data,
                                               topics[i].len, partitions[i],
                                               mono_us, r->stale_ok)
                                 : RDMETA_NOT_CACHED;
        }
}

void rdmeta_leaders(rdmeta_reader_t *r, const rdmeta_str_t *topics,
                    const int32_t *partitions, size_t n, int64_t mono_us,
                    int32_t *out) {
        size_t i;

        if (r->image) {
                rdmeta_attach_time(r, mono_us);
                image_leaders(r, topics, partitions, n, mono_us, out);
                return;
        }
        for (i = 0; i < n; i += BATCH) {
                const size_t m = n - i < BATCH ? n - i : BATCH;
                rdmeta_reading_enter(&r->reading);
                leaders_batch(r, topics + i, partitions + i, m, n - i - m,
                              mono_us, out + i);
                rdmeta_reading_leave(&r->reading);
        }
}

/* ---- everything about one topic ------------------------------------------ */

static void partition_copy(rdmeta_reader_t *r, const rdmeta_row_t *row,
                           rdmeta_partition_t *out) {
        out->partition    = row->id;
        out->leader       = row->leader;
        out->last_leader  = row->last;
        out->leader_epoch = row->epoch;
        out->error        = row->error;
        out->unreachable  = r && row->leader >= 0 &&
                           !rdmeta_brokers_has(rdmeta_brokers(r), row->leader);
        rdmeta_list_copy(row->replicas, &out->replicas);
        rdmeta_list_copy(row->isr, &out->isr);
        rdmeta_list_copy(row->offline, &out->offline_replicas);
}

/* Sets *out to what a cache has about `t` now. `t` may be NULL: not cached. */
static rdmeta_err_t seen_in(const rdmeta_root_t *root,
                            const rdmeta_topic_t *t, rdmeta_seen_t *out) {
        int64_t own;

        out->topic = t;
        if (!t)
                return RDMETA_NOT_CACHED;
        own = atomic_load_explicit(&t->deadline, memory_order_relaxed);
        out->deadline   = own;
        out->provenance = rdmeta_topic_provenance(t);
        if (own == RDMETA_DEADLINE_SHARED) {
                out->deadline   = atomic_load_explicit(&root->shared_deadline,
                                                       memory_order_relaxed);
                out->provenance = rdmeta_view_shared_provenance(root);
        }
        return RDMETA_OK;
}

/* Sets *out by name, in a cache or an image. RDMETA_NOT_CACHED: there is no
 * such topic. */
static rdmeta_err_t seen_name(const rdmeta_reader_t *r, const char *name,
                              size_t len, rdmeta_seen_t *out) {
        const rdmeta_table_t *names;

        if (len - 1 >= RDMETA_NAME_MAX)
                return RDMETA_NOT_CACHED;
        if (r->image)
                return r->image->ops->find(r->image, name, len, out);
        names = atomic_load_explicit(&r->root->names, memory_order_acquire);
        return seen_in(r->root, rdmeta_table_find(names, name, len), out);
}

/* Sets *out by id, in a cache or an image. */
static rdmeta_err_t seen_id(const rdmeta_reader_t *r, const uint8_t id[16],
                            rdmeta_seen_t *out) {
        const rdmeta_table_t *ids;

        if (r->image)
                return r->image->ops->find_id(r->image, id, out);
        ids = atomic_load_explicit(&r->root->ids, memory_order_acquire);
        return seen_in(r->root, rdmeta_table_id(ids, id), out);
}

/* Sets *out by the topic, which the reader found before. */
static void seen_topic(const rdmeta_reader_t *r, const rdmeta_topic_t *t,
                       rdmeta_seen_t *out) {
        if (r->image) {
                out->topic = t;
                r->image->ops->times(r->image, out);
        } else {
                seen_in(r->root, t, out);
        }
}

rdmeta_err_t rdmeta_partition(rdmeta_reader_t *r, const char *topic,
                              size_t len, int32_t partition, int64_t mono_us,
                              rdmeta_partition_t *out) {
        rdmeta_seen_t seen;
        rdmeta_row_t row;
        rdmeta_err_t err;

        rdmeta_attach_time(r, mono_us);
        rdmeta_reading_enter(&r->reading);
        err = seen_name(r, topic, len, &seen);
        if (!err)
                err = rdmeta_view_state_at(seen.topic, seen.deadline, mono_us,
                                           r->stale_ok);
        if (!err && !rdmeta_topic_row_of(seen.topic, partition, &row))
                err = RDMETA_NO_PARTITION;
        if (!err)
                partition_copy(r, &row, out);
        rdmeta_reading_leave(&r->reading);
        return err;
}

/* Sets *out to the topic if it is visible, and returns its state or `err`. */
static rdmeta_err_t find_result(const rdmeta_reader_t *r, rdmeta_err_t err,
                                const rdmeta_seen_t *seen, int64_t mono_us,
                                const rdmeta_topic_t **out) {
        *out = NULL;
        if (err)
                return err;
        if (rdmeta_topic_is_visible(seen->topic))
                *out = seen->topic;
        return rdmeta_view_state_at(seen->topic, seen->deadline, mono_us,
                                    r->stale_ok);
}

rdmeta_err_t rdmeta_topic_find(rdmeta_reader_t *r, const char *name,
                               size_t len, int64_t mono_us,
                               const rdmeta_topic_t **out) {
        rdmeta_seen_t seen;
        rdmeta_err_t err;

        rdmeta_attach_time(r, mono_us);
        err = seen_name(r, name, len, &seen);
        return find_result(r, err, &seen, mono_us, out);
}

rdmeta_err_t rdmeta_topic_find_id(rdmeta_reader_t *r, const uint8_t id[16],
                                  int64_t mono_us,
                                  const rdmeta_topic_t **out) {
        rdmeta_seen_t seen;
        rdmeta_err_t err;

        rdmeta_attach_time(r, mono_us);
        err = seen_id(r, id, &seen);
        return find_result(r, err, &seen, mono_us, out);
}

/* Returns the text of a reason's number. */
static rdmeta_str_t reason_of(const rdmeta_reader_t *r, uint32_t number) {
        return r->image ? r->image->ops->reason(r->image, number)
                        : rdmeta_reasons_text(&r->cache->reasons, number);
}

void rdmeta_topic_info(rdmeta_reader_t *r, const rdmeta_topic_t *t,
                       int64_t mono_us, rdmeta_topic_info_t *out) {
        rdmeta_seen_t seen;

        seen_topic(r, t, &seen);
        out->name.data = t->name;
        out->name.len  = t->name_len;
        memcpy(out->topic_id, rdmeta_cold(t)->id, sizeof(out->topic_id));
        out->version    = rdmeta_cold(t)->version;
        out->partitions = rdmeta_topic_count(t);
        out->internal =
                (rdmeta_cold(t)->flags & RDMETA_TOPIC_F_INTERNAL) != 0;
        out->error      = rdmeta_topic_error(t);
        out->state      = rdmeta_view_state_at(t, seen.deadline, mono_us, 0);
        out->operations = rdmeta_topic_operations(t);
        out->source_broker = seen.provenance.broker;
        out->deadline_us   = rdmeta_deadline_visible(seen.deadline);
        out->reason        = reason_of(r, seen.provenance.reason);
}

rdmeta_err_t rdmeta_topic_partition_at(rdmeta_reader_t *r,
                                       const rdmeta_topic_t *t, uint32_t i,
                                       rdmeta_partition_t *out) {
        rdmeta_cols_t cols;
        rdmeta_row_t row;

        if (i >= rdmeta_topic_count(t))
                return RDMETA_NO_PARTITION;
        rdmeta_topic_cols(t, &cols);
        rdmeta_topic_row(&cols, i, &row);
        partition_copy(r, &row, out);
        return RDMETA_OK;
}

const rdmeta_brokers_t *rdmeta_brokers(rdmeta_reader_t *r) {
        if (r->image) {
                r->handed = 1;
                return r->image->brokers;
        }
        return atomic_load_explicit(&r->root->brokers, memory_order_acquire);
}
