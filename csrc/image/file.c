/* Reads a file that is mapped or copied: reasons, topics, leaders; and encodes
 * reasons and brokers for the writer. A reader checks each number of the file
 * before it follows it. See file.h. */
#include "image/file.h"

#include "base/alloc.h"
#include "topic/sort.h"
#include "topic/validate.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- reasons: writing ---------------------------------------------------- */

uint32_t rdmeta_file_reason_number(rdmeta_file_reasons_t *r,
                                   const rdmeta_image_t *image,
                                   uint32_t number) {
        const rdmeta_str_t text = image->ops->reason(image, number);

        if (!text.data)
                return 0;
        if (!r->numbers[number]) {
                r->numbers[number] = (uint16_t)++r->count;
                r->from[r->count]  = (uint16_t)number;
                r->size += sizeof(uint32_t) + text.len;
        }
        return r->numbers[number];
}

void rdmeta_file_reasons_fill(const rdmeta_file_reasons_t *r,
                              const rdmeta_image_t *image, char *out) {
        uint32_t *ends = (uint32_t *)(void *)out, end = 0, i;
        char *texts    = (char *)(ends + r->count);

        for (i = 1; i <= r->count; i++) {
                const rdmeta_str_t text = image->ops->reason(image,
                                                             r->from[i]);

                memcpy(texts + end, text.data, text.len);
                end += (uint32_t)text.len;
                ends[i - 1] = end;
        }
}

/* ---- reasons: reading ---------------------------------------------------- */

/* Texts follow each other, and the last one ends where the section ends. No
 * text is longer than RDMETA_REASON_MAX: that also finds one that ends before
 * it begins, since its length wraps. */
rdmeta_err_t rdmeta_file_reasons_open(rdmeta_file_t *f) {
        const rdmeta_file_section_t *s =
                &f->head.sections[RDMETA_FILE_REASONS];
        const uint64_t n = f->head.reasons;
        uint64_t i, last = 0;

        if (n > RDMETA_REASONS_MAX || s->length < n * sizeof(*f->reasons))
                return RDMETA_ERR_MALFORMED;
        f->reasons = (const uint32_t *)(const void *)(f->base + s->offset);
        for (i = 0; i < n; i++) {
                if (f->reasons[i] - last > RDMETA_REASON_MAX)
                        return RDMETA_ERR_MALFORMED;
                last = f->reasons[i];
        }
        return last == s->length - n * sizeof(*f->reasons)
                       ? RDMETA_OK
                       : RDMETA_ERR_MALFORMED;
}

rdmeta_str_t rdmeta_file_reason(const rdmeta_image_t *image,
                                uint32_t number) {
        const rdmeta_file_t *f = rdmeta_file_of(image);
        rdmeta_str_t text      = {NULL, 0};
        uint32_t begin;

        if (!number || number > f->head.reasons)
                return text;
        begin     = number > 1 ? f->reasons[number - 2] : 0;
        text.data = (const char *)(f->reasons + f->head.reasons) + begin;
        text.len  = f->reasons[number - 1] - begin;
        return text;
}

static rdmeta_file_t *file_mutable(rdmeta_image_t *image) {
        return (rdmeta_file_t *)(void *)image;
}

/* Returns MALFORMED if a block is bad. Checks a block only once: two bits per
 * line store whether the block that begins there is good or bad. */
static rdmeta_err_t file_check(const rdmeta_file_t *f,
                               const rdmeta_topic_t *t) {
        const uint64_t i = (uint64_t)((const char *)t - f->base) /
                                   RDMETA_LINE - f->first;
        _Atomic uint64_t *word = &f->checked[i / 32];
        const uint64_t good    = UINT64_C(1) << i % 32 * 2, bad = good << 1;
        uint64_t known = atomic_load_explicit(word, memory_order_relaxed);

        if (RDMETA_UNLIKELY(!(known & (good | bad)))) {
                known = rdmeta_topic_check(&f->allocator, t, f->begin,
                                           f->end) ||
                                        rdmeta_topic_provenance(t).reason >
                                                f->head.reasons
                                ? bad
                                : good;
                atomic_fetch_or_explicit(word, known, memory_order_relaxed);
        }
        return RDMETA_LIKELY(known & good) ? RDMETA_OK : RDMETA_ERR_MALFORMED;
}

static void file_times(const rdmeta_image_t *image, rdmeta_seen_t *seen) {
        const int64_t own = atomic_load_explicit(&seen->topic->deadline,
                                                 memory_order_relaxed);

        seen->deadline = rdmeta_deadline_unasked(
                rdmeta_file_plus(own, rdmeta_file_of(image)->taken_us));
        seen->provenance = rdmeta_topic_provenance(seen->topic);
}

