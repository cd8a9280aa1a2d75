"""One pipe per event loop wakes all clients of the loop."""

from __future__ import annotations

import asyncio
import gc

from answers import apply_answer
from frames import P, T
from processes import held

from rdmeta import MetadataCache
from rdmeta.client.driver import of_loop


def test_a_thousand_caches_share_two_descriptors() -> None:
    caches = [MetadataCache() for _ in range(1000)]
    woken: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        gc.collect()  # loops of earlier tests
        before = held()
        calls = [lambda i=i: woken.append(i) for i in range(1000)]
        for cache, call in zip(caches, calls, strict=True):
            of_loop(loop).add(cache, call)
        assert len(held() - before) == 2
        apply_answer(caches[700], T("orders", [P(0, 1, 0)]))
        await asyncio.sleep(0.05)
        assert woken == list(range(1000))
        for call in calls:
            of_loop(loop).remove(call)
        assert held() <= before

    asyncio.run(main())
    assert [cache.stats()["watches"] for cache in caches] == [0] * 1000


def test_a_loop_that_is_closed_keeps_no_descriptor() -> None:
    cache = MetadataCache()

    async def main() -> None:
        of_loop(asyncio.get_running_loop()).add(cache, lambda: None)

    gc.collect()
    before = held()
    asyncio.run(main())
    gc.collect()
    assert held() <= before
    assert cache.stats()["watches"] == 0
