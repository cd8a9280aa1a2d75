"""SASL: the codecs, the logins against scramp's server side and RFC vectors, and refusals."""

from __future__ import annotations

import builtins
import pickle
import struct
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from login_server import MECHANISMS, LoginServer, Step

from rdmeta.config.secret import Secret
from rdmeta.errors import (
    AuthenticationError,
    ConfigError,
    Error,
    MalformedError,
    MissingExtraError,
    TransportError,
    UnsupportedVersionError,
)
from rdmeta.net import sasl
from rdmeta.net.fields import RAW
from rdmeta.net.sasl import Login, Token, oauth_login, plain_login, scram_login

VERSIONS = {17: (0, 1), 36: (0, 2)}
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MARK = "m4rked-S3cret"


def bearer(value: str = "abc.def", **fields: Any) -> Token:
    return Token(Secret(value, "oauth_cb"), 2e9, **fields)


def login_of(mechanism: str, password: str = "secret", user: str = "alice") -> Login:
    if mechanism == "PLAIN":
        return plain_login(user, password)
    if mechanism == "OAUTHBEARER":
        return oauth_login(bearer(password))
    return scram_login(mechanism, user, password)


def run(
    login: Login,
    take: Callable[[bytes], Step],
    versions: dict[int, tuple[int, int]] = VERSIONS,
    lifetime_ms: int = 0,
    **options: bool,
) -> float | None:
    """Logs in to a broker whose side `take` is; returns the lifetime."""
    steps = sasl.steps(versions, login, **options)
    call = next(steps)
    try:
        while True:
            if call.api_key == RAW:
                step = take(call.body)
                if step.refusal is not None:
                    raise sasl.cut(RAW, login, "closed the connection")
                body = step.data
            elif call.api_key == sasl.SASL_HANDSHAKE:
                asked = SaslHandshakeRequest.decode(call.body, version=call.version)
                assert asked.mechanism == login.mechanism
                body = SaslHandshakeResponse(error_code=0, mechanisms=list(MECHANISMS)).encode(
                    version=call.version
                )
            else:
                asked = SaslAuthenticateRequest.decode(call.body, version=call.version)
                step = take(asked.auth_bytes)
                body = SaslAuthenticateResponse(
                    error_code=58 if step.refusal is not None else 0,
                    error_message=step.refusal,
                    auth_bytes=step.data,
                    session_lifetime_ms=lifetime_ms,
                ).encode(version=call.version)
            call = steps.send(bytes(body))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def handshake_refused(code: int, mechanisms: list[str], **options: bool) -> Error:
    steps = sasl.steps(VERSIONS, login_of("PLAIN"), **options)
    next(steps)
    body = SaslHandshakeResponse(error_code=code, mechanisms=mechanisms).encode(version=1)
    with pytest.raises(Error) as caught:
        steps.send(bytes(body))
    return caught.value


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("highest", [0, 1, 2])
def test_every_mechanism_logs_in_at_every_version(mechanism: str, highest: int) -> None:
    server = LoginServer({"alice": "secret"}, tokens={"secret"})
    versions = {17: (0, 1), 36: (0, highest)}
    lifetime = run(login_of(mechanism), server.begin(mechanism), versions, 5000)
    assert lifetime == (5.0 if highest else None)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_broker_before_1_0_gets_the_bare_messages(mechanism: str) -> None:
    server = LoginServer({"alice": "secret"}, tokens={"secret"})
    login = login_of(mechanism)
    assert next(sasl.steps({17: (0, 0)}, login)).version == 0
    assert run(login, server.begin(mechanism), {17: (0, 0)}) is None


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_refused_login_says_cause_mechanism_and_key_and_no_secret(mechanism: str) -> None:
    server = LoginServer({"alice": "secret"}, tokens={"secret"})
    with pytest.raises(AuthenticationError) as caught:
        run(login_of(mechanism, MARK), server.begin(mechanism))
    text = str(caught.value)
    assert caught.value.code == 58
    assert not caught.value.retriable
    assert f"the broker refuses the {mechanism} login (SASL_AUTHENTICATION_FAILED): " in text
    expected = {
        "PLAIN": "Invalid username or password; check sasl.username and sasl.password",
        "OAUTHBEARER": "): invalid_token; check the token",
    }.get(mechanism, f"mechanism {mechanism}; check sasl.username and sasl.password")
    assert text.endswith(expected)
    assert MARK not in "".join(traceback.format_exception(caught.value))


