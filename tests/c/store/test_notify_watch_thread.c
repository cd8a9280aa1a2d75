/* notify: watches, called by one thread or by several. */
#include "support/notify_fixture.h"

FIXTURE_TEST(test_a_watch_is_called_once_for_each_write_that_concerns_it) {
        rdmeta_watch_t *any, *two;
        watch_log_t all = {0}, some = {0};
        char own[] = "ac";
        rdmeta_str_t topics[2] = {{own, 1}, {own + 1, 1}};

        fixture_write(w, ~0u);
        any = rdmeta_notify_watch_new(&w->notify, NULL, 0, log_call, &all);
        two = rdmeta_notify_watch_new(&w->notify, topics, 2, log_call, &some);
        CHECK(any && two && w->heap.blocks == 2);
        memset(own, 'e', 2); /* the names were copied */
        memset(topics, 0, sizeof(topics));
        CHECK(!all.calls && !some.calls);
        fixture_write(w, 1 << 1);
        CHECK(all.calls == 1 && all.version == 2 && !some.calls);
        fixture_write(w, 1 << 0 | 1 << 2);
        CHECK(all.calls == 2 && some.calls == 1 && some.version == 3);
        fixture_write(w, 1 << 4);
        CHECK(all.calls == 3 && some.calls == 1);
        rdmeta_notify_watch_destroy(any);
        fixture_write(w, 1 << 2);
        CHECK(all.calls == 3 && some.calls == 2 && some.version == 5);
        rdmeta_notify_watch_destroy(two);
        rdmeta_notify_watch_destroy(NULL);
        fixture_write(w, ~0u);
        CHECK(some.calls == 2);
}

FIXTURE_TEST(test_the_same_version_again_calls_no_watch) {
        rdmeta_watch_t *watch;
        watch_log_t x = {0};

        watch = rdmeta_notify_watch_new(&w->notify, NULL, 0, log_call, &x);
        fixture_write(w, 1);
        rdmeta_notify_lock(&w->notify);
        rdmeta_notify_all(&w->notify, 1);
        rdmeta_notify_unlock(&w->notify);
        CHECK(x.calls == 1);
        rdmeta_notify_watch_destroy(watch);
}

FIXTURE_TEST(test_a_watch_of_answers_is_called_for_answers_only) {
        rdmeta_watch_t *answers, *changes;
        watch_log_t x = {0}, y = {0};
        int i;

        answers = rdmeta_notify_watch_answers(&w->notify, log_call, &x);
        changes = rdmeta_notify_watch_new(&w->notify, NULL, 0, log_call, &y);
        fixture_write(w, 1);
        CHECK(x.calls == 0 && y.calls == 1);
        for (i = 1; i <= 3; i++) { /* the version stays what it is */
                rdmeta_notify_lock(&w->notify);
                rdmeta_notify_answered(&w->notify);
                rdmeta_notify_answered(&w->notify);
                rdmeta_notify_unlock(&w->notify);
                CHECK(x.calls == i && x.version == 1 && y.calls == 1);
        }
        rdmeta_notify_watch_destroy(answers);
        rdmeta_notify_watch_destroy(changes);
}

/* Two versions under one lock make one call, with the later version. */
FIXTURE_TEST(test_a_queued_call_reports_the_latest_version) {
        rdmeta_watch_t *watch;
        watch_log_t x = {0};

        watch = rdmeta_notify_watch_new(&w->notify, NULL, 0, log_call, &x);
        rdmeta_notify_lock(&w->notify);
        rdmeta_notify_all(&w->notify, 1);
        rdmeta_notify_all(&w->notify, 2);
        rdmeta_notify_unlock(&w->notify);
        CHECK(x.calls == 1 && x.version == 2);
        rdmeta_notify_watch_destroy(watch);
}

/* Writes topics 0 and 1, so that both watches are called. */
static void log_and_write(void *opaque, uint64_t version) {
        watch_log_t *x = opaque;

        atomic_fetch_add(&x->calls, 1);
        atomic_store(&x->version, version);
        if (x->chain-- > 0)
                fixture_write(x->fixture, 1 << 0 | 1 << 1);
        CHECK(rdmeta_notify_until(&x->fixture->notify, 0, NULL, 0, 0) >=
              version);
}

FIXTURE_TEST(test_a_watch_may_write) {
        enum { CHAIN = 10 };
        rdmeta_watch_t *writes, *reads;
        watch_log_t writer = {.chain = CHAIN}, reader = {0};

        writer.fixture = w;
        writes = rdmeta_notify_watch_new(&w->notify, names, 1, log_and_write,
                                         &writer);
        reads  = rdmeta_notify_watch_new(&w->notify, names + 1, 1, log_call,
                                         &reader);
        fixture_write(w, 1 << 0);
        CHECK(rdmeta_notify_version(&w->notify) == 1 + CHAIN);
        CHECK(writer.calls == 1 + CHAIN && writer.chain == -1);
        CHECK(reader.calls >= 1 && reader.version == 1 + CHAIN);
        rdmeta_notify_watch_destroy(reads);
        rdmeta_notify_watch_destroy(writes);
}

/* A watch that destroys another watch and makes a new one. */
typedef struct replacer {
        fixture_t *fixture;
        rdmeta_watch_t *other;
        watch_log_t *log;
        int calls;
} replacer_t;

