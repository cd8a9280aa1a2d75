"""Invalid arguments of fetch(), ports that it refuses, and the end of its hints."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from peer import answer_handshake, listening, read_frame

from rdmeta._core import MetadataCache
from rdmeta.embedded import EmbeddedCluster
from rdmeta.errors import TransportError
from rdmeta.net.blocking_session import Connection
from rdmeta.net.fetch import fetch

# No broker listens there: fetch() refuses invalid arguments before it connects.
NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize("host", ["a..b", "a" * 300])
def test_an_impossible_host_is_treated_as_a_missing_one(
    host: str, cluster: EmbeddedCluster
) -> None:
    with pytest.raises(TransportError):
        fetch(MetadataCache(), f"{host}:1")
    assert fetch(MetadataCache(), f"{host}:1,{cluster.bootstrap}").brokers_changed


@pytest.mark.parametrize(
    ("arguments", "error", "what"),
    [
        ({"cache": None}, TypeError, "cache must be a MetadataCache"),
        ({"bootstrap": None}, TypeError, "bootstrap"),
        ({"bootstrap": "\ud800:1"}, ValueError, "not a bootstrap server"),
        ({"bootstrap": "a\0b:1"}, ValueError, "not a bootstrap server"),
        ({"timeout": None}, TypeError, "timeout"),
        ({"timeout": "1"}, TypeError, "timeout"),
        ({"timeout": -1}, ValueError, "timeout"),
        ({"timeout": float("nan")}, ValueError, "timeout"),
        ({"topics": "orders"}, TypeError, "list of|names"),
        ({"topics": [""]}, ValueError, r"topics\[0\] is empty"),
        ({"topics": [7]}, TypeError, "topic"),
        ({"client_id": "x" * 40_000}, ValueError, "client_id"),
    ],
)
def test_an_invalid_argument_is_refused_before_a_server_is_asked(
    arguments: dict[str, Any], error: type[Exception], what: str
) -> None:
    with pytest.raises(error, match=what):
        fetch(**{"cache": MetadataCache(), "bootstrap": NOWHERE, **arguments})


def test_a_time_out_may_be_infinite(cluster: EmbeddedCluster) -> None:
    assert fetch(MetadataCache(), cluster.bootstrap, timeout=float("inf")).brokers_changed


def test_topics_may_be_an_iterator(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("orders")
    cluster.broker(1).down()
    cache = MetadataCache()
    assert cache.hint(["orders", "new"]) == ["orders", "new"]
    names: Any = iter(["orders", "new"])
    fetch(cache, cluster.bootstrap, names)
    assert [topic.name for topic in cache.topics()] == ["orders"]
    assert cache.stats()["hints"] == 0


def sasl(connection: socket.socket) -> None:
    """Serves as a SASL listener: lists its versions, and closes at the first request."""
    connection.sendall(answer_handshake(read_frame(connection), {3: (0, 12), 18: (0, 3)})[0])
    read_frame(connection)


def test_a_sasl_listener_is_recognised_and_the_error_is_not_retriable() -> None:
    with (
        listening(sasl) as address,
        pytest.raises(TransportError, match=f"^{address}: .*seems to want SASL") as raised,
    ):
        fetch(MetadataCache(), str(address))
    assert not raised.value.retriable


def test_several_failures_are_retriable_if_one_of_them_is() -> None:
    def ssh(connection: socket.socket) -> None:
        connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    with listening(sasl) as wants_sasl, listening(ssh) as other:
        for servers, retriable in (
            (f"{wants_sasl},{other}", False),
            (f"{NOWHERE},{other}", True),
            (f"{NOWHERE},{wants_sasl}", True),
            (f"{wants_sasl},{NOWHERE}", True),
        ):
            with pytest.raises(TransportError) as raised:
                fetch(MetadataCache(), servers)
            assert raised.value.retriable == retriable


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SSL", "SASL_PLAINTEXT"])
def test_a_protocol_other_than_that_of_the_configuration_is_named(protocol: str) -> None:
    with pytest.raises(ValueError, match=f"{protocol.lower()}, but security.protocol is plaintext"):
        fetch(MetadataCache(), f"{protocol}://h:9093")


def test_plaintext_may_be_named(cluster: EmbeddedCluster) -> None:
    server = cluster.bootstrap.split(",")[0]
    assert fetch(MetadataCache(), f"PLAINTEXT://{server}").brokers_changed


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("arguments", "error"), [({"bootstrap": "a:b"}, ValueError), ({"timeout": -1}, ValueError)]
)
def test_any_error_ends_the_hints(arguments: dict[str, Any], error: type[Exception]) -> None:
    cache = MetadataCache()
    assert cache.hint(["orders"]) == ["orders"]
    with pytest.raises(error):
        fetch(**{"cache": cache, "bootstrap": NOWHERE, "topics": ["orders"], **arguments})
    assert cache.hint(["orders"]) == ["orders"]


def test_ctrl_c_ends_the_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = MetadataCache()
    assert cache.hint(["orders"]) == ["orders"]
    monkeypatch.setattr(Connection, "opening", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch(cache, NOWHERE, ["orders"])
    assert cache.hint(["orders"]) == ["orders"]
