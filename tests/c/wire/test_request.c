#include "wire/response.h"

#include "support/testing.h"
#include "support/wire_gen.h"

#define EACH_VERSION(v)                                                       \
        for (v = RDMETA_METADATA_MIN_VERSION;                                 \
             v <= RDMETA_METADATA_MAX_VERSION; v++)

enum { AUTO_CREATE = RDMETA_REQ_AUTO_CREATE };

/* Encodes into `b`, through a block of exactly the size that is needed. */
static rdmeta_err_t encode(const rdmeta_request_t *request, int version,
                           gen_bytes_t *b) {
        size_t len = 4711, again = 4711;
        rdmeta_err_t err;
        uint8_t *exact;

        gen_bytes_clear(b);
        err = rdmeta_metadata_request_encode((int16_t)version, request, NULL,
                                             0, &len);
        if (err != RDMETA_ERR_TOO_SMALL) {
                CHECK(err && len == 0);
                return err;
        }
        CHECK(len > 0);
        exact = malloc(len);
        CHECK(exact);
        CHECK(rdmeta_metadata_request_encode((int16_t)version, request, exact,
                                             len, &again) == 0);
        CHECK(again == len);
        gen_put(b, exact, len);
        free(exact);
        return 0;
}

static rdmeta_err_t outcome(const rdmeta_request_t *request, int version) {
        gen_bytes_t b    = {0};
        rdmeta_err_t err = encode(request, version, &b);

        gen_bytes_free(&b);
        return err;
}

static int gives(const rdmeta_request_t *request, int version,
                 const char *hex) {
        gen_bytes_t b = {0};
        int same      = encode(request, version, &b) == 0;

        same = same && gen_is_hex(&b, hex);
        gen_bytes_free(&b);
        return same;
}

/* ------------------------------------------------------------------------
 * The fields of MetadataRequest.json, in its order
 * --------------------------------------------------------------------- */

static void put_request(gen_bytes_t *b, const rdmeta_request_t *r,
                        int version) {
        static const uint8_t zeros[16];
        const int flexible = version >= 9;
        const int all      = r->asked == RDMETA_ASKED_ALL;
        size_t i;

        gen_count(b, flexible, all && version >= 1 ? -1 : (int64_t)r->n);
        for (i = 0; i < r->n; i++) {
                if (version >= 10)
                        gen_put(b, r->ids ? r->ids[i] : zeros, 16);
                gen_str(b, flexible,
                        r->names ? r->names[i] : (rdmeta_str_t){NULL, 0});
                if (flexible)
                        gen_i8(b, 0);
        }
        if (version >= 4)
                gen_i8(b, (r->flags & RDMETA_REQ_AUTO_CREATE) != 0);
        if (version >= 8 && version <= 10)
                gen_i8(b, (r->flags & RDMETA_REQ_CLUSTER_OPS) != 0);
        if (version >= 8)
                gen_i8(b, (r->flags & RDMETA_REQ_TOPIC_OPS) != 0);
        if (flexible)
                gen_i8(b, 0);
}

/* Returns whether the version cannot carry the request, by the rules in
 * rdmeta_wire.h. */
static int is_unsupported(const rdmeta_request_t *r, int version) {
        if (version == 0 && r->asked != RDMETA_ASKED_ALL && r->n == 0)
                return 1;
        if (version < 12 && r->asked == RDMETA_ASKED_IDS)
                return 1;
        if (version < 4 && r->asked == RDMETA_ASKED_NAMES && r->n &&
            !(r->flags & RDMETA_REQ_AUTO_CREATE))
                return 1;
        if ((version < 8 || version > 10) &&
            (r->flags & RDMETA_REQ_CLUSTER_OPS))
                return 1;
        return version < 8 && (r->flags & RDMETA_REQ_TOPIC_OPS);
}

