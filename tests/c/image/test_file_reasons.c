/*
 * Forged reasons in files whose checksums are right. open refuses impossible
 * reasons, before a reader reads the image.
 */
#include "support/image_fixture.h"

static const rdmeta_time_t now = {1003 * CW_S, 5003 * CW_S};

/* An image file. The reason of "a" is 200 times x, of "b" 100 times y; "c" has
 * none. */
typedef struct sound {
        const char *path;
        uint8_t *bytes;
        size_t size;
        rdmeta_file_head_t head;
} sound_t;

enum { FIRST = 200, SECOND = 100, ROOM = 128 * RDMETA_LINE };

static void sound_init(sound_t *s) {
        char why[FIRST + 1] = {0};
        rdmeta_image_t *image;
        uint8_t *bytes;
        cw_t w;

        cw_init(&w, NULL);
        w.now = now;
        memset(why, 'x', FIRST);
        w.reason = why;
        CHECK(!cw_say(&w, "a 0:1"));
        memset(why, 0, FIRST);
        memset(why, 'y', SECOND);
        CHECK(!cw_say(&w, "b 0:1"));
        w.reason = NULL;
        CHECK(!cw_say(&w, "c 0:1"));
        image   = iw_image(&w);
        s->path = iw_path("reasons");
        CHECK(!rdmeta_image_save(image, s->path, 0));
        rdmeta_image_unref(image);
        cw_destroy(&w);
        bytes    = iw_read(s->path, &s->size);
        s->bytes = calloc(1, s->size + ROOM);
        CHECK(s->bytes);
        memcpy(s->bytes, bytes, s->size);
        memcpy(&s->head, bytes, sizeof(s->head));
        free(bytes);
        CHECK(s->head.reasons == 2);
}

static rdmeta_file_section_t *section(sound_t *s) {
        return &s->head.sections[RDMETA_FILE_REASONS];
}

static uint32_t *ends(sound_t *s) {
        return (uint32_t *)(void *)(s->bytes + section(s)->offset);
}

/* Returns where the reason's number of the i-th topic is. */
static uint8_t *number(sound_t *s, size_t i) {
        const rdmeta_topic_t *t;
        uint32_t line;

        memcpy(&line,
               s->bytes + s->head.sections[RDMETA_FILE_ORDER].offset + 4 * i,
               sizeof(line));
        t = (const rdmeta_topic_t *)(void *)(s->bytes +
                                             RDMETA_LINE * (size_t)line);
        return (uint8_t *)(rdmeta_cold(t) + 1) - sizeof(uint32_t);
}

/* Writes the file with right checksums, and opens a copy, which ASan
 * watches. */
static rdmeta_err_t opened(sound_t *s, rdmeta_image_t **out) {
        int i;

        s->head.size = s->size;
        for (i = 0; i < RDMETA_FILE_SECTIONS; i++) {
                rdmeta_file_section_t *x = &s->head.sections[i];

                x->checksum = rdmeta_checksum(s->bytes + x->offset,
                                              (size_t)x->length);
        }
        s->head.checksum = rdmeta_file_head_checksum(&s->head);
        memcpy(s->bytes, &s->head, sizeof(s->head));
        iw_write(s->path, s->bytes, s->size);
        *out = NULL;
        return rdmeta_image_open(s->path, RDMETA_IMAGE_COPY, now, out);
}

TEST(test_reasons_are_read_as_they_were_written) {
        rdmeta_image_t *image;
        sound_t s;

        sound_init(&s);
        CHECK(!opened(&s, &image) && !rdmeta_image_verify(image));
        CHECK(image->ops->reason(image, 1).len == FIRST);
        CHECK(image->ops->reason(image, 2).len == SECOND);
        CHECK(image->ops->reason(image, 2).data[0] == 'y');
        CHECK(!image->ops->reason(image, 0).data);
        CHECK(!image->ops->reason(image, 3).data);
        CHECK(!image->ops->reason(image, UINT32_MAX).data);
        rdmeta_image_unref(image);
        free(s.bytes);
}

#define FORGE(name, what)                                                    \
        static void name(sound_t *s) {                                       \
                what;                                                        \
        }

