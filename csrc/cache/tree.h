/*
 * tree: the ordered index.
 *
 * The tree is not needed to answer a point lookup, so it is made when it is
 * first walked - sorted names, then a tree of them in one go - and from then
 * on kept. When many topics come at once it is forgotten again, since
 * inserting them one by one costs more than everything else together.
 *
 * The writers' lock is held for all of these.
 */
#ifndef RDMETA_CACHE_TREE_H
#define RDMETA_CACHE_TREE_H

#include "cache/state.h"

/* Begins without a tree. */
void rdmeta_tree_init(rdmeta_cache_t *c);
/* Forgets the tree if making it anew is cheaper than `n` insertions. */
void rdmeta_tree_expect(rdmeta_cache_t *c, size_t n);
/* Add or remove an entry, if there is a tree. */
void rdmeta_tree_add(rdmeta_cache_t *c, rdmeta_entry_t *e);
void rdmeta_tree_remove(rdmeta_cache_t *c, rdmeta_entry_t *e);
/* Makes the tree if there is none. NO_MEMORY. */
rdmeta_err_t rdmeta_tree_make(rdmeta_cache_t *c);

/* Returns the topic of a node. */
RDMETA_INLINE const rdmeta_topic_t *rdmeta_tree_topic(
        const rdmeta_avl_node_t *n) {
        return RDMETA_CONTAINER(n, const rdmeta_entry_t, avl)->topic;
}

#endif /* RDMETA_CACHE_TREE_H */
