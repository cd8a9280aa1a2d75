/* health(): counts in caches, images and files, beside counts row by row. */
#include "support/image_fixture.h"

enum { ROOM = 64, LIST = 64 };

typedef struct counted {
        rdmeta_health_t sum;
        rdmeta_broker_health_t brokers[ROOM];
} counted_t;

static void counted_init(counted_t *x) {
        memset(x, 0, sizeof(*x));
        x->sum.brokers  = x->brokers;
        x->sum.capacity = ROOM;
}

/* Returns the counts as "2t 3p 6r 1l 1u 0o 0n | 1:2/3 2:0/3": topics,
 * partitions, replicas, leaderless, under-replicated, offline, non-preferred;
 * then for each broker its leaders and replicas. */
static const char *counted_text(cw_t *w, const counted_t *x) {
        char *text      = w->texts[w->next_text++ % CW_TEXTS];
        const size_t n  = x->sum.broker_count;
        size_t i, used;

        used = (size_t)snprintf(
                text, CW_TEXT, "%" PRIu64 "t %" PRIu64 "p %" PRIu64 "r %" PRIu64
                               "l %" PRIu64 "u %" PRIu64 "o %" PRIu64 "n |",
                x->sum.topics, x->sum.partitions, x->sum.replicas,
                x->sum.leaderless, x->sum.under_replicated, x->sum.offline,
                x->sum.non_preferred);
        for (i = 0; i < n && i < ROOM; i++)
                used += (size_t)snprintf(text + used, CW_TEXT - used,
                                         " %d:%" PRIu64 "/%" PRIu64,
                                         (int)x->brokers[i].broker,
                                         x->brokers[i].leaders,
                                         x->brokers[i].replicas);
        return text;
}

static const char *health(cw_t *w, rdmeta_reader_t *r, int32_t which) {
        counted_t x;

        counted_init(&x);
        CHECK(!rdmeta_reader_health(r, which, w->now.mono_us, &x.sum));
        return counted_text(w, &x);
}

/* ---- the same, row by row ------------------------------------------------ */

typedef struct slow {
        counted_t *out;
        rdmeta_reader_t *r;
} slow_t;

static rdmeta_broker_health_t *broker_of(counted_t *x, int32_t id) {
        uint32_t i = 0, n = x->sum.broker_count;

        while (i < n && x->brokers[i].broker < id)
                i++;
        if (i < n && x->brokers[i].broker == id)
                return &x->brokers[i];
        CHECK(n < ROOM);
        memmove(x->brokers + i + 1, x->brokers + i,
                (n - i) * sizeof(x->brokers[0]));
        memset(&x->brokers[i], 0, sizeof(x->brokers[i]));
        x->brokers[i].broker = id;
        x->sum.broker_count++;
        return &x->brokers[i];
}

static int32_t slow_visit(void *opaque, const rdmeta_topic_t *t) {
        slow_t *s     = opaque;
        counted_t *x  = s->out;
        int32_t lists[3][LIST];
        rdmeta_partition_t p;
        uint32_t i, k;

        x->sum.topics++;
        memset(&p, 0, sizeof(p));
        p.replicas         = (rdmeta_ids_out_t){lists[0], LIST, 0};
        p.isr              = (rdmeta_ids_out_t){lists[1], LIST, 0};
        p.offline_replicas = (rdmeta_ids_out_t){lists[2], LIST, 0};
        for (i = 0; !rdmeta_topic_partition_at(s->r, t, i, &p); i++) {
                CHECK(p.replicas.count <= LIST);
                x->sum.partitions++;
                x->sum.replicas += p.replicas.count;
                x->sum.leaderless += p.leader < 0;
                x->sum.under_replicated += p.isr.count < p.replicas.count;
                x->sum.offline += p.offline_replicas.count > 0;
                x->sum.non_preferred += p.leader >= 0 && p.replicas.count &&
                                        lists[0][0] != p.leader;
                if (p.leader >= 0)
                        broker_of(x, p.leader)->leaders++;
                for (k = 0; k < p.replicas.count; k++)
                        broker_of(x, lists[0][k])->replicas++;
        }
        return 0;
}

