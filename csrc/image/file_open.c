/* Opens a file: reads and checks its head, and maps or copies the rest. See
 * file.h. */
#include "image/file_open.h"

#include "base/alloc.h"
#include "image/file_verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the head ---------------------------------------------------------- */

uint64_t rdmeta_file_head_checksum(const rdmeta_file_head_t *head) {
        rdmeta_file_head_t copy = *head;

        copy.checksum = 0;
        return rdmeta_checksum(&copy, sizeof(copy));
}

static int section_good(const rdmeta_file_head_t *h, int kind) {
        const rdmeta_file_section_t *s = &h->sections[kind];

        return s->kind == (uint64_t)kind && s->offset % RDMETA_LINE == 0 &&
               s->offset >= sizeof(*h) && s->offset <= h->size &&
               s->length <= h->size - s->offset;
}

/* Returns whether a table has a power of two of slots, and no probe is longer
 * than the table. */
static int table_good(const rdmeta_file_head_t *h, int kind,
                      uint32_t longest) {
        const uint64_t slots = h->sections[kind].length / 8;

        return h->sections[kind].length % 8 == 0 && slots > 0 &&
               slots <= UINT32_MAX && !(slots & (slots - 1)) &&
               longest < slots;
}

static rdmeta_err_t sections_check(const rdmeta_file_head_t *h,
                                   rdmeta_image_fault_t *fault) {
        const uint64_t blocks = h->sections[RDMETA_FILE_BLOCKS].length;
        const uint64_t first  = offsetof(rdmeta_file_head_t, sections);
        int i;

        for (i = 0; i < RDMETA_FILE_SECTIONS; i++)
                if (!section_good(h, i))
                        return rdmeta_file_fault(
                                fault, -1, first + (uint64_t)i * 32,
                                "a section lies outside the file");
        if (blocks % RDMETA_LINE || blocks < RDMETA_LINE ||
            h->blocks > blocks / RDMETA_LINE - 1 ||
            h->sections[RDMETA_FILE_ORDER].length != 4 * h->blocks)
                return rdmeta_file_fault(
                        fault, -1, offsetof(rdmeta_file_head_t, blocks),
                        "the number of topics does not fit its sections");
        if (!table_good(h, RDMETA_FILE_NAMES, h->names_longest) ||
            !table_good(h, RDMETA_FILE_IDS, h->ids_longest))
                return rdmeta_file_fault(
                        fault, -1,
                        offsetof(rdmeta_file_head_t, names_longest),
                        "the size of a table is not possible");
        return RDMETA_OK;
}

/* Checks a head's format and checksum, and that each section is within the
 * `size` bytes of the file. Returns 0, UNSUPPORTED, or MALFORMED, which sets
 * *fault. */
static rdmeta_err_t head_check(const rdmeta_file_head_t *h, uint64_t size,
                               rdmeta_image_fault_t *fault) {
        if (memcmp(h->magic, RDMETA_FILE_MAGIC, sizeof(h->magic)) != 0)
                return rdmeta_file_fault(
                        fault, -1, 0,
                        "the file does not begin as an image does");
        if (h->byte_order != RDMETA_FILE_BYTE_ORDER ||
            h->format != RDMETA_FILE_FORMAT)
                return RDMETA_ERR_UNSUPPORTED;
        if (h->size != size || size > RDMETA_FILE_MAX)
                return rdmeta_file_fault(
                        fault, -1, offsetof(rdmeta_file_head_t, size),
                        "the size in the head is not the file's");
        if (h->checksum != rdmeta_file_head_checksum(h))
                return rdmeta_file_fault(
                        fault, -1, offsetof(rdmeta_file_head_t, checksum),
                        "the checksum does not match the bytes");
        if (h->max_age_us <= 0)
                return rdmeta_file_fault(
                        fault, -1, offsetof(rdmeta_file_head_t, max_age_us),
                        "the maximal age is not above 0");
        return sections_check(h, fault);
}

/* ---- the file ---------------------------------------------------------- */

rdmeta_file_identity_t rdmeta_file_identity_of(const struct stat *st) {
        rdmeta_file_identity_t id;

        memset(&id, 0, sizeof(id));
        id.dev   = st->st_dev;
        id.ino   = st->st_ino;
        id.mtime = st->st_mtim;
        id.size  = st->st_size;
        return id;
}

