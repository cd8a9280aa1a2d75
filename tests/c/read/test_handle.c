/* handle: a handle leads to its name's topic, whatever happens to the topic. */
#include "support/cache_fixture.h"

#include <sys/wait.h>

static rdmeta_handle_t *resolve(cw_t *w, const char *topic) {
        rdmeta_handle_t *h = rdmeta_resolve(w->cache, topic, strlen(topic));

        CHECK(h);
        cw_check(w);
        return h;
}

/* Returns the leader by the handle. Checks that lookups by the name return the
 * same, and that both find the same topic. */
static int32_t leader(cw_t *w, const rdmeta_handle_t *h, int32_t partition) {
        const rdmeta_str_t name = rdmeta_handle_topic(h);
        const int64_t now       = w->now.mono_us;
        const rdmeta_topic_t *by_handle, *by_name;
        rdmeta_reader_t *readers[2];
        int32_t got[2];
        int i;

        readers[0] = w->reader;
        readers[1] = w->stale;
        for (i = 0; i < 2; i++) {
                got[i] = rdmeta_handle_leader(readers[i], h, partition, now);
                CHECK(got[i] == rdmeta_leader(readers[i], name.data, name.len,
                                              partition, now));
                rdmeta_reader_enter(readers[i]);
                CHECK(rdmeta_handle_leader(readers[i], h, partition, now) ==
                      got[i]);
                CHECK(rdmeta_handle_find(readers[i], h, now, &by_handle) ==
                      rdmeta_topic_find(readers[i], name.data, name.len, now,
                                        &by_name));
                CHECK(by_handle == by_name);
                rdmeta_reader_leave(readers[i]);
        }
        return got[0];
}

CACHE_TEST(test_a_handle_finds_what_its_name_finds) {
        rdmeta_handle_t *h;

        CHECK(!cw_all(w, "orders#a 0:1@5 1:300@5 2:-1@5; audit!3"));
        h = resolve(w, "orders");
        CHECK(leader(w, h, 0) == 1 && leader(w, h, 1) == 300);
        CHECK(leader(w, h, 2) == RDMETA_NO_LEADER);
        CHECK(leader(w, h, 3) == RDMETA_NO_PARTITION);
        CHECK(leader(w, h, -1) == RDMETA_NO_PARTITION);
        CHECK(leader(w, h, INT32_MAX) == RDMETA_NO_PARTITION);
        CHECK(leader(w, h, INT32_MIN) == RDMETA_NO_PARTITION);
        rdmeta_handle_release(h);
        h = resolve(w, "audit");
        CHECK(leader(w, h, 0) == RDMETA_UNKNOWN_TOPIC);
        rdmeta_handle_release(h);
}

CACHE_TEST(test_ids_may_be_wide_or_sparse) {
        rdmeta_handle_t *h, *s;

        CHECK(!cw_all(w, "w#w 0:70000@5 1:2@5; s#s 3:1@5 70000:2@5"));
        h = resolve(w, "w");
        s = resolve(w, "s");
        CHECK(leader(w, h, 0) == 70000 && leader(w, h, 1) == 2);
        CHECK(leader(w, s, 3) == 1 && leader(w, s, 70000) == 2);
        CHECK(leader(w, s, 0) == RDMETA_NO_PARTITION);
        rdmeta_handle_release(s);
        rdmeta_handle_release(h);
}

CACHE_TEST(test_a_name_need_not_be_known) {
        rdmeta_handle_t *h;

        h = resolve(w, "orders");
        CHECK(leader(w, h, 0) == RDMETA_NOT_CACHED);
        cw_hint(w, "orders", 0);
        CHECK(leader(w, h, 0) == RDMETA_WAITING);
        CHECK(rdmeta_cache_purge_hints(w->cache, NULL, 0, w->now) == 1);
        CHECK(leader(w, h, 0) == RDMETA_NOT_CACHED);
        cw_hint(w, "orders", 0);
        CHECK(!cw_say(w, "orders#a 0:1@5"));
        CHECK(leader(w, h, 0) == 1);
        rdmeta_handle_release(h);
}

