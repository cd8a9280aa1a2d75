/*
 * rdmeta: the sources and kinds of changes. Part of rdmeta_change.h.
 *
 * tools/change_table.py writes it from rdmeta/_change_table.py.
 * The lists only grow, at their ends. Threads: there is no function here.
 */
#ifndef RDMETA_KINDS_H
#define RDMETA_KINDS_H

/** The source of a change. */
enum {
        /** an answer */
        RDMETA_SOURCE_POLL = 0,
        /** a leader hint (KIP-951) */
        RDMETA_SOURCE_HINT = 1,
        /** the metadata log */
        RDMETA_SOURCE_LOG = 2,
        /** a deadline */
        RDMETA_SOURCE_EXPIRY = 3,
        /** rdmeta_cache_purge() */
        RDMETA_SOURCE_PURGE = 4
};

/** The kind of a change. */
enum {
        /** the topic became valid */
        RDMETA_TOPIC_ADDED = 0,
        /** a broker does not have the topic any more */
        RDMETA_TOPIC_ABSENT = 1,
        /** the topic was removed from the cache */
        RDMETA_TOPIC_REMOVED = 2,
        /** another topic has the same name now */
        RDMETA_TOPIC_RECREATED = 3,
        /** unknown, denied or invalid; detail: the error */
        RDMETA_TOPIC_ERROR = 4,
        /** the topic has more partitions; one record each */
        RDMETA_PARTITIONS_ADDED = 5,
        /** another leader, or a later leader epoch */
        RDMETA_LEADER_CHANGED = 6,
        /** the in-sync replicas changed, as a set */
        RDMETA_ISR_CHANGED = 7,
        /** the replicas or their order changed */
        RDMETA_REPLICAS_CHANGED = 8,
        /** the offline replicas changed, as a set */
        RDMETA_OFFLINE_CHANGED = 9,
        /** detail: host:port and rack */
        RDMETA_BROKER_ADDED = 10,
        /** detail: host:port and rack */
        RDMETA_BROKER_REMOVED = 11,
        /** detail: host:port and rack */
        RDMETA_BROKER_CHANGED = 12,
        /** the cluster id changed; detail: the old id */
        RDMETA_CLUSTER_CHANGED = 13,
        /** detail: KEY=VALUE, or KEY alone: not known; recorders make it and
         *  the metadata log has it */
        RDMETA_CONFIG_CHANGED = 14,
        /** changes were lost; detail: the reason; recorders make it */
        RDMETA_RESYNC = 15,
        /** a recording begins; recorders make it */
        RDMETA_OBSERVED_FROM = 16,
        /** a recording ends; recorders make it */
        RDMETA_OBSERVED_TO = 17,
        /** is_internal changed; detail: true or false */
        RDMETA_INTERNAL_CHANGED = 18,
        /** authorized operations (KIP-430); detail: the bit field */
        RDMETA_OPERATIONS_CHANGED = 19,
        /** the same topic: its id became known */
        RDMETA_TOPIC_ID_LEARNED = 20,
        /** the leader epoch became known, or unknown */
        RDMETA_LEADER_EPOCH_CHANGED = 21,
        /** a partition's error changed; detail: the error, or NONE */
        RDMETA_PARTITION_ERROR = 22,
        /** the same cluster: its id became known; detail: the id */
        RDMETA_CLUSTER_ID_LEARNED = 23,
        /** the controller fenced the broker; the metadata log has it */
        RDMETA_BROKER_FENCED = 24,
        /** the broker may lead and be asked; the metadata log has it */
        RDMETA_BROKER_UNFENCED = 25,
        /** the broker began a controlled shutdown; the metadata log has it */
        RDMETA_BROKER_SHUTTING_DOWN = 26,
        /** replicas to add or to remove changed; the metadata log has it */
        RDMETA_REASSIGNMENT_CHANGED = 27,
        /** the eligible leader replicas changed, as a set (KIP-966); the
         *  metadata log has it */
        RDMETA_ELR_CHANGED = 28,
        /** the new leader was not in sync; beside its leader_changed; the
         *  metadata log has it */
        RDMETA_UNCLEAN_ELECTION = 29,
        /** another leader of the controllers, or a later epoch; the metadata
         *  log has it */
        RDMETA_CONTROLLER_CHANGED = 30
};

#endif /* RDMETA_KINDS_H */
