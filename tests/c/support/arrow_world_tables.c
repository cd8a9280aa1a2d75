/* What readers say of a cache, in the words of arrow_world, to compare. */
#include "support/arrow_world.h"

struct ArrowArrayStream aw_open(cw_t *w, rdmeta_reader_t *r,
                                          int32_t table, int32_t which) {
        struct ArrowArrayStream s;

        CHECK(!rdmeta_reader_arrow(r, table, which, w->now.mono_us, &s));
        return s;
}

aw_text_t aw_table(cw_t *w, int32_t table) {
        struct ArrowArrayStream s =
                aw_open(w, w->reader, table, RDMETA_WALK_VALID);
        return aw_read(&s);
}

void aw_check(cw_t *w, rdmeta_reader_t *r, int32_t table,
                        int32_t which, const char *wanted) {
        struct ArrowArrayStream s = aw_open(w, r, table, which);
        aw_text_t t               = aw_read(&s);

        CHECK_TEXT(t.data, wanted);
        aw_free(&t);
}

/* ---- what a reader says, as text -------------------------------------- */

enum { IDS = 256 };

typedef struct naive {
        cw_t *w;
        rdmeta_reader_t *reader;
        int32_t table;
        int stale_ok;
        aw_text_t text;
} naive_t;

static void naive_name(naive_t *n, const rdmeta_topic_info_t *info) {
        char id[RDMETA_ARROW_ID];
        int i, known = 0;

        for (i = 0; i < 16; i++)
                known |= info->topic_id[i];
        rdmeta_text_id(id, info->topic_id);
        aw_put_bytes(&n->text, info->name.data, info->name.len);
        aw_put(&n->text, "|%.*s|", known ? (int)sizeof(id) : 1,
               known ? id : "-");
}

static void naive_ids(naive_t *n, const rdmeta_ids_out_t *l) {
        uint32_t i;

        CHECK(l->count <= l->capacity);
        for (i = 0; i < l->count; i++)
                aw_put(&n->text, "%s%d", i ? "," : "[", l->ids[i]);
        aw_put(&n->text, l->count ? "]|" : "[]|");
}

static void naive_some(naive_t *n, int32_t value) {
        if (value < 0)
                aw_put(&n->text, "-|");
        else
                aw_put(&n->text, "%d|", value);
}

static int has(const rdmeta_ids_out_t *l, int32_t id) {
        uint32_t i;

        for (i = 0; i < l->count; i++)
                if (l->ids[i] == id)
                        return 1;
        return 0;
}

static void naive_partition(naive_t *n, const rdmeta_topic_info_t *info,
                            const rdmeta_partition_t *p, int32_t leader) {
        naive_name(n, info);
        aw_put(&n->text, "%d|", p->partition);
        naive_some(n, leader);
        naive_some(n, p->leader_epoch);
        naive_ids(n, &p->replicas);
        naive_ids(n, &p->isr);
        naive_ids(n, &p->offline_replicas);
        aw_put(&n->text, "%d|%d|%d|%d\n", p->error, p->unreachable,
               p->leader < 0, info->state == RDMETA_STALE);
}

static void naive_replicas(naive_t *n, const rdmeta_topic_info_t *info,
                           const rdmeta_partition_t *p, int32_t leader) {
        uint32_t i;

        for (i = 0; i < p->replicas.count; i++) {
                const int32_t id = p->replicas.ids[i];
                naive_name(n, info);
                aw_put(&n->text, "%d|%d|%u|%d|%d|%d|%d\n", p->partition, id,
                       i, id == leader, has(&p->isr, id),
                       has(&p->offline_replicas, id), i == 0);
        }
}

static int32_t naive_topic(void *opaque, const rdmeta_topic_t *topic) {
        naive_t *n = opaque;
        int32_t ids[3][IDS];
        rdmeta_partition_t p = {.replicas = {ids[0], IDS, 0},
                                .isr = {ids[1], IDS, 0},
                                .offline_replicas = {ids[2], IDS, 0}};
        rdmeta_topic_info_t info;
        uint32_t i;

        rdmeta_topic_info(n->reader, topic, n->w->now.mono_us, &info);
        for (i = 0; i < info.partitions; i++) {
                CHECK(!rdmeta_topic_partition_at(n->reader, topic, i, &p));
                (n->table == RDMETA_ARROW_REPLICAS ? naive_replicas
                                                   : naive_partition)(
                        n, &info, &p, n->stale_ok ? p.last_leader : p.leader);
        }
        return 0;
}

void aw_check_as_read(cw_t *w, int32_t table, int stale) {
        const int32_t which = RDMETA_WALK_VALID |
                              (stale ? RDMETA_WALK_STALE : 0);
        naive_t n = {w, stale ? w->stale : w->reader, table, stale, {0}};

        aw_put_bytes(&n.text, "", 0);
        CHECK(!rdmeta_reader_walk(n.reader, "", 0, which, w->now.mono_us,
                                  naive_topic, &n));
        aw_check(w, n.reader, table, which, n.text.data);
        aw_free(&n.text);
}

void aw_say(cw_t *w, const gen_cluster_t *cluster) {
        const rdmeta_request_t r = cw_request(w, RDMETA_ASKED_UNKNOWN);
        gen_bytes_t body         = {0};

        gen_response(cluster, w->api_version, &body);
        CHECK(!cw_apply(w, body.data, body.len, &r));
        gen_bytes_free(&body);
}

gen_cluster_t *aw_cluster(uint64_t seed, uint32_t topics,
                                   uint32_t partitions, int32_t first) {
        gen_shape_t shape = {.seed = seed, .brokers = 5,
                             .first_broker = first, .topics = topics,
                             .partitions = partitions, .replication = 3};
        return gen_cluster_new(&shape);
}
