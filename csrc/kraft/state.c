#include "kraft/state.h"

#include "base/alloc.h"
#include "topic/sort.h"

/* WINDOW: the records that are fetched at a time. */
enum { FIRST_SLOTS = 16, WINDOW = 32 };

static int compare_name(const void *key, const rdmeta_avl_node_t *node,
                        void *opaque) {
        const rdmeta_str_t *name            = (const rdmeta_str_t *)key;
        const rdmeta_kraft_topic_entry_t *t = RDMETA_KRAFT_TOPIC_AT(node);

        (void)opaque;
        return rdmeta_names_compare(name->data, name->len, t->name,
                                    t->name_len);
}

static int compare_names(const rdmeta_avl_node_t *a,
                         const rdmeta_avl_node_t *b, void *opaque) {
        const rdmeta_str_t name =
                rdmeta_kraft_topic_name(RDMETA_KRAFT_TOPIC_AT(a));

        return compare_name(&name, b, opaque);
}

static int compare_id(const void *key, const rdmeta_avl_node_t *node,
                      void *opaque) {
        const int32_t id    = *(const int32_t *)key;
        const int32_t other = RDMETA_KRAFT_BROKER_AT(node)->id;

        (void)opaque;
        return (id > other) - (id < other);
}

static int compare_ids(const rdmeta_avl_node_t *a, const rdmeta_avl_node_t *b,
                       void *opaque) {
        return compare_id(&RDMETA_KRAFT_BROKER_AT(a)->id, b, opaque);
}

rdmeta_kraft_state_t *rdmeta_kraft_state_new(const rdmeta_allocator_t *a,
                                             uint64_t seed) {
        rdmeta_kraft_state_t *s;
        int i;

        s = rdmeta_alloc(a, sizeof(*s));
        if (!s)
                return NULL;
        memset(s, 0, sizeof(*s));
        if (a)
                s->allocator = *a;
        rdmeta_slab_init(&s->slab, &s->allocator, 8, 0);
        for (i = 0; i < RDMETA_HASH_KEYS; i++)
                s->key[i] = rdmeta_seed_next(&seed);
        s->time_us = INT64_MIN;
        rdmeta_avl_init(&s->names, compare_names, compare_name, NULL);
        rdmeta_avl_init(&s->brokers, compare_ids, compare_id, NULL);
        rdmeta_kraft_facts_init(&s->facts, &s->allocator);
        return s;
}

void rdmeta_kraft_state_destroy(rdmeta_kraft_state_t *s) {
        const rdmeta_allocator_t a = s ? s->allocator
                                       : (rdmeta_allocator_t){0};
        rdmeta_avl_node_t *node;

        if (!s)
                return;
        while ((node = rdmeta_avl_first(&s->names)))
                rdmeta_kraft_topic_remove(s, RDMETA_KRAFT_TOPIC_AT(node));
        rdmeta_kraft_gone_free(s);
        while ((node = rdmeta_avl_first(&s->brokers)))
                rdmeta_kraft_broker_remove(s, RDMETA_KRAFT_BROKER_AT(node));
        rdmeta_slab_destroy(&s->slab);
        rdmeta_kraft_facts_free(&s->facts);
        if (s->slots)
                rdmeta_free(&a, s->slots,
                            ((size_t)s->mask + 1) * sizeof(*s->slots));
        if (s->directories) {
                rdmeta_free(&a, s->directories,
                            ((size_t)s->directory_mask + 1) / 2 * 16);
                rdmeta_free(&a, s->directory_slots,
                            ((size_t)s->directory_mask + 1) * 4);
        }
        rdmeta_free(&a, s->epochs, s->epochs_capacity * sizeof(*s->epochs));
        rdmeta_free(&a, s, sizeof(*s));
}

/* ---- topics ------------------------------------------------------------ */

static uint32_t slot_of(const rdmeta_kraft_state_t *s, const uint8_t *id,
                        uint32_t mask) {
        return (uint32_t)rdmeta_hash_id(s->key, id) & mask;
}

