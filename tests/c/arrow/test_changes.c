/* arrow: change records as columns, compared with the records of a visit. */
#include "support/arrow_fixture.h"

static void naive_text(aw_text_t *t, rdmeta_str_t s) {
        if (s.data)
                aw_put_bytes(t, s.data, s.len);
        else
                aw_put(t, "-");
        aw_put(t, "|");
}

static void naive_some(aw_text_t *t, int32_t value) {
        if (value < 0)
                aw_put(t, "-|");
        else
                aw_put(t, "%d|", value);
}

static void naive_ids(aw_text_t *t, rdmeta_ids_t l) {
        uint32_t i;

        for (i = 0; i < l.count; i++)
                aw_put(t, "%s%d", i ? "," : "[", l.ids[i]);
        aw_put(t, !l.ids ? "-|" : l.count ? "]|" : "[]|");
}

static int32_t naive_change(void *opaque, const rdmeta_change_t *c) {
        char id[RDMETA_ARROW_ID];
        aw_text_t *t = opaque;

        aw_put(t, "%" PRIu64 "|", c->version);
        naive_text(t, c->cluster_id);
        aw_put(t, "life|%" PRId64 "|%s|", c->wall_us,
               rdmeta_source_name(c->source));
        naive_some(t, c->source_broker);
        aw_put(t, "%s|", rdmeta_change_kind_name(c->kind));
        naive_text(t, c->topic);
        if (c->topic_id)
                rdmeta_text_id(id, c->topic_id);
        aw_put(t, "%.*s|", c->topic_id ? RDMETA_ARROW_ID : 1,
               c->topic_id ? id : "-");
        naive_some(t, c->partition);
        naive_some(t, c->broker);
        naive_some(t, c->old_leader);
        naive_some(t, c->new_leader);
        naive_some(t, c->old_leader_epoch);
        naive_some(t, c->new_leader_epoch);
        naive_ids(t, c->old_isr);
        naive_ids(t, c->new_isr);
        naive_ids(t, c->old_replicas);
        naive_ids(t, c->new_replicas);
        aw_put(t, "-|");
        naive_text(t, c->detail);
        naive_ids(t, c->old_offline);
        naive_ids(t, c->new_offline);
        CHECK(c->partition_epoch == RDMETA_NONE && c->broker_epoch == -1);
        aw_put(t, "-|-|");
        naive_ids(t, c->new_adding);
        naive_ids(t, c->new_removing);
        naive_ids(t, c->new_elr);
        aw_put(t, "-|");
        t->data[t->len - 1] = '\n';
        return 0;
}

static void check_changes(cw_t *w, uint64_t since) {
        struct ArrowArrayStream s;
        aw_text_t wanted = {0}, got;
        uint64_t until[2];
        int32_t resync[2];

        aw_put_bytes(&wanted, "", 0);
        CHECK(!rdmeta_cache_changes(w->cache, since, naive_change, &wanted,
                                    &until[0], &resync[0]));
        CHECK(!rdmeta_cache_arrow_changes(w->cache, since, "life", &s,
                                          &until[1], &resync[1]));
        CHECK(until[0] == until[1] && resync[0] == resync[1]);
        got = aw_read(&s);
        CHECK_TEXT(got.data, wanted.data);
        aw_free(&got);
        aw_free(&wanted);
}

TEST(test_columns_are_the_members_of_a_record) {
        struct ArrowSchema s;
        aw_text_t t;

        CHECK(!rdmeta_arrow_schema(RDMETA_ARROW_CHANGES, &s));
        t = aw_schema(&s);
        CHECK(strcmp(t.data,
                     "version:l? cluster_id:u? session:u? "
                     "observed_at:tsu:UTC? source:u? source_broker:i? kind:u? "
                     "topic:u? topic_id:u? partition:i? broker:i? "
                     "old_leader:i? new_leader:i? old_leader_epoch:i? "
                     "new_leader_epoch:i? old_isr:+l<i>? new_isr:+l<i>? "
                     "old_replicas:+l<i>? new_replicas:+l<i>? offset:l? "
                     "detail:u? old_offline:+l<i>? new_offline:+l<i>? "
                     "partition_epoch:i? broker_epoch:l? "
                     "new_adding:+l<i>? new_removing:+l<i>? "
                     "new_elr:+l<i>? unseen_us:l?") ==
              0);
        aw_free(&t);
        s.release(&s);
}

