/* The block of a stage. */
#ifndef RDMETA_TOPIC_BUILDER_WRITE_H
#define RDMETA_TOPIC_BUILDER_WRITE_H

#include "topic/builder.h"

/* The block. NULL: no memory. */
rdmeta_topic_t *rdmeta_builder_build(rdmeta_builder_t *s, rdmeta_memory_t *blocks,
                                   uint64_t version);

#endif /* RDMETA_TOPIC_BUILDER_WRITE_H */
