"""A connection to a server by its name: addresses in turn, time-outs, and how it ends."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
from broker import HTTP, METADATA, TLS_ALERT, Broker, Brokers, Fault, black_hole
from loop_thread import LoopThread
from loops import LOOPS, run
from processes import open_files
from proxy import Proxy
from waiting import PROMPT

from rdmeta.config.address import Address, parse_bootstrap
from rdmeta.errors import Error, MalformedError, RequestTimedOutError, TransportError
from rdmeta.net.resolve import Endpoint, Resolver
from rdmeta.net.session import Response
from rdmeta.net.stream import StreamConnection

METADATA_V1_ALL = struct.pack(">i", -1)


class Heard:
    """Records what a connection reports, and waits for it."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.answers: list[Response] = []
        self.error: Error | None = None
        self.hook: Callable[[str], object] = lambda _: None
        self._news = asyncio.Event()

    def on_connected(self) -> None:
        self._note("connected")

    def on_bytes(self) -> None:
        self._note("bytes")

    def on_response(self, response: Response) -> None:
        self.answers.append(response)
        self._note("response")

    def on_disconnected(self, error: Error) -> None:
        self.error = error
        self._note("disconnected")

    def _note(self, event: str) -> None:
        self.events.append(event)
        self._news.set()
        self.hook(event)

    async def wait(self, *events: str) -> str:
        """Returns the first of `events` that is reported, now or later."""
        while not any(event in self.events for event in events):
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 30)
        return next(event for event in self.events if event in events)


class Hosts(Resolver):
    """Resolves every name to the same "host:port"s; without any, a lookup hangs."""

    def __init__(self, *hosts: str) -> None:
        super().__init__()
        self.hosts = hosts
        self.futures: list[asyncio.Future[tuple[Endpoint, ...]]] = []

    def lookup(
        self, address: Address, loop: asyncio.AbstractEventLoop, family: int = socket.AF_UNSPEC
    ) -> asyncio.Future[tuple[Endpoint, ...]]:
        future: asyncio.Future[tuple[Endpoint, ...]] = loop.create_future()
        self.futures.append(future)
        if self.hosts:
            found = [parse_bootstrap(host)[0] for host in self.hosts]
            future.set_result(tuple(Endpoint(socket.AF_INET, tuple(each)) for each in found))
        return future


def opened(heard: Heard, *hosts: str, timeout: float = 20.0, **options: Any) -> StreamConnection:
    """Begins a connection to a name that has these addresses."""
    connection = StreamConnection(heard, resolver=Hosts(*hosts), **options)
    connection.open(Address("name", 9092), timeout)
    return connection


async def connected(heard: Heard, *hosts: str, **options: Any) -> StreamConnection:
    connection = opened(heard, *hosts, **options)
    assert await heard.wait("connected", "disconnected") == "connected", heard.error
    return connection


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    with Brokers(3) as running:
        running.truth.create("orders", partitions=3)
        yield running


@pytest.fixture
def broker(brokers: Brokers) -> Broker:
    return brokers[1]


