#include "support/cache_fixture.h"

#include <ctype.h>
#include <stdarg.h>

static char *text_new(cw_t *w) {
        char *text = w->texts[w->next_text++ % CW_TEXTS];

        text[0] = 0;
        return text;
}

__attribute__((format(printf, 2, 3))) static void
text_add(char *text, const char *format, ...) {
        const size_t len = strlen(text);
        va_list args;
        int n;

        va_start(args, format);
        n = vsnprintf(text + len, CW_TEXT - len, format, args);
        va_end(args);
        CHECK(n >= 0 && (size_t)n < CW_TEXT - len);
}

/* ---- life -------------------------------------------------------------- */

void cw_no_changelog(rdmeta_conf_t *conf) {
        conf->ring_bytes = 0;
}

void cw_init(cw_t *w, void (*change)(rdmeta_conf_t *conf)) {
        memset(w, 0, sizeof(*w));
        rdmeta_conf_init(&w->conf);
        w->conf.allocator = test_allocator(&w->heap);
        if (change)
                change(&w->conf);
        w->cache = rdmeta_cache_new(&w->conf);
        CHECK(w->cache);
        w->reader = rdmeta_reader_new(w->cache, 0);
        w->stale  = rdmeta_reader_new(w->cache, RDMETA_ALLOW_STALE);
        CHECK(w->reader && w->stale);
        w->now.mono_us = 1000 * CW_S;
        w->now.wall_us = 5000 * CW_S;
        w->api_version = 12;
        w->broker      = 1;
        w->brokers     = "1,2,3";
        w->cluster_id  = "c";
        w->controller  = 1;
        cw_check(w);
}

void cw_destroy(cw_t *w) {
        cw_check(w);
        rdmeta_reader_destroy(w->reader);
        rdmeta_reader_destroy(w->stale);
        rdmeta_cache_unref(w->cache);
        CHECK(w->heap.blocks == 0 && w->heap.bytes == 0);
}

typedef struct versions {
        uint64_t last;
        uint64_t n; /* the number of versions that have a record */
} versions_t;

static int32_t count_version(void *opaque, const rdmeta_change_t *c) {
        versions_t *v = opaque;

        CHECK(c->version >= v->last);
        v->n += c->version > v->last;
        v->last = c->version;
        return 0;
}

/* Checks that every version has a record, unless readers must resync. */
static void check_records(cw_t *w) {
        versions_t v = {w->checked, 0};
        uint64_t until;
        int32_t resync;

        if (w->checked == cw_version(w) ||
            rdmeta_cache_changes(w->cache, w->checked, count_version, &v,
                                 &until, &resync) == RDMETA_ERR_NO_MEMORY)
                return;
        CHECK(resync || v.n == until - w->checked);
        w->checked = until;
}

void cw_check(cw_t *w) {
        const char *wrong = rdmeta_cache_check(w->cache);

        if (wrong)
                fprintf(stderr, "cache: %s\n", wrong);
        CHECK(!wrong);
        cw_check_stats(w);
        check_records(w);
}

void cw_pass(cw_t *w, int64_t us) {
        w->now.mono_us += us;
        w->now.wall_us += us;
}

/* ---- answers from text ------------------------------------------------- */

enum { MAX_TOPICS = 64, MAX_ROWS = 256, MAX_IDS = 2048, MAX_BROKERS = 32,
       MAX_DUE = 256 };

typedef struct scene {
        gen_cluster_t cluster;
        gen_topic_t topics[MAX_TOPICS];
        gen_partition_t rows[MAX_ROWS];
        int32_t ids[MAX_IDS];
        rdmeta_broker_t brokers[MAX_BROKERS];
        char hosts[MAX_BROKERS][64];
        uint32_t n_rows, n_ids;
} scene_t;

static int32_t read_int(const char **p) {
        char *end;
        const long v = strtol(*p, &end, 10);

        CHECK(end != *p);
        *p = end;
        return (int32_t)v;
}

static gen_ids_t read_ids(scene_t *s, const char **p) {
        gen_ids_t l = {s->ids + s->n_ids, 0};

        while (isdigit((unsigned char)**p) || **p == '-') {
                CHECK(s->n_ids < MAX_IDS);
                s->ids[s->n_ids++] = read_int(p);
                l.count++;
                *p += **p == ',';
        }
        return l;
}

