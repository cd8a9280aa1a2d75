/*
 * answer: encodes a Metadata answer of version 12, for any caller that has its
 * facts in the decoder's views. What it encodes, response.h decodes to the same
 * views.
 *
 *     rdmeta_answer_begin       the number of brokers
 *       rdmeta_answer_broker       for each broker
 *     rdmeta_answer_head        cluster id, controller, the number of topics
 *       rdmeta_answer_topic        for each topic
 *         rdmeta_answer_partition     for each of its partitions
 *       rdmeta_answer_topic_end
 *     rdmeta_answer_end         returns the first error, or OK
 *
 * Errors stick: the calls after one do nothing. Without one, `data` has `len`
 * bytes, until rdmeta_answer_destroy().
 */
#pragma once

#include "rdmeta.h"

enum { RDMETA_ANSWER_VERSION = 12 };

typedef struct rdmeta_answer {
        uint8_t *data;
        size_t len, capacity;
        rdmeta_err_t err;
        uint32_t brokers, topics, partitions; /* still to come */
} rdmeta_answer_t;

/* Begins an answer with so many brokers; frees nothing that was in `a`. */
void rdmeta_answer_begin(rdmeta_answer_t *a, uint32_t brokers);
/* Makes room for so many bytes at once; a longer answer grows. */
void rdmeta_answer_expect(rdmeta_answer_t *a, size_t bytes);
void rdmeta_answer_broker(rdmeta_answer_t *a, const rdmeta_broker_t *broker);
/* Writes head->cluster_id, controller and topics; version 12 has no more. */
void rdmeta_answer_head(rdmeta_answer_t *a, const rdmeta_wire_head_t *head);
/* Writes a topic up to its partitions. A NULL name is null. */
void rdmeta_answer_topic(rdmeta_answer_t *a, const rdmeta_wire_topic_t *topic);
void rdmeta_answer_partition(rdmeta_answer_t *a,
                             const rdmeta_wire_partition_t *partition);
/* Writes what follows a topic's partitions: its operations. */
void rdmeta_answer_topic_end(rdmeta_answer_t *a,
                             const rdmeta_wire_topic_t *topic);
/* Returns OK, NO_MEMORY, or ARGUMENT: other numbers than were announced, a
 * string that is longer than Kafka's, or NULL where it may not be. */
rdmeta_err_t rdmeta_answer_end(rdmeta_answer_t *a);
/* Frees the bytes. */
void rdmeta_answer_destroy(rdmeta_answer_t *a);
