/* changelog: returns changes in order and stays within its limit; blocks that
 * leave it are retired. */
#include "store/changelog.h"

#include "support/testing.h"

enum { NAMES = 40, REMEMBERED = 4096 };

/* Each name has a live block or none; each write replaces some of them. */
typedef struct fixture {
        test_heap_t heap;
        rdmeta_allocator_t allocator;
        rdmeta_memory_t blocks;
        rdmeta_epoch_t epochs;
        rdmeta_changelog_t changelog;
        rdmeta_brokers_t *brokers;
        rdmeta_topic_t *live[NAMES];
        test_rng_t rng;
        size_t longest_name; /* in bytes */
        uint64_t version;
        /* The model: all that was ever recorded, by number. */
        uint32_t batch_items[REMEMBERED];
        uint64_t batch_versions[REMEMBERED];
        rdmeta_changelog_item_t items[8 * REMEMBERED];
        size_t n_batches, n_items;
} fixture_t;

static rdmeta_topic_t *block_new(fixture_t *w, size_t size) {
        static char name[5000];
        const rdmeta_str_t s = {name, size};
        static const uint8_t id[16];
        rdmeta_topic_t *t;

        memset(name, 'x', sizeof(name));
        t = rdmeta_topic_bare(&w->blocks, s, id, 0, 0, w->version);
        CHECK(t);
        return t;
}

static void fixture_init(fixture_t *w, size_t limit) {
        memset(w, 0, sizeof(*w));
        w->allocator = test_allocator(&w->heap);
        w->rng       = test_rng(limit);
        w->longest_name = 400;
        rdmeta_memory_init(&w->blocks, &w->allocator, RDMETA_TOPIC_HEADER_SIZE);
        rdmeta_epoch_init(&w->epochs, &w->blocks);
        rdmeta_changelog_init(&w->changelog, &w->allocator, &w->epochs, limit);
        w->brokers = rdmeta_brokers_empty(&w->allocator, 0);
        CHECK(w->brokers);
}

static void fixture_destroy(fixture_t *w) {
        size_t i;

        rdmeta_changelog_destroy(&w->changelog);
        rdmeta_epoch_destroy(&w->epochs);
        for (i = 0; i < NAMES; i++)
                rdmeta_topic_destroy(&w->blocks, w->live[i]);
        rdmeta_brokers_destroy(&w->allocator, w->brokers);
        rdmeta_memory_destroy(&w->blocks);
        CHECK(!w->heap.blocks && !w->heap.bytes);
}

/* Counts the bytes of old blocks and tables anew. */
static size_t live_bytes(const fixture_t *w) {
        const rdmeta_changelog_t *r = &w->changelog;
        size_t live            = 0;
        uint64_t i;

        for (i = r->item_head; i != r->item_tail; i++) {
                const rdmeta_topic_t *old = rdmeta_changelog_at(r, i)->old_;
                if (old)
                        live += rdmeta_topic_bytes(&w->blocks, old);
        }
        for (i = r->batch_head; i != r->batch_tail; i++)
                if (rdmeta_changelog_batch(r, i)->old_brokers)
                        live += rdmeta_changelog_batch(r, i)
                                        ->old_brokers->large.size;
        return live;
}

/* Checks that the changelog is the end of all that was recorded, in order. */
static void fixture_check(const fixture_t *w) {
        const rdmeta_changelog_t *r = &w->changelog;
        uint64_t item          = r->item_head, i;
        uint32_t k;

        CHECK(r->batch_tail == w->n_batches && r->item_tail == w->n_items);
        for (i = r->batch_head; i != r->batch_tail; i++) {
                const rdmeta_changelog_batch_t *b =
                        rdmeta_changelog_batch(r, i);

                CHECK(b->version == w->batch_versions[i]);
                CHECK(b->n == w->batch_items[i] && b->first == item);
                CHECK(b->wall_us == (int64_t)b->version + 5);
                for (k = 0; k < b->n; k++, item++) {
                        const rdmeta_changelog_item_t *x =
                                rdmeta_changelog_at(r, item);
                        CHECK(x->old_ == w->items[item].old_);
                        CHECK(x->new_ == w->items[item].new_);
                }
        }
        CHECK(item == r->item_tail);
        CHECK(r->live == live_bytes(w));
        /* It has every batch above its floor, and none below. */
        CHECK(r->floor == (r->batch_head
                                   ? w->batch_versions[r->batch_head - 1]
                                   : 0));
}

