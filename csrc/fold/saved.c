#include "fold/saved.h"

#include "arrow/text.h"
#include "base/checksum.h"
#include "fold/brokers.h"
#include "fold/resolve.h"
#include "fold/topics.h"

enum { HEAD = 24 };

static const char magic[8] = {'R', 'D', 'M', 'F', 'O', 'L', 'D', '\n'};

/* ---- writing ------------------------------------------------------------- */

/* The bytes on their way. Those beyond `capacity` are counted, not written. */
typedef struct sink {
        rdmeta_fold_t *f;
        uint8_t *p;
        size_t size, capacity;
        uint32_t *places; /* by word: its place in the bytes, or 0 */
        uint32_t n_places;
} sink_t;

static void write_bytes(sink_t *s, const void *p, size_t n) {
        if (n && s->size + n <= s->capacity)
                memcpy(s->p + s->size, p, n);
        s->size += n;
}

static void write_number(sink_t *s, uint64_t n) {
        uint8_t bytes[10];
        size_t k = 0;

        for (; n >= 0x80; n >>= 7)
                bytes[k++] = (uint8_t)(n | 0x80);
        bytes[k++] = (uint8_t)n;
        write_bytes(s, bytes, k);
}

static void write_signed(sink_t *s, int64_t n) {
        write_number(s, (uint64_t)n << 1 ^ (uint64_t)(n >> 63));
}

static void write_text(sink_t *s, rdmeta_str_t text) {
        write_number(s, text.len);
        write_bytes(s, text.data, text.len);
}

static void write_word(sink_t *s, uint32_t word) {
        const rdmeta_fold_word_t *w;

        if (word && !s->places[word]) {
                w               = s->f->interned.words[word];
                s->places[word] = ++s->n_places;
                write_number(s, s->n_places);
                write_number(s, w->size);
                write_bytes(s, w->data, w->size);
                return;
        }
        write_number(s, word ? s->places[word] : 0);
}

static void write_began(sink_t *s, const rdmeta_fold_began_t *b) {
        write_signed(s, s->f->clock - b->at);
        write_signed(s, s->f->version - b->version);
        write_signed(s, b->unseen);
        write_signed(s, b->offset);
        write_number(s, b->by);
        write_signed(s, b->source);
        write_signed(s, b->epoch);
}

static void write_wide(sink_t *s, const rdmeta_fold_wide_t *w) {
        write_number(s, w->reason);
        if (w->reason != RDMETA_BY_NOTHING)
                write_began(s, &w->began);
}

static void write_says(sink_t *s, const rdmeta_fold_says_t *says) {
        write_word(s, says->id);
        write_word(s, says->isr);
        write_word(s, says->replicas);
        write_word(s, says->offline);
        write_signed(s, says->leader);
        write_signed(s, says->epoch);
        write_signed(s, says->min_isr);
        write_signed(s, says->racks);
        write_word(s, says->adding);
        write_word(s, says->removing);
        write_word(s, says->elr);
}

static void write_topic_says(sink_t *s, const rdmeta_fold_topic_says_t *t) {
        write_word(s, t->id);
        write_number(s, t->partitions);
        write_number(s, (unsigned)t->exists | (unsigned)t->listed << 1);
}

static void write_topic(sink_t *s, const rdmeta_fold_topic_t *t) {
        uint32_t i, next = 0;

        write_text(s, t->name);
        write_signed(s, t->min_isr);
        write_signed(s, t->polled_min_isr);
        write_topic_says(s, &t->says);
        write_number(s, t->stands);
        if (t->stands)
                write_began(s, &t->began);
        write_number(s, t->n);
        for (i = 0; i < t->n; i++) {
                const rdmeta_fold_partition_t *p = &t->partitions[i];
                write_number(s, (unsigned)p->live | (unsigned)p->stands << 1 |
                                        (p->number - next) << 2);
                next = p->number + 1;
                write_says(s, &p->says);
                if (p->stands)
                        write_began(s, &p->began);
        }
}

static void write_broker_says(sink_t *s,
                              const rdmeta_fold_broker_says_t *b) {
        write_word(s, b->host);
        write_word(s, b->rack);
        write_signed(s, b->port);
        write_signed(s, b->fenced);
        write_signed(s, b->shutting_down);
        write_number(s, b->listed);
}

