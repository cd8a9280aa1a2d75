#include "fold/brokers.h"

/* ---- brokers ------------------------------------------------------------- */

static int compare(int64_t a, int64_t b) {
        return (a > b) - (a < b);
}

static int broker_key(const void *key, const rdmeta_avl_node_t *node,
                      void *opaque) {
        const rdmeta_fold_broker_t *b =
                (const rdmeta_fold_broker_t *)(const void *)node;

        (void)opaque;
        return compare(*(const int32_t *)key, b->id);
}

static int broker_node(const rdmeta_avl_node_t *a, const rdmeta_avl_node_t *b,
                       void *opaque) {
        return broker_key(&((const rdmeta_fold_broker_t *)(const void *)a)->id,
                          b, opaque);
}

static rdmeta_fold_broker_t *broker_find(const rdmeta_fold_t *f, int32_t id) {
        return (rdmeta_fold_broker_t *)(void *)rdmeta_avl_find(&f->brokers,
                                                               &id);
}

rdmeta_fold_broker_t *rdmeta_fold_broker_get(rdmeta_fold_t *f, int32_t id) {
        rdmeta_fold_broker_t *b = broker_find(f, id);

        if (b)
                return b;
        b = rdmeta_fold_alloc(f, sizeof(*b));
        if (!b)
                return NULL;
        memset(b, 0, sizeof(*b));
        b->id    = id;
        b->epoch = b->next_epoch = -1;
        b->says.fenced = b->says.shutting_down = -1;
        b->before = b->says;
        rdmeta_avl_insert(&f->brokers, &b->node);
        f->gone++;
        return b;
}

void rdmeta_fold_broker_gone(rdmeta_fold_t *f, rdmeta_fold_broker_t *b) {
        f->gone += b->says.listed;
        b->says.listed = 0;
        b->says.fenced = b->says.shutting_down = -1;
        b->before = b->says;
}

void rdmeta_fold_brokers_drop(rdmeta_fold_t *f) {
        int64_t next = 0;

        while (next <= INT32_MAX) {
                const int32_t least = (int32_t)next;
                rdmeta_avl_iter_t it;
                rdmeta_fold_broker_t *b;

                rdmeta_avl_iter_init(&it, &f->brokers, &least);
                b = (rdmeta_fold_broker_t *)(uintptr_t)rdmeta_avl_iter_next(
                        &it);
                if (!b)
                        return;
                next = (int64_t)b->id + 1;
                if (b->says.listed)
                        continue;
                rdmeta_avl_remove(&f->brokers, &b->node);
                rdmeta_fold_free(f, b, sizeof(*b));
                f->gone--;
        }
}

void rdmeta_fold_racks_moved(rdmeta_fold_t *f, uint8_t reason,
                             const rdmeta_fold_began_t *next) {
        f->racks_turn++;
        f->racks.began = *next;
        if (reason < f->racks.reason)
                f->racks.reason = reason;
}

/* Returns where ` rack=` begins in a text, or its length. */
static size_t rack_at(rdmeta_str_t s) {
        static const char mark[] = " rack=";
        const size_t n           = sizeof(mark) - 1;
        size_t i;

        for (i = 0; i + n <= s.len; i++)
                if (!memcmp(s.data + i, mark, n))
                        return i;
        return s.len;
}

int rdmeta_fold_endpoint(rdmeta_str_t detail, rdmeta_fold_endpoint_t *out) {
        size_t end, i;
        int64_t port = 0;

        memset(out, 0, sizeof(*out));
        if (!detail.data)
                return 0;
        end = rack_at(detail);
        if (end < detail.len) {
                out->rack.data = detail.data + end + 6;
                out->rack.len  = detail.len - end - 6;
        }
        for (i = end; i > 0 && detail.data[i - 1] != ':'; i--)
                ;
        if (i < 2 || i == end || end - i > 10)
                return 0;
        out->host.data = detail.data;
        out->host.len  = i - 1;
        for (; i < end; i++) {
                if (detail.data[i] < '0' || detail.data[i] > '9')
                        return 0;
                port = 10 * port + (detail.data[i] - '0');
        }
        out->port = (int32_t)port;
        return port <= INT32_MAX;
}

/* ---- racks --------------------------------------------------------------- */

static int by_number(const void *a, const void *b) {
        return compare(*(const uint32_t *)a, *(const uint32_t *)b);
}

static int32_t count_racks(rdmeta_fold_t *f, const int32_t *ids, uint32_t n) {
        int32_t racks = 0;
        uint32_t i;

        for (i = 0; i < n; i++) {
                const rdmeta_fold_broker_t *b = broker_find(f, ids[i]);
                if (!b || !b->says.rack)
                        return -1;
                f->scratch[i] = b->says.rack;
        }
        qsort(f->scratch, n, sizeof(*f->scratch), by_number);
        for (i = 0; i < n; i++)
                racks += !i || f->scratch[i] != f->scratch[i - 1];
        return racks;
}

