/* index: tables of names and of ids, and names that are chosen to collide. */

#include "support/cache_check.h"
#include "support/testing.h"

enum { NAMES = 3000, ROUNDS = 60000 };

typedef struct fixture {
        test_heap_t heap;
        rdmeta_allocator_t allocator;
        rdmeta_memory_t blocks;
        uint64_t seed;
        rdmeta_table_t *table;
        rdmeta_topic_t *in[NAMES]; /* the model */
        char names[NAMES][24];
        uint64_t version;
} fixture_t;

static void fixture_init(fixture_t *w, size_t n, int ids) {
        memset(w, 0, sizeof(*w));
        w->allocator = test_allocator(&w->heap);
        w->seed      = test_seed;
        rdmeta_memory_init(&w->blocks, &w->allocator, RDMETA_TOPIC_HEADER_SIZE);
        w->table = rdmeta_table_new(&w->allocator, n, ids, &w->seed);
        CHECK(w->table && w->table->large.size >= sizeof(*w->table));
}

static void fixture_destroy(fixture_t *w) {
        rdmeta_table_destroy(&w->allocator, w->table);
        rdmeta_memory_destroy(&w->blocks);
        CHECK(!w->heap.blocks && !w->heap.bytes);
}

static void id_of(uint32_t i, uint8_t id[16]) {
        const uint64_t words[2] = {i + 1, ~(uint64_t)i * 77};

        memcpy(id, words, 16);
}

static rdmeta_topic_t *block_new(fixture_t *w, uint32_t i) {
        uint8_t id[16];
        rdmeta_topic_t *t;

        id_of(i, id);
        t = rdmeta_topic_bare(&w->blocks, test_str(w->names[i]), id, 0, 0,
                              ++w->version);
        CHECK(t);
        return t;
}

static uint64_t hash_of(const fixture_t *w, uint32_t i, int ids) {
        uint8_t id[16];

        id_of(i, id);
        return ids ? rdmeta_hash_id(w->table->key, id)
                   : rdmeta_hash(w->table->key, w->names[i],
                                 strlen(w->names[i]));
}

static rdmeta_topic_t *find(const fixture_t *w, uint32_t i, int ids) {
        uint8_t id[16];

        id_of(i, id);
        return ids ? rdmeta_table_id(w->table, id)
                   : rdmeta_table_name(w->table, hash_of(w, i, 0),
                                       w->names[i], strlen(w->names[i]));
}

static void put(fixture_t *w, uint32_t i, int ids) {
        w->in[i] = block_new(w, i);
        rdmeta_table_put(w->table, hash_of(w, i, ids), w->in[i]);
}

static void drop(fixture_t *w, uint32_t i, int ids) {
        rdmeta_table_drop(w->table, hash_of(w, i, ids), w->in[i]);
        rdmeta_topic_destroy(&w->blocks, w->in[i]);
        w->in[i] = NULL;
}

static void swap(fixture_t *w, uint32_t i, int ids) {
        rdmeta_topic_t *next = block_new(w, i);

        rdmeta_table_swap(w->table, hash_of(w, i, ids), w->in[i], next);
        rdmeta_topic_destroy(&w->blocks, w->in[i]);
        w->in[i] = next;
}

/* ---- against a model ----------------------------------------------------- */

static void names_make(fixture_t *w) {
        uint32_t i;

        for (i = 0; i < NAMES; i++)
                snprintf(w->names[i], sizeof(w->names[i]), "%s%u",
                         i % 3 ? "" : "a-topic-of-", i);
}

static void check_all(const fixture_t *w, int ids, size_t room) {
        size_t used = 0;
        uint32_t i;

        for (i = 0; i < NAMES; i++) {
                CHECK(find(w, i, ids) == w->in[i]);
                used += w->in[i] != NULL;
        }
        CHECK(w->table->used - w->table->tombstones == used);
        CHECK(rdmeta_table_room(w->table, ids) == room - w->table->used);
}

static void against_a_model(int ids) {
        static fixture_t w;
        test_rng_t r = test_rng((uint64_t)ids + 1);
        size_t room;
        int k;

        fixture_init(&w, 2 * NAMES, ids);
        names_make(&w);
        room = rdmeta_table_room(w.table, ids);
        for (k = 0; k < ROUNDS; k++) {
                const uint32_t i = (uint32_t)test_below(&r, NAMES);

                CHECK(find(&w, i, ids) == w.in[i]);
                if (w.in[i] && test_below(&r, 2))
                        swap(&w, i, ids);
                else if (w.in[i])
                        drop(&w, i, ids);
                else if (rdmeta_table_room(w.table, ids))
                        put(&w, i, ids);
                CHECK(find(&w, i, ids) == w.in[i]);
                if (k % 10000 == 0)
                        check_all(&w, ids, room);
        }
        CHECK(w.table->tombstones > 0);
        CHECK(rdmeta_table_room(w.table, ids) == 0); /* tombstones take room */
        check_all(&w, ids, room);
        fixture_destroy(&w);
}

