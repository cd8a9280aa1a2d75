"""The session with SASL: the login after ApiVersions, again later, refused, cut or in silence."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from login_server import MECHANISMS, LoginServer, Step
from peer import Asked, framed, read_requests, versions_body
from test_session import assert_taken_or_refused

from rdmeta.config.secret import Secret
from rdmeta.errors import (
    AuthenticationError,
    Error,
    MalformedError,
    RequestTimedOutError,
    TlsError,
    TransportError,
)
from rdmeta.net.handshake import LONGEST_ANSWER, METADATA
from rdmeta.net.sasl import Login, Token, oauth_login, plain_login, scram_login
from rdmeta.net.session import Session

RANGES = {METADATA: (0, 13), 17: (0, 1), 18: (0, 4), 36: (0, 2)}
OLD = {METADATA: (0, 1), 17: (0, 0), 18: (0, 0)}
ALL_TOPICS = struct.pack(">i", -1)
USERS = {"alice": "secret"}


def login_of(mechanism: str, password: str = "secret") -> Login:
    if mechanism == "PLAIN":
        return plain_login("alice", password)
    if mechanism == "OAUTHBEARER":
        return oauth_login(Token(Secret(password, "oauth_cb"), 2e9))
    return scram_login(mechanism, "alice", password)


class Peer:
    """The broker's side of one session, which answers logins; other requests it keeps."""

    def __init__(
        self,
        session: Session,
        ranges: dict[int, tuple[int, int]] = RANGES,
        lifetime_ms: int = 0,
        enabled: tuple[str, ...] = MECHANISMS,
    ) -> None:
        self.session = session
        self.server = LoginServer(dict(USERS), tokens={"secret"})
        self.ranges = ranges
        self.lifetime_ms = lifetime_ms
        self.enabled = enabled
        self.asked: list[Asked] = []
        self.keys: list[int] = []
        self._take: Callable[[bytes], Step] | None = None

    def answer(self) -> bytes:
        """Returns the answers to what the session sends; the requests that stay are `asked`."""
        data, answers = self.session.data_to_send(), b""
        while data:
            (length,) = struct.unpack_from(">i", data)
            frame, data = data[: 4 + length], data[4 + length :]
            if self._take is not None and 36 not in self.ranges and not self.session.ready:
                step = self._take(frame[4:])
                if step.refusal is not None:
                    self.session.closed()
                answers += struct.pack(">i", len(step.data)) + step.data
                continue
            (asked,) = read_requests(frame)
            self.keys.append(asked.api_key)
            body = self._body(asked)
            if body is None:
                self.asked.append(asked)
            else:
                tags = b"\0" if asked.flexible and asked.api_key != 18 else b""
                answers += framed(asked.correlation_id, body, tags)
        return answers

    def _body(self, asked: Asked) -> bytes | None:
        if asked.api_key == 18:
            return versions_body(asked.version, self.ranges)
        if asked.api_key == 17:
            mechanism = asked.body.mechanism
            error = 0 if mechanism in self.enabled else 33
            self._take = None if error else self.server.begin(mechanism)
            response = SaslHandshakeResponse(error_code=error, mechanisms=list(self.enabled))
            return bytes(response.encode(version=asked.version))
        if asked.api_key == 36:
            assert self._take is not None
            step = self._take(asked.body.auth_bytes)
            response = SaslAuthenticateResponse(
                error_code=0 if step.refusal is None else 58,
                error_message=step.refusal,
                auth_bytes=step.data,
                session_lifetime_ms=self.lifetime_ms,
            )
            return bytes(response.encode(version=asked.version))
        return None

    def run(self) -> None:
        """Answers until the session sends nothing that is answered at once."""
        while answers := self.answer():
            assert self.session.receive(answers) == []


def logged_in(
    mechanism: str = "PLAIN", lifetime_ms: int = 60_000, password: str = "secret"
) -> tuple[Session, Peer]:
    session = Session(login=login_of(mechanism, password))
    peer = Peer(session, lifetime_ms=lifetime_ms)
    peer.run()
    return session, peer


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_login_follows_api_versions_and_makes_the_session_ready(mechanism: str) -> None:
    session, peer = logged_in(mechanism)
    assert session.ready
    assert (session.logins, session.lifetime) == (1, 60.0)
    messages = 1 if mechanism in ("PLAIN", "OAUTHBEARER") else 2
    assert peer.keys == [18, 17, *[36] * messages]
    assert not session.is_reauthenticating


def test_without_a_login_nothing_is_asked_but_versions() -> None:
    session = Session()
    peer = Peer(session)
    peer.run()
    assert peer.keys == [18]
    assert session.ready
    assert (session.logins, session.lifetime) == (0, None)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_broker_before_1_0_logs_in_by_bare_frames(mechanism: str) -> None:
    session = Session(login=login_of(mechanism))
    peer = Peer(session, OLD)
    # An old broker refuses ApiVersions v3, so that the session asks again with v0.
    (asked,) = read_requests(session.data_to_send())
    session.receive(framed(asked.correlation_id, versions_body(0, {18: (0, 0)}, 35)))
    peer.run()
    assert session.ready
    assert (session.logins, session.lifetime) == (1, None)
    with pytest.raises(Error, match="knows no SaslAuthenticate"):
        session.reauthenticate(login_of(mechanism))
    (answer,) = session.receive(framed(session.request(METADATA, 1, ALL_TOPICS), b"body"))
    assert answer.body == b"body"


