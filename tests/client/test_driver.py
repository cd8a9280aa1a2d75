"""The driver: turns, timers, faults of its own, what it tells the policy."""

from __future__ import annotations

import _thread
import asyncio
import logging
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from answers import apply_answer
from broker import Brokers, Fault
from frames import P, T
from waiting import PROMPT, until

from rdmeta import AsyncClient, Client
from rdmeta.client import driver as drivers
from rdmeta.client.actions import Connect, Node, Poll
from rdmeta.client.driver import Driver
from rdmeta.errors import Error


def conf(brokers: Brokers, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": brokers.bootstrap, "reconnect.backoff.ms": 10, **more}


def run(brokers: Brokers, test: Callable[[AsyncClient, Driver], Any], **more: Any) -> None:
    """Awaits `test` with a client that has refreshed, and with its driver."""

    async def main() -> None:
        async with AsyncClient(conf(brokers), topics=["orders"], **more) as client:
            await client.refresh()
            await test(client, client._driver)

    asyncio.run(main())


async def at_rest(driver: Driver) -> None:
    """Waits until the client's next timer is a refresh: nothing is in flight."""
    while driver._at < time.monotonic() + 60:
        await asyncio.sleep(0.01)


def counted(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Returns a list that gets the time of each turn from now on."""
    turns: list[float] = []
    poll = driver.policy.poll

    def count(now: float) -> Poll:
        turns.append(now)
        return poll(now)

    monkeypatch.setattr(driver.policy, "poll", count)
    return turns


@pytest.mark.slow
def test_an_idle_client_has_no_turns(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(client: AsyncClient, driver: Driver) -> None:
        await at_rest(driver)
        turns = counted(driver, monkeypatch)
        await asyncio.sleep(0.5)
        assert turns == []

    run(brokers, test)


def test_calls_of_one_round_of_the_loop_share_a_turn(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(client: AsyncClient, driver: Driver) -> None:
        await at_rest(driver)
        turns = counted(driver, monkeypatch)
        for n in range(100):
            client.epoch_seen("orders", 0, -n)
        await asyncio.sleep(0.01)
        assert len(turns) == 1

    run(brokers, test)


def test_a_change_by_another_door_is_a_turn_and_an_own_one_is_none(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(client: AsyncClient, driver: Driver) -> None:
        await at_rest(driver)
        turns = counted(driver, monkeypatch)
        for n in range(3):
            apply_answer(client.cache, T("other", [P(0, 1, n)]))
        await asyncio.sleep(0.05)
        assert len(turns) == 1
        driver._wake()
        await asyncio.sleep(0.05)
        assert len(turns) == 1

    run(brokers, test)


def test_a_fault_in_a_turn_is_logged_and_the_client_goes_on(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(client: AsyncClient, driver: Driver) -> None:
        poll = driver.policy.poll
        failed: list[float] = []

        def fail_once(now: float) -> Poll:
            if not failed:
                failed.append(now)
                raise ZeroDivisionError("a fault")
            return poll(now)

        monkeypatch.setattr(driver.policy, "poll", fail_once)
        await client.refresh(timeout=20)
        assert failed
        assert "a turn of the client failed: ZeroDivisionError('a fault')" in caplog.text

    run(brokers, test)


def test_a_fault_in_one_action_does_not_stop_the_others(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(client: AsyncClient, driver: Driver) -> None:
        poll, lost = driver.policy.poll, []
        more = [Connect(99, Node(7, "h", 1), 1.0)]

        def add(now: float) -> Poll:
            found = poll(now)
            added, more[:] = tuple(more), []
            return found._replace(actions=(*added, *found.actions))

        def fail(*_: Any) -> Any:
            raise ZeroDivisionError("no link")

        monkeypatch.setattr(driver.policy, "poll", add)
        monkeypatch.setattr(drivers, "SocketLink", fail)
        monkeypatch.setattr(driver.policy, "on_disconnected", lambda *what: lost.append(what))
        await client.refresh(timeout=20)
        assert [each[0] for each in lost] == [99]
        assert "an action of the client failed" in caplog.text

    run(brokers, test)


def test_a_fault_in_a_report_is_logged_and_the_client_goes_on(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(client: AsyncClient, driver: Driver) -> None:
        def fail(*_: Any) -> Any:
            raise ZeroDivisionError("a fault")

        with monkeypatch.context() as patched:
            patched.setattr(driver.policy, "on_response", fail)
            with pytest.raises(Error):
                await client.refresh(timeout=0.2)
        assert "a report to the policy failed" in caplog.text
        assert all(link.connection.is_open for link in driver.links.values())

    run(brokers, test)


def test_reads_of_leaders_reach_the_policy(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        conf_ = conf(brokers, **{"metadata.max.idle.ms": 60_000})
        async with AsyncClient(conf_, topics=["orders"]) as client:
            await client.refresh()
            touched: list[str] = []
            driver = client._driver
            monkeypatch.setattr(driver.policy, "touch", lambda topic, now: touched.append(topic))
            for partition in range(6):
                await client.leader("orders", partition)
            await client.refresh()
            assert touched == ["orders"]
            assert driver.touched == set()

    asyncio.run(main())


def test_topics_with_errors_do_not_flood_the_log(
    brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"secret{n}" for n in range(500)]
    for broker in brokers:
        broker.fault = Fault(topic_errors=dict.fromkeys(names, 29))
    for name in names:
        brokers.truth.create(name)
    caplog.set_level(logging.WARNING, "rdmeta.client")
    seen: list[Any] = []
    with Client(conf(brokers), topics=names) as client:
        client.on_error(seen.extend)
        client.refresh()
        client.refresh(force=True)
        until(lambda: len({each.topic for each in seen}) == 500)
    lines = [line for line in caplog.messages if "secret" in line]
    assert len(lines) <= 10
    assert "500 topics have errors" in caplog.text


def test_a_sweep_is_due_when_the_cache_says_so(brokers: Brokers) -> None:
    async def test(client: AsyncClient, driver: Driver) -> None:
        left = client.cache.sweep()
        assert left is not None
        now = time.monotonic()
        assert left - 1 < driver._sweep(now) - now < left + 1
        client.cache.purge()

    run(brokers, test)
    empty = Driver(Client(conf(brokers)).cache, Client(conf(brokers))._config)
    assert empty._sweep(0.0) == math.inf


@pytest.mark.parametrize("place", [(asyncio, "SelectorEventLoop"), (os, "pipe")])
def test_a_process_without_descriptors_learns_of_it(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str]
) -> None:
    def fail(*_: Any) -> Any:
        raise OSError(24, "Too many open files")

    client = Client(conf(brokers))
    with monkeypatch.context() as patched:
        patched.setattr(*place, fail)
        with pytest.raises(OSError, match="Too many open files"):
            client.refresh()
    with pytest.raises(Error, match="closed"):
        client.refresh()
    client.close()
    assert "rdmeta-client" not in [each.name for each in threading.enumerate()]


def test_a_loop_without_descriptors_can_start_a_client_later(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise OSError(24, "Too many open files")

    async def main() -> None:
        client = AsyncClient(conf(brokers))
        with monkeypatch.context() as patched:
            patched.setattr(os, "pipe", fail)
            with pytest.raises(OSError, match="Too many open files"):
                await client.refresh()
        assert await client.leader("orders", 1) == 2
        await client.close()

    asyncio.run(main())


@pytest.mark.parametrize("place", [(threading.Thread, "start"), (_thread, "start_new_thread")])
def test_a_process_without_room_for_a_thread_learns_of_it(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str]
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    client = Client(conf(brokers))
    with monkeypatch.context() as patched:
        patched.setattr(*place, fail)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            client.refresh()
    begun = time.monotonic()
    client.close()
    assert time.monotonic() - begun < PROMPT
    with pytest.raises(Error, match="closed"):
        client.refresh()