static void write_brokers(sink_t *s) {
        const rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;

        write_number(s, s->f->brokers.count);
        rdmeta_avl_iter_init(&it, &s->f->brokers, NULL);
        while ((node = rdmeta_avl_iter_next(&it)) != NULL) {
                const rdmeta_fold_broker_t *b = (const void *)node;
                write_signed(s, b->id);
                write_broker_says(s, &b->says);
                write_signed(s, b->epoch);
                write_signed(s, b->next_epoch);
                write_began(s, &b->began);
        }
        write_number(s, s->f->configs.count);
        rdmeta_avl_iter_init(&it, &s->f->configs, NULL);
        while ((node = rdmeta_avl_iter_next(&it)) != NULL) {
                const rdmeta_fold_config_t *c = (const void *)node;
                write_signed(s, c->broker);
                write_word(s, c->resource);
                write_word(s, c->key);
                write_word(s, c->value);
                write_began(s, &c->began);
        }
}

/* Writes the open version. Topics have the number of their place in order. */
static void write_open(sink_t *s) {
        const rdmeta_fold_t *f = s->f;
        size_t i;

        write_number(s, f->n_touched);
        for (i = 0; i < f->n_touched; i++) {
                const rdmeta_fold_topic_t *t = f->touched[i];
                write_number(s, t->place);
                write_topic_says(s, &t->before);
                write_number(s, t->ended);
                write_number(s, t->reason);
                write_number(s, t->end_reason);
                write_began(s, &t->next);
        }
        write_number(s, f->n_moved);
        for (i = 0; i < f->n_moved; i++) {
                const rdmeta_fold_broker_t *b = f->moved[i];
                write_signed(s, b->id);
                write_broker_says(s, &b->before);
                write_number(s, b->reason);
                write_began(s, &b->next);
        }
        write_number(s, f->n_entries);
        for (i = 0; i < f->n_entries; i++) {
                const rdmeta_fold_entry_t *e = &f->entries[i];
                write_number(s, e->topic->place);
                write_number(s, e->partition);
                write_number(s, e->reason);
                write_number(s, e->ended);
                write_number(s, e->given);
                write_says(s, &e->before);
                write_began(s, &e->next);
        }
}

static void write_head(sink_t *s) {
        const rdmeta_fold_t *f = s->f;

        write_text(s, f->cluster_id);
        write_text(s, f->origin);
        write_number(s, f->buckets);
        write_number(s, f->bucket);
        write_number(s, (unsigned)f->begun | (unsigned)f->has_version << 1 |
                                (unsigned)f->partial << 2 |
                                (unsigned)f->is_baseline << 3);
        if (!f->has_version)
                return;
        write_signed(s, f->clock);
        write_signed(s, f->version);
        write_signed(s, f->mark);
        write_signed(s, f->day_end);
        write_wide(s, &f->racks);
        write_wide(s, &f->min_isrs);
        write_signed(s, f->min_isr);
        write_signed(s, f->controller.broker);
        write_signed(s, f->controller.epoch);
        if (f->controller.epoch >= 0)
                write_began(s, &f->controller.began);
}

static void write_all(sink_t *s) {
        rdmeta_fold_t *f = s->f;
        size_t i;

        s->size = HEAD;
        write_head(s);
        if (!f->has_version)
                return;
        write_brokers(s);
        write_number(s, f->n_topics);
        for (i = 0; i < f->n_topics; i++)
                write_topic(s, f->topics[i]);
        write_open(s);
}

/* Puts the list of topics itself into order: places are numbers in order. */
static void topics_order(rdmeta_fold_t *f) {
        size_t i;

        rdmeta_fold_topics_sort(f);
        for (i = 0; i < f->n_topics; i++) {
                f->topics[i]        = f->sorted[i];
                f->topics[i]->place = i;
                rdmeta_fold_partitions_sort(f, f->topics[i]);
        }
}

static void write_checksum(sink_t *s) {
        const uint64_t version = RDMETA_FOLD_STATE_VERSION;
        const uint64_t sum     = rdmeta_checksum(s->p + HEAD, s->size - HEAD);

        memcpy(s->p, magic, sizeof(magic));
        memcpy(s->p + 8, &version, 8);
        memcpy(s->p + 16, &sum, 8);
}

rdmeta_err_t rdmeta_fold_write(rdmeta_fold_t *f, void *buf, size_t capacity,
                               size_t *size) {
        const size_t bytes = (f->interned.n + 1) * sizeof(uint32_t);
        sink_t s           = {.f = f, .p = buf, .capacity = capacity};

        s.places = rdmeta_alloc(&f->allocator, bytes);
        if (!s.places)
                return RDMETA_ERR_NO_MEMORY;
        memset(s.places, 0, bytes);
        topics_order(f);
        write_all(&s);
        rdmeta_free(&f->allocator, s.places, bytes);
        *size = s.size;
        if (s.size > capacity)
                return RDMETA_ERR_TOO_SMALL;
        write_checksum(&s);
        return RDMETA_OK;
}

