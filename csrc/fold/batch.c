#include "fold/batch.h"

#include "fold/row.h"
#include "topic/diff_table.h"

/* The columns that a fold reads. */
enum {
        VERSION,
        OBSERVED_AT,
        SOURCE,
        SOURCE_BROKER,
        KIND,
        TOPIC,
        TOPIC_ID,
        PARTITION,
        BROKER,
        OLD_LEADER,
        NEW_LEADER,
        OLD_LEADER_EPOCH,
        NEW_LEADER_EPOCH,
        OLD_ISR,
        NEW_ISR,
        OLD_REPLICAS,
        NEW_REPLICAS,
        OLD_OFFLINE,
        NEW_OFFLINE,
        OFFSET,
        DETAIL,
        UNSEEN_US,
        PARTITION_EPOCH,
        BROKER_EPOCH,
        NEW_ADDING,
        NEW_REMOVING,
        NEW_ELR,
        COLUMNS
};

static const rdmeta_arrow_field_t fields[COLUMNS] = {
        [VERSION]          = {"version", RDMETA_ARROW_INT64, 0},
        [OBSERVED_AT]      = {"observed_at", RDMETA_ARROW_TIME, 0},
        [SOURCE]           = {"source", RDMETA_ARROW_STRING, 1},
        [SOURCE_BROKER]    = {"source_broker", RDMETA_ARROW_INT32, 1},
        [KIND]             = {"kind", RDMETA_ARROW_STRING, 0},
        [TOPIC]            = {"topic", RDMETA_ARROW_STRING, 1},
        [TOPIC_ID]         = {"topic_id", RDMETA_ARROW_STRING, 1},
        [PARTITION]        = {"partition", RDMETA_ARROW_INT32, 1},
        [BROKER]           = {"broker", RDMETA_ARROW_INT32, 1},
        [OLD_LEADER]       = {"old_leader", RDMETA_ARROW_INT32, 1},
        [NEW_LEADER]       = {"new_leader", RDMETA_ARROW_INT32, 1},
        [OLD_LEADER_EPOCH] = {"old_leader_epoch", RDMETA_ARROW_INT32, 1},
        [NEW_LEADER_EPOCH] = {"new_leader_epoch", RDMETA_ARROW_INT32, 1},
        [OLD_ISR]          = {"old_isr", RDMETA_ARROW_IDS, 1},
        [NEW_ISR]          = {"new_isr", RDMETA_ARROW_IDS, 1},
        [OLD_REPLICAS]     = {"old_replicas", RDMETA_ARROW_IDS, 1},
        [NEW_REPLICAS]     = {"new_replicas", RDMETA_ARROW_IDS, 1},
        [OLD_OFFLINE]      = {"old_offline", RDMETA_ARROW_IDS, 1},
        [NEW_OFFLINE]      = {"new_offline", RDMETA_ARROW_IDS, 1},
        [OFFSET]           = {"offset", RDMETA_ARROW_INT64, 1},
        [DETAIL]           = {"detail", RDMETA_ARROW_STRING, 1},
        [UNSEEN_US]        = {"unseen_us", RDMETA_ARROW_INT64, 1},
        [PARTITION_EPOCH]  = {"partition_epoch", RDMETA_ARROW_INT32, 1},
        [BROKER_EPOCH]     = {"broker_epoch", RDMETA_ARROW_INT64, 1},
        [NEW_ADDING]       = {"new_adding", RDMETA_ARROW_IDS, 1},
        [NEW_REMOVING]     = {"new_removing", RDMETA_ARROW_IDS, 1},
        [NEW_ELR]          = {"new_elr", RDMETA_ARROW_IDS, 1}};

/* One column. Each pointer is to the value of the batch's first record. The
 * bits begin `bit` bits into their first byte. */
typedef struct column {
        const uint8_t *valid; /* NULL: no value is null */
        int64_t bit;
        const char *values; /* numbers; NULL: the column is not there */
        const int32_t *codes; /* NULL: the texts are in no dictionary */
        const int32_t *offsets;
        const char *bytes; /* of texts */
        const int32_t *ids;
} column_t;

