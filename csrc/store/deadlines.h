/*
 * deadlines: entries in the order of their deadlines, in whatever order they
 * are added.
 *
 *     class      list: added in order               tree: added out of order
 *     VALID      [t+1 s]-[t+9 s]-[t+900 s]          [t+2 s]
 *     HINT       [t+60 s]-[t+61 s]
 *     NEGATIVE   [t+900 s]-[t+900 s]-...            [t+0.1 s] < [t+0.1 s]
 *     ...
 *
 * With one list for all, as in librdkafka, a deadline in 900 s can hide one in
 * 100 ms for minutes. So there are classes: there are few times to live, and
 * most classes have one. An entry that is added in order goes to the end of its
 * class's list, at constant cost.
 *
 * Some entries are added out of order. A hint that ends gives its topic the
 * former deadline back, which is earlier than those added since. An answer that
 * the cache does not believe does the same. Hints may have times to live of
 * their own. The cache remembers some errors for minutes and some for 100 ms.
 * Such an entry passes a few of the list's last entries, so that some long
 * deadlines do not keep all others out of the list. An entry that belongs
 * further ahead goes to the tree, which is ordered by deadline and then by
 * address. List and tree are each in order. So the first entry of a class is
 * the earlier of their two heads, and no call costs more than a search of the
 * tree.
 *
 * The links of list and tree share their memory, and no flag says which is in
 * use. A removal searches the tree, and an entry that it does not find there is
 * in the list. An entry is in one class at most. Valid topics of the last
 * all-topics answer are in no class: they share one deadline.
 */
#pragma once

#include "base/avl.h"
#include "base/tailq.h"

#include <stdint.h>

enum {
        RDMETA_DEADLINES_NONE = 0,
        RDMETA_DEADLINES_VALID,
        RDMETA_DEADLINES_HINT,
        RDMETA_DEADLINES_NEGATIVE,
        RDMETA_DEADLINES_DENIED,
        RDMETA_DEADLINES_ABSENT,
        RDMETA_DEADLINES_RETAINED,
        RDMETA_DEADLINES_CLASSES
};

typedef struct rdmeta_deadlines_node {
        union {
                rdmeta_tailq_node_t node;
                rdmeta_avl_node_t avl;
        } link;
        int64_t deadline_us;
} rdmeta_deadlines_node_t;

typedef struct rdmeta_deadlines {
        struct {
                rdmeta_tailq_t list;
                rdmeta_avl_t tree;
        } classes[RDMETA_DEADLINES_CLASSES];
} rdmeta_deadlines_t;

void rdmeta_deadlines_init(rdmeta_deadlines_t *d);
/* Adds `n`, which is in no class, to `class`. Nodes with equal deadlines may
 * come in any order. */
void rdmeta_deadlines_add(rdmeta_deadlines_t *d, int class,
                          rdmeta_deadlines_node_t *n, int64_t deadline_us);
/* Removes `n` from `class`. Does nothing for RDMETA_DEADLINES_NONE. */
void rdmeta_deadlines_remove(rdmeta_deadlines_t *d, int class,
                             rdmeta_deadlines_node_t *n);
/* Returns the earliest node of `class`. NULL: it has none. */
rdmeta_deadlines_node_t *rdmeta_deadlines_first(const rdmeta_deadlines_t *d,
                                                int class);
/* Returns the earliest node of `class` if its deadline is before `now_us`,
 * otherwise NULL. */
rdmeta_deadlines_node_t *rdmeta_deadlines_due(const rdmeta_deadlines_t *d,
                                              int class, int64_t now_us);
/* Returns the earliest deadline of all classes. INT64_MAX: there is none. */
int64_t rdmeta_deadlines_next(const rdmeta_deadlines_t *d);
/* Returns the number of nodes in `class`. */
size_t rdmeta_deadlines_count(const rdmeta_deadlines_t *d, int class);
/* Returns 1 if every list and tree is well linked and in order. */
int rdmeta_deadlines_check(const rdmeta_deadlines_t *d);

/* A walk over a class in the order of deadlines. It ends when the class
 * changes. */
typedef struct rdmeta_deadlines_iter {
        const rdmeta_tailq_node_t *in_list; /* the list's next; NULL: none */
        const rdmeta_avl_node_t *in_tree;   /* the tree's next; NULL: none */
        rdmeta_avl_iter_t tree;
} rdmeta_deadlines_iter_t;

void rdmeta_deadlines_iter_init(rdmeta_deadlines_iter_t *it,
                                const rdmeta_deadlines_t *d, int class);
/* Returns the next node. NULL: there are no more. */
rdmeta_deadlines_node_t *rdmeta_deadlines_iter_next(
        rdmeta_deadlines_iter_t *it);

/* Returns now_us + ttl_us without overflow. The result is never one of the
 * extreme values that have another meaning as a deadline. */
static inline int64_t rdmeta_deadlines_after(int64_t now_us, int64_t ttl_us) {
        int64_t deadline;

        if (__builtin_add_overflow(now_us, ttl_us, &deadline))
                return ttl_us < 0 ? INT64_MIN + 2 : INT64_MAX - 1;
        if (deadline > INT64_MAX - 1)
                return INT64_MAX - 1;
        return deadline < INT64_MIN + 2 ? INT64_MIN + 2 : deadline;
}