static void read_row(scene_t *s, const char **p) {
        gen_partition_t *row = &s->rows[s->n_rows++];
        int has_isr = 0, has_replicas = 0;

        CHECK(s->n_rows <= MAX_ROWS);
        memset(row, 0, sizeof(*row));
        row->id = read_int(p);
        CHECK(*(*p)++ == ':');
        row->leader = read_int(p);
        row->epoch  = -1;
        if (**p == '@') {
                ++*p;
                row->epoch = read_int(p);
        }
        while (**p == '/') {
                const char what = *++*p;
                ++*p;
                if (what == 'e')
                        row->error = read_int(p);
                else if (what == 'r' && (has_replicas = 1))
                        row->replicas = read_ids(s, p);
                else if (what == 'i' && (has_isr = 1))
                        row->isr = read_ids(s, p);
                else if (what == 'o')
                        row->offline = read_ids(s, p);
                else
                        CHECK(!"an option of a partition");
        }
        if (!has_replicas && row->leader >= 0) {
                row->replicas.ids   = s->ids + s->n_ids;
                row->replicas.count = 1;
                s->ids[s->n_ids++]  = row->leader;
        }
        if (!has_isr)
                row->isr = row->replicas;
}

static void read_topic(scene_t *s, const char **p) {
        gen_topic_t *t = &s->topics[s->cluster.topic_count++];

        CHECK(s->cluster.topic_count <= MAX_TOPICS);
        memset(t, 0, sizeof(*t));
        t->name.data = *p;
        t->name.len  = strcspn(*p, "#!^~ ;");
        *p += t->name.len;
        if (t->name.len == 1 && t->name.data[0] == '?')
                t->name = (rdmeta_str_t){NULL, 0};
        for (; **p && **p != ' ' && **p != ';';) {
                const char what = *(*p)++;
                if (what == '#')
                        memset(t->id, *(*p)++, sizeof(t->id));
                else if (what == '!')
                        t->error = read_int(p);
                else if (what == '~')
                        t->internal = 1;
                else if (what == '^' && (t->has_operations = 1))
                        t->operations = read_int(p);
                else
                        CHECK(!"an option of a topic");
        }
        t->partitions = s->rows + s->n_rows;
        while (**p == ' ' &&
               (isdigit((unsigned char)(*p)[1]) || (*p)[1] == '-')) {
                ++*p;
                read_row(s, p);
                t->partition_count++;
        }
}

static void read_brokers(scene_t *s, const char *p) {
        while (p && *p) {
                const uint32_t i   = s->cluster.broker_count++;
                rdmeta_broker_t *b = &s->brokers[i];
                size_t n;

                CHECK(i < MAX_BROKERS);
                b->id   = read_int(&p);
                b->port = 9000 + b->id;
                snprintf(s->hosts[i], sizeof(s->hosts[i]), "h%d", b->id);
                if (*p == '=') {
                        n = strcspn(++p, ":");
                        snprintf(s->hosts[i], sizeof(s->hosts[i]), "%.*s",
                                 (int)n, p);
                        p += n + 1;
                        b->port = read_int(&p);
                }
                b->host = test_str(s->hosts[i]);
                if (*p == '=') {
                        b->rack.data = ++p;
                        b->rack.len  = strcspn(p, ",");
                        p += b->rack.len;
                }
                p += *p == ',';
        }
}

void cw_body(const cw_t *w, const char *topics, gen_bytes_t *out) {
        scene_t *s = calloc(1, sizeof(*s));

        CHECK(s);
        s->cluster.brokers    = s->brokers;
        s->cluster.topics     = s->topics;
        s->cluster.cluster_id = test_str(w->cluster_id);
        s->cluster.controller = w->controller;
        s->cluster.error      = w->error;
        read_brokers(s, w->brokers);
        while (*topics) {
                read_topic(s, &topics);
                CHECK(!*topics || *topics == ';');
                topics += strspn(topics, "; ");
        }
        gen_response(&s->cluster, w->api_version, out);
        free(s);
}

/* ---- writes ------------------------------------------------------------ */

rdmeta_request_t cw_request(const cw_t *w, int32_t asked) {
        const int32_t sent = w->sent_known ? RDMETA_REQ_SENT_VERSION : 0;
        rdmeta_request_t r = {.asked        = asked,
                              .flags        = w->flags | sent,
                              .sent_version = w->sent_version,
                              .broker       = w->broker,
                              .candidates   = w->candidates,
                              .reason       = test_str(w->reason)};
        return r;
}

void cw_sent(cw_t *w) {
        w->sent_version = cw_version(w);
        w->sent_known   = 1;
}

