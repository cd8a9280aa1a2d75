/*
 * stream: tables of topics and brokers, and change records, as Arrow streams.
 *
 *     schema       the columns of each table; makes an ArrowSchema by nanoarrow
 *     batch        the columns of one batch; exports them as an ArrowArray
 *     text         names of any bytes as UTF-8, ids as base64
 *     fill         functions of both passes: add up sizes, fill columns
 *     topics, partitions, replicas, brokers
 *                  the two passes over one table
 *     rows         the size of a table's next batch, and its filling
 *     changes      collects change records in columns that grow
 *     stream       the ArrowArrayStream, and the calls that make one
 *
 *     ArrowArrayStream --> source: an image's reader, its topics, a cursor
 *           |                                 | size, allocate, fill
 *           v                                 v
 *     ArrowArray <-- export --------------- batch
 *       children --> one for each column:  [bits, if one is null][values]
 *                                          [bits][offsets][bytes]     text
 *                                          [bits][offsets] --> [ids]  lists
 *
 * Two passes over the same rows make a batch of a table. The first pass adds
 * up the size of each column. Then one call allocates all columns. The second
 * pass fills them. Change records come from a visit, one by one, so their
 * columns grow.
 *
 * nanoarrow makes schemas, grows buffers and sets bits. This code builds the
 * arrays itself. nanoarrow 0.9.0 crashes in ArrowArrayInitFromType() and
 * ArrowBasicArrayStreamInit() if an allocation fails, and leaks in
 * ArrowArrayInitFromSchema().
 *
 * One allocation has all arrays of a batch and owns their buffers. It counts
 * the arrays, since a consumer may move columns out of the batch and release
 * them one by one.
 *
 * The memory comes from malloc, not from the cache's allocator. Only one
 * thread at a time may call that allocator, and only while the cache lives.
 */
#pragma once

#include "rdmeta.h"
#include "vendor/nanoarrow/nanoarrow.h"

/* Makes the batches of a stream. */
typedef struct rdmeta_arrow_source rdmeta_arrow_source_t;
struct rdmeta_arrow_source {
        int32_t table;
        rdmeta_err_t error; /* the result of the last call */
        /* Sets *out to the next batch; out->release NULL: there is none. */
        rdmeta_err_t (*next)(rdmeta_arrow_source_t *s,
                             struct ArrowArray *out);
        /* Frees the source. */
        void (*destroy)(rdmeta_arrow_source_t *s);
};

/* Makes a stream that owns `s`. */
void rdmeta_arrow_stream_init(struct ArrowArrayStream *out,
                              rdmeta_arrow_source_t *s);
