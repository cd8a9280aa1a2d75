#include "support/builder_fixture.h"

/* ---- random facts -------------------------------------------------------- */

static void names_random(facts_t *f, test_rng_t *r) {
        size_t i;

        f->name_len = 1 + test_below(r, test_below(r, 4) ? 40 : 300);
        for (i = 0; i < f->name_len; i++)
                f->name[i] = (char)test_u64(r);
        for (i = 0; i < 16; i++)
                f->id[i] = (uint8_t)test_u64(r);
        f->error      = test_below(r, 8) ? 0 : 5;
        f->internal   = (int32_t)test_below(r, 2);
        f->operations = test_below(r, 2) ? RDMETA_NO_OPERATIONS
                                         : (int32_t)test_u64(r);
        f->n_past = (uint8_t)(test_below(r, 4) ? 0 : test_below(r, 5));
        for (i = 0; i < 16u * f->n_past; i++)
                f->past[i] = (uint8_t)test_u64(r);
}

static uint32_t count_random(test_rng_t *r) {
        switch (test_below(r, 8)) {
        case 0:
                return (uint32_t)test_below(r, 2);
        case 1:
                return (uint32_t)test_below(r, FACT_ROWS + 1);
        case 2:
                return 15 + (uint32_t)test_below(r, 4);
        default:
                return 1 + (uint32_t)test_below(r, 40);
        }
}

/* Draws a largest value, at or around the limits of one, two or four bytes. */
static int32_t most_random(test_rng_t *r) {
        static const int32_t most[] = {5, 30, 127, 128, 1000, 32767, 32768,
                                       INT32_MAX};

        return most[test_below(r, sizeof(most) / sizeof(most[0]))];
}

static int32_t value_random(test_rng_t *r, int32_t most) {
        if (test_below(r, 16) == 0)
                return most;
        return (int32_t)test_below(r, (size_t)most + 1);
}

static void ids_random(facts_t *f, test_rng_t *r) {
        const int sparse = test_below(r, 4) == 0;
        int64_t id       = sparse ? (int64_t)test_below(r, 3) : 0;
        uint32_t i;

        for (i = 0; i < f->count; i++) {
                f->rows[i].id = (int32_t)id;
                id += 1;
                if (sparse && test_below(r, 2))
                        id += (int64_t)test_below(r, 3000000);
        }
}

static void leaders_random(facts_t *f, test_rng_t *r, int32_t brokers) {
        const size_t without = test_below(r, 2) ? 0 : test_below(r, 4) + 1;
        const int highest    = test_below(r, 4) == 0;
        const int last       = test_below(r, 2) == 0;
        const int32_t most   = most_random(r);
        uint32_t i;

        for (i = 0; i < f->count; i++) {
                fact_row_t *p = &f->rows[i];

                p->leader = value_random(r, brokers);
                p->epoch  = test_below(r, 16) ? value_random(r, most) : -1;
                p->high   = p->epoch;
                p->last   = -1;
                p->error  = 0;
                if (without && test_below(r, without) == 0) {
                        p->leader = -1;
                        p->error  = test_below(r, 2) ? 5 : 72;
                        if (last && test_below(r, 2))
                                p->last = value_random(r, brokers);
                }
                if (highest && test_below(r, 2))
                        p->high = p->epoch < 0 ? value_random(r, most)
                                               : p->epoch / 2 + (1 << 30);
        }
}

static void list_random(test_rng_t *r, int32_t brokers, int32_t n,
                        fact_row_t *p, int which) {
        int32_t k;

        p->counts[which] = n;
        for (k = 0; k < n; k++)
                p->ids[which][k] = value_random(r, brokers);
}

static void list_copy(fact_row_t *p, int to, const fact_row_t *q, int from,
                      int32_t n) {
        p->counts[to] = n;
        memcpy(p->ids[to], q->ids[from], 4 * (size_t)n);
}

/* Draws lists that are all of one length and in sync, or not, with many or no
 * equal ones. */
