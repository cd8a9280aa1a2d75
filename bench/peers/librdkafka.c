/*
 * librdkafka speed|memory DIR ROUNDS SECONDS BOOTSTRAP: measures librdkafka's
 * own metadata cache from inside, with the static library.
 *
 * That cache has no public calls. But a static archive holds the internal
 * functions, which are declared below as every version from 1.6 on has them.
 * This file knows none of librdkafka's structs. It stands between librdkafka's
 * own files instead (ld --wrap), at the cost of one more call there.
 *
 *     lookups    rd_kafka_metadata_cache_topic_partition_get(), between rdlock
 *                and rdunlock of its read lock, which its callers must take.
 *                It is the lock that rd_kafka_dump() takes first
 *     cold       rd_kafka_parse_Metadata(), bytes to cache, in a new client
 *                that knows the brokers from an answer about one topic. A
 *                server of canned frames feeds it (server.py). Only the
 *                thread's time in that function counts, not network and queue
 *     insert     the part of it in rd_kafka_metadata_cache_update()
 *     same       the answer of cold again, in the same client
 *     memory     the growth of RSS, after malloc_trim()
 *
 * It asks for the newest Metadata version that it knows: 4 in 2.0.
 */
#include "workload.h"

#include <librdkafka/rdkafka.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

/* Internal: called with the read lock. `valid` excludes names in flight.
 * Returns 1 if found. */
int rd_kafka_metadata_cache_topic_partition_get(
        rd_kafka_t *rk, const rd_kafka_metadata_topic_t **topic_out,
        const rd_kafka_metadata_partition_t **partition_out, const char *topic,
        int32_t partition, int valid);

/* Internal: only the number of arguments matters here. */
int __real_rd_kafka_parse_Metadata(void *, void *, void *, void *);
void __real_rd_kafka_metadata_cache_update(void *, const void *, int);
int __real_rwlock_rdlock(void *lock);
int rwlock_rdunlock(void *lock);
int __wrap_rd_kafka_parse_Metadata(void *, void *, void *, void *);
void __wrap_rd_kafka_metadata_cache_update(void *, const void *, int);
int __wrap_rwlock_rdlock(void *lock);

/* The times of the last answer, written before rd_kafka_metadata() returns. */
static double parse_ns, update_ns;
static _Thread_local void **first_lock;

int __wrap_rd_kafka_parse_Metadata(void *rkb, void *request, void *response,
                                   void *out) {
        double begin = bench_now_ns();
        int err = __real_rd_kafka_parse_Metadata(rkb, request, response, out);

        parse_ns = bench_now_ns() - begin;
        return err;
}

void __wrap_rd_kafka_metadata_cache_update(void *rk, const void *metadata,
                                           int all) {
        double begin = bench_now_ns();

        __real_rd_kafka_metadata_cache_update(rk, metadata, all);
        update_ns = bench_now_ns() - begin;
}

int __wrap_rwlock_rdlock(void *lock) {
        if (first_lock && !*first_lock)
                *first_lock = lock;
        return __real_rwlock_rdlock(lock);
}

/* ------------------------------------------------------------------------
 * A client
 * --------------------------------------------------------------------- */

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
        char error[512];

        if (rd_kafka_conf_set(conf, name, value, error, sizeof(error)))
                bench_die("%s=%s: %s", name, value, error);
}

/* Fetches every topic, or topic 0 alone. */
static void fetch(rd_kafka_t *rk, rd_kafka_topic_t *only, uint32_t topics) {
        const struct rd_kafka_metadata *md;
        rd_kafka_resp_err_t err =
                rd_kafka_metadata(rk, !only, only, &md, 120000);

        if (err)
                bench_die("metadata: %s", rd_kafka_err2str(err));
        if ((uint32_t)md->topic_cnt != topics)
                bench_die("metadata: %d topics", md->topic_cnt);
        rd_kafka_metadata_destroy(md);
}

/* Returns a client that knows its brokers, whose threads run, and that does
 * nothing unasked. */
static rd_kafka_t *client(const workload_t *w, const char *bootstrap) {
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        rd_kafka_topic_t *topic;
        char error[512];
        rd_kafka_t *rk;

        set(conf, "bootstrap.servers", bootstrap);
        set(conf, "topic.metadata.refresh.interval.ms", "-1");
        set(conf, "metadata.max.age.ms", "86400000");
        set(conf, "receive.message.max.bytes", "1000000000");
        set(conf, "log_level", "0");
        rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof(error));
        if (!rk)
                bench_die("librdkafka: %s", error);
        topic = rd_kafka_topic_new(rk, w->names[0], NULL);
        fetch(rk, topic, 1);
        rd_kafka_topic_destroy(topic);
        return rk;
}

