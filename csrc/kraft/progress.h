/*
 * progress: where a replay is. It applies a log to a state, commit by commit.
 *
 *     batch  | r r r | Begin r r | r r End r |       a log
 *              `- 1 -'                     `- 3: the rest of the batch
 *                            `-- 2 ---'           the transaction, at its End
 *
 * A record is applied whole or not at all, and the state's offset moves behind
 * it. So a call that failed goes on where it ended. A transaction's records are
 * kept until its End, and dropped at its Abort; nothing of them is seen before.
 */
#pragma once

#include "kraft/changes.h"

/* A record of the open transaction; its value follows. */
typedef struct rdmeta_kraft_pending {
        struct rdmeta_kraft_pending *next;
        rdmeta_kraft_record_t record;
        int64_t latest; /* the latest time before it */
        uint8_t value[];
} rdmeta_kraft_pending_t;

struct rdmeta_kraft_replay {
        rdmeta_kraft_conf_t conf;
        rdmeta_kraft_state_t *state;
        rdmeta_kraft_changes_t changes;
        rdmeta_kraft_fault_t fault;
        rdmeta_kraft_pending_t *first, **last; /* of the open transaction */
        uint64_t pending;
        int64_t transaction; /* the offset of its begin; -1: none */
        int64_t version;     /* the offset behind the current commit */
        int64_t batch_us;    /* the time of the last batch; INT64_MIN */
        int64_t before_epoch_us; /* of the last one of the epoch before */
        int64_t begun;       /* the offset of the last batch that began */
        uint8_t *scratch;    /* for keys and details */
        size_t scratch_size;
        /* The snapshot that is being read; its offsets are its own. */
        int in_snapshot;
        int64_t snapshot_next, snapshot_us;
        int32_t snapshot_epoch;
};
