/*
 * notify: threads that wait. `make tsan` builds this test with
 * -fsanitize=thread, because of its name. A lost wake-up, like any deadlock,
 * is ended by tools/run-c-tests.
 */
#include "support/notify_fixture.h"

#include <sys/wait.h>

enum { WAITERS = 6, FOREVER = -1 };

/* ---- waiters -------------------------------------------------------- */

typedef struct waiter {
        fixture_t *fixture;
        uint64_t stream;
        unsigned mask; /* 0: any topic */
        uint64_t until;
        uint64_t _Atomic seen;
        uint64_t result;
        int64_t timeout_us;
} waiter_t;

/* Checks that one of the waiter's topics changed. A waiter without topics may
 * be woken by any change. */
static void check_really_changed(const waiter_t *x, uint64_t since) {
        rdmeta_str_t topics[TOPICS];
        const size_t n = names_of(x->mask, topics);
        size_t i;
        int any = n == 0;

        rdmeta_notify_lock(&x->fixture->notify);
        for (i = 0; i < n; i++)
                any |= changed(x->fixture, &topics[i], since);
        rdmeta_notify_unlock(&x->fixture->notify);
        CHECK(any);
}

/* Follows the changes until the last one. */
static void *follow(void *arg) {
        waiter_t *x      = arg;
        test_rng_t r     = test_rng(x->stream);
        uint64_t version = 0, since;
        rdmeta_str_t topics[TOPICS];
        const size_t n = names_of(x->mask, topics);

        while (version < x->until) {
                since   = version;
                version = rdmeta_notify_until(&x->fixture->notify, since,
                                              topics, n, FOREVER);
                CHECK(version > since);
                check_really_changed(x, since);
                atomic_store(&x->seen, version);
                dither(&r);
        }
        return NULL;
}

static void followers_start(fixture_t *w, waiter_t *x, pthread_t *t,
                            test_rng_t *r) {
        size_t i;

        for (i = 0; i < WAITERS; i++) {
                memset(&x[i], 0, sizeof(x[i]));
                x[i].fixture = w;
                x[i].stream  = 100 + i;
                x[i].mask    = (unsigned)test_below(r, 1 << TOPICS);
                x[i].until   = ROUNDS + 1;
                spawn(&t[i], follow, &x[i]);
        }
}

/* Before the next change, the writer waits until all concerned waiters have
 * seen the last one. After one lost wake-up the test never ends. */
FIXTURE_TEST(test_no_wake_up_is_lost_one_change_at_a_time) {
        test_rng_t r = test_rng(1);
        waiter_t x[WAITERS];
        pthread_t t[WAITERS];
        uint64_t version;
        unsigned mask;
        size_t i;
        int round;

        followers_start(w, x, t, &r);
        for (round = 0; round <= ROUNDS; round++) {
                mask    = round < ROUNDS ? 1u << test_below(&r, TOPICS) : ~0u;
                version = fixture_write(w, mask);
                for (i = 0; i < WAITERS; i++)
                        while ((!x[i].mask || x[i].mask & mask) &&
                               atomic_load(&x[i].seen) < version)
                                sched_yield();
                dither(&r);
        }
        for (i = 0; i < WAITERS; i++)
                join(t[i]);
}

/* Changes come at any time. At the end every waiter has seen the last one. */
FIXTURE_TEST(test_no_wake_up_is_lost_among_many_changes) {
        test_rng_t r = test_rng(2);
        waiter_t x[WAITERS];
        pthread_t t[WAITERS];
        size_t i;
        int round;

        followers_start(w, x, t, &r);
        for (round = 0; round < ROUNDS; round++) {
                fixture_write(w, (unsigned)test_below(&r, 1 << TOPICS));
                dither(&r);
        }
        fixture_write(w, ~0u);
        for (i = 0; i < WAITERS; i++)
                join(t[i]);
}

static void *wait_once(void *arg) {
        waiter_t *x = arg;
        rdmeta_str_t topics[TOPICS];
        const size_t n = names_of(x->mask, topics);

        x->result = rdmeta_notify_until(&x->fixture->notify, x->until, topics,
                                        n, x->timeout_us);
        return NULL;
}

static waiter_t waiter(fixture_t *w, unsigned mask, int64_t timeout_us) {
        waiter_t x = {.fixture = w, .mask = mask, .timeout_us = timeout_us};
        return x;
}

static void until_waiting(fixture_t *w, size_t n) {
        while (fixture_waiters(w) != n)
                sched_yield();
}

FIXTURE_TEST(test_an_interrupt_makes_every_wait_return_0) {
        waiter_t x[WAITERS];
        pthread_t t[WAITERS];
        size_t i;
        int again;

        for (again = 0; again < 50; again++) {
                for (i = 0; i < WAITERS; i++) {
                        x[i]        = waiter(w, i % 2 ? 3 : 0, FOREVER);
                        x[i].result = 1;
                        spawn(&t[i], wait_once, &x[i]);
                }
                until_waiting(w, WAITERS);
                rdmeta_notify_interrupt(&w->notify);
                for (i = 0; i < WAITERS; i++) {
                        join(t[i]);
                        CHECK(x[i].result == 0);
                }
        }
        rdmeta_notify_interrupt(&w->notify);
}

static void *interrupt_once(void *arg) {
        waiter_t *x = arg;

        rdmeta_notify_interrupt(&x->fixture->notify);
        atomic_store(&x->seen, 1);
        return NULL;
}

/* The list of waiters is the lock's. glibc marks a mutex that a thread waits
 * for with 2. */
