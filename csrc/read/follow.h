/*
 * follow: readers that follow a file which another process replaces.
 *
 *     path ......> file (new)          one stat() per look and reader
 *     attach ----> image of it <---+
 *       | lock                     |
 *     reader      reader      reader       each with a reference of its own
 *       image       image -----> image of the old file: mapped until the last
 *                                reader and borrower has left it
 *
 * There is no thread, and nothing reports a new file. A call that gets a time
 * looks whether another file lies at the path, if the reader's last look is
 * long enough ago. The first reader that finds a new file opens it for all.
 *
 * The readers of one thread must not disagree for longer than a call. So each
 * reader looks too when another one has changed to a new image. The counter
 * `changes` shows that.
 *
 * A reader keeps its image between enter and leave once it has handed out
 * memory. It makes up for a look that it missed there at the next enter.
 *
 * The age of the first file is the difference of the wall clocks. The age of a
 * later one is by the monotonic clock of the cache that writes the files, as
 * long as that is the same cache. So setting a wall clock makes nothing stale.
 */
#pragma once

#include "read/state.h"

/* The first part of an attach, which readers read without the lock. */
typedef struct rdmeta_attach_head {
        _Atomic uint64_t changes; /* how often the image was replaced */
} rdmeta_attach_head_t;

/* Returns how often the image was replaced. Any thread. */
RDMETA_INLINE uint64_t rdmeta_attach_changes(const rdmeta_attach_t *a) {
        return atomic_load_explicit(
                &((const rdmeta_attach_head_t *)(const void *)a)->changes,
                memory_order_acquire);
}

/* Does what rdmeta_attach_new() does, with memory from `allocator`. NULL: the C
 * library's. */
rdmeta_err_t rdmeta_attach_make(const rdmeta_allocator_t *allocator,
                                const char *path, int32_t flags,
                                int64_t look_us, rdmeta_time_t now,
                                rdmeta_attach_t **out);
/* Returns the last good image, without a look, for rdmeta_image_unref(); NULL:
 * the lock is lost. Takes a reference to `a`, for rdmeta_attach_destroy(). */
rdmeta_image_t *rdmeta_attach_take_image(rdmeta_attach_t *a);
/* Looks for a new file at the time `mono_us`, and changes to it. The reader has
 * handed out no memory since it entered. */
void rdmeta_attach_look(rdmeta_reader_t *r, int64_t mono_us);

/* Returns 1 if the reader is between enter and leave. */
RDMETA_INLINE int rdmeta_attach_inside(const rdmeta_reader_t *r) {
        return (r->reading.depth & ~RDMETA_READING_SPECIAL) != 0;
}

/* Returns 1 if it is time to look, or if another reader has changed to a new
 * image. */
RDMETA_INLINE int rdmeta_attach_is_due(const rdmeta_reader_t *r,
                                       int64_t mono_us) {
        return mono_us >= r->next_look_us ||
               rdmeta_attach_changes(r->attach) != r->changes;
}

/* Looks if it is due and the reader may. Every call that gets the time starts
 * with this, for any reader. */
RDMETA_INLINE void rdmeta_attach_time(rdmeta_reader_t *r, int64_t mono_us) {
        int inside;

        if (RDMETA_LIKELY(!r->attach))
                return;
        inside = rdmeta_attach_inside(r);
        if (RDMETA_UNLIKELY(rdmeta_attach_is_due(r, mono_us))) {
                if (inside && r->handed)
                        r->missed_look_us = mono_us;
                else
                        rdmeta_attach_look(r, mono_us);
        }
        r->handed = inside;
}

/* Makes up for a missed look, before a reader that follows a file enters. */
RDMETA_INLINE void rdmeta_attach_enter(rdmeta_reader_t *r) {
        if (rdmeta_attach_inside(r))
                return;
        r->handed = 0;
        if (r->missed_look_us != INT64_MIN)
                rdmeta_attach_look(r, r->missed_look_us);
}
