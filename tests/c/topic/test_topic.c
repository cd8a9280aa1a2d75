/* topic: reads of blocks, and blocks made without a response. */
#include "support/builder_fixture.h"

enum { ROUNDS = 400 };

/* ---- where a partition is ------------------------------------------------ */

TEST_EACH(test_each_id_has_its_place_and_no_other_has_one, ROUNDS, 0) {
        int k;
        rdmeta_topic_t *t;
        uint32_t i;

        t = builder_fixture_block(w, f, w->rng);
        for (i = 0; i < f->count; i++) {
                const int32_t id   = f->rows[i].id;
                const int32_t next = i + 1 < f->count
                                             ? f->rows[i + 1].id
                                             : INT32_MAX;

                CHECK(rdmeta_topic_place(t, id) == (int64_t)i);
                for (k = 1; k < 5 && id + k < next; k++)
                        CHECK(rdmeta_topic_place(t, id + k) == -1);
        }
        CHECK(rdmeta_topic_place(t, -1) == -1);
        CHECK(rdmeta_topic_place(t, INT32_MIN) == -1);
        CHECK(rdmeta_topic_place(t, INT32_MAX) == -1);
        if (f->count && f->rows[0].id)
                CHECK(rdmeta_topic_place(t, 0) == -1);
        rdmeta_topic_destroy(&w->blocks, t);
}

/* The fast path reads leaders behind the name, unless the width forbids it. */
TEST_EACH(test_leaders_stand_behind_the_name, ROUNDS, 2) {
        rdmeta_topic_t *t;
        uint32_t i;

        t = builder_fixture_block(w, f, w->rng);
        CHECK((uintptr_t)t % RDMETA_LINE == 0);
        CHECK(t->count == f->count);
        if (f->count && f->rows[f->count - 1].id >= (int32_t)f->count) {
                CHECK(t->width == RDMETA_TOPIC_SPARSE);
                w->cases[0]++;
        } else {
                CHECK(t->width != RDMETA_TOPIC_SPARSE);
                for (i = 0; i < f->count; i++)
                        CHECK(rdmeta_col_get(t->name + f->name_len,
                                             t->width, i) ==
                              f->rows[i].leader);
                w->cases[1]++;
        }
        rdmeta_topic_destroy(&w->blocks, t);
}

/* ---- where blocks are ---------------------------------------------------- */

TEST_EACH(test_a_block_is_split_where_a_lookup_needs_one_line, ROUNDS, 2) {
        const int small = test_below(w->rng, 2) != 0;
        const char *columns;
        rdmeta_topic_t *t;
        size_t hot, size;

        if (small && f->count > 20)
                f->count = 1 + (uint32_t)test_below(w->rng, 20);
        if (small && f->name_len > 40)
                f->name_len = 1 + test_below(w->rng, 40);
        t    = builder_fixture_block(w, f, NULL);
        hot  = 16 + t->name_len +
              (f->count << (t->width == 3 ? 2 : t->width));
        size = rdmeta_cold(t)->size;
        CHECK(rdmeta_topic_hot(t) == hot);
        CHECK(rdmeta_topic_is_split(t) == (hot <= 58));
        CHECK((uintptr_t)t % 64 == 0);
        columns = rdmeta_topic_columns(t);
        if (hot <= 58) {
                w->cases[0]++;
                CHECK((uintptr_t)columns % 8 == 0);
                CHECK(columns == (char *)(rdmeta_cold(t) + 1));
                CHECK(rdmeta_topic_bytes(&w->blocks, t) ==
                      64 + (size + 15) / 16 * 16);
        } else {
                w->cases[1]++;
                CHECK(columns == (char *)t + hot);
                CHECK((char *)(rdmeta_cold(t) + 1) == (char *)t);
                CHECK(rdmeta_topic_bytes(&w->blocks, t) ==
                      (size + 63) / 64 * 64);
        }
        rdmeta_topic_destroy(&w->blocks, t);
}

/* The lines of split blocks are neighbours, without bytes between them. */
TEST(test_lines_of_split_blocks_lie_behind_each_other) {
        rdmeta_topic_t *t, *last = NULL;
        rdmeta_memory_t blocks;
        int i, together = 0;

        rdmeta_memory_init(&blocks, NULL, RDMETA_TOPIC_HEADER_SIZE);
        for (i = 0; i < 1000; i++, last = t) {
                t = rdmeta_topic_bare(&blocks, test_str("a topic"),
                                      rdmeta_wire_zero_id, 0, 0, 1);
                CHECK(t && rdmeta_topic_is_split(t));
                together += last && (char *)t == (char *)last + 64;
        }
        CHECK(together > 900); /* all but those at begins of chunks */
        rdmeta_memory_destroy(&blocks);
}

