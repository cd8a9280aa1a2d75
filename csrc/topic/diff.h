/*
 * diff: two blocks, or two broker tables, to change records.
 *
 * One function serves the feed and the difference of images, so that they
 * cannot disagree. Nothing is stored a partition: the ring holds pairs of
 * blocks, and records are made while somebody reads.
 *
 *     old        new        record
 *     -          valid      topic_added (one, whatever its partitions)
 *     valid      valid      topic_recreated, if it is another topic (see
 *                           is_another()); otherwise topic_id_learned,
 *                           internal_changed, operations_changed, and per
 *                           partition: partitions_added, leader_changed or
 *                           leader_epoch_changed, isr_changed,
 *                           replicas_changed, offline_changed, partition_error
 *     any        unknown, denied, bad: topic_error, if the error is another
 *     valid      missing    topic_absent
 *     seen       gone, -    topic_removed, unless that has been said before
 *     not valid  valid      topic_added, or topic_recreated
 *
 * ISR and offline replicas are sets; replicas are a list, whose first is the
 * preferred leader. Any other difference has a record. So a write raises the
 * version exactly when it has records.
 */
#ifndef RDMETA_TOPIC_DIFF_H
#define RDMETA_TOPIC_DIFF_H

#include "topic/brokers.h"
#include "topic/topic.h"

typedef struct rdmeta_diff_out {
        rdmeta_change_visit_t visit;
        void *opaque;
        rdmeta_change_t record; /* version, time, source, cluster id are the
                                 * caller's; the rest is set and reset */
        int32_t *ids;           /* 4 lists of `ids_each` */
        uint32_t ids_each;
        char detail[320];
} rdmeta_diff_out_t;

/* How long the longest list of a block is: what ids_each must allow for. */
uint32_t rdmeta_diff_longest(const rdmeta_topic_t *t);

/* Either may be NULL. What visit returns if not 0, else 0. */
int32_t rdmeta_diff_topics(rdmeta_diff_out_t *out,
                             const rdmeta_topic_t *old,
                             const rdmeta_topic_t *new_);
/* Returns 1 if there is a record of this pair; either may be NULL. */
int rdmeta_change_differs(const rdmeta_topic_t *old,
                          const rdmeta_topic_t *new_);
int32_t rdmeta_diff_brokers(rdmeta_diff_out_t *out,
                              const rdmeta_brokers_t *old,
                              const rdmeta_brokers_t *new_);

#endif /* RDMETA_TOPIC_DIFF_H */
