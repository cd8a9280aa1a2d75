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
 * An AVL tree keeps the heights of any two siblings within one of each other,
 * so a node need not know its height: "left is taller", "right is taller" or
 * "equal" is enough. Those two bits are the lowest of its two child pointers,
 * which alignment keeps zero otherwise; never are both set. A child is hence a
 * uintptr_t, so that nobody follows one by accident with its bit still on.
 *
 * There is no pointer to a parent: 8 bytes an entry buy little, as whoever
 * changes the tree has come down from the root and kept the way on the stack.
 * That way has a bound. n nodes are at most 1.45 log2(n) high, and 16 bytes
 * each do not fit more than 2^44 times into 48 bits of address space, hence
 * 64 levels and no check for more.
 *
 * Nodes are compared with nodes by one function and with keys by another, so
 * that finding a name needs no entry made up for it. The order must not change
 * while they are in the tree.
 */
#ifndef RDMETA_BASE_AVL_H
#define RDMETA_BASE_AVL_H

#include <stddef.h>
#include <stdint.h>

#define RDMETA_AVL_LEVELS 64

typedef struct rdmeta_avl_node {
        uintptr_t child[2];
} rdmeta_avl_node_t;

/* < 0, 0, > 0, as memcmp(). */
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

/* NULL: `node` is in the tree now. Otherwise the one that is equal to it and
 * was there before; then nothing has changed. */
rdmeta_avl_node_t *rdmeta_avl_insert(rdmeta_avl_t *t, rdmeta_avl_node_t *node);

/* `node` must be in the tree: 1; or nothing happens: 0. */
int rdmeta_avl_remove(rdmeta_avl_t *t, rdmeta_avl_node_t *node);

/* Make the tree of `n` nodes in ascending order, none equal; what was in the
 * tree before is forgotten. O(n), compares nothing. */
void rdmeta_avl_build(rdmeta_avl_t *t, rdmeta_avl_node_t *const *nodes,
                      size_t n);

/* NULL from here on: there is none. */
rdmeta_avl_node_t *rdmeta_avl_find(const rdmeta_avl_t *t, const void *key);
rdmeta_avl_node_t *rdmeta_avl_first(const rdmeta_avl_t *t);

/* Walks without comparing, O(1) a step on average; over as soon as the tree is
 * changed. Keeps the nodes that are still to come, nearest last. */
typedef struct rdmeta_avl_iter {
        const rdmeta_avl_node_t *path[RDMETA_AVL_LEVELS];
        unsigned depth;
} rdmeta_avl_iter_t;

/* Stand before the first that is not less than `key`; NULL: before all. */
void rdmeta_avl_iter_init(rdmeta_avl_iter_t *it, const rdmeta_avl_t *t,
                          const void *key);
/* NULL: no more. */
rdmeta_avl_node_t *rdmeta_avl_iter_next(rdmeta_avl_iter_t *it);

/* 1: order, heights, bits and count are all as they should be. */
int rdmeta_avl_check(const rdmeta_avl_t *t);

#endif /* RDMETA_BASE_AVL_H */