CACHE_TEST(test_a_handle_follows_refreshes_leader_hints_and_deadlines) {
        rdmeta_handle_t *h;

        h = resolve(w, "t");
        CHECK(!cw_all(w, "t#a 0:1@5 1:2@5; u#u 0:1@1"));
        CHECK(leader(w, h, 1) == 2);
        CHECK(!cw_all(w, "t#a 0:1@5 1:3@6; u#u 0:1@1"));
        CHECK(leader(w, h, 1) == 3);
        CHECK(cw_leader_hint(w, "t", 1, 1, 7, NULL) && leader(w, h, 1) == 1);
        cw_pass(w, 901 * CW_S);
        CHECK(leader(w, h, 1) == RDMETA_STALE);
        CHECK(!cw_all(w, "t#a 0:1@5 1:1@7; u#u 0:1@1"));
        CHECK(leader(w, h, 1) == 1);
        rdmeta_handle_release(h);
}

CACHE_TEST(test_a_topic_created_again_has_the_same_handle) {
        rdmeta_handle_t *h;

        CHECK(!cw_all(w, "t#a 0:1@9; u#u 0:1@1"));
        h = resolve(w, "t");
        CHECK(!cw_say(w, "t!3"));
        CHECK(leader(w, h, 0) == RDMETA_UNKNOWN_TOPIC);
        CHECK(!cw_say(w, "t#b 0:2@0 1:3@0"));
        CHECK(leader(w, h, 0) == 2 && leader(w, h, 1) == 3);
        /* The topic is absent, removed, forgotten, and then back. */
        CHECK(!cw_all(w, "u#u 0:1@1"));
        CHECK(leader(w, h, 0) == RDMETA_UNKNOWN_TOPIC);
        cw_sweep_after(w, 20 * CW_S);
        CHECK(leader(w, h, 0) == RDMETA_NOT_CACHED);
        cw_sweep_after(w, 2000 * CW_S);
        CHECK(cw_stats(w).retained == 0);
        CHECK(leader(w, h, 0) == RDMETA_NOT_CACHED);
        CHECK(!cw_all(w, "t#c 0:1@0; u#u 0:1@1"));
        CHECK(leader(w, h, 0) == 1);
        rdmeta_handle_release(h);
}

CACHE_TEST(test_a_handle_survives_a_purge_and_another_cluster) {
        rdmeta_handle_t *h;

        CHECK(!cw_all(w, "t#a 0:1@9"));
        h = resolve(w, "t");
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        cw_check(w);
        CHECK(leader(w, h, 0) == RDMETA_NOT_CACHED);
        CHECK(!cw_all(w, "t#a 0:2@9"));
        CHECK(leader(w, h, 0) == 2);
        w->cluster_id = "other";
        w->flags      = RDMETA_REQ_REBOOTSTRAPPED;
        CHECK(!cw_say(w, "t#b 0:3@0"));
        CHECK(leader(w, h, 0) == 3);
        rdmeta_handle_release(h);
}

TEST(test_a_handle_finds_topics_of_a_warm_start) {
        rdmeta_image_t *image;
        rdmeta_handle_t *h;
        cw_t a, b;

        cw_init(&a, NULL);
        cw_init(&b, NULL);
        CHECK(!cw_all(&a, "t#a 0:1@9 1:2@9"));
        h     = resolve(&b, "t");
        image = rdmeta_cache_image(a.cache, a.now);
        CHECK(image && !rdmeta_cache_load(b.cache, image, b.now));
        cw_check(&b);
        CHECK(leader(&b, h, 1) == RDMETA_STALE);
        CHECK(rdmeta_handle_leader(b.stale, h, 1, b.now.mono_us) == 2);
        CHECK(!cw_all(&b, "t#a 0:1@9 1:3@9"));
        CHECK(leader(&b, h, 1) == 3);
        rdmeta_image_unref(image);
        rdmeta_handle_release(h);
        cw_destroy(&b);
        cw_destroy(&a);
}

