/* builder: makes the block of a topic from any bytes of an answer. */
#include "support/builder_fixture.h"

enum { ROUNDS = 1500 };

TEST_EACH(test_rows_are_read_back_as_they_were_written, ROUNDS, 0) {
        const int version = (int)test_below(w->rng, 14);
        rdmeta_topic_t *t;

        facts_reduce(f, version);
        CHECK(!builder_fixture_read(w, f, version,
                                    test_below(w->rng, 2) ? w->rng : NULL));
        builder_fixture_merge(w, f);
        t = rdmeta_builder_build(&w->builder, &w->blocks, f->count);
        CHECK(t && rdmeta_cold(t)->version == f->count);
        CHECK(t->state == RDMETA_TOPIC_VALID);
        CHECK(rdmeta_topic_has_id(t) == (version >= 10));
        facts_check(f, t);
        rdmeta_topic_destroy(&w->blocks, t);
}

TEST_EACH(test_a_block_is_as_small_as_its_facts_allow, ROUNDS, 0) {
        rdmeta_topic_t *t;

        t = builder_fixture_block(w, f, NULL);
        CHECK(rdmeta_cold(t)->size == facts_size(f));
        rdmeta_topic_destroy(&w->blocks, t);
}

/* 85 lists of two ids, none equal, and the empty one take 256 units. One id
 * more, and references need two bytes. */
TEST(test_references_take_two_bytes_from_257_units_on) {
        test_rng_t r = test_rng(12);
        static builder_fixture_t w;
        static facts_t f;
        int more, i;

        builder_fixture_init(&w, &r);
        for (more = 0; more < 2; more++) {
                rdmeta_topic_t *t;

                facts_random(&f, &r);
                f.count = 85;
                for (i = 0; i < 85; i++) {
                        fact_row_t *p = &f.rows[i];

                        memset(p, 0, sizeof(*p));
                        p->id = i;
                        p->counts[REPLICAS] = p->counts[ISR] = 2;
                        p->ids[REPLICAS][0] = p->ids[ISR][0] = i;
                        p->ids[REPLICAS][1] = p->ids[ISR][1] = i + 1;
                }
                f.rows[0].counts[ISR] = 0; /* so that lists are shared */
                f.rows[1].counts[REPLICAS] += more;
                f.rows[1].counts[ISR] += more;
                t = builder_fixture_block(&w, &f, NULL);
                CHECK(rdmeta_cold(t)->size == facts_size(&f));
                rdmeta_topic_destroy(&w.blocks, t);
        }
        builder_fixture_destroy(&w);
}

/* ---- one set of facts, one block ----------------------------------------- */

/* Builds a block with all rows of `old` put back, as for a change without a
 * response. */
static rdmeta_topic_t *put_back_all(builder_fixture_t *w,
                                    const rdmeta_topic_t *old) {
        rdmeta_cols_t cols;
        rdmeta_row_t row;
        uint32_t i;

        rdmeta_topic_cols(old, &cols);
        CHECK(!rdmeta_builder_begin(&w->builder, old, &cols));
        CHECK(!rdmeta_builder_keep_lists(&w->builder, &cols));
        for (i = 0; i < cols.count; i++) {
                rdmeta_topic_row(&cols, i, &row);
                w->builder.id[i] = row.id;
                rdmeta_builder_keep_row(&w->builder, i, &cols, &row);
        }
        return rdmeta_builder_build(&w->builder, &w->blocks, 2);
}

/* Makes other facts of the same topic and partitions. */
static void facts_otherwise(facts_t *out, const facts_t *f, test_rng_t *r) {
        uint32_t i;

        do
                facts_random(out, r);
        while (f->count > out->count);
        memcpy(out->name, f->name, f->name_len);
        memcpy(out->id, f->id, 16);
        memcpy(out->past, f->past, sizeof(out->past));
        out->name_len   = f->name_len;
        out->error      = f->error;
        out->internal   = f->internal;
        out->operations = f->operations;
        out->n_past     = f->n_past;
        out->count      = f->count;
        for (i = 0; i < f->count; i++)
                out->rows[i].id = f->rows[i].id;
}

/* Builds a block from an answer some of whose rows lose to `old`. It puts these
 * back as a merge would, in any order. `f` has the facts of `old`, and becomes
 * those of the new block. */
