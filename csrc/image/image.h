/*
 * image: a state that is held, wherever it lies.
 *
 *     rdmeta_image                       one of a cache   cache/live_image.h
 *       ops ------ how it is read ---->  one in a file
 *       brokers -- decoded, its own
 *       info ----- what it says of itself
 *
 * An image finds a block and says until when it is valid; what a block says is
 * read by the same code as a cache's (store/view.h, topic/topic.h). It never
 * changes, so its functions are any thread's, take no lock unless they say so,
 * and what they give lives as long as it does.
 */
#ifndef RDMETA_IMAGE_IMAGE_H
#define RDMETA_IMAGE_IMAGE_H

#include "rdmeta_image.h"
#include "store/view.h"
#include "topic/brokers.h"

/* A topic of an image. */
typedef struct rdmeta_seen {
        const rdmeta_topic_t *topic;
        int64_t deadline; /* the shared one resolved, in the clock of who
                           * reads; ASKED is never said */
        rdmeta_provenance_t provenance; /* its reason is the image's, or the cache's */
} rdmeta_seen_t;

/* So many names at most are sent for at once. */
enum { RDMETA_IMAGE_AHEAD = 32 };

typedef struct rdmeta_image_ops {
        /* As rdmeta_leader(), for names of a length that can be. */
        int32_t (*leader)(const rdmeta_image_t *image, const char *name,
                          size_t len, int32_t partition, int64_t mono_us,
                          int stale_ok);
        /* Send for the memory that leader() will look at for these names: loads
         * of one hang on each other, those of many do not. */
        void (*ahead)(const rdmeta_image_t *image, const rdmeta_str_t *names,
                      size_t n);
        /* 0, NOT_CACHED, MALFORMED; *out is set for 0 only, and is in no
         * state WAIT. A block has been checked before it is given. */
        rdmeta_err_t (*find)(const rdmeta_image_t *image, const char *name,
                             size_t len, rdmeta_seen_t *out);
        rdmeta_err_t (*find_id)(const rdmeta_image_t *image,
                                const uint8_t id[16], rdmeta_seen_t *out);
        /* Deadline of seen->topic, which one of these gave, and who said it. */
        void (*times)(const rdmeta_image_t *image, rdmeta_seen_t *seen);
        /* The text of a reason that one of these gave; {NULL, 0}: not said. It
         * lives as long as the image. */
        rdmeta_str_t (*reason)(const rdmeta_image_t *image, uint32_t number);
        /* Make ready for `at`: all topics in the order of their names, how
         * many. Takes a lock the first time. NO_MEMORY, MALFORMED. */
        rdmeta_err_t (*order)(rdmeta_image_t *image, size_t *n);
        /* The i-th of them. 0, MALFORMED. */
        rdmeta_err_t (*at)(const rdmeta_image_t *image, size_t i,
                           rdmeta_seen_t *out);
        /* Fill in what moves: bytes. */
        void (*info)(const rdmeta_image_t *image, rdmeta_image_info_t *out);
        /* Memory for readers and calls; takes a lock where the allocator
         * wants one. */
        void *(*alloc)(rdmeta_image_t *image, size_t size);
        void (*free)(rdmeta_image_t *image, void *p, size_t size);
        /* The last reference is gone. */
        void (*destroy)(rdmeta_image_t *image);
} rdmeta_image_ops_t;

struct rdmeta_image {
        const rdmeta_image_ops_t *ops;
        _Atomic int32_t references;
        rdmeta_brokers_t *brokers; /* never NULL */
        rdmeta_image_info_t about; /* but for what info() fills in */
};

/* One reference, zeros otherwise. */
void rdmeta_image_init(rdmeta_image_t *image, const rdmeta_image_ops_t *ops);

#endif /* RDMETA_IMAGE_IMAGE_H */
