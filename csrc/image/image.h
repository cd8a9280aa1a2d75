/*
 * image: one state of a cache that never changes, in memory or in a file.
 *
 *     rdmeta_image
 *       ops ------ how to read it ---->  a live image     cache/live_image.h
 *       brokers -- decoded, its own      an image file    image/file.h
 *       about ---- its version, times and counts
 *
 * An image finds a block and returns its deadline. Readers read the block with
 * the same code as a cache's blocks (store/view.h, topic/topic.h).
 *
 * Any thread may call the functions of an image. They take no lock unless
 * their comment says so. Their results live as long as the image.
 */
#pragma once

#include "rdmeta_image.h"
#include "store/view.h"
#include "topic/brokers.h"

/* A topic that was found in an image. */
typedef struct rdmeta_seen {
        const rdmeta_topic_t *topic;
        int64_t deadline; /* in the reader's clock; never SHARED, ASKED */
        /* Its reason is a number of the image (a live image: of the cache). */
        rdmeta_provenance_t provenance;
} rdmeta_seen_t;

/* The most names that one call of prefetch() takes. */
enum { RDMETA_IMAGE_PREFETCH = 32 };

typedef struct rdmeta_image_ops {
        /* Returns what rdmeta_leader() does. `len` must be 1 up to
         * RDMETA_NAME_MAX. */
        int32_t (*leader)(const rdmeta_image_t *image, const char *name,
                          size_t len, int32_t partition, int64_t mono_us,
                          int stale_ok);
        /* Prefetches the memory that leader() will read for these names. The
         * loads for one name depend on each other; those of several names
         * do not, so they overlap. */
        void (*prefetch)(const rdmeta_image_t *image, const rdmeta_str_t *names,
                         size_t n);
        /* Returns 0, NOT_CACHED or MALFORMED. Sets *out for 0 only, to a
         * checked block whose state is not WAIT. */
        rdmeta_err_t (*find)(const rdmeta_image_t *image, const char *name,
                             size_t len, rdmeta_seen_t *out);
        rdmeta_err_t (*find_id)(const rdmeta_image_t *image,
                                const uint8_t id[16], rdmeta_seen_t *out);
        /* Sets the deadline and the provenance of seen->topic, which one of
         * these functions returned. */
        void (*times)(const rdmeta_image_t *image, rdmeta_seen_t *seen);
        /* Returns the text of a reason's number, which one of these functions
         * returned; {NULL, 0}: no reason is known. */
        rdmeta_str_t (*reason)(const rdmeta_image_t *image, uint32_t number);
        /* Sorts all topics by name for at(), and sets *n to their number.
         * Returns 0, NO_MEMORY or MALFORMED. The first call takes a lock. */
        rdmeta_err_t (*order)(rdmeta_image_t *image, size_t *n);
        /* Sets *out to the i-th topic by name. Returns 0 or MALFORMED. */
        rdmeta_err_t (*at)(const rdmeta_image_t *image, size_t i,
                           rdmeta_seen_t *out);
        /* Sets the members of *out that change while the image lives: its
         * bytes. */
        void (*info)(const rdmeta_image_t *image, rdmeta_image_info_t *out);
        /* Returns memory for readers and for calls; NULL: no memory. Takes a
         * lock if the allocator needs one. */
        void *(*alloc)(rdmeta_image_t *image, size_t size);
        void (*free)(rdmeta_image_t *image, void *p, size_t size);
        /* Frees the image. The last rdmeta_image_unref() calls it. */
        void (*destroy)(rdmeta_image_t *image);
} rdmeta_image_ops_t;

struct rdmeta_image {
        const rdmeta_image_ops_t *ops;
        _Atomic int32_t references;
        rdmeta_brokers_t *brokers; /* never NULL */
        rdmeta_image_info_t about; /* without the members that info() sets */
};

/* Sets an image to one reference and zeros otherwise. */
void rdmeta_image_init(rdmeta_image_t *image, const rdmeta_image_ops_t *ops);
