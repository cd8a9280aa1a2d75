/* The table of topics. */
#pragma once

#include "arrow/fill.h"

/* Adds the size of one topic's row to *s. Returns 0 if the row does not fit. */
int rdmeta_topics_size(const rdmeta_shown_t *t, rdmeta_arrow_cursor_t *c,
                       rdmeta_sizes_t *s);
/* Fills in the row of one topic, and moves f->row past it. The cursors have no
 * meaning here. Returns RDMETA_OK. */
rdmeta_err_t rdmeta_topics_fill(rdmeta_fill_t *f, const rdmeta_shown_t *t,
                                rdmeta_arrow_cursor_t from,
                                rdmeta_arrow_cursor_t to);
