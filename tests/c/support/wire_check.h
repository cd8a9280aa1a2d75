/*
 * wire_check: checks the facts that hold for every decoding of any bytes.
 *
 *     broker*  head  (topic  partition*  topic_end)*  end
 *
 * The visits come in this order, as many as the head announces. Every view lies
 * inside the input, and the check reads it, so that a sanitizer sees a bad one.
 * Tests and fuzz targets use it; a fact that does not hold ends in abort().
 */
#pragma once

#include "rdmeta.h"
#include "support/require.h"

typedef struct wire_check {
        const uint8_t *begin, *end;
        enum { IN_BROKERS, IN_TOPICS, IN_TOPIC, AT_END } at;
        int16_t version;
        uint32_t brokers;            /* seen so far */
        uint32_t topics, partitions; /* still to come */
        uint64_t visits;
        uint64_t sum; /* the sum of the bytes, so that they are read */
} wire_check_t;

static void wire_check_bytes(wire_check_t *c, const void *data, size_t len) {
        const uint8_t *p = data;
        size_t i;

        REQUIRE(p >= c->begin && p <= c->end);
        REQUIRE(len <= (size_t)(c->end - p));
        for (i = 0; i < len; i++)
                c->sum += p[i];
}

static void wire_check_str(wire_check_t *c, rdmeta_str_t s, int nullable) {
        if (s.data) {
                REQUIRE(s.len <= 32767);
                wire_check_bytes(c, s.data, s.len);
        } else {
                REQUIRE(s.len == 0 && nullable);
        }
}

static void wire_check_list(wire_check_t *c, rdmeta_wire_ids_t l) {
        wire_check_bytes(c, l.be, (size_t)l.count * 4);
}

static int32_t wire_check_broker(void *opaque, const rdmeta_broker_t *b) {
        wire_check_t *c = opaque;

        REQUIRE(c->at == IN_BROKERS);
        wire_check_str(c, b->host, 0);
        wire_check_str(c, b->rack, 1);
        REQUIRE(c->version >= 1 || !b->rack.data);
        c->brokers++;
        c->visits++;
        return 0;
}

static int32_t wire_check_head(void *opaque, const rdmeta_wire_head_t *h) {
        wire_check_t *c = opaque;

        REQUIRE(c->at == IN_BROKERS);
        REQUIRE(c->brokers == h->brokers);
        REQUIRE(c->version >= 3 || h->throttle_ms == 0);
        REQUIRE(c->version >= 2 || !h->cluster_id.data);
        REQUIRE(c->version >= 1 || h->controller == -1);
        wire_check_str(c, h->cluster_id, 1);
        c->at     = IN_TOPICS;
        c->topics = h->topics;
        c->visits++;
        return 0;
}

static int32_t wire_check_topic(void *opaque, const rdmeta_wire_topic_t *t) {
        wire_check_t *c = opaque;
        int i;

        REQUIRE(c->at == IN_TOPICS && c->topics > 0);
        wire_check_str(c, t->name, c->version >= 12);
        if (c->version >= 10)
                wire_check_bytes(c, t->id, 16);
        for (i = 0; c->version < 10 && i < 16; i++)
                REQUIRE(t->id[i] == 0);
        REQUIRE(t->internal == 0 || (t->internal == 1 && c->version >= 1));
        REQUIRE(t->error >= INT16_MIN && t->error <= INT16_MAX);
        c->at         = IN_TOPIC;
        c->partitions = t->partitions;
        c->visits++;
        return 0;
}

static int32_t wire_check_partition(void *opaque,
                                    const rdmeta_wire_partition_t *p) {
        wire_check_t *c = opaque;

        REQUIRE(c->at == IN_TOPIC && c->partitions > 0);
        REQUIRE(p->error >= INT16_MIN && p->error <= INT16_MAX);
        REQUIRE(c->version >= 7 || p->leader_epoch == -1);
        REQUIRE(c->version >= 5 || p->offline_replicas.count == 0);
        wire_check_list(c, p->replicas);
        wire_check_list(c, p->isr);
        wire_check_list(c, p->offline_replicas);
        c->partitions--;
        c->visits++;
        return 0;
}

static int32_t wire_check_topic_end(void *opaque,
                                    const rdmeta_wire_topic_t *t) {
        wire_check_t *c = opaque;

        REQUIRE(c->at == IN_TOPIC && c->partitions == 0);
        REQUIRE(c->version >= 8 || t->operations == RDMETA_NO_OPERATIONS);
        c->at = IN_TOPICS;
        c->topics--;
        c->visits++;
        return 0;
}

static int32_t wire_check_end(void *opaque, const rdmeta_wire_head_t *h) {
        wire_check_t *c = opaque;

        REQUIRE(c->at == IN_TOPICS && c->topics == 0);
        REQUIRE((c->version >= 8 && c->version <= 10) ||
                h->operations == RDMETA_NO_OPERATIONS);
        REQUIRE(c->version >= 13 || h->error == 0);
        c->at = AT_END;
        c->visits++;
        return 0;
}

/* Decodes the bytes with these checks and returns the decoder's result. Sets
 * *visits, unless it is NULL, to the number of visits. */
static inline rdmeta_err_t wire_check(const void *response, size_t len,
                                      int16_t version, int32_t flags,
                                      uint64_t *visits) {
        static const rdmeta_wire_visitor_t visitor = {
                wire_check_broker,    wire_check_head,
                wire_check_topic,     wire_check_partition,
                wire_check_topic_end, wire_check_end};
        wire_check_t c = {.begin   = response,
                          .end     = (const uint8_t *)response + len,
                          .version = version};
        size_t offset = SIZE_MAX;
        rdmeta_err_t err;

        err = rdmeta_metadata_response_decode(response, len, version, flags,
                                              &visitor, &c, &offset);
        REQUIRE(offset <= len);
        /* All visits but three take at least one byte of the input each. */
        REQUIRE(c.visits <= len + 3);
        if (version < RDMETA_METADATA_MIN_VERSION ||
            version > RDMETA_METADATA_MAX_VERSION)
                REQUIRE(err == RDMETA_ERR_UNSUPPORTED && c.visits == 0);
        else
                REQUIRE(err == (c.at == AT_END ? 0 : RDMETA_ERR_MALFORMED));
        if (visits)
                *visits = c.visits;
        return err;
}
