/*
 * live_image: images of a live cache.
 *
 *     image ---- names --------> table pin ---> table, pages changed since
 *           ---- ids ----------> table pin ---> table, pages changed since
 *           ---- epoch_image --> blocks that were unlinked since
 *           ---- brokers, a copy; the shared deadline and its provenance
 *           ---- order, made by the first walk: (block, slot) by name
 *
 * An image is cheap to take: it notes two tables and copies only the brokers.
 * The writer copies a slot page before it stores to it (store/index.h). Blocks
 * are never copied. The epoch keeps those that would be freed (store/epoch.h).
 * A table that is replaced while images pin it stays until the last of them
 * goes. The brokers are copied because their table has a word, the controller,
 * that moves in place. They are few.
 *
 * A block's deadline and provenance also move in place. Images see the old
 * ones: before such a store, the writer copies the block's slot page in every
 * pinned table that leads to the block. That may be a table which the cache has
 * replaced.
 *
 * Room. Ending a hint cannot fail, and may need a slot page. So there are
 * always free pages for every pinned table: one per hint, but no more than the
 * table has pages without a copy. A write reserves more pages for its own
 * changes before it begins. It frees the unused ones after it.
 *
 * Threads: taking an image and dropping it are writes, under the lock. Reading
 * it takes no lock, except to allocate memory.
 */
#pragma once

#include "cache/state.h"

/* A topic, and its slot in the name table. */
typedef struct rdmeta_live_image_topic {
        const rdmeta_topic_t *topic;
        uint32_t slot;
} rdmeta_live_image_topic_t;

/* The topics of an image by name. */
typedef struct rdmeta_live_image_order {
        size_t size; /* bytes of this allocation */
        size_t n;
        rdmeta_live_image_topic_t topics[];
} rdmeta_live_image_order_t;

typedef struct rdmeta_live_image {
        rdmeta_image_t image;
        rdmeta_cache_t *cache; /* with a reference */
        rdmeta_epoch_image_t epoch_image;
        rdmeta_table_pin_t *names, *ids;
        int64_t shared_deadline;
        rdmeta_provenance_t shared_provenance;
        _Atomic(rdmeta_live_image_order_t *) order;
} rdmeta_live_image_t;

/* Begins without images. */
void rdmeta_live_images_init(rdmeta_cache_t *c);
/* Frees the pools of slot pages. No image is left. */
void rdmeta_live_images_destroy(rdmeta_cache_t *c);

/* ---- for writers; the caller holds the lock ----------------------------- */

/* Reserves slot pages for n topics that will change in any way. NO_MEMORY. */
rdmeta_err_t rdmeta_live_images_reserve(rdmeta_cache_t *c, size_t n);
/* Frees all free slot pages but those that must be there between writes. */
void rdmeta_live_images_trim(rdmeta_cache_t *c);
/* Writes how many free slot pages there must be while n topics change. */
void rdmeta_live_images_room(const rdmeta_cache_t *c, size_t n, size_t *names,
                             size_t *ids);
/* Copies the slot pages of `t` where images need it. The writer calls it before
 * it stores to the deadline or provenance of `t`. Cannot fail. */
void rdmeta_live_images_times(rdmeta_cache_t *c, const rdmeta_topic_t *t);
/* Returns 1 if images pin `t`, which the cache has replaced: the last of them
 * frees it. Returns 0 if the caller must retire it. */
int rdmeta_live_images_table(rdmeta_cache_t *c, rdmeta_table_t *t);
/* Returns the bytes that only images have, without kept blocks. */
size_t rdmeta_live_images_bytes(const rdmeta_cache_t *c);
/* Returns the bytes that only images have, with kept blocks. */
size_t rdmeta_live_images_bytes_all(const rdmeta_cache_t *c);

/* ---- life ---------------------------------------------------------------- */

/* Takes an image of the cache, whose functions are `ops`. Takes the lock. For
 * rdmeta_cache_image() (live_image_read.c). NULL: no memory, or the lock is
 * lost. */
rdmeta_image_t *rdmeta_live_image_take(rdmeta_cache_t *c, rdmeta_time_t now,
                                       const rdmeta_image_ops_t *ops);
/* Frees an image, for `ops`. Takes the lock. */
void rdmeta_live_image_destroy(rdmeta_image_t *image);
/* Writes the bytes that an image has, for `ops`. Takes the lock. */
void rdmeta_live_image_info(const rdmeta_image_t *image,
                            rdmeta_image_info_t *out);
