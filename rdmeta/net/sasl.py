"""SASL: SaslHandshake v0-v1, SaslAuthenticate v0-v2, and the logins that they carry.

    login = plain_login("alice", "secret")
    Session(login=login)  # logs in after ApiVersions

A login does no I/O. It yields the client's messages and receives the broker's.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, NoReturn, TypeAlias

from rdmeta._escaping import escaped
from rdmeta.config.secret import MASK, Secret
from rdmeta.errors import (
    AuthenticationError,
    ConfigError,
    Error,
    MalformedError,
    MissingExtraError,
    TransportError,
    UnsupportedVersionError,
    code_of,
    error_name,
)
from rdmeta.net.fields import RAW, Call, FieldReader, Steps, encode_uvarint

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
_HANDSHAKE_HIGHEST, _AUTHENTICATE_HIGHEST = 1, 2
_UNSUPPORTED_MECHANISM, _ILLEGAL_STATE, _REFUSED = map(
    code_of, ("UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE", "SASL_AUTHENTICATION_FAILED")
)
# Kafka's codes that refuse a login.
REFUSED_LOGIN = frozenset((_UNSUPPORTED_MECHANISM, _ILLEGAL_STATE, _REFUSED))

_PASSWORD_KEYS = "sasl.username and sasl.password"
_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
# Kafka stores at most 16384 iterations (ScramMechanism); 131072 take a tenth of a second.
_MOST_ITERATIONS = 1 << 17
# Characters: no broker's SCRAM message is longer.
_LONGEST_SCRAM = 4096
# RFC 7628; Kafka's OAuthBearerClientInitialResponse.
_EXTENSION_NAME = re.compile(r"[A-Za-z]+")
_EXTENSION_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_TOKEN = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
_SHOWN = 300

Exchange: TypeAlias = Generator[bytes, bytes, None]
"""Yields the client's messages, receives the broker's; raises AuthenticationError."""


class Token(NamedTuple):
    """A bearer token, which its repr does not show and which cannot be pickled.

    `expires_at` is in seconds since the epoch. `origin` names what the user can check if a broker
    refuses the token.
    """

    value: Secret
    expires_at: float
    principal: str = ""
    extensions: tuple[tuple[str, str], ...] = ()
    origin: str = "the token"


class Login:
    """One way to log in: a mechanism with its secret.

    `keys` says what the user can change. Connections and threads may share a login. Its repr has no
    secret, and it cannot be pickled.
    """

    __slots__ = ("_begin", "_secrets", "keys", "mechanism")

    def __init__(
        self,
        mechanism: str,
        keys: str,
        begin: Callable[[], Exchange],
        secrets: tuple[str, ...] = (),
    ) -> None:
        """Keeps what it is given; an error never shows one of `secrets`."""
        self.mechanism = mechanism
        self.keys = keys
        self._begin = begin
        self._secrets = secrets

    def exchange(self) -> Exchange:
        """Returns the exchange of one login."""
        return self._begin()

    def refusal(self, code: int, message: str | None, challenge: bytes = b"") -> Error:
        """Returns the error for a broker that refuses the login with an error code.

        `challenge` is the broker's last message of the mechanism; OAUTHBEARER's says the cause.
        """
        said = self.words(message or "")
        if self.mechanism == "OAUTHBEARER":
            more = self.words(challenge.decode("utf-8", "replace"))
            said += f" ({more})" if said and more not in said else more if not said else ""
        return AuthenticationError(
            f"the broker refuses the {self.mechanism} login ({error_name(code)})"
            f"{': ' if said else ''}{said}; check {self.keys}",
            code,
        )

    def words(self, text: str) -> str:
        """Returns the broker's text, or its error object in JSON, in words without a secret."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        if self.mechanism == "OAUTHBEARER":
            text = _json_words(text)
        return shown(text)

    def __repr__(self) -> str:
        return f"Login({self.mechanism})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a login cannot be pickled: it has a secret")


class Authenticated(NamedTuple):
    """An answer to SaslAuthenticate; `lifetime_ms` is 0 if the session does not end."""

    error: int
    message: str | None
    data: bytes
    lifetime_ms: int


