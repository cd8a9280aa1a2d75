"""The broker of canned answers: what it says, each of its faults, what it counts."""

from __future__ import annotations

import socket
import struct
import time
from uuid import UUID

import pytest
from broker import (
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    HTTP,
    METADATA,
    TLS_ALERT,
    Brokers,
    Fault,
    Truth,
    black_hole,
)
from frames import B
from waiting import until

from rdmeta import (
    ALL,
    Error,
    MetadataCache,
    RequestTimedOutError,
    TransportError,
    encode_metadata_request,
    fetch,
)
from rdmeta.config.address import parse_bootstrap
from rdmeta.net.blocking_session import Connection, Deadline

LONG = 20.0


def connect(address: str) -> Connection:
    return Connection(parse_bootstrap(address)[0], Deadline(LONG), "tests", 1 << 24)


def ask(connection: Connection, version: int = 13, timeout: float = LONG) -> bytes:
    """Returns the answer's body to a request for all topics."""
    body = encode_metadata_request(version, ALL, allow_auto_create=version < 4)
    return connection.request(METADATA, version, body, Deadline(timeout))


def test_a_cluster_says_its_truth_in_every_version() -> None:
    with Brokers(3) as brokers:
        brokers.truth.create("orders", partitions=4)
        for version in range(14):
            with connect(brokers[2].address) as connection:
                cache = MetadataCache()
                cache.apply(ask(connection, version), version, ALL)
            assert [cache.leader("orders", p) for p in range(4)] == [1, 2, 3, 1]
            assert [b.port for b in cache.brokers] == [b.port for b in brokers]
        assert brokers[2].count(METADATA) == 14
        assert [len(b.accepted) for b in brokers] == [0, 14, 0]


def test_topics_are_asked_by_name_and_by_id_and_an_unknown_one_has_an_error() -> None:
    with Brokers() as brokers:
        topic = brokers.truth.create("orders")
        brokers.truth.create("other")
        cache = MetadataCache()
        fetch(cache, brokers.bootstrap, ["orders", "nope"])
        assert sorted(cache) == ["orders"]
        assert cache.leader("nope", 0, None) is None
        fetch(cache, brokers.bootstrap, [UUID(bytes=topic.id)])
        fetch(cache, brokers.bootstrap, ())
        assert [s.asked.body.topics for s in brokers.requests()][-1] == []


def test_the_truth_changes() -> None:
    truth = Truth()
    truth.brokers = {1: B(1), 2: B(2)}
    old = truth.create("orders", 2)
    truth.lead("orders", 0, 2)
    assert [(p.leader, p.epoch) for p in truth.topics["orders"].partitions] == [(2, 1), (2, 0)]
    truth.widen("orders", 3)
    assert [p.leader for p in truth.topics["orders"].partitions] == [2, 2, 1]
    assert truth.topics["orders"].id == old.id
    truth.fail_over(2)
    assert [p.leader for p in truth.topics["orders"].partitions] == [1, 1, 1]
    truth.fail_over(1)
    assert [(p.leader, p.error) for p in truth.topics["orders"].partitions] == [(-1, 5)] * 3
    truth.delete("orders")
    assert truth.create("orders", 1).id != old.id


