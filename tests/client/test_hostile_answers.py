"""Hostile text in each string field of each answer: what is raised, logged and printed has none.

A clean run of the calls finds the strings that rdmeta decodes. Then each of them is replaced, in
every frame that the broker sends, by bytes of the same length that forge lines and colours.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import commands
import pytest
from broker import DESCRIBE_CLUSTER, DESCRIBE_CONFIGS, DESCRIBE_QUORUM, Brokers, Fault
from frames import B, P, T
from kafka.protocol.admin import DescribeConfigsResponse
from kafka.protocol.admin.cluster import DescribeClusterResponse, DescribeQuorumResponse
from login_server import LoginServer
from peer import Asked
from secured import Guard

import rdmeta
from rdmeta import ALL, Client, MetadataCache
from rdmeta.net.fields import FieldReader

# New lines, a colour, NUL, DEL, C1's line and CSI, bytes that are not UTF-8, separators, and signs
# that change the direction of writing.
HOSTILE = "\n\x1b\r\x00\x7f\x85\x9b\u202e\u2028\u2066\ufeff".encode() + b"\xff\xc0"
CLUSTER = "cluster-of-a-hostile-broker"
ORDERS = "orders-of-a-hostile-broker"
DENIED = "one-denied-by-a-hostile-broker"
MESSAGE = "message-of-a-hostile-broker"


def hostile(length: int) -> bytes:
    """Returns so many bytes of hostile text."""
    return (HOSTILE * (length // len(HOSTILE) + 1))[:length]


def describe_quorum(asked: Asked, error: int = 0) -> bytes:
    topic, node = DescribeQuorumResponse.TopicData, DescribeQuorumResponse.Node
    partition = topic.PartitionData
    voters = [partition.ReplicaState(replica_id=1, log_end_offset=100)]
    data = partition(
        partition_index=0,
        error_code=error,
        error_message=MESSAGE,
        leader_id=1,
        leader_epoch=7,
        high_watermark=99,
        current_voters=voters,
        observers=[],
    )
    listener = node.Listener(
        name="LISTENER-OF-A-HOSTILE-NODE", host="host-of-a-hostile-node", port=1
    )
    response = DescribeQuorumResponse(
        error_code=0,
        error_message=None,
        topics=[topic(topic_name="__cluster_metadata", partitions=[data])],
        nodes=[node(node_id=1, listeners=[listener])],
    )
    return bytes(response.encode(version=asked.version))


def refused_cluster(asked: Asked) -> bytes:
    response = DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=31,
        error_message=MESSAGE,
        cluster_id="",
        controller_id=-1,
        authorized_operations=None,
        brokers=[],
    )
    return bytes(response.encode(version=asked.version))


def refused_configs(asked: Asked) -> bytes:
    result = DescribeConfigsResponse.DescribeConfigsResult(
        error_code=29, error_message=MESSAGE, resource_type=2, resource_name=ORDERS, configs=[]
    )
    response = DescribeConfigsResponse(throttle_time_ms=0, results=[result])
    return bytes(response.encode(version=asked.version))


REFUSALS: dict[int, Callable[[Asked], bytes]] = {
    DESCRIBE_CLUSTER: refused_cluster,
    DESCRIBE_CONFIGS: refused_configs,
    DESCRIBE_QUORUM: lambda asked: describe_quorum(asked, 41),
}


@contextmanager
def broker(is_refusing: bool = False) -> Iterator[Brokers]:
    """Yields a broker whose answers have long texts."""
    with Brokers(1, CLUSTER) as found:
        truth = found.truth
        truth.brokers[2] = B(2, "host-of-a-hostile-broker", 9, "rack-of-a-hostile-broker")
        truth.topics[ORDERS] = T(ORDERS, [P(0, 1, 1, (1, 2)), P(1, 2, 1, (1, 2))])
        truth.topics[DENIED] = T(DENIED, [], error=29)
        truth.configs[ORDERS] = {"key-of-a-hostile-broker-1": "value-of-a-hostile-broker"}
        found[1].answers[DESCRIBE_QUORUM] = describe_quorum
        if is_refusing:
            found[1].answers |= REFUSALS
        yield found


def replace(brokers: Brokers, texts: list[str]) -> None:
    """Has the broker send hostile bytes in the place of these texts."""

    def mangled(frame: bytes) -> list[bytes]:
        for text in texts:
            frame = frame.replace(text.encode(), hostile(len(text)))
        return [frame]

    brokers[1].fault = Fault(mangle=mangled)
    brokers[1].handshake_fault = lambda: brokers[1].fault


def call_all(bootstrap: str) -> list[BaseException]:
    """Makes each call that reads answers; returns what they raise and report."""
    raised: list[BaseException] = []
    conf = {"bootstrap.servers": bootstrap, "client.id": "hostile"}
    with Client(conf, topics=ALL) as client:
        client.on_error(lambda problems: raised.extend(each.error for each in problems))
        for call in (
            lambda: client.refresh(timeout=2),
            lambda: client.leader(ORDERS, 0, timeout=0.2),
            lambda: client.wait_for_topic(DENIED, timeout=0.2),
            lambda: client.quorum(timeout=2),
            lambda: client.describe_cluster(timeout=2),
            lambda: raised.extend(
                each.error
                for each in client.describe_configs([ORDERS], timeout=2).values()
                if each.error is not None
            ),
            lambda: rdmeta.fetch(MetadataCache(), bootstrap, timeout=2),
            lambda: raised.extend(each.error for each in rdmeta.check(conf, 1) if each.error),
        ):
            try:
                call()
            except rdmeta.Error as error:
                raised.append(error)
    return raised


def check_raised(raised: list[BaseException]) -> None:
    """Checks the texts of errors and of all their causes."""
    for error in raised:
        each: BaseException | None = error
        while each is not None:
            assert str(each).isprintable(), repr(each)
            each = each.__cause__ or each.__context__


def texts_of(is_refusing: bool) -> list[str]:
    """Returns each string that the calls decode."""
    found: list[str | None] = []
    read = FieldReader.optional_string

    def reading(self: FieldReader) -> str | None:
        found.append(read(self))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch, broker(is_refusing) as brokers:
        patch.setattr(FieldReader, "optional_string", reading)
        call_all(brokers.bootstrap)
        cache = MetadataCache()
        rdmeta.fetch(cache, brokers.bootstrap)
        hosts = [text for each in cache.brokers for text in (each.host, each.rack)]
        found += [cache.cluster_id, *hosts, *brokers.truth.topics]
    return sorted({each for each in found if each})


@pytest.mark.parametrize("is_refusing", [False, True])
def test_hostile_text_in_a_field_is_escaped_in_errors_and_in_the_log(
    is_refusing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "rdmeta")
    texts = texts_of(is_refusing)
    assert set(texts) >= {CLUSTER, ORDERS, DENIED, "127.0.0.1", "__cluster_metadata"}
    assert sum("-of-a-hostile-" in text.lower() for text in texts) >= 7
    for text in texts:
        with broker(is_refusing) as brokers:
            replace(brokers, [text])
            check_raised(call_all(brokers.bootstrap))
        check_log(caplog)
        caplog.clear()


# The broker's words about a login, and what the client is configured with.
LOGINS = {"SCRAM-SHA-512": "PLAIN", "invalid credentials": "SCRAM-SHA-256", "SHA-256": "PLAIN"}


@pytest.mark.parametrize("text", LOGINS)
def test_hostile_text_in_the_refusal_of_a_login_is_escaped(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "rdmeta")
    guard = Guard(None, LoginServer({"alice": "right"}), ("SCRAM-SHA-256", "SCRAM-SHA-512"))
    conf = {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": LOGINS[text],
        "sasl.username": "alice",
        "sasl.password": "wrong",
    }
    with Brokers(1, guard=guard) as brokers:
        replace(brokers, [text])
        with (
            Client({"bootstrap.servers": brokers.bootstrap, **conf}) as client,
            pytest.raises(rdmeta.AuthenticationError) as caught,
        ):
            client.refresh(timeout=10)
        (server,) = rdmeta.check({"bootstrap.servers": brokers.bootstrap, **conf}, 5)
    assert server.error is not None
    assert "\\x1b" in str(caught.value)
    check_raised([caught.value, server.error])
    check_log(caplog)


def check_printed(done: commands.Done) -> None:
    """Checks that a command has printed lines and cells, and no character that forges some."""
    for text in (done.out, done.err):
        assert all(c.isprintable() or c in "\n\t" for c in text), text


@pytest.mark.slow
@pytest.mark.parametrize("is_refusing", [False, True])
def test_the_command_prints_no_hostile_text_of_brokers_images_and_history(
    is_refusing: bool, tmp_path: Path
) -> None:
    image, history, out = (str(tmp_path / each) for each in ("image", "history", "out"))
    kept = {"127.0.0.1", "__cluster_metadata"}
    with broker(is_refusing) as brokers:
        replace(brokers, [text for text in texts_of(is_refusing) if text not in kept])
        at = ["-b", brokers.bootstrap]
        asked = [
            ["list"],
            ["list", "--json"],
            ["list", "--csv"],
            ["quorum", "-v"],
            ["quorum", "--json"],
            ["config", "--check"],
            ["config", "--check", "--csv"],
            ["watch", "--for", "1", "-vv"],
            ["wait", "--no-urp", "--timeout", "1", "-v"],
            ["image", "save", image],
            ["record", "-o", history, "--for", "1"],
        ]
        done = {" ".join(words): commands.run(*words, *at) for words in asked}
    assert done["list"].out.count("\\x1b") >= 2
    read = [
        ["list", "--image", image],
        ["list", "--image", image, "--json"],
        ["image", "diff", image, image],
        ["image", "verify", image],
        ["pipeline", "all", "--engine", "local", history, out],
        ["pipeline", "check", out],
    ]
    done |= {" ".join(words): commands.run(*words) for words in read}
    assert [done[" ".join(words)].code for words in read] == [0] * len(read)
    for each in done.values():
        check_printed(each)


def check_log(caplog: pytest.LogCaptureFixture) -> None:
    """Checks the lines of the log."""
    lines = [each.getMessage() for each in caplog.records if each.name.startswith("rdmeta")]
    assert lines
    for line in lines:
        assert line.isprintable(), line
