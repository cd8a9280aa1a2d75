/*
 * tailq: an intrusive, doubly linked list. No allocation, no lock.
 *
 *     list                  A              B              C
 *     +-------+          +------+       +------+       +------+
 *     | first |--------->| next |------>| next |------>| next |--> NULL
 *     | last  |--+ NULL<-| prev |<------| prev |<------| prev |
 *     | count |  |       +------+       +------+       +------+
 *     +-------+  +----------------------------------------^
 *
 * A node lies inside the object that is listed; RDMETA_CONTAINER() finds the
 * object by its node. An object can be in as many lists as it has nodes. A node
 * that is in no list has undefined contents: its owner knows whether it is
 * listed.
 */
#pragma once

#include <stddef.h>

/* Returns the `type` whose `member` is at `ptr`; ptr is not NULL. */
#define RDMETA_CONTAINER(ptr, type, member)                                   \
        ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

typedef struct rdmeta_tailq_node {
        struct rdmeta_tailq_node *next, *prev;
} rdmeta_tailq_node_t;

typedef struct rdmeta_tailq {
        rdmeta_tailq_node_t *first, *last;
        size_t count;
} rdmeta_tailq_t;

static inline void rdmeta_tailq_init(rdmeta_tailq_t *q) {
        q->first = q->last = NULL;
        q->count           = 0;
}

/* Return the list's first or last node, or a node's neighbour; NULL: none. */
static inline rdmeta_tailq_node_t *rdmeta_tailq_first(const rdmeta_tailq_t *q) {
        return q->first;
}

static inline rdmeta_tailq_node_t *rdmeta_tailq_last(const rdmeta_tailq_t *q) {
        return q->last;
}

static inline rdmeta_tailq_node_t *
rdmeta_tailq_next(const rdmeta_tailq_node_t *n) {
        return n->next;
}

static inline rdmeta_tailq_node_t *
rdmeta_tailq_prev(const rdmeta_tailq_node_t *n) {
        return n->prev;
}

/* Puts `n` between two neighbours; NULL stands for either end of the list. */
static inline void rdmeta_tailq_link(rdmeta_tailq_t *q, rdmeta_tailq_node_t *n,
                                     rdmeta_tailq_node_t *prev,
                                     rdmeta_tailq_node_t *next) {
        n->prev = prev;
        n->next = next;
        if (prev)
                prev->next = n;
        else
                q->first = n;
        if (next)
                next->prev = n;
        else
                q->last = n;
        q->count++;
}

static inline void rdmeta_tailq_push_back(rdmeta_tailq_t *q,
                                          rdmeta_tailq_node_t *n) {
        rdmeta_tailq_link(q, n, q->last, NULL);
}

static inline void rdmeta_tailq_push_front(rdmeta_tailq_t *q,
                                           rdmeta_tailq_node_t *n) {
        rdmeta_tailq_link(q, n, NULL, q->first);
}

/* Puts `n` after `at`, which is in the list. */
static inline void rdmeta_tailq_insert_after(rdmeta_tailq_t *q,
                                             rdmeta_tailq_node_t *at,
                                             rdmeta_tailq_node_t *n) {
        rdmeta_tailq_link(q, n, at, at->next);
}

/* Removes `n`, which is in the list. */
static inline void rdmeta_tailq_remove(rdmeta_tailq_t *q,
                                       rdmeta_tailq_node_t *n) {
        if (n->prev)
                n->prev->next = n->next;
        else
                q->first = n->next;
        if (n->next)
                n->next->prev = n->prev;
        else
                q->last = n->prev;
        q->count--;
}

/* Removes and returns the first node; NULL: the list is empty. */
static inline rdmeta_tailq_node_t *rdmeta_tailq_pop_front(rdmeta_tailq_t *q) {
        rdmeta_tailq_node_t *n = q->first;

        if (n)
                rdmeta_tailq_remove(q, n);
        return n;
}

/* Returns 1 if both directions agree with each other and with the count. */
int rdmeta_tailq_check(const rdmeta_tailq_t *q);
