/* expiry: whatever the times to live, what is due first comes first. */
#include "store/deadlines.h"

#include "support/testing.h"

enum { NODES = 600, ROUNDS = 20000 };

typedef struct node {
        rdmeta_expiry_node_t expiry;
        int list; /* RDMETA_EXPIRY_NONE: in none */
        int walked;
} node_t;

typedef struct world {
        rdmeta_expiry_t expiry;
        node_t nodes[NODES];
        size_t most[RDMETA_EXPIRY_CLASSES]; /* that were in its tree */
} world_t;

static void world_init(world_t *w) {
        memset(w, 0, sizeof(*w));
        rdmeta_expiry_init(&w->expiry);
}

/* The naive one: look at all. */
static node_t *model_first(world_t *w, int list) {
        node_t *first = NULL;
        int i;

        for (i = 0; i < NODES; i++) {
                node_t *n = &w->nodes[i];
                if (n->list == RDMETA_EXPIRY_NONE ||
                    (list != RDMETA_EXPIRY_NONE && n->list != list))
                        continue;
                if (!first || n->expiry.due_us < first->expiry.due_us)
                        first = n;
        }
        return first;
}

static void world_add(world_t *w, node_t *n, int list, int64_t due) {
        n->list = list;
        rdmeta_expiry_add(&w->expiry, list, &n->expiry, due);
        CHECK(n->expiry.due_us == due);
        if (w->expiry.classes[list].tree.count > w->most[list])
                w->most[list] = w->expiry.classes[list].tree.count;
}

static void world_remove(world_t *w, node_t *n) {
        rdmeta_expiry_remove(&w->expiry, n->list, &n->expiry);
        n->list = RDMETA_EXPIRY_NONE;
}

static node_t *node_of(rdmeta_expiry_node_t *n) {
        return RDMETA_CONTAINER(n, node_t, expiry);
}

/* Each is met once, and none before one that is due earlier. */
static void world_walk(world_t *w, int list, size_t count) {
        int64_t last = INT64_MIN;
        rdmeta_expiry_iter_t it;
        rdmeta_expiry_node_t *n;

        rdmeta_expiry_iter_init(&it, &w->expiry, list);
        for (; (n = rdmeta_expiry_iter_next(&it)); count--) {
                CHECK(count && node_of(n)->list == list);
                CHECK(node_of(n)->walked != list && n->due_us >= last);
                node_of(n)->walked = list;
                last               = n->due_us;
        }
        CHECK(count == 0);
}

static void world_check(world_t *w) {
        const node_t *first;
        const rdmeta_expiry_node_t *n;
        size_t counts[RDMETA_EXPIRY_CLASSES] = {0};
        int i;

        CHECK(rdmeta_expiry_check(&w->expiry));
        for (i = 0; i < NODES; i++) {
                counts[w->nodes[i].list]++;
                w->nodes[i].walked = RDMETA_EXPIRY_NONE;
        }
        for (i = RDMETA_EXPIRY_VALID; i < RDMETA_EXPIRY_CLASSES; i++) {
                first = model_first(w, i);
                CHECK(rdmeta_expiry_count(&w->expiry, i) == counts[i]);
                n     = rdmeta_expiry_first(&w->expiry, i);
                CHECK(!n == !first);
                CHECK(!n || n->due_us == first->expiry.due_us);
                world_walk(w, i, counts[i]);
        }
        first = model_first(w, RDMETA_EXPIRY_NONE);
        CHECK(rdmeta_expiry_next(&w->expiry) ==
              (first ? first->expiry.due_us : INT64_MAX));
}

static int any_list(test_rng_t *r) {
        return 1 + (int)test_below(r, RDMETA_EXPIRY_CLASSES - 1);
}

/* Half of a class' own time, half of any, with ties. */
static int64_t any_ttl(test_rng_t *r, int list) {
        if (test_below(r, 2))
                return 1000 * list;
        return (int64_t)test_below(r, 20000) - 5000;
}

