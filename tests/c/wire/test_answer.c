/* answer: what is decoded and encoded again is the same bytes, and what cannot
 * be encoded is refused. */
#include "support/failing_malloc.h"

#include "wire/answer.c"

#include "support/wire_gen.h"

/* ---- a visitor that encodes what it sees -------------------------------- */

typedef struct again {
        rdmeta_answer_t answer;
        uint32_t brokers; /* seen in a first pass */
        int writes;
} again_t;

static int32_t again_broker(void *opaque, const rdmeta_broker_t *broker) {
        again_t *again = opaque;

        again->brokers++;
        if (again->writes)
                rdmeta_answer_broker(&again->answer, broker);
        return 0;
}

static int32_t again_head(void *opaque, const rdmeta_wire_head_t *head) {
        again_t *again = opaque;

        if (!again->writes)
                return 1;
        rdmeta_answer_head(&again->answer, head);
        return 0;
}

static int32_t again_topic(void *opaque, const rdmeta_wire_topic_t *topic) {
        rdmeta_answer_topic(&((again_t *)opaque)->answer, topic);
        return 0;
}

static int32_t again_partition(void *opaque,
                               const rdmeta_wire_partition_t *partition) {
        rdmeta_answer_partition(&((again_t *)opaque)->answer, partition);
        return 0;
}

static int32_t again_topic_end(void *opaque,
                               const rdmeta_wire_topic_t *topic) {
        rdmeta_answer_topic_end(&((again_t *)opaque)->answer, topic);
        return 0;
}

/* Decodes an answer and encodes it again. The caller destroys it. */
static rdmeta_err_t encode_again(const gen_bytes_t *body, again_t *again) {
        static const rdmeta_wire_visitor_t visitor = {
                again_broker,    again_head,      again_topic,
                again_partition, again_topic_end, NULL};

        memset(again, 0, sizeof(*again));
        CHECK(rdmeta_metadata_response_decode(body->data, body->len, 12, 0,
                                              &visitor, again, NULL) == 1);
        rdmeta_answer_begin(&again->answer, again->brokers);
        again->writes = 1;
        CHECK(!rdmeta_metadata_response_decode(body->data, body->len, 12, 0,
                                               &visitor, again, NULL));
        return rdmeta_answer_end(&again->answer);
}

/* Takes out what the encoder does not write: tagged fields, a throttle, and
 * null lists, which read as empty ones. */
static void make_plain(gen_cluster_t *cluster) {
        uint32_t i, k;

        cluster->tag_seed    = 0;
        cluster->throttle_ms = 0;
        for (i = 0; i < cluster->topic_count; i++)
                for (k = 0; k < cluster->topics[i].partition_count; k++) {
                        gen_partition_t *p = &cluster->topics[i].partitions[k];

                        p->replicas.count += p->replicas.count < 0;
                        p->isr.count += p->isr.count < 0;
                        p->offline.count += p->offline.count < 0;
                }
}

static void check_again(gen_cluster_t *cluster) {
        gen_bytes_t body = {0};
        again_t again;

        make_plain(cluster);
        gen_response(cluster, RDMETA_ANSWER_VERSION, &body);
        CHECK(encode_again(&body, &again) == RDMETA_OK);
        CHECK(again.answer.len == body.len);
        CHECK(!memcmp(again.answer.data, body.data, body.len));
        rdmeta_answer_destroy(&again.answer);
        gen_bytes_free(&body);
}

TEST(test_what_is_decoded_and_encoded_again_is_the_same) {
        const gen_shape_t shape = {3, 7, 100000, 40, 9, 3};
        gen_cluster_t *cluster  = gen_cluster_new(&shape);
        uint64_t seed;

        check_again(cluster);
        gen_cluster_free(cluster);
        for (seed = 1; seed < 300; seed++) {
                cluster = gen_odd_cluster_new(seed);
                check_again(cluster);
                free(cluster);
        }
}

TEST(test_an_answer_of_nothing_is_an_answer) {
        gen_cluster_t cluster = {0};

        check_again(&cluster);
}

