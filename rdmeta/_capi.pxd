"""The C contract as Cython sees it: `cimport rdmeta` for an extension, plain calls inside _core.

csrc/include/rdmeta.h is the contract of each call: its result, its errors, the owner of each
pointer.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "rdmeta.h" nogil:
    ctypedef int32_t rdmeta_err_t

    enum:
        RDMETA_ABI_VERSION
        RDMETA_OK
        RDMETA_NO_LEADER
        RDMETA_NOT_CACHED
        RDMETA_WAITING
        RDMETA_STALE
        RDMETA_UNKNOWN_TOPIC
        RDMETA_NO_PARTITION
        RDMETA_DENIED
        RDMETA_INVALID
        RDMETA_ERR_NO_MEMORY
        RDMETA_ERR_MALFORMED
        RDMETA_ERR_UNSUPPORTED
        RDMETA_ERR_ARGUMENT
        RDMETA_ERR_NO_BROKERS
        RDMETA_ERR_WRONG_CLUSTER
        RDMETA_ERR_FORKED
        RDMETA_ERR_TOO_SMALL
        RDMETA_ERR_RESPONSE
        RDMETA_ERR_IO
        RDMETA_NONE
        RDMETA_NO_OPERATIONS

    ctypedef struct rdmeta_str_t:
        const char *data
        size_t len

    ctypedef struct rdmeta_ids_t:
        const int32_t *ids
        uint32_t count

    ctypedef struct rdmeta_time_t:
        int64_t mono_us
        int64_t wall_us

    ctypedef struct rdmeta_allocator_t:
        void *(*alloc)(void *opaque, size_t size) noexcept nogil
        void (*free)(void *opaque, void *ptr, size_t size) noexcept nogil
        void *opaque

    ctypedef struct rdmeta_conf_t:
        size_t size
        int64_t max_age_us
        int64_t negative_ttl_us
        int64_t denied_ttl_us
        int64_t hint_ttl_us
        int64_t absent_grace_us
        size_t ring_bytes
        uint64_t seed
        rdmeta_allocator_t allocator

    void rdmeta_conf_init(rdmeta_conf_t *conf)

    # Life
    ctypedef struct rdmeta_cache_t:
        pass
    rdmeta_cache_t *rdmeta_cache_new(const rdmeta_conf_t *conf)
    rdmeta_cache_t *rdmeta_cache_ref(rdmeta_cache_t *cache)
    void rdmeta_cache_unref(rdmeta_cache_t *cache)

    # Writers
    enum:
        RDMETA_ASKED_UNKNOWN
        RDMETA_ASKED_ALL
        RDMETA_ASKED_NAMES
        RDMETA_ASKED_IDS
        RDMETA_ASKED_BROKERS
        RDMETA_REQ_AUTO_CREATE
        RDMETA_REQ_CLUSTER_OPS
        RDMETA_REQ_TOPIC_OPS
        RDMETA_REQ_TOLERATE_TRAILING
        RDMETA_REQ_REBOOTSTRAPPED
        RDMETA_REQ_SENT_VERSION
        RDMETA_REQ_SENT_HINTS

    ctypedef struct rdmeta_request_t:
        int32_t asked
        int32_t flags
        const rdmeta_str_t *names
        void *ids  # const uint8_t (*)[16], which Cython cannot declare
        size_t n
        uint64_t sent_version
        int32_t broker
        int32_t candidates
        rdmeta_str_t reason
        uint64_t sent_hints

    ctypedef struct rdmeta_applied_t:
        uint64_t version
        uint32_t topics
        uint32_t changed
        uint32_t unchanged
        uint32_t kept_back
        uint32_t negative
        uint32_t absent
        uint32_t leaderless
        uint32_t listener_not_found
        uint32_t unreachable
        uint32_t brokers_changed
        uint32_t advice
        int32_t throttle_ms
        rdmeta_err_t error

    enum:
        RDMETA_ADVICE_ASK_AGAIN
        RDMETA_ADVICE_ASK_OTHER
        RDMETA_ADVICE_ASK_BY_NAME
        RDMETA_ADVICE_REBOOTSTRAP

    rdmeta_err_t rdmeta_cache_apply(rdmeta_cache_t *cache, const void *response, size_t len,
                                    int16_t api_version, const rdmeta_request_t *asked,
                                    rdmeta_time_t now, rdmeta_applied_t *out)
    rdmeta_err_t rdmeta_cache_request_sent(const rdmeta_cache_t *cache, rdmeta_request_t *request)
    rdmeta_err_t rdmeta_cache_apply_failure(rdmeta_cache_t *cache, const rdmeta_request_t *asked,
                                            rdmeta_time_t now)

    enum:
        RDMETA_DUE_NO_LEADER
        RDMETA_DUE_UNREACHABLE
        RDMETA_DUE_KEPT_BACK
        RDMETA_DUE_ASK_BY_NAME
        RDMETA_DUE_ABSENT
        RDMETA_DUE_DENIED

    ctypedef struct rdmeta_due_t:
        rdmeta_str_t topic
        uint32_t reasons

    ctypedef int32_t (*rdmeta_due_visit_t)(void *opaque, const rdmeta_due_t *due) noexcept nogil
    rdmeta_err_t rdmeta_cache_due(rdmeta_cache_t *cache, int64_t mono_us, size_t limit,
                                  rdmeta_due_visit_t visit, void *opaque)

    ctypedef struct rdmeta_leader_hint_t:
        rdmeta_str_t topic
        const uint8_t *topic_id
        int32_t partition
        int32_t leader
        int32_t leader_epoch
        rdmeta_str_t host
        rdmeta_str_t rack
        int32_t port

    rdmeta_err_t rdmeta_cache_apply_leader_hint(rdmeta_cache_t *cache,
                                                const rdmeta_leader_hint_t *hint,
                                                rdmeta_time_t now, rdmeta_applied_t *out)

    enum:
        RDMETA_HINT_REPLACE
        RDMETA_HINT_FORCE

    rdmeta_err_t rdmeta_cache_hint(rdmeta_cache_t *cache, const rdmeta_str_t *topics, size_t n,
                                   int32_t flags, int64_t ttl_us, rdmeta_time_t now,
                                   rdmeta_str_t *to_ask, size_t *n_ask)
    int64_t rdmeta_cache_purge_hints(rdmeta_cache_t *cache, const rdmeta_str_t *topics, size_t n,
                                     rdmeta_time_t now)
    rdmeta_err_t rdmeta_cache_purge(rdmeta_cache_t *cache, rdmeta_time_t now)
    int64_t rdmeta_cache_forget(rdmeta_cache_t *cache, const rdmeta_str_t *topics, size_t n,
                                rdmeta_time_t now)
    int64_t rdmeta_cache_sweep(rdmeta_cache_t *cache, rdmeta_time_t now)

    # Readers
    ctypedef struct rdmeta_reader_t:
        pass
    enum:
        RDMETA_ALLOW_STALE

    rdmeta_reader_t *rdmeta_reader_new(rdmeta_cache_t *cache, int32_t flags)
    void rdmeta_reader_destroy(rdmeta_reader_t *reader)
    void rdmeta_reader_enter(rdmeta_reader_t *reader)
    void rdmeta_reader_leave(rdmeta_reader_t *reader)
    int32_t rdmeta_leader(rdmeta_reader_t *reader, const char *topic, size_t len,
                          int32_t partition, int64_t mono_us)
    void rdmeta_leaders(rdmeta_reader_t *reader, const rdmeta_str_t *topics,
                        const int32_t *partitions, size_t n, int64_t mono_us, int32_t *out)

    ctypedef struct rdmeta_ids_out_t:
        int32_t *ids
        uint32_t capacity
        uint32_t count

    ctypedef struct rdmeta_partition_t:
        int32_t partition
        int32_t leader
        int32_t last_leader
        int32_t leader_epoch
        int32_t error
        int32_t unreachable
        rdmeta_ids_out_t replicas
        rdmeta_ids_out_t isr
        rdmeta_ids_out_t offline_replicas

    rdmeta_err_t rdmeta_partition(rdmeta_reader_t *reader, const char *topic, size_t len,
                                  int32_t partition, int64_t mono_us, rdmeta_partition_t *out)

    int32_t rdmeta_replica_in(rdmeta_reader_t *reader, const char *topic, size_t len,
                              int32_t partition, rdmeta_str_t rack, int64_t mono_us)

    ctypedef struct rdmeta_topic_t:
        pass

    ctypedef struct rdmeta_topic_info_t:
        rdmeta_str_t name
        uint8_t topic_id[16]
        uint64_t version
        uint32_t partitions
        int32_t internal
        int32_t error
        int32_t state
        int32_t operations
        int32_t source_broker
        int64_t deadline_us
        rdmeta_str_t reason

    rdmeta_err_t rdmeta_topic_find(rdmeta_reader_t *reader, const char *name, size_t len,
                                   int64_t mono_us, const rdmeta_topic_t **out)
    rdmeta_err_t rdmeta_topic_find_id(rdmeta_reader_t *reader, const uint8_t *topic_id,
                                      int64_t mono_us, const rdmeta_topic_t **out)
    void rdmeta_topic_info(rdmeta_reader_t *reader, const rdmeta_topic_t *topic, int64_t mono_us,
                           rdmeta_topic_info_t *out)
    rdmeta_err_t rdmeta_topic_partition_at(rdmeta_reader_t *reader,
                                           const rdmeta_topic_t *topic, uint32_t i,
                                           rdmeta_partition_t *out)

    ctypedef struct rdmeta_broker_t:
        int32_t id
        int32_t port
        rdmeta_str_t host
        rdmeta_str_t rack

    ctypedef struct rdmeta_brokers_t:
        pass
    const rdmeta_brokers_t *rdmeta_brokers(rdmeta_reader_t *reader)
    uint32_t rdmeta_brokers_count(const rdmeta_brokers_t *brokers)
    rdmeta_err_t rdmeta_brokers_at(const rdmeta_brokers_t *brokers, uint32_t i,
                                   rdmeta_broker_t *out)
    rdmeta_err_t rdmeta_brokers_find(const rdmeta_brokers_t *brokers, int32_t broker_id,
                                     rdmeta_broker_t *out)
    rdmeta_str_t rdmeta_brokers_cluster_id(const rdmeta_brokers_t *brokers)
    int32_t rdmeta_brokers_controller(const rdmeta_brokers_t *brokers)

    enum:
        RDMETA_WALK_VALID
        RDMETA_WALK_STALE
        RDMETA_WALK_NEGATIVE
    ctypedef int32_t (*rdmeta_topic_visit_t)(void *opaque,
                                             const rdmeta_topic_t *topic) noexcept nogil
    rdmeta_err_t rdmeta_reader_walk(rdmeta_reader_t *reader, const char *prefix, size_t len,
                                    int32_t which, int64_t mono_us, rdmeta_topic_visit_t visit,
                                    void *opaque)

    ctypedef struct rdmeta_broker_health_t:
        int32_t broker
        uint64_t leaders
        uint64_t replicas

    ctypedef struct rdmeta_health_t:
        uint64_t topics
        uint64_t partitions
        uint64_t replicas
        uint64_t leaderless
        uint64_t under_replicated
        uint64_t offline
        uint64_t non_preferred
        rdmeta_broker_health_t *brokers
        uint32_t capacity
        uint32_t broker_count
    rdmeta_err_t rdmeta_reader_health(rdmeta_reader_t *reader, int32_t which, int64_t mono_us,
                                      rdmeta_health_t *out)

    # Handles
    ctypedef struct rdmeta_handle_t:
        pass
    rdmeta_handle_t *rdmeta_resolve(rdmeta_cache_t *cache, const char *topic, size_t len)
    rdmeta_handle_t *rdmeta_handle_ref(rdmeta_handle_t *handle)
    void rdmeta_handle_release(rdmeta_handle_t *handle)
    rdmeta_str_t rdmeta_handle_topic(const rdmeta_handle_t *handle)
    ctypedef int32_t (*rdmeta_name_visit_t)(void *opaque,
                                            const rdmeta_str_t *topic) noexcept nogil
    rdmeta_err_t rdmeta_cache_resolved(rdmeta_cache_t *cache, rdmeta_name_visit_t visit,
                                       void *opaque)
    int32_t rdmeta_handle_leader(rdmeta_reader_t *reader, const rdmeta_handle_t *handle,
                                 int32_t partition, int64_t mono_us)
    rdmeta_err_t rdmeta_handle_find(rdmeta_reader_t *reader, const rdmeta_handle_t *handle,
                                    int64_t mono_us, const rdmeta_topic_t **out)
    int32_t rdmeta_handle_partition_for(rdmeta_reader_t *reader, const rdmeta_handle_t *handle,
                                        const void *key, size_t len, int64_t mono_us)
    int32_t rdmeta_partition_for(rdmeta_reader_t *reader, const char *topic, size_t topic_len,
                                 const void *key, size_t len, int64_t mono_us)
    uint32_t rdmeta_murmur2(const void *key, size_t len)

    # Keys
    enum:
        RDMETA_PARTITIONER_MURMUR2
        RDMETA_PARTITIONER_CRC32
        RDMETA_ANY_PARTITION

    ctypedef struct rdmeta_keys_t:
        const void *offsets
        const uint8_t *data
        const uint8_t *validity
        int64_t first
        int32_t offset_width
        int32_t reserved

    uint32_t rdmeta_crc32(const void *data, size_t len)
    int32_t rdmeta_key_partition(int32_t partitioner, const void *key, size_t len,
                                 int32_t partitions)
    rdmeta_err_t rdmeta_key_partitions(int32_t partitioner, const rdmeta_keys_t *keys, size_t n,
                                       const int32_t *partitions, size_t step, int32_t *out)

    # Images
    ctypedef struct rdmeta_image_t:
        pass

    ctypedef struct rdmeta_image_info_t:
        uint64_t version
        int64_t taken_mono_us
        int64_t taken_wall_us
        int64_t max_age_us
        int64_t shared_deadline_us
        uint64_t topics
        uint64_t partitions
        uint64_t bytes
        uint8_t session[16]
        int32_t mapped
        uint64_t negatives
        uint64_t erased
        int64_t said_mono_us

    enum:
        RDMETA_IMAGE_SYNC
        RDMETA_IMAGE_MODE_SHIFT
        RDMETA_IMAGE_COPY

    rdmeta_image_t *rdmeta_cache_image(rdmeta_cache_t *cache, rdmeta_time_t now)
    rdmeta_image_t *rdmeta_image_ref(rdmeta_image_t *image)
    void rdmeta_image_unref(rdmeta_image_t *image)
    rdmeta_reader_t *rdmeta_image_reader(rdmeta_image_t *image, int32_t flags)
    rdmeta_image_t *rdmeta_reader_image(rdmeta_reader_t *reader, rdmeta_time_t now)
    void rdmeta_image_info(const rdmeta_image_t *image, rdmeta_image_info_t *out)
    rdmeta_err_t rdmeta_image_save(rdmeta_image_t *image, const char *path, int32_t flags)
    rdmeta_err_t rdmeta_image_open(const char *path, int32_t flags, rdmeta_time_t now,
                                   rdmeta_image_t **out)
    int32_t rdmeta_image_changed(const rdmeta_image_t *image, const char *topic, size_t len,
                                 uint64_t since)
    ctypedef struct rdmeta_image_fault_t:
        const char *what
        const char *section
        uint64_t offset
    rdmeta_err_t rdmeta_image_fault(rdmeta_image_t *image, rdmeta_image_fault_t *out)
    rdmeta_err_t rdmeta_image_file_fault(const char *path, rdmeta_image_fault_t *out)
    rdmeta_err_t rdmeta_image_verify(rdmeta_image_t *image)
    rdmeta_err_t rdmeta_cache_load(rdmeta_cache_t *cache, rdmeta_image_t *image,
                                   rdmeta_time_t now)

    ctypedef struct rdmeta_attach_t:
        pass
    rdmeta_err_t rdmeta_attach_new(const char *path, int32_t flags, int64_t look_us,
                                   rdmeta_time_t now, rdmeta_attach_t **out)
    void rdmeta_attach_destroy(rdmeta_attach_t *attach)
    rdmeta_reader_t *rdmeta_attach_reader(rdmeta_attach_t *attach, int32_t flags)
    rdmeta_image_t *rdmeta_attach_image(rdmeta_attach_t *attach, rdmeta_time_t now)
    ctypedef struct rdmeta_attach_stats_t:
        uint64_t looks
        uint64_t generations
        uint64_t errors
        rdmeta_err_t error
    void rdmeta_attach_stats(const rdmeta_attach_t *attach, rdmeta_attach_stats_t *out)

    # State
    uint64_t rdmeta_cache_version(const rdmeta_cache_t *cache)

    ctypedef struct rdmeta_stats_t:
        uint64_t version
        uint64_t applies, apply_failures
        uint64_t topics_applied, topics_unchanged, topics_changed
        uint64_t topics_kept_back
        uint64_t digest_hits
        uint64_t leader_hints_taken, leader_hints_ignored
        uint64_t topics
        uint64_t negatives
        uint64_t hints
        uint64_t retained
        uint64_t partitions
        uint64_t bytes
        uint64_t bytes_ring
        uint64_t bytes_limbo
        uint64_t ring_records
        uint64_t ring_floor
        uint64_t rehashes, reseeds
        int64_t shared_deadline_us
        int32_t readers, waiters, watches, handles
        uint64_t bytes_images
        int32_t images
        uint64_t reasons
        uint64_t reasons_dropped
        uint64_t bytes_free
        uint64_t topics_moved
    void rdmeta_cache_stats(rdmeta_cache_t *cache, rdmeta_stats_t *out)

    # Changes and waiting
    uint64_t rdmeta_cache_wait(rdmeta_cache_t *cache, uint64_t since, const rdmeta_str_t *topics,
                               size_t n, int64_t timeout_us)

    void rdmeta_cache_interrupt(rdmeta_cache_t *cache)

    ctypedef struct rdmeta_watch_t:
        pass
    rdmeta_watch_t *rdmeta_watch_new(rdmeta_cache_t *cache, const rdmeta_str_t *topics, size_t n,
                                     void (*fn)(void *opaque, uint64_t version) noexcept nogil,
                                     void *opaque)
    rdmeta_watch_t *rdmeta_watch_answers(rdmeta_cache_t *cache,
                                         void (*fn)(void *opaque, uint64_t version) noexcept nogil,
                                         void *opaque)
    void rdmeta_watch_destroy(rdmeta_watch_t *watch)

    enum:
        # tools/change_table.py: begin
        RDMETA_SOURCE_POLL
        RDMETA_SOURCE_HINT
        RDMETA_SOURCE_LOG
        RDMETA_SOURCE_EXPIRY
        RDMETA_SOURCE_PURGE
        RDMETA_TOPIC_ADDED
        RDMETA_TOPIC_ABSENT
        RDMETA_TOPIC_REMOVED
        RDMETA_TOPIC_RECREATED
        RDMETA_TOPIC_ERROR
        RDMETA_PARTITIONS_ADDED
        RDMETA_LEADER_CHANGED
        RDMETA_ISR_CHANGED
        RDMETA_REPLICAS_CHANGED
        RDMETA_OFFLINE_CHANGED
        RDMETA_BROKER_ADDED
        RDMETA_BROKER_REMOVED
        RDMETA_BROKER_CHANGED
        RDMETA_CLUSTER_CHANGED
        RDMETA_CONFIG_CHANGED
        RDMETA_RESYNC
        RDMETA_OBSERVED_FROM
        RDMETA_OBSERVED_TO
        RDMETA_INTERNAL_CHANGED
        RDMETA_OPERATIONS_CHANGED
        RDMETA_TOPIC_ID_LEARNED
        RDMETA_LEADER_EPOCH_CHANGED
        RDMETA_PARTITION_ERROR
        RDMETA_CLUSTER_ID_LEARNED
        RDMETA_BROKER_FENCED
        RDMETA_BROKER_UNFENCED
        RDMETA_BROKER_SHUTTING_DOWN
        RDMETA_REASSIGNMENT_CHANGED
        RDMETA_ELR_CHANGED
        RDMETA_UNCLEAN_ELECTION
        RDMETA_CONTROLLER_CHANGED
        # tools/change_table.py: end

    ctypedef struct rdmeta_change_t:
        uint64_t version
        int64_t wall_us
        int32_t kind
        int32_t source
        int32_t source_broker
        int32_t partition
        int32_t broker
        int32_t old_leader, new_leader
        int32_t old_leader_epoch, new_leader_epoch
        rdmeta_str_t cluster_id
        rdmeta_str_t topic
        const uint8_t *topic_id
        rdmeta_ids_t old_isr, new_isr
        rdmeta_ids_t old_replicas, new_replicas
        rdmeta_str_t detail
        int64_t offset
        rdmeta_ids_t old_offline, new_offline
        int64_t broker_epoch, unseen_us
        int32_t partition_epoch
        rdmeta_ids_t new_adding, new_removing, new_elr

    ctypedef int32_t (*rdmeta_change_visit_t)(void *opaque,
                                              const rdmeta_change_t *change) noexcept nogil
    rdmeta_err_t rdmeta_cache_changes(rdmeta_cache_t *cache, uint64_t since,
                                      rdmeta_change_visit_t visit, void *opaque, uint64_t *until,
                                      int32_t *resync)
    rdmeta_err_t rdmeta_cache_changes_whole(rdmeta_cache_t *cache, uint64_t since,
                                            rdmeta_change_visit_t visit, void *opaque,
                                            uint64_t *until, int32_t *resync)

    rdmeta_err_t rdmeta_image_diff(rdmeta_image_t *before, rdmeta_image_t *after,
                                   rdmeta_change_visit_t visit, void *opaque)
    rdmeta_err_t rdmeta_image_changes(rdmeta_image_t *image, rdmeta_change_visit_t visit,
                                      void *opaque)

    # Names
    const char *rdmeta_err_name(rdmeta_err_t err)
    const char *rdmeta_change_kind_name(int32_t kind)
    const char *rdmeta_source_name(int32_t source)
    uint32_t rdmeta_abi_version()

    # Arrow
    struct ArrowSchema:
        const char *format
        ArrowSchema *dictionary
        void (*release)(ArrowSchema *) noexcept nogil

    struct ArrowArray:
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        const void **buffers
        ArrowArray *dictionary
        void (*release)(ArrowArray *) noexcept nogil

    struct ArrowArrayStream:
        int (*get_schema)(ArrowArrayStream *, ArrowSchema *) noexcept nogil
        int (*get_next)(ArrowArrayStream *, ArrowArray *) noexcept nogil
        const char *(*get_last_error)(ArrowArrayStream *) noexcept
        void (*release)(ArrowArrayStream *) noexcept nogil

    enum:
        RDMETA_ARROW_BROKERS
        RDMETA_ARROW_TOPICS
        RDMETA_ARROW_PARTITIONS
        RDMETA_ARROW_REPLICAS
        RDMETA_ARROW_CHANGES
    ctypedef struct rdmeta_arrow_changes_t:
        pass
    rdmeta_err_t rdmeta_arrow_schema(int32_t table, ArrowSchema *out)
    rdmeta_err_t rdmeta_reader_arrow(rdmeta_reader_t *reader, int32_t table, int32_t which,
                                     int64_t mono_us, ArrowArrayStream *out)
    rdmeta_arrow_changes_t *rdmeta_arrow_changes_new(const char *session)
    int32_t rdmeta_arrow_changes_add(void *changes, const rdmeta_change_t *change)
    rdmeta_err_t rdmeta_arrow_changes_stream(rdmeta_arrow_changes_t *changes,
                                             ArrowArrayStream *out)
    void rdmeta_arrow_changes_destroy(rdmeta_arrow_changes_t *changes)
    rdmeta_err_t rdmeta_cache_arrow_changes(rdmeta_cache_t *cache, uint64_t since,
                                            const char *session, ArrowArrayStream *out,
                                            uint64_t *until, int32_t *resync)
    rdmeta_err_t rdmeta_image_arrow_diff(rdmeta_image_t *before, rdmeta_image_t *after,
                                         const char *session, ArrowArrayStream *out)

    # Folds
    ctypedef struct rdmeta_fold_t:
        pass

    enum:
        RDMETA_FOLD_PARTITION_INTERVAL
        RDMETA_FOLD_BROKER_INTERVAL
        RDMETA_FOLD_TOPIC_INTERVAL
        RDMETA_FOLD_CONFIG_INTERVAL
        RDMETA_FOLD_LEADER_CHANGE
        RDMETA_FOLD_CHANGE
        RDMETA_FOLD_CONTROLLER
        RDMETA_FOLD_ALL
        RDMETA_FOLD_OPEN
        RDMETA_FOLD_GAP
        RDMETA_FOLD_MIDNIGHT
        RDMETA_FOLD_STATE_VERSION

    ctypedef struct rdmeta_fold_conf_t:
        size_t size
        rdmeta_str_t cluster_id
        rdmeta_str_t origin
        int64_t counts_from
        int64_t counts_to
        uint32_t buckets
        uint32_t bucket
        uint32_t tables
        const void *state
        size_t state_size
        uint64_t seed
        rdmeta_allocator_t allocator
        uint64_t most_waiting

    ctypedef struct rdmeta_fold_stats_t:
        uint64_t rows
        uint64_t kinds[64]
        uint64_t unknown_kinds
        uint64_t before
        uint64_t other_buckets
        uint64_t bad_details
        uint64_t clocks_back
        uint64_t bytes
        uint64_t waiting
        int64_t last_at
        int32_t partial
        uint64_t waiting_bytes

    void rdmeta_fold_conf_init(rdmeta_fold_conf_t *conf)
    rdmeta_err_t rdmeta_fold_new(const rdmeta_fold_conf_t *conf, rdmeta_fold_t **out)
    void rdmeta_fold_destroy(rdmeta_fold_t *fold)
    rdmeta_err_t rdmeta_fold_change(rdmeta_fold_t *fold, const rdmeta_change_t *change,
                                    int64_t unseen_us)
    int32_t rdmeta_fold_visit(void *fold, const rdmeta_change_t *change)
    rdmeta_err_t rdmeta_fold_batch(rdmeta_fold_t *fold, const ArrowSchema *schema,
                                   const ArrowArray *batch)
    rdmeta_err_t rdmeta_fold_cut(rdmeta_fold_t *fold, int64_t at_us)
    rdmeta_err_t rdmeta_fold_end(rdmeta_fold_t *fold, int64_t at_us, int32_t by)
    rdmeta_err_t rdmeta_fold_save(rdmeta_fold_t *fold, void *buf, size_t capacity, size_t *size)
    rdmeta_err_t rdmeta_fold_take(rdmeta_fold_t *fold, int32_t table, ArrowArrayStream *out)
    void rdmeta_fold_stats(const rdmeta_fold_t *fold, rdmeta_fold_stats_t *out)
    const char *rdmeta_fold_error(const rdmeta_fold_t *fold)

    # The metadata log
    enum:
        RDMETA_KRAFT_OK
        RDMETA_KRAFT_CUT
        RDMETA_KRAFT_ZEROS
        RDMETA_KRAFT_NO_BATCH
        RDMETA_KRAFT_OLD_FORMAT
        RDMETA_KRAFT_BAD_CRC
        RDMETA_KRAFT_COMPRESSED
        RDMETA_KRAFT_BAD_RECORD
        RDMETA_KRAFT_GAP
        RDMETA_KRAFT_CONTRADICTS
        RDMETA_KRAFT_REACHED
        RDMETA_KRAFT_REGISTER_BROKER
        RDMETA_KRAFT_UNREGISTER_BROKER
        RDMETA_KRAFT_TOPIC
        RDMETA_KRAFT_PARTITION
        RDMETA_KRAFT_CONFIG
        RDMETA_KRAFT_PARTITION_CHANGE
        RDMETA_KRAFT_FENCE_BROKER
        RDMETA_KRAFT_UNFENCE_BROKER
        RDMETA_KRAFT_REMOVE_TOPIC
        RDMETA_KRAFT_BROKER_CHANGE
        RDMETA_KRAFT_BEGIN
        RDMETA_KRAFT_END
        RDMETA_KRAFT_ABORT
        RDMETA_KRAFT_CLEAR_ELR
        RDMETA_KRAFT_LEADER_CHANGE
        RDMETA_KRAFT_SNAPSHOT_HEADER
        RDMETA_KRAFT_SNAPSHOT_FOOTER
        RDMETA_KRAFT_OF_TOPIC
        RDMETA_KRAFT_OF_BROKER
        RDMETA_KRAFT_SHOW_SECRETS
        RDMETA_KRAFT_DATA_ALONE

    ctypedef struct rdmeta_kraft_batch_t:
        int64_t base_offset, last_offset
        int64_t base_time_ms, time_ms
        int32_t epoch
        int32_t count
        int32_t control
        const uint8_t *bytes
        size_t size

    ctypedef struct rdmeta_kraft_record_t:
        int64_t offset
        int64_t time_us
        int32_t epoch
        int32_t type
        int32_t version
        int32_t control
        const uint8_t *value
        size_t len

    ctypedef struct rdmeta_kraft_place_t:
        size_t byte
        int32_t next

    ctypedef struct rdmeta_kraft_about_t:
        const uint8_t *topic_id
        rdmeta_str_t topic
        int32_t partition, broker

    ctypedef struct rdmeta_kraft_replay_t:
        pass

    ctypedef struct rdmeta_kraft_state_t:
        pass

    ctypedef struct rdmeta_kraft_conf_t:
        size_t size
        int64_t until_offset, until_us
        rdmeta_change_visit_t visit
        void *opaque
        rdmeta_str_t cluster_id
        rdmeta_str_t listener
        int32_t epoch, leader
        int64_t latest_us
        int32_t skip
        int32_t show_secrets
        uint64_t seed
        rdmeta_allocator_t allocator

    ctypedef struct rdmeta_kraft_fault_t:
        int32_t code
        int64_t offset
        size_t byte
        size_t needed
        char text[192]

    ctypedef struct rdmeta_kraft_info_t:
        int64_t next
        int64_t snapshot_end
        int64_t snapshot_us
        int64_t latest_us
        int64_t transaction
        uint64_t pending
        uint64_t topics, partitions, brokers, facts, directories
        uint64_t unknown
        uint64_t skipped
        uint64_t clocks_back
        int32_t epoch, leader
        int32_t partial

    ctypedef struct rdmeta_kraft_mark_t:
        int64_t offset, time_us
        int32_t epoch
        int32_t at_or_before

    ctypedef struct rdmeta_wire_ids_t:
        const uint8_t *be
        uint32_t count

    ctypedef struct rdmeta_kraft_topic_t:
        rdmeta_str_t name
        const uint8_t *id
        uint32_t partitions
        rdmeta_kraft_mark_t mark

    ctypedef struct rdmeta_kraft_partition_t:
        int32_t id, leader, leader_epoch, partition_epoch
        int32_t recovery
        rdmeta_wire_ids_t replicas, isr, removing, adding, elr, last_elr
        rdmeta_wire_ids_t directories
        rdmeta_kraft_mark_t mark

    ctypedef struct rdmeta_kraft_broker_t:
        int32_t id
        int32_t fenced, shutting_down
        uint32_t n_log_dirs, n_cordoned
        int64_t epoch
        const uint8_t *log_dirs
        const uint8_t *cordoned
        rdmeta_kraft_record_t registration
        rdmeta_kraft_mark_t mark

    ctypedef struct rdmeta_kraft_fact_t:
        const uint8_t *key
        size_t key_len
        rdmeta_kraft_record_t record
        rdmeta_kraft_mark_t mark

    int32_t rdmeta_kraft_batch(const void *bytes, size_t len, rdmeta_kraft_batch_t *out)
    int32_t rdmeta_kraft_record_next(const rdmeta_kraft_batch_t *batch, rdmeta_kraft_place_t *place,
                                     rdmeta_kraft_record_t *out)
    void rdmeta_kraft_record_about(const rdmeta_kraft_record_t *record, rdmeta_kraft_about_t *out)
    const char *rdmeta_kraft_type_name(int32_t control, int32_t type)
    rdmeta_err_t rdmeta_kraft_record_json(const rdmeta_kraft_record_t *record, rdmeta_str_t topic,
                                          int32_t flags, char *buf, size_t capacity, size_t *len)
    int32_t rdmeta_kraft_is_sensitive(rdmeta_str_t key)
    void rdmeta_kraft_conf_init(rdmeta_kraft_conf_t *conf)
    rdmeta_err_t rdmeta_kraft_replay_new(const rdmeta_kraft_conf_t *conf, rdmeta_kraft_replay_t
                                         **out)
    void rdmeta_kraft_replay_destroy(rdmeta_kraft_replay_t *replay)
    void rdmeta_kraft_replay_until(rdmeta_kraft_replay_t *replay, int64_t until_offset,
                                   int64_t until_us)
    rdmeta_err_t rdmeta_kraft_replay(rdmeta_kraft_replay_t *replay, const void *bytes, size_t len,
                                     size_t *used)
    rdmeta_err_t rdmeta_kraft_replay_snapshot(rdmeta_kraft_replay_t *replay, const void *bytes,
                                              size_t len, int64_t end, int32_t epoch, size_t *used,
                                              int32_t *ended)
    const rdmeta_kraft_fault_t * rdmeta_kraft_fault(const rdmeta_kraft_replay_t *replay)
    const rdmeta_kraft_state_t * rdmeta_kraft_replay_state(const rdmeta_kraft_replay_t *replay)
    rdmeta_err_t rdmeta_kraft_state_changes(rdmeta_kraft_replay_t *replay, int64_t wall_us,
                                            rdmeta_change_visit_t visit, void *opaque)
    void rdmeta_kraft_info(const rdmeta_kraft_replay_t *replay, rdmeta_kraft_info_t *out)
    int32_t rdmeta_kraft_topic_find(const rdmeta_kraft_state_t *state, rdmeta_str_t name,
                                    rdmeta_kraft_topic_t *out)
    int32_t rdmeta_kraft_topic_find_id(const rdmeta_kraft_state_t *state, const uint8_t *id,
                                       rdmeta_kraft_topic_t *out)
    int32_t rdmeta_kraft_topic_next(const rdmeta_kraft_state_t *state, rdmeta_str_t after,
                                    rdmeta_kraft_topic_t *out)
    int32_t rdmeta_kraft_partition_find(const rdmeta_kraft_state_t *state, const uint8_t *topic_id,
                                        int32_t partition, rdmeta_kraft_partition_t *out)
    int32_t rdmeta_kraft_partition_at(const rdmeta_kraft_state_t *state, const uint8_t *topic_id,
                                      uint32_t place, rdmeta_kraft_partition_t *out)
    int32_t rdmeta_kraft_broker_find(const rdmeta_kraft_state_t *state, int32_t id,
                                     rdmeta_kraft_broker_t *out)
    int32_t rdmeta_kraft_broker_next(const rdmeta_kraft_state_t *state, int32_t after,
                                     rdmeta_kraft_broker_t *out)
    int32_t rdmeta_kraft_fact_next(const rdmeta_kraft_state_t *state, int32_t control, int32_t type,
                                   const uint8_t *key, size_t key_len, rdmeta_kraft_fact_t *out)
    const uint8_t * rdmeta_kraft_directory_id(const rdmeta_kraft_state_t *state, uint32_t number)
    rdmeta_err_t rdmeta_kraft_answer(const rdmeta_kraft_state_t *state, rdmeta_str_t cluster_id,
                                     rdmeta_str_t listener, void **out, size_t *len)
    void rdmeta_kraft_answer_free(void *answer)

    # Wire
    enum:
        RDMETA_METADATA_MIN_VERSION
        RDMETA_METADATA_MAX_VERSION
    rdmeta_err_t rdmeta_metadata_request_encode(int16_t version, const rdmeta_request_t *request,
                                                void *buf, size_t capacity, size_t *len)

    ctypedef struct rdmeta_wire_partition_t:
        int32_t id
        int32_t leader
        int32_t leader_epoch
        int32_t error
        rdmeta_wire_ids_t replicas, isr, offline_replicas

    ctypedef struct rdmeta_wire_topic_t:
        rdmeta_str_t name
        const uint8_t *id
        int32_t error
        int32_t internal
        uint32_t partitions
        int32_t operations

    ctypedef struct rdmeta_wire_head_t:
        int32_t throttle_ms
        rdmeta_str_t cluster_id
        int32_t controller
        uint32_t brokers, topics
        int32_t operations
        rdmeta_err_t error
    rdmeta_err_t rdmeta_metadata_response_encode(const rdmeta_wire_head_t *head,
                                                 const rdmeta_broker_t *brokers,
                                                 const rdmeta_wire_topic_t *topics,
                                                 const rdmeta_wire_partition_t *partitions,
                                                 void *buf, size_t capacity, size_t *len)


# The callbacks of a decode make Python objects: they hold the GIL. A -1 is a pending exception.
cdef extern from "rdmeta.h":
    ctypedef struct rdmeta_wire_visitor_t:
        int32_t (*broker)(void *opaque, const rdmeta_broker_t *broker) except -1
        int32_t (*head)(void *opaque, const rdmeta_wire_head_t *head) except -1
        int32_t (*topic)(void *opaque, const rdmeta_wire_topic_t *topic) except -1
        int32_t (*partition)(void *opaque, const rdmeta_wire_partition_t *partition) except -1
        int32_t (*topic_end)(void *opaque, const rdmeta_wire_topic_t *topic) except -1
        int32_t (*end)(void *opaque, const rdmeta_wire_head_t *head) except -1

    rdmeta_err_t rdmeta_metadata_response_decode(const void *response, size_t len,
                                                 int16_t version, int32_t flags,
                                                 const rdmeta_wire_visitor_t *visitor,
                                                 void *opaque, size_t *offset) except? -1
