/* walk: visits topics in the order of names, in a cache or an image. */
#include "cache/tree.h"
#include "read/follow.h"
#include "topic/sort.h"

/* Returns 1 if `which` asks for topics of this state. */
static int is_visited(const rdmeta_topic_t *t, int64_t deadline, int32_t which,
                      int64_t mono_us) {
        if (t->state == RDMETA_TOPIC_VALID)
                return which & (deadline >= mono_us ? RDMETA_WALK_VALID
                                                    : RDMETA_WALK_STALE);
        return rdmeta_topic_is_visible(t) && which & RDMETA_WALK_NEGATIVE;
}

/* Returns how many topics a walk visits. Copies them to `out` in order, unless
 * `out` is NULL. The caller has the lock. */
static size_t walk_collect(const rdmeta_cache_t *c, const rdmeta_str_t *prefix,
                           int32_t which, int64_t mono_us,
                           const rdmeta_topic_t **out) {
        const rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;
        size_t n = 0;

        rdmeta_avl_iter_init(&it, &c->tree, prefix->len ? prefix : NULL);
        while ((node = rdmeta_avl_iter_next(&it)) != NULL) {
                const rdmeta_topic_t *t = rdmeta_tree_topic(node);
                if (t->name_len < prefix->len ||
                    memcmp(t->name, prefix->data, prefix->len) != 0)
                        break;
                if (!is_visited(t, rdmeta_view_deadline(&c->root, t), which,
                                mono_us))
                        continue;
                if (out)
                        out[n] = t;
                n++;
        }
        return n;
}

/* Sets *out to the first topic of an image whose name is not before `prefix`.
 */
static rdmeta_err_t image_first(const rdmeta_image_t *image, size_t n,
                                const rdmeta_str_t *prefix, size_t *out) {
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

/* Walks over an image. Returns 0, an error or what a visit returned. */
static rdmeta_err_t image_walk(rdmeta_image_t *image,
                               const rdmeta_str_t *prefix, int32_t which,
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
                if (is_visited(seen.topic, seen.deadline, which, mono_us))
                        err = visit(opaque, seen.topic);
        }
        return err;
}

/* Collects the blocks under the lock and visits them without it. The reader,
 * which entered before, keeps them from being freed. */
rdmeta_err_t rdmeta_reader_walk(rdmeta_reader_t *r, const char *prefix,
                                size_t len, int32_t which, int64_t mono_us,
                                rdmeta_topic_visit_t visit, void *opaque) {
        const rdmeta_str_t key = {len ? prefix : "", len};
        rdmeta_cache_t *c    = r->cache;
        const rdmeta_topic_t **topics = NULL;
        size_t i, n = 0, size = 0;
        rdmeta_err_t err;

        if (r->image) { /* a visit may look up more, in the same image */
                rdmeta_attach_time(r, mono_us);
                rdmeta_reader_enter(r);
                r->handed = r->attach != NULL;
                err = image_walk(r->image, &key, which, mono_us, visit,
                                 opaque);
                rdmeta_reader_leave(r);
                return err;
        }
        rdmeta_reading_enter(&r->reading);
        err = rdmeta_notify_lock(&c->notify);
        if (err) {
                rdmeta_reading_leave(&r->reading);
                return err;
        }
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
        rdmeta_notify_unlock(&c->notify);
        for (i = 0; i < n && !err; i++)
                err = visit(opaque, topics[i]);
        rdmeta_reading_leave(&r->reading);
        rdmeta_notify_free(&c->notify, topics, size);
        return err;
}
