/* batch: columns that contradict each other are refused, and lose nothing. */
#include "support/fold_fixture.h"

/* A batch of three records with the columns that a test spoils. */
typedef struct spoiled {
        struct ArrowSchema schema;
        struct ArrowArray batch;
} spoiled_t;

/* Makes the batch: observed_from, topic_added of t 0, leader_changed. */
static void spoiled_init(spoiled_t *s) {
        rdmeta_arrow_changes_t *changes = rdmeta_arrow_changes_new("o");
        struct ArrowArrayStream stream;
        rdmeta_change_t c[3] = {
                fw_record(1, RDMETA_OBSERVED_FROM, NULL, -1, -1),
                fw_record(2, RDMETA_TOPIC_ADDED, "t", 0, 1),
                fw_record(3, RDMETA_LEADER_CHANGED, "t", 0, 2)};
        int i;

        CHECK(changes);
        for (i = 0; i < 3; i++)
                CHECK(!rdmeta_arrow_changes_add(changes, &c[i]));
        CHECK(!rdmeta_arrow_changes_stream(changes, &stream));
        CHECK(!stream.get_schema(&stream, &s->schema));
        CHECK(!stream.get_next(&stream, &s->batch));
        stream.release(&stream);
}

static void spoiled_free(spoiled_t *s) {
        s->batch.release(&s->batch);
        s->schema.release(&s->schema);
}

/* Returns a column by its name. */
static struct ArrowArray *column(spoiled_t *s, const char *name) {
        int64_t i = 0;

        while (strcmp(s->schema.children[i]->name, name))
                i++;
        return s->batch.children[i];
}

/* Checks that the batch is refused by `why`, and that the fold then takes a
 * good one. */
static void refused(const spoiled_t *s, const char *why) {
        rdmeta_fold_t *f = fw_new(NULL);
        rdmeta_fold_stats_t stats;
        spoiled_t good;

        CHECK(rdmeta_fold_batch(f, &s->schema, &s->batch) ==
              RDMETA_ERR_ARGUMENT);
        if (!strstr(rdmeta_fold_error(f), why))
                fprintf(stderr, "%s\n", rdmeta_fold_error(f));
        CHECK(strstr(rdmeta_fold_error(f), why));
        rdmeta_fold_stats(f, &stats);
        CHECK(stats.rows == 0);
        spoiled_init(&good);
        CHECK(!rdmeta_fold_batch(f, &good.schema, &good.batch));
        spoiled_free(&good);
        rdmeta_fold_stats(f, &stats);
        CHECK(stats.rows == 3);
        rdmeta_fold_destroy(f);
}

/* Each of these sets a number of a column, and puts it back. */
TEST(test_impossible_lengths_are_refused) {
        const int64_t lengths[] = {-1, 2, INT64_MIN};
        const int64_t offsets[] = {-1, INT64_MAX, INT64_MAX / 16, INT64_MIN};
        spoiled_t s;
        size_t i;

        spoiled_init(&s);
        for (i = 0; i < 3; i++) {
                column(&s, "topic")->length = lengths[i];
                refused(&s, "column topic is shorter");
        }
        column(&s, "topic")->length = 3;
        for (i = 0; i < 4; i++) {
                column(&s, "version")->offset = offsets[i];
                refused(&s, "column version is shorter");
                column(&s, "version")->offset = 0;
                s.batch.offset                = offsets[i];
                refused(&s, "");
                s.batch.offset = 0;
        }
        s.batch.length = -1;
        refused(&s, "impossible length");
        s.batch.length = INT64_MAX;
        refused(&s, "");
        s.batch.length = 4;
        refused(&s, "column version is shorter");
        s.batch.length = 3;
        s.batch.n_children--;
        refused(&s, "no table");
        s.batch.n_children++;
        column(&s, "kind")->n_buffers = 2;
        refused(&s, "column kind is shorter");
        column(&s, "kind")->n_buffers = 3;
        spoiled_free(&s);
}

TEST(test_offsets_that_go_back_are_refused) {
        const char *const names[] = {"topic", "new_isr", "kind"};
        spoiled_t s;
        size_t i;

        spoiled_init(&s);
        for (i = 0; i < 3; i++) {
                int32_t *offsets = (int32_t *)(uintptr_t)column(&s, names[i])
                                           ->buffers[1];
                const int32_t old = offsets[1];

                offsets[1] = -7;
                refused(&s, "offsets that go back");
                offsets[1] = INT32_MAX;
                refused(&s, "offsets that go back");
                offsets[1] = old;
        }
        spoiled_free(&s);
}

