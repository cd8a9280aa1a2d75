/* avl: see avl.h. A node leans to the side of its taller subtree. */
#include "base/avl.h"

enum { RDMETA_AVL_LEVEL = -1 }; /* leans to neither side */

static inline rdmeta_avl_node_t *rdmeta_avl_ptr(uintptr_t link) {
        return (rdmeta_avl_node_t *)(link & ~(uintptr_t)1);
}

/* Points *slot to `n`. The slot's bit belongs to the node that contains the
 * slot, so it stays. */
static inline void rdmeta_avl_set(uintptr_t *slot,
                                  const rdmeta_avl_node_t *n) {
        *slot = (uintptr_t)n | (*slot & 1);
}

static inline int rdmeta_avl_leans(const rdmeta_avl_node_t *n) {
        if (n->child[0] & 1)
                return 0;
        return n->child[1] & 1 ? 1 : RDMETA_AVL_LEVEL;
}

static inline void rdmeta_avl_lean(rdmeta_avl_node_t *n, int side) {
        n->child[0] = (n->child[0] & ~(uintptr_t)1) | (side == 0);
        n->child[1] = (n->child[1] & ~(uintptr_t)1) | (side == 1);
}

void rdmeta_avl_init(rdmeta_avl_t *t, rdmeta_avl_cmp_node_t cmp_node,
                     rdmeta_avl_cmp_key_t cmp_key, void *opaque) {
        t->root     = 0;
        t->count    = 0;
        t->cmp_node = cmp_node;
        t->cmp_key  = cmp_key;
        t->opaque   = opaque;
}

/* ---- balance -------------------------------------------------------- */

/*
 *     *slot -> n                  *slot -> up       (side = 1)
 *             / \                         / \
 *            a   up        ->            n   c
 *               /  \                    / \
 *              b    c                  a   b
 *
 * Returns `up`. The bits stay as they are: the caller, which knows the heights,
 * sets them.
 */
static rdmeta_avl_node_t *rdmeta_avl_rotate(uintptr_t *slot, int side) {
        rdmeta_avl_node_t *n  = rdmeta_avl_ptr(*slot);
        rdmeta_avl_node_t *up = rdmeta_avl_ptr(n->child[side]);

        rdmeta_avl_set(&n->child[side], rdmeta_avl_ptr(up->child[!side]));
        rdmeta_avl_set(&up->child[!side], n);
        rdmeta_avl_set(slot, up);
        return up;
}

/* Balances the node at *slot, whose subtree on `side` is two levels taller.
 * Returns 1 if the whole has lost a level by that, 0 if it is as tall. */
static int rdmeta_avl_rebalance(uintptr_t *slot, int side) {
        rdmeta_avl_node_t *n     = rdmeta_avl_ptr(*slot);
        rdmeta_avl_node_t *heavy = rdmeta_avl_ptr(n->child[side]);
        const int lean           = rdmeta_avl_leans(heavy);
        rdmeta_avl_node_t *mid;
        int inner;

        if (lean != !side) {
                rdmeta_avl_rotate(slot, side);
                rdmeta_avl_lean(n, lean == side ? RDMETA_AVL_LEVEL : side);
                rdmeta_avl_lean(heavy,
                                lean == side ? RDMETA_AVL_LEVEL : !side);
                return lean == side;
        }
        mid   = rdmeta_avl_rotate(&n->child[side], !side);
        inner = rdmeta_avl_leans(mid);
        rdmeta_avl_rotate(slot, side);
        rdmeta_avl_lean(n, inner == side ? !side : RDMETA_AVL_LEVEL);
        rdmeta_avl_lean(heavy, inner == !side ? side : RDMETA_AVL_LEVEL);
        rdmeta_avl_lean(mid, RDMETA_AVL_LEVEL);
        return 1;
}

/* ---- insert --------------------------------------------------------- */

/* Sets the bits after an insertion. `added` lies below *top; `way` has the side
 * of each step there, from the lowest bit on. The nodes between were level and
 * lean now. Nothing changes above *top, since the node there was not level, or
 * is the root. */
static void rdmeta_avl_grow(uintptr_t *top, uint64_t way,
                            const rdmeta_avl_node_t *added) {
        rdmeta_avl_node_t *n = rdmeta_avl_ptr(*top), *below;
        const int side       = way & 1;
        int lean;

        if (n == added)
                return;
        below = rdmeta_avl_ptr(n->child[side]);
        for (way >>= 1; below != added; way >>= 1) {
                rdmeta_avl_lean(below, way & 1);
                below = rdmeta_avl_ptr(below->child[way & 1]);
        }
        lean = rdmeta_avl_leans(n);
        if (lean == side)
                rdmeta_avl_rebalance(top, side);
        else
                rdmeta_avl_lean(n, lean < 0 ? side : RDMETA_AVL_LEVEL);
}

