"""The other brokers that fetch() asks after ASK_OTHER, and the ids that it gives them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import frames
import pytest
from frames import B, P, T
from peer import answer_handshake, framed, listening, read_frame, read_requests

from rdmeta import Advice, MetadataCache, NoBrokersError, fetch
from rdmeta.config.address import Address
from rdmeta.net.handshake import METADATA

VERSION = 12
ID = frames.topic_id("orders")


def orders(leader: int, epoch: int) -> T:
    return T("orders", [P(0, leader, epoch)], id=ID)


class Brokers:
    """Three brokers, each with its own answer; `asked` are the ids of those asked, in order."""

    def __init__(self, stack: ExitStack) -> None:
        self.asked: list[int] = []
        self.topics: dict[int, T] = {}
        self.deaf: set[int] = set()
        self.listed: tuple[B, ...] | None = None
        self._done = threading.Event()
        self.addresses = {id: stack.enter_context(listening(self._serving(id))) for id in (1, 2, 3)}
        stack.callback(self._done.set)

    def list(self, *ids: int) -> str:
        return ",".join(str(self.addresses[id]) for id in ids)

    @property
    def brokers(self) -> tuple[B, ...]:
        return tuple(B(id, a.host, a.port) for id, a in self.addresses.items())

    def _serving(self, id: int) -> Callable[[socket.socket], None]:
        def serve(connection: socket.socket) -> None:
            while frame := read_frame(connection):
                (asked,) = read_requests(frame)
                if asked.api_key != METADATA:
                    connection.sendall(
                        answer_handshake(frame, {METADATA: (0, VERSION), 18: (0, 3)})[0]
                    )
                    continue
                self.asked.append(id)
                if id in self.deaf:
                    self._done.wait(30)
                    return
                listed = self.brokers if self.listed is None else self.listed
                body = frames.response(VERSION, [self.topics[id]], listed)
                connection.sendall(framed(asked.correlation_id, body, b"\0"))

        return serve


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    with ExitStack() as stack:
        yield Brokers(stack)


def filled_cache(epoch: int = 5) -> MetadataCache:
    """Returns a cache with the topic at that epoch, led by 1, and without these brokers."""
    cache = MetadataCache()
    cache.apply(frames.response(VERSION, [orders(1, epoch)]), VERSION, ["orders"])
    return cache


def test_an_answer_without_ask_other_ends_the_fetch(brokers: Brokers) -> None:
    brokers.topics = {id: orders(2, 6) for id in (1, 2, 3)}
    assert fetch(filled_cache(), brokers.list(2, 1)).advice == Advice.NONE
    assert brokers.asked == [2]


def test_ask_other_sends_the_same_call_to_the_next_server(brokers: Brokers) -> None:
    brokers.topics = {1: orders(1, 3), 2: orders(2, 6), 3: orders(3, 7)}
    cache = filled_cache()
    applied = fetch(cache, brokers.list(1, 2), ["orders"])
    assert brokers.asked == [1, 2]
    assert (cache.leader("orders", 0), cache.source("orders")) == (2, 2)
    assert (applied.advice, applied.changed, applied.brokers_changed) == (Advice.NONE, 1, True)


def test_after_the_servers_the_known_brokers_are_asked_each_once(brokers: Brokers) -> None:
    brokers.topics = {1: orders(1, 3), 2: orders(1, 4), 3: orders(3, 7)}
    cache = filled_cache()
    fetch(cache, brokers.list(2, 1), ["orders"])
    assert brokers.asked == [2, 1, 3]
    assert (cache.leader("orders", 0), cache.source("orders")) == (3, 3)


def test_if_every_answer_says_ask_other_each_is_asked_once_and_the_last_is_returned(
    brokers: Brokers,
) -> None:
    brokers.topics = {id: orders(2, 3) for id in (1, 2, 3)}
    cache = filled_cache()
    applied = fetch(cache, brokers.list(2), ["orders"])
    assert brokers.asked == [2, 1, 3]
    assert Advice.ASK_OTHER in applied.advice
    assert applied.kept_back == 1
    assert cache.leader("orders", 0) == 1


def test_a_broker_that_was_asked_by_another_name_is_not_asked_again(brokers: Brokers) -> None:
    brokers.topics = {id: orders(2, 3) for id in (1, 2, 3)}
    one, two, three = brokers.addresses.values()
    cache = MetadataCache()
    names = [B(1, "localhost", one.port), B(2, two.host, two.port), B(3, three.host, three.port)]
    cache.apply(frames.response(VERSION, [orders(1, 5)], names), VERSION, ["orders"])
    fetch(cache, str(Address("localhost", one.port)), ["orders"])
    # Its own answer lists another address, but the cache knows the address that was asked.
    assert brokers.asked == [1, 2, 3]


def test_a_broker_that_cannot_be_reached_does_not_lose_the_first_answer(brokers: Brokers) -> None:
    brokers.topics = {1: orders(1, 3)}
    brokers.listed = (*brokers.brokers[:1], B(2, "127.0.0.1", 1), B(3, "no-such-host.invalid", 9))
    cache = filled_cache()
    applied = fetch(cache, brokers.list(1), ["orders"])
    assert brokers.asked == [1]
    assert Advice.ASK_OTHER in applied.advice
    assert len(cache.brokers) == 3


def test_other_brokers_are_asked_within_the_same_time_out(brokers: Brokers) -> None:
    brokers.topics = {1: orders(1, 3)}
    brokers.deaf = {2, 3}
    start = time.monotonic()
    applied = fetch(filled_cache(), brokers.list(1), ["orders"], timeout=1.0)
    assert time.monotonic() - start < 10
    assert Advice.ASK_OTHER in applied.advice
    assert brokers.asked[:2] == [1, 2]


def test_after_an_answer_without_brokers_the_known_ones_are_asked(brokers: Brokers) -> None:
    brokers.topics = {id: orders(2, 6) for id in (1, 2, 3)}
    cache = MetadataCache()
    fetch(cache, brokers.list(1))
    brokers.asked.clear()
    brokers.listed = ()
    with pytest.raises(NoBrokersError) as raised:
        fetch(cache, brokers.list(3))
    assert brokers.asked == [3, 1, 2]
    for server in brokers.addresses.values():
        assert f"{server}: " in str(raised.value)


def test_an_address_that_several_brokers_share_names_none(brokers: Brokers) -> None:
    brokers.topics = {id: orders(2, 6) for id in (1, 2, 3)}
    same = brokers.addresses[1]
    brokers.listed = tuple(B(id, same.host, same.port) for id in (1, 2, 3))
    cache = MetadataCache()
    fetch(cache, brokers.list(1))
    assert cache.source("orders") is None
    brokers.listed = brokers.brokers
    fetch(cache, brokers.list(1))
    assert cache.source("orders") == 1
