"""The session: versions, headers, frames, and the bytes that it refuses."""

from __future__ import annotations

import io
import re
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.api_header import RequestHeader
from peer import MOCK_REFUSAL, answer_handshake, framed, read_requests

from rdmeta.errors import (
    Error,
    MalformedError,
    RequestTimedOutError,
    TlsError,
    TransportError,
    UnsupportedVersionError,
)
from rdmeta.net import session as session_module
from rdmeta.net.describe_cluster import DESCRIBE_CLUSTER
from rdmeta.net.describe_quorum import DESCRIBE_QUORUM
from rdmeta.net.handshake import METADATA
from rdmeta.net.session import Session

RANGES = {0: (3, 11), METADATA: (0, 13), 18: (0, 4)}
METADATA_V1_ALL = struct.pack(">i", -1)


def ready_session(**options: Any) -> Session:
    session = Session(**options)
    answers, _ = answer_handshake(session.data_to_send(), RANGES)
    assert session.receive(answers) == []
    assert session.ready
    return session


def assert_taken_or_refused(session: Session, data: bytes) -> None:
    """Answers the session's request with `data`, and sends `data` once more without a frame."""
    (asked,) = read_requests(session.data_to_send())
    try:
        session.receive(framed(asked.correlation_id, data))
        session.receive(data)
    except Error:
        with pytest.raises(Error):
            session.receive(b"")


def test_the_first_request_is_api_versions_v3_and_names_the_software() -> None:
    session = Session(client_id="tester")
    (asked,) = read_requests(session.data_to_send())
    assert (asked.api_key, asked.version, asked.client_id) == (18, 3, "tester")
    assert asked.body.client_software_name == "rdmeta"
    legal = r"[a-zA-Z0-9]([a-zA-Z0-9\-.]*[a-zA-Z0-9])?"
    assert re.fullmatch(legal, asked.body.client_software_version)
    assert session.data_to_send() == b""


def test_an_answer_at_v3_makes_the_session_ready() -> None:
    session = ready_session()
    assert session.versions == RANGES
    assert not session.is_librdkafka_mock


@pytest.mark.parametrize("spoken", [0, 1, 2])
def test_an_older_broker_is_asked_again_at_the_version_it_names(spoken: int) -> None:
    session = Session()
    answers, first = answer_handshake(session.data_to_send(), RANGES, spoken)
    session.receive(answers)
    assert not session.ready
    answers, second = answer_handshake(session.data_to_send(), RANGES, spoken)
    session.receive(answers)
    assert (first, second) == ([3], [spoken])
    assert session.ready
    assert session.versions == RANGES


@given(data=st.binary(max_size=200))
def test_arbitrary_bytes_are_taken_or_refused_and_never_crash(data: bytes) -> None:
    assert_taken_or_refused(Session(), data)


