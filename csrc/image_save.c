/* Saving: a file aside, and then in the place of another. */
#include "image_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_LENGTH = 32 };

/*
 * A file without a name, if the file system can: then nothing is left behind
 * by who is killed while he writes. It gets its name for the moment between
 * that and taking another's place. Elsewhere it has one from the beginning.
 */
typedef struct aside {
        char path[PATH_MAX]; /* of the directory, and where it ends */
        size_t dir;
        int fd;
        int named;
} aside_t;

static rdmeta_err_t aside_directory(aside_t *a, const char *path) {
        const char *slash = strrchr(path, '/');

        memset(a, 0, sizeof(*a));
        a->dir = slash ? (size_t)(slash - path) + 1 : 0;
        if (a->dir + NAME_LENGTH > sizeof(a->path)) {
                errno = ENAMETOOLONG;
                return RDMETA_ERR_IO;
        }
        memcpy(a->path, path, a->dir);
        return RDMETA_OK;
}

/* A name of nobody's. */
static void aside_name(aside_t *a) {
        snprintf(a->path + a->dir, NAME_LENGTH, ".rdmeta-%016llx",
                 (unsigned long long)rdmeta_file_random(a));
}

static rdmeta_err_t aside_open(aside_t *a, const char *path) {
        const int flags  = O_WRONLY | O_CLOEXEC;
        rdmeta_err_t err = aside_directory(a, path);

        if (err)
                return err;
        strcpy(a->path + a->dir, ".");
        a->fd = access("/proc/self/fd", X_OK)
                        ? -1
                        : open(a->path, flags | O_TMPFILE, 0666);
        if (a->fd >= 0)
                return RDMETA_OK;
        do {
                aside_name(a);
                a->fd = open(a->path, flags | O_CREAT | O_EXCL, 0666);
        } while (a->fd < 0 && (errno == EEXIST || errno == EINTR));
        a->named = a->fd >= 0;
        return a->fd < 0 ? RDMETA_ERR_IO : RDMETA_OK;
}

/* By the way that needs no privilege: /proc. */
static rdmeta_err_t aside_link(aside_t *a) {
        char self[64];
        int failed;

        if (a->named)
                return RDMETA_OK;
        snprintf(self, sizeof(self), "/proc/self/fd/%d", a->fd);
        do {
                aside_name(a);
                failed = linkat(AT_FDCWD, self, AT_FDCWD, a->path,
                                AT_SYMLINK_FOLLOW);
        } while (failed && errno == EEXIST);
        a->named = !failed;
        return failed ? RDMETA_ERR_IO : RDMETA_OK;
}

/* So that the file is found under its name after the power failed. */
static rdmeta_err_t sync_directory(char *path, size_t dir) {
        int fd, failed;

        strcpy(path + dir, ".");
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return RDMETA_ERR_IO;
        failed = fsync(fd);
        close(fd);
        return failed ? RDMETA_ERR_IO : RDMETA_OK;
}

/* Who may read the file that is there may read the next. */
static rdmeta_err_t aside_mode(const aside_t *a, const char *path) {
        struct stat st;

        if (stat(path, &st) || !S_ISREG(st.st_mode))
                return RDMETA_OK;
        return fchmod(a->fd, st.st_mode & 0777) ? RDMETA_ERR_IO : RDMETA_OK;
}

static rdmeta_err_t aside_write(aside_t *a, rdmeta_image_t *image,
                                const char *path, int32_t flags) {
        rdmeta_err_t err = aside_mode(a, path);

        if (!err)
                err = rdmeta_file_write(image, a->fd);
        if (!err && flags & RDMETA_IMAGE_SYNC && fsync(a->fd))
                err = RDMETA_ERR_IO;
        if (!err)
                err = aside_link(a);
        if (!err && rename(a->path, path))
                err = RDMETA_ERR_IO;
        return err;
}

rdmeta_err_t rdmeta_image_save(rdmeta_image_t *image, const char *path,
                               int32_t flags) {
        rdmeta_err_t err;
        aside_t a;
        int saved;

        if (flags & ~RDMETA_IMAGE_SYNC)
                return RDMETA_ERR_ARGUMENT;
        err = aside_open(&a, path);
        if (err)
                return err;
        err   = aside_write(&a, image, path, flags);
        saved = errno;
        if (err && a.named)
                unlink(a.path);
        close(a.fd);
        errno = saved;
        if (err || !(flags & RDMETA_IMAGE_SYNC))
                return err;
        return sync_directory(a.path, a.dir);
}
