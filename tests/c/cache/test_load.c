/* Warm start: what a cache loads from an image, and how it uses that. */
#include "support/image_fixture.h"

#include <sys/wait.h>

/* Makes a fixture with the time of `from`, and loads `image` into its cache. */
static void warm(cw_t *to, const cw_t *from, rdmeta_image_t *image) {
        cw_init(to, NULL);
        to->now        = from->now;
        to->cluster_id = from->cluster_id;
        CHECK(!rdmeta_cache_load(to->cache, image, to->now));
        cw_check(to);
}

static rdmeta_image_t *through_a_file(cw_t *w, const char *name) {
        rdmeta_image_t *image = iw_image(w), *file;
        const char *path      = iw_path(name);

        CHECK(!rdmeta_image_save(image, path, 0));
        file = iw_open(path, 0, w->now);
        rdmeta_image_unref(image);
        return file;
}

/* Begins a test of a cache `w` whose image the test loads into `v`. */
#define LOAD_TEST(name)                                                      \
        static void name##_of(cw_t *w, cw_t *v);                             \
        TEST(name) {                                                         \
                cw_t w, v;                                                   \
                                                                             \
                cw_init(&w, NULL);                                           \
                name##_of(&w, &v);                                           \
                cw_destroy(&w);                                              \
                cw_destroy(&v);                                              \
        }                                                                    \
        static void name##_of(cw_t *w, cw_t *v)

LOAD_TEST(test_loaded_topics_are_complete_and_stale) {
        rdmeta_image_t *image;

        CHECK(!cw_all(w, "a#a 0:1@5/r1,2/i1 1:2@6; b^5~ 0:3; n!3; v!29"));
        image = through_a_file(w, "stale");
        warm(v, w, image);
        CHECK(cw_leader(v, "a", 0) == RDMETA_STALE);
        CHECK(cw_leader_stale(v, "a", 0) == 1);
        CHECK(cw_leader_stale(v, "b", 0) == 3);
        CHECK(cw_state(v, "n") == RDMETA_NOT_CACHED);
        CHECK(cw_state(v, "v") == RDMETA_NOT_CACHED);
        CHECK(cw_state_id(v, 'a') == RDMETA_STALE);
        CHECK_TEXT(cw_topic(v, "a"), cw_topic(w, "a"));
        CHECK_TEXT(cw_topic(v, "b"), cw_topic(w, "b"));
        CHECK_TEXT(cw_brokers(v), cw_brokers(w));
        CHECK_TEXT(cw_walk(v, "", RDMETA_WALK_STALE), cw_walk(w, "", 1));
        CHECK(cw_info(v, "a").source_broker == 1);
        CHECK(cw_version(v) == 1);
        CHECK(cw_stats(v).topics == 2 && cw_stats(v).partitions == 3);
        rdmeta_image_unref(image);
}

/* A load does not make a topic younger: its deadline stays. */
LOAD_TEST(test_a_loaded_topic_keeps_its_deadline) {
        rdmeta_image_t *image;

        CHECK(!cw_all(w, "a 0:1"));
        cw_pass(w, 2000 * CW_S);
        CHECK(!cw_say(w, "b 0:1"));
        image = through_a_file(w, "old");
        cw_pass(w, 5 * CW_S);
        warm(v, w, image);
        CHECK(cw_info(v, "a").deadline_us == cw_info(w, "a").deadline_us);
        CHECK(cw_info(v, "b").deadline_us == cw_info(w, "b").deadline_us);
        CHECK(cw_state(v, "b") == RDMETA_STALE);
        rdmeta_image_unref(image);
}