TEST_EACH(test_a_copy_is_the_same_elsewhere, ROUNDS, 0) {
        rdmeta_topic_t *t, *copy;

        t = builder_fixture_block(w, f, NULL);
        atomic_store(&t->deadline, 12345);
        rdmeta_topic_provenance_set(t, (rdmeta_provenance_t){7, 60000, 5});
        rdmeta_cold(t)->link = 99;
        t->state             = RDMETA_TOPIC_DENIED;
        copy                 = rdmeta_topic_copy(&w->blocks, t);
        CHECK(copy && copy != t && rdmeta_topic_same(t, copy));
        CHECK(rdmeta_cold(copy) != rdmeta_cold(t));
        CHECK(!memcmp(rdmeta_cold(copy), rdmeta_cold(t),
                      sizeof(rdmeta_cold_t)));
        CHECK(atomic_load(&copy->deadline) == 12345);
        rdmeta_topic_destroy(&w->blocks, t);
        facts_check(f, copy);
        rdmeta_topic_destroy(&w->blocks, copy);
}

/* ---- blocks without a response ------------------------------------------- */

TEST_EACH(test_a_bare_block_is_one_without_partitions, ROUNDS, 0) {
        rdmeta_topic_t *t, *bare;
        rdmeta_str_t name;

        f->count      = 0;
        f->n_past     = 0;
        f->internal   = 0;
        f->operations = RDMETA_NO_OPERATIONS;
        name         = (rdmeta_str_t){f->name, f->name_len};
        t            = builder_fixture_block(w, f, NULL);
        bare         = rdmeta_topic_bare(&w->blocks, name, f->id,
                                         RDMETA_TOPIC_VALID,
                                         (int16_t)f->error, 44);
        CHECK(bare && rdmeta_cold(bare)->version == 44);
        facts_check(f, bare);
        CHECK(rdmeta_topic_same(t, bare));
        rdmeta_topic_destroy(&w->blocks, t);
        rdmeta_topic_destroy(&w->blocks, bare);
}

TEST_EACH(test_another_state_keeps_the_facts, ROUNDS, 0) {
        const uint16_t state =
                (uint16_t)(1 + test_below(w->rng, RDMETA_TOPIC_GONE));
        rdmeta_topic_t *t, *other, *back;

        t     = builder_fixture_block(w, f, NULL);
        other = rdmeta_topic_restate(&w->blocks, t, state, 29, 8);
        CHECK(other && other->state == state);
        CHECK(rdmeta_cold(other)->version == 8);
        CHECK(!rdmeta_topic_same(t, other));
        back = rdmeta_topic_restate(&w->blocks, other, 0, (int16_t)f->error, 9);
        CHECK(back && rdmeta_topic_same(t, back));
        f->error = 29;
        facts_check(f, other);
        rdmeta_topic_destroy(&w->blocks, t);
        rdmeta_topic_destroy(&w->blocks, other);
        rdmeta_topic_destroy(&w->blocks, back);
        rdmeta_topic_destroy(&w->blocks, NULL);
}

/* A block's version, deadline and provenance are no facts. */
TEST(test_blocks_are_the_same_whenever_they_were_made) {
        test_rng_t r = test_rng(5);
        static builder_fixture_t w;
        static facts_t f;
        rdmeta_topic_t *a, *b;

        builder_fixture_init(&w, &r);
        facts_random(&f, &r);
        a = builder_fixture_block(&w, &f, NULL);
        b = builder_fixture_block(&w, &f, NULL);
        CHECK(rdmeta_topic_provenance(a).broker == -1);
        CHECK(rdmeta_topic_provenance(a).reason == 0);
        atomic_store(&b->deadline, 12345);
        rdmeta_topic_provenance_set(b, (rdmeta_provenance_t){7, 60000, 5});
        rdmeta_cold(b)->link    = 99;
        rdmeta_cold(b)->version = 1000;
        CHECK(rdmeta_topic_same(a, b) && rdmeta_topic_same(b, a));
        CHECK(rdmeta_topic_provenance(b).broker == 7);
        CHECK(rdmeta_topic_provenance(b).reason == 60000);
        CHECK(rdmeta_cold(b)->link == 99); /* its neighbours are not touched */
        facts_check(&f, b);
        b->state = RDMETA_TOPIC_DENIED;
        CHECK(!rdmeta_topic_same(a, b));
        rdmeta_topic_destroy(&w.blocks, a);
        rdmeta_topic_destroy(&w.blocks, b);
        builder_fixture_destroy(&w);
}

