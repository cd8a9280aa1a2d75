/* wait: watches, called by one thread or by several. */
#include "support/notify_fixture.h"

static void test_a_watch_is_called_once_for_each_write_that_concerns_it(void) {
        rdmeta_watch_t *any, *two;
        told_t all = {0}, some = {0};
        fixture_t w;
        char own[] = "ac";
        rdmeta_str_t topics[2] = {{own, 1}, {own + 1, 1}};

        fixture_init(&w);
        fixture_write(&w, ~0u);
        any = rdmeta_notify_watch_new(&w.wait, NULL, 0, tell, &all);
        two = rdmeta_notify_watch_new(&w.wait, topics, 2, tell, &some);
        CHECK(any && two && w.heap.blocks == 2);
        memset(own, 'e', 2); /* the names were copied */
        memset(topics, 0, sizeof(topics));
        CHECK(!all.calls && !some.calls);
        fixture_write(&w, 1 << 1);
        CHECK(all.calls == 1 && all.version == 2 && !some.calls);
        fixture_write(&w, 1 << 0 | 1 << 2);
        CHECK(all.calls == 2 && some.calls == 1 && some.version == 3);
        fixture_write(&w, 1 << 4);
        CHECK(all.calls == 3 && some.calls == 1);
        rdmeta_notify_watch_destroy(any);
        fixture_write(&w, 1 << 2);
        CHECK(all.calls == 3 && some.calls == 2 && some.version == 5);
        rdmeta_notify_watch_destroy(two);
        rdmeta_notify_watch_destroy(NULL);
        fixture_write(&w, ~0u);
        CHECK(some.calls == 2);
        fixture_destroy(&w);
}

static void test_the_same_version_again_tells_nobody(void) {
        rdmeta_watch_t *watch;
        told_t x = {0};
        fixture_t w;

        fixture_init(&w);
        watch = rdmeta_notify_watch_new(&w.wait, NULL, 0, tell, &x);
        fixture_write(&w, 1);
        rdmeta_notify_lock(&w.wait);
        rdmeta_notify_all(&w.wait, 1);
        rdmeta_notify_unlock(&w.wait);
        CHECK(x.calls == 1);
        rdmeta_notify_watch_destroy(watch);
        fixture_destroy(&w);
}

static void test_a_watch_of_answers_is_told_of_each_and_of_nothing_else(void) {
        rdmeta_watch_t *answers, *changes;
        told_t x = {0}, y = {0};
        fixture_t w;
        int i;

        fixture_init(&w);
        answers = rdmeta_notify_watch_answers(&w.wait, tell, &x);
        changes = rdmeta_notify_watch_new(&w.wait, NULL, 0, tell, &y);
        fixture_write(&w, 1);
        CHECK(x.calls == 0 && y.calls == 1);
        for (i = 1; i <= 3; i++) { /* the version stays what it is */
                rdmeta_notify_lock(&w.wait);
                rdmeta_notify_answered(&w.wait);
                rdmeta_notify_answered(&w.wait);
                rdmeta_notify_unlock(&w.wait);
                CHECK(x.calls == i && x.version == 1 && y.calls == 1);
        }
        rdmeta_notify_watch_destroy(answers);
        rdmeta_notify_watch_destroy(changes);
        fixture_destroy(&w);
}

/* Two notices under one lock are one call, which tells the later version. */
static void test_a_queued_call_tells_what_came_since(void) {
        rdmeta_watch_t *watch;
        told_t x = {0};
        fixture_t w;

        fixture_init(&w);
        watch = rdmeta_notify_watch_new(&w.wait, NULL, 0, tell, &x);
        rdmeta_notify_lock(&w.wait);
        rdmeta_notify_all(&w.wait, 1);
        rdmeta_notify_all(&w.wait, 2);
        rdmeta_notify_unlock(&w.wait);
        CHECK(x.calls == 1 && x.version == 2);
        rdmeta_notify_watch_destroy(watch);
        fixture_destroy(&w);
}

/* Writes topic 1, and then 0 again, so that both watches follow. */
static void tell_and_write(void *opaque, uint64_t version) {
        told_t *x = opaque;

        atomic_fetch_add(&x->calls, 1);
        atomic_store(&x->version, version);
        if (x->chain-- > 0)
                fixture_write(x->fixture, 1 << 0 | 1 << 1);
        CHECK(rdmeta_notify_until(&x->fixture->wait, 0, NULL, 0, 0) >= version);
}

static void test_a_watch_may_write(void) {
        enum { CHAIN = 10 };
        rdmeta_watch_t *writes, *reads;
        told_t writer = {.chain = CHAIN}, reader = {0};
        fixture_t w;

        fixture_init(&w);
        writer.fixture = &w;
        writes = rdmeta_notify_watch_new(&w.wait, names, 1, tell_and_write,
                                         &writer);
        reads  = rdmeta_notify_watch_new(&w.wait, names + 1, 1, tell, &reader);
        fixture_write(&w, 1 << 0);
        CHECK(rdmeta_notify_version(&w.wait) == 1 + CHAIN);
        CHECK(writer.calls == 1 + CHAIN && writer.chain == -1);
        CHECK(reader.calls >= 1 && reader.version == 1 + CHAIN);
        rdmeta_notify_watch_destroy(reads);
        rdmeta_notify_watch_destroy(writes);
        fixture_destroy(&w);
}

/* What a watch may do with others, although not with itself. */
typedef struct replacer {
        fixture_t *fixture;
        rdmeta_watch_t *other;
        told_t *told;
        int calls;
} replacer_t;

