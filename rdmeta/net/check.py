"""check(): tries each bootstrap server and each advertised broker of a configuration, step by step.

for each in rdmeta.check({"bootstrap.servers": "kafka-1:9092"}):
    print(each.server, each.error or f"{each.seconds['metadata']:.3f} s")
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, cast

from rdmeta import config
from rdmeta._core import (
    METADATA_MAX_VERSION,
    METADATA_MIN_VERSION,
    decode_metadata_response,
    encode_metadata_request,
)
from rdmeta.config.address import Address, parse_bootstrap
from rdmeta.errors import (
    AuthenticationError,
    ConfigError,
    Error,
    MissingExtraError,
    WrongClusterError,
    from_code,
)
from rdmeta.net import blocking_session
from rdmeta.net.blocking_session import LOGIN_STAGGER, STAGGER, Connection, Deadline
from rdmeta.net.fetch import is_in_vain, without_frames
from rdmeta.net.handshake import METADATA
from rdmeta.net.resolve import FAMILIES
from rdmeta.net.security import Prepared, for_config

STEPS = (*blocking_session.STEPS, "metadata")
"""The steps of a check in their order; tls and sasl only where the configuration has them."""

_AT_ONCE = 8


@dataclass(frozen=True)
class CheckedServer:
    """What check() found out about a server.

    `seconds` has how long each step took that succeeded: name (resolution), tcp, tls, versions
    (ApiVersions), sasl, metadata (one request for the brokers: a round trip). `failed` is the first
    step that did not succeed, None for a server without a fault, and `error` is its error.

    `broker` is the id of the broker that advertises this address, None if none does.
    `is_bootstrap` is whether bootstrap.servers has it. `tls` is the version of TLS. `expires` is
    when the first certificate of the server's chain expires. `versions` are the lowest and the
    highest version that it speaks of each API, by key. `cluster_id` is None before Kafka 0.10.1.
    """

    server: str
    broker: int | None = None
    is_bootstrap: bool = True
    seconds: dict[str, float] = field(default_factory=dict)
    failed: str | None = None
    error: Error | None = None
    tls: str | None = None
    expires: datetime | None = None
    versions: dict[int, tuple[int, int]] = field(default_factory=dict)
    cluster_id: str | None = None


def check(conf: Mapping[str, object], timeout: float = 10.0) -> tuple[CheckedServer, ...]:
    """Tries each bootstrap server, then each broker that one of them lists; returns one for each.

        failed = [each for each in rdmeta.check(conf) if each.failed]

    The bootstrap servers come first, in their order, then the other brokers by id. Each has a
    connection of its own, with TLS and a login as `conf` says, and `timeout` seconds for all but
    name resolution. A bootstrap server that takes more than 250 ms does not hold up the next one.
    A server of tokens has as long. A server that fails is a result and no
    exception. If two bootstrap servers refuse the login alike, the others are not tried, as more
    attempts could lock the account. A bootstrap server of another cluster than the first one's
    fails at metadata, with a WrongClusterError; the brokers that it lists are not tried.

    Raises ConfigError for a configuration that is wrong everywhere, also for a file that cannot be
    read, MissingExtraError, and TypeError or ValueError for `timeout`.
    """
    Deadline(timeout)  # checks it
    checker = _Checker(config.parse(conf), timeout)
    first = _of_one_cluster(checker.in_turn(checker.servers))
    brokers = {address: id for each in first for id, address in each.brokers}
    tried = set(checker.servers)
    others = sorted((id, address) for address, id in brokers.items() if address not in tried)
    rest = checker.side_by_side([address for _, address in others])
    return tuple(
        replace(each.server, broker=brokers.get(each.address), is_bootstrap=each.address in tried)
        for each in (*first, *rest)
    )


class _Tried(NamedTuple):
    """A server that was tried, and the ids and addresses of the brokers that it lists."""

    address: Address
    server: CheckedServer
    brokers: tuple[tuple[int, Address], ...] = ()


def _of_one_cluster(tried: list[_Tried]) -> list[_Tried]:
    """Returns the servers; those of another cluster than the first one's have failed."""
    known: CheckedServer | None = None
    found = []
    for each in tried:
        server = each.server
        if server.cluster_id is not None:
            known = known or server
            if server.cluster_id != known.cluster_id:
                error = WrongClusterError(
                    f"{server.server} is of cluster {server.cluster_id!r}, and {known.server} of"
                    f" {known.cluster_id!r}: bootstrap.servers must name servers of one cluster",
                    -125,
                )
                seconds = {k: v for k, v in server.seconds.items() if k != "metadata"}
                wrong = replace(server, seconds=seconds, failed="metadata", error=error)
                each = _Tried(each.address, wrong)
        found.append(each)
    return found