static rdmeta_topic_t *put_back_some(builder_fixture_t *w, facts_t *f,
                                     const rdmeta_topic_t *old,
                                     test_rng_t *r) {
        const size_t lose = 1 + test_below(r, 4);
        static facts_t answer;
        uint32_t order[FACT_ROWS], i, k;
        rdmeta_cols_t cols;
        rdmeta_row_t row;

        facts_otherwise(&answer, f, r);
        CHECK(!builder_fixture_read(w, &answer, 12, r));
        for (i = 0; i < f->count; i++) {
                k        = (uint32_t)test_below(r, i + 1);
                order[i] = order[k];
                order[k] = i;
        }
        rdmeta_topic_cols(old, &cols);
        CHECK(!rdmeta_builder_keep_lists(&w->builder, &cols));
        for (i = 0; i < f->count; i++) {
                k = order[i];
                rdmeta_topic_row(&cols, k, &row);
                if (test_below(r, lose) == 0) {
                        rdmeta_builder_keep_row(&w->builder, k, &cols, &row);
                } else {
                        builder_fixture_merge_row(w, &answer.rows[k], k);
                        f->rows[k] = answer.rows[k];
                }
        }
        w->builder.n_past = f->n_past;
        memcpy(w->builder.past, f->past, sizeof(f->past));
        return rdmeta_builder_build(&w->builder, &w->blocks, 3);
}

TEST_EACH(test_equal_facts_give_equal_blocks_however_arrived_at, ROUNDS / 3,
          0) {
        int k;
        rdmeta_topic_t *t, *others[4];

        t = builder_fixture_block(w, f, NULL);
        /* Columns that are begun but not needed. */
        CHECK(!builder_fixture_read(w, f, 13, NULL));
        builder_fixture_merge(w, f);
        rdmeta_builder_want_high(&w->builder);
        rdmeta_builder_want_last(&w->builder);
        others[0] = rdmeta_builder_build(&w->builder, &w->blocks, 9);
        others[1] = builder_fixture_block(w, f, w->rng);
        CHECK(!builder_fixture_read(w, f, 10, NULL));
        builder_fixture_merge(w, f);
        others[2] = rdmeta_builder_build(&w->builder, &w->blocks, 7);
        others[3] = put_back_all(w, t);
        for (k = 0; k < 4; k++) {
                CHECK(others[k]);
                facts_check(f, others[k]);
                CHECK(rdmeta_topic_same(t, others[k]));
                CHECK(rdmeta_topic_same(others[k], t));
                rdmeta_topic_destroy(&w->blocks, others[k]);
        }
        rdmeta_topic_destroy(&w->blocks, t);
}

TEST_EACH(test_rows_put_back_give_the_same_block_as_rows_read, ROUNDS / 3, 0) {
        rdmeta_topic_t *old, *mixed, *t;

        old   = builder_fixture_block(w, f, NULL);
        mixed = put_back_some(w, f, old, w->rng);
        CHECK(mixed);
        facts_check(f, mixed);
        t = builder_fixture_block(w, f, NULL);
        CHECK(rdmeta_topic_same(t, mixed));
        rdmeta_topic_destroy(&w->blocks, old);
        rdmeta_topic_destroy(&w->blocks, mixed);
        rdmeta_topic_destroy(&w->blocks, t);
}

/* Builds a block from an answer that leaves some rows out, and puts them back
 * among the others. */
static rdmeta_topic_t *insert_some(builder_fixture_t *w, const facts_t *f,
                                   const rdmeta_topic_t *old, test_rng_t *r) {
        static facts_t less;
        int32_t ids[FACT_ROWS];
        rdmeta_cols_t cols;
        uint32_t i, n = 0;

        less       = *f;
        less.count = 0;
        for (i = 0; i < f->count; i++)
                if (test_below(r, 3))
                        less.rows[less.count++] = f->rows[i];
                else
                        ids[n++] = f->rows[i].id;
        CHECK(!builder_fixture_read(w, &less, 13, r));
        builder_fixture_merge(w, &less);
        rdmeta_topic_cols(old, &cols);
        CHECK(!rdmeta_builder_keep_lists(&w->builder, &cols));
        w->heap.fail_at = w->heap.calls + 1;
        if (rdmeta_builder_insert(&w->builder, &cols, ids, n)) {
                CHECK(w->builder.count == less.count);
                CHECK(!rdmeta_builder_insert(&w->builder, &cols, ids, n));
        }
        w->heap.fail_at = 0;
        CHECK(w->builder.count == f->count);
        return rdmeta_builder_build(&w->builder, &w->blocks, 5);
}

