/*
 * notify: the cache's lock, its version, and the threads and watches that wait
 * for a change. It knows nothing of a cache but a function that answers
 * "changed since?".
 *
 *     rdmeta_notify_t               waiting threads' stacks
 *     +----------------+             +-----------+   +-----------+
 *     | lock           |             | waiter    |   | waiter    |
 *     | version        |             | own cond  |   | own cond  |
 *     | waiters -------|------------>| topics ---|-->| ...       |
 *     | watches -------|-----+       +-----------+   +-----------+
 *     | due -----------|--+  |       one allocation each
 *     | idle (cond)    |  |  |       +-------------------------------+
 *     +----------------+  |  +------>| watch: fn, due, running |names|->
 *                         +--------->|                         |     |->
 *                                    +-------------------------------+
 *
 * No wake-up is lost: a waiter looks and goes to sleep under the lock, and the
 * writer that raises the version holds the lock. Each waiter has its own
 * condition variable, and a writer wakes only those whose topics changed.
 *
 * A watch is called without the lock. rdmeta_notify_all() queues it.
 * rdmeta_notify_unlock() takes as many watches off the queue as it found there
 * and calls them. It leaves those that another thread queued meanwhile to that
 * thread, so no thread is kept for ever. The queue is first in, first out. So
 * when a thread is done, all watches that it found have been called, or another
 * thread is calling them. A queued call reports all changes that come before it
 * begins. A call may write to the cache; it then runs watches itself, perhaps
 * the same one. Calls of one watch by two writers may overlap.
 *
 * A fork's child can take the lock (base/lock.h), but waits return 0 there, and
 * the parent calls the watches that are due.
 */
#pragma once

#include "base/alloc.h"
#include "base/lock.h"
#include "base/tailq.h"
#include "rdmeta.h"

#include <stdatomic.h>

/* Returns 1 if `topic` has changed, or was removed, after version `since`. The
 * caller has the lock. The function takes no lock and calls nothing of this
 * header. */
typedef int (*rdmeta_notify_changed_t)(void *opaque, const rdmeta_str_t *topic,
                                       uint64_t since);

typedef struct rdmeta_notify {
        rdmeta_lock_t lock;
        uint64_t _Atomic version; /* stored under the lock, read without */
        rdmeta_tailq_t waiters;
        rdmeta_tailq_t watches;
        rdmeta_tailq_t due;  /* the watches to be called */
        pthread_cond_t idle; /* the last call of a destroyed watch returned */
        pid_t pid;           /* the process that made this */
        const rdmeta_allocator_t *allocator;
        rdmeta_notify_changed_t changed;
        void *opaque;
} rdmeta_notify_t;

/* Initialises. Returns 0 or RDMETA_ERR_NO_MEMORY. Borrows the allocator for its
 * life, and calls it with the lock held. Neither may move in memory. */
rdmeta_err_t rdmeta_notify_init(rdmeta_notify_t *w,
                                const rdmeta_allocator_t *allocator,
                                rdmeta_notify_changed_t changed, void *opaque);
/* Destroys. There must be no waiter and no watch, and the lock must be free. In
 * a fork's child there may be any. */
void rdmeta_notify_destroy(rdmeta_notify_t *w);

/* Returns 1 in a fork's child of the process that made `w`. It makes a system
 * call: writers call it before rdmeta_notify_lock(), and not in a loop. */
int rdmeta_notify_forked(const rdmeta_notify_t *w);

/* Takes the lock, which is not recursive. RDMETA_ERR_FORKED: it is lost
 * (base/lock.h). The process that made `w` never loses it. */
rdmeta_err_t rdmeta_notify_lock(rdmeta_notify_t *w);
/* Unlocks, then calls the watches that are due, but not in a fork's child. */
void rdmeta_notify_unlock(rdmeta_notify_t *w);

/* Allocate and free under the lock. NULL: no memory, or the lock is lost. Where
 * it is lost, nothing is freed: the memory goes with the process. */
void *rdmeta_notify_alloc(rdmeta_notify_t *w, size_t size);
void rdmeta_notify_free(rdmeta_notify_t *w, void *p, size_t size);
/* Returns why rdmeta_notify_alloc() returned NULL: FORKED or NO_MEMORY. */
rdmeta_err_t rdmeta_notify_missing(const rdmeta_notify_t *w);

/* Returns the version. Any thread, with or without the lock. */
static inline uint64_t rdmeta_notify_version(const rdmeta_notify_t *w) {
        return atomic_load_explicit(&w->version, memory_order_acquire);
}

/* Sets the version, wakes the waiters that it concerns and queues the watches.
 * changed() must see the changes already. Does nothing if the version is the
 * same. Cheap without waiters and watches. The caller has the lock. */
void rdmeta_notify_all(rdmeta_notify_t *w, uint64_t version);

/* Queues the watches of answers, after an answer was applied. The caller has
 * the lock. */
void rdmeta_notify_answered(rdmeta_notify_t *w);

/* Implements rdmeta_cache_wait(). Takes the lock. */
uint64_t rdmeta_notify_until(rdmeta_notify_t *w, uint64_t since,
                             const rdmeta_str_t *topics, size_t n,
                             int64_t timeout_us);

/* Makes every waiter that is in rdmeta_notify_until() now return 0, unless its
 * change came first. Takes the lock. */
void rdmeta_notify_interrupt(rdmeta_notify_t *w);

/* Implement rdmeta_watch_new(), rdmeta_watch_answers() and
 * rdmeta_watch_destroy(). They take the lock. */
rdmeta_watch_t *rdmeta_notify_watch_new(rdmeta_notify_t *w,
                                        const rdmeta_str_t *topics, size_t n,
                                        void (*fn)(void *opaque,
                                                   uint64_t version),
                                        void *opaque);
rdmeta_watch_t *rdmeta_notify_watch_answers(rdmeta_notify_t *w,
                                            void (*fn)(void *opaque,
                                                       uint64_t version),
                                            void *opaque);
void rdmeta_notify_watch_destroy(rdmeta_watch_t *watch);

/* Return how many there are. The caller has the lock. */
static inline size_t rdmeta_notify_waiters(const rdmeta_notify_t *w) {
        return w->waiters.count;
}

static inline size_t rdmeta_notify_watches(const rdmeta_notify_t *w) {
        return w->watches.count;
}
