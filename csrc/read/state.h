/* The struct of a reader. Its calls are in reader.c and the files beside it. */
#pragma once

#include "cache/state.h"

/* A reader of a cache or of an image. With an image it is never plain, and has
 * neither root nor cache. The image may be of a file that the reader follows
 * (follow.h). */
struct rdmeta_reader {
        rdmeta_reading_t reading;
        const rdmeta_root_t *root;
        rdmeta_cache_t *cache;
        rdmeta_image_t *image;
        void *memory;      /* the allocation, in which this is aligned */
        int32_t stale_ok;  /* 1: it was made with RDMETA_ALLOW_STALE */
        int32_t handed;    /* 1: it has handed out memory since enter */
        uint64_t chance;   /* state of its random numbers; 0: none yet */
        rdmeta_attach_t *attach; /* NULL: it does not follow a file */
        int64_t next_look_us;    /* it does not look before this time */
        int64_t missed_look_us;  /* the time of a look that it could not make
                                    inside; INT64_MIN: there is none */
        uint64_t changes; /* the attach's counter at the last look */
};
