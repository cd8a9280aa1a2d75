/* ring: what changed, in order, within its bound; what leaves it is retired. */
#include "store/changelog.h"

#include "support/testing.h"

enum { NAMES = 40, REMEMBERED = 4096 };

/* Blocks of `names` are live; each write replaces some of them. */
typedef struct world {
        test_heap_t heap;
        rdmeta_allocator_t allocator;
        rdmeta_blocks_t blocks;
        rdmeta_reclaim_t reclaim;
        rdmeta_ring_t ring;
        rdmeta_brokers_t *brokers;
        rdmeta_topic_t *live[NAMES];
        test_rng_t rng;
        size_t block_most; /* bytes of a name */
        uint64_t version;
        /* What was ever recorded, to compare with: by number. */
        uint32_t batch_items[REMEMBERED];
        uint64_t batch_versions[REMEMBERED];
        rdmeta_ring_item_t items[8 * REMEMBERED];
        size_t n_batches, n_items;
} world_t;

static rdmeta_topic_t *block_new(world_t *w, size_t size) {
        static char name[5000];
        const rdmeta_str_t s = {name, size};
        static const uint8_t id[16];
        rdmeta_topic_t *t;

        memset(name, 'x', sizeof(name));
        t = rdmeta_topic_bare(&w->blocks, s, id, 0, 0, w->version);
        CHECK(t);
        return t;
}

static void world_init(world_t *w, size_t limit) {
        memset(w, 0, sizeof(*w));
        w->allocator = test_allocator(&w->heap);
        w->rng       = test_rng(limit);
        w->block_most = 400;
        rdmeta_blocks_init(&w->blocks, &w->allocator, RDMETA_TOPIC_LEAD);
        rdmeta_reclaim_init(&w->reclaim, &w->blocks);
        rdmeta_ring_init(&w->ring, &w->allocator, &w->reclaim, limit);
        w->brokers = rdmeta_brokers_empty(&w->allocator, 0);
        CHECK(w->brokers);
}

static void world_destroy(world_t *w) {
        size_t i;

        rdmeta_ring_destroy(&w->ring);
        rdmeta_reclaim_destroy(&w->reclaim);
        for (i = 0; i < NAMES; i++)
                rdmeta_topic_destroy(&w->blocks, w->live[i]);
        rdmeta_brokers_destroy(&w->allocator, w->brokers);
        rdmeta_blocks_destroy(&w->blocks);
        CHECK(!w->heap.blocks && !w->heap.bytes);
}

/* Bytes of old blocks and tables, counted anew. */
static size_t held_bytes(const world_t *w) {
        const rdmeta_ring_t *r = &w->ring;
        size_t held            = 0;
        uint64_t i;

        for (i = r->item_head; i != r->item_tail; i++) {
                const rdmeta_topic_t *old = rdmeta_ring_at(r, i)->old_;
                if (old)
                        held += rdmeta_topic_bytes(&w->blocks, old);
        }
        for (i = r->batch_head; i != r->batch_tail; i++)
                if (rdmeta_ring_batch(r, i)->old_brokers)
                        held += rdmeta_ring_batch(r, i)
                                        ->old_brokers->large.size;
        return held;
}

/* The ring is the end of all that was ever recorded, in order. */
static void world_check(const world_t *w) {
        const rdmeta_ring_t *r = &w->ring;
        uint64_t item          = r->item_head, i;
        uint32_t k;

        CHECK(r->batch_tail == w->n_batches && r->item_tail == w->n_items);
        for (i = r->batch_head; i != r->batch_tail; i++) {
                const rdmeta_ring_batch_t *b = rdmeta_ring_batch(r, i);

                CHECK(b->version == w->batch_versions[i]);
                CHECK(b->n == w->batch_items[i] && b->first == item);
                CHECK(b->wall_us == (int64_t)b->version + 5);
                for (k = 0; k < b->n; k++, item++) {
                        const rdmeta_ring_item_t *x = rdmeta_ring_at(r, item);
                        CHECK(x->old_ == w->items[item].old_);
                        CHECK(x->new_ == w->items[item].new_);
                }
        }
        CHECK(item == r->item_tail);
        CHECK(r->held == held_bytes(w));
        /* It tells all after its floor, and of nothing before. */
        CHECK(r->floor == (r->batch_head
                                   ? w->batch_versions[r->batch_head - 1]
                                   : 0));
}

