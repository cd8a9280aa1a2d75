/* replay: each record's rule, the traps of Kafka's replay, transactions over
 * batches, and replays that are repeated, cut and resumed. */
#include "support/replay_fixture.h"

/* Begins a test of brokers 1 to 3, and topic "t" with partition 0 of all. */
#define CLUSTER_TEST(name) TEST_BETWEEN(name, rw_t, cluster(&w), rw_free(&w))
static void cluster(rw_t *w) {
        int id;

        rw_init(w);
        for (id = 1; id <= 3; id++)
                rw_broker(w, id, 10 + id, 0);
        rw_topic(w, "t", 'a');
        rw_partition(w, 'a', 0, "1,2,3", 1);
        rw_commit(w);
}

CLUSTER_TEST(test_a_partition_change_raises_the_partition_epoch) {
        CHECK_SAME(rw_row(w, 'a', 0), "1@0 e0 r1,2,3 i1,2,3");
        kw_add(&w->log, 5, 0, "iu<L>", 0, 'a', 0, "1,2");
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'a', 0), "1@0 e1 r1,2,3 i1,2");
        kw_add(&w->log, 5, 0, "iu", 0, 'a');
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'a', 0), "1@0 e2 r1,2,3 i1,2");
}

CLUSTER_TEST(test_the_leader_epoch_rises_with_any_leader_that_is_named) {
        kw_add(&w->log, 5, 0, "iu<i>", 0, 'a', 1, 1);
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'a', 0), "1@1 e1 r1,2,3 i1,2,3");
        CHECK_SAME(w->changes, "v6 o5 leader_changed t /0 <1 >1 <@0 @1 e1");
        kw_add(&w->log, 5, 0, "iu<i>", 0, 'a', 1, -2);
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'a', 0), "1@1 e2 r1,2,3 i1,2,3");
        CHECK_SAME(w->changes, "");
        kw_add(&w->log, 5, 0, "iu<i>", 0, 'a', 1, -1);
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'a', 0), "-1@2 e3 r1,2,3 i1,2,3");
}

CLUSTER_TEST(test_all_fields_of_a_partition_are_kept) {
        const uint8_t *id;

        kw_add(&w->log, 3, 2, "iuLLLLiiicuu<b><L><L>", 1, 'a', "1,2", "2", "1",
               "2", 2, 7, 8, 2, 'x', 'y', 0, 1, 1, "3,1", 2, "4");
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'a', 1),
                   "2@7 e8 r1,2 i2 -1 +2 elr3,1 last4 d0,1 recovering");
        kw_add(&w->log, 5, 2, "iu<b><L><cu>", 1, 'a', 5, 0, 6, "", 8, 1, 'y');
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'a', 1), "2@7 e9 r1,2 i2 -1 +2 last4 d1");
        CHECK_SAME(w->changes, "v7 o6 elr_changed t /1 elr e9");
        id = rdmeta_kraft_directory_id(rw_state(w), 1);
        CHECK(id && id[0] == 'y' && id[15] == 'y');
        CHECK(!rdmeta_kraft_directory_id(rw_state(w), 2));
}

CLUSTER_TEST(test_tags_of_a_later_version_are_not_read) {
        kw_add(&w->log, 5, 1, "iu<L>", 0, 'a', 6, "3");
        kw_add(&w->log, 5, 0, "iu<cu>", 0, 'a', 8, 1, 'x');
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'a', 0), "1@0 e2 r1,2,3 i1,2,3");
}

CLUSTER_TEST(test_clear_elr_clears_one_topic_or_all) {
        int i;

        rw_topic(w, "u", 'b');
        for (i = 1; i <= 2; i++)
                kw_add(&w->log, 3, 2, "iuLLLLiiic<L><L>", i, i == 1 ? 'a' : 'b',
                       "1", "1", "", "", 1, 5, 5, 0, 1, "2", 2, "3");
        rw_commit(w);
        kw_add(&w->log, 28, 0, "s", "t");
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'a', 0), "1@0 e0 r1,2,3 i1,2,3");
        CHECK_SAME(rw_row(w, 'a', 1), "1@5 e6 r1 i1");
        CHECK_SAME(rw_row(w, 'b', 2), "1@5 e5 r1 i1 elr2 last3");
        kw_add(&w->log, 28, 0, "s", "");
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'a', 1), "1@5 e6 r1 i1");
        CHECK_SAME(rw_row(w, 'b', 2), "1@5 e6 r1 i1");
        kw_add(&w->log, 28, 0, "s", "x");
        rw_refused(w, "offset 10: CLEAR_ELR_RECORD version 0 is of a topic "
                      "that is unknown");
}