@given(data=st.data())
def test_answers_are_the_same_however_the_bytes_are_split(data: st.DataObject) -> None:
    session = Session()
    stream, _ = answer_handshake(session.data_to_send(), RANGES)
    session.receive(stream)
    bodies = data.draw(st.lists(st.binary(max_size=40), max_size=5))
    stream = b"".join(
        framed(session.request(METADATA, 1, METADATA_V1_ALL), body) for body in bodies
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    edges = [0, *cuts, len(stream)]
    answers = [
        answer
        for start, end in zip(edges, edges[1:], strict=False)
        for answer in session.receive(stream[start:end])
    ]
    assert [answer.body for answer in answers] == bodies


@pytest.mark.slow
@given(data=st.data())
def test_long_answers_are_the_same_however_they_are_split_and_read(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_module, "_LONG", 30)
        session = ready_session()
        bodies = data.draw(st.lists(st.binary(max_size=90), max_size=5))
        stream = b"".join(
            framed(session.request(METADATA, 9, b"\1\0\0\0\0"), body, b"\0") for body in bodies
        )
        found: list[Any] = []
        while stream:
            piece = stream[: data.draw(st.integers(1, len(stream)))]
            space = session.space()
            if space is not None and data.draw(st.booleans()):
                piece = piece[: len(space)]
                space[: len(piece)] = piece
                found += session.received(len(piece))
            else:
                found += session.receive(piece)
            stream = stream[len(piece) :]
        assert [answer.body for answer in found] == bodies
        assert session.space() is None


def test_a_long_answer_is_read_into_one_buffer_and_not_copied() -> None:
    session = ready_session()
    body = bytes(range(250)) * 4000
    stream = framed(session.request(METADATA, 1, METADATA_V1_ALL), body)
    assert session.receive(stream[:100_000]) == []
    space = session.space()
    assert space is not None
    assert len(space) == len(stream) - 100_000
    space[:] = stream[100_000:]
    (answer,) = session.received(len(space))
    assert answer.body == body
    assert isinstance(answer.body, memoryview)
    assert answer.body.obj is space.obj


def test_the_length_of_a_long_answer_alone_takes_no_memory() -> None:
    session = ready_session(max_frame=1 << 30)
    session.request(METADATA, 1, METADATA_V1_ALL)
    length = 1 << 29
    assert session.receive(struct.pack(">i", length) + bytes(1 << 20)) == []
    assert session.space() is None


def test_a_close_in_a_long_answer_is_a_broken_connection() -> None:
    session = ready_session()
    stream = framed(session.request(METADATA, 1, METADATA_V1_ALL), bytes(1 << 20))
    session.receive(stream[: 1 << 17])
    assert session.space() is not None
    with pytest.raises(TransportError, match="closed the connection") as caught:
        session.closed()
    assert "SASL" not in str(caught.value)


def test_the_handshake_survives_one_byte_at_a_time() -> None:
    session = Session()
    answers, _ = answer_handshake(session.data_to_send(), RANGES)
    for byte in answers:
        assert not session.ready
        session.receive(bytes([byte]))
    assert session.ready


def test_requests_are_framed_with_the_header_of_their_version() -> None:
    session = ready_session()
    session.request(METADATA, 1, METADATA_V1_ALL)
    session.request(METADATA, 9, b"\0\1\0\0\0")
    old, flexible = read_requests(session.data_to_send())
    assert (old.version, old.body.topics) == (1, None)
    assert (flexible.version, flexible.body.topics) == (9, None)
    assert flexible.correlation_id == old.correlation_id + 1


def test_header_tags_of_flexible_answers_are_not_part_of_the_body() -> None:
    session = ready_session()
    tags = b"\x01\x05\x03abc"
    stream = framed(session.request(METADATA, 8, b"\0\0\0\0\0\0\0"), b"old")
    stream += framed(session.request(METADATA, 9, b"\1\0\0\0\0"), b"flexible", tags)
    assert [answer.body for answer in session.receive(stream)] == [b"old", b"flexible"]


def test_header_tags_that_end_beyond_the_frame_are_refused() -> None:
    session = ready_session()
    correlation_id = session.request(METADATA, 12, b"\1\0\0\0")
    with pytest.raises(MalformedError):
        session.receive(framed(correlation_id, b"abc", b"\x01\x05\x7f"))


def test_an_answer_to_another_request_is_refused() -> None:
    session = ready_session()
    correlation_id = session.request(METADATA, 1, METADATA_V1_ALL)
    with pytest.raises(TransportError, match=str(correlation_id + 1)):
        session.receive(framed(correlation_id + 1, b""))


def test_an_answer_without_a_request_is_refused() -> None:
    with pytest.raises(TransportError, match="an answer without a request"):
        ready_session().receive(framed(2, b""))


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 3, 101, 2**31 - 1])
def test_a_frame_length_out_of_bounds_is_refused_before_the_frame_arrives(length: int) -> None:
    session = ready_session(max_frame=100)
    session.request(METADATA, 1, METADATA_V1_ALL)
    with pytest.raises(MalformedError):
        session.receive(struct.pack(">i", length))


def test_a_frame_of_exactly_the_limit_is_accepted() -> None:
    session = ready_session(max_frame=100)
    correlation_id = session.request(METADATA, 1, METADATA_V1_ALL)
    (answer,) = session.receive(framed(correlation_id, bytes(96)))
    assert len(answer.body) == 96


@pytest.mark.parametrize(
    "first", [bytes.fromhex("15030300020250"), b"HTTP/1.1 400", b"-ERR unknown command", bytes(4)]
)
def test_bytes_that_are_no_answer_are_refused_before_a_frame_is_complete(first: bytes) -> None:
    session = Session(max_frame=2**31 - 1)
    with pytest.raises((MalformedError, TlsError), match="TLS|not a Kafka broker"):
        session.receive(first)


def test_an_echo_of_the_first_request_is_not_taken_for_an_answer() -> None:
    session = Session()
    with pytest.raises(MalformedError, match="not a Kafka broker"):
        session.receive(session.data_to_send())


