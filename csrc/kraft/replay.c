/* replay: reads batches, and hands their records on in commits. */
#include "kraft/apply.h"

#include <stdio.h>
#include <sys/random.h>

void rdmeta_kraft_conf_init(rdmeta_kraft_conf_t *conf) {
        memset(conf, 0, sizeof(*conf));
        conf->size         = sizeof(*conf);
        conf->until_offset = INT64_MAX;
        conf->until_us     = INT64_MAX;
        conf->epoch        = RDMETA_NONE;
        conf->leader       = RDMETA_NONE;
        conf->latest_us    = INT64_MIN;
}

/* Returns a random seed; without a source of randomness, an address. */
static uint64_t random_seed(void) {
        uint64_t seed;

        if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
                seed = (uint64_t)(uintptr_t)&seed;
        return seed;
}

rdmeta_err_t rdmeta_kraft_replay_new(const rdmeta_kraft_conf_t *conf,
                                     rdmeta_kraft_replay_t **out) {
        const rdmeta_allocator_t *a = &conf->allocator;
        rdmeta_kraft_replay_t *r;

        *out = NULL;
        if (conf->size != sizeof(*conf) || !a->alloc != !a->free)
                return RDMETA_ERR_ARGUMENT;
        r = rdmeta_alloc(a, sizeof(*r));
        if (!r)
                return RDMETA_ERR_NO_MEMORY;
        memset(r, 0, sizeof(*r));
        r->conf            = *conf;
        r->transaction     = -1;
        r->last            = &r->first;
        r->batch_us        = conf->latest_us;
        r->before_epoch_us = INT64_MIN;
        r->begun           = -1;
        rdmeta_kraft_changes_init(&r->changes, &r->conf);
        r->state = rdmeta_kraft_state_new(
                a, conf->seed ? conf->seed : random_seed());
        if (!r->state ||
            (conf->epoch != RDMETA_NONE &&
             !rdmeta_kraft_epoch_add(r->state, 0, conf->epoch,
                                     conf->leader))) {
                rdmeta_kraft_replay_destroy(r);
                return RDMETA_ERR_NO_MEMORY;
        }
        r->state->time_us = conf->latest_us;
        *out              = r;
        return RDMETA_OK;
}

/* Frees the records of the transaction. */
static void pending_drop(rdmeta_kraft_replay_t *r) {
        rdmeta_kraft_pending_t *p;

        while ((p = r->first)) {
                r->first = p->next;
                rdmeta_free(&r->conf.allocator, p,
                            sizeof(*p) + p->record.len);
        }
        r->last        = &r->first;
        r->pending     = 0;
        r->transaction = -1;
}

void rdmeta_kraft_replay_destroy(rdmeta_kraft_replay_t *r) {
        rdmeta_allocator_t a;

        if (!r)
                return;
        a = r->conf.allocator;
        pending_drop(r);
        rdmeta_kraft_state_destroy(r->state);
        rdmeta_free(&a, r->scratch, r->scratch_size);
        rdmeta_free(&a, r, sizeof(*r));
}

void rdmeta_kraft_replay_until(rdmeta_kraft_replay_t *r, int64_t until_offset,
                               int64_t until_us) {
        r->conf.until_offset = until_offset;
        r->conf.until_us     = until_us;
}

const rdmeta_kraft_fault_t *
rdmeta_kraft_fault(const rdmeta_kraft_replay_t *r) {
        return &r->fault;
}

const rdmeta_kraft_state_t *
rdmeta_kraft_replay_state(const rdmeta_kraft_replay_t *r) {
        return r->state;
}