TEST(test_lists_beyond_their_values_are_refused) {
        struct ArrowArray *ids;
        spoiled_t s;

        spoiled_init(&s);
        ids         = column(&s, "new_isr")->children[0];
        ids->length = 3;
        refused(&s, "column new_isr has lists beyond its values");
        ids->length = -1;
        refused(&s, "column new_isr has lists beyond its values");
        ids->length                       = 6;
        column(&s, "new_isr")->n_children = 0;
        refused(&s, "column new_isr has lists beyond its values");
        column(&s, "new_isr")->n_children = 1;
        spoiled_free(&s);
}

TEST(test_missing_buffers_are_refused) {
        const char *const names[] = {"version", "topic", "new_isr"};
        const void *old;
        spoiled_t s;
        size_t i;

        spoiled_init(&s);
        for (i = 0; i < 3; i++) {
                old = column(&s, names[i])->buffers[1];
                column(&s, names[i])->buffers[1] = NULL;
                refused(&s, "has no values");
                column(&s, names[i])->buffers[1] = old;
        }
        old                           = column(&s, "kind")->buffers[2];
        column(&s, "kind")->buffers[2] = NULL;
        refused(&s, "column kind has no text");
        column(&s, "kind")->buffers[2] = old;
        spoiled_free(&s);
}

TEST(test_a_batch_that_is_no_table_is_refused) {
        spoiled_t s;
        const char *format;

        spoiled_init(&s);
        format          = s.schema.format;
        s.schema.format = "l";
        refused(&s, "no table");
        s.schema.format = NULL;
        refused(&s, "no table");
        s.schema.format = format;
        spoiled_free(&s);
}

TEST(test_a_dictionary_that_contradicts_its_codes_is_refused) {
        int32_t codes[]             = {0, 1, 0};
        int32_t offsets[]           = {0, 1, 2};
        const void *buffers[]       = {NULL, codes};
        const void *texts_buffers[] = {NULL, offsets, "tu"};
        struct ArrowArray texts, *topic, old;
        struct ArrowSchema texts_schema;
        spoiled_t s;
        int64_t i = 0;

        spoiled_init(&s);
        while (strcmp(s.schema.children[i]->name, "topic"))
                i++;
        topic           = s.batch.children[i];
        old             = *topic;
        texts           = old;
        texts.buffers   = texts_buffers;
        texts.length    = 2;
        texts.offset    = 0;
        texts_schema    = *s.schema.children[i];
        topic->offset    = 0;
        topic->buffers   = buffers;
        topic->n_buffers = 2;
        refused(&s, "column topic is shorter");
        s.schema.children[i]->format     = "i";
        s.schema.children[i]->dictionary = &texts_schema;
        refused(&s, "column topic is shorter");
        topic->dictionary = &texts;
        codes[1]          = 2;
        refused(&s, "column topic has codes beyond its dictionary");
        codes[1] = -1;
        refused(&s, "column topic has codes beyond its dictionary");
        codes[1]     = 1;
        offsets[1]   = -1;
        refused(&s, "column topic has offsets that go back");
        offsets[1]   = 1;
        texts.length = -1;
        refused(&s, "column topic has a damaged dictionary");
        texts.length     = 0;
        texts_buffers[1] = NULL;
        refused(&s, "column topic has codes beyond its dictionary");
        texts.length = 2;
        refused(&s, "column topic has a damaged dictionary");
        texts_buffers[1] = offsets;
        texts_buffers[2] = NULL;
        refused(&s, "column topic has no text");
        s.schema.children[i]->format     = texts_schema.format;
        s.schema.children[i]->dictionary = NULL;
        *topic                           = old;
        spoiled_free(&s);
}

TEST(test_a_slice_with_an_offset_is_read_from_there) {
        rdmeta_fold_t *f = fw_new(NULL);
        rdmeta_fold_stats_t stats;
        spoiled_t s;

        spoiled_init(&s);
        s.batch.offset = 1;
        s.batch.length = 2;
        CHECK(!rdmeta_fold_batch(f, &s.schema, &s.batch));
        rdmeta_fold_stats(f, &stats);
        CHECK(stats.before == 2);
        rdmeta_fold_destroy(f);
        spoiled_free(&s);
}

TEST_MAIN()