rdmeta_err_t cw_apply(cw_t *w, const void *body, size_t len,
                      const rdmeta_request_t *asked) {
        uint8_t *copy    = gen_bytes_exact(body, len);
        rdmeta_err_t err = rdmeta_cache_apply(w->cache, copy, len,
                                              (int16_t)w->api_version, asked,
                                              w->now, &w->applied);

        free(copy);
        cw_check(w);
        CHECK(w->applied.version == cw_version(w));
        return err;
}

rdmeta_err_t cw_answer(cw_t *w, const rdmeta_request_t *asked,
                       const char *topics) {
        gen_bytes_t body = {0};
        rdmeta_err_t err;

        cw_body(w, topics, &body);
        err = cw_apply(w, body.data, body.len, asked);
        gen_bytes_free(&body);
        return err;
}

rdmeta_err_t cw_say(cw_t *w, const char *topics) {
        const rdmeta_request_t r = cw_request(w, RDMETA_ASKED_UNKNOWN);
        return cw_answer(w, &r, topics);
}

int64_t cw_kept_back(cw_t *w, const char *topics) {
        CHECK(!cw_say(w, topics));
        return w->applied.kept_back;
}

void cw_insist(cw_t *w, const char *topics) {
        int i;

        for (i = 0; i < RDMETA_REWIND_ANSWERS; i++) {
                w->broker = 1 + i % 2;
                CHECK(cw_say(w, topics) == 0);
                cw_pass(w, 5 * CW_S / 4);
        }
}

rdmeta_err_t cw_all(cw_t *w, const char *topics) {
        const rdmeta_request_t r = cw_request(w, RDMETA_ASKED_ALL);
        return cw_answer(w, &r, topics);
}

static size_t read_names(const char *p, rdmeta_str_t *out, size_t max) {
        size_t n = 0;

        for (p += strspn(p, " "); *p; p += strspn(p, " ")) {
                CHECK(n < max);
                out[n].data = p;
                out[n].len  = strcspn(p, " ");
                p += out[n++].len;
        }
        return n;
}

rdmeta_err_t cw_asked(cw_t *w, const char *names, const char *topics) {
        rdmeta_request_t r = cw_request(w, RDMETA_ASKED_NAMES);
        rdmeta_str_t list[MAX_TOPICS];

        r.names = list;
        r.n     = read_names(names, list, MAX_TOPICS);
        return cw_answer(w, &r, topics);
}

const char *cw_hint(cw_t *w, const char *names, int32_t flags) {
        rdmeta_str_t list[MAX_TOPICS], ask[MAX_TOPICS];
        const size_t n = read_names(names, list, MAX_TOPICS);
        char *text     = text_new(w);
        size_t i, n_ask;

        CHECK(rdmeta_cache_hint(w->cache, list, n, flags, 0, w->now, ask,
                                &n_ask) == RDMETA_OK);
        cw_check(w);
        for (i = 0; i < n_ask; i++)
                text_add(text, "%s%.*s", i ? " " : "", (int)ask[i].len,
                         ask[i].data);
        return text;
}

int64_t cw_forget(cw_t *w, const char *names) {
        rdmeta_str_t list[MAX_TOPICS];
        const size_t n        = read_names(names, list, MAX_TOPICS);
        const int64_t forgot = rdmeta_cache_forget(w->cache, list, n, w->now);

        cw_check(w);
        return forgot;
}

int64_t cw_sweep(cw_t *w) {
        const int64_t next = rdmeta_cache_sweep(w->cache, w->now);

        cw_check(w);
        return next;
}

int64_t cw_sweep_after(cw_t *w, int64_t us) {
        cw_pass(w, us);
        return cw_sweep(w);
}

int cw_leader_hint(cw_t *w, const char *topic, int32_t partition,
                   int32_t leader, int32_t epoch, const char *host) {
        const rdmeta_leader_hint_t hint = {.topic        = test_str(topic),
                                           .partition    = partition,
                                           .leader       = leader,
                                           .leader_epoch = epoch,
                                           .host         = test_str(host),
                                           .port         = 9000 + leader};

        CHECK(rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now,
                                             &w->applied) == RDMETA_OK);
        cw_check(w);
        return w->applied.changed == 1;
}

/* ---- reads ------------------------------------------------------------- */

int32_t cw_leader(cw_t *w, const char *topic, int32_t partition) {
        int32_t leaders[1];
        const rdmeta_str_t name = test_str(topic);

        rdmeta_leaders(w->reader, &name, &partition, 1, w->now.mono_us,
                       leaders);
        CHECK(leaders[0] == rdmeta_leader(w->reader, name.data, name.len,
                                          partition, w->now.mono_us));
        return leaders[0];
}

