#include "store/deadlines.h"

/* On the way from its end to its place an entry passes so many at most. */
enum { PASSED = 32 };

static rdmeta_deadlines_node_t *of(const rdmeta_tailq_node_t *n) {
        return (rdmeta_deadlines_node_t *)(uintptr_t)n;
}

static rdmeta_deadlines_node_t *of_avl(const rdmeta_avl_node_t *n) {
        return (rdmeta_deadlines_node_t *)(uintptr_t)n;
}

/* Either may be NULL, which is never. */
static rdmeta_deadlines_node_t *earlier(rdmeta_deadlines_node_t *a,
                                     rdmeta_deadlines_node_t *b) {
        if (!a || !b)
                return a ? a : b;
        return b->due_us < a->due_us ? b : a;
}

static int compare_nodes(const rdmeta_avl_node_t *a,
                         const rdmeta_avl_node_t *b, void *opaque) {
        const int64_t x = of_avl(a)->due_us, y = of_avl(b)->due_us;

        (void)opaque;
        if (x != y)
                return x < y ? -1 : 1;
        return (uintptr_t)a < (uintptr_t)b ? -1 : (uintptr_t)a > (uintptr_t)b;
}

static int compare_key(const void *key, const rdmeta_avl_node_t *node,
                       void *opaque) {
        return compare_nodes((const rdmeta_avl_node_t *)key, node, opaque);
}

void rdmeta_deadlines_init(rdmeta_deadlines_t *e) {
        int i;

        for (i = 0; i < RDMETA_DEADLINES_CLASSES; i++) {
                rdmeta_tailq_init(&e->classes[i].list);
                rdmeta_avl_init(&e->classes[i].tree, compare_nodes,
                                compare_key, NULL);
        }
}

void rdmeta_deadlines_add(rdmeta_deadlines_t *e, int class, rdmeta_deadlines_node_t *n,
                       int64_t due_us) {
        rdmeta_tailq_t *q       = &e->classes[class].list;
        rdmeta_tailq_node_t *at = rdmeta_tailq_last(q);
        int passed              = 0;

        n->due_us = due_us;
        while (at && of(at)->due_us > due_us && passed++ < PASSED)
                at = rdmeta_tailq_prev(at);
        if (!at)
                rdmeta_tailq_push_front(q, &n->link.node);
        else if (passed <= PASSED)
                rdmeta_tailq_insert_after(q, at, &n->link.node);
        else
                rdmeta_avl_insert(&e->classes[class].tree, &n->link.avl);
}

void rdmeta_deadlines_remove(rdmeta_deadlines_t *e, int class,
                          rdmeta_deadlines_node_t *n) {
        if (class != RDMETA_DEADLINES_NONE &&
            !rdmeta_avl_remove(&e->classes[class].tree, &n->link.avl))
                rdmeta_tailq_remove(&e->classes[class].list, &n->link.node);
}

rdmeta_deadlines_node_t *rdmeta_deadlines_first(const rdmeta_deadlines_t *e,
                                          int class) {
        return earlier(of(rdmeta_tailq_first(&e->classes[class].list)),
                       of_avl(rdmeta_avl_first(&e->classes[class].tree)));
}

rdmeta_deadlines_node_t *rdmeta_deadlines_due(const rdmeta_deadlines_t *e, int class,
                                        int64_t now_us) {
        rdmeta_deadlines_node_t *first = rdmeta_deadlines_first(e, class);

        return first && first->due_us < now_us ? first : NULL;
}

int64_t rdmeta_deadlines_next(const rdmeta_deadlines_t *e) {
        const rdmeta_deadlines_node_t *first;
        int64_t next = INT64_MAX;
        int i;

        for (i = RDMETA_DEADLINES_VALID; i < RDMETA_DEADLINES_CLASSES; i++) {
                first = rdmeta_deadlines_first(e, i);
                if (first && first->due_us < next)
                        next = first->due_us;
        }
        return next;
}

size_t rdmeta_deadlines_count(const rdmeta_deadlines_t *e, int class) {
        return e->classes[class].list.count + e->classes[class].tree.count;
}

void rdmeta_deadlines_iter_init(rdmeta_deadlines_iter_t *it,
                             const rdmeta_deadlines_t *e, int class) {
        it->in_list = rdmeta_tailq_first(&e->classes[class].list);
        rdmeta_avl_iter_init(&it->tree, &e->classes[class].tree, NULL);
        it->in_tree = rdmeta_avl_iter_next(&it->tree);
}

rdmeta_deadlines_node_t *rdmeta_deadlines_iter_next(rdmeta_deadlines_iter_t *it) {
        rdmeta_deadlines_node_t *n = earlier(of(it->in_list),
                                          of_avl(it->in_tree));

        if (n && n == of(it->in_list))
                it->in_list = rdmeta_tailq_next(it->in_list);
        else if (n)
                it->in_tree = rdmeta_avl_iter_next(&it->tree);
        return n;
}

static int list_check(const rdmeta_tailq_t *q) {
        const rdmeta_tailq_node_t *n, *next;

        if (!rdmeta_tailq_check(q))
                return 0;
        for (n = rdmeta_tailq_first(q); n; n = next) {
                next = rdmeta_tailq_next(n);
                if (next && of(next)->due_us < of(n)->due_us)
                        return 0;
        }
        return 1;
}

int rdmeta_deadlines_check(const rdmeta_deadlines_t *e) {
        int i;

        for (i = 0; i < RDMETA_DEADLINES_CLASSES; i++)
                if (!list_check(&e->classes[i].list) ||
                    !rdmeta_avl_check(&e->classes[i].tree))
                        return 0;
        return 1;
}
