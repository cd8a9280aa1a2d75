/*
 * partition: the two hot records of the log, read by hand, and a partition's
 * row.
 *
 * A row is one allocation. Its lists follow each other as big-endian int32, as
 * the log has them; directories are numbers of the state's table instead of
 * UUIDs.
 *
 *     | offset time | id leader epochs | recovery counts[7] capacity |
 *     | replicas ... isr ... removing ... adding ... elr ... last ... dirs ...
 */
#pragma once

#include "kraft/batch.h"

enum {
        RDMETA_KRAFT_REPLICAS = 0,
        RDMETA_KRAFT_ISR,
        RDMETA_KRAFT_REMOVING,
        RDMETA_KRAFT_ADDING,
        RDMETA_KRAFT_ELR,
        RDMETA_KRAFT_LAST_ELR,
        RDMETA_KRAFT_DIRECTORIES,
        RDMETA_KRAFT_LISTS
};

/* The longest list of a row. No partition has as many replicas. */
enum { RDMETA_KRAFT_LIST_MAX = 255 };
/* The leader of a PartitionChange that has none. */
enum { RDMETA_KRAFT_SAME_LEADER = -2 };

/* A PartitionRecord, or a PartitionChangeRecord: then a list with be NULL, the
 * leader SAME_LEADER and the recovery -1 are those before. It borrows. */
typedef struct rdmeta_kraft_partition_record {
        const uint8_t *topic_id;
        int32_t id, leader, leader_epoch, partition_epoch;
        int32_t recovery;
        /* Directories are UUIDs here: 16 bytes each. */
        rdmeta_wire_ids_t lists[RDMETA_KRAFT_LISTS];
} rdmeta_kraft_partition_record_t;

/* Reads a record of either type, of a version that the table has. Returns 0 for
 * bad bytes. */
int rdmeta_kraft_partition_read(const rdmeta_kraft_record_t *record,
                                rdmeta_kraft_partition_record_t *out);

typedef struct rdmeta_kraft_row {
        int64_t offset, time_us;
        int32_t id, leader, leader_epoch, partition_epoch;
        int8_t recovery;
        uint8_t counts[RDMETA_KRAFT_LISTS];
        uint16_t capacity; /* of the lists, in int32 */
        uint8_t lists[];
} rdmeta_kraft_row_t;

#define RDMETA_KRAFT_ROW_FIXED offsetof(rdmeta_kraft_row_t, lists)
enum {
        RDMETA_KRAFT_ROW_MAX = sizeof(rdmeta_kraft_row_t) +
                               4 * RDMETA_KRAFT_LISTS * RDMETA_KRAFT_LIST_MAX
};

/* Returns how many int32 the lists have. */
static inline size_t rdmeta_kraft_row_units(const rdmeta_kraft_row_t *row) {
        size_t sum = 0;
        int i;

        for (i = 0; i < RDMETA_KRAFT_LISTS; i++)
                sum += row->counts[i];
        return sum;
}

/* Returns a list of the row. */
static inline rdmeta_wire_ids_t
rdmeta_kraft_row_list(const rdmeta_kraft_row_t *row, int which) {
        rdmeta_wire_ids_t l = {row->lists, row->counts[which]};
        int i;

        for (i = 0; i < which; i++)
                l.be += 4 * (size_t)row->counts[i];
        return l;
}
