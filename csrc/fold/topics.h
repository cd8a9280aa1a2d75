/* The topics of a fold: by name, in order, and their partitions. */
#pragma once

#include "fold/state.h"

/* Returns a topic; NULL: there is none. */
rdmeta_fold_topic_t *rdmeta_fold_topic_find(const rdmeta_fold_t *f,
                                            rdmeta_str_t name);
/* Returns a topic, a new one if there is none; NULL: no memory. */
rdmeta_fold_topic_t *rdmeta_fold_topic_get(rdmeta_fold_t *f,
                                           rdmeta_str_t name);
/* Frees a topic. */
void rdmeta_fold_topic_drop(rdmeta_fold_t *f, rdmeta_fold_topic_t *t);
/* Finds a partition by the slots of its topic; NULL: it is not there. */
rdmeta_fold_partition_t *rdmeta_fold_partition_by_slot(
        const rdmeta_fold_t *f, const rdmeta_fold_topic_t *t, uint32_t number);
/* Returns a partition, a new one if it is not there; NULL: no memory. */
rdmeta_fold_partition_t *rdmeta_fold_partition_get(rdmeta_fold_t *f,
                                                   rdmeta_fold_topic_t *t,
                                                   uint32_t number);
/* Puts the partitions of a topic in the order of their numbers. */
void rdmeta_fold_partitions_sort(const rdmeta_fold_t *f,
                                 rdmeta_fold_topic_t *t);

/* Returns a partition of a topic; NULL: it is not there. */
RDMETA_INLINE rdmeta_fold_partition_t *
rdmeta_fold_partition_find(const rdmeta_fold_t *f,
                           const rdmeta_fold_topic_t *t, uint32_t number) {
        if (number < t->n && t->partitions[number].number == number)
                return &t->partitions[number];
        return t->slots ? rdmeta_fold_partition_by_slot(f, t, number) : NULL;
}

/* Puts all topics in the order of their names into f->sorted. */
void rdmeta_fold_topics_sort(rdmeta_fold_t *f);
/* Frees all topics. */
void rdmeta_fold_topics_destroy(rdmeta_fold_t *f);
