/*
 * builder_fixture: draws random facts of one topic, and writes them as bytes of
 * any version and in any order. Then it compares them with the block made of
 * these bytes. It computes sizes and widths from the facts, without code of
 * csrc.
 *
 *     facts --gen_response_topic--> bytes --builder--> block --rows--> facts?
 */
#pragma once

#include "topic/builder.h"

#include "support/testing.h"
#include "support/wire_gen.h"
#include "topic/builder_write.h"

enum { FACT_ROWS = 600, FACT_IDS = 150, FACT_NAME = 320 };
enum { REPLICAS, ISR, OFFLINE, LISTS };

typedef struct fact_row {
        int32_t id, leader, epoch, error;
        int32_t high; /* the highest epoch that a merge remembers */
        int32_t last; /* the last leader, if there is none now; -1: never */
        int32_t ids[LISTS][FACT_IDS];
        int32_t counts[LISTS];
} fact_row_t;

typedef struct facts {
        char name[FACT_NAME];
        size_t name_len;
        uint8_t id[16];
        int32_t error, internal, operations;
        uint8_t past[RDMETA_PAST_MAX * 16];
        uint8_t n_past;
        uint32_t count;
        fact_row_t rows[FACT_ROWS]; /* in the order of ids */
} facts_t;

/* Draws facts of any shape. */
void facts_random(facts_t *f, test_rng_t *r);
/* Removes the facts that `version` has no fields for. */
void facts_reduce(facts_t *f, int version);

typedef struct builder_fixture {
        test_heap_t heap;
        rdmeta_allocator_t allocator;
        uint64_t key[RDMETA_HASH_KEYS];
        rdmeta_memory_t blocks;
        rdmeta_builder_t builder;
        gen_bytes_t bytes; /* the topic that the builder reads */
        test_rng_t *rng;
        int cases[2]; /* how often a test met each of its cases */
} builder_fixture_t;

void builder_fixture_init(builder_fixture_t *w, test_rng_t *r);
/* Frees the fixture, and checks that there was no leak. */
void builder_fixture_destroy(builder_fixture_t *w);
/* Writes the facts as bytes of `version`, and has the builder read them. With
 * `shuffle` the rows are in any order, perhaps with tagged fields; without, in
 * the order of ids. */
rdmeta_err_t builder_fixture_read(builder_fixture_t *w, const facts_t *f,
                                  int version, test_rng_t *shuffle);
/* Sets the columns of a merge: highest epochs, last leaders, past ids. */
void builder_fixture_merge(builder_fixture_t *w, const facts_t *f);
void builder_fixture_merge_row(builder_fixture_t *w, const fact_row_t *p,
                               uint32_t i);
/* Returns the block of all facts, read as v12. */
rdmeta_topic_t *builder_fixture_block(builder_fixture_t *w, const facts_t *f,
                                      test_rng_t *shuffle);

/* Runs a test with random facts, `rounds` times in one fixture. Each of its
 * `cases` must come in more than a twentieth of the rounds. */
void facts_each(test_rng_t r, int rounds, int cases,
                void (*test)(builder_fixture_t *w, facts_t *f));

#define TEST_EACH(name, rounds, cases)                                       \
        static void name##_one(builder_fixture_t *w, facts_t *f);            \
        TEST(name) {                                                         \
                facts_each(test_rng(__LINE__), rounds, cases, name##_one);   \
        }                                                                    \
        static void name##_one(builder_fixture_t *w, facts_t *f)

/* Checks that the block has exactly these facts. */
void facts_check(const facts_t *f, const rdmeta_topic_t *t);
/* Returns the bytes that a block of these facts needs. */
size_t facts_size(const facts_t *f);