void rdmeta_kraft_info(const rdmeta_kraft_replay_t *r,
                       rdmeta_kraft_info_t *out) {
        const rdmeta_kraft_state_t *s = r->state;
        const rdmeta_kraft_epoch_t *e =
                s->n_epochs ? &s->epochs[s->n_epochs - 1] : NULL;

        memset(out, 0, sizeof(*out));
        out->next         = s->next;
        out->snapshot_end = s->snapshot_end;
        out->snapshot_us  = r->snapshot_us;
        out->latest_us    = s->time_us;
        out->transaction  = r->transaction;
        out->pending      = r->pending;
        out->topics       = s->topics;
        out->partitions   = s->partitions;
        out->brokers      = s->brokers.count;
        out->facts        = s->facts.tree.count;
        out->directories  = s->n_directories;
        out->unknown      = s->unknown;
        out->skipped      = s->skipped;
        out->clocks_back  = s->clocks_back;
        out->epoch        = e ? e->epoch : RDMETA_NONE;
        out->leader       = e ? e->leader : RDMETA_NONE;
        out->partial      = s->unknown || s->skipped;
}

/* ---- transactions ------------------------------------------------------- */

static rdmeta_err_t pending_add(rdmeta_kraft_replay_t *r,
                                const rdmeta_kraft_record_t *record,
                                int64_t latest) {
        rdmeta_kraft_pending_t *p = rdmeta_alloc(&r->conf.allocator,
                                                 sizeof(*p) + record->len);

        if (!p)
                return RDMETA_ERR_NO_MEMORY;
        memcpy(p->value, record->value, record->len);
        p->next         = NULL;
        p->record       = *record;
        p->record.value = p->value;
        p->latest       = latest;
        *r->last        = p;
        r->last         = &p->next;
        r->pending++;
        return RDMETA_OK;
}

/* Applies a record; passes over one that is refused, if the caller wants it. */
static rdmeta_err_t apply(rdmeta_kraft_replay_t *r,
                          const rdmeta_kraft_record_t *record,
                          int64_t latest) {
        rdmeta_err_t err = rdmeta_kraft_apply(r, record, latest);

        if (err != RDMETA_ERR_MALFORMED || !r->conf.skip)
                return err;
        r->state->skipped++;
        return RDMETA_OK;
}

/* Applies the records of the transaction, which has ended. Each is freed once
 * it is applied, so a call that failed goes on with the next one. */
static rdmeta_err_t transaction_end(rdmeta_kraft_replay_t *r) {
        rdmeta_kraft_pending_t *p;
        rdmeta_err_t err;

        while ((p = r->first)) {
                err = apply(r, &p->record, p->latest);
                if (err)
                        return err;
                r->first = p->next;
                r->pending--;
                rdmeta_free(&r->conf.allocator, p,
                            sizeof(*p) + p->record.len);
        }
        pending_drop(r);
        return RDMETA_OK;
}

/* Begins, ends or aborts a transaction. */
static rdmeta_err_t transaction_step(rdmeta_kraft_replay_t *r,
                                     const rdmeta_kraft_record_t *record) {
        const int begins = record->type == RDMETA_KRAFT_BEGIN;

        if (!rdmeta_kraft_schema_of(record)) {
                r->state->unknown++;
                return RDMETA_OK;
        }
        if (begins != (r->transaction < 0)) {
                if (r->conf.skip) {
                        r->state->skipped++;
                        return RDMETA_OK;
                }
                return rdmeta_kraft_refuse(
                        r, record, RDMETA_KRAFT_CONTRADICTS,
                        begins ? "begins a transaction in another one"
                               : "ends a transaction that did not begin");
        }
        if (begins) {
                r->transaction = record->offset;
                return RDMETA_OK;
        }
        if (record->type == RDMETA_KRAFT_END) {
                r->version = record->offset + 1;
                return transaction_end(r);
        }
        pending_drop(r);
        return RDMETA_OK;
}

/* ---- batches ------------------------------------------------------------ */

/* Returns the offset behind the commit that a record belongs to: that of the
 * next begin of a transaction, from it on, or the one behind the batch. `it` is
 * behind the record. */
static int64_t commit_end(const rdmeta_kraft_record_t *record,
                          rdmeta_kraft_records_t it) {
        rdmeta_kraft_record_t next = *record;

        do {
                if (!next.control && next.type == RDMETA_KRAFT_BEGIN)
                        return next.offset;
        } while (rdmeta_kraft_records_next(&it, &next) > 0);
        return it.batch->last_offset + 1;
}

