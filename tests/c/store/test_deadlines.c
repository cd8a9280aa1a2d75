/* deadlines: the earliest comes first, whatever the times to live. */
#include "store/deadlines.h"

#include "support/testing.h"

enum { NODES = 600, ROUNDS = 20000 };

typedef struct node {
        rdmeta_deadlines_node_t deadlines;
        int class; /* RDMETA_DEADLINES_NONE: in none */
        int walked;
} node_t;

typedef struct fixture {
        rdmeta_deadlines_t deadlines;
        node_t nodes[NODES];
        size_t most[RDMETA_DEADLINES_CLASSES]; /* nodes in its tree so far */
} fixture_t;

static void fixture_init(fixture_t *w) {
        memset(w, 0, sizeof(*w));
        rdmeta_deadlines_init(&w->deadlines);
}

/* Returns the earliest node by looking at all of them. */
static node_t *model_first(fixture_t *w, int class) {
        node_t *first = NULL;
        int i;

        for (i = 0; i < NODES; i++) {
                node_t *n = &w->nodes[i];
                if (n->class == RDMETA_DEADLINES_NONE ||
                    (class != RDMETA_DEADLINES_NONE && n->class != class))
                        continue;
                if (!first ||
                    n->deadlines.deadline_us < first->deadlines.deadline_us)
                        first = n;
        }
        return first;
}

static void fixture_add(fixture_t *w, node_t *n, int class,
                        int64_t deadline_us) {
        n->class = class;
        rdmeta_deadlines_add(&w->deadlines, class, &n->deadlines, deadline_us);
        CHECK(n->deadlines.deadline_us == deadline_us);
        if (w->deadlines.classes[class].tree.count > w->most[class])
                w->most[class] = w->deadlines.classes[class].tree.count;
}

static void fixture_remove(fixture_t *w, node_t *n) {
        rdmeta_deadlines_remove(&w->deadlines, n->class, &n->deadlines);
        n->class = RDMETA_DEADLINES_NONE;
}

static node_t *node_of(rdmeta_deadlines_node_t *n) {
        return RDMETA_CONTAINER(n, node_t, deadlines);
}

/* Checks that a walk meets each node once, in the order of deadlines. */
static void fixture_walk(fixture_t *w, int class, size_t count) {
        int64_t last = INT64_MIN;
        rdmeta_deadlines_iter_t it;
        rdmeta_deadlines_node_t *n;

        rdmeta_deadlines_iter_init(&it, &w->deadlines, class);
        for (; (n = rdmeta_deadlines_iter_next(&it)); count--) {
                CHECK(count && node_of(n)->class == class);
                CHECK(node_of(n)->walked != class && n->deadline_us >= last);
                node_of(n)->walked = class;
                last               = n->deadline_us;
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
                counts[w->nodes[i].class]++;
                w->nodes[i].walked = RDMETA_DEADLINES_NONE;
        }
        for (i = RDMETA_DEADLINES_VALID; i < RDMETA_DEADLINES_CLASSES; i++) {
                first = model_first(w, i);
                CHECK(rdmeta_deadlines_count(&w->deadlines, i) == counts[i]);
                n     = rdmeta_deadlines_first(&w->deadlines, i);
                CHECK(!n == !first);
                CHECK(!n || n->deadline_us == first->deadlines.deadline_us);
                fixture_walk(w, i, counts[i]);
        }
        first = model_first(w, RDMETA_DEADLINES_NONE);
        CHECK(rdmeta_deadlines_next(&w->deadlines) ==
              (first ? first->deadlines.deadline_us : INT64_MAX));
}

static int any_class(test_rng_t *r) {
        return 1 + (int)test_below(r, RDMETA_DEADLINES_CLASSES - 1);
}

/* Returns the class's own time to live or, half of the time, any. */
static int64_t any_ttl(test_rng_t *r, int class) {
        if (test_below(r, 2))
                return 1000 * class;
        return (int64_t)test_below(r, 20000) - 5000;
}

static void fixture_remove_due(fixture_t *w, int class, int64_t now) {
        rdmeta_deadlines_node_t *due;
        node_t *first;

        while ((due = rdmeta_deadlines_due(&w->deadlines, class, now))) {
                first = model_first(w, class);
                CHECK(node_of(due)->class == class && due->deadline_us < now);
                CHECK(due->deadline_us == first->deadlines.deadline_us);
                fixture_remove(w, node_of(due));
        }
        first = model_first(w, class);
        CHECK(!first || first->deadlines.deadline_us >= now);
}