CLUSTER_TEST(test_register_broker_replaces_a_broker_whole) {
        kw_add(&w->log, 17, 3, "il<b><b><cu><cu>", 1, INT64_C(11), 0, 1, 1, 1,
               2, 1, 'x', 3, 1, 'y');
        rw_commit(w);
        CHECK_SAME(rw_broker_text(w, 1), "e11 fenced down dx cy");
        CHECK_SAME(w->changes, "v6 o5 broker_fenced b1 e11; "
                               "v6 o5 broker_shutting_down b1 e11");
        rw_broker(w, 1, 20, 1);
        rw_commit(w);
        CHECK_SAME(rw_broker_text(w, 1), "e20 fenced");
        CHECK_SAME(w->changes, "v7 o6 broker_changed b1 e20 h:9091");
}

CLUSTER_TEST(test_a_registration_change_leaves_what_it_does_not_name) {
        kw_add(&w->log, 17, 3, "il<cuu><cu>", 1, INT64_C(11), 2, 2, 'x', 'z', 3,
               1, 'y');
        kw_add(&w->log, 17, 3, "il<b>", 1, INT64_C(11), 0, 1);
        rw_commit(w);
        CHECK_SAME(rw_broker_text(w, 1), "e11 fenced dxz cy");
        kw_add(&w->log, 17, 3, "il<c><c>", 1, INT64_C(11), 2, 0, 3, 0);
        kw_add(&w->log, 17, 0, "il<b>", 1, INT64_C(11), 0, -1);
        rw_commit(w);
        CHECK_SAME(rw_broker_text(w, 1), "e11 dxz c");
}

CLUSTER_TEST(test_unregister_broker_does_not_look_at_the_epoch) {
        kw_add(&w->log, 1, 0, "il", 1, INT64_C(99));
        rw_commit(w);
        CHECK_SAME(rw_broker_text(w, 1), "none");
        CHECK_SAME(w->changes, "v6 o5 broker_removed b1 e11 h:9091");
        kw_add(&w->log, 1, 0, "il", 1, INT64_C(11));
        rw_refused(w, "offset 6: UNREGISTER_BROKER_RECORD version 0 is of "
                      "broker 1, which is unknown");
}

CLUSTER_TEST(test_a_fence_with_another_broker_epoch_is_an_error) {
        kw_add(&w->log, 7, 0, "il", 2, INT64_C(11));
        rw_refused(w, "offset 5: FENCE_BROKER_RECORD version 0 is of epoch "
                      "11 of broker 2, whose epoch is 12");
        kw_add(&w->log, 7, 0, "il", 4, INT64_C(12));
        rw_refused(w, "offset 5: FENCE_BROKER_RECORD version 0 is of broker "
                      "4, which is unknown");
        kw_add(&w->log, 7, 0, "il", 2, INT64_C(12));
        rw_commit(w);
        CHECK_SAME(rw_broker_text(w, 2), "e12 fenced");
        kw_add(&w->log, 8, 0, "il", 2, INT64_C(12));
        rw_commit(w);
        CHECK_SAME(rw_broker_text(w, 2), "e12");
        CHECK_SAME(w->changes, "v7 o6 broker_unfenced b2 e12");
}

REPLAY_TEST(test_a_brokers_epoch_is_never_derived_from_an_offset) {
        rw_broker(w, 1, 7777, 0);
        rw_commit(w);
        CHECK_SAME(rw_broker_text(w, 1), "e7777");
}

