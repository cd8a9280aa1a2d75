"""Kills the leader again and again; times each client from the first word until it sees the next.

*The first word* is the moment at which a broker first names another leader (first_word of the
tests). Four subjects watch in each round. The application of the first Client reports that its own
connection broke. The second Client is idle and has a connection to the leader. Two more are busy
producers, of Java and of aiokafka. Idle producers of other clients join in every fifth round, and
are watched for 20 s.
"""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from typing import Any

from first_word import FirstWord, Word
from real_kafka import RealKafka

from bench.client import java, kafka, lacks, watch
from bench.client.watch import Watcher
from bench.figure import Missing

TOPIC = "watched"
SOME = 5  # the others join in each round of this number
OURS_S = 5.0  # seconds for which the subjects of every round are watched
THEIRS_S = 20.0
CAP_MS = 1000.0  # retry.backoff.max.ms
ALWAYS = ("told", "idle", "java_busy", "aiokafka_busy")
SOMETIMES = ("java_idle", "aiokafka", "kafka-python")
MODULES = {
    "told": "rdmeta",
    "idle": "rdmeta",
    "aiokafka": "aiokafka",
    "aiokafka_busy": "aiokafka",
    "kafka-python": "kafka",
}


def command(name: str, bootstrap: str) -> list[str]:
    """Returns a subject's command; raises Missing."""
    if name.startswith("java_"):
        return java.command(name.removeprefix("java_"), bootstrap, TOPIC)
    if reason := lacks(MODULES[name]):
        raise Missing(reason)
    return watch.command(name, bootstrap, TOPIC)


def begin(cluster: RealKafka, stack: ExitStack) -> tuple[dict[str, Watcher], dict[str, str]]:
    """Starts the subjects; returns them, and the reasons of those that are missing."""
    running, missing = {}, {}
    for name in (*ALWAYS, *SOMETIMES):
        try:
            running[name] = Watcher(name, command(name, cluster.bootstrap))
        except Missing as reason:
            missing[name] = str(reason)
        else:
            stack.callback(running[name].end)
    return running, missing


def leader_of(word: Word) -> int:
    """Returns the leader that a broker names, or -1."""
    rows = word.topics.get(TOPIC)
    return rows[0][0] if rows else -1


def take(
    out: dict[str, Any], subjects: dict[str, Watcher], word: Word, since: float, limit: float
) -> None:
    """Adds each subject's milliseconds after the first word, at most `limit` seconds."""
    for name, subject in subjects.items():
        at = subject.seen(leader_of(word), since, word.at + limit)
        lag = limit if at is None else at - word.at
        out.setdefault(name, []).append(lag * 1e3)
        begun, seen = subject.requests
        out.setdefault(f"{name}_requests", []).append(seen - begun)


def one_round(
    cluster: RealKafka,
    words: FirstWord,
    subjects: dict[str, Watcher],
    out: dict[str, Any],
    theirs: float,
) -> None:
    """Kills the leader, takes the times, and starts the node again."""
    cluster.until_in_sync(TOPIC)
    dead = cluster.asked(1, [TOPIC]).leader(TOPIC, 0)
    for subject in subjects.values():
        subject.connect(dead, cluster.ports[dead])
    for subject in subjects.values():
        subject.connected(dead, cluster.ports[dead])
    time.sleep(random.uniform(0.5, 1.5))
    since = time.time()
    cluster.kill(dead)
    word = words.wait(lambda said: leader_of(said) not in (-1, dead), since, kafka.PATIENCE)
    out.setdefault("word", []).append((word.at - since) * 1e3)
    out.setdefault("cap", []).append(CAP_MS)
    take(out, {n: s for n, s in subjects.items() if n in ALWAYS}, word, since, OURS_S)
    cluster.start(dead)
    take(out, {n: s for n, s in subjects.items() if n in SOMETIMES}, word, since, theirs)


def measure(rounds: int, theirs: float = THEIRS_S) -> dict[str, Any]:
    """Returns milliseconds after the first word by subject, and the subjects that are missing."""
    out: dict[str, Any] = {}
    with ExitStack() as stack:
        cluster = stack.enter_context(kafka.started())
        kafka.create(cluster, [TOPIC], cluster.nodes)
        addresses = {node: cluster.address(node) for node in cluster.nodes}
        words = stack.enter_context(FirstWord(addresses, [TOPIC]))
        subjects, missing = begin(cluster, stack)
        for turn in range(rounds):
            some = {n: s for n, s in subjects.items() if n in ALWAYS or turn % SOME == 0}
            one_round(cluster, words, some, out, theirs)
    return {**out, "missing": missing}
