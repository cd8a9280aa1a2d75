/* Point readers: the public calls over view.h. No lock, no allocation. */
#include "cache.h"

rdmeta_reader_t *rdmeta_reader_new(rdmeta_cache_t *c, int32_t flags) {
        const size_t size = sizeof(rdmeta_reader_t) + RDMETA_LINE;
        rdmeta_reader_t *r;
        char *p;

        if (rdmeta_read_lock(c))
                return NULL;
        p = (char *)rdmeta_alloc(&c->conf.allocator, size);
        if (p) {
                const size_t off = (size_t)(uintptr_t)p % RDMETA_LINE;
                r = (rdmeta_reader_t *)(void *)(p + (off ? RDMETA_LINE - off
                                                         : 0));
                memset(r, 0, sizeof(*r));
                r->memory   = p;
                r->root     = &c->root;
                r->cache    = c;
                r->stale_ok = (flags & RDMETA_ALLOW_STALE) != 0;
                rdmeta_reclaim_add(&c->reclaim, &r->reading, r->stale_ok);
                rdmeta_cache_ref(c);
        } else {
                r = NULL;
        }
        rdmeta_read_unlock(c);
        return r;
}

/* In a fork's child nobody else is there, and the lock may never be free: then
 * it does without. */
void rdmeta_reader_destroy(rdmeta_reader_t *r) {
        const size_t size = sizeof(*r) + RDMETA_LINE;
        rdmeta_cache_t *c;
        int locked;

        if (!r)
                return;
        c      = r->cache;
        locked = rdmeta_read_lock(c) == RDMETA_OK;
        rdmeta_reclaim_remove(&c->reclaim, &r->reading);
        rdmeta_free(&c->conf.allocator, r->memory, size);
        if (locked)
                rdmeta_read_unlock(c);
        rdmeta_cache_unref(c);
}

void rdmeta_reader_enter(rdmeta_reader_t *r) {
        rdmeta_reading_enter(&r->reading);
}

void rdmeta_reader_leave(rdmeta_reader_t *r) {
        rdmeta_reading_leave(&r->reading);
}

static RDMETA_NOINLINE int32_t leader_general(rdmeta_reader_t *r,
                                              const char *topic, size_t len,
                                              int32_t partition,
                                              int64_t mono_us) {
        int32_t leader;

        if (len - 1 >= RDMETA_NAME_MAX)
                return RDMETA_NOT_CACHED;
        rdmeta_reading_enter(&r->reading);
        leader = rdmeta_view_leader(r->root, topic, len, partition, mono_us,
                                    r->stale_ok);
        rdmeta_reading_leave(&r->reading);
        return leader;
}

int32_t rdmeta_leader(rdmeta_reader_t *r, const char *topic, size_t len,
                      int32_t partition, int64_t mono_us) {
#if defined(__SSE2__)
        if (RDMETA_LIKELY(rdmeta_hash_is_short(len)) &&
            RDMETA_LIKELY(rdmeta_reading_is_plain(&r->reading))) {
                int32_t leader;

                rdmeta_reading_begin(&r->reading);
                leader = rdmeta_view_leader_fast(r->root, topic, len,
                                                 partition, mono_us);
                rdmeta_reading_end(&r->reading);
                if (RDMETA_LIKELY(leader != RDMETA_VIEW_GENERAL))
                        return leader;
        }
#endif
        return leader_general(r, topic, len, partition, mono_us);
}

/* ---- many at once -------------------------------------------------------- */

enum { BATCH = 16 };

/* Loads of one row hang on each other, those of sixteen rows do not: so each
 * step is done for all of them before the next. */
static void leaders_batch(const rdmeta_reader_t *r, const rdmeta_str_t *topics,
                          const int32_t *partitions, size_t n,
                          int64_t mono_us, int32_t *out) {
        const rdmeta_table_t *names = atomic_load_explicit(
                &r->root->names, memory_order_acquire);
        uint64_t hash[BATCH];
        size_t i;

        for (i = 0; i < n; i++) {
                hash[i] = topics[i].len - 1 < RDMETA_NAME_MAX
                                  ? rdmeta_hash(names->key, topics[i].data,
                                                topics[i].len)
                                  : 0;
                rdmeta_table_prefetch(names, hash[i]);
        }
        for (i = 0; i < n; i++) {
                const rdmeta_topic_t *t =
                        rdmeta_slot_topic(atomic_load_explicit(
                                &names->slots[rdmeta_slot_first(hash[i]) &
                                              names->mask],
                                memory_order_acquire));
                __builtin_prefetch(t);
        }
        for (i = 0; i < n; i++)
                out[i] = topics[i].len - 1 < RDMETA_NAME_MAX
                                 ? rdmeta_view_leader(r->root, topics[i].data,
                                                      topics[i].len,
                                                      partitions[i], mono_us,
                                                      r->stale_ok)
                                 : RDMETA_NOT_CACHED;
}

void rdmeta_leaders(rdmeta_reader_t *r, const rdmeta_str_t *topics,
                    const int32_t *partitions, size_t n, int64_t mono_us,
                    int32_t *out) {
        size_t i;

        for (i = 0; i < n; i += BATCH) {
                const size_t m = n - i < BATCH ? n - i : BATCH;
                rdmeta_reading_enter(&r->reading);
                leaders_batch(r, topics + i, partitions + i, m, mono_us,
                              out + i);
                rdmeta_reading_leave(&r->reading);
        }
}