CLUSTER_TEST(test_remove_topic_removes_its_configurations_too) {
        rw_topic(w, "t2", 'b');
        kw_add(&w->log, 4, 0, "bsss", 2, "t", "retention.ms", "5");
        kw_add(&w->log, 4, 0, "bsss", 2, "t", "cleanup.policy", "compact");
        kw_add(&w->log, 4, 0, "bsss", 2, "t2", "retention.ms", "6");
        kw_add(&w->log, 4, 0, "bsss", 4, "t", "retention.ms", "7");
        rw_commit(w);
        CHECK(rw_info(w).facts == 4);
        kw_add(&w->log, 9, 0, "u", 'a');
        rw_commit(w);
        CHECK_SAME(rw_facts(w),
                   "{'resourceType':2,'resourceName':'t2',"
                   "'name':'retention.ms','value':'6'}"
                   "{'resourceType':4,'resourceName':'t','name':'retention.ms',"
                   "'value':'7'}");
        CHECK_SAME(rw_row(w, 'a', 0), "none");
        CHECK_SAME(w->changes, "v11 o10 topic_removed t");
        rw_topic(w, "t", 'c');
        rw_commit(w);
        CHECK(rw_info(w).topics == 2 && !rw_info(w).partitions);
}

REPLAY_TEST(test_facts_are_replaced_and_removed_by_their_key) {
        kw_add(&w->log, 12, 0, "sh", "metadata.version", 20);
        kw_add(&w->log, 12, 0, "sh", "kraft.version", 1);
        kw_add(&w->log, 12, 0, "sh", "metadata.version", 25);
        kw_add(&w->log, 12, 0, "sh", "kraft.version", 0);
        kw_add(&w->log, 4, 0, "bsss", 4, "", "min.insync.replicas", "2");
        kw_add(&w->log, 15, 0, "ill", 1, INT64_C(5), INT64_C(1000));
        kw_add(&w->log, 15, 0, "ill", 2, INT64_C(6), INT64_C(2000));
        kw_add(&w->log, 18, 0, "ubsbssbb", 'x', 2, "t", 3, "User:a", "*", 3,
               3);
        kw_add(&w->log, 18, 0, "ubsbssbb", 'y', 2, "u", 3, "User:a", "*", 3,
               3);
        kw_add(&w->log, 19, 0, "u", 'x');
        kw_add(&w->log, 19, 0, "u", 'z');
        rw_commit(w);
        CHECK_SAME(rw_facts(w),
                   "{'resourceType':4,'resourceName':'',"
                   "'name':'min.insync.replicas','value':'2'}"
                   "{'name':'metadata.version','featureLevel':25}"
                   "{'brokerId':2,'brokerEpoch':6,'nextProducerId':2000}"
                   "{'id':'eXl5eXl5eXl5eXl5eXl5eQ','resourceType':2,"
                   "'resourceName':'u','patternType':3,'principal':'User:a',"
                   "'host':'*','operation':3,'permissionType':3}");
        CHECK_SAME(w->changes,
                   "v11 o4 config_changed min.insync.replicas=2");
        kw_add(&w->log, 4, 0, "bsss", 4, "", "min.insync.replicas", "2");
        rw_commit(w);
        CHECK_SAME(w->changes, "");
        kw_add(&w->log, 4, 0, "bsss", 4, "", "min.insync.replicas", NULL);
        rw_commit(w);
        CHECK_SAME(w->changes, "v13 o12 config_changed min.insync.replicas");
}

REPLAY_TEST(test_a_quotas_entity_is_a_set) {
        kw_add(&w->log, 14, 0, "css.ss.sdb", 2, "user", "a", "client-id", NULL,
               "rate", 5.0, 0);
        kw_add(&w->log, 14, 0, "css.ss.sdb", 2, "client-id", NULL, "user", "a",
               "rate", 6.0, 0);
        kw_add(&w->log, 14, 0, "css.sdb", 1, "user", "a", "rate", 7.0, 0);
        rw_commit(w);
        CHECK(rw_info(w).facts == 2);
        kw_add(&w->log, 14, 0, "css.ss.sdb", 2, "user", "a", "client-id", NULL,
               "rate", 0.0, 1);
        rw_commit(w);
        CHECK_SAME(rw_facts(w),
                   "{'entity':[{'entityType':'user','entityName':'a'}],"
                   "'key':'rate','value':7.0,'remove':false}");
}

