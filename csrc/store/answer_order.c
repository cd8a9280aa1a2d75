#include "store/answer_order.h"

#include "base/alloc.h"

rdmeta_err_t rdmeta_answer_order_reserve(rdmeta_answer_order_t *o,
                                         const rdmeta_allocator_t *allocator,
                                         size_t count) {
        const size_t size = sizeof(*o->slots);
        rdmeta_answer_order_slot_t *slots;

        if (count <= o->capacity)
                return RDMETA_OK;
        if (count >= UINT32_MAX)
                return RDMETA_ERR_NO_MEMORY;
        slots = (rdmeta_answer_order_slot_t *)rdmeta_alloc_large(allocator,
                                                                 count * size);
        if (!slots)
                return RDMETA_ERR_NO_MEMORY;
        if (o->capacity) /* an answer prepares slots beyond the count */
                memcpy(slots, o->slots, o->capacity * size);
        rdmeta_free(allocator, o->slots, o->capacity * size);
        o->slots    = slots;
        o->capacity = (uint32_t)count;
        return RDMETA_OK;
}

void rdmeta_answer_order_destroy(rdmeta_answer_order_t *o,
                                 const rdmeta_allocator_t *allocator) {
        rdmeta_free(allocator, o->slots, o->capacity * sizeof(*o->slots));
        memset(o, 0, sizeof(*o));
}

rdmeta_answer_order_slot_t *rdmeta_answer_order_take(
        rdmeta_answer_order_t *o, const rdmeta_allocator_t *allocator) {
        rdmeta_answer_order_slot_t *slot;

        if (o->holes) {
                slot    = &o->slots[o->hole];
                o->hole = slot->seen;
                o->holes--;
        } else {
                if (o->count == o->capacity &&
                    rdmeta_answer_order_reserve(
                            o, allocator,
                            (size_t)o->count + o->count / 8 + 8))
                        return NULL;
                slot = &o->slots[o->count++];
        }
        memset(slot, 0, sizeof(*slot));
        return slot;
}

void rdmeta_answer_order_give(rdmeta_answer_order_t *o, uint32_t slot) {
        memset(&o->slots[slot], 0, sizeof(o->slots[slot]));
        o->slots[slot].seen = o->hole;
        o->hole             = slot;
        o->holes++;
}

void rdmeta_answer_order_forget(rdmeta_answer_order_t *o, int16_t api_version) {
        uint32_t i;

        if (o->api_version == api_version)
                return;
        o->api_version = api_version;
        for (i = 0; i < o->count; i++)
                o->slots[i].len &= RDMETA_ANSWER_ORDER_OWN;
}
