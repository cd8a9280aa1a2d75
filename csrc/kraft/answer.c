/*
 * answer: a state as the Metadata answer of a broker that has caught up.
 *
 * Brokers are those that are not fenced and have the listener. A leader is that
 * of the log, fenced or not. A partition whose leader is no broker has the
 * error LEADER_NOT_AVAILABLE, and LISTENER_NOT_FOUND if that broker lacks the
 * listener. Replicas are offline if their broker is fenced or gone.
 */
#include "wire/answer.h"

#include "kraft/state.h"

#include <stdlib.h>

enum { LEADER_NOT_AVAILABLE = 5, LISTENER_NOT_FOUND = 72 };

/* A small table of brokers, indexed by the last bits of the id, so that most
 * replicas are looked up without a search. */
enum { KNOWN = 256, FETCHED = 16 };

typedef struct known {
        int32_t id;
        int8_t is_known, is_offline;
        int16_t error; /* of a partition that it leads */
} known_t;

typedef struct answering {
        const rdmeta_kraft_state_t *state;
        rdmeta_str_t listener;
        rdmeta_answer_t answer;
        known_t known[KNOWN];
} answering_t;

static int is_listed(const rdmeta_kraft_broker_entry_t *b,
                     rdmeta_str_t listener) {
        rdmeta_broker_t endpoint;

        return !b->fenced && rdmeta_kraft_endpoint(b, listener, &endpoint);
}

/* Writes the brokers, or only counts them. Returns how many; *first is the id
 * of one, or -1. */
static uint32_t put_brokers(const rdmeta_kraft_state_t *s,
                            rdmeta_str_t listener, rdmeta_answer_t *a,
                            int32_t *first) {
        rdmeta_broker_t endpoint;
        rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;
        uint32_t n = 0;

        *first = -1;
        rdmeta_avl_iter_init(&it, &s->brokers, NULL);
        while ((node = rdmeta_avl_iter_next(&it))) {
                if (!is_listed(RDMETA_KRAFT_BROKER_AT(node), listener))
                        continue;
                rdmeta_kraft_endpoint(RDMETA_KRAFT_BROKER_AT(node), listener,
                                      &endpoint);
                if (a)
                        rdmeta_answer_broker(a, &endpoint);
                if (!n++)
                        *first = endpoint.id;
        }
        return n;
}

static int is_internal(const rdmeta_kraft_topic_entry_t *t) {
        static const char *const names[] = {"__consumer_offsets",
                                            "__transaction_state",
                                            "__share_group_state"};
        int i;

        for (i = 0; i < 3; i++)
                if (t->name_len == strlen(names[i]) &&
                    !memcmp(t->name, names[i], t->name_len))
                        return 1;
        return 0;
}

static const known_t *known_of(answering_t *of, int32_t id) {
        known_t *k = &of->known[(uint32_t)id % KNOWN];
        const rdmeta_kraft_broker_entry_t *b;
        rdmeta_broker_t endpoint;

        if (RDMETA_LIKELY(k->is_known && k->id == id))
                return k;
        b             = rdmeta_kraft_broker_of(of->state, id);
        k->id         = id;
        k->is_known   = 1;
        k->is_offline = !b || b->fenced;
        k->error      = 0;
        if (!b)
                k->error = LEADER_NOT_AVAILABLE;
        else if (of->listener.data &&
                 !rdmeta_kraft_endpoint(b, of->listener, &endpoint))
                k->error = LISTENER_NOT_FOUND;
        return k;
}

/* Writes the replicas that are offline; returns how many. */
static uint32_t offline_of(answering_t *of, rdmeta_wire_ids_t replicas,
                           uint8_t *out) {
        uint32_t i, n = 0;

        for (i = 0; i < replicas.count; i++) {
                const uint8_t *id = replicas.be + 4 * (size_t)i;

                if (known_of(of, (int32_t)rdmeta_be32(id))->is_offline)
                        memcpy(out + 4 * (size_t)n++, id, 4);
        }
        return n;
}