/* ------------------------------------------------------------------------
 * Lookups
 * --------------------------------------------------------------------- */

typedef struct subject {
        rd_kafka_t *rk;
        void *lock;
} subject_t;

static void *lock_of(rd_kafka_t *rk) {
        FILE *nowhere = fopen("/dev/null", "w");
        void *lock    = NULL;

        if (!nowhere)
                bench_die("/dev/null cannot be opened");
        first_lock = &lock;
        rd_kafka_dump(nowhere, rk);
        first_lock = NULL;
        fclose(nowhere);
        /* The lock is part of the client's own struct of some KiB. */
        if ((char *)lock < (char *)rk || (char *)lock > (char *)rk + 65536)
                bench_die("the client's lock was not seen");
        return lock;
}

static __attribute__((noinline)) int64_t loop(void *opaque, const query_t *q,
                                              size_t n) {
        const rd_kafka_metadata_partition_t *partition;
        const rd_kafka_metadata_topic_t *topic;
        const subject_t *s = opaque;
        int64_t sum        = 0;
        size_t i;

        for (i = 0; i < n; i++) {
                __real_rwlock_rdlock(s->lock);
                if (rd_kafka_metadata_cache_topic_partition_get(
                            s->rk, &topic, &partition, q[i].topic,
                            q[i].partition, 1) == 1)
                        sum += partition->leader;
                rwlock_rdunlock(s->lock);
        }
        return sum;
}

static void lookups(const workload_t *w, const char *bootstrap, int rounds,
                    double seconds) {
        static bench_samples_t random = {.name = "random:librdkafka"};
        static bench_samples_t hot    = {.name = "hot:librdkafka"};
        workload_budget_t budget;
        subject_t s;
        int64_t sum = 0;

        s.rk   = client(w, bootstrap);
        s.lock = lock_of(s.rk);
        fetch(s.rk, NULL, w->topics);
        bench_start(); /* its threads run already: they stay on their cores */
        budget = workload_budget(rounds, seconds);
        while (workload_next(&budget))
                sum = workload_time(w, loop, &s, budget.done, &random, &hot);
        bench_print_number("sum", (double)sum);
        bench_print_samples(&random);
        bench_print_samples(&hot);
        rd_kafka_destroy(s.rk);
}

/* ------------------------------------------------------------------------
 * Answers, memory
 * --------------------------------------------------------------------- */

static void answers(const workload_t *w, const char *bootstrap, int rounds,
                    double seconds) {
        static bench_samples_t cold   = {.name = "cold:librdkafka"};
        static bench_samples_t insert = {.name = "insert:librdkafka"};
        static bench_samples_t same   = {.name = "same:librdkafka"};
        workload_budget_t budget      = workload_budget(rounds, seconds);
        const double partitions       = (double)w->topics * w->per_topic;

        while (workload_next(&budget)) {
                rd_kafka_t *rk = client(w, bootstrap);

                fetch(rk, NULL, w->topics);
                bench_add(&cold, parse_ns / partitions);
                bench_add(&insert, update_ns / partitions);
                fetch(rk, NULL, w->topics);
                bench_add(&same, parse_ns / partitions);
                rd_kafka_destroy(rk);
        }
        bench_print_samples(&cold);
        bench_print_samples(&insert);
        bench_print_samples(&same);
}

static double resident(void) {
        malloc_trim(0);
        return bench_memory("Rss");
}

static void memory(const workload_t *w, const char *bootstrap) {
        rd_kafka_t *rk = client(w, bootstrap);
        double before;

        before = resident();
        fetch(rk, NULL, w->topics);
        fetch(rk, NULL, w->topics);
        printf(", \"memory:librdkafka\": [%.3f]",
               (resident() - before) / ((double)w->topics * w->per_topic));
        rd_kafka_destroy(rk);
}

int main(int argc, char **argv) {
        workload_t w;
        double seconds;
        int rounds;

        if (argc != 6)
                bench_die("librdkafka speed|memory DIR ROUNDS SECONDS "
                          "BOOTSTRAP");
        rounds  = (int)bench_number(argv[3], 1, BENCH_MAX_ROUNDS);
        seconds = (double)bench_number(argv[4], 0, 3600);
        w       = workload_open(argv[2]);
        printf("{\"version\": \"%s\"", rd_kafka_version_str());
        if (!strcmp(argv[1], "memory")) {
                memory(&w, argv[5]);
                printf("}\n");
        } else {
                answers(&w, argv[5], rounds, seconds);
                lookups(&w, argv[5], rounds, seconds);
                bench_print_end();
        }
        return 0;
}