def test_a_broker_before_1_0_that_closes_in_the_login_refuses_it() -> None:
    session = Session(login=login_of("PLAIN", "wrong"))
    peer = Peer(session, OLD)
    with pytest.raises(AuthenticationError, match=r"before 1\.0 .*check sasl\.username"):
        peer.run()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_refused_login_breaks_the_session_with_the_cause(mechanism: str) -> None:
    session = Session(login=login_of(mechanism, "wrong"))
    with pytest.raises(AuthenticationError, match=f"refuses the {mechanism} login") as caught:
        Peer(session).run()
    assert not session.ready
    assert session.failure is caught.value
    with pytest.raises(AuthenticationError):
        session.receive(b"")


def test_a_mechanism_that_is_not_enabled_breaks_the_session() -> None:
    session = Session(login=login_of("PLAIN"))
    with pytest.raises(AuthenticationError, match="it enables SCRAM-SHA-512; change"):
        Peer(session, enabled=("SCRAM-SHA-512",)).run()


def test_no_request_leaves_before_the_login() -> None:
    session = Session(login=login_of("PLAIN"))
    session.receive(Peer(session).answer())
    with pytest.raises(Error, match="not ready"):
        session.request(METADATA, 1, ALL_TOPICS)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_login_survives_one_byte_at_a_time(mechanism: str) -> None:
    session = Session(login=login_of(mechanism))
    peer = Peer(session)
    while answers := peer.answer():
        for byte in answers:
            assert not session.ready
            session.receive(bytes([byte]))
    assert session.ready


def test_a_frame_of_more_than_512_kib_is_refused_before_the_login_and_not_after() -> None:
    assert LONGEST_ANSWER == 512 << 10
    session = Session(login=login_of("PLAIN"))
    peer = Peer(session)
    session.receive(peer.answer())
    with pytest.raises(MalformedError, match="524289 bytes; 4 to 524288"):
        session.receive(struct.pack(">i", LONGEST_ANSWER + 1))
    session, _ = logged_in()
    session.request(METADATA, 1, ALL_TOPICS)
    session.receive(struct.pack(">i", LONGEST_ANSWER + 1))


@pytest.mark.parametrize("length", [-1, 0, 3])
def test_a_short_frame_in_a_login_is_refused(length: int) -> None:
    session = Session(login=login_of("PLAIN"))
    session.receive(Peer(session).answer())
    with pytest.raises(MalformedError):
        session.receive(struct.pack(">i", length))


def test_a_close_in_the_login_names_the_login() -> None:
    session = Session(login=login_of("PLAIN"))
    session.receive(Peer(session).answer())
    with pytest.raises(TransportError, match="reset the connection during the PLAIN login") as e:
        session.closed("reset the connection")
    assert e.value.retriable


def test_silence_in_the_login_names_the_login() -> None:
    session = Session(login=login_of("PLAIN"))
    with pytest.raises(RequestTimedOutError, match="ApiVersions"):
        session.timed_out()
    session.receive(Peer(session).answer())
    with pytest.raises(RequestTimedOutError, match="no answer to the PLAIN login in time"):
        session.timed_out()


def test_a_close_at_the_first_request_after_a_login_does_not_point_at_sasl() -> None:
    session, peer = logged_in()
    session.request(METADATA, 1, ALL_TOPICS)
    peer.run()
    with pytest.raises(TransportError, match="closed the connection$") as caught:
        session.closed()
    assert caught.value.retriable


def test_a_close_before_any_answer_names_the_protocol_to_set() -> None:
    with pytest.raises(TransportError, match=r"security\.protocol=sasl_ssl\)"):
        Session(login=login_of("PLAIN")).closed()
    with pytest.raises(TransportError, match="client certificate"):
        Session(tls=True).closed()
    with pytest.raises(TlsError, match=r"security\.protocol=sasl_ssl$"):
        Session(login=login_of("PLAIN")).receive(bytes.fromhex("15030300020250"))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_idle_session_logs_in_again_at_once(mechanism: str) -> None:
    session, peer = logged_in(mechanism)
    first = list(peer.keys)
    peer.lifetime_ms = 5000
    session.reauthenticate(login_of(mechanism))
    assert session.is_reauthenticating
    assert session.ready
    peer.run()
    assert peer.keys == first + first[1:]
    assert (session.logins, session.lifetime) == (2, 5.0)
    assert not session.is_reauthenticating