REPLAY_TEST(test_control_records_are_facts_and_say_who_leads) {
        kw_control(&w->log, 2, "hicc", 0, 3000, 0, 0);
        kw_control(&w->log, 5, "hh", 0, 1);
        rw_commit(w);
        CHECK(rw_info(w).leader == 3000 && rw_info(w).epoch == 1);
        CHECK_SAME(rw_facts(w), "{'version':0,'kRaftVersion':1}");
        CHECK_SAME(w->changes, "v2 o0 controller_changed b3000 @1");
        w->log.epoch = 2;
        kw_control(&w->log, 2, "hicc", 0, 3001, 0, 0);
        rw_commit(w);
        CHECK(rw_info(w).leader == 3001 && rw_info(w).epoch == 2);
        w->log.epoch = 1;
        kw_add(&w->log, 20, 0, "");
        rw_refused(w, "batch of offset 3: its epoch is below an earlier one");
}

/* ---- transactions -------------------------------------------------------- */

CLUSTER_TEST(test_a_transaction_over_batches_is_shown_at_its_end) {
        rw_topic(w, "before", 'b');
        kw_add(&w->log, 23, 0, "<s>", 0, "create topics");
        rw_topic(w, "u", 'c');
        rw_commit(w);
        CHECK_SAME(w->changes, "v6 o5 topic_added before");
        CHECK(rw_info(w).topics == 2 && rw_info(w).pending == 1);
        CHECK(rw_info(w).transaction == 6);
        rw_partition(w, 'c', 0, "1", 1);
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'c', 0), "none");
        CHECK(rw_info(w).pending == 2);
        kw_add(&w->log, 24, 0, "");
        rw_topic(w, "behind", 'd');
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'c', 0), "1@0 e0 r1 i1");
        CHECK_SAME(w->changes, "v10 o7 topic_added u; "
                               "v10 o8 topic_added u /0 >1 @0 i1 r1 e0; "
                               "v11 o10 topic_added behind");
        CHECK(rw_info(w).transaction == -1 && !rw_info(w).pending);
}

CLUSTER_TEST(test_an_aborted_transaction_leaves_nothing) {
        char *before, *after;

        before = rw_dump(w);
        kw_add(&w->log, 23, 0, "");
        rw_topic(w, "u", 'c');
        kw_add(&w->log, 25, 0, "<s>", 0, "why");
        rw_commit(w);
        after = rw_dump(w);
        CHECK(rw_info(w).next == 8 && rw_info(w).transaction == -1);
        CHECK(strlen(before) == strlen(after)); /* all but the offset */
        CHECK(!memcmp(before, after, strlen(before) - 1));
        CHECK_SAME(w->changes, "");
        free(before);
        free(after);
}

/* Kafka 4.3's loader keeps what was aborted if records follow in the batch. */
CLUSTER_TEST(test_records_behind_an_abort_in_its_batch_are_shown_alone) {
        kw_add(&w->log, 23, 0, "");
        rw_topic(w, "u", 'c');
        kw_add(&w->log, 25, 0, "");
        rw_topic(w, "v", 'd');
        rw_commit(w);
        CHECK_SAME(w->changes, "v9 o8 topic_added v");
        CHECK(rw_info(w).topics == 2);
}

CLUSTER_TEST(test_a_leader_change_does_not_belong_to_a_transaction) {
        kw_add(&w->log, 23, 0, "");
        rw_commit(w);
        w->log.epoch = 2;
        w->log.time_ms += 250;
        kw_control(&w->log, 2, "hicc", 0, 3001, 0, 0);
        rw_commit(w);
        CHECK_SAME(w->changes,
                   "v7 o6 controller_changed b3001 @2 unseen 250000");
}

CLUSTER_TEST(test_transactions_that_overlap_are_refused) {
        kw_add(&w->log, 24, 0, "");
        rw_refused(w, "offset 5: END_TRANSACTION_RECORD version 0 ends a "
                      "transaction that did not begin");
        kw_add(&w->log, 23, 0, "");
        rw_commit(w);
        kw_add(&w->log, 23, 0, "");
        rw_refused(w, "offset 6: BEGIN_TRANSACTION_RECORD version 0 begins a "
                      "transaction in another one");
}

/* ---- contradictions ------------------------------------------------------ */

