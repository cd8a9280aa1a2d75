/* Saves an image: writes a temporary file, which then replaces the old one by
 * rename. */
#include "image/file_write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most bytes of the path's last part that a temporary name takes, and room
 * for what it adds to them. */
enum { NAME_MOST = 200, NAME_AROUND = 32 };

/*
 * A temporary file. It has no name while it is written, if the file system
 * allows that: then a process that is killed while it writes leaves nothing.
 * The file gets a name only for the moment before the rename. On other file
 * systems it has its name from the beginning.
 *
 *     .NAME.rdmeta-0123456789abcdef     NAME: of the path, 200 bytes at most
 *
 * A process that is killed while the file has its name leaves it. So the
 * writer keeps the file locked (flock). A file that has such a name and can be
 * locked has no writer any more, and may be deleted.
 */
typedef struct temp {
        char path[PATH_MAX]; /* the directory, then the temporary name */
        size_t dir;          /* the length of the directory */
        const char *base;    /* the last part of the path */
        int base_len;        /* how many bytes of it the name takes */
        int fd;
        int named; /* 1: the file has a name, which an error removes */
        int sync;  /* SYNC: the open directory; otherwise -1 */
} temp_t;

static rdmeta_err_t temp_directory(temp_t *t, const char *path) {
        const char *slash = strrchr(path, '/');

        memset(t, 0, sizeof(*t));
        t->fd = t->sync = -1;
        t->dir      = slash ? (size_t)(slash - path) + 1 : 0;
        t->base     = path + t->dir;
        t->base_len = (int)strnlen(t->base, NAME_MOST);
        if (t->dir + NAME_MOST + NAME_AROUND > sizeof(t->path)) {
                errno = ENAMETOOLONG;
                return RDMETA_ERR_IO;
        }
        memcpy(t->path, path, t->dir);
        return RDMETA_OK;
}

/* Writes a new random name to t->path. */
static void temp_name(temp_t *t) {
        snprintf(t->path + t->dir, NAME_MOST + NAME_AROUND,
                 ".%.*s.rdmeta-%016llx", t->base_len, t->base,
                 (unsigned long long)rdmeta_file_random(t));
}

/* Locks a file. Returns 1 if this process has it and it still has its name.
 * Where files cannot be locked no other process removes it. */
static int temp_lock(int fd) {
        struct stat st;

        return (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK) &&
               !fstat(fd, &st) && st.st_nlink > 0;
}

/* Opens a temporary file that has a name from the beginning. Returns IO. */
static rdmeta_err_t temp_open_named(temp_t *t, int flags, mode_t mode) {
        for (;;) {
                temp_name(t);
                t->fd = open(t->path, flags | O_CREAT | O_EXCL, mode);
                if (t->fd < 0 && errno != EEXIST && errno != EINTR)
                        return RDMETA_ERR_IO;
                if (t->fd >= 0 && temp_lock(t->fd))
                        break;
                if (t->fd >= 0)
                        close(t->fd);
        }
        t->named = 1;
        return RDMETA_OK;
}

static rdmeta_err_t temp_open_any(temp_t *t, mode_t mode) {
        const int flags = O_WRONLY | O_CLOEXEC;

        strcpy(t->path + t->dir, ".");
        t->fd = access("/proc/self/fd", X_OK)
                        ? -1
                        : open(t->path, flags | O_TMPFILE, mode);
        if (t->fd < 0)
                return temp_open_named(t, flags, mode);
        flock(t->fd, LOCK_EX | LOCK_NB);
        return RDMETA_OK;
}

/* Opens the temporary file with a mode; 0: the umask decides. Returns IO. */
static rdmeta_err_t temp_open(temp_t *t, mode_t mode) {
        rdmeta_err_t err = temp_open_any(t, mode ? mode & 0600 : 0666);

        return !err && mode && fchmod(t->fd, mode) ? RDMETA_ERR_IO : err;
}

/* Gives the file a name. /proc is the way that needs no privilege. Returns
 * IO. */
static rdmeta_err_t temp_link(temp_t *t) {
        char self[64];
        int failed;

        if (t->named)
                return RDMETA_OK;
        snprintf(self, sizeof(self), "/proc/self/fd/%d", t->fd);
        do {
                temp_name(t);
                failed = linkat(AT_FDCWD, self, AT_FDCWD, t->path,
                                AT_SYMLINK_FOLLOW);
        } while (failed && errno == EEXIST);
        t->named = !failed;
        return failed ? RDMETA_ERR_IO : RDMETA_OK;
}

/* Opens the directory for fsync(), so that the new file has its name even after
 * a power failure. A process that may write in a directory may not be allowed
 * to read it. So the save opens it before it changes anything. Returns IO. */
static rdmeta_err_t sync_open(temp_t *t) {
        strcpy(t->path + t->dir, ".");
        t->sync = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return t->sync < 0 ? RDMETA_ERR_IO : RDMETA_OK;
}

static rdmeta_err_t temp_write(temp_t *t, rdmeta_image_t *image,
                                const char *path) {
        rdmeta_err_t err = rdmeta_file_write(image, t->fd);

        if (!err && t->sync >= 0 && fsync(t->fd))
                err = RDMETA_ERR_IO;
        if (!err)
                err = temp_link(t);
        if (!err && rename(t->path, path))
                err = RDMETA_ERR_IO;
        if (!err)
                t->named = 0; /* the file has the path's name now */
        if (!err && t->sync >= 0 && fsync(t->sync))
                err = RDMETA_ERR_IO;
        return err;
}

rdmeta_err_t rdmeta_image_save(rdmeta_image_t *image, const char *path,
                               int32_t flags) {
        const int32_t mode = flags >> RDMETA_IMAGE_MODE_SHIFT;
        rdmeta_err_t err;
        temp_t t;
        int saved;

        if (mode & ~0777 ||
            flags & 0xffff & ~RDMETA_IMAGE_SYNC)
                return RDMETA_ERR_ARGUMENT;
        err = temp_directory(&t, path);
        if (!err && flags & RDMETA_IMAGE_SYNC)
                err = sync_open(&t);
        if (!err)
                err = temp_open(&t, (mode_t)mode);
        if (!err)
                err = temp_write(&t, image, path);
        saved = errno;
        if (err && t.named)
                unlink(t.path);
        if (t.fd >= 0)
                close(t.fd);
        if (t.sync >= 0)
                close(t.sync);
        errno = saved;
        return err;
}
