#include "base/buf.h"

#include "support/testing.h"
#include "support/wire_gen.h"

/* Makes a reader of an exact copy of the bytes. Returns the copy, which the
 * caller frees with free(). */
static uint8_t *reader_over(rdmeta_buf_t *r, gen_bytes_t *b) {
        uint8_t *copy = gen_bytes_exact(b->data, b->len);

        /* C allows no addition to NULL; the wire layer passes none. */
        rdmeta_buf_init(r, copy ? copy : (const uint8_t *)"", b->len);
        return copy;
}

/* ------------------------------------------------------------------------
 * Integers and the sticky error
 * --------------------------------------------------------------------- */

TEST(test_integers_are_big_endian_and_signed) {
        static const uint8_t bytes[] = {0xff, 0xff, 0xfe, 0x80, 0, 0, 1};
        rdmeta_buf_t r;

        rdmeta_buf_init(&r, bytes, sizeof(bytes));
        CHECK(rdmeta_buf_i8(&r) == -1);
        CHECK(rdmeta_buf_i16(&r) == -2);
        CHECK(rdmeta_buf_i32(&r) == INT32_MIN + 1);
        CHECK(!r.bad && rdmeta_buf_left(&r) == 0);
}

TEST(test_after_a_failure_everything_reads_as_zero) {
        static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6};
        rdmeta_wire_ids_t ids;
        rdmeta_str_t s;
        rdmeta_buf_t r;
        int null = 1;

        rdmeta_buf_init(&r, bytes, sizeof(bytes));
        CHECK(rdmeta_buf_i32(&r) == 0x01020304);
        CHECK(rdmeta_buf_i32(&r) == 0);
        CHECK(r.bad == bytes + 4);
        CHECK(rdmeta_buf_i8(&r) == 0 && rdmeta_buf_i16(&r) == 0);
        CHECK(rdmeta_buf_uvar(&r) == 0);
        CHECK(rdmeta_buf_bytes(&r, 1) == NULL);
        CHECK(rdmeta_buf_count(&r, 0, 1, &null) == 0 && null == 0);
        CHECK(rdmeta_buf_count(&r, 1, 1, &null) == 0 && null == 0);
        s = rdmeta_buf_str(&r, 0, 0);
        CHECK(s.data == NULL && s.len == 0);
        ids = rdmeta_buf_ids(&r, 1);
        CHECK(ids.count == 0);
        rdmeta_buf_tags(&r);
        CHECK(r.bad == bytes + 4); /* the first failure, not the last */
        CHECK(r.p == r.end);
}

TEST(test_a_read_of_more_than_is_left_fails_where_it_began) {
        gen_bytes_t b = {0};
        size_t len, want;

        for (len = 0; len < 20; len++) {
                for (want = 0; want < 24; want++) {
                        rdmeta_buf_t r;
                        uint8_t *copy;
                        const uint8_t *p;

                        gen_bytes_clear(&b);
                        while (b.len < len)
                                gen_i8(&b, 7);
                        copy = reader_over(&r, &b);
                        p    = rdmeta_buf_bytes(&r, want);
                        CHECK((p == NULL) == (want > len));
                        CHECK((r.bad == NULL) == (want <= len));
                        CHECK(!r.bad || r.bad == r.begin);
                        free(copy);
                }
        }
        gen_bytes_free(&b);
}

/* ------------------------------------------------------------------------
 * Varints and tagged fields
 * --------------------------------------------------------------------- */

TEST(test_varints_of_32_bits_are_read_in_every_width) {
        static const uint32_t values[] = {
                0,        1,          127,        128,        16383,
                16384,    2097151,    2097152,    268435455,  268435456,
                INT32_MAX, UINT32_MAX - 1, UINT32_MAX};
        gen_bytes_t b = {0};
        size_t i;

        for (b.uvar_width = 0; b.uvar_width <= 5; b.uvar_width++) {
                for (i = 0; i < sizeof(values) / sizeof(*values); i++) {
                        rdmeta_buf_t r;
                        uint8_t *copy;

                        gen_bytes_clear(&b);
                        gen_uvar(&b, values[i]);
                        CHECK(b.len >= b.uvar_width);
                        copy = reader_over(&r, &b);
                        CHECK(rdmeta_buf_uvar(&r) == values[i]);
                        CHECK(!r.bad && rdmeta_buf_left(&r) == 0);
                        free(copy);
                }
        }
        gen_bytes_free(&b);
}

