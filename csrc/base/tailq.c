/* tailq: the check, which tests call; the rest is inline in tailq.h. */
#include "base/tailq.h"

int rdmeta_tailq_check(const rdmeta_tailq_t *q) {
        const rdmeta_tailq_node_t *prev = NULL, *n;
        size_t left                     = q->count;

        for (n = q->first; n; prev = n, n = n->next)
                if (n->prev != prev || !left--)
                        return 0;
        return left == 0 && q->last == prev;
}
