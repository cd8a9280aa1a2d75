/* Why topics were asked for, in a file: written, and read. */
#include "image/file.h"

/* ---- writing ------------------------------------------------------------- */

uint32_t rdmeta_file_reason_number(rdmeta_file_reasons_t *r,
                                   const rdmeta_image_t *image,
                                   uint32_t number) {
        const rdmeta_str_t text = image->ops->reason(image, number);

        if (!text.data)
                return 0;
        if (!r->numbers[number]) {
                r->numbers[number] = (uint16_t)++r->count;
                r->from[r->count]  = (uint16_t)number;
                r->size += sizeof(uint32_t) + text.len;
        }
        return r->numbers[number];
}

void rdmeta_file_reasons_fill(const rdmeta_file_reasons_t *r,
                              const rdmeta_image_t *image, char *out) {
        uint32_t *ends = (uint32_t *)(void *)out, end = 0, i;
        char *texts    = (char *)(ends + r->count);

        for (i = 1; i <= r->count; i++) {
                const rdmeta_str_t text = image->ops->reason(image,
                                                             r->from[i]);

                memcpy(texts + end, text.data, text.len);
                end += (uint32_t)text.len;
                ends[i - 1] = end;
        }
}

/* ---- reading ------------------------------------------------------------- */

/* Texts follow each other, none is longer than one can be (one that ended
 * before it began would be), and the last one ends where the section does. */
rdmeta_err_t rdmeta_file_reasons_open(rdmeta_file_t *f) {
        const rdmeta_file_section_t *s =
                &f->head.sections[RDMETA_FILE_REASONS];
        const uint64_t n = f->head.reasons;
        uint64_t i, last = 0;

        if (n > RDMETA_REASONS_MAX || s->length < n * sizeof(*f->reasons))
                return RDMETA_ERR_MALFORMED;
        f->reasons = (const uint32_t *)(const void *)(f->base + s->offset);
        for (i = 0; i < n; i++) {
                if (f->reasons[i] - last > RDMETA_REASON_MAX)
                        return RDMETA_ERR_MALFORMED;
                last = f->reasons[i];
        }
        return last == s->length - n * sizeof(*f->reasons)
                       ? RDMETA_OK
                       : RDMETA_ERR_MALFORMED;
}

rdmeta_str_t rdmeta_file_reason(const rdmeta_image_t *image,
                                uint32_t number) {
        const rdmeta_file_t *f = rdmeta_file_of(image);
        rdmeta_str_t text      = {NULL, 0};
        uint32_t begin;

        if (!number || number > f->head.reasons)
                return text;
        begin     = number > 1 ? f->reasons[number - 2] : 0;
        text.data = (const char *)(f->reasons + f->head.reasons) + begin;
        text.len  = f->reasons[number - 1] - begin;
        return text;
}
