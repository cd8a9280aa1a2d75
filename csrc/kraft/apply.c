#include "kraft/apply.h"

#include "arrow/text.h"

#include <stdarg.h>
#include <stdio.h>

rdmeta_err_t rdmeta_kraft_refuse(rdmeta_kraft_replay_t *r,
                                 const rdmeta_kraft_record_t *record,
                                 int32_t code, const char *format, ...) {
        const rdmeta_kraft_type_t *t = rdmeta_kraft_type_of(record);
        va_list args;
        int n;

        r->fault.code   = code;
        r->fault.offset = record->offset;
        n = snprintf(r->fault.text, sizeof(r->fault.text),
                     "offset %lld: %s version %d ", (long long)record->offset,
                     t ? t->name : "record", record->version);
        va_start(args, format);
        vsnprintf(r->fault.text + n, sizeof(r->fault.text) - (size_t)n,
                  format, args);
        va_end(args);
        return RDMETA_ERR_MALFORMED;
}

#define CONTRADICTS(...)                                                     \
        rdmeta_kraft_refuse(r, record, RDMETA_KRAFT_CONTRADICTS, __VA_ARGS__)

/* A topic's id as text, for errors. */
typedef struct id_text {
        char text[RDMETA_ARROW_ID + 1];
} id_text_t;

static id_text_t text_of(const uint8_t id[16]) {
        id_text_t t;

        rdmeta_text_id(t.text, id);
        t.text[RDMETA_ARROW_ID] = '\0';
        return t;
}

uint8_t *rdmeta_kraft_scratch(rdmeta_kraft_replay_t *r, size_t size) {
        const rdmeta_allocator_t *a = &r->conf.allocator;
        uint8_t *p;

        if (size <= r->scratch_size)
                return r->scratch;
        size += size / 2;
        p = rdmeta_alloc(a, size);
        if (!p)
                return NULL;
        rdmeta_free(a, r->scratch, r->scratch_size);
        r->scratch      = p;
        r->scratch_size = size;
        return p;
}

/* ---- topics and partitions ---------------------------------------------- */

static rdmeta_err_t topic_apply(rdmeta_kraft_replay_t *r,
                                const rdmeta_kraft_record_t *record,
                                const rdmeta_kraft_value_t *values) {
        const rdmeta_str_t name = rdmeta_kraft_text(values[0]);
        rdmeta_kraft_topic_entry_t *t;
        rdmeta_err_t err;

        if (rdmeta_kraft_topic_by_id(r->state, values[1].p))
                return CONTRADICTS("has id %s, which another topic has",
                                   text_of(values[1].p).text);
        if (rdmeta_kraft_topic_by_name(r->state, name))
                return CONTRADICTS("makes topic %.*s, which there is",
                                   name.len < 60 ? (int)name.len : 60,
                                   name.data);
        err = rdmeta_kraft_change_topic(&r->changes, RDMETA_TOPIC_ADDED, name,
                                        values[1].p);
        if (err)
                return err;
        t = rdmeta_kraft_topic_add(r->state, name, values[1].p);
        if (!t)
                return RDMETA_ERR_NO_MEMORY;
        t->offset  = record->offset;
        t->time_us = record->time_us;
        t->born    = r->version;
        return RDMETA_OK;
}

/* Removes the configurations of a topic. */
static int configs_remove(rdmeta_kraft_replay_t *r,
                          const rdmeta_kraft_topic_entry_t *t) {
        const rdmeta_str_t name = rdmeta_kraft_topic_name(t);
        const uint64_t number   = __builtin_bswap64(
                RDMETA_KRAFT_OF_TOPIC ^ UINT64_C(1) << 63);
        uint8_t *p = rdmeta_kraft_scratch(r, 2 * name.len + 16);
        rdmeta_kraft_key_t key = {RDMETA_KRAFT_CONFIG, p, 8};
        rdmeta_kraft_fact_entry_t *fact;

        if (!p)
                return 0;
        memcpy(p, &number, 8);
        key.len += rdmeta_kraft_key_text(name, p + 8);
        while ((fact = rdmeta_kraft_facts_next(&r->state->facts, key, 0)) &&
               fact->kind == key.kind && fact->key_len >= key.len &&
               !memcmp(fact->bytes, p, key.len))
                rdmeta_kraft_facts_remove(&r->state->facts, fact);
        return 1;
}

