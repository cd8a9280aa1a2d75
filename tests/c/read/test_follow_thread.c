/*
 * follow: a file that is replaced as fast as possible, under readers.
 *
 * A reader can check each generation g by its contents. Every leader is a sum
 * over the topic's name and g, and g itself is one topic's leader. All that a
 * reader sees between enter and leave must be of one g, and g never decreases.
 */
#include "support/image_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

enum { READERS = 4, TOPICS = 24, PARTITIONS = 5, GENERATIONS = 600 };
/* Fewer than the 1024 texts that a cache keeps. */
enum { REASONS = 700 };

static _Atomic int over;
static _Atomic int64_t clock_us; /* the readers' clock; the feeder moves it */
static _Atomic int published;

static int32_t leader_of(int g, int topic, int partition) {
        return (g * 7919 + topic * 131 + partition * 17) % 100000;
}

static int name_of(char *out, int topic) {
        return sprintf(out, "a.topic.of.some.length.%d", topic);
}

/* ---- the feeder ---------------------------------------------------------- */

static void answer(cw_t *w, int g) {
        static gen_partition_t rows[TOPICS + 1][PARTITIONS];
        static char names[TOPICS + 1][40];
        gen_topic_t topics[TOPICS + 1];
        rdmeta_broker_t broker = {1, 9092, GEN_STR("h"), {NULL, 0}};
        gen_cluster_t cluster  = {.brokers = &broker, .broker_count = 1,
                                  .topics = topics, .topic_count = TOPICS + 1};
        rdmeta_request_t asked = {.asked = RDMETA_ASKED_ALL, .broker = 1};
        gen_bytes_t body       = {0};
        char why[16];
        int i, k;

        snprintf(why, sizeof(why), "%d", g % REASONS);
        asked.reason = test_str(why);
        memset(topics, 0, sizeof(topics));
        for (i = 0; i <= TOPICS; i++) {
                topics[i].name.data = names[i];
                topics[i].name.len  = (size_t)name_of(names[i], i);
                topics[i].partitions = rows[i];
                topics[i].partition_count = PARTITIONS;
                for (k = 0; k < PARTITIONS; k++) {
                        rows[i][k].id     = k;
                        rows[i][k].epoch  = g;
                        rows[i][k].leader = i ? leader_of(g, i, k) : g;
                }
        }
        gen_response(&cluster, 12, &body);
        CHECK(!rdmeta_cache_apply(w->cache, body.data, body.len, 12, &asked,
                                  w->now, NULL));
        gen_bytes_free(&body);
}

static void publish(cw_t *w, const char *path, int g) {
        answer(w, g);
        iw_save(w, path);
        atomic_store(&published, g);
}

/* ---- readers ------------------------------------------------------------- */

typedef struct job {
        rdmeta_attach_t *a;
        int n;
        _Atomic int changes; /* how many generations it saw */
} job_t;

static int generation(rdmeta_reader_t *r, int64_t t) {
        char name[40];

        return rdmeta_leader(r, name, (size_t)name_of(name, 0), 0, t);
}

static void check_inside(rdmeta_reader_t *r, int64_t t, test_rng_t *rng,
                         int last) {
        const rdmeta_topic_t *topic;
        rdmeta_topic_info_t info;
        rdmeta_partition_t p;
        char name[40], why[16];
        int g, i, k, n;

        memset(&p, 0, sizeof(p));
        rdmeta_reader_enter(r);
        g = generation(r, t);
        CHECK(g >= last);
        snprintf(why, sizeof(why), "%d", g % REASONS);
        for (n = 0; n < 20; n++) {
                const int64_t later = t + n * 10000;

                i = 1 + (int)test_below(rng, TOPICS);
                k = (int)test_below(rng, PARTITIONS);
                name_of(name, i);
                CHECK(rdmeta_leader(r, name, strlen(name), k, later) ==
                      leader_of(g, i, k));
                CHECK(!rdmeta_topic_find(r, name, strlen(name), later, &topic));
                CHECK(!rdmeta_topic_partition_at(r, topic, (uint32_t)k, &p));
                CHECK(p.leader == leader_of(g, i, k) && p.leader_epoch == g);
                rdmeta_topic_info(r, topic, later, &info);
                CHECK(info.reason.len == strlen(why) &&
                      !memcmp(info.reason.data, why, strlen(why)));
        }
        CHECK(generation(r, t + 1000000) == g);
        rdmeta_reader_leave(r);
}