int32_t cw_leader_stale(cw_t *w, const char *topic, int32_t partition) {
        return rdmeta_leader(w->stale, topic, strlen(topic), partition,
                             w->now.mono_us);
}

int32_t cw_state(cw_t *w, const char *topic) {
        const rdmeta_topic_t *t;
        int32_t state;

        rdmeta_reader_enter(w->reader);
        state = rdmeta_topic_find(w->reader, topic, strlen(topic),
                                  w->now.mono_us, &t);
        rdmeta_reader_leave(w->reader);
        return state;
}

int32_t cw_state_id(cw_t *w, char x) {
        const rdmeta_topic_t *t;
        uint8_t id[16];
        int32_t state;

        memset(id, x, sizeof(id));
        rdmeta_reader_enter(w->reader);
        state = rdmeta_topic_find_id(w->reader, id, w->now.mono_us, &t);
        rdmeta_reader_leave(w->reader);
        return state;
}

rdmeta_topic_info_t cw_info(cw_t *w, const char *topic) {
        rdmeta_topic_info_t info;
        const rdmeta_topic_t *t;

        rdmeta_reader_enter(w->reader);
        rdmeta_topic_find(w->reader, topic, strlen(topic), w->now.mono_us, &t);
        CHECK(t);
        rdmeta_topic_info(w->reader, t, w->now.mono_us, &info);
        rdmeta_reader_leave(w->reader);
        return info;
}

uint64_t cw_version(const cw_t *w) {
        return rdmeta_cache_version(w->cache);
}

rdmeta_stats_t cw_stats(cw_t *w) {
        rdmeta_stats_t stats;

        rdmeta_cache_stats(w->cache, &stats);
        return stats;
}

/* ---- blocks as text ---------------------------------------------------- */

static void text_ids(char *text, const char *what, const int32_t *ids,
                     uint32_t n) {
        uint32_t i;

        text_add(text, "%s", what);
        for (i = 0; i < n; i++)
                text_add(text, "%s%d", i ? "," : "", ids[i]);
}

static int same_ids(const rdmeta_ids_out_t *a, const rdmeta_ids_out_t *b) {
        return a->count == b->count &&
               !memcmp(a->ids, b->ids, a->count * sizeof(*a->ids));
}

static void text_row(char *text, const rdmeta_partition_t *p) {
        const int plain = p->leader >= 0 ? p->replicas.count == 1 &&
                                                   p->replicas.ids[0] ==
                                                           p->leader
                                         : p->replicas.count == 0;

        text_add(text, " %d:%d", p->partition, p->leader);
        if (p->leader_epoch != -1)
                text_add(text, "@%d", p->leader_epoch);
        if (!plain)
                text_ids(text, "/r", p->replicas.ids, p->replicas.count);
        if (!same_ids(&p->isr, &p->replicas))
                text_ids(text, "/i", p->isr.ids, p->isr.count);
        if (p->offline_replicas.count)
                text_ids(text, "/o", p->offline_replicas.ids,
                         p->offline_replicas.count);
        if (p->error)
                text_add(text, "/e%d", p->error);
        if (p->leader < 0 && p->last_leader >= 0)
                text_add(text, "/l%d", p->last_leader);
}

static void text_topic(cw_t *w, char *text, const rdmeta_topic_t *t) {
        rdmeta_topic_info_t info;
        int32_t ids[3][64];
        rdmeta_partition_t p;
        uint32_t i;

        memset(&p, 0, sizeof(p));
        p.replicas.ids         = ids[0];
        p.isr.ids              = ids[1];
        p.offline_replicas.ids = ids[2];
        p.replicas.capacity = p.isr.capacity = p.offline_replicas.capacity =
                64;
        rdmeta_topic_info(w->reader, t, w->now.mono_us, &info);
        text_add(text, "%.*s", (int)info.name.len, info.name.data);
        if (info.topic_id[0])
                text_add(text, "#%c", info.topic_id[0]);
        if (info.error)
                text_add(text, "!%d", info.error);
        if (info.operations != RDMETA_NO_OPERATIONS)
                text_add(text, "^%d", info.operations);
        if (info.internal)
                text_add(text, "~");
        for (i = 0; i < info.partitions; i++) {
                CHECK(!rdmeta_topic_partition_at(w->reader, t, i, &p));
                text_row(text, &p);
        }
        CHECK(rdmeta_topic_partition_at(w->reader, t, i, &p) ==
              RDMETA_NO_PARTITION);
}