static rdmeta_err_t topic_remove(rdmeta_kraft_replay_t *r,
                                 const rdmeta_kraft_record_t *record,
                                 const rdmeta_kraft_value_t *values) {
        rdmeta_kraft_topic_entry_t *t =
                rdmeta_kraft_topic_by_id(r->state, values[0].p);
        rdmeta_err_t err;

        if (!t)
                return CONTRADICTS("removes topic %s, which is unknown",
                                   text_of(values[0].p).text);
        err = rdmeta_kraft_change_topic(&r->changes, RDMETA_TOPIC_REMOVED,
                                        rdmeta_kraft_topic_name(t), t->id);
        if (err)
                return err;
        if (!configs_remove(r, t))
                return RDMETA_ERR_NO_MEMORY;
        rdmeta_kraft_topic_remove(r->state, t);
        return RDMETA_OK;
}

/* A row with room for its lists. */
typedef union new_row {
        rdmeta_kraft_row_t row;
        uint8_t bytes[RDMETA_KRAFT_ROW_MAX];
} new_row_t;

/* Writes directories as numbers; returns 0: no memory. */
static int directories_write(rdmeta_kraft_state_t *s, const uint8_t *from,
                             uint32_t n, uint8_t *to) {
        uint32_t i, word;
        int64_t number;

        for (i = 0; i < n; i++) {
                number = rdmeta_kraft_directory(s, from + 16 * (size_t)i);
                if (number < 0)
                        return 0;
                word = __builtin_bswap32((uint32_t)number);
                memcpy(to + 4 * (size_t)i, &word, 4);
        }
        return 1;
}

static const rdmeta_kraft_value_t same_list;

/* Fills a row with the lists; one without bytes is that of the old row, which
 * may be NULL. Returns 0: no memory. */
static int row_fill(rdmeta_kraft_state_t *s, rdmeta_kraft_row_t *row,
                    const rdmeta_kraft_value_t *const *lists,
                    const rdmeta_kraft_row_t *old) {
        uint8_t *to         = row->lists;
        const uint8_t *from = old ? old->lists : NULL;
        int i;

        for (i = 0; i < RDMETA_KRAFT_LISTS; i++) {
                const uint8_t *p = lists[i]->p;
                uint32_t n       = lists[i]->count;

                if (i == RDMETA_KRAFT_DIRECTORIES && p) {
                        if (!directories_write(s, p, n, to))
                                return 0;
                } else {
                        if (!p && old) {
                                p = from;
                                n = old->counts[i];
                        }
                        if (n) /* memcpy() would be "rep movs" here */
                                memmove(to, p, 4 * (size_t)n);
                }
                if (old)
                        from += 4 * (size_t)old->counts[i];
                to += 4 * (size_t)n;
                row->counts[i] = (uint8_t)n;
        }
        return 1;
}

/* Writes the lists into a row if none gets another length; returns whether it
 * did. Most changes are so. */
static int lists_replace(rdmeta_kraft_row_t *row,
                         const rdmeta_kraft_value_t *const *lists) {
        uint8_t *to = row->lists;
        int i;

        for (i = 0; i < RDMETA_KRAFT_LISTS; i++)
                if (lists[i]->p && (i == RDMETA_KRAFT_DIRECTORIES ||
                                    lists[i]->count != row->counts[i]))
                        return 0;
        for (i = 0; i < RDMETA_KRAFT_LISTS; i++) {
                if (lists[i]->p)
                        memmove(to, lists[i]->p, lists[i]->size);
                to += 4 * (size_t)row->counts[i];
        }
        return 1;
}

static rdmeta_err_t row_put(rdmeta_kraft_replay_t *r,
                            rdmeta_kraft_topic_entry_t *t,
                            rdmeta_kraft_row_t *old,
                            const rdmeta_kraft_row_t *row) {
        rdmeta_err_t err = RDMETA_OK;

        if (r->changes.visit)
                err = rdmeta_kraft_change_row(&r->changes, t, old, row);
        if (err)
                return err;
        return rdmeta_kraft_row_set(r->state, t, old, row)
                       ? RDMETA_OK
                       : RDMETA_ERR_NO_MEMORY;
}

