/*
 * changes: change records of what a record of the log does, by the rules of
 * topic/diff.
 *
 * They are made before the state changes, from the old row and the new one. A
 * record has the offset and the time of its log record, as version the offset
 * behind its commit, and as source_broker the controller that led.
 */
#ifndef RDMETA_KRAFT_CHANGES_H
#define RDMETA_KRAFT_CHANGES_H

#include "kraft/state.h"
#include "topic/diff.h"

typedef struct rdmeta_kraft_changes {
        rdmeta_change_visit_t visit; /* NULL: no changes are wanted */
        void *opaque;
        rdmeta_str_t listener;
        int64_t broker_epoch;    /* of the records that follow */
        int32_t partition_epoch;
        rdmeta_diff_out_t out;
        int32_t ids[RDMETA_DIFF_ALL_LISTS * RDMETA_KRAFT_LIST_MAX];
} rdmeta_kraft_changes_t;

void rdmeta_kraft_changes_init(rdmeta_kraft_changes_t *c,
                               const rdmeta_kraft_conf_t *conf);

/* Sets what the next records have in common. `latest` is the latest time
 * before the record. */
void rdmeta_kraft_changes_at(rdmeta_kraft_changes_t *c,
                             const rdmeta_kraft_state_t *s,
                             const rdmeta_kraft_record_t *record,
                             int64_t version, int64_t latest);

/* Each visits the records of one step, and returns the visit's result: 0 to go
 * on. A row or broker NULL is none. */
int32_t rdmeta_kraft_change_topic(rdmeta_kraft_changes_t *c, int32_t kind,
                                  rdmeta_str_t name, const uint8_t *id);
int32_t rdmeta_kraft_change_row(rdmeta_kraft_changes_t *c,
                                const rdmeta_kraft_topic_entry_t *t,
                                const rdmeta_kraft_row_t *old,
                                const rdmeta_kraft_row_t *new_);
/* Visits a partition that there was not before, as this kind. */
int32_t rdmeta_kraft_change_row_added(rdmeta_kraft_changes_t *c, int32_t kind,
                                      const rdmeta_kraft_topic_entry_t *t,
                                      const rdmeta_kraft_row_t *row);
int32_t
rdmeta_kraft_change_broker(rdmeta_kraft_changes_t *c,
                           const rdmeta_kraft_broker_entry_t *old,
                           const rdmeta_kraft_broker_entry_t *new_);
/* `detail` is KEY=VALUE, or KEY alone; `topic_id` NULL: not known. */
int32_t rdmeta_kraft_change_config(rdmeta_kraft_changes_t *c, int type,
                                   rdmeta_str_t resource,
                                   const uint8_t *topic_id,
                                   rdmeta_str_t detail);
int32_t rdmeta_kraft_change_controller(rdmeta_kraft_changes_t *c,
                                       int32_t leader, int32_t epoch,
                                       int64_t unseen_us);

#endif /* RDMETA_KRAFT_CHANGES_H */
