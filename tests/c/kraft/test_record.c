/* record: records by the table as JSON, exact; and bytes that lie. */
#include "kraft/record.h"
#include "support/kraft_fixture.h"

/* Returns the first record of the log; `it` keeps the batch. */
static rdmeta_kraft_record_t first(kw_t *w, rdmeta_kraft_batch_t *b) {
        rdmeta_kraft_records_t it;
        rdmeta_kraft_record_t r;

        kw_batch(w);
        CHECK(!rdmeta_kraft_batch(w->log.data, w->log.len, b));
        rdmeta_kraft_records_init(&it, b);
        CHECK(rdmeta_kraft_records_next(&it, &r) == 1);
        return r;
}

/* Checks the data of the record that `w` has, with ' for ", and frees it. Every
 * capacity below the length writes nothing behind its end. */
static void check(kw_t *w, int32_t flags, const char *wanted) {
        rdmeta_kraft_batch_t b;
        const rdmeta_kraft_record_t r = first(w, &b);
        const rdmeta_str_t none       = {NULL, 0};
        char text[2048], *exact;
        size_t len, n;

        flags ^= RDMETA_KRAFT_DATA_ALONE;
        CHECK(!rdmeta_kraft_record_json(&r, none, flags, text, sizeof(text),
                                        &len));
        CHECK(len < sizeof(text));
        text[len] = '\0';
        kw_unquote(text);
        if (strcmp(text, wanted) != 0)
                fprintf(stderr, "%s\n%s\n", text, wanted);
        CHECK(len == strlen(wanted) && !strcmp(text, wanted));
        for (n = 0; n < len; n++) {
                exact = malloc(n ? n : 1);
                CHECK(rdmeta_kraft_record_json(&r, none, flags, exact, n,
                                               &len) ==
                      RDMETA_ERR_TOO_SMALL);
                CHECK(len == strlen(wanted));
                free(exact);
        }
        kw_free(w);
}

TEST(test_a_record_is_a_line_with_its_place) {
        kw_t w = {.offset = 7, .epoch = 3, .time_ms = 1700000000123};

        kw_add(&w, 2, 0, "su", "a\"b\\\n\xe2\x82\xac\xff", 'a');
        check(&w, RDMETA_KRAFT_DATA_ALONE,
              "{'offset':7,'epoch':3,'time':1700000000123,"
              "'type':'TOPIC_RECORD','version':0,"
              "'data':{'name':'a\\'b\\\\\\u000a\xe2\x82\xac\xef\xbf\xbd',"
              "'topicId':'YWFhYWFhYWFhYWFhYWFhYQ'}}");
}

TEST(test_tagged_fields_are_shown_if_they_are_there) {
        kw_t w = {0};

        kw_add(&w, 5, 2, "iu", 3, 'a');
        check(&w, 0, "{'partitionId':3,'topicId':'YWFhYWFhYWFhYWFhYWFhYQ'}");
        kw_add(&w, 5, 2, "iu<L><i><L>", -1, 'a', 0, "2,1", 1, -1, 6, "");
        check(&w, 0, "{'partitionId':-1,'topicId':'YWFhYWFhYWFhYWFhYWFhYQ',"
                     "'isr':[2,1],'leader':-1,'eligibleLeaderReplicas':[]}");
}

TEST(test_a_tag_that_is_not_known_is_passed_over) {
        kw_t w = {0};

        kw_add(&w, 7, 0, "il<s>", 3, INT64_C(1) << 40, 77, "new");
        check(&w, 0, "{'id':3,'epoch':1099511627776}");
}

TEST(test_structs_in_arrays_and_unsigned_numbers_are_shown) {
        kw_t w = {0};

        kw_add(&w, 0, 4, "ibulcsshh.csbb<c>", 1, 0, 'b', INT64_C(9), 1, "PLAIN",
               "h", 40000, 0, 0, NULL, 1, 0, 0, 0);
        check(&w, 0, "{'brokerId':1,'isMigratingZkBroker':false,"
                     "'incarnationId':'YmJiYmJiYmJiYmJiYmJiYg','brokerEpoch':9,"
                     "'endPoints':[{'name':'PLAIN','host':'h','port':40000,"
                     "'securityProtocol':0}],'features':[],'rack':null,"
                     "'fenced':true,'inControlledShutdown':false,"
                     "'logDirs':[]}");
}