/* Returns the next epoch; it wraps as Java's int does. */
static int32_t next_epoch(int32_t epoch) {
        return (int32_t)((uint32_t)epoch + 1);
}

/* Sets what a row has besides lists to what the old one has, at this record. As
 * with any change, the partition epoch goes up. */
static void row_head(rdmeta_kraft_row_t *row, const rdmeta_kraft_row_t *old,
                     const rdmeta_kraft_record_t *record) {
        row->id              = old->id;
        row->offset          = record->offset;
        row->time_us         = record->time_us;
        row->leader          = old->leader;
        row->leader_epoch    = old->leader_epoch;
        row->partition_epoch = next_epoch(old->partition_epoch);
        row->recovery        = old->recovery;
}

/* Applies a PartitionRecord, or a change of it. */
static rdmeta_err_t partition_apply(rdmeta_kraft_replay_t *r,
                                    const rdmeta_kraft_record_t *record,
                                    const rdmeta_kraft_schema_t *schema,
                                    const rdmeta_kraft_value_t *values) {
        /* Where the values have the lists of a row. */
        static const uint8_t places[2][RDMETA_KRAFT_LISTS] = {
                {2, 3, 4, 5, 11, 12, 10}, {4, 2, 5, 6, 9, 10, 8}};
        const int change = record->type == RDMETA_KRAFT_PARTITION_CHANGE;
        const int32_t id = (int32_t)values[0].number;
        const rdmeta_kraft_value_t *leader = &values[change ? 3 : 6];
        const rdmeta_kraft_value_t *lists[RDMETA_KRAFT_LISTS];
        rdmeta_kraft_topic_entry_t *t;
        rdmeta_kraft_row_t *old, *row;
        new_row_t new_;
        int i;

        t = rdmeta_kraft_topic_by_id(r->state, values[1].p);
        if (!t)
                return CONTRADICTS("is of topic %s, which is unknown",
                                   text_of(values[1].p).text);
        if (id < 0)
                return CONTRADICTS("is of partition %d", id);
        for (i = 0; i < RDMETA_KRAFT_LISTS; i++) {
                const int k = places[change][i];

                lists[i] = k < schema->count ? &values[k] : &same_list;
                if (lists[i]->count > RDMETA_KRAFT_LIST_MAX)
                        return CONTRADICTS("has a list of %u replicas",
                                           lists[i]->count);
        }
        old = rdmeta_kraft_row_of(t, id);
        if (change && !old)
                return CONTRADICTS("is of partition %d of topic %s, which is "
                                   "unknown",
                                   id, text_of(values[1].p).text);
        row = &new_.row;
        if (change && !r->changes.visit && lists_replace(old, lists))
                row = old;
        else if (!row_fill(r->state, row, lists, change ? old : NULL))
                return RDMETA_ERR_NO_MEMORY;
        if (change) {
                row_head(row, old, record);
        } else {
                row->id              = id;
                row->offset          = record->offset;
                row->time_us         = record->time_us;
                row->leader          = (int32_t)leader->number;
                row->leader_epoch    = (int32_t)values[8].number;
                row->partition_epoch = (int32_t)values[9].number;
                row->recovery        = (int8_t)values[7].number;
                return row_put(r, t, old, row);
        }
        if (leader->number != RDMETA_KRAFT_SAME_LEADER) {
                row->leader       = (int32_t)leader->number;
                row->leader_epoch = next_epoch(row->leader_epoch);
        }
        if (values[7].number >= 0)
                row->recovery = (int8_t)values[7].number;
        return row == old ? RDMETA_OK : row_put(r, t, old, row);
}

/* Empties the ELR and the last known ELR of a topic's partitions that have
 * one. */
