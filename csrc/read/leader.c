/*
 * The lookup of one leader.
 *
 * What is nearly always asked - a name of 17 to 32 bytes, a reader of a live
 * cache, a valid topic, leaders of one byte, in time - is answered without a
 * call on its way, so that the compiler needs to save few registers; whatever
 * is rarer is a function of its own, in the place of a return. Fewer
 * instructions are more lookups that a CPU has under way while it waits for
 * memory: so one comparison tells length, state and width, and one each that a
 * deadline is to come, whosever it is. A file's lookup is the same with what a
 * file may not be believed: where a block lies, and that it says no code.
 */
#include "image/file.h"
#include "read/follow.h"

static RDMETA_NOINLINE int32_t followed_leader(rdmeta_reader_t *r,
                                               const char *topic, size_t len,
                                               int32_t partition,
                                               int64_t mono_us) {
        rdmeta_attach_time(r, mono_us);
        return r->image->ops->leader(r->image, topic, len, partition, mono_us,
                                     r->stale_ok);
}

static RDMETA_NOINLINE int32_t image_leader(rdmeta_reader_t *r,
                                            const char *topic, size_t len,
                                            int32_t partition,
                                            int64_t mono_us) {
        if (RDMETA_UNLIKELY(len - 1 >= RDMETA_NAME_MAX))
                return RDMETA_NOT_CACHED;
        if (r->attach && RDMETA_UNLIKELY(rdmeta_attach_is_due(r, mono_us) ||
                                         rdmeta_attach_inside(r)))
                return followed_leader(r, topic, len, partition, mono_us);
        return r->image->ops->leader(r->image, topic, len, partition, mono_us,
                                     r->stale_ok);
}

static RDMETA_NOINLINE int32_t leader_general(rdmeta_reader_t *r,
                                              const char *topic, size_t len,
                                              int32_t partition,
                                              int64_t mono_us) {
        int32_t leader;

        if (len - 1 >= RDMETA_NAME_MAX)
                return RDMETA_NOT_CACHED;
        rdmeta_reading_enter(&r->reading);
        leader = rdmeta_view_leader(r->root, topic, len, partition, mono_us,
                                    r->stale_ok);
        rdmeta_reading_leave(&r->reading);
        return leader;
}

#if defined(__SSE2__)
/* What begins as a fast lookup, and is not one. */
static RDMETA_NOINLINE int32_t leader_slow(rdmeta_reader_t *r,
                                           const char *topic, size_t len,
                                           int32_t partition,
                                           int64_t mono_us) {
        const int32_t leader = rdmeta_view_leader(
                r->root, topic, len, partition, mono_us, r->stale_ok);

        rdmeta_reading_end(&r->reading);
        return leader;
}

/* The same where a block of the right tag has another head: most often its
 * leaders take more than a byte. */
static RDMETA_NOINLINE int32_t leader_wide(rdmeta_reader_t *r,
                                           const char *topic, size_t len,
                                           int32_t partition, int64_t mono_us,
                                           const rdmeta_topic_t *t) {
        int32_t leader = RDMETA_VIEW_GENERAL;

        if (RDMETA_LIKELY(t->name_len == len) &&
            RDMETA_LIKELY(rdmeta_name_equal(t->name, topic, len)))
                leader = rdmeta_view_pick_fast(
                        r->root, t, len,
                        rdmeta_topic_head(t) ^ (uint32_t)len, partition,
                        mono_us);
        rdmeta_reading_end(&r->reading);
        if (RDMETA_LIKELY(leader != RDMETA_VIEW_GENERAL))
                return leader;
        return leader_general(r, topic, len, partition, mono_us);
}

/* Whether the name begins and ends with those 16 bytes. */
RDMETA_INLINE int name_is(const rdmeta_topic_t *t, size_t len, __m128i first,
                          __m128i last) {
        const char *end = (const char *)t + len; /* name + len - 16 */
        const __m128i a = _mm_loadu_si128(
                (const __m128i *)(const void *)t->name);
        const __m128i z = _mm_loadu_si128((const __m128i *)(const void *)end);

        return _mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(first, a),
                                               _mm_cmpeq_epi8(last, z))) ==
               0xffff;
}

