/*
 * diff_table: names of sources and kinds, and the columns of change records.
 *
 * tools/change_table.py writes it from rdmeta/_change_table.py.
 */
#pragma once

/* The names, in the order of their numbers. */
#define RDMETA_SOURCE_NAMES(X) \
        X("poll") \
        X("hint") \
        X("log") \
        X("expiry") \
        X("purge")

#define RDMETA_KIND_NAMES(X) \
        X("topic_added") \
        X("topic_absent") \
        X("topic_removed") \
        X("topic_recreated") \
        X("topic_error") \
        X("partitions_added") \
        X("leader_changed") \
        X("isr_changed") \
        X("replicas_changed") \
        X("offline_changed") \
        X("broker_added") \
        X("broker_removed") \
        X("broker_changed") \
        X("cluster_changed") \
        X("config_changed") \
        X("resync") \
        X("observed_from") \
        X("observed_to") \
        X("internal_changed") \
        X("operations_changed") \
        X("topic_id_learned") \
        X("leader_epoch_changed") \
        X("partition_error") \
        X("cluster_id_learned") \
        X("broker_fenced") \
        X("broker_unfenced") \
        X("broker_shutting_down") \
        X("reassignment_changed") \
        X("elr_changed") \
        X("unclean_election") \
        X("controller_changed")

/* The columns in their order, each with its type in Arrow. */
#define RDMETA_CHANGE_COLUMNS(X) \
        X(version, INT64) \
        X(cluster_id, STRING) \
        X(session, STRING) \
        X(observed_at, TIME) \
        X(source, STRING) \
        X(source_broker, INT32) \
        X(kind, STRING) \
        X(topic, STRING) \
        X(topic_id, STRING) \
        X(partition, INT32) \
        X(broker, INT32) \
        X(old_leader, INT32) \
        X(new_leader, INT32) \
        X(old_leader_epoch, INT32) \
        X(new_leader_epoch, INT32) \
        X(old_isr, IDS) \
        X(new_isr, IDS) \
        X(old_replicas, IDS) \
        X(new_replicas, IDS) \
        X(offset, INT64) \
        X(detail, STRING) \
        X(old_offline, IDS) \
        X(new_offline, IDS) \
        X(partition_epoch, INT32) \
        X(broker_epoch, INT64) \
        X(new_adding, IDS) \
        X(new_removing, IDS) \
        X(new_elr, IDS) \
        X(unseen_us, INT64)
