/*
 * metadata_log PARTITIONS RECORDS ROUNDS SEED [DIRECTORY [MS]]: times a
 * metadata log of so many changes, with 10 partitions per topic; nanoseconds
 * per record.
 *
 * `crc`: the CRC of all batches. `decode`: every field, CRC checked. `replay`:
 * to a state. `image`: a state to its Metadata answer, applied to a new cache;
 * `apply`: that answer applied alone; both per partition. `state` and
 * `snapshot` are bytes: of the state's memory, and of Kafka's snapshot of it.
 * With a directory it writes the log there, with a batch of 20 each 10 or MS
 * milliseconds, and times nothing.
 */
#include "common.h"

#include "base/crc32c.h"
#include "kraft/record.h"
#include "rdmeta_kraft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 61, IN_BATCH = 20, BROKERS = 9, REPLICAS = 3 };
enum { RECORD_MOST = 256, TIME_STEP_MS = 10 };

typedef struct made {
        uint8_t *bytes;
        size_t len, capacity;
        size_t batch;   /* where it begins */
        size_t state;   /* bytes up to the end of the first state */
        int64_t offset; /* of the batch */
        int64_t time_ms, step_ms;
        uint32_t count; /* records of the batch */
        uint64_t random;
} made_t;

static uint8_t *put(uint8_t *p, uint64_t v, int size) {
        while (size--)
                *p++ = (uint8_t)(v >> 8 * size);
        return p;
}

static uint8_t *put_varint(uint8_t *p, uint64_t v) {
        for (; v >= 0x80; v >>= 7)
                *p++ = (uint8_t)(v | 0x80);
        *p++ = (uint8_t)v;
        return p;
}

static uint8_t *put_text(uint8_t *p, const char *text) {
        const size_t len = strlen(text);

        p = put_varint(p, len + 1);
        memcpy(p, text, len);
        return p + len;
}

static uint8_t *put_id(uint8_t *p, uint32_t number) {
        return put(put(p, 0x5eed, 8), number + 1, 8);
}

static uint64_t next_random(made_t *m) {
        m->random = m->random * 6364136223846793005u + 1442695040888963407u;
        return m->random >> 33;
}

static void batch_end(made_t *m) {
        uint8_t *p = m->bytes + m->batch;

        if (!m->count)
                return;
        put(p, (uint64_t)m->offset, 8);
        put(p + 8, m->len - m->batch - 12, 4);
        put(put(p + 12, 1, 4), 2, 1);
        put(put(p + 21, 0, 2), m->count - 1, 4);
        put(put(p + 27, (uint64_t)m->time_ms, 8), (uint64_t)m->time_ms, 8);
        memset(p + 43, 0xff, 14);
        put(p + 57, m->count, 4);
        put(p + 17, rdmeta_crc32c(p + 21, m->len - m->batch - 21), 4);
        m->offset += m->count;
        m->time_ms += m->step_ms;
        m->batch = m->len;
        m->count = 0;
}

/* Appends a record of this value. */
static void add(made_t *m, const uint8_t *value, size_t len) {
        uint8_t body[RECORD_MOST + 16], *p = body;

        if (m->count == IN_BATCH)
                batch_end(m);
        if (!m->count)
                m->len += HEADER;
        if (m->len + sizeof(body) + HEADER > m->capacity)
                bench_die("the log is larger than was foreseen");
        p    = put(p, 0, 2); /* attributes, time */
        p    = put_varint(p, 2 * (uint64_t)m->count++);
        *p++ = 1; /* no key */
        p    = put_varint(p, 2 * len);
        memcpy(p, value, len);
        p += len;
        *p++   = 0; /* no headers */
        m->len = (size_t)(put_varint(m->bytes + m->len,
                                     2 * (uint64_t)(p - body)) -
                          m->bytes);
        memcpy(m->bytes + m->len, body, (size_t)(p - body));
        m->len += (size_t)(p - body);
}

static void add_broker(made_t *m, uint32_t id) {
        uint8_t value[RECORD_MOST], *p = value;

        p = put(put(p, 0x010000, 3), id, 4);
        p = put(put_id(p, 1000000 + id), (uint64_t)m->offset, 8);
        p = put_text(put_varint(p, 2), "PLAINTEXT");
        p = put_text(p, "broker.example.net");
        p = put(put(p, 9092, 2), 0, 3); /* port, protocol, tags */
        p = put(p, 1, 1);               /* no features */
        p = put(put_text(p, "rack"), 0, 2);
        add(m, value, (size_t)(p - value));
}

