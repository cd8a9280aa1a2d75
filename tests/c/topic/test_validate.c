/*
 * Blocks of another process. Each lies at the end of memory of its own, so that
 * ASan sees a read of one byte too many. A block that the check accepts is read
 * whole, and goes through everything that a cache does with its own blocks.
 */
#include "support/builder_fixture.h"
#include "topic/diff.h"
#include "topic/validate.h"

enum { ROUNDS = 300, FLIPS = 300 };

/* ---- a block in memory of its own ---------------------------------------- */

typedef struct copy {
        char *raw, *end;
        rdmeta_topic_t *topic;
        rdmeta_cold_t *cold; /* stays right when the block is damaged */
} copy_t;

/* Copies the first `size` bytes of the piece with the cold part. The line of a
 * split block lies before it, or is last. */
static copy_t copy_at(const rdmeta_topic_t *t, size_t size, int last) {
        const int split   = rdmeta_topic_is_split(t);
        const size_t line = split ? RDMETA_LINE : 0;
        const size_t pad  = split && last ? (8 - (4 + size) % 8) % 8 : 0;
        copy_t c;

        c.raw = malloc(line + 4 + size + pad);
        CHECK(c.raw);
        c.end  = c.raw + line + 4 + size + pad;
        c.cold = (rdmeta_cold_t *)(void *)(c.raw + 4 + (last ? 0 : line));
        memcpy(c.cold, rdmeta_cold(t), size);
        c.topic = (rdmeta_topic_t *)(void *)(c.cold + 1);
        if (split) {
                c.topic = (rdmeta_topic_t *)(void *)(last ? c.end - line
                                                          : c.raw);
                memcpy((void *)c.topic, t, line);
                rdmeta_topic_cold_offset_set(c.topic, (char *)(c.cold + 1) -
                                                      (char *)c.topic);
        }
        return c;
}

static copy_t copy_new(const rdmeta_topic_t *t, size_t size) {
        return copy_at(t, size, 0);
}

static int copy_good(const copy_t *c, const rdmeta_allocator_t *allocator) {
        const rdmeta_err_t e =
                rdmeta_topic_check(allocator, c->topic, c->raw, c->end);

        CHECK(e == RDMETA_OK || e == RDMETA_ERR_MALFORMED);
        return e == RDMETA_OK;
}

static int is_good(const rdmeta_topic_t *t, size_t size) {
        copy_t c       = copy_new(t, size);
        const int good = copy_good(&c, NULL);

        free(c.raw);
        return good;
}

static int is_good_without_memory(const rdmeta_topic_t *t) {
        copy_t c = copy_new(t, rdmeta_cold(t)->size);
        test_heap_t heap;
        const rdmeta_allocator_t none = test_allocator(&heap);
        int good;

        heap.fail_at = 1;
        good         = copy_good(&c, &none);
        CHECK(heap.calls == 1 && !heap.blocks);
        free(c.raw);
        return good;
}

/* ---- uses of blocks ------------------------------------------------------ */

static int64_t sum; /* so that the compiler keeps the reads */

static void read_list(rdmeta_list_t l) {
        uint32_t i;

        for (i = 0; i < l.count; i++)
                sum += rdmeta_list_get(l, i);
}

static int32_t read_change(void *opaque, const rdmeta_change_t *c) {
        (void)opaque;
        sum += c->new_isr.count + c->old_replicas.count +
               c->new_offline.count;
        return 0;
}

static void read_changes(const rdmeta_topic_t *a, const rdmeta_topic_t *b) {
        const uint32_t n = rdmeta_diff_longest(a) + rdmeta_diff_longest(b);
        rdmeta_diff_out_t out;

        memset(&out, 0, sizeof(out));
        out.visit    = read_change;
        out.ids_each = n;
        out.ids      = malloc(RDMETA_DIFF_LISTS * 4 * (size_t)n + 1);
        CHECK(out.ids);
        rdmeta_diff_topics(&out, a, b);
        rdmeta_diff_topics(&out, b, a);
        free(out.ids);
}