/* ---- reading ------------------------------------------------------------- */

/* The bytes that are left. After the first error all reads return 0. */
typedef struct source {
        rdmeta_fold_t *f;
        const uint8_t *p, *end;
        rdmeta_err_t err;
        uint32_t *words; /* in the order of the bytes */
        size_t n_words, words_room;
} source_t;

static uint64_t fail(source_t *s, rdmeta_err_t err) {
        if (!s->err)
                s->err = err;
        s->p = s->end;
        return 0;
}

static uint64_t read_number(source_t *s, uint64_t most) {
        uint64_t n = 0;
        unsigned shift;

        for (shift = 0; s->p < s->end && shift < 64; shift += 7) {
                const uint8_t byte = *s->p++;
                n |= (uint64_t)(byte & 0x7f) << shift;
                if (!(byte & 0x80))
                        return n <= most ? n
                                         : fail(s, RDMETA_ERR_MALFORMED);
        }
        return fail(s, RDMETA_ERR_MALFORMED);
}

static int64_t read_signed(source_t *s, int64_t least, int64_t most) {
        const uint64_t n = read_number(s, UINT64_MAX);
        const int64_t v  = (int64_t)(n >> 1 ^ (~(n & 1) + 1));

        if (s->err)
                return 0;
        return v >= least && v <= most
                       ? v
                       : (int64_t)fail(s, RDMETA_ERR_MALFORMED);
}

static rdmeta_str_t read_text(source_t *s, size_t most) {
        rdmeta_str_t text = {"", 0};
        const size_t len  = (size_t)read_number(s, most);

        if (len > (size_t)(s->end - s->p)) {
                fail(s, RDMETA_ERR_MALFORMED);
                return text;
        }
        if (!s->err && len) {
                text.data = (const char *)s->p;
                text.len  = len;
                s->p += len;
        }
        return text;
}

static uint32_t new_word(source_t *s) {
        const rdmeta_str_t text = read_text(s, 4 * RDMETA_FOLD_TEXT);
        void *grown;
        uint32_t word;

        if (s->err)
                return 0;
        grown = rdmeta_fold_room(s->f, s->words, s->n_words, &s->words_room,
                                 s->n_words + 1, sizeof(*s->words));
        if (grown)
                s->words = grown;
        word = grown ? rdmeta_fold_interned_put(&s->f->interned, text.data,
                                                text.len)
                     : 0;
        if (!word)
                return (uint32_t)fail(s, RDMETA_ERR_NO_MEMORY);
        s->words[s->n_words++] = word;
        return word;
}

/* Reads a word; 0: null. */
static uint32_t read_word(source_t *s) {
        const size_t place = (size_t)read_number(s, s->n_words + 1);

        if (!place || s->err)
                return 0;
        if (place <= s->n_words)
                return s->words[place - 1];
        return new_word(s);
}

/* Reads a word that is text, which must be UTF-8. */
static uint32_t read_text_word(source_t *s) {
        const uint32_t word = read_word(s);
        const rdmeta_fold_word_t *w;

        if (!word)
                return 0;
        w = s->f->interned.words[word];
        if (rdmeta_text_size((const char *)w->data, w->size) != w->size)
                return (uint32_t)fail(s, RDMETA_ERR_MALFORMED);
        return word;
}

static uint32_t read_list(source_t *s) {
        const uint32_t word = read_word(s);

        if (word && (s->f->interned.words[word]->size % 4 ||
                     s->f->interned.words[word]->size > 4 * RDMETA_FOLD_IDS))
                return (uint32_t)fail(s, RDMETA_ERR_MALFORMED);
        return word;
}

static rdmeta_fold_began_t read_began(source_t *s) {
        const int64_t clock   = s->f->clock;
        rdmeta_fold_began_t b = {0};

        b.at = clock - read_signed(s, clock - s->f->day_end, clock);
        b.version =
                s->f->version - read_signed(s, 0, s->f->version);
        b.unseen = read_signed(s, -1, INT64_MAX);
        b.offset = read_signed(s, -1, INT64_MAX);
        b.by     = (uint8_t)read_number(s, RDMETA_BY_NOTHING - 1);
        b.source = (int8_t)read_signed(s, -1, 100);
        b.epoch  = (int32_t)read_signed(s, -1, INT32_MAX);
        return b;
}

