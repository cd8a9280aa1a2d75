#include "store/deadlines.h"

/* An entry passes at most so many others from the list's end to its place. */
enum { PASSED_MAX = 32 };

static rdmeta_deadlines_node_t *node_of(const rdmeta_tailq_node_t *n) {
        return (rdmeta_deadlines_node_t *)(uintptr_t)n;
}

static rdmeta_deadlines_node_t *node_of_avl(const rdmeta_avl_node_t *n) {
        return (rdmeta_deadlines_node_t *)(uintptr_t)n;
}

/* Returns the node with the earlier deadline. NULL stands for no deadline. */
static rdmeta_deadlines_node_t *earlier(rdmeta_deadlines_node_t *a,
                                        rdmeta_deadlines_node_t *b) {
        if (!a || !b)
                return a ? a : b;
        return b->deadline_us < a->deadline_us ? b : a;
}

static int compare_nodes(const rdmeta_avl_node_t *a,
                         const rdmeta_avl_node_t *b, void *opaque) {
        const int64_t x = node_of_avl(a)->deadline_us;
        const int64_t y = node_of_avl(b)->deadline_us;

        (void)opaque;
        if (x != y)
                return x < y ? -1 : 1;
        return (uintptr_t)a < (uintptr_t)b ? -1 : (uintptr_t)a > (uintptr_t)b;
}

static int compare_key(const void *key, const rdmeta_avl_node_t *node,
                       void *opaque) {
        return compare_nodes((const rdmeta_avl_node_t *)key, node, opaque);
}

void rdmeta_deadlines_init(rdmeta_deadlines_t *d) {
        int i;

        for (i = 0; i < RDMETA_DEADLINES_CLASSES; i++) {
                rdmeta_tailq_init(&d->classes[i].list);
                rdmeta_avl_init(&d->classes[i].tree, compare_nodes,
                                compare_key, NULL);
        }
}

void rdmeta_deadlines_add(rdmeta_deadlines_t *d, int class,
                          rdmeta_deadlines_node_t *n, int64_t deadline_us) {
        rdmeta_tailq_t *q       = &d->classes[class].list;
        rdmeta_tailq_node_t *at = rdmeta_tailq_last(q);
        int passed              = 0;

        n->deadline_us = deadline_us;
        while (at && node_of(at)->deadline_us > deadline_us &&
               passed++ < PASSED_MAX)
                at = rdmeta_tailq_prev(at);
        if (!at)
                rdmeta_tailq_push_front(q, &n->link.node);
        else if (passed <= PASSED_MAX)
                rdmeta_tailq_insert_after(q, at, &n->link.node);
        else
                rdmeta_avl_insert(&d->classes[class].tree, &n->link.avl);
}

void rdmeta_deadlines_remove(rdmeta_deadlines_t *d, int class,
                             rdmeta_deadlines_node_t *n) {
        if (class != RDMETA_DEADLINES_NONE &&
            !rdmeta_avl_remove(&d->classes[class].tree, &n->link.avl))
                rdmeta_tailq_remove(&d->classes[class].list, &n->link.node);
}

rdmeta_deadlines_node_t *rdmeta_deadlines_first(const rdmeta_deadlines_t *d,
                                                int class) {
        return earlier(node_of(rdmeta_tailq_first(&d->classes[class].list)),
                       node_of_avl(rdmeta_avl_first(&d->classes[class].tree)));
}

rdmeta_deadlines_node_t *rdmeta_deadlines_due(const rdmeta_deadlines_t *d,
                                              int class, int64_t now_us) {
        rdmeta_deadlines_node_t *first = rdmeta_deadlines_first(d, class);

        return first && first->deadline_us < now_us ? first : NULL;
}

int64_t rdmeta_deadlines_next(const rdmeta_deadlines_t *d) {
        const rdmeta_deadlines_node_t *first;
        int64_t next = INT64_MAX;
        int i;

        for (i = RDMETA_DEADLINES_VALID; i < RDMETA_DEADLINES_CLASSES; i++) {
                first = rdmeta_deadlines_first(d, i);
                if (first && first->deadline_us < next)
                        next = first->deadline_us;
        }
        return next;
}

size_t rdmeta_deadlines_count(const rdmeta_deadlines_t *d, int class) {
        return d->classes[class].list.count + d->classes[class].tree.count;
}

void rdmeta_deadlines_iter_init(rdmeta_deadlines_iter_t *it,
                                const rdmeta_deadlines_t *d, int class) {
        it->in_list = rdmeta_tailq_first(&d->classes[class].list);
        rdmeta_avl_iter_init(&it->tree, &d->classes[class].tree, NULL);
        it->in_tree = rdmeta_avl_iter_next(&it->tree);
}

rdmeta_deadlines_node_t *rdmeta_deadlines_iter_next(
        rdmeta_deadlines_iter_t *it) {
        rdmeta_deadlines_node_t *n = earlier(node_of(it->in_list),
                                             node_of_avl(it->in_tree));

        if (n && n == node_of(it->in_list))
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
                if (next &&
                    node_of(next)->deadline_us < node_of(n)->deadline_us)
                        return 0;
        }
        return 1;
}

int rdmeta_deadlines_check(const rdmeta_deadlines_t *d) {
        int i;

        for (i = 0; i < RDMETA_DEADLINES_CLASSES; i++)
                if (!list_check(&d->classes[i].list) ||
                    !rdmeta_avl_check(&d->classes[i].tree))
                        return 0;
        return 1;
}
