/* race_read: readers of every kind. Each checks all that it reads. */
#include "support/race_fixture.h"

enum { BATCH = 40, IMAGED = 12 };

static void worker_count(race_worker_t *x) {
        atomic_fetch_add_explicit(&x->done, 1, memory_order_relaxed);
}

static void worker_dither(race_worker_t *x) {
        race_dither(&x->rng);
}

/* Spends a random time, now and then so long that writers retire and free much.
 */
static void worker_linger(race_worker_t *x) {
        const struct timespec nap = {0, 10000000};

        if (test_below(&x->rng, 100) == 0)
                nanosleep(&nap, NULL);
        worker_dither(x);
}

static uint32_t any_topic(race_worker_t *x) {
        return (uint32_t)test_below(&x->rng, RACE_TOPICS);
}

static int64_t any_now(race_worker_t *x) {
        return race_now(x->fixture).mono_us;
}

/* ---- readers ------------------------------------------------------------- */

static void read_leader(race_worker_t *x) {
        const int stale = x->stale;
        int k;

        for (k = 0; k < 20; k++) {
                const uint32_t i = any_topic(x);
                const rdmeta_str_t name = race_name(x->fixture, i);
                const uint32_t p = (uint32_t)test_below(&x->rng, 10);

                if (race_leader_check(i, p,
                                      rdmeta_leader(x->reader, name.data,
                                                    name.len, (int32_t)p,
                                                    any_now(x)),
                                      stale))
                        worker_count(x);
        }
        CHECK(rdmeta_leader(x->reader, "team-000.race-no-such-topic", 27, 0,
                            any_now(x)) == RDMETA_NOT_CACHED);
}

static void read_leaders(race_worker_t *x) {
        int32_t partitions[BATCH], out[BATCH];
        rdmeta_str_t names[BATCH];
        uint32_t topics[BATCH];
        int k;

        for (k = 0; k < BATCH; k++) {
                topics[k]     = any_topic(x);
                names[k]      = race_name(x->fixture, topics[k]);
                partitions[k] = (int32_t)test_below(&x->rng, 10);
        }
        rdmeta_leaders(x->reader, names, partitions, BATCH, any_now(x), out);
        for (k = 0; k < BATCH; k++)
                if (race_leader_check(topics[k], (uint32_t)partitions[k],
                                      out[k], x->stale))
                        worker_count(x);
}

static void read_partition(race_worker_t *x) {
        int32_t lists[3][RACE_REPLICAS + 1];
        const uint32_t i        = any_topic(x);
        const rdmeta_str_t name = race_name(x->fixture, i);
        const int32_t partition = (int32_t)test_below(&x->rng, 10);
        rdmeta_partition_t p;

        race_partition_room(&p, lists);
        if (rdmeta_partition(x->reader, name.data, name.len, partition,
                             any_now(x), &p))
                return;
        CHECK(p.partition == partition);
        race_partition_check(i, &p);
        worker_count(x);
}

/* Reads borrowed memory twice, with other calls and some time in between. */
static void read_topic(race_worker_t *x) {
        const uint32_t i        = any_topic(x);
        const rdmeta_str_t name = race_name(x->fixture, i);
        const rdmeta_topic_t *t, *same;
        rdmeta_topic_info_t info;

        rdmeta_reader_enter(x->reader);
        rdmeta_topic_find(x->reader, name.data, name.len, any_now(x), &t);
        if (t) {
                CHECK(race_topic_check(x->fixture, x->reader, t) == i);
                rdmeta_topic_info(x->reader, t, any_now(x), &info);
                read_leader(x);
                rdmeta_reader_enter(x->reader);
                worker_linger(x);
                rdmeta_topic_find_id(x->reader, info.topic_id, any_now(x),
                                     &same);
                if (same)
                        CHECK(race_topic_check(x->fixture, x->reader, same) ==
                              i);
                rdmeta_reader_leave(x->reader);
                worker_dither(x);
                CHECK(race_topic_check(x->fixture, x->reader, t) == i);
                worker_count(x);
        }
        rdmeta_reader_leave(x->reader);
}

static void read_brokers(race_worker_t *x) {
        const rdmeta_brokers_t *b;

        rdmeta_reader_enter(x->reader);
        b = rdmeta_brokers(x->reader);
        race_brokers_check(b);
        worker_linger(x);
        race_brokers_check(b);
        if (rdmeta_brokers_count(b))
                worker_count(x);
        rdmeta_reader_leave(x->reader);
}

