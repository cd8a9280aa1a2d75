/* tmpabuf: see tmpabuf.h. */
#include "base/tmpabuf.h"

#include <string.h>

/* Rounds a size up to the alignment and returns 1; returns 0 on overflow. */
static int rdmeta_tmpabuf_round(size_t size, size_t *rounded) {
        const size_t mask = RDMETA_TMPABUF_ALIGN - 1;

        if (__builtin_add_overflow(size, mask, rounded))
                return 0;
        *rounded &= ~mask;
        return 1;
}

void rdmeta_tmpabuf_init(rdmeta_tmpabuf_t *b) {
        memset(b, 0, sizeof(*b));
}

void rdmeta_tmpabuf_add(rdmeta_tmpabuf_t *b, size_t size) {
        size_t sum;

        if (b->base || !rdmeta_tmpabuf_round(size, &size) ||
            __builtin_add_overflow(b->size, size, &sum))
                b->failed = 1;
        else
                b->size = sum;
}

void rdmeta_tmpabuf_add_array(rdmeta_tmpabuf_t *b, size_t n, size_t size) {
        size_t bytes;

        if (__builtin_mul_overflow(n, size, &bytes))
                b->failed = 1;
        else
                rdmeta_tmpabuf_add(b, bytes);
}

void rdmeta_tmpabuf_add_str(rdmeta_tmpabuf_t *b, rdmeta_str_t s) {
        if (s.data && s.len == SIZE_MAX)
                b->failed = 1;
        else if (s.data)
                rdmeta_tmpabuf_add(b, s.len + 1);
}

void *rdmeta_tmpabuf_start(rdmeta_tmpabuf_t *b,
                           const rdmeta_allocator_t *allocator) {
        b->allocator = allocator;
        if (!b->failed && b->size)
                b->base = rdmeta_alloc(allocator, b->size);
        b->failed |= !b->base;
        return b->base;
}

void *rdmeta_tmpabuf_alloc(rdmeta_tmpabuf_t *b, size_t size) {
        size_t rounded;
        char *p;

        if (b->failed || !b->base || !rdmeta_tmpabuf_round(size, &rounded) ||
            rounded > b->size - b->used) {
                b->failed = 1;
                return NULL;
        }
        p = b->base + b->used;
        memset(p + size, 0, rounded - size);
        b->used += rounded;
        return p;
}

void *rdmeta_tmpabuf_alloc_array(rdmeta_tmpabuf_t *b, size_t n, size_t size) {
        size_t bytes;

        if (__builtin_mul_overflow(n, size, &bytes)) {
                b->failed = 1;
                return NULL;
        }
        return rdmeta_tmpabuf_alloc(b, bytes);
}

rdmeta_str_t rdmeta_tmpabuf_write_str(rdmeta_tmpabuf_t *b, rdmeta_str_t s) {
        rdmeta_str_t copy = {NULL, 0};
        char *p;

        if (!s.data)
                return copy;
        p = s.len < SIZE_MAX ? rdmeta_tmpabuf_alloc(b, s.len + 1) : NULL;
        if (!p) {
                b->failed = 1;
                return copy;
        }
        memcpy(p, s.data, s.len);
        p[s.len]  = '\0';
        copy.data = p;
        copy.len  = s.len;
        return copy;
}

void *rdmeta_tmpabuf_finish(rdmeta_tmpabuf_t *b) {
        void *object = b->base;

        if (b->failed || b->used != b->size) {
                rdmeta_free(b->allocator, object, b->size);
                b->failed = 1;
                object    = NULL;
        }
        b->base = NULL;
        return object;
}