LOAD_TEST(test_the_first_answer_makes_topics_valid_and_changes_nothing) {
        const char *topics = "a#a 0:1@5/r1,2/i1 1:2@6; b^5~ 0:3@1";
        rdmeta_image_t *image;
        uint64_t version;

        CHECK(!cw_all(w, topics));
        image = through_a_file(w, "valid");
        warm(v, w, image);
        version = cw_version(v);
        CHECK(!cw_all(v, topics));
        CHECK(v->applied.unchanged == 2 && v->applied.changed == 0);
        CHECK(cw_stats(v).digest_hits == 0); /* the file contains no digests */
        CHECK(cw_version(v) == version);
        CHECK(cw_leader(v, "a", 0) == 1 && cw_leader(v, "b", 0) == 3);
        CHECK(!cw_all(v, topics));
        CHECK(cw_stats(v).digest_hits == 2);
        rdmeta_image_unref(image);
}

/* ---- ids and epochs --------------------------------------------------- */

LOAD_TEST(test_an_older_answer_is_kept_out_after_a_load) {
        rdmeta_image_t *image;

        CHECK(!cw_all(w, "a#a 0:1@5 1:2@6; gone#g 0:1@9; un#u 0:1@9"));
        CHECK(!cw_say(w, "un!3"));
        w->broker = 2;
        CHECK(!cw_all(w, "a#a 0:1@5 1:2@6; un!3"));
        w->broker = 3;
        CHECK(!cw_all(w, "a#a 0:1@5 1:2@6; un!3"));
        image = through_a_file(w, "older");
        warm(v, w, image);
        CHECK(!cw_say(v, "a#a 0:3@4 1:3@5; gone#g 0:2@8; un#u 0:2@8"));
        CHECK(v->applied.kept_back == 3);
        CHECK(v->applied.advice & RDMETA_ADVICE_ASK_OTHER);
        CHECK(cw_leader_stale(v, "a", 0) == 1);
        CHECK(cw_state(v, "gone") == RDMETA_NOT_CACHED);
        CHECK(!cw_say(v, "a#a 0:3@6 1:3@7; gone#g 0:2@9; un#u 0:2@10"));
        CHECK(cw_leader(v, "a", 1) == 3);
        CHECK(cw_leader(v, "gone", 0) == 2 && cw_leader(v, "un", 0) == 2);
        rdmeta_image_unref(image);
}

/* The highest epoch seen, though the last answer has none; and former ids. */
LOAD_TEST(test_highest_epochs_and_former_ids_are_loaded) {
        rdmeta_image_t *image;

        CHECK(!cw_all(w, "h 0:1@9; p#o 0:1@1"));
        w->api_version = 8; /* epochs before v9 do not count */
        CHECK(!cw_say(w, "h 0:2@3"));
        w->api_version = 12;
        CHECK(!cw_say(w, "p#p 0:1@1"));
        image = through_a_file(w, "highest");
        warm(v, w, image);
        CHECK(cw_leader_stale(v, "h", 0) == 2);
        CHECK(!cw_say(v, "h 0:3@8; p#o 0:2@5"));
        CHECK(v->applied.kept_back == 2);
        CHECK(cw_leader_stale(v, "h", 0) == 2);
        CHECK(cw_leader_stale(v, "p", 0) == 1);
        rdmeta_image_unref(image);
}

LOAD_TEST(test_another_clusters_answers_are_refused) {
        rdmeta_image_t *image;

        CHECK(!cw_all(w, "a 0:1"));
        image = through_a_file(w, "cluster");
        warm(v, w, image);
        v->cluster_id = "another";
        CHECK(cw_all(v, "a 0:2") == RDMETA_ERR_WRONG_CLUSTER);
        CHECK(cw_leader_stale(v, "a", 0) == 1);
        rdmeta_image_unref(image);
}

/* A negative is forgotten when it would have been, and not earlier. */
LOAD_TEST(test_a_sweep_forgets_removed_topics_after_max_age) {
        rdmeta_image_t *image;

        iw_fill(w);
        image = through_a_file(w, "sweep");
        warm(v, w, image);
        CHECK(cw_stats(v).retained);
        cw_sweep_after(v, 100 * CW_S);
        CHECK(cw_stats(v).retained);
        cw_sweep_after(v, 2000 * CW_S);
        cw_sweep(v);
        CHECK(!cw_stats(v).retained && !cw_stats(v).negatives);
        CHECK(cw_stats(v).topics == cw_stats(w).topics);
        rdmeta_image_unref(image);
}

