"""Which figures there are, where each comes from, and what it must not exceed.

A *job* is one process to run, as often as asked; its samples are pooled. A *figure* reads its
samples and those of its reference out of one job, so the two were measured side by side.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Run = dict[str, Any]
Runs = Sequence[Run]
Samples = Callable[[Runs], list[float]]

PER_TOPIC = 10  # partitions a topic, in every response


@dataclass(frozen=True)
class Job:
    """A process: the program's name and arguments, and how many times it is run.

    `{seed}` in an argument becomes another number in each run.
    """

    program: str
    arguments: tuple[str, ...]
    runs: int = 1


@dataclass(frozen=True)
class Goal:
    """`value <= factor * reference + plus`, in the unit of the value."""

    factor: float = 0.0
    plus: float = 0.0

    def limit(self, reference: float) -> float:
        """The most that the value may be."""
        return self.factor * reference + self.plus

    def text(self, unit: str) -> str:
        """As a reader would say it."""
        if not self.factor:
            return f"<= {self.plus:g} {unit}"
        if not self.plus:
            return f"<= {self.factor:g} x reference"
        return f"<= reference + {self.plus:g} {unit}"


@dataclass(frozen=True)
class Figure:
    """One row: `value` and `reference` are samples in `unit`, one for one where both are timed."""

    group: str
    name: str
    unit: str
    job: Job
    value: Samples
    reference: Samples
    reference_name: str
    goal: Goal | None = None

    def result(self, runs: Runs, judged: bool) -> dict[str, object]:
        """The row of results.json: medians, with the best and the spread beside them.

        The ratio is the median of each round's own ratio, so that a slow moment of the machine,
        which hits both, cancels out; a goal relative to the reference is judged by it.
        """
        values, references = self.value(runs), self.reference(runs)
        value, reference = statistics.median(values), statistics.median(references)
        ratio = value / reference
        if len(values) == len(references):
            ratio = statistics.median(v / r for v, r in zip(values, references, strict=True))
        limit = None if self.goal is None else self.goal.limit(reference)
        ok: bool | None = None
        if judged and self.goal is not None and limit is not None:
            by_ratio = self.goal.factor and not self.goal.plus
            ok = ratio <= self.goal.factor if by_ratio else value <= limit
        return {
            "name": self.name,
            "unit": self.unit,
            "value": round(value, 3),
            "reference": round(reference, 3),
            "ratio": round(ratio, 3),
            "goal": None if limit is None else round(limit, 3),
            "ok": ok,
            "rule": None if self.goal is None else self.goal.text(self.unit),
            "reference_name": self.reference_name,
            "best": round(min(values), 3),
            "worst": round(max(values), 3),
            "best_reference": round(min(references), 3),
            "samples": len(values),
            "off_cpu": round(statistics.median(run.get("off_cpu", 0.0) for run in runs), 3),
            "group": self.group,
        }


@dataclass(frozen=True)
class Scale:
    """How much is measured: topics of each size, rounds in a process, processes."""

    lookups: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    fills: tuple[int, ...] = (10_000, 100_000)
    python: int = 10_000
    queries: int = 1 << 20
    python_queries: int = 200_000
    rounds: int = 9
    processes: int = 3
    judged: bool = True


QUICK = Scale((10, 100), (10, 100), 100, 1 << 12, 1_000, 2, 1, judged=False)


def count(number: int) -> str:
    """1 000 as "1 k", 1 000 000 as "1 M"."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number >= size and number % size == 0:
            return f"{number // size} {unit}"
    return str(number)


def series(key: str) -> Samples:
    """The samples called `key`, of all runs."""
    return lambda runs: [float(sample) for run in runs for sample in run[key]]


def number(key: str, per: str | int = 1) -> Samples:
    """The number called `key` divided by another one, a sample for each run."""
    return lambda runs: [
        float(run[key]) / float(run[per] if isinstance(per, str) else per) for run in runs
    ]


def _lookups(scale: Scale) -> Iterable[Figure]:
    table = "bare table"
    for topics in scale.lookups:
        arguments = (str(topics), str(scale.rounds), str(scale.queries), "{seed}")
        job = Job("lookup", arguments, scale.processes)
        yield Figure(
            "lookup",
            f"C leader lookup, random of {count(topics)} topics",
            "ns",
            job,
            series("random_cache"),
            series("random_floor"),
            table,
            Goal(factor=1.2),
        )
        if topics == scale.lookups[1]:
            yield Figure(
                "lookup",
                f"C leader lookup, 8 hot of {count(topics)} topics",
                "ns",
                job,
                series("hot_cache"),
                series("hot_floor"),
                table,
                Goal(factor=1.3),
            )


