/*
 * The row of docs/policies.md about duplicates and negative ids. An answer that
 * no broker can send is refused whole; one that is merely extreme is not.
 */
#include "support/cache_fixture.h"

static void refused(const char *known, const char *topics) {
        char *before, *after;
        cw_t w;

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, known));
        before = cw_dump(&w);
        CHECK(cw_say(&w, topics) == RDMETA_ERR_MALFORMED);
        CHECK(cw_all(&w, topics) == RDMETA_ERR_MALFORMED);
        after = cw_dump(&w);
        CHECK_TEXT(after, before);
        free(before);
        free(after);
        cw_destroy(&w);
}

static void test_duplicate_topics_are_refused_whole(void) {
        refused("t#a 0:1@5", "u#u 0:1@1; t#a 0:1@6; t#a 0:1@6");
        refused("t#a 0:1@5", "t#a 0:1@5; u#u 0:1@1; t#a 0:1@5");
        refused("t#a 0:1@5", "t#a 0:1@6; t!3");
        refused("t#a 0:1@5", "n#n 0:1@1; t#a 0:1@6; n#n 0:1@1");
        refused("t#a 0:1@5", "n!3; n!3");
        refused("t#a 0:1@5", "n#n 0:1@1; n!5"); /* n is not learned */
        refused("t#a 0:1@5", "n!5; m!5; n#n 0:1@1");
        refused("t#a 0:1@5", "m#m 0:1@1; n!5; n!5");
}

/* A null name is valid only for an unknown id. */
static void test_a_topic_without_name_and_error_is_refused_whole(void) {
        refused("t#a 0:1@5", "u#u 0:1@1; ?#a 0:1@6");
        refused("t#a 0:1@5", "?");
}

static void test_duplicate_partitions_are_refused_whole(void) {
        refused("t#a 0:1@5", "u#u 0:1@1; t#a 0:1@6 0:1@6");
        refused("t#a 0:1@5", "t#a 0:1@6 7:1@1 5:1@1 7:1@2");
        refused("t#a 0:1@5", "v#v 2:1@6 1:1@1 2:1@1");
}

static void test_negative_ids_are_refused_whole(void) {
        refused("t#a 0:1@5", "t#a 0:1@6 -1:1@6");
        refused("t#a 0:1@5", "t#a 0:-2@6");
        refused("t#a 0:1@5", "t#a 0:1@-2");
        refused("t#a 0:1@5", "t#a 0:1@6/r1,-1");
        refused("t#a 0:1@5", "t#a 0:1@6/r1/i-2147483648");
        refused("t#a 0:1@5", "t#a 0:1@6/r1/o-7");
        refused("t#a 0:1@5", "t#a 0:-2147483648@6");
        refused("t#a 0:1@5", "t#a -2147483648:1@6");
}

static void test_extreme_numbers_are_numbers(void) {
        cw_t w;
        const char *text = "t#a 0:2147483647@2147483647 "
                           "2147483647:32768@32768/r128,127/i32767";

        cw_init(&w, NULL);
        CHECK(!cw_say(&w, text));
        CHECK_TEXT(cw_topic(&w, "t"), text);
        CHECK(cw_leader(&w, "t", INT32_MAX) == 32768);
        CHECK(cw_leader(&w, "t", 0) == INT32_MAX);
        cw_destroy(&w);
}

int main(void) {
        test_begin(60);
        RUN(test_duplicate_topics_are_refused_whole);
        RUN(test_a_topic_without_name_and_error_is_refused_whole);
        RUN(test_duplicate_partitions_are_refused_whole);
        RUN(test_negative_ids_are_refused_whole);
        RUN(test_extreme_numbers_are_numbers);
        return 0;
}
