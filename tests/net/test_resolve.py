"""Names beside an event loop: what is found, in which order, and what a hung resolver costs."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from rdmeta.config.address import Address
from rdmeta.errors import TransportError
from rdmeta.net.resolve import Endpoint, Resolver, literal, shared

V4, V6 = socket.AF_INET, socket.AF_INET6


def found(*hosts: str) -> list[tuple[Any, ...]]:
    """Returns what getaddrinfo() returns for these addresses."""
    return [
        (V6, 1, 6, "", (host, 9092, 0, 0)) if ":" in host else (V4, 1, 6, "", (host, 9092))
        for host in hosts
    ]


class Stub:
    """A resolver of the system that answers, and hangs for names that begin with "hung"."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.go_on = threading.Event()

    def __call__(self, host: str, port: int, **_: object) -> list[tuple[Any, ...]]:
        self.calls.append(host)
        if host.startswith("hung"):
            self.go_on.wait(60)
        return found("192.0.2.1")

    def wait_for_calls(self, n: int) -> None:
        end = time.monotonic() + 30
        while len(self.calls) < n:
            assert time.monotonic() < end, self.calls
            time.sleep(0.001)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    stubbed = Stub()
    monkeypatch.setattr(socket, "getaddrinfo", stubbed)
    yield stubbed
    stubbed.go_on.set()
    assert no_thread_is_left()


def threads() -> int:
    return sum(thread.name == "rdmeta-resolve" for thread in threading.enumerate())


def no_thread_is_left() -> bool:
    end = time.monotonic() + 30
    while threads() and time.monotonic() < end:
        time.sleep(0.001)
    return not threads()


@contextmanager
def answering(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[..., list[tuple[Any, ...]]]
) -> Iterator[Resolver]:
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", answer)
        yield Resolver()
        assert no_thread_is_left()


def resolve(resolver: Resolver, host: str, family: int = socket.AF_UNSPEC) -> tuple[Endpoint, ...]:
    async def main() -> tuple[Endpoint, ...]:
        loop = asyncio.get_running_loop()
        return await resolver.lookup(Address(host, 9092), loop, family)

    return asyncio.run(main())


def test_a_name_is_resolved_and_the_thread_ends() -> None:
    hosts = {endpoint.sockaddr[0] for endpoint in resolve(Resolver(), "localhost")}
    assert hosts <= {"127.0.0.1", "::1"}
    assert hosts
    assert no_thread_is_left()


def test_every_address_is_returned_once_and_the_families_take_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses = found("2001:db8::1", "2001:db8::2", "2001:db8::1", "2001:db8::3", "192.0.2.1")
    with answering(monkeypatch, lambda *_, **__: addresses) as resolver:
        hosts = [str(endpoint) for endpoint in resolve(resolver, "name")]
    assert hosts == [
        "[2001:db8::1]:9092",
        "192.0.2.1:9092",
        "[2001:db8::2]:9092",
        "[2001:db8::3]:9092",
    ]


def test_threads_that_look_up_one_name_at_one_time_share_its_lookup(stub: Stub) -> None:
    class Meeting(dict[Any, Any]):
        """Keeps a thread between its search and what it adds, until another one is there."""

        def get(self, key: Any, default: Any = None) -> Any:
            known = super().get(key, default)
            with suppress(threading.BrokenBarrierError):
                both.wait(0.05)
            return known

    both, asked, resolver = threading.Barrier(2), threading.Semaphore(0), Resolver()
    resolver._lookups = Meeting()
    hosts: list[Endpoint] = []

    def look_up() -> None:
        async def main() -> None:
            future = resolver.lookup(Address("hung", 9092), asyncio.get_running_loop())
            asked.release()
            hosts.extend(await future)

        asyncio.run(main())

    callers = [threading.Thread(target=look_up, daemon=True) for _ in range(2)]
    for each in callers:
        each.start()
    for _ in callers:
        asked.acquire()
    assert [len(each.waiters) for each in resolver._lookups.values()] == [2]
    stub.go_on.set()
    for each in callers:
        each.join()
    assert len(hosts) == 2
    assert stub.calls == ["hung"]


def test_one_family_leaves_out_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = found("2001:db8::1", "192.0.2.1")
    with answering(monkeypatch, lambda *_, **__: addresses) as resolver:
        assert [each.family for each in resolve(resolver, "name", V4)] == [V4]
        assert [each.family for each in resolve(resolver, "name", V6)] == [V6]
    with (
        answering(monkeypatch, lambda *_, **__: addresses[:1]) as resolver,
        pytest.raises(TransportError, match=r"no address of that family \(broker.address.family\)"),
    ):
        resolve(resolver, "name", V4)


