/* cache: every call that reads or changes what writers write takes their lock.
 * A call that takes none, or takes it only sometimes, is a race that few runs
 * show. */
#include "support/cache_fixture.h"

#include <pthread.h>
#include <sched.h>

typedef struct caller {
        cw_t w;
        void (*call)(struct caller *x);
        rdmeta_image_t *image;
        rdmeta_handle_t *handle;
        rdmeta_reader_t *reader;
        rdmeta_watch_t *watch;
        _Atomic int done;
} caller_t;

static const rdmeta_str_t names[] = {GEN_STR("a"), GEN_STR("b")};

static int32_t visit(void *opaque, const void *item) {
        (void)opaque, (void)item;
        return 0;
}

static int32_t visit_due(void *opaque, const rdmeta_due_t *due) {
        return visit(opaque, due);
}

static int32_t visit_name(void *opaque, const rdmeta_str_t *name) {
        return visit(opaque, name);
}

static int32_t visit_change(void *opaque, const rdmeta_change_t *change) {
        return visit(opaque, change);
}

static int32_t visit_topic(void *opaque, const rdmeta_topic_t *topic) {
        return visit(opaque, topic);
}

static void seen(void *opaque, uint64_t version) {
        (void)opaque, (void)version;
}

#define CALL(name, action)                                                   \
        static void name(caller_t *x) {                                      \
                rdmeta_cache_t *c       = x->w.cache;                        \
                const rdmeta_time_t now = x->w.now;                          \
                size_t n                = 0;                                 \
                                                                             \
                (void)c, (void)now, (void)n;                                 \
                action;                                                      \
        }

CALL(apply, rdmeta_cache_apply(c, "", 0, 12, NULL, now, NULL))
CALL(apply_failure, rdmeta_cache_apply_failure(c, NULL, now))
CALL(hint, { rdmeta_str_t ask[2];
             rdmeta_cache_hint(c, names, 2, 0, 0, now, ask, &n); })
CALL(leader_hint, { const rdmeta_leader_hint_t h = {.topic = GEN_STR("a")};
                    rdmeta_cache_apply_leader_hint(c, &h, now, NULL); })
CALL(purge_hints, rdmeta_cache_purge_hints(c, names, 2, now))
CALL(purge, rdmeta_cache_purge(c, now))
CALL(forget, rdmeta_cache_forget(c, names, 2, now))
CALL(sweep, rdmeta_cache_sweep(c, now))
CALL(due, rdmeta_cache_due(c, now.mono_us, 0, visit_due, NULL))
CALL(stats, { rdmeta_stats_t s; rdmeta_cache_stats(c, &s); })
CALL(check, rdmeta_cache_check(c))
CALL(changes, { uint64_t until; int32_t resync;
                rdmeta_cache_changes(c, 0, visit_change, NULL, &until,
                                     &resync); })
CALL(load, rdmeta_cache_load(c, x->image, now))
CALL(take_image, x->image = rdmeta_cache_image(c, now))
CALL(drop_image, rdmeta_image_unref(x->image))
CALL(reader, x->reader = rdmeta_reader_new(c, 0))
CALL(walk, rdmeta_reader_walk(x->reader, "", 0, 7, now.mono_us, visit_topic,
                              NULL))
CALL(drop_reader, rdmeta_reader_destroy(x->reader))
CALL(resolve, x->handle = rdmeta_resolve(c, "a", 1))
CALL(resolved, rdmeta_cache_resolved(c, visit_name, NULL))
CALL(release, rdmeta_handle_release(x->handle))
CALL(watch, x->watch = rdmeta_watch_new(c, names, 2, seen, NULL))
CALL(drop_watch, rdmeta_watch_destroy(x->watch))
CALL(wait_change, rdmeta_cache_wait(c, 0, names, 2, 0))

static void *call_once(void *arg) {
        caller_t *x = arg;

        x->call(x);
        atomic_store(&x->done, 1);
        return NULL;
}

/* Makes a call while the lock is taken. glibc marks a mutex that a thread waits
 * for with 2. */
static void waits_for_the_lock(caller_t *x, void (*call)(caller_t *x)) {
        rdmeta_notify_t *notify = &x->w.cache->notify;
        pthread_t thread;

        x->call = call;
        atomic_store(&x->done, 0);
        CHECK(!rdmeta_notify_lock(notify));
        CHECK(!pthread_create(&thread, NULL, call_once, x));
        while (!atomic_load(&x->done) &&
               __atomic_load_n(&notify->lock.mutex.__data.__lock,
                               __ATOMIC_RELAXED) != 2)
                sched_yield();
        CHECK(!atomic_load(&x->done));
        rdmeta_notify_unlock(notify);
        CHECK(!pthread_join(thread, NULL));
}

TEST(test_every_call_of_a_writer_waits_for_the_lock) {
        static void (*const calls[])(caller_t *x) = {
                hint,       apply,      apply_failure, leader_hint, purge_hints,
                take_image, load,       drop_image,    reader,      walk,
                resolve,    resolved,   release,       watch,       wait_change,
                changes,    due,        stats,         check,       drop_watch,
                sweep,      forget,     purge,         drop_reader};
        static caller_t x;
        size_t i;

        cw_init(&x.w, NULL);
        CHECK(!cw_say(&x.w, "a#a 0:1@1; c#c 0:1@1"));
        for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
                waits_for_the_lock(&x, calls[i]);
        cw_destroy(&x.w);
}

TEST_MAIN()
