/*
 * epoch: memory that a reader may use is not freed, and the rest is. `make
 * tsan` builds this test too, because of its name.
 *
 * Freed objects are poisoned and used again at once. Each retired object counts
 * as so many bytes that the writer looks at the readers every time.
 */
#include "store/epoch.h"

#include "support/no_membarrier.h"
#include "support/testing.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

enum { OBJECTS = 16, READERS = 2, ENOUGH = 2000, LINES = 8 };

#define ALIVE UINT64_C(0x616c697665616c69)
#define DEAD UINT64_C(0xdeaddeaddeaddead)

typedef struct object {
        rdmeta_large_t large;
        _Alignas(RDMETA_LINE) uint64_t number, alive; /* number ^ ALIVE */
        int used;
} object_t;

typedef struct fixture {
        rdmeta_allocator_t allocator; /* it only "frees" objects */
        rdmeta_memory_t blocks;
        rdmeta_epoch_t epochs;
        object_t objects[OBJECTS];
        _Atomic(object_t *) slot; /* where readers start from */
        uint64_t number;
        _Atomic int stop;
        /* Lines that all threads write to. A CPU's next store, such as a
         * reader's word, waits behind such a store while loads go ahead. */
        struct {
                _Alignas(RDMETA_LINE) _Atomic uint64_t word;
        } lines[LINES];
} fixture_t;

static void *no_alloc(void *opaque, size_t size) {
        (void)opaque, (void)size;
        return NULL;
}

static void object_free(void *opaque, void *p, size_t size) {
        object_t *o = p;

        (void)opaque;
        CHECK(size == RDMETA_LIMBO_LOOK && o->used);
        o->number = o->alive = DEAD;
        o->used              = 0;
}

static void fixture_init(fixture_t *w) {
        memset(w, 0, sizeof(*w));
        w->allocator.alloc = no_alloc;
        w->allocator.free  = object_free;
        rdmeta_memory_init(&w->blocks, &w->allocator, RDMETA_TOPIC_HEADER_SIZE);
        rdmeta_epoch_init(&w->epochs, &w->blocks);
}

static int fixture_used(const fixture_t *w) {
        int i, live = 0;

        for (i = 0; i < OBJECTS; i++)
                live += w->objects[i].used;
        return live;
}

/* Puts another object into the slot and retires the old one. NULL: no object is
 * free. */
static object_t *fixture_write(fixture_t *w) {
        object_t *old = atomic_load_explicit(&w->slot, memory_order_relaxed);
        object_t *o   = w->objects;

        while (o < w->objects + OBJECTS && o->used)
                o++;
        if (o == w->objects + OBJECTS) {
                w->epochs.limbo_at_look = 0; /* look again */
                rdmeta_epoch_collect(&w->epochs);
                sched_yield();
                return NULL;
        }
        o->used       = 1;
        o->large.size = RDMETA_LIMBO_LOOK;
        o->number     = ++w->number;
        o->alive      = o->number ^ ALIVE;
        atomic_store_explicit(&w->slot, o, memory_order_release);
        if (old)
                rdmeta_epoch_large(&w->epochs, &old->large);
        rdmeta_epoch_collect(&w->epochs);
        return o;
}

static void fixture_destroy(fixture_t *w) {
        CHECK(!rdmeta_tailq_first(&w->epochs.readers));
        rdmeta_epoch_destroy(&w->epochs);
        CHECK(fixture_used(w) == 1 && !w->epochs.limbo_bytes);
        rdmeta_memory_destroy(&w->blocks);
}

static void fixture_store_slowly(fixture_t *w, uint64_t x) {
        int i;

        for (i = 0; i < LINES; i++)
                atomic_store_explicit(&w->lines[i].word, x,
                                      memory_order_relaxed);
}

static const object_t *fixture_see(fixture_t *w) {
        return atomic_load_explicit(&w->slot, memory_order_acquire);
}

/* ---- one thread ---------------------------------------------------------- */

FIXTURE_TEST(test_with_no_reader_inside_an_object_is_freed_at_once) {
        rdmeta_reading_t r;
        int k;

        for (k = 0; k < 100; k++)
                CHECK(fixture_write(w) && fixture_used(w) == 1);
        rdmeta_epoch_add(&w->epochs, &r, 0);
        for (k = 0; k < 100; k++)
                CHECK(fixture_write(w) && fixture_used(w) == 1);
        rdmeta_epoch_remove(&w->epochs, &r);
}

FIXTURE_TEST(test_an_object_that_a_reader_may_use_is_kept_until_it_leaves) {
        rdmeta_reading_t r;
        const object_t *o;
        int k;

        rdmeta_epoch_add(&w->epochs, &r, 0);
        fixture_write(w);
        rdmeta_reading_enter(&r);
        rdmeta_reading_enter(&r); /* calls nest */
        o = fixture_see(w);
        for (k = 0; k < OBJECTS - 3; k++)
                CHECK(fixture_write(w));
        rdmeta_reading_leave(&r);
        CHECK(fixture_write(w) && fixture_used(w) == OBJECTS - 1);
        CHECK(o->number == 1 && o->alive == (1 ^ ALIVE));
        rdmeta_reading_leave(&r);
        CHECK(fixture_write(w) && fixture_used(w) == 1 && o->alive == DEAD);
        rdmeta_epoch_remove(&w->epochs, &r);
}

