/*
 * rdmeta: the functions of the table of rdmeta_api.h, in its order.
 *
 * tools/api_table.py writes it from the other headers. The list only grows, at
 * its end. Threads: see the declaration of each function.
 */
#ifndef RDMETA_API_CALLS_H
#define RDMETA_API_CALLS_H

#define RDMETA_API_CALLS(F) \
        F(rdmeta_abi_version) F(rdmeta_conf_init) F(rdmeta_cache_new) \
        F(rdmeta_cache_ref) F(rdmeta_cache_unref) F(rdmeta_cache_apply) \
        F(rdmeta_cache_apply_failure) F(rdmeta_cache_apply_leader_hint) \
        F(rdmeta_cache_hint) F(rdmeta_cache_purge_hints) \
        F(rdmeta_cache_purge) F(rdmeta_cache_sweep) F(rdmeta_cache_version) \
        F(rdmeta_cache_stats) F(rdmeta_err_name) F(rdmeta_change_kind_name) \
        F(rdmeta_source_name) F(rdmeta_cache_wait) F(rdmeta_cache_interrupt) \
        F(rdmeta_watch_new) F(rdmeta_watch_destroy) F(rdmeta_cache_changes) \
        F(rdmeta_reader_new) F(rdmeta_reader_destroy) F(rdmeta_reader_enter) \
        F(rdmeta_reader_leave) F(rdmeta_leader) F(rdmeta_leaders) \
        F(rdmeta_partition) F(rdmeta_topic_find) F(rdmeta_topic_find_id) \
        F(rdmeta_topic_info) F(rdmeta_topic_partition_at) F(rdmeta_brokers) \
        F(rdmeta_brokers_count) F(rdmeta_brokers_at) F(rdmeta_brokers_find) \
        F(rdmeta_brokers_cluster_id) F(rdmeta_brokers_controller) \
        F(rdmeta_reader_walk) F(rdmeta_metadata_request_encode) \
        F(rdmeta_metadata_response_decode) F(rdmeta_resolve) \
        F(rdmeta_handle_ref) F(rdmeta_handle_release) F(rdmeta_handle_topic) \
        F(rdmeta_handle_leader) F(rdmeta_handle_find) \
        F(rdmeta_handle_partition_for) F(rdmeta_murmur2) \
        F(rdmeta_cache_image) F(rdmeta_image_ref) F(rdmeta_image_unref) \
        F(rdmeta_image_reader) F(rdmeta_image_info) F(rdmeta_image_diff) \
        F(rdmeta_image_save) F(rdmeta_image_open) F(rdmeta_image_verify) \
        F(rdmeta_cache_load) F(rdmeta_attach_new) F(rdmeta_attach_destroy) \
        F(rdmeta_attach_reader) F(rdmeta_attach_image) F(rdmeta_arrow_schema) \
        F(rdmeta_reader_arrow) F(rdmeta_arrow_changes_new) \
        F(rdmeta_arrow_changes_add) F(rdmeta_arrow_changes_stream) \
        F(rdmeta_arrow_changes_destroy) F(rdmeta_cache_arrow_changes) \
        F(rdmeta_image_arrow_diff) F(rdmeta_reader_image) \
        F(rdmeta_partition_for) F(rdmeta_watch_answers) \
        F(rdmeta_image_changed) F(rdmeta_attach_stats) F(rdmeta_image_fault) \
        F(rdmeta_image_file_fault) F(rdmeta_cache_request_sent) \
        F(rdmeta_cache_due) F(rdmeta_cache_forget) F(rdmeta_cache_resolved) \
        F(rdmeta_replica_in) F(rdmeta_reader_health) \
        F(rdmeta_cache_changes_whole) F(rdmeta_image_changes) \
        F(rdmeta_fold_conf_init) F(rdmeta_fold_new) F(rdmeta_fold_destroy) \
        F(rdmeta_fold_change) F(rdmeta_fold_visit) F(rdmeta_fold_batch) \
        F(rdmeta_fold_cut) F(rdmeta_fold_end) F(rdmeta_fold_save) \
        F(rdmeta_fold_take) F(rdmeta_fold_stats) F(rdmeta_fold_error) \
        F(rdmeta_crc32) F(rdmeta_key_partition) F(rdmeta_key_partitions) \
        F(rdmeta_kraft_batch) F(rdmeta_kraft_record_json) \
        F(rdmeta_kraft_is_sensitive) F(rdmeta_kraft_conf_init) \
        F(rdmeta_kraft_replay_new) F(rdmeta_kraft_replay_destroy) \
        F(rdmeta_kraft_replay) F(rdmeta_kraft_replay_snapshot) \
        F(rdmeta_kraft_fault) F(rdmeta_kraft_replay_state) \
        F(rdmeta_kraft_info) F(rdmeta_kraft_topic_find) \
        F(rdmeta_kraft_topic_find_id) F(rdmeta_kraft_topic_next) \
        F(rdmeta_kraft_partition_find) F(rdmeta_kraft_partition_at) \
        F(rdmeta_kraft_broker_find) F(rdmeta_kraft_broker_next) \
        F(rdmeta_kraft_fact_next) F(rdmeta_kraft_directory_id) \
        F(rdmeta_kraft_record_next) F(rdmeta_kraft_record_about) \
        F(rdmeta_kraft_type_name) F(rdmeta_kraft_answer) \
        F(rdmeta_kraft_answer_free) F(rdmeta_kraft_state_changes) \
        F(rdmeta_kraft_replay_until) F(rdmeta_metadata_response_encode)

