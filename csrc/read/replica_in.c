/*
 * replica_in: a replica to fetch from that is near the reader.
 *
 * The choice is that of Kafka's RackAwareReplicaSelector (KIP-392): the leader
 * if it is in the rack, otherwise an in-sync replica there, otherwise the
 * leader. Among several replicas Kafka's brokers take the one with the most
 * records. Metadata does not say which one that is, so this function takes the
 * first. An empty rack is no rack, as for brokers: it is the default of
 * client.rack.
 */
#include "read/state.h"

static int list_has(rdmeta_list_t l, int32_t id) {
        uint32_t i;

        for (i = 0; i < l.count; i++)
                if (rdmeta_list_get(l, i) == id)
                        return 1;
        return 0;
}

static int is_in_rack(const rdmeta_brokers_t *brokers, int32_t id,
                      rdmeta_str_t rack) {
        rdmeta_broker_t broker;

        return !rdmeta_brokers_find(brokers, id, &broker) &&
               broker.rack.data && rdmeta_str_same(broker.rack, rack);
}

/* Returns the replica of a row that is in the rack; without one, the leader. */
static int32_t row_replica_in(const rdmeta_row_t *row, int32_t leader,
                              const rdmeta_brokers_t *brokers,
                              rdmeta_str_t rack) {
        uint32_t i;

        if (!rack.len || is_in_rack(brokers, leader, rack))
                return leader;
        for (i = 0; i < row->replicas.count; i++) {
                const int32_t id = rdmeta_list_get(row->replicas, i);

                if (is_in_rack(brokers, id, rack) && list_has(row->isr, id) &&
                    !list_has(row->offline, id))
                        return id;
        }
        return leader;
}

int32_t rdmeta_replica_in(rdmeta_reader_t *r, const char *topic, size_t len,
                          int32_t partition, rdmeta_str_t rack,
                          int64_t mono_us) {
        const rdmeta_topic_t *t;
        rdmeta_row_t row;
        int32_t found;

        rdmeta_reader_enter(r);
        found = rdmeta_topic_find(r, topic, len, mono_us, &t);
        if (!found && !rdmeta_topic_row_of(t, partition, &row))
                found = RDMETA_NO_PARTITION;
        if (!found)
                found = r->stale_ok ? row.last : row.leader;
        if (found >= 0)
                found = row_replica_in(&row, found, rdmeta_brokers(r), rack);
        rdmeta_reader_leave(r);
        return found;
}