int rdmeta_file_identity_same(const rdmeta_file_identity_t *a,
                              const rdmeta_file_identity_t *b) {
        return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
               a->mtime.tv_sec == b->mtime.tv_sec &&
               a->mtime.tv_nsec == b->mtime.tv_nsec;
}

/* Reads exactly n bytes. Returns IO, or MALFORMED if the file has fewer. */
static rdmeta_err_t read_all(int fd, void *to, size_t n, uint64_t at) {
        char *p = (char *)to;

        while (n) {
                const ssize_t done = pread(fd, p, n, (off_t)at);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done <= 0)
                        return done ? RDMETA_ERR_IO : RDMETA_ERR_MALFORMED;
                p += done;
                at += (uint64_t)done;
                n -= (size_t)done;
        }
        return RDMETA_OK;
}

/* Reads and checks the head of a file, and sets *st. Returns IO, or what
 * head_check() does. */
static rdmeta_err_t head_read(int fd, rdmeta_file_head_t *head,
                              struct stat *st, rdmeta_image_fault_t *fault) {
        rdmeta_err_t err;

        if (fstat(fd, st))
                return RDMETA_ERR_IO;
        if (S_ISDIR(st->st_mode)) {
                errno = EISDIR;
                return RDMETA_ERR_IO;
        }
        if (!S_ISREG(st->st_mode))
                return rdmeta_file_fault(fault, -1, 0,
                                         "it is not a regular file");
        err = read_all(fd, head, sizeof(*head), 0);
        if (err == RDMETA_ERR_MALFORMED)
                return rdmeta_file_fault(fault, -1, (uint64_t)st->st_size,
                                         "the file ends within its head");
        return err ? err : head_check(head, (uint64_t)st->st_size, fault);
}

static rdmeta_err_t file_map(rdmeta_file_t *f, int fd) {
        void *p = mmap(NULL, f->size, PROT_READ, MAP_SHARED, fd, 0);

        if (p == MAP_FAILED)
                return errno == ENOMEM ? RDMETA_ERR_NO_MEMORY : RDMETA_ERR_IO;
        f->base = (const char *)p;
        return RDMETA_OK;
}

/* Copies a file into memory whose first byte begins a line. Returns MALFORMED
 * if the file changed meanwhile; NO_MEMORY, IO. */
static rdmeta_err_t file_copy(rdmeta_file_t *f, int fd) {
        rdmeta_file_identity_t now;
        struct stat st;
        rdmeta_err_t err;
        char *p;

        f->copy = rdmeta_alloc(&f->allocator, f->size + RDMETA_LINE);
        if (!f->copy)
                return RDMETA_ERR_NO_MEMORY;
        p = (char *)f->copy;
        p += (0 - (uintptr_t)p) % RDMETA_LINE;
        f->base = p;
        err     = read_all(fd, p, f->size, 0);
        if (err)
                return err;
        if (fstat(fd, &st))
                return RDMETA_ERR_IO;
        now = rdmeta_file_identity_of(&st);
        if (!rdmeta_file_identity_same(&now, &f->identity) ||
            memcmp(p, &f->head, sizeof(f->head)) != 0)
                return RDMETA_ERR_MALFORMED;
        f->fd = fd;
        return RDMETA_OK;
}

static void file_table(const rdmeta_file_t *f, rdmeta_file_table_t *t,
                       int kind, uint32_t longest, const uint64_t *key) {
        const rdmeta_file_section_t *s = &f->head.sections[kind];

        t->slots   = (const uint64_t *)(const void *)(f->base + s->offset);
        t->mask    = (uint32_t)(s->length / 8) - 1;
        t->longest = longest;
        memcpy(t->key, key, sizeof(t->key));
}

static rdmeta_err_t file_brokers(rdmeta_file_t *f) {
        const rdmeta_file_section_t *s =
                &f->head.sections[RDMETA_FILE_BROKERS];
        rdmeta_wire_t w;
        rdmeta_err_t err = rdmeta_wire_open(&w, f->base + s->offset,
                                            (size_t)s->length,
                                            RDMETA_FILE_API_VERSION, 0);

        if (!err)
                err = rdmeta_brokers_read(&f->allocator, &w, NULL,
                                          f->head.brokers_version,
                                          &f->image.brokers);
        if (!err && (w.head.topics || rdmeta_wire_close(&w)))
                err = RDMETA_ERR_MALFORMED;
        return err;
}

