/*
 * notify: the cache's lock, its version, and who waits for either to move.
 * Knows nothing of a cache but a function that says "changed since?".
 *
 *     rdmeta_notify_t                    waiting threads' stacks
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
 * No wake-up is lost: a waiter looks and goes to sleep under the lock, and who
 * moves the version holds it. Each waiter has its own condition variable and
 * only those whose topics changed are woken.
 *
 * A watch is called after the lock has been dropped: rdmeta_notify_all()
 * queues it, rdmeta_notify_unlock() takes as many off the queue as it found
 * there and calls them. Calls that were queued by another thread meanwhile are
 * left to that one, so nobody is kept for ever; the queue is first in, first
 * out, so all that a thread found have been called by the time it is done, or
 * are being called by another. Changes that come before a queued call begins
 * are told by that call.
 * A call may write to the cache, and then runs watches itself, perhaps the
 * same one. Calls of one watch by two writers may overlap.
 *
 * In a fork's child the lock may be held by a thread that is not there: the
 * fork came in the middle of its write, and what it was at stays *torn*. So
 * nothing here waits for it: waits return 0, a watch is only freed. Threads
 * there that only read take turns on a word of their own, and whoever has the
 * turn finds out whether the lock is free.
 */
#ifndef RDMETA_STORE_NOTIFY_H
#define RDMETA_STORE_NOTIFY_H

#include "base/alloc.h"
#include "base/tailq.h"
#include "rdmeta.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/* Has `topic` changed, or been removed, after version `since`? Called with
 * the lock held; takes no lock, and calls nothing of this header. */
typedef int (*rdmeta_notify_changed_t)(void *opaque, const rdmeta_str_t *topic,
                                     uint64_t since);

typedef struct rdmeta_notify {
        pthread_mutex_t lock;
        uint64_t _Atomic version; /* stored under the lock, read without */
        rdmeta_tailq_t waiters;
        rdmeta_tailq_t watches;
        rdmeta_tailq_t due;  /* of the watches, those to be called */
        pthread_cond_t idle; /* a watch being destroyed runs no more */
        pid_t pid;           /* whose threads these are */
        _Atomic pid_t turn;  /* a fork's child: who has it; 0: nobody */
        int whole;           /* who has the turn: and the lock */
        const rdmeta_allocator_t *allocator;
        rdmeta_notify_changed_t changed;
        void *opaque;
} rdmeta_notify_t;

/* Borrows the allocator for its life; called with the lock held. 0, or
 * NO_MEMORY. Neither moves in memory afterwards. */
rdmeta_err_t rdmeta_notify_init(rdmeta_notify_t *w,
                              const rdmeta_allocator_t *allocator,
                              rdmeta_notify_changed_t changed, void *opaque);
/* No waiters, no watches and no lock are left; in a fork's child, any. */
void rdmeta_notify_destroy(rdmeta_notify_t *w);

/* 1: this process is a fork's child of the one that made `w`. A system call:
 * ask before rdmeta_notify_lock(), not in a loop. */
int rdmeta_notify_forked(const rdmeta_notify_t *w);

/* A turn of one thread at a time, for who only reads: the lock, or what stands
 * for it in a fork's child. 0: that is so and all is torn, for good: what
 * writers alone look at must not be. Memory may be had in either case. */
int rdmeta_notify_turn(rdmeta_notify_t *w);
/* Its end. Watches that were due at a fork are the parent's to call. */
void rdmeta_notify_turn_end(rdmeta_notify_t *w);

/* Of the threads of a fork's child, where a lock may be held for good. The
 * word says which process has it: one taken at a fork is nobody's in the child.
 * It begins as 0. */
void rdmeta_turn_take(_Atomic pid_t *turn);
void rdmeta_turn_end(_Atomic pid_t *turn);

/* Not recursive. */
void rdmeta_notify_lock(rdmeta_notify_t *w);
/* Unlock, then call the watches that are due. */
void rdmeta_notify_unlock(rdmeta_notify_t *w);

/* Any thread, no lock. */
static inline uint64_t rdmeta_notify_version(const rdmeta_notify_t *w) {
        return atomic_load_explicit(&w->version, memory_order_acquire);
}

/* Lock held. The version is `version` from now on, and all that changed with
 * it can be seen by changed(): wake who waits for it, queue the watches. An
 * equal version does nothing. Cheap when nobody waits. */
void rdmeta_notify_all(rdmeta_notify_t *w, uint64_t version);

/* Lock held. An answer was applied: queue the watches of answers. */
void rdmeta_notify_answered(rdmeta_notify_t *w);

/* rdmeta_cache_wait(). Takes the lock. */
uint64_t rdmeta_notify_until(rdmeta_notify_t *w, uint64_t since,
                           const rdmeta_str_t *topics, size_t n,
                           int64_t timeout_us);

/* Every waiter that is in rdmeta_notify_until() now returns 0, unless its
 * change came first. Takes the lock. */
void rdmeta_notify_interrupt(rdmeta_notify_t *w);

/* rdmeta_watch_new(), rdmeta_watch_answers() and rdmeta_watch_destroy(). They
 * take the lock. */
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

/* How many there are. Lock held. */
static inline size_t rdmeta_notify_waiters(const rdmeta_notify_t *w) {
        return w->waiters.count;
}

static inline size_t rdmeta_notify_watches(const rdmeta_notify_t *w) {
        return w->watches.count;
}

#endif /* RDMETA_STORE_NOTIFY_H */
