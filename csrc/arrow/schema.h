/* The columns of each table. */
#pragma once

#include "rdmeta.h"

typedef enum rdmeta_arrow_type {
        RDMETA_ARROW_BOOL,
        RDMETA_ARROW_INT16,
        RDMETA_ARROW_INT32,
        RDMETA_ARROW_INT64,
        RDMETA_ARROW_DOUBLE,
        RDMETA_ARROW_TIME,   /* microseconds since 1970, UTC */
        RDMETA_ARROW_STRING,
        RDMETA_ARROW_IDS     /* list<int32> */
} rdmeta_arrow_type_t;

typedef struct rdmeta_arrow_field {
        const char *name;
        rdmeta_arrow_type_t type;
        int nullable;
} rdmeta_arrow_field_t;

enum { RDMETA_ARROW_COLUMNS = 29 }; /* the most that a table has */

/* Returns the columns of a table and sets *n to their number; NULL: there is no
 * such table. */
const rdmeta_arrow_field_t *rdmeta_arrow_fields(int32_t table, int *n);
