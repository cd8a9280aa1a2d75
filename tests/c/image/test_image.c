/*
 * Images of a cache. The test compares an image with the state in which it was
 * taken, after many more writes. It does so at several times and through every
 * call of a reader (seen_facts.h).
 */
#include "support/image_fixture.h"
#include "support/seen_facts.h"

enum { ALIVE = 10, STEPS = 1000, SEEDS = 3 };

/* ---- an image does not change -------------------------------------------- */

typedef struct taken {
        rdmeta_image_t *image;
        rdmeta_reader_t *reader, *stale;
        seen_facts_t facts; /* of the cache when the image was taken */
} taken_t;

typedef struct history {
        race_t fixture;
        race_writer_t writer;
        rdmeta_reader_t *reader, *stale;
        seen_ids_t ids;
        taken_t taken[ALIVE];
        uint64_t images, compared;
} history_t;

static void take(history_t *h, taken_t *t) {
        race_t *w               = &h->fixture;
        const rdmeta_time_t now = race_now(w);
        rdmeta_image_info_t info;
        rdmeta_stats_t stats;

        seen_note_ids(w, h->reader, &h->ids);
        seen_read(w, h->reader, h->stale, &h->ids, h->ids.n, now.mono_us,
                  &t->facts);
        rdmeta_cache_stats(w->cache, &stats);
        t->facts.n_topics     = stats.topics;
        t->facts.n_partitions = stats.partitions;
        t->image              = rdmeta_cache_image(w->cache, now);
        CHECK(t->image);
        rdmeta_image_info(t->image, &info);
        CHECK(info.version == stats.version && !info.mapped);
        CHECK(info.taken_mono_us == now.mono_us);
        CHECK(info.taken_wall_us == now.wall_us);
        CHECK(info.shared_deadline_us == stats.shared_deadline_us);
        CHECK(info.max_age_us == 2000000 && info.bytes > 0);
        t->reader = rdmeta_image_reader(t->image, 0);
        t->stale  = rdmeta_image_reader(t->image, RDMETA_ALLOW_STALE);
        CHECK(t->reader && t->stale);
        h->images++;
}

static void compare(history_t *h, const taken_t *t) {
        rdmeta_image_info_t info;
        const rdmeta_topic_t *topic;
        seen_facts_t now;
        size_t i;

        seen_read(&h->fixture, t->reader, t->stale, &h->ids, t->facts.n_ids,
                  t->facts.mono_us, &now);
        rdmeta_image_info(t->image, &info);
        now.n_topics     = info.topics;
        now.n_partitions = info.partitions;
        seen_check(&h->fixture, &now, &t->facts);
        for (i = t->facts.n_ids; i < h->ids.n; i++)
                CHECK(rdmeta_topic_find_id(t->reader, h->ids.ids[i], 0,
                                           &topic) == RDMETA_NOT_CACHED);
        h->compared++;
}

/* Releases an image and its readers, in one of two orders: readers have
 * references of their own. */
static void taken_end(history_t *h, taken_t *t) {
        if (h->images % 2) {
                rdmeta_image_unref(t->image);
                rdmeta_reader_destroy(t->reader);
                rdmeta_reader_destroy(t->stale);
        } else {
                rdmeta_reader_destroy(t->stale);
                rdmeta_reader_destroy(t->reader);
                rdmeta_image_unref(rdmeta_image_ref(t->image));
                rdmeta_image_unref(t->image);
        }
        memset(t, 0, sizeof(*t));
}

static void history_check(history_t *h) {
        const char *wrong = rdmeta_cache_check(h->fixture.cache);
        rdmeta_stats_t stats;
        int32_t alive = 0;
        int k;

        if (wrong)
                fprintf(stderr, "cache: %s\n", wrong);
        CHECK(!wrong);
        for (k = 0; k < ALIVE; k++)
                alive += h->taken[k].image != NULL;
        rdmeta_cache_stats(h->fixture.cache, &stats);
        CHECK(stats.images == alive);
        CHECK(alive ? stats.bytes_images > 0 : stats.bytes_images == 0);
        /* All other memory is that of readers, which have the same size. */
        CHECK((h->fixture.heap.bytes - stats.bytes) %
                      (size_t)(2 + 2 * alive) ==
              0);
}

static void history_end(history_t *h) {
        int k;

        for (k = 0; k < ALIVE; k++)
                if (h->taken[k].image)
                        taken_end(h, &h->taken[k]);
        history_check(h);
        CHECK(h->compared > 100 && h->images > 2 * ALIVE);
        race_writer_end(&h->writer);
        rdmeta_reader_destroy(h->reader);
        rdmeta_reader_destroy(h->stale);
        race_destroy(&h->fixture);
        free(h);
}