typedef struct walk {
        race_worker_t *worker;
        char last[RACE_NAME];
        size_t last_len;
        rdmeta_str_t prefix;
        int visits_left;
} walk_t;

static int32_t walk_visit(void *opaque, const rdmeta_topic_t *t) {
        walk_t *walk     = opaque;
        race_worker_t *x = walk->worker;
        const uint32_t i = race_topic_check(x->fixture, x->reader, t);
        const rdmeta_str_t name = race_name(x->fixture, i);

        CHECK(!walk->last_len || strcmp(walk->last, name.data) < 0);
        CHECK(!strncmp(name.data, walk->prefix.data, walk->prefix.len));
        memcpy(walk->last, name.data, name.len + 1);
        walk->last_len = name.len;
        worker_count(x);
        worker_linger(x);
        return --walk->visits_left == 0 ? 77 : 0;
}

static void read_walk(race_worker_t *x) {
        static const char *const prefixes[] = {"", "team-0", "t", "a-", "no"};
        const rdmeta_str_t prefix = test_str(prefixes[test_below(&x->rng, 5)]);
        walk_t walk = {.worker = x, .prefix = prefix,
                       .visits_left = (int)test_below(&x->rng, 400)};
        rdmeta_err_t err;

        err = rdmeta_reader_walk(x->reader, prefix.data, prefix.len,
                                 1 + (int32_t)test_below(&x->rng, 7),
                                 any_now(x), walk_visit, &walk);
        CHECK(err == (walk.visits_left == 0 && walk.last_len ? 77 : 0));
        CHECK(prefix.data[0] != 'n' || !walk.last_len);
        worker_dither(x);
}

static int32_t change_visit(void *opaque, const rdmeta_change_t *c) {
        race_worker_t *x = opaque;

        CHECK(c->version > x->since);
        CHECK(c->wall_us > 1000000);
        race_change_check(x->fixture, c);
        worker_count(x);
        worker_linger(x);
        if (test_below(&x->rng, 256) == 0)
                read_leader(x);
        return 0;
}

static void read_changes(race_worker_t *x) {
        uint64_t until;
        int32_t resync;

        CHECK(!rdmeta_cache_changes(x->fixture->cache, x->since, change_visit,
                                    x, &until, &resync));
        CHECK(until >= x->since);
        x->since = until;
        worker_dither(x);
}

static void read_wait(race_worker_t *x) {
        rdmeta_cache_t *c    = x->fixture->cache;
        const uint64_t since = rdmeta_cache_version(c);
        const size_t n       = test_below(&x->rng, 4);
        rdmeta_str_t topics[4];
        uint64_t version;
        size_t k;

        for (k = 0; k < n; k++)
                topics[k] = race_name(x->fixture, any_topic(x));
        version = rdmeta_cache_wait(c, since, topics, n, 2000);
        CHECK(version == 0 || version > since);
        if (version)
                worker_count(x);
}

/* Makes and destroys readers, and reads the statistics in between. */
static void read_coming_and_going(race_worker_t *x) {
        rdmeta_cache_t *c = x->fixture->cache;
        rdmeta_reader_t *own[3];
        rdmeta_stats_t stats;
        int k;

        for (k = 0; k < 3; k++) {
                own[k] = rdmeta_reader_new(c, k);
                CHECK(own[k]);
        }
        rdmeta_cache_stats(c, &stats);
        CHECK(stats.readers >= 3 && stats.waiters >= 0);
        CHECK(stats.topics + stats.negatives <= RACE_TOPICS);
        CHECK(stats.ring_floor <= stats.version);
        for (k = 0; k < 3; k++) {
                race_worker_t y = {.fixture = x->fixture, .reader = own[k],
                                   .rng = x->rng, .stale = k & 1};
                read_leader(&y);
                read_topic(&y);
                rdmeta_reader_destroy(own[k]);
        }
        test_u64(&x->rng);
        worker_count(x);
}

static void watch_called(void *opaque, uint64_t version) {
        race_worker_t *x = opaque;

        CHECK(version && version <= rdmeta_cache_version(x->fixture->cache));
        worker_count(x);
}

