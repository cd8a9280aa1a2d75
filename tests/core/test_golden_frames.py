"""Compares our codec of Metadata v0-v13 with the codecs of other projects, and with mock brokers.

kafka-python has every version, aiokafka has 0 to 5, and librdkafka's mock brokers send every
version on a socket. We must read their bytes as they do, and write the same bytes.
"""

from __future__ import annotations

import io
import uuid
from base64 import urlsafe_b64encode
from typing import Any

import aiokafka.protocol.metadata as aio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from rdmeta._core import (
    METADATA_MAX_VERSION,
    METADATA_MIN_VERSION,
    decode_metadata_response,
    encode_metadata_request,
)
from rdmeta.config.address import parse_bootstrap
from rdmeta.embedded import EmbeddedCluster
from rdmeta.errors import MalformedError, UnsupportedVersionError
from rdmeta.model import ALL
from rdmeta.net.blocking_session import Connection, Deadline
from rdmeta.net.handshake import METADATA

VERSIONS = range(METADATA_MIN_VERSION, METADATA_MAX_VERSION + 1)
AIOKAFKA_VERSIONS = range(6)
FLEXIBLE = 9
NO_ID = uuid.UUID(int=0)

Wanted = MetadataRequest.MetadataRequestTopic
Broker = MetadataResponse.MetadataResponseBroker
Topic = MetadataResponse.MetadataResponseTopic
Partition = Topic.MetadataResponsePartition

Tree = dict[str, Any]

# --------------------------------------------------------------------------------------- requests

NAMES = ["orders", "a", "team-042.service.events-000123", "n" * 249, "zażółć"]


def our_request(version: int, topics: Any, **flags: bool) -> bytes | None:
    """Returns our request's body; None if this version cannot express it."""
    try:
        return encode_metadata_request(version, topics, **flags)
    except UnsupportedVersionError:
        return None


