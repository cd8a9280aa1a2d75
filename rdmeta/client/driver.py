"""One client's I/O in an event loop: it does what the policy decides, and reports what happens.

The policy is asked in *turns*. A turn first hands in what has arrived, so that a loop that was
blocked does not make a broker look silent. Then it polls the policy, does its actions, sweeps the
cache if that is due, and sets one timer for the next turn. Without inputs, changes and due times
there are no turns.

Changes of a cache wake the loop through a pipe, to which a watch in C writes. All clients of a loop
share its pipe: a thousand need two descriptors and no thread, and a wake-up compares one version
per client. The counters of each node's traffic and the log lines are written here as well.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import random
import time
import traceback
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from rdmeta._core import (
    METADATA_MAX_VERSION,
    METADATA_MIN_VERSION,
    _head_in,
    encode_metadata_request,
)
from rdmeta._escaping import escaped
from rdmeta.client.actions import (
    Action,
    Close,
    Connect,
    Finish,
    MetadataHead,
    OtherRequest,
    Problem,
    Send,
    Updated,
)
from rdmeta.client.policy import Policy
from rdmeta.config.address import Address, parse_bootstrap
from rdmeta.errors import AuthenticationError, Error, TransportError, UnsupportedVersionError
from rdmeta.model import All
from rdmeta.net.handshake import METADATA
from rdmeta.net.resolve import FAMILIES
from rdmeta.net.security import for_config
from rdmeta.net.session import Response
from rdmeta.net.stream import StreamConnection

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from rdmeta._core import MetadataCache
    from rdmeta.config import Config
    from rdmeta.core.waits import Closable


class Wakeups:
    """The pipe of one loop and the clients that it wakes. Only the loop's thread uses it."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._wakes: dict[Callable[[], None], Closable] = {}
        self._reader = self._writer = -1
        _open.add(self)  # before the descriptors exist, as another thread may fork
        self._reader, self._writer = os.pipe()
        try:
            os.set_blocking(self._reader, False)
            os.set_blocking(self._writer, False)
            loop.add_reader(self._reader, self._read)
        except BaseException:  # the loop cannot watch files, or memory ran out
            self._release()
            raise

    def add(self, cache: MetadataCache, wake: Callable[[], None]) -> None:
        """Calls `wake` in the loop after changes of `cache`, or of another client's cache."""
        self._wakes[wake] = cache._watch(self._writer)

    def remove(self, wake: Callable[[], None]) -> None:
        """Ends the calls of `wake`; the last one closes the pipe, also if the loop is closed."""
        watch = self._wakes.pop(wake, None)
        if watch is not None:
            watch.close()
        if not self._wakes and self._reader >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._reader)
            _of_loops.pop(self._loop, None)
            self._release()

    def abandon(self) -> None:
        """Closes the pipe in the child of a fork; the loop's epoll is the parent's, and stays."""
        self._release()

    def _read(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._reader, 65536)
        for wake in list(self._wakes):
            wake()

    def _release(self) -> None:
        """Closes the pipe; a second call does nothing."""
        reader, writer, self._reader, self._writer = self._reader, self._writer, -1, -1
        if reader >= 0:
            os.close(reader)
            os.close(writer)

    def __del__(self) -> None:
        for watch in self._wakes.values():
            watch.close()
        self._release()


# A loop, its pipe's reader and its clients keep the pipe; these tables do not.
_of_loops: weakref.WeakValueDictionary[AbstractEventLoop, Wakeups] = weakref.WeakValueDictionary()
_open: weakref.WeakSet[Wakeups] = weakref.WeakSet()


def of_loop(loop: AbstractEventLoop) -> Wakeups:
    """Returns the pipe that all clients of the loop share; call it in the loop's thread."""
    found = _of_loops.get(loop)
    if found is None:
        found = _of_loops[loop] = Wakeups(loop)
    return found


_PERIOD_S = 30.0
# The different lines whose counts are kept; beyond that the one written longest ago is forgotten.
_MOST = 512


class _Written(NamedTuple):
    at: float
    repeated: int


