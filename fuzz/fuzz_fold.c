/*
 * Folds: a state of any bytes, or an Arrow batch of any numbers.
 *
 *     byte 0     even: the rest is a state, whose checksum is made right
 *                odd: the rest are bytes of a batch's buffers
 *     a batch    byte 1: which column's length and offset are taken from the
 *                bytes; byte 2: how, and whether topics are a dictionary; then
 *                8 bytes per record
 *
 * The buffers have as many bytes as the lengths in the schema promise, so that
 * ASan finds each read beyond them. A fold must give tables that nanoarrow
 * finds valid, whatever it has taken. Its state and its rows keep to bounds of
 * memory that follow from the bytes of the input.
 */
#include "base/checksum.h"
#include "rdmeta_fold.h"
#include "support/require.h"
#include "vendor/nanoarrow/nanoarrow.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 64, NOON = 43200 };

/* Bounds of memory. A record has some 200 bytes in Arrow; a row of a table has
 * as many. A state is packed, and a partition in memory has 80 bytes. */
enum {
        RECORD      = 200,
        STATE_BASE  = 64 << 10,
        STATE_TIMES = 8,
        SAVED_TIMES = 128,
        ROWS_MOST   = 64 << 20
};

/* What a fold has of the heap, now and at most. */
static size_t held, peak;

static void *heap_alloc(void *opaque, size_t size) {
        (void)opaque;
        held += size;
        peak = held > peak ? held : peak;
        return malloc(size);
}

static void heap_free(void *opaque, void *p, size_t size) {
        (void)opaque;
        held -= p ? size : 0;
        free(p);
}

/* Takes all tables, and checks each batch. */
static void see_tables(rdmeta_fold_t *f) {
        struct ArrowArrayStream s;
        struct ArrowSchema schema;
        struct ArrowArray batch;
        struct ArrowArrayView view;
        int32_t table;

        for (table = RDMETA_FOLD_PARTITION_INTERVAL;
             table <= RDMETA_FOLD_CONTROLLER; table++) {
                REQUIRE(!rdmeta_fold_take(f, table, &s));
                REQUIRE(!s.get_schema(&s, &schema));
                while (!s.get_next(&s, &batch) && batch.release) {
                        REQUIRE(!ArrowArrayViewInitFromSchema(&view, &schema,
                                                              NULL));
                        REQUIRE(!ArrowArrayViewSetArray(&view, &batch, NULL));
                        REQUIRE(!ArrowArrayViewValidate(
                                &view, NANOARROW_VALIDATION_LEVEL_FULL, NULL));
                        ArrowArrayViewReset(&view);
                        batch.release(&batch);
                }
                schema.release(&schema);
                s.release(&s);
        }
}

static rdmeta_fold_t *fold_new(const void *state, size_t size) {
        rdmeta_fold_conf_t conf;
        rdmeta_fold_t *f = NULL;

        rdmeta_fold_conf_init(&conf);
        conf.cluster_id.data = conf.origin.data = "c";
        conf.cluster_id.len = conf.origin.len = 1;
        conf.seed                             = 1;
        conf.allocator.alloc                  = heap_alloc;
        conf.allocator.free                   = heap_free;
        conf.state                            = state;
        conf.state_size                       = size;
        REQUIRE(!rdmeta_fold_new(&conf, &f) == (f != NULL));
        return f;
}

/* Ends a fold of `size_in` bytes of input, and checks what it gives and what
 * its state has taken: `times` that at most. */
