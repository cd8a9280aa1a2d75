/* Handles: resolve, count references, and follow blocks. See handles.h. */
#include "cache/handles.h"

#include "cache/copied.h"

/* ---- the tree of handles ----------------------------------------------- */

static int compare_names(const char *a, size_t n, const char *b, size_t m) {
        return n != m ? (n < m ? -1 : 1) : memcmp(a, b, n);
}

static const rdmeta_handle_t *handle_of(const rdmeta_avl_node_t *node) {
        return RDMETA_CONTAINER(node, const rdmeta_handle_t, node);
}

static int compare_nodes(const rdmeta_avl_node_t *a,
                         const rdmeta_avl_node_t *b, void *opaque) {
        (void)opaque;
        return compare_names(handle_of(a)->name, handle_of(a)->len,
                             handle_of(b)->name, handle_of(b)->len);
}

static int compare_key(const void *key, const rdmeta_avl_node_t *node,
                       void *opaque) {
        const rdmeta_str_t *name = (const rdmeta_str_t *)key;

        (void)opaque;
        return compare_names(name->data, name->len, handle_of(node)->name,
                             handle_of(node)->len);
}

void rdmeta_handles_init(rdmeta_handles_t *handles) {
        rdmeta_avl_init(&handles->tree, compare_nodes, compare_key, NULL);
        handles->bytes = 0;
}

static rdmeta_handle_t *handle_find(const rdmeta_handles_t *handles,
                                    rdmeta_str_t name) {
        rdmeta_avl_node_t *node = rdmeta_avl_find(&handles->tree, &name);

        return node ? RDMETA_CONTAINER(node, rdmeta_handle_t, node) : NULL;
}

void rdmeta_handles_store(rdmeta_handles_t *handles,
                          const rdmeta_topic_t *named, rdmeta_topic_t *topic) {
        const rdmeta_str_t name = {named->name, named->name_len};
        rdmeta_handle_t *h      = handle_find(handles, name);

        if (h)
                atomic_store_explicit(&h->topic, topic, memory_order_release);
}

const char *rdmeta_handles_check(rdmeta_cache_t *c) {
        const rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;
        size_t bytes = 0;

        if (!rdmeta_avl_check(&c->handles.tree))
                return "the tree of handles is out of order";
        rdmeta_avl_iter_init(&it, &c->handles.tree, NULL);
        while ((node = rdmeta_avl_iter_next(&it)) != NULL) {
                const rdmeta_handle_t *h = handle_of(node);

                bytes += sizeof(*h) + h->len;
                if (atomic_load(&h->references) < 1)
                        return "a handle has no reference";
                if (atomic_load(&h->topic) !=
                    rdmeta_table_find(rdmeta_names(c), h->name, h->len))
                        return "a handle and its name lead to two blocks";
        }
        return bytes == c->handles.bytes ? NULL : "handles are miscounted";
}

/* ---- life -------------------------------------------------------------- */

/* Returns a handle without references, in the tree. NULL: no memory. */
static rdmeta_handle_t *handle_new(rdmeta_cache_t *c, const char *topic,
                                   size_t len) {
        const size_t size = sizeof(rdmeta_handle_t) + len;
        rdmeta_handle_t *h =
                (rdmeta_handle_t *)rdmeta_alloc(&c->conf.allocator, size);

        if (!h)
                return NULL;
        memset(h, 0, sizeof(*h));
        memcpy(h->name, topic, len);
        h->len   = (uint32_t)len;
        h->root  = &c->root;
        h->cache = c;
        rdmeta_ref_take(&c->references);
        atomic_init(&h->references, 0);
        atomic_init(&h->topic, rdmeta_table_find(rdmeta_names(c), topic, len));
        rdmeta_avl_insert(&c->handles.tree, &h->node);
        c->handles.bytes += size;
        return h;
}

rdmeta_handle_t *rdmeta_resolve(rdmeta_cache_t *c, const char *topic,
                                size_t len) {
        const rdmeta_str_t name = {topic, len};
        rdmeta_handle_t *h;

        if (len - 1 >= RDMETA_NAME_MAX || rdmeta_notify_lock(&c->notify))
                return NULL;
        h = handle_find(&c->handles, name);
        if (!h)
                h = handle_new(c, topic, len);
        if (h)
                rdmeta_handle_ref(h);
        rdmeta_notify_unlock(&c->notify);
        return h;
}

rdmeta_handle_t *rdmeta_handle_ref(rdmeta_handle_t *h) {
        atomic_fetch_add_explicit(&h->references, 1, memory_order_relaxed);
        return h;
}

/* Drops a reference, and frees the handle if it was the last one. Returns 1 if
 * it was. The caller has the lock. */
static int handle_end(rdmeta_cache_t *c, rdmeta_handle_t *h) {
        const size_t size = sizeof(*h) + h->len;

        if (atomic_fetch_sub_explicit(&h->references, 1,
                                      memory_order_acq_rel) != 1)
                return 0;
        rdmeta_avl_remove(&c->handles.tree, &h->node);
        c->handles.bytes -= size;
        rdmeta_free(&c->conf.allocator, h, size);
        return 1;
}

void rdmeta_handle_release(rdmeta_handle_t *h) {
        rdmeta_cache_t *c;
        int32_t count;
        int last;

        if (!h)
                return;
        count = atomic_load_explicit(&h->references, memory_order_relaxed);
        while (count > 1)
                if (atomic_compare_exchange_weak_explicit(
                            &h->references, &count, count - 1,
                            memory_order_release, memory_order_relaxed))
                        return;
        c = h->cache;
        if (rdmeta_notify_lock(&c->notify))
                return;
        last = handle_end(c, h);
        rdmeta_notify_unlock(&c->notify);
        if (last)
                rdmeta_ref_drop(&c->references);
}

rdmeta_str_t rdmeta_handle_topic(const rdmeta_handle_t *h) {
        const rdmeta_str_t name = {h->name, h->len};

        return name;
}

rdmeta_err_t rdmeta_cache_resolved(rdmeta_cache_t *c,
                                   rdmeta_name_visit_t visit, void *opaque) {
        const rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;
        rdmeta_copied_t copied;
        rdmeta_err_t err;
        size_t i, bytes;

        if (rdmeta_notify_forked(&c->notify))
                return RDMETA_ERR_FORKED;
        rdmeta_notify_lock(&c->notify);
        bytes = c->handles.bytes -
                c->handles.tree.count * sizeof(rdmeta_handle_t);
        err = rdmeta_copied_init(c, &copied, c->handles.tree.count, bytes);
        rdmeta_avl_iter_init(&it, &c->handles.tree, NULL);
        while (!err && (node = rdmeta_avl_iter_next(&it)) != NULL)
                rdmeta_copied_add(&copied, handle_of(node)->name,
                                  handle_of(node)->len, 0);
        rdmeta_notify_unlock(&c->notify);
        for (i = 0; i < copied.n && !err; i++)
                err = visit(opaque, &copied.rows[i].topic);
        rdmeta_copied_free(c, &copied);
        return err;
}