/* A lookup by an image's reader goes by the name. */
CACHE_TEST(test_the_reader_of_an_image_returns_the_images_leader) {
        rdmeta_reader_t *reader;
        rdmeta_image_t *image;
        rdmeta_handle_t *h;

        CHECK(!cw_all(w, "t#a 0:1@9"));
        h      = resolve(w, "t");
        image  = rdmeta_cache_image(w->cache, w->now);
        reader = image ? rdmeta_image_reader(image, 0) : NULL;
        CHECK(reader && !cw_all(w, "t#a 0:2@10"));
        CHECK(leader(w, h, 0) == 2);
        CHECK(rdmeta_handle_leader(reader, h, 0, w->now.mono_us) == 1);
        rdmeta_reader_destroy(reader);
        rdmeta_image_unref(image);
        rdmeta_handle_release(h);
}

/* So many topics come at once that the table grows. */
CACHE_TEST(test_a_table_that_grows_changes_nothing) {
        enum { TOPICS = 60 };
        char all[64 * TOPICS], *p = all;
        rdmeta_handle_t *h[3];
        int i;

        h[0] = resolve(w, "topic-1");
        h[1] = resolve(w, "topic-59");
        CHECK(!cw_say(w, "topic-1#x 0:3@1"));
        h[2] = resolve(w, "topic-1");
        CHECK(h[0] == h[2] && cw_stats(w).handles == 2);
        for (i = 0; i < TOPICS; i++)
                p += sprintf(p, "%stopic-%d#%c 0:%d@5", i ? "; " : "", i,
                             'a' + i % 26, 1 + i % 3);
        CHECK(!cw_say(w, all));
        CHECK(leader(w, h[0], 0) == 2);
        CHECK(leader(w, h[1], 0) == 1 + 59 % 3);
        for (i = 0; i < 3; i++)
                rdmeta_handle_release(h[i]);
        CHECK(cw_stats(w).handles == 0);
        cw_check(w);
}

CACHE_TEST(test_many_handles_are_distinguished) {
        enum { MANY = 300 };
        rdmeta_handle_t *h[MANY];
        char name[RDMETA_NAME_MAX + 2];
        int i;

        memset(name, 'x', sizeof(name));
        for (i = 0; i < MANY; i++) {
                h[i] = rdmeta_resolve(w->cache, name, 1 + (size_t)i);
                CHECK(h[i] && rdmeta_handle_topic(h[i]).len == 1 + (size_t)i);
        }
        cw_check(w);
        CHECK(!cw_say(w, "x#a 0:1@5; xx#b 0:2@5; xxx#c 0:3@5; xxy#d 0:1@5"));
        CHECK(leader(w, h[0], 0) == 1 && leader(w, h[1], 0) == 2);
        CHECK(leader(w, h[2], 0) == 3);
        CHECK(leader(w, h[3], 0) == RDMETA_NOT_CACHED);
        for (i = 0; i < MANY; i++) {
                rdmeta_handle_release(h[i * 7 % MANY]);
                if (i % 50 == 0)
                        cw_check(w);
        }
        CHECK(!rdmeta_resolve(w->cache, name, 0));
        CHECK(!rdmeta_resolve(w->cache, name, RDMETA_NAME_MAX + 1));
}

/* ---- life -------------------------------------------------------------- */

TEST(test_a_handle_keeps_its_cache_alive) {
        rdmeta_cache_t *c  = rdmeta_cache_new(NULL);
        rdmeta_handle_t *h = rdmeta_resolve(c, "t", 1);
        rdmeta_reader_t *r = rdmeta_reader_new(c, 0);

        rdmeta_cache_unref(c);
        CHECK(rdmeta_handle_leader(r, h, 0, 0) == RDMETA_NOT_CACHED);
        rdmeta_reader_destroy(r);
        CHECK(rdmeta_handle_ref(h) == h);
        rdmeta_handle_release(h);
        rdmeta_handle_release(h);
        rdmeta_handle_release(NULL);
}