static void fold_end(rdmeta_fold_t *f, size_t size_in, size_t times) {
        uint8_t *state;
        size_t size;
        rdmeta_fold_t *again;
        rdmeta_fold_stats_t stats;

        REQUIRE(peak <= STATE_BASE + times * size_in);
        REQUIRE(rdmeta_fold_save(f, NULL, 0, &size) ==
                RDMETA_ERR_TOO_SMALL);
        state = malloc(size);
        REQUIRE(state && !rdmeta_fold_save(f, state, size, &size));
        again = fold_new(state, size);
        REQUIRE(again);
        rdmeta_fold_destroy(again);
        free(state);
        rdmeta_fold_stats(f, &stats);
        if (stats.last_at >= 0)
                REQUIRE(!rdmeta_fold_end(f, stats.last_at,
                                         RDMETA_FOLD_GAP));
        rdmeta_fold_stats(f, &stats);
        REQUIRE(stats.waiting * RECORD <= ROWS_MOST + times * size_in);
        see_tables(f);
        rdmeta_fold_destroy(f);
        REQUIRE(!held);
}

/* Reads bytes as a state with a right head. */
static void run_state(const uint8_t *data, size_t size) {
        const uint64_t version = RDMETA_FOLD_STATE_VERSION;
        uint64_t sum           = rdmeta_checksum(data, size);
        uint8_t *state         = malloc(size + 24);
        rdmeta_fold_t *f;

        REQUIRE(state);
        memcpy(state, "RDMFOLD\n", 8);
        memcpy(state + 8, &version, 8);
        memcpy(state + 16, &sum, 8);
        if (size)
                memcpy(state + 24, data, size);
        f = fold_new(state, size + 24);
        free(state);
        if (f)
                fold_end(f, size, SAVED_TIMES);
}

/* Makes a record of eight bytes: kind, topic, partition, numbers. */
static void add(rdmeta_arrow_changes_t *changes, const uint8_t *p,
                uint64_t *version, int64_t *at) {
        static const char *const details[] = {
                "h:1",  "h:1 rack=a", "min.insync.replicas=2",
                "a=b",  "a",          "h:1 rack=b\xff",
                "",     "min.insync.replicas"};
        const int32_t ids[] = {p[5] & 3, p[6] & 3, p[7] & 3};
        rdmeta_change_t c   = {.kind = p[0] % 31, .source_broker = RDMETA_NONE};

        *version += p[1] >> 6;
        *at += (int64_t)(p[1] & 63) * (p[1] & 32 ? 3600000000 : 1000);
        if ((p[1] & 63) == 63) /* weeks, or years */
                *at += (p[4] & 1 ? 28 : 13000) * INT64_C(86400000000);
        c.version   = *version;
        c.wall_us   = *at;
        c.partition = p[2] & 128 ? RDMETA_NONE : p[2] & 7;
        if (c.partition == 7) /* a high one costs no more than another */
                c.partition = (1 << 20) - 1 - (p[3] & 3);
        c.broker    = p[3] & 128 ? RDMETA_NONE : p[3] & 3;
        if (!(p[2] & 64)) {
                c.topic.data = "abcd" + (p[2] >> 3 & 3);
                c.topic.len  = 1;
        }
        c.new_leader = c.new_leader_epoch = p[4];
        c.old_leader = c.old_leader_epoch = RDMETA_NONE;
        c.detail.data                     = details[p[4] & 7];
        c.detail.len                      = strlen(c.detail.data);
        c.new_isr.ids = c.new_replicas.ids = c.new_offline.ids = ids;
        c.new_isr.count                                        = p[5] >> 6;
        c.new_replicas.count                                   = p[6] >> 6;
        c.new_offline.count                                    = p[7] >> 6;
        c.new_adding   = c.new_isr;
        c.new_removing = c.new_replicas;
        c.new_elr      = c.new_offline;
        /* Some are of a log, and some of polls. */
        c.offset          = p[6] & 4 ? p[7] : -1;
        c.broker_epoch    = p[6] & 4 ? p[4] & 1 : -1;
        c.partition_epoch = p[6] & 4 ? p[5] : RDMETA_NONE;
        c.unseen_us       = p[6] & 8 ? p[7] : -1;
        REQUIRE(!rdmeta_arrow_changes_add(changes, &c));
}