TEST(test_numbers_of_all_kinds_are_shown) {
        const double values[] = {10485760.0, 0.1, -1e300, 1.5};
        const char *const texts[] = {"10485760.0", "0.1", "-1e+300", "1.5"};
        char wanted[200];
        int i;

        for (i = 0; i < 4; i++) {
                kw_t w = {0};

                kw_add(&w, 14, 0, "css.sdb", 1, "user", NULL, "rate",
                       values[i], 0);
                snprintf(wanted, sizeof(wanted),
                         "{'entity':[{'entityType':'user','entityName':null}],"
                         "'key':'rate','value':%s,'remove':false}",
                         texts[i]);
                check(&w, 0, wanted);
        }
}

TEST(test_secrets_are_hidden_unless_they_are_asked_for) {
        kw_t w = {0};

        kw_add(&w, 22, 0, "sb", "alice", 1);
        check(&w, 0, "{'name':'alice','mechanism':1}");
        kw_add(&w, 11, 0, "sbcbcbcbi", "alice", 1, 1, 'S', 1, 'K', 1, 'V',
               4096);
        check(&w, 0, "{'name':'alice','mechanism':1,'salt':'***',"
                     "'storedKey':'***','serverKey':'***','iterations':4096}");
        kw_add(&w, 11, 0, "sbcbcbbcbi", "alice", 1, 1, 'S', 2, 'K', 'L', 1,
               'V', 4096);
        check(&w, RDMETA_KRAFT_SHOW_SECRETS,
              "{'name':'alice','mechanism':1,'salt':'Uw==','storedKey':'S0w=',"
              "'serverKey':'Vg==','iterations':4096}");
        kw_add(&w, 4, 0, "bsss", 4, "1", "ssl.keystore.Password", "x");
        check(&w, 0, "{'resourceType':4,'resourceName':'1',"
                     "'name':'ssl.keystore.Password','value':'***'}");
        kw_add(&w, 4, 0, "bsss", 4, "1", "ssl.keystore.key", NULL);
        check(&w, 0, "{'resourceType':4,'resourceName':'1',"
                     "'name':'ssl.keystore.key','value':null}");
        kw_add(&w, 4, 0, "bsss", 2, "t", "retention.ms", "5");
        check(&w, 0, "{'resourceType':2,'resourceName':'t',"
                     "'name':'retention.ms','value':'5'}");
}

TEST(test_control_records_have_their_names) {
        kw_t w = {0};

        kw_control(&w, 3, "hl", 0, INT64_C(-5));
        check(&w, RDMETA_KRAFT_DATA_ALONE,
              "{'offset':0,'epoch':0,'time':0,'type':'SNAPSHOT_HEADER',"
              "'version':0,'data':{'version':0,"
              "'lastContainedLogTimestamp':-5}}");
        kw_control(&w, 6, "hciucssh.hh..", 0, 1, 3000, 'a', 1, "C", "h", 9093,
                   0, 1);
        check(&w, 0, "{'version':0,'voters':[{'voterId':3000,"
                     "'voterDirectoryId':'YWFhYWFhYWFhYWFhYWFhYQ',"
                     "'endpoints':[{'name':'C','host':'h','port':9093}],"
                     "'kRaftVersionFeature':{'minSupportedVersion':0,"
                     "'maxSupportedVersion':1}}]}");
}

