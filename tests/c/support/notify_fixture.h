/*
 * notify_fixture: what the tests of waiters and of watches share: the least that
 * has topics which change, and a watch that notes what it is told.
 */
#ifndef RDMETA_WAIT_WORLD_H
#define RDMETA_WAIT_WORLD_H

#include "store/notify.h"

#include "support/testing.h"

#include <sched.h>

enum { TOPICS = 5, ROUNDS = 1500 };

/* As little of a cache as there can be: when each topic last changed. */
typedef struct fixture {
        rdmeta_notify_t wait;
        test_heap_t heap;
        rdmeta_allocator_t allocator;
        uint64_t changed[TOPICS]; /* under the lock */
} fixture_t;

static const rdmeta_str_t names[TOPICS] = {
    {"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}};

static TEST_UNUSED int changed(void *opaque, const rdmeta_str_t *topic,
                               uint64_t since) {
        fixture_t *w = opaque;

        CHECK(topic->len == 1);
        CHECK(topic->data[0] >= 'a' && topic->data[0] < 'a' + TOPICS);
        return w->changed[topic->data[0] - 'a'] > since;
}

static TEST_UNUSED void fixture_init(fixture_t *w) {
        memset(w, 0, sizeof(*w));
        w->allocator = test_allocator(&w->heap);
        CHECK(!rdmeta_notify_init(&w->wait, &w->allocator, changed, w));
}

static TEST_UNUSED void fixture_destroy(fixture_t *w) {
        rdmeta_notify_lock(&w->wait);
        CHECK(!rdmeta_notify_waiters(&w->wait));
        CHECK(!rdmeta_notify_watches(&w->wait) && !w->wait.due.count);
        rdmeta_notify_unlock(&w->wait);
        CHECK(!w->heap.blocks && !w->heap.bytes);
        rdmeta_notify_destroy(&w->wait);
}

/* One write that changes the topics whose bits are in `mask`. */
static TEST_UNUSED uint64_t fixture_write(fixture_t *w, unsigned mask) {
        uint64_t version;
        int i;

        rdmeta_notify_lock(&w->wait);
        CHECK(rdmeta_tailq_check(&w->wait.waiters));
        CHECK(rdmeta_tailq_check(&w->wait.watches));
        version = rdmeta_notify_version(&w->wait) + 1;
        for (i = 0; i < TOPICS; i++)
                if (mask >> i & 1)
                        w->changed[i] = version;
        rdmeta_notify_all(&w->wait, version);
        CHECK(rdmeta_tailq_check(&w->wait.due));
        rdmeta_notify_unlock(&w->wait);
        return version;
}

static TEST_UNUSED size_t fixture_waiters(fixture_t *w) {
        size_t n;

        rdmeta_notify_lock(&w->wait);
        CHECK(rdmeta_tailq_check(&w->wait.waiters));
        n = rdmeta_notify_waiters(&w->wait);
        rdmeta_notify_unlock(&w->wait);
        return n;
}

/* A little time, never the same: other threads get in between. */
static TEST_UNUSED void dither(test_rng_t *r) {
        volatile unsigned spin = (unsigned)test_below(r, 400);

        while (spin)
                spin--;
        if (test_below(r, 4) == 0)
                sched_yield();
}

/* The names whose bits are in `mask`; how many. */
static TEST_UNUSED size_t names_of(unsigned mask, rdmeta_str_t out[TOPICS]) {
        size_t n = 0;
        int i;

        for (i = 0; i < TOPICS; i++)
                if (mask >> i & 1)
                        out[n++] = names[i];
        return n;
}

static TEST_UNUSED void spawn(pthread_t *t, void *(*fn)(void *), void *arg) {
        CHECK(!pthread_create(t, NULL, fn, arg));
}

static TEST_UNUSED void join(pthread_t t) {
        CHECK(!pthread_join(t, NULL));
}

typedef struct told {
        fixture_t *fixture;
        int _Atomic calls;
        int _Atomic running;
        int _Atomic gone; /* destroyed: no call may be seen any more */
        uint64_t _Atomic version; /* the highest it was told */
        int chain; /* writes that a call of it makes */
} told_t;

static TEST_UNUSED void tell(void *opaque, uint64_t version) {
        told_t *x      = opaque;
        uint64_t known = atomic_load(&x->version);

        CHECK(!atomic_load(&x->gone));
        atomic_fetch_add(&x->running, 1);
        atomic_fetch_add(&x->calls, 1);
        while (known < version &&
               !atomic_compare_exchange_weak(&x->version, &known, version))
                ;
        sched_yield();
        CHECK(!atomic_load(&x->gone));
        atomic_fetch_sub(&x->running, 1);
}

#endif /* RDMETA_WAIT_WORLD_H */
