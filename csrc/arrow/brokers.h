/* The table of brokers. */
#ifndef RDMETA_ARROW_BROKERS_H
#define RDMETA_ARROW_BROKERS_H

#include "arrow/fill.h"

/* Moves the cursor among all brokers as far as rows fit, and adds them up. */
void rdmeta_brokers_size(const rdmeta_arrow_rows_t *r,
                         rdmeta_arrow_cursor_t *c, rdmeta_sizes_t *s);
/* Fills in the same rows; f->row is then behind them. */
void rdmeta_brokers_fill(rdmeta_fill_t *f, size_t from, size_t to);

#endif /* RDMETA_ARROW_BROKERS_H */
