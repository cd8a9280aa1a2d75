#include "rdmeta_fold.h"

#include "arrow/text.h"
#include "fold/batch.h"
#include "fold/brokers.h"
#include "fold/row.h"
#include "fold/saved.h"
#include "fold/resolve.h"
#include "fold/topics.h"

#include <sys/random.h>
#include <time.h>

void rdmeta_fold_conf_init(rdmeta_fold_conf_t *conf) {
        memset(conf, 0, sizeof(*conf));
        conf->size        = sizeof(*conf);
        conf->counts_from = INT64_MIN;
        conf->counts_to   = INT64_MAX;
        conf->buckets     = 1;
        conf->tables      = RDMETA_FOLD_ALL;
}

static int conf_is_good(const rdmeta_fold_conf_t *c) {
        return c && c->size == sizeof(*c) && c->cluster_id.data &&
               c->origin.data && c->cluster_id.len <= RDMETA_FOLD_LABEL &&
               c->origin.len <= RDMETA_FOLD_LABEL && c->buckets > 0 &&
               c->bucket < c->buckets && c->counts_from <= c->counts_to &&
               !(c->tables & ~(uint32_t)RDMETA_FOLD_ALL) &&
               !c->allocator.alloc == !c->allocator.free;
}

static uint64_t seed_make(uint64_t wanted, const void *address) {
        uint64_t seed = wanted;
        struct timespec ts;

        if (seed || (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) ==
                             (ssize_t)sizeof(seed) &&
                     seed))
                return seed;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t)ts.tv_nsec ^ (uint64_t)ts.tv_sec << 30 ^
               (uint64_t)(uintptr_t)address;
}

/* Copies a text as UTF-8, and moves *at past it. */
static rdmeta_str_t label(char **at, rdmeta_str_t s) {
        const rdmeta_str_t made = {*at, rdmeta_text_size(s.data, s.len)};

        rdmeta_text_copy(*at, made.len, s.data, s.len);
        *at += made.len;
        return made;
}

static size_t fold_size(const rdmeta_fold_conf_t *c) {
        return sizeof(rdmeta_fold_t) +
               rdmeta_text_size(c->cluster_id.data, c->cluster_id.len) +
               rdmeta_text_size(c->origin.data, c->origin.len);
}

static void fold_init(rdmeta_fold_t *f, const rdmeta_fold_conf_t *c) {
        uint64_t seed = seed_make(c->seed, f);
        char *at      = f->labels;
        int i;

        f->allocator    = c->allocator;
        f->cluster_id   = label(&at, c->cluster_id);
        f->origin       = label(&at, c->origin);
        f->counts_from  = c->counts_from;
        f->counts_to    = c->counts_to;
        f->buckets      = c->buckets;
        f->bucket       = c->bucket;
        f->tables       = c->tables;
        f->most_waiting = c->most_waiting;
        f->clock        = INT64_MIN;
        f->racks_turn   = 1;
        f->racks.reason = f->min_isrs.reason = RDMETA_BY_NOTHING;
        rdmeta_fold_clear(f);
        for (i = 0; i < RDMETA_HASH_KEYS; i++)
                f->key[i] = rdmeta_seed_next(&seed);
        rdmeta_fold_interned_init(&f->interned, &f->allocator, &seed);
        rdmeta_fold_brokers_init(f);
        for (i = 0; i < RDMETA_FOLD_TABLES; i++)
                rdmeta_fold_out_init(&f->out[i],
                                     RDMETA_FOLD_PARTITION_INTERVAL + i,
                                     f->cluster_id, f->origin);
}

rdmeta_err_t rdmeta_fold_new(const rdmeta_fold_conf_t *conf,
                             rdmeta_fold_t **out) {
        rdmeta_fold_t *f;
        size_t size;
        rdmeta_err_t err = RDMETA_OK;

        if (!out || !conf_is_good(conf))
                return RDMETA_ERR_ARGUMENT;
        size = fold_size(conf);
        if (size > sizeof(*f) + 2 * RDMETA_FOLD_LABEL)
                return RDMETA_ERR_ARGUMENT;
        f = rdmeta_alloc(&conf->allocator, size);
        if (!f)
                return RDMETA_ERR_NO_MEMORY;
        memset(f, 0, size);
        f->bytes = size;
        fold_init(f, conf);
        if (conf->state)
                err = rdmeta_fold_read(f, conf->state, conf->state_size);
        if (err)
                rdmeta_fold_destroy(f);
        else
                *out = f;
        return err;
}

void rdmeta_fold_destroy(rdmeta_fold_t *f) {
        rdmeta_allocator_t allocator;
        size_t size;
        int i;

        if (!f)
                return;
        allocator = f->allocator;
        size      = sizeof(*f) + f->cluster_id.len + f->origin.len;
        for (i = 0; i < RDMETA_FOLD_TABLES; i++)
                rdmeta_fold_out_destroy(&f->out[i]);
        rdmeta_fold_topics_destroy(f);
        rdmeta_fold_brokers_destroy(f);
        rdmeta_fold_interned_destroy(&f->interned);
        rdmeta_fold_free(f, f->entries,
                         f->entries_room * sizeof(*f->entries));
        rdmeta_fold_free(f, f->touched,
                         f->touched_room * sizeof(*f->touched));
        rdmeta_fold_free(f, f->moved, f->moved_room * sizeof(*f->moved));
        rdmeta_fold_free(f, f->scratch,
                         f->scratch_room * sizeof(*f->scratch));
        rdmeta_free(&allocator, f, size);
}

/* ---- records ------------------------------------------------------------- */

static int32_t some(int32_t value) {
        return value < 0 ? -1 : value;
}

