/* tailq against an array. */
#include "base/tailq.h"

#include "support/testing.h"

typedef struct item {
        int before; /* the node is not at offset 0 */
        rdmeta_tailq_node_t node;
} item_t;

enum { ITEMS = 24, STEPS = 20000 };

typedef struct model {
        item_t *at[ITEMS];
        size_t n;
} model_t;

static void model_insert(model_t *m, size_t i, item_t *item) {
        memmove(&m->at[i + 1], &m->at[i], (m->n - i) * sizeof(m->at[0]));
        m->at[i] = item;
        m->n++;
}

static void model_remove(model_t *m, size_t i) {
        m->n--;
        memmove(&m->at[i], &m->at[i + 1], (m->n - i) * sizeof(m->at[0]));
}

static item_t *item_of(rdmeta_tailq_node_t *n) {
        return n ? RDMETA_CONTAINER(n, item_t, node) : NULL;
}

static void check_same(const rdmeta_tailq_t *q, const model_t *m) {
        rdmeta_tailq_node_t *n = rdmeta_tailq_first(q);
        size_t i;

        CHECK(rdmeta_tailq_check(q));
        CHECK(q->count == m->n);
        for (i = 0; i < m->n; i++, n = rdmeta_tailq_next(n))
                CHECK(item_of(n) == m->at[i]);
        CHECK(!n);
        n = rdmeta_tailq_last(q);
        for (i = m->n; i-- > 0; n = rdmeta_tailq_prev(n))
                CHECK(item_of(n) == m->at[i]);
        CHECK(!n);
}

static void add(rdmeta_tailq_t *q, model_t *m, item_t *item, test_rng_t *r) {
        const size_t how = test_below(r, m->n ? 3 : 2);
        const size_t i   = m->n ? test_below(r, m->n) : 0;

        if (how == 0) {
                rdmeta_tailq_push_back(q, &item->node);
                model_insert(m, m->n, item);
        } else if (how == 1) {
                rdmeta_tailq_push_front(q, &item->node);
                model_insert(m, 0, item);
        } else {
                rdmeta_tailq_insert_after(q, &m->at[i]->node, &item->node);
                model_insert(m, i + 1, item);
        }
}

static void take(rdmeta_tailq_t *q, model_t *m, item_t **item, test_rng_t *r) {
        const size_t i = test_below(r, m->n);

        *item = m->at[i];
        if (i == 0 && test_below(r, 2))
                CHECK(item_of(rdmeta_tailq_pop_front(q)) == *item);
        else
                rdmeta_tailq_remove(q, &(*item)->node);
        model_remove(m, i);
}

TEST(test_random_changes_do_what_they_do_to_an_array) {
        item_t items[ITEMS], *idle[ITEMS];
        model_t m       = {{NULL}, 0};
        size_t i, spare = ITEMS;
        test_rng_t r    = test_rng(1);
        rdmeta_tailq_t q;

        rdmeta_tailq_init(&q);
        for (i = 0; i < ITEMS; i++)
                idle[i] = &items[i];
        for (i = 0; i < STEPS; i++) {
                if (spare && (!m.n || test_below(&r, 2)))
                        add(&q, &m, idle[--spare], &r);
                else
                        take(&q, &m, &idle[spare++], &r);
                check_same(&q, &m);
        }
}

TEST(test_an_empty_list_has_no_ends) {
        rdmeta_tailq_t q;

        rdmeta_tailq_init(&q);
        CHECK(rdmeta_tailq_check(&q));
        CHECK(!rdmeta_tailq_first(&q) && !rdmeta_tailq_last(&q));
        CHECK(!rdmeta_tailq_pop_front(&q) && q.count == 0);
}

TEST(test_the_checker_sees_every_broken_link) {
        item_t a, b;
        rdmeta_tailq_t q;

        rdmeta_tailq_init(&q);
        rdmeta_tailq_push_back(&q, &a.node);
        rdmeta_tailq_push_back(&q, &b.node);
        CHECK(rdmeta_tailq_check(&q));
        b.node.prev = NULL;
        CHECK(!rdmeta_tailq_check(&q));
        b.node.prev = &a.node;
        b.node.next = &a.node;
        CHECK(!rdmeta_tailq_check(&q));
        b.node.next = NULL;
        q.last      = &a.node;
        CHECK(!rdmeta_tailq_check(&q));
        q.last  = &b.node;
        q.count = 3;
        CHECK(!rdmeta_tailq_check(&q));
        q.count = 1;
        CHECK(!rdmeta_tailq_check(&q));
        q.count = 2;
        CHECK(rdmeta_tailq_check(&q));
}

TEST_MAIN()
