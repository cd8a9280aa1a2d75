#include "support/seen_facts.h"

enum { ROWS_ASKED = 11 };

static const int64_t times_us[SEEN_TIMES] = {0, 30000, 120000, 1900000,
                                             2500000};

static void fold(uint64_t *h, uint64_t v) {
        *h = (*h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
        *h ^= *h >> 29;
}

static void fold_bytes(uint64_t *h, const void *p, size_t n) {
        const uint8_t *b = p;
        size_t i;

        fold(h, n);
        for (i = 0; i < n; i++)
                fold(h, b[i]);
}

static void fold_str(uint64_t *h, rdmeta_str_t s) {
        fold(h, s.data != NULL);
        fold_bytes(h, s.data, s.data ? s.len : 0);
}

/* Returns the code that an image should return: it has no names in flight. */
static int32_t settled(const rdmeta_reader_t *r, int32_t code) {
        return code == RDMETA_WAITING && !r->image ? RDMETA_NOT_CACHED : code;
}

static void fold_code(uint64_t *h, const rdmeta_reader_t *r, int32_t code) {
        fold(h, (uint32_t)settled(r, code));
}

static void fold_partition(uint64_t *h, const rdmeta_partition_t *p) {
        const rdmeta_ids_out_t *lists[] = {&p->replicas, &p->isr,
                                           &p->offline_replicas};
        int i;

        fold(h, (uint32_t)p->partition);
        fold(h, (uint32_t)p->leader);
        fold(h, (uint32_t)p->last_leader);
        fold(h, (uint32_t)p->leader_epoch);
        fold(h, (uint32_t)p->error);
        fold(h, (uint32_t)p->unreachable);
        for (i = 0; i < 3; i++)
                fold_bytes(h, lists[i]->ids, 4 * lists[i]->count);
}

static void fold_rows(uint64_t *h, rdmeta_reader_t *r,
                      const rdmeta_topic_t *t, uint32_t n) {
        int32_t lists[3][RACE_REPLICAS + 1];
        rdmeta_partition_t p;
        uint32_t i;

        race_partition_room(&p, lists);
        for (i = 0; i < n; i++) {
                CHECK(!rdmeta_topic_partition_at(r, t, i, &p));
                fold_partition(h, &p);
        }
}

static void fold_info(uint64_t *h, rdmeta_reader_t *r,
                      const rdmeta_topic_t *t, int64_t mono_us) {
        rdmeta_topic_info_t info;

        rdmeta_topic_info(r, t, mono_us, &info);
        fold_str(h, info.name);
        fold_bytes(h, info.topic_id, 16);
        fold(h, info.version);
        fold(h, info.partitions);
        fold(h, (uint32_t)info.internal);
        fold(h, (uint32_t)info.error);
        fold_code(h, r, info.state);
        fold(h, (uint32_t)info.operations);
        fold(h, (uint32_t)info.source_broker);
        fold_str(h, info.reason);
        /* DEADLINE_ASKED means the same as the value after it: an image, where
         * no name is in flight, returns that one. */
        fold(h, info.deadline_us == RDMETA_DEADLINE_ASKED && !r->image
                        ? (uint64_t)info.deadline_us + 1
                        : (uint64_t)info.deadline_us);
}

static void fold_topic(uint64_t *h, rdmeta_reader_t *r, rdmeta_str_t name,
                       int64_t mono_us, int rows) {
        int32_t partitions[ROWS_ASKED], out[ROWS_ASKED];
        rdmeta_str_t names[ROWS_ASKED];
        const rdmeta_topic_t *t;
        rdmeta_topic_info_t info;
        int p;

        for (p = 0; p < ROWS_ASKED; p++) {
                names[p]      = name;
                partitions[p] = p - 1;
                fold_code(h, r, rdmeta_leader(r, name.data, name.len, p - 1,
                                              mono_us));
        }
        rdmeta_leaders(r, names, partitions, ROWS_ASKED, mono_us, out);
        for (p = 0; p < ROWS_ASKED; p++)
                fold_code(h, r, out[p]);
        fold_code(h, r, rdmeta_topic_find(r, name.data, name.len, mono_us, &t));
        fold(h, t != NULL);
        if (!t)
                return;
        fold_info(h, r, t, mono_us);
        rdmeta_topic_info(r, t, mono_us, &info);
        if (rows)
                fold_rows(h, r, t, info.partitions);
}

static int32_t fold_visit(void *opaque, const rdmeta_topic_t *t) {
        uint64_t *h = opaque;

        fold_bytes(h, t->name, t->name_len);
        return 0;
}

static void fold_walks(uint64_t *h, rdmeta_reader_t *r, int64_t mono_us) {
        static const char *const prefixes[] = {"", "team-0", "a-", "no", "~"};
        int32_t which;
        size_t i;

        for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
                for (which = 1; which < 8; which++) {
                        fold(h, (uint64_t)which);
                        CHECK(!rdmeta_reader_walk(r, prefixes[i],
                                                  strlen(prefixes[i]), which,
                                                  mono_us, fold_visit, h));
                }
}

static void fold_health(uint64_t *h, rdmeta_reader_t *r, int64_t mono_us) {
        rdmeta_broker_health_t brokers[16];
        rdmeta_health_t x;
        int32_t which;
        uint32_t i;

        for (which = 1; which < 4; which++) {
                memset(&x, 0, sizeof(x));
                x.brokers  = brokers;
                x.capacity = 16;
                CHECK(!rdmeta_reader_health(r, which, mono_us, &x));
                CHECK(x.broker_count <= 16);
                fold(h, x.topics);
                fold(h, x.partitions);
                fold(h, x.replicas);
                fold(h, x.leaderless);
                fold(h, x.under_replicated);
                fold(h, x.offline);
                fold(h, x.non_preferred);
                for (i = 0; i < x.broker_count; i++) {
                        fold(h, (uint32_t)brokers[i].broker);
                        fold(h, brokers[i].leaders);
                        fold(h, brokers[i].replicas);
                }
        }
}

static void fold_brokers(uint64_t *h, const rdmeta_brokers_t *b) {
        rdmeta_broker_t x;
        uint32_t i;

        fold_str(h, rdmeta_brokers_cluster_id(b));
        fold(h, (uint32_t)rdmeta_brokers_controller(b));
        for (i = 0; !rdmeta_brokers_at(b, i, &x); i++) {
                fold(h, (uint32_t)x.id);
                fold(h, (uint32_t)x.port);
                fold_str(h, x.host);
                fold_str(h, x.rack);
        }
}

static void fold_ids(uint64_t *h, rdmeta_reader_t *r, const seen_ids_t *ids,
                     size_t n, int64_t mono_us) {
        const rdmeta_topic_t *t;
        size_t i;

        for (i = 0; i < n; i++) {
                fold_code(h, r, rdmeta_topic_find_id(r, ids->ids[i], mono_us,
                                                     &t));
                if (t)
                        fold_info(h, r, t, mono_us);
        }
}

void seen_note_ids(const race_t *w, rdmeta_reader_t *r, seen_ids_t *ids) {
        static const uint8_t none[16];
        rdmeta_topic_info_t info;
        const rdmeta_topic_t *t;
        uint32_t i;
        size_t k;

        rdmeta_reader_enter(r);
        for (i = 0; i < RACE_TOPICS; i++) {
                rdmeta_topic_find(r, w->names[i], strlen(w->names[i]), 0, &t);
                if (!t)
                        continue;
                rdmeta_topic_info(r, t, 0, &info);
                for (k = 0; k < ids->n; k++)
                        if (!memcmp(ids->ids[k], info.topic_id, 16))
                                break;
                if (k == ids->n && k < SEEN_IDS &&
                    memcmp(info.topic_id, none, 16) != 0)
                        memcpy(ids->ids[ids->n++], info.topic_id, 16);
        }
        rdmeta_reader_leave(r);
}

void seen_read(const race_t *w, rdmeta_reader_t *r, rdmeta_reader_t *stale,
               const seen_ids_t *ids, size_t n_ids, int64_t mono_us,
               seen_facts_t *out) {
        uint32_t i;
        int k;

        memset(out, 0, sizeof(*out));
        out->mono_us = mono_us;
        out->n_ids   = n_ids;
        rdmeta_reader_enter(r);
        rdmeta_reader_enter(stale);
        for (k = 0; k < SEEN_TIMES; k++) {
                const int64_t at = mono_us + times_us[k];
                for (i = 0; i < RACE_TOPICS; i++) {
                        fold_topic(&out->topics[i], r, race_name(w, i), at,
                                   k == 0);
                        fold_topic(&out->topics[i], stale, race_name(w, i),
                                   at, 0);
                }
                fold_walks(&out->walks, r, at);
                fold_health(&out->walks, r, at);
                fold_ids(&out->by_id, r, ids, n_ids, at);
        }
        fold_brokers(&out->brokers, rdmeta_brokers(r));
        rdmeta_reader_leave(stale);
        rdmeta_reader_leave(r);
}

void seen_check(const race_t *w, const seen_facts_t *got,
                const seen_facts_t *wanted) {
        uint32_t i;

        CHECK(got->mono_us == wanted->mono_us && got->n_ids == wanted->n_ids);
        for (i = 0; i < RACE_TOPICS; i++) {
                if (got->topics[i] != wanted->topics[i])
                        fprintf(stderr, "%s differs\n", w->names[i]);
                CHECK(got->topics[i] == wanted->topics[i]);
        }
        CHECK(got->brokers == wanted->brokers);
        CHECK(got->walks == wanted->walks);
        CHECK(got->by_id == wanted->by_id);
        CHECK(got->n_topics == wanted->n_topics);
        CHECK(got->n_partitions == wanted->n_partitions);
}
