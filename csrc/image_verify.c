/* Everything that a file says about itself: every sum, every block, and that
 * order and tables lead to each of them and to nothing else. */
#include "image_file.h"

/* What fills a section's last line is 0. */
static int rest_good(const rdmeta_file_t *f, const rdmeta_file_section_t *s) {
        uint64_t at = s->offset + s->length;

        for (; at % RDMETA_LINE && at < f->head.size; at++)
                if (f->base[at])
                        return 0;
        return 1;
}

static int sums_good(const rdmeta_file_t *f) {
        int i;

        for (i = 0; i < RDMETA_FILE_SECTIONS; i++) {
                const rdmeta_file_section_t *s = &f->head.sections[i];

                if (rdmeta_checksum(f->base + s->offset, (size_t)s->length) !=
                            s->checksum ||
                    !rest_good(f, s))
                        return 0;
        }
        return 1;
}

/* Names ascend, and blocks lie one behind the other. */
static int order_good(rdmeta_file_t *f) {
        size_t n;

        return !f->image.ops->order(&f->image, &n);
}

static size_t slots_used(const rdmeta_file_table_t *t) {
        size_t used = 0;
        uint32_t k  = 0;

        do
                used += t->slots[k] != 0;
        while (k++ != t->mask);
        return used;
}

/* Each slot leads to a block that is found through it; `n` blocks are found
 * and there are `n` slots, so that there is no other. */
static int tables_good(const rdmeta_file_t *f) {
        size_t i, ids = 0;
        uint64_t topics = 0, partitions = 0;
        const rdmeta_topic_t *t;
        rdmeta_seen_t seen;

        for (i = 0; i < f->count; i++) {
                if (rdmeta_file_at(f, i, &t) ||
                    rdmeta_file_ops.find(&f->image, t->name, t->name_len,
                                         &seen) ||
                    seen.topic != t)
                        return 0;
                if (t->state == RDMETA_TOPIC_VALID) {
                        topics++;
                        partitions += rdmeta_topic_count(t);
                }
                if (!rdmeta_topic_has_id(t))
                        continue;
                if (rdmeta_file_ops.find_id(&f->image, rdmeta_cold(t)->id,
                                            &seen))
                        return 0;
                ids += seen.topic == t; /* or another's with the same id */
        }
        return slots_used(&f->names) == f->count &&
               slots_used(&f->ids) == ids && topics == f->head.topics &&
               partitions == f->head.partitions;
}

rdmeta_err_t rdmeta_file_verify(rdmeta_image_t *image) {
        rdmeta_file_t *f = (rdmeta_file_t *)(void *)image;

        return sums_good(f) && order_good(f) && tables_good(f)
                       ? RDMETA_OK
                       : RDMETA_ERR_MALFORMED;
}

rdmeta_err_t rdmeta_image_verify(rdmeta_image_t *image) {
        return image->ops->verify ? image->ops->verify(image) : RDMETA_OK;
}
