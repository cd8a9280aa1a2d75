/*
 * notify: a million rounds of looking, going to sleep and being woken, each at
 * a moment of its own. The writer makes a change only after all waiters that
 * the last one concerned have seen that. So a lost wake-up is never made good
 * by the next change. The test counts the waits that return, so it also finds a
 * wrong wake-up.
 */
#include "support/notify_fixture.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { MANY = 30000 };
#else
enum { MANY = 1000000 };
#endif

enum { WAITERS = 3, LOST_S = 20 };

typedef struct waiter {
        fixture_t *fixture;
        test_rng_t rng;
        unsigned mask; /* 0: any topic */
        uint64_t returns, slept;
        uint64_t _Atomic seen;
} waiter_t;

static int _Atomic over;

/* Spends a random time. So some waiters go to sleep long before the change, and
 * some just as it is made. Some find it already made, and some look first
 * without waiting. */
static void dawdle(test_rng_t *r) {
        volatile unsigned spin = (unsigned)test_below(
                r, test_below(r, 8) ? 60 : 3000);

        while (spin)
                spin--;
        if (test_below(r, 64) == 0)
                sched_yield();
}

static void *wait_always(void *arg) {
        waiter_t *x             = arg;
        rdmeta_notify_t *notify = &x->fixture->notify;
        uint64_t since = 0, version;
        rdmeta_str_t topics[TOPICS];
        const size_t n = names_of(x->mask, topics);

        for (;;) {
                dawdle(&x->rng);
                version = 0;
                if (test_below(&x->rng, 2))
                        version = rdmeta_notify_until(notify, since, topics,
                                                      n, 0);
                if (!version) {
                        dawdle(&x->rng);
                        x->slept += rdmeta_notify_version(notify) == since;
                        version = rdmeta_notify_until(notify, since, topics,
                                                      n, -1);
                }
                if (atomic_load_explicit(&over, memory_order_acquire))
                        return NULL;
                CHECK(version > since);
                x->returns++;
                since = version;
                atomic_store(&x->seen, version);
        }
}

static void until_seen(const waiter_t *x, uint64_t version) {
        const time_t end = time(NULL) + LOST_S;
        unsigned spins   = 0;

        while (atomic_load(&x->seen) < version)
                if (++spins % 2000 == 0) {
                        CHECK(time(NULL) < end); /* the wake-up was lost */
                        sched_yield();
                }
}

TEST(test_no_wake_up_is_lost_or_wrong_in_a_million_rounds) {
        static const unsigned masks[WAITERS] = {1u << 0, 1u << 0 | 1u << 1,
                                                0};
        uint64_t version = 0, concerned[WAITERS] = {0}, slept = 0;
        test_rng_t r = test_rng(9);
        pthread_t t[WAITERS];
        waiter_t x[WAITERS];
        fixture_t w;
        int i, round;

        fixture_init(&w);
        for (i = 0; i < WAITERS; i++) {
                memset(&x[i], 0, sizeof(x[i]));
                x[i].fixture = &w;
                x[i].rng     = test_rng(20 + (uint64_t)i);
                x[i].mask    = masks[i];
                spawn(&t[i], wait_always, &x[i]);
        }
        for (round = 0; round < MANY / WAITERS; round++) {
                const unsigned mask = 1u << test_below(&r, 3);

                dawdle(&r);
                version = fixture_write(&w, mask);
                for (i = 0; i < WAITERS; i++) {
                        if (masks[i] && !(masks[i] & mask))
                                continue;
                        concerned[i]++;
                        until_seen(&x[i], version);
                }
        }
        atomic_store_explicit(&over, 1, memory_order_release);
        fixture_write(&w, ~0u);
        for (i = 0; i < WAITERS; i++) {
                join(t[i]);
                CHECK(x[i].returns == concerned[i]);
                slept += x[i].slept;
        }
        fprintf(stderr, "  %d rounds, %" PRIu64 " went to sleep first\n",
                round * WAITERS, slept);
        CHECK(slept > MANY / 100 && slept < (uint64_t)MANY);
        fixture_destroy(&w);
}

TEST_MAIN()