static void replace_other(void *opaque, uint64_t version) {
        replacer_t *x = opaque;

        CHECK(version == rdmeta_notify_version(&x->fixture->notify));
        x->calls++;
        rdmeta_notify_watch_destroy(x->other);
        x->other = rdmeta_notify_watch_new(&x->fixture->notify, NULL, 0,
                                           log_call, x->log);
        CHECK(x->other);
}

FIXTURE_TEST(test_a_watch_may_destroy_and_make_others) {
        rdmeta_watch_t *first;
        watch_log_t log = {0};
        replacer_t x = {0};
        int i;

        x.fixture = w;
        x.log     = &log;
        first     = rdmeta_notify_watch_new(&w->notify, NULL, 0, replace_other,
                                            &x);
        x.other   = rdmeta_notify_watch_new(&w->notify, NULL, 0, log_call,
                                            &log);
        for (i = 1; i <= 5; i++) {
                fixture_write(w, 1);
                CHECK(x.calls == i && !log.calls);
        }
        rdmeta_notify_watch_destroy(first);
        fixture_write(w, 1);
        CHECK(log.calls == 1);
        rdmeta_notify_watch_destroy(x.other);
}

FIXTURE_TEST(test_without_memory_there_is_no_watch_and_no_harm) {
        rdmeta_watch_t *watch;
        watch_log_t x = {0};

        w->heap.fail_at = 1;
        CHECK(!rdmeta_notify_watch_new(&w->notify, names, 2, log_call, &x));
        CHECK(!w->notify.watches.count && !w->heap.blocks);
        watch = rdmeta_notify_watch_new(&w->notify, names, 2, log_call, &x);
        CHECK(watch && w->heap.calls == 2 && w->heap.blocks == 1);
        fixture_write(w, 1);
        CHECK(x.calls == 1);
        rdmeta_notify_watch_destroy(watch);
}

typedef struct writer {
        fixture_t *fixture;
        uint64_t stream;
        int _Atomic *stop; /* NULL: ROUNDS writes */
        uint64_t last[TOPICS];
} writer_t;

static void *write_many(void *arg) {
        writer_t *x  = arg;
        test_rng_t r = test_rng(x->stream);
        int i, topic;

        for (i = 0; x->stop ? !atomic_load(x->stop) : i < ROUNDS; i++) {
                topic          = (int)test_below(&r, TOPICS);
                x->last[topic] = fixture_write(x->fixture, 1u << topic);
                dither(&r);
        }
        return NULL;
}

/* With several writers, each write is followed by a call of its watches. */
FIXTURE_TEST(test_writers_side_by_side_call_every_watch) {
        enum { WRITERS = 3 };
        writer_t x[WRITERS];
        watch_log_t logs[TOPICS] = {0};
        rdmeta_watch_t *watches[TOPICS];
        pthread_t t[WRITERS];
        int i;

        for (i = 0; i < TOPICS; i++)
                watches[i] = rdmeta_notify_watch_new(&w->notify, &names[i], 1,
                                                     log_call, &logs[i]);
        for (i = 0; i < WRITERS; i++) {
                x[i] = (writer_t){.fixture = w, .stream = 200 + (uint64_t)i};
                spawn(&t[i], write_many, &x[i]);
        }
        for (i = 0; i < WRITERS; i++)
                join(t[i]);
        CHECK(rdmeta_notify_version(&w->notify) == (uint64_t)WRITERS * ROUNDS);
        for (i = 0; i < TOPICS; i++) {
                CHECK(logs[i].version >= w->changed[i] && !logs[i].running);
                rdmeta_notify_watch_destroy(watches[i]);
        }
}

static void *make_and_destroy(void *arg) {
        writer_t *x  = arg;
        test_rng_t r = test_rng(x->stream);
        rdmeta_watch_t *watch;
        watch_log_t *log;
        int i, spins;

        for (i = 0; i < ROUNDS / 3; i++) {
                log = calloc(1, sizeof(*log));
                CHECK(log);
                watch = rdmeta_notify_watch_new(&x->fixture->notify, names,
                                                test_below(&r, TOPICS),
                                                log_call, log);
                CHECK(watch);
                for (spins = (int)test_below(&r, 8); spins; spins--)
                        dither(&r);
                rdmeta_notify_watch_destroy(watch);
                atomic_store(&log->gone, 1);
                CHECK(!atomic_load(&log->running));
                free(log);
        }
        return NULL;
}

/* A call that still ran, or came later, would use freed memory. */
FIXTURE_TEST(test_a_destroyed_watch_runs_no_more) {
        enum { WRITERS = 2, MAKERS = 3 };
        writer_t x[WRITERS + MAKERS];
        pthread_t t[WRITERS + MAKERS];
        int _Atomic stop = 0;
        int i;

        for (i = 0; i < WRITERS + MAKERS; i++) {
                x[i] = (writer_t){.fixture = w,
                                  .stream  = 300 + (uint64_t)i,
                                  .stop    = &stop};
                spawn(&t[i], i < WRITERS ? write_many : make_and_destroy,
                      &x[i]);
        }
        for (i = WRITERS; i < WRITERS + MAKERS; i++)
                join(t[i]);
        atomic_store(&stop, 1);
        for (i = 0; i < WRITERS; i++)
                join(t[i]);
}

TEST_MAIN()
