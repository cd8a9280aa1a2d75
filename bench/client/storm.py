"""Counts Metadata requests while 1 000 topics have no leader: rdmeta's client and a Java producer.

All topics have one replica, on a node that is killed. The client needs all of them, and its
application reports that its connection to their leader broke. The producer sends to all of them.
Both reach the brokers through the proxies of the tests, which count.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from broker import METADATA
from real_kafka import RealKafka

import rdmeta
from bench.client import java, kafka
from bench.client.kafka import PATIENCE
from bench.client.watch import NETWORK_EXCEPTION, Watcher
from bench.figure import Missing

PREFIX = "storm-"
NODE = 3
OURS, JAVA = "rdmeta", "java"


def requests(cluster: RealKafka, client: str, since: float) -> int:
    """Returns how many Metadata requests a client sent, to any node, from `since` on."""
    return sum(proxy.count(METADATA, client, since) for proxy in cluster.proxies.values())


def storm(
    cluster: RealKafka, names: list[str], client: Any, seconds: float, out: dict[str, Any]
) -> None:
    """Kills the node, counts for so many seconds, and starts the node again."""
    since = time.monotonic()
    cluster.kill(NODE)
    for name in names:
        client.leader_unavailable(name, 0, NETWORK_EXCEPTION)
    time.sleep(seconds)
    if any(client.cache.leader(name, 0, -1) >= 0 for name in names):
        raise SystemExit("a topic of the killed node has a leader")
    for key in (OURS, JAVA):
        out.setdefault(key, []).append(requests(cluster, key, since))
    cluster.start(NODE)


def measure(topics: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Returns requests per storm, which takes so many seconds, by client."""
    out: dict[str, Any] = {}
    missing: dict[str, str] = {}
    names = [f"{PREFIX}{i}" for i in range(topics)]
    with ExitStack() as stack:
        cluster = stack.enter_context(kafka.started(proxied=True))
        kafka.create(cluster, names, [NODE])
        settings = {"bootstrap.servers": cluster.client_bootstrap, "client.id": OURS}
        client = stack.enter_context(rdmeta.Client(settings, topics=names))
        try:
            command = java.command("storm", cluster.client_bootstrap, PREFIX, str(topics))
        except Missing as reason:
            missing[JAVA] = str(reason)
        else:
            producer = Watcher(JAVA, command)
            stack.callback(producer.end)
            producer.connected(0, 0)
        for turn in range(rounds):
            if turn:
                time.sleep(1)
            cluster.until_in_sync(*names)
            for name in names:
                client.wait_for_topic(name, 0, timeout=PATIENCE)
            storm(cluster, names, client, seconds, out)
    for key in missing:
        out.pop(key, None)
    return {**out, "missing": missing}
