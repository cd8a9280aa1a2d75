"""DescribeQuorum beside kafka-python's codec, and what its parser refuses."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import damage
import pytest
from kafka.protocol.admin import DescribeQuorumRequest, DescribeQuorumResponse

from rdmeta.errors import Error, MalformedError, UnsupportedVersionError
from rdmeta.net.describe_quorum import (
    Quorum,
    QuorumListener,
    QuorumNode,
    QuorumReplica,
    encode_request,
    parse_response,
)

VERSIONS = range(3)
DIRECTORY = UUID("01234567-89ab-cdef-0123-456789abcdef")
TOPIC = "__cluster_metadata"


def replica(number: int, end: int, times: int, directory: UUID) -> Any:
    return DescribeQuorumResponse.TopicData.PartitionData.ReplicaState(
        replica_id=number,
        replica_directory_id=directory,
        log_end_offset=end,
        last_fetch_timestamp=times,
        last_caught_up_timestamp=times,
    )


def answer(
    version: int,
    error: int = 0,
    partition_error: int = 0,
    message: str | None = None,
    topic: str = TOPIC,
    leader: int = 1,
) -> bytes:
    of_topic = DescribeQuorumResponse.TopicData
    of_node = DescribeQuorumResponse.Node
    partition = of_topic.PartitionData(
        partition_index=0,
        error_code=partition_error,
        error_message=message,
        leader_id=leader,
        leader_epoch=5,
        high_watermark=2**40,
        current_voters=[replica(1, 2**40, 1700000000000, DIRECTORY)],
        observers=[replica(3, -1, -1, UUID(int=0))],
    )
    listener = of_node.Listener(name="CONTROLLER", host="one.example", port=65535)
    response = DescribeQuorumResponse(
        error_code=error,
        error_message=message,
        topics=[of_topic(topic_name=topic, partitions=[partition])],
        nodes=[of_node(node_id=1, listeners=[listener])],
    )
    return bytes(response.encode(version=version))


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_are_those_of_kafka_python(version: int) -> None:
    topic = DescribeQuorumRequest.TopicData
    partition = topic.PartitionData(partition_index=0)
    theirs = DescribeQuorumRequest(topics=[topic(topic_name=TOPIC, partitions=[partition])])
    assert encode_request(version) == theirs.encode(version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_answers_of_kafka_python_are_read(version: int) -> None:
    read = parse_response(answer(version), version)
    time = 1700000000000 if version >= 1 else None
    directory = DIRECTORY if version >= 2 else None
    assert (read.leader, read.leader_epoch, read.high_watermark) == (1, 5, 2**40)
    assert read.voters == (QuorumReplica(1, 2**40, time, time, directory),)
    assert read.observers == (QuorumReplica(3, None, None, None, None),)
    nodes = (QuorumNode(1, (QuorumListener("CONTROLLER", "one.example", 65535),)),)
    assert read.nodes == (nodes if version >= 2 else ())


def test_a_lag_is_counted_from_the_leaders_log_end() -> None:
    voters = tuple(QuorumReplica(id, end, None, None, None) for id, end in ((1, 90), (2, 100)))
    observer, unknown = voters[0]._replace(id=3, log_end_offset=40), voters[0]._replace(id=4)
    unknown = unknown._replace(log_end_offset=None)
    quorum = Quorum(2, 5, 95, voters, (observer, unknown), ())
    assert [quorum.lag(each) for each in (*voters, observer, unknown)] == [10, 0, 60, None]
    assert [quorum.lag(voters[0].id), quorum.lag(observer.id)] == [10, 60]
    with pytest.raises(ValueError, match="node 99 is not in the quorum"):
        quorum.lag(99)
    assert quorum._replace(leader=None).lag(observer) is None
    assert quorum._replace(leader=9).lag(observer) is None


def test_ages_are_by_the_clock_of_the_leader() -> None:
    voters = (QuorumReplica(1, 9, 10_000, 10_000, None), QuorumReplica(2, 9, 9_500, 8_000, None))
    quorum = Quorum(1, 5, 9, voters, (), ())
    assert [quorum.age(each.last_fetch_ms) for each in voters] == [0.0, 0.5]
    assert [quorum.age(each.last_caught_up_ms) for each in voters] == [0.0, 2.0]
    assert quorum.age(None) is None
    assert quorum._replace(leader=None).age(9_000) is None
    assert quorum._replace(voters=(voters[0]._replace(last_caught_up_ms=None),)).age(1) is None


def test_an_unknown_leader_is_none() -> None:
    assert parse_response(answer(2, leader=-1), 2).leader is None


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("codes", [(41, 0), (0, 41)])
def test_an_error_of_the_answer_or_the_partition_is_raised(
    version: int, codes: tuple[int, int]
) -> None:
    said = ": ask another" if version >= 2 else ""
    with pytest.raises(Error, match=f"NOT_CONTROLLER{said}$") as raised:
        parse_response(answer(version, *codes, message="ask another"), version)
    assert (raised.value.code, raised.value.retriable) == (41, True)


def test_an_answer_about_another_topic_is_malformed() -> None:
    with pytest.raises(MalformedError, match="no partition 0 of __cluster_metadata"):
        parse_response(answer(2, topic="orders"), 2)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_prefix_of_an_answer_and_a_longer_one_are_malformed(version: int) -> None:
    damage.assert_no_other_length_is_read(parse_response, answer(version), version)


def test_unknown_versions_are_refused() -> None:
    for version in (-1, 3):
        with pytest.raises(UnsupportedVersionError):
            encode_request(version)
        with pytest.raises(UnsupportedVersionError):
            parse_response(answer(2), version)