CLUSTER_TEST(test_a_record_that_contradicts_the_state_is_named) {
        rw_topic(w, "t", 'b');
        rw_refused(w, "offset 5: TOPIC_RECORD version 0 makes topic t, which "
                      "there is");
        rw_topic(w, "u", 'a');
        rw_refused(w, "offset 5: TOPIC_RECORD version 0 has id "
                      "YWFhYWFhYWFhYWFhYWFhYQ, which another topic has");
        rw_partition(w, 'b', 0, "1", 1);
        rw_refused(w, "offset 5: PARTITION_RECORD version 0 is of topic "
                      "YmJiYmJiYmJiYmJiYmJiYg, which is unknown");
        kw_add(&w->log, 5, 0, "iu", 1, 'a');
        rw_refused(w, "offset 5: PARTITION_CHANGE_RECORD version 0 is of "
                      "partition 1 of topic YWFhYWFhYWFhYWFhYWFhYQ, which "
                      "is unknown");
        rw_partition(w, 'a', -1, "1", 1);
        rw_refused(w, "offset 5: PARTITION_RECORD version 0 is of partition "
                      "-1");
        kw_add(&w->log, 9, 0, "u", 'b');
        rw_refused(w, "offset 5: REMOVE_TOPIC_RECORD version 0 removes topic "
                      "YmJiYmJiYmJiYmJiYmJiYg, which is unknown");
}

CLUSTER_TEST(test_with_skip_what_contradicts_is_counted_and_the_state_partial) {
        w->replay->conf.skip = 1;
        rw_topic(w, "t", 'b');
        rw_topic(w, "u", 'c');
        rw_commit(w);
        CHECK(rw_info(w).topics == 2 && rw_info(w).skipped == 1);
        CHECK(rw_info(w).partial);
        w->log.offset += 5;
        rw_topic(w, "v", 'd');
        rw_commit(w);
        CHECK(rw_info(w).topics == 3 && rw_info(w).skipped == 2);
        CHECK(rw_info(w).next == 13);
}

CLUSTER_TEST(test_a_gap_is_an_error) {
        w->log.offset++;
        rw_topic(w, "u", 'b');
        kw_batch(&w->log);
        CHECK(rw_feed(w) == RDMETA_ERR_MALFORMED);
        CHECK(rdmeta_kraft_fault(w->replay)->code == RDMETA_KRAFT_GAP);
        CHECK(rdmeta_kraft_fault(w->replay)->offset == 6);
}

CLUSTER_TEST(test_unknown_types_and_versions_make_the_state_partial) {
        CHECK(!rw_info(w).partial);
        kw_add(&w->log, 29, 0, "i", 5);
        kw_add(&w->log, 2, 9, "");
        kw_add(&w->log, 23, 7, "");
        rw_commit(w);
        CHECK(rw_info(w).unknown == 3 && rw_info(w).partial);
        CHECK(rw_info(w).next == 8);
}

/* ---- repeated, resumed, cut ---------------------------------------------- */

/* Adds all kinds of steps to the log. Returns its state. */
static char *long_log(rw_t *w) {
        kw_control(&w->log, 2, "hicc", 0, 3000, 0, 0);
        rw_commit(w);
        rw_topic(w, "u", 'b');
        rw_partition(w, 'b', 0, "2,3", 2);
        kw_add(&w->log, 23, 0, "");
        kw_add(&w->log, 4, 0, "bsss", 2, "u", "retention.ms", "5");
        kw_add(&w->log, 5, 0, "iu<i>", 0, 'b', 1, 3);
        rw_commit(w);
        w->log.time_ms += 500;
        kw_add(&w->log, 7, 0, "il", 1, INT64_C(11));
        kw_add(&w->log, 24, 0, "");
        kw_add(&w->log, 9, 0, "u", 'a');
        rw_commit(w);
        rw_topic(w, "t", 'c');
        kw_add(&w->log, 3, 1, "iuLLLLiiicuu", 7, 'c', "1,2", "1", "", "", 1, 5,
               5, 2, 'x', 'y');
        rw_commit(w);
        return rw_dump(w);
}

CLUSTER_TEST(test_a_repeated_replay_changes_nothing) {
        char *before = long_log(w), *after;

        w->fed       = 0;
        *w->changes = '\0';
        CHECK(!rw_feed(w));
        after = rw_dump(w);
        CHECK_SAME(after, before);
        CHECK_SAME(w->changes, "");
        free(before);
        free(after);
}

