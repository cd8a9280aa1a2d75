"""Creates topics and takes how long wait_for_topic(), called then, waits for the first leader.

Beside it a loop asks one broker every 10 ms from the same moment on.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import rdmeta
from bench.client import kafka
from bench.client.kafka import PATIENCE, PERIOD, Asker


def loop(asker: Asker, begin: float, took: list[float]) -> None:
    """Asks until the broker names a leader, and adds the milliseconds since `begin`."""
    while asker.leader() == -1:
        time.sleep(PERIOD)
    took.append((time.monotonic() - begin) * 1e3)
    asker.connection.close()


def measure(rounds: int) -> dict[str, Any]:
    """Returns milliseconds from the return of the creation on: client, loop."""
    out: dict[str, Any] = {"client": [], "loop": []}
    with (
        kafka.started() as cluster,
        rdmeta.Client({"bootstrap.servers": cluster.bootstrap}) as client,
    ):
        client.refresh(timeout=PATIENCE)
        for turn in range(rounds):
            topic = f"made-{turn}"
            asker = Asker(cluster.ports[1], topic)
            kafka.create(cluster, [topic], list(cluster.nodes))
            begin = time.monotonic()
            other = threading.Thread(target=loop, args=(asker, begin, out["loop"]))
            other.start()
            client.wait_for_topic(topic, timeout=PATIENCE)
            out["client"].append((time.monotonic() - begin) * 1e3)
            other.join()
            if client.cache.leader(topic, 0, -1) not in cluster.nodes:
                raise SystemExit(f"{topic}: wait_for_topic() returned without a leader")
            time.sleep(0.3)
    return out
