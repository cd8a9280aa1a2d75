/*
 * Pins of one table against copies of all its slots. Each pin reads the table
 * as it was when the pin was made, whatever was stored since.
 */
#include <stdatomic.h>

/* A reader of a pin makes two loads, inline. Here after_load() runs after each
 * of them, and may do what another thread would do. */
static void after_load(void);
#undef atomic_load_explicit
#define atomic_load_explicit(p, order)                                       \
        __extension__({                                                      \
                __auto_type v_ = __atomic_load_n((p), (order));              \
                after_load();                                                \
                v_;                                                          \
        })

#include "store/index.h"

#include "support/testing.h"

enum { PINS = 6, NAMES = 400, STEPS = 4000 };

typedef struct state {
        uint64_t slots[4096];
        int64_t deadlines[4096];
        rdmeta_provenance_t provenance[4096];
} state_t;

typedef struct fixture {
        test_heap_t heap;
        rdmeta_allocator_t allocator;
        test_rng_t rng;
        rdmeta_memory_t blocks;
        rdmeta_table_t *table;
        rdmeta_slot_page_pool_t pool;
        rdmeta_topic_t *live[NAMES]; /* NULL: not in the table */
        rdmeta_topic_t *all[STEPS + NAMES]; /* freed at the end only */
        size_t n_all;
        rdmeta_table_pin_t *pins[PINS];
        state_t states[PINS];
} fixture_t;

static rdmeta_topic_t *topic_new(fixture_t *w, int i) {
        static const uint8_t id[16];
        char name[24];
        rdmeta_topic_t *t;

        snprintf(name, sizeof(name), "a-topic-%d", i);
        t = rdmeta_topic_bare(&w->blocks, test_str(name), id, 0, 0, 1);
        CHECK(t && w->n_all < sizeof(w->all) / sizeof(w->all[0]));
        w->all[w->n_all++] = t;
        return t;
}

static uint64_t hash_of(const fixture_t *w, const rdmeta_topic_t *t) {
        return rdmeta_hash(w->table->key, t->name, t->name_len);
}

/* Reserves a page for the next change, as a writer does. */
static void room(fixture_t *w) {
        CHECK(!rdmeta_slot_page_pool_reserve(&w->pool, 1));
}

static void change(fixture_t *w) {
        const int i        = (int)test_below(&w->rng, NAMES);
        rdmeta_topic_t *t  = w->live[i], *next;
        const size_t taken = w->pool.n_free;

        room(w);
        if (!t) {
                if (!rdmeta_table_room(w->table, 0))
                        return;
                w->live[i] = next = topic_new(w, i);
                rdmeta_table_put(w->table, hash_of(w, next), next);
        } else if (test_below(&w->rng, 4) == 0) {
                rdmeta_table_drop(w->table, hash_of(w, t), t);
                w->live[i] = NULL;
        } else if (test_below(&w->rng, 2)) {
                w->live[i] = next = topic_new(w, i);
                rdmeta_table_swap(w->table, hash_of(w, t), t, next);
        } else {
                if (w->table->pins.count)
                        rdmeta_table_pins_topic(w->table, t);
                atomic_store(&t->deadline, (int64_t)test_u64(&w->rng));
                rdmeta_topic_provenance_set(
                        t, rdmeta_provenance_of(test_u64(&w->rng)));
        }
        CHECK(w->pool.n_free + 1 >= (taken ? taken : 1));
}

static int same_provenance(rdmeta_provenance_t a, rdmeta_provenance_t b) {
        return a.broker == b.broker && a.reason == b.reason;
}

static void pin(fixture_t *w, int k) {
        uint32_t i;

        w->pins[k] = rdmeta_table_pin_new(&w->pool, w->table);
        CHECK(w->pins[k]);
        CHECK(rdmeta_table_pins_uncopied(w->table) == w->table->mask / 64 + 1);
        for (i = 0; i <= w->table->mask; i++) {
                const uint64_t slot = atomic_load(&w->table->slots[i]);
                const rdmeta_topic_t *t = rdmeta_slot_topic(slot);

                w->states[k].slots[i] = slot;
                if (!t)
                        continue;
                w->states[k].deadlines[i]  = atomic_load(&t->deadline);
                w->states[k].provenance[i] = rdmeta_topic_provenance(t);
        }
}

static void pin_check(const fixture_t *w, int k) {
        const rdmeta_table_pin_t *p = w->pins[k];
        const state_t *s            = &w->states[k];
        uint32_t i;

        for (i = 0; i <= w->table->mask; i++) {
                const uint64_t slot     = rdmeta_table_pin_slot(p, i);
                const rdmeta_topic_t *t = rdmeta_slot_topic(slot);

                CHECK(slot == s->slots[i]);
                if (!t || t == &rdmeta_tombstone.topic)
                        continue;
                CHECK(rdmeta_table_pin_deadline(p, i, t) == s->deadlines[i]);
                CHECK(same_provenance(rdmeta_table_pin_provenance(p, i, t),
                                      s->provenance[i]));
        }
}

static void fixture_init(fixture_t *w, uint64_t seed, size_t names) {
        uint64_t key = seed + 1;

        memset(w, 0, sizeof(*w));
        w->allocator = test_allocator(&w->heap);
        w->rng       = test_rng(seed);
        rdmeta_memory_init(&w->blocks, &w->allocator, RDMETA_TOPIC_HEADER_SIZE);
        rdmeta_slot_page_pool_init(&w->pool, &w->allocator, 1);
        w->table = rdmeta_table_new(&w->allocator, names, 0, &key);
        CHECK(w->table && w->table->mask < 4096);
}