rdmeta_kraft_topic_entry_t *
rdmeta_kraft_topic_by_id(const rdmeta_kraft_state_t *s,
                         const uint8_t id[16]) {
        uint32_t k;

        if (!s->slots)
                return NULL;
        for (k = slot_of(s, id, s->mask); s->slots[k]; k = (k + 1) & s->mask)
                if (!memcmp(s->slots[k]->id, id, 16))
                        return s->slots[k];
        return NULL;
}

rdmeta_kraft_topic_entry_t *
rdmeta_kraft_topic_by_name(const rdmeta_kraft_state_t *s, rdmeta_str_t name) {
        rdmeta_avl_node_t *node = rdmeta_avl_find(&s->names, &name);

        return node ? RDMETA_KRAFT_TOPIC_AT(node) : NULL;
}

/* Reads the next record, of this batch or of one behind it. */
static int ahead_next(rdmeta_kraft_ahead_t *a, rdmeta_kraft_record_t *out) {
        while (rdmeta_kraft_records_next(&a->records, out) <= 0) {
                if (!rdmeta_kraft_batch_head(a->p, a->len, &a->batch)) {
                        a->offset = INT64_MAX;
                        return 0;
                }
                a->p += a->batch.size;
                a->len -= a->batch.size;
                rdmeta_kraft_records_init(&a->records, &a->batch);
        }
        a->offset = out->offset + 1;
        return 1;
}

void rdmeta_kraft_prefetch(const rdmeta_kraft_state_t *s,
                           rdmeta_kraft_ahead_t *ahead) {
        const void *at[WINDOW];
        int32_t ids[WINDOW];
        const rdmeta_kraft_topic_entry_t *t;
        const rdmeta_kraft_row_t *rows[WINDOW];
        rdmeta_kraft_record_t record;
        int i, n, m = 0;

        for (n = 0; n < WINDOW && ahead_next(ahead, &record); n++) {
                const rdmeta_buf_t b = rdmeta_kraft_record_body(&record);

                if (!s->slots || record.control || rdmeta_buf_left(&b) < 20 ||
                    (record.type != RDMETA_KRAFT_PARTITION &&
                     record.type != RDMETA_KRAFT_PARTITION_CHANGE))
                        continue;
                ids[m] = (int32_t)rdmeta_be32(b.p);
                at[m]  = &s->slots[slot_of(s, b.p + 4, s->mask)];
                __builtin_prefetch(at[m++]);
        }
        for (i = 0; i < m; i++) {
                at[i] = *(rdmeta_kraft_topic_entry_t *const *)at[i];
                __builtin_prefetch(at[i]);
        }
        for (i = 0; i < m; i++) {
                t     = (const rdmeta_kraft_topic_entry_t *)at[i];
                at[i] = t && (uint32_t)ids[i] < t->count ? &t->rows[ids[i]]
                                                         : NULL;
                __builtin_prefetch(at[i]);
        }
        for (i = n = 0; i < m; i++)
                if (at[i])
                        rows[n++] = *(rdmeta_kraft_row_t *const *)at[i];
        /* Read to their ends: a CPU may drop a prefetch whose page it would
         * have to look up. */
        for (i = 0; i < n; i++)
                (void)*(const volatile uint8_t *)(rows[i]->lists - 1 +
                                                  4 * rows[i]->capacity);
}

static void slot_put(rdmeta_kraft_state_t *s,
                     rdmeta_kraft_topic_entry_t **slots, uint32_t mask,
                     rdmeta_kraft_topic_entry_t *t) {
        uint32_t k = slot_of(s, t->id, mask);

        while (slots[k])
                k = (k + 1) & mask;
        slots[k] = t;
}