def test_an_unknown_user_is_refused_like_a_wrong_password() -> None:
    server = LoginServer({"bob": "secret"})
    for mechanism in MECHANISMS[:3]:
        with pytest.raises(AuthenticationError, match="sasl.username"):
            run(login_of(mechanism), server.begin(mechanism))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_login_serves_many_connections(mechanism: str) -> None:
    server = LoginServer({"alice": "secret"}, tokens={"secret"})
    login = login_of(mechanism)
    for _ in range(3):
        run(login, server.begin(mechanism))


def test_each_scram_exchange_has_a_nonce_of_its_own() -> None:
    login = login_of("SCRAM-SHA-256")
    firsts = {next(login.exchange()) for _ in range(50)}
    assert len(firsts) == 50


def test_the_messages_are_those_of_rfc_7677(monkeypatch: pytest.MonkeyPatch) -> None:
    client, server = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    monkeypatch.setattr("scramp.core.token_hex", lambda: client)
    exchange = scram_login("SCRAM-SHA-256", "user", "pencil").exchange()
    assert next(exchange) == f"n,,n=user,r={client}".encode()
    answer = f"r={client}{server},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert exchange.send(answer.encode()) == (
        f"c=biws,r={client}{server},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    )
    with pytest.raises(StopIteration):
        exchange.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_plain_sends_the_message_of_rfc_4616() -> None:
    assert next(plain_login("tim", "tanstaaftanstaaf").exchange()) == b"\0tim\0tanstaaftanstaaf"
    assert next(plain_login("käthe", "ß").exchange()) == "\0käthe\0ß".encode()


def test_oauthbearer_sends_the_message_of_rfc_7628_with_extensions() -> None:
    message = next(oauth_login(bearer()).exchange())
    assert message == b"n,,\1auth=Bearer abc.def\1\1"
    token = bearer(extensions=(("logicalCluster", "lkc-1"), ("identityPoolId", "pool-2")))
    message = next(oauth_login(token).exchange())
    assert message == (b"n,,\1auth=Bearer abc.def\1logicalCluster=lkc-1\1identityPoolId=pool-2\1\1")


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("password", ["ﬁn\u00a0é", "🔑 \t\n", "a=b,c", "\u00ad"])
def test_scram_hashes_the_password_without_saslprep_as_kafka_does(
    mechanism: str, password: str
) -> None:
    server = LoginServer({"a=b,c": password})
    run(scram_login(mechanism, "a=b,c", password), server.begin(mechanism))


def test_scram_sends_the_user_name_without_saslprep_as_kafka_does() -> None:
    message = next(scram_login("SCRAM-SHA-256", "ﬁn=a,\u00aa", "secret").exchange())
    assert message.startswith("n,,n=ﬁn=3Da=2C\u00aa,r=".encode())


def scram_answers(mechanism: str, *answers: Callable[[bytes, Step], bytes]) -> None:
    """Logs in to a server whose answers are changed in turn; `answers` get message and answer."""
    take = LoginServer({"alice": "secret"}).begin(mechanism)
    changes = list(answers)

    def changed(message: bytes) -> Step:
        step = take(message)
        return Step(None, changes.pop(0)(message, step) if changes else step.data)

    run(scram_login(mechanism, "alice", "secret"), changed)


def replies(data: list[bytes]) -> Callable[[bytes], Step]:
    """Returns a broker's side that answers with `data`, whatever the client says."""
    answers = iter(data)
    return lambda message: Step(None, next(answers))


def final(data: bytes) -> Callable[[bytes, Step], bytes]:
    return lambda message, step: data


def same(message: bytes, step: Step) -> bytes:
    return step.data


def replaced(attribute: str, value: str) -> Callable[[bytes, Step], bytes]:
    def change(message: bytes, step: Step) -> bytes:
        parts = step.data.decode().split(",")
        return ",".join(f"{attribute}={value}" if p[0] == attribute else p for p in parts).encode()

    return change


