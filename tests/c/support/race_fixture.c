#include "support/race_fixture.h"

static const int32_t broker_ids[RACE_BROKERS] = {
    1, 2, 3, 5, 8, 13, 200, 300, 40000, 40001, 70000, 70001};

/* Returns how many of the brokers a topic uses. So its ids have up to four
 * bytes, up to two, or one. */
static uint32_t pool_of(uint32_t i) {
        return i % 4 == 0 ? 12 : i % 4 == 1 ? 8 : 6;
}

static uint32_t mix(uint32_t a, uint32_t b, uint32_t c) {
        uint64_t h = (a * UINT64_C(0x9e3779b97f4a7c15)) ^
                     (b * UINT64_C(0xbf58476d1ce4e5b9)) ^
                     (c * UINT64_C(0x94d049bb133111eb));

        h ^= h >> 29;
        h *= UINT64_C(0xd6e8feb86659fd93);
        return (uint32_t)(h >> 32);
}

/* ---- the functions by which rows are made and checked ------------------ */

typedef struct fact {
        int32_t leader;
        int32_t replicas[RACE_REPLICAS];
        uint32_t n, in_sync; /* replicas; the first ones are in sync, the
                                others are offline */
} fact_t;

int race_is_hinted(uint32_t i) {
        return i % 8 == 7;
}

uint32_t race_count(uint32_t i, uint32_t generation) {
        if (i % 64 == 0)
                return 240 + generation % 16;
        return 1 + (3 * i + 5 * generation) % 9;
}

/* Returns one of the partition's three possible leaders. Most wrong rows have
 * another one. */
static int32_t candidate(uint32_t i, uint32_t partition, uint32_t k) {
        return broker_ids[(5 * i + 3 * partition + 2 * k) % pool_of(i)];
}

int32_t race_leader_of(uint32_t i, uint32_t partition, int32_t epoch) {
        const uint32_t h = mix(i, partition, (uint32_t)epoch);

        if (h % 11 == 0)
                return -1;
        return candidate(i, partition, h / 16 % 3);
}

int race_is_replica(uint32_t i, int32_t broker) {
        uint32_t k;

        for (k = 0; k < pool_of(i); k++)
                if (broker_ids[k] == broker)
                        return 1;
        return 0;
}

static void fact_make(uint32_t i, uint32_t partition, int32_t epoch,
                      fact_t *f) {
        const uint32_t h    = mix(i, partition, ~(uint32_t)epoch);
        const uint32_t pool = pool_of(i);
        uint32_t k;

        f->leader  = race_leader_of(i, partition, epoch);
        f->n       = epoch % 2 ? h / 64 % (RACE_REPLICAS + 1) : 3;
        f->in_sync = f->n && epoch % 3 == 0 ? f->n - 1 : f->n;
        for (k = 0; k < f->n; k++)
                f->replicas[k] = broker_ids[(h + k) % pool];
}

static void id_make(uint32_t i, uint32_t generation, uint8_t id[16]) {
        const uint32_t words[4] = {i + 1, generation, mix(i, generation, 7),
                                   mix(generation, i, 8)};

        memcpy(id, words, 16);
}

/* ---- life ---------------------------------------------------------------- */

static void names_make(race_t *w) {
        uint32_t i;

        for (i = 0; i < RACE_TOPICS; i++) {
                const char *form = i % 5 == 0   ? "t%.0u%06u"
                                   : i % 5 == 1 ? "a-name-of-more-than-thirty-"
                                                  "two-bytes.%03u.%06u"
                                                : "team-%03u.race-%06u";
                snprintf(w->names[i], RACE_NAME, form, i % 16, i);
        }
}

