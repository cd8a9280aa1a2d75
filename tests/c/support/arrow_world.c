#include "support/arrow_world.h"

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

static void put_list(aw_text_t *t, const struct ArrowArrayView *list,
                     int64_t row) {
        const int64_t end = ArrowArrayViewListChildOffset(list, row + 1);
        int64_t i         = ArrowArrayViewListChildOffset(list, row);
        const char *comma = "";

        aw_put_bytes(t, "[", 1);
        for (; i < end; i++, comma = ",")
                aw_put(t, "%s%" PRId64, comma,
                       ArrowArrayViewGetIntUnsafe(list->children[0], i));
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
                aw_put(t, "%" PRId64, ArrowArrayViewGetIntUnsafe(c, row));
        }
}

/* Nulls that a column tells of are those that it has. */
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
        for (again = 0; again < 2; again++) { /* the end stays the end */
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