static void write_item(world_t *w) {
        const size_t i      = test_below(&w->rng, NAMES);
        rdmeta_topic_t *old = w->live[i];
        const int gone      = old && test_below(&w->rng, 8) == 0;

        w->live[i] = gone ? NULL : block_new(w, 1 + test_below(&w->rng,
                                                         w->block_most));
        rdmeta_ring_item(&w->ring, old, w->live[i]);
        w->items[w->n_items].old_   = old;
        w->items[w->n_items++].new_ = w->live[i];
}

static void write_begin(world_t *w, int brokers) {
        rdmeta_ring_batch_t b;

        memset(&b, 0, sizeof(b));
        w->version += 1 + test_below(&w->rng, 3);
        b.version = w->version;
        b.wall_us = (int64_t)w->version + 5;
        if (brokers) {
                b.old_brokers = w->brokers;
                w->brokers    = rdmeta_brokers_empty(&w->allocator, b.version);
                CHECK(w->brokers);
        }
        b.brokers = w->brokers;
        rdmeta_ring_begin(&w->ring, &b);
        w->batch_versions[w->n_batches++] = b.version;
}

static void world_write(world_t *w, uint32_t n) {
        uint32_t k;

        CHECK(rdmeta_ring_reserve(&w->ring, n) == 1);
        write_begin(w, test_below(&w->rng, 4) == 0);
        for (k = 0; k < n; k++)
                write_item(w);
        w->batch_items[w->n_batches - 1] = n;
}

/* What the records take, without room for more. */
static size_t used_bytes(const rdmeta_ring_t *r) {
        return r->held +
               (size_t)(r->batch_tail - r->batch_head) *
                       sizeof(rdmeta_ring_batch_t) +
               (size_t)(r->item_tail - r->item_head) *
                       sizeof(rdmeta_ring_item_t);
}

static void test_what_changed_comes_out_as_it_went_in(void) {
        static const size_t limits[] = {2000, 20000, 200000};
        static world_t w;
        size_t k;
        int i;

        for (k = 0; k < 3; k++) {
                world_init(&w, limits[k]);
                for (i = 0; i < 2000; i++) {
                        /* Many and small, few and large, in turn: arrays
                         * grow while they are in use from end to begin. */
                        w.block_most = i % 500 < 250 ? 800 : 10;
                        world_write(&w, (uint32_t)test_below(
                                                &w.rng, 2 + i % 250 / 20));
                        if (i % 8 == 0)
                                world_check(&w);
                        rdmeta_ring_trim(&w.ring);
                        CHECK(used_bytes(&w.ring) <= limits[k]);
                        rdmeta_reclaim_collect(&w.reclaim);
                }
                world_check(&w);
                CHECK(w.ring.batch_head > 100); /* round and round */
                /* One write may be more than a small ring holds. */
                CHECK(k == 0 || w.ring.batch_head < w.ring.batch_tail);
                world_destroy(&w);
        }
}

/* No more than the bound asks for is let go. */
static void test_the_oldest_go_and_only_as_many_as_must(void) {
        static world_t w;
        int i;

        world_init(&w, 30000);
        for (i = 0; i < 500; i++) {
                uint64_t head;
                size_t before;

                world_write(&w, 3);
                head   = w.ring.batch_head;
                before = used_bytes(&w.ring);
                rdmeta_ring_trim(&w.ring);
                CHECK((w.ring.batch_head == head) == (before <= 30000));
        }
        CHECK(used_bytes(&w.ring) > 30000 / 2);
        world_check(&w);
        world_destroy(&w);
}

