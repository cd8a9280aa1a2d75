"""The rows: a figure of one way to do it, at a size, beside rdmeta's own in the same run."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.figure import PER_TOPIC, count, ratio_of
from bench.results import Row

Run = dict[str, Any]
Runs = Mapping[tuple[str, int], Sequence[Run]]  # by peer and topics, one run per turn


@dataclass(frozen=True)
class Line:
    """One way: the peer whose worker has its samples, their key, and its label for a reader."""

    peer: str
    way: str
    label: str
    python: bool = False
    floor: bool = False  # no cache at all: the least that it could cost

    @property
    def ours(self) -> bool:
        """Returns whether it is this project's."""
        return self.peer.startswith("rdmeta") and not self.floor


C = Line("rdmeta", "cache", "rdmeta, C")
PY = Line("rdmeta (Python)", "rdmeta", "rdmeta, Python", python=True)
PY_LEADER = Line("rdmeta (Python)", "leader", "rdmeta, cache.leader", python=True)

LOOKUPS = (
    Line("rdmeta", "floor", "bare table, no rules", floor=True),
    C,
    Line("rdmeta", "handle", "rdmeta, C, by handle"),
    Line("go", "map", "Go map, no rules", floor=True),
    Line("kafka-clients", "prepared", "Java client, TopicPartition kept"),
    Line("kafka-clients", "hashed", "Java client, String hashed"),
    Line("kafka-clients", "fresh", "Java client, fresh String"),
    Line("librdkafka", "librdkafka", "librdkafka, read lock"),
    Line("dict", "index", "dict of lists, no rules", python=True, floor=True),
    PY_LEADER,
    Line("rdmeta (Python)", "handle", "rdmeta, by handle", python=True),
    Line("kafka-python", "prepared", "kafka-python, TopicPartition kept", python=True),
    Line("kafka-python", "new", "kafka-python", python=True),
    Line("aiokafka", "prepared", "aiokafka, TopicPartition kept", python=True),
    Line("aiokafka", "new", "aiokafka", python=True),
    Line("confluent-kafka", "kept", "confluent-kafka, a kept list_topics()", python=True),
    Line("confluent-kafka", "list_topics", "confluent-kafka, list_topics(topic)", python=True),
)
ANSWERS = (
    C,
    Line("librdkafka", "librdkafka", "librdkafka"),
    Line("kafka-clients", "java", "Java client"),
    PY,
    Line("kafka-python", "kafka-python", "kafka-python", python=True),
    Line("aiokafka", "aiokafka", "aiokafka", python=True),
    Line("confluent-kafka", "list_topics", "confluent-kafka, list_topics()", python=True),
)
INSERT = Line("librdkafka", "librdkafka", "librdkafka, insert alone")


@dataclass(frozen=True)
class PeerFigure:
    """A thing that is measured, in the words of the report; `key` is its name in workers."""

    key: str
    group: str
    title: str
    unit: str
    lines: tuple[Line, ...]

    def name(self, line: Line, topics: int) -> str:
        """Returns a row's name. It has no version: the row stays when a peer is renewed."""
        where = "Python" if line.python else "native"
        return f"peers: {self.size(topics)}: {line.label} ({where})"

    def size(self, topics: int) -> str:
        """Returns the title at a size."""
        return self.title.format(topics=count(topics), partitions=count(topics * PER_TOPIC))


RANDOM = PeerFigure("random", "lookup", "leader lookup, random of {topics} topics", "ns", LOOKUPS)
HOT = PeerFigure("hot", "lookup", "leader lookup, 8 hot of {topics} topics", "ns", LOOKUPS)
COLD = PeerFigure(
    "cold", "fill", "response -> empty cache, {partitions} partitions", "ns/partition", ANSWERS
)
ONLY_INSERT = PeerFigure("insert", "fill", COLD.title, "ns/partition", (INSERT,))
SAME = PeerFigure(
    "same", "again", "same response again, {partitions} partitions", "ns/partition", ANSWERS
)
MEMORY = PeerFigure(
    "memory", "memory", "memory of a cache of {partitions} partitions", "B/partition", ANSWERS
)


@dataclass(frozen=True)
class PeerScale:
    """How much is measured: sizes, queries, and turns of all workers."""

    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)
    hot: int = 10_000
    queries: int = 1 << 18
    turns: int = 3
    rounds: int = 7
    seconds: int = 2
    warm: float = 6


QUICK = PeerScale((10, 100), 100, 1 << 11, 1, 2, 1, 0.1)


def planned(scale: PeerScale) -> Iterator[tuple[PeerFigure, Line, int]]:
    """Returns every row that can be measured, in the order of the report."""
    for figure in (RANDOM, HOT, COLD, ONLY_INSERT, SAME, MEMORY):
        for topics in (scale.hot,) if figure is HOT else scale.sizes:
            for line in figure.lines:
                yield figure, line, topics


def known(scale: PeerScale) -> list[str]:
    """Returns the names of all rows."""
    return [figure.name(line, topics) for figure, line, topics in planned(scale)]


def reference_of(figure: PeerFigure, line: Line) -> Line:
    """Returns rdmeta's line for the comparison: C beside C, Python beside Python."""
    if not line.python:
        return C
    return PY_LEADER if figure.group == "lookup" else PY


def row(figure: PeerFigure, line: Line, topics: int, runs: Runs) -> Row | None:
    """Returns the row of results.json; None if nothing was measured. It has no goal.

    The ratio is the median of the turns' own, so that a slow moment of the machine hits both.
    """
    key = f"{figure.key}:{line.way}"
    ours = reference_of(figure, line)
    ours_at = runs.get((ours.peer, topics), ())
    turns = [run[key] for run in runs.get((line.peer, topics), ()) if key in run]
    ours_key = f"{'cold' if figure is ONLY_INSERT else figure.key}:{ours.way}"
    references = [run[ours_key] for run in ours_at if ours_key in run]
    if not turns or not references:
        return None
    samples = [sample for turn in turns for sample in turn]
    values = [sample for turn in references for sample in turn]
    pairs = list(zip(turns, references, strict=False))
    medians = ([statistics.median(turn) for turn in side] for side in zip(*pairs, strict=True))
    ratio = ratio_of(*medians)
    reference = statistics.median(values)
    return {
        "name": figure.name(line, topics),
        "unit": figure.unit,
        "value": round(statistics.median(samples), 3),
        "reference": round(reference, 3),
        "ratio": None if ratio is None else round(ratio, 3),
        "goal": None,
        "ok": None,
        "rule": None,
        "reference_name": ours.label,
        "best": round(min(samples), 3),
        "worst": round(max(samples), 3),
        "best_reference": round(min(values), 3),
        "samples": len(samples),
        "group": f"peers {figure.group}",
        "figure": figure.size(topics),
        "label": line.label,
        "layer": "Python" if line.python else "native",
        "ours": line.ours,
        "floor": line.floor,
        "topics": topics,
        "peer": line.peer,
    }


def rows(scale: PeerScale, runs: Runs, versions: Mapping[str, str]) -> list[Row]:
    """Returns all rows that were measured, each with its peer's version."""
    found = (row(*place, runs) for place in planned(scale))
    return [{**one, "version": versions[one["peer"]]} for one in found if one is not None]
