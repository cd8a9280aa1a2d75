/*
 * deadlines: deadlines in true order, whatever order they come in.
 *
 *     class      list: what came in order           tree: what did not
 *     VALID      [t+1 s]-[t+9 s]-[t+900 s]          [t+2 s]
 *     HINT       [t+60 s]-[t+61 s]
 *     NEGATIVE   [t+900 s]-[t+900 s]-...            [t+0.1 s] < [t+0.1 s]
 *     ...
 *
 * One list for all (librdkafka's) lets a 900 s entry hide a 100 ms one for
 * minutes, so there are classes: a few times to live, mostly one a class. What
 * comes in order then goes to the end of its list, at a constant price.
 *
 * Not all does. A hint that ends gives its topic back the deadline it had, in
 * front of whatever was said since, and so does an answer that is not believed;
 * hints may have times of their own; some errors are remembered for minutes and
 * some for 100 ms. Of a list's last entries a few are passed, lest some long
 * ones keep all others out; what belongs further ahead goes to the tree, by
 * time and then by address. Each is in order, so the earlier of two heads is
 * the first of the class, and nothing costs more than a search of the tree.
 *
 * The tree's links take the place of the list's, and nothing says which they
 * are: the tree is searched, and what is not there is in the list. An entry is
 * in one class at most. Valid topics of the last all-topics answer are in none:
 * they share one deadline.
 */
#ifndef RDMETA_STORE_DEADLINES_H
#define RDMETA_STORE_DEADLINES_H

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
        int64_t due_us;
} rdmeta_deadlines_node_t;

typedef struct rdmeta_deadlines {
        struct {
                rdmeta_tailq_t list;
                rdmeta_avl_t tree;
        } classes[RDMETA_DEADLINES_CLASSES];
} rdmeta_deadlines_t;

void rdmeta_deadlines_init(rdmeta_deadlines_t *e);
/* `n` is in no class. Of those due at once, any may come first. */
void rdmeta_deadlines_add(rdmeta_deadlines_t *e, int class, rdmeta_deadlines_node_t *n,
                       int64_t due_us);
/* NONE: nothing happens. */
void rdmeta_deadlines_remove(rdmeta_deadlines_t *e, int class,
                          rdmeta_deadlines_node_t *n);
/* The earliest of `class`; NULL: none. */
rdmeta_deadlines_node_t *rdmeta_deadlines_first(const rdmeta_deadlines_t *e, int class);
/* The first of `class` if it is due before `now_us`; NULL: nothing is. */
rdmeta_deadlines_node_t *rdmeta_deadlines_due(const rdmeta_deadlines_t *e, int class,
                                        int64_t now_us);
/* The earliest of all classes; INT64_MAX: none. */
int64_t rdmeta_deadlines_next(const rdmeta_deadlines_t *e);
size_t rdmeta_deadlines_count(const rdmeta_deadlines_t *e, int class);
/* 1: every list and tree is linked well and in order. */
int rdmeta_deadlines_check(const rdmeta_deadlines_t *e);

/* Walks a class in order of time; over as soon as the class is changed. */
typedef struct rdmeta_deadlines_iter {
        const rdmeta_tailq_node_t *in_list; /* the next of each; NULL: none */
        const rdmeta_avl_node_t *in_tree;
        rdmeta_avl_iter_t tree;
} rdmeta_deadlines_iter_t;

void rdmeta_deadlines_iter_init(rdmeta_deadlines_iter_t *it,
                             const rdmeta_deadlines_t *e, int class);
/* NULL: no more. */
rdmeta_deadlines_node_t *rdmeta_deadlines_iter_next(rdmeta_deadlines_iter_t *it);

/* now + ttl, without overflow, and never a value that means something else. */
static inline int64_t rdmeta_deadlines_after(int64_t now_us, int64_t ttl_us) {
        int64_t due;

        if (__builtin_add_overflow(now_us, ttl_us, &due))
                return ttl_us < 0 ? INT64_MIN + 2 : INT64_MAX - 1;
        if (due > INT64_MAX - 1)
                return INT64_MAX - 1;
        return due < INT64_MIN + 2 ? INT64_MIN + 2 : due;
}

#endif /* RDMETA_STORE_DEADLINES_H */