static void test_what_leaves_is_retired_and_then_freed(void) {
        static world_t w;
        size_t held;

        world_init(&w, 1 << 20);
        world_write(&w, 8);
        world_write(&w, 8);
        world_write(&w, 8);
        held = w.ring.held;
        CHECK(held > 0 && w.reclaim.limbo_bytes == 0);
        rdmeta_ring_skip(&w.ring, w.version);
        CHECK(w.ring.held == 0 && w.ring.held_large == 0);
        CHECK(w.reclaim.limbo_bytes == held);
        rdmeta_reclaim_collect(&w.reclaim);
        CHECK(w.reclaim.limbo_bytes == 0);
        world_destroy(&w);
}

static void test_a_skip_forgets_all_up_to_its_version(void) {
        static world_t w;

        world_init(&w, 1 << 20);
        world_write(&w, 5);
        rdmeta_ring_skip(&w.ring, 1000);
        CHECK(w.ring.floor == 1000);
        CHECK(w.ring.batch_head == w.ring.batch_tail);
        CHECK(w.ring.item_head == w.ring.item_tail);
        rdmeta_ring_skip(&w.ring, 1001); /* of an empty one */
        CHECK(w.ring.floor == 1001);
        w.version = 1001;
        world_write(&w, 2);
        CHECK(rdmeta_ring_batch(&w.ring, w.ring.batch_head)->n == 2);
        world_destroy(&w);
}

/* A whole answer that is new would only push everything out. */
static void test_too_many_are_not_recorded(void) {
        const size_t limit = 100 * sizeof(rdmeta_ring_item_t);
        static world_t w;

        world_init(&w, limit);
        CHECK(rdmeta_ring_reserve(&w.ring, 100) == 1);
        CHECK(rdmeta_ring_reserve(&w.ring, 101) == 0);
        CHECK(rdmeta_ring_reserve(&w.ring, SIZE_MAX) == 0);
        world_destroy(&w);
        world_init(&w, 0);
        CHECK(rdmeta_ring_reserve(&w.ring, 1) == 0);
        world_destroy(&w);
}

static void test_no_memory_leaves_the_ring_as_it_was(void) {
        static world_t w;
        size_t bytes, n;
        int failed = 0;

        world_init(&w, 1 << 20);
        for (n = 1; n <= 40; n++) {
                world_write(&w, 7);
                bytes          = rdmeta_ring_bytes(&w.ring);
                w.heap.fail_at = w.heap.calls + 1 + n % 2;
                if (rdmeta_ring_reserve(&w.ring, 1 + 100 * n) < 0) {
                        failed++;
                        CHECK(rdmeta_ring_bytes(&w.ring) >= bytes);
                }
                w.heap.fail_at = 0;
                world_check(&w);
        }
        CHECK(failed > 0);
        world_destroy(&w);
}

/* What the first answer needed is not kept for ever. */
static void test_room_for_very_many_is_given_back(void) {
        static world_t w;
        size_t bytes;

        world_init(&w, 1 << 20);
        CHECK(rdmeta_ring_reserve(&w.ring, 20000) == 1);
        bytes = rdmeta_ring_bytes(&w.ring);
        CHECK(bytes >= 20000 * sizeof(rdmeta_ring_item_t));
        w.heap.fail_at = w.heap.calls + 2; /* the batches' is the first */
        CHECK(rdmeta_ring_reserve(&w.ring, 1) == 1);
        w.heap.fail_at = 0;
        world_write(&w, 5);
        CHECK(rdmeta_ring_bytes(&w.ring) < bytes / 8);
        world_check(&w);
        world_destroy(&w);
}

int main(void) {
        test_begin(60);
        RUN(test_what_changed_comes_out_as_it_went_in);
        RUN(test_the_oldest_go_and_only_as_many_as_must);
        RUN(test_what_leaves_is_retired_and_then_freed);
        RUN(test_a_skip_forgets_all_up_to_its_version);
        RUN(test_too_many_are_not_recorded);
        RUN(test_no_memory_leaves_the_ring_as_it_was);
        RUN(test_room_for_very_many_is_given_back);
        return 0;
}
