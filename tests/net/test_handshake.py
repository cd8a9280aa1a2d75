"""The handshake without a session: the versions it agrees on, and its errors for other ports."""

from __future__ import annotations

import re
import struct

import pytest
from peer import MOCK_REFUSAL, UNSUPPORTED_VERSION, versions_body

from rdmeta._core import encode_metadata_request
from rdmeta.errors import (
    Error,
    MalformedError,
    SaslError,
    TlsError,
    TransportError,
    UnsupportedVersionError,
)
from rdmeta.net.handshake import API_VERSIONS, Handshake, no_answer, no_broker, not_served
from rdmeta.net.sasl import plain_login

RANGES = {0: (3, 11), 3: (0, 13), API_VERSIONS: (0, 4)}


def refusal(ranges: dict[int, tuple[int, int]]) -> bytes:
    return versions_body(0, ranges, UNSUPPORTED_VERSION)


def versions_asked(handshake: Handshake, *answers: bytes) -> list[int]:
    """Returns the versions that a handshake asks with, until it ends or `answers` are used up."""
    steps = handshake.steps()
    versions, call = [], next(steps)
    for body in answers:
        assert call.api_key == API_VERSIONS
        versions.append(call.version)
        try:
            call = steps.send(body)
        except StopIteration:
            return versions
    return [*versions, call.version]


def test_an_answer_at_v3_ends_the_handshake() -> None:
    handshake = Handshake()
    assert versions_asked(handshake, versions_body(3, RANGES)) == [3]
    assert handshake.versions == RANGES
    assert not handshake.is_librdkafka_mock


@pytest.mark.parametrize("spoken", [0, 1, 2])
def test_an_older_broker_is_asked_again_at_the_version_it_names(spoken: int) -> None:
    handshake = Handshake()
    answers = refusal({API_VERSIONS: (0, spoken)}), versions_body(spoken, RANGES)
    assert versions_asked(handshake, *answers) == [3, spoken]
    assert handshake.versions == RANGES


def test_a_broker_before_kip_511_is_asked_again_at_v0() -> None:
    assert versions_asked(Handshake(), refusal({})) == [3, 0]


def test_a_broker_that_refuses_v0_too_is_an_error() -> None:
    with pytest.raises(UnsupportedVersionError) as caught:
        versions_asked(Handshake(), refusal({}), refusal({}))
    assert caught.value.code == UNSUPPORTED_VERSION


def test_a_broker_that_names_a_version_not_below_the_refused_one_is_asked_lower() -> None:
    again = refusal({API_VERSIONS: (0, 9)})
    assert versions_asked(Handshake(), again, again) == [3, 2, 1]


def test_librdkafkas_mock_is_recognised_by_its_refusal() -> None:
    handshake = Handshake()
    assert versions_asked(handshake, MOCK_REFUSAL, versions_body(2, RANGES)) == [3, 2]
    assert handshake.is_librdkafka_mock


def test_a_proper_refusal_is_not_taken_for_the_mocks() -> None:
    handshake = Handshake()
    versions_asked(handshake, refusal({API_VERSIONS: (0, 2)}), versions_body(2, RANGES))
    assert handshake.versions == RANGES
    assert not handshake.is_librdkafka_mock


def test_a_longer_refusal_of_that_shape_is_malformed() -> None:
    with pytest.raises(MalformedError, match="announces"):
        versions_asked(Handshake(), MOCK_REFUSAL + b"\0")


def test_another_error_instead_of_versions_is_raised_with_its_code() -> None:
    with pytest.raises(Error, match="CLUSTER_AUTHORIZATION_FAILED") as caught:
        versions_asked(Handshake(), versions_body(3, {}, 31))
    assert caught.value.code == 31


@pytest.mark.parametrize("before", [(), (refusal({}),)])
def test_every_truncation_of_a_versions_answer_is_refused_or_says_the_same(
    before: tuple[bytes, ...],
) -> None:
    body = versions_body(0 if before else 3, RANGES)
    refused = 0
    for length in range(len(body)):
        handshake = Handshake()
        try:
            versions_asked(handshake, *before, body[:length])
        except MalformedError:
            refused += 1
        else:
            assert handshake.versions == RANGES
    assert refused > len(RANGES) * 6


def test_a_count_beyond_the_answer_is_refused_before_it_is_used() -> None:
    for body in (struct.pack(">hi", 35, 2**31 - 1), b"\0\0" + b"\xff\xff\xff\xff\x0f"):
        with pytest.raises(MalformedError):
            versions_asked(Handshake(), body)


