/*
 * entry: the writer's half of a topic, and the tables that lead to it.
 *
 * The caller of these functions holds the writers' lock.
 */
#pragma once

#include "cache/state.h"

/* Returns the entry of a name; NULL: the cache has none. */
rdmeta_entry_t *rdmeta_entry_find(rdmeta_cache_t *c, const char *name,
                                  size_t len);
/* Returns an entry that has slot `order`, and is in no table, tree or list
 * yet. Takes `topic`. NULL: no memory. */
rdmeta_entry_t *rdmeta_entry_new(rdmeta_cache_t *c, rdmeta_topic_t *topic,
                                 uint32_t order);
/* Frees an entry that was not published, and its block. */
void rdmeta_entry_drop(rdmeta_cache_t *c, rdmeta_entry_t *e);
/* Makes room in the name table for n more; NO_MEMORY. */
rdmeta_err_t rdmeta_entry_reserve(rdmeta_cache_t *c, size_t n);
/* Puts an entry into the tables and the tree, so that readers find it. The
 * caller has reserved the room. `named`: the name table has it already. */
void rdmeta_entry_publish(rdmeta_cache_t *c, rdmeta_entry_t *e, int named);
/* Removes an entry from tables, tree and lists, and frees it. The caller
 * retires the block. */
void rdmeta_entry_erase(rdmeta_cache_t *c, rdmeta_entry_t *e);
/* Gives an entry another block, which readers find from now on. Cannot fail:
 * the caller has reserved room for its id. The caller retires the old block. */
void rdmeta_entry_swap(rdmeta_cache_t *c, rdmeta_entry_t *e,
                       rdmeta_topic_t *topic);
/* Moves an entry to list `list` (or to none: NONE), with that deadline. */
void rdmeta_entry_list(rdmeta_cache_t *c, rdmeta_entry_t *e, int list,
                       int64_t deadline_us);
/* Stores the deadline that readers see, and marks the order slot. */
void rdmeta_entry_deadline(rdmeta_cache_t *c, rdmeta_entry_t *e,
                           int64_t deadline);
/* Stores the provenance of a block: the broker that last confirmed it, and the
 * reason of that request. */
void rdmeta_entry_provenance(rdmeta_cache_t *c, rdmeta_entry_t *e,
                             rdmeta_provenance_t provenance);
/* Moves an entry that is not in flight to the list that its state and deadline
 * ask for. */
void rdmeta_entry_relist(rdmeta_cache_t *c, rdmeta_entry_t *e,
                         int64_t mono_us);
/* Returns 1 if the entry's hint is in time and was made after the request
 * left. Returns 0 if the request does not say when it left. */
int rdmeta_entry_keeps_hint(const rdmeta_cache_t *c, const rdmeta_entry_t *e,
                            const rdmeta_request_t *asked, int64_t mono_us);
/* Ends the hint of an entry. An entry that only waited is erased. */
void rdmeta_entry_unhint(rdmeta_cache_t *c, rdmeta_entry_t *e,
                         int64_t mono_us);
/* Retires a block that was just unlinked, and that the changelog does not
 * have. */
void rdmeta_entry_retire(rdmeta_cache_t *c, rdmeta_topic_t *t);
/* Frees what a write leaves, if no reader can have it. A writer calls it at
 * its end. */
void rdmeta_entry_collect(rdmeta_cache_t *c);
/* Begins another answer: gives it a number, and closes holes in the order array
 * if there are many. */
void rdmeta_entry_answer_begin(rdmeta_cache_t *c);

/* ---- tables ------------------------------------------------------------ */

/* Returns a table with another key, with all topics of `from` and room for n
 * more. `ids`: 1: it is hashed by id; 0: by name. NULL: no memory. */
rdmeta_table_t *rdmeta_entry_table_grown(rdmeta_cache_t *c,
                                         const rdmeta_table_t *from, size_t n,
                                         int ids);
/* Makes `t` the table that readers use, and retires the old one. */
void rdmeta_entry_table_publish(rdmeta_cache_t *c,
                                _Atomic(rdmeta_table_t *) *where,
                                rdmeta_table_t *t);
/* Makes room in the id table for n more; NO_MEMORY. */
rdmeta_err_t rdmeta_ids_reserve(rdmeta_cache_t *c, size_t n);
