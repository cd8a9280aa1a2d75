#include "support/arrow_fixture.h"

#include <stdarg.h>

void aw_put_bytes(aw_text_t *t, const void *bytes, size_t n) {
        if (t->len + n + 1 > t->capacity) {
                t->capacity = 2 * (t->len + n + 1) + 256;
                t->data     = realloc(t->data, t->capacity);
                CHECK(t->data);
        }
        if (n)
                memcpy(t->data + t->len, bytes, n);
        t->len += n;
        t->data[t->len] = '\0';
}

void aw_put(aw_text_t *t, const char *format, ...) {
        char text[512];
        va_list args;
        int n;

        va_start(args, format);
        n = vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        CHECK(n >= 0 && (size_t)n < sizeof(text));
        aw_put_bytes(t, text, (size_t)n);
}

void aw_free(aw_text_t *t) {
        free(t->data);
        memset(t, 0, sizeof(*t));
}

/* Adds a number; a printf for each would take half of a test's time. */
static void put_number(aw_text_t *t, int64_t number) {
        char text[20];
        size_t i      = sizeof(text);
        uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

        do
                text[--i] = (char)('0' + left % 10);
        while (left /= 10);
        if (number < 0)
                text[--i] = '-';
        aw_put_bytes(t, text + i, sizeof(text) - i);
}

static void put_list(aw_text_t *t, const struct ArrowArrayView *list,
                     int64_t row) {
        const int64_t end = ArrowArrayViewListChildOffset(list, row + 1);
        int64_t i         = ArrowArrayViewListChildOffset(list, row);
        const char *comma = "";

        aw_put_bytes(t, "[", 1);
        for (; i < end; i++, comma = ",") {
                aw_put_bytes(t, comma, strlen(comma));
                put_number(t,
                           ArrowArrayViewGetIntUnsafe(list->children[0], i));
        }
        aw_put_bytes(t, "]", 1);
}

static void put_cell(aw_text_t *t, const struct ArrowArrayView *c,
                     int64_t row) {
        struct ArrowStringView s;

        if (ArrowArrayViewIsNull(c, row)) {
                aw_put_bytes(t, "-", 1);
                return;
        }
        switch (c->storage_type) {
        case NANOARROW_TYPE_STRING:
                s = ArrowArrayViewGetStringUnsafe(c, row);
                aw_put_bytes(t, s.data, (size_t)s.size_bytes);
                break;
        case NANOARROW_TYPE_LIST:
                put_list(t, c, row);
                break;
        case NANOARROW_TYPE_DOUBLE:
                aw_put(t, "%.6f", ArrowArrayViewGetDoubleUnsafe(c, row));
                break;
        default:
                put_number(t, ArrowArrayViewGetIntUnsafe(c, row));
        }
}

/* Checks that null_count is the number of nulls in a column, and returns it. */
static int64_t count_nulls(const struct ArrowArray *a,
                           const struct ArrowArrayView *v) {
        int64_t i, n = 0;

        for (i = 0; i < a->length; i++)
                n += ArrowArrayViewIsNull(v, i);
        CHECK(a->null_count == n);
        CHECK((a->buffers[0] != NULL) == (n > 0));
        return n;
}

void aw_batch(aw_text_t *t, const struct ArrowSchema *schema,
              struct ArrowArray *batch) {
        struct ArrowError error = {{0}};
        struct ArrowArrayView v;
        int64_t row, i;

        CHECK(!ArrowArrayViewInitFromSchema(&v, schema, &error));
        if (ArrowArrayViewSetArray(&v, batch, &error) ||
            ArrowArrayViewValidate(&v, NANOARROW_VALIDATION_LEVEL_FULL,
                                   &error)) {
                fprintf(stderr, "%s\n", error.message);
                CHECK(!"a batch that is valid");
        }
        for (i = 0; i < batch->n_children; i++) {
                CHECK(batch->children[i]->length == batch->length);
                t->nulls += count_nulls(batch->children[i], v.children[i]);
        }
        for (row = 0; row < batch->length; row++)
                for (i = 0; i < v.n_children; i++) {
                        put_cell(t, v.children[i], row);
                        aw_put_bytes(t, i + 1 < v.n_children ? "|" : "\n", 1);
                }
        t->batches++;
        t->rows += batch->length;
        if (batch->length > t->longest)
                t->longest = batch->length;
        ArrowArrayViewReset(&v);
        batch->release(batch);
        CHECK(!batch->release);
}

aw_text_t aw_read(struct ArrowArrayStream *stream) {
        struct ArrowSchema schema;
        struct ArrowArray batch;
        aw_text_t t = {0};
        int again;

        aw_put_bytes(&t, "", 0);
        CHECK(!stream->get_schema(stream, &schema));
        for (;;) {
                CHECK(!stream->get_next(stream, &batch));
                if (!batch.release)
                        break;
                CHECK(batch.length > 0);
                aw_batch(&t, &schema, &batch);
        }
        for (again = 0; again < 2; again++) { /* further calls return the end */
                CHECK(!stream->get_next(stream, &batch));
                CHECK(!batch.release);
        }
        CHECK(!stream->get_last_error(stream));
        schema.release(&schema);
        stream->release(stream);
        CHECK(!stream->release);
        return t;
}

aw_text_t aw_schema(const struct ArrowSchema *schema) {
        aw_text_t t = {0};
        int64_t i;

        for (i = 0; i < schema->n_children; i++) {
                const struct ArrowSchema *c = schema->children[i];
                aw_put(&t, "%s%s:%s", i ? " " : "", c->name, c->format);
                if (c->n_children)
                        aw_put(&t, "<%s>", c->children[0]->format);
                if (c->flags & ARROW_FLAG_NULLABLE)
                        aw_put(&t, "?");
        }
        return t;
}