/* rdmeta_api.h defines it in extensions, which do not link the functions. */
#ifdef RDMETA_API_ROUTED
#define rdmeta_abi_version(...) (rdmeta_api->rdmeta_abi_version(__VA_ARGS__))
#define rdmeta_conf_init(...) (rdmeta_api->rdmeta_conf_init(__VA_ARGS__))
#define rdmeta_cache_new(...) (rdmeta_api->rdmeta_cache_new(__VA_ARGS__))
#define rdmeta_cache_ref(...) (rdmeta_api->rdmeta_cache_ref(__VA_ARGS__))
#define rdmeta_cache_unref(...) (rdmeta_api->rdmeta_cache_unref(__VA_ARGS__))
#define rdmeta_cache_apply(...) (rdmeta_api->rdmeta_cache_apply(__VA_ARGS__))
#define rdmeta_cache_apply_failure(...) \
        (rdmeta_api->rdmeta_cache_apply_failure(__VA_ARGS__))
#define rdmeta_cache_apply_leader_hint(...) \
        (rdmeta_api->rdmeta_cache_apply_leader_hint(__VA_ARGS__))
#define rdmeta_cache_hint(...) (rdmeta_api->rdmeta_cache_hint(__VA_ARGS__))
#define rdmeta_cache_purge_hints(...) \
        (rdmeta_api->rdmeta_cache_purge_hints(__VA_ARGS__))
#define rdmeta_cache_purge(...) (rdmeta_api->rdmeta_cache_purge(__VA_ARGS__))
#define rdmeta_cache_sweep(...) (rdmeta_api->rdmeta_cache_sweep(__VA_ARGS__))
#define rdmeta_cache_version(...) \
        (rdmeta_api->rdmeta_cache_version(__VA_ARGS__))
#define rdmeta_cache_stats(...) (rdmeta_api->rdmeta_cache_stats(__VA_ARGS__))
#define rdmeta_err_name(...) (rdmeta_api->rdmeta_err_name(__VA_ARGS__))
#define rdmeta_change_kind_name(...) \
        (rdmeta_api->rdmeta_change_kind_name(__VA_ARGS__))
#define rdmeta_source_name(...) (rdmeta_api->rdmeta_source_name(__VA_ARGS__))
#define rdmeta_cache_wait(...) (rdmeta_api->rdmeta_cache_wait(__VA_ARGS__))
#define rdmeta_cache_interrupt(...) \
        (rdmeta_api->rdmeta_cache_interrupt(__VA_ARGS__))
#define rdmeta_watch_new(...) (rdmeta_api->rdmeta_watch_new(__VA_ARGS__))
#define rdmeta_watch_destroy(...) \
        (rdmeta_api->rdmeta_watch_destroy(__VA_ARGS__))
#define rdmeta_cache_changes(...) \
        (rdmeta_api->rdmeta_cache_changes(__VA_ARGS__))
#define rdmeta_reader_new(...) (rdmeta_api->rdmeta_reader_new(__VA_ARGS__))
#define rdmeta_reader_destroy(...) \
        (rdmeta_api->rdmeta_reader_destroy(__VA_ARGS__))
