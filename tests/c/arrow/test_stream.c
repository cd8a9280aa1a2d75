/* arrow: the length of streams and batches, and their life. */
#include "support/arrow_fixture.h"

CACHE_TEST(test_many_rows_come_in_many_batches) {
        gen_cluster_t *c = aw_cluster(3, 3, 80000, 1);
        aw_text_t t;

        aw_say(w, c);
        t = aw_table(w, RDMETA_ARROW_PARTITIONS);
        CHECK(t.rows == 240000 && t.batches == 4);
        CHECK(t.longest == RDMETA_ARROW_ROWS);
        aw_free(&t);
        t = aw_table(w, RDMETA_ARROW_REPLICAS);
        CHECK(t.rows == 720000 && t.batches == 11);
        aw_free(&t);
        aw_check_as_read(w, RDMETA_ARROW_PARTITIONS, 0);
        aw_check_as_read(w, RDMETA_ARROW_REPLICAS, 0);
        gen_cluster_free(c);
}

TEST(test_long_names_make_batches_shorter) {
        gen_cluster_t *c = aw_cluster(3, 1, 5000, 1);
        char *name       = malloc(RDMETA_NAME_MAX);
        struct ArrowArrayStream s;
        struct ArrowArray batch;
        int64_t rows = 0;
        int batches  = 0;
        cw_t w;

        CHECK(name);
        memset(name, 'n', RDMETA_NAME_MAX);
        c->topics[0].name = (rdmeta_str_t){name, RDMETA_NAME_MAX};
        cw_init(&w, NULL);
        aw_say(&w, c);
        s = aw_open(&w, w.reader, RDMETA_ARROW_PARTITIONS, AW_ALL);
        for (;; batches++) {
                CHECK(!s.get_next(&s, &batch));
                if (!batch.release)
                        break;
                CHECK(batch.length * RDMETA_NAME_MAX <= RDMETA_ARROW_TEXT);
                rows += batch.length;
                batch.release(&batch);
        }
        CHECK(rows == 5000 && batches == 3);
        s.release(&s);
        free(name);
        gen_cluster_free(c);
        cw_destroy(&w);
}

/* The lists have more ids than a batch takes. */
TEST(test_long_lists_make_batches_shorter_and_one_row_always_fits) {
        enum { LONG = 3000, ROWS = 12000 };
        gen_cluster_t *c = aw_cluster(3, 1, ROWS, 1);
        int32_t *ids     = malloc(LONG * sizeof(*ids));
        gen_partition_t *p;
        aw_text_t t;
        cw_t w;
        int i;

        CHECK(ids);
        for (i = 0; i < LONG; i++)
                ids[i] = i;
        for (i = 0; i < ROWS; i++) {
                p                 = &c->topics[0].partitions[i];
                p->replicas       = (gen_ids_t){ids, 2};
                p->isr            = (gen_ids_t){ids, 1};
                p->offline.count  = 0;
                p->leader         = 0;
                if (i < 8000)
                        p->replicas.count = LONG;
        }
        cw_init(&w, NULL);
        aw_say(&w, c);
        t = aw_table(&w, RDMETA_ARROW_PARTITIONS);
        CHECK(t.rows == ROWS && t.batches == 2);
        aw_free(&t);
        free(ids);
        gen_cluster_free(c);
        cw_destroy(&w);
}

CACHE_TEST(test_a_stream_has_the_version_at_which_it_was_made) {
        struct ArrowArrayStream s;
        aw_text_t t;

        CHECK(!cw_all(w, "a 0:1@5; b 0:1@5"));
        s = aw_open(w, w->reader, RDMETA_ARROW_PARTITIONS, AW_ALL);
        CHECK(!cw_say(w, "a 0:2@6; c 0:1@1; b!3"));
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        t = aw_read(&s);
        CHECK_TEXT(t.data, "a|-|0|1|5|[1]|[1]|[]|0|0|0|0\n"
                           "b|-|0|1|5|[1]|[1]|[]|0|0|0|0\n");
        aw_free(&t);
}

TEST(test_a_stream_outlives_cache_and_reader) {
        rdmeta_cache_t *c = rdmeta_cache_new(NULL);
        gen_cluster_t *g  = aw_cluster(5, 20, 10, 1);
        struct ArrowArrayStream s;
        rdmeta_reader_t *r;
        gen_bytes_t body  = {0};
        rdmeta_time_t now = {CW_S, CW_S};
        aw_text_t t;

        gen_response(g, 12, &body);
        CHECK(!rdmeta_cache_apply(c, body.data, body.len, 12, NULL, now, NULL));
        r = rdmeta_reader_new(c, 0);
        CHECK(!rdmeta_reader_arrow(r, RDMETA_ARROW_PARTITIONS, AW_ALL, CW_S,
                                   &s));
        rdmeta_reader_destroy(r);
        rdmeta_cache_unref(c);
        t = aw_read(&s);
        CHECK(t.rows == 200);
        aw_free(&t);
        gen_bytes_free(&body);
        gen_cluster_free(g);
}

CACHE_TEST(test_a_stream_released_half_way_frees_everything) {
        gen_cluster_t *c = aw_cluster(3, 2, 80000, 1);
        struct ArrowArrayStream s;
        struct ArrowSchema schema;
        struct ArrowArray batch;
        aw_text_t t = {0};

        aw_say(w, c);
        s = aw_open(w, w->reader, RDMETA_ARROW_PARTITIONS, AW_ALL);
        CHECK(!s.get_schema(&s, &schema));
        CHECK(!s.get_next(&s, &batch));
        s.release(&s);
        aw_batch(&t, &schema, &batch); /* a batch outlives its stream */
        CHECK(t.rows == RDMETA_ARROW_ROWS);
        aw_free(&t);
        schema.release(&schema);
        gen_cluster_free(c);
}

/* The C data interface allows that a consumer moves columns out of a batch. It
 * then releases each by itself. */
CACHE_TEST(test_columns_can_be_moved_out_of_a_batch) {
        struct ArrowArray batch, leader, replicas, ids;
        struct ArrowArrayStream s;

        CHECK(!cw_say(w, "a 0:2@5/r2,3"));
        s = aw_open(w, w->reader, RDMETA_ARROW_PARTITIONS, AW_ALL);
        CHECK(!s.get_next(&s, &batch));
        s.release(&s);
        ArrowArrayMove(batch.children[3], &leader);
        ArrowArrayMove(batch.children[5], &replicas);
        ArrowArrayMove(replicas.children[0], &ids);
        batch.release(&batch);
        CHECK(((const int32_t *)leader.buffers[1])[0] == 2);
        leader.release(&leader);
        replicas.release(&replicas);
        CHECK(ids.length == 2 && ((const int32_t *)ids.buffers[1])[1] == 3);
        ids.release(&ids);
        CHECK(!batch.release && !leader.release && !ids.release);
}

TEST_MAIN()