rdmeta_avl_node_t *rdmeta_avl_insert(rdmeta_avl_t *t,
                                     rdmeta_avl_node_t *node) {
        uintptr_t *slot = &t->root, *top = slot;
        rdmeta_avl_node_t *n;
        uint64_t way   = 0;
        unsigned depth = 0;
        int c;

        while ((n = rdmeta_avl_ptr(*slot))) {
                if (rdmeta_avl_leans(n) != RDMETA_AVL_LEVEL) {
                        top   = slot;
                        way   = 0;
                        depth = 0;
                }
                c = t->cmp_node(node, n, t->opaque);
                if (!c)
                        return n;
                way |= (uint64_t)(c > 0) << depth++;
                slot = &n->child[c > 0];
        }
        node->child[0] = node->child[1] = 0;
        rdmeta_avl_set(slot, node);
        t->count++;
        rdmeta_avl_grow(top, way, node);
        return NULL;
}

/* ---- remove --------------------------------------------------------- */

/* The path from the root down; from at[i] it goes on to the side side[i]. */
typedef struct rdmeta_avl_way {
        rdmeta_avl_node_t *at[RDMETA_AVL_LEVELS];
        unsigned char side[RDMETA_AVL_LEVELS];
        unsigned depth;
} rdmeta_avl_way_t;

/* Returns the slot that points to the i-th node of the path, or, where i is the
 * depth, to the node after its last. */
static uintptr_t *rdmeta_avl_slot(rdmeta_avl_t *t, rdmeta_avl_way_t *w,
                                  unsigned i) {
        return i ? &w->at[i - 1]->child[w->side[i - 1]] : &t->root;
}

static rdmeta_avl_node_t *rdmeta_avl_step(rdmeta_avl_way_t *w,
                                          rdmeta_avl_node_t *n, int side) {
        w->at[w->depth]     = n;
        w->side[w->depth++] = (unsigned char)side;
        return rdmeta_avl_ptr(n->child[side]);
}

/* Finds the path to `node`, without it, and returns 1; returns 0 if the node
 * is not in the tree. */
static int rdmeta_avl_way_to(const rdmeta_avl_t *t,
                             const rdmeta_avl_node_t *node,
                             rdmeta_avl_way_t *w) {
        rdmeta_avl_node_t *n = rdmeta_avl_ptr(t->root);
        int c;

        w->depth = 0;
        while (n && (c = t->cmp_node(node, n, t->opaque)))
                n = rdmeta_avl_step(w, n, c > 0);
        return n == node;
}

/* Restores the balance after the subtree at the path's end has lost a level:
 * goes up as long as the height changes. */
static void rdmeta_avl_shrink(rdmeta_avl_t *t, rdmeta_avl_way_t *w) {
        while (w->depth) {
                rdmeta_avl_node_t *n = w->at[--w->depth];
                const int side       = w->side[w->depth];
                const int lean       = rdmeta_avl_leans(n);

                if (lean == RDMETA_AVL_LEVEL) {
                        rdmeta_avl_lean(n, !side);
                        return;
                }
                if (lean == side)
                        rdmeta_avl_lean(n, RDMETA_AVL_LEVEL);
                else if (!rdmeta_avl_rebalance(
                             rdmeta_avl_slot(t, w, w->depth), !side))
                        return;
        }
}

/* Removes `node`, which has two children, by putting its successor in its
 * place. The successor has no left child. Extends the path to the successor's
 * old place. */
static void rdmeta_avl_supersede(rdmeta_avl_t *t, rdmeta_avl_way_t *w,
                                 rdmeta_avl_node_t *node) {
        const unsigned i     = w->depth;
        rdmeta_avl_node_t *n = rdmeta_avl_step(w, node, 1);

        while (rdmeta_avl_ptr(n->child[0]))
                n = rdmeta_avl_step(w, n, 0);
        rdmeta_avl_set(rdmeta_avl_slot(t, w, w->depth),
                       rdmeta_avl_ptr(n->child[1]));
        *n       = *node; /* links and bits, after the line above */
        w->at[i] = n;
        rdmeta_avl_set(rdmeta_avl_slot(t, w, i), n);
}