TEST_EACH(test_rows_left_out_and_put_back_give_the_same_block, ROUNDS / 3, 0) {
        rdmeta_topic_t *old, *more;

        old = builder_fixture_block(w, f, NULL);
        if (test_below(w->rng, 2)) /* it has no room then */
                rdmeta_builder_destroy(&w->builder);
        more = insert_some(w, f, old, w->rng);
        CHECK(more);
        facts_check(f, more);
        CHECK(rdmeta_topic_same(old, more));
        rdmeta_topic_destroy(&w->blocks, old);
        rdmeta_topic_destroy(&w->blocks, more);
}

/* Changes one fact and returns 1; 0: there is none of that kind. */
static int change_row(fact_row_t *p, test_rng_t *r) {
        int32_t *first    = p->ids[REPLICAS];
        const int32_t was = p->epoch;

        switch (test_below(r, 7)) {
        case 0:
                p->leader = p->leader < 0 ? 1 : -1;
                return 1;
        case 1:
                p->epoch = p->high > 0 ? p->high / 2 : -1;
                return p->epoch != was;
        case 2:
                p->high = p->high == INT32_MAX ? 5 : p->high + 1;
                return p->high > p->epoch;
        case 3:
                p->error ^= 9;
                return 1;
        case 4:
                first[0] ^= 1;
                return p->counts[REPLICAS] > 0;
        case 5:
                p->counts[ISR] -= p->counts[ISR] > 0;
                return 1;
        default:
                p->ids[OFFLINE][p->counts[OFFLINE]++] = 1;
                return p->counts[OFFLINE] < FACT_IDS;
        }
}

static int change_fact(facts_t *f, test_rng_t *r) {
        switch (test_below(r, 9)) {
        case 8:
                f->error ^= 5;
                return 1;
        case 0:
                f->name[test_below(r, f->name_len)] ^= 1;
                return 1;
        case 1:
                f->id[test_below(r, 16)] ^= 1;
                return 1;
        case 2:
                f->internal ^= 1;
                return 1;
        case 3:
                f->operations = f->operations == 3 ? 4 : 3;
                return 1;
        case 4:
                f->past[test_below(r, 16)] ^= 1;
                return f->n_past > 0;
        case 5:
                f->n_past = (uint8_t)((f->n_past + 1) % 5);
                return 1;
        default:
                return f->count &&
                       change_row(&f->rows[test_below(r, f->count)], r);
        }
}

TEST_EACH(test_any_other_fact_gives_another_block, ROUNDS, 1) {
        static facts_t g;
        rdmeta_topic_t *t, *other;
        uint32_t i;

        for (i = 0; i < f->count; i++) /* ISRs that can lose a member */
                if (!f->rows[i].counts[ISR])
                        f->rows[i].counts[ISR] = 1;
        g = *f;
        if (!change_fact(&g, w->rng))
                return;
        w->cases[0]++;
        t     = builder_fixture_block(w, f, NULL);
        other = builder_fixture_block(w, &g, NULL);
        CHECK(!rdmeta_topic_same(t, other));
        CHECK(!rdmeta_topic_same(other, t));
        rdmeta_topic_destroy(&w->blocks, t);
        rdmeta_topic_destroy(&w->blocks, other);
}

/* ---- impossible rows ----------------------------------------------------- */

static void make_bad(fact_row_t *rows, uint32_t n, test_rng_t *r) {
        fact_row_t *p = &rows[1 + test_below(r, n - 1)];
        const int which = (int)test_below(r, LISTS);

        switch (test_below(r, 5)) {
        case 0:
                p->id = rows[0].id; /* twice */
                break;
        case 1:
                p->id = -1 - (int32_t)test_below(r, 10);
                break;
        case 2:
                p->leader = -2 - (int32_t)test_below(r, 10);
                break;
        case 3:
                p->epoch = INT32_MIN + (int32_t)test_below(r, 10);
                break;
        default:
                p->ids[which][0] = -1 - (int32_t)test_below(r, 10);
                p->counts[which] += !p->counts[which];
                break;
        }
}

