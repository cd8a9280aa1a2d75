#include "store/epoch.h"

#include "base/alloc.h"

#include <sys/syscall.h>
#include <unistd.h>

#if defined(__linux__) && defined(SYS_membarrier)
#include <linux/membarrier.h>

static int membarrier_register(void) {
        return syscall(SYS_membarrier,
                       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static int membarrier_all(void) {
        return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0,
                       0) == 0;
}
#else
static int membarrier_register(void) {
        return 0;
}

static int membarrier_all(void) {
        return 0;
}
#endif

void rdmeta_epoch_init(rdmeta_epoch_t *r, rdmeta_memory_t *blocks) {
        memset(r, 0, sizeof(*r));
        atomic_init(&r->epoch, 1);
        r->fence = !membarrier_register();
        rdmeta_tailq_init(&r->readers);
        rdmeta_tailq_init(&r->images);
        r->blocks = blocks;
}

static void limbo_free(rdmeta_epoch_t *r, int which) {
        rdmeta_topic_t *t   = r->topics[which];
        rdmeta_large_t *big = r->large[which];

        r->topics[which] = NULL;
        r->large[which]  = NULL;
        while (t) {
                rdmeta_topic_t *next =
                        (rdmeta_topic_t *)(uintptr_t)rdmeta_cold(t)->link;

                r->limbo_bytes -= rdmeta_topic_bytes(r->blocks, t);
                rdmeta_topic_destroy(r->blocks, t);
                t = next;
        }
        while (big) {
                rdmeta_large_t *next = (rdmeta_large_t *)big->link;

                r->limbo_bytes -= big->size;
                r->large_bytes -= big->size;
                rdmeta_free(r->blocks->allocator, big, big->size);
                big = next;
        }
}

static void limbo_free_all(rdmeta_epoch_t *r) {
        int i;

        for (i = 0; i < 3; i++)
                limbo_free(r, i);
}

void rdmeta_epoch_destroy(rdmeta_epoch_t *r) {
        limbo_free_all(r);
}

void rdmeta_epoch_add(rdmeta_epoch_t *r, rdmeta_reading_t *reading,
                      int special) {
        atomic_init(&reading->epoch, 0);
        reading->depth  = special || r->fence ? RDMETA_READING_SPECIAL : 0;
        reading->fence  = r->fence;
        reading->global = &r->epoch;
        rdmeta_tailq_push_back(&r->readers, &reading->node);
}

void rdmeta_reading_alone(rdmeta_reading_t *reading) {
        atomic_init(&reading->epoch, 0);
        reading->depth  = RDMETA_READING_SPECIAL;
        reading->fence  = 0;
        reading->global = &reading->epoch;
}

void rdmeta_epoch_remove(rdmeta_epoch_t *r, rdmeta_reading_t *reading) {
        rdmeta_tailq_remove(&r->readers, &reading->node);
}

static int limbo_now(const rdmeta_epoch_t *r) {
        return (int)(atomic_load_explicit(&r->epoch, memory_order_relaxed) %
                     3);
}

static void topic_limbo(rdmeta_epoch_t *r, rdmeta_topic_t *t) {
        const int which = limbo_now(r);

        rdmeta_cold(t)->link = (uint64_t)(uintptr_t)r->topics[which];
        r->topics[which]     = t;
        r->limbo_bytes += rdmeta_topic_bytes(r->blocks, t);
}

/* ---- images -------------------------------------------------------------- */

void rdmeta_epoch_image_add(rdmeta_epoch_t *r, rdmeta_epoch_image_t *image,
                            uint64_t version) {
        image->number     = ++r->taken;
        image->version    = version;
        image->kept       = NULL;
        image->kept_bytes = 0;
        rdmeta_tailq_push_back(&r->images, &image->node);
}

int rdmeta_epoch_image_has(const rdmeta_epoch_image_t *image,
                           const rdmeta_topic_t *t) {
        const uint64_t version = rdmeta_cold(t)->version;

        return t->state == RDMETA_TOPIC_WAIT ? version < image->number
                                             : version <= image->version;
}

/* Gives a block to image `n` or an older one, or else to limbo. The first image
 * that was taken before the block was unlinked decides. If that one does not
 * have the block, no older one does: the block is younger than all of them. */
static void topic_keep(rdmeta_epoch_t *r, rdmeta_tailq_node_t *n,
                       rdmeta_topic_t *t, uint64_t taken) {
        rdmeta_epoch_image_t *image = NULL;

        for (; n; n = rdmeta_tailq_prev(n)) {
                image = RDMETA_CONTAINER(n, rdmeta_epoch_image_t, node);
                if (image->number <= taken)
                        break;
        }
        if (!n || !rdmeta_epoch_image_has(image, t)) {
                topic_limbo(r, t);
                return;
        }
        rdmeta_cold(t)->link = (uint64_t)(uintptr_t)image->kept;
        image->kept              = t;
        image->kept_bytes += rdmeta_topic_bytes(r->blocks, t);
}

void rdmeta_epoch_image_remove(rdmeta_epoch_t *r, rdmeta_epoch_image_t *image) {
        rdmeta_tailq_node_t *older = rdmeta_tailq_prev(&image->node);
        rdmeta_topic_t *t          = image->kept;

        rdmeta_tailq_remove(&r->images, &image->node);
        while (t) {
                rdmeta_topic_t *next =
                        (rdmeta_topic_t *)(uintptr_t)rdmeta_cold(t)->link;
                topic_keep(r, older, t, image->number);
                t = next;
        }
        image->kept       = NULL;
        image->kept_bytes = 0;
}

void rdmeta_epoch_topic(rdmeta_epoch_t *r, rdmeta_topic_t *t,
                        uint64_t taken) {
        topic_keep(r, rdmeta_tailq_last(&r->images), t, taken);
}

/* ---- limbo --------------------------------------------------------------- */

void rdmeta_epoch_large(rdmeta_epoch_t *r, rdmeta_large_t *large) {
        const int which = limbo_now(r);

        large->link     = r->large[which];
        r->large[which] = large;
        r->limbo_bytes += large->size;
        r->large_bytes += large->size;
}

/* Returns 0 if all readers are outside, 1 if each is outside or in the current
 * epoch, otherwise 2. */
static int readers_look(const rdmeta_epoch_t *r, uint64_t now) {
        const rdmeta_tailq_node_t *n;
        int res = 0;

        for (n = rdmeta_tailq_first(&r->readers); n;
             n = rdmeta_tailq_next(n)) {
                const rdmeta_reading_t *reading =
                        RDMETA_CONTAINER(n, rdmeta_reading_t, node);
                const uint64_t e = atomic_load_explicit(&reading->epoch,
                                                        memory_order_acquire);
                if (e && e != now)
                        return 2;
                if (e)
                        res = 1;
        }
        return res;
}

/* Makes every reader's word visible. Returns 0 if the barrier failed: then a
 * look would prove nothing, and nothing may be freed. */
static int readers_fence(const rdmeta_epoch_t *r) {
        if (!r->fence)
                return membarrier_all();
        atomic_thread_fence(memory_order_seq_cst);
        return 1;
}

static void limbo_look(rdmeta_epoch_t *r) {
        const uint64_t now = atomic_load_explicit(&r->epoch,
                                                  memory_order_relaxed);

        if (rdmeta_tailq_first(&r->readers) && !readers_fence(r))
                return;
        switch (readers_look(r, now)) {
        case 0:
                limbo_free_all(r);
                break;
        case 1:
                atomic_store_explicit(&r->epoch, now + 1,
                                      memory_order_release);
                limbo_free(r, (int)((now + 1) % 3));
                break;
        default:
                break;
        }
        r->limbo_at_look = r->limbo_bytes;
}

void rdmeta_epoch_collect(rdmeta_epoch_t *r) {
        if (!r->limbo_bytes)
                return;
        if (!rdmeta_tailq_first(&r->readers) ||
            r->limbo_bytes >= r->limbo_at_look + RDMETA_LIMBO_LOOK)
                limbo_look(r);
        else
                r->limbo_at_look -= r->limbo_at_look < RDMETA_LIMBO_AGAIN
                                        ? r->limbo_at_look
                                        : RDMETA_LIMBO_AGAIN;
}

void rdmeta_epoch_look(rdmeta_epoch_t *r) {
        if (r->limbo_bytes >= RDMETA_LIMBO_LOOK ||
            (r->limbo_bytes && rdmeta_memory_leaving(r->blocks)))
                limbo_look(r);
        else
                rdmeta_epoch_collect(r);
}
