/* batch: exact bytes, each prefix of them, and lengths and counts that lie. */
#include "support/kraft_fixture.h"

/* A NoOp and two topics at offset 7. */
static kw_t sample(void) {
        kw_t w = {.offset = 7, .epoch = 3, .time_ms = 1700000000123};

        kw_add(&w, 20, 0, "");
        kw_add(&w, 2, 0, "su", "orders", 'a');
        kw_add(&w, 2, 0, "su", "audit", 'b');
        kw_batch(&w);
        return w;
}

static int32_t status(const uint8_t *p, size_t n) {
        uint8_t *exact = gen_bytes_exact(p, n);
        rdmeta_kraft_batch_t b;
        const int32_t got = rdmeta_kraft_batch(exact, n, &b);

        free(exact);
        return got;
}

/* The bytes of a NoOp as a controller of 4.3 writes them: 72 of them. */
TEST(test_a_batch_of_a_controller_is_read) {
        static const uint8_t bytes[] = {
                0, 0, 0, 0, 0, 0, 0, 9,  0, 0, 0, 60, 0, 0, 0, 2,  2,
                0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0,  0, 1, 0x8b, 0xcf, 0xe5,
                0x68, 0x7b, 0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0x7b, 255, 255,
                255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0,
                0, 0, 1, 20, 0, 0, 0, 1, 8, 1, 20, 0, 0, 0};
        uint8_t copy[sizeof(bytes)];
        rdmeta_kraft_records_t it;
        rdmeta_kraft_record_t r;
        rdmeta_kraft_batch_t b;

        memcpy(copy, bytes, sizeof(bytes));
        kw_crc(copy, sizeof(copy));
        CHECK(sizeof(bytes) == 72);
        CHECK(rdmeta_kraft_batch(copy, sizeof(copy), &b) == RDMETA_KRAFT_OK);
        CHECK(b.base_offset == 9 && b.last_offset == 9 && b.epoch == 2);
        CHECK(b.count == 1 && !b.control && b.size == 72 && b.bytes == copy);
        CHECK(b.time_ms == 1700000000123 && b.base_time_ms == b.time_ms);
        rdmeta_kraft_records_init(&it, &b);
        CHECK(rdmeta_kraft_records_next(&it, &r) == 1);
        CHECK(r.offset == 9 && r.epoch == 2 && r.type == 20 && !r.version);
        CHECK(r.time_us == 1700000000123000 && r.len == 4 && !r.control);
        CHECK(rdmeta_buf_left(&(rdmeta_buf_t){copy + 70, copy + 71, copy,
                                              NULL}) == 1);
        CHECK(rdmeta_kraft_record_body(&r).p == copy + 70);
        CHECK(rdmeta_kraft_records_next(&it, &r) == 0);
        CHECK(rdmeta_kraft_records_next(&it, &r) == 0);
}

TEST(test_control_records_have_type_and_version) {
        kw_t w = {.epoch = 5};
        rdmeta_kraft_records_t it;
        rdmeta_kraft_record_t r;
        rdmeta_kraft_batch_t b;

        kw_control(&w, 2, "hicc", 1, 3000, 0, 0);
        kw_batch(&w);
        CHECK(!rdmeta_kraft_batch(w.log.data, w.log.len, &b) && b.control);
        rdmeta_kraft_records_init(&it, &b);
        CHECK(rdmeta_kraft_records_next(&it, &r) == 1);
        CHECK(r.control && r.type == 2 && r.version == 1);
        CHECK(rdmeta_kraft_record_body(&r).p == r.value);
        kw_free(&w);
}

TEST(test_each_prefix_is_cut_and_says_what_it_needs) {
        kw_t w = sample();
        rdmeta_kraft_batch_t b;
        size_t n;

        for (n = 0; n < w.log.len; n++) {
                CHECK(status(w.log.data, n) == RDMETA_KRAFT_CUT);
                rdmeta_kraft_batch(w.log.data, n, &b);
                CHECK(b.size == (n < 17 ? 17 : w.log.len));
        }
        CHECK(status(w.log.data, n) == RDMETA_KRAFT_OK);
        kw_free(&w);
}

