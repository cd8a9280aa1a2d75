/*
 * Opens files as images.
 *
 *     byte 0     bit 0: copy the file into memory instead of mapping it
 *                bit 1: keep the head; otherwise correct its magic, size and
 *                checksums, so that open accepts more mutations
 *     the rest   the file
 *
 * The target makes every call of a reader, and compares the image with an empty
 * one. It verifies the image and loads it into a cache, which then applies an
 * answer. If verify finds no fault, every call must succeed. Then a file that
 * is written from the image must have the same contents. image_seeds.c makes
 * the seeds.
 */
#include "support/cache_check.h"

#include "fuzz_see.h"
#include "image/file.h"
#include "image/file_open.h"
#include "image/file_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW = 1000000000, ROWS = 64 };

static const rdmeta_time_t now = {NOW, NOW};

/* ---- files ------------------------------------------------------------- */

typedef struct place {
        int fd;
        char path[64];
} place_t;

static place_t place_new(void) {
        place_t p;

        p.fd = memfd_create("image", MFD_CLOEXEC);
        REQUIRE(p.fd >= 0);
        snprintf(p.path, sizeof(p.path), "/proc/self/fd/%d", p.fd);
        return p;
}

/* Corrects the magic, the size and the checksums in the head. */
static void resign(uint8_t *bytes, size_t size) {
        rdmeta_file_head_t head;
        int i;

        if (size < sizeof(head))
                return;
        memcpy(&head, bytes, sizeof(head));
        memcpy(head.magic, RDMETA_FILE_MAGIC, sizeof(head.magic));
        head.size = size;
        for (i = 0; i < RDMETA_FILE_SECTIONS; i++) {
                rdmeta_file_section_t *s = &head.sections[i];

                if (s->offset <= size && s->length <= size - s->offset)
                        s->checksum = rdmeta_checksum(bytes + s->offset,
                                                      (size_t)s->length);
        }
        head.checksum = rdmeta_file_head_checksum(&head);
        memcpy(bytes, &head, sizeof(head));
}

/* ---- reading everything ------------------------------------------------ */

typedef struct look {
        rdmeta_reader_t *r;
        int malformed; /* 1: a call returned MALFORMED */
} look_t;

static void see_err(look_t *l, int32_t err) {
        l->malformed |= err == RDMETA_ERR_MALFORMED;
        REQUIRE(err >= -1 || err == RDMETA_ERR_MALFORMED ||
                (err <= RDMETA_NOT_CACHED && err >= RDMETA_INVALID));
}

static void see_partition(look_t *l, const rdmeta_topic_t *t,
                          const rdmeta_topic_info_t *info, uint32_t i) {
        rdmeta_partition_t p;
        int32_t ids[3][8];

        memset(&p, 0, sizeof(p));
        p.replicas         = (rdmeta_ids_out_t){ids[0], 8, 0};
        p.isr              = (rdmeta_ids_out_t){ids[1], 8, 0};
        p.offline_replicas = (rdmeta_ids_out_t){ids[2], 8, 0};
        REQUIRE(!rdmeta_topic_partition_at(l->r, t, i, &p));
        REQUIRE(p.partition >= 0 && p.leader >= -1 && p.last_leader >= -1);
        see_err(l, rdmeta_leader(l->r, info->name.data, info->name.len,
                                 p.partition, NOW));
        see_err(l, rdmeta_partition(l->r, info->name.data, info->name.len,
                                    p.partition, NOW, &p));
}

static int32_t see_topic(void *opaque, const rdmeta_topic_t *t) {
        look_t *l = (look_t *)opaque;
        const rdmeta_topic_t *other;
        rdmeta_topic_info_t info;
        int32_t leaders[2];
        rdmeta_str_t names[2];
        const int32_t partitions[2] = {0, INT32_MAX};
        uint32_t i;

        rdmeta_topic_info(l->r, t, NOW, &info);
        see(info.name.data, info.name.len);
        see(info.reason.data, info.reason.len);
        REQUIRE(info.reason.len <= RDMETA_REASON_MAX);
        see_err(l, info.state);
        see_err(l, rdmeta_topic_find(l->r, info.name.data, info.name.len, NOW,
                                     &other));
        see_err(l, rdmeta_topic_find_id(l->r, info.topic_id, NOW, &other));
        names[0] = names[1] = info.name;
        rdmeta_leaders(l->r, names, partitions, 2, NOW, leaders);
        see_err(l, leaders[0]);
        see_err(l, leaders[1]);
        for (i = 0; i < info.partitions && i < ROWS; i++)
                see_partition(l, t, &info, i);
        return 0;
}