/* Checks every way to ask, with every set of flags, in this version. */
static void check_every_way(int version, const rdmeta_str_t *names,
                            uint8_t (*ids)[16], size_t n) {
        gen_bytes_t b = {0}, want = {0};
        int32_t asked, flags;

        for (asked = RDMETA_ASKED_ALL; asked <= RDMETA_ASKED_BROKERS; asked++)
                for (flags = 0; flags < 32; flags++) {
                        rdmeta_request_t r = {.asked = asked, .flags = flags};

                        if (asked == RDMETA_ASKED_NAMES)
                                r.names = names;
                        if (asked == RDMETA_ASKED_IDS)
                                r.ids = (const uint8_t(*)[16])ids;
                        if (r.names || r.ids)
                                r.n = n;
                        if (is_unsupported(&r, version)) {
                                CHECK(encode(&r, version, &b) ==
                                      RDMETA_ERR_UNSUPPORTED);
                                continue;
                        }
                        gen_bytes_clear(&want);
                        put_request(&want, &r, version);
                        CHECK(encode(&r, version, &b) == 0);
                        CHECK(b.len == want.len);
                        CHECK(memcmp(b.data, want.data, b.len) == 0);
                }
        gen_bytes_free(&b);
        gen_bytes_free(&want);
}

TEST(test_every_version_writes_its_fields_and_refuses_the_rest) {
        enum { MOST = 5, LONGEST = 300 };
        test_rng_t rng = test_rng(1);
        char texts[MOST][LONGEST];
        rdmeta_str_t names[MOST];
        uint8_t ids[MOST][16];
        int version, round;
        size_t i, k, n;

        for (round = 0; round < 20; round++) {
                for (i = 0; i < MOST; i++) {
                        names[i].data = texts[i];
                        names[i].len  = 1 + test_below(&rng, LONGEST);
                        for (k = 0; k < LONGEST; k++)
                                texts[i][k] = (char)test_u64(&rng);
                        for (k = 0; k < 16; k++)
                                ids[i][k] = (uint8_t)test_u64(&rng);
                        ids[i][i] |= 1;
                }
                EACH_VERSION(version)
                for (n = 0; n <= MOST; n++)
                        check_every_way(version, names, ids, n);
        }
}

TEST(test_all_topics_is_null_but_empty_at_v0) {
        const rdmeta_request_t all = {.asked = RDMETA_ASKED_ALL};

        CHECK(gives(&all, 0, "00000000"));
        CHECK(gives(&all, 1, "ffffffff"));
        CHECK(gives(&all, 4, "ffffffff00"));
        CHECK(gives(&all, 8, "ffffffff000000"));
        CHECK(gives(&all, 9, "0000000000"));
        CHECK(gives(&all, 13, "00000000"));
}

TEST(test_no_topics_is_empty_and_is_unsupported_at_v0) {
        const rdmeta_request_t none     = {.asked = RDMETA_ASKED_BROKERS};
        const rdmeta_request_t no_names = {.asked = RDMETA_ASKED_NAMES};

        CHECK(outcome(&none, 0) == RDMETA_ERR_UNSUPPORTED);
        CHECK(outcome(&no_names, 0) == RDMETA_ERR_UNSUPPORTED);
        CHECK(gives(&none, 1, "00000000"));
        CHECK(gives(&no_names, 1, "00000000"));
        CHECK(gives(&none, 12, "01000000"));
}

TEST(test_ids_are_asked_for_with_a_null_name) {
        static const uint8_t ids[1][16] = {{0xab, 0xcd}};
        const rdmeta_request_t by_id    = {.asked = RDMETA_ASKED_IDS,
                                           .ids = ids, .n = 1};

        CHECK(outcome(&by_id, 11) == RDMETA_ERR_UNSUPPORTED);
        CHECK(gives(&by_id, 12,
                    "02abcd000000000000000000000000000000"
                    "00000000"));
}

TEST(test_names_are_asked_for_with_a_zero_id) {
        const rdmeta_str_t name     = GEN_STR("t");
        const rdmeta_request_t by_n = {.asked = RDMETA_ASKED_NAMES,
                                       .names = &name, .n = 1,
                                       .flags = AUTO_CREATE};

        CHECK(gives(&by_n, 0, "00000001000174"));
        CHECK(gives(&by_n, 4, "0000000100017401"));
        CHECK(gives(&by_n, 9, "020274000100" "0000"));
        CHECK(gives(&by_n, 12, "0200000000000000000000000000000000"
                               "027400"
                               "010000"));
}

TEST(test_auto_create_off_is_refused_for_names_before_v4) {
        const rdmeta_str_t name       = GEN_STR("t");
        const rdmeta_request_t all    = {.asked = RDMETA_ASKED_ALL};
        rdmeta_request_t by_name      = {.asked = RDMETA_ASKED_NAMES,
                                         .names = &name, .n = 1};
        int version;

        for (version = 0; version < 4; version++) {
                by_name.flags = 0;
                CHECK(outcome(&by_name, version) == RDMETA_ERR_UNSUPPORTED);
                by_name.flags = AUTO_CREATE;
                CHECK(outcome(&by_name, version) == 0);
                CHECK(outcome(&all, version) == 0);
        }
        by_name.flags = 0;
        CHECK(outcome(&by_name, 4) == 0);
}

