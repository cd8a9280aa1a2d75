/*
 * prefetch: topics of an answer in another order than the last one's.
 *
 * A topic that the cursor of the order array did not expect is found through
 * a chain of loads that all miss: table, block, what is cold of it, slot of the
 * order. One after the other that is a third of a microsecond and more a topic.
 * So the next topics are peeked at - only how long they are and what they are
 * called - and each load is started some topics before somebody waits for it:
 *
 *     applied ... slot .... cold .... block ... table    peeked
 *     now         +4        +8        +12       +16      put
 *
 * Everything here is a guess: nothing is compared, nothing is kept, bytes that
 * make no sense end the peeking and are found again by whoever reads them.
 */
#ifndef RDMETA_CACHE_PREFETCH_H
#define RDMETA_CACHE_PREFETCH_H

#include "cache/state.h"
#include "wire/response.h"

#define RDMETA_PREFETCH_STEP 4
#define RDMETA_PREFETCH (8 * RDMETA_PREFETCH_STEP) /* a power of two */

typedef struct rdmeta_prefetch {
        const rdmeta_cache_t *c;
        rdmeta_buf_t buf; /* what was not peeked at */
        uint32_t fields;
        uint32_t left; /* topics in it */
        uint32_t put;
        uint64_t hash[RDMETA_PREFETCH]; /* 0: none */
        const rdmeta_topic_t *topic[RDMETA_PREFETCH];
} rdmeta_prefetch_t;

/* `buf` stands before a topic with `left` of them to come. The lock is held
 * until the last step. */
void rdmeta_prefetch_start(rdmeta_prefetch_t *h, const rdmeta_cache_t *c,
                        const rdmeta_buf_t *buf, uint32_t fields,
                        uint32_t left);
/* One topic was applied. */
void rdmeta_prefetch_step(rdmeta_prefetch_t *h);

#endif /* RDMETA_CACHE_PREFETCH_H */