/* Puts all rows back and builds another block, as a leader hint does. */
static void rebuild(builder_fixture_t *w, const rdmeta_topic_t *t) {
        rdmeta_topic_t *again;
        rdmeta_cols_t cols;
        rdmeta_row_t row;
        uint32_t i;

        rdmeta_topic_cols(t, &cols);
        CHECK(!rdmeta_builder_begin(&w->builder, t, &cols));
        CHECK(!rdmeta_builder_keep_lists(&w->builder, &cols));
        for (i = 0; i < cols.count; i++) {
                rdmeta_topic_row(&cols, i, &row);
                w->builder.id[i] = row.id;
                rdmeta_builder_keep_row(&w->builder, i, &cols, &row);
        }
        again = rdmeta_builder_build(&w->builder, &w->blocks, 3);
        CHECK(again);
        CHECK(is_good(again, rdmeta_cold(again)->size));
        read_changes(t, again);
        rdmeta_topic_destroy(&w->blocks, again);
}

static void read_all(builder_fixture_t *w, const rdmeta_topic_t *t) {
        rdmeta_cols_t cols;
        rdmeta_row_t row;
        uint32_t i;

        rdmeta_topic_cols(t, &cols);
        for (i = 0; i < cols.count; i++) {
                rdmeta_topic_row(&cols, i, &row);
                CHECK(row.id >= 0 && row.leader >= -1 && row.epoch >= -1);
                CHECK(rdmeta_topic_place(t, row.id) == (int64_t)i);
                read_list(row.replicas);
                read_list(row.isr);
                read_list(row.offline);
        }
        for (i = 0; i < 16u * cols.n_past; i++)
                sum += cols.past[i];
        sum += rdmeta_topic_operations(t);
        rebuild(w, t);
}

/* ---- tests --------------------------------------------------------------- */

typedef void (*each_t)(builder_fixture_t *w, rdmeta_topic_t *t, test_rng_t *r);

static void for_each(each_t each, uint64_t stream, int rounds) {
        test_rng_t r = test_rng(stream);
        static builder_fixture_t w;
        static facts_t f;
        int round;

        builder_fixture_init(&w, &r);
        for (round = 0; round < rounds; round++) {
                rdmeta_topic_t *t;

                facts_random(&f, &r);
                if (f.count > 40) /* most topics are small */
                        f.count = 1 + (uint32_t)test_below(&r, f.count);
                t = builder_fixture_block(&w, &f, &r);
                each(&w, t, &r);
                rdmeta_topic_destroy(&w.blocks, t);
        }
        builder_fixture_destroy(&w);
}

static void good_block(builder_fixture_t *w, rdmeta_topic_t *t, test_rng_t *r) {
        const uint16_t states[] = {RDMETA_TOPIC_UNKNOWN, RDMETA_TOPIC_DENIED,
                                   RDMETA_TOPIC_BAD, RDMETA_TOPIC_MISSING,
                                   RDMETA_TOPIC_GONE};
        copy_t c = copy_at(t, rdmeta_cold(t)->size, 1);

        CHECK(is_good(t, rdmeta_cold(t)->size));
        CHECK(copy_good(&c, NULL));
        read_all(w, c.topic);
        free(c.raw);
        t->state = (uint8_t)states[test_below(r, 5)];
        CHECK(is_good(t, rdmeta_cold(t)->size));
        read_all(w, t);
}

TEST(test_a_block_of_our_own_is_good_in_every_state) {
        for_each(good_block, 1, ROUNDS);
}

