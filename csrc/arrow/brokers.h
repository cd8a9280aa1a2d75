/* The table of brokers. */
#pragma once

#include "arrow/fill.h"

/* Adds the sizes of brokers to *s while they fit, and moves the cursor past
 * them. */
void rdmeta_brokers_size(const rdmeta_arrow_rows_t *r,
                         rdmeta_arrow_cursor_t *c, rdmeta_sizes_t *s);
/* Fills in the rows of brokers `from` up to `to`, and moves f->row past
 * them. */
void rdmeta_brokers_fill(rdmeta_fill_t *f, size_t from, size_t to);
