/* tsan */
/* The child of a fork uses a cache of its parent. If the cache's lock is lost
 * (base/lock.h), the child can still look up. */
#include "support/image_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

typedef struct forked {
        cw_t w;
        rdmeta_image_t *image;   /* taken before the last answer */
        rdmeta_handle_t *handle; /* of "orders" */
        char *text, *image_text; /* what readers of the two see */
        rdmeta_stats_t stats;
} forked_t;

static void forked_init(forked_t *f) {
        memset(f, 0, sizeof(*f));
        cw_init(&f->w, NULL);
        iw_fill(&f->w);
        CHECK(!cw_say(&f->w, "orders 0:1@5 1:2@7; away!3"));
        f->image = iw_image(&f->w);
        CHECK(!cw_say(&f->w, "orders 0:3@6 1:2@7"));
        cw_hint(&f->w, "in.flight", 0);
        f->handle = rdmeta_resolve(f->w.cache, "orders", 6);
        CHECK(f->handle);
        f->text       = iw_reader_text(f->w.reader, f->w.now.mono_us);
        f->image_text = iw_text(f->image, f->w.now.mono_us);
        CHECK(f->text && f->image_text);
        f->stats = cw_stats(&f->w);
}

static void forked_free(forked_t *f) {
        rdmeta_image_unref(f->image);
        rdmeta_handle_release(f->handle);
        free(f->text);
        free(f->image_text);
}

enum { WHOLE, LOST };

/* Calls `act` in a child. WHOLE: of a fork; LOST: made without handlers while
 * this thread has the cache's lock. */
static void in_a_child(int how, void (*act)(forked_t *f)) {
        int status;
        forked_t f;
        pid_t pid;

        forked_init(&f);
        if (how == LOST)
                CHECK(!rdmeta_notify_lock(&f.w.cache->notify));
        pid = how == LOST ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL,
                                           NULL, NULL)
                          : fork();
        CHECK(pid >= 0);
        if (pid == 0) {
                act(&f);
                _exit(7);
        }
        if (how == LOST)
                rdmeta_notify_unlock(&f.w.cache->notify);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        cw_check(&f.w);
        forked_free(&f);
        cw_destroy(&f.w);
}

static void check_text(rdmeta_reader_t *r, int64_t mono_us,
                       const char *wanted) {
        char *text;

        CHECK(r);
        text = iw_reader_text(r, mono_us);
        CHECK(text);
        CHECK_TEXT(text, wanted);
        free(text);
}

/* ---- readers ----------------------------------------------------------- */

static void read_by_readers(forked_t *f) {
        const int64_t mono_us = f->w.now.mono_us;
        rdmeta_reader_t *r;

        check_text(f->w.reader, mono_us, f->text);
        r = rdmeta_reader_new(f->w.cache, 0);
        check_text(r, mono_us, f->text);
        CHECK(rdmeta_leader(r, "orders", 6, 0, mono_us) == 3);
        CHECK(rdmeta_leader(r, "in.flight", 9, 0, mono_us) == RDMETA_WAITING);
        rdmeta_reader_destroy(r);
        r = rdmeta_reader_new(f->w.cache, RDMETA_ALLOW_STALE);
        CHECK(r && rdmeta_leader(r, "orders", 6, 0, INT64_MAX) == 3);
        rdmeta_reader_destroy(r);
}

static void read_by_handles(forked_t *f) {
        const int64_t mono_us = f->w.now.mono_us;
        rdmeta_reader_t *r    = rdmeta_reader_new(f->w.cache, 0);
        rdmeta_handle_t *h    = rdmeta_resolve(f->w.cache, "orders", 6);
        rdmeta_handle_t *none = rdmeta_resolve(f->w.cache, "nothing", 7);

        CHECK(r && h && none);
        CHECK(rdmeta_handle_leader(r, f->handle, 0, mono_us) == 3);
        CHECK(rdmeta_handle_leader(r, h, 0, mono_us) == 3);
        CHECK(rdmeta_handle_leader(r, h, 1, mono_us) == 2);
        CHECK(rdmeta_handle_leader(r, none, 0, mono_us) == RDMETA_NOT_CACHED);
        rdmeta_reader_destroy(r);
        rdmeta_handle_release(rdmeta_handle_ref(h));
        rdmeta_handle_release(h);
        rdmeta_handle_release(none);
}