def test_the_other_requests_of_a_client_are_answered() -> None:
    with Brokers(2) as brokers, connect(brokers.bootstrap) as connection:
        for key, body in ((DESCRIBE_CLUSTER, b"\0\0"), (DESCRIBE_QUORUM, b"\1\0")):
            session = connection.session
            header = struct.pack(">hhih", key, 0, 77, 1) + b"t\0"
            connection._socket.sendall(struct.pack(">i", len(header + body)) + header + body)
            answer = connection._socket.recv(4096)
            assert session.ready
            assert struct.unpack_from(">ii", answer) == (len(answer) - 4, 77)
        assert brokers[1].count(DESCRIBE_QUORUM) == brokers[1].count(DESCRIBE_CLUSTER) == 1


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(close=True), TransportError),
        (Fault(wrong_correlation=1), TransportError),
        (Fault(silent=True), RequestTimedOutError),
        (Fault(mangle=lambda frame: [frame[:9]]), RequestTimedOutError),
        (Fault(delay=0.4), RequestTimedOutError),
    ],
    ids=["closes", "another correlation", "silent", "cut", "late"],
)
def test_a_fault_meets_the_next_request_only(fault: Fault, error: type[Error]) -> None:
    with Brokers() as brokers:
        brokers[1].next(fault)
        with connect(brokers.bootstrap) as connection, pytest.raises(error):
            ask(connection, timeout=0.2)
        with connect(brokers.bootstrap) as connection:
            assert ask(connection)


def test_an_answer_carries_the_scripted_errors() -> None:
    with Brokers() as brokers, connect(brokers.bootstrap) as connection:
        brokers.truth.create("orders")
        brokers[1].fault = Fault(throttle_ms=500, topic_errors={"orders": 29}, cluster_id="other")
        cache = MetadataCache()
        assert cache.apply(ask(connection), 13, ALL).throttle_ms == 500
        assert "orders" not in cache
        assert cache.cluster_id == "other"
        brokers[1].fault = Fault(error=129)
        assert ask(connection)[-3:] == struct.pack(">hB", 129, 0)


def test_an_answer_may_come_twice_and_in_drips() -> None:
    with Brokers() as brokers, connect(brokers.bootstrap) as connection:
        brokers[1].fault.mangle = lambda frame: [bytes([b]) for b in frame]
        brokers[1].fault.drip = 0.0001
        ask(connection)
        brokers[1].fault = Fault(copies=2)
        with pytest.raises(TransportError, match="without a request|instead of"):
            [ask(connection) for _ in range(2)]  # the copy arrives with the answer or after it


def test_a_broker_that_is_down_refuses_and_resets_and_comes_back_on_its_port() -> None:
    with Brokers() as brokers:
        connection = connect(brokers.bootstrap)
        assert brokers[1].connections == [1]
        brokers[1].down()
        with pytest.raises(TransportError):
            ask(connection)
        connection.close()
        until(lambda: brokers[1].open == 0)
        assert brokers[1].connections == []
        with pytest.raises(TransportError, match="refused"):
            connect(brokers.bootstrap)
        brokers[1].accept()
        with connect(brokers.bootstrap) as connection:
            ask(connection)


def test_a_connection_may_end_at_its_start_or_after_some_bytes() -> None:
    with Brokers() as brokers:
        brokers[1].close_at_accept = True
        with pytest.raises(TransportError):
            connect(brokers.bootstrap)
        brokers[1].close_at_accept = False
        brokers[1].close_after = 80  # after the handshake
        with connect(brokers.bootstrap) as connection, pytest.raises(TransportError):
            ask(connection)


def test_another_protocol_answers_with_its_own_bytes() -> None:
    with Brokers() as brokers:
        for greeting in (TLS_ALERT, HTTP):
            brokers[1].greeting = greeting
            with pytest.raises(Error):
                connect(brokers.bootstrap)


def test_a_frozen_broker_answers_once_it_is_thawed() -> None:
    with Brokers() as brokers, connect(brokers.bootstrap) as connection:
        brokers[1].freeze()
        with pytest.raises(RequestTimedOutError):
            ask(connection, timeout=0.2)
        assert brokers[1].count(METADATA) == 1
        brokers[1].thaw()
        connection._socket.settimeout(LONG)
        assert connection._socket.recv(4096)


def test_a_black_hole_neither_accepts_nor_refuses() -> None:
    with black_hole() as address:
        host, port = parse_bootstrap(address)[0]
        begin = time.monotonic()
        with pytest.raises(TimeoutError):
            socket.create_connection((host, port), timeout=0.3)
        assert time.monotonic() - begin > 0.25
