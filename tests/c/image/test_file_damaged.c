/*
 * Reads damaged and forged files. Each is refused, or can be read without a
 * crash. A file in which verify finds no fault has its old contents. Most reads
 * are of a copy, which lies in memory that ASan watches; some are of a mapping.
 */
#include "support/image_fixture.h"

#include <errno.h>

static const rdmeta_time_t now = {1003 * CW_S, 5003 * CW_S};

static int32_t see_change(void *opaque, const rdmeta_change_t *c) {
        (void)c;
        ++*(int *)opaque;
        return 0;
}

/* Loads the image into a cache, applies an answer, and reads everything. */
static void load(rdmeta_image_t *image) {
        rdmeta_err_t err;
        cw_t w;

        cw_init(&w, NULL);
        err = rdmeta_cache_load(w.cache, image, now);
        CHECK(!err || err == RDMETA_ERR_MALFORMED);
        cw_check(&w);
        w.now = now;
        w.cluster_id = NULL;
        CHECK(!cw_all(&w, "a#a 0:1@9 1:2@9; b#x 0:1@1; c#c 0:2@900"));
        free(iw_reader_text(w.stale, now.mono_us));
        cw_destroy(&w);
}

/* Opens and reads a file. Returns 1 if the file or a part of it was refused.
 * `text` is the text of the undamaged file; NULL: this one may have another. */
static int try_file(const char *path, int32_t flags, rdmeta_image_t *whole,
                    const char *text) {
        rdmeta_image_t *image = NULL;
        rdmeta_err_t err      = rdmeta_image_open(path, flags, now, &image);
        char *read, *after;
        int good, changes = 0, told = 0;

        if (err) {
                CHECK(err == RDMETA_ERR_MALFORMED ||
                      err == RDMETA_ERR_UNSUPPORTED);
                return 1;
        }
        read = iw_text(image, now.mono_us);
        err  = rdmeta_image_diff(whole, image, see_change, &changes);
        CHECK(!err || err == RDMETA_ERR_MALFORMED);
        if (!err)
                err = rdmeta_image_changes(image, see_change, &told);
        CHECK(!err || err == RDMETA_ERR_MALFORMED);
        good = !rdmeta_image_verify(image);
        CHECK(!good || (read && !err));
        if (good && text) {
                CHECK(!changes);
                CHECK_TEXT(read, text);
        }
        load(image);
        after = iw_text(image, now.mono_us);
        CHECK(!read == !after);
        free(read);
        free(after);
        rdmeta_image_unref(image);
        return !good;
}

/* A reason of 132 bytes, about half of the longest possible one. */
#define DOTS "................................................................"
#define LONG "why " DOTS DOTS

typedef struct sound {
        cw_t w;
        rdmeta_image_t *image;
        char *text;
        uint8_t *bytes, *damaged;
        size_t size;
        const char *path;
} sound_t;

static void sound_init(sound_t *s, const char *topics) {
        char why[] = LONG;

        cw_init(&s->w, NULL);
        s->w.reason = why;
        if (topics)
                CHECK(!cw_all(&s->w, topics));
        else
                iw_fill(&s->w);
        why[0]      = 'W';
        s->w.reason = why;
        CHECK(!cw_say(&s->w, "z.other 0:1"));
        s->w.reason = NULL;
        s->w.now    = now;
        s->image = iw_image(&s->w);
        s->path  = iw_path("damaged");
        CHECK(!rdmeta_image_save(s->image, s->path, 0));
        s->text    = iw_text(s->image, now.mono_us);
        s->bytes   = iw_read(s->path, &s->size);
        s->damaged = malloc(s->size);
        CHECK(s->text && s->damaged);
        memcpy(s->damaged, s->bytes, s->size);
        CHECK(!try_file(s->path, 0, s->image, s->text));
}

static void sound_destroy(sound_t *s) {
        free(s->text);
        free(s->bytes);
        free(s->damaged);
        rdmeta_image_unref(s->image);
        cw_destroy(&s->w);
}

static const char few[] =
        "a#a 0:1@5/r1,2,3/i1,2 1:2@5/r2,3,1; b#b 0:1@5/r1,2; c^7 7:2@300; "
        "a.name.of.twenty.bytes 0:1 1:2 2:3";

#define SOUND_TEST(name, ...)                                                \
        TEST_BETWEEN(name, sound_t, sound_init(&w, __VA_ARGS__),             \
                     sound_destroy(&w))