/* ---- what cannot be encoded --------------------------------------------- */

typedef struct part {
        rdmeta_broker_t broker;
        rdmeta_wire_head_t head;
        rdmeta_wire_topic_t topic;
        rdmeta_wire_partition_t partition;
        int brokers, topics, partitions, ends; /* calls */
} part_t;

static part_t sound(void) {
        static const uint8_t id[16] = {1};
        static const uint8_t ids[8] = {0, 0, 0, 1, 0, 0, 0, 2};
        const rdmeta_wire_ids_t two = {ids, 2}, none = {ids, 0};
        const part_t part           = {
                .broker     = {1, 9092, {"h", 1}, {NULL, 0}},
                .head       = {.topics = 1, .controller = -1},
                .topic      = {{"t", 1}, id, 0, 0, 1, 0},
                .partition  = {0, 1, 5, 0, two, two, none},
                .brokers    = 1,
                .topics     = 1,
                .partitions = 1,
                .ends       = 1};

        return part;
}

static rdmeta_err_t encode(const part_t *part) {
        rdmeta_answer_t a;
        rdmeta_err_t err;
        int i;

        rdmeta_answer_begin(&a, 1);
        for (i = 0; i < part->brokers; i++)
                rdmeta_answer_broker(&a, &part->broker);
        rdmeta_answer_head(&a, &part->head);
        for (i = 0; i < part->topics; i++)
                rdmeta_answer_topic(&a, &part->topic);
        for (i = 0; i < part->partitions; i++)
                rdmeta_answer_partition(&a, &part->partition);
        for (i = 0; i < part->ends; i++)
                rdmeta_answer_topic_end(&a, &part->topic);
        err = rdmeta_answer_end(&a);
        rdmeta_answer_destroy(&a);
        CHECK(!a.data);
        return err;
}

TEST(test_other_numbers_than_announced_are_refused) {
        part_t part = sound();
        int *const counts[] = {&part.brokers, &part.topics, &part.partitions};
        int i, k;

        CHECK(encode(&part) == RDMETA_OK);
        for (i = 0; i < 3; i++)
                for (k = 0; k <= 2; k++) {
                        part       = sound();
                        *counts[i] = k;
                        CHECK(encode(&part) ==
                              (k == 1 ? RDMETA_OK : RDMETA_ERR_ARGUMENT));
                }
}

TEST(test_strings_that_kafka_cannot_have_are_refused) {
        const rdmeta_str_t none = {NULL, 0}, wrong = {NULL, 1};
        static char text[32768];
        const rdmeta_str_t longest = {text, 32767}, longer = {text, 32768};
        part_t part = sound();

        part.broker.host = part.broker.rack = part.topic.name = longest;
        part.head.cluster_id = longest;
        CHECK(encode(&part) == RDMETA_OK);
        part.topic.name = part.head.cluster_id = none;
        CHECK(encode(&part) == RDMETA_OK);
        part.broker.host = none;
        CHECK(encode(&part) == RDMETA_ERR_ARGUMENT);
        part             = sound();
        part.broker.rack = longer;
        CHECK(encode(&part) == RDMETA_ERR_ARGUMENT);
        part            = sound();
        part.topic.name = wrong;
        CHECK(encode(&part) == RDMETA_ERR_ARGUMENT);
        part                 = sound();
        part.head.cluster_id = longer;
        CHECK(encode(&part) == RDMETA_ERR_ARGUMENT);
        part          = sound();
        part.topic.id = NULL;
        CHECK(encode(&part) == RDMETA_ERR_ARGUMENT);
}

TEST(test_counts_that_no_array_has_are_refused) {
        rdmeta_answer_t a;
        part_t part = sound();

        rdmeta_answer_begin(&a, UINT32_MAX);
        CHECK(rdmeta_answer_end(&a) == RDMETA_ERR_ARGUMENT && !a.data);
        part.head.topics = UINT32_MAX;
        CHECK(encode(&part) == RDMETA_ERR_ARGUMENT);
        part                  = sound();
        part.topic.partitions = UINT32_MAX;
        CHECK(encode(&part) == RDMETA_ERR_ARGUMENT);
        part                          = sound();
        part.partition.isr.count      = INT32_MAX;
        part.partition.replicas.count = 1;
        CHECK(encode(&part) == RDMETA_ERR_ARGUMENT);
}

