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
        t->polled_min_isr      = -1;
        t->place               = f->n_topics;
        f->topics[f->n_topics] = t;
        f->n_topics++;
        f->in_order = 0;
        slot_put(f, t);
        return t;
}

/* ---- partitions ---------------------------------------------------------- */

static uint32_t slot_of(const rdmeta_fold_t *f, const rdmeta_fold_topic_t *t,
                        uint32_t number) {
        return (uint32_t)rdmeta_hash(f->key, (const char *)&number,
                                     sizeof(number)) &
               t->mask;
}

rdmeta_fold_partition_t *rdmeta_fold_partition_by_slot(
        const rdmeta_fold_t *f, const rdmeta_fold_topic_t *t,
        uint32_t number) {
        uint32_t i = slot_of(f, t, number);

        for (; t->slots[i]; i = (i + 1) & t->mask)
                if (t->partitions[t->slots[i] - 1].number == number)
                        return &t->partitions[t->slots[i] - 1];
        return NULL;
}

static void partition_put(const rdmeta_fold_t *f, rdmeta_fold_topic_t *t,
                          uint32_t place) {
        uint32_t i = slot_of(f, t, t->partitions[place].number);

        while (t->slots[i])
                i = (i + 1) & t->mask;
        t->slots[i] = place + 1;
}

static size_t partition_slots_size(const rdmeta_fold_topic_t *t) {
        return t->slots ? ((size_t)t->mask + 1) * sizeof(*t->slots) : 0;
}

static void partition_slots_fill(const rdmeta_fold_t *f,
                                 rdmeta_fold_topic_t *t) {
        uint32_t i;

        memset(t->slots, 0, partition_slots_size(t));
        for (i = 0; i < t->n; i++)
                partition_put(f, t, i);
}

/* Makes at least two slots for each of `n` partitions. Returns 0: no
 * memory. */
static int partition_slots_grow(rdmeta_fold_t *f, rdmeta_fold_topic_t *t,
                                uint32_t n) {
        uint32_t slots = t->slots ? t->mask + 1 : 4;
        void *p;

        if (t->slots && slots >= 2 * n)
                return 1;
        while (slots < 2 * n)
                slots *= 2;
        p = rdmeta_fold_alloc(f, slots * sizeof(*t->slots));
        if (!p)
                return 0;
        rdmeta_fold_free(f, t->slots, partition_slots_size(t));
        t->slots = p;
        t->mask  = slots - 1;
        partition_slots_fill(f, t);
        return 1;
}

rdmeta_fold_partition_t *rdmeta_fold_partition_get(rdmeta_fold_t *f,
                                                   rdmeta_fold_topic_t *t,
                                                   uint32_t number) {
        rdmeta_fold_partition_t *p = rdmeta_fold_partition_find(f, t, number);
        size_t room                = t->room;

        if (p)
                return p;
        if ((t->slots || number != t->n) &&
            !partition_slots_grow(f, t, t->n + 1))
                return NULL;
        p = rdmeta_fold_room(f, t->partitions, t->n, &room, t->n + (size_t)1,
                             sizeof(*t->partitions));
        if (!p)
                return NULL;
        t->partitions = p;
        t->room       = (uint32_t)room;
        p             = &t->partitions[t->n];
        memset(p, 0, sizeof(*p));
        p->number      = number;
        p->says.leader = p->says.epoch = -1;
        p->says.min_isr = p->says.racks = -1;
        t->unsorted |= t->n > 0 && t->partitions[t->n - 1].number > number;
        if (t->slots)
                partition_put(f, t, t->n);
        t->n++;
        return p;
}

static int by_number(const void *a, const void *b) {
        const uint32_t x = ((const rdmeta_fold_partition_t *)a)->number;
        const uint32_t y = ((const rdmeta_fold_partition_t *)b)->number;

        return (x > y) - (x < y);
}

void rdmeta_fold_partitions_sort(const rdmeta_fold_t *f,
                                 rdmeta_fold_topic_t *t) {
        if (!t->unsorted)
                return;
        qsort(t->partitions, t->n, sizeof(*t->partitions), by_number);
        t->unsorted = 0;
        partition_slots_fill(f, t);
}

/* ---- all topics ---------------------------------------------------------- */

static void topic_free(rdmeta_fold_t *f, rdmeta_fold_topic_t *t) {
        rdmeta_fold_free(f, t->slots, partition_slots_size(t));
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
