/*
 * file: an image in a file, which readers map and do not load.
 *
 *     file, in lines of 64 bytes, little-endian
 *     +--------------------------------------------------------------+
 *     | head     magic, byte order, format, size, checksum; version, |
 *     |          times, counts, keys; the place of each section      |
 *     +--------------------------------------------------------------+
 *     | blocks   hot hot cold|hot... hot .. cold.. cold.. cold..     | <-+
 *     |          hot hot hot hot ... cold.. cold.. cold..   zeros    |   |
 *     | brokers  a Metadata response v12 without topics              |   |
 *     | order    line, line, line ...            by name             | --+
 *     | names    slot, slot, 0, slot ...         by hash of the name | --+
 *     | ids      slot, 0, slot ...               by hash of the id   | --+
 *     | reasons  end, end ... text, text ...     by number, from 1   |
 *     +--------------------------------------------------------------+
 *
 *     slot   63 ............. 16 15 ....... 0      0: free
 *            line of the block   tag of hash
 *
 * Blocks lie in the order of names. A block has the same bytes as in memory
 * (topic/topic.h). Its hot part begins a line; the hot part of a split block
 * is exactly one line. The cold parts of split blocks follow the hot parts of
 * each RDMETA_FILE_GROUP blocks. Three words of a block mean something else:
 *
 *   - `link` is 0.
 *   - `deadline` counts from the moment when the image was taken. It is always
 *     the block's own, never the shared one.
 *   - `provenance` has the shared one resolved. Its reason is a number of the
 *     file, which lists only the reasons that its blocks have.
 *
 * The end of a reason counts from the first text. Where memory has a pointer,
 * the file has the number of a line, so any number gives an aligned address.
 * The tables are those of store/index.h, with keys of their own. The file has
 * topics in every state but WAIT. A warm start needs the topics that are GONE,
 * to compare older answers with them.
 *
 * open does not read a mapped file. It checks the head: its checksum, and the
 * size and place of each section. It also reads brokers and reasons, which are
 * few. Afterwards the reader believes nothing that the file says. It compares
 * each line number with the blocks section. It returns a block only after it
 * checked all of it (topic/validate.c) and the number of its reason. It checks
 * each block once: two bits per line store the result.
 *
 * A leader's lookup checks only what it reads, by two comparisons. No block
 * begins at the section's last line. So the first 64 bytes of a block and the
 * 64 after them are always within the section. A block says itself where its
 * cold part is, so a reader compares that with the section too. Checksums
 * detect accidents; only verify compares them.
 *
 * No check helps against a file that changes while it is mapped. If a file is
 * truncated, each process that reads the missing pages ends with SIGBUS. So
 * save writes a temporary file, which takes the place of the old one by
 * rename. Processes that mapped the old file keep it until they unmap it. If
 * unknown programs write to a file, open it with RDMETA_IMAGE_COPY.
 */
#pragma once

#include "base/checksum.h"
#include "image/image.h"
#include "store/reasons.h"

#include <sys/stat.h>

#define RDMETA_FILE_FORMAT 3
#define RDMETA_FILE_BYTE_ORDER 0x0a0b0c0du
/* The first bytes of a file. A program that treats it as text damages them. */
#define RDMETA_FILE_MAGIC "\x89rdmeta\n"
/* The largest file: a line's number has 32 bits. */
#define RDMETA_FILE_MAX ((uint64_t)RDMETA_LINE << 32)
/* The largest file that open copies. It has to read all of it, and a sparse
 * file may be huge without using the disk. */
#define RDMETA_FILE_COPY_MAX ((uint64_t)1 << 30)
/* The largest bitmap from the allocator; larger ones are mapped. */
#define RDMETA_FILE_BITMAP ((size_t)64 << 10)
/* The number of blocks whose cold parts, if split, follow them together. */
#define RDMETA_FILE_GROUP 256
/* The version of the Metadata response that has the brokers. */
#define RDMETA_FILE_API_VERSION 12

enum {
        RDMETA_FILE_BLOCKS = 0,
        RDMETA_FILE_BROKERS,
        RDMETA_FILE_ORDER,
        RDMETA_FILE_NAMES,
        RDMETA_FILE_IDS,
        RDMETA_FILE_REASONS,
        RDMETA_FILE_SECTIONS
};