class Lines:
    """Writes lines to a logger; a line that repeats within 30 s is counted instead.

    The next one after that time says how often it was repeated. An exception of a logging handler
    is printed to stderr, as logging does. One thread at a time may use it.
    """

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._written: dict[str, _Written] = {}

    def write_or_count(
        self, level: int, line: str, exc_info: BaseException | None = None, same: str = ""
    ) -> None:
        """Writes a line, or counts it; lines with the same `same` count as the same line."""
        now, line = self._clock(), escaped(line)
        key = same or line
        last = self._written.pop(key, None)
        if last is not None and now - last.at < _PERIOD_S:
            self._written[key] = _Written(last.at, last.repeated + 1)
            return
        self._written[key] = _Written(now, 0)
        if len(self._written) > _MOST:
            del self._written[min(self._written, key=lambda each: self._written[each].at)]
        if last is not None and last.repeated:
            seconds = now - last.at
            line = f"{line} ({last.repeated} times more in the last {seconds:.0f} s)"
        try:
            self._logger.log(level, "%s", line, exc_info=exc_info)
        except Exception:  # of a handler or filter of the application, which must not stop a client
            if logging.raiseExceptions:
                traceback.print_exc()


class Counted(Protocol):
    """A connection that counts its bytes, and its logins after the first."""

    @property
    def bytes_sent(self) -> int: ...
    @property
    def bytes_received(self) -> int: ...
    @property
    def reauthentications(self) -> int: ...


@dataclass
class _Node:
    requests: int = 0
    answers: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    reauthentications: int = 0
    last_round_trip: float | None = None
    longest_round_trip: float | None = None


class Traffic:
    """The counters of all nodes, by their addresses; one thread uses it."""

    def __init__(self) -> None:
        self._nodes: dict[Address, _Node] = {}

    def sent(self, node: Address) -> None:
        """Counts a request."""
        self._of(node).requests += 1

    def answered(self, node: Address, seconds: float) -> None:
        """Counts an answer that came `seconds` after its request."""
        counters = self._of(node)
        counters.answers += 1
        counters.last_round_trip = seconds
        counters.longest_round_trip = max(counters.longest_round_trip or 0.0, seconds)

    def ended(self, node: Address, connection: Counted) -> None:
        """Adds the counts of a connection that is closed."""
        counters = self._of(node)
        counters.bytes_sent += connection.bytes_sent
        counters.bytes_received += connection.bytes_received
        counters.reauthentications += connection.reauthentications

    def read(
        self, open_connections: Sequence[tuple[Address, Counted]]
    ) -> dict[Address, dict[str, Any]]:
        """Returns the counters of each node, with those of the connections that are open."""
        found = {node: vars(counters).copy() for node, counters in self._nodes.items()}
        for node, connection in open_connections:
            counters = found.setdefault(node, self.nothing())
            counters["bytes_sent"] += connection.bytes_sent
            counters["bytes_received"] += connection.bytes_received
            counters["reauthentications"] += connection.reauthentications
        return found

    @staticmethod
    def nothing() -> dict[str, Any]:
        """Returns the counters of a node that was sent nothing."""
        return vars(_Node()).copy()

    def _of(self, node: Address) -> _Node:
        return self._nodes.setdefault(node, _Node())


R = TypeVar("R")

SubscribedTopics: TypeAlias = "None | str | Collection[str] | All"
"""The topics that a client subscribes to: names, "^patterns", ALL; None: the needed ones."""

Begin: TypeAlias = Callable[[Policy, float], int]
"""Begins an application's call: takes the policy and the time, returns the waiter."""

Act: TypeAlias = Callable[[Policy, float], R]
"""Tells the policy something, or asks it, at a time."""

_log = logging.getLogger("rdmeta.client")

# Reads per link in a turn whose time has come; each takes up to 2 MiB.
_READS = 64
# Topics with errors that have lines of their own in one turn.
_MOST_LINES = 10
# The time until the next turn after one that failed because of a fault in this package.
_RETRY_S = 1.0
# The shortest time between two sweeps.
_SWEEP_S = 0.05