TEST(test_the_reader_of_another_cache_goes_by_the_name) {
        rdmeta_handle_t *h;
        cw_t a, b;

        cw_init(&a, NULL);
        cw_init(&b, NULL);
        CHECK(!cw_all(&a, "t#a 0:1@9 1:1@9") && !cw_all(&b, "t#b 0:2@9"));
        h = resolve(&a, "t");
        CHECK(rdmeta_handle_leader(a.reader, h, 0, a.now.mono_us) == 1);
        CHECK(rdmeta_handle_leader(b.reader, h, 0, b.now.mono_us) == 2);
        CHECK(rdmeta_handle_leader(b.stale, h, 1, b.now.mono_us) ==
              RDMETA_NO_PARTITION);
        CHECK(rdmeta_handle_partition_for(b.reader, h, "k", 1,
                                          b.now.mono_us) == 0);
        rdmeta_handle_release(h);
        cw_destroy(&b);
        cw_destroy(&a);
}

CACHE_TEST(test_without_memory_there_is_no_handle) {
        CHECK(!cw_all(w, "t#a 0:1@9"));
        w->heap.fail_at = w->heap.calls + 1;
        CHECK(!rdmeta_resolve(w->cache, "t", 1));
        cw_check(w);
        CHECK(cw_stats(w).handles == 0);
        rdmeta_handle_release(resolve(w, "t"));
}

CACHE_TEST(test_bytes_of_handles_are_counted) {
        rdmeta_handle_t *h;
        uint64_t before;
        size_t heap;

        before = cw_stats(w).bytes;
        heap   = w->heap.bytes;
        h      = resolve(w, "a name of some length");
        CHECK(cw_stats(w).bytes - before == w->heap.bytes - heap);
        CHECK(w->heap.bytes > heap);
        rdmeta_handle_release(h);
        CHECK(cw_stats(w).bytes == before && w->heap.bytes == heap);
}

static void forked(cw_t *w, rdmeta_handle_t *h) {
        rdmeta_handle_t *n = rdmeta_resolve(w->cache, "new", 3);

        CHECK(n);
        CHECK(rdmeta_handle_leader(w->reader, h, 0, w->now.mono_us) == 1);
        rdmeta_handle_release(n);
        rdmeta_handle_release(h);
        _Exit(0);
}

/* test_fork.c has the forks while a writer has the lock. */
CACHE_TEST(test_a_child_resolves_reads_and_releases) {
        rdmeta_handle_t *h;
        int status;
        pid_t pid;

        CHECK(!cw_all(w, "t#a 0:1@9"));
        h = resolve(w, "t");
        pid = fork();
        if (pid == 0)
                forked(w, h);
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK(leader(w, h, 0) == 1);
        rdmeta_handle_release(h);
}

/* ---- partitions of keys ------------------------------------------------ */

static int32_t partition_for(cw_t *w, const rdmeta_handle_t *h,
                             const char *key) {
        const size_t len = key ? strlen(key) : 0;
        const rdmeta_str_t name = rdmeta_handle_topic(h);
        const int32_t found     = rdmeta_handle_partition_for(
                w->reader, h, key, len, w->now.mono_us);

        if (key || found < 0)
                CHECK(found == rdmeta_partition_for(w->reader, name.data,
                                                    name.len, key, len,
                                                    w->now.mono_us));
        return found;
}

