/*
 * leader: the lookup of one leader.
 *
 * Nearly all lookups are alike. A reader of a live cache looks up a name of 17
 * to 32 bytes. The topic is valid and in time, and its leaders have one byte.
 * That path makes no call, so that the compiler needs to save few registers.
 * All rarer cases are a function of their own, called in a return. With fewer
 * instructions a CPU has more lookups under way while it waits for memory. So
 * one comparison tests length, state and width. Two more test the deadline,
 * whether it is the topic's own or the shared one. The lookup in a file is the
 * same, with tests against a damaged file. The block must lie within the file,
 * and its leader must not be a code.
 */
#include "image/file.h"
#include "read/follow.h"

/* Looks for a new file if that is due. Then looks up a leader in an image of
 * any kind. */
static RDMETA_NOINLINE int32_t image_leader(rdmeta_reader_t *r,
                                            const char *topic, size_t len,
                                            int32_t partition,
                                            int64_t mono_us) {
        if (RDMETA_UNLIKELY(len - 1 >= RDMETA_NAME_MAX))
                return RDMETA_NOT_CACHED;
        rdmeta_attach_time(r, mono_us);
        return r->image->ops->leader(r->image, topic, len, partition, mono_us,
                                     r->stale_ok);
}

/* Looks up a leader in a cache, for any name and reader. */
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
/* Ends a lookup that began as a fast one and cannot be one. `t` is a block of
 * the right tag with another head, or NULL. Mostly its leaders take more than
 * one byte. */
static RDMETA_NOINLINE int32_t leader_other(rdmeta_reader_t *r,
                                            const char *topic, size_t len,
                                            int32_t partition,
                                            int64_t mono_us,
                                            const rdmeta_topic_t *t) {
        int32_t leader = RDMETA_VIEW_GENERAL;

        if (RDMETA_LIKELY(t != NULL) && RDMETA_LIKELY(t->name_len == len) &&
            RDMETA_LIKELY(rdmeta_name_equal(t->name, topic, len)))
                leader = rdmeta_view_pick_fresh(r->root, t, len, partition,
                                                mono_us);
        rdmeta_reading_end(&r->reading);
        if (RDMETA_LIKELY(leader != RDMETA_VIEW_GENERAL))
                return leader;
        return leader_general(r, topic, len, partition, mono_us);
}

/* Returns 1 if the topic's name begins with the bytes `first` and ends with the
 * bytes `last`. Both have 16 bytes, so for 17 to 32 bytes that is all of it. */
RDMETA_INLINE int name_matches(const rdmeta_topic_t *t, size_t len,
                               __m128i first, __m128i last) {
        const char *end = (const char *)t + len; /* name + len - 16 */
        const __m128i a = _mm_loadu_si128(
                (const __m128i *)(const void *)t->name);
        const __m128i z = _mm_loadu_si128((const __m128i *)(const void *)end);

        return _mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(first, a),
                                               _mm_cmpeq_epi8(last, z))) ==
               0xffff;
}

/* Looks up a leader on the path for nearly all lookups, see above. The reader
 * has begun. */
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
                return leader_other(r, topic, len, partition, mono_us, NULL);
        if (RDMETA_UNLIKELY(rdmeta_topic_head(t) != (uint32_t)len))
                return leader_other(r, topic, len, partition, mono_us, t);
        if (RDMETA_UNLIKELY(!name_matches(t, len, first, last)) ||
            RDMETA_UNLIKELY((uint32_t)partition >= t->count) ||
            RDMETA_UNLIKELY(!rdmeta_view_is_fresh(r->root, t, mono_us)))
                return leader_other(r, topic, len, partition, mono_us, NULL);
        leader = (int8_t)t->name[len + (uint32_t)partition];
        rdmeta_reading_end(&r->reading);
        return leader;
}
/* Does the same in a file that was opened or is followed. Also tests that the
 * slot's block and the leader lie within the file's blocks. */
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
            RDMETA_UNLIKELY(!name_matches(t, len, first, last)) ||
            RDMETA_UNLIKELY((uint32_t)partition >= t->count) ||
            RDMETA_UNLIKELY(atomic_load_explicit(&t->deadline,
                                                 memory_order_relaxed) <
                            rdmeta_file_minus(mono_us, f->taken_us)))
                return rdmeta_file_leader(&f->image, topic, len, partition,
                                          mono_us, hash);
        at = t->name + len + (uint32_t)partition;
        /* Below -1 is neither a leader nor a code of this library. */
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