static void read_watch(race_worker_t *x) {
        const rdmeta_str_t name = race_name(x->fixture, any_topic(x));
        rdmeta_watch_t *all, *one;
        rdmeta_stats_t stats;

        all = rdmeta_watch_new(x->fixture->cache, NULL, 0, watch_called, x);
        one = rdmeta_watch_new(x->fixture->cache, &name, 1, watch_called, x);
        CHECK(all && one);
        rdmeta_cache_wait(x->fixture->cache,
                          rdmeta_cache_version(x->fixture->cache) + 1, NULL, 0,
                          2000);
        rdmeta_cache_stats(x->fixture->cache, &stats);
        CHECK(stats.watches >= 2);
        rdmeta_watch_destroy(one);
        rdmeta_watch_destroy(all);
}

/* An image is whole, and stays the same for as long as it lives. */
static void read_image(race_worker_t *x) {
        rdmeta_image_t *image =
                rdmeta_cache_image(x->fixture->cache, race_now(x->fixture));
        rdmeta_reader_t *r = rdmeta_image_reader(image, RDMETA_ALLOW_STALE);
        const rdmeta_topic_t *first[IMAGED], *again;
        uint32_t topics[IMAGED];
        const rdmeta_brokers_t *brokers;
        int k;

        CHECK(image && r);
        rdmeta_reader_enter(r);
        brokers = rdmeta_brokers(r);
        for (k = 0; k < IMAGED; k++)
                topics[k] = any_topic(x);
        for (k = 0; k < 2 * IMAGED; k++) {
                const int slot          = k % IMAGED;
                const rdmeta_str_t name = race_name(x->fixture, topics[slot]);

                rdmeta_topic_find(r, name.data, name.len, any_now(x), &again);
                if (k < IMAGED)
                        first[slot] = again;
                CHECK(again == first[slot]);
                if (again && race_topic_check(x->fixture, r, again) ==
                                     topics[slot])
                        worker_count(x);
                worker_linger(x);
        }
        CHECK(rdmeta_brokers(r) == brokers);
        race_brokers_check(brokers);
        rdmeta_reader_leave(r);
        rdmeta_reader_destroy(r);
        rdmeta_image_unref(image);
}

/* A replica is one of the topic's, whichever brokers have the rack now. */
static void read_replica_in(race_worker_t *x) {
        const uint32_t i        = any_topic(x);
        const rdmeta_str_t name = race_name(x->fixture, i);
        const int32_t partition = (int32_t)test_below(&x->rng, 10);
        rdmeta_broker_t broker;
        const rdmeta_brokers_t *b;
        int32_t found;

        rdmeta_reader_enter(x->reader);
        b = rdmeta_brokers(x->reader);
        memset(&broker, 0, sizeof(broker));
        if (rdmeta_brokers_count(b))
                rdmeta_brokers_at(b, (uint32_t)test_below(
                                             &x->rng, rdmeta_brokers_count(b)),
                                  &broker);
        worker_linger(x);
        found = rdmeta_replica_in(x->reader, name.data, name.len, partition,
                                  broker.rack, any_now(x));
        rdmeta_reader_leave(x->reader);
        CHECK(found < 0 || race_is_replica(i, found));
        if (found >= 0)
                worker_count(x);
}

/* The counts agree with each other, as they belong to one version. */
static void read_health(race_worker_t *x) {
        rdmeta_broker_health_t brokers[RACE_BROKERS + 2];
        rdmeta_health_t sum = {.brokers  = brokers,
                               .capacity = RACE_BROKERS + 2};
        uint64_t leaders = 0, replicas = 0;
        uint32_t i;

        CHECK(!rdmeta_reader_health(x->reader,
                                    1 + (int32_t)test_below(&x->rng, 3),
                                    any_now(x), &sum));
        CHECK(sum.broker_count <= RACE_BROKERS + 2);
        for (i = 0; i < sum.broker_count; i++) {
                CHECK(!i || brokers[i - 1].broker < brokers[i].broker);
                leaders += brokers[i].leaders;
                replicas += brokers[i].replicas;
        }
        CHECK(sum.topics <= RACE_TOPICS);
        CHECK(leaders + sum.leaderless == sum.partitions);
        CHECK(replicas == sum.replicas);
        if (leaders)
                worker_count(x);
        worker_dither(x);
}

