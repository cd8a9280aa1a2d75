/* lock: forks while threads take locks without a pause. */
#include "base/lock.h"
#include "support/testing.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { MANY = 1000, FORKS = 12 };

/* TSan's search for deadlocks has room for 64 locks that a thread has. */
__attribute__((visibility("default"))) const char *
__tsan_default_options(void);
const char *__tsan_default_options(void) {
        return "detect_deadlocks=0";
}

/* `a` and `b` differ only while a thread has the lock. */
typedef struct pair {
        rdmeta_lock_t lock;
        int a, b;
} pair_t;

typedef struct fixture {
        pair_t *pairs;
        size_t n;
        _Atomic int stop;
} fixture_t;

static void pair_move(pair_t *p) {
        CHECK(!rdmeta_lock_take(&p->lock));
        CHECK(p->a == p->b);
        p->a++;
        if (p->a % 64 == 0)
                sched_yield();
        p->b++;
        rdmeta_lock_give(&p->lock);
}

static void *write_pairs(void *opaque) {
        fixture_t *f = opaque;
        size_t i;

        while (!atomic_load(&f->stop))
                for (i = 0; i < f->n; i++)
                        pair_move(&f->pairs[i]);
        return NULL;
}

static void *come_and_go(void *opaque) {
        fixture_t *f = opaque;

        while (!atomic_load(&f->stop)) {
                pair_t *p = calloc(1, sizeof(*p));

                CHECK(p && !rdmeta_lock_init(&p->lock));
                pair_move(p);
                rdmeta_lock_destroy(&p->lock);
                free(p);
        }
        return NULL;
}

static void check_pairs(fixture_t *f) {
        size_t i;

        for (i = 0; i < f->n; i++)
                pair_move(&f->pairs[i]);
}

static void ended_well(pid_t pid) {
        int status;

        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* Each child has all locks, and so has its own child. */
static void fork_once(fixture_t *f) {
        pid_t pid = fork();

        if (pid) {
                ended_well(pid);
                return;
        }
        check_pairs(f);
        pid = fork();
        if (pid) {
                ended_well(pid);
                check_pairs(f);
        } else {
                check_pairs(f);
                rdmeta_lock_destroy(&f->pairs[0].lock);
        }
        _Exit(0);
}

static int64_t now_ms(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void fork_among(size_t n, int forks) {
        fixture_t f = {calloc(n, sizeof(pair_t)), n, 0};
        pthread_t threads[4];
        size_t i;
        int k;

        CHECK(f.pairs);
        for (i = 0; i < n; i++)
                CHECK(!rdmeta_lock_init(&f.pairs[i].lock));
        for (k = 0; k < 4; k++)
                CHECK(!pthread_create(&threads[k], NULL,
                                      k < 2 ? write_pairs : come_and_go, &f));
        for (k = 0; k < forks; k++)
                fork_once(&f);
        atomic_store(&f.stop, 1);
        for (k = 0; k < 4; k++)
                CHECK(!pthread_join(threads[k], NULL));
        check_pairs(&f);
        for (i = 0; i < n; i++)
                rdmeta_lock_destroy(&f.pairs[i].lock);
        free(f.pairs);
}

TEST(test_a_child_has_every_lock_beside_a_writer_that_never_rests) {
        fork_among(1, FORKS);
        fork_among(30, FORKS);
        fork_among(MANY, FORKS);
}

static void *fork_often(void *opaque) {
        int k;

        for (k = 0; k < FORKS; k++)
                fork_once(opaque);
        return NULL;
}

TEST(test_two_threads_fork_at_once) {
        pair_t pairs[3] = {0};
        fixture_t f     = {pairs, 3, 0};
        pthread_t threads[3];
        int k;

        for (k = 0; k < 3; k++)
                CHECK(!rdmeta_lock_init(&pairs[k].lock));
        for (k = 0; k < 3; k++)
                CHECK(!pthread_create(&threads[k], NULL,
                                      k ? fork_often : write_pairs, &f));
        for (k = 1; k < 3; k++)
                CHECK(!pthread_join(threads[k], NULL));
        atomic_store(&f.stop, 1);
        CHECK(!pthread_join(threads[0], NULL));
        for (k = 0; k < 3; k++)
                rdmeta_lock_destroy(&pairs[k].lock);
}

/* ---- lost locks ----------------------------------------------------- */

static void is_lost(rdmeta_lock_t *l) {
        CHECK(rdmeta_lock_check(l) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_lock_take(l) == RDMETA_ERR_FORKED);
}

/* The thread has the lock itself, so the handlers wait for as long as they
 * can. The child's own forks do not wait again. */
TEST(test_a_fork_waits_2_s_and_the_lock_is_lost_in_the_child) {
        const int64_t begun = now_ms();
        pair_t free_one = {0}, held = {0}, more = {0};
        pid_t pid;

        CHECK(!rdmeta_lock_init(&held.lock));
        CHECK(!rdmeta_lock_init(&free_one.lock));
        CHECK(!rdmeta_lock_take(&held.lock));
        pid = fork();
        if (!pid) {
                CHECK(now_ms() - begun >= 1900);
                pair_move(&free_one);
                is_lost(&held.lock);
                CHECK(!rdmeta_lock_init(&more.lock));
                pid = fork();
                if (!pid)
                        _Exit(now_ms() - begun > 3900);
                ended_well(pid);
                rdmeta_lock_destroy(&held.lock);
                rdmeta_lock_destroy(&free_one.lock);
                rdmeta_lock_destroy(&more.lock);
                _Exit(0);
        }
        ended_well(pid);
        rdmeta_lock_give(&held.lock);
        pair_move(&held);
        rdmeta_lock_destroy(&held.lock);
        rdmeta_lock_destroy(&free_one.lock);
}

TEST(test_without_handlers_a_child_has_only_its_own_locks) {
        pair_t old = {0}, own = {0};
        pid_t pid;

        CHECK(!rdmeta_lock_init(&old.lock));
        CHECK(!rdmeta_lock_take(&old.lock));
        pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (!pid) {
                is_lost(&old.lock);
                CHECK(!rdmeta_lock_init(&own.lock));
                pair_move(&own);
                rdmeta_lock_destroy(&own.lock);
                rdmeta_lock_destroy(&old.lock);
                _Exit(0);
        }
        ended_well(pid);
        rdmeta_lock_give(&old.lock);
        rdmeta_lock_destroy(&old.lock);
}

TEST_MAIN()