static void lists_random(facts_t *f, test_rng_t *r, int32_t brokers) {
        const int32_t n    = (int32_t)test_below(r, test_below(r, 16)
                                                            ? 5
                                                            : FACT_IDS);
        const int alike    = test_below(r, 2) == 0;
        const int in_sync  = test_below(r, 2) == 0;
        const int offline  = test_below(r, 4) == 0;
        const size_t again = test_below(r, 3);
        uint32_t i;

        for (i = 0; i < f->count; i++) {
                fact_row_t *p       = &f->rows[i];
                const fact_row_t *q = &f->rows[i ? test_below(r, i) : 0];

                if (i && again && test_below(r, 2 * again) != 0)
                        list_copy(p, REPLICAS, q, REPLICAS,
                                  q->counts[REPLICAS]);
                else
                        list_random(r, brokers,
                                    alike ? n
                                          : (int32_t)test_below(
                                                    r, (size_t)n + 1),
                                    p, REPLICAS);
                list_copy(p, ISR, p, REPLICAS, p->counts[REPLICAS]);
                if (!in_sync && p->counts[ISR] && test_below(r, 2))
                        p->counts[ISR]--;
                if (!in_sync && test_below(r, 16) == 0)
                        list_random(r, brokers, n, p, ISR);
                p->counts[OFFLINE] = 0;
                if (offline && test_below(r, 2))
                        list_copy(p, OFFLINE, q, ISR, q->counts[ISR]);
        }
}

void facts_random(facts_t *f, test_rng_t *r) {
        const int32_t brokers = most_random(r);

        names_random(f, r);
        f->count = count_random(r);
        ids_random(f, r);
        leaders_random(f, r, brokers);
        lists_random(f, r, brokers);
}

void facts_reduce(facts_t *f, int version) {
        uint32_t i;

        if (version < 10)
                memset(f->id, 0, 16);
        if (version < 8)
                f->operations = RDMETA_NO_OPERATIONS;
        if (version < 1)
                f->internal = 0;
        for (i = 0; i < f->count; i++) {
                if (version < 7)
                        f->rows[i].epoch = -1;
                if (version < 5)
                        f->rows[i].counts[OFFLINE] = 0;
        }
}

/* ---- to a block ---------------------------------------------------------- */

void builder_fixture_init(builder_fixture_t *w, test_rng_t *r) {
        int i;

        memset(w, 0, sizeof(*w));
        w->rng       = r;
        w->allocator = test_allocator(&w->heap);
        for (i = 0; i < RDMETA_HASH_KEYS; i++)
                w->key[i] = test_u64(r);
        rdmeta_memory_init(&w->blocks, &w->allocator, RDMETA_TOPIC_HEADER_SIZE);
        rdmeta_builder_init(&w->builder, &w->allocator, w->key);
}

void builder_fixture_destroy(builder_fixture_t *w) {
        gen_bytes_free(&w->bytes);
        rdmeta_builder_destroy(&w->builder);
        rdmeta_memory_destroy(&w->blocks);
        CHECK(!w->heap.blocks && !w->heap.bytes);
}

static void partitions_of(const facts_t *f, gen_partition_t *out,
                          test_rng_t *shuffle) {
        uint32_t i, k;

        for (i = 0; i < f->count; i++) {
                fact_row_t *p = (fact_row_t *)(uintptr_t)&f->rows[i];
                const gen_partition_t row = {
                    .id       = p->id,
                    .leader   = p->leader,
                    .epoch    = p->epoch,
                    .error    = p->error,
                    .replicas = {p->ids[REPLICAS], p->counts[REPLICAS]},
                    .isr      = {p->ids[ISR], p->counts[ISR]},
                    .offline  = {p->ids[OFFLINE], p->counts[OFFLINE]}};
                /* The row goes to a random place, or the end. */
                k      = shuffle ? (uint32_t)test_below(shuffle, i + 1) : i;
                out[i] = out[k];
                out[k] = row;
        }
}

