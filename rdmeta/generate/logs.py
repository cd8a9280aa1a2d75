"""Records of the metadata log as bytes: batches, segments and snapshots of KRaft.

    log = Log()
    log.lead(1, leader=3)                                   # a control batch
    log.append(("TOPIC_RECORD", 0, {"name": "orders", "topicId": uuid}), ...)   # one batch
    log.data                                                # the bytes of the segment

The fields of a record are as DumpLogSegments prints them: ids in base64, no tagged field that has
its default. The schemas are written by hand from Kafka's documentation of its records, and this
module uses nothing of rdmeta: what it writes checks what rdmeta reads.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

# NAME:TYPE for each field. [TYPE] is an array, [NAME:TYPE ...] one of structs, {...} a struct.
# Behind it: ? nullable; @2 since version 2; #0=DEFAULT the tag, and what the field has without it.
_ENDPOINTS = "[name:str host:str port:u16 securityProtocol:i16]"
_FEATURES = "[name:str minSupportedVersion:i16 maxSupportedVersion:i16]"
_VOTERS = "[voterId:i32 voterDirectoryId:uuid@1]"
_TEXTS = {
    (0, 4, "REGISTER_BROKER_RECORD"): "brokerId:i32 isMigratingZkBroker:bool@2 incarnationId:uuid"
    f" brokerEpoch:i64 endPoints:{_ENDPOINTS} features:{_FEATURES} rack:str? fenced:bool"
    " inControlledShutdown:bool@1 logDirs:[uuid]@3#0=[] cordonedLogDirs:[uuid]?@4#1=null",
    (1, 0, "UNREGISTER_BROKER_RECORD"): "brokerId:i32 brokerEpoch:i64",
    (2, 0, "TOPIC_RECORD"): "name:str topicId:uuid",
    (3, 2, "PARTITION_RECORD"): "partitionId:i32 topicId:uuid replicas:[i32] isr:[i32]"
    " removingReplicas:[i32] addingReplicas:[i32] leader:i32 leaderRecoveryState:i8#0=0"
    " leaderEpoch:i32 partitionEpoch:i32 directories:[uuid]@1"
    " eligibleLeaderReplicas:[i32]?@2#1=null lastKnownElr:[i32]?@2#2=null",
    (4, 0, "CONFIG_RECORD"): "resourceType:i8 resourceName:str name:str value:str?",
    (5, 2, "PARTITION_CHANGE_RECORD"): "partitionId:i32 topicId:uuid isr:[i32]?#0=null"
    " leader:i32#1=-2 replicas:[i32]?#2=null removingReplicas:[i32]?#3=null"
    " addingReplicas:[i32]?#4=null leaderRecoveryState:i8#5=-1 directories:[uuid]?@1#8=null"
    " eligibleLeaderReplicas:[i32]?@2#6=null lastKnownElr:[i32]?@2#7=null",
    (6, 0, "ACCESS_CONTROL_RECORD"): "resourceType:i8 resourceName:str? patternType:i8"
    " principal:str host:str operation:i8 permissionType:i8",
    (7, 0, "FENCE_BROKER_RECORD"): "id:i32 epoch:i64",
    (8, 0, "UNFENCE_BROKER_RECORD"): "id:i32 epoch:i64",
    (9, 0, "REMOVE_TOPIC_RECORD"): "topicId:uuid",
    (10, 0, "DELEGATION_TOKEN_RECORD"): "owner:str requester:str renewers:[str]"
    " issueTimestamp:i64 maxTimestamp:i64 expirationTimestamp:i64 tokenId:str",
    (11, 0, "USER_SCRAM_CREDENTIAL_RECORD"): "name:str mechanism:i8 salt:bytes storedKey:bytes"
    " serverKey:bytes iterations:i32",
    (12, 0, "FEATURE_LEVEL_RECORD"): "name:str featureLevel:i16",
    (14, 0, "CLIENT_QUOTA_RECORD"): "entity:[entityType:str entityName:str?] key:str value:f64"
    " remove:bool",
    (15, 0, "PRODUCER_IDS_RECORD"): "brokerId:i32 brokerEpoch:i64 nextProducerId:i64",
    (17, 3, "BROKER_REGISTRATION_CHANGE_RECORD"): "brokerId:i32 brokerEpoch:i64 fenced:i8#0=0"
    " inControlledShutdown:i8@1#1=0 logDirs:[uuid]@2#2=[] cordonedLogDirs:[uuid]?@3#3=null",
    (18, 0, "ACCESS_CONTROL_ENTRY_RECORD"): "id:uuid resourceType:i8 resourceName:str"
    " patternType:i8 principal:str host:str operation:i8 permissionType:i8",
    (19, 0, "REMOVE_ACCESS_CONTROL_ENTRY_RECORD"): "id:uuid",
    (20, 0, "NO_OP_RECORD"): "",
    (21, 0, "ZK_MIGRATION_STATE_RECORD"): "zkMigrationState:i8",
    (22, 0, "REMOVE_USER_SCRAM_CREDENTIAL_RECORD"): "name:str mechanism:i8",
    (23, 0, "BEGIN_TRANSACTION_RECORD"): "name:str?#0=null",
    (24, 0, "END_TRANSACTION_RECORD"): "",
    (25, 0, "ABORT_TRANSACTION_RECORD"): "reason:str?#0=null",
    (26, 0, "REMOVE_DELEGATION_TOKEN_RECORD"): "tokenId:str",
    (27, 0, "REGISTER_CONTROLLER_RECORD"): "controllerId:i32 incarnationId:uuid"
    f" zkMigrationReady:bool endPoints:{_ENDPOINTS} features:{_FEATURES}",
    (28, 0, "CLEAR_ELR_RECORD"): "topicName:str",
}
_CONTROL_TEXTS = {
    (2, 1, "LEADER_CHANGE"): f"version:i16 leaderId:i32 voters:{_VOTERS} grantingVoters:{_VOTERS}",
    (3, 0, "SNAPSHOT_HEADER"): "version:i16 lastContainedLogTimestamp:i64",
    (4, 0, "SNAPSHOT_FOOTER"): "version:i16",
    (5, 0, "KRAFT_VERSION"): "version:i16 kRaftVersion:i16",
    (6, 0, "KRAFT_VOTERS"): "version:i16 voters:[voterId:i32 voterDirectoryId:uuid"
    " endpoints:[name:str host:str port:u16]"
    " kRaftVersionFeature:{minSupportedVersion:i16 maxSupportedVersion:i16}]",
}

FIXED = {
    "i8": ">b", "i16": ">h", "u16": ">H", "i32": ">i", "i64": ">q", "f64": ">d", "bool": ">?",
}  # fmt: skip
_FIELD = re.compile(
    r"(\w+):(\w+|\{[^}]*\}|\[(?:[^][]|\[[^]]*\])*\])(\?)?(?:@(\d+))?(?:#(\d+)=(\S+))?"
)
_DEFAULTS: dict[str, Any] = {"": None, "null": None, "[]": []}


class Field(NamedTuple):
    """A field of a schema; `inner` has those of a struct."""

    name: str
    type: str
    is_array: bool
    inner: tuple[Field, ...]
    is_nullable: bool
    since: int
    tag: int | None
    default: Any


def _parsed(text: str) -> tuple[Field, ...]:
    """Returns the fields of a schema's text."""
    found = []
    for name, type, nullable, since, tag, default in _FIELD.findall(text):
        of = type.strip("[{}]") if ":" not in type else ""
        value = _DEFAULTS[default] if default in _DEFAULTS else int(default)
        found.append(
            Field(
                name, of, type[0] == "[", _parsed(type[1:-1]), bool(nullable), int(since or 0),
                int(tag) if tag else None, value,
            )
        )  # fmt: skip
    return tuple(found)


