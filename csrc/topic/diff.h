/*
 * diff: makes change records from two blocks, or from two broker tables.
 *
 * One function serves the changes of a cache and the difference of images, so
 * that they cannot disagree. The changelog stores pairs of blocks, and nothing
 * per partition. Records are made while a reader reads them.
 *
 *     old        new        record
 *     -          valid      topic_added (one, whatever its partitions; if
 *                           `whole`, one per partition follows)
 *     valid      valid      topic_recreated, if it is another topic (see
 *                           is_another()); otherwise topic_id_learned,
 *                           internal_changed, operations_changed, and per
 *                           partition: partitions_added, leader_changed or
 *                           leader_epoch_changed, isr_changed,
 *                           replicas_changed, offline_changed, partition_error
 *     any        unknown, denied, bad: topic_error, if the error is another
 *     valid      missing    topic_absent
 *     seen       gone, -    topic_removed, unless it was removed before
 *     not valid  valid      topic_added, or topic_recreated
 *
 * ISR and offline replicas are sets; replicas are a list, whose first is the
 * preferred leader. Any other difference has a record. So a write raises the
 * version exactly when it has records.
 */
#pragma once

#include "topic/brokers.h"
#include "topic/topic.h"

/* A record has so many lists. */
enum { RDMETA_DIFF_LISTS = 6 };

typedef struct rdmeta_diff_out {
        rdmeta_change_visit_t visit;
        void *opaque;
        rdmeta_change_t record; /* the caller sets version, time, source and
                                 * cluster id; the diff the rest */
        int32_t *ids;           /* RDMETA_DIFF_LISTS of `ids_each` ids, the
                                 * caller's */
        uint32_t ids_each;
        int whole; /* 1: the partitions of a topic that came have records */
        char detail[320];
} rdmeta_diff_out_t;

/* Returns the length of a block's longest list; ids_each must be as large. */
uint32_t rdmeta_diff_longest(const rdmeta_topic_t *t);

/* Visits the records of this pair; either may be NULL. Stops at the first visit
 * that does not return 0, and returns its result, else 0. */
int32_t rdmeta_diff_topics(rdmeta_diff_out_t *out,
                           const rdmeta_topic_t *old,
                           const rdmeta_topic_t *new_);
/* Returns 1 if there is a record of this pair; either may be NULL. */
int rdmeta_change_differs(const rdmeta_topic_t *old,
                          const rdmeta_topic_t *new_);
/* Visits the records of two broker tables, in the same way. */
int32_t rdmeta_diff_brokers(rdmeta_diff_out_t *out,
                            const rdmeta_brokers_t *old,
                            const rdmeta_brokers_t *new_);