FIXTURE_TEST(test_an_interrupt_waits_for_the_lock) {
        pthread_t t;
        waiter_t x;

        x = waiter(w, 0, FOREVER);
        CHECK(!rdmeta_notify_lock(&w->notify));
        spawn(&t, interrupt_once, &x);
        while (!atomic_load(&x.seen) &&
               __atomic_load_n(&w->notify.lock.mutex.__data.__lock,
                               __ATOMIC_RELAXED) != 2)
                sched_yield();
        CHECK(!atomic_load(&x.seen));
        rdmeta_notify_unlock(&w->notify);
        join(t);
}

FIXTURE_TEST(test_a_change_of_another_topic_wakes_no_waiter) {
        waiter_t x;
        pthread_t t;
        int i;

        x = waiter(w, 1 << 2, FOREVER);
        spawn(&t, wait_once, &x);
        until_waiting(w, 1);
        for (i = 0; i < 20; i++)
                fixture_write(w, 1u << 1 | 1u << 3);
        rdmeta_notify_interrupt(&w->notify);
        join(t);
        CHECK(x.result == 0);
}

FIXTURE_TEST(test_a_wait_for_a_past_change_returns_at_once) {
        CHECK(fixture_write(w, 1 << 0) == 1 && fixture_write(w, 1 << 1) == 2);
        CHECK(rdmeta_notify_until(&w->notify, 0, NULL, 0, FOREVER) == 2);
        CHECK(rdmeta_notify_until(&w->notify, 1, NULL, 0, FOREVER) == 2);
        CHECK(rdmeta_notify_until(&w->notify, 0, names, 1, FOREVER) == 2);
        CHECK(rdmeta_notify_until(&w->notify, 1, names, 2, FOREVER) == 2);
        CHECK(rdmeta_notify_until(&w->notify, 1, names, 1, 0) == 0);
        CHECK(rdmeta_notify_until(&w->notify, 2, names, 2, 0) == 0);
        CHECK(rdmeta_notify_until(&w->notify, 2, NULL, 0, 0) == 0);
        CHECK(rdmeta_notify_until(&w->notify, UINT64_MAX, NULL, 0, 0) == 0);
}

/* The last wait ends in another second of the clock than it began. */
FIXTURE_TEST(test_a_wait_without_a_change_times_out) {
        int64_t timeouts[] = {0, 1, 999, 20000, 150000, 0};
        struct timespec before, after;
        int64_t waited;
        size_t i;

        for (i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
                clock_gettime(CLOCK_MONOTONIC, &before);
                if (i == 5)
                        timeouts[i] = 1150000 - before.tv_nsec / 1000;
                CHECK(!rdmeta_notify_until(&w->notify, 0, i % 2 ? names : NULL,
                                           i % 2, timeouts[i]));
                clock_gettime(CLOCK_MONOTONIC, &after);
                waited = (int64_t)(after.tv_sec - before.tv_sec) * 1000000000 +
                         (after.tv_nsec - before.tv_nsec);
                CHECK(waited >= timeouts[i] * 1000);
        }
}

/* The sum of the clock and such a time-out must not wrap into the past. */
FIXTURE_TEST(test_the_longest_timeouts_do_not_end_at_once) {
        static const int64_t timeouts[] = {INT64_MAX, INT64_MAX - 999999,
                                           INT64_C(1000000000) * 1000000 + 1,
                                           INT64_MIN, -1};
        waiter_t x;
        pthread_t t;
        size_t i;

        for (i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
                x       = waiter(w, 0, timeouts[i]);
                x.until = i;
                spawn(&t, wait_once, &x);
                until_waiting(w, 1);
                CHECK(fixture_write(w, 1) == i + 1);
                join(t);
                CHECK(x.result == i + 1);
        }
}

/* ---- fork ----------------------------------------------------------- */

static void in_the_child(fixture_t *w, rdmeta_watch_t *watch) {
        watch_log_t x = {0};

        CHECK(rdmeta_notify_forked(&w->notify));
        CHECK(rdmeta_notify_until(&w->notify, 0, NULL, 0, FOREVER) == 1);
        CHECK(rdmeta_notify_until(&w->notify, 1, NULL, 0, FOREVER) == 0);
        CHECK(rdmeta_notify_until(&w->notify, 0, names, 1, FOREVER) == 0);
        rdmeta_notify_interrupt(&w->notify);
        CHECK(!rdmeta_notify_watch_new(&w->notify, NULL, 0, log_call, &x));
        CHECK(!rdmeta_notify_lock(&w->notify));
        rdmeta_notify_unlock(&w->notify); /* leaves the watch to the parent */
        rdmeta_notify_watch_destroy(watch);
        CHECK(w->heap.blocks == 1); /* the watch whose call made the fork */
        rdmeta_notify_destroy(&w->notify);
        _Exit(0);
}

typedef struct forking {
        fixture_t *fixture;
        rdmeta_watch_t *due;
} forking_t;

/* Forks while one watch is called and another is due. */
static void fork_now(void *opaque, uint64_t version) {
        forking_t *x = opaque;
        pid_t pid    = fork();
        int status;

        CHECK(pid >= 0 && version == 1);
        if (!pid)
                in_the_child(x->fixture, x->due);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

FIXTURE_TEST(test_a_forks_child_neither_waits_nor_calls_watches) {
        forking_t forking;
        rdmeta_watch_t *first;
        watch_log_t x = {0};

        forking.fixture = w;
        first = rdmeta_notify_watch_new(&w->notify, NULL, 0, fork_now,
                                        &forking);
        forking.due = rdmeta_notify_watch_new(&w->notify, names, 2, log_call,
                                              &x);
        CHECK(first && forking.due);
        fixture_write(w, 1);
        CHECK(atomic_load(&x.calls) == 1);
        rdmeta_notify_watch_destroy(first);
        rdmeta_notify_watch_destroy(forking.due);
}

TEST_MAIN()
