/* See follow.h. */
#include "read/follow.h"

#include "base/alloc.h"
#include "image/file_open.h"
#include "store/notify.h"

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct rdmeta_attach {
        rdmeta_attach_head_t head;
        pthread_mutex_t lock;
        _Atomic int32_t references;
        rdmeta_image_t *image; /* the last good one */
        int64_t wall_ahead_us; /* of the monotonic clock, as was told, ... */
        int64_t system_ahead_us; /* ... and the system's at that time */
        int64_t look_us;
        int32_t flags;
        pid_t pid; /* whose threads may hold the lock */
        _Atomic pid_t turn; /* those of a fork's child: in turn */
        _Atomic uint64_t looks, errors;
        _Atomic int32_t error; /* of the last look */
        rdmeta_allocator_t allocator;
        size_t size; /* of this */
        char path[];
};

/* 1: locked. 0: in a fork's child, for good: who has it is not there. Threads
 * there would take each other for that one if they did not take turns. */
static int attach_lock(rdmeta_attach_t *a) {
        if (getpid() == a->pid) {
                pthread_mutex_lock(&a->lock);
                return 1;
        }
        rdmeta_turn_take(&a->turn);
        if (!pthread_mutex_trylock(&a->lock))
                return 1;
        rdmeta_turn_end(&a->turn);
        return 0;
}

static void attach_unlock(rdmeta_attach_t *a) {
        pthread_mutex_unlock(&a->lock);
        if (getpid() != a->pid)
                rdmeta_turn_end(&a->turn);
}

/* ---- clocks ------------------------------------------------------------ */

/* Two clocks are not read at once, and they drift. */
#define NOT_SET INT64_C(100000)

static int64_t system_ahead(void) {
        struct timespec mono, wall;

        clock_gettime(CLOCK_MONOTONIC, &mono);
        clock_gettime(CLOCK_REALTIME, &wall);
        return ((int64_t)wall.tv_sec - mono.tv_sec) * 1000000 +
               (wall.tv_nsec - mono.tv_nsec) / 1000;
}

/* Both clocks are told. */
static void attach_clocks(rdmeta_attach_t *a, rdmeta_time_t now) {
        a->wall_ahead_us   = rdmeta_file_minus(now.wall_us, now.mono_us);
        a->system_ahead_us = system_ahead();
}

/* One is told, and the other was set by as much as the system's. */
static rdmeta_time_t attach_now(const rdmeta_attach_t *a, int64_t mono_us) {
        const int64_t set = rdmeta_file_minus(system_ahead(),
                                              a->system_ahead_us);
        rdmeta_time_t now = {mono_us,
                             rdmeta_file_plus(mono_us, a->wall_ahead_us)};

        if (set >= NOT_SET || set <= -NOT_SET)
                now.wall_us = rdmeta_file_plus(now.wall_us, set);
        return now;
}

/* ---- files ------------------------------------------------------------- */

/* The same cache's: how long after the other it was taken is known. */
static void attach_retime(rdmeta_file_t *f, const rdmeta_file_t *had,
                          int64_t mono_us) {
        static const uint8_t none[16];
        int64_t taken;

        if (memcmp(f->head.session, had->head.session, 16) != 0 ||
            !memcmp(f->head.session, none, 16))
                return;
        taken = rdmeta_file_plus(had->taken_us,
                                 rdmeta_file_minus(f->head.taken_mono_us,
                                                   had->head.taken_mono_us));
        rdmeta_file_taken(f, taken < mono_us ? taken : mono_us);
}

/* How a look went. */
static void attach_note(rdmeta_attach_t *a, rdmeta_err_t err) {
        if (err)
                atomic_fetch_add_explicit(&a->errors, 1,
                                          memory_order_relaxed);
        atomic_store_explicit(&a->error, err, memory_order_relaxed);
}

/* What lies there, opened; NULL: nothing that is good. */
static rdmeta_image_t *attach_open(rdmeta_attach_t *a,
                                   const rdmeta_image_t *had,
                                   int64_t mono_us) {
        rdmeta_image_t *image;
        const rdmeta_err_t err = rdmeta_file_open(&a->allocator, a->path,
                                                  a->flags,
                                                  attach_now(a, mono_us),
                                                  &image);

        attach_note(a, err);
        if (err)
                return NULL;
        attach_retime((rdmeta_file_t *)(void *)image, rdmeta_file_of(had),
                      mono_us);
        return image;
}

/* 1: another file than the image's lies there. */
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

static void attach_looks(rdmeta_attach_t *a) {
        atomic_fetch_add_explicit(&a->looks, 1, memory_order_relaxed);
}

/* The image in use, after a look; the lock is held. *left is for unref, when
 * it no longer is. A fork may come at any point, and its child reads without
 * the lock: what `image` leads to is there until something else is in its
 * place. */
static rdmeta_image_t *attach_current(rdmeta_attach_t *a, int64_t mono_us,
                                      rdmeta_image_t **left) {
        rdmeta_image_t *image = NULL;

        *left = NULL;
        if (attach_is_new(a, a->image))
                image = attach_open(a, a->image, mono_us);
        if (image) {
                *left    = a->image;
                a->image = image;
                atomic_fetch_add_explicit(&a->head.changes, 1,
                                          memory_order_release);
        }
        return rdmeta_image_ref(a->image);
}

void rdmeta_attach_look(rdmeta_reader_t *r, int64_t mono_us) {
        rdmeta_attach_t *a    = r->attach;
        rdmeta_image_t *image = NULL, *left = NULL, *had = r->image;

        r->look_at = rdmeta_deadlines_after(mono_us, a->look_us);
        r->due_us  = INT64_MIN;
        r->changes = rdmeta_attach_changes(a);
        attach_looks(a);
        if (!attach_is_new(a, had))
                return;
        if (attach_lock(a)) {
                image      = attach_current(a, mono_us, &left);
                r->changes = rdmeta_attach_changes(a);
                attach_unlock(a);
                rdmeta_image_unref(left);
        } else {
                image = attach_open(a, had, mono_us);
        }
        if (!image)
                return;
        r->image = image;
        rdmeta_image_unref(had);
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
        if (!a || pthread_mutex_init(&a->lock, NULL)) {
                rdmeta_free(allocator, a, size);
                rdmeta_image_unref(image);
                return RDMETA_ERR_NO_MEMORY;
        }
        atomic_init(&a->references, 1);
        atomic_init(&a->turn, 0);
        attach_clocks(a, now);
        a->image   = image;
        a->look_us = look_us > 0 ? look_us : 20000;
        a->flags   = flags;
        a->pid     = getpid();
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
        pthread_mutex_destroy(&a->lock);
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
        rdmeta_image_t *image = NULL, *left;

        attach_looks(a);
        if (!attach_lock(a)) { /* what it points to is nobody's to change */
                if (attach_is_new(a, a->image))
                        image = attach_open(a, a->image, now.mono_us);
                return image ? image : rdmeta_image_ref(a->image);
        }
        attach_clocks(a, now);
        image = attach_current(a, now.mono_us, &left);
        attach_unlock(a);
        rdmeta_image_unref(left);
        return image;
}

rdmeta_image_t *rdmeta_attach_hold(rdmeta_attach_t *a) {
        const int locked      = attach_lock(a);
        rdmeta_image_t *image = rdmeta_image_ref(a->image);

        if (locked)
                attach_unlock(a);
        atomic_fetch_add_explicit(&a->references, 1, memory_order_relaxed);
        return image;
}