TEST_EACH(test_impossible_rows_are_malformed, ROUNDS, 1) {
        rdmeta_topic_t *t;

        if (f->count < 2)
                return;
        w->cases[0]++;
        make_bad(f->rows, f->count, w->rng);
        CHECK(builder_fixture_read(w, f, 7 + (int)test_below(w->rng, 7),
                                   w->rng) == RDMETA_ERR_MALFORMED);
        /* the next topic has nothing of it */
        facts_random(f, w->rng);
        t = builder_fixture_block(w, f, w->rng);
        facts_check(f, t);
        rdmeta_topic_destroy(&w->blocks, t);
}

/* ---- memory -------------------------------------------------------------- */

TEST(test_no_memory_is_returned_and_overcome) {
        test_rng_t r = test_rng(6);
        static builder_fixture_t w;
        static facts_t f;
        rdmeta_topic_t *t;
        rdmeta_cols_t cols;
        int round, failed = 0;

        for (round = 0; round < 100; round++) {
                builder_fixture_init(&w, &r);
                facts_random(&f, &r);
                for (w.heap.fail_at = 1;; w.heap.fail_at++) {
                        w.heap.calls = 0;
                        if (!builder_fixture_read(&w, &f, 12, &r))
                                break;
                        failed++;
                }
                builder_fixture_merge(&w, &f);
                w.heap.fail_at = w.heap.calls + 1;
                CHECK(!rdmeta_builder_build(&w.builder, &w.blocks, 1));
                t = rdmeta_builder_build(&w.builder, &w.blocks, 1);
                CHECK(t);
                facts_check(&f, t);
                rdmeta_topic_cols(t, &cols);
                w.heap.fail_at = w.heap.calls + 1;
                CHECK(rdmeta_builder_keep_lists(&w.builder, &cols) ==
                      RDMETA_ERR_NO_MEMORY);
                CHECK(!rdmeta_builder_keep_lists(&w.builder, &cols));
                rdmeta_builder_destroy(&w.builder);
                w.heap.fail_at = w.heap.calls + 1;
                CHECK(rdmeta_builder_begin(&w.builder, t, &cols) ==
                      RDMETA_ERR_NO_MEMORY);
                rdmeta_topic_destroy(&w.blocks, t);
                builder_fixture_destroy(&w);
        }
        CHECK(failed >= 100);
}

/* Few topics have so many partitions. The builder frees that memory, and keeps
 * memory for a small topic. */
TEST(test_an_unusually_large_topic_gives_its_memory_back) {
        enum { MANY = 10000 };
        static gen_partition_t rows[MANY];
        gen_topic_t topic = {.name = GEN_STR("large"), .partitions = rows,
                             .partition_count = MANY};
        int32_t ids[] = {1, 2, 3};
        const uint32_t fields = rdmeta_wire_fields(12);
        test_rng_t r = test_rng(8);
        static builder_fixture_t w;
        rdmeta_wire_topic_t head;
        rdmeta_topic_t *t, *again;
        size_t before;
        uint64_t tags = 0;
        rdmeta_buf_t b;
        int32_t i;

        builder_fixture_init(&w, &r);
        for (i = 0; i < MANY; i++) {
                rows[i].id       = i;
                rows[i].leader   = 1;
                rows[i].replicas = rows[i].isr = (gen_ids_t){ids, i % 4};
        }
        before = w.heap.bytes;
        gen_response_topic(&topic, 12, &tags, &w.bytes);
        rdmeta_buf_init(&b, w.bytes.data, w.bytes.len);
        rdmeta_wire_topic(&b, fields, &head);
        CHECK(!rdmeta_builder_read(&w.builder, &b, fields, &head));
        t = rdmeta_builder_build(&w.builder, &w.blocks, 1);
        CHECK(t && rdmeta_topic_count(t) == MANY);
        CHECK(rdmeta_topic_place(t, MANY - 1) == MANY - 1);
        again = put_back_all(&w, t);
        CHECK(again && rdmeta_topic_same(t, again));
        rdmeta_topic_destroy(&w.blocks, again);
        rdmeta_topic_destroy(&w.blocks, t);
        CHECK(w.heap.bytes > before + MANY * 36);
        rdmeta_builder_trim(&w.builder);
        CHECK(w.heap.bytes < before + (128 << 10));
        builder_fixture_destroy(&w);
}

TEST_MAIN()
