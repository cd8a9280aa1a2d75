/*
 * compact: empties chunks that are mostly free, and gives them back.
 *
 * When too much memory lies unused in the slabs' free lists, a slab names the
 * chunks that are to leave (base/slab.h). The end of each write copies some of
 * the blocks there to other chunks, and retires each original as it does any
 * replaced block. Readers and images that have the original keep it. When the
 * last original is freed, its chunk goes. A copy differs from its original in
 * its address alone: version, deadline and provenance are the same. So a copy
 * raises no version and wakes no waiter.
 *
 *     cursor     order  [ ][ ][ ]|[ ][ ]  some topics' blocks at each write
 *     changelog  (old,new)(old,new) ...   then all blocks of the changelog
 *     at rest    readers, images          then chunks go; or another plan
 *
 * The cursor skips a block that the changelog has as `new_`: the pass over the
 * changelog moves it and stores the copy's address there, too. Every block
 * whose version is above the changelog's floor is one of these. In that pass
 * the link of an original holds the address of its copy until the original is
 * retired. The changelog may drop a block after the cursor has skipped it, and
 * before the pass. Then the cursor begins anew and moves the block itself.
 *
 * Without memory for a copy, moving stops and goes on at a later write. The
 * cursor is a place in the order array. When entries got other slots there,
 * the array's generation has changed, and the cursor begins anew.
 */
#pragma once

#include "cache/state.h"

/* Looks at up to `looks` topics and moves up to `moves` of them. The writer
 * calls it at the end of a write, and rdmeta_entry_collect() after it. The lock
 * is held. Cannot fail. */
void rdmeta_compact(rdmeta_cache_t *c, size_t looks, size_t moves);
