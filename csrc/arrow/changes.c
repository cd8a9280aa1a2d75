#include "arrow/batch.h"
#include "arrow/stream.h"
#include "arrow/text.h"
#include "topic/diff_table.h"

#define PLACE(name, type) C_##name,

enum { RDMETA_CHANGE_COLUMNS(PLACE) };

/* Change records as columns: the finished batches, and the one that grows. */
struct rdmeta_arrow_changes {
        rdmeta_arrow_source_t source; /* first: a stream casts from it */
        rdmeta_arrow_batch_t batch;   /* grows */
        struct ArrowArray *done;      /* finished batches: `n` of them */
        size_t n, capacity;
        size_t returned; /* how many of `done` the stream has returned */
        rdmeta_str_t session;
        char session_text[]; /* as UTF-8 */
};

rdmeta_arrow_changes_t *rdmeta_arrow_changes_new(const char *session) {
        const size_t len  = session ? strlen(session) : 0;
        const size_t size = session ? rdmeta_text_size(session, len) : 0;
        rdmeta_arrow_changes_t *c;

        c = (rdmeta_arrow_changes_t *)calloc(1, sizeof(*c) + size + 1);
        if (!c)
                return NULL;
        if (session) {
                rdmeta_text_copy(c->session_text, size, session, len);
                c->session.data = c->session_text;
                c->session.len  = size;
        }
        c->source.table = RDMETA_ARROW_CHANGES;
        rdmeta_arrow_batch_init(&c->batch, RDMETA_ARROW_CHANGES);
        return c;
}

void rdmeta_arrow_changes_destroy(rdmeta_arrow_changes_t *c) {
        size_t i;

        if (!c)
                return;
        for (i = c->returned; i < c->n; i++)
                c->done[i].release(&c->done[i]);
        free(c->done);
        rdmeta_arrow_batch_reset(&c->batch);
        free(c);
}

/* ---- columns that grow --------------------------------------------------- */

/* Appends one bit. Consumers ignore the bits after the last row. Returns 1 if
 * there is no memory, as all put functions do. */
static int put_valid(rdmeta_arrow_column_t *c, int64_t row, int valid) {
        if (row % 8 == 0 && ArrowBufferAppendUInt8(&c->valid, 0))
                return 1;
        if (valid)
                ArrowBitSet(c->valid.data, row);
        else
                c->nulls++;
        return 0;
}

static int put_offset(rdmeta_arrow_column_t *c, int64_t row, int64_t to) {
        if (!row && ArrowBufferAppendInt32(&c->offsets, 0))
                return 1;
        return ArrowBufferAppendInt32(&c->offsets, (int32_t)to);
}

static int put_int64(rdmeta_arrow_column_t *c, int64_t row, int64_t value,
                     int valid) {
        return put_valid(c, row, valid) ||
               ArrowBufferAppendInt64(&c->values, valid ? value : 0);
}

/* Appends a number; RDMETA_NONE and -1 become null. */
static int put_int32(rdmeta_arrow_column_t *c, int64_t row, int32_t value) {
        return put_valid(c, row, value >= 0) ||
               ArrowBufferAppendInt32(&c->values, value >= 0 ? value : 0);
}

static int put_text(rdmeta_arrow_column_t *c, int64_t row, rdmeta_str_t s) {
        const size_t size = s.data ? rdmeta_text_size(s.data, s.len) : 0;
        char *p;

        if (put_valid(c, row, s.data != NULL) ||
            ArrowBufferReserve(&c->values, (int64_t)size + 1))
                return 1;
        p = (char *)c->values.data + c->values.size_bytes;
        if (size)
                rdmeta_text_copy(p, size, s.data, s.len);
        c->values.size_bytes += (int64_t)size;
        return put_offset(c, row, c->values.size_bytes);
}

