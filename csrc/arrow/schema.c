#include "arrow/schema.h"

#include "topic/diff_table.h"
#include "vendor/nanoarrow/nanoarrow.h"

#define FIELD(name, type) {name, RDMETA_ARROW_##type, 0}
#define MAYBE(name, type) {name, RDMETA_ARROW_##type, 1}

static const rdmeta_arrow_field_t brokers[] = {
        FIELD("broker", INT32),    FIELD("host", STRING),
        FIELD("port", INT32),      MAYBE("rack", STRING),
        FIELD("controller", BOOL), MAYBE("cluster_id", STRING)};

static const rdmeta_arrow_field_t topics[] = {
        FIELD("topic", STRING),        MAYBE("topic_id", STRING),
        FIELD("internal", BOOL),       FIELD("partitions", INT32),
        FIELD("error", INT16),         MAYBE("operations", INT32),
        FIELD("version", INT64),       FIELD("state", STRING),
        MAYBE("source_broker", INT32), MAYBE("reason", STRING),
        MAYBE("age", DOUBLE)};

static const rdmeta_arrow_field_t partitions[] = {
        FIELD("topic", STRING),      MAYBE("topic_id", STRING),
        FIELD("partition", INT32),   MAYBE("leader", INT32),
        MAYBE("leader_epoch", INT32), FIELD("replicas", IDS),
        FIELD("isr", IDS),           FIELD("offline_replicas", IDS),
        FIELD("error", INT16),       FIELD("unreachable", BOOL),
        FIELD("leaderless", BOOL),   FIELD("stale", BOOL)};

static const rdmeta_arrow_field_t replicas[] = {
        FIELD("topic", STRING),    MAYBE("topic_id", STRING),
        FIELD("partition", INT32), FIELD("broker", INT32),
        FIELD("position", INT32),  FIELD("leader", BOOL),
        FIELD("in_sync", BOOL),    FIELD("offline", BOOL),
        FIELD("preferred", BOOL)};

#define COLUMN(name, type) MAYBE(#name, type),

static const rdmeta_arrow_field_t changes[] = {RDMETA_CHANGE_COLUMNS(COLUMN)};

/* ---- tables of a fold ---------------------------------------------------- */

#define INTERVAL                                                        \
        FIELD("began_at", TIME), FIELD("ended_at", TIME),               \
        FIELD("us", INT64), FIELD("began_by", STRING),                  \
        FIELD("ended_by", STRING), MAYBE("unseen_us", INT64),           \
        MAYBE("source", STRING), FIELD("origin", STRING),               \
        FIELD("version", INT64), MAYBE("offset", INT64),                \
        FIELD("partial", BOOL)

static const rdmeta_arrow_field_t partition_interval[] = {
        FIELD("cluster_id", STRING), FIELD("topic", STRING),
        MAYBE("topic_id", STRING),   FIELD("partition", INT32),
        MAYBE("leader", INT32),      MAYBE("leader_epoch", INT32),
        MAYBE("partition_epoch", INT32), MAYBE("isr", IDS),
        MAYBE("replicas", IDS),      MAYBE("adding", IDS),
        MAYBE("removing", IDS),      MAYBE("elr", IDS),
        MAYBE("offline", IDS),       MAYBE("min_isr", INT32),
        MAYBE("racks", INT32),       INTERVAL};

static const rdmeta_arrow_field_t broker_interval[] = {
        FIELD("cluster_id", STRING), FIELD("broker", INT32),
        MAYBE("broker_epoch", INT64), MAYBE("rack", STRING),
        FIELD("host", STRING),       FIELD("port", INT32),
        MAYBE("fenced", BOOL),       MAYBE("shutting_down", BOOL),
        INTERVAL};

static const rdmeta_arrow_field_t topic_interval[] = {
        FIELD("cluster_id", STRING), FIELD("topic", STRING),
        MAYBE("topic_id", STRING), FIELD("partitions", INT32), INTERVAL};

static const rdmeta_arrow_field_t config_interval[] = {
        FIELD("cluster_id", STRING), FIELD("resource_type", STRING),
        FIELD("resource", STRING), FIELD("key", STRING),
        FIELD("value", STRING), INTERVAL};

static const rdmeta_arrow_field_t controller[] = {
        FIELD("cluster_id", STRING), MAYBE("broker", INT32),
        FIELD("epoch", INT32), INTERVAL};

static const rdmeta_arrow_field_t leader_change[] = {
        FIELD("cluster_id", STRING),      FIELD("topic", STRING),
        MAYBE("topic_id", STRING),        FIELD("partition", INT32),
        FIELD("observed_at", TIME),       MAYBE("old_leader", INT32),
        MAYBE("new_leader", INT32),       MAYBE("old_leader_epoch", INT32),
        MAYBE("new_leader_epoch", INT32), MAYBE("elections", INT32),
        MAYBE("source", STRING),          MAYBE("source_broker", INT32),
        MAYBE("unseen_us", INT64),        FIELD("origin", STRING),
        FIELD("version", INT64),          MAYBE("offset", INT64),
        FIELD("recordings", INT32),       FIELD("partial", BOOL)};