/* ---- followers -------------------------------------------------------- */

LOAD_TEST(test_a_reader_of_changes_must_resync_after_a_load) {
        rdmeta_image_t *image;

        CHECK(!cw_all(w, "a 0:1"));
        image = through_a_file(w, "resync");
        warm(v, w, image);
        CHECK_TEXT(cw_changes(v, 0), "resync");
        CHECK_TEXT(cw_changes(v, 1), "");
        CHECK(!cw_all(v, "a 0:2@1"));
        CHECK_TEXT(cw_changes(v, 0), "resync");
        CHECK(strstr(cw_changes(v, 1), "leader_changed a/0"));
        rdmeta_image_unref(image);
}

static void set_version(void *opaque, uint64_t version) {
        *(uint64_t *)opaque = version;
}

LOAD_TEST(test_a_load_wakes_the_waits_for_its_topics) {
        const rdmeta_str_t a[] = {GEN_STR("a")}, z[] = {GEN_STR("z")};
        uint64_t for_a = 0, for_z = 0;
        rdmeta_watch_t *on_a, *on_z;
        rdmeta_image_t *image;

        CHECK(!cw_all(w, "a 0:1"));
        image = through_a_file(w, "waits");
        cw_init(v, NULL);
        on_a = rdmeta_watch_new(v->cache, a, 1, set_version, &for_a);
        on_z = rdmeta_watch_new(v->cache, z, 1, set_version, &for_z);
        CHECK(on_a && on_z);
        CHECK(!rdmeta_cache_load(v->cache, image, v->now));
        CHECK(for_a == 1 && for_z == 0);
        rdmeta_watch_destroy(on_a);
        rdmeta_watch_destroy(on_z);
        rdmeta_image_unref(image);
}

/* ---- which caches, which images --------------------------------------- */

LOAD_TEST(test_a_cache_that_is_not_empty_refuses_a_load) {
        rdmeta_image_t *image, *now;
        char *before, *after;

        CHECK(!cw_all(w, "a 0:1"));
        image = through_a_file(w, "knows");
        cw_init(v, NULL);
        cw_hint(v, "h", 0);
        CHECK(rdmeta_cache_load(v->cache, image, v->now) ==
              RDMETA_ERR_ARGUMENT);
        CHECK(rdmeta_cache_purge_hints(v->cache, NULL, 0, v->now) == 1);
        CHECK(!cw_all(v, "")); /* only brokers */
        CHECK(rdmeta_cache_load(v->cache, image, v->now) ==
              RDMETA_ERR_ARGUMENT);
        CHECK(!cw_all(v, "b 0:2"));
        before = cw_dump(v);
        CHECK(rdmeta_cache_load(v->cache, image, v->now) ==
              RDMETA_ERR_ARGUMENT);
        after = cw_dump(v);
        CHECK_TEXT(after, before);
        free(before);
        free(after);
        /* After a purge it is empty again, and may load even its own image. */
        now = iw_image(v);
        CHECK(!rdmeta_cache_purge(v->cache, v->now));
        CHECK(!rdmeta_cache_load(v->cache, now, v->now));
        cw_check(v);
        CHECK(cw_leader_stale(v, "b", 0) == 2);
        rdmeta_image_unref(now);
        rdmeta_image_unref(image);
}

