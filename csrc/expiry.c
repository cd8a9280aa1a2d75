#include "expiry.h"

static rdmeta_expiry_node_t *of(const rdmeta_tailq_node_t *n) {
        return (rdmeta_expiry_node_t *)(uintptr_t)n;
}

static const rdmeta_expiry_node_t *of_avl(const rdmeta_avl_node_t *n) {
        return (const rdmeta_expiry_node_t *)(const void *)n;
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

void rdmeta_expiry_init(rdmeta_expiry_t *e) {
        int i;

        for (i = 0; i < RDMETA_EXPIRY_OWN; i++)
                rdmeta_tailq_init(&e->lists[i]);
        rdmeta_avl_init(&e->own, compare_nodes, compare_key, NULL);
}

void rdmeta_expiry_add(rdmeta_expiry_t *e, int list, rdmeta_expiry_node_t *n,
                       int64_t due_us) {
        rdmeta_tailq_node_t *at;
        rdmeta_tailq_t *q;

        n->due_us = due_us;
        if (list == RDMETA_EXPIRY_OWN) {
                rdmeta_avl_insert(&e->own, &n->link.avl);
                return;
        }
        q  = &e->lists[list];
        at = rdmeta_tailq_last(q);
        while (at && of(at)->due_us > due_us)
                at = rdmeta_tailq_prev(at);
        if (at)
                rdmeta_tailq_insert_after(q, at, &n->link.node);
        else
                rdmeta_tailq_push_front(q, &n->link.node);
}

void rdmeta_expiry_remove(rdmeta_expiry_t *e, int list,
                          rdmeta_expiry_node_t *n) {
        if (list == RDMETA_EXPIRY_OWN)
                rdmeta_avl_remove(&e->own, &n->link.avl);
        else if (list != RDMETA_EXPIRY_NONE)
                rdmeta_tailq_remove(&e->lists[list], &n->link.node);
}

rdmeta_expiry_node_t *rdmeta_expiry_first(const rdmeta_expiry_t *e,
                                          int list) {
        if (list == RDMETA_EXPIRY_OWN)
                return (rdmeta_expiry_node_t *)(uintptr_t)rdmeta_avl_first(
                        &e->own);
        return of(rdmeta_tailq_first(&e->lists[list]));
}

rdmeta_expiry_node_t *rdmeta_expiry_due(const rdmeta_expiry_t *e, int list,
                                        int64_t now_us) {
        rdmeta_expiry_node_t *first = rdmeta_expiry_first(e, list);

        return first && first->due_us < now_us ? first : NULL;
}

int64_t rdmeta_expiry_next(const rdmeta_expiry_t *e) {
        int64_t next = INT64_MAX;
        int i;

        for (i = RDMETA_EXPIRY_VALID; i < RDMETA_EXPIRY_CLASSES; i++) {
                const rdmeta_expiry_node_t *first = rdmeta_expiry_first(e, i);
                if (first && first->due_us < next)
                        next = first->due_us;
        }
        return next;
}

size_t rdmeta_expiry_count(const rdmeta_expiry_t *e, int list) {
        return list == RDMETA_EXPIRY_OWN ? e->own.count
                                         : e->lists[list].count;
}

int rdmeta_expiry_check(const rdmeta_expiry_t *e) {
        const rdmeta_tailq_node_t *n;
        int i;

        for (i = 0; i < RDMETA_EXPIRY_OWN; i++) {
                if (!rdmeta_tailq_check(&e->lists[i]))
                        return 0;
                for (n = rdmeta_tailq_first(&e->lists[i]); n;
                     n = rdmeta_tailq_next(n))
                        if (rdmeta_tailq_next(n) &&
                            of(rdmeta_tailq_next(n))->due_us < of(n)->due_us)
                                return 0;
        }
        return rdmeta_avl_check(&e->own);
}
