/*
 * compact: chunks that are mostly free are emptied, and go.
 *
 * When lists hold too much that nobody asks for, the slab says which chunks
 * shall leave (base/slab.h). What lives there is copied to other pieces, some
 * of it at the end of each write, and each original is retired as any block
 * that has been replaced: readers and images that have it keep it, and when it
 * goes, so does its part of the chunk. A copy is the same in all but its place,
 * version, deadline and source included, so nobody is told.
 *
 *     cursor   order  [ ][ ][ ]|[ ][ ]    each topic's block, if it leaves
 *     ring     (old,new)(old,new) ...     then what the ring points to, at once
 *     rest     readers, images            then the chunks go; or another plan
 *
 * A block that the ring has as `new_` is left to the pass over the ring, which
 * puts the copy there, too: none other has a version above the ring's floor. In
 * that pass an original's link says, until it is retired, where its copy is.
 * What the ring has let go since the cursor left it to the ring is nobody's to
 * move: then the cursor goes once more, and leaves nothing to the ring.
 *
 * Where there is no memory it ends for now, and goes on later. Where entries
 * were given other slots of the order array meanwhile, which its generation
 * tells, the cursor begins anew.
 */
#ifndef RDMETA_CACHE_COMPACT_H
#define RDMETA_CACHE_COMPACT_H

#include "cache/state.h"

/* At the end of a write, with rdmeta_collect() after it: look at so many
 * topics, and move so many, that others' memory goes. Cannot fail. */
void rdmeta_compact(rdmeta_cache_t *c, size_t looks, size_t moves);

#endif /* RDMETA_CACHE_COMPACT_H */
