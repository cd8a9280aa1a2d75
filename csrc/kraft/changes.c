#include "kraft/changes.h"

/* Visits a record of the diff with what it does not know: the epochs. The log
 * has no offline replicas, of which the diff makes empty lists. */
static int32_t complete(void *opaque, const rdmeta_change_t *change) {
        rdmeta_kraft_changes_t *c = (rdmeta_kraft_changes_t *)opaque;
        rdmeta_change_t *r        = &c->out.record;

        memset(&r->new_offline, 0, sizeof(r->new_offline));
        memset(&r->old_offline, 0, sizeof(r->old_offline));
        if (change->partition >= 0)
                r->partition_epoch = c->partition_epoch;
        else if (change->broker >= 0)
                r->broker_epoch = c->broker_epoch;
        return c->visit(c->opaque, r);
}

void rdmeta_kraft_changes_init(rdmeta_kraft_changes_t *c,
                               const rdmeta_kraft_conf_t *conf) {
        memset(&c->out, 0, sizeof(c->out));
        c->visit                    = conf->visit;
        c->opaque                   = conf->opaque;
        c->listener                 = conf->listener;
        c->out.visit                = complete;
        c->out.opaque               = c;
        c->out.ids                  = c->ids;
        c->out.ids_each             = RDMETA_KRAFT_LIST_MAX;
        c->out.record.cluster_id    = conf->cluster_id;
        c->out.record.source        = RDMETA_SOURCE_LOG;
        c->out.record.source_broker = RDMETA_NONE;
        c->out.record.offset        = -1;
}

void rdmeta_kraft_changes_at(rdmeta_kraft_changes_t *c,
                             const rdmeta_kraft_state_t *s,
                             const rdmeta_kraft_record_t *record,
                             int64_t version, int64_t latest) {
        const rdmeta_kraft_epoch_t *e =
                rdmeta_kraft_epoch_at(s, record->offset);

        c->out.record.version       = (uint64_t)version;
        c->out.record.offset        = record->offset;
        c->out.record.source_broker = e ? e->leader : RDMETA_NONE;
        c->out.record.wall_us =
                record->time_us > latest ? record->time_us : latest;
}

int32_t rdmeta_kraft_change_topic(rdmeta_kraft_changes_t *c, int32_t kind,
                                  rdmeta_str_t name, const uint8_t *id) {
        if (!c->visit)
                return 0;
        rdmeta_diff_begin(&c->out, name, id);
        return rdmeta_diff_emit(&c->out, kind);
}

/* ---- partitions -------------------------------------------------------- */

static rdmeta_list_t list_of(const rdmeta_kraft_row_t *row, int which) {
        const rdmeta_wire_ids_t l = rdmeta_kraft_row_list(row, which);
        const rdmeta_list_t list  = {l.be, l.count, RDMETA_LIST_WIRE};

        return list;
}

static rdmeta_row_t row_of(const rdmeta_kraft_row_t *from) {
        rdmeta_row_t row = {0};

        row.id       = from->id;
        row.leader   = from->leader;
        row.last     = from->leader;
        row.epoch    = from->leader_epoch;
        row.high     = from->leader_epoch;
        row.replicas = list_of(from, RDMETA_KRAFT_REPLICAS);
        row.isr      = list_of(from, RDMETA_KRAFT_ISR);
        row.offline  = row.isr;
        row.offline.count = 0;
        return row;
}

/* Copies a list to its own place of the diff's. */
static rdmeta_ids_t ids_of(rdmeta_kraft_changes_t *c,
                           const rdmeta_kraft_row_t *row, int which) {
        const int place = which == RDMETA_KRAFT_ADDING   ? RDMETA_DIFF_ADDING
                          : which == RDMETA_KRAFT_REMOVING
                                  ? RDMETA_DIFF_REMOVING
                                  : RDMETA_DIFF_ELR;

        return rdmeta_diff_ids(&c->out, place, list_of(row, which));
}

static int list_differs(const rdmeta_kraft_row_t *a,
                        const rdmeta_kraft_row_t *b, int which) {
        return !rdmeta_list_equal(list_of(a, which), list_of(b, which));
}

static int list_has(const rdmeta_kraft_row_t *row, int which, int32_t id) {
        const rdmeta_list_t l = list_of(row, which);
        uint32_t i;

        for (i = 0; i < l.count; i++)
                if (rdmeta_list_get(l, i) == id)
                        return 1;
        return 0;
}

/* Returns whether the leader was elected although it was not in sync. The
 * controller marks such a partition as recovering. */
static int is_unclean(const rdmeta_kraft_row_t *old,
                      const rdmeta_kraft_row_t *new_) {
        if (new_->leader < 0 || !new_->recovery ||
            new_->leader_epoch == old->leader_epoch)
                return 0;
        return !old->recovery ||
               !(list_has(old, RDMETA_KRAFT_ISR, new_->leader) ||
                 list_has(old, RDMETA_KRAFT_ELR, new_->leader));
}

int32_t rdmeta_kraft_change_row_added(rdmeta_kraft_changes_t *c, int32_t kind,
                                      const rdmeta_kraft_topic_entry_t *t,
                                      const rdmeta_kraft_row_t *row) {
        const rdmeta_row_t b = row_of(row);
        rdmeta_change_t *r   = &c->out.record;

        rdmeta_diff_begin(&c->out, rdmeta_kraft_topic_name(t), t->id);
        c->partition_epoch = row->partition_epoch;
        r->new_adding      = ids_of(c, row, RDMETA_KRAFT_ADDING);
        r->new_removing    = ids_of(c, row, RDMETA_KRAFT_REMOVING);
        r->new_elr         = ids_of(c, row, RDMETA_KRAFT_ELR);
        return rdmeta_diff_row_added(&c->out, kind, &b);
}