static int put_name(rdmeta_arrow_column_t *c, int64_t row, const char *name) {
        const rdmeta_str_t s = {name, name ? strlen(name) : 0};

        return put_text(c, row, s);
}

static int put_id(rdmeta_arrow_column_t *c, int64_t row, const uint8_t *id) {
        char text[RDMETA_ARROW_ID];
        rdmeta_str_t s = {NULL, 0};

        if (id) {
                rdmeta_text_id(text, id);
                s.data = text;
                s.len  = sizeof(text);
        }
        return put_text(c, row, s);
}

static int put_ids(rdmeta_arrow_column_t *c, int64_t row, rdmeta_ids_t ids) {
        const int64_t size = ids.ids ? 4 * (int64_t)ids.count : 0;

        if (put_valid(c, row, ids.ids != NULL) ||
            ArrowBufferReserve(&c->values, size + 1))
                return 1;
        ArrowBufferAppendUnsafe(&c->values, ids.ids, size);
        return put_offset(c, row, c->values.size_bytes / 4);
}

/* Appends a record's value to a column: one macro per column. */
#define PUT_version put_int64(c, row, (int64_t)r->version, 1)
#define PUT_cluster_id put_text(c, row, r->cluster_id)
#define PUT_session put_text(c, row, session)
#define PUT_observed_at put_int64(c, row, r->wall_us, 1)
#define PUT_source put_name(c, row, rdmeta_source_name(r->source))
#define PUT_source_broker put_int32(c, row, r->source_broker)
#define PUT_kind put_name(c, row, rdmeta_change_kind_name(r->kind))
#define PUT_topic put_text(c, row, r->topic)
#define PUT_topic_id put_id(c, row, r->topic_id)
#define PUT_partition put_int32(c, row, r->partition)
#define PUT_broker put_int32(c, row, r->broker)
#define PUT_old_leader put_int32(c, row, r->old_leader)
#define PUT_new_leader put_int32(c, row, r->new_leader)
#define PUT_old_leader_epoch put_int32(c, row, r->old_leader_epoch)
#define PUT_new_leader_epoch put_int32(c, row, r->new_leader_epoch)
#define PUT_old_isr put_ids(c, row, r->old_isr)
#define PUT_new_isr put_ids(c, row, r->new_isr)
#define PUT_old_replicas put_ids(c, row, r->old_replicas)
#define PUT_new_replicas put_ids(c, row, r->new_replicas)
#define PUT_offset put_int64(c, row, r->offset, r->offset >= 0)
#define PUT_detail put_text(c, row, r->detail)
#define PUT_old_offline put_ids(c, row, r->old_offline)
#define PUT_new_offline put_ids(c, row, r->new_offline)
/* A record that was made for an earlier version has zeros here. */
#define OF_LOG(r) ((r)->source == RDMETA_SOURCE_LOG)
#define PUT_partition_epoch \
        put_int32(c, row, OF_LOG(r) ? r->partition_epoch : RDMETA_NONE)
#define PUT_broker_epoch \
        put_int64(c, row, r->broker_epoch, OF_LOG(r) && r->broker_epoch >= 0)
#define PUT_new_adding put_ids(c, row, r->new_adding)
#define PUT_new_removing put_ids(c, row, r->new_removing)
#define PUT_new_elr put_ids(c, row, r->new_elr)
#define PUT_unseen_us \
        put_int64(c, row, r->unseen_us, OF_LOG(r) && r->unseen_us >= 0)