static void read_wide(source_t *s, rdmeta_fold_wide_t *w) {
        w->reason = (uint8_t)read_number(s, RDMETA_BY_NOTHING);
        if (w->reason != RDMETA_BY_NOTHING)
                w->began = read_began(s);
}

static void read_says(source_t *s, rdmeta_fold_says_t *says) {
        says->id       = read_text_word(s);
        says->isr      = read_list(s);
        says->replicas = read_list(s);
        says->offline  = read_list(s);
        says->leader   = (int32_t)read_signed(s, -1, INT32_MAX);
        says->epoch    = (int32_t)read_signed(s, -1, INT32_MAX);
        says->min_isr  = (int32_t)read_signed(s, -1, INT32_MAX);
        says->racks    = (int32_t)read_signed(s, -1, INT32_MAX);
        says->adding   = read_list(s);
        says->removing = read_list(s);
        says->elr      = read_list(s);
}

static void read_topic_says(source_t *s, rdmeta_fold_topic_says_t *t) {
        unsigned flags;

        t->id         = read_text_word(s);
        t->partitions = (uint32_t)read_number(s, RDMETA_FOLD_PARTITIONS);
        flags         = (unsigned)read_number(s, 3);
        t->exists     = flags & 1;
        t->listed     = (uint16_t)(flags >> 1);
}

/* Reads a partition; its number is `least` and those that are left out. Returns
 * the number after it. */
static uint32_t read_partition(source_t *s, rdmeta_fold_topic_t *t,
                               uint32_t least) {
        const uint64_t flags =
                read_number(s, 4 * (RDMETA_FOLD_PARTITIONS - least) - 1);
        const uint32_t number = least + (uint32_t)(flags >> 2);
        rdmeta_fold_partition_t *p;

        if (s->err)
                return least;
        p = rdmeta_fold_partition_get(s->f, t, number);
        if (!p)
                return (uint32_t)fail(s, RDMETA_ERR_NO_MEMORY);
        p->live   = flags & 1;
        p->stands = flags >> 1 & 1;
        t->live += p->live;
        read_says(s, &p->says);
        if (p->stands)
                p->began = read_began(s);
        return number + 1;
}

static void read_topic(source_t *s) {
        const rdmeta_str_t name = read_text(s, RDMETA_FOLD_NAME);
        rdmeta_fold_topic_t *t;
        uint32_t n, next = 0;

        if (s->err || rdmeta_fold_topic_find(s->f, name)) {
                fail(s, RDMETA_ERR_MALFORMED);
                return;
        }
        t = rdmeta_fold_topic_get(s->f, name);
        if (!t) {
                fail(s, RDMETA_ERR_NO_MEMORY);
                return;
        }
        t->min_isr        = (int32_t)read_signed(s, -1, INT32_MAX);
        t->polled_min_isr = (int32_t)read_signed(s, -1, INT32_MAX);
        read_topic_says(s, &t->says);
        t->before = t->says;
        t->stands = (uint8_t)read_number(s, 1);
        if (t->stands)
                t->began = read_began(s);
        n = (uint32_t)read_number(s, RDMETA_FOLD_PARTITIONS);
        for (; n && !s->err && next < RDMETA_FOLD_PARTITIONS; n--)
                next = read_partition(s, t, next);
        if (n)
                fail(s, RDMETA_ERR_MALFORMED);
}

static void read_broker_says(source_t *s, rdmeta_fold_broker_says_t *b) {
        b->host          = read_text_word(s);
        b->rack          = read_text_word(s);
        b->port          = (int32_t)read_signed(s, 0, INT32_MAX);
        b->fenced        = (int8_t)read_signed(s, -1, 1);
        b->shutting_down = (int8_t)read_signed(s, -1, 1);
        b->listed        = (uint16_t)read_number(s, 1);
        if (b->listed && !b->host)
                fail(s, RDMETA_ERR_MALFORMED);
}

static void read_broker(source_t *s) {
        const int32_t id = (int32_t)read_signed(s, 0, INT32_MAX);
        const size_t n   = s->f->brokers.count;
        rdmeta_fold_broker_t *b =
                s->err ? NULL : rdmeta_fold_broker_get(s->f, id);

        if (!b || s->f->brokers.count == n) {
                fail(s, b ? RDMETA_ERR_MALFORMED : RDMETA_ERR_NO_MEMORY);
                return;
        }
        read_broker_says(s, &b->says);
        b->before = b->says;
        s->f->gone -= b->says.listed;
        b->epoch      = read_signed(s, -1, INT64_MAX);
        b->next_epoch = read_signed(s, -1, INT64_MAX);
        b->began      = read_began(s);
}

