/*
 * fold: the Nth allocation fails, for every N; or each one by chance. The state
 * comes from the fold's allocator, and rows from the C library's malloc. So
 * this file includes the sources that write rows, and replaces what they call.
 * A call that failed is repeated, and then the rows must be the same as if no
 * allocation had failed.
 */
#include "support/fold_fixture.h"

#include "support/failing_malloc.h"

#include "arrow/batch.c"
#include "fold/out.c"
#include "fold/intervals.c"

static void *heap_alloc(void *opaque, size_t size) {
        (void)opaque;
        return malloc(size);
}

static void heap_free(void *opaque, void *p, size_t size) {
        (void)opaque;
        memset(p, 0xdb, size);
        free(p);
}

/* Calls again while there is no memory. */
#define AGAIN(call)                                                          \
        do {                                                                 \
                err = (call);                                                \
                CHECK(!err || err == RDMETA_ERR_NO_MEMORY);                  \
        } while (err)

static rdmeta_fold_t *make(const void *state, size_t size) {
        const rdmeta_allocator_t allocator = {heap_alloc, heap_free, NULL};
        rdmeta_fold_conf_t conf;
        rdmeta_fold_t *f = NULL;
        rdmeta_err_t err;

        rdmeta_fold_conf_init(&conf);
        conf.cluster_id = test_str("c");
        conf.origin     = test_str("o");
        conf.state      = state;
        conf.state_size = size;
        conf.seed       = 1; /* so that each run allocates alike */
        conf.allocator  = allocator;
        AGAIN(rdmeta_fold_new(&conf, &f));
        return f;
}

/* Saves a fold after a call without memory: its state can be loaded. */
static void check_saved(rdmeta_fold_t *f) {
        const counted_t before = counted;
        char state[8192];
        size_t size;

        counted.fail_at = counted.chance = 0;
        CHECK(!rdmeta_fold_save(f, state, sizeof(state), &size));
        rdmeta_fold_destroy(make(state, size));
        counted.calls   = before.calls;
        counted.rng     = before.rng;
        counted.fail_at = before.fail_at;
        counted.chance  = before.chance;
}

static void say(rdmeta_fold_t *f, rdmeta_change_t c) {
        rdmeta_err_t err;

        do {
                err = rdmeta_fold_change(f, &c, 5);
                CHECK(!err || err == RDMETA_ERR_NO_MEMORY);
                if (err)
                        check_saved(f);
        } while (err);
}

static void say_detail(rdmeta_fold_t *f, uint64_t version, int32_t kind,
                       const char *topic, int32_t broker,
                       const char *detail) {
        rdmeta_change_t c = fw_record(version, kind, topic, -1, -1);

        c.broker = broker;
        c.detail = test_str(detail);
        say(f, c);
}

/* Says what only a metadata log tells, in four versions. */
static void of_log(rdmeta_fold_t *f, uint64_t v) {
        static const int32_t ids[] = {8, 7};
        const rdmeta_ids_t list    = {ids, 2};
        rdmeta_change_t c = fw_record(v, RDMETA_REASSIGNMENT_CHANGED, "v", 0,
                                      RDMETA_NONE);

        c.new_adding = c.new_removing = list;
        say(f, c);
        c         = fw_record(v, RDMETA_ELR_CHANGED, "v", 3, RDMETA_NONE);
        c.new_elr = list;
        say(f, c);
        say_detail(f, v, RDMETA_BROKER_FENCED, NULL, 1, NULL);
        say_detail(f, v + 1, RDMETA_BROKER_REMOVED, NULL, 2, NULL);
        c        = fw_record(v + 2, RDMETA_CONFIG_CHANGED, NULL, -1, -1);
        c.offset = 7;
        c.detail = test_str("min.insync.replicas=2");
        say(f, c);
        say_detail(f, v + 2, RDMETA_CONTROLLER_CHANGED, NULL, 1, NULL);
        say_detail(f, v + 3, RDMETA_CONTROLLER_CHANGED, NULL, 2, NULL);
}

/* Saves the state, and returns a fold that goes on from it. Nothing fails by
 * chance in the new one: it would need all of its memory at once. */
static rdmeta_fold_t *moved(rdmeta_fold_t *f) {
        const size_t chance = counted.chance;
        char state[8192];
        size_t size;
        rdmeta_err_t err;

        AGAIN(rdmeta_fold_save(f, state, sizeof(state), &size));
        rdmeta_fold_destroy(f);
        counted.chance = 0;
        f              = make(state, size);
        counted.chance = chance;
        return f;
}

