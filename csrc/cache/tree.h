/*
 * tree: the ordered index.
 *
 * A point lookup does not need the tree. So the first walk makes it: it sorts
 * the names and builds the tree from them in one go. Writers keep it up to
 * date from then on. When many topics come at once they drop it, because
 * inserting them one by one costs more than everything else together.
 *
 * The caller of these functions holds the writers' lock.
 */
#pragma once

#include "cache/state.h"

/* Begins without a tree. */
void rdmeta_tree_init(rdmeta_cache_t *c);
/* Drops the tree if making it anew is cheaper than `n` insertions. */
void rdmeta_tree_expect(rdmeta_cache_t *c, size_t n);
/* Adds an entry, if there is a tree. */
void rdmeta_tree_add(rdmeta_cache_t *c, rdmeta_entry_t *e);
/* Removes an entry, if there is a tree. */
void rdmeta_tree_remove(rdmeta_cache_t *c, rdmeta_entry_t *e);
/* Makes the tree if there is none. NO_MEMORY. */
rdmeta_err_t rdmeta_tree_make(rdmeta_cache_t *c);

/* Returns the topic of a node. */
RDMETA_INLINE const rdmeta_topic_t *rdmeta_tree_topic(
        const rdmeta_avl_node_t *n) {
        return RDMETA_CONTAINER(n, const rdmeta_entry_t, avl)->topic;
}