class Schema(NamedTuple):
    """A type of records: its number, its highest version and its fields."""

    key: int
    last: int
    fields: tuple[Field, ...]


SCHEMAS = {n: Schema(key, last, _parsed(text)) for (key, last, n), text in _TEXTS.items()}
CONTROLS = {n: Schema(key, last, _parsed(text)) for (key, last, n), text in _CONTROL_TEXTS.items()}


# ---- values -----------------------------------------------------------------


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    return uvarint((value << 1) ^ (value >> 63))


def uuid_text(number: int) -> str:
    """Returns an id as Kafka prints it."""
    return base64.urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")


def _put(field: Field, version: int, value: Any) -> bytes:
    if field.is_array:
        if value is None:
            return uvarint(0)
        one = field._replace(is_array=False, is_nullable=False)
        return uvarint(len(value) + 1) + b"".join(_put(one, version, each) for each in value)
    if field.inner:
        return _put_fields(field.inner, version, value)
    if field.type in FIXED:
        return struct.pack(FIXED[field.type], value)
    if field.type == "uuid":
        return base64.urlsafe_b64decode(f"{value}==")
    if value is None:
        return uvarint(0)
    data = base64.b64decode(value) if field.type == "bytes" else value.encode()
    return uvarint(len(data) + 1) + data