TEST(test_what_the_table_lacks_is_shown_raw) {
        kw_t w = {0};

        kw_add(&w, 29, 0, "");
        check(&w, RDMETA_KRAFT_DATA_ALONE,
              "{'offset':0,'epoch':0,'time':0,'type':29,'version':0,"
              "'raw':'AR0AAA=='}");
        kw_add(&w, 2, 1, "");
        check(&w, RDMETA_KRAFT_DATA_ALONE,
              "{'offset':0,'epoch':0,'time':0,'type':'TOPIC_RECORD',"
              "'version':1,'raw':'AQIBAA=='}");
        kw_add(&w, 13, 0, "");
        check(&w, 0, "'AQ0AAA=='");
}

TEST(test_what_the_table_lacks_is_hidden_where_it_may_have_secrets) {
        static const int types[] = {4, 10, 11, 26};
        kw_t w                   = {0};
        int i;

        for (i = 0; i < 4; i++) {
                kw_add(&w, types[i], 9, "");
                check(&w, 0, "'***'");
        }
        kw_add(&w, 11, 9, "");
        check(&w, RDMETA_KRAFT_SHOW_SECRETS, "'AQsJAA=='");
}

/* Reads a value of exactly `n` bytes; returns whether it is a good record. */
static int is_good(const rdmeta_kraft_record_t *like, const uint8_t *p,
                   size_t n) {
        rdmeta_kraft_value_t values[RDMETA_KRAFT_FIELDS];
        rdmeta_kraft_record_t r = *like;
        uint8_t *exact          = gen_bytes_exact(p, n);
        char text[4096];
        size_t len;
        int bad, good;

        r.value = exact;
        r.len   = n;
        good    = rdmeta_kraft_record_read(&r, values, &bad) != NULL;
        CHECK(good == !bad);
        CHECK((rdmeta_kraft_record_json(&r, test_str("t"), 0, text,
                                        sizeof(text), &len) ==
               RDMETA_ERR_MALFORMED) == bad);
        free(exact);
        return good;
}

static void fill(kw_t *w) {
        kw_add(w, 0, 4, "ibulcsshh.csbb<c>", 1, 0, 'b', INT64_C(9), 1, "PLAIN",
               "h", 40000, 0, 0, NULL, 1, 0, 0, 0);
}

TEST(test_each_prefix_of_a_record_and_more_bytes_are_refused) {
        kw_t w = {0};
        rdmeta_kraft_record_t r;
        rdmeta_kraft_batch_t b;
        uint8_t longer[200] = {0};
        size_t n;

        fill(&w);
        r = first(&w, &b);
        for (n = 3; n < r.len; n++)
                CHECK(!is_good(&r, r.value, n));
        CHECK(is_good(&r, r.value, n));
        memcpy(longer, r.value, n);
        CHECK(!is_good(&r, longer, n + 1));
        kw_free(&w);
}

TEST(test_a_record_with_a_changed_byte_is_read_or_refused) {
        kw_t w = {0};
        rdmeta_kraft_record_t r;
        rdmeta_kraft_batch_t b;
        uint8_t copy[200];
        size_t at;
        int byte;

        fill(&w);
        r = first(&w, &b);
        memcpy(copy, r.value, r.len);
        for (at = 3; at < r.len; at++)
                for (byte = 0; byte < 256; byte++) {
                        copy[at] = (uint8_t)byte;
                        is_good(&r, copy, r.len);
                        copy[at] = r.value[at];
                }
        kw_free(&w);
}

TEST(test_counts_that_the_bytes_cannot_hold_are_refused) {
        static const struct {
                const char *value;
                size_t len;
        } bad[] = {
#define BAD(literal) {literal, sizeof(literal) - 1}
                BAD("\1\2\0\xff\xff\xff\xff\x0f"), /* a name of 2^32 bytes */
                BAD("\1\2\0\0"),                   /* null, which it may not */
                BAD("\1\x07\0\0\0\0\1\0\0\0\0\0\0\0\1\xff\xff\xff\xff\x0f"),
                BAD("\1\x07\0\0\0\0\1\0\0\0\0\0\0\0\1\1\x05\xff\xff\xff\x0f"),
                BAD("\1\x14\0\x90\x4e"), /* 10 000 tags, no bytes */
                BAD("\1\x11\3\0\0\0\1\0\0\0\0\0\0\0\1\1\2\5\xff\xff\xff\xff"
                    "\x07"), /* directories of 2^31 */
                BAD("\1\x11\3\0\0\0\1\0\0\0\0\0\0\0\1\1\0\2\1\1"), /* longer */
                BAD("\1\x0e\0\xff\xff\xff\xff\x07\0\0\0\0\0\0\0")};
        rdmeta_kraft_record_t r = {0};
        rdmeta_buf_t b;
        size_t i;

        for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                rdmeta_buf_init(&b, bad[i].value, bad[i].len);
                rdmeta_buf_uvar(&b);
                r.type    = (int32_t)rdmeta_buf_uvar(&b);
                r.version = (int32_t)rdmeta_buf_uvar(&b);
                CHECK(!is_good(&r, (const uint8_t *)bad[i].value, bad[i].len));
        }
}

