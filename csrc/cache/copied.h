/*
 * copied: names that are copied under the lock, and visited without it.
 *
 *     one allocation   [row][row] ... [name][name] ...
 *
 * A visit may take as long as it likes and may write to the cache, so no lock
 * is held meanwhile. The copy is the call's own.
 */
#pragma once

#include "cache/state.h"

typedef struct rdmeta_copied {
        rdmeta_due_t *rows;
        size_t n;    /* rows so far */
        size_t size; /* of the allocation */
        char *end;   /* the end of the last name */
} rdmeta_copied_t;

/* Makes room for n names of `bytes` bytes in all; NO_MEMORY. The caller has the
 * lock, and calls rdmeta_copied_free() later. */
rdmeta_err_t rdmeta_copied_init(rdmeta_cache_t *c, rdmeta_copied_t *copied,
                                size_t n, size_t bytes);
/* Copies a name into a row with these reasons. There is room for it. */
void rdmeta_copied_add(rdmeta_copied_t *copied, const char *name, size_t len,
                       uint32_t reasons);
/* Frees the copy. Takes the lock. */
void rdmeta_copied_free(rdmeta_cache_t *c, rdmeta_copied_t *copied);