def _put_fields(fields: Sequence[Field], version: int, data: Mapping[str, Any]) -> bytes:
    out, tags = [], {}
    known = [field for field in fields if field.since <= version]
    if extra := set(data) - {field.name for field in known}:
        raise ValueError(f"version {version} has no {extra}")
    for field in known:
        if field.tag is None:
            out.append(_put(field, version, data[field.name]))
        elif data.get(field.name, field.default) != field.default:
            tags[field.tag] = _put(field, version, data[field.name])
    out.append(uvarint(len(tags)))
    for tag, value in sorted(tags.items()):
        out.append(uvarint(tag) + uvarint(len(value)) + value)
    return b"".join(out)


# ---- records ----------------------------------------------------------------

Given = tuple[str, int, Mapping[str, Any]]  # a type's name, a version, fields


def value_of(name: str, version: int, data: Mapping[str, Any]) -> bytes:
    """Returns the value of a record, with its frame."""
    schema = SCHEMAS[name]
    frame = uvarint(1) + uvarint(schema.key) + uvarint(version)
    return frame + _put_fields(schema.fields, version, data)


def control_of(name: str, data: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Returns the key and the value of a control record; its data has the version."""
    schema = CONTROLS[name]
    return struct.pack(">hh", 0, schema.key), _put_fields(schema.fields, data["version"], data)


_POLYNOMIAL = 0x82F63B78
_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (_POLYNOMIAL if _byte & 1 else 0)
    _TABLE.append(_byte)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def batch_of(
    values: Sequence[tuple[bytes | None, bytes]],
    base: int,
    epoch: int,
    time_ms: int,
    is_control: bool = False,
) -> bytes:
    """Returns a batch of records that are given as key and value."""
    records = bytearray()
    for delta, (key, value) in enumerate(values):
        body = b"\0" + varint(0) + varint(delta)
        body += varint(-1) if key is None else varint(len(key)) + key
        body += varint(len(value)) + value + varint(0)
        records += varint(len(body)) + body
    checked = struct.pack(
        ">hiqqqhii", 0x20 if is_control else 0, len(values) - 1, time_ms, time_ms, -1, -1, -1,
        len(values),
    ) + bytes(records)  # fmt: skip
    head = struct.pack(">qiibI", base, len(checked) + 9, epoch, 2, crc32c(checked))
    return head + checked


# ---- files ------------------------------------------------------------------


class Log:
    """A log that grows by batches, each one a commit at its time."""

    def __init__(self, base: int = 0, epoch: int = 1, time_ms: int = 1_700_000_000_000) -> None:
        self.base = self.end = base
        self.epoch = epoch
        self.time_ms = time_ms
        self.data = bytearray()
        # For each batch: the end of its bytes and of its offsets, its time and its epoch.
        self.ends: list[tuple[int, int, int, int]] = []

    def append(self, *records: Given) -> int:
        """Appends a batch; returns the offset of its first record."""
        return self._add([(None, value_of(*record)) for record in records], False)

    def control(self, *records: tuple[str, Mapping[str, Any]]) -> int:
        """Appends a control batch; returns the offset of its first record."""
        return self._add([control_of(*record) for record in records], True)

    def lead(self, epoch: int, leader: int, voters: Iterable[int] = (1, 2, 3)) -> int:
        """Begins an epoch, as its leader does."""
        self.epoch = epoch
        all_of = [{"voterId": voter} for voter in voters]
        data = {"version": 0, "leaderId": leader, "voters": all_of, "grantingVoters": all_of[:2]}
        return self.control(("LEADER_CHANGE", data))

    def _add(self, values: Sequence[tuple[bytes | None, bytes]], is_control: bool) -> int:
        base = self.end
        self.data += batch_of(values, base, self.epoch, self.time_ms, is_control)
        self.end += len(values)
        self.ends.append((len(self.data), self.end, self.time_ms, self.epoch))
        self.time_ms += 1000
        return base

    @property
    def name(self) -> str:
        return f"{self.base:020d}.log"


def snapshot(records: Sequence[Given], epoch: int, last_ms: int, per_batch: int = 100) -> bytes:
    """Returns the bytes of a snapshot; its last record was appended to the log at `last_ms`."""
    made = Log(0, epoch, last_ms + 5)
    made.control(("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": last_ms}))
    for first in range(0, len(records), per_batch):
        made.append(*records[first : first + per_batch])
    made.control(("SNAPSHOT_FOOTER", {"version": 0}))
    return bytes(made.data)


def snapshot_name(end: int, epoch: int) -> str:
    return f"{end:020d}-{epoch:010d}.checkpoint"
