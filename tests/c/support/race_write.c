/* race_write: writers of every kind. One step makes one writing call. */
#include "support/race_fixture.h"

#include <sched.h>

void race_dither(test_rng_t *rng) {
        volatile unsigned spin = (unsigned)test_below(rng, 300);

        while (spin)
                spin--;
        if (test_below(rng, 8) == 0)
                sched_yield();
}

static uint32_t any_topic(race_writer_t *x) {
        return (uint32_t)test_below(&x->rng, RACE_TOPICS);
}

static void write_apply(race_writer_t *x, rdmeta_request_t *asked,
                        int version) {
        race_t *w        = x->fixture;
        gen_bytes_t *b   = &x->answer.body;
        const int broken = test_below(&x->rng, 32) == 0;
        const size_t len = broken ? test_below(&x->rng, b->len) : b->len;
        rdmeta_applied_t out;
        rdmeta_err_t err;
        char why[16];

        asked->broker = 1 + (int32_t)test_below(&x->rng, 3);
        snprintf(why, sizeof(why), "%d of %d", (int)asked->broker,
                 (int)test_below(&x->rng, 100));
        if (asked->broker != RACE_MUTE)
                asked->reason = test_str(why);
        err = rdmeta_cache_apply(w->cache, b->data, len, (int16_t)version,
                                 asked, race_now(w), &out);
        CHECK(err == (broken ? RDMETA_ERR_MALFORMED : RDMETA_OK));
}

/* Applies an answer. Most answers are applied in the order in which they were
 * made, some late. */
static void write_answer(race_writer_t *x, rdmeta_request_t *asked) {
        race_t *w         = x->fixture;
        const int late    = test_below(&x->rng, 4) == 0;
        const int version = late ? 10 + (int)test_below(&x->rng, 4) : 12;

        if (test_below(&x->rng, 2))
                asked->flags |= RDMETA_REQ_SENT_VERSION;
        asked->sent_version = rdmeta_cache_version(w->cache);
        race_answer_body(w, &x->answer, version);
        if (late) {
                pthread_mutex_unlock(&w->lock);
                race_dither(&x->rng);
        }
        write_apply(x, asked, version);
        if (!late)
                pthread_mutex_unlock(&w->lock);
}

static void write_all(race_writer_t *x) {
        rdmeta_request_t asked = {.asked = RDMETA_ASKED_ALL};
        race_t *w              = x->fixture;
        uint32_t i;

        race_answer_begin(&x->answer);
        for (i = 0; i < RACE_TOPICS; i++)
                if (w->present[i])
                        race_answer_topic(w, &x->answer, i);
        write_answer(x, &asked);
}

static void write_some(race_writer_t *x, uint32_t first, uint32_t n) {
        rdmeta_str_t names[RACE_TOPICS];
        rdmeta_request_t asked = {.asked = RDMETA_ASKED_NAMES,
                                  .names = names};
        uint32_t k;

        race_answer_begin(&x->answer);
        for (k = 0; k < n; k++) {
                const uint32_t i = (first + 3 * k) % RACE_TOPICS;

                names[asked.n++] = race_name(x->fixture, i);
                race_answer_topic(x->fixture, &x->answer, i);
        }
        write_answer(x, &asked);
}

/* Adds topics, removes them, or creates them again with another id. */
static void change_topics(race_writer_t *x, uint32_t n) {
        race_t *w      = x->fixture;
        const int what = (int)test_below(&x->rng, 3);
        uint32_t i     = any_topic(x), k;

        for (k = 0; k < n; k++, i = (i + 1) % RACE_TOPICS) {
                if (what == 0 || !w->present[i]) {
                        w->generation[i]++;
                        w->epoch[i] = (int32_t)test_below(&x->rng, 200);
                }
                w->present[i] = what != 1;
        }
}