typedef struct reader {
        column_t columns[COLUMNS];
} reader_t;

/* ---- checks -------------------------------------------------------------- */

static rdmeta_err_t bad(rdmeta_fold_t *f, int i, const char *what) {
        return rdmeta_fold_wrong(f, RDMETA_ERR_ARGUMENT, "column %s %s",
                                 fields[i].name, what);
}

static int type_is(const struct ArrowSchema *s, rdmeta_arrow_type_t type) {
        const char *format = s->format;

        if (type == RDMETA_ARROW_STRING && s->dictionary)
                return format && !strcmp(format, "i") &&
                       !s->dictionary->dictionary &&
                       type_is(s->dictionary, type);
        if (!format || !s->release || s->dictionary)
                return 0;
        switch (type) {
        case RDMETA_ARROW_INT32:
                return !strcmp(format, "i");
        case RDMETA_ARROW_INT64:
                return !strcmp(format, "l");
        case RDMETA_ARROW_STRING:
                return !strcmp(format, "u");
        case RDMETA_ARROW_TIME:
                return !strncmp(format, "tsu:", 4);
        default:
                return !strcmp(format, "+l") && s->n_children == 1 &&
                       s->children && s->children[0] &&
                       type_is(s->children[0], RDMETA_ARROW_INT32);
        }
}

/* Returns whether an array of the right shape has `n` rows from `from` on. Sets
 * *at to the place of the first one in its buffers. */
static int rows_are_there(const struct ArrowArray *a, int64_t buffers,
                          int64_t from, int64_t n, int64_t *at) {
        if (!a || !a->release || a->length < 0 || a->offset < 0 ||
            a->n_buffers != buffers || !a->buffers || a->length < from ||
            a->length - from < n || a->offset > INT64_MAX / 16 - a->length)
                return 0;
        *at = a->offset + from;
        return 1;
}

/* Returns how many of `n` values from `at` on are not null. */
static int64_t count_values(const struct ArrowArray *a, int64_t at,
                            int64_t n) {
        const uint8_t *bits = (const uint8_t *)a->buffers[0];

        return bits && a->null_count ? ArrowBitCountSet(bits, at, n) : n;
}

static int has_null(const struct ArrowArray *a, int64_t at, int64_t n) {
        return count_values(a, at, n) < n;
}

/* Checks the offsets of n texts or lists. Returns 0 if they contradict each
 * other. */
static int offsets_are_good(const int32_t *offsets, int64_t n) {
        int bad_ones = offsets[0] < 0;
        int64_t i;

        for (i = 0; i < n; i++)
                bad_ones |= offsets[i + 1] < offsets[i];
        return !bad_ones;
}

/* Opens `n` lists of an array, the first of which has the place `place`. */
static rdmeta_err_t ids_open(rdmeta_fold_t *f, column_t *c, int i,
                             const struct ArrowArray *a, int64_t place,
                             int64_t n) {
        const struct ArrowArray *ids =
                a->n_children == 1 && a->children ? a->children[0] : NULL;
        const int32_t *offsets = (const int32_t *)a->buffers[1] + place;
        const int64_t first = offsets[0], last = offsets[n];
        int64_t at;

        if (!offsets_are_good(offsets, n))
                return bad(f, i, "has offsets that go back");
        if (!rows_are_there(ids, 2, first, last - first, &at))
                return bad(f, i, "has lists beyond its values");
        if (last > first && !ids->buffers[1])
                return bad(f, i, "has no values");
        if (has_null(ids, at, last - first))
                return bad(f, i, "has a null in a list");
        c->ids = (const int32_t *)ids->buffers[1];
        if (c->ids)
                c->ids += ids->offset;
        c->offsets = offsets;
        return RDMETA_OK;
}

/* Opens `n` texts of an array, the first of which has the place `at`. */
static rdmeta_err_t texts_open(rdmeta_fold_t *f, column_t *c, int i,
                               const struct ArrowArray *a, int64_t at,
                               int64_t n) {
        c->offsets = (const int32_t *)a->buffers[1] + at;
        if (!offsets_are_good(c->offsets, n))
                return bad(f, i, "has offsets that go back");
        c->bytes = (const char *)a->buffers[2];
        if (!c->bytes && c->offsets[n])
                return bad(f, i, "has no text");
        return RDMETA_OK;
}