SOUND_TEST(test_a_file_cut_at_any_length_is_refused, few) {
        size_t n;

        for (n = 0; n < w->size; n++) {
                iw_write(w->path, w->bytes, n);
                CHECK(try_file(w->path, n & 1 ? RDMETA_IMAGE_COPY : 0,
                               w->image, w->text));
        }
}

SOUND_TEST(test_a_file_with_bytes_after_its_end_is_refused, few) {
        w->bytes[w->size] = 0; /* iw_read() allocates one byte more */
        iw_write(w->path, w->bytes, w->size + 1);
        CHECK(try_file(w->path, 0, w->image, w->text));
        CHECK(try_file(w->path, RDMETA_IMAGE_COPY, w->image, w->text));
}

/* Checksums detect a change of any byte but the padding between sections. */
SOUND_TEST(test_any_changed_byte_is_detected_or_is_padding, few) {
        const uint8_t masks[] = {1, 0x80, 0xff};
        size_t i, found = 0;
        int k;

        for (i = 0; i < w->size; i++)
                for (k = 0; k < 3; k++) {
                        w->damaged[i] ^= masks[k];
                        iw_write(w->path, w->damaged, w->size);
                        w->damaged[i] ^= masks[k];
                        found += (size_t)try_file(w->path,
                                                  i % 7 ? RDMETA_IMAGE_COPY
                                                        : 0,
                                                  w->image, w->text);
                }
        CHECK(found > 3 * w->size * 8 / 10);
}

/* ---- forged files: their checksums are right ---------------------------- */

/* Corrects the checksums of a damaged file. */
static void resign(uint8_t *bytes, size_t size) {
        rdmeta_file_head_t head;
        int i;

        memcpy(&head, bytes, sizeof(head));
        for (i = 0; i < RDMETA_FILE_SECTIONS; i++) {
                rdmeta_file_section_t *x = &head.sections[i];

                if (x->offset <= size && x->length <= size - x->offset)
                        x->checksum = rdmeta_checksum(bytes + x->offset,
                                                      (size_t)x->length);
        }
        head.checksum = rdmeta_file_head_checksum(&head);
        memcpy(bytes, &head, sizeof(head));
}

SOUND_TEST(test_a_forged_file_is_refused_or_can_be_read, few) {
        enum { ROUNDS = 4000 };
        test_rng_t r = test_rng(1);
        int round, k, refused = 0;

        for (round = 0; round < ROUNDS; round++) {
                memcpy(w->damaged, w->bytes, w->size);
                for (k = 0; k < 1 + (int)test_below(&r, 4); k++) {
                        const size_t at = test_below(&r, 3)
                                                  ? test_below(&r, w->size)
                                                  : test_below(&r, 360);
                        if (test_below(&r, 2))
                                w->damaged[at] ^=
                                        (uint8_t)(1 << test_below(&r, 8));
                        else
                                w->damaged[at] = (uint8_t)test_u64(&r);
                }
                resign(w->damaged, w->size);
                iw_write(w->path, w->damaged, w->size);
                refused += try_file(w->path,
                                    round % 5 ? RDMETA_IMAGE_COPY : 0,
                                    w->image, NULL);
        }
        CHECK(refused > ROUNDS / 10);
}

/* ---- one forgery at a time ---------------------------------------------- */

typedef void (*forge_t)(sound_t *s, rdmeta_file_head_t *h);

/* Forges the sound file. Returns the error of open, or else of verify. */
static rdmeta_err_t forged(sound_t *s, forge_t forge) {
        rdmeta_image_t *image = NULL;
        rdmeta_file_head_t head;
        rdmeta_err_t err;

        memcpy(s->damaged, s->bytes, s->size);
        memcpy(&head, s->damaged, sizeof(head));
        forge(s, &head);
        memcpy(s->damaged, &head, sizeof(head));
        resign(s->damaged, s->size);
        iw_write(s->path, s->damaged, s->size);
        err = rdmeta_image_open(s->path, RDMETA_IMAGE_COPY, now, &image);
        if (!err) {
                free(iw_text(image, now.mono_us));
                err = rdmeta_image_verify(image);
        }
        rdmeta_image_unref(image);
        return err;
}

static uint64_t *slots(sound_t *s, const rdmeta_file_head_t *h, int kind) {
        return (uint64_t *)(void *)(s->damaged + h->sections[kind].offset);
}

static uint32_t *order(sound_t *s, const rdmeta_file_head_t *h) {
        return (uint32_t *)(void *)(s->damaged +
                                    h->sections[RDMETA_FILE_ORDER].offset);
}

#define FORGE(name, what)                                                    \
        static void name(sound_t *s, rdmeta_file_head_t *h) {                \
                (void)s;                                                     \
                what;                                                        \
        }

