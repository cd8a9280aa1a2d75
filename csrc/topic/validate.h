/* validate: checks a block that another process wrote. */
#pragma once

#include "topic/topic.h"

/* Checks a block from another process. Its first line lies between `begin` and
 * `end`; the rest should, too. Returns 0 if all functions that read blocks may
 * read it, else MALFORMED. A block in flight is malformed, too: it has no
 * meaning in another process. Without memory from the allocator the check still
 * works, but takes more time. */
rdmeta_err_t rdmeta_topic_check(const rdmeta_allocator_t *allocator,
                                const rdmeta_topic_t *t, const char *begin,
                                const char *end);
/* Returns the block's cold part; NULL: it is not between them. */
const rdmeta_cold_t *rdmeta_topic_cold_within(const rdmeta_topic_t *t,
                                              const char *begin,
                                              const char *end);
