/* Saving: a file aside, and then in the place of another. */
#include "image/file_write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the path's own name in that of the file aside, and what is around it. */
enum { NAME_MOST = 200, NAME_AROUND = 32 };

/*
 * A file without a name, if the file system can: then nothing is left behind
 * by who is killed while he writes. It gets its name for the moment between
 * that and taking another's place. Elsewhere it has one from the beginning.
 *
 *     .NAME.rdmeta-0123456789abcdef     NAME: of the path, 200 bytes at most
 *
 * Who is killed in that moment leaves it. So it is locked (flock) as long as
 * it has an owner: what has such a name and can be locked is nobody's.
 */
typedef struct aside {
        char path[PATH_MAX]; /* of the directory, and where it ends */
        size_t dir;
        const char *base; /* the path's own name, ... */
        int base_len;     /* ... as much as is used of it */
        int fd;
        int named;
        int sync; /* SYNC: the directory; else -1 */
} aside_t;

static rdmeta_err_t aside_directory(aside_t *a, const char *path) {
        const char *slash = strrchr(path, '/');

        memset(a, 0, sizeof(*a));
        a->fd = a->sync = -1;
        a->dir      = slash ? (size_t)(slash - path) + 1 : 0;
        a->base     = path + a->dir;
        a->base_len = (int)strnlen(a->base, NAME_MOST);
        if (a->dir + NAME_MOST + NAME_AROUND > sizeof(a->path)) {
                errno = ENAMETOOLONG;
                return RDMETA_ERR_IO;
        }
        memcpy(a->path, path, a->dir);
        return RDMETA_OK;
}

/* A name of nobody's. */
static void aside_name(aside_t *a) {
        snprintf(a->path + a->dir, NAME_MOST + NAME_AROUND,
                 ".%.*s.rdmeta-%016llx", a->base_len, a->base,
                 (unsigned long long)rdmeta_file_random(a));
}

/* 1: it is ours, and still has its name; where files cannot be locked nobody
 * takes it away. */
static int aside_hold(int fd) {
        struct stat st;

        return (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK) &&
               !fstat(fd, &st) && st.st_nlink > 0;
}

/* With a name from the beginning. */
static rdmeta_err_t aside_open_named(aside_t *a, int flags) {
        for (;;) {
                aside_name(a);
                a->fd = open(a->path, flags | O_CREAT | O_EXCL, 0666);
                if (a->fd < 0 && errno != EEXIST && errno != EINTR)
                        return RDMETA_ERR_IO;
                if (a->fd >= 0 && aside_hold(a->fd))
                        break;
                if (a->fd >= 0)
                        close(a->fd);
        }
        a->named = 1;
        return RDMETA_OK;
}

static rdmeta_err_t aside_open(aside_t *a) {
        const int flags = O_WRONLY | O_CLOEXEC;

        strcpy(a->path + a->dir, ".");
        a->fd = access("/proc/self/fd", X_OK)
                        ? -1
                        : open(a->path, flags | O_TMPFILE, 0666);
        if (a->fd < 0)
                return aside_open_named(a, flags);
        flock(a->fd, LOCK_EX | LOCK_NB);
        return RDMETA_OK;
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

/* So that the file is found under its name after the power failed. Opened
 * while nothing has been done yet: who may write there need not read. */
static rdmeta_err_t sync_open(aside_t *a) {
        strcpy(a->path + a->dir, ".");
        a->sync = open(a->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return a->sync < 0 ? RDMETA_ERR_IO : RDMETA_OK;
}

/* Who may read the file that is there may read the next. */
static rdmeta_err_t aside_mode(const aside_t *a, const char *path) {
        struct stat st;

        if (stat(path, &st) || !S_ISREG(st.st_mode))
                return RDMETA_OK;
        return fchmod(a->fd, st.st_mode & 0777) ? RDMETA_ERR_IO : RDMETA_OK;
}

static rdmeta_err_t aside_write(aside_t *a, rdmeta_image_t *image,
                                const char *path) {
        rdmeta_err_t err = aside_mode(a, path);

        if (!err)
                err = rdmeta_file_write(image, a->fd);
        if (!err && a->sync >= 0 && fsync(a->fd))
                err = RDMETA_ERR_IO;
        if (!err)
                err = aside_link(a);
        if (!err && rename(a->path, path))
                err = RDMETA_ERR_IO;
        if (!err)
                a->named = 0; /* it is the path's */
        if (!err && a->sync >= 0 && fsync(a->sync))
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
        err = aside_directory(&a, path);
        if (!err && flags & RDMETA_IMAGE_SYNC)
                err = sync_open(&a);
        if (!err)
                err = aside_open(&a);
        if (!err)
                err = aside_write(&a, image, path);
        saved = errno;
        if (err && a.named)
                unlink(a.path);
        if (a.fd >= 0)
                close(a.fd);
        if (a.sync >= 0)
                close(a.sync);
        errno = saved;
        return err;
}