/* Reads the next record, and checks what it is about; -9: nothing. */
static void about(const rdmeta_kraft_batch_t *b, rdmeta_kraft_place_t *place,
                  char id, const char *topic, int partition, int broker) {
        rdmeta_kraft_about_t a;
        rdmeta_kraft_record_t r;

        CHECK(rdmeta_kraft_record_next(b, place, &r) == 1);
        rdmeta_kraft_record_about(&r, &a);
        CHECK(id ? a.topic_id && a.topic_id[15] == id : !a.topic_id);
        CHECK(topic ? a.topic.len == strlen(topic) &&
                              !memcmp(a.topic.data, topic, a.topic.len)
                    : !a.topic.data);
        CHECK(a.partition == (partition == -9 ? RDMETA_NONE : partition));
        CHECK(a.broker == (broker == -9 ? RDMETA_NONE : broker));
}

TEST(test_a_record_says_what_it_is_about) {
        kw_t w                     = {0};
        rdmeta_kraft_place_t place = {0};
        rdmeta_kraft_record_t r;
        rdmeta_kraft_batch_t b;

        kw_add(&w, 2, 0, "su", "t", 'a');
        kw_add(&w, 9, 0, "u", 'b');
        kw_add(&w, 5, 0, "iu", 7, 'c');
        kw_add(&w, 4, 0, "bsss", 2, "u", "k", "v");
        kw_add(&w, 4, 0, "bsss", 4, "12", "k", "v");
        kw_add(&w, 4, 0, "bsss", 4, "", "k", "v");
        kw_add(&w, 4, 0, "bsss", 4, "9999999999", "k", "v");
        kw_add(&w, 28, 0, "s", "x");
        kw_add(&w, 8, 0, "il", 3, INT64_C(5));
        kw_add(&w, 20, 0, "");
        kw_batch(&w);
        CHECK(!rdmeta_kraft_batch(w.log.data, w.log.len, &b));
        about(&b, &place, 'a', "t", -9, -9);
        about(&b, &place, 'b', NULL, -9, -9);
        about(&b, &place, 'c', NULL, 7, -9);
        about(&b, &place, 0, "u", -9, -9);
        about(&b, &place, 0, NULL, -9, 12);
        about(&b, &place, 0, NULL, -9, -9);
        about(&b, &place, 0, NULL, -9, -9);
        about(&b, &place, 0, "x", -9, -9);
        about(&b, &place, 0, NULL, -9, 3);
        about(&b, &place, 0, NULL, -9, -9);
        CHECK(rdmeta_kraft_record_next(&b, &place, &r) == 0);
        CHECK(!strcmp(rdmeta_kraft_type_name(0, 2), "TOPIC_RECORD"));
        CHECK(!strcmp(rdmeta_kraft_type_name(1, 6), "KRAFT_VOTERS"));
        CHECK(!rdmeta_kraft_type_name(0, 29));
        CHECK(!rdmeta_kraft_type_name(0, -1));
        kw_free(&w);
}

