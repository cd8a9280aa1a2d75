#include "arrow/batch.h"

#include "base/alloc.h"
#include "topic/memory.h"

#include <stdatomic.h>

/* ---- buffers ------------------------------------------------------------- */

/* ArrowBuffer forgets what it had when it cannot grow, so that is let go. */
static uint8_t *buffer_grow(struct ArrowBufferAllocator *allocator,
                            uint8_t *old, int64_t old_size, int64_t size) {
        uint8_t *p = (uint8_t *)realloc(old, (size_t)size);

        (void)allocator;
        (void)old_size;
        if (!p)
                free(old);
        return p;
}

static void buffer_free(struct ArrowBufferAllocator *allocator, uint8_t *p,
                        int64_t size) {
        (void)allocator;
        (void)size;
        free(p);
}

static void buffer_init(struct ArrowBuffer *b) {
        ArrowBufferInit(b);
        b->allocator.reallocate   = buffer_grow;
        b->allocator.free         = buffer_free;
        b->allocator.private_data = NULL;
}

/* What lies in a batch's one block goes with it. */
static void buffer_keep(struct ArrowBufferAllocator *allocator, uint8_t *p,
                        int64_t size) {
        (void)allocator;
        (void)p;
        (void)size;
}

/* Where the next buffer begins in the block; NULL: its size is asked for. */
typedef struct block_place {
        uint8_t *block;
        size_t used;
} block_place_t;

/* At a line's begin; never of no bytes, since some want a pointer even then. */
static void buffer_place(struct ArrowBuffer *b, block_place_t *at,
                         int64_t size) {
        const size_t bytes = (size_t)(size > 0 ? size : 1);

        if (at->block) {
                b->data           = at->block + at->used;
                b->size_bytes     = size;
                b->capacity_bytes = size;
                b->allocator.free = buffer_keep;
        }
        at->used += (bytes + RDMETA_LINE - 1) & ~(size_t)(RDMETA_LINE - 1);
}

/* ---- columns ------------------------------------------------------------- */

static int64_t values_size(rdmeta_arrow_type_t type, int64_t rows,
                           int64_t items) {
        switch (type) {
        case RDMETA_ARROW_BOOL:
                return (rows + 7) / 8;
        case RDMETA_ARROW_INT16:
                return 2 * rows;
        case RDMETA_ARROW_INT32:
                return 4 * rows;
        case RDMETA_ARROW_STRING:
                return items;
        case RDMETA_ARROW_IDS:
                return 4 * items;
        default:
                return 8 * rows;
        }
}

static int has_offsets(rdmeta_arrow_type_t type) {
        return type == RDMETA_ARROW_STRING || type == RDMETA_ARROW_IDS;
}

static void column_init(rdmeta_arrow_column_t *c) {
        buffer_init(&c->valid);
        buffer_init(&c->offsets);
        buffer_init(&c->values);
        c->nulls = 0;
}

static void column_place(rdmeta_arrow_column_t *c,
                         const rdmeta_arrow_field_t *field, int64_t rows,
                         int64_t items, block_place_t *at) {
        buffer_place(&c->values, at, values_size(field->type, rows, items));
        if (field->nullable)
                buffer_place(&c->valid, at, (rows + 7) / 8);
        if (has_offsets(field->type))
                buffer_place(&c->offsets, at, 4 * (rows + 1));
}

static void column_clear(rdmeta_arrow_column_t *c,
                         const rdmeta_arrow_field_t *field) {
        if (field->type == RDMETA_ARROW_BOOL)
                memset(c->values.data, 0, (size_t)c->values.size_bytes);
        if (field->nullable)
                memset(c->valid.data, 0xff, (size_t)c->valid.size_bytes);
        if (has_offsets(field->type))
                rdmeta_arrow_offsets(c)[0] = 0;
}

void rdmeta_arrow_batch_init(rdmeta_arrow_batch_t *b, int32_t table) {
        int i;

        b->fields = rdmeta_arrow_fields(table, &b->n);
        b->rows   = 0;
        b->block  = NULL;
        for (i = 0; i < b->n; i++)
                column_init(&b->columns[i]);
}

void rdmeta_arrow_batch_reset(rdmeta_arrow_batch_t *b) {
        int i;

        for (i = 0; i < b->n; i++) {
                rdmeta_arrow_column_t *c = &b->columns[i];
                ArrowBufferReset(&c->valid);
                ArrowBufferReset(&c->offsets);
                ArrowBufferReset(&c->values);
                column_init(c);
        }
        free(b->block);
        b->block = NULL;
        b->rows  = 0;
}

/* In large pages where there are any: a batch is some megabytes, and a column
 * by itself would go back to the system when it is released, to be faulted in
 * again for the next. */