@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_broker_that_does_not_know_the_password_is_refused(mechanism: str) -> None:
    for proof in (b"v=" + b"A" * 43 + b"=", b"v=AAAA"):
        with pytest.raises(AuthenticationError, match="did not prove that it knows the password"):
            scram_answers(mechanism, same, final(proof))


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (replaced("i", "4095"), "4096"),
        (replaced("i", "0"), "iteration"),
        (replaced("i", "131073"), "131073 iterations.* at most 131072"),
        (replaced("i", "9" * 4000), "iteration|bytes"),
        (replaced("i", "9" * 400_000), "at most 4096 are accepted"),
        (replaced("i", "-5"), "iteration"),
        (replaced("r", "another"), "nonce"),
        (replaced("s", "!!!!"), "base 64"),
        (lambda message, step: b"", "Malformed"),
        (lambda message, step: b"\xff", "not UTF-8"),
        (
            lambda message, step: b"e=unknown-user",
            "the broker reports 'unknown-user'.*sasl.username",
        ),
        (lambda message, step: b"e=something new", "the broker reports 'something new'"),
        (lambda message, step: b"m=1," + step.data, "'m'"),
        # The client's own nonce, without a part of the server's.
        (
            lambda message, step: (
                b"r=" + message.split(b"r=")[1] + b",s=MDEyMzQ1Njc4OWFiY2RlZg==,i=4096"
            ),
            "nonce must be longer",
        ),
    ],
)
def test_a_first_message_that_is_not_safe_is_refused(
    mechanism: str, change: Callable[[bytes, Step], bytes], what: str
) -> None:
    with pytest.raises(AuthenticationError, match=what):
        scram_answers(mechanism, change)


def test_the_largest_number_of_iterations_is_accepted() -> None:
    server = LoginServer({"alice": "secret"}, iterations=131072)
    run(login_of("SCRAM-SHA-256"), server.begin("SCRAM-SHA-256"))


def test_an_error_in_the_last_message_is_reported() -> None:
    with pytest.raises(AuthenticationError, match="the broker reports 'invalid-proof'"):
        scram_answers("SCRAM-SHA-512", same, lambda message, step: b"e=invalid-proof")


@pytest.mark.slow
@given(data=st.lists(st.binary(max_size=120), min_size=3, max_size=3))
@settings(max_examples=300)
def test_arbitrary_messages_of_a_broker_end_in_an_error_or_a_login(data: list[bytes]) -> None:
    for mechanism in MECHANISMS:
        failure = None
        try:
            run(login_of(mechanism), replies(data))
        except Error as error:
            failure = error
        if failure is None:
            assert mechanism == "PLAIN" or (mechanism == "OAUTHBEARER" and data[0] == b"")
        else:
            assert isinstance(failure, AuthenticationError)
            assert str(failure).isprintable()


@pytest.mark.parametrize("key", ["sasl.username", "sasl.password"])
@pytest.mark.parametrize(
    ("text", "what"), [("", "is empty"), ("a\0b", "NUL"), ("a\udcff", "no legal Unicode")]
)
def test_plain_refuses_what_it_cannot_send_and_shows_no_secret(
    key: str, text: str, what: str
) -> None:
    user, password = (text, "x") if key == "sasl.username" else ("x", text)
    with pytest.raises(ConfigError, match=f"^{key} .*{what}") as caught:
        plain_login(user, password)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("user", "password", "what"),
    [
        ("alice", "", "sasl.password is empty"),
        ("", "secret", "sasl.username cannot be sent"),
        ("a\nb", "secret", "sasl.username cannot be sent"),
        ("alice", "\ud800", "sasl.password is no legal Unicode"),
    ],
)
def test_scram_refuses_what_it_cannot_send(user: str, password: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        scram_login("SCRAM-SHA-256", user, password)


def test_scram_knows_two_mechanisms() -> None:
    for mechanism in ("SCRAM-SHA-1", "SCRAM-SHA-256-PLUS", "GSSAPI"):
        with pytest.raises(ConfigError, match="SCRAM-SHA-256, SCRAM-SHA-512"):
            scram_login(mechanism, "alice", "secret")


def test_without_scramp_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name == "scramp":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"SCRAM-SHA-512 .*-e '\.\[sasl\]'"):
        scram_login("SCRAM-SHA-512", "alice", "secret")
    plain_login("alice", "secret")
    oauth_login(bearer())


