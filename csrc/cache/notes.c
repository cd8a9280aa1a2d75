/* The notes of topics, and the rewinds that some of them have. See notes.h. */
#include "cache/notes.h"

#include "base/alloc.h"

/* An entry has so many bits for the place of its note. */
#define NOTES_MAX (1u << 26)
/* A cache keeps room for this many notes once it has had one. */
enum { NOTES_MIN = 16 };

/* ---- the array ----------------------------------------------------------- */

/* Moves the notes to an array for `capacity` of them; NO_MEMORY. */
static rdmeta_err_t notes_resize(rdmeta_cache_t *c, size_t capacity) {
        rdmeta_notes_t *notes = &c->notes;
        const size_t size     = sizeof(*notes->all);
        rdmeta_note_t *all;

        all = (rdmeta_note_t *)rdmeta_alloc(&c->conf.allocator,
                                            capacity * size);
        if (!all)
                return RDMETA_ERR_NO_MEMORY;
        if (notes->count)
                memcpy(all, notes->all, notes->count * size);
        rdmeta_free(&c->conf.allocator, notes->all, notes->capacity * size);
        notes->all      = all;
        notes->capacity = (uint32_t)capacity;
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_notes_reserve(rdmeta_cache_t *c, size_t n) {
        const rdmeta_notes_t *notes = &c->notes;
        size_t capacity = notes->capacity ? notes->capacity : NOTES_MIN;

        if (notes->count + n <= notes->capacity)
                return RDMETA_OK;
        while (capacity < notes->count + n)
                capacity *= 2;
        if (capacity >= NOTES_MAX)
                return RDMETA_ERR_NO_MEMORY;
        return notes_resize(c, capacity);
}

void rdmeta_notes_trim(rdmeta_cache_t *c) {
        const rdmeta_notes_t *notes = &c->notes;
        size_t capacity             = notes->capacity;

        while (capacity > NOTES_MIN && capacity / 4 >= notes->count)
                capacity /= 2;
        if (capacity != notes->capacity)
                (void)notes_resize(c, capacity); /* or at a later call */
}

/* Returns the note of an entry, made now if it has none. */
static rdmeta_note_t *note_of(rdmeta_cache_t *c, rdmeta_entry_t *e) {
        rdmeta_notes_t *notes = &c->notes;
        rdmeta_note_t *note;

        if (e->note)
                return &notes->all[e->note - 1];
        note = &notes->all[notes->count++];
        memset(note, 0, sizeof(*note));
        note->entry = e;
        e->note     = notes->count & (NOTES_MAX - 1);
        return note;
}

/* Removes the note of an entry if it says nothing any more. */
static void note_drop_empty(rdmeta_cache_t *c, rdmeta_entry_t *e) {
        rdmeta_notes_t *notes = &c->notes;
        const uint32_t at     = e->note - 1;

        if (notes->all[at].rewind || notes->all[at].due ||
            notes->all[at].gone_ms)
                return;
        e->note        = 0;
        notes->all[at] = notes->all[--notes->count];
        if (at != notes->count)
                notes->all[at].entry->note = (at + 1) & (NOTES_MAX - 1);
}

void rdmeta_note_due(rdmeta_cache_t *c, rdmeta_entry_t *e, uint32_t due) {
        if (!due && !e->note)
                return;
        note_of(c, e)->due = due & 127;
        note_drop_empty(c, e);
}

void rdmeta_note_rewind(rdmeta_cache_t *c, rdmeta_entry_t *e,
                        rdmeta_kept_rewind_t *kept) {
        rdmeta_note_t *note;

        if (!kept && !e->note)
                return;
        note = note_of(c, e);
        rdmeta_rewind_free(c, note->rewind);
        note->rewind = kept;
        note_drop_empty(c, e);
}

/* Returns a time in milliseconds, modulo 2^32, and never 0. */
static uint32_t gone_ms(int64_t mono_us) {
        const uint32_t ms = (uint32_t)(mono_us / 1000);

        return ms ? ms : 1;
}

void rdmeta_note_gone(rdmeta_cache_t *c, rdmeta_entry_t *e, int64_t gone_us) {
        rdmeta_note_t *note;

        if (gone_us == RDMETA_GONE_NEVER && !e->note)
                return;
        note          = note_of(c, e);
        note->gone_ms = gone_us == RDMETA_GONE_NEVER ? 0 : gone_ms(gone_us);
        note->given   = 0;
        note->expired = 0;
        note_drop_empty(c, e);
}

void rdmeta_note_expired(rdmeta_cache_t *c, rdmeta_entry_t *e,
                         int64_t gone_us) {
        rdmeta_note_gone(c, e, gone_us);
        note_of(c, e)->expired = 1;
}

void rdmeta_note_given(rdmeta_cache_t *c, rdmeta_entry_t *e, int32_t broker) {
        rdmeta_note_t *note = note_of(c, e);

        if (!note->given && broker >= 0)
                note->given = (1 + ((uint32_t)broker & RDMETA_GIVEN_MASK)) &
                              0xffffff;
}

int rdmeta_note_take_given(rdmeta_cache_t *c, const rdmeta_entry_t *e) {
        rdmeta_note_t *note = e->note ? &c->notes.all[e->note - 1] : NULL;
        const int given     = note && note->given;

        if (given)
                note->given = 0;
        return given;
}

const rdmeta_note_t *rdmeta_note_in_grace(const rdmeta_cache_t *c,
                                          const rdmeta_entry_t *e,
                                          int64_t mono_us) {
        const rdmeta_note_t *note = e->note ? &c->notes.all[e->note - 1] : NULL;

        if (!note || !note->gone_ms ||
            rdmeta_note_gone_for(note, mono_us) > c->conf.absent_grace_us)
                return NULL;
        return note;
}

int64_t rdmeta_note_gone_for(const rdmeta_note_t *note, int64_t mono_us) {
        return (int64_t)(uint32_t)(gone_ms(mono_us) - note->gone_ms) * 1000;
}

void rdmeta_notes_destroy(rdmeta_cache_t *c) {
        rdmeta_notes_t *notes = &c->notes;

        while (notes->count)
                rdmeta_rewind_free(c, notes->all[--notes->count].rewind);
        rdmeta_free(&c->conf.allocator, notes->all,
                    notes->capacity * sizeof(*notes->all));
}

/* ---- rewinds ------------------------------------------------------------- */

static size_t rewind_bytes(const rdmeta_rewind_t *r) {
        return sizeof(rdmeta_kept_rewind_t) + r->count * sizeof(*r->rows);
}

rdmeta_kept_rewind_t *rdmeta_rewind_copy(rdmeta_cache_t *c,
                                         const rdmeta_rewind_t *rewind) {
        const size_t size = rewind_bytes(rewind);
        rdmeta_kept_rewind_t *kept =
                (rdmeta_kept_rewind_t *)rdmeta_alloc(&c->conf.allocator, size);

        if (!kept)
                return NULL;
        kept->rewind      = *rewind;
        kept->rewind.rows = kept->rows;
        if (rewind->count)
                memcpy(kept->rows, rewind->rows,
                       rewind->count * sizeof(*rewind->rows));
        c->notes.rewind_bytes += size;
        return kept;
}

void rdmeta_rewind_free(rdmeta_cache_t *c, rdmeta_kept_rewind_t *kept) {
        if (!kept)
                return;
        c->notes.rewind_bytes -= rewind_bytes(&kept->rewind);
        rdmeta_free(&c->conf.allocator, kept, rewind_bytes(&kept->rewind));
}

/* ---- check --------------------------------------------------------------- */

static const char *check_rewind(const rdmeta_rewind_t *r) {
        uint32_t k;

        if ((!r->past && !r->count) || (r->past && !r->answers))
                return "a rewind counts nothing";
        for (k = 1; k < r->count; k++)
                if (r->rows[k - 1].id >= r->rows[k].id)
                        return "a rewind's rows are out of order";
        return NULL;
}

const char *rdmeta_notes_check(const rdmeta_cache_t *c) {
        const char *wrong = NULL;
        size_t bytes      = 0;
        uint32_t i;

        for (i = 0; i < c->notes.count && !wrong; i++) {
                const rdmeta_note_t *note = &c->notes.all[i];

                if (note->entry->note != i + 1)
                        return "a note's entry has another note";
                if (note->gone_ms &&
                    !rdmeta_topic_has_gone(note->entry->topic))
                        return "a topic that is there has a removal";
                if (!note->rewind && !note->due && !note->gone_ms)
                        return "a note says nothing";
                if (note->rewind) {
                        wrong = check_rewind(&note->rewind->rewind);
                        bytes += rewind_bytes(&note->rewind->rewind);
                }
        }
        if (!wrong && bytes != c->notes.rewind_bytes)
                wrong = "rewinds are miscounted";
        return wrong;
}