static rdmeta_err_t topic_clear_elr(rdmeta_kraft_replay_t *r,
                                    rdmeta_kraft_topic_entry_t *t,
                                    const rdmeta_kraft_record_t *record) {
        static const rdmeta_kraft_value_t empty = {.p = (const uint8_t *)""};
        const rdmeta_kraft_value_t *const lists[RDMETA_KRAFT_LISTS] = {
                &same_list, &same_list, &same_list, &same_list,
                &empty,     &empty,     &same_list};
        rdmeta_err_t err = RDMETA_OK;
        new_row_t new_;
        uint32_t i;

        for (i = 0; i < t->count && !err; i++) {
                rdmeta_kraft_row_t *old = t->rows[i];

                if (!old->counts[RDMETA_KRAFT_ELR] &&
                    !old->counts[RDMETA_KRAFT_LAST_ELR])
                        continue;
                if (!row_fill(r->state, &new_.row, lists, old))
                        return RDMETA_ERR_NO_MEMORY;
                row_head(&new_.row, old, record);
                err = row_put(r, t, old, &new_.row);
        }
        return err;
}

static rdmeta_err_t clear_elr(rdmeta_kraft_replay_t *r,
                              const rdmeta_kraft_record_t *record,
                              const rdmeta_kraft_value_t *values) {
        const rdmeta_str_t name = rdmeta_kraft_text(values[0]);
        rdmeta_kraft_topic_entry_t *t;
        rdmeta_err_t err = RDMETA_OK;
        rdmeta_avl_iter_t it;
        rdmeta_avl_node_t *node;

        if (name.len) {
                t = rdmeta_kraft_topic_by_name(r->state, name);
                if (!t)
                        return CONTRADICTS("is of a topic that is unknown");
                return topic_clear_elr(r, t, record);
        }
        rdmeta_avl_iter_init(&it, &r->state->names, NULL);
        while (!err && (node = rdmeta_avl_iter_next(&it)))
                err = topic_clear_elr(r, RDMETA_KRAFT_TOPIC_AT(node), record);
        return err;
}

/* ---- brokers ------------------------------------------------------------ */

static rdmeta_err_t broker_register(rdmeta_kraft_replay_t *r,
                                    const rdmeta_kraft_record_t *record,
                                    const rdmeta_kraft_schema_t *schema,
                                    const rdmeta_kraft_value_t *values) {
        rdmeta_kraft_broker_entry_t *b = rdmeta_kraft_broker_new(
                r->state, record, schema, values);
        rdmeta_err_t err;

        if (!b)
                return RDMETA_ERR_NO_MEMORY;
        if (b->id < 0) {
                rdmeta_kraft_broker_free(r->state, b);
                return CONTRADICTS("has a negative id");
        }
        err = rdmeta_kraft_change_broker(
                &r->changes, rdmeta_kraft_broker_of(r->state, b->id), b);
        if (err)
                rdmeta_kraft_broker_free(r->state, b);
        else
                rdmeta_kraft_broker_put(r->state, b);
        return err;
}

static rdmeta_err_t broker_unregister(rdmeta_kraft_replay_t *r,
                                      const rdmeta_kraft_record_t *record,
                                      const rdmeta_kraft_value_t *values) {
        rdmeta_kraft_broker_entry_t *b = rdmeta_kraft_broker_of(
                r->state, (int32_t)values[0].number);
        rdmeta_err_t err;

        if (!b)
                return CONTRADICTS("is of broker %d, which is unknown",
                                   (int)values[0].number);
        err = rdmeta_kraft_change_broker(&r->changes, b, NULL);
        if (!err)
                rdmeta_kraft_broker_remove(r->state, b);
        return err;
}

/* Sets the log directories of a change that names any. */
static int broker_dirs(rdmeta_kraft_replay_t *r,
                       rdmeta_kraft_broker_entry_t *b,
                       const rdmeta_kraft_schema_t *schema,
                       const rdmeta_kraft_value_t *values) {
        rdmeta_kraft_value_t v =
                rdmeta_kraft_value_of(schema, values, "logDirs");

        if (v.count && !rdmeta_kraft_dirs_set(r->state, &b->dirs, &v))
                return 0;
        v = rdmeta_kraft_value_of(schema, values, "cordonedLogDirs");
        return !v.p || rdmeta_kraft_dirs_set(r->state, &b->cordoned, &v);
}