TEST(test_names_are_found_while_they_are_in_the_table) {
        against_a_model(0);
}

TEST(test_ids_are_found_while_they_are_in_the_table) {
        against_a_model(1);
}

/* Returns how many slots may be used. Small tables of names stay emptier. */
static size_t full(size_t slots, int ids) {
        return ids ? slots - slots / 8
                   : slots / (slots <= RDMETA_SLOTS_SMALL ? 4 : 2);
}

TEST(test_tables_are_as_full_as_they_may_be) {
        static const size_t sizes[] = {0, 1, 7, 8, 9, 14, 15, 1000, 100000};
        size_t i, slots;
        fixture_t *w = malloc(sizeof(*w));
        int ids;

        CHECK(w);
        for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
                for (ids = 0; ids < 2; ids++) {
                        fixture_init(w, sizes[i], ids);
                        slots = (size_t)w->table->mask + 1;
                        CHECK((slots & (slots - 1)) == 0 && slots >= 16);
                        CHECK(rdmeta_table_room(w->table, ids) ==
                              full(slots, ids));
                        CHECK(rdmeta_table_room(w->table, ids) >= sizes[i]);
                        /* and half of the slots would not suffice */
                        CHECK(slots == 16 || full(slots / 2, ids) < sizes[i]);
                        fixture_destroy(w);
                }
        free(w);
}

TEST(test_without_memory_there_is_no_table) {
        test_heap_t heap;
        const rdmeta_allocator_t a = test_allocator(&heap);
        uint64_t seed              = 1;

        heap.fail_at = 1;
        CHECK(!rdmeta_table_new(&a, 100, 0, &seed));
        CHECK(!rdmeta_table_new(&a, SIZE_MAX / 64, 0, &seed));
        CHECK(!heap.blocks);
        rdmeta_table_destroy(&a, NULL);
}

/* ---- names that collide -------------------------------------------------- */

/* Finds the next name after *n that has the slot of the hash `like`, and with
 * `tag_too` its tag. That needs the table's key. */
static void collide(const rdmeta_table_t *t, uint64_t like, int tag_too,
                    uint32_t *n, char name[24]) {
        uint64_t h;

        do {
                snprintf(name, 24, "%u", ++*n);
                h = rdmeta_hash(t->key, name, strlen(name));
        } while (((rdmeta_slot_first(h) ^ rdmeta_slot_first(like)) &
                  t->mask) ||
                 (tag_too && (uint16_t)(h ^ like)));
}

TEST(test_names_of_one_slot_are_found_behind_each_other) {
        static fixture_t w;
        uint32_t n = 0, i, k;

        fixture_init(&w, 8, 0);
        strcpy(w.names[0], "first");
        for (i = 1; i < 8; i++)
                collide(w.table, hash_of(&w, 0, 0), 0, &n, w.names[i]);
        for (i = 0; i < 7; i++) {
                put(&w, i, 0);
                CHECK(w.table->longest == i);
        }
        CHECK(!find(&w, 7, 0));
        for (i = 0; i < 7; i += 2) {
                drop(&w, i, 0);
                for (k = 0; k < 7; k++)
                        CHECK(find(&w, k, 0) == w.in[k]);
        }
        swap(&w, 3, 0);
        swap(&w, 5, 0);
        put(&w, 7, 0); /* behind the tombstones */
        for (k = 0; k < 8; k++)
                CHECK(find(&w, k, 0) == w.in[k]);
        CHECK(w.table->tombstones == 4 && w.table->used == 8);
        fixture_destroy(&w);
}

TEST(test_names_of_one_slot_and_tag_are_distinguished) {
        static fixture_t w;
        uint32_t n = 0, i, k;

        fixture_init(&w, 8, 0);
        strcpy(w.names[0], "first");
        for (i = 1; i < 5; i++)
                collide(w.table, hash_of(&w, 0, 0), 1, &n, w.names[i]);
        for (i = 0; i < 4; i++) {
                put(&w, i, 0);
                for (k = 0; k < 5; k++)
                        CHECK(find(&w, k, 0) == w.in[k]);
        }
        drop(&w, 1, 0);
        swap(&w, 2, 0);
        for (k = 0; k < 5; k++)
                CHECK(find(&w, k, 0) == w.in[k]);
        fixture_destroy(&w);
}