/* ---- one topic --------------------------------------------------------- */

/* The name or the id that a lookup searches for. */
typedef struct file_key {
        const char *name;
        size_t len;
        const uint8_t *id; /* NULL: the lookup is by name */
} file_key_t;

/* Returns whether a block has this name or id. Compares only bytes that lie
 * within the blocks section. */
RDMETA_INLINE int file_is(const rdmeta_file_t *f, const rdmeta_topic_t *t,
                          const file_key_t *key) {
        if (key->id) {
                const rdmeta_cold_t *cold =
                        rdmeta_topic_cold_within(t, f->begin, f->end);

                return cold && !memcmp(cold->id, key->id, 16);
        }
        return t->name_len == key->len &&
               key->len <= (size_t)(f->end - t->name) &&
               rdmeta_name_equal(t->name, key->name, key->len);
}

RDMETA_INLINE rdmeta_err_t file_probe(const rdmeta_image_t *image,
                                      const rdmeta_file_table_t *n,
                                      uint64_t hash, const file_key_t *key,
                                      rdmeta_seen_t *out) {
        const rdmeta_file_t *f = rdmeta_file_of(image);
        uint32_t k = rdmeta_slot_first(hash) & n->mask, probes = n->longest;
        const rdmeta_topic_t *t;

        for (;; k = (k + 1) & n->mask, probes--) {
                const uint64_t slot = n->slots[k];

                if (!slot)
                        return RDMETA_NOT_CACHED;
                if (rdmeta_slot_tag_is(slot, hash)) {
                        t = rdmeta_file_block(f, slot >> RDMETA_SLOT_TAG);
                        if (!t)
                                return RDMETA_ERR_MALFORMED;
                        if (file_is(f, t, key))
                                break;
                }
                if (!probes)
                        return RDMETA_NOT_CACHED;
        }
        if (file_check(f, t))
                return RDMETA_ERR_MALFORMED;
        out->topic = t;
        file_times(image, out);
        return RDMETA_OK;
}

static rdmeta_err_t file_find(const rdmeta_image_t *image, const char *name,
                              size_t len, rdmeta_seen_t *out) {
        const rdmeta_file_table_t *n = &rdmeta_file_of(image)->names;
        const file_key_t key         = {name, len, NULL};

        return file_probe(image, n, rdmeta_hash(n->key, name, len), &key, out);
}

static rdmeta_err_t file_find_id(const rdmeta_image_t *image,
                                 const uint8_t id[16], rdmeta_seen_t *out) {
        const rdmeta_file_table_t *n = &rdmeta_file_of(image)->ids;
        const file_key_t key         = {NULL, 0, id};

        return file_probe(image, n, rdmeta_hash_id(n->key, id), &key, out);
}

/* ---- a leader ---------------------------------------------------------- */

static RDMETA_NOINLINE int32_t leader_general(const rdmeta_image_t *image,
                                              const char *name, size_t len,
                                              int32_t partition,
                                              int64_t mono_us, int stale_ok) {
        rdmeta_seen_t seen;
        const rdmeta_err_t err = file_find(image, name, len, &seen);

        if (err)
                return err;
        return rdmeta_view_leader_at(seen.topic, seen.deadline, partition,
                                     mono_us, stale_ok);
}

/* Finds the leader on the fast path. A block's first line and the next one are
 * always within the section. So it compares only the leader's place with the
 * section's end. */
