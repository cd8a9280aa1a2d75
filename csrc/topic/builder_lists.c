/* Lists of a stage: equal ones found through a hash, and numbered. */
#include "topic/builder_write.h"

static int ids_equal(rdmeta_wire_ids_t a, rdmeta_wire_ids_t b) {
        return a.count == b.count && !memcmp(a.be, b.be, 4 * (size_t)a.count);
}

static uint64_t ids_hash(const uint64_t *key, rdmeta_wire_ids_t l) {
        uint64_t h       = key[0] + l.count;
        size_t n         = 4 * (size_t)l.count;
        const uint8_t *p = l.be;

        for (; n >= 8; n -= 8, p += 8)
                h = rdmeta_mix(rdmeta_load64(p) ^ key[1], h ^ key[2]);
        return n ? rdmeta_mix(rdmeta_load32(p) ^ key[1], h ^ key[3]) : h;
}

/* The number of a list. A new one gets the next, and so does one that cannot
 * be shared because the rows would name too many brokers. */
static uint32_t stage_list(rdmeta_stage_t *s, rdmeta_wire_ids_t l) {
        uint32_t k;

        if (l.count == 0)
                return 0;
        s->named += l.count;
        k = (uint32_t)ids_hash(s->key, l) & s->slot_mask;
        for (;; k = (k + 1) & s->slot_mask) {
                const uint64_t slot = s->slots[k];
                if ((uint32_t)(slot >> 32) != s->generation) {
                        s->slots[k] = (uint64_t)s->generation << 32 |
                                      s->n_lists;
                        break;
                }
                if (ids_equal(s->lists[(uint32_t)slot], l)) {
                        if (RDMETA_LIKELY(rdmeta_lists_fit(
                                    s->named, s->count, s->units)))
                                return (uint32_t)slot;
                        break;
                }
        }
        s->at[s->n_lists]    = s->units;
        s->lists[s->n_lists] = l;
        s->units += 1 + l.count;
        return s->n_lists++;
}

void rdmeta_stage_number(rdmeta_stage_t *s) {
        uint32_t i;

        if (++s->generation == 0) {
                memset(s->slots, 0, ((size_t)s->slot_mask + 1) * 8);
                s->generation = 1;
        }
        s->lists[0].be    = NULL;
        s->lists[0].count = 0;
        s->at[0]          = 0;
        s->n_lists = s->units = 1;
        s->named              = 0;
        for (i = 0; i < s->count; i++) {
                s->refs[0][i] = stage_list(s, s->replicas[i]);
                s->refs[1][i] = stage_list(s, s->isr[i]);
                s->refs[2][i] = stage_list(s, s->offline[i]);
        }
}
