/*
 * Random histories, in two caches that must always agree. Both get the same
 * answers, but cache B gets them with other tagged fields each time. So cache B
 * parses and compares everything, and cache A skips the topics whose digests
 * are unchanged. The skips must make no difference.
 *
 *     truth ----> the last few states of a cluster
 *                   |  each broker lags behind by its own number of states
 *                   v
 *                 answer: all or some topics, a few of them with errors
 *                   |                    |
 *                   v                    v  with other tagged fields
 *                 cache A  == facts ==  cache B
 *
 * After every call the test checks the invariants, that every version has a
 * record, and that lookups of both caches agree.
 */
#include "support/cache_fixture.h"

enum {
        TOPICS  = 12,
        ROWS    = 5,
        STATES  = 6, /* the present one and earlier ones */
        BROKERS = 3,
        STEPS   = 1500,
        SEEDS   = 8
};

/* One topic of one state; it does not exist if it has no rows. */
typedef struct truth {
        int rows;
        int generation; /* each one has another id */
        int leader[ROWS], epoch[ROWS], isr[ROWS];
} truth_t;

typedef struct sim {
        cw_t a, b;
        test_rng_t rng;
        truth_t states[STATES][TOPICS]; /* [0] is the present */
        gen_topic_t topics[TOPICS];
        gen_partition_t rows[TOPICS][ROWS];
        int32_t ids[TOPICS][ROWS][3];
        char names[TOPICS][40];
        rdmeta_broker_t brokers[BROKERS];
        uint64_t tag_seed;
        size_t beside;
} sim_t;

static int below(sim_t *s, size_t n) {
        return (int)test_below(&s->rng, n);
}

/* ---- the cluster ------------------------------------------------------- */

static void truth_begin(sim_t *s, truth_t *t) {
        int p;

        t->rows = 1 + below(s, ROWS);
        t->generation++;
        for (p = 0; p < ROWS; p++) {
                t->leader[p] = 1 + below(s, BROKERS);
                t->epoch[p]  = below(s, 3);
                t->isr[p]    = 3;
        }
}

static void truth_move(sim_t *s, truth_t *t) {
        const int p = below(s, ROWS);

        switch (below(s, 8)) {
        case 0:
                t->rows = 0; /* deleted; a new generation if it returns */
                return;
        case 1:
                truth_begin(s, t);
                return;
        case 2:
                t->rows += t->rows < ROWS;
                return;
        case 3:
                t->isr[p] = 1 + below(s, 3);
                return;
        default:
                t->epoch[p]++;
                t->leader[p] = below(s, 5) ? 1 + below(s, BROKERS + 1) : -1;
                return;
        }
}

static void cluster_move(sim_t *s) {
        const int n = below(s, 4);
        int i;

        memmove(s->states[1], s->states[0],
                (STATES - 1) * sizeof(s->states[0]));
        for (i = 0; i < n; i++) {
                truth_t *t = &s->states[0][below(s, TOPICS)];

                if (t->rows)
                        truth_move(s, t);
                else
                        truth_begin(s, t);
        }
}

/* ---- answers ----------------------------------------------------------- */

static void topic_fill(sim_t *s, gen_topic_t *topic, int i, const truth_t *t) {
        int p;

        memset(topic, 0, sizeof(*topic));
        topic->name            = test_str(s->names[i]);
        topic->partitions      = s->rows[i];
        topic->partition_count = (uint32_t)t->rows;
        memset(topic->id, 1 + i, sizeof(topic->id));
        topic->id[15] = (uint8_t)t->generation;
        topic->internal = (i == 3) != (below(s, 40) == 0);
        for (p = 0; p < t->rows; p++) {
                gen_partition_t *row = &s->rows[i][p];

                memset(row, 0, sizeof(*row));
                row->id     = i % 4 == 1 ? p * 7 + 2 : p;
                row->leader = t->leader[p];
                row->epoch  = t->epoch[p];
                row->error  = row->leader < 0 ? 5 : below(s, 30) ? 0 : 9;
                row->replicas.ids   = s->ids[i][p];
                row->replicas.count = 3;
                row->isr.ids        = s->ids[i][p];
                row->isr.count      = t->isr[p];
                if (t->isr[p] == 3 && below(s, 10) == 0) /* in another order */
                        row->isr.ids = s->ids[i][(p + 1) % ROWS];
        }
}

