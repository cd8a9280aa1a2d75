#include "fold/state.h"

#include "arrow/text.h"

#include <stdarg.h>
#include <stdio.h>

void *rdmeta_fold_room(rdmeta_fold_t *f, void *old, size_t n, size_t *room,
                       size_t need, size_t size) {
        size_t more = *room ? 2 * *room : 8;
        void *p;

        if (need <= *room)
                return old;
        if (more < need)
                more = need;
        if (more > SIZE_MAX / 2 / size)
                return NULL;
        p = rdmeta_fold_alloc(f, more * size);
        if (!p)
                return NULL;
        if (n)
                memcpy(p, old, n * size);
        rdmeta_fold_free(f, old, *room * size);
        *room = more;
        return p;
}

rdmeta_err_t rdmeta_fold_wrong(rdmeta_fold_t *f, rdmeta_err_t err,
                               const char *format, ...) {
        va_list args;

        va_start(args, format);
        vsnprintf(f->error, sizeof(f->error), format, args);
        va_end(args);
        return err;
}

uint32_t rdmeta_fold_text(rdmeta_fold_t *f, rdmeta_str_t s) {
        const size_t size = rdmeta_text_size(s.data, s.len);
        uint32_t word;
        char *clean;

        if (size == s.len)
                return rdmeta_fold_interned_put(&f->interned, s.data, s.len);
        clean = (char *)rdmeta_alloc(&f->allocator, size);
        if (!clean)
                return 0;
        rdmeta_text_copy(clean, size, s.data, s.len);
        word = rdmeta_fold_interned_put(&f->interned, clean, size);
        rdmeta_free(&f->allocator, clean, size);
        return word;
}
