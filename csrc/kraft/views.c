/* views: what a state has, for its readers. Nothing is copied. */
#include "kraft/state.h"

static rdmeta_kraft_mark_t mark_of(const rdmeta_kraft_state_t *s,
                                   int64_t offset, int64_t time_us) {
        const rdmeta_kraft_epoch_t *e = rdmeta_kraft_epoch_at(s, offset);
        const rdmeta_kraft_mark_t m   = {offset, time_us,
                                         e ? e->epoch : RDMETA_NONE,
                                         offset < s->snapshot_end};

        return m;
}

static int32_t topic_view(const rdmeta_kraft_state_t *s,
                          const rdmeta_kraft_topic_entry_t *t,
                          rdmeta_kraft_topic_t *out) {
        memset(out, 0, sizeof(*out));
        if (!t)
                return 0;
        out->name       = rdmeta_kraft_topic_name(t);
        out->id         = t->id;
        out->partitions = t->count;
        out->mark       = mark_of(s, t->offset, t->time_us);
        return 1;
}

int32_t rdmeta_kraft_topic_find(const rdmeta_kraft_state_t *s,
                                rdmeta_str_t name,
                                rdmeta_kraft_topic_t *out) {
        return topic_view(s, rdmeta_kraft_topic_by_name(s, name), out);
}

int32_t rdmeta_kraft_topic_find_id(const rdmeta_kraft_state_t *s,
                                   const uint8_t *id,
                                   rdmeta_kraft_topic_t *out) {
        const rdmeta_kraft_topic_entry_t *t = rdmeta_kraft_topic_by_id(s, id);

        for (t = t ? t : s->gone; t && memcmp(t->id, id, 16) != 0;)
                t = (rdmeta_kraft_topic_entry_t *)t->by_name.child[0];
        return topic_view(s, t, out);
}

int32_t rdmeta_kraft_topic_next(const rdmeta_kraft_state_t *s,
                                rdmeta_str_t after,
                                rdmeta_kraft_topic_t *out) {
        const rdmeta_kraft_topic_entry_t *t;
        rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;

        rdmeta_avl_iter_init(&it, &s->names, after.data ? &after : NULL);
        node = rdmeta_avl_iter_next(&it);
        t    = node ? RDMETA_KRAFT_TOPIC_AT(node) : NULL;
        if (t && after.data && t->name_len == after.len &&
            !memcmp(t->name, after.data, after.len)) {
                node = rdmeta_avl_iter_next(&it);
                t    = node ? RDMETA_KRAFT_TOPIC_AT(node) : NULL;
        }
        return topic_view(s, t, out);
}

static int32_t partition_view(const rdmeta_kraft_state_t *s,
                              const rdmeta_kraft_row_t *row,
                              rdmeta_kraft_partition_t *out) {
        rdmeta_wire_ids_t *const lists[RDMETA_KRAFT_LISTS] = {
                &out->replicas, &out->isr,      &out->removing,
                &out->adding,   &out->elr,      &out->last_elr,
                &out->directories};
        int i;

        memset(out, 0, sizeof(*out));
        if (!row)
                return 0;
        out->id              = row->id;
        out->leader          = row->leader;
        out->leader_epoch    = row->leader_epoch;
        out->partition_epoch = row->partition_epoch;
        out->recovery        = row->recovery;
        for (i = 0; i < RDMETA_KRAFT_LISTS; i++)
                *lists[i] = rdmeta_kraft_row_list(row, i);
        out->mark = mark_of(s, row->offset, row->time_us);
        return 1;
}

int32_t rdmeta_kraft_partition_find(const rdmeta_kraft_state_t *s,
                                    const uint8_t *topic_id,
                                    int32_t partition,
                                    rdmeta_kraft_partition_t *out) {
        const rdmeta_kraft_topic_entry_t *t =
                rdmeta_kraft_topic_by_id(s, topic_id);

        return partition_view(
                s, t ? rdmeta_kraft_row_of(t, partition) : NULL, out);
}

int32_t rdmeta_kraft_partition_at(const rdmeta_kraft_state_t *s,
                                  const uint8_t *topic_id, uint32_t place,
                                  rdmeta_kraft_partition_t *out) {
        const rdmeta_kraft_topic_entry_t *t =
                rdmeta_kraft_topic_by_id(s, topic_id);

        return partition_view(
                s, t && place < t->count ? t->rows[place] : NULL, out);
}

static int32_t broker_view(const rdmeta_kraft_state_t *s,
                           const rdmeta_kraft_broker_entry_t *b,
                           rdmeta_kraft_broker_t *out) {
        memset(out, 0, sizeof(*out));
        if (!b)
                return 0;
        out->id            = b->id;
        out->epoch         = b->epoch;
        out->fenced        = b->fenced;
        out->shutting_down = b->shutting_down;
        out->log_dirs      = b->dirs.p;
        out->n_log_dirs    = b->dirs.n;
        out->cordoned      = b->cordoned.p;
        out->n_cordoned    = b->cordoned.n;
        out->registration  = b->registration;
        out->mark          = mark_of(s, b->offset, b->time_us);
        return 1;
}

int32_t rdmeta_kraft_broker_find(const rdmeta_kraft_state_t *s, int32_t id,
                                 rdmeta_kraft_broker_t *out) {
        return broker_view(s, rdmeta_kraft_broker_of(s, id), out);
}

int32_t rdmeta_kraft_broker_next(const rdmeta_kraft_state_t *s,
                                 int32_t after, rdmeta_kraft_broker_t *out) {
        const int32_t from =
                after < 0 ? 0 : (int32_t)((uint32_t)after + 1);
        rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;

        if (after == INT32_MAX)
                return broker_view(s, NULL, out);
        rdmeta_avl_iter_init(&it, &s->brokers, &from);
        node = rdmeta_avl_iter_next(&it);
        return broker_view(s, node ? RDMETA_KRAFT_BROKER_AT(node) : NULL, out);
}

int32_t rdmeta_kraft_fact_next(const rdmeta_kraft_state_t *s, int32_t control,
                               int32_t type, const uint8_t *key,
                               size_t key_len, rdmeta_kraft_fact_t *out) {
        const rdmeta_kraft_key_t at = {
                control ? type | RDMETA_KRAFT_KIND_CONTROL : type, key,
                key ? key_len : 0};
        const rdmeta_kraft_fact_entry_t *fact =
                rdmeta_kraft_facts_next(&s->facts, at, key != NULL);

        memset(out, 0, sizeof(*out));
        if (!fact)
                return 0;
        out->key             = fact->bytes;
        out->key_len         = fact->key_len;
        out->mark            = mark_of(s, fact->offset, fact->time_us);
        out->record.offset   = fact->offset;
        out->record.time_us  = fact->time_us;
        out->record.epoch    = out->mark.epoch;
        out->record.control  = !!(fact->kind & RDMETA_KRAFT_KIND_CONTROL);
        out->record.type     = fact->kind & (RDMETA_KRAFT_KIND_CONTROL - 1);
        out->record.version  = fact->version;
        out->record.value    = fact->bytes + fact->key_len;
        out->record.len      = fact->len;
        return 1;
}

const uint8_t *rdmeta_kraft_directory_id(const rdmeta_kraft_state_t *s,
                                         uint32_t number) {
        return number < s->n_directories ? s->directories[number] : NULL;
}
