/*
 * reclaim: what a reader may see is not freed, what none can see is. `make
 * tsan` builds it too, as its name asks for.
 *
 * Freed objects are poisoned and used again at once, and each that is retired
 * counts as so much that writers look at the readers every time.
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

typedef struct world {
        rdmeta_allocator_t allocator; /* "frees" objects only */
        rdmeta_blocks_t blocks;
        rdmeta_reclaim_t reclaim;
        object_t objects[OBJECTS];
        _Atomic(object_t *) slot; /* where readers start from */
        uint64_t number;
        _Atomic int stop;
        /* Lines that all threads write to: what a CPU stores next, who is
         * reading too, waits behind such a store while loads go ahead. */
        struct {
                _Alignas(RDMETA_LINE) _Atomic uint64_t word;
        } lines[LINES];
} world_t;

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

static void world_init(world_t *w) {
        memset(w, 0, sizeof(*w));
        w->allocator.alloc  = no_alloc;
        w->allocator.free   = object_free;
        rdmeta_blocks_init(&w->blocks, &w->allocator, RDMETA_TOPIC_LEAD);
        rdmeta_reclaim_init(&w->reclaim, &w->blocks);
}

static int world_held(const world_t *w) {
        int i, held = 0;

        for (i = 0; i < OBJECTS; i++)
                held += w->objects[i].used;
        return held;
}

/* Another object in the slot; the old one is retired. 0: none is free. */
static object_t *world_write(world_t *w) {
        object_t *old = atomic_load_explicit(&w->slot, memory_order_relaxed);
        object_t *o   = w->objects;

        while (o < w->objects + OBJECTS && o->used)
                o++;
        if (o == w->objects + OBJECTS) {
                w->reclaim.looked_at = 0; /* look again, if for the last */
                rdmeta_reclaim_collect(&w->reclaim);
                sched_yield();
                return NULL;
        }
        o->used       = 1;
        o->large.size = RDMETA_LIMBO_LOOK;
        o->number     = ++w->number;
        o->alive      = o->number ^ ALIVE;
        atomic_store_explicit(&w->slot, o, memory_order_release);
        if (old)
                rdmeta_reclaim_large(&w->reclaim, &old->large);
        rdmeta_reclaim_collect(&w->reclaim);
        return o;
}

static void world_destroy(world_t *w) {
        CHECK(!rdmeta_tailq_first(&w->reclaim.readers));
        rdmeta_reclaim_destroy(&w->reclaim);
        CHECK(world_held(w) == 1 && !w->reclaim.limbo_bytes);
        rdmeta_blocks_destroy(&w->blocks);
}

static void world_store_slowly(world_t *w, uint64_t x) {
        int i;

        for (i = 0; i < LINES; i++)
                atomic_store_explicit(&w->lines[i].word, x,
                                      memory_order_relaxed);
}

static const object_t *world_see(world_t *w) {
        return atomic_load_explicit(&w->slot, memory_order_acquire);
}

/* ---- one thread ---------------------------------------------------------- */

static void test_with_no_reader_inside_all_is_freed_at_once(void) {
        rdmeta_reading_t r;
        world_t w;
        int k;

        world_init(&w);
        for (k = 0; k < 100; k++)
                CHECK(world_write(&w) && world_held(&w) == 1);
        rdmeta_reclaim_add(&w.reclaim, &r, 0);
        for (k = 0; k < 100; k++)
                CHECK(world_write(&w) && world_held(&w) == 1);
        rdmeta_reclaim_remove(&w.reclaim, &r);
        world_destroy(&w);
}

static void test_what_a_reader_may_see_is_kept_until_it_leaves(void) {
        rdmeta_reading_t r;
        const object_t *o;
        world_t w;
        int k;

        world_init(&w);
        rdmeta_reclaim_add(&w.reclaim, &r, 0);
        world_write(&w);
        rdmeta_reading_enter(&r);
        rdmeta_reading_enter(&r); /* they nest */
        o = world_see(&w);
        for (k = 0; k < OBJECTS - 3; k++)
                CHECK(world_write(&w));
        rdmeta_reading_leave(&r);
        CHECK(world_write(&w) && world_held(&w) == OBJECTS - 1);
        CHECK(o->number == 1 && o->alive == (1 ^ ALIVE));
        rdmeta_reading_leave(&r);
        CHECK(world_write(&w) && world_held(&w) == 1 && o->alive == DEAD);
        rdmeta_reclaim_remove(&w.reclaim, &r);
        world_destroy(&w);
}

