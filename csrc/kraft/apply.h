/* apply: what each type of record does to the state. */
#ifndef RDMETA_KRAFT_APPLY_H
#define RDMETA_KRAFT_APPLY_H

#include "kraft/progress.h"

/* Sets the fault of a record, with this text behind its offset and type.
 * Returns MALFORMED. */
rdmeta_err_t rdmeta_kraft_refuse(rdmeta_kraft_replay_t *r,
                                 const rdmeta_kraft_record_t *record,
                                 int32_t code, const char *format, ...)
        __attribute__((format(printf, 4, 5)));

/* Returns scratch memory of at least `size` bytes, which is valid until the
 * next call. NULL: no memory. */
uint8_t *rdmeta_kraft_scratch(rdmeta_kraft_replay_t *r, size_t size);

/* Applies one record that is not a part of a transaction, or is in one that has
 * ended. `latest`: the latest time before it. Returns 0, MALFORMED with the
 * fault set, NO_MEMORY, or the result of a visit. */
rdmeta_err_t rdmeta_kraft_apply(rdmeta_kraft_replay_t *r,
                                const rdmeta_kraft_record_t *record,
                                int64_t latest);

/* Visits the change of a configuration to the values of its record. `text` has
 * room for them. */
rdmeta_err_t rdmeta_kraft_config_change(rdmeta_kraft_replay_t *r,
                                        const rdmeta_kraft_value_t *values,
                                        uint8_t *text);

#endif /* RDMETA_KRAFT_APPLY_H */