@pytest.mark.parametrize("auto_create", [False, True])
@pytest.mark.parametrize("topics", [ALL, NAMES[:1], NAMES, ()], ids=["all", "one", "five", "none"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_is_written_as_kafka_python_writes_it(
    version: int, topics: Any, auto_create: bool
) -> None:
    wanted = None if topics is ALL else [Wanted(name=name) for name in topics]
    theirs = MetadataRequest(topics=wanted, allow_auto_topic_creation=auto_create)
    ours = our_request(version, topics, allow_auto_create=auto_create)
    inexpressible = (version == 0 and topics == ()) or (
        version < 4 and not auto_create and topics is not ALL and len(topics) > 0
    )
    assert ours == (None if inexpressible else theirs.encode(version=version))


@pytest.mark.parametrize("topics", [ALL, NAMES], ids=["all", "names"])
@pytest.mark.parametrize("version", AIOKAFKA_VERSIONS)
def test_a_request_is_written_as_aiokafka_writes_it(version: int, topics: Any) -> None:
    message = getattr(aio, f"MetadataRequest_v{version}")
    wanted = topics if topics is not ALL else [] if version == 0 else None
    theirs = message(wanted, True) if version >= 4 else message(wanted)
    assert our_request(version, topics, allow_auto_create=True) == theirs.encode()


@pytest.mark.parametrize("cluster_operations", [False, True])
@pytest.mark.parametrize("topic_operations", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_operations_are_asked_for_where_a_version_has_them(
    version: int, topic_operations: bool, cluster_operations: bool
) -> None:
    theirs = MetadataRequest(
        topics=None,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=topic_operations,
        include_cluster_authorized_operations=cluster_operations,
    )
    ours = our_request(
        version,
        ALL,
        topic_authorized_operations=topic_operations,
        cluster_authorized_operations=cluster_operations,
    )
    inexpressible = (topic_operations and version < 8) or (
        cluster_operations and version not in range(8, 11)
    )
    assert ours == (None if inexpressible else theirs.encode(version=version))


@pytest.mark.parametrize("version", VERSIONS)
def test_ids_are_asked_for_from_v12_on(version: int) -> None:
    ids = [uuid.uuid4() for _ in range(3)]
    theirs = MetadataRequest(
        topics=[Wanted(name=None, topic_id=id) for id in ids], allow_auto_topic_creation=False
    )
    expected = theirs.encode(version=version) if version >= 12 else None
    assert our_request(version, ids) == expected


# -------------------------------------------------------------------------------------- responses

ids32 = st.integers(0, 2**31 - 1)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
codes = st.sampled_from([0, 3, 5, 9, 17, 29, 72])
operations = st.none() | st.sets(st.integers(0, 30))
brokers = st.builds(
    Broker,
    node_id=ids32,
    host=names,
    port=st.integers(1, 65535),
    rack=st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
)
id_lists = st.lists(ids32, max_size=4, unique=True)
partitions = st.builds(
    Partition,
    error_code=codes,
    partition_index=ids32,
    leader_id=st.just(-1) | ids32,
    leader_epoch=st.just(-1) | ids32,
    replica_nodes=id_lists,
    isr_nodes=id_lists,
    offline_replicas=id_lists,
)
topics = st.builds(
    Topic,
    error_code=codes,
    name=names,
    topic_id=st.just(NO_ID) | st.uuids(),
    is_internal=st.booleans(),
    partitions=st.lists(partitions, max_size=4, unique_by=lambda p: p.partition_index),
    authorized_operations=operations,
)
responses = st.builds(
    MetadataResponse,
    throttle_time_ms=st.integers(0, 2**31 - 1),
    brokers=st.lists(brokers, max_size=3, unique_by=lambda b: b.node_id),
    cluster_id=st.none() | names,
    controller_id=st.just(-1) | ids32,
    topics=st.lists(topics, max_size=3, unique_by=lambda t: t.name),
    authorized_operations=operations,
    error_code=st.just(0),
)


def some(number: int) -> int | None:
    return None if number < 0 else number


def bits(operations: Any) -> int | None:
    return None if operations is None else sum(1 << bit for bit in operations)


def id_text(id: uuid.UUID | None) -> str | None:
    return None if id is None or id == NO_ID else urlsafe_b64encode(id.bytes)[:22].decode()


def partition_tree(p: Any, version: int) -> Tree:
    return {
        "error": p.error_code,
        "partition": p.partition_index,
        "leader": some(p.leader_id),
        "leader_epoch": some(p.leader_epoch) if version >= 7 else None,
        "replicas": list(p.replica_nodes),
        "isr": list(p.isr_nodes),
        "offline_replicas": list(p.offline_replicas) if version >= 5 else [],
    }


def topic_tree(t: Any, version: int) -> Tree:
    return {
        "error": t.error_code,
        "name": t.name,
        "topic_id": id_text(t.topic_id) if version >= 10 else None,
        "internal": bool(t.is_internal) if version >= 1 else False,
        "partitions": [partition_tree(p, version) for p in t.partitions],
        "operations": bits(t.authorized_operations) if version >= 8 else None,
    }


def tree_of(r: Any, version: int) -> Tree:
    """Returns kafka-python's response in our decoder's form, without what the version lacks."""
    return {
        "throttle_ms": r.throttle_time_ms if version >= 3 else 0,
        "brokers": [
            {
                "id": b.node_id,
                "host": b.host,
                "port": b.port,
                "rack": b.rack if version >= 1 else None,
            }
            for b in r.brokers
        ],
        "cluster_id": r.cluster_id if version >= 2 else None,
        "controller": some(r.controller_id) if version >= 1 else None,
        "topics": [topic_tree(t, version) for t in r.topics],
        "operations": bits(r.authorized_operations) if version in range(8, 11) else None,
        "error": r.error_code if version >= 13 else 0,
    }


@given(response=responses)
@settings(max_examples=60, deadline=None)
def test_we_read_the_bytes_that_kafka_python_writes(response: MetadataResponse) -> None:
    for version in VERSIONS:
        body = response.encode(version=version)
        assert decode_metadata_response(body, version) == tree_of(response, version), version
        if version in AIOKAFKA_VERSIONS:
            assert_the_same_as_aiokafka(version, body)


def assert_the_same_as_aiokafka(version: int, body: bytes) -> None:
    theirs = getattr(aio, f"MetadataResponse_v{version}").decode(io.BytesIO(body)).to_object()
    ours = decode_metadata_response(body, version)
    assert [(b["node_id"], b["host"], b["port"]) for b in theirs["brokers"]] == [
        (b["id"], b["host"], b["port"]) for b in ours["brokers"]
    ]
    for their_topic, our_topic in zip(theirs["topics"], ours["topics"], strict=True):
        assert their_topic["topic"] == our_topic["name"]
        assert [
            (p["partition"], some(p["leader"]), p["replicas"], p["isr"])
            for p in their_topic["partitions"]
        ] == [
            (p["partition"], p["leader"], p["replicas"], p["isr"]) for p in our_topic["partitions"]
        ]


def test_a_top_level_error_is_read_from_the_end_of_v13() -> None:
    body = MetadataResponse(
        throttle_time_ms=0,
        brokers=[],
        cluster_id=None,
        controller_id=-1,
        topics=[],
        authorized_operations=None,
        error_code=129,
    ).encode(version=13)
    assert decode_metadata_response(body, 13)["error"] == 129


# ---------------------------------------------------------------------------- answers of brokers


def fill(cluster: EmbeddedCluster) -> None:
    """Creates what a mock cluster can have: racks, no leader, errors, a broker that is down."""
    cluster.broker(1).rack = "zone-a"
    cluster.create_topic("orders", partitions=7, replication_factor=3)
    cluster.create_topic("payments", partitions=2, replication_factor=2)
    cluster.create_topic("secret")
    cluster.set_leader("orders", 3, None)
    cluster.set_leader("orders", 4, 3)
    cluster.set_topic_error("secret", 29)
    cluster.broker(3).down()


def received(cluster: EmbeddedCluster, version: int, asked: Any, **flags: bool) -> bytes:
    with Connection(
        parse_bootstrap(cluster.bootstrap)[0], Deadline(20), "tester", 1 << 24
    ) as connection:
        request = encode_metadata_request(version, asked, **flags)
        return connection.request(METADATA, version, request, Deadline(20))


def test_we_read_every_version_that_a_broker_sends_as_kafka_python_does(
    cluster: EmbeddedCluster,
) -> None:
    fill(cluster)
    for version in VERSIONS:
        for asked in (ALL, ["orders", "missing"]):
            if asked is not ALL and version < 4:
                continue  # The mock would create the topic: older versions cannot forbid it.
            body = received(cluster, version, asked)
            theirs = MetadataResponse.decode(io.BytesIO(body), version=version)
            ours = decode_metadata_response(body, version, tolerate_trailing=True)
            assert ours == tree_of(theirs, version)
            assert [b["id"] for b in ours["brokers"]] == [1, 2]
            by_name = {topic["name"]: topic for topic in ours["topics"]}
            assert by_name["orders"]["partitions"][3]["leader"] is None
            assert by_name["orders"]["partitions"][4]["leader"] == 3
            if asked is not ALL:
                assert by_name["missing"]["error"] == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_the_mocks_extra_byte_is_refused_unless_the_caller_tolerates_it(
    cluster: EmbeddedCluster, version: int
) -> None:
    cluster.create_topic("orders", partitions=2)
    body = received(cluster, version, ALL)
    tolerated = decode_metadata_response(body, version, tolerate_trailing=True)
    if version < FLEXIBLE:
        assert decode_metadata_response(body, version) == tolerated
    else:
        with pytest.raises(MalformedError):
            decode_metadata_response(body, version)
        assert decode_metadata_response(body[:-1], version) == tolerated
    with pytest.raises(MalformedError):
        decode_metadata_response(body + b"\0\0", version, tolerate_trailing=True)


@pytest.mark.parametrize("version", [12, 13])
def test_a_topic_is_answered_by_its_id(cluster: EmbeddedCluster, version: int) -> None:
    cluster.create_topic("orders", partitions=2)
    body = received(cluster, version, ["orders"])
    (topic,) = decode_metadata_response(body, version, tolerate_trailing=True)["topics"]
    theirs = MetadataResponse.decode(io.BytesIO(body), version=version).topics[0].topic_id
    assert topic["topic_id"] == id_text(theirs)
    unknown = uuid.uuid4()
    body = received(cluster, version, [theirs, unknown])
    found, missing = decode_metadata_response(body, version, tolerate_trailing=True)["topics"]
    assert found == topic
    assert (missing["error"], missing["topic_id"]) == (100, id_text(unknown))
