/* replica_in(): which replica is near, in caches, images and files. */
#include "support/image_fixture.h"

#define BROKERS "1=h:1=r1,2=h:2=r2,3=h:3=r2,4=h:4,5=h:5=r3"

static int32_t near(cw_t *w, rdmeta_reader_t *r, const char *topic,
                    int32_t partition, const char *rack) {
        return rdmeta_replica_in(r, topic, strlen(topic), partition,
                                 test_str(rack), w->now.mono_us);
}

CACHE_TEST(test_the_leader_is_taken_if_it_is_in_the_rack) {
        w->brokers = BROKERS;
        CHECK(!cw_say(w, "a 0:3@1/r1,2,3"));
        CHECK(near(w, w->reader, "a", 0, "r2") == 3);
}

CACHE_TEST(test_otherwise_it_is_the_first_replica_there_that_is_in_sync) {
        w->brokers = BROKERS;
        CHECK(!cw_say(w, "a 0:1@1/r1,3,2 1:1@1/r1,3,2/i2,1 2:1@1/r3,2,1/i1,2,3"
                          "/o3 3:1@1/r1,3,2/i1 4:1@1/r3,2,1/i2,1,3"));
        CHECK(near(w, w->reader, "a", 0, "r2") == 3);
        CHECK(near(w, w->reader, "a", 1, "r2") == 2); /* 3 is not in sync */
        CHECK(near(w, w->reader, "a", 2, "r2") == 2); /* 3 is offline */
        CHECK(near(w, w->reader, "a", 3, "r2") == 1); /* neither is */
        CHECK(near(w, w->reader, "a", 4, "r2") == 3); /* not the ISR's order */
}

CACHE_TEST(test_without_a_replica_there_it_is_the_leader) {
        w->brokers = BROKERS;
        CHECK(!cw_say(w, "a 0:1@1/r1,2,9; b 0:4@1/r4,5; c 0:9@1/r9,2"));
        CHECK(near(w, w->reader, "a", 0, "r3") == 1);
        CHECK(near(w, w->reader, "a", 0, "r") == 1);
        CHECK(near(w, w->reader, "a", 0, "") == 1);
        CHECK(near(w, w->reader, "a", 0, NULL) == 1);
        CHECK(near(w, w->reader, "b", 0, "r1") == 4);
        CHECK(near(w, w->reader, "b", 0, "r3") == 5);
        CHECK(near(w, w->reader, "c", 0, "r1") == 9); /* as leader() */
        CHECK(near(w, w->reader, "c", 0, "r2") == 2);
}

CACHE_TEST(test_a_leader_may_have_id_0) {
        w->brokers = "0=h:1=r1,1=h:2=r2";
        CHECK(!cw_say(w, "a 0:0@1/r0,1"));
        CHECK(near(w, w->reader, "a", 0, "r2") == 1);
        CHECK(near(w, w->reader, "a", 0, "r1") == 0);
}

/* As with Kafka's brokers: the default of client.rack is empty. */
CACHE_TEST(test_an_empty_rack_is_none) {
        w->brokers = "1=h:1=r1,2=h:2=";
        CHECK(!cw_say(w, "a 0:1@1/r1,2"));
        CHECK(near(w, w->reader, "a", 0, "") == 1);
}

CACHE_TEST(test_its_codes_are_those_of_leader) {
        static const char *const topics[] = {"a", "u", "d", "v", "h", "nowhere",
                                             ""};
        size_t i;
        int32_t p;
        int round;

        w->brokers = BROKERS;
        CHECK(!cw_say(w, "a 0:-1@1/r1,2 1:2@1/r1,2 7:1@1/r1; u!3; d!29; v!17"));
        cw_hint(w, "h", 0);
        for (round = 0; round < 2; round++) {
                for (i = 0; i < sizeof(topics) / sizeof(topics[0]); i++)
                        for (p = -1; p < 9; p++) {
                                CHECK(near(w, w->reader, topics[i], p, NULL) ==
                                      cw_leader(w, topics[i], p));
                                CHECK(near(w, w->stale, topics[i], p, "x") ==
                                      cw_leader_stale(w, topics[i], p));
                        }
                CHECK(near(w, w->reader, "a", 0, "r2") ==
                      (round ? RDMETA_STALE : RDMETA_NO_LEADER));
                CHECK(near(w, w->reader, "a", 1, "r1") ==
                      (round ? RDMETA_STALE : 1));
                CHECK(near(w, w->stale, "a", 1, "r1") == 1);
                cw_pass(w, 2000 * CW_S);
        }
}

CACHE_TEST(test_a_leaderless_partition_has_its_last_leader_if_stale) {
        w->brokers = BROKERS;
        CHECK(!cw_say(w, "a 0:1@1/r1,2"));
        CHECK(!cw_say(w, "a 0:-1@2/r1,2/i2"));
        CHECK(near(w, w->reader, "a", 0, "r2") == RDMETA_NO_LEADER);
        CHECK(near(w, w->stale, "a", 0, "r2") == 2);
        CHECK(near(w, w->stale, "a", 0, "r3") == 1);
}

CACHE_TEST(test_images_and_files_have_it_too) {
        const char *path = iw_path("replica_in");
        rdmeta_image_t *images[2];
        rdmeta_reader_t *r;
        int i;

        w->brokers = BROKERS;
        CHECK(!cw_say(w, "a 0:1@1/r1,2 1:-1@1/r1"));
        images[0] = iw_image(w);
        CHECK(!rdmeta_image_save(images[0], path, 0));
        images[1] = iw_open(path, 0, w->now);
        w->brokers = "1=h:1,2=h:2"; /* without racks */
        CHECK(!cw_say(w, "a 0:2@2/r1,2 1:-1@1/r1"));
        CHECK(near(w, w->reader, "a", 0, "r2") == 2);
        CHECK(near(w, w->reader, "a", 0, "r1") == 2);
        for (i = 0; i < 2; i++) {
                r = rdmeta_image_reader(images[i], 0);
                CHECK(r);
                CHECK(near(w, r, "a", 0, "r1") == 1);
                CHECK(near(w, r, "a", 0, "r2") == 2);
                CHECK(near(w, r, "a", 1, "r2") == RDMETA_NO_LEADER);
                CHECK(near(w, r, "b", 0, "r2") == RDMETA_NOT_CACHED);
                rdmeta_reader_destroy(r);
                rdmeta_image_unref(images[i]);
        }
}

TEST_MAIN()
