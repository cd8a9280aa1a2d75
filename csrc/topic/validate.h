/* Whether a block that another process wrote can be one. */
#ifndef RDMETA_TOPIC_VALIDATE_H
#define RDMETA_TOPIC_VALIDATE_H

#include "topic/topic.h"

/* Of a block that came from elsewhere, and should lie between `begin` and
 * `end`, as its first line does: 0, and whatever reads blocks may read it; or
 * MALFORMED.
 * One that waits is malformed, too: it has no meaning elsewhere. It does with
 * less memory, and in more time, where the allocator says no. */
rdmeta_err_t rdmeta_topic_check(const rdmeta_allocator_t *allocator,
                                const rdmeta_topic_t *t, const char *begin,
                                const char *end);
/* Its cold part; NULL: not between them. */
const rdmeta_cold_t *rdmeta_topic_cold_within(const rdmeta_topic_t *t,
                                              const char *begin,
                                              const char *end);

#endif /* RDMETA_TOPIC_VALIDATE_H */
