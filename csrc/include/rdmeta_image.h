/*
 * rdmeta: images. Part of rdmeta.h, which includes it.
 *
 * An image is the state of a cache at one moment, kept: its topics, brokers and
 * deadlines. Readers of its own read it with the calls of rdmeta_reader.h. An
 * image of a cache shares the cache's blocks. So taking one copies nothing, and
 * keeping one costs what has changed since. Names in flight are not part of it:
 * such a topic is NOT_CACHED in the image. In a fork's child an image can be
 * taken, read, saved and compared (rdmeta_reader.h).
 *
 * Threads: any, for every call here unless its comment says otherwise.
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
 * Returns an image of `cache` as it is now, for rdmeta_image_unref(). NULL: no
 * memory, or a child that can only look up (rdmeta_reader.h). The image has a
 * reference on the cache. `now` becomes the time of its taking in
 * rdmeta_image_info(). The call copies no topic.
 * Threads: any; takes the writers' lock for a moment.
 */
RDMETA_API rdmeta_image_t *rdmeta_cache_image(rdmeta_cache_t *cache,
                                              rdmeta_time_t now);
/** Adds a reference and returns `image`. Threads: any. */
RDMETA_API rdmeta_image_t *rdmeta_image_ref(rdmeta_image_t *image);
/** Drops a reference; the last one frees what only this image had. Works in a
 *  fork's child. NULL is fine. Threads: any. */
RDMETA_API void rdmeta_image_unref(rdmeta_image_t *image);

/**
 * Returns a reader of an image, for rdmeta_reader_destroy(). NULL: no memory.
 * `flags`: RDMETA_ALLOW_STALE or 0. Every call of rdmeta_reader.h works on it.
 * It has a reference on the image. Everything it returns stays valid as long
 * as the image, between enter and leave or not. Threads: any.
 */
RDMETA_API struct rdmeta_reader *rdmeta_image_reader(rdmeta_image_t *image,
                                                     int32_t flags);

/**
 * Returns what `reader` reads as an image with one more reference. That is the
 * reader's own image, that of the newest file if it follows one, or an image of
 * its cache, taken now. NULL as rdmeta_cache_image(). Threads: the reader's.
 */
RDMETA_API rdmeta_image_t *rdmeta_reader_image(struct rdmeta_reader *reader,
                                               rdmeta_time_t now);

/** The facts about an image. */
typedef struct rdmeta_image_info {
        uint64_t version;      /**< the cache's when it was taken */
        /** When it was taken, by the clock of the reading process. */
        int64_t taken_mono_us;
        int64_t taken_wall_us;
        /** The cache's TTL: age = now - (deadline - max_age). */
        int64_t max_age_us;
        int64_t shared_deadline_us; /**< as in rdmeta_stats_t */
        uint64_t topics;       /**< valid or stale */
        uint64_t partitions;   /**< of those topics */
        uint64_t bytes;        /**< that are kept for this image alone */
        uint8_t session[16];   /**< the cache's life; zero: not known */
        int32_t mapped;        /**< 1: a file that is mapped */
        int32_t reserved_small;
        uint64_t negatives;    /**< as rdmeta_cache_stats() counts them */
        /** The version up to which the cache may have forgotten topics of
         *  which the image has no trace. */
        uint64_t erased;
        /** taken_mono_us by the clock of the process that took it. Within one
         *  session it stays the same for the same image. */
        int64_t said_mono_us;
        int64_t reserved[1];
} rdmeta_image_info_t;
/** Fills `out`. Cannot fail. Threads: any; for an image of a live cache it
 *  takes the writers' lock for a moment. */
RDMETA_API void rdmeta_image_info(const rdmeta_image_t *image,
                                  rdmeta_image_info_t *out);

/**
 * Returns 1 if `topic` has changed, or been removed, after version `since`, and
 * 0 if it has not. `since` is of the image's session. For a topic without a
 * trace it returns 1 if any topic was forgotten after `since`, as
 * rdmeta_cache_wait() does. Errors: MALFORMED. Threads: any.
 */
