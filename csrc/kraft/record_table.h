/*
 * record_table: the fields of each record of the metadata log, by version.
 *
 * tools/record_table.py writes record_table.c from Kafka's own JSON
 * definitions. All records are flexible: first the fields without a tag, in the
 * order of the table, then the tagged ones. A schema is of one version, so no
 * reader tests versions:
 *
 *     types[3]  PARTITION_RECORD   schemas[2] ──► fields of version 2
 *                                                   partitionId   INT32
 *                                                   replicas      INT32 array
 *                                                   ...
 *     types[0]  REGISTER_BROKER_RECORD
 *                                  schemas[4] ──► endPoints       STRUCT array
 *                                                   of ──► its fields
 *
 * What is no row of the state is a *fact*: the bytes of its last record. Fields
 * marked KEY are its name; removal records have the same ones, in the same
 * order. An array that is a part of a key is a set.
 */
#pragma once

#include <stdint.h>

enum {
        RDMETA_KRAFT_BOOL = 0,
        RDMETA_KRAFT_INT8,
        RDMETA_KRAFT_INT16,
        RDMETA_KRAFT_UINT16,
        RDMETA_KRAFT_INT32,
        RDMETA_KRAFT_INT64,
        RDMETA_KRAFT_FLOAT64,
        RDMETA_KRAFT_UUID,
        RDMETA_KRAFT_STRING,
        RDMETA_KRAFT_BYTES,
        RDMETA_KRAFT_STRUCT
};

/* Bits of a field. */
enum {
        RDMETA_KRAFT_ARRAY        = 1 << 0, /* elements of `type` */
        RDMETA_KRAFT_NULLABLE     = 1 << 1,
        RDMETA_KRAFT_DEFAULT_NULL = 1 << 2, /* a tagged field without bytes is
                                             * null; otherwise it is `number`,
                                             * "", or an empty array */
        RDMETA_KRAFT_KEY    = 1 << 3, /* a part of the fact's key */
        RDMETA_KRAFT_SECRET = 1 << 4, /* not shown without being asked for */
        /* The fact is removed if this field is null, true, or 0. */
        RDMETA_KRAFT_GONE_IF_NULL = 1 << 5,
        RDMETA_KRAFT_GONE_IF_TRUE = 1 << 6,
        RDMETA_KRAFT_GONE_IF_ZERO = 1 << 7
};

/* What a record does to the state. */
enum {
        RDMETA_KRAFT_NOTHING = 0, /* NoOp */
        RDMETA_KRAFT_ROW,         /* code by hand: topics, partitions, brokers,
                                   * transactions, ClearElr, LeaderChange,
                                   * SnapshotHeader and SnapshotFooter */
        RDMETA_KRAFT_FACT,        /* it is the fact now */
        RDMETA_KRAFT_REMOVES      /* it removes the fact of the type `removes`
                                   * with the same key */
};

/* The most fields of one schema, tagged ones included. */
enum { RDMETA_KRAFT_FIELDS = 16 };

typedef struct rdmeta_kraft_schema rdmeta_kraft_schema_t;

typedef struct rdmeta_kraft_field {
        const char *name;                /* "partitionId", as Kafka's JSON */
        const rdmeta_kraft_schema_t *of; /* of a STRUCT; else NULL */
        int32_t number;                  /* the default of a tagged number */
        int8_t tag;                      /* -1: it has none */
        uint8_t type;
        uint8_t flags;
} rdmeta_kraft_field_t;

/* One version's fields, in the order of the definition. */
struct rdmeta_kraft_schema {
        const rdmeta_kraft_field_t *fields;
        uint8_t count;
        uint8_t least; /* the fewest bytes that it takes; 1 at least: the count
                        * of tagged fields */
};

typedef struct rdmeta_kraft_type {
        const char *name; /* "PARTITION_RECORD"; NULL: no such type */
        const rdmeta_kraft_schema_t *schemas; /* [0 .. last] */
        int8_t last;                          /* the highest version */
        uint8_t role;    /* RDMETA_KRAFT_NOTHING ... */
        uint8_t removes; /* with REMOVES: the api key of the fact's type */
} rdmeta_kraft_type_t;

/* Records by api key, from 0 to RDMETA_KRAFT_TYPES - 1. */
enum { RDMETA_KRAFT_TYPES = 29 };
extern const rdmeta_kraft_type_t rdmeta_kraft_types[RDMETA_KRAFT_TYPES];

/* Control records by their type: 2 to 6; 0 and 1 have no name. Their value
 * begins with its version, an int16, which is also the first field. */
enum { RDMETA_KRAFT_CONTROLS = 7 };
extern const rdmeta_kraft_type_t rdmeta_kraft_controls[RDMETA_KRAFT_CONTROLS];