void rdmeta_file_taken(rdmeta_file_t *f, int64_t taken_us) {
        rdmeta_image_info_t *about = &f->image.about;

        f->taken_us               = taken_us;
        about->taken_mono_us      = taken_us;
        about->shared_deadline_us = rdmeta_file_plus(
                f->head.shared_deadline_us, taken_us);
}

/* Sets the image's info from the head. The wall clocks give the time since the
 * image was taken; it is never negative. */
static void file_about(rdmeta_file_t *f, rdmeta_time_t now, int mapped) {
        rdmeta_image_info_t *about  = &f->image.about;
        const rdmeta_file_head_t *h = &f->head;
        const int64_t passed = rdmeta_file_minus(now.wall_us,
                                                 h->taken_wall_us);

        about->version       = h->version;
        about->said_mono_us  = h->taken_mono_us;
        about->taken_wall_us = h->taken_wall_us;
        about->max_age_us    = h->max_age_us;
        about->topics        = h->topics;
        about->partitions    = h->partitions;
        about->negatives     = h->negatives;
        about->erased        = h->erased;
        about->bytes         = h->size;
        about->mapped        = mapped;
        memcpy(about->session, h->session, sizeof(about->session));
        rdmeta_file_taken(f, rdmeta_file_minus(now.mono_us,
                                               passed > 0 ? passed : 0));
}

/* Sets where the sections are. A block needs a line after its first one, so
 * none begins at the last line. */
static void file_places(rdmeta_file_t *f) {
        const rdmeta_file_section_t *s = &f->head.sections[RDMETA_FILE_BLOCKS];
        const rdmeta_file_section_t *order =
                &f->head.sections[RDMETA_FILE_ORDER];

        f->first = s->offset / RDMETA_LINE;
        f->lines = s->length / RDMETA_LINE - 1;
        f->begin = f->base + s->offset;
        f->end   = f->base + s->offset + s->length;
        f->order = (const uint32_t *)(const void *)(f->base + order->offset);
        f->count = (size_t)f->head.blocks;
        file_table(f, &f->names, RDMETA_FILE_NAMES, f->head.names_longest,
                   f->head.names_key);
        file_table(f, &f->ids, RDMETA_FILE_IDS, f->head.ids_longest,
                   f->head.ids_key);
}

/* Returns two bits per line, all 0; NULL: no memory. The bits of a large file
 * are mapped, so only pages that a check writes to cost memory. */