TEST(test_no_memory_makes_no_block) {
        const rdmeta_str_t name = {"a", 1};
        test_rng_t r            = test_rng(6);
        static builder_fixture_t w;
        size_t used, blocks = 1, full;
        rdmeta_topic_t *t;

        builder_fixture_init(&w, &r);
        w.heap.fail_at = 1;
        CHECK(!rdmeta_topic_bare(&w.blocks, name, rdmeta_wire_zero_id, 0, 0,
                                 1));
        t = rdmeta_topic_bare(&w.blocks, name, rdmeta_wire_zero_id, 0, 0, 1);
        CHECK(t && !rdmeta_topic_has_id(t));
        for (full = 0; full < 6; blocks++) { /* hot or cold parts are */
                w.heap.fail_at = w.heap.calls + 1;
                if (rdmeta_topic_restate(&w.blocks, t, 1, 0, 2))
                        continue;
                CHECK(w.heap.calls == w.heap.fail_at);
                CHECK(!rdmeta_slab_check(&w.blocks.slabs[RDMETA_MEMORY_HOT],
                                         &used));
                CHECK(used == blocks * RDMETA_LINE); /* no line is lost */
                CHECK(rdmeta_topic_restate(&w.blocks, t, 1, 0, 2));
                full++;
        }
        builder_fixture_destroy(&w);
}

/* ---- columns, lists, names ----------------------------------------------- */

TEST(test_columns_hold_what_their_width_can) {
        static const int32_t values[] = {-1, 0, 1, 127, 128, 255, 256, 32767,
                                         32768, 65535, 65536, INT32_MAX};
        const size_t n = sizeof(values) / sizeof(values[0]);
        unsigned width;
        size_t i;

        for (i = 0; i < n; i++) {
                const uint32_t v = (uint32_t)values[i];
                char col[24]; /* read at odd addresses */

                for (width = 0; width < 3; width++) {
                        const uint32_t most = width == 2
                                                      ? UINT32_MAX
                                                      : (1u << (8 << width)) -
                                                                1;
                        memset(col, 0x55, sizeof(col));
                        memcpy(col + 1 + ((size_t)2 << width), &v,
                               (size_t)1 << width);
                        if (v <= most)
                                CHECK(rdmeta_ref_get(col + 1, width, 2) == v);
                        if (values[i] <= (int32_t)(most >> 1))
                                CHECK(rdmeta_col_get(col + 1, width, 2) ==
                                      values[i]);
                }
                if (values[i] < 0)
                        continue;
                width = rdmeta_width_signed(v);
                CHECK(width == 2 || v < 1u << ((8u << width) - 1));
                CHECK(width == 0 || v >= 1u << ((4u << width) - 1));
        }
}

TEST(test_lists_are_equal_wherever_they_lie) {
        static const uint8_t wire[]   = {0, 0, 0, 7, 0, 0, 0, 5, 0, 0, 0, 7};
        static const uint8_t bytes[]  = {7, 5, 7};
        static const uint8_t halves[] = {7, 0, 5, 0, 7, 0};
        const rdmeta_list_t lists[]   = {{wire, 3, RDMETA_LIST_WIRE},
                                         {bytes, 3, 0},
                                         {halves, 3, 1}};
        rdmeta_list_t shorter, other;
        rdmeta_ids_out_t out;
        int32_t ids[4];
        int i, k;

        for (i = 0; i < 3; i++) {
                for (k = 0; k < 3; k++)
                        CHECK(rdmeta_list_equal(lists[i], lists[k]));
                shorter       = lists[i];
                shorter.count = 2;
                other         = lists[(i + 1) % 3];
                CHECK(!rdmeta_list_equal(shorter, other));
                CHECK(!rdmeta_list_equal(other, shorter));
                for (k = 0; k < 5; k++) {
                        memset(ids, 0x77, sizeof(ids));
                        out.ids      = k ? ids : NULL;
                        out.capacity = (uint32_t)(k < 4 ? k : 4);
                        rdmeta_list_copy(lists[i], &out);
                        CHECK(out.count == 3);
                        CHECK(ids[0] == (k > 0 ? 7 : 0x77777777));
                        CHECK(ids[1] == (k > 1 ? 5 : 0x77777777));
                        CHECK(ids[2] == (k > 2 ? 7 : 0x77777777));
                        CHECK(ids[3] == 0x77777777);
                }
        }
}

TEST(test_names_of_every_length_are_compared_whole) {
        test_rng_t r = test_rng(7);
        size_t n, i;

        for (n = 0; n <= 300; n++) {
                char *a = malloc(n + 1), *b = malloc(n ? n : 1);

                CHECK(a && b);
                for (i = 0; i < n; i++)
                        a[i + 1] = b[i] = (char)test_u64(&r);
                CHECK(rdmeta_name_equal(a + 1, b, n));
                for (i = 0; i < n; i++) {
                        b[i] ^= (char)(1 << test_below(&r, 8));
                        CHECK(!rdmeta_name_equal(a + 1, b, n));
                        b[i] = a[i + 1];
                }
                free(a);
                free(b);
        }
}

TEST_MAIN()