/* Makes one column's lengths wrong by the bytes. Never so that they contradict
 * nothing, and only the memory is too small: no reader can know that. */
static void spoil(struct ArrowArray *batch, const uint8_t *p) {
        struct ArrowArray *a = batch->children[p[0] % batch->n_children];
        int8_t by            = (int8_t)p[2];

        if (p[1] & 1)
                a->length += by;
        if (p[1] & 2)
                a->offset = by < 0 ? by : INT64_MAX - by;
        if (p[1] & 4)
                a->n_buffers += by;
        if (p[1] & 8 && a->n_children)
                a->children[0]->length += by < 0 ? by : 0;
        if (p[1] & 16)
                batch->length += by < 0 ? by : 0;
        if (p[1] & 32 && a->buffers[1] && batch->length)
                ((int32_t *)(uintptr_t)a->buffers[1])[0] += by;
}

/* A column of topics as a dictionary. */
typedef struct coded {
        struct ArrowSchema *schema, texts_schema, old_schema;
        struct ArrowArray *array, texts, old;
        const void *buffers[2];
        int32_t codes[ROWS + 1];
} coded_t;

/* Makes the texts of the topics a dictionary, with codes of the bytes. Most
 * codes are in the dictionary. */
static void coded_init(coded_t *c, struct ArrowSchema *schema,
                       struct ArrowArray *batch, const uint8_t *p) {
        int64_t i = 0;

        while (strcmp(schema->children[i]->name, "topic"))
                i++;
        c->schema       = schema->children[i];
        c->texts_schema = c->old_schema = *c->schema;
        c->array                        = batch->children[i];
        c->texts = c->old = *c->array;
        for (i = 0; i <= ROWS; i++)
                c->codes[i] = i % 8 ? p[2] & 3 : (int8_t)p[2];
        c->buffers[0]         = c->texts.buffers[0];
        c->buffers[1]         = c->codes;
        c->texts.null_count   = 0;
        c->schema->format     = "i";
        c->schema->dictionary = &c->texts_schema;
        c->array->n_buffers   = 2;
        c->array->buffers     = c->buffers;
        c->array->dictionary  = &c->texts;
}

static void coded_end(coded_t *c) {
        *c->schema = c->old_schema;
        *c->array  = c->old;
}

static void run_batch(const uint8_t *data, size_t size) {
        rdmeta_arrow_changes_t *changes = rdmeta_arrow_changes_new("o");
        struct ArrowArrayStream s;
        struct ArrowSchema schema;
        struct ArrowArray batch;
        uint64_t version = 0;
        int64_t at       = INT64_C(1000000) * NOON;
        uint8_t first[8] = {RDMETA_OBSERVED_FROM, 64, 255, 255};
        rdmeta_fold_t *f = fold_new(NULL, 0);
        coded_t coded;
        size_t i;

        REQUIRE(changes && f);
        add(changes, first, &version, &at);
        for (i = 3; i + 8 <= size && i < 8 * ROWS; i += 8)
                add(changes, data + i, &version, &at);
        REQUIRE(!rdmeta_arrow_changes_stream(changes, &s));
        REQUIRE(!s.get_schema(&s, &schema) && !s.get_next(&s, &batch));
        s.release(&s);
        if (data[1] & 64)
                coded_init(&coded, &schema, &batch, data);
        spoil(&batch, data);
        (void)rdmeta_fold_batch(f, &schema, &batch);
        if (data[1] & 64)
                coded_end(&coded);
        REQUIRE(strlen(rdmeta_fold_error(f)) < 1000);
        batch.release(&batch);
        schema.release(&schema);
        fold_end(f, (i / 8 + 1) * RECORD, STATE_TIMES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        held = peak = 0;
        if (size < 1)
                return 0;
        if (!(data[0] & 1))
                run_state(data + 1, size - 1);
        else if (size >= 4)
                run_batch(data + 1, size - 1);
        return 0;
}