FORGE(nothing, (void)h)
FORGE(other_magic, h->magic[1] ^= 1)
FORGE(other_order, h->byte_order = __builtin_bswap32(h->byte_order))
FORGE(other_format, h->format++)
FORGE(longer, h->size += 64)
FORGE(no_age, h->max_age_us = 0)
FORGE(more_blocks, h->blocks++)
FORGE(fewer_blocks, h->blocks--)
FORGE(more_topics, h->topics++)
FORGE(fewer_partitions, h->partitions--)
FORGE(endless_probe, h->names_longest = UINT32_MAX)
FORGE(shorter_probe, h->names_longest = 0; h->ids_longest = 0;
      h->names_key[0]++)
FORGE(section_beyond, h->sections[1].offset = h->size + 64)
FORGE(section_wraps, h->sections[1].length = UINT64_MAX)
FORGE(section_crooked, h->sections[0].offset++)
FORGE(section_in_head, h->sections[1].offset = 64)
FORGE(section_other, h->sections[3].kind = 4)
FORGE(no_blocks, h->sections[0].length = 64)
FORGE(odd_table, h->sections[RDMETA_FILE_NAMES].length -= 8)
FORGE(no_table, h->sections[RDMETA_FILE_IDS].length = 0)
FORGE(no_brokers, h->sections[RDMETA_FILE_BROKERS].length = 0)
FORGE(some_brokers, h->sections[RDMETA_FILE_BROKERS].length--)
FORGE(far_line, order(s, h)[0] = UINT32_MAX)
FORGE(head_line, order(s, h)[0] = 0)
FORGE(last_line,
      order(s, h)[0] = (uint32_t)((h->sections[0].offset +
                                   h->sections[0].length) / 64 - 1))
FORGE(swapped, uint32_t old = order(s, h)[0]; order(s, h)[0] = order(s, h)[1];
      order(s, h)[1] = old)
FORGE(twice, order(s, h)[1] = order(s, h)[0])
FORGE(full_names, memset(slots(s, h, RDMETA_FILE_NAMES), 0xff,
                         h->sections[RDMETA_FILE_NAMES].length);
      h->names_longest = 15)
FORGE(no_names, memset(slots(s, h, RDMETA_FILE_NAMES), 0,
                       h->sections[RDMETA_FILE_NAMES].length))
FORGE(no_ids, memset(slots(s, h, RDMETA_FILE_IDS), 0,
                     h->sections[RDMETA_FILE_IDS].length))
FORGE(stray_slot, uint64_t *k = slots(s, h, RDMETA_FILE_NAMES);
      while (*k) k++; *k = (uint64_t)order(s, h)[0] << 16 | 7)
FORGE(stray_id, uint64_t *k = slots(s, h, RDMETA_FILE_IDS); while (*k) k++;
      *k = ((uint64_t)order(s, h)[0] + 1) << 16 | 7)

/* Swaps the places of "a" and "b", and their names, so that names ascend. */
static void backwards(sound_t *s, rdmeta_file_head_t *h) {
        uint32_t *o = order(s, h);

        swapped(s, h);
        s->damaged[RDMETA_LINE * (size_t)o[0] +
                   offsetof(rdmeta_topic_t, name)] = 'a';
        s->damaged[RDMETA_LINE * (size_t)o[1] +
                   offsetof(rdmeta_topic_t, name)] = 'b';
}

/* So a walk never checks the same bytes twice. */
SOUND_TEST(test_blocks_whose_places_do_not_ascend_are_refused, "a 0:1; b 0:1") {
        rdmeta_image_t *image;
        size_t n;

        CHECK(forged(w, backwards) == RDMETA_ERR_MALFORMED);
        image = iw_open(w->path, 0, now);
        CHECK(image->ops->order(image, &n) == RDMETA_ERR_MALFORMED);
        rdmeta_image_unref(image);
}

