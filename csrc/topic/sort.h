/*
 * sort: topics in the order of the bytes of their names.
 *
 * Eight bytes of a name as a number, so that a comparison touches no name. What
 * a group of names begins with in common is left out first - else the first
 * eight bytes of most names would be equal - and a group whose eight bytes are
 * equal is sorted by what comes after them.
 *
 *     kafka.orders.eu-1     common: "kafka.orders."     keys: "eu-1", "eu-2",
 *     kafka.orders.eu-2                                       "us-1"
 *     kafka.orders.us-1
 */
#ifndef RDMETA_TOPIC_SORT_H
#define RDMETA_TOPIC_SORT_H

#include "topic/topic.h"

typedef struct rdmeta_sort_item {
        uint64_t key; /* the sort's own */
        const rdmeta_topic_t *topic;
        uint64_t with; /* what goes along with it: the caller's */
} rdmeta_sort_item_t;

/* < 0, 0, > 0: by bytes, and what is shorter comes first. */
int rdmeta_names_compare(const char *a, size_t n, const char *b, size_t m);
/* The same, of two topics' names. */
int rdmeta_topics_compare(const rdmeta_topic_t *a, const rdmeta_topic_t *b);
/* No two names are equal. */
void rdmeta_sort_topics(rdmeta_sort_item_t *items, size_t n);

#endif /* RDMETA_TOPIC_SORT_H */
