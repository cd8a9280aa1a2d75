/*
 * file: an image in a file, to be mapped and not read.
 *
 *     file, in lines of 64 bytes, little-endian
 *     +--------------------------------------------------------------+
 *     | head     magic, byte order, format, size, checksum; version, |
 *     |          times, counts, keys; where each section is          |
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
 * A block is what it is in memory (topic/topic.h): the same bytes, and its hot
 * part begins a line; that of a split one is a line. What belongs to those
 * follows the hot parts of RDMETA_FILE_GROUP blocks. Three words mean something
 * else. `link` is 0. `deadline` is counted from the moment when the image was
 * taken, always the block's own. `said` is who said it last as of then, its
 * reason a number of the file's own: there are those that its blocks have. An
 * end is counted from the first text. Blocks lie in the order of names. Where
 * memory has a pointer the file has the line's number, so that whatever it says
 * is aligned. Tables are those of store/index.h with keys of their own. There
 * are topics in every state but WAIT; those that are GONE are what a warm start
 * holds older answers against.
 *
 * Who maps a file has not read it. open looks at the head alone: size and
 * places of the sections, and its checksum; and at brokers and reasons, which
 * are few. From then on nothing in the file is believed: each line number is
 * compared with the blocks section, and a block is handed out only after it was
 * checked whole (topic/validate.c; and that there is its reason), once: two
 * bits a line remember the verdict. A leader's lookup checks just what it
 * reads. It costs two comparisons, since a block's first 64 bytes and those
 * behind them are always within the section: its last line is nobody's begin.
 * Where its cold part is a block says itself, so that is compared with the
 * section too. Checksums are for accidents, and compared by verify only.
 *
 * What no check helps against is a file that changes while it is mapped. One
 * that is truncated ends every program that touches what is gone (SIGBUS). So
 * a file is written aside, and takes another's place by rename: who has the
 * old one mapped keeps it until he unmaps it. For files of which one cannot
 * know who writes to them there is RDMETA_IMAGE_COPY.
 */
#ifndef RDMETA_IMAGE_FILE_H
#define RDMETA_IMAGE_FILE_H

#include "base/checksum.h"
#include "image/image.h"
#include "store/reasons.h"

#include <sys/stat.h>

#define RDMETA_FILE_FORMAT 3
#define RDMETA_FILE_BYTE_ORDER 0x0a0b0c0du
/* Not text, and damaged by whoever takes it for text. */
#define RDMETA_FILE_MAGIC "\x89rdmeta\n"
/* Lines are numbered by 32 bits. */
#define RDMETA_FILE_MAX ((uint64_t)RDMETA_LINE << 32)
/* What is copied is read whole before anything of it is known: it says how
 * large it is, and nothing need be on the disk. */
#define RDMETA_FILE_COPY_MAX ((uint64_t)1 << 30)
/* Bytes of a bitmap that are the allocator's; larger ones are mapped. */
#define RDMETA_FILE_BITMAP ((size_t)64 << 10)
/* So many blocks, and then the cold parts of those that are split. */
#define RDMETA_FILE_GROUP 256
/* The version that brokers are encoded in. */
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
        uint64_t kind; /* its place among the sections */
        uint64_t offset; /* a multiple of RDMETA_LINE */
        uint64_t length;
        uint64_t checksum;
} rdmeta_file_section_t;

/* Each member is where its type wants it; what is left over is 0. */
typedef struct rdmeta_file_head {
        char magic[8];
        uint32_t byte_order;
        uint32_t format;
        uint64_t size;     /* of the file */
        uint64_t checksum; /* of the head, with 0 in its place */
        uint64_t version;
        uint64_t brokers_version;
        int64_t taken_mono_us; /* in the clock of who wrote it */
        int64_t taken_wall_us;
        int64_t max_age_us;
        int64_t shared_deadline_us; /* as deadlines of blocks */
        uint64_t topics;            /* as rdmeta_image_info_t has them */
        uint64_t partitions;
        uint64_t blocks; /* how many */
        uint32_t names_longest; /* probe */
        uint32_t ids_longest;
        uint8_t session[16];
        uint64_t names_key[RDMETA_HASH_KEYS];
        uint64_t ids_key[RDMETA_HASH_KEYS];
        rdmeta_file_section_t sections[RDMETA_FILE_SECTIONS];
        uint64_t reasons; /* how many */
        uint64_t negatives; /* also of the image's info */
        uint64_t erased;
        uint64_t reserved[13];
} rdmeta_file_head_t;

_Static_assert(sizeof(rdmeta_file_head_t) == 512, "the format's");

/* Which file it was that lay at a path. It is told apart from those that
 * take its place for as long as it is mapped or held open: till then no other
 * can have its number. */
typedef struct rdmeta_file_identity {
        dev_t dev;
        ino_t ino;
        struct timespec mtime;
        off_t size;
} rdmeta_file_identity_t;