/* Makes room for one more topic; returns 0: no memory. */
static int slots_grow(rdmeta_kraft_state_t *s) {
        const size_t n = s->slots ? (size_t)s->mask + 1 : 0;
        const size_t m = n ? 2 * n : FIRST_SLOTS;
        rdmeta_kraft_topic_entry_t **slots;
        size_t i;

        if (s->topics + (size_t)1 <= n / 2)
                return 1;
        slots = rdmeta_alloc_large(&s->allocator, m * sizeof(*slots));
        if (!slots)
                return 0;
        memset(slots, 0, m * sizeof(*slots));
        for (i = 0; i < n; i++)
                if (s->slots[i])
                        slot_put(s, slots, (uint32_t)m - 1, s->slots[i]);
        if (n)
                rdmeta_free(&s->allocator, s->slots, n * sizeof(*slots));
        s->slots = slots;
        s->mask  = (uint32_t)m - 1;
        return 1;
}

rdmeta_kraft_topic_entry_t *rdmeta_kraft_topic_add(rdmeta_kraft_state_t *s,
                                                   rdmeta_str_t name,
                                                   const uint8_t id[16]) {
        rdmeta_kraft_topic_entry_t *t;

        if (!slots_grow(s))
                return NULL;
        t = rdmeta_slab_alloc(&s->slab, sizeof(*t) + name.len);
        if (!t)
                return NULL;
        memset(t, 0, sizeof(*t));
        memcpy(t->id, id, 16);
        t->name_len = (uint32_t)name.len;
        if (name.len)
                memcpy(t->name, name.data, name.len);
        rdmeta_avl_insert(&s->names, &t->by_name);
        slot_put(s, s->slots, s->mask, t);
        s->topics++;
        return t;
}

/* Empties a slot, and moves those behind it to where a search finds them. */
static void slot_clear(rdmeta_kraft_state_t *s, uint32_t k) {
        uint32_t next = k, home;

        for (;;) {
                s->slots[k] = NULL;
                do {
                        next = (next + 1) & s->mask;
                        if (!s->slots[next])
                                return;
                        home = slot_of(s, s->slots[next]->id, s->mask);
                } while (((next - home) & s->mask) < ((next - k) & s->mask));
                s->slots[k] = s->slots[next];
                k           = next;
        }
}

static size_t row_size(const rdmeta_kraft_row_t *row) {
        return RDMETA_KRAFT_ROW_FIXED + 4 * (size_t)row->capacity;
}

void rdmeta_kraft_topic_remove(rdmeta_kraft_state_t *s,
                               rdmeta_kraft_topic_entry_t *t) {
        uint32_t k = slot_of(s, t->id, s->mask), i;

        while (s->slots[k] != t)
                k = (k + 1) & s->mask;
        slot_clear(s, k);
        rdmeta_avl_remove(&s->names, &t->by_name);
        for (i = 0; i < t->count; i++)
                rdmeta_slab_free(&s->slab, t->rows[i], row_size(t->rows[i]));
        s->topics--;
        s->partitions -= t->count;
        if (t->capacity)
                rdmeta_slab_free(&s->slab, t->rows,
                                 t->capacity * sizeof(*t->rows));
        t->count = t->capacity = 0;
        t->by_name.child[0]    = (uintptr_t)s->gone;
        s->gone                = t;
}

void rdmeta_kraft_gone_free(rdmeta_kraft_state_t *s) {
        rdmeta_kraft_topic_entry_t *t;

        while ((t = s->gone)) {
                s->gone = (rdmeta_kraft_topic_entry_t *)t->by_name.child[0];
                rdmeta_slab_free(&s->slab, t, sizeof(*t) + t->name_len);
        }
}

/* ---- partitions -------------------------------------------------------- */