TEST(test_a_changed_bit_is_found) {
        kw_t w = sample();
        size_t bit;
        int32_t got;

        for (bit = 0; bit < 8 * w.log.len; bit++) {
                w.log.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
                got = status(w.log.data, w.log.len);
                /* The CRC leaves out the offset and the epoch. Their highest
                 * bits are none that a log has. */
                CHECK((got == RDMETA_KRAFT_OK) ==
                      ((bit < 64 && bit != 6 && bit != 7) ||
                       (bit >= 96 && bit < 128 && bit != 103)));
                w.log.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        kw_free(&w);
}

TEST(test_what_is_no_batch_is_named) {
        kw_t w                   = sample();
        uint8_t *p               = w.log.data;
        const size_t n           = w.log.len;
        const uint8_t zeros[100] = {0};

        CHECK(status(zeros, 100) == RDMETA_KRAFT_ZEROS);
        CHECK(status(zeros, 12) == RDMETA_KRAFT_ZEROS);
        CHECK(status(zeros, 11) == RDMETA_KRAFT_CUT);
        p[16] = 1;
        CHECK(status(p, n) == RDMETA_KRAFT_OLD_FORMAT);
        p[16] = 3;
        CHECK(status(p, n) == RDMETA_KRAFT_NO_BATCH);
        p[16] = 2;
        p[8]  = 0x7f; /* 2 GB */
        CHECK(status(p, n) == RDMETA_KRAFT_NO_BATCH);
        p[8] = 0xff;
        CHECK(status(p, n) == RDMETA_KRAFT_NO_BATCH);
        p[8]  = 0;
        p[22] = 4; /* zstd */
        kw_crc(p, n);
        CHECK(status(p, n) == RDMETA_KRAFT_COMPRESSED);
        p[22] = 0;
        p[20] ^= 1;
        CHECK(status(p, n) == RDMETA_KRAFT_BAD_CRC);
        kw_free(&w);
        CHECK(status((const uint8_t *)"a text that is no log at all, 61 bytes "
                                      "or more of it as of any file",
                     61) == RDMETA_KRAFT_NO_BATCH);
}

/* Puts a big-endian number of `width` bytes, and sets the CRC anew. */
static int32_t with(const kw_t *w, size_t at, size_t width, uint64_t v) {
        uint8_t *p = gen_bytes_exact(w->log.data, w->log.len);
        int32_t got;

        while (width--) {
                p[at + width] = (uint8_t)v;
                v >>= 8;
        }
        kw_crc(p, w->log.len);
        got = status(p, w->log.len);
        free(p);
        return got;
}

TEST(test_counts_offsets_and_times_are_compared_with_each_other) {
        const uint64_t counts[] = {0, 1, 2, 4, 1 << 30, UINT32_MAX};
        kw_t w                  = sample();
        size_t i;

        CHECK(with(&w, 57, 4, 3) == RDMETA_KRAFT_OK);
        for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
                CHECK(with(&w, 57, 4, counts[i]) == RDMETA_KRAFT_NO_BATCH);
                CHECK(with(&w, 23, 4, counts[i] - 1) ==
                      RDMETA_KRAFT_NO_BATCH);
        }
        CHECK(with(&w, 0, 8, UINT64_MAX) == RDMETA_KRAFT_NO_BATCH);
        CHECK(with(&w, 0, 8, INT64_MAX) == RDMETA_KRAFT_NO_BATCH);
        CHECK(with(&w, 12, 4, UINT32_MAX) == RDMETA_KRAFT_NO_BATCH);
        CHECK(with(&w, 27, 8, INT64_MAX) == RDMETA_KRAFT_NO_BATCH);
        CHECK(with(&w, 35, 8, INT64_MAX) == RDMETA_KRAFT_NO_BATCH);
        CHECK(with(&w, 35, 8, 0) == RDMETA_KRAFT_NO_BATCH);
        kw_free(&w);
}

/* Reads all records; returns how many were good, or -1 - that for bad bytes. */
static int read_all(const uint8_t *p, size_t n) {
        rdmeta_kraft_records_t it;
        rdmeta_kraft_record_t r;
        rdmeta_kraft_batch_t b;
        int good = 0, got;

        CHECK(!rdmeta_kraft_batch(p, n, &b));
        rdmeta_kraft_records_init(&it, &b);
        while ((got = rdmeta_kraft_records_next(&it, &r)) > 0) {
                CHECK(r.value >= p && r.value + r.len <= p + n);
                good++;
        }
        CHECK((got < 0) == (it.buf.bad != NULL));
        CHECK(rdmeta_kraft_records_next(&it, &r) == got);
        return got < 0 ? -1 - good : good;
}