RDMETA_INLINE int32_t leader_fast(rdmeta_reader_t *r, const char *topic,
                                  size_t len, int32_t partition,
                                  int64_t mono_us) {
        const rdmeta_table_t *names = atomic_load_explicit(
                &r->root->names, memory_order_acquire);
        const __m128i first = _mm_loadu_si128(
                (const __m128i *)(const void *)topic);
        const __m128i last = _mm_loadu_si128(
                (const __m128i *)(const void *)(topic + len - 16));
        const uint64_t hash     = rdmeta_hash_short(names->key, topic, len);
        const rdmeta_topic_t *t = rdmeta_slot_topic(
                rdmeta_table_first(names, hash));
        int32_t leader;

        if (RDMETA_UNLIKELY(!t))
                return leader_slow(r, topic, len, partition, mono_us);
        if (RDMETA_UNLIKELY(rdmeta_topic_head(t) != (uint32_t)len))
                return leader_wide(r, topic, len, partition, mono_us, t);
        if (RDMETA_UNLIKELY(!name_is(t, len, first, last)) ||
            RDMETA_UNLIKELY((uint32_t)partition >= t->count) ||
            RDMETA_UNLIKELY(!rdmeta_view_is_fresh(r->root, t, mono_us)))
                return leader_slow(r, topic, len, partition, mono_us);
        leader = (int8_t)t->name[len + (uint32_t)partition];
        rdmeta_reading_end(&r->reading);
        return leader;
}

/* The same of a file that was opened or is followed: what a slot leads to lies
 * within the blocks, and so does the leader. */
static RDMETA_NOINLINE int32_t file_fast(rdmeta_reader_t *r, const char *topic,
                                         size_t len, int32_t partition,
                                         int64_t mono_us) {
        const rdmeta_file_t *f = rdmeta_file_of(r->image);
        const __m128i first    = _mm_loadu_si128(
                (const __m128i *)(const void *)topic);
        const __m128i last = _mm_loadu_si128(
                (const __m128i *)(const void *)(topic + len - 16));
        const rdmeta_topic_t *t;
        uint64_t hash, slot;
        const char *at;

        if (RDMETA_UNLIKELY(f->image.ops != &rdmeta_file_ops) ||
            RDMETA_UNLIKELY(r->stale_ok) ||
            (r->attach && (RDMETA_UNLIKELY(rdmeta_attach_is_due(r, mono_us)) ||
                           RDMETA_UNLIKELY(rdmeta_attach_inside(r)))))
                return image_leader(r, topic, len, partition, mono_us);
        hash = rdmeta_hash_short(f->names.key, topic, len);
        slot = f->names.slots[rdmeta_slot_first(hash) & f->names.mask];
        t    = rdmeta_file_block(f, slot >> RDMETA_SLOT_TAG);
        if (RDMETA_UNLIKELY(!rdmeta_slot_tag_is(slot, hash)) ||
            RDMETA_UNLIKELY(!t) ||
            RDMETA_UNLIKELY(rdmeta_topic_head(t) != (uint32_t)len) ||
            RDMETA_UNLIKELY(!name_is(t, len, first, last)) ||
            RDMETA_UNLIKELY((uint32_t)partition >= t->count) ||
            RDMETA_UNLIKELY(atomic_load_explicit(&t->deadline,
                                                 memory_order_relaxed) <
                            rdmeta_file_minus(mono_us, f->taken_us)))
                return rdmeta_file_leader(&f->image, topic, len, partition,
                                          mono_us, hash);
        at = t->name + len + (uint32_t)partition;
        /* Less than -1 is no leader's, nor a code of ours. */
        if (RDMETA_UNLIKELY(at >= f->end) || RDMETA_UNLIKELY((int8_t)*at < -1))
                return rdmeta_file_leader(&f->image, topic, len, partition,
                                          mono_us, hash);
        return (int8_t)*at;
}
#endif

int32_t rdmeta_leader(rdmeta_reader_t *r, const char *topic, size_t len,
                      int32_t partition, int64_t mono_us) {
#if defined(__SSE2__)
        if (RDMETA_LIKELY(rdmeta_hash_is_short(len))) {
                if (RDMETA_LIKELY(rdmeta_reading_is_plain(&r->reading))) {
                        rdmeta_reading_begin(&r->reading);
                        return leader_fast(r, topic, len, partition, mono_us);
                }
                if (RDMETA_LIKELY(r->image != NULL))
                        return file_fast(r, topic, len, partition, mono_us);
        }
#endif
        if (r->image)
                return image_leader(r, topic, len, partition, mono_us);
        return leader_general(r, topic, len, partition, mono_us);
}