static const rdmeta_arrow_field_t change[] = {
        FIELD("cluster_id", STRING),  FIELD("kind", STRING),
        MAYBE("topic", STRING),       MAYBE("topic_id", STRING),
        MAYBE("partition", INT32),    MAYBE("broker", INT32),
        FIELD("observed_at", TIME),   MAYBE("source", STRING),
        MAYBE("source_broker", INT32), MAYBE("old_isr", IDS),
        MAYBE("new_isr", IDS),        MAYBE("old_replicas", IDS),
        MAYBE("new_replicas", IDS),   MAYBE("old_offline", IDS),
        MAYBE("new_offline", IDS),    MAYBE("detail", STRING),
        MAYBE("unseen_us", INT64),    FIELD("origin", STRING),
        FIELD("version", INT64),      MAYBE("offset", INT64),
        FIELD("partial", BOOL)};

#define FITS(fields)                                                         \
        _Static_assert(sizeof(fields) / sizeof((fields)[0]) <=               \
                               RDMETA_ARROW_COLUMNS,                         \
                       "a batch has room for all columns")

FITS(changes);
FITS(partition_interval);
FITS(change);

#define TABLE(fields) {fields, sizeof(fields) / sizeof((fields)[0])}

static const struct {
        const rdmeta_arrow_field_t *fields;
        int n;
} tables[] = {TABLE(brokers),
              TABLE(topics),
              TABLE(partitions),
              TABLE(replicas),
              TABLE(changes),
              [RDMETA_FOLD_PARTITION_INTERVAL] = TABLE(partition_interval),
              [RDMETA_FOLD_BROKER_INTERVAL]    = TABLE(broker_interval),
              [RDMETA_FOLD_TOPIC_INTERVAL]     = TABLE(topic_interval),
              [RDMETA_FOLD_CONFIG_INTERVAL]    = TABLE(config_interval),
              [RDMETA_FOLD_LEADER_CHANGE]      = TABLE(leader_change),
              [RDMETA_FOLD_CHANGE]             = TABLE(change),
              [RDMETA_FOLD_CONTROLLER]         = TABLE(controller)};

const rdmeta_arrow_field_t *rdmeta_arrow_fields(int32_t table, int *n) {
        if (table < 0 || (size_t)table >= sizeof(tables) / sizeof(tables[0]))
                return NULL;
        *n = tables[table].n;
        return tables[table].fields;
}

static int schema_type(struct ArrowSchema *s, rdmeta_arrow_type_t type) {
        static const enum ArrowType plain[] = {
                [RDMETA_ARROW_BOOL]   = NANOARROW_TYPE_BOOL,
                [RDMETA_ARROW_INT16]  = NANOARROW_TYPE_INT16,
                [RDMETA_ARROW_INT32]  = NANOARROW_TYPE_INT32,
                [RDMETA_ARROW_INT64]  = NANOARROW_TYPE_INT64,
                [RDMETA_ARROW_DOUBLE] = NANOARROW_TYPE_DOUBLE,
                [RDMETA_ARROW_STRING] = NANOARROW_TYPE_STRING,
                [RDMETA_ARROW_IDS]    = NANOARROW_TYPE_LIST};
        int err;

        if (type == RDMETA_ARROW_TIME)
                return ArrowSchemaSetTypeDateTime(
                        s, NANOARROW_TYPE_TIMESTAMP,
                        NANOARROW_TIME_UNIT_MICRO, "UTC");
        err = ArrowSchemaSetType(s, plain[type]);
        if (!err && type == RDMETA_ARROW_IDS)
                err = ArrowSchemaSetType(s->children[0],
                                         NANOARROW_TYPE_INT32);
        return err;
}

static int schema_make(struct ArrowSchema *s,
                       const rdmeta_arrow_field_t *fields, int n) {
        int i, err = ArrowSchemaSetTypeStruct(s, n);

        for (i = 0; i < n && !err; i++) {
                struct ArrowSchema *child = s->children[i];
                err = schema_type(child, fields[i].type);
                if (!err)
                        err = ArrowSchemaSetName(child, fields[i].name);
                if (!fields[i].nullable)
                        child->flags &= ~(int64_t)ARROW_FLAG_NULLABLE;
        }
        return err;
}

rdmeta_err_t rdmeta_arrow_schema(int32_t table, struct ArrowSchema *out) {
        const rdmeta_arrow_field_t *fields;
        struct ArrowSchema s;
        int n;

        fields = rdmeta_arrow_fields(table, &n);
        if (!fields || !out)
                return RDMETA_ERR_ARGUMENT;
        ArrowSchemaInit(&s);
        if (schema_make(&s, fields, n)) { /* the only possible error */
                ArrowSchemaRelease(&s);
                return RDMETA_ERR_NO_MEMORY;
        }
        ArrowSchemaMove(&s, out);
        return RDMETA_OK;
}
