/* See notify.h. */
#include "store/notify.h"

#include "base/tmpabuf.h"

#include <time.h>
#include <unistd.h>

/* A thread in rdmeta_notify_until(), on its stack. */
typedef struct rdmeta_waiter {
        rdmeta_tailq_node_t node; /* in waiters */
        pthread_cond_t cond;
        uint64_t since;
        const rdmeta_str_t *topics;
        size_t n;
        int woken;       /* its change has come */
        int interrupted; /* an interrupt has come */
} rdmeta_waiter_t;

struct rdmeta_watch {
        rdmeta_tailq_node_t node;     /* in watches */
        rdmeta_tailq_node_t due_node; /* in the queue `due`, while `due` is 1 */
        rdmeta_notify_t *notify;
        void (*fn)(void *opaque, uint64_t version);
        void *opaque;
        const rdmeta_str_t *topics;
        size_t n;
        size_t size;   /* of this allocation */
        int answers;   /* 1: for every answer; 0: for changes */
        int due;       /* 1: in the queue of watches to be called */
        int running;   /* calls that have not returned */
        int destroyed; /* a thread waits for `running` to become 0 */
};

/* Longer waits are cut to this, about 30 years. So sums of times stay within
 * any time_t. */
#define RDMETA_NOTIFY_MAX_US (INT64_C(1000000000) * 1000000)

/* ---- life and lock -------------------------------------------------- */

/* Initialises a condition variable that waits by the monotonic clock. */
static int rdmeta_notify_cond_init(pthread_cond_t *cond) {
        pthread_condattr_t attr;
        int failed = pthread_condattr_init(&attr);

        if (failed)
                return failed;
        failed = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        if (!failed)
                failed = pthread_cond_init(cond, &attr);
        pthread_condattr_destroy(&attr);
        return failed;
}

rdmeta_err_t rdmeta_notify_init(rdmeta_notify_t *w,
                                const rdmeta_allocator_t *allocator,
                                rdmeta_notify_changed_t changed, void *opaque) {
        if (rdmeta_lock_init(&w->lock))
                return RDMETA_ERR_NO_MEMORY;
        if (rdmeta_notify_cond_init(&w->idle)) {
                rdmeta_lock_destroy(&w->lock);
                return RDMETA_ERR_NO_MEMORY;
        }
        atomic_init(&w->version, 0);
        rdmeta_tailq_init(&w->waiters);
        rdmeta_tailq_init(&w->watches);
        rdmeta_tailq_init(&w->due);
        w->pid       = getpid();
        w->allocator = allocator;
        w->changed   = changed;
        w->opaque    = opaque;
        return RDMETA_OK;
}

void rdmeta_notify_destroy(rdmeta_notify_t *w) {
        /* In a fork's child, destroying a condition variable may wait for the
         * parent's threads. */
        if (!rdmeta_notify_forked(w))
                pthread_cond_destroy(&w->idle);
        rdmeta_lock_destroy(&w->lock);
}

int rdmeta_notify_forked(const rdmeta_notify_t *w) {
        return getpid() != w->pid;
}

rdmeta_err_t rdmeta_notify_lock(rdmeta_notify_t *w) {
        return rdmeta_lock_take(&w->lock);
}

void *rdmeta_notify_alloc(rdmeta_notify_t *w, size_t size) {
        void *p;

        if (rdmeta_notify_lock(w))
                return NULL;
        p = rdmeta_alloc(w->allocator, size);
        rdmeta_notify_unlock(w);
        return p;
}

void rdmeta_notify_free(rdmeta_notify_t *w, void *p, size_t size) {
        if (!p || rdmeta_notify_lock(w))
                return;
        rdmeta_free(w->allocator, p, size);
        rdmeta_notify_unlock(w);
}

rdmeta_err_t rdmeta_notify_missing(const rdmeta_notify_t *w) {
        const rdmeta_err_t err = rdmeta_lock_check(&w->lock);

        return err ? err : RDMETA_ERR_NO_MEMORY;
}

/* ---- which waiters and watches a change concerns -------------------- */

/* Returns 1 if one of the topics changed after `since`; n = 0: anything. */
static int rdmeta_notify_concerns(const rdmeta_notify_t *w,
                                  const rdmeta_str_t *topics, size_t n,
                                  uint64_t since) {
        size_t i;

        if (rdmeta_notify_version(w) <= since)
                return 0;
        for (i = 0; i < n; i++)
                if (w->changed(w->opaque, &topics[i], since))
                        return 1;
        return n == 0;
}

