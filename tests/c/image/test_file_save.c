/* Saves images. An error leaves the old file, and so does a killed process. A
 * reader of the old file can go on. */
#include "support/image_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

CACHE_TEST(test_a_failed_save_leaves_the_old_file_and_no_other) {
        const char *path = iw_path("kept"), *dir = iw_path("dir");
        rdmeta_image_t *image;
        uint8_t *before, *after;
        size_t n, m;
        int files;

        CHECK(!cw_all(w, "a 0:1"));
        image = iw_image(w);
        CHECK(rdmeta_image_save(image, iw_path("no/such/dir"), 0) ==
              RDMETA_ERR_IO);
        CHECK(errno == ENOENT);
        CHECK(!rdmeta_image_save(image, path, 0));
        CHECK(!mkdir(dir, 0700));
        before = iw_read(path, &n);
        files  = iw_files();
        CHECK(rdmeta_image_save(image, dir, 0) == RDMETA_ERR_IO);
        CHECK(errno == EISDIR);
        CHECK(rdmeta_image_save(image, path, RDMETA_IMAGE_COPY) ==
              RDMETA_ERR_ARGUMENT);
        w->heap.fail_at = w->heap.calls + 1;
        CHECK(rdmeta_image_save(image, path, 0) == RDMETA_ERR_NO_MEMORY);
        w->heap.fail_at = 0;
        after = iw_read(path, &m);
        CHECK(n == m && !memcmp(before, after, n));
        CHECK(iw_files() == files);
        free(before);
        free(after);
        CHECK(!rmdir(dir));
        rdmeta_image_unref(image);
}

/* Kills a process at any moment of a save. test_file_temporary.c tests the file
 * that it may leave. */
CACHE_TEST(test_a_process_killed_while_saving_leaves_a_complete_file) {
        const char *path = iw_path("killed");
        rdmeta_image_t *image, *file;
        int i, status;
        pid_t pid;

        iw_fill(w);
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        for (i = 0; i < 100; i++) {
                pid = fork();
                CHECK(pid >= 0);
                while (!pid)
                        CHECK(!rdmeta_image_save(image, path, 0));
                usleep(500 + (useconds_t)i * 29);
                CHECK(!kill(pid, SIGKILL));
                CHECK(waitpid(pid, &status, 0) == pid);
                CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
                file = iw_open(path, 0, w->now);
                CHECK(!rdmeta_image_verify(file));
                rdmeta_image_unref(file);
        }
        rdmeta_image_unref(image);
}

CACHE_TEST(test_the_umask_sets_the_mode_whatever_lies_at_the_path) {
        const char *path = iw_path("mode"), *link = iw_path("link");
        const mode_t old = umask(027);
        rdmeta_image_t *image;
        struct stat st;

        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0640);
        CHECK(!chmod(path, 0666) && !symlink(path, link));
        CHECK(!rdmeta_image_save(image, link, 0));
        CHECK(!lstat(link, &st) && st.st_mode == (S_IFREG | 0640));
        CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0666);
        CHECK(!rdmeta_image_save(image, path, 0));
        umask(old);
        CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0640);
        CHECK(!unlink(link));
        rdmeta_image_unref(image);
}

CACHE_TEST(test_a_mode_of_the_flags_wins_over_the_umask) {
        static const int wrong[] = {01000, 07777, -1};
        const char *path  = iw_path("given");
        const mode_t old  = umask(077);
        const int32_t bit = 1 << RDMETA_IMAGE_MODE_SHIFT;
        rdmeta_image_t *image;
        struct stat st;
        size_t i;

        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0664 * bit | RDMETA_IMAGE_SYNC));
        CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0664);
        CHECK(!rdmeta_image_save(image, path, 0440 * bit));
        CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0440);
        for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
                CHECK(rdmeta_image_save(image, path, wrong[i] * bit) ==
                      RDMETA_ERR_ARGUMENT);
        umask(old);
        rdmeta_image_unref(image);
}

/* Saves to a directory that the process may write to but not read. SYNC fails,
 * since fsync() needs to open the directory. */
static void saves_without_reading(rdmeta_image_t *image, const char *path,
                                  const uint8_t *before, size_t n) {
        uint8_t *after;
        size_t m;

        CHECK(geteuid() != 0 || !setuid(65534));
        CHECK(rdmeta_image_save(image, path, RDMETA_IMAGE_SYNC) ==
              RDMETA_ERR_IO);
        CHECK(errno == EACCES);
        after = iw_read(path, &m);
        CHECK(n == m && !memcmp(before, after, n));
        free(after);
        CHECK(!rdmeta_image_save(image, path, 0));
        after = iw_read(path, &m);
        CHECK(n != m || memcmp(before, after, n) != 0);
        free(after);
}

