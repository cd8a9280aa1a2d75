/*
 * cache_script: tests of a cache's policy as lines of a table.
 *
 *     TEST_SCRIPT(test_a_lower_epoch_is_kept,
 *                 "say t#a 0:1@5 | by 1,2 | 4x kept t#a 0:2@3 & wait 2 |"
 *                 " taken t#a 0:2@3 | leader 0 2")
 *
 * Steps follow each other. `4x` repeats the actions of a step:
 *
 *     say A        applies an answer (cache_fixture.h); all A: about all topics
 *     kept A       the same, and one topic is kept back; taken A: none is
 *     A / B / C    in a step that is repeated: one after the other, in turn
 *     insist A     kept four times, then taken: by two brokers, over 5 s
 *     by 1,2       the brokers that answer from now on, in turn
 *     brokers B    the brokers of the answers; candidates N
 *     sent [V]     answers are to a request of now [or of that version]
 *     hint P L E   a leader hint of KIP-951 that is taken
 *     wait S       lets so many seconds pass; at US: sets the clock
 *     changed N    so many topics were changed by the last answer
 *     is TOPIC     the topic "t" as readers see it
 *     leader P L   the leader of a partition of "t"; last P L: if it may be
 *                  stale; stale P: it is stale
 */
#pragma once

#include "support/cache_fixture.h"

/* Runs a script in a new cache. */
void cw_script(void (*conf)(rdmeta_conf_t *conf), const char *script, ...)
        __attribute__((format(printf, 2, 3)));

#define TEST_SCRIPT(name, ...)                                               \
        TEST(name) {                                                         \
                cw_script(NULL, __VA_ARGS__);                                \
        }