int32_t rdmeta_kraft_change_row(rdmeta_kraft_changes_t *c,
                                const rdmeta_kraft_topic_entry_t *t,
                                const rdmeta_kraft_row_t *old,
                                const rdmeta_kraft_row_t *new_) {
        rdmeta_change_t *r = &c->out.record;
        rdmeta_row_t a, b;
        int32_t res;

        if (!c->visit)
                return 0;
        if (!old)
                return rdmeta_kraft_change_row_added(
                        c,
                        (uint64_t)t->born == r->version
                                ? RDMETA_TOPIC_ADDED
                                : RDMETA_PARTITIONS_ADDED,
                        t, new_);
        rdmeta_diff_begin(&c->out, rdmeta_kraft_topic_name(t), t->id);
        c->partition_epoch = new_->partition_epoch;
        a   = row_of(old);
        b   = row_of(new_);
        res = rdmeta_diff_row(&c->out, &a, &b);
        if (!res && is_unclean(old, new_)) {
                r->partition        = new_->id;
                r->new_leader       = new_->leader;
                r->new_leader_epoch = new_->leader_epoch;
                res = rdmeta_diff_emit(&c->out, RDMETA_UNCLEAN_ELECTION);
        }
        if (!res && (list_differs(old, new_, RDMETA_KRAFT_ADDING) ||
                     list_differs(old, new_, RDMETA_KRAFT_REMOVING))) {
                r->partition    = new_->id;
                r->new_adding   = ids_of(c, new_, RDMETA_KRAFT_ADDING);
                r->new_removing = ids_of(c, new_, RDMETA_KRAFT_REMOVING);
                res = rdmeta_diff_emit(&c->out, RDMETA_REASSIGNMENT_CHANGED);
        }
        if (!res && list_differs(old, new_, RDMETA_KRAFT_ELR)) {
                r->partition = new_->id;
                r->new_elr   = ids_of(c, new_, RDMETA_KRAFT_ELR);
                res          = rdmeta_diff_emit(&c->out, RDMETA_ELR_CHANGED);
        }
        return res;
}

/* ---- brokers ----------------------------------------------------------- */

static int32_t broker_emit(rdmeta_kraft_changes_t *c, int32_t kind,
                           const rdmeta_kraft_broker_entry_t *b) {
        c->out.record.broker = b->id;
        return rdmeta_diff_emit(&c->out, kind);
}

int32_t
rdmeta_kraft_change_broker(rdmeta_kraft_changes_t *c,
                           const rdmeta_kraft_broker_entry_t *old,
                           const rdmeta_kraft_broker_entry_t *new_) {
        const rdmeta_str_t none = {NULL, 0};
        rdmeta_broker_t b;
        int32_t res = 0;

        if (!c->visit)
                return 0;
        rdmeta_diff_begin(&c->out, none, NULL);
        rdmeta_kraft_endpoint(new_ ? new_ : old, c->listener, &b);
        c->broker_epoch = (new_ ? new_ : old)->epoch;
        if (!new_)
                return rdmeta_diff_broker(&c->out, RDMETA_BROKER_REMOVED, &b);
        if (!old || old->registration.offset != new_->registration.offset)
                res = rdmeta_diff_broker(&c->out,
                                         old ? RDMETA_BROKER_CHANGED
                                             : RDMETA_BROKER_ADDED,
                                         &b);
        if (!res && (!old || old->fenced != new_->fenced))
                res = broker_emit(c,
                                  new_->fenced ? RDMETA_BROKER_FENCED
                                               : RDMETA_BROKER_UNFENCED,
                                  new_);
        /* A registration tells it anew, for most are of another process. */
        if (!res && new_->shutting_down &&
            !(old && old->shutting_down &&
              old->registration.offset == new_->registration.offset))
                res = broker_emit(c, RDMETA_BROKER_SHUTTING_DOWN, new_);
        return res;
}

/* ---- the rest ---------------------------------------------------------- */

int32_t rdmeta_kraft_change_config(rdmeta_kraft_changes_t *c, int type,
                                   rdmeta_str_t resource,
                                   const uint8_t *topic_id,
                                   rdmeta_str_t detail) {
        const rdmeta_str_t none = {NULL, 0};

        if (!c->visit || (type != RDMETA_KRAFT_OF_TOPIC &&
                          type != RDMETA_KRAFT_OF_BROKER))
                return 0;
        rdmeta_diff_begin(&c->out,
                          type == RDMETA_KRAFT_OF_TOPIC ? resource : none,
                          topic_id);
        if (type == RDMETA_KRAFT_OF_BROKER && resource.len) {
                c->out.record.broker = rdmeta_kraft_broker_id(resource);
                if (c->out.record.broker == RDMETA_NONE)
                        return 0;
                c->broker_epoch = -1;
        }
        c->out.record.detail = detail;
        return rdmeta_diff_emit(&c->out, RDMETA_CONFIG_CHANGED);
}

int32_t rdmeta_kraft_change_controller(rdmeta_kraft_changes_t *c,
                                       int32_t leader, int32_t epoch,
                                       int64_t unseen_us) {
        const rdmeta_str_t none = {NULL, 0};

        if (!c->visit)
                return 0;
        c->broker_epoch = -1;
        rdmeta_diff_begin(&c->out, none, NULL);
        c->out.record.broker           = leader < 0 ? RDMETA_NONE : leader;
        c->out.record.source_broker    = c->out.record.broker;
        c->out.record.new_leader_epoch = epoch;
        c->out.record.unseen_us        = unseen_us;
        return rdmeta_diff_emit(&c->out, RDMETA_CONTROLLER_CHANGED);
}