static uint8_t *put_replicas(uint8_t *p, uint32_t first) {
        uint32_t i;

        p = put_varint(p, REPLICAS + 1);
        for (i = 0; i < REPLICAS; i++)
                p = put(p, 1 + (first + i) % BROKERS, 4);
        return p;
}

static void add_topic(made_t *m, uint32_t number) {
        uint8_t value[RECORD_MOST], *p = value;
        char name[64];
        uint32_t i;

        snprintf(name, sizeof(name), "team-%u.service.topic-%07u",
                 number % 100, number);
        p = put_id(put_text(put(p, 0x010200, 3), name), number);
        *p++ = 0;
        add(m, value, (size_t)(p - value));
        for (i = 0; i < BENCH_PER_TOPIC; i++) {
                p = put_id(put(put(value, 0x010301, 3), i, 4), number);
                p = put_replicas(put_replicas(p, number + i), number + i);
                p = put(p, 0x0101, 2); /* removing, adding: none */
                p = put(p, 1 + (number + i) % BROKERS, 4);
                p = put(put(p, 0, 8), REPLICAS + 1, 1);
                p = put_id(put_id(put_id(p, 1), 2), 3);
                *p++ = 0;
                add(m, value, (size_t)(p - value));
        }
}

/* Adds a change of a random partition's ISR, and of its leader as well each
 * second time. */
static void add_change(made_t *m, uint32_t partitions) {
        const uint64_t random = next_random(m);
        const uint32_t which  = (uint32_t)(random % partitions);
        uint8_t value[RECORD_MOST], *p = value;
        const int leads = random >> 20 & 1;

        p = put(put(p, 0x010500, 3), which % BENCH_PER_TOPIC, 4);
        p = put_id(p, which / BENCH_PER_TOPIC);
        p = put(p, (uint64_t)(leads ? 2 : 1), 1);
        p = put(p, 0x000903, 3); /* tag 0: 9 bytes, two ids */
        p = put(put(p, 1 + which % BROKERS, 4), 1 + (which + 1) % BROKERS, 4);
        if (leads)
                p = put(put(p, 0x0104, 2), 1 + random % BROKERS, 4);
        add(m, value, (size_t)(p - value));
}

static made_t make(uint32_t partitions, uint64_t records, uint64_t seed,
                   int64_t step_ms) {
        made_t m = {0};
        uint64_t i;

        m.capacity = 256u * (size_t)partitions + 80 * records + (1 << 20);
        m.bytes    = gen_pages(m.capacity);
        m.time_ms  = 1800000000000;
        m.random   = seed;
        m.step_ms  = step_ms;
        for (i = 1; i <= BROKERS; i++)
                add_broker(&m, (uint32_t)i);
        for (i = 0; i < partitions / BENCH_PER_TOPIC; i++)
                add_topic(&m, (uint32_t)i);
        batch_end(&m);
        m.state = m.len;
        for (i = 0; i < records; i++)
                add_change(&m, partitions);
        batch_end(&m);
        return m;
}

static void time_crc(const made_t *m, bench_samples_t *out) {
        const double begin = bench_now_ns();
        volatile uint32_t sum = 0;
        size_t at, size;

        for (at = 0; at < m->len; at += size) {
                const uint8_t *p = m->bytes + at;

                size = 12 + ((size_t)p[8] << 24 | (size_t)p[9] << 16 |
                             (size_t)p[10] << 8 | p[11]);
                sum += rdmeta_crc32c(p + 21, size - 21);
        }
        bench_add(out, (bench_now_ns() - begin) / (double)m->offset);
}

static void time_decode(const made_t *m, bench_samples_t *out) {
        rdmeta_kraft_value_t values[RDMETA_KRAFT_FIELDS];
        const double begin = bench_now_ns();
        rdmeta_kraft_records_t it;
        rdmeta_kraft_record_t record;
        rdmeta_kraft_batch_t batch;
        int64_t n = 0;
        size_t at;
        int bad;

        for (at = 0; at < m->len; at += batch.size) {
                if (rdmeta_kraft_batch(m->bytes + at, m->len - at, &batch))
                        bench_die("no good batch");
                rdmeta_kraft_records_init(&it, &batch);
                while (rdmeta_kraft_records_next(&it, &record) > 0) {
                        if (!rdmeta_kraft_record_read(&record, values, &bad))
                                bench_die("no good record");
                        n++;
                }
        }
        bench_add(out, (bench_now_ns() - begin) / (double)n);
        if (n != m->offset)
                bench_die("not all records");
}