TEST(test_a_varint_cut_short_fails) {
        gen_bytes_t b = {0};
        uint32_t width;
        size_t len;

        for (width = 0; width < 32; width++) {
                gen_bytes_clear(&b);
                gen_uvar(&b, UINT32_C(1) << width);
                for (len = 0; len < b.len; len++) {
                        gen_bytes_t part = {b.data, len, 0, 0};
                        rdmeta_buf_t r;
                        uint8_t *copy = reader_over(&r, &part);

                        CHECK(rdmeta_buf_uvar(&r) == 0 && r.bad);
                        free(copy);
                }
        }
        gen_bytes_free(&b);
}

TEST(test_a_varint_above_32_bits_or_five_bytes_fails) {
        static const uint8_t above[]  = {0xff, 0xff, 0xff, 0xff, 0x10};
        static const uint8_t longer[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0};
        rdmeta_buf_t r;

        rdmeta_buf_init(&r, above, sizeof(above));
        CHECK(rdmeta_buf_uvar(&r) == 0 && r.bad);
        rdmeta_buf_init(&r, longer, sizeof(longer));
        CHECK(rdmeta_buf_uvar(&r) == 0 && r.bad);
}

TEST(test_tagged_fields_are_skipped) {
        gen_bytes_t b = {0};
        uint64_t i, seed;

        for (i = 1; i <= 200; i++) {
                rdmeta_buf_t r;
                uint8_t *copy;

                gen_bytes_clear(&b);
                seed = i;
                gen_tags(&b, &seed);
                gen_i32(&b, 0x0badcafe);
                copy = reader_over(&r, &b);
                rdmeta_buf_tags(&r);
                CHECK(rdmeta_buf_i32(&r) == 0x0badcafe && !r.bad);
                free(copy);
        }
        gen_bytes_free(&b);
}

TEST(test_tagged_fields_that_are_not_there_fail) {
        static const uint8_t billions[] = {0xff, 0xff, 0xff, 0xff, 0x0f, 0};
        static const uint8_t too_long[] = {1, 0, 5, 'a', 'b', 'c', 'd'};
        rdmeta_buf_t r;

        rdmeta_buf_init(&r, billions, sizeof(billions));
        rdmeta_buf_tags(&r);
        CHECK(r.bad);
        rdmeta_buf_init(&r, too_long, sizeof(too_long));
        rdmeta_buf_tags(&r);
        CHECK(r.bad == too_long + 3);
}

/* ------------------------------------------------------------------------
 * Counts, strings, lists
 * --------------------------------------------------------------------- */

static uint32_t count_of(int64_t n, int flexible, size_t min, size_t left,
                         int *null, int *bad) {
        gen_bytes_t b = {0};
        rdmeta_buf_t r;
        uint8_t *copy;
        uint32_t count;

        gen_count(&b, flexible, n);
        while (left--)
                gen_i8(&b, 0);
        copy  = reader_over(&r, &b);
        count = rdmeta_buf_count(&r, flexible, min, null);
        *bad  = r.bad != NULL;
        free(copy);
        gen_bytes_free(&b);
        return count;
}

TEST(test_a_count_is_compared_with_the_bytes_left) {
        static const uint32_t counts[] = {0, 1, 2, 7, 100};
        int flexible, bad;
        size_t i, min;

        for (flexible = 0; flexible < 2; flexible++)
                for (i = 0; i < sizeof(counts) / sizeof(*counts); i++)
                        for (min = 1; min < 30; min++) {
                                const uint32_t n = counts[i];

                                CHECK(count_of(n, flexible, min, n * min,
                                               NULL, &bad) == n && !bad);
                                if (n == 0)
                                        continue;
                                CHECK(count_of(n, flexible, min, n * min - 1,
                                               NULL, &bad) == 0 && bad);
                        }
}

TEST(test_counts_far_beyond_the_input_fail) {
        static const int64_t counts[] = {1000, 65536, INT32_MAX - 1,
                                         INT32_MAX};
        int flexible, bad;
        size_t i;

        for (flexible = 0; flexible < 2; flexible++)
                for (i = 0; i < sizeof(counts) / sizeof(*counts); i++)
                        CHECK(count_of(counts[i], flexible, 1, 64, NULL,
                                       &bad) == 0 && bad);
        CHECK(count_of((int64_t)UINT32_MAX - 1, 1, 1, 64, NULL, &bad) == 0 &&
              bad);
}