static void read_config(source_t *s) {
        const int32_t broker    = (int32_t)read_signed(
                s, RDMETA_FOLD_OF_ALL_BROKERS, INT32_MAX);
        const uint32_t resource = read_text_word(s);
        const uint32_t key      = read_text_word(s);
        const uint32_t value    = read_text_word(s);
        rdmeta_fold_config_t *c;

        if (s->err || !key || !value ||
            !resource == (broker == RDMETA_FOLD_OF_TOPIC) ||
            rdmeta_fold_config_find(s->f, broker, resource, key)) {
                fail(s, RDMETA_ERR_MALFORMED);
                return;
        }
        c = rdmeta_fold_config_add(s->f, broker, resource, key);
        if (!c) {
                fail(s, RDMETA_ERR_NO_MEMORY);
                return;
        }
        c->value = value;
        c->began = read_began(s);
}

static rdmeta_fold_topic_t *read_place(source_t *s) {
        const size_t place = (size_t)read_number(s, s->f->n_topics);

        if (s->err || place >= s->f->n_topics) {
                fail(s, RDMETA_ERR_MALFORMED);
                return NULL;
        }
        return s->f->topics[place];
}

static void read_touched(source_t *s) {
        rdmeta_fold_t *f       = s->f;
        rdmeta_fold_topic_t *t = read_place(s);
        void *grown            = rdmeta_fold_room(
                f, f->touched, f->n_touched, &f->touched_room,
                f->n_touched + 1, sizeof(*f->touched));

        if (grown)
                f->touched = grown;
        if (!t || t->open || !grown) {
                fail(s, grown ? RDMETA_ERR_MALFORMED : RDMETA_ERR_NO_MEMORY);
                return;
        }
        f->touched[f->n_touched++] = t;
        t->open                    = 1;
        read_topic_says(s, &t->before);
        t->ended      = (uint8_t)read_number(s, 1);
        t->reason     = (uint8_t)read_number(s, RDMETA_BY_NOTHING - 1);
        t->end_reason = (uint8_t)read_number(s, RDMETA_BY_NOTHING - 1);
        t->next       = read_began(s);
}

static void read_moved(source_t *s) {
        rdmeta_fold_t *f = s->f;
        const int32_t id = (int32_t)read_signed(s, 0, INT32_MAX);
        const size_t n   = f->brokers.count;
        rdmeta_fold_broker_t *b =
                s->err ? NULL : rdmeta_fold_broker_get(f, id);
        rdmeta_err_t err;

        if (!b || f->brokers.count != n || b->open) {
                fail(s, b ? RDMETA_ERR_MALFORMED : RDMETA_ERR_NO_MEMORY);
                return;
        }
        err = rdmeta_fold_touch_broker(f, b, RDMETA_BY_NOTHING, &b->next);
        if (err)
                fail(s, err);
        read_broker_says(s, &b->before);
        b->reason = (uint8_t)read_number(s, RDMETA_BY_NOTHING - 1);
        b->next   = read_began(s);
}

static void read_entry(source_t *s) {
        rdmeta_fold_t *f       = s->f;
        rdmeta_fold_topic_t *t = read_place(s);
        rdmeta_fold_entry_t *e;
        const uint32_t partition =
                (uint32_t)read_number(s, RDMETA_FOLD_PARTITIONS);
        rdmeta_fold_partition_t *p =
                t ? rdmeta_fold_partition_find(f, t, partition) : NULL;
        void *grown = rdmeta_fold_room(f, f->entries, f->n_entries,
                                       &f->entries_room, f->n_entries + 1,
                                       sizeof(*f->entries));

        if (grown)
                f->entries = grown;
        /* A broker with another rack has touched partitions, not topics. */
        if (!grown || !p || p->entry) {
                fail(s, grown ? RDMETA_ERR_MALFORMED : RDMETA_ERR_NO_MEMORY);
                return;
        }
        e = &f->entries[f->n_entries];
        memset(e, 0, sizeof(*e));
        e->topic     = t;
        e->partition = partition;
        e->reason    = (uint8_t)read_number(s, RDMETA_BY_NOTHING - 1);
        e->ended     = (uint8_t)read_number(s, 1);
        e->given     = (uint8_t)read_number(s, RDMETA_GAVE_ALL);
        read_says(s, &e->before);
        e->next = read_began(s);
        f->n_entries++;
        p->entry = (uint32_t)f->n_entries;
}