class Driver:
    """Keeps a cache true, from start() to close(). Only the loop's thread uses it.

    It has no task and no thread. It knows nothing of the client that owns it.
    """

    def __init__(
        self,
        cache: MetadataCache,
        config: Config,
        topics: SubscribedTopics = None,
        sticky: bool = False,
    ) -> None:
        """Touches no network. Raises ValueError and TypeError for wrong servers or topics."""
        servers = parse_bootstrap(config.bootstrap_servers, config.protocol)
        self.servers = servers
        self.cache = cache
        self.config = config
        self.security = for_config(config)
        self.policy = Policy(cache, config, servers, random.Random(), topics=topics, sticky=sticky)
        self.links: dict[int, SocketLink] = {}
        # Called with each Finish of a waiter.
        self._waiters: dict[int, Callable[[Finish], None]] = {}
        # Called after a turn in which the cache has changed, and with each Updated and Problem.
        self.on_change: list[Callable[[], None]] = []
        self.on_update: list[Callable[[Updated], None]] = []
        self.on_error: list[Callable[[Problem], None]] = []
        # The topics that client.leader() found since the last turn; None if it need not tell.
        self.touched: set[str] | None = set() if config.max_idle > 0 else None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wakeups: Wakeups | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._planned: asyncio.Handle | None = None
        # The time for which the timer is set.
        self._at = math.inf
        self._seen = -1
        self._counted = cache.version
        self._kinds: Counter[str] = Counter()
        self._lines = Lines(_log)
        self.traffic = Traffic()
        self.is_closed = False

    # ---- life -----------------------------------------------------------------------------------

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begins in a loop, in its thread; raises OSError if no descriptor is left."""
        found = of_loop(loop)
        found.add(self.cache, self._wake)
        self._loop, self._wakeups = loop, found
        _drivers.add(self)
        self.plan()

    def close(self) -> None:
        """Ends every wait with an error and closes every link, at once; a second call does nothing.

        It may be called after the loop was closed.
        """
        if self.is_closed:
            return
        self.is_closed = True
        for handle in (self._timer, self._planned):
            if handle is not None:
                handle.cancel()
        if self._wakeups is not None:
            self._wakeups.remove(self._wake)
        now = time.monotonic()
        self.policy.close(now)
        for action in self.policy.poll(now).actions:
            self._execute(action, now)
        for link in self.links.values():
            link.close()
        self.links.clear()
        for waiter in list(self._waiters):
            self._finish(Finish(waiter, closed(), self.cache.version))
        self._changed()

    def abandon(self) -> None:
        """Closes the inherited sockets in the child of a fork; the parent's driver goes on."""
        self.is_closed = True
        for link in self.links.values():
            link.connection.abandon()

    # ---- the application's side -----------------------------------------------------------------

    def do(self, act: Act[R]) -> R:
        """Returns what `act` returns for the policy and the time, and plans a turn.

        Raises Error if the driver is closed.
        """
        if self.is_closed:
            raise closed()
        self.plan()
        return act(self.policy, time.monotonic())

    def begin(self, begin: Begin, done: Callable[[Finish], None]) -> int:
        """Begins an application's call and returns its waiter; `done` is called with its Finish."""
        if self.is_closed:
            done(Finish(-1, closed(), self.cache.version))
            return -1
        waiter = begin(self.policy, time.monotonic())
        self._waiters[waiter] = done
        self.plan()
        return waiter

    def cancel(self, waiter: int) -> None:
        """Forgets a waiter that the application has given up."""
        if self._waiters.pop(waiter, None) is not None:
            self.policy.cancel(waiter, time.monotonic())
            self.plan()

    @property
    def state(self) -> str:
        """new, running or closed."""
        return "closed" if self.is_closed else "new" if self._loop is None else "running"

    def stats(self) -> dict[str, Any]:
        """Returns the client's state and counters; `Client.stats` describes them."""
        found = self.policy.stats()
        nodes: dict[int, dict[str, Any]] = found.setdefault("nodes", {})
        links = [(link.address, link.connection) for link in self.links.values()]
        ready = [(address, each.channel) for address, each in links if each.is_open]
        traffic = self.traffic.read(ready)
        for node in nodes.values():
            address = Address(node["host"], node["port"])
            node.update(traffic.get(address) or self.traffic.nothing())
        found["state"] = self.state
        found["changes"] = dict(self._kinds)
        return found

    # ---- turns ----------------------------------------------------------------------------------

    def plan(self) -> None:
        """Plans a turn for the loop's next round, once for all that happens until then."""
        if self._planned is None and self._loop is not None and not self.is_closed:
            self._planned = self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        if self._planned is not None:
            self._planned.cancel()  # the timer came first
            self._planned = None
        if self.is_closed:
            return
        try:
            at = self._poll()
        except Exception as error:  # a fault of this package must not leave the waiters asleep
            self._lines.write_or_count(
                logging.ERROR, f"a turn of the client failed: {error!r}", error
            )
            at = time.monotonic() + _RETRY_S
        self._set_timer(at)
        if self.cache.version != self._seen:
            self._seen = self.cache.version
            self._changed()
            self._count()

    def _count(self) -> None:
        """Counts the changes since the last call, by kind."""
        found, self._counted, resync = self.cache._count_changes(self._counted)
        self._kinds.update(found)
        if resync:
            self._kinds["resync"] += 1

    def _poll(self) -> float:
        """Hands in what has arrived, does the policy's actions; returns the next turn's time."""
        self._take_arrived()
        now = time.monotonic()
        if self.touched:
            for _ in range(len(self.touched)):  # other threads go on adding topics
                self.policy.touch(self.touched.pop(), now)
        poll = self.policy.poll(now)
        for action in poll.actions:
            self._execute(action, now)
        self._report()
        return min(poll.at, self._sweep(now))

    def _take_arrived(self) -> None:
        """Hands in what has arrived: all of it if time-outs may be due, else a part."""
        is_due = time.monotonic() >= self._at
        for _ in range(_READS if is_due else 1):
            before = [link.received for link in self.links.values()]
            for link in list(self.links.values()):
                link.connection.take_arrived()
            if before == [link.received for link in self.links.values()]:
                return

    def _sweep(self, now: float) -> float:
        """Removes from the cache what is past its deadline; returns the time of the next one."""
        left = self.cache.sweep()
        return math.inf if left is None else now + max(left, _SWEEP_S)

    def _set_timer(self, at: float) -> None:
        self._at = at
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at != math.inf and self._loop is not None and self._planned is None:
            delay = max(0.0, at - time.monotonic())
            self._timer = self._loop.call_later(delay, self._turn)

    def _wake(self) -> None:
        """Plans a turn if the cache has changed since the last one."""
        if self.cache.version != self._seen:
            self.plan()

    def _changed(self) -> None:
        for call in list(self.on_change):  # another thread may add and remove listeners
            call()

    def _report(self) -> None:
        """Passes the policy's events on to the log and the listeners."""
        events = self.policy.take_events()
        for line, same in _lines_of([each for each in events if isinstance(each, Problem)]):
            self._lines.write_or_count(logging.WARNING, line, same=same)
        for event in events:
            if isinstance(event, Updated):
                for update in list(self.on_update):
                    update(event)
            else:
                for problem in list(self.on_error):
                    problem(event)

    def hand_in(self, report: Callable[..., object], *what: object) -> None:
        """Reports to the policy, and plans a turn; a fault of this package is logged."""
        try:
            report(*what)
        except Exception as error:
            self._lines.write_or_count(
                logging.ERROR, f"a report to the policy failed: {error!r}", error
            )
        self.plan()

    # ---- actions --------------------------------------------------------------------------------

    def _execute(self, action: Action, now: float) -> None:
        """Does one action; a fault of this package in one does not stop the others."""
        try:
            if isinstance(action, Connect):
                self.links[action.link] = SocketLink(self, action)
            elif isinstance(action, Send):
                self._send(action, now)
            elif isinstance(action, Close):
                link = self.links.pop(action.link, None)
                if link is not None:
                    link.close()
            else:
                self._finish(action)
        except Exception as error:
            line = f"an action of the client failed: {error!r}"
            self._lines.write_or_count(logging.ERROR, line, error)
            if isinstance(action, Connect):
                failure = TransportError(line)
                self.hand_in(self.policy.on_disconnected, action.link, now, failure)
            elif isinstance(action, Send):
                self.hand_in(self.policy.on_failure, action.number, now, Error(line))

    def _send(self, send: Send, now: float) -> None:
        link = self.links.get(send.link)
        try:
            if link is None:
                raise Error("the connection is closed")
            link.send(send, now)
        except Error as error:
            self.policy.on_failure(send.number, now, error)
            self.plan()
        else:
            if _log.isEnabledFor(logging.DEBUG):
                self._lines.write_or_count(
                    logging.DEBUG, f"{link.address} is asked for {_shown(send)}"
                )

    def _finish(self, finish: Finish) -> None:
        done = self._waiters.pop(finish.waiter, None)
        if done is not None:
            done(finish)


