#include "store/reasons.h"

#include "base/alloc.h"

enum { PLACES = 2 * RDMETA_REASONS_MAX };

static rdmeta_reasons_table_t *table_of(const rdmeta_reasons_t *r) {
        return atomic_load_explicit(&r->table, memory_order_relaxed);
}

static rdmeta_reason_t *text_of(const rdmeta_reasons_table_t *t,
                                uint32_t number) {
        return atomic_load_explicit(&t->texts[number], memory_order_relaxed);
}

static size_t reason_size(size_t len) {
        return sizeof(rdmeta_reason_t) + len;
}

void rdmeta_reasons_init(rdmeta_reasons_t *r,
                         const rdmeta_allocator_t *allocator,
                         uint64_t *seed) {
        int i;

        memset(r, 0, sizeof(*r));
        r->allocator = allocator;
        for (i = 0; i < RDMETA_HASH_KEYS; i++)
                r->key[i] = rdmeta_seed_next(seed);
}

void rdmeta_reasons_destroy(rdmeta_reasons_t *r) {
        rdmeta_reasons_forget(r, 0);
}

/* Returns 1 for a byte of UTF-8 that is not the first of a character. */
static int is_continuation(char byte) {
        return ((uint8_t)byte & 0xc0) == 0x80;
}

/* Cuts before a character, which has at most four bytes. A longer row of
 * continuation bytes is not text, and is cut anywhere. */
rdmeta_str_t rdmeta_reason_cut(rdmeta_str_t reason) {
        size_t n = RDMETA_REASON_MAX;

        if (reason.len <= RDMETA_REASON_MAX)
                return reason;
        while (n > RDMETA_REASON_MAX - 3 && is_continuation(reason.data[n]))
                n--;
        reason.len = is_continuation(reason.data[n]) ? RDMETA_REASON_MAX : n;
        return reason;
}

/* Returns the place that has the reason's number, or that it will have. */
static uint32_t place_of(const rdmeta_reasons_t *r, rdmeta_str_t reason) {
        const rdmeta_reasons_table_t *t = table_of(r);
        uint32_t k = (uint32_t)rdmeta_hash(r->key, reason.data, reason.len);

        for (k %= PLACES; t->places[k]; k = (k + 1) % PLACES) {
                const rdmeta_reason_t *known = text_of(t, t->places[k]);

                if (known->len == reason.len &&
                    !memcmp(known->text, reason.data, reason.len))
                        break;
        }
        return k;
}

/* Allocates the table, if there is none. */
static rdmeta_err_t table_make(rdmeta_reasons_t *r) {
        rdmeta_reasons_table_t *t = table_of(r);

        if (t)
                return RDMETA_OK;
        t = (rdmeta_reasons_table_t *)rdmeta_alloc(r->allocator, sizeof(*t));
        if (!t)
                return RDMETA_ERR_NO_MEMORY;
        memset((void *)t, 0, sizeof(*t));
        r->bytes += sizeof(*t);
        atomic_store_explicit(&r->table, t, memory_order_release);
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_reasons_number(rdmeta_reasons_t *r, rdmeta_str_t reason,
                                   uint16_t *out) {
        rdmeta_reasons_table_t *t;
        rdmeta_reason_t *made;
        uint32_t k;

        *out = 0;
        if (!reason.data)
                return RDMETA_OK;
        if (table_make(r))
                return RDMETA_ERR_NO_MEMORY;
        t      = table_of(r);
        reason = rdmeta_reason_cut(reason);
        k      = place_of(r, reason);
        *out   = t->places[k];
        if (*out || r->count == RDMETA_REASONS_MAX)
                return RDMETA_OK;
        made = (rdmeta_reason_t *)rdmeta_alloc(r->allocator,
                                               reason_size(reason.len));
        if (!made) {
                rdmeta_reasons_forget(r, r->count);
                return RDMETA_ERR_NO_MEMORY;
        }
        made->len = (uint32_t)reason.len;
        memcpy(made->text, reason.data, reason.len);
        *out         = ++r->count;
        t->places[k] = (uint16_t)*out;
        r->bytes += reason_size(reason.len);
        atomic_store_explicit(&t->texts[*out], made, memory_order_release);
        return RDMETA_OK;
}

/* Frees the youngest text first. So a probe never meets a place that was freed
 * before the place behind it. */
void rdmeta_reasons_forget(rdmeta_reasons_t *r, uint32_t count) {
        rdmeta_reasons_table_t *t = table_of(r);

        for (; r->count > count; r->count--) {
                rdmeta_reason_t *last = text_of(t, r->count);
                const rdmeta_str_t s  = {last->text, last->len};

                t->places[place_of(r, s)] = 0;
                atomic_store_explicit(&t->texts[r->count], NULL,
                                      memory_order_relaxed);
                r->bytes -= reason_size(s.len);
                rdmeta_free(r->allocator, last, reason_size(s.len));
        }
        if (r->count || !t)
                return;
        atomic_store_explicit(&r->table, NULL, memory_order_relaxed);
        r->bytes -= sizeof(*t);
        rdmeta_free(r->allocator, t, sizeof(*t));
}

rdmeta_str_t rdmeta_reasons_text(const rdmeta_reasons_t *r, uint32_t number) {
        const rdmeta_reasons_table_t *t;
        const rdmeta_reason_t *found;
        rdmeta_str_t text = {NULL, 0};

        if (!number || number > RDMETA_REASONS_MAX)
                return text;
        t     = atomic_load_explicit(&r->table, memory_order_acquire);
        found = t ? atomic_load_explicit(&t->texts[number],
                                         memory_order_acquire)
                  : NULL;
        if (found) {
                text.data = found->text;
                text.len  = found->len;
        }
        return text;
}

int rdmeta_reasons_check(const rdmeta_reasons_t *r) {
        const rdmeta_reasons_table_t *t = table_of(r);
        size_t bytes                    = t ? sizeof(*t) : 0;
        uint32_t i, k, used = 0;

        if (!t)
                return !r->count && !r->bytes;
        for (i = 1; i <= RDMETA_REASONS_MAX; i++) {
                const rdmeta_reason_t *text = text_of(t, i);

                if ((text != NULL) != (i <= r->count))
                        return 0;
                if (!text)
                        continue;
                bytes += reason_size(text->len);
                if (text->len > RDMETA_REASON_MAX ||
                    t->places[place_of(r, (rdmeta_str_t){text->text,
                                                         text->len})] != i)
                        return 0;
        }
        for (k = 0; k < PLACES; k++)
                used += t->places[k] != 0;
        return r->count && used == r->count && bytes == r->bytes;
}
