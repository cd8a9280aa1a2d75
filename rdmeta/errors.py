"""The exceptions of this package, and Kafka's error codes with their names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

from rdmeta._escaping import escaped

if TYPE_CHECKING:
    from rdmeta.model import Applied

__all__ = [
    "ERRORS",
    "LOCAL_ERRORS",
    "ArgumentError",
    "AuthenticationError",
    "ConfigError",
    "Error",
    "ForkedError",
    "InvalidTopicError",
    "LeaderNotAvailableError",
    "MalformedError",
    "MissingExtraError",
    "NoBrokersError",
    "NoSuchPartitionError",
    "NotCachedError",
    "OutOfMemoryError",
    "RequestTimedOutError",
    "SaslError",
    "StaleError",
    "TlsError",
    "TopicAuthorizationError",
    "TransportError",
    "UnknownTopicError",
    "UnsupportedVersionError",
    "WrongClusterError",
    "error_name",
    "from_code",
]


class Error(Exception):
    """The base class of every exception of this package.

    `code` is Kafka's error code. It is None if no broker sent one, as for this package's own
    time-outs and for a partition that its topic does not have. `retriable` says whether the same
    call may succeed later without a change by the user. For Kafka's codes it is the same as in
    Kafka's own client (`org.apache.kafka.common.errors.RetriableException`). The text has escapes
    such as \\n for what does not print, as a part of it may come from a server or a file.
    """

    default_code: ClassVar[int | None] = None
    default_retriable: ClassVar[bool] = False

    code: int | None
    retriable: bool
    # The facts about an answer that `MetadataCache.apply` refused; None for other errors.
    applied: Applied | None = None

    def __init__(
        self, message: object = "", code: int | None = None, retriable: bool | None = None
    ) -> None:
        super().__init__(escaped(message) if isinstance(message, str) else message)
        self.code = self.default_code if code is None else code
        if retriable is None:
            known = None if self.code is None else ERRORS.get(self.code)
            retriable = known[1] if known else self.default_retriable
        self.retriable = retriable


class UnknownTopicError(Error):
    """An answer says that the topic, or a topic with that id, does not exist."""

    default_code = 3


class NoSuchPartitionError(Error):
    """The topic is known and has no partition of that number.

    `partitions` is the number of its partitions, None if that is not known. The error is retriable,
    as partitions may be added. It is not retriable for a negative partition.
    """

    default_retriable = True

    partitions: int | None = None


class NotCachedError(Error):
    """The cache knows nothing about the topic, or is waiting for the answer to a request."""

    default_retriable = True


class StaleError(Error):
    """The topic is known, but past its deadline."""

    default_retriable = True


class LeaderNotAvailableError(Error):
    """The partition has no leader now."""

    default_code = 5


class TopicAuthorizationError(Error):
    """The client's principal may not describe the topic."""

    default_code = 29


class InvalidTopicError(Error):
    """The name is not a legal topic name."""

    default_code = 17


class MalformedError(Error):
    """The bytes are not a broker's: truncated, contradictory, or of another protocol."""


class UnsupportedVersionError(Error):
    """A version that cannot express the request, or that only one of the two sides supports."""

    api_key: int | None = None  # that of Kafka's API, if the two sides have no version in common


class TransportError(Error):
    """A connection could not be made, broke, or returned an answer out of order."""

    default_retriable = True


class TlsError(TransportError):
    """TLS failed: a certificate, a host name, a version, or a port without TLS.

    It is retriable only where it says so, as for a connection that broke.
    """

    default_retriable = False


class SaslError(TransportError):
    """The port wants a login by SASL, and the client is configured without one."""

    default_retriable = False


class AuthenticationError(Error):
    """A broker refuses the client's login, or no login could be made, as without a token.

    It is retriable only where it says so, as when the server of the tokens is down.
    """


class RequestTimedOutError(Error):
    """No answer arrived before the deadline."""

    default_retriable = True


class NoBrokersError(Error):
    """An answer has no brokers, which Kafka's clients treat as a failed refresh."""

    default_retriable = True


class WrongClusterError(Error):
    """An answer came from another cluster than the cached one, or servers are of two clusters.

    The text has both ids, and the servers where they are known.
    """


