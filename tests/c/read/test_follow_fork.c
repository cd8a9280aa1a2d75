/* follow: a fork while a thread changes to a new file. The child has the state
 * that the thread had left so far, and reads. The allocator makes the fork,
 * because it is called in the middle of the change. */
#include "read/follow.h"
#include "support/image_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

typedef struct fixture {
        rdmeta_attach_t *attach;
        rdmeta_time_t now;
        enum { NEVER, ALLOC, FREE } when; /* at which call for an image */
        int32_t least; /* the least leader that the child must read */
        int forks;
} fixture_t;

static int32_t leader_of(rdmeta_reader_t *r, rdmeta_time_t now) {
        int32_t leader;

        CHECK(r);
        leader = rdmeta_leader(r, "a", 1, 0, now.mono_us);
        rdmeta_reader_destroy(r);
        return leader;
}

static void child_reads(fixture_t *w) {
        rdmeta_image_t *image;
        int32_t leader;

        leader = leader_of(rdmeta_attach_reader(w->attach, 0), w->now);
        CHECK(leader >= w->least && leader <= 2);
        image = rdmeta_attach_image(w->attach, w->now);
        CHECK(leader_of(rdmeta_image_reader(image, 0), w->now) == 2);
        rdmeta_image_unref(image);
}

static void fork_now(fixture_t *w) {
        int status;
        pid_t pid;

        w->when = NEVER;
        w->forks++;
        pid = fork();
        CHECK(pid >= 0);
        if (!pid) {
                alarm(20);
                child_reads(w);
                _Exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && !status);
}

static void *forking_alloc(void *opaque, size_t size) {
        fixture_t *w = opaque;

        if (w->when == ALLOC && size == sizeof(rdmeta_file_t))
                fork_now(w);
        return malloc(size);
}

static void forking_free(void *opaque, void *p, size_t size) {
        fixture_t *w = opaque;

        memset(p, 0xdb, size);
        __asm__ volatile("" : : "r"(p) : "memory");
        free(p);
        if (w->when == FREE && size == sizeof(rdmeta_file_t))
                fork_now(w);
}

static void publish(cw_t *w, const char *topics, const char *path) {
        CHECK(!cw_all(w, topics));
        iw_save(w, path);
}

/* Forks at the call `when` of the change from the first file to the second. */
static void fork_in(int when, int32_t least) {
        fixture_t w             = {.least = least};
        rdmeta_allocator_t heap = {forking_alloc, forking_free, &w};
        const char *path        = iw_path("fork");
        rdmeta_reader_t *r;
        cw_t feeder;

        cw_init(&feeder, NULL);
        publish(&feeder, "a 0:1", path);
        w.now = feeder.now;
        CHECK(!rdmeta_attach_make(&heap, path, 0, 0, w.now, &w.attach));
        r = NULL;
        if (when == FREE) { /* a reader would keep the old image */
                publish(&feeder, "a 0:2", path);
                w.when = FREE;
                rdmeta_image_unref(rdmeta_attach_image(w.attach, w.now));
        } else {
                r = rdmeta_attach_reader(w.attach, 0);
                publish(&feeder, "a 0:2", path);
                w.when = ALLOC;
                CHECK(rdmeta_leader(r, "a", 1, 0, w.now.mono_us) == 2);
        }
        CHECK(w.forks == 1);
        rdmeta_reader_destroy(r);
        rdmeta_attach_destroy(w.attach);
        cw_destroy(&feeder);
}

static void test_an_image_is_freed_only_after_it_was_replaced(void) {
        fork_in(FREE, 2);
}

/* The lock is held at the fork, and no thread of the child can unlock it. */
static void test_a_child_that_cannot_lock_opens_a_new_file_for_itself(void) {
        fork_in(ALLOC, 1);
}

/* ---- the child's threads ----------------------------------------------- */

enum { THREADS = 4, FILES = 100 };

typedef struct followers {
        rdmeta_attach_t *attach;
        rdmeta_time_t now;
        _Atomic int stop;
} followers_t;

static void *follow(void *opaque) {
        followers_t *f = opaque;

        while (!atomic_load(&f->stop)) {
                rdmeta_image_t *image = rdmeta_attach_image(f->attach, f->now);

                CHECK(leader_of(rdmeta_image_reader(image, 0), f->now) == 1);
                rdmeta_image_unref(image);
                CHECK(leader_of(rdmeta_attach_reader(f->attach, 0), f->now) ==
                      1);
        }
        return NULL;
}

static void child_follows(followers_t *f, rdmeta_image_t *image,
                          const char *path) {
        pthread_t threads[THREADS];
        int i;

        alarm(60);
        for (i = 0; i < THREADS; i++)
                CHECK(!pthread_create(&threads[i], NULL, follow, f));
        for (i = 0; i < FILES; i++)
                CHECK(!rdmeta_image_save(image, path, 0));
        atomic_store(&f->stop, 1);
        for (i = 0; i < THREADS; i++)
                CHECK(!pthread_join(threads[i], NULL));
        _Exit(0);
}

/* The lock was free at the fork. */
static void test_threads_of_the_child_take_turns_to_change_the_image(void) {
        fixture_t none          = {.when = NEVER};
        rdmeta_allocator_t heap = {forking_alloc, forking_free, &none};
        const char *path        = iw_path("threads");
        followers_t f           = {0};
        rdmeta_image_t *image;
        int status;
        cw_t feeder;
        pid_t pid;

        cw_init(&feeder, NULL);
        publish(&feeder, "a 0:1", path);
        image = iw_image(&feeder);
        f.now = feeder.now;
        CHECK(!rdmeta_attach_make(&heap, path, 0, 0, f.now, &f.attach));
        pid = fork();
        CHECK(pid >= 0);
        if (!pid)
                child_follows(&f, image, path);
        CHECK(waitpid(pid, &status, 0) == pid && !status);
        rdmeta_attach_destroy(f.attach);
        rdmeta_image_unref(image);
        cw_destroy(&feeder);
}

int main(void) {
        test_begin(60);
        RUN(test_an_image_is_freed_only_after_it_was_replaced);
        RUN(test_a_child_that_cannot_lock_opens_a_new_file_for_itself);
        RUN(test_threads_of_the_child_take_turns_to_change_the_image);
        return 0;
}
