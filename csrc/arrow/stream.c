#include "arrow/stream.h"

#include "arrow/rows.h"

#include <errno.h>

/* ---- streams ------------------------------------------------------------- */

static rdmeta_arrow_source_t *source_of(struct ArrowArrayStream *stream) {
        return (rdmeta_arrow_source_t *)stream->private_data;
}

/* Stores the error of a call. Returns it as an errno, as streams do. */
static int set_error(rdmeta_arrow_source_t *s, rdmeta_err_t err) {
        s->error = err;
        if (!err)
                return 0;
        return err == RDMETA_ERR_NO_MEMORY ? ENOMEM : EIO;
}

static int stream_schema(struct ArrowArrayStream *stream,
                         struct ArrowSchema *out) {
        rdmeta_arrow_source_t *s = source_of(stream);

        return set_error(s, rdmeta_arrow_schema(s->table, out));
}

static int stream_next(struct ArrowArrayStream *stream,
                       struct ArrowArray *out) {
        rdmeta_arrow_source_t *s = source_of(stream);

        return set_error(s, s->next(s, out));
}

static const char *stream_error(struct ArrowArrayStream *stream) {
        const rdmeta_arrow_source_t *s = source_of(stream);

        return s->error ? rdmeta_err_name(s->error) : NULL;
}

static void stream_release(struct ArrowArrayStream *stream) {
        rdmeta_arrow_source_t *s = source_of(stream);

        s->destroy(s);
        stream->release = NULL;
}

void rdmeta_arrow_stream_init(struct ArrowArrayStream *out,
                              rdmeta_arrow_source_t *s) {
        out->get_schema     = stream_schema;
        out->get_next       = stream_next;
        out->get_last_error = stream_error;
        out->release        = stream_release;
        out->private_data   = s;
}

/* ---- tables of a reader -------------------------------------------------- */

typedef struct table {
        rdmeta_arrow_source_t source; /* first */
        rdmeta_arrow_rows_t rows;
        size_t capacity; /* of rows.topics */
} table_t;

/* Releases the image and the list of topics, at the latest after the last
 * row. */
static void table_close(table_t *t) {
        free(t->rows.topics);
        t->rows.topics  = NULL;
        t->rows.n       = 0;
        t->rows.at.item = 0;
        rdmeta_reader_destroy(t->rows.reader);
        t->rows.reader = NULL;
}

static rdmeta_err_t table_next(rdmeta_arrow_source_t *s,
                               struct ArrowArray *out) {
        table_t *t = (table_t *)(void *)s;
        rdmeta_err_t err;

        out->release = NULL;
        if (!t->rows.reader)
                return RDMETA_OK;
        err = rdmeta_arrow_rows_next(&t->rows, out);
        if (!err && !out->release)
                table_close(t);
        return err;
}

static void table_destroy(rdmeta_arrow_source_t *s) {
        table_close((table_t *)(void *)s);
        free(s);
}

static int32_t table_add(void *opaque, const rdmeta_topic_t *topic) {
        table_t *t = (table_t *)opaque;

        if (t->rows.n == t->capacity) {
                const size_t capacity = 2 * t->capacity + 64;
                const rdmeta_topic_t **grown =
                        (const rdmeta_topic_t **)realloc(
                                t->rows.topics, capacity * sizeof(*grown));
                if (!grown)
                        return RDMETA_ERR_NO_MEMORY;
                t->rows.topics = grown;
                t->capacity    = capacity;
        }
        t->rows.topics[t->rows.n++] = topic;
        return 0;
}

/* Makes the table's reader. It reads the image of `r`, or one taken now.
 * Returns NO_MEMORY. */
static rdmeta_err_t table_reader(table_t *t, rdmeta_reader_t *r) {
        const int32_t flags     = r->stale_ok ? RDMETA_ALLOW_STALE : 0;
        const rdmeta_time_t now = {t->rows.mono_us, 0};
        rdmeta_image_info_t info;
        rdmeta_image_t *image = rdmeta_reader_image(r, now);

        if (!image)
                return RDMETA_ERR_NO_MEMORY;
        rdmeta_image_info(image, &info);
        t->rows.max_age_us = info.max_age_us;
        t->rows.reader     = rdmeta_image_reader(image, flags);
        rdmeta_image_unref(image);
        return t->rows.reader ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
}

static rdmeta_err_t table_open(table_t *t, rdmeta_reader_t *r) {
        const rdmeta_err_t err = table_reader(t, r);

        if (err)
                return err;
        if (t->rows.table == RDMETA_ARROW_BROKERS) {
                t->rows.n = rdmeta_brokers_count(
                        rdmeta_brokers(t->rows.reader));
                return RDMETA_OK;
        }
        if (t->rows.table != RDMETA_ARROW_TOPICS)
                t->rows.which &= ~RDMETA_WALK_NEGATIVE;
        return rdmeta_reader_walk(t->rows.reader, "", 0, t->rows.which,
                                  t->rows.mono_us, table_add, t);
}

rdmeta_err_t rdmeta_reader_arrow(rdmeta_reader_t *reader, int32_t table,
                                 int32_t which, int64_t mono_us,
                                 struct ArrowArrayStream *out) {
        rdmeta_err_t err;
        table_t *t;

        if (!reader || !out || table < 0 || table > RDMETA_ARROW_REPLICAS)
                return RDMETA_ERR_ARGUMENT;
        t = (table_t *)calloc(1, sizeof(*t));
        if (!t)
                return RDMETA_ERR_NO_MEMORY;
        t->source.table   = t->rows.table = table;
        t->source.next    = table_next;
        t->source.destroy = table_destroy;
        t->rows.which     = which;
        t->rows.mono_us   = mono_us;
        err               = table_open(t, reader);
        if (err)
                table_destroy(&t->source);
        else
                rdmeta_arrow_stream_init(out, &t->source);
        return err;
}
