/*
 * partition_for: the partition that a record's key belongs to.
 *
 * Java's producer takes toPositive(murmur2(key)) % partitions, and so do these
 * calls. Without a key they return any partition that has a leader.
 */
#include "read/state.h"

/* Returns any partition with a leader. It draws one partition at random. If
 * that one has no leader, it draws again among those that have one. If none has
 * a leader, it returns the partition drawn first. */
static int32_t partition_any(rdmeta_reader_t *r, const rdmeta_topic_t *t,
                             int64_t mono_us) {
        const uint32_t count = rdmeta_topic_count(t);
        uint32_t i, with_leader = 0, k;
        rdmeta_cols_t cols;
        rdmeta_row_t row;

        if (!r->chance)
                r->chance = (uint64_t)(uintptr_t)r ^ (uint64_t)mono_us << 20;
        rdmeta_topic_cols(t, &cols);
        rdmeta_topic_row(&cols, (uint32_t)(rdmeta_seed_next(&r->chance) %
                                           count), &row);
        if (row.leader >= 0)
                return row.id;
        for (i = 0; i < count; i++)
                with_leader += rdmeta_col_get(cols.leaders, cols.leader_width,
                                              i) >= 0;
        if (!with_leader)
                return row.id;
        k = (uint32_t)(rdmeta_seed_next(&r->chance) % with_leader);
        for (i = 0; i < count; i++)
                if (rdmeta_col_get(cols.leaders, cols.leader_width, i) >= 0 &&
                    k-- == 0)
                        break;
        rdmeta_topic_row(&cols, i, &row);
        return row.id;
}

/* Returns the partition of `key`, or any with a leader if `key` is NULL. */
static int32_t partition_for(rdmeta_reader_t *r, const rdmeta_topic_t *t,
                             const void *key, size_t len, int64_t mono_us) {
        if (!rdmeta_topic_count(t))
                return RDMETA_NO_PARTITION;
        if (!key)
                return partition_any(r, t, mono_us);
        /* Java's toPositive() clears the sign bit. */
        return (int32_t)((rdmeta_murmur2(key, len) & INT32_MAX) %
                         rdmeta_topic_count(t));
}

int32_t rdmeta_handle_partition_for(rdmeta_reader_t *r,
                                    const rdmeta_handle_t *h, const void *key,
                                    size_t len, int64_t mono_us) {
        const rdmeta_topic_t *t;
        int32_t res;

        rdmeta_reader_enter(r);
        res = rdmeta_handle_find(r, h, mono_us, &t);
        if (!res)
                res = partition_for(r, t, key, len, mono_us);
        rdmeta_reader_leave(r);
        return res;
}

int32_t rdmeta_partition_for(rdmeta_reader_t *r, const char *topic,
                             size_t topic_len, const void *key, size_t len,
                             int64_t mono_us) {
        const rdmeta_topic_t *t;
        int32_t res;

        rdmeta_reader_enter(r);
        res = rdmeta_topic_find(r, topic, topic_len, mono_us, &t);
        if (!res)
                res = partition_for(r, t, key, len, mono_us);
        rdmeta_reader_leave(r);
        return res;
}
