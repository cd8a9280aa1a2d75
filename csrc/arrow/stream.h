/*
 * stream: what is known, as columns, for others to take over.
 *
 *     schema         which columns a table has; ArrowSchema by nanoarrow
 *     batch          columns of one batch; handing them out as an ArrowArray
 *     text           names of any bytes as UTF-8, ids as base64
 *     fill           adding up how long columns will be, and filling them
 *     topics       ...  the two passes over one table
 *     rows           how large the next batch of a table is, and filling it
 *     changes        change records, gathered
 *     stream         streams, and what makes them
 *
 *     ArrowArrayStream --> source: an image's reader, its topics, a cursor
 *           |                                 | size, allocate, fill
 *           v                                 v
 *     ArrowArray <-- export --------------- batch
 *       children --> one for each column:  [bits, if one is null][values]
 *                                          [bits][offsets][bytes]     text
 *                                          [bits][offsets] --> [ids]  lists
 *
 * A batch of a table goes in two passes over the same rows: the first adds up
 * how long each column will be, then all is allocated, then the second fills
 * it and can neither fail nor look back. Change records come from a visit, one
 * at a time, so their columns grow.
 *
 * nanoarrow makes schemas, grows buffers and sets bits. The arrays themselves
 * are put together here: nanoarrow 0.9.0 crashes in ArrowArrayInitFromType()
 * and ArrowBasicArrayStreamInit() where an allocation fails, and leaks in
 * ArrowArrayInitFromSchema(). One allocation holds all of a batch's arrays; it
 * counts them, since the one who takes a batch may move its columns out and
 * release them one by one, and it owns their buffers.
 *
 * Memory is malloc's, not the cache's allocator's: that may be called by one
 * thread at a time only, and not once the cache is gone.
 */
#ifndef RDMETA_ARROW_STREAM_H
#define RDMETA_ARROW_STREAM_H

#include "rdmeta.h"
#include "vendor/nanoarrow/nanoarrow.h"

typedef struct rdmeta_arrow_source rdmeta_arrow_source_t;
struct rdmeta_arrow_source {
        int32_t table;
        rdmeta_err_t error; /* of the last call */
        /* The next batch; out->release NULL: there is none. */
        rdmeta_err_t (*next)(rdmeta_arrow_source_t *s,
                             struct ArrowArray *out);
        void (*destroy)(rdmeta_arrow_source_t *s);
};

/* A stream that takes `s`. */
void rdmeta_arrow_stream_init(struct ArrowArrayStream *out,
                              rdmeta_arrow_source_t *s);

#endif /* RDMETA_ARROW_STREAM_H */
