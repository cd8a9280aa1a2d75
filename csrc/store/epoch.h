/*
 * epoch: decides when a block that a writer has replaced may be freed.
 *
 * Readers must not write to a shared cache line, nor pay for a fence. So each
 * reader has a word of its own, in a cache line of its own. While it reads, the
 * word holds the global epoch:
 *
 *     epoch 7        readers   [7] [0] [7]       0: not reading
 *     limbo   [7%3] retired in epoch 7: a reader may still use it
 *             [6%3] retired in epoch 6: a reader that entered in 6 may
 *             [5%3] retired in epoch 5: no reader can: freed
 *
 * The writer unlinks a block and puts it into the limbo of the current epoch.
 * Now and then it looks at all readers. When each is outside, or has entered in
 * the current epoch, the epoch advances and the writer frees the oldest limbo.
 * When all are outside, the writer frees everything at once.
 *
 * Memory order, access by access. `u` is the unlinking of a block: the store
 * of a slot, a table or the broker table (index.h, view.h).
 *
 *   slot, table    The writer stores with release and readers load with
 *                  acquire: a reader that finds a block sees it written.
 *   global epoch   The writer stores with release, after the u of all that it
 *                  retired before. begin loads with acquire: a reader that
 *                  announces the new epoch sees those u. So no reader in that
 *                  epoch uses a block that was retired in an older one. The
 *                  writer's own loads are relaxed: only the writer stores.
 *   begin          The reader stores its word, and then loads slots. Only this
 *                  order matters, and CPUs do not keep it: a load may pass an
 *                  earlier store. Then the writer would see "outside" while the
 *                  reader uses an old block. A fence between the two would cost
 *                  more than the lookup. So the writer calls membarrier(2),
 *                  private expedited, between its u and its look. That makes
 *                  every running thread of the process execute a fence. A
 *                  reader whose word is not visible by then loads after u, and
 *                  finds the new block. A signal fence keeps the compiler from
 *                  moving loads up. The store is a release only for checkers,
 *                  which know the word's order and not the fence.
 *   fence          Where the kernel refuses membarrier, readers are never
 *                  plain. Reader and writer both have a seq_cst fence in that
 *                  place: of two threads that each store, fence and load, one
 *                  sees the other's store.
 *   end            The reader stores 0 with release, and the writer's look
 *                  loads with acquire: all reads come before the memory is
 *                  freed. The look also acquires a word that is not 0, though
 *                  nothing depends on that.
 *   deadlines      Relaxed: each is one word that leads nowhere. A reader of an
 *                  older one reads what was true a moment ago.
 *   provenance     Acquire: the number of its reason leads to a text.
 *   depth, fence   The reader's own. `fence` and `global` are set before any
 *                  thread has the reader.
 *
 * A reader is made and destroyed under the writers' lock: the list of readers
 * needs no order of its own.
 *
 * membarrier costs some 14 us with another thread running, so looks are rare.
 * Limbo may grow to LIMBO_LOOK bytes before the first look, and by as much
 * again after each look. But a quiet cache retires nothing more, and an image
 * that is destroyed retires much at once. So each collect that does not look
 * counts as LIMBO_AGAIN bytes. A sweep looks whenever limbo has LIMBO_LOOK
 * bytes, or if a chunk of a slab waits for it. Less than that may stay for as
 * long as there are readers.
 *
 * Images use blocks for as long as they live, and announce nothing when they
 * read. `taken` counts images, and the n-th image has the number n. An image
 * has a block if two things are true. The block existed when the image was
 * taken: its version is not above the image's. And it was unlinked later: by
 * then at least n images had been taken. So the writer that retires a block
 * passes on how many images had been taken when it was unlinked. The youngest
 * image that has the block *keeps* it. When that image goes, the next older one
 * that has the block keeps it, and after the last one it goes to limbo.
 *
 *     images    3 (v5)           7 (v9)           8 (v9)
 *     kept      v2 until 6       v9 until 7       v1 until 8
 *               v5 until 3       v4 until 7
 *
 * The block of a topic in flight has no version, because it is not a change. It
 * holds the number of images that were taken before it instead.
 */
#pragma once

#include "base/tailq.h"
#include "topic/memory.h"
#include "topic/topic.h"

#define RDMETA_LIMBO_LOOK (64 << 10)
#define RDMETA_LIMBO_AGAIN (RDMETA_LIMBO_LOOK / 16)

typedef struct rdmeta_epoch {
        _Atomic uint64_t epoch; /* starts at 1 */
        int32_t fence;          /* 1: the kernel refuses membarrier */
        rdmeta_tailq_t readers;
        rdmeta_topic_t *topics[3]; /* limbo, by epoch modulo 3 */
        rdmeta_large_t *large[3];
        size_t limbo_bytes;
        size_t large_bytes;   /* the part of limbo that is not in slabs */
        size_t limbo_at_look; /* limbo_bytes after the last look, minus
                                 LIMBO_AGAIN for each collect since */
        rdmeta_memory_t *blocks;
        rdmeta_tailq_t images; /* the oldest first */
        uint64_t taken;        /* how many images were ever taken */
} rdmeta_epoch_t;

