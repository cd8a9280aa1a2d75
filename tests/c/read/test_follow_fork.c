/* tsan */
/* follow: forks beside a thread that changes to new files without a pause, and
 * threads of a child, which follow too. */
#include "read/follow.h"
#include "support/image_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { THREADS = 4, FILES = 100, FORKS = 30 };

/* The memory of the attach. Another thread may be inside malloc() at the fork,
 * so under ASan the child must not call malloc(). */
static char arena[16 << 20];
static _Atomic size_t arena_used;

static void *arena_alloc(void *opaque, size_t size) {
        const size_t n  = (size + 63) / 64 * 64;
        const size_t at = atomic_fetch_add(&arena_used, n);

        (void)opaque;
        CHECK(at + n <= sizeof(arena));
        return arena + at;
}

static void arena_free(void *opaque, void *p, size_t size) {
        (void)opaque;
        memset(p, 0xdb, size);
}

typedef struct fixture {
        cw_t feeder;
        const char *path;
        rdmeta_image_t *image;
        rdmeta_attach_t *attach;
        rdmeta_reader_t *reader;
        _Atomic int stop;
} fixture_t;

static void fixture_init(fixture_t *f, const char *name) {
        const rdmeta_allocator_t heap = {arena_alloc, arena_free, NULL};

        memset(f, 0, sizeof(*f));
        cw_init(&f->feeder, NULL);
        f->path = iw_path(name);
        CHECK(!cw_all(&f->feeder, "a 0:1"));
        f->image = iw_image(&f->feeder);
        CHECK(!rdmeta_image_save(f->image, f->path, 0));
        CHECK(!rdmeta_attach_make(&heap, f->path, 0, 0, f->feeder.now,
                                  &f->attach));
        f->reader = rdmeta_attach_reader(f->attach, 0);
        CHECK(f->reader);
}

static void fixture_free(fixture_t *f) {
        rdmeta_reader_destroy(f->reader);
        rdmeta_attach_destroy(f->attach);
        rdmeta_image_unref(f->image);
        cw_destroy(&f->feeder);
}

static void look(fixture_t *f) {
        rdmeta_image_t *image = rdmeta_attach_image(f->attach, f->feeder.now);

        CHECK(image);
        rdmeta_image_unref(image);
        CHECK(rdmeta_leader(f->reader, "a", 1, 0, f->feeder.now.mono_us) == 1);
}

static void *look_always(void *opaque) {
        fixture_t *f = opaque;

        while (!atomic_load(&f->stop))
                rdmeta_image_unref(
                        rdmeta_attach_image(f->attach, f->feeder.now));
        return NULL;
}

static void ended_well(pid_t pid) {
        int status;

        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && !status);
}

TEST(test_a_child_follows_whatever_its_parent_was_doing) {
        static fixture_t f;
        pthread_t thread;
        pid_t pid;
        int k;

        fixture_init(&f, "parent");
        CHECK(!pthread_create(&thread, NULL, look_always, &f));
        for (k = 0; k < FORKS; k++) {
                CHECK(!rdmeta_image_save(f.image, f.path, 0));
                pid = fork();
                if (!pid) {
                        look(&f);
                        rdmeta_reader_destroy(f.reader);
                        rdmeta_attach_destroy(f.attach);
                        _Exit(0);
                }
                ended_well(pid);
        }
        atomic_store(&f.stop, 1);
        CHECK(!pthread_join(thread, NULL));
        look(&f);
        fixture_free(&f);
}

static void child_follows(fixture_t *f) {
        pthread_t threads[THREADS];
        int i;

        for (i = 0; i < THREADS; i++)
                CHECK(!pthread_create(&threads[i], NULL, look_always, f));
        for (i = 0; i < FILES; i++)
                CHECK(!rdmeta_image_save(f->image, f->path, 0));
        atomic_store(&f->stop, 1);
        for (i = 0; i < THREADS; i++)
                CHECK(!pthread_join(threads[i], NULL));
        look(f);
}

TEST(test_threads_of_the_child_follow_too) {
        static fixture_t f;
        pid_t pid;

        fixture_init(&f, "threads");
        pid = fork();
        if (!pid) {
                child_follows(&f);
                _Exit(0);
        }
        ended_well(pid);
        fixture_free(&f);
}

/* Its lock is lost (base/lock.h): it stays with the last file. */
TEST(test_a_child_without_handlers_only_looks_up) {
        static fixture_t f;
        pid_t pid;

        fixture_init(&f, "clone");
        CHECK(!cw_all(&f.feeder, "a 0:2"));
        iw_save(&f.feeder, f.path);
        pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (!pid) {
                CHECK(!rdmeta_attach_image(f.attach, f.feeder.now));
                CHECK(!rdmeta_attach_reader(f.attach, 0));
                CHECK(rdmeta_leader(f.reader, "a", 1, 0,
                                    f.feeder.now.mono_us) == 1);
                rdmeta_reader_destroy(f.reader);
                rdmeta_attach_destroy(f.attach);
                _Exit(0);
        }
        ended_well(pid);
        CHECK(rdmeta_leader(f.reader, "a", 1, 0, f.feeder.now.mono_us) == 2);
        fixture_free(&f);
}

TEST_MAIN()
