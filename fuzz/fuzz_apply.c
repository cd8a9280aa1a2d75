/*
 * Applies answers to a cache that already has topics.
 *
 *     byte 0     bits 0-3: API version (two of the 16 do not exist)
 *                bit 4: tolerate a trailing byte
 *     byte 1     bits 0-1: the kind of request
 *                bit 2: the client rebootstrapped
 *                bit 3: another broker sends the second answer
 *                bit 4: walk the cache first, so that it has its tree
 *     the rest   the body
 *
 * The target applies the same answer twice. After each call it checks all
 * invariants and reads everything that a reader can see. A refused answer must
 * change nothing. An accepted answer must change nothing the second time. The
 * input is also the reason of the first request, and half of it the reason of
 * the second. The seeds are those of fuzz_response with byte 1 inserted.
 */
#include "support/cache_check.h"

#include "fuzz_see.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW = 1000000000 };

/* ---- the first answer --------------------------------------------------- */

typedef struct bytes {
        uint8_t data[1024];
        size_t len;
} bytes_t;

static void put(bytes_t *b, const void *p, size_t n) {
        REQUIRE(b->len + n <= sizeof(b->data));
        memcpy(b->data + b->len, p, n);
        b->len += n;
}

static void put_int(bytes_t *b, uint32_t v, int bytes) {
        while (bytes--) {
                const uint8_t byte = (uint8_t)(v >> 8 * bytes);
                put(b, &byte, 1);
        }
}

static void put_str(bytes_t *b, const char *s) {
        put_int(b, (uint32_t)strlen(s) + 1, 1);
        put(b, s, strlen(s));
}

/* Writes a topic with four partitions. Its name is one of the corpus. */
static void put_topic(bytes_t *b, const char *name, uint8_t id) {
        uint8_t ids[16];
        uint32_t i, k;

        memset(ids, id, sizeof(ids));
        put_int(b, 0, 2);
        put_str(b, name);
        put(b, ids, sizeof(ids));
        put_int(b, 0, 1);
        put_int(b, 4 + 1, 1);
        for (i = 0; i < 4; i++) {
                put_int(b, 0, 2);
                put_int(b, i, 4);
                put_int(b, 1 + i % 3, 4);
                put_int(b, i, 4); /* the epoch */
                for (k = 0; k < 2; k++) {
                        put_int(b, 2 + 1, 1);
                        put_int(b, 1 + i % 3, 4);
                        put_int(b, 1 + (i + 1) % 3, 4);
                }
                put_int(b, 0 + 1, 1);
                put_int(b, 0, 1);
        }
        put_int(b, (uint32_t)RDMETA_NO_OPERATIONS, 4);
        put_int(b, 0, 1);
}

static void put_answer(bytes_t *b) {
        uint32_t i;

        put_int(b, 0, 4);
        put_int(b, 3 + 1, 1);
        for (i = 1; i <= 3; i++) {
                put_int(b, i, 4);
                put_str(b, "host");
                put_int(b, 9092, 4);
                put_int(b, 0, 2); /* no rack, no tags */
        }
        put_int(b, 0, 1); /* no cluster id: an input may have any */
        put_int(b, 1, 4);
        put_int(b, 4 + 1, 1);
        put_topic(b, "orders", 0); /* no id: an input may have any */
        put_topic(b, "payments", 2);
        put_topic(b, "denied", 3);
        put_topic(b, "gone", 4);
        put_int(b, 0, 1);
}

/* ---- reading everything ------------------------------------------------ */

static int32_t see_topic(void *opaque, const rdmeta_topic_t *t) {
        rdmeta_reader_t *r = (rdmeta_reader_t *)opaque;
        rdmeta_topic_info_t info;
        rdmeta_partition_t p;
        int32_t ids[8];
        uint32_t i;

        rdmeta_topic_info(r, t, NOW, &info);
        see(info.name.data, info.name.len);
        see(info.reason.data, info.reason.len);
        memset(&p, 0, sizeof(p));
        p.replicas.ids      = ids;
        p.replicas.capacity = 8;
        for (i = 0; i < info.partitions; i++) {
                REQUIRE(!rdmeta_topic_partition_at(r, t, i, &p));
                REQUIRE(p.partition >= 0 && p.leader >= -1);
                REQUIRE(p.leader_epoch >= -1);
                if (info.state == 0)
                        REQUIRE(rdmeta_leader(r, info.name.data, info.name.len,
                                              p.partition, NOW) == p.leader);
        }
        return 0;
}

