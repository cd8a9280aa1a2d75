/*
 * rdmeta: images. Part of rdmeta.h, which includes it.
 *
 * An image is what a cache said at one moment, held: topics, brokers and
 * deadlines as they were then. It is read by readers of its own, with the
 * reading calls of rdmeta_reader.h. Of a cache it shares the blocks, so that
 * taking one copies nothing, and holding one costs what has changed since.
 * What was in flight is no part of it: such a topic is NOT_CACHED in it.
 * In a fork's child an image can be taken, read, saved and compared, whatever
 * was going on at the fork (rdmeta_reader.h).
 *
 * Threads: any, for every call here but where it says otherwise.
 */
#ifndef RDMETA_IMAGE_H
#define RDMETA_IMAGE_H

#include "rdmeta.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rdmeta_image rdmeta_image_t;
struct rdmeta_reader;
struct rdmeta_change;

/**
 * What `cache` says now, for rdmeta_image_unref(); holds a reference on the
 * cache.
 * Takes the writers' lock for a moment and copies no topic. `now` is what
 * info says of its taking. NULL: no memory. Threads: any.
 */
RDMETA_API rdmeta_image_t *rdmeta_cache_image(rdmeta_cache_t *cache,
                                              rdmeta_time_t now);
/** One more reference; returns `image`. Threads: any. */
RDMETA_API rdmeta_image_t *rdmeta_image_ref(rdmeta_image_t *image);
/** One reference less; the last one lets go of what only it held. In a fork's
 *  child too. NULL is fine. Threads: any. */
RDMETA_API void rdmeta_image_unref(rdmeta_image_t *image);

/**
 * A reader of an image, flags RDMETA_ALLOW_STALE or 0, for
 * rdmeta_reader_destroy(): every call of rdmeta_reader.h works on it. Holds a
 * reference on the image; what it gives stays valid as long as the image,
 * within enter and leave or not. NULL: no memory. Threads: any.
 */
RDMETA_API struct rdmeta_reader *rdmeta_image_reader(rdmeta_image_t *image,
                                                     int32_t flags);

/**
 * What `reader` reads, as an image with one more reference: the one that it is
 * of, the newest file's if it follows one, or one of its cache, taken now.
 * Threads: the reader's. NULL as rdmeta_cache_image().
 */
RDMETA_API rdmeta_image_t *rdmeta_reader_image(struct rdmeta_reader *reader,
                                               rdmeta_time_t now);

/** What an image says of itself. */
typedef struct rdmeta_image_info {
        uint64_t version;      /**< the cache's when it was taken */
        /** When it was taken, in the clock of who reads. */
        int64_t taken_mono_us;
        int64_t taken_wall_us;
        /** The cache's TTL: age = now - (deadline - max_age). */
        int64_t max_age_us;
        int64_t shared_deadline_us; /**< of the last all-topics answer */
        uint64_t topics;       /**< valid or stale */
        uint64_t partitions;   /**< of those */
        uint64_t bytes;        /**< what is held for this image alone */
        uint8_t session[16];   /**< the cache's life; zero: none was said */
        int32_t mapped;        /**< 1: a file that is mapped */
        int32_t reserved_small;
        uint64_t negatives;    /**< as rdmeta_cache_stats() counts them */
        /** The version up to which topics may have been forgotten of which
         *  nothing is left in it. */
        uint64_t erased;
        /** taken_mono_us, but in the clock of who took it: of what is told of
         *  one session, the same until it is told anew. */
        int64_t said_mono_us;
        int64_t reserved[1];
} rdmeta_image_info_t;
/** Cannot fail. Threads: any; for an image of a live cache it takes the
 *  writers' lock for a moment. */
RDMETA_API void rdmeta_image_info(const rdmeta_image_t *image,
                                  rdmeta_image_info_t *out);

/**
 * 1: `topic` has changed, or been removed, after the version `since` of the
 * cache's life that the image is of; 0: it has not. As rdmeta_cache_wait() for
 * a topic of which nothing is left: 1 if any was forgotten after `since`.
 * MALFORMED. Threads: any.
 */
RDMETA_API int32_t rdmeta_image_changed(const rdmeta_image_t *image,
                                        const char *topic, size_t len,
                                        uint64_t since);

/**
 * Visit what differs from `before` to `after`, any two images: brokers first,
 * then topics in the order of their names. Records are those of
 * rdmeta_cache_changes(), with the source RDMETA_SOURCE_POLL, and `version`
 * and `wall_us` of `after`. A visit that returns other than 0 ends it and is
 * returned. NO_MEMORY, MALFORMED. Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_image_diff(
        rdmeta_image_t *before, rdmeta_image_t *after,
        int32_t (*visit)(void *opaque, const struct rdmeta_change *change),
        void *opaque);

/* ------------------------------------------------------------------------
 * Files
 * --------------------------------------------------------------------- */

enum {
        /** save: file and directory are on the disk when it returns. IO of
         *  the disk at the very end may leave the new file, unsure. */
        RDMETA_IMAGE_SYNC = 1 << 0,
        /** open, attach: read into memory instead of mapping. For files that
         *  others may write to or truncate: to do so is fatal (SIGBUS) to any
         *  program that has them mapped. Files of rdmeta_image_save() are
         *  only ever replaced, which does no harm. Up to 1 GiB, which is some
         *  80 million partitions; above: IO, and errno is EFBIG. */
        RDMETA_IMAGE_COPY = 1 << 1
};

