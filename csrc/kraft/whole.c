/* whole: the change records that tell a state from nothing, as those of an
 * image do: brokers, topics with their partitions, configurations. */
#include "kraft/apply.h"

/* Sets the place and the time of the next records. */
static void at(rdmeta_kraft_replay_t *r, int64_t offset, int64_t wall_us) {
        rdmeta_kraft_record_t record = {0};

        record.offset = offset;
        rdmeta_kraft_changes_at(&r->changes, r->state, &record,
                                r->state->next, wall_us);
        r->changes.out.record.wall_us = wall_us;
}

static int32_t whole_brokers(rdmeta_kraft_replay_t *r, int64_t wall_us) {
        rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;
        int32_t res = 0;

        rdmeta_avl_iter_init(&it, &r->state->brokers, NULL);
        while (!res && (node = rdmeta_avl_iter_next(&it))) {
                at(r, RDMETA_KRAFT_BROKER_AT(node)->offset, wall_us);
                res = rdmeta_kraft_change_broker(&r->changes, NULL,
                                                 RDMETA_KRAFT_BROKER_AT(node));
        }
        return res;
}

static int32_t whole_topics(rdmeta_kraft_replay_t *r, int64_t wall_us) {
        const rdmeta_kraft_topic_entry_t *t;
        rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;
        int32_t res = 0;
        uint32_t i;

        rdmeta_avl_iter_init(&it, &r->state->names, NULL);
        while (!res && (node = rdmeta_avl_iter_next(&it))) {
                t = RDMETA_KRAFT_TOPIC_AT(node);
                at(r, t->offset, wall_us);
                res = rdmeta_kraft_change_topic(
                        &r->changes, RDMETA_TOPIC_ADDED,
                        rdmeta_kraft_topic_name(t), t->id);
                for (i = 0; i < t->count && !res; i++) {
                        at(r, t->rows[i]->offset, wall_us);
                        res = rdmeta_kraft_change_row_added(
                                &r->changes, RDMETA_TOPIC_ADDED, t,
                                t->rows[i]);
                }
        }
        return res;
}

static int32_t whole_configs(rdmeta_kraft_replay_t *r, int64_t wall_us) {
        rdmeta_kraft_value_t values[RDMETA_KRAFT_FIELDS];
        rdmeta_kraft_fact_t f = {0};
        uint8_t *text;
        int32_t res = 0;
        int bad;

        f.record.type = RDMETA_KRAFT_CONFIG;
        while (!res &&
               rdmeta_kraft_fact_next(r->state, 0, f.record.type, f.key,
                                      f.key_len, &f) &&
               f.record.type == RDMETA_KRAFT_CONFIG && !f.record.control) {
                text = rdmeta_kraft_scratch(r, f.record.len + 8);
                if (!text)
                        return RDMETA_ERR_NO_MEMORY;
                if (!rdmeta_kraft_record_read(&f.record, values, &bad))
                        continue;
                at(r, f.record.offset, wall_us);
                res = rdmeta_kraft_config_change(r, values, text);
        }
        return res;
}

rdmeta_err_t rdmeta_kraft_state_changes(rdmeta_kraft_replay_t *r,
                                        int64_t wall_us,
                                        rdmeta_change_visit_t visit,
                                        void *opaque) {
        const rdmeta_change_visit_t kept = r->changes.visit;
        void *const kept_opaque          = r->changes.opaque;
        int32_t res;

        r->changes.visit  = visit;
        r->changes.opaque = opaque;
        res               = whole_brokers(r, wall_us);
        if (!res)
                res = whole_topics(r, wall_us);
        if (!res)
                res = whole_configs(r, wall_us);
        r->changes.visit  = kept;
        r->changes.opaque = kept_opaque;
        return res;
}
