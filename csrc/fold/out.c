#include "fold/out.h"

#include "arrow/stream.h"

#include <string.h>

enum { FIRST_ROOM = 64 };

void rdmeta_fold_out_init(rdmeta_fold_out_t *o, int32_t table,
                          rdmeta_str_t cluster_id, rdmeta_str_t origin) {
        memset(o, 0, sizeof(*o));
        o->table      = table;
        o->cluster_id = cluster_id;
        o->origin     = origin;
        rdmeta_arrow_batch_init(&o->batch, table);
}

static void done_free(struct ArrowArray *done, size_t from, size_t n) {
        for (; from < n; from++)
                done[from].release(&done[from]);
        free(done);
}

void rdmeta_fold_out_destroy(rdmeta_fold_out_t *o) {
        done_free(o->done, 0, o->n);
        rdmeta_arrow_batch_reset(&o->batch);
}

/* ---- room ---------------------------------------------------------------- */

/* Grows a buffer, and fills the new bytes. */
static rdmeta_err_t buffer_filled(struct ArrowBuffer *b, int64_t size,
                                  int fill) {
        const int64_t old      = b->capacity_bytes;
        const rdmeta_err_t err = rdmeta_arrow_buffer_room(b, size);

        if (!err && b->capacity_bytes > old)
                memset(b->data + old, fill, (size_t)(b->capacity_bytes - old));
        return err;
}

static int is_var(rdmeta_arrow_type_t type) {
        return type == RDMETA_ARROW_STRING || type == RDMETA_ARROW_IDS;
}

/* Makes room for `rows` in a column. Even an empty text column gets memory,
 * since some consumers need a pointer. */
static rdmeta_err_t column_room(rdmeta_arrow_column_t *c,
                                const rdmeta_arrow_field_t *field,
                                int64_t rows) {
        rdmeta_err_t err = RDMETA_OK;

        if (field->nullable)
                err = buffer_filled(&c->valid, rows / 8, 0xff);
        if (err)
                return err;
        if (is_var(field->type)) {
                err = buffer_filled(&c->offsets, 4 * (rows + 1), 0);
                return err ? err : rdmeta_arrow_buffer_room(&c->values, 64);
        }
        if (field->type == RDMETA_ARROW_BOOL)
                return buffer_filled(&c->values, rows / 8, 0);
        return rdmeta_arrow_buffer_room(&c->values,
                           field->type == RDMETA_ARROW_INT32 ? 4 * rows
                                                             : 8 * rows);
}

/* Makes room for a full batch in one block, since the last one was large. With
 * memory of its own per column, most of the time would go into page faults. */
