/*
 * handles: names that lead to their block without a search.
 *
 *     cache   handles ----> tree of handles, by name; the writer's
 *                             |
 *     handle  topic ----------|--> block           what the names table finds
 *             root, cache     |                    for that name, or NULL
 *             node <----------'
 *             references
 *             name
 *
 * A handle is the cache's: one for each name that somebody resolved. Whoever
 * publishes, swaps or erases a block looks for the handle of its name and
 * stores there what readers shall find from now on. Where there are no handles
 * that is one test; a block is looked for only when it changes, so a refresh
 * that says the same again costs handles nothing.
 *
 * Memory order: as a slot of the index. `topic` is stored with release after
 * its block is written and before the old block is retired, and loaded with
 * acquire by a reader that has announced itself (store/epoch.h): so a block
 * that is found here lives until the reader leaves.
 *
 * References are counted without a lock, but for the first and the last: those
 * change the tree, so they are counted while the writers' lock is held, and a
 * handle is never found that is about to go.
 */
#ifndef RDMETA_CACHE_HANDLES_H
#define RDMETA_CACHE_HANDLES_H

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

/* The writers' lock is held for these. */
void rdmeta_handles_init(rdmeta_handles_t *handles);
/* The handle of `named`'s name, if there is one, leads to `topic` now; NULL:
 * to nothing. */
void rdmeta_handles_store(rdmeta_handles_t *handles,
                          const rdmeta_topic_t *named, rdmeta_topic_t *topic);

RDMETA_INLINE void rdmeta_handles_point(rdmeta_handles_t *handles,
                                        const rdmeta_topic_t *named,
                                        rdmeta_topic_t *topic) {
        if (RDMETA_UNLIKELY(handles->tree.count))
                rdmeta_handles_store(handles, named, topic);
}

/* NULL: each leads where the index does; otherwise what is wrong. */
const char *rdmeta_handles_check(rdmeta_cache_t *c);

#endif /* RDMETA_CACHE_HANDLES_H */