@pytest.mark.parametrize(
    ("host", "family"), [("127.0.0.1", V4), ("::1", V6), ("2001:db8::1", V6), ("fe80::1%lo", V6)]
)
def test_a_literal_address_needs_no_thread(stub: Stub, host: str, family: int) -> None:
    assert resolve(Resolver(), host) == (Endpoint(family, (host, 9092)),)
    assert stub.calls == []
    assert threads() == 0


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1.example", "1.2.3", "a\0b", "\udcff", ""])
def test_a_name_is_not_taken_for_a_literal_address(host: str) -> None:
    assert literal(Address(host, 9092)) is None


def test_a_name_that_is_unknown_or_impossible_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> list[tuple[Any, ...]]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with (
        answering(monkeypatch, refuse) as resolver,
        pytest.raises(TransportError, match="no such host: Name or service not known") as raised,
    ):
        resolve(resolver, "name")
    assert raised.value.retriable
    with pytest.raises(TransportError, match="no host can have that name"):
        resolve(Resolver(), "a" * 64 + ".example")
    assert no_thread_is_left()


def test_lookups_of_one_name_at_one_time_share_one_call(stub: Stub) -> None:
    resolver = Resolver()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        waiting = [resolver.lookup(Address("hung", 9092), loop) for _ in range(5)]
        stub.wait_for_calls(1)
        waiting += [resolver.lookup(Address("hung", 9092), loop) for _ in range(5)]
        stub.go_on.set()
        assert len(set(await asyncio.gather(*waiting))) == 1
        assert stub.calls == ["hung"]
        await resolver.lookup(Address("hung", 9092), loop)
        assert stub.calls == ["hung", "hung"], "a later lookup asks anew"

    asyncio.run(main())


def test_a_lookup_that_is_given_up_leaves_the_others_their_answer(stub: Stub) -> None:
    resolver = Resolver()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        given_up = resolver.lookup(Address("hung", 9092), loop)
        other = resolver.lookup(Address("hung", 9092), loop)
        given_up.cancel()
        stub.go_on.set()
        assert await other == (Endpoint(V4, ("192.0.2.1", 9092)),)
        assert given_up.cancelled()

    asyncio.run(main())


def test_at_most_two_threads_hang_and_what_waits_and_is_given_up_is_not_asked(stub: Stub) -> None:
    resolver = Resolver()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        hung = [resolver.lookup(Address(f"hung-{i}", 9092), loop) for i in range(5)]
        late = resolver.lookup(Address("late", 9092), loop)
        stub.wait_for_calls(2)
        assert threads() == 2
        for each in hung:
            each.cancel()
        stub.go_on.set()
        await late
        assert sorted(stub.calls) == ["hung-0", "hung-1", "late"]

    asyncio.run(main())


def test_a_name_is_resolved_while_another_hangs_and_the_loop_goes_on(stub: Stub) -> None:
    resolver = Resolver()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        hung = resolver.lookup(Address("hung", 9092), loop)
        assert await resolver.lookup(Address("name", 9092), loop)
        await asyncio.sleep(0)
        assert not hung.done()

    asyncio.run(main())


def test_a_loop_that_is_closed_before_the_answer_harms_no_other(stub: Stub) -> None:
    resolver = Resolver()

    async def leave() -> None:
        resolver.lookup(Address("hung", 9092), asyncio.get_running_loop())

    async def stay() -> None:
        other = resolver.lookup(Address("hung", 9092), asyncio.get_running_loop())
        stub.go_on.set()
        assert await other

    asyncio.run(leave())
    asyncio.run(stay())


def test_no_thread_left_to_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    resolver = Resolver()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            with pytest.raises(TransportError, match="can't start new thread"):
                resolve(resolver, "localhost")
    assert resolve(resolver, "localhost"), "the resolver works again"


def test_a_forks_child_resolves_although_both_threads_of_its_parent_hang(stub: Stub) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        for i in range(2):
            shared().lookup(Address(f"hung-{i}", 9092), loop)
        stub.wait_for_calls(2)

    asyncio.run(main())
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if resolve(shared(), "name") else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


HANGS = """
import asyncio, socket, threading
from rdmeta.config.address import Address
from rdmeta.net.resolve import shared
socket.getaddrinfo = lambda *_, **__: threading.Event().wait()

async def main():
    for name in ("one", "two", "three"):
        shared().lookup(Address(name, 9092), asyncio.get_running_loop())
    await asyncio.sleep(0.05)
    assert threading.active_count() == 3

asyncio.run(main())
print("end")
"""


def test_a_hung_resolver_does_not_hold_up_the_interpreters_exit() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", HANGS],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
