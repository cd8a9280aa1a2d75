/*
 * wire_gen: Metadata responses of any version, made from plain structs. Tests,
 * fuzz corpora and benches use it. It follows Kafka's message definitions and
 * shares no code with csrc/wire/response.c, so that each checks the other.
 *
 *     gen_bytes_t body = {0};
 *     int32_t ids[] = {1, 2, 3};
 *     gen_partition_t p = {.id = 0, .leader = 1, .epoch = 7,
 *                          .replicas = GEN_IDS(ids), .isr = GEN_IDS(ids)};
 *     gen_topic_t t = {.name = GEN_STR("orders"),
 *                      .partitions = &p, .partition_count = 1};
 *     gen_cluster_t c = {.topics = &t, .topic_count = 1, ...};
 *     gen_response(&c, 12, &body);
 *     ... body.data, body.len ...
 *     gen_bytes_free(&body);
 *
 * Zeroed members are sensible: no error, null cluster id, no operations. Fields
 * that a version does not have are left out. Without memory it calls abort().
 */
#pragma once

#include "rdmeta.h"

/* ------------------------------------------------------------------------
 * Bytes: a growing writer of Kafka's types, for odd messages by hand too
 * --------------------------------------------------------------------- */

typedef struct gen_bytes {
        uint8_t *data;
        size_t len;
        size_t capacity;
        /** The least bytes of a varint, up to 5. Varints that are not minimal
         *  come from no broker, but every reader accepts them. */
        unsigned uvar_width;
} gen_bytes_t;

/* Empties `b` and keeps its memory. */
void gen_bytes_clear(gen_bytes_t *b);
void gen_bytes_free(gen_bytes_t *b);
/* Returns a copy in a block of exactly `len` bytes, so that a sanitizer sees a
 * read of one byte too many. The caller frees it with free(). */
uint8_t *gen_bytes_exact(const uint8_t *data, size_t len);

/** Returns whether the bytes are those that `hex` has in lower case. */
int gen_is_hex(const gen_bytes_t *b, const char *hex);

void gen_put(gen_bytes_t *b, const void *p, size_t n);
void gen_i8(gen_bytes_t *b, int v);
void gen_i16(gen_bytes_t *b, int v);
void gen_i32(gen_bytes_t *b, int32_t v);
void gen_uvar(gen_bytes_t *b, uint32_t v);
/* Writes a string, null if data is NULL. */
void gen_str(gen_bytes_t *b, int flexible, rdmeta_str_t s);
/* Writes the count of an array; -1 stands for null. */
void gen_count(gen_bytes_t *b, int flexible, int64_t n);
/* Writes tagged fields: none if *seed is 0, else up to three. Changes *seed. */
void gen_tags(gen_bytes_t *b, uint64_t *seed);

/* ------------------------------------------------------------------------
 * Responses
 * --------------------------------------------------------------------- */

#define GEN_STR(literal) ((rdmeta_str_t){(literal), sizeof(literal) - 1})
#define GEN_IDS(array)                                                        \
        ((gen_ids_t){(array), (int32_t)(sizeof(array) / sizeof(*(array)))})

/** A list of broker ids; count -1: a null array. */
typedef struct gen_ids {
        int32_t *ids;
        int32_t count;
} gen_ids_t;

typedef struct gen_partition {
        int32_t id;
        int32_t leader; /**< -1: none */
        int32_t epoch;  /**< written from v7 on */
        int32_t error;
        gen_ids_t replicas, isr;
        gen_ids_t offline; /**< written from v5 on */
} gen_partition_t;

typedef struct gen_topic {
        rdmeta_str_t name; /**< data NULL: null from v12 on, empty before */
        uint8_t id[16];    /**< written from v10 on */
        int32_t error;
        int32_t internal;
        int32_t has_operations; /**< 0: writes Kafka's "not asked for" */
        int32_t operations;     /**< written from v8 on */
        gen_partition_t *partitions;
        uint32_t partition_count;
} gen_topic_t;

typedef struct gen_cluster {
        int32_t throttle_ms;
        rdmeta_broker_t *brokers;
        uint32_t broker_count;
        rdmeta_str_t cluster_id; /**< data NULL: null */
        int32_t controller;
        gen_topic_t *topics;
        uint32_t topic_count;
        int32_t has_operations; /**< as a topic's */
        int32_t operations;     /**< v8-v10 */
        int32_t error;          /**< v13 */
        /** Unless it is 0, some of the places where tagged fields may be have
         *  them, the same ones for the same seed. */
        uint64_t tag_seed;
} gen_cluster_t;

/** Appends the body of a response to `out`. */
void gen_response(const gen_cluster_t *cluster, int version, gen_bytes_t *out);
/** Append one broker or topic as in such a body. *tag_seed may be 0. */
void gen_response_broker(const rdmeta_broker_t *broker, int version,
                         uint64_t *tag_seed, gen_bytes_t *out);
void gen_response_topic(const gen_topic_t *topic, int version,
                        uint64_t *tag_seed, gen_bytes_t *out);

/* ------------------------------------------------------------------------
 * A large cluster
 * --------------------------------------------------------------------- */

typedef struct gen_shape {
        uint64_t seed;
        uint32_t brokers;     /**< ids from `first_broker` on */
        int32_t first_broker; /**< 1; large ones make wide columns */
        uint32_t topics;      /**< "team-042.service.events-000123" ... */
        uint32_t partitions;  /**< per topic */
        uint32_t replication; /**< different random brokers per partition */
} gen_shape_t;

/**
 * Returns a healthy cluster: each leader is the first replica, ISR = replicas,
 * the epochs are small, the ids random. All pointers lead into its own memory,
 * and a test may write through them. It may change names and lists in place (an
 * isr shares the memory of its replicas), and lower the counts.
 */
gen_cluster_t *gen_cluster_new(const gen_shape_t *shape);
void gen_cluster_free(gen_cluster_t *cluster);

/** Swaps topics at random, as another broker would order them. */
void gen_cluster_shuffle(gen_cluster_t *cluster, uint64_t seed);
/** Makes the next replica of partition `p` its leader, with epoch + 1. */
void gen_move_leader(gen_topic_t *topic, uint32_t p);

/* ------------------------------------------------------------------------
 * Odd clusters
 * --------------------------------------------------------------------- */

/**
 * Returns a small cluster with rare values: null and empty strings, names of
 * all lengths and bytes, topics and partitions with errors, gaps, no leaders,
 * null lists, operations, extreme numbers. The same seed gives the same one.
 * The caller frees it with free().
 */
gen_cluster_t *gen_odd_cluster_new(uint64_t seed);
