/*
 * Replays metadata logs: any bytes as batches whose CRC is made right.
 *
 *     byte 0     bit 0: the rest is one batch; else it is records
 *                bit 1: a snapshot; bit 2: control records; bit 3: without skip
 *     a batch    its bytes behind the header's 61, after a count of one byte
 *     records    a length of one byte and so many bytes, which are a record's
 *                value; a length of 255 begins another batch
 *
 * The replay must not read beyond the bytes. Its memory keeps to a bound that
 * follows from the size of the input, and all is freed. A second replay of the
 * same bytes changes nothing.
 */
#include "fuzz_see.h"
#include "support/kraft_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A replay with its lists has some 40 KB. A record of a few bytes makes a row,
 * a fact or a topic with a table of slots. */
enum { REPLAY_BASE = 128 << 10, REPLAY_TIMES = 256 };

static size_t held, peak;

static void *heap_alloc(void *opaque, size_t size) {
        (void)opaque;
        held += size;
        peak = held > peak ? held : peak;
        return malloc(size);
}

static void heap_free(void *opaque, void *p, size_t size) {
        (void)opaque;
        held -= p ? size : 0;
        free(p);
}

/* Makes the log of the input. */
static void log_of(kw_t *w, const uint8_t *p, size_t n, int flags) {
        gen_bytes_t value = {0};

        w->control = flags & 4 ? 1 : 0;
        if (flags & 1) {
                w->count = n ? *p : 0;
                if (n)
                        gen_put(&w->records, p + 1, n - 1);
                kw_batch(w);
                return;
        }
        while (n) {
                size_t len = *p++;

                n--;
                if (len == 255) {
                        w->epoch += w->count > 2;
                        kw_batch(w);
                        w->control = flags & 4 && w->offset & 1;
                        continue;
                }
                len = len > n ? n : len;
                gen_bytes_clear(&value);
                gen_put(&value, p, len);
                kw_value(w, w->control ? "\0\0\0\2" : NULL,
                         w->control ? 4 : 0, &value);
                p += len;
                n -= len;
        }
        kw_batch(w);
        gen_bytes_free(&value);
}

static void see_records(const kw_t *w) {
        const rdmeta_str_t topic   = {"t", 1};
        rdmeta_kraft_place_t place = {0};
        rdmeta_kraft_about_t about;
        rdmeta_kraft_record_t r;
        rdmeta_kraft_batch_t b;
        size_t at, len;
        char text[4096];

        for (at = 0; at < w->log.len; at += b.size) {
                if (rdmeta_kraft_batch(w->log.data + at, w->log.len - at, &b))
                        return;
                memset(&place, 0, sizeof(place));
                while (rdmeta_kraft_record_next(&b, &place, &r) > 0) {
                        see(r.value, r.len);
                        rdmeta_kraft_record_about(&r, &about);
                        see(about.topic_id, about.topic_id ? 16 : 0);
                        see(about.topic.data, about.topic.len);
                        if (!rdmeta_kraft_record_json(&r, topic, 0, text,
                                                      sizeof(text), &len))
                                see(text, len);
                }
        }
}

static void see_state(const rdmeta_kraft_state_t *s) {
        rdmeta_kraft_partition_t p;
        rdmeta_kraft_topic_t t;
        rdmeta_kraft_broker_t b;
        rdmeta_kraft_fact_t f;
        const rdmeta_str_t none = {NULL, 0};
        void *body;
        size_t len;
        uint32_t i;

        memset(&t, 0, sizeof(t));
        while (rdmeta_kraft_topic_next(s, t.name, &t)) {
                see(t.name.data, t.name.len);
                for (i = 0; i < t.partitions; i++) {
                        REQUIRE(rdmeta_kraft_partition_at(s, t.id, i, &p));
                        see(p.replicas.be, 4 * (size_t)p.replicas.count);
                        see(p.directories.be,
                            4 * (size_t)p.directories.count);
                }
        }
        for (b.id = -1; rdmeta_kraft_broker_next(s, b.id, &b);) {
                see(b.log_dirs, 16 * (size_t)b.n_log_dirs);
                see(b.cordoned, 16 * (size_t)b.n_cordoned);
        }
        memset(&f, 0, sizeof(f));
        while (rdmeta_kraft_fact_next(s, f.record.control, f.record.type,
                                      f.key, f.key_len, &f))
                see(f.record.value, f.record.len);
        if (!rdmeta_kraft_answer(s, none, none, &body, &len)) {
                see(body, len);
                rdmeta_kraft_answer_free(body);
        }
}

static void replay(const kw_t *w, int flags) {
        rdmeta_kraft_info_t before, after;
        rdmeta_kraft_replay_t *r;
        rdmeta_kraft_conf_t conf;
        size_t used, again;
        int32_t ended;

        rdmeta_kraft_conf_init(&conf);
        conf.visit           = see_change;
        conf.skip            = !(flags & 8);
        conf.seed            = 1;
        conf.allocator.alloc = heap_alloc;
        conf.allocator.free  = heap_free;
        REQUIRE(!rdmeta_kraft_replay_new(&conf, &r));
        if (flags & 2) {
                rdmeta_kraft_replay_snapshot(r, w->log.data, w->log.len, 1000,
                                             0, &used, &ended);
        } else {
                rdmeta_kraft_replay(r, w->log.data, w->log.len, &used);
                rdmeta_kraft_info(r, &before);
                rdmeta_kraft_replay(r, w->log.data, used, &again);
                rdmeta_kraft_info(r, &after);
                REQUIRE(!memcmp(&before, &after, sizeof(before)));
        }
        REQUIRE(strlen(rdmeta_kraft_fault(r)->text) < 192);
        see_state(rdmeta_kraft_replay_state(r));
        REQUIRE(peak <= REPLAY_BASE + REPLAY_TIMES * w->log.len);
        rdmeta_kraft_replay_destroy(r);
        REQUIRE(!held);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        kw_t w = {.time_ms = 1000};
        kw_t exact;

        held = peak = 0;
        if (!size)
                return 0;
        log_of(&w, data + 1, size - 1, data[0]);
        exact          = w;
        exact.log.data = gen_bytes_exact(w.log.data, w.log.len);
        see_records(&exact);
        replay(&exact, data[0]);
        free(exact.log.data);
        kw_free(&w);
        return 0;
}