static int32_t count_change(void *opaque, const rdmeta_change_t *change) {
        CHECK(change->kind != RDMETA_RESYNC);
        ++*(int *)opaque;
        return 0;
}

/* Checks that an image taken in the child, and its file, are right. */
static void read_by_images(forked_t *f) {
        const rdmeta_time_t now = f->w.now;
        rdmeta_image_t *image   = rdmeta_cache_image(f->w.cache, now);
        rdmeta_reader_t *old    = rdmeta_image_reader(f->image, 0);
        const char *path        = iw_path("forked");
        rdmeta_image_info_t info;
        rdmeta_image_t *file;
        int changes = 0;

        CHECK(image);
        check_text(old, now.mono_us, f->image_text);
        rdmeta_reader_destroy(old);
        rdmeta_image_info(image, &info);
        CHECK(info.topics == f->stats.topics && info.bytes);
        CHECK(info.partitions == f->stats.partitions);
        CHECK(info.version == f->stats.version);
        CHECK(!rdmeta_image_diff(f->image, image, count_change, &changes));
        CHECK(changes > 0);
        CHECK(!rdmeta_image_save(image, path, 0));
        file = iw_open(path, 0, now);
        CHECK(!rdmeta_image_verify(file));
        iw_same(file, image, now.mono_us);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
}

static void read_stats(forked_t *f) {
        rdmeta_stats_t stats;

        rdmeta_cache_stats(f->w.cache, &stats);
        CHECK(stats.topics == f->stats.topics);
        CHECK(stats.partitions == f->stats.partitions);
        CHECK(stats.version == f->stats.version);
        CHECK(stats.shared_deadline_us == f->stats.shared_deadline_us);
}

static void read_changes(forked_t *f) {
        int32_t resync = 1;
        int changes    = 0;
        uint64_t until;

        CHECK(!rdmeta_cache_changes(f->w.cache, 1, count_change, &changes,
                                    &until, &resync));
        CHECK(changes > 0 && !resync && until == f->stats.version);
}

static void read_all(forked_t *f) {
        const size_t blocks = f->w.heap.blocks, bytes = f->w.heap.bytes;

        read_by_readers(f);
        read_by_handles(f);
        read_stats(f);
        read_changes(f);
        CHECK(f->w.heap.blocks == blocks && f->w.heap.bytes == bytes);
        read_by_images(f);
        cw_check(&f->w);
}

TEST(test_every_reader_works_in_the_child_and_frees_its_memory) {
        in_a_child(WHOLE, read_all);
}

static void refused(forked_t *f) {
        const rdmeta_str_t name = {"t", 1};
        rdmeta_cache_t *c       = f->w.cache;
        const rdmeta_time_t now = f->w.now;
        rdmeta_request_t sent   = {0};
        rdmeta_str_t ask;
        size_t n;

        CHECK(rdmeta_cache_request_sent(c, &sent) == RDMETA_ERR_FORKED);
        CHECK(!sent.flags);
        CHECK(rdmeta_cache_apply(c, "", 0, 12, NULL, now, NULL) ==
              RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_apply_failure(c, NULL, now) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_hint(c, &name, 1, 0, 0, now, &ask, &n) ==
              RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_purge_hints(c, NULL, 0, now) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_purge(c, now) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_forget(c, &name, 1, now) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_due(c, now.mono_us, 0, NULL, NULL) ==
              RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_resolved(c, NULL, NULL) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_sweep(c, now) == INT64_MAX);
        CHECK(rdmeta_cache_wait(c, f->stats.version, NULL, 0, -1) == 0);
        CHECK(!rdmeta_watch_new(c, NULL, 0, NULL, NULL));
}

TEST(test_writes_and_waits_in_the_child_are_refused) {
        in_a_child(WHOLE, refused);
}

static void free_all(forked_t *f) {
        forked_free(f);
        cw_check(&f->w);
        cw_destroy(&f->w); /* nothing is left */
}

TEST(test_the_child_can_free_everything_that_it_inherits) {
        in_a_child(WHOLE, free_all);
}

/* ---- many threads, children of children ---------------------------------- */