static void write_item(fixture_t *w) {
        const size_t i      = test_below(&w->rng, NAMES);
        rdmeta_topic_t *old = w->live[i];
        const int gone      = old && test_below(&w->rng, 8) == 0;

        w->live[i] = gone ? NULL
                          : block_new(w, 1 + test_below(&w->rng,
                                                        w->longest_name));
        rdmeta_changelog_item(&w->changelog, old, w->live[i]);
        w->items[w->n_items].old_   = old;
        w->items[w->n_items++].new_ = w->live[i];
}

static void write_begin(fixture_t *w, int brokers) {
        rdmeta_changelog_batch_t b;

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
        rdmeta_changelog_begin(&w->changelog, &b);
        w->batch_versions[w->n_batches++] = b.version;
}

static void fixture_write(fixture_t *w, uint32_t n) {
        uint32_t k;

        CHECK(rdmeta_changelog_reserve(&w->changelog, n) == 1);
        write_begin(w, test_below(&w->rng, 4) == 0);
        for (k = 0; k < n; k++)
                write_item(w);
        w->batch_items[w->n_batches - 1] = n;
}

/* Returns the bytes that the records use, without the room for more. */
static size_t used_bytes(const rdmeta_changelog_t *r) {
        return r->live +
               (size_t)(r->batch_tail - r->batch_head) *
                       sizeof(rdmeta_changelog_batch_t) +
               (size_t)(r->item_tail - r->item_head) *
                       sizeof(rdmeta_changelog_item_t);
}

TEST(test_changes_come_out_as_they_went_in) {
        static const size_t limits[] = {2000, 20000, 200000};
        static fixture_t w;
        size_t k;
        int i;

        for (k = 0; k < 3; k++) {
                fixture_init(&w, limits[k]);
                for (i = 0; i < 2000; i++) {
                        /* Many small ones and few large ones, in turn: so
                         * arrays grow while their contents wrap around. */
                        w.longest_name = i % 500 < 250 ? 800 : 10;
                        fixture_write(&w, (uint32_t)test_below(
                                                &w.rng, 2 + i % 250 / 20));
                        if (i % 8 == 0)
                                fixture_check(&w);
                        rdmeta_changelog_trim(&w.changelog);
                        CHECK(used_bytes(&w.changelog) <= limits[k]);
                        rdmeta_epoch_collect(&w.epochs);
                }
                fixture_check(&w);
                CHECK(w.changelog.batch_head > 100); /* it wrapped around */
                /* One write may exceed a small changelog. */
                CHECK(k == 0 ||
                      w.changelog.batch_head < w.changelog.batch_tail);
                fixture_destroy(&w);
        }
}

TEST(test_a_trim_removes_only_as_many_of_the_oldest_as_it_must) {
        static fixture_t w;
        int i;

        fixture_init(&w, 30000);
        for (i = 0; i < 500; i++) {
                uint64_t head;
                size_t before;

                fixture_write(&w, 3);
                head   = w.changelog.batch_head;
                before = used_bytes(&w.changelog);
                rdmeta_changelog_trim(&w.changelog);
                CHECK((w.changelog.batch_head == head) == (before <= 30000));
        }
        CHECK(used_bytes(&w.changelog) > 30000 / 2);
        fixture_check(&w);
        fixture_destroy(&w);
}

