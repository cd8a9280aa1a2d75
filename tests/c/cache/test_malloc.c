/*
 * For every N, the Nth allocation fails in a scenario that uses each module.
 * The call must return the error, the invariants must hold, the cache must be
 * as it was before the call, and no memory may leak.
 *
 *     for N = 1, 2, ... until a run has no failure:
 *       for each step:
 *         dump the cache;
 *         call the step;
 *         if it failed: compare the dump, and call it again.
 *
 * The second call succeeds. So each run completes the scenario, and each
 * allocation of the scenario fails in exactly one run.
 */
#include "support/cache_fixture.h"

/* ---- the steps: each returns 0 or an error ----------------------------- */

typedef rdmeta_err_t (*step_t)(cw_t *w);

static rdmeta_err_t say(cw_t *w, int32_t asked, const char *topics) {
        rdmeta_request_t r = cw_request(w, asked);
        gen_bytes_t body   = {0};
        rdmeta_err_t err;

        cw_body(w, topics, &body);
        err = cw_apply(w, body.data, body.len, &r);
        gen_bytes_free(&body);
        return err;
}

#define SAY(name, asked, topics)                                             \
        static rdmeta_err_t name(cw_t *w) {                                  \
                w->reason = #name;                                           \
                return say(w, asked, topics);                                \
        }

SAY(first_answer, RDMETA_ASKED_ALL,
    "a#a 0:1@5/r1,2,3/i1,2 1:2@5/r2,3,1; b#b 0:1@5; c#c^7 0:1@300/r1000,2 "
    "70000:2@5; d#d 0:1@5")
SAY(same_answer, RDMETA_ASKED_ALL,
    "a#a 0:1@5/r1,2,3/i1,2 1:2@5/r2,3,1; b#b 0:1@5; c#c^7 0:1@300/r1000,2 "
    "70000:2@5; d#d 0:1@5")
SAY(shuffled_answer, RDMETA_ASKED_ALL,
    "c#c^7 0:1@300/r1000,2 70000:2@5; d#d 0:1@5; "
    "a#a 0:1@5/r1,2,3/i1,2 1:2@5/r2,3,1; b#b 0:1@5")
SAY(changed_answer, RDMETA_ASKED_UNKNOWN,
    "a#a 0:-1@6/r1,2,3/i1,2/e5 1:2@5/r2,3,1; d#e 0:1@1; n#n 0:1@1; m#m 0:2@1")
SAY(older_answer, RDMETA_ASKED_UNKNOWN,
    "a#a 0:3@4/r1 1:3@6/r2,3,1; d#d 0:1@5; b#b 0:2@4")
SAY(shorter_answer, RDMETA_ASKED_UNKNOWN,
    "a#a 1:3@6/r2,3,1; b#b 0:2@4; c#c 5:1@1 7:1@1")
SAY(absent_answer, RDMETA_ASKED_ALL, "b#b 0:1@5; c#c^7 0:1@300 70000:2@5")
SAY(error_answer, RDMETA_ASKED_UNKNOWN, "b!3; u!3; v!29; ?#c!100; w!17; x!5")
SAY(back_answer, RDMETA_ASKED_ALL, "b#b 0:1@5; d#e 0:1@2; u#u 0:1@2; h#h 0:1@0")

static rdmeta_err_t other_brokers(cw_t *w) {
        rdmeta_err_t err;

        w->brokers = "1,2=moved:1=rack,4=h4:5";
        err        = say(w, RDMETA_ASKED_BROKERS, "");
        w->brokers = "1,2,3";
        return err;
}

static rdmeta_err_t rebootstrap(cw_t *w) {
        rdmeta_err_t err;

        w->cluster_id = "other";
        w->flags      = RDMETA_REQ_REBOOTSTRAPPED;
        err           = say(w, RDMETA_ASKED_UNKNOWN, "b#b 0:1@1; d!3; y#y 0:1");
        w->flags      = 0;
        return err;
}