static int is_transaction_step(const rdmeta_kraft_record_t *record) {
        return !record->control && record->type >= RDMETA_KRAFT_BEGIN &&
               record->type <= RDMETA_KRAFT_ABORT;
}

static rdmeta_err_t record_step(rdmeta_kraft_replay_t *r,
                                const rdmeta_kraft_record_t *record,
                                int64_t latest) {
        if (is_transaction_step(record))
                return transaction_step(r, record);
        if (r->transaction >= 0 && !record->control)
                return pending_add(r, record, latest);
        return apply(r, record, latest);
}

static rdmeta_err_t fail(rdmeta_kraft_replay_t *r, int32_t code,
                         const rdmeta_kraft_batch_t *batch,
                         const char *what) {
        r->fault.code   = code;
        r->fault.offset = batch->base_offset;
        snprintf(r->fault.text, sizeof(r->fault.text),
                 "batch of offset %lld: %s", (long long)batch->base_offset,
                 what);
        return RDMETA_ERR_MALFORMED;
}

/* Checks that the batch follows what was replayed, and records its epoch and
 * time. */
static rdmeta_err_t batch_begin(rdmeta_kraft_replay_t *r,
                                const rdmeta_kraft_batch_t *batch) {
        rdmeta_kraft_state_t *s = r->state;
        const int32_t epoch =
                s->n_epochs ? s->epochs[s->n_epochs - 1].epoch : -1;

        if (batch->base_offset > s->next) {
                if (!r->conf.skip)
                        return fail(r, RDMETA_KRAFT_GAP, batch,
                                    "offsets before it are missing");
                s->skipped++;
        }
        if (batch->epoch < epoch) {
                if (!r->conf.skip)
                        return fail(r, RDMETA_KRAFT_CONTRADICTS, batch,
                                    "its epoch is below an earlier one");
                s->skipped++;
        } else if (!rdmeta_kraft_epoch_add(s, batch->base_offset,
                                           batch->epoch, RDMETA_NONE)) {
                return RDMETA_ERR_NO_MEMORY;
        }
        if (batch->epoch > epoch)
                r->before_epoch_us = r->batch_us;
        rdmeta_kraft_gone_free(s);
        r->batch_us = 1000 * batch->time_ms;
        r->begun    = batch->base_offset;
        s->clocks_back += 1000 * batch->base_time_ms < s->time_us;
        s->next = batch->base_offset;
        return RDMETA_OK;
}

/* Applies the records of a batch from the state's offset on. */
static rdmeta_err_t batch_apply(rdmeta_kraft_replay_t *r,
                                const rdmeta_kraft_batch_t *batch,
                                rdmeta_kraft_ahead_t *ahead) {
        rdmeta_kraft_state_t *s = r->state;
        rdmeta_kraft_record_t record;
        rdmeta_kraft_records_t it;
        rdmeta_err_t err;
        int64_t end = -1;
        int got;

        rdmeta_kraft_records_init(&it, batch);
        while ((got = rdmeta_kraft_records_next(&it, &record)) > 0) {
                if (record.offset < s->next)
                        continue;
                if (record.offset >= ahead->offset)
                        rdmeta_kraft_prefetch(s, ahead);
                if (r->changes.visit && end <= record.offset)
                        end = commit_end(&record, it);
                r->version = end;
                err        = record_step(r, &record, s->time_us);
                if (err)
                        return err;
                if (is_transaction_step(&record))
                        end = -1;
                s->next = record.offset + 1;
                if (record.time_us > s->time_us)
                        s->time_us = record.time_us;
        }
        if (got < 0 && !r->conf.skip)
                return fail(r, RDMETA_KRAFT_BAD_RECORD, batch,
                            "a record has bytes that contradict each other");
        s->skipped += got < 0;
        s->next = batch->last_offset + 1;
        return RDMETA_OK;
}

