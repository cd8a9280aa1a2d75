"""Decides when to ask which node for what: a state machine without sockets, clock or thread."""

from __future__ import annotations

import math
import random as random_module
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from rdmeta import _waits
from rdmeta._core import MetadataCache
from rdmeta.address import Address
from rdmeta.client.actions import Action, Call, Close, Connect, Finish, Kind, Node, Poll, Send
from rdmeta.config import Config
from rdmeta.errors import Error, MalformedError, RequestTimedOutError, UnsupportedVersionError
from rdmeta.model import ALL, All, Applied, Request

__all__ = ["Policy", "Problem", "Updated"]

Topics = All | Collection[str] | Collection[UUID]


class Updated(NamedTuple):
    """An answer was applied to the cache."""

    request: Request
    applied: Applied
    cluster_id: str | None
    node: Node


class Problem(NamedTuple):
    """A node or an answer failed; `text` says what the client did."""

    error: Error
    node: Node | None
    text: str


@dataclass
class _Link:
    number: int
    node: Node
    opened: float
    ready: bool = False
    mock: bool = False
    in_flight: dict[int, _Sent] = field(default_factory=dict)


@dataclass
class _Sent:
    request: Request | Call
    kind: Kind
    at: float
    waiters: list[int]


@dataclass
class _Waiter:
    deadline: float | None
    topic: str | None = None
    partition: int | None = None
    first_answer: object = None
    topics: Any = None
    call: Call | None = None
    sent: bool = False


