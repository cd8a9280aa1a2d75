#include "kraft/facts.h"

#include "base/tailq.h"

enum { SET_MAX = 8 };

#define ENTRY(n) RDMETA_CONTAINER(n, rdmeta_kraft_fact_entry_t, node)

static rdmeta_kraft_key_t key_of(const rdmeta_kraft_fact_entry_t *fact) {
        const rdmeta_kraft_key_t key = {fact->kind, fact->bytes,
                                        fact->key_len};

        return key;
}

static int compare(const rdmeta_kraft_key_t *a, const rdmeta_kraft_key_t *b) {
        const size_t n = a->len < b->len ? a->len : b->len;
        int order;

        if (a->kind != b->kind)
                return a->kind < b->kind ? -1 : 1;
        order = n ? memcmp(a->bytes, b->bytes, n) : 0;
        if (order)
                return order;
        return (a->len > b->len) - (a->len < b->len);
}

static int compare_key(const void *key, const rdmeta_avl_node_t *node,
                       void *opaque) {
        const rdmeta_kraft_key_t other = key_of(ENTRY(node));

        (void)opaque;
        return compare((const rdmeta_kraft_key_t *)key, &other);
}

static int compare_nodes(const rdmeta_avl_node_t *a,
                         const rdmeta_avl_node_t *b, void *opaque) {
        const rdmeta_kraft_key_t key = key_of(ENTRY(a));

        return compare_key(&key, b, opaque);
}

void rdmeta_kraft_facts_init(rdmeta_kraft_facts_t *facts,
                             const rdmeta_allocator_t *allocator) {
        facts->allocator = allocator;
        rdmeta_avl_init(&facts->tree, compare_nodes, compare_key, NULL);
}

static size_t size_of(size_t key_len, size_t len) {
        return sizeof(rdmeta_kraft_fact_entry_t) + key_len + len;
}

void rdmeta_kraft_facts_remove(rdmeta_kraft_facts_t *facts,
                               rdmeta_kraft_fact_entry_t *fact) {
        rdmeta_avl_remove(&facts->tree, &fact->node);
        rdmeta_free(facts->allocator, fact,
                    size_of(fact->key_len, fact->len));
}

void rdmeta_kraft_facts_free(rdmeta_kraft_facts_t *facts) {
        rdmeta_avl_node_t *node;

        while ((node = rdmeta_avl_first(&facts->tree)))
                rdmeta_kraft_facts_remove(facts, ENTRY(node));
}

/* ---- keys -------------------------------------------------------------- */

size_t rdmeta_kraft_key_text(rdmeta_str_t text, uint8_t *out) {
        uint8_t *p = out;
        size_t i;

        for (i = 0; i < text.len; i++) {
                *p++ = (uint8_t)text.data[i];
                if (!text.data[i])
                        *p++ = 0xff;
        }
        *p++ = 0;
        *p++ = text.data != NULL;
        return (size_t)(p - out);
}

static size_t put_value(const rdmeta_kraft_field_t *field,
                        const rdmeta_kraft_value_t *v, uint8_t *out) {
        uint64_t number;

        if (field->type == RDMETA_KRAFT_UUID) {
                memcpy(out, v->p, 16);
                return 16;
        }
        if (field->type >= RDMETA_KRAFT_STRING)
                return rdmeta_kraft_key_text(rdmeta_kraft_text(*v), out);
        number = __builtin_bswap64((uint64_t)v->number ^ UINT64_C(1) << 63);
        memcpy(out, &number, 8);
        return 8;
}