/* Returns whether n rows have codes of a dictionary with `texts` texts. A null
 * may have any code. */
static int codes_are_good(const column_t *c, int64_t n, int64_t texts) {
        int64_t i;

        for (i = 0; i < n; i++)
                if ((int64_t)(uint32_t)c->codes[i] >= texts &&
                    (!c->valid || ArrowBitGet(c->valid, c->bit + i)))
                        return 0;
        return 1;
}

/* Opens a column of `n` codes, and the texts of its dictionary. */
static rdmeta_err_t dictionary_open(rdmeta_fold_t *f, column_t *c, int i,
                                    const struct ArrowArray *texts,
                                    int64_t n) {
        int64_t at;

        if (!texts || !rows_are_there(texts, 3, 0, texts->length, &at) ||
            (texts->length && !texts->buffers[1]))
                return bad(f, i, "has a damaged dictionary");
        if (has_null(texts, at, texts->length))
                return bad(f, i, "has a null in its dictionary");
        c->codes = (const int32_t *)(const void *)c->values;
        if (!codes_are_good(c, n, texts->length))
                return bad(f, i, "has codes beyond its dictionary");
        return texts->length ? texts_open(f, c, i, texts, at, texts->length)
                             : RDMETA_OK;
}

/* Opens n rows from `from` on. `coded`: the schema says that the column is a
 * dictionary's. */
static rdmeta_err_t column_open(rdmeta_fold_t *f, column_t *c, int i,
                                const struct ArrowArray *a, int coded,
                                int64_t from, int64_t n) {
        const rdmeta_arrow_type_t type = fields[i].type;
        const int is_text  = type == RDMETA_ARROW_STRING && !coded;
        const int is_short = type == RDMETA_ARROW_INT32 || coded;
        rdmeta_err_t err   = RDMETA_OK;
        int64_t at, values;

        c->values = "";
        if (!rows_are_there(a, is_text ? 3 : 2, from, n, &at) ||
            coded != (a->dictionary != NULL))
                return bad(f, i, "is shorter than its batch, or damaged");
        if (!n)
                return RDMETA_OK;
        if (!a->buffers[1])
                return bad(f, i, "has no values");
        values = count_values(a, at, n);
        if (values < n) {
                c->valid = (const uint8_t *)a->buffers[0] + at / 8;
                c->bit   = at % 8;
        }
        if (!is_text && type != RDMETA_ARROW_IDS)
                c->values = (const char *)a->buffers[1] +
                            (is_short ? 4 : 8) * at;
        if (is_text)
                err = texts_open(f, c, i, a, at, n);
        else if (type == RDMETA_ARROW_IDS)
                err = ids_open(f, c, i, a, at, n);
        else if (coded)
                err = dictionary_open(f, c, i, a->dictionary, n);
        if (!values) /* as if the column were not there, which costs less */
                c->values = NULL;
        return err;
}

/* Finds a column by its name; -1: it is not there. */
static int64_t find(const struct ArrowSchema *schema, const char *name) {
        int64_t i;

        for (i = 0; i < schema->n_children; i++)
                if (schema->children[i] && schema->children[i]->name &&
                    !strcmp(schema->children[i]->name, name))
                        return i;
        return -1;
}

