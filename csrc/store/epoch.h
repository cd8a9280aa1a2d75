/*
 * epoch: when may what a writer has replaced be freed?
 *
 * Readers must not write to a shared line, nor pay for a fence. So each has a
 * word of its own, in a cache line of its own, and stores the global epoch
 * there while it reads:
 *
 *     epoch 7        readers   [7] [0] [7]       0: not reading
 *     limbo   [7%3] what was retired in epoch 7: a reader may hold it
 *             [6%3] ............... in epoch 6: one that entered in 6 may
 *             [5%3] ............... in epoch 5: nobody can: freed
 *
 * The writer unlinks, puts the block into the limbo of the current epoch, and
 * now and then looks at all readers: when each is outside or has entered in
 * the current epoch, the epoch advances and the oldest limbo is freed. If all
 * are outside, everything is freed at once.
 *
 * Memory order, access by access. `u` is the unlinking of a block: the store
 * of a slot, a table or the broker table (index.h, view.h).
 *
 *   slot, table    writer stores release, readers load acquire: who finds a
 *                  block sees it written.
 *   global epoch   writer stores release after the u of all it retired before;
 *                  begin loads acquire: who announces the new epoch sees those
 *                  u, so nobody in it holds what was retired in older ones.
 *                  The writer's own loads are relaxed: nobody else stores.
 *   begin          stores the reader's word, and then loads slots. Only this
 *                  order matters, and it is the one that CPUs do not keep: a
 *                  load may pass an earlier store, and then the writer sees
 *                  "outside" while an old block is read. A fence between the
 *                  two would cost more than the lookup. So the writer, between
 *                  its u and its look, has every running thread of the process
 *                  fence by membarrier(2), private expedited: a reader whose
 *                  word is not seen by then loads after u and finds the new
 *                  block. A signal fence keeps the compiler from moving loads
 *                  up. The store is a release for checkers alone, that the
 *                  word's own order is one they know.
 *   fence          where the kernel refuses membarrier, readers are never
 *                  plain, and both sides have a seq_cst fence in that place:
 *                  of two threads that each store, fence and load, one sees
 *                  the other's store.
 *   end            stores 0 release, the writer's look loads acquire: all that
 *                  was read comes before what is freed. The look also acquires
 *                  a word that is not 0, though nothing hangs on it.
 *   deadlines      relaxed: each is one word that leads nowhere, and whoever
 *                  reads an older one reads what was true a moment ago.
 *   who said it    acquire: the number of its reason leads to a text.
 *   depth, fence   the reader's own, but that `fence` and `global` are set
 *                  before it is anybody's.
 *
 * A reader is made, and goes, under the writers' lock: the list of readers
 * needs no order of its own.
 *
 * membarrier costs some 14 us with another thread running, so looks are rare:
 * limbo is let grow to LIMBO_LOOK bytes first, and by as much again after each
 * look. A cache that has gone quiet retires nothing more, and an image that is
 * let go retires much at once; so each collect that does not look counts as
 * LIMBO_AGAIN bytes, and a sweep looks whenever there are LIMBO_LOOK, or a
 * chunk of the slab cannot leave. Less than that may stay for as long as there
 * are readers.
 *
 * Images hold blocks for as long as they like, and say nothing when they read.
 * An image is a *holder*; `taken` counts them, and the holder of the n-th image
 * has the number n. A block is in an image if it was there before - its version
 * is not above the image's - and was unlinked after: then at least n had been
 * taken. So whoever retires a block says how many had been taken when it was
 * unlinked, and the youngest holder that has it *keeps* it; when that goes, the
 * next older one that has it does, and after the last it goes to limbo.
 *
 *     holders   3 (v5)           7 (v9)           8 (v9)
 *     kept      v2 until 6       v9 until 7       v1 until 8
 *               v5 until 3       v4 until 7
 *
 * A block that waits has no version, being no change; it holds the number of
 * images taken before it instead.
 */
#ifndef RDMETA_STORE_EPOCH_H
#define RDMETA_STORE_EPOCH_H

#include "base/tailq.h"
#include "topic/memory.h"
#include "topic/topic.h"

#define RDMETA_LIMBO_LOOK (64 << 10)
#define RDMETA_LIMBO_AGAIN (RDMETA_LIMBO_LOOK / 16)

typedef struct rdmeta_epoch {
        _Atomic uint64_t epoch; /* from 1 on */
        int32_t fence;          /* 1: no membarrier here */
        rdmeta_tailq_t readers;
        rdmeta_topic_t *topics[3];
        rdmeta_large_t *large[3];
        size_t limbo_bytes;
        size_t large_bytes; /* of which not the slab's */
        size_t looked_at; /* limbo_bytes after the last look, less with time */
        rdmeta_memory_t *blocks;
        rdmeta_tailq_t images; /* the oldest first */
        uint64_t taken;         /* images, since the beginning */
} rdmeta_epoch_t;