def test_logging_in_again_waits_for_what_is_in_flight_and_holds_new_requests() -> None:
    session, peer = logged_in()
    asked = ((1, ALL_TOPICS), (9, b"\0\1\0\0\0"))
    before = [session.request(METADATA, version, body) for version, body in asked]
    session.reauthenticate(login_of("PLAIN"))
    held = session.request(METADATA, 1, ALL_TOPICS)
    assert session.is_reauthenticating
    peer.keys.clear()
    peer.run()
    assert peer.keys == [METADATA] * 2
    (answer,) = session.receive(framed(before[0], b"one"))
    assert answer.correlation_id == before[0]
    assert session.data_to_send() == b""
    (answer,) = session.receive(framed(before[1], b"two", b"\0"))
    assert answer.body == b"two"
    during = session.request(METADATA, 1, ALL_TOPICS)
    peer.keys.clear()
    peer.run()
    assert peer.keys == [17, 36, METADATA, METADATA]
    assert [each.correlation_id for each in peer.asked[-2:]] == [held, during]
    assert session.logins == 2
    answers = session.receive(framed(held, b"three") + framed(during, b"four"))
    assert [each.body for each in answers] == [b"three", b"four"]


def test_requests_after_hold_wait_for_the_next_login() -> None:
    session, peer = logged_in()
    session.hold()
    held = session.request(METADATA, 1, ALL_TOPICS)
    assert session.data_to_send() == b""
    peer.keys.clear()
    session.reauthenticate(login_of("PLAIN"))
    peer.run()
    assert peer.keys == [17, 36, METADATA]
    assert [each.body for each in session.receive(framed(held, b"one"))] == [b"one"]
    session.request(METADATA, 1, ALL_TOPICS)
    assert session.data_to_send() != b""


def test_an_answer_that_ends_the_wait_begins_the_login_and_is_returned() -> None:
    session, peer = logged_in()
    number = session.request(METADATA, 1, ALL_TOPICS)
    peer.run()
    session.reauthenticate(login_of("PLAIN"))
    (answer,) = session.receive(framed(number, b"body"))
    assert answer.body == b"body"
    peer.run()
    assert session.logins == 2


def test_a_changed_password_breaks_the_session_at_the_next_login() -> None:
    session, peer = logged_in("SCRAM-SHA-512")
    peer.server.users["alice"] = "another"
    session.reauthenticate(login_of("SCRAM-SHA-512"))
    session.request(METADATA, 1, ALL_TOPICS)
    with pytest.raises(AuthenticationError, match=r"check sasl\.username and sasl\.password"):
        peer.run()
    assert isinstance(session.failure, AuthenticationError)
    assert session.logins == 1


def test_a_close_while_it_logs_in_again_names_the_login() -> None:
    session, peer = logged_in()
    session.reauthenticate(login_of("PLAIN"))
    session.receive(peer.answer())
    with pytest.raises(TransportError, match="during the PLAIN login"):
        session.closed()


def test_a_second_login_at_one_time_or_before_the_first_is_an_error() -> None:
    session = Session(login=login_of("PLAIN"))
    with pytest.raises(Error, match="cannot log in again"):
        session.reauthenticate(login_of("PLAIN"))
    session, peer = logged_in()
    session.reauthenticate(login_of("PLAIN"))
    with pytest.raises(Error, match="cannot log in again"):
        session.reauthenticate(login_of("PLAIN"))
    peer.run()
    assert session.logins == 2


def test_a_lifetime_that_the_broker_no_longer_names_is_none() -> None:
    session, peer = logged_in()
    peer.lifetime_ms = 0
    session.reauthenticate(login_of("PLAIN"))
    peer.run()
    assert session.lifetime is None


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_logins_and_requests_in_any_order_lose_no_answer(data: st.DataObject) -> None:
    session, peer = logged_in()
    sent: list[int] = []
    answered: list[int] = []
    logins = 1
    for _ in range(data.draw(st.integers(0, 25))):
        action = data.draw(st.sampled_from(["request", "login", "answer", "run"]))
        if action == "request":
            sent.append(session.request(METADATA, 1, ALL_TOPICS))
        elif action == "login" and not session.is_reauthenticating:
            session.reauthenticate(login_of("PLAIN"))
            logins += 1
        elif action == "answer" and peer.asked:
            body = framed(peer.asked.pop(0).correlation_id, b"")
            answered += [each.correlation_id for each in session.receive(body)]
        elif action == "run":
            peer.run()
    peer.run()
    while peer.asked:
        body = framed(peer.asked.pop(0).correlation_id, b"")
        answered += [each.correlation_id for each in session.receive(body)]
        peer.run()
    assert answered == sent
    assert session.logins == logins


@given(data=st.binary(max_size=200), mechanism=st.sampled_from(MECHANISMS))
@settings(max_examples=200, deadline=None)
def test_arbitrary_answers_to_a_login_are_taken_or_refused_and_never_crash(
    data: bytes, mechanism: str
) -> None:
    for ranges in (RANGES, OLD):
        session = Session(login=login_of(mechanism))
        peer = Peer(session, ranges)
        session.receive(peer.answer())
        assert_taken_or_refused(session, data)
