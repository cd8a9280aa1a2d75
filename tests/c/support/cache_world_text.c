/* The longer half of cache_world: brokers, changes, walks, dumps as text. */
#include "support/cache_world.h"

#include <stdarg.h>

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

/* Into the world's own memory, so that a test need not free it. */
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

/* ---- changes ----------------------------------------------------------- */

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
        if (c->detail.data)
                grow_add(g, " %.*s", (int)c->detail.len, c->detail.data);
        return 0;
}

const char *cw_changes(cw_t *w, uint64_t since) {
        growing_t g = {0};
        uint64_t until;
        int32_t resync;

        CHECK(rdmeta_cache_changes(w->cache, since, visit_change, &g, &until,
                                   &resync) == RDMETA_OK);
        CHECK(until == cw_version(w));
        if (resync) {
                CHECK(g.len == 0);
                grow_add(&g, "resync");
        }
        cw_check(w);
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

/* ---- dumps ------------------------------------------------------------- */

static void grow_list(growing_t *g, const char *before, rdmeta_list_t l) {
        uint32_t i;

        grow_add(g, "%s", before);
        for (i = 0; i < l.count; i++)
                grow_add(g, "%s%d", i ? "," : "", rdmeta_list_get(l, i));
}

static void grow_bytes(growing_t *g, const uint8_t *p, size_t n) {
        size_t i;

        for (i = 0; i < n; i++)
                grow_add(g, "%02x", p[i]);
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
                 e->list ? e->expiry.due_us : 0);
        /* Not its place: failed answers may close holes, which says nothing. */
        if (!facts)
                grow_add(g, " len %u", c->order.slots[e->order].len);
        if (e->rewind)
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
        grow_add(&g, "version %" PRIu64 " ring %" PRIu64 " floor %" PRIu64
                     " shared %" PRId64 "\n",
                 cw_version(w), c->ring.item_tail, c->ring.floor,
                 atomic_load(&c->root.shared_deadline));
        grow_brokers(&g, rdmeta_table_brokers(c));
        grow_add(&g, " controller %d\n",
                 rdmeta_brokers_controller(rdmeta_table_brokers(c)));
        for (k = 0; k <= names->mask; k++) {
                rdmeta_topic_t *t =
                        rdmeta_slot_topic(atomic_load(&names->slots[k]));
                if (t && t->state != UINT8_MAX) /* a grave */
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

/* Of one block: in no state but one. */
static void recount(const rdmeta_cache_t *c, const rdmeta_topic_t *t,
                    rdmeta_stats_t *out) {
        if (t->state == RDMETA_TOPIC_WAIT)
                return;
        if (t->state == RDMETA_TOPIC_VALID) {
                out->topics++;
                out->partitions += rdmeta_topic_count(t);
        } else if (rdmeta_entry_of(c, t)->list == RDMETA_EXPIRY_RETAINED) {
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