static void world_expire(world_t *w, int list, int64_t now) {
        rdmeta_expiry_node_t *due;
        node_t *first;

        while ((due = rdmeta_expiry_due(&w->expiry, list, now)) != NULL) {
                first = model_first(w, list);
                CHECK(node_of(due)->list == list && due->due_us < now);
                CHECK(due->due_us == first->expiry.due_us);
                world_remove(w, node_of(due));
        }
        first = model_first(w, list);
        CHECK(!first || first->expiry.due_us >= now);
}

static void test_what_is_due_first_comes_first_in_every_class(void) {
        test_rng_t r = test_rng(1);
        static world_t w;
        int64_t now = 0;
        int i, list;

        world_init(&w);
        for (i = 0; i < ROUNDS; i++) {
                node_t *n = &w.nodes[test_below(&r, NODES)];

                if (n->list != RDMETA_EXPIRY_NONE)
                        world_remove(&w, n);
                list = any_list(&r);
                world_add(&w, n, list, now + any_ttl(&r, list));
                now += (int64_t)test_below(&r, 40);
                if (test_below(&r, 10) == 0)
                        world_expire(&w, any_list(&r), now);
                if (i % 16 == 0)
                        world_check(&w);
        }
        for (list = 1; list < RDMETA_EXPIRY_CLASSES; list++) {
                CHECK(w.most[list] > 1);
                world_expire(&w, list, INT64_MAX);
        }
        world_check(&w);
        CHECK(rdmeta_expiry_next(&w.expiry) == INT64_MAX);
}

/* Some long ones come first; the others are in order among themselves. */
static void test_a_few_long_ones_keep_no_others_out_of_the_list(void) {
        static world_t w;
        int i;

        world_init(&w);
        for (i = 0; i < NODES; i++)
                world_add(&w, &w.nodes[i], RDMETA_EXPIRY_NEGATIVE,
                          i < 30 ? 900000 : 100 + i);
        CHECK(w.most[RDMETA_EXPIRY_NEGATIVE] == 0);
        world_check(&w);
}

/* The list's are taken out of it, and others come. */
static void test_what_is_out_of_order_is_found_where_nothing_else_is(void) {
        static world_t w;
        int i;

        world_init(&w);
        for (i = 0; i < 60; i++)
                world_add(&w, &w.nodes[i], RDMETA_EXPIRY_HINT,
                          i < 40 ? 1000 : 500);
        CHECK(w.most[RDMETA_EXPIRY_HINT] == 20);
        for (i = 0; i < 40; i++)
                world_remove(&w, &w.nodes[i]);
        world_check(&w);
        for (i = 0; i < 40; i++)
                world_add(&w, &w.nodes[i], RDMETA_EXPIRY_HINT, 480 + i);
        CHECK(w.most[RDMETA_EXPIRY_HINT] == 20);
        world_check(&w);
        world_expire(&w, RDMETA_EXPIRY_HINT, 501);
        world_check(&w);
        CHECK(rdmeta_expiry_count(&w.expiry, RDMETA_EXPIRY_HINT) == 19);
}

/* To pass all that are later would take minutes. */
static void test_as_many_as_there_are_go_in_front_of_the_others(void) {
        enum { MANY = 1 << 19 };
        rdmeta_expiry_node_t *nodes = calloc(2 * MANY, sizeof(*nodes)), *n;
        rdmeta_expiry_t e;
        int64_t i, last = 0;

        CHECK(nodes);
        rdmeta_expiry_init(&e);
        for (i = 0; i < 2 * MANY; i++)
                rdmeta_expiry_add(&e, RDMETA_EXPIRY_VALID, &nodes[i],
                                  i < MANY ? MANY + i : 2 * MANY - i);
        CHECK(rdmeta_expiry_check(&e));
        for (i = 0; i < 2 * MANY; i += 2) /* wherever it is */
                rdmeta_expiry_remove(&e, RDMETA_EXPIRY_VALID, &nodes[i]);
        for (i = 0; (n = rdmeta_expiry_first(&e, RDMETA_EXPIRY_VALID)); i++) {
                CHECK(n->due_us > last);
                last = n->due_us;
                rdmeta_expiry_remove(&e, RDMETA_EXPIRY_VALID, n);
        }
        CHECK(i == MANY);
        free(nodes);
}