class SocketLink:
    """One connection or attempt, with its requests; it reports to the policy."""

    def __init__(self, driver: Driver, connect: Connect) -> None:
        self.number = connect.link
        self.address = Address(connect.node.host, connect.node.port)
        self.received = 0
        self._was_ready = False
        self._driver = driver
        # (number, time, API key) of each request without an answer, by its correlation id.
        self._sent: dict[int, tuple[int, float, int]] = {}
        config = driver.config
        self.connection = StreamConnection(
            self,
            client_id=config.client_id,
            max_frame=config.max_frame,
            keepalive=config.keepalive,
            family=FAMILIES[config.family],
            security=driver.security,
        )
        self.connection.open(self.address, connect.timeout)

    def send(self, send: Send, now: float) -> None:
        """Encodes and sends a request in the highest version that both sides speak.

        Raises Error: UnsupportedVersionError, or the connection is not ready.
        """
        session, request = self.connection.session, send.request
        if isinstance(request, OtherRequest):
            key = request.api_key
            version = session.version_for(key, request.lowest, request.highest)
            body = request.encode(version)
        else:
            key = METADATA
            version = session.version_for(key, METADATA_MIN_VERSION, METADATA_MAX_VERSION)
            body = encode_metadata_request(
                version, request.topics, allow_auto_create=request.allow_auto_create
            )
        self._sent[self.connection.request(key, version, body)] = send.number, now, key
        self._driver.traffic.sent(self.address)

    def close(self) -> None:
        """Closes the connection, or ends the attempt."""
        if self.connection.is_open:
            self._driver.traffic.ended(self.address, self.connection.channel)
        self.connection.close()

    # ---- what the connection calls --------------------------------------------------------------

    def on_connected(self) -> None:
        """Tells the policy which versions of Metadata both sides speak."""
        self._was_ready = True
        session, versions = self.connection.session, None
        try:
            highest = session.version_for(METADATA, METADATA_MIN_VERSION, METADATA_MAX_VERSION)
            versions = max(METADATA_MIN_VERSION, session.versions[METADATA][0]), highest
        except UnsupportedVersionError:
            pass  # the policy tells its waiters
        now, mock = time.monotonic(), session.is_librdkafka_mock
        self._driver.hand_in(self._driver.policy.on_connected, self.number, now, versions, mock)

    def on_bytes(self) -> None:
        """Tells the policy."""
        self.received += 1
        self._driver.policy.on_bytes(self.number, time.monotonic())

    def on_response(self, response: Response) -> None:
        """Hands an answer to the policy, which applies it to the cache."""
        number, sent, key = self._sent.pop(response.correlation_id)
        driver, now = self._driver, time.monotonic()
        driver.traffic.answered(self.address, now - sent)
        version, body = response.version, response.body
        head = MetadataHead(*_head_in(body, version)) if key == METADATA else None
        driver.hand_in(driver.policy.on_response, number, now, version, body, head)

    def on_disconnected(self, error: Error) -> None:
        """Tells the policy."""
        self._driver.links.pop(self.number, None)
        if self._was_ready:
            self._driver.traffic.ended(self.address, self.connection.channel)
        now = time.monotonic()
        self._driver.hand_in(self._driver.policy.on_disconnected, self.number, now, error)