static int32_t ignore_topic(void *opaque, const rdmeta_topic_t *t) {
        (void)opaque;
        (void)t;
        return 0;
}

static void *read_by_turns(void *arg) {
        forked_t *f = arg;
        int k;

        for (k = 0; k < 20; k++) {
                rdmeta_reader_t *r = rdmeta_reader_new(f->w.cache, 0);
                rdmeta_image_t *image =
                        rdmeta_cache_image(f->w.cache, f->w.now);

                CHECK(r && image);
                CHECK(!rdmeta_reader_walk(r, "", 0, 7, f->w.now.mono_us,
                                          ignore_topic, NULL));
                rdmeta_reader_destroy(r);
                rdmeta_image_unref(image);
                read_stats(f);
        }
        return NULL;
}

static void many_threads(forked_t *f) {
        const size_t blocks = f->w.heap.blocks;
        pthread_t threads[3];
        int k;

        for (k = 0; k < 3; k++)
                CHECK(!pthread_create(&threads[k], NULL, read_by_turns, f));
        for (k = 0; k < 3; k++)
                CHECK(!pthread_join(threads[k], NULL));
        CHECK(f->w.heap.blocks == blocks);
}

TEST(test_threads_of_the_child_take_turns) {
        in_a_child(WHOLE, many_threads);
}

static void child_of_a_child(forked_t *f) {
        int status;
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (pid == 0) {
                read_all(f);
                free_all(f);
                _exit(7);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        read_all(f);
}

TEST(test_the_child_of_a_child_can_read_too) {
        in_a_child(WHOLE, child_of_a_child);
}

/* ---- a lost lock --------------------------------------------------------- */

static void look_up(forked_t *f) {
        const int64_t mono_us      = f->w.now.mono_us;
        rdmeta_reader_t *r         = f->w.reader;
        const rdmeta_topic_t *t    = NULL;
        rdmeta_topic_info_t info;

        CHECK(rdmeta_leader(r, "orders", 6, 0, mono_us) == 3);
        CHECK(rdmeta_leader(r, "in.flight", 9, 0, mono_us) == RDMETA_WAITING);
        CHECK(rdmeta_handle_leader(r, f->handle, 1, mono_us) == 2);
        rdmeta_reader_enter(r);
        CHECK(!rdmeta_topic_find(r, "orders", 6, mono_us, &t));
        rdmeta_topic_info(r, t, mono_us, &info);
        CHECK(info.partitions == 2);
        rdmeta_reader_leave(r);
        CHECK(rdmeta_cache_version(f->w.cache) == f->stats.version);
}

static void only_look_up(forked_t *f) {
        const size_t blocks   = f->w.heap.blocks;
        rdmeta_cache_t *c     = f->w.cache;
        rdmeta_health_t sum   = {0};
        rdmeta_cache_t *other = rdmeta_cache_new(NULL);
        rdmeta_stats_t stats;
        uint64_t until;
        int32_t resync;

        look_up(f);
        refused(f);
        CHECK(!rdmeta_reader_new(c, 0) && !rdmeta_resolve(c, "orders", 6));
        CHECK(!rdmeta_cache_image(c, f->w.now));
        CHECK(!rdmeta_image_reader(f->image, 0));
        CHECK(rdmeta_reader_walk(f->w.reader, "", 0, 7, 0, ignore_topic,
                                 NULL) == RDMETA_ERR_FORKED);
        CHECK(rdmeta_reader_health(f->w.reader, 7, 0, &sum) ==
              RDMETA_ERR_FORKED);
        CHECK(rdmeta_cache_changes(c, 0, NULL, NULL, &until, &resync) ==
              RDMETA_ERR_FORKED);
        rdmeta_cache_stats(c, &stats);
        CHECK(!stats.bytes);
        look_up(f);
        forked_free(f);
        rdmeta_reader_destroy(f->w.reader);
        rdmeta_reader_destroy(f->w.stale);
        rdmeta_cache_unref(c);
        CHECK(f->w.heap.blocks == blocks);
        CHECK(other && !rdmeta_cache_purge(other, f->w.now));
        rdmeta_cache_unref(other);
}

TEST(test_a_child_without_the_lock_only_looks_up) {
        in_a_child(LOST, only_look_up);
}

TEST_MAIN()