def plain_login(username: str, password: str) -> Login:
    """Returns a login by SASL PLAIN (RFC 4616).

    Raises ConfigError if a text is empty, has a NUL character, or is not Unicode.
    """
    for key, text in (("sasl.username", username), ("sasl.password", password)):
        if not text:
            raise ConfigError(f"{key} is empty, and PLAIN needs it")
        if "\0" in text:
            raise ConfigError(f"{key} has a NUL character, which PLAIN cannot send")
    message = b"\0" + _utf8(username, "sasl.username") + b"\0" + _utf8(password, "sasl.password")

    def exchange() -> Exchange:
        yield message

    return Login("PLAIN", _PASSWORD_KEYS, exchange, (password,))


def scram_login(mechanism: str, username: str, password: str) -> Login:
    """Returns a login by SCRAM-SHA-256 or SCRAM-SHA-512 (RFC 5802, RFC 7677).

    The broker must prove that it knows the password, too. Like Kafka, it takes the UTF-8 of the
    user name and of the password as it is, without SASLprep. Raises ConfigError for another
    mechanism or an empty or illegal text. Raises MissingExtraError without scramp.
    """
    if mechanism not in _SCRAM:
        raise ConfigError(f"sasl.mechanism {mechanism} is no SCRAM mechanism: {', '.join(_SCRAM)}")
    if not password:
        raise ConfigError(f"sasl.password is empty, and {mechanism} needs it")
    _utf8(username, "sasl.username")
    secret = _utf8(password, "sasl.password")
    _scram_client(mechanism, username, secret)  # checks the user name

    def exchange() -> Exchange:
        return _scram_exchange(mechanism, username, secret)

    return Login(mechanism, _PASSWORD_KEYS, exchange, (password,))


def oauth_login(token: Token) -> Login:
    """Returns a login by OAUTHBEARER (RFC 7628, KIP-255) with the token and its extensions.

    Raises AuthenticationError, which names the token's origin, if the token or an extension has
    characters that it must not have.
    """
    value = token.value.reveal()
    problem = _token_problem(value, token.extensions)
    if problem:
        raise AuthenticationError(f"{problem}: check {token.origin}")
    pairs = [("auth", f"Bearer {value}"), *token.extensions]
    text = "n,,\1" + "".join(f"{name}={value}\1" for name, value in pairs) + "\1"

    def exchange() -> Exchange:
        challenge = yield text.encode()
        if challenge:
            # The broker's error object: it says no more until the client has acknowledged it.
            yield b"\1"
            raise login.refusal(_REFUSED, None, challenge)

    login = Login("OAUTHBEARER", token.origin, exchange, (value,))
    return login


def steps(
    versions: dict[int, tuple[int, int]], login: Login, *, tls: bool = False, again: bool = False
) -> Steps:
    """Yields the requests of one login to a broker that speaks `versions`.

    `tls` is whether the connection is encrypted, `again` whether it is logged in already. A broker
    without SaslAuthenticate (before 1.0) takes the bare messages. Raises AuthenticationError,
    UnsupportedVersionError and MalformedError.
    """
    is_raw = SASL_AUTHENTICATE not in versions
    handshake = _common(versions, SASL_HANDSHAKE, 0 if is_raw else _HANDSHAKE_HIGHEST)
    version = 0 if is_raw else _common(versions, SASL_AUTHENTICATE, _AUTHENTICATE_HIGHEST)
    body = yield Call(SASL_HANDSHAKE, handshake, encode_handshake(login.mechanism))
    error, mechanisms = parse_handshake(body)
    if error:
        raise _no_handshake(error, mechanisms, login, tls, again)
    exchange, challenge, lifetime_ms = login.exchange(), b"", 0
    message = next(exchange)
    while True:
        if is_raw:
            challenge = yield Call(RAW, 0, message)
        else:
            body = yield Call(SASL_AUTHENTICATE, version, encode_authenticate(message, version))
            answer = parse_authenticate(body, version)
            if answer.error:
                raise login.refusal(answer.error, answer.message, challenge)
            challenge, lifetime_ms = answer.data, max(lifetime_ms, answer.lifetime_ms)
        try:
            message = exchange.send(challenge)
        except StopIteration:
            return lifetime_ms / 1000 if lifetime_ms > 0 else None


