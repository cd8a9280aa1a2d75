"""The security of brokers of canned answers: TLS, and logins by SASL.

    logins = LoginServer({"alice": "secret"})
    guard = Guard(context=Authority().server("127.0.0.1"), logins=logins)
    with Brokers(3, guard=guard) as brokers:
        logins.users["alice"] = "another"  # from the next login on
        guard.lifetime = 5.0               # of the next sessions, in seconds
        brokers[2].guard = Guard(...)      # the other brokers keep theirs

The rules are those of Kafka's SaslServerAuthenticator.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from login_server import MECHANISMS, LoginServer, Step
from peer import Asked

SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
# Error codes.
UNSUPPORTED_MECHANISM, ILLEGAL_STATE, FAILED = 33, 34, 58
# Bytes: sasl.server.max.receive.size.
LONGEST_BEFORE_LOGIN = 1 << 19
_API_VERSIONS = 18
# Seconds: a client that logs in again earlier is refused.
_SOONEST = 1.0


class LoggedIn(NamedTuple):
    """The end of a login: when (the guard's clock), on which connection, and whether it was good.

    `again` says that it was a later login on the same connection.
    """

    at: float
    connection: int
    mechanism: str
    is_good: bool
    again: bool


class Reply(NamedTuple):
    """The body of an answer; the broker closes the connection after it if `is_last`."""

    body: bytes
    is_last: bool = False


@dataclass
class Guard:
    """The security of one or several brokers. Tests change it at any time."""

    # None: no TLS.
    context: ssl.SSLContext | None = None
    # None: no SASL.
    logins: LoginServer | None = None
    mechanisms: tuple[str, ...] = MECHANISMS
    # Seconds before a refusal (connection.failed.authentication.delay.ms).
    delay: float = 0.1
    # Seconds until a session ends without another login (connections.max.reauth.ms); None: never.
    lifetime: float | None = None
    # Times the sessions.
    clock: Callable[[], float] = time.monotonic
    # Acts of clients that no client may do.
    mistakes: list[str] = field(default_factory=list)


class Entry:
    """The logins of one connection: it answers SaslHandshake and SaslAuthenticate."""

    def __init__(
        self, guard: Guard, logins: LoginServer, connection: int, seen: list[LoggedIn]
    ) -> None:
        self._guard = guard
        self._logins = logins
        self._connection = connection
        self._seen = seen
        self._mechanism = ""
        self._exchange: Callable[[bytes], Step] | None = None
        # Whether the next frames are the bare messages of the mechanism, after SaslHandshake v0.
        self.is_raw = False
        self.is_open = False
        self._logged_in_at = 0.0
        self._ends_at: float | None = None

    def admits(self, asked: Asked) -> bool:
        """Returns whether a request is read; otherwise the broker closes the connection."""
        if asked.api_key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            return True
        if not self.is_open:
            if asked.api_key != _API_VERSIONS:
                self._guard.mistakes.append(f"request {asked.api_key} before the login")
            return asked.api_key == _API_VERSIONS
        if self._exchange is not None:
            self._guard.mistakes.append(f"request {asked.api_key} during another login")
            return False
        return self._ends_at is None or self._guard.clock() < self._ends_at

    async def answer(self, asked: Asked) -> Reply:
        """Answers a request of a login."""
        if asked.api_key == SASL_HANDSHAKE:
            return self._handshake(asked)
        step = await self._take(bytes(asked.body.auth_bytes))
        refusal, lifetime = step.refusal, self._lifetime()
        response = SaslAuthenticateResponse(
            error_code=0 if refusal is None else FAILED,
            error_message=refusal,
            auth_bytes=step.data,
            session_lifetime_ms=lifetime if self._exchange is None else 0,
        )
        return Reply(bytes(response.encode(version=asked.version)), refusal is not None)

    async def answer_raw(self, message: bytes) -> bytes | None:
        """Answers a bare message of the mechanism; None: the broker closes the connection."""
        step = await self._take(message)
        self.is_raw = not self.is_open
        return None if step.refusal is not None else step.data

    def _handshake(self, asked: Asked) -> Reply:
        mechanism, code = asked.body.mechanism, 0
        if mechanism not in self._guard.mechanisms:
            code = UNSUPPORTED_MECHANISM
        elif self.is_open and mechanism != self._mechanism:
            self._guard.mistakes.append("another login by another mechanism")
            code = ILLEGAL_STATE
        else:
            self._mechanism = mechanism
            self._exchange = self._logins.begin(mechanism)
            self.is_raw = asked.version == 0
        response = SaslHandshakeResponse(error_code=code, mechanisms=list(self._guard.mechanisms))
        return Reply(bytes(response.encode(version=asked.version)), code != 0)

    async def _take(self, message: bytes) -> Step:
        """Gives a message to the login; a refusal comes late."""
        if self._exchange is None:
            self._guard.mistakes.append("a message of a login without SaslHandshake")
            return Step("no login was begun")
        again, now = self.is_open, self._guard.clock()
        try:
            step = self._exchange(message)
        except (UnicodeDecodeError, ValueError) as error:
            step = Step(f"the message is wrong: {type(error).__name__}")
        if again and step.refusal is None and now - self._logged_in_at < _SOONEST:
            step = Step("Cannot re-authenticate sooner than one second")
        if step.refusal is None and not self._is_over(message, step):
            return step
        self._exchange = None
        self.is_open = step.refusal is None
        self._seen.append(
            LoggedIn(now, self._connection, self._mechanism, step.refusal is None, again)
        )
        if step.refusal is not None:
            await asyncio.sleep(self._guard.delay)
            during = "during re-authentication" if again else "during authentication"
            return step._replace(refusal=step.refusal.replace("during authentication", during))
        self._logged_in_at = now
        lifetime = self._guard.lifetime
        self._ends_at = None if lifetime is None else now + lifetime
        return step

    def _is_over(self, message: bytes, step: Step) -> bool:
        """Returns whether the broker has no more to ask."""
        if self._mechanism.startswith("SCRAM"):
            return step.data.startswith(b"v=")
        return not step.data

    def _lifetime(self) -> int:
        return int((self._guard.lifetime or 0) * 1000)


def entry(guard: Guard | None, connection: int, seen: list[LoggedIn]) -> Entry | None:
    """Returns the login of a new connection, None if the broker asks for none."""
    if guard is None or guard.logins is None:
        return None
    return Entry(guard, guard.logins, connection, seen)


def illegal_state(asked: Asked) -> Reply:
    """Returns the answer of a listener without SASL to a request of a login."""
    if asked.api_key == SASL_HANDSHAKE:
        response = SaslHandshakeResponse(error_code=ILLEGAL_STATE, mechanisms=[])
        return Reply(bytes(response.encode(version=asked.version)))
    refusal = SaslAuthenticateResponse(
        error_code=ILLEGAL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
        auth_bytes=b"",
        session_lifetime_ms=0,
    )
    return Reply(bytes(refusal.encode(version=asked.version)))