TEST(test_a_directory_that_cannot_be_synced_keeps_its_file) {
        char dir[256], path[300];
        rdmeta_image_t *image;
        uint8_t *before;
        int status;
        size_t n;
        pid_t pid;
        cw_t w;

        snprintf(dir, sizeof(dir), "%s", iw_path("unread"));
        snprintf(path, sizeof(path), "%s/file", dir);
        CHECK(!mkdir(dir, 0700));
        cw_init(&w, NULL);
        image = iw_image(&w);
        CHECK(!rdmeta_image_save(image, path, 0));
        before = iw_read(path, &n);
        CHECK(!chmod(dir, 0333));
        *strrchr(dir, '/') = 0;
        CHECK(!chmod(dir, 0711));
        pid = fork();
        CHECK(pid >= 0);
        if (!pid) {
                saves_without_reading(image, path, before, n);
                _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && !status);
        free(before);
        CHECK(!unlink(path));
        *strrchr(path, '/') = 0;
        CHECK(!rmdir(path));
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

CACHE_TEST(test_any_allocation_of_open_and_save_may_fail) {
        const int32_t flags[] = {0, RDMETA_IMAGE_COPY};
        const char *path = iw_path("memory");
        rdmeta_allocator_t allocator;
        rdmeta_image_t *image, *file;
        test_heap_t heap;
        size_t nth;
        int i;

        iw_fill(w);
        image = iw_image(w);
        for (nth = 1;; nth++) {
                w->heap.fail_at = w->heap.calls + nth;
                if (!rdmeta_image_save(image, path, 0))
                        break;
        }
        w->heap.fail_at = 0;
        CHECK(nth > 2);
        for (i = 0; i < 2; i++) {
                for (file = NULL, nth = 1; !file; nth++) {
                        allocator    = test_allocator(&heap);
                        heap.fail_at = nth;
                        if (rdmeta_file_open(&allocator, path, flags[i],
                                             w->now, &file)) {
                                CHECK(!file && heap.blocks == 0);
                                continue;
                        }
                        heap.fail_at = 0;
                        iw_same(file, image, w->now.mono_us);
                }
                CHECK(nth > 4);
                rdmeta_image_unref(file);
                CHECK(heap.blocks == 0 && heap.bytes == 0);
        }
        rdmeta_image_unref(image);
}

/* ---- files that change, processes that fork ---------------------------- */

CACHE_TEST(test_a_replaced_file_reads_as_before) {
        const char *path = iw_path("replaced");
        rdmeta_image_t *image, *old, *copy, *file;
        char *before, *after;

        CHECK(!cw_all(w, "a 0:1; b 0:2"));
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        rdmeta_image_unref(image);
        old    = iw_open(path, 0, w->now);
        copy   = iw_open(path, RDMETA_IMAGE_COPY, w->now);
        before = iw_text(old, w->now.mono_us);
        CHECK(!cw_all(w, "a 0:3; c 0:2; d 0:1; e 0:1"));
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        after = iw_text(old, w->now.mono_us);
        CHECK_TEXT(after, before);
        CHECK(!rdmeta_image_verify(old));
        file = iw_open(path, 0, w->now);
        iw_same(file, image, w->now.mono_us);
        /* A copy does not change when the file is overwritten and cut. */
        iw_write(path, "x", 1);
        free(after);
        after = iw_text(copy, w->now.mono_us);
        CHECK_TEXT(after, before);
        CHECK(!rdmeta_image_verify(copy));
        free(before);
        free(after);
        rdmeta_image_unref(old);
        rdmeta_image_unref(copy);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
}

CACHE_TEST(test_a_forked_child_reads_saves_and_releases_a_file) {
        const char *path = iw_path("forked"), *other = iw_path("by-child");
        rdmeta_image_t *image, *file;
        char *text;
        int status;
        pid_t pid;

        iw_fill(w);
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        file = iw_open(path, 0, w->now);
        text = iw_text(file, w->now.mono_us);
        pid  = fork();
        CHECK(pid >= 0);
        if (!pid) {
                char *child = iw_text(file, w->now.mono_us);

                CHECK_TEXT(child, text);
                CHECK(!rdmeta_image_save(file, other, 0));
                rdmeta_image_unref(file);
                _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && !status);
        rdmeta_image_unref(file);
        file = iw_open(other, 0, w->now);
        iw_same(file, image, w->now.mono_us);
        free(text);
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
}

TEST_MAIN()
