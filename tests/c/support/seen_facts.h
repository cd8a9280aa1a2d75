/*
 * seen_facts: everything that a reader says of race_fixture's topics, as numbers
 * that two states have in common only if they say the same - for each topic,
 * for ids, walks, brokers - at several times. What is in flight is taken for
 * what an image says of it: nothing is known.
 */
#ifndef RDMETA_SEEN_FACTS_H
#define RDMETA_SEEN_FACTS_H

#include "support/race_fixture.h"

enum { SEEN_TIMES = 5, SEEN_IDS = 4096 };

/* Ids that any topic ever had: the same for all facts that are compared. */
typedef struct seen_ids {
        uint8_t ids[SEEN_IDS][16];
        size_t n;
} seen_ids_t;

typedef struct seen_facts {
        int64_t mono_us; /* as of which they are */
        uint64_t topics[RACE_TOPICS];
        uint64_t walks, brokers, by_id;
        uint64_t n_topics, n_partitions;
        size_t n_ids; /* how many were asked for */
} seen_facts_t;

/* Note the ids that `reader` shows now. */
void seen_note_ids(const race_t *w, rdmeta_reader_t *reader,
                    seen_ids_t *ids);
/* `stale`: a reader of the same state that takes last known values. */
void seen_read(const race_t *w, rdmeta_reader_t *reader,
                rdmeta_reader_t *stale, const seen_ids_t *ids, size_t n_ids,
                int64_t mono_us, seen_facts_t *out);
/* Prints what differs, and ends the test. */
void seen_check(const race_t *w, const seen_facts_t *got,
                const seen_facts_t *wanted);

#endif /* RDMETA_SEEN_FACTS_H */
