/*
 * expiry: deadlines in true order, at a constant price.
 *
 *     VALID     [t+1 s]-[t+9 s]-[t+900 s]
 *     HINT      [t+60 s]
 *     NEGATIVE  [t+0.1 s]-[t+0.1 s]
 *     ...
 *     OWN       a tree: [t+99 s] < [t+100 s] < ...
 *
 * Times to live come in a few classes, so a list a class, filled at its end, is
 * in order by construction, and what is due is at the heads: one list for all
 * (librdkafka's) lets a 900 s entry hide a 100 ms one for minutes. Hints that
 * were given a time of their own are in no such order; they are in a tree, by
 * time and then by address, whose links take the place of the list's. An entry
 * is in one of these at most. Valid topics of the last all-topics answer are in
 * none: they share one deadline.
 */
#ifndef RDMETA_EXPIRY_H
#define RDMETA_EXPIRY_H

#include "avl.h"
#include "tailq.h"

#include <stdint.h>

enum {
        RDMETA_EXPIRY_NONE = 0,
        RDMETA_EXPIRY_VALID,
        RDMETA_EXPIRY_HINT,
        RDMETA_EXPIRY_NEGATIVE,
        RDMETA_EXPIRY_DENIED,
        RDMETA_EXPIRY_ABSENT,
        RDMETA_EXPIRY_RETAINED,
        RDMETA_EXPIRY_OWN, /* hints, in the tree */
        RDMETA_EXPIRY_CLASSES
};

typedef struct rdmeta_expiry_node {
        union {
                rdmeta_tailq_node_t node;
                rdmeta_avl_node_t avl;
        } link;
        int64_t due_us;
} rdmeta_expiry_node_t;

typedef struct rdmeta_expiry {
        rdmeta_tailq_t lists[RDMETA_EXPIRY_OWN];
        rdmeta_avl_t own;
} rdmeta_expiry_t;

void rdmeta_expiry_init(rdmeta_expiry_t *e);
/* `n` is in no list. */
void rdmeta_expiry_add(rdmeta_expiry_t *e, int list, rdmeta_expiry_node_t *n,
                       int64_t due_us);
/* NONE: nothing happens. */
void rdmeta_expiry_remove(rdmeta_expiry_t *e, int list,
                          rdmeta_expiry_node_t *n);
/* The earliest of `list`; NULL: none. */
rdmeta_expiry_node_t *rdmeta_expiry_first(const rdmeta_expiry_t *e, int list);
/* The first of `list` if it is due before `now_us`; NULL: nothing is. */
rdmeta_expiry_node_t *rdmeta_expiry_due(const rdmeta_expiry_t *e, int list,
                                        int64_t now_us);
/* The earliest of all lists; INT64_MAX: none. */
int64_t rdmeta_expiry_next(const rdmeta_expiry_t *e);
size_t rdmeta_expiry_count(const rdmeta_expiry_t *e, int list);
/* 1: every list is linked well and in order. */
int rdmeta_expiry_check(const rdmeta_expiry_t *e);

static inline int rdmeta_expiry_is_hint(int list) {
        return list == RDMETA_EXPIRY_HINT || list == RDMETA_EXPIRY_OWN;
}

/* now + ttl, without overflow, and never a value that means something else. */
static inline int64_t rdmeta_expiry_after(int64_t now_us, int64_t ttl_us) {
        int64_t due;

        if (__builtin_add_overflow(now_us, ttl_us, &due))
                return ttl_us < 0 ? INT64_MIN + 2 : INT64_MAX - 1;
        if (due > INT64_MAX - 1)
                return INT64_MAX - 1;
        return due < INT64_MIN + 2 ? INT64_MIN + 2 : due;
}

#endif /* RDMETA_EXPIRY_H */