static void short_block(builder_fixture_t *w, rdmeta_topic_t *t,
                        test_rng_t *r) {
        const size_t size = rdmeta_cold(t)->size;
        /* The first line is always there. */
        const size_t least = rdmeta_topic_is_split(t)
                                     ? RDMETA_TOPIC_HEADER_SIZE
                                     : RDMETA_TOPIC_HEADER_SIZE + RDMETA_LINE;
        int i;

        (void)w;
        if (size <= least)
                return;
        CHECK(!is_good(t, size - 1));
        CHECK(!is_good(t, least));
        for (i = 0; i < 20; i++)
                CHECK(!is_good(t, least + test_below(r, size - least)));
        /* A size field that is too small or too large. */
        rdmeta_cold(t)->size--;
        CHECK(!is_good(t, size));
        rdmeta_cold(t)->size += 2;
        CHECK(!is_good(t, size));
        rdmeta_cold(t)->size = UINT32_MAX;
        CHECK(!is_good(t, size));
        rdmeta_cold(t)->size = (uint32_t)size;
}

TEST(test_a_block_cut_anywhere_is_not) {
        for_each(short_block, 2, ROUNDS);
}

static void flipped_block(builder_fixture_t *w, rdmeta_topic_t *t,
                          test_rng_t *r) {
        const size_t size = rdmeta_cold(t)->size;
        int i, k;

        for (i = 0; i < FLIPS; i++) {
                copy_t c         = copy_new(t, size);
                const size_t all = (size_t)(c.end - c.raw);
                /* Mostly bytes of lengths and flags. */
                const size_t span = test_below(r, 3) && all > 112 ? 112 : all;

                for (k = 0; k < 1 + (int)test_below(r, 3); k++)
                        c.raw[test_below(r, span)] ^=
                                (char)(1 << test_below(r, 8));
                if (copy_good(&c, NULL))
                        read_all(w, c.topic);
                free(c.raw);
        }
}

TEST(test_a_damaged_block_is_refused_or_can_be_read) {
        for_each(flipped_block, 3, ROUNDS);
}

/* A cold offset is refused if it leads out of the memory or is no multiple
 * of 8. So is one that leads to a block that could not be read. */
static void moved_block(builder_fixture_t *w, rdmeta_topic_t *t,
                        test_rng_t *r) {
        const size_t size = rdmeta_cold(t)->size;
        copy_t c          = copy_new(t, size);
        const int64_t cold_offset = (char *)(c.cold + 1) - (char *)c.topic;
        const int64_t odd[] = {cold_offset - 8,
                               cold_offset + 8,
                               cold_offset + 4,
                               0,
                               40,
                               -8,
                               (c.end - c.raw) / 8 * 8 + 8,
                               INT64_C(1) << 46,
                               -(INT64_C(1) << 46),
                               INT64_MAX >> 16 & ~7,
                               INT64_MIN >> 16};
        size_t i;
        int good;

        (void)w, (void)r;
        for (i = 0; i < sizeof(odd) / sizeof(*odd) &&
                    rdmeta_topic_is_split(t);
             i++) {
                rdmeta_topic_cold_offset_set(c.topic, odd[i]);
                CHECK(rdmeta_topic_cold_offset(c.topic) == odd[i]);
                good = copy_good(&c, NULL); /* either result is safe */
                CHECK(i < 2 || !good);
                rdmeta_topic_cold_offset_set(c.topic, cold_offset);
                CHECK(copy_good(&c, NULL));
        }
        free(c.raw);
}

TEST(test_a_cold_offset_that_leads_elsewhere_is_refused) {
        for_each(moved_block, 8, ROUNDS);
}