static rdmeta_err_t many_topics(cw_t *w) {
        const rdmeta_request_t r = cw_request(w, RDMETA_ASKED_UNKNOWN);
        gen_shape_t shape      = {.seed = 7, .brokers = 3, .first_broker = 1,
                                  .topics = 90, .partitions = 70,
                                  .replication = 2};
        gen_cluster_t *cluster = gen_cluster_new(&shape);
        gen_bytes_t body       = {0};
        rdmeta_err_t err;

        cluster->cluster_id = test_str(w->cluster_id);
        gen_response(cluster, w->api_version, &body);
        err = cw_apply(w, body.data, body.len, &r);
        gen_bytes_free(&body);
        gen_cluster_free(cluster);
        return err;
}

static rdmeta_err_t hints(cw_t *w) {
        const rdmeta_str_t names[] = {{"a", 1}, {"h", 1}, {"i", 1}, {"h", 1},
                                      {"a longer name of a topic", 24}};
        rdmeta_str_t ask[5];
        size_t n;

        return rdmeta_cache_hint(w->cache, names, 5, 0, 0, w->now, ask, &n);
}

static rdmeta_err_t hint_leader(cw_t *w, int32_t leader, int32_t epoch) {
        rdmeta_leader_hint_t hint = {.topic = GEN_STR("c"), .leader = leader,
                                     .partition = 70000, .port = 1,
                                     .leader_epoch = epoch,
                                     .host = GEN_STR("host"),
                                     .rack = GEN_STR("rack")};

        return rdmeta_cache_apply_leader_hint(w->cache, &hint, w->now,
                                              &w->applied);
}

static rdmeta_err_t hint_known(cw_t *w) { return hint_leader(w, 2, 6); }
static rdmeta_err_t hint_new(cw_t *w) { return hint_leader(w, 99, 7); }

static rdmeta_err_t purge(cw_t *w) {
        return rdmeta_cache_purge(w->cache, w->now);
}

static rdmeta_err_t forget(cw_t *w) {
        const rdmeta_str_t names[] = {{"b", 1}, {"nowhere", 7}, {"c", 1},
                                      {"b", 1}, {"h", 1}};

        const int64_t n = rdmeta_cache_forget(w->cache, names, 5, w->now);

        return n < 0 ? (rdmeta_err_t)n : RDMETA_OK;
}

static int32_t visit_due(void *opaque, const rdmeta_due_t *due) {
        *(size_t *)opaque += due->topic.len;
        return 0;
}

static rdmeta_err_t due(cw_t *w) {
        size_t n = 0;

        return rdmeta_cache_due(w->cache, w->now.mono_us, 0, visit_due, &n);
}

/* A broker goes that many topics have as their leader. */
static rdmeta_err_t lost_broker(cw_t *w) {
        rdmeta_err_t err;

        w->brokers = "2";
        err        = say(w, RDMETA_ASKED_BROKERS, "");
        w->brokers = "1,2,3";
        return err;
}

static int32_t visit_name(void *opaque, const rdmeta_str_t *topic) {
        *(size_t *)opaque += topic->len;
        return 0;
}

static int32_t visit_topic(void *opaque, const rdmeta_topic_t *t) {
        (void)t;
        ++*(int *)opaque;
        return 0;
}

static rdmeta_err_t walk(cw_t *w) {
        int n = 0;

        return rdmeta_reader_walk(w->reader, "", 0, 7, w->now.mono_us,
                                  visit_topic, &n);
}

static rdmeta_err_t health(cw_t *w) {
        rdmeta_health_t sum;

        memset(&sum, 0, sizeof(sum));
        return rdmeta_reader_health(w->reader, RDMETA_WALK_VALID,
                                    w->now.mono_us, &sum);
}

static int32_t visit_change(void *opaque, const rdmeta_change_t *c) {
        (void)c;
        ++*(int *)opaque;
        return 0;
}