@pytest.fixture
def refused() -> Iterator[str]:
    """Yields an address that nothing listens on, and nothing else can."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@contextmanager
def frozen(broker: Broker) -> Iterator[None]:
    broker.freeze()
    try:
        yield
    finally:
        broker.thaw()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_connection_by_name_shakes_hands_and_carries_requests(loop: str, broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()
        connection = StreamConnection(heard, client_id="tester")
        connection.open(Address("localhost", broker.port), 20.0)
        assert heard.events == []
        await heard.wait("connected")
        assert connection.is_open
        assert connection.session.version_for(METADATA, 0, 12) == 12
        number = connection.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("response")
        (answer,) = heard.answers
        assert (answer.correlation_id, answer.api_key) == (number, METADATA)
        assert broker.requests[-1].asked.client_id == "tester"
        connection.close()
        assert not connection.is_open

    run(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_addresses_are_tried_until_one_answers(loop: str, refused: str, brokers: Brokers) -> None:
    brokers[1].greeting = TLS_ALERT
    brokers[2].close_at_accept = True
    hosts = refused, brokers[1].address, brokers[2].address, brokers[3].address

    async def main() -> None:
        heard = Heard()
        connection = await connected(heard, *hosts)
        assert str(connection.channel.endpoint) == brokers[3].address
        assert heard.error is None
        connection.close()

    run(loop, main())
    assert len(brokers[3].accepted) == 1


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("silent", ["black hole", "frozen"])
def test_a_silent_address_keeps_the_next_one_waiting_for_its_share_alone(
    loop: str, silent: str, brokers: Brokers
) -> None:
    async def main() -> None:
        heard = Heard()
        begun = asyncio.get_running_loop().time()
        connection = await connected(heard, first, brokers[2].address, timeout=2.0)
        assert 0.9 < asyncio.get_running_loop().time() - begun < 2.0
        assert str(connection.channel.endpoint) == brokers[2].address
        connection.close()

    with ExitStack() as stack:
        if silent == "frozen":
            first = brokers[1].address
            stack.enter_context(frozen(brokers[1]))
        else:
            first = stack.enter_context(black_hole())
        run(loop, main())


@pytest.mark.slow
def test_a_slow_address_may_still_win_after_the_next_one_was_begun(
    refused: str, broker: Broker
) -> None:
    async def main() -> None:
        heard = Heard()
        with black_hole() as hole:
            broker.freeze()
            connection = opened(heard, broker.address, hole, timeout=0.8)
            await asyncio.sleep(0.5)
            broker.thaw()
            await heard.wait("connected")
            assert str(connection.channel.endpoint) == broker.address
            connection.close()

    asyncio.run(main())


def test_a_long_time_out_does_not_make_a_share_longer_than_a_second(brokers: Brokers) -> None:
    async def main() -> None:
        heard = Heard()
        begun = asyncio.get_running_loop().time()
        connection = await connected(heard, brokers[1].address, brokers[2].address, timeout=60)
        assert 0.9 < asyncio.get_running_loop().time() - begun < PROMPT
        connection.close()

    with frozen(brokers[1]):
        asyncio.run(main())


@pytest.mark.parametrize("reverse", [False, True])
def test_the_error_is_that_of_the_address_that_came_furthest(
    refused: str, broker: Broker, reverse: bool
) -> None:
    broker.greeting = HTTP
    hosts = [broker.address, refused]

    async def main() -> None:
        heard = Heard()
        opened(heard, *reversed(hosts) if reverse else hosts)
        await heard.wait("disconnected")
        assert isinstance(heard.error, MalformedError)
        assert "HTTP" in str(heard.error)

    asyncio.run(main())


def test_a_name_without_a_listener_says_so(refused: str) -> None:
    async def main() -> None:
        heard = Heard()
        opened(heard, refused, refused)
        await heard.wait("disconnected")
        assert isinstance(heard.error, TransportError)
        assert str(heard.error) == "cannot connect: Connection refused"

    asyncio.run(main())


def test_an_unknown_name_says_so() -> None:
    async def main() -> None:
        heard = Heard()
        StreamConnection(heard).open(Address("no-such-host.invalid", 9092), 30.0)
        await heard.wait("disconnected")
        assert isinstance(heard.error, TransportError)
        assert "no such host" in str(heard.error)

    asyncio.run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_time_out_says_how_far_the_attempt_came(loop: str, broker: Broker) -> None:
    async def main(*hosts: str) -> str:
        heard = Heard()
        begun = asyncio.get_running_loop().time()
        opened(heard, *hosts, timeout=0.1)
        await heard.wait("disconnected")
        assert isinstance(heard.error, RequestTimedOutError)
        assert 0.09 < asyncio.get_running_loop().time() - begun < PROMPT
        await asyncio.sleep(0)
        return str(heard.error)

    assert run(loop, main()) == "the name was not resolved in time"
    with black_hole() as hole, frozen(broker):
        assert run(loop, main(hole)) == "the host did not accept a connection in time"
        silence = "no answer to ApiVersions in time; it may not be a Kafka broker"
        assert run(loop, main(broker.address)) == silence
        assert run(loop, main(broker.address, hole)) == silence


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_that_was_blocked_does_not_make_a_broker_silent(loop: str, broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()
        connection = opened(heard, broker.address, timeout=0.2)
        time.sleep(0.5)
        assert await heard.wait("connected", "disconnected") == "connected"
        connection.close()
        with frozen(broker):
            heard = Heard()
            opened(heard, broker.address, timeout=0.2)
            for _ in range(4):
                time.sleep(0.5)
                await asyncio.sleep(0)
            assert await heard.wait("connected", "disconnected") == "disconnected"

    run(loop, main())


def test_the_time_out_ends_with_the_handshake(broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()
        connection = await connected(heard, broker.address, timeout=0.2)
        await asyncio.sleep(0.4)
        connection.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("response")
        connection.close()

    asyncio.run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_connection_that_breaks_is_reported_once(loop: str, broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()
        connection = await connected(heard, broker.address)
        broker.drop()
        await heard.wait("disconnected")
        assert str(heard.error) == "the broker reset the connection"
        assert not connection.is_open
        with pytest.raises(Error, match="the connection is closed"):
            connection.request(METADATA, 1, METADATA_V1_ALL)
        connection.close()
        await asyncio.sleep(0.01)
        assert heard.events.count("disconnected") == 1

    run(loop, main())


def test_an_answer_to_another_request_ends_the_connection(broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()
        connection = await connected(heard, broker.address)
        broker.next(Fault(wrong_correlation=1))
        number = connection.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("disconnected")
        assert str(heard.error) == f"the broker answered request {number + 1} instead of {number}"

    asyncio.run(main())


def test_a_request_before_the_handshake_is_refused(broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()
        connection = opened(heard, broker.address)
        with pytest.raises(Error, match="not ready"):
            connection.request(METADATA, 1, METADATA_V1_ALL)
        with pytest.raises(Error, match="not ready"):
            _ = connection.session
        connection.close()

    asyncio.run(main())


def test_a_client_id_that_no_header_holds_is_refused_before_anything_is_opened() -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="client_id has 32768 bytes"):
            StreamConnection(Heard(), client_id="x" * 32768)

    asyncio.run(main())


def sockets() -> set[str]:
    """Returns this process's open sockets."""
    gc.collect()
    return {each for each in open_files().values() if each.startswith("socket:")}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("stage", ["resolving", "connecting", "shaking hands", "two", "ready"])