class Policy:
    """See the module's text. A first version: backoff, waiters, one link at a time."""

    def __init__(
        self,
        cache: MetadataCache,
        config: Config,
        bootstrap: Sequence[Address],
        random: random_module.Random,
        *,
        topics: Topics | str | None = None,
        sticky: bool = False,
    ) -> None:
        self._cache, self._config, self._random = cache, config, random
        self._bootstrap = [Node(-1 - i, *address) for i, address in enumerate(bootstrap)]
        self._needed: dict[str, None] = {}
        self._all = False
        self._new: set[str] = set()
        self._new_at = 0.0
        self._links: dict[int, _Link] = {}
        self._numbers = 0
        self._waiters: dict[int, _Waiter] = {}
        self._retry: dict[Address, tuple[int, float]] = {}
        self._full = True
        self._full_at = -math.inf
        self._fast_at, self._fast_step = -math.inf, 0
        self._failures = 0
        self._causes: dict[Address, Error] = {}
        self._events: list[Updated | Problem] = []
        self._out: list[Action] = []
        self._seen = -1
        self._closed = False
        self._last_success: float | None = None
        self._set_topics(topics)

    def _set_topics(self, topics: Any) -> None:
        names = [topics] if isinstance(topics, str) else topics
        self._all = names is ALL
        if names is None or names is ALL:
            return
        self._all = any(name.startswith("^") for name in names)
        self._needed.update(dict.fromkeys(n for n in names if not n.startswith("^")))

    # ---- links ----

    def on_connected(
        self, link: int, now: float, versions: tuple[int, int] | None, mock: bool = False
    ) -> None:
        """Notes that a link is ready for requests."""
        if link not in self._links:
            return
        if versions is None:
            error = UnsupportedVersionError("no common version of Metadata")
            self._out.append(Close(link, str(error)))
            self._lost(link, now, error)
            for waiter in list(self._waiters):
                self._finish(waiter, error)
            return
        self._links[link].ready, self._links[link].mock = True, mock
        self._retry.pop(Address(*self._links[link].node[1:]), None)

    def on_disconnected(self, link: int, now: float, error: Error) -> None:
        """Notes that a link failed or broke."""
        if link in self._links:
            self._lost(link, now, error)

    def _lost(self, number: int, now: float, error: Error) -> None:
        link = self._links.pop(number)
        address = Address(*link.node[1:])
        tries = self._retry.get(address, (0, 0.0))[0] + 1
        wait = self._backoff(
            tries, self._config.reconnect_backoff, self._config.reconnect_backoff_max
        )
        self._retry[address] = (tries, now + wait)
        self._causes[address] = error
        self._events.append(Problem(error, link.node, "the connection failed"))
        for sent in link.in_flight.values():
            self._failed(sent, now, error)
        self._full = True

    def _failed(self, sent: _Sent, now: float, error: Error) -> None:
        if isinstance(sent.request, Call):
            for waiter in sent.waiters:
                self._finish(waiter, error)
            return
        self._cache.apply_failure(sent.request)
        self._failures += 1
        wait = self._backoff(
            self._failures, self._config.retry_backoff, self._config.retry_backoff_max
        )
        self._full_at = now + wait
        self._full = True
        for waiter in sent.waiters:
            if waiter in self._waiters:
                self._waiters[waiter].sent = False

    def _backoff(self, n: int, first: float, most: float) -> float:
        return min(first * 2.0 ** (n - 1), most) * self._random.uniform(0.8, 1.2)

    def on_bytes(self, link: int, now: float) -> None:
        """Notes that bytes arrived."""

    def on_response(
        self, number: int, now: float, version: int, body: bytes | memoryview
    ) -> Applied | None:
        """Applies an answer; returns its Applied, None if it was dropped or refused."""
        for link in self._links.values():
            if number in link.in_flight:
                return self._answered(link, link.in_flight.pop(number), now, version, body)
        return None

    def _answered(
        self, link: _Link, sent: _Sent, now: float, version: int, body: bytes | memoryview
    ) -> Applied | None:
        if isinstance(sent.request, Call):
            for waiter in sent.waiters:
                self._finish(waiter, None, (version, bytes(body)))
            return None
        try:
            applied = self._cache.apply(
                body,
                version,
                sent.request,
                link.node.id if link.node.id >= 0 else None,
                tolerate_trailing=link.mock,
            )
        except Error as error:
            self._failed(sent, now, error)
            if isinstance(error, MalformedError):
                self._out.append(Close(link.number, str(error)))
                self._lost(link.number, now, error)
            return None
        self._failures = 0
        self._last_success = now
        self._events.append(Updated(sent.request, applied, self._cache.cluster_id, link.node))
        for waiter in sent.waiters:
            self._finish(waiter, None)
        for broker in self._cache.brokers:
            if (broker.host, broker.port) == link.node[1:]:
                link.node = Node(broker.id, broker.host, broker.port)
        return applied

    def on_failure(self, number: int, now: float, error: Error) -> None:
        """Notes that a request could not be sent; its link stays."""
        for link in self._links.values():
            if number in link.in_flight:
                self._failed(link.in_flight.pop(number), now, error)

    # ---- the application ----

    def need(self, names: Collection[str], now: float) -> None:
        """Adds topics to those that are kept true."""
        new = [name for name in names if name not in self._needed]
        if new and not self._new:
            self._new_at = now + 0.01
        self._needed.update(dict.fromkeys(new))
        self._new.update(new)

    def forget(self, names: Collection[str], now: float) -> None:
        """Removes topics from those that are kept true."""
        for name in names:
            self._needed.pop(name, None)
            self._new.discard(name)

    def subscribe(self, topics: Any, now: float) -> None:
        """Replaces the subscribed names and patterns."""
        self._needed.clear()
        self._set_topics(topics)
        self._full, self._full_at = True, now

    def _add(self, waiter: _Waiter) -> int:
        self._numbers += 1
        self._waiters[self._numbers] = waiter
        return self._numbers

    def refresh(
        self, now: float, topics: Any = None, force: bool = False, deadline: float | None = None
    ) -> int:
        """Asks for topics; returns a waiter."""
        self._full, self._full_at = True, min(self._full_at, now)
        return self._add(_Waiter(deadline, topics=() if topics is None else topics))

    def wait_for_topic(
        self, now: float, topic: str, partition: int | None = None, deadline: float | None = None
    ) -> int:
        """Needs a topic and waits for it; returns a waiter."""
        self.need([topic], now)
        answer = self._cache._answer(topic)
        self._seen = -1
        self._fast_at, self._fast_step = now + 0.01, 0
        return self._add(_Waiter(deadline, topic, partition, answer))

    def call(self, now: float, call: Call, deadline: float | None = None) -> int:
        """Sends another request to the least loaded node; returns a waiter."""
        return self._add(_Waiter(deadline, call=call))

    def cancel(self, waiter: int) -> None:
        """Ends a waiter without an outcome."""
        self._waiters.pop(waiter, None)

    def leader_unavailable(self, topic: str, partition: int, code: int, now: float) -> None:
        """Takes a complaint about a partition."""
        self._full = True

    def epoch_seen(self, topic: str, partition: int, epoch: int, now: float) -> None:
        """Takes a leader epoch that the application saw."""
        self._full = True

    def leader_hint(
        self,
        topic: str,
        partition: int,
        leader: int,
        leader_epoch: int,
        node: Any,
        now: float,
        topic_id: Any = None,
    ) -> Applied:
        """Applies a leader of a Produce or Fetch answer."""
        return self._cache.apply_leader_hint(
            topic, partition, leader, leader_epoch, node, topic_id=topic_id
        )

    def touch(self, topic: str, now: float) -> None:
        """Notes that a topic was read."""

    def least_loaded(self, now: float) -> Node | None:
        """Returns the node that the next request would go to."""
        link = self._ready()
        return None if link is None else link.node

    def close(self, now: float) -> None:
        """Ends every wait and every link at the next poll."""
        if self._closed:
            return
        for waiter in list(self._waiters):
            self._finish(waiter, Error("the client is closed"))
        for link in self._links.values():
            self._out.append(Close(link.number, "the client is closed"))
            for sent in link.in_flight.values():
                if isinstance(sent.request, Request):
                    self._cache.apply_failure(sent.request)
        self._links.clear()
        self._closed = True

    def stats(self) -> dict[str, Any]:
        """Returns counters."""
        return {"last_success": self._last_success}

    def take_events(self) -> list[Updated | Problem]:
        """Returns the events since the last call."""
        events, self._events = self._events, []
        return events

    # ---- poll ----

    def poll(self, now: float) -> Poll:
        """Returns the actions to take now and the time of the next poll."""
        at = math.inf
        if not self._closed:
            self._time_out(now)
            self._look(now)
            at = self._act(now)
        actions, self._out = tuple(self._out), []
        return Poll(actions, at)

    def _finish(
        self, waiter: int, error: Error | None, value: tuple[int, bytes] | None = None
    ) -> None:
        if self._waiters.pop(waiter, None) is not None:
            self._out.append(Finish(waiter, error, self._cache.version, value))

    def _time_out(self, now: float) -> None:
        for number, waiter in list(self._waiters.items()):
            if waiter.deadline is not None and waiter.deadline <= now:
                causes = "; ".join(f"{a}: {e}" for a, e in self._causes.items())
                self._finish(number, RequestTimedOutError(f"no answer in time: {causes}"))
        for link in list(self._links.values()):
            if now >= self._link_deadline(link):
                error = RequestTimedOutError("the broker was silent for too long")
                self._out.append(Close(link.number, str(error)))
                self._lost(link.number, now, error)

    def _link_deadline(self, link: _Link) -> float:
        if not link.ready:
            return link.opened + self._config.setup_timeout
        sent = [each.at for each in link.in_flight.values()]
        return min(sent, default=math.inf) + self._config.socket_timeout

    def _look(self, now: float) -> None:
        for number, waiter in list(self._waiters.items()):
            if waiter.topic is None:
                continue
            try:
                found, _ = _waits.look(
                    self._cache, waiter.topic, waiter.partition, waiter.first_answer
                )
            except Error as error:
                self._finish(number, error)
            else:
                if found is not None:
                    self._finish(number, None)

    def _ready(self) -> _Link | None:
        links = [link for link in self._links.values() if link.ready]
        return min(links, key=lambda link: len(link.in_flight), default=None)

    def _act(self, now: float) -> float:
        at = [self._link_deadline(link) for link in self._links.values()]
        at += [w.deadline for w in self._waiters.values() if w.deadline is not None]
        at += self._send_calls(now)
        at += self._send_new(now)
        at += self._send_fast(now)
        at += self._send_full(now)
        return min([t for t in at if t > now], default=math.inf)

    def _send_calls(self, now: float) -> list[float]:
        at = []
        for number, waiter in self._waiters.items():
            if waiter.call is not None and not waiter.sent:
                waiter.sent, wake = self._send(now, waiter.call, Kind.CALL, "call", [number])
                at.append(wake)
        return at

    def _busy(self, kind: Kind) -> bool:
        return any(s.kind is kind for li in self._links.values() for s in li.in_flight.values())

    def _send_new(self, now: float) -> list[float]:
        if not self._new or now < self._new_at or self._busy(Kind.NEW):
            return [self._new_at] if self._new else []
        names = sorted(self._new)
        sent, wake = self._send(now, names, Kind.NEW, "need", [])
        if sent:
            self._new.clear()
        return [wake]

    def _send_fast(self, now: float) -> list[float]:
        names = sorted({w.topic for w in self._waiters.values() if w.topic} - self._new)
        if not names or self._busy(Kind.NAMES) or self._busy(Kind.NEW):
            return []
        if now < self._fast_at:
            return [self._fast_at]
        self._fast_step += 1
        self._fast_at = now + self._backoff(
            self._fast_step, self._config.fast_interval, self._config.retry_backoff_max
        )
        sent, wake = self._send(now, names, Kind.NAMES, "waited for", [])
        return [self._fast_at, wake]

    def _send_full(self, now: float) -> list[float]:
        if self._busy(Kind.FULL) or not (self._full or now >= self._full_at):
            return [self._full_at]
        if now < self._full_at:
            return [self._full_at]
        waiters = [
            n for n, w in self._waiters.items() if w.topic is None and not w.call and not w.sent
        ]
        topics = ALL if self._all else tuple(self._needed)
        for number in waiters:
            wanted = self._waiters[number].topics
            topics = ALL if wanted is ALL or topics is ALL else (*topics, *wanted)
        sent, wake = self._send(now, topics, Kind.FULL, "refresh", waiters)
        if sent:
            for number in waiters:
                self._waiters[number].sent = True
            self._full = False
            interval = self._config.refresh_interval
            self._full_at = math.inf if interval is None else now + interval
        return [wake, self._full_at]

    def _send(
        self, now: float, what: Any, kind: Kind, reason: str, waiters: list[int]
    ) -> tuple[bool, float]:
        link = self._ready()
        if link is None:
            return False, self._connect(now)
        if not isinstance(what, Call):
            if what is not ALL:
                what = self._cache.hint(what, force=True, replace=kind is not Kind.FULL)
            what = self._cache.request(
                what, allow_auto_create=self._config.allow_auto_create, reason=reason
            )
        self._numbers += 1
        link.in_flight[self._numbers] = _Sent(what, kind, now, waiters)
        self._out.append(Send(link.number, self._numbers, what, kind, reason, False))
        return True, math.inf

    def _connect(self, now: float) -> float:
        """Connects to a node unless a link is being made; returns the time of the next try."""
        connecting = [link for link in self._links.values() if not link.ready]
        if connecting:
            return math.inf
        nodes = [Node(b.id, b.host, b.port) for b in self._cache.brokers] + self._bootstrap
        start = self._random.randrange(len(nodes))
        nodes = nodes[start:] + nodes[:start]
        soonest = math.inf
        for node in nodes:
            retry_at = self._retry.get(Address(*node[1:]), (0, 0.0))[1]
            if retry_at <= now:
                self._numbers += 1
                self._links[self._numbers] = _Link(self._numbers, node, now)
                self._out.append(Connect(self._numbers, node, self._config.setup_timeout))
                return math.inf
            soonest = min(soonest, retry_at)
        return soonest
