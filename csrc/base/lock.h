/*
 * lock: a mutex that fork() leaves free in the child, with whole data behind
 * it.
 *
 *     registry   mutex, pid
 *       locks -----> lock ------> lock ------> ...     of caches, attaches
 *                      mutex, pid    mutex, pid
 *
 * Handlers of pthread_atfork(), which are registered once, take the registry
 * and then each lock, in the order in which the locks were made. So no thread
 * is between take and give at the fork. The parent and the child give all of
 * them back. Threads that come meanwhile let the fork go first. So a thread
 * that never rests cannot keep it waiting.
 *
 * The handlers wait for 2 s at most, all in all. A lock that they could not
 * take by then is *lost* in the child: its holder does not exist there. All
 * inherited locks are lost in a child that was made without handlers, as by
 * clone(). Nobody waits for a lost lock: taking it is an error.
 *
 * So these rules hold for a thread that has a lock: it takes no other lock,
 * makes and destroys none, and waits for nothing that a forking thread may
 * have, such as Python's GIL.
 *
 * The C library forgets the handlers of a shared library that is unloaded.
 */
#pragma once

#include "base/tailq.h"
#include "rdmeta.h"

#include <pthread.h>
#include <sys/types.h>

typedef struct rdmeta_lock {
        pthread_mutex_t mutex;
        rdmeta_tailq_node_t node;
        pid_t pid;  /* the process whose threads can take it */
        int listed; /* 1: in the registry */
        int held;   /* the handlers have it; only they use this */
} rdmeta_lock_t;

/* Initialises, for rdmeta_lock_destroy(). Must not move in memory. Returns 0 or
 * RDMETA_ERR_NO_MEMORY. Any thread. */
rdmeta_err_t rdmeta_lock_init(rdmeta_lock_t *l);
/* Destroys a lock that no thread has, or a lost one. Any thread. */
void rdmeta_lock_destroy(rdmeta_lock_t *l);

/* Returns RDMETA_ERR_FORKED if the lock is lost, else 0. It makes a system
 * call. */
rdmeta_err_t rdmeta_lock_check(const rdmeta_lock_t *l);
/* Takes the lock, which is not recursive. RDMETA_ERR_FORKED: it is lost. */
rdmeta_err_t rdmeta_lock_take(rdmeta_lock_t *l);
void rdmeta_lock_give(rdmeta_lock_t *l);
