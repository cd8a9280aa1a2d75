/*
 * gen: makes a cluster from a seed, and its Metadata v12 responses.
 *
 *     names      one run of bytes; topic i is `team-%03d.service.events-%06d`
 *                with (i % 97, i)
 *     partitions topic i has [i * per_topic, (i + 1) * per_topic)
 *
 *       +--------------------+--------+-----+-------+
 *       | replicas: RF slots | leader | isr | epoch |   slots are indexes
 *       +--------------------+--------+-----+-------+   into broker_ids
 *
 * The RF replicas of a partition are distinct random brokers; its leader is a
 * random one of them; its ISR is all of them. Epochs are 0..500, more of them
 * low than high. So regular assignments cannot help a cache. The same seed
 * gives the same bytes on every machine.
 *
 * A change is made to the model. Then the whole cluster is encoded again, as by
 * a broker: epochs only rise, and each response is newer than the one before.
 *
 * Everything is in pages of its own, not on the heap, and goes back to the
 * system when it is freed. So a bench that measures memory sees its subject
 * only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GEN_RF = 3, GEN_API_VERSION = 12 };

/* The range of the broker ids. It decides the widths of integers. */
typedef enum gen_ids {
        GEN_IDS_8,  /* 1..127: 1, 2, 3 ... */
        GEN_IDS_16, /* 128..32767 at random */
        GEN_IDS_32  /* 32768..INT32_MAX at random */
} gen_ids_t;

typedef struct gen_conf {
        uint32_t topics;
        uint32_t per_topic; /* partitions per topic */
        uint32_t brokers;
        gen_ids_t ids;
        uint64_t seed;
} gen_conf_t;

typedef struct gen_partition {
        uint16_t replicas[GEN_RF];
        uint8_t leader; /* index into its replicas */
        uint8_t isr;    /* bit k: replica k is in sync */
        int32_t epoch;
} gen_partition_t;

typedef struct gen {
        gen_conf_t conf;
        uint64_t random;
        int32_t *broker_ids;
        gen_partition_t *partitions;
        uint32_t *name_ends; /* of topic i, which begins where i - 1 ends */
        char *names;
} gen_t;

/* Makes a cluster. Returns 0, or -1 without memory. */
int gen_init(gen_t *g, const gen_conf_t *conf);
void gen_free(gen_t *g);

/* Changes n random topics: by turns a leader with its epoch, and an ISR that
 * shrinks or is whole again. */
void gen_change(gen_t *g, uint32_t n);

const char *gen_name(const gen_t *g, uint32_t topic, size_t *len);
/* Returns the leader's broker id. */
int32_t gen_leader(const gen_t *g, uint32_t topic, uint32_t partition);

/* Returns a random order of the topics, in pages of its own. NULL: no
 * memory. */
uint32_t *gen_shuffle(gen_t *g);

/* Returns the most bytes that a response may take. */
size_t gen_response_bound(const gen_t *g);
/* Encodes a response with the topics in `order`, or by number if NULL. Returns
 * its length. */
size_t gen_response(const gen_t *g, const uint32_t *order, uint8_t *out);

/* Returns a number below n (> 0), from the generator's own sequence. */
uint32_t gen_below(gen_t *g, uint32_t n);

/* Both return zeroed pages; gen_pages() with memory behind them, the other one
 * without it until they are touched. They exit if there are none. */
void *gen_pages(size_t size);
void *gen_pages_untouched(size_t size);
void gen_pages_free(void *p, size_t size);