static void fixture_end(fixture_t *w) {
        size_t i;

        rdmeta_slot_page_pool_trim(&w->pool, 0);
        CHECK(w->pool.n == 0 && !w->table->pins.count);
        for (i = 0; i < w->n_all; i++)
                rdmeta_topic_destroy(&w->blocks, w->all[i]);
        rdmeta_table_destroy(&w->allocator, w->table);
        rdmeta_memory_destroy(&w->blocks);
        CHECK(!w->heap.blocks && !w->heap.bytes);
}

static void history(uint64_t seed, size_t names) {
        static fixture_t w;
        int step, k;

        fixture_init(&w, seed, names);
        for (step = 0; step < STEPS; step++) {
                change(&w);
                k = (int)test_below(&w.rng, PINS);
                if (w.pins[k])
                        pin_check(&w, k);
                if (test_below(&w.rng, 20))
                        continue;
                if (!w.pins[k]) {
                        pin(&w, k);
                } else {
                        rdmeta_table_pin_destroy(w.pins[k]);
                        w.pins[k] = NULL;
                }
        }
        for (k = 0; k < PINS; k++)
                if (w.pins[k])
                        rdmeta_table_pin_destroy(w.pins[k]);
        fixture_end(&w);
}

TEST(test_a_pin_reads_the_table_as_it_was) {
        history(1, 900); /* tombstones are not reused: it fills up */
        history(2, 300);
        history(3, 20); /* less than one page */
}

TEST(test_one_copy_serves_all_pins_that_have_none) {
        static fixture_t w;
        int k;

        fixture_init(&w, 4, 300);
        for (k = 0; k < 100; k++)
                change(&w);
        for (k = 0; k < PINS; k++)
                pin(&w, k);
        rdmeta_slot_page_pool_trim(&w.pool, 0);
        CHECK(w.pool.n == 0);
        room(&w);
        for (k = 0; !w.live[k]; k++)
                ;
        rdmeta_table_drop(w.table, hash_of(&w, w.live[k]), w.live[k]);
        CHECK(w.pool.n == 1 && w.pool.n_free == 0);
        for (k = 0; k < PINS; k++) {
                CHECK(w.pins[k]->uncopied == w.pins[k]->count - 1);
                pin_check(&w, k);
                rdmeta_table_pin_destroy(w.pins[k]);
        }
        CHECK(w.pool.n_free == 1);
        fixture_end(&w);
}

TEST(test_room_and_pins_that_cannot_be_had_leave_nothing) {
        static fixture_t w;
        size_t n;

        fixture_init(&w, 5, 300);
        w.heap.fail_at = w.heap.calls + 3;
        CHECK(rdmeta_slot_page_pool_reserve(&w.pool, 9) ==
              RDMETA_ERR_NO_MEMORY);
        CHECK(w.pool.n == 2 && w.pool.n_free == 2);
        CHECK(!rdmeta_slot_page_pool_reserve(&w.pool, 9) && w.pool.n_free == 9);
        n              = w.heap.blocks;
        w.heap.fail_at = w.heap.calls + 1;
        CHECK(!rdmeta_table_pin_new(&w.pool, w.table));
        CHECK(!w.table->pins.count && w.heap.blocks == n);
        fixture_end(&w);
}

/* ---- a writer between a reader's loads ----------------------------------- */

enum { SLOT, DEADLINE, PROVENANCE, KINDS };

static struct {
        fixture_t *w;
        int i;     /* the topic */
        int kind;  /* what changes */
        int loads; /* loads until the change; 0: no change */
} between;

static void after_load(void) {
        fixture_t *w = between.w;
        rdmeta_topic_t *t;

        if (!between.loads || --between.loads)
                return;
        t = w->live[between.i];
        if (between.kind == SLOT) {
                rdmeta_table_drop(w->table, hash_of(w, t), t);
        } else {
                rdmeta_table_pins_topic(w->table, t);
                atomic_store(&t->deadline, 77);
                rdmeta_topic_provenance_set(t,
                                            (rdmeta_provenance_t){77, 78, 0});
        }
}

/* Reads while the writer makes the page's first change after the nth load. */
static void read_against(fixture_t *w, int i, int kind, int nth) {
        rdmeta_topic_t *t   = w->live[i];
        rdmeta_slot_t *slot = rdmeta_table_slot(w->table, hash_of(w, t), t);
        const uint32_t k    = (uint32_t)(slot - w->table->slots);
        const int64_t deadline = atomic_load(&t->deadline);
        const rdmeta_provenance_t provenance = rdmeta_topic_provenance(t);

        pin(w, 0);
        room(w);
        between.w     = w;
        between.i     = i;
        between.kind  = kind;
        between.loads = nth;
        if (kind == SLOT)
                CHECK(rdmeta_slot_topic(rdmeta_table_pin_slot(w->pins[0],
                                                              k)) == t);
        else if (kind == DEADLINE)
                CHECK(rdmeta_table_pin_deadline(w->pins[0], k, t) == deadline);
        else
                CHECK(same_provenance(
                        rdmeta_table_pin_provenance(w->pins[0], k, t),
                        provenance));
        between.loads = 0;
        pin_check(w, 0);
        rdmeta_table_pin_destroy(w->pins[0]);
        w->pins[0] = NULL;
}

TEST(test_a_change_between_a_readers_loads_does_not_show) {
        static fixture_t w;
        int i, k;

        fixture_init(&w, 6, 300);
        for (i = 0; i < 300; i++)
                change(&w);
        for (i = 0; !w.live[i]; i++)
                ;
        for (k = KINDS - 1; k >= 0; k--) { /* slots last: they become empty */
                read_against(&w, i, k, 1);
                for (i++; !w.live[i]; i++)
                        ;
                read_against(&w, i, k, 2);
                for (i++; !w.live[i]; i++)
                        ;
        }
        fixture_end(&w);
}

TEST_MAIN()