/* ---- everything about one ------------------------------------------------ */

static void partition_copy(rdmeta_reader_t *r, const rdmeta_cols_t *cols,
                           uint32_t i, rdmeta_partition_t *out) {
        rdmeta_row_t row;

        rdmeta_topic_row(cols, i, &row);
        out->partition    = row.id;
        out->leader       = row.leader;
        out->last_leader  = row.last;
        out->leader_epoch = row.epoch;
        out->error        = row.error;
        out->unreachable  = r && row.leader >= 0 &&
                           !rdmeta_brokers_has(rdmeta_brokers(r), row.leader);
        rdmeta_list_copy(row.replicas, &out->replicas);
        rdmeta_list_copy(row.isr, &out->isr);
        rdmeta_list_copy(row.offline, &out->offline_replicas);
}

static const rdmeta_topic_t *reader_topic(const rdmeta_reader_t *r,
                                          const char *name, size_t len) {
        const rdmeta_table_t *names = atomic_load_explicit(
                &r->root->names, memory_order_acquire);

        if (len - 1 >= RDMETA_NAME_MAX)
                return NULL;
        return rdmeta_table_name(names, rdmeta_hash(names->key, name, len),
                                 name, len);
}

rdmeta_err_t rdmeta_partition(rdmeta_reader_t *r, const char *topic,
                              size_t len, int32_t partition, int64_t mono_us,
                              rdmeta_partition_t *out) {
        rdmeta_err_t err = RDMETA_NOT_CACHED;
        const rdmeta_topic_t *t;
        rdmeta_cols_t cols;
        int64_t place;

        rdmeta_reading_enter(&r->reading);
        t = reader_topic(r, topic, len);
        if (t)
                err = rdmeta_view_state(r->root, t, mono_us, r->stale_ok);
        if (!err) {
                place = rdmeta_topic_place(t, partition);
                err   = place < 0 ? RDMETA_NO_PARTITION : RDMETA_OK;
        }
        if (!err) {
                rdmeta_topic_cols(t, &cols);
                partition_copy(r, &cols, (uint32_t)place, out);
        }
        rdmeta_reading_leave(&r->reading);
        return err;
}

static rdmeta_err_t found(const rdmeta_reader_t *r, const rdmeta_topic_t *t,
                          int64_t mono_us, const rdmeta_topic_t **out) {
        *out = NULL;
        if (!t)
                return RDMETA_NOT_CACHED;
        if (t->state != RDMETA_TOPIC_WAIT && t->state != RDMETA_TOPIC_GONE)
                *out = t;
        return rdmeta_view_state(r->root, t, mono_us, r->stale_ok);
}

rdmeta_err_t rdmeta_topic_find(rdmeta_reader_t *r, const char *name,
                               size_t len, int64_t mono_us,
                               const rdmeta_topic_t **out) {
        return found(r, reader_topic(r, name, len), mono_us, out);
}

rdmeta_err_t rdmeta_topic_find_id(rdmeta_reader_t *r, const uint8_t id[16],
                                  int64_t mono_us,
                                  const rdmeta_topic_t **out) {
        return found(r,
                     rdmeta_table_id(atomic_load_explicit(
                                             &r->root->ids,
                                             memory_order_acquire),
                                     id),
                     mono_us, out);
}

void rdmeta_topic_info(rdmeta_reader_t *r, const rdmeta_topic_t *t,
                       int64_t mono_us, rdmeta_topic_info_t *out) {
        const int64_t own = atomic_load_explicit(&t->deadline,
                                                 memory_order_relaxed);

        out->name.data = t->name;
        out->name.len  = t->name_len;
        memcpy(out->topic_id, rdmeta_cold(t)->id, sizeof(out->topic_id));
        out->version    = rdmeta_cold(t)->version;
        out->partitions = rdmeta_topic_count(t);
        out->internal =
                (rdmeta_cold(t)->flags & RDMETA_TOPIC_F_INTERNAL) != 0;
        out->error      = rdmeta_cold(t)->error;
        out->state      = rdmeta_view_state(r->root, t, mono_us, 0);
        out->operations = rdmeta_topic_operations(t);
        out->source_broker =
                own == RDMETA_DEADLINE_SHARED
                        ? atomic_load_explicit(&r->root->shared_source,
                                               memory_order_relaxed)
                        : rdmeta_topic_source(t);
        out->deadline_us = rdmeta_view_deadline(r->root, t);
}

rdmeta_err_t rdmeta_topic_partition_at(rdmeta_reader_t *r,
                                       const rdmeta_topic_t *t, uint32_t i,
                                       rdmeta_partition_t *out) {
        rdmeta_cols_t cols;

        if (i >= rdmeta_topic_count(t))
                return RDMETA_NO_PARTITION;
        rdmeta_topic_cols(t, &cols);
        partition_copy(r, &cols, i, out);
        return RDMETA_OK;
}

const rdmeta_brokers_t *rdmeta_brokers(rdmeta_reader_t *r) {
        return atomic_load_explicit(&r->root->brokers, memory_order_acquire);
}