TEST(test_old_blocks_are_retired_and_then_freed_after_a_skip) {
        static fixture_t w;
        size_t live;

        fixture_init(&w, 1 << 20);
        fixture_write(&w, 8);
        fixture_write(&w, 8);
        fixture_write(&w, 8);
        live = w.changelog.live;
        CHECK(live > 0 && w.epochs.limbo_bytes == 0);
        rdmeta_changelog_skip(&w.changelog, w.version);
        CHECK(w.changelog.live == 0 && w.changelog.live_large == 0);
        CHECK(w.epochs.limbo_bytes == live);
        rdmeta_epoch_collect(&w.epochs);
        CHECK(w.epochs.limbo_bytes == 0);
        fixture_destroy(&w);
}

TEST(test_a_skip_removes_all_batches_and_sets_the_floor) {
        static fixture_t w;

        fixture_init(&w, 1 << 20);
        fixture_write(&w, 5);
        rdmeta_changelog_skip(&w.changelog, 1000);
        CHECK(w.changelog.floor == 1000);
        CHECK(w.changelog.batch_head == w.changelog.batch_tail);
        CHECK(w.changelog.item_head == w.changelog.item_tail);
        rdmeta_changelog_skip(&w.changelog, 1001); /* it is empty now */
        CHECK(w.changelog.floor == 1001);
        w.version = 1001;
        fixture_write(&w, 2);
        CHECK(rdmeta_changelog_batch(&w.changelog,
                                     w.changelog.batch_head)->n == 2);
        fixture_destroy(&w);
}

/* An answer that is all new would only push everything else out. */
TEST(test_more_items_than_the_limit_are_not_recorded) {
        const size_t limit = 100 * sizeof(rdmeta_changelog_item_t);
        static fixture_t w;

        fixture_init(&w, limit);
        CHECK(rdmeta_changelog_reserve(&w.changelog, 100) == 1);
        CHECK(rdmeta_changelog_reserve(&w.changelog, 101) == 0);
        CHECK(rdmeta_changelog_reserve(&w.changelog, SIZE_MAX) == 0);
        fixture_destroy(&w);
        fixture_init(&w, 0);
        CHECK(rdmeta_changelog_reserve(&w.changelog, 1) == 0);
        fixture_destroy(&w);
}

TEST(test_without_memory_the_changelog_stays_as_it_was) {
        static fixture_t w;
        size_t bytes, n;
        int failed = 0;

        fixture_init(&w, 1 << 20);
        for (n = 1; n <= 40; n++) {
                fixture_write(&w, 7);
                bytes          = rdmeta_changelog_bytes(&w.changelog);
                w.heap.fail_at = w.heap.calls + 1 + n % 2;
                if (rdmeta_changelog_reserve(&w.changelog, 1 + 100 * n) < 0) {
                        failed++;
                        CHECK(rdmeta_changelog_bytes(&w.changelog) >= bytes);
                }
                w.heap.fail_at = 0;
                fixture_check(&w);
        }
        CHECK(failed > 0);
        fixture_destroy(&w);
}

/* The first answer needs more room than later ones. */
TEST(test_room_for_very_many_items_is_given_back) {
        static fixture_t w;
        size_t bytes;

        fixture_init(&w, 1 << 20);
        CHECK(rdmeta_changelog_reserve(&w.changelog, 20000) == 1);
        bytes = rdmeta_changelog_bytes(&w.changelog);
        CHECK(bytes >= 20000 * sizeof(rdmeta_changelog_item_t));
        w.heap.fail_at = w.heap.calls + 2; /* the batches' array is first */
        CHECK(rdmeta_changelog_reserve(&w.changelog, 1) == 1);
        w.heap.fail_at = 0;
        fixture_write(&w, 5);
        CHECK(rdmeta_changelog_bytes(&w.changelog) < bytes / 8);
        fixture_check(&w);
        fixture_destroy(&w);
}

TEST_MAIN()