LOAD_TEST(test_images_of_the_empty_cache_stay_empty) {
        rdmeta_image_t *image, *empty;
        char *before, *after;

        iw_fill(w);
        image = through_a_file(w, "pinned");
        cw_init(v, NULL);
        v->now  = w->now;
        empty  = iw_image(v);
        before = iw_text(empty, v->now.mono_us);
        CHECK(!rdmeta_cache_load(v->cache, image, v->now));
        cw_check(v);
        after = iw_text(empty, v->now.mono_us);
        CHECK_TEXT(after, before);
        free(before);
        free(after);
        rdmeta_image_unref(empty);
        cw_check(v);
        rdmeta_image_unref(image);
}

TEST(test_a_failed_allocation_leaves_the_cache_empty) {
        rdmeta_image_t *image;
        rdmeta_err_t err;
        size_t nth = 1;
        cw_t w, v;

        cw_init(&w, NULL);
        iw_fill(&w);
        image = through_a_file(&w, "nth");
        for (;; nth++) {
                rdmeta_image_t *live;
                uint64_t bytes;

                cw_init(&v, NULL);
                v.now          = w.now;
                live           = iw_image(&v);
                bytes          = cw_stats(&v).topics;
                v.heap.fail_at = v.heap.calls + nth;
                err            = rdmeta_cache_load(v.cache, image, v.now);
                v.heap.fail_at = 0;
                cw_check(&v);
                if (err) {
                        CHECK(err == RDMETA_ERR_NO_MEMORY);
                        CHECK(cw_version(&v) == 0 && bytes == 0);
                        CHECK(cw_stats(&v).topics == 0);
                        CHECK(cw_leader_stale(&v, "a", 0) == RDMETA_NOT_CACHED);
                        CHECK(!rdmeta_cache_load(v.cache, image, v.now));
                        cw_check(&v);
                }
                CHECK(cw_stats(&v).topics == cw_stats(&w).topics);
                rdmeta_image_unref(live);
                cw_destroy(&v);
                if (!err)
                        break;
        }
        CHECK(nth > 5);
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

/* A block of the file claims to be in flight, which no image's block may be. */
LOAD_TEST(test_a_file_cannot_make_a_name_in_flight) {
        static const char name[] = "a.name.without.an.answer";
        const char *path         = iw_path("asked");
        rdmeta_image_t *image;
        rdmeta_reader_t *r;
        int64_t asked;
        uint8_t *bytes, *found;
        size_t size;

        CHECK(!cw_all(w, "a.name.without.an.answer!3"));
        rdmeta_image_unref(through_a_file(w, "asked"));
        bytes = iw_read(path, &size);
        found = memmem(bytes, size, name, sizeof(name) - 1);
        CHECK(found);
        asked = rdmeta_deadline_asked(w->now.mono_us + CW_S) - w->now.mono_us;
        memcpy(found - offsetof(rdmeta_topic_t, name) +
                       offsetof(rdmeta_topic_t, deadline),
               &asked, sizeof(asked));
        iw_write(path, bytes, size);
        image = iw_open(path, 0, w->now);
        r     = rdmeta_image_reader(image, 0);
        CHECK(r && rdmeta_leader(r, name, sizeof(name) - 1, 0,
                                 w->now.mono_us) == RDMETA_NOT_CACHED);
        rdmeta_reader_destroy(r);
        warm(v, w, image);
        CHECK(cw_state(v, name) == RDMETA_NOT_CACHED);
        CHECK_TEXT(cw_hint(v, name, 0), name);
        CHECK(cw_state(v, name) == RDMETA_WAITING);
        rdmeta_image_unref(image);
        free(bytes);
}

LOAD_TEST(test_the_child_of_a_fork_refuses_a_load) {
        rdmeta_image_t *image;
        int status;
        pid_t pid;

        CHECK(!cw_all(w, "a 0:1"));
        image = through_a_file(w, "fork");
        cw_init(v, NULL);
        pid = fork();
        CHECK(pid >= 0);
        if (!pid) {
                CHECK(rdmeta_cache_load(v->cache, image, v->now) ==
                      RDMETA_ERR_FORKED);
                _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && !status);
        rdmeta_image_unref(image);
}

TEST_MAIN()