@pytest.mark.parametrize(
    ("first", "what"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", r"an SSH server: .*b'SSH-2\.0-OpenSSH_9\.2\\r\\n'; bootstrap"),
        (b"-ERR wrong number of arguments\r\n", r"Redis: .* b'-ERR wrong number of arg'\.\.\.; "),
        (
            b"HTTP/1.1 400 Bad Request\r\n",
            r"an HTTP server: .*b'HTTP/1\.1 400 Bad Request'\.\.\.; ",
        ),
        (b"AMQP\0\0\x09\x01", "RabbitMQ"),
        (b"220 mail ready\r\n", "mail or FTP"),
        (b"\x1b[2J\xff\n", r"b'\\x1b\[2J\\xff\\n'$"),
    ],
)
def test_the_error_for_another_protocol_shows_its_first_bytes_safely(
    first: bytes, what: str
) -> None:
    error = no_broker(first)
    assert isinstance(error, MalformedError)
    with pytest.raises(MalformedError, match=what):
        raise error
    assert str(error).isprintable()
    assert not error.retriable


def test_a_connection_that_ends_says_what_the_port_seems_to_want() -> None:
    how = "closed the connection"
    for error, wants in (
        (no_answer(b"", how), "want TLS (set security.protocol=ssl or sasl_ssl), or .* ZooKeeper"),
        (no_answer(b"", how), "ZooKeeper (bootstrap.servers must name brokers' ports)"),
        (no_answer(b"", how, is_sasl=True), "want TLS (set security.protocol=sasl_ssl)"),
        (no_answer(b"", how, tls=True), "or wants a client certificate (ssl.certificate.location"),
        (not_served(how), "want SASL; set security.protocol=sasl_plaintext and sasl.mechanism"),
        (not_served(how, tls=True), "want SASL; set security.protocol=sasl_ssl and"),
    ):
        assert isinstance(error, TransportError)
        assert re.search(re.escape(wants).replace(r"\.\*", ".*"), str(error))
        assert not error.retriable
    assert "first bytes are b'hi'" in str(no_answer(b"hi", "closed the connection"))
    assert no_answer(b"\0\0", "closed the connection").retriable


def test_a_tls_alert_to_a_client_with_sasl_names_sasl_ssl() -> None:
    assert "set security.protocol=sasl_ssl" in str(no_broker(b"\x15\x03\x03", is_sasl=True))


def test_the_port_of_a_controller_is_named_before_any_login() -> None:
    controller = {1: (4, 17), 52: (0, 2), 55: (0, 2), 60: (0, 2), API_VERSIONS: (0, 4)}
    login = plain_login("alice", "secret")
    for versions, what in ((controller, "KRaft controller"), ({60: (0, 2)}, "no broker")):
        with pytest.raises(UnsupportedVersionError, match=f"{what}.*bootstrap.servers"):
            versions_asked(Handshake(login), versions_body(3, versions))


def test_a_login_follows_the_versions_and_its_lifetime_is_returned() -> None:
    steps = Handshake(plain_login("alice", "secret")).steps()
    assert next(steps).api_key == API_VERSIONS
    ranges = {**RANGES, 17: (0, 1), 36: (0, 2)}
    call = steps.send(versions_body(3, ranges))
    assert (call.api_key, call.version, call.body) == (17, 1, b"\0\5PLAIN")
    call = steps.send(b"\0\0" + struct.pack(">i", 0))
    assert (call.api_key, call.version, call.body) == (36, 2, b"\x0e\0alice\0secret\0")
    with pytest.raises(StopIteration) as ended:
        steps.send(struct.pack(">hbbqb", 0, 0, 1, 5000, 0))
    assert ended.value.value == 5.0


def test_without_a_login_the_handshake_ends_with_the_versions() -> None:
    steps = Handshake().steps()
    next(steps)
    with pytest.raises(StopIteration) as ended:
        steps.send(versions_body(3, RANGES))
    assert ended.value.value is None


def test_a_port_that_wants_tls_or_sasl_raises_their_classes() -> None:
    alert = no_broker(bytes.fromhex("15030300020250"))
    assert type(alert) is TlsError
    assert "wants TLS: set security.protocol=ssl" in str(alert)
    sasl = not_served("closed the connection")
    assert type(sasl) is SaslError
    assert not alert.retriable
    assert not sasl.retriable


def test_a_request_that_needs_a_newer_version_names_the_option_and_the_version() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"needs v4 .*allow\.auto\.create\.topics"):
        encode_metadata_request(1, ["orders"])