static rdmeta_err_t block_room(rdmeta_fold_out_t *o) {
        int i;

        if (rdmeta_arrow_batch_room(&o->batch, RDMETA_ARROW_ROWS, o->items)) {
                rdmeta_arrow_batch_reset(&o->batch);
                return RDMETA_ERR_NO_MEMORY;
        }
        o->batch.rows = 0;
        o->room       = RDMETA_ARROW_ROWS;
        for (i = 0; i < o->batch.n; i++)
                if (is_var(o->batch.fields[i].type))
                        o->batch.columns[i].values.size_bytes = 0;
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_fold_out_begin(rdmeta_fold_out_t *o) {
        rdmeta_err_t err = RDMETA_OK;
        int64_t room;
        int i;

        o->failed = 0;
        if (o->batch.rows < o->room)
                return RDMETA_OK;
        if (o->is_large && !o->room)
                return block_room(o);
        room = o->room ? 4 * o->room : FIRST_ROOM;
        for (i = 0; i < o->batch.n && !err; i++)
                err = column_room(&o->batch.columns[i], &o->batch.fields[i],
                                  room);
        if (!err)
                o->room = room;
        return err;
}

int rdmeta_fold_out_room(rdmeta_fold_out_t *o, rdmeta_arrow_column_t *c,
                         int64_t need) {
        if (!rdmeta_arrow_buffer_room(&c->values, need))
                return 1;
        o->failed = 1;
        return 0;
}

/* ---- rows and batches ---------------------------------------------------- */

/* Takes back what was stored of the row that did not end. */
static void undo(rdmeta_fold_out_t *o) {
        const int64_t row = o->batch.rows;
        int i;

        for (i = 0; i < o->batch.n; i++) {
                rdmeta_arrow_column_t *c = &o->batch.columns[i];
                const rdmeta_arrow_field_t *field = &o->batch.fields[i];
                const int item = field->type == RDMETA_ARROW_IDS ? 4 : 1;

                if (field->nullable && !ArrowBitGet(c->valid.data, row)) {
                        ArrowBitSet(c->valid.data, row);
                        c->nulls--;
                }
                if (field->type == RDMETA_ARROW_BOOL)
                        ArrowBitClear(c->values.data, row);
                if (is_var(field->type))
                        c->values.size_bytes =
                                item *
                                (int64_t)rdmeta_arrow_offsets(c)[row];
        }
}

/* Repeats a text in all rows of a column. Returns NO_MEMORY. */
static rdmeta_err_t fill_text(rdmeta_fold_out_t *o, int column,
                              rdmeta_str_t s) {
        rdmeta_arrow_column_t *c = &o->batch.columns[column];
        int32_t *offsets         = rdmeta_arrow_offsets(c);
        const int64_t size       = (int64_t)s.len;
        int64_t row;

        if (rdmeta_arrow_buffer_room(&c->values, size * o->batch.rows + 1))
                return RDMETA_ERR_NO_MEMORY;
        for (row = 0; row < o->batch.rows; row++) {
                memcpy(c->values.data + row * size, s.data, s.len);
                offsets[row + 1] = (int32_t)((row + 1) * size);
        }
        c->values.size_bytes = size * o->batch.rows;
        return RDMETA_OK;
}

/* Fills the columns that have the same value in each row. Returns
 * NO_MEMORY. */
static rdmeta_err_t fill_columns(rdmeta_fold_out_t *o) {
        rdmeta_err_t err = RDMETA_OK;
        int i;

        for (i = 0; i < o->batch.n && !err; i++) {
                const char *name = o->batch.fields[i].name;

                if (!strcmp(name, "cluster_id"))
                        err = fill_text(o, i, o->cluster_id);
                else if (!strcmp(name, "origin"))
                        err = fill_text(o, i, o->origin);
        }
        return err;
}

/* Notes how many bytes or ids a full batch has, and some more, for the next. */
static void sizes_note(rdmeta_fold_out_t *o) {
        int i;

        for (i = 0; i < o->batch.n; i++) {
                const int64_t size = o->batch.columns[i].values.size_bytes;
                const int64_t more = size + size / 8 + 64;
                o->items[i] = o->batch.fields[i].type == RDMETA_ARROW_IDS
                                      ? more / 4
                                      : more;
        }
}

/* Moves the growing batch to the finished ones, if it has rows. Returns
 * NO_MEMORY, and then it stays. */
static rdmeta_err_t batch_end(rdmeta_fold_out_t *o) {
        const int64_t rows  = o->batch.rows;
        const uint64_t size = rdmeta_fold_out_size(o);
        rdmeta_err_t err;

        if (!o->batch.rows)
                return RDMETA_OK;
        if ((int64_t)o->n == o->capacity) {
                const int64_t more       = 2 * o->capacity + 4;
                struct ArrowArray *grown = (struct ArrowArray *)realloc(
                        o->done, (size_t)more * sizeof(*grown));
                if (!grown)
                        return RDMETA_ERR_NO_MEMORY;
                o->done     = grown;
                o->capacity = more;
        }
        err = fill_columns(o);
        if (!err)
                sizes_note(o);
        if (!err)
                err = rdmeta_arrow_batch_export(&o->batch, &o->done[o->n]);
        if (err)
                return err;
        o->size = size;
        o->n++;
        o->is_large = rows >= RDMETA_ARROW_ROWS / 2;
        o->room  = 0;
        o->bytes = 0;
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_fold_out_end(rdmeta_fold_out_t *o) {
        if (o->failed) {
                undo(o);
                return RDMETA_ERR_NO_MEMORY;
        }
        if (o->batch.rows + 1 < RDMETA_ARROW_ROWS &&
            o->bytes < RDMETA_ARROW_TEXT) {
                o->batch.rows++;
                o->rows++;
                return RDMETA_OK;
        }
        o->batch.rows++;
        if (batch_end(o)) {
                o->batch.rows--;
                undo(o);
                return RDMETA_ERR_NO_MEMORY;
        }
        o->rows++;
        return RDMETA_OK;
}

/* ---- streams ------------------------------------------------------------- */

typedef struct taken {
        rdmeta_arrow_source_t source; /* first */
        struct ArrowArray *done;
        size_t n, returned;
} taken_t;

static rdmeta_err_t taken_next(rdmeta_arrow_source_t *s,
                               struct ArrowArray *out) {
        taken_t *t = (taken_t *)(void *)s;

        out->release = NULL;
        if (t->returned < t->n)
                *out = t->done[t->returned++];
        return RDMETA_OK;
}

static void taken_destroy(rdmeta_arrow_source_t *s) {
        taken_t *t = (taken_t *)(void *)s;

        done_free(t->done, t->returned, t->n);
        free(t);
}

rdmeta_err_t rdmeta_fold_out_take(rdmeta_fold_out_t *o,
                                  struct ArrowArrayStream *out) {
        taken_t *t = (taken_t *)calloc(1, sizeof(*t));

        if (!t || batch_end(o)) {
                free(t);
                return RDMETA_ERR_NO_MEMORY;
        }
        t->source.table   = o->table;
        t->source.next    = taken_next;
        t->source.destroy = taken_destroy;
        t->done           = o->done;
        t->n              = o->n;
        o->done           = NULL;
        o->n              = 0;
        o->capacity       = 0;
        o->rows           = 0;
        o->size           = 0;
        rdmeta_arrow_stream_init(out, &t->source);
        return RDMETA_OK;
}
