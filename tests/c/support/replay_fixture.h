/*
 * replay_fixture: a replay, the log that it reads, and both as text.
 *
 *     REPLAY_TEST(test_a_topic_is_added) {      of a new rw_t *w
 *             rw_topic(w, "orders", 'a');
 *             rw_partition(w, 'a', 0, "1,2,3", 1);
 *             rw_commit(w);                     one batch, replayed
 *             CHECK_SAME(rw_row(w, 'a', 0), "1@0 e0 r1,2,3 i1,2,3");
 *             CHECK_SAME(w->changes, "v2 topic_added orders; ...");
 *     }
 */
#pragma once

#include "kraft/progress.h"
#include "support/kraft_fixture.h"

#define CHECK_SAME(got, wanted)                                              \
        do {                                                                 \
                const char *got_ = (got);                                    \
                if (strcmp(got_, wanted) != 0)                               \
                        fprintf(stderr, "%s\n%s\n", got_, wanted);           \
                CHECK(!strcmp(got_, wanted));                                \
        } while (0)

#define REPLAY_TEST(name) TEST_BETWEEN(name, rw_t, rw_init(&w), rw_free(&w))

enum { RW_TEXT = 1 << 16 };

typedef struct rw {
        kw_t log;
        test_heap_t heap;
        rdmeta_kraft_replay_t *replay;
        size_t fed;            /* bytes of the log that were replayed */
        char changes[RW_TEXT]; /* of the last commit */
        char text[RW_TEXT];
} rw_t;

