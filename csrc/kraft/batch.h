/*
 * batch: record batches of version 2, and the records in them, as views.
 *
 *     0       8    12    16   17   21    23    27    35   43    57   61
 *     | offset| len|epoch|mag.|crc |attr.|last |base |max | ... |count| records
 *             |    |          |     `-- the CRC covers all from here on
 *                   `---------------- len counts from here on
 *
 *     record   length, attributes, time delta, offset delta, key, value,
 *              headers: varints, zig-zag; the key is null for metadata, and
 *              4 bytes for control
 *     value    metadata: frame version 1, api key, version as varints, fields
 *              control:  version as int16, fields
 *
 * Offsets within a batch have no gaps, as Kafka's raft client writes them.
 */
#pragma once

#include "base/buf.h"
#include "rdmeta_kraft.h"

enum {
        RDMETA_KRAFT_HEADER = 61,
        /* Kafka's limit is 8 MiB. A larger length is an accident, and no caller
         * should take memory for it. */
        RDMETA_KRAFT_BATCH_MAX = 64 << 20
};

/* Reads and checks a header, and nothing else. Returns whether the batch is
 * whole. */
int rdmeta_kraft_batch_head(const uint8_t *p, size_t len,
                            rdmeta_kraft_batch_t *out);

typedef struct rdmeta_kraft_records {
        const rdmeta_kraft_batch_t *batch;
        rdmeta_buf_t buf;
        int32_t next; /* the delta of the next record */
} rdmeta_kraft_records_t;

/* Begins to read the records of a good batch, which `it` borrows. */
void rdmeta_kraft_records_init(rdmeta_kraft_records_t *it,
                               const rdmeta_kraft_batch_t *batch);
/* Reads the next record and returns 1. Returns 0 after the last one, and -1
 * for bad bytes: buf.bad is the place. */
int rdmeta_kraft_records_next(rdmeta_kraft_records_t *it,
                              rdmeta_kraft_record_t *out);
/* Returns the fields of a record: its value without the frame. */
rdmeta_buf_t rdmeta_kraft_record_body(const rdmeta_kraft_record_t *record);
