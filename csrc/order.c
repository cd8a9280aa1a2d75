#include "order.h"

#include "alloc.h"

rdmeta_err_t rdmeta_order_reserve(rdmeta_order_t *o,
                                  const rdmeta_allocator_t *allocator,
                                  size_t count) {
        const size_t size = sizeof(*o->slots);
        rdmeta_order_slot_t *slots;

        if (count <= o->capacity)
                return RDMETA_OK;
        if (count >= RDMETA_ORDER_NONE)
                return RDMETA_ERR_NO_MEMORY;
        slots = (rdmeta_order_slot_t *)rdmeta_alloc_large(allocator,
                                                         count * size);
        if (!slots)
                return RDMETA_ERR_NO_MEMORY;
        if (o->capacity) /* beyond the count, too: an answer stages there */
                memcpy(slots, o->slots, o->capacity * size);
        rdmeta_free(allocator, o->slots, o->capacity * size);
        o->slots    = slots;
        o->capacity = (uint32_t)count;
        return RDMETA_OK;
}

void rdmeta_order_destroy(rdmeta_order_t *o,
                          const rdmeta_allocator_t *allocator) {
        rdmeta_free(allocator, o->slots, o->capacity * sizeof(*o->slots));
        memset(o, 0, sizeof(*o));
}

void rdmeta_order_forget(rdmeta_order_t *o, int16_t api_version) {
        uint32_t i;

        if (o->api_version == api_version)
                return;
        o->api_version = api_version;
        for (i = 0; i < o->count; i++)
                o->slots[i].len &= RDMETA_ORDER_OWN;
}
