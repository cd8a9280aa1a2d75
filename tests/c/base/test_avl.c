/* avl against a sorted array. */
#include "base/avl.h"
#include "base/tailq.h" /* RDMETA_CONTAINER */

#include "support/testing.h"

typedef struct item {
        int key;
        rdmeta_avl_node_t node;
} item_t;

enum { KEYS = 300, STEPS = 12000 };

static size_t compared;

static item_t *item_of(const rdmeta_avl_node_t *n) {
        return n ? RDMETA_CONTAINER(n, item_t, node) : NULL;
}

static int cmp_int(int a, int b) {
        compared++;
        return a < b ? -1 : a > b;
}

static int cmp_node(const rdmeta_avl_node_t *a, const rdmeta_avl_node_t *b,
                    void *opaque) {
        CHECK(opaque == &compared);
        return cmp_int(item_of(a)->key, item_of(b)->key);
}

static int cmp_key(const void *key, const rdmeta_avl_node_t *n, void *opaque) {
        CHECK(opaque == &compared);
        return cmp_int(*(const int *)key, item_of(n)->key);
}

static void tree_init(rdmeta_avl_t *t) {
        rdmeta_avl_init(t, cmp_node, cmp_key, &compared);
}

/* The item of each key; NULL: none. Keys are even, so that odd ones miss. */
typedef struct model {
        item_t *at[KEYS];
        size_t n;
} model_t;

static item_t *model_first(const model_t *m) {
        int i = 0;

        while (i < KEYS && !m->at[i])
                i++;
        return i < KEYS ? m->at[i] : NULL;
}

/* Checks that a walk from `key` visits the model's items from `i` on. */
static void check_walk(const rdmeta_avl_t *t, const model_t *m,
                       const int *key, int i) {
        rdmeta_avl_iter_t it;

        rdmeta_avl_iter_init(&it, t, key);
        for (; i < KEYS; i++)
                if (m->at[i])
                        CHECK(item_of(rdmeta_avl_iter_next(&it)) == m->at[i]);
        CHECK(!rdmeta_avl_iter_next(&it) && !rdmeta_avl_iter_next(&it));
}

static void check_same(const rdmeta_avl_t *t, const model_t *m) {
        CHECK(rdmeta_avl_check(t));
        CHECK(t->count == m->n);
        check_walk(t, m, NULL, 0);
        CHECK(item_of(rdmeta_avl_first(t)) == model_first(m));
}

/* Checks all lookups, of a key that may be there and of one beside it. */
static void check_looks(const rdmeta_avl_t *t, const model_t *m, int i) {
        const int hit = 2 * i, miss = 2 * i + 1;

        CHECK(item_of(rdmeta_avl_find(t, &hit)) == m->at[i]);
        CHECK(!rdmeta_avl_find(t, &miss));
        check_walk(t, m, &hit, i);
        check_walk(t, m, &miss, i + 1);
}

/* Two items per key, so that equal ones can meet. */
static item_t items[2][KEYS];

static void items_reset(void) {
        int i;

        for (i = 0; i < KEYS; i++)
                items[0][i].key = items[1][i].key = 2 * i;
}

static void step(rdmeta_avl_t *t, model_t *m, int i, int how) {
        item_t *old   = m->at[i];
        item_t *other = old == &items[0][i] ? &items[1][i] : &items[0][i];

        if (!old) {
                CHECK(!rdmeta_avl_remove(t, &other->node));
                CHECK(!rdmeta_avl_insert(t, &other->node));
                m->at[i] = other;
                m->n++;
        } else if (how == 0) {
                CHECK(item_of(rdmeta_avl_insert(t, &other->node)) == old);
                CHECK(!rdmeta_avl_remove(t, &other->node));
        } else {
                CHECK(rdmeta_avl_remove(t, &old->node));
                m->at[i] = NULL;
                m->n--;
        }
}

TEST(test_random_changes_do_what_they_do_to_an_array) {
        static model_t m;
        test_rng_t r = test_rng(1);
        size_t range = KEYS, i;
        rdmeta_avl_t t;

        items_reset();
        memset(&m, 0, sizeof(m));
        tree_init(&t);
        for (i = 0; i < STEPS; i++) {
                if (i % 500 == 0)
                        range = 1 + test_below(&r, KEYS);
                step(&t, &m, (int)test_below(&r, range),
                     (int)test_below(&r, 6));
                check_same(&t, &m);
                check_looks(&t, &m, (int)test_below(&r, KEYS));
        }
}