static history_t *history_new(uint64_t seed) {
        history_t *h = calloc(1, sizeof(*h));

        CHECK(h);
        race_init(&h->fixture, test_seed + seed, 0);
        h->writer.fixture = &h->fixture;
        h->writer.rng     = test_rng(seed);
        h->reader         = rdmeta_reader_new(h->fixture.cache, 0);
        h->stale = rdmeta_reader_new(h->fixture.cache, RDMETA_ALLOW_STALE);
        CHECK(h->reader && h->stale);
        return h;
}

/* Sets the limit of the changelog: a small one, none, or one that is never
 * reached. So blocks go from the table to images, or through the changelog. */
static void history_limit(history_t *h, uint64_t seed) {
        static const size_t limits[] = {32 << 10, 0, 4 << 20};

        h->fixture.cache->changelog.limit = limits[seed % 3];
}

TEST(test_an_image_keeps_the_state_in_which_it_was_taken) {
        uint64_t seed;
        int step;

        for (seed = 1; seed <= SEEDS; seed++) {
                history_t *h = history_new(seed);
                test_rng_t *rng = &h->writer.rng;

                history_limit(h, seed);
                for (step = 0; step < STEPS; step++) {
                        taken_t *t = &h->taken[test_below(rng, ALIVE)];

                        race_write_step(&h->writer);
                        history_check(h);
                        if (t->image && test_below(rng, 3) == 0)
                                compare(h, t);
                        if (test_below(rng, 10))
                                continue;
                        if (!t->image)
                                take(h, t);
                        else if (test_below(rng, 2))
                                taken_end(h, t);
                        history_check(h);
                }
                history_end(h);
        }
}

/* No write happens between the images, so they share all pages. Each is still
 * released by itself. */
TEST(test_images_of_the_same_version_are_equal) {
        history_t *h = history_new(77);
        int k, step;

        for (k = 0; k < 100; k++)
                race_write_step(&h->writer);
        for (k = 0; k < ALIVE; k++)
                take(h, &h->taken[k]);
        for (step = 0; step < 30; step++) {
                for (k = 0; k < 5; k++)
                        race_write_step(&h->writer);
                for (k = 0; k < ALIVE; k++) {
                        if (h->taken[k].image)
                                compare(h, &h->taken[k]);
                        history_check(h);
                }
                k = (int)test_below(&h->writer.rng, ALIVE);
                if (h->taken[k].image)
                        taken_end(h, &h->taken[k]);
                else
                        take(h, &h->taken[k]);
        }
        history_end(h);
}

/* ---- diffs --------------------------------------------------------------- */

typedef struct records {
        uint64_t sum; /* of all records' hashes: does not depend on the order */
        size_t n;
        char last[RACE_NAME];
        int ordered; /* 1: the names ascend */
} records_t;

static uint64_t ids_sum(rdmeta_ids_t l) {
        uint64_t sum = l.ids != NULL;
        uint32_t i;

        for (i = 0; i < l.count; i++)
                sum = sum * 31 + (uint32_t)l.ids[i];
        return sum;
}

