#include "cache/copied.h"

#include "base/alloc.h"

rdmeta_err_t rdmeta_copied_init(rdmeta_cache_t *c, rdmeta_copied_t *copied,
                                size_t n, size_t bytes) {
        memset(copied, 0, sizeof(*copied));
        if (!n)
                return RDMETA_OK;
        copied->size = n * sizeof(*copied->rows) + bytes;
        copied->rows = (rdmeta_due_t *)rdmeta_alloc(&c->conf.allocator,
                                                    copied->size);
        if (!copied->rows)
                return RDMETA_ERR_NO_MEMORY;
        copied->end = (char *)(copied->rows + n);
        return RDMETA_OK;
}

void rdmeta_copied_add(rdmeta_copied_t *copied, const char *name, size_t len,
                       uint32_t reasons) {
        rdmeta_due_t *row = &copied->rows[copied->n++];

        memset(row, 0, sizeof(*row));
        memcpy(copied->end, name, len);
        row->topic.data = copied->end;
        row->topic.len  = len;
        row->reasons    = reasons;
        copied->end += len;
}

void rdmeta_copied_free(rdmeta_cache_t *c, rdmeta_copied_t *copied) {
        rdmeta_notify_free(&c->notify, copied->rows, copied->size);
}
