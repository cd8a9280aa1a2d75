/*
 * saved: the state of a fold as bytes, to go on with later.
 *
 *     "RDMFOLD" version | XXH64 of the rest | sizes | labels | head | words |
 *     brokers | configurations | topics in order, each with its partitions |
 *     topics, brokers and entries of the open version
 *
 * Numbers are varints; signed ones are zigzag. A word is written where it first
 * comes, and is a number from then on. So the bytes follow from the state
 * alone, whatever the order in which the fold learned it.
 */
#pragma once

#include "fold/state.h"

/* Writes the state, as rdmeta_fold_save() says. */
rdmeta_err_t rdmeta_fold_write(rdmeta_fold_t *f, void *buf, size_t capacity,
                               size_t *size);
/* Reads a state into a new fold. Returns the errors of rdmeta_fold_new(). */
rdmeta_err_t rdmeta_fold_read(rdmeta_fold_t *f, const void *state,
                              size_t size);
