/* The table of replicas. */
#pragma once

#include "arrow/fill.h"

/* Adds the sizes of one topic's rows to *s while they fit, and moves the cursor
 * past them. Returns 1 if the topic has no more rows. */
int rdmeta_replicas_size(const rdmeta_shown_t *t, rdmeta_arrow_cursor_t *c,
                         rdmeta_sizes_t *s);
/* Fills in the rows of one topic between two cursors, and moves f->row past
 * them. Returns NO_MEMORY. */
rdmeta_err_t rdmeta_replicas_fill(rdmeta_fill_t *f, const rdmeta_shown_t *t,
                                  rdmeta_arrow_cursor_t from,
                                  rdmeta_arrow_cursor_t to);