RDMETA_API int32_t rdmeta_image_changed(const rdmeta_image_t *image,
                                        const char *topic, size_t len,
                                        uint64_t since);

/**
 * Visits the differences from `before` to `after`, any two images: brokers
 * first, then topics in the order of their names. The records are those of
 * rdmeta_cache_changes(), with the source RDMETA_SOURCE_POLL, and with the
 * `version` and `wall_us` of `after`. A visit that returns other than 0 ends
 * the call, which returns that value. Errors: NO_MEMORY, MALFORMED.
 * Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_image_diff(
        rdmeta_image_t *before, rdmeta_image_t *after,
        int32_t (*visit)(void *opaque, const struct rdmeta_change *change),
        void *opaque);
/**
 * Visits records that tell all of an image's state: BROKER_ADDED per broker,
 * then TOPIC_ADDED per valid topic in the order of names, each followed by
 * TOPIC_ADDED per partition, as in rdmeta_cache_changes_whole(). Otherwise as
 * rdmeta_image_diff(). Errors: NO_MEMORY, MALFORMED. Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_image_changes(
        rdmeta_image_t *image,
        int32_t (*visit)(void *opaque, const struct rdmeta_change *change),
        void *opaque);

/* ------------------------------------------------------------------------
 * Files
 * --------------------------------------------------------------------- */

enum {
        /** save: file and directory are on the disk when it returns. An IO
         *  error of the disk at the very end may leave the new file in place,
         *  perhaps not yet on the disk. */
        RDMETA_IMAGE_SYNC = 1 << 0,
        /** open, attach: read the file into memory instead of mapping it. Use
         *  it for files that others may write to or truncate. Truncating ends
         *  every program that has the file mapped (SIGBUS). A save with
         *  rdmeta_image_save() replaces a file, which does no harm. The limit
         *  is 1 GiB, about 80 million partitions; above it the error is IO,
         *  errno EFBIG. */
        RDMETA_IMAGE_COPY = 1 << 1,
        /** save: the new file's mode, from 01 to 0777, shifted by that many
         *  bits: 0640 << RDMETA_IMAGE_MODE_SHIFT. 0: the umask decides. */
        RDMETA_IMAGE_MODE_SHIFT = 16
};

/**
 * Writes a file that rdmeta_image_open() reads. It writes a temporary file in
 * the directory of `path` ("." if it names none), and then renames it. On an
 * error there is neither the temporary nor a new file; the old one stays. A
 * process that is killed in between leaves .NAME.rdmeta-<16 hex>, NAME being
 * that of `path`, at most 200 bytes. That file is locked (flock) as long as its
 * process lives. The umask decides the new file's mode, or the flags do,
 * whatever lies at `path`; a link there is replaced, not followed. Flags: SYNC,
 * and the mode. Errors: IO, NO_MEMORY, MALFORMED (the image's own file is
 * damaged), ARGUMENT (another flag). Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_image_save(rdmeta_image_t *image,
                                          const char *path, int32_t flags);
/**
 * Maps a file, so that its cost is what is read of it. The call checks the
 * file's head. Readers check the rest as they follow it: their calls may return
 * RDMETA_ERR_MALFORMED. The image's age follows from its wall clock and `now`;
 * it is never from the future. Flags: COPY. *out is set on success only, and
 * has one reference. Errors:
 * MALFORMED: no image, truncated, or a bad head; UNSUPPORTED: another version
 * of the format, or the other byte order; IO, NO_MEMORY, ARGUMENT (another
 * flag). Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_image_open(const char *path, int32_t flags,
                                          rdmeta_time_t now,
                                          rdmeta_image_t **out);
/** Reads and checks all of an image: every checksum, every topic, and the order
 *  and tables that lead to it. Returns 0 or MALFORMED; for an image of a cache
 *  0, at once. Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_image_verify(rdmeta_image_t *image);

/** The first fault of a malformed file. */
typedef struct rdmeta_image_fault {
        const char *what;    /**< "the checksum does not match ..."; static */
        const char *section; /**< "head", "blocks" ...; static */
        uint64_t offset;     /**< in the file, of it or what contains it */
        int64_t reserved[2];
} rdmeta_image_fault_t;
/** Checks as rdmeta_image_verify(); with MALFORMED it sets *out to the first
 *  fault. Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_image_fault(rdmeta_image_t *image,
                                           rdmeta_image_fault_t *out);
/** Checks whether rdmeta_image_open() with COPY would accept a file. With
 *  MALFORMED it sets *out to the fault. 0: it would. UNSUPPORTED, IO, NO_MEMORY
 *  as that call returns them. Threads: any. */