static void replace_other(void *opaque, uint64_t version) {
        replacer_t *x = opaque;

        CHECK(version == rdmeta_notify_version(&x->fixture->wait));
        x->calls++;
        rdmeta_notify_watch_destroy(x->other);
        x->other = rdmeta_notify_watch_new(&x->fixture->wait, NULL, 0, tell,
                                           x->told);
        CHECK(x->other);
}

static void test_a_watch_may_destroy_and_make_others(void) {
        rdmeta_watch_t *first;
        told_t told  = {0};
        replacer_t x = {0};
        fixture_t w;
        int i;

        fixture_init(&w);
        x.fixture = &w;
        x.told  = &told;
        first   = rdmeta_notify_watch_new(&w.wait, NULL, 0, replace_other, &x);
        x.other = rdmeta_notify_watch_new(&w.wait, NULL, 0, tell, &told);
        for (i = 1; i <= 5; i++) {
                fixture_write(&w, 1);
                CHECK(x.calls == i && !told.calls);
        }
        rdmeta_notify_watch_destroy(first);
        fixture_write(&w, 1);
        CHECK(told.calls == 1);
        rdmeta_notify_watch_destroy(x.other);
        fixture_destroy(&w);
}

static void test_without_memory_there_is_no_watch_and_no_harm(void) {
        rdmeta_watch_t *watch;
        told_t x = {0};
        fixture_t w;

        fixture_init(&w);
        w.heap.fail_at = 1;
        CHECK(!rdmeta_notify_watch_new(&w.wait, names, 2, tell, &x));
        CHECK(!w.wait.watches.count && !w.heap.blocks);
        watch = rdmeta_notify_watch_new(&w.wait, names, 2, tell, &x);
        CHECK(watch && w.heap.calls == 2 && w.heap.blocks == 1);
        fixture_write(&w, 1);
        CHECK(x.calls == 1);
        rdmeta_notify_watch_destroy(watch);
        fixture_destroy(&w);
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

/* With several writers, no write goes without the call that it owes. */
static void test_writers_side_by_side_tell_every_watch(void) {
        enum { WRITERS = 3 };
        writer_t x[WRITERS];
        told_t told[TOPICS] = {0};
        rdmeta_watch_t *watches[TOPICS];
        pthread_t t[WRITERS];
        fixture_t w;
        int i;

        fixture_init(&w);
        for (i = 0; i < TOPICS; i++)
                watches[i] = rdmeta_notify_watch_new(&w.wait, &names[i], 1, tell,
                                                     &told[i]);
        for (i = 0; i < WRITERS; i++) {
                x[i] = (writer_t){.fixture = &w, .stream = 200 + (uint64_t)i};
                spawn(&t[i], write_many, &x[i]);
        }
        for (i = 0; i < WRITERS; i++)
                join(t[i]);
        CHECK(rdmeta_notify_version(&w.wait) == (uint64_t)WRITERS * ROUNDS);
        for (i = 0; i < TOPICS; i++) {
                CHECK(told[i].version >= w.changed[i] && !told[i].running);
                rdmeta_notify_watch_destroy(watches[i]);
        }
        fixture_destroy(&w);
}

static void *make_and_destroy(void *arg) {
        writer_t *x  = arg;
        test_rng_t r = test_rng(x->stream);
        rdmeta_watch_t *watch;
        told_t *told;
        int i, spins;

        for (i = 0; i < ROUNDS / 3; i++) {
                told = calloc(1, sizeof(*told));
                CHECK(told);
                watch = rdmeta_notify_watch_new(&x->fixture->wait, names,
                                                test_below(&r, TOPICS), tell,
                                                told);
                CHECK(watch);
                for (spins = (int)test_below(&r, 8); spins; spins--)
                        dither(&r);
                rdmeta_notify_watch_destroy(watch);
                atomic_store(&told->gone, 1);
                CHECK(!atomic_load(&told->running));
                free(told);
        }
        return NULL;
}

/* Had a call been running, or come later, it would have used freed memory. */
static void test_a_destroyed_watch_runs_no_more(void) {
        enum { WRITERS = 2, MAKERS = 3 };
        writer_t x[WRITERS + MAKERS];
        pthread_t t[WRITERS + MAKERS];
        int _Atomic stop = 0;
        fixture_t w;
        int i;

        fixture_init(&w);
        for (i = 0; i < WRITERS + MAKERS; i++) {
                x[i] = (writer_t){.fixture  = &w,
                                  .stream = 300 + (uint64_t)i,
                                  .stop   = &stop};
                spawn(&t[i], i < WRITERS ? write_many : make_and_destroy,
                      &x[i]);
        }
        for (i = WRITERS; i < WRITERS + MAKERS; i++)
                join(t[i]);
        atomic_store(&stop, 1);
        for (i = 0; i < WRITERS; i++)
                join(t[i]);
        fixture_destroy(&w);
}

int main(void) {
        test_begin(120);
        RUN(test_a_watch_is_called_once_for_each_write_that_concerns_it);
        RUN(test_the_same_version_again_tells_nobody);
        RUN(test_a_watch_of_answers_is_told_of_each_and_of_nothing_else);
        RUN(test_a_queued_call_tells_what_came_since);
        RUN(test_a_watch_may_write);
        RUN(test_a_watch_may_destroy_and_make_others);
        RUN(test_without_memory_there_is_no_watch_and_no_harm);
        RUN(test_writers_side_by_side_tell_every_watch);
        RUN(test_a_destroyed_watch_runs_no_more);
        return 0;
}