class ForkedError(Error):
    """The child of a fork wrote to, or waited for, its parent's cache: it can only read it."""


class ArgumentError(Error, ValueError):
    """The C core refuses a value, such as an empty topic name."""


class ConfigError(Error, ValueError):
    """A configuration has an unknown option, a wrong value or a contradiction, or is unreadable."""


class OutOfMemoryError(Error, MemoryError):
    """The C core could not allocate memory; nothing has changed."""


class MissingExtraError(Error, ImportError):
    """A package is missing that one of rdmeta's extras installs."""

    @classmethod
    def of(cls, what: str, *extras: str) -> MissingExtraError:
        """Returns the error for a feature, named `what`, that needs `extras`."""
        return cls(f"{what} needs more packages: {install_advice(*extras)}")


def install_advice(*extras: str) -> str:
    """Returns the command that installs extras; for a source checkout it names that."""
    tree = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.path.isfile(os.path.join(tree, "setup.py")):
        where = "." if os.path.samefile(tree, os.curdir) else tree
        return f"pip install -e '{where}[{','.join(extras)}]'"
    return f"pip install 'rdmeta[{','.join(extras)}]'"


# Code: (name, whether Kafka's client calls it retriable); org.apache.kafka.common.protocol.Errors.
ERRORS: dict[int, tuple[str, bool]] = {
    -1: ("UNKNOWN_SERVER_ERROR", False),
    0: ("NONE", False),
    1: ("OFFSET_OUT_OF_RANGE", False),
    2: ("CORRUPT_MESSAGE", True),
    3: ("UNKNOWN_TOPIC_OR_PARTITION", True),
    4: ("INVALID_FETCH_SIZE", False),
    5: ("LEADER_NOT_AVAILABLE", True),
    6: ("NOT_LEADER_OR_FOLLOWER", True),
    7: ("REQUEST_TIMED_OUT", True),
    8: ("BROKER_NOT_AVAILABLE", False),
    9: ("REPLICA_NOT_AVAILABLE", True),
    10: ("MESSAGE_TOO_LARGE", False),
    11: ("STALE_CONTROLLER_EPOCH", False),
    12: ("OFFSET_METADATA_TOO_LARGE", False),
    13: ("NETWORK_EXCEPTION", True),
    14: ("COORDINATOR_LOAD_IN_PROGRESS", True),
    15: ("COORDINATOR_NOT_AVAILABLE", True),
    16: ("NOT_COORDINATOR", True),
    17: ("INVALID_TOPIC_EXCEPTION", False),
    18: ("RECORD_LIST_TOO_LARGE", False),
    19: ("NOT_ENOUGH_REPLICAS", True),
    20: ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", True),
    21: ("INVALID_REQUIRED_ACKS", False),
    22: ("ILLEGAL_GENERATION", False),
    23: ("INCONSISTENT_GROUP_PROTOCOL", False),
    24: ("INVALID_GROUP_ID", False),
    25: ("UNKNOWN_MEMBER_ID", False),
    26: ("INVALID_SESSION_TIMEOUT", False),
    27: ("REBALANCE_IN_PROGRESS", False),
    28: ("INVALID_COMMIT_OFFSET_SIZE", False),
    29: ("TOPIC_AUTHORIZATION_FAILED", False),
    30: ("GROUP_AUTHORIZATION_FAILED", False),
    31: ("CLUSTER_AUTHORIZATION_FAILED", False),
    32: ("INVALID_TIMESTAMP", False),
    33: ("UNSUPPORTED_SASL_MECHANISM", False),
    34: ("ILLEGAL_SASL_STATE", False),
    35: ("UNSUPPORTED_VERSION", False),
    36: ("TOPIC_ALREADY_EXISTS", False),
    37: ("INVALID_PARTITIONS", False),
    38: ("INVALID_REPLICATION_FACTOR", False),
    39: ("INVALID_REPLICA_ASSIGNMENT", False),
    40: ("INVALID_CONFIG", False),
    41: ("NOT_CONTROLLER", True),
    42: ("INVALID_REQUEST", False),
    43: ("UNSUPPORTED_FOR_MESSAGE_FORMAT", False),
    44: ("POLICY_VIOLATION", False),
    45: ("OUT_OF_ORDER_SEQUENCE_NUMBER", False),
    46: ("DUPLICATE_SEQUENCE_NUMBER", False),
    47: ("INVALID_PRODUCER_EPOCH", False),
    48: ("INVALID_TXN_STATE", False),
    49: ("INVALID_PRODUCER_ID_MAPPING", False),
    50: ("INVALID_TRANSACTION_TIMEOUT", False),
    51: ("CONCURRENT_TRANSACTIONS", True),
    52: ("TRANSACTION_COORDINATOR_FENCED", False),
    53: ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", False),
    54: ("SECURITY_DISABLED", False),
    55: ("OPERATION_NOT_ATTEMPTED", False),
    56: ("KAFKA_STORAGE_ERROR", True),
    57: ("LOG_DIR_NOT_FOUND", False),
    58: ("SASL_AUTHENTICATION_FAILED", False),
    59: ("UNKNOWN_PRODUCER_ID", False),
    60: ("REASSIGNMENT_IN_PROGRESS", False),
    61: ("DELEGATION_TOKEN_AUTH_DISABLED", False),
    62: ("DELEGATION_TOKEN_NOT_FOUND", False),
    63: ("DELEGATION_TOKEN_OWNER_MISMATCH", False),
    64: ("DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", False),
    65: ("DELEGATION_TOKEN_AUTHORIZATION_FAILED", False),
    66: ("DELEGATION_TOKEN_EXPIRED", False),
    67: ("INVALID_PRINCIPAL_TYPE", False),
    68: ("NON_EMPTY_GROUP", False),
    69: ("GROUP_ID_NOT_FOUND", False),
    70: ("FETCH_SESSION_ID_NOT_FOUND", True),
    71: ("INVALID_FETCH_SESSION_EPOCH", True),
    72: ("LISTENER_NOT_FOUND", True),
    73: ("TOPIC_DELETION_DISABLED", False),
    74: ("FENCED_LEADER_EPOCH", True),
    75: ("UNKNOWN_LEADER_EPOCH", True),
    76: ("UNSUPPORTED_COMPRESSION_TYPE", False),
    77: ("STALE_BROKER_EPOCH", False),
    78: ("OFFSET_NOT_AVAILABLE", True),
    79: ("MEMBER_ID_REQUIRED", False),
    80: ("PREFERRED_LEADER_NOT_AVAILABLE", True),
    81: ("GROUP_MAX_SIZE_REACHED", False),
    82: ("FENCED_INSTANCE_ID", False),
    83: ("ELIGIBLE_LEADERS_NOT_AVAILABLE", True),
    84: ("ELECTION_NOT_NEEDED", True),
    85: ("NO_REASSIGNMENT_IN_PROGRESS", False),
    86: ("GROUP_SUBSCRIBED_TO_TOPIC", False),
    87: ("INVALID_RECORD", False),
    88: ("UNSTABLE_OFFSET_COMMIT", True),
    89: ("THROTTLING_QUOTA_EXCEEDED", True),
    90: ("PRODUCER_FENCED", False),
    91: ("RESOURCE_NOT_FOUND", False),
    92: ("DUPLICATE_RESOURCE", False),
    93: ("UNACCEPTABLE_CREDENTIAL", False),
    94: ("INCONSISTENT_VOTER_SET", False),
    95: ("INVALID_UPDATE_VERSION", False),
    96: ("FEATURE_UPDATE_FAILED", False),
    97: ("PRINCIPAL_DESERIALIZATION_FAILURE", False),
    98: ("SNAPSHOT_NOT_FOUND", False),
    99: ("POSITION_OUT_OF_RANGE", False),
    100: ("UNKNOWN_TOPIC_ID", True),
    101: ("DUPLICATE_BROKER_REGISTRATION", False),
    102: ("BROKER_ID_NOT_REGISTERED", False),
    103: ("INCONSISTENT_TOPIC_ID", True),
    104: ("INCONSISTENT_CLUSTER_ID", False),
    105: ("TRANSACTIONAL_ID_NOT_FOUND", False),
    106: ("FETCH_SESSION_TOPIC_ID_ERROR", True),
    107: ("INELIGIBLE_REPLICA", False),
    108: ("NEW_LEADER_ELECTED", False),
    109: ("OFFSET_MOVED_TO_TIERED_STORAGE", False),
    110: ("FENCED_MEMBER_EPOCH", False),
    111: ("UNRELEASED_INSTANCE_ID", False),
    112: ("UNSUPPORTED_ASSIGNOR", False),
    113: ("STALE_MEMBER_EPOCH", False),
    114: ("MISMATCHED_ENDPOINT_TYPE", False),
    115: ("UNSUPPORTED_ENDPOINT_TYPE", False),
    116: ("UNKNOWN_CONTROLLER_ID", False),
    117: ("UNKNOWN_SUBSCRIPTION_ID", False),
    118: ("TELEMETRY_TOO_LARGE", False),
    119: ("INVALID_REGISTRATION", False),
    120: ("TRANSACTION_ABORTABLE", False),
    121: ("INVALID_RECORD_STATE", False),
    122: ("SHARE_SESSION_NOT_FOUND", True),
    123: ("INVALID_SHARE_SESSION_EPOCH", True),
    124: ("FENCED_STATE_EPOCH", False),
    125: ("INVALID_VOTER_KEY", False),
    126: ("DUPLICATE_VOTER", False),
    127: ("VOTER_NOT_FOUND", False),
    128: ("INVALID_REGULAR_EXPRESSION", False),
    129: ("REBOOTSTRAP_REQUIRED", False),
    130: ("STREAMS_INVALID_TOPOLOGY", False),
    131: ("STREAMS_INVALID_TOPOLOGY_EPOCH", False),
    132: ("STREAMS_TOPOLOGY_FENCED", False),
    133: ("SHARE_SESSION_LIMIT_REACHED", True),
}

