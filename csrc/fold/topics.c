#include "fold/topics.h"

enum { FIRST_ROOM = 16 };

static uint32_t hash_of(const rdmeta_fold_t *f, rdmeta_str_t name) {
        return (uint32_t)rdmeta_hash(f->key, name.data, name.len);
}

static rdmeta_fold_topic_t *find(const rdmeta_fold_t *f, rdmeta_str_t name,
                                 uint32_t hash) {
        size_t i;

        if (!f->topics_room)
                return NULL;
        for (i = hash & f->mask; f->slots[i]; i = (i + 1) & f->mask) {
                rdmeta_fold_topic_t *t = f->slots[i];
                if (t->hash == hash && t->name.len == name.len &&
                    !memcmp(t->name.data, name.data, name.len))
                        return t;
        }
        return NULL;
}

rdmeta_fold_topic_t *rdmeta_fold_topic_find(const rdmeta_fold_t *f,
                                            rdmeta_str_t name) {
        return find(f, name, hash_of(f, name));
}

static void slot_put(rdmeta_fold_t *f, rdmeta_fold_topic_t *t) {
        size_t i = t->hash & f->mask;

        while (f->slots[i])
                i = (i + 1) & f->mask;
        f->slots[i] = t;
}

/* Takes a topic out of the slots, and moves those behind it that would no
 * longer be found. So there are no tombstones. */
static void slot_take(rdmeta_fold_t *f, const rdmeta_fold_topic_t *t) {
        size_t hole = t->hash & f->mask, i;

        while (f->slots[hole] != t)
                hole = (hole + 1) & f->mask;
        f->slots[hole] = NULL;
        for (i = (hole + 1) & f->mask; f->slots[i]; i = (i + 1) & f->mask) {
                const size_t home = f->slots[i]->hash & f->mask;
                if (((i - home) & f->mask) < ((i - hole) & f->mask))
                        continue;
                f->slots[hole] = f->slots[i];
                f->slots[i]    = NULL;
                hole           = i;
        }
}

/* Doubles the room for topics, with two slots per topic. Returns 0: no
 * memory. */
static int grow(rdmeta_fold_t *f) {
        const size_t old  = f->topics_room;
        const size_t room = old ? 2 * old : FIRST_ROOM;
        const size_t size = room * sizeof(*f->topics);
        rdmeta_fold_topic_t **topics, **sorted, **slots;
        size_t i;

        topics = rdmeta_fold_alloc(f, size);
        sorted = rdmeta_fold_alloc(f, size);
        slots  = rdmeta_fold_alloc(f, 2 * size);
        if (!topics || !sorted || !slots) {
                rdmeta_fold_free(f, topics, size);
                rdmeta_fold_free(f, sorted, size);
                rdmeta_fold_free(f, slots, 2 * size);
                return 0;
        }
        if (f->n_topics)
                memcpy(topics, f->topics, f->n_topics * sizeof(*topics));
        memset(slots, 0, 2 * size);
        rdmeta_fold_free(f, f->topics, old * sizeof(*topics));
        rdmeta_fold_free(f, f->sorted, old * sizeof(*topics));
        rdmeta_fold_free(f, f->slots, 2 * old * sizeof(*topics));
        f->topics      = topics;
        f->sorted      = sorted;
        f->slots       = slots;
        f->topics_room = room;
        f->mask        = 2 * room - 1;
        f->in_order    = 0;
        for (i = 0; i < f->n_topics; i++)
                slot_put(f, f->topics[i]);
        return 1;
}

rdmeta_fold_topic_t *rdmeta_fold_topic_get(rdmeta_fold_t *f,
                                           rdmeta_str_t name) {
        const uint32_t hash    = hash_of(f, name);
        rdmeta_fold_topic_t *t = find(f, name, hash);
        uint32_t shown;

        if (t)
                return t;
        shown = rdmeta_fold_text(f, name);
        if (!shown || (f->n_topics == f->topics_room && !grow(f)))
                return NULL;
        t = rdmeta_fold_alloc(f, sizeof(*t) + name.len);
        if (!t)
                return NULL;
        memset(t, 0, sizeof(*t));
        memcpy(t->text, name.data, name.len);
        t->name.data           = t->text;
        t->name.len            = name.len;
        t->shown               = shown;
        t->hash                = hash;
        t->min_isr             = -1;
        t->place               = f->n_topics;
        f->topics[f->n_topics] = t;
        f->n_topics++;
        f->in_order = 0;
        slot_put(f, t);
        return t;
}

static void topic_free(rdmeta_fold_t *f, rdmeta_fold_topic_t *t) {
        rdmeta_fold_free(f, t->partitions, t->room * sizeof(*t->partitions));
        rdmeta_fold_free(f, t, sizeof(*t) + t->name.len);
}

void rdmeta_fold_topic_drop(rdmeta_fold_t *f, rdmeta_fold_topic_t *t) {
        slot_take(f, t);
        f->n_topics--;
        f->topics[t->place]        = f->topics[f->n_topics];
        f->topics[t->place]->place = t->place;
        f->in_order                = 0;
        topic_free(f, t);
}

rdmeta_err_t rdmeta_fold_topic_room(rdmeta_fold_t *f, rdmeta_fold_topic_t *t,
                                    uint32_t n) {
        size_t room = t->room;
        void *p;
        uint32_t i;

        if (n <= t->n)
                return RDMETA_OK;
        p = rdmeta_fold_room(f, t->partitions, t->n, &room, n,
                             sizeof(*t->partitions));
        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        t->partitions = p;
        t->room       = (uint32_t)room;
        for (i = t->n; i < n; i++) {
                memset(&t->partitions[i], 0, sizeof(*t->partitions));
                t->partitions[i].says.leader  = -1;
                t->partitions[i].says.epoch   = -1;
                t->partitions[i].says.min_isr = -1;
                t->partitions[i].says.racks   = -1;
        }
        t->n = n;
        return RDMETA_OK;
}

static int by_name(const void *a, const void *b) {
        const rdmeta_fold_topic_t *s = *(rdmeta_fold_topic_t *const *)a;
        const rdmeta_fold_topic_t *t = *(rdmeta_fold_topic_t *const *)b;
        const size_t n =
                s->name.len < t->name.len ? s->name.len : t->name.len;
        const int order = memcmp(s->name.data, t->name.data, n);

        if (order)
                return order;
        return (s->name.len > t->name.len) - (s->name.len < t->name.len);
}

/* The C library's qsort() may allocate, but it then sorts in place without
 * memory: it cannot fail. */
void rdmeta_fold_topics_sort(rdmeta_fold_t *f) {
        if (f->in_order)
                return;
        if (f->n_topics) {
                memcpy(f->sorted, f->topics,
                       f->n_topics * sizeof(*f->sorted));
                qsort(f->sorted, f->n_topics, sizeof(*f->sorted), by_name);
        }
        f->in_order = 1;
}

void rdmeta_fold_topics_destroy(rdmeta_fold_t *f) {
        size_t i;

        for (i = 0; i < f->n_topics; i++)
                topic_free(f, f->topics[i]);
        rdmeta_fold_free(f, f->topics, f->topics_room * sizeof(*f->topics));
        rdmeta_fold_free(f, f->sorted, f->topics_room * sizeof(*f->topics));
        rdmeta_fold_free(f, f->slots,
                         2 * f->topics_room * sizeof(*f->topics));
        f->topics = f->sorted = f->slots = NULL;
        f->topics_room = f->n_topics = f->mask = 0;
        f->in_order                            = 0;
}