@pytest.mark.parametrize("value", ["", "a b", "a\1b", "tökén", "a\nb", "a\r\nX: y"])
def test_a_token_with_illegal_characters_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(AuthenticationError, match="check the token of a test") as caught:
        oauth_login(bearer(f"{MARK} {value}", origin="the token of a test"))
    assert MARK not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"), [("auth", "x"), ("", "x"), ("a1", "x"), ("a=b", "x"), ("a", ""), ("a", "\1")]
)
def test_an_extension_that_kafka_refuses_is_refused(name: str, value: str) -> None:
    with pytest.raises(AuthenticationError, match="SASL extension"):
        oauth_login(bearer(extensions=((name, value),)))


@pytest.mark.parametrize(
    ("challenge", "refusal", "words"),
    [
        (b'{"status":"invalid_token"}', '{"status":"invalid_token"}', "): invalid_token; check"),
        (
            b'{"status":"insufficient_scope", "scope":"kafka", "openid-configuration":"http://x/y"}',
            "",
            "): insufficient_scope, scope kafka, openid-configuration http://x/y; check",
        ),
        (b"no JSON", "Broken", "): Broken (no JSON); check"),
        (b'{"status":7}', None, '): {"status":7}; check'),
        (b"[" * 100_000, "Deep", "): Deep ([[["),
        (b"\xff\x1b[2J", "Odd", "): Odd (\ufffd\\x1b[2J); check"),
    ],
)
def test_the_error_object_of_oauthbearer_is_acknowledged_and_told_in_words(
    challenge: bytes, refusal: str | None, words: str
) -> None:
    messages = []

    def take(message: bytes) -> Step:
        messages.append(message)
        return Step(None, challenge) if len(messages) == 1 else Step(refusal or "")

    with pytest.raises(AuthenticationError) as caught:
        run(oauth_login(bearer()), take)
    assert messages[1:] == [b"\1"]
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_broker_that_accepts_after_its_error_object_is_not_believed() -> None:
    answers = iter([Step(None, b'{"status":"invalid_token"}'), Step(None, b"")])
    with pytest.raises(AuthenticationError, match="invalid_token"):
        run(oauth_login(bearer()), lambda message: next(answers))


def test_a_broker_that_echoes_the_secret_is_not_quoted() -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"):
        with pytest.raises(AuthenticationError, match=r"no \*\*\* here") as caught:
            run(login_of(mechanism, MARK), lambda message: Step(f"no {MARK} here"))
        assert MARK not in str(caught.value)


def test_a_long_refusal_with_control_characters_is_shown_short_and_on_one_line() -> None:
    with pytest.raises(AuthenticationError) as caught:
        run(login_of("PLAIN"), lambda message: Step("bad\r\n\x1b[2J\u2028" + "x" * 10_000))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_a_refusal_with_another_code_keeps_the_code_and_whether_it_may_pass() -> None:
    for code, retriable in ((7, True), (-1, False), (34, False)):
        error = login_of("PLAIN").refusal(code, None)
        assert isinstance(error, AuthenticationError)
        assert (error.code, error.retriable) == (code, retriable)
        assert str(error).endswith("); check sasl.username and sasl.password")


def test_a_mechanism_that_is_not_enabled_is_reported_with_those_that_are() -> None:
    error = handshake_refused(33, ["SCRAM-SHA-512", "OAUTHBEARER"])
    assert isinstance(error, AuthenticationError)
    assert error.code == 33
    assert str(error) == (
        "the broker does not enable PLAIN (UNSUPPORTED_SASL_MECHANISM):"
        " it enables SCRAM-SHA-512, OAUTHBEARER; change sasl.mechanism"
    )
    assert "it enables none" in str(handshake_refused(33, []))
    # The broker may know the secret of an earlier login.
    assert "it enables ***, X;" in str(handshake_refused(33, ["secret", "X"]))


def test_a_listener_without_sasl_is_reported_with_the_protocol_to_set() -> None:
    for tls, protocol in ((False, "plaintext"), (True, "ssl")):
        error = handshake_refused(34, [], tls=tls)
        expected = "expects no SASL login on this port (ILLEGAL_SASL_STATE): set security.protocol"
        assert f"{expected}={protocol}," in str(error)
    again = str(handshake_refused(34, [], again=True))
    assert "refuses to log the connection in again (ILLEGAL_SASL_STATE): it allows" in again


