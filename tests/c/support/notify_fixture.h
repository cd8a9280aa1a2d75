/*
 * notify_fixture: for the tests of waiters and of watches. It has topics that
 * change, and a watch that logs its calls.
 */
#pragma once

#include "store/notify.h"

#include "support/testing.h"

#include <sched.h>

enum { TOPICS = 5, ROUNDS = 1500 };

/* The smallest cache: the versions at which topics last changed. */
typedef struct fixture {
        rdmeta_notify_t notify;
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
        CHECK(!rdmeta_notify_init(&w->notify, &w->allocator, changed, w));
}

static TEST_UNUSED void fixture_destroy(fixture_t *w) {
        rdmeta_notify_lock(&w->notify);
        CHECK(!rdmeta_notify_waiters(&w->notify));
        CHECK(!rdmeta_notify_watches(&w->notify) && !w->notify.due.count);
        rdmeta_notify_unlock(&w->notify);
        CHECK(!w->heap.blocks && !w->heap.bytes);
        rdmeta_notify_destroy(&w->notify);
}

/* Makes one write that changes the topics whose bits are in `mask`. Returns its
 * version. */
static TEST_UNUSED uint64_t fixture_write(fixture_t *w, unsigned mask) {
        uint64_t version;
        int i;

        rdmeta_notify_lock(&w->notify);
        CHECK(rdmeta_tailq_check(&w->notify.waiters));
        CHECK(rdmeta_tailq_check(&w->notify.watches));
        version = rdmeta_notify_version(&w->notify) + 1;
        for (i = 0; i < TOPICS; i++)
                if (mask >> i & 1)
                        w->changed[i] = version;
        rdmeta_notify_all(&w->notify, version);
        CHECK(rdmeta_tailq_check(&w->notify.due));
        rdmeta_notify_unlock(&w->notify);
        return version;
}

/* Returns the number of waiters. */
static TEST_UNUSED size_t fixture_waiters(fixture_t *w) {
        size_t n;

        rdmeta_notify_lock(&w->notify);
        CHECK(rdmeta_tailq_check(&w->notify.waiters));
        n = rdmeta_notify_waiters(&w->notify);
        rdmeta_notify_unlock(&w->notify);
        return n;
}

/* Spends a short random time, so that other threads get in between. */
static TEST_UNUSED void dither(test_rng_t *r) {
        volatile unsigned spin = (unsigned)test_below(r, 400);

        while (spin)
                spin--;
        if (test_below(r, 4) == 0)
                sched_yield();
}

/* Sets `out` to the names whose bits are in `mask`, and returns how many. */
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

/* The calls of one watch. */
typedef struct watch_log {
        fixture_t *fixture;
        int _Atomic calls;
        int _Atomic running;
        int _Atomic gone; /* 1: destroyed; calls are wrong from now on */
        uint64_t _Atomic version; /* the highest that a call passed */
        int chain; /* how many writes its calls still make */
} watch_log_t;

/* The function of a watch: logs the call. */
static TEST_UNUSED void log_call(void *opaque, uint64_t version) {
        watch_log_t *x = opaque;
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
