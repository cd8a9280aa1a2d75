/*
 * arrow: different threads make, read and release streams, while a writer
 * changes the cache. The readers validate each batch in full. All rows of a
 * stream are of one version, so they have one epoch.
 */
#include "support/arrow_fixture.h"

#include <pthread.h>

enum { READERS = 3, ROUNDS = 400, TOPICS = 60, PARTITIONS = 7 };

typedef struct shared {
        rdmeta_cache_t *cache;
        _Atomic int stop;
        pthread_mutex_t lock;
        /* The stream that one thread made, for another thread. */
        struct ArrowArrayStream handed;
} shared_t;

static void *write_on(void *opaque) {
        gen_cluster_t *c = aw_cluster(4, TOPICS, PARTITIONS, 1);
        shared_t *x      = opaque;
        gen_bytes_t body  = {0};
        rdmeta_time_t now = {CW_S, CW_S};
        int32_t epoch     = 0;
        uint32_t i, k;

        for (; !atomic_load(&x->stop); epoch++) {
                for (i = 0; i < c->topic_count; i++)
                        for (k = 0; k < PARTITIONS; k++)
                                c->topics[i].partitions[k].epoch = epoch;
                gen_bytes_clear(&body);
                gen_response(c, 12, &body);
                CHECK(!rdmeta_cache_apply(x->cache, body.data, body.len, 12,
                                          NULL, now, NULL));
        }
        gen_bytes_free(&body);
        gen_cluster_free(c);
        return NULL;
}

static void check_batch(const struct ArrowSchema *schema,
                        struct ArrowArray *batch) {
        struct ArrowArrayView v;
        int64_t i;

        CHECK(!ArrowArrayViewInitFromSchema(&v, schema, NULL));
        CHECK(!ArrowArrayViewSetArray(&v, batch, NULL));
        CHECK(!ArrowArrayViewValidate(&v, NANOARROW_VALIDATION_LEVEL_FULL,
                                      NULL));
        CHECK(batch->length == TOPICS * PARTITIONS);
        for (i = 0; i < batch->length; i++) {
                CHECK(ArrowArrayViewGetIntUnsafe(v.children[2], i) ==
                      i % PARTITIONS);
                CHECK(ArrowArrayViewGetIntUnsafe(v.children[4], i) ==
                      ArrowArrayViewGetIntUnsafe(v.children[4], 0));
        }
        ArrowArrayViewReset(&v);
}

static void read_one(struct ArrowArrayStream *s) {
        struct ArrowSchema schema;
        struct ArrowArray batch;

        CHECK(!s->get_schema(s, &schema));
        CHECK(!s->get_next(s, &batch));
        CHECK(batch.release);
        s->release(s);
        check_batch(&schema, &batch);
        batch.release(&batch);
        schema.release(&schema);
}

static void *read_on(void *opaque) {
        shared_t *x = opaque;
        struct ArrowArrayStream mine, theirs;
        rdmeta_reader_t *r = rdmeta_reader_new(x->cache, 0);
        int i;

        CHECK(r);
        for (i = 0; i < ROUNDS; i++) {
                CHECK(!rdmeta_reader_arrow(r, RDMETA_ARROW_PARTITIONS, AW_ALL,
                                           CW_S, &mine));
                pthread_mutex_lock(&x->lock);
                theirs    = x->handed;
                x->handed = mine;
                pthread_mutex_unlock(&x->lock);
                if (theirs.release && i % 3)
                        read_one(&theirs);
                else if (theirs.release)
                        theirs.release(&theirs);
        }
        rdmeta_reader_destroy(r);
        return NULL;
}

TEST(test_streams_move_between_threads_beside_a_writer) {
        pthread_t writer, readers[READERS];
        shared_t x;
        int i;

        memset(&x, 0, sizeof(x));
        pthread_mutex_init(&x.lock, NULL);
        x.cache = rdmeta_cache_new(NULL);
        CHECK(!pthread_create(&writer, NULL, write_on, &x));
        CHECK(rdmeta_cache_wait(x.cache, 0, NULL, 0, INT64_MAX));
        for (i = 0; i < READERS; i++)
                CHECK(!pthread_create(&readers[i], NULL, read_on, &x));
        for (i = 0; i < READERS; i++)
                pthread_join(readers[i], NULL);
        atomic_store(&x.stop, 1);
        pthread_join(writer, NULL);
        rdmeta_cache_unref(x.cache); /* the last stream has a reference */
        CHECK(x.handed.release);
        read_one(&x.handed);
        pthread_mutex_destroy(&x.lock);
}

typedef struct column {
        struct ArrowArray array;
} column_t;

static void *release_one(void *opaque) {
        column_t *c = opaque;

        c->array.release(&c->array);
        return NULL;
}

CACHE_TEST(test_columns_of_a_batch_are_released_by_threads_of_their_own) {
        enum { COLUMNS = 12 };
        column_t columns[COLUMNS];
        pthread_t threads[COLUMNS];
        struct ArrowArrayStream s;
        struct ArrowArray batch;
        int i;

        CHECK(!cw_say(w, "a 0:1@5/r1,2 1:2@5/r2,3/i2/o3"));
        s = aw_open(w, w->reader, RDMETA_ARROW_PARTITIONS, AW_ALL);
        CHECK(!s.get_next(&s, &batch));
        s.release(&s);
        CHECK(batch.n_children == COLUMNS);
        for (i = 0; i < COLUMNS; i++)
                ArrowArrayMove(batch.children[i], &columns[i].array);
        batch.release(&batch);
        for (i = 0; i < COLUMNS; i++)
                CHECK(!pthread_create(&threads[i], NULL, release_one,
                                      &columns[i]));
        for (i = 0; i < COLUMNS; i++)
                pthread_join(threads[i], NULL);
}

TEST_MAIN()