/* A table of slots, all of it within the file. */
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
        uint64_t first; /* line that can be a block's begin, and ... */
        uint64_t lines; /* ... how many follow */
        const char *end; /* of the blocks */
        /* When it was taken, in the clock of who reads. */
        int64_t taken_us;
        rdmeta_file_table_t ids;
        const uint32_t *order;
        size_t count;
        /* Two bits a line: the block that begins there is good; is not. */
        _Atomic uint64_t *checked;
        const uint32_t *reasons; /* ends of texts, and the texts */
        _Atomic int ordered; /* 1: so is every block of `order`, and it */
        rdmeta_file_head_t head;
        rdmeta_file_identity_t identity;
        rdmeta_allocator_t allocator;
        size_t size;    /* of the file */
        size_t bitmap;  /* bytes of `checked` */
        void *copy;     /* COPY: `base` is within it; else NULL: mapped */
        int fd;         /* COPY: held, for the identity's sake; else -1 */
} rdmeta_file_t;

/* Reasons on their way into a file: those that its blocks have, numbered in the
 * order in which they are met (file.c). Zeros at first. */
typedef struct rdmeta_file_reasons {
        uint32_t count;
        size_t size;                             /* of the section */
        uint16_t numbers[RDMETA_REASONS_MAX + 1]; /* by the image's */
        uint16_t from[RDMETA_REASONS_MAX + 1];    /* the image's */
} rdmeta_file_reasons_t;

/* The file's number for one of the image's. */
uint32_t rdmeta_file_reason_number(rdmeta_file_reasons_t *r,
                                   const rdmeta_image_t *image,
                                   uint32_t number);
/* The section, r->size bytes. */
void rdmeta_file_reasons_fill(const rdmeta_file_reasons_t *r,
                              const rdmeta_image_t *image, char *out);
/* Of a file that is mapped: its texts are where they can be. MALFORMED. */
rdmeta_err_t rdmeta_file_reasons_open(rdmeta_file_t *f);
/* ops->reason. */
rdmeta_str_t rdmeta_file_reason(const rdmeta_image_t *image, uint32_t number);
/* The brokers as their section has them (file.c), written if `out` is
 * not NULL; how many bytes. */
size_t rdmeta_file_brokers_fill(const rdmeta_brokers_t *b, uint8_t *out);

/* How images that are files are read. */
extern const rdmeta_image_ops_t rdmeta_file_ops;

/* The leader of a topic whose name rdmeta_hash_is_short(), and has that hash;
 * not of a stale one. */
int32_t rdmeta_file_leader(const rdmeta_image_t *image, const char *name,
                           size_t len, int32_t partition, int64_t mono_us,
                           uint64_t hash);
/* The i-th block, checked; MALFORMED. */
rdmeta_err_t rdmeta_file_at(const rdmeta_file_t *f, size_t i,
                            const rdmeta_topic_t **out);

/* Where the blocks end that were gone through in their order, and where their
 * cold parts that lie elsewhere; f->begin at first. */
typedef struct rdmeta_file_ends {
        const char *blocks, *colds;
} rdmeta_file_ends_t;

/* The i-th block, checked, if its parts begin behind the others; MALFORMED, and
 * *out is NULL where it is no place for one. */
rdmeta_err_t rdmeta_file_next(const rdmeta_file_t *f, size_t i,
                              rdmeta_file_ends_t *ends,
                              const rdmeta_topic_t **out);

RDMETA_INLINE const rdmeta_file_t *rdmeta_file_of(
        const rdmeta_image_t *image) {
        return (const rdmeta_file_t *)(const void *)image;
}

/* The block that begins at `line`, if one can: that line and the next one may
 * then be read. NULL: none. */
RDMETA_INLINE const rdmeta_topic_t *rdmeta_file_block(const rdmeta_file_t *f,
                                                      uint64_t line) {
        if (RDMETA_UNLIKELY(line - f->first >= f->lines))
                return NULL;
        return (const rdmeta_topic_t *)(const void *)(f->base +
                                                      line * RDMETA_LINE);
}

/* ---- sums that stay within their type, whatever a file says ------------- */

RDMETA_INLINE int64_t rdmeta_file_minus(int64_t a, int64_t b) {
        int64_t v;

        if (RDMETA_UNLIKELY(__builtin_sub_overflow(a, b, &v)))
                return b > 0 ? INT64_MIN + 2 : INT64_MAX - 1;
        return v;
}

RDMETA_INLINE int64_t rdmeta_file_plus(int64_t a, int64_t b) {
        int64_t v;

        if (RDMETA_UNLIKELY(__builtin_add_overflow(a, b, &v)))
                return b < 0 ? INT64_MIN + 2 : INT64_MAX - 1;
        return v < INT64_MIN + 2 ? INT64_MIN + 2 : v;
}

#endif /* RDMETA_IMAGE_FILE_H */