rdmeta_err_t rdmeta_arrow_batch_room(rdmeta_arrow_batch_t *b, int64_t rows,
                                     const int64_t *items) {
        block_place_t at = {NULL, 0};
        int i, pass;

        for (pass = 0; pass < 2; pass++) {
                for (i = 0; i < b->n; i++)
                        column_place(&b->columns[i], &b->fields[i], rows,
                                     items[i], &at);
                if (pass)
                        break;
                b->block = rdmeta_alloc_again(at.used);
                if (!b->block)
                        return RDMETA_ERR_NO_MEMORY;
                at.block = (uint8_t *)b->block;
                at.used  = 0;
        }
        for (i = 0; i < b->n; i++)
                column_clear(&b->columns[i], &b->fields[i]);
        b->rows = rows;
        return RDMETA_OK;
}

/* ---- handing out --------------------------------------------------------- */

enum { NODES = 2 * RDMETA_ARROW_COLUMNS };

/* All arrays of a batch but the outermost, which lies with who took it: a
 * column each, and the ids inside of lists. */
typedef struct batch_memory {
        _Atomic int32_t arrays; /* not released yet */
        int n;
        void *block; /* of all columns; NULL: each has its own */
        rdmeta_arrow_column_t columns[RDMETA_ARROW_COLUMNS];
        const void *root_buffer; /* NULL: no row is null */
        struct ArrowArray *children[RDMETA_ARROW_COLUMNS];
        struct ArrowArray *inner[RDMETA_ARROW_COLUMNS];
        const void *buffers[NODES][3];
        struct ArrowArray nodes[NODES];
} batch_memory_t;

/* Of any thread, and of each array in its own. */
static void array_release(struct ArrowArray *a) {
        batch_memory_t *m = (batch_memory_t *)a->private_data;
        int64_t i;
        int k;

        for (i = 0; i < a->n_children; i++)
                if (a->children[i]->release)
                        a->children[i]->release(a->children[i]);
        a->release = NULL;
        if (atomic_fetch_sub_explicit(&m->arrays, 1, memory_order_acq_rel) !=
            1)
                return;
        for (k = 0; k < m->n; k++) {
                ArrowBufferReset(&m->columns[k].valid);
                ArrowBufferReset(&m->columns[k].offsets);
                ArrowBufferReset(&m->columns[k].values);
        }
        free(m->block);
        free(m);
}

static void array_init(struct ArrowArray *a, batch_memory_t *m,
                       int64_t length) {
        memset(a, 0, sizeof(*a));
        a->length       = length;
        a->release      = array_release;
        a->private_data = m;
        atomic_fetch_add_explicit(&m->arrays, 1, memory_order_relaxed);
}

static void export_ids(batch_memory_t *m, int i, struct ArrowArray *list) {
        rdmeta_arrow_column_t *c = &m->columns[i];
        const int k              = RDMETA_ARROW_COLUMNS + i;
        struct ArrowArray *ids   = &m->nodes[k];

        array_init(ids, m, rdmeta_arrow_offsets(c)[list->length]);
        ids->n_buffers   = 2;
        ids->buffers     = m->buffers[k];
        ids->buffers[1]  = c->values.data;
        m->inner[i]      = ids;
        list->n_children = 1;
        list->children   = &m->inner[i];
}

static void export_column(batch_memory_t *m, int i,
                          rdmeta_arrow_type_t type, int64_t rows) {
        rdmeta_arrow_column_t *c = &m->columns[i];
        struct ArrowArray *a     = &m->nodes[i];

        array_init(a, m, rows);
        m->children[i] = a;
        a->null_count  = c->nulls;
        a->buffers     = m->buffers[i];
        if (c->nulls)
                a->buffers[0] = c->valid.data;
        a->n_buffers  = type == RDMETA_ARROW_STRING ? 3 : 2;
        a->buffers[1] = has_offsets(type) ? c->offsets.data : c->values.data;
        if (type == RDMETA_ARROW_STRING)
                a->buffers[2] = c->values.data;
        if (type == RDMETA_ARROW_IDS)
                export_ids(m, i, a);
}

rdmeta_err_t rdmeta_arrow_batch_export(rdmeta_arrow_batch_t *b,
                                       struct ArrowArray *out) {
        batch_memory_t *m = (batch_memory_t *)calloc(1, sizeof(*m));
        int i;

        if (!m)
                return RDMETA_ERR_NO_MEMORY;
        m->n     = b->n;
        m->block = b->block;
        b->block = NULL;
        for (i = 0; i < b->n; i++) {
                m->columns[i] = b->columns[i];
                column_init(&b->columns[i]);
                export_column(m, i, b->fields[i].type, b->rows);
        }
        array_init(out, m, b->rows);
        out->n_buffers  = 1;
        out->buffers    = &m->root_buffer;
        out->n_children = b->n;
        out->children   = m->children;
        b->rows         = 0;
        return RDMETA_OK;
}
