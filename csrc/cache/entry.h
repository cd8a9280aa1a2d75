/*
 * entry: the writer's half of a topic, and the tables that lead to it.
 *
 * The writers' lock is held for all of these.
 */
#ifndef RDMETA_CACHE_ENTRY_H
#define RDMETA_CACHE_ENTRY_H

#include "cache/state.h"

rdmeta_entry_t *rdmeta_entry_find(rdmeta_cache_t *c, const char *name,
                                  size_t len);
/* In no table, tree or list yet, but in slot `order`; takes `topic`. NULL: no
 * memory. */
rdmeta_entry_t *rdmeta_entry_new(rdmeta_cache_t *c, rdmeta_topic_t *topic,
                                 uint32_t order);
/* Undo of new: frees both. */
void rdmeta_entry_drop(rdmeta_cache_t *c, rdmeta_entry_t *e);
/* Make room in the name table for n more; NO_MEMORY. */
rdmeta_err_t rdmeta_entry_reserve(rdmeta_cache_t *c, size_t n);
/* Let readers find it, and the tree. Room was reserved; `named`: the name
 * table has it already. */
void rdmeta_entry_publish(rdmeta_cache_t *c, rdmeta_entry_t *e, int named);
/* Take it away from all; the block is the caller's to retire. */
void rdmeta_entry_erase(rdmeta_cache_t *c, rdmeta_entry_t *e);
/* Another block for the same name, as seen by readers. Cannot fail: room for
 * its id was reserved. The old block is the caller's to retire. */
void rdmeta_entry_swap(rdmeta_cache_t *c, rdmeta_entry_t *e,
                       rdmeta_topic_t *topic);
/* Put it into list `list` (or NONE) with that deadline. */
void rdmeta_entry_list(rdmeta_cache_t *c, rdmeta_entry_t *e, int list,
                       int64_t due_us);
/* Store the deadline that readers see; marks the order slot. */
void rdmeta_entry_deadline(rdmeta_cache_t *c, rdmeta_entry_t *e,
                           int64_t deadline);
/* Who said last what its block says, and why he was asked. */
void rdmeta_entry_provenance(rdmeta_cache_t *c, rdmeta_entry_t *e,
                       rdmeta_provenance_t provenance);
/* Where its state and deadline say it belongs, once no hint holds it. */
void rdmeta_entry_settle(rdmeta_cache_t *c, rdmeta_entry_t *e,
                         int64_t mono_us);
/* Returns 1 if the hint on it is in time and was made after the request left;
 * 0 where the request does not say when it left. */
int rdmeta_entry_keeps_hint(const rdmeta_cache_t *c, const rdmeta_entry_t *e,
                            const rdmeta_request_t *asked, int64_t mono_us);
/* The hint on it ends; frees what was only waiting. */
void rdmeta_entry_unhint(rdmeta_cache_t *c, rdmeta_entry_t *e,
                         int64_t mono_us);
/* It has just been unlinked, and nobody else has it. */
void rdmeta_retire(rdmeta_cache_t *c, rdmeta_topic_t *t);
/* At the end of a write: what it leaves is freed, if it can be. */
void rdmeta_collect(rdmeta_cache_t *c);
/* Returns a copy, rows included, for rdmeta_rewind_set() or
 * rdmeta_rewind_free(). NULL: no memory. */
rdmeta_kept_rewind_t *rdmeta_rewind_copy(rdmeta_cache_t *c,
                                         const rdmeta_rewind_t *rewind);
void rdmeta_rewind_free(rdmeta_cache_t *c, rdmeta_kept_rewind_t *kept);
/* Makes room for n more; NO_MEMORY. */
rdmeta_err_t rdmeta_rewinds_reserve(rdmeta_cache_t *c, size_t n);
/* Takes `kept` as what is remembered of `e`, and frees what was; NULL: nothing
 * is from now on. Cannot fail: room was reserved. */
void rdmeta_rewind_set(rdmeta_cache_t *c, rdmeta_entry_t *e,
                       rdmeta_kept_rewind_t *kept);
/* Frees all of them, and the room for them. */
void rdmeta_rewinds_destroy(rdmeta_cache_t *c);

RDMETA_INLINE const rdmeta_rewind_t *
rdmeta_rewind_of(const rdmeta_cache_t *c, const rdmeta_entry_t *e) {
        return e->rewind ? &c->rewinds.all[e->rewind - 1]->rewind : NULL;
}
/* Another answer begins: its number, and slots without many holes. */
void rdmeta_answer_order_begin(rdmeta_cache_t *c);

/* ---- tables ------------------------------------------------------------ */

/* All entries of `from`, and room for n more, in a table with another key;
 * NULL: no memory. Which hash: by `ids`. */
rdmeta_table_t *rdmeta_table_grown(rdmeta_cache_t *c,
                                   const rdmeta_table_t *from, size_t n,
                                   int ids);
void rdmeta_table_publish(rdmeta_cache_t *c, _Atomic(rdmeta_table_t *) *where,
                          rdmeta_table_t *t);
rdmeta_err_t rdmeta_ids_reserve(rdmeta_cache_t *c, size_t n);

#endif /* RDMETA_CACHE_ENTRY_H */
