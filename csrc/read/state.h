/* What a reader is. Its calls are in reader.c and the files beside it. */
#ifndef RDMETA_READ_STATE_H
#define RDMETA_READ_STATE_H

#include "cache/state.h"

/* Of a cache, or of an image: then it is never plain, and has neither root nor
 * cache. The image may be of a file that is followed (follow.h). */
struct rdmeta_reader {
        rdmeta_reading_t reading;
        const rdmeta_root_t *root;
        rdmeta_cache_t *cache;
        rdmeta_image_t *image;
        void *memory; /* what to free: this is aligned within it */
        int32_t stale_ok;
        int32_t handed; /* followed: something was, since enter */
        uint64_t chance; /* where a stream of random numbers is; 0: nowhere */
        rdmeta_attach_t *attach; /* NULL: it follows nothing */
        int64_t look_at; /* not before, by the times it is told */
        int64_t due_us;  /* when it could not look; INT64_MIN: it could */
        uint64_t changes; /* of attach, when it looked */
};

#endif /* RDMETA_READ_STATE_H */
