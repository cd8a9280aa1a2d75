/*
 * rdmeta: images. Part of rdmeta.h, which includes it.
 *
 * An image is what a cache said at one moment, held: topics, brokers and
 * deadlines as they were then. It is read by readers of its own, with the
 * reading calls of rdmeta_reader.h. Of a cache it shares the blocks, so that
 * taking one copies nothing, and holding one costs what has changed since.
 * What was in flight is no part of it: such a topic is NOT_CACHED in it.
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
 * What `cache` says now, with one reference; holds a reference on the cache.
 * Takes the writers' lock for a moment and copies no topic. `now` is what
 * info says of its taking. NULL: no memory; or forked, in the middle of a
 * write.
 */
RDMETA_API rdmeta_image_t *rdmeta_cache_image(rdmeta_cache_t *cache,
                                              rdmeta_time_t now);
/** One more reference; returns `image`. */
RDMETA_API rdmeta_image_t *rdmeta_image_ref(rdmeta_image_t *image);
/** One reference less; the last one lets go of what only it held. In a fork's
 *  child too. NULL is fine. */
RDMETA_API void rdmeta_image_unref(rdmeta_image_t *image);

/**
 * A reader of an image, with RDMETA_ALLOW_STALE or 0: every call of
 * rdmeta_reader.h works on it, in one thread at a time. Holds a reference on
 * the image; what it gives stays valid as long as the image, within enter and
 * leave or not. NULL: no memory.
 */
RDMETA_API struct rdmeta_reader *rdmeta_image_reader(rdmeta_image_t *image,
                                                     int32_t flags);

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
        int64_t reserved[4];
} rdmeta_image_info_t;
/** Cannot fail. */
RDMETA_API void rdmeta_image_info(const rdmeta_image_t *image,
                                  rdmeta_image_info_t *out);

/**
 * Visit what differs from `before` to `after`, any two images: brokers first,
 * then topics in the order of their names. Records are those of
 * rdmeta_cache_changes(), with the source RDMETA_SOURCE_POLL, and `version`
 * and `wall_us` of `after`. A visit that returns other than 0 ends it and is
 * returned. NO_MEMORY, MALFORMED.
 */
RDMETA_API rdmeta_err_t rdmeta_image_diff(
        rdmeta_image_t *before, rdmeta_image_t *after,
        int32_t (*visit)(void *opaque, const struct rdmeta_change *change),
        void *opaque);

#ifdef __cplusplus
}
#endif

#endif /* RDMETA_IMAGE_H */
