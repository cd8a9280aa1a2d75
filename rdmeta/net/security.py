"""Prepares a connection before its first byte: the TLS context and the login.

Files may be on a slow disk, and a callable or a token's server may hang. So an event loop has them
prepared in a daemon thread, for which neither the loop nor the interpreter's exit waits.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rdmeta.errors import (
    AuthenticationError,
    ConfigError,
    Error,
    RequestTimedOutError,
    TransportError,
)
from rdmeta.net.resolve import hand_out

if TYPE_CHECKING:
    import ssl
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Iterable

    from rdmeta.config import Config
    from rdmeta.config.security_settings import SaslSettings, TlsSettings
    from rdmeta.net.oauth import TokenSource
    from rdmeta.net.resolve import Endpoint
    from rdmeta.net.sasl import Login
    from rdmeta.net.tls import Tls, Tunnel

_PreparedWaiter: TypeAlias = "tuple[AbstractEventLoop, Future[Prepared]]"


class _UnpreparedError(RequestTimedOutError):
    """A file, a callable or the server of tokens takes too long, and no broker is to blame."""


class Prepared(NamedTuple):
    """The context of TLS with its settings, and the login; None where there is none."""

    context: ssl.SSLContext | None = None
    settings: TlsSettings | None = None
    login: Login | None = None

    def prepare(self, timeout: float = math.inf) -> Prepared:
        """Returns itself: a connection takes what is prepared as it takes a Security."""
        return self

    def tunnel(self, host: str) -> Tunnel | None:
        """Returns the TLS of a new connection to `host`, None without TLS; raises TlsError."""
        if self.context is None or self.settings is None:
            return None
        from rdmeta.net.tls import Tunnel  # only secured connections pay for importing ssl

        return Tunnel(self.context, self.settings, host)


class Security:
    """Prepares the connections of one client; any thread may use it.

    Each connection asks anew, so a file that was replaced and a secret that was changed count from
    the next connection on.
    """

    def __init__(self, config: Config) -> None:
        """Reads no file and asks no callable yet; raises ConfigError."""
        self._sasl = config.sasl
        self._tokens: TokenSource | None = None
        if config.sasl is not None and config.sasl.oauth is not None:
            from rdmeta.net.oauth import TokenSource  # only OAUTHBEARER pays for its import

            backoff = config.reconnect_backoff, config.reconnect_backoff_max
            self._tokens = TokenSource(config.sasl.oauth, backoff=backoff)
        self._tls: Tls | None = None
        if config.tls is not None:
            from rdmeta.net.tls import Tls

            self._tls = Tls(config.tls)
        # The addresses that refused a login, the last one last.
        self._refused: dict[Endpoint, None] = {}
        self._lock = threading.Lock()
        self._waiters: list[_PreparedWaiter] = []
        self._is_running = False

    def prepare(self, timeout: float = math.inf) -> Prepared:
        """Returns what a connection needs now; one thread at a time may call it.

        It reads files, and asks callables and the server of tokens, so it may block. The server of
        tokens has `timeout` seconds at most; files and callables have no time-out. Raises
        ConfigError and AuthenticationError, which name the option. Raises MissingExtraError if the
        mechanism needs a package that is missing.
        """
        try:
            login = self._login(timeout)
            if self._tls is None:
                return Prepared(login=login)
            return Prepared(self._tls.context(), self._tls.settings, login)
        except Error as error:
            # The frames of a traceback, and those of a context, would keep the secrets in them.
            if error.__suppress_context__:
                error.__context__ = None
            raise error.with_traceback(None)  # noqa: B904 - it is the same error

    def begin(self, loop: AbstractEventLoop) -> Future[Prepared]:
        """Returns a future of what `prepare()` returns in a thread of its own.

        Calls at one time share one thread and its result. The future's exception is an Error.
        """
        future: Future[Prepared] = loop.create_future()
        with self._lock:
            # A callable may hang for days, while attempts time out.
            self._waiters = [each for each in self._waiters if not each[1].done()]
            self._waiters.append((loop, future))
            is_first, self._is_running = not self._is_running, True
        if is_first:
            thread = threading.Thread(target=self._run, name="rdmeta-security", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the interpreter ends, or it has too many threads
                self._finish(TransportError(f"cannot prepare a connection: {error}"))
        return future

    def timed_out(self) -> Error:
        """Returns the error of a preparation that took too long."""
        oauth = self._sasl.oauth if self._sasl is not None else None
        if oauth is None:
            what = "the files and callables of the configuration took too long"
        elif oauth.callback is not None:
            what = "oauth_cb did not return in time"
        else:
            what = "no token came in time: check sasl.oauthbearer.token.endpoint.url"
        return _UnpreparedError(what)

    def refused(self, endpoint: Endpoint) -> None:
        """Notes that a broker refused a login: the next one has a new token."""
        self._refused.pop(endpoint, None)
        self._refused[endpoint] = None
        if self._tokens is not None:
            self._tokens.forget()

    def in_order(self, endpoints: Iterable[Endpoint]) -> list[Endpoint]:
        """Returns the addresses of a host in their order, but last those that refused a login."""
        since = {each: i for i, each in enumerate(self._refused, 1)}
        return sorted(endpoints, key=lambda each: since.get(each, 0))

    def _login(self, timeout: float) -> Login | None:
        """Returns the login with the secrets of now."""
        if self._sasl is None:
            return None
        from rdmeta.net import sasl

        if self._tokens is not None:
            token = self._tokens.token(timeout)
            try:
                return sasl.oauth_login(token)
            except AuthenticationError:
                self._tokens.forget()  # no broker can take it
                raise
        username, password = _texts(self._sasl)
        if self._sasl.mechanism == "PLAIN":
            return sasl.plain_login(username, password)
        return sasl.scram_login(self._sasl.mechanism, username, password)

    def _run(self) -> None:
        try:
            self._finish(self.prepare())
        except Error as error:
            error.__context__ = None  # its frames have secrets, which some tools report
            self._finish(error.with_traceback(None))
        except Exception as error:  # its text may have a secret
            name = type(error).__name__
            self._finish(Error(f"a fault of rdmeta: cannot prepare a connection: {name}"))
        except BaseException as error:  # without an outcome no later call would get one
            name = type(error).__name__
            said = f"a callable of the configuration raised {name}"
            self._finish(ConfigError(said, retriable=True))

    def _finish(self, outcome: Prepared | Error) -> None:
        """Hands the outcome to each waiter, in its own loop."""
        with self._lock:
            waiters, self._waiters, self._is_running = self._waiters, [], False
        hand_out(waiters, outcome)


def for_config(config: Config) -> Security | None:
    """Returns the security of a client with that configuration, None for PLAINTEXT."""
    return Security(config) if config.is_secured else None


def _texts(settings: SaslSettings) -> tuple[str, str]:
    """Returns the user name and the password; asks their callables."""
    username, password = settings.username, settings.password
    name = username if isinstance(username, str) else username.reveal()
    return name, "" if password is None else password.reveal()