TEST(test_a_contradiction_is_an_argument_error) {
        static const uint8_t id[1][16] = {{1}}, zeros[1][16];
        static char text[32768];
        const rdmeta_str_t name   = GEN_STR("t"), empty = GEN_STR("");
        const rdmeta_str_t null   = {NULL, 1}, huge = {text, sizeof(text)};
        const rdmeta_request_t bad[] = {
                {.asked = RDMETA_ASKED_UNKNOWN},
                {.asked = 5},
                {.asked = -1},
                {.asked = RDMETA_ASKED_ALL, .names = &name, .n = 1},
                {.asked = RDMETA_ASKED_BROKERS, .ids = id, .n = 1},
                {.asked = RDMETA_ASKED_NAMES, .n = 1},
                {.asked = RDMETA_ASKED_NAMES, .ids = id, .n = 1},
                {.asked = RDMETA_ASKED_NAMES, .names = &name, .ids = id,
                 .n = 1},
                {.asked = RDMETA_ASKED_NAMES, .names = &empty, .n = 1},
                {.asked = RDMETA_ASKED_NAMES, .names = &null, .n = 1},
                {.asked = RDMETA_ASKED_NAMES, .names = &huge, .n = 1},
                {.asked = RDMETA_ASKED_NAMES, .names = &name, .n = SIZE_MAX},
                {.asked = RDMETA_ASKED_IDS, .n = 1},
                {.asked = RDMETA_ASKED_IDS, .names = &name, .n = 1},
                {.asked = RDMETA_ASKED_IDS, .names = &name, .ids = id, .n = 1},
                {.asked = RDMETA_ASKED_IDS, .ids = zeros, .n = 1}};
        size_t i;
        int version;

        EACH_VERSION(version)
                for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                        CHECK(outcome(&bad[i], version) == RDMETA_ERR_ARGUMENT);
}

TEST(test_the_longest_name_is_32767_bytes) {
        static char text[32767] = "t";
        const rdmeta_str_t name = {text, sizeof(text)};
        const rdmeta_request_t r = {.asked = RDMETA_ASKED_NAMES,
                                    .names = &name, .n = 1,
                                    .flags = AUTO_CREATE};
        int version;

        EACH_VERSION(version)
                CHECK(outcome(&r, version) == 0);
}

TEST(test_a_buffer_too_small_is_left_alone) {
        const rdmeta_str_t names[]  = {GEN_STR("orders"), GEN_STR("bills")};
        const rdmeta_request_t r    = {.asked = RDMETA_ASKED_NAMES,
                                       .names = names, .n = 2,
                                       .flags = AUTO_CREATE};
        uint8_t buf[128], before[128];
        size_t need, capacity, len;
        int version;

        memset(before, 0x5a, sizeof(before));
        EACH_VERSION(version) {
                CHECK(rdmeta_metadata_request_encode((int16_t)version, &r,
                                                     NULL, 0, &need) ==
                      RDMETA_ERR_TOO_SMALL);
                for (capacity = 0; capacity < need; capacity++) {
                        memcpy(buf, before, sizeof(buf));
                        CHECK(rdmeta_metadata_request_encode(
                                      (int16_t)version, &r, buf, capacity,
                                      &len) == RDMETA_ERR_TOO_SMALL);
                        CHECK(len == need);
                        CHECK(memcmp(buf, before, sizeof(buf)) == 0);
                }
                CHECK(rdmeta_metadata_request_encode((int16_t)version, &r, buf,
                                                     sizeof(buf), &len) == 0);
                CHECK(memcmp(buf + len, before, sizeof(buf) - len) == 0);
        }
}

TEST(test_versions_that_do_not_exist_are_unsupported) {
        static const int versions[] = {-1, 14, INT16_MAX, INT16_MIN};
        const rdmeta_request_t all  = {.asked = RDMETA_ASKED_ALL};
        size_t i;

        for (i = 0; i < sizeof(versions) / sizeof(*versions); i++)
                CHECK(outcome(&all, versions[i]) == RDMETA_ERR_UNSUPPORTED);
}

TEST_MAIN()