static rdmeta_err_t changes(cw_t *w) {
        uint64_t until;
        int32_t resync;
        int n = 0;

        return rdmeta_cache_changes(w->cache, 0, visit_change, &n, &until,
                                    &resync);
}

static rdmeta_err_t reader(cw_t *w) {
        rdmeta_reader_t *r = rdmeta_reader_new(w->cache, 0);

        if (!r)
                return RDMETA_ERR_NO_MEMORY;
        rdmeta_reader_destroy(r);
        return RDMETA_OK;
}

static rdmeta_err_t resolve(cw_t *w) {
        rdmeta_handle_t *h = rdmeta_resolve(w->cache, "a", 1);
        rdmeta_err_t err;
        size_t n = 0;

        if (!h)
                return RDMETA_ERR_NO_MEMORY;
        err = rdmeta_cache_resolved(w->cache, visit_name, &n);
        CHECK(err || n == 1);
        rdmeta_handle_release(h);
        return err;
}

static void ignore_version(void *opaque, uint64_t version) {
        (void)opaque;
        (void)version;
}

static rdmeta_err_t watch(cw_t *w) {
        const rdmeta_str_t names[] = {{"a", 1}, {"b", 1}};
        rdmeta_watch_t *x          = rdmeta_watch_new(w->cache, names, 2,
                                                      ignore_version, w);

        if (!x)
                return RDMETA_ERR_NO_MEMORY;
        rdmeta_watch_destroy(x);
        return RDMETA_OK;
}

/* Images that live while other steps fail. */
static rdmeta_image_t *images[8];
static int n_images;

static rdmeta_err_t image(cw_t *w) {
        rdmeta_image_t *x = rdmeta_cache_image(w->cache, w->now);

        if (!x)
                return RDMETA_ERR_NO_MEMORY;
        images[n_images++] = x;
        return RDMETA_OK;
}

static rdmeta_err_t image_walk(cw_t *w) {
        rdmeta_reader_t *r = rdmeta_image_reader(images[n_images - 1], 0);
        rdmeta_err_t err   = RDMETA_ERR_NO_MEMORY;
        int n              = 0;

        if (r)
                err = rdmeta_reader_walk(r, "", 0, 7, w->now.mono_us,
                                         visit_topic, &n);
        CHECK(err || n);
        rdmeta_reader_destroy(r);
        return err;
}

static rdmeta_err_t image_diff(cw_t *w) {
        rdmeta_err_t err;
        int n = 0;

        (void)w;
        err = rdmeta_image_diff(images[0], images[n_images - 1],
                                visit_change, &n);
        return err ? err
                   : rdmeta_image_changes(images[0], visit_change, &n);
}

static rdmeta_err_t images_free(cw_t *w) {
        (void)w;
        while (n_images)
                rdmeta_image_unref(images[--n_images]);
        return RDMETA_OK;
}

static const step_t steps[] = {
        hints,         first_answer,  health,        same_answer,
        reader,        watch,         image,         shuffled_answer,
        changed_answer, changes,      older_answer,  image_walk,
        forget,        many_topics,   lost_broker,   due,
        image,         image_diff,    walk,          health,
        shorter_answer, shorter_answer, older_answer, shorter_answer,
        hint_known,    hint_new,      absent_answer, error_answer,
        other_brokers, hints,         image,         back_answer,
        changes,       rebootstrap,   images_free,   image,
        due,           forget,
        purge,         image,         image_diff,    first_answer,
        images_free,   resolve};

enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

/* ---- the runs ---------------------------------------------------------- */

/* Ends all hints. A failed call may end hints, but change nothing else; with
 * hints in flight the dumps would differ. */
static void end_hints(cw_t *w) {
        CHECK(rdmeta_cache_purge_hints(w->cache, NULL, 0, w->now) >= 0);
}

/* The allocations of each step, in a run where none fails. */
static size_t allocations[STEPS];

/* Returns whether step `i` may be the one that fails. Its allocations vary a
 * little with the keys of hashes. */