rdmeta_err_t builder_fixture_read(builder_fixture_t *w, const facts_t *f,
                                  int version, test_rng_t *shuffle) {
        static gen_partition_t partitions[FACT_ROWS];
        const uint32_t fields = rdmeta_wire_fields((int16_t)version);
        uint64_t tags         = shuffle ? test_u64(shuffle) % 2 : 0;
        gen_topic_t topic     = {.name           = {f->name, f->name_len},
                                 .error          = f->error,
                                 .internal       = f->internal,
                                 .has_operations = 1,
                                 .operations     = f->operations,
                                 .partitions     = partitions,
                                 .partition_count = f->count};
        rdmeta_wire_topic_t head;
        rdmeta_err_t err;
        rdmeta_buf_t b;

        memcpy(topic.id, f->id, 16);
        partitions_of(f, partitions, shuffle);
        gen_bytes_clear(&w->bytes);
        gen_response_topic(&topic, version, &tags, &w->bytes);
        rdmeta_buf_init(&b, w->bytes.data, w->bytes.len);
        rdmeta_wire_topic(&b, fields, &head);
        CHECK(!b.bad);
        err = rdmeta_builder_read(&w->builder, &b, fields, &head);
        CHECK(err || b.p == b.end);
        return err;
}

void builder_fixture_merge_row(builder_fixture_t *w, const fact_row_t *p,
                               uint32_t i) {
        rdmeta_builder_t *s = &w->builder;

        if (p->high != p->epoch) {
                rdmeta_builder_want_high(s);
                s->high[i] = p->high;
        }
        if (p->last >= 0) {
                rdmeta_builder_want_last(s);
                s->last[i] = p->last;
        }
}

void builder_fixture_merge(builder_fixture_t *w, const facts_t *f) {
        uint32_t i;

        CHECK(w->builder.count == f->count);
        for (i = 0; i < f->count; i++)
                builder_fixture_merge_row(w, &f->rows[i], i);
        w->builder.n_past = f->n_past;
        memcpy(w->builder.past, f->past, sizeof(f->past));
}

rdmeta_topic_t *builder_fixture_block(builder_fixture_t *w, const facts_t *f,
                                      test_rng_t *shuffle) {
        rdmeta_topic_t *t;

        CHECK(!builder_fixture_read(w, f, 12, shuffle));
        builder_fixture_merge(w, f);
        t = rdmeta_builder_build(&w->builder, &w->blocks, 1);
        CHECK(t);
        return t;
}

void facts_each(test_rng_t r, int rounds, int cases,
                void (*test)(builder_fixture_t *w, facts_t *f)) {
        static builder_fixture_t w;
        static facts_t f;
        int round;

        builder_fixture_init(&w, &r);
        for (round = 0; round < rounds; round++) {
                facts_random(&f, &r);
                test(&w, &f);
        }
        while (cases--)
                CHECK(w.cases[cases] > rounds / 20);
        builder_fixture_destroy(&w);
}

/* ---- from a block -------------------------------------------------------- */

static void list_check(const fact_row_t *p, int which, rdmeta_list_t l) {
        uint32_t k;

        CHECK(l.count == (uint32_t)p->counts[which]);
        for (k = 0; k < l.count; k++)
                CHECK(rdmeta_list_get(l, k) == p->ids[which][k]);
}

void facts_check(const facts_t *f, const rdmeta_topic_t *t) {
        const rdmeta_cold_t *cold = rdmeta_cold(t);
        rdmeta_cols_t cols;
        rdmeta_row_t row;
        uint32_t i;

        rdmeta_topic_cols(t, &cols);
        CHECK(t->name_len == f->name_len);
        CHECK(!memcmp(t->name, f->name, f->name_len));
        CHECK(!memcmp(cold->id, f->id, 16));
        CHECK(rdmeta_topic_error(t) == f->error);
        CHECK(!(cold->flags & RDMETA_TOPIC_F_INTERNAL) == !f->internal);
        CHECK(rdmeta_topic_operations(t) == f->operations);
        CHECK(rdmeta_topic_count(t) == f->count && cols.count == f->count);
        CHECK(cols.n_past == f->n_past);
        CHECK(!f->n_past || !memcmp(cols.past, f->past, 16u * f->n_past));
        for (i = 0; i < f->count; i++) {
                const fact_row_t *p = &f->rows[i];

                rdmeta_topic_row(&cols, i, &row);
                CHECK(row.id == p->id && row.leader == p->leader);
                CHECK(row.epoch == p->epoch && row.high == p->high);
                CHECK(row.error == p->error);
                CHECK(row.last == (p->leader < 0 ? p->last : p->leader));
                list_check(p, REPLICAS, row.replicas);
                list_check(p, ISR, row.isr);
                list_check(p, OFFLINE, row.offline);
        }
}

