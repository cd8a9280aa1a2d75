"""Kills the leader again and again; takes how long after the first word each client sees the next.

In each round the same subjects watch: rdmeta's client whose application reports that its own
connection broke; rdmeta's client that is idle and has a connection to the leader; and a busy Java
producer. Idle producers of others join in every `SOME`th round. They are watched for 20 s.
"""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from real_kafka import RealKafka

from bench.client import java, kafka, watch
from bench.client.kafka import FirstWord
from bench.client.watch import Watcher
from bench.figure import Missing

TOPIC = "watched"
SOME = 5
OURS_S = 5.0  # how long the subjects of every round are watched
THEIRS_S = 20.0
ALWAYS = ("told", "idle", "java_busy")
SOMETIMES = ("java_idle", "aiokafka", "kafka-python")
PYTHON = {
    "told": "rdmeta",
    "idle": "rdmeta",
    "aiokafka": "aiokafka",
    "kafka-python": "kafka-python",
}


def command(name: str, bootstrap: str) -> list[str]:
    """Returns a subject's command; raises Missing."""
    if name.startswith("java_"):
        return java.command(name.removeprefix("java_"), bootstrap, TOPIC)
    try:
        version(PYTHON[name])
    except PackageNotFoundError as error:
        raise Missing(f"{PYTHON[name]} is not installed") from error
    return watch.command(name, bootstrap, TOPIC)


def begin(kafka_: RealKafka, stack: ExitStack) -> tuple[dict[str, Watcher], dict[str, str]]:
    """Starts the subjects; returns them, and the reasons of those that are missing."""
    running, missing = {}, {}
    for name in (*ALWAYS, *SOMETIMES):
        try:
            running[name] = Watcher(name, command(name, kafka_.bootstrap))
        except Missing as reason:
            missing[name] = str(reason)
        else:
            stack.callback(running[name].end)
    return running, missing


def take(
    out: dict[str, Any],
    subjects: dict[str, Watcher],
    word: tuple[int, int],
    since: int,
    limit: float,
) -> None:
    """Adds each subject's milliseconds after the first word; `limit` if it saw nothing so long."""
    first, leader = word
    until = first + int(limit * 1e9)
    for name, subject in subjects.items():
        at = subject.seen(leader, since, until)
        out.setdefault(name, []).append(limit * 1e3 if at is None else (at - first) / 1e6)


def one_round(
    cluster: RealKafka, subjects: dict[str, Watcher], out: dict[str, Any], theirs: float
) -> None:
    """Kills the leader, takes the times, and starts the node again."""
    dead = kafka.settled(cluster, TOPIC)
    for subject in subjects.values():
        subject.connect(dead, cluster.ports[dead])
    for subject in subjects.values():
        subject.connected(dead)
    asking = FirstWord(cluster, TOPIC, dead)
    time.sleep(random.uniform(0.5, 1.5))
    process = cluster.running.pop(dead)
    since = time.monotonic_ns()
    process.kill()
    process.wait()
    asking.start()
    word = asking.wait()
    out.setdefault("word", []).append((word[0] - since) / 1e6)
    take(out, {n: s for n, s in subjects.items() if n in ALWAYS}, word, since, OURS_S)
    cluster.start(dead)
    take(out, {n: s for n, s in subjects.items() if n in SOMETIMES}, word, since, theirs)


def measure(rounds: int, theirs: float = THEIRS_S) -> dict[str, Any]:
    """Returns milliseconds after the first word by subject, and the subjects that are missing."""
    out: dict[str, Any] = {}
    with ExitStack() as stack:
        cluster = stack.enter_context(kafka.started())
        kafka.create(cluster, [TOPIC], list(cluster.nodes))
        subjects, missing = begin(cluster, stack)
        for turn in range(rounds):
            some = {n: s for n, s in subjects.items() if n in ALWAYS or turn % SOME == 0}
            one_round(cluster, some, out, theirs)
    out["cap"] = [1000.0] * rounds  # retry.backoff.max.ms
    return {**out, "missing": missing}