/* Wakes the waiters that the changes concern. */
static void rdmeta_notify_wake(rdmeta_notify_t *w) {
        rdmeta_tailq_node_t *node = rdmeta_tailq_first(&w->waiters);

        for (; node; node = rdmeta_tailq_next(node)) {
                rdmeta_waiter_t *waiter =
                    RDMETA_CONTAINER(node, rdmeta_waiter_t, node);

                if (waiter->woken ||
                    !rdmeta_notify_concerns(w, waiter->topics, waiter->n,
                                            waiter->since))
                        continue;
                waiter->woken = 1;
                pthread_cond_signal(&waiter->cond);
        }
}

/* Queues the watches of answers, or those that a change after `since` concerns.
 */
static void rdmeta_notify_queue(rdmeta_notify_t *w, int answers,
                                uint64_t since) {
        rdmeta_tailq_node_t *node = rdmeta_tailq_first(&w->watches);

        for (; node; node = rdmeta_tailq_next(node)) {
                rdmeta_watch_t *watch =
                    RDMETA_CONTAINER(node, rdmeta_watch_t, node);

                if (watch->due || watch->answers != answers ||
                    (!answers && !rdmeta_notify_concerns(w, watch->topics,
                                                         watch->n, since)))
                        continue;
                watch->due = 1;
                rdmeta_tailq_push_back(&w->due, &watch->due_node);
        }
}

void rdmeta_notify_all(rdmeta_notify_t *w, uint64_t version) {
        const uint64_t before = rdmeta_notify_version(w);

        if (version == before)
                return;
        atomic_store_explicit(&w->version, version, memory_order_release);
        rdmeta_notify_wake(w);
        rdmeta_notify_queue(w, 0, before);
}

void rdmeta_notify_answered(rdmeta_notify_t *w) {
        rdmeta_notify_queue(w, 1, 0);
}

/* ---- waiters -------------------------------------------------------- */

/* Returns the time, by the monotonic clock, when a wait ends. */
static struct timespec rdmeta_notify_deadline(int64_t timeout_us) {
        struct timespec t;

        if (timeout_us > RDMETA_NOTIFY_MAX_US)
                timeout_us = RDMETA_NOTIFY_MAX_US;
        clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_sec += (time_t)(timeout_us / 1000000);
        t.tv_nsec += (long)(timeout_us % 1000000) * 1000;
        if (t.tv_nsec >= 1000000000) {
                t.tv_nsec -= 1000000000;
                t.tv_sec++;
        }
        return t;
}

/* Sleeps until the waiter is woken or interrupted, or the time is over. Returns
 * 1 if it was woken. The caller has the lock. */
static int rdmeta_notify_sleep(rdmeta_notify_t *w, rdmeta_waiter_t *waiter,
                               int64_t timeout_us) {
        struct timespec deadline;
        int failed = 0;

        if (timeout_us == 0 || rdmeta_notify_cond_init(&waiter->cond))
                return 0;
        if (timeout_us > 0)
                deadline = rdmeta_notify_deadline(timeout_us);
        rdmeta_tailq_push_back(&w->waiters, &waiter->node);
        while (!waiter->woken && !waiter->interrupted && !failed)
                failed = timeout_us < 0
                             ? pthread_cond_wait(&waiter->cond,
                                                 &w->lock.mutex)
                             : pthread_cond_timedwait(&waiter->cond,
                                                      &w->lock.mutex,
                                                      &deadline);
        rdmeta_tailq_remove(&w->waiters, &waiter->node);
        pthread_cond_destroy(&waiter->cond);
        return waiter->woken;
}

uint64_t rdmeta_notify_until(rdmeta_notify_t *w, uint64_t since,
                             const rdmeta_str_t *topics, size_t n,
                             int64_t timeout_us) {
        rdmeta_waiter_t waiter = {
            .since = since, .topics = topics, .n = n};
        uint64_t version = rdmeta_notify_version(w);

        if (!n && version > since)
                return version;
        if (rdmeta_notify_forked(w))
                return 0;
        rdmeta_notify_lock(w);
        if (rdmeta_notify_concerns(w, topics, n, since) ||
            rdmeta_notify_sleep(w, &waiter, timeout_us))
                version = rdmeta_notify_version(w);
        else
                version = 0;
        /* Watches that are due are called by the thread that queued them. */
        rdmeta_lock_give(&w->lock);
        return version;
}

void rdmeta_notify_interrupt(rdmeta_notify_t *w) {
        rdmeta_tailq_node_t *node;

        if (rdmeta_notify_forked(w))
                return;
        rdmeta_notify_lock(w);
        node = rdmeta_tailq_first(&w->waiters);
        for (; node; node = rdmeta_tailq_next(node)) {
                rdmeta_waiter_t *waiter =
                    RDMETA_CONTAINER(node, rdmeta_waiter_t, node);

                waiter->interrupted = 1;
                pthread_cond_signal(&waiter->cond);
        }
        rdmeta_lock_give(&w->lock);
}

