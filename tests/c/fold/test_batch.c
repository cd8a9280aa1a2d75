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

#define SPOILED_TEST(name)                                                   \
        TEST_BETWEEN(name, spoiled_t, spoiled_init(&w), spoiled_free(&w))

/* Each of these sets a number of a column, and puts it back. */
SPOILED_TEST(test_impossible_lengths_are_refused) {
        const int64_t lengths[] = {-1, 2, INT64_MIN};
        const int64_t offsets[] = {-1, INT64_MAX, INT64_MAX / 16, INT64_MIN};
        size_t i;

        for (i = 0; i < 3; i++) {
                column(w, "topic")->length = lengths[i];
                refused(w, "column topic is shorter");
        }
        column(w, "topic")->length = 3;
        for (i = 0; i < 4; i++) {
                column(w, "version")->offset = offsets[i];
                refused(w, "column version is shorter");
                column(w, "version")->offset = 0;
                w->batch.offset                = offsets[i];
                refused(w, "");
                w->batch.offset = 0;
        }
        w->batch.length = -1;
        refused(w, "impossible length");
        w->batch.length = INT64_MAX;
        refused(w, "");
        w->batch.length = 4;
        refused(w, "column version is shorter");
        w->batch.length = 3;
        w->batch.n_children--;
        refused(w, "no table");
        w->batch.n_children++;
        column(w, "kind")->n_buffers = 2;
        refused(w, "column kind is shorter");
        column(w, "kind")->n_buffers = 3;
}

SPOILED_TEST(test_offsets_that_go_back_are_refused) {
        const char *const names[] = {"topic", "new_isr", "kind"};
        size_t i;

        for (i = 0; i < 3; i++) {
                int32_t *offsets = (int32_t *)(uintptr_t)column(w, names[i])
                                           ->buffers[1];
                const int32_t old = offsets[1];

                offsets[1] = -7;
                refused(w, "offsets that go back");
                offsets[1] = INT32_MAX;
                refused(w, "offsets that go back");
                offsets[1] = old;
        }
}

SPOILED_TEST(test_lists_beyond_their_values_are_refused) {
        struct ArrowArray *ids;

        ids         = column(w, "new_isr")->children[0];
        ids->length = 3;
        refused(w, "column new_isr has lists beyond its values");
        ids->length = -1;
        refused(w, "column new_isr has lists beyond its values");
        ids->length                       = 6;
        column(w, "new_isr")->n_children = 0;
        refused(w, "column new_isr has lists beyond its values");
        column(w, "new_isr")->n_children = 1;
}

SPOILED_TEST(test_missing_buffers_are_refused) {
        const char *const names[] = {"version", "topic", "new_isr"};
        const void *old;
        size_t i;

        for (i = 0; i < 3; i++) {
                old = column(w, names[i])->buffers[1];
                column(w, names[i])->buffers[1] = NULL;
                refused(w, "has no values");
                column(w, names[i])->buffers[1] = old;
        }
        old                           = column(w, "kind")->buffers[2];
        column(w, "kind")->buffers[2] = NULL;
        refused(w, "column kind has no text");
        column(w, "kind")->buffers[2] = old;
}

SPOILED_TEST(test_a_batch_that_is_no_table_is_refused) {
        const char *format;

        format          = w->schema.format;
        w->schema.format = "l";
        refused(w, "no table");
        w->schema.format = NULL;
        refused(w, "no table");
        w->schema.format = format;
}

SPOILED_TEST(test_a_dictionary_that_contradicts_its_codes_is_refused) {
        int32_t codes[]             = {0, 1, 0};
        int32_t offsets[]           = {0, 1, 2};
        const void *buffers[]       = {NULL, codes};
        const void *texts_buffers[] = {NULL, offsets, "tu"};
        struct ArrowArray texts, *topic, old;
        struct ArrowSchema texts_schema;
        int64_t i = 0;

        while (strcmp(w->schema.children[i]->name, "topic"))
                i++;
        topic           = w->batch.children[i];
        old             = *topic;
        texts           = old;
        texts.buffers   = texts_buffers;
        texts.length    = 2;
        texts.offset    = 0;
        texts_schema    = *w->schema.children[i];
        topic->offset    = 0;
        topic->buffers   = buffers;
        topic->n_buffers = 2;
        refused(w, "column topic is shorter");
        w->schema.children[i]->format     = "i";
        w->schema.children[i]->dictionary = &texts_schema;
        refused(w, "column topic is shorter");
        topic->dictionary = &texts;
        codes[1]          = 2;
        refused(w, "column topic has codes beyond its dictionary");
        codes[1] = -1;
        refused(w, "column topic has codes beyond its dictionary");
        codes[1]     = 1;
        offsets[1]   = -1;
        refused(w, "column topic has offsets that go back");
        offsets[1]   = 1;
        texts.length = -1;
        refused(w, "column topic has a damaged dictionary");
        texts.length     = 0;
        texts_buffers[1] = NULL;
        refused(w, "column topic has codes beyond its dictionary");
        texts.length = 2;
        refused(w, "column topic has a damaged dictionary");
        texts_buffers[1] = offsets;
        texts_buffers[2] = NULL;
        refused(w, "column topic has no text");
        w->schema.children[i]->format     = texts_schema.format;
        w->schema.children[i]->dictionary = NULL;
        *topic                           = old;
}

SPOILED_TEST(test_a_slice_with_an_offset_is_read_from_there) {
        rdmeta_fold_t *f = fw_new(NULL);
        rdmeta_fold_stats_t stats;

        w->batch.offset = 1;
        w->batch.length = 2;
        CHECK(!rdmeta_fold_batch(f, &w->schema, &w->batch));
        rdmeta_fold_stats(f, &stats);
        CHECK(stats.before == 2);
        rdmeta_fold_destroy(f);
}

TEST_MAIN()