# The C core's own codes, as in rdmeta.h: (name, exception).
LOCAL_ERRORS: dict[int, tuple[str, type[Error]]] = {
    -100: ("NOT_CACHED", NotCachedError),
    -101: ("WAITING", NotCachedError),
    -102: ("STALE", StaleError),
    -103: ("UNKNOWN_TOPIC", UnknownTopicError),
    -104: ("NO_PARTITION", NoSuchPartitionError),
    -105: ("DENIED", TopicAuthorizationError),
    -106: ("INVALID", InvalidTopicError),
    -120: ("NO_MEMORY", OutOfMemoryError),
    -121: ("MALFORMED", MalformedError),
    -122: ("UNSUPPORTED", UnsupportedVersionError),
    -123: ("ARGUMENT", ArgumentError),
    -124: ("NO_BROKERS", NoBrokersError),
    -125: ("WRONG_CLUSTER", WrongClusterError),
    -126: ("FORKED", ForkedError),
    -127: ("TOO_SMALL", ArgumentError),
    -128: ("RESPONSE", Error),
    -129: ("IO", Error),  # an OSError is raised instead where errno is known
}

_CLASSES: dict[int, type[Error]] = {
    3: UnknownTopicError,
    5: LeaderNotAvailableError,
    7: RequestTimedOutError,
    17: InvalidTopicError,
    29: TopicAuthorizationError,
    33: AuthenticationError,
    34: AuthenticationError,
    35: UnsupportedVersionError,
    58: AuthenticationError,
    100: UnknownTopicError,
}


_CODES = {name: code for code, (name, _) in {**ERRORS, **LOCAL_ERRORS}.items()}


def code_of(name: str) -> int:
    """Returns the code of a name in the tables, Kafka's or local."""
    return _CODES[name]


def error_name(code: int) -> str:
    """Returns the name of a code, Kafka's or local; `ERROR_<code>` if the tables lack it."""
    if code in LOCAL_ERRORS:
        return LOCAL_ERRORS[code][0]
    known = ERRORS.get(code)
    return known[0] if known else f"ERROR_{code}"


def from_code(code: int, message: str | None = None) -> Error:
    """Returns the exception for an error code, Kafka's or the C core's.

    A code that the tables lack becomes a plain `Error` that is not retriable, as in Kafka's own
    client. Raises ValueError for code 0, which is not an error.
    """
    if code == 0:
        raise ValueError("code 0 is not an error")
    name = error_name(code)
    if message:
        name = f"{name}: {message}"
    if code in LOCAL_ERRORS:
        return LOCAL_ERRORS[code][1](name)
    return _CLASSES.get(code, Error)(name, code)