static _Atomic uint64_t *bitmap_new(const rdmeta_file_t *f) {
        void *p;

        if (rdmeta_file_maps_bitmap(f)) {
                p = mmap(NULL, f->bitmap, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
                return p == MAP_FAILED ? NULL : (_Atomic uint64_t *)p;
        }
        p = rdmeta_alloc(&f->allocator, f->bitmap);
        if (p)
                memset(p, 0, f->bitmap);
        return (_Atomic uint64_t *)p;
}

/* Reads the two small sections: reasons and brokers. Returns NO_MEMORY, or what
 * head_check() does. */
static rdmeta_err_t file_small(rdmeta_file_t *f, rdmeta_image_fault_t *fault) {
        const rdmeta_file_section_t *s = f->head.sections;
        rdmeta_err_t err               = rdmeta_file_reasons_open(f);

        if (err)
                return rdmeta_file_fault(fault, RDMETA_FILE_REASONS,
                                         s[RDMETA_FILE_REASONS].offset,
                                         "the reasons are malformed");
        err = file_brokers(f);
        return err != RDMETA_ERR_MALFORMED
                       ? err
                       : rdmeta_file_fault(fault, RDMETA_FILE_BROKERS,
                                           s[RDMETA_FILE_BROKERS].offset,
                                           "the brokers are malformed");
}

/* Fills in `f` from a file whose head is good. After an error destroy frees
 * what was made so far. */
static rdmeta_err_t file_fill(rdmeta_file_t *f, int fd, int32_t flags,
                              rdmeta_time_t now,
                              rdmeta_image_fault_t *fault) {
        rdmeta_err_t err = flags & RDMETA_IMAGE_COPY ? file_copy(f, fd)
                                                     : file_map(f, fd);

        if (err == RDMETA_ERR_MALFORMED)
                return rdmeta_file_fault(fault, -1, 0,
                                         "the file changed while it was read");
        if (err)
                return err;
        file_places(f);
        f->bitmap  = (size_t)(f->lines / 32 + 1) * 8;
        f->checked = bitmap_new(f);
        if (!f->checked)
                return RDMETA_ERR_NO_MEMORY;
        file_about(f, now, !(flags & RDMETA_IMAGE_COPY));
        return file_small(f, fault);
}

static rdmeta_err_t file_open(const rdmeta_allocator_t *allocator, int fd,
                              int32_t flags, rdmeta_time_t now,
                              rdmeta_image_t **out,
                              rdmeta_image_fault_t *fault) {
        rdmeta_file_head_t head;
        rdmeta_file_t *f;
        struct stat st;
        rdmeta_err_t err;

        err = head_read(fd, &head, &st, fault);
        if (err)
                return err;
        if (head.size > (flags & RDMETA_IMAGE_COPY ? RDMETA_FILE_COPY_MAX
                                                   : SIZE_MAX)) {
                errno = EFBIG;
                return RDMETA_ERR_IO;
        }
        f = (rdmeta_file_t *)rdmeta_alloc(allocator, sizeof(*f));
        if (!f)
                return RDMETA_ERR_NO_MEMORY;
        memset(f, 0, sizeof(*f));
        rdmeta_image_init(&f->image, &rdmeta_file_ops);
        if (allocator)
                f->allocator = *allocator;
        f->fd       = -1;
        f->head     = head;
        f->size     = (size_t)head.size;
        f->identity = rdmeta_file_identity_of(&st);
        err         = file_fill(f, fd, flags, now, fault);
        if (err) {
                const int saved = errno;

                f->fd = -1; /* the caller closes it */
                rdmeta_image_unref(&f->image);
                errno = saved;
                return err;
        }
        *out = &f->image;
        return RDMETA_OK;
}

/* Opens a file for reading. Returns its descriptor; < 0: errno is set. */
static int file_descriptor(const char *path) {
        int fd;

        /* O_NONBLOCK: opening a FIFO could wait for a writer. */
        do
                fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        while (fd < 0 && errno == EINTR);
        return fd;
}

rdmeta_err_t rdmeta_file_open(const rdmeta_allocator_t *allocator,
                              const char *path, int32_t flags,
                              rdmeta_time_t now, rdmeta_image_t **out) {
        rdmeta_image_fault_t unused;
        rdmeta_err_t err;
        int fd, saved;

        if (flags & ~RDMETA_IMAGE_COPY)
                return RDMETA_ERR_ARGUMENT;
        fd = file_descriptor(path);
        if (fd < 0)
                return RDMETA_ERR_IO;
        err   = file_open(allocator, fd, flags, now, out, &unused);
        saved = errno;
        if (err || !(flags & RDMETA_IMAGE_COPY))
                close(fd);
        errno = saved;
        return err;
}

rdmeta_err_t rdmeta_image_open(const char *path, int32_t flags,
                               rdmeta_time_t now, rdmeta_image_t **out) {
        return rdmeta_file_open(NULL, path, flags, now, out);
}

rdmeta_err_t rdmeta_image_file_fault(const char *path,
                                     rdmeta_image_fault_t *out) {
        const rdmeta_time_t never = {0, 0};
        const int fd              = file_descriptor(path);
        rdmeta_image_t *image     = NULL;
        rdmeta_err_t err;
        int saved;

        if (fd < 0)
                return RDMETA_ERR_IO;
        /* A copy: a mapped file that was truncated would end the process. */
        err   = file_open(NULL, fd, RDMETA_IMAGE_COPY, never, &image, out);
        saved = errno;
        if (err)
                close(fd); /* otherwise the image closes it */
        rdmeta_image_unref(image);
        errno = saved;
        return err;
}
