#include "arrow/batch.h"

#include "base/alloc.h"
#include "topic/memory.h"

#include <stdatomic.h>

/* ---- buffers ------------------------------------------------------------- */

/* Grows a buffer. If that fails, it frees the old memory, since ArrowBuffer
 * forgets it then. */
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

/* Frees nothing: the buffer lies in the batch's block, which is freed whole. */
static void buffer_keep(struct ArrowBufferAllocator *allocator, uint8_t *p,
                        int64_t size) {
        (void)allocator;
        (void)p;
        (void)size;
}

/* Where the next buffer begins in the block; NULL: only sizes are added up. */
typedef struct block_place {
        uint8_t *block;
        size_t used;
} block_place_t;

/* Places a buffer at the begin of a line. Even an empty buffer gets a byte,
 * since some consumers need a pointer. */
static void buffer_place(struct ArrowBuffer *b, block_place_t *place,
                         int64_t size) {
        const size_t bytes = (size_t)(size > 0 ? size : 1);

        if (place->block) {
                b->data           = place->block + place->used;
                b->size_bytes     = size;
                b->capacity_bytes = size;
                b->allocator.free = buffer_keep;
        }
        place->used += (bytes + RDMETA_LINE - 1) & ~(size_t)(RDMETA_LINE - 1);
}

rdmeta_err_t rdmeta_arrow_buffer_room(struct ArrowBuffer *b, int64_t size) {
        const int in_block = b->allocator.free == buffer_keep;
        uint8_t *p;

        if (size <= b->capacity_bytes)
                return RDMETA_OK;
        p = (uint8_t *)realloc(in_block ? NULL : b->data, (size_t)size);
        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        if (in_block && b->size_bytes)
                memcpy(p, b->data, (size_t)b->size_bytes);
        b->data           = p;
        b->capacity_bytes = size;
        b->allocator.free = buffer_free;
        return RDMETA_OK;
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
                         int64_t items, block_place_t *place) {
        buffer_place(&c->values, place,
                     values_size(field->type, rows, items));
        if (field->nullable)
                buffer_place(&c->valid, place, (rows + 7) / 8);
        if (has_offsets(field->type))
                buffer_place(&c->offsets, place, 4 * (rows + 1));
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

/* Allocates one block for all columns, in large pages where the system has
 * them: a batch has some megabytes. A column with its own memory would return
 * it to the system on release, and the next batch would fault it in again. */
rdmeta_err_t rdmeta_arrow_batch_room(rdmeta_arrow_batch_t *b, int64_t rows,
                                     const int64_t *items) {
        block_place_t place = {NULL, 0};
        int i, pass;

        for (pass = 0; pass < 2; pass++) {
                for (i = 0; i < b->n; i++)
                        column_place(&b->columns[i], &b->fields[i], rows,
                                     items[i], &place);
                if (pass)
                        break;
                b->block = rdmeta_alloc_again(place.used);
                if (!b->block)
                        return RDMETA_ERR_NO_MEMORY;
                place.block = (uint8_t *)b->block;
                place.used  = 0;
        }
        for (i = 0; i < b->n; i++)
                column_clear(&b->columns[i], &b->fields[i]);
        b->rows = rows;
        return RDMETA_OK;
}

/* ---- export -------------------------------------------------------------- */

enum { NODES = 2 * RDMETA_ARROW_COLUMNS };

/* The arrays of an exported batch: one per column, and one for the ids of each
 * column of lists. The consumer has the outermost array. */
typedef struct batch_memory {
        _Atomic int32_t arrays; /* not released yet */
        int n;
        void *block; /* has all buffers; NULL: each has its own memory */
        rdmeta_arrow_column_t columns[RDMETA_ARROW_COLUMNS];
        const void *root_buffer; /* NULL: no row is null */
        struct ArrowArray *children[RDMETA_ARROW_COLUMNS];
        struct ArrowArray *inner[RDMETA_ARROW_COLUMNS];
        const void *buffers[NODES][3];
        struct ArrowArray nodes[NODES];
} batch_memory_t;

/* Releases one array, and with the last one frees the memory of the batch.
 * Different threads may release different arrays at the same time. */
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