/* Fills an answer of a broker: all topics of its state, or only `some`. */
static void answer_fill(sim_t *s, gen_cluster_t *c, int broker, int some) {
        static const int errors[] = {3, 3, 5, 17, 29, 29, 100, 103};
        int i;

        memset(c, 0, sizeof(*c));
        c->brokers      = s->brokers;
        c->broker_count = BROKERS - (below(s, 8) == 0);
        c->cluster_id   = GEN_STR("c");
        c->controller   = 1 + below(s, 3);
        c->topics       = s->topics;
        for (i = 0; i < TOPICS; i++) {
                const truth_t *t = &s->states[broker * 2 % STATES][i];
                gen_topic_t *topic = &s->topics[c->topic_count];

                if (some && below(s, 3))
                        continue;
                if (!t->rows && !some)
                        continue;
                topic_fill(s, topic, i, t);
                if (!t->rows)
                        topic->error = 3;
                else if (below(s, 40) == 0)
                        topic->error = errors[below(s, 8)];
                if (topic->error)
                        topic->partition_count = 0;
                if (topic->error == 100)
                        topic->name = (rdmeta_str_t){NULL, 0};
                if (below(s, 30) == 0)
                        memset(topic->id, 0, sizeof(topic->id));
                else if (below(s, 100) == 0) /* another topic's id */
                        memset(topic->id, 1 + below(s, TOPICS), 15);
                topic->has_operations = below(s, 20) == 0;
                topic->operations     = 8;
                c->topic_count++;
        }
}

static void same_applied(const cw_t *a, const cw_t *b) {
        const rdmeta_applied_t *x = &a->applied, *y = &b->applied;

        CHECK(x->version == y->version && x->topics == y->topics);
        CHECK(x->changed == y->changed && x->unchanged == y->unchanged);
        CHECK(x->kept_back == y->kept_back && x->negative == y->negative);
        CHECK(x->absent == y->absent && x->leaderless == y->leaderless);
        CHECK(x->brokers_changed == y->brokers_changed);
        CHECK(x->advice == y->advice);
}

static void step_answer(sim_t *s) {
        static const int versions[] = {8, 10, 12, 12, 12, 12, 12, 9, 13};
        const int broker       = 1 + below(s, BROKERS);
        const int some         = below(s, 3) == 0;
        rdmeta_request_t asked = {.asked  = some ? RDMETA_ASKED_UNKNOWN
                                                 : RDMETA_ASKED_ALL,
                                  .broker = broker};
        gen_bytes_t body       = {0};
        gen_cluster_t c;
        rdmeta_err_t err;

        if (below(s, 4) == 0) {
                asked.flags = RDMETA_REQ_SENT_VERSION;
                asked.sent_version =
                        cw_version(&s->a) - (uint64_t)below(
                                s, 1 + (size_t)(cw_version(&s->a) % 5));
        }
        s->a.api_version = s->b.api_version = versions[below(s, 9)];
        answer_fill(s, &c, broker, some);
        gen_response(&c, s->a.api_version, &body);
        err = cw_apply(&s->a, body.data, body.len, &asked);
        c.tag_seed = s->tag_seed += 2;
        gen_bytes_clear(&body);
        gen_response(&c, s->b.api_version, &body);
        CHECK(cw_apply(&s->b, body.data, body.len, &asked) == err);
        CHECK(!err);
        same_applied(&s->a, &s->b);
        gen_bytes_free(&body);
}

/* ---- the other writes -------------------------------------------------- */

static void step_leader_hint(sim_t *s) {
        const int i      = below(s, TOPICS);
        const truth_t *t = &s->states[0][i];
        const int p      = below(s, ROWS), leader = 1 + below(s, BROKERS + 2);
        const int known  = below(s, 2);
        const int id     = i % 4 == 1 ? p * 7 + 2 : p;
        const int epoch  = t->epoch[p] + below(s, 2);

        CHECK(cw_leader_hint(&s->a, s->names[i], id, leader, epoch,
                             known ? NULL : "h") ==
              cw_leader_hint(&s->b, s->names[i], id, leader, epoch,
                             known ? NULL : "h"));
        same_applied(&s->a, &s->b);
}

static void step_hint(sim_t *s) {
        const char *name   = s->names[below(s, TOPICS)];
        const int32_t flag = (int32_t)below(s, 4);

        CHECK_TEXT(cw_hint(&s->a, name, flag), cw_hint(&s->b, name, flag));
        if (below(s, 3) == 0)
                CHECK(rdmeta_cache_purge_hints(s->a.cache, NULL, 0,
                                               s->a.now) ==
                      rdmeta_cache_purge_hints(s->b.cache, NULL, 0,
                                               s->b.now));
}

static void step_time(sim_t *s) {
        static const int64_t steps[] = {1,         50000,      100001, CW_S,
                                        10 * CW_S, 16 * CW_S,  60 * CW_S,
                                        CW_S,      901 * CW_S, CW_S};
        const int64_t us = steps[below(s, 10)];

        cw_pass(&s->a, us);
        cw_pass(&s->b, us);
        if (below(s, 3))
                CHECK(cw_sweep(&s->a) == cw_sweep(&s->b));
}