static void write_hints(race_writer_t *x) {
        race_t *w              = x->fixture;
        rdmeta_request_t asked = {.asked = RDMETA_ASKED_NAMES};
        rdmeta_str_t names[8], ask[8];
        size_t k, n_ask;

        pthread_mutex_unlock(&w->lock);
        for (k = 0; k < 8; k++)
                names[k] = race_name(w, any_topic(x));
        CHECK(!rdmeta_cache_hint(w->cache, names, 8,
                                 (int32_t)test_below(&x->rng, 4), 0,
                                 race_now(w), ask, &n_ask));
        asked.names = ask;
        asked.n     = n_ask;
        race_dither(&x->rng);
        switch (test_below(&x->rng, 3)) {
        case 0:
                CHECK(!rdmeta_cache_apply_failure(w->cache, &asked,
                                                  race_now(w)));
                break;
        case 1:
                CHECK(rdmeta_cache_purge_hints(w->cache, NULL, 0,
                                               race_now(w)) >= 0);
                break;
        default: /* the hints end by their deadlines */
                break;
        }
}

static void write_leader_hint(race_writer_t *x) {
        race_t *w        = x->fixture;
        const uint32_t i = any_topic(x) | 7; /* a topic that takes hints */
        const rdmeta_leader_hint_t h = race_leader_hint(
                w, i, (uint32_t)test_below(&x->rng,
                                           race_count(i, w->generation[i])));

        CHECK(!rdmeta_cache_apply_leader_hint(w->cache, &h, race_now(w), NULL));
        pthread_mutex_unlock(&w->lock);
}

static void write_sweep(race_writer_t *x) {
        race_t *w = x->fixture;
        rdmeta_str_t names[8];
        size_t k;

        pthread_mutex_unlock(&w->lock);
        atomic_fetch_add_explicit(&w->now_us,
                                  (int64_t)test_below(&x->rng, 100000),
                                  memory_order_relaxed);
        CHECK(rdmeta_cache_sweep(w->cache, race_now(w)) > 0);
        for (k = 0; k < 8; k++)
                names[k] = race_name(w, any_topic(x));
        CHECK(rdmeta_cache_forget(w->cache, names, 8, race_now(w)) >= 0);
        if (test_below(&x->rng, 16) == 0)
                CHECK(!rdmeta_cache_purge(w->cache, race_now(w)));
        rdmeta_cache_interrupt(w->cache);
}

/* Each kind of write drops the lock. */
void race_write_step(race_writer_t *x) {
        race_t *w        = x->fixture;
        const uint32_t n = 1 + (uint32_t)test_below(&x->rng, 12);
        uint32_t i = any_topic(x), k;

        atomic_fetch_add_explicit(&w->now_us, 1000, memory_order_relaxed);
        CHECK(!pthread_mutex_lock(&w->lock));
        for (k = 0; k < n; k++)
                w->epoch[(i + 3 * k) % RACE_TOPICS]++;
        switch (test_below(&x->rng, 16)) {
        case 0:
                w->brokers_epoch++;
                change_topics(x, 100);
                /* fall through */
        case 1:
        case 2:
                write_all(x);
                break;
        case 3:
        case 4:
                change_topics(x, 5);
                write_some(x, i, n);
                break;
        case 5:
                write_hints(x);
                break;
        case 6:
        case 7:
                write_leader_hint(x);
                break;
        case 8:
                write_sweep(x);
                break;
        default:
                write_some(x, i, n);
                break;
        }
}

void *race_writer_main(void *writer) {
        race_writer_t *x = writer;

        while (!atomic_load_explicit(&x->fixture->stop, memory_order_relaxed)) {
                race_write_step(x);
                race_dither(&x->rng);
        }
        return NULL;
}

void race_writer_end(race_writer_t *x) {
        gen_bytes_free(&x->answer.body);
        x->answer.body.capacity = 0; /* the writer may run again */
}

void race_to_be_last(void *(*make)(rdmeta_cache_t *c),
                     void *(*drop)(void *made)) {
        pthread_t threads[3];
        rdmeta_conf_t conf;
        rdmeta_cache_t *c;
        test_heap_t heap;
        int again, k;

        for (again = 0; again < 100; again++) {
                rdmeta_conf_init(&conf);
                conf.allocator = test_allocator(&heap);
                c              = rdmeta_cache_new(&conf);
                CHECK(c);
                for (k = 0; k < 3; k++) {
                        void *made = make(c);
                        CHECK(made);
                        CHECK(!pthread_create(&threads[k], NULL, drop, made));
                }
                rdmeta_cache_unref(c);
                for (k = 0; k < 3; k++)
                        CHECK(!pthread_join(threads[k], NULL));
                CHECK(!heap.blocks && !heap.bytes);
        }
}