TEST(test_a_record_with_a_changed_byte_never_leads_outside) {
        kw_t w = sample();
        size_t at;
        int byte;

        CHECK(read_all(w.log.data, w.log.len) == 3);
        for (at = RDMETA_KRAFT_HEADER; at < w.log.len; at++)
                for (byte = 0; byte < 256; byte++) {
                        uint8_t *p = gen_bytes_exact(w.log.data, w.log.len);

                        p[at] = (uint8_t)byte;
                        kw_crc(p, w.log.len);
                        read_all(p, w.log.len);
                        free(p);
                }
        kw_free(&w);
}

TEST(test_a_record_may_be_later_than_its_batch_begins) {
        kw_t w                     = {.count = 1, .time_ms = 1003};
        rdmeta_kraft_place_t place = {0};
        rdmeta_kraft_record_t r;
        rdmeta_kraft_batch_t b;

        gen_put(&w.records, "\x14\0\6\0\1\x08\1\x14\0\0\0", 11);
        kw_batch(&w);
        w.log.data[34] = 1000 & 0xff;
        kw_crc(w.log.data, w.log.len);
        CHECK(!rdmeta_kraft_batch(w.log.data, w.log.len, &b));
        CHECK(rdmeta_kraft_record_next(&b, &place, &r) == 1);
        CHECK(r.time_us == 1003000 && r.type == 20 && r.len == 4);
        kw_free(&w);
}

/* Their lengths, and the deltas behind them, have one byte, two, or three. */
TEST(test_records_of_all_sizes_follow_each_other) {
        static char name[20001];
        kw_t w                     = {0};
        rdmeta_kraft_place_t place = {0};
        rdmeta_kraft_about_t about;
        rdmeta_kraft_record_t r;
        rdmeta_kraft_batch_t b;
        size_t n;

        memset(name, 'x', sizeof(name) - 1);
        for (n = 0; n <= 20000; n += n < 200 ? 1 : 50)
                kw_add(&w, 2, 0, "su", name + 20000 - n, 'a');
        kw_batch(&w);
        CHECK(!rdmeta_kraft_batch(w.log.data, w.log.len, &b));
        for (n = 0; n <= 20000; n += n < 200 ? 1 : 50) {
                CHECK(rdmeta_kraft_record_next(&b, &place, &r) == 1);
                rdmeta_kraft_record_about(&r, &about);
                CHECK(r.type == 2 && about.topic.len == n);
        }
        CHECK(rdmeta_kraft_record_next(&b, &place, &r) == 0);
        kw_free(&w);
}

/* Makes a batch of this one record, its bytes as they are given. */
static int one(const char *bytes, size_t n) {
        kw_t w = {.count = 1};
        int got;

        gen_put(&w.records, bytes, n);
        kw_batch(&w);
        got = read_all(w.log.data, w.log.len);
        kw_free(&w);
        return got;
}

#define ONE(literal) one(literal, sizeof(literal) - 1)

TEST(test_a_bad_record_is_refused) {
        CHECK(ONE("\x14\0\0\0\1\x08\1\x14\0\0\0") == 1);
        CHECK(ONE("\x14\0\0\0\1\x08\2\x14\0\0\0") == -1);   /* the frame */
        CHECK(ONE("\x14\0\0\2\1\x08\1\x14\0\0\0") == -1);   /* delta 1 */
        CHECK(ONE("\x14\0\1\0\1\x08\1\x14\0\0\0") == -1);   /* time -1 */
        CHECK(ONE("\x14\0\2\0\1\x08\1\x14\0\0\0") == -1);   /* time +1 */
        CHECK(ONE("\x14\0\0\0\1\x0a\1\x14\0\0\0") == -1);   /* value too long */
        CHECK(ONE("\x14\0\0\0\1\x08\1\x14\0\0\2") == -1);   /* a header */
        CHECK(ONE("\x16\0\0\0\1\x08\1\x14\0\0\0") == -1);   /* too long */
        CHECK(ONE("\x14\0\0\0\1\x08\1\x14\0\0\0\0") == -2); /* one byte more */
        CHECK(ONE("\x01\0\0\0\1\x08\1\x14\0\0\0") == -1);   /* null */
        CHECK(ONE("\x14\0\0\0\0\x08\1\x14\0\0\0") == -1);   /* a key */
        CHECK(ONE("\x14\0\0\0\1\1\1\x14\0\0\0") == -1);     /* null value */
        CHECK(ONE("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff") == -1);
        CHECK(ONE("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80") == -1);
        CHECK(ONE("\x1c\0\0\0\1\x10\1\xff\xff\xff\xff\x0f\0\0\0") == -1);
}

TEST_MAIN()