FILLS: tuple[tuple[str, str, tuple[float, float] | None], ...] = (
    ("cold", "C response -> empty cache", (30, 43)),
    ("warm", "C the same in memory that the process has", None),
    ("walk", "C first ordered walk after that", None),
    ("rewalk", "C second walk", None),
    ("drop", "C giving that cache up", None),
    ("same", "C same response again, same order", (4, 4)),
    ("shuffled", "C same response again, shuffled", (35, 35)),
    ("changed", "C response with 0.1 % of topics changed", (6, 6)),
)


def _fills(scale: Scale) -> Iterable[Figure]:
    for key, name, limits in FILLS:
        for which, topics in enumerate(scale.fills):
            yield Figure(
                "apply",
                f"{name}, {count(topics * PER_TOPIC)} partitions",
                "ns/partition",
                Job("apply", (str(topics), str(scale.rounds), "{seed}"), scale.processes),
                series(key),
                series("memcpy"),
                "memcpy",
                None if limits is None else Goal(plus=limits[which]),
            )
    for ids, title, goal in (
        ("8", "", Goal(plus=50)),
        ("16", ", ids <= 32767", None),
        ("32", ", any ids", None),
    ):
        topics = scale.fills[-1]
        yield Figure(
            "first",
            f"C first fill of a fresh process, {count(topics * PER_TOPIC)} partitions{title}",
            "ns/partition",
            Job("fresh", (str(topics), ids, "{seed}"), scale.rounds),
            number("first_ns", "partitions"),
            number("memcpy_ns", "partitions"),
            "memcpy to fresh pages",
            goal,
        )


def _memory(scale: Scale) -> Iterable[Figure]:
    rows: list[tuple[str, str, float | None, tuple[int, ...], tuple[str, ...]]] = [
        ("16", "ids <= 32767", 40, scale.fills, ("own", "rss")),
        ("32", "any ids", 50, scale.fills, ("own", "rss")),
        ("8", "ids <= 127", None, scale.fills[-1:], ("own", "rss")),
    ]
    for ids, title, limit, sizes, ways in rows:
        for topics in sizes:
            for way in ways:
                how = "own count" if way == "own" else "RSS"
                yield Figure(
                    "memory",
                    f"memory by {how}, {title}, {count(topics * PER_TOPIC)} partitions",
                    "B/partition",
                    Job("fresh", (str(topics), ids, "{seed}"), scale.rounds),
                    number(f"{way}_again", "partitions"),
                    number("bytes", "partitions"),
                    "response",
                    None if limit is None else Goal(plus=limit),
                )
    yield Figure(
        "memory",
        f"memory at most while filling, any ids, {count(scale.fills[-1] * PER_TOPIC)} partitions",
        "B/partition",
        Job("fresh", (str(scale.fills[-1]), "32", "{seed}"), scale.rounds),
        number("rss_peak", "partitions"),
        number("bytes", "partitions"),
        "response",
    )


def _python(scale: Scale) -> Iterable[Figure]:
    options = {"topics": scale.python, "queries": scale.python_queries, "rounds": scale.rounds}
    arguments = [f"--{key}={value}" for key, value in options.items()]
    job = Job("leader", (*arguments, "--seed={seed}"), scale.processes)
    rows = (
        ("random", f"random of {count(scale.python)} topics", Goal(plus=45)),
        ("hot", f"8 hot of {count(scale.python)} topics", Goal(factor=1, plus=14)),
    )
    for key, what, goal in rows:
        for label, title in (("cache", "cache.leader"), ("dict", "dict of lists")):
            yield Figure(
                "python",
                f"Python {title}, {what}",
                "ns",
                job,
                series(f"{key}_{label}"),
                series(f"{key}_noop"),
                "no-op method",
                goal if label == "cache" else None,
            )


def _startup(scale: Scale) -> Iterable[Figure]:
    yield Figure(
        "import",
        "import rdmeta",
        "ms",
        Job("startup", (str(2 * scale.rounds),)),
        series("imported"),
        series("bare"),
        "bare interpreter",
        Goal(plus=50),
    )


def all_figures(scale: Scale) -> list[Figure]:
    """Every row, in the order of the table."""
    parts = (_lookups, _fills, _memory, _python, _startup)
    return [figure for part in parts for figure in part(scale)]
