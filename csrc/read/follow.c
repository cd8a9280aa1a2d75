/* See follow.h. */
#include "read/follow.h"

#include "base/alloc.h"
#include "base/lock.h"
#include "image/file_open.h"

#include <sys/stat.h>
#include <time.h>

struct rdmeta_attach {
        rdmeta_attach_head_t head;
        rdmeta_lock_t lock;
        _Atomic int32_t references;
        rdmeta_image_t *image; /* of the last good file */
        /* The caller's wall clock minus its monotonic clock, when both were
         * known, and the system's two clocks at that time. */
        int64_t wall_offset_us;
        int64_t system_offset_us;
        int64_t look_us; /* the least time between two looks of a reader */
        int32_t flags;
        _Atomic uint64_t looks, errors;
        _Atomic int32_t error; /* of the last look */
        rdmeta_allocator_t allocator;
        size_t size; /* of this allocation */
        char path[];
};

/* ---- clocks ------------------------------------------------------------ */

/* A difference below this, in microseconds, does not mean that a clock was set:
 * the two clocks are not read at once, and they drift. */
#define CLOCK_JITTER_US INT64_C(100000)

/* Returns the system's wall clock minus its monotonic clock. */
static int64_t system_offset(void) {
        struct timespec mono, wall;

        clock_gettime(CLOCK_MONOTONIC, &mono);
        clock_gettime(CLOCK_REALTIME, &wall);
        return ((int64_t)wall.tv_sec - mono.tv_sec) * 1000000 +
               (wall.tv_nsec - mono.tv_nsec) / 1000;
}

/* Records the offset between the caller's two clocks. */
static void attach_clocks(rdmeta_attach_t *a, rdmeta_time_t now) {
        a->wall_offset_us   = rdmeta_file_minus(now.wall_us, now.mono_us);
        a->system_offset_us = system_offset();
}

/* Returns the time on both of the caller's clocks. The caller gave only the
 * monotonic one. Its wall clock was set by as much as the system's. */
static rdmeta_time_t attach_now(const rdmeta_attach_t *a, int64_t mono_us) {
        const int64_t set_by = rdmeta_file_minus(system_offset(),
                                                 a->system_offset_us);
        rdmeta_time_t now = {mono_us,
                             rdmeta_file_plus(mono_us, a->wall_offset_us)};

        if (set_by >= CLOCK_JITTER_US || set_by <= -CLOCK_JITTER_US)
                now.wall_us = rdmeta_file_plus(now.wall_us, set_by);
        return now;
}

/* ---- files ------------------------------------------------------------- */

/* Sets the time when `f` was taken, if the same cache wrote `old` too. Then the
 * difference of their monotonic times is known. */
static void attach_set_taken(rdmeta_file_t *f, const rdmeta_file_t *old,
                             int64_t mono_us) {
        static const uint8_t none[16];
        int64_t taken;

        if (memcmp(f->head.session, old->head.session, 16) != 0 ||
            !memcmp(f->head.session, none, 16))
                return;
        taken = rdmeta_file_plus(old->taken_us,
                                 rdmeta_file_minus(f->head.taken_mono_us,
                                                   old->head.taken_mono_us));
        rdmeta_file_taken(f, taken < mono_us ? taken : mono_us);
}

/* Counts the result of a look. */
static void attach_note(rdmeta_attach_t *a, rdmeta_err_t err) {
        if (err)
                atomic_fetch_add_explicit(&a->errors, 1,
                                          memory_order_relaxed);
        atomic_store_explicit(&a->error, err, memory_order_relaxed);
}

/* Opens the file at the path and returns its image, for rdmeta_image_unref().
 * `old` is the image so far. NULL: there is no good file. */
static rdmeta_image_t *attach_open(rdmeta_attach_t *a,
                                   const rdmeta_image_t *old,
                                   int64_t mono_us) {
        rdmeta_image_t *image;
        const rdmeta_err_t err = rdmeta_file_open(&a->allocator, a->path,
                                                  a->flags,
                                                  attach_now(a, mono_us),
                                                  &image);

        attach_note(a, err);
        if (err)
                return NULL;
        attach_set_taken((rdmeta_file_t *)(void *)image, rdmeta_file_of(old),
                         mono_us);
        return image;
}

/* Returns 1 if another file than the image's lies at the path. */
static int attach_is_new(rdmeta_attach_t *a, const rdmeta_image_t *image) {
        rdmeta_file_identity_t id;
        struct stat st;

        if (stat(a->path, &st)) {
                attach_note(a, RDMETA_ERR_IO);
                return 0;
        }
        id = rdmeta_file_identity_of(&st);
        if (!rdmeta_file_identity_same(&id,
                                       &rdmeta_file_of(image)->identity))
                return 1;
        attach_note(a, RDMETA_OK);
        return 0;
}

