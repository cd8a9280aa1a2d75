#include "expiry.h"

static rdmeta_expiry_node_t *of(const rdmeta_tailq_node_t *n) {
        return (rdmeta_expiry_node_t *)(uintptr_t)n;
}

void rdmeta_expiry_init(rdmeta_expiry_t *e) {
        int i;

        for (i = 0; i < RDMETA_EXPIRY_LISTS; i++)
                rdmeta_tailq_init(&e->lists[i]);
}

void rdmeta_expiry_add(rdmeta_expiry_t *e, int list, rdmeta_expiry_node_t *n,
                       int64_t due_us) {
        rdmeta_tailq_t *q       = &e->lists[list];
        rdmeta_tailq_node_t *at = rdmeta_tailq_last(q);

        n->due_us = due_us;
        while (at && of(at)->due_us > due_us)
                at = rdmeta_tailq_prev(at);
        if (at)
                rdmeta_tailq_insert_after(q, at, &n->node);
        else
                rdmeta_tailq_push_front(q, &n->node);
}

void rdmeta_expiry_remove(rdmeta_expiry_t *e, int list,
                          rdmeta_expiry_node_t *n) {
        if (list != RDMETA_EXPIRY_NONE)
                rdmeta_tailq_remove(&e->lists[list], &n->node);
}

rdmeta_expiry_node_t *rdmeta_expiry_due(const rdmeta_expiry_t *e, int list,
                                        int64_t now_us) {
        rdmeta_tailq_node_t *first = rdmeta_tailq_first(&e->lists[list]);

        return first && of(first)->due_us < now_us ? of(first) : NULL;
}

int64_t rdmeta_expiry_next(const rdmeta_expiry_t *e) {
        int64_t next = INT64_MAX;
        int i;

        for (i = RDMETA_EXPIRY_VALID; i < RDMETA_EXPIRY_LISTS; i++) {
                rdmeta_tailq_node_t *first =
                        rdmeta_tailq_first(&e->lists[i]);
                if (first && of(first)->due_us < next)
                        next = of(first)->due_us;
        }
        return next;
}

size_t rdmeta_expiry_count(const rdmeta_expiry_t *e, int list) {
        return e->lists[list].count;
}

int rdmeta_expiry_check(const rdmeta_expiry_t *e) {
        const rdmeta_tailq_node_t *n;
        int i;

        for (i = 0; i < RDMETA_EXPIRY_LISTS; i++) {
                if (!rdmeta_tailq_check(&e->lists[i]))
                        return 0;
                for (n = rdmeta_tailq_first(&e->lists[i]); n;
                     n = rdmeta_tailq_next(n))
                        if (rdmeta_tailq_next(n) &&
                            of(rdmeta_tailq_next(n))->due_us < of(n)->due_us)
                                return 0;
        }
        return 1;
}