/* A lookup must not return a wrong leader that looks like an error code. */
SOUND_TEST(test_an_impossible_leader_is_malformed,
           "a.name.of.twenty.bytes 0:1 1:2") {
        static const char name[]   = "a.name.of.twenty.bytes";
        const int32_t leaders[]    = {-2, -19, -100, -102, -120, -128};
        const rdmeta_str_t names[] = {GEN_STR(name), GEN_STR(name)};
        const int32_t parts[]      = {0, 1};
        rdmeta_image_t *image;
        rdmeta_reader_t *r;
        int32_t out[2];
        uint8_t *at;
        size_t i;

        at = memmem(w->damaged, w->size, name, sizeof(name) - 1);
        CHECK(at && at[sizeof(name) - 1] == 1);
        for (i = 0; i < sizeof(leaders) / sizeof(leaders[0]); i++) {
                at[sizeof(name) - 1] = (uint8_t)leaders[i];
                iw_write(w->path, w->damaged, w->size);
                image = iw_open(w->path, 0, now);
                r     = rdmeta_image_reader(image, 0);
                CHECK(r);
                CHECK(rdmeta_leader(r, name, sizeof(name) - 1, 0,
                                    now.mono_us) == RDMETA_ERR_MALFORMED);
                rdmeta_leaders(r, names, parts, 2, now.mono_us, out);
                CHECK(out[0] == RDMETA_ERR_MALFORMED && out[1] == 2);
                rdmeta_reader_destroy(r);
                rdmeta_image_unref(image);
        }
}

/* A sparse file of 200 GB with a good head: it takes some KB on the disk. */
SOUND_TEST(test_a_file_that_claims_to_be_huge_costs_little, "a 0:1") {
        const uint64_t huge = UINT64_C(200) << 30;
        rdmeta_image_fault_t fault;
        rdmeta_image_t *image;
        rdmeta_file_head_t head;
        rdmeta_reader_t *r;
        size_t before;

        memcpy(&head, w->bytes, sizeof(head));
        head.sections[0].offset = w->size;
        head.sections[0].length = huge;
        head.size               = w->size + huge;
        head.checksum           = rdmeta_file_head_checksum(&head);
        memcpy(w->damaged, &head, sizeof(head));
        iw_write(w->path, w->damaged, w->size);
        CHECK(!truncate(w->path, (off_t)head.size));
        before = test_memory(TEST_RESIDENT);
        image  = iw_open(w->path, 0, now);
        r      = rdmeta_image_reader(image, 0);
        CHECK(r && rdmeta_leader(r, "a", 1, 0, now.mono_us) ==
                           RDMETA_ERR_MALFORMED);
        CHECK(test_memory(TEST_RESIDENT) < before + ((size_t)64 << 20));
        rdmeta_reader_destroy(r);
        rdmeta_image_unref(image);
        CHECK(rdmeta_image_open(w->path, RDMETA_IMAGE_COPY, now, &image) ==
              RDMETA_ERR_IO);
        CHECK(errno == EFBIG);
        errno = 0;
        CHECK(rdmeta_image_file_fault(w->path, &fault) == RDMETA_ERR_IO);
        CHECK(errno == EFBIG); /* this call always copies */
}

/* ---- a small file with huge lists --------------------------------------- */

enum { ROWS = 100000, MEMBERS = 25000 };

/* Makes a file whose only topic, "a", has ROWS partitions that all name the
 * list at unit `list`. There are two: an empty one, and MEMBERS brokers at unit
 * 1. The block lies behind the sound file. */
static void long_lists(sound_t *s, uint16_t list) {
        const size_t at    = (s->size + 63) / 64 * 64;
        const size_t hot   = RDMETA_TOPIC_FIXED + 1 + ROWS;
        const size_t bytes = hot + ROWS + 2 * (size_t)ROWS +
                             2 * (2 + (size_t)MEMBERS);
        const size_t length = (64 + bytes + 63) / 64 * 64 + 64;
        const int16_t units[] = {0, MEMBERS};
        uint8_t *file         = calloc(1, at + length), *p;
        rdmeta_file_head_t head;
        rdmeta_topic_t *t;
        uint64_t *slot;
        size_t i;

        CHECK(file);
        memcpy(file, s->bytes, s->size);
        free(s->damaged);
        s->damaged = file;
        memcpy(&head, file, sizeof(head));
        head.sections[RDMETA_FILE_BLOCKS].offset = at;
        head.sections[RDMETA_FILE_BLOCKS].length = length;
        head.size       = at + length;
        head.partitions = ROWS;
        head.topics = head.blocks = 1;
        for (i = 0; i < head.sections[RDMETA_FILE_NAMES].length / 8; i++) {
                slot = slots(s, &head, RDMETA_FILE_NAMES) + i;
                *slot = *slot >> 16 == order(s, &head)[0]
                                ? (at / 64 + 1) << 16 | (*slot & 0xffff)
                                : 0;
        }
        memset(order(s, &head), 0, head.sections[RDMETA_FILE_ORDER].length);
        order(s, &head)[0]                      = (uint32_t)(at / 64 + 1);
        head.sections[RDMETA_FILE_ORDER].length = 4;
        memset(file + head.sections[RDMETA_FILE_IDS].offset, 0,
               head.sections[RDMETA_FILE_IDS].length);
        t           = (rdmeta_topic_t *)(void *)(file + at + 64);
        t->count    = ROWS;
        t->name_len = 1;
        t->name[0]  = 'a';
        rdmeta_cold(t)->size  = (uint32_t)(RDMETA_TOPIC_HEADER_SIZE + bytes);
        rdmeta_cold(t)->flags = 1 << RDMETA_TOPIC_LIST_SHIFT |
                                1 << RDMETA_TOPIC_REF_SHIFT;
        p = (uint8_t *)t + hot + ROWS;
        for (i = 0; i < ROWS; i++, p += 2)
                memcpy(p, &list, 2);
        memcpy(p, units, sizeof(units));
        memcpy(file, &head, sizeof(head));
        resign(file, (size_t)head.size);
        iw_write(s->path, file, (size_t)head.size);
}