FORGE(one_more, s->head.reasons++)
FORGE(one_less, s->head.reasons--)
FORGE(none, s->head.reasons = 0)
FORGE(endless, s->head.reasons = UINT64_MAX)
FORGE(wrapping, s->head.reasons = UINT64_C(1) << 62)
FORGE(cut, section(s)->length--)
FORGE(longer, section(s)->length++)
FORGE(no_ends, section(s)->length = 7)
FORGE(nothing, section(s)->length = 0)
FORGE(far_end, ends(s)[1] = UINT32_MAX)
FORGE(one_of_both, ends(s)[0] = FIRST + SECOND)
FORGE(the_other_of_both, ends(s)[0] = 0)
FORGE(backwards, ends(s)[0] = 201; ends(s)[1] = FIRST; section(s)->length = 208)
/* The file has none of these reasons. */
FORGE(beyond, s->head.reasons = 1000; section(s)->offset = s->size;
      section(s)->length = 0)

TEST(test_impossible_reasons_are_refused_by_open) {
        void (*const forges[])(sound_t *) = {
                one_more, one_less, none,    endless, wrapping,    cut,
                longer,   no_ends,  nothing, far_end, one_of_both, beyond,
                the_other_of_both,  backwards};
        rdmeta_image_t *image;
        sound_t s;
        size_t i;

        for (i = 0; i < sizeof(forges) / sizeof(forges[0]); i++) {
                sound_init(&s);
                forges[i](&s);
                if (opened(&s, &image) != RDMETA_ERR_MALFORMED) {
                        fprintf(stderr, "forgery %zu was accepted\n", i);
                        CHECK(!"refused");
                }
                free(s.bytes);
        }
}

/* The reasons are empty, in a new section behind all others. */
TEST(test_no_file_has_more_reasons_than_a_cache) {
        rdmeta_image_t *image;
        sound_t s;

        sound_init(&s);
        section(&s)->offset = s.size;
        s.head.reasons      = RDMETA_REASONS_MAX;
        section(&s)->length = 4 * RDMETA_REASONS_MAX;
        s.size += ROOM;
        CHECK(!opened(&s, &image) && !rdmeta_image_verify(image));
        CHECK(image->ops->reason(image, RDMETA_REASONS_MAX).data);
        rdmeta_image_unref(image);
        s.head.reasons++;
        section(&s)->length += 4;
        CHECK(opened(&s, &image) == RDMETA_ERR_MALFORMED);
        free(s.bytes);
}

TEST(test_a_topic_with_an_unknown_reason_number_is_malformed) {
        const uint16_t numbers[] = {3, 1025, UINT16_MAX};
        rdmeta_image_t *image;
        rdmeta_seen_t seen;
        sound_t s;
        size_t i;

        for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
                cw_t w;

                sound_init(&s);
                memcpy(number(&s, 1), &numbers[i], sizeof(numbers[i]));
                CHECK(!opened(&s, &image));
                CHECK(!image->ops->find(image, "a", 1, &seen));
                CHECK(seen.provenance.reason == 1);
                CHECK(image->ops->find(image, "b", 1, &seen) ==
                      RDMETA_ERR_MALFORMED);
                CHECK(!image->ops->find(image, "c", 1, &seen));
                CHECK(seen.provenance.reason == 0);
                CHECK(rdmeta_image_verify(image) == RDMETA_ERR_MALFORMED);
                cw_init(&w, NULL);
                CHECK(rdmeta_cache_load(w.cache, image, now) ==
                      RDMETA_ERR_MALFORMED);
                CHECK(cw_stats(&w).reasons == 0);
                cw_destroy(&w);
                rdmeta_image_unref(image);
                free(s.bytes);
        }
}

TEST(test_a_changed_reason_is_found_by_its_checksum) {
        rdmeta_image_t *image;
        sound_t s;

        sound_init(&s);
        s.bytes[section(&s)->offset + 8] ^= 1;
        iw_write(s.path, s.bytes, s.size);
        CHECK(!rdmeta_image_open(s.path, 0, now, &image));
        CHECK(rdmeta_image_verify(image) == RDMETA_ERR_MALFORMED);
        rdmeta_image_unref(image);
        free(s.bytes);
}

TEST_MAIN()