TEST(test_the_earliest_deadline_comes_first_in_every_class) {
        test_rng_t r = test_rng(1);
        static fixture_t w;
        int64_t now = 0;
        int i, class;

        fixture_init(&w);
        for (i = 0; i < ROUNDS; i++) {
                node_t *n = &w.nodes[test_below(&r, NODES)];

                if (n->class != RDMETA_DEADLINES_NONE)
                        fixture_remove(&w, n);
                class = any_class(&r);
                fixture_add(&w, n, class, now + any_ttl(&r, class));
                now += (int64_t)test_below(&r, 40);
                if (test_below(&r, 10) == 0)
                        fixture_remove_due(&w, any_class(&r), now);
                if (i % 16 == 0)
                        fixture_check(&w);
        }
        for (class = 1; class < RDMETA_DEADLINES_CLASSES; class++) {
                CHECK(w.most[class] > 1);
                fixture_remove_due(&w, class, INT64_MAX);
        }
        fixture_check(&w);
        CHECK(rdmeta_deadlines_next(&w.deadlines) == INT64_MAX);
}

/* Some long deadlines come first; the others come in order. */
TEST(test_a_few_long_deadlines_keep_no_others_out_of_the_list) {
        static fixture_t w;
        int i;

        fixture_init(&w);
        for (i = 0; i < NODES; i++)
                fixture_add(&w, &w.nodes[i], RDMETA_DEADLINES_NEGATIVE,
                            i < 30 ? 900000 : 100 + i);
        CHECK(w.most[RDMETA_DEADLINES_NEGATIVE] == 0);
        fixture_check(&w);
}

/* The list's nodes leave, and others come. */
TEST(test_nodes_of_the_tree_are_found_while_the_list_changes) {
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
        fixture_remove_due(&w, RDMETA_DEADLINES_HINT, 501);
        fixture_check(&w);
        CHECK(rdmeta_deadlines_count(&w.deadlines, RDMETA_DEADLINES_HINT) ==
              19);
}

/* Passing all that are later would take minutes. */
TEST(test_any_number_of_nodes_may_go_ahead_of_the_others) {
        enum { MANY = 1 << 19 };
        rdmeta_deadlines_node_t *nodes = calloc(2 * MANY, sizeof(*nodes)), *n;
        rdmeta_deadlines_t d;
        int64_t i, last = 0;

        CHECK(nodes);
        rdmeta_deadlines_init(&d);
        for (i = 0; i < 2 * MANY; i++)
                rdmeta_deadlines_add(&d, RDMETA_DEADLINES_VALID, &nodes[i],
                                     i < MANY ? MANY + i : 2 * MANY - i);
        CHECK(rdmeta_deadlines_check(&d));
        for (i = 0; i < 2 * MANY; i += 2) /* from list and tree */
                rdmeta_deadlines_remove(&d, RDMETA_DEADLINES_VALID, &nodes[i]);
        for (i = 0; (n = rdmeta_deadlines_first(&d, RDMETA_DEADLINES_VALID));
             i++) {
                CHECK(n->deadline_us > last);
                last = n->deadline_us;
                rdmeta_deadlines_remove(&d, RDMETA_DEADLINES_VALID, n);
        }
        CHECK(i == MANY);
        free(nodes);
}

/* A node is due after its deadline, not at it. */
TEST(test_a_deadline_is_the_last_moment_that_counts) {
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

TEST(test_a_long_deadline_hides_no_short_one) {
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

TEST(test_a_removal_from_no_class_does_nothing) {
        static fixture_t w;

        fixture_init(&w);
        rdmeta_deadlines_remove(&w.deadlines, RDMETA_DEADLINES_NONE,
                                &w.nodes[0].deadlines);
        fixture_check(&w);
}

/* Some extreme values of a deadline have another meaning. */
TEST(test_sums_of_time_do_not_overflow) {
        static const int64_t values[] = {
            INT64_MIN, INT64_MIN + 1, INT64_MIN + 2, INT64_MIN / 2, -1000, -1,
            0, 1, 1000, INT64_MAX / 2, INT64_MAX - 2, INT64_MAX - 1,
            INT64_MAX};
        const size_t n = sizeof(values) / sizeof(values[0]);
        size_t i, k;

        for (i = 0; i < n; i++)
                for (k = 0; k < n; k++) {
                        const __int128 sum = (__int128)values[i] + values[k];
                        const int64_t end  = rdmeta_deadlines_after(values[i],
                                                                    values[k]);
                        if (sum > INT64_MAX - 1)
                                CHECK(end == INT64_MAX - 1);
                        else if (sum < INT64_MIN + 2)
                                CHECK(end == INT64_MIN + 2);
                        else
                                CHECK(end == (int64_t)sum);
                }
        CHECK(rdmeta_deadlines_after(0, INT64_MAX) > 0);
}

TEST_MAIN()
