/* The records of Apache Kafka 4.3.0, and AccessControlRecord of 3.3.
 *
 * tools/record_table.py writes it from the definitions in Kafka's jars, which
 * are under the Apache License, Version 2.0; see NOTICE. */
#include "kraft/record_table.h"

#include <stddef.h>

/* Short names, so that a field is one line. */
enum {
        ARRAY        = RDMETA_KRAFT_ARRAY,
        NULLABLE     = RDMETA_KRAFT_NULLABLE,
        DEFAULT_NULL = RDMETA_KRAFT_DEFAULT_NULL,
        KEY          = RDMETA_KRAFT_KEY,
        SECRET       = RDMETA_KRAFT_SECRET,
        GONE_IF_NULL = RDMETA_KRAFT_GONE_IF_NULL,
        GONE_IF_TRUE = RDMETA_KRAFT_GONE_IF_TRUE,
        GONE_IF_ZERO = RDMETA_KRAFT_GONE_IF_ZERO
};

/* A field; a tagged one with its tag and its default; a struct; a version; a
 * record with its role, the type of the fact it removes, and its versions. */
#define FIELD(name, type, flags) {name, NULL, 0, -1, RDMETA_KRAFT_##type, flags}
#define TAGGED(name, tag, type, number, flags) \
        {name, NULL, number, tag, RDMETA_KRAFT_##type, flags}
#define STRUCT(name, of, flags) {name, &(of), 0, -1, RDMETA_KRAFT_STRUCT, flags}
#define SCHEMA(fields, count, least) {fields, count, least}
#define TYPE(key, role, removes, name, versions)                           \
        [key] = {name, versions, sizeof(versions) / sizeof(*versions) - 1, \
                 RDMETA_KRAFT_##role, removes}

static const rdmeta_kraft_field_t register_broker_4_end_points_fields[] = {
        FIELD("name", STRING, 0),
        FIELD("host", STRING, 0),
        FIELD("port", UINT16, 0),
        FIELD("securityProtocol", INT16, 0)};
static const rdmeta_kraft_schema_t register_broker_4_end_points =
        SCHEMA(register_broker_4_end_points_fields, 4, 7);

static const rdmeta_kraft_field_t register_broker_4_features_fields[] = {
        FIELD("name", STRING, 0),
        FIELD("minSupportedVersion", INT16, 0),
        FIELD("maxSupportedVersion", INT16, 0)};
static const rdmeta_kraft_schema_t register_broker_4_features =
        SCHEMA(register_broker_4_features_fields, 3, 6);

static const rdmeta_kraft_field_t register_broker_4_fields[] = {
        FIELD("brokerId", INT32, 0),
        FIELD("isMigratingZkBroker", BOOL, 0),
        FIELD("incarnationId", UUID, 0),
        FIELD("brokerEpoch", INT64, 0),
        STRUCT("endPoints", register_broker_4_end_points, ARRAY),
        STRUCT("features", register_broker_4_features, ARRAY),
        FIELD("rack", STRING, NULLABLE),
        FIELD("fenced", BOOL, 0),
        FIELD("inControlledShutdown", BOOL, 0),
        TAGGED("logDirs", 0, UUID, 0, ARRAY),
        TAGGED("cordonedLogDirs", 1, UUID, 0,
               ARRAY | NULLABLE | DEFAULT_NULL)};

static const rdmeta_kraft_field_t register_broker_1_fields[] = {
        FIELD("brokerId", INT32, 0),
        FIELD("incarnationId", UUID, 0),
        FIELD("brokerEpoch", INT64, 0),
        STRUCT("endPoints", register_broker_4_end_points, ARRAY),
        STRUCT("features", register_broker_4_features, ARRAY),
        FIELD("rack", STRING, NULLABLE),
        FIELD("fenced", BOOL, 0),
        FIELD("inControlledShutdown", BOOL, 0)};
static const rdmeta_kraft_schema_t register_broker[] = {
        SCHEMA(register_broker_1_fields, 7, 33),
        SCHEMA(register_broker_1_fields, 8, 34),
        SCHEMA(register_broker_4_fields, 9, 35),
        SCHEMA(register_broker_4_fields, 10, 35),
        SCHEMA(register_broker_4_fields, 11, 35)};

static const rdmeta_kraft_field_t unregister_broker_0_fields[] = {
        FIELD("brokerId", INT32, 0),
        FIELD("brokerEpoch", INT64, 0)};
static const rdmeta_kraft_schema_t unregister_broker[] = {
        SCHEMA(unregister_broker_0_fields, 2, 13)};

static const rdmeta_kraft_field_t topic_0_fields[] = {
        FIELD("name", STRING, 0),
        FIELD("topicId", UUID, 0)};
static const rdmeta_kraft_schema_t topic[] = {
        SCHEMA(topic_0_fields, 2, 18)};

static const rdmeta_kraft_field_t partition_2_fields[] = {
        FIELD("partitionId", INT32, 0),
        FIELD("topicId", UUID, 0),
        FIELD("replicas", INT32, ARRAY),
        FIELD("isr", INT32, ARRAY),
        FIELD("removingReplicas", INT32, ARRAY),
        FIELD("addingReplicas", INT32, ARRAY),
        FIELD("leader", INT32, 0),
        TAGGED("leaderRecoveryState", 0, INT8, 0, 0),
        FIELD("leaderEpoch", INT32, 0),
        FIELD("partitionEpoch", INT32, 0),
        FIELD("directories", UUID, ARRAY),
        TAGGED("eligibleLeaderReplicas", 1, INT32, 0,
               ARRAY | NULLABLE | DEFAULT_NULL),
        TAGGED("lastKnownElr", 2, INT32, 0, ARRAY | NULLABLE | DEFAULT_NULL)};
static const rdmeta_kraft_schema_t partition[] = {
        SCHEMA(partition_2_fields, 10, 37),
        SCHEMA(partition_2_fields, 11, 38),
        SCHEMA(partition_2_fields, 13, 38)};

static const rdmeta_kraft_field_t config_0_fields[] = {
        FIELD("resourceType", INT8, KEY),
        FIELD("resourceName", STRING, KEY),
        FIELD("name", STRING, KEY),
        FIELD("value", STRING, NULLABLE | GONE_IF_NULL)};
static const rdmeta_kraft_schema_t config[] = {
        SCHEMA(config_0_fields, 4, 5)};

static const rdmeta_kraft_field_t partition_change_2_fields[] = {
        FIELD("partitionId", INT32, 0),
        FIELD("topicId", UUID, 0),
        TAGGED("isr", 0, INT32, 0, ARRAY | NULLABLE | DEFAULT_NULL),
        TAGGED("leader", 1, INT32, -2, 0),
        TAGGED("replicas", 2, INT32, 0, ARRAY | NULLABLE | DEFAULT_NULL),
        TAGGED("removingReplicas", 3, INT32, 0,
               ARRAY | NULLABLE | DEFAULT_NULL),
        TAGGED("addingReplicas", 4, INT32, 0,
               ARRAY | NULLABLE | DEFAULT_NULL),
        TAGGED("leaderRecoveryState", 5, INT8, -1, 0),
        TAGGED("directories", 8, UUID, 0, ARRAY | NULLABLE | DEFAULT_NULL),
        TAGGED("eligibleLeaderReplicas", 6, INT32, 0,
               ARRAY | NULLABLE | DEFAULT_NULL),
        TAGGED("lastKnownElr", 7, INT32, 0, ARRAY | NULLABLE | DEFAULT_NULL)};
static const rdmeta_kraft_schema_t partition_change[] = {
        SCHEMA(partition_change_2_fields, 8, 21),
        SCHEMA(partition_change_2_fields, 9, 21),
        SCHEMA(partition_change_2_fields, 11, 21)};

static const rdmeta_kraft_field_t access_control_0_fields[] = {
        FIELD("resourceType", INT8, KEY),
        FIELD("resourceName", STRING, NULLABLE | KEY),
        FIELD("patternType", INT8, KEY),
        FIELD("principal", STRING, KEY),
        FIELD("host", STRING, KEY),
        FIELD("operation", INT8, KEY),
        FIELD("permissionType", INT8, KEY)};
static const rdmeta_kraft_schema_t access_control[] = {
        SCHEMA(access_control_0_fields, 7, 8)};

static const rdmeta_kraft_field_t fence_broker_0_fields[] = {
        FIELD("id", INT32, 0),
        FIELD("epoch", INT64, 0)};
static const rdmeta_kraft_schema_t fence_broker[] = {
        SCHEMA(fence_broker_0_fields, 2, 13)};
static const rdmeta_kraft_schema_t unfence_broker[] = {
        SCHEMA(fence_broker_0_fields, 2, 13)};

static const rdmeta_kraft_field_t remove_topic_0_fields[] = {
        FIELD("topicId", UUID, 0)};
static const rdmeta_kraft_schema_t remove_topic[] = {
        SCHEMA(remove_topic_0_fields, 1, 17)};

static const rdmeta_kraft_field_t delegation_token_0_fields[] = {
        FIELD("owner", STRING, 0),
        FIELD("requester", STRING, 0),
        FIELD("renewers", STRING, ARRAY),
        FIELD("issueTimestamp", INT64, 0),
        FIELD("maxTimestamp", INT64, 0),
        FIELD("expirationTimestamp", INT64, 0),
        FIELD("tokenId", STRING, KEY | SECRET)};
static const rdmeta_kraft_schema_t delegation_token[] = {
        SCHEMA(delegation_token_0_fields, 7, 29)};

static const rdmeta_kraft_field_t user_scram_credential_0_fields[] = {
        FIELD("name", STRING, KEY),
        FIELD("mechanism", INT8, KEY),
        FIELD("salt", BYTES, SECRET),
        FIELD("storedKey", BYTES, SECRET),
        FIELD("serverKey", BYTES, SECRET),
        FIELD("iterations", INT32, 0)};
static const rdmeta_kraft_schema_t user_scram_credential[] = {
        SCHEMA(user_scram_credential_0_fields, 6, 10)};

static const rdmeta_kraft_field_t feature_level_0_fields[] = {
        FIELD("name", STRING, KEY),
        FIELD("featureLevel", INT16, GONE_IF_ZERO)};
static const rdmeta_kraft_schema_t feature_level[] = {
        SCHEMA(feature_level_0_fields, 2, 4)};

static const rdmeta_kraft_field_t client_quota_0_entity_fields[] = {
        FIELD("entityType", STRING, 0),
        FIELD("entityName", STRING, NULLABLE)};
static const rdmeta_kraft_schema_t client_quota_0_entity =
        SCHEMA(client_quota_0_entity_fields, 2, 3);

static const rdmeta_kraft_field_t client_quota_0_fields[] = {
        STRUCT("entity", client_quota_0_entity, ARRAY | KEY),
        FIELD("key", STRING, KEY),
        FIELD("value", FLOAT64, 0),
        FIELD("remove", BOOL, GONE_IF_TRUE)};
static const rdmeta_kraft_schema_t client_quota[] = {
        SCHEMA(client_quota_0_fields, 4, 12)};

static const rdmeta_kraft_field_t producer_ids_0_fields[] = {
        FIELD("brokerId", INT32, 0),
        FIELD("brokerEpoch", INT64, 0),
        FIELD("nextProducerId", INT64, 0)};
static const rdmeta_kraft_schema_t producer_ids[] = {
        SCHEMA(producer_ids_0_fields, 3, 21)};

static const rdmeta_kraft_field_t broker_registration_change_3_fields[] = {
        FIELD("brokerId", INT32, 0),
        FIELD("brokerEpoch", INT64, 0),
        TAGGED("fenced", 0, INT8, 0, 0),
        TAGGED("inControlledShutdown", 1, INT8, 0, 0),
        TAGGED("logDirs", 2, UUID, 0, ARRAY),
        TAGGED("cordonedLogDirs", 3, UUID, 0,
               ARRAY | NULLABLE | DEFAULT_NULL)};
static const rdmeta_kraft_schema_t broker_registration_change[] = {
        SCHEMA(broker_registration_change_3_fields, 3, 13),
        SCHEMA(broker_registration_change_3_fields, 4, 13),
        SCHEMA(broker_registration_change_3_fields, 5, 13),
        SCHEMA(broker_registration_change_3_fields, 6, 13)};

static const rdmeta_kraft_field_t access_control_entry_0_fields[] = {
        FIELD("id", UUID, KEY),
        FIELD("resourceType", INT8, 0),
        FIELD("resourceName", STRING, 0),
        FIELD("patternType", INT8, 0),
        FIELD("principal", STRING, 0),
        FIELD("host", STRING, 0),
        FIELD("operation", INT8, 0),
        FIELD("permissionType", INT8, 0)};
static const rdmeta_kraft_schema_t access_control_entry[] = {
        SCHEMA(access_control_entry_0_fields, 8, 24)};
static const rdmeta_kraft_schema_t remove_access_control_entry[] = {
        SCHEMA(access_control_entry_0_fields, 1, 17)};
static const rdmeta_kraft_schema_t no_op[] = {
        SCHEMA(NULL, 0, 1)};

static const rdmeta_kraft_field_t zk_migration_state_0_fields[] = {
        FIELD("zkMigrationState", INT8, 0)};
static const rdmeta_kraft_schema_t zk_migration_state[] = {
        SCHEMA(zk_migration_state_0_fields, 1, 2)};
static const rdmeta_kraft_schema_t remove_user_scram_credential[] = {
        SCHEMA(user_scram_credential_0_fields, 2, 3)};

static const rdmeta_kraft_field_t begin_transaction_0_fields[] = {
        TAGGED("name", 0, STRING, 0, NULLABLE | DEFAULT_NULL)};
static const rdmeta_kraft_schema_t begin_transaction[] = {
        SCHEMA(begin_transaction_0_fields, 1, 1)};
static const rdmeta_kraft_schema_t end_transaction[] = {
        SCHEMA(NULL, 0, 1)};

static const rdmeta_kraft_field_t abort_transaction_0_fields[] = {
        TAGGED("reason", 0, STRING, 0, NULLABLE | DEFAULT_NULL)};
static const rdmeta_kraft_schema_t abort_transaction[] = {
        SCHEMA(abort_transaction_0_fields, 1, 1)};

static const rdmeta_kraft_field_t remove_delegation_token_0_fields[] = {
        FIELD("tokenId", STRING, KEY | SECRET)};
static const rdmeta_kraft_schema_t remove_delegation_token[] = {
        SCHEMA(remove_delegation_token_0_fields, 1, 2)};

static const rdmeta_kraft_field_t register_controller_0_fields[] = {
        FIELD("controllerId", INT32, KEY),
        FIELD("incarnationId", UUID, 0),
        FIELD("zkMigrationReady", BOOL, 0),
        STRUCT("endPoints", register_broker_4_end_points, ARRAY),
        STRUCT("features", register_broker_4_features, ARRAY)};
static const rdmeta_kraft_schema_t register_controller[] = {
        SCHEMA(register_controller_0_fields, 5, 24)};

static const rdmeta_kraft_field_t clear_elr_0_fields[] = {
        FIELD("topicName", STRING, 0)};
static const rdmeta_kraft_schema_t clear_elr[] = {
        SCHEMA(clear_elr_0_fields, 1, 2)};

static const rdmeta_kraft_field_t leader_change_message_1_voters_fields[] = {
        FIELD("voterId", INT32, 0),
        FIELD("voterDirectoryId", UUID, 0)};
static const rdmeta_kraft_schema_t leader_change_message_1_voters =
        SCHEMA(leader_change_message_1_voters_fields, 2, 21);

static const rdmeta_kraft_field_t leader_change_message_1_fields[] = {
        FIELD("version", INT16, 0),
        FIELD("leaderId", INT32, 0),
        STRUCT("voters", leader_change_message_1_voters, ARRAY),
        STRUCT("grantingVoters", leader_change_message_1_voters, ARRAY)};
static const rdmeta_kraft_schema_t leader_change_message_0_voters =
        SCHEMA(leader_change_message_1_voters_fields, 1, 5);

static const rdmeta_kraft_field_t leader_change_message_0_fields[] = {
        FIELD("version", INT16, 0),
        FIELD("leaderId", INT32, 0),
        STRUCT("voters", leader_change_message_0_voters, ARRAY),
        STRUCT("grantingVoters", leader_change_message_0_voters, ARRAY)};
static const rdmeta_kraft_schema_t leader_change_message[] = {
        SCHEMA(leader_change_message_0_fields, 4, 9),
        SCHEMA(leader_change_message_1_fields, 4, 9)};

static const rdmeta_kraft_field_t snapshot_header_0_fields[] = {
        FIELD("version", INT16, 0),
        FIELD("lastContainedLogTimestamp", INT64, 0)};
static const rdmeta_kraft_schema_t snapshot_header[] = {
        SCHEMA(snapshot_header_0_fields, 2, 11)};
static const rdmeta_kraft_schema_t snapshot_footer[] = {
        SCHEMA(leader_change_message_1_fields, 1, 3)};

static const rdmeta_kraft_field_t k_raft_version_0_fields[] = {
        FIELD("version", INT16, 0),
        FIELD("kRaftVersion", INT16, 0)};
static const rdmeta_kraft_schema_t k_raft_version[] = {
        SCHEMA(k_raft_version_0_fields, 2, 5)};
static const rdmeta_kraft_schema_t voters_0_voters_endpoints =
        SCHEMA(register_broker_4_end_points_fields, 3, 5);

static const rdmeta_kraft_field_t
        voters_0_voters_k_raft_version_feature_fields[] = {
        FIELD("minSupportedVersion", INT16, 0),
        FIELD("maxSupportedVersion", INT16, 0)};
static const rdmeta_kraft_schema_t voters_0_voters_k_raft_version_feature =
        SCHEMA(voters_0_voters_k_raft_version_feature_fields, 2, 5);

static const rdmeta_kraft_field_t voters_0_voters_fields[] = {
        FIELD("voterId", INT32, 0),
        FIELD("voterDirectoryId", UUID, 0),
        STRUCT("endpoints", voters_0_voters_endpoints, ARRAY),
        STRUCT("kRaftVersionFeature", voters_0_voters_k_raft_version_feature,
               0)};
static const rdmeta_kraft_schema_t voters_0_voters =
        SCHEMA(voters_0_voters_fields, 4, 27);

static const rdmeta_kraft_field_t voters_0_fields[] = {
        FIELD("version", INT16, 0),
        STRUCT("voters", voters_0_voters, ARRAY)};
static const rdmeta_kraft_schema_t voters[] = {
        SCHEMA(voters_0_fields, 2, 4)};

const rdmeta_kraft_type_t rdmeta_kraft_types[RDMETA_KRAFT_TYPES] = {
        TYPE(0, ROW, 0, "REGISTER_BROKER_RECORD", register_broker),
        TYPE(1, ROW, 0, "UNREGISTER_BROKER_RECORD", unregister_broker),
        TYPE(2, ROW, 0, "TOPIC_RECORD", topic),
        TYPE(3, ROW, 0, "PARTITION_RECORD", partition),
        TYPE(4, FACT, 0, "CONFIG_RECORD", config),
        TYPE(5, ROW, 0, "PARTITION_CHANGE_RECORD", partition_change),
        TYPE(6, FACT, 0, "ACCESS_CONTROL_RECORD", access_control),
        TYPE(7, ROW, 0, "FENCE_BROKER_RECORD", fence_broker),
        TYPE(8, ROW, 0, "UNFENCE_BROKER_RECORD", unfence_broker),
        TYPE(9, ROW, 0, "REMOVE_TOPIC_RECORD", remove_topic),
        TYPE(10, FACT, 0, "DELEGATION_TOKEN_RECORD", delegation_token),
        TYPE(11, FACT, 0, "USER_SCRAM_CREDENTIAL_RECORD",
             user_scram_credential),
        TYPE(12, FACT, 0, "FEATURE_LEVEL_RECORD", feature_level),
        TYPE(14, FACT, 0, "CLIENT_QUOTA_RECORD", client_quota),
        TYPE(15, FACT, 0, "PRODUCER_IDS_RECORD", producer_ids),
        TYPE(17, ROW, 0, "BROKER_REGISTRATION_CHANGE_RECORD",
             broker_registration_change),
        TYPE(18, FACT, 0, "ACCESS_CONTROL_ENTRY_RECORD",
             access_control_entry),
        TYPE(19, REMOVES, 18, "REMOVE_ACCESS_CONTROL_ENTRY_RECORD",
             remove_access_control_entry),
        TYPE(20, NOTHING, 0, "NO_OP_RECORD", no_op),
        TYPE(21, FACT, 0, "ZK_MIGRATION_STATE_RECORD", zk_migration_state),
        TYPE(22, REMOVES, 11, "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
             remove_user_scram_credential),
        TYPE(23, ROW, 0, "BEGIN_TRANSACTION_RECORD", begin_transaction),
        TYPE(24, ROW, 0, "END_TRANSACTION_RECORD", end_transaction),
        TYPE(25, ROW, 0, "ABORT_TRANSACTION_RECORD", abort_transaction),
        TYPE(26, REMOVES, 10, "REMOVE_DELEGATION_TOKEN_RECORD",
             remove_delegation_token),
        TYPE(27, FACT, 0, "REGISTER_CONTROLLER_RECORD", register_controller),
        TYPE(28, ROW, 0, "CLEAR_ELR_RECORD", clear_elr)};

const rdmeta_kraft_type_t rdmeta_kraft_controls[RDMETA_KRAFT_CONTROLS] = {
        TYPE(2, ROW, 0, "LEADER_CHANGE", leader_change_message),
        TYPE(3, ROW, 0, "SNAPSHOT_HEADER", snapshot_header),
        TYPE(4, ROW, 0, "SNAPSHOT_FOOTER", snapshot_footer),
        TYPE(5, FACT, 0, "KRAFT_VERSION", k_raft_version),
        TYPE(6, FACT, 0, "KRAFT_VOTERS", voters)};