const char *cw_topic(cw_t *w, const char *topic) {
        char *text = text_new(w);
        const rdmeta_topic_t *t;

        rdmeta_reader_enter(w->reader);
        rdmeta_topic_find(w->reader, topic, strlen(topic), w->now.mono_us, &t);
        if (t)
                text_topic(w, text, t);
        else
                text_add(text, "-");
        rdmeta_reader_leave(w->reader);
        return text;
}

/* ---- longer texts: brokers ----------------------------------------------- */

typedef struct growing {
        char *data;
        size_t len, capacity;
} growing_t;

__attribute__((format(printf, 2, 3))) static void
grow_add(growing_t *g, const char *format, ...) {
        va_list args;
        int n;

        if (g->capacity - g->len < 256) {
                g->capacity = 2 * g->capacity + 1024;
                g->data     = realloc(g->data, g->capacity);
                CHECK(g->data);
        }
        va_start(args, format);
        n = vsnprintf(g->data + g->len, g->capacity - g->len, format, args);
        va_end(args);
        if (n >= 0 && (size_t)n >= g->capacity - g->len) {
                g->capacity += (size_t)n + 1;
                g->data = realloc(g->data, g->capacity);
                CHECK(g->data);
                va_start(args, format);
                n = vsnprintf(g->data + g->len, g->capacity - g->len, format,
                              args);
                va_end(args);
        }
        CHECK(n >= 0);
        g->len += (size_t)n;
}

/* Moves a text into the fixture's memory, so that a test need not free it. */
static const char *grown_text(cw_t *w, growing_t *g) {
        char *text = w->texts[w->next_text++ % CW_TEXTS];

        CHECK(g->len < CW_TEXT);
        text[0] = 0;
        if (g->data)
                memcpy(text, g->data, g->len + 1);
        free(g->data);
        return text;
}

static void grow_brokers(growing_t *g, const rdmeta_brokers_t *brokers) {
        const rdmeta_str_t id = rdmeta_brokers_cluster_id(brokers);
        rdmeta_broker_t b;
        uint32_t i;

        for (i = 0; i < rdmeta_brokers_count(brokers); i++) {
                CHECK(!rdmeta_brokers_at(brokers, i, &b));
                grow_add(g, "%d=%.*s:%d", b.id, (int)b.host.len, b.host.data,
                         b.port);
                if (b.rack.data)
                        grow_add(g, "=%.*s", (int)b.rack.len, b.rack.data);
                grow_add(g, " ");
        }
        grow_add(g, "| %.*s", id.data ? (int)id.len : 1,
                 id.data ? id.data : "-");
        CHECK(rdmeta_brokers_at(brokers, i, &b) == RDMETA_ERR_ARGUMENT);
}

const char *cw_brokers(cw_t *w) {
        growing_t g = {0};

        rdmeta_reader_enter(w->reader);
        grow_brokers(&g, rdmeta_brokers(w->reader));
        rdmeta_reader_leave(w->reader);
        return grown_text(w, &g);
}

/* ---- longer texts: changes ----------------------------------------------- */

static void grow_ids(growing_t *g, const char *before, rdmeta_ids_t l) {
        uint32_t i;

        if (!l.ids)
                return;
        grow_add(g, "%s", before);
        for (i = 0; i < l.count; i++)
                grow_add(g, "%s%d", i ? "," : "", l.ids[i]);
}

static void grow_leader(growing_t *g, const char *before, int32_t leader,
                        int32_t epoch) {
        if (leader == RDMETA_NONE)
                return;
        grow_add(g, "%s%d", before, leader);
        if (epoch != RDMETA_NONE && epoch != -1)
                grow_add(g, "@%d", epoch);
}

static int32_t visit_change(void *opaque, const rdmeta_change_t *c) {
        growing_t *g = opaque;

        grow_add(g, "%sv%" PRIu64 " %s", g->len ? "; " : "", c->version,
                 rdmeta_change_kind_name(c->kind));
        if (c->source != RDMETA_SOURCE_POLL)
                grow_add(g, "(%s)", rdmeta_source_name(c->source));
        if (c->topic.data)
                grow_add(g, " %.*s", (int)c->topic.len, c->topic.data);
        if (c->topic_id)
                grow_add(g, "#%c", c->topic_id[0]);
        if (c->partition != RDMETA_NONE)
                grow_add(g, "/%d", c->partition);
        if (c->broker != RDMETA_NONE)
                grow_add(g, " %d", c->broker);
        grow_leader(g, " ", c->old_leader, c->old_leader_epoch);
        grow_leader(g, ">", c->new_leader, c->new_leader_epoch);
        grow_ids(g, " isr ", c->old_isr);
        grow_ids(g, ">", c->new_isr);
        grow_ids(g, " replicas ", c->old_replicas);
        grow_ids(g, ">", c->new_replicas);
        grow_ids(g, " offline ", c->old_offline);
        if (c->old_offline.ids || c->new_offline.count)
                grow_ids(g, c->old_offline.ids ? ">" : " offline ",
                         c->new_offline);
        if (c->detail.data)
                grow_add(g, " %.*s", (int)c->detail.len, c->detail.data);
        return 0;
}

