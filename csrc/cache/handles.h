/*
 * handles: names that lead to their block without a search.
 *
 *     cache   handles ----> tree of handles, by name; only writers use it
 *                             |
 *     handle  topic ----------|--> block           the block that the name
 *             root, cache     |                    table finds, or NULL
 *             node <----------'
 *             references
 *             name
 *
 * A cache has one handle per resolved name. When a writer publishes, swaps or
 * erases a block, it looks for the handle of its name. It stores there the
 * block that readers find from now on. Without handles that costs one test.
 * With handles it costs one search per block that changes. So a refresh that
 * says the same again costs handles nothing.
 *
 * Memory order: the same as for a slot of the index. A writer stores `topic`
 * with release, after it has written the block and before it retires the old
 * one. A reader loads it with acquire after it has announced itself
 * (store/epoch.h). So the block that it finds lives until the reader leaves.
 *
 * References are counted without a lock, except for the first and the last.
 * Those two change the tree, so they are counted while the writers' lock is
 * held. So a search never finds a handle that is about to go.
 */
#pragma once

#include "cache/state.h"

struct rdmeta_handle {
        _Atomic(rdmeta_topic_t *) topic;
        const rdmeta_root_t *root;
        uint32_t len;
        _Atomic int32_t references;
        rdmeta_cache_t *cache;
        rdmeta_avl_node_t node;
        char name[];
};

/* The caller of these functions holds the writers' lock. */

/* Begins without a handle. */
void rdmeta_handles_init(rdmeta_handles_t *handles);
/* Stores `topic` in the handle of `named`'s name, if there is one; NULL: the
 * name is not cached any more. */
void rdmeta_handles_store(rdmeta_handles_t *handles,
                          const rdmeta_topic_t *named, rdmeta_topic_t *topic);

/* Calls rdmeta_handles_store() if there are handles. */
RDMETA_INLINE void rdmeta_handles_point(rdmeta_handles_t *handles,
                                        const rdmeta_topic_t *named,
                                        rdmeta_topic_t *topic) {
        if (RDMETA_UNLIKELY(handles->tree.count))
                rdmeta_handles_store(handles, named, topic);
}

/* Returns NULL if each handle leads to the block that the index finds, or else
 * what is wrong. */
const char *rdmeta_handles_check(rdmeta_cache_t *c);