rdmeta_err_t rdmeta_fold_change(rdmeta_fold_t *f, const rdmeta_change_t *c,
                                int64_t unseen_us) {
        char id[RDMETA_ARROW_ID];
        rdmeta_fold_row_t row = {
                .at            = c->wall_us,
                .unseen        = unseen_us,
                .offset        = c->offset,
                .kind          = c->kind,
                .source        = c->source < INT8_MAX ? some(c->source) : -1,
                .source_broker = some(c->source_broker),
                .partition     = some(c->partition),
                .broker        = some(c->broker),
                .old_leader    = some(c->old_leader),
                .new_leader    = some(c->new_leader),
                .old_epoch     = some(c->old_leader_epoch),
                .new_epoch     = some(c->new_leader_epoch),
                .partition_epoch = some(c->partition_epoch),
                .broker_epoch    = c->broker_epoch < 0 ? -1 : c->broker_epoch,
                .topic         = c->topic,
                .detail        = c->detail,
                .old_isr       = c->old_isr,
                .new_isr       = c->new_isr,
                .old_replicas  = c->old_replicas,
                .new_replicas  = c->new_replicas,
                .old_offline   = c->old_offline,
                .new_offline   = c->new_offline,
                .new_adding    = c->new_adding,
                .new_removing  = c->new_removing,
                .new_elr       = c->new_elr};

        f->error[0] = '\0';
        row.version = c->version <= INT64_MAX ? (int64_t)c->version : -1;
        if (c->topic_id) {
                rdmeta_text_id(id, c->topic_id);
                row.topic_id.data = id;
                row.topic_id.len  = sizeof(id);
        }
        return rdmeta_fold_row(f, &row);
}

int32_t rdmeta_fold_visit(void *fold, const rdmeta_change_t *change) {
        return rdmeta_fold_change((rdmeta_fold_t *)fold, change, -1);
}

rdmeta_err_t rdmeta_fold_batch(rdmeta_fold_t *f,
                               const struct ArrowSchema *schema,
                               const struct ArrowArray *batch) {
        f->error[0] = '\0';
        return rdmeta_fold_take_batch(f, schema, batch);
}

/* ---- time ---------------------------------------------------------------- */

/* Returns ARGUMENT if a time is too far behind the last record. */
static rdmeta_err_t check_time(rdmeta_fold_t *f, int64_t at) {
        f->error[0] = '\0';
        if (at < 0 || at > RDMETA_FOLD_LAST || rdmeta_fold_is_far(f, at))
                return rdmeta_fold_wrong(
                        f, RDMETA_ERR_ARGUMENT,
                        "a time of %lld us lies before 1970, after 9999,"
                        " or %d days after the last record or cut",
                        (long long)at, RDMETA_FOLD_DAYS);
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_fold_cut(rdmeta_fold_t *f, int64_t at_us) {
        const rdmeta_err_t err = check_time(f, at_us);

        if (err)
                return err;
        if (at_us % RDMETA_FOLD_DAY)
                return rdmeta_fold_wrong(f, RDMETA_ERR_ARGUMENT,
                                         "%lld us is not a midnight in UTC",
                                         (long long)at_us);
        return rdmeta_fold_midnights(f, at_us);
}

rdmeta_err_t rdmeta_fold_end(rdmeta_fold_t *f, int64_t at_us, int32_t by) {
        static const uint8_t reasons[] = {
                [RDMETA_FOLD_OPEN]     = RDMETA_BY_OPEN,
                [RDMETA_FOLD_GAP]      = RDMETA_BY_GAP,
                [RDMETA_FOLD_MIDNIGHT] = RDMETA_BY_MIDNIGHT};
        rdmeta_err_t err = check_time(f, at_us);

        if (err)
                return err;
        if (by < 0 || by > RDMETA_FOLD_MIDNIGHT)
                return rdmeta_fold_wrong(f, RDMETA_ERR_ARGUMENT,
                                         "%d is no reason for an end", by);
        if (!f->has_version)
                return RDMETA_OK;
        if (at_us < f->clock)
                at_us = f->clock;
        err = rdmeta_fold_midnights(f, at_us - 1);
        if (!err)
                err = rdmeta_fold_stop(f, at_us, reasons[by]);
        return err;
}

/* ---- what it holds ------------------------------------------------------- */

rdmeta_err_t rdmeta_fold_save(rdmeta_fold_t *f, void *buf, size_t capacity,
                              size_t *size) {
        if ((f->resolved_brokers || f->resolved || f->resolved_topics) &&
            rdmeta_fold_resolve(f))
                return RDMETA_ERR_NO_MEMORY;
        return rdmeta_fold_write(f, buf, buf ? capacity : 0, size);
}

rdmeta_err_t rdmeta_fold_take(rdmeta_fold_t *f, int32_t table,
                              struct ArrowArrayStream *out) {
        f->error[0] = '\0';
        if (table < RDMETA_FOLD_PARTITION_INTERVAL ||
            table > RDMETA_FOLD_CONTROLLER || !out || !(f->tables >> table & 1))
                return rdmeta_fold_wrong(f, RDMETA_ERR_ARGUMENT,
                                         "%d is no table of this fold", table);
        return rdmeta_fold_out_take(
                &f->out[table - RDMETA_FOLD_PARTITION_INTERVAL], out);
}

void rdmeta_fold_stats(const rdmeta_fold_t *f, rdmeta_fold_stats_t *out) {
        int i;

        *out         = f->stats;
        out->bytes   = f->bytes + f->interned.bytes;
        out->partial = f->partial;
        out->last_at = f->clock;
        for (i = 0; i < RDMETA_FOLD_TABLES; i++)
                out->waiting += f->out[i].rows;
        out->waiting_bytes = rdmeta_fold_waiting(f);
}

const char *rdmeta_fold_error(const rdmeta_fold_t *f) {
        return f->error;
}