CLUSTER_TEST(test_pieces_of_any_size_give_the_state_and_changes_of_the_whole) {
        char *whole = long_log(w), *pieces, changes[RW_TEXT];
        size_t size, used, n, at;

        rw_renew(w);
        CHECK(!rw_feed(w));
        memcpy(changes, w->changes, RW_TEXT);
        for (size = 1; size < w->log.log.len; size += 7) {
                rw_renew(w);
                for (at = 0, n = size; at < w->log.log.len;) {
                        uint8_t *exact;

                        n = n > w->log.log.len - at ? w->log.log.len - at : n;
                        exact = gen_bytes_exact(w->log.log.data + at, n);
                        CHECK(!rdmeta_kraft_replay(w->replay, exact, n,
                                                   &used));
                        free(exact);
                        n = used ? size : n + size;
                        at += used;
                        if (!used)
                                CHECK(rdmeta_kraft_fault(w->replay)->code ==
                                      RDMETA_KRAFT_CUT);
                }
                pieces = rw_dump(w);
                CHECK_SAME(pieces, whole);
                CHECK_SAME(w->changes, changes);
                free(pieces);
        }
        free(whole);
}

CLUSTER_TEST(test_each_prefix_of_a_log_is_a_state) {
        char *whole = long_log(w);
        size_t n, used;

        for (n = 0; n < w->log.log.len; n++) {
                uint8_t *exact = gen_bytes_exact(w->log.log.data, n);

                rw_renew(w);
                CHECK(!rdmeta_kraft_replay(w->replay, exact, n, &used));
                CHECK(used <= n);
                CHECK((rdmeta_kraft_fault(w->replay)->code ==
                       RDMETA_KRAFT_CUT) == (used < n));
                free(exact);
        }
        free(whole);
}

CLUSTER_TEST(test_every_allocation_may_fail_and_the_same_call_goes_on) {
        char *whole = long_log(w), *again, changes[RW_TEXT];
        size_t calls, fail_at;

        rw_renew(w);
        CHECK(!rw_feed(w));
        memcpy(changes, w->changes, RW_TEXT);
        calls = w->heap.calls;
        rw_renew(w);
        CHECK(calls > w->heap.calls + 10);
        for (fail_at = w->heap.calls + 1; fail_at <= calls; fail_at++) {
                rw_renew(w);
                w->heap.fail_at = fail_at;
                CHECK(rw_feed(w) == RDMETA_ERR_NO_MEMORY);
                CHECK(!rw_feed(w));
                again = rw_dump(w);
                CHECK_SAME(again, whole);
                CHECK(strlen(w->changes) >= strlen(changes));
                free(again);
        }
        free(whole);
}

TEST(test_a_replay_that_cannot_be_made_frees_all) {
        rdmeta_kraft_replay_t *r;
        rdmeta_kraft_conf_t conf;
        test_heap_t heap;
        size_t fail_at;

        rdmeta_kraft_conf_init(&conf);
        conf.allocator = test_allocator(&heap);
        conf.epoch     = 3;
        for (fail_at = 1; fail_at <= 3; fail_at++) {
                heap.calls   = 0;
                heap.fail_at = fail_at;
                CHECK(rdmeta_kraft_replay_new(&conf, &r) ==
                      RDMETA_ERR_NO_MEMORY);
                CHECK(!r && !heap.blocks);
        }
        conf.size--;
        CHECK(rdmeta_kraft_replay_new(&conf, &r) == RDMETA_ERR_ARGUMENT);
}

CLUSTER_TEST(test_a_replay_ends_at_an_offset_or_a_time) {
        rdmeta_kraft_info_t info;
        char *whole = long_log(w);

        rw_renew(w);
        rdmeta_kraft_replay_until(w->replay, 6, INT64_MAX);
        CHECK(rdmeta_kraft_replay(w->replay, w->log.log.data, w->log.log.len,
                                  &w->fed) == 0);
        info = rw_info(w);
        CHECK(info.next == 6);
        CHECK(rdmeta_kraft_fault(w->replay)->code == RDMETA_KRAFT_REACHED);
        rdmeta_kraft_replay_until(w->replay, INT64_MAX, 1000000);
        CHECK(!rdmeta_kraft_replay(w->replay, w->log.log.data, w->log.log.len,
                                   &w->fed));
        CHECK(rw_info(w).next == 11 && rw_info(w).pending == 2);
        CHECK(rw_info(w).latest_us == 1000000);
        free(whole);
}

