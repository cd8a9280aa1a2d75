/*
 * builder_fixture: what may be said of one topic, drawn at random, as bytes of
 * any version and in any order, and held against the block that is made of it.
 * The sizes and widths are worked out here from the facts, by nothing of csrc.
 *
 *     facts --gen_response_topic--> bytes --stage--> block --rows--> facts?
 */
#ifndef RDMETA_STAGE_WORLD_H
#define RDMETA_STAGE_WORLD_H

#include "topic/builder.h"

#include "support/testing.h"
#include "support/wire_gen.h"
#include "topic/builder_write.h"

enum { FACT_ROWS = 600, FACT_IDS = 150, FACT_NAME = 320 };
enum { REPLICAS, ISR, OFFLINE, LISTS };

typedef struct fact_row {
        int32_t id, leader, epoch, error;
        int32_t high; /* what a merge remembers: >= epoch */
        int32_t last; /* if there is no leader; -1: never one */
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
        fact_row_t rows[FACT_ROWS]; /* by id */
} facts_t;

/* Of any shape: see the functions it is made of. */
void facts_random(facts_t *f, test_rng_t *r);
/* Without what `version` cannot say. */
void facts_reduce(facts_t *f, int version);

typedef struct builder_fixture {
        test_heap_t heap;
        rdmeta_allocator_t allocator;
        uint64_t key[RDMETA_HASH_KEYS];
        rdmeta_memory_t blocks;
        rdmeta_builder_t builder;
        gen_bytes_t bytes; /* of the topic that is staged */
} builder_fixture_t;

void builder_fixture_init(builder_fixture_t *w, test_rng_t *r);
/* Checks that nothing leaked. */
void builder_fixture_destroy(builder_fixture_t *w);
/* Stage what `version` says of the facts; `shuffle`: its rows in any order,
 * with tagged fields; NULL: by id. */
rdmeta_err_t builder_fixture_read(builder_fixture_t *w, const facts_t *f, int version,
                                  test_rng_t *shuffle);
/* What a merge adds: highest epochs, last leaders, past ids. */
void builder_fixture_merge(builder_fixture_t *w, const facts_t *f);
void builder_fixture_merge_row(builder_fixture_t *w, const fact_row_t *p, uint32_t i);
/* All of it, at v12. */
rdmeta_topic_t *builder_fixture_block(builder_fixture_t *w, const facts_t *f,
                                      test_rng_t *shuffle);

/* The block says these facts. */
void facts_check(const facts_t *f, const rdmeta_topic_t *t);
/* How many bytes they need. */
size_t facts_size(const facts_t *f);

#endif /* RDMETA_STAGE_WORLD_H */
