/* The difference of two images, or of one from nothing. Both are read side by
 * side, in the order of names. Each pair of blocks goes to the function that
 * makes the feed's records. */
#include "image/image.h"

#include "topic/diff.h"
#include "topic/sort.h"

typedef struct diff {
        rdmeta_image_t *before, *after;
        rdmeta_diff_out_t out;
        size_t ids_size;
} diff_t;

/* Makes room for the lists of one record, as long as the longest so far. Empty
 * lists need a pointer too: NULL would mean that there is no list. Returns
 * NO_MEMORY. */
static rdmeta_err_t diff_room(diff_t *d, const rdmeta_topic_t *a,
                              const rdmeta_topic_t *b) {
        const uint32_t x       = rdmeta_diff_longest(a);
        const uint32_t y       = rdmeta_diff_longest(b);
        const uint32_t longest = x > y ? x : y;
        const uint32_t n       = longest < 16 ? 16 : longest;
        const size_t size      =
                RDMETA_DIFF_LISTS * (size_t)n * sizeof(int32_t);
        void *ids;

        if (d->out.ids && longest <= d->out.ids_each)
                return RDMETA_OK;
        ids = d->after->ops->alloc(d->after, size);
        if (!ids)
                return RDMETA_ERR_NO_MEMORY;
        if (d->out.ids)
                d->after->ops->free(d->after, d->out.ids, d->ids_size);
        d->out.ids      = (int32_t *)ids;
        d->out.ids_each = n;
        d->ids_size     = size;
        return RDMETA_OK;
}

/* Visits the records of one pair of topics; either may be NULL. Images of one
 * cache share the blocks that did not change, so those are skipped at once. */
static rdmeta_err_t diff_pair(diff_t *d, const rdmeta_topic_t *a,
                              const rdmeta_topic_t *b) {
        rdmeta_err_t err;

        if (a == b || (a && b && rdmeta_topic_same(a, b)))
                return RDMETA_OK;
        err = diff_room(d, a, b);
        return err ? err : rdmeta_diff_topics(&d->out, a, b);
}

/* Sets *out to the i-th of n topics; NULL: there are no more. Returns
 * MALFORMED. */
static rdmeta_err_t diff_next(const rdmeta_image_t *image, size_t i, size_t n,
                              const rdmeta_topic_t **out) {
        rdmeta_seen_t seen;
        rdmeta_err_t err;

        *out = NULL;
        if (i == n)
                return RDMETA_OK;
        err = image->ops->at(image, i, &seen);
        if (!err)
                *out = seen.topic;
        return err;
}

static rdmeta_err_t diff_topics(diff_t *d, size_t n, size_t m) {
        const rdmeta_topic_t *a, *b;
        size_t i = 0, k = 0;
        rdmeta_err_t err;
        int order;

        for (;;) {
                err = diff_next(d->before, i, n, &a);
                if (!err)
                        err = diff_next(d->after, k, m, &b);
                if (err || (!a && !b))
                        return err;
                order = !a   ? 1
                        : !b ? -1
                             : rdmeta_topics_compare(a, b);
                err = diff_pair(d, order <= 0 ? a : NULL,
                                order >= 0 ? b : NULL);
                if (err)
                        return err;
                i += order <= 0;
                k += order >= 0;
        }
}

static void diff_begin(diff_t *d, rdmeta_image_t *before,
                       rdmeta_image_t *after, rdmeta_change_visit_t visit,
                       void *opaque) {
        rdmeta_change_t *record = &d->out.record;

        memset(d, 0, sizeof(*d));
        d->before             = before;
        d->after              = after;
        d->out.visit          = visit;
        d->out.opaque         = opaque;
        record->offset        = -1;
        record->version       = after->about.version;
        record->wall_us       = after->about.taken_wall_us;
        record->source        = RDMETA_SOURCE_POLL;
        record->source_broker = RDMETA_NONE;
        record->cluster_id    = after->brokers->cluster_id;
}

static void diff_end(diff_t *d) {
        if (d->out.ids)
                d->after->ops->free(d->after, d->out.ids, d->ids_size);
}

rdmeta_err_t rdmeta_image_diff(rdmeta_image_t *before, rdmeta_image_t *after,
                               rdmeta_change_visit_t visit, void *opaque) {
        size_t n = 0, m = 0;
        rdmeta_err_t err;
        diff_t d;

        diff_begin(&d, before, after, visit, opaque);
        err = before->ops->order(before, &n);
        if (!err)
                err = after->ops->order(after, &m);
        if (!err)
                err = rdmeta_diff_brokers(&d.out, before->brokers,
                                          after->brokers);
        if (!err)
                err = diff_topics(&d, n, m);
        diff_end(&d);
        return err;
}

rdmeta_err_t rdmeta_image_changes(rdmeta_image_t *image,
                                  rdmeta_change_visit_t visit, void *opaque) {
        rdmeta_brokers_t none;
        const rdmeta_topic_t *t;
        rdmeta_err_t err;
        size_t n = 0, i;
        diff_t d;

        diff_begin(&d, NULL, image, visit, opaque);
        d.out.whole = 1;
        memset(&none, 0, sizeof(none));
        none.rows   = image->brokers->rows; /* a place, of which 0 are read */
        err         = image->ops->order(image, &n);
        if (!err)
                err = rdmeta_diff_brokers(&d.out, &none, image->brokers);
        for (i = 0; i < n && !err; i++) {
                err = diff_next(image, i, n, &t);
                if (!err && t->state == RDMETA_TOPIC_VALID)
                        err = diff_pair(&d, NULL, t);
        }
        diff_end(&d);
        return err;
}