/* Either call that visits the changes of a cache. */
typedef rdmeta_err_t changes_of_t(rdmeta_cache_t *cache, uint64_t since,
                                  rdmeta_change_visit_t visit, void *opaque,
                                  uint64_t *until, int32_t *resync);

static const char *changes_text(cw_t *w, uint64_t since,
                                changes_of_t *changes_of) {
        growing_t g = {0};
        uint64_t until;
        int32_t resync;

        CHECK(changes_of(w->cache, since, visit_change, &g, &until,
                         &resync) == RDMETA_OK);
        CHECK(until == cw_version(w));
        if (resync) {
                CHECK(g.len == 0);
                grow_add(&g, "resync");
        }
        cw_check(w);
        return grown_text(w, &g);
}

const char *cw_changes(cw_t *w, uint64_t since) {
        return changes_text(w, since, rdmeta_cache_changes);
}

const char *cw_whole_changes(cw_t *w, uint64_t since) {
        return changes_text(w, since, rdmeta_cache_changes_whole);
}

const char *cw_image_changes(cw_t *w, rdmeta_image_t *image) {
        growing_t g = {0};

        CHECK(!rdmeta_image_changes(image, visit_change, &g));
        return grown_text(w, &g);
}

static int32_t visit_topic(void *opaque, const rdmeta_topic_t *t) {
        grow_add(opaque, "-%.*s ", t->name_len, t->name);
        return 0;
}

const char *cw_walk(cw_t *w, const char *prefix, int32_t which) {
        growing_t g = {0};

        CHECK(rdmeta_reader_walk(w->reader, prefix, strlen(prefix), which,
                                 w->now.mono_us, visit_topic,
                                 &g) == RDMETA_OK);
        cw_check(w);
        return grown_text(w, &g);
}

/* ---- what is due --------------------------------------------------------- */

typedef struct due_rows {
        struct {
                char name[64];
                uint32_t reasons;
        } rows[MAX_DUE];
        size_t n;
} due_rows_t;

static void due_add(due_rows_t *d, const char *name, size_t len,
                    uint32_t reasons) {
        CHECK(d->n < MAX_DUE && len < sizeof(d->rows[0].name));
        memcpy(d->rows[d->n].name, name, len);
        d->rows[d->n].name[len]  = '\0';
        d->rows[d->n++].reasons  = reasons;
}

static int32_t visit_due(void *opaque, const rdmeta_due_t *due) {
        CHECK(due->reasons);
        due_add(opaque, due->topic.data, due->topic.len, due->reasons);
        return 0;
}

static int due_by_name(const void *a, const void *b) {
        return strcmp(a, b); /* a row begins with its name */
}

static const char *due_text(cw_t *w, due_rows_t *d) {
        static const char letters[] = "NUKASD";
        char *text                  = text_new(w);
        size_t i;
        int k;

        qsort(d->rows, d->n, sizeof(d->rows[0]), due_by_name);
        for (i = 0; i < d->n; i++) {
                text_add(text, "%s%s=", i ? " " : "", d->rows[i].name);
                for (k = 0; k < 6; k++)
                        if (d->rows[i].reasons & 1u << k)
                                text_add(text, "%c", letters[k]);
        }
        return text;
}

const char *cw_due(cw_t *w) {
        due_rows_t d = {.n = 0};

        CHECK(!rdmeta_cache_due(w->cache, w->now.mono_us, 0, visit_due, &d));
        cw_check(w);
        return due_text(w, &d);
}

/* Returns why a topic is due, found by a look at it. What the last answers said
 * is in no block: those reasons are the cache's own. */