/* Writes the elements of a set in the order of their bytes. */
static int64_t put_set(const rdmeta_kraft_field_t *field,
                       const rdmeta_kraft_value_t *v, uint8_t *out) {
        rdmeta_kraft_value_t values[RDMETA_KRAFT_FIELDS];
        rdmeta_kraft_value_t parts[SET_MAX], part;
        uint8_t *p = out, *ordered;
        rdmeta_buf_t b;
        uint32_t i, k;
        int n;

        if (v->count > SET_MAX || field->type != RDMETA_KRAFT_STRUCT)
                return -1;
        rdmeta_buf_init(&b, v->p, v->size);
        for (i = 0; i < v->count; i++) {
                rdmeta_kraft_read(&b, field->of, values);
                part.p = p;
                for (n = 0; n < field->of->count; n++)
                        p += put_value(&field->of->fields[n], &values[n], p);
                part.count = (uint32_t)(p - part.p);
                for (k = i; k; k--) {
                        const rdmeta_kraft_key_t a = {0, part.p, part.count};
                        const rdmeta_kraft_key_t c = {0, parts[k - 1].p,
                                                      parts[k - 1].count};

                        if (compare(&a, &c) >= 0)
                                break;
                        parts[k] = parts[k - 1];
                }
                parts[k] = part;
        }
        ordered = p; /* behind the parts; moved to their place at the end */
        for (i = 0; i < v->count; i++) {
                memcpy(p, parts[i].p, parts[i].count);
                p += parts[i].count;
        }
        n = (int)(p - ordered);
        memmove(out, ordered, (size_t)n);
        return n;
}

int64_t rdmeta_kraft_key_write(const rdmeta_kraft_schema_t *schema,
                               const rdmeta_kraft_value_t *values,
                               uint8_t *out) {
        uint8_t *p = out;
        int64_t n;
        int i;

        for (i = 0; i < schema->count; i++) {
                if (!(schema->fields[i].flags & RDMETA_KRAFT_KEY))
                        continue;
                if (schema->fields[i].flags & RDMETA_KRAFT_ARRAY)
                        n = put_set(&schema->fields[i], &values[i], p);
                else
                        n = (int64_t)put_value(&schema->fields[i], &values[i],
                                               p);
                if (n < 0)
                        return -1;
                p += n;
        }
        return p - out;
}

int rdmeta_kraft_is_removal(const rdmeta_kraft_schema_t *schema,
                            const rdmeta_kraft_value_t *values) {
        int i;

        for (i = 0; i < schema->count; i++) {
                const uint8_t flags = schema->fields[i].flags;

                if ((flags & RDMETA_KRAFT_GONE_IF_NULL && !values[i].p) ||
                    (flags & RDMETA_KRAFT_GONE_IF_TRUE && values[i].number) ||
                    (flags & RDMETA_KRAFT_GONE_IF_ZERO && !values[i].number))
                        return 1;
        }
        return 0;
}

/* ---- the map ----------------------------------------------------------- */

rdmeta_kraft_fact_entry_t *
rdmeta_kraft_facts_find(const rdmeta_kraft_facts_t *facts,
                        rdmeta_kraft_key_t key) {
        rdmeta_avl_node_t *node = rdmeta_avl_find(&facts->tree, &key);

        return node ? ENTRY(node) : NULL;
}

rdmeta_kraft_fact_entry_t *
rdmeta_kraft_facts_next(const rdmeta_kraft_facts_t *facts,
                        rdmeta_kraft_key_t key, int is_behind) {
        rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;

        rdmeta_avl_iter_init(&it, &facts->tree, &key);
        node = rdmeta_avl_iter_next(&it);
        if (node && is_behind && !compare_key(&key, node, NULL))
                node = rdmeta_avl_iter_next(&it);
        return node ? ENTRY(node) : NULL;
}

int rdmeta_kraft_facts_set(rdmeta_kraft_facts_t *facts, rdmeta_kraft_key_t key,
                           const rdmeta_kraft_record_t *record) {
        rdmeta_kraft_fact_entry_t *old = rdmeta_kraft_facts_find(facts, key);
        rdmeta_kraft_fact_entry_t *fact = old;

        if (!old || old->len != record->len) {
                fact = rdmeta_alloc(facts->allocator,
                                    size_of(key.len, record->len));
                if (!fact)
                        return 0;
                fact->kind    = key.kind;
                fact->key_len = (uint32_t)key.len;
                fact->len     = (uint32_t)record->len;
                if (key.len)
                        memcpy(fact->bytes, key.bytes, key.len);
                if (old)
                        rdmeta_kraft_facts_remove(facts, old);
                rdmeta_avl_insert(&facts->tree, &fact->node);
        }
        memcpy(fact->bytes + key.len, record->value, record->len);
        fact->version = record->version;
        fact->offset  = record->offset;
        fact->time_us = record->time_us;
        return 1;
}