TEST(test_a_null_count_is_none_where_null_may_be) {
        int flexible, bad, null;

        for (flexible = 0; flexible < 2; flexible++) {
                null = 0;
                CHECK(count_of(-1, flexible, 4, 8, &null, &bad) == 0);
                CHECK(null == 1 && !bad);
                CHECK(count_of(-1, flexible, 4, 8, NULL, &bad) == 0 && bad);
                CHECK(count_of(0, flexible, 4, 8, &null, &bad) == 0);
                CHECK(null == 0 && !bad);
        }
}

TEST(test_a_negative_count_fails_even_where_null_may_be) {
        int bad, null;

        CHECK(count_of(-2, 0, 4, 8, &null, &bad) == 0 && bad && !null);
        CHECK(count_of(INT32_MIN, 0, 4, 8, &null, &bad) == 0 && bad && !null);
}

TEST(test_an_empty_string_is_not_null) {
        int flexible;

        for (flexible = 0; flexible < 2; flexible++) {
                gen_bytes_t b = {0};
                rdmeta_buf_t r;
                rdmeta_str_t s;
                uint8_t *copy;

                gen_str(&b, flexible, GEN_STR(""));
                gen_str(&b, flexible, (rdmeta_str_t){NULL, 0});
                gen_str(&b, flexible, GEN_STR("a\0b"));
                gen_str(&b, flexible, GEN_STR("")); /* at the very end */
                copy = reader_over(&r, &b);
                s    = rdmeta_buf_str(&r, flexible, 0);
                CHECK(s.data && s.len == 0);
                s = rdmeta_buf_str(&r, flexible, 1);
                CHECK(!s.data && s.len == 0 && !r.bad);
                s = rdmeta_buf_str(&r, flexible, 0);
                CHECK(s.len == 3 && memcmp(s.data, "a\0b", 3) == 0);
                s = rdmeta_buf_str(&r, flexible, 0);
                CHECK(s.data && s.len == 0 && !r.bad);
                free(copy);
                gen_bytes_free(&b);
        }
}

TEST(test_a_null_string_fails_where_null_may_not_be) {
        int flexible;

        for (flexible = 0; flexible < 2; flexible++) {
                gen_bytes_t b = {0};
                rdmeta_buf_t r;
                uint8_t *copy;

                gen_str(&b, flexible, (rdmeta_str_t){NULL, 0});
                copy = reader_over(&r, &b);
                CHECK(!rdmeta_buf_str(&r, flexible, 0).data && r.bad);
                free(copy);
                gen_bytes_free(&b);
        }
}

TEST(test_a_string_of_negative_length_fails) {
        static const uint8_t bytes[] = {0xff, 0xfe, 0, 0, 0};
        rdmeta_buf_t r;

        rdmeta_buf_init(&r, bytes, sizeof(bytes));
        CHECK(!rdmeta_buf_str(&r, 0, 1).data && r.bad);
}

TEST(test_a_string_is_32767_bytes_at_most) {
        static char text[32768];
        gen_bytes_t b = {0};
        rdmeta_str_t s;
        rdmeta_buf_t r;
        uint8_t *copy;

        gen_str(&b, 1, (rdmeta_str_t){text, 32767});
        gen_str(&b, 1, (rdmeta_str_t){text, 32768});
        copy = reader_over(&r, &b);
        s    = rdmeta_buf_str(&r, 1, 1);
        CHECK(s.len == 32767 && !r.bad);
        s = rdmeta_buf_str(&r, 1, 1);
        CHECK(!s.data && r.bad);
        free(copy);
        gen_bytes_free(&b);
}

TEST(test_a_list_stays_where_it_is) {
        int flexible;

        for (flexible = 0; flexible < 2; flexible++) {
                gen_bytes_t b = {0};
                rdmeta_wire_ids_t ids;
                rdmeta_buf_t r;
                uint8_t *copy;

                gen_count(&b, flexible, 2);
                gen_i32(&b, 5);
                gen_i32(&b, INT32_MAX);
                gen_count(&b, flexible, -1);
                gen_count(&b, flexible, 2);
                gen_i32(&b, 5); /* the other one is missing */
                copy = reader_over(&r, &b);
                ids  = rdmeta_buf_ids(&r, flexible);
                CHECK(ids.count == 2 && ids.be + 8 == r.p);
                CHECK(rdmeta_be32(ids.be) == 5);
                CHECK(rdmeta_be32(ids.be + 4) == INT32_MAX);
                ids = rdmeta_buf_ids(&r, flexible);
                CHECK(ids.count == 0 && !r.bad);
                ids = rdmeta_buf_ids(&r, flexible);
                CHECK(ids.count == 0 && r.bad);
                free(copy);
                gen_bytes_free(&b);
        }
}

TEST_MAIN()
