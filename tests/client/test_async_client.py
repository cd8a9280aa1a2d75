"""AsyncClient alone: loops, tasks, cancellation, changes(), uvloop, a thousand clients."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from answers import apply_answer
from broker import METADATA, Brokers, Fault
from frames import P, T
from waiting import until

from rdmeta import AsyncClient, Client, EmbeddedCluster
from rdmeta.client import driver as drivers
from rdmeta.errors import Error, RequestTimedOutError

uvloop: Any = None
with suppress(ImportError):
    uvloop = importlib.import_module("uvloop")

Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Returns a function that runs a coroutine function in a new loop of that kind."""
    if request.param == "asyncio":
        return lambda main: asyncio.run(main())
    if uvloop is None:
        pytest.skip("uvloop is not installed")

    def run_in_uvloop(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        loop = uvloop.new_event_loop()
        try:
            return loop.run_until_complete(main())
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    return run_in_uvloop


def conf(brokers: Brokers, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": brokers.bootstrap, "reconnect.backoff.ms": 10, **more}


async def soon(holds: Callable[[], object]) -> None:
    """Returns when `holds()` is true; fails the test if that takes too long."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.001)


def test_a_client_runs_in_any_loop_and_leaves_nothing(run: Run, brokers: Brokers) -> None:
    async def main() -> None:
        brokers.truth.lead("orders", 1, 2)
        async with AsyncClient(conf(brokers)) as client:
            seen: list[Any] = []
            client.on_change(seen.extend)
            assert await client.leader("orders", 1) == 2
            brokers.truth.lead("orders", 1, 3)
            client.leader_unavailable("orders", 1, 6)
            await soon(lambda: client.cache.leader("orders", 1) == 3)
            await soon(lambda: seen and seen[-1].kind == "leader_changed")
            apply_answer(client.cache, T("other", [P(0, 1, 0)]))
            await soon(lambda: any(each.topic == "other" for each in seen))
            assert len(asyncio.all_tasks()) == 1
        assert len(asyncio.all_tasks()) == 1

    run(main)  # a loop's first use opens descriptors of its own
    gc.collect()
    until(lambda: sum(each.open for each in brokers) == 0)  # their sockets count, too
    before = len(os.listdir("/proc/self/fd"))
    run(main)
    gc.collect()
    until(lambda: sum(each.open for each in brokers) == 0)
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)
    assert [t for t in threading.enumerate() if t.name.startswith("rdmeta-")] == []


def test_a_wait_that_is_cancelled_leaves_no_waiter(run: Run, brokers: Brokers) -> None:
    async def main() -> None:
        async with AsyncClient(conf(brokers)) as client:
            await client.refresh(())
            for _ in range(3):
                task = asyncio.ensure_future(client.wait_for_topic("never"))
                await asyncio.sleep(0.02)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            with pytest.raises((asyncio.TimeoutError, TimeoutError)):
                await asyncio.wait_for(client.wait_for_topic("never"), 0.05)
            assert client._driver._waiters == {}

    run(main)


@pytest.mark.slow
def test_a_blocked_loop_is_no_silent_broker(run: Run, brokers: Brokers) -> None:
    """The answers arrive while the loop is blocked beyond every time-out."""

    async def main() -> None:
        problems: list[Any] = []
        conf_ = conf(brokers, **{"socket.timeout.ms": 300})
        async with AsyncClient(conf_, topics=["orders"]) as client:
            client.on_error(problems.extend)
            await client.refresh()
            for broker in brokers:
                broker.fault = Fault(delay=0.1)
            brokers.truth.create("large", partitions=2000)
            task = asyncio.ensure_future(client.refresh(["large"]))
            await soon(lambda: any(link._sent for link in client._driver.links.values()))
            time.sleep(1)
            await task
            assert len(client.cache.topic("large").partitions) == 2000
            accepted = sum(len(each.accepted) for each in brokers)
            for _ in range(3):
                await client.refresh(wait=False)
                await soon(lambda: any(link._sent for link in client._driver.links.values()))
                time.sleep(0.5)
            await client.refresh()
            assert problems == []
            assert sum(len(each.accepted) for each in brokers) == accepted

    run(main)


def test_a_client_stays_in_its_loop(brokers: Brokers) -> None:
    client = AsyncClient(conf(brokers))

    async def first() -> None:
        await client.refresh(())

        async def second() -> None:
            for call in (client.refresh, client.close, client.start):
                with pytest.raises(Error, match="another event loop"):
                    await call()

        thread = threading.Thread(target=lambda: asyncio.run(second()))
        thread.start()
        while thread.is_alive():
            await asyncio.sleep(0.01)
        await client.close()

    asyncio.run(first())


def test_changes_come_until_the_client_is_closed(run: Run, brokers: Brokers) -> None:
    async def main() -> list[Any]:
        seen: list[Any] = []
        client = AsyncClient(conf(brokers), topics=["orders"])
        changes = client.changes()

        async def read() -> None:
            async for each in changes:
                seen.extend(each)

        await client.refresh()  # before the first step of the iterator
        task = asyncio.ensure_future(read())
        brokers.truth.lead("orders", 0, 3)
        await client.refresh()
        await soon(lambda: seen and seen[-1].kind == "leader_changed")
        assert seen == list(client.cache.changes(0))
        await client.close()
        await asyncio.wait_for(task, 20)
        return seen

    run(main)


def test_changes_right_before_close_still_come(run: Run, brokers: Brokers) -> None:
    async def main() -> None:
        async with AsyncClient(conf(brokers), topics=["orders"]) as client:
            await client.refresh()
            changes = client.changes()
            begun = asyncio.ensure_future(changes.__anext__())
            await asyncio.sleep(0)
            for leader in (2, 3):
                brokers.truth.lead("orders", 0, leader)
                await client.refresh()
        found = [*await begun, *[each async for more in changes for each in more]]
        assert [each.kind for each in found] == ["leader_changed", "leader_changed"]

    run(main)


def test_changes_of_some_topics_leave_out_the_others(run: Run, brokers: Brokers) -> None:
    async def main() -> None:
        async with AsyncClient(conf(brokers)) as client:
            changes = client.changes(["b"])
            for name in ("a", "b", "c"):
                apply_answer(client.cache, T(name, [P(0, 1, 0)]))
            async for each in changes:
                assert {change.topic for change in each} == {"b"}
                break

    run(main)


def test_an_iterator_that_is_cancelled_leaves_nothing(brokers: Brokers) -> None:
    async def main() -> None:
        async with AsyncClient(conf(brokers)) as client:
            await client.refresh(())
            n = len(client._driver.on_change)

            async def read() -> None:
                async for _ in client.changes(["none"]):
                    pass

            task = asyncio.ensure_future(read())
            await asyncio.sleep(0.02)
            assert len(client._driver.on_change) == n + 1
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert len(client._driver.on_change) == n

    asyncio.run(main())


def test_a_client_that_is_dropped_ends(run: Run, brokers: Brokers) -> None:
    async def main() -> None:
        client = AsyncClient(conf(brokers), topics=["orders"])
        await client.refresh()
        assert sum(each.open for each in brokers) > 0
        del client
        gc.collect()
        await soon(lambda: sum(each.open for each in brokers) == 0)

    run(main)


def test_a_loop_may_end_before_its_client(run: Run, brokers: Brokers) -> None:
    clients = []

    async def main() -> None:
        clients.append(AsyncClient(conf(brokers), topics=["orders"]))
        await clients[0].refresh()

    run(main)
    del clients[0]
    gc.collect()
    until(lambda: sum(each.open for each in brokers) == 0)


def test_close_after_the_loop_has_ended_closes_the_sockets(brokers: Brokers) -> None:
    client = AsyncClient(conf(brokers), topics=["orders"])
    asyncio.run(_refreshed(client))
    assert sum(each.open for each in brokers) > 0
    asyncio.run(client.close())
    until(lambda: sum(each.open for each in brokers) == 0)


def test_a_client_ends_although_its_loop_was_closed_during_a_wait(brokers: Brokers) -> None:
    async def hang(updates: Any) -> None:
        await asyncio.sleep(100)

    async def begin(client: AsyncClient) -> list[Any]:
        async def read() -> None:
            async for _ in client.changes():
                pass

        client.on_update(hang)
        await client.refresh()
        waits = [
            asyncio.ensure_future(client.wait_for_topic("never")),
            asyncio.ensure_future(read()),
        ]
        await asyncio.sleep(0.05)
        return waits

    loop = asyncio.new_event_loop()
    # asyncio logs tasks that are pending at their end
    loop.set_exception_handler(lambda *_: None)
    client = AsyncClient(conf(brokers))
    waits = loop.run_until_complete(begin(client))
    loop.close()
    asyncio.run(client.close())
    until(lambda: sum(each.open for each in brokers) == 0)
    del waits
    gc.collect()


def test_a_client_that_is_dropped_while_its_loop_stands_ends(brokers: Brokers) -> None:
    loop = asyncio.new_event_loop()
    client = AsyncClient(conf(brokers))
    loop.run_until_complete(client.refresh())
    del client
    gc.collect()
    loop.close()
    gc.collect()  # an open socket would be a ResourceWarning
    until(lambda: sum(each.open for each in brokers) == 0)


def test_a_coroutine_that_is_closed_leaves_no_waiter(brokers: Brokers) -> None:
    async def main() -> None:
        async with AsyncClient(conf(brokers)) as client:
            await client.refresh()
            wait = client.wait_for_topic("never")
            wait.send(None)
            wait.close()
            assert client.stats()["waiters"] == 0

    asyncio.run(main())


def test_listeners_are_added_in_the_client_s_loop(brokers: Brokers) -> None:
    async def main() -> None:
        async with AsyncClient(conf(brokers)) as client:
            with pytest.raises(Error, match="another event loop"):
                await asyncio.to_thread(client.on_change, print)
            assert client._driver.on_change == []

    asyncio.run(main())


async def _refreshed(client: AsyncClient) -> None:
    await client.refresh()


def test_a_listener_may_be_a_coroutine_function(run: Run, brokers: Brokers) -> None:
    async def main() -> None:
        seen: list[Any] = []

        async def listen(updates: Any) -> None:
            await asyncio.sleep(0.01)
            seen.extend(updates)

        async def hang(updates: Any) -> None:
            await asyncio.sleep(100)

        async with AsyncClient(conf(brokers), topics=["orders"]) as client:
            client.on_update(listen)
            client.on_update(hang)
            await client.refresh()
            await client.refresh()
            await soon(lambda: len(seen) >= 2)
        assert len(asyncio.all_tasks()) == 1

    run(main)


def test_close_may_be_awaited_in_a_listener(brokers: Brokers) -> None:
    async def main() -> None:
        client = AsyncClient(conf(brokers), topics=["orders"])

        async def listen(changes: Any) -> None:
            await client.close()

        client.on_change(listen)
        await client.start()
        await soon(lambda: client._driver.is_closed)
        await asyncio.sleep(0.01)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_cancelling_at_any_moment_leaves_a_client_that_works(brokers: Brokers) -> None:
    async def main() -> None:
        async with AsyncClient(conf(brokers), topics=["orders"]) as client:
            calls: list[Callable[[], Awaitable[Any]]] = [
                client.refresh,
                lambda: client.wait_for_topic("never"),
                lambda: client.leader("orders", 1),
                client.quorum,
            ]
            for round in range(100):
                tasks = [asyncio.ensure_future(call()) for call in calls]
                for _ in range(round % 7):
                    await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            assert client._driver._waiters == {}
            assert await client.leader("orders", 1) == 2

    asyncio.run(main())


@pytest.mark.slow
def test_a_thousand_clients_share_one_loop() -> None:
    with EmbeddedCluster(brokers=3) as cluster:
        cluster.create_topic("orders", partitions=3)

        async def main() -> None:
            before = len(os.listdir("/proc/self/fd"))
            threads = threading.active_count()
            clients = [AsyncClient({"bootstrap.servers": cluster.bootstrap}) for _ in range(1000)]
            found = await asyncio.gather(*(each.leader("orders", 1) for each in clients))
            assert found == [found[0]] * 1000
            assert len([each for each in drivers._open if each._reader >= 0]) == 1
            assert threading.active_count() <= threads
            await asyncio.sleep(0.5)  # connections to bootstrap servers end in this time
            # Two connections each at most, as a late answer has a hedge; both ends of each are in
            # this process. All share one pipe.
            assert len(os.listdir("/proc/self/fd")) - before <= 2 * 2 * 1000 + 10
            costs = [1.0]
            while min(costs) >= 0.05:  # on a busy machine some still connect
                assert len(costs) < 30, costs
                begun = time.thread_time()
                await asyncio.sleep(1)
                costs.append(time.thread_time() - begun)
            for each in clients:
                await each.close()

        asyncio.run(main())


def test_both_clients_may_share_a_cache(brokers: Brokers) -> None:
    async def main() -> None:
        with Client(conf(brokers)) as blocking:
            async with AsyncClient(conf(brokers), cache=blocking.cache) as client:
                await client.wait_for_topic("orders")
                assert blocking.leader("orders", 1, timeout=0) == 2

    asyncio.run(main())


def test_a_wait_times_out_although_brokers_are_silent(run: Run, brokers: Brokers) -> None:
    async def main() -> None:
        async with AsyncClient(conf(brokers)) as client:
            await client.refresh(())
            for broker in brokers:
                broker.fault = Fault(silent=True)
            begun = time.monotonic()
            with pytest.raises(RequestTimedOutError):
                await client.refresh(timeout=0.2)
            assert time.monotonic() - begun < 5

    run(main)


def test_no_warning_comes_from_an_open_client_at_the_end(brokers: Brokers) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        client = AsyncClient(conf(brokers), topics=["orders"])
        asyncio.run(_refreshed(client))
        del client
        gc.collect()
    assert [str(each.message) for each in caught] == []
    assert brokers.requests(METADATA)


def test_what_does_not_wait_is_no_coroutine(run: Run, brokers: Brokers) -> None:
    async def main() -> None:
        async with AsyncClient(conf(brokers)) as client:
            client.subscribe(["orders"])
            await client.leader("orders", 1)
            client.leader_unavailable("orders", 1, 6)
            client.epoch_seen("orders", 1, 99)
            assert client.stats()["due"] == 1  # no complaint was lost
            client.need("other")
            assert client.least_loaded() is not None
            assert client.leader_hint("orders", 1, 1, 0).changed == 0
            client.forget("other")

    run(main)