#define rdmeta_reader_enter(...) (rdmeta_api->rdmeta_reader_enter(__VA_ARGS__))
#define rdmeta_reader_leave(...) (rdmeta_api->rdmeta_reader_leave(__VA_ARGS__))
#define rdmeta_leader(...) (rdmeta_api->rdmeta_leader(__VA_ARGS__))
#define rdmeta_leaders(...) (rdmeta_api->rdmeta_leaders(__VA_ARGS__))
#define rdmeta_partition(...) (rdmeta_api->rdmeta_partition(__VA_ARGS__))
#define rdmeta_topic_find(...) (rdmeta_api->rdmeta_topic_find(__VA_ARGS__))
#define rdmeta_topic_find_id(...) \
        (rdmeta_api->rdmeta_topic_find_id(__VA_ARGS__))
#define rdmeta_topic_info(...) (rdmeta_api->rdmeta_topic_info(__VA_ARGS__))
#define rdmeta_topic_partition_at(...) \
        (rdmeta_api->rdmeta_topic_partition_at(__VA_ARGS__))
#define rdmeta_brokers(...) (rdmeta_api->rdmeta_brokers(__VA_ARGS__))
#define rdmeta_brokers_count(...) \
        (rdmeta_api->rdmeta_brokers_count(__VA_ARGS__))
#define rdmeta_brokers_at(...) (rdmeta_api->rdmeta_brokers_at(__VA_ARGS__))
#define rdmeta_brokers_find(...) (rdmeta_api->rdmeta_brokers_find(__VA_ARGS__))
#define rdmeta_brokers_cluster_id(...) \
        (rdmeta_api->rdmeta_brokers_cluster_id(__VA_ARGS__))
#define rdmeta_brokers_controller(...) \
        (rdmeta_api->rdmeta_brokers_controller(__VA_ARGS__))
#define rdmeta_reader_walk(...) (rdmeta_api->rdmeta_reader_walk(__VA_ARGS__))
#define rdmeta_metadata_request_encode(...) \
        (rdmeta_api->rdmeta_metadata_request_encode(__VA_ARGS__))
#define rdmeta_metadata_response_decode(...) \
        (rdmeta_api->rdmeta_metadata_response_decode(__VA_ARGS__))
#define rdmeta_resolve(...) (rdmeta_api->rdmeta_resolve(__VA_ARGS__))
#define rdmeta_handle_ref(...) (rdmeta_api->rdmeta_handle_ref(__VA_ARGS__))
#define rdmeta_handle_release(...) \
        (rdmeta_api->rdmeta_handle_release(__VA_ARGS__))
#define rdmeta_handle_topic(...) (rdmeta_api->rdmeta_handle_topic(__VA_ARGS__))
#define rdmeta_handle_leader(...) \
        (rdmeta_api->rdmeta_handle_leader(__VA_ARGS__))
#define rdmeta_handle_find(...) (rdmeta_api->rdmeta_handle_find(__VA_ARGS__))
#define rdmeta_handle_partition_for(...) \
        (rdmeta_api->rdmeta_handle_partition_for(__VA_ARGS__))
#define rdmeta_murmur2(...) (rdmeta_api->rdmeta_murmur2(__VA_ARGS__))
#define rdmeta_cache_image(...) (rdmeta_api->rdmeta_cache_image(__VA_ARGS__))
#define rdmeta_image_ref(...) (rdmeta_api->rdmeta_image_ref(__VA_ARGS__))
#define rdmeta_image_unref(...) (rdmeta_api->rdmeta_image_unref(__VA_ARGS__))
#define rdmeta_image_reader(...) (rdmeta_api->rdmeta_image_reader(__VA_ARGS__))
#define rdmeta_image_info(...) (rdmeta_api->rdmeta_image_info(__VA_ARGS__))
#define rdmeta_image_diff(...) (rdmeta_api->rdmeta_image_diff(__VA_ARGS__))
#define rdmeta_image_save(...) (rdmeta_api->rdmeta_image_save(__VA_ARGS__))
#define rdmeta_image_open(...) (rdmeta_api->rdmeta_image_open(__VA_ARGS__))
#define rdmeta_image_verify(...) (rdmeta_api->rdmeta_image_verify(__VA_ARGS__))
#define rdmeta_cache_load(...) (rdmeta_api->rdmeta_cache_load(__VA_ARGS__))
#define rdmeta_attach_new(...) (rdmeta_api->rdmeta_attach_new(__VA_ARGS__))
#define rdmeta_attach_destroy(...) \
        (rdmeta_api->rdmeta_attach_destroy(__VA_ARGS__))
#define rdmeta_attach_reader(...) \
        (rdmeta_api->rdmeta_attach_reader(__VA_ARGS__))