/* Returns 1 if a call returned MALFORMED. */
static int see_reader(rdmeta_reader_t *r) {
        static const char *const names[] = {"a", "orders", "no.such.topic.here",
                                            "a.name.of.twenty.bytes"};
        rdmeta_broker_health_t counts[4];
        rdmeta_health_t health = {.brokers = counts, .capacity = 4};
        look_t l               = {r, 0};
        rdmeta_broker_t broker;
        size_t i;

        REQUIRE(r);
        rdmeta_reader_enter(r);
        for (i = 0; i < rdmeta_brokers_count(rdmeta_brokers(r)); i++) {
                REQUIRE(!rdmeta_brokers_at(rdmeta_brokers(r), (uint32_t)i,
                                           &broker));
                see(broker.host.data, broker.host.len);
        }
        /* Partition 0 first: the fast path reads unchecked blocks. */
        for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                see_err(&l, rdmeta_leader(r, names[i], strlen(names[i]), 0,
                                          NOW));
                see_err(&l, rdmeta_leader(r, names[i], strlen(names[i]), 1,
                                          NOW));
                see_err(&l, rdmeta_leader(r, names[i], strlen(names[i]), 1,
                                          INT64_MAX));
                see_err(&l, rdmeta_leader(r, names[i], strlen(names[i]), -1,
                                          INT64_MIN));
        }
        see_err(&l, rdmeta_reader_walk(r, "", 0, 7, NOW, see_topic, &l));
        see_err(&l, rdmeta_reader_walk(r, "a", 1, 7, NOW, see_topic, &l));
        see_err(&l, rdmeta_reader_health(r, 3, NOW, &health));
        rdmeta_reader_leave(r);
        rdmeta_reader_destroy(r);
        return l.malformed;
}

static int see_image(rdmeta_image_t *image) {
        return see_reader(rdmeta_image_reader(image, 0)) |
               see_reader(rdmeta_image_reader(image, RDMETA_ALLOW_STALE));
}

/* ---- loading, diffs, saving -------------------------------------------- */

static rdmeta_cache_t *cache_new(void) {
        rdmeta_cache_t *c;
        rdmeta_conf_t conf;

        rdmeta_conf_init(&conf);
        conf.seed = 1; /* an input has the same effect each time */
        c         = rdmeta_cache_new(&conf);
        REQUIRE(c);
        return c;
}

/* Applies an all-topics answer (v12) with one broker and no topic, so that all
 * topics are absent. */
static void answer(rdmeta_cache_t *c) {
        static const uint8_t body[] = {0, 0, 0, 0, 2,   0, 0,    0,    1, 2,
                                       'h', 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1,
                                       1,   0};
        const rdmeta_request_t all = {.asked = RDMETA_ASKED_ALL, .broker = 1};

        REQUIRE(!rdmeta_cache_apply(c, body, sizeof(body), 12, &all, now,
                                    NULL));
}

static void load(rdmeta_image_t *image, int malformed) {
        const rdmeta_time_t later = {2 * (int64_t)NOW, 2 * (int64_t)NOW};
        rdmeta_cache_t *c         = cache_new();
        const rdmeta_err_t err    = rdmeta_cache_load(c, image, now);
        const char *wrong         = rdmeta_cache_check(c);

        REQUIRE(!wrong);
        REQUIRE(!err || err == RDMETA_ERR_MALFORMED);
        REQUIRE(!err || rdmeta_cache_version(c) == 0);
        REQUIRE(malformed || !err);
        REQUIRE(!see_reader(rdmeta_reader_new(c, RDMETA_ALLOW_STALE)));
        answer(c);
        rdmeta_cache_sweep(c, later);
        wrong = rdmeta_cache_check(c);
        REQUIRE(!wrong);
        REQUIRE(!see_reader(rdmeta_reader_new(c, 0)));
        rdmeta_cache_unref(c);
}

/* Writes the image again: the new file must have the same contents. */
static void same_again(rdmeta_image_t *image) {
        place_t p             = place_new();
        rdmeta_image_t *again = NULL;
        int changes           = 0;

        REQUIRE(!rdmeta_file_write(image, p.fd));
        REQUIRE(!rdmeta_image_open(p.path, 0, now, &again));
        REQUIRE(!rdmeta_image_verify(again) && !see_image(again));
        REQUIRE(!rdmeta_image_diff(image, again, see_change, &changes));
        rdmeta_image_unref(again);
        close(p.fd);
}

static void see_file(const char *path, int32_t flags) {
        rdmeta_image_t *image = NULL, *empty;
        rdmeta_err_t err      = rdmeta_image_open(path, flags, now, &image);
        rdmeta_cache_t *c;
        int malformed, good;

        if (err) {
                REQUIRE(!image && (err == RDMETA_ERR_MALFORMED ||
                                   err == RDMETA_ERR_UNSUPPORTED));
                return;
        }
        malformed = see_image(image);
        c         = cache_new();
        empty     = rdmeta_cache_image(c, now);
        REQUIRE(empty);
        err = rdmeta_image_diff(empty, image, see_change, NULL);
        REQUIRE(!err || (malformed && err == RDMETA_ERR_MALFORMED));
        err = rdmeta_image_diff(image, empty, see_change, NULL);
        REQUIRE(!err || (malformed && err == RDMETA_ERR_MALFORMED));
        rdmeta_image_unref(empty);
        rdmeta_cache_unref(c);
        good = !rdmeta_image_verify(image);
        REQUIRE(!good || !malformed);
        load(image, malformed);
        if (good)
                same_again(image);
        rdmeta_image_unref(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        uint8_t *copy;
        place_t p;

        if (size < 1)
                return 0;
        copy = malloc(size);
        REQUIRE(copy);
        memcpy(copy, data + 1, size - 1);
        if (!(data[0] & 2))
                resign(copy, size - 1);
        p = place_new();
        REQUIRE(write(p.fd, copy, size - 1) == (ssize_t)(size - 1));
        see_file(p.path, data[0] & 1 ? RDMETA_IMAGE_COPY : 0);
        close(p.fd);
        free(copy);
        return 0;
}
