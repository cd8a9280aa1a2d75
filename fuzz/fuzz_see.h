/* fuzz_see: what targets do with the bytes that they are given: read them, so
 * that a sanitizer has its say. */
#ifndef RDMETA_FUZZ_SEE_H
#define RDMETA_FUZZ_SEE_H

#include "rdmeta.h"
#include "support/holds.h"

static uint64_t sum; /* so that reading cannot be left out */

static void see(const void *data, size_t len) {
        const uint8_t *p = (const uint8_t *)data;

        while (len--)
                sum += p[len];
}

static int32_t see_change(void *opaque, const rdmeta_change_t *c) {
        (void)opaque;
        see(c->topic.data, c->topic.len);
        see(c->detail.data, c->detail.len);
        see(c->old_isr.ids, 4 * (size_t)c->old_isr.count);
        see(c->new_replicas.ids, 4 * (size_t)c->new_replicas.count);
        HOLDS(rdmeta_change_kind_name(c->kind));
        return 0;
}

#endif
