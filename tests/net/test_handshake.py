"""The handshake without a session: the versions it agrees on, and its errors for other ports."""

from __future__ import annotations

import struct

import pytest
from peer import MOCK_REFUSAL, UNSUPPORTED_VERSION, versions_body

from rdmeta.errors import Error, MalformedError, TransportError, UnsupportedVersionError
from rdmeta.net.api_versions import API_VERSIONS
from rdmeta.net.handshake import Handshake, no_answer, no_broker, not_served

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
        (bytes.fromhex("15030300020250"), "wants TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", r"not a Kafka broker.*b'SSH-2\.0-OpenSSH_9\.2\\r\\n'$"),
        (b"-ERR wrong number of arguments\r\n", r"b'-ERR wrong number of arg'\.\.\.$"),
        (b"HTTP/1.1 400 Bad Request\r\n", r"b'HTTP/1\.1 400 Bad Request'\.\.\.$"),
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
    for error, wants in (
        (no_answer(b"", "reset the connection"), "TLS"),
        (not_served("closed the connection"), "SASL"),
    ):
        assert isinstance(error, TransportError)
        assert f"seems to want {wants}" in str(error)
        assert not error.retriable
    assert "first bytes are b'hi'" in str(no_answer(b"hi", "closed the connection"))
    assert no_answer(b"\0\0", "closed the connection").retriable