typedef struct rdmeta_file_section {
        uint64_t kind;   /* its index in `sections` */
        uint64_t offset; /* a multiple of RDMETA_LINE */
        uint64_t length;
        uint64_t checksum;
} rdmeta_file_section_t;

/* The head of a file. No member needs padding; `reserved` is 0. */
typedef struct rdmeta_file_head {
        char magic[8];
        uint32_t byte_order;
        uint32_t format;
        uint64_t size;     /* of the file */
        uint64_t checksum; /* of the head, computed with 0 here */
        uint64_t version;
        uint64_t brokers_version;
        int64_t taken_mono_us; /* in the writer's clock */
        int64_t taken_wall_us;
        int64_t max_age_us;
        int64_t shared_deadline_us; /* counted as the blocks' deadlines */
        uint64_t topics;            /* as in rdmeta_image_info_t */
        uint64_t partitions;
        uint64_t blocks;        /* the number of blocks */
        uint32_t names_longest; /* the longest probe in the table of names */
        uint32_t ids_longest;   /* the longest probe in the table of ids */
        uint8_t session[16];
        uint64_t names_key[RDMETA_HASH_KEYS];
        uint64_t ids_key[RDMETA_HASH_KEYS];
        rdmeta_file_section_t sections[RDMETA_FILE_SECTIONS];
        uint64_t reasons;   /* the number of reasons */
        uint64_t negatives; /* as in rdmeta_image_info_t */
        uint64_t erased;
        uint64_t reserved[13];
} rdmeta_file_head_t;

_Static_assert(sizeof(rdmeta_file_head_t) == 512, "the format says so");

/* The identity of the file that a path named. While the file is mapped or open,
 * no other file can have its inode number. So until then it differs from the
 * identity of each file that takes its place. */
typedef struct rdmeta_file_identity {
        dev_t dev;
        ino_t ino;
        struct timespec mtime;
        off_t size;
} rdmeta_file_identity_t;

/* A table of slots. All of it is within the file. */
typedef struct rdmeta_file_table {
        const uint64_t *slots;
        uint32_t mask;
        uint32_t longest;
        uint64_t key[RDMETA_HASH_KEYS];
} rdmeta_file_table_t;

typedef struct rdmeta_file {
        rdmeta_image_t image;
        const char *base;
        const char *begin; /* of the blocks */
        rdmeta_file_table_t names;
        uint64_t first; /* the first line that can begin a block */
        uint64_t lines; /* how many lines from there on can */
        const char *end; /* of the blocks */
        int64_t taken_us; /* when the image was taken, in the reader's clock */
        rdmeta_file_table_t ids;
        const uint32_t *order;
        size_t count;
        /* Two bits per line, for the block that begins there: it is good, it
         * is bad; neither: not checked yet. */
        _Atomic uint64_t *checked;
        const uint32_t *reasons; /* the ends of the texts, then the texts */
        _Atomic int ordered; /* 1: `order` and all its blocks are good */
        rdmeta_file_head_t head;
        rdmeta_file_identity_t identity;
        rdmeta_allocator_t allocator;
        size_t size;   /* of the file */
        size_t bitmap; /* bytes of `checked` */
        void *copy;    /* COPY: `base` is within it; NULL: mapped */
        int fd;        /* COPY: open, so that no other file gets the inode
                        * number; otherwise -1 */
} rdmeta_file_t;

/* The reasons that a writer puts into a file: those of its blocks, numbered in
 * the order in which the writer meets them. Begins as zeros. */
typedef struct rdmeta_file_reasons {
        uint32_t count;
        size_t size; /* of the section */
        /* The file's number by the image's; 0: none yet. */
        uint16_t numbers[RDMETA_REASONS_MAX + 1];
        /* The image's number by the file's. */
        uint16_t from[RDMETA_REASONS_MAX + 1];
} rdmeta_file_reasons_t;

/* Returns the file's number for a number of the image, and gives it one if it
 * has none yet. Returns 0 if the image has no such reason. */