static void attach_count_look(rdmeta_attach_t *a) {
        atomic_fetch_add_explicit(&a->looks, 1, memory_order_relaxed);
}

/* Looks and returns the current image, for rdmeta_image_unref(). The caller has
 * the lock. Sets *replaced to the former image, or NULL: the caller unrefs it
 * without the lock. */
static rdmeta_image_t *attach_current(rdmeta_attach_t *a, int64_t mono_us,
                                      rdmeta_image_t **replaced) {
        rdmeta_image_t *image = NULL;

        *replaced = NULL;
        if (attach_is_new(a, a->image))
                image = attach_open(a, a->image, mono_us);
        if (image) {
                *replaced = a->image;
                a->image  = image;
                atomic_fetch_add_explicit(&a->head.changes, 1,
                                          memory_order_release);
        }
        return rdmeta_image_ref(a->image);
}

void rdmeta_attach_look(rdmeta_reader_t *r, int64_t mono_us) {
        rdmeta_attach_t *a    = r->attach;
        rdmeta_image_t *replaced, *old = r->image;

        r->next_look_us   = rdmeta_deadlines_after(mono_us, a->look_us);
        r->missed_look_us = INT64_MIN;
        r->changes        = rdmeta_attach_changes(a);
        attach_count_look(a);
        if (!attach_is_new(a, old))
                return;
        if (rdmeta_lock_take(&a->lock))
                return; /* the reader stays with its image */
        r->image   = attach_current(a, mono_us, &replaced);
        r->changes = rdmeta_attach_changes(a);
        rdmeta_lock_give(&a->lock);
        rdmeta_image_unref(replaced);
        rdmeta_image_unref(old);
}

/* ---- life -------------------------------------------------------------- */

rdmeta_err_t rdmeta_attach_make(const rdmeta_allocator_t *allocator,
                                const char *path, int32_t flags,
                                int64_t look_us, rdmeta_time_t now,
                                rdmeta_attach_t **out) {
        const size_t size = sizeof(rdmeta_attach_t) + strlen(path) + 1;
        rdmeta_image_t *image;
        rdmeta_attach_t *a;
        rdmeta_err_t err = rdmeta_file_open(allocator, path, flags, now,
                                            &image);

        if (err)
                return err;
        a = (rdmeta_attach_t *)rdmeta_alloc(allocator, size);
        if (a)
                memset(a, 0, size);
        if (!a || rdmeta_lock_init(&a->lock)) {
                rdmeta_free(allocator, a, size);
                rdmeta_image_unref(image);
                return RDMETA_ERR_NO_MEMORY;
        }
        atomic_init(&a->references, 1);
        attach_clocks(a, now);
        a->image   = image;
        a->look_us = look_us > 0 ? look_us : 20000;
        a->flags   = flags;
        a->size    = size;
        if (allocator)
                a->allocator = *allocator;
        memcpy(a->path, path, strlen(path));
        *out = a;
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_attach_new(const char *path, int32_t flags,
                               int64_t look_us, rdmeta_time_t now,
                               rdmeta_attach_t **out) {
        return rdmeta_attach_make(NULL, path, flags, look_us, now, out);
}

void rdmeta_attach_destroy(rdmeta_attach_t *a) {
        rdmeta_allocator_t allocator;

        if (!a || atomic_fetch_sub_explicit(&a->references, 1,
                                            memory_order_acq_rel) != 1)
                return;
        allocator = a->allocator;
        rdmeta_image_unref(a->image);
        rdmeta_lock_destroy(&a->lock);
        rdmeta_free(&allocator, a, a->size);
}

void rdmeta_attach_stats(const rdmeta_attach_t *a,
                         rdmeta_attach_stats_t *out) {
        memset(out, 0, sizeof(*out));
        out->looks  = atomic_load_explicit(&a->looks, memory_order_relaxed);
        out->errors = atomic_load_explicit(&a->errors, memory_order_relaxed);
        out->error  = atomic_load_explicit(&a->error, memory_order_relaxed);
        out->generations = rdmeta_attach_changes(a) + 1;
}

rdmeta_image_t *rdmeta_attach_image(rdmeta_attach_t *a, rdmeta_time_t now) {
        rdmeta_image_t *image, *replaced;

        if (rdmeta_lock_take(&a->lock))
                return NULL;
        attach_count_look(a);
        attach_clocks(a, now);
        image = attach_current(a, now.mono_us, &replaced);
        rdmeta_lock_give(&a->lock);
        rdmeta_image_unref(replaced);
        return image;
}

rdmeta_image_t *rdmeta_attach_take_image(rdmeta_attach_t *a) {
        rdmeta_image_t *image;

        atomic_fetch_add_explicit(&a->references, 1, memory_order_relaxed);
        if (rdmeta_lock_take(&a->lock))
                return NULL;
        image = rdmeta_image_ref(a->image);
        rdmeta_lock_give(&a->lock);
        return image;
}