/* Somebody is always inside, but nobody for long. */
static void test_readers_that_take_turns_keep_nothing_for_ever(void) {
        rdmeta_reading_t r[2];
        world_t w;
        int k, most = 0;

        world_init(&w);
        rdmeta_reclaim_add(&w.reclaim, &r[0], 0);
        rdmeta_reclaim_add(&w.reclaim, &r[1], 0);
        rdmeta_reading_enter(&r[0]);
        for (k = 0; k < 100; k++) {
                rdmeta_reading_enter(&r[(k + 1) % 2]);
                rdmeta_reading_leave(&r[k % 2]);
                CHECK(world_write(&w));
                most = world_held(&w) > most ? world_held(&w) : most;
        }
        CHECK(most > 1 && most <= 4);
        rdmeta_reading_leave(&r[k % 2]);
        rdmeta_reclaim_remove(&w.reclaim, &r[0]);
        rdmeta_reclaim_remove(&w.reclaim, &r[1]);
        world_destroy(&w);
}

/* ---- readers beside a writer --------------------------------------------- */

typedef struct reader {
        world_t *world;
        rdmeta_reading_t reading;
        uint64_t seen; /* the last number */
        _Atomic uint64_t done; /* how many were seen */
} reader_t;

static void *reader_main(void *arg) {
        reader_t *r = arg;
        world_t *w  = r->world;
        const object_t *o;
        uint64_t number;

        while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
                world_store_slowly(w, r->seen);
                if (rdmeta_reading_is_plain(&r->reading))
                        rdmeta_reading_begin(&r->reading);
                else
                        rdmeta_reading_enter(&r->reading);
                o      = world_see(w);
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
        static world_t w;
        const time_t end = time(NULL) + 2;
        pthread_t threads[READERS];
        int k;

        world_init(&w);
        if (fence)
                w.reclaim.fence = 1;
        world_write(&w);
        for (k = 0; k < READERS; k++) {
                r[k].world = &w;
                r[k].seen  = 0;
                atomic_init(&r[k].done, 0);
                rdmeta_reclaim_add(&w.reclaim, &r[k].reading, 0);
                CHECK(rdmeta_reading_is_plain(&r[k].reading) == !fence);
                CHECK(!pthread_create(&threads[k], NULL, reader_main, &r[k]));
        }
        while (!readers_have_enough(r) || time(NULL) < end) {
                world_write(&w);
                world_store_slowly(&w, w.number);
        }
        atomic_store(&w.stop, 1);
        for (k = 0; k < READERS; k++) {
                CHECK(!pthread_join(threads[k], NULL));
                rdmeta_reclaim_remove(&w.reclaim, &r[k].reading);
        }
        world_destroy(&w);
}

static void test_no_reader_meets_freed_memory_though_none_pays(void) {
        world_t w;

        world_init(&w);
        if (w.reclaim.fence)
                fprintf(stderr, "  skipped: membarrier is refused here\n");
        else
                run(0);
}

static void test_no_reader_meets_freed_memory_where_each_pays(void) {
        run(1);
}

static void test_a_kernel_that_refuses_membarrier_is_noticed(void) {
        const pid_t pid = fork();
        int status;
        world_t w;

        CHECK(pid >= 0);
        if (!pid) {
                alarm(60);
                if (!no_membarrier())
                        _Exit(77);
                world_init(&w);
                CHECK(w.reclaim.fence);
                run(w.reclaim.fence);
                _Exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
                fprintf(stderr, "  skipped: there is no seccomp here\n");
        else
                CHECK(WEXITSTATUS(status) == 0);
}

int main(void) {
        test_begin(100);
        RUN(test_with_no_reader_inside_all_is_freed_at_once);
        RUN(test_what_a_reader_may_see_is_kept_until_it_leaves);
        RUN(test_readers_that_take_turns_keep_nothing_for_ever);
        RUN(test_a_kernel_that_refuses_membarrier_is_noticed);
        RUN(test_no_reader_meets_freed_memory_though_none_pays);
        RUN(test_no_reader_meets_freed_memory_where_each_pays);
        return 0;
}
