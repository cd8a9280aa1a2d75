/* The table of topics. */
#ifndef RDMETA_ARROW_TOPICS_H
#define RDMETA_ARROW_TOPICS_H

#include "arrow/fill.h"

/* Moves the cursor within one topic as far as rows fit, and adds them up. 1:
 * the topic is done. */
int rdmeta_topics_size(const rdmeta_shown_t *t, rdmeta_arrow_cursor_t *c,
                       rdmeta_sizes_t *s);
/* Fills in the same rows, from cursor to cursor; f->row is then behind them.
 * NO_MEMORY. */
rdmeta_err_t rdmeta_topics_fill(rdmeta_fill_t *f, const rdmeta_shown_t *t,
                                rdmeta_arrow_cursor_t from,
                                rdmeta_arrow_cursor_t to);

#endif /* RDMETA_ARROW_TOPICS_H */
