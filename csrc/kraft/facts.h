/*
 * facts: the last record of all that is no row: configurations, features, ACLs,
 * quotas, credentials, tokens, controllers, producer ids, voters.
 *
 *     kind 4, key 2 "orders" "retention.ms"   ──►  ConfigRecord, offset, time
 *     kind 12, key "metadata.version"         ──►  FeatureLevelRecord ...
 *
 * One ordered map has them all. The key is the record's fields with the mark
 * KEY, in bytes whose order is that of the values. A text ends with 00 01, and
 * a 00 in it is 00 FF; so texts compare as texts, and a key that begins with
 * another's text follows it.
 */
#pragma once

#include "base/alloc.h"
#include "base/avl.h"
#include "kraft/record.h"

/* Kinds of facts: an api key, or a control record's type with this bit. */
enum { RDMETA_KRAFT_KIND_CONTROL = 1 << 8 };

typedef struct rdmeta_kraft_fact_entry {
        rdmeta_avl_node_t node;
        int64_t offset, time_us;
        uint32_t key_len, len;
        int32_t kind;
        int32_t version; /* of the record */
        uint8_t bytes[]; /* the key, then the record's value */
} rdmeta_kraft_fact_entry_t;

typedef struct rdmeta_kraft_facts {
        rdmeta_avl_t tree;
        const rdmeta_allocator_t *allocator;
} rdmeta_kraft_facts_t;

typedef struct rdmeta_kraft_key {
        int32_t kind;
        const uint8_t *bytes;
        size_t len;
} rdmeta_kraft_key_t;

void rdmeta_kraft_facts_init(rdmeta_kraft_facts_t *facts,
                             const rdmeta_allocator_t *allocator);
void rdmeta_kraft_facts_free(rdmeta_kraft_facts_t *facts);

/* Returns the bytes that rdmeta_kraft_key_write() may take for a record. */
static inline size_t rdmeta_kraft_key_room(const rdmeta_kraft_record_t *r) {
        return 8 * r->len + 128;
}
/* Writes the key of a record whose values were read. Returns its length; or -1
 * if a set in it has more than 8 elements, as no set has. */
int64_t rdmeta_kraft_key_write(const rdmeta_kraft_schema_t *schema,
                               const rdmeta_kraft_value_t *values,
                               uint8_t *out);
/* Writes a text as it is in a key. Returns the bytes. */
size_t rdmeta_kraft_key_text(rdmeta_str_t text, uint8_t *out);
/* Returns whether the record says that its fact is no more. */
int rdmeta_kraft_is_removal(const rdmeta_kraft_schema_t *schema,
                            const rdmeta_kraft_value_t *values);

/* Returns the fact of a key. NULL: none. */
rdmeta_kraft_fact_entry_t *
rdmeta_kraft_facts_find(const rdmeta_kraft_facts_t *facts,
                        rdmeta_kraft_key_t key);
/* Returns the first fact from a key on, or the first one behind it. */
rdmeta_kraft_fact_entry_t *
rdmeta_kraft_facts_next(const rdmeta_kraft_facts_t *facts,
                        rdmeta_kraft_key_t key, int is_behind);
/* Stores a fact in place of an older one. Returns 0: no memory, nothing
 * changed. */
int rdmeta_kraft_facts_set(rdmeta_kraft_facts_t *facts, rdmeta_kraft_key_t key,
                           const rdmeta_kraft_record_t *record);
void rdmeta_kraft_facts_remove(rdmeta_kraft_facts_t *facts,
                               rdmeta_kraft_fact_entry_t *fact);