/* The file has 450 KB; a reader would return 2.5 thousand million brokers. */
SOUND_TEST(test_a_long_list_that_all_rows_share_is_malformed, few) {
        rdmeta_image_t *image;
        int changes = 0;

        long_lists(w, 0);
        image = iw_open(w->path, 0, now);
        CHECK(!rdmeta_image_verify(image));
        CHECK(!rdmeta_image_diff(w->image, image, see_change, &changes) &&
              changes);
        rdmeta_image_unref(image);
        long_lists(w, 1);
        image = iw_open(w->path, 0, now);
        CHECK(rdmeta_image_verify(image) == RDMETA_ERR_MALFORMED);
        CHECK(rdmeta_image_diff(w->image, image, see_change, &changes) ==
              RDMETA_ERR_MALFORMED);
        load(image);
        rdmeta_image_unref(image);
}

/* The file is repaired while it is mapped, but the reader does not check the
 * bad block again: each lookup would read all of it. */
SOUND_TEST(test_a_bad_block_is_checked_once, few) {
        rdmeta_image_t *image, *fresh;
        rdmeta_seen_t seen;

        long_lists(w, 1);
        image = iw_open(w->path, 0, now);
        CHECK(image->ops->find(image, "a", 1, &seen) == RDMETA_ERR_MALFORMED);
        long_lists(w, 0);
        CHECK(image->ops->find(image, "a", 1, &seen) == RDMETA_ERR_MALFORMED);
        CHECK(image->ops->at(image, 0, &seen) == RDMETA_ERR_MALFORMED);
        fresh = iw_open(w->path, 0, now);
        CHECK(!fresh->ops->find(fresh, "a", 1, &seen));
        rdmeta_image_unref(fresh);
        rdmeta_image_unref(image);
}

SOUND_TEST(test_impossible_heads_and_tables_are_refused, few) {
        const forge_t forges[] = {
                other_magic,   longer,          no_age,       more_blocks,
                fewer_blocks,  more_topics,     fewer_partitions,
                endless_probe, shorter_probe,   section_beyond,
                section_wraps, section_crooked, section_in_head,
                section_other, no_blocks,       odd_table,    no_table,
                no_brokers,    some_brokers,    far_line,     head_line,
                last_line,     swapped,         twice,        full_names,
                no_names,      no_ids,          stray_slot,   stray_id};
        size_t i;

        CHECK(forged(w, nothing) == RDMETA_OK);
        CHECK(forged(w, other_order) == RDMETA_ERR_UNSUPPORTED);
        CHECK(forged(w, other_format) == RDMETA_ERR_UNSUPPORTED);
        for (i = 0; i < sizeof(forges) / sizeof(forges[0]); i++)
                if (forged(w, forges[i]) != RDMETA_ERR_MALFORMED) {
                        fprintf(stderr, "forgery %zu was accepted\n", i);
                        CHECK(!"refused");
                }
}

SOUND_TEST(test_a_lookup_ends_in_a_table_without_a_free_slot, few) {
        rdmeta_image_t *image;
        rdmeta_reader_t *r;
        int32_t got;

        CHECK(forged(w, full_names) == RDMETA_ERR_MALFORMED);
        image = iw_open(w->path, 0, now);
        r     = rdmeta_image_reader(image, 0);
        CHECK(r);
        got = rdmeta_leader(r, "a", 1, 0, now.mono_us);
        CHECK(got == RDMETA_NOT_CACHED || got == RDMETA_ERR_MALFORMED);
        got = rdmeta_leader(r, "a.name.of.twenty.bytes", 22, 0, now.mono_us);
        CHECK(got == RDMETA_NOT_CACHED || got == RDMETA_ERR_MALFORMED);
        rdmeta_reader_destroy(r);
        rdmeta_image_unref(image);
}

TEST_MAIN()