class _Checker:
    """Tries servers; any thread may use it."""

    def __init__(self, settings: config.Config, timeout: float) -> None:
        self.servers = parse_bootstrap(settings.bootstrap_servers, settings.protocol)
        self._settings = settings
        self._timeout = timeout
        self._security = for_config(settings)
        self._turn = threading.Lock()
        self._trials: dict[Address, _Trial] = {}

    def in_turn(self, addresses: Sequence[Address]) -> list[_Tried]:
        """Tries servers in their order until two refuse the login alike.

        The next one is tried when the last one has an outcome, or after 250 ms (RFC 8305), but in a
        login after 1 s.
        """
        outcomes: dict[Address, _Tried | Exception] = {}
        errors: list[Error] = []
        threads: list[threading.Thread] = []

        def work(address: Address) -> None:
            found = outcomes[address] = self._outcome(address)
            if isinstance(found, _Tried) and found.server.error is not None:
                errors.append(found.server.error)

        for address in addresses:
            if any(isinstance(each, Exception) for each in outcomes.copy().values()):
                break
            if errors and is_in_vain(errors):
                skipped = CheckedServer(str(address), failed="sasl", error=_not_tried())
                outcomes[address] = _Tried(address, skipped)
                continue
            threads.append(_thread(partial(work, address)))
            threads[-1].join(STAGGER)
            trial = self._trials.get(address)
            if trial is not None and trial.is_logging_in:
                threads[-1].join(LOGIN_STAGGER - STAGGER)
        return _collect(outcomes, addresses, threads)

    def side_by_side(self, addresses: Sequence[Address]) -> list[_Tried]:
        """Tries several servers at once, so that those that are silent cost their time once."""
        outcomes: dict[Address, _Tried | Exception] = {}
        remaining = deque(addresses)

        def work() -> None:
            with suppress(IndexError):
                while True:
                    address = remaining.popleft()
                    outcomes[address] = self._outcome(address)

        return _collect(outcomes, addresses, [_thread(work) for _ in addresses[:_AT_ONCE]])

    def _outcome(self, address: Address) -> _Tried | Exception:
        try:
            return self._try(address)
        except Exception as error:
            return error

    def _try(self, address: Address) -> _Tried:
        """Tries one server; raises what is wrong with the configuration on every server."""
        trial = self._trials[address] = _Trial(self._settings, address)
        try:
            brokers = trial.run(self._prepared(), Deadline(self._timeout))
        except (ConfigError, MissingExtraError):
            raise
        except Error as error:
            return _Tried(address, trial.outcome(without_frames(error)))
        return _Tried(address, trial.outcome(None), brokers)

    def _prepared(self) -> Prepared | Error:
        """Returns what the next connection needs, or why there is no token for its login."""
        if self._security is None:
            return Prepared()
        with self._turn:
            try:
                return self._security.prepare(self._timeout)
            except (ConfigError, MissingExtraError):
                raise
            except Error as error:
                return error


def _thread(work: Callable[[], object]) -> threading.Thread:
    """Starts a thread that does not hold up the exit of the process."""
    thread = threading.Thread(target=work, name="rdmeta-check", daemon=True)
    thread.start()
    return thread


def _collect(
    outcomes: Mapping[Address, _Tried | Exception],
    addresses: Sequence[Address],
    threads: Sequence[threading.Thread],
) -> list[_Tried]:
    """Waits for the threads, and returns the outcome of each address, or raises one of them."""
    for thread in threads:
        thread.join()
    for outcome in outcomes.values():
        if isinstance(outcome, Exception):
            raise outcome
    return [cast("_Tried", outcomes[address]) for address in addresses]


def _not_tried() -> Error:
    return AuthenticationError(
        "not tried: two servers refused the login alike, and more attempts could lock the account"
    )


class _Trial:
    """One connection to one server, and the time that each of its steps took."""

    def __init__(self, settings: config.Config, address: Address) -> None:
        self._settings = settings
        self._address = address
        self._connection: Connection | None = None
        self._seconds: dict[str, float] = {}
        self._at = time.monotonic()
        self._has_token = True
        self._cluster_id: str | None = None

    def run(
        self, prepared: Prepared | Error, deadline: Deadline
    ) -> tuple[tuple[int, Address], ...]:
        """Takes each step; returns the brokers that the server lists. Raises the step's error."""
        if isinstance(prepared, Error):
            self._has_token = False
            raise prepared
        self._at = time.monotonic()
        settings = self._settings
        with Connection(
            self._address,
            deadline,
            settings.client_id,
            settings.max_frame,
            FAMILIES[settings.family],
            prepared,
            self._on_step,
        ) as connection:
            found = _metadata(connection, deadline)
            self._on_step("metadata", connection)
        self._cluster_id = found["cluster_id"]
        return tuple((each["id"], Address(each["host"], each["port"])) for each in found["brokers"])

    @property
    def is_logging_in(self) -> bool:
        """Whether the server has a login to answer."""
        return self._settings.sasl is not None and list(self._seconds)[-1:] == ["versions"]

    def _on_step(self, step: str, connection: Connection) -> None:
        now = time.monotonic()
        self._seconds[step], self._at = now - self._at, now
        self._connection = connection

    def outcome(self, error: Error | None) -> CheckedServer:
        """Returns what is known now; `error` is that of the first step that did not succeed."""
        connection = self._connection
        tunnel = connection.tunnel if connection is not None else None
        return CheckedServer(
            str(self._address),
            seconds=self._seconds,
            failed=None if error is None else self._next_step(),
            error=error,
            tls=tunnel.version if tunnel is not None else None,
            expires=tunnel.expires if tunnel is not None else None,
            versions=dict(connection.session.versions) if connection is not None else {},
            cluster_id=self._cluster_id,
        )

    def _next_step(self) -> str:
        if not self._has_token:
            return "sasl"
        absent = set()
        if self._settings.tls is None:
            absent.add("tls")
        if self._settings.sasl is None:
            absent.add("sasl")
        return next(each for each in STEPS if each not in absent and each not in self._seconds)


def _metadata(connection: Connection, deadline: Deadline) -> dict[str, Any]:
    """Asks for the brokers alone; raises the error that the broker answers with."""
    session = connection.session
    version = session.version_for(METADATA, max(1, METADATA_MIN_VERSION), METADATA_MAX_VERSION)
    body = encode_metadata_request(version, ())
    answer = connection.request(METADATA, version, body, deadline)
    trailing = session.is_librdkafka_mock
    found = decode_metadata_response(answer, version, tolerate_trailing=trailing)
    if found["error"]:
        raise from_code(found["error"])
    return found
