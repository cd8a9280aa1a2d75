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
        /** the metadata log; nothing makes it yet */
        RDMETA_SOURCE_LOG = 2,
        /** a deadline */
        RDMETA_SOURCE_EXPIRY = 3,
        /** rdmeta_cache_purge() */
        RDMETA_SOURCE_PURGE = 4
};

/** The kind of a change. */
enum {
        /** valid, and it was not before */
        RDMETA_TOPIC_ADDED = 0,
        /** missing from an answer about all topics */
        RDMETA_TOPIC_ABSENT = 1,
        /** gone */
        RDMETA_TOPIC_REMOVED = 2,
        /** another topic of the same name */
        RDMETA_TOPIC_RECREATED = 3,
        /** unknown, denied or invalid; detail: the error */
        RDMETA_TOPIC_ERROR = 4,
        /** one record per partition */
        RDMETA_PARTITIONS_ADDED = 5,
        /** another leader, or a later leader epoch */
        RDMETA_LEADER_CHANGED = 6,
        /** the in-sync replicas, as a set */
        RDMETA_ISR_CHANGED = 7,
        /** the replicas, or their order */
        RDMETA_REPLICAS_CHANGED = 8,
        /** the offline replicas, as a set */
        RDMETA_OFFLINE_CHANGED = 9,
        /** detail: host:port and rack */
        RDMETA_BROKER_ADDED = 10,
        /** detail: host:port and rack */
        RDMETA_BROKER_REMOVED = 11,
        /** detail: host:port and rack */
        RDMETA_BROKER_CHANGED = 12,
        /** another cluster's id; detail: the old id */
        RDMETA_CLUSTER_CHANGED = 13,
        /** a topic's configuration; nothing makes it yet */
        RDMETA_CONFIG_CHANGED = 14,
        /** changes were lost; detail: why; recorders make it */
        RDMETA_RESYNC = 15,
        /** a recording begins; recorders make it */
        RDMETA_OBSERVED_FROM = 16,
        /** a recording ends; recorders make it */
        RDMETA_OBSERVED_TO = 17,
        /** is_internal; detail: true or false */
        RDMETA_INTERNAL_CHANGED = 18,
        /** authorized operations (KIP-430); detail: the bit field */
        RDMETA_OPERATIONS_CHANGED = 19,
        /** the same topic, whose id was not known */
        RDMETA_TOPIC_ID_LEARNED = 20,
        /** the leader epoch became known, or unknown */
        RDMETA_LEADER_EPOCH_CHANGED = 21,
        /** a partition's error; detail: the error, or NONE */
        RDMETA_PARTITION_ERROR = 22,
        /** the same cluster, whose id was not known; detail: the id */
        RDMETA_CLUSTER_ID_LEARNED = 23
};

#endif /* RDMETA_KINDS_H */
