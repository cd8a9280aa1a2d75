/* expiry: whatever the times to live, what is due first comes first. */
#include "store/deadlines.h"

#include "support/testing.h"

enum { NODES = 600, ROUNDS = 20000 };

typedef struct node {
        rdmeta_deadlines_node_t deadlines;
        int list; /* RDMETA_DEADLINES_NONE: in none */
        int walked;
} node_t;

typedef struct fixture {
        rdmeta_deadlines_t deadlines;
        node_t nodes[NODES];
        size_t most[RDMETA_DEADLINES_CLASSES]; /* that were in its tree */
} fixture_t;

static void fixture_init(fixture_t *w) {
        memset(w, 0, sizeof(*w));
        rdmeta_deadlines_init(&w->deadlines);
}

/* The naive one: look at all. */
static node_t *model_first(fixture_t *w, int list) {
        node_t *first = NULL;
        int i;

        for (i = 0; i < NODES; i++) {
                node_t *n = &w->nodes[i];
                if (n->list == RDMETA_DEADLINES_NONE ||
                    (list != RDMETA_DEADLINES_NONE && n->list != list))
                        continue;
                if (!first || n->deadlines.due_us < first->deadlines.due_us)
                        first = n;
        }
        return first;
}

static void fixture_add(fixture_t *w, node_t *n, int list, int64_t due) {
        n->list = list;
        rdmeta_deadlines_add(&w->deadlines, list, &n->deadlines, due);
        CHECK(n->deadlines.due_us == due);
        if (w->deadlines.classes[list].tree.count > w->most[list])
                w->most[list] = w->deadlines.classes[list].tree.count;
}

static void fixture_remove(fixture_t *w, node_t *n) {
        rdmeta_deadlines_remove(&w->deadlines, n->list, &n->deadlines);
        n->list = RDMETA_DEADLINES_NONE;
}

static node_t *node_of(rdmeta_deadlines_node_t *n) {
        return RDMETA_CONTAINER(n, node_t, deadlines);
}

/* Each is met once, and none before one that is due earlier. */
static void fixture_walk(fixture_t *w, int list, size_t count) {
        int64_t last = INT64_MIN;
        rdmeta_deadlines_iter_t it;
        rdmeta_deadlines_node_t *n;

        rdmeta_deadlines_iter_init(&it, &w->deadlines, list);
        for (; (n = rdmeta_deadlines_iter_next(&it)); count--) {
                CHECK(count && node_of(n)->list == list);
                CHECK(node_of(n)->walked != list && n->due_us >= last);
                node_of(n)->walked = list;
                last               = n->due_us;
        }
        CHECK(count == 0);
}

static void fixture_check(fixture_t *w) {
        const node_t *first;
        const rdmeta_deadlines_node_t *n;
        size_t counts[RDMETA_DEADLINES_CLASSES] = {0};
        int i;

        CHECK(rdmeta_deadlines_check(&w->deadlines));
        for (i = 0; i < NODES; i++) {
                counts[w->nodes[i].list]++;
                w->nodes[i].walked = RDMETA_DEADLINES_NONE;
        }
        for (i = RDMETA_DEADLINES_VALID; i < RDMETA_DEADLINES_CLASSES; i++) {
                first = model_first(w, i);
                CHECK(rdmeta_deadlines_count(&w->deadlines, i) == counts[i]);
                n     = rdmeta_deadlines_first(&w->deadlines, i);
                CHECK(!n == !first);
                CHECK(!n || n->due_us == first->deadlines.due_us);
                fixture_walk(w, i, counts[i]);
        }
        first = model_first(w, RDMETA_DEADLINES_NONE);
        CHECK(rdmeta_deadlines_next(&w->deadlines) ==
              (first ? first->deadlines.due_us : INT64_MAX));
}

static int any_list(test_rng_t *r) {
        return 1 + (int)test_below(r, RDMETA_DEADLINES_CLASSES - 1);
}

/* Half of a class' own time, half of any, with ties. */
static int64_t any_ttl(test_rng_t *r, int list) {
        if (test_below(r, 2))
                return 1000 * list;
        return (int64_t)test_below(r, 20000) - 5000;
}

static void fixture_expire(fixture_t *w, int list, int64_t now) {
        rdmeta_deadlines_node_t *due;
        node_t *first;

        while ((due = rdmeta_deadlines_due(&w->deadlines, list, now)) != NULL) {
                first = model_first(w, list);
                CHECK(node_of(due)->list == list && due->due_us < now);
                CHECK(due->due_us == first->deadlines.due_us);
                fixture_remove(w, node_of(due));
        }
        first = model_first(w, list);
        CHECK(!first || first->deadlines.due_us >= now);
}

static void test_what_is_due_first_comes_first_in_every_class(void) {
        test_rng_t r = test_rng(1);
        static fixture_t w;
        int64_t now = 0;
        int i, list;

        fixture_init(&w);
        for (i = 0; i < ROUNDS; i++) {
                node_t *n = &w.nodes[test_below(&r, NODES)];

                if (n->list != RDMETA_DEADLINES_NONE)
                        fixture_remove(&w, n);
                list = any_list(&r);
                fixture_add(&w, n, list, now + any_ttl(&r, list));
                now += (int64_t)test_below(&r, 40);
                if (test_below(&r, 10) == 0)
                        fixture_expire(&w, any_list(&r), now);
                if (i % 16 == 0)
                        fixture_check(&w);
        }
        for (list = 1; list < RDMETA_DEADLINES_CLASSES; list++) {
                CHECK(w.most[list] > 1);
                fixture_expire(&w, list, INT64_MAX);
        }
        fixture_check(&w);
        CHECK(rdmeta_deadlines_next(&w.deadlines) == INT64_MAX);
}