/* ---- what is due ------------------------------------------------------- */

/* Returns 1 in the child of a fork, which has no writer's calls. */
static int is_child(const race_worker_t *x) {
        return rdmeta_notify_forked(&x->fixture->cache->notify);
}

static void check_name(race_worker_t *x, rdmeta_str_t name) {
        uint32_t i;

        for (i = 0; i < RACE_TOPICS; i++)
                if (name.len == strlen(x->fixture->names[i]) &&
                    !memcmp(name.data, x->fixture->names[i], name.len))
                        return;
        CHECK(!"a name is one of the topics");
}

static int32_t due_visit(void *opaque, const rdmeta_due_t *due) {
        race_worker_t *x = opaque;

        CHECK(due->reasons && due->reasons < 64);
        check_name(x, due->topic);
        worker_count(x);
        worker_linger(x);
        return test_below(&x->rng, 50) == 0;
}

static void read_due(race_worker_t *x) {
        const rdmeta_err_t err = rdmeta_cache_due(x->fixture->cache, any_now(x),
                                                  test_below(&x->rng, 100),
                                                  due_visit, x);
        if (is_child(x))
                CHECK(err == RDMETA_ERR_FORKED);
        else
                CHECK(err == 0 || err == 1);
        worker_dither(x);
}

static int32_t resolved_visit(void *opaque, const rdmeta_str_t *topic) {
        rdmeta_str_t *wanted = opaque;

        return topic->len == wanted->len &&
               !memcmp(topic->data, wanted->data, wanted->len);
}

/* A handle leads to its topic, even if that was deleted and created again. */
static void read_handle(race_worker_t *x) {
        const uint32_t i        = any_topic(x);
        const rdmeta_str_t name = race_name(x->fixture, i);
        rdmeta_handle_t *h = rdmeta_resolve(x->fixture->cache, name.data,
                                            name.len);
        int k;

        CHECK(h);
        if (test_below(&x->rng, 8) == 0)
                CHECK(rdmeta_cache_resolved(x->fixture->cache, resolved_visit,
                                            (void *)(uintptr_t)&name) ==
                      (is_child(x) ? RDMETA_ERR_FORKED : 1));
        for (k = 0; k < BATCH; k++) {
                const uint32_t p = (uint32_t)test_below(&x->rng, 10);

                if (race_leader_check(i, p,
                                      rdmeta_handle_leader(x->reader, h,
                                                           (int32_t)p,
                                                           any_now(x)),
                                      x->stale))
                        worker_count(x);
                worker_linger(x);
        }
        rdmeta_handle_release(h);
}

/* ---- all of them at once ------------------------------------------------- */

typedef struct kind {
        void (*step)(race_worker_t *x);
        int32_t reader; /* its reader's flags; -1: it needs no reader */
} kind_t;

static const kind_t kinds[] = {
    {read_leader, 0},
    {read_leader, RDMETA_ALLOW_STALE},
    {read_leaders, 0},
    {read_leaders, RDMETA_ALLOW_STALE},
    {read_partition, 0},
    {read_topic, 0},
    {read_topic, RDMETA_ALLOW_STALE},
    {read_brokers, 0},
    {read_walk, 0},
    {read_changes, 0},
    {read_wait, -1},
    {read_coming_and_going, -1},
    {read_watch, -1},
    {read_image, -1},
    {read_handle, 0},
    {read_replica_in, RDMETA_ALLOW_STALE},
    {read_health, 0},
    {read_due, -1}};

_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == RACE_KINDS,
               "each kind has a worker");

void *race_worker_main(void *arg) {
        race_worker_t *x = arg;

        while (!atomic_load_explicit(&x->fixture->stop, memory_order_relaxed)) {
                x->step(x);
                worker_dither(x);
        }
        return NULL;
}

void race_worker_init(race_worker_t *x, race_t *w, int k, test_rng_t rng) {
        memset(x, 0, sizeof(*x));
        x->fixture = w;
        x->step    = kinds[k].step;
        x->rng     = rng;
        x->stale   = kinds[k].reader == RDMETA_ALLOW_STALE;
        if (kinds[k].reader < 0)
                return;
        x->reader = rdmeta_reader_new(w->cache, kinds[k].reader);
        CHECK(x->reader);
}