/* Ascending, descending and zigzag orders use every rotation often. Removal in
 * order and from the root uses every case of shrinking. */
TEST(test_orderly_changes_keep_the_balance) {
        static model_t m;
        rdmeta_avl_t t;
        int order, i, k;

        items_reset();
        for (order = 0; order < 4; order++) {
                memset(&m, 0, sizeof(m));
                tree_init(&t);
                for (i = 0; i < KEYS; i++) {
                        k = order == 0   ? i
                            : order == 1 ? KEYS - 1 - i
                            : i % 2      ? KEYS - 1 - i / 2
                                         : i / 2;
                        step(&t, &m, k, 2);
                        check_same(&t, &m);
                }
                for (i = 0; i < KEYS; i++) {
                        k = order % 2 ? i : KEYS - 1 - i;
                        if (order == 3)
                                k = item_of((rdmeta_avl_node_t *)t.root)->key /
                                    2;
                        step(&t, &m, k, 2);
                        check_same(&t, &m);
                }
                CHECK(!t.root && !t.count);
        }
}

TEST(test_built_in_bulk_it_is_the_same_set) {
        static rdmeta_avl_node_t *nodes[KEYS];
        static model_t m;
        test_rng_t r = test_rng(2);
        rdmeta_avl_t t;
        int n, i;

        items_reset();
        for (n = 0; n <= KEYS; n++) {
                memset(&m, 0, sizeof(m));
                tree_init(&t);
                for (i = 0; i < n; i++) {
                        m.at[i]  = &items[0][i];
                        nodes[i] = &items[0][i].node;
                }
                m.n      = (size_t)n;
                compared = 0;
                rdmeta_avl_build(&t, nodes, m.n);
                CHECK(!compared);
                check_same(&t, &m);
                for (i = 0; i < 20; i++) {
                        step(&t, &m, (int)test_below(&r, KEYS), 2);
                        check_same(&t, &m);
                }
        }
}

/* Returns the most levels that an AVL tree of n nodes can have. The smallest
 * tree of h levels is a node over the smallest of h - 1 and of h - 2. */
static size_t levels_at_most(size_t n) {
        size_t lower = 0, nodes = 1, next, h = 0;

        for (; nodes <= n; h++) {
                next  = lower + nodes + 1;
                lower = nodes;
                nodes = next;
        }
        return h;
}

TEST(test_a_lookup_compares_no_more_than_an_avl_tree_may) {
        enum { MANY = 100000 };
        item_t *many = malloc(MANY * sizeof(*many));
        test_rng_t r = test_rng(3);
        rdmeta_avl_t t;
        size_t i, kept = 0;

        CHECK(many && levels_at_most(1) == 1 && levels_at_most(4) == 3);
        tree_init(&t);
        for (i = 0; i < MANY; i++) {
                many[i].key = (int)test_below(&r, INT32_MAX);
                kept += !rdmeta_avl_insert(&t, &many[i].node);
        }
        CHECK(rdmeta_avl_check(&t) && t.count == kept);
        for (i = 0; i < MANY; i++) {
                compared = 0;
                CHECK(rdmeta_avl_find(&t, &many[i].key));
                CHECK(compared <= levels_at_most(kept));
        }
        free(many);
}

TEST(test_the_checker_sees_order_balance_bits_and_count) {
        static model_t m;
        rdmeta_avl_node_t *root;
        rdmeta_avl_t t;
        int i;

        items_reset();
        memset(&m, 0, sizeof(m));
        tree_init(&t);
        for (i = 0; i < 12; i++)
                step(&t, &m, i, 2);
        CHECK(rdmeta_avl_check(&t));
        root = (rdmeta_avl_node_t *)t.root;
        t.count++;
        CHECK(!rdmeta_avl_check(&t));
        t.count--;
        items[0][5].key = 100;
        CHECK(!rdmeta_avl_check(&t));
        items[0][5].key = 10;
        root->child[0] ^= 1;
        CHECK(!rdmeta_avl_check(&t));
        root->child[1] ^= 1;
        CHECK(!rdmeta_avl_check(&t));
        root->child[0] ^= 1;
        CHECK(!rdmeta_avl_check(&t));
        root->child[1] ^= 1;
        t.root |= 1;
        CHECK(!rdmeta_avl_check(&t));
        t.root ^= 1;
        CHECK(rdmeta_avl_check(&t));
}

TEST_MAIN()