#define rdmeta_attach_image(...) (rdmeta_api->rdmeta_attach_image(__VA_ARGS__))
#define rdmeta_arrow_schema(...) (rdmeta_api->rdmeta_arrow_schema(__VA_ARGS__))
#define rdmeta_reader_arrow(...) (rdmeta_api->rdmeta_reader_arrow(__VA_ARGS__))
#define rdmeta_arrow_changes_new(...) \
        (rdmeta_api->rdmeta_arrow_changes_new(__VA_ARGS__))
#define rdmeta_arrow_changes_add(...) \
        (rdmeta_api->rdmeta_arrow_changes_add(__VA_ARGS__))
#define rdmeta_arrow_changes_stream(...) \
        (rdmeta_api->rdmeta_arrow_changes_stream(__VA_ARGS__))
#define rdmeta_arrow_changes_destroy(...) \
        (rdmeta_api->rdmeta_arrow_changes_destroy(__VA_ARGS__))
#define rdmeta_cache_arrow_changes(...) \
        (rdmeta_api->rdmeta_cache_arrow_changes(__VA_ARGS__))
#define rdmeta_image_arrow_diff(...) \
        (rdmeta_api->rdmeta_image_arrow_diff(__VA_ARGS__))
#define rdmeta_reader_image(...) (rdmeta_api->rdmeta_reader_image(__VA_ARGS__))
#define rdmeta_partition_for(...) \
        (rdmeta_api->rdmeta_partition_for(__VA_ARGS__))
#define rdmeta_watch_answers(...) \
        (rdmeta_api->rdmeta_watch_answers(__VA_ARGS__))
#define rdmeta_image_changed(...) \
        (rdmeta_api->rdmeta_image_changed(__VA_ARGS__))
#define rdmeta_attach_stats(...) (rdmeta_api->rdmeta_attach_stats(__VA_ARGS__))
#define rdmeta_image_fault(...) (rdmeta_api->rdmeta_image_fault(__VA_ARGS__))
#define rdmeta_image_file_fault(...) \
        (rdmeta_api->rdmeta_image_file_fault(__VA_ARGS__))
#define rdmeta_cache_request_sent(...) \
        (rdmeta_api->rdmeta_cache_request_sent(__VA_ARGS__))
#define rdmeta_cache_due(...) (rdmeta_api->rdmeta_cache_due(__VA_ARGS__))
#define rdmeta_cache_forget(...) (rdmeta_api->rdmeta_cache_forget(__VA_ARGS__))
#define rdmeta_cache_resolved(...) \
        (rdmeta_api->rdmeta_cache_resolved(__VA_ARGS__))
#define rdmeta_replica_in(...) (rdmeta_api->rdmeta_replica_in(__VA_ARGS__))
#define rdmeta_reader_health(...) \
        (rdmeta_api->rdmeta_reader_health(__VA_ARGS__))
#define rdmeta_cache_changes_whole(...) \
        (rdmeta_api->rdmeta_cache_changes_whole(__VA_ARGS__))
#define rdmeta_image_changes(...) \
        (rdmeta_api->rdmeta_image_changes(__VA_ARGS__))
#define rdmeta_fold_conf_init(...) \
        (rdmeta_api->rdmeta_fold_conf_init(__VA_ARGS__))
#define rdmeta_fold_new(...) (rdmeta_api->rdmeta_fold_new(__VA_ARGS__))
#define rdmeta_fold_destroy(...) (rdmeta_api->rdmeta_fold_destroy(__VA_ARGS__))
#define rdmeta_fold_change(...) (rdmeta_api->rdmeta_fold_change(__VA_ARGS__))
#define rdmeta_fold_visit(...) (rdmeta_api->rdmeta_fold_visit(__VA_ARGS__))
#define rdmeta_fold_batch(...) (rdmeta_api->rdmeta_fold_batch(__VA_ARGS__))
#define rdmeta_fold_cut(...) (rdmeta_api->rdmeta_fold_cut(__VA_ARGS__))
#define rdmeta_fold_end(...) (rdmeta_api->rdmeta_fold_end(__VA_ARGS__))
#define rdmeta_fold_save(...) (rdmeta_api->rdmeta_fold_save(__VA_ARGS__))
#define rdmeta_fold_take(...) (rdmeta_api->rdmeta_fold_take(__VA_ARGS__))
#define rdmeta_fold_stats(...) (rdmeta_api->rdmeta_fold_stats(__VA_ARGS__))
#define rdmeta_fold_error(...) (rdmeta_api->rdmeta_fold_error(__VA_ARGS__))
#define rdmeta_crc32(...) (rdmeta_api->rdmeta_crc32(__VA_ARGS__))
#define rdmeta_key_partition(...) \
        (rdmeta_api->rdmeta_key_partition(__VA_ARGS__))