static const char *slow_health(cw_t *w, rdmeta_reader_t *r, int32_t which) {
        const rdmeta_brokers_t *known;
        rdmeta_broker_t broker;
        counted_t x;
        slow_t s = {&x, r};
        uint32_t i;

        counted_init(&x);
        rdmeta_reader_enter(r);
        known = rdmeta_brokers(r);
        for (i = 0; !rdmeta_brokers_at(known, i, &broker); i++)
                broker_of(&x, broker.id);
        CHECK(!rdmeta_reader_walk(r, "", 0, which, w->now.mono_us, slow_visit,
                                  &s));
        rdmeta_reader_leave(r);
        return counted_text(w, &x);
}

/* ---- tests --------------------------------------------------------------- */

CACHE_TEST(test_each_state_is_counted) {
        CHECK_TEXT(health(w, w->reader, 1), "0t 0p 0r 0l 0u 0o 0n |");
        CHECK(!cw_say(w, "a 0:1@1/r1,2,3 1:2@1/r2,3,1"));
        CHECK_TEXT(health(w, w->reader, 1),
                   "1t 2p 6r 0l 0u 0o 0n | 1:1/2 2:1/2 3:0/2");
        CHECK(!cw_say(w, "b 0:-1@1/r1,2/i1 1:2@1/r1,2/i2/o1; u!3; d!29"));
        CHECK_TEXT(health(w, w->reader, 1),
                   "2t 4p 10r 1l 2u 1o 1n | 1:1/4 2:2/4 3:0/2");
}

CACHE_TEST(test_brokers_that_are_not_known_count_too) {
        w->brokers = "1,2";
        CHECK(!cw_say(w, "a 0:70000@1/r70000,2 1:2147483647@1/r2147483647"));
        CHECK_TEXT(health(w, w->reader, 1), "1t 2p 3r 0l 0u 0o 0n | 1:0/0 "
                                            "2:0/1 70000:1/1 2147483647:1/1");
}

CACHE_TEST(test_stale_topics_count_on_request_without_their_last_leaders) {
        CHECK(!cw_say(w, "a 0:1@1/r1,2"));
        CHECK(!cw_say(w, "a 0:-1@2/r1,2/i2"));
        cw_pass(w, 2000 * CW_S);
        w->brokers = "1,2";
        CHECK(!cw_say(w, "b 0:2@1/r2,1"));
        CHECK_TEXT(health(w, w->reader, RDMETA_WALK_VALID),
                   "1t 1p 2r 0l 0u 0o 0n | 1:0/1 2:1/1");
        CHECK_TEXT(health(w, w->reader, RDMETA_WALK_STALE),
                   "1t 1p 2r 1l 1u 0o 0n | 1:0/1 2:0/1");
        CHECK_TEXT(health(w, w->stale, 7),
                   "2t 2p 4r 1l 1u 0o 0n | 1:0/2 2:1/2");
        CHECK_TEXT(health(w, w->reader, 0), "0t 0p 0r 0l 0u 0o 0n | 1:0/0 "
                                            "2:0/0");
}

/* Caches, images, files: all of these have topics of every form. */
CACHE_TEST(test_it_counts_what_the_rows_are) {
        const char *path = iw_path("health");
        rdmeta_image_t *images[2];
        rdmeta_reader_t *r;
        rdmeta_attach_t *a = NULL;
        int32_t which;
        int i;

        iw_fill(w);
        images[0] = iw_image(w);
        CHECK(!rdmeta_image_save(images[0], path, 0));
        images[1] = iw_open(path, 0, w->now);
        CHECK(!rdmeta_attach_new(path, 0, 0, w->now, &a));
        for (i = 0; i < 4; i++) {
                r = i == 0 ? rdmeta_reader_new(w->cache, 0)
                    : i == 3 ? rdmeta_attach_reader(a, 0)
                             : rdmeta_image_reader(images[i - 1], 0);
                CHECK(r);
                for (which = 1; which < 4; which++)
                        CHECK_TEXT(health(w, r, which),
                                   slow_health(w, r, which));
                rdmeta_reader_destroy(r);
        }
        CHECK(strcmp(health(w, w->reader, 1), health(w, w->reader, 0)) != 0);
        rdmeta_attach_destroy(a);
        rdmeta_image_unref(images[0]);
        rdmeta_image_unref(images[1]);
}

