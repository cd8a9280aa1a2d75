/*
 * fold_fixture: a fold in text form, and Arrow batches of change records.
 *
 *     rdmeta_fold_t *f = fw_new(NULL);
 *     fw_say(f, 7, RDMETA_OBSERVED_FROM, NULL, -1, 0);
 *     fw_check(f, RDMETA_FOLD_PARTITION_INTERVAL, "...\n");
 */
#pragma once

#include "support/arrow_fixture.h"

#include "rdmeta_fold.h"

#define FW_DAY INT64_C(86400000000)
#define FW_NOON (20000 * FW_DAY + FW_DAY / 2)

/* Returns a fold of cluster `c` and origin `o`; `heap` NULL: of malloc. */
static TEST_UNUSED rdmeta_fold_t *fw_new(test_heap_t *heap) {
        rdmeta_fold_conf_t conf;
        rdmeta_fold_t *f = NULL;

        rdmeta_fold_conf_init(&conf);
        conf.cluster_id = test_str("c");
        conf.origin     = test_str("o");
        if (heap)
                conf.allocator = test_allocator(heap);
        CHECK(rdmeta_fold_new(&conf, &f) == RDMETA_OK);
        return f;
}

/* Returns a record of a partition with replicas 1 and 2, led by `leader`. */
static TEST_UNUSED rdmeta_change_t fw_record(uint64_t version, int32_t kind,
                                             const char *topic,
                                             int32_t partition,
                                             int32_t leader) {
        static const int32_t ids[] = {2, 1};
        rdmeta_change_t c          = {.kind = kind};

        c.version            = version;
        c.wall_us            = FW_NOON + 1000 * (int64_t)version;
        c.source_broker      = RDMETA_NONE;
        c.broker             = RDMETA_NONE;
        c.partition          = partition;
        c.old_leader         = RDMETA_NONE;
        c.new_leader         = leader;
        c.new_leader_epoch   = 4;
        c.old_leader_epoch   = RDMETA_NONE;
        c.offset             = -1;
        c.broker_epoch       = -1;
        c.partition_epoch    = RDMETA_NONE;
        c.topic              = test_str(topic);
        c.new_isr.ids        = ids;
        c.new_isr.count      = 2;
        c.new_replicas.ids   = ids;
        c.new_replicas.count = 2;
        return c;
}

/* Checks that a table has these rows, which the fold then drops. */
static TEST_UNUSED void fw_check(rdmeta_fold_t *f, int32_t table,
                                 const char *wanted) {
        struct ArrowArrayStream s;
        aw_text_t t;

        CHECK(rdmeta_fold_take(f, table, &s) == RDMETA_OK);
        t = aw_read(&s);
        if (strcmp(t.data ? t.data : "", wanted))
                fprintf(stderr, "found:\n%s\nwanted:\n%s\n", t.data, wanted);
        CHECK(!strcmp(t.data ? t.data : "", wanted));
        aw_free(&t);
}