/* Some long ones come first; the others are in order among themselves. */
static void test_a_few_long_ones_keep_no_others_out_of_the_list(void) {
        static fixture_t w;
        int i;

        fixture_init(&w);
        for (i = 0; i < NODES; i++)
                fixture_add(&w, &w.nodes[i], RDMETA_DEADLINES_NEGATIVE,
                            i < 30 ? 900000 : 100 + i);
        CHECK(w.most[RDMETA_DEADLINES_NEGATIVE] == 0);
        fixture_check(&w);
}

/* The list's are taken out of it, and others come. */
static void test_what_is_out_of_order_is_found_where_nothing_else_is(void) {
        static fixture_t w;
        int i;

        fixture_init(&w);
        for (i = 0; i < 60; i++)
                fixture_add(&w, &w.nodes[i], RDMETA_DEADLINES_HINT,
                            i < 40 ? 1000 : 500);
        CHECK(w.most[RDMETA_DEADLINES_HINT] == 20);
        for (i = 0; i < 40; i++)
                fixture_remove(&w, &w.nodes[i]);
        fixture_check(&w);
        for (i = 0; i < 40; i++)
                fixture_add(&w, &w.nodes[i], RDMETA_DEADLINES_HINT, 480 + i);
        CHECK(w.most[RDMETA_DEADLINES_HINT] == 20);
        fixture_check(&w);
        fixture_expire(&w, RDMETA_DEADLINES_HINT, 501);
        fixture_check(&w);
        CHECK(rdmeta_deadlines_count(&w.deadlines, RDMETA_DEADLINES_HINT) == 19);
}

/* To pass all that are later would take minutes. */
static void test_as_many_as_there_are_go_in_front_of_the_others(void) {
        enum { MANY = 1 << 19 };
        rdmeta_deadlines_node_t *nodes = calloc(2 * MANY, sizeof(*nodes)), *n;
        rdmeta_deadlines_t e;
        int64_t i, last = 0;

        CHECK(nodes);
        rdmeta_deadlines_init(&e);
        for (i = 0; i < 2 * MANY; i++)
                rdmeta_deadlines_add(&e, RDMETA_DEADLINES_VALID, &nodes[i],
                                     i < MANY ? MANY + i : 2 * MANY - i);
        CHECK(rdmeta_deadlines_check(&e));
        for (i = 0; i < 2 * MANY; i += 2) /* wherever it is */
                rdmeta_deadlines_remove(&e, RDMETA_DEADLINES_VALID, &nodes[i]);
        for (i = 0; (n = rdmeta_deadlines_first(&e, RDMETA_DEADLINES_VALID)); i++) {
                CHECK(n->due_us > last);
                last = n->due_us;
                rdmeta_deadlines_remove(&e, RDMETA_DEADLINES_VALID, n);
        }
        CHECK(i == MANY);
        free(nodes);
}

/* What is due at a time is let go after it, not at it. */
static void test_a_deadline_is_the_last_moment_that_counts(void) {
        static fixture_t w;

        fixture_init(&w);
        fixture_add(&w, &w.nodes[0], RDMETA_DEADLINES_HINT, 100);
        CHECK(!rdmeta_deadlines_due(&w.deadlines, RDMETA_DEADLINES_HINT, 99));
        CHECK(!rdmeta_deadlines_due(&w.deadlines, RDMETA_DEADLINES_HINT, 100));
        CHECK(rdmeta_deadlines_due(&w.deadlines, RDMETA_DEADLINES_HINT, 101) ==
              &w.nodes[0].deadlines);
        CHECK(!rdmeta_deadlines_due(&w.deadlines, RDMETA_DEADLINES_VALID, 101));
        CHECK(rdmeta_deadlines_next(&w.deadlines) == 100);
}

static void test_a_long_one_hides_no_short_one(void) {
        static fixture_t w;

        fixture_init(&w);
        fixture_add(&w, &w.nodes[0], RDMETA_DEADLINES_VALID, 900);
        fixture_add(&w, &w.nodes[1], RDMETA_DEADLINES_NEGATIVE, 1);
        fixture_add(&w, &w.nodes[2], RDMETA_DEADLINES_VALID, 5);
        CHECK(rdmeta_deadlines_next(&w.deadlines) == 1);
        CHECK(rdmeta_deadlines_due(&w.deadlines, RDMETA_DEADLINES_VALID, 6) ==
              &w.nodes[2].deadlines);
        fixture_check(&w);
}

static void test_to_leave_no_list_is_nothing(void) {
        static fixture_t w;

        fixture_init(&w);
        rdmeta_deadlines_remove(&w.deadlines, RDMETA_DEADLINES_NONE,
                                &w.nodes[0].deadlines);
        fixture_check(&w);
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
                        const int64_t due  = rdmeta_deadlines_after(values[i],
                                                                    values[k]);
                        if (sum > INT64_MAX - 1)
                                CHECK(due == INT64_MAX - 1);
                        else if (sum < INT64_MIN + 2)
                                CHECK(due == INT64_MIN + 2);
                        else
                                CHECK(due == (int64_t)sum);
                }
        CHECK(rdmeta_deadlines_after(0, INT64_MAX) > 0);
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
