"""One refresh: the server, the version, the request and the failures."""

from __future__ import annotations

import io
import socket
import time
import uuid
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from broker import black_hole
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from peer import answer_handshake, framed, listening, read_frame, read_requests
from waiting import PROMPT

import rdmeta
from rdmeta._core import METADATA_MAX_VERSION, MetadataCache
from rdmeta.config.address import parse_bootstrap
from rdmeta.embedded import DISCONNECT, EmbeddedCluster
from rdmeta.errors import (
    MalformedError,
    RequestTimedOutError,
    TransportError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from rdmeta.net.blocking_session import Connection, Deadline
from rdmeta.net.fetch import fetch
from rdmeta.net.handshake import METADATA


def names_on(cluster: EmbeddedCluster) -> list[str]:
    """Returns the topics that exist, read without rdmeta's decoder."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False).encode(version=4)
    with Connection(parse_bootstrap(cluster.bootstrap)[0], Deadline(20), "t", 1 << 20) as broker:
        body = broker.request(METADATA, 4, request, Deadline(20))
    return sorted(
        topic.name for topic in MetadataResponse.decode(io.BytesIO(body), version=4).topics
    )


def speaking(extra: bytes) -> Callable[[socket.socket], None]:
    """Returns a broker that is not the mock and sends `extra` after a Metadata v12 answer."""

    def serve(connection: socket.socket) -> None:
        while frame := read_frame(connection):
            (asked,) = read_requests(frame)
            if asked.api_key != METADATA:
                connection.sendall(answer_handshake(frame, {METADATA: (0, 12), 18: (0, 3)})[0])
                continue
            broker = MetadataResponse.MetadataResponseBroker(node_id=7, host="h", port=9, rack=None)
            body = MetadataResponse(
                throttle_time_ms=0,
                brokers=[broker],
                cluster_id="c",
                controller_id=7,
                topics=[],
                authorized_operations=None,
                error_code=0,
            ).encode(version=12)
            connection.sendall(framed(asked.correlation_id, body + extra, b"\0"))

    return serve


def test_a_fetch_fills_an_empty_cache(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders", partitions=4, replication_factor=3)
    cluster.set_leader("orders", 2, 3)
    cache = rdmeta.MetadataCache()
    applied = rdmeta.fetch(cache, cluster.bootstrap)
    assert (applied.topics, applied.changed, applied.brokers_changed) == (1, 1, True)
    assert cache.leader("orders", 2) == 3
    assert [broker.id for broker in cache.brokers] == [1, 2, 3]


def test_the_same_answer_again_changes_nothing(cluster: EmbeddedCluster) -> None:
    for number in range(5):
        cluster.create_topic(f"topic-{number}", partitions=2)
    cache = MetadataCache()
    first = fetch(cache, cluster.bootstrap)
    second = fetch(cache, cluster.bootstrap)
    assert (second.topics, second.changed, second.unchanged) == (5, 0, 5)
    assert second.version == first.version == cache.version


@pytest.mark.parametrize("highest", range(METADATA_MAX_VERSION + 1))
def test_a_broker_of_any_metadata_version_is_understood(
    cluster: EmbeddedCluster, highest: int
) -> None:
    cluster.create_topic("orders", partitions=3, replication_factor=3)
    cluster.set_leader("orders", 1, 2)
    cluster.set_api_version(METADATA, 0, highest)
    cache = MetadataCache()
    assert fetch(cache, cluster.bootstrap).topics == 1
    assert cache.leader("orders", 1) == 2
    partition = cache.partition("orders", 1)
    # v7 and v8 send it, but Kafka's own client relies on it only from v9 on.
    assert (partition.leader_epoch is None) == (highest < 9)
    assert (partition.topic_id is None) == (highest < 10)


def test_named_topics_are_merged_and_nothing_else_is_touched(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders")
    cluster.create_topic("payments")
    cache = MetadataCache()
    fetch(cache, cluster.bootstrap)
    cluster.set_leader("orders", 0, 3)
    cluster.set_leader("payments", 0, 3)
    before = cache.partition("payments", 0)
    applied = fetch(cache, cluster.bootstrap, ["orders"])
    assert applied.topics == 1
    assert cache.leader("orders", 0) == 3
    assert cache.partition("payments", 0) == before


def test_no_topics_refreshes_the_brokers_alone(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders")
    cache = MetadataCache()
    applied = fetch(cache, cluster.bootstrap, ())
    assert (applied.topics, len(cache), len(cache.brokers)) == (0, 0, 3)


def test_topics_are_asked_for_by_id(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders")
    cache = MetadataCache()
    fetch(cache, cluster.bootstrap)
    text = cache.topic("orders").topic_id
    assert text is not None
    cluster.set_leader("orders", 0, 2)
    cluster.set_leader("orders", 0, 3)
    known = uuid.UUID(bytes=urlsafe_b64decode(text + "=="))
    fetch(cache, cluster.bootstrap, [known])
    assert cache.leader("orders", 0) == 3


def test_asking_for_a_topic_creates_it_only_if_the_caller_allows_it(
    cluster: EmbeddedCluster,
) -> None:
    cache = MetadataCache()
    fetch(cache, cluster.bootstrap, ["orders"])
    assert names_on(cluster) == []
    with pytest.raises(UnknownTopicError):
        cache.leader("orders", 0)
    fetch(cache, cluster.bootstrap, ["orders"], allow_auto_create=True)
    assert names_on(cluster) == ["orders"]


def test_a_broker_that_would_create_topics_regardless_is_not_asked(
    cluster: EmbeddedCluster,
) -> None:
    cluster.set_api_version(METADATA, 0, 3)
    with pytest.raises(UnsupportedVersionError):
        fetch(MetadataCache(), cluster.bootstrap.split(",")[0], ["orders"])
    cluster.set_api_version(METADATA, 0, 13)
    assert names_on(cluster) == []


def test_the_next_server_is_asked_when_one_is_down(cluster: EmbeddedCluster) -> None:
    cluster.broker(1).down()
    cluster.broker(2).push_errors(METADATA, [DISCONNECT])
    cluster.track_requests()
    assert fetch(MetadataCache(), cluster.bootstrap).brokers_changed
    asked = [request.broker for request in cluster.requests() if request.api_key == METADATA]
    assert asked == [2, 3]


def test_a_server_that_never_answers_leaves_time_for_the_next(cluster: EmbeddedCluster) -> None:
    def serve(connection: socket.socket) -> None:
        while read_frame(connection):
            pass

    with listening(serve) as deaf:
        servers = f"{deaf},{cluster.bootstrap}"
        assert fetch(MetadataCache(), servers, timeout=4.0).brokers_changed


def test_the_error_shows_each_of_several_failures(cluster: EmbeddedCluster) -> None:
    for broker in cluster.brokers:
        broker.down()
    with pytest.raises(TransportError) as caught:
        fetch(MetadataCache(), cluster.bootstrap)
    for server in cluster.bootstrap.split(","):
        assert f"{server}: cannot connect" in str(caught.value)


def test_the_failure_of_a_single_server_keeps_its_kind_and_names_the_server(
    cluster: EmbeddedCluster,
) -> None:
    server = cluster.bootstrap.split(",")[0]
    with pytest.raises(MalformedError, match=server):
        fetch(MetadataCache(), server, max_frame=64)


def test_a_slow_answer_ends_at_the_deadline_and_changes_nothing(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders")
    cluster.broker(1).push_errors(METADATA, [0], delay=30)
    cache = MetadataCache()
    with pytest.raises(RequestTimedOutError):
        fetch(cache, cluster.bootstrap, timeout=0.3)
    assert (len(cache), len(cache.brokers)) == (0, 0)


def test_a_failed_fetch_ends_the_hints_of_its_topics(cluster: EmbeddedCluster) -> None:
    cache = MetadataCache()
    assert cache.hint(["orders", "payments"]) == ["orders", "payments"]
    assert cache.hint(["orders", "payments"]) == []
    for broker in cluster.brokers:
        broker.down()
    with pytest.raises(TransportError):
        fetch(cache, cluster.bootstrap, ["orders"])
    assert cache.hint(["orders", "payments"]) == ["orders"]


def test_the_answering_broker_is_known_from_its_own_answer(cluster: EmbeddedCluster) -> None:
    second = cluster.bootstrap.split(",")[1]
    cluster.create_topic("orders")
    cache = MetadataCache()
    fetch(cache, second)
    assert cache.source("orders") == 2


def test_an_extra_byte_from_the_mock_is_accepted_unless_forbidden(cluster: EmbeddedCluster) -> None:
    server = cluster.bootstrap.split(",")[0]
    with pytest.raises(MalformedError):
        fetch(MetadataCache(), server, tolerate_trailing=False)
    assert fetch(MetadataCache(), server).brokers_changed


def test_an_extra_byte_from_another_broker_is_malformed_unless_allowed() -> None:
    with listening(speaking(b"\0")) as address:
        with pytest.raises(MalformedError):
            fetch(MetadataCache(), str(address))
        assert fetch(MetadataCache(), str(address), tolerate_trailing=True).brokers_changed
    with listening(speaking(b"")) as address:
        assert fetch(MetadataCache(), str(address)).brokers_changed


def test_an_invalid_bootstrap_list_or_topic_list_is_refused(cluster: EmbeddedCluster) -> None:
    with pytest.raises(ValueError, match="server"):
        fetch(MetadataCache(), "")
    with pytest.raises(TypeError):
        fetch(MetadataCache(), cluster.bootstrap, "orders")


@contextmanager
def deaf() -> Iterator[str]:
    """Yields the address of a server that accepts each connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_servers_are_raced_so_black_holes_and_deaf_ones_cost_a_quarter_of_a_second_each(
    cluster: EmbeddedCluster,
) -> None:
    good = cluster.bootstrap.split(",")[0]
    for silent in (black_hole, deaf):
        with silent() as one, silent() as two:
            begin = time.monotonic()
            fetch(MetadataCache(), f"{one},{two},{good}", timeout=10.0)
            assert 0.4 < time.monotonic() - begin < PROMPT


def test_each_server_that_is_raced_in_vain_has_its_error() -> None:
    with black_hole() as hole, deaf() as silent, pytest.raises(RequestTimedOutError) as caught:
        fetch(MetadataCache(), f"{hole},{silent}", timeout=0.6)
    assert f"{hole}: the host did not accept a connection in time" in str(caught.value)
    assert f"{silent}: no answer" in str(caught.value)


def test_the_error_of_another_cluster_names_both_ids(cluster: EmbeddedCluster) -> None:
    cache = MetadataCache()
    fetch(cache, cluster.bootstrap)
    with (
        EmbeddedCluster(brokers=1) as other,
        pytest.raises(rdmeta.WrongClusterError, match=repr(cache.cluster_id)) as caught,
    ):
        fetch(cache, other.bootstrap)
    assert str(caught.value).count("'mockCluster") == 2
