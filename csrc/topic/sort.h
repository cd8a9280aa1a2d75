/*
 * sort: sorts topics in the order of the bytes of their names.
 *
 * The key of a topic is eight bytes of its name as a number, so that a
 * comparison reads no name. The sort skips the common prefix of a group, since
 * otherwise the first eight bytes of most names would be equal. It sorts a
 * group whose eight bytes are equal by the bytes that follow.
 *
 *     kafka.orders.eu-1     common: "kafka.orders."     keys: "eu-1", "eu-2",
 *     kafka.orders.eu-2                                       "us-1"
 *     kafka.orders.us-1
 */
#pragma once

#include "topic/topic.h"

typedef struct rdmeta_sort_item {
        uint64_t key; /* the sort's own */
        const rdmeta_topic_t *topic;
        uint64_t with; /* the caller's value, which moves with the topic */
} rdmeta_sort_item_t;

/* Returns < 0, 0 or > 0 by the names' bytes; a prefix comes first. */
int rdmeta_names_compare(const char *a, size_t n, const char *b, size_t m);
/* Compares two topics' names in the same way. */
int rdmeta_topics_compare(const rdmeta_topic_t *a, const rdmeta_topic_t *b);
/* Sorts the items in place. No two names may be equal. */
void rdmeta_sort_topics(rdmeta_sort_item_t *items, size_t n);