/* ---- tables of a cache --------------------------------------------------- */

struct ArrowArrayStream aw_open(cw_t *w, rdmeta_reader_t *r, int32_t table,
                                int32_t which) {
        struct ArrowArrayStream s;

        CHECK(!rdmeta_reader_arrow(r, table, which, w->now.mono_us, &s));
        return s;
}

aw_text_t aw_table(cw_t *w, int32_t table) {
        struct ArrowArrayStream s =
                aw_open(w, w->reader, table, RDMETA_WALK_VALID);
        return aw_read(&s);
}

void aw_check(cw_t *w, rdmeta_reader_t *r, int32_t table, int32_t which,
              const char *wanted) {
        struct ArrowArrayStream s = aw_open(w, r, table, which);
        aw_text_t t               = aw_read(&s);

        CHECK_TEXT(t.data, wanted);
        aw_free(&t);
}

/* ---- the same rows, made from a reader's calls --------------------------- */

enum { IDS = 256 };

typedef struct naive {
        cw_t *w;
        rdmeta_reader_t *reader;
        int32_t table;
        int stale_ok;
        aw_text_t text;
} naive_t;

static void naive_name(naive_t *n, const rdmeta_topic_info_t *info) {
        char id[RDMETA_ARROW_ID];
        int i, known = 0;

        for (i = 0; i < 16; i++)
                known |= info->topic_id[i];
        rdmeta_text_id(id, info->topic_id);
        aw_put_bytes(&n->text, info->name.data, info->name.len);
        aw_put(&n->text, "|%.*s|", known ? (int)sizeof(id) : 1,
               known ? id : "-");
}

static void naive_ids(naive_t *n, const rdmeta_ids_out_t *l) {
        uint32_t i;

        CHECK(l->count <= l->capacity);
        for (i = 0; i < l->count; i++)
                aw_put(&n->text, "%s%d", i ? "," : "[", l->ids[i]);
        aw_put(&n->text, l->count ? "]|" : "[]|");
}

static void naive_some(naive_t *n, int32_t value) {
        if (value < 0)
                aw_put(&n->text, "-|");
        else
                aw_put(&n->text, "%d|", value);
}

static int has(const rdmeta_ids_out_t *l, int32_t id) {
        uint32_t i;

        for (i = 0; i < l->count; i++)
                if (l->ids[i] == id)
                        return 1;
        return 0;
}

static void naive_partition(naive_t *n, const rdmeta_topic_info_t *info,
                            const rdmeta_partition_t *p, int32_t leader) {
        naive_name(n, info);
        aw_put(&n->text, "%d|", p->partition);
        naive_some(n, leader);
        naive_some(n, p->leader_epoch);
        naive_ids(n, &p->replicas);
        naive_ids(n, &p->isr);
        naive_ids(n, &p->offline_replicas);
        aw_put(&n->text, "%d|%d|%d|%d\n", p->error, p->unreachable,
               p->leader < 0, info->state == RDMETA_STALE);
}

static void naive_replicas(naive_t *n, const rdmeta_topic_info_t *info,
                           const rdmeta_partition_t *p, int32_t leader) {
        uint32_t i;

        for (i = 0; i < p->replicas.count; i++) {
                const int32_t id = p->replicas.ids[i];
                naive_name(n, info);
                aw_put(&n->text, "%d|%d|%u|%d|%d|%d|%d\n", p->partition, id,
                       i, id == leader, has(&p->isr, id),
                       has(&p->offline_replicas, id), i == 0);
        }
}

static int32_t naive_topic(void *opaque, const rdmeta_topic_t *topic) {
        naive_t *n = opaque;
        int32_t ids[3][IDS];
        rdmeta_partition_t p = {.replicas = {ids[0], IDS, 0},
                                .isr = {ids[1], IDS, 0},
                                .offline_replicas = {ids[2], IDS, 0}};
        rdmeta_topic_info_t info;
        uint32_t i;

        rdmeta_topic_info(n->reader, topic, n->w->now.mono_us, &info);
        for (i = 0; i < info.partitions; i++) {
                CHECK(!rdmeta_topic_partition_at(n->reader, topic, i, &p));
                (n->table == RDMETA_ARROW_REPLICAS ? naive_replicas
                                                   : naive_partition)(
                        n, &info, &p, n->stale_ok ? p.last_leader : p.leader);
        }
        return 0;
}

void aw_check_as_read(cw_t *w, int32_t table, int stale) {
        const int32_t which = RDMETA_WALK_VALID |
                              (stale ? RDMETA_WALK_STALE : 0);
        naive_t n = {w, stale ? w->stale : w->reader, table, stale, {0}};

        aw_put_bytes(&n.text, "", 0);
        CHECK(!rdmeta_reader_walk(n.reader, "", 0, which, w->now.mono_us,
                                  naive_topic, &n));
        aw_check(w, n.reader, table, which, n.text.data);
        aw_free(&n.text);
}

void aw_say(cw_t *w, const gen_cluster_t *cluster) {
        const rdmeta_request_t r = cw_request(w, RDMETA_ASKED_UNKNOWN);
        gen_bytes_t body         = {0};

        gen_response(cluster, w->api_version, &body);
        CHECK(!cw_apply(w, body.data, body.len, &r));
        gen_bytes_free(&body);
}

gen_cluster_t *aw_cluster(uint64_t seed, uint32_t topics, uint32_t partitions,
                          int32_t first) {
        gen_shape_t shape = {.seed = seed, .brokers = 5,
                             .first_broker = first, .topics = topics,
                             .partitions = partitions, .replication = 3};
        return gen_cluster_new(&shape);
}