static rdmeta_err_t batch_check(rdmeta_fold_t *f,
                                const struct ArrowSchema *schema,
                                const struct ArrowArray *batch) {
        if (schema && batch && (!schema->release || !batch->release))
                return rdmeta_fold_wrong(f, RDMETA_ERR_ARGUMENT,
                                         "the batch was released, or read"
                                         " before: pass it anew");
        if (!schema || !batch || !schema->format ||
            strcmp(schema->format, "+s") || schema->n_children < 0 ||
            (schema->n_children && (!schema->children || !batch->children)) ||
            batch->n_children != schema->n_children)
                return rdmeta_fold_wrong(f, RDMETA_ERR_ARGUMENT,
                                         "the batch is no table of columns");
        if (batch->length < 0 || batch->offset < 0 ||
            batch->offset > INT64_MAX / 16 - batch->length)
                return rdmeta_fold_wrong(f, RDMETA_ERR_ARGUMENT,
                                         "the batch has an impossible length");
        if (batch->n_buffers > 0 && batch->buffers &&
            has_null(batch, batch->offset, batch->length))
                return rdmeta_fold_wrong(f, RDMETA_ERR_ARGUMENT,
                                         "the batch has a row that is null");
        return RDMETA_OK;
}

static rdmeta_err_t batch_open(rdmeta_fold_t *f, reader_t *r,
                               const struct ArrowSchema *schema,
                               const struct ArrowArray *batch) {
        rdmeta_err_t err = batch_check(f, schema, batch);
        int i;

        memset(r, 0, sizeof(*r));
        for (i = 0; i < COLUMNS && !err; i++) {
                const int64_t k = find(schema, fields[i].name);

                if (k < 0 && !fields[i].nullable)
                        err = bad(f, i, "is missing");
                if (k < 0)
                        continue;
                if (!type_is(schema->children[k], fields[i].type))
                        err = bad(f, i, "has another type");
                else
                        err = column_open(f, &r->columns[i], i,
                                          batch->children[k],
                                          schema->children[k]->dictionary !=
                                                  NULL,
                                          batch->offset, batch->length);
        }
        return err;
}

/* ---- values -------------------------------------------------------------- */

static int is_null(const column_t *c, int64_t row) {
        return !c->values ||
               (c->valid && !ArrowBitGet(c->valid, c->bit + row));
}

static int64_t get_int64(const reader_t *r, int i, int64_t row) {
        const column_t *c = &r->columns[i];
        int64_t value;

        if (is_null(c, row))
                return -1;
        memcpy(&value, c->values + 8 * row, 8);
        return value;
}

static int64_t get_some64(const reader_t *r, int i, int64_t row) {
        const int64_t value = get_int64(r, i, row);

        return value < 0 ? -1 : value;
}

/* Returns a number; -1: null, or negative. */
static int32_t get_int32(const reader_t *r, int i, int64_t row) {
        const column_t *c = &r->columns[i];
        int32_t value;

        if (is_null(c, row))
                return -1;
        memcpy(&value, c->values + 4 * row, 4);
        return value < 0 ? -1 : value;
}

static rdmeta_str_t get_text(const reader_t *r, int i, int64_t row) {
        const column_t *c = &r->columns[i];
        rdmeta_str_t s    = {NULL, 0};

        if (is_null(c, row))
                return s;
        if (c->codes)
                row = c->codes[row];
        s.len  = (size_t)(c->offsets[row + 1] - c->offsets[row]);
        s.data = s.len ? c->bytes + c->offsets[row] : "";
        return s;
}

static rdmeta_ids_t get_ids(const reader_t *r, int i, int64_t row) {
        static const int32_t none = 0;
        const column_t *c         = &r->columns[i];
        rdmeta_ids_t ids          = {NULL, 0};

        if (is_null(c, row))
                return ids;
        ids.count = (uint32_t)(c->offsets[row + 1] - c->offsets[row]);
        ids.ids   = ids.count ? c->ids + c->offsets[row] : &none;
        return ids;
}

/* Returns the place of a name; -1: it is none of these. */
static int32_t number_of(rdmeta_str_t name, const rdmeta_str_t *names,
                         int32_t n) {
        int32_t i;

        for (i = 0; name.data && i < n; i++)
                if (names[i].len == name.len &&
                    !memcmp(names[i].data, name.data, name.len))
                        return i;
        return -1;
}

#define NAME(text) {text, sizeof(text) - 1},
#define LENGTH(names) (int32_t)(sizeof(names) / sizeof((names)[0]))

static int32_t kind_of(rdmeta_str_t name) {
        static const rdmeta_str_t names[] = {RDMETA_KIND_NAMES(NAME)};

        return number_of(name, names, LENGTH(names));
}