static uint32_t due_of_walk(const cw_t *w, const rdmeta_topic_t *t) {
        const rdmeta_cache_t *c = w->cache;
        const int in_time       = rdmeta_view_deadline(&c->root, t) >=
                            w->now.mono_us;
        uint32_t due = rdmeta_due_of(c, rdmeta_entry_of(c, t)) &
                       (RDMETA_DUE_KEPT_BACK | RDMETA_DUE_ASK_BY_NAME);
        rdmeta_broker_t broker;
        rdmeta_cols_t cols;
        rdmeta_row_t row;
        uint32_t i;

        if (t->state == RDMETA_TOPIC_MISSING && in_time)
                due |= RDMETA_DUE_ABSENT;
        if (t->state == RDMETA_TOPIC_DENIED && !in_time)
                due |= RDMETA_DUE_DENIED;
        if (t->state != RDMETA_TOPIC_VALID)
                return due;
        rdmeta_topic_cols(t, &cols);
        for (i = 0; i < cols.count; i++) {
                rdmeta_topic_row(&cols, i, &row);
                if (row.leader < 0)
                        due |= RDMETA_DUE_NO_LEADER;
                else if (rdmeta_brokers_find(rdmeta_table_brokers(c),
                                             row.leader, &broker))
                        due |= RDMETA_DUE_UNREACHABLE;
        }
        return due;
}

void cw_check_due(cw_t *w) {
        const char *found = cw_due(w); /* it looks at topics where it must */
        const rdmeta_table_t *names = rdmeta_names(w->cache);
        due_rows_t walked = {.n = 0}, limited = {.n = 0};
        uint32_t k;

        for (k = 0; k <= names->mask; k++) {
                const rdmeta_topic_t *t =
                        rdmeta_slot_topic(atomic_load(&names->slots[k]));
                const uint32_t due = t && t->state != UINT8_MAX
                                             ? due_of_walk(w, t)
                                             : 0;
                if (due)
                        due_add(&walked, t->name, t->name_len, due);
        }
        CHECK_TEXT(found, due_text(w, &walked));
        CHECK(!rdmeta_cache_due(w->cache, w->now.mono_us, 2, visit_due,
                                &limited));
        CHECK(limited.n == (walked.n < 2 ? walked.n : 2));
}

/* ---- longer texts: dumps ------------------------------------------------- */

static void grow_list(growing_t *g, const char *before, rdmeta_list_t l) {
        uint32_t i;

        grow_add(g, "%s", before);
        for (i = 0; i < l.count; i++)
                grow_add(g, "%s%d", i ? "," : "", rdmeta_list_get(l, i));
}

/* Adds bytes in hex; a printf for each would take half of a test's time. */
static void grow_bytes(growing_t *g, const uint8_t *p, size_t n) {
        static const char digits[] = "0123456789abcdef";
        char text[65];
        size_t i;

        for (i = 0; i < n; i++) {
                text[2 * i % 64]     = digits[p[i] >> 4];
                text[2 * i % 64 + 1] = digits[p[i] & 15];
                if (i + 1 == n || i % 32 == 31)
                        grow_add(g, "%.*s", (int)(2 * (i % 32 + 1)), text);
        }
}

static void grow_block(growing_t *g, const cw_t *w, const rdmeta_topic_t *t) {
        rdmeta_topic_info_t info;
        rdmeta_cols_t cols;
        rdmeta_row_t r;
        uint32_t i;

        rdmeta_topic_info(w->reader, t, w->now.mono_us, &info);
        rdmeta_topic_cols(t, &cols);
        grow_bytes(g, (const uint8_t *)info.name.data, info.name.len);
        grow_add(g, " v%" PRIu64 " state %u error %d ops %d internal %d id ",
                 info.version, t->state, info.error, info.operations,
                 info.internal);
        grow_bytes(g, info.topic_id, 16);
        grow_add(g, " past ");
        grow_bytes(g, (const uint8_t *)cols.past, 16u * cols.n_past);
        grow_add(g, " source %d for ", info.source_broker);
        grow_bytes(g, (const uint8_t *)info.reason.data, info.reason.len);
        grow_add(g, "\n");
        for (i = 0; i < cols.count; i++) {
                rdmeta_topic_row(&cols, i, &r);
                grow_add(g, "  %d leader %d last %d epoch %d high %d error %d",
                         r.id, r.leader, r.last, r.epoch, r.high, r.error);
                grow_list(g, " r ", r.replicas);
                grow_list(g, " i ", r.isr);
                grow_list(g, " o ", r.offline);
                grow_add(g, "\n");
        }
}

