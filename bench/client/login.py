"""Times a new client from its making to its first answer, through SASL_SSL and SCRAM-SHA-512.

Beside it is confluent's AdminClient up to its first list_topics(). Both ask one broker of Apache
Kafka for all topics.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, sleep
from typing import Any

from kafka_security import SECURE

import rdmeta
from bench.client import kafka, lacks
from bench.client.kafka import PATIENCE

TOPICS = 20
PAUSE = 0.3


def ours(conf: dict[str, Any]) -> Callable[[], object]:
    """Makes a Client and gets its first answer; returns what ends it."""
    client = rdmeta.Client(conf, topics=rdmeta.ALL)
    client.refresh(timeout=PATIENCE)
    if len(client.cache) != TOPICS:
        raise SystemExit(f"the client knows {len(client.cache)} topics, not {TOPICS}")
    return client.close


def theirs(conf: dict[str, Any]) -> Callable[[], object]:
    """Makes an AdminClient and gets its first answer; returns what ends it."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({**conf, "log_level": 0})
    found = len(admin.list_topics(timeout=PATIENCE).topics)
    if found != TOPICS:
        raise SystemExit(f"confluent's client knows {found} topics, not {TOPICS}")
    return lambda: None  # it ends when nothing refers to it


def measure(rounds: int) -> dict[str, Any]:
    """Returns milliseconds: client, confluent; a first turn loads modules, and is not kept."""
    ways = {"client": ours, "confluent": theirs}
    missing = {}
    if reason := lacks("confluent_kafka"):
        missing["confluent"] = reason
        del ways["confluent"]
    out: dict[str, Any] = {key: [] for key in ways}
    with kafka.secured() as (cluster, security):
        kafka.create(cluster, [f"topic-{i}" for i in range(TOPICS)], cluster.nodes)
        conf = {"bootstrap.servers": cluster.address(1, SECURE), **security.conf("SCRAM-SHA-512")}
        for turn in range(rounds + 1):
            for key, way in ways.items():
                sleep(PAUSE)
                begin = perf_counter()
                end = way(conf)
                took = perf_counter() - begin
                end()
                if turn:
                    out[key].append(took * 1e3)
    return {**out, "missing": missing}