TEST(test_each_allocation_can_fail) {
        const gen_shape_t shape = {3, 7, 1, 100, 9, 3};
        gen_cluster_t *cluster  = gen_cluster_new(&shape);
        gen_bytes_t body        = {0};
        rdmeta_err_t err        = RDMETA_ERR_NO_MEMORY;
        again_t again;

        gen_response(cluster, RDMETA_ANSWER_VERSION, &body);
        counted.blocks = 0; /* free() above had blocks of other files */
        for (counted.fail_at = 1; err; counted.fail_at++) {
                counted.calls = 0;
                err           = encode_again(&body, &again);
                CHECK(!err || err == RDMETA_ERR_NO_MEMORY);
                rdmeta_answer_destroy(&again.answer);
                CHECK(!counted.blocks);
        }
        CHECK(counted.fail_at > 4);
        counted.fail_at = 0;
        gen_bytes_free(&body);
        gen_cluster_free(cluster);
}

/* ---- a whole answer ------------------------------------------------------ */

/* Encodes two brokers, and two topics with 2 partitions and 1. */
static rdmeta_err_t encode_whole(const part_t *part, uint8_t *buf,
                                 size_t capacity, size_t *len) {
        const rdmeta_broker_t brokers[2] = {part->broker, part->broker};
        const rdmeta_wire_partition_t partitions[3] = {
                part->partition, part->partition, part->partition};
        rdmeta_wire_topic_t topics[2] = {part->topic, part->topic};
        rdmeta_wire_head_t head       = part->head;

        head.brokers = head.topics = 2;
        topics[0].partitions       = 2;
        return rdmeta_metadata_response_encode(&head, brokers, topics,
                                               partitions, buf, capacity, len);
}

TEST(test_a_whole_answer_is_that_of_its_parts) {
        part_t part = sound();
        uint8_t buf[1000];
        rdmeta_answer_t a;
        size_t len = 0, need = 0;

        rdmeta_answer_begin(&a, 2);
        rdmeta_answer_broker(&a, &part.broker);
        rdmeta_answer_broker(&a, &part.broker);
        part.head.topics = 2;
        rdmeta_answer_head(&a, &part.head);
        part.topic.partitions = 2;
        rdmeta_answer_topic(&a, &part.topic);
        rdmeta_answer_partition(&a, &part.partition);
        rdmeta_answer_partition(&a, &part.partition);
        rdmeta_answer_topic_end(&a, &part.topic);
        part.topic.partitions = 1;
        rdmeta_answer_topic(&a, &part.topic);
        rdmeta_answer_partition(&a, &part.partition);
        rdmeta_answer_topic_end(&a, &part.topic);
        CHECK(rdmeta_answer_end(&a) == RDMETA_OK);
        CHECK(encode_whole(&part, NULL, 0, &need) == RDMETA_ERR_TOO_SMALL);
        CHECK(need == a.len);
        CHECK(encode_whole(&part, buf, need - 1, &len) ==
              RDMETA_ERR_TOO_SMALL);
        CHECK(encode_whole(&part, buf, need, &len) == RDMETA_OK);
        CHECK(len == need && !memcmp(buf, a.data, len));
        rdmeta_answer_destroy(&a);
        part.broker.host.data = NULL;
        CHECK(encode_whole(&part, buf, need, &len) == RDMETA_ERR_ARGUMENT);
        CHECK(!len);
        part            = sound();
        counted.calls   = 0;
        counted.fail_at = 1;
        CHECK(encode_whole(&part, buf, need, &len) == RDMETA_ERR_NO_MEMORY);
        counted.fail_at = 0;
        CHECK(!len && !counted.blocks);
}

TEST_MAIN()