def cut(api_key: int, login: Login, how: str) -> Error:
    """Returns the error for a connection that ended in a login; `how` says how it ended.

    `api_key` is that of the request without an answer. A broker before 1.0 refuses a login so.
    """
    if api_key == RAW:
        return AuthenticationError(
            f"the broker {how} during the {login.mechanism} login, as brokers before 1.0 do to"
            f" refuse it; check {login.keys}"
        )
    return TransportError(
        f"the broker {how} during the {login.mechanism} login without an answer; if it does so"
        f" again, check sasl.mechanism, {login.keys}"
    )


def encode_handshake(mechanism: str) -> bytes:
    """Returns the body of a SaslHandshake request, v0 or v1."""
    name = mechanism.encode()
    return struct.pack(">h", len(name)) + name


def parse_handshake(body: bytes) -> tuple[int, tuple[str, ...]]:
    """Returns the error code and the broker's mechanisms; raises MalformedError.

    v0 and v1 are the same.
    """
    reader = FieldReader(body, flexible=False)
    error, count = reader.int16(), reader.int32()
    if not 0 <= count <= reader.left // 2:  # each has at least its length
        raise MalformedError(f"the answer announces {count} mechanisms in {reader.left} bytes")
    mechanisms = tuple(reader.optional_string() or "" for _ in range(count))
    reader.end()
    return error, mechanisms


def encode_authenticate(data: bytes, version: int) -> bytes:
    """Returns the body of a SaslAuthenticate request; v2 is flexible (KIP-482)."""
    if version < 2:
        return struct.pack(">i", len(data)) + data
    return encode_uvarint(len(data) + 1) + data + b"\0"


def parse_authenticate(body: bytes, version: int) -> Authenticated:
    """Returns a parsed response's body; raises MalformedError."""
    reader = FieldReader(body, flexible=version >= 2)
    error, message = reader.int16(), reader.optional_string()
    length = reader.uvarint() - 1 if version >= 2 else reader.int32()
    if length < -1:
        raise MalformedError(f"a field announces {length} bytes")
    data = reader.take(max(0, length))
    lifetime_ms = reader.int64() if version >= 1 else 0
    reader.skip_tags()
    reader.end()
    return Authenticated(error, message, data, lifetime_ms)


def shown(text: str) -> str:
    """Returns a text of another program on one line: printable, and not long."""
    more = "..." if len(text) > _SHOWN else ""
    return escaped(" ".join(text[:_SHOWN].split())).rstrip(".;") + more


def _common(versions: dict[int, tuple[int, int]], api_key: int, highest: int) -> int:
    """Returns the highest version up to `highest` that the broker speaks."""
    lowest, theirs = versions.get(api_key, (0, -1))
    if min(theirs, highest) < lowest:
        name = "SaslHandshake" if api_key == SASL_HANDSHAKE else "SaslAuthenticate"
        spoken = f"versions {lowest}-{theirs}" if api_key in versions else "no version"
        raise UnsupportedVersionError(
            f"the broker speaks {spoken} of {name}, this client speaks 0-{highest}"
        )
    return min(theirs, highest)


def _no_handshake(
    code: int, mechanisms: tuple[str, ...], login: Login, tls: bool, again: bool
) -> Error:
    """Returns the error for a broker that refuses SaslHandshake."""
    if code == _UNSUPPORTED_MECHANISM:
        enabled = login.words(", ".join(mechanisms)) or "none"
        text = (
            f"the broker does not enable {login.mechanism} ({error_name(code)}):"
            f" it enables {enabled}; change sasl.mechanism"
        )
    elif code == _ILLEGAL_STATE and again:
        text = (
            f"the broker refuses to log the connection in again ({error_name(code)}):"
            " it allows that once a second, and only if its sessions end"
            " (connections.max.reauth.ms)"
        )
    elif code == _ILLEGAL_STATE:
        text = (
            f"the broker expects no SASL login on this port ({error_name(code)}):"
            f" set security.protocol={'ssl' if tls else 'plaintext'},"
            " or use the port of its SASL listener"
        )
    else:
        return login.refusal(code, None)
    return AuthenticationError(text, code)


