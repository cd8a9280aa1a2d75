/* Verifies a file: each checksum and each block. The order and the tables must
 * lead to each block, and to nothing else. */
#include "image/file_verify.h"

#include <stddef.h>
#include <stdlib.h>

static const char *const section_names[RDMETA_FILE_SECTIONS] = {
        [RDMETA_FILE_BLOCKS] = "blocks",   [RDMETA_FILE_BROKERS] = "brokers",
        [RDMETA_FILE_ORDER] = "order",     [RDMETA_FILE_NAMES] = "names",
        [RDMETA_FILE_IDS] = "ids",         [RDMETA_FILE_REASONS] = "reasons"};

rdmeta_err_t rdmeta_file_fault(rdmeta_image_fault_t *out, int section,
                               uint64_t offset, const char *what) {
        memset(out, 0, sizeof(*out));
        out->what    = what;
        out->section = section < 0 ? "head" : section_names[section];
        out->offset  = offset;
        return RDMETA_ERR_MALFORMED;
}

/* Returns MALFORMED, and sets *out to a fault at a section's begin. */
static rdmeta_err_t fault_in(const rdmeta_file_t *f, int section,
                             const char *what, rdmeta_image_fault_t *out) {
        return rdmeta_file_fault(out, section,
                                 f->head.sections[section].offset, what);
}

/* Checks that the rest of a section's last line is 0. */
static rdmeta_err_t rest_check(const rdmeta_file_t *f, int section,
                               rdmeta_image_fault_t *out) {
        const rdmeta_file_section_t *s = &f->head.sections[section];
        uint64_t at                    = s->offset + s->length;

        for (; at % RDMETA_LINE && at < f->head.size; at++)
                if (f->base[at])
                        return rdmeta_file_fault(
                                out, section, at,
                                "the bytes after its end are not 0");
        return RDMETA_OK;
}

static rdmeta_err_t sums_check(const rdmeta_file_t *f,
                               rdmeta_image_fault_t *out) {
        rdmeta_err_t err = RDMETA_OK;
        int i;

        for (i = 0; i < RDMETA_FILE_SECTIONS && !err; i++) {
                const rdmeta_file_section_t *s = &f->head.sections[i];

                if (rdmeta_checksum(f->base + s->offset, (size_t)s->length) !=
                    s->checksum)
                        return fault_in(
                                f, i, "the checksum does not match the bytes",
                                out);
                err = rest_check(f, i, out);
        }
        return err;
}

/* Checks that each entry of the order leads to a good block, behind the one
 * before. */
static rdmeta_err_t blocks_check(const rdmeta_file_t *f,
                                 rdmeta_image_fault_t *out) {
        const uint64_t order = f->head.sections[RDMETA_FILE_ORDER].offset;
        rdmeta_file_ends_t ends = {f->begin, f->begin};
        const rdmeta_topic_t *t;
        size_t i;

        for (i = 0; i < f->count; i++) {
                if (!rdmeta_file_next(f, i, &ends, &t))
                        continue;
                if (!t)
                        return rdmeta_file_fault(
                                out, RDMETA_FILE_ORDER,
                                order + 4 * (uint64_t)i,
                                "an entry does not lead to a topic");
                return rdmeta_file_fault(
                        out, RDMETA_FILE_BLOCKS,
                        (uint64_t)((const char *)t - f->base),
                        "a topic is malformed");
        }
        return RDMETA_OK;
}

static rdmeta_err_t order_check(rdmeta_file_t *f, rdmeta_image_fault_t *out) {
        size_t n;

        if (!f->image.ops->order(&f->image, &n))
                return RDMETA_OK;
        return fault_in(f, RDMETA_FILE_ORDER,
                        "the topics are not in the order of their names",
                        out);
}

static size_t slots_used(const rdmeta_file_table_t *t) {
        size_t used = 0;
        uint32_t k  = 0;

        do
                used += t->slots[k] != 0;
        while (k++ != t->mask);
        return used;
}

static int by_line(const void *a, const void *b) {
        const uint64_t x = *(const uint64_t *)a;
        const uint32_t y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

/* Returns whether all slots lead to blocks of the order, where lines ascend.
 * No other block was checked for overlaps: slots could lead to the same bytes
 * many times. */
static int slots_check(const rdmeta_file_t *f, const rdmeta_file_table_t *t) {
        uint32_t k = 0;

        do {
                const uint64_t line = t->slots[k] >> RDMETA_SLOT_TAG;

                if (t->slots[k] && !bsearch(&line, f->order, f->count,
                                            sizeof(*f->order), by_line))
                        return 0;
        } while (k++ != t->mask);
        return 1;
}

/* Checks that a lookup finds each block, by name and by id. As many slots are
 * used as blocks are found, so there is no other slot. */
static rdmeta_err_t tables_check(const rdmeta_file_t *f,
                                 rdmeta_image_fault_t *out) {
        size_t i, ids = 0;
        uint64_t topics = 0, partitions = 0;
        const rdmeta_topic_t *t;
        rdmeta_seen_t seen;

        if (!slots_check(f, &f->names))
                return fault_in(f, RDMETA_FILE_NAMES,
                                "a slot does not lead to a topic", out);
        if (!slots_check(f, &f->ids))
                return fault_in(f, RDMETA_FILE_IDS,
                                "a slot does not lead to a topic", out);
        for (i = 0; i < f->count; i++) {
                if (rdmeta_file_at(f, i, &t) ||
                    rdmeta_file_ops.find(&f->image, t->name, t->name_len,
                                         &seen) ||
                    seen.topic != t)
                        return fault_in(f, RDMETA_FILE_NAMES,
                                        "a lookup does not find a topic", out);
                if (t->state == RDMETA_TOPIC_VALID) {
                        topics++;
                        partitions += rdmeta_topic_count(t);
                }
                if (!rdmeta_topic_has_id(t))
                        continue;
                if (rdmeta_file_ops.find_id(&f->image, rdmeta_cold(t)->id,
                                            &seen))
                        return fault_in(f, RDMETA_FILE_IDS,
                                        "a lookup does not find a topic", out);
                ids += seen.topic == t; /* or another topic has the same id */
        }
        if (slots_used(&f->names) != f->count)
                return fault_in(f, RDMETA_FILE_NAMES,
                                "a slot does not lead to a topic", out);
        if (slots_used(&f->ids) != ids)
                return fault_in(f, RDMETA_FILE_IDS,
                                "a slot does not lead to a topic", out);
        if (topics != f->head.topics || partitions != f->head.partitions)
                return rdmeta_file_fault(
                        out, -1, offsetof(rdmeta_file_head_t, topics),
                        "the number of topics or partitions is wrong");
        return RDMETA_OK;
}

static rdmeta_err_t file_verify(rdmeta_image_t *image,
                                rdmeta_image_fault_t *out) {
        rdmeta_file_t *f = (rdmeta_file_t *)(void *)image;
        rdmeta_err_t err = blocks_check(f, out);

        if (!err)
                err = sums_check(f, out);
        if (!err)
                err = order_check(f, out);
        return err ? err : tables_check(f, out);
}

rdmeta_err_t rdmeta_image_fault(rdmeta_image_t *image,
                                rdmeta_image_fault_t *out) {
        return image->ops == &rdmeta_file_ops ? file_verify(image, out)
                                              : RDMETA_OK;
}

rdmeta_err_t rdmeta_image_verify(rdmeta_image_t *image) {
        rdmeta_image_fault_t unused;

        return rdmeta_image_fault(image, &unused);
}
