/* The topics of a fold: by name, in order, and their partitions. */
#ifndef RDMETA_FOLD_TOPICS_H
#define RDMETA_FOLD_TOPICS_H

#include "fold/state.h"

/* Returns a topic; NULL: there is none. */
rdmeta_fold_topic_t *rdmeta_fold_topic_find(const rdmeta_fold_t *f,
                                            rdmeta_str_t name);
/* Returns a topic, a new one if there is none; NULL: no memory. */
rdmeta_fold_topic_t *rdmeta_fold_topic_get(rdmeta_fold_t *f,
                                           rdmeta_str_t name);
/* Frees a topic. */
void rdmeta_fold_topic_drop(rdmeta_fold_t *f, rdmeta_fold_topic_t *t);
/* Makes partitions 0 to n - 1. Returns NO_MEMORY. */
rdmeta_err_t rdmeta_fold_topic_room(rdmeta_fold_t *f, rdmeta_fold_topic_t *t,
                                    uint32_t n);
/* Puts all topics in the order of their names into f->sorted. */
void rdmeta_fold_topics_sort(rdmeta_fold_t *f);
/* Frees all topics. */
void rdmeta_fold_topics_destroy(rdmeta_fold_t *f);

#endif /* RDMETA_FOLD_TOPICS_H */