CLUSTER_TEST(test_changes_keep_the_latest_time_when_a_clock_goes_back) {
        rdmeta_kraft_partition_t p;
        uint8_t id[16];

        w->log.time_ms = 400;
        kw_add(&w->log, 5, 0, "iu<i>", 0, 'a', 1, 2);
        rw_commit(w);
        CHECK(rw_info(w).clocks_back == 1);
        CHECK(rw_info(w).latest_us == 1000000);
        CHECK(w->replay->changes.out.record.wall_us == 1000000);
        memset(id, 'a', 16);
        CHECK(rdmeta_kraft_partition_find(rw_state(w), id, 0, &p));
        CHECK(p.mark.time_us == 400000 && p.mark.offset == 5);
}

CLUSTER_TEST(test_an_election_out_of_sync_is_unclean) {
        kw_add(&w->log, 5, 0, "iu<L><i>", 0, 'a', 0, "1", 1, -1);
        rw_commit(w);
        kw_add(&w->log, 5, 0, "iu<L><i><b>", 0, 'a', 0, "3", 1, 3, 5, 1);
        rw_commit(w);
        CHECK_SAME(w->changes,
                   "v7 o6 leader_changed t /0 <-1 >3 <@1 @2 e2; "
                   "v7 o6 isr_changed t /0 <-1 >3 <@1 @2 <i1 i3 e2; "
                   "v7 o6 unclean_election t /0 >3 @2 e2");
        kw_add(&w->log, 5, 0, "iu<L><b>", 0, 'a', 0, "3,1", 5, 0);
        rw_commit(w);
        CHECK_SAME(w->changes,
                   "v8 o7 isr_changed t /0 <3 >3 <@2 @2 <i3 i3,1 e3");
}

CLUSTER_TEST(test_a_reassignment_and_more_partitions_are_changes) {
        kw_add(&w->log, 5, 0, "iu<L><L>", 0, 'a', 2, "1,2,3,4", 4, "4");
        rw_partition(w, 'a', 1, "1", 1);
        rw_commit(w);
        CHECK_SAME(w->changes, "v7 o5 replicas_changed t /0 r1,2,3,4 e1; "
                               "v7 o5 reassignment_changed t /0 +4 e1; "
                               "v7 o6 partitions_added t /1 >1 @0 i1 r1 e0");
}

CLUSTER_TEST(test_a_whole_state_is_told_by_changes) {
        kw_add(&w->log, 7, 0, "il", 2, INT64_C(12));
        kw_add(&w->log, 4, 0, "bsss", 2, "t", "retention.ms", "5");
        kw_add(&w->log, 4, 0, "bsss", 4, "1", "ssl.key.password", "secret");
        kw_add(&w->log, 12, 0, "sh", "metadata.version", 20);
        rw_commit(w);
        *w->changes = '\0';
        CHECK(!rdmeta_kraft_state_changes(w->replay, 99, rw_visit, w));
        CHECK_SAME(w->changes,
                   "v9 o0 broker_added b1 e11 h:9091; "
                   "v9 o0 broker_unfenced b1 e11; "
                   "v9 o5 broker_added b2 e12 h:9092; "
                   "v9 o5 broker_fenced b2 e12; "
                   "v9 o2 broker_added b3 e13 h:9093; "
                   "v9 o2 broker_unfenced b3 e13; "
                   "v9 o3 topic_added t; "
                   "v9 o4 topic_added t /0 >1 @0 i1,2,3 r1,2,3 e0; "
                   "v9 o6 config_changed t retention.ms=5; "
                   "v9 o7 config_changed b1 ssl.key.password=***");
        CHECK(w->replay->changes.out.record.wall_us == 99);
}

/* ---- snapshots ----------------------------------------------------------- */

