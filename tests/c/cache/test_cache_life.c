/*
 * cache: deadlines at both ends of the clock, configurations, references.
 */
#include "support/cache_fixture.h"

/* ---- time -------------------------------------------------------------- */

static void longest(rdmeta_conf_t *conf) {
        conf->max_age_us = conf->negative_ttl_us = conf->denied_ttl_us =
                conf->hint_ttl_us = conf->absent_grace_us = INT64_MAX;
}

CACHE_TEST_WITH(test_lifetimes_without_end_do_not_overflow, longest) {
        w->now.mono_us = INT64_MAX - 10;
        CHECK(!cw_all(w, "t#a 0:1@1; n!3; d!29; m#m 0:1@1"));
        CHECK(!cw_say(w, "s#s 0:1@1"));
        CHECK(!cw_all(w, "t#a 0:1@1; n!3; d!29; s#s 0:1@1"));
        cw_hint(w, "h", 0);
        w->now.mono_us = INT64_MAX - 1;
        CHECK(cw_sweep(w) >= INT64_MAX - 1);
        CHECK(cw_leader(w, "t", 0) == 1 && cw_leader(w, "s", 0) == 1);
        CHECK(cw_state(w, "n") == RDMETA_UNKNOWN_TOPIC);
        CHECK(cw_state(w, "m") == RDMETA_UNKNOWN_TOPIC);
        CHECK(cw_state(w, "d") == RDMETA_DENIED);
        CHECK(cw_state(w, "h") == RDMETA_WAITING);
}

TEST(test_clocks_may_begin_anywhere) {
        static const int64_t begins[] = {INT64_MIN, INT64_MIN + 3, -5, 0, 1};
        size_t i;
        cw_t w;

        for (i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
                cw_init(&w, NULL);
                w.now.mono_us = begins[i];
                cw_sweep(&w);
                CHECK(!cw_all(&w, "t#a 0:1@1; n!3"));
                CHECK(!cw_say(&w, "s#s 0:1@1"));
                CHECK(cw_leader(&w, "t", 0) == 1);
                CHECK(cw_state(&w, "n") == RDMETA_UNKNOWN_TOPIC);
                cw_hint(&w, "h", 0);
                cw_sweep_after(&w, 901 * CW_S);
                CHECK(cw_leader(&w, "t", 0) == RDMETA_STALE);
                CHECK(cw_leader(&w, "s", 0) == RDMETA_STALE);
                CHECK(cw_state(&w, "n") == RDMETA_NOT_CACHED);
                cw_destroy(&w);
        }
}

/* An all-topics answer moves one deadline for all topics. */
CACHE_TEST(test_a_full_refresh_is_valid_for_max_age_from_then_on) {
        int i;

        for (i = 0; i < 5; i++) {
                CHECK(!cw_all(w, "t#a 0:1@1; u#b 0:1@1"));
                CHECK(cw_info(w, "t").deadline_us ==
                      w->now.mono_us + 900 * CW_S);
                cw_pass(w, 899 * CW_S);
                CHECK(cw_leader(w, "t", 0) == 1);
                CHECK(cw_sweep(w) == w->now.mono_us + CW_S + 1);
        }
        cw_pass(w, CW_S + 1);
        CHECK(cw_leader(w, "u", 0) == RDMETA_STALE);
}

/* ---- life -------------------------------------------------------------- */

TEST(test_an_invalid_configuration_is_refused) {
        rdmeta_conf_t conf;
        int i;

        for (i = 0; i < 7; i++) {
                rdmeta_conf_init(&conf);
                conf.size += i == 0;
                conf.max_age_us -= i == 1 ? conf.max_age_us + 1 : 0;
                conf.negative_ttl_us = i == 2 ? -1 : conf.negative_ttl_us;
                conf.denied_ttl_us   = i == 3 ? -1 : conf.denied_ttl_us;
                conf.hint_ttl_us     = i == 4 ? 0 : conf.hint_ttl_us;
                conf.absent_grace_us = i == 5 ? -1 : conf.absent_grace_us;
                if (i == 6)
                        conf.allocator.alloc = test_heap_alloc;
                CHECK(!rdmeta_cache_new(&conf));
        }
}

TEST(test_references_are_counted) {
        rdmeta_cache_t *c  = rdmeta_cache_new(NULL);
        rdmeta_reader_t *r = rdmeta_reader_new(c, 0);

        CHECK(rdmeta_cache_ref(c) == c);
        rdmeta_cache_unref(c);
        rdmeta_cache_unref(c); /* the reader has the last reference */
        CHECK(rdmeta_leader(r, "t", 1, 0, 0) == RDMETA_NOT_CACHED);
        rdmeta_reader_destroy(r);
}

/* A second enter must not let the blocks go that the first one protects, though
 * the epoch has moved on. Tests overwrite freed blocks. */
CACHE_TEST_WITH(test_a_nested_enter_keeps_topics_of_the_outer_one,
                cw_no_changelog) {
        const rdmeta_topic_t *t;
        rdmeta_topic_info_t info;
        char topics[64];
        int i;

        CHECK(!cw_say(w, "kept#a 0:1@1"));
        rdmeta_reader_enter(w->reader);
        CHECK(!rdmeta_topic_find(w->reader, "kept", 4, w->now.mono_us, &t));
        for (i = 2; i < 4000; i++) {
                snprintf(topics, sizeof(topics), "kept#a 0:%d@%d", 1 + i % 3,
                         i);
                CHECK(!cw_say(w, topics));
                rdmeta_reader_enter(w->reader);
                rdmeta_reader_leave(w->reader);
        }
        CHECK(cw_stats(w).bytes_limbo > 0);
        rdmeta_topic_info(w->reader, t, w->now.mono_us, &info);
        CHECK(info.name.len == 4 && !memcmp(info.name.data, "kept", 4));
        CHECK(info.version == 1 && info.partitions == 1);
        rdmeta_reader_leave(w->reader);
}

TEST_MAIN()