/* Reads a hot record by hand and by the table, and compares all values. */
static void compare(const rdmeta_kraft_record_t *r) {
        const rdmeta_kraft_schema_t *s = rdmeta_kraft_schema_of(r);
        rdmeta_kraft_value_t hand[RDMETA_KRAFT_FIELDS] = {0};
        rdmeta_kraft_value_t table[RDMETA_KRAFT_FIELDS] = {0};
        rdmeta_buf_t b = rdmeta_kraft_record_body(r);
        int bad, i;

        rdmeta_kraft_read(&b, s, table);
        rdmeta_kraft_record_read(r, hand, &bad);
        CHECK(bad == (b.bad || b.p != b.end));
        for (i = 0; !bad && i < s->count; i++) {
                const rdmeta_kraft_value_t *x = &hand[i], *y = &table[i];

                CHECK(x->p == y->p && x->count == y->count &&
                      x->size == y->size && x->number == y->number &&
                      x->is_default == y->is_default);
        }
}

TEST(test_the_hot_records_by_hand_are_those_of_the_table) {
        kw_t w = {0};
        rdmeta_kraft_place_t place = {0};
        rdmeta_kraft_record_t r;
        rdmeta_kraft_batch_t b;
        uint8_t copy[400];
        uint32_t version;
        size_t at;
        int byte;

        for (version = 0; version <= 2; version++) {
                kw_add(&w, 3, version,
                       version ? "iuLLLLiiicuu<b><L><L>" : "iuLLLLiii<b>", 1,
                       'a', "1,2", "2", "1", "", 2, 7, 8,
                       version ? 2 : 0, 'x', 'y', 0, 1, 1, "3,1", 2, "4");
                kw_add(&w, 5, version, "iu<L><i><L><L><L><b><L><L><cu>", 1,
                       'a', 0, "1", 1, 5, 2, "1,2", 3, NULL, 4, "", 5, 1, 6,
                       "9", 7, "8,7", 8, 1, 'z');
                kw_add(&w, 5, version, "iu", 1, 'a');
        }
        kw_batch(&w);
        CHECK(!rdmeta_kraft_batch(w.log.data, w.log.len, &b));
        while (rdmeta_kraft_record_next(&b, &place, &r) > 0) {
                compare(&r);
                memcpy(copy, r.value, r.len);
                r.value = copy;
                for (at = 3; at < r.len; at++)
                        for (byte = 0; byte < 256; byte++) {
                                const uint8_t old = copy[at];

                                copy[at] = (uint8_t)byte;
                                compare(&r);
                                copy[at] = old;
                        }
        }
        kw_free(&w);
}

/* Checks a schema, and those in it. Returns the fewest bytes that it takes. */
static size_t least_of(const rdmeta_kraft_schema_t *s) {
        static const size_t widths[] = {1, 1, 2, 2, 4, 8, 8, 16, 1, 1};
        size_t least                 = 1;
        int i;

        CHECK(s->count <= RDMETA_KRAFT_FIELDS);
        for (i = 0; i < s->count; i++) {
                const rdmeta_kraft_field_t *f = &s->fields[i];
                const size_t of               = f->of ? least_of(f->of) : 0;

                CHECK(!f->of == (f->type != RDMETA_KRAFT_STRUCT));
                if (f->tag < 0)
                        least += f->flags & RDMETA_KRAFT_ARRAY ? 1
                                 : f->of                       ? of
                                               : widths[f->type];
        }
        CHECK(s->least == least);
        return least;
}

TEST(test_every_schema_fits_and_says_its_least_bytes) {
        int type, version, found = 0;

        for (type = 0; type < RDMETA_KRAFT_TYPES; type++) {
                const rdmeta_kraft_type_t *t = &rdmeta_kraft_types[type];

                found += t->name != NULL;
                for (version = 0; t->name && version <= t->last; version++)
                        least_of(&t->schemas[version]);
        }
        for (type = 2; type < RDMETA_KRAFT_CONTROLS; type++)
                for (version = 0; version <= rdmeta_kraft_controls[type].last;
                     version++)
                        least_of(&rdmeta_kraft_controls[type]
                                          .schemas[version]);
        CHECK(found == 27);
}

TEST_MAIN()