uint32_t rdmeta_kraft_row_place(const rdmeta_kraft_topic_entry_t *t,
                                int32_t id) {
        uint32_t low = 0, high = t->count, middle;

        if ((uint32_t)id < high && t->rows[id]->id == id)
                return (uint32_t)id;
        if (high && t->rows[high - 1]->id < id)
                return high;
        while (low < high) {
                middle = low + (high - low) / 2;
                if (t->rows[middle]->id < id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

rdmeta_kraft_row_t *rdmeta_kraft_row_of(const rdmeta_kraft_topic_entry_t *t,
                                        int32_t id) {
        const uint32_t k = rdmeta_kraft_row_place(t, id);

        return k < t->count && t->rows[k]->id == id ? t->rows[k] : NULL;
}

/* Makes room for one more row; returns 0: no memory. */
static int rows_grow(rdmeta_kraft_state_t *s, rdmeta_kraft_topic_entry_t *t) {
        const uint32_t n = t->capacity ? t->capacity + t->capacity / 2 + 1 : 3;
        rdmeta_kraft_row_t **rows;

        if (t->count < t->capacity)
                return 1;
        rows = rdmeta_slab_alloc(&s->slab, n * sizeof(*rows));
        if (!rows)
                return 0;
        if (t->capacity) {
                memcpy(rows, t->rows, t->count * sizeof(*rows));
                rdmeta_slab_free(&s->slab, t->rows,
                                 t->capacity * sizeof(*rows));
        }
        t->rows     = rows;
        t->capacity = n;
        return 1;
}

/* Makes a row of this capacity, in place of `old` or as a new one. NULL: no
 * memory. */
static rdmeta_kraft_row_t *row_new(rdmeta_kraft_state_t *s,
                                   rdmeta_kraft_topic_entry_t *t,
                                   rdmeta_kraft_row_t *old, int32_t id,
                                   size_t units) {
        const uint32_t k = rdmeta_kraft_row_place(t, id);
        rdmeta_kraft_row_t *now;

        if (!old && !rows_grow(s, t))
                return NULL;
        now = rdmeta_slab_alloc(&s->slab, RDMETA_KRAFT_ROW_FIXED + 4 * units);
        if (!now)
                return NULL;
        if (old) {
                rdmeta_slab_free(&s->slab, old, row_size(old));
        } else {
                memmove(t->rows + k + 1, t->rows + k,
                        (t->count - k) * sizeof(*t->rows));
                t->count++;
                s->partitions++;
        }
        t->rows[k] = now;
        return now;
}

int rdmeta_kraft_row_set(rdmeta_kraft_state_t *s,
                         rdmeta_kraft_topic_entry_t *t,
                         rdmeta_kraft_row_t *old,
                         const rdmeta_kraft_row_t *row) {
        const size_t units      = rdmeta_kraft_row_units(row);
        uint16_t capacity       = old ? old->capacity : 0;
        rdmeta_kraft_row_t *now = old;

        if (!old || units > capacity) {
                capacity = (uint16_t)units;
                now      = row_new(s, t, old, row->id, units);
                if (!now)
                        return 0;
        }
        memcpy(now, row, RDMETA_KRAFT_ROW_FIXED + 4 * units);
        now->capacity = capacity;
        return 1;
}

/* ---- directories ------------------------------------------------------- */

/* Makes room for one more directory; returns 0: no memory. */
static int directories_grow(rdmeta_kraft_state_t *s) {
        const size_t n = s->directories ? (size_t)s->directory_mask + 1 : 0;
        const size_t m = n ? 2 * n : FIRST_SLOTS;
        uint8_t (*ids)[16];
        uint32_t *slots, i, k;

        if (s->n_directories < n / 2)
                return 1;
        ids   = rdmeta_alloc(&s->allocator, m / 2 * 16);
        slots = rdmeta_alloc(&s->allocator, m * sizeof(*slots));
        if (!ids || !slots) {
                rdmeta_free(&s->allocator, ids, m / 2 * 16);
                rdmeta_free(&s->allocator, slots, m * sizeof(*slots));
                return 0;
        }
        memset(slots, 0, m * sizeof(*slots));
        for (i = 0; i < s->n_directories; i++) {
                memcpy(ids[i], s->directories[i], 16);
                k = slot_of(s, ids[i], (uint32_t)m - 1);
                while (slots[k])
                        k = (k + 1) & ((uint32_t)m - 1);
                slots[k] = i + 1;
        }
        rdmeta_free(&s->allocator, s->directories, n / 2 * 16);
        rdmeta_free(&s->allocator, s->directory_slots, n * sizeof(*slots));
        s->directories     = ids;
        s->directory_slots = slots;
        s->directory_mask  = (uint32_t)m - 1;
        return 1;
}

int64_t rdmeta_kraft_directory(rdmeta_kraft_state_t *s,
                               const uint8_t id[16]) {
        uint32_t k;

        if (!directories_grow(s))
                return -1;
        for (k = slot_of(s, id, s->directory_mask); s->directory_slots[k];
             k = (k + 1) & s->directory_mask)
                if (!memcmp(s->directories[s->directory_slots[k] - 1], id, 16))
                        return s->directory_slots[k] - 1;
        memcpy(s->directories[s->n_directories], id, 16);
        s->directory_slots[k] = ++s->n_directories;
        return s->n_directories - 1;
}

/* ---- brokers ----------------------------------------------------------- */

rdmeta_kraft_broker_entry_t *
rdmeta_kraft_broker_of(const rdmeta_kraft_state_t *s, int32_t id) {
        rdmeta_avl_node_t *node = rdmeta_avl_find(&s->brokers, &id);

        return node ? RDMETA_KRAFT_BROKER_AT(node) : NULL;
}

void rdmeta_kraft_broker_remove(rdmeta_kraft_state_t *s,
                                rdmeta_kraft_broker_entry_t *b) {
        rdmeta_avl_remove(&s->brokers, &b->by_id);
        rdmeta_kraft_broker_free(s, b);
}

static void dirs_free(rdmeta_kraft_state_t *s, rdmeta_kraft_dirs_t *dirs) {
        rdmeta_free(&s->allocator, dirs->own, 16 * (size_t)dirs->own_n);
}

void rdmeta_kraft_broker_free(rdmeta_kraft_state_t *s,
                              rdmeta_kraft_broker_entry_t *b) {
        dirs_free(s, &b->dirs);
        dirs_free(s, &b->cordoned);
        rdmeta_free(&s->allocator, b, sizeof(*b) + b->registration.len);
}

rdmeta_kraft_broker_entry_t *
rdmeta_kraft_broker_new(rdmeta_kraft_state_t *s,
                        const rdmeta_kraft_record_t *record,
                        const rdmeta_kraft_schema_t *schema,
                        const rdmeta_kraft_value_t *values) {
        rdmeta_kraft_broker_entry_t *b =
                rdmeta_alloc(&s->allocator, sizeof(*b) + record->len);
        rdmeta_kraft_value_t v;

        if (!b)
                return NULL;
        memset(b, 0, sizeof(*b));
        memcpy(b->value, record->value, record->len);
        b->registration       = *record;
        b->registration.value = b->value;
        b->offset             = record->offset;
        b->time_us            = record->time_us;
#define VALUE(name) (v = rdmeta_kraft_value_of(schema, values, name))
        b->id            = (int32_t)VALUE("brokerId").number;
        b->epoch         = VALUE("brokerEpoch").number;
        b->fenced        = (int8_t)VALUE("fenced").number;
        b->shutting_down = (int8_t)VALUE("inControlledShutdown").number;
        b->dirs.n     = VALUE("logDirs").count;
        b->dirs.p     = b->value + (v.count ? v.p - record->value : 0);
        if (VALUE("cordonedLogDirs").p)
                b->cordoned.p = b->value + (v.count ? v.p - record->value : 0);
        b->cordoned.n = v.count;
#undef VALUE
        return b;
}

void rdmeta_kraft_broker_put(rdmeta_kraft_state_t *s,
                             rdmeta_kraft_broker_entry_t *b) {
        rdmeta_kraft_broker_entry_t *old = rdmeta_kraft_broker_of(s, b->id);

        if (old)
                rdmeta_kraft_broker_remove(s, old);
        rdmeta_avl_insert(&s->brokers, &b->by_id);
}

/* Returns the schema of an array of structs. */
static const rdmeta_kraft_schema_t *
schema_in(const rdmeta_kraft_schema_t *schema, const char *name) {
        int i = 0;

        while (strcmp(schema->fields[i].name, name) != 0)
                i++;
        return schema->fields[i].of;
}

int rdmeta_kraft_endpoint(const rdmeta_kraft_broker_entry_t *b,
                          rdmeta_str_t listener, rdmeta_broker_t *out) {
        rdmeta_kraft_value_t values[RDMETA_KRAFT_FIELDS], all, v;
        rdmeta_kraft_value_t inner[RDMETA_KRAFT_FIELDS];
        const rdmeta_broker_t none = {b->id, 0, {"", 0}, {NULL, 0}};
        const rdmeta_kraft_schema_t *schema, *of;
        rdmeta_buf_t buf;
        uint32_t i;
        int bad;

        *out   = none;
        schema = rdmeta_kraft_record_read(&b->registration, values, &bad);
        out->rack = rdmeta_kraft_text(
                rdmeta_kraft_value_of(schema, values, "rack"));
        all = rdmeta_kraft_value_of(schema, values, "endPoints");
        of  = schema_in(schema, "endPoints");
        rdmeta_buf_init(&buf, all.p, all.size);
        for (i = 0; i < all.count; i++) {
                rdmeta_kraft_read(&buf, of, inner);
                v = rdmeta_kraft_value_of(of, inner, "name");
                if (listener.data &&
                    (listener.len != v.count ||
                     memcmp(listener.data, v.p, v.count) != 0))
                        continue;
                v         = rdmeta_kraft_value_of(of, inner, "host");
                out->host = rdmeta_kraft_text(v);
                v         = rdmeta_kraft_value_of(of, inner, "port");
                out->port = (int32_t)v.number;
                return 1;
        }
        return 0;
}

int rdmeta_kraft_dirs_set(rdmeta_kraft_state_t *s, rdmeta_kraft_dirs_t *dirs,
                          const rdmeta_kraft_value_t *to) {
        static const uint8_t none[1];
        uint8_t *p = NULL;

        if (to->size) {
                p = rdmeta_alloc(&s->allocator, to->size);
                if (!p)
                        return 0;
                memcpy(p, to->p, to->size);
        }
        dirs_free(s, dirs);
        *dirs = (rdmeta_kraft_dirs_t){p ? p : none, to->count, to->count, p};
        return 1;
}

/* ---- epochs ------------------------------------------------------------ */

int rdmeta_kraft_epoch_add(rdmeta_kraft_state_t *s, int64_t from,
                           int32_t epoch, int32_t leader) {
        rdmeta_kraft_epoch_t *last =
                s->n_epochs ? &s->epochs[s->n_epochs - 1] : NULL;
        const uint32_t n = s->epochs_capacity;
        rdmeta_kraft_epoch_t *epochs;

        if (last && last->epoch == epoch) {
                if (leader != RDMETA_NONE)
                        last->leader = leader;
                return 1;
        }
        if (s->n_epochs == n) {
                epochs = rdmeta_alloc(&s->allocator,
                                      (2 * (size_t)n + 4) * sizeof(*epochs));
                if (!epochs)
                        return 0;
                if (n)
                        memcpy(epochs, s->epochs, n * sizeof(*epochs));
                rdmeta_free(&s->allocator, s->epochs, n * sizeof(*epochs));
                s->epochs          = epochs;
                s->epochs_capacity = 2 * n + 4;
        }
        last         = &s->epochs[s->n_epochs++];
        last->from   = from;
        last->epoch  = epoch;
        last->leader = leader;
        return 1;
}

const rdmeta_kraft_epoch_t *
rdmeta_kraft_epoch_at(const rdmeta_kraft_state_t *s, int64_t offset) {
        uint32_t low = 0, high = s->n_epochs, middle;

        while (low < high) {
                middle = low + (high - low) / 2;
                if (s->epochs[middle].from <= offset)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low ? &s->epochs[low - 1] : NULL;
}