static void put_partition(answering_t *of, const rdmeta_kraft_row_t *row) {
        uint8_t offline[4 * RDMETA_KRAFT_LIST_MAX];
        rdmeta_wire_partition_t p = {0};

        p.id           = row->id;
        p.leader_epoch = row->leader_epoch;
        p.error        = known_of(of, row->leader)->error;
        p.leader       = p.error ? -1 : row->leader;
        p.replicas = rdmeta_kraft_row_list(row, RDMETA_KRAFT_REPLICAS);
        p.isr      = rdmeta_kraft_row_list(row, RDMETA_KRAFT_ISR);
        p.offline_replicas.be    = offline;
        p.offline_replicas.count = offline_of(of, p.replicas, offline);
        rdmeta_answer_partition(&of->answer, &p);
}

static void put_topic(answering_t *of, const rdmeta_kraft_topic_entry_t *t) {
        rdmeta_wire_topic_t topic = {0};
        uint32_t i;

        topic.name       = rdmeta_kraft_topic_name(t);
        topic.id         = t->id;
        topic.internal   = is_internal(t);
        topic.partitions = t->count;
        topic.operations = RDMETA_NO_OPERATIONS;
        rdmeta_answer_topic(&of->answer, &topic);
        for (i = 0; i < t->count; i++)
                put_partition(of, t->rows[i]);
        rdmeta_answer_topic_end(&of->answer, &topic);
}

/* Reads the begin of what put_topic() reads of the topics, step by step for all
 * of them, so that the CPU waits once and not for each. */
static void topics_fetch(const rdmeta_kraft_topic_entry_t *const *topics,
                         int n) {
        int i;
        uint32_t k;

        for (i = 0; i < n; i++)
                (void)*(const volatile uint32_t *)&topics[i]->count;
        for (i = 0; i < n; i++)
                if (topics[i]->count)
                        (void)*(rdmeta_kraft_row_t *const volatile *)
                                       topics[i]->rows;
        for (i = 0; i < n; i++)
                for (k = 0; k < topics[i]->count && k < 16; k++)
                        (void)*(const volatile int32_t *)&topics[i]
                                ->rows[k]
                                ->leader;
}

rdmeta_err_t rdmeta_kraft_answer(const rdmeta_kraft_state_t *s,
                                 rdmeta_str_t cluster_id,
                                 rdmeta_str_t listener, void **out,
                                 size_t *len) {
        rdmeta_wire_head_t head = {0};
        answering_t of          = {s, listener, {0}, {{0}}};
        rdmeta_answer_t *a      = &of.answer;
        const rdmeta_kraft_topic_entry_t *topics[FETCHED];
        rdmeta_avl_node_t *node;
        rdmeta_avl_iter_t it;
        rdmeta_err_t err;
        int i, n;

        *out = NULL;
        *len = 0;
        rdmeta_answer_begin(a, put_brokers(s, listener, NULL,
                                            &head.controller));
        rdmeta_answer_expect(a, 64 * (size_t)s->topics + 48 * s->partitions);
        put_brokers(s, listener, a, &head.controller);
        head.cluster_id = cluster_id;
        head.topics     = s->topics;
        rdmeta_answer_head(a, &head);
        rdmeta_avl_iter_init(&it, &s->names, NULL);
        do {
                for (n = 0; n < FETCHED && (node = rdmeta_avl_iter_next(&it));
                     n++)
                        topics[n] = RDMETA_KRAFT_TOPIC_AT(node);
                topics_fetch(topics, n);
                for (i = 0; i < n; i++)
                        put_topic(&of, topics[i]);
        } while (n == FETCHED);
        err = rdmeta_answer_end(a);
        if (err) {
                rdmeta_answer_destroy(a);
                return err;
        }
        *out = a->data;
        *len = a->len;
        return RDMETA_OK;
}

void rdmeta_kraft_answer_free(void *answer) {
        free(answer);
}