CACHE_TEST(test_changes_are_the_records_of_a_visit) {
        uint64_t since;

        check_changes(w, 0);
        CHECK(!cw_all(w, "a#a 0:1@5/r1,2,3 1:2@5/r2,3; b 0:1@1; d 0:1"));
        CHECK(!cw_say(w, "a#a 0:2@6/r1,2,3/i2 1:-1@6/r3,2/i/o3 2:1@0"));
        CHECK(!cw_say(w, "b!3; c!29"));
        CHECK(!cw_say(w, "a#x 0:1@0"));
        w->brokers = "1,4=h4:1=rack";
        CHECK(!cw_say(w, ""));
        CHECK(cw_leader_hint(w, "a", 0, 4, 7, NULL));
        w->flags      = RDMETA_REQ_REBOOTSTRAPPED;
        w->cluster_id = "other";
        CHECK(!cw_say(w, "z 0:1@1"));
        CHECK(!rdmeta_cache_purge(w->cache, w->now));
        for (since = 0; since <= cw_version(w); since++)
                check_changes(w, since);
        check_changes(w, cw_version(w) + 5); /* resync: no record */
}

static int32_t count_change(void *opaque, const rdmeta_change_t *c) {
        (void)c;
        ++*(int64_t *)opaque;
        return 0;
}

CACHE_TEST(test_many_changes_come_in_many_batches) {
        gen_cluster_t *c = aw_cluster(9, 2, 70000, 1);
        struct ArrowArrayStream s;
        int64_t rows = 0;
        uint64_t until;
        int32_t resync;
        aw_text_t t;
        uint32_t i;

        aw_say(w, c);
        for (i = 0; i < c->topics[0].partition_count; i++)
                c->topics[0].partitions[i].epoch++;
        aw_say(w, c);
        check_changes(w, 1);
        CHECK(!rdmeta_cache_changes(w->cache, 1, count_change, &rows, &until,
                                    &resync));
        CHECK(!rdmeta_cache_arrow_changes(w->cache, 1, NULL, &s, &until,
                                          &resync));
        t = aw_read(&s);
        CHECK(rows == 70000 && t.rows == rows && t.batches == 2);
        CHECK(t.longest == RDMETA_ARROW_ROWS);
        aw_free(&t);
        gen_cluster_free(c);
}

CACHE_TEST(test_a_diff_of_images_can_be_a_stream) {
        rdmeta_image_t *before, *after;
        struct ArrowArrayStream s;
        aw_text_t wanted = {0}, got;

        CHECK(!cw_all(w, "a 0:1@5; b 0:1@1"));
        before = rdmeta_cache_image(w->cache, w->now);
        CHECK(!cw_say(w, "a 0:2@6; b!3; c 0:1"));
        after = rdmeta_cache_image(w->cache, w->now);
        aw_put_bytes(&wanted, "", 0);
        CHECK(!rdmeta_image_diff(before, after, naive_change, &wanted));
        CHECK(!rdmeta_image_arrow_diff(before, after, "life", &s));
        rdmeta_image_unref(before);
        rdmeta_image_unref(after);
        got = aw_read(&s);
        CHECK(got.rows == 5);
        CHECK_TEXT(got.data, wanted.data);
        aw_free(&got);
        aw_free(&wanted);
}

TEST(test_collected_changes_can_be_freed_without_a_stream) {
        rdmeta_arrow_changes_t *c = rdmeta_arrow_changes_new(NULL);
        rdmeta_change_t change    = {.kind = RDMETA_RESYNC, .offset = 9,
                                     .detail = GEN_STR("why"),
                                     .partition = RDMETA_NONE};
        struct ArrowArrayStream s;
        aw_text_t t;

        CHECK(c);
        CHECK(!rdmeta_arrow_changes_add(c, &change));
        rdmeta_arrow_changes_destroy(c);
        rdmeta_arrow_changes_destroy(NULL);
        c = rdmeta_arrow_changes_new(NULL);
        CHECK(!rdmeta_arrow_changes_add(c, &change));
        CHECK(!rdmeta_arrow_changes_stream(c, &s));
        t = aw_read(&s);
        CHECK_TEXT(t.data,
                   "0|-|-|0|poll|0|resync|-|-|-|0|0|0|0|0|-|-|-|-|9|why|-|-"
                   "|-|-|-|-|-|-\n");
        aw_free(&t);
}

TEST_MAIN()
