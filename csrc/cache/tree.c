/* The ordered index of names, for walks and prefixes. See tree.h. */
#include "cache/tree.h"

#include "topic/sort.h"

static int compare_nodes(const rdmeta_avl_node_t *a,
                         const rdmeta_avl_node_t *b, void *opaque) {
        (void)opaque;
        return rdmeta_topics_compare(rdmeta_tree_topic(a),
                                     rdmeta_tree_topic(b));
}

static int compare_key(const void *key, const rdmeta_avl_node_t *node,
                       void *opaque) {
        const rdmeta_str_t *k   = (const rdmeta_str_t *)key;
        const rdmeta_topic_t *t = rdmeta_tree_topic(node);

        (void)opaque;
        return rdmeta_names_compare(k->data, k->len, t->name, t->name_len);
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

/* Writes all topics, with their slots, to `out`, and returns their number. It
 * walks the order array, because entries lie in memory in that order. */
static size_t collect_items(const rdmeta_answer_order_t *o,
                            rdmeta_sort_item_t *out) {
        size_t n = 0;
        uint32_t k;

        for (k = 0; k < o->count; k++) {
                if (!o->slots[k].entry)
                        continue;
                out[n].topic  = o->slots[k].entry->topic;
                out[n++].with = k;
        }
        return n;
}

rdmeta_err_t rdmeta_tree_make(rdmeta_cache_t *c) {
        const size_t size = (c->entries + 1) *
                            (sizeof(rdmeta_sort_item_t) +
                             sizeof(rdmeta_avl_node_t *));
        rdmeta_avl_node_t **nodes;
        rdmeta_sort_item_t *items;
        size_t n, i;

        if (c->tree_made)
                return RDMETA_OK;
        items = (rdmeta_sort_item_t *)rdmeta_alloc(&c->conf.allocator, size);
        if (!items)
                return RDMETA_ERR_NO_MEMORY;
        n = collect_items(&c->order, items);
        rdmeta_sort_topics(items, n);
        nodes = (rdmeta_avl_node_t **)(void *)(items + c->entries + 1);
        for (i = 0; i < n; i++)
                nodes[i] = &c->order.slots[items[i].with].entry->avl;
        rdmeta_avl_build(&c->tree, nodes, n);
        rdmeta_free(&c->conf.allocator, items, size);
        c->tree_made = 1;
        return RDMETA_OK;
}