static int32_t see_due(void *opaque, const rdmeta_due_t *due) {
        (void)opaque;
        REQUIRE(due->reasons && due->reasons < 64);
        see(due->topic.data, due->topic.len);
        return 0;
}

static void see_all(rdmeta_cache_t *c, rdmeta_reader_t *r) {
        const char *wrong = rdmeta_cache_check(c);
        uint64_t until;
        int32_t resync;

        if (wrong)
                fprintf(stderr, "%s\n", wrong);
        REQUIRE(!wrong);
        REQUIRE(!rdmeta_cache_changes(c, 1, see_change, NULL, &until, &resync));
        REQUIRE(!rdmeta_reader_walk(r, "", 0, 7, NOW, see_topic, r));
        REQUIRE(!rdmeta_cache_due(c, NOW, 0, see_due, NULL));
        wrong = rdmeta_cache_check(c); /* due() may have changed the notes */
        REQUIRE(!wrong);
}

/* ---- one input --------------------------------------------------------- */

static void fuzz(rdmeta_cache_t *c, rdmeta_reader_t *r, const uint8_t *data,
                 size_t size) {
        static const int32_t flags[] = {0, RDMETA_REQ_REBOOTSTRAPPED};
        const rdmeta_time_t now = {NOW, NOW}, later = {2 * NOW, 2 * NOW};
        rdmeta_request_t asked  = {.asked = data[1] & 3, .broker = 1,
                                   .flags = flags[data[1] >> 2 & 1],
                                   .reason = {(const char *)data, size}};
        const int16_t version   = data[0] & 15;
        const uint64_t before   = rdmeta_cache_version(c);
        rdmeta_applied_t applied;
        rdmeta_err_t err;

        if (data[0] & 16)
                asked.flags |= RDMETA_REQ_TOLERATE_TRAILING;
        if (data[1] & 16)
                see_all(c, r);
        err = rdmeta_cache_apply(c, data + 2, size - 2, version, &asked, now,
                                 &applied);
        see_all(c, r);
        REQUIRE(applied.version == rdmeta_cache_version(c));
        REQUIRE(!err || applied.version == before);
        REQUIRE(applied.version <= before + 1);
        if (data[1] & 8)
                asked.broker = 2;
        asked.reason.len /= 2;
        asked.flags &= ~RDMETA_REQ_REBOOTSTRAPPED;
        REQUIRE(rdmeta_cache_apply(c, data + 2, size - 2, version, &asked, now,
                                   &applied) == err);
        see_all(c, r);
        /* A second absence, reported by another broker, removes a topic. */
        if (asked.asked != RDMETA_ASKED_ALL || asked.broker == 1)
                REQUIRE(applied.changed == 0 && !applied.brokers_changed);
        rdmeta_cache_sweep(c, later);
        see_all(c, r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const rdmeta_request_t all = {.asked = RDMETA_ASKED_ALL, .broker = 3};
        const rdmeta_time_t now    = {NOW, NOW};
        rdmeta_str_t ask[2], names[2] = {{"in flight", 9}, {"orders", 6}};
        bytes_t known = {.len = 0};
        rdmeta_conf_t conf;
        rdmeta_reader_t *r;
        rdmeta_cache_t *c;
        size_t n;

        if (size < 2)
                return 0;
        rdmeta_conf_init(&conf);
        conf.seed = 1; /* an input has the same effect each time */
        c         = rdmeta_cache_new(&conf);
        r         = c ? rdmeta_reader_new(c, 0) : NULL;
        REQUIRE(r);
        put_answer(&known);
        REQUIRE(!rdmeta_cache_apply(c, known.data, known.len, 12, &all, now,
                                    NULL));
        REQUIRE(!rdmeta_cache_hint(c, names, 2, RDMETA_HINT_FORCE, 0, now, ask,
                                   &n));
        fuzz(c, r, data, size);
        rdmeta_reader_destroy(r);
        rdmeta_cache_unref(c);
        return 0;
}