void race_init(race_t *w, uint64_t seed, int fence) {
        rdmeta_conf_t conf;
        uint32_t i;

        memset(w, 0, sizeof(*w));
        names_make(w);
        atomic_init(&w->now_us, 1000000);
        CHECK(!pthread_mutex_init(&w->lock, NULL));
        for (i = 0; i < RACE_TOPICS; i++) {
                w->present[i]    = i % 3 != 0;
                w->generation[i] = 1;
                /* Epochs that soon need the next wider column. */
                w->epoch[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? 110 : 32740;
        }
        rdmeta_conf_init(&conf);
        conf.allocator       = test_allocator(&w->heap);
        conf.seed            = seed | 1;
        conf.max_age_us      = 2000000;
        conf.negative_ttl_us = 50000;
        conf.hint_ttl_us     = 100000;
        conf.absent_grace_us = 100000;
        conf.ring_bytes      = 32 << 10;
        w->cache             = rdmeta_cache_new(&conf);
        CHECK(w->cache);
        for (i = 0; i < RDMETA_MEMORY_SLABS; i++)
                w->cache->blocks.slabs[i].least = 1; /* free early */
        if (fence)
                w->cache->epochs.fence = 1;
}

void race_destroy(race_t *w) {
        CHECK(!rdmeta_cache_check(w->cache));
        rdmeta_cache_unref(w->cache);
        CHECK(!w->heap.blocks && !w->heap.bytes);
        CHECK(!pthread_mutex_destroy(&w->lock));
}

rdmeta_time_t race_now(race_t *w) {
        rdmeta_time_t now;

        now.mono_us = atomic_load_explicit(&w->now_us, memory_order_relaxed);
        now.wall_us = now.mono_us + 1;
        return now;
}

rdmeta_str_t race_name(const race_t *w, uint32_t i) {
        return test_str(w->names[i]);
}

/* ---- answers and hints --------------------------------------------------- */

void race_answer_begin(race_answer_t *a) {
        a->n_topics = a->n_rows = 0;
}

static void answer_row(race_answer_t *a, uint32_t i, uint32_t partition,
                       int32_t epoch, gen_partition_t *p) {
        int32_t *ids = a->ids[a->n_rows - 1];
        fact_t f;

        fact_make(i, partition, epoch, &f);
        memcpy(ids, f.replicas, sizeof(f.replicas));
        memset(p, 0, sizeof(*p));
        p->id            = (int32_t)partition;
        p->leader        = f.leader;
        p->epoch         = epoch;
        p->error         = f.leader < 0 ? 5 : 0;
        p->replicas.ids  = ids;
        p->replicas.count = (int32_t)f.n;
        p->isr.ids       = ids;
        p->isr.count     = (int32_t)f.in_sync;
        p->offline.ids   = ids + f.in_sync;
        p->offline.count = (int32_t)(f.n - f.in_sync);
}

void race_answer_topic(race_t *w, race_answer_t *a, uint32_t i) {
        gen_topic_t *t = &a->topics[a->n_topics++];
        uint32_t p;

        CHECK(a->n_topics <= RACE_TOPICS);
        memset(t, 0, sizeof(*t));
        t->name = race_name(w, i);
        if (!w->present[i]) {
                t->error = 3;
                return;
        }
        id_make(i, w->generation[i], t->id);
        t->partitions      = &a->partitions[a->n_rows];
        t->partition_count = race_count(i, w->generation[i]);
        for (p = 0; p < t->partition_count; p++) {
                CHECK(++a->n_rows <= RACE_ROWS);
                answer_row(a, i, p, w->epoch[i], &t->partitions[p]);
        }
}

void race_answer_body(race_t *w, race_answer_t *a, int version) {
        gen_cluster_t c = {.topics      = a->topics,
                           .topic_count = (uint32_t)a->n_topics,
                           .brokers     = a->brokers,
                           .broker_count = RACE_BROKERS,
                           .cluster_id  = GEN_STR("race")};
        int i;

        for (i = 0; i < RACE_BROKERS; i++) {
                rdmeta_broker_t *b = &a->brokers[i];
                const int moved    = w->brokers_epoch % RACE_BROKERS == i;

                b->id   = broker_ids[i];
                b->port = b->id % 1000 + 1 + 1000 * moved;
                snprintf(a->hosts[i][0], sizeof(a->hosts[i][0]), "host-%d-%d",
                         (int)b->id, (int)b->port);
                snprintf(a->hosts[i][1], sizeof(a->hosts[i][1]), "rack-%d",
                         (int)b->port);
                b->host = test_str(a->hosts[i][0]);
                b->rack = test_str(i % 3 ? a->hosts[i][1] : NULL);
        }
        c.controller = broker_ids[mix((uint32_t)a->n_rows, 1, 2) % 12];
        gen_bytes_clear(&a->body);
        gen_response(&c, version, &a->body);
}

rdmeta_leader_hint_t race_leader_hint(race_t *w, uint32_t i,
                                      uint32_t partition) {
        rdmeta_leader_hint_t h = {.topic     = race_name(w, i),
                                  .partition = (int32_t)partition};

        do
                h.leader_epoch = ++w->epoch[i];
        while (race_leader_of(i, partition, h.leader_epoch) < 0);
        h.leader = race_leader_of(i, partition, h.leader_epoch);
        return h;
}

/* ---- what readers check -------------------------------------------------- */

static int is_candidate(uint32_t i, uint32_t partition, int32_t leader) {
        return leader == candidate(i, partition, 0) ||
               leader == candidate(i, partition, 1) ||
               leader == candidate(i, partition, 2);
}

int race_leader_check(uint32_t i, uint32_t partition, int32_t leader,
                      int stale) {
        switch (leader) {
        case RDMETA_STALE:
                CHECK(!stale);
                return 0;
        case RDMETA_NOT_CACHED:
        case RDMETA_WAITING:
        case RDMETA_UNKNOWN_TOPIC:
                return 0;
        case RDMETA_NO_PARTITION: /* generations differ in their number */
                CHECK(partition > 0);
                return 0;
        case RDMETA_NO_LEADER:
                return 1;
        default:
                CHECK(is_candidate(i, partition, leader));
                return 1;
        }
}

static void ids_check(const rdmeta_ids_out_t *l, const int32_t *ids,
                      uint32_t n) {
        uint32_t k;

        CHECK(l->count == n);
        for (k = 0; k < n; k++)
                CHECK(l->ids[k] == ids[k]);
}

void race_partition_check(uint32_t i, const rdmeta_partition_t *p) {
        const uint32_t partition = (uint32_t)p->partition;
        fact_t f;

        fact_make(i, partition, p->leader_epoch, &f);
        CHECK(p->leader == f.leader);
        CHECK(p->last_leader == -1 ||
              is_candidate(i, partition, p->last_leader));
        if (p->leader >= 0)
                CHECK(p->last_leader == p->leader);
        if (race_is_hinted(i))
                return;
        CHECK(p->error == (f.leader < 0 ? 5 : 0));
        ids_check(&p->replicas, f.replicas, f.n);
        ids_check(&p->isr, f.replicas, f.in_sync);
        ids_check(&p->offline_replicas, f.replicas + f.in_sync,
                  f.n - f.in_sync);
}

static uint32_t index_of(const race_t *w, rdmeta_str_t name) {
        uint32_t i;

        char digits[7] = {0};

        CHECK(name.len >= 7 && name.len < RACE_NAME);
        memcpy(digits, name.data + name.len - 6, 6);
        i = (uint32_t)strtoul(digits, NULL, 10);
        CHECK(i < RACE_TOPICS && race_name(w, i).len == name.len);
        CHECK(!memcmp(w->names[i], name.data, name.len));
        return i;
}

static uint32_t generation_check(uint32_t i, const uint8_t id[16]) {
        uint8_t want[16];
        uint32_t generation;

        memcpy(&generation, id + 4, 4);
        id_make(i, generation, want);
        CHECK(!memcmp(id, want, 16));
        return generation;
}

void race_partition_room(rdmeta_partition_t *p,
                         int32_t lists[3][RACE_REPLICAS + 1]) {
        rdmeta_ids_out_t *out[3] = {&p->replicas, &p->isr,
                                    &p->offline_replicas};
        int i;

        memset(p, 0, sizeof(*p));
        for (i = 0; i < 3; i++) {
                out[i]->ids      = lists[i];
                out[i]->capacity = RACE_REPLICAS + 1;
        }
}

static void rows_check(rdmeta_reader_t *r, const rdmeta_topic_t *t,
                       uint32_t i, uint32_t n) {
        int32_t lists[3][RACE_REPLICAS + 1], epoch = -1;
        rdmeta_partition_t p;
        uint32_t k;

        race_partition_room(&p, lists);
        for (k = 0; k < n; k++) {
                CHECK(!rdmeta_topic_partition_at(r, t, k, &p));
                CHECK(p.partition == (int32_t)k);
                if (k == 0)
                        epoch = p.leader_epoch;
                CHECK(p.leader_epoch == epoch || race_is_hinted(i));
                race_partition_check(i, &p);
        }
        CHECK(rdmeta_topic_partition_at(r, t, n, &p) == RDMETA_NO_PARTITION);
}

static void reason_check(const rdmeta_topic_info_t *info) {
        if (!info->reason.data)
                CHECK(info->source_broker == RACE_MUTE ||
                      info->source_broker == -1);
        else
                CHECK(info->reason.len >= 6 &&
                      info->reason.data[0] - '0' == info->source_broker);
}

uint32_t race_topic_check(const race_t *w, rdmeta_reader_t *r,
                          const rdmeta_topic_t *t) {
        static const uint8_t none[16];
        rdmeta_topic_info_t info;
        uint32_t i;

        rdmeta_topic_info(r, t, 0, &info);
        i = index_of(w, info.name);
        CHECK(info.version > 0);
        CHECK(info.version <= rdmeta_cache_version(w->cache) + 1);
        CHECK(info.error == 0 || info.error == 3);
        reason_check(&info);
        if (memcmp(info.topic_id, none, 16) != 0)
                CHECK(info.partitions ==
                      race_count(i, generation_check(i, info.topic_id)));
        else
                CHECK(info.partitions == 0);
        rows_check(r, t, i, info.partitions);
        return i;
}

void race_brokers_check(const rdmeta_brokers_t *b) {
        const uint32_t n = rdmeta_brokers_count(b);
        const rdmeta_str_t cluster = rdmeta_brokers_cluster_id(b);
        rdmeta_broker_t x, y;
        char text[24];
        uint32_t k;

        CHECK(n == 0 || n == RACE_BROKERS);
        CHECK(n ? cluster.len == 4 && !memcmp(cluster.data, "race", 4)
                : !cluster.data);
        for (k = 0; k < n; k++) {
                CHECK(!rdmeta_brokers_at(b, k, &x));
                CHECK(x.id == broker_ids[k]);
                CHECK(x.port % 1000 == x.id % 1000 + 1);
                snprintf(text, sizeof(text), "host-%d-%d", (int)x.id,
                         (int)x.port);
                CHECK(x.host.len == strlen(text));
                CHECK(!memcmp(x.host.data, text, x.host.len));
                snprintf(text, sizeof(text), "rack-%d", (int)x.port);
                CHECK(k % 3 ? x.rack.len == strlen(text) &&
                                      !memcmp(x.rack.data, text, x.rack.len)
                            : !x.rack.data);
                CHECK(!rdmeta_brokers_find(b, x.id, &y));
                CHECK(y.id == x.id && y.host.data == x.host.data);
        }
        CHECK(rdmeta_brokers_find(b, 4, &y) == RDMETA_NOT_CACHED);
}

void race_change_check(const race_t *w, const rdmeta_change_t *c) {
        uint32_t i, p = (uint32_t)c->partition;
        fact_t f;

        if (!c->topic.data)
                return;
        i = index_of(w, c->topic);
        if (c->topic_id)
                generation_check(i, c->topic_id);
        if (c->kind != RDMETA_LEADER_CHANGED && c->kind != RDMETA_ISR_CHANGED)
                return;
        CHECK(c->old_leader == race_leader_of(i, p, c->old_leader_epoch));
        CHECK(c->new_leader == race_leader_of(i, p, c->new_leader_epoch));
        if (c->kind != RDMETA_ISR_CHANGED || race_is_hinted(i))
                return;
        fact_make(i, p, c->new_leader_epoch, &f);
        CHECK(c->new_isr.count == f.in_sync);
        CHECK(!memcmp(c->new_isr.ids, f.replicas, 4 * f.in_sync));
        fact_make(i, p, c->old_leader_epoch, &f);
        CHECK(c->old_isr.count == f.in_sync);
        CHECK(!memcmp(c->old_isr.ids, f.replicas, 4 * f.in_sync));
}
