/*
 * walk: the ordered index, and walks over it.
 *
 * The tree is not needed to answer a point lookup, so it is made when it is
 * first walked - sorted names, then a tree of them in one go - and from then
 * on kept. When many topics come at once it is forgotten again, since
 * inserting them one by one costs more than everything else together.
 */
#include "attach.h"
#include "sort.h"

typedef struct name_key {
        const char *data;
        size_t len;
} name_key_t;

static const rdmeta_topic_t *node_topic(const rdmeta_avl_node_t *n) {
        return RDMETA_CONTAINER(n, const rdmeta_entry_t, avl)->topic;
}

static int compare_nodes(const rdmeta_avl_node_t *a,
                         const rdmeta_avl_node_t *b, void *opaque) {
        (void)opaque;
        return rdmeta_topics_compare(node_topic(a), node_topic(b));
}

static int compare_key(const void *key, const rdmeta_avl_node_t *node,
                       void *opaque) {
        const name_key_t *k     = (const name_key_t *)key;
        const rdmeta_topic_t *t = node_topic(node);

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

/* ---- the tree ------------------------------------------------------------ */

/* Every entry has a slot of the order array, and they lie in memory as they
 * do in it. */
static size_t collect_items(const rdmeta_order_t *o, rdmeta_sort_item_t *out) {
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

static rdmeta_err_t tree_make(rdmeta_cache_t *c) {
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

/* ---- walks --------------------------------------------------------------- */

static int is_wanted(const rdmeta_topic_t *t, int64_t deadline, int32_t which,
                     int64_t mono_us) {
        if (t->state == RDMETA_TOPIC_VALID)
                return which & (deadline >= mono_us ? RDMETA_WALK_VALID
                                                    : RDMETA_WALK_STALE);
        return rdmeta_topic_is_told(t) && which & RDMETA_WALK_NEGATIVE;
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
                if (!is_wanted(t, rdmeta_view_deadline(&c->root, t), which,
                               mono_us))
                        continue;
                if (out)
                        out[n] = t;
                n++;
        }
        return n;
}

/* The first topic of an image whose name is not before `prefix`. */
static rdmeta_err_t image_first(const rdmeta_image_t *image, size_t n,
                                const name_key_t *prefix, size_t *out) {
        size_t lo = 0, hi = n;
        rdmeta_seen_t seen;

        while (lo < hi && prefix->len) {
                const size_t mid       = lo + (hi - lo) / 2;
                const rdmeta_err_t err = image->ops->at(image, mid, &seen);
                if (err)
                        return err;
                if (rdmeta_names_compare(seen.topic->name, seen.topic->name_len,
                                  prefix->data, prefix->len) < 0)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        *out = lo;
        return RDMETA_OK;
}

static rdmeta_err_t image_walk(rdmeta_image_t *image,
                               const name_key_t *prefix, int32_t which,
                               int64_t mono_us, rdmeta_topic_visit_t visit,
                               void *opaque) {
        size_t i = 0, n = 0;
        rdmeta_err_t err = image->ops->order(image, &n);
        rdmeta_seen_t seen;

        if (!err)
                err = image_first(image, n, prefix, &i);
        for (; !err && i < n; i++) {
                err = image->ops->at(image, i, &seen);
                if (err)
                        break;
                if (seen.topic->name_len < prefix->len ||
                    memcmp(seen.topic->name, prefix->data, prefix->len) != 0)
                        break;
                if (is_wanted(seen.topic, seen.deadline, which, mono_us))
                        err = visit(opaque, seen.topic);
        }
        return err;
}

/* Of a cache that is torn, in a fork's child: as an image of it. */
static rdmeta_err_t torn_walk(rdmeta_cache_t *c, const name_key_t *prefix,
                              int32_t which, int64_t mono_us,
                              rdmeta_topic_visit_t visit, void *opaque) {
        const rdmeta_time_t now = {mono_us, 0};
        rdmeta_image_t *image   = rdmeta_cache_image(c, now);
        rdmeta_err_t err;

        if (!image)
                return RDMETA_ERR_NO_MEMORY;
        err = image_walk(image, prefix, which, mono_us, visit, opaque);
        rdmeta_image_unref(image); /* its blocks stay, nothing is freed there */
        return err;
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

        if (r->image) { /* who visits may ask it more, of the same image */
                rdmeta_attach_time(r, mono_us);
                rdmeta_reader_enter(r);
                r->handed = r->attach != NULL;
                err = image_walk(r->image, &key, which, mono_us, visit,
                                 opaque);
                rdmeta_reader_leave(r);
                return err;
        }
        rdmeta_reading_enter(&r->reading);
        if (!rdmeta_wait_turn(&c->wait)) {
                rdmeta_wait_turn_end(&c->wait);
                rdmeta_reading_leave(&r->reading);
                return torn_walk(c, &key, which, mono_us, visit, opaque);
        }
        err = tree_make(c);
        if (!err) {
                n      = walk_collect(c, &key, which, mono_us, NULL);
                size   = (n + 1) * sizeof(*topics);
                topics = (const rdmeta_topic_t **)rdmeta_alloc(
                        &c->conf.allocator, size);
                err = topics ? RDMETA_OK : RDMETA_ERR_NO_MEMORY;
        }
        if (!err)
                walk_collect(c, &key, which, mono_us, topics);
        rdmeta_wait_turn_end(&c->wait);
        for (i = 0; i < n && !err; i++)
                err = visit(opaque, topics[i]);
        rdmeta_reading_leave(&r->reading);
        if (topics) {
                rdmeta_wait_turn(&c->wait);
                rdmeta_free(&c->conf.allocator, topics, size);
                rdmeta_wait_turn_end(&c->wait);
        }
        return err;
}