/**
 * Write a file that rdmeta_image_open() reads: to a temporary one in the
 * directory of `path` ("." if it names none), which then takes that name. On
 * an error there is neither, and what was there before still is. Who is killed
 * in the moment between leaves it: .NAME.rdmeta-<16 hex>, NAME being that of
 * `path`, 200 bytes at most; as long as it has an owner it is locked (flock).
 * Flags: SYNC.
 * IO, NO_MEMORY, MALFORMED (the image is a file's, and not whole),
 * ARGUMENT (another flag). Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_image_save(rdmeta_image_t *image,
                                          const char *path, int32_t flags);
/**
 * Map a file, so that what it costs is what is read of it. Its head is
 * checked, and whatever else it says when it is followed: calls on readers of
 * it may return RDMETA_ERR_MALFORMED. It is as old as its wall clock and
 * `now` say, and never from the future. Flags: COPY. *out has one reference,
 * on success only.
 * MALFORMED: no image, truncated, or its head does not hold; UNSUPPORTED:
 * another version of the format, or the other byte order; IO, NO_MEMORY,
 * ARGUMENT (another flag). Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_image_open(const char *path, int32_t flags,
                                          rdmeta_time_t now,
                                          rdmeta_image_t **out);
/** Read all of it: every checksum, every topic, every way to one. 0 or
 *  MALFORMED. An image of a cache: 0, at once. Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_image_verify(rdmeta_image_t *image);

/** What is malformed in a file, and where. */
typedef struct rdmeta_image_fault {
        const char *what;    /**< "another checksum than ..."; static */
        const char *section; /**< "head", "blocks" ...; static */
        uint64_t offset;     /**< of it, or of what holds it, in the file */
        int64_t reserved[2];
} rdmeta_image_fault_t;
/** rdmeta_image_verify(); with MALFORMED *out says what was found first.
 *  Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_image_fault(rdmeta_image_t *image,
                                           rdmeta_image_fault_t *out);
/** What rdmeta_image_open() with COPY has against a file: with MALFORMED *out
 *  says what. 0: nothing; UNSUPPORTED, IO, NO_MEMORY as that says them.
 *  Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_image_file_fault(const char *path,
                                                rdmeta_image_fault_t *out);

/**
 * Warm start: an empty cache takes over an image's topics, ids, epochs, who
 * said them and why, brokers and cluster id. Every topic is stale until an
 * answer says it again; older answers are held against what is remembered as
 * if it had never been away. One version, below which rdmeta_cache_changes()
 * says resync. All or nothing. ARGUMENT: the cache knows a topic, a broker or
 * its cluster's id, or has a name in flight. MALFORMED (a file's), NO_MEMORY,
 * FORKED. Threads: any; may wait for another writer.
 */
RDMETA_API rdmeta_err_t rdmeta_cache_load(rdmeta_cache_t *cache,
                                          rdmeta_image_t *image,
                                          rdmeta_time_t now);

typedef struct rdmeta_attach rdmeta_attach_t;
/**
 * Follow the file at `path`, which another process replaces. There is no
 * thread: each of its readers looks at what lies there, with a stat(), when
 * `look_us` (<= 0: 20 ms) have passed by the times it is called with, and
 * goes over to a new file; see rdmeta_attach_reader(). A file that is missing
 * or malformed leaves the last good one in use. Errors and flags are those of
 * rdmeta_image_open(). Copies `path`. A relative one is looked for in the
 * directory that the process is in at the time. *out is for
 * rdmeta_attach_destroy(). Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_attach_new(const char *path, int32_t flags,
                                          int64_t look_us, rdmeta_time_t now,
                                          rdmeta_attach_t **out);
/** Its readers and images go on; those read what they read, and follow. NULL
 *  is fine. In a fork's child too. Threads: any. */
RDMETA_API void rdmeta_attach_destroy(rdmeta_attach_t *attach);
/**
 * A reader of what lies there, flags RDMETA_ALLOW_STALE or 0, for
 * rdmeta_reader_destroy(). It goes over to a new file at the begin of a call
 * that is told the time, outside enter and leave or as the first one within:
 * from the first thing it has handed out until leave, all is of one image.
 * Works in a fork's child. NULL: no memory. Threads: any.
 */
RDMETA_API struct rdmeta_reader *rdmeta_attach_reader(rdmeta_attach_t *attach,
                                                      int32_t flags);
/** What has been seen of a file that is followed, by all readers. */
typedef struct rdmeta_attach_stats {
        uint64_t looks;       /**< how often it was looked for */
        uint64_t generations; /**< states read so far, with the first one */
        uint64_t errors;      /**< looks that found none, or no good one */
        rdmeta_err_t error;   /**< of the last look: 0, IO, MALFORMED ... */
        int32_t reserved_small;
        int64_t reserved[4];
} rdmeta_attach_stats_t;
/** Cannot fail, and does not look. Threads: any. */
RDMETA_API void rdmeta_attach_stats(const rdmeta_attach_t *attach,
                                    rdmeta_attach_stats_t *out);
/** What lies there now, after a look; a new reference, never NULL. `now` also
 *  tells how the two clocks stand to each other, if one was set meanwhile.
 *  Works in a fork's child. Threads: any. */
RDMETA_API rdmeta_image_t *rdmeta_attach_image(rdmeta_attach_t *attach,
                                               rdmeta_time_t now);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_IMAGE_H */