CACHE_TEST(test_a_key_has_its_partition) {
        rdmeta_handle_t *h, *n;

        CHECK(!cw_all(w, "t#a 0:1@9 1:1@9 2:-1@9; n!3"));
        h = resolve(w, "t");
        n = resolve(w, "n");
        CHECK(partition_for(w, h, "21") == (-973932308 & INT32_MAX) % 3);
        CHECK(partition_for(w, h, "abc") == 479470107 % 3);
        CHECK(partition_for(w, h, "") ==
              (int32_t)((rdmeta_murmur2("", 0) & INT32_MAX) % 3));
        CHECK(partition_for(w, n, "abc") == RDMETA_UNKNOWN_TOPIC);
        CHECK(partition_for(w, n, NULL) == RDMETA_UNKNOWN_TOPIC);
        /* With more partitions a key has another partition. */
        CHECK(!cw_say(w, "t#a 0:1@9 1:1@9 2:-1@9 3:1@1 4:1@1"));
        CHECK(partition_for(w, h, "abc") == 479470107 % 5);
        cw_pass(w, 901 * CW_S);
        CHECK(partition_for(w, h, "abc") == RDMETA_STALE);
        CHECK(rdmeta_handle_partition_for(w->stale, h, "abc", 3,
                                          w->now.mono_us) == 479470107 % 5);
        rdmeta_handle_release(n);
        rdmeta_handle_release(h);
}

CACHE_TEST(test_without_a_key_any_partition_with_a_leader_is_returned) {
        rdmeta_handle_t *h, *none;
        int seen[4] = {0}, i;

        CHECK(!cw_all(w, "t#a 0:1@9 1:-1@9 2:3@9 3:2@9; e#e 0:-1@1 1:-1@1"));
        h    = resolve(w, "t");
        none = resolve(w, "e");
        for (i = 0; i < 3000; i++) {
                const int32_t p = partition_for(w, h, NULL);

                CHECK(p >= 0 && p < 4);
                seen[p]++;
        }
        CHECK(seen[1] == 0);
        CHECK(seen[0] > 800 && seen[2] > 800 && seen[3] > 800);
        for (i = 0; i < 200; i++)
                seen[partition_for(w, none, NULL)] = 0;
        CHECK(seen[0] == 0 && seen[1] == 0 && seen[2] && seen[3]);
        rdmeta_handle_release(none);
        rdmeta_handle_release(h);
}

/* ---- which names are resolved ------------------------------------------- */

static int32_t visit_name(void *opaque, const rdmeta_str_t *topic) {
        char *text = opaque;

        snprintf(text + strlen(text), 64 - strlen(text), "%.*s ",
                 (int)topic->len, topic->data);
        return topic->data[0] == 'z' ? 77 : 0;
}

static const char *resolved(cw_t *w, char text[64]) {
        text[0] = '\0';
        CHECK(!rdmeta_cache_resolved(w->cache, visit_name, text));
        cw_check(w);
        return text;
}

CACHE_TEST(test_the_names_of_live_handles_are_resolved) {
        rdmeta_handle_t *a, *b, *again;
        char text[64];

        CHECK_TEXT(resolved(w, text), "");
        CHECK(!cw_say(w, "a 0:1; c 0:1"));
        a     = resolve(w, "a");
        again = resolve(w, "a");
        b     = resolve(w, "bb"); /* is not cached */
        CHECK_TEXT(resolved(w, text), "a bb ");
        CHECK(cw_forget(w, "a") == 1);
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        rdmeta_handle_release(a);
        CHECK_TEXT(resolved(w, text), "a bb ");
        rdmeta_handle_release(again);
        CHECK_TEXT(resolved(w, text), "bb ");
        a       = resolve(w, "z");
        text[0] = '\0';
        CHECK(rdmeta_cache_resolved(w->cache, visit_name, text) == 77);
        CHECK_TEXT(text, "z ");
        rdmeta_handle_release(a);
        rdmeta_handle_release(b);
        CHECK_TEXT(resolved(w, text), "");
}

/* A visit holds no lock: it may resolve and release, which take it. */
static int32_t visit_resolves(void *opaque, const rdmeta_str_t *topic) {
        cw_t *w            = opaque;
        rdmeta_handle_t *h = rdmeta_resolve(w->cache, topic->data, topic->len);

        CHECK(h);
        rdmeta_handle_release(h);
        return 0;
}

CACHE_TEST(test_a_visit_of_resolved_names_may_use_the_cache) {
        rdmeta_handle_t *h;

        h = resolve(w, "a");
        CHECK(!rdmeta_cache_resolved(w->cache, visit_resolves, w));
        rdmeta_handle_release(h);
}

TEST_MAIN()