/* One reader is always inside, but none for long. */
FIXTURE_TEST(test_readers_that_take_turns_keep_nothing_for_ever) {
        rdmeta_reading_t r[2];
        int k, most = 0;

        rdmeta_epoch_add(&w->epochs, &r[0], 0);
        rdmeta_epoch_add(&w->epochs, &r[1], 0);
        rdmeta_reading_enter(&r[0]);
        for (k = 0; k < 100; k++) {
                rdmeta_reading_enter(&r[(k + 1) % 2]);
                rdmeta_reading_leave(&r[k % 2]);
                CHECK(fixture_write(w));
                most = fixture_used(w) > most ? fixture_used(w) : most;
        }
        CHECK(most > 1 && most <= 4);
        rdmeta_reading_leave(&r[k % 2]);
        rdmeta_epoch_remove(&w->epochs, &r[0]);
        rdmeta_epoch_remove(&w->epochs, &r[1]);
}

/* ---- readers beside a writer --------------------------------------------- */

typedef struct reader {
        fixture_t *fixture;
        rdmeta_reading_t reading;
        uint64_t seen;         /* the last number that it saw */
        _Atomic uint64_t done; /* how many objects it saw */
} reader_t;

static void *reader_main(void *arg) {
        reader_t *r = arg;
        fixture_t *w = r->fixture;
        const object_t *o;
        uint64_t number;

        while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
                fixture_store_slowly(w, r->seen);
                if (rdmeta_reading_is_plain(&r->reading))
                        rdmeta_reading_begin(&r->reading);
                else
                        rdmeta_reading_enter(&r->reading);
                o      = fixture_see(w);
                number = o->number;
                CHECK(o->alive == (number ^ ALIVE));
                CHECK(number >= r->seen);
                if (number > r->seen)
                        atomic_fetch_add_explicit(&r->done, 1,
                                                  memory_order_relaxed);
                r->seen = number;
                if (rdmeta_reading_is_plain(&r->reading))
                        rdmeta_reading_end(&r->reading);
                else
                        rdmeta_reading_leave(&r->reading);
        }
        return NULL;
}

static int readers_have_enough(reader_t *r) {
        int k;

        for (k = 0; k < READERS; k++)
                if (atomic_load(&r[k].done) < ENOUGH)
                        return 0;
        return 1;
}

static void run(int fence) {
        static reader_t r[READERS];
        static fixture_t w;
        const time_t end = time(NULL) + 2;
        pthread_t threads[READERS];
        int k;

        fixture_init(&w);
        if (fence)
                w.epochs.fence = 1;
        fixture_write(&w);
        for (k = 0; k < READERS; k++) {
                r[k].fixture = &w;
                r[k].seen    = 0;
                atomic_init(&r[k].done, 0);
                rdmeta_epoch_add(&w.epochs, &r[k].reading, 0);
                CHECK(rdmeta_reading_is_plain(&r[k].reading) == !fence);
                CHECK(!pthread_create(&threads[k], NULL, reader_main, &r[k]));
        }
        while (!readers_have_enough(r) || time(NULL) < end) {
                fixture_write(&w);
                fixture_store_slowly(&w, w.number);
        }
        atomic_store(&w.stop, 1);
        for (k = 0; k < READERS; k++) {
                CHECK(!pthread_join(threads[k], NULL));
                rdmeta_epoch_remove(&w.epochs, &r[k].reading);
        }
        fixture_destroy(&w);
}

TEST(test_no_reader_meets_freed_memory_without_fences) {
        fixture_t w;

        fixture_init(&w);
        if (w.epochs.fence)
                fprintf(stderr, "  skipped: membarrier is refused here\n");
        else
                run(0);
}

TEST(test_no_reader_meets_freed_memory_with_fences) {
        run(1);
}

/* Runs `test` in a child that may refuse itself membarrier. */
static void in_a_child(void (*test)(void)) {
        const pid_t pid = fork();
        int status;

        CHECK(pid >= 0);
        if (!pid) {
                test();
                _Exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
                fprintf(stderr, "  skipped: there is no seccomp here\n");
        else
                CHECK(WEXITSTATUS(status) == 0);
}

static void refuse_membarrier(void) {
        if (!no_membarrier())
                _Exit(77);
}

static void begin_without_membarrier(void) {
        fixture_t w;

        refuse_membarrier();
        fixture_init(&w);
        CHECK(w.epochs.fence);
        run(w.epochs.fence);
}

/* The reader's word may not be visible yet, so a look would prove nothing. */
static void go_on_without_membarrier(void) {
        rdmeta_reading_t r;
        fixture_t w;
        int k;

        fixture_init(&w);
        if (w.epochs.fence) /* there was none before */
                return;
        rdmeta_epoch_add(&w.epochs, &r, 0);
        CHECK(fixture_write(&w));
        refuse_membarrier();
        for (k = 2; k <= OBJECTS; k++)
                CHECK(fixture_write(&w) && fixture_used(&w) == k);
        rdmeta_epoch_remove(&w.epochs, &r);
        fixture_write(&w); /* without readers no barrier is needed */
        CHECK(fixture_used(&w) == 1);
        fixture_destroy(&w);
}

TEST(test_a_kernel_that_refuses_membarrier_is_noticed) {
        in_a_child(begin_without_membarrier);
}

TEST(test_when_a_barrier_fails_nothing_is_freed) {
        in_a_child(go_on_without_membarrier);
}

TEST_MAIN()