/* Says topics whose partitions have random leaders, lists and brokers. */
static void say_random(cw_t *w, test_rng_t *rng) {
        static char text[CW_TEXT];
        size_t used = 0;
        int t, p, k;

        for (t = 0; t < 40; t++) {
                const int n = 1 + (int)test_below(rng, 4);

                used += (size_t)snprintf(text + used, sizeof(text) - used,
                                         "%st%d", t ? "; " : "", t);
                for (p = 0; p < 5; p++) {
                        const int first  = (int)test_below(rng, 20);
                        const int leader = (int)test_below(rng, 9) == 0
                                                   ? -1
                                                   : first;
                        used += (size_t)snprintf(
                                text + used, sizeof(text) - used,
                                " %d:%d@1/r%d", p, leader,
                                test_below(rng, 9) ? first : first + 1);
                        for (k = 1; k < n; k++)
                                used += (size_t)snprintf(
                                        text + used, sizeof(text) - used,
                                        ",%d", first + 1 + k);
                        if (test_below(rng, 4) == 0)
                                used += (size_t)snprintf(text + used,
                                                         sizeof(text) - used,
                                                         "/i%d/o%d", first,
                                                         first + 1);
                }
        }
        CHECK(used < sizeof(text) && !cw_say(w, text));
}

TEST(test_it_counts_random_topics) {
        test_rng_t rng = test_rng(1);
        cw_t w;
        int round;

        for (round = 0; round < 50; round++) {
                cw_init(&w, NULL);
                say_random(&w, &rng);
                CHECK_TEXT(health(&w, w.reader, 1),
                           slow_health(&w, w.reader, 1));
                cw_destroy(&w);
        }
}

CACHE_TEST(test_the_caller_is_told_how_many_brokers_there_are) {
        rdmeta_broker_health_t two[3] = {{0}, {0}, {.broker = 77}};
        rdmeta_health_t sum           = {.brokers = two, .capacity = 2};

        w->brokers = "5,1,9";
        CHECK(!cw_say(w, "a 0:9@1/r9,1"));
        CHECK(!rdmeta_reader_health(w->reader, 1, w->now.mono_us, &sum));
        CHECK(sum.broker_count == 3 && sum.capacity == 2);
        CHECK(sum.brokers == two && two[0].broker == 1 && two[1].broker == 5);
        CHECK(two[2].broker == 77);
        memset(&sum, 0, sizeof(sum));
        CHECK(!rdmeta_reader_health(w->reader, 1, w->now.mono_us, &sum));
        CHECK(sum.broker_count == 3 && sum.partitions == 1);
}

/* The table of brokers grows several times; each of its allocations fails. */
CACHE_TEST(test_a_failed_allocation_changes_nothing) {
        static char text[CW_TEXT];
        rdmeta_health_t sum;
        size_t blocks, nth, used;
        int32_t err = RDMETA_ERR_NO_MEMORY;
        int i;

        used = (size_t)snprintf(text, sizeof(text), "a");
        for (i = 0; i < 200; i++)
                used += (size_t)snprintf(text + used, sizeof(text) - used,
                                         " %d:%d@1/r%d,%d", i, 3 * i, 3 * i,
                                         3 * i + 1);
        CHECK(used < sizeof(text) && !cw_say(w, text));
        blocks = w->heap.blocks;
        for (nth = 1; err; nth++) {
                memset(&sum, 0xaa, sizeof(sum));
                sum.brokers    = NULL;
                sum.capacity   = 0;
                w->heap.fail_at = w->heap.calls + nth;
                err = rdmeta_reader_health(w->reader, 1, w->now.mono_us, &sum);
                CHECK(w->heap.blocks == blocks);
                CHECK(!err || (err == RDMETA_ERR_NO_MEMORY &&
                               sum.topics == UINT64_C(0xaaaaaaaaaaaaaaaa)));
        }
        CHECK(nth > 6 && sum.partitions == 200 && sum.broker_count == 401);
        w->heap.fail_at = 0;
}

TEST_MAIN()