/* Puts one impossible value into a good block. */
static void odd_block(builder_fixture_t *w, rdmeta_topic_t *t, test_rng_t *r) {
        copy_t c            = copy_new(t, rdmeta_cold(t)->size);
        const uint16_t f    = c.cold->flags;
        const uint32_t n    = t->count;
        const uint8_t width = t->width;
        const uint16_t name = t->name_len;

        (void)w;
        (void)r;
        c.topic->state = RDMETA_TOPIC_WAIT;
        CHECK(!copy_good(&c, NULL));
        c.topic->state = RDMETA_TOPIC_GONE + 1;
        CHECK(!copy_good(&c, NULL));
        c.topic->state    = RDMETA_TOPIC_VALID;
        c.topic->name_len = 0;
        CHECK(!copy_good(&c, NULL));
        c.topic->name_len = RDMETA_NAME_MAX + 1;
        CHECK(!copy_good(&c, NULL));
        c.topic->name_len = name;
        c.topic->count    = UINT32_MAX / 4;
        CHECK(!copy_good(&c, NULL));
        c.topic->count = n;
        c.topic->width = RDMETA_TOPIC_SPARSE + 1;
        CHECK(!copy_good(&c, NULL));
        c.topic->width = width;
        c.cold->flags  = f ^ RDMETA_TOPIC_F_IDS;
        CHECK(!copy_good(&c, NULL));
        c.cold->flags = f | 3 << RDMETA_TOPIC_EPOCH_SHIFT;
        CHECK(!copy_good(&c, NULL));
        c.cold->flags = f | 3 << RDMETA_TOPIC_LIST_SHIFT;
        CHECK(!copy_good(&c, NULL));
        c.cold->flags = f | 3 << RDMETA_TOPIC_REF_SHIFT;
        CHECK(!copy_good(&c, NULL));
        c.cold->flags = f ^ RDMETA_TOPIC_F_PAST;
        CHECK(!copy_good(&c, NULL));
        c.cold->flags = f;
        CHECK(copy_good(&c, NULL));
        free(c.raw);
}

TEST(test_an_impossible_header_is_refused) {
        for_each(odd_block, 4, ROUNDS);
}

/* ---- values, one by one -------------------------------------------------- */

/* Returns whether the block is good with `v` in one place of a column. */
static int good_with(rdmeta_topic_t *t, const char *column, unsigned width,
                     size_t i, int32_t v) {
        char *p = (char *)(uintptr_t)column + (i << width), former[4];
        int good;

        memcpy(former, p, (size_t)1 << width);
        memcpy(p, &v, (size_t)1 << width); /* little-endian: the low bytes */
        good = is_good(t, rdmeta_cold(t)->size);
        memcpy(p, former, (size_t)1 << width);
        return good;
}

static void odd_values(builder_fixture_t *w, rdmeta_topic_t *t, test_rng_t *r) {
        rdmeta_cols_t c;
        size_t i, units;

        (void)w;
        rdmeta_topic_cols(t, &c);
        units = (size_t)(c.lists_end - c.lists) >> c.list_width;
        CHECK(!good_with(t, c.lists, c.list_width, test_below(r, units), -1));
        if (!c.count) { /* flat lists without rows */
                rdmeta_cold(t)->flags |= RDMETA_TOPIC_F_FLAT;
                CHECK(!good_with(t, c.lists, c.list_width, 0, 100));
                rdmeta_cold(t)->flags &= (uint16_t)~RDMETA_TOPIC_F_FLAT;
                return;
        }
        i = test_below(r, c.count);
        CHECK(good_with(t, c.leaders, c.leader_width, i, -1));
        CHECK(!good_with(t, c.leaders, c.leader_width, i, -2));
        CHECK(!good_with(t, c.epochs, c.epoch_width, i, -2));
        if (c.ids) {
                CHECK(!good_with(t, c.ids, 2, 0, -1));
                CHECK(c.count < 2 ||
                      !good_with(t, c.ids, 2, 0,
                                 rdmeta_col_get(c.ids, 2, 1)));
        }
        CHECK(!c.high || !good_with(t, c.high, 2, i, -2));
        CHECK(!c.last || !good_with(t, c.last, 2, i, -2));
        if (c.flat)
                CHECK(!good_with(t, c.lists, c.list_width, 0,
                                 (int32_t)c.flat - 1));
        if (c.replicas && units < 127u << 8 * c.ref_width)
                CHECK(!good_with(t, c.replicas, c.ref_width, i,
                                 (int32_t)units));
        if (c.n_past) {
                CHECK(!good_with(t, c.lists_end, 0, 16 * (size_t)c.n_past, 0));
                CHECK(!good_with(t, c.lists_end, 0, 16 * (size_t)c.n_past,
                                 RDMETA_PAST_MAX + 1));
        }
}