static const char *text_of(int32_t code) {
        static const char *const texts[] = {
                [RDMETA_KRAFT_CUT]   = "the bytes end within it",
                [RDMETA_KRAFT_ZEROS] = "there are only zeros",
                [RDMETA_KRAFT_NO_BATCH] =
                        "it is no batch of a metadata log",
                [RDMETA_KRAFT_OLD_FORMAT] =
                        "its format is 0 or 1, as no metadata log has it",
                [RDMETA_KRAFT_BAD_CRC] = "its CRC is wrong",
                [RDMETA_KRAFT_COMPRESSED] =
                        "it is compressed, as no metadata log is"};

        return texts[code];
}

/* Reads the batch at the begin of the bytes. Returns 1 for a good one, 0 for
 * the end of what there is, and -1 for a bad one: the fault is set. */
static int batch_read(rdmeta_kraft_replay_t *r, const uint8_t *p, size_t len,
                      rdmeta_kraft_batch_t *out) {
        const int32_t code = rdmeta_kraft_batch(p, len, out);

        if (code == RDMETA_KRAFT_OK)
                return 1;
        fail(r, code, out, text_of(code));
        r->fault.needed = out->size;
        return code == RDMETA_KRAFT_CUT || code == RDMETA_KRAFT_ZEROS ? 0 : -1;
}

static void fault_clear(rdmeta_kraft_replay_t *r) {
        memset(&r->fault, 0, sizeof(r->fault));
        r->fault.offset = -1;
}

/* Returns whether the end that the caller wants is before this offset or time;
 * the next batch begins at `from`. */
static int is_beyond(rdmeta_kraft_replay_t *r, int64_t from, int64_t offset,
                     int64_t time_us) {
        if (offset < r->conf.until_offset && time_us <= r->conf.until_us)
                return 0;
        r->fault.code   = RDMETA_KRAFT_REACHED;
        r->fault.offset = from;
        return 1;
}

rdmeta_err_t rdmeta_kraft_replay(rdmeta_kraft_replay_t *r, const void *bytes,
                                 size_t len, size_t *used) {
        const uint8_t *p = (const uint8_t *)bytes;
        rdmeta_kraft_ahead_t ahead = {p, len, {0}, {0}, 0};
        rdmeta_kraft_batch_t batch;
        rdmeta_err_t err = RDMETA_OK;
        int got;

        ahead.records.batch = &ahead.batch;
        fault_clear(r);
        *used = 0;
        if (r->in_snapshot)
                return RDMETA_ERR_ARGUMENT;
        for (; *used < len; *used += batch.size) {
                r->fault.byte = *used;
                if (is_beyond(r, r->state->next, r->state->next, INT64_MIN))
                        return RDMETA_OK;
                got = batch_read(r, p + *used, len - *used, &batch);
                if (got <= 0)
                        return got ? RDMETA_ERR_MALFORMED : RDMETA_OK;
                if (batch.last_offset < r->state->next)
                        continue;
                if (is_beyond(r, batch.base_offset, batch.last_offset,
                              1000 * batch.time_ms))
                        return RDMETA_OK;
                if (batch.base_offset >= r->state->next &&
                    batch.base_offset != r->begun)
                        err = batch_begin(r, &batch);
                if (!err)
                        err = batch_apply(r, &batch, &ahead);
                if (err)
                        return err;
                fault_clear(r); /* of a record that was passed over */
        }
        return RDMETA_OK;
}

/* ---- snapshots ---------------------------------------------------------- */

/* Gives a snapshot's record the place that it says something of. */
static void snapshot_record(const rdmeta_kraft_replay_t *r,
                            rdmeta_kraft_record_t *record) {
        record->offset  = r->state->snapshot_end - 1;
        record->epoch   = r->snapshot_epoch;
        record->time_us = r->snapshot_us;
}

static rdmeta_err_t snapshot_header(rdmeta_kraft_replay_t *r,
                                    const rdmeta_kraft_record_t *record) {
        rdmeta_kraft_value_t values[RDMETA_KRAFT_FIELDS];
        int64_t ms;
        int bad;

        if (!rdmeta_kraft_record_read(record, values, &bad))
                return rdmeta_kraft_refuse(r, record, RDMETA_KRAFT_BAD_RECORD,
                                           "is no header");
        ms = values[1].number;
        if (ms > INT64_MAX / 2000 || ms < -1)
                return rdmeta_kraft_refuse(r, record, RDMETA_KRAFT_BAD_RECORD,
                                           "has an impossible time");
        r->snapshot_us = 1000 * ms;
        r->batch_us    = r->snapshot_us;
        if (r->snapshot_us > r->state->time_us)
                r->state->time_us = r->snapshot_us;
        return RDMETA_OK;
}