static int32_t source_of(rdmeta_str_t name) {
        static const rdmeta_str_t names[] = {RDMETA_SOURCE_NAMES(NAME)};

        return number_of(name, names, LENGTH(names));
}

/* Reads what most records have. */
static void row_get(const reader_t *r, int64_t i, rdmeta_fold_row_t *row) {
        memset(row, 0, sizeof(*row));
        row->version       = get_int64(r, VERSION, i);
        row->at            = get_int64(r, OBSERVED_AT, i);
        row->unseen        = get_int64(r, UNSEEN_US, i);
        row->offset        = get_int64(r, OFFSET, i);
        row->name          = get_text(r, KIND, i);
        row->kind          = kind_of(row->name);
        row->source        = source_of(get_text(r, SOURCE, i));
        row->source_broker = get_int32(r, SOURCE_BROKER, i);
        row->topic         = get_text(r, TOPIC, i);
        row->topic_id      = get_text(r, TOPIC_ID, i);
        row->partition     = get_int32(r, PARTITION, i);
        row->broker        = get_int32(r, BROKER, i);
        row->old_leader    = get_int32(r, OLD_LEADER, i);
        row->new_leader    = get_int32(r, NEW_LEADER, i);
        row->old_epoch     = get_int32(r, OLD_LEADER_EPOCH, i);
        row->new_epoch     = get_int32(r, NEW_LEADER_EPOCH, i);
        row->partition_epoch = get_int32(r, PARTITION_EPOCH, i);
}

/* Reads what a change of leader has not. */
static void row_get_more(const reader_t *r, int64_t i,
                         rdmeta_fold_row_t *row) {
        row->old_isr      = get_ids(r, OLD_ISR, i);
        row->new_isr      = get_ids(r, NEW_ISR, i);
        row->old_replicas = get_ids(r, OLD_REPLICAS, i);
        row->new_replicas = get_ids(r, NEW_REPLICAS, i);
        row->old_offline  = get_ids(r, OLD_OFFLINE, i);
        row->new_offline  = get_ids(r, NEW_OFFLINE, i);
        row->detail       = get_text(r, DETAIL, i);
        row->broker_epoch = get_some64(r, BROKER_EPOCH, i);
        row->new_adding   = get_ids(r, NEW_ADDING, i);
        row->new_removing = get_ids(r, NEW_REMOVING, i);
        row->new_elr      = get_ids(r, NEW_ELR, i);
}

static rdmeta_err_t null_in(rdmeta_fold_t *f, int i, int64_t row) {
        return rdmeta_fold_wrong(f, RDMETA_ERR_MALFORMED,
                                 "column %s is null in row %lld of the batch",
                                 fields[i].name, (long long)row);
}

static rdmeta_err_t take(rdmeta_fold_t *f, const reader_t *r, int64_t i) {
        rdmeta_fold_row_t row;

        row_get(r, i, &row);
        if (is_null(&r->columns[VERSION], i))
                return null_in(f, VERSION, i);
        if (is_null(&r->columns[OBSERVED_AT], i))
                return null_in(f, OBSERVED_AT, i);
        if (!row.name.data)
                return null_in(f, KIND, i);
        if (row.kind != RDMETA_LEADER_CHANGED)
                row_get_more(r, i, &row);
        return rdmeta_fold_row(f, &row);
}

/* Returns whether more rows wait than the fold may have. */
static int is_full(const rdmeta_fold_t *f) {
        return f->most_waiting && rdmeta_fold_waiting(f) > f->most_waiting;
}

rdmeta_err_t rdmeta_fold_take_batch(rdmeta_fold_t *f,
                                    const struct ArrowSchema *schema,
                                    const struct ArrowArray *batch) {
        reader_t r;
        rdmeta_err_t err = batch_open(f, &r, schema, batch);
        int64_t i;

        for (i = 0; !err && i < batch->length; i++)
                err = i && is_full(f) ? RDMETA_ERR_TOO_SMALL : take(f, &r, i);
        return err;
}