@pytest.mark.parametrize(
    ("rest", "error"), [(bytes(4), MalformedError), (framed(99, b""), TransportError)]
)
def test_an_answer_before_a_bad_frame_is_not_lost_however_the_bytes_are_split(
    rest: bytes, error: type[Error]
) -> None:
    for cut in (False, True):
        session = ready_session()
        good = framed(session.request(METADATA, 1, METADATA_V1_ALL), b"good")
        session.request(METADATA, 1, METADATA_V1_ALL)
        (answer,) = session.receive(good if cut else good + rest)
        assert answer.body == b"good"
        assert isinstance(session.failure, error) is not cut
        with pytest.raises(error):
            session.receive(rest if cut else b"")


def test_requests_of_the_describe_apis_have_flexible_headers() -> None:
    session = ready_session()
    for key in (DESCRIBE_CLUSTER, DESCRIBE_QUORUM):
        for version in range(3):
            correlation_id = session.request(key, version, b"body")
            data = session.data_to_send()
            stream = io.BytesIO(data[4:])
            header = RequestHeader.decode(stream, flexible=True)
            assert (header.request_api_key, header.correlation_id) == (key, correlation_id)
            assert stream.read() == b"body"
            (answer,) = session.receive(framed(correlation_id, b"answer", b"\0"))
            assert answer.body == b"answer"


def test_a_failed_session_stays_failed() -> None:
    session = Session()
    with pytest.raises(MalformedError):
        session.receive(bytes(4))
    with pytest.raises(MalformedError):
        session.receive(b"")
    with pytest.raises(MalformedError):
        session.request(METADATA, 1, METADATA_V1_ALL)


def test_no_request_goes_out_before_the_session_is_ready() -> None:
    session = Session()
    session.data_to_send()
    with pytest.raises(Error, match="not ready"):
        session.request(METADATA, 1, METADATA_V1_ALL)
    assert session.data_to_send() == b""


def test_a_close_before_any_answer_points_at_tls() -> None:
    session = Session()
    for how in ("closed the connection", "reset the connection"):
        with pytest.raises(TransportError, match=f"{how} .*TLS") as raised:
            session.closed(how)
        assert not raised.value.retriable


def test_a_close_in_the_middle_of_the_first_answer_is_a_broken_connection() -> None:
    session = Session()
    answers, _ = answer_handshake(session.data_to_send(), RANGES)
    session.receive(answers[:-1])
    with pytest.raises(TransportError, match="middle of an answer") as raised:
        session.closed()
    assert raised.value.retriable


def test_a_close_at_the_first_request_points_at_sasl() -> None:
    session = ready_session()
    session.request(METADATA, 1, METADATA_V1_ALL)
    with pytest.raises(TransportError, match="SASL") as raised:
        session.closed()
    assert not raised.value.retriable


def test_a_close_later_or_between_requests_is_a_broken_connection() -> None:
    session = ready_session()
    with pytest.raises(TransportError, match="closed the connection$") as idle:
        session.closed()
    session.receive(framed(session.request(METADATA, 1, METADATA_V1_ALL), b""))
    session.request(METADATA, 1, METADATA_V1_ALL)
    with pytest.raises(TransportError, match="closed the connection$") as later:
        session.closed()
    assert idle.value.retriable
    assert later.value.retriable


def test_a_close_by_the_mock_does_not_point_at_sasl() -> None:
    session = Session()
    (asked,) = read_requests(session.data_to_send())
    session.receive(framed(asked.correlation_id, MOCK_REFUSAL))
    session.receive(answer_handshake(session.data_to_send(), RANGES, spoken=2)[0])
    session.request(METADATA, 1, METADATA_V1_ALL)
    with pytest.raises(TransportError, match="closed the connection$") as raised:
        session.closed()
    assert raised.value.retriable


def test_silence_before_and_after_the_first_answer_has_different_errors() -> None:
    with pytest.raises(RequestTimedOutError, match="ApiVersions.*may not be a Kafka broker"):
        Session().timed_out()
    with pytest.raises(RequestTimedOutError, match="no answer in time$"):
        ready_session().timed_out()


def test_the_highest_common_version_is_taken() -> None:
    session = ready_session()
    assert session.version_for(METADATA, 0, 13) == 13
    assert session.version_for(METADATA, 0, 12) == 12
    assert session.version_for(0, 0, 99) == 11


def test_no_common_version_is_an_error_that_names_both_sides() -> None:
    session = ready_session()
    with pytest.raises(UnsupportedVersionError, match=r"3-11.*12-13"):
        session.version_for(0, 12, 13)
    with pytest.raises(UnsupportedVersionError, match=r"3-11.*0-2"):
        session.version_for(0, 0, 2)
    with pytest.raises(UnsupportedVersionError, match="no version of API 77,"):
        session.version_for(77, 0, 1)
    with pytest.raises(UnsupportedVersionError, match="no version of DescribeQuorum,"):
        session.version_for(55, 0, 2)