/* ---- watches -------------------------------------------------------- */

/* Calls a watch that was just taken off the queue. Drops the lock for the call
 * and takes it again. Returns 0 in a child that fn made by a fork, which has
 * not taken it: only the parent goes on. */
static int rdmeta_notify_call(rdmeta_notify_t *w, rdmeta_watch_t *watch) {
        const uint64_t version = rdmeta_notify_version(w);

        watch->due = 0;
        watch->running++;
        rdmeta_lock_give(&w->lock);
        watch->fn(watch->opaque, version);
        if (rdmeta_notify_forked(w))
                return 0;
        rdmeta_notify_lock(w);
        watch->running--;
        if (watch->destroyed && !watch->running)
                pthread_cond_broadcast(&w->idle);
        return 1;
}

void rdmeta_notify_unlock(rdmeta_notify_t *w) {
        size_t n = w->due.count;
        rdmeta_tailq_node_t *node;

        if (n && rdmeta_notify_forked(w))
                n = 0;
        while (n-- && (node = rdmeta_tailq_pop_front(&w->due)))
                if (!rdmeta_notify_call(
                        w, RDMETA_CONTAINER(node, rdmeta_watch_t, due_node)))
                        return;
        rdmeta_lock_give(&w->lock);
}

/* Returns a new watch, in one allocation with its strings and their bytes.
 * NULL: no memory. The caller has the lock. */
static rdmeta_watch_t *rdmeta_watch_alloc(rdmeta_notify_t *w,
                                          const rdmeta_str_t *topics,
                                          size_t n) {
        rdmeta_tmpabuf_t b;
        rdmeta_watch_t *watch;
        rdmeta_str_t *copies;
        size_t i;

        rdmeta_tmpabuf_init(&b);
        rdmeta_tmpabuf_add(&b, sizeof(*watch));
        rdmeta_tmpabuf_add_array(&b, n, sizeof(*copies));
        for (i = 0; i < n; i++)
                rdmeta_tmpabuf_add_str(&b, topics[i]);
        if (!rdmeta_tmpabuf_start(&b, w->allocator))
                return NULL;
        watch  = rdmeta_tmpabuf_alloc(&b, sizeof(*watch));
        copies = rdmeta_tmpabuf_alloc_array(&b, n, sizeof(*copies));
        for (i = 0; i < n; i++)
                copies[i] = rdmeta_tmpabuf_write_str(&b, topics[i]);
        *watch = (rdmeta_watch_t){
            .notify = w, .topics = copies, .n = n, .size = b.size};
        return rdmeta_tmpabuf_finish(&b);
}

/* Returns a watch of answers or of changes. NULL: no memory, or forked. */
static rdmeta_watch_t *rdmeta_notify_watch(rdmeta_notify_t *w,
                                           const rdmeta_str_t *topics, size_t n,
                                           void (*fn)(void *opaque,
                                                      uint64_t version),
                                           void *opaque, int answers) {
        rdmeta_watch_t *watch;

        if (rdmeta_notify_forked(w))
                return NULL;
        rdmeta_notify_lock(w);
        watch = rdmeta_watch_alloc(w, topics, n);
        if (watch) {
                watch->fn      = fn;
                watch->opaque  = opaque;
                watch->answers = answers;
                rdmeta_tailq_push_back(&w->watches, &watch->node);
        }
        rdmeta_lock_give(&w->lock);
        return watch;
}

rdmeta_watch_t *rdmeta_notify_watch_new(rdmeta_notify_t *w,
                                        const rdmeta_str_t *topics, size_t n,
                                        void (*fn)(void *opaque,
                                                   uint64_t version),
                                        void *opaque) {
        return rdmeta_notify_watch(w, topics, n, fn, opaque, 0);
}

rdmeta_watch_t *rdmeta_notify_watch_answers(rdmeta_notify_t *w,
                                            void (*fn)(void *opaque,
                                                       uint64_t version),
                                            void *opaque) {
        return rdmeta_notify_watch(w, NULL, 0, fn, opaque, 1);
}

void rdmeta_notify_watch_destroy(rdmeta_watch_t *watch) {
        rdmeta_notify_t *w = watch ? watch->notify : NULL;

        if (!watch || rdmeta_notify_lock(w))
                return;
        rdmeta_tailq_remove(&w->watches, &watch->node);
        if (watch->due)
                rdmeta_tailq_remove(&w->due, &watch->due_node);
        watch->destroyed = 1;
        while (watch->running && !rdmeta_notify_forked(w))
                pthread_cond_wait(&w->idle, &w->lock.mutex);
        rdmeta_free(w->allocator, watch, watch->size);
        rdmeta_lock_give(&w->lock);
}