def _lines_of(problems: Sequence[Problem]) -> Iterator[tuple[str, str]]:
    """Yields the log lines of problems: one each, but one for all topics if many have errors.

    Each comes with what makes another line the same. A wrong setting fails on every server, at
    once or later, so there the error alone counts.
    """
    topics = [each for each in problems if each.topic is not None]
    few = len(topics) <= _MOST_LINES
    for each in problems:
        if few or each.topic is None:
            where = f"{Address(each.node.host, each.node.port)}: " if each.node else ""
            line = f"{where}{each.text}: {each.error}"
            is_same = each.node is not None and _is_of_settings(each.error)
            yield line, _setting(each.error) if is_same else line
    if not few:
        some = "; ".join(str(each.error) for each in topics[:_MOST_LINES])
        line = f"{len(topics)} topics have errors, among them {some}"
        yield line, line


def _is_of_settings(error: Error) -> bool:
    """Returns whether an error is the same on every server: a wrong setting, or no token."""
    return not error.retriable or isinstance(error, AuthenticationError)


def _setting(error: Error) -> str:
    """Returns what two errors of one wrong setting have in common.

    Kafka's brokers say which login they refuse: the first one on a connection, or a later one.
    """
    return str(error).replace("during re-authentication", "during authentication")


def _shown(send: Send) -> str:
    """Returns what a request asks for and why, as text for the log."""
    request = send.request
    if isinstance(request, OtherRequest):
        what = f"API {request.api_key}"
    elif isinstance(request.topics, All):
        what = "all topics"
    else:
        count = len(request.topics or ())
        what = f"{count} topic{'s' if count > 1 else ''}" if count else "its brokers"
    return f"{what}: {send.reason}{', again, as another is silent' if send.hedge else ''}"


def closed() -> Error:
    """Returns the error of a call that a closed client cannot serve."""
    return Error("the client is closed")


# The sockets of these drivers are closed in the child of a fork.
_drivers: weakref.WeakSet[Driver] = weakref.WeakSet()


def _in_child() -> None:
    for driver in list(_drivers):
        driver.abandon()
    for pipe in list(_open):
        pipe.abandon()
    _of_loops.clear()


os.register_at_fork(after_in_child=_in_child)