/* ---- sizes --------------------------------------------------------------- */

static unsigned width_of(int32_t most) {
        return most < 128 ? 0 : most < 32768 ? 1 : 2;
}

static int lists_equal(const fact_row_t *p, int a, const fact_row_t *q, int b) {
        return p->counts[a] == q->counts[b] &&
               !memcmp(p->ids[a], q->ids[b], 4 * (size_t)p->counts[a]);
}

/* Returns whether no row before this one, and no list before it in this row, is
 * equal. */
static int is_new_list(const facts_t *f, uint32_t i, int which) {
        uint32_t k;
        int l;

        if (!f->rows[i].counts[which])
                return 0;
        for (k = 0; k <= i; k++)
                for (l = 0; l < (k < i ? LISTS : which); l++)
                        if (lists_equal(&f->rows[k], l, &f->rows[i], which))
                                return 0;
        return 1;
}

static size_t lists_size(const facts_t *f) {
        size_t units = 1, columns, flat, shared;
        int alike = f->count && f->rows[0].counts[REPLICAS], isr = 0;
        int offline  = 0, l;
        int32_t most = 0, k;
        uint32_t i;

        for (i = 0; i < f->count; i++) {
                const fact_row_t *p = &f->rows[i];

                alike &= p->counts[REPLICAS] == f->rows[0].counts[REPLICAS];
                isr |= !lists_equal(p, ISR, p, REPLICAS);
                offline |= p->counts[OFFLINE] > 0;
                for (l = 0; l < LISTS; l++) {
                        if (is_new_list(f, i, l))
                                units += 1 + (size_t)p->counts[l];
                        most = p->counts[l] > most ? p->counts[l] : most;
                        for (k = 0; k < p->counts[l]; k++)
                                if (p->ids[l][k] > most)
                                        most = p->ids[l][k];
                }
        }
        columns = f->count * (size_t)(1 + isr + offline);
        shared  = (columns << (units <= 256 ? 0 : units <= 65536 ? 1 : 2)) +
                 (units << width_of(most));
        if (!alike || isr || offline)
                return shared;
        flat = (1 + f->count * (size_t)f->rows[0].counts[REPLICAS])
               << width_of(most);
        return f->count <= 16 || flat <= shared ? flat : shared;
}

size_t facts_size(const facts_t *f) {
        int high = 0, last = 0, error = 0, sparse = 0;
        int32_t leader = -1, epoch = -1;
        size_t hot, row;
        uint32_t i;

        for (i = 0; i < f->count; i++) {
                const fact_row_t *p = &f->rows[i];

                high |= p->high != p->epoch;
                last |= p->leader < 0 && p->last >= 0;
                error |= p->error != 0;
                sparse |= (uint32_t)p->id != i;
                leader = p->leader > leader ? p->leader : leader;
                epoch  = p->epoch > epoch ? p->epoch : epoch;
        }
        hot = 16 + f->name_len +
              f->count * (sparse ? 4 : (size_t)1 << width_of(leader));
        row = ((size_t)1 << width_of(epoch)) +
              (size_t)(4 * sparse + 4 * high + 4 * last + 2 * error);
        return 44 + (hot <= 58 ? 0 : hot) + f->count * row +
               (f->operations != RDMETA_NO_OPERATIONS ? 4 : 0) +
               lists_size(f) + (f->n_past ? 1 + 16u * f->n_past : 0);
}