static void read_times(source_t *s) {
        rdmeta_fold_t *f = s->f;

        f->clock   = read_signed(s, 0, RDMETA_FOLD_LAST);
        f->version = read_signed(s, 0, INT64_MAX);
        f->mark    = read_signed(s, 0, f->version);
        f->day_end = read_signed(s, f->clock + 1,
                                 RDMETA_FOLD_LAST + RDMETA_FOLD_DAY);
        if (f->day_end % RDMETA_FOLD_DAY)
                fail(s, RDMETA_ERR_MALFORMED);
        read_wide(s, &f->racks);
        read_wide(s, &f->min_isrs);
        f->min_isr           = (int32_t)read_signed(s, -1, INT32_MAX);
        f->controller.broker = (int32_t)read_signed(s, -1, INT32_MAX);
        f->controller.epoch  = (int32_t)read_signed(s, -1, INT32_MAX);
        if (f->controller.epoch >= 0)
                f->controller.began = read_began(s);
}

static int is_same(rdmeta_str_t a, rdmeta_str_t b) {
        return a.len == b.len && !memcmp(a.data, b.data, a.len);
}

/* Reads the head. Sets s->err to ARGUMENT if the state is another fold's. */
static void read_head(source_t *s) {
        rdmeta_fold_t *f           = s->f;
        const rdmeta_str_t cluster = read_text(s, RDMETA_FOLD_LABEL);
        const rdmeta_str_t origin  = read_text(s, RDMETA_FOLD_LABEL);
        const uint64_t buckets     = read_number(s, UINT32_MAX);
        const uint64_t bucket      = read_number(s, UINT32_MAX);
        unsigned flags;

        if (!s->err && (!is_same(cluster, f->cluster_id) ||
                        !is_same(origin, f->origin) ||
                        buckets != f->buckets || bucket != f->bucket))
                fail(s, rdmeta_fold_wrong(
                                f, RDMETA_ERR_ARGUMENT,
                                "the state is of another cluster, origin or"
                                " bucket"));
        flags          = (unsigned)read_number(s, 15);
        f->begun       = flags & 1;
        f->has_version = flags >> 1 & 1;
        f->partial     = flags >> 2 & 1;
        f->is_baseline = flags >> 3 & 1;
        if (f->begun && !f->has_version)
                fail(s, RDMETA_ERR_MALFORMED);
        if (f->has_version)
                read_times(s);
}

static void read_all(source_t *s) {
        size_t n;

        read_head(s);
        if (!s->f->has_version)
                return;
        for (n = (size_t)read_number(s, INT32_MAX); n && !s->err; n--)
                read_broker(s);
        for (n = (size_t)read_number(s, INT32_MAX); n && !s->err; n--)
                read_config(s);
        for (n = (size_t)read_number(s, INT32_MAX); n && !s->err; n--)
                read_topic(s);
        for (n = (size_t)read_number(s, INT32_MAX); n && !s->err; n--)
                read_touched(s);
        for (n = (size_t)read_number(s, INT32_MAX); n && !s->err; n--)
                read_moved(s);
        for (n = (size_t)read_number(s, INT32_MAX); n && !s->err; n--)
                read_entry(s);
}

rdmeta_err_t rdmeta_fold_read(rdmeta_fold_t *f, const void *state,
                              size_t size) {
        const uint8_t *p = (const uint8_t *)state;
        source_t s       = {.f = f, .p = p + HEAD, .end = p + size};
        uint64_t version, sum;

        if (size < HEAD || memcmp(p, magic, sizeof(magic)))
                return RDMETA_ERR_MALFORMED;
        memcpy(&version, p + 8, 8);
        memcpy(&sum, p + 16, 8);
        if (version != RDMETA_FOLD_STATE_VERSION)
                return RDMETA_ERR_UNSUPPORTED;
        if (sum != rdmeta_checksum(p + HEAD, size - HEAD))
                return RDMETA_ERR_MALFORMED;
        read_all(&s);
        if (!s.err && s.p != s.end)
                s.err = RDMETA_ERR_MALFORMED;
        rdmeta_fold_free(f, s.words, s.words_room * sizeof(*s.words));
        return s.err;
}
