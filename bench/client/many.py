"""Measures many AsyncClients in one loop; an embedded cluster in another process answers them.

`python -m bench.client.many` is that process: it prints the bootstrap servers.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import rdmeta
from bench.build import ROOT

TOPIC = "orders"
PARTITIONS = 10
TICK = 0.01
EACH = 6  # descriptors per client, at most
# The mock brokers accept few connections at once; the kernel tries again after 1 s, then 2 s.
AT_ONCE = 4
BETWEEN = 0.002


def serve() -> None:
    """Runs the cluster until the input ends."""
    with rdmeta.EmbeddedCluster(brokers=3) as cluster:
        cluster.create_topic(TOPIC, partitions=PARTITIONS, replication_factor=3)
        print(cluster.bootstrap, flush=True)
        sys.stdin.read()


@contextmanager
def cluster() -> Iterator[str]:
    """Yields the bootstrap servers of a cluster in another process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.client.many"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.communicate(timeout=60)


def resident() -> int:
    """Returns the bytes of memory that the process has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


async def lag(seconds: float) -> float:
    """Returns the milliseconds by which a timer was late, p99 of one every 10 ms."""
    loop = asyncio.get_running_loop()
    late = []
    end = loop.time() + seconds
    while (now := loop.time()) < end:
        await asyncio.sleep(TICK)
        late.append((loop.time() - now - TICK) * 1e3)
    return sorted(late)[len(late) - 1 - len(late) // 100]


class Streams:
    """Plain connections: the floor of the clients' memory."""

    def __init__(self) -> None:
        self.open: list[asyncio.StreamWriter] = []
        self.seconds = 0.0  # for opening them

    async def add(self, bootstrap: str, count: int) -> None:
        """Opens so many connections, one after the other."""
        servers = [server.rsplit(":", 1) for server in bootstrap.split(",")]
        for i in range(count):
            host, port = servers[i % len(servers)]
            begin = perf_counter()
            _, writer = await asyncio.open_connection(host, int(port))
            self.seconds += perf_counter() - begin
            self.open.append(writer)
            await asyncio.sleep(BETWEEN)

    async def close(self) -> None:
        """Closes them."""
        for writer in self.open:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self.open))


async def clients(bootstrap: str, count: int) -> list[Any]:
    """Starts the clients, some at once, and waits until each knows the topic's leaders."""
    made = []
    for start in range(0, count, AT_ONCE):
        some = [
            rdmeta.AsyncClient({"bootstrap.servers": bootstrap}, topics=[TOPIC])
            for _ in range(min(AT_ONCE, count - start))
        ]
        await asyncio.gather(*(client.wait_for_topic(TOPIC, timeout=60) for client in some))
        made += some
    for client in made:
        if client.cache.leader(TOPIC, PARTITIONS - 1, -1) not in (1, 2, 3):
            raise SystemExit("a client does not know the topic's leaders")
    return made


async def run(bootstrap: str, count: int, seconds: float) -> dict[str, Any]:
    """Measures the floor first, then the clients; each is idle for `seconds`."""
    for client in await clients(bootstrap, 2):  # loads the modules, which do not count
        await client.close()
    streams = Streams()
    before = resident()
    await streams.add(bootstrap, count)
    plain = resident() - before
    quiet = await lag(seconds)
    await streams.close()
    before, begin = resident(), perf_counter()
    made = await clients(bootstrap, count)
    ready = perf_counter() - begin
    memory = resident() - before
    idle = await lag(seconds)
    await asyncio.gather(*(client.close() for client in made))
    return {
        "memory": [memory / count / 1024],
        "plain_memory": [plain / count / 1024],
        "idle_lag": [idle],
        "quiet_lag": [quiet],
        "ready": [ready * 1e3 / count],
        "opened": [streams.seconds * 1e3 / count],
    }


def measure(count: int, seconds: float) -> dict[str, Any]:
    """Returns KiB per client, and the loop's lag in ms; beside plain connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = EACH * count + 100
    if hard != resource.RLIM_INFINITY and hard < wanted:
        return {"missing": {"*": f"{count} clients need {wanted} descriptors, {hard} are allowed"}}
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    with cluster() as bootstrap:
        return asyncio.run(run(bootstrap, count, seconds))


if __name__ == "__main__":
    serve()