#define PUT(name, type)             \
        c = &columns[C_##name];     \
        if (PUT_##name)             \
                return 1;

static int put_record(rdmeta_arrow_column_t *columns, int64_t row,
                      rdmeta_str_t session, const rdmeta_change_t *r) {
        rdmeta_arrow_column_t *c;

        RDMETA_CHANGE_COLUMNS(PUT)
        return 0;
}

/* ---- batches ------------------------------------------------------------- */

static int batch_is_full(const rdmeta_arrow_batch_t *b) {
        int i;

        if (b->rows >= RDMETA_ARROW_ROWS)
                return 1;
        for (i = 0; i < b->n; i++)
                if (b->columns[i].values.size_bytes >= RDMETA_ARROW_TEXT)
                        return 1;
        return 0;
}

/* Moves the growing batch to the finished ones, if it has rows. Returns
 * NO_MEMORY. */
static rdmeta_err_t batch_end(rdmeta_arrow_changes_t *c) {
        if (!c->batch.rows)
                return RDMETA_OK;
        if (c->n == c->capacity) {
                const size_t capacity    = 2 * c->capacity + 4;
                struct ArrowArray *grown = (struct ArrowArray *)realloc(
                        c->done, capacity * sizeof(*grown));
                if (!grown)
                        return RDMETA_ERR_NO_MEMORY;
                c->done     = grown;
                c->capacity = capacity;
        }
        if (rdmeta_arrow_batch_export(&c->batch, &c->done[c->n]))
                return RDMETA_ERR_NO_MEMORY;
        c->n++;
        return RDMETA_OK;
}

int32_t rdmeta_arrow_changes_add(void *changes,
                                 const rdmeta_change_t *change) {
        rdmeta_arrow_changes_t *c = (rdmeta_arrow_changes_t *)changes;

        if (put_record(c->batch.columns, c->batch.rows, c->session, change))
                return RDMETA_ERR_NO_MEMORY;
        c->batch.rows++;
        return batch_is_full(&c->batch) ? batch_end(c) : RDMETA_OK;
}

/* ---- streams ------------------------------------------------------------- */

static rdmeta_err_t changes_next(rdmeta_arrow_source_t *s,
                                 struct ArrowArray *out) {
        rdmeta_arrow_changes_t *c = (rdmeta_arrow_changes_t *)(void *)s;

        out->release = NULL;
        if (c->returned < c->n)
                *out = c->done[c->returned++];
        return RDMETA_OK;
}

static void changes_destroy(rdmeta_arrow_source_t *s) {
        rdmeta_arrow_changes_destroy((rdmeta_arrow_changes_t *)(void *)s);
}

rdmeta_err_t rdmeta_arrow_changes_stream(rdmeta_arrow_changes_t *c,
                                         struct ArrowArrayStream *out) {
        if (batch_end(c)) {
                rdmeta_arrow_changes_destroy(c);
                return RDMETA_ERR_NO_MEMORY;
        }
        c->source.next    = changes_next;
        c->source.destroy = changes_destroy;
        rdmeta_arrow_stream_init(out, &c->source);
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_cache_arrow_changes(rdmeta_cache_t *cache, uint64_t since,
                                        const char *session,
                                        struct ArrowArrayStream *out,
                                        uint64_t *until, int32_t *resync) {
        rdmeta_arrow_changes_t *c = rdmeta_arrow_changes_new(session);
        rdmeta_err_t err;

        if (!c)
                return RDMETA_ERR_NO_MEMORY;
        err = rdmeta_cache_changes(cache, since, rdmeta_arrow_changes_add, c,
                                   until, resync);
        if (!err)
                return rdmeta_arrow_changes_stream(c, out);
        rdmeta_arrow_changes_destroy(c);
        return err;
}

rdmeta_err_t rdmeta_image_arrow_diff(rdmeta_image_t *before,
                                     rdmeta_image_t *after,
                                     const char *session,
                                     struct ArrowArrayStream *out) {
        rdmeta_arrow_changes_t *c = rdmeta_arrow_changes_new(session);
        rdmeta_err_t err;

        if (!c)
                return RDMETA_ERR_NO_MEMORY;
        err = rdmeta_image_diff(before, after, rdmeta_arrow_changes_add, c);
        if (!err)
                return rdmeta_arrow_changes_stream(c, out);
        rdmeta_arrow_changes_destroy(c);
        return err;
}
