/*
 * leader: every kind of lookup returns the leader that the whole partition has.
 * Names have all lengths, leaders all widths, and deadlines are a topic's own
 * or the shared one.
 */
#include "support/cache_fixture.h"

enum { TOPICS = 60, LONGEST = 60, ROOM = 16384 };

/* Makes the i-th name. Names of one length differ only at their ends. */
static const char *name_of(char out[LONGEST + 1], uint32_t i) {
        const uint32_t len = 3 + i % (LONGEST - 2);
        char number[4];
        uint32_t k;

        for (k = 0; k < len; k++)
                out[k] = (char)('a' + k % 26);
        snprintf(number, sizeof(number), "%03u", i % 1000);
        memcpy(out + len - 3, number, 3);
        out[len] = 0;
        return out;
}

/* Applies topics with leaders of one, two and four bytes, with gaps between
 * partitions, and with no leader. */
static void say_many(cw_t *w, int all) {
        static const char *const rows[] = {
                "0:1@1 1:127@1 2:-1@1",  "0:1@1 1:128@1 2:32767@1",
                "0:70000@1 1:2@1",       "1:3@1 5:2@1",
                "0:2147483647@1 1:-1@2", "0:5@1"};
        char name[LONGEST + 1], *text = malloc(ROOM);
        size_t used = 0;
        uint32_t i;

        CHECK(text);
        for (i = 0; i < TOPICS; i++)
                used += (size_t)snprintf(text + used, ROOM - used, "%s%s %s",
                                         i ? "; " : "", name_of(name, i),
                                         rows[i % 6]);
        CHECK(!(all ? cw_all(w, text) : cw_say(w, text)));
        free(text);
}

/* Returns the leader by a lookup of the whole partition. */
static int32_t leader_of(cw_t *w, rdmeta_reader_t *r, const char *name,
                         int32_t partition) {
        rdmeta_partition_t p;
        rdmeta_err_t err;

        memset(&p, 0, sizeof(p));
        err = rdmeta_partition(r, name, strlen(name), partition,
                               w->now.mono_us, &p);
        if (err)
                return err;
        return r == w->stale ? p.last_leader : p.leader;
}

/* Compares both calls for each reader. Returns how many had a leader. */
static int compare(cw_t *w) {
        rdmeta_reader_t *readers[] = {w->reader, w->stale};
        char name[LONGEST + 1];
        int32_t partition, one, many;
        int leaders = 0, k;
        rdmeta_str_t s;
        uint32_t i;

        for (i = 0; i < 2 * TOPICS; i++) {
                s = test_str(name_of(name, i));
                for (partition = -1; partition < 7; partition++) {
                        for (k = 0; k < 2; k++) {
                                one = rdmeta_leader(readers[k], s.data, s.len,
                                                    partition,
                                                    w->now.mono_us);
                                rdmeta_leaders(readers[k], &s, &partition, 1,
                                               w->now.mono_us, &many);
                                CHECK(one == leader_of(w, readers[k], name,
                                                       partition));
                                CHECK(many == one);
                                leaders += one >= 0;
                        }
                }
        }
        return leaders;
}

CACHE_TEST(test_every_kind_of_lookup_returns_the_same) {
        CHECK(compare(w) == 0);
        say_many(w, 0);
        CHECK(compare(w) > TOPICS);
}

/* The shared deadline does not count for a topic that has its own. */
CACHE_TEST(test_a_topics_own_deadline_is_not_the_shared_one) {
        say_many(w, 1);
        CHECK(!cw_asked(w, "own", "own#o 0:7@1 1:300@1"));
        CHECK(compare(w) > TOPICS);
        cw_pass(w, 600 * CW_S);
        CHECK(!cw_asked(w, "later", "later#l 0:7@1 1:300@1"));
        cw_pass(w, 301 * CW_S); /* all deadlines but one are past */
        CHECK(cw_leader(w, "later", 0) == 7);
        CHECK(cw_leader(w, "later", 1) == 300);
        CHECK(cw_leader(w, "own", 0) == RDMETA_STALE);
        CHECK(cw_leader_stale(w, "own", 0) == 7);
        compare(w);
        say_many(w, 1); /* the others are absent, and stay as they were */
        CHECK(cw_leader(w, "later", 0) != 7);
        CHECK(compare(w) > TOPICS);
}

/* Without an all-topics answer there is no shared deadline. */
CACHE_TEST(test_before_an_all_topics_answer_each_deadline_is_its_own) {
        CHECK(!cw_say(w, "t#t 0:1@1; w#w 0:1000@1"));
        w->now.mono_us += 900 * CW_S;
        CHECK(cw_leader(w, "t", 0) == 1 && cw_leader(w, "w", 0) == 1000);
        w->now.mono_us++;
        CHECK(cw_leader(w, "t", 0) == RDMETA_STALE);
        CHECK(cw_leader(w, "w", 0) == RDMETA_STALE);
}

TEST_MAIN()