int rdmeta_avl_remove(rdmeta_avl_t *t, rdmeta_avl_node_t *node) {
        rdmeta_avl_node_t *left  = rdmeta_avl_ptr(node->child[0]);
        rdmeta_avl_node_t *right = rdmeta_avl_ptr(node->child[1]);
        rdmeta_avl_way_t w;

        if (!rdmeta_avl_way_to(t, node, &w))
                return 0;
        if (left && right)
                rdmeta_avl_supersede(t, &w, node);
        else
                rdmeta_avl_set(rdmeta_avl_slot(t, &w, w.depth),
                               left ? left : right);
        t->count--;
        rdmeta_avl_shrink(t, &w);
        return 1;
}

/* ---- build ---------------------------------------------------------- */

/* Returns the root of a tree of n nodes. The halves are equal or the left one
 * has one node more. So the left one is taller exactly where n is a power of
 * two: there the right one is full. */
static rdmeta_avl_node_t *rdmeta_avl_halve(rdmeta_avl_node_t *const *nodes,
                                           size_t n) {
        const size_t left = n / 2;
        rdmeta_avl_node_t *top;

        if (!n)
                return NULL;
        top           = nodes[left];
        top->child[0] = (uintptr_t)rdmeta_avl_halve(nodes, left);
        top->child[1] = (uintptr_t)rdmeta_avl_halve(nodes + left + 1,
                                                    n - left - 1);
        if (n > 1 && !(n & (n - 1)))
                rdmeta_avl_lean(top, 0);
        return top;
}

void rdmeta_avl_build(rdmeta_avl_t *t, rdmeta_avl_node_t *const *nodes,
                      size_t n) {
        t->root  = (uintptr_t)rdmeta_avl_halve(nodes, n);
        t->count = n;
}

/* ---- look ----------------------------------------------------------- */

rdmeta_avl_node_t *rdmeta_avl_find(const rdmeta_avl_t *t, const void *key) {
        rdmeta_avl_node_t *n = rdmeta_avl_ptr(t->root);
        int c;

        while (n && (c = t->cmp_key(key, n, t->opaque)))
                n = rdmeta_avl_ptr(n->child[c > 0]);
        return n;
}

rdmeta_avl_node_t *rdmeta_avl_first(const rdmeta_avl_t *t) {
        rdmeta_avl_node_t *n = rdmeta_avl_ptr(t->root), *first = NULL;

        for (; n; n = rdmeta_avl_ptr(n->child[0]))
                first = n;
        return first;
}

void rdmeta_avl_iter_init(rdmeta_avl_iter_t *it, const rdmeta_avl_t *t,
                          const void *key) {
        const rdmeta_avl_node_t *n = rdmeta_avl_ptr(t->root);
        int more;

        it->depth = 0;
        for (; n; n = rdmeta_avl_ptr(n->child[more])) {
                more = key && t->cmp_key(key, n, t->opaque) > 0;
                if (!more)
                        it->path[it->depth++] = n;
        }
}

rdmeta_avl_node_t *rdmeta_avl_iter_next(rdmeta_avl_iter_t *it) {
        const rdmeta_avl_node_t *n, *below;

        if (!it->depth)
                return NULL;
        n     = it->path[--it->depth];
        below = rdmeta_avl_ptr(n->child[1]);
        for (; below; below = rdmeta_avl_ptr(below->child[0]))
                it->path[it->depth++] = below;
        return (rdmeta_avl_node_t *)(uintptr_t)n;
}

/* ---- check ---------------------------------------------------------- */

typedef struct rdmeta_avl_checked {
        const rdmeta_avl_t *t;
        const rdmeta_avl_node_t *prev;
        size_t count;
} rdmeta_avl_checked_t;

/* Returns the subtree's height, or -1 for a fault anywhere in it. */
static int rdmeta_avl_height(rdmeta_avl_checked_t *c, uintptr_t link,
                             int levels) {
        const rdmeta_avl_node_t *n = rdmeta_avl_ptr(link);
        int left, right, lean;

        if (!n)
                return 0;
        if (!levels || (n->child[0] & n->child[1] & 1))
                return -1;
        left = rdmeta_avl_height(c, n->child[0], levels - 1);
        if (left < 0)
                return -1;
        if (c->prev && c->t->cmp_node(c->prev, n, c->t->opaque) >= 0)
                return -1;
        c->prev = n;
        c->count++;
        right = rdmeta_avl_height(c, n->child[1], levels - 1);
        if (right < 0)
                return -1;
        lean = rdmeta_avl_leans(n);
        if (right - left != (lean < 0 ? 0 : lean ? 1 : -1))
                return -1;
        return 1 + (left > right ? left : right);
}

int rdmeta_avl_check(const rdmeta_avl_t *t) {
        rdmeta_avl_checked_t c = {t, NULL, 0};

        return !(t->root & 1) &&
               rdmeta_avl_height(&c, t->root, RDMETA_AVL_LEVELS) >= 0 &&
               c.count == t->count;
}
