"""Deliveries: threads and tasks that call listeners."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
import weakref
from contextlib import suppress
from typing import Any

import pytest
from answers import apply_answer
from frames import P, T
from waiting import PROMPT, until

from rdmeta import MetadataCache
from rdmeta.client.listeners import (
    ChangeInbox,
    EventInbox,
    Listener,
    LoopDelivery,
    ThreadDelivery,
    ended_all,
)


def test_an_inbox_gives_every_change_once(cache: MetadataCache) -> None:
    inbox = ChangeInbox(cache)
    assert inbox.take() is None
    apply_answer(cache, T("orders", [P(0, 1, 0)]))
    apply_answer(cache, T("orders", [P(0, 2, 1)]))
    changes: Any = inbox.take()
    assert list(changes) == list(cache.changes(0))
    assert inbox.take() is None


def test_an_inbox_of_events_keeps_the_newest() -> None:
    inbox = EventInbox()
    woken: list[int] = []
    fill = inbox.filling(lambda: woken.append(1))
    for n in range(10_005):
        fill(n)
    assert inbox.take() == tuple(range(5, 10_005))
    assert inbox.take() is None
    assert len(woken) == 10_005


def test_a_listener_must_be_callable() -> None:
    with pytest.raises(TypeError, match="callable"):
        Listener("print", EventInbox())  # type: ignore[arg-type]


def test_a_thread_ends_with_its_listener() -> None:
    inbox = EventInbox()
    listener = Listener(print, inbox)
    delivery = ThreadDelivery(listener)
    delivery.start()
    assert not delivery.join(0.05)
    del listener
    gc.collect()
    assert delivery.join(20)


def test_close_does_not_wait_for_a_listener_that_hangs() -> None:
    inbox, entered, going_on = EventInbox(), threading.Event(), threading.Event()

    def hang(batch: object) -> None:
        entered.set()
        going_on.wait(20)

    listener = Listener(hang, inbox)
    delivery = ThreadDelivery(listener)
    fill = inbox.filling(delivery.wake)
    delivery.start()
    fill(1)
    assert entered.wait(20)
    fill(2)
    delivery.close()
    assert not delivery.join(0.05)
    going_on.set()
    assert delivery.join(20)
    assert inbox.take() == (2,)


def test_a_coroutine_function_runs_as_one_task_at_a_time() -> None:
    async def main() -> None:
        inbox, calls = EventInbox(), []
        going_on = asyncio.Event()

        async def slow(batch: tuple[int, ...]) -> None:
            calls.append(batch)
            await going_on.wait()

        listener = Listener(slow, inbox)
        delivery = LoopDelivery(listener)
        fill = inbox.filling(delivery.wake)
        delivery.start()
        for n in range(3):
            fill(n)
            await asyncio.sleep(0.01)
        assert calls == [(0,)]
        going_on.set()
        await asyncio.sleep(0.01)
        assert calls == [(0,), (1, 2)]
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are new in Python 3.12")
def test_a_coroutine_function_may_run_as_an_eager_task() -> None:
    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        loop.set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined, unused-ignore]
        inbox, calls = EventInbox(), []

        async def listen(batch: tuple[int, ...]) -> None:
            calls.append(batch)

        listener = Listener(listen, inbox)
        delivery = LoopDelivery(listener)
        fill = inbox.filling(delivery.wake)
        delivery.start()
        for n in range(3):
            fill(n)
            await asyncio.sleep(0.01)
        assert calls == [(0,), (1,), (2,)]

    asyncio.run(main())


def test_close_cancels_a_listener_s_task_and_waits_for_it() -> None:
    async def main() -> None:
        inbox, ended = EventInbox(), []

        async def hang(batch: object) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.01)
                ended.append(batch)

        listener = Listener(hang, inbox)
        delivery = LoopDelivery(listener)
        delivery.start()
        inbox.filling(delivery.wake)(1)
        await asyncio.sleep(0.01)
        delivery.close()
        await ended_all([delivery], 10)
        assert ended == [(1,)]
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_close_waits_a_bounded_time_for_tasks_that_swallow_cancelling() -> None:
    async def main() -> None:
        async def go_on(batch: object) -> None:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            await asyncio.sleep(60)

        inbox = EventInbox()
        listener = Listener(go_on, inbox)
        delivery = LoopDelivery(listener)
        delivery.start()
        inbox.filling(delivery.wake)(1)
        await asyncio.sleep(0.01)
        delivery.close()
        begun = time.monotonic()
        await ended_all([delivery], 0.05)
        assert time.monotonic() - begun < PROMPT

    asyncio.run(main())


def test_a_listener_that_exits_is_called_again(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[object] = []

    def leave(batch: object) -> None:
        calls.append(batch)
        sys.exit(1)

    inbox = EventInbox()
    listener = Listener(leave, inbox)
    delivery = ThreadDelivery(listener)
    delivery.start()
    fill = inbox.filling(delivery.wake)
    for n in (1, 2):
        fill(n)
        until(lambda: len(calls) == n)  # noqa: B023
    delivery.close()
    assert delivery.join(10)
    assert "SystemExit" in caplog.messages[0]


def test_an_exception_of_a_task_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        inbox = EventInbox()

        async def wrong(batch: object) -> None:
            raise ValueError(f"no {batch}")

        listener = Listener(wrong, inbox)
        delivery = LoopDelivery(listener)
        fill = inbox.filling(delivery.wake)
        delivery.start()
        for n in range(2):
            fill(n)
            await asyncio.sleep(0.01)

    asyncio.run(main())
    assert "no (0,)" in caplog.text
    assert "no (1,)" in caplog.text


def test_a_delivery_does_not_keep_its_listener() -> None:
    class Owner:
        def take(self, batch: object) -> None: ...

    owner = Owner()
    listener: Listener | None = Listener(owner.take, EventInbox())
    assert listener is not None
    delivery = ThreadDelivery(listener)
    delivery.start()
    gone = weakref.ref(owner)
    del owner, listener
    gc.collect()
    until(lambda: gone() is None)
    assert delivery.join(20)