def test_a_broker_without_the_apis_is_an_error_that_names_them() -> None:
    for versions, what in (
        ({}, "no version of SaslHandshake"),
        ({17: (2, 3), 36: (0, 2)}, "versions 2-3 of SaslHandshake, this client speaks 0-1"),
        ({17: (0, 1), 36: (3, 4)}, "versions 3-4 of SaslAuthenticate, this client speaks 0-2"),
    ):
        with pytest.raises(UnsupportedVersionError, match=what):
            next(sasl.steps(versions, login_of("PLAIN")))


def test_a_connection_cut_in_a_login_is_a_refusal_only_before_1_0() -> None:
    login = login_of("SCRAM-SHA-256")
    old = sasl.cut(RAW, login, "closed the connection")
    assert isinstance(old, AuthenticationError)
    assert not old.retriable
    for key in (17, 36):
        new = sasl.cut(key, login, "reset the connection")
        assert isinstance(new, TransportError)
        assert new.retriable
        assert "the broker reset the connection during the SCRAM-SHA-256 login" in str(new)


def test_a_lifetime_that_is_not_positive_is_none() -> None:
    server = LoginServer({"alice": "secret"})
    for lifetime in (0, -1, -(2**63)):
        assert run(login_of("PLAIN"), server.begin("PLAIN"), lifetime_ms=lifetime) is None


@pytest.mark.slow
@given(error=st.integers(-5, 130), names=st.lists(st.text(max_size=12), max_size=5))
def test_a_handshake_answer_is_read_as_kafka_python_writes_it(error: int, names: list[str]) -> None:
    for version in (0, 1):
        body = SaslHandshakeResponse(error_code=error, mechanisms=names).encode(version=version)
        assert sasl.parse_handshake(bytes(body)) == (error, tuple(names))


@given(
    error=st.integers(-5, 130),
    message=st.none() | st.text(max_size=200),
    data=st.binary(max_size=300),
    lifetime=st.integers(-(2**63), 2**63 - 1),
)
def test_an_authenticate_answer_is_read_as_kafka_python_writes_it(
    error: int, message: str | None, data: bytes, lifetime: int
) -> None:
    for version in (0, 1, 2):
        body = SaslAuthenticateResponse(
            error_code=error, error_message=message, auth_bytes=data, session_lifetime_ms=lifetime
        ).encode(version=version)
        expected = (error, message, data, lifetime if version else 0)
        assert sasl.parse_authenticate(bytes(body), version) == expected


@given(data=st.binary(max_size=300_00))
def test_an_authenticate_request_is_read_by_kafka_python(data: bytes) -> None:
    for version in (0, 1, 2):
        body = sasl.encode_authenticate(data, version)
        assert SaslAuthenticateRequest.decode(body, version=version).auth_bytes == data


def test_every_truncation_and_every_length_beyond_the_answer_is_refused() -> None:
    shake = bytes(SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"]).encode(version=1))
    for end in range(len(shake)):
        with pytest.raises(MalformedError):
            sasl.parse_handshake(shake[:end])
    for version in (0, 1, 2):
        body = bytes(
            SaslAuthenticateResponse(
                error_code=0, error_message="no", auth_bytes=b"data", session_lifetime_ms=1
            ).encode(version=version)
        )
        for end in range(len(body)):
            with pytest.raises(MalformedError):
                sasl.parse_authenticate(body[:end], version)
        with pytest.raises(MalformedError, match="1 bytes follow"):
            sasl.parse_authenticate(body + b"\0", version)
    for bad in (
        struct.pack(">hi", 0, 2**31 - 1),
        struct.pack(">hi", 0, -1),
        struct.pack(">hih", 0, 1, -2),
    ):
        with pytest.raises(MalformedError):
            sasl.parse_handshake(bad)
    for length in (2**31 - 1, -2, -(2**31)):
        with pytest.raises(MalformedError):
            sasl.parse_authenticate(struct.pack(">hhi", 0, -1, length), 0)


def test_null_bytes_are_empty_bytes() -> None:
    assert sasl.parse_authenticate(struct.pack(">hhi", 0, -1, -1), 0).data == b""
    assert sasl.parse_authenticate(struct.pack(">hBBqB", 0, 0, 0, 0, 0), 2).data == b""


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_repr_and_no_pickle_has_a_secret(mechanism: str) -> None:
    login, token = login_of(mechanism, MARK), bearer(MARK)
    assert repr(login) == f"Login({mechanism})"
    assert MARK not in repr(token) + str(token)
    for each in (login, token):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(each)