/* Applies a fence, an unfence, or a BrokerRegistrationChange. */
static rdmeta_err_t broker_change(rdmeta_kraft_replay_t *r,
                                  const rdmeta_kraft_record_t *record,
                                  const rdmeta_kraft_schema_t *schema,
                                  const rdmeta_kraft_value_t *values) {
        const int32_t id               = (int32_t)values[0].number;
        rdmeta_kraft_broker_entry_t *b = rdmeta_kraft_broker_of(r->state, id);
        rdmeta_kraft_broker_entry_t after;
        int64_t fenced = 0, down = 0;
        rdmeta_err_t err;

        if (!b)
                return CONTRADICTS("is of broker %d, which is unknown", id);
        if (values[1].number != b->epoch)
                return CONTRADICTS("is of epoch %lld of broker %d, whose "
                                   "epoch is %lld",
                                   (long long)values[1].number, id,
                                   (long long)b->epoch);
        if (record->type == RDMETA_KRAFT_BROKER_CHANGE) {
                fenced = rdmeta_kraft_value_of(schema, values, "fenced").number;
                down   = rdmeta_kraft_value_of(schema, values,
                                             "inControlledShutdown")
                               .number;
                if (!broker_dirs(r, b, schema, values))
                        return RDMETA_ERR_NO_MEMORY;
        } else {
                fenced = record->type == RDMETA_KRAFT_FENCE_BROKER ? 1 : -1;
        }
        after = *b;
        if (fenced)
                after.fenced = fenced > 0;
        if (down)
                after.shutting_down = down > 0;
        err = rdmeta_kraft_change_broker(&r->changes, b, &after);
        if (err)
                return err;
        b->fenced        = after.fenced;
        b->shutting_down = after.shutting_down;
        b->offset        = record->offset;
        b->time_us       = record->time_us;
        return RDMETA_OK;
}

/* ---- facts -------------------------------------------------------------- */

rdmeta_err_t rdmeta_kraft_config_change(rdmeta_kraft_replay_t *r,
                                        const rdmeta_kraft_value_t *values,
                                        uint8_t *text) {
        const rdmeta_str_t resource = rdmeta_kraft_text(values[1]);
        const rdmeta_str_t key      = rdmeta_kraft_text(values[2]);
        rdmeta_str_t detail         = {(const char *)text, key.len};
        const rdmeta_kraft_topic_entry_t *t = NULL;

        if (values[0].number == RDMETA_KRAFT_OF_TOPIC)
                t = rdmeta_kraft_topic_by_name(r->state, resource);
        memcpy(text, key.data, key.len);
        if (values[3].p) {
                const int hidden = !r->conf.show_secrets &&
                                   rdmeta_kraft_is_sensitive(key);
                const size_t n   = hidden ? 3 : values[3].count;

                text[key.len] = '=';
                memcpy(text + key.len + 1,
                       hidden ? (const uint8_t *)"***" : values[3].p, n);
                detail.len += 1 + n;
        }
        return rdmeta_kraft_change_config(
                &r->changes, (int)values[0].number, resource,
                t ? t->id : NULL, detail);
}

static rdmeta_err_t fact_apply(rdmeta_kraft_replay_t *r,
                               const rdmeta_kraft_record_t *record,
                               const rdmeta_kraft_type_t *type,
                               const rdmeta_kraft_schema_t *schema,
                               const rdmeta_kraft_value_t *values) {
        rdmeta_kraft_key_t key = {record->type, NULL, 0};
        const size_t room      = rdmeta_kraft_key_room(record);
        const int gone         = type->role == RDMETA_KRAFT_REMOVES ||
                         rdmeta_kraft_is_removal(schema, values);
        uint8_t *scratch = rdmeta_kraft_scratch(r, room + record->len + 16);
        rdmeta_kraft_fact_entry_t *old;
        rdmeta_err_t err = RDMETA_OK;
        int64_t len;

        if (!scratch)
                return RDMETA_ERR_NO_MEMORY;
        len = rdmeta_kraft_key_write(schema, values, scratch);
        if (len < 0)
                return CONTRADICTS("has an entity of too many parts");
        if (type->role == RDMETA_KRAFT_REMOVES)
                key.kind = type->removes;
        if (record->control)
                key.kind |= RDMETA_KRAFT_KIND_CONTROL;
        key.bytes = scratch;
        key.len   = (size_t)len;
        old       = rdmeta_kraft_facts_find(&r->state->facts, key);
        if (r->changes.visit && !record->control &&
            record->type == RDMETA_KRAFT_CONFIG &&
            (gone ? old != NULL
                  : !old || old->len != record->len ||
                            memcmp(old->bytes + key.len, record->value,
                                   record->len) != 0))
                err = rdmeta_kraft_config_change(r, values,
                                                 scratch + room);
        if (err)
                return err;
        if (!gone)
                return rdmeta_kraft_facts_set(&r->state->facts, key, record)
                               ? RDMETA_OK
                               : RDMETA_ERR_NO_MEMORY;
        if (old)
                rdmeta_kraft_facts_remove(&r->state->facts, old);
        return RDMETA_OK;
}

