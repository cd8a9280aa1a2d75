/* The functions that all images share: references, info. See image.h. */
#include "image/image.h"

void rdmeta_image_init(rdmeta_image_t *image, const rdmeta_image_ops_t *ops) {
        memset(image, 0, sizeof(*image));
        image->ops = ops;
        atomic_init(&image->references, 1);
}

rdmeta_image_t *rdmeta_image_ref(rdmeta_image_t *image) {
        atomic_fetch_add_explicit(&image->references, 1,
                                  memory_order_relaxed);
        return image;
}

void rdmeta_image_unref(rdmeta_image_t *image) {
        if (image && atomic_fetch_sub_explicit(&image->references, 1,
                                               memory_order_acq_rel) == 1)
                image->ops->destroy(image);
}

void rdmeta_image_info(const rdmeta_image_t *image, rdmeta_image_info_t *out) {
        *out = image->about;
        image->ops->info(image, out);
}

int32_t rdmeta_image_changed(const rdmeta_image_t *image, const char *topic,
                             size_t len, uint64_t since) {
        rdmeta_err_t err = RDMETA_NOT_CACHED;
        rdmeta_seen_t seen;

        if (len - 1 < RDMETA_NAME_MAX)
                err = image->ops->find(image, topic, len, &seen);
        if (err == RDMETA_NOT_CACHED)
                return image->about.erased > since;
        return err ? err : rdmeta_cold(seen.topic)->version > since;
}
