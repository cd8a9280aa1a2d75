"""The figures of the client: refreshes, elections, topics created, idle cost, many clients.

The rows with Apache Kafka need Java and `make kafka-jars`, and some need a JDK or another client's
package. Without these they are missing, and the run says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from bench.figure import PER_TOPIC, Figure, Goal, Job, Scale, beside, count

STORM_TOPICS = 1_000
CREATED = 20
STORMS = 2
WATCHED_S = 20


_figure = partial(beside, "client")


def _refresh(scale: Scale) -> Iterable[Figure]:
    topics = scale.python
    arguments = ("refresh", f"--topics={topics}", f"--rounds={scale.rounds}")
    job = Job("client", arguments, min(2, scale.processes))
    name = f"Client.refresh, {count(topics)} topics of {PER_TOPIC}, canned frames"
    floor = "blocking recv and apply"
    yield _figure(name, "ms", job, ("client", "floor"), floor, Goal(factor=1.5))
    other = "confluent list_topics()"
    keys = ("client", "confluent")
    yield _figure(f"{name}, beside confluent", "ms", job, keys, other, Goal(factor=1 / 30))


def _elections(scale: Scale) -> Iterable[Figure]:
    job = Job("client", ("elections", f"--rounds={scale.kills}", f"--seconds={WATCHED_S}"))
    complaining = "leader killed, Client that gets complaints"
    lag = f"{complaining}: lag behind the first broker"
    cap = ("told", "cap")
    yield _figure(lag, "ms", job, cap, "retry.backoff.max.ms", Goal(factor=0.8))
    busy = "busy Java producer"
    yield _figure(f"{lag}, beside Java", "ms", job, ("told", "java_busy"), busy)
    busy = "busy aiokafka producer"
    goal = Goal(factor=1.2)
    yield _figure(f"{lag}, beside aiokafka", "ms", job, ("told", "aiokafka_busy"), busy, goal)
    asked = f"{complaining}: Metadata requests until it knows, beside aiokafka"
    keys = ("told_requests", "aiokafka_busy_requests")
    yield _figure(asked, "requests", job, keys, busy, Goal(factor=2))
    idle = "leader killed, idle Client with a connection to it: lag behind the first broker"
    for key, client in (
        ("java_idle", "Java"),
        ("aiokafka", "aiokafka"),
        ("kafka-python", "kafka-python"),
    ):
        peer = f"idle {client} producer, {WATCHED_S} s if it saw nothing"
        name = f"{idle}, beside {client}"
        yield _figure(name, "ms", job, ("idle", key), peer, Goal(factor=0.1))


def _creation(scale: Scale) -> Iterable[Figure]:
    job = Job("client", ("creation", f"--rounds={CREATED if scale.kills else 0}"))
    name = "topic created -> wait_for_topic(), called then, returns"
    goal = Goal(factor=2, plus=120)  # 1.2 x topic.metadata.refresh.fast.interval.ms
    yield _figure(name, "ms", job, ("client", "loop"), "a loop that asks every 10 ms", goal)


def _idle(scale: Scale) -> Iterable[Figure]:
    topics = scale.python
    job = Job("client", ("idle", f"--topics={topics}", f"--seconds={scale.idle_seconds}"))
    what = f"of an idle Client, {count(topics)} topics"
    peer = "idle confluent AdminClient"
    keys = ("client_cpu", "confluent_cpu")
    yield _figure(f"CPU {what}", "us/s", job, keys, peer, Goal(factor=1))
    keys = ("client_threads", "confluent_threads")
    yield _figure(f"threads {what}", "threads", job, keys, peer, Goal(plus=1))


def _storm(scale: Scale) -> Iterable[Figure]:
    rounds = STORMS if scale.kills else 0
    sizes = (f"--topics={STORM_TOPICS}", f"--rounds={rounds}", f"--seconds={WATCHED_S}")
    job = Job("client", ("storm", *sizes))
    name = f"Metadata requests, {count(STORM_TOPICS)} topics leaderless for {WATCHED_S} s"
    peer = "Java producer that sends to all"
    yield _figure(name, "requests", job, ("rdmeta", "java"), peer, Goal(factor=1.5))


def _many(scale: Scale) -> Iterable[Figure]:
    seconds = f"--seconds={scale.idle_seconds / 4:g}"
    job = Job("client", ("many", f"--clients={scale.clients}", seconds))
    what = f"{count(scale.clients)} AsyncClients in one loop"
    plain = f"{count(scale.clients)} open streams"
    keys = ("memory", "plain_memory")
    yield _figure(f"{what}: memory of each", "KiB", job, keys, "an open stream")
    yield _figure(f"{what}: the loop's lag, p99", "ms", job, ("idle_lag", "quiet_lag"), plain)
    name = f"{what}: start, to the topic's leaders"
    yield _figure(name, "ms/client", job, ("ready", "opened"), "an open stream")


PARTS = (_refresh, _elections, _creation, _idle, _storm, _many)
