"""Times a live cache as a Python program sees it: `python -m bench.live PART`, used by run.

    handle   t.leader(p) beside no-op methods, and both lookups in Cython without the GIL
    bulk     leaders() of a list of str, of prepared names, and through cffi
    waits    from a change to the waiter that it wakes: a thread, an asyncio task
    attach   from a change to the process that reads the published file
    arrow    to_arrow("partitions"), into memory that others can read

Each part prints one JSON object of samples, one sample per round.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import subprocess
import sys
import tempfile
import threading
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, perf_counter_ns, sleep, thread_time, thread_time_ns
from typing import Any

import rdmeta
from bench import build
from bench.leader import PARTITIONS, name, pin

Samples = dict[str, list[float]]


def filled(topics: int, seed: int) -> rdmeta.MetadataCache:
    """Returns a cache with that many topics."""
    cache = rdmeta.MetadataCache()
    applied = cache.apply(build.response(topics, 8, seed), 12, asked=rdmeta.ALL)
    if applied.changed != topics or not 1 <= cache.leader(name(0), 0) <= 30:
        raise SystemExit(f"the cache did not take every topic of the response: {applied}")
    return cache


def p99(samples: Sequence[float]) -> float:
    """Returns the value that one sample of a hundred exceeds."""
    return sorted(samples)[len(samples) - 1 - len(samples) // 100]


# ---- handles ------------------------------------------------------------------------------------


def time_handle(handle: Any, partitions: Sequence[int]) -> float:
    """Returns nanoseconds per `handle.leader(partition)`, with the loop."""
    begin = thread_time_ns()
    for partition in partitions:
        handle.leader(partition)
    return (thread_time_ns() - begin) / len(partitions)


def time_named(subject: Any, topic: str, partitions: Sequence[int]) -> float:
    """Returns nanoseconds per `subject.leader(topic, partition)`, with the loop."""
    begin = thread_time_ns()
    for partition in partitions:
        subject.leader(topic, partition)
    return (thread_time_ns() - begin) / len(partitions)


def time_empty(partitions: Sequence[int]) -> float:
    """Returns nanoseconds per turn of the same loop with nothing in it."""
    begin = thread_time_ns()
    for _partition in partitions:
        pass
    return (thread_time_ns() - begin) / len(partitions)


def measure_handle(topics: int, queries: int, rounds: int, seed: int) -> Samples:
    """Times handles and no-op methods by turns. In Python a round has a handle of one topic, in
    Cython handles of eight."""
    chance = random.Random(seed)
    cache = filled(topics, seed)
    noop, nogil = build.extension("_noop"), build.extension("_nogil")
    partitions = [chance.randrange(PARTITIONS) for _ in range(queries)]
    out: Samples = {}
    for turn in range(rounds + 1):  # the first turn warms up and is not kept
        hot = [name(chance.randrange(topics)) for _ in range(8)]
        handle = cache.resolve(hot[0])
        loop = time_empty(partitions)
        took = {
            "noop": time_named(noop.Noop(), hot[0], partitions) - loop,
            "noop_handle": time_handle(noop.NoopHandle(), partitions) - loop,
            "handle": time_handle(handle, partitions) - loop,
            "by_name": time_named(cache, hot[0], partitions) - loop,
            **nogil.measure(cache, hot, queries),
        }
        for key, ns in took.items() if turn else ():
            out.setdefault(key, []).append(ns)
    return out


# ---- many rows ----------------------------------------------------------------------------------


def measure_bulk(topics: int, queries: int, rounds: int, seed: int) -> Samples:
    """Times random rows, one per topic; each way must return the leaders of single lookups."""
    from rdmeta import ffi

    chance = random.Random(seed)
    cache = filled(topics, seed)
    names = [name(i) for i in range(topics)]
    rows = [names[chance.randrange(topics)] for _ in range(queries)]
    partitions = [chance.randrange(PARTITIONS) for _ in range(queries)]
    numbers, found = array("i", partitions), array("i", bytes(4 * queries))
    prepared, reader = ffi.prepare(rows), ffi.reader(cache)
    ways: dict[str, Callable[[], Any]] = {
        "list": lambda: cache.leaders(rows, partitions, found),
        "list_buffer": lambda: cache.leaders(rows, numbers, found),
        "prepared": lambda: cache.leaders(prepared, numbers, found),
        "cffi": lambda: ffi.leaders(reader, prepared, numbers, found),
    }
    wanted = array("i", [cache.leader(t, p) for t, p in zip(rows, partitions, strict=True)])
    out: Samples = {}
    for turn in range(rounds + 1):
        begin = thread_time_ns()
        for topic, partition in zip(rows, partitions, strict=True):
            cache.leader(topic, partition)
        took = {"one": (thread_time_ns() - begin) / queries}
        for key, way in ways.items():
            found[:] = array("i", bytes(4 * queries))
            begin = thread_time_ns()
            way()
            took[key] = (thread_time_ns() - begin) / queries
            if found != wanted:
                raise SystemExit(f"{key}: its leaders are not those of single lookups")
        for key, ns in took.items() if turn else ():
            out.setdefault(key, []).append(ns)
    return out


# ---- waits --------------------------------------------------------------------------------------


class LeaderMove:
    """Changes one leader, to another one each time, and returns when it began to."""

    def __init__(self, cache: rdmeta.MetadataCache) -> None:
        self.cache = cache
        self.epoch = 1_000_000

    def __call__(self) -> float:
        self.epoch += 1
        begin = perf_counter_ns()
        applied = self.cache.apply_leader_hint(name(0), 0, 1 + self.epoch % 2, self.epoch)
        if not applied.changed:
            raise SystemExit("a leader hint was not taken")
        return begin


def woken_thread(wait: Callable[[], object], change: Callable[[], float], count: int) -> float:
    """Returns the p99 in us from `change()` to the return of `wait()` in another thread."""
    woken: list[float] = []
    ready, done = threading.Semaphore(0), threading.Semaphore(0)

    def waiter() -> None:
        for _ in range(count):
            ready.release()
            wait()
            woken.append(perf_counter_ns())
            done.release()

    thread = threading.Thread(target=waiter)
    thread.start()
    took = []
    for k in range(count):
        ready.acquire()
        sleep(0.0005)  # the other thread waits by then
        begin = change()
        done.acquire()
        took.append((woken[k] - begin) / 1e3)
    thread.join()
    return p99(took)


def woken_task(wait: Callable[[], Any], change: Callable[[], float], count: int) -> float:
    """Returns the p99 for a task that awaits `wait()`, with the change in another thread."""
    took: list[float] = []
    ready = threading.Semaphore(0)
    begun: list[float] = []

    async def waiter() -> None:
        for k in range(count):
            asyncio.get_running_loop().call_later(0.0005, ready.release)
            await wait()
            end = perf_counter_ns()
            while len(begun) <= k:
                sleep(0)
            took.append((end - begun[k]) / 1e3)

    def changer() -> None:
        for _ in range(count):
            ready.acquire()
            begun.append(change())

    thread = threading.Thread(target=changer)
    thread.start()
    asyncio.run(waiter())
    thread.join()
    return p99(took)


def measure_waits(topics: int, queries: int, rounds: int, seed: int) -> Samples:
    """Times a change's way to its waiter, beside the same way in threading and asyncio."""
    cache = filled(topics, seed)
    change = LeaderMove(cache)
    event = threading.Event()
    count = max(100, queries // 200)
    out: Samples = {}

    def wait_event() -> None:
        event.wait()
        event.clear()

    def set_event() -> float:
        begin = perf_counter_ns()
        event.set()
        return begin

    async def wait_soon() -> None:
        soon.append(asyncio.get_running_loop().create_future())
        await soon[-1]

    def set_soon() -> float:
        begin = perf_counter_ns()
        soon[-1].get_loop().call_soon_threadsafe(soon[-1].set_result, None)
        return begin

    soon: list[asyncio.Future[None]] = []
    for _ in range(rounds):
        took = {
            "thread": woken_thread(lambda: cache.wait_change(cache.version), change, count),
            "event": woken_thread(wait_event, set_event, count),
            "task": woken_task(lambda: cache.wait_change_async(cache.version), change, count),
            "soon": woken_task(wait_soon, set_soon, count),
        }
        for key, us in took.items():
            out.setdefault(key, []).append(us)
    return out


# ---- another process ----------------------------------------------------------------------------


def follow(path: str, topic: str) -> None:
    """The other process: prints when it saw another leader."""
    attached = rdmeta.attach(path)
    seen = attached.leader(topic, 0)
    print("ready", flush=True)
    while True:
        leader = attached.leader(topic, 0)
        if leader != seen:
            print(perf_counter_ns(), leader, flush=True)
            seen = leader
        sleep(0.001)


def measure_attach(topics: int, queries: int, rounds: int, seed: int) -> Samples:
    """Returns the milliseconds from a change to a process that looks each millisecond."""
    cache = filled(topics, seed)
    change = LeaderMove(cache)
    count = max(20, queries // 2000)
    out: Samples = {"p99": [], "median": []}
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory, "bench.rdmeta"))
        with cache.publish(path):
            command = [sys.executable, "-m", "bench.live", "follow", f"--path={path}"]
            reader = subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, cwd=build.ROOT, bufsize=1
            )
            assert reader.stdout is not None
            try:
                if reader.stdout.readline().strip() != "ready":
                    raise SystemExit("the process that follows did not start")
                change()  # whatever the leader was, it alternates from here on
                reader.stdout.readline()
                for _ in range(rounds):
                    took = []
                    for _ in range(count):
                        begin = change()
                        seen = int(reader.stdout.readline().split()[0])
                        took.append((seen - begin) / 1e6)
                        sleep(random.uniform(0, 0.03))
                    out["p99"].append(p99(took))
                    out["median"].append(sorted(took)[count // 2])
            finally:
                reader.kill()
                reader.wait()
    return out


# ---- Arrow --------------------------------------------------------------------------------------


def measure_arrow(topics: int, queries: int, rounds: int, seed: int) -> Samples:
    """Returns nanoseconds per row of to_arrow("partitions"), and of copying its bytes."""
    import pyarrow as pa

    cache = filled(topics, seed)
    out: Samples = {"export": [], "copy": []}
    for turn in range(rounds + 1):
        begin = thread_time_ns()
        table = pa.RecordBatchReader.from_stream(cache.to_arrow("partitions")).read_all()
        took = (thread_time_ns() - begin) / len(table)
        if len(table) != topics * PARTITIONS:
            raise SystemExit(f"to_arrow: {len(table)} rows, not those of the cache")
        source = bytes(table.nbytes)
        begin = thread_time_ns()
        bytearray(source)
        copied = (thread_time_ns() - begin) / len(table)
        if turn:
            out["export"].append(took)
            out["copy"].append(copied)
    return out


PARTS: dict[str, Callable[[int, int, int, int], Samples]] = {
    "handle": measure_handle,
    "bulk": measure_bulk,
    "waits": measure_waits,
    "attach": measure_attach,
    "arrow": measure_arrow,
}


def main() -> int:
    """Measures one part and prints it."""
    parser = argparse.ArgumentParser(prog="python -m bench.live", description=__doc__)
    parser.add_argument("part", choices=[*PARTS, "follow"])
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--path", help="of follow, the other process of attach")
    args = parser.parse_args()
    if args.part == "follow":
        follow(args.path, name(0))
        return 0
    if args.part in ("handle", "bulk", "arrow"):
        pin()
    gc.disable()
    wall, cpu = perf_counter(), thread_time()
    samples = PARTS[args.part](args.topics, args.queries, args.rounds, args.seed)
    alone = args.part in ("handle", "bulk", "arrow")  # the other parts sleep by design
    off_cpu = 1 - (thread_time() - cpu) / (perf_counter() - wall) if alone else 0.0
    known = {"bench": args.part, "topics": args.topics, "off_cpu": max(0.0, off_cpu)}
    print(json.dumps({**known, **samples}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