/* ---- all ---------------------------------------------------------------- */

/* Applies a control record that is no fact. */
static rdmeta_err_t control_apply(rdmeta_kraft_replay_t *r,
                                  const rdmeta_kraft_record_t *record,
                                  const rdmeta_kraft_value_t *values) {
        const int32_t leader = (int32_t)values[1].number;
        int64_t unseen_us    = -1;

        if (record->type != RDMETA_KRAFT_LEADER_CHANGE)
                return RDMETA_OK;
        if (!rdmeta_kraft_epoch_add(r->state, record->offset, record->epoch,
                                    leader))
                return RDMETA_ERR_NO_MEMORY;
        if (r->before_epoch_us > record->time_us)
                unseen_us = 0; /* a clock went back */
        else if (r->before_epoch_us != INT64_MIN)
                unseen_us = record->time_us - r->before_epoch_us;
        return rdmeta_kraft_change_controller(&r->changes, leader,
                                              record->epoch, unseen_us);
}

static rdmeta_err_t row_apply(rdmeta_kraft_replay_t *r,
                              const rdmeta_kraft_record_t *record,
                              const rdmeta_kraft_schema_t *schema,
                              const rdmeta_kraft_value_t *values) {
        if (record->control)
                return control_apply(r, record, values);
        switch (record->type) {
        case RDMETA_KRAFT_REGISTER_BROKER:
                return broker_register(r, record, schema, values);
        case RDMETA_KRAFT_UNREGISTER_BROKER:
                return broker_unregister(r, record, values);
        case RDMETA_KRAFT_PARTITION:
        case RDMETA_KRAFT_PARTITION_CHANGE:
                return partition_apply(r, record, schema, values);
        case RDMETA_KRAFT_TOPIC: return topic_apply(r, record, values);
        case RDMETA_KRAFT_REMOVE_TOPIC: return topic_remove(r, record, values);
        case RDMETA_KRAFT_FENCE_BROKER:
        case RDMETA_KRAFT_UNFENCE_BROKER:
        case RDMETA_KRAFT_BROKER_CHANGE:
                return broker_change(r, record, schema, values);
        case RDMETA_KRAFT_CLEAR_ELR: return clear_elr(r, record, values);
        default: return RDMETA_OK;
        }
}

rdmeta_err_t rdmeta_kraft_apply(rdmeta_kraft_replay_t *r,
                                const rdmeta_kraft_record_t *record,
                                int64_t latest) {
        const rdmeta_kraft_schema_t *schema = rdmeta_kraft_schema_of(record);
        const rdmeta_kraft_type_t *type;
        rdmeta_kraft_value_t values[RDMETA_KRAFT_FIELDS];
        int bad;

        if (!schema) {
                r->state->unknown++;
                return RDMETA_OK;
        }
        if (r->changes.visit)
                rdmeta_kraft_changes_at(&r->changes, r->state, record,
                                        r->version, latest);
        if (!rdmeta_kraft_record_read(record, values, &bad))
                return rdmeta_kraft_refuse(
                        r, record, RDMETA_KRAFT_BAD_RECORD,
                        "has bytes that contradict each other");
        type = rdmeta_kraft_type_of(record);
        switch (type->role) {
        case RDMETA_KRAFT_NOTHING: return RDMETA_OK;
        case RDMETA_KRAFT_ROW:
                return row_apply(r, record, schema, values);
        default: return fact_apply(r, record, type, schema, values);
        }
}