def test_close_at_any_stage_leaves_nothing_and_reports_nothing(
    loop: str, stage: str, brokers: Brokers
) -> None:
    async def main() -> None:
        heard = Heard()
        hosts = {
            "resolving": (),
            "connecting": (hole,),
            "shaking hands": (brokers[1].address,),
            "two": (hole, brokers[1].address, hole),
            "ready": (brokers[2].address,),
        }[stage]
        connection = opened(heard, *hosts, timeout=0.3)
        await asyncio.sleep(0.15)
        reported = list(heard.events)
        assert ("connected" in reported) == (stage == "ready")
        connection.close()
        connection.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await asyncio.sleep(0.3)
        assert heard.events == reported

    open_before = sockets()
    with black_hole() as hole, frozen(brokers[1]):
        run(loop, main())
    end = time.monotonic() + 30
    while sockets() - open_before:  # those of the brokers are closed a bit later
        assert time.monotonic() < end
        time.sleep(0.01)


def test_an_attempt_that_still_resolves_is_closed_after_its_loop() -> None:
    async def main() -> StreamConnection:
        connection = opened(Heard())
        await asyncio.sleep(0)
        return connection

    asyncio.run(main()).close()


def test_a_close_right_after_the_name_is_resolved_or_refused_is_in_time(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    class Refusing(Hosts):
        def lookup(self, *args: Any, **kwargs: Any) -> asyncio.Future[tuple[Endpoint, ...]]:
            future: asyncio.Future[tuple[Endpoint, ...]] = (
                asyncio.get_running_loop().create_future()
            )
            future.set_exception(TransportError("no such host"))
            return future

    async def main() -> None:
        for resolver in (Hosts(broker.address), Refusing()):
            heard = Heard()
            connection = StreamConnection(heard, resolver=resolver)
            connection.open(Address("name", 9092), 20.0)
            connection.close()
            await asyncio.sleep(0.01)
            assert heard.events == []

    asyncio.run(main())
    gc.collect()
    assert broker.accepted == []
    assert caplog.records == []


@pytest.mark.parametrize("event", ["bytes", "connected", "response", "disconnected"])
def test_a_listener_may_close_the_connection_at_any_event(event: str, broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()

        def react(what: str) -> None:
            if what == event:
                connection.close()
            elif what == "connected":
                connection.request(METADATA, 1, METADATA_V1_ALL)
            elif what == "response":
                broker.drop()

        heard.hook = react
        connection = opened(heard, broker.address)
        await heard.wait(event)
        reported = list(heard.events)
        assert reported[-1] == event
        await asyncio.sleep(0.02)
        assert heard.events == reported

    asyncio.run(main())


def test_what_arrived_while_the_loop_was_blocked_can_be_taken_at_once(broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()
        connection = await connected(heard, broker.address)
        before = len(heard.events)
        connection.request(METADATA, 1, METADATA_V1_ALL)
        connection.take_arrived()
        assert len(heard.events) == before, "nothing can have arrived yet"
        blocked = threading.Event()
        blocked.wait(0.3)
        connection.take_arrived()
        assert heard.events[before:] == ["bytes", "response"]
        connection.close()
        connection.take_arrived()

    broker.fault.delay = 0.05
    asyncio.run(main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_forks_child_abandons_the_connection_without_a_byte(loop: str, broker: Broker) -> None:
    async def main() -> None:
        heard = Heard()
        with black_hole() as hole, frozen(broker):
            attempt = opened(Heard(), hole)
            connection = await connected(heard, proxy.address)
            reported = list(heard.events)
            child = os.fork()
            if not child:
                code = 1
                with suppress(BaseException):
                    open_before = sockets()
                    connection.abandon()
                    attempt.abandon()
                    code = 0
                    code += 2 * (len(sockets()) != len(open_before) - 2)
                    code += 4 * (heard.events != reported)
                    with suppress(Error):
                        connection.request(METADATA, 1, METADATA_V1_ALL)
                        code += 8
                os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
            attempt.close()
            assert len(proxy.requests) == 1
        connection.request(METADATA, 1, METADATA_V1_ALL)
        await heard.wait("response")
        assert len(proxy.requests) == 2
        connection.close()

    with Brokers() as others, LoopThread("proxy") as thread, Proxy(thread, others[1].address) as p:
        proxy = p
        run(loop, main())