/* Writes a snapshot of one topic, in batches of its own offsets. */
static kw_t snapshot(void) {
        kw_t w = {.epoch = 4, .time_ms = 77};

        kw_control(&w, 3, "hl", 0, INT64_C(5000));
        kw_batch(&w);
        kw_add(&w, 2, 0, "su", "t", 'a');
        kw_add(&w, 3, 0, "iuLLLLiii", 0, 'a', "1", "1", "", "", 1, 5, 6);
        kw_batch(&w);
        kw_add(&w, 12, 0, "sh", "metadata.version", 20);
        kw_batch(&w);
        kw_control(&w, 4, "h", 0);
        kw_batch(&w);
        return w;
}

REPLAY_TEST(test_a_snapshot_is_a_state_and_the_log_goes_on) {
        kw_t s = snapshot();
        rdmeta_kraft_topic_t t;
        size_t used, n;
        int32_t ended;

        for (n = 0; n < s.log.len; n++) {
                rw_renew(w);
                CHECK(!rdmeta_kraft_replay_snapshot(w->replay, s.log.data, n,
                                                    100, 4, &used, &ended));
                CHECK(!ended && used <= n);
                CHECK(rdmeta_kraft_replay(w->replay, NULL, 0, &used) ==
                      RDMETA_ERR_ARGUMENT);
        }
        rw_renew(w);
        CHECK(!rdmeta_kraft_replay_snapshot(w->replay, s.log.data, s.log.len,
                                            100, 4, &used, &ended));
        CHECK(ended && used == s.log.len && rw_info(w).next == 100);
        CHECK_SAME(w->changes, "");
        CHECK_SAME(rw_row(w, 'a', 0), "1@5 e6 r1 i1");
        CHECK(rdmeta_kraft_topic_find(rw_state(w), test_str("t"), &t));
        CHECK(t.mark.at_or_before && t.mark.offset == 99);
        CHECK(t.mark.epoch == 4 && t.mark.time_us == 5000000);
        w->log.offset  = 100;
        w->log.epoch   = 4;
        w->log.time_ms = 6000;
        kw_add(&w->log, 5, 0, "iu<i>", 0, 'a', 1, 2);
        rw_commit(w);
        CHECK_SAME(rw_row(w, 'a', 0), "2@6 e7 r1 i1");
        CHECK(rdmeta_kraft_replay_snapshot(w->replay, s.log.data, s.log.len,
                                           100, 4, &used, &ended) ==
              RDMETA_ERR_ARGUMENT);
        kw_free(&s);
}

REPLAY_TEST(test_a_snapshot_without_a_header_is_refused) {
        kw_t s = {.epoch = 4};
        size_t used;
        int32_t ended;

        kw_add(&s, 2, 0, "su", "t", 'a');
        kw_batch(&s);
        CHECK(rdmeta_kraft_replay_snapshot(w->replay, s.log.data, s.log.len,
                                           100, 4, &used, &ended) ==
              RDMETA_ERR_MALFORMED);
        CHECK(!used && !ended);
        kw_free(&s);
}

REPLAY_TEST(test_many_topics_partitions_and_directories_are_found) {
        char name[16];
        uint8_t id[16];
        rdmeta_kraft_partition_t p;
        int i, k;

        for (i = 0; i < 100; i++) {
                snprintf(name, sizeof(name), "t%d", i);
                rw_topic(w, name, (char)(i + 1));
                for (k = 9; k >= 0; k--)
                        kw_add(&w->log, 3, 1, "iuLLLLiiicu", k * (1 + i % 3),
                               i + 1, "1", "1", "", "", 1, i, 0, 1,
                               (i + k) & 127);
        }
        rw_commit(w);
        for (i = 0; i < 100; i += 2)
                kw_add(&w->log, 9, 0, "u", i + 1);
        rw_commit(w);
        for (i = 0; i < 100; i++)
                for (k = 0; k < 10; k++) {
                        memset(id, i + 1, 16);
                        CHECK(rdmeta_kraft_partition_find(
                                      rw_state(w), id, k * (1 + i % 3),
                                      &p) == (i & 1));
                        CHECK(!(i & 1) || p.leader_epoch == i);
                        CHECK(!(i & 1) ||
                              rdmeta_kraft_directory_id(
                                      rw_state(w),
                                      rdmeta_be32(p.directories.be))[3] ==
                                      ((i + k) & 127));
                }
        CHECK(rw_info(w).topics == 50 && rw_info(w).partitions == 500);
}

TEST_MAIN()