#define rdmeta_key_partitions(...) \
        (rdmeta_api->rdmeta_key_partitions(__VA_ARGS__))
#define rdmeta_kraft_batch(...) (rdmeta_api->rdmeta_kraft_batch(__VA_ARGS__))
#define rdmeta_kraft_record_json(...) \
        (rdmeta_api->rdmeta_kraft_record_json(__VA_ARGS__))
#define rdmeta_kraft_is_sensitive(...) \
        (rdmeta_api->rdmeta_kraft_is_sensitive(__VA_ARGS__))
#define rdmeta_kraft_conf_init(...) \
        (rdmeta_api->rdmeta_kraft_conf_init(__VA_ARGS__))
#define rdmeta_kraft_replay_new(...) \
        (rdmeta_api->rdmeta_kraft_replay_new(__VA_ARGS__))
#define rdmeta_kraft_replay_destroy(...) \
        (rdmeta_api->rdmeta_kraft_replay_destroy(__VA_ARGS__))
#define rdmeta_kraft_replay(...) (rdmeta_api->rdmeta_kraft_replay(__VA_ARGS__))
#define rdmeta_kraft_replay_snapshot(...) \
        (rdmeta_api->rdmeta_kraft_replay_snapshot(__VA_ARGS__))
#define rdmeta_kraft_fault(...) (rdmeta_api->rdmeta_kraft_fault(__VA_ARGS__))
#define rdmeta_kraft_replay_state(...) \
        (rdmeta_api->rdmeta_kraft_replay_state(__VA_ARGS__))
#define rdmeta_kraft_info(...) (rdmeta_api->rdmeta_kraft_info(__VA_ARGS__))
#define rdmeta_kraft_topic_find(...) \
        (rdmeta_api->rdmeta_kraft_topic_find(__VA_ARGS__))
#define rdmeta_kraft_topic_find_id(...) \
        (rdmeta_api->rdmeta_kraft_topic_find_id(__VA_ARGS__))
#define rdmeta_kraft_topic_next(...) \
        (rdmeta_api->rdmeta_kraft_topic_next(__VA_ARGS__))
#define rdmeta_kraft_partition_find(...) \
        (rdmeta_api->rdmeta_kraft_partition_find(__VA_ARGS__))
#define rdmeta_kraft_partition_at(...) \
        (rdmeta_api->rdmeta_kraft_partition_at(__VA_ARGS__))
#define rdmeta_kraft_broker_find(...) \
        (rdmeta_api->rdmeta_kraft_broker_find(__VA_ARGS__))
#define rdmeta_kraft_broker_next(...) \
        (rdmeta_api->rdmeta_kraft_broker_next(__VA_ARGS__))
#define rdmeta_kraft_fact_next(...) \
        (rdmeta_api->rdmeta_kraft_fact_next(__VA_ARGS__))
#define rdmeta_kraft_directory_id(...) \
        (rdmeta_api->rdmeta_kraft_directory_id(__VA_ARGS__))
#define rdmeta_kraft_record_next(...) \
        (rdmeta_api->rdmeta_kraft_record_next(__VA_ARGS__))
#define rdmeta_kraft_record_about(...) \
        (rdmeta_api->rdmeta_kraft_record_about(__VA_ARGS__))
#define rdmeta_kraft_type_name(...) \
        (rdmeta_api->rdmeta_kraft_type_name(__VA_ARGS__))
#define rdmeta_kraft_answer(...) (rdmeta_api->rdmeta_kraft_answer(__VA_ARGS__))
#define rdmeta_kraft_answer_free(...) \
        (rdmeta_api->rdmeta_kraft_answer_free(__VA_ARGS__))
#define rdmeta_kraft_state_changes(...) \
        (rdmeta_api->rdmeta_kraft_state_changes(__VA_ARGS__))
#define rdmeta_kraft_replay_until(...) \
        (rdmeta_api->rdmeta_kraft_replay_until(__VA_ARGS__))
#define rdmeta_metadata_response_encode(...) \
        (rdmeta_api->rdmeta_metadata_response_encode(__VA_ARGS__))
#endif

#endif /* RDMETA_API_CALLS_H */