static void step_forget(sim_t *s) {
        rdmeta_str_t names[3];
        int i;

        if (below(s, 10))
                return;
        for (i = 0; i < 3; i++)
                names[i] = test_str(s->names[below(s, TOPICS)]);
        CHECK(rdmeta_cache_forget(s->a.cache, names, 3, s->a.now) ==
              rdmeta_cache_forget(s->b.cache, names, 3, s->b.now));
}

static void step_purge(sim_t *s) {
        if (below(s, 40))
                return;
        CHECK(!rdmeta_cache_purge(s->a.cache, s->a.now));
        CHECK(!rdmeta_cache_purge(s->b.cache, s->b.now));
}

/* ---- invariants -------------------------------------------------------- */

/* Checks that both caches have the same facts, memory, walks and changes. */
static void agree(sim_t *s) {
        char *a = cw_facts(&s->a), *b = cw_facts(&s->b);

        cw_check(&s->a);
        cw_check(&s->b);
        CHECK_TEXT(a, b);
        free(a);
        free(b);
        /* Besides the cache there are two readers, whose size is constant. */
        CHECK(s->a.heap.bytes - cw_stats(&s->a).bytes == s->beside);
        CHECK(s->b.heap.bytes - cw_stats(&s->b).bytes == s->beside);
        /* Not each time: a look may wait for several writes. */
        if (below(s, 3)) {
                cw_check_due(&s->a);
                CHECK_TEXT(cw_due(&s->a), cw_due(&s->b));
        }
        if (below(s, 10) == 0)
                CHECK_TEXT(cw_walk(&s->a, "", 7), cw_walk(&s->b, "", 7));
        if (below(s, 10) == 0 && cw_version(&s->a) > 3) {
                const uint64_t since = cw_version(&s->a) - 2;
                const char *changes  = cw_changes(&s->a, since);

                if (!strstr(changes, "(purge)")) /* in order of secret hashes */
                        CHECK_TEXT(changes, cw_changes(&s->b, since));
        }
}

static void check_lookups(sim_t *s, int i) {
        const char *name = s->names[i];
        int p;

        for (p = 0; p < ROWS; p++) {
                const int id = i % 4 == 1 ? p * 7 + 2 : p;
                const int32_t leader = cw_leader(&s->a, name, id);

                CHECK(leader == cw_leader(&s->b, name, id));
                CHECK(leader <= BROKERS + 2);
                CHECK(cw_leader_stale(&s->a, name, id) ==
                      cw_leader_stale(&s->b, name, id));
        }
}

static void small_changelog(rdmeta_conf_t *conf) {
        conf->ring_bytes = 8192;
}

static void sim_init(sim_t *s, uint64_t seed) {
        static void (*const confs[])(rdmeta_conf_t *) = {NULL, small_changelog,
                                                         cw_no_changelog};
        int i, p;

        memset(s, 0, sizeof(*s));
        s->rng      = test_rng(seed);
        s->tag_seed = 1;
        cw_init(&s->a, confs[seed % 3]);
        cw_init(&s->b, confs[seed % 3]);
        s->beside = s->a.heap.bytes - cw_stats(&s->a).bytes;
        for (i = 0; i < BROKERS; i++)
                s->brokers[i] = (rdmeta_broker_t){i + 1, 9092, GEN_STR("h"),
                                                  {NULL, 0}};
        for (i = 0; i < TOPICS; i++) {
                snprintf(s->names[i], sizeof(s->names[i]), "%.*s%d", i * 2,
                         "some-prefix-of-a-topic-name", i);
                truth_begin(s, &s->states[0][i]);
                for (p = 0; p < ROWS * 3; p++)
                        s->ids[i][p / 3][p % 3] = 1 + (p + p / 3) % 3;
        }
        for (i = 0; i < STATES; i++)
                cluster_move(s);
}

static void history(uint64_t seed) {
        sim_t *s = malloc(sizeof(*s));
        int step;

        CHECK(s);
        sim_init(s, seed);
        for (step = 0; step < STEPS; step++) {
                switch (below(s, 10)) {
                case 0:
                        step_leader_hint(s);
                        break;
                case 1:
                        step_hint(s);
                        break;
                case 2:
                        step_time(s);
                        break;
                case 3:
                        step_purge(s);
                        step_forget(s);
                        break;
                case 4:
                case 5:
                        cluster_move(s);
                        break;
                default:
                        step_answer(s);
                        break;
                }
                agree(s);
                check_lookups(s, below(s, TOPICS));
        }
        CHECK(cw_stats(&s->a).digest_hits > 3 * cw_stats(&s->b).digest_hits);
        CHECK(cw_stats(&s->a).topics_kept_back > 0);
        cw_destroy(&s->a);
        cw_destroy(&s->b);
        free(s);
}

TEST(test_topics_that_are_skipped_make_no_difference) {
        uint64_t seed;

        for (seed = 1; seed <= SEEDS; seed++)
                history(seed);
}

TEST_MAIN()