typedef struct rdmeta_epoch_image {
        rdmeta_tailq_node_t node;
        uint64_t number;  /* of its image, from 1 on */
        uint64_t version; /* the cache's when it was taken */
        rdmeta_topic_t *kept;
        size_t kept_bytes;
} rdmeta_epoch_image_t;

#define RDMETA_READING_SPECIAL 0x80000000u

/* What a reader announces; alone in its cache line. A point lookup does not
 * count its depth: that would be a store to be loaded by the next one. */
typedef struct rdmeta_reading {
        _Alignas(RDMETA_LINE) _Atomic uint64_t epoch; /* 0: outside */
        uint32_t depth; /* above RDMETA_READING_SPECIAL: never plain */
        int32_t fence;
        const _Atomic uint64_t *global;
        rdmeta_tailq_node_t node;
} rdmeta_reading_t;

void rdmeta_epoch_init(rdmeta_epoch_t *r, rdmeta_memory_t *blocks);
/* Frees all of limbo: no reader is left. */
void rdmeta_epoch_destroy(rdmeta_epoch_t *r);

/* The writer's lock is held for these. */
/* `special`: it is never plain. */
void rdmeta_epoch_add(rdmeta_epoch_t *r, rdmeta_reading_t *reading,
                        int special);
/* Of nothing that is reclaimed while it reads: in no list, never plain. Any
 * thread. */
void rdmeta_reading_alone(rdmeta_reading_t *reading);
void rdmeta_epoch_remove(rdmeta_epoch_t *r, rdmeta_reading_t *reading);
/* Another image is taken, at that version. */
void rdmeta_epoch_image_add(rdmeta_epoch_t *r, rdmeta_epoch_image_t *h,
                         uint64_t version);
/* What it kept is kept by others, or retired. */
void rdmeta_epoch_image_remove(rdmeta_epoch_t *r, rdmeta_epoch_image_t *h);
/* Whether a block that is there now, or was kept, was there already. */
int rdmeta_epoch_image_has(const rdmeta_epoch_image_t *h, const rdmeta_topic_t *t);
/* Take over what no new reader can find any more, since `taken` images were.
 * Cannot fail. */
void rdmeta_epoch_topic(rdmeta_epoch_t *r, rdmeta_topic_t *t,
                          uint64_t taken);
void rdmeta_epoch_large(rdmeta_epoch_t *r, rdmeta_large_t *large);
/* Free what can be; looks at the readers only if it is worth it. */
void rdmeta_epoch_collect(rdmeta_epoch_t *r);
/* The same, but it is worth it from LIMBO_LOOK bytes on, whenever the last one
 * was, or if a chunk waits for it to leave. */
void rdmeta_epoch_look(rdmeta_epoch_t *r);

/* gcc says that TSan does not model fences. It need not: the orders that it
 * checks are those of the words themselves. */
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/* Announce; the compiler's fence keeps the loads behind it. */
RDMETA_INLINE void rdmeta_reading_begin(rdmeta_reading_t *r) {
        const uint64_t now = atomic_load_explicit(r->global,
                                                  memory_order_acquire);

        atomic_store_explicit(&r->epoch, now, memory_order_release);
        atomic_signal_fence(memory_order_seq_cst);
}

/* Not entered already, no fence to pay, nothing special asked for: begin and
 * the fast lookup will do. One test for all of that. */
RDMETA_INLINE int rdmeta_reading_is_plain(const rdmeta_reading_t *r) {
        return r->depth == 0;
}

RDMETA_INLINE void rdmeta_reading_end(rdmeta_reading_t *r) {
        atomic_store_explicit(&r->epoch, 0, memory_order_release);
}

/* They nest. */
RDMETA_INLINE void rdmeta_reading_enter(rdmeta_reading_t *r) {
        if ((r->depth++ & ~RDMETA_READING_SPECIAL) != 0)
                return;
        rdmeta_reading_begin(r);
        if (RDMETA_UNLIKELY(r->fence))
                atomic_thread_fence(memory_order_seq_cst);
}

RDMETA_INLINE void rdmeta_reading_leave(rdmeta_reading_t *r) {
        if ((--r->depth & ~RDMETA_READING_SPECIAL) == 0)
                rdmeta_reading_end(r);
}

#endif /* RDMETA_STORE_EPOCH_H */