static void grow_entry(growing_t *g, const cw_t *w, const rdmeta_topic_t *t,
                       int facts) {
        const rdmeta_cache_t *c = w->cache;
        const rdmeta_entry_t *e = rdmeta_entry_of(c, t);

        grow_block(g, w, t);
        grow_add(g, "  deadline %" PRId64 " list %u due %" PRId64,
                 rdmeta_view_deadline(&c->root, t), e->list,
                 e->list ? e->deadlines.deadline_us : 0);
        /* A failed answer may close holes, so the place is left out. */
        if (!facts)
                grow_add(g, " len %u", c->order.slots[e->order].len);
        grow_add(g, " why %u",
                 (rdmeta_due_of(c, e) & ~(uint32_t)RDMETA_DUE_OF_BLOCK) |
                         rdmeta_merge_due(t, rdmeta_table_brokers(c)));
        if (rdmeta_rewind_of(c, e))
                grow_add(g, " rewind %u of %u",
                         rdmeta_rewind_of(c, e)->answers,
                         rdmeta_rewind_of(c, e)->count);
        grow_add(g, "\n");
}

static int by_name(const void *a, const void *b) {
        const rdmeta_topic_t *x = *(rdmeta_topic_t *const *)a;
        const rdmeta_topic_t *y = *(rdmeta_topic_t *const *)b;
        const size_t n = x->name_len < y->name_len ? x->name_len
                                                   : y->name_len;
        const int res  = memcmp(x->name, y->name, n);

        return res ? res : (int)x->name_len - (int)y->name_len;
}

static char *dump(const cw_t *w, int facts) {
        const rdmeta_cache_t *c     = w->cache;
        const rdmeta_table_t *names = rdmeta_names(c);
        rdmeta_topic_t **all = malloc((c->entries + 1) * sizeof(*all));
        growing_t g          = {0};
        size_t n = 0, i;
        uint32_t k;

        CHECK(all);
        grow_add(&g, "version %" PRIu64 " changes %" PRIu64 " floor %" PRIu64
                     " shared %" PRId64 "\n",
                 cw_version(w), c->changelog.item_tail, c->changelog.floor,
                 atomic_load(&c->root.shared_deadline));
        grow_brokers(&g, rdmeta_table_brokers(c));
        grow_add(&g, " controller %d\n",
                 rdmeta_brokers_controller(rdmeta_table_brokers(c)));
        for (k = 0; k <= names->mask; k++) {
                rdmeta_topic_t *t =
                        rdmeta_slot_topic(atomic_load(&names->slots[k]));
                if (t && t->state != UINT8_MAX) /* not a tombstone */
                        all[n++] = t;
        }
        CHECK(n == c->entries);
        qsort(all, n, sizeof(*all), by_name);
        for (i = 0; i < n; i++)
                grow_entry(&g, w, all[i], facts);
        free(all);
        return g.data;
}

char *cw_dump(const cw_t *w) {
        return dump(w, 0);
}

char *cw_facts(const cw_t *w) {
        return dump(w, 1);
}

void cw_text_fails(const char *file, int line, const char *got,
                   const char *wanted) {
        size_t i, start = 0;

        for (i = 0; got[i] && got[i] == wanted[i]; i++)
                if (got[i] == '\n')
                        start = i + 1;
        fprintf(stderr, "%s:%d:\n  got    %.*s\n  wanted %.*s\n", file, line,
                (int)strcspn(got + start, "\n"), got + start,
                (int)strcspn(wanted + start, "\n"), wanted + start);
        _Exit(1);
}

/* Counts a topic in exactly one state. */
static void recount(const rdmeta_cache_t *c, const rdmeta_topic_t *t,
                    rdmeta_stats_t *out) {
        if (t->state == RDMETA_TOPIC_WAIT)
                return;
        if (t->state == RDMETA_TOPIC_VALID) {
                out->topics++;
                out->partitions += rdmeta_topic_count(t);
        } else if (rdmeta_entry_of(c, t)->list == RDMETA_DEADLINES_RETAINED) {
                out->retained++;
        } else {
                out->negatives++;
        }
}

void cw_check_stats(cw_t *w) {
        const rdmeta_table_t *names = rdmeta_names(w->cache);
        const rdmeta_stats_t stats  = cw_stats(w);
        rdmeta_stats_t counted;
        uint32_t k;

        memset(&counted, 0, sizeof(counted));
        for (k = 0; k <= names->mask; k++) {
                const rdmeta_topic_t *t =
                        rdmeta_slot_topic(atomic_load(&names->slots[k]));
                if (t && t->state != UINT8_MAX)
                        recount(w->cache, t, &counted);
        }
        CHECK(stats.topics == counted.topics);
        CHECK(stats.partitions == counted.partitions);
        CHECK(stats.retained == counted.retained);
        CHECK(stats.negatives == counted.negatives);
        CHECK(stats.version == cw_version(w));
        CHECK(stats.ring_floor <= stats.version);
        CHECK(stats.bytes_limbo <= stats.bytes);
}