RDMETA_API rdmeta_err_t rdmeta_image_file_fault(const char *path,
                                                rdmeta_image_fault_t *out);

/**
 * Copies an image's state into an empty cache, as a warm start: topics, ids,
 * epochs, brokers and reasons of their answers, the broker table, cluster id.
 * Every topic is stale until an answer confirms it. Older answers are compared
 * with that state as if the cache had never stopped. The load is one version,
 * below which rdmeta_cache_changes() says resync. It loads all or nothing.
 * Errors: ARGUMENT: the cache knows a topic, a broker or its cluster's id, or
 * has a name in flight. MALFORMED (a file's image), NO_MEMORY, FORKED.
 * Threads: any; may wait for another writer.
 */
RDMETA_API rdmeta_err_t rdmeta_cache_load(rdmeta_cache_t *cache,
                                          rdmeta_image_t *image,
                                          rdmeta_time_t now);

typedef struct rdmeta_attach rdmeta_attach_t;
/**
 * Follows the file at `path`, which another process replaces. *out is for
 * rdmeta_attach_destroy(). Errors and flags are those of rdmeta_image_open().
 * Copies `path`; a relative path is resolved in the current directory of the
 * process at each look. There is no thread. A reader looks at the path with a
 * stat() when `look_us` (<= 0: 20 ms) have passed by the times of its calls. If
 * it finds a new file it moves there: see rdmeta_attach_reader(). If the file
 * is missing or malformed, the last good one stays in use. Threads: any.
 */
RDMETA_API rdmeta_err_t rdmeta_attach_new(const char *path, int32_t flags,
                                          int64_t look_us, rdmeta_time_t now,
                                          rdmeta_attach_t **out);
/** Drops the caller's reference. Readers and images of the file go on: images
 *  stay as they are, readers follow. NULL is fine. Works in a fork's child.
 *  Threads: any. */
RDMETA_API void rdmeta_attach_destroy(rdmeta_attach_t *attach);
/**
 * Returns a reader of the file that is followed, for rdmeta_reader_destroy().
 * NULL: no memory. `flags`: RDMETA_ALLOW_STALE or 0. It moves to a new file at
 * the start of a call that has a time argument. Within enter and leave only the
 * first call can move it: from its first result until leave, everything is of
 * one image. Works in a fork's child. Threads: any.
 */
RDMETA_API struct rdmeta_reader *rdmeta_attach_reader(rdmeta_attach_t *attach,
                                                      int32_t flags);
/** The looks of all readers of a followed file, and their results. */
typedef struct rdmeta_attach_stats {
        uint64_t looks;       /**< looks at the path */
        uint64_t generations; /**< states read so far, the first included */
        uint64_t errors;      /**< looks that found no file, or a bad one */
        rdmeta_err_t error;   /**< of the last look: 0, IO, MALFORMED ... */
        int32_t reserved_small;
        int64_t reserved[4];
} rdmeta_attach_stats_t;
/** Fills `out`. Cannot fail, and does not look. Threads: any. */
RDMETA_API void rdmeta_attach_stats(const rdmeta_attach_t *attach,
                                    rdmeta_attach_stats_t *out);
/** Looks at the path, and returns the newest good image: a new reference. NULL
 *  only in a child that can only look up (rdmeta_reader.h). `now` also updates
 *  the difference between the two clocks, in case one was set. Works in a
 *  fork's child. Threads: any. */
RDMETA_API rdmeta_image_t *rdmeta_attach_image(rdmeta_attach_t *attach,
                                               rdmeta_time_t now);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_IMAGE_H */
