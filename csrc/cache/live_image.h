/*
 * live_image: images of a live cache.
 *
 *     image ---- names ---> pin ---> table, and pages that have changed since
 *           ---- ids -----> pin ---> table, the same
 *           ---- holder --> blocks that were unlinked since
 *           ---- brokers, a copy; the shared deadline, and who gave it
 *           ---- order, once it is walked: (block, slot) by name
 *
 * An image is made of what makes it cheap to take: it notes two tables, and
 * nothing is copied until the writer changes it - pages of slots before a store
 * to them (store/index.h), blocks not at all, they are only kept when they
 * would be freed (store/epoch.h). A table that is replaced while images pin it
 * is theirs, and goes with the last of them. Only the brokers are copied, being
 * few, since their table has a word that moves in place.
 *
 * A block's deadline, and who said it, move in place, too, and not only in the
 * table that is the cache's now; so before such a store every pinned table that
 * leads to the block gets to know.
 *
 * Room. Ending a hint cannot fail, and touches a page; so for every pinned
 * table there are always as many free pages as hints, or as the table has pages
 * that can still change. A write makes room for its own changes besides, before
 * it begins, and what it leaves is freed after it.
 *
 * Threads: taking an image and letting it go is a writer's, under the lock;
 * reading it takes none, but for memory. In a fork's child whose cache is torn
 * (state.h) an image is taken with pins that are in no list and never get a
 * page, nothing being changed there; of one that goes, copied pages and kept
 * blocks stay, being perhaps others' too.
 */
#ifndef RDMETA_CACHE_LIVE_IMAGE_H
#define RDMETA_CACHE_LIVE_IMAGE_H

#include "cache/state.h"

/* A topic in the order of names, and its slot in the names. */
typedef struct rdmeta_live_image_topic {
        const rdmeta_topic_t *topic;
        uint32_t slot;
} rdmeta_live_image_topic_t;

typedef struct rdmeta_live_image_order {
        size_t size; /* of this */
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

void rdmeta_live_images_init(rdmeta_cache_t *c);
void rdmeta_live_images_destroy(rdmeta_cache_t *c);

/* ---- a writer's; the lock is held --------------------------------------- */

/* Room for n topics to change, each in whatever way. NO_MEMORY. */
rdmeta_err_t rdmeta_live_images_reserve(rdmeta_cache_t *c, size_t n);
/* Only the room that must be there between writes. */
void rdmeta_live_images_trim(rdmeta_cache_t *c);
/* How much that is. */
void rdmeta_live_images_room(const rdmeta_cache_t *c, size_t n, size_t *names,
                       size_t *ids);
/* Deadline of `t`, or who said it, are about to be stored to. */
void rdmeta_live_images_times(rdmeta_cache_t *c, const rdmeta_topic_t *t);
/* `t` is no longer the cache's: 1: images have it, until they let go. */
int rdmeta_live_images_table(rdmeta_cache_t *c, rdmeta_table_t *t);
/* What only images have, besides kept blocks; the same with those. */
size_t rdmeta_live_images_bytes(const rdmeta_cache_t *c);
size_t rdmeta_live_images_bytes_all(const rdmeta_cache_t *c);

/* ---- life ---------------------------------------------------------------- */

/* Takes an image of the cache that is read through `ops`: what
 * rdmeta_cache_image() does (live_image_read.c). NULL: no memory. */
rdmeta_image_t *rdmeta_live_image_take(rdmeta_cache_t *c, rdmeta_time_t now,
                                 const rdmeta_image_ops_t *ops);
/* Those of `ops` that are about its life; they take the lock. */
void rdmeta_live_image_destroy(rdmeta_image_t *image);
void rdmeta_live_image_info(const rdmeta_image_t *image, rdmeta_image_info_t *out);

#endif /* RDMETA_CACHE_LIVE_IMAGE_H */
