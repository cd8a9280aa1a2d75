/*
 * notes: what the writer remembers of the few topics that need it.
 *
 *     entry  note ---> all  [entry, rewind, due] [entry, rewind, due] ...
 *                              |       |     '- why the topic is due (due.h)
 *                              |       '- counts its older answers (merge.h)
 *                              '- back to the entry
 *
 * Most topics are healthy and have no note: an entry has room only for the
 * place of a note. The notes have no gaps: the last one moves to the place of
 * one that goes. So a walk over all notes costs what is due, and not what is
 * cached.
 *
 * The caller of these functions holds the writers' lock.
 */
#ifndef RDMETA_CACHE_NOTES_H
#define RDMETA_CACHE_NOTES_H

#include "cache/state.h"

/* Returns the rewind of an entry; NULL: it has none. */
RDMETA_INLINE const rdmeta_rewind_t *
rdmeta_rewind_of(const rdmeta_cache_t *c, const rdmeta_entry_t *e) {
        const rdmeta_kept_rewind_t *kept =
                e->note ? c->notes.all[e->note - 1].rewind : NULL;

        return kept ? &kept->rewind : NULL;
}

/* Returns why the topic of an entry is due, as bits RDMETA_DUE_...; 0: it is
 * not. ABSENT and DENIED also depend on the time. */
RDMETA_INLINE uint32_t rdmeta_due_of(const rdmeta_cache_t *c,
                                     const rdmeta_entry_t *e) {
        return e->note ? c->notes.all[e->note - 1].due : 0;
}

/* Makes room for n more notes; NO_MEMORY. */
rdmeta_err_t rdmeta_notes_reserve(rdmeta_cache_t *c, size_t n);
/* Stores why the topic of `e` is due; 0: it is not. Cannot fail: the caller has
 * reserved a note, unless `e` has one. */
void rdmeta_note_due(rdmeta_cache_t *c, rdmeta_entry_t *e, uint32_t due);
/* Stores that the topic of `e` is absent or removed since `gone_us`;
 * RDMETA_GONE_NEVER: it is there. Cannot fail: the caller has reserved a note.
 */
void rdmeta_note_gone(rdmeta_cache_t *c, rdmeta_entry_t *e, int64_t gone_us);
/* Stores that its grace time removed the topic of `e`, and no second broker.
 * Cannot fail: the caller has reserved a note. */
void rdmeta_note_expired(rdmeta_cache_t *c, rdmeta_entry_t *e, int64_t gone_us);
/* Stores the first broker that gave the topic of `e` since. */
void rdmeta_note_given(rdmeta_cache_t *c, rdmeta_entry_t *e, int32_t broker);
/* Returns whether a broker gave the topic of `e` since, and forgets it. */
int rdmeta_note_take_given(rdmeta_cache_t *c, const rdmeta_entry_t *e);
/* Returns the note of a topic that became absent or removed less than the grace
 * time ago; NULL: there is none. */
const rdmeta_note_t *rdmeta_note_in_grace(const rdmeta_cache_t *c,
                                          const rdmeta_entry_t *e,
                                          int64_t mono_us);
/* Returns for how long the topic of such a note has been absent or removed. */
int64_t rdmeta_note_gone_for(const rdmeta_note_t *note, int64_t mono_us);
/* Makes `kept` the rewind of `e`, takes it, and frees the one before it. NULL:
 * `e` has none from now on. Cannot fail: the caller has reserved a note. */
void rdmeta_note_rewind(rdmeta_cache_t *c, rdmeta_entry_t *e,
                        rdmeta_kept_rewind_t *kept);
/* Frees the room of notes that went, if it is much. Without memory for a
 * smaller array it does nothing. */
void rdmeta_notes_trim(rdmeta_cache_t *c);
/* Frees all notes, their rewinds and their room. */
void rdmeta_notes_destroy(rdmeta_cache_t *c);

/* Returns a copy, rows included, for rdmeta_note_rewind() or
 * rdmeta_rewind_free(). NULL: no memory. */
rdmeta_kept_rewind_t *rdmeta_rewind_copy(rdmeta_cache_t *c,
                                         const rdmeta_rewind_t *rewind);
/* Frees a copy that no note has; NULL: does nothing. */
void rdmeta_rewind_free(rdmeta_cache_t *c, rdmeta_kept_rewind_t *kept);

/* Returns NULL if the notes are well linked, or else what is wrong. */
const char *rdmeta_notes_check(const rdmeta_cache_t *c);

#endif /* RDMETA_CACHE_NOTES_H */