static void *read_on(void *opaque) {
        job_t *job         = opaque;
        rdmeta_reader_t *r = rdmeta_attach_reader(job->a, 0);
        test_rng_t rng     = test_rng((uint64_t)job->n);
        int last           = 0, g;
        int64_t t;

        CHECK(r);
        while (!atomic_load(&over)) {
                t = atomic_load(&clock_us);
                g = generation(r, t);
                CHECK(g >= last);
                atomic_fetch_add(&job->changes, g != last);
                last = g;
                check_inside(r, t, &rng, last);
                if (test_below(&rng, 64) == 0) {
                        rdmeta_reader_destroy(r);
                        r = rdmeta_attach_reader(job->a, 0);
                        CHECK(r);
                }
                if (test_below(&rng, 16) == 0) {
                        const rdmeta_time_t now = {t, t};
                        rdmeta_image_t *image = rdmeta_attach_image(job->a,
                                                                    now);
                        CHECK(!rdmeta_image_verify(image));
                        rdmeta_image_unref(image);
                }
        }
        /* At the end it sees the last generation that was published. */
        t = atomic_load(&clock_us) + 1000000;
        CHECK(generation(r, t) == atomic_load(&published));
        rdmeta_reader_destroy(r);
        return NULL;
}

/* Returns 1 if every reader has seen two generations. */
static int all_saw_changes(job_t *jobs) {
        int i;

        for (i = 0; i < READERS; i++)
                if (atomic_load(&jobs[i].changes) < 2)
                        return 0;
        return 1;
}

static void run(int32_t flags) {
        const char *path = iw_path("fast");
        pthread_t threads[READERS];
        job_t jobs[READERS];
        rdmeta_attach_t *a;
        cw_t w;
        int i, g;

        cw_init(&w, NULL);
        atomic_store(&over, 0);
        atomic_store(&clock_us, w.now.mono_us);
        publish(&w, path, 1);
        CHECK(!rdmeta_attach_new(path, flags, 1, w.now, &a));
        for (i = 0; i < READERS; i++) {
                jobs[i].a = a;
                jobs[i].n = i;
                atomic_init(&jobs[i].changes, 0);
                CHECK(!pthread_create(&threads[i], NULL, read_on, &jobs[i]));
        }
        for (g = 2; g < GENERATIONS || !all_saw_changes(jobs); g++) {
                publish(&w, path, g);
                atomic_fetch_add(&clock_us, 2);
        }
        atomic_store(&over, 1);
        for (i = 0; i < READERS; i++)
                CHECK(!pthread_join(threads[i], NULL));
        rdmeta_attach_destroy(a);
        cw_destroy(&w);
}

TEST(test_readers_see_whole_generations_of_mapped_files) {
        run(0);
}

TEST(test_readers_see_whole_generations_of_copied_files) {
        run(RDMETA_IMAGE_COPY);
}

/* Reads one image. The first thread that looks at a block checks it. */
static void *read_one(void *opaque) {
        const rdmeta_time_t now = {1000 * CW_S, 5000 * CW_S};
        rdmeta_image_t *image   = opaque;
        int i;

        for (i = 0; i < 5; i++) {
                free(iw_text(image, now.mono_us));
                CHECK(!rdmeta_image_verify(image));
        }
        return NULL;
}

CACHE_TEST(test_many_threads_may_read_one_image) {
        const char *path = iw_path("one");
        pthread_t threads[READERS];
        rdmeta_image_t *image, *file;
        int i;

        iw_fill(w);
        image = iw_image(w);
        CHECK(!rdmeta_image_save(image, path, 0));
        file = iw_open(path, 0, w->now);
        for (i = 0; i < READERS; i++)
                CHECK(!pthread_create(&threads[i], NULL, read_one, file));
        for (i = 0; i < READERS; i++)
                CHECK(!pthread_join(threads[i], NULL));
        rdmeta_image_unref(file);
        rdmeta_image_unref(image);
}

TEST_MAIN()
