/* fuzz_see: reads all bytes that the core returns, so that a sanitizer reports
 * those that it must not return. */
#pragma once

#include "rdmeta.h"
#include "support/require.h"

static uint64_t sum; /* uses the bytes: the compiler must not skip reads */

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
        REQUIRE(rdmeta_change_kind_name(c->kind));
        return 0;
}
