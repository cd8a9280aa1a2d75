/* The faults of damaged files: their text, section and offset. */
#include "support/image_fixture.h"

#include <stddef.h>
#include <stdlib.h>

static const rdmeta_time_t now = {1000000, 2000000};

typedef struct whole {
        const char *path;
        uint8_t *bytes;
        size_t size;
        rdmeta_file_head_t head;
} whole_t;

static void whole_init(whole_t *s) {
        rdmeta_image_t *image;
        cw_t w;

        cw_init(&w, NULL);
        iw_fill(&w);
        image   = iw_image(&w);
        s->path = iw_path("damaged");
        CHECK(!rdmeta_image_save(image, s->path, 0));
        s->bytes = iw_read(s->path, &s->size);
        memcpy(&s->head, s->bytes, sizeof(s->head));
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

/* Returns the error of the file as it is now, and sets *out to its fault.
 * Checks that open, verify and the fault calls agree. */
static rdmeta_err_t fault_of(const whole_t *s, rdmeta_image_fault_t *out) {
        rdmeta_image_t *image = NULL;
        rdmeta_err_t err = rdmeta_image_open(s->path, RDMETA_IMAGE_COPY, now,
                                             &image);

        memset(out, 0, sizeof(*out));
        CHECK(rdmeta_image_file_fault(s->path, out) == err);
        if (!err) {
                err = rdmeta_image_verify(image);
                CHECK(rdmeta_image_fault(image, out) == err);
        }
        rdmeta_image_unref(image);
        CHECK((err == RDMETA_ERR_MALFORMED) == (out->what != NULL));
        CHECK(!out->what == !out->section && out->offset <= s->size);
        return err;
}

/* Writes the file with another byte at `at`. */
static void put(const whole_t *s, size_t at, uint8_t value) {
        const uint8_t old = s->bytes[at];

        s->bytes[at] = value;
        iw_write(s->path, s->bytes, s->size);
        s->bytes[at] = old;
}

/* Writes the file so that the block at `at` has the cold part of the block one
 * line before. */
static void put_cold_offset(const whole_t *s, uint64_t at) {
        uint8_t old[RDMETA_LINE];
        rdmeta_topic_t *t = (rdmeta_topic_t *)(void *)(s->bytes + at);
        const rdmeta_topic_t *first =
                (const rdmeta_topic_t *)(void *)(s->bytes + at - RDMETA_LINE);

        CHECK(rdmeta_topic_is_split(t) && rdmeta_topic_is_split(first));
        memcpy(old, t, sizeof(old));
        rdmeta_topic_cold_offset_set(t, rdmeta_topic_cold_offset(first) -
                                                RDMETA_LINE);
        iw_write(s->path, s->bytes, s->size);
        memcpy((void *)t, old, sizeof(old));
}

static void check_fault(const whole_t *s, const char *section,
                        uint64_t offset, const char *what) {
        rdmeta_image_fault_t fault;

        CHECK(fault_of(s, &fault) == RDMETA_ERR_MALFORMED);
        CHECK(!strcmp(fault.section, section) && fault.offset == offset);
        CHECK(strstr(fault.what, what));
}

TEST(test_a_fault_names_its_section_and_offset) {
        const rdmeta_file_section_t *sections;
        rdmeta_image_fault_t fault;
        const rdmeta_file_t *f;
        rdmeta_image_t *image;
        uint64_t at;
        whole_t s;

        whole_init(&s);
        sections = s.head.sections;
        CHECK(!fault_of(&s, &fault));
        iw_write(s.path, s.bytes, 100);
        check_fault(&s, "head", 100, "the file ends within");
        iw_write(s.path, s.bytes, s.size - 1);
        check_fault(&s, "head", offsetof(rdmeta_file_head_t, size),
                    "the size in the head is not");
        put(&s, 0, 'x');
        check_fault(&s, "head", 0, "does not begin as an image");
        put(&s, offsetof(rdmeta_file_head_t, topics), 0xff);
        check_fault(&s, "head", offsetof(rdmeta_file_head_t, checksum),
                    "checksum");
        at = sections[RDMETA_FILE_BROKERS].offset;
        put(&s, at + 4, 0xff);
        check_fault(&s, "brokers", at, "the brokers are malformed");
        at = sections[RDMETA_FILE_REASONS].offset;
        put(&s, at + 3, 0xff);
        check_fault(&s, "reasons", at, "the reasons are malformed");
        at = sections[RDMETA_FILE_IDS].offset;
        put(&s, at + 7, 0x77);
        check_fault(&s, "ids", at, "checksum");
        at = sections[RDMETA_FILE_ORDER].offset;
        put(&s, at + 3, 0x77);
        check_fault(&s, "order", at, "does not lead to a topic");
        iw_write(s.path, s.bytes, s.size);
        image = iw_open(s.path, 0, now);
        f     = rdmeta_file_of(image);
        at    = f->order[1] * (uint64_t)RDMETA_LINE;
        rdmeta_image_unref(image);
        s.path = iw_path("damaged-too");
        put(&s, at + offsetof(rdmeta_topic_t, count) + 3, 0xff);
        check_fault(&s, "blocks", at, "a topic is malformed");
        /* The block claims the first block's cold part. */
        put_cold_offset(&s, at);
        check_fault(&s, "blocks", at, "a topic is malformed");
        free(s.bytes);
}

TEST(test_all_calls_report_the_same_fault_of_any_byte) {
        enum { ROUNDS = 3000 };
        rdmeta_image_fault_t fault;
        test_rng_t rng = test_rng(5);
        int i, found = 0;
        whole_t s;

        whole_init(&s);
        for (i = 0; i < ROUNDS; i++) {
                const size_t at = test_below(&rng, (uint32_t)s.size);

                put(&s, at, (uint8_t)(s.bytes[at] ^
                                      (1 + test_below(&rng, 255))));
                found += fault_of(&s, &fault) == RDMETA_ERR_MALFORMED;
        }
        CHECK(found > ROUNDS / 2);
        free(s.bytes);
}

TEST(test_a_path_without_a_regular_file_has_its_own_error) {
        rdmeta_image_fault_t fault;
        rdmeta_image_t *image;
        cw_t w;

        CHECK(rdmeta_image_file_fault(iw_path("none"), &fault) ==
              RDMETA_ERR_IO);
        CHECK(rdmeta_image_file_fault("/", &fault) == RDMETA_ERR_IO);
        CHECK(rdmeta_image_file_fault("/dev/null", &fault) ==
              RDMETA_ERR_MALFORMED);
        CHECK(strstr(fault.what, "not a regular file"));
        cw_init(&w, NULL);
        image = iw_image(&w);
        CHECK(!rdmeta_image_fault(image, &fault));
        rdmeta_image_unref(image);
        cw_destroy(&w);
}

TEST_MAIN()
