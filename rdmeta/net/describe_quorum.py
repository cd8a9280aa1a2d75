"""DescribeQuorum (API key 55), v0-v2: the controllers of a KRaft cluster (KIP-595, 836, 853).

Any broker passes the request to the active controller, and the answer to the client. A cluster with
ZooKeeper has no such API.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from rdmeta.errors import MalformedError, UnsupportedVersionError, from_code
from rdmeta.net.fields import FieldReader

DESCRIBE_QUORUM = 55
LOWEST, HIGHEST = 0, 2

_TOPIC = "__cluster_metadata"


class QuorumReplica(NamedTuple):
    """A node that follows the metadata log.

    `log_end_offset` is None if the leader does not know it. `last_fetch_ms` and `last_caught_up_ms`
    are Unix times by the leader's clock, None before v1 and if they are not known. The leader's own
    are the time of the answer. `directory_id` is None before v2, and for a node without one.
    """

    id: int
    log_end_offset: int | None
    last_fetch_ms: int | None
    last_caught_up_ms: int | None
    directory_id: UUID | None


class QuorumListener(NamedTuple):
    """A controller's listener."""

    name: str
    host: str
    port: int


class QuorumNode(NamedTuple):
    """The listeners of a node of the quorum."""

    id: int
    listeners: tuple[QuorumListener, ...]


class Quorum(NamedTuple):
    """The active controller's answer: `leader` is its own id, None if it is not known.

    `voters` are the controllers, `observers` the brokers and the other controllers. `nodes` is
    empty before v2.
    """

    leader: int | None
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    nodes: tuple[QuorumNode, ...]

    def lag(self, replica: QuorumReplica | int) -> int | None:
        """Returns how many records a node is behind the leader; None if that is not known.

        `replica` is a voter or an observer, or its id; raises ValueError if there is none.
        As in Kafka's kafka-metadata-quorum it is the difference of the log end offsets.
        """
        if isinstance(replica, int):
            found = {each.id: each for each in (*self.observers, *self.voters)}
            if replica not in found:
                raise ValueError(f"node {replica} is not in the quorum: it has {sorted(found)}")
            replica = found[replica]
        leader = self._leader()
        if leader is None or leader.log_end_offset is None or replica.log_end_offset is None:
            return None
        return leader.log_end_offset - replica.log_end_offset

    def age(self, time_ms: int | None) -> float | None:
        """Returns the seconds from one of a replica's times to the answer; None if not known.

        Both times are by the leader's clock, so the clock of this machine does not matter.

            quorum.age(quorum.voters[0].last_fetch_ms)
        """
        leader = self._leader()
        if leader is None or leader.last_caught_up_ms is None or time_ms is None:
            return None
        return (leader.last_caught_up_ms - time_ms) / 1000

    def _leader(self) -> QuorumReplica | None:
        return next((each for each in self.voters if each.id == self.leader), None)


class _Partition(NamedTuple):
    number: int
    error: int
    message: str | None
    quorum: Quorum


def encode_request(version: int) -> bytes:
    """Returns the body of a request for the metadata log's partition.

    Raises UnsupportedVersionError for an unknown version.
    """
    _check(version)
    name = _TOPIC.encode()
    return b"".join(
        (
            b"\2",  # one topic
            bytes([len(name) + 1]),
            name,
            b"\2",  # one partition
            bytes(4),
            b"\0\0\0",  # tagged fields of the partition, the topic and the request
        )
    )


def parse_response(body: bytes, version: int) -> Quorum:
    """Returns a parsed response's body.

    Raises MalformedError, also if the answer is not about the metadata log. Raises
    UnsupportedVersionError for an unknown version, and the Error of the code that the broker
    answers with.
    """
    _check(version)
    reader = FieldReader(body)
    error = reader.int16()
    message = reader.optional_string() if version >= 2 else None
    topics = reader.array(lambda each: _topic(each, version))
    nodes = reader.array(_node) if version >= 2 else ()
    reader.skip_tags()
    reader.end()
    if error:
        raise from_code(error, message)
    for name, partitions in topics:
        for partition in partitions:
            if (name, partition.number) == (_TOPIC, 0):
                if partition.error:
                    raise from_code(partition.error, partition.message)
                return partition.quorum._replace(nodes=nodes)
    raise MalformedError(f"the answer has no partition 0 of {_TOPIC}")


def _topic(reader: FieldReader, version: int) -> tuple[str, tuple[_Partition, ...]]:
    name = reader.string()
    partitions = reader.array(lambda each: _partition(each, version))
    reader.skip_tags()
    return name, partitions


def _partition(reader: FieldReader, version: int) -> _Partition:
    number, error = reader.int32(), reader.int16()
    message = reader.optional_string() if version >= 2 else None
    leader, leader_epoch, high_watermark = reader.int32(), reader.int32(), reader.int64()
    voters = reader.array(lambda each: _replica(each, version))
    observers = reader.array(lambda each: _replica(each, version))
    reader.skip_tags()
    quorum = Quorum(_known(leader), leader_epoch, high_watermark, voters, observers, ())
    return _Partition(number, error, message, quorum)


def _replica(reader: FieldReader, version: int) -> QuorumReplica:
    replica_id = reader.int32()
    directory_id = reader.uuid() if version >= 2 else None
    log_end_offset = _known(reader.int64())
    last_fetch = _known(reader.int64()) if version >= 1 else None
    last_caught_up = _known(reader.int64()) if version >= 1 else None
    reader.skip_tags()
    if directory_id is not None and not directory_id.int:
        directory_id = None
    return QuorumReplica(replica_id, log_end_offset, last_fetch, last_caught_up, directory_id)


def _node(reader: FieldReader) -> QuorumNode:
    node = QuorumNode(reader.int32(), reader.array(_listener))
    reader.skip_tags()
    return node


def _listener(reader: FieldReader) -> QuorumListener:
    listener = QuorumListener(reader.string(), reader.string(), reader.uint16())
    reader.skip_tags()
    return listener


def _known(value: int) -> int | None:
    return None if value < 0 else value


def _check(version: int) -> None:
    if not LOWEST <= version <= HIGHEST:
        raise UnsupportedVersionError(
            f"DescribeQuorum v{version} is unknown; v{LOWEST}-v{HIGHEST} are known"
        )