rdmeta_err_t rdmeta_fold_racks(rdmeta_fold_t *f, uint32_t replicas,
                               int32_t *racks) {
        rdmeta_fold_word_t *word;
        uint32_t n;
        void *p;

        *racks = -1;
        if (!replicas)
                return RDMETA_OK;
        word = f->interned.words[replicas];
        if (word->turn != f->racks_turn) {
                n = word->size / 4;
                p = rdmeta_fold_room(f, f->scratch, 0, &f->scratch_room, n + 1,
                                     sizeof(*f->scratch));
                if (!p)
                        return RDMETA_ERR_NO_MEMORY;
                f->scratch  = p;
                word->racks = count_racks(
                        f, (const int32_t *)(const void *)word->data, n);
                word->turn  = f->racks_turn;
        }
        *racks = word->racks;
        return RDMETA_OK;
}

/* ---- configurations ------------------------------------------------------ */

static int compare_words(const rdmeta_fold_interned_t *w, uint32_t a,
                         uint32_t b) {
        const rdmeta_fold_word_t *s = w->words[a], *t = w->words[b];
        const size_t n  = s->size < t->size ? s->size : t->size;
        const int order = memcmp(s->data, t->data, n);

        return order ? order : compare(s->size, t->size);
}

/* Compares by broker, then by the names of resource and key. A key of 0 comes
 * before every key of the resource. */
static int config_key(const void *key, const rdmeta_avl_node_t *node,
                      void *opaque) {
        const rdmeta_fold_config_t *a = key;
        const rdmeta_fold_config_t *b =
                (const rdmeta_fold_config_t *)(const void *)node;
        const rdmeta_fold_interned_t *w = &((rdmeta_fold_t *)opaque)->interned;
        int order                    = compare(a->broker, b->broker);

        if (!order && a->resource != b->resource)
                order = compare_words(w, a->resource, b->resource);
        if (order || a->key == b->key)
                return order;
        return a->key ? compare_words(w, a->key, b->key) : -1;
}

static int config_node(const rdmeta_avl_node_t *a, const rdmeta_avl_node_t *b,
                       void *opaque) {
        return config_key(a, b, opaque);
}

rdmeta_fold_config_t *rdmeta_fold_config_find(rdmeta_fold_t *f, int32_t broker,
                                              uint32_t resource,
                                              uint32_t key) {
        const rdmeta_fold_config_t wanted = {
                .broker = broker, .resource = resource, .key = key};

        return (rdmeta_fold_config_t *)(void *)rdmeta_avl_find(&f->configs,
                                                               &wanted);
}

rdmeta_fold_config_t *rdmeta_fold_config_of(rdmeta_fold_t *f,
                                            uint32_t resource) {
        const rdmeta_fold_config_t first = {.broker = RDMETA_FOLD_OF_TOPIC,
                                            .resource = resource};
        rdmeta_fold_config_t *c;
        rdmeta_avl_iter_t it;

        rdmeta_avl_iter_init(&it, &f->configs, &first);
        c = (rdmeta_fold_config_t *)(void *)rdmeta_avl_iter_next(&it);
        return c && c->broker == RDMETA_FOLD_OF_TOPIC &&
                               c->resource == resource
                       ? c
                       : NULL;
}

rdmeta_fold_config_t *rdmeta_fold_config_add(rdmeta_fold_t *f, int32_t broker,
                                             uint32_t resource, uint32_t key) {
        rdmeta_fold_config_t *c = rdmeta_fold_alloc(f, sizeof(*c));

        if (!c)
                return NULL;
        memset(c, 0, sizeof(*c));
        c->broker   = broker;
        c->resource = resource;
        c->key      = key;
        rdmeta_avl_insert(&f->configs, &c->node);
        return c;
}

void rdmeta_fold_config_drop(rdmeta_fold_t *f, rdmeta_fold_config_t *c) {
        rdmeta_avl_remove(&f->configs, &c->node);
        rdmeta_fold_free(f, c, sizeof(*c));
}

/* ---- life ---------------------------------------------------------------- */

void rdmeta_fold_brokers_init(rdmeta_fold_t *f) {
        rdmeta_avl_init(&f->brokers, broker_node, broker_key, f);
        rdmeta_avl_init(&f->configs, config_node, config_key, f);
}

/* Frees the nodes of one tree, each of `size` bytes and of that memory only. */
static void tree_free(rdmeta_fold_t *f, rdmeta_avl_t *tree, size_t size) {
        rdmeta_avl_node_t *node;

        while ((node = rdmeta_avl_first(tree)) != NULL) {
                rdmeta_avl_remove(tree, node);
                rdmeta_fold_free(f, node, size);
        }
}

void rdmeta_fold_brokers_destroy(rdmeta_fold_t *f) {
        tree_free(f, &f->brokers, sizeof(rdmeta_fold_broker_t));
        tree_free(f, &f->configs, sizeof(rdmeta_fold_config_t));
}
