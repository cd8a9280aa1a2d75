/*
 * arrow: the Nth allocation fails, for every N. Streams and batches call the C
 * library's malloc. So this file includes the sources that allocate, and
 * replaces the functions that they call. A call that failed is repeated, and
 * then the stream must have all rows.
 */
#include "support/arrow_fixture.h"

#include "support/failing_malloc.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include "vendor/nanoarrow/nanoarrow.c"
#pragma GCC diagnostic pop
#include "arrow/stream.c"
#include "arrow/batch.c"
#include "arrow/changes.c"
#include "arrow/replicas.c"

/* Checks that a stream has these rows. The allocations of the test itself,
 * which reads the batches, do not fail. */
static void check_rows(struct ArrowArrayStream *s, const char *wanted) {
        struct ArrowArrayStream again;
        struct ArrowSchema schema;
        struct ArrowArray batch;
        aw_text_t t = {0};
        size_t fail_at;

        aw_put_bytes(&t, "", 0);
        while (s->get_schema(s, &schema))
                CHECK(!strcmp(s->get_last_error(s), "RDMETA_ERR_NO_MEMORY"));
        for (;;) {
                const int err = s->get_next(s, &batch);
                if (err) {
                        CHECK(err == ENOMEM);
                        CHECK(!strcmp(s->get_last_error(s),
                                      "RDMETA_ERR_NO_MEMORY"));
                        continue;
                }
                if (!batch.release)
                        break;
                fail_at         = counted.fail_at;
                counted.fail_at = 0;
                aw_batch(&t, &schema, &batch);
                counted.fail_at = fail_at;
        }
        schema.release(&schema);
        again = *s; /* a consumer may move a stream */
        again.release(&again);
        CHECK_TEXT(t.data, wanted);
        aw_free(&t);
}

static const char *const tables[] = {
        [RDMETA_ARROW_BROKERS] = "1|h1|9001|-|1|c\n2|h2|9002|-|0|c\n"
                                 "3|h3|9003|-|0|c\n",
        [RDMETA_ARROW_TOPICS] = "a|-|0|2|0|-|1|valid|1|-|0.000000\n",
        [RDMETA_ARROW_PARTITIONS] =
                "a|-|0|1|5|[1,2]|[1,2]|[]|0|0|0|0\n"
                "a|-|1|2|5|[2,3]|[2]|[3]|0|0|0|0\n",
        [RDMETA_ARROW_REPLICAS] =
                "a|-|0|1|0|1|1|0|1\na|-|0|2|1|0|1|0|0\n"
                "a|-|1|2|0|1|1|0|1\na|-|1|3|1|0|0|1|0\n"};

static void run_tables(cw_t *w) {
        struct ArrowArrayStream s;
        rdmeta_err_t err;
        int32_t table;

        for (table = 0; table < 4; table++) {
                do {
                        err = rdmeta_reader_arrow(w->reader, table, AW_ALL,
                                                  w->now.mono_us, &s);
                        CHECK(!err || err == RDMETA_ERR_NO_MEMORY);
                } while (err);
                check_rows(&s, tables[table]);
        }
}

static void run_changes(cw_t *w) {
        struct ArrowArrayStream s;
        uint64_t until;
        int32_t resync;
        rdmeta_err_t err;

        do {
                err = rdmeta_cache_arrow_changes(w->cache, 0, "life", &s,
                                                 &until, &resync);
                CHECK(!err || err == RDMETA_ERR_NO_MEMORY);
        } while (err);
        check_rows(&s,
                   "1|c|life|5000000000|poll|1|broker_added|-|-|-|1|-|-|-|-|-"
                   "|-|-|-|-|h1:9001|-|-|-|-|-|-|-|-\n"
                   "1|c|life|5000000000|poll|1|broker_added|-|-|-|2|-|-|-|-|-"
                   "|-|-|-|-|h2:9002|-|-|-|-|-|-|-|-\n"
                   "1|c|life|5000000000|poll|1|broker_added|-|-|-|3|-|-|-|-|-"
                   "|-|-|-|-|h3:9003|-|-|-|-|-|-|-|-\n"
                   "1|c|life|5000000000|poll|1|topic_added|a|-|-|-|-|-|-|-|-"
                   "|-|-|-|-|-|-|-|-|-|-|-|-|-\n");
}

/* Fails one allocation. Returns 1 if that allocation was reached. */
static int run(size_t nth, size_t nth_of_cache) {
        int failed;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, "a 0:1@5/r1,2 1:2@5/r2,3/i2/o3"));
        memset(&counted, 0, sizeof(counted));
        counted.fail_at = nth;
        w.heap.fail_at  = nth_of_cache ? w.heap.calls + nth_of_cache : 0;
        run_tables(&w);
        run_changes(&w);
        failed = nth_of_cache ? w.heap.calls >= w.heap.fail_at
                              : counted.calls >= nth;
        counted.fail_at = w.heap.fail_at = 0;
        CHECK(counted.blocks == 0);
        cw_destroy(&w);
        return failed;
}

TEST(test_every_allocation_of_the_c_library_may_fail) {
        size_t nth;

        for (nth = 1; run(nth, 0); nth++)
                ;
        CHECK(nth > 100);
        fprintf(stderr, "    %zu allocations\n", nth - 1);
}

TEST(test_every_allocation_of_the_cache_may_fail) {
        size_t nth;

        for (nth = 1; run(0, nth); nth++)
                ;
        CHECK(nth > 5);
        fprintf(stderr, "    %zu allocations\n", nth - 1);
}

/* Collects n changes into a stream: batches grow and end. Returns NO_MEMORY. */
static rdmeta_err_t collect(int64_t n) {
        rdmeta_arrow_changes_t *c = rdmeta_arrow_changes_new("life");
        const int32_t ids[]       = {1, 2, 3};
        rdmeta_change_t change    = {.kind = RDMETA_ISR_CHANGED,
                                     .topic = GEN_STR("orders"),
                                     .old_isr = {ids, 3}, .new_isr = {ids, 2}};
        rdmeta_err_t err = c ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
        struct ArrowArrayStream s;
        struct ArrowArray batch;

        for (; n > 0 && !err; n--)
                err = rdmeta_arrow_changes_add(c, &change);
        if (err) {
                rdmeta_arrow_changes_destroy(c);
                return err;
        }
        err = rdmeta_arrow_changes_stream(c, &s);
        if (err)
                return err;
        CHECK(!s.get_next(&s, &batch)); /* release frees the other batches */
        batch.release(&batch);
        s.release(&s);
        return RDMETA_OK;
}

/* With few rows each allocation fails once; with two batches, some of them. */
TEST(test_a_failed_collection_of_changes_leaks_nothing) {
        test_rng_t rng   = test_rng(1);
        rdmeta_err_t err = -1;
        size_t nth;
        int many;

        for (many = 0; many < 2; many++, err = -1)
                for (nth = 1; err; nth += many ? 1 + test_below(&rng, 60) : 1) {
                        memset(&counted, 0, sizeof(counted));
                        counted.fail_at = nth;
                        err = collect(many ? RDMETA_ARROW_ROWS + 100 : 100);
                        CHECK(!err || err == RDMETA_ERR_NO_MEMORY);
                        CHECK(counted.blocks == 0);
                }
        CHECK(nth > 1000);
}

TEST_MAIN()