static size_t allocated;

static void *counted(void *opaque, size_t size) {
        (void)opaque;
        allocated += size;
        return malloc(size);
}

static void uncounted(void *opaque, void *p, size_t size) {
        (void)opaque;
        allocated -= size;
        free(p);
}

/* Returns the state of the first `len` bytes. */
static rdmeta_kraft_replay_t *replay(const made_t *m, size_t len, int counts,
                                     bench_samples_t *out) {
        rdmeta_kraft_replay_t *r;
        rdmeta_kraft_conf_t conf;
        size_t used;
        double begin;

        rdmeta_kraft_conf_init(&conf);
        if (counts) {
                conf.allocator.alloc = counted;
                conf.allocator.free  = uncounted;
        }
        if (rdmeta_kraft_replay_new(&conf, &r))
                bench_die("no memory for a replay");
        begin = bench_now_ns();
        if (rdmeta_kraft_replay(r, m->bytes, len, &used) || used != len)
                bench_die("replay: %s", rdmeta_kraft_fault(r)->text);
        if (out)
                bench_add(out, (bench_now_ns() - begin) / (double)m->offset);
        return r;
}

static void time_image(const rdmeta_kraft_replay_t *r, uint32_t partitions,
                       bench_samples_t *image, bench_samples_t *apply) {
        const rdmeta_str_t cluster = {"bench", 5}, first = {NULL, 0};
        rdmeta_cache_t *cache      = bench_cache();
        rdmeta_applied_t applied;
        double begin, made, each;
        void *answer;
        size_t len;

        begin = bench_now_ns();
        if (rdmeta_kraft_answer(rdmeta_kraft_replay_state(r), cluster, first,
                                &answer, &len))
                bench_die("no answer");
        made = bench_now_ns() - begin;
        each = bench_apply(cache, (const uint8_t *)answer, len,
                           partitions / BENCH_PER_TOPIC, &applied);
        rdmeta_cache_unref(cache);
        bench_add(image, (made + each) / partitions);
        bench_add(apply, each / partitions);
        rdmeta_kraft_answer_free(answer);
}

static void write_log(const made_t *m, const char *directory) {
        char path[4096];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%020d.log", directory, 0);
        file = fopen(path, "wb");
        if (!file || fwrite(m->bytes, 1, m->len, file) != m->len ||
            fclose(file))
                bench_die("%s: cannot be written", path);
}

int main(int argc, char **argv) {
        static bench_samples_t crc      = {.name = "crc"};
        static bench_samples_t decode   = {.name = "decode"};
        static bench_samples_t replayed = {.name = "replay"};
        static bench_samples_t image    = {.name = "image"};
        static bench_samples_t apply    = {.name = "apply"};
        rdmeta_kraft_replay_t *r;
        uint32_t partitions;
        uint64_t records;
        int rounds, i;
        made_t m;

        if (argc < 5 || argc > 7)
                bench_die("usage: metadata_log PARTITIONS RECORDS ROUNDS SEED"
                          " [DIRECTORY [MS]]");
        partitions = (uint32_t)bench_number(argv[1], 10, 10000000);
        records    = (uint64_t)bench_number(argv[2], 0, 100000000);
        rounds     = (int)bench_number(argv[3], 1, BENCH_MAX_ROUNDS);
        bench_start();
        m = make(partitions, records,
                 (uint64_t)bench_number(argv[4], 0, 1L << 62),
                 argc == 7 ? bench_number(argv[6], 1, 1L << 31)
                           : TIME_STEP_MS);
        if (argc > 5) {
                write_log(&m, argv[5]);
                return 0;
        }
        for (i = 0; i < rounds; i++) {
                time_crc(&m, &crc);
                time_decode(&m, &decode);
                r = replay(&m, m.len, 0, &replayed);
                time_image(r, partitions, &image, &apply);
                rdmeta_kraft_replay_destroy(r);
        }
        r = replay(&m, m.state, 1, NULL);
        bench_print_begin("metadata_log");
        bench_print_number("partitions", partitions);
        bench_print_number("state_bytes", (double)allocated);
        bench_print_number("snapshot_bytes", (double)m.state);
        bench_print_samples(&crc);
        bench_print_samples(&decode);
        bench_print_samples(&replayed);
        bench_print_samples(&image);
        bench_print_samples(&apply);
        bench_print_end();
        rdmeta_kraft_replay_destroy(r);
        gen_pages_free(m.bytes, m.capacity);
        return 0;
}