TEST(test_values_below_the_least_are_refused) {
        for_each(odd_values, 5, ROUNDS);
}

/* A reference into the middle of a list would make one of its members a length.
 * Many such references would name more members than there are bytes. */
static void odd_reference(builder_fixture_t *w, rdmeta_topic_t *t,
                          test_rng_t *r) {
        rdmeta_cols_t c;
        rdmeta_row_t row;
        size_t at;

        (void)w;
        rdmeta_topic_cols(t, &c);
        if (!c.replicas || !c.count)
                return;
        rdmeta_topic_row(&c, (uint32_t)test_below(r, c.count), &row);
        if (!row.replicas.count)
                return;
        at = ((size_t)((const char *)row.replicas.p - c.lists) >>
              c.list_width) +
             test_below(r, row.replicas.count);
        CHECK(!good_with(t, c.replicas, c.ref_width, 0, (int32_t)at));
        if (c.isr)
                CHECK(!good_with(t, c.isr, c.ref_width, 0, (int32_t)at));
        if (c.offline)
                CHECK(!good_with(t, c.offline, c.ref_width, 0, (int32_t)at));
}

TEST(test_references_lead_to_begins_of_lists) {
        for_each(odd_reference, 6, 4 * ROUNDS);
}

/* There are more units of lists than the check covers in one pass. */
TEST(test_lists_of_any_length_are_checked_whole) {
        enum { ROWS = 600, MEMBERS = 149 };
        test_rng_t r = test_rng(7);
        static builder_fixture_t w;
        static facts_t f;
        rdmeta_topic_t *t;
        rdmeta_cols_t c;
        int32_t i, k;

        builder_fixture_init(&w, &r);
        memset(&f, 0, sizeof(f));
        f.name_len   = 3;
        f.operations = RDMETA_NO_OPERATIONS;
        memcpy(f.name, "big", 3);
        f.count = ROWS;
        for (i = 0; i < ROWS; i++) {
                fact_row_t *row = &f.rows[i];

                row->id     = i;
                row->leader = row->last = 1;
                row->counts[REPLICAS] = row->counts[ISR] = MEMBERS - i % 2;
                for (k = 0; k < MEMBERS; k++)
                        row->ids[REPLICAS][k] = row->ids[ISR][k] =
                                i * MEMBERS + k;
        }
        t = builder_fixture_block(&w, &f, NULL);
        rdmeta_topic_cols(t, &c);
        CHECK(c.replicas && c.ref_width == 2);
        CHECK((size_t)(c.lists_end - c.lists) >> c.list_width > 80000);
        CHECK(is_good(t, rdmeta_cold(t)->size));
        read_all(&w, t);
        CHECK(is_good_without_memory(t));
        for (i = 0; i < ROWS; i += 7)
                CHECK(!good_with(t, c.replicas, 2, (size_t)i,
                                 (int32_t)rdmeta_ref_get(c.replicas, 2,
                                                         (size_t)i) + 1));
        rdmeta_topic_destroy(&w.blocks, t);
        builder_fixture_destroy(&w);
}

/* Checks a block whose rows all name the only list, which has `members`
 * brokers. */
static int same_list_is_good(uint32_t rows, uint8_t members) {
        const size_t size = RDMETA_TOPIC_HEADER_SIZE + RDMETA_TOPIC_FIXED + 1 +
                            3 * (size_t)rows + 2 + members;
        char *raw         = calloc(1, 4 + size), *end = raw + 4 + size;
        rdmeta_topic_t *t;
        int good;

        CHECK(raw);
        t           = (rdmeta_topic_t *)(void *)(raw + 4 +
                                                 RDMETA_TOPIC_HEADER_SIZE);
        t->count    = rows;
        t->name_len = 1;
        rdmeta_cold(t)->size = (uint32_t)size;
        end[-1 - members]    = (char)members;
        memset(end - 2 - members - rows, 1, rows);
        good = !rdmeta_topic_check(NULL, t, raw, end);
        free(raw);
        return good;
}

