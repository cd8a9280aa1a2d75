/*
 * follow: readers that follow a file which another process replaces.
 *
 *     path ......> file (new)          stat() once a look and reader
 *     attach ----> image of it <---+
 *       | lock                     |
 *     reader      reader      reader       each with a reference of its own
 *       image       image -----> image of the old file: mapped until the last
 *                                reader and borrower has left it
 *
 * There is no thread and nothing that tells of a new file: a reader that is
 * called with a time looks whether another file lies there, if its last look
 * is long enough ago. The first that finds one opens it, for all.
 *
 * So that readers of one thread never disagree for longer than a call, each
 * looks too when another one has gone over: `changes` tells.
 *
 * A reader never goes over between enter and leave once it has handed
 * something out; what it could not look at then it does at the next enter.
 *
 * How old a file is tell the wall clocks, the first time. After that, as long
 * as the same cache writes them, its own monotonic clock tells: a wall clock
 * that is set makes nothing stale.
 */
#ifndef RDMETA_READ_FOLLOW_H
#define RDMETA_READ_FOLLOW_H

#include "read/state.h"

/* The begin of one, which readers read without the lock. */
typedef struct rdmeta_attach_head {
        _Atomic uint64_t changes; /* how often another image took its place */
} rdmeta_attach_head_t;

RDMETA_INLINE uint64_t rdmeta_attach_changes(const rdmeta_attach_t *a) {
        return atomic_load_explicit(
                &((const rdmeta_attach_head_t *)(const void *)a)->changes,
                memory_order_acquire);
}

/* rdmeta_attach_new() with memory from `allocator`; NULL: the C library. */
rdmeta_err_t rdmeta_attach_make(const rdmeta_allocator_t *allocator,
                                const char *path, int32_t flags,
                                int64_t look_us, rdmeta_time_t now,
                                rdmeta_attach_t **out);
/* Returns the last good image, without a look, for rdmeta_image_unref(); takes
 * a reference to `a`, for rdmeta_attach_destroy(). */
rdmeta_image_t *rdmeta_attach_hold(rdmeta_attach_t *a);
/* It is `mono_us`, and the reader has handed out nothing. */
void rdmeta_attach_look(rdmeta_reader_t *r, int64_t mono_us);

RDMETA_INLINE int rdmeta_attach_inside(const rdmeta_reader_t *r) {
        return (r->reading.depth & ~RDMETA_READING_SPECIAL) != 0;
}

/* It is time to look, or another reader has gone over. */
RDMETA_INLINE int rdmeta_attach_is_due(const rdmeta_reader_t *r,
                                       int64_t mono_us) {
        return mono_us >= r->look_at ||
               rdmeta_attach_changes(r->attach) != r->changes;
}

/* At the begin of a call that is told the time, on any reader. */
RDMETA_INLINE void rdmeta_attach_time(rdmeta_reader_t *r, int64_t mono_us) {
        int inside;

        if (RDMETA_LIKELY(!r->attach))
                return;
        inside = rdmeta_attach_inside(r);
        if (RDMETA_UNLIKELY(rdmeta_attach_is_due(r, mono_us))) {
                if (inside && r->handed)
                        r->due_us = mono_us;
                else
                        rdmeta_attach_look(r, mono_us);
        }
        r->handed = inside;
}

/* Of one that follows, before it enters. */
RDMETA_INLINE void rdmeta_attach_enter(rdmeta_reader_t *r) {
        if (rdmeta_attach_inside(r))
                return;
        r->handed = 0;
        if (r->due_us != INT64_MIN)
                rdmeta_attach_look(r, r->due_us);
}

#endif /* RDMETA_READ_FOLLOW_H */