static void records(rdmeta_fold_t *f) {
        uint64_t v = 3;
        int32_t i;

        say(f, fw_record(1, RDMETA_OBSERVED_FROM, NULL, -1, -1));
        say_detail(f, 2, RDMETA_BROKER_ADDED, NULL, 1, "h:1 rack=a");
        say_detail(f, 2, RDMETA_BROKER_ADDED, NULL, 2, "h:2 rack=b");
        for (i = 0; i < 9; i++)
                say(f, fw_record(2, RDMETA_TOPIC_ADDED, "t\xff", i, 1));
        say_detail(f, 2, RDMETA_CONFIG_CHANGED, "t\xff", -1,
                   "min.insync.replicas=2");
        for (i = 0; i < 30; i++)
                say(f, fw_record(v++, RDMETA_LEADER_CHANGED, "t\xff", i % 9,
                                 i % 3));
        say_detail(f, v++, RDMETA_BROKER_CHANGED, NULL, 2, "h:2 rack=a\xff");
        say(f, fw_record(v, RDMETA_TOPIC_RECREATED, "t\xff", -1, -1));
        for (i = 0; i < 7; i++)
                say(f, fw_record(v, RDMETA_TOPIC_RECREATED, "t\xff", i, 3));
        say_detail(f, v++, RDMETA_CONFIG_CHANGED, NULL, 2, "a=b\xff");
        say(f, fw_record(v++, RDMETA_TOPIC_ADDED, "u", 20, 3));
        for (i = 0; i < 40; i++)
                say(f, fw_record(v++, RDMETA_PARTITIONS_ADDED, "v", 3 * i, 3));
        say_detail(f, v++, RDMETA_BROKER_CHANGED, NULL, 1, "h:1");
        of_log(f, v);
        say(f, fw_record(v + 4, RDMETA_LEADER_CHANGED, "v", 0, 1));
}

/* Returns the rows of all tables. The allocations of reading do not fail. */
static aw_text_t rows_of(rdmeta_fold_t *f) {
        struct ArrowArrayStream s;
        size_t fail_at, chance;
        aw_text_t all = {0}, t;
        rdmeta_err_t err;
        int32_t table;

        aw_put_bytes(&all, "", 0);
        for (table = RDMETA_FOLD_PARTITION_INTERVAL;
             table <= RDMETA_FOLD_CONTROLLER; table++) {
                AGAIN(rdmeta_fold_take(f, table, &s));
                fail_at         = counted.fail_at;
                chance          = counted.chance;
                counted.fail_at = counted.chance = 0;
                t                                = aw_read(&s);
                aw_put_bytes(&all, t.data ? t.data : "", t.len);
                aw_free(&t);
                counted.fail_at = fail_at;
                counted.chance  = chance;
        }
        return all;
}

/* Folds the records, with a state that is saved and a midnight. */
static aw_text_t run(size_t fail_at, size_t chance) {
        rdmeta_fold_t *f;
        aw_text_t before, after;
        rdmeta_err_t err;

        memset(&counted, 0, sizeof(counted));
        counted.rng     = test_rng(fail_at + 1);
        counted.fail_at = fail_at;
        counted.chance  = chance;
        f               = make(NULL, 0);
        records(f);
        AGAIN(rdmeta_fold_cut(f, (FW_NOON / FW_DAY + 1) * FW_DAY));
        before = rows_of(f);
        f      = moved(f);
        AGAIN(rdmeta_fold_end(f, FW_NOON + FW_DAY, RDMETA_FOLD_GAP));
        after = rows_of(f);
        rdmeta_fold_destroy(f);
        CHECK(counted.blocks == 0);
        aw_put_bytes(&before, after.data, after.len);
        aw_free(&after);
        return before;
}

static void check_same(size_t fail_at, size_t chance, const char *wanted) {
        aw_text_t t = run(fail_at, chance);

        CHECK(!strcmp(t.data, wanted));
        aw_free(&t);
}

TEST(test_every_allocation_may_fail) {
        aw_text_t wanted = run(0, 0);
        const size_t n   = counted.calls;
        size_t nth;

        CHECK(strlen(wanted.data) > 5000);
        for (nth = 1; nth <= n; nth++)
                check_same(nth, 0, wanted.data);
        CHECK(n > 100);
        fprintf(stderr, "    %zu allocations\n", n);
        aw_free(&wanted);
}

TEST(test_allocations_may_fail_by_chance) {
        aw_text_t wanted = run(0, 0);
        size_t round;

        for (round = 0; round < 300; round++)
                check_same(round * 100000, 2 + round % 5, wanted.data);
        aw_free(&wanted);
}

/* Folds more rows than a batch has. The second batch gets its memory at once,
 * since the first one was large: those are the calls from *begin to *end.
 * Returns the size of the rows as text. */
static size_t run_large(size_t fail_at, size_t *begin, size_t *end) {
        rdmeta_fold_t *f;
        aw_text_t rows;
        size_t size;
        int32_t i;

        memset(&counted, 0, sizeof(counted));
        counted.fail_at = fail_at;
        f               = make(NULL, 0);
        say(f, fw_record(1, RDMETA_OBSERVED_FROM, NULL, -1, -1));
        say(f, fw_record(2, RDMETA_TOPIC_ADDED, "t", 0, 1));
        for (i = 0; i < RDMETA_ARROW_ROWS + 10; i++) {
                if (i == RDMETA_ARROW_ROWS - 10)
                        *begin = counted.calls;
                say(f, fw_record((uint64_t)i + 3, RDMETA_LEADER_CHANGED, "t",
                                 0, i % 3));
        }
        *end = counted.calls;
        rows = rows_of(f);
        size = rows.len;
        aw_free(&rows);
        rdmeta_fold_destroy(f);
        CHECK(counted.blocks == 0);
        return size;
}

TEST(test_a_batch_that_follows_a_large_one_may_lack_memory) {
        size_t begin, end, nth, b, e;
        const size_t wanted = run_large(0, &begin, &end);

        CHECK(wanted > 10 * RDMETA_ARROW_ROWS && begin < end);
        for (nth = begin + 1; nth <= end; nth++)
                CHECK(run_large(nth, &b, &e) == wanted);
}

TEST_MAIN()