/* Applies a batch of a snapshot; *ended is set by its footer. */
static rdmeta_err_t snapshot_batch(rdmeta_kraft_replay_t *r,
                                   const rdmeta_kraft_batch_t *batch,
                                   int32_t *ended) {
        rdmeta_kraft_records_t it;
        rdmeta_kraft_record_t record;
        rdmeta_err_t err;
        int64_t offset;
        int got, header, first;

        if (batch->base_offset > r->snapshot_next)
                return fail(r, RDMETA_KRAFT_GAP, batch,
                            "offsets before it are missing");
        rdmeta_kraft_records_init(&it, batch);
        while ((got = rdmeta_kraft_records_next(&it, &record)) > 0) {
                offset = record.offset;
                if (offset < r->snapshot_next)
                        continue;
                header = record.control &&
                         record.type == RDMETA_KRAFT_SNAPSHOT_HEADER;
                first = offset == 0;
                if (header != first || *ended)
                        return rdmeta_kraft_refuse(
                                r, &record, RDMETA_KRAFT_CONTRADICTS,
                                "is not between a header and a footer");
                snapshot_record(r, &record);
                err = header ? snapshot_header(r, &record)
                             : apply(r, &record, record.time_us);
                if (err)
                        return err;
                *ended = record.control &&
                         record.type == RDMETA_KRAFT_SNAPSHOT_FOOTER;
                r->snapshot_next = offset + 1;
        }
        if (got < 0)
                return fail(r, RDMETA_KRAFT_BAD_RECORD, batch,
                            "a record has bytes that contradict each other");
        return RDMETA_OK;
}

/* Begins a snapshot in an empty state. */
static rdmeta_err_t snapshot_begin(rdmeta_kraft_replay_t *r, int64_t end,
                                   int32_t epoch) {
        rdmeta_kraft_state_t *s = r->state;

        if (s->next || s->topics || s->brokers.count || end < 1 || epoch < 0)
                return RDMETA_ERR_ARGUMENT;
        if (!rdmeta_kraft_epoch_add(s, end - 1, epoch,
                                    epoch == r->conf.epoch ? r->conf.leader
                                                           : RDMETA_NONE))
                return RDMETA_ERR_NO_MEMORY;
        r->in_snapshot    = 1;
        r->snapshot_next  = 0;
        r->snapshot_epoch = epoch;
        s->snapshot_end   = end;
        return RDMETA_OK;
}

rdmeta_err_t rdmeta_kraft_replay_snapshot(rdmeta_kraft_replay_t *r,
                                          const void *bytes, size_t len,
                                          int64_t end, int32_t epoch,
                                          size_t *used, int32_t *ended) {
        const rdmeta_change_visit_t visit = r->changes.visit;
        const uint8_t *p                  = (const uint8_t *)bytes;
        rdmeta_kraft_batch_t batch;
        rdmeta_err_t err = RDMETA_OK;
        int got;

        fault_clear(r);
        *used  = 0;
        *ended = 0;
        if (!r->in_snapshot)
                err = snapshot_begin(r, end, epoch);
        r->changes.visit = NULL; /* a snapshot is a state, not a change */
        for (; !err && !*ended && *used < len; *used += err ? 0 : batch.size) {
                r->fault.byte = *used;
                got = batch_read(r, p + *used, len - *used, &batch);
                if (got <= 0) {
                        err = got ? RDMETA_ERR_MALFORMED : RDMETA_OK;
                        break;
                }
                err = snapshot_batch(r, &batch, ended);
                if (!err)
                        fault_clear(r);
        }
        r->changes.visit = visit;
        if (!err && *ended) {
                r->in_snapshot = 0;
                r->state->next = end;
        }
        return err;
}
