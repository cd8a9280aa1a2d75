/* The temporary files of saves, also of killed ones. This file replaces
 * linkat() and rename(), to see the moments before the file gets a name and
 * before it takes its place. */
#include "support/image_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* If set, rename() calls it first. */
static void (*on_rename)(const char *from);

/* Replaces the function of the C library. */
int rename(const char *from, const char *to) {
        if (on_rename)
                on_rename(from);
        return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* If set, linkat() calls it first. */
static void (*on_link)(const char *file);

int linkat(int from_dir, const char *from, int to_dir, const char *to,
           int flags) {
        if (on_link)
                on_link(from);
        return (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

/* Returns 1 if no process has the file locked. */
static int is_unlocked(const char *path) {
        const int fd       = open(path, O_RDONLY | O_CLOEXEC);
        const int unlocked = !flock(fd, LOCK_EX | LOCK_NB);

        CHECK(fd >= 0 && (unlocked || errno == EWOULDBLOCK));
        close(fd);
        return unlocked;
}

static void check_named_and_locked(const char *from) {
        const char *name = strrchr(from, '/') + 1;

        CHECK(!strncmp(name, ".locked.rdmeta-", 15));
        CHECK(strspn(name + 15, "0123456789abcdef") == 16 && !name[31]);
        CHECK(!is_unlocked(from));
}

static void die(const char *from) {
        (void)from;
        raise(SIGKILL);
}

CACHE_TEST(test_a_temporary_file_has_the_paths_name_and_is_locked) {
        const char *path = iw_path("locked");
        rdmeta_image_t *image;

        image     = iw_image(w);
        on_rename = check_named_and_locked;
        CHECK(!rdmeta_image_save(image, path, 0));
        CHECK(!rdmeta_image_save(image, path, 0));
        on_rename = NULL;
        CHECK(is_unlocked(path) && iw_files() == 1);
        rdmeta_image_unref(image);
}

static int files, complete;

static void check_alone_and_complete(const char *file) {
        const rdmeta_time_t now = {0, 0};
        rdmeta_image_t *image   = iw_open(file, 0, now);

        CHECK(iw_files() == files);
        CHECK(!rdmeta_image_verify(image));
        rdmeta_image_unref(image);
        complete++;
}

/* So a process that is killed while it writes leaves nothing. */
CACHE_TEST(test_a_temporary_file_has_no_name_until_it_is_complete) {
        const char *path = iw_path("unnamed");
        rdmeta_image_t *image;

        iw_fill(w);
        image   = iw_image(w);
        files   = iw_files();
        on_link = check_alone_and_complete;
        CHECK(!rdmeta_image_save(image, path, 0));
        on_link = NULL;
        if (!complete)
                fprintf(stderr, "  skipped: files without a name are refused "
                                "here\n");
        CHECK(iw_files() == files + 1);
        rdmeta_image_unref(image);
}

CACHE_TEST(test_a_killed_save_leaves_an_unlocked_temporary_file) {
        const char *path = iw_path("killed");
        char directory[256], leftover[600] = "";
        rdmeta_image_t *image, *file;
        struct dirent *entry;
        int status;
        pid_t pid;
        DIR *dir;

        iw_fill(w);
        image = iw_image(w);
        pid   = fork();
        CHECK(pid >= 0);
        on_rename = die;
        if (!pid)
                rdmeta_image_save(image, path, 0);
        on_rename = NULL;
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        snprintf(directory, sizeof(directory), "%.*s",
                 (int)(strrchr(path, '/') - path), path);
        dir = opendir(directory);
        while ((entry = readdir(dir)) != NULL)
                if (!strncmp(entry->d_name, ".killed.rdmeta-", 15))
                        snprintf(leftover, sizeof(leftover), "%s/%s",
                                 directory, entry->d_name);
        closedir(dir);
        CHECK(leftover[0] && is_unlocked(leftover));
        file = iw_open(leftover, 0, w->now); /* it is complete */
        CHECK(!rdmeta_image_verify(file));
        rdmeta_image_unref(file);
        CHECK(!unlink(leftover));
        rdmeta_image_unref(image);
}

CACHE_TEST(test_a_file_with_the_longest_name_can_be_saved) {
        const char *other = iw_path("a");
        char name[256], path[512];
        rdmeta_image_t *image;
        struct stat st;

        image = iw_image(w);
        memset(name, 'n', 255);
        name[255] = 0;
        snprintf(path, sizeof(path), "%.*s/%s",
                 (int)(strrchr(other, '/') - other), other, name);
        CHECK(!rdmeta_image_save(image, path, 0) && !stat(path, &st));
        CHECK(!unlink(path));
        rdmeta_image_unref(image);
}

TEST_MAIN()