/* What is due at a time is let go after it, not at it. */
static void test_a_deadline_is_the_last_moment_that_counts(void) {
        static world_t w;

        world_init(&w);
        world_add(&w, &w.nodes[0], RDMETA_EXPIRY_HINT, 100);
        CHECK(!rdmeta_expiry_due(&w.expiry, RDMETA_EXPIRY_HINT, 99));
        CHECK(!rdmeta_expiry_due(&w.expiry, RDMETA_EXPIRY_HINT, 100));
        CHECK(rdmeta_expiry_due(&w.expiry, RDMETA_EXPIRY_HINT, 101) ==
              &w.nodes[0].expiry);
        CHECK(!rdmeta_expiry_due(&w.expiry, RDMETA_EXPIRY_VALID, 101));
        CHECK(rdmeta_expiry_next(&w.expiry) == 100);
}

static void test_a_long_one_hides_no_short_one(void) {
        static world_t w;

        world_init(&w);
        world_add(&w, &w.nodes[0], RDMETA_EXPIRY_VALID, 900);
        world_add(&w, &w.nodes[1], RDMETA_EXPIRY_NEGATIVE, 1);
        world_add(&w, &w.nodes[2], RDMETA_EXPIRY_VALID, 5);
        CHECK(rdmeta_expiry_next(&w.expiry) == 1);
        CHECK(rdmeta_expiry_due(&w.expiry, RDMETA_EXPIRY_VALID, 6) ==
              &w.nodes[2].expiry);
        world_check(&w);
}

static void test_to_leave_no_list_is_nothing(void) {
        static world_t w;

        world_init(&w);
        rdmeta_expiry_remove(&w.expiry, RDMETA_EXPIRY_NONE,
                             &w.nodes[0].expiry);
        world_check(&w);
}

/* Deadlines have two values that mean something else. */
static void test_sums_of_time_do_not_overflow(void) {
        static const int64_t values[] = {
            INT64_MIN, INT64_MIN + 1, INT64_MIN + 2, INT64_MIN / 2, -1000, -1,
            0, 1, 1000, INT64_MAX / 2, INT64_MAX - 2, INT64_MAX - 1,
            INT64_MAX};
        const size_t n = sizeof(values) / sizeof(values[0]);
        size_t i, k;

        for (i = 0; i < n; i++)
                for (k = 0; k < n; k++) {
                        const __int128 sum = (__int128)values[i] + values[k];
                        const int64_t due  = rdmeta_expiry_after(values[i],
                                                                 values[k]);
                        if (sum > INT64_MAX - 1)
                                CHECK(due == INT64_MAX - 1);
                        else if (sum < INT64_MIN + 2)
                                CHECK(due == INT64_MIN + 2);
                        else
                                CHECK(due == (int64_t)sum);
                }
        CHECK(rdmeta_expiry_after(0, INT64_MAX) > 0);
}

int main(void) {
        test_begin(60);
        RUN(test_what_is_due_first_comes_first_in_every_class);
        RUN(test_a_few_long_ones_keep_no_others_out_of_the_list);
        RUN(test_what_is_out_of_order_is_found_where_nothing_else_is);
        RUN(test_as_many_as_there_are_go_in_front_of_the_others);
        RUN(test_a_deadline_is_the_last_moment_that_counts);
        RUN(test_a_long_one_hides_no_short_one);
        RUN(test_to_leave_no_list_is_nothing);
        RUN(test_sums_of_time_do_not_overflow);
        return 0;
}