static int32_t add_record(void *opaque, const rdmeta_change_t *c) {
        const uint64_t facts[] = {
                (uint64_t)c->kind, (uint32_t)c->partition,
                (uint32_t)c->broker, (uint32_t)c->old_leader,
                (uint32_t)c->new_leader, (uint32_t)c->old_leader_epoch,
                (uint32_t)c->new_leader_epoch, ids_sum(c->old_isr),
                ids_sum(c->new_isr), ids_sum(c->old_replicas),
                ids_sum(c->new_replicas), ids_sum(c->old_offline),
                ids_sum(c->new_offline), c->detail.len, c->version};
        char name[RACE_NAME] = {0};
        records_t *t = opaque;
        uint64_t h = 7;
        size_t i;

        memcpy(name, c->topic.data ? c->topic.data : "", c->topic.len);
        for (i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
                h = (h ^ facts[i]) * UINT64_C(0x9e3779b97f4a7c15);
        for (i = 0; i < c->topic.len; i++)
                h = (h ^ (uint8_t)name[i]) * UINT64_C(0x9e3779b97f4a7c15);
        t->sum += h ^ h >> 31;
        t->n++;
        t->ordered &= strcmp(t->last, name) <= 0;
        memcpy(t->last, name, sizeof(name));
        return 0;
}

/* From one version to the next the feed has the same records, in another
 * order. */
TEST(test_a_diff_has_the_same_records_as_the_feed) {
        history_t *h = history_new(5);
        rdmeta_cache_t *c = h->fixture.cache;
        int step, compared = 0;

        c->changelog.limit = 8 << 20;
        for (step = 0; step < 600; step++) {
                rdmeta_image_t *before = rdmeta_cache_image(
                        c, race_now(&h->fixture));
                const uint64_t since = rdmeta_cache_version(c);
                records_t fed = {.ordered = 1}, diffed = {.ordered = 1};
                rdmeta_image_t *after;
                uint64_t until;
                int32_t resync;

                race_write_step(&h->writer);
                after = rdmeta_cache_image(c, race_now(&h->fixture));
                CHECK(before && after);
                CHECK(!rdmeta_image_diff(before, after, add_record, &diffed));
                CHECK(!rdmeta_cache_changes(c, since, add_record, &fed, &until,
                                            &resync));
                CHECK(diffed.ordered);
                if (!resync && until <= since + 1) {
                        CHECK(fed.n == diffed.n && fed.sum == diffed.sum);
                        compared += fed.n > 0;
                }
                diffed = (records_t){.ordered = 1};
                CHECK(!rdmeta_image_diff(after, after, add_record, &diffed));
                CHECK(diffed.n == 0);
                rdmeta_image_unref(before);
                rdmeta_image_unref(after);
        }
        CHECK(compared > 200);
        h->compared = h->images = 1000;
        history_end(h);
}

static void check_ascending(rdmeta_ids_t list) {
        uint32_t i;

        for (i = 0; i < list.count; i++)
                CHECK(list.ids[i] == (int32_t)i + 1);
}

static int32_t add_length(void *opaque, const rdmeta_change_t *c) {
        check_ascending(c->old_isr);
        check_ascending(c->new_isr);
        check_ascending(c->old_replicas);
        check_ascending(c->new_replicas);
        *(size_t *)opaque += c->new_isr.count;
        return 0;
}

/* Room for a short list does not do for a longer one, in a later topic. */
CACHE_TEST(test_a_diff_has_lists_of_any_length) {
        rdmeta_image_t *before, *after;
        size_t ids = 0;

        CHECK(!cw_say(w, "a#a 0:1@1/r1,2/i1,2; b#b 0:1@1/r1,2/i1"));
        before = iw_image(w);
        CHECK(!cw_say(w, "a#a 0:1@1/r1,2/i1; b#b 0:1@1/r1,2,3,4,5,6,7,8,9,10,"
                          "11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,"
                          "28,29,30/i1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,"
                          "17,18,19,20,21,22,23,24,25,26,27,28,29,30"));
        after = iw_image(w);
        CHECK(!rdmeta_image_diff(before, after, add_length, &ids));
        CHECK(ids == 1 + 30);
        rdmeta_image_unref(before);
        rdmeta_image_unref(after);
}

/* Checks rdmeta_image_changed() of an image and of its file: it agrees with a
 * wait for the topic. Returns how many topics have changed. */
static uint32_t check_changed(history_t *h, rdmeta_image_t *image) {
        const char *path      = iw_path("changed");
        rdmeta_cache_t *cache = h->fixture.cache;
        const uint64_t now    = rdmeta_cache_version(cache);
        const uint64_t since  = now - test_below(&h->writer.rng, 20) % now;
        uint32_t i, n = 0;
        rdmeta_image_t *file;

        CHECK(!rdmeta_image_save(image, path, 0));
        file = iw_open(path, 0, race_now(&h->fixture));
        for (i = 0; i < RACE_TOPICS; i++) {
                const rdmeta_str_t name = race_name(&h->fixture, i);
                const int changed = rdmeta_cache_wait(cache, since, &name, 1,
                                                      0) != 0;

                CHECK(changed == rdmeta_image_changed(image, name.data,
                                                      name.len, since));
                CHECK(changed == rdmeta_image_changed(file, name.data,
                                                      name.len, since));
                n += (uint32_t)changed;
        }
        CHECK(!rdmeta_image_verify(file));
        rdmeta_image_unref(file);
        return n;
}

TEST(test_a_topic_has_changed_in_an_image_if_a_wait_returns) {
        history_t *h = history_new(78);
        uint32_t changed = 0;
        int step;

        for (step = 0; step < 300; step++) {
                rdmeta_image_t *image;

                race_write_step(&h->writer);
                if (step % 5 || !rdmeta_cache_version(h->fixture.cache))
                        continue;
                image = rdmeta_cache_image(h->fixture.cache,
                                           race_now(&h->fixture));
                changed += check_changed(h, image);
                CHECK(!rdmeta_image_changed(image, "", 0, UINT64_MAX));
                rdmeta_image_unref(image);
        }
        CHECK(changed > 100 && changed < 60 * RACE_TOPICS);
        h->compared = h->images = 1000;
        history_end(h);
}

TEST_MAIN()
