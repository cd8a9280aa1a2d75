/* builder_write: writes the block of a builder. */
#pragma once

#include "topic/builder.h"

/* Returns a new block of the builder's columns; NULL: no memory. The caller
 * frees it with rdmeta_topic_destroy(). */
rdmeta_topic_t *rdmeta_builder_build(rdmeta_builder_t *s,
                                     rdmeta_memory_t *blocks,
                                     uint64_t version);
