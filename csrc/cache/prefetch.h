/*
 * prefetch: topics of an answer in another order than the last one's.
 *
 * A topic that is not at the cursor of the order array is found through a chain
 * of loads. All of them miss the CPU's cache: table, hot part, cold part, slot
 * of the order array. One after the other they cost a third of a microsecond
 * per topic and more. So this unit reads only the names of the next topics and
 * skips the rest. It starts each load some topics before apply needs it:
 *
 *     applied ... slot .... cold .... block ... table    peeked
 *     now         +4        +8        +12       +16      put
 *
 * Everything here is a guess. It compares nothing and keeps nothing. Malformed
 * bytes end it, and apply finds them again when it reads them.
 */
#pragma once

#include "cache/state.h"
#include "wire/response.h"

#define RDMETA_PREFETCH_STEP 4
#define RDMETA_PREFETCH (8 * RDMETA_PREFETCH_STEP) /* a power of two */

typedef struct rdmeta_prefetch {
        const rdmeta_cache_t *c;
        rdmeta_buf_t buf; /* the topics that were not peeked at */
        uint32_t fields;
        uint32_t rest; /* the number of topics in buf */
        uint32_t put;  /* the number of topics that were peeked at */
        uint64_t hash[RDMETA_PREFETCH]; /* 0: none */
        const rdmeta_topic_t *topic[RDMETA_PREFETCH];
} rdmeta_prefetch_t;

/* Begins with the `rest` topics in `buf`. The caller holds the writers' lock
 * until the last step. */
void rdmeta_prefetch_start(rdmeta_prefetch_t *h, const rdmeta_cache_t *c,
                           const rdmeta_buf_t *buf, uint32_t fields,
                           uint32_t rest);
/* Moves on by one topic. Apply calls it once per topic. */
void rdmeta_prefetch_step(rdmeta_prefetch_t *h);
