/* Saving: a file aside, and then in the place of another. */
#include "image_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* A name of nobody's in the directory of `path`; where that ends in *dir. */
static rdmeta_err_t temporary_path(const char *path, char *out, size_t *dir) {
        const char *slash = strrchr(path, '/');
        const size_t n    = slash ? (size_t)(slash - path) + 1 : 0;

        if (n + 32 > PATH_MAX) {
                errno = ENAMETOOLONG;
                return RDMETA_ERR_IO;
        }
        memcpy(out, path, n);
        snprintf(out + n, 32, ".rdmeta-%016llx",
                 (unsigned long long)rdmeta_file_random(out));
        *dir = n;
        return RDMETA_OK;
}

static rdmeta_err_t temporary_open(const char *path, char *out, size_t *dir,
                                   int *fd) {
        rdmeta_err_t err;

        do {
                err = temporary_path(path, out, dir);
                if (err)
                        return err;
                *fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                           0666);
        } while (*fd < 0 && (errno == EEXIST || errno == EINTR));
        return *fd < 0 ? RDMETA_ERR_IO : RDMETA_OK;
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

rdmeta_err_t rdmeta_image_save(rdmeta_image_t *image, const char *path,
                               int32_t flags) {
        char temporary[PATH_MAX];
        rdmeta_err_t err;
        int fd, saved;
        size_t dir;

        if (flags & ~RDMETA_IMAGE_SYNC)
                return RDMETA_ERR_ARGUMENT;
        err = temporary_open(path, temporary, &dir, &fd);
        if (err)
                return err;
        err = rdmeta_file_write(image, fd);
        if (!err && flags & RDMETA_IMAGE_SYNC && fsync(fd))
                err = RDMETA_ERR_IO;
        saved = errno;
        if (close(fd) && !err) {
                saved = errno;
                err   = RDMETA_ERR_IO;
        }
        if (!err && rename(temporary, path)) {
                saved = errno;
                err   = RDMETA_ERR_IO;
        }
        if (err) {
                unlink(temporary);
                errno = saved;
                return err;
        }
        return flags & RDMETA_IMAGE_SYNC ? sync_directory(temporary, dir)
                                         : RDMETA_OK;
}