static TEST_UNUSED void rw_put(char *text, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
static TEST_UNUSED void rw_put(char *text, const char *format, ...) {
        const size_t n = strlen(text);
        va_list args;

        va_start(args, format);
        CHECK(vsnprintf(text + n, RW_TEXT - n, format, args) <
              (int)(RW_TEXT - n));
        va_end(args);
}

static TEST_UNUSED void rw_number(char *text, const char *what, int32_t v) {
        if (v != RDMETA_NONE)
                rw_put(text, " %s%d", what, v);
}

static TEST_UNUSED void rw_ids(char *text, const char *what,
                               rdmeta_ids_t ids) {
        uint32_t i;

        if (!ids.ids)
                return;
        rw_put(text, " %s", what);
        for (i = 0; i < ids.count; i++)
                rw_put(text, "%s%d", i ? "," : "", ids.ids[i]);
}

/* Appends a change as text: only what it has. */
static TEST_UNUSED int32_t rw_visit(void *opaque, const rdmeta_change_t *c) {
        rw_t *w    = opaque;
        char *text = w->changes;

        CHECK(c->source == RDMETA_SOURCE_LOG && !c->old_offline.ids &&
              !c->new_offline.ids);
        rw_put(text, "%sv%d o%d %s", *text ? "; " : "", (int)c->version,
               (int)c->offset, rdmeta_change_kind_name(c->kind));
        if (c->topic.data)
                rw_put(text, " %.*s", (int)c->topic.len, c->topic.data);
        rw_number(text, "/", c->partition);
        rw_number(text, "b", c->broker);
        rw_number(text, "<", c->old_leader);
        rw_number(text, ">", c->new_leader);
        rw_number(text, "<@", c->old_leader_epoch);
        rw_number(text, "@", c->new_leader_epoch);
        rw_ids(text, "<i", c->old_isr);
        rw_ids(text, "i", c->new_isr);
        rw_ids(text, "r", c->new_replicas);
        if (c->new_adding.count)
                rw_ids(text, "+", c->new_adding);
        if (c->new_removing.count)
                rw_ids(text, "-", c->new_removing);
        if (c->kind == RDMETA_ELR_CHANGED)
                rw_ids(text, "elr", c->new_elr);
        rw_number(text, "e", c->partition_epoch);
        if (c->broker_epoch >= 0)
                rw_put(text, " e%d", (int)c->broker_epoch);
        if (c->unseen_us >= 0)
                rw_put(text, " unseen %d", (int)c->unseen_us);
        if (c->detail.data)
                rw_put(text, " %.*s", (int)c->detail.len, c->detail.data);
        return 0;
}

/* Makes a new replay of the same log, which was not read yet. */
static TEST_UNUSED void rw_renew(rw_t *w) {
        rdmeta_kraft_conf_t conf;

        rdmeta_kraft_replay_destroy(w->replay);
        rdmeta_kraft_conf_init(&conf);
        conf.visit     = rw_visit;
        conf.opaque    = w;
        conf.allocator = test_allocator(&w->heap);
        CHECK(!rdmeta_kraft_replay_new(&conf, &w->replay));
        w->fed     = 0;
        *w->changes = '\0';
}

static TEST_UNUSED void rw_init(rw_t *w) {
        memset(w, 0, sizeof(*w));
        w->log.epoch   = 1;
        w->log.time_ms = 1000;
        rw_renew(w);
}

static TEST_UNUSED void rw_free(rw_t *w) {
        kw_free(&w->log);
        rdmeta_kraft_replay_destroy(w->replay);
        CHECK(!w->heap.blocks && !w->heap.bytes);
}

/* Replays what the log has and the replay has not read. */
static TEST_UNUSED rdmeta_err_t rw_feed(rw_t *w) {
        const size_t n = w->log.log.len - w->fed;
        uint8_t *exact = gen_bytes_exact(w->log.log.data + w->fed, n);
        size_t used;
        const rdmeta_err_t err =
                rdmeta_kraft_replay(w->replay, exact, n, &used);

        w->fed += used;
        CHECK(err || used == n);
        free(exact);
        return err;
}

/* Ends the batch, and replays it. */
static TEST_UNUSED void rw_commit(rw_t *w) {
        rdmeta_err_t err;

        *w->changes = '\0';
        kw_batch(&w->log);
        err = rw_feed(w);
        if (err)
                fprintf(stderr, "%s\n",
                        rdmeta_kraft_fault(w->replay)->text);
        CHECK(!err);
}

/* Ends the batch, whose replay is refused with this text; goes on with a log
 * without it. */
static TEST_UNUSED void rw_refused(rw_t *w, const char *text) {
        const size_t len     = w->log.log.len;
        const int64_t offset = w->log.offset;

        kw_batch(&w->log);
        CHECK(rw_feed(w) == RDMETA_ERR_MALFORMED);
        CHECK(rdmeta_kraft_fault(w->replay)->code ==
              RDMETA_KRAFT_CONTRADICTS);
        CHECK_SAME(rdmeta_kraft_fault(w->replay)->text, text);
        w->log.log.len = len;
        w->log.offset  = offset;
}

static TEST_UNUSED rdmeta_kraft_info_t rw_info(const rw_t *w) {
        rdmeta_kraft_info_t info;

        rdmeta_kraft_info(w->replay, &info);
        return info;
}

static TEST_UNUSED const rdmeta_kraft_state_t *rw_state(const rw_t *w) {
        return rdmeta_kraft_replay_state(w->replay);
}

/* ---- records ------------------------------------------------------------ */

static TEST_UNUSED void rw_topic(rw_t *w, const char *name, char id) {
        kw_add(&w->log, 2, 0, "su", name, id);
}

static TEST_UNUSED void rw_partition(rw_t *w, char topic, int id,
                                     const char *replicas, int leader) {
        kw_add(&w->log, 3, 0, "iuLLLLiii", id, topic, replicas, replicas, "",
               "", leader, 0, 0);
}

static TEST_UNUSED void rw_broker(rw_t *w, int id, int64_t epoch, int fenced) {
        kw_add(&w->log, 0, 1, "iulcsshh.csbb", id, 'A' + id, epoch, 1, "P",
               "h", 9090 + id, 0, 0, NULL, fenced, 0);
}

/* ---- text --------------------------------------------------------------- */

static TEST_UNUSED void rw_list(char *text, const char *what,
                                rdmeta_wire_ids_t l) {
        uint32_t i;

        if (!l.count)
                return;
        rw_put(text, " %s", what);
        for (i = 0; i < l.count; i++)
                rw_put(text, "%s%d", i ? "," : "",
                       (int32_t)rdmeta_be32(l.be + 4 * (size_t)i));
}

/* Returns a partition: leader @leader epoch, e partition epoch, lists. */
static TEST_UNUSED const char *rw_row(rw_t *w, char topic, int id) {
        rdmeta_kraft_partition_t p;
        uint8_t topic_id[16];

        memset(topic_id, topic, sizeof(topic_id));
        *w->text = '\0';
        if (!rdmeta_kraft_partition_find(rw_state(w), topic_id, id, &p))
                return "none";
        rw_put(w->text, "%d@%d e%d", p.leader, p.leader_epoch,
               p.partition_epoch);
        rw_list(w->text, "r", p.replicas);
        rw_list(w->text, "i", p.isr);
        rw_list(w->text, "-", p.removing);
        rw_list(w->text, "+", p.adding);
        rw_list(w->text, "elr", p.elr);
        rw_list(w->text, "last", p.last_elr);
        rw_list(w->text, "d", p.directories);
        if (p.recovery)
                rw_put(w->text, " recovering");
        return w->text;
}

/* Returns a broker: epoch, flags, directories by their first bytes. */
static TEST_UNUSED const char *rw_broker_text(rw_t *w, int id) {
        rdmeta_kraft_broker_t b;
        uint32_t i;

        *w->text = '\0';
        if (!rdmeta_kraft_broker_find(rw_state(w), id, &b))
                return "none";
        rw_put(w->text, "e%d%s%s", (int)b.epoch, b.fenced ? " fenced" : "",
               b.shutting_down ? " down" : "");
        for (i = 0; i < b.n_log_dirs; i++)
                rw_put(w->text, "%s%c", i ? "" : " d", b.log_dirs[16 * i]);
        for (i = 0; i < b.n_cordoned; i++)
                rw_put(w->text, "%s%c", i ? "" : " c", b.cordoned[16 * i]);
        if (b.cordoned && !b.n_cordoned)
                rw_put(w->text, " c");
        return w->text;
}

/* Returns all facts: their data as JSON, one after the other, with ' for ". */
static TEST_UNUSED const char *rw_facts(rw_t *w) {
        const rdmeta_str_t none = {NULL, 0};
        rdmeta_kraft_fact_t f;
        int control = 0, type = 0;
        size_t n, len = 0;

        *w->text = '\0';
        f.key    = NULL;
        f.key_len = 0;
        while (rdmeta_kraft_fact_next(rw_state(w), control, type, f.key,
                                      f.key_len, &f)) {
                control = f.record.control;
                type    = f.record.type;
                CHECK(!rdmeta_kraft_record_json(
                        &f.record, none, RDMETA_KRAFT_DATA_ALONE,
                        w->text + len, RW_TEXT - len - 1, &n));
                len += n;
                w->text[len] = '\0';
        }
        kw_unquote(w->text);
        return w->text;
}

/* Writes all of the state as text, with provenance. The caller frees it. */
static TEST_UNUSED char *rw_dump(rw_t *w) {
        rdmeta_str_t after = {NULL, 0};
        char *all          = calloc(1, RW_TEXT);
        rdmeta_kraft_partition_t p;
        rdmeta_kraft_broker_t b;
        rdmeta_kraft_topic_t t;
        uint32_t i;

        CHECK(all);
        for (; rdmeta_kraft_topic_next(rw_state(w), after, &t);
             after = t.name) {
                rw_put(all, "%.*s %c %d\n", (int)t.name.len, t.name.data,
                       t.id[0], (int)t.mark.offset);
                for (i = 0; i < t.partitions; i++) {
                        CHECK(rdmeta_kraft_partition_at(rw_state(w), t.id, i,
                                                        &p));
                        rw_put(all, "%d: %s %d %d %d\n", p.id,
                               rw_row(w, (char)t.id[0], p.id),
                               (int)p.mark.offset, (int)p.mark.time_us,
                               p.mark.epoch);
                }
        }
        for (b.id = -1; rdmeta_kraft_broker_next(rw_state(w), b.id, &b);)
                rw_put(all, "%d: %s %d\n", b.id, rw_broker_text(w, b.id),
                       (int)b.mark.offset);
        rw_put(all, "%s %d", rw_facts(w), (int)rw_info(w).next);
        return all;
}
