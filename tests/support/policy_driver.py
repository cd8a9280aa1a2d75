"""A driver without sockets for tests of the policy: it keeps the time, and plays the brokers.

    d = Driver(topics=["orders"])
    d.connect()                                 # the attempt that the policy asked for succeeds
    d.answer(d.sent(), T("orders"))             # the request is answered

The driver checks every poll: one without actions must not ask for the next at once. It also checks
that no action uses a closed link.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import ceil
from typing import Any

import frames
from frames import B, P, T

from rdmeta import Applied, Error, MetadataCache, TransportError
from rdmeta._core import _head_in
from rdmeta.client.actions import (
    Close,
    Connect,
    Finish,
    MetadataHead,
    OtherRequest,
    Problem,
    RequestKind,
    Send,
    Updated,
)
from rdmeta.client.policy import Policy
from rdmeta.config import Config
from rdmeta.config.address import Address
from rdmeta.model import ALL, Request
from rdmeta.net.handshake import METADATA

__all__ = ["ADDRESSES", "BROKERS", "B", "Driver", "P", "T", "head_of", "names_of", "topic"]

ADDRESSES = [Address(f"broker-{i}", 9092) for i in (1, 2, 3)]
BROKERS = tuple(B(i, f"broker-{i}") for i in (1, 2, 3))


def topic(name: str, leader: int = 1, epoch: int = 1, **more: Any) -> T:
    """Returns a topic with one partition, and an id of its own."""
    more.setdefault("id", frames.topic_id(name))
    return T(name, [P(0, leader, epoch)], **more)


def head_of(send: Send, version: int, body: bytes) -> MetadataHead | None:
    """Returns the head of an answer, as the driver reads it, if the request is one of Metadata."""
    is_other = isinstance(send.request, OtherRequest) and send.request.api_key != METADATA
    return None if is_other else MetadataHead(*_head_in(body, version))


class Driver:
    """The policy with the real cache, a clock that the test moves, and brokers that it plays."""

    def __init__(
        self,
        *,
        bootstrap: list[Address] | None = None,
        seed: int = 1,
        topics: Any = None,
        sticky: bool = False,
        cache: dict[str, Any] | None = None,
        **config: Any,
    ) -> None:
        self.now = 1000.0
        self.cache = MetadataCache(clock=lambda: self.now, seed=1, **(cache or {}))
        self.policy = Policy(
            self.cache,
            Config(**config),
            ADDRESSES[:1] if bootstrap is None else bootstrap,
            random.Random(seed),
            topics=topics,
            sticky=sticky,
        )
        self.at = self.now
        self.links: dict[int, Connect] = {}
        self._ready: set[int] = set()
        self.open: dict[int, Send] = {}
        self.sends: list[Send] = []
        self.sent_at: dict[int, float] = {}
        self.connects: list[Connect] = []
        self.closes: list[Close] = []
        self.finished: dict[int, Finish] = {}
        self.brokers: tuple[B, ...] = BROKERS
        self.versions = (0, 12)

    # ---- time ----

    def poll(self) -> None:
        """Polls once, and takes the actions."""
        poll = self.policy.poll(self.now)
        assert poll.at > self.now
        self.at = poll.at
        for action in poll.actions:
            if isinstance(action, Connect):
                self.links[action.link] = action
                self.connects.append(action)
            elif isinstance(action, Send):
                assert action.link in self.links
                self.open[action.number] = action
                self.sends.append(action)
                self.sent_at[action.number] = self.now
            elif isinstance(action, Close):
                del self.links[action.link]
                self.closes.append(action)
                self.open = {n: s for n, s in self.open.items() if s.link != action.link}
            else:
                assert action.waiter not in self.finished
                self.finished[action.waiter] = action

    def wait(self, seconds: float) -> None:
        """Lets time pass, with every poll that the policy asks for."""
        end = self.now + seconds
        self.poll()
        while self.at < end:
            self.now = self.at
            self.poll()
        self.now = end
        self.poll()

    def ticks(self, seconds: float, step: float = 0.01) -> Iterator[None]:
        """Lets time pass in steps, without those in which the policy has nothing to do."""
        end = self.now + seconds
        while self.now < end - 1e-9:
            before = len(self.connects)
            self.poll()
            is_idle = not self.open and len(self.connects) == before
            until = min(self.at, end) if is_idle else self.now
            self.wait(step * max(1, ceil((until - self.now) / step - 1e-6)))
            yield

    # ---- links ----

    def connecting(self) -> list[Connect]:
        """Returns the attempts that have not ended, the newest last."""
        self.poll()
        return [link for number, link in self.links.items() if number not in self._ready]

    def connect(self, link: int | None = None, versions: Any = ..., mock: bool = False) -> int:
        """Makes an attempt succeed, the only one by default; returns its link."""
        if link is None:
            (attempt,) = self.connecting()
            link = attempt.link
        self._ready.add(link)
        found = self.versions if versions is ... else versions
        self.policy.on_connected(link, self.now, found, mock)
        self.poll()
        return link

    def fail(self, link: int | None = None, error: Error | None = None) -> None:
        """Makes an attempt fail, or breaks a link; the only attempt by default."""
        if link is None:
            (attempt,) = self.connecting()
            link = attempt.link
        del self.links[link]
        self.open = {n: s for n, s in self.open.items() if s.link != link}
        self.policy.on_disconnected(link, self.now, error or TransportError("it broke"))
        self.poll()

    def node_of(self, link: int) -> str:
        """Returns the host that a link is connected to."""
        return self.links[link].node.host

    # ---- requests ----

    def sent(self, kind: RequestKind | None = None) -> Send:
        """Returns the only open request, or the only one of a kind."""
        self.poll()
        (send,) = [each for each in self.open.values() if kind in (None, each.kind)]
        return send

    def answer(self, send: Send, *topics: T, **more: Any) -> Applied | None:
        """Answers a request with these topics."""
        more.setdefault("brokers", self.brokers)
        version = self.versions[1]
        body = frames.response(version, topics, **more)
        return self.respond(send, body, version)

    def respond(self, send: Send, body: bytes, version: int = 12) -> Applied | None:
        """Answers a request with these bytes."""
        self.open.pop(send.number, None)
        self.policy.on_bytes(send.link, self.now)
        applied = self.policy.on_response(
            send.number, self.now, version, body, head_of(send, version, body)
        )
        self.poll()
        return applied

    def start(self, *topics: T, **more: Any) -> None:
        """Connects, and answers the first request."""
        self.connect()
        self.answer(self.sent(), *topics, **more)

    # ---- events ----

    def events(self) -> list[Updated | Problem]:
        return self.policy.take_events()

    def problems(self) -> list[str]:
        """Returns the texts of the problems since the last call of take_events()."""
        return [f"{e.text}: {e.error}" for e in self.events() if isinstance(e, Problem)]


def names_of(send: Send) -> Any:
    """Returns what a request asks for: sorted names, "all", or [] for the brokers."""
    assert isinstance(send.request, Request)
    if send.request.topics is ALL:
        return "all"
    return sorted(str(each) for each in send.request.topics)