int32_t rdmeta_file_leader(const rdmeta_image_t *image, const char *name,
                           size_t len, int32_t partition, int64_t mono_us,
                           uint64_t hash) {
        const rdmeta_file_t *f = rdmeta_file_of(image);
        uint32_t k    = rdmeta_slot_first(hash) & f->names.mask;
        uint32_t probes = f->names.longest, width;
        const rdmeta_topic_t *t;
        uint64_t slot;
        int32_t leader;
        const char *p;

        for (;; probes--, k = (k + 1) & f->names.mask) {
                slot = f->names.slots[k];
                if (RDMETA_LIKELY(rdmeta_slot_tag_is(slot, hash)))
                        break;
                if (!slot || !probes)
                        return RDMETA_NOT_CACHED;
        }
        t = rdmeta_file_block(f, slot >> RDMETA_SLOT_TAG);
        if (RDMETA_UNLIKELY(!t) ||
            RDMETA_UNLIKELY((rdmeta_topic_head(t) & RDMETA_HEAD_VALID) !=
                            len) ||
            RDMETA_UNLIKELY(!rdmeta_name_equal(t->name, name, len)) ||
            RDMETA_UNLIKELY((uint32_t)partition >= rdmeta_topic_count(t)) ||
            RDMETA_UNLIKELY(atomic_load_explicit(&t->deadline,
                                                 memory_order_relaxed) <
                            rdmeta_file_minus(mono_us, f->taken_us)))
                return leader_general(image, name, len, partition, mono_us, 0);
        width = t->width;
        if (RDMETA_UNLIKELY(width >= RDMETA_TOPIC_SPARSE))
                return leader_general(image, name, len, partition, mono_us, 0);
        p = t->name + len + ((size_t)(uint32_t)partition << width);
        if (RDMETA_UNLIKELY(p > f->end - 4))
                return leader_general(image, name, len, partition, mono_us, 0);
        leader = rdmeta_col_get(p, width, 0);
        if (RDMETA_UNLIKELY(leader < -1)) /* would look like an error code */
                return leader_general(image, name, len, partition, mono_us, 0);
        return leader;
}

static int32_t file_leader(const rdmeta_image_t *image, const char *name,
                           size_t len, int32_t partition, int64_t mono_us,
                           int stale_ok) {
        if (RDMETA_UNLIKELY(!rdmeta_hash_is_short(len)) ||
            RDMETA_UNLIKELY(stale_ok))
                return leader_general(image, name, len, partition, mono_us,
                                      stale_ok);
        return rdmeta_file_leader(image, name, len, partition, mono_us,
                                  rdmeta_hash_short(
                                          rdmeta_file_of(image)->names.key,
                                          name, len));
}

static void file_prefetch(const rdmeta_image_t *image,
                          const rdmeta_str_t *names, size_t n) {
        const rdmeta_file_t *f       = rdmeta_file_of(image);
        const rdmeta_file_table_t *t = &f->names;
        uint32_t k[RDMETA_IMAGE_PREFETCH];
        size_t i;

        for (i = 0; i < n; i++) {
                k[i] = names[i].len - 1 < RDMETA_NAME_MAX
                               ? rdmeta_slot_first(rdmeta_hash(
                                         t->key, names[i].data,
                                         names[i].len)) &
                                         t->mask
                               : 0;
                __builtin_prefetch(&t->slots[k[i]]);
        }
        for (i = 0; i < n; i++)
                __builtin_prefetch(rdmeta_file_block(
                        f, t->slots[k[i]] >> RDMETA_SLOT_TAG));
}

/* ---- all topics --------------------------------------------------------- */

rdmeta_err_t rdmeta_file_at(const rdmeta_file_t *f, size_t i,
                            const rdmeta_topic_t **out) {
        const rdmeta_topic_t *t = rdmeta_file_block(f, f->order[i]);

        if (!t || file_check(f, t))
                return RDMETA_ERR_MALFORMED;
        *out = t;
        return RDMETA_OK;
}

/* Blocks must not overlap, and neither must the cold parts of split blocks. If
 * they did, a small file could make the checks take very long: the number of
 * blocks times their size. A cold part may overlap a block: that does no
 * harm. */
rdmeta_err_t rdmeta_file_next(const rdmeta_file_t *f, size_t i,
                              rdmeta_file_ends_t *ends,
                              const rdmeta_topic_t **out) {
        const rdmeta_topic_t *t = rdmeta_file_block(f, f->order[i]);
        const char *cold;

        *out = NULL;
        if (!t || (const char *)t < ends->blocks)
                return RDMETA_ERR_MALFORMED;
        *out = t;
        cold = (const char *)rdmeta_topic_cold_within(t, f->begin, f->end);
        if (!cold ||
            cold < (rdmeta_topic_is_split(t) ? ends->colds : ends->blocks) ||
            file_check(f, t))
                return RDMETA_ERR_MALFORMED;
        if (rdmeta_topic_is_split(t)) {
                ends->blocks = (const char *)t + RDMETA_LINE;
                ends->colds  = cold + rdmeta_cold(t)->size;
        } else {
                ends->blocks = cold + rdmeta_cold(t)->size;
        }
        return RDMETA_OK;
}

/* Checks once that `order` has all topics in the order of their names: walks
 * rely on it. */
