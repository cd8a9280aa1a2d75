/*
 * avl: an intrusive, ordered set. No allocation, no lock.
 *
 *     tree                       node: 16 bytes, inside an entry
 *     +-----------+              +---------------------------+-+
 *     | root      |------------->| child[0]: pointer to less |t|
 *     | count     |              | child[1]: pointer to more |t|
 *     | cmp_node  |              +---------------------------+-+
 *     | cmp_key   |               t, bit 0: that subtree is the taller one
 *     | opaque    |
 *     +-----------+
 *
 * An AVL tree keeps the heights of any two siblings within one of each other.
 * So a node need not know its height: "left is taller", "right is taller" or
 * "equal" is enough. Those two bits are the lowest of its two child pointers,
 * which alignment keeps zero otherwise; at most one of them is set. A child is
 * a uintptr_t, so that code cannot follow it by accident with its bit set.
 *
 * There is no pointer to a parent: 8 bytes per entry would buy little. A
 * function that changes the tree comes down from the root and keeps the path
 * on its stack. That path has a bound. A tree of n nodes has at most
 * 1.45 log2(n) levels. An address space of 48 bits holds at most 2^44 nodes of
 * 16 bytes. So 64 levels are enough, and no code checks for more.
 *
 * One function compares nodes with nodes, another one keys with nodes, so that
 * finding a name needs no made-up entry. The order of two nodes must not change
 * while they are in the tree.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define RDMETA_AVL_LEVELS 64

typedef struct rdmeta_avl_node {
        uintptr_t child[2];
} rdmeta_avl_node_t;

/* Return < 0, 0 or > 0, as memcmp() does. */
typedef int (*rdmeta_avl_cmp_node_t)(const rdmeta_avl_node_t *a,
                                     const rdmeta_avl_node_t *b,
                                     void *opaque);
typedef int (*rdmeta_avl_cmp_key_t)(const void *key,
                                    const rdmeta_avl_node_t *node,
                                    void *opaque);

typedef struct rdmeta_avl {
        uintptr_t root;
        size_t count;
        rdmeta_avl_cmp_node_t cmp_node;
        rdmeta_avl_cmp_key_t cmp_key;
        void *opaque;
} rdmeta_avl_t;

void rdmeta_avl_init(rdmeta_avl_t *t, rdmeta_avl_cmp_node_t cmp_node,
                     rdmeta_avl_cmp_key_t cmp_key, void *opaque);

/* Inserts `node` and returns NULL. Returns the equal node that the tree already
 * has, if there is one, and changes nothing then. */
rdmeta_avl_node_t *rdmeta_avl_insert(rdmeta_avl_t *t, rdmeta_avl_node_t *node);

/* Removes `node` and returns 1; returns 0 if it is not in the tree. */
int rdmeta_avl_remove(rdmeta_avl_t *t, rdmeta_avl_node_t *node);

/* Makes the tree of `n` nodes, which are in ascending order, no two equal. The
 * tree's former nodes are dropped. It takes O(n) and compares nothing. */
void rdmeta_avl_build(rdmeta_avl_t *t, rdmeta_avl_node_t *const *nodes,
                      size_t n);

/* Return the node that is equal to `key`, or the first one; NULL: none. */
rdmeta_avl_node_t *rdmeta_avl_find(const rdmeta_avl_t *t, const void *key);
rdmeta_avl_node_t *rdmeta_avl_first(const rdmeta_avl_t *t);

/* A walk in order, without comparisons, O(1) per step on average. It is invalid
 * once the tree has changed. `path` keeps the ancestors that are still to come,
 * the nearest one last. */
typedef struct rdmeta_avl_iter {
        const rdmeta_avl_node_t *path[RDMETA_AVL_LEVELS];
        unsigned depth;
} rdmeta_avl_iter_t;

/* Sets `it` before the first node that is not less than `key`; with NULL,
 * before the first of all. */
void rdmeta_avl_iter_init(rdmeta_avl_iter_t *it, const rdmeta_avl_t *t,
                          const void *key);
/* Returns the next node; NULL: no more. */
rdmeta_avl_node_t *rdmeta_avl_iter_next(rdmeta_avl_iter_t *it);

/* Returns 1 if order, heights, bits and count are correct, else 0. */
int rdmeta_avl_check(const rdmeta_avl_t *t);
