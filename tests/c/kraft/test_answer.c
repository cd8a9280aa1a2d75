/* answer: a state as a Metadata answer, read by the decoder. */
#include "support/replay_fixture.h"

typedef struct seen {
        char text[RW_TEXT];
} seen_t;

static void put_ids(char *text, const char *what, rdmeta_wire_ids_t l) {
        uint32_t i;

        rw_put(text, " %s", what);
        for (i = 0; i < l.count; i++)
                rw_put(text, "%s%d", i ? "," : "",
                       (int32_t)rdmeta_be32(l.be + 4 * (size_t)i));
}

static int32_t see_broker(void *opaque, const rdmeta_broker_t *b) {
        rw_put(opaque, "%d=%.*s:%d%s%.*s ", b->id, (int)b->host.len,
               b->host.data, b->port, b->rack.data ? "=" : "",
               (int)b->rack.len, b->rack.data ? b->rack.data : "");
        return 0;
}

static int32_t see_head(void *opaque, const rdmeta_wire_head_t *h) {
        rw_put(opaque, "| %.*s c%d", (int)h->cluster_id.len,
               h->cluster_id.data ? h->cluster_id.data : "", h->controller);
        return 0;
}

static int32_t see_topic(void *opaque, const rdmeta_wire_topic_t *t) {
        rw_put(opaque, "; %.*s#%c%s", (int)t->name.len, t->name.data,
               t->id[0], t->internal ? "~" : "");
        return 0;
}

static int32_t see_partition(void *opaque, const rdmeta_wire_partition_t *p) {
        rw_put(opaque, " %d:%d@%d", p->id, p->leader, p->leader_epoch);
        put_ids(opaque, "r", p->replicas);
        put_ids(opaque, "i", p->isr);
        if (p->offline_replicas.count)
                put_ids(opaque, "o", p->offline_replicas);
        if (p->error)
                rw_put(opaque, " e%d", p->error);
        return 0;
}

/* Returns the answer of the state as text. */
static const char *answer(rw_t *w, const char *listener) {
        static seen_t seen;
        const rdmeta_wire_visitor_t visitor = {
                .broker = see_broker, .head = see_head, .topic = see_topic,
                .partition = see_partition};
        void *body;
        size_t len, offset;

        *seen.text = '\0';
        CHECK(!rdmeta_kraft_answer(rw_state(w), test_str("c"),
                                   test_str(listener), &body, &len));
        CHECK(!rdmeta_metadata_response_decode(body, len, 12, 0, &visitor,
                                               seen.text, &offset));
        rdmeta_kraft_answer_free(body);
        return seen.text;
}

REPLAY_TEST(test_a_state_is_what_a_broker_would_answer) {
        rw_broker(w, 1, 11, 0);
        rw_broker(w, 2, 12, 0);
        kw_add(&w->log, 0, 1, "iulcsshh.sshh.csbb", 3, 'C', INT64_C(13), 2,
               "X", "hx", 1, 0, "P", "hp", 2, 0, 0, "r", 1, 0);
        rw_topic(w, "t", 'a');
        rw_partition(w, 'a', 0, "1,2,3", 1);
        rw_partition(w, 'a', 1, "3,1", 3);
        rw_partition(w, 'a', 2, "4", 4);
        rw_partition(w, 'a', 3, "1", -1);
        rw_topic(w, "__consumer_offsets", 'b');
        rw_commit(w);
        CHECK_SAME(answer(w, NULL),
                   "1=h:9091 2=h:9092 | c c1; __consumer_offsets#b~; t#a "
                   "0:1@0 r1,2,3 i1,2,3 o3 1:3@0 r3,1 i3,1 o3 "
                   "2:-1@0 r4 i4 o4 e5 3:-1@0 r1 i1 e5");
        kw_add(&w->log, 8, 0, "il", 3, INT64_C(13));
        kw_add(&w->log, 7, 0, "il", 1, INT64_C(11));
        rw_commit(w);
        CHECK_SAME(answer(w, "X"),
                   "3=hx:1=r | c c3; __consumer_offsets#b~; t#a "
                   "0:-1@0 r1,2,3 i1,2,3 o1 e72 1:3@0 r3,1 i3,1 o1 "
                   "2:-1@0 r4 i4 o4 e5 3:-1@0 r1 i1 o1 e5");
}

REPLAY_TEST(test_an_empty_state_answers_nothing) {
        CHECK_SAME(answer(w, NULL), "| c c-1");
}

TEST_MAIN()