typedef struct rdmeta_epoch_image {
        rdmeta_tailq_node_t node;
        uint64_t number;  /* starts at 1 */
        uint64_t version; /* the cache's, when the image was taken */
        rdmeta_topic_t *kept; /* retired blocks, linked by their cold part */
        size_t kept_bytes;
} rdmeta_epoch_image_t;

#define RDMETA_READING_SPECIAL 0x80000000u

/* A reader's announcement, alone in its cache line. A point lookup does not
 * count its depth: that would be a store that the next lookup has to load. */
typedef struct rdmeta_reading {
        _Alignas(RDMETA_LINE) _Atomic uint64_t epoch; /* 0: outside */
        uint32_t depth; /* plus RDMETA_READING_SPECIAL: never plain */
        int32_t fence;  /* 1: enter needs a fence */
        const _Atomic uint64_t *global; /* the epoch that it announces */
        rdmeta_tailq_node_t node;
} rdmeta_reading_t;

/* Initialises; borrows `blocks` for its life. */
void rdmeta_epoch_init(rdmeta_epoch_t *r, rdmeta_memory_t *blocks);
/* Frees all of limbo. There must be no reader. */
void rdmeta_epoch_destroy(rdmeta_epoch_t *r);

/* The calls from here on need the writer's lock, but for
 * rdmeta_reading_alone(). None of them can fail. */

/* Adds a reader. With `special` it is never plain. */
void rdmeta_epoch_add(rdmeta_epoch_t *r, rdmeta_reading_t *reading,
                      int special);
/* Initialises a reader of memory that is not reclaimed while it reads. It is in
 * no list and never plain. Any thread. */
void rdmeta_reading_alone(rdmeta_reading_t *reading);
/* Removes a reader, which is outside. */
void rdmeta_epoch_remove(rdmeta_epoch_t *r, rdmeta_reading_t *reading);
/* Adds an image that is taken at `version`, and numbers it. */
void rdmeta_epoch_image_add(rdmeta_epoch_t *r, rdmeta_epoch_image_t *image,
                            uint64_t version);
/* Removes an image. An older image, or else limbo, takes each block that it
 * kept. */
void rdmeta_epoch_image_remove(rdmeta_epoch_t *r, rdmeta_epoch_image_t *image);
/* Returns 1 if `t`, a current or kept block, existed when the image was taken.
 */
int rdmeta_epoch_image_has(const rdmeta_epoch_image_t *image,
                           const rdmeta_topic_t *t);
/* Takes over a block that new readers cannot find any more. When it was
 * unlinked, `taken` images had been taken. */
void rdmeta_epoch_topic(rdmeta_epoch_t *r, rdmeta_topic_t *t,
                        uint64_t taken);
/* Takes over a table or broker table that new readers cannot find any more. */
void rdmeta_epoch_large(rdmeta_epoch_t *r, rdmeta_large_t *large);
/* Frees what no reader can use. Looks at the readers only once LIMBO_LOOK bytes
 * have come since the last look, or if there is no reader. */
void rdmeta_epoch_collect(rdmeta_epoch_t *r);
/* Frees like rdmeta_epoch_collect(). But it looks whenever limbo has LIMBO_LOOK
 * bytes, or if a chunk of a slab waits for limbo. */
void rdmeta_epoch_look(rdmeta_epoch_t *r);

/* gcc warns that TSan does not model fences. It need not model them: TSan
 * checks the orders of the words themselves. */
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

/* Announces the epoch. The signal fence keeps the reader's loads behind it. */
RDMETA_INLINE void rdmeta_reading_begin(rdmeta_reading_t *r) {
        const uint64_t now = atomic_load_explicit(r->global,
                                                  memory_order_acquire);

        atomic_store_explicit(&r->epoch, now, memory_order_release);
        atomic_signal_fence(memory_order_seq_cst);
}

/* Returns 1 if the reader has not entered, needs no fence and is not special:
 * then begin and the fast lookup suffice. One comparison tests all three. */
RDMETA_INLINE int rdmeta_reading_is_plain(const rdmeta_reading_t *r) {
        return r->depth == 0;
}

/* Ends what rdmeta_reading_begin() began. */
RDMETA_INLINE void rdmeta_reading_end(rdmeta_reading_t *r) {
        atomic_store_explicit(&r->epoch, 0, memory_order_release);
}

/* Announces the epoch, with a fence where one is needed. Calls nest. */
RDMETA_INLINE void rdmeta_reading_enter(rdmeta_reading_t *r) {
        if ((r->depth++ & ~RDMETA_READING_SPECIAL) != 0)
                return;
        rdmeta_reading_begin(r);
        if (RDMETA_UNLIKELY(r->fence))
                atomic_thread_fence(memory_order_seq_cst);
}

/* Undoes one rdmeta_reading_enter(). */
RDMETA_INLINE void rdmeta_reading_leave(rdmeta_reading_t *r) {
        if ((--r->depth & ~RDMETA_READING_SPECIAL) == 0)
                rdmeta_reading_end(r);
}