static int may_fail(const cw_t *w, int i) {
        return w->heap.calls < w->heap.fail_at &&
               w->heap.fail_at <= w->heap.calls + allocations[i] + 20;
}

/* Runs a step. If it fails, compares the cache with what it was before; dumps
 * take nearly all of the time, so there is one only where it can be needed. */
static void step_run(cw_t *w, int i) {
        const size_t calls = w->heap.calls;
        char *before       = NULL, *after;
        rdmeta_err_t err;

        if (steps[i] != hints)
                end_hints(w);
        if (may_fail(w, i))
                before = cw_dump(w);
        err = steps[i](w);
        cw_check(w);
        if (w->heap.calls < w->heap.fail_at)
                allocations[i] = w->heap.calls - calls;
        if (err) {
                CHECK(before);
                CHECK(err == RDMETA_ERR_NO_MEMORY);
                CHECK(w->heap.fail_at && w->heap.calls >= w->heap.fail_at);
                after = cw_dump(w);
                CHECK_TEXT(after, before);
                free(after);
                err = steps[i](w);
                cw_check(w);
        }
        CHECK(!err);
        free(before);
        cw_pass(w, CW_S);
        w->broker = 1 + i % 2;
}

/* Sweeps. A sweep returns no error: the next one does what it could not. */
static void sweep_run(cw_t *w) {
        cw_sweep_after(w, 20 * CW_S);
        cw_sweep(w);
        cw_sweep_after(w, 2000 * CW_S);
        CHECK(cw_sweep(w) == INT64_MAX);
        CHECK(cw_stats(w).negatives == 0 && cw_stats(w).retained == 0);
}

/* Runs the scenario with a failure of the Nth allocation; returns 0 if there
 * were fewer allocations. */
static int run(size_t nth) {
        size_t failed;
        cw_t w;
        int i;

        cw_init(&w, NULL);
        w.heap.fail_at = w.heap.calls + nth;
        for (i = 0; i < STEPS; i++) {
                step_run(&w, i);
                if (i == STEPS / 2)
                        sweep_run(&w);
        }
        sweep_run(&w);
        failed         = w.heap.calls >= w.heap.fail_at;
        w.heap.fail_at = 0;
        cw_destroy(&w);
        return failed != 0;
}

TEST(test_every_allocation_may_fail) {
        size_t nth;

        CHECK(!run(SIZE_MAX / 2));
        for (nth = 1; run(nth); nth++)
                ;
        CHECK(nth > STEPS);
        fprintf(stderr, "    %zu allocations\n", nth - 1);
}

TEST(test_a_failed_new_returns_null_and_leaks_nothing) {
        rdmeta_conf_t conf;
        test_heap_t heap;
        rdmeta_cache_t *c = NULL;
        size_t nth;

        for (nth = 1; !c; nth++) {
                rdmeta_conf_init(&conf);
                conf.allocator = test_allocator(&heap);
                heap.fail_at   = nth;
                c              = rdmeta_cache_new(&conf);
                CHECK(c ? heap.calls < nth
                        : heap.blocks == 0 && heap.bytes == 0);
        }
        CHECK(nth > 2);
        rdmeta_cache_unref(c);
        CHECK(heap.blocks == 0 && heap.bytes == 0);
}

TEST(test_bytes_are_what_the_allocator_was_asked_for) {
        cw_t w;
        int i;

        cw_init(&w, NULL);
        rdmeta_reader_destroy(w.reader);
        rdmeta_reader_destroy(w.stale);
        for (i = 0; i < STEPS; i++) {
                w.reader = rdmeta_reader_new(w.cache, 0);
                CHECK(!steps[i](&w));
                rdmeta_reader_destroy(w.reader);
                CHECK(cw_stats(&w).bytes == w.heap.bytes);
        }
        w.reader = w.stale = NULL;
        rdmeta_cache_unref(w.cache);
        CHECK(w.heap.bytes == 0);
}

TEST_MAIN()