TEST(test_rows_may_name_64_brokers_for_each_row_and_unit) {
        CHECK(same_list_is_good(1000000, 64));
        CHECK(same_list_is_good(64 * 67, 65));
        CHECK(!same_list_is_good(64 * 67 + 1, 65));
        CHECK(!same_list_is_good(1000000, 65));
}

/* A block of our own is never refused: a list that too many rows name is stored
 * more than once. */
TEST(test_a_block_of_our_own_with_long_lists_is_good) {
        test_rng_t r = test_rng(9);
        static builder_fixture_t w;
        static facts_t f;
        rdmeta_topic_t *t;
        rdmeta_cols_t c;
        size_t units;
        uint32_t members;
        int32_t i, k;

        builder_fixture_init(&w, &r);
        for (members = 2; members <= FACT_IDS; members++) {
                memset(&f, 0, sizeof(f));
                f.name_len   = 4;
                f.operations = RDMETA_NO_OPERATIONS;
                memcpy(f.name, "long", 4);
                f.count = FACT_ROWS;
                for (i = 0; i < FACT_ROWS; i++) {
                        fact_row_t *row = &f.rows[i];

                        row->id     = i;
                        row->leader = row->last = 1;
                        row->counts[REPLICAS]   = (int32_t)members;
                        row->counts[ISR]        = (int32_t)members;
                        for (k = 0; k < (int32_t)members; k++)
                                row->ids[REPLICAS][k] = row->ids[ISR][k] = k;
                }
                t = builder_fixture_block(&w, &f, NULL);
                facts_check(&f, t);
                rdmeta_topic_cols(t, &c);
                units = (size_t)(c.lists_end - c.lists) >> c.list_width;
                CHECK(members > 32 || units == 2 + members);
                CHECK(units < 20 * (size_t)members);
                CHECK(is_good(t, rdmeta_cold(t)->size));
                read_all(&w, t);
                rdmeta_topic_destroy(&w.blocks, t);
        }
        builder_fixture_destroy(&w);
}

/* With many references and many lists, the time grows with their sum, and not
 * with their product. */
TEST(test_a_large_block_is_checked_in_linear_time) {
        enum { ROWS = 16 << 20, EACH = 128, MANY = 512 << 10 };
        const size_t units = 1 + (size_t)EACH * MANY;
        const size_t size  = RDMETA_TOPIC_HEADER_SIZE + RDMETA_TOPIC_FIXED + 1 +
                            5 * (size_t)ROWS + units;
        char *raw          = calloc(1, 4 + size), *lists;
        rdmeta_topic_t *t;
        clock_t spent;
        size_t i;

        CHECK(raw);
        t           = (rdmeta_topic_t *)(void *)(raw + 4 +
                                                 RDMETA_TOPIC_HEADER_SIZE);
        t->count    = ROWS;
        t->name_len = 1;
        rdmeta_cold(t)->size  = (uint32_t)size;
        rdmeta_cold(t)->flags = RDMETA_TOPIC_F_ISR | RDMETA_TOPIC_F_OFFLINE;
        lists = raw + 4 + size - units;
        for (i = 1; i < units; i += EACH)
                lists[i] = EACH - 1;
        spent = clock();
        CHECK(!rdmeta_topic_check(NULL, t, raw, raw + 4 + size));
        lists[1 + EACH] = 0; /* an empty list that is not the first */
        CHECK(rdmeta_topic_check(NULL, t, raw, raw + 4 + size) ==
              RDMETA_ERR_MALFORMED);
        CHECK(clock() - spent < 20 * CLOCKS_PER_SEC);
        free(raw);
}

int main(void) {
        return test_run_all() + (sum == INT64_MIN); /* reads are not dead */
}
