/*
 * walk: the ordered index, and walks over it.
 *
 * The tree is not needed to answer a point lookup, so it is made when it is
 * first walked - sorted names, then a tree of them in one go - and from then
 * on kept. When many topics come at once it is forgotten again, since
 * inserting them one by one costs more than everything else together.
 */
#include "cache.h"

#include <stdlib.h>

typedef struct name_key {
        const char *data;
        size_t len;
} name_key_t;

static int names_compare(const char *a, size_t n, const char *b, size_t m) {
        const int res = memcmp(a, b, n < m ? n : m);

        return res ? res : n < m ? -1 : n > m;
}

static const rdmeta_topic_t *node_topic(const rdmeta_avl_node_t *n) {
        return RDMETA_CONTAINER(n, const rdmeta_entry_t, avl)->topic;
}

static int compare_nodes(const rdmeta_avl_node_t *a,
                         const rdmeta_avl_node_t *b, void *opaque) {
        const rdmeta_topic_t *x = node_topic(a), *y = node_topic(b);

        (void)opaque;
        return names_compare(x->name, x->name_len, y->name, y->name_len);
}

static int compare_key(const void *key, const rdmeta_avl_node_t *node,
                       void *opaque) {
        const name_key_t *k     = (const name_key_t *)key;
        const rdmeta_topic_t *t = node_topic(node);

        (void)opaque;
        return names_compare(k->data, k->len, t->name, t->name_len);
}

void rdmeta_tree_init(rdmeta_cache_t *c) {
        rdmeta_avl_init(&c->tree, compare_nodes, compare_key, NULL);
        c->tree_made = 0;
}

void rdmeta_tree_expect(rdmeta_cache_t *c, size_t n) {
        if (c->tree_made && n > c->entries / 4 + 16)
                rdmeta_tree_init(c);
}

void rdmeta_tree_add(rdmeta_cache_t *c, rdmeta_entry_t *e) {
        if (c->tree_made)
                rdmeta_avl_insert(&c->tree, &e->avl);
}

void rdmeta_tree_remove(rdmeta_cache_t *c, rdmeta_entry_t *e) {
        if (c->tree_made)
                rdmeta_avl_remove(&c->tree, &e->avl);
}

static int compare_for_sort(const void *a, const void *b) {
        return compare_nodes(*(rdmeta_avl_node_t *const *)a,
                             *(rdmeta_avl_node_t *const *)b, NULL);
}

rdmeta_err_t rdmeta_tree_make(rdmeta_cache_t *c) {
        const rdmeta_table_t *names = rdmeta_names(c);
        const size_t size = (c->entries + 1) * sizeof(rdmeta_avl_node_t *);
        rdmeta_avl_node_t **nodes;
        size_t n = 0;
        uint32_t k;

        if (c->tree_made)
                return RDMETA_OK;
        nodes = (rdmeta_avl_node_t **)rdmeta_alloc(&c->conf.allocator, size);
        if (!nodes)
                return RDMETA_ERR_NO_MEMORY;
        for (k = 0; k <= names->mask; k++) {
                const rdmeta_topic_t *t =
                        rdmeta_slot_topic(atomic_load_explicit(
                                &names->slots[k], memory_order_relaxed));
                if (t && t != &rdmeta_grave.topic)
                        nodes[n++] = &rdmeta_entry_of(c, t)->avl;
        }
        qsort(nodes, n, sizeof(*nodes), compare_for_sort);
        rdmeta_avl_build(&c->tree, nodes, n);
        rdmeta_free(&c->conf.allocator, nodes, size);
        c->tree_made = 1;
        return RDMETA_OK;
}

/* ---- walks --------------------------------------------------------------- */

static int is_wanted(const rdmeta_cache_t *c, const rdmeta_topic_t *t,
                     int32_t which, int64_t mono_us) {
        if (t->state == RDMETA_TOPIC_VALID) {
                const int fresh =
                        rdmeta_view_deadline(&c->root, t) >= mono_us;
                return which & (fresh ? RDMETA_WALK_VALID
                                      : RDMETA_WALK_STALE);
        }
        return t->state != RDMETA_TOPIC_WAIT &&
               t->state != RDMETA_TOPIC_GONE && which & RDMETA_WALK_NEGATIVE;
}

/* The blocks of a walk, in order, up to `capacity`; how many there are. */
static size_t walk_collect(const rdmeta_cache_t *c, const name_key_t *prefix,
                           int32_t which, int64_t mono_us,
                           const rdmeta_topic_t **out) {
        const rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;
        size_t n = 0;

        rdmeta_avl_iter_init(&it, &c->tree, prefix->len ? prefix : NULL);
        while ((node = rdmeta_avl_iter_next(&it)) != NULL) {
                const rdmeta_topic_t *t = node_topic(node);
                if (t->name_len < prefix->len ||
                    memcmp(t->name, prefix->data, prefix->len) != 0)
                        break;
                if (!is_wanted(c, t, which, mono_us))
                        continue;
                if (out)
                        out[n] = t;
                n++;
        }
        return n;
}

/* The blocks are gathered under the lock and visited without it: the reader
 * that was entered before keeps them. */
rdmeta_err_t rdmeta_reader_walk(rdmeta_reader_t *r, const char *prefix,
                                size_t len, int32_t which, int64_t mono_us,
                                rdmeta_topic_visit_t visit, void *opaque) {
        const name_key_t key = {len ? prefix : "", len};
        rdmeta_cache_t *c    = r->cache;
        const rdmeta_topic_t **topics = NULL;
        size_t i, n = 0, size = 0;
        rdmeta_err_t err;

        if (rdmeta_wait_forked(&c->wait))
                return RDMETA_ERR_FORKED;
        rdmeta_reading_enter(&r->reading);
        rdmeta_wait_lock(&c->wait);
        err = rdmeta_tree_make(c);
        if (!err) {
                n      = walk_collect(c, &key, which, mono_us, NULL);
                size   = (n + 1) * sizeof(*topics);
                topics = (const rdmeta_topic_t **)rdmeta_alloc(
                        &c->conf.allocator, size);
                err = topics ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
        }
        if (!err)
                walk_collect(c, &key, which, mono_us, topics);
        rdmeta_wait_unlock(&c->wait);
        for (i = 0; i < n && !err; i++)
                err = visit(opaque, topics[i]);
        rdmeta_reading_leave(&r->reading);
        if (topics) {
                rdmeta_wait_lock(&c->wait);
                rdmeta_free(&c->conf.allocator, topics, size);
                rdmeta_wait_unlock(&c->wait);
        }
        return err;
}