/* A tombstone has an id of zeros, like a topic without an id. */
TEST(test_the_id_of_zeros_finds_no_tombstone) {
        static fixture_t w;
        const uint8_t zeros[16] = {0};
        rdmeta_topic_t *t;
        uint64_t words[2] = {0, 0}, like, h;
        uint8_t id[16];

        fixture_init(&w, 8, 1);
        like = rdmeta_hash_id(w.table->key, zeros);
        do { /* an id with the slot and tag of zeros */
                words[0]++;
                memcpy(id, words, 16);
                h = rdmeta_hash_id(w.table->key, id);
        } while ((uint16_t)(h ^ like) || ((rdmeta_slot_first(h) ^
                                           rdmeta_slot_first(like)) &
                                          w.table->mask));
        t = rdmeta_topic_bare(&w.blocks, test_str("a"), id, 0, 0, 1);
        CHECK(t);
        rdmeta_table_put(w.table, h, t);
        CHECK(rdmeta_table_id(w.table, id) == t);
        CHECK(!rdmeta_table_id(w.table, zeros));
        rdmeta_table_drop(w.table, h, t);
        CHECK(!rdmeta_table_id(w.table, id));
        CHECK(!rdmeta_table_id(w.table, zeros));
        fixture_destroy(&w);
}

TEST(test_a_block_that_is_not_in_is_not_swapped_or_dropped) {
        static fixture_t w;
        rdmeta_topic_t *other;

        fixture_init(&w, 8, 0);
        names_make(&w);
        put(&w, 1, 0);
        other = block_new(&w, 1); /* the same name, another block */
        rdmeta_table_swap(w.table, hash_of(&w, 1, 0), other, other);
        rdmeta_table_drop(w.table, hash_of(&w, 1, 0), other);
        rdmeta_table_drop(w.table, hash_of(&w, 2, 0), w.in[1]);
        CHECK(find(&w, 1, 0) == w.in[1] && w.table->tombstones == 0);
        fixture_destroy(&w);
}

TEST(test_each_table_has_a_key_of_its_own) {
        static fixture_t w;
        rdmeta_table_t *other;
        int i;

        fixture_init(&w, 8, 0);
        other = rdmeta_table_new(&w.allocator, 8, 0, &w.seed);
        CHECK(other);
        for (i = 0; i < RDMETA_HASH_KEYS; i++)
                CHECK(other->key[i] != w.table->key[i]);
        rdmeta_table_destroy(&w.allocator, other);
        fixture_destroy(&w);
}

/* ---- in a cache ---------------------------------------------------------- */

static const rdmeta_time_t now = {1000, 2000};

static void cache_hint(rdmeta_cache_t *c, const char *name) {
        const rdmeta_str_t s = test_str(name);
        rdmeta_str_t ask;
        size_t n;

        CHECK(!rdmeta_cache_hint(c, &s, 1, 0, 0, now, &ask, &n) && n == 1);
}

/* Fills half of a table with names that an attacker made for its key. Before it
 * is full the table gets another key, and chance places the names. */
TEST(test_names_chosen_to_collide_make_the_table_change_its_key) {
        const rdmeta_table_t *t;
        rdmeta_reader_t *r;
        rdmeta_cache_t *c  = rdmeta_cache_new(NULL);
        rdmeta_stats_t stats;
        uint32_t n = 0, i;
        uint64_t like;
        char name[24];

        CHECK(c);
        for (i = 0; i < 1100; i++) {
                snprintf(name, sizeof(name), "topic-%u", i);
                cache_hint(c, name);
        }
        t    = rdmeta_names(c);
        like = rdmeta_hash(t->key, "topic-0", 7);
        while (rdmeta_table_room(t, 0) < 2 * RDMETA_PROBE_MAX_NAMES) {
                snprintf(name, sizeof(name), "topic-%u", i++);
                cache_hint(c, name);
                t    = rdmeta_names(c);
                like = rdmeta_hash(t->key, "topic-0", 7);
        }
        rdmeta_cache_stats(c, &stats);
        CHECK(stats.reseeds == 0);
        for (i = 0; t == rdmeta_names(c); i++) {
                CHECK(i <= RDMETA_PROBE_MAX_NAMES + 2);
                collide(t, like, 0, &n, name);
                cache_hint(c, name);
        }
        rdmeta_cache_stats(c, &stats);
        CHECK(stats.reseeds == 1);
        CHECK(rdmeta_names(c)->longest < RDMETA_PROBE_MAX_NAMES / 2);
        CHECK(!rdmeta_cache_check(c));
        r = rdmeta_reader_new(c, 0);
        CHECK(r);
        CHECK(rdmeta_leader(r, name, strlen(name), 0, now.mono_us) ==
              RDMETA_WAITING);
        CHECK(rdmeta_leader(r, "topic-0", 7, 0, now.mono_us) == RDMETA_WAITING);
        rdmeta_reader_destroy(r);
        rdmeta_cache_unref(c);
}

TEST_MAIN()