def _scram_exchange(mechanism: str, username: str, secret: bytes) -> Exchange:
    client = _scram_client(mechanism, username, secret)
    challenge = yield client.get_client_first().encode()
    problem = _scram_problem(client.set_server_first, challenge)
    if problem:
        raise AuthenticationError(
            f"the broker's first message of {mechanism} is refused: {problem};"
            f" check {_PASSWORD_KEYS}"
        )
    iterations = int(client.iterations)
    if iterations > _MOST_ITERATIONS:
        raise AuthenticationError(
            f"the broker asks for {iterations} iterations of {mechanism};"
            f" at most {_MOST_ITERATIONS} are accepted: change the user's iterations"
        )
    challenge = yield client.get_client_final().encode()
    problem = _scram_problem(client.set_server_final, challenge)
    if problem:
        raise AuthenticationError(
            f"the broker did not prove that it knows the password of {mechanism}: {problem};"
            f" check {_PASSWORD_KEYS}, and that the port is your broker's"
        )


def _scram_client(mechanism: str, username: str, secret: bytes) -> Any:
    """Returns scramp's client; raises ConfigError if the user name is illegal."""
    try:
        from scramp import ScramClient, ScramException
    except ImportError:
        raise MissingExtraError.of(f"SASL mechanism {mechanism}", "sasl") from None
    try:
        client = ScramClient([mechanism], username, "")
    except ScramException as error:
        raise ConfigError(f"sasl.username cannot be sent by {mechanism}: {error}") from None
    # scramp would prepare both by SASLprep, and neither Kafka's clients nor its brokers do that.
    client.password, client.username.username = secret, username
    return client


def _scram_problem(take: Callable[[str], None], message: bytes) -> str:
    """Gives a broker's message to scramp; returns what is wrong with it, "" if nothing is."""
    from scramp import ScramException

    if len(message) > _LONGEST_SCRAM:
        return f"it has {len(message)} bytes, at most {_LONGEST_SCRAM} are accepted"
    if message.startswith(b"e="):
        return f"the broker reports {shown(message[2:].decode('utf-8', 'replace'))!r}"
    try:
        take(message.decode())
    except ScramException as error:
        return shown(str(error.args[0]))
    except UnicodeDecodeError:
        return "it is not UTF-8"
    return ""


def _token_problem(value: str, extensions: tuple[tuple[str, str], ...]) -> str:
    """Returns what a broker would refuse, "" if nothing; the token itself is not shown."""
    if not _TOKEN.fullmatch(value):
        return "the token is empty, or has characters that no bearer token has"
    for name, content in extensions:
        if name == "auth" or not _EXTENSION_NAME.fullmatch(name):
            return f"the SASL extension {shown(name)!r} must have a name of letters, not 'auth'"
        if not _EXTENSION_VALUE.fullmatch(content):
            return f"the value of the SASL extension {name} must have printable ASCII characters"
    return ""


def _json_words(text: str) -> str:
    """Returns RFC 7628's error object in words, a text of another kind as it is."""
    import json

    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(said, dict):
        return text
    status, *more = (said.get(each) for each in ("status", "scope", "openid-configuration"))
    if not isinstance(status, str):
        return text
    names = ("scope", "openid-configuration")
    found = [f"{name} {each}" for name, each in zip(names, more, strict=True) if each]
    return f"{status}, {', '.join(found)}" if found else status


def _utf8(text: str, key: str) -> bytes:
    """Returns the text in UTF-8; raises ConfigError, whose cause has no secret."""
    data = text.encode("utf-8", "surrogatepass")
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise ConfigError(f"{key} is no legal Unicode text: it has bytes that are not UTF-8")
    return data
