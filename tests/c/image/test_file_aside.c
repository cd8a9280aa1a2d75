/* What a save that is killed leaves aside, seen in the moments before the file
 * gets a name and takes its place: linkat() and rename() are this file's. */
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

static void (*before)(const char *from);

/* In place of the C library's. */
int rename(const char *from, const char *to) {
        if (before)
                before(from);
        return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static void (*unnamed)(const char *file);

int linkat(int from_dir, const char *from, int to_dir, const char *to,
           int flags) {
        if (unnamed)
                unnamed(from);
        return (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

/* 1: nobody has it. */
static int is_dead(const char *path) {
        const int fd   = open(path, O_RDONLY | O_CLOEXEC);
        const int dead = !flock(fd, LOCK_EX | LOCK_NB);

        CHECK(fd >= 0 && (dead || errno == EWOULDBLOCK));
        close(fd);
        return dead;
}

static void is_named_and_held(const char *from) {
        const char *name = strrchr(from, '/') + 1;

        CHECK(!strncmp(name, ".held.rdmeta-", 13));
        CHECK(strspn(name + 13, "0123456789abcdef") == 16 && !name[29]);
        CHECK(!is_dead(from));
}

static void die(const char *from) {
        (void)from;
        raise(SIGKILL);
}

static void test_a_file_aside_has_the_paths_name_and_is_held(void) {
        const char *path = iw_path("held");
        rdmeta_image_t *image;
        cw_t w;

        cw_init(&w, NULL);
        image  = iw_image(&w);
        before = is_named_and_held;
        CHECK(!rdmeta_image_save(image, path, 0));
        CHECK(!rdmeta_image_save(image, path, 0));
        before = NULL;
        CHECK(is_dead(path) && iw_files() == 1);
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

static int files, whole;

static void is_alone_and_whole(const char *file) {
        const rdmeta_time_t now = {0, 0};
        rdmeta_image_t *image   = iw_open(file, 0, now);

        CHECK(iw_files() == files);
        CHECK(!rdmeta_image_verify(image));
        rdmeta_image_unref(image);
        whole++;
}

/* So who is killed while he writes leaves nothing. */
static void test_a_file_has_no_name_until_it_is_whole(void) {
        const char *path = iw_path("unnamed");
        rdmeta_image_t *image;
        cw_t w;

        cw_init(&w, NULL);
        iw_fill(&w);
        image   = iw_image(&w);
        files   = iw_files();
        unnamed = is_alone_and_whole;
        CHECK(!rdmeta_image_save(image, path, 0));
        unnamed = NULL;
        if (!whole)
                fprintf(stderr, "  skipped: files without a name are refused "
                                "here\n");
        CHECK(iw_files() == files + 1);
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

static void test_what_who_was_killed_leaves_is_held_by_nobody(void) {
        const char *path = iw_path("killed");
        char directory[256], left[600] = "";
        rdmeta_image_t *image, *file;
        struct dirent *entry;
        int status;
        pid_t pid;
        DIR *dir;
        cw_t w;

        cw_init(&w, NULL);
        iw_fill(&w);
        image = iw_image(&w);
        pid   = fork();
        CHECK(pid >= 0);
        before = die;
        if (!pid)
                rdmeta_image_save(image, path, 0);
        before = NULL;
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        snprintf(directory, sizeof(directory), "%.*s",
                 (int)(strrchr(path, '/') - path), path);
        dir = opendir(directory);
        while ((entry = readdir(dir)) != NULL)
                if (!strncmp(entry->d_name, ".killed.rdmeta-", 15))
                        snprintf(left, sizeof(left), "%s/%s", directory,
                                 entry->d_name);
        closedir(dir);
        CHECK(left[0] && is_dead(left));
        file = iw_open(left, 0, w.now); /* all of it was written */
        CHECK(!rdmeta_image_verify(file));
        rdmeta_image_unref(file);
        CHECK(!unlink(left));
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

static void test_the_longest_names_can_be_saved(void) {
        const char *other = iw_path("a");
        char name[256], path[512];
        rdmeta_image_t *image;
        struct stat st;
        cw_t w;

        cw_init(&w, NULL);
        image = iw_image(&w);
        memset(name, 'n', 255);
        name[255] = 0;
        snprintf(path, sizeof(path), "%.*s/%s",
                 (int)(strrchr(other, '/') - other), other, name);
        CHECK(!rdmeta_image_save(image, path, 0) && !stat(path, &st));
        CHECK(!unlink(path));
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

int main(void) {
        test_begin(60);
        RUN(test_a_file_aside_has_the_paths_name_and_is_held);
        RUN(test_a_file_has_no_name_until_it_is_whole);
        RUN(test_what_who_was_killed_leaves_is_held_by_nobody);
        RUN(test_the_longest_names_can_be_saved);
        return 0;
}
