/* Takes one record into the state of a fold. */
#pragma once

#include "fold/intervals.h"

/* Takes a record. Returns MALFORMED or NO_MEMORY, and then has not taken it. */
rdmeta_err_t rdmeta_fold_row(rdmeta_fold_t *f, const rdmeta_fold_row_t *row);
