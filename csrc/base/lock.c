/* See lock.h. */
#include "base/lock.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 2000 };

static struct {
        pthread_mutex_t mutex;
        rdmeta_tailq_t locks;
        pid_t pid; /* the process whose forks run the handlers; 0: none */
        _Atomic int forks; /* threads between prepare() and the fork's end */
        _Atomic unsigned ended; /* forks that have ended */
} registry = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const struct timespec nap = {0, 50000};
static _Thread_local int has_registry; /* between prepare() and the end */

/* ---- handlers ------------------------------------------------------- */

static int64_t now_ms(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Returns 1 with the mutex, or 0 if it could not have it until `end_ms`. It
 * tries, as timed calls go by a clock that may be set. */
static int take_until(pthread_mutex_t *mutex, int64_t end_ms) {
        while (pthread_mutex_trylock(mutex)) {
                if (now_ms() >= end_ms)
                        return 0;
                nanosleep(&nap, NULL);
        }
        return 1;
}

static rdmeta_lock_t *lock_of(rdmeta_tailq_node_t *node) {
        return node ? RDMETA_CONTAINER(node, rdmeta_lock_t, node) : NULL;
}

static void prepare(void) {
        const int64_t end_ms = now_ms() + WAIT_MS;
        rdmeta_tailq_node_t *n;

        atomic_fetch_add(&registry.forks, 1);
        has_registry = registry.pid == getpid() &&
                       take_until(&registry.mutex, end_ms);
        if (!has_registry)
                return;
        for (n = rdmeta_tailq_first(&registry.locks); n;
             n = rdmeta_tailq_next(n))
                lock_of(n)->held = take_until(&lock_of(n)->mutex, end_ms);
}

static void in_the_parent(void) {
        rdmeta_tailq_node_t *n;

        if (has_registry) {
                for (n = rdmeta_tailq_first(&registry.locks); n;
                     n = rdmeta_tailq_next(n))
                        if (lock_of(n)->held)
                                pthread_mutex_unlock(&lock_of(n)->mutex);
                has_registry = 0;
                pthread_mutex_unlock(&registry.mutex);
        }
        atomic_fetch_add(&registry.ended, 1);
        atomic_fetch_sub(&registry.forks, 1);
}

static void in_the_child(void) {
        rdmeta_tailq_node_t *n, *next;

        if (has_registry) {
                for (n = rdmeta_tailq_first(&registry.locks); n; n = next) {
                        rdmeta_lock_t *l = lock_of(n);

                        next = rdmeta_tailq_next(n);
                        if (l->held) {
                                l->pid = getpid();
                                pthread_mutex_unlock(&l->mutex);
                        } else {
                                rdmeta_tailq_remove(&registry.locks, n);
                        }
                }
                has_registry = 0;
                pthread_mutex_unlock(&registry.mutex);
        } else { /* all locks so far are lost */
                pthread_mutex_init(&registry.mutex, NULL);
                rdmeta_tailq_init(&registry.locks);
        }
        registry.pid = getpid();
        atomic_store(&registry.forks, 0);
}

__attribute__((constructor)) static void handlers_register(void) {
        rdmeta_tailq_init(&registry.locks);
        if (!pthread_atfork(prepare, in_the_parent, in_the_child))
                registry.pid = getpid();
}

/* ---- locks ---------------------------------------------------------- */

/* Lets a fork that has begun go first. */
static void after_you(void) {
        const unsigned ended = atomic_load(&registry.ended);

        while (atomic_load(&registry.forks) &&
               atomic_load(&registry.ended) == ended)
                nanosleep(&nap, NULL);
}

rdmeta_err_t rdmeta_lock_init(rdmeta_lock_t *l) {
        if (pthread_mutex_init(&l->mutex, NULL))
                return RDMETA_ERR_NO_MEMORY;
        l->pid    = getpid();
        l->listed = l->pid == registry.pid;
        if (!l->listed)
                return RDMETA_OK;
        after_you();
        pthread_mutex_lock(&registry.mutex);
        rdmeta_tailq_push_back(&registry.locks, &l->node);
        pthread_mutex_unlock(&registry.mutex);
        return RDMETA_OK;
}

void rdmeta_lock_destroy(rdmeta_lock_t *l) {
        if (rdmeta_lock_check(l))
                return;
        if (l->listed) {
                after_you();
                pthread_mutex_lock(&registry.mutex);
                rdmeta_tailq_remove(&registry.locks, &l->node);
                pthread_mutex_unlock(&registry.mutex);
        }
        pthread_mutex_destroy(&l->mutex);
}

rdmeta_err_t rdmeta_lock_check(const rdmeta_lock_t *l) {
        return getpid() == l->pid ? RDMETA_OK : RDMETA_ERR_FORKED;
}

rdmeta_err_t rdmeta_lock_take(rdmeta_lock_t *l) {
        if (rdmeta_lock_check(l))
                return RDMETA_ERR_FORKED;
        if (l->listed)
                after_you();
        pthread_mutex_lock(&l->mutex);
        return RDMETA_OK;
}

void rdmeta_lock_give(rdmeta_lock_t *l) {
        pthread_mutex_unlock(&l->mutex);
}