uint32_t rdmeta_file_reason_number(rdmeta_file_reasons_t *r,
                                   const rdmeta_image_t *image,
                                   uint32_t number);
/* Writes the reasons section to `out`, r->size bytes. */
void rdmeta_file_reasons_fill(const rdmeta_file_reasons_t *r,
                              const rdmeta_image_t *image, char *out);
/* Checks the reasons section of a file and sets f->reasons. Returns MALFORMED
 * if a text does not lie within the section. */
rdmeta_err_t rdmeta_file_reasons_open(rdmeta_file_t *f);
/* Returns the text of a reason, as ops->reason does. */
rdmeta_str_t rdmeta_file_reason(const rdmeta_image_t *image, uint32_t number);
/* Returns the bytes of the brokers section. Writes it to `out`, if that is not
 * NULL. */
size_t rdmeta_file_brokers_fill(const rdmeta_brokers_t *b, uint8_t *out);

/* The functions that read an image in a file. */
extern const rdmeta_image_ops_t rdmeta_file_ops;

/* Returns the leader, as ops->leader does without stale_ok. `hash` is the hash
 * of the name, and `len` satisfies rdmeta_hash_is_short(). */
int32_t rdmeta_file_leader(const rdmeta_image_t *image, const char *name,
                           size_t len, int32_t partition, int64_t mono_us,
                           uint64_t hash);
/* Sets *out to the i-th block by name, checked. Returns MALFORMED. */
rdmeta_err_t rdmeta_file_at(const rdmeta_file_t *f, size_t i,
                            const rdmeta_topic_t **out);

/* Where the blocks end that a walk has passed, and where the cold parts of the
 * split ones end. Both begin as f->begin. */
typedef struct rdmeta_file_ends {
        const char *blocks, *colds;
} rdmeta_file_ends_t;

/* Sets *out to the i-th block, checked, and moves `ends` past it. Returns
 * MALFORMED if the block is bad, or if its parts do not begin behind `ends`.
 * *out is NULL if no block can begin at that line. */
rdmeta_err_t rdmeta_file_next(const rdmeta_file_t *f, size_t i,
                              rdmeta_file_ends_t *ends,
                              const rdmeta_topic_t **out);

RDMETA_INLINE const rdmeta_file_t *rdmeta_file_of(
        const rdmeta_image_t *image) {
        return (const rdmeta_file_t *)(const void *)image;
}

/* Returns whether `checked` is mapped, and not from the allocator. */
RDMETA_INLINE int rdmeta_file_maps_bitmap(const rdmeta_file_t *f) {
        return f->bitmap > RDMETA_FILE_BITMAP;
}

/* Returns the block at `line`; NULL: none can begin there. The caller may then
 * read that line and the next one; nothing is checked yet. */
RDMETA_INLINE const rdmeta_topic_t *rdmeta_file_block(const rdmeta_file_t *f,
                                                      uint64_t line) {
        if (RDMETA_UNLIKELY(line - f->first >= f->lines))
                return NULL;
        return (const rdmeta_topic_t *)(const void *)(f->base +
                                                      line * RDMETA_LINE);
}

/* ---- sums that saturate: a file may contain any time -------------------- */

/* Returns a - b. A sum that overflows becomes the nearest value that is neither
 * RDMETA_DEADLINE_SHARED nor RDMETA_DEADLINE_ASKED. */
RDMETA_INLINE int64_t rdmeta_file_minus(int64_t a, int64_t b) {
        int64_t v;

        if (RDMETA_UNLIKELY(__builtin_sub_overflow(a, b, &v)))
                return b > 0 ? INT64_MIN + 2 : INT64_MAX - 1;
        return v;
}

/* Returns a + b as rdmeta_file_minus() does, and at least INT64_MIN + 2: never
 * RDMETA_DEADLINE_ASKED. */
RDMETA_INLINE int64_t rdmeta_file_plus(int64_t a, int64_t b) {
        int64_t v;

        if (RDMETA_UNLIKELY(__builtin_add_overflow(a, b, &v)))
                return b < 0 ? INT64_MIN + 2 : INT64_MAX - 1;
        return v < INT64_MIN + 2 ? INT64_MIN + 2 : v;
}
