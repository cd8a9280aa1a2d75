/*
 * due: which topics need another answer, and why.
 *
 * Each write leaves the reasons of the topics that it touches in their notes
 * (notes.h). Merge finds most of them when it reads an answer. A topic with a
 * reason has no digest, so that each answer about it is read. So a topic that
 * an answer skips, because its bytes are the last ones, has no reason.
 *
 *     reason       follows from              ends
 *     NO_LEADER    the block                 with another block
 *     UNREACHABLE  the block, the brokers    with another block, other brokers
 *     ABSENT       the state, its deadline   with the state, at the deadline
 *     DENIED       the state, its deadline   with the state
 *     KEPT_BACK    the last answer           with a later answer; removal
 *     ASK_BY_NAME  the last answer           with a later answer; removal
 *
 * When a broker goes, topics that no answer touches may lose their leader.
 * Writers only note that, and the next call of due() looks at every topic. If
 * brokers only come, it looks at the topics that have UNREACHABLE. After a load
 * the next call of due() looks at every topic, too.
 */
#pragma once

#include "cache/state.h"

/* Returns why a topic is due at `mono_us`, out of the reasons in its note. The
 * caller has the lock, and due() has looked at the topics. */
uint32_t rdmeta_due_at(const rdmeta_cache_t *c, const rdmeta_entry_t *e,
                       int64_t mono_us);

/* Returns NULL if the notes of an entry say what its block says, or else what
 * is wrong. */
const char *rdmeta_due_check(const rdmeta_cache_t *c, const rdmeta_entry_t *e);
