#include "store/view.h"

rdmeta_err_t rdmeta_view_state_at(const rdmeta_topic_t *t, int64_t deadline,
                                  int64_t mono_us, int stale_ok) {
        if (t->state == RDMETA_TOPIC_VALID)
                return deadline >= mono_us || stale_ok ? RDMETA_OK
                                                       : RDMETA_STALE;
        if (rdmeta_deadline_is_asked(deadline))
                return rdmeta_deadline_asked_until(deadline) >= mono_us
                               ? RDMETA_WAITING
                               : RDMETA_NOT_CACHED;
        if (deadline < mono_us)
                return RDMETA_NOT_CACHED;
        switch (t->state) {
        case RDMETA_TOPIC_WAIT:
                return RDMETA_WAITING;
        case RDMETA_TOPIC_DENIED:
                return RDMETA_DENIED;
        case RDMETA_TOPIC_BAD:
                return RDMETA_INVALID;
        default:
                return RDMETA_UNKNOWN_TOPIC;
        }
}

int32_t rdmeta_view_leader_at(const rdmeta_topic_t *t, int64_t deadline,
                              int32_t partition, int64_t mono_us,
                              int stale_ok) {
        const rdmeta_err_t err = rdmeta_view_state_at(t, deadline, mono_us,
                                                      stale_ok);
        rdmeta_row_t row;

        if (err)
                return err;
        if (!rdmeta_topic_row_of(t, partition, &row))
                return RDMETA_NO_PARTITION;
        return stale_ok ? row.last : row.leader;
}

int32_t rdmeta_view_leader_of(const rdmeta_root_t *root,
                              const rdmeta_topic_t *t, int32_t partition,
                              int64_t mono_us, int stale_ok) {
        if (!t)
                return RDMETA_NOT_CACHED;
        return rdmeta_view_leader_at(t, rdmeta_view_deadline(root, t),
                                     partition, mono_us, stale_ok);
}
