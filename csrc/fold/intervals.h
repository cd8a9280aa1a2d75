/* Writes intervals and changes into the columns of their tables. */
#pragma once

#include "fold/state.h"

/* One record, as a fold reads it. A number of -1 is null; so is a text, or a
 * list, without a pointer. */
typedef struct rdmeta_fold_row {
        int64_t version, at;
        int64_t unseen, offset;
        int32_t kind;   /* -1: unknown; then `name` is its name */
        int32_t source; /* -1: unknown */
        int32_t source_broker, partition, broker;
        int32_t old_leader, new_leader, old_epoch, new_epoch;
        int32_t partition_epoch;
        int64_t broker_epoch;
        rdmeta_str_t name, topic, topic_id, detail;
        rdmeta_ids_t old_isr, new_isr, old_replicas, new_replicas;
        rdmeta_ids_t old_offline, new_offline;
        rdmeta_ids_t new_adding, new_removing, new_elr;
} rdmeta_fold_row_t;

/* The end of an interval. */
typedef struct rdmeta_fold_ended {
        int64_t at;
        uint8_t by;
} rdmeta_fold_ended_t;

/* Write the part of an interval that counts; nothing if there is none. Each
 * returns NO_MEMORY, and has then written nothing. */
rdmeta_err_t rdmeta_fold_put_partition(rdmeta_fold_t *f,
                                       const rdmeta_fold_topic_t *t,
                                       uint32_t partition,
                                       const rdmeta_fold_says_t *says,
                                       const rdmeta_fold_began_t *began,
                                       rdmeta_fold_ended_t ended);
rdmeta_err_t rdmeta_fold_put_topic(rdmeta_fold_t *f,
                                   const rdmeta_fold_topic_t *t,
                                   const rdmeta_fold_topic_says_t *says,
                                   rdmeta_fold_ended_t ended);
rdmeta_err_t rdmeta_fold_put_broker(rdmeta_fold_t *f,
                                    const rdmeta_fold_broker_t *b,
                                    rdmeta_fold_ended_t ended);
rdmeta_err_t rdmeta_fold_put_controller(rdmeta_fold_t *f,
                                        const rdmeta_fold_controller_t *c,
                                        rdmeta_fold_ended_t ended);
rdmeta_err_t rdmeta_fold_put_config(rdmeta_fold_t *f,
                                    const rdmeta_fold_config_t *c,
                                    rdmeta_fold_ended_t ended);

/* Writes a row of leader_change or change, observed at `at`, if that counts.
 * Returns NO_MEMORY, and has then written nothing. */
rdmeta_err_t rdmeta_fold_put_change(rdmeta_fold_t *f,
                                    const rdmeta_fold_row_t *row, int64_t at);