static rdmeta_err_t file_order(rdmeta_image_t *image, size_t *n) {
        rdmeta_file_t *f           = file_mutable(image);
        const rdmeta_topic_t *last = NULL, *t;
        rdmeta_file_ends_t ends    = {f->begin, f->begin};
        size_t i;

        *n = f->count;
        if (atomic_load_explicit(&f->ordered, memory_order_relaxed))
                return RDMETA_OK;
        for (i = 0; i < f->count; i++, last = t) {
                if (rdmeta_file_next(f, i, &ends, &t) ||
                    (last && rdmeta_topics_compare(last, t) >= 0))
                        return RDMETA_ERR_MALFORMED;
        }
        atomic_store_explicit(&f->ordered, 1, memory_order_relaxed);
        return RDMETA_OK;
}

static rdmeta_err_t file_at(const rdmeta_image_t *image, size_t i,
                            rdmeta_seen_t *out) {
        const rdmeta_err_t err = rdmeta_file_at(rdmeta_file_of(image), i,
                                                &out->topic);

        if (!err)
                file_times(image, out);
        return err;
}

/* ---- info, memory, destroy --------------------------------------------- */

static void file_info(const rdmeta_image_t *image, rdmeta_image_info_t *out) {
        (void)image; /* nothing of a file's info changes */
        (void)out;
}

static void *file_alloc(rdmeta_image_t *image, size_t size) {
        return rdmeta_alloc(&file_mutable(image)->allocator, size);
}

static void file_free(rdmeta_image_t *image, void *p, size_t size) {
        rdmeta_free(&file_mutable(image)->allocator, p, size);
}

/* Frees `checked`, if file_fill() allocated it. */
static void bitmap_destroy(rdmeta_file_t *f) {
        if (f->checked && rdmeta_file_maps_bitmap(f))
                munmap((void *)f->checked, f->bitmap);
        else
                rdmeta_free(&f->allocator, (void *)f->checked, f->bitmap);
}

static void file_destroy(rdmeta_image_t *image) {
        rdmeta_file_t *f                   = file_mutable(image);
        const rdmeta_allocator_t allocator = f->allocator;

        rdmeta_brokers_destroy(&allocator, image->brokers);
        bitmap_destroy(f);
        if (f->copy)
                rdmeta_free(&allocator, f->copy, f->size + RDMETA_LINE);
        else if (f->base)
                munmap((void *)(uintptr_t)f->base, f->size);
        if (f->fd >= 0)
                close(f->fd);
        rdmeta_free(&allocator, f, sizeof(*f));
}

const rdmeta_image_ops_t rdmeta_file_ops = {.leader  = file_leader,
                                            .prefetch   = file_prefetch,
                                            .find    = file_find,
                                            .find_id = file_find_id,
                                            .times   = file_times,
                                            .reason  = rdmeta_file_reason,
                                            .order   = file_order,
                                            .at      = file_at,
                                            .info    = file_info,
                                            .alloc   = file_alloc,
                                            .free    = file_free,
                                            .destroy = file_destroy};

/* ---- brokers: a Metadata response without topics ------------------------ */

typedef struct response {
        uint8_t *p; /* NULL: the functions only add up the length */
        size_t n;   /* bytes so far */
} response_t;

static void add_bytes(response_t *r, const void *p, size_t n) {
        if (r->p && n)
                memcpy(r->p + r->n, p, n);
        r->n += n;
}

static void add_int(response_t *r, uint32_t v) {
        v = __builtin_bswap32(v);
        add_bytes(r, &v, 4);
}

static void add_count(response_t *r, size_t v) {
        uint8_t byte;

        do {
                byte = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
                add_bytes(r, &byte, 1);
        } while (v >>= 7);
}

static void add_str(response_t *r, rdmeta_str_t s) {
        add_count(r, s.data ? s.len + 1 : 0);
        add_bytes(r, s.data, s.len);
}

static void add_response(response_t *r, const rdmeta_brokers_t *b) {
        uint32_t i;

        add_int(r, 0); /* throttle time */
        add_count(r, (size_t)b->count + 1);
        for (i = 0; i < b->count; i++) {
                add_int(r, (uint32_t)b->rows[i].id);
                add_str(r, b->rows[i].host);
                add_int(r, (uint32_t)b->rows[i].port);
                add_str(r, b->rows[i].rack);
                add_count(r, 0);
        }
        add_str(r, b->cluster_id);
        add_int(r, (uint32_t)rdmeta_brokers_controller(b));
        add_count(r, 1); /* no topics */
        add_count(r, 0);
}

size_t rdmeta_file_brokers_fill(const rdmeta_brokers_t *b, uint8_t *out) {
        response_t r = {out, 0};

        add_response(&r, b);
        return r.n;
}
