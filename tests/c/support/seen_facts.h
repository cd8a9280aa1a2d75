/*
 * seen_facts: all results of a reader for race_fixture's topics, as hashes.
 *
 * There is a hash for each topic, for ids, for walks with the counts of their
 * partitions, and for brokers, over several times. Two states have equal hashes
 * only if all results are equal. A name in flight counts as an image treats it:
 * as not cached.
 */
#pragma once

#include "support/race_fixture.h"

enum { SEEN_TIMES = 5, SEEN_IDS = 4096 };

/* The ids that any topic ever had. Facts can be compared only if they were read
 * with the same ids. */
typedef struct seen_ids {
        uint8_t ids[SEEN_IDS][16];
        size_t n;
} seen_ids_t;

typedef struct seen_facts {
        int64_t mono_us; /* the time of the facts */
        uint64_t topics[RACE_TOPICS];
        uint64_t walks, brokers, by_id;
        uint64_t n_topics, n_partitions;
        size_t n_ids; /* how many ids were looked up */
} seen_facts_t;

/* Adds the ids that topics have now to *ids. */
void seen_note_ids(const race_t *w, rdmeta_reader_t *reader, seen_ids_t *ids);
/* Sets *out to the facts of a state. `stale` reads the same state and accepts
 * stale topics. */
void seen_read(const race_t *w, rdmeta_reader_t *reader,
               rdmeta_reader_t *stale, const seen_ids_t *ids, size_t n_ids,
               int64_t mono_us, seen_facts_t *out);
/* Checks that both facts are equal, and prints the topics that differ. */
void seen_check(const race_t *w, const seen_facts_t *got,
                const seen_facts_t *wanted);
